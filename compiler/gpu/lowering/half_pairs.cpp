// half_pairs.cpp - see half_pairs.h.
#include "compiler/gpu/lowering/half_pairs.h"

#include "compiler/gpu/lowering/byte_masks.h"
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/gpu/lowering/packed_bits.h"
#include "llvm/IR/DerivedTypes.h"
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

/// The elements as one word, where they are one already or all alike.
static llvm::Value* asWord(Emitter& e, llvm::ArrayRef<llvm::Value*> elements, bool& isWord) {
  if (elements.size() == 2 && isPair(elements[0], elements[1])) {
    isWord = true;
    return e.b.CreateBitCast(e.packPair(elements[0], elements[1]), e.b.getInt32Ty());
  }
  if (elements.size() == 4)
    if (llvm::Value* word = wordOf(e.b, elements)) return isWord = true, word;
  const bool areConstants = llvm::all_of(elements, [](llvm::Value* v) { return llvm::isa<llvm::Constant>(v); });
  if (!areConstants && !llvm::all_equal(elements)) return nullptr;
  if (elements.size() == 4 && elements[0]->getType()->isIntegerTy()) return e.packQuad(elements);
  return elements.size() == 2 ? e.b.CreateBitCast(e.packPair(elements[0], elements[1]), e.b.getInt32Ty()) : nullptr;
}

llvm::Value* chooseWord(Emitter& e, Operation* op, size_t reg) {
  if (!isa<arith::SelectOp>(op)) return nullptr;
  const unsigned bits = getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth();
  if (bits != 8 && bits != 16) return nullptr;
  const size_t count = 32 / bits;
  if (reg + count > e.regs(op->getOperand(1)).size()) return nullptr;
  llvm::ArrayRef<llvm::Value*> flags = e.regs(op->getOperand(0));
  llvm::Value* mask = nullptr;
  if (flags.size() > 1 && !llvm::all_equal(flags.slice(reg, count)))
    if (mask = bits == 8 ? maskOfBytes(e, op->getOperand(0), reg) : nullptr; !mask) return nullptr;
  SmallVector<llvm::Value*, 2> words;
  bool anyWord = false;
  for (Value operand : op->getOperands().drop_front()) {
    words.push_back(asWord(e, e.regs(operand).slice(reg, count), anyWord));
    if (!words.back()) return nullptr;
  }
  if (!anyWord && !mask) return nullptr;
  auto* type = llvm::FixedVectorType::get(e.elementType(op->getResult(0)), count);
  if (!mask) return e.b.CreateBitCast(e.b.CreateSelect(flags[flags.size() > 1 ? reg : 0], words[0], words[1]), type);
  return e.b.CreateBitCast(e.b.CreateOr(e.b.CreateAnd(mask, words[0]), e.b.CreateAnd(e.b.CreateNot(mask), words[1])),
                           type);
}

}  // namespace tile::ir
