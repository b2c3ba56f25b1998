// invariants_late.h - what is cheap and the same in all iterations of a long loop is computed where it is used.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// A loop around others (programs of a persistent kernel, tiles of an expert) leaves what does not change in front of
/// it: columns and rows of each element that a thread stores, dozens of registers that nobody reads in the loops
/// inside, where registers are short. Integer operations of one instruction move back, next to their users, if those
/// are outside of the innermost loops. For code that was assembled and spilled.
struct InvariantsLate : llvm::PassInfoMixin<InvariantsLate> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace tile::ir
