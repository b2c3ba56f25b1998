// operands_test.cpp - products whose operands come in every way: stored transposed, without alignment, through pointers,
// computed, from another product's accumulator, under a condition. On the simulated machine, against plain loops, by single
// warps (sm_80) and by warpgroups where they fit (sm_90a).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing::operands_test {
namespace {

uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }

uint16_t toHalf(int x) {  // small integers only
  if (x == 0) return 0;
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023));
}
constexpr uint16_t kHalfNaN = 0x7e00;
constexpr uint8_t kE4m3[] = {0x00, 0x38, 0x40, 0x44, 0x48}, kE5m2[] = {0x00, 0x3c, 0x40, 0x42, 0x44};  // 0 to 4

void put(const std::string& type, void* at, int64_t i, int value, float scale = 1) {
  if (type == "f16")
    static_cast<uint16_t*>(at)[i] = toHalf(value);
  else if (type == "bf16")
    static_cast<uint16_t*>(at)[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
  else if (type == "i8")
    static_cast<int8_t*>(at)[i] = static_cast<int8_t>(value);
  else if (type == "i32")
    static_cast<int32_t*>(at)[i] = value;
  else if (type.starts_with("f8"))
    static_cast<uint8_t*>(at)[i] =
        static_cast<uint8_t>((type == "f8E4M3FN" ? kE4m3 : kE5m2)[std::abs(value)] | (value < 0 ? 0x80 : 0));
  else if (type == "f64")
    static_cast<double*>(at)[i] = value;
  else
    static_cast<float*>(at)[i] = static_cast<float>(value) * scale;
}
int bytesOf(const std::string& type) {
  if (type == "f16" || type == "bf16") return 2;
  return type == "i8" || type.starts_with("f8") ? 1 : type == "f64" ? 8 : 4;
}

/// A matrix of small random integers, in row-major order or stored transposed; what lies between rows is NaN-like garbage.
/// Stored are the integers times `scale`.
struct Matrix {
  int rows, cols, pitch;
  bool transposed;
  std::string type;
  std::vector<int> values;
  GuardedBuffer memory;

  Matrix(int r, int c, bool t, const std::string& elementType, uint32_t seed, int padding, float scale = 1)
      : rows(r),
        cols(c),
        pitch((t ? r : c) + padding),
        transposed(t),
        type(elementType),
        values(r * c),
        memory(int64_t{t ? c : r} * pitch * bytesOf(elementType)) {
    std::mt19937 random(seed);
    std::memset(memory.data(), 0x7f, int64_t{t ? c : r} * pitch * bytesOf(type));
    for (int i = 0; i < r; ++i)
      for (int j = 0; j < c; ++j)
        put(type, memory.data(), t ? int64_t{j} * pitch + i : int64_t{i} * pitch + j,
            values[i * c + j] = static_cast<int>(random() % 9) - 4, scale);
  }
  /// As a view of the stored matrix: pointer, dims, strides.
  std::vector<uint64_t> slots() const {
    int r = transposed ? cols : rows, c = transposed ? rows : cols;
    return {slot(memory.as<char>()), u(r), u(c), u(pitch), 1};
  }
};

std::string viewType(const std::string& element, const std::string& attributes) {
  return "!tile.view<2x" + element + "> {" + attributes + "}";
}
const std::string kAligned =
    "tile.align = 16 : i32, tile.unit_stride = 1 : i32, tile.stride_multiple_of = array<i32: 16, 1>";
const std::string kUnaligned = "tile.unit_stride = 1 : i32";

struct Problem {
  std::string type, acc, precision = "ieee";
  int M, N, K, m, n, k;
  bool transA = false, transB = false, aligned = true;
  int warps = 4, stages = 2;
  const char* instruction = "";  ///< expected in the PTX
  float scale = 1;               ///< of what is stored; products give what they would without
  std::string typeB = "";        ///< where it is not a's

  const std::string& bType() const { return typeB.empty() ? type : typeB; }
};

const char* target = "sm_80";
class Operands : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { target = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Targets, Operands, ::testing::Values("sm_80", "sm_90a"));

void run(const Problem& p) {
  SCOPED_TRACE(fmt::format("{} {} {}x{}x{} tiles {}x{}x{} trans {}{} aligned {} warps {} stages {}", p.type,
                           p.precision, p.M, p.N, p.K, p.m, p.n, p.k, p.transA, p.transB, p.aligned, p.warps,
                           p.stages));
  auto load = [&](const char* name, const char* view, bool trans, int rows, int cols, const char* r, const char* c) {
    const std::string& element = name[0] == 'x' ? p.type : p.bType();
    if (!trans)
      return fmt::format(
          "    %{0} = tile.load %{1}[%{2}, %{3} : i32, i32] : !tile.view<2x{4}> -> tensor<{5}x{6}x{4}>\n", name, view,
          r, c, element, rows, cols);
    return fmt::format(
        "    %{0}_t = tile.load %{1}[%{3}, %{2} : i32, i32] : !tile.view<2x{4}> -> tensor<{6}x{5}x{4}>\n"
        "    %{0} = tile.trans %{0}_t, [1, 0] : tensor<{6}x{5}x{4}> -> tensor<{5}x{6}x{4}>\n",
        name, view, r, c, element, rows, cols);
  };
  const std::string& attributes = p.aligned ? kAligned : kUnaligned;
  std::string zero = p.acc == "i32" ? "0" : "0.0", acc = fmt::format("tensor<{}x{}x{}>", p.m, p.n, p.acc);
  SimtKernel kern(
      kernel("%a: " + viewType(p.type, attributes) + ", %b: " + viewType(p.bType(), attributes) +
                 ", %c: " + viewType(p.acc, kUnaligned) + ", %K: i32",
             fmt::format(R"(  %c0 = arith.constant 0 : i32
  %ck = arith.constant {k} : i32
  %cm = arith.constant {m} : i32
  %cn = arith.constant {n} : i32
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %im = arith.muli %pm, %cm : i32
  %in = arith.muli %pn, %cn : i32
  %zero = arith.constant dense<{zero}> : {acc}
  %r = scf.for %i = %c0 to %K step %ck iter_args(%sum = %zero) -> ({acc}) : i32 {{
)",
                         fmt::arg("k", p.k), fmt::arg("m", p.m), fmt::arg("n", p.n), fmt::arg("zero", zero),
                         fmt::arg("acc", acc)) +
                 load("x", "a", p.transA, p.m, p.k, "im", "i") + load("y", "b", p.transB, p.k, p.n, "i", "in") +
                 fmt::format(
                     R"(    %s = tile.dot %x, %y, %sum precision {p} : tensor<{m}x{k}x{e}>, tensor<{k}x{n}x{f}> -> {acc}
    scf.yield %s : {acc}
  }} {{tile.stages = {stages} : i32}}
  tile.store %r, %c[%im, %in : i32, i32] : {acc}, !tile.view<2x{a}>
)",
                     fmt::arg("p", p.precision), fmt::arg("m", p.m), fmt::arg("n", p.n), fmt::arg("k", p.k),
                     fmt::arg("e", p.type), fmt::arg("f", p.bType()), fmt::arg("acc", acc), fmt::arg("stages", p.stages), fmt::arg("a", p.acc))),
      target, p.warps);
  EXPECT_NE(kern.ptx().find(p.instruction), std::string::npos) << p.instruction;
  auto padding = [&](int width) { return p.aligned ? (width + 15) / 16 * 16 - width + 16 : 3; };
  Matrix a(p.M, p.K, p.transA, p.type, 1, padding(p.transA ? p.M : p.K), p.scale),
      b(p.K, p.N, p.transB, p.bType(), 2, padding(p.transB ? p.K : p.N), p.scale);
  const int64_t accBytes = p.acc == "f64" ? 8 : 4;
  GuardedBuffer c(int64_t{p.M} * p.N * accBytes);
  std::vector<uint64_t> slots = a.slots();
  for (uint64_t s : b.slots()) slots.push_back(s);
  for (uint64_t s : {slot(c.as<char>()), u(p.M), u(p.N), u(p.N), uint64_t{1}, u(p.K)}) slots.push_back(s);
  kern.run(slots, (p.M + p.m - 1) / p.m, (p.N + p.n - 1) / p.n);
  for (int i = 0; i < p.M; ++i)
    for (int j = 0; j < p.N; ++j) {
      int want = 0;
      for (int kk = 0; kk < p.K; ++kk) {
        const int x = a.values[i * p.K + kk], y = b.values[kk * p.N + j];
        want += p.precision == "bits" ? std::popcount(static_cast<uint32_t>(x & y)) : x * y;
      }
      int64_t at = int64_t{i} * p.N + j;
      double got = p.acc == "i32" ? c.as<int32_t>()[at] : p.acc == "f64" ? c.as<double>()[at] : c.as<float>()[at];
      ASSERT_EQ(got, want) << "at " << i << ", " << j;
    }
}

