// beside_triton_gradients.cpp - GroupNorm + SiLU backward (NHWC), bicubic upsampling and its gradient, a fused
// pointwise kernel, logcumsumexp along a middle dim.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_gradients {

// --- GroupNorm + SiLU backward, x [N, HW, C]: partial channel sums, their totals per group, dx
struct GnCfg {
  int BM = 64, BC = 128, CG = 16, chunk = 512, chunks = 8;  // CG: channels of a group
};
struct GnRows {
  Tile dz, xhat, rs;
};
GnRows gn_rows(const GnCfg& c, const Tensor<const half, 3>& X, const Tensor<const half, 3>& dY, const Tile& mu,
               const Tile& rs, const Tile& ga, const Tile& be, const Tile& n, const Tile& r, const Tile& ch) {
  auto x = cast(X.load({n, r, ch}, {c.BM, c.BC}), f32), dy = cast(dY.load({n, r, ch}, {c.BM, c.BC}), f32);
  auto xhat = (x - mu) * rs;
  auto z = xhat * ga + be;
  auto s = sigmoid(z);
  return {dy * s * (1 + z * (1 - s)), xhat, rs};
}
auto gn_part =
    kernel("user_gn_part", [](const GnCfg& c, Tensor<const half, 3> X, Tensor<const half, 3> dY,
                              Tensor<const float, 2> mean, Tensor<const float, 2> rstd, Tensor<const float, 1> gamma,
                              Tensor<const float, 1> beta, Tensor<float, 3> pg, Tensor<float, 3> pb) {
      // pg, pb [N, chunks, C]
      auto k = program_id(0), ch = program_id(1) * c.BC, n = program_id(2);
      const int G = c.BC / c.CG;
      auto mu = repeat(mean.load({n, ch / c.CG}, {G}), c.CG, axis(0)).row();
      auto rs = repeat(rstd.load({n, ch / c.CG}, {G}), c.CG, axis(0)).row();
      auto ga = gamma.load({ch}, {c.BC}).row(), be = beta.load({ch}, {c.BC}).row();
      Tile dg = zeros({c.BM, c.BC}, f32), db = zeros({c.BM, c.BC}, f32);
      for (auto r : range(k * c.chunk, min((k + 1) * c.chunk, X.dim(1)), c.BM)) {
        auto t = gn_rows(c, X, dY, mu, rs, ga, be, n, r, ch);
        dg += t.dz * t.xhat, db += t.dz;
      }
      pg.store({n, k, ch}, squeeze(sum(dg, axis(0)), 0));
      pb.store({n, k, ch}, squeeze(sum(db, axis(0)), 0));
    }).grid([](const GnCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[1], c.chunk), cdiv(x.shape[2], c.BC), x.shape[0]};
    });
auto gn_total = kernel("user_gn_total", [](const GnCfg& c, Tensor<const float, 3> pg, Tensor<const float, 3> pb,
                                           Tensor<const float, 1> gamma, Tensor<float, 1> dgamma,
                                           Tensor<float, 1> dbeta, Tensor<float, 2> s1, Tensor<float, 2> s2) {
                  auto ch = program_id(0) * c.BC;
                  const int G = c.BC / c.CG;
                  auto ga = gamma.load({ch}, {c.BC});
                  Tile dg = zeros({c.BC}, f32), db = zeros({c.BC}, f32);
                  for (auto n : range(pg.dim(0))) {
                    auto g = squeeze(sum(pg.load({n, 0, ch}, {c.chunks, c.BC}), axis(0)), 0);
                    auto b = squeeze(sum(pb.load({n, 0, ch}, {c.chunks, c.BC}), axis(0)), 0);
                    s1.store({n, ch / c.CG}, squeeze(sum(reshape(b * ga, {G, c.CG}), axis(1)), 1));
                    s2.store({n, ch / c.CG}, squeeze(sum(reshape(g * ga, {G, c.CG}), axis(1)), 1));
                    dg += g, db += b;
                  }
                  dgamma.store({ch}, dg);
                  dbeta.store({ch}, db);
                }).grid([](const GnCfg& c, const auto& pg, const auto&...) { return Grid{cdiv(pg.shape[2], c.BC)}; });
