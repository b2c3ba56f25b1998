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
// Two kinds of carried values may change all the same: an index that can only go on (in `j < end` with j + 1 carried,
// the condition stays false), and counters that nobody reads behind the loop. insert_barriers takes the change back
// where threads exchange data through memory inside the loop.
#include "compiler/gpu/part_ways.h"

#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/across.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/scratch.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The operand that `value` is the negation of; null: it is none.
Value negated(Value value) {
  auto flip = value.getDefiningOp<arith::XOrIOp>();
  return flip && matchPattern(flip.getRhs(), m_One()) ? flip.getLhs() : Value();
}

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

/// What is known of a warp none of whose elements wants another iteration (or the branch): it has left. Values of the
/// body are those that it would compute if it went on. All that is said of a tile is said of the elements that the warp
/// has.
class Left {
 public:
  Left(Operation* op, Vote vote) : op_(op), loop_(dyn_cast<scf::WhileOp>(op)), vote_(vote) {
    learn(vote.elements, vote.leftWhere);
  }

  bool mayPart() {
    bool works = true;
    op_->walk([&](Operation* inner) {
      works = works && (inner == op_ || inner == vote_.reduce || keepsToWarp(inner));
    });
    return works && (loop_ ? carriesNothing() : bringsNothing(cast<scf::IfOp>(op_)));
  }

 private:
  /// An iteration changes nothing: not what the vote says, not what is read behind the loop.
  bool carriesNothing() {
    for (auto [next, arg] : llvm::zip(loop_.getYieldOp().getResults(), loop_.getBeforeArguments()))
      stays_.push_back(isStill(next, arg));
    if (!staysLeft(vote_.elements, vote_.leftWhere)) return false;
    return llvm::all_of(llvm::zip(loop_.getResults(), loop_.getConditionOp().getArgs()), [&](auto pair) {
      return std::get<0>(pair).use_empty() || isOfStill(std::get<1>(pair));
    });
  }
  bool bringsNothing(scf::IfOp branch) {
    bool writes = false;
    branch.getElseRegion().walk([&](Operation* inner) { writes |= writesGlobal(inner); });
    if (writes || branch.getNumResults() == 0) return !writes;
    return llvm::all_of(llvm::zip(branch.thenYield().getResults(), branch.elseYield().getResults()),
                        [&](auto pair) { return isStill(std::get<0>(pair), std::get<1>(pair)); });
  }

  static bool keepsScratch(Operation* op) {
    const auto scratch = op->hasAttr(kReadsCopyAttr) ? std::nullopt : scratchOf(op);
    return !scratch || scratch->warpLocal();
  }
  /// No other warp is needed, and a warp that has left writes no memory.
  bool keepsToWarp(Operation* op) {
    if (!keepsScratch(op)) return false;
    if (isa<arith::ArithDialect, scf::SCFDialect>(op->getDialect()) || isElementwise(op)) return true;
    if (isa<GatherOp, LoadOp>(op)) return !isVolatile(op);
    if (auto scatter = dyn_cast<ScatterOp>(op)) return leavesOut(scatter.getMask());
    if (auto atomic = dyn_cast<AtomicRmwOp>(op))
      return leavesOut(atomic.getMask()) && !isAcquire(op) && !isRelease(op);
    if (auto atomic = dyn_cast<AtomicCasOp>(op))
      return leavesOut(atomic.getMask()) && !isAcquire(op) && !isRelease(op);
    return isa<IotaOp, SplatOp, BroadcastOp, ReshapeOp, TransOp, ItemOp, CatOp, ExtractOp, TakeOp, ConvertOp, ReduceOp,
               ScanOp, YieldOp, PtrAddOp, PtrToIntOp, IntToPtrOp, ViewPtrOp, ViewDimOp, ViewStrideOp, MakeViewOp,
               ProgramIdOp, NumProgramsOp, AssumeOp, AssumeTrueOp>(op);
  }
  bool leavesOut(Value mask) { return mask && knownAs(mask) == false; }
  /// The result has elements of the operand that the warp has, and no others.
  static bool isMove(Operation* op) {
    return isa<BroadcastOp, ReshapeOp, TransOp, ExtractOp, ConvertOp>(op) && keepsScratch(op);
  }

