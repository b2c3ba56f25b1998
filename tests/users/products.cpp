// products.cpp - matrix products with something fused in front, behind or between: softmax, layer norm, low-rank
// updates, scales of blocks, zero points, complex numbers, sparsity, uneven work.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace products {

struct MmCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
constexpr auto kTiles = [](const auto& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(b.shape[1], c.BN), cdiv(a.shape[0], c.BM)};
};

// --- softmax of the rows of A B, and layer norm of A B + residual: a program has whole rows
auto gemm_softmax = kernel("user_gemm_softmax", [](const MmCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                                   Tensor<half, 2> Y) {
                      num_warps(c.warps);
                      auto m = program_id(0) * c.BM;
                      Tile acc = zeros({c.BM, c.BN}, f32);
                      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                        acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, 0}, {c.BK, c.BN}), acc);
                      acc = where(arange(0, c.BN).row() < B.dim(1), acc, -INFINITY);
                      Y.store({m, 0}, cast(softmax(acc, axis(1)), f16));
                    }).grid([](const MmCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.BM)}; });
Register r1("gemm_softmax", [](Env& e) {
  int M = e.big ? 32768 : 70, N = e.big ? 256 : 50, K = e.big ? 1024 : 96;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(gemm_softmax, e.big ? MmCfg{128, 256, 64, 3, 8} : MmCfg{64, 64, 32, 2, 4}, a.view(M, K), b.view(K, N),
        y.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), matrix(b, N));
    for (int m = 0; m < M; ++m) {
      double* row = &want[m * N];
      double top = *std::max_element(row, row + N), sum = 0;
      for (int n = 0; n < N; ++n) sum += row[n] = std::exp(row[n] - top);
      for (int n = 0; n < N; ++n) row[n] /= sum;
    }
    return agree(y.now(), want, 1e-5, 2e-3);
  };
  return j;
});
auto gemm_norm =
    kernel("user_gemm_layernorm", [](const MmCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B,
                                     Tensor<const bfloat16, 2> R, Tensor<const float, 1> gamma,
                                     Tensor<const float, 1> beta, Tensor<bfloat16, 2> Y) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, 0}, {c.BK, c.BN}), acc);
      acc += cast(R.load({m, 0}, {c.BM, c.BN}), f32);
      auto mean = sum(acc, axis(1)) / float(c.BN);
      auto centred = acc - mean;
      auto var = sum(centred * centred, axis(1)) / float(c.BN);
      auto y = centred * rsqrt(var + 1e-5f) * gamma.load({0}, {c.BN}).row() + beta.load({0}, {c.BN}).row();
      Y.store({m, 0}, cast(y, bf16));
    }).grid([](const MmCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.BM)}; });
