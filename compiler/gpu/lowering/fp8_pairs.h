// fp8_pairs.h - conversions from and to 8-bit floats, two values at a time: by instructions where there are such
// (sm_89 and later), widened in the halves of a register elsewhere.
#pragma once
#include <array>

#include "compiler/targets/target.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// Whether the op is a conversion between an 8-bit and another float type, or from integers to one, that the target does
/// two by two.
bool hasFp8Pairs(const Target& target, mlir::Operation* op);

/// Both elements of such an op, rounded and saturated as f32ToFp8 (compiler/lowering/fp8.h) does.
std::array<llvm::Value*, 2> convertFp8Pair(const Target& target, llvm::IRBuilderBase& b, mlir::Operation* op,
                                           std::array<llvm::Value*, 2> x);

/// Two f16 of the two f8 in an i16, the first in its lower byte, by the instruction that sm_89 and later have.
llvm::Value* halvesOfFp8Pair(llvm::IRBuilderBase& b, llvm::Value* pair, bool e4m3);

}  // namespace tile::ir
