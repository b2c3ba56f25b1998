// beside_triton_contrasts.cpp - a gated convolution with the product behind it, contrastive losses of rows and columns,
// a cost volume.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_contrasts {

// --- a layer of WaveNet: z = tanh(F x) sigmoid(G x) of two taps, `dilation` apart; x + R z, and skip += S z
struct WaveCfg {
  int BT = 128, C = 128, BK = 64, stages = 2, warps = 8;
};
auto wavenet =
    kernel("user_wavenet", [](const WaveCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 2> F,
                              Tensor<const bfloat16, 2> G, Tensor<const bfloat16, 2> R, Tensor<const bfloat16, 2> S,
                              Tensor<bfloat16, 3> out, Tensor<bfloat16, 3> skip, I32 dilation) {
      // X [B, T, C], F and G [2 C, C], R and S [C, C]
      num_warps(c.warps);
      auto t = program_id(0) * c.BT, b = program_id(1);
      Tile f = zeros({c.BT, c.C}, f32), g = zeros({c.BT, c.C}, f32);
      for (auto k : range(0, 2 * c.C, c.BK, {.stages = c.stages})) {
        auto x = X.load({b, t - (1 - k / c.C) * dilation, k % c.C}, {c.BT, c.BK});
        f = dot(x, F.load({k, 0}, {c.BK, c.C}), f);
        g = dot(x, G.load({k, 0}, {c.BK, c.C}), g);
      }
      auto z = cast(tanh(f) * sigmoid(g), bf16);
      auto r = dot(z, R.load({0, 0}, {c.C, c.C})) + cast(X.load({b, t, 0}, {c.BT, c.C}), f32);
      out.store({b, t, 0}, cast(r, bf16));
      auto s = dot(z, S.load({0, 0}, {c.C, c.C})) + cast(skip.load({b, t, 0}, {c.BT, c.C}), f32);
      skip.store({b, t, 0}, cast(s, bf16));
    }).grid([](const WaveCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[1], c.BT), x.shape[0]};
    });
Register r1("wavenet", [](Env& e) {
  WaveCfg c;
  if (!e.big) c = {32, 64, 32, 2, 4};
  c.BT = e.field("BT", c.BT), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 8 : 2, T = e.big ? 32000 : 77, C = c.C, dilation = e.big ? 64 : 9;
  auto x = random<bfloat16>(e, size_t(B) * T * C), f = random<bfloat16>(e, size_t(2) * C * C, -.2, .2),
       g = random<bfloat16>(e, size_t(2) * C * C, -.2, .2), r = random<bfloat16>(e, size_t(C) * C, -.2, .2),
       s = random<bfloat16>(e, size_t(C) * C, -.2, .2);
  auto out = constant<bfloat16>(e, size_t(B) * T * C, NAN), skip = random<bfloat16>(e, size_t(B) * T * C);
  Job j;
  j.gflop = 2e-9 * B * T * 6. * C * C;
  j.mbytes = 8e-6 * B * T * C;
  j.add(wavenet, c, x.view(B, T, C), f.view(2 * C, C), g.view(2 * C, C), r.view(C, C), s.view(C, C), out.view(B, T, C),
        skip.view(B, T, C), dilation);
  j.check = [=]() -> std::string {
    std::vector<double> one, two;
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t) {
        std::vector<double> z(C);
        for (int n = 0; n < C; ++n) {
          double p = 0, q = 0;
          for (int k = 0; k < 2 * C; ++k) {
            const int from = k < C ? t - dilation : t;
            if (from < 0) continue;
            const double v = x[(size_t(b) * T + from) * C + k % C];
            p += v * f[size_t(k) * C + n], q += v * g[size_t(k) * C + n];
          }
          z[n] = std::tanh(p) / (1 + std::exp(-q));
        }
        for (int n = 0; n < C; ++n) {
          const size_t at = (size_t(b) * T + t) * C + n;
          double p = x[at], q = skip[at];
          for (int k = 0; k < C; ++k) p += z[k] * r[size_t(k) * C + n], q += z[k] * s[size_t(k) * C + n];
          one.push_back(p), two.push_back(q);
        }
      }
    auto wrong = agree(out.now(), one, 2e-2, 1e-2);
    return wrong.empty() ? agree(skip.now(), two, 2e-2, 1e-2) : wrong;
  };
  return j;
});

