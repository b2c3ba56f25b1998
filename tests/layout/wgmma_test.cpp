// Layouts, descriptors and stores around wgmma, checked against the PTX manual's own terms: which element each thread of a
// warpgroup holds, which byte the hardware reads for a descriptor, which bytes stmatrix writes.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "compiler/layout/descriptor.h"
#include "compiler/layout/matrix_store.h"
#include "compiler/layout/relations.h"

namespace tile::layout {
namespace {

const int64_t kRows[] = {48, 64, 128, 192, 256}, kCols[] = {8, 24, 64, 72, 80, 96, 112, 128, 144, 160, 176, 192, 256, 320};

TEST(Wgmma, AccumulatorsAreWhatThePtxManualSays) {
  for (int64_t m : kRows) {
    for (int64_t n : kCols) {
      for (auto [teamsM, teamsN] : {std::pair(1, 1), {2, 1}, {1, 2}, {3, 1}, {2, 2}}) {
        const Layout layout = wgmmaAccumulator({m, n}, teamsM, teamsN);
        ASSERT_EQ(layout.check(), "") << layout.to_string();
        ASSERT_EQ(layout.numWarps(), 4 * teamsM * teamsN);
        const int64_t reps = (m + 64 * teamsM - 1) / (64 * teamsM), part = (n + 8 * teamsN - 1) / (8 * teamsN) * 8;
        ASSERT_EQ(layout.numRegs(), reps * part / 2);
        for (int warp = 0; warp < layout.numWarps(); ++warp) {
          const int team = warp / 4, inTeam = warp % 4;
          for (int lane = 0; lane < 32; ++lane) {
            for (int reg = 0; reg < layout.numRegs(); ++reg) {
              const int64_t rep = reg / (part / 2);
              const int i = static_cast<int>(reg % (part / 2));
              const Coord want{64 * (team % teamsM + teamsM * rep) + 16 * inTeam + lane / 4 + 8 * (i / 2 % 2),
                               part * (team / teamsM) + i / 4 * 8 + lane % 4 * 2 + i % 2};
              ASSERT_EQ(layout.coordOf(reg, lane, warp), want) << layout.to_string();
            }
          }
        }
      }
    }
  }
}

TEST(Wgmma, OneTeamAlongTheColumnsIsTheLayoutOfSingleWarps) {
  for (int64_t m : kRows)
    for (int64_t n : kCols)
      for (int teams : {1, 2, 3}) EXPECT_EQ(wgmmaAccumulator({m, n}, teams, 1), mmaAccumulator({m, n}, 4 * teams, 1));
}

TEST(Wgmma, NarrowedAccumulatorsAreOperands) {
  for (int64_t m : kRows) {
    for (int64_t k : kCols) {
      for (int teams : {1, 2, 3}) {
        const Layout from = wgmmaAccumulator({m, k}, teams, 1), to = wgmmaOperandA({m, k}, teams, 1);
        ASSERT_EQ(to.check(), "");
        ASSERT_NE(conversion(from, to), Conversion::shared) << from.to_string() << " to " << to.to_string();
        ASSERT_EQ(conversion(from, to) == Conversion::identity, k % 16 == 0);
        // The manual: register 2j, 2j + 1 of step s hold row + 8 * (j % 2), columns 16 s + 8 * (j / 2) + 2 * (lane % 4).
        for (int reg = 0; reg < to.numRegs(); ++reg) {
          const int64_t perRep = (k + 15) / 16 * 8, i = reg % perRep % 8, step = reg % perRep / 8, rep = reg / perRep;
          const Coord want{64 * teams * rep + 8 * (i / 2 % 2), 16 * step + 8 * (i / 4) + i % 2};
          ASSERT_EQ(to.regCoord(reg), want) << to.to_string();
        }
      }
    }
  }
}

// A first operand read from rows along k: instruction row r is some other row of its 64, the same in accumulator and
// operand; a thread's two rows are neighbours, half warps read without bank conflicts, and what one instruction of a warp
// would store from registers fills sectors of 32 bytes along m.
TEST(Wgmma, SpreadRows) {
  for (auto [teamsM, teamsN] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}}) {
    const int64_t m = 128, n = 96, k = 32;
    const Layout acc = wgmmaSpreadAccumulator({m, n}, teamsM, teamsN, 32),
                 a = wgmmaSpreadOperandA({m, k}, teamsM, teamsN);
    ASSERT_EQ(acc.check(), "") << acc.to_string();
    ASSERT_EQ(a.check(), "") << a.to_string();
    const Layout plain = wgmmaAccumulator({m, n}, teamsM, teamsN);
    ASSERT_EQ(acc.numRegs(), plain.numRegs());
    std::map<int64_t, int64_t> rowOf;  // instruction's row -> row
    for (int warp = 0; warp < acc.numWarps(); ++warp)
      for (int lane = 0; lane < 32; ++lane)
        for (int reg = 0; reg < acc.numRegs(); ++reg) {
          const Coord at = acc.coordOf(reg, lane, warp), in = plain.coordOf(reg, lane, warp);
          ASSERT_EQ(at[1], in[1]);
          ASSERT_EQ(at[0] / 64, in[0] / 64);
          ASSERT_EQ(rowOf.try_emplace(in[0], at[0]).first->second, at[0]);
        }
    ASSERT_EQ(rowOf.size(), size_t{128});
    const int reps = static_cast<int>(m / 64 / teamsM), steps = k / 8;
    for (int warp = 0; warp < a.numWarps(); ++warp)
      for (int lane = 0; lane < 32; ++lane)
        for (int rep = 0; rep < reps; ++rep)
          for (int step = 0; step < steps; ++step)
            for (int i = 0; i < 4; ++i) {  // the manual: row lane / 4 + 8 * (i % 2), column lane % 4 + 4 * (i / 2)
              const int64_t row = 64 * (warp / 4 % teamsM + teamsM * rep) + 16 * (warp % 4) + lane / 4 + 8 * (i % 2);
              const Coord want{rowOf.at(row), 8 * step + lane % 4 + 4 * (i / 2)};
              ASSERT_EQ(a.coordOf(i + 4 * (step + steps * rep), lane, warp), want) << a.to_string();
            }
    const SharedTile tile = swizzledTile(k, m, 4);
    for (int reg = 0; reg < a.numRegs(); reg += 2) {
      int64_t addresses[32];
      for (int lane = 0; lane < 32; ++lane) {
        const Coord at = a.coordOf(reg, lane, 0), next = a.coordOf(reg + 1, lane, 0);
        ASSERT_EQ(next[0], at[0] + 1);
        addresses[lane] = tile.address(at[1], at[0]);
      }
      EXPECT_EQ(bankPasses(addresses, 32, 8), 1) << reg;
    }
    for (int reg = 0; reg < acc.numRegs(); reg += 2) {
      std::map<std::pair<int64_t, int64_t>, int> sectors;
      for (int lane = 0; lane < 32; ++lane)
        for (int row : {reg, reg + 2})
          if (reg % 4 == 0) ++sectors[{acc.coordOf(row, lane, 0)[1], acc.coordOf(row, lane, 0)[0] / 8}];
      for (auto& [sector, elements] : sectors) EXPECT_EQ(elements, 8);
    }
  }
}

