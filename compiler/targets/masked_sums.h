// masked_sums.h - additions of what a flag chooses, or 0, as additions that the flag allows.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// s + (c ? x : 0) as c ? s + x : s: one instruction under a predicate where there were a choice and a sum, and an fma
/// under one where x is a product. The simplifier makes the first of the second, so this comes behind it. (Sums of
/// nothing but negative zeros may keep their sign.) Kernels with products of tensor cores are left alone: at the limit of
/// their registers a few more of them spill. Counts, s + (c ? 1 : 0), become additions in place.
struct MaskedSums : llvm::PassInfoMixin<MaskedSums> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
