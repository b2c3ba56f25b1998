// Fragment loads, executed: a model of shared memory holds (outer, k) labels, a model of ldmatrix moves them, and every
// register must hold what the PTX manual says mma.sync expects there. Also bank conflicts and the cheap address form.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "compiler/layout/fragments.h"
#include "compiler/layout/layout.h"

namespace tile::layout {
namespace {

struct Case {
  bool isA, kMinor;
  int elementBytes, warpsM, warpsN, reps, kSteps;
};

std::string nameOf(const Case& c) {
  return std::string(c.isA ? "A" : "B") + (c.kMinor ? " kMinor " : " outerMinor ") + std::to_string(c.elementBytes) +
         "B warps " + std::to_string(c.warpsM) + "x" + std::to_string(c.warpsN) + " reps " + std::to_string(c.reps) +
         " steps " + std::to_string(c.kSteps);
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (bool isA : {true, false})
    for (bool kMinor : {true, false})
      for (int bytes : {1, 2, 4})
        for (auto [m, n] : {std::pair(1, 1), {2, 2}, {4, 1}, {2, 4}, {1, 4}, {3, 1}, {1, 3}})
          for (int reps : {1, 2, 3, 4})
            for (int steps : {1, 3, 4}) cases.push_back({isA, kMinor, bytes, m, n, reps, steps});
  return cases;
}

SharedTile tileOf(const Case& c) {
  int64_t outer = c.isA ? 16 * c.warpsM * c.reps : 8 * c.warpsN * c.reps, k = c.kSteps * 32 / c.elementBytes;
  return c.kMinor ? swizzledTile(outer, k, c.elementBytes) : swizzledTile(k, outer, c.elementBytes);
}

FragmentPlan planOf(const Case& c) {
  return c.isA ? planOperandA(tileOf(c), c.kMinor, c.warpsM, c.warpsN, c.reps)
               : planOperandB(tileOf(c), c.kMinor, c.warpsM, c.warpsN, c.reps);
}

/// Which element of which byte stands at every address: (row, byte of the row).
std::map<int64_t, std::pair<int64_t, int64_t>> memoryOf(const SharedTile& tile) {
  std::map<int64_t, std::pair<int64_t, int64_t>> memory;
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t col = 0; col < tile.cols; ++col)
      for (int i = 0; i < tile.elementBytes; ++i)
        memory[tile.address(row, col) + i] = {row, col * tile.elementBytes + i};
  return memory;
}

struct Machine {
  const Case& c;
  FragmentPlan plan = planOf(c);
  std::map<int64_t, std::pair<int64_t, int64_t>> memory = memoryOf(plan.tile);
  int numWarps = c.warpsM * c.warpsN;
  int64_t rowMask = plan.row.mask(numWarps), byteMask = plan.byte.mask(numWarps);

  int64_t fullAddress(int64_t row, int64_t byte) const {
    return plan.tile.address(row, byte / plan.elementBytes) + byte % plan.elementBytes;
  }
  /// Address of one lane's access, in the cheap form where there is one; both must agree.
  int64_t address(int lane, int warp, int64_t row, int64_t byte) const {
    int64_t threadRow = plan.row.of(lane, warp), threadByte = plan.byte.of(lane, warp);
    int64_t full = fullAddress(threadRow + row, threadByte + byte);
    if (auto split = splitOffset(plan.tile, rowMask, byteMask, row, byte))
      EXPECT_EQ((fullAddress(threadRow, threadByte) ^ split->flip) + split->add, full) << nameOf(c);
    return full;
  }