auto gn_dx = kernel("user_gn_dx", [](const GnCfg& c, Tensor<const half, 3> X, Tensor<const half, 3> dY,
                                     Tensor<const float, 2> mean, Tensor<const float, 2> rstd,
                                     Tensor<const float, 1> gamma, Tensor<const float, 1> beta,
                                     Tensor<const float, 2> s1, Tensor<const float, 2> s2, Tensor<half, 3> dX) {
               auto r = program_id(0) * c.BM, ch = program_id(1) * c.BC, n = program_id(2);
               const int G = c.BC / c.CG;
               auto group = [&](const Tensor<const float, 2>& A) {
                 return repeat(A.load({n, ch / c.CG}, {G}), c.CG, axis(0)).row();
               };
               auto ga = gamma.load({ch}, {c.BC}).row(), be = beta.load({ch}, {c.BC}).row();
               auto rs = group(rstd);
               auto t = gn_rows(c, X, dY, group(mean), rs, ga, be, n, r, ch);
               auto inv = 1.f / cast(X.dim(1) * c.CG, f32);
               auto dx = rs * (t.dz * ga - (group(s1) + t.xhat * group(s2)) * inv);
               dX.store({n, r, ch}, expand_dims(cast(dx, f16), 0));
             }).grid([](const GnCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BM), cdiv(x.shape[2], c.BC), x.shape[0]};
});
Register r1("gn_nhwc_bwd", [](Env& e) {
  GnCfg c;
  if (!e.big) c = {16, 32, 8, 64, 2};
  c.BM = e.field("BM", c.BM), c.BC = e.field("BC", c.BC), c.chunk = e.field("chunk", c.chunk);
  const int N = e.big ? 16 : 2, HW = e.big ? 4096 : 77, C = e.big ? 512 : 64, G = C / c.CG;
  const int chunks = cdiv(HW, c.chunk);
  c.chunks = 1;
  while (c.chunks < chunks) c.chunks *= 2;
  const size_t n = size_t(N) * HW * C;
  auto x = random<half>(e, n, -2, 2), dy = random<half>(e, n);
  auto mean = random<float>(e, N * G, -.2, .2), rstd = random<float>(e, N * G, .8, 1.2);
  auto gamma = random<float>(e, C, .5, 1.5), beta = random<float>(e, C);
  auto pg = constant<float>(e, size_t(N) * chunks * C, NAN), pb = constant<float>(e, size_t(N) * chunks * C, NAN);
  auto dgamma = constant<float>(e, C, NAN), dbeta = constant<float>(e, C, NAN);
  auto s1 = constant<float>(e, N * G, NAN), s2 = constant<float>(e, N * G, NAN);
  auto dx = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 10e-6 * n;
  j.add(gn_part, c, x.view(N, HW, C), dy.view(N, HW, C), mean.view(N, G), rstd.view(N, G), gamma.view(C), beta.view(C),
        pg.view(N, chunks, C), pb.view(N, chunks, C));
  j.add(gn_total, c, pg.view(N, chunks, C), pb.view(N, chunks, C), gamma.view(C), dgamma.view(C), dbeta.view(C),
        s1.view(N, G), s2.view(N, G));
  j.add(gn_dx, c, x.view(N, HW, C), dy.view(N, HW, C), mean.view(N, G), rstd.view(N, G), gamma.view(C), beta.view(C),
        s1.view(N, G), s2.view(N, G), dx.view(N, HW, C));
  j.check = [=]() -> std::string {
    std::vector<double> wx(n), wg(C), wb(C), dz(n), xh(n), a(N * G), b(N * G);
    for (size_t i = 0; i < n; ++i) {
      const int ch = i % C, g = int(i / (size_t(HW) * C)) * G + ch / c.CG;
      xh[i] = (x[i] - mean[g]) * rstd[g];
      const double z = xh[i] * gamma[ch] + beta[ch], s = 1 / (1 + std::exp(-z));
      dz[i] = dy[i] * s * (1 + z * (1 - s));
      wg[ch] += dz[i] * xh[i], wb[ch] += dz[i];
      a[g] += dz[i] * gamma[ch], b[g] += dz[i] * gamma[ch] * xh[i];
    }
    for (size_t i = 0; i < n; ++i) {
      const int ch = i % C, g = int(i / (size_t(HW) * C)) * G + ch / c.CG;
      wx[i] = rstd[g] * (dz[i] * gamma[ch] - (a[g] + xh[i] * b[g]) / (HW * c.CG));
    }
    for (auto& t :
         {agree(dx.now(), wx, 2e-3, 2e-3), agree(dgamma.now(), wg, 1e-3, 1e-3), agree(dbeta.now(), wb, 1e-3, 1e-3)})
      if (!t.empty()) return t;
    return "";
  };
  return j;
});

