// whole_flags.h - choices by both or one of two flags stay one choice.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// The code generator makes a choice of a choice of one by two flags that nothing else asks for. Comparisons have room
/// for a second flag, so that one choice remains; hidden in a line of PTX it does. Behind what moves instructions: such
/// a line stays where it is.
struct WholeFlags : llvm::PassInfoMixin<WholeFlags> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
