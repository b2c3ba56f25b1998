// order_by_use.cpp - see order_by_use.h.
#include "compiler/targets/order_by_use.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace tile::ir {
namespace {
using namespace llvm;

/// More than this, of a thread's 255 registers, is too much: addresses, counters and what only passes by come on top.
constexpr int64_t kMostAlive = 208;

using Stretch = SmallVector<Instruction*>;

/// Instructions that may stand anywhere between what they use and what uses them.
bool isMovable(const Instruction& inst) {
  if (isa<PHINode>(inst) || inst.isTerminator() || inst.mayHaveSideEffects() || inst.mayReadFromMemory()) return false;
  auto* call = dyn_cast<CallBase>(&inst);
  return !call || (!call->isConvergent() && !call->isInlineAsm());
}

/// 32-bit registers of a value; predicates have registers of their own.
int64_t registersOf(const Value& value, const DataLayout& layout) {
  Type* type = value.getType();
  if (!type->isSized() || type->isIntegerTy(1)) return 0;
  return static_cast<int64_t>((layout.getTypeSizeInBits(type).getFixedValue() + 31) / 32);
}

/// Most registers that values used or made in a stretch take at a time, in a given order.
int64_t mostAlive(const Stretch& order, const DenseSet<const Instruction*>& members, const DataLayout& layout) {
  DenseMap<const Value*, size_t> lastUse;
  int64_t alive = 0;
  for (auto [at, inst] : llvm::enumerate(order)) {
    for (const Value* operand : inst->operands()) {
      if (isa<Constant>(operand) || isa<MetadataAsValue>(operand) || isa<InlineAsm>(operand)) continue;
      auto [known, isNew] = lastUse.insert({operand, at});
      known->second = at;
      auto* maker = dyn_cast<Instruction>(operand);
      if (isNew && !(maker && members.contains(maker))) alive += registersOf(*operand, layout);
    }
  }
  SmallVector<SmallVector<const Value*, 2>> ends(order.size());
  for (auto [value, at] : lastUse) {
    auto* maker = dyn_cast<Instruction>(value);
    // What is also used behind the stretch stays alive to its end.
    const bool passes = llvm::any_of(value->users(), [&](const User* user) {
      auto* inst = dyn_cast<Instruction>(user);
      return inst && !members.contains(inst) && (!maker || members.contains(maker));
    });
    if (!passes) ends[at].push_back(value);
  }
  int64_t most = alive;
  for (auto [at, inst] : llvm::enumerate(order)) {
    for (const Value* value : ends[at]) alive -= registersOf(*value, layout);
    alive += registersOf(*inst, layout);
    most = std::max(most, alive);
  }
  return most;
}

/// What is needed behind the stretch, in the order of the stretch, each behind what it needs itself.
Stretch byUse(const Stretch& stretch, const DenseSet<const Instruction*>& members) {
  Stretch order;
  DenseSet<const Instruction*> placed;
  SmallVector<std::pair<Instruction*, unsigned>> path;  // and the operand to look at next
  for (Instruction* root : stretch) {
    const bool isNeeded = llvm::any_of(root->users(), [&](const User* user) {
      auto* inst = dyn_cast<Instruction>(user);
      return inst && !members.contains(inst);
    });
    if (!isNeeded || !placed.insert(root).second) continue;
    path.push_back({root, 0});
    while (!path.empty()) {
      auto& [inst, next] = path.back();
      if (next == inst->getNumOperands()) {
        order.push_back(inst);
        path.pop_back();
        continue;
      }
      auto* operand = dyn_cast<Instruction>(inst->getOperand(next++));
      if (operand && members.contains(operand) && placed.insert(operand).second) path.push_back({operand, 0});
    }
  }
  return order;
}

bool arrange(const Stretch& stretch, Instruction* behind, const DataLayout& layout) {
  if (static_cast<int64_t>(stretch.size()) <= kMostAlive) return false;
  const DenseSet<const Instruction*> members(stretch.begin(), stretch.end());
  const int64_t before = mostAlive(stretch, members, layout);
  if (before <= kMostAlive) return false;
  const Stretch order = byUse(stretch, members);
  // Dead instructions are in no order; and a little less would not be worth another schedule.
  if (order.size() != stretch.size() || 4 * mostAlive(order, members, layout) > 3 * before) return false;
  for (Instruction* inst : order) inst->moveBefore(behind->getIterator());
  return true;
}

}  // namespace

PreservedAnalyses OrderByUse::run(Function& function, FunctionAnalysisManager&) {
  const DataLayout& layout = function.getParent()->getDataLayout();
  bool changed = false;
  for (BasicBlock& block : function) {
    Stretch stretch;
    for (Instruction& inst : llvm::make_early_inc_range(block)) {
      if (isMovable(inst)) {
        stretch.push_back(&inst);
        continue;
      }
      changed |= arrange(stretch, &inst, layout);
      stretch.clear();
    }
  }
  if (!changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace tile::ir
