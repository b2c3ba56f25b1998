// layout_test.cpp - layouts by enumeration: every element is somewhere, only replicas share one, and every operation on
// layouts moves no element.
#include "compiler/layout/lane_trades.h"
#include "compiler/layout/layout.h"
#include "compiler/layout/relations.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <tuple>

namespace tile::layout {
namespace {

using Place = std::tuple<int, int, int>;  // register, lane, warp

std::map<Coord, std::vector<Place>> places(const Layout& layout) {
  std::map<Coord, std::vector<Place>> result;
  for (int warp = 0; warp < layout.numWarps(); ++warp)
    for (int lane = 0; lane < layout.numLanes(); ++lane)
      for (int reg = 0; reg < layout.numRegs(); ++reg) {
        Coord coord = layout.coordOf(reg, lane, warp);
        if (layout.inTile(coord)) result[coord].emplace_back(reg, lane, warp);
      }
  return result;
}

int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Every element present, each exactly as often as the replicated digits say.
void expectBijective(const Layout& layout) {
  ASSERT_EQ(layout.check(), "") << layout.to_string();
  auto where = places(layout);
  EXPECT_EQ(static_cast<int64_t>(where.size()), elements(layout.shape())) << layout.to_string();
  size_t copies = static_cast<size_t>(layout.regReplicas()) * layout.laneReplicas() * layout.warpReplicas();
  for (const auto& [coord, list] : where) ASSERT_EQ(list.size(), copies) << layout.to_string();
}

std::vector<Shape> shapes() {
  return {{1},       {5},        {32},       {80},        {128},      {1000},    {1024},     {8192},     {1, 8192}, {5, 7},
          {7, 5},    {16, 16},   {64, 48},   {64, 80},    {64, 96},   {64, 112}, {128, 176}, {192, 144}, {3, 8192}, {17, 33},
          {2, 3, 5}, {4, 8, 64}, {1, 64, 1}, {12, 1, 40}, {128, 24}};
}

TEST(Blocked, CoversEveryElementOnce) {
  for (const Shape& shape : shapes())
    for (int vector : {1, 2, 4, 8, 16})
      for (int warps : {1, 2, 3, 4, 6, 8, 16}) {
        std::vector<int> order(shape.size());
        std::iota(order.rbegin(), order.rend(), 0);
        Layout rowMajor = blocked(shape, vector, order, warps);
        EXPECT_EQ(rowMajor.numLanes(), 32);
        EXPECT_EQ(rowMajor.numWarps(), warps);
        expectBijective(rowMajor);
        std::iota(order.begin(), order.end(), 0);
        expectBijective(blocked(shape, vector, order, warps));
      }
}

TEST(Blocked, PowersOfTwoSplitWithoutPadding) {
  Layout layout = blocked({64, 64}, 8, {1, 0}, 4);
  EXPECT_FALSE(layout.isPadded());
  EXPECT_EQ(layout.numRegs(), 32);
  EXPECT_EQ(layout.contiguousRegs(1), 8);
  EXPECT_EQ(layout.to_string(), "64x64 regs [1:8*1, 0:4*16] lanes [1:8*8, 0:4*1] warps [0:4*4]");
}

TEST(Blocked, OneRowTakesAllWarps) {
  Layout layout = blocked({1, 8192}, 8, {1, 0}, 8);
  EXPECT_EQ(layout.warpReplicas(), 1);
  EXPECT_EQ(layout.numRegs(), 32);
  Layout rows = blocked({8, 4096}, 8, {1, 0}, 8);  // a row per warp: reductions along it never leave the warp
  EXPECT_EQ(rows.warps(), (std::vector<Digit>{{0, 8, 1}}));
}

TEST(Blocked, OddWidthsSplitExactly) {
  for (int64_t width : {48, 80, 96, 112}) {
    for (int warps : {4, 8}) {
      Layout layout = blocked({64, width}, 4, {1, 0}, warps);
      EXPECT_FALSE(layout.isPadded()) << layout.to_string();
      EXPECT_EQ(int64_t{layout.numRegs()} * layout.numThreads(), 64 * width) << layout.to_string();
      EXPECT_EQ(layout.contiguousRegs(1), 4);
    }
  }
}

TEST(Blocked, SmallTilesPadOrReplicate) {
  Layout layout = blocked({5, 7}, 4, {1, 0}, 4);
  EXPECT_EQ(layout.numRegs(), 1);
  EXPECT_EQ(layout.cover(0), 8);
  EXPECT_EQ(layout.cover(1), 8);
  EXPECT_EQ(layout.warpReplicas(), 2);
  Layout one = blocked({1}, 4, {0}, 4);
  EXPECT_EQ(one.numRegs(), 1);
  EXPECT_EQ(one.laneReplicas() * one.warpReplicas(), 128);
}

TEST(Transpose, MovesCoordinates) {
  for (const Shape& shape : shapes()) {
    std::vector<int> order(shape.size()), permutation(shape.size());
    std::iota(order.rbegin(), order.rend(), 0);
    std::iota(permutation.begin(), permutation.end(), 1);
    permutation.back() = 0;  // a rotation: not its own inverse from rank 3 on
    Layout layout = blocked(shape, 4, order, 4), result = layout.transposed(permutation);
    expectBijective(result);
    for (const auto& [coord, list] : places(layout)) {
      for (auto [reg, lane, warp] : list) {
        Coord moved = result.coordOf(reg, lane, warp);
        for (size_t i = 0; i < shape.size(); ++i) ASSERT_EQ(moved[i], coord[permutation[i]]);
      }
    }
  }
}

TEST(Slice, KeepsTheOtherCoordinates) {
  for (const Shape& shape : shapes()) {
    std::vector<int> order(shape.size());
    std::iota(order.rbegin(), order.rend(), 0);
    Layout layout = blocked(shape, 4, order, 4);
    for (int dim = 0; dim < layout.rank(); ++dim) {
      Layout result = layout.sliced(dim);
      expectBijective(result);
      EXPECT_EQ(result.numThreads(), layout.numThreads());
      std::map<Coord, int> heldReg;
      for (int lane = 0; lane < 32; ++lane) {
        Coord thread = layout.threadCoord(lane, 3), sliced = result.threadCoord(lane, 3);
        for (int d = 0; d < layout.rank(); ++d) ASSERT_EQ(sliced[d], d == dim ? 0 : thread[d]);
      }
    }
  }
}

// A reshape must leave every element in its register: same place, row-major index unchanged.
void expectReshapes(const Layout& layout, const Shape& shape) {
  auto result = layout.reshaped(shape);
  ASSERT_TRUE(result) << layout.to_string();
  expectBijective(*result);
  auto flat = [](const Coord& coord, const Shape& dims) {
    int64_t index = 0;
    for (size_t i = 0; i < dims.size(); ++i) index = index * dims[i] + coord[i];
    return index;
  };
  for (const auto& [coord, list] : places(layout)) {
    for (auto [reg, lane, warp] : list) {
      Coord moved = result->coordOf(reg, lane, warp);
      ASSERT_TRUE(result->inTile(moved)) << layout.to_string() << " -> " << result->to_string();
      ASSERT_EQ(flat(moved, shape), flat(coord, layout.shape())) << layout.to_string() << " -> " << result->to_string();
    }
  }
}

TEST(Groups, BeginWhereTheirElementsDo) {
  const Layout layouts[] = {blocked({64, 32}, 4, {1, 0}, 4, 32), blocked({128, 32}, 4, {1, 0}, 4, 32),
                            blocked({48, 96}, 8, {1, 0}, 4, 32),
                            Layout({128, 32}, {{1, 4, 1}, {0, 8, 1}}, {{1, 8, 4}, {0, 4, 8}}, {{0, 4, 32}})};
  for (const Layout& layout : layouts)
    for (int dim : {0, 1})
      for (int step : {2, 4, 8, 16, 32}) {
        const auto groups = layout.groupsAlong(dim, step);
        ASSERT_TRUE(groups) << layout.to_string() << " by " << step;
        for (int reg = 0; reg < layout.numRegs(); ++reg)
          for (int lane = 0; lane < 32; ++lane)
            for (int warp = 0; warp < 4; ++warp) {
              Coord coord = layout.coordOf(reg, lane, warp);
              coord[dim] -= coord[dim] % step;
              ASSERT_EQ(groups->coordOf(reg, lane, warp), coord) << layout.to_string() << " by " << step;
            }
      }
  EXPECT_EQ(layouts[0].groupsAlong(0, 16)->maxThreadCoord(0), 0);
  // Three of a row in registers, the next three in another lane: no digit says which pair an element is of.
  EXPECT_FALSE(Layout({96}, {{0, 3, 1}}, {{0, 32, 3}}, {}).groupsAlong(0, 2));
}

TEST(Reshape, KeepsPlaces) {
  expectReshapes(blocked({1024}, 4, {0}, 4), {8, 128});
  expectReshapes(blocked({8, 128}, 4, {1, 0}, 4), {1024});
  expectReshapes(blocked({128}, 2, {0}, 4), {1, 128, 1});
  expectReshapes(blocked({80}, 4, {0}, 4), {1, 80});            // padded, unit dims only
  expectReshapes(blocked({5, 7}, 1, {1, 0}, 4), {5, 1, 7});     // padded on both dims
  expectReshapes(blocked({5, 8}, 1, {1, 0}, 4), {40});          // padding beyond the last element
  expectReshapes(blocked({64, 96}, 4, {1, 0}, 4), {64, 3, 32});
  expectReshapes(blocked({64, 96}, 4, {1, 0}, 4), {64, 24, 4});
  expectReshapes(blocked({4, 8, 64}, 4, {2, 1, 0}, 8), {32, 64});
  expectReshapes(mmaAccumulator({64, 128}, 4, 1), {64, 2, 64});
  expectReshapes(mmaAccumulator({64, 128}, 4, 1), {4, 16, 128});
}

TEST(Reshape, RefusesWhatWouldMove) {
  EXPECT_FALSE(blocked({5, 7}, 1, {1, 0}, 4).reshaped({35}));   // padding would land inside
  EXPECT_FALSE(blocked({64, 96}, 4, {1, 0}, 4).reshaped({64, 2, 48}));
  EXPECT_FALSE(blocked({64}, 1, {0}, 1).reshaped({3, 20}));     // not the same count
}

TEST(Conversion, Kinds) {
  Layout a = blocked({64, 64}, 8, {1, 0}, 4);
  EXPECT_EQ(conversion(a, a), Conversion::identity);
  EXPECT_EQ(conversion(a, blocked({64, 64}, 8, {0, 1}, 4)), Conversion::shared);
  // The same digits in another register order only rename registers.
  std::vector<Digit> regs(a.regs().rbegin(), a.regs().rend());
  Layout renamed({64, 64}, regs, a.lanes(), a.warps());
  ASSERT_EQ(conversion(a, renamed), Conversion::registers);
  std::vector<int> map = registerMap(a, renamed);
  for (int reg = 0; reg < renamed.numRegs(); ++reg) EXPECT_EQ(renamed.regCoord(reg), a.regCoord(map[reg]));
}

TEST(Conversion, WarpLocal) {
  Layout rows = blocked({4, 256}, 8, {1, 0}, 4), strided = blocked({4, 256}, 1, {1, 0}, 4);
  EXPECT_EQ(conversion(rows, strided), Conversion::shared);
  EXPECT_TRUE(isWarpLocal(rows, strided));
  EXPECT_FALSE(isWarpLocal(blocked({64, 64}, 8, {1, 0}, 4), blocked({64, 64}, 8, {0, 1}, 4)));
}

// What a warp has under both layouts stands at the same places of its own tile.
void expectWithinWarps(const Layout& from, const Layout& to, const Shape& own) {
  auto within = withinWarps(from, to);
  ASSERT_TRUE(within) << from.to_string() << " to " << to.to_string();
  EXPECT_EQ(within->first.shape(), own);
  EXPECT_EQ(within->second.shape(), own);
  for (int warp = 0; warp < from.numWarps(); ++warp) {
    std::map<Coord, Coord> places;
    for (int lane = 0; lane < 32; ++lane)
      for (int reg = 0; reg < from.numRegs(); ++reg)
        places[from.coordOf(reg, lane, warp)] = within->first.coordOf(reg, lane, warp);
    for (int lane = 0; lane < 32; ++lane)
      for (int reg = 0; reg < to.numRegs(); ++reg) {
        const auto place = places.find(to.coordOf(reg, lane, warp));
        ASSERT_NE(place, places.end());
        ASSERT_EQ(place->second, within->second.coordOf(reg, lane, warp)) << from.to_string();
      }
  }
}

TEST(Conversion, WithinWarps) {
  expectWithinWarps(blocked({4, 256}, 8, {1, 0}, 4), blocked({4, 256}, 1, {1, 0}, 4), {1, 256});
  // Rows of a warp lie apart; warps side by side hold the same.
  expectWithinWarps(wgmmaAccumulator({128, 64}, 1, 1), *runsOfWarps(wgmmaAccumulator({128, 64}, 1, 1), 1, 4, 32), {32, 64});
  expectWithinWarps(mmaOperandA({32, 64}, 2, 2, 16), mmaOperandA({32, 64}, 2, 2, 8), {16, 64});
  const Layout matrix = blocked({16, 32}, 8, {1, 0}, 1);
  expectWithinWarps(inBatches(matrix, 8, 4), inBatches(blocked({16, 32}, 1, {0, 1}, 1), 8, 4), {2, 16, 32});
  // Warps must meet; as many warps in another order.
  EXPECT_FALSE(withinWarps(mmaAccumulator({32, 64}, 2, 2), mmaOperandA({32, 64}, 2, 2, 16)));
  EXPECT_FALSE(withinWarps(blocked({64, 64}, 8, {1, 0}, 4), blocked({64, 64}, 8, {0, 1}, 4)));
  EXPECT_FALSE(withinWarps(inBatches(matrix, 8, 4), inBatches(matrix, 8, 2)));
}

// Lanes and registers hold their own coordinates; swaps and the map must give what the other layout says.
void expectTrades(const Layout& from, const Layout& to, size_t count) {
  auto plan = laneSwaps(from, to);
  ASSERT_TRUE(plan) << from.to_string() << " to " << to.to_string();
  EXPECT_EQ(plan->swaps.size(), count) << from.to_string() << " to " << to.to_string();
  for (int warp = 0; warp < from.numWarps(); ++warp) {
    std::vector<std::vector<Coord>> held(32);
    for (int lane = 0; lane < 32; ++lane)
      for (int reg = 0; reg < from.numRegs(); ++reg) held[lane].push_back(from.coordOf(reg, lane, warp));
    for (const LaneSwap& swap : plan->swaps)
      for (int lane = 0; lane < 32; ++lane)
        if (!(lane & swap.laneBit))
          for (auto [low, high] : swap.pairs) std::swap(held[lane][high], held[lane | swap.laneBit][low]);
    for (int lane = 0; lane < 32; ++lane)
      for (int reg = 0; reg < to.numRegs(); ++reg)
        ASSERT_EQ(held[lane][plan->map[reg]], to.coordOf(reg, lane, warp)) << from.to_string();
  }
}

TEST(Conversion, LanesTradeRegisters) {
  const Layout rows({4, 256}, {{1, 8, 32}}, {{1, 32, 1}}, {{0, 4, 1}});
  expectTrades(rows, rows, 0);
  expectTrades(rows, Layout({4, 256}, {{1, 4, 64}, {1, 2, 16}}, {{1, 16, 1}, {1, 2, 32}}, {{0, 4, 1}}), 1);
  expectTrades(rows, Layout({4, 256}, {{1, 2, 1}, {1, 2, 16}, {1, 2, 64}}, {{1, 2, 128}, {1, 8, 2}, {1, 2, 32}}, {{0, 4, 1}}), 2);
  // Two lane bits change places; warps change; a radix of 3; more elements than the tile has.
  EXPECT_FALSE(laneSwaps(rows, Layout({4, 256}, {{1, 8, 32}}, {{1, 2, 2}, {1, 2, 1}, {1, 8, 4}}, {{0, 4, 1}})));
  EXPECT_FALSE(laneSwaps(rows, Layout({4, 256}, {{1, 4, 64}, {0, 2, 1}}, {{1, 32, 1}}, {{1, 2, 32}, {0, 2, 2}})));
  EXPECT_FALSE(laneSwaps(blocked({4, 96}, 1, {1, 0}, 4), blocked({4, 96}, 4, {1, 0}, 4)));
  EXPECT_FALSE(laneSwaps(Layout({4, 250}, {{1, 8, 32}}, {{1, 32, 1}}, {{0, 4, 1}}), Layout({4, 250}, {{1, 8, 32}}, {{1, 32, 1}}, {{0, 4, 1}})));
}

TEST(Conversion, LayoutsThatCanBeCut) {
  const Layout halves({4, 128, 2}, {{1, 8, 1}}, {{1, 16, 8}, {2, 2, 1}}, {{0, 4, 1}});
  EXPECT_FALSE(boxLayout(halves, {0, 0, 1}, {4, 128, 1}));
  auto traded = cuttableLayout(halves, {4, 128, 1}, 2);
  ASSERT_TRUE(traded);
  expectBijective(*traded);
  expectTrades(halves, *traded, 1);
  EXPECT_TRUE(boxLayout(*traded, {0, 0, 1}, {4, 128, 1}));
  EXPECT_FALSE(cuttableLayout(*traded, {4, 128, 1}, 2)) << "nothing to trade";
  EXPECT_FALSE(cuttableLayout(halves, {4, 128, 1}, 0));
  EXPECT_FALSE(cuttableLayout(halves, {1, 128, 2}, 2)) << "rows are divided among warps";
}

TEST(Conversion, RunsOfAThreadLieTogether) {
  // Rows 4 apart in the registers of a thread become runs of 4 for tile and column alike, runs 16 apart.
  const Layout tile({64, 64}, {{1, 4, 1}, {0, 16, 4}}, {{1, 16, 4}, {0, 2, 1}}, {{0, 2, 2}});
  const Layout column = tile.sliced(1);
  const auto runs = withRunsAlong(tile, column, 0, 4);
  ASSERT_TRUE(runs);
  for (const Layout& layout : {runs->first, runs->second}) {
    EXPECT_EQ(layout.check(), "");
    EXPECT_EQ(layout.runLength(0), 4);
  }
  expectBijective(runs->first);
  // Elements that had the same number still have.
  std::map<int64_t, int64_t> renumbered;
  for (int warp = 0; warp < 2; ++warp)
    for (int lane = 0; lane < 32; ++lane) {
      for (int reg = 0; reg < tile.numRegs(); ++reg)
        renumbered[tile.coordOf(reg, lane, warp)[0]] = runs->first.coordOf(reg, lane, warp)[0];
      for (int reg = 0; reg < column.numRegs(); ++reg)
        EXPECT_EQ(runs->second.coordOf(reg, lane, warp)[0], renumbered.at(column.coordOf(reg, lane, warp)[0]));
    }
  EXPECT_FALSE(withRunsAlong(runs->first, runs->second, 0, 4)) << "they lie together";
  EXPECT_FALSE(withRunsAlong(tile, blocked({64, 1}, 1, {0, 1}, 2), 0, 4)) << "threads hold other rows";
  EXPECT_FALSE(withRunsAlong(tile, Layout({63, 1}, column.regs(), column.lanes(), column.warps()), 0, 4)) << "padding";
  EXPECT_EQ(minorDim({1, 64, 1}), 1);
  EXPECT_EQ(minorDim({1, 1}), 0);
}

TEST(Conversion, RunsOfWarps) {
  const Layout accumulator = wgmmaAccumulator({128, 64}, 2, 1);
  const auto lines = runsOfWarps(accumulator, 1, 4, 32);
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->check(), "");
  EXPECT_TRUE(isWarpLocal(accumulator, *lines));
  EXPECT_EQ(lines->numRegs(), accumulator.numRegs());
  EXPECT_EQ(lines->runLength(1), 4);
  for (int lane = 1; lane < 8; ++lane) EXPECT_EQ(lines->threadCoord(lane, 0), (Coord{0, 4 * lane}));
  EXPECT_FALSE(runsOfWarps(mmaAccumulator({32, 64}, 2, 4), 1, 4, 32));  // the columns of a warp lie apart
  EXPECT_FALSE(runsOfWarps(accumulator.sliced(0), 1, 4, 32));            // lanes hold the same
}

TEST(Conversion, PaddingNeedsNoSource) {
  Layout padded({8, 7}, {{1, 8, 1}}, {{0, 8, 1}}, {}), exact({8, 7}, {{1, 7, 1}}, {{0, 8, 1}}, {});
  ASSERT_EQ(conversion(exact, padded), Conversion::registers);
  EXPECT_EQ(registerMap(exact, padded).back(), -1);
  EXPECT_EQ(conversion(padded, exact), Conversion::registers);
}

TEST(Mma, AccumulatorOfOneDotIsOperandAOfTheNext) {
  for (int bits : {16}) {
    for (int64_t n : {16, 64, 80, 96, 176}) {
      Layout acc = mmaAccumulator({64, n}, 4, 1), a = mmaOperandA({64, n}, 4, 1, bits);
      EXPECT_NE(conversion(acc, a), Conversion::shared) << n;
    }
  }
  EXPECT_EQ(conversion(mmaAccumulator({64, 64}, 2, 2), mmaOperandA({64, 64}, 2, 2, 16)), Conversion::shared);
}

// The fragment tables of the PTX ISA, "Matrix Fragments for mma": groupID = lane >> 2, tid = lane % 4.
TEST(Mma, M16n8k16) {
  Layout a = mmaOperandA({16, 16}, 1, 1, 16), b = mmaOperandB({16, 8}, 1, 1, 16), c = mmaAccumulator({16, 8}, 1, 1);
  ASSERT_EQ(a.numRegs(), 8);
  ASSERT_EQ(b.numRegs(), 4);
  ASSERT_EQ(c.numRegs(), 4);
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, tid = lane % 4;
    for (int i = 0; i < 8; ++i) {
      int64_t row = (i < 2 || (i >= 4 && i < 6)) ? group : group + 8, col = tid * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      EXPECT_EQ(a.coordOf(i, lane, 0), (Coord{row, col}));
    }
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(b.coordOf(i, lane, 0), (Coord{tid * 2 + (i & 1) + (i >= 2 ? 8 : 0), group}));
      EXPECT_EQ(c.coordOf(i, lane, 0), (Coord{i < 2 ? group : group + 8, tid * 2 + (i & 1)}));
    }
  }
}

