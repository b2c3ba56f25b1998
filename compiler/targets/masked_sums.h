// masked_sums.h - additions of what a flag chooses, or 0, as additions that the flag allows.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// s + (c ? x : 0) as c ? s + x : s: one predicated instruction instead of a choice and a sum, and a predicated fma
/// where x is a product. LLVM's simplifier makes the first form of the second, so this pass runs behind it. (Sums of
/// nothing but negative zeros may keep their sign.) Kernels with products of tensor cores are left alone: at the limit
/// of their registers a few more of them spill.
///
/// Counts of flags: three or more comparisons of f32 are added in f32; s + (c ? 1 : 0) of other flags becomes a
/// predicated addition (see countInFloats and countUnder).
struct MaskedSums : llvm::PassInfoMixin<MaskedSums> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
