// share_reductions.cpp - a tile is reduced once along an axis that several of its reductions have in common.
// Before: x reduced along one axis (sums of columns), and reduced along that and other axes (the sum of everything).
// After:  the second reduction starts from the results of the first.
//
// Combiners are associative by contract. That they commute, too, is known of those that are a single operation (sum,
// maximum, ...). The order of a sum changes, as it does from layout to layout.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/IR/Dominance.h"

namespace tile::ir {
#define GEN_PASS_DEF_SHAREREDUCTIONS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

bool commutes(ReduceOp reduce) {
  Block& block = reduce.getCombiner().front();
  if (reduce.getNumResults() != 1 || block.getOperations().size() != 2) return false;
  Operation& op = block.front();
  return op.hasTrait<OpTrait::IsCommutative>() && op.getNumOperands() == 2 && op.getOperand(0) != op.getOperand(1) &&
         llvm::all_of(op.getOperands(), [&](Value v) { return llvm::is_contained(block.getArguments(), v); });
}

bool combineAlike(ReduceOp a, ReduceOp b) {
  return a.getNumResults() == b.getNumResults() &&
         OperationEquivalence::isRegionEquivalentTo(&a.getCombiner(), &b.getCombiner(),
                                                    OperationEquivalence::IgnoreLocations);
}

class ShareReductionsPass : public impl::ShareReductionsBase<ShareReductionsPass> {
  void runOnOperation() override {
    const DominanceInfo dominance(getOperation());
    SmallVector<ReduceOp> last;  // of reductions of reductions
    getOperation().walk([&](ReduceOp reduce) {
      if (commutes(reduce) && !isa_and_nonnull<ReduceOp>(onlyUser(reduce))) last.push_back(reduce);
    });
    for (ReduceOp reduce : last) share(reduce, dominance);
  }

  static Operation* onlyUser(ReduceOp reduce) {
    return reduce->hasOneUse() ? *reduce->getUsers().begin() : nullptr;
  }

  static void share(ReduceOp last, const DominanceInfo& dominance) {
    SmallVector<ReduceOp> steps{last};  // from the last to the first
    while (auto before = steps.back().getSources()[0].getDefiningOp<ReduceOp>()) {
      if (!before->hasOneUse() || !combineAlike(before, last)) break;
      steps.push_back(before);
    }
    const Value tile = steps.back().getSources()[0];
    for (Operation* user : tile.getUsers()) {
      auto other = dyn_cast<ReduceOp>(user);
      if (!other || other == steps.back() || !combineAlike(other, last) || !dominance.dominates(other, last)) continue;
      auto* same = llvm::find_if(steps, [&](ReduceOp step) { return step.getAxis() == other.getAxis(); });
      if (same == steps.end()) continue;
      steps.erase(same);
      Value value = other.getResult(0);
      for (ReduceOp step : llvm::reverse(steps)) {
        OpBuilder builder(last);
        auto type = cast<RankedTensorType>(value.getType());
        SmallVector<int64_t> shape(type.getShape());
        shape[step.getAxis()] = 1;
        IRMapping map;
        map.map(step.getSources()[0], value);
        Operation* next = builder.clone(*step, map);
        next->getResult(0).setType(RankedTensorType::get(shape, type.getElementType()));
        value = next->getResult(0);
      }
      last.getResult(0).replaceAllUsesWith(value);  // what nobody reads any more goes with the next clean-up
      return;
    }
  }
};

}  // namespace
}  // namespace tile::ir