// --- bicubic, twice as large (half-pixel centres, a = -0.75, borders clamped), and its gradient, gathered
struct CubicCfg {
  int BH = 8, BW = 64;
};
Tile cubic(const Tile& x) {  // weight at distance |x|
  constexpr float a = -0.75f;
  auto d = abs(x);
  auto near = ((a + 2) * d - (a + 3)) * d * d + 1, far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return where(d < 1.f, near, where(d < 2.f, far, 0.f));
}
auto cubic_fwd = kernel("user_bicubic_fwd", [](const CubicCfg& c, Tensor<const bfloat16, 3> X, Tensor<bfloat16, 3> Y) {
                   auto plane = program_id(2);
                   auto oy = program_id(1) * c.BH + arange(0, c.BH), ox = program_id(0) * c.BW + arange(0, c.BW);
                   auto H = X.dim(1), W = X.dim(2);
                   auto p = X.ptr() + cast(plane, i64) * X.stride(0);
                   auto fy = cast(oy, f32) * .5f - .25f, fx = cast(ox, f32) * .5f - .25f;
                   auto by = cast(floor(fy), i32), bx = cast(floor(fx), i32);
                   Tile acc = zeros({c.BH, c.BW}, f32);
                   for (int t = -1; t < 3; ++t) {
                     auto wy = cubic(fy - cast(by + t, f32)).col();
                     auto row = clamp(by + t, 0, H - 1) * W;
                     Tile line = zeros({c.BH, c.BW}, f32);
                     for (int u = -1; u < 3; ++u) {
                       auto at = row.col() + clamp(bx + u, 0, W - 1).row();
                       line += cast(load(p + at), f32) * cubic(fx - cast(bx + u, f32)).row();
                     }
                     acc += wy * line;
                   }
                   Y.store({plane, program_id(1) * c.BH, program_id(0) * c.BW}, cast(acc, bf16));
                 }).grid([](const CubicCfg& c, const auto&, const auto& y) {
  return Grid{cdiv(y.shape[2], c.BW), cdiv(y.shape[1], c.BH), y.shape[0]};
});
auto cubic_bwd =
    kernel("user_bicubic_bwd", [](const CubicCfg& c, Tensor<const bfloat16, 3> dY, Tensor<bfloat16, 3> dX) {
      auto plane = program_id(2);
      auto y = program_id(1) * c.BH + arange(0, c.BH), x = program_id(0) * c.BW + arange(0, c.BW);
      auto H = dX.dim(1), W = dX.dim(2), OH = dY.dim(1), OW = dY.dim(2);
      auto p = dY.ptr() + cast(plane, i64) * dY.stride(0);
      // what output o takes from input i of n, taps clamped to the border counted at it
      auto weight = [&](const Tile& o, const Tile& i, const Tile& n) {
        auto f = cast(o, f32) * .5f - .25f;
        auto b = cast(floor(f), i32);
        Tile w = zeros({int(o.shape()[0])}, f32);
        for (int t = -1; t < 3; ++t) w += where(clamp(b + t, 0, n - 1) == i, cubic(f - cast(b + t, f32)), 0.f);
        return w;
      };
      Tile acc = zeros({c.BH, c.BW}, f32);
      for (int t = -3; t < 5; ++t) {
        auto oy = y * 2 + t;
        auto wy = weight(oy, y, H).col(), inside = ((oy >= 0) & (oy < OH)).col();
        Tile line = zeros({c.BH, c.BW}, f32);
        for (int u = -3; u < 5; ++u) {
          auto ox = x * 2 + u;
          auto g = load(p + ((oy * OW).col() + ox.row()), {.mask = inside & ((ox >= 0) & (ox < OW)).row()});
          line += cast(g, f32) * weight(ox, x, W).row();
        }
        acc += wy * line;
      }
      dX.store({plane, program_id(1) * c.BH, program_id(0) * c.BW}, cast(acc, bf16));
    }).grid([](const CubicCfg& c, const auto&, const auto& x) {
      return Grid{cdiv(x.shape[2], c.BW), cdiv(x.shape[1], c.BH), x.shape[0]};
    });
