// byte_floats.h - 8-bit integers as 16-bit floats, four at a time, and wider integers of few values, two at a time. The
// instruction that converts one runs at a sixteenth of the rate of arithmetic; putting the byte into a float's digits
// does not.
#pragma once
#include <array>
#include <optional>

#include "compiler/analysis/facts.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// Whether the op converts signed or unsigned i8 to f16 or bf16, all of which these hold exactly.
bool hasByteFloats(mlir::Operation* op);

/// Four elements of such an op. Bytes that were loaded side by side are best handed over side by side.
std::array<llvm::Value*, 4> convertBytes(llvm::IRBuilderBase& b, mlir::Operation* op, std::array<llvm::Value*, 4> x);

/// The lowest value of a tile of integers of 16 or more bits that the op makes f16 or bf16, where facts leave so few
/// values that a float's digits have room for them.
std::optional<int64_t> lowestOfFew(mlir::Operation* op, const Facts& facts);

/// Two elements of such an op.
std::array<llvm::Value*, 2> convertFew(llvm::IRBuilderBase& b, mlir::Operation* op, int64_t lowest,
                                       std::array<llvm::Value*, 2> x);

}  // namespace tile::ir
