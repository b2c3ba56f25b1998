// long_bodies_test.cpp - kernels of hundreds of loads, stores and reductions, as unrolled loops make them: what they
// compute, and that compiling them takes seconds at most.
#include <ctime>

#include "host_kernel.h"

namespace tile::test {
namespace {

std::string str(int64_t n) { return std::to_string(n); }

/// CPU seconds of this process that compiling takes.
double secondsFor(const std::string& text) {
  const std::clock_t start = std::clock();
  const HostKernel kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.error;
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// `steps` operations on one tile, each made in the loops of the next.
std::string chainOfOperations(int steps) {
  std::string text =
      "func.func @k(%A: !tile.view<1 x f32>, %C: !tile.view<1 x f32>) attributes {tile.kernel} {\n"
      "  %p = arith.constant 0 : i32\n  %f = arith.constant dense<0.5> : tensor<64xf32>\n"
      "  %s0 = tile.load %A[%p : i32] : !tile.view<1 x f32> -> tensor<64xf32>\n";
  for (int n = 0; n < steps; ++n) {
    const std::string v = str(n);
    text += "  %m" + v + " = arith.mulf %s" + v + ", %f : tensor<64xf32>\n  %s" + str(n + 1) + " = arith.addf %m" + v +
            ", %f : tensor<64xf32>\n";
  }
  return text + "  tile.store %s" + str(steps) + ", %C[%p : i32] : tensor<64xf32>, !tile.view<1 x f32>\n  return\n}";
}

/// How long the compiler takes for `text`, in times of a plain body of 2000 operations: machines differ, and share their
/// cores with others'. The least of three, or the first below `limit`.
double timesAPlainBody(const std::string& text, double limit) {
  double least = 1e9;
  for (int attempt = 0; attempt < 3 && least > limit; ++attempt) {
    const double unit = secondsFor(chainOfOperations(1000));
    least = std::min(least, secondsFor(text) / unit);
  }
  return least;
}

// Each load and store is a call then. Boxes reach over every edge, rows lie apart, and one tile is stored twice.
TEST(HostLongBodies, LoadsAndStoresAreCalls) {
  constexpr int kBoxes = 110;
  constexpr int64_t kRows = 60, kColumns = 50;
  std::string text =
      "func.func @k(%A: !tile.view<2 x f32>, %B: !tile.view<2 x f32> {tile.unit_stride = 1 : i32}, "
      "%C: !tile.view<3 x f32>, %i: i32) attributes {tile.kernel} {\n";
  for (int n = 0; n < kBoxes; ++n) {
    const std::string v = str(n), view = n % 2 ? "%B" : "%A";
    text += "  %r" + v + " = arith.constant " + str(7 * n % 71 - 6) + " : i32\n  %c" + v + " = arith.constant " +
            str(11 * n % 63 - 7) + " : i32\n  %n" + v + " = arith.constant " + v + " : i32\n  %at" + v +
            " = arith.addi %r" + v + ", %i : i32\n  %t" + v + " = tile.load " + view + "[%at" + v + ", %c" + v +
            " : i32, i32] : !tile.view<2 x f32> -> tensor<6x9xf32>\n  tile.store %t" + v + ", %C[%n" + v + ", %i, %i" +
            " : i32, i32, i32] : tensor<6x9xf32>, !tile.view<3 x f32>\n";
  }
  text += "  return\n}";
  HostKernel kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  const std::vector<float> a = smallNumbers(kRows * kColumns * 2, 3), b = smallNumbers(kRows * kColumns, 4);
  for (int shift : {0, 2}) {
    std::vector<float> c(kBoxes * 7 * 9, -1), want = c;
    for (int n = 0; n < kBoxes; ++n)
      for (int64_t i = 0; i < 6 && i + shift < 7; ++i)
        for (int64_t j = 0; j + shift < 9; ++j) {
          const int64_t row = 7 * n % 71 - 6 + shift + i, column = 11 * n % 63 - 7 + j;
          const bool inside = row >= 0 && row < kRows && column >= 0 && column < kColumns;
          const float x = !inside ? 0 : n % 2 ? b[row * kColumns + column] : a[2 * (column * kRows + row)];
          want[(n * 7 + i + shift) * 9 + j + shift] = x;
        }
    kernel.run(Args()
                   .view(a.data(), {kRows, kColumns}, {2, 2 * kRows})
                   .view(b.data(), {kRows, kColumns})
                   .view(c.data(), {kBoxes, 7, 9})
                   .scalar(shift));
    EXPECT_EQ(c, want) << "boxes moved by " << shift;
  }
}

TEST(HostLongBodies, NumbersReadOutsideAreTheirPadding) {
  constexpr int kLoads = 300;
  std::string text =
      "func.func @k(%A: !tile.view<1 x f32>, %C: !tile.view<1 x f32>, %i: i32) attributes {tile.kernel} {\n"
      "  %s0 = arith.constant 0.0 : f32\n";
  for (int n = 0; n < kLoads; ++n) {
    const std::string v = str(n);
    text += "  %c" + v + " = arith.constant " + str(n - 20) + " : i32\n  %i" + v + " = arith.addi %i, %c" + v +
            " : i32\n  %l" + v + " = tile.load %A[%i" + v + " : i32] pad 2.0 : !tile.view<1 x f32> -> f32\n  %s" +
            str(n + 1) + " = arith.addf %s" + v + ", %l" + v + " : f32\n";
  }
  text += "  tile.store %s" + str(kLoads) + ", %C[%i : i32] : f32, !tile.view<1 x f32>\n  return\n}";
  HostKernel kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<float> a(100, 1.f), c(1);
  kernel.run(Args().view(a.data(), {100}).view(c.data(), {1}).scalar(0));
  EXPECT_EQ(c[0], 100.f + 2.f * (kLoads - 100));
}

// Reductions of one chain, none of which joins another: their expressions were walked again for every pair (13 s).
TEST(HostLongBodies, ChainsOfReductionsCompileInTime) {
  constexpr int kReductions = 500;
  std::string text =
      "func.func @k(%A: !tile.view<1 x f32>, %C: !tile.view<1 x f32>) attributes {tile.kernel} {\n"
      "  %p = tile.program_id 0\n"
      "  %l0 = tile.load %A[%p : i32] : !tile.view<1 x f32> -> tensor<64xf32>\n";
  for (int n = 0; n < kReductions; ++n) {
    const std::string v = str(n);
    text += "  %r" + v + " = tile.reduce %l" + v + " axis 0 : (tensor<64xf32>) -> tensor<1xf32> {\n" +
            "  ^bb0(%x: f32, %y: f32):\n    %z = arith.addf %x, %y : f32\n    tile.yield %z : f32\n  }\n  %b" + v +
            " = tile.broadcast %r" + v + " : tensor<1xf32> -> tensor<64xf32>\n  %l" + str(n + 1) + " = arith.mulf %l" + v + ", %b" + v +
            " : tensor<64xf32>\n";
  }
  text += "  tile.store %l" + str(kReductions) + ", %C[%p : i32] : tensor<64xf32>, !tile.view<1 x f32>\n  return\n}";
  EXPECT_LT(timesAPlainBody(text, 25), 25);
}

// 2000 loads of tiles took 15 s of CPU time, for the whole function was searched again after every change to it.
TEST(HostLongBodies, SumsOfManyTilesCompileInTime) {
  constexpr int kLoads = 2000;
  std::string text =
      "func.func @k(%A: !tile.view<1 x f32>, %C: !tile.view<1 x f32>) attributes {tile.kernel} {\n"
      "  %p = tile.program_id 0\n  %s0 = arith.constant dense<0.0> : tensor<64xf32>\n";
  for (int n = 0; n < kLoads; ++n) {
    const std::string v = str(n);
    text += "  %c" + v + " = arith.constant " + str(64 * n) + " : i32\n  %i" + v + " = arith.addi %p, %c" + v +
            " : i32\n  %l" + v + " = tile.load %A[%i" + v + " : i32] : !tile.view<1 x f32> -> tensor<64xf32>\n  %s" +
            str(n + 1) + " = arith.addf %s" + v + ", %l" + v + " : tensor<64xf32>\n";
  }
  text += "  tile.store %s" + str(kLoads) + ", %C[%p : i32] : tensor<64xf32>, !tile.view<1 x f32>\n  return\n}";
  EXPECT_LT(timesAPlainBody(text, 20), 20);
}

// Operations on one tile, each made in the loops of the next: their bodies grew without end (5000: 20 s, 20000: a stack
// overflow).
TEST(HostLongBodies, ChainsOfOperationsCompileInTime) {
  constexpr int kSteps = 8000;
  const std::string text = chainOfOperations(kSteps);
  EXPECT_LT(timesAPlainBody(text, 20), 20);
  HostKernel kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<float> a(64, 9.f), c(64);
  kernel.run(Args().view(a.data(), {64}).view(c.data(), {64}));
  EXPECT_EQ(c[63], 1.f);  // where x / 2 + 1 / 2 arrives
}

}  // namespace
}  // namespace tile::test
