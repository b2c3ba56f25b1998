// byte_floats.h - 8-bit integers as 16-bit floats, four at a time. The instruction that converts one runs at a sixteenth
// of the rate of arithmetic; putting the byte into a float's digits does not.
#pragma once
#include <array>

#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// Whether the op converts signed or unsigned i8 to f16 or bf16, all of which these hold exactly.
bool hasByteFloats(mlir::Operation* op);

/// Four elements of such an op. Bytes that were loaded side by side are best handed over side by side.
std::array<llvm::Value*, 4> convertBytes(llvm::IRBuilderBase& b, mlir::Operation* op, std::array<llvm::Value*, 4> x);

}  // namespace tile::ir
