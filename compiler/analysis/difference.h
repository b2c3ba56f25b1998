// difference.h - differences of integers that are made of the same parts: the range of `last - i` in a loop that counts
// i up to `last + 1`, where the ranges of `last` and of `i` alone say little.
#pragma once
#include "compiler/analysis/range.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

/// Values that `a - b` can take, as far as parts that both have and the bounds of loops around say more than the two
/// ranges; everything that 64 bits hold otherwise. Of scalars. An induction variable is less than its loop's upper
/// bound where the loop's body runs.
Range differenceRange(mlir::Value a, mlir::Value b, llvm::function_ref<Range(mlir::Value)> rangeOf);

}  // namespace tile::ir
