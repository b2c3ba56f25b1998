// blocks.cpp - see blocks.h.
#include "compiler/gpu/forms/blocks.h"

#include "compiler/analysis/memory_roots.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {
using namespace mlir;

std::optional<SmallVector<Operation*>> partsBehind(Operation* op, Operation* place, bool withReads) {
  SmallVector<Operation*> parts, pending{op};
  llvm::DenseSet<Operation*> seen;
  auto mayMove = [&](Operation* made) {
    const bool isRead = withReads && isa<LoadOp, GatherOp>(made) && !isVolatile(made);
    return !made->getNumRegions() && (isRead || isMemoryEffectFree(made));
  };
  auto needs = [&](Value value) {
    Operation* made = value.getDefiningOp();
    if (!made || made->getBlock() != place->getBlock() || (made != place && made->isBeforeInBlock(place))) return true;
    if (!mayMove(made)) return false;
    if (seen.insert(made).second) parts.push_back(made), pending.push_back(made);
    return true;
  };
  while (!pending.empty()) {
    bool all = true;
    pending.pop_back_val()->walk([&](Operation* inner) { all &= llvm::all_of(inner->getOperands(), needs); });
    if (!all) return std::nullopt;
  }
  llvm::sort(parts, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  return parts;
}

}  // namespace tile::ir
