// own_counters.h - what strength reduction of loops in the code generator should leave to the assembler.
//
// It makes addresses that move on by themselves, which the assembler wants. It also lets a loop end by a counter of 64
// bits that an address is made of, of which the assembler finds no trip count: short loops are not unrolled then. And
// it carries a value of its own for each of the sums that a counted number occurs in (of a hash, say). Kernels with
// products of tensor cores are left alone.
#pragma once
#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace llvm {
class FunctionPass;
}

namespace tile::ir {

/// Has products of tensor cores: loops around them are as they are wanted, and registers are short.
bool multiplies(const llvm::Function& function);

/// In front of it: what counts without being part of an address is hidden from it.
struct HideCounted : llvm::PassInfoMixin<HideCounted> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

/// Behind it: loops that end by half of a counter of 64 bits get one of 32, and addresses that a counter of 64 bits is
/// added to move on by themselves.
llvm::FunctionPass* createOwnCounters();

}  // namespace tile::ir
