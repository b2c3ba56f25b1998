// beside_triton_heads.cpp - attention: MLA backward, AlphaFold's triangle attention backward, SAM's relative positions,
// Reformer's hashed chunks.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_heads {

constexpr float kLog2e = 1.4426950408889634f;

// --- MLA prefill backward, causal: q, k [H, S, 192], v [H, S, 128]
struct MlaCfg {
  int BM = 64, BN = 64, D = 192, DV = 128, warps = 8;
};
auto mla_delta = kernel("user_mla_delta", [](const MlaCfg& c, Tensor<const bfloat16, 3> O, Tensor<const bfloat16, 3> dO,
                                             Tensor<float, 2> delta) {
                   auto h = program_id(1), m = program_id(0) * c.BM;
                   auto o = O.load({h, m, 0}, {c.BM, c.DV}), g = dO.load({h, m, 0}, {c.BM, c.DV});
                   delta.store({h, m}, squeeze(sum(cast(o, f32) * cast(g, f32), axis(1)), 1));
                 }).grid([](const MlaCfg& c, const auto& o, const auto&...) {
  return Grid{cdiv(o.shape[1], c.BM), o.shape[0]};
});
auto mla_dq =
    kernel("user_mla_dq", [](const MlaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                             Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> dO, Tensor<const float, 2> lse,
                             Tensor<const float, 2> delta, Tensor<bfloat16, 3> dQ, F32 scale) {
      if (c.warps) num_warps(c.warps);
      auto h = program_id(1), m = (num_programs(0) - 1 - program_id(0)) * c.BM;
      auto q = Q.load({h, m, 0}, {c.BM, c.D}), g = dO.load({h, m, 0}, {c.BM, c.DV});
      auto l = lse.load({h, m}, {c.BM}).col() * kLog2e, d = delta.load({h, m}, {c.BM}).col();
      auto row = (m + arange(0, c.BM)).col();
      Tile dq = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, min(m + c.BM, K.dim(1)), c.BN)) {
        auto k = K.load({h, n, 0}, {c.BN, c.D}), v = V.load({h, n, 0}, {c.BN, c.DV});
        auto s = dot(q, trans(k)) * (scale * kLog2e) - l;
        auto p = exp2(where((n + arange(0, c.BN)).row() <= row, s, -INFINITY));
        auto ds = p * (dot(g, trans(v)) - d);
        dq = dot(cast(ds, bf16), k, dq);
      }
      dQ.store({h, m, 0}, cast(dq * scale, bf16));
    }).grid([](const MlaCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
auto mla_dkdv = kernel("user_mla_dkdv", [](const MlaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                           Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> dO,
                                           Tensor<const float, 2> lse, Tensor<const float, 2> delta,
                                           Tensor<bfloat16, 3> dK, Tensor<bfloat16, 3> dV, F32 scale) {
                  if (c.warps) num_warps(c.warps);
                  auto h = program_id(1), n = program_id(0) * c.BN;
                  auto k = K.load({h, n, 0}, {c.BN, c.D}), v = V.load({h, n, 0}, {c.BN, c.DV});
                  auto key = (n + arange(0, c.BN)).col();
                  Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.DV}, f32);
                  for (auto m : range(n / c.BM * c.BM, Q.dim(1), c.BM)) {
                    auto q = Q.load({h, m, 0}, {c.BM, c.D}), g = dO.load({h, m, 0}, {c.BM, c.DV});
                    auto l = lse.load({h, m}, {c.BM}, {.pad = INFINITY}).row() * kLog2e;
                    auto s = dot(k, trans(q)) * (scale * kLog2e) - l;
                    auto p = exp2(where(key <= (m + arange(0, c.BM)).row(), s, -INFINITY));
                    dv = dot(cast(p, bf16), g, dv);
                    auto ds = p * (dot(v, trans(g)) - delta.load({h, m}, {c.BM}).row());
                    dk = dot(cast(ds, bf16), q, dk);
                  }
                  dK.store({h, n, 0}, cast(dk * scale, bf16));
                  dV.store({h, n, 0}, cast(dv, bf16));
                }).grid([](const MlaCfg& c, const auto&, const auto& k, const auto&...) {
  return Grid{cdiv(k.shape[1], c.BN), k.shape[0]};
});
Register r1("mla_bwd", [](Env& e) {
  MlaCfg c;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  MlaCfg cq = c;
  cq.BM = e.field("QBM", c.BM), cq.BN = e.field("QBN", c.BN);
  const int H = e.big ? 16 : 2, S = e.big ? 4096 : 139, D = 192, DV = 128;
  if (!e.big) c.D = cq.D = D;
  const float scale = 1 / std::sqrt(float(D));
  auto q = random<bfloat16>(e, size_t(H) * S * D), k = random<bfloat16>(e, size_t(H) * S * D);
  auto v = random<bfloat16>(e, size_t(H) * S * DV), g = random<bfloat16>(e, size_t(H) * S * DV);
  std::vector<double> P, dP, L(size_t(H) * S, 8.);
  std::vector<bfloat16> out;
  std::vector<double> wq, wk, wv;
  if (!e.big) {
    P.assign(size_t(H) * S * S, 0), wq.assign(size_t(H) * S * D, 0), wk = wq, wv.assign(size_t(H) * S * DV, 0);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < S; ++i) {
        const size_t r = size_t(h) * S + i;
        double sum = 0;
        for (int j = 0; j <= i; ++j) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[r * D + d] * k[(size_t(h) * S + j) * D + d];
          sum += P[r * S + j] = std::exp(s * scale);
        }
        L[r] = std::log(sum);
        double delta = 0;
        std::vector<double> o(DV);
        for (int j = 0; j <= i; ++j) {
          P[r * S + j] /= sum;
          for (int d = 0; d < DV; ++d) o[d] += P[r * S + j] * v[(size_t(h) * S + j) * DV + d];
        }
        for (int d = 0; d < DV; ++d) {
          out.push_back(bfloat16(float(o[d])));
          delta += double(float(out.back())) * g[r * DV + d];
        }
        for (int j = 0; j <= i; ++j) {
          const size_t x = size_t(h) * S + j;
          double dp = 0;
          for (int d = 0; d < DV; ++d) {
            dp += g[r * DV + d] * v[x * DV + d];
            wv[x * DV + d] += P[r * S + j] * g[r * DV + d];
          }
          const double ds = P[r * S + j] * (dp - delta) * scale;
          for (int d = 0; d < D; ++d) wq[r * D + d] += ds * k[x * D + d], wk[x * D + d] += ds * q[r * D + d];
        }
      }
  }
  auto o = e.big ? random<bfloat16>(e, size_t(H) * S * DV) : repeated(e, size_t(H) * S * DV, out);
  auto lse = filled<float>(e, size_t(H) * S, [&](size_t i) { return float(L[i]); });
  auto delta = constant<float>(e, size_t(H) * S, NAN);
  auto dq = constant<bfloat16>(e, size_t(H) * S * D, NAN), dk = constant<bfloat16>(e, size_t(H) * S * D, NAN),
       dv = constant<bfloat16>(e, size_t(H) * S * DV, NAN);
  Job j;
  j.gflop = 1e-9 * H * S * S * 1152;
  j.add(mla_delta, c, o.view(H, S, DV), g.view(H, S, DV), delta.view(H, S));
  j.add(mla_dkdv, c, q.view(H, S, D), k.view(H, S, D), v.view(H, S, DV), g.view(H, S, DV), lse.view(H, S),
        delta.view(H, S), dk.view(H, S, D), dv.view(H, S, DV), scale);
  j.add(mla_dq, cq, q.view(H, S, D), k.view(H, S, D), v.view(H, S, DV), g.view(H, S, DV), lse.view(H, S),
        delta.view(H, S), dq.view(H, S, D), scale);
  j.check = [=]() -> std::string {
    auto a = agree(dq.now(), wq, 1e-2, 1e-2), b = agree(dk.now(), wk, 2e-2, 1e-2), d = agree(dv.now(), wv, 2e-2, 1e-2);
    return !a.empty() ? "dq: " + a : !b.empty() ? "dk: " + b : !d.empty() ? "dv: " + d : "";
  };
  return j;
});