Register r2("gemm_layernorm", [](Env& e) {
  int M = e.big ? 16384 : 70, N = e.big ? 512 : 64, K = e.big ? 2048 : 96;
  auto a = random<bfloat16>(e, size_t(M) * K), b = random<bfloat16>(e, size_t(K) * N),
       r = random<bfloat16>(e, size_t(M) * N);
  auto g = random<float>(e, N), t = random<float>(e, N);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(gemm_norm, e.big ? MmCfg{64, 512, 32, 3, 8} : MmCfg{32, 64, 32, 2, 4}, a.view(M, K), b.view(K, N), r.view(M, N),
        g.view(N), t.view(N), y.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), matrix(b, N));
    for (int m = 0; m < M; ++m) {
      double mean = 0, var = 0;
      for (int n = 0; n < N; ++n) mean += (want[m * N + n] += r[m * N + n]) / N;
      for (int n = 0; n < N; ++n) var += std::pow(want[m * N + n] - mean, 2) / N;
      for (int n = 0; n < N; ++n) want[m * N + n] = (want[m * N + n] - mean) / std::sqrt(var + 1e-5) * g[n] + t[n];
    }
    return agree(y.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- Y = X W + s (X A) B, with A of rank 16, in one pass over X
struct LoraCfg {
  int BM = 128, BN = 128, BK = 64, R = 16, stages = 3, warps = 8;
};
auto lora =
    kernel("user_lora", [](const LoraCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W,
                           Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B, Tensor<bfloat16, 2> Y, F32 s) {
      num_warps(c.warps);
      auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32), low = zeros({c.BM, c.R}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
        auto x = X.load({m, k}, {c.BM, c.BK});
        acc = dot(x, W.load({k, n}, {c.BK, c.BN}), acc);
        low = dot(x, A.load({k, 0}, {c.BK, c.R}), low);
      }
      acc = dot(cast(low * s, bf16), B.load({0, n}, {c.R, c.BN}), acc);
      Y.store({m, n}, cast(acc, bf16));
    }).grid(kTiles);
Register r3("lora", [](Env& e) {
  int M = e.big ? 8192 : 70, N = e.big ? 4096 : 80, K = e.big ? 4096 : 96, R = 16;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(K) * N),
       a = random<bfloat16>(e, size_t(K) * R), b = random<bfloat16>(e, size_t(R) * N);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(lora, e.big ? LoraCfg{} : LoraCfg{64, 64, 32, 16, 2, 4}, x.view(M, K), w.view(K, N), a.view(K, R), b.view(R, N),
        y.view(M, N), .5f);
  j.check = [=] {
    auto want = product(M, N, K, matrix(x, K), matrix(w, N));
    auto low = product(M, R, K, matrix(x, K), matrix(a, R));
    auto more = product(
        M, N, R, [&](int m, int r) { return low[m * R + r]; }, matrix(b, N));
    for (size_t i = 0; i < want.size(); ++i) want[i] += .5 * more[i];
    return agree(y.now(), want, .1, 1e-2);
  };
  return j;
});

// --- fp8 with scales of 1x128 pieces of A and 128x128 blocks of B
auto fp8_blocks =
    kernel("user_fp8_blocks", [](const MmCfg& c, Tensor<const fp8_e4m3, 2> A, Tensor<const fp8_e4m3, 2> B,
                                 Tensor<const float, 2> SA, Tensor<const float, 2> SB, Tensor<bfloat16, 2> C) {
      // A [M, K], B [N, K], SA [K / 128, M], SB [N / 128, K / 128]
      num_warps(c.warps);
      auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
        auto part = dot(A.load({m, k}, {c.BM, c.BK}), trans(B.load({n, k}, {c.BN, c.BK})));
        auto sa = SA.load({k / 128, m}, {c.BM}).col();
        acc += part * (sa * SB.load({n / 128, k / 128}));
      }
      C.store({m, n}, cast(acc, bf16));
    }).grid([](const MmCfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(b.shape[0], c.BN), cdiv(a.shape[0], c.BM)};
    });
Register r4("fp8_blocks", [](Env& e) {
  int M = e.big ? 4096 : 70, N = e.big ? 4096 : 256, K = e.big ? 7168 : 384;
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(N) * K);
  auto sa = random<float>(e, K / 128 * M, .5, 2), sb = random<float>(e, N / 128 * (K / 128), .5, 2);
  auto c = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(fp8_blocks, e.big ? MmCfg{128, 128, 128, 4, 8} : MmCfg{64, 64, 128, 2, 4}, a.view(M, K), b.view(N, K),
        sa.view(K / 128, M), sb.view(N / 128, K / 128), c.view(M, N));
  j.check = [=] {
    auto want = product(
        M, N, K, [&](int m, int k) { return a[m * K + k] * sa[k / 128 * M + m]; },
        [&](int k, int n) { return b[n * K + k] * sb[n / 128 * (K / 128) + k / 128]; });
    return agree(c.now(), want, .05, 1e-2);
  };
  return j;
});