// ---- descriptors

/// Byte the hardware reads, from the descriptor's fields alone. `outer`: row of A or column of B inside the instruction.
int64_t hardwareAddress(uint64_t descriptor, bool kMinor, int elementBytes, int64_t outer, int64_t k) {
  const int64_t start = static_cast<int64_t>(descriptor & 0x3FFF) * 16;
  const int64_t leading = static_cast<int64_t>(descriptor >> 16 & 0x3FFF) * 16;
  const int64_t stride = static_cast<int64_t>(descriptor >> 32 & 0x3FFF) * 16;
  const int mode = static_cast<int>(descriptor >> 62);
  const int64_t swizzle = mode == 1 ? 128 : mode == 2 ? 64 : 32;
  int64_t linear = start;
  if (kMinor) {
    linear += outer / 8 * stride + outer % 8 * swizzle + k * elementBytes;
  } else {
    const int64_t byte = outer * elementBytes;
    linear += byte / swizzle * leading + byte % swizzle + k / 8 * stride + k % 8 * swizzle;
  }
  // Bits 4.. of the address are XORed with bits 7..: three, two or one of them.
  const int64_t bits = swizzle / 16 - 1;
  return linear ^ ((linear >> 7 & bits) << 4);
}

TEST(Wgmma, DescriptorsReadTheTilesElements) {
  int checked = 0;
  for (bool kMinor : {true, false}) {
    for (int bytes : {1, 2, 4}) {
      for (int64_t outers : {8, 16, 24, 48, 64, 80, 96, 112, 128, 160, 176, 192, 224, 256, 320, 512}) {
        for (int64_t ks : {32, 64, 96, 128, 160, 256, 512}) {  // bytes
          const int64_t kElements = ks / bytes;
          const SharedTile tile = kMinor ? swizzledTile(outers, kElements, bytes) : swizzledTile(kElements, outers, bytes);
          auto operand = operandDescriptor(tile, kMinor);
          if (!operand) {
            EXPECT_TRUE(tile.swizzle == 0 || (!kMinor && bytes != 2) || tile.bytes() > 16 << 14);
            continue;
          }
          const int64_t base = 3 * 1024;  // any aligned place
          int64_t done = 0;
          for (int columns : instructionColumns(outers, operand->outerUnit())) {
            ASSERT_LE(columns, 256);
            ASSERT_EQ(columns % 8, 0);
            for (int64_t step = 0; step < ks / 32; ++step) {
              const int64_t start = base + operand->outerBytes(done) + operand->stepBytes(step);
              ASSERT_EQ(start % 16, 0);
              const uint64_t descriptor = operand->bits | static_cast<uint64_t>((start & 0x3FFFF) >> 4);
              for (int64_t o = 0; o < columns; ++o) {
                for (int64_t k = 0; k < 32 / bytes; ++k) {
                  const int64_t at = step * 32 / bytes + k;
                  const int64_t want = kMinor ? tile.address(done + o, at) : tile.address(at, done + o);
                  ASSERT_EQ(hardwareAddress(descriptor, kMinor, bytes, o, k), base + want)
                      << (kMinor ? "k" : "outer") << " minor, " << bytes << " bytes, " << outers << " x " << kElements
                      << ", element " << done + o << ", " << at;
                  ++checked;
                }
              }
            }
            done += columns;
          }
          ASSERT_EQ(done, outers);
        }
      }
    }
  }
  EXPECT_GT(checked, 1000000);
}

