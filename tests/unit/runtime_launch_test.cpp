// What a launch refuses, and how it says so.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <climits>

#include "runtime/launch.h"
#include "runtime/tensor.h"

namespace tile {
namespace {

const std::string kNull =
    ": null pointer, and the kernel uses it; an array without elements still needs an address (allocate one element, or "
    "do not launch)";

KernelBinary kernel() {
  KernelBinary k;
  k.entry = "gemm";
  ParamInfo pointer{.kind = ParamInfo::pointer, .dtype = DType::f32, .name = "out"};
  ParamInfo scalar{.kind = ParamInfo::scalar, .dtype = DType::i32, .name = "n"};
  ParamInfo view{.kind = ParamInfo::view, .dtype = DType::f16, .rank = 2, .align = 16, .name = "A"};
  k.params = {pointer, scalar, view};
  return k;
}
// out, n, A's address, shape, strides
std::vector<uint64_t> slots() { return {0x1000, 7, 0x2000, 4, 8, 8, 1}; }

std::string refusal(const KernelBinary& k, const std::vector<uint64_t>& s) {
  const Status status = check_arguments(k, s.data(), s.size());
  if (status) return "";
  EXPECT_EQ(ErrorKind::user, status.error().kind);
  return status.error().message;
}

TEST(CheckArguments, GoodOnesPass) { EXPECT_EQ("", refusal(kernel(), slots())); }

TEST(CheckArguments, SlotCount) {
  auto s = slots();
  s.pop_back();
  EXPECT_EQ("kernel 'gemm' takes 7 argument slots (3 parameters), the launch passes 6", refusal(kernel(), s));
}

TEST(CheckArguments, NullPointers) {
  auto s = slots();
  s[0] = 0;
  EXPECT_EQ("kernel 'gemm', argument 0 'out'" + kNull, refusal(kernel(), s));
  KernelBinary k = kernel();
  k.params[0].nullable = true;
  EXPECT_EQ("", refusal(k, s));
  s[2] = 0;
  EXPECT_EQ("kernel 'gemm', argument 2 'A'" + kNull, refusal(k, s));
  s[3] = 0;  // an empty view has nothing to point at
  EXPECT_EQ("", refusal(k, s));
}

TEST(CheckArguments, Alignment) {
  auto s = slots();
  s[0] = 0x1002;
  EXPECT_EQ("kernel 'gemm', argument 0 'out': address 0x1002 is not aligned for f32 (4 bytes)", refusal(kernel(), s));
  s = slots();
  s[2] = 0x2008;
  EXPECT_EQ(
      "kernel 'gemm', argument 2 'A': address 0x2008 is not a multiple of 16 bytes, which this kernel was compiled to "
      "rely on",
      refusal(kernel(), s));
  KernelBinary k = kernel();
  k.params[2].align = 0;
  EXPECT_EQ("", refusal(k, s));
}

TEST(CheckArguments, NegativeDimension) {
  auto s = slots();
  s[4] = static_cast<uint64_t>(-3);
  EXPECT_EQ("kernel 'gemm', argument 2 'A': dimension 1 is negative (-3)", refusal(kernel(), s));
}

TEST(CheckArguments, UnnamedParametersAreNumbered) {
  KernelBinary k = kernel();
  k.params[2].name.clear();
  auto s = slots();
  s[2] = 0;
  EXPECT_EQ("kernel 'gemm', argument 2" + kNull, refusal(k, s));
}

TEST(CheckArguments, StridesThatReachTooFar) {
  const auto with = [](int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    auto s = slots();
    s[3] = static_cast<uint64_t>(rows), s[4] = static_cast<uint64_t>(columns);
    s[5] = static_cast<uint64_t>(row_stride), s[6] = static_cast<uint64_t>(column_stride);
    return refusal(kernel(), s);
  };
  EXPECT_EQ("", with(2, 2, (int64_t{1} << 61) - 1, 1));  // furthest element ends below 2^62 + 2
  EXPECT_EQ(
      "kernel 'gemm', argument 2 'A': shape [2, 2] with strides [4611686018427387904, 1] of f16 reaches 2^63 bytes or "
      "more from its start",
      with(2, 2, int64_t{1} << 62, 1));
  EXPECT_NE("", with(INT64_MAX, 2, INT64_MAX, 1));
  EXPECT_NE("", with(INT64_MAX, INT64_MAX, 1, 1));
  EXPECT_NE("", with(2, 2, INT64_MIN, 1));
  EXPECT_NE("", with(3, 2, INT64_MIN / 2, 1));
  EXPECT_EQ("", with(1, 8, INT64_MAX, 1)) << "a dimension of 1 never steps";
  EXPECT_EQ("", with(0, INT64_MAX, INT64_MAX, INT64_MAX)) << "nothing is touched";
  EXPECT_EQ("", with(4, 8, -8, 1)) << "negative strides are fine";
  EXPECT_EQ("", with(1 << 20, 1 << 20, 0, 0)) << "broadcast";
}

TEST(CheckArguments, OutputsWithTwoElementsAtOneAddress) {
  using Dims = std::vector<int64_t>;
  // "" or the two elements named.
  const auto shared = [](const Dims& shape, const Dims& strides) -> std::string {
    KernelBinary k;
    k.entry = "gemm";
    k.params = {{.kind = ParamInfo::view, .dtype = DType::f16, .rank = static_cast<uint8_t>(shape.size()), .stored = true}};
    std::vector<uint64_t> s{0x2000};
    for (const Dims& list : {shape, strides})
      for (int64_t n : list) s.push_back(static_cast<uint64_t>(n));
    const std::string text = refusal(k, s), before = "has elements ";
    if (text.empty()) return "";
    k.params[0].stored = false;
    EXPECT_EQ("", refusal(k, s)) << "inputs may repeat";
    return text.substr(text.find(before) + before.size());
  };
  const std::string same = " at the same one";
  EXPECT_EQ("", shared({4, 8}, {8, 1}));
  EXPECT_EQ("", shared({4, 8}, {1, 4})) << "any order of dims";
  EXPECT_EQ("", shared({4, 8}, {-8, 1})) << "backwards";
  EXPECT_EQ("", shared({4, 8}, {100, 3})) << "gaps";
  EXPECT_EQ("", shared({1, 8, 1}, {0, 1, 0})) << "a dimension of 1 never steps";
  EXPECT_EQ("", shared({0, 8}, {0, 0})) << "nothing is written";
  EXPECT_EQ("", shared({2, 3}, {3, 2})) << "0 2 4, 3 5 7: between each other";
  EXPECT_EQ("[1, 0] and [0, 0]" + same, shared({4, 8}, {0, 1}));
  EXPECT_EQ("[0, 1] and [0, 0]" + same, shared({4, 8}, {1, 0}));
  EXPECT_EQ("[1, 0] and [0, 7]" + same, shared({4, 8}, {7, 1}));
  EXPECT_EQ("[0, 0] and [1, 7]" + same, shared({4, 8}, {-7, 1}));
  EXPECT_EQ("[2, 0] and [0, 3]" + same, shared({3, 4}, {3, 2}));
  EXPECT_EQ("[1, 0, 0] and [0, 1, 1]" + same, shared({2, 2, 2}, {8, 5, 3})) << "3 + 5 = 8";
  EXPECT_EQ("[1, 0] and [0, 1000]" + same, shared({1000000, 1001}, {1000, 1}));
  EXPECT_EQ("", shared({1000000, 1000, 1000}, {1000000, 1, 1000}));
  EXPECT_EQ("[1, 0] and [0, 0]" + same, shared({1 << 30, 1 << 30}, {0, 1}));
}

TEST(CheckArguments, WhatTheCodeReliesOn) {
  KernelBinary k = kernel();
  k.params[1].multiple_of = 16;
  auto s = slots();
  EXPECT_EQ("kernel 'gemm', argument 1 'n': the value is 7, this kernel was compiled to rely on a multiple of 16",
            refusal(k, s));
  s[1] = 48;
  EXPECT_EQ("", refusal(k, s));
  s[1] = static_cast<uint32_t>(-32);  // the upper half of the slot says nothing
  EXPECT_EQ("", refusal(k, s));

  k = kernel();
  k.params[1].one = true;
  EXPECT_EQ("kernel 'gemm', argument 1 'n': the value is -32, this kernel was compiled to rely on its being 1",
            refusal(k, s));
  s[1] = 1;
  EXPECT_EQ("", refusal(k, s));

  k = kernel();
  k.params[1].positive = true;
  EXPECT_EQ("", refusal(k, s));
  for (int n : {0, -16}) {
    s[1] = static_cast<uint32_t>(n);
    EXPECT_EQ(fmt::format("kernel 'gemm', argument 1 'n': bulk copies cannot be made with a stride of {}; compile the "
                          "kernel without them (KernelOptions::tma = false)", n),
              refusal(k, s));
    EXPECT_TRUE(check_arguments(k, s.data(), s.size()).error().needs_plain_copies) << "so that it is, unasked";
  }

  k = kernel();
  k.params[2].unit_stride = 1;
  s = slots();
  EXPECT_EQ("", refusal(k, s));
  s[6] = 2;
  EXPECT_EQ(
      "kernel 'gemm', argument 2 'A': the stride of dimension 1 is 2, this kernel was compiled to rely on its being 1",
      refusal(k, s));
  s[4] = 1;  // one column: its stride is never used
  EXPECT_EQ("", refusal(k, s));

  k = kernel();
  k.params[2].stride_multiple_of = {8, 1};
  k.params[2].dim_multiple_of = {0, 4};
  EXPECT_EQ("", refusal(k, slots()));
  s = slots();
  s[5] = 12;
  EXPECT_EQ(
      "kernel 'gemm', argument 2 'A': the stride of dimension 0 is 12, this kernel was compiled to rely on a multiple "
      "of 8",
      refusal(k, s));
  s = slots();
  s[4] = 6;
  EXPECT_EQ(
      "kernel 'gemm', argument 2 'A': the extent of dimension 1 is 6, this kernel was compiled to rely on a multiple "
      "of 4",
      refusal(k, s));
}

TEST(CheckArguments, HostCodesPrefixIsNotShown) {
  KernelBinary k = kernel();
  k.entry = "tile.gemm";
  auto s = slots();
  s[0] = 0;
  EXPECT_EQ("kernel 'gemm', argument 0 'out'" + kNull, refusal(k, s));
}

std::string grid_refusal(Grid grid, GridLimits limits = {INT32_MAX, 65535, 65535}) {
  const Status status = check_grid(grid, limits, "k");
  return status ? "" : status.error().message;
}

TEST(CheckGrid, Limits) {
  EXPECT_EQ("", grid_refusal({1, 1, 1}));
  EXPECT_EQ("", grid_refusal({INT32_MAX, 65535, 65535}));
  EXPECT_EQ("", grid_refusal({0, 5, 5}));
  EXPECT_EQ(
      "kernel 'k': grid (2147483648, 1, 1) has 2147483648 programs in x, the device takes 2147483647; put the largest "
      "extent in x and divide it in the kernel",
      grid_refusal({int64_t{1} << 31, 1, 1}));
  EXPECT_NE(std::string::npos, grid_refusal({1, 65536, 1}).find("65536 programs in y, the device takes 65535"));
  EXPECT_NE(std::string::npos, grid_refusal({1, 1, 70000}).find("70000 programs in z, the device takes 65535"));
  EXPECT_EQ("kernel 'k': grid (4, -1, 1) is negative in y", grid_refusal({4, -1, 1}));
  EXPECT_EQ("kernel 'k': grid (2147483647, 2147483647, 4) has 2^63 or more programs",
            grid_refusal({INT32_MAX, INT32_MAX, 4}, GridLimits{}));
}

TEST(CheckGrid, EmptyIsZeroPrograms) {
  EXPECT_TRUE((Grid{0, 1, 1}).empty());
  EXPECT_TRUE((Grid{3, 0, 1}).empty());
  EXPECT_FALSE((Grid{3}).empty());
}

TEST(TensorView, DenseStrides) {
  float data[24];
  TensorView<float, 3> v(data, {2, 3, 4});
  EXPECT_EQ((std::array<int64_t, 3>{12, 4, 1}), v.strides);
  EXPECT_TRUE(v.is_contiguous());
  EXPECT_EQ(24, v.size());
}

TEST(TensorView, TransposedPermutedSliced) {
  int data[24];
  for (int i = 0; i < 24; ++i) data[i] = i;
  TensorView<int, 3> v(data, {2, 3, 4});
  const auto t = v.transposed();
  EXPECT_EQ((std::array<int64_t, 3>{2, 4, 3}), t.shape);
  EXPECT_FALSE(t.is_contiguous());
  const auto p = v.permuted({2, 0, 1});
  EXPECT_EQ((std::array<int64_t, 3>{4, 2, 3}), p.shape);
  const auto s = v.sliced(1, 1, 3);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) {
        EXPECT_EQ(v(i, j, k), t(i, k, j));
        EXPECT_EQ(v(i, j, k), p(k, i, j));
        if (j >= 1) {
          EXPECT_EQ(v(i, j, k), s(i, j - 1, k));
        }
      }
}

TEST(TensorView, ReadOnlyFromWritable) {
  half data[4];
  const TensorView<half, 1> writable(data, {4});
  const TensorView<const half, 1> readable = writable;
  EXPECT_EQ(data, readable.data);
  static_assert(!std::is_convertible_v<TensorView<const half, 1>, TensorView<half, 1>>);
  static_assert(!std::is_convertible_v<TensorView<half, 1>, TensorView<const float, 1>>);
}

TEST(TensorView, ContiguousIgnoresDimensionsOfOne) {
  float data[8];
  EXPECT_TRUE((TensorView<float, 2>(data, {1, 8}, {1000, 1}).is_contiguous()));
  EXPECT_FALSE((TensorView<float, 2>(data, {2, 4}, {5, 1}).is_contiguous()));
}

TEST(TensorView, FromAddress) {
  const auto v = TensorView<float, 2>::from_address(0x7f0000001000, {2, 3}, {1, 2});
  EXPECT_EQ(0x7f0000001000u, reinterpret_cast<uintptr_t>(v.data));
  EXPECT_EQ(2, v.strides[1]);
}

}  // namespace
}  // namespace tile
