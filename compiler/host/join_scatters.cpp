// join_scatters.cpp - puts scatters of one shape side by side that store what is computed from one tile: their loops
// become one (scatters_together.cpp), which reads that tile once.
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

/// Tiles, with elements of their own, that a scatter's value and mask are computed from in its loops.
DenseSet<Value> tilesOf(ScatterOp op) {
  DenseSet<Value> seen;
  SmallVector<Value> open{op.getValue()};
  if (op.getMask()) open.push_back(op.getMask());
  while (!open.empty()) {
    const Value v = open.pop_back_val();
    Operation* made = v.getDefiningOp();
    if (!isTile(v) || isa_and_nonnull<IotaOp, SplatOp, arith::ConstantOp>(made) || !seen.insert(v).second) continue;
    if (made && (isElementwise(made) || isa<BroadcastOp>(made))) llvm::append_range(open, made->getOperands());
  }
  return seen;
}

/// Whether a scatter through `root` may move down over the op.
bool mayPass(const MemoryRoot& root, Operation* op) {
  if (isMemoryEffectFree(op)) return true;
  if (isa<LoadOp, GatherOp>(op) ? isVolatile(op) : !isa<StoreOp, ScatterOp>(op)) return false;
  return rootOf(addressOf(op)).isApartFrom(root);
}

/// Whether the scatter may stand as late as in front of `later`, in the same block.
bool mayMove(ScatterOp op, ScatterOp later) {
  const MemoryRoot root = rootOf(op.getPtr());
  for (Operation* between = op->getNextNode(); between != later; between = between->getNextNode())
    if (!mayPass(root, between)) return false;
  return true;
}

bool share(const DenseSet<Value>& a, const DenseSet<Value>& b) {
  return llvm::any_of(a, [&](Value v) { return b.contains(v); });
}

class JoinScattersPass : public PassWrapper<JoinScattersPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinScattersPass)
  StringRef getArgument() const override { return "tile-join-scatters"; }
  StringRef getDescription() const override { return "put scatters side by side that store what one tile is read for"; }

  void runOnOperation() override {
    getOperation().walk([](Block* block) {
      ScatterOp later;
      DenseSet<Value> tiles;
      for (Operation& at : llvm::make_early_inc_range(llvm::reverse(*block))) {
        auto op = dyn_cast<ScatterOp>(at);
        if (!op || !isTile(op.getValue()) || op.getCache() == CacheHint::volatile_) continue;
        DenseSet<Value> own = tilesOf(op);
        const bool joins = later && host::shapeOf(op.getValue()) == host::shapeOf(later.getValue()) &&
                           share(own, tiles) && mayMove(op, later);
        if (joins)
          op->moveBefore(later), tiles.insert_range(own);
        else
          tiles = std::move(own);
        later = op;
      }
    });
  }
};

}  // namespace

std::unique_ptr<Pass> createJoinScattersPass() { return std::make_unique<JoinScattersPass>(); }

}  // namespace tile::ir
