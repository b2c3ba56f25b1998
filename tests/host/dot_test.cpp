// dot_test.cpp - tile.dot on every operand type, over sizes that leave every kind of remainder, with operands as they
// come (loaded, computed, transposed) on the vector widths of several CPUs. Operands are small exact numbers: results
// are exact.
#include <cmath>

#include "host_kernel.h"

namespace tile::test {
namespace {

std::string str(int64_t n) { return std::to_string(n); }

enum class Operand { loaded, computed, transposed };

std::string dotKernel(int64_t m, int64_t n, int64_t k, const std::string& in, const std::string& acc, Operand a,
                      Operand b, bool zero) {
  auto type = [](int64_t r, int64_t c, const std::string& e) {
    return "tensor<" + str(r) + "x" + str(c) + "x" + e + ">";
  };
  std::string vi = "!tile.view<2 x " + in + ">", va = "!tile.view<2 x " + acc + ">", tc = type(m, n, acc);
  auto operand = [&](const char* name, const char* view, int64_t r, int64_t c, Operand how) {
    std::string v = std::string("%") + name,
                load = " = tile.load %" + std::string(view) + "[%c0, %c0 : i32, i32] : " + vi + " -> ";
    if (how == Operand::transposed)
      return "  " + v + "t" + load + type(c, r, in) + "\n  " + v + " = tile.trans " + v +
             "t, [1, 0] : " + type(c, r, in) + " -> " + type(r, c, in) + "\n";
    if (how == Operand::computed)
      return "  " + v + "l" + load + type(r, c, in) + "\n  " + v + " = arith." + (in[0] == 'i' ? "muli " : "mulf ") +
             v + "l, " + v + "l : " + type(r, c, in) + "\n";
    return "  " + v + load + type(r, c, in) + "\n";
  };
  return "func.func @k(%A: " + vi + ", %B: " + vi + ", %C: " + va +
         ") attributes {tile.kernel} {\n  %c0 = arith.constant 0 : i32\n" + operand("a", "A", m, k, a) +
         operand("b", "B", k, n, b) +
         (zero ? "  %acc = arith.constant dense<" + std::string(acc[0] == 'i' ? "0" : "0.0") + "> : " + tc + "\n"
               : "  %acc = tile.load %C[%c0, %c0 : i32, i32] : " + va + " -> " + tc + "\n") +
         "  %r = tile.dot %a, %b, %acc : " + type(m, k, in) + ", " + type(k, n, in) + " -> " + tc +
         "\n  tile.store %r, %C[%c0, %c0 : i32, i32] : " + tc + ", " + va + "\n  return\n}";
}

template <class In, class Acc>
void check(const char* in, const char* acc, int64_t m, int64_t n, int64_t k, Operand ha, Operand hb, bool zero,
           const char* target) {
  HostKernel kernel(dotKernel(m, n, k, in, acc, ha, hb, zero), target);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  auto numbers = smallNumbers(m * k + k * n + m * n, static_cast<uint32_t>(m * 7 + n * 3 + k));
  std::vector<In> a(m * k), b(k * n);
  std::vector<Acc> c(m * n);
  double scale = std::is_integral_v<In> ? 4 : 1;
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<In>(static_cast<float>(scale * numbers[i]));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<In>(static_cast<float>(scale * numbers[m * k + i]));
  for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<Acc>(scale * numbers[m * k + k * n + i]);
  auto element = [](const std::vector<In>& v, int64_t r, int64_t column, int64_t rows, int64_t columns, Operand how) {
    double x = static_cast<double>(
        static_cast<float>(how == Operand::transposed ? v[column * rows + r] : v[r * columns + column]));
    return how == Operand::computed ? x * x : x;
  };
  auto before = c;
  auto extent = [](int64_t r, int64_t columns, Operand how) {
    return how == Operand::transposed ? std::vector<int64_t>{columns, r} : std::vector<int64_t>{r, columns};
  };
  kernel.run(Args().view(a.data(), extent(m, k, ha)).view(b.data(), extent(k, n, hb)).view(c.data(), {m, n}));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = zero ? 0 : static_cast<double>(before[i * n + j]);
      for (int64_t q = 0; q < k; ++q) sum += element(a, i, q, m, k, ha) * element(b, q, j, k, n, hb);
      ASSERT_EQ(static_cast<double>(c[i * n + j]), sum)
          << in << " " << m << "x" << n << "x" << k << " at " << i << "," << j << " on " << target;
    }
}

const std::array<int64_t, 3> kSizes[] = {{1, 1, 1},    {1, 16, 3},  {16, 1, 8},   {3, 5, 7},    {13, 33, 9},
                                         {12, 32, 16}, {17, 63, 5}, {31, 65, 17}, {64, 48, 40}, {8, 100, 1}};

TEST(HostDot, EveryTypeEverySizeEveryOrigin) {
  const char* targets[] = {"host", "host:x86-64", "host:x86-64-v3"};
  size_t turn = 0;
  for (auto [m, n, k] : kSizes)
    for (Operand a : {Operand::loaded, Operand::computed, Operand::transposed})
      for (Operand b : {Operand::loaded, Operand::computed, Operand::transposed}) {
        bool zero = turn % 2 == 0;
        const char* target = targets[turn % 3];
        switch (turn++ % 5) {
          case 0:
            check<float, float>("f32", "f32", m, n, k, a, b, zero, target);
            break;
          case 1:
            check<half, float>("f16", "f32", m, n, k, a, b, zero, target);
            break;
          case 2:
            check<bfloat16, float>("bf16", "f32", m, n, k, a, b, zero, target);
            break;
          case 3:
            check<double, double>("f64", "f64", m, n, k, a, b, zero, target);
            break;
          case 4:
            check<int8_t, int32_t>("i8", "i32", m, n, k, a, b, zero, target);
            break;
        }
      }
}

TEST(HostDot, F32OnEveryVectorWidthAndRemainder) {
  for (const char* target : {"host", "host:x86-64", "host:x86-64-v3"})
    for (int64_t n : {4, 7, 8, 15, 16, 17, 31, 47, 48, 49, 64})
      check<float, float>("f32", "f32", 13, n, 6, Operand::loaded, Operand::loaded, n % 2, target);
}

TEST(HostDot, Fp8Operands) {
  check<fp8_e4m3, float>("f8E4M3FN", "f32", 9, 17, 8, Operand::loaded, Operand::loaded, true, "host");
  check<fp8_e4m3, float>("f8E4M3FN", "f32", 9, 17, 8, Operand::transposed, Operand::transposed, false, "host");
}

// Large enough for the matrix unit, where this machine has one: edges of m and n, steps of k shorter than a register's,
// blocks of one row or column of registers.
TEST(HostDot, NarrowOperandsOnTheMatrixUnit) {
  const std::array<int64_t, 3> sizes[] = {{17, 33, 64}, {64, 48, 40}, {31, 65, 48},  {16, 100, 32}, {100, 16, 32},
                                          {40, 1, 256}, {1, 70, 128}, {96, 128, 192}, {5, 50, 36},  {33, 31, 34}};
  size_t turn = 0;
  for (auto [m, n, k] : sizes)
    for (Operand a : {Operand::loaded, Operand::computed, Operand::transposed})
      for (Operand b : {Operand::loaded, Operand::computed, Operand::transposed}) {
        const bool zero = ++turn % 3 == 0;
        if (turn % 2 == 0)
          check<bfloat16, float>("bf16", "f32", m, n, k, a, b, zero, "host");
        else if (turn % 4 == 1 || a == Operand::computed || b == Operand::computed)
          check<int8_t, int32_t>("i8", "i32", m, n, k, a, b, zero, "host");
        else
          check<fp8_e4m3, float>("f8E4M3FN", "f32", m, n, k, a, b, zero, "host");
      }
}

// Infinities and NaN meet only what they are multiplied by; a row of zeros times an infinity is NaN.
TEST(HostDot, InfinitiesOnTheMatrixUnit) {
  const int64_t m = 32, n = 48, k = 64;
  HostKernel kernel(dotKernel(m, n, k, "bf16", "f32", Operand::loaded, Operand::loaded, true));
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<bfloat16> a(m * k, bfloat16(1.f)), b(k * n, bfloat16(2.f));
  std::vector<float> c(m * n);
  a[3 * k + 7] = bfloat16(INFINITY);
  a[9 * k] = bfloat16(NAN);
  b[5 * n + 40] = bfloat16(-INFINITY);
  kernel.run(Args().view(a.data(), {m, k}).view(b.data(), {k, n}).view(c.data(), {m, n}));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      if (i == 9 || (i == 3 && j == 40))
        EXPECT_TRUE(std::isnan(c[i * n + j])) << i << "," << j;
      else
        EXPECT_EQ(c[i * n + j], j == 40 ? -INFINITY : i == 3 ? INFINITY : 2.f * k) << i << "," << j;
    }
}

