// movable.h - which instructions may stand elsewhere, and how many registers values take.
#pragma once
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

namespace tile::ir {

/// More than this, of a thread's 255 registers, is too much: addresses, counters and what only passes by come on top.
inline constexpr int64_t kMostAlive = 208;

/// Instructions that may stand anywhere between what they use and what uses them.
inline bool isMovable(const llvm::Instruction& inst) {
  if (llvm::isa<llvm::PHINode>(inst) || inst.isTerminator() || inst.mayHaveSideEffects() || inst.mayReadFromMemory())
    return false;
  auto* call = llvm::dyn_cast<llvm::CallBase>(&inst);
  return !call || (!call->isConvergent() && !call->isInlineAsm());
}

/// 32-bit registers of a value; predicates have registers of their own.
inline int64_t registersOf(const llvm::Value& value, const llvm::DataLayout& layout) {
  llvm::Type* type = value.getType();
  if (!type->isSized() || type->isIntegerTy(1)) return 0;
  return static_cast<int64_t>((layout.getTypeSizeInBits(type).getFixedValue() + 31) / 32);
}

}  // namespace tile::ir
