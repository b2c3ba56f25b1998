// beside_triton_windows.cpp - neighbourhoods of pixels, keys normed and rotated in the loop, sigmoid attention backward
// in one pass, delta rule with a decay per channel: states of chunks, and a step with states in bf16
#include "tests/users/use.h"
namespace users {
namespace beside_triton_windows {

constexpr float kLog2e = 1.4426950408889634f;

// --- NATTEN, 2D: every pixel looks at the W x W pixels around it, the window moved into the picture; [B, Y, X, heads,
// D]
struct NattenCfg {
  int QY = 8, QX = 8, KY = 4, W = 13, D = 64, stages = 2, warps = 4;
};
auto natten =
    kernel("user_natten", [](const NattenCfg& c, Tensor<const half, 5> Q, Tensor<const half, 5> K,
                             Tensor<const half, 5> V, Tensor<half, 5> O, F32 scale) {
      if (c.warps) num_warps(c.warps);
      const int rows = c.QY * c.QX, KX = c.QX + c.W - 1, keys = c.KY * KX;
      auto height = Q.dim(1), width = Q.dim(2);
      auto tiles = cdiv(width, c.QX);
      auto y0 = program_id(0) / tiles * c.QY, x0 = program_id(0) % tiles * c.QX, h = program_id(1), b = program_id(2);
      auto first = [&](const Tile& at, const Tile& size) { return clamp(at - c.W / 2, 0, size - c.W); };
      auto q = reshape(Q.load({b, y0, x0, h, 0}, {c.QY, c.QX, 1, c.D}), {rows, c.D});
      auto y = first(y0 + arange(0, rows) / c.QX, height).col(), x = first(x0 + arange(0, rows) % c.QX, width).col();
      auto kx0 = first(x0, width);
      auto kx = (kx0 + arange(0, keys) % KX).row();
      auto sees = (kx >= x) & (kx < x + c.W);
      Tile m = full({rows, 1}, -1e30f, f32), l = zeros({rows, 1}, f32), acc = zeros({rows, c.D}, f32);
      for (auto n : range(first(y0, height), first(y0 + (c.QY - 1), height) + c.W, c.KY, {.stages = c.stages})) {
        auto k = reshape(K.load({b, n, kx0, h, 0}, {c.KY, KX, 1, c.D}), {keys, c.D}),
             v = reshape(V.load({b, n, kx0, h, 0}, {c.KY, KX, 1, c.D}), {keys, c.D});
        auto ky = (n + arange(0, keys) / KX).row();
        auto s = where(sees & (ky >= y) & (ky < y + c.W), dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto alpha = exp2(m - m2), p = exp2(s - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, f16), v, acc * alpha);
        m = m2;
      }
      O.store({b, y0, x0, h, 0}, reshape(cast(acc / l, f16), {c.QY, c.QX, 1, c.D}));
    }).grid([](const NattenCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.QY) * cdiv(q.shape[2], c.QX), q.shape[3], q.shape[0]};
    });