  /// Labels (row, byte) of the 4 bytes of every fragment register of one k step; [lane][register][byte].
  using Fragments = std::vector<std::vector<std::vector<std::pair<int64_t, int64_t>>>>;
  Fragments load(int step, int warp) const {
    Fragments out(32,
                  {static_cast<size_t>(plan.registersPerStep), std::vector<std::pair<int64_t, int64_t>>(4, {-1, -1})});
    for (const FragmentLoad& load : plan.step) {
      int64_t row = load.row + step * plan.rowStep, byte = load.byte + step * plan.byteStep;
      if (plan.access == FragmentPlan::elements) {
        for (int lane = 0; lane < 32; ++lane)
          for (size_t i = 0; i < load.elementRows.size(); ++i)
            for (int j = 0; j < plan.elementBytes; ++j)
              out[lane][load.registers[0]][i * plan.elementBytes + j] =
                  memory.at(address(lane, warp, row + load.elementRows[i], byte + load.elementBytes[i]) + j);
        continue;
      }
      for (int matrix = 0; matrix < load.count; ++matrix) {
        int64_t rows[8];
        for (int i = 0; i < 8; ++i) {
          rows[i] = address(8 * matrix + i, warp, row, byte);
          EXPECT_EQ(rows[i] % 16, 0) << nameOf(c);
        }
        for (int lane = 0; lane < 32; ++lane)
          for (int j = 0; j < 4; ++j)
            out[lane][load.registers[matrix]][j] =
                plan.access == FragmentPlan::ldmatrix
                    ? memory.at(rows[lane / 4] + 4 * (lane % 4) + j)
                    : memory.at(rows[2 * (lane % 4) + j / 2] + 2 * (lane / 4) + j % 2);
      }
    }
    return out;
  }
};

TEST(Fragments, EveryRegisterHoldsWhatThePtxManualSays) {
  for (const Case& c : allCases()) {
    Machine machine{c};
    const int pack = 4 / c.elementBytes;
    for (int warp = 0; warp < machine.numWarps; ++warp) {
      for (int step = 0; step < c.kSteps; ++step) {
        auto fragments = machine.load(step, warp);
        for (int lane = 0; lane < 32; ++lane) {
          int g = lane / 4, t = lane % 4;
          for (int rep = 0; rep < c.reps; ++rep) {
            for (int r = 0; r < (c.isA ? 4 : 2); ++r) {
              int64_t outer = c.isA ? g + 8 * (r % 2) + 16 * (warp % c.warpsM) + 16 * c.warpsM * rep
                                    : g + 8 * (warp / c.warpsM) + 8 * c.warpsN * rep;
              int64_t k = t * pack + 4 * pack * (c.isA ? r / 2 : r) + step * 8 * pack;
              for (int j = 0; j < 4; ++j) {
                int64_t kHere = k + j / c.elementBytes;
                std::pair<int64_t, int64_t> want = c.kMinor
                                                       ? std::pair(outer, kHere * c.elementBytes + j % c.elementBytes)
                                                       : std::pair(kHere, outer * c.elementBytes + j % c.elementBytes);
                ASSERT_EQ(fragments[lane][rep * (c.isA ? 4 : 2) + r][j], want)
                    << nameOf(c) << " lane " << lane << " register " << r;
              }
            }
          }
        }
      }
    }
  }
}

TEST(Fragments, AgreeWithTheRegisterLayoutsOfOperands) {
  for (const Case& c : allCases()) {
    Machine machine{c};
    const int pack = 4 / c.elementBytes, perRep = c.isA ? 4 : 2;
    int64_t outer = c.isA ? 16 * c.warpsM * c.reps : 8 * c.warpsN * c.reps, kExtent = c.kSteps * 8 * pack;
    Layout layout = c.isA ? mmaOperandA({outer, kExtent}, c.warpsM, c.warpsN, 8 * c.elementBytes)
                          : mmaOperandB({kExtent, outer}, c.warpsM, c.warpsN, 8 * c.elementBytes);
    for (int warp = 0; warp < machine.numWarps; ++warp) {
      for (int step = 0; step < c.kSteps; ++step) {
        auto fragments = machine.load(step, warp);
        for (int lane = 0; lane < 32; ++lane) {
          for (int rep = 0; rep < c.reps; ++rep) {
            for (int r = 0; r < perRep; ++r) {
              for (int p = 0; p < pack; ++p) {
                int reg = p + pack * (r + perRep * (step + c.kSteps * rep));
                Coord coord = layout.coordOf(reg, lane, warp);
                int64_t k = coord[c.isA ? 1 : 0], o = coord[c.isA ? 0 : 1];
                auto want = c.kMinor ? std::pair(o, k * c.elementBytes) : std::pair(k, o * c.elementBytes);
                ASSERT_EQ(fragments[lane][rep * perRep + r][p * c.elementBytes], want) << nameOf(c);
              }
            }
          }
        }
      }
    }
  }
}

// The law behind the hot loop: on tiles of at least 128-byte rows, matrices of 8 rows touch every bank once.
TEST(Fragments, LdmatrixIsFreeOfBankConflicts) {
  for (const Case& c : allCases()) {
    Machine machine{c};
    if (machine.plan.access == FragmentPlan::elements) continue;
    if (c.warpsM == 3 || c.warpsN == 3) continue;  // rows of 48 bytes and the like: correct, not tuned
    for (const FragmentLoad& load : machine.plan.step) {
      for (int matrix = 0; matrix < load.count; ++matrix) {
        int64_t addresses[8];
        for (int i = 0; i < 8; ++i) addresses[i] = machine.address(8 * matrix + i, 0, load.row, load.byte);
        EXPECT_EQ(bankPasses(addresses, 8, 16), 1) << nameOf(c);
      }
    }
  }
}

// The hot shapes must not fall back to full address arithmetic.
TEST(Fragments, HotShapesHaveTheCheapAddressForm) {
  for (const Case& c : {Case{true, true, 2, 2, 4, 4, 4},
                        {false, false, 2, 2, 4, 8, 4},
                        {true, true, 2, 4, 1, 2, 8},
                        {false, true, 2, 4, 1, 8, 8},
                        {false, false, 2, 4, 1, 16, 4},
                        {true, false, 2, 2, 2, 4, 4},
                        {false, true, 2, 2, 2, 8, 2},
                        {true, true, 4, 2, 2, 4, 4},
                        {true, true, 1, 2, 2, 4, 2}}) {
    Machine machine{c};
    for (int step = 0; step < c.kSteps; ++step)
      for (const FragmentLoad& load : machine.plan.step)
        EXPECT_TRUE(splitOffset(machine.plan.tile, machine.rowMask, machine.byteMask,
                                load.row + step * machine.plan.rowStep, load.byte + step * machine.plan.byteStep))
            << nameOf(c);
  }
}

}  // namespace
}  // namespace tile::layout
