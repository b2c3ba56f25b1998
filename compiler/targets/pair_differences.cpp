// pair_differences.cpp - see pair_differences.h.
#include "compiler/targets/pair_differences.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"

namespace tile::ir {
using namespace llvm;

namespace {

bool isPairDifference(const Value* value) {
  const auto* inst = dyn_cast<Instruction>(value);
  const auto* type = inst ? dyn_cast<FixedVectorType>(inst->getType()) : nullptr;
  return type && inst->getOpcode() == Instruction::Sub && type->getNumElements() == 2 &&
         type->getElementType()->isIntegerTy(16);
}

/// ~x + y, as words.
Value* complementPlus(IRBuilder<>& b, Value* x, Value* y) {
  Type* word = b.getInt32Ty();
  auto* add = InlineAsm::get(FunctionType::get(word, {word, word}, false), "add.s16x2 $0, $1, $2;", "=r,r,r", false);
  return b.CreateCall(add, {b.CreateNot(b.CreateBitCast(x, word)), b.CreateBitCast(y, word)});
}

/// Whether y is taken from several numbers: then its negative is made once, where y is.
bool isOftenTaken(Value* y) {
  const auto* made = dyn_cast<Instruction>(y);
  return made && !made->isTerminator() && count_if(y->uses(), [](const Use& use) {
                                            return use.getOperandNo() == 1 && isPairDifference(use.getUser());
                                          }) > 1;
}

Value* negative(Instruction* y) {
  IRBuilder<> b(&*y->getInsertionPointAfterDef().value());
  return b.CreateBitCast(complementPlus(b, y, ConstantInt::get(b.getInt32Ty(), 0x00010001)), y->getType());
}

}  // namespace

PreservedAnalyses PairDifferences::run(Function& function, FunctionAnalysisManager&) {
  SmallVector<Instruction*> differences;
  for (Instruction& inst : instructions(function))
    if (isPairDifference(&inst)) differences.push_back(&inst);
  DenseMap<Value*, Value*> negatives;
  for (Instruction* difference : differences)
    if (Value* y = difference->getOperand(1); !negatives.contains(y) && isOftenTaken(y))
      negatives[y] = negative(cast<Instruction>(y));
  // What is negated may be a difference itself: it is replaced in the negative, too.
  for (Instruction* difference : differences) {
    IRBuilder<> b(difference);
    Value *x = difference->getOperand(0), *y = difference->getOperand(1);
    Value* negated = negatives.lookup(y);
    Value* result = negated ? b.CreateAdd(x, negated)
                            : b.CreateBitCast(b.CreateNot(complementPlus(b, x, y)), difference->getType());
    if (Value* own = negatives.lookup(difference)) negatives[result] = own;
    difference->replaceAllUsesWith(result);
  }
  for (Instruction* difference : differences) difference->eraseFromParent();  // now: no other takes a place in the map
  return differences.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace tile::ir
