// runs.h - scatters in which every element of a tile writes several neighbouring places, as many as a tile of lengths
// says, right behind those of the element before (strings of different lengths, numbers as text).
#pragma once
#include "compiler/analysis/facts.h"

namespace tile::ir {

/// Whether two scatters of one iteration never write the same place for different elements. Both must write at sums of
/// cumsum(l) - l, where element i's run of l[i] places begins, and numbers of the element that are known to lie between
/// 0 and l[i]: by their ranges, or by the mask (`k < length`, also of sums: `length - 1 - k`). The lengths l must be
/// known not to be negative, and their sum not to wrap.
bool areInOwnRuns(mlir::Operation* access, mlir::Operation* other, const Facts& facts);
/// The same of two tiles of places in one tile; those that a mask makes -1 (`select mask, place, -1`) are none.
bool areInOwnRuns(mlir::Value places, mlir::Value others, const Facts& facts);

}  // namespace tile::ir
