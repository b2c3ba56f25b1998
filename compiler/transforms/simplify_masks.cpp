// simplify_masks.cpp - removes bounds checks that never fail: a comparison becomes a constant if the ranges of its
// operands decide it (`arange(0, 64) < 64`), or the loop around it does (`k + arange(0, 64) < K`, where k counts by 64
// to a multiple of 64). The canonicalizer then drops masks that are all true and erases stores under masks that are all
// false. Likewise, a maximum of which one side is never the larger (a count and 0) becomes the other one, and so does a
// minimum as a bound that nothing reaches on one side (`arange(0, 64) < min(64, n)`).
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
#define GEN_PASS_DEF_SIMPLIFYMASKS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// What all elements of a tile are equal to, or the value itself.
Value scalarOf(Value v) {
  for (Operation* op = v.getDefiningOp(); op && isa<SplatOp, BroadcastOp, ReshapeOp>(op); op = v.getDefiningOp())
    v = op->getOperand(0);
  return v;
}

Value withoutShape(Value v) {
  for (Operation* op = v.getDefiningOp(); op && isa<BroadcastOp, ReshapeOp>(op); op = v.getDefiningOp())
    v = op->getOperand(0);
  return v;
}

/// The loop that counts with `v`, when it makes whole steps only: from a multiple of its step to a multiple of it.
scf::ForOp wholeSteps(Value v, int64_t& step, Facts& facts) {
  auto counter = dyn_cast<BlockArgument>(v);
  auto loop = counter ? dyn_cast_or_null<scf::ForOp>(counter.getOwner()->getParentOp()) : scf::ForOp();
  APInt constant;
  if (!loop || loop.getInductionVar() != v || !matchPattern(loop.getStep(), m_ConstantInt(&constant))) return {};
  step = constant.getSExtValue();
  const bool whole = step > 0 && facts.divisibility(loop.getLowerBound()) % step == 0 &&
                     facts.divisibility(loop.getUpperBound()) % step == 0;
  return whole ? loop : scf::ForOp();
}

/// Whether `offset` is at least 0 and less than `step`.
bool isWithin(Value offset, int64_t step, Facts& facts) {
  const Range range = facts.rangeOf(offset);
  return range.min >= 0 && range.max < step;
}

/// counter + offset < end, or offset < end - counter, where the loop that counts ends at `end`.
bool isInsideLoop(arith::CmpIOp compare, Facts& facts) {
  Value small = compare.getLhs(), large = compare.getRhs();
  if (compare.getPredicate() == arith::CmpIPredicate::sgt)
    std::swap(small, large);
  else if (compare.getPredicate() != arith::CmpIPredicate::slt)
    return false;
  int64_t step = 0;
  auto endsAt = [&](Value counter, Value end) {
    scf::ForOp loop = wholeSteps(counter, step, facts);
    return loop && loop.getUpperBound() == end;
  };
  if (auto sum = withoutShape(small).getDefiningOp<arith::AddIOp>())
    for (auto [counter, offset] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())})
      if (endsAt(scalarOf(counter), scalarOf(large)) && isWithin(offset, step, facts)) return true;
  // What is left wraps where a loop starts far below zero.
  auto left = scalarOf(large).getDefiningOp<arith::SubIOp>();
  return left && endsAt(left.getRhs(), left.getLhs()) && facts.rangeOf(left.getRhs()).min >= 0 &&
         isWithin(small, step, facts);
}

/// Replaces the bound `min(a, b)` by the side that may leave elements out, where the other one never does.
void simplifyBound(arith::CmpIOp compare, Facts& facts) {
  using P = arith::CmpIPredicate;
  const P predicate = compare.getPredicate();
  const bool isLeft = predicate == P::sgt || predicate == P::sge, orEqual = predicate == P::sle || predicate == P::sge;
  if (!isLeft && predicate != P::slt && predicate != P::sle) return;
  Value bound = compare->getOperand(isLeft ? 0 : 1);
  const Range counts = facts.rangeOf(compare->getOperand(isLeft ? 1 : 0));
  auto leavesNoneOut = [&](Value end) {
    const int64_t least = facts.rangeOf(end).min;
    return orEqual ? counts.max <= least : counts.max < least;
  };
  Value end = scalarOf(bound);
  while (auto least = end.getDefiningOp<arith::MinSIOp>()) {
    if (getElementTypeOrSelf(least.getType()).isInteger(1)) break;  // true is -1 there
    if (leavesNoneOut(least.getRhs()))
      end = scalarOf(least.getLhs());
    else if (leavesNoneOut(least.getLhs()))
      end = scalarOf(least.getRhs());
    else
      break;
  }
  if (end == scalarOf(bound)) return;
  if (auto tile = dyn_cast<RankedTensorType>(bound.getType()); tile && end.getType() != tile) {
    if (isa<RankedTensorType>(end.getType())) return;
    OpBuilder builder(compare);
    end = SplatOp::create(builder, compare.getLoc(), tile, end);
  }
  compare->setOperand(isLeft ? 0 : 1, end);
}

struct SimplifyMasks : impl::SimplifyMasksBase<SimplifyMasks> {
  void runOnOperation() override {
    Facts facts(getOperation());
    SmallVector<std::pair<arith::CmpIOp, bool>> decided;
    getOperation().walk([&](arith::CmpIOp compare) {
      const Range range = facts.rangeOf(compare.getResult());
      if (range.isConstant())
        decided.push_back({compare, range.min != 0});
      else if (isInsideLoop(compare, facts))
        decided.push_back({compare, true});
      else
        simplifyBound(compare, facts);
    });
    SmallVector<std::pair<arith::MaxSIOp, unsigned>> largest;  // and which operand it is
    getOperation().walk([&](arith::MaxSIOp most) {
      if (getElementTypeOrSelf(most.getType()).isInteger(1)) return;  // true is -1 there
      const Range left = facts.rangeOf(most.getLhs()), right = facts.rangeOf(most.getRhs());
      if (left.min >= right.max)
        largest.push_back({most, 0});
      else if (right.min >= left.max)
        largest.push_back({most, 1});
    });
    for (auto [compare, outcome] : decided) {
      OpBuilder builder(compare);
      TypedAttr value = builder.getBoolAttr(outcome);
      if (auto tensor = dyn_cast<RankedTensorType>(compare.getType()))
        value = DenseElementsAttr::get(tensor, ArrayRef<Attribute>(value));
      compare.getResult().replaceAllUsesWith(arith::ConstantOp::create(builder, compare.getLoc(), value));
      compare.erase();
    }
    for (auto [most, larger] : largest) {
      most.getResult().replaceAllUsesWith(most->getOperand(larger));
      most.erase();
    }
  }
};

}  // namespace
}  // namespace tile::ir