// Operands of boxes inside wider tensors are read where they are; those over an edge are copied, with zeros outside.
TEST(HostDot, MatrixUnitReadsRowsApart) {
  const int64_t m = 40, n = 48, k = 64;
  const std::string text = R"(
    func.func @k(%A: !tile.view<2 x bf16>, %B: !tile.view<2 x bf16>, %C: !tile.view<2 x f32>, %i: i32, %j: i32, %t: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %z = arith.constant dense<0.0> : tensor<40x48xf32>
      %a = tile.load %A[%i, %t : i32, i32] : !tile.view<2 x bf16> -> tensor<40x64xbf16>
      %b = tile.load %B[%t, %j : i32, i32] : !tile.view<2 x bf16> -> tensor<64x48xbf16>
      %r = tile.dot %a, %b, %z : tensor<40x64xbf16>, tensor<64x48xbf16> -> tensor<40x48xf32>
      tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<40x48xf32>, !tile.view<2 x f32>
      return
    })";
  HostKernel kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  const int64_t rows = 70, depth = 100, columns = 90;
  std::vector<float> numbers = smallNumbers(rows * depth + depth * columns, 5);
  std::vector<bfloat16> a(rows * depth), b(depth * columns);
  for (size_t i = 0; i < a.size(); ++i) a[i] = bfloat16(numbers[i]);
  for (size_t i = 0; i < b.size(); ++i) b[i] = bfloat16(numbers[a.size() + i]);
  for (auto [i0, j0, t0] : {std::array<int32_t, 3>{20, 30, 10}, {50, 60, 36}, {0, 0, 0}, {3, 50, 60}}) {
    std::vector<float> c(m * n);
    kernel.run(Args()
                   .view(a.data(), {rows, depth})
                   .view(b.data(), {depth, columns})
                   .view(c.data(), {m, n})
                   .scalar(i0)
                   .scalar(j0)
                   .scalar(t0));
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        if (i0 + i < rows && j0 + j < columns)
          for (int64_t t = t0; t < std::min(depth, t0 + k); ++t)
            sum += static_cast<float>(a[(i0 + i) * depth + t]) * static_cast<float>(b[t * columns + j0 + j]);
        ASSERT_EQ(c[i * n + j], sum) << i << "," << j << " of the box at " << i0 << "," << j0 << "," << t0;
      }
  }
}

