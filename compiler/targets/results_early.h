// results_early.h - where too many values are alive over a barrier, a shuffle or a store, what is computed of them behind
// it is computed in front of it.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// An epilogue that stores three tiles made of three (gradients of a gated activation, rounded) computes each in front
/// of its own store, with threads meeting in between: what all of them are made of waits over every meeting, and may be
/// more than there are registers, while the results, rounded, take half as many. Pure instructions that need nothing of
/// what stands between, and leave less alive than they end, go in front of it; OrderByUse finds them an order there.
struct ResultsEarly : llvm::PassInfoMixin<ResultsEarly> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