TEST_P(Operands, EveryOrderOfStorage) {
  for (bool ta : {false, true})
    for (bool tb : {false, true})
      for (const Problem& p : {Problem{"f16", "f32", "ieee", 70, 50, 100, 64, 64, 32},
                               {"f32", "f32", "tf32", 40, 70, 36, 32, 64, 16},
                               {"f32", "f32", "tf32x3", 40, 70, 36, 32, 64, 16},
                               {"f32", "f32", "ieee", 40, 70, 36, 32, 64, 16},
                               {"i8", "i32", "ieee", 70, 50, 100, 64, 64, 64},
                               {"i32", "i32", "bits", 40, 70, 36, 32, 64, 16},
                               {"f64", "f64", "ieee", 40, 30, 36, 32, 32, 16}}) {
        Problem q = p;
        q.transA = ta, q.transB = tb;
        run(q);
      }
}

TEST_P(Operands, NoAlignmentIsPromised) {
  for (bool t : {false, true}) {
    run({"f16", "f32", "ieee", 45, 37, 51, 32, 32, 16, t, !t, false});
    run({"f32", "f32", "ieee", 45, 37, 51, 32, 32, 16, t, !t, false});
    run({"i8", "i32", "ieee", 45, 37, 51, 32, 32, 32, t, !t, false});
    run({"i32", "i32", "bits", 45, 37, 51, 32, 32, 16, t, !t, false});
    run({"f64", "f64", "ieee", 45, 37, 51, 32, 32, 16, t, !t, false});
  }
}

