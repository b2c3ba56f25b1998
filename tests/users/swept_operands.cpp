// swept_operands.cpp - products, swept, whose operands are scaled, normalised or unpacked on the way.
#include "tests/users/use.h"
namespace users {
namespace swept_operands {

// --- C = (A * s[m, k / G]) B
struct ScaledCfg {
  int BM = 128, BN = 128, BK = 64, G = 64, stages = 0, warps = 0;
};
auto gemm_scaled_a =
    kernel("user_gemm_scaled_a", [](const ScaledCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> S,
                                    Tensor<const half, 2> B, Tensor<half, 2> C) {
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
        Tile s;
        if (c.BK <= c.G)
          s = S.load({m, k / c.G}, {c.BM, 1});
        else
          s = repeat(S.load({m, k / c.G}, {c.BM, c.BK / c.G}), c.G, axis(1));
        acc = dot(A.load({m, k}, {c.BM, c.BK}) * s, B.load({k, n}, {c.BK, c.BN}), acc);
      }
      C.store({m, n}, cast(acc, f16));
    }).grid([](const ScaledCfg& c, const auto& a, const auto&, const auto& b, const auto&) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
    });
Register r1("gemm_scaled_a", [](Env& e) {
  ScaledCfg c;
  if (!e.big) c = {32, 32, 32, 64, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK), c.G = e.field("G", c.G);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 67, N = e.big ? 4096 : 75, K = e.big ? 4096 : 2 * c.G + 24, KG = (K + c.G - 1) / c.G;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N),
       s = random<half>(e, size_t(M) * KG, .5, 2);
  auto o = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(gemm_scaled_a, c, a.view(M, K), s.view(M, KG), b.view(K, N), o.view(M, N));
  j.check = [=] {
    auto scaled = [&](int m, int k) { return in_half(a[size_t(m) * K + k] * s[size_t(m) * KG + k / c.G]); };
    return agree(o.now(), product(M, N, K, scaled, matrix(b, N)), 1e-2, 1e-2);
  };
  return j;
});

// --- gelu(rmsnorm(A) B + bias): squares are summed in the loop of the product, rows are scaled behind it
struct NormCfg {
  int BM = 128, BN = 128, BK = 64, stages = 0, warps = 0;
};
auto gemm_act_norm =
    kernel("user_gemm_act_norm", [](const NormCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B,
                                    Tensor<const bfloat16, 1> bias, Tensor<bfloat16, 2> C, F32 eps) {
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN, K = A.dim(1);
      Tile acc = zeros({c.BM, c.BN}, f32), squares = zeros({c.BM, 1}, f32);
      for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
        auto a = A.load({m, k}, {c.BM, c.BK});
        acc = dot(a, B.load({k, n}, {c.BK, c.BN}), acc);
        auto x = cast(a, f32);
        squares += sum(x * x, axis(1));
      }
      auto y = acc * rsqrt(squares / cast(K, f32) + eps) + cast(bias.load({n}, {c.BN}), f32).row();
      C.store({m, n}, cast(gelu(y), bf16));
    }).grid([](const NormCfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
    });
