// multicast.cpp - see multicast.h.
#include "compiler/gpu/roles/multicast.h"

#include "compiler/analysis/definitions.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/shared_memory.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The same in all programs that differ in program_id 0 only.
bool areSame(ValueRange values) {
  return llvm::all_of(definitionsBehind(values), [](Operation* op) {
    if (auto id = dyn_cast<ProgramIdOp>(op)) return id.getAxis() != 0;
    return op->getNumRegions() == 0 && isMemoryEffectFree(op);
  });
}

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
  bool any = false;
  for (const LoadGroup& group : groups)
    for (Operation* op : group.loads) {
      auto load = cast<LoadSharedOp>(op);
      const bool inLoop = op->getParentOfType<LoopLikeOpInterface>() != nullptr;
      if (!inLoop || !areSame(load.getIndices())) continue;
      auto box = tmaBox(load, facts, nullptr, cluster.getInt());
      if (!box || box->made) continue;  // a program waits for its own copies before it writes a map anew
      op->setAttr(kMulticastAttr, UnitAttr::get(func.getContext()));
      any = true;
    }
  if (!any) refuse("no tile of a loop is the same for program ids that differ in x only");
}

}  // namespace tile::ir
