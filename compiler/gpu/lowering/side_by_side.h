// side_by_side.h - what is computed of several elements alike is computed of some of them at a time.
#pragma once
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"

namespace tile::ir {

/// Functions of f64 are long chains of steps that wait for each other, most with a constant that takes two moves: the
/// assembler, which is given one element after the other, finds its way to two of them at most. Instructions of four
/// elements are put side by side, step by step: their chains overlap, and a constant that is there serves all of them.
class SideBySide {
 public:
  explicit SideBySide(llvm::IRBuilderBase& builder) : b_(builder) {}
  /// In front of an element's instructions, and behind them. Whatever else is emitted in between stays where it is.
  void begin();
  void end();
  /// Behind the last one.
  void finish();

 private:
  llvm::IRBuilderBase& b_;
  llvm::BasicBlock* block_ = nullptr;
  llvm::Instruction* before_ = nullptr;
  llvm::SmallVector<llvm::SmallVector<llvm::Instruction*>> elements_;
};

}  // namespace tile::ir
