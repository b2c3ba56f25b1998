// stage_reads_test.cpp - stages of a ring that consumers read by ordinary loads, because products are computed from
// them, or by those of matrices (ldmatrix): bulk copies into them come behind a fence of every thread that read. Without
// it an H200 overwrote what loads under way had still to read, now and then, and where two programs shared a
// multiprocessor most of the time (the assembler puts the products of single warps behind the release of the stage).
// The simulated machine always notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <stdexcept>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

constexpr int kRows = 64, kColumns = 64;

/// o = sum over k of (2 a[:, k]) b[k, :], a and b of ones.
std::string text() {
  const std::string view =
      " {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}";
  return kernel(fmt::format("%a: !tile.view<2xf16>{0}, %b: !tile.view<2xf16>{0}, %o: !tile.view<2xf32>{0}, %n: i32", view),
                R"(
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %two = arith.constant dense<2.0> : tensor<64x64xf16>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load %a[%c0, %k : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %y = arith.mulf %x, %two : tensor<64x64xf16>
    %w = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %y, %w, %acc : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.specialize = 1 : i32, tile.stages = 1 : i32}
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
)");
}

/// Of f32, whose products are multiply-adds of threads: o = sum over k of a[:, k] b[k, :].
std::string textOfFloats() {
  const std::string view =
      " {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 4, 1>}";
  return kernel(
      fmt::format("%a: !tile.view<2xf32>{0}, %b: !tile.view<2xf32>{0}, %o: !tile.view<2xf32>{0}, %n: i32", view), R"(
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %k = %c0 to %n step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load %a[%c0, %k : i32, i32] : !tile.view<2xf32> -> tensor<64x32xf32>
    %w = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf32> -> tensor<32x64xf32>
    %d = tile.dot %x, %w, %acc : tensor<64x32xf32>, tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  } {tile.specialize = 1 : i32, tile.stages = 2 : i32}
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<64x64xf32>, !tile.view<2xf32>
)");
}

/// Of 16 rows, whose products are those of single warps (mma.sync): o = sum over k of a[:, k] b[k, :].
std::string textOfFewRows() {
  const std::string view =
      " {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}";
  return kernel(
      fmt::format("%a: !tile.view<2xf16>{0}, %b: !tile.view<2xf16>{0}, %o: !tile.view<2xf32>{0}, %n: i32", view), R"(
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<16x64xf32>) : i32 {
    %x = tile.load %a[%c0, %k : i32, i32] : !tile.view<2xf16> -> tensor<16x64xf16>
    %w = tile.load %b[%k, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<64x64xf16>
    %d = tile.dot %x, %w, %acc : tensor<16x64xf16>, tensor<64x64xf16> -> tensor<16x64xf32>
    scf.yield %d : tensor<16x64xf32>
  } {tile.specialize = 1 : i32, tile.stages = 2 : i32}
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<16x64xf32>, !tile.view<2xf32>
)");
}

/// What the machine says under several schedules, or "".
template <class T>
std::string problemOf(const std::string& text, float each, T one, const std::function<void(std::string&)>& change,
                      int rows = kRows) {
  SimtKernel kern(text, "sm_90a", 4, change);
  constexpr int inner = 3 * kColumns;
  GuardedBuffer a(sizeof(T) * rows * inner), b(sizeof(T) * inner * kColumns), o(4 * rows * kColumns);
  std::fill_n(a.as<T>(), rows * inner, one);
  std::fill_n(b.as<T>(), inner * kColumns, one);
  std::vector<uint64_t> slots;
  auto view = [&](const void* data, uint64_t rows, uint64_t columns) {
    slots.insert(slots.end(), {slot(static_cast<const char*>(data)), rows, columns, columns, 1});
  };
  view(a.data(), rows, inner), view(b.data(), inner, kColumns), view(o.data(), rows, kColumns);
  slots.push_back(inner);
  for (uint32_t seed = 0; seed < 6; ++seed) {
    std::fill_n(o.as<float>(), rows * kColumns, -1.f);
    try {
      kern.run(slots, 1, 1, 1, seed);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    for (int i = 0; i < rows * kColumns; ++i)
      if (o.as<float>()[i] != each * static_cast<float>(inner)) return "wrong result";
  }
  return "";
}

std::string problemOfHalves(const std::function<void(std::string&)>& change) {
  return problemOf(text(), 2.f, uint16_t{0x3c00}, change);
}
std::string problemOfFloats(const std::function<void(std::string&)>& change) {
  return problemOf(textOfFloats(), 1.f, 1.f, change);
}
std::string problemOfFewRows(const std::function<void(std::string&)>& change) {
  return problemOf(textOfFewRows(), 1.f, uint16_t{0x3c00}, change, 16);
}

TEST(StageReads, AreFencedBeforeTheStageIsGivenBack) {
  EXPECT_EQ(problemOfHalves(nullptr), "");
  EXPECT_EQ(problemOfFloats(nullptr), "");
  EXPECT_EQ(problemOfFewRows(nullptr), "");
}

TEST(StageReads, MissingFenceIsNoticed) {
  int removed = 0;
  auto change = [&](std::string& llvm) {
    // In front of the arrival, or of the counting of stages there.
    const std::regex fence(R"(\n[^\n]*@llvm\.nvvm\.fence\.proxy\.async\.shared_cta\(\)[^\n]*)"
                           R"((\n[^\n]*(?:bar\.warp\.sync|%ring\.oldest)))");
    removed += std::regex_search(llvm, fence);
    llvm = std::regex_replace(llvm, fence, "$1");
  };
  for (const auto& problem : {problemOfHalves, problemOfFloats, problemOfFewRows}) {
    removed = 0;
    const std::string said = problem(change);
    ASSERT_GT(removed, 0);
    EXPECT_THAT(said, ::testing::HasSubstr("read without fence.proxy.async"));
  }
}

}  // namespace
}  // namespace tile::testing
