// unroll_loops.h - several bodies of a loop an iteration.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// `factor` bodies an iteration, and a loop behind it for what remains; a loop that runs over nothing still does. Only
/// loops whose step is a constant: false for others, which stay as they are.
bool unrollBy(mlir::scf::ForOp loop, int64_t factor);

}  // namespace tile::ir
