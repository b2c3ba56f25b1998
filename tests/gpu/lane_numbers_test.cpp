// lane_numbers_test.cpp - loops whose bounds are extremes of a tile that each program loads: producer and consumers
// find them by themselves. On the simulated machine under several schedules, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing::lane_numbers_test {
namespace {

constexpr int kRows = 64, kColumns = 64, kStep = 64, kPrograms = 7;

/// o[64 p + i, j] = sum over k of a[64 p + i, k] b[k, j], in steps of 64 from the least of first[64 p ..] to the
/// largest of end[64 p ..]; places behind `numbers` count as 2^31 - 1 and 0.
std::string text() {
  const std::string aligned =
      "{tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}";
  return kernel("%a: !tile.view<2xf16> " + aligned + ", %b: !tile.view<2xf16> " + aligned +
                    ", %first: !tile.view<1xi32>, %end: !tile.view<1xi32>, %o: !tile.view<2xf32> {tile.unit_stride = 1 "
                    ": i32}",
                R"(
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %id = tile.program_id 0
  %row = arith.muli %id, %c64 : i32
  %firsts = tile.load %first[%row : i32] pad 0x41DFFFFFFFC00000 : !tile.view<1xi32> -> tensor<64xi32>
  %ends = tile.load %end[%row : i32] : !tile.view<1xi32> -> tensor<64xi32>
  %least = tile.reduce %firsts axis 0 : (tensor<64xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.minsi %p, %q : i32
    tile.yield %m : i32
  }
  %most = tile.reduce %ends axis 0 : (tensor<64xi32>) -> tensor<1xi32> {
  ^bb0(%p: i32, %q: i32):
    %m = arith.maxsi %p, %q : i32
    tile.yield %m : i32
  }
  %lo = tile.item %least : tensor<1xi32> -> i32
  %hi = tile.item %most : tensor<1xi32> -> i32
  %unit = arith.divsi %lo, %c64 : i32
  %begin = arith.muli %unit, %c64 : i32
  %r = scf.for %k = %begin to %hi step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load %a[%row, %k : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %y = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %y, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %o[%row, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
)");
}

TEST(LaneNumbers, BoundsThatAreExtremesOfATile) {
  SimtKernel kern(text(), "sm_90a", 4);
  ASSERT_NE(kern.ptx().find("redux.sync.min"), std::string::npos);
  ASSERT_TRUE(kern.binary().persistent);
  constexpr int kDepth = 320, kAll = kPrograms * kRows, kNumbers = kAll - 40;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    std::mt19937 random(seed);
    auto number = [&](int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); };
    GuardedBuffer a(2 * kAll * kDepth), b(2 * kDepth * kColumns), o(4 * kAll * kColumns);
    GuardedBuffer first(4 * kNumbers), end(4 * kNumbers);
    for (int i = 0; i < kAll * kDepth; ++i) a.as<half>()[i] = half(static_cast<float>(number(5) - 2));
    for (int i = 0; i < kDepth * kColumns; ++i) b.as<half>()[i] = half(static_cast<float>(number(5) - 2));
    for (int i = 0; i < kNumbers; ++i) {
      const int least = i / kRows == 2 ? kDepth : number(kDepth);  // one program has nothing to do
      first.as<int>()[i] = least;
      end.as<int>()[i] = i / kRows == 2 ? number(kDepth) : std::min(kDepth, least + number(kDepth));
    }
    std::fill_n(o.as<float>(), kAll * kColumns, -77.f);
    kern.run({slot(a.data()),
              kAll,
              kDepth,
              kDepth,
              1,
              slot(b.data()),
              kDepth,
              kColumns,
              kColumns,
              1,
              slot(first.data()),
              kNumbers,
              1,
              slot(end.data()),
              kNumbers,
              1,
              slot(o.data()),
              kAll,
              kColumns,
              kColumns,
              1},
             kPrograms, 1, 1, seed);
    int wrong = 0;
    for (int row = 0; row < kAll; ++row) {
      const int from = row / kRows * kRows, to = std::min(from + kRows, kNumbers);
      const int low = *std::min_element(first.as<int>() + from, first.as<int>() + to) / kStep * kStep;
      int high = *std::max_element(end.as<int>() + from, end.as<int>() + to);
      high = high > low ? std::min(kDepth, low + (high - low + kStep - 1) / kStep * kStep) : low;
      for (int j = 0; j < kColumns; ++j) {
        float sum = 0;
        for (int k = low; k < high; ++k)
          sum +=
              static_cast<float>(a.as<half>()[row * kDepth + k]) * static_cast<float>(b.as<half>()[k * kColumns + j]);
        wrong += o.as<float>()[row * kColumns + j] != sum;
      }
    }
    EXPECT_EQ(wrong, 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tile::testing::lane_numbers_test
