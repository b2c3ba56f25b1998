// packed_bits.h - bitwise operations on 8- and 16-bit integers, and sums and signed shifts of bytes, on a 32-bit word
// of neighbours at a time. The machine has no narrower instructions: one by one, each element costs an instruction, and
// two more to take it out of its word and put it back.
#pragma once
#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// The word whose elements the registers are, in order, or that two pairs of bytes make; null if there is none.
llvm::Value* wordOf(llvm::IRBuilderBase& b, llvm::ArrayRef<llvm::Value*> regs);

/// How many elements of such an op share a word; 1 for other ops, which have no packed form.
int packedElements(mlir::Operation* op);

/// The results for as many registers as share a word. Empty if the operands are not words from memory or from another
/// packed operation: packing them would cost more than it saves. `args`: the registers of each operand.
std::optional<llvm::SmallVector<llvm::Value*, 4>> emitPackedBits(llvm::IRBuilderBase& b, mlir::Operation* op,
                                                                 llvm::ArrayRef<llvm::ArrayRef<llvm::Value*>> args);

}  // namespace tile::ir
