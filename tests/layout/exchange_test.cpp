// exchange_test.cpp - passing tiles through shared memory: simulated element by element, conflicts counted.
#include "compiler/layout/exchange.h"
#include "compiler/layout/lane_trades.h"
#include "compiler/layout/relations.h"

#include <gtest/gtest.h>

#include <map>

namespace tile::layout {
namespace {

// Writes every element's number under `from`, reads under `to`, both as the lowering does, and checks who got what.
void expectDelivers(const Layout& from, const Layout& to, int elementBytes) {
  Exchange plan = planExchange(from, to, elementBytes);
  std::map<int64_t, Coord> memory;
  for (int warp = 0; warp < from.numWarps(); ++warp)
    for (int lane = 0; lane < from.numLanes(); ++lane)
      for (const auto& run : from.runs(plan.minor, plan.storeVector)) {
        Coord start = from.coordOf(run[0], lane, warp);
        ASSERT_EQ(plan.address(start) % (plan.storeVector * elementBytes), 0) << "unaligned store";
        for (size_t i = 0; i < run.size(); ++i) {
          Coord coord = from.coordOf(run[i], lane, warp);
          int64_t address = plan.address(start) + static_cast<int64_t>(i) * elementBytes;
          ASSERT_LE(address + elementBytes, plan.bytes);
          if (!from.inTile(coord)) continue;
          auto [it, added] = memory.emplace(address, coord);
          ASSERT_EQ(it->second, coord) << "two elements in one place";
        }
      }
  for (int warp = 0; warp < to.numWarps(); ++warp)
    for (int lane = 0; lane < to.numLanes(); ++lane)
      for (const auto& run : to.runs(plan.minor, plan.loadVector)) {
        int64_t address = plan.address(to.coordOf(run[0], lane, warp));
        ASSERT_EQ(address % (plan.loadVector * elementBytes), 0) << "unaligned load";
        ASSERT_LE(address + plan.loadVector * elementBytes, plan.bytes);
        for (size_t i = 0; i < run.size(); ++i) {
          Coord coord = to.coordOf(run[i], lane, warp);
          if (to.inTile(coord)) {
            ASSERT_EQ(memory.at(address + static_cast<int64_t>(i) * elementBytes), coord);
          }
        }
      }
}

TEST(Exchange, DeliversEveryElement) {
  for (const Shape& shape : {Shape{64, 64}, {5, 7}, {64, 80}, {1, 1024}, {17, 33}}) {
    for (int warps : {4, 8}) {
      std::vector<Layout> layouts = {blocked(shape, 8, {1, 0}, warps), blocked(shape, 4, {0, 1}, warps),
                                     blocked(shape, 1, {1, 0}, warps), mmaAccumulator(shape, warps, 1),
                                     mmaOperandA(shape, warps / 2, 2, 16), mmaOperandB(shape, 2, warps / 2, 8)};
      for (const Layout& from : layouts)
        for (const Layout& to : layouts)
          for (int bytes : {1, 4}) expectDelivers(from, to, bytes);
    }
  }
  expectDelivers(blocked({80}, 4, {0}, 4), blocked({80}, 1, {0}, 4), 4);
  expectDelivers(blocked({2, 3, 40}, 4, {2, 1, 0}, 4), blocked({2, 3, 40}, 2, {0, 1, 2}, 4), 2);
}

TEST(Exchange, AccumulatorToRowsIsFreeOfConflicts) {
  for (int64_t width : {64, 128, 80, 96}) {
    Exchange half = planExchange(mmaAccumulator({64, width}, 4, 1), blocked({64, width}, 8, {1, 0}, 4), 2);
    int most = width % 64 ? 2 : 1;  // rows whose lanes split unevenly may meet once
    EXPECT_LE(half.storePasses, most) << width;
    EXPECT_EQ(half.loadVector, 8);
    EXPECT_LE(half.loadPasses, most) << width;
    Exchange single = planExchange(mmaAccumulator({64, width}, 4, 1), blocked({64, width}, 4, {1, 0}, 4), 4);
    EXPECT_LE(single.storePasses, most) << width;
    EXPECT_LE(single.loadPasses, most) << width;
  }
}

// Rows of 16 bytes become columns: halves meet on no bank, words on one side once at most.
TEST(Exchange, TurningATileIsFreeOfConflicts) {
  for (const Shape& shape : {Shape{64, 64}, {128, 64}, {32, 128}})
    for (int bytes : {2, 4}) {
      const int vector = 16 / bytes;
      const Layout rows = blocked(shape, vector, {1, 0}, 4), columns = blocked(shape, vector, {0, 1}, 4);
      const Exchange plan = planExchange(columns, rows, bytes);
      EXPECT_LE(plan.storePasses + plan.loadPasses, bytes == 2 ? 2 : 3) << shape[0] << "x" << shape[1] << " of " << bytes;
      expectDelivers(columns, rows, bytes);
    }
}

TEST(Exchange, BoxesOfATileAreAsSmallAsWanted) {
  const Layout from = wgmmaAccumulator({128, 128}, 2, 1), to = *runsOfWarps(from, 1, 4, 32);
  EXPECT_EQ(exchangeBox(from, to, 4, 1 << 20), (Shape{128, 128}));
  EXPECT_EQ(exchangeBox(from, to, 4, 16384), (Shape{128, 32}));  // lines stay whole
  EXPECT_EQ(exchangeBox(from, from, 4, 16384), (Shape{128, 16}));
  const Coord origin{0, 0};
  expectDelivers(*boxLayout(from, origin, {128, 32}), *boxLayout(to, origin, {128, 32}), 4);
}

TEST(Runs, EveryRegisterOnceInOrder) {
  for (const Layout& layout : {blocked({64, 64}, 8, {1, 0}, 4), mmaAccumulator({64, 64}, 4, 1), mmaOperandA({64, 64}, 4, 1, 16)}) {
    for (int dim : {0, 1}) {
      int length = layout.runLength(dim);
      std::vector<int> used(layout.numRegs(), 0);
      for (const auto& run : layout.runs(dim, length)) {
        Coord start = layout.regCoord(run[0]);
        EXPECT_EQ(start[dim] % length, 0);
        for (int i = 0; i < length; ++i) {
          Coord want = start;
          want[dim] += i;
          EXPECT_EQ(layout.regCoord(run[i]), want);
          ++used[run[i]];
        }
      }
      for (int count : used) EXPECT_EQ(count, 1);
    }
  }
  // A run may be spread over the register order.
  Layout spread({4, 8}, {{0, 4, 1}, {1, 8, 1}}, {}, {});
  EXPECT_EQ(spread.contiguousRegs(1), 1);
  EXPECT_EQ(spread.runLength(1), 8);
}

}  // namespace
}  // namespace tile::layout
