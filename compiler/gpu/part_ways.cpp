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
// Two kinds of carried values may change all the same: an index that can only go on (in `j < end` with j + 1 carried,
// the condition stays false), and counters that nobody reads behind the loop. insert_barriers takes the change back
// where threads exchange data through memory inside the loop.
#include "compiler/gpu/part_ways.h"

#include "compiler/gpu/across.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/left_warps.h"
#include "compiler/gpu/scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

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
      if (!vote || !mayLeave(op, *vote)) continue;
      for (Operation* parting : {op, vote->reduce.getOperation()})
        parting->setAttr(kPartsAttr, UnitAttr::get(&getContext()));
    }
  }
};

}  // namespace

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

std::unique_ptr<Pass> createPartWaysPass() { return std::make_unique<PartWaysPass>(); }

}  // namespace tile::ir