TEST(HostDot, Tf32AndSquareOperandsUsedTwice) {
  HostKernel kernel(R"(
    func.func @k(%A: !tile.view<2 x f32>, %C: !tile.view<2 x f32>) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %a = tile.load %A[%c0, %c0 : i32, i32] : !tile.view<2 x f32> -> tensor<20x20xf32>
      %t = tile.trans %a, [1, 0] : tensor<20x20xf32> -> tensor<20x20xf32>
      %z = arith.constant dense<0.0> : tensor<20x20xf32>
      %s = tile.dot %a, %t, %z precision tf32 : tensor<20x20xf32>, tensor<20x20xf32> -> tensor<20x20xf32>
      %r = tile.dot %s, %a, %t : tensor<20x20xf32>, tensor<20x20xf32> -> tensor<20x20xf32>
      tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<20x20xf32>, !tile.view<2 x f32>
      return
    })");
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::vector<float> a = smallNumbers(400), s(400), want(400), c(400);
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 20; ++j)
      for (int k = 0; k < 20; ++k) s[i * 20 + j] += a[i * 20 + k] * a[j * 20 + k];
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 20; ++j) {
      want[i * 20 + j] = a[j * 20 + i];
      for (int k = 0; k < 20; ++k) want[i * 20 + j] += s[i * 20 + k] * a[k * 20 + j];
    }
  kernel.run(Args().view(a.data(), {20, 20}).view(c.data(), {20, 20}));
  EXPECT_EQ(c, want);
}