// Warpgroups side by side share a panel of columns: the second one's instructions start inside it (right on an H200).
TEST(Wgmma, DescriptorsStartInsideAPanel) {
  for (int64_t outers : {32, 64}) {
    const SharedTile tile = swizzledTile(64, outers, 2);
    const auto operand = operandDescriptor(tile, /*kMinor=*/false);
    ASSERT_TRUE(operand);
    const int64_t base = 5 * 1024, part = outers / 2;
    for (int64_t step = 0; step < 4; ++step) {
      const int64_t start = base + operand->outerBytes(part) + operand->stepBytes(step);
      ASSERT_EQ(start % 16, 0);
      const uint64_t descriptor = operand->bits | static_cast<uint64_t>((start & 0x3FFFF) >> 4);
      for (int64_t o = 0; o < part; ++o)
        for (int64_t k = 0; k < 16; ++k)
          ASSERT_EQ(hardwareAddress(descriptor, false, 2, o, k), base + tile.address(step * 16 + k, part + o))
              << outers << " columns, element " << o << ", " << k;
    }
  }
}

TEST(Wgmma, DescriptorsOfTheMeasuredKernels) {
  // K-major 128-byte swizzle: 8 rows are 1024 bytes; 176 x 128 V, columns minor: panels are 176 * 128 bytes apart.
  EXPECT_EQ(operandDescriptor(swizzledTile(128, 64, 2), true)->bits, 1ull << 62 | 64ull << 32 | 1ull << 16);
  EXPECT_EQ(operandDescriptor(swizzledTile(176, 128, 2), false)->bits, 1ull << 62 | 64ull << 32 | 176ull * 8 << 16);
  EXPECT_EQ(operandDescriptor(swizzledTile(176, 128, 2), false)->stepBytes(1), 16 * 128);
  EXPECT_EQ(operandDescriptor(swizzledTile(176, 128, 2), true)->stepBytes(5), 176 * 128 + 32);
}

TEST(Wgmma, WhatCannotBeRead) {
  EXPECT_FALSE(operandDescriptor(swizzledTile(64, 8, 2), true));     // 16-byte rows are not swizzled
  EXPECT_FALSE(operandDescriptor(swizzledTile(64, 64, 1), false));   // bytes along n
  EXPECT_FALSE(operandDescriptor(swizzledTile(64, 64, 4), false));
  EXPECT_FALSE(operandDescriptor(swizzledTile(60, 64, 2), true));    // half an atom of 8 rows
}

// ---- stmatrix

using Memory = std::map<int64_t, Coord>;

