// half_pairs.cpp - see half_pairs.h.
#include "compiler/gpu/lowering/half_pairs.h"

#include "compiler/gpu/lowering/emitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

bool isPair(llvm::Value* low, llvm::Value* high) {
  auto *first = llvm::dyn_cast<llvm::ExtractElementInst>(low), *second = llvm::dyn_cast<llvm::ExtractElementInst>(high);
  if (!first || !second || first->getVectorOperand() != second->getVectorOperand()) return false;
  auto position = [](llvm::ExtractElementInst* extract) {
    auto* index = llvm::dyn_cast<llvm::ConstantInt>(extract->getIndexOperand());
    return index ? static_cast<int64_t>(index->getZExtValue()) : -1;
  };
  return position(first) >= 0 && position(first) % 2 == 0 && position(second) == position(first) + 1;
}

static bool choosesHalves(Operation* op) {
  return isa<arith::SelectOp>(op) && getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth() == 16;
}

llvm::Value* choosePair(Emitter& e, Operation* op, size_t reg) {
  if (!choosesHalves(op)) return nullptr;
  llvm::ArrayRef<llvm::Value*> flags = e.regs(op->getOperand(0));
  if (flags.size() > 1 && flags[reg] != flags[reg + 1]) return nullptr;
  SmallVector<llvm::Value*, 2> words;
  bool anyPair = false;
  for (Value operand : op->getOperands().drop_front()) {
    llvm::ArrayRef<llvm::Value*> held = e.regs(operand);
    const bool pair = isPair(held[reg], held[reg + 1]);
    if (!pair && !(llvm::isa<llvm::Constant>(held[reg]) && llvm::isa<llvm::Constant>(held[reg + 1]))) return nullptr;
    anyPair |= pair;
    words.push_back(e.b.CreateBitCast(e.packPair(held[reg], held[reg + 1]), e.b.getInt32Ty()));
  }
  if (!anyPair) return nullptr;
  llvm::Type* element = e.elementType(op->getResult(0));
  return e.b.CreateBitCast(e.b.CreateSelect(flags[flags.size() > 1 ? reg : 0], words[0], words[1]),
                           llvm::FixedVectorType::get(element, 2));
}

}  // namespace tile::ir
