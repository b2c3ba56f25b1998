// take_turns.cpp - lets warpgroups use the tensor cores alternately, in loops that ask for it (tile.pingpong = 1).
// Before: a loop of consumers whose body starts asynchronous products, the first and the last of them in one block;
//         barriers are in place.
// After:  tile.turn_wait in front of the first product, tile.turn_pass behind the last one.
//
// Left alone, warpgroups that do the same work at the same time compete first for the tensor cores and then for the
// other units. With turns one warpgroup issues all its products of an iteration before the next one does, so that its
// elementwise work runs during the products of the others. Results do not depend on the order. A warpgroup that waits
// for its turn holds stages, but the turn comes from one that has issued its products already and waits for nobody in
// between; therefore there are no turns where all warps meet among the products.
#include "compiler/gpu/async_products.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/scratch.h"
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
