// multicast.cpp - see multicast.h.
#include "compiler/gpu/multicast.h"

#include "compiler/gpu/shared_memory.h"
#include "compiler/gpu/tma_box.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Whether values are the same in all programs that differ in program_id 0 only.
class Sameness {
 public:
  bool isSame(Value value) {
    auto [it, isNew] = same_.try_emplace(value, true);  // around a loop: the same unless something else says no
    if (!isNew) return it->second;
    const bool same = find(value);
    same_[value] = same;
    return same;
  }

 private:
  bool areSame(ValueRange values) {
    return llvm::all_of(values, [&](Value v) { return isSame(v); });
  }

  bool find(Value value) {
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      Operation* parent = arg.getOwner()->getParentOp();
      if (isa<func::FuncOp>(parent)) return true;
      auto loop = dyn_cast<scf::ForOp>(parent);
      if (!loop || !areSame({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})) return false;
      return arg == loop.getInductionVar() ||
             areSame({loop.getTiedLoopInit(arg)->get(), loop.getTiedLoopYieldedValue(arg)->get()});
    }
    Operation* op = value.getDefiningOp();
    const unsigned index = cast<OpResult>(value).getResultNumber();
    if (auto id = dyn_cast<ProgramIdOp>(op)) return id.getAxis() != 0;
    if (auto loop = dyn_cast<scf::ForOp>(op)) return isSame(loop.getRegionIterArg(index));
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return isSame(branch.getCondition()) && isSame(branch.thenYield().getOperand(index)) &&
             isSame(branch.elseYield().getOperand(index));
    return op->getNumRegions() == 0 && isMemoryEffectFree(op) && areSame(op->getOperands());
  }

  llvm::DenseMap<Value, bool> same_;
};

}  // namespace

void markShared(func::FuncOp func, const std::vector<LoadGroup>& groups, const RoleSlice& slice, const Facts& facts) {
  auto cluster = func->getAttrOfType<IntegerAttr>(kClusterAttr);
  if (!cluster || cluster.getInt() < 2) return;
  auto refuse = [&](const char* why) { func.emitRemark() << "programs of a cluster copy for themselves: " << why; };
  if (slice.isUneven()) return refuse("they differ in what they copy");
  if (llvm::any_of(groups, [](const LoadGroup& group) { return group.byThreads; }))
    return refuse("their threads copy tiles that are no boxes of views");
  if (llvm::any_of(groups, [](const LoadGroup& group) { return !group.turned.empty(); }))
    return refuse("their producers turn tiles");
  Sameness sameness;
  bool any = false;
  for (const LoadGroup& group : groups)
    for (Operation* op : group.loads) {
      auto load = cast<LoadSharedOp>(op);
      const bool inLoop = op->getParentOfType<LoopLikeOpInterface>() != nullptr;
      const bool isSame = llvm::all_of(load.getIndices(), [&](Value v) { return sameness.isSame(v); });
      if (!inLoop || !isSame) continue;
      if (!tmaBox(load, facts, nullptr, cluster.getInt())) continue;
      op->setAttr(kMulticastAttr, UnitAttr::get(func.getContext()));
      any = true;
    }
  if (!any) refuse("no tile of a loop is the same for program ids that differ in x only");
}

}  // namespace tile::ir
