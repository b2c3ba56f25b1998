// steps.cpp - layers and steps of training that recent models brought: residual streams mixed by doubly stochastic
// matrices, attention through products of reflections, splines as layers, optimisers over lists of tensors.
#include "dsl/address.h"
#include "tests/users/use.h"
namespace users {
namespace steps {

constexpr float kLog2e = 1.4426950408889634f;

// --- residual streams (mHC): four streams of a token are mixed by a 4 x 4 matrix that Sinkhorn's steps made doubly
// stochastic, and get their share of the layer's output
struct StreamsCfg {
  int BT = 4, BD = 512, steps = 20;
};
auto mix_streams =
    kernel("user_mix_streams", [](const StreamsCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 2> Y,
                                  Tensor<const float, 3> logits, Tensor<const float, 2> gate, Tensor<bfloat16, 3> Z) {
      // X, Z [T, 4, D], Y [T, D], logits [T, 4, 4], gate [T, 4]: Z = P X + gate Y, P made of exp(logits)
      auto t = program_id(0) * c.BT;
      Tile p = exp(logits.load({t, 0, 0}, {c.BT, 4, 4}));
      for (auto i : range(0, c.steps)) {
        (void)i;
        p = p / sum(p, axis(2));
        p = p / sum(p, axis(1));
      }
      auto g = 2.f * sigmoid(gate.load({t, 0}, {c.BT, 4}));
      for (auto d : range(0, X.dim(2), c.BD)) {
        auto x = cast(X.load({t, 0, d}, {c.BT, 4, c.BD}), f32);
        auto y = cast(Y.load({t, d}, {c.BT, c.BD}), f32);
        auto mixed = sum(expand_dims(p, 3) * expand_dims(x, 1), axis(2));
        Z.store({t, 0, d}, cast(squeeze(mixed, 2) + expand_dims(g, 2) * expand_dims(y, 1), bf16));
      }
    }).grid([](const StreamsCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BT)}; });
Register r1("mix_streams", [](Env& e) {
  StreamsCfg c;
  if (!e.big) c = {2, 32, 20};
  c.BT = e.field("BT", c.BT), c.BD = e.field("BD", c.BD);
  const int T = e.big ? 8192 : 7, D = e.big ? 4096 : 80;
  auto x = random<bfloat16>(e, size_t(T) * 4 * D), y = random<bfloat16>(e, size_t(T) * D);
  auto logits = random<float>(e, size_t(T) * 16), gate = random<float>(e, size_t(T) * 4);
  auto z = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.mbytes = 2e-6 * (2. * x.n + y.n);
  j.add(mix_streams, c, x.view(T, 4, D), y.view(T, D), logits.view(T, 4, 4), gate.view(T, 4), z.view(T, 4, D));
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int t = 0; t < T; ++t) {
      double p[4][4];
      for (int i = 0; i < 16; ++i) p[i / 4][i % 4] = std::exp(logits[t * 16 + i]);
      for (int s = 0; s < 2 * c.steps; ++s)
        for (int i = 0; i < 4; ++i) {
          double total = 0;
          for (int k = 0; k < 4; ++k) total += s % 2 ? p[k][i] : p[i][k];
          for (int k = 0; k < 4; ++k) (s % 2 ? p[k][i] : p[i][k]) /= total;
        }
      for (int i = 0; i < 4; ++i)
        for (int d = 0; d < D; ++d) {
          double v = 2 / (1 + std::exp(-gate[t * 4 + i])) * y[size_t(t) * D + d];
          for (int k = 0; k < 4; ++k) v += p[i][k] * x[(size_t(t) * 4 + k) * D + d];
          want[(size_t(t) * 4 + i) * D + d] = v;
        }
    }
    return agree(z.now(), want, 5e-3, 8e-3);
  };
  return j;
});

