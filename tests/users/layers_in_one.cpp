// layers_in_one.cpp - layers of networks that others launch several kernels for: a whole MLP, gradients of weights
// and bias, of gated inputs, attention that gives its probabilities, attention across channels, and linear attention.
#include "tests/users/use.h"
namespace {
using namespace users;
constexpr float kLog2e = 1.44269504f;

// A. a whole MLP: silu(X W1) W2, hidden columns in blocks
struct MlpCfg {
  int BM = 128, BH = 64, BK = 64, E = 128, warps = 8, stages = 0;
};
auto mlp = kernel("user_mlp_whole", [](const MlpCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W1,
                                       Tensor<const bfloat16, 2> W2, Tensor<bfloat16, 2> Y) {
             // X [M, D], W1 [H, D], W2 [H, E]
             num_warps(c.warps);
             auto m = program_id(0) * c.BM;
             Tile y = zeros({c.BM, c.E}, f32);
             for (auto h : range(0, W1.dim(0), c.BH, {.stages = c.stages})) {
               Tile a = zeros({c.BM, c.BH}, f32);
               for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
                 a = dot(X.load({m, k}, {c.BM, c.BK}), trans(W1.load({h, k}, {c.BH, c.BK})), a);
               y = dot(cast(a / (1.f + exp(-a)), bf16), W2.load({h, 0}, {c.BH, c.E}), y);
             }
             Y.store({m, 0}, cast(y, bf16));
           }).grid([](const MlpCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Job mlp_job(Env& e) {
  const MlpCfg c{e.field("BM", 128),  e.field("BH", 64),   e.field("BK", 64), 128,
                 e.field("warps", 8), e.field("stages", 0)};
  const int M = e.big ? 16896 : 141, D = e.big ? 512 : 72, H = e.big ? 2048 : 136, E = 128;
  auto x = random<bfloat16>(e, size_t(M) * D), w1 = random<bfloat16>(e, size_t(H) * D, -.2, .2),
       w2 = random<bfloat16>(e, size_t(H) * E, -.2, .2);
  auto y = constant<bfloat16>(e, size_t(M) * E, NAN);
  Job j;
  j.gflop = 2e-9 * M * H * (D + E);
  j.add(mlp, c, x.view(M, D), w1.view(H, D), w2.view(H, E), y.view(M, E));
  j.check = [=] {
    auto a = product(
        M, H, D, matrix(x, D), [&](int k, int n) { return w1[size_t(n) * D + k]; },
        [](double s, int, int) { return s / (1 + std::exp(-s)); });
    auto want = product(
        M, E, H, [&](int i, int k) { return a[size_t(i) * H + k]; }, matrix(w2, E));
    return agree(y.now(), want, 2e-2, 2e-2);
  };
  return j;
}
Register r1("mlp_whole", mlp_job);

// B. gradient of weights and bias in one pass
struct WgradCfg {
  int BN = 128, BK = 128, BM = 64, warps = 8, stages = 0;
};
auto wgrad = kernel("user_wgrad_bias", [](const WgradCfg& c, Tensor<const half, 2> dY, Tensor<const half, 2> X,
                                          Tensor<float, 2> dW, Tensor<float, 1> db) {
               num_warps(c.warps);
               auto n = program_id(1) * c.BN, k = program_id(0) * c.BK;
               Tile acc = zeros({c.BN, c.BK}, f32), b = zeros({1, c.BN}, f32);
               for (auto m : range(0, X.dim(0), c.BM, {.stages = c.stages})) {
                 auto g = dY.load({m, n}, {c.BM, c.BN});
                 acc = dot(trans(g), X.load({m, k}, {c.BM, c.BK}), acc);
                 b = b + sum(cast(g, f32), axis(0));
               }
               dW.store({n, k}, acc);
               if_(k == 0, [&] { db.store({n}, squeeze(b, 0)); });
             }).grid([](const WgradCfg& c, const auto& dy, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BK), cdiv(dy.shape[1], c.BN)};
});
Job wgrad_job(Env& e) {
  const WgradCfg c{e.field("BN", 128), e.field("BK", 128), e.field("BM", 64), e.field("warps", 8),
                   e.field("stages", 0)};
  const int M = e.big ? 8192 : 200, N = e.big ? 4096 : 136, K = e.big ? 2048 : 72;
  auto g = random<half>(e, size_t(M) * N), x = random<half>(e, size_t(M) * K);
  auto dw = constant<float>(e, size_t(N) * K, NAN), db = constant<float>(e, N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(wgrad, c, g.view(M, N), x.view(M, K), dw.view(N, K), db.view(N));
  j.check = [=]() -> std::string {
    auto want = product(
        N, K, M, [&](int n, int m) { return g[size_t(m) * N + n]; }, matrix(x, K));
    std::vector<double> wb(N);
    for (int n = 0; n < N; ++n)
      for (int m = 0; m < M; ++m) wb[n] += g[size_t(m) * N + n];
    auto a = agree(dw.now(), want, 2e-3, 1e-3), b = agree(db.now(), wb, 2e-3, 1e-3);
    return !a.empty() ? "dW " + a : !b.empty() ? "db " + b : "";
  };
  return j;
}
Register r2("wgrad_bias", wgrad_job);

// C. gradient of a gated MLP's input: both operands computed from three loads
struct GateCfg {
  int BM = 128, BN = 128, BK = 64, warps = 8, stages = 0;
};
auto gate_dx = kernel("user_gate_dx", [](const GateCfg& c, Tensor<const bfloat16, 2> G, Tensor<const bfloat16, 2> U,
                                         Tensor<const bfloat16, 2> dH, Tensor<const bfloat16, 2> Wg,
                                         Tensor<const bfloat16, 2> Wu, Tensor<bfloat16, 2> dX) {
                 // G, U, dH [M, F]; Wg, Wu [F, D]
                 num_warps(c.warps);
                 auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                 Tile acc = zeros({c.BM, c.BN}, f32);
                 for (auto k : range(0, G.dim(1), c.BK, {.stages = c.stages})) {
                   auto g = cast(G.load({m, k}, {c.BM, c.BK}), f32), u = cast(U.load({m, k}, {c.BM, c.BK}), f32),
                        d = cast(dH.load({m, k}, {c.BM, c.BK}), f32);
                   auto s = 1.f / (1.f + exp(-g));
                   acc = dot(cast(d * u * s * (1.f + g * (1.f - s)), bf16), Wg.load({k, n}, {c.BK, c.BN}), acc);
                   acc = dot(cast(d * g * s, bf16), Wu.load({k, n}, {c.BK, c.BN}), acc);
                 }
                 dX.store({m, n}, cast(acc, bf16));
               }).grid([](const GateCfg& c, const auto& g, const auto&, const auto&, const auto& w, const auto&...) {
  return Grid{cdiv(w.shape[1], c.BN), cdiv(g.shape[0], c.BM)};
});
Job gate_job(Env& e) {
  const GateCfg c{e.field("BM", 128), e.field("BN", 128), e.field("BK", 64), e.field("warps", 8), e.field("stages", 0)};
  const int M = e.big ? 4096 : 141, F = e.big ? 4096 : 136, D = e.big ? 2048 : 72;
  auto g = random<bfloat16>(e, size_t(M) * F), u = random<bfloat16>(e, size_t(M) * F),
       d = random<bfloat16>(e, size_t(M) * F);
  auto wg = random<bfloat16>(e, size_t(F) * D, -.2, .2), wu = random<bfloat16>(e, size_t(F) * D, -.2, .2);
  auto dx = constant<bfloat16>(e, size_t(M) * D, NAN);
  Job j;
  j.gflop = 4e-9 * M * F * D;
  j.add(gate_dx, c, g.view(M, F), u.view(M, F), d.view(M, F), wg.view(F, D), wu.view(F, D), dx.view(M, D));
  j.check = [=] {
    auto s = [&](size_t i) { return 1 / (1 + std::exp(-g[i])); };
    auto a = product(
        M, D, F,
        [&](int m, int k) {
          const size_t i = size_t(m) * F + k;
          return d[i] * u[i] * s(i) * (1 + g[i] * (1 - s(i)));
        },
        matrix(wg, D));
    const auto b = product(
        M, D, F,
        [&](int m, int k) {
          const size_t i = size_t(m) * F + k;
          return d[i] * g[i] * s(i);
        },
        matrix(wu, D));
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return agree(dx.now(), a, 3e-2, 2e-2);
  };
  return j;
}
Register r3("gate_dx", gate_job);

// D. attention that also gives its probabilities: a loop for the sums, one for the results
struct TwoCfg {
  int D = 64, BM = 128, BN = 64, warps = 8, stages = 0;
};
auto two_pass = kernel("user_two_pass", [](const TwoCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                           Tensor<const half, 3> V, Tensor<half, 3> O, Tensor<half, 3> P, F32 scale) {
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, h = program_id(1);
                  auto q = Q.load({h, m, 0}, {c.BM, c.D});
                  Tile mx = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32);
                  auto scores = [&](I32 n) -> Tile {
                    Tile s = dot(q, trans(K.load({h, n, 0}, {c.BN, c.D}))) * (scale * kLog2e);
                    return where((n + arange(0, c.BN)).row() < K.dim(1), s, -INFINITY);
                  };
                  for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
                    Tile s = scores(n);
                    Tile m2 = max(mx, max(s, axis(1)));
                    l = l * exp2(mx - m2) + sum(exp2(s - m2), axis(1));
                    mx = m2;
                  }
                  Tile o = zeros({c.BM, c.D}, f32);
                  auto rest = mx + log2(l);
                  for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
                    auto p = cast(exp2(scores(n) - rest), f16);
                    P.store({h, m, n}, p);
                    o = dot(p, V.load({h, n, 0}, {c.BN, c.D}), o);
                  }
                  O.store({h, m, 0}, cast(o, f16));
                }).grid([](const TwoCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
Job two_job(Env& e) {
  const TwoCfg c{e.field("D", 64), e.field("BM", 128), e.field("BN", 64), e.field("warps", 8), e.field("stages", 0)};
  const int H = e.big ? 16 : 2, N = e.big ? 4096 : 139, D = c.D;
  const float scale = 1 / std::sqrt(float(D));
  auto q = random<half>(e, size_t(H) * N * D), k = random<half>(e, size_t(H) * N * D),
       v = random<half>(e, size_t(H) * N * D);
  auto o = constant<half>(e, size_t(H) * N * D, NAN), p = constant<half>(e, size_t(H) * N * N, NAN);
  Job j;
  j.gflop = 6e-9 * H * D * double(N) * N;
  j.add(two_pass, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), o.view(H, N, D), p.view(H, N, N), scale);
  j.check = [=]() -> std::string {
    std::vector<double> wp(size_t(H) * N * N), wo(size_t(H) * N * D);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < N; ++i) {
        const size_t r = size_t(h) * N + i;
        double sum = 0;
        for (int n = 0; n < N; ++n) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[r * D + d] * k[(size_t(h) * N + n) * D + d];
          sum += wp[r * N + n] = std::exp(s * scale);
        }
        for (int n = 0; n < N; ++n) {
          wp[r * N + n] /= sum;
          for (int d = 0; d < D; ++d) wo[r * D + d] += wp[r * N + n] * v[(size_t(h) * N + n) * D + d];
        }
      }
    auto a = agree(o.now(), wo, 5e-3, 5e-3), b = agree(p.now(), wp, 1e-4, 5e-3);
    return !a.empty() ? "O " + a : !b.empty() ? "P " + b : "";
  };
  return j;
}
Register r4("two_pass", two_job);

