// half_pairs.h - pairs of 16-bit elements in one 32-bit register, and selects of whole words instead of their elements.
#pragma once
#include "llvm/IR/Value.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {
class Emitter;

/// Whether the two elements are in one register already: computed one by one, they would have to be packed again.
bool isPair(llvm::Value* low, llvm::Value* high);

/// The results of a select for registers `reg` and the next ones, as a vector: two elements of 16 bits, or four of 8,
/// if one flag selects all of them and they are in words already, or if comparisons of bytes select them
/// (byte_masks.h). Null: another op, other flags, or elements that are not in words.
llvm::Value* chooseWord(Emitter& e, mlir::Operation* op, size_t reg);

}  // namespace tile::ir
