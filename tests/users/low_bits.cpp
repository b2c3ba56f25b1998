// low_bits.cpp - numbers of few bits in and out of products: microscaled 4-bit weights, interleaved words of eight,
// outputs quantised by groups where they are made, a rotation before quantisation.
#include "tests/users/use.h"
namespace users {
namespace low_bits {

// --- weights of e2m1 with an exponent per 32 (MXFP4), rows of the output's columns
struct MxCfg {
  int BM = 128, BN = 128, BK = 128, stages = 3, warps = 8;
};
auto mxfp4 = kernel("user_mxfp4", [](const MxCfg& c, Tensor<const bfloat16, 2> A, Tensor<const uint8_t, 2> W,
                                     Tensor<const uint8_t, 2> S, Tensor<bfloat16, 2> C) {
               // A [M, K], W [N, K / 2] (the even column in the lower half), S [N, K / 32] biased exponents, C [M, N]
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               Tile acc = zeros({c.BM, c.BN}, f32);
               // sign, two bits of exponent, one of mantissa, moved to where bf16 has them: 2^126 too small
               auto widened = [](Tile code) {
                 code = cast(code, u16);
                 return bitcast((code & 8) << 12 | (code & 7) << 6, bf16);
               };
               for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                 auto packed = W.load({n, k / 2}, {c.BN, c.BK / 2});
                 auto w = reshape(join(widened(packed & 15), widened(packed >> 4)), {c.BN, c.BK / 32, 32});
                 auto e = cast(S.load({n, k / 32}, {c.BN, c.BK / 32}), f32) - 1.f;  // 2^(e - 127) 2^126
                 auto scaled = cast(w, f32) * expand_dims(exp2(e), 2);
                 acc = dot(A.load({m, k}, {c.BM, c.BK}), trans(reshape(cast(scaled, bf16), {c.BN, c.BK})), acc);
               }
               C.store({m, n}, cast(acc, bf16));
             }).grid([](const MxCfg& c, const auto& a, const auto& w, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r1("mxfp4", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 8192 : 144, K = e.big ? 8192 : 384;
  auto a = random<bfloat16>(e, size_t(M) * K);
  auto w = integers<uint8_t>(e, size_t(N) * (K / 2), 0, 256);
  auto s = integers<uint8_t>(e, size_t(N) * (K / 32), 118, 126);
  auto c = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(mxfp4, e.big ? MxCfg{} : MxCfg{64, 64, 64, 2, 4}, a.view(M, K), w.view(N, K / 2), s.view(N, K / 32),
        c.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      const double values[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
      const int code = w.h[size_t(n) * (K / 2) + k / 2] >> (k % 2 * 4) & 15;
      return (code & 8 ? -1 : 1) * values[code & 7] * std::exp2(s.h[size_t(n) * (K / 32) + k / 32] - 127.);
    };
    return agree(c.now(), product(M, N, K, matrix(a, K), weight), 2e-3, 8e-3);
  };
  return j;
});

// --- AWQ: words of eight neighbouring columns in the order 0 2 4 6 1 3 5 7, with packed zero points
struct AwqCfg {
  int BM = 64, BN = 128, BK = 64, G = 128, stages = 3, warps = 4;
};
auto awq = kernel("user_awq", [](const AwqCfg& c, Tensor<const half, 2> A, Tensor<const int32_t, 2> W,
                                 Tensor<const int32_t, 2> Z, Tensor<const half, 2> S, Tensor<half, 2> C) {
             // A [M, K], W [K, N / 8], Z [K / G, N / 8], S [K / G, N], C [M, N]
             num_warps(c.warps);
             auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
             auto i = arange(0, 8);
             auto shift = reshape((i / 2 + i % 2 * 4) * 4, {1, 1, 8});
             auto codes = [&](const Tile& words, int rows) {
               return reshape((expand_dims(words, 2) >> shift) & 15, {rows, c.BN});
             };
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
               auto w = codes(W.load({k, n / 8}, {c.BK, c.BN / 8}), c.BK);
               auto z = codes(Z.load({k / c.G, n / 8}, {1, c.BN / 8}), 1);
               auto s = S.load({k / c.G, n}, {1, c.BN});
               acc = dot(A.load({m, k}, {c.BM, c.BK}), cast(w - z, f16) * s, acc);
             }
             C.store({m, n}, cast(acc, f16));
           }).grid([](const AwqCfg& c, const auto& a, const auto&, const auto&, const auto& s, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(s.shape[1], c.BN)};
});
Register r2("awq", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 8192 : 144, K = e.big ? 8192 : 384, G = 128;
  auto a = random<half>(e, size_t(M) * K, -.3, .3);
  auto words = [&](size_t n) {
    return drawn<int32_t>(e, n, [&] {
      return int32_t(uint32_t(e.uniform() * 65536) * 65536u + uint32_t(e.uniform() * 65536));
    });
  };
  auto w = words(size_t(K) * (N / 8)), z = words(size_t(K / G) * (N / 8));
  auto s = random<half>(e, size_t(K / G) * N, 0.01, 0.1);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(awq, e.big ? AwqCfg{128, 128, 64, G, 3, 8} : AwqCfg{64, 64, 64, G, 3, 4}, a.view(M, K), w.view(K, N / 8),
        z.view(K / G, N / 8), s.view(K / G, N), c.view(M, N));
  j.check = [=] {
    auto code = [&](const Array<int32_t>& x, int row, int n) {
      const int order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
      return int(uint32_t(x.h[size_t(row) * (N / 8) + n / 8]) >> (4 * order[n % 8]) & 15);
    };
    auto weight = [&](int k, int n) {
      return in_half((code(w, k, n) - code(z, k / G, n)) * s[size_t(k / G) * N + n]);
    };
    return agree(c.now(), product(M, N, K, matrix(a, K), weight), 6e-3, 2e-3);
  };
  return j;
});

