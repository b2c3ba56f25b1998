// transitions.cpp - states that a matrix moves from token to token (RWKV-7), and the gradients inside the chunks of a
// state-space model (Mamba-2).
#include "tests/users/use.h"
namespace users {
namespace transitions {

constexpr float kLog2e = 1.4426950408889634f;

// --- RWKV-7: S_t = S_{t-1} (diag(w_t) + a_t b_t^T) + v_t k_t^T, o_t = S_t r_t; the state stays in registers
struct Rwkv7Cfg {
  int D = 64, BV = 32, warps = 1, stages = 0, unroll = 0;
};
auto rwkv7 =
    kernel("user_rwkv7", [](const Rwkv7Cfg& c, Tensor<const bfloat16, 4> R, Tensor<const float, 4> W,
                            Tensor<const bfloat16, 4> K, Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 4> A,
                            Tensor<const bfloat16, 4> Bt, Tensor<bfloat16, 4> O, Tensor<float, 4> state) {
      // R, W (decays), K, A, Bt [B, T, H, D], V, O [B, T, H, Dv], state [B, H, Dv, D]: in and out
      num_warps(c.warps);
      auto v0 = program_id(0) * c.BV, h = program_id(1), b = program_id(2);
      auto S = reshape(state.load({b, h, v0, 0}, {1, 1, c.BV, c.D}), {c.BV, c.D});
      for (auto t : range(0, R.dim(1), {.stages = c.stages, .unroll = c.unroll})) {
        auto row = [&](auto& X) { return cast(X.load({b, t, h, 0}, {c.D}), f32).row(); };
        auto r = row(R), w = row(W), k = row(K), a = row(A), bt = row(Bt);
        auto v = cast(V.load({b, t, h, v0}, {c.BV}), f32).col();
        S = S * w + sum(S * a, axis(1)) * bt + v * k;
        O.store({b, t, h, v0}, cast(squeeze(sum(S * r, axis(1)), 1), bf16));
      }
      state.store({b, h, v0, 0}, reshape(S, {1, 1, c.BV, c.D}));
    }).grid([](const Rwkv7Cfg& c, const auto&, const auto&, const auto&, const auto& v, const auto&...) {
      return Grid{cdiv(v.shape[3], c.BV), v.shape[2], v.shape[0]};
    });
Register r1("rwkv7", [](Env& e) {
  Rwkv7Cfg c;
  if (!e.big) c = {16, 8, 1};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", 0), c.unroll = e.field("unroll", 0);
  const int B = e.big ? 8 : 2, T = e.big ? 2048 : 21, H = e.big ? 32 : 3, D = c.D;
  const size_t n = size_t(B) * T * H * D;
  auto r = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  const double most = 1 / std::sqrt(double(D));
  auto a = random<bfloat16>(e, n, -most, most), bt = random<bfloat16>(e, n, -most, most);
  auto w = random<float>(e, n, .6, 1);
  auto s = random<float>(e, size_t(B) * H * D * D);
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 1e-9 * B * double(T) * H * D * D * 9;
  j.inTurn = true;
  j.add(rwkv7, c, r.view(B, T, H, D), w.view(B, T, H, D), k.view(B, T, H, D), v.view(B, T, H, D), a.view(B, T, H, D),
        bt.view(B, T, H, D), o.view(B, T, H, D), s.view(B, H, D, D));
  j.check = [=] {
    std::vector<double> want(n), last;
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        std::vector<double> S(D * D);
        for (int i = 0; i < D * D; ++i) S[i] = s[(size_t(b) * H + h) * D * D + i];
        for (int t = 0; t < T; ++t) {
          const size_t at = ((size_t(b) * T + t) * H + h) * D;
          for (int i = 0; i < D; ++i) {
            double sa = 0, y = 0;
            for (int d = 0; d < D; ++d) sa += S[i * D + d] * a[at + d];
            for (int d = 0; d < D; ++d) {
              double& x = S[i * D + d];
              x = x * w[at + d] + sa * bt[at + d] + v[at + i] * k[at + d];
              y += x * r[at + d];
            }
            want[at + i] = y;
          }
        }
        last.insert(last.end(), S.begin(), S.end());
      }
    if (std::string wrong = agree(s.now(), last, 1e-4, 1e-4); !wrong.empty()) return "state: " + wrong;
    return agree(o.now(), want, 1e-2, 6e-3);
  };
  return j;
});

// --- Mamba-2, gradients inside a chunk: Y = (C B^T o L) (dt X) with L[i, j] = exp(a_i - a_j) for j <= i
struct SsdBwdCfg {
  int L = 64, N = 128, P = 64, warps = 4, programs = 0;
};
auto ssd_bwd =
    kernel("user_ssd_bwd", [](const SsdBwdCfg& c, Tensor<const bfloat16, 4> X, Tensor<const float, 3> dt,
                              Tensor<const float, 3> A, Tensor<const bfloat16, 3> B, Tensor<const bfloat16, 3> C,
                              Tensor<const bfloat16, 4> dY, Tensor<bfloat16, 4> dX, Tensor<float, 3> ddt,
                              Tensor<float, 3> dA, Tensor<bfloat16, 4> dB, Tensor<bfloat16, 4> dC) {
      // X, dY, dX [b, T, H, P], dt, A (running sums of chunks), ddt, dA [b, H, T], B, C [b, T, N], dB, dC [b, T, H, N]
      num_warps(c.warps);
      if (c.programs) programs_per_multiprocessor(c.programs);
      auto t = program_id(0) * c.L, h = program_id(1), z = program_id(2);
      auto i = arange(0, c.L);
      auto last = i + t < X.dim(1);
      auto x = reshape(X.load({z, t, h, 0}, {1, c.L, 1, c.P}), {c.L, c.P});
      auto dy = reshape(dY.load({z, t, h, 0}, {1, c.L, 1, c.P}), {c.L, c.P});
      auto b = squeeze(B.load({z, t, 0}, {1, c.L, c.N}), 0), cc = squeeze(C.load({z, t, 0}, {1, c.L, c.N}), 0);
      auto a = A.load({z, h, t}, {c.L}) * kLog2e, d = dt.load({z, h, t}, {c.L});
      auto decay = exp2(where((i.col() >= i.row()) & last.col(), a.col() - a.row(), -INFINITY));
      auto g = dot(cc, trans(b)) * decay;
      dX.store({z, t, h, 0}, reshape(cast(dot(trans(cast(g, bf16)), dy) * d.col(), bf16), {1, c.L, 1, c.P}));
      auto dm = dot(dy, trans(x));
      auto both = dm * g;
      ddt.store({z, h, t}, reshape(sum(both, axis(0)), {1, 1, c.L}));
      auto scaled = both * d.row();
      dA.store({z, h, t}, reshape(squeeze(sum(scaled, axis(1)), 1) - squeeze(sum(scaled, axis(0)), 0), {1, 1, c.L}));
      auto dg = cast(dm * decay * d.row(), bf16);
      dC.store({z, t, h, 0}, reshape(cast(dot(dg, b), bf16), {1, c.L, 1, c.N}));
      dB.store({z, t, h, 0}, reshape(cast(dot(trans(dg), cc), bf16), {1, c.L, 1, c.N}));
    }).grid([](const SsdBwdCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[1], c.L), x.shape[2], x.shape[0]};
    });
