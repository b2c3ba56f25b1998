// cluster_test.cpp - programs of a cluster that copy tiles for each other: on the simulated machine under several
// schedules, against plain loops; faults put into the protocol are found and named; and what is not shared, and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/float_types.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

constexpr int kRows = 64, kColumns = 128, kDepth = 32;  ///< of a program's tile, of an iteration

/// C[m, n] = sum over k of A[m, k] B[k, n] for A and B of f16; programs of a cluster have tile rows side by side.
std::string product(int stages, int cluster = 2, const std::string& bColumn = "%n0") {
  const std::string view =
      "!tile.view<2xf16> {tile.align = 16 : i32, tile.unit_stride = 1 : i32, "
      "tile.stride_multiple_of = array<i32: 8, 1>}";
  std::string text = kernel(
      fmt::format("%a: {0}, %b: {0}, %c: !tile.view<2xf32> {{tile.unit_stride = 1 : i32}}, %depth: i32", view),
      fmt::format(R"(  %c0 = arith.constant 0 : i32
  %ck = arith.constant {k} : i32
  %cm = arith.constant {m} : i32
  %cn = arith.constant {n} : i32
  %pm = tile.program_id 0
  %pn = tile.program_id 1
  %m0 = arith.muli %pm, %cm : i32
  %n0 = arith.muli %pn, %cn : i32
  %shifted = arith.addi %n0, %pm : i32
  %zero = arith.constant dense<0.0> : tensor<{m}x{n}xf32>
  %r = scf.for %at = %c0 to %depth step %ck iter_args(%acc = %zero) -> (tensor<{m}x{n}xf32>) : i32 {{
    %x = tile.load %a[%m0, %at : i32, i32] : !tile.view<2xf16> -> tensor<{m}x{k}xf16>
    %y = tile.load %b[%at, {column} : i32, i32] : !tile.view<2xf16> -> tensor<{k}x{n}xf16>
    %s = tile.dot %x, %y, %acc : tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16> -> tensor<{m}x{n}xf32>
    scf.yield %s : tensor<{m}x{n}xf32>
  }} {{tile.stages = {stages} : i32}}
  tile.store %r, %c[%m0, %n0 : i32, i32] : tensor<{m}x{n}xf32>, !tile.view<2xf32>
)",
                  fmt::arg("m", kRows), fmt::arg("n", kColumns), fmt::arg("k", kDepth), fmt::arg("stages", stages),
                  fmt::arg("column", bColumn)));
  const std::string attribute = "attributes {tile.kernel";
  return text.insert(text.find(attribute) + attribute.size(),
                     fmt::format(", tile.cluster = {} : i32, tile.num_warps = 4 : i32", cluster));
}

/// Elements that differ from the plain loops', of a grid of programs x columns.
int wrongElements(SimtKernel& kern, int programs, int depth, uint32_t seed) {
  const int rows = programs * kRows, columns = 2 * kColumns - 8, pitch = std::max(depth + 7, 8) / 8 * 8;
  std::mt19937 random(7);
  GuardedBuffer a(static_cast<size_t>(rows * pitch) * 2), b(static_cast<size_t>(std::max(depth, 1) * columns) * 2),
      c(static_cast<size_t>(rows * columns) * 4);
  std::vector<int> valuesA(static_cast<size_t>(rows * pitch)),
      valuesB(static_cast<size_t>(std::max(depth, 1) * columns));
  auto fill = [&](std::vector<int>& values, half* to) {
    for (int& v : values) *to++ = half(static_cast<float>(v = static_cast<int>(random() % 9) - 4));
  };
  fill(valuesA, a.as<half>());
  fill(valuesB, b.as<half>());
  kern.run({slot(a.as<half>()), slot(rows), slot(depth), slot(pitch), 1, slot(b.as<half>()), slot(depth), slot(columns),
            slot(columns), 1, slot(c.as<float>()), slot(rows), slot(columns), slot(columns), 1, slot(depth)},
           programs, 2, 1, seed);
  int wrong = 0;
  for (int m = 0; m < rows; ++m)
    for (int n = 0; n < columns; ++n) {
      int sum = 0;
      for (int k = 0; k < depth; ++k)
        sum += valuesA[static_cast<size_t>(m * pitch + k)] * valuesB[static_cast<size_t>(k * columns + n)];
      wrong += c.as<float>()[m * columns + n] != static_cast<float>(sum);
    }
  return wrong;
}

TEST(Cluster, TripCountsAndSchedules) {
  for (auto [stages, cluster, clusters] : {std::tuple{1, 2, 3}, {3, 2, 3}, {3, 4, 2}, {2, 8, 1}}) {
    SimtKernel kern(product(stages, cluster));
    EXPECT_EQ(static_cast<uint32_t>(cluster), kern.binary().cluster);
    EXPECT_THAT(kern.ptx(), ::testing::AllOf(::testing::HasSubstr(".multicast::cluster"),
                                             ::testing::HasSubstr(fmt::format(".reqnctapercluster {}", cluster))));
    for (uint32_t seed = 0; seed < (cluster == 2 ? 6 : 2); ++seed)
      for (int depth : {0, 8, kDepth, (stages - 1) * kDepth, stages * kDepth, (stages + 1) * kDepth, 7 * kDepth - 8})
        EXPECT_EQ(0, wrongElements(kern, cluster * clusters, depth, seed))
            << stages << " stages, " << cluster << " programs, depth " << depth << ", seed " << seed;
  }
}

TEST(Cluster, WhatDiffersIsNotShared) {
  SimtKernel kern(product(3, 2, "%shifted"));
  EXPECT_EQ(1u, kern.binary().cluster) << "both tiles depend on program_id 0";
  EXPECT_THAT(kern.ptx(), ::testing::Not(::testing::HasSubstr("cluster.sync")));
}

// ---- faults

/// What the simulated machine says of the kernel with a fault in it, or "".
std::string faultOf(const std::string& from, const std::string& to) {
  SimtKernel kern(product(2), "sm_90a", 4, [&](std::string& llvm) { replaceAll(llvm, from, to); });
  for (uint32_t seed = 0; seed < 12; ++seed) {
    try {
      if (wrongElements(kern, 6, 9 * kDepth, seed)) return "wrong result";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
  return "";
}

TEST(Cluster, AStageGivenBackToOneProgramOnlyIsNoticed) {
  EXPECT_THAT(faultOf("mapa.shared::cluster.u32 R1, $0, $2", "mapa.shared::cluster.u32 R1, $0, 0"),
              ::testing::AnyOf(::testing::HasSubstr("once too often"), ::testing::HasSubstr("deadlock"),
                               ::testing::HasSubstr("writes")));
}
TEST(Cluster, CopiesIntoOneProgramOnlyAreNoticed) {
  EXPECT_THAT(faultOf("i16 3, i64 0, i1 true", "i16 1, i64 0, i1 true"), ::testing::HasSubstr("deadlock"));
}
TEST(Cluster, EndingBeforeTheOthersIsNoticed) {
  EXPECT_THAT(faultOf("call void @llvm.nvvm.barrier.cluster.wait()", ""), ::testing::HasSubstr("which has ended"));
}

}  // namespace
}  // namespace tile::testing