TEST_P(Operands, OddTilesWarpsAndStages) {
  run({"f16", "f32", "ieee", 80, 48, 120, 80, 48, 40, false, false, true, 4, 3});
  run({"f16", "f32", "ieee", 50, 30, 60, 24, 20, 20, true, true, true, 2, 3});
  run({"f16", "f32", "ieee", 50, 30, 60, 1, 16, 16, false, false, true, 1, 4});
  run({"f16", "f32", "ieee", 64, 64, 200, 64, 64, 16, false, true, true, 8, 5});
  run({"f32", "f32", "ieee", 20, 70, 100, 16, 40, 100, false, false, true, 4, 2});  // a loop over k inside the product
  run({"f32", "f32", "ieee", 130, 70, 140, 128, 64, 70, true, true, true, 4, 1});
  run({"f16", "f32", "ieee", 96, 96, 96, 96, 96, 96, false, false, true, 4, 2});
}

// 64-bit elements: the layout of the result follows from how both operands lie. Narrow tiles, tiles of odd sides, k that
// is no multiple of a step, rows of shared memory too short to be swizzled over all banks, one warp and eight.
TEST_P(Operands, Doubles) {
  const char* instruction = std::string(GetParam()) == "sm_80" ? "mma.sync.aligned.m8n8k4.row.col.f64"
                                                              : "mma.sync.aligned.m16n8k8.row.col.f64";
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      run({"f64", "f64", "ieee", 70, 50, 100, 64, 64, 16, ta, tb, true, 4, 3, instruction});
      run({"f64", "f64", "ieee", 130, 140, 37, 128, 128, 16, ta, tb, true, 8, 2, instruction});
      run({"f64", "f64", "ieee", 40, 30, 24, 24, 20, 12, ta, tb, true, 2, 2, instruction});
      run({"f64", "f64", "ieee", 20, 9, 7, 16, 8, 4, ta, tb, false, 1, 1, instruction});
      run({"f64", "f64", "ieee", 60, 100, 40, 48, 96, 8, ta, tb, true, 4, 4, instruction});
    }
}

