// turn_products.h - which operands of products are widened on their way (quantised weights), and products turned so
// that such an operand comes first.
#pragma once
#include "compiler/gpu/dot_passes.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

/// The tile is made, element by element, from loads alone, the larger part of them of narrower elements than its own.
/// Threads may as well make the elements a warpgroup's product takes from their registers: no trip through shared
/// memory.
bool isWidened(mlir::Value tile);

/// The tile is made in its loop, element by element, from a load as large as itself, from smaller loads, and from what
/// is smaller and does not change in the loop (statistics of its rows, say): nothing that a product makes. One op reads
/// it.
bool isMadeOfLoads(mlir::Value tile);

}  // namespace tile::ir
