// meeting.h - ops that hand elements to other warps: each puts them into its scratch, all meet, each gets what it wants.
// Those of a group (kMeetsAttr) put together and meet once.
#pragma once
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// The first half of a move, a cat, a take or a reduction across warps; no waits.
llvm::LogicalResult putIntoScratch(Emitter& e, mlir::Operation* op);
llvm::LogicalResult putPartsOfWarps(Emitter& e, ReduceOp op);  // reduce.cpp

/// Behind it the op can get: it put, with all of its group, and met; or an op before did.
llvm::LogicalResult fillScratch(Emitter& e, mlir::Operation* op);

}  // namespace tile::ir
