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
  else if (name == "i32")
    static_cast<int32_t*>(at)[i] = value;
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

/// `count` small products of computed tiles, 2 x times y or, where `turned`, times the transpose of a tile [count, n,
/// k]: the work of single warps where instructions fit.
void runBatches(const Format& format, const char* precision, int64_t count, int64_t m, int64_t n, int64_t k, int warps,
                bool turned, const char* target) {
  const std::string e = format.name, acc = format.acc;
  const std::vector<int64_t> ofX{count, m, k}, ofY{count, k, n}, stored{count, turned ? n : k, turned ? k : n},
      ofSum{count, m, n};
  std::string body = readTile("x", "a", ofX, e) + readTile("y", "b", stored, e) + readTile("s", "c", ofSum, acc);
  body += fmt::format("  %z = arith.{} %x, %x : {}\n", e == "i8" ? "addi" : "addf", tensor(ofX, e));
  if (turned) body += fmt::format("  %t = tile.trans %y, [0, 2, 1] : {} -> {}\n", tensor(stored, e), tensor(ofY, e));
  body += fmt::format("  %d = tile.batch_dot %z, %{}, %s precision {} : {}, {} -> {}\n", turned ? "t" : "y", precision,
                      tensor(ofX, e), tensor(ofY, e), tensor(ofSum, acc));
  body += writeTile("d", "c", ofSum, acc);
  SimtKernel kern(kernel(fmt::format("%a: !tile.ptr<{0}>, %b: !tile.ptr<{0}>, %c: !tile.ptr<{1}>", e, acc), body),
                  target, warps);
  GuardedBuffer a(count * m * k * format.bytes), b(count * k * n * format.bytes), c(count * m * n * 4);
  std::mt19937 random(5);
  std::vector<int> av(static_cast<size_t>(count * m * k)), bv(static_cast<size_t>(count * k * n));
  auto fill = [&](std::vector<int>& values, void* at) {
    for (size_t i = 0; i < values.size(); ++i)
      put(format, at, static_cast<int64_t>(i), values[i] = static_cast<int>(random() % 9) - 4);
  };
  fill(av, a.data()), fill(bv, b.data());
  for (int64_t i = 0; i < count * m * n; ++i)
    put({acc == "i32" ? "i32" : "f32", "", 4}, c.data(), i, static_cast<int>(i % 7));
  kern.run({slot(a.as<char>()), slot(b.as<char>()), slot(c.as<char>())}, 1, 1);
  for (int64_t at = 0; at < count * m * n; ++at) {
    const int64_t j = at % n, i = at / n % m, number = at / (m * n);
    int want = static_cast<int>(at % 7);
    for (int64_t p = 0; p < k; ++p)
      want += 2 * av[static_cast<size_t>((number * m + i) * k + p)] *
              bv[static_cast<size_t>(number * k * n + (turned ? j * k + p : p * n + j))];
    const double got = acc == "i32" ? c.as<int32_t>()[at] : c.as<float>()[at];
    ASSERT_EQ(got, want) << e << " " << count << " of " << m << "x" << n << "x" << k << ", " << warps << " warps, at "
                         << number << "," << i << "," << j;
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
  matmul(kF16, "ieee", 70, 200, 130, 64, 192, 64, 8);  // two warpgroups of 96 columns each
  matmul(kF16, "ieee", 70, 200, 130, 64, 96, 64, 8);   // of 48
  matmul(kF16, "ieee", 70, 200, 130, 64, 160, 64, 8);  // of 80
}
TEST_P(Dot, OtherFormats) {
  matmul(kBf16, "ieee", 70, 50, 100, 64, 64, 32, 4);
  matmul(kF32, "tf32", 70, 50, 100, 64, 64, 32, 4);
  matmul(kF32, "ieee", 40, 50, 36, 32, 32, 16, 4);
  matmul(kI8, "ieee", 70, 50, 100, 64, 64, 32, 4);
}

TEST_P(Dot, SmallProductsOfWarps) {
  for (bool turned : {false, true}) {
    auto batches = [&](const Format& format, const char* precision, int64_t count, int64_t m, int64_t n, int64_t k,
                       int warps) { runBatches(format, precision, count, m, n, k, warps, turned, GetParam()); };
    batches(kF16, "ieee", 4, 16, 16, 32, 4);   // a matrix for every warp
    batches(kBf16, "ieee", 16, 16, 8, 16, 4);  // several
    batches(kF16, "ieee", 4, 16, 32, 16, 8);   // warps side by side share one
    batches(kF16, "ieee", 6, 32, 16, 16, 4);   // two for some, one for others
    batches(kF16, "ieee", 5, 16, 16, 16, 8);
    batches(kF16, "ieee", 4, 8, 8, 16, 4);  // parts of instructions
    batches(kF16, "ieee", 4, 24, 12, 16, 4);
    batches(kI8, "ieee", 4, 16, 16, 32, 2);
    batches(kF32, "tf32", 8, 16, 16, 16, 4);
    batches(kF32, "ieee", 4, 16, 16, 16, 4);  // no instruction: unrolled, as are those below
    batches(kF16, "ieee", 4, 16, 16, 24, 4);
    batches(kF16, "ieee", 2, 16, 16, 16, 8);
    batches(kF16, "ieee", 1, 16, 16, 16, 4);
  }
}

/// Times the identity: what becomes of one operand. No more than 2/3 of the last of ten digits is lost, none where
/// there are no others, and a NaN stays one.
TEST_P(Dot, OfTf32KeepsTenDigits) {
  const std::vector<int64_t> shape{1, 16, 16};
  SimtKernel kern(kernel("%a: !tile.ptr<f32>, %b: !tile.ptr<f32>, %c: !tile.ptr<f32>",
                         readTile("x", "a", shape, "f32") + readTile("y", "b", shape, "f32") +
                             readTile("s", "c", shape, "f32") +
                             fmt::format("  %d = tile.batch_dot %x, %y, %s precision tf32 : {0}, {0} -> {0}\n",
                                         tensor(shape, "f32")) +
                             writeTile("d", "c", shape, "f32")),
                  GetParam(), 1);
  GuardedBuffer a(1024), b(1024), c(1024);
  std::mt19937 random(7);
  for (int i = 0; i < 256; ++i) {
    const double digits = i < 128 ? 1 + double(random() % 1024) / 1024 : 1 + double(random() % (1 << 23)) / (1 << 23);
    a.as<float>()[i] = static_cast<float>(std::ldexp(random() % 2 ? digits : -digits, int(random() % 40) - 20));
    b.as<float>()[i] = i % 17 == 0;
    c.as<float>()[i] = 0;
  }
  for (int column = 0; column < 16; ++column) a.as<float>()[240 + column] = std::bit_cast<float>(0x7fffffffu);
  kern.run({slot(a.as<char>()), slot(b.as<char>()), slot(c.as<char>())}, 1, 1);
  double lost = 0;
  for (int i = 0; i < 240; ++i) {
    const double want = a.as<float>()[i], got = c.as<float>()[i], last = std::ldexp(1, std::ilogb(want) - 10);
    ASSERT_LE(std::fabs(got - want), i < 128 ? 0 : .667 * last) << "element " << i << ": " << got << ", not " << want;
    lost += (std::fabs(want) - std::fabs(got)) / last / 112;
  }
  EXPECT_LT(std::fabs(lost), .1);  // neither towards zero nor away from it; cut off, one half
  EXPECT_TRUE(std::isnan(c.as<float>()[250]));
}

}  // namespace
}  // namespace tile::testing
