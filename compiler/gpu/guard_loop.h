// guard_loop.h - loops that leave products running behind their last iteration, under a condition.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Puts the loop, and the waits and releases right behind it that finish its products, under "it runs at all". Without
/// that the way around the loop meets the way out of it where products still run, and ptxas then serialises them all
/// (C7514).
void guardLoop(mlir::scf::ForOp loop);

}  // namespace tile::ir
