// swept_gates.cpp - linear attention, swept: retention, the gated delta rule inside of a chunk, the pass over states.
#include "tests/users/use.h"
namespace users {
namespace swept_gates {

constexpr float kLog2e = 1.4426950408889634f;

// --- 9. retention: o_i = scale sum_j<=i gamma^(i - j) (q_i k_j) v_j, a program walks over chunks, the state in
// registers
struct RetentionCfg {
  int C = 64, K = 128, BV = 64, warps = 4, stages = 0;
};
auto retention = kernel("user_linear_attention",
                        [](const RetentionCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                           Tensor<const bfloat16, 3> V, Tensor<const float, 1> log2_gamma, Tensor<bfloat16, 3> O,
                           F32 scale) {  // [H, T, K], [H, T, V]
                          if (c.warps) num_warps(c.warps);
                          auto v0 = program_id(0) * c.BV, h = program_id(1);
                          auto g = log2_gamma.load({h});
                          auto i = cast(arange(0, c.C), f32);
                          auto apart = i.col() - i.row();
                          auto decay = where(apart >= 0.f, exp2(apart * g), 0.f);
                          auto from_state = exp2((i + 1.f) * g).col() * scale,
                               to_state = exp2((c.C - 1.f - i) * g).col();
                          auto whole = exp2(g * float(c.C));
                          Tile state = zeros({c.K, c.BV}, f32);
                          for (auto t : range(0, Q.dim(1), c.C, {.stages = c.stages})) {
                            auto q = Q.load({h, t, 0}, {c.C, c.K}), k = K.load({h, t, 0}, {c.C, c.K});
                            auto v = V.load({h, t, v0}, {c.C, c.BV});
                            auto s = dot(q, trans(k)) * decay * scale;
                            auto o = dot(q, cast(state, bf16)) * from_state;
                            O.store({h, t, v0}, cast(dot(cast(s, bf16), v, o), bf16));
                            auto kd = cast(cast(k, f32) * to_state, bf16);
                            state = dot(trans(kd), v, state * whole);
                          }
                        })
                     .grid([](const RetentionCfg& c, const auto&, const auto&, const auto& v, const auto&...) {
                       return Grid{cdiv(v.shape[2], c.BV), v.shape[0]};
                     });
Job linear_attention(Env& e) {
  const RetentionCfg c{e.field("C", 64), e.field("K", 64), e.field("BV", 64), e.field("warps", 4),
                       e.field("stages", 0)};
  const int H = e.big ? 64 : 2, T = e.big ? 4096 : 2 * c.C + 13, V = e.big ? 256 : c.BV + 24, K = c.K;
  const float scale = 1 / std::sqrt(float(K));
  auto q = random<bfloat16>(e, size_t(H) * T * K), k = random<bfloat16>(e, size_t(H) * T * K),
       v = random<bfloat16>(e, size_t(H) * T * V);
  auto gamma = filled<float>(e, H, [&](size_t h) { return float(std::log2(1 - std::exp2(-5. - int(h % 8)))); });
  auto o = constant<bfloat16>(e, size_t(H) * T * V, NAN);
  Job j;
  j.gflop = 4e-9 * H * T * K * V, j.mbytes = 4e-6 * H * T * (K + V);
  j.add(retention, c, q.view(H, T, K), k.view(H, T, K), v.view(H, T, V), gamma.view(H), o.view(H, T, V), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * V);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t)
        for (int n = 0; n <= t; ++n) {
          const size_t r = size_t(h) * T + t, s = size_t(h) * T + n;
          double x = 0;
          for (int d = 0; d < K; ++d) x += q[r * K + d] * k[s * K + d];
          x *= scale * std::exp2(gamma[h] * (t - n));
          for (int d = 0; d < V; ++d) want[r * V + d] += x * v[s * V + d];
        }
    return agree(o.now(), want, 4e-2, 2e-2);
  };
  return j;
}
Register r9("linear_attention", linear_attention);

