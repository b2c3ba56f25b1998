// swept_keys.cpp - attention of other shapes, swept: few queries, a latent cache, backward in one kernel, e4m3 inputs.
#include "tests/users/swept_attention.h"
namespace users {
namespace swept_keys {
using swept_attention::attend, swept_attention::CausalGradients, swept_attention::kLog2e;

// --- 5. cross attention: few queries (text, latents), many keys
struct CrossCfg {
  int D = 64, BM = 64, BN = 64, warps = 4, stages = 0;
};
auto cross = kernel("user_cross_attention",
                    [](const CrossCfg& c, Tensor<const half, 4> Q, Tensor<const half, 4> K, Tensor<const half, 4> V,
                       Tensor<half, 4> O, F32 scale) {  // [B, H, N, D]
                      if (c.warps) num_warps(c.warps);
                      auto m0 = program_id(0) * c.BM, h = program_id(1), b = program_id(2), N = K.dim(2);
                      auto q = Q.load({b, h, m0, 0}, {c.BM, c.D});
                      Tile m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
                      for (auto i : range(0, N, c.BN, {.stages = c.stages})) {
                        auto k = K.load({b, h, i, 0}, {c.BN, c.D}), v = V.load({b, h, i, 0}, {c.BN, c.D});
                        auto s = dot(q, trans(k)) * (scale * kLog2e);
                        s = where((i + arange(0, c.BN)).row() < N, s, -INFINITY);
                        auto m2 = max(m, max(s, axis(1)));
                        auto p = exp2(s - m2), alpha = exp2(m - m2);
                        l = l * alpha + sum(p, axis(1));
                        acc = dot(cast(p, f16), v, acc * alpha);
                        m = m2;
                      }
                      O.store({b, h, m0, 0}, cast(acc / l, f16));
                    })
                 .grid([](const CrossCfg& c, const auto& q, const auto&...) {
                   return Grid{cdiv(q.shape[2], c.BM), q.shape[1], q.shape[0]};
                 });
Job cross_attention(Env& e) {
  const CrossCfg c{e.field("D", 64), e.field("BM", 64), e.field("BN", 64), e.field("warps", 4), e.field("stages", 0)};
  const int B = e.big ? 32 : 2, H = e.big ? 16 : 2, M = e.field("M", 77), N = e.big ? 4096 : 2 * c.BN + 29;
  const float scale = 1 / std::sqrt(float(c.D));
  auto q = random<half>(e, size_t(B) * H * M * c.D, -2, 2), k = random<half>(e, size_t(B) * H * N * c.D),
       v = random<half>(e, size_t(B) * H * N * c.D);
  auto o = constant<half>(e, size_t(B) * H * M * c.D, NAN);
  Job j;
  j.gflop = 4e-9 * B * H * c.D * double(M) * N, j.mbytes = 4e-6 * B * H * N * c.D;
  j.add(cross, c, q.view(B, H, M, c.D), k.view(B, H, N, c.D), v.view(B, H, N, c.D), o.view(B, H, M, c.D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * M * c.D);
    for (int h = 0; h < B * H; ++h)
      for (int t = 0; t < M; ++t) {
        const size_t r = (size_t(h) * M + t) * c.D, keys = size_t(h) * N;
        attend(
            0, N,
            [&](int n) {
              double s = 0;
              for (int d = 0; d < c.D; ++d) s += q[r + d] * k[(keys + n) * c.D + d];
              return s * scale;
            },
            [&](int n, int d) { return v[(keys + n) * c.D + d]; }, c.D, &want[r]);
      }
    return agree(o.now(), want, 4e-3, 4e-3);
  };
  return j;
}
Register r5("cross_attention", cross_attention);

// --- 6. decode over a latent cache (MLA): keys are 576 wide, values are their first 512 columns
struct LatentCfg {
  int BN = 32, splits = 4, warps = 4, stages = 0, H = 16, L = 512, R = 64;
};
auto latent = kernel("user_latent_decode",
                     [](const LatentCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> C,
                        Tensor<const int, 1> length, Tensor<float, 4> part, Tensor<float, 3> lse,
                        F32 scale) {  // Q [B, H, L + R], C [B, T, L + R], part [B, splits, H, L]
                       if (c.warps) num_warps(c.warps);
                       auto b = program_id(0), s = program_id(1), n = length.load({b});
                       auto per = cdiv(cdiv(n, c.splits), c.BN) * c.BN;
                       auto begin = s * per, end = min(begin + per, n);
                       auto q = Q.load({b, 0, 0}, {c.H, c.L}), qr = Q.load({b, 0, c.L}, {c.H, c.R});
                       Tile m = full({c.H, 1}, -1e30f, f32), l = zeros({c.H, 1}, f32), acc = zeros({c.H, c.L}, f32);
                       for (auto i : range(begin, end, c.BN, {.stages = c.stages})) {
                         auto kv = C.load({b, i, 0}, {c.BN, c.L}), kr = C.load({b, i, c.L}, {c.BN, c.R});
                         auto x = dot(qr, trans(kr), dot(q, trans(kv))) * (scale * kLog2e);
                         x = where((i + arange(0, c.BN)).row() < end, x, -INFINITY);
                         auto m2 = max(m, max(x, axis(1)));
                         auto p = exp2(x - m2), alpha = exp2(m - m2);
                         l = l * alpha + sum(p, axis(1));
                         acc = dot(cast(p, bf16), kv, acc * alpha);
                         m = m2;
                       }
                       part.store({b, s, 0, 0}, acc / where(l == 0.f, 1.f, l));
                       lse.store({b, s, 0}, squeeze(where(l == 0.f, -INFINITY, m + log2(l)), 1));
                     })
                  .grid([](const LatentCfg& c, const auto& q, const auto&...) {
                    return Grid{q.shape[0], c.splits};
                  });
auto latent_combine = kernel("user_latent_combine", [](const LatentCfg& c, Tensor<const float, 4> part,
                                                       Tensor<const float, 3> lse, Tensor<bfloat16, 3> O) {
                        auto h = program_id(0), b = program_id(1);
                        auto x = lse.load({b, 0, only(h)}, {c.splits}).col();
                        auto w = exp2(x - max(x));
                        auto o = part.load({b, 0, only(h), 0}, {c.splits, c.L});
                        O.store({b, h, 0}, cast(squeeze(sum(o * w, axis(0)), 0) / sum(w), bf16));
                      }).grid([](const LatentCfg&, const auto&, const auto&, const auto& o) {
  return Grid{o.shape[1], o.shape[0]};
});
Job latent_decode(Env& e) {
  LatentCfg c{e.field("BN", 32), e.field("splits", e.big ? 4 : 3), e.field("warps", 4), e.field("stages", 0)};
  const int B = e.big ? 64 : 2, T = e.big ? 8192 : 3 * c.BN + 17, W = c.L + c.R, S = c.splits;
  const float scale = 1 / std::sqrt(192.f);
  auto q = random<bfloat16>(e, size_t(B) * c.H * W), cache = random<bfloat16>(e, size_t(B) * T * W);
  auto length = filled<int>(e, B, [&](size_t i) { return e.big ? T - int(i) * 29 : i == 0 ? T : 7; });
  auto part = constant<float>(e, size_t(B) * S * c.H * c.L, NAN), lse = constant<float>(e, size_t(B) * S * c.H, NAN);
  auto o = constant<bfloat16>(e, size_t(B) * c.H * c.L, NAN);
  Job j;
  j.mbytes = 2e-6 * B * T * W, j.gflop = 2e-9 * B * T * c.H * (W + c.L);
  j.add(latent, c, q.view(B, c.H, W), cache.view(B, T, W), length.view(B), part.view(B, S, c.H, c.L),
        lse.view(B, S, c.H), scale);
  j.add(latent_combine, c, part.view(B, S, c.H, c.L), lse.view(B, S, c.H), o.view(B, c.H, c.L));
  j.check = [=] {
    std::vector<double> want(size_t(B) * c.H * c.L);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < c.H; ++h) {
        const size_t r = size_t(b) * c.H + h, keys = size_t(b) * T;
        attend(
            0, length.at(b),
            [&](int n) {
              double s = 0;
              for (int d = 0; d < W; ++d) s += q[r * W + d] * cache[(keys + n) * W + d];
              return s * scale;
            },
            [&](int n, int d) { return cache[(keys + n) * W + d]; }, c.L, &want[r * c.L]);
      }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register r6("latent_decode", latent_decode);

// --- 7. backward in one kernel: a program per block of keys, dQ by atomic adds
struct BwdCfg {
  int D = 64, BM = 64, BN = 128, warps = 8, stages = 0;
};
auto bwd =
    kernel("user_attn_bwd_one",
           [](const BwdCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
              Tensor<const bfloat16, 3> dO, Tensor<const float, 2> lse, Tensor<const float, 2> delta,
              Tensor<float, 3> dQ, Tensor<bfloat16, 3> dK, Tensor<bfloat16, 3> dV, F32 scale) {  // [H, N, D]
             if (c.warps) num_warps(c.warps);
             auto n = program_id(0) * c.BN, h = program_id(1);
             auto k = K.load({h, n, 0}, {c.BN, c.D}), v = V.load({h, n, 0}, {c.BN, c.D});
             auto key = (n + arange(0, c.BN)).row();
             Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
             for (auto m : range(n / c.BM * c.BM, Q.dim(1), c.BM, {.stages = c.stages})) {
               auto q = Q.load({h, m, 0}, {c.BM, c.D}), g = dO.load({h, m, 0}, {c.BM, c.D});
               auto l = lse.load({h, m}, {c.BM}, {.pad = INFINITY}).col() * kLog2e;
               auto s = dot(q, trans(k)) * (scale * kLog2e) - l;
               auto p = exp2(where(key <= (m + arange(0, c.BM)).col(), s, -INFINITY));
               dv = dot(cast(trans(p), bf16), g, dv);
               auto ds = cast(p * (dot(g, trans(v)) - delta.load({h, m}, {c.BM}).col()), bf16);
               dk = dot(trans(ds), q, dk);
               dQ.atomic_add({h, m, 0}, dot(ds, k) * scale);
             }
             dK.store({h, n, 0}, cast(dk * scale, bf16));
             dV.store({h, n, 0}, cast(dv, bf16));
           })
        .grid([](const BwdCfg& c, const auto&, const auto& k, const auto&...) {
          return Grid{cdiv(k.shape[1], c.BN), k.shape[0]};
        });
Job attn_bwd_one(Env& e) {
  const BwdCfg c{e.field("D", 64), e.field("BM", 64), e.field("BN", 128), e.field("warps", 8), e.field("stages", 0)};
  const int H = e.big ? 32 : 2, N = e.big ? 2048 : 139, D = c.D;
  const float scale = 1 / std::sqrt(float(D));
  auto q = random<bfloat16>(e, size_t(H) * N * D), k = random<bfloat16>(e, size_t(H) * N * D),
       v = random<bfloat16>(e, size_t(H) * N * D), g = random<bfloat16>(e, size_t(H) * N * D);
  const CausalGradients want(e, H, N, D, scale, q, k, v, g);
  auto lse = filled<float>(e, size_t(H) * N, [&](size_t i) { return float(want.lse[i]); });
  auto dl = filled<float>(e, size_t(H) * N, [&](size_t i) { return float(want.delta[i]); });
  auto dq = constant<float>(e, size_t(H) * N * D, 0);
  auto dk = constant<bfloat16>(e, size_t(H) * N * D, NAN), dv = constant<bfloat16>(e, size_t(H) * N * D, NAN);
  Job j;
  j.gflop = 5e-9 * H * D * double(N) * N;
  if (!e.big) restore(e, j, dq);
  j.add(bwd, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), g.view(H, N, D), lse.view(H, N), dl.view(H, N),
        dq.view(H, N, D), dk.view(H, N, D), dv.view(H, N, D), scale);
  j.check = [=] { return want.agree_with(dq.now(), dk.now(), dv.now()); };
  return j;
}
Register r7("attn_bwd_one", attn_bwd_one);

// --- 8. prefill in e4m3, a factor per head of each input; probabilities are e4m3, too
struct F8Cfg {
  int D = 128, BM = 128, BN = 64, warps = 8, stages = 0;
};
auto f8 = kernel("user_f8_prefill",
                 [](const F8Cfg& c, Tensor<const fp8_e4m3, 3> Q, Tensor<const fp8_e4m3, 3> K,
                    Tensor<const fp8_e4m3, 3> V, Tensor<const float, 2> factor, Tensor<half, 3> O,
                    F32 scale) {  // [H, T, D], factor [3, H]
                   if (c.warps) num_warps(c.warps);
                   auto m0 = (num_programs(0) - 1 - program_id(0)) * c.BM, h = program_id(1);
                   auto q = Q.load({h, m0, 0}, {c.BM, c.D});
                   auto unit = factor.load({0, h}) * factor.load({1, h}) * scale * kLog2e;
                   auto query = (m0 + arange(0, c.BM)).col();
                   Tile m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
                   for (auto i : range(0, min(m0 + c.BM, K.dim(1)), c.BN, {.stages = c.stages})) {
                     auto k = K.load({h, i, 0}, {c.BN, c.D}), v = V.load({h, i, 0}, {c.BN, c.D});
                     auto s = where((i + arange(0, c.BN)).row() <= query, dot(q, trans(k)) * unit, -INFINITY);
                     auto m2 = max(m, max(s, axis(1)));
                     auto p = exp2(s - m2), alpha = exp2(m - m2);
                     l = l * alpha + sum(p, axis(1));
                     acc = dot(cast(p, f8e4m3), v, acc * alpha);
                     m = m2;
                   }
                   O.store({h, m0, 0}, cast(acc / l * factor.load({2, h}), f16));
                 })
              .grid([](const F8Cfg& c, const auto& q, const auto&...) {
                return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
              });
Job f8_prefill(Env& e) {
  const F8Cfg c{e.field("D", 128), e.field("BM", 128), e.field("BN", 64), e.field("warps", 8), e.field("stages", 0)};
  const int H = !e.big ? 2 : c.D > 128 ? 16 : 32, T = e.big ? 4096 : c.BM + 45, D = c.D;
  const float scale = 1 / std::sqrt(float(D));
  auto q = random<fp8_e4m3>(e, size_t(H) * T * D), k = random<fp8_e4m3>(e, size_t(H) * T * D),
       v = random<fp8_e4m3>(e, size_t(H) * T * D);
  auto factor = random<float>(e, size_t(3) * H, .5, 2);
  auto o = constant<half>(e, size_t(H) * T * D, NAN);
  Job j;
  j.gflop = 2e-9 * H * D * double(T) * T;
  j.add(f8, c, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), factor.view(3, H), o.view(H, T, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        const size_t r = (size_t(h) * T + t) * D, keys = size_t(h) * T;
        attend(
            0, t + 1,
            [&](int n) {
              double s = 0;
              for (int d = 0; d < D; ++d) s += q[r + d] * k[(keys + n) * D + d];
              return s * scale * factor[h] * factor[H + h];
            },
            [&](int n, int d) { return v[(keys + n) * D + d] * factor[2 * H + h]; }, D, &want[r]);
      }
    return agree(o.now(), want, 6e-2, 6e-2);  // p has 4 bits
  };
  return j;
}
Register r8("f8_prefill", f8_prefill);

}  // namespace swept_keys
}  // namespace users
