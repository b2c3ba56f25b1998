// own_counters.cpp - see own_counters.h. What steps through llvm.expect is no recurrence to scalar evolution, and the
// call is gone when instructions are chosen.
#include "compiler/targets/own_counters.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Pass.h"

namespace tile::ir {
using namespace llvm;

bool multiplies(const Function& function) {
  return any_of(instructions(function), [](const Instruction& inst) {
    auto* call = dyn_cast<CallInst>(&inst);
    if (!call) return false;
    if (auto* text = dyn_cast<InlineAsm>(call->getCalledOperand())) return text->getAsmString().contains("mma");
    return call->getCalledFunction() && call->getCalledFunction()->getName().contains("mma");
  });
}

namespace {

/// The comparison by which a loop goes back to its head; null: there is none.
ICmpInst* endOf(BasicBlock* latch) {
  auto* branch = dyn_cast<BranchInst>(latch->getTerminator());
  return branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
}

/// Where every iteration of `loop` adds the same to `phi`: the sum.
BinaryOperator* stepOf(PHINode& phi, const Loop& loop, BasicBlock* latch) {
  if (!phi.getType()->isIntegerTy() || phi.getNumIncomingValues() != 2) return nullptr;
  auto* next = dyn_cast<BinaryOperator>(phi.getIncomingValueForBlock(latch));
  if (!next || next->getOpcode() != Instruction::Add || next->getOperand(0) != &phi) return nullptr;
  return loop.contains(next) && loop.isLoopInvariant(next->getOperand(1)) ? next : nullptr;
}

/// Whether an address is made of it.
bool feedsAddress(Instruction* value) {
  SmallVector<Instruction*> open{value};
  SmallPtrSet<Instruction*, 16> seen{value};
  while (!open.empty()) {
    for (User* user : open.pop_back_val()->users()) {
      auto* inst = cast<Instruction>(user);
      if (inst->getType()->isPointerTy()) return true;
      const bool goesOn = isa<BinaryOperator, CastInst, PHINode, SelectInst>(inst) && inst->getType()->isIntegerTy();
      if (goesOn && seen.insert(inst).second) open.push_back(inst);
    }
  }
  return false;
}

bool hideCounted(Loop& loop) {
  BasicBlock* latch = loop.getLoopLatch();
  if (!latch) return false;
  bool changed = false;
  for (PHINode& phi : loop.getHeader()->phis()) {
    BinaryOperator* next = stepOf(phi, loop, latch);
    const bool isOnlyCounted = all_of(phi.users(), [&](User* u) { return u == next || u == endOf(latch); });
    if (!next || isOnlyCounted || feedsAddress(&phi)) continue;
    IRBuilder<> b(next->getNextNode());
    phi.setIncomingValueForBlock(
        latch, b.CreateIntrinsic(Intrinsic::expect, {phi.getType()}, {next, ConstantInt::get(phi.getType(), 0)}));
    changed = true;
  }
  return changed;
}

bool countAlone(Loop& loop) {
  BasicBlock *latch = loop.getLoopLatch(), *before = loop.getLoopPredecessor();
  ICmpInst* end = latch && before && loop.isInnermost() ? endOf(latch) : nullptr;
  auto* half = end && end->hasOneUse() ? dyn_cast<TruncInst>(end->getOperand(0)) : nullptr;
  if (!half || !half->getType()->isIntegerTy(32) || !loop.isLoopInvariant(end->getOperand(1))) return false;
  for (PHINode& phi : loop.getHeader()->phis()) {
    BinaryOperator* next = stepOf(phi, loop, latch);
    if (!next || next != half->getOperand(0)) continue;
    IRBuilder<> first(before->getTerminator()), b(end);
    PHINode* own = PHINode::Create(half->getType(), 2, "counter", phi.getIterator());
    Value* step = first.CreateTrunc(next->getOperand(1), half->getType());
    Value* sum = b.CreateAdd(own, step);
    own->addIncoming(first.CreateTrunc(phi.getIncomingValueForBlock(before), half->getType()), before);
    own->addIncoming(sum, latch);
    end->setOperand(0, sum);
    return true;
  }
  return false;
}

/// Addresses that are a counter added to something that stays become addresses that move on: where the assembler
/// unrolls the loop, it adds constants to one of them.
bool moveAddresses(Loop& loop) {
  constexpr size_t kShort = 128;  // instructions; longer loops are not unrolled
  BasicBlock *latch = loop.getLoopLatch(), *before = loop.getLoopPredecessor();
  size_t length = 0;
  for (BasicBlock* block : loop.blocks()) length += block->size();
  if (!latch || !before || !loop.isInnermost() || length > kShort) return false;
  bool changed = false;
  for (PHINode& phi : make_early_inc_range(loop.getHeader()->phis())) {
    BinaryOperator* next = stepOf(phi, loop, latch);
    if (!next || !phi.getType()->isIntegerTy(64)) continue;
    for (User* user : make_early_inc_range(phi.users())) {
      auto* address = dyn_cast<GetElementPtrInst>(user);
      if (!address || address->getNumIndices() != 1 || address->getOperand(1) != &phi || !loop.contains(address) ||
          !loop.isLoopInvariant(address->getPointerOperand()))
        continue;
      Type* element = address->getSourceElementType();
      IRBuilder<> first(before->getTerminator()), b(latch->getTerminator());
      PHINode* own = PHINode::Create(address->getType(), 2, "address", phi.getIterator());
      Value* start = phi.getIncomingValueForBlock(before);
      own->addIncoming(first.CreateGEP(element, address->getPointerOperand(), start), before);
      own->addIncoming(b.CreateGEP(element, own, next->getOperand(1)), latch);
      address->replaceAllUsesWith(own);
      address->eraseFromParent();
      changed = true;
    }
  }
  return changed;
}

struct OwnCounters : FunctionPass {
  static char ID;
  OwnCounters() : FunctionPass(ID) {}
  StringRef getPassName() const override { return "Counters of loops"; }
  void getAnalysisUsage(AnalysisUsage& usage) const override {
    usage.addRequired<LoopInfoWrapperPass>();
    usage.setPreservesCFG();
  }
  bool runOnFunction(Function& function) override {
    bool changed = false;
    if (multiplies(function)) return false;
    for (Loop* loop : getAnalysis<LoopInfoWrapperPass>().getLoopInfo().getLoopsInPreorder())
      changed |= static_cast<int>(countAlone(*loop)) | static_cast<int>(moveAddresses(*loop));
    return changed;
  }
};
char OwnCounters::ID = 0;

}  // namespace

PreservedAnalyses HideCounted::run(Function& function, FunctionAnalysisManager& analyses) {
  bool changed = false;
  if (multiplies(function)) return PreservedAnalyses::all();
  for (Loop* loop : analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder()) changed |= hideCounted(*loop);
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

FunctionPass* createOwnCounters() { return new OwnCounters; }

}  // namespace tile::ir