// --- int8 with scales and zero points of rows: sums of rows are taken while the products run
auto int8_zero = kernel("user_int8_zero_points", [](const MmCfg& c, Tensor<const uint8_t, 2> A,
                                                    Tensor<const int8_t, 2> B, Tensor<const float, 1> sa,
                                                    Tensor<const int32_t, 1> za, Tensor<const float, 1> sb,
                                                    Tensor<const int32_t, 1> column_sums, Tensor<half, 2> C) {
                   // C[m, n] = sa[m] sb[n] sum_k (A[m, k] - za[m]) B[n, k]; column_sums[n] = sum_k B[n, k]
                   num_warps(c.warps);
                   auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                   Tile acc = zeros({c.BM, c.BN}, i32);
                   for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                     auto a = bitcast(A.load({m, k}, {c.BM, c.BK}) ^ 128, i8);  // u8 - 128 as i8
                     acc = dot(a, trans(B.load({n, k}, {c.BN, c.BK})), acc);
                   }
                   acc += (128 - za.load({m}, {c.BM}).col()) * column_sums.load({n}, {c.BN}).row();
                   auto y = cast(acc, f32) * sa.load({m}, {c.BM}).col() * sb.load({n}, {c.BN}).row();
                   C.store({m, n}, cast(y, f16));
                 }).grid([](const MmCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(b.shape[0], c.BN), cdiv(a.shape[0], c.BM)};
});
Register r5("int8_zero_points", [](Env& e) {
  int M = e.big ? 4096 : 70, N = e.big ? 4096 : 90, K = e.big ? 4096 : 128;
  auto a = integers<uint8_t>(e, size_t(M) * K, 0, 256);
  auto b = integers<int8_t>(e, size_t(N) * K, -128, 128);
  auto sa = random<float>(e, M, 1e-4, 1e-3), sb = random<float>(e, N, 1e-2, 1e-1);
  auto za = integers<int32_t>(e, M, 100, 156);
  auto sums = filled<int32_t>(e, N, [&](size_t n) {
    int s = 0;
    if (!e.big)
      for (int k = 0; k < K; ++k) s += b.at(n * K + k);
    return s;
  });
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(int8_zero, e.big ? MmCfg{128, 128, 128, 3, 8} : MmCfg{64, 64, 64, 2, 4}, a.view(M, K), b.view(N, K), sa.view(M),
        za.view(M), sb.view(N), sums.view(N), c.view(M, N));
  j.check = [=] {
    auto want = product(
        M, N, K, [&](int m, int k) { return sa[m] * (a.h[m * K + k] - za.h[m]); },
        [&](int k, int n) { return sb[n] * b.h[n * K + k]; });
    return agree(c.now(), want, 1e-3, 2e-3);
  };
  return j;
});

// --- complex numbers, real and imaginary parts interleaved
auto complex_mm =
    kernel("user_complex", [](const MmCfg& c, Tensor<const float, 3> A, Tensor<const float, 3> B, Tensor<float, 3> C) {
      // A [M, K, 2], B [K, N, 2], C [M, N, 2]
      num_warps(c.warps);
      auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
      Tile re = zeros({c.BM, c.BN}, f32), im = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
        auto [ar, ai] = split(A.load({m, k, 0}, {c.BM, c.BK, 2}));
        auto [br, bi] = split(B.load({k, n, 0}, {c.BK, c.BN, 2}));
        re = dot(ar, br, dot(-ai, bi, re, Prec::tf32), Prec::tf32);
        im = dot(ar, bi, dot(ai, br, im, Prec::tf32), Prec::tf32);
      }
      C.store({m, n, 0}, join(re, im));
    }).grid(kTiles);
Register r6("complex", [](Env& e) {
  int M = e.big ? 2048 : 70, N = e.big ? 2048 : 50, K = e.big ? 2048 : 64;
  auto a = random<float>(e, size_t(M) * K * 2), b = random<float>(e, size_t(K) * N * 2);
  auto c = constant<float>(e, size_t(M) * N * 2, NAN);
  Job j;
  j.gflop = 8e-9 * M * N * double(K);
  j.add(complex_mm, e.big ? MmCfg{64, 64, 32, 3, 4} : MmCfg{32, 32, 16, 2, 4}, a.view(M, K, 2), b.view(K, N, 2),
        c.view(M, N, 2));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N * 2);
    for (int p = 0; p < 4; ++p) {  // rr, ri, ir, ii
      auto part = product(
          M, N, K, [&](int m, int k) { return a[(m * K + k) * 2 + p / 2]; },
          [&](int k, int n) { return b[(k * N + n) * 2 + p % 2]; });
      for (size_t i = 0; i < part.size(); ++i) want[i * 2 + (p == 1 || p == 2)] += p == 3 ? -part[i] : part[i];
    }
    return agree(c.now(), want, 2e-2, 2e-3);
  };
  return j;
});

