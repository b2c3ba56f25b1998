// definitions.h - what values are computed from.
#pragma once
#include "compiler/dialect/dialect.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {

/// Every op the values are computed from, in no particular order. Through loops and branches: what decides how often
/// they run, or which way is taken, counts too; the loops and branches themselves are not in the list, other ops with
/// regions are, and end the search.
llvm::SetVector<mlir::Operation*> definitionsBehind(mlir::ValueRange values);

/// The value as an argument of the kernel; null: it is none.
mlir::BlockArgument argumentOfKernel(mlir::Value value);

}  // namespace tile::ir
