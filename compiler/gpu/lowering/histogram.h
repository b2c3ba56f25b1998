// histogram.h - counts that a loop goes on with, beside the histograms of lowering.h.
#pragma once
#include "compiler/dialect/count_ops.h"
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

llvm::LogicalResult emitSmemCount(Emitter& e, SmemCountOp op);

}  // namespace tile::ir
