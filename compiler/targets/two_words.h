// two_words.h - numbers of 64 bits, which GPUs keep in two words, by the instructions that are cheapest.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// Products of numbers of 32 bits by mul.wide: LLVM sees that their upper words are zero or copies of a sign, and
/// does not say so. Carries and borrows that choose a number or 0 by add.cc and subc, not by comparing both words
/// of the sum. Whether a count of bits is odd by counting where both words differ. The larger of an f64 number and a
/// constant by a comparison: ptxas makes seven instructions of max.f64, whose operands may both be NaN. In assembly
/// (but for the counts), as the code generator makes the same of all other ways to say so.
struct TwoWords : llvm::PassInfoMixin<TwoWords> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
