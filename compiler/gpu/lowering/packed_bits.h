// packed_bits.h - bitwise operations on 8- and 16-bit integers, and sums and signed shifts of bytes, a 32-bit word of
// neighbours at a time. The machine has no narrower ones: alone, each element costs an instruction, and two more to get
// it out of its word and back.
#pragma once
#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// The word the registers are the elements of, in order; null when they are not.
llvm::Value* wordOf(llvm::IRBuilderBase& b, llvm::ArrayRef<llvm::Value*> regs);

/// How many elements of such an op share a word; 1 for other ops, which have no packed form.
int packedElements(mlir::Operation* op);

/// The results for as many registers as share a word, or nothing when they do not come packed from memory or from
/// another packed operation: packing them would cost more than it saves. `args`: the registers of each operand.
std::optional<llvm::SmallVector<llvm::Value*, 4>> emitPackedBits(llvm::IRBuilderBase& b, mlir::Operation* op,
                                                                 llvm::ArrayRef<llvm::ArrayRef<llvm::Value*>> args);

}  // namespace tile::ir
