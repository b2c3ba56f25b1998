// inline_asm.h - what a piece of PTX in a kernel may look like: its text names registers as $0, $1 .., its constraints
// say what these are, results first ("=r,=f,r"). Checked before LLVM sees either: what it cannot parse ends a process.
#pragma once
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Types.h"

namespace tile::ir {

inline constexpr int kMostPacked = 16;

/// Elements of `type` in a register, and registers of `pack` elements.
struct PackedRegisters {
  int elements = 1, count = 1;
  int bits = 32;  ///< of a register that are used
};
PackedRegisters packedRegisters(mlir::Type element, int pack);

/// The letters of the registers, results first: "=&r" is 'r'. Only of constraints without a fault.
llvm::SmallVector<char, 8> registerLetters(llvm::StringRef constraints);

/// What is wrong with a piece of assembly on these element types; empty: nothing that can be seen here.
std::string faultOfAsm(llvm::StringRef text, llvm::StringRef constraints, llvm::ArrayRef<mlir::Type> results,
                       llvm::ArrayRef<mlir::Type> arguments, int pack);

}  // namespace tile::ir