/// Writes the tile's labels as the warps would.
Memory store(const Layout& layout, const SharedTile& tile, const MatrixStore& plan) {
  Memory memory;
  for (int warp = 0; warp < layout.numWarps(); ++warp) {
    for (const MatrixStore::Instruction& instruction : plan.instructions) {
      const int matrices = static_cast<int>(instruction.registers.size());
      EXPECT_TRUE(matrices == 2 || matrices == 4);
      int64_t addresses[32];
      for (int lane = 0; lane < 8 * matrices; ++lane) {
        const int64_t byte = plan.byte.of(lane, warp) + instruction.byte;
        EXPECT_EQ(byte % 16, 0);
        addresses[lane] = tile.address(plan.row.of(lane, warp) + instruction.row, byte / 2);
        EXPECT_EQ(addresses[lane] % 16, 0);
      }
      for (int matrix = 0; matrix < matrices; ++matrix) {
        EXPECT_EQ(bankPasses(addresses + 8 * matrix, 8, 16), 1) << layout.to_string();
        for (int lane = 0; lane < 32; ++lane) {
          for (int i = 0; i < 2; ++i) {
            const int row = plan.transposed ? lane % 4 * 2 + i : lane / 4, col = plan.transposed ? lane / 4 : lane % 4 * 2 + i;
            memory[addresses[8 * matrix + row] + 2 * col] = layout.coordOf(instruction.registers[matrix] + i, lane, warp);
          }
        }
      }
    }
  }
  return memory;
}

TEST(MatrixStore, WritesEveryElementOnce) {
  for (int minor : {0, 1}) {
    for (int64_t m : {64, 128, 192}) {
      for (int64_t n : {16, 24, 64, 80, 128, 176, 256}) {
        for (auto [teamsM, teamsN] : {std::pair(1, 1), {2, 1}, {1, 2}}) {
          for (bool singles : {false, true}) {
            for (bool turned : {false, true}) {
              Layout layout = singles ? mmaAccumulator({m, n}, 4 * teamsM, teamsN) : wgmmaAccumulator({m, n}, teamsM, teamsN);
              if (layout.isPadded()) continue;
              if (turned) layout = layout.transposed({1, 0});
              const Shape& shape = layout.shape();
              const SharedTile tile = swizzledTile(shape[1 - minor], shape[minor], 2);
              auto plan = planMatrixStore(layout, tile, minor);
              ASSERT_TRUE(plan) << layout.to_string();
              EXPECT_EQ(plan->transposed, (minor == 0) != turned);
              Memory memory = store(layout, tile, *plan);
              ASSERT_EQ(memory.size(), static_cast<size_t>(m * n));
              for (const auto& [address, coord] : memory) ASSERT_EQ(tile.address(coord[1 - minor], coord[minor]), address);
            }
          }
        }
      }
    }
  }
}

TEST(MatrixStore, Parts) {
  const Layout layout = wgmmaAccumulator({128, 192}, 2, 1);
  const SharedTile tile = swizzledTile(128, 64, 2);
  for (int64_t first : {0, 64, 128}) {
    auto plan = planMatrixStore(layout, tile, 1, first);
    ASSERT_TRUE(plan);
    Memory memory = store(layout, tile, *plan);
    ASSERT_EQ(memory.size(), 128u * 64u);
    for (const auto& [address, coord] : memory) ASSERT_EQ(tile.address(coord[0], coord[1] - first), address);
  }
}

TEST(MatrixStore, OtherLayoutsAreRefused) {
  const SharedTile tile = swizzledTile(64, 64, 2);
  EXPECT_FALSE(planMatrixStore(blocked({64, 64}, 8, {1, 0}, 4), tile, 1));
  EXPECT_FALSE(planMatrixStore(wgmmaAccumulator({48, 64}, 1, 1), tile, 1));        // padded rows
  EXPECT_FALSE(planMatrixStore(wgmmaOperandA({64, 64}, 1, 2), tile, 1));           // two holders
  EXPECT_FALSE(planMatrixStore(wgmmaAccumulator({64, 64}, 1, 1), swizzledTile(64, 64, 4), 1));
  EXPECT_FALSE(planMatrixStore(wgmmaAccumulator({64, 128}, 1, 2), tile, 1, 64));   // another warpgroup's part
}

// What stmatrix refuses because several warps would write it, ldmatrix reads; each warp its own copy.
TEST(MatrixLoad, SharedOperandsAreReadByAll) {
  const Layout layout = wgmmaOperandA({64, 64}, 1, 2);
  const SharedTile tile = swizzledTile(64, 64, 2);
  auto plan = planMatrixLoad(layout, tile, 1);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->transposed);
  Memory memory = store(layout, tile, *plan);
  ASSERT_EQ(memory.size(), 64u * 64u);
  for (const auto& [address, coord] : memory) ASSERT_EQ(tile.address(coord[0], coord[1]), address);
  EXPECT_FALSE(planMatrixLoad(blocked({64, 64}, 8, {1, 0}, 4), tile, 1));
  EXPECT_FALSE(planMatrixLoad(layout, swizzledTile(64, 64, 4), 1));
}

}  // namespace
}  // namespace tile::layout