// --- triangle attention backward: q, k, v [I, H, N, D], bias [H, N, N], mask [I, N]
struct TriCfg {
  int BM = 64, BN = 64, D = 32, splits = 8;
};
auto tri_dq =
    kernel("user_tri_dq", [](const TriCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                             Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 4> dO, Tensor<const bfloat16, 3> bias,
                             Tensor<const uint8_t, 2> mask, Tensor<const float, 3> lse, Tensor<const float, 3> delta,
                             Tensor<bfloat16, 4> dQ, F32 scale) {
      auto m = program_id(0) * c.BM, h = program_id(1), i = program_id(2);
      auto q = Q.load({i, h, m, 0}, {c.BM, c.D}), g = dO.load({i, h, m, 0}, {c.BM, c.D});
      auto l = lse.load({i, h, m}, {c.BM}).col(), d = delta.load({i, h, m}, {c.BM}).col();
      Tile dq = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, K.dim(2), c.BN)) {
        auto k = K.load({i, h, n, 0}, {c.BN, c.D}), v = V.load({i, h, n, 0}, {c.BN, c.D});
        auto seen = (mask.load({i, n}, {c.BN}) != 0).row();
        auto s = dot(q, trans(k)) * scale + cast(bias.load({h, m, n}, {c.BM, c.BN}), f32) - l;
        auto p = exp2(where(seen, s * kLog2e, -INFINITY));
        auto ds = p * (dot(g, trans(v)) - d);
        dq = dot(cast(ds, bf16), k, dq);
      }
      dQ.store({i, h, m, 0}, cast(dq * scale, bf16));
    }).grid([](const TriCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[2], c.BM), q.shape[1], q.shape[0]};
    });
