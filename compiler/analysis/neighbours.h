// neighbours.h - how far apart neighbouring elements of a tile of offsets mostly lie, for the choice of the dim along
// which a warp's lanes read. Nothing may depend on it but speed: places where rows, images or groups end are ignored.
#pragma once
#include <optional>

#include "mlir/IR/Value.h"

namespace tile::ir {

/// What most elements of an integer tile have more than their neighbours along `dim`: x + 3 * i of a tile that holds i
/// has 3, i / n has 0 and i % n has 1, whatever n is. A scalar has 0. Nullopt: not known, or a number that only the
/// launch tells.
std::optional<int64_t> stepAlong(mlir::Value value, int64_t dim);

/// The dim along which neighbours lie nearest to each other, several in a line of memory; -1: none is known to be so.
int nearestDim(mlir::Value offsets, int elementBytes);

}  // namespace tile::ir