Register r1("natten", [](Env& e) {
  const int B = e.big ? 8 : 2, Y = e.big ? 112 : 19, X = e.big ? 112 : 23, H = e.big ? 8 : 2, D = e.big ? 64 : 32,
            W = e.big ? 13 : 5;
  const size_t all = size_t(B) * Y * X * H * D;
  auto q = random<half>(e, all, -2, 2), k = random<half>(e, all, -2, 2), v = random<half>(e, all);
  auto o = constant<half>(e, all, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * all * W * W;
  j.add(
      natten,
      NattenCfg{e.field("QY", 8), e.field("QX", 8), e.field("KY", 4), W, D, e.field("stages", 2), e.field("warps", 4)},
      q.view(B, Y, X, H, D), k.view(B, Y, X, H, D), v.view(B, Y, X, H, D), o.view(B, Y, X, H, D), scale);
  j.check = [=] {
    std::vector<double> want(all);
    auto at = [=](int b, int y, int x, int h) { return (((size_t(b) * Y + y) * X + x) * H + h) * D; };
    for (int b = 0; b < B; ++b)
      for (int y = 0; y < Y; ++y)
        for (int x = 0; x < X; ++x)
          for (int h = 0; h < H; ++h) {
            const size_t r = at(b, y, x, h);
            const int fy = std::clamp(y - W / 2, 0, Y - W), fx = std::clamp(x - W / 2, 0, X - W);
            double total = 0;
            for (int i = fy; i < fy + W; ++i)
              for (int n = fx; n < fx + W; ++n) {
                const size_t z = at(b, i, n, h);
                double s = 0;
                for (int d = 0; d < D; ++d) s += q[r + d] * k[z + d];
                total += s = std::exp(s * scale);
                for (int d = 0; d < D; ++d) want[r + d] += s * v[z + d];
              }
            for (int d = 0; d < D; ++d) want[r + d] /= total;
          }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- causal attention that norms (RMS, with weights) and rotates queries and keys while it reads them; [tokens, heads,
// D]
struct NormRopeCfg {
  int BM = 128, BN = 64, D = 128, G = 4, stages = 2, warps = 8;
};
auto norm_rope =
    kernel("user_norm_rope", [](const NormRopeCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                Tensor<const bfloat16, 3> V, Tensor<const float, 1> wq, Tensor<const float, 1> wk,
                                Tensor<const float, 2> co, Tensor<const float, 2> si, Tensor<bfloat16, 3> O,
                                F32 scale) {
      if (c.warps) num_warps(c.warps);
      const int half_ = c.D / 2;
      auto t = (num_programs(0) - 1 - program_id(0)) * c.BM, h = program_id(1), hk = h / c.G;
      auto ready = [&](const auto& X, const auto& w, const Tile& at, const Tile& head, int rows, Tile& a, Tile& b) {
        auto x = cast(squeeze(X.load({at, head, 0}, {rows, 1, half_}), 1), f32),
             y = cast(squeeze(X.load({at, head, half_}, {rows, 1, half_}), 1), f32);
        auto r = rsqrt((sum(x * x, axis(1)) + sum(y * y, axis(1))) / float(c.D) + 1e-6f);
        auto x1 = x * r * w.load({0}, {half_}).row(), y1 = y * r * w.load({half_}, {half_}).row();
        auto cs = co.load({at, 0}, {rows, half_}), sn = si.load({at, 0}, {rows, half_});
        a = cast(x1 * cs - y1 * sn, bf16), b = cast(x1 * sn + y1 * cs, bf16);
      };
      Tile q1, q2;
      ready(Q, wq, t, h, c.BM, q1, q2);
      auto query = (t + arange(0, c.BM)).col();
      Tile m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, min(t + c.BM, K.dim(0)), c.BN, {.stages = c.stages})) {
        Tile k1, k2;
        ready(K, wk, n, hk, c.BN, k1, k2);
        auto v = squeeze(V.load({n, hk, 0}, {c.BN, 1, c.D}), 1);
        auto s = dot(q2, trans(k2), dot(q1, trans(k1))) * (scale * kLog2e);
        s = where((n + arange(0, c.BN)).row() <= query, s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto alpha = exp2(m - m2), p = exp2(s - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
      }
      O.store({t, h, 0}, expand_dims(cast(acc / l, bf16), 1));
    }).grid([](const NormRopeCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[0], c.BM), q.shape[1]};
    });
Register r2("norm_rope", [](Env& e) {
  const int T = e.big ? 4096 : 149, H = e.big ? 32 : 4, G = e.big ? 4 : 2, HK = H / G, D = e.big ? 128 : 64;
  auto q = random<bfloat16>(e, size_t(T) * H * D, -3, 3), k = random<bfloat16>(e, size_t(T) * HK * D, -3, 3),
       v = random<bfloat16>(e, size_t(T) * HK * D);
  auto wq = random<float>(e, D, .5, 1.5), wk = random<float>(e, D, .5, 1.5);
  auto angle = [=](size_t i) { return double(i / (D / 2)) * std::pow(10000., -double(i % (D / 2)) / (D / 2)); };
  auto co = filled<float>(e, size_t(T) * D / 2, [=](size_t i) { return float(std::cos(angle(i))); }),
       si = filled<float>(e, size_t(T) * D / 2, [=](size_t i) { return float(std::sin(angle(i))); });
  auto o = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * H * D * double(T) * T;
  j.add(norm_rope,
        NormRopeCfg{e.field("BM", e.big ? 128 : 64), e.field("BN", e.big ? 64 : 32), D, G, e.field("stages", 2),
                    e.field("warps", e.big ? 8 : 4)},
        q.view(T, H, D), k.view(T, HK, D), v.view(T, HK, D), wq.view(D), wk.view(D), co.view(T, D / 2),
        si.view(T, D / 2), o.view(T, H, D), scale);
  j.check = [=] {
    auto ready = [&](const auto& x, const auto& w, int heads) {
      std::vector<double> y(size_t(T) * heads * D);
      for (int r = 0; r < T * heads; ++r) {
        double sum = 0;
        for (int d = 0; d < D; ++d) sum += x[size_t(r) * D + d] * x[size_t(r) * D + d];
        const double f = 1 / std::sqrt(sum / D + 1e-6);
        for (int d = 0; d < D / 2; ++d) {
          const double a = x[size_t(r) * D + d] * f * w[d], b = x[size_t(r) * D + d + D / 2] * f * w[d + D / 2];
          const double cs = co[size_t(r / heads) * D / 2 + d], sn = si[size_t(r / heads) * D / 2 + d];
          y[size_t(r) * D + d] = a * cs - b * sn, y[size_t(r) * D + d + D / 2] = a * sn + b * cs;
        }
      }
      return y;
    };
    auto a = ready(q, wq, H), b = ready(k, wk, HK);
    std::vector<double> want(size_t(T) * H * D);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h) {
        const size_t r = (size_t(t) * H + h) * D;
        double total = 0;
        for (int n = 0; n <= t; ++n) {
          const size_t z = (size_t(n) * HK + h / G) * D;
          double s = 0;
          for (int d = 0; d < D; ++d) s += a[r + d] * b[z + d];
          total += s = std::exp(s * scale);
          for (int d = 0; d < D; ++d) want[r + d] += s * v[z + d];
        }
        for (int d = 0; d < D; ++d) want[r + d] /= total;
      }
    return agree(o.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- sigmoid attention, backward in one pass: a program has keys, gradients of queries are added where they lie
struct SigCfg {
  int BM = 64, BN = 128, D = 64, stages = 2, warps = 8;
};
auto sigmoid_bwd =
    kernel("user_sigmoid_bwd", [](const SigCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                  Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> dO, Tensor<float, 3> dQ,
                                  Tensor<bfloat16, 3> dK, Tensor<bfloat16, 3> dV, F32 scale, F32 bias) {
      if (c.warps) num_warps(c.warps);
      auto n = program_id(0) * c.BN, h = program_id(1);
      auto k = K.load({h, n, 0}, {c.BN, c.D}), v = V.load({h, n, 0}, {c.BN, c.D});
      Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
      for (auto m : range(0, Q.dim(1), c.BM, {.stages = c.stages})) {
        auto q = Q.load({h, m, 0}, {c.BM, c.D}), g = dO.load({h, m, 0}, {c.BM, c.D});
        auto s = dot(k, trans(q)) * scale + bias;
        auto p = 1.f / (1.f + exp2(s * -kLog2e));
        dv = dot(cast(p, bf16), g, dv);
        auto ds = cast(dot(v, trans(g)) * p * (1.f - p), bf16);
        dk = dot(ds, q, dk);
        dQ.atomic_add({h, m, 0}, dot(trans(ds), k) * scale);
      }
      dK.store({h, n, 0}, cast(dk * scale, bf16));
      dV.store({h, n, 0}, cast(dv, bf16));
    }).grid([](const SigCfg& c, const auto&, const auto& k, const auto&...) {
      return Grid{cdiv(k.shape[1], c.BN), k.shape[0]};
    });
Register r3("sigmoid_bwd", [](Env& e) {
  const int H = e.big ? 16 : 2, T = e.big ? 4096 : 151, D = e.big ? 64 : 32;
  const size_t all = size_t(H) * T * D;
  auto q = random<bfloat16>(e, all, -2, 2), k = random<bfloat16>(e, all, -2, 2), v = random<bfloat16>(e, all),
       g = random<bfloat16>(e, all);
  auto dq = constant<float>(e, all, 0);
  auto dk = constant<bfloat16>(e, all, NAN), dv = constant<bfloat16>(e, all, NAN);
  const float scale = 1 / std::sqrt(float(D)), bias = -std::log(float(T)) / 2;
  Job j;
  j.gflop = 10e-9 * H * D * double(T) * T;
  j.add(sigmoid_bwd,
        SigCfg{e.field("BM", 64), e.field("BN", e.big ? 128 : 64), D, e.field("stages", 2),
               e.field("warps", e.big ? 8 : 4)},
        q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), g.view(H, T, D), dq.view(H, T, D), dk.view(H, T, D),
        dv.view(H, T, D), scale, bias);
  j.check = [=]() -> std::string {
    std::vector<double> wq(all), wk(all), wv(all);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < T; ++i)
        for (int n = 0; n < T; ++n) {
          const size_t a = (size_t(h) * T + i) * D, b = (size_t(h) * T + n) * D;
          double s = 0, dp = 0;
          for (int d = 0; d < D; ++d) s += q[a + d] * k[b + d], dp += g[a + d] * v[b + d];
          const double p = 1 / (1 + std::exp(-(s * scale + bias))), ds = dp * p * (1 - p) * scale;
          for (int d = 0; d < D; ++d) wq[a + d] += ds * k[b + d], wk[b + d] += ds * q[a + d], wv[b + d] += p * g[a + d];
        }
    auto a = agree(dq.now(), wq, 3e-2, 1e-2), b = agree(dk.now(), wk, 3e-2, 1e-2), c = agree(dv.now(), wv, 3e-2, 1e-2);
    return !a.empty() ? "dq " + a : !b.empty() ? "dk " + b : c.empty() ? "" : "dv " + c;
  };
  return j;
});

// --- KDA, states of chunks: v' = u - w S; S = diag(exp(last)) S + (k exp(last - g))^T v'; g [T, D] sums in the chunk
struct KdaHCfg {
  int C = 64, D = 128, BV = 32, stages = 2, warps = 4;
};
auto kda_states = kernel("user_kda_states", [](const KdaHCfg& c, Tensor<const bfloat16, 3> K,
                                               Tensor<const bfloat16, 3> W, Tensor<const bfloat16, 3> U,
                                               Tensor<const float, 3> G, Tensor<bfloat16, 4> S, Tensor<bfloat16, 3> N) {
                    if (c.warps) num_warps(c.warps);
                    auto v0 = program_id(0) * c.BV, h = program_id(1), tokens = K.dim(1);
                    Tile state = zeros({c.D, c.BV}, f32);
                    for (auto n : range(0, S.dim(1), 1, {.stages = c.stages})) {
                      auto t = n * c.C, end = min(t + c.C, tokens) - 1;
                      auto low = cast(state, bf16);
                      S.store({h, n, 0, v0}, low);
                      auto w = W.load({h, t, 0}, {c.C, c.D}), k = K.load({h, t, 0}, {c.C, c.D});
                      auto u = cast(U.load({h, t, v0}, {c.C, c.BV}), f32);
                      auto g = G.load({h, t, 0}, {c.C, c.D}) * kLog2e, last = G.load({h, end, 0}, {c.D}) * kLog2e;
                      auto now = cast(u - dot(w, low), bf16);
                      N.store({h, t, v0}, now);
                      auto kd = cast(cast(k, f32) * exp2(last.row() - g), bf16);
                      state = dot(trans(kd), now, state * exp2(last.col()));
                    }
                  }).grid([](const KdaHCfg& c, const auto& k, const auto&...) {
  return Grid{c.D / c.BV, k.shape[0]};
});
Register r4("kda_states", [](Env& e) {
  const int H = e.big ? 64 : 3, T = e.big ? 4096 : 139, D = e.big ? 128 : 32, C = e.big ? 64 : 32,
            chunks = (T + C - 1) / C;
  const size_t all = size_t(H) * T * D;
  const double a = e.big ? .05 : .2;
  auto k = random<bfloat16>(e, all, -a, a), w = random<bfloat16>(e, all, -a, a), u = random<bfloat16>(e, all);
  std::vector<double> steps(e.big ? 1000000 : all);
  for (auto& x : steps) x = -.05 * e.uniform();
  std::vector<float> sums(e.big ? size_t(C) * D * 64 : all);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = float(steps[i] + (i / D % T % C ? double(sums[i - D]) : 0.));
  auto g = repeated<float>(e, all, sums);
  auto s = constant<bfloat16>(e, size_t(H) * chunks * D * D, NAN), now = constant<bfloat16>(e, all, NAN);
  Job j;
  j.add(kda_states, KdaHCfg{C, D, std::min(D, e.field("BV", 32)), e.field("stages", 2), e.field("warps", 4)},
        k.view(H, T, D), w.view(H, T, D), u.view(H, T, D), g.view(H, T, D), s.view(H, chunks, D, D), now.view(H, T, D));
  j.check = [=]() -> std::string {
    std::vector<double> ws(size_t(H) * chunks * D * D), wn(all);
    for (int h = 0; h < H; ++h) {
      std::vector<double> state(size_t(D) * D);
      for (int n = 0; n < chunks; ++n) {
        std::copy(state.begin(), state.end(), &ws[(size_t(h) * chunks + n) * D * D]);
        auto next = state;
        const int end = std::min(T, n * C + C) - 1;
        for (int d = 0; d < D; ++d)
          for (int v = 0; v < D; ++v) next[size_t(d) * D + v] *= std::exp(g[(size_t(h) * T + end) * D + d]);
        for (int t = n * C; t <= end; ++t)
          for (int v = 0; v < D; ++v) {
            const size_t r = (size_t(h) * T + t) * D;
            double x = u[r + v];
            for (int d = 0; d < D; ++d) x -= w[r + d] * state[size_t(d) * D + v];
            wn[r + v] = x;
            for (int d = 0; d < D; ++d)
              next[size_t(d) * D + v] += k[r + d] * std::exp(g[(size_t(h) * T + end) * D + d] - g[r + d]) * x;
          }
        state = next;
      }
    }
    auto a = agree(s.now(), ws, 1e-2, 1e-2), b = agree(now.now(), wn, 1e-2, 1e-2);
    return a.empty() ? b : a;
  };
  return j;
});

// --- KDA, a step: states [slots, heads, D, D] in bf16, changed in place; q, k normed here
struct KdaStepCfg {
  int D = 128, BV = 32, warps = 4;
};
auto kda_step =
    kernel("user_kda_step", [](const KdaStepCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                               Tensor<const bfloat16, 3> V, Tensor<const float, 3> G, Tensor<const float, 2> beta,
                               Tensor<const int, 1> slots, Tensor<bfloat16, 4> S, Tensor<bfloat16, 3> O, F32 scale) {
      if (c.warps) num_warps(c.warps);
      auto v0 = program_id(0) * c.BV, h = program_id(1), b = program_id(2);
      auto slot = to_scalar(slots.load({b}, {1}));
      return_if(slot < 0);
      auto unit = [&](const Tile& x) { return x * rsqrt(sum(x * x) + 1e-6f); };
      auto q = unit(cast(Q.load({b, h, 0}, {c.D}), f32)) * scale, k = unit(cast(K.load({b, h, 0}, {c.D}), f32));
      auto v = cast(V.load({b, h, v0}, {c.BV}), f32);
      auto s = cast(S.load({slot, h, 0, v0}, {c.D, c.BV}), f32) * exp(G.load({b, h, 0}, {c.D})).col();
      auto d = (v.row() - sum(s * k.col(), axis(0))) * to_scalar(beta.load({b, h}, {1}));
      s += k.col() * d;
      O.store({b, h, v0}, cast(squeeze(sum(s * q.col(), axis(0)), 0), bf16));
      S.store({slot, h, 0, v0}, cast(s, bf16));
    }).grid([](const KdaStepCfg& c, const auto& q, const auto&...) {
      return Grid{c.D / c.BV, q.shape[1], q.shape[0]};
    });
Register r5("kda_step", [](Env& e) {
  const int B = e.big ? 256 : 5, H = e.big ? 32 : 3, D = e.big ? 128 : 32, slots = B + 3;
  const size_t all = size_t(B) * H * D;
  auto q = random<bfloat16>(e, all), k = random<bfloat16>(e, all), v = random<bfloat16>(e, all);
  auto g = random<float>(e, all, -1, 0), beta = random<float>(e, size_t(B) * H, 0, 1);
  auto slot = filled<int>(e, B, [&](size_t i) { return !e.big && i == 2 ? -1 : int((i * 7 + 1) % slots); });
  auto s = random<bfloat16>(e, size_t(slots) * H * D * D), o = constant<bfloat16>(e, all, 0);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 4e-6 * B * H * D * D;
  if (!e.big) restore(e, j, s);
  j.add(kda_step, KdaStepCfg{D, e.field("BV", 32), e.field("warps", 4)}, q.view(B, H, D), k.view(B, H, D),
        v.view(B, H, D), g.view(B, H, D), beta.view(B, H), slot.view(B), s.view(slots, H, D, D), o.view(B, H, D),
        scale);
  j.check = [=]() -> std::string {
    std::vector<double> want(all), ws(s.n);
    for (size_t i = 0; i < s.n; ++i) ws[i] = s[i];
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H && slot.at(b) >= 0; ++h) {
        const size_t r = (size_t(b) * H + h) * D;
        double* S = &ws[(size_t(slot.at(b)) * H + h) * D * D];
        double qq = 1e-6, kk = 1e-6;
        for (int d = 0; d < D; ++d) qq += q[r + d] * q[r + d], kk += k[r + d] * k[r + d];
        qq = scale / std::sqrt(qq), kk = 1 / std::sqrt(kk);
        for (int x = 0; x < D; ++x) {
          double sum = v[r + x];
          for (int d = 0; d < D; ++d) S[d * D + x] *= std::exp(g[r + d]), sum -= S[d * D + x] * k[r + d] * kk;
          for (int d = 0; d < D; ++d)
            S[d * D + x] += k[r + d] * kk * sum * beta[size_t(b) * H + h], want[r + x] += S[d * D + x] * q[r + d] * qq;
        }
      }
    auto a = agree(o.now(), want, 1e-2, 1e-2), c = agree(s.now(), ws, 1e-2, 1e-2);
    return a.empty() ? c : a;
  };
  return j;
});
}  // namespace beside_triton_windows
}  // namespace users
