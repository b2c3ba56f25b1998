// guard_loop.h - puts loops that leave products running behind their last iteration under a condition.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Puts the loop, with the waits and releases right behind it that finish its products, under the condition that it has
/// an iteration. Otherwise the path around the loop joins the path out of it while products are running, and ptxas
/// serialises all products (C7514).
void guardLoop(mlir::scf::ForOp loop);

}  // namespace tile::ir