// --- a product whose output leaves as e4m3 with a scale per row and group of 128 columns
struct OutCfg {
  int BM = 128, BN = 256, BK = 64, G = 128, stages = 4, warps = 8;
};
auto quant_out = kernel("user_quant_out", [](const OutCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B,
                                             Tensor<fp8_e4m3, 2> C, Tensor<float, 2> S) {
                   // A [M, K], B [K, N], C [M, N], S [M, N / G]
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                     acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                   auto groups = reshape(silu(acc), {c.BM, c.BN / c.G, c.G});
                   auto scale = max(max(abs(groups), axis(2)), 1e-4f) / 448.f;
                   C.store({m, n}, reshape(cast(groups / scale, f8e4m3), {c.BM, c.BN}));
                   S.store({m, n / c.G}, squeeze(scale, 2));
                 }).grid([](const OutCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r3("quant_out", [](Env& e) {
  int M = e.big ? 4096 : 70, N = e.big ? 4096 : 256, K = e.big ? 4096 : 96;
  OutCfg c;
  if (!e.big) c = {64, 128, 32, 64, 2, 4};
  const int G = c.G;
  auto a = random<bfloat16>(e, size_t(M) * K), b = random<bfloat16>(e, size_t(K) * N);
  auto q = constant<fp8_e4m3>(e, size_t(M) * N, 0);
  auto s = constant<float>(e, size_t(M) * (N / G), NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(quant_out, c, a.view(M, K), b.view(K, N), q.view(M, N), s.view(M, N / G));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), matrix(b, N), [](double x, int, int) { return x / (1 + std::exp(-x)); });
    std::vector<double> scales, got;
    for (size_t i = 0; i < want.size(); i += G) {
      double most = 1e-4;
      for (int x = 0; x < G; ++x) most = std::max(most, std::abs(want[i + x]));
      scales.push_back(most / 448);
    }
    const auto codes = q.now();
    const auto factors = s.now();
    for (size_t i = 0; i < codes.size(); ++i) got.push_back(double(float(codes[i])) * factors[i / G]);
    const auto wrong = agree(factors, scales, 1e-6, 1e-3);
    return wrong.empty() ? agree(got, want, 2e-2, 7e-2) : wrong;
  };
  return j;
});

// --- rows rotated by a Hadamard matrix (butterflies of a power of two), then quantised to e4m3 with a scale per row
struct HadamardCfg {
  int R = 4, N = 1024, warps = 4;
};
auto hadamard = kernel("user_hadamard", [](const HadamardCfg& c, Tensor<const half, 2> X, Tensor<fp8_e4m3, 2> Y,
                                           Tensor<float, 1> S) {
                  num_warps(c.warps);
                  auto r = program_id(0) * c.R;
                  Tile x = cast(X.load({r, 0}, {c.R, c.N}), f32);
                  for (int h = 1; h < c.N; h *= 2) {
                    x = permute(reshape(x, {c.R, c.N / (2 * h), 2, h}), {0, 1, 3, 2});
                    auto [a, b] = split(x);
                    x = reshape(permute(join(a + b, a - b), {0, 1, 3, 2}), {c.R, c.N});
                  }
                  x = x * (1 / std::sqrt(float(c.N)));
                  auto scale = max(max(abs(x), axis(1)), 1e-6f) / 448.f;
                  Y.store({r, 0}, cast(x / scale, f8e4m3));
                  S.store({r}, squeeze(scale, 1));
                }).grid([](const HadamardCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[0], c.R)};
});
Register r4("hadamard", [](Env& e) {
  int M = e.big ? 65536 : 21, N = e.big ? 1024 : 128;
  auto x = random<half>(e, size_t(M) * N);
  auto y = constant<fp8_e4m3>(e, size_t(M) * N, 0);
  auto s = constant<float>(e, M, NAN);
  Job j;
  j.mbytes = 3e-6 * M * N;
  j.add(hadamard, HadamardCfg{4, N, 4}, x.view(M, N), y.view(M, N), s.view(M));
  j.check = [=] {
    std::vector<double> want, scales, got;
    for (int r = 0; r < M; ++r) {
      double most = 1e-6;
      for (int n = 0; n < N; ++n) {
        double sum = 0;
        for (int i = 0; i < N; ++i) sum += (__builtin_popcount(i & n) % 2 ? -1 : 1) * x[size_t(r) * N + i];
        want.push_back(sum / std::sqrt(double(N)));
        most = std::max(most, std::abs(want.back()));
      }
      scales.push_back(most / 448);
    }
    const auto codes = y.now();
    const auto factors = s.now();
    for (size_t i = 0; i < codes.size(); ++i) got.push_back(double(float(codes[i])) * factors[i / N]);
    const auto wrong = agree(factors, scales, 1e-7, 1e-5);
    return wrong.empty() ? agree(got, want, 5e-3, 7e-2) : wrong;
  };
  return j;
});

}  // namespace low_bits
}  // namespace users
