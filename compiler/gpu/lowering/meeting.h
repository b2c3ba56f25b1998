// meeting.h - exchanges between warps: an op puts its elements into scratch in shared memory, all warps wait at a
// barrier, and the op gets the elements it wants. The ops of a group (kMeetsAttr, meet_together.cpp) put together and
// share the barrier.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// Emits the first half of a move, a cat, a take or a reduction across warps, without any wait.
llvm::LogicalResult putIntoScratch(Emitter& e, mlir::Operation* op);
llvm::LogicalResult putPartsOfWarps(Emitter& e, ReduceOp op);  // reduce.cpp

/// Emits what must precede the second half: puts for the op and its group, and the barrier; nothing if an earlier op of
/// the group did.
llvm::LogicalResult fillScratch(Emitter& e, mlir::Operation* op);

}  // namespace tile::ir
