// successive_loops.cpp - kernels whose loops of products stand one behind the other, with tiles of other types and
// sizes: their copies take the same shared memory in turns.
#include "tests/users/swept_attention.h"

namespace {
using namespace users;
using namespace swept_attention;

// --- 1. columns of a product by what they need: most in int8, some in e4m3, the outliers in bf16
struct PartsCfg {
  int BM = 128, BN = 128, BK = 128, warps = 8, stages = 0;
};
auto columns_by_type =
    kernel("user_columns_by_type",
           [](const PartsCfg& c, Tensor<const int8_t, 2> A8, Tensor<const int8_t, 2> B8, Tensor<const fp8_e4m3, 2> Af,
              Tensor<const fp8_e4m3, 2> Bf, Tensor<const bfloat16, 2> Ab, Tensor<const bfloat16, 2> Bb,
              Tensor<float, 2> Y, F32 s8, F32 sf) {  // A [M, K], B [N, K], each pair with a K of its own
             num_warps(c.warps);
             auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
             Tile whole = zeros({c.BM, c.BN}, i32);
             for (auto k : range(0, A8.dim(1), c.BK, {.stages = c.stages}))
               whole = dot(A8.load({m, k}, {c.BM, c.BK}), trans(B8.load({n, k}, {c.BN, c.BK})), whole);
             Tile f = zeros({c.BM, c.BN}, f32);
             for (auto k : range(0, Af.dim(1), c.BK, {.stages = c.stages}))
               f = dot(Af.load({m, k}, {c.BM, c.BK}), trans(Bf.load({n, k}, {c.BN, c.BK})), f);
             Tile sum = cast(whole, f32) * s8 + f * sf;
             for (auto k : range(0, Ab.dim(1), c.BK / 2, {.stages = c.stages}))
               sum = dot(Ab.load({m, k}, {c.BM, c.BK / 2}), trans(Bb.load({n, k}, {c.BN, c.BK / 2})), sum);
             Y.store({m, n}, sum);
           })
        .grid([](const PartsCfg& c, const auto& a, const auto& b, const auto&...) {
          return Grid{cdiv(b.shape[0], c.BN), cdiv(a.shape[0], c.BM)};
        });
Job by_type(Env& e) {
  const PartsCfg c{e.field("BM", 128), e.field("BN", 128), e.field("BK", 128), e.field("warps", 8),
                   e.field("stages", 0)};
  const int M = e.big ? 4096 : 141, N = e.big ? 4096 : 83, K8 = e.big ? 2560 : 272, Kf = e.big ? 1024 : 144,
            Kb = e.big ? 512 : 72;
  const float s8 = 1e-4f, sf = .5f;
  auto a8 = integers<int8_t>(e, size_t(M) * K8, -128, 128), b8 = integers<int8_t>(e, size_t(N) * K8, -128, 128);
  auto af = random<fp8_e4m3>(e, size_t(M) * Kf), bf = random<fp8_e4m3>(e, size_t(N) * Kf);
  auto ab = random<bfloat16>(e, size_t(M) * Kb), bb = random<bfloat16>(e, size_t(N) * Kb);
  auto y = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * (K8 + Kf + Kb);
  j.add(columns_by_type, c, a8.view(M, K8), b8.view(N, K8), af.view(M, Kf), bf.view(N, Kf), ab.view(M, Kb),
        bb.view(N, Kb), y.view(M, N), s8, sf);
  j.check = [=] {
    auto turned = [](const auto& b, int K) { return [&b, K](int k, int n) { return b[size_t(n) * K + k]; }; };
    auto want = product(M, N, K8, matrix(a8, K8), turned(b8, K8));
    const auto f = product(M, N, Kf, matrix(af, Kf), turned(bf, Kf)),
               b = product(M, N, Kb, matrix(ab, Kb), turned(bb, Kb));
    for (size_t i = 0; i < want.size(); ++i) want[i] = want[i] * double(s8) + f[i] * double(sf) + b[i];
    return agree(y.now(), want, 2e-2, 1e-3);
  };
  return j;
}
Register r1("columns_by_type", by_type);

// --- 2. attention backward, causal, in one launch without atomic adds: a program makes dK and dV of its keys, then dQ
// of as many queries, each in a loop over the diagonal and one over the rest
struct BothCfg {
  int D = 64, rows = 128, step = 32, warps = 8, stages = 0;
};
auto bwd_both =
    kernel(
        "user_bwd_both",
        [](const BothCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K, Tensor<const half, 3> V,
           Tensor<const half, 3> dO, Tensor<const float, 2> lse, Tensor<const float, 2> delta, Tensor<half, 3> dQ,
           Tensor<half, 3> dK, Tensor<half, 3> dV, F32 scale) {  // [H, N, D]; lse in units of log2
          num_warps(c.warps);
          auto first = program_id(0) * c.rows, h = program_id(1), last = first + c.rows;
          {
            auto k = K.load({h, first, 0}, {c.rows, c.D}), v = V.load({h, first, 0}, {c.rows, c.D});
            Tile dk = zeros({c.rows, c.D}, f32), dv = zeros({c.rows, c.D}, f32);
            auto step = [&](I32 m, bool masked) {
              auto q = Q.load({h, m, 0}, {c.step, c.D}), g = dO.load({h, m, 0}, {c.step, c.D});
              auto l = lse.load({h, m}, {c.step}, {.pad = INFINITY}).row();
              Tile s = dot(k, trans(q)) * (scale * kLog2e) - l;  // [keys, queries]
              if (masked) s = where((first + arange(0, c.rows)).col() <= (m + arange(0, c.step)).row(), s, -INFINITY);
              auto p = exp2(s);
              dv = dot(cast(p, f16), g, dv);
              auto ds = cast(p * (dot(v, trans(g)) - delta.load({h, m}, {c.step}).row()), f16);
              dk = dot(ds, q, dk);
            };
            for (auto m : range(first, last, c.step, {.stages = c.stages})) step(m, true);
            for (auto m : range(last, Q.dim(1), c.step, {.stages = c.stages})) step(m, false);
            dK.store({h, first, 0}, cast(dk * scale, f16));
            dV.store({h, first, 0}, cast(dv, f16));
          }
          auto q = Q.load({h, first, 0}, {c.rows, c.D}), g = dO.load({h, first, 0}, {c.rows, c.D});
          auto l = lse.load({h, first}, {c.rows}, {.pad = INFINITY}).col(), d = delta.load({h, first}, {c.rows}).col();
          Tile dq = zeros({c.rows, c.D}, f32);
          auto step = [&](I32 n, bool masked) {
            auto k = K.load({h, n, 0}, {c.step, c.D}), v = V.load({h, n, 0}, {c.step, c.D});
            Tile s = dot(q, trans(k)) * (scale * kLog2e) - l;
            if (masked) s = where((n + arange(0, c.step)).row() <= (first + arange(0, c.rows)).col(), s, -INFINITY);
            dq = dot(cast(exp2(s) * (dot(g, trans(v)) - d), f16), k, dq);
          };
          for (auto n : range(first, last, c.step, {.stages = c.stages})) step(n, true);
          for (auto n : range(0, first, c.step, {.stages = c.stages})) step(n, false);
          dQ.store({h, first, 0}, cast(dq * scale, f16));
        })
        .grid([](const BothCfg& c, const auto& q, const auto&...) {
          return Grid{cdiv(q.shape[1], c.rows), q.shape[0]};
        });
Job both(Env& e) {
  const BothCfg c{e.field("D", 64), e.field("rows", 128), e.field("step", 32), e.field("warps", 8),
                  e.field("stages", 0)};
  const int H = e.big ? 64 : 2, N = e.big ? 4096 : 151, D = c.D;
  const float scale = 1 / std::sqrt(float(D));
  const size_t size = size_t(H) * N * D;
  auto q = random<half>(e, size), k = random<half>(e, size), v = random<half>(e, size), g = random<half>(e, size);
  const CausalGradients want(e, H, N, D, scale, q, k, v, g);
  auto lse = filled<float>(e, size_t(H) * N, [&](size_t i) { return float(want.lse[i] * kLog2e); });
  auto dl = filled<float>(e, size_t(H) * N, [&](size_t i) { return float(want.delta[i]); });
  auto dq = constant<half>(e, size, NAN), dk = constant<half>(e, size, NAN), dv = constant<half>(e, size, NAN);
  Job j;
  j.gflop = 7e-9 * H * D * double(N) * N;
  j.add(bwd_both, c, q.view(H, N, D), k.view(H, N, D), v.view(H, N, D), g.view(H, N, D), lse.view(H, N), dl.view(H, N),
        dq.view(H, N, D), dk.view(H, N, D), dv.view(H, N, D), scale);
  j.check = [=] { return want.agree_with(dq.now(), dk.now(), dv.now()); };
  return j;
}
Register r2("bwd_both", both);

}  // namespace
