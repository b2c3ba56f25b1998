// byte_sums.h - sums of the bytes of a word as one instruction.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// (x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24) + y, or three of the bytes, as dp4a: the word's bytes times
/// ones or zeros, added to y. Behind the simplifier, which knows no other form of such a sum.
struct ByteSums : llvm::PassInfoMixin<ByteSums> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
