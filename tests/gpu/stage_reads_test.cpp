// stage_reads_test.cpp - stages of a ring that consumers read by ordinary loads, because products are computed from
// them, or by those of matrices (ldmatrix): bulk copies into them come behind a fence of every thread that read. Else
// an H200 overwrote what loads under way had still to read, now and then, and where two programs shared a
// multiprocessor most of the time (the assembler puts the products of single warps behind the release of the stage).
// The simulated machine always notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <stdexcept>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing::stage_reads_test {
namespace {

constexpr int kRows = 64, kFewRows = 16, kColumns = 64;

/// o = sum over k of a[:, k] b[k, :], `step` k an iteration; of f16 or f32. What threads read: of 64 rows of f16 those
/// of `a` that are doubled, of f32 what they multiply and add, of 16 rows the fragments of single warps (mma.sync).
struct Product {
  int rows, step;
  const char* element;
  bool isDoubled;
  int stages;
};
constexpr Product kDoubled{kRows, 64, "f16", true, 1}, kFloats{kRows, 32, "f32", false, 2},
    kOfWarps{kFewRows, 64, "f16", false, 2};

std::string textOf(const Product& p) {
  const std::string a = fmt::format("tensor<{}x{}x{}>", p.rows, p.step, p.element);
  return kernel(
      fmt::format("%a: {0}{1}, %b: {0}{1}, %o: !tile.view<2xf32>{1}, %n: i32",
                  fmt::format("!tile.view<2x{}>", p.element),
                  " {tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 8, 1>}"),
      fmt::format(R"(
  %c0 = arith.constant 0 : i32
  %step = arith.constant {step} : i32
  %zero = arith.constant dense<0.0> : {out}
  %r = scf.for %k = %c0 to %n step %step iter_args(%acc = %zero) -> ({out}) : i32 {{
    %x = tile.load %a[%c0, %k : i32, i32] : {view} -> {a}
    {doubled}
    %w = tile.load %b[%k, %c0 : i32, i32] : {view} -> {b}
    %d = tile.dot {operand}, %w, %acc : {a}, {b} -> {out}
    scf.yield %d : {out}
  }} {{tile.specialize = 1 : i32, tile.stages = {stages} : i32}}
  tile.store %r, %o[%c0, %c0 : i32, i32] : {out}, !tile.view<2xf32>
)",
                  fmt::arg("step", p.step), fmt::arg("stages", p.stages), fmt::arg("a", a),
                  fmt::arg("b", fmt::format("tensor<{}x{}x{}>", p.step, kColumns, p.element)),
                  fmt::arg("out", fmt::format("tensor<{}x{}xf32>", p.rows, kColumns)),
                  fmt::arg("view", fmt::format("!tile.view<2x{}>", p.element)),
                  fmt::arg("doubled", p.isDoubled ? "%y = arith.addf %x, %x : " + a : ""),
                  fmt::arg("operand", p.isDoubled ? "%y" : "%x")));
}

/// What the machine says under several schedules of a product of ones, or "".
template <class T>
std::string problemOf(const Product& product, T one, const std::function<void(std::string&)>& change) {
  SimtKernel kern(textOf(product), "sm_90a", 4, change);
  constexpr int inner = 3 * kColumns;
  const int elements = product.rows * kColumns;
  GuardedBuffer a(sizeof(T) * product.rows * inner), b(sizeof(T) * inner * kColumns), o(4 * elements);
  std::fill_n(a.as<T>(), product.rows * inner, one);
  std::fill_n(b.as<T>(), inner * kColumns, one);
  std::vector<uint64_t> slots;
  auto view = [&](const void* data, uint64_t rows, uint64_t columns) {
    slots.insert(slots.end(), {slot(static_cast<const char*>(data)), rows, columns, columns, 1});
  };
  view(a.data(), product.rows, inner), view(b.data(), inner, kColumns), view(o.data(), product.rows, kColumns);
  slots.push_back(inner);
  for (uint32_t seed = 0; seed < 6; ++seed) {
    std::fill_n(o.as<float>(), elements, -1.f);
    try {
      kern.run(slots, 1, 1, 1, seed);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    for (int i = 0; i < elements; ++i)
      if (o.as<float>()[i] != static_cast<float>((product.isDoubled ? 2 : 1) * inner)) return "wrong result";
  }
  return "";
}
std::string problemOf(const Product& product, const std::function<void(std::string&)>& change = nullptr) {
  constexpr uint16_t kHalfOne = 0x3c00;
  return product.element == std::string("f16") ? problemOf(product, kHalfOne, change) : problemOf(product, 1.f, change);
}

TEST(StageReads, AreFencedBeforeTheStageIsGivenBack) {
  for (const Product& product : {kDoubled, kFloats, kOfWarps}) EXPECT_EQ(problemOf(product), "");
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
  for (const Product& product : {kDoubled, kFloats, kOfWarps}) {
    removed = 0;
    const std::string said = problemOf(product, change);
    ASSERT_GT(removed, 0);
    EXPECT_THAT(said, ::testing::HasSubstr("read without fence.proxy.async"));
  }
}

}  // namespace
}  // namespace tile::testing::stage_reads_test
