// masked_sums.cpp - see masked_sums.h.
#include "compiler/targets/masked_sums.h"

#include "compiler/targets/own_counters.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

namespace tile::ir {
using namespace llvm;

namespace {

/// What is added, and under which flag (or its opposite).
struct Masked {
  Value *flag = nullptr, *value = nullptr;
  bool opposite = false;
};

Masked maskedBy(Value* operand) {
  auto* select = dyn_cast<SelectInst>(operand);
  if (!select || !select->hasOneUse() || !select->getCondition()->getType()->isIntegerTy(1)) return {};
  using namespace PatternMatch;
  auto isZero = [](Value* v) { return match(v, m_AnyZeroFP()) || match(v, m_Zero()); };
  if (isZero(select->getFalseValue())) return {select->getCondition(), select->getTrueValue(), false};
  if (isZero(select->getTrueValue())) return {select->getCondition(), select->getFalseValue(), true};
  return {};
}

/// There are sums of such numbers under a predicate: two words are chosen apart either way.
bool hasPredicate(Type* type) { return type->isFloatTy() || type->isDoubleTy() || type->isIntegerTy(32); }

/// Three integers are added at once: a sum that only goes into another one, of no such choice, is none by itself.
bool isPartOfThree(const BinaryOperator& sum) {
  auto* next = sum.getType()->isIntegerTy() && sum.hasOneUse() ? dyn_cast<BinaryOperator>(*sum.user_begin()) : nullptr;
  if (!next || next->getOpcode() != Instruction::Add) return false;
  return !maskedBy(next->getOperand(next->getOperand(0) == &sum ? 1 : 0)).flag;
}

void rewrite(BinaryOperator& sum) {
  if (isPartOfThree(sum)) return;
  Masked first = maskedBy(sum.getOperand(0)), second = maskedBy(sum.getOperand(1));
  Masked& masked = second.flag ? second : first;
  if (!masked.flag) return;
  Value* other = sum.getOperand(second.flag ? 0 : 1);
  // Both under one flag: neither without the other.
  const bool both = second.flag && first.flag == second.flag && first.opposite == second.opposite;
  IRBuilder<> b(&sum);
  b.setFastMathFlags(isa<FPMathOperator>(sum) ? sum.getFastMathFlags() : FastMathFlags());
  Value* left = both ? first.value : other;
  Value* added =
      sum.getOpcode() == Instruction::FAdd ? b.CreateFAdd(left, masked.value) : b.CreateAdd(left, masked.value);
  Value* rest = both ? Constant::getNullValue(sum.getType()) : other;
  Value* chosen = masked.opposite ? b.CreateSelect(masked.flag, rest, added) : b.CreateSelect(masked.flag, added, rest);
  sum.replaceAllUsesWith(chosen);
}

/// s + (c ? 1 : 0) of a count: one addition under a predicate, in place. Of a choice of 1 or 0 and a sum ptxas makes a
/// sum beside and a move.
Value* countUnder(BinaryOperator& sum) {
  using namespace PatternMatch;
  Value *flag, *other;
  if (!match(&sum, m_c_Add(m_OneUse(m_ZExt(m_Value(flag))), m_Value(other))) || !flag->getType()->isIntegerTy(1) ||
      isa<Constant>(other) || match(other, m_ZExt(m_Value())))
    return nullptr;
  IRBuilder<> b(&sum);
  auto* type = FunctionType::get(b.getInt32Ty(), {b.getInt1Ty(), b.getInt32Ty()}, false);
  return b.CreateCall(InlineAsm::get(type, "@$1 add.s32 $0, $0, 1;", "=r,b,0", false), {flag, other});
}

}  // namespace

PreservedAnalyses MaskedSums::run(Function& function, FunctionAnalysisManager&) {
  if (multiplies(function)) return PreservedAnalyses::all();
  SmallVector<BinaryOperator*> sums;  // in order: what one of them leaves under a flag the next one may add
  for (Instruction& inst : instructions(function)) {
    const unsigned opcode = inst.getOpcode();
    if ((opcode == Instruction::FAdd || opcode == Instruction::Add) && hasPredicate(inst.getType()))
      sums.push_back(cast<BinaryOperator>(&inst));
  }
  for (BinaryOperator* sum : sums) rewrite(*sum);
  for (BinaryOperator* sum : sums) {
    if (!sum->use_empty()) continue;
    SmallVector<Instruction*, 2> choices;
    for (Value* operand : sum->operands())
      if (auto* select = dyn_cast<SelectInst>(operand)) choices.push_back(select);
    sum->eraseFromParent();
    for (Instruction* select : choices)
      if (select->use_empty()) select->eraseFromParent();
  }
  for (Instruction& inst : make_early_inc_range(instructions(function))) {
    auto* sum = dyn_cast<BinaryOperator>(&inst);
    if (!sum || sum->getOpcode() != Instruction::Add || !sum->getType()->isIntegerTy(32)) continue;
    if (Value* counted = countUnder(*sum)) sum->replaceAllUsesWith(counted), sum->eraseFromParent();
  }
  return sums.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace tile::ir
