// left_warps.cpp - see left_warps.h.
#include "compiler/gpu/order/left_warps.h"

#include <optional>

#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/order/carried_conditions.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// What is known of a warp none of whose elements wants another iteration (or the branch): it has left. Values of the
/// body are those that it would compute if it went on. All that is said of a tile is said of the elements that the warp
/// has.
class Left {
  static constexpr int kMostVisits = 128;  ///< of values in a proof

 public:
  Left(Operation* op, Vote vote)
      : op_(op), loop_(dyn_cast<scf::WhileOp>(op)), counted_(dyn_cast<scf::ForOp>(op)), vote_(vote) {
    if (loop_) carried_.emplace(loop_);
    if (!counted_) learn(vote.elements, vote.leftWhere);
  }

  bool mayPart() {
    bool works = true;
    op_->walk([&](Operation* inner) {
      works = works && (inner == op_ || inner == vote_.reduce || keepsToWarp(inner));
    });
    if (!works || counted_) return works && countsNothing();
    return loop_ ? carriesNothing() : bringsNothing(cast<scf::IfOp>(op_));
  }
  Operation* why() const { return why_; }

 private:
  /// An iteration changes nothing: not what the vote says, not what is read behind the loop.
  bool carriesNothing() {
    for (auto [next, arg] : llvm::zip(loop_.getYieldOp().getResults(), loop_.getBeforeArguments()))
      stays_.push_back(isStill(next, arg));
    if (!staysLeft(vote_.elements, vote_.leftWhere)) return false;
    return llvm::all_of(llvm::zip(loop_.getResults(), loop_.getConditionOp().getArgs()), [&](auto pair) {
      auto [result, value] = pair;
      if (result.use_empty() || isOfStill(value)) return true;
      if (auto arg = dyn_cast<BlockArgument>(value); arg && arg.getOwner() == loop_.getBeforeBody())
        why_ = loop_.getYieldOp().getOperand(arg.getArgNumber()).getDefiningOp();
      return false;
    });
  }
  /// The same of a loop that counts: past the largest number that the warp has. No barrier may be needed in it, since
  /// the memory that all warps would need to agree on a number again is not there: it touches nothing that is written.
  bool countsNothing() {
    bool touches = false;
    op_->walk([&](Operation* inner) {
      touches |= writesGlobal(inner) || inner->hasAttr(kReadsCopyAttr) || scratchOf(inner) ||
                 (isa<GatherOp, LoadOp>(inner) && mayBeWritten(inner, op_->getParentOfType<func::FuncOp>()));
    });
    if (touches) return false;
    return llvm::all_of(llvm::zip(counted_.getResults(), counted_.getYieldedValues(), counted_.getRegionIterArgs()),
                        [&](auto all) {
                          auto [result, next, arg] = all;
                          if (result.use_empty() || isStill(next, arg)) return true;
                          why_ = next.getDefiningOp();
                          return false;
                        });
  }
  /// a is b, with b and a.
  static arith::CmpIPredicate turned(arith::CmpIPredicate is) {
    using Is = arith::CmpIPredicate;
    return is == Is::sgt ? Is::slt : is == Is::sle ? Is::sge : Is::eq;
  }
  /// A comparison of the number of the iteration with those that it counts to: nullopt, it is another one.
  std::optional<bool> knownOfCount(arith::CmpIOp compare) {
    if (!counted_) return std::nullopt;
    auto source = [&](Value value) {
      while (Operation* op = value.getDefiningOp()) {
        if (!isMove(op) && !isa<SplatOp>(op)) break;
        value = op->getOperand(0);
      }
      return value;
    };
    Value left = source(compare.getLhs()), right = source(compare.getRhs());
    auto is = compare.getPredicate();
    if (right == counted_.getInductionVar()) std::swap(left, right), is = turned(is);
    if (left != counted_.getInductionVar() || !areSame(right, vote_.elements)) return std::nullopt;
    if (is == arith::CmpIPredicate::slt) return false;
    return is == arith::CmpIPredicate::sge ? std::optional(true) : std::nullopt;
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
    if (auto gather = dyn_cast<GatherOp>(op)) return !isVolatile(op) || leavesOut(gather.getMask());
    if (isa<LoadOp>(op)) return !isVolatile(op);
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
    if (llvm::is_contained(known_, std::pair(value, holds))) return;
    known_.emplace_back(value, holds);
    Operation* op = value.getDefiningOp();
    if (!op) return;
    if (Value inner = negated(value)) return learn(inner, !holds);
    if ((isa<arith::OrIOp>(op) && !holds) || (isa<arith::AndIOp>(op) && holds))
      for (Value operand : op->getOperands()) learn(operand, holds);
    if (isMove(op)) learn(op->getOperand(0), holds);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (compare && saysZero(compare, holds)) zero_.push_back(compare.getLhs());
  }
  static bool saysZero(arith::CmpIOp compare, bool holds) {
    using Is = arith::CmpIPredicate;
    const Is is = compare.getPredicate();
    if (matchPattern(compare.getRhs(), m_Zero()))
      return holds ? is == Is::eq || is == Is::ule : is == Is::ne || is == Is::ugt;
    return matchPattern(compare.getRhs(), m_One()) && is == (holds ? Is::ult : Is::uge);
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
    if (a == b || isCarriedAs(a, b) || isCarriedAs(b, a)) return true;
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

  bool isCarriedAs(Value value, Value condition) {
    auto arg = dyn_cast<BlockArgument>(condition);
    return carried_ && arg && carried_->areSame(value, arg, [&](Value a, Value b) { return isStill(a, b); });
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
    if (auto compare = dyn_cast<arith::CmpFOp>(op); compare && isNeverLess(compare)) return false;
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      if (APInt whole; matchPattern(compare.getRhs(), m_ConstantInt(&whole)) && isZero(compare.getLhs()))
        return arith::applyCmpPredicate(compare.getPredicate(), APInt(whole.getBitWidth(), 0), whole);
      return knownOfCount(compare);
    }
    if (auto choice = dyn_cast<arith::SelectOp>(op)) {
      if (auto chosen = choiceOf(choice)) return knownAs(chosen);
      if (const auto a = part(1), b = part(2); a && a == b) return a;
    }
    return std::nullopt;
  }
  /// Infinity is not less than anything (nearer than the nearest so far), and nothing is more.
  bool isNeverLess(arith::CmpFOp compare) {
    using Is = arith::CmpFPredicate;
    const Is is = compare.getPredicate();
    if (is != Is::OLT && is != Is::OGT) return false;
    auto isEnd = [&](Value value, bool negative) {
      APFloat real(0.0);
      return matchPattern(settled(value), m_ConstantFloat(&real)) && real.isInfinity() && real.isNegative() == negative;
    };
    return isEnd(compare.getLhs(), is == Is::OGT) || isEnd(compare.getRhs(), is == Is::OLT);
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
    if (getElementTypeOrSelf(value).isInteger(1) && knownAs(value) == false) return true;
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
    if (isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp, arith::DivSIOp, arith::RemUIOp,
            arith::RemSIOp>(op))
      return part(0);
    if (isa<arith::MulFOp>(op))  // zero times infinity is none
      return (part(0) && (part(1) || isFinite(op->getOperand(1)))) || (part(1) && isFinite(op->getOperand(0)));
    return isa<arith::AddIOp, arith::SubIOp, arith::OrIOp, arith::XOrIOp, arith::AddFOp, arith::SubFOp>(op) &&
           part(0) && part(1);
  }

