// odd_products.cpp - products of odd kinds: heads of 72 with a bias of low rank, split tf32, Hamilton's, blocks by
// lists; implicit steps.
#include "tests/users/use.h"
namespace users {
namespace odd_products {

constexpr float kLog2e = 1.4426950408889634f;

// --- attention with a bias of low rank (a second product into the scores) and heads of 72, ragged
struct LowBiasCfg {
  int BM = 128, BN = 64, D = 72, R = 16, stages = 2, warps = 8;
};
auto low_bias =
    kernel("user_low_bias", [](const LowBiasCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                               Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> U, Tensor<const bfloat16, 3> W,
                               Tensor<bfloat16, 3> O, F32 scale) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, h = program_id(1), T = Q.dim(1);
      auto q = Q.load({h, m, 0}, {c.BM, c.D}), u = U.load({h, m, 0}, {c.BM, c.R});
      Tile acc = zeros({c.BM, c.D}, f32), l = zeros({c.BM, 1}, f32), top = full({c.BM, 1}, -1e30f, f32);
      for (auto n : range(0, T, c.BN, {.stages = c.stages})) {
        auto s = dot(u, trans(W.load({h, n, 0}, {c.BN, c.R})), dot(q, trans(K.load({h, n, 0}, {c.BN, c.D}))) * scale) *
                 kLog2e;
        s = where((n + arange(0, c.BN)).row() < T, s, -INFINITY);
        auto next = max(top, max(s, axis(1)));
        auto p = exp2(s - next), a = exp2(top - next);
        l = l * a + sum(p, axis(1));
        top = next;
        acc = dot(cast(p, bf16), V.load({h, n, 0}, {c.BN, c.D}), acc * a);
      }
      O.store({h, m, 0}, cast(acc / l, bf16));
    }).grid([](const LowBiasCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r1("low_bias", [](Env& e) {
  LowBiasCfg c;
  if (!e.big) c = {32, 16, 40, 16, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages),
  c.warps = e.field("warps", c.warps);
  int H = e.big ? 128 : 2, T = e.big ? 2000 : 43, D = c.D, R = c.R;
  auto q = random<bfloat16>(e, size_t(H) * T * D), k = random<bfloat16>(e, q.n), v = random<bfloat16>(e, q.n),
       u = random<bfloat16>(e, size_t(H) * T * R), w = random<bfloat16>(e, u.n);
  auto o = constant<bfloat16>(e, q.n, NAN);
  Job j;
  j.gflop = 2e-9 * H * double(T) * T * (2 * D + R);
  j.add(low_bias, c, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), u.view(H, T, R), w.view(H, T, R),
        o.view(H, T, D), .118f);
  j.check = [=] {
    std::vector<double> want;
    for (int h = 0; h < H; ++h)
      for (int m = 0; m < T; ++m) {
        std::vector<double> o(D);
        double l = 0;
        for (int n = 0; n < T; ++n) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += .118 * q[(size_t(h) * T + m) * D + d] * k[(size_t(h) * T + n) * D + d];
          for (int d = 0; d < R; ++d) s += u[(size_t(h) * T + m) * R + d] * w[(size_t(h) * T + n) * R + d];
          l += s = std::exp(s);
          for (int d = 0; d < D; ++d) o[d] += s * v[(size_t(h) * T + n) * D + d];
        }
        for (int d = 0; d < D; ++d) want.push_back(o[d] / l);
      }
    return agree(o.now(), want, 8e-3, 1e-2);
  };
  return j;
});

// --- K-FAC: gradients between two small inverses, and the step of momentum, in one kernel per layer block
struct KfacCfg {
  int A = 128, BN = 128, warps = 8;
};
auto kfac = kernel("user_kfac", [](const KfacCfg& c, Tensor<const float, 3> G, Tensor<const float, 3> Ai,
                                   Tensor<const float, 3> Bi, Tensor<float, 3> M, Tensor<float, 3> W, F32 lr, F32 mu) {
              num_warps(c.warps);
              auto b = program_id(0);
              auto left = dot(Ai.load({b, 0, 0}, {c.A, c.A}), G.load({b, 0, 0}, {c.A, c.BN}), Prec::tf32x3);
              auto p = dot(left, Bi.load({b, 0, 0}, {c.BN, c.BN}), Prec::tf32x3);
              auto m = M.load({b, 0, 0}, {c.A, c.BN}) * mu + p;
              M.store({b, 0, 0}, m);
              W.store({b, 0, 0}, W.load({b, 0, 0}, {c.A, c.BN}) - lr * m);
            }).grid([](const KfacCfg&, const auto& g, const auto&...) { return Grid{g.shape[0]}; });
Register r2("kfac", [](Env& e) {
  KfacCfg c;
  if (!e.big) c = {32, 32, 4};
  c.warps = e.field("warps", c.warps);
  int L = e.big ? 512 : 2, A = c.A, B = c.BN, a0 = e.big ? 128 : 27, b0 = e.big ? 128 : 30;
  auto g = random<float>(e, size_t(L) * a0 * b0), ai = random<float>(e, size_t(L) * a0 * a0),
       bi = random<float>(e, size_t(L) * b0 * b0);
  auto m = random<float>(e, g.n), w = random<float>(e, g.n);
  (void)A, (void)B;
  Job j;
  j.inTurn = true;
  j.gflop = 2e-9 * L * (double(a0) * a0 * b0 + double(a0) * b0 * b0);
  j.add(kfac, c, g.view(L, a0, b0), ai.view(L, a0, a0), bi.view(L, b0, b0), m.view(L, a0, b0), w.view(L, a0, b0), .1f,
        .9f);
  j.check = [=] {
    std::vector<double> wm, ww;
    for (int l = 0; l < L; ++l) {
      auto left = product(a0, b0, a0, matrix(ai, a0, size_t(l) * a0 * a0), matrix(g, b0, size_t(l) * a0 * b0));
      auto p = product(
          a0, b0, b0, [&](int i, int k) { return left[i * b0 + k]; }, matrix(bi, b0, size_t(l) * b0 * b0));
      for (int i = 0; i < a0 * b0; ++i) {
        size_t at = size_t(l) * a0 * b0 + i;
        wm.push_back(.9 * m[at] + p[i]), ww.push_back(w[at] - .1 * wm.back());
      }
    }
    auto wrong = agree(m.now(), wm, 1e-4, 1e-4);
    return wrong.empty() ? agree(w.now(), ww, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- quaternion linear layer: sixteen products per step in four accumulators, Hamilton product
struct QuaternionCfg {
  int BM = 64, BN = 64, BK = 32, stages = 3, warps = 4;
};
auto quaternion =
    kernel("user_quaternion", [](const QuaternionCfg& c, Tensor<const half, 3> X, Tensor<const half, 3> W,
                                 Tensor<half, 3> Y) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      std::array<Tile, 4> acc;
      for (auto& a : acc) a = zeros({c.BM, c.BN}, f32);
      static const int part[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
      static const int sign[4][4] = {{1, -1, -1, -1}, {1, 1, -1, 1}, {1, 1, 1, -1}, {1, -1, 1, 1}};
      for (auto k : range(0, X.dim(2), c.BK, {.stages = c.stages})) {
        std::array<Tile, 4> x, w, neg;
        for (int i = 0; i < 4; ++i)
          x[i] = X.load({i, m, k}, {c.BM, c.BK}), neg[i] = -x[i], w[i] = trans(W.load({i, n, k}, {c.BN, c.BK}));
        for (int o = 0; o < 4; ++o)
          for (int i = 0; i < 4; ++i)  // y_o += sign x_i w_part
            acc[o] = dot(sign[o][i] > 0 ? x[i] : neg[i], w[part[o][i]], acc[o]);
      }
      for (int o = 0; o < 4; ++o) Y.store({o, m, n}, cast(acc[o], f16));
    }).grid([](const QuaternionCfg& c, const auto&, const auto&, const auto& y) {
      return Grid{cdiv(y.shape[1], c.BM), cdiv(y.shape[2], c.BN)};
    });
Register r3("quaternion", [](Env& e) {
  QuaternionCfg c;
  if (!e.big) c = {32, 16, 16, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  int M = e.big ? 2048 : 45, N = e.big ? 1024 : 24, K = e.big ? 1024 : 40;
  auto x = random<half>(e, size_t(4) * M * K), w = random<half>(e, size_t(4) * N * K);
  auto y = constant<half>(e, size_t(4) * M * N, NAN);
  Job j;
  j.gflop = 32e-9 * M * N * K;
  j.add(quaternion, c, x.view(4, M, K), w.view(4, N, K), y.view(4, M, N));
  j.check = [=] {
    std::vector<double> want;
    const int part[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
    const int sign[4][4] = {{1, -1, -1, -1}, {1, 1, -1, 1}, {1, 1, 1, -1}, {1, -1, 1, 1}};
    for (int o = 0; o < 4; ++o)
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) {
          double s = 0;
          for (int i = 0; i < 4; ++i)
            for (int k = 0; k < K; ++k)
              s += sign[o][i] * x[(size_t(i) * M + m) * K + k] * w[(size_t(part[o][i]) * N + n) * K + k];
          want.push_back(s);
        }
    return agree(y.now(), want, 1e-2, 4e-3);
  };
  return j;
});

// --- alternating directions, implicit: tridiagonal solves along rows by scans of 2 x 2 maps, a whole row in a tile
struct AdiCfg {
  int R = 4, N = 256, warps = 4;
};
auto adi = kernel("user_adi", [](const AdiCfg& c, Tensor<const float, 2> U, Tensor<float, 2> V, F32 a) {
             // (1 + 2a) x_i - a x_{i-1} - a x_{i+1} = u_i along rows; V is stored transposed for the next direction
             num_warps(c.warps);
             auto r = program_id(0) * c.R;
             auto u = U.load({r, 0}, {c.R, c.N});
             auto n = U.dim(1);
             auto i = arange(0, c.N).row();
             // c'_i = a / (b - a c'_{i-1}) as a Moebius map
             auto one = zeros({c.R, c.N}, f32) + 1.f;
             auto b = 1.f + 2.f * a;
             auto m = scan({zeros({c.R, c.N}, f32), zeros({c.R, c.N}, f32) + a, zeros({c.R, c.N}, f32) - a,
                            zeros({c.R, c.N}, f32) + b},
                           axis(1), [](Tile p, Tile q, Tile r_, Tile s, Tile p2, Tile q2, Tile r2, Tile s2) {
                             auto x = p2 * p + q2 * r_, y = p2 * q + q2 * s, z = r2 * p + s2 * r_, w = r2 * q + s2 * s;
                             auto k = 1.f / max(abs(w), abs(z));
                             return std::tuple(x * k, y * k, z * k, w * k);
                           });
             auto cp = m[1] / m[3];  // applied to c'_{-1} = 0
             auto before = where(i > 0, take(cp, max(broadcast_to(i, {c.R, c.N}) - 1, 0), 1), 0.f);
             auto den = 1.f / (b - a * before);
             // d_i = (u_i + a d_{i-1}) den, then x_i = d_i + c'_i x_{i+1} from the end
             auto d = scan({a * den * one, u * den}, axis(1),
                           [](Tile p, Tile q, Tile p2, Tile q2) { return std::tuple(p * p2, p2 * q + q2); });
             auto last = i == n - 1, inside = i < n;
             auto x = scan({where(last | ~inside, 0.f, cp), where(inside, d[1], 0.f)}, axis(1),
                           [](Tile p, Tile q, Tile p2, Tile q2) { return std::tuple(p * p2, p2 * q + q2); },
                           {.reverse = true});
             V.store({0, r}, trans(x[1]));
           }).grid([](const AdiCfg& c, const auto& u, const auto&, float) { return Grid{cdiv(u.shape[0], c.R)}; });
Register r4("adi", [](Env& e) {
  AdiCfg c;
  if (!e.big)
    c = {4, 64, 2};
  else
    c = {8, 1024, 8};
  c.R = e.field("R", c.R), c.warps = e.field("warps", c.warps);
  int H = e.big ? 4096 : 9, W = e.big ? 1024 : 50;
  auto u = random<float>(e, size_t(H) * W), v = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 8e-6 * H * W;
  j.add(adi, c, u.view(H, W), v.view(W, H), .4f);
  j.check = [=] {
    std::vector<double> want(u.n);
    double a = .4f, b = 1 + 2 * a;
    for (int h = 0; h < H; ++h) {
      std::vector<double> cp(W), d(W);
      for (int i = 0; i < W; ++i) {
        double den = b - (i ? a * cp[i - 1] : 0);
        cp[i] = a / den, d[i] = (u[size_t(h) * W + i] + (i ? a * d[i - 1] : 0)) / den;
      }
      for (int i = W - 2; i >= 0; --i) d[i] += cp[i] * d[i + 1];
      for (int i = 0; i < W; ++i) want[size_t(i) * H + h] = d[i];
    }
    return agree(v.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace odd_products
}  // namespace users
