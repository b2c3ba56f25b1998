// shared_starts.h - addresses of elements that differ in one of two indices.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// p + (row + column) * size, with 64 bits and for several columns: the start of the row is one address, and every
/// element one multiplication and addition (mul.wide) from it. Else both words of every sum are added, and shifted.
struct SharedStarts : llvm::PassInfoMixin<SharedStarts> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
