// full_adders.h - sums of three bits, for all bits of words at once.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// The carry and the sum of three words whose bits are added, where a kernel makes both (carry-save adders, counts of
/// bits): an instruction each. ptxas would make one of what makes a word and what is done with it, and so make it again
/// for the carry and the sum: of words that are `a & b` five or six instructions instead of two, and those of the
/// words. In assembly, as the code generator knows no other way to say so.
struct FullAdders : llvm::PassInfoMixin<FullAdders> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
