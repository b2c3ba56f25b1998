// beside_triton_scans.cpp - wide rows of a norm with dropout going back, a gated recurrence going back through
// time.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_scans {

// --- y = layer_norm(x) with x = residual + dropout(x0), going back: dx0 and the residual's gradient, masks drawn
// again; programs that stay walk over rows of their own and leave sums for w and b
struct LnDropCfg {
  int N = 4096, programs = 264, warps = 8, stages = 0;
};
auto ln_drop_bwd =
    kernel("user_ln_drop_bwd", [](const LnDropCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> DY,
                                  Tensor<const bfloat16, 2> DR, Ptr<const float> w, Ptr<const float> mean,
                                  Ptr<const float> rstd, Tensor<bfloat16, 2> DX0, Tensor<bfloat16, 2> DX,
                                  Tensor<float, 2> DW, Tensor<float, 2> DB, U64 seed, F32 p) {
      num_warps(c.warps);
      auto M = X.dim(0), N = X.dim(1), i = arange(0, c.N);
      auto share = cdiv(M, c.programs), from = program_id(0) * share;
      auto weight = load(w + i, {.mask = i < N});
      Tile dw = zeros({c.N}, f32), db = zeros({c.N}, f32);
      auto scale = 1.f / (1.f - p), over = 1.f / cast(N, f32);
      for (auto r : range(from, min(M, from + share), 1, {.stages = c.stages})) {
        auto x = cast(X.load({r, 0}, {c.N}), f32), dy = cast(DY.load({r, 0}, {c.N}), f32);
        auto dr = cast(DR.load({r, 0}, {c.N}), f32);
        auto f = load(rstd + r);
        auto xh = where(i < N, (x - load(mean + r)) * f, 0.f), wdy = weight * dy;
        auto c1 = sum(xh * wdy) * over, c2 = sum(wdy) * over;
        auto dx = (wdy - (xh * c1 + c2)) * f + dr;
        DX.store({r, 0}, cast(dx, bf16));
        auto keep = rand(seed, cast(r, u32) * cast(N, u32) + cast(i, u32)) > p;
        DX0.store({r, 0}, cast(where(keep, dx * scale, 0.f), bf16));
        dw += dy * xh;
        db += dy;
      }
      DW.store({program_id(0), 0}, dw);
      DB.store({program_id(0), 0}, db);
    }).grid([](const LnDropCfg& c, const auto&...) { return Grid{c.programs}; });
Register r1("ln_drop_bwd", [](Env& e) {
  LnDropCfg c;
  if (!e.big) c = {128, 4, 4, 0};
  c.programs = e.field("programs", c.programs), c.warps = e.field("warps", c.warps),
  c.stages = e.field("stages", c.stages);
  const int M = e.big ? 8192 : 21, N = e.big ? 4096 : 100;
  const size_t n = size_t(M) * N;
  const uint64_t seed = 1234567;
  const float p = .1f;
  auto x = random<bfloat16>(e, n), dy = random<bfloat16>(e, n), dr = random<bfloat16>(e, n);
  auto w = random<float>(e, N, .5, 1.5), mean = random<float>(e, M, -.1, .1), rstd = random<float>(e, M, 1, 2);
  auto dx0 = constant<bfloat16>(e, n, NAN), dx = constant<bfloat16>(e, n, NAN);
  auto dw = constant<float>(e, size_t(c.programs) * N, NAN), db = constant<float>(e, size_t(c.programs) * N, NAN);
  Job j;
  j.mbytes = 1e-6 * n * 10;
  j.add(ln_drop_bwd, c, x.view(M, N), dy.view(M, N), dr.view(M, N), w.p, mean.p, rstd.p, dx0.view(M, N), dx.view(M, N),
        dw.view(c.programs, N), db.view(c.programs, N), seed, p);
  j.check = [=]() -> std::string {
    std::vector<double> wx(n), w0(n), ww(N), wb(N), sw(N), sb(N);
    for (int r = 0; r < M; ++r) {
      double c1 = 0, c2 = 0;
      for (int i = 0; i < N; ++i) {
        const double xh = (x[size_t(r) * N + i] - mean[r]) * rstd[r], d = dy[size_t(r) * N + i];
        c1 += xh * w[i] * d / N, c2 += w[i] * d / N, ww[i] += d * xh, wb[i] += d;
      }
      for (int i = 0; i < N; ++i) {
        const size_t at = size_t(r) * N + i;
        const double xh = (x[at] - mean[r]) * rstd[r];
        wx[at] = (w[i] * dy[at] - (xh * c1 + c2)) * rstd[r] + dr[at];
        const double drawn = reference_philox(seed, at)[0] * 0x1p-32;
        w0[at] = drawn > p ? wx[at] / (1 - p) : 0;
      }
    }
    const auto gw = dw.now(), gb = db.now();
    for (size_t i = 0; i < gw.size(); ++i) sw[i % N] += gw[i], sb[i % N] += gb[i];
    for (auto wrong : {agree(dx.now(), wx, 2e-2, 1e-2), agree(dx0.now(), w0, 2e-2, 1e-2), agree(sw, ww, 1e-2, 1e-3),
                       agree(sb, wb, 1e-2, 1e-3)})
      if (!wrong.empty()) return wrong;
    return "";
  };
  return j;
});

