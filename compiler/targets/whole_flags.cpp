// whole_flags.cpp - see whole_flags.h. Not in kernels with products of tensor cores, which are at the limit of
// their registers, and for numbers only.
#include "compiler/targets/whole_flags.h"

#include "compiler/targets/own_counters.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

namespace tile::ir {
using namespace llvm;

namespace {

Value* whole(IRBuilder<>& b, BinaryOperator* flag) {
  Type* type = b.getInt1Ty();
  auto* form = FunctionType::get(type, {type, type}, false);
  const char* text = flag->getOpcode() == Instruction::And ? "and.pred $0, $1, $2;" : "or.pred $0, $1, $2;";
  CallInst* call = b.CreateCall(InlineAsm::get(form, text, "=b,b,b", /*hasSideEffects=*/false),
                                {flag->getOperand(0), flag->getOperand(1)});
  call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  return call;
}

/// A comparison that nothing else asks for takes the other flag along; one that is wanted alone, too, would be repeated.
bool isOwnComparison(const Value* flag) { return isa<CmpInst>(flag) && flag->hasOneUse(); }

}  // namespace

PreservedAnalyses WholeFlags::run(Function& function, FunctionAnalysisManager&) {
  if (multiplies(function)) return PreservedAnalyses::all();
  SmallVector<SelectInst*> choices;
  for (Instruction& inst : instructions(function)) {
    auto* select = dyn_cast<SelectInst>(&inst);
    auto* flag = select ? dyn_cast<BinaryOperator>(select->getCondition()) : nullptr;
    if (flag && flag->hasOneUse() && flag->getType()->isIntegerTy(1) && select->getType()->isFPOrFPVectorTy() &&
        (flag->getOpcode() == Instruction::And || flag->getOpcode() == Instruction::Or) &&
        (isOwnComparison(flag->getOperand(0)) || isOwnComparison(flag->getOperand(1))))
      choices.push_back(select);
  }
  for (SelectInst* select : choices) {
    auto* flag = cast<BinaryOperator>(select->getCondition());
    IRBuilder<> b(flag);
    select->setCondition(whole(b, flag));
    flag->eraseFromParent();
  }
  return choices.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace tile::ir
