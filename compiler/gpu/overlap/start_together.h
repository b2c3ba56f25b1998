// start_together.h - asynchronous products that do not need each other are under way at the same time.
#pragma once
#include "mlir/IR/Block.h"

namespace tile::ir {

/// Moves what is made of a product's result behind the next product of the block, where that does not need it: one
/// product runs while the other's result is worked on, and both read what was stored for them behind one barrier.
void startTogether(mlir::Block& block);

}  // namespace tile::ir
