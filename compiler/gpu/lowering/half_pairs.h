// half_pairs.h - elements of 16 bits that lie in one 32-bit register, and choices between such words and those of bytes.
#pragma once
#include "llvm/IR/Value.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {
class Emitter;

/// The two elements are those of one register already: computed one by one, they would have to be packed again.
bool isPair(llvm::Value* low, llvm::Value* high);

/// Registers `reg` and the next ones of a select, in a vector: two elements of 16 bits or four of 8 that one flag
/// chooses, of a word or of two that are words already, or bytes that comparisons of bytes choose. Null: another op,
/// several other flags, elements that are no word.
llvm::Value* chooseWord(Emitter& e, mlir::Operation* op, size_t reg);

}  // namespace tile::ir