Register r2("bicubic_bwd", [](Env& e) {
  CubicCfg c{e.field("BH", e.big ? 8 : 4), e.field("BW", e.big ? 64 : 16)};
  const int P = e.big ? 1024 : 3, H = e.big ? 128 : 13, W = e.big ? 128 : 19, OH = 2 * H, OW = 2 * W;
  auto x = random<bfloat16>(e, size_t(P) * H * W), g = random<bfloat16>(e, size_t(P) * OH * OW);
  auto y = constant<bfloat16>(e, size_t(P) * OH * OW, NAN), dx = constant<bfloat16>(e, size_t(P) * H * W, NAN);
  Job j;
  j.mbytes = 20e-6 * P * H * W;
  j.add(cubic_fwd, c, x.view(P, H, W), y.view(P, OH, OW));
  j.add(cubic_bwd, c, g.view(P, OH, OW), dx.view(P, H, W));
  j.check = [=]() -> std::string {
    std::vector<double> wy(size_t(P) * OH * OW), wx(size_t(P) * H * W);
    auto w = [](double d) {
      const double a = -.75;
      d = std::abs(d);
      return d < 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
    };
    for (int p = 0; p < P; ++p)
      for (int oy = 0; oy < OH; ++oy)
        for (int ox = 0; ox < OW; ++ox) {
          const double fy = oy * .5 - .25, fx = ox * .5 - .25;
          const int by = int(std::floor(fy)), bx = int(std::floor(fx));
          const size_t o = (size_t(p) * OH + oy) * OW + ox;
          for (int t = -1; t < 3; ++t)
            for (int u = -1; u < 3; ++u) {
              const size_t i = (size_t(p) * H + std::clamp(by + t, 0, H - 1)) * W + std::clamp(bx + u, 0, W - 1);
              const double k = w(fy - by - t) * w(fx - bx - u);
              wy[o] += k * x[i], wx[i] += k * g[o];
            }
        }
    auto a = agree(y.now(), wy, 1e-2, 1e-2), b = agree(dx.now(), wx, 1e-2, 1e-2);
    return a.empty() ? b : "gradient or " + a;
  };
  return j;
});

