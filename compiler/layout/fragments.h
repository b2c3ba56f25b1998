// fragments.h - how the operand fragments of mma.sync are read from shared memory: which addresses each lane gives to
// ldmatrix, and where it is not possible, which elements it reads itself. Pure C++; the lowering emits what stands
// here, the tests run it.
//
// A thread's address is split into its own share (a sum of terms of lane and warp number) and constants per fragment.
// Swizzling XORs row bits into the column, which commutes with adding constants as long as no carry crosses the bits
// involved: splitOffset finds the cheap form.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/layout/shared.h"

namespace tile::layout {

/// ((lane or warp) / div) % mod * mul
struct ThreadTerm {
  enum Source : uint8_t { lane, warp } source;
  int div, mod, mul;
  int64_t of(int laneIndex, int warpIndex) const {
    return int64_t{(source == lane ? laneIndex : warpIndex) / div % mod} * mul;
  }
};
/// Sum of terms.
struct ThreadSum {
  std::vector<ThreadTerm> terms;
  int64_t of(int laneIndex, int warpIndex) const;
  int64_t mask(int numWarps) const;  ///< bits set in the value of some thread
};

/// address(row + rowConstant, byte + byteConstant) == (address(row, byte) ^ flip) + add for every thread.
struct SplitOffset {
  int64_t flip = 0, add = 0;
};
/// `rowMask`, `byteMask`: bits some thread's row and byte column may have. nullopt: no such form, compute it in full.
std::optional<SplitOffset> splitOffset(const SharedTile& tile, int64_t rowMask, int64_t byteMask, int64_t rowConstant,
                                       int64_t byteConstant);

/// One instruction of every lane: `count` 8x8 matrices of 16-bit pairs (ldmatrix), one 32-bit register put together
/// from elements at (row + rows[i], byte + bytes[i]), or one or two neighbours of 64 bits, a register each.
struct FragmentLoad {
  int64_t row = 0, byte = 0;       ///< constants to add to the thread's share
  int count = 1;                   ///< ldmatrix: 1, 2, 4; elements: 1; doubles: 1, 2
  std::vector<int> registers;      ///< fragment register each matrix (element group, double) ends up in
  std::vector<int64_t> elementRows, elementBytes;  ///< elements only: extra constants per element
};

struct FragmentPlan {
  enum Access : uint8_t { ldmatrix, ldmatrixTrans, elements, doubles } access = ldmatrix;
  SharedTile tile;
  ThreadSum row, byte;
  int elementBytes = 2;
  int registersPerStep = 0;        ///< 32-bit (doubles: 64-bit) registers of one k step, all repetitions
  std::vector<FragmentLoad> step;  ///< loads of k step 0
  int64_t rowStep = 0, byteStep = 0;  ///< what every further k step adds
};

/// Operand A (m x k) or B (k x n) over a grid of warpsM x warpsN warps, `reps` atoms of 16 rows (A) or 8 columns (B)
/// per warp, atoms interleaved as in mmaAccumulator. kMinor: elements along k are neighbours in memory (the tile's rows
/// run along m or n); else rows run along k. Register of repetition r: A: 4r + fragment register, B: 2r + fragment
/// register. Of 64-bit elements B's repetitions come in pairs, and rows and columns are those of mmaDoubleAccumulator.
FragmentPlan planOperandA(const SharedTile& tile, bool kMinor, int warpsM, int warpsN, int reps);
FragmentPlan planOperandB(const SharedTile& tile, bool kMinor, int warpsM, int warpsN, int reps);

}  // namespace tile::layout
