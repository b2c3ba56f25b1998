// constant_offsets.h - addresses of elements whose places differ by constants.
#pragma once
#include "llvm/IR/PassManager.h"

namespace tile::ir {

/// p + (place + c) * size in 64 bits, where the sum was made in 32 bits and did not wrap, as (p + place * size) + c *
/// size: accesses hold the constant, and all elements of a thread share one address. LLVM looks for the constant in
/// front of the extension (SeparateConstOffsetFromGEP), but not in front of the product with the size. Only where two
/// elements or more share the address. Not in kernels with products of tensor cores: their operands are copied ahead,
/// and what their loops do in between is scheduled tightly, and otherwise after any change.
struct ConstantOffsets : llvm::PassInfoMixin<ConstantOffsets> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace tile::ir