auto tri_dkdv = kernel("user_tri_dkdv", [](const TriCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                           Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 4> dO,
                                           Tensor<const bfloat16, 3> bias, Tensor<const uint8_t, 2> mask,
                                           Tensor<const float, 3> lse, Tensor<const float, 3> delta,
                                           Tensor<bfloat16, 4> dK, Tensor<bfloat16, 4> dV, F32 scale) {
                  auto n = program_id(0) * c.BN, h = program_id(1), i = program_id(2);
                  auto k = K.load({i, h, n, 0}, {c.BN, c.D}), v = V.load({i, h, n, 0}, {c.BN, c.D});
                  auto seen = (mask.load({i, n}, {c.BN}) != 0).col();
                  Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
                  for (auto m : range(0, Q.dim(2), c.BM)) {
                    auto q = Q.load({i, h, m, 0}, {c.BM, c.D}), g = dO.load({i, h, m, 0}, {c.BM, c.D});
                    auto l = lse.load({i, h, m}, {c.BM}, {.pad = INFINITY}).row();
                    auto s = dot(k, trans(q)) * scale + cast(trans(bias.load({h, m, n}, {c.BM, c.BN})), f32) - l;
                    auto p = exp2(where(seen, s * kLog2e, -INFINITY));
                    dv = dot(cast(p, bf16), g, dv);
                    auto ds = p * (dot(v, trans(g)) - delta.load({i, h, m}, {c.BM}).row());
                    dk = dot(cast(ds, bf16), q, dk);
                  }
                  dK.store({i, h, n, 0}, cast(dk * scale, bf16));
                  dV.store({i, h, n, 0}, cast(dv, bf16));
                }).grid([](const TriCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[2], c.BN), q.shape[1], q.shape[0]};
});
auto tri_dbias = kernel("user_tri_dbias", [](const TriCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                             Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 4> dO,
                                             Tensor<const bfloat16, 3> bias, Tensor<const uint8_t, 2> mask,
                                             Tensor<const float, 3> lse, Tensor<const float, 3> delta,
                                             Tensor<float, 4> dB, F32 scale) {
                   // dB [splits, H, N, N]: sums over a part of the rows
                   auto blocks = cdiv(K.dim(2), c.BN);
                   auto m = program_id(0) / blocks * c.BM, n = program_id(0) % blocks * c.BN;
                   auto h = program_id(1), part = program_id(2);
                   auto per = cdiv(Q.dim(0), c.splits);
                   auto b = cast(bias.load({h, m, n}, {c.BM, c.BN}), f32);
                   Tile sums = zeros({c.BM, c.BN}, f32);
                   for (auto i : range(part * per, min((part + 1) * per, Q.dim(0)))) {
                     auto q = Q.load({i, h, m, 0}, {c.BM, c.D}), g = dO.load({i, h, m, 0}, {c.BM, c.D});
                     auto k = K.load({i, h, n, 0}, {c.BN, c.D}), v = V.load({i, h, n, 0}, {c.BN, c.D});
                     auto l = lse.load({i, h, m}, {c.BM}).col(), d = delta.load({i, h, m}, {c.BM}).col();
                     auto seen = (mask.load({i, n}, {c.BN}) != 0).row();
                     auto s = dot(q, trans(k)) * scale + b - l;
                     auto p = exp2(where(seen, s * kLog2e, -INFINITY));
                     sums += p * (dot(g, trans(v)) - d);
                   }
                   dB.store({part, h, m, n}, sums);
                 }).grid([](const TriCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[2], c.BM) * cdiv(q.shape[2], c.BN), q.shape[1], c.splits};
});
struct TriSumCfg {
  int BLOCK = 1024, splits = 8;
};
auto tri_sum = kernel("user_tri_sum", [](const TriSumCfg& c, Tensor<const float, 2> parts, Tensor<bfloat16, 1> out) {
                 auto i = program_id(0) * c.BLOCK;
                 out.store({i}, cast(squeeze(sum(parts.load({0, i}, {c.splits, c.BLOCK}), axis(0)), 0), bf16));
               }).grid([](const TriSumCfg& c, const auto&, const auto& o) { return Grid{cdiv(o.shape[0], c.BLOCK)}; });