// --- 10. gated delta rule, inside of a chunk: A = tril(beta_i (k_i k_j) e^(G_i - G_j), -1), X = (I + A)^-1,
// W = X (beta e^G K), U = X (beta V)
struct DeltaCfg {
  int C = 64, K = 128, warps = 4, form = 0;  // form 0: the inverse by doubling, 1: row by row
};
auto delta =
    kernel("user_delta_chunk",
           [](const DeltaCfg& c, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V, Tensor<const float, 2> beta,
              Tensor<const float, 2> G, Tensor<bfloat16, 3> W, Tensor<bfloat16, 3> U) {  // [H, T, K], [H, T]
             if (c.warps) num_warps(c.warps);
             auto t = program_id(0) * c.C, h = program_id(1);
             auto k = K.load({h, t, 0}, {c.C, c.K}), v = V.load({h, t, 0}, {c.C, c.K});
             auto b = beta.load({h, t}, {c.C}).col(), g = G.load({h, t}, {c.C}) * kLog2e;
             auto i = arange(0, c.C).col(), j = arange(0, c.C).row();
             auto decay = exp2(where(i > j, g.col() - g.row(), -INFINITY));
             auto A = dot(k, trans(k)) * b * decay;
             auto eye = cast(i == j, f32);
             Tile X;
             if (c.form == 0) {
               X = eye - A;
               Tile power = dot(A, A, Prec::tf32);
               for (int n = 2; n < c.C; n *= 2) {
                 X = dot(X, power, X, Prec::tf32);
                 if (2 * n < c.C) power = dot(power, power, Prec::tf32);
               }
             } else {
               X = -A;
               for (auto r : range(1, c.C)) {  // row r of X knows the rows above
                 auto row = sum(where(i == r, -A, 0.f), axis(0));
                 row += sum(trans(row) * X, axis(0));
                 X = where(i == r, row, X);
               }
               X = X + eye;
             }
             auto x = cast(X, bf16);
             auto bk = cast(cast(k, f32) * (b * exp2(g).col()), bf16), bv = cast(cast(v, f32) * b, bf16);
             W.store({h, t, 0}, cast(dot(x, bk), bf16));
             U.store({h, t, 0}, cast(dot(x, bv), bf16));
           })
        .grid([](const DeltaCfg& c, const auto& k, const auto&...) {
          return Grid{cdiv(k.shape[1], c.C), k.shape[0]};
        });
Job delta_chunk(Env& e) {
  const DeltaCfg c{e.field("C", 64), e.field("K", 128), e.field("warps", 4), e.field("form", 0)};
  const int H = e.big ? 64 : 2, T = e.big ? 4096 : 2 * c.C + 11, K = c.K;
  const double size = std::sqrt(3. / K);  // keys of length 1
  auto k = random<bfloat16>(e, size_t(H) * T * K, -size, size), v = random<bfloat16>(e, size_t(H) * T * K);
  auto beta = random<float>(e, size_t(H) * T, .2, 1);
  double run = 0;
  auto G = filled<float>(e, size_t(H) * T, [&](size_t i) {
    run = int(i % T) % c.C == 0 ? 0 : run;
    return float(run -= .1 * e.uniform());
  });
  auto w = constant<bfloat16>(e, size_t(H) * T * K, NAN), u = constant<bfloat16>(e, size_t(H) * T * K, NAN);
  Job j;
  j.mbytes = 8e-6 * H * T * K;
  j.add(delta, c, k.view(H, T, K), v.view(H, T, K), beta.view(H, T), G.view(H, T), w.view(H, T, K), u.view(H, T, K));
  j.check = [=] {
    std::vector<double> ww(size_t(H) * T * K), wu = ww;
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {  // w_t = beta_t e^G_t k_t - sum_j A_tj w_j
        const size_t r = size_t(h) * T + t;
        for (int d = 0; d < K; ++d)
          ww[r * K + d] = beta[r] * std::exp(G[r]) * k[r * K + d], wu[r * K + d] = beta[r] * v[r * K + d];
        for (int n = t / c.C * c.C; n < t; ++n) {
          const size_t s = size_t(h) * T + n;
          double a = 0;
          for (int d = 0; d < K; ++d) a += k[r * K + d] * k[s * K + d];
          a *= beta[r] * std::exp(G[r] - G[s]);
          for (int d = 0; d < K; ++d) ww[r * K + d] -= a * ww[s * K + d], wu[r * K + d] -= a * wu[s * K + d];
        }
      }
    auto a = agree(w.now(), ww, 1e-2, 1e-2), b = agree(u.now(), wu, 2e-2, 2e-2);
    return !a.empty() ? "w " + a : !b.empty() ? "u " + b : "";
  };
  return j;
}
Register r10("delta_chunk", delta_chunk);

