// relax_atomics.cpp - updates that order nothing are relaxed: two barriers and two fences less for each.
// Before: a program whose atomics nobody reads the results of (acq_rel unless told otherwise), and that reads nothing
//         that they update: sums, counts, maxima of what it loads.
// After:  relaxed atomics. No program of the launch could see their order; launches behind it see all of them, as they
//         see everything. Updates for the whole system, whose readers may be elsewhere, stay as they are.
// Beside a plain store an update may be the flag that says the data is there, and so may one of one element beside
// others: these keep their order (and with it that of all updates in front of them). Sums and extremes of floats are
// nobody's flags: gradients of parameters that are added up beside the gradients that are stored.
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/dot_passes.h"
#include "mlir/IR/TypeUtilities.h"
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
    bool stores = false;
    const bool isKnown =
        !getOperation()
             ->walk([&](Operation* op) {
               return look(op, updates, read, stores) ? WalkResult::advance() : WalkResult::interrupt();
             })
             .wasInterrupted();
    if (!isKnown) return;
    for (Value address : read)
      for (AtomicRmwOp update : updates)
        if (!rootOf(address).isApartFrom(rootOf(update.getPtr()))) return;
    for (AtomicRmwOp update : updates)
      if (isOfFloats(update) || (!stores && (updates.size() == 1 || !isOfOneElement(update))))
        update.setOrder(MemOrder::relaxed);
  }

 private:
  static bool isOfOneElement(AtomicRmwOp update) {
    return !isTile(update.getValue()) || tileType(update.getValue()).getNumElements() == 1;
  }

  static bool isOfFloats(AtomicRmwOp update) {
    return isa<FloatType>(getElementTypeOrSelf(update.getValue().getType())) && update.getKind() != RmwKind::exchange;
  }

  /// Notes what the op reads and updates; false: it does something else that others may see.
  static bool look(Operation* op, SmallVectorImpl<AtomicRmwOp>& updates, SmallVectorImpl<Value>& read, bool& stores) {
    if (op->getNumRegions() || op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op)) return true;
    if (auto update = dyn_cast<AtomicRmwOp>(op)) {
      updates.push_back(update);
      return update.getResult().use_empty() && update.getScope() != MemScope::sys;
    }
    if (isa<StoreOp, ScatterOp, AccumulateOp>(op)) {
      const auto cache = op->getAttrOfType<CacheHintAttr>("cache");
      stores = true;
      return !cache || cache.getValue() != CacheHint::volatile_;
    }
    if (!isa<LoadOp, GatherOp>(op) || isVolatile(op)) return false;
    read.push_back(addressOf(op));
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> createRelaxAtomicsPass() { return std::make_unique<RelaxAtomicsPass>(); }

}  // namespace tile::ir
