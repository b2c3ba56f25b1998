// control_test.cpp - loops and branches carrying tiles, scalars from tiles, printing and failing assertions.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/gpu/kernels.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

TEST(Control, LoopCarriesTilesAndScalars) {
  SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32, %o: !tile.ptr<i32>", R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %step = arith.constant dense<256> : tensor<256xi32>
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %at = %i, %count = %c0) -> (tensor<256xi32>, tensor<256xi32>, i32) : i32 {
    %v = tile.gather %x offsets %at : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
    %s = arith.addi %sum, %v : tensor<256xi32>
    %next = arith.addi %at, %step : tensor<256xi32>
    %c = arith.addi %count, %k : i32
    scf.yield %s, %next, %c : tensor<256xi32>, tensor<256xi32>, i32
  }
  %extra = tile.splat %r#2 : i32 -> tensor<256xi32>
  %out = arith.addi %r#0, %extra : tensor<256xi32>
  tile.scatter %out, %o offsets %i : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
)"));
  for (int n : {0, 1, 5}) {
    GuardedBuffer x(4 * 256 * n), out(1024);
    std::iota(x.as<int32_t>(), x.as<int32_t>() + 256 * n, 0);
    k.run({slot(x.as<char>()), static_cast<uint32_t>(n), slot(out.as<char>())}, 1);
    for (int i = 0; i < 256; ++i) {
      int want = 0;
      for (int j = 0; j < n; ++j) want += j * 256 + i + j;
      ASSERT_EQ(out.as<int32_t>()[i], want);
    }
  }
}

// Tables that loops go on counting in: filled with what there was, in each iteration of a loop around them again; loops
// that do not run, and a branch.
TEST(Control, LoopsCountInTables) {
  for (int warps : {1, 4}) {
    SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %n: i32, %m: i32, %o: !tile.ptr<i32>", R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c30 = arith.constant 30 : i32
  %i = tile.iota : tensor<128xi32>
  %to = tile.iota : tensor<30xi32>
  %width = arith.constant dense<128> : tensor<128xi32>
  scf.for %k = %c0 to %n step %c1 : i32 {
    %r = scf.for %j = %c0 to %m step %c1 iter_args(%count = %to) -> (tensor<30xi32>) : i32 {
      %row = tile.splat %j : i32 -> tensor<128xi32>
      %start = arith.muli %row, %width : tensor<128xi32>
      %at = arith.addi %start, %i : tensor<128xi32>
      %v = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
      %h = tile.histogram %v : tensor<128xi32> -> tensor<30xi32>
      %s = arith.addi %count, %h : tensor<30xi32>
      %first = arith.cmpi eq, %k, %c0 : i32
      %t = scf.if %first -> tensor<30xi32> {
        %again = tile.histogram %row : tensor<128xi32> -> tensor<30xi32>
        %u = arith.addi %s, %again : tensor<30xi32>
        scf.yield %u : tensor<30xi32>
      } else {
        scf.yield %s : tensor<30xi32>
      }
      scf.yield %t : tensor<30xi32>
    }
    %step = arith.muli %k, %c30 : i32
    %p = tile.ptr_add %o, %step : !tile.ptr<i32>, i32
    tile.scatter %r, %p offsets %to : tensor<30xi32> : tensor<30xi32>, !tile.ptr<i32>
  }
)"),
                 "sm_90a", warps);
    for (int m : {0, 1, 5}) {
      GuardedBuffer x(4 * 128 * static_cast<size_t>(m)), out(4 * 60);
      std::vector<int32_t> want(60);
      for (int i = 0; i < 60; ++i) want[static_cast<size_t>(i)] = i % 30 + (i < m ? 128 : 0);
      for (int i = 0; i < 128 * m; ++i) {
        const int value = x.as<int32_t>()[i] = i * i % 41 - 5;
        if (value >= 0 && value < 30) ++want[static_cast<size_t>(value)], ++want[static_cast<size_t>(value + 30)];
      }
      for (uint32_t seed = 1; seed < 4; ++seed) {
        k.run({slot(x.as<char>()), 2, static_cast<uint32_t>(m), slot(out.as<char>())}, 1, 1, 1, seed);
        EXPECT_EQ(std::vector<int32_t>(out.as<int32_t>(), out.as<int32_t>() + 60), want) << m << " " << warps;
      }
    }
  }
}

