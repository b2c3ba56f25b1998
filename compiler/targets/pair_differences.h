// pair_differences.h - differences of two numbers of 16 bits at a time.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// x - y of pairs as ~(~x + y), or x + (~y + 1) where y is taken from several: GPUs add pairs, and take the
/// larger or smaller of them, in one instruction (sm_90), but do not subtract, and the code generator would take them
/// apart. In assembly, as all that simplifies code makes a difference of it again.
/// Only code for sm_90 and later has pairs to subtract (gpu/lowering/short_pairs.h).
struct PairDifferences : llvm::PassInfoMixin<PairDifferences> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
