// turned_test.cpp - products whose rows instructions of warpgroups do not divide are computed as their transposes
// (dialect/products.h): tiles of 24 to 160 rows, both orders of both operands, elements of 8, 16 and 32 bits, one and
// two warpgroups, with work on the result along both dims. On the simulated machine against plain loops, with matrices
// that end inside of a tile.
#include <gtest/gtest.h>

#include <random>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing::turned_test {
namespace {

constexpr int kDepth = 96, kStep = 64;

struct Shape {
  int rows, columns, warps;
  bool aAlongK, bAlongK;  ///< neighbours in memory
  std::string element = "f16";

  int bytes() const { return element == "f16" ? 2 : element == "f32" ? 4 : 1; }
  std::string instruction() const { return fmt::format("m64n{}k{}", rows, 32 / bytes()); }
};
/// An element of a matrix, a small integer.
float get(const GuardedBuffer& m, const Shape& s, uint64_t i) {
  if (s.element == "f32") return m.as<float>()[i];
  return static_cast<float>(s.element == "f16" ? m.as<half>()[i] : half(static_cast<float>(m.as<fp8_e4m3>()[i])));
}
void set(GuardedBuffer& m, const Shape& s, uint64_t i, float value) {
  if (s.element == "f32")
    m.as<float>()[i] = value;
  else if (s.element == "f16")
    m.as<half>()[i] = half(value);
  else
    m.as<fp8_e4m3>()[i] = fp8_e4m3(value);
}

/// o[i, j] = sum over k of a[i, k] b[k, j], plus w[j]; s[i] = the sum of that over the tile's columns.
std::string text(const Shape& s) {
  auto view = [&](bool lastIsUnit) {
    return fmt::format(
        "!tile.view<2x{}> {{tile.align = 16 : i32, tile.unit_stride = {} : i32, tile.stride_multiple_of = array<i32: "
        "{}>}}",
        s.element, lastIsUnit ? 1 : 0,
        lastIsUnit ? fmt::format("{}, 1", 16 / s.bytes()) : fmt::format("1, {}", 16 / s.bytes()));
  };
  return kernel("%a: " + view(s.aAlongK) + ", %b: " + view(!s.bAlongK) + ", %w: !tile.ptr<f32>, %o: " +
                    "!tile.view<2xf32> {tile.unit_stride = 1 : i32}, %s: !tile.ptr<f32>, %depth: i32",
                fmt::format(R"(
  %c0 = arith.constant 0 : i32
  %step = arith.constant {2} : i32
  %zero = arith.constant dense<0.0> : tensor<{0}x{1}xf32>
  %r = scf.for %n = %c0 to %depth step %step iter_args(%acc = %zero) -> (tensor<{0}x{1}xf32>) : i32 {{
    %x = tile.load %a[%c0, %n : i32, i32] : !tile.view<2x{3}> -> tensor<{0}x{2}x{3}>
    %y = tile.load %b[%n, %c0 : i32, i32] : !tile.view<2x{3}> -> tensor<{2}x{1}x{3}>
    %d = tile.dot %x, %y, %acc {4}: tensor<{0}x{2}x{3}>, tensor<{2}x{1}x{3}> -> tensor<{0}x{1}xf32>
    scf.yield %d : tensor<{0}x{1}xf32>
  }} {{tile.stages = 2 : i32}}
)",
                            s.rows, s.columns, kStep, s.element, s.element == "f32" ? "precision tf32 " : "") +
                    readTile("v", "w", {s.columns}, "f32") +
                    fmt::format(R"(
  %v1 = tile.reshape %v : tensor<{1}xf32> -> tensor<1x{1}xf32>
  %vs = tile.broadcast %v1 : tensor<1x{1}xf32> -> tensor<{0}x{1}xf32>
  %q = arith.addf %r, %vs : tensor<{0}x{1}xf32>
  %t1 = tile.reduce %q axis 1 : (tensor<{0}x{1}xf32>) -> tensor<{0}x1xf32> {{
  ^bb0(%l: f32, %m: f32):
    %lm = arith.addf %l, %m : f32
    tile.yield %lm : f32
  }}
  %t = tile.reshape %t1 : tensor<{0}x1xf32> -> tensor<{0}xf32>
  tile.store %q, %o[%c0, %c0 : i32, i32] : tensor<{0}x{1}xf32>, !tile.view<2xf32>
)",
                                s.rows, s.columns) +
                    writeTile("t", "s", {s.rows}, "f32"));
}