Register r2("triangle_bwd", [](Env& e) {
  TriCfg c;
  if (!e.big) c.BM = 32, c.BN = 16, c.splits = 2;
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.splits = e.field("splits", c.splits);
  const int N = e.big ? 384 : 41, I = e.big ? 384 : 5, H = e.big ? 4 : 2, D = 32;
  const float scale = 1 / std::sqrt(float(D));
  const size_t rows = size_t(I) * H * N;
  auto q = random<bfloat16>(e, rows * D, -2, 2), k = random<bfloat16>(e, rows * D, -2, 2),
       v = random<bfloat16>(e, rows * D), g = random<bfloat16>(e, rows * D);
  auto bias = random<bfloat16>(e, size_t(H) * N * N);
  auto mask = drawn<uint8_t>(e, size_t(I) * N, [&] { return uint8_t(e.uniform() < .85); });
  std::vector<double> L(rows, 6.), dl(rows, .1), wq, wk, wv, wb(size_t(H) * N * N);
  if (!e.big) {
    wq.assign(rows * D, 0), wk = wq, wv = wq;
    for (int i = 0; i < I; ++i)
      for (int h = 0; h < H; ++h)
        for (int m = 0; m < N; ++m) {
          const size_t r = (size_t(i) * H + h) * N + m;
          std::vector<double> p(N), dp(N);
          double total = 0, delta = 0;
          for (int n = 0; n < N; ++n) {
            const size_t x = (size_t(i) * H + h) * N + n;
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[r * D + d] * k[x * D + d], dp[n] += g[r * D + d] * v[x * D + d];
            p[n] = mask.at(size_t(i) * N + n) ? std::exp(s * scale + bias[(size_t(h) * N + m) * N + n]) : 0;
            total += p[n];
          }
          for (int n = 0; n < N; ++n) p[n] /= total, delta += p[n] * dp[n];
          L[r] = std::log(total), dl[r] = delta;
          for (int n = 0; n < N; ++n) {
            const size_t x = (size_t(i) * H + h) * N + n;
            const double ds = p[n] * (dp[n] - delta);
            wb[(size_t(h) * N + m) * N + n] += ds;
            for (int d = 0; d < D; ++d)
              wq[r * D + d] += ds * scale * k[x * D + d], wk[x * D + d] += ds * scale * q[r * D + d],
                  wv[x * D + d] += p[n] * g[r * D + d];
          }
        }
  }
  auto lse = filled<float>(e, rows, [&](size_t i) { return float(L[i]); });
  auto delta = filled<float>(e, rows, [&](size_t i) { return float(dl[i]); });
  auto dq = constant<bfloat16>(e, rows * D, NAN), dk = constant<bfloat16>(e, rows * D, NAN),
       dv = constant<bfloat16>(e, rows * D, NAN), db = constant<bfloat16>(e, size_t(H) * N * N, NAN);
  auto parts = constant<float>(e, size_t(c.splits) * H * N * N, NAN);
  auto t = [&](const auto& a) { return a.view(I, H, N, D); };
  Job j;
  j.gflop = 2e-9 * 9 * rows * N * D;
  j.add(tri_dkdv, c, t(q), t(k), t(v), t(g), bias.view(H, N, N), mask.view(I, N), lse.view(I, H, N),
        delta.view(I, H, N), t(dk), t(dv), scale);
  j.add(tri_dq, c, t(q), t(k), t(v), t(g), bias.view(H, N, N), mask.view(I, N), lse.view(I, H, N), delta.view(I, H, N),
        t(dq), scale);
  j.add(tri_dbias, c, t(q), t(k), t(v), t(g), bias.view(H, N, N), mask.view(I, N), lse.view(I, H, N),
        delta.view(I, H, N), parts.view(c.splits, H, N, N), scale);
  j.add(tri_sum, TriSumCfg{1024, c.splits}, parts.view(c.splits, H * N * N), db.view(H * N * N));
  j.check = [=]() -> std::string {
    auto a = agree(dq.now(), wq, 1e-2, 1e-2), b = agree(dk.now(), wk, 1e-2, 1e-2), d = agree(dv.now(), wv, 1e-2, 1e-2),
         f = agree(db.now(), wb, 1e-2, 1e-2);
    return !a.empty() ? "dq: " + a : !b.empty() ? "dk: " + b : !d.empty() ? "dv: " + d : !f.empty() ? "db: " + f : "";
  };
  return j;
});

