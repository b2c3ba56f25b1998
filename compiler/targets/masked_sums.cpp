// masked_sums.cpp - see masked_sums.h.
#include "compiler/targets/masked_sums.h"

#include "compiler/targets/own_counters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/CFG.h"
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

/// The summands of a tree of integer additions.
struct Count {
  SmallVector<Value*> flags;       ///< comparisons of f32 numbers, widened, that have no other user
  SmallVector<Value*> others;      ///< all others but constants
  SmallVector<Instruction*> sums;  ///< the additions, each in front of its operands
  int64_t constant = 0;

  void add(Value* v) {
    using namespace PatternMatch;
    Value* flag;
    auto* inst = dyn_cast<Instruction>(v);
    if (auto* number = dyn_cast<ConstantInt>(v)) {
      constant += number->getSExtValue();
    } else if (inst && inst->getOpcode() == Instruction::Add && (sums.empty() || inst->hasOneUse())) {
      sums.push_back(inst);
      for (Value* operand : inst->operands()) add(operand);
    } else if (match(v, m_OneUse(m_ZExt(m_OneUse(m_Value(flag))))) && isa<FCmpInst>(flag) &&
               cast<FCmpInst>(flag)->getOperand(0)->getType()->isFloatTy()) {
      flags.push_back(flag);
    } else {
      others.push_back(v);
    }
  }
};

/// Replaces a sum of at least three f32 comparisons by a sum of f32: there is an instruction that compares and leaves
/// 1.0 or 0.0, and additions of f32 leave the integer units, which also compare, to other work. The count c is read
/// from the low bits of the f32 number 2^23 + c, which is exact.
bool countInFloats(BinaryOperator& root) {
  constexpr double kWhole = 8388608;  // 2^23
  constexpr int64_t kWholeBits = 0x4B000000;
  constexpr size_t kFewest = 3;
  Count count;
  count.add(&root);
  if (count.flags.size() < kFewest) return false;
  IRBuilder<> b(&root);
  Type* type = b.getFloatTy();
  Value* sum = nullptr;
  for (Value* flag : count.flags) {
    IRBuilder<> beside(cast<Instruction>(flag)->getNextNode());
    Value* one = beside.CreateSelect(flag, ConstantFP::get(type, 1), ConstantFP::get(type, 0));
    sum = sum ? b.CreateFAdd(sum, one) : one;
  }
  sum = b.CreateFAdd(sum, ConstantFP::get(type, kWhole));
  Value* whole = b.CreateAdd(b.CreateBitCast(sum, b.getInt32Ty()),
                             ConstantInt::getSigned(b.getInt32Ty(), static_cast<int32_t>(count.constant - kWholeBits)));
  for (Value* other : count.others) whole = b.CreateAdd(whole, other);
  root.replaceAllUsesWith(whole);
  for (Instruction* inst : count.sums) {
    SmallVector<Value*, 2> operands(inst->operands());
    inst->eraseFromParent();
    for (Value* operand : operands)
      if (auto* widened = dyn_cast<ZExtInst>(operand); widened && widened->use_empty()) widened->eraseFromParent();
  }
  return true;
}

/// Whether the instruction is in a loop of one basic block.
bool isInTightLoop(const Instruction& inst) { return is_contained(successors(inst.getParent()), inst.getParent()); }

/// s + (c ? 1 : 0) as one predicated addition to the register of s; ptxas by itself makes an addition into another
/// register and a move. Only for flags that have other users, too, and for flags that are no comparisons of floats in
/// loops of one block. Null: the sum is nothing of this kind.
Value* countUnder(BinaryOperator& sum) {
  using namespace PatternMatch;
  Value *flag, *other;
  if (!match(&sum, m_c_Add(m_OneUse(m_ZExt(m_Value(flag))), m_Value(other))) || !flag->getType()->isIntegerTy(1) ||
      isa<Constant>(other) || match(other, m_ZExt(m_Value())))
    return nullptr;
  if (flag->hasOneUse() && (isa<FCmpInst>(flag) || !isInTightLoop(sum))) return nullptr;
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
  SmallVector<WeakVH> counts;  // the last of a chain first
  for (Instruction& inst : instructions(function))
    if (inst.getOpcode() == Instruction::Add && inst.getType()->isIntegerTy(32)) counts.push_back(&inst);
  for (const WeakVH& count : reverse(counts))
    if (auto* sum = cast_or_null<BinaryOperator>(count)) countInFloats(*sum);
  for (const WeakVH& count : counts) {
    auto* sum = cast_or_null<BinaryOperator>(count);
    if (!sum) continue;
    if (Value* counted = countUnder(*sum)) sum->replaceAllUsesWith(counted), sum->eraseFromParent();
  }
  return sums.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace tile::ir
