// unroll_held.cpp - several bodies of loops that hold what they load early for several iterations.
// Before: behind stage; `tile.held` of a loop says how many iterations (load_ahead.h). What is held moves on by one
//         register in every iteration, and a move of what is on its way waits for it: loads of four iterations ahead
//         would be as late as those of one.
// After:  as many bodies, in which everything stays where it was loaded, and a loop behind them for what remains. Loops
//         around others, of roles, or of much work stay: an iteration of theirs hides the latency.
#include "compiler/dialect/dialect.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/overlap/load_ahead.h"
#include "compiler/gpu/products/unroll_loops.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

class UnrollHeldPass : public PassWrapper<UnrollHeldPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UnrollHeldPass)
  StringRef getArgument() const override { return "tile-unroll-held"; }
  StringRef getDescription() const override { return "unroll loops that hold loads of several iterations"; }

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      auto held = loop->getAttrOfType<IntegerAttr>(kHeldAttr);
      if (!held) continue;
      loop->removeAttr(kHeldAttr);
      int64_t operations = 0;
      bool isPlain = !loop->getParentOfType<SpecializeOp>();
      loop.getBody()->walk([&](Operation* op) {
        ++operations;
        isPlain &= !isa<LoopLikeOpInterface>(op);
      });
      if (isPlain && held.getInt() >= kFewestHeld && operations * held.getInt() <= kMostOperations)
        unrollBy(loop, held.getInt());
    }
  }

 private:
  /// Of all bodies together: they are compiled like a straight line.
  static constexpr int64_t kMostOperations = 1024;
};

}  // namespace

std::unique_ptr<Pass> createUnrollHeldPass() { return std::make_unique<UnrollHeldPass>(); }

}  // namespace tile::ir