// Tables of floats have numbers several times: added up to what there was, also of a loop that does not run.
TEST(Control, LoopsAddWeightsInTables) {
  for (int warps : {1, 4}) {
    SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %m: i32, %o: !tile.ptr<f32>", R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tile.iota : tensor<128xi32>
  %to = tile.iota : tensor<30xi32>
  %init = arith.sitofp %to : tensor<30xi32> to tensor<30xf32>
  %width = arith.constant dense<128> : tensor<128xi32>
  %r = scf.for %j = %c0 to %m step %c1 iter_args(%sum = %init) -> (tensor<30xf32>) : i32 {
    %row = tile.splat %j : i32 -> tensor<128xi32>
    %start = arith.muli %row, %width : tensor<128xi32>
    %at = arith.addi %start, %i : tensor<128xi32>
    %v = tile.gather %x offsets %at : tensor<128xi32> : !tile.ptr<i32> -> tensor<128xi32>
    %w = arith.sitofp %at : tensor<128xi32> to tensor<128xf32>
    %h = tile.histogram %v weights %w : tensor<128xf32> : tensor<128xi32> -> tensor<30xf32>
    %s = arith.addf %sum, %h : tensor<30xf32>
    scf.yield %s : tensor<30xf32>
  }
  tile.scatter %r, %o offsets %to : tensor<30xi32> : tensor<30xf32>, !tile.ptr<f32>
)"),
                 warps == 4 ? "sm_90a" : "sm_80", warps);
    for (int m : {0, 1, 5}) {
      GuardedBuffer x(4 * 128 * static_cast<size_t>(m)), out(4 * 30);
      std::vector<float> want(30);
      for (int i = 0; i < 30; ++i) want[static_cast<size_t>(i)] = static_cast<float>(i);
      for (int i = 0; i < 128 * m; ++i) {
        const int value = x.as<int32_t>()[i] = i / 3 % 41 - 5;
        if (value >= 0 && value < 30) want[static_cast<size_t>(value)] += static_cast<float>(i);
      }
      for (uint32_t seed = 1; seed < 4; ++seed) {
        k.run({slot(x.as<char>()), static_cast<uint32_t>(m), slot(out.as<char>())}, 1, 1, 1, seed);
        EXPECT_EQ(std::vector<float>(out.as<float>(), out.as<float>() + 30), want) << m << " " << warps;
      }
    }
  }
}

// Asked for, and because what the loop reads comes early: ends in front of the beginning, and what remains.
TEST(Control, LoopsOfSeveralBodiesAnIteration) {
  for (bool writes : {false, true}) {
    SimtKernel k(kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %low: i32, %n: i32, %o: !tile.ptr<i32>",
                        R"(
  %c3 = arith.constant 3 : i32
  %i = tile.iota : tensor<256xi32>
  %zero = arith.constant dense<0> : tensor<256xi32>
  %width = arith.constant dense<256> : tensor<256xi32>
  %r = scf.for %k = %low to %n step %c3 iter_args(%sum = %zero) -> (tensor<256xi32>) : i32 {
    %row = tile.splat %k : i32 -> tensor<256xi32>
    %start = arith.muli %row, %width : tensor<256xi32>
    %at = arith.addi %start, %i : tensor<256xi32>
    %v = tile.gather %x offsets %at : tensor<256xi32> : !tile.ptr<i32> -> tensor<256xi32>
    %s = arith.addi %sum, %v : tensor<256xi32>)" +
                            std::string(writes ? R"(
    %to = arith.addi %at, %width : tensor<256xi32>
    tile.scatter %s, %o offsets %to : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>)"
                                               : "") +
                            R"(
    scf.yield %s : tensor<256xi32>
  })" + (writes ? "" : " {tile.unroll = 4 : i32}") +
                            R"(
  tile.scatter %r, %o offsets %i : tensor<256xi32> : tensor<256xi32>, !tile.ptr<i32>
)"));
    for (auto [low, n] : {std::pair{0, 40}, {2, 31}, {5, 6}, {9, 0}, {40, 1}}) {
      constexpr int kRows = 41;
      GuardedBuffer x(4 * 256 * kRows), out(4 * 256 * (kRows + 1));
      std::iota(x.as<int32_t>(), x.as<int32_t>() + 256 * kRows, 7);
      k.run({slot(x.as<char>()), static_cast<uint32_t>(low), static_cast<uint32_t>(n), slot(out.as<char>())}, 1);
      for (int i = 0; i < 256; ++i) {
        int want = 0;
        for (int row = low; row < n; row += 3) {
          want += row * 256 + i + 7;
          if (writes) {
            ASSERT_EQ(out.as<int32_t>()[(row + 1) * 256 + i], want) << row;
          }
        }
        ASSERT_EQ(out.as<int32_t>()[i], want) << low << " to " << n;
      }
    }
  }
}

