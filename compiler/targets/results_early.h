// results_early.h - if too many values are alive across a barrier, a shuffle or a store, moves computations from behind
// it in front of it that leave fewer alive.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// An epilogue that stores three tiles computed from three others (gradients of a gated activation, rounded) computes
/// each in front of its own store, with barriers in between: the operands of all of them stay alive across every
/// barrier, and may need more registers than there are, while the rounded results take half as many. Pure instructions
/// that do not depend on what stands in between, and end more lives than they begin, move in front of it; OrderByUse
/// orders them there.
struct ResultsEarly : llvm::PassInfoMixin<ResultsEarly> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
