// results_early.cpp - see results_early.h.
#include "compiler/targets/results_early.h"

#include "compiler/targets/movable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

namespace tile::ir {
namespace {
using namespace llvm;

/// Products that run by themselves and copies that land: work is where it is for their sake.
bool isAsynchronous(const Instruction& inst) {
  auto* call = dyn_cast<CallBase>(&inst);
  if (!call) return false;
  auto* text = dyn_cast<InlineAsm>(call->getCalledOperand());
  if (!text) return false;
  for (StringRef word : {"wgmma", "mbarrier", "cp.async", "mma.sync"})
    if (StringRef(text->getAsmString()).contains(word)) return true;
  return false;
}

class Early {
 public:
  Early(BasicBlock& block, const DataLayout& layout) : block_(block), layout_(layout) {}

  bool run() {
    for (Instruction& inst : block_) order_.push_back(&inst);
    if (order_.size() <= static_cast<size_t>(kMostAlive)) return false;
    number();
    measure();
    bool changed = false;
    size_t looks = 0;
    for (size_t at = 1; at < order_.size(); ++at) {
      // Nothing new is there where one of these follows another.
      if (isMovable(*order_[at]) || !isMovable(*order_[at - 1]) || isAsynchronous(*order_[at])) continue;
      if (alive_[at] <= kMostAlive) continue;
      if ((looks += order_.size() - at) > kMostLooks) break;
      if (!hoistTo(at)) continue;
      changed = true;
      order_.clear();
      for (Instruction& inst : block_) order_.push_back(&inst);
      number();
      measure();
      at = place_.lookup(kept_);
    }
    return changed;
  }

 private:
  void number() {
    place_.clear();
    for (auto [at, inst] : llvm::enumerate(order_)) place_[inst] = at;
  }
  static bool isValue(const Value* value) { return isa<Instruction, Argument>(value); }
  /// Where a value is read last in this block; its end where other blocks read it.
  size_t lastRead(const Value* value) const {
    size_t last = 0;
    for (const User* user : value->users()) {
      auto* inst = dyn_cast<Instruction>(user);
      if (!inst) continue;
      auto known = place_.find(inst);
      if (known == place_.end() || isa<PHINode>(inst)) return order_.size();
      last = std::max(last, known->second);
    }
    return last;
  }
  /// Registers of what is alive behind each instruction, of all that is read or made here.
  void measure() {
    SmallVector<int64_t> change(order_.size() + 1);
    DenseSet<const Value*> seen;
    auto count = [&](const Value* value, size_t from) {
      if (!seen.insert(value).second) return;
      const int64_t regs = registersOf(*value, layout_);
      change[from] += regs;
      change[std::min(lastRead(value), order_.size())] -= regs;
    };
    for (auto [at, inst] : llvm::enumerate(order_)) {
      for (const Value* operand : inst->operands())
        if (isValue(operand) && !place_.contains(dyn_cast<Instruction>(operand))) count(operand, 0);
      if (!inst->use_empty()) count(inst, at);
    }
    alive_.assign(order_.size(), 0);
    int64_t sum = 0;
    for (size_t at = 0; at < order_.size(); ++at) alive_[at] = sum += change[at];
  }

  bool hoistTo(size_t at) {
    DenseMap<Instruction*, unsigned> index;
    SmallVector<Instruction*> later;
    for (size_t i = at + 1; i < order_.size(); ++i) {
      Instruction* inst = order_[i];
      if (isAsynchronous(*inst)) break;
      if (!isMovable(*inst)) continue;
      const bool isReady = llvm::all_of(inst->operands(), [&](const Value* operand) {
        auto* maker = dyn_cast<Instruction>(operand);
        if (!maker) return true;
        auto place = place_.find(maker);
        return place == place_.end() || place->second < at || index.contains(const_cast<Instruction*>(maker));
      });
      if (!isReady) continue;
      index[inst] = later.size();
      later.push_back(inst);
    }
    // Those that read the same value of the many go together.
    EquivalenceClasses<Instruction*> together;
    DenseMap<const Value*, Instruction*> reader;
    for (Instruction* inst : later) {
      together.insert(inst);
      for (const Value* operand : inst->operands()) {
        if (!isValue(operand)) continue;
        auto* maker = dyn_cast<Instruction>(operand);
        if (maker && index.contains(const_cast<Instruction*>(maker))) {
          together.unionSets(inst, const_cast<Instruction*>(maker));
          continue;
        }
        // Addresses and scales that all read tie nothing together.
        if (registersOf(*operand, layout_) == 0 || !endsWith(operand, at, index)) continue;
        auto [first, isNew] = reader.insert({operand, inst});
        if (!isNew) together.unionSets(inst, first->second);
      }
    }
    DenseMap<Instruction*, int64_t> saved;
    for (auto [value, first] : reader) saved[together.getLeaderValue(first)] += registersOf(*value, layout_);
    for (Instruction* inst : later)
      if (llvm::any_of(inst->users(), [&](const User* user) { return !index.contains(cast<Instruction>(user)); }))
        saved[together.getLeaderValue(inst)] -= registersOf(*inst, layout_);
    SmallVector<Instruction*> chosen;
    int64_t total = 0;
    for (auto [leader, gain] : saved)
      if (gain > 0) total += gain;
    if (total < kWorthIt) return false;
    for (Instruction* inst : later)
      if (saved[together.getLeaderValue(inst)] > 0) chosen.push_back(inst);
    kept_ = order_[at];
    for (Instruction* inst : chosen) inst->moveBefore(kept_->getIterator());
    return true;
  }

  /// What no one but those instructions reads behind `at`.
  bool endsWith(const Value* value, size_t at, const DenseMap<Instruction*, unsigned>& index) const {
    return llvm::all_of(value->users(), [&](const User* user) {
      auto* inst = dyn_cast<Instruction>(user);
      if (!inst || isa<PHINode>(inst)) return false;
      auto place = place_.find(inst);
      return place != place_.end() && (place->second <= at || index.contains(const_cast<Instruction*>(inst)));
    });
  }

  static constexpr int64_t kWorthIt = 32;          ///< registers
  static constexpr size_t kMostLooks = 4'000'000;  ///< at instructions of a block
  BasicBlock& block_;
  const DataLayout& layout_;
  SmallVector<Instruction*> order_;
  DenseMap<const Instruction*, size_t> place_;
  SmallVector<int64_t> alive_;
  Instruction* kept_ = nullptr;
};

}  // namespace

PreservedAnalyses ResultsEarly::run(Function& function, FunctionAnalysisManager&) {
  const DataLayout& layout = function.getParent()->getDataLayout();
  bool changed = false;
  for (BasicBlock& block : function) changed |= Early(block, layout).run();
  if (!changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace tile::ir