  /// All bits are set.
  bool isOnes(Value value) {
    value = settled(value);
    APInt whole;
    if (matchPattern(value, m_ConstantInt(&whole))) return whole.isAllOnes();
    return getElementTypeOrSelf(value).isInteger(1) && knownAs(value) == true;
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
    if (isa<arith::AndIOp>(op))
      return (isOnes(op->getOperand(1)) && stays(0)) || (isOnes(op->getOperand(0)) && stays(1));
    if (isa<arith::SubIOp, arith::SubFOp, arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op))
      return isNothing(1) && stays(0);
    if (isa<arith::MulFOp, arith::MulIOp>(op))
      for (unsigned i : {0u, 1u})
        if (isConstant(settled(op->getOperand(i)), 1) && stays(1 - i)) return true;
    return false;
  }

  static bool isMost(Operation* op) {
    return isa<arith::MaxNumFOp, arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(op);
  }
  static bool isExtreme(Operation* op) {
    return isMost(op) || isa<arith::MinNumFOp, arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(op);
  }
  /// The operand of an extreme is the end of its type's range.
  bool isNeverChosen(Operation* op, unsigned i) {
    const Value value = settled(op->getOperand(i));
    APFloat real(0.0);
    if (matchPattern(value, m_ConstantFloat(&real))) return real.isInfinity() && real.isNegative() == isMost(op);
    APInt whole;
    if (!matchPattern(value, m_ConstantInt(&whole))) return false;
    if (isa<arith::MaxUIOp, arith::MinUIOp>(op)) return isMost(op) ? whole.isZero() : whole.isAllOnes();
    return isMost(op) ? whole.isMinSignedValue() : whole.isMaxSignedValue();
  }

  /// No NaN, beside which an extreme would choose the end of the range: an extreme of anything and a number is one.
  /// What loops carry is one if it begins as one and each iteration makes one of it. Integers are numbers.
  static bool isNumber(Value value) {
    llvm::DenseSet<Value> supposed;
    int visits = kMostVisits;
    return isNumber(value, supposed, visits);
  }
  /// `supposed`: what is being proved, and may be used in its own proof (what loops carry).
  static bool isNumber(Value value, llvm::DenseSet<Value>& supposed, int& visits) {
    if (isa<IntegerType>(getElementTypeOrSelf(value))) return true;
    APFloat real(0.0);
    if (matchPattern(value, m_ConstantFloat(&real))) return !real.isNaN();
    if (supposed.contains(value)) return true;
    if (--visits < 0) return false;
    supposed.insert(value);
    const bool is = findNumber(value, [&](Value other) { return isNumber(other, supposed, visits); });
    supposed.erase(value);
    return is;
  }
  static bool findNumber(Value value, llvm::function_ref<bool(Value)> isNumber) {
    auto arg = dyn_cast<BlockArgument>(value);
    Operation* op = arg ? arg.getOwner()->getParentOp() : value.getDefiningOp();
    if (auto loop = dyn_cast_or_null<scf::ForOp>(op)) {
      const unsigned i = arg ? arg.getArgNumber() - 1 : cast<OpResult>(value).getResultNumber();  // never the counter
      return isNumber(loop.getInitArgs()[i]) && isNumber(loop.getYieldedValues()[i]);
    }
    if (auto loop = dyn_cast_or_null<scf::WhileOp>(op)) {
      if (arg && arg.getOwner() == loop.getBeforeBody())
        return isNumber(loop.getInits()[arg.getArgNumber()]) &&
               isNumber(loop.getYieldOp().getResults()[arg.getArgNumber()]);
      const unsigned i = arg ? arg.getArgNumber() : cast<OpResult>(value).getResultNumber();
      return isNumber(loop.getConditionOp().getArgs()[i]);
    }
    if (arg || !op) return false;
    auto part = [&](unsigned i) { return isNumber(op->getOperand(i)); };
    if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op)) return part(0) || part(1);
    if (isa<arith::SelectOp>(op)) return part(1) && part(2);
    return (isMove(op) || isa<SplatOp>(op)) && part(0);
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
    const bool isRead = isa<GatherOp, LoadOp>(op) && !mayBeWritten(op, op_);
    const bool still = (isRead || isMemoryEffectFree(op)) &&
                       llvm::all_of(op->getOperands(), [&](Value operand) { return isOfStill(operand); });
    return ofStill_[value] = still;
  }
  /// `within` may write what is read there.
  static bool mayBeWritten(Operation* load, Operation* within) {
    bool writes = false;
    within->walk([&](Operation* inner) {
      writes |= writesGlobal(inner) && !rootOf(addressOf(inner)).isApartFrom(rootOf(addressOf(load)));
    });
    return writes;
  }

  /// It never goes back (`upward`: never gets smaller), as long as it does not wrap.
  bool goesOn(Value value, bool upward) {
    value = settled(value);
    if (isOfStill(value)) return true;
    auto [found, isNew] = goesOn_[upward].try_emplace(value, false);
    if (!isNew) return found->second;
    const bool goes = findGoesOn(value, upward);
    return goesOn_[upward][value] = goes;
  }
  bool findGoesOn(Value value, bool upward) {
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
    auto [found, isNew] = further_[upward].try_emplace(std::pair(value, from), false);
    if (!isNew) return found->second;
    const bool further = findFurther(value.getDefiningOp(), from, upward);
    return further_[upward][std::pair(value, from)] = further;
  }
  bool findFurther(Operation* op, Value from, bool upward) {
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
    if (isa<arith::OrIOp, arith::AndIOp>(op))  // of each element one part says so, and goes on saying it
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
  Operation* why_ = nullptr;  ///< an op that makes what changes
  scf::WhileOp loop_;   ///< null: a branch, or a loop that counts
  scf::ForOp counted_;  ///< the latter
  std::optional<CarriedConditions> carried_;
  Vote vote_;
  SmallVector<std::pair<Value, bool>> known_;
  SmallVector<Value> zero_;
  SmallVector<bool> stays_;  ///< by argument of the loop
  llvm::DenseMap<std::pair<Value, Value>, bool> same_, still_;
  llvm::DenseMap<std::pair<Value, Value>, bool> further_[2];  ///< [upward]
  llvm::DenseMap<Value, bool> goesOn_[2];
  llvm::DenseMap<Value, std::optional<bool>> conditions_;
  llvm::DenseMap<Value, bool> zeros_, ofStill_;
};

}  // namespace

bool mayLeave(Operation* op, const Vote& vote, Operation*& why) {
  Left left(op, vote);
  const bool may = left.mayPart();
  why = may ? nullptr : left.why();
  return may;
}

}  // namespace tile::ir
