// narrow_phis.h - results of loops and branches stay narrow where only their users want 64 bits.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// LLVM widens a value that comes out of a loop or branch, or a constant on the other way, on every way by itself: sums
/// of 32 bits that are used as 64 cross the block in two registers each, and products of them no longer see that they
/// were widened (mul.wide). The narrow values meet instead, and are widened behind.
struct NarrowPhis : llvm::PassInfoMixin<NarrowPhis> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
