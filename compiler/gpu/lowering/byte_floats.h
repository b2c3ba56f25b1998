// byte_floats.h - converts 8-bit integers to 16-bit floats, four at a time, bytes of words to f32, and wider integers
// with a small range to 16-bit floats, two at a time. The conversion instruction runs at an eighth of the rate of
// arithmetic, or less; inserting the bits into the mantissa of a float does not.
#pragma once
#include <array>
#include <optional>

#include "compiler/analysis/facts.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// Whether the op converts signed or unsigned i8 to f16 or bf16, all of which these hold exactly.
bool hasByteFloats(mlir::Operation* op);

/// Four results of such an op. The bytes should be neighbours in one word, as they were loaded.
std::array<llvm::Value*, 4> convertBytes(llvm::IRBuilderBase& b, mlir::Operation* op, const Facts& facts,
                                         std::array<llvm::Value*, 4> x);

/// The result of a conversion to f32 of an i32 that the IR shows to be a byte of a word (`x >> 8 & 255`). Nullptr:
/// another op, or another number.
llvm::Value* convertByteOfWord(llvm::IRBuilderBase& b, mlir::Operation* op, llvm::Value* x);

/// For a conversion of integers of 16 or more bits to f16 or bf16 whose range is so small that it fits a mantissa: the
/// lowest value. Nullopt: another op, or a larger range.
std::optional<int64_t> lowestOfFew(mlir::Operation* op, const Facts& facts);

/// Two results of such an op.
std::array<llvm::Value*, 2> convertFew(llvm::IRBuilderBase& b, mlir::Operation* op, int64_t lowest,
                                       std::array<llvm::Value*, 2> x);

}  // namespace tile::ir