// Words of bits lie as tf32 does.
TEST_P(Operands, Bits) {
  const char* instruction = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc";
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      run({"i32", "i32", "bits", 40, 50, 100, 16, 40, 32, ta, tb, true, 4, 3, instruction});
      run({"i32", "i32", "bits", 50, 30, 37, 24, 20, 12, ta, tb, true, 2, 2, instruction});
    }
}

// f8 that is copied as it lies is multiplied as it is on sm_89, and fragment by fragment as f16 on sm_90a, whose single
// warps have no instruction for it; other f8 is f16 before it is in shared memory.
TEST(Products, BytesOfFloats) {
  const std::string types[] = {"f8E4M3FN", "f8E5M2"}, names[] = {"e4m3", "e5m2"};
  for (int i = 0; i < 12; ++i) {
    const int a = i % 2, b = i / 2 % 2;
    target = i < 4 ? "sm_80" : i < 8 ? "sm_89" : "sm_90a";
    const std::string whole = target == std::string("sm_89") ? "m16n8k32.row.col.f32." + names[a] + "." + names[b]
                                                              : "m16n8k16.row.col.f32.f16.f16";
    run({types[a], "f32", "ieee", 40, 50, 170, 16, 48, 64, false, true, true, 4, 3, whole.c_str(), 1, types[b]});
    run({types[a], "f32", "ieee", 40, 50, 100, 32, 24, 40, false, true, false, 2, 2, whole.c_str(), 1, types[b]});
    for (bool ta : {false, true})
      run({types[a], "f32", "ieee", 40, 50, 100, 32, 32, 32, ta, !ta && b, true, 2, 2, "", 1, types[b]});
  }
}