// --- SAM: attention over a grid of H x W with rel_h[q, ky] + rel_w[q, kx]; a block of keys is R rows of the grid
struct SamCfg {
  int BM = 128, W = 64, D = 64;
};
auto sam = kernel("user_sam", [](const SamCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                 Tensor<const half, 3> V, Tensor<const half, 3> rel_h, Tensor<const half, 3> rel_w,
                                 Tensor<half, 3> O, Tensor<float, 2> lse, F32 scale) {
             auto h = program_id(1), m = program_id(0) * c.BM;
             auto q = Q.load({h, m, 0}, {c.BM, c.D});
             auto rw = cast(rel_w.load({h, m, 0}, {c.BM, c.W}), f32) * kLog2e;
             Tile top = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
             for (auto y : range(rel_h.dim(2))) {
               auto k = K.load({h, y * c.W, 0}, {c.W, c.D}), v = V.load({h, y * c.W, 0}, {c.W, c.D});
               auto rh = cast(rel_h.load({h, m, y}, {c.BM, 1}), f32) * kLog2e;
               auto s = dot(q, trans(k)) * (scale * kLog2e) + (rw + rh);
               auto now = max(top, max(s, axis(1)));
               auto p = exp2(s - now), alpha = exp2(top - now);
               l = l * alpha + sum(p, axis(1));
               acc = dot(cast(p, f16), v, acc * alpha);
               top = now;
             }
             O.store({h, m, 0}, cast(acc / l, f16));
             lse.store({h, m}, squeeze((top + log2(l)) * 0.69314718f, 1));
           }).grid([](const SamCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
Register r3("sam_attention", [](Env& e) {
  const int B = e.big ? 48 : 2, H = e.big ? 64 : 9, W = e.big ? 64 : 16, S = H * W, D = 64;
  SamCfg c{e.field("BM", e.big ? 128 : 64), W, D};
  auto q = random<half>(e, size_t(B) * S * D, -2, 2), k = random<half>(e, size_t(B) * S * D, -2, 2),
       v = random<half>(e, size_t(B) * S * D);
  auto rh = random<half>(e, size_t(B) * S * H, -2, 2), rw = random<half>(e, size_t(B) * S * W, -2, 2);
  auto o = constant<half>(e, size_t(B) * S * D, NAN);
  auto lse = constant<float>(e, size_t(B) * S, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * S * S * D;
  j.add(sam, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), rh.view(B, S, H), rw.view(B, S, W), o.view(B, S, D),
        lse.view(B, S), scale);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(B) * S * D), wl(size_t(B) * S);
    for (size_t r = 0; r < size_t(B) * S; ++r) {
      double total = 0;
      for (int n = 0; n < S; ++n) {
        const size_t x = r / S * S + n;
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[r * D + d] * k[x * D + d];
        total += s = std::exp(s * scale + rh[r * H + n / W] + rw[r * W + n % W]);
        for (int d = 0; d < D; ++d) want[r * D + d] += s * v[x * D + d];
      }
      for (int d = 0; d < D; ++d) want[r * D + d] /= total;
      wl[r] = std::log(total);
    }
    auto a = agree(o.now(), want, 3e-3, 3e-3), b = agree(lse.now(), wl, 3e-3, 3e-3);
    return a.empty() ? b : a;
  };
  return j;
});

