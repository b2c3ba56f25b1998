// short_pairs.h - integers of 16 bits, two in a register: sums, differences, extremes, and what bytes become.
#pragma once
#include "compiler/targets/target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// There is an instruction for two integers of 16 bits at a time (differences take three: targets/pair_differences.h).
bool hasShortPairs(const Target& target, mlir::Operation* op);

/// What it makes is computed with two at a time: worth it if its operands have to be packed. (One by one each result is
/// cut to 16 bits.)
bool isForPairs(const Target& target, mlir::Operation* op);

/// Bytes are widened to 16 bits and computed with two at a time.
bool widensToPairs(const Target& target, mlir::Operation* op);

/// Two pairs of 16 bits from four bytes, by one instruction each; empty if they are not the bytes of a word.
llvm::SmallVector<llvm::Value*, 2> widenedPairs(llvm::IRBuilderBase& b, mlir::Operation* op,
                                                llvm::ArrayRef<llvm::Value*> bytes);

}  // namespace tile::ir
