// promises.h - what a condition that holds says of the integers in it.
#pragma once
#include "compiler/analysis/facts.h"

namespace tile::ir {

/// Of one integer: it lies in the range, and is a multiple of the power of two.
struct Promise {
  mlir::Value value;
  Range range;
  int64_t multipleOf = 1;
};

/// Of `n > 0`, `0 <= i`, `n % 16 == 0`, `a < b`, and of all parts of `and`; what the facts say already may be among
/// them.
llvm::SmallVector<Promise> promisesOf(mlir::Value condition, const Facts& facts);

}  // namespace tile::ir