// --- the lower half of A^T A, mirrored: grid over pairs of blocks
auto syrk = kernel("user_syrk", [](const MmCfg& c, Tensor<const float, 2> A, Tensor<float, 2> C) {
              num_warps(c.warps);
              auto p = program_id(0);
              auto i = cast((sqrt(cast(p, f32) * 8.f + 1.f) - 1.f) * 0.5f, i32);  // p = i (i + 1) / 2 + j
              i = where(i * (i + 1) / 2 > p, i - 1, i);
              i = where((i + 1) * (i + 2) / 2 <= p, i + 1, i);
              auto m = i * c.BM, n = (p - i * (i + 1) / 2) * c.BM;
              Tile acc = zeros({c.BM, c.BM}, f32);
              for (auto k : range(0, A.dim(0), c.BK, {.stages = c.stages}))
                acc = dot(trans(A.load({k, m}, {c.BK, c.BM})), A.load({k, n}, {c.BK, c.BM}), acc, Prec::tf32);
              C.store({m, n}, acc);
              for (auto _ : when(m != n)) C.store({n, m}, trans(acc));
            }).grid([](const MmCfg& c, const auto& a, const auto&) {
  auto blocks = cdiv(a.shape[1], c.BM);
  return Grid{blocks * (blocks + 1) / 2};
});
Register r7("syrk", [](Env& e) {
  int N = e.big ? 4096 : 150, K = e.big ? 8192 : 70;
  auto a = random<float>(e, size_t(K) * N);
  auto c = constant<float>(e, size_t(N) * N, NAN);
  Job j;
  j.gflop = 1e-9 * N * N * double(K);
  j.add(syrk, e.big ? MmCfg{128, 0, 32, 3, 8} : MmCfg{32, 0, 32, 2, 4}, a.view(K, N), c.view(N, N));
  j.check = [=] {
    auto want = product(
        N, N, K, [&](int m, int k) { return a[k * N + m]; }, matrix(a, N));
    return agree(c.now(), want, 2e-2, 2e-3);
  };
  return j;
});