TEST(Mma, M16n8k8Tf32) {
  Layout a = mmaOperandA({16, 8}, 1, 1, 32), b = mmaOperandB({8, 8}, 1, 1, 32);
  ASSERT_EQ(a.numRegs(), 4);
  ASSERT_EQ(b.numRegs(), 2);
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, tid = lane % 4;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(a.coordOf(i, lane, 0), (Coord{i % 2 ? group + 8 : group, tid + (i >= 2 ? 4 : 0)}));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(b.coordOf(i, lane, 0), (Coord{tid + 4 * i, group}));
  }
}

TEST(Mma, M16n8k32Int8) {
  Layout a = mmaOperandA({16, 32}, 1, 1, 8), b = mmaOperandB({32, 8}, 1, 1, 8);
  ASSERT_EQ(a.numRegs(), 16);
  ASSERT_EQ(b.numRegs(), 8);
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, tid = lane % 4;
    for (int i = 0; i < 16; ++i) {
      bool upper = i < 4 || (i >= 8 && i < 12);
      EXPECT_EQ(a.coordOf(i, lane, 0), (Coord{upper ? group : group + 8, tid * 4 + (i & 3) + (i >= 8 ? 16 : 0)}));
    }
    for (int i = 0; i < 8; ++i) EXPECT_EQ(b.coordOf(i, lane, 0), (Coord{tid * 4 + (i & 3) + (i >= 4 ? 16 : 0), group}));
  }
}

TEST(Mma, TeamsAndRepetitionsCoverOddTiles) {
  for (auto [m, n] : {std::pair<int, int>{4, 1}, {2, 2}, {1, 4}, {3, 1}, {4, 2}}) {
    for (const Shape& shape : {Shape{128, 128}, {64, 80}, {192, 144}, {128, 176}, {16, 8}, {5, 7}, {100, 50}}) {
      expectBijective(mmaAccumulator(shape, m, n));
      for (int bits : {8, 16, 32}) {
        expectBijective(mmaOperandA(shape, m, n, bits));
        expectBijective(mmaOperandB(shape, m, n, bits));
      }
    }
  }
}

TEST(Check, NamesTheFault) {
  EXPECT_EQ(Layout({8}, {}, {{0, 4, 1}}, {}).check(), "digits of dim 0 cover 4 of 8 elements");
  EXPECT_EQ(Layout({8}, {{0, 2, 8}}, {{0, 4, 1}}, {}).check(), "digits of dim 0 must be dense: expected stride 4, found 8");
  EXPECT_EQ(Layout({8}, {{1, 2, 1}}, {{0, 8, 1}}, {}).check(), "digit moves along dim 1 of a tile of rank 1");
}

}  // namespace
}  // namespace tile::layout