// --- 11. the pass over chunks: states before every chunk, h = h e^(G_last) + K^T (V e^(G_last - G))
struct StateCfg {
  int C = 64, BK = 64, BV = 64, warps = 4, stages = 0;
};
auto states = kernel("user_state_scan", [](const StateCfg& c, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                                           Tensor<const float, 2> G, Tensor<bfloat16, 4> H) {
                // [heads, T, K], [heads, T, V], G [heads, T]: sums of log gates inside of a chunk; H [heads, chunks, K,
                // V]
                if (c.warps) num_warps(c.warps);
                auto k0 = program_id(0) * c.BK, v0 = program_id(1) * c.BV, h = program_id(2), T = K.dim(1);
                Tile state = zeros({c.BK, c.BV}, f32);
                for (auto n : range(0, cdiv(T, c.C), 1, {.stages = c.stages})) {
                  H.store({h, n, k0, v0}, cast(state, bf16));
                  auto t = n * c.C;
                  auto k = K.load({h, t, k0}, {c.C, c.BK}), v = V.load({h, t, v0}, {c.C, c.BV});
                  auto last = G.load({h, min(t + c.C, T) - 1});
                  auto gate = exp2((last - G.load({h, t}, {c.C})) * kLog2e).col();
                  auto gated = cast(cast(v, f32) * gate, bf16);
                  state = dot(trans(k), gated, state * exp2(last * kLog2e));
                }
              }).grid([](const StateCfg& c, const auto& k, const auto& v, const auto&...) {
  return Grid{cdiv(k.shape[2], c.BK), cdiv(v.shape[2], c.BV), k.shape[0]};
});
Job state_scan(Env& e) {
  const StateCfg c{e.field("C", 64), e.field("BK", 64), e.field("BV", 64), e.field("warps", 4), e.field("stages", 0)};
  const int H = e.big ? 64 : 2, T = e.big ? 4096 : 3 * c.C + 13, K = e.big ? 128 : c.BK + 8,
            V = e.big ? 256 : c.BV + 40;
  const int N = (T + c.C - 1) / c.C;
  auto k = random<bfloat16>(e, size_t(H) * T * K), v = random<bfloat16>(e, size_t(H) * T * V);
  double run = 0;
  auto G = filled<float>(e, size_t(H) * T, [&](size_t i) {
    run = int(i % T) % c.C == 0 ? 0 : run;
    return float(run -= .05 * e.uniform());
  });
  auto out = constant<bfloat16>(e, size_t(H) * N * K * V, NAN);
  Job j;
  j.gflop = 2e-9 * H * T * K * V, j.mbytes = 2e-6 * H * (double(T) * (K + V) + double(N) * K * V);
  j.add(states, c, k.view(H, T, K), v.view(H, T, V), G.view(H, T), out.view(H, N, K, V));
  j.check = [=] {
    std::vector<double> want(size_t(H) * N * K * V);
    for (int h = 0; h < H; ++h) {
      std::vector<double> s(size_t(K) * V);
      for (int n = 0; n < N; ++n) {
        std::copy(s.begin(), s.end(), want.begin() + (size_t(h) * N + n) * K * V);
        const int end = std::min(T, (n + 1) * c.C);
        const double last = G[size_t(h) * T + end - 1];
        for (double& x : s) x *= std::exp(last);
        for (int t = n * c.C; t < end; ++t) {
          const size_t r = size_t(h) * T + t;
          const double gate = std::exp(last - G[r]);
          for (int a = 0; a < K; ++a)
            for (int b = 0; b < V; ++b) s[size_t(a) * V + b] += gate * k[r * K + a] * v[r * V + b];
        }
      }
    }
    return agree(out.now(), want, 4e-2, 1e-2);
  };
  return j;
}
Register r11("state_scan", state_scan);

}  // namespace swept_gates
}  // namespace users