// --- attention whose queries are reflected on their way back through the sequence (PaTH): blocks of keys from the
// newest to the oldest, and behind each the query loses what the block's reflections W^T T W take
struct PathCfg {
  int BM = 64, BN = 64, D = 64, warps = 4, stages = 2;
};
auto path_attention =
    kernel("user_path_attention", [](const PathCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                     Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> W,
                                     Tensor<const bfloat16, 3> U, Tensor<bfloat16, 3> O, F32 scale) {
      // [B H, S, D]; W the reflections' directions, U = T W (made elsewhere): q <- q - (q W^T) U for a block of BN
      num_warps(c.warps);
      auto m0 = program_id(0) * c.BM, b = program_id(1);
      auto rows = (m0 + arange(0, c.BM)).col();
      auto box = [&](auto& t, Tile at) { return squeeze(t.load({b, at, 0}, {1, c.BN, c.D}), 0); };
      Tile q = cast(squeeze(Q.load({b, m0, 0}, {1, c.BM, c.D}), 0), f32);
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32);
      for (auto i : range(0, m0 / c.BN + 1, {.stages = c.stages})) {
        auto n = m0 - i * c.BN;
        auto k = box(K, n), v = box(V, n);
        auto qb = cast(q, bf16);
        auto s = where((n + arange(0, c.BN)).row() <= rows, dot(qb, trans(k)) * (scale * kLog2e), -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
        for (auto _ : when(i > 0)) q = q - dot(cast(dot(qb, trans(box(W, n))), bf16), box(U, n));
      }
      O.store({b, m0, 0}, expand_dims(cast(acc / l, bf16), 0));
    }).grid([](const PathCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r2("path_attention", [](Env& e) {
  PathCfg c;
  if (!e.big) c = {16, 16, 32, 4, 2};
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 64 : 2, S = e.big ? 4096 : 64, D = c.D, N = c.BN;
  const size_t n = size_t(B) * S * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto w = random<bfloat16>(e, n, -.1, .1), u = random<bfloat16>(e, n, -.1, .1);
  auto o = constant<bfloat16>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * double(S) * S * D;
  j.add(path_attention, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), w.view(B, S, D), u.view(B, S, D),
        o.view(B, S, D), scale);
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int r = 0; r < S; ++r) {
        std::vector<double> x(D), out(D);
        const size_t base = size_t(b) * S * D;
        for (int d = 0; d < D; ++d) x[d] = q[base + size_t(r) * D + d];
        double total = 0;
        for (int block = r / N; block >= 0; --block) {
          std::vector<double> left = x;
          for (int key = block * N; key < (block + 1) * N && key <= r; ++key) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += x[d] * k[base + size_t(key) * D + d];
            const double p = std::exp(s * scale);
            total += p;
            for (int d = 0; d < D; ++d) out[d] += p * v[base + size_t(key) * D + d];
          }
          for (int key = block * N; block < r / N && key < (block + 1) * N; ++key) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += x[d] * w[base + size_t(key) * D + d];
            for (int d = 0; d < D; ++d) left[d] -= s * u[base + size_t(key) * D + d];
          }
          x = left;
        }
        for (int d = 0; d < D; ++d) want[base + size_t(r) * D + d] = out[d] / total;
      }
    return agree(o.now(), want, 1.5e-2, 1.5e-2);
  };
  return j;
});

// --- gradients of a causal depthwise convolution along time (Mamba's short one): dX, and dW of all tokens by atomics
struct ShortCfg {
  int BT = 64, BC = 128, width = 4;
};
auto short_conv_bwd =
    kernel("user_short_conv_bwd", [](const ShortCfg& c, Tensor<const bfloat16, 3> X, Tensor<const float, 2> W,
                                     Tensor<const bfloat16, 3> dY, Tensor<bfloat16, 3> dX, Tensor<float, 2> dW) {
      // X, dY, dX [B, T, C], W, dW [width, C]; Y = silu(sum_k W[k] X[t + k - width + 1])
      auto b = program_id(0), t = program_id(1) * c.BT, at = program_id(2) * c.BC;
      auto pre = [&](auto t0, int count) {  // the sums of rows t0 .. t0 + count
        Tile sum = zeros({count, c.BC}, f32);
        for (int k = 0; k < c.width; ++k)
          sum += cast(squeeze(X.load({b, t0 + (k - c.width + 1), at}, {1, count, c.BC}), 0), f32) *
                 W.load({k, at}, {1, c.BC});
        return sum;
      };
      auto slope = [&](auto t0) {
        auto z = pre(t0, c.BT);
        auto s = sigmoid(z);
        return cast(squeeze(dY.load({b, t0, at}, {1, c.BT, c.BC}), 0), f32) * (s + z * s * (1.f - s));
      };
      Tile dx = zeros({c.BT, c.BC}, f32);
      for (int k = 0; k < c.width; ++k) dx += slope(t + (c.width - 1 - k)) * W.load({k, at}, {1, c.BC});
      dX.store({b, t, at}, expand_dims(cast(dx, bf16), 0));
      auto g = slope(t);
      for (int k = 0; k < c.width; ++k) {
        auto x = cast(squeeze(X.load({b, t + (k - c.width + 1), at}, {1, c.BT, c.BC}), 0), f32);
        dW.atomic_add({k, at}, sum(g * x, axis(0)));
      }
    }).grid([](const ShortCfg& c, const auto& x, const auto&...) {
      return Grid{x.shape[0], cdiv(x.shape[1], c.BT), cdiv(x.shape[2], c.BC)};
    });
