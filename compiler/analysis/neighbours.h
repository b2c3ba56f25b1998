// neighbours.h - how far apart neighbouring elements of a tile of offsets mostly lie, for the choice of the dim along
// which a warp's lanes read. Nothing may depend on it but speed: places where rows, images or groups end are ignored.
#pragma once
#include <cstdint>
#include <optional>

#include "mlir/IR/Value.h"

namespace tile::ir {

/// The dim along which neighbours lie nearest to each other, several in a line of memory; -1: none is known to be so.
int nearestDim(mlir::Value offsets, int elementBytes);
/// How far apart most neighbours along a dim are, in elements; nullopt: not known.
std::optional<int64_t> stepAlong(mlir::Value offsets, int64_t dim);

}  // namespace tile::ir
