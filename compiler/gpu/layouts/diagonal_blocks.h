// diagonal_blocks.h - layouts for matrices that are read from places on diagonals (x[t + k], x[t - k]) and reduced:
// frames against themselves, filters, correlations.
#pragma once
#include <optional>

#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// Where the place of an element depends on a sum of its row and column only, and the matrix is reduced along one axis:
/// a layout in which every thread has a block of neighbours, of which it reads each diagonal once (tile_access.cpp).
/// Nullopt: it is no such matrix, or reads of the usual layout cost about as much. `bytes`: of an element.
std::optional<layout::Layout> blocksOfDiagonals(GatherOp gather, const layout::Layout& usual, int bytes, int numWarps,
                                                int numLanes);

}  // namespace tile::ir
