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
  int64_t outer = c.isA ? 16 * c.warpsM * c.reps : 8 * c.warpsN * c.reps, k = c.kSteps * (c.elementBytes == 8 ? 8 : 32 / c.elementBytes);
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
    if (auto split = splitOffset(plan.tile, rowMask, byteMask, row, byte)) {
      EXPECT_EQ((fullAddress(threadRow, threadByte) ^ split->flip) + split->add, full) << nameOf(c);
    }
    return full;
  }

  /// (element along m or n, element along k) of every 64-bit register of one k step; [lane][register].
  std::vector<std::vector<std::pair<int64_t, int64_t>>> loadDoubles(int step, int warp) const {
    std::vector out(32, std::vector<std::pair<int64_t, int64_t>>(static_cast<size_t>(plan.registersPerStep), {-1, -1}));
    EXPECT_EQ(plan.access, FragmentPlan::doubles);
    for (const FragmentLoad& load : plan.step)
      for (int lane = 0; lane < 32; ++lane) {
        const int64_t from = address(lane, warp, load.row + step * plan.rowStep, load.byte + step * plan.byteStep);
        EXPECT_EQ(from % (8 * load.count), 0) << nameOf(c);
        for (int i = 0; i < load.count; ++i) {
          auto [row, byte] = memory.at(from + 8 * i);
          out[lane][load.registers[i]] = c.kMinor ? std::pair(row, byte / 8) : std::pair(byte / 8, row);
        }
      }
    return out;
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

// 64-bit elements. What the manual says of m16n8k8 (g = lane / 4, t = lane % 4): a[i] is row g + 8 (i % 2), k t + 4 (i / 2);
// b[i] is k t + 4 i, column g; c[i] is row g + 8 (i / 2), column 2 t + i % 2. So whatever tile rows and columns a lane reads
// as instruction row g and column g, the accumulator layout must have there, and both operands the same k's.
struct DoubleCase {
  bool aAlongK, bAlongK;
  int warpsM, warpsN, repsM, repsN, kSteps;  ///< repsN: of 16 columns
};
std::vector<DoubleCase> doubleCases() {
  std::vector<DoubleCase> cases;
  for (bool a : {true, false})
    for (bool b : {true, false})
      for (auto [m, n] : {std::pair(1, 1), {2, 2}, {4, 1}, {2, 4}, {1, 3}})
        for (auto [repsM, repsN] : {std::pair(1, 1), {2, 1}, {4, 2}, {3, 3}})
          for (int steps : {1, 2, 4}) cases.push_back({a, b, m, n, repsM, repsN, steps});
  return cases;
}

TEST(Fragments, DoublesAreWhereTheAccumulatorExpectsThem) {
  for (const DoubleCase& p : doubleCases()) {
    const Machine a{Case{true, p.aAlongK, 8, p.warpsM, p.warpsN, p.repsM, p.kSteps}},
        b{Case{false, p.bAlongK, 8, p.warpsM, p.warpsN, 2 * p.repsN, p.kSteps}};
    const Layout acc = mmaDoubleAccumulator({16 * p.warpsM * p.repsM, 16 * p.warpsN * p.repsN}, p.warpsM, p.warpsN,
                                            p.aAlongK, p.bAlongK);
    ASSERT_EQ(acc.check(), "") << acc.to_string();
    ASSERT_EQ(acc.numRegs(), 8 * p.repsM * p.repsN);
    for (int warp = 0; warp < a.numWarps; ++warp) {
      for (int step = 0; step < p.kSteps; ++step) {
        const auto as = a.loadDoubles(step, warp), bs = b.loadDoubles(step, warp);  // (outer, k) of every register
        std::map<int64_t, int> ks;
        for (int t = 0; t < 4; ++t)
          for (int half = 0; half < 2; ++half) ++ks[as[t][2 * half].second];
        ASSERT_EQ(ks.size(), 8u);
        ASSERT_EQ(ks.begin()->first, 8 * step);
        ASSERT_EQ(ks.rbegin()->first, 8 * step + 7);
        for (int lane = 0; lane < 32; ++lane) {
          const int g = lane / 4, t = lane % 4;
          for (int rep = 0; rep < p.repsM; ++rep)
            for (int i = 0; i < 4; ++i) {
              ASSERT_EQ(as[lane][4 * rep + i].second, as[t][2 * (i / 2)].second);
              ASSERT_EQ(as[lane][4 * rep + i].first, as[4 * g][4 * rep + i % 2].first);
            }
          for (int atom = 0; atom < 2 * p.repsN; ++atom)
            for (int i = 0; i < 2; ++i) {
              ASSERT_EQ(bs[lane][2 * atom + i].second, as[t][2 * i].second);
              ASSERT_EQ(bs[lane][2 * atom + i].first, bs[4 * g][2 * atom].first);
            }
          for (int m = 0; m < p.repsM; ++m)
            for (int atom = 0; atom < 2 * p.repsN; ++atom)
              for (int i = 0; i < 4; ++i) {
                const Coord want{as[4 * g][4 * m + i / 2].first, bs[4 * (2 * t + i % 2)][2 * atom].first};
                ASSERT_EQ(acc.coordOf(4 * (m * 2 * p.repsN + atom) + i, lane, warp), want) << acc.to_string();
              }
        }
      }
    }
  }
}

TEST(Fragments, ReadsOfDoublesAreFreeOfBankConflicts) {
  for (const DoubleCase& p : doubleCases()) {
    for (const Case& c : {Case{true, p.aAlongK, 8, p.warpsM, p.warpsN, p.repsM, 2 * p.kSteps},
                          {false, p.bAlongK, 8, p.warpsM, p.warpsN, 2 * p.repsN, 2 * p.kSteps}}) {
      const Machine machine{c};
      for (int step = 0; step < c.kSteps; ++step)
        for (const FragmentLoad& load : machine.plan.step) {
          const int64_t row = load.row + step * machine.plan.rowStep, byte = load.byte + step * machine.plan.byteStep;
          int64_t addresses[32];
          for (int lane = 0; lane < 32; ++lane) addresses[lane] = machine.address(lane, 0, row, byte);
          EXPECT_EQ(bankPasses(addresses, 32, 8 * load.count), 1) << nameOf(c);
          EXPECT_TRUE(splitOffset(machine.plan.tile, machine.rowMask, machine.byteMask, row, byte)) << nameOf(c);
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