  void learn(Value value, bool holds) {
    known_.emplace_back(value, holds);
    Operation* op = value.getDefiningOp();
    if (!op) return;
    if (Value inner = negated(value)) return learn(inner, !holds);
    if ((isa<arith::OrIOp>(op) && !holds) || (isa<arith::AndIOp>(op) && holds))
      for (Value operand : op->getOperands()) learn(operand, holds);
    if (isMove(op)) learn(op->getOperand(0), holds);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (compare && compare.getPredicate() == (holds ? arith::CmpIPredicate::eq : arith::CmpIPredicate::ne))
      if (matchPattern(compare.getRhs(), m_Zero())) zero_.push_back(compare.getLhs());
  }

  /// What the condition of the loop hands on to an argument of the body, what is chosen, what is there instead of
  /// elements that are not read: any other value as it is.
  Value settled(Value value) {
    while (true) {
      auto arg = dyn_cast<BlockArgument>(value);
      auto choice = value.getDefiningOp<arith::SelectOp>();
      auto gather = value.getDefiningOp<GatherOp>();
      if (loop_ && arg && arg.getOwner() == loop_.getAfterBody())
        value = loop_.getConditionOp().getArgs()[arg.getArgNumber()];
      else if (Value chosen = choice ? choiceOf(choice) : Value())
        value = chosen;
      else if (gather && gather.getOther() && leavesOut(gather.getMask()))
        value = gather.getOther();
      else
        return value;
    }
  }

  /// Both are the same, made anew perhaps.
  bool areSame(Value a, Value b) {
    a = settled(a), b = settled(b);
    if (a == b) return true;
    Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
    if (!x || !y || x->getName() != y->getName() || x->getNumRegions() || a.getType() != b.getType() ||
        x->getAttrDictionary() != y->getAttrDictionary() || x->getNumOperands() != y->getNumOperands() ||
        cast<OpResult>(a).getResultNumber() != cast<OpResult>(b).getResultNumber())
      return false;
    if (!isElementwise(x) && !isMove(x) && !isa<SplatOp, IotaOp, arith::ConstantOp>(x)) return false;
    auto [found, isNew] = same_.try_emplace(std::pair(a, b), false);
    if (!isNew) return found->second;
    const bool same = llvm::all_of(llvm::zip(x->getOperands(), y->getOperands()),
                                   [&](auto pair) { return areSame(std::get<0>(pair), std::get<1>(pair)); });
    return same_[std::pair(a, b)] = same;
  }

  /// The value of a condition, if all its elements have one.
  std::optional<bool> knownAs(Value value) {
    auto [found, isNew] = conditions_.try_emplace(value, std::nullopt);
    if (!isNew) return found->second;
    const std::optional<bool> known = findKnown(value);
    return conditions_[value] = known;
  }
  std::optional<bool> findKnown(Value value) {
    for (const auto& [other, holds] : known_)
      if (areSame(value, other)) return holds;
    if (matchPattern(value, m_Zero())) return false;
    if (matchPattern(value, m_One())) return true;
    Operation* op = value.getDefiningOp();
    if (!op) return std::nullopt;
    auto part = [&](unsigned i) { return knownAs(op->getOperand(i)); };
    if (isMove(op)) return part(0);
    if (isa<arith::AndIOp, arith::OrIOp>(op)) {
      const bool decides = isa<arith::OrIOp>(op);
      const auto a = part(0), b = part(1);
      if (a == decides || b == decides) return decides;
      if (a && b) return !decides;
    }
    if (isa<arith::XOrIOp>(op))
      if (const auto a = part(0), b = part(1); a && b) return *a != *b;
    if (auto choice = dyn_cast<arith::SelectOp>(op)) {
      if (auto chosen = choiceOf(choice)) return knownAs(chosen);
      if (const auto a = part(1), b = part(2); a && a == b) return a;
    }
    return std::nullopt;
  }
  Value choiceOf(arith::SelectOp choice) {
    const auto holds = knownAs(choice.getCondition());
    return !holds ? Value() : *holds ? choice.getTrueValue() : choice.getFalseValue();
  }