// Every order of operands, tiles of several instructions per warpgroup, columns divided between warpgroups, k that is no
// multiple of an instruction's, rows and columns that are no multiple of a tile.
TEST(Warpgroups, Products) {
  target = "sm_90a";
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      run({"f16", "f32", "ieee", 130, 100, 100, 128, 64, 64, ta, tb, true, 4, 2, "m64n64k16.f32.f16.f16"});
      run({"bf16", "f32", "ieee", 70, 50, 70, 64, 48, 32, ta, tb, true, 4, 3, "m64n48k16.f32.bf16.bf16"});
      run({"i8", "i32", "ieee", 70, 50, 100, 64, 40, 64, ta, tb, true, 4, 2, "m64n48k32.s32.s8.s8"});
      run({"f8E4M3FN", "f32", "ieee", 130, 50, 100, 128, 40, 64, ta, tb, true, 8, 2, "m64n40k32.f32.e4m3.e4m3"});
      run({"i32", "i32", "bits", 70, 50, 100, 64, 48, 32, ta, tb, true, 4, 2, "k256.s32.b1.b1.and.popc"});
    }
  run({"f8E5M2", "f32", "ieee", 64, 64, 96, 64, 64, 32, false, true, true, 4, 2, "m64n64k32.f32.e5m2.e5m2"});
  for (bool ta : {false, true})  // b across: the product is b^T a^T, its first operand e4m3
    for (bool tb : {false, true}) {
      const char* instruction = !ta && !tb ? "k32.f32.e4m3.e5m2" : "k32.f32.e5m2.e4m3";
      run({"f8E5M2", "f32", "ieee", 130, 70, 100, 64, 64, 64, ta, tb, true, 4, 3, instruction, 1, "f8E4M3FN"});
    }
  run({"f32", "f32", "tf32", 70, 70, 100, 64, 72, 32, false, true, true, 4, 2, "m64n72k8.f32.tf32.tf32"});
  // tf32 with one operand across: its threads read it; with b [K, N] they compute the transposed product.
  run({"f32", "f32", "tf32", 130, 140, 100, 72, 128, 32, false, false, true, 8, 3, "m64n72k8.f32.tf32.tf32"});
  run({"f32", "f32", "tf32", 200, 70, 76, 256, 64, 32, false, false, true, 8, 2, "m64n128k8"});  // rows of two
  run({"f32", "f32", "tf32", 70, 300, 70, 64, 256, 20, false, false, true, 8, 2, "m64n64k8"});   // 2 x 64 columns each
  run({"f32", "f32", "tf32", 70, 60, 50, 48, 56, 16, false, false, false, 4, 2, "m64n48k8"});    // no alignment
  run({"f32", "f32", "tf32", 130, 140, 100, 128, 72, 32, true, true, true, 8, 3, "m64n72k8.f32.tf32.tf32"});
  run({"f32", "f32", "tf32", 50, 70, 44, 56, 80, 24, true, true, false, 4, 2, "m64n80k8"});
  // Bulk copies round to the nearest tf32: cut off, these would be smaller by an ulp.
  const float below = 1 - std::ldexp(1.0f, -13);
  run({"f32", "f32", "tf32", 130, 140, 100, 128, 128, 32, false, true, true, 8, 3, "m64n128k8.f32.tf32.tf32", below});
  run({"f32", "f32", "tf32", 130, 140, 100, 72, 128, 32, false, false, true, 8, 3, "m64n72k8.f32.tf32.tf32", below});
  // The same with bytes, which are transposed four by two on their way.
  run({"i8", "i32", "ieee", 130, 140, 200, 80, 128, 128, false, false, true, 8, 3, "m64n80k32.s32.s8.s8"});
  run({"f8E4M3FN", "f32", "ieee", 200, 300, 170, 64, 256, 64, false, false, true, 8, 2, "m64n64k32"});  // 2 x 64 each
  run({"f8E5M2", "f32", "ieee", 130, 140, 100, 128, 72, 96, true, true, true, 8, 2, "m64n72k32"});
  run({"i8", "i32", "ieee", 70, 60, 90, 48, 56, 40, false, false, false, 4, 2, "m64n48k32"});  // no alignment
  run({"i8", "i32", "ieee", 100, 200, 90, 64, 192, 64, false, false, true, 12, 2, "m64n64k32"});  // three
  run({"i8", "i32", "ieee", 60, 280, 70, 64, 272, 32, false, true, true, 4, 2, "m64n144k32"});  // 144 + 128
  // Bits as tf32, in steps of 16 columns as bytes.
  run({"i32", "i32", "bits", 130, 140, 100, 72, 128, 32, false, false, true, 8, 3, "m64n80k256"});
  run({"i32", "i32", "bits", 70, 300, 70, 64, 256, 20, false, false, true, 8, 2, "m64n64k256"});  // 2 x 64 columns each
  run({"i32", "i32", "bits", 70, 60, 50, 48, 56, 16, false, false, false, 4, 2, "m64n48k256"});   // no alignment
  run({"i32", "i32", "bits", 130, 140, 100, 128, 80, 32, true, true, true, 8, 3, "m64n80k256"});
  run({"i32", "i32", "bits", 60, 280, 40, 64, 272, 16, false, true, true, 4, 2, "m64n144k256"});  // 144 + 128
  run({"f16", "f32", "ieee", 64, 256, 128, 64, 256, 64, false, false, true, 8, 2, "m64n128k16"});   // columns of two
  run({"f16", "f32", "ieee", 200, 176, 60, 192, 176, 20, false, true, true, 12, 2, "m64n176k16"});  // three, k = 20
  run({"f16", "f32", "ieee", 60, 330, 70, 56, 320, 48, true, false, true, 4, 2, "m64n192k16"});     // 192 + 128
  run({"f16", "f32", "ieee", 256, 24, 64, 256, 24, 64, false, false, true, 8, 2, "m64n24k16"});     // 2 x 64 rows each
  run({"f16", "f32", "ieee", 45, 37, 51, 64, 32, 16, true, false, false, 4, 2, "m64n32k16"});       // no alignment
}

