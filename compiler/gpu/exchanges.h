// exchanges.h - tiles whose elements change places with partners, step after step: sorts.
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// Steps of one sort, and the layout that all their tiles are best under: most steps are between near partners, which one
/// thread holds then, fewer between lanes, the fewest between warps.
struct Exchanges {
  llvm::SmallVector<TakeOp> takes;
  layout::Layout layout;
};
/// Of the exchanges among `takes` those along the last axis of tiles of one shape, where more than a few are near.
std::vector<Exchanges> exchangesInRuns(llvm::ArrayRef<TakeOp> takes, int numWarps, int numLanes);

}  // namespace tile::ir
