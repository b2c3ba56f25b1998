// whole_words.h - arithmetic of 8 and 16 bits in words of 32.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// Sums, differences, products and shifts of integers of 8 and 16 bits, and what is chosen or masked between them, in 32
/// bits: the simplifier narrows what is cut to bytes in the end, and ptxas, whose registers have 32 bits, cuts and
/// extends around every step. What stands above the bits that count is whatever it is. This comes behind the simplifier.
/// Kernels with products of tensor cores are left alone: what they unpack is laid out for packed instructions.
struct WholeWords : llvm::PassInfoMixin<WholeWords> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
