// microscaling.h - the numbers of the OCP microscaling formats that tiles hold in bytes: two e2m1 to a byte, exponents
// of a block (e8m0). For machines that compute in vectors; GPUs have their own way (gpu/lowering/e2m1_pairs.h).
#pragma once
#include <array>

#include "llvm/IR/IRBuilder.h"

namespace tile::ir {

/// The numbers in the lower and the upper halves of bytes as float; every type of the result holds them.
std::array<llvm::Value*, 2> widenE2m1(llvm::IRBuilderBase& b, llvm::Value* bytes);
/// 2^(x - 127) as float, NaN of 255.
llvm::Value* widenE8m0(llvm::IRBuilderBase& b, llvm::Value* bytes);

}  // namespace tile::ir
