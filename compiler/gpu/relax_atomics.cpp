// relax_atomics.cpp - updates that order nothing are relaxed: two barriers and two fences less for each.
// Before: a program whose only writes are atomics of which nobody reads the result (acq_rel unless told otherwise), and
//         that reads nothing a program of the kernel writes: sums, counts, maxima of what it loads.
// After:  relaxed atomics. No program of the launch could see their order; launches behind it see all of them, as they
//         see everything. Updates for the whole system, whose readers may be elsewhere, stay as they are.
// A single plain store keeps the order of all: an update may be the flag that says the data is there. So may an update
// of one element beside others, which keeps its order (and with it that of all updates in front of it).
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/dot_passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

class RelaxAtomicsPass : public PassWrapper<RelaxAtomicsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RelaxAtomicsPass)
  StringRef getArgument() const override { return "tile-relax-atomics"; }
  StringRef getDescription() const override { return "relax atomics whose order no program of the kernel can see"; }
  void runOnOperation() override {
    SmallVector<AtomicRmwOp> updates;
    SmallVector<Value> read;
    const bool isKnown = !getOperation()
                              ->walk([&](Operation* op) {
                                return look(op, updates, read) ? WalkResult::advance() : WalkResult::interrupt();
                              })
                              .wasInterrupted();
    if (!isKnown) return;
    for (Value address : read)
      for (AtomicRmwOp update : updates)
        if (!rootOf(address).isApartFrom(rootOf(update.getPtr()))) return;
    for (AtomicRmwOp update : updates)
      if (updates.size() == 1 || !isOfOneElement(update)) update.setOrder(MemOrder::relaxed);
  }

 private:
  static bool isOfOneElement(AtomicRmwOp update) {
    return !isTile(update.getValue()) || tileType(update.getValue()).getNumElements() == 1;
  }

  /// Notes what the op reads and updates; false: it does something else that others may see.
  static bool look(Operation* op, SmallVectorImpl<AtomicRmwOp>& updates, SmallVectorImpl<Value>& read) {
    if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op)) return true;
    if (auto update = dyn_cast<AtomicRmwOp>(op)) {
      updates.push_back(update);
      return update.getResult().use_empty() && update.getScope() != MemScope::sys;
    }
    if (!isa<LoadOp, GatherOp>(op) || isVolatile(op)) return false;
    read.push_back(addressOf(op));
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> createRelaxAtomicsPass() { return std::make_unique<RelaxAtomicsPass>(); }

}  // namespace tile::ir
