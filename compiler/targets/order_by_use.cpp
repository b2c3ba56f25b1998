// order_by_use.cpp - see order_by_use.h.
#include "compiler/targets/order_by_use.h"

#include "compiler/targets/movable.h"
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

using Stretch = SmallVector<Instruction*>;

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

/// As byUse, but what is needed behind the stretch takes turns: next comes what needs fewest instructions that are not
/// there yet. An element's results, wherever they are stored, follow each other. Of operands the one with more behind
/// it comes first: sums over elements take in one after the other.
class ByNearness {
 public:
  ByNearness(const Stretch& stretch, const DenseSet<const Instruction*>& members) : members_(members) {
    for (Instruction* inst : stretch) {
      int depth = 0;
      for (const Value* operand : inst->operands())
        if (auto* maker = dyn_cast<Instruction>(operand); maker && members.contains(maker))
          depth = std::max(depth, depth_.lookup(maker) + 1);
      depth_[inst] = depth;
      if (llvm::any_of(inst->users(), [&](const User* user) {
            auto* reader = dyn_cast<Instruction>(user);
            return reader && !members.contains(reader);
          }))
        roots_.push_back(inst);
    }
  }
  Stretch order() {
    constexpr size_t kMostRoots = 512;
    if (roots_.size() > kMostRoots) return {};
    while (!roots_.empty()) {
      size_t best = 0;
      int fewest = INT_MAX;
      for (auto [at, root] : llvm::enumerate(roots_)) {
        DenseSet<const Instruction*> seen;
        const int missing = countMissing(root, fewest, seen);
        if (missing < fewest) fewest = missing, best = at;
      }
      place(roots_[best]);
      roots_.erase(roots_.begin() + best);
    }
    return std::move(order_);
  }

 private:
  int countMissing(Instruction* inst, int limit, DenseSet<const Instruction*>& seen) {
    if (placed_.contains(inst) || !members_.contains(inst) || !seen.insert(inst).second) return 0;
    int missing = 1;
    for (Value* operand : inst->operands())
      if (auto* maker = dyn_cast<Instruction>(operand); maker && missing < limit)
        missing += countMissing(maker, limit - missing, seen);
    return missing;
  }
  void place(Instruction* inst) {
    if (!members_.contains(inst) || !placed_.insert(inst).second) return;
    SmallVector<Instruction*> operands;
    for (Value* operand : inst->operands())
      if (auto* maker = dyn_cast<Instruction>(operand); maker && members_.contains(maker)) operands.push_back(maker);
    llvm::stable_sort(operands, [&](Instruction* a, Instruction* b) { return depth_.lookup(a) > depth_.lookup(b); });
    for (Instruction* operand : operands) place(operand);
    order_.push_back(inst);
  }

  const DenseSet<const Instruction*>& members_;
  DenseMap<const Instruction*, int> depth_;
  DenseSet<const Instruction*> placed_;
  Stretch roots_, order_;
};

/// Reads of shared memory wait for nothing that the stretch does, and nothing in it writes: code that spilled has them
/// in front of what uses them, a vector for the columns of a tile element by element.
bool mayWait(const Instruction& inst) {
  auto* load = dyn_cast<LoadInst>(&inst);
  constexpr unsigned kShared = 3;
  return load && load->isSimple() && load->getPointerAddressSpace() == kShared;
}

bool arrange(const Stretch& stretch, Instruction* behind, const DataLayout& layout, bool again) {
  if (static_cast<int64_t>(stretch.size()) <= kMostAlive) return false;
  const DenseSet<const Instruction*> members(stretch.begin(), stretch.end());
  const int64_t before = mostAlive(stretch, members, layout);
  if (before <= kMostAlive) return false;
  Stretch order = byUse(stretch, members);
  if (again && (order.size() != stretch.size() || 4 * mostAlive(order, members, layout) > 3 * before))
    order = ByNearness(stretch, members).order();
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
      if (isMovable(inst) || (again && mayWait(inst))) {
        stretch.push_back(&inst);
        continue;
      }
      changed |= arrange(stretch, &inst, layout, again);
      stretch.clear();
    }
  }
  if (!changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace tile::ir
