// runs.h - scatters in which every element of a tile writes several neighbouring places, as many as a tile of lengths
// says, right behind those of the element before (strings of different lengths, say).
#pragma once
#include "compiler/analysis/facts.h"

namespace tile::ir {

/// Whether two scatters of one iteration never write the same place for different elements. Both must have the offsets
/// cumsum(l) - l, where element i's run of l[i] places begins, and pointers that differ by constants; and the mask of
/// each must leave out elements whose run is too short for its constant. The lengths l must be known not to be
/// negative, and their sum not to wrap.
bool areInOwnRuns(mlir::Operation* access, mlir::Operation* other, const Facts& facts);

}  // namespace tile::ir
