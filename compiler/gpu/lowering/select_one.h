// select_one.h - sums of which all elements but one are zero: `sum(where(arange(0, n) == i, x, 0))`, the way to read
// the element at a place that is only known while running.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

struct SelectedOne {
  mlir::Value condition;  ///< true for one element along the axis at most
  mlir::Value values;
  mlir::Value place, base;  ///< 32 bits, a tile or not: the element's coordinate is place - base - start; base: or null
  int64_t start = 0;
};

/// The reduction picks one element, and whoever knows its coordinate knows its lane: a single shuffle brings it.
/// Nullopt: something else, or warps share the axis.
std::optional<SelectedOne> selectedOne(ReduceOp reduce, const layout::Layout& source);

/// The lane of this thread's group that holds coordinate `at` (i32) of the axis; null: every thread holds all of it.
llvm::Value* laneHolding(Emitter& e, const layout::Layout& source, int axis, llvm::Value* at);

}  // namespace tile::ir
