// select_one.h - sums of which all elements but one are zero: `sum(where(arange(0, n) == i, x, 0))`, the way to read
// an element at an index that is known at run time only.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

struct SelectedOne {
  mlir::Value values;
  /// The element's coordinate is place - base - start. Both have 32 bits and are tiles or scalars; base may be null.
  mlir::Value place = {}, base = {};
  int64_t start = 0;
  bool isAlike = false;  ///< all registers of `place` are one number
};

/// If the reduction selects one element: where it is. Its coordinate determines its lane, so that a single shuffle
/// fetches it. Nullopt: another reduction, or several warps share the axis.
std::optional<SelectedOne> selectedOne(ReduceOp reduce, const layout::Layout& source);

/// One of the registers of a line, by an index within it.
llvm::Value* chosenOf(Emitter& e, llvm::ArrayRef<llvm::Value*> line, llvm::Value* index);

/// Which of a thread's registers of a line, counted in order of coordinates, holds coordinate `at` (i32) of the axis,
/// in the lane that has it.
llvm::Value* registerHolding(Emitter& e, const layout::Layout& source, int axis, llvm::Value* at);

/// The lane that holds coordinate `at` (i32) of the axis for this thread; null: every thread holds the whole axis.
llvm::Value* laneHolding(Emitter& e, const layout::Layout& source, int axis, llvm::Value* at);

}  // namespace tile::ir