TEST(Control, WhileAndIfOnAReducedValue) {
  // Halves the tile until its sum is at most 1000; counts the rounds, adds 1 to odd counts.
  SimtKernel k(
      kernel("%x: !tile.ptr<i32> {tile.align = 16 : i32}, %o: !tile.ptr<i32>", readTile("a", "x", {300}, "i32") + R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %limit = arith.constant 1000 : i32
  %ones = arith.constant dense<1> : tensor<300xi32>
  %w:2 = scf.while (%t = %a, %n = %c0) : (tensor<300xi32>, i32) -> (tensor<300xi32>, i32) {
    %s = tile.reduce %t axis 0 : (tensor<300xi32>) -> tensor<1xi32> {
    ^bb0(%p: i32, %q: i32):
      %r = arith.addi %p, %q : i32
      tile.yield %r : i32
    }
    %total = tile.item %s : tensor<1xi32> -> i32
    %more = arith.cmpi sgt, %total, %limit : i32
    scf.condition(%more) %t, %n : tensor<300xi32>, i32
  } do {
  ^bb0(%t: tensor<300xi32>, %n: i32):
    %h = arith.shrsi %t, %ones : tensor<300xi32>
    %m = arith.addi %n, %c1 : i32
    scf.yield %h, %m : tensor<300xi32>, i32
  }
  %odd = arith.andi %w#1, %c1 : i32
  %isOdd = arith.cmpi eq, %odd, %c1 : i32
  %f = scf.if %isOdd -> (tensor<300xi32>) {
    %u = arith.addi %w#0, %ones : tensor<300xi32>
    scf.yield %u : tensor<300xi32>
  } else {
    scf.yield %w#0 : tensor<300xi32>
  }
  %count = tile.splat %w#1 : i32 -> tensor<300xi32>
  %hundred = arith.constant dense<100000> : tensor<300xi32>
  %big = arith.muli %count, %hundred : tensor<300xi32>
  %r = arith.addi %f, %big : tensor<300xi32>
)" + writeTile("r", "o", {300}, "i32")));
  GuardedBuffer x(1200), out(1200);
  for (int i = 0; i < 300; ++i) x.as<int32_t>()[i] = i;
  k.run({slot(x.as<char>()), slot(out.as<char>())}, 1);
  std::vector<int> t(300);
  std::iota(t.begin(), t.end(), 0);
  int n = 0;
  while (std::accumulate(t.begin(), t.end(), 0) > 1000) {
    for (int& v : t) v >>= 1;
    ++n;
  }
  for (int i = 0; i < 300; ++i) ASSERT_EQ(out.as<int32_t>()[i], t[i] + n % 2 + 100000 * n);
}

struct Ring {
  DebugRing head;
  DebugRecord records[64];
};

TEST(Debug, PrintWritesEveryElementOnce) {
  SimtKernel k(
      kernel("%x: !tile.ptr<i32>", readTile("a", "x", {5, 7}, "i32") + "  tile.print \"a is\" %a : tensor<5x7xi32>\n"));
  ASSERT_TRUE(k.binary().uses_debug_ring);
  ASSERT_EQ(k.binary().debug_sites.size(), 1u);
  EXPECT_EQ(k.binary().debug_sites[0].message, "a is");
  EXPECT_EQ(k.binary().debug_sites[0].shape, (std::vector<int>{5, 7}));
  GuardedBuffer x(140), memory(sizeof(Ring));
  for (int i = 0; i < 35; ++i) x.as<int32_t>()[i] = 100 + i;
  Ring* ring = memory.as<Ring>();
  *ring = {};
  ring->head.capacity = 64;
  k.run({slot(x.as<char>()), slot(ring)}, 1);
  ASSERT_EQ(ring->head.next, 35u);
  std::vector<int> seen(35, 0);
  for (int i = 0; i < 35; ++i) {
    ASSERT_LT(ring->records[i].element, 35u);
    EXPECT_EQ(ring->records[i].bits, 100u + ring->records[i].element);
    ++seen[ring->records[i].element];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 35);
  ring->head = {0, 10, 0};  // a full ring counts on
  k.run({slot(x.as<char>()), slot(ring)}, 1);
  EXPECT_EQ(ring->head.next, 35u);
}

TEST(Debug, FailedAssertTraps) {
  SimtKernel k(kernel("%x: !tile.ptr<i32>", readTile("a", "x", {100}, "i32") + R"(
  %limit = arith.constant dense<99> : tensor<100xi32>
  %ok = arith.cmpi slt, %a, %limit : tensor<100xi32>
  tile.assert %ok, "too large" : tensor<100xi1>
)"));
  GuardedBuffer x(400), memory(sizeof(Ring));
  for (int i = 0; i < 100; ++i) x.as<int32_t>()[i] = i < 99 ? i : 0;
  Ring* ring = memory.as<Ring>();
  *ring = {};
  ring->head.capacity = 64;
  k.run({slot(x.as<char>()), slot(ring)}, 1);
  EXPECT_EQ(ring->head.next, 0u);
  x.as<int32_t>()[37] = 500;
  EXPECT_THROW(k.run({slot(x.as<char>()), slot(ring)}, 1), std::runtime_error);
  ASSERT_EQ(ring->head.next, 1u);
  EXPECT_EQ(ring->records[0].element, 37u);
}

}  // namespace
}  // namespace tile::testing