// --- a fused pointwise kernel: out = dropout(gelu(norm(x)) * sigmoid(gate)) + residual, amax of columns
struct MegaCfg {
  int BM = 32, BN = 128;
};
auto mega = kernel("user_mega_pointwise", [](const MegaCfg& c, Tensor<const bfloat16, 3> X, Tensor<const float, 2> mean,
                                             Tensor<const float, 2> rstd, Tensor<const bfloat16, 1> w,
                                             Tensor<const bfloat16, 1> b, Tensor<const bfloat16, 3> gate,
                                             Tensor<const bfloat16, 3> res, Tensor<bfloat16, 3> out, Ptr<float> amax,
                                             F32 p, U64 seed) {
              auto t = program_id(0) * c.BM, ch = program_id(1) * c.BN, n = program_id(2);
              auto T = X.dim(1), C = X.dim(2);
              auto x = cast(X.load({n, t, ch}, {c.BM, c.BN}), f32);
              auto wide = [&](const Tile& v) { return cast(v, f32).row(); };
              auto z =
                  (x - mean.load({n, t}, {c.BM}).col()) * rstd.load({n, t}, {c.BM}).col() * wide(w.load({ch}, {c.BN})) +
                  wide(b.load({ch}, {c.BN}));
              auto y = z * normcdf(z) * sigmoid(wide(gate.load({n, 0, ch}, {c.BN})));
              auto row = t + arange(0, c.BM), col = ch + arange(0, c.BN);
              auto at = cast(n * T + row, i64).col() * cast(C, i64) + cast(col, i64).row();
              y = where(rand(seed, at) >= p, y / (1 - p), 0.f);
              y += cast(res.load({n, t, ch}, {c.BM, c.BN}), f32);
              auto o = cast(y, bf16);
              out.store({n, t, ch}, o);
              auto a = where((row < T).col(), abs(cast(o, f32)), 0.f);
              atomic_max(amax + col, squeeze(max(a, axis(0)), 0), {.mask = col < C});
            }).grid([](const MegaCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BM), cdiv(x.shape[2], c.BN), x.shape[0]};
});
Register r3("mega_pointwise", [](Env& e) {
  MegaCfg c{e.field("BM", 32), e.field("BN", e.big ? 128 : 64)};
  const int B = e.big ? 8 : 2, T = e.big ? 4096 : 45, C = e.big ? 1024 : 100;
  const size_t n = size_t(B) * T * C;
  const float p = .1f;
  const uint64_t seed = 1234567890123ull;
  auto x = random<bfloat16>(e, n, -2, 2), res = random<bfloat16>(e, n), gate = random<bfloat16>(e, B * C, -2, 2),
       w = random<bfloat16>(e, C, .5, 1.5), b = random<bfloat16>(e, C);
  auto mean = random<float>(e, B * T, -.2, .2), rstd = random<float>(e, B * T, .8, 1.2);
  auto out = constant<bfloat16>(e, n, NAN);
  auto amax = constant<float>(e, C, 0);
  Job j;
  j.mbytes = 6e-6 * n;
  j.add(mega, c, x.view(B, T, C), mean.view(B, T), rstd.view(B, T), w.view(C), b.view(C), gate.view(B, 1, C),
        TensorView<bfloat16, 3>(res.p, {B, T, C}, {int64_t(T) * C, 1, T}), out.view(B, T, C), amax.p, p, seed);
  j.check = [=]() -> std::string {
    std::vector<double> want(n), most(C);
    for (size_t i = 0; i < n; ++i) {
      const int ch = i % C, t = i / C % T, bb = int(i / C / T);
      const double z = (x[i] - mean[bb * T + t]) * rstd[bb * T + t] * w[ch] + b[ch];
      double y = z * .5 * std::erfc(-z * M_SQRT1_2) / (1 + std::exp(-gate[bb * C + ch]));
      const float u = float(reference_philox(seed, i)[0] >> 8) * 0x1p-24f;
      y = u >= p ? y / (1 - double(p)) : 0;
      want[i] = y + res[(size_t(bb) * C + ch) * T + t];
      most[ch] = std::max(most[ch], std::abs(want[i]));
    }
    auto a = agree(out.now(), want, 1e-2, 1e-2), m = agree(amax.now(), most, 1e-2, 1e-2);
    return a.empty() ? m : a;
  };
  return j;
});

