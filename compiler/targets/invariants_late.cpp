// invariants_late.cpp - see invariants_late.h.
#include "compiler/targets/invariants_late.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"

namespace tile::ir {
namespace {
using namespace llvm;

bool isCheap(const Instruction& inst) {
  if (!inst.getType()->isIntegerTy()) return false;
  if (isa<ICmpInst, SExtInst, ZExtInst, TruncInst>(inst)) return true;
  switch (inst.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor: return true;
    default: return false;
  }
}

/// The users' loops are around others, and the instruction is in front of them.
bool isWaiting(const Instruction& inst, const LoopInfo& loops) {
  if (inst.use_empty()) return false;
  const unsigned depth = loops.getLoopDepth(inst.getParent());
  return llvm::all_of(inst.users(), [&](const User* user) {
    auto* at = cast<Instruction>(user);
    if (isa<PHINode>(at)) return false;
    const Loop* loop = loops.getLoopFor(at->getParent());
    return loop && loop->getLoopDepth() > depth && !loop->isInnermost();
  });
}

}  // namespace

PreservedAnalyses InvariantsLate::run(Function& function, FunctionAnalysisManager&) {
  const DominatorTree dominators(function);
  const LoopInfo loops(dominators);
  SmallVector<Instruction*> all;
  for (BasicBlock& block : function)
    for (Instruction& inst : block)
      if (isCheap(inst)) all.push_back(&inst);
  for (Instruction* inst : llvm::reverse(all)) {
    if (!isWaiting(*inst, loops)) continue;
    // One for each block that has users, in front of the first.
    SmallDenseMap<BasicBlock*, SmallVector<Instruction*>> users;
    for (User* user : inst->users()) users[cast<Instruction>(user)->getParent()].push_back(cast<Instruction>(user));
    for (auto& [block, here] : users) {
      Instruction* first = *llvm::min_element(here, [](Instruction* a, Instruction* b) { return a->comesBefore(b); });
      Instruction* copy = inst->clone();
      copy->insertBefore(first->getIterator());
      for (Instruction* user : here) user->replaceUsesOfWith(inst, copy);
    }
    inst->eraseFromParent();
  }
  return PreservedAnalyses::none();
}

}  // namespace tile::ir