// G. attention across channels (XCiT): a loop over tokens makes [D, D], a second one applies it
struct XcCfg {
  int D = 64, BN = 64, warps = 4, stages = 0;
};
auto cross_cov = kernel("user_cross_cov", [](const XcCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                             Tensor<const bfloat16, 3> V, Tensor<bfloat16, 3> O, F32 temperature) {
                   num_warps(c.warps);  // [heads, tokens, D]
                   auto h = program_id(0);
                   Tile s = zeros({c.D, c.D}, f32), qq = zeros({1, c.D}, f32), kk = zeros({1, c.D}, f32);
                   for (auto n : range(0, Q.dim(1), c.BN, {.stages = c.stages})) {
                     auto q = Q.load({h, n, 0}, {c.BN, c.D}), k = K.load({h, n, 0}, {c.BN, c.D});
                     s = dot(trans(q), k, s);
                     qq = qq + sum(cast(q, f32) * cast(q, f32), axis(0)),
                     kk = kk + sum(cast(k, f32) * cast(k, f32), axis(0));
                   }
                   auto x = s * (trans(rsqrt(qq)) * rsqrt(kk)) * temperature;
                   auto p = exp(x - max(x, axis(1)));
                   auto a = cast(p / sum(p, axis(1)), bf16);  // [q channel, k channel]
                   for (auto n : range(0, Q.dim(1), c.BN, {.stages = c.stages}))
                     O.store({h, n, 0}, cast(dot(V.load({h, n, 0}, {c.BN, c.D}), trans(a)), bf16));
                 }).grid([](const XcCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Job xc_job(Env& e) {
  const XcCfg c{e.field("D", 64), e.field("BN", 64), e.field("warps", 4), e.field("stages", 0)};
  const int H = e.big ? 1024 : 2, N = e.big ? 1024 : 139, D = c.D;
  auto q = random<bfloat16>(e, size_t(H) * N * D), k = random<bfloat16>(e, size_t(H) * N * D),
       v = random<bfloat16>(e, size_t(H) * N * D);
  auto o = constant<bfloat16>(e, size_t(H) * N * D, NAN);
  Job j;
  j.gflop = 4e-9 * H * N * D * D, j.mbytes = 8e-6 * H * N * D;
  j.add(cross_cov, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), o.view(H, N, D), 2.f);
  j.check = [=] {
    std::vector<double> want(size_t(H) * N * D);
    for (int h = 0; h < H; ++h) {
      std::vector<double> s(size_t(D) * D), qq(D), kk(D);
      for (int n = 0; n < N; ++n)
        for (int i = 0; i < D; ++i) {
          const size_t r = (size_t(h) * N + n) * D;
          qq[i] += q[r + i] * q[r + i];
          kk[i] += k[r + i] * k[r + i];
          for (int x = 0; x < D; ++x) s[size_t(i) * D + x] += q[r + i] * k[r + x];
        }
      for (int i = 0; i < D; ++i) {
        double sum = 0;
        for (int x = 0; x < D; ++x)
          sum += s[size_t(i) * D + x] = std::exp(2 * s[size_t(i) * D + x] / std::sqrt(qq[i] * kk[x]));
        for (int x = 0; x < D; ++x) s[size_t(i) * D + x] /= sum;
      }
      for (int n = 0; n < N; ++n)
        for (int i = 0; i < D; ++i)
          for (int x = 0; x < D; ++x)
            want[(size_t(h) * N + n) * D + i] += s[size_t(i) * D + x] * v[(size_t(h) * N + n) * D + x];
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register r5("cross_cov", xc_job);

// H. linear attention, not causal: sums in one loop, results in the next
auto lin_two = kernel("user_linear_two", [](const XcCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                            Tensor<const half, 3> V, Tensor<half, 3> O) {
                 num_warps(c.warps);
                 auto h = program_id(0);
                 auto phi = [](Tile x) -> Tile {
                   Tile y = cast(x, f32);
                   return where(y > 0.f, y + 1.f, exp(y));
                 };
                 Tile s = zeros({c.D, c.D}, f32), z = zeros({1, c.D}, f32);
                 for (auto n : range(0, Q.dim(1), c.BN, {.stages = c.stages})) {
                   Tile k = phi(K.load({h, n, 0}, {c.BN, c.D}));
                   k = where((n + arange(0, c.BN)).col() < Q.dim(1), k, 0.f);
                   s = dot(cast(trans(k), f16), V.load({h, n, 0}, {c.BN, c.D}), s);
                   z = z + sum(k, axis(0));
                 }
                 auto sh = cast(s, f16);
                 for (auto n : range(0, Q.dim(1), c.BN, {.stages = c.stages})) {
                   Tile q = phi(Q.load({h, n, 0}, {c.BN, c.D}));
                   O.store({h, n, 0}, cast(dot(cast(q, f16), sh) / sum(q * z, axis(1)), f16));
                 }
               }).grid([](const XcCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Job lin_job(Env& e) {
  const XcCfg c{e.field("D", 64), e.field("BN", 64), e.field("warps", 4), e.field("stages", 0)};
  const int H = e.big ? 1024 : 2, N = e.big ? 1024 : 139, D = c.D;
  auto q = random<half>(e, size_t(H) * N * D), k = random<half>(e, size_t(H) * N * D),
       v = random<half>(e, size_t(H) * N * D);
  auto o = constant<half>(e, size_t(H) * N * D, NAN);
  Job j;
  j.gflop = 4e-9 * H * N * D * D, j.mbytes = 8e-6 * H * N * D;
  j.add(lin_two, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), o.view(H, N, D));
  j.check = [=] {
    std::vector<double> want(size_t(H) * N * D);
    auto phi = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
    for (int h = 0; h < H; ++h) {
      std::vector<double> s(size_t(D) * D), z(D);
      for (int n = 0; n < N; ++n)
        for (int i = 0; i < D; ++i) {
          const size_t r = (size_t(h) * N + n) * D;
          z[i] += phi(k[r + i]);
          for (int x = 0; x < D; ++x) s[size_t(i) * D + x] += phi(k[r + i]) * v[r + x];
        }
      for (int n = 0; n < N; ++n) {
        const size_t r = (size_t(h) * N + n) * D;
        double den = 0;
        for (int i = 0; i < D; ++i) den += phi(q[r + i]) * z[i];
        for (int x = 0; x < D; ++x) {
          double y = 0;
          for (int i = 0; i < D; ++i) y += phi(q[r + i]) * s[size_t(i) * D + x];
          want[r + x] = y / den;
        }
      }
    }
    return agree(o.now(), want, 5e-3, 1e-2);
  };
  return j;
}
Register r6("linear_two", lin_job);
}  // namespace