// --- 2:4 sparse A: of every four columns two values with their places, spread out before the product
auto sparse24 = kernel("user_sparse24", [](const MmCfg& c, Tensor<const half, 3> A, Tensor<const int8_t, 3> place,
                                           Tensor<const half, 2> B, Tensor<half, 2> C) {
                  // A, place [M, K / 4, 2], B [K, N]
                  num_warps(c.warps);
                  auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  auto four = reshape(cast(arange(0, 4), i8), {1, 1, 4});
                  for (auto k : range(0, B.dim(0), c.BK, {.stages = c.stages})) {
                    auto [v0, v1] = split(A.load({m, k / 4, 0}, {c.BM, c.BK / 4, 2}));
                    auto [p0, p1] = split(place.load({m, k / 4, 0}, {c.BM, c.BK / 4, 2}));
                    auto at = [&](const Tile& p) { return expand_dims(p, 2) == four; };
                    auto a = where(at(p0), expand_dims(v0, 2), where(at(p1), expand_dims(v1, 2), 0.f));
                    acc = dot(reshape(a, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                  }
                  C.store({m, n}, cast(acc, f16));
                }).grid([](const MmCfg& c, const auto& a, const auto&, const auto& b, const auto&) {
  return Grid{cdiv(b.shape[1], c.BN), cdiv(a.shape[0], c.BM)};
});
Register r8("sparse24", [](Env& e) {
  int M = e.big ? 4096 : 70, N = e.big ? 4096 : 50, K = e.big ? 4096 : 128;
  auto a = random<half>(e, size_t(M) * K / 2), b = random<half>(e, size_t(K) * N);
  auto p =
      filled<int8_t>(e, size_t(M) * K / 2, [&](size_t i) { return int8_t(i % 2 ? 2 + (i / 2) % 2 : (i / 4) % 2); });
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(sparse24, e.big ? MmCfg{} : MmCfg{64, 64, 32, 2, 4}, a.view(M, K / 4, 2), p.view(M, K / 4, 2), b.view(K, N),
        c.view(M, N));
  j.check = [=] {
    std::vector<double> dense(M * K);
    for (int i = 0; i < M * K / 2; ++i) dense[i / 2 * 4 + p.h[i]] = a[i];
    auto want = product(
        M, N, K, [&](int m, int k) { return dense[m * K + k]; }, matrix(b, N));
    return agree(c.now(), want, 1e-2, 2e-3);
  };
  return j;
});

// --- stream K: as many programs as run at a time, each with an equal share of all blocks of all sums
auto stream_k = kernel("user_stream_k", [](const MmCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                           Tensor<float, 2> C) {
  num_warps(c.warps);
  auto per_tile = cdiv(A.dim(1), c.BK), across = cdiv(B.dim(1), c.BN);
  auto total = per_tile * across * cdiv(A.dim(0), c.BM), share = cdiv(total, num_programs(0));
  Tile at = program_id(0) * share;
  auto end = min(at + share, total);
  while_([&] { return at < end; },
         [&] {
           auto tile = at / per_tile, first = at % per_tile;
           auto last = min(per_tile, first + (end - at));
           auto m = tile / across * c.BM, n = tile % across * c.BN;
           Tile acc = zeros({c.BM, c.BN}, f32);
           for (auto k : range(first, last, {.stages = c.stages}))
             acc = dot(A.load({m, k * c.BK}, {c.BM, c.BK}), B.load({k * c.BK, n}, {c.BK, c.BN}), acc);
           if_((first == 0) & (last == per_tile), [&] { C.store({m, n}, acc); }, [&] { C.atomic_add({m, n}, acc); });
           at += last - first;
         });
});
Register r9("stream_k", [](Env& e) {
  int M = e.big ? 1536 : 70, N = e.big ? 2304 : 80, K = e.big ? 8192 : 200, programs = e.big ? 132 : 5;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto c = constant<float>(e, size_t(M) * N, 0);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(stream_k.grid([=](const auto&...) { return Grid{programs}; }),
        e.big ? MmCfg{128, 128, 64, 4, 8} : MmCfg{32, 32, 32, 2, 4}, a.view(M, K), b.view(K, N), c.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), matrix(b, N));
    return agree(c.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- columns that begin one or three elements beside where rows begin: no bulk copy reads or writes there
struct ShiftedCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto shifted = kernel("user_shifted", [](const ShiftedCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                         Tensor<half, 2> C) {
  num_warps(c.warps);  // A [M, K], B [K - 1, N], C [M, N + 8]
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(0, B.dim(0), c.BK, {.stages = c.stages}))
    acc = dot(A.load({m, k + 1}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
  C.store({m, n + 3}, cast(acc, f16));
}).grid([](const ShiftedCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r_shifted("shifted", [](Env& e) {
  const int M = e.big ? 4096 : 256, N = e.big ? 4096 : 256, K = e.big ? 4096 : 256, wide = N + 8;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K - 1) * N);
  auto y = constant<half>(e, size_t(M) * wide, 7);
  Job j;
  j.gflop = 2e-9 * M * N * double(K - 1);
  j.add(shifted, ShiftedCfg(), a.view(M, K), b.view(K - 1, N), y.view(M, wide));
  j.check = [=] {
    std::vector<double> want(size_t(M) * wide, 7);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double sum = 0;
        for (int k = 0; k + 1 < K; ++k) sum += a[size_t(m) * K + k + 1] * b[size_t(k) * N + n];
        want[size_t(m) * wide + n + 3] = sum;
      }
    return agree(y.now(), want, 3e-3, 2e-3);
  };
  return j;
});

}  // namespace products
}  // namespace users