// Operands are read where they are, rows apart, or copied where the box reaches over an edge or rows do not lie together.
TEST(HostDot, OperandsOfViewsWithRowsApart) {
  const int64_t m = 20, n = 40, k = 24;
  const std::string text = R"(
    func.func @k(%A: !tile.view<2 x f32>, %B: !tile.view<2 x f32>, %C: !tile.view<2 x f32>, %i: i32, %j: i32, %t: i32) attributes {tile.kernel} {
      %c0 = arith.constant 0 : i32
      %z = arith.constant dense<0.0> : tensor<20x40xf32>
      %a = tile.load %A[%i, %t : i32, i32] : !tile.view<2 x f32> -> tensor<20x24xf32>
      %b = tile.load %B[%t, %j : i32, i32] : !tile.view<2 x f32> -> tensor<24x40xf32>
      %r = tile.dot %a, %b, %z : tensor<20x24xf32>, tensor<24x40xf32> -> tensor<20x40xf32>
      tile.store %r, %C[%c0, %c0 : i32, i32] : tensor<20x40xf32>, !tile.view<2 x f32>
      return
    })";
  for (const char* target : {"host", "host:x86-64", "host:x86-64-v4"}) {
    HostKernel kernel(text, target);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    const int64_t rows = 50, columns = 70;
    const auto a = smallNumbers(rows * columns, 3), b = smallNumbers(rows * columns, 4);
    using Strides = std::vector<int64_t>;
    for (const Strides& sa : {Strides{columns, 1}, {1, rows}, {0, 1}, {-columns, 1}})
      for (const Strides& sb : {Strides{columns, 1}, {1, rows}, {0, 1}})
        for (auto [i, j, t] : {std::array{0, 0, 0}, {7, 9, 5}, {40, 50, 40}, {-3, -5, -7}}) {
          const float* start_a = a.data() + (sa[0] < 0 ? (rows - 1) * columns : 0);
          std::vector<float> c(static_cast<size_t>(m * n), -1);
          kernel.run(Args().view(start_a, {rows, columns}, sa).view(b.data(), {rows, columns}, sb).view(c.data(), {m, n})
                         .scalar(i).scalar(j).scalar(t));
          auto element = [&](const float* from, const Strides& s, int64_t r, int64_t q) {
            return r < 0 || q < 0 || r >= rows || q >= columns ? 0.f : from[r * s[0] + q * s[1]];
          };
          for (int64_t r = 0; r < m; ++r)
            for (int64_t q = 0; q < n; ++q) {
              float sum = 0;
              for (int64_t d = 0; d < k; ++d)
                sum += element(start_a, sa, i + r, t + d) * element(b.data(), sb, t + d, j + q);
              ASSERT_EQ(c[static_cast<size_t>(r * n + q)], sum) << r << "," << q << " on " << target;
            }
        }
  }
}

}  // namespace
}  // namespace tile::test