Register r2("ssd_bwd", [](Env& e) {
  SsdBwdCfg c;
  if (!e.big) c = {32, 16, 16, 4};
  c.warps = e.field("warps", c.warps), c.L = e.field("L", c.L), c.programs = e.field("programs", 0);
  const int Z = e.big ? 4 : 2, T = e.big ? 4096 : 77, H = e.big ? 24 : 3, N = c.N, P = c.P, L = c.L;
  auto x = random<bfloat16>(e, size_t(Z) * T * H * P), dy = random<bfloat16>(e, size_t(Z) * T * H * P);
  auto b = random<bfloat16>(e, size_t(Z) * T * N), cc = random<bfloat16>(e, size_t(Z) * T * N);
  auto dt = random<float>(e, size_t(Z) * H * T, .2, 1);
  auto a = filled<float>(e, size_t(Z) * H * T, [&](size_t at) { return -.05f * float(at % T % L); });
  auto dx = constant<bfloat16>(e, x.n, NAN);
  auto db = constant<bfloat16>(e, size_t(Z) * T * H * N, NAN), dc = constant<bfloat16>(e, size_t(Z) * T * H * N, NAN);
  auto ddt = constant<float>(e, dt.n, NAN), da = constant<float>(e, dt.n, NAN);
  Job j;
  j.gflop = 2e-9 * Z * H * double(T) * L * (3. * N + 2. * P);
  j.add(ssd_bwd, c, x.view(Z, T, H, P), dt.view(Z, H, T), a.view(Z, H, T), b.view(Z, T, N), cc.view(Z, T, N),
        dy.view(Z, T, H, P), dx.view(Z, T, H, P), ddt.view(Z, H, T), da.view(Z, H, T), db.view(Z, T, H, N),
        dc.view(Z, T, H, N));
  j.check = [=] {
    std::vector<double> wx(x.n), wb(db.n), wc(dc.n), wt(dt.n), wa(dt.n);
    for (int z = 0; z < Z; ++z)
      for (int h = 0; h < H; ++h)
        for (int m = 0; m < T; ++m)
          for (int n = m / L * L; n <= m; ++n) {
            const size_t rm = (size_t(z) * T + m), rn = (size_t(z) * T + n), at = (size_t(z) * H + h) * T;
            double score = 0, dm = 0;
            for (int k = 0; k < N; ++k) score += cc[rm * N + k] * b[rn * N + k];
            for (int p = 0; p < P; ++p) dm += dy[(rm * H + h) * P + p] * x[(rn * H + h) * P + p];
            const double decay = std::exp(a[at + m] - a[at + n]), d = dt[at + n];
            for (int p = 0; p < P; ++p) wx[(rn * H + h) * P + p] += score * decay * d * dy[(rm * H + h) * P + p];
            for (int k = 0; k < N; ++k) {
              wc[(rm * H + h) * N + k] += dm * decay * d * b[rn * N + k];
              wb[(rn * H + h) * N + k] += dm * decay * d * cc[rm * N + k];
            }
            wt[at + n] += dm * score * decay;
            wa[at + m] += dm * score * decay * d, wa[at + n] -= dm * score * decay * d;
          }
    for (const auto& [name, wrong] :
         {std::pair{"dX", agree(dx.now(), wx, 6e-2, 1e-2)}, std::pair{"dB", agree(db.now(), wb, 6e-2, 1e-2)},
          std::pair{"dC", agree(dc.now(), wc, 6e-2, 1e-2)}, std::pair{"ddt", agree(ddt.now(), wt, 1e-3, 1e-4)},
          std::pair{"dA", agree(da.now(), wa, 1e-3, 1e-4)}})
      if (!wrong.empty()) return std::string(name) + ": " + wrong;
    return std::string();
  };
  return j;
});

}  // namespace transitions
}  // namespace users
