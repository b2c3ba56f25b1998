// matrix_store.cpp - groups the 8x8 matrices of a thread by two along the rows and by two along the columns.
#include "compiler/layout/matrix_store.h"

namespace tile::layout {

namespace {

/// Warp digits along `dim`, each value times `unit`.
void addWarpTerms(const Layout& layout, int dim, int unit, ThreadSum& sum) {
  int below = 1;
  for (const Digit& digit : layout.warps()) {
    if (digit.dim == dim) sum.terms.push_back({ThreadTerm::warp, below, digit.count, digit.stride * unit});
    below *= digit.count;
  }
}

std::optional<MatrixStore> planMatrices(const Layout& layout, const SharedTile& tile, int minorDim, int64_t first) {
  if (layout.rank() != 2 || tile.elementBytes != 2 || layout.isPadded()) return std::nullopt;
  const std::vector<Digit>& regs = layout.regs();
  if (regs.size() < 2 || (tile.swizzle == 0 && tile.pitch % 16 != 0)) return std::nullopt;
  // `across`: the dim along which a lane holds pairs; `down`: the other one.
  const int across = regs[0].dim, down = 1 - across;
  if (across == kReplicated || regs[0] != Digit{across, 2, 1} || regs[1] != Digit{down, 2, 8}) return std::nullopt;
  if (layout.lanes() != std::vector<Digit>{{across, 4, 2}, {down, 8, 1}}) return std::nullopt;
  for (const Digit& digit : regs)
    if (digit.dim == kReplicated) return std::nullopt;

  MatrixStore store;
  store.transposed = minorDim == down;
  const int64_t end = first + tile.cols;
  const bool whole = first == 0 && end >= layout.shape()[minorDim];
  if (first % 8 != 0 || tile.cols % 8 != 0 || tile.rows < layout.shape()[1 - minorDim]) return std::nullopt;
  // A part: whole column blocks of every warp.
  if (!whole && (store.transposed || layout.maxThreadCoord(minorDim) >= 8)) return std::nullopt;

  // Matrices come as (first rows, second rows) of one column block; two column blocks make one instruction.
  const int blocks = layout.numRegs() / 4;
  const int perRow = regs.size() > 2 && regs[2].dim == across ? regs[2].count : 1;
  const int64_t apart = perRow > 1 ? regs[2].stride : 0;
  std::vector<std::vector<int>> groups;
  auto wanted = [&](int block) {
    const int64_t at = layout.regCoord(4 * block)[minorDim];
    return whole || (at >= first && at < end);
  };
  for (int block = 0; block < blocks; ++block) {
    if (!wanted(block)) continue;
    const bool pairs = block % perRow + 1 < perRow && wanted(block + 1);
    groups.push_back(pairs ? std::vector<int>{block, block + 1} : std::vector<int>{block});
    if (pairs) ++block;
  }

  // Lanes 0-7 and 8-15 point into the first block, 16-31 into the second.
  ThreadSum &alongDown = store.transposed ? store.byte : store.row,
            &alongAcross = store.transposed ? store.row : store.byte;
  const int downUnit = store.transposed ? 2 : 1, acrossUnit = store.transposed ? 1 : 2;
  if (!store.transposed) {
    alongDown.terms.push_back({ThreadTerm::lane, 1, 16, 1});
  } else {
    alongAcross.terms.push_back({ThreadTerm::lane, 1, 8, 1});
    alongDown.terms.push_back({ThreadTerm::lane, 8, 2, 8 * downUnit});
  }
  if (apart) alongAcross.terms.push_back({ThreadTerm::lane, 16, 2, static_cast<int>(apart) * acrossUnit});
  addWarpTerms(layout, down, downUnit, alongDown);
  addWarpTerms(layout, across, acrossUnit, alongAcross);

  for (const std::vector<int>& group : groups) {
    MatrixStore::Instruction instruction;
    for (int block : group) instruction.registers.insert(instruction.registers.end(), {4 * block, 4 * block + 2});
    const Coord at = layout.regCoord(4 * group.front());
    instruction.row = at[1 - minorDim];
    instruction.byte = (at[minorDim] - first) * 2;
    store.instructions.push_back(instruction);
  }
  return store;
}

}  // namespace

std::optional<MatrixStore> planMatrixStore(const Layout& layout, const SharedTile& tile, int minorDim, int64_t first,
                                           bool everyWarp) {
  if (!everyWarp && layout.warpReplicas() != 1) return std::nullopt;
  return planMatrices(layout, tile, minorDim, first);
}

std::optional<MatrixStore> planMatrixLoad(const Layout& layout, const SharedTile& tile, int minorDim) {
  return planMatrices(layout, tile, minorDim, 0);
}

}  // namespace tile::layout