Register r3("short_conv_bwd", [](Env& e) {
  ShortCfg c;
  if (!e.big) c = {16, 32, 4};
  c.BT = e.field("BT", c.BT), c.BC = e.field("BC", c.BC);
  const int B = e.big ? 8 : 2, T = e.big ? 4096 : 37, C = e.big ? 4096 : 48, K = c.width;
  auto x = random<bfloat16>(e, size_t(B) * T * C), g = random<bfloat16>(e, x.n);
  auto w = random<float>(e, size_t(K) * C), dw = constant<float>(e, w.n, 0);
  auto dx = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.mbytes = 6e-6 * x.n;
  j.add(short_conv_bwd, c, x.view(B, T, C), w.view(K, C), g.view(B, T, C), dx.view(B, T, C), dw.view(K, C));
  j.check = [=]() -> std::string {
    std::vector<double> want(x.n), weights(w.n);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int ch = 0; ch < C; ++ch) {
          auto at = [&](int u) { return (size_t(b) * T + u) * C + ch; };
          double z = 0;
          for (int k = 0; k < K; ++k)
            if (t + k >= K - 1) z += w[k * C + ch] * x[at(t + k - K + 1)];
          const double s = 1 / (1 + std::exp(-z)), d = g[at(t)] * (s + z * s * (1 - s));
          for (int k = 0; k < K; ++k)
            if (t + k >= K - 1) {
              want[at(t + k - K + 1)] += d * w[k * C + ch];
              weights[k * C + ch] += d * x[at(t + k - K + 1)];
            }
        }
    auto bad = agree(dx.now(), want, 6e-3, 6e-3);
    return bad.empty() ? agree(dw.now(), weights, 2e-3, 2e-3) : bad;
  };
  return j;
});

// --- AdamW over a list of tensors in one launch (apex's multi-tensor apply): a table names every chunk's tensor and
// place
struct ListCfg {
  int B = 1024, chunk = 65536;
};
auto list_adam =
    kernel("user_list_adam", [](const ListCfg& c, Ptr<const uint64_t> tensors, Ptr<const int64_t> sizes,
                                Ptr<const int32_t> owner, Ptr<const int32_t> place, F32 lr, F32 b1, F32 b2, F32 eps,
                                F32 decay, F32 c1, F32 c2, I32 /*chunks*/) {
      // tensors [n, 4]: addresses of weights (bf16), gradients (bf16), first and second moments (f32)
      auto chunk = program_id(0);
      auto t = load(owner + chunk);
      auto table = tensors + t * 4;
      auto p = pointer_to<bfloat16>(load(table));
      auto g = pointer_to<const bfloat16>(load(table + 1));
      auto m = pointer_to<float>(load(table + 2)), v = pointer_to<float>(load(table + 3));
      auto first = cast(load(place + chunk), i64) * c.chunk;
      auto n = min(load(sizes + t) - first, int64_t(c.chunk));
      for (auto k : range(0, cast(n, i32), c.B)) {
        auto i = k + arange(0, c.B);
        auto inside = cast(i, i64) < n;
        auto at = first + cast(i, i64);
        auto w = cast(load(p + at, {.mask = inside}), f32), d = cast(load(g + at, {.mask = inside}), f32);
        auto m1 = b1 * load(m + at, {.mask = inside}) + (1.f - b1) * d;
        auto v1 = b2 * load(v + at, {.mask = inside}) + (1.f - b2) * d * d;
        w = w - lr * (m1 * c1 / (sqrt(v1 * c2) + eps) + decay * w);
        store(m + at, m1, {.mask = inside});
        store(v + at, v1, {.mask = inside});
        store(p + at, cast(w, bf16), {.mask = inside});
      }
    }).grid([](const ListCfg&, auto, auto, auto, auto, float, float, float, float, float, float, float, int chunks) {
      return Grid{chunks};
    });
