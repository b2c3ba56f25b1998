// hoist_loads.cpp - reads what every iteration reads alike once, in front of the loop.
// Before: layouts; a load of a box with loop-invariant indices stands in its loop, where the kernel wrote it; so does a
//         scalar that is read through a pointer.
// After:  the load stands in front of the loop, as long as the loop's registers have room for its result; a scalar is
//         read under the condition that the loop runs.
//
// Boxes of arguments can always be read early: outside the bounds of the view nothing is read, whether the loop runs or
// not. Loops that write to the argument keep their loads, and so do loops with atomics (others may write what they wait
// for), with bulk stores, and with products (registers are short there, and their copies run ahead anyway).
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread (32 bits each) that a loop may hold from one iteration to the next because of this pass, and
/// with what it carries anyway.
constexpr int64_t kMostHoisted = 48, kMostHeld = 96;

/// The argument that a box is read from; null: no such load.
Value boxedArgument(Operation* op) {
  auto load = dyn_cast<LoadOp>(op);
  if (!load || isVolatile(load)) return {};
  auto arg = dyn_cast<BlockArgument>(load.getView());
  return arg && isa<func::FuncOp>(arg.getOwner()->getParentOp()) ? arg : Value();
}

/// The argument through which a number is read; null: no such load.
Value argumentOfNumber(Operation* op) {
  auto gather = dyn_cast<GatherOp>(op);
  if (!gather || isVolatile(gather) || !gather.getType().isIntOrFloat()) return {};
  const MemoryRoot root = rootOf(gather.getPtr());
  return root.loads ? Value() : root.argument;
}

/// What `op` is made of inside the loop, if that is the same in every iteration: pure scalars, in their order.
std::optional<SmallVector<Operation*, 0>> unchangingParts(Operation* op, scf::ForOp loop) {
  llvm::SetVector<Operation*> parts;
  SmallVector<Operation*> open{op};
  while (!open.empty()) {
    for (Value operand : open.pop_back_val()->getOperands()) {
      if (loop.isDefinedOutsideOfLoop(operand)) continue;
      Operation* def = operand.getDefiningOp();
      const bool isPart = def && def->getBlock() == loop.getBody() && def->getNumRegions() == 0 && isPure(def) &&
                          !isa<ShapedType>(operand.getType());
      if (!isPart) return std::nullopt;
      if (parts.insert(def)) open.push_back(def);
    }
  }
  auto order = parts.takeVector();
  llvm::sort(order, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  return order;
}

class HoistLoadsPass : public PassWrapper<HoistLoadsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HoistLoadsPass)
  StringRef getArgument() const override { return "tile-hoist-loads"; }
  StringRef getDescription() const override { return "move loop-invariant loads in front of loops"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;  // inner ones first
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) runOn(loop);
  }

 private:
  llvm::DenseMap<Operation*, int64_t> held_;  ///< registers in front of a loop for the sake of it and those inside

  void runOn(scf::ForOp loop) {
    llvm::DenseSet<Value> written;
    bool stays = false;
    int64_t held = held_.lookup(loop);
    loop.walk([&](Operation* op) {
      stays |= isa<AtomicRmwOp, AtomicCasOp, MmaOp, WorkLoopOp, SpecializeOp, TmaStoreOp>(op);
      if (writesGlobal(op)) {
        const MemoryRoot root = rootOf(addressOf(op));
        stays |= !root;
        if (!root.loads) written.insert(root.argument);
      }
    });
    if (stays) return;
    int64_t carried = 0;
    for (Value arg : loop.getRegionIterArgs()) carried += registersOf(arg.getType());
    for (Operation& op : llvm::make_early_inc_range(*loop.getBody())) {
      const Value box = boxedArgument(&op), argument = box ? box : argumentOfNumber(&op);
      if (!argument || written.contains(argument)) continue;
      const auto parts = unchangingParts(&op, loop);
      const int64_t registers = registersOf(op.getResult(0).getType());
      if (!parts || held + registers > kMostHoisted || carried + held + registers > kMostHeld) continue;
      held += registers;
      for (Operation* part : *parts) part->moveBefore(loop);
      op.moveBefore(loop);
      if (!box) readIfRun(cast<GatherOp>(op), loop);
    }
    if (auto outer = loop->getParentOfType<scf::ForOp>()) held_[outer] = std::max(held_.lookup(outer), held);
  }

  /// The first iteration would have read it.
  static void readIfRun(GatherOp gather, scf::ForOp loop) {
    OpBuilder builder(gather);
    Value runs = arith::CmpIOp::create(builder, loop.getLoc(),
                                       loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
                                       loop.getLowerBound(), loop.getUpperBound());
    if (gather.getMask()) runs = arith::AndIOp::create(builder, loop.getLoc(), gather.getMask(), runs);
    gather.getMaskMutable().assign(runs);
  }
};

}  // namespace

std::unique_ptr<Pass> createHoistLoadsPass() { return std::make_unique<HoistLoadsPass>(); }

}  // namespace tile::ir
