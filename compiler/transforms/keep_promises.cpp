// keep_promises.cpp - what conditions that are assumed say of numbers goes with the numbers.
// Before: assume_true n > 0, and uses of n behind it
// After:  n is an argument of the kernel: the attribute `tile.at_least = 1` of it
//         else: %m = assume n from 1, which the uses behind the promise read
//         assume_true of the size or stride of an argument % 4 == 0: its attributes `tile.dim_multiple_of` and
//         `tile.stride_multiple_of`, which accesses through the view ask, and the launch checks
//
// A number then keeps what is known of it wherever passes move or copy it, without a condition that would have to be
// found again: the producer of a loop that begins with it, say.
#include <numeric>

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

/// The size or stride of an argument that the number is, or is a part of: of a power of two both are multiples.
Operation* numberOfArgument(Value value) {
  while (Operation* op = value.getDefiningOp()) {
    if (isa<ViewDimOp, ViewStrideOp>(op)) return isa<BlockArgument>(op->getOperand(0)) ? op : nullptr;
    if (!isa<arith::TruncIOp, arith::ExtSIOp>(op)) return nullptr;
    value = op->getOperand(0);
  }
  return nullptr;
}

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
    if (assume->getParentOp() == getOperation()) keepOfView(value, promise.multipleOf);
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

  /// What accesses through an argument are not told by its size or stride as a number.
  void keepOfView(Value value, int64_t multiple) {
    Operation* number = numberOfArgument(value);
    multiple &= -multiple;  // of the whole number, too, if it was of a part
    if (!number || multiple <= 1 || multiple > INT32_MAX) return;
    auto argument = cast<BlockArgument>(number->getOperand(0));
    auto dim = dyn_cast<ViewDimOp>(number);
    const StringRef name = dim ? "tile.dim_multiple_of" : "tile.stride_multiple_of";
    const auto d = static_cast<size_t>(dim ? dim.getDim() : cast<ViewStrideOp>(number).getDim());
    SmallVector<int32_t> multiples(static_cast<size_t>(cast<ViewType>(argument.getType()).getRank()), 1);
    if (auto known = getOperation().getArgAttrOfType<DenseI32ArrayAttr>(argument.getArgNumber(), name))
      multiples.assign(known.asArrayRef().begin(), known.asArrayRef().end());
    const int64_t both = std::lcm(int64_t{multiples[d]}, multiple);
    if (both > INT32_MAX) return;
    multiples[d] = static_cast<int32_t>(both);
    getOperation().setArgAttr(argument.getArgNumber(), name, Builder(&getContext()).getDenseI32ArrayAttr(multiples));
  }

  llvm::DenseMap<Value, Value> kept_;  ///< the last one made of a number
};

}  // namespace
}  // namespace tile::ir
