// triples.cpp - attention that is not pairs of rows: triples of tokens, rows made of factors, antidiagonals
// of blocks, systems solved and networks trained on the way.
#include "tests/users/use.h"
namespace users {
namespace triples {

constexpr float kLog2e = 1.4426950408889634f;

// --- 2-simplicial attention: a query weighs pairs (j, k) of keys, j of the last w1 tokens and k of the last w2, by
// sum_d q_d k_jd k'_kd, and gets v_j v'_k
struct SimplicialCfg {
  int BM = 64, BN = 64, D = 64, warps = 4, stages = 2;
};
auto simplicial =
    kernel("user_simplicial", [](const SimplicialCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                 Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> K2,
                                 Tensor<const bfloat16, 3> V2, Tensor<bfloat16, 3> O, I32 w1, I32 w2, F32 scale) {
      num_warps(c.warps);
      auto b = program_id(1), m0 = program_id(0) * c.BM, S = Q.dim(1);
      auto q = Q.load({b, m0, 0}, {c.BM, c.D});
      auto i = (m0 + arange(0, c.BM)).col();
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      auto end = min(m0 + c.BM, S);
      for (auto j : range(max(m0 - w1 + 1, 0), end)) {
        auto kj = K.load({b, j, 0}, {1, c.D}), vj = V.load({b, j, 0}, {1, c.D});
        auto qk = q * kj;
        auto near = (j <= i) & (j > i - w1);
        for (auto k0 : range(max(m0 - w2 + 1, 0), end, c.BN, {.stages = c.stages})) {
          auto k = (k0 + arange(0, c.BN)).row();
          auto s = dot(qk, trans(K2.load({b, k0, 0}, {c.BN, c.D}))) * (scale * kLog2e);
          s = where(near & (k <= i) & (k > i - w2), s, -INFINITY);
          auto m2 = max(m, max(s, axis(1)));
          auto safe = where(m2 == -INFINITY, 0.f, m2);
          auto p = exp2(s - safe), alpha = exp2(m - safe);
          l = l * alpha + sum(p, axis(1));
          acc = acc * alpha + dot(cast(p, bf16), V2.load({b, k0, 0}, {c.BN, c.D})) * cast(vj, f32);
          m = m2;
        }
      }
      O.store({b, m0, 0}, cast(acc / l, bf16));
    }).grid([](const SimplicialCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r1("simplicial", [](Env& e) {
  SimplicialCfg c;
  if (!e.big) c = {16, 16, 16, 1, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32 : 2, S = e.big ? 4096 : 45, D = c.D, w1 = e.big ? 32 : 5, w2 = e.big ? 512 : 21;
  const size_t n = size_t(B) * S * D;
  auto q = random<bfloat16>(e, n, -2, 2), k = random<bfloat16>(e, n, -2, 2), v = random<bfloat16>(e, n);
  auto k2 = random<bfloat16>(e, n, -2, 2), v2 = random<bfloat16>(e, n);
  auto o = constant<bfloat16>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * S * double(w1 + c.BM) * (w2 + c.BM) * D;
  auto v3 = [&](auto& a) { return a.view(B, S, D); };
  j.add(simplicial, c, v3(q), v3(k), v3(v), v3(k2), v3(v2), v3(o), w1, w2, scale);
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < S; ++i) {
        auto at = [&](int row) { return (size_t(b) * S + row) * D; };
        double total = 0;
        for (int x = std::max(0, i - w1 + 1); x <= i; ++x)
          for (int y = std::max(0, i - w2 + 1); y <= i; ++y) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[at(i) + d] * k[at(x) + d] * k2[at(y) + d];
            const double p = std::exp(s * scale);
            total += p;
            for (int d = 0; d < D; ++d) want[at(i) + d] += p * v[at(x) + d] * v2[at(y) + d];
          }
        for (int d = 0; d < D; ++d) want[at(i) + d] /= total;
      }
    return agree(o.now(), want, 1e-2, 2e-2);
  };
  return j;
});

// --- tensor product attention (TPA): keys and values are sums of R products of a number per head and a vector of the
// token; they are put together where they are used
struct TensorCfg {
  int BM = 128, BN = 64, D = 64, R = 2, warps = 4, stages = 2;
};
auto tensor_attention =
    kernel("user_tensor_attention", [](const TensorCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> AK,
                                       Tensor<const bfloat16, 3> BK, Tensor<const bfloat16, 3> AV,
                                       Tensor<const bfloat16, 3> BV, Tensor<bfloat16, 3> O, F32 scale) {
      // Q, O [S, H, D]; AK, AV [S, H, R]; BK, BV [S, R, D]
      num_warps(c.warps);
      auto h = program_id(0), m0 = (num_programs(1) - 1 - program_id(1)) * c.BM;  // long rows first
      auto q = squeeze(Q.load({m0, h, 0}, {c.BM, 1, c.D}), 1);
      auto made = [&](const auto& A, const auto& B, const Tile& n) {
        auto a = permute(A.load({n, h, 0}, {c.BN, 1, c.R}), {0, 2, 1});
        return cast(squeeze(sum(cast(a, f32) * cast(B.load({n, 0, 0}, {c.BN, c.R, c.D}), f32), axis(1)), 1), bf16);
      };
      auto i = (m0 + arange(0, c.BM)).col();
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      for (auto n0 : range(0, min(m0 + c.BM, Q.dim(0)), c.BN, {.stages = c.stages})) {
        auto s = dot(q, trans(made(AK, BK, n0))) * (scale * kLog2e);
        s = where((n0 + arange(0, c.BN)).row() <= i, s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), made(AV, BV, n0), acc * alpha);
        m = m2;
      }
      O.store({m0, h, 0}, expand_dims(cast(acc / l, bf16), 1));
    }).grid([](const TensorCfg& c, const auto& q, const auto&...) {
      return Grid{q.shape[1], cdiv(q.shape[0], c.BM)};
    });
Register r2("tensor_attention", [](Env& e) {
  TensorCfg c;
  if (!e.big) c = {16, 16, 16, 2, 1, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 8192 : 45, H = e.big ? 32 : 3, D = c.D, R = c.R;
  auto q = random<bfloat16>(e, size_t(S) * H * D, -2, 2);
  auto ak = random<bfloat16>(e, S * H * R), bk = random<bfloat16>(e, S * R * D, -2, 2);
  auto av = random<bfloat16>(e, S * H * R), bv = random<bfloat16>(e, S * R * D);
  auto o = constant<bfloat16>(e, q.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * H * double(S) * S * D;
  j.add(tensor_attention, c, q.view(S, H, D), ak.view(S, H, R), bk.view(S, R, D), av.view(S, H, R), bv.view(S, R, D),
        o.view(S, H, D), scale);
  j.check = [=] {
    std::vector<double> want(q.n);
    auto rounded = [](double x) { return double(float(bfloat16(float(x)))); };
    for (int h = 0; h < H; ++h) {
      auto made = [&](const auto& a, const auto& b, int s, int d) {
        double x = 0;
        for (int r = 0; r < R; ++r) x += a[(size_t(s) * H + h) * R + r] * b[(size_t(s) * R + r) * D + d];
        return rounded(x);
      };
      for (int i = 0; i < S; ++i) {
        double total = 0;
        for (int x = 0; x <= i; ++x) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[(size_t(i) * H + h) * D + d] * made(ak, bk, x, d);
          const double p = std::exp(s * scale);
          total += p;
          for (int d = 0; d < D; ++d) want[(size_t(i) * H + h) * D + d] += p * made(av, bv, x, d);
        }
        for (int d = 0; d < D; ++d) want[(size_t(i) * H + h) * D + d] /= total;
      }
    }
    return agree(o.now(), want, 1e-2, 2e-2);
  };
  return j;
});

// --- which blocks matter (XAttention): sums along the antidiagonals of 8 x 8 pairs, a softmax of them by row, and what
// of it falls into blocks of 16 x 16 of them. Queries of a group come last first: a view with a stride below zero
struct AntidiagonalCfg {
  int BM = 64, BN = 128, D = 128, G = 8, W = 16, warps = 8;
};
auto antidiagonal =
    kernel("user_antidiagonal", [](const AntidiagonalCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                   Tensor<float, 2> blocks, F32 scale) {
      // Q, K [S / G, G, D]
      num_warps(c.warps);
      auto m0 = program_id(0) * c.BM;
      auto scores = [&](const Tile& n0) {
        Tile s = zeros({c.BM, c.BN}, f32);
        for (auto g : range(c.G))
          s = dot(squeeze(Q.load({m0, g, 0}, {c.BM, 1, c.D}), 1), trans(squeeze(K.load({n0, g, 0}, {c.BN, 1, c.D}), 1)),
                  s);
        return where((n0 + arange(0, c.BN)).row() <= (m0 + arange(0, c.BM)).col(), s * (scale * kLog2e), -INFINITY);
      };
      auto end = min(m0 + c.BM, K.dim(0));
      Tile m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      for (auto n0 : range(0, end, c.BN)) {
        auto s = scores(n0);
        auto m2 = max(m, max(s, axis(1)));
        l = l * exp2(m - m2) + sum(exp2(s - m2), axis(1));
        m = m2;
      }
      auto inside = (m0 + arange(0, c.BM)).col() < Q.dim(0);
      for (auto n0 : range(0, end, c.BN)) {
        auto p = where(inside, exp2(scores(n0) - m) / l, 0.f);
        auto q = reshape(p, {c.BM / c.W, c.W, c.BN / c.W, c.W});
        blocks.store({m0 / c.W, n0 / c.W}, squeeze(squeeze(sum(sum(q, axis(3)), axis(1)), 3), 1));
      }
    }).grid([](const AntidiagonalCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.BM)}; });