  static bool isConstant(Value value, int number) {
    APFloat real(0.0);
    if (matchPattern(value, m_ConstantFloat(&real))) return real.convertToDouble() == number;
    APInt whole;
    return matchPattern(value, m_ConstantInt(&whole)) && whole == static_cast<uint64_t>(number);
  }
  static bool isFinite(Value value) {
    APFloat real(0.0);
    return matchPattern(value, m_ConstantFloat(&real)) && real.isFinite();
  }
  bool isZero(Value value) {
    value = settled(value);
    if (isConstant(value, 0) || llvm::any_of(zero_, [&](Value other) { return areSame(value, other); })) return true;
    Operation* op = value.getDefiningOp();
    if (!op) return false;
    auto [found, isNew] = zeros_.try_emplace(value, false);
    if (!isNew) return found->second;
    const bool zero = findZero(op);
    return zeros_[value] = zero;
  }
  /// What `op` makes of zeros is zero (of either sign).
  bool findZero(Operation* op) {
    auto part = [&](unsigned i) { return isZero(op->getOperand(i)); };
    if (isa<arith::ExtUIOp, arith::ExtSIOp, arith::UIToFPOp, arith::SIToFPOp, arith::TruncIOp, arith::ExtFOp,
            arith::TruncFOp, arith::NegFOp, math::AbsFOp, SplatOp>(op) ||
        isMove(op)) {
      const bool isFlag = getElementTypeOrSelf(op->getOperand(0)).isInteger(1);
      return isFlag ? knownAs(op->getOperand(0)) == false : part(0);
    }
    if (auto gather = dyn_cast<GatherOp>(op)) return !gather.getOther() && leavesOut(gather.getMask());
    if (auto reduce = dyn_cast<ReduceOp>(op))  // over lanes of a warp at most: keepsToWarp
      return reduce.getSources().size() == 1 && part(0) &&
             isa_and_nonnull<arith::AddFOp, arith::AddIOp, arith::OrIOp, arith::XOrIOp>(soleOperation(reduce, 0));
    if (isa<arith::AndIOp, arith::MulIOp>(op)) return part(0) || part(1);
    if (isa<arith::MulFOp>(op))  // zero times infinity is none
      return (part(0) && (part(1) || isFinite(op->getOperand(1)))) || (part(1) && isFinite(op->getOperand(0)));
    return isa<arith::AddIOp, arith::SubIOp, arith::OrIOp, arith::XOrIOp, arith::AddFOp, arith::SubFOp>(op) &&
           part(0) && part(1);
  }