// --- the contrastive loss of CLIP: log-sums of rows and of columns of scale A B^T, which is not kept: every tile
// leaves its maxima and sums both ways
struct ClipCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8, group = 8;
};
auto clip_parts =
    kernel("user_clip_parts", [](const ClipCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B,
                                 Tensor<float, 2> row_top, Tensor<float, 2> row_sum, Tensor<float, 2> col_top,
                                 Tensor<float, 2> col_sum, F32 scale, I32 N) {
      num_warps(c.warps);
      auto [pm, pn] = swizzle2d(program_id(0), program_id(1), num_programs(0), num_programs(1), c.group);
      auto m = pm * c.BM, n = pn * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(A.load({m, k}, {c.BM, c.BK}), trans(B.load({n, k}, {c.BN, c.BK})), acc);
      auto row = (m + arange(0, c.BM)).col(), col = (n + arange(0, c.BN)).row();
      auto s = where((row < N) & (col < N), acc * (scale * 1.44269504f), -1e30f);
      auto rt = max(s, axis(1)), ct = max(s, axis(0));
      row_top.store({pn, m}, squeeze(rt, 1));
      row_sum.store({pn, m}, squeeze(sum(exp2(s - rt), axis(1)), 1));
      col_top.store({pm, n}, squeeze(ct, 0));
      col_sum.store({pm, n}, squeeze(sum(exp2(s - ct), axis(0)), 0));
    }).grid([](const ClipCfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
    });
struct ClipJoinCfg {
  int BR = 32, BP = 32, BD = 512, warps = 4;
};
auto clip_join =
    kernel("user_clip_join", [](const ClipJoinCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B,
                                Tensor<const float, 2> row_top, Tensor<const float, 2> row_sum,
                                Tensor<const float, 2> col_top, Tensor<const float, 2> col_sum, Ptr<float> lse_row,
                                Ptr<float> lse_col, Ptr<float> loss, F32 scale, I32 N) {
      num_warps(c.warps);
      auto i = program_id(0) * c.BR;
      auto join = [&](auto& top, auto& total) {
        Tile t = full({c.BR}, -1e30f, f32), s = zeros({c.BR}, f32);
        for (auto p : range(0, top.dim(0), c.BP)) {
          auto inside = (p + arange(0, c.BP)).col() < top.dim(0);
          auto tops = where(inside, top.load({p, i}, {c.BP, c.BR}), -1e30f);
          auto most = max(t, squeeze(max(tops, axis(0)), 0));
          s = s * exp2(t - most) + squeeze(sum(total.load({p, i}, {c.BP, c.BR}) * exp2(tops - most.row()), axis(0)), 0);
          t = most;
        }
        return (t + log2(s)) * 0.69314718f;
      };
      auto r = join(row_top, row_sum), q = join(col_top, col_sum);
      Tile d = zeros({c.BR}, f32);
      for (auto k : range(0, A.dim(1), c.BD))
        d +=
            squeeze(sum(cast(A.load({i, k}, {c.BR, c.BD}), f32) * cast(B.load({i, k}, {c.BR, c.BD}), f32), axis(1)), 1);
      auto at = i + arange(0, c.BR);
      store(lse_row + at, r, {.mask = at < N});
      store(lse_col + at, q, {.mask = at < N});
      store(loss + at, 0.5f * (r + q) - d * scale, {.mask = at < N});
    }).grid([](const ClipJoinCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.BR)}; });
Register r2("clip_loss", [](Env& e) {
  ClipCfg c;
  ClipJoinCfg cj;
  if (!e.big) c = {32, 32, 32, 2, 4, 2}, cj = {8, 4, 64, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps), c.group = e.field("group", c.group);
  cj.BR = e.field("BR", cj.BR), cj.BP = e.field("BP", cj.BP), cj.BD = e.field("BD", cj.BD);
  const int N = e.big ? 16384 : 93, D = e.big ? 512 : 88, PM = (N + c.BM - 1) / c.BM, PN = (N + c.BN - 1) / c.BN;
  auto a = random<bfloat16>(e, size_t(N) * D, -.2, .2), b = random<bfloat16>(e, size_t(N) * D, -.2, .2);
  auto rt = constant<float>(e, size_t(PN) * N, NAN), rs = constant<float>(e, size_t(PN) * N, NAN);
  auto ct = constant<float>(e, size_t(PM) * N, NAN), cs = constant<float>(e, size_t(PM) * N, NAN);
  auto lr = constant<float>(e, N, NAN), lc = constant<float>(e, N, NAN), loss = constant<float>(e, N, NAN);
  const float scale = 7;
  Job j;
  j.gflop = 2e-9 * N * double(N) * D;
  j.add(clip_parts, c, a.view(N, D), b.view(N, D), rt.view(PN, N), rs.view(PN, N), ct.view(PM, N), cs.view(PM, N),
        scale, N);
  j.add(clip_join, cj, a.view(N, D), b.view(N, D), rt.view(PN, N), rs.view(PN, N), ct.view(PM, N), cs.view(PM, N), lr.p,
        lc.p, loss.p, scale, N);
  j.check = [=]() -> std::string {
    auto s = product(N, N, D, matrix(a, D), [&](int k, int n) { return scale * b[size_t(n) * D + k]; });
    std::vector<double> r(N, 0), q(N, 0), l(N);
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k) r[i] += std::exp(s[size_t(i) * N + k]), q[k] += std::exp(s[size_t(i) * N + k]);
    for (int i = 0; i < N; ++i)
      r[i] = std::log(r[i]), q[i] = std::log(q[i]), l[i] = .5 * (r[i] + q[i]) - s[size_t(i) * N + i];
    for (auto wrong :
         {agree(lr.now(), r, 1e-3, 1e-4), agree(lc.now(), q, 1e-3, 1e-4), agree(loss.now(), l, 1e-3, 1e-4)})
      if (!wrong.empty()) return wrong;
    return "";
  };
  return j;
});

