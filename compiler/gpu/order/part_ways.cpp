// part_ways.cpp - lets every warp leave a loop when its own elements are done, without waiting for those of other
// warps.
// Before: a loop that goes on while any element of a tile is active (or until all are done), or a branch that is taken
//         if any is. The condition is a reduction over the program: all warps meet at a barrier in every iteration.
// After:  each warp votes on the elements that it has.
//
// That makes no difference where an iteration does nothing for a warp none of whose elements is active:
//   - values that the loop carries, and that the vote or an op behind the loop reads, stay as they are (they are
//     selected by the condition that is voted on, or what is added to them was loaded under it and is 0);
//   - memory is written under masks that imply the condition;
//   - nothing in the loop waits for other warps.
// Loops that count to the largest of a tile's numbers (`range(max(length))`) are left likewise, each warp at the
// largest of its own.
// Of a loop that is left by all together a remark names what changes.
// Two kinds of carried values may change all the same: an index that can only go on (in `j < end` with j + 1 carried,
// the condition stays false), and counters that nobody reads behind the loop. insert_barriers takes the change back
// where threads exchange data through memory inside the loop.
#include "compiler/gpu/forms/votes.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/order/left_warps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

class PartWaysPass : public PassWrapper<PartWaysPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PartWaysPass)
  StringRef getArgument() const override { return "tile-part-ways"; }
  StringRef getDescription() const override { return "let every warp leave loops when its own elements are done"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    SmallVector<Operation*> decided;
    getOperation().walk([&](Operation* op) {  // inner ones first
      if (isa<scf::WhileOp, scf::IfOp, scf::ForOp>(op)) decided.push_back(op);
    });
    for (Operation* op : decided) {
      auto vote = voteOf(op);
      if (!vote) continue;
      Operation* why = nullptr;
      if (!mayLeave(op, *vote, why)) {
        if (why && isa<LoopLikeOpInterface>(op))
          why->emitRemark() << "all warps stay in the loop until the last is done: this is not known to stay as it is "
                               "where the loop's condition no longer holds";
        continue;
      }
      for (Operation* parting : {op, vote->reduce.getOperation()})
        parting->setAttr(kPartsAttr, UnitAttr::get(&getContext()));
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createPartWaysPass() { return std::make_unique<PartWaysPass>(); }

}  // namespace tile::ir