  /// All elements are in `value` what they are in `was`.
  bool isStill(Value value, Value was) {
    value = settled(value);
    if (areSame(value, was)) return true;
    auto [found, isNew] = still_.try_emplace(std::pair(value, was), false);
    if (!isNew) return found->second;
    const bool still = findStill(value, was);
    return still_[std::pair(value, was)] = still;
  }
  bool findStill(Value value, Value was) {
    const Type type = getElementTypeOrSelf(value);
    if (type.isInteger(1))
      if (const auto a = knownAs(value), b = knownAs(was); a && a == b) return true;
    if (isa<IntegerType>(type) && isZero(value) && isZero(was)) return true;
    Operation* op = value.getDefiningOp();
    if (!op) return false;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      const unsigned i = cast<OpResult>(value).getResultNumber();
      return isStill(branch.thenYield().getResults()[i], was) && isStill(branch.elseYield().getResults()[i], was);
    }
    auto stays = [&](unsigned i) { return isStill(op->getOperand(i), was); };
    auto isNothing = [&](unsigned i) { return isZero(op->getOperand(i)); };
    if (isa<arith::SelectOp>(op)) return stays(1) && stays(2);
    if (isExtreme(op) && isNumber(was))  // of it and what is never more (less): a list's largest, the nearest of all
      return (isNeverChosen(op, 1) && stays(0)) || (isNeverChosen(op, 0) && stays(1));
    if (auto fma = dyn_cast<math::FmaOp>(op)) return isNothing(0) && isNothing(1) && stays(2);
    // A sum that is -0 stays -0, where others would have had it become 0 by going on.
    if (isa<arith::AddIOp, arith::AddFOp, arith::OrIOp, arith::XOrIOp>(op))
      return (isNothing(1) && stays(0)) || (isNothing(0) && stays(1));
    if (isa<arith::SubIOp, arith::SubFOp, arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op))
      return isNothing(1) && stays(0);
    if (isa<arith::MulFOp, arith::MulIOp>(op))
      for (unsigned i : {0u, 1u})
        if (isConstant(settled(op->getOperand(i)), 1) && stays(1 - i)) return true;
    return false;
  }

  static bool isMost(Operation* op) { return isa<arith::MaxNumFOp, arith::MaximumFOp, arith::MaxSIOp>(op); }
  static bool isExtreme(Operation* op) {
    return isMost(op) || isa<arith::MinNumFOp, arith::MinimumFOp, arith::MinSIOp>(op);
  }
  /// The operand of an extreme is the end of its type's range.
  bool isNeverChosen(Operation* op, unsigned i) {
    const Value value = settled(op->getOperand(i));
    APFloat real(0.0);
    if (matchPattern(value, m_ConstantFloat(&real))) return real.isInfinity() && real.isNegative() == isMost(op);
    APInt whole;
    return matchPattern(value, m_ConstantInt(&whole)) &&
           (isMost(op) ? whole.isMinSignedValue() : whole.isMaxSignedValue());
  }

  /// No NaN, beside which an extreme would choose the end of the range: it begins as a number, and each iteration makes
  /// an extreme of it. Integers are numbers.
  bool isNumber(Value was) {
    if (isa<IntegerType>(getElementTypeOrSelf(was))) return true;
    auto arg = dyn_cast<BlockArgument>(settled(was));
    if (!loop_ || !arg || arg.getOwner() != loop_.getBeforeBody()) return false;
    APFloat first(0.0);
    if (!matchPattern(loop_.getInits()[arg.getArgNumber()], m_ConstantFloat(&first)) || first.isNaN()) return false;
    Operation* next = loop_.getYieldOp().getResults()[arg.getArgNumber()].getDefiningOp();
    return next && isa<arith::MaxNumFOp, arith::MinNumFOp>(next) &&
           llvm::any_of(next->getOperands(), [&](Value operand) { return areSame(operand, was); });
  }

  /// The warp has the same in every iteration: it is made of what stays.
  bool isOfStill(Value value) {
    if (auto arg = dyn_cast<BlockArgument>(value)) {
      if (arg.getOwner() == loop_.getAfterBody()) return isOfStill(settled(value));
      if (arg.getOwner() == loop_.getBeforeBody()) return stays_[arg.getArgNumber()];
    }
    if (loop_.isDefinedOutsideOfLoop(value)) return true;
    Operation* op = value.getDefiningOp();
    if (!op || !keepsScratch(op) || (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op))) return false;
    auto [found, isNew] = ofStill_.try_emplace(value, false);
    if (!isNew) return found->second;
    const bool isRead = isa<GatherOp, LoadOp>(op) && !mayBeWritten(op);
    const bool still = (isRead || isMemoryEffectFree(op)) &&
                       llvm::all_of(op->getOperands(), [&](Value operand) { return isOfStill(operand); });
    return ofStill_[value] = still;
  }
  /// The loop may write what it reads there.
  bool mayBeWritten(Operation* load) {
    bool writes = false;
    op_->walk([&](Operation* inner) {
      writes |= writesGlobal(inner) && !rootOf(addressOf(inner)).isApartFrom(rootOf(addressOf(load)));
    });
    return writes;
  }

  /// It never goes back (`upward`: never gets smaller), as long as it does not wrap.
  bool goesOn(Value value, bool upward) {
    value = settled(value);
    if (isOfStill(value)) return true;
    if (auto arg = dyn_cast<BlockArgument>(value))
      return arg.getOwner() == loop_.getBeforeBody() &&
             isFurther(loop_.getYieldOp().getResults()[arg.getArgNumber()], value, upward);
    Operation* op = value.getDefiningOp();
    auto part = [&](unsigned i, bool up) { return goesOn(op->getOperand(i), up); };
    if (isMove(op) || isa<SplatOp, arith::ExtSIOp, arith::ExtUIOp>(op)) return part(0, upward);
    return isa<arith::AddIOp, arith::SubIOp>(op) && part(0, upward) &&
           part(1, isa<arith::AddIOp>(op) ? upward : !upward);
  }
  /// `value` is `from`, or lies further on.
  bool isFurther(Value value, Value from, bool upward) {
    value = settled(value);
    if (isStill(value, from)) return true;
    Operation* op = value.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::SelectOp>(op)) return false;
    auto part = [&](unsigned i) { return isFurther(op->getOperand(i), from, upward); };
    if (isa<arith::SelectOp>(op)) return part(1) && part(2);
    auto isStep = [&](unsigned i, bool up) {
      Value by = settled(op->getOperand(i));
      APInt whole;
      if (matchPattern(by, m_ConstantInt(&whole))) return up != whole.isNegative();
      auto flag = by.getDefiningOp<arith::ExtUIOp>();
      return up && flag && getElementTypeOrSelf(flag.getIn()).isInteger(1);
    };
    if (isa<arith::SubIOp>(op)) return isStep(1, !upward) && part(0);
    return (isStep(1, upward) && part(0)) || (isStep(0, upward) && part(1));
  }

  /// A warp that has left would say the same in every later iteration.
  bool staysLeft(Value value, bool holds) {
    if (isOfStill(value)) return true;
    value = settled(value);
    Operation* op = value.getDefiningOp();
    if (!op) return false;
    if (Value inner = negated(value)) return staysLeft(inner, !holds);
    if (isMove(op)) return staysLeft(op->getOperand(0), holds);
    if ((isa<arith::OrIOp>(op) && !holds) || (isa<arith::AndIOp>(op) && holds))
      return staysLeft(op->getOperand(0), holds) && staysLeft(op->getOperand(1), holds);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!compare) return false;
    using Is = arith::CmpIPredicate;
    const Is is = compare.getPredicate();
    if (is == Is::eq || is == Is::ne) return false;
    const bool isLess = is == Is::slt || is == Is::sle || is == Is::ult || is == Is::ule;
    const bool upward = isLess != holds;  // it left where it was not less: the first operand goes up
    return goesOn(compare.getLhs(), upward) && goesOn(compare.getRhs(), !upward);
  }

  Operation* op_;
  scf::WhileOp loop_;  ///< null: a branch
  Vote vote_;
  SmallVector<std::pair<Value, bool>> known_;
  SmallVector<Value> zero_;
  SmallVector<bool> stays_;  ///< by argument of the loop
  llvm::DenseMap<std::pair<Value, Value>, bool> same_, still_;
  llvm::DenseMap<Value, std::optional<bool>> conditions_;
  llvm::DenseMap<Value, bool> zeros_, ofStill_;
};

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
      if (isa<scf::WhileOp, scf::IfOp>(op)) decided.push_back(op);
    });
    for (Operation* op : decided) {
      auto vote = voteOf(op);
      if (!vote || !Left(op, *vote).mayPart()) continue;
      for (Operation* parting : {op, vote->reduce.getOperation()})
        parting->setAttr(kPartsAttr, UnitAttr::get(&getContext()));
    }
  }
};

}  // namespace

std::optional<Vote> voteOf(Operation* loopOrBranch) {
  if (auto branch = dyn_cast<scf::IfOp>(loopOrBranch)) return voteIn(branch.getCondition(), true, hasOneReader);
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
