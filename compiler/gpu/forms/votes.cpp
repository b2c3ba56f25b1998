// votes.cpp - the reduction that decides a loop or a branch.
#include "compiler/gpu/forms/votes.h"

#include <functional>

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// A scalar that is a vote, or not, or both a vote and something else: the vote's part alone. `readers`: who may read
/// it.
std::optional<Vote> voteIn(Value condition, bool goesOnWhen, llvm::function_ref<bool(Value)> readers) {
  if (!readers(condition)) return std::nullopt;
  auto byOne = [](Value value) { return value.hasOneUse(); };
  if (Value inner = negated(condition)) return voteIn(inner, !goesOnWhen, readers);
  if (auto both = condition.getDefiningOp<arith::AndIOp>(); both && goesOnWhen) {
    if (auto left = voteIn(both.getLhs(), true, byOne)) return left;
    return voteIn(both.getRhs(), true, byOne);
  }
  auto item = condition.getDefiningOp<ItemOp>();
  auto reduce = item ? item->getOperand(0).getDefiningOp<ReduceOp>() : ReduceOp();
  if (!reduce || !reduce->getResult(0).hasOneUse() || !votesAtBarrier(reduce)) return std::nullopt;
  // Some hold: it goes on while there are any. All hold: it goes on until all do.
  if (isa<arith::OrIOp>(soleOperation(reduce, 0)) != goesOnWhen) return std::nullopt;
  Vote vote;
  vote.reduce = reduce;
  vote.elements = reduce.getSources()[0];
  if (auto flat = vote.elements.getDefiningOp<ReshapeOp>()) vote.elements = flat.getSource();
  vote.leftWhere = !goesOnWhen;
  return vote;
}
bool hasOneReader(Value value) { return value.hasOneUse(); }

/// The place of a value among others.
std::optional<size_t> indexOf(ValueRange values, Value value) {
  const auto it = llvm::find(values, value);
  return it == values.end() ? std::nullopt : std::optional<size_t>(it - values.begin());
}

/// The answer of a vote in the body that the next iteration's condition reads (break_if); a branch in the body may read
/// it, too.
std::optional<Vote> voteBefore(scf::WhileOp loop, Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>(); both && both->hasOneUse()) {
    if (auto left = voteBefore(loop, both.getLhs())) return left;
    return voteBefore(loop, both.getRhs());
  }
  const auto at = indexOf(loop.getBeforeArguments(), condition);
  if (!at) return std::nullopt;
  for (auto [i, handed] : llvm::enumerate(loop.getConditionOp().getArgs()))  // nobody else asks
    if (handed == condition && !(loop.getAfterArguments()[i].use_empty() && loop.getResult(i).use_empty()))
      return std::nullopt;
  std::function<bool(Value)> readers = [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation* user) {
      if (user == loop.getYieldOp()) return true;
      if (user->getBlock() != loop.getAfterBody()) return false;
      return isa<scf::IfOp>(user) || (user->getNumResults() == 1 && negated(user->getResult(0)) == value &&
                                      readers(user->getResult(0)));
    });
  };
  auto vote = voteIn(loop.getYieldOp().getResults()[*at], true, readers);
  if (!vote || vote->reduce->getBlock() != loop.getAfterBody()) return std::nullopt;
  return vote;
}

/// Of a loop that counts to the largest of a tile's numbers (rows of different lengths): these numbers.
std::optional<Vote> longestOf(scf::ForOp loop) {
  const Value bound = loop.getUpperBound();
  auto item = bound.getDefiningOp<ItemOp>();
  auto reduce = item ? item->getOperand(0).getDefiningOp<ReduceOp>() : ReduceOp();
  APInt step;
  if (!reduce || !bound.hasOneUse() || reduce->getNumResults() != 1 || !reduce->getResult(0).hasOneUse() ||
      !isa_and_nonnull<arith::MaxSIOp>(soleOperation(reduce, 0)) || !scratchOf(reduce) ||
      !matchPattern(loop.getStep(), m_ConstantInt(&step)) || !step.isStrictlyPositive())
    return std::nullopt;
  const auto axis = static_cast<int>(reduce.getAxis());
  const auto layout = layoutOf(reduce.getSources()[0].getType());  // every warp has elements, and one answer
  if (!coversLanes(*layout, axis) || layout->sliced(axis).numRegs() != 1) return std::nullopt;
  Vote vote;
  vote.reduce = reduce;
  vote.elements = reduce.getSources()[0];
  if (auto flat = vote.elements.getDefiningOp<ReshapeOp>()) vote.elements = flat.getSource();
  return vote;
}

}  // namespace

Value negated(Value value) {
  auto flip = value.getDefiningOp<arith::XOrIOp>();
  return flip && matchPattern(flip.getRhs(), m_One()) ? flip.getLhs() : Value();
}

std::optional<Vote> voteOf(Operation* loopOrBranch) {
  if (auto branch = dyn_cast<scf::IfOp>(loopOrBranch)) return voteIn(branch.getCondition(), true, hasOneReader);
  if (auto counted = dyn_cast<scf::ForOp>(loopOrBranch)) return longestOf(counted);
  auto loop = cast<scf::WhileOp>(loopOrBranch);
  const Value condition = loop.getConditionOp().getCondition();
  if (auto vote = voteIn(condition, true, hasOneReader); vote && vote->reduce->getBlock() == loop.getBeforeBody())
    return vote;
  return voteBefore(loop, condition);
}

void meetAgain(Operation* loopOrBranch) {
  auto vote = voteOf(loopOrBranch);
  loopOrBranch->removeAttr(kPartsAttr);
  vote->reduce->removeAttr(kPartsAttr);
  vote->reduce->setAttr(kScratchAttr, IntegerAttr::get(IntegerType::get(loopOrBranch->getContext(), 32), 0));
}

}  // namespace tile::ir
