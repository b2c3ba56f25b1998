// narrow_phis.cpp - see narrow_phis.h.
#include "compiler/targets/narrow_phis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace tile::ir {
namespace {
using namespace llvm;

/// The constant in the narrow type, or null where widening it would not give it back.
Constant* narrowed(Constant* wide, Instruction::CastOps widening, Type* narrow) {
  if (isa<PoisonValue>(wide)) return PoisonValue::get(narrow);
  if (isa<UndefValue>(wide)) return UndefValue::get(narrow);  // less than any number of 64 bits, not poison
  if (auto* number = dyn_cast<ConstantInt>(wide)) {
    const unsigned from = narrow->getIntegerBitWidth(), to = number->getBitWidth();
    const APInt cut = number->getValue().trunc(from);
    const APInt back = widening == Instruction::SExt ? cut.sext(to) : cut.zext(to);
    return back == number->getValue() ? ConstantInt::get(narrow, cut) : nullptr;
  }
  if (auto* number = dyn_cast<ConstantFP>(wide)) {
    APFloat cut = number->getValueAPF();
    bool loses = false;
    cut.convert(narrow->getFltSemantics(), APFloat::rmNearestTiesToEven, &loses);
    return loses || cut.isNaN() ? nullptr : ConstantFP::get(narrow, cut);
  }
  return nullptr;
}

bool widensTo64(const Instruction& inst) {
  return isa<SExtInst, ZExtInst, FPExtInst>(inst) && inst.getType()->isSized() && !inst.getType()->isVectorTy() &&
         inst.getType()->getScalarSizeInBits() == 64;
}

bool narrow(PHINode& phi) {
  CastInst* like = nullptr;
  for (Value* value : phi.incoming_values()) {
    auto* cast = dyn_cast<CastInst>(value);
    if (!cast) continue;
    if (!widensTo64(*cast) || !cast->hasOneUse()) return false;
    if (like && (cast->getOpcode() != like->getOpcode() || cast->getSrcTy() != like->getSrcTy())) return false;
    like = cast;
  }
  if (!like) return false;
  SmallVector<Value*> sources;
  for (Value* value : phi.incoming_values()) {
    auto* constant = dyn_cast<Constant>(value);
    if (auto* cast = dyn_cast<CastInst>(value))
      sources.push_back(cast->getOperand(0));
    else if (Constant* cut = constant ? narrowed(constant, like->getOpcode(), like->getSrcTy()) : nullptr)
      sources.push_back(cut);
    else
      return false;
  }
  const auto place = phi.getParent()->getFirstInsertionPt();
  if (place == phi.getParent()->end()) return false;
  IRBuilder<> builder(&phi);
  PHINode* meet = builder.CreatePHI(like->getSrcTy(), phi.getNumIncomingValues());
  for (auto [source, block] : llvm::zip_equal(sources, phi.blocks())) meet->addIncoming(source, block);
  builder.SetInsertPoint(phi.getParent(), place);
  phi.replaceAllUsesWith(builder.CreateCast(like->getOpcode(), meet, phi.getType()));
  const SmallVector<Value*> wide(phi.incoming_values());
  phi.eraseFromParent();
  for (Value* value : wide)
    if (auto* cast = dyn_cast<CastInst>(value); cast && cast->use_empty()) cast->eraseFromParent();
  return true;
}

}  // namespace

PreservedAnalyses NarrowPhis::run(Function& function, FunctionAnalysisManager&) {
  bool changed = false;
  for (bool again = true; again; changed |= again) {
    again = false;
    // What meets behind other ways may have been widened behind those a moment ago.
    for (BasicBlock& block : function)
      for (PHINode& phi : llvm::make_early_inc_range(block.phis())) again |= narrow(phi);
  }
  if (!changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace tile::ir