Register r3("antidiagonal", [](Env& e) {
  AntidiagonalCfg c;
  if (!e.big) c = {16, 16, 16, 4, 4, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int groups = e.big ? 4096 : 37, D = c.D, G = c.G, W = c.W, n = cdiv(groups, W);
  auto q = random<half>(e, size_t(groups) * G * D), k = random<half>(e, q.n);
  auto out = constant<float>(e, size_t(n) * n, 0);
  const float scale = 1 / std::sqrt(float(D)) / G;
  Job j;
  j.gflop = 2e-9 * double(groups) * groups * G * D;
  TensorView<half, 3> backwards(q.p + (G - 1) * D, {groups, G, D}, {G * D, -D, 1});
  j.add(antidiagonal, c, TensorView<const half, 3>(backwards), k.view(groups, G, D), out.view(n, n), scale);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int I = 0; I < groups; ++I) {
      std::vector<double> p(I + 1);
      double total = 0;
      for (int J = 0; J <= I; ++J) {
        double s = 0;
        for (int g = 0; g < G; ++g)
          for (int d = 0; d < D; ++d) s += q[(size_t(I) * G + G - 1 - g) * D + d] * k[(size_t(J) * G + g) * D + d];
        total += p[J] = std::exp(s * scale);
      }
      for (int J = 0; J <= I; ++J) want[size_t(I / W) * n + J / W] += p[J] / total;
    }
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- a layer that solves its least squares (MesaNet): o_t = G_t (H_t + L)^-1 q_t with H_t = sum of k k^T and G_t = sum
// of v k^T up to t; steps of conjugate gradients for all tokens of a chunk at once
struct MesaCfg {
  int C = 64, D = 64, steps = 8, warps = 8;
};
auto mesa = kernel("user_mesa", [](const MesaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Ptr<const float> lambda, Tensor<bfloat16, 3> O) {
              num_warps(c.warps);
              auto b = program_id(0);
              auto ridge = load(lambda + (b * c.D + arange(0, c.D))).row();
              Tile H = zeros({c.D, c.D}, f32), G = zeros({c.D, c.D}, f32);  // sums of k k^T and of k v^T
              auto past = arange(0, c.C).row() <= arange(0, c.C).col();
              for (auto t : range(0, Q.dim(1), c.C)) {
                auto k = K.load({b, t, 0}, {c.C, c.D}), v = V.load({b, t, 0}, {c.C, c.D});
                auto h = cast(H, bf16), g = cast(G, bf16);
                auto seen = [&](const Tile& x) { return cast(where(past, dot(x, trans(k)), 0.f), bf16); };
                auto times = [&](const Tile& p) {
                  auto x = cast(p, bf16);
                  return dot(seen(x), k, dot(x, h)) + p * ridge;
                };
                Tile r = cast(Q.load({b, t, 0}, {c.C, c.D}), f32), x = zeros({c.C, c.D}, f32), p = r;
                Tile rr = sum(r * r, axis(1));
                for (auto _ : range(c.steps)) {
                  auto q = times(p);
                  auto alpha = rr / max(sum(p * q, axis(1)), 1e-12f);
                  x += alpha * p, r -= alpha * q;
                  auto now = sum(r * r, axis(1));
                  p = r + now / max(rr, 1e-12f) * p;
                  rr = now;
                }
                auto y = cast(x, bf16);
                O.store({b, t, 0}, cast(dot(seen(y), v, dot(y, g)), bf16));
                H = dot(trans(k), k, H), G = dot(trans(k), v, G);
              }
            }).grid([](const MesaCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r4("mesa", [](Env& e) {
  MesaCfg c;
  if (!e.big) c = {16, 16, 12, 1};
  c.steps = e.field("steps", c.steps), c.warps = e.field("warps", c.warps), c.C = e.field("C", c.C);
  const int B = e.big ? 128 : 2, S = e.big ? 4096 : 41, D = c.D;
  const size_t n = size_t(B) * S * D;
  auto unit = [&](float size) { return random<bfloat16>(e, n, -size, size); };
  auto q = unit(.4f), k = unit(.4f), v = unit(1);
  auto lambda = random<float>(e, B * D, 1, 3);
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 2e-9 * B * S * double(D) * (c.steps * (D + 2 * c.C) + 2 * D + 2 * D + 2 * c.C);
  j.add(mesa, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), lambda.p, o.view(B, S, D));
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b) {
      std::vector<double> H(D * D), G(D * D);
      for (int t = 0; t < S; ++t) {
        const size_t at = (size_t(b) * S + t) * D;
        for (int x = 0; x < D; ++x)
          for (int y = 0; y < D; ++y) H[x * D + y] += k[at + x] * k[at + y], G[x * D + y] += k[at + x] * v[at + y];
        auto A = H;  // solved by elimination
        std::vector<double> z(D);
        for (int d = 0; d < D; ++d) A[d * D + d] += lambda[b * D + d], z[d] = q[at + d];
        for (int p = 0; p < D; ++p)
          for (int r = p + 1; r < D; ++r) {
            const double f = A[r * D + p] / A[p * D + p];
            for (int x = p; x < D; ++x) A[r * D + x] -= f * A[p * D + x];
            z[r] -= f * z[p];
          }
        for (int p = D; p--;) {
          for (int x = p + 1; x < D; ++x) z[p] -= A[p * D + x] * z[x];
          z[p] /= A[p * D + p];
        }
        for (int y = 0; y < D; ++y)
          for (int x = 0; x < D; ++x) want[at + y] += z[x] * G[x * D + y];
      }
    }
    return agree(o.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- a gated network as a memory that is trained while it is read (LaCT): every chunk asks f(q) = (silu(q A) * (q B))
// C, then takes a step of every token's rate along the gradients of f(k) v
struct LactCfg {
  int T = 64, D = 64, E = 64, warps = 8;
};
auto lact =
    kernel("user_lact", [](const LactCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                           Tensor<const bfloat16, 3> V, Tensor<const float, 2> rates, Tensor<const float, 3> A0,
                           Tensor<const float, 3> B0, Tensor<const float, 3> C0, Tensor<bfloat16, 3> O) {
      num_warps(c.warps);
      auto n = program_id(0);
      Tile A = A0.load({n, 0, 0}, {c.D, c.E}), B = B0.load({n, 0, 0}, {c.D, c.E}), C = C0.load({n, 0, 0}, {c.E, c.D});
      auto b16 = [](Expr x) { return cast(x, bf16); };
      for (auto t : range(0, Q.dim(1), c.T)) {
        auto q = Q.load({n, t, 0}, {c.T, c.D}), k = K.load({n, t, 0}, {c.T, c.D}), v = V.load({n, t, 0}, {c.T, c.D});
        auto a = b16(A), b = b16(B), w = b16(C);
        O.store({n, t, 0}, b16(dot(b16(silu(dot(q, a)) * dot(q, b)), w)));
        auto x = dot(k, a), y = dot(k, b), gate = sigmoid(x);
        auto rate = rates.load({n, t}, {c.T}).col();
        auto back = dot(v, trans(w));  // gradient of the hidden row
        auto dx = back * y * gate * (1 + x * (1 - gate)), dy = back * x * gate;
        A = dot(trans(k), b16(dx * rate), A), B = dot(trans(k), b16(dy * rate), B);
        C = dot(trans(b16(x * gate * y * rate)), v, C);
      }
    }).grid([](const LactCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r5("lact", [](Env& e) {
  LactCfg c;
  if (!e.big) c = {16, 16, 32, 1};
  c.T = e.field("T", c.T), c.warps = e.field("warps", c.warps), c.E = e.field("E", c.E);
  const int N = e.big ? 128 : 2, S = e.big ? 4096 : 40, D = c.D, E = c.E;
  const size_t n = size_t(N) * S * D;
  auto q = random<bfloat16>(e, n, -.5, .5), k = random<bfloat16>(e, n, -.5, .5), v = random<bfloat16>(e, n);
  auto rates = random<float>(e, N * S, 0, .1);
  auto A = random<float>(e, N * D * E), B = random<float>(e, N * D * E), C = random<float>(e, N * E * D, -.5, .5);
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 2e-9 * 9 * N * S * double(D) * E;
  j.add(lact, c, q.view(N, S, D), k.view(N, S, D), v.view(N, S, D), rates.view(N, S), A.view(N, D, E), B.view(N, D, E),
        C.view(N, E, D), o.view(N, S, D));
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < N; ++b) {
      std::vector<double> a(D * E), g(D * E), w(E * D);
      for (int i = 0; i < D * E; ++i)
        a[i] = A[size_t(b) * D * E + i], g[i] = B[size_t(b) * D * E + i], w[i] = C[size_t(b) * D * E + i];
      for (int t0 = 0; t0 < S; t0 += c.T) {
        auto da = a, dg = g, dw = w;
        for (int t = t0; t < std::min(S, t0 + c.T); ++t) {
          const size_t at = (size_t(b) * S + t) * D;
          auto hidden = [&](const auto& row, std::vector<double>& x, std::vector<double>& y) {
            x.assign(E, 0), y.assign(E, 0);
            for (int d = 0; d < D; ++d)
              for (int h = 0; h < E; ++h) x[h] += row[at + d] * a[d * E + h], y[h] += row[at + d] * g[d * E + h];
          };
          std::vector<double> x, y;
          hidden(q, x, y);
          for (int h = 0; h < E; ++h)
            for (int d = 0; d < D; ++d) want[at + d] += x[h] / (1 + std::exp(-x[h])) * y[h] * w[h * D + d];
          hidden(k, x, y);
          const double rate = rates[size_t(b) * S + t];
          for (int h = 0; h < E; ++h) {
            const double s = 1 / (1 + std::exp(-x[h]));
            double back = 0;
            for (int d = 0; d < D; ++d) back += v[at + d] * w[h * D + d];
            for (int d = 0; d < D; ++d) {
              da[d * E + h] += rate * k[at + d] * back * y[h] * s * (1 + x[h] * (1 - s));
              dg[d * E + h] += rate * k[at + d] * back * x[h] * s;
              dw[h * D + d] += rate * x[h] * s * y[h] * v[at + d];
            }
          }
        }
        a = da, g = dg, w = dw;
      }
    }
    return agree(o.now(), want, 3e-2, 3e-2);
  };
  return j;
});

}  // namespace triples
}  // namespace users
