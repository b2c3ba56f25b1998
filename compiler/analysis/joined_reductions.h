// joined_reductions.h - two reductions of one shape along one axis as one with the operands of both.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// In every block of `root`, reductions that `takes` accepts join the first one before that `moveBeside(first, later)`
/// allows: what `later` is computed from then stands in front of `first`. The joined op stands where `first` stood and
/// combines what each of the two combined.
void joinReductions(mlir::Operation* root, llvm::function_ref<bool(ReduceOp)> takes,
                    llvm::function_ref<bool(ReduceOp first, ReduceOp later)> moveBeside);

}  // namespace tile::ir