Register r4("list_adam", [](Env& e) {
  ListCfg c;
  if (!e.big) c = {64, 256};
  c.B = e.field("B", c.B);
  const int n = e.big ? 200 : 5;
  struct State {
    Array<bfloat16> p, g;
    Array<float> m, v;
  };
  std::vector<State> all;
  std::vector<int32_t> owners, places;
  std::vector<int64_t> counts;
  double total = 0;
  for (int t = 0; t < n; ++t) {
    const size_t size = e.big ? (t % 3 == 0 ? 4096 * 1024 : t % 3 == 1 ? 4096 : 1024 * 777) : 100 + 133 * t;
    all.push_back(
        {random<bfloat16>(e, size), random<bfloat16>(e, size), random<float>(e, size), random<float>(e, size, 0, 1)});
    counts.push_back(int64_t(size)), total += double(size);
    for (size_t i = 0; i * c.chunk < size; ++i) owners.push_back(t), places.push_back(int(i));
  }
  auto address = [](const auto* x) { return uint64_t(reinterpret_cast<uintptr_t>(x)); };
  auto tensors = filled<uint64_t>(e, size_t(n) * 4, [&](size_t i) {
    const State& s = all[i / 4];
    return i % 4 == 0 ? address(s.p.p) : i % 4 == 1 ? address(s.g.p) : i % 4 == 2 ? address(s.m.p) : address(s.v.p);
  });
  auto sizes = filled<int64_t>(e, n, [&](size_t i) { return counts[i]; });
  auto owner = filled<int32_t>(e, owners.size(), [&](size_t i) { return owners[i]; });
  auto place = filled<int32_t>(e, places.size(), [&](size_t i) { return places[i]; });
  Job j;
  j.mbytes = 1e-6 * total * 22;
  j.inTurn = true;
  j.add(list_adam, c, tensors.p, sizes.p, owner.p, place.p, 1e-2f, .9f, .99f, 1e-8f, .1f, 2.f, 3.f, int(owners.size()));
  j.check = [=]() -> std::string {
    for (const State& s : all) {
      std::vector<double> m(s.p.n), v(s.p.n), p(s.p.n);
      for (size_t i = 0; i < p.size(); ++i) {
        m[i] = .9f * s.m[i] + .1 * s.g[i], v[i] = .99 * s.v[i] + .01 * s.g[i] * s.g[i];
        p[i] = s.p[i] - 1e-2 * (m[i] * 2 / (std::sqrt(v[i] * 3) + 1e-8) + .1 * s.p[i]);
      }
      for (auto bad :
           {agree(s.m.now(), m, 1e-5, 1e-5), agree(s.v.now(), v, 1e-5, 1e-5), agree(s.p.now(), p, 4e-3, 4e-3)})
        if (!bad.empty()) return bad;
    }
    return "";
  };
  return j;
});

// --- a layer of splines (KAN): every input becomes eight cubic B-splines, which weights multiply
struct SplineCfg {
  int BM = 64, BN = 64, BK = 16, warps = 4, stages = 2;
};
auto splines =
    kernel("user_splines", [](const SplineCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> W, Tensor<half, 2> Y) {
      // X [M, K] in -1 .. 1, W [N, K, 8], Y [M, N]; knots on a grid of 5 intervals, three beyond on each side
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
        auto x = expand_dims((cast(X.load({m, k}, {c.BM, c.BK}), f32) + 1.f) * 2.5f + 3.f, 2);  // in units of intervals
        auto u = abs(x - (cast(reshape(arange(0, 8), {1, 1, 8}), f32) + 2.f));  // from the spline's middle
        auto near = 2.f / 3.f - u * u + 0.5f * u * u * u, far = (2.f - u) * (2.f - u) * (2.f - u) / 6.f;
        auto basis = where(u < 1.f, near, where(u < 2.f, far, 0.f));
        auto a = reshape(cast(basis, f16), {c.BM, c.BK * 8});
        auto w = reshape(W.load({n, k, 0}, {c.BN, c.BK, 8}), {c.BN, c.BK * 8});
        acc = dot(a, trans(w), acc);
      }
      Y.store({m, n}, cast(acc, f16));
    }).grid([](const SplineCfg& c, const auto&, const auto&, const auto& y) {
      return Grid{cdiv(y.shape[0], c.BM), cdiv(y.shape[1], c.BN)};
    });
Register r5("splines", [](Env& e) {
  SplineCfg c;
  if (!e.big) c = {16, 16, 8, 4, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int M = e.big ? 8192 : 21, N = e.big ? 1024 : 35, K = e.big ? 1024 : 24;
  auto x = random<half>(e, size_t(M) * K), w = random<half>(e, size_t(N) * K * 8),
       y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 16e-9 * M * N * double(K);
  j.add(splines, c, x.view(M, K), w.view(N, K, 8), y.view(M, N));
  j.check = [=] {
    // Cox and de Boor.
    auto knot = [](int i) { return -1 + (i - 3) * .4; };
    std::function<double(int, int, double)> spline = [&](int i, int p, double v) -> double {
      if (p == 0) return v >= knot(i) && v < knot(i + 1);
      return (v - knot(i)) / (knot(i + p) - knot(i)) * spline(i, p - 1, v) +
             (knot(i + p + 1) - v) / (knot(i + p + 1) - knot(i + 1)) * spline(i + 1, p - 1, v);
    };
    std::vector<double> basis(size_t(M) * K * 8);
    for (size_t i = 0; i < basis.size(); ++i) basis[i] = spline(int(i % 8), 3, x[i / 8]);
    auto want = product(
        M, N, K * 8, [&](int m, int k) { return basis[size_t(m) * K * 8 + k]; },
        [&](int k, int n) { return w[size_t(n) * K * 8 + k]; });
    return agree(y.now(), want, 8e-3, 4e-3);
  };
  return j;
});

}  // namespace steps
}  // namespace users