Register r2("gemm_act_norm", [](Env& e) {
  NormCfg c;
  if (!e.big) c = {32, 32, 32, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 61, N = e.big ? 8192 : 83, K = e.big ? 2048 : 136;
  auto a = random<bfloat16>(e, size_t(M) * K, -2, 2), b = random<bfloat16>(e, size_t(K) * N, -.2, .2),
       bias = random<bfloat16>(e, N);
  auto o = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(gemm_act_norm, c, a.view(M, K), b.view(K, N), bias.view(N), o.view(M, N), 1e-5f);
  j.check = [=] {
    std::vector<double> scale(M);
    for (int m = 0; m < M; ++m) {
      double s = 0;
      for (int k = 0; k < K; ++k) s += a[size_t(m) * K + k] * a[size_t(m) * K + k];
      scale[m] = 1 / std::sqrt(s / K + 1e-5);
    }
    return agree(o.now(),
                 product(M, N, K, matrix(a, K), matrix(b, N),
                         [&](double sum, int m, int n) {
                           const double y = sum * scale[m] + bias[n];
                           return .5 * y * (1 + std::erf(y / std::sqrt(2.)));
                         }),
                 1e-2, 1e-2);
  };
  return j;
});

// --- weights of 4 bits: 8 in a word along K (PACK 0, GPTQ) or along N (PACK 1, AWQ, in plain order)
struct Int4Cfg {
  int BM = 16, BN = 128, BK = 64, G = 128, PACK = 0, stages = 0, warps = 0;
};
auto int4_gemm = kernel("user_int4_gemm", [](const Int4Cfg& c, Tensor<const half, 2> A, Tensor<const uint32_t, 2> W,
                                             Tensor<const half, 2> S, Tensor<const uint32_t, 2> Z, Tensor<half, 2> C) {
                   // A [M, K], W [K / 8, N] or [K, N / 8], S [K / G, N], Z [K / G, N / 8]
                   if (c.warps) num_warps(c.warps);
                   auto n = program_id(0) * c.BN, m = program_id(1) * c.BM;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   const int groups = c.BK <= c.G ? 1 : c.BK / c.G;
                   for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                     auto q = c.PACK == 0 ? unpack(W.load({k / 8, n}, {c.BK / 8, c.BN}), 4, axis(0), f16)
                                          : unpack(W.load({k, n / 8}, {c.BK, c.BN / 8}), 4, axis(1), f16);
                     Tile s = S.load({k / c.G, n}, {groups, c.BN});
                     Tile z = unpack(Z.load({k / c.G, n / 8}, {groups, c.BN / 8}), 4, axis(1), f16);
                     if (groups > 1) s = repeat(s, c.G, axis(0)), z = repeat(z, c.G, axis(0));
                     acc = dot(A.load({m, k}, {c.BM, c.BK}), (q - z) * s, acc);
                   }
                   C.store({m, n}, cast(acc, f16));
                 }).grid([](const Int4Cfg& c, const auto& a, const auto&, const auto& s, const auto&...) {
  return Grid{cdiv(s.shape[1], c.BN), cdiv(a.shape[0], c.BM)};
});
Register r3("int4_gemm", [](Env& e) {
  Int4Cfg c;
  if (!e.big) c = {16, 32, 32, 64, 0, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK), c.G = e.field("G", c.G);
  c.PACK = e.field("PACK", c.PACK), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? e.field("M", 16) : std::min(19, e.field("M", 19));
  const int N = e.big ? 12288 : 72, K = e.big ? 4096 : 2 * c.G + 16, KG = (K + c.G - 1) / c.G;
  auto word = [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); };
  auto a = random<half>(e, size_t(M) * K), s = random<half>(e, size_t(KG) * N, .01, .05);
  auto w = drawn<uint32_t>(e, size_t(K) * N / 8, word), z = drawn<uint32_t>(e, size_t(KG) * N / 8, word);
  auto o = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  const int WR = c.PACK == 0 ? K / 8 : K, WC = c.PACK == 0 ? N : N / 8;
  j.add(int4_gemm, c, a.view(M, K), w.view(WR, WC), s.view(KG, N), z.view(KG, N / 8), o.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const uint32_t q =
          c.PACK == 0 ? w.at(size_t(k / 8) * N + n) >> k % 8 * 4 : w.at(size_t(k) * (N / 8) + n / 8) >> n % 8 * 4;
      const uint32_t zero = z.at(size_t(k / c.G) * (N / 8) + n / 8) >> n % 8 * 4;
      return in_half((int(q & 15) - int(zero & 15)) * s[size_t(k / c.G) * N + n]);
    };
    return agree(o.now(), product(M, N, K, matrix(a, K), weight), 1e-2, 1e-2);
  };
  return j;
});

// --- e4m3 with scales of 1 x 128 (activations) and 128 x 128 (weights)
struct F8Cfg {
  int BM = 64, BN = 128, BK = 128, stages = 0, warps = 0;
};
auto f8_block_gemm =
    kernel("user_f8_block_gemm", [](const F8Cfg& c, Tensor<const fp8_e4m3, 2> A, Tensor<const fp8_e4m3, 2> B,
                                    Tensor<const float, 2> SA, Tensor<const float, 2> SB, Tensor<bfloat16, 2> C) {
      // A [M, K], B [N, K], SA [M, K / 128], SB [N / 128, K / 128]
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
        auto part = dot(A.load({m, k}, {c.BM, c.BK}), trans(B.load({n, k}, {c.BN, c.BK})));
        acc += part * (SA.load({m, k / 128}, {c.BM, 1}) * SB.load({n / 128, k / 128}));
      }
      C.store({m, n}, cast(acc, bf16));
    }).grid([](const F8Cfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
    });
Register r4("f8_block_gemm", [](Env& e) {
  F8Cfg c;
  if (!e.big) c = {32, 32, 128, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? e.field("M", 4096) : 37, N = e.big ? 4096 : 168, K = e.big ? 7168 : 384;
  const int NB = (N + 127) / 128, KB = K / 128;
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(N) * K);
  auto sa = random<float>(e, size_t(M) * KB, .5, 2), sb = random<float>(e, size_t(NB) * KB, .5, 2);
  auto o = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(f8_block_gemm, c, a.view(M, K), b.view(N, K), sa.view(M, KB), sb.view(NB, KB), o.view(M, N));
  j.check = [=] {
    auto x = [&](int m, int k) { return a[size_t(m) * K + k] * sa[size_t(m) * KB + k / 128]; };
    auto y = [&](int k, int n) { return b[size_t(n) * K + k] * sb[size_t(n / 128) * KB + k / 128]; };
    return agree(o.now(), product(M, N, K, x, y), 2e-2, 1e-2);
  };
  return j;
});
}  // namespace swept_operands
}  // namespace users
