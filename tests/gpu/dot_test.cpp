// dot_test.cpp - products on the simulated tensor cores (fragments as the PTX ISA defines them), from view loads
// through asynchronous copies, ldmatrix and mma to the stored result; loops with pipelined copies; ragged sizes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

uint16_t toBf16(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }
// Small integers are exact in every format, so results must match exactly.
uint16_t toHalf(int x) {
  if (x == 0) return 0;
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023));
}

struct Format {
  const char* name;
  const char* acc;
  int bytes;
};

void put(const Format& format, void* at, int64_t i, int value) {
  std::string name = format.name;
  if (name == "f16")
    static_cast<uint16_t*>(at)[i] = toHalf(value);
  else if (name == "bf16")
    static_cast<uint16_t*>(at)[i] = toBf16(static_cast<float>(value));
  else if (name == "i8")
    static_cast<int8_t*>(at)[i] = static_cast<int8_t>(value);
  else
    static_cast<float*>(at)[i] = static_cast<float>(value);
}

void runMatmul(const Format& format, const char* precision, int M, int N, int K, int m, int n, int k, int warps,
               const char* target) {
  auto view = [&](const char* element) {
    return fmt::format(
        "!tile.view<2x{}> {{tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: "
        "16, 1>}}",
        element);
  };
  std::string zero = std::string(format.acc) == "i32" ? "0" : "0.0";
  SimtKernel kern(kernel(fmt::format("%a: {0}, %b: {0}, %c: {1}, %K: i32", view(format.name), view(format.acc)),
                         fmt::format(R"(  %c0 = arith.constant 0 : i32
  %ck = arith.constant {k} : i32
  %cm = arith.constant {m} : i32
  %cn = arith.constant {n} : i32
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %im = arith.muli %pm, %cm : i32
  %in = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<{zero}> : tensor<{m}x{n}x{acc}>
  %r = scf.for %i = %c0 to %K step %ck iter_args(%sum = %zero) -> (tensor<{m}x{n}x{acc}>) : i32 {{
    %x = tile.load %a[%im, %i : i32, i32] : !tile.view<2x{e}> -> tensor<{m}x{k}x{e}>
    %y = tile.load %b[%i, %in : i32, i32] : !tile.view<2x{e}> -> tensor<{k}x{n}x{e}>
    %s = tile.dot %x, %y, %sum precision {p} : tensor<{m}x{k}x{e}>, tensor<{k}x{n}x{e}> -> tensor<{m}x{n}x{acc}>
    scf.yield %s : tensor<{m}x{n}x{acc}>
  }}
  tile.store %r, %c[%im, %in : i32, i32] : tensor<{m}x{n}x{acc}>, !tile.view<2x{acc}>
)",
                                     fmt::arg("m", m), fmt::arg("n", n), fmt::arg("k", k), fmt::arg("e", format.name),
                                     fmt::arg("acc", format.acc), fmt::arg("zero", zero), fmt::arg("p", precision))),
                  target, warps);
  auto pitch = [](int width) { return (width + 15) / 16 * 16; };
  int pa = pitch(K), pb = pitch(N), pc = pitch(N);
  GuardedBuffer a(int64_t{M} * pa * format.bytes), b(int64_t{K} * pb * format.bytes), c(int64_t{M} * pc * 4);
  std::mt19937 random(3);
  std::vector<int> av(M * K), bv(K * N);
  std::memset(a.data(), 0x7f, int64_t{M} * pa * format.bytes);  // what lies between rows must not be read
  std::memset(b.data(), 0x7f, int64_t{K} * pb * format.bytes);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < K; ++j)
      put(format, a.data(), int64_t{i} * pa + j, av[i * K + j] = static_cast<int>(random() % 9) - 4);
  for (int i = 0; i < K; ++i)
    for (int j = 0; j < N; ++j)
      put(format, b.data(), int64_t{i} * pb + j, bv[i * N + j] = static_cast<int>(random() % 9) - 4);
  auto u = [](int v) { return static_cast<uint64_t>(v); };
  kern.run({slot(a.as<char>()), u(M), u(K), u(pa), 1, slot(b.as<char>()), u(K), u(N), u(pb), 1, slot(c.as<char>()),
            u(M), u(N), u(pc), 1, u(K)},
           (M + m - 1) / m, (N + n - 1) / n);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      int want = 0;
      for (int kk = 0; kk < K; ++kk) want += av[i * K + kk] * bv[kk * N + j];
      double got = std::string(format.acc) == "i32" ? c.as<int32_t>()[i * pc + j] : c.as<float>()[i * pc + j];
      ASSERT_EQ(got, want) << format.name << " " << M << "x" << N << "x" << K << " at " << i << "," << j;
    }
}

const Format kF16{"f16", "f32", 2}, kBf16{"bf16", "f32", 2}, kF32{"f32", "f32", 4}, kI8{"i8", "i32", 1};

class Dot : public ::testing::TestWithParam<const char*> {
 protected:
  void matmul(const Format& format, const char* precision, int M, int N, int K, int m, int n, int k, int warps) {
    runMatmul(format, precision, M, N, K, m, n, k, warps, GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Targets, Dot, ::testing::Values("sm_80", "sm_90a"));

TEST_P(Dot, Half) {
  matmul(kF16, "ieee", 128, 128, 128, 64, 64, 32, 4);
  matmul(kF16, "ieee", 70, 50, 100, 64, 64, 32, 4);
  matmul(kF16, "ieee", 64, 96, 64, 64, 96, 32, 4);
  matmul(kF16, "ieee", 33, 20, 40, 32, 16, 16, 8);
}
TEST_P(Dot, OtherFormats) {
  matmul(kBf16, "ieee", 70, 50, 100, 64, 64, 32, 4);
  matmul(kF32, "tf32", 70, 50, 100, 64, 64, 32, 4);
  matmul(kF32, "ieee", 40, 50, 36, 32, 32, 16, 4);
  matmul(kI8, "ieee", 70, 50, 100, 64, 64, 32, 4);
}

}  // namespace
}  // namespace tile::testing
