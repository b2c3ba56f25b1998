// whole_words.cpp - see whole_words.h.
#include "compiler/targets/whole_words.h"

#include "compiler/targets/own_counters.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

namespace tile::ir {
using namespace llvm;

namespace {

bool isNarrow(const Type* type) { return type->isIntegerTy(8) || type->isIntegerTy(16); }

/// Arithmetic whose low bits depend on low bits alone.
bool isArithmetic(const Instruction& inst) {
  switch (inst.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
      return isNarrow(inst.getType());
    case Instruction::Shl:
      return isNarrow(inst.getType()) && isa<ConstantInt>(inst.getOperand(1));
    default:
      return false;
  }
}
/// Functions of the whole number: the sign, or zeros, have to stand above.
bool isFunction(const Instruction& inst) {
  auto* call = dyn_cast<IntrinsicInst>(&inst);
  if (!call || !isNarrow(inst.getType())) return false;
  const Intrinsic::ID id = call->getIntrinsicID();
  return id == Intrinsic::abs || id == Intrinsic::smax || id == Intrinsic::smin || id == Intrinsic::umax ||
         id == Intrinsic::umin;
}
/// What may stand between: bits of halves come this way, too, which are no numbers.
bool isBetween(const Instruction& inst) {
  switch (inst.getOpcode()) {
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::Select:
      return isNarrow(inst.getType());
    default:
      return false;
  }
}

class Widening {
 public:
  explicit Widening(Function& function) : function_(function) {
    SmallVector<Instruction*> left;
    for (Instruction& inst : instructions(function))
      if (isArithmetic(inst) || isFunction(inst)) left.push_back(&inst);
    while (!left.empty()) {
      Instruction* inst = left.pop_back_val();
      if (!chosen_.insert(inst)) continue;
      auto alsoBetween = [&](Value* v) {
        if (auto* next = dyn_cast<Instruction>(v); next && isBetween(*next)) left.push_back(next);
      };
      for (Value* operand : inst->operands()) alsoBetween(operand);
      for (User* user : inst->users()) alsoBetween(user);
    }
  }

  bool run() {
    if (chosen_.empty()) return false;
    for (BasicBlock* block : ReversePostOrderTraversal<Function*>(&function_))
      for (Instruction& inst : make_early_inc_range(*block))
        if (chosen_.contains(&inst)) widen(inst);
    for (Instruction* inst : llvm::reverse(done_))
      if (inst->use_empty()) inst->eraseFromParent();
    return true;
  }

 private:
  void widen(Instruction& inst) {
    IRBuilder<> b(&inst);
    if (isFunction(inst)) return widenFunction(cast<IntrinsicInst>(inst), b);
    const bool isChoice = isa<SelectInst>(inst);
    Value* x = whole(inst.getOperand(isChoice ? 1 : 0));
    Value* y = whole(inst.getOperand(isChoice ? 2 : 1));
    Value* result = isChoice ? b.CreateSelect(inst.getOperand(0), x, y)
                             : b.CreateBinOp(static_cast<Instruction::BinaryOps>(inst.getOpcode()), x, y);
    replace(inst, result, b);
  }
  void widenFunction(IntrinsicInst& call, IRBuilder<>& b) {
    const Intrinsic::ID id = call.getIntrinsicID();
    const bool isUnsigned = id == Intrinsic::umax || id == Intrinsic::umin;
    auto extended = [&](unsigned i) {
      Value* x = call.getArgOperand(i);
      return isUnsigned ? b.CreateZExt(x, word()) : b.CreateSExt(x, word());
    };
    replace(call, b.CreateBinaryIntrinsic(id, extended(0), id == Intrinsic::abs ? b.getFalse() : extended(1)), b);
  }
  void replace(Instruction& inst, Value* by, IRBuilder<>& b) {
    Value* cut = b.CreateTrunc(by, inst.getType());
    words_[cut] = by;
    inst.replaceAllUsesWith(cut);
    done_.push_back(&inst);
  }
  /// A word whose low bits are the number.
  Value* whole(Value* narrow) {
    if (auto* constant = dyn_cast<ConstantInt>(narrow)) return ConstantInt::get(word(), constant->getValue().sext(32));
    Value*& known = words_[narrow];
    if (known) return known;
    IRBuilder<> b(function_.getContext());
    auto* inst = dyn_cast<Instruction>(narrow);
    if (auto* cut = dyn_cast_or_null<TruncInst>(inst)) {
      b.SetInsertPoint(cut);
      return known = b.CreateZExtOrTrunc(cut->getOperand(0), word());
    }
    if (!inst || inst->isTerminator())
      b.SetInsertPoint(&*function_.getEntryBlock().getFirstInsertionPt());
    else
      b.SetInsertPoint(*inst->getInsertionPointAfterDef());
    return known = b.CreateZExt(narrow, word());
  }
  Type* word() { return Type::getInt32Ty(function_.getContext()); }

  Function& function_;
  SetVector<Instruction*> chosen_;
  SmallVector<Instruction*> done_;
  DenseMap<Value*, Value*> words_;
};

/// Distances of bytes, |a - b| of words: the code generator would take the smaller from the larger of narrow numbers.
bool hideDistances(Function& function) {
  using namespace PatternMatch;
  SmallVector<IntrinsicInst*> found;
  for (Instruction& inst : instructions(function)) {
    auto* call = dyn_cast<IntrinsicInst>(&inst);
    if (call && call->getIntrinsicID() == Intrinsic::abs && inst.getType()->isIntegerTy(32) &&
        (match(call->getArgOperand(0), m_Sub(m_ZExt(m_Value()), m_ZExt(m_Value()))) ||
         match(call->getArgOperand(0), m_Sub(m_SExt(m_Value()), m_SExt(m_Value())))))
      found.push_back(call);
  }
  for (IntrinsicInst* call : found) {
    IRBuilder<> b(call);
    auto* type = FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()}, false);
    auto* text = InlineAsm::get(type, "abs.s32 $0, $1;", "=r,r", false);
    call->replaceAllUsesWith(b.CreateCall(text, {call->getArgOperand(0)}));
    call->eraseFromParent();
  }
  return !found.empty();
}

}  // namespace

PreservedAnalyses WholeWords::run(Function& function, FunctionAnalysisManager&) {
  if (multiplies(function)) return PreservedAnalyses::all();
  const bool widened = Widening(function).run(), hid = hideDistances(function);
  return widened || hid ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace tile::ir
