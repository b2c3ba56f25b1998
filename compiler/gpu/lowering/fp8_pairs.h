// fp8_pairs.h - conversions from and to 8-bit floats by the instructions of sm_89 and later, which take two values
// each.
#pragma once
#include <array>

#include "compiler/targets/target.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// Whether the op is a conversion between an 8-bit and another float type that the target has an instruction for.
bool hasFp8Pairs(const Target& target, mlir::Operation* op);

/// Both elements of such an op, rounded and saturated as f32ToFp8 (compiler/lowering/fp8.h) does.
std::array<llvm::Value*, 2> convertFp8Pair(llvm::IRBuilderBase& b, mlir::Operation* op, std::array<llvm::Value*, 2> x);

}  // namespace tile::ir