// --- logcumsumexp along L of [B, L, C], and its gradient: dx_l = e^(x_l - y_l) R_l, R_l = g_l + e^(y_l - y_l+1) R_l+1
struct LcseCfg {
  int BL = 64, BC = 32;
};
auto lcse_fwd = kernel("user_lcse_fwd", [](const LcseCfg& c, Tensor<const bfloat16, 3> X, Tensor<float, 3> Y) {
                  auto ch = program_id(0) * c.BC, b = program_id(1);
                  Tile m = full({1, c.BC}, -1e30f, f32), s = zeros({1, c.BC}, f32);
                  for (auto l : range(0, X.dim(1), c.BL)) {
                    auto x = cast(X.load({b, l, ch}, {c.BL, c.BC}, {.pad = -1e30}), f32) * 1.44269504f;
                    auto [bm, bs] = scan({x, ones({c.BL, c.BC}, f32)}, axis(0), [](Tile m0, Tile s0, Tile m1, Tile s1) {
                      auto top = max(m0, m1);
                      return std::tuple(top, s0 * exp2(m0 - top) + s1 * exp2(m1 - top));
                    });
                    auto top = max(bm, m);
                    auto all = bs * exp2(bm - top) + s * exp2(m - top);
                    Y.store({b, l, ch}, (top + log2(all)) * 0.69314718f);
                    m = extract(top, {c.BL - 1, 0}, {1, c.BC});
                    s = extract(all, {c.BL - 1, 0}, {1, c.BC});
                  }
                }).grid([](const LcseCfg& c, const auto& x, const auto&) {
  return Grid{cdiv(x.shape[2], c.BC), x.shape[0]};
});
auto lcse_bwd = kernel("user_lcse_bwd", [](const LcseCfg& c, Tensor<const bfloat16, 3> X, Tensor<const float, 3> Y,
                                           Tensor<const float, 3> dY, Tensor<bfloat16, 3> dX) {
                  auto ch = program_id(0) * c.BC, b = program_id(1);
                  Tile later = zeros({1, c.BC}, f32);
                  auto blocks = cdiv(X.dim(1), c.BL);
                  for (auto i : range(blocks - 1, -1, -1)) {
                    auto l = i * c.BL;
                    auto y = Y.load({b, l, ch}, {c.BL, c.BC}, {.pad = 1e30});
                    auto next = Y.load({b, l + 1, ch}, {c.BL, c.BC}, {.pad = 1e30});
                    auto g = dY.load({b, l, ch}, {c.BL, c.BC});
                    auto [a, r] =
                        scan({exp(y - next), g}, axis(0),
                             [](Tile a0, Tile r0, Tile a1, Tile r1) { return std::tuple(a0 * a1, r1 + a1 * r0); },
                             {.reverse = true});
                    auto R = r + a * later;
                    auto x = cast(X.load({b, l, ch}, {c.BL, c.BC}), f32);
                    dX.store({b, l, ch}, cast(exp(x - y) * R, bf16));
                    later = extract(R, {0, 0}, {1, c.BC});
                  }
                }).grid([](const LcseCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[2], c.BC), x.shape[0]};
});
Register r4("logcumsumexp_mid", [](Env& e) {
  LcseCfg c{e.field("BL", e.big ? 64 : 32), e.field("BC", e.big ? 32 : 16)};
  const int B = e.big ? 16 : 2, L = e.big ? 2048 : 77, C = e.big ? 1024 : 40;
  const size_t n = size_t(B) * L * C;
  auto x = random<bfloat16>(e, n, -4, 4);
  auto g = random<float>(e, n);
  std::vector<double> want(e.big ? 0 : n), wx(e.big ? 0 : n);
  auto y = constant<float>(e, n, NAN);
  auto dx = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 16e-6 * n;
  j.inTurn = true;
  j.add(lcse_fwd, c, x.view(B, L, C), y.view(B, L, C));
  j.add(lcse_bwd, c, x.view(B, L, C), y.view(B, L, C), g.view(B, L, C), dx.view(B, L, C));
  j.check = [=]() mutable -> std::string {
    for (int b = 0; b < B; ++b)
      for (int ch = 0; ch < C; ++ch) {
        auto at = [&](int l) { return (size_t(b) * L + l) * C + ch; };
        double s = 0, r = 0;
        for (int l = 0; l < L; ++l) want[at(l)] = std::log(s += std::exp(x[at(l)]));
        for (int l = L; l-- > 0;) r += g[at(l)] * std::exp(-want[at(l)]), wx[at(l)] = std::exp(x[at(l)]) * r;
      }
    auto a = agree(y.now(), want, 1e-4, 1e-4), b = agree(dx.now(), wx, 1e-2, 1e-2);
    return a.empty() ? b : a;
  };
  return j;
});
}  // namespace beside_triton_gradients
}  // namespace users