int wrongElements(SimtKernel& kern, const Shape& s, int rows, int columns, uint32_t seed) {
  std::mt19937 random(seed);
  constexpr int pitch = 176;  // of either matrix, along its unit dim
  const auto bytes = static_cast<size_t>(s.bytes() * pitch * pitch);
  GuardedBuffer a(bytes), b(bytes), w(4 * static_cast<size_t>(s.columns)),
      o(4 * static_cast<size_t>(s.rows * s.columns)), sums(4 * static_cast<size_t>(s.rows));
  for (GuardedBuffer* buffer : {&a, &b})
    for (int i = 0; i < pitch * pitch; ++i) set(*buffer, s, i, static_cast<float>(int(random() % 5) - 2));
  for (int j = 0; j < s.columns; ++j) w.as<float>()[j] = static_cast<float>(j % 7);
  std::fill_n(o.as<float>(), s.rows * s.columns, -77.f);
  auto strides = [&](bool lastIsUnit) {
    return std::array<uint64_t, 2>{lastIsUnit ? pitch : 1u, lastIsUnit ? 1u : pitch};
  };
  const auto sa = strides(s.aAlongK), sb = strides(!s.bAlongK);
  kern.run({slot(a.data()), slot(rows), slot(kDepth), sa[0], sa[1], slot(b.data()), slot(kDepth), slot(columns), sb[0],
            sb[1], slot(w.data()), slot(o.data()), slot(s.rows), slot(s.columns), slot(s.columns), 1, slot(sums.data()),
            slot(kDepth)},
           1, 1, 1, seed);
  int wrong = 0;
  for (int i = 0; i < s.rows; ++i) {
    float total = 0;
    for (int j = 0; j < s.columns; ++j) {
      float sum = static_cast<float>(j % 7);
      for (int k = 0; k < kDepth && i < rows && j < columns; ++k)
        sum += get(a, s, static_cast<uint64_t>(i) * sa[0] + static_cast<uint64_t>(k) * sa[1]) *
               get(b, s, static_cast<uint64_t>(k) * sb[0] + static_cast<uint64_t>(j) * sb[1]);
      wrong += o.as<float>()[i * s.columns + j] != sum;
      total += sum;
    }
    wrong += sums.as<float>()[i] != total;
  }
  return wrong;
}

TEST(Turned, TilesOfAnyRows) {
  const auto check = [](const Shape& s) {
    SimtKernel kern(text(s), "sm_90a", s.warps);
    EXPECT_NE(kern.ptx().find(s.instruction()), std::string::npos)
        << s.element << ' ' << s.rows << " x " << s.columns << ": not by warpgroups, as they are";
    for (const auto& [rows, columns] : {std::pair{s.rows, s.columns}, {s.rows - 5, s.columns - 11}})
      EXPECT_EQ(wrongElements(kern, s, rows, columns, 3), 0)
          << s.rows << " x " << s.columns << " on " << s.warps << " warps, a along k " << s.aAlongK << ", b along k "
          << s.bAlongK << ", of " << rows << " x " << columns;
  };
  for (const int rows : {24, 40, 72, 80, 96, 160}) check({rows, 128, 8, true, false});
  for (const bool aAlongK : {false, true})
    for (const bool bAlongK : {false, true}) check({80, 64, 4, aAlongK, bAlongK});
  // Others where both lie along k, which the first operand of an instruction has to.
  check({72, 128, 8, true, true, "f8E4M3FN"});
  check({40, 64, 4, true, true, "f32"});
  // Two warpgroups for 64 columns: rows are not divided among them.
  const Shape narrow{80, 64, 8, false, true};
  SimtKernel kern(text(narrow), "sm_90a", narrow.warps);
  EXPECT_EQ(wrongElements(kern, narrow, 80, 64, 5), 0);
}

}  // namespace
}  // namespace tile::testing::turned_test
