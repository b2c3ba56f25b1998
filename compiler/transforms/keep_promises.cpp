// keep_promises.cpp - what conditions that are assumed say of numbers goes with the numbers.
// Before: assume_true n > 0, and uses of n behind it
// After:  n is an argument of the kernel: the attribute `tile.at_least = 1` of it
//         else: %m = assume n from 1, which the uses behind the promise read
//
// A number then keeps what is known of it wherever passes move or copy it, without a condition that would have to be
// found again: the producer of a loop that begins with it, say.
#include "compiler/analysis/promises.h"
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
#define GEN_PASS_DEF_KEEPPROMISES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

class KeepPromisesPass : public impl::KeepPromisesBase<KeepPromisesPass> {
  void runOnOperation() override {
    kept_.clear();
    SmallVector<AssumeTrueOp> assumed;
    getOperation().walk([&](AssumeTrueOp assume) { assumed.push_back(assume); });
    for (AssumeTrueOp assume : assumed)
      for (const Promise& promise : promisesOf(assume.getCondition(), Facts(getOperation()))) keep(promise, assume);
  }

  void keep(Promise promise, AssumeTrueOp assume) {
    Value value = promise.value;
    if (isa<RankedTensorType>(value.getType()) || matchPattern(value, m_Constant())) return;
    if (Value kept = kept_.lookup(value); kept && kept.getParentBlock() == assume->getBlock()) value = kept;
    const Facts facts(getOperation());  // with what has been kept so far, of the same condition as well
    const Range before = facts.rangeOf(value);
    const std::optional<Range> both = common(before, promise.range);
    const int64_t multiple = std::max(facts.divisibility(value), promise.multipleOf);
    if (!both) return;  // it cannot hold: nobody comes here
    if (*both == before && multiple == facts.divisibility(value)) return;
    Builder b(&getContext());
    const IntegerAttr least = b.getI64IntegerAttr(both->min), most = b.getI64IntegerAttr(both->max);
    if (auto arg = dyn_cast<BlockArgument>(value); arg && assume->getParentOp() == getOperation()) {
      if (arg.getOwner() != assume->getBlock()) return;
      getOperation().setArgAttr(arg.getArgNumber(), kAtLeastAttr, least);
      getOperation().setArgAttr(arg.getArgNumber(), kAtMostAttr, most);
      if (promise.multipleOf > 1)
        getOperation().setArgAttr(arg.getArgNumber(), "tile.multiple_of", b.getI32IntegerAttr(int32_t(multiple)));
      return;
    }
    // Behind what another part of the condition has made of the number, too.
    Operation* made = value.getDefiningOp();
    const bool isMadeHere = made && made->getBlock() == assume->getBlock() && assume->isBeforeInBlock(made);
    OpBuilder builder(assume);
    builder.setInsertionPointAfter(isMadeHere ? made : assume);
    Value kept = AssumeOp::create(builder, assume.getLoc(), value.getType(), value, multiple, least, most);
    kept_[promise.value] = kept;
    value.replaceUsesWithIf(kept, [&](OpOperand& use) {
      Operation* user = assume->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return user && kept.getDefiningOp()->isBeforeInBlock(user);
    });
  }

  llvm::DenseMap<Value, Value> kept_;  ///< the last one made of a number
};

}  // namespace
}  // namespace tile::ir
