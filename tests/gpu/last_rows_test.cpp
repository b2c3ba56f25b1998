// last_rows_test.cpp - bulk copies of boxes that end behind the view: its last rows by a box of their own and zeros
// behind them, where they begin at a multiple of the box, else what the hardware makes of them. On the simulated
// machine against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing::last_rows_test {
namespace {

constexpr int kRows = 64, kDepth = 128, kMost = 3 * kRows;

/// o[i, j] = sum over k < depth of a[first + i, k] b[j, k], boxes of 64 x `columns`.
std::string text(int columns, int rowsAreMultipleOf) {
  const std::string view =
      "!tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, "
      "1>";
  return kernel("%a: " + view + fmt::format(", tile.dim_multiple_of = array<i32: {}, 1>}}, %b: ", rowsAreMultipleOf) +
                    view + "}, %o: !tile.view<2xf32> {tile.unit_stride = 1 : i32}, %first: i32, %depth: i32",
                fmt::format(R"(
  %c0 = arith.constant 0 : i32
  %step = arith.constant {0} : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %n = %c0 to %depth step %step iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {{
    %x = tile.load %a[%first, %n : i32, i32] : !tile.view<2xf16> -> tensor<64x{0}xf16>
    %y = tile.load %b[%c0, %n : i32, i32] : !tile.view<2xf16> -> tensor<64x{0}xf16>
    %t = tile.trans %y, [1, 0] : tensor<64x{0}xf16> -> tensor<{0}x64xf16>
    %d = tile.dot %x, %t, %acc : tensor<64x{0}xf16>, tensor<{0}x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }} {{tile.stages = 2 : i32}}
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
)",
                            columns));
}

struct Sizes {
  int a, b;   ///< rows
  int first;  ///< of the box in a
};

int wrongElements(SimtKernel& kern, Sizes sizes, uint32_t seed) {
  std::mt19937 random(seed);
  GuardedBuffer a(2 * static_cast<size_t>(std::max(1, sizes.a)) * kDepth), b(2 * kMost * kDepth), o(4 * kRows * kRows);
  for (int i = 0; i < sizes.a * kDepth; ++i) a.as<half>()[i] = half(static_cast<float>(int(random() % 5) - 2));
  for (int i = 0; i < kMost * kDepth; ++i)
    b.as<half>()[i] = i / kDepth < sizes.b ? half(static_cast<float>(int(random() % 5) - 2)) : half(NAN);
  std::fill_n(o.as<float>(), kRows * kRows, -77.f);
  kern.run({slot(a.data()), slot(sizes.a), slot(kDepth), slot(kDepth), 1, slot(b.data()), slot(sizes.b), slot(kDepth),
            slot(kDepth), 1, slot(o.data()), slot(kRows), slot(kRows), slot(kRows), 1, slot(sizes.first), slot(kDepth)},
           1, 1, 1, seed);
  int wrong = 0;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kRows; ++j) {
      const int row = sizes.first + i;
      float sum = 0;
      for (int k = 0; k < kDepth && row >= 0 && row < sizes.a && j < sizes.b; ++k)
        sum += static_cast<float>(a.as<half>()[row * kDepth + k]) * static_cast<float>(b.as<half>()[j * kDepth + k]);
      wrong += o.as<float>()[i * kRows + j] != sum;
    }
  return wrong;
}

TEST(LastRows, OfAnySizeAndPlace) {
  for (const int columns : {64, 128}) {
    SimtKernel kern(text(columns, 1), "sm_90a", 4);
    const auto& maps = kern.binary().tensor_maps;
    ASSERT_EQ(maps.size(), 4u);
    EXPECT_EQ(std::count_if(maps.begin(), maps.end(), [](const TensorMapInfo& map) { return map.remainder; }), 2);
    for (const int first : {0, 64, 128, 1, -3, 63})
      for (const int rows : {0, 1, 37, 63, 64, 65, 127, 128, 130, kMost}) {
        EXPECT_EQ(wrongElements(kern, {rows, 64, first}, 3), 0) << rows << " rows from " << first;
        EXPECT_EQ(wrongElements(kern, {kMost, rows, first}, 4), 0) << rows << " rows of b, a from " << first;
      }
  }
}

TEST(LastRows, NoneWhereBoxesFit) {
  SimtKernel kern(text(64, 64), "sm_90a", 4);
  EXPECT_EQ(kern.binary().tensor_maps.size(), 3u) << "of b only";
  EXPECT_EQ(wrongElements(kern, {128, 37, 64}, 5), 0);
}

}  // namespace
}  // namespace tile::testing::last_rows_test
