// take_turns.cpp - lets warpgroups use the tensor cores alternately, in loops that ask for it (tile.pingpong = 1).
// Before: a loop of consumers whose body starts asynchronous products, the first and the last of them in one block;
//         barriers are in place.
// After:  tile.turn_wait in front of the first product, tile.turn_pass behind the last one.
//
// Left alone, warpgroups that do the same work at the same time compete first for the tensor cores and then for the
// other units. With turns one warpgroup issues all its products of an iteration before the next one does, so that its
// elementwise work runs during the products of the others. Results do not depend on the order. A warpgroup that waits
// for its turn holds stages, but the turn comes from one that has issued its products already and waits for nobody in
// between; therefore there are no turns where all warps meet among the products, and none where they wait for copies
// into stages that another warpgroup, which waits for its turn, still holds.
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "llvm/ADT/MapVector.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// All warps of the consumers meet while the op runs.
bool meets(Operation* op) {
  if (isa<BarrierOp, AtomicRmwOp, AtomicCasOp>(op)) return true;
  if (!op->hasAttr(kScratchAttr) || op->hasAttr(kScratchFilledAttr) || op->hasAttr(kMetAttr)) return false;
  const auto scratch = scratchOf(op);
  return scratch && !scratch->warpLocal();
}

/// A ring of which one warpgroup would wait, during its turn, for stages that another one gives back after its own; null:
/// none. Whoever waits for a turn holds what is carried into the iteration and what was acquired in front of it.
Value ringHeldOverTurn(Block& body, Operation* first, Operation* last) {
  struct Use {
    int64_t held = 0, least = 0;            // against what is carried into the iteration
    int64_t atTurn = 0, acquiredInTurn = 0;
  };
  llvm::MapVector<Value, Use> rings;
  bool inTurn = false;
  for (Operation& statement : body) {
    if (&statement == first) {
      inTurn = true;
      for (auto& [ring, use] : rings) use.atTurn = use.held;
    }
    statement.walk([&](Operation* op) {
      if (auto acquire = dyn_cast<RingAcquireOp>(op)) {
        Use& use = rings[acquire.getRing()];
        ++use.held;
        if (inTurn) ++use.acquiredInTurn;
      } else if (auto release = dyn_cast<RingReleaseOp>(op)) {
        Use& use = rings[release.getRing()];
        use.least = std::min(use.least, --use.held);
      }
    });
    if (&statement == last) inTurn = false;
  }
  for (auto& [ring, use] : rings) {
    const int64_t carried = -use.least;
    const int64_t stages = cast<RingType>(ring.getType()).getStages();
    if (use.acquiredInTurn && carried + use.atTurn + use.acquiredInTurn > stages) return ring;
  }
  return {};
}

class TakeTurnsPass : public PassWrapper<TakeTurnsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TakeTurnsPass)
  StringRef getArgument() const override { return "tile-take-turns"; }
  StringRef getDescription() const override {
    return "warpgroups take turns at the tensor cores where loops ask for it";
  }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    bool changed = false;
    getOperation().walk([&](SpecializeOp roles) {
      roles.getConsumer().walk([&](scf::ForOp loop) {
        auto hint = loop->getAttrOfType<IntegerAttr>("tile.pingpong");
        if (hint && hint.getInt() == 1) changed |= takeTurns(*loop.getBody());
      });
    });
    if (!changed) markAllAnalysesPreserved();
  }

 private:
  /// A loop inside, in a branch perhaps (that guards it), would take turns of its own, as often as its own iterations
  /// say: alike in all warpgroups, too, but then the outer one has no one place where its products start.
  static bool takeTurns(Block& body) {
    Operation *first = nullptr, *last = nullptr;
    for (Operation& op : body) {
      if (op.walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted()) return false;
      if (!asyncProduct(&op) && !(isa<scf::IfOp>(op) && hasAsyncProduct(&op))) continue;
      if (!first) first = &op;
      last = &op;
    }
    if (!first) return false;
    for (Operation* op = first; op != last->getNextNode(); op = op->getNextNode())
      if (op->walk([](Operation* o) { return meets(o) ? WalkResult::interrupt() : WalkResult::advance(); })
              .wasInterrupted()) {
        body.getParentOp()->emitRemark() << "warpgroups take no turns: all warps meet between an iteration's products";
        return false;
      }
    if (Value ring = ringHeldOverTurn(body, first, last)) {
      body.getParentOp()->emitRemark() << "warpgroups take no turns: one that waits for its turn holds a stage of a ring "
                                          "that another one needs during its own ("
                                       << cast<RingType>(ring.getType()).getStages() << " stages)";
      return false;
    }
    OpBuilder builder(first);
    TurnWaitOp::create(builder, first->getLoc());
    builder.setInsertionPointAfter(last);
    TurnPassOp::create(builder, last->getLoc());
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> createTakeTurnsPass() { return std::make_unique<TakeTurnsPass>(); }

}  // namespace tile::ir
