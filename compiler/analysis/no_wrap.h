// no_wrap.h - what an integer operation promises about its result.
#pragma once
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace tile::ir {

/// The result is that of the numbers, with a sign (nsw): of sums, differences, products and truncations.
template <class Op>
bool neverWraps(Op op) {
  return mlir::arith::bitEnumContainsAll(op.getOverflowFlags(), mlir::arith::IntegerOverflowFlags::nsw);
}

}  // namespace tile::ir
