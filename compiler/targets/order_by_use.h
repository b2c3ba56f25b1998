// order_by_use.h - where too many values of a block are alive at a time, each is computed right in front of its use.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// Operations on tiles arrive one after the other, each for all elements of a thread: between two long ones (random
/// numbers, polynomials) all elements' intermediate values are alive at once. The assembler schedules around the order
/// it is given, but does not find its way back from one that needs more registers than there are. Pure instructions of
/// such stretches are put in depth-first order of what is needed behind them: element by element. `again`: the code was
/// assembled and spilled; what is stored in different places may take turns then, and reads of shared memory wait for
/// their first use.
struct OrderByUse : llvm::PassInfoMixin<OrderByUse> {
  explicit OrderByUse(bool again) : again(again) {}
  bool again;
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