// --- HGRN, h[t] = e^g[t] h[t-1] + x[t], going back: dx[t] = do[t] + e^g[t+1] dx[t+1], dg[t] = dx[t] e^g[t] h[t-1]
struct HgrnCfg {
  int BD = 128, warps = 2, stages = 4;
};
auto hgrn_back =
    kernel("user_hgrn_back", [](const HgrnCfg& c, Tensor<const bfloat16, 3> G, Tensor<const bfloat16, 3> O,
                               Tensor<const bfloat16, 3> DO, Tensor<bfloat16, 3> DX, Tensor<bfloat16, 3> DG) {
      // all [B, T, D]; O is h
      num_warps(c.warps);
      auto d = program_id(0) * c.BD, b = program_id(1), T = G.dim(1);
      Tile dh = zeros({c.BD}, f32);
      for (auto t : range(T - 1, -1, -1, {.stages = c.stages})) {
        auto g = exp(cast(G.load({b, t, d}, {c.BD}), f32));
        auto before = cast(O.load({b, t - 1, d}, {c.BD}), f32);
        dh += cast(DO.load({b, t, d}, {c.BD}), f32);
        DX.store({b, t, d}, cast(dh, bf16));
        dh *= g;
        DG.store({b, t, d}, cast(dh * before, bf16));
      }
    }).grid([](const HgrnCfg& c, const auto& g, const auto&...) {
      return Grid{cdiv(g.shape[2], c.BD), g.shape[0]};
    });
Register r2("hgrn_back", [](Env& e) {
  HgrnCfg c;
  if (!e.big) c = {32, 2, 3};
  c.BD = e.field("BD", c.BD), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 8 : 3, T = e.big ? 2048 : 37, D = e.big ? 4096 : 72;
  const size_t n = size_t(B) * T * D;
  auto g = random<bfloat16>(e, n, -1, 0), o = random<bfloat16>(e, n), d = random<bfloat16>(e, n);
  auto dx = constant<bfloat16>(e, n, NAN), dg = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 1e-6 * n * 10;
  j.add(hgrn_back, c, g.view(B, T, D), o.view(B, T, D), d.view(B, T, D), dx.view(B, T, D), dg.view(B, T, D));
  j.check = [=] {
    std::vector<double> wx(n), wg(n);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < D; ++i) {
        double dh = 0;
        for (int t = T - 1; t >= 0; --t) {
          const size_t at = (size_t(b) * T + t) * D + i;
          dh += d[at];
          wx[at] = dh;
          dh *= std::exp(g[at]);
          wg[at] = t ? dh * o[at - D] : 0;
        }
      }
    auto wrong = agree(dx.now(), wx, 2e-2, 1e-2);
    return wrong.empty() ? agree(dg.now(), wg, 2e-2, 1e-2) : wrong;
  };
  return j;
});

}  // namespace beside_triton_scans
}  // namespace users