// O = (Q K^T masked by a product mask) V, rescaled every step: the middle operand never leaves the registers (64 rows, 4
// warps), or goes through shared memory (16 rows). Integers throughout, so results are exact.
void runChain(int m, int n, int d, int keys, int warps) {
  SCOPED_TRACE(fmt::format("m {} n {} d {} keys {} warps {}", m, n, d, keys, warps));
  std::string h = "!tile.view<2xf16>";
  SimtKernel kern(kernel("%q: " + viewType("f16", kAligned) + ", %k: " + viewType("f16", kAligned) + ", %v: " +
                             viewType("f16", kAligned) + ", %o: " + viewType("f32", kUnaligned) + ", %n: i32",
                         fmt::format(R"(  %c0 = arith.constant 0 : i32
  %cn = arith.constant {n} : i32
  %zs = arith.constant dense<0.0> : tensor<{m}x{n}xf32>
  %zo = arith.constant dense<0.0> : tensor<{m}x{d}xf32>
  %q0 = tile.load %q[%c0, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<{m}x{d}xf16>
  %r = scf.for %j = %c0 to %n step %cn iter_args(%acc = %zo) -> (tensor<{m}x{d}xf32>) : i32 {{
    %kk = tile.load %k[%j, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<{n}x{d}xf16>
    %kt = tile.trans %kk, [1, 0] : tensor<{n}x{d}xf16> -> tensor<{d}x{n}xf16>
    %s = tile.dot %q0, %kt, %zs : tensor<{m}x{d}xf16>, tensor<{d}x{n}xf16> -> tensor<{m}x{n}xf32>
    %top = tile.reduce %s axis 1 : (tensor<{m}x{n}xf32>) -> tensor<{m}x1xf32> {{
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tile.yield %z : f32
    }}
    %tops = tile.broadcast %top : tensor<{m}x1xf32> -> tensor<{m}x{n}xf32>
    %hit = arith.cmpf oeq, %s, %tops : tensor<{m}x{n}xf32>
    %one = arith.constant dense<1.0> : tensor<{m}x{n}xf16>
    %none = arith.constant dense<0.0> : tensor<{m}x{n}xf16>
    %p = arith.select %hit, %one, %none : tensor<{m}x{n}xi1>, tensor<{m}x{n}xf16>
    %vv = tile.load %v[%j, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<{n}x{d}xf16>
    %new = tile.dot %p, %vv, %acc : tensor<{m}x{n}xf16>, tensor<{n}x{d}xf16> -> tensor<{m}x{d}xf32>
    scf.yield %new : tensor<{m}x{d}xf32>
  }}
  tile.store %r, %o[%c0, %c0 : i32, i32] : tensor<{m}x{d}xf32>, !tile.view<2xf32>
)",
                                     fmt::arg("m", m), fmt::arg("n", n), fmt::arg("d", d))),
                  target, warps);
  Matrix q(m, d, false, "f16", 1, 16), k(keys, d, false, "f16", 2, 16), v(keys, d, false, "f16", 3, 16);
  GuardedBuffer o(int64_t{m} * d * 4);
  std::vector<uint64_t> slots;
  for (const Matrix* x : {&q, &k, &v})
    for (uint64_t s : x->slots()) slots.push_back(s);
  for (uint64_t s : {slot(o.as<char>()), u(m), u(d), u(d), uint64_t{1}, u(keys)}) slots.push_back(s);
  kern.run(slots, 1);
  for (int i = 0; i < m; ++i) {
    std::vector<int> want(d, 0);
    for (int j0 = 0; j0 < keys; j0 += n) {
      std::vector<int> s(n, 0);
      for (int j = 0; j < n; ++j)
        for (int c = 0; c < d && j0 + j < keys; ++c) s[j] += q.values[i * d + c] * k.values[(j0 + j) * d + c];
      int top = *std::max_element(s.begin(), s.end());
      for (int j = 0; j < n && j0 + j < keys; ++j)
        if (s[j] == top)
          for (int c = 0; c < d; ++c) want[c] += v.values[(j0 + j) * d + c];
    }
    for (int c = 0; c < d; ++c) ASSERT_EQ(o.as<float>()[i * d + c], want[c]) << "at " << i << ", " << c;
  }
}

TEST_P(Operands, AccumulatorFeedsTheNextProduct) {
  runChain(64, 32, 64, 128, 4);
  runChain(64, 32, 48, 100, 4);
  runChain(64, 24, 64, 90, 4);  // k = 24: the fragment's padding must be zero
  runChain(16, 32, 64, 100, 4);
  runChain(80, 40, 32, 100, 4);
  runChain(32, 16, 16, 50, 2);
  runChain(128, 48, 64, 130, 8);
  runChain(192, 32, 48, 70, 12);
  runChain(64, 64, 128, 130, 8);
}

// Blocks under a false condition hold NaN and addresses past the end: neither may be touched.
TEST_P(Operands, SkippedBlocksAreNotRead) {
  for (int stages : {1, 2, 3}) {
    SimtKernel kern(kernel("%a: " + viewType("f16", kAligned) + ", %b: " + viewType("f16", kAligned) +
                               ", %c: " + viewType("f32", kUnaligned) + ", %list: !tile.ptr<i32>, %n: i32",
                           fmt::format(R"(  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i32 {{
    %p = tile.ptr_add %list, %i : !tile.ptr<i32>, i32
    %block = tile.gather %p : !tile.ptr<i32> -> i32
    %keep = arith.cmpi sge, %block, %c0 : i32
    %x = scf.if %keep -> tensor<32x32xf32> {{
      %at = arith.muli %block, %c32 : i32
      %av = tile.load %a[%c0, %at : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
      %bv = tile.load %b[%at, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
      %s = tile.dot %av, %bv, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
      scf.yield %s : tensor<32x32xf32>
    }} else {{
      scf.yield %acc : tensor<32x32xf32>
    }}
    scf.yield %x : tensor<32x32xf32>
  }} {{tile.stages = {} : i32}}
  tile.store %r, %c[%c0, %c0 : i32, i32] : tensor<32x32xf32>, !tile.view<2xf32>
)",
                                       stages)),
                    target, 4);
    for (int n : {0, 1, 2, 3, 5, 8}) {
      SCOPED_TRACE(fmt::format("stages {} n {}", stages, n));
      const int blocks = 8;
      Matrix a(32, 32 * blocks, false, "f16", 1, 0), b(32 * blocks, 32, false, "f16", 2, 0);
      GuardedBuffer c(32 * 32 * 4), list(int64_t{std::max(n, 1)} * 4);  // one entry past the end would fault
      std::vector<int> kept;
      for (int i = 0; i < n; ++i) {
        bool keep = i % 3 != 1;
        list.as<int32_t>()[i] = keep ? i : -1;
        if (keep) kept.push_back(i);
      }
      for (int block = 0; block < blocks; ++block) {
        if (std::find(kept.begin(), kept.end(), block) != kept.end()) continue;
        for (int i = 0; i < 32; ++i)
          for (int j = 0; j < 32; ++j) {
            a.memory.as<uint16_t>()[i * a.pitch + block * 32 + j] = kHalfNaN;
            b.memory.as<uint16_t>()[(block * 32 + i) * b.pitch + j] = kHalfNaN;
          }
      }
      std::vector<uint64_t> slots = a.slots();
      for (uint64_t s : b.slots()) slots.push_back(s);
      for (uint64_t s :
           {slot(c.as<char>()), uint64_t{32}, uint64_t{32}, uint64_t{32}, uint64_t{1}, slot(list.as<char>()), u(n)})
        slots.push_back(s);
      kern.run(slots, 1);
      for (int i = 0; i < 32; ++i)
        for (int j = 0; j < 32; ++j) {
          int want = 0;
          for (int block : kept)
            for (int x = block * 32; x < block * 32 + 32; ++x) want += a.values[i * a.cols + x] * b.values[x * 32 + j];
          ASSERT_EQ(c.as<float>()[i * 32 + j], want) << "at " << i << ", " << j;
        }
    }
  }
}

// Offsets carried through the loop, a row mask, addresses the compiler knows to be contiguous.
TEST_P(Operands, GatheredThroughPointers) {
  for (int stages : {1, 3}) {
    SimtKernel kern(kernel("%a: !tile.ptr<f16> {tile.align = 16 : i32}, %b: " + viewType("f16", kAligned) + ", %c: " +
                               viewType("f32", kUnaligned) + ", %M: i32, %K: i32 {tile.multiple_of = 16 : i32}",
                           fmt::format(R"(  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %rows1 = tile.iota : tensor<64xi32>
  %cols1 = tile.iota : tensor<32xi32>
  %rows = tile.reshape %rows1 : tensor<64xi32> -> tensor<64x1xi32>
  %cols = tile.reshape %cols1 : tensor<32xi32> -> tensor<1x32xi32>
  %Ks = tile.splat %K : i32 -> tensor<64x1xi32>
  %Ms = tile.splat %M : i32 -> tensor<64x1xi32>
  %in = arith.cmpi slt, %rows, %Ms : tensor<64x1xi32>
  %mask = tile.broadcast %in : tensor<64x1xi1> -> tensor<64x32xi1>
  %start = arith.muli %rows, %Ks : tensor<64x1xi32>
  %starts = tile.broadcast %start : tensor<64x1xi32> -> tensor<64x32xi32>
  %colss = tile.broadcast %cols : tensor<1x32xi32> -> tensor<64x32xi32>
  %first = arith.addi %starts, %colss : tensor<64x32xi32>
  %step = arith.constant dense<32> : tensor<64x32xi32>
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %r:2 = scf.for %i = %c0 to %K step %c32 iter_args(%acc = %zero, %at = %first) -> (tensor<64x32xf32>, tensor<64x32xi32>) : i32 {{
    %x = tile.gather %a offsets %at : tensor<64x32xi32> mask %mask : tensor<64x32xi1> : !tile.ptr<f16> -> tensor<64x32xf16>
    %y = tile.load %b[%i, %c0 : i32, i32] : !tile.view<2xf16> -> tensor<32x32xf16>
    %s = tile.dot %x, %y, %acc : tensor<64x32xf16>, tensor<32x32xf16> -> tensor<64x32xf32>
    %next = arith.addi %at, %step : tensor<64x32xi32>
    scf.yield %s, %next : tensor<64x32xf32>, tensor<64x32xi32>
  }} {{tile.stages = {} : i32}}
  tile.store %r#0, %c[%c0, %c0 : i32, i32] : tensor<64x32xf32>, !tile.view<2xf32>
)",
                                       stages)),
                    target, 4);
    EXPECT_NE(kern.ptx().find("cp.async.cg"), std::string::npos) << "aligned rows should be copied 16 bytes at a time";
    const int M = 45, K = 96;
    Matrix a(M, K, false, "f16", 1, 0), b(K, 32, false, "f16", 2, 0);
    GuardedBuffer c(64 * 32 * 4);
    std::vector<uint64_t> slots{slot(a.memory.as<char>())};
    for (uint64_t s : b.slots()) slots.push_back(s);
    for (uint64_t s : {slot(c.as<char>()), uint64_t{64}, uint64_t{32}, uint64_t{32}, uint64_t{1}, u(M), u(K)})
      slots.push_back(s);
    kern.run(slots, 1);
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 32; ++j) {
        int want = 0;
        for (int x = 0; x < K && i < M; ++x) want += a.values[i * K + x] * b.values[x * 32 + j];
        ASSERT_EQ(c.as<float>()[i * 32 + j], want) << "at " << i << ", " << j;
      }
  }
}

}  // namespace
}  // namespace tile::testing::operands_test