// --- a cost volume (PWC-Net): products of every pixel with 9 x 9 around it in the other picture, NHWC; a row of pixels
// against a row of places, of which a band is kept
struct CostCfg {
  int BX = 64, BW = 80, C = 128, warps = 4, take = 1, stages = 2;
};
auto cost_volume =
    kernel("user_cost_volume",
           [](const CostCfg& c, Tensor<const bfloat16, 4> P, Tensor<const bfloat16, 4> Q,
              Tensor<bfloat16, 4> out) {  // P, Q [B, H, W, C], out [B, H, W, 81]
             num_warps(c.warps);
             auto x = program_id(0) * c.BX, y = program_id(1), b = program_id(2);
             auto p = P.load({b, y, x, 0}, {c.BX, c.C});
             auto W = P.dim(2);
             for (auto d : range(0, 9, 1, {.stages = c.stages})) {
               auto q = Q.load({b, y + d - 4, x - 4, 0}, {c.BW, c.C});
               auto s = dot(p, trans(q)) * (1.f / c.C);
               auto i = arange(0, c.BX).col();
               auto base =
                   ((cast(b, i64) * out.dim64(1) + cast(y, i64)) * out.dim64(2) + cast(x, i64)) * 81 + cast(d * 9, i64);
               if (c.take) {
                 auto j = arange(0, 16).row();
                 store(out.ptr() + base + (i * 81 + j), cast(take(s, i + min(j, 8), 1), bf16),
                       {.mask = (j < 9) & (x + i < W)});
               } else {
                 auto j = arange(0, c.BW).row() - i;
                 store(out.ptr() + base + (i * 81 + j), cast(s, bf16), {.mask = (j >= 0) & (j < 9) & (x + i < W)});
               }
             }
           })
        .grid([](const CostCfg& c, const auto& p, const auto&, const auto&) {
          return Grid{cdiv(p.shape[2], c.BX), p.shape[1], p.shape[0]};
        });
Register r3("cost_volume", [](Env& e) {
  CostCfg c;
  if (!e.big) c = {16, 32, 32, 4, 1, 2};
  c.BX = e.field("BX", c.BX), c.BW = e.field("BW", c.BW);
  c.warps = e.field("warps", c.warps), c.take = e.field("take", c.take), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 16 : 2, H = e.big ? 96 : 7, W = e.big ? 160 : 27, C = c.C;
  auto p = random<bfloat16>(e, size_t(B) * H * W * C), q = random<bfloat16>(e, size_t(B) * H * W * C);
  auto out = constant<bfloat16>(e, size_t(B) * H * W * 81, NAN);
  Job j;
  j.gflop = 2e-9 * B * H * W * 81. * C;
  j.mbytes = 2e-6 * B * H * W * (2. * C + 81);
  j.add(cost_volume, c, p.view(B, H, W, C), q.view(B, H, W, C), out.view(B, H, W, 81));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b)
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x)
          for (int d = 0; d < 81; ++d) {
            const int yy = y + d / 9 - 4, xx = x + d % 9 - 4;
            double s = 0;
            if (yy >= 0 && xx >= 0 && yy < H && xx < W)
              for (int k = 0; k < C; ++k)
                s += p[((size_t(b) * H + y) * W + x) * C + k] * q[((size_t(b) * H + yy) * W + xx) * C + k];
            want.push_back(s / C);
          }
    return agree(out.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace beside_triton_contrasts
}  // namespace users
