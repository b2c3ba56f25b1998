// made_maps_test.cpp - products of matrices that each program finds in memory: the producer writes their tensor maps.
// On the simulated machine against plain loops; a missing fence, or a map that is written while copies read it, is
// found and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <stdexcept>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing::made_maps_test {
namespace {

constexpr int kRows = 64, kColumns = 64;
constexpr int kPrograms = 48;  // several rounds of the places that a map takes in turn

/// o[64 p + i, j] = sum over k of a_p[i, k] b[k, j]. a_p begins at element 8 starts[p] of a, has sizes[p] rows of `depth`
/// elements, `pitch` apart; rows below them are zeros.
std::string text() {
  return kernel(
      "%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: !tile.ptr<f16> {tile.align = 16 : i32}, %starts: "
      "!tile.ptr<i32>, %sizes: !tile.ptr<i32>, %o: !tile.view<2xf32> {tile.unit_stride = 1 : i32}, %depth: i32 "
      "{tile.multiple_of = 8 : i32}, %pitch: i32 {tile.multiple_of = 8 : i32}",
      R"(
  %c0 = arith.constant 0 : i32
  %c8 = arith.constant 8 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %columns = arith.constant 64 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %id = tile.program_id 0
  %startp = tile.ptr_add %starts, %id : !tile.ptr<i32>, i32
  %units = tile.gather %startp : !tile.ptr<i32> -> i32
  %start = arith.muli %units, %c8 : i32
  %sizep = tile.ptr_add %sizes, %id : !tile.ptr<i32>, i32
  %size = tile.gather %sizep : !tile.ptr<i32> -> i32
  %rows = arith.extsi %size : i32 to i64
  %inner = arith.extsi %depth : i32 to i64
  %ld = arith.extsi %pitch : i32 to i64
  %p = tile.ptr_add %a, %start : !tile.ptr<f16>, i32
  %v = tile.make_view %p, dims(%rows, %inner), strides(%ld, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %w = tile.make_view %b, dims(%inner, %columns), strides(%columns, %one) : !tile.ptr<f16> -> !tile.view<2xf16>
  %row = arith.muli %id, %c64 : i32
  %r = scf.for %k = %c0 to %depth step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load %v[%c0, %k : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %y = tile.load %w[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %y, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.stages = 3 : i32}
  tile.store %r, %o[%row, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
)");
}

/// Elements that differ from the plain loops'.
int wrongElements(SimtKernel& kern, int depth, uint32_t seed) {
  const int pitch = depth + 8;
  std::mt19937 random(seed);
  auto number = [&](int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); };
  const int elements = 40 * 8 + kRows * pitch;
  GuardedBuffer a(2 * static_cast<size_t>(elements)), b(2 * static_cast<size_t>(std::max(1, depth)) * kColumns);
  GuardedBuffer starts(4 * kPrograms), sizes(4 * kPrograms), o(4 * kPrograms * kRows * kColumns);
  auto whole = [&] { return half(static_cast<float>(number(5) - 2)); };
  for (int i = 0; i < elements; ++i) a.as<half>()[i] = whole();
  for (int i = 0; i < depth * kColumns; ++i) b.as<half>()[i] = whole();
  for (int p = 0; p < kPrograms; ++p) {
    sizes.as<int>()[p] = p % 4 == 2 ? -number(2) : 1 + number(kRows);
    starts.as<int>()[p] = p % 3 ? number(40) : 7;  // some have the map of the program before
    if (sizes.as<int>()[p] <= 0) starts.as<int>()[p] = 1 << 26;  // far away: nothing may be read there
  }
  std::fill_n(o.as<float>(), kPrograms * kRows * kColumns, -77.f);
  kern.run({slot(a.data()), slot(b.data()), slot(starts.data()), slot(sizes.data()), slot(o.data()),
            kPrograms * kRows, kColumns, kColumns, 1, static_cast<uint64_t>(depth), static_cast<uint64_t>(pitch)},
           kPrograms, 1, 1, seed);
  int wrong = 0;
  for (int p = 0; p < kPrograms; ++p)
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) {
        float sum = 0;
        for (int k = 0; i < sizes.as<int>()[p] && k < depth; ++k)
          sum += static_cast<float>(a.as<half>()[8 * starts.as<int>()[p] + i * pitch + k]) *
                 static_cast<float>(b.as<half>()[k * kColumns + j]);
        wrong += o.as<float>()[(p * kRows + i) * kColumns + j] != sum;
      }
  return wrong;
}

TEST(MadeMaps, ViewsThatProgramsFindInMemory) {
  SimtKernel kern(text(), "sm_90a", 4);
  ASSERT_NE(kern.ptx().find("tensormap.replace"), std::string::npos);
  ASSERT_EQ(kern.binary().tensor_maps.size(), 1u) << "b's view is made of arguments: its map comes from the launch";
  const TensorMapInfo& map = kern.binary().tensor_maps[0];
  EXPECT_EQ(map.param, 1u);
  const std::vector<SlotSum> made{{0, {{1, {1}}}}, {0, {{1, {9}}}}, {64, {}}, {64, {}}, {1, {}}};
  EXPECT_EQ(map.made, made);
  EXPECT_TRUE(kern.binary().params[6].positive) << "a launch must not have a pitch of 0";
  EXPECT_FALSE(kern.binary().params[5].positive) << "without columns there is nothing to copy";
  for (int depth : {0, 8, 64, 136, 192, 456})
    for (uint32_t seed = 0; seed < 6; ++seed) EXPECT_EQ(wrongElements(kern, depth, seed), 0) << depth << ' ' << seed;
}

// ---- faults

/// What the machine says of the kernel with a fault in it, or "".
std::string faultOf(const std::function<void(std::string&)>& change) {
  SimtKernel kern(text(), "sm_90a", 4, change);
  for (uint32_t seed = 0; seed < 6; ++seed) try {
      if (wrongElements(kern, 200, seed)) return "wrong result";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  return "";
}

TEST(MadeMaps, MissingFenceIsNoticed) {
  auto change = [](std::string& llvm) {
    const std::regex fence(R"(call void @llvm\.nvvm\.fence\.proxy\.tensormap_generic\.acquire\.gpu[^\n]*)");
    ASSERT_TRUE(std::regex_search(llvm, fence));
    llvm = std::regex_replace(llvm, fence, "");
  };
  EXPECT_THAT(faultOf(change), ::testing::HasSubstr("written, and not fenced since"));
}

TEST(MadeMaps, WritingWhileCopiesReadIsNoticed) {
  auto change = [](std::string& llvm) {
    // The map stays in one place, and nobody waits for its copies there.
    const std::regex next(R"((%\w+) = and i32 ([^\n,]*), 7\n)");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(llvm, found, next));
    const std::string place = found[1], moves = found[0], stays = place + " = and i32 " + found[2].str() + ", 0\n";
    const std::string wraps = "icmp eq i32 " + place + ", 0";
    llvm.replace(llvm.find(moves), moves.size(), stays);
    ASSERT_NE(llvm.find(wraps), std::string::npos);
    llvm.replace(llvm.find(wraps), wraps.size(), "icmp eq i32 " + place + ", 8");
  };
  EXPECT_THAT(faultOf(change), ::testing::HasSubstr("written while a bulk copy reads it"));
}

}  // namespace
}  // namespace tile::testing::made_maps_test
