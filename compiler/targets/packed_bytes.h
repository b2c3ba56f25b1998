// packed_bytes.h - numbers that become the bytes of a word, two at a time.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// Bytes of a vector that are made of 32-bit floats, or of words kept inside the range of a byte: cvt.pack rounds (with
/// cvt.rni), saturates and packs two of them in one instruction of sm_90, where each would take up to eight. Behind the
/// simplifier.
struct PackedBytes : llvm::PassInfoMixin<PackedBytes> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
