// exchanges.h - sorts: sequences of takes that exchange each element of a tile with a partner.
#pragma once
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// The steps of one sort, and the best layout for all their tiles: runs of the axis in each thread. Most steps are
/// between near partners, which one thread then holds; fewer are between lanes, and the fewest between warps.
struct Exchanges {
  llvm::SmallVector<TakeOp> takes;
  layout::Layout layout;
};
/// Finds sorts among `takes`: exchanges along one axis of tiles of one shape, more than a few of them between near
/// partners.
std::vector<Exchanges> exchangesInRuns(llvm::ArrayRef<TakeOp> takes, int numWarps, int numLanes);

}  // namespace tile::ir
