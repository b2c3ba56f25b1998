// join_stores.cpp - puts stores of one shape side by side that store what is computed from one tile: their loops become
// one (stores_together.cpp), which reads that tile once. Boxes of views join boxes, scatters join scatters.
// Before: store(p, x + d); some work; store(q, x - d)
// After:  some work; store(p, x + d); store(q, x - d)
#include "compiler/analysis/memory_roots.h"
#include "compiler/host/host.h"
#include "compiler/host/plan.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
namespace {
using namespace mlir;

/// The tile that a store or scatter writes; null for other ops, and for those that stay where they are.
Value storedTile(Operation* op) {
  auto box = dyn_cast<StoreOp>(op);
  auto scatter = dyn_cast<ScatterOp>(op);
  if ((!box && !scatter) || (box ? box.getCache() : scatter.getCache()) == CacheHint::volatile_) return {};
  const Value tile = box ? box.getValue() : scatter.getValue();
  return isTile(tile) ? tile : Value();
}

/// Tiles, with elements of their own, that what is stored is computed from in the loops of the store.
DenseSet<Value> tilesOf(Operation* op) {
  DenseSet<Value> seen;
  SmallVector<Value> open{storedTile(op)};
  if (auto scatter = dyn_cast<ScatterOp>(op); scatter && scatter.getMask()) open.push_back(scatter.getMask());
  while (!open.empty()) {
    const Value v = open.pop_back_val();
    Operation* made = v.getDefiningOp();
    if (!isTile(v) || isa_and_nonnull<IotaOp, SplatOp, arith::ConstantOp>(made) || !seen.insert(v).second) continue;
    if (made && (isElementwise(made) || isa<BroadcastOp>(made))) llvm::append_range(open, made->getOperands());
  }
  return seen;
}

/// Whether a store through `root` may move down over the op.
bool mayPass(const MemoryRoot& root, Operation* op) {
  if (isMemoryEffectFree(op)) return true;
  if (isa<LoadOp, GatherOp>(op) ? isVolatile(op) : !isa<StoreOp, ScatterOp>(op)) return false;
  return rootOf(addressOf(op)).isApartFrom(root);
}

/// Whether the store may stand as late as in front of `later`, in the same block.
bool mayMove(Operation* op, Operation* later) {
  const MemoryRoot root = rootOf(addressOf(op));
  for (Operation* between = op->getNextNode(); between != later; between = between->getNextNode())
    if (!mayPass(root, between)) return false;
  return true;
}

bool share(const DenseSet<Value>& a, const DenseSet<Value>& b) {
  return llvm::any_of(a, [&](Value v) { return b.contains(v); });
}

class JoinStoresPass : public PassWrapper<JoinStoresPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinStoresPass)
  StringRef getArgument() const override { return "tile-join-stores"; }
  StringRef getDescription() const override { return "put stores side by side of what is computed from one tile"; }

  void runOnOperation() override {
    getOperation().walk([](Block* block) {
      Operation* later = nullptr;
      DenseSet<Value> tiles;
      for (Operation& op : llvm::make_early_inc_range(llvm::reverse(*block))) {
        const Value stored = storedTile(&op);
        if (!stored) continue;
        DenseSet<Value> own = tilesOf(&op);
        const bool joins = later && op.getName() == later->getName() &&
                           host::shapeOf(stored) == host::shapeOf(storedTile(later)) && share(own, tiles) &&
                           mayMove(&op, later);
        if (joins)
          op.moveBefore(later), tiles.insert_range(own);
        else
          tiles = std::move(own);
        later = &op;
      }
    });
  }
};

}  // namespace

std::unique_ptr<Pass> createJoinStoresPass() { return std::make_unique<JoinStoresPass>(); }

}  // namespace tile::ir