// --- Reformer: shared queries and keys [BH, S, D], order [BH, R, S] of positions sorted by bucket
struct LshCfg {
  int B = 128, D = 64;
};
auto lsh = kernel("user_lsh", [](const LshCfg& c, Tensor<const bfloat16, 3> QK, Tensor<const bfloat16, 3> V,
                                 Tensor<const int, 3> order, Tensor<bfloat16, 4> O, Tensor<float, 3> lse, I32 rounds,
                                 F32 scale) {
             auto chunk = program_id(0), r = program_id(1), h = program_id(2);
             auto chunks = num_programs(0);
             auto qk = QK.select(0, h), v = V.select(0, h);
             auto pq = order.load({h, r, chunk * c.B}, {c.B}, {.pad = -1});
             auto q = qk.gather(pq, 0, c.D);
             Tile top = full({c.B, 1}, -INFINITY, f32), l = zeros({c.B, 1}, f32), acc = zeros({c.B, c.D}, f32);
             for (int back = 0; back < 2; ++back) {
               auto other = (chunk - back + chunks) % chunks;
               auto pk = order.load({h, r, other * c.B}, {c.B}, {.pad = 1 << 30});
               auto k = qk.gather(pk, 0, c.D);
               auto kf = cast(k, f32);
               auto norm = rsqrt(squeeze(sum(kf * kf, axis(1)), 1) + 1e-6f).row() * (scale * kLog2e);
               auto s = dot(q, trans(k)) * norm;
               s = where(pk.row() == pq.col(), -1e5f, s);  // itself only where there is nothing else
               s = where(pk.row() <= pq.col(), s, -INFINITY);
               auto now = max(top, max(s, axis(1)));
               auto safe = where(now == -INFINITY, 0.f, now);
               auto p = exp2(s - safe), alpha = exp2(top - safe);
               l = l * alpha + sum(p, axis(1));
               acc = dot(cast(p, bf16), v.gather(pk, 0, c.D), acc * alpha);
               top = now;
             }
             O.select(0, h).select(0, r).scatter(pq, 0, cast(acc / max(l, 1e-30f), bf16));
             auto row = lse.ptr() + cast(h * rounds + r, i64) * lse.stride(1);
             store(row + pq, squeeze((top + log2(l)) * 0.69314718f, 1), {.mask = pq >= 0});
           }).grid([](const LshCfg& c, const auto&, const auto&, const auto& order, const auto&...) {
  return Grid{cdiv(order.shape[2], c.B), order.shape[1], order.shape[0]};
});
Register r4("lsh_attention", [](Env& e) {
  const int BH = e.big ? 32 : 2, S = e.big ? 8192 : 181, R = e.big ? 4 : 2, D = 64, buckets = e.big ? 128 : 6;
  LshCfg c{e.field("B", e.big ? 128 : 32), D};
  auto qk = random<bfloat16>(e, size_t(BH) * S * D), v = random<bfloat16>(e, size_t(BH) * S * D);
  std::vector<int> all(size_t(BH) * R * S);
  for (int i = 0; i < BH * R; ++i) {
    std::vector<int> bucket(S);
    for (auto& b : bucket) b = int(e.uniform() * buckets);
    int* p = &all[size_t(i) * S];
    for (int s = 0; s < S; ++s) p[s] = s;
    std::stable_sort(p, p + S, [&](int a, int b) { return bucket[a] < bucket[b]; });
  }
  auto order = repeated(e, all.size(), all);
  auto o = constant<bfloat16>(e, size_t(BH) * R * S * D, NAN);
  auto lse = constant<float>(e, size_t(BH) * R * S, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 8e-9 * BH * R * S * c.B * D;
  j.add(lsh, c, qk.view(BH, S, D), v.view(BH, S, D), order.view(BH, R, S), o.view(BH, R, S, D), lse.view(BH, R, S), R,
        scale);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(BH) * R * S * D), wl(size_t(BH) * R * S);
    const int chunks = cdiv(S, c.B);
    for (int hr = 0; hr < BH * R; ++hr)
      for (int i = 0; i < S; ++i) {
        const int pq = all[size_t(hr) * S + i], chunk = i / c.B, before = (chunk + chunks - 1) % chunks;
        const size_t h = hr / R, to = size_t(hr) * S + pq;
        std::vector<std::pair<double, int>> seen;
        for (int x : {chunk, before})
          for (int n = x * c.B; n < std::min(S, (x + 1) * c.B); ++n) {
            const int pk = all[size_t(hr) * S + n];
            if (pk > pq) continue;
            double s = 0, norm = 1e-6;
            for (int d = 0; d < D; ++d) {
              const double y = qk[(h * S + pk) * D + d];
              s += qk[(h * S + pq) * D + d] * y, norm += y * y;
            }
            seen.push_back({pk == pq ? -1e5 * M_LN2 : s * scale / std::sqrt(norm), pk});
          }
        double most = -INFINITY, total = 0;
        for (auto& [s, pk] : seen) most = std::max(most, s);
        for (auto& [s, pk] : seen) {
          total += s = std::exp(s - most);
          for (int d = 0; d < D; ++d) want[to * D + d] += s * v[(h * S + pk) * D + d];
        }
        for (int d = 0; d < D; ++d) want[to * D + d] /= total;
        wl[to] = most + std::log(total);
      }
    auto a = agree(o.now(), want, 1e-2, 1e-2), b = agree(lse.now(), wl, 1e-2, 1e-2);
    return a.empty() ? b : a;
  };
  return j;
});
}  // namespace beside_triton_heads
}  // namespace users
