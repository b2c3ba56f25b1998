// peel_masks.cpp - a mask that only the first or last iterations of a loop need is computed in those alone.
// Before: a loop with products selects `where(visible, scores, constant)`; `visible` is a conjunction of comparisons
//         between index tiles that are linear in the induction variable, as at the diagonal or the ragged end of
//         attention; places of rows may be any numbers close together (`first + row / 8` of heads that share a tile).
// After:  up to three loops in a row with the same body: [lb, lo) masked, [lo, hi) with the scores as they are,
//         [hi, ub) masked. Parts that cannot exist are left out.
// Loads and stores under the same comparisons lose their masks in the middle loop, too (and with them, what hides that
// neighbours read neighbours: places read from a table).
// A tile that was copied to shared memory, read to be masked and shared again for a product is read by the product
// itself in the middle loop.
// Branches around products go the same way, when their condition is such a conjunction: where it holds the products
// stand in the loop itself (rotate.cpp leaves such a branch, for the first iteration).
// lo and hi are computed in front of the loop with 64 bits: for each comparison the iterations in which it holds for
// every element of its tile. Where the program's own 32-bit arithmetic might wrap (and mean something else than its
// linear form), the middle part is empty; so it is where integers of 64 bits, of which nothing is known, turn out so
// large that these formulas might wrap. Comparisons that are no such thing leave their selects alone. Of a
// disjunction one side is enough: `visible | (i >= first)` is a mask for the iterations before `first`, whatever
// `visible` is.
#include <array>

#include "compiler/analysis/linear_form.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/products.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {
#define GEN_PASS_DEF_PEELMASKS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kWorthElements = 1024;      ///< a select on fewer elements costs nothing
constexpr int64_t kMostBodyOps = 400;         ///< a longer body is not copied
constexpr int64_t kSafe = int64_t{1} << 60;   ///< sums up to here cannot leave 64 bits
constexpr int64_t kSmall = int64_t{1} << 44;  ///< values of more bits are looked at in front of the loop

/// The comparisons of one loop as forms without coordinates, and what must fit for them to be linear.
class Conditions {
 public:
  Conditions(scf::ForOp loop, const Facts& facts) : loop_(loop), facts_(facts), forms_(loop, facts) {}

  /// What makes a condition false.
  enum class Where : uint8_t { nowhere, start, anywhere };
  /// Adds the conjunction and says where in the loop it can be false; nowhere (and nothing added) when some part of it
  /// is not known, is never true, or when it is the same in all iterations.
  Where add(Value mask) {
    SmallVector<LinearForm> made;
    SmallVector<FittingForm> fitting;
    compares_.clear();
    large_.clear();
    if (!collect(mask, made, fitting)) return Where::nowhere;
    if (llvm::all_of(made, [](const LinearForm& form) { return form.iv == 0; })) return Where::nowhere;
    if (llvm::any_of(made, [](const LinearForm& form) { return form.isConstant() && form.constant > 0; }))
      return Where::nowhere;
    llvm::append_range(conditions, made);
    llvm::append_range(needs, fitting);
    hold.insert(compares_.begin(), compares_.end());
    large.insert(large_.begin(), large_.end());
    const bool start = llvm::all_of(made, [](const LinearForm& form) { return form.iv < 0; }) &&
                       llvm::all_of(fitting, [](const FittingForm& need) { return need.bits >= 64; });
    return start ? Where::start : Where::anywhere;
  }

  SmallVector<LinearForm> conditions;  ///< all <= 0: nothing is masked
  SmallVector<FittingForm> needs;
  llvm::SetVector<Value> large;  ///< integers whose absolute values must be at most kSmall for all this
  llvm::SetVector<Value> hold;   ///< comparisons that are true for all elements where nothing is masked

 private:
  bool collect(Value mask, SmallVectorImpl<LinearForm>& made, SmallVectorImpl<FittingForm>& fitting) {
    if (matchPattern(mask, m_One())) return true;
    Operation* op = mask.getDefiningOp();
    if (!op) return false;
    // The least favourable element decides, wherever it is.
    if (isa<BroadcastOp, ReshapeOp, TransOp, SplatOp>(op)) return collect(op->getOperand(0), made, fitting);
    if (isa<arith::AndIOp>(op))
      return collect(op->getOperand(0), made, fitting) && collect(op->getOperand(1), made, fitting);
    if (isa<arith::OrIOp>(op)) return collectEither(op, made, fitting);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (!compare) return false;
    auto a = forms_.of(compare.getLhs(), fitting), b = forms_.of(compare.getRhs(), fitting);
    if (!a || !b) return false;
    LinearForm difference;
    switch (compare.getPredicate()) {
      case arith::CmpIPredicate::slt:
      case arith::CmpIPredicate::sle:
        difference = a->plus(b->scaled(-1));
        break;
      case arith::CmpIPredicate::sgt:
      case arith::CmpIPredicate::sge:
        difference = b->plus(a->scaled(-1));
        break;
      default:
        return false;
    }
    if (compare.getPredicate() == arith::CmpIPredicate::slt || compare.getPredicate() == arith::CmpIPredicate::sgt)
      difference.constant += 1;
    auto tile = dyn_cast<RankedTensorType>(compare.getLhs().getType());
    if (tile) difference.constant += difference.coordinateRange(tile.getShape()).max;
    difference.dims.clear(), difference.rest = {0, 0};
    if (!isBounded(difference, large_)) return false;
    for (const FittingForm& need : fitting)
      if (!isBounded(need.form, large_)) return false;
    made.push_back(difference);
    compares_.push_back(mask);
    return true;
  }

  /// One side is enough, whatever the other is: the one that changes with the iterations.
  bool collectEither(Operation* op, SmallVectorImpl<LinearForm>& made, SmallVectorImpl<FittingForm>& fitting) {
    for (bool changes : {true, false})
      for (Value side : op->getOperands()) {
        const size_t forms = made.size(), needs = fitting.size(), compares = compares_.size();
        if (collect(side, made, fitting) &&
            (!changes || llvm::any_of(ArrayRef(made).drop_front(forms), [](const LinearForm& f) { return f.iv != 0; })))
          return true;
        made.truncate(forms), fitting.truncate(needs), compares_.truncate(compares);
      }
    return false;
  }

  /// Computing the form with 64 bits cannot wrap, as long as what `large` gets is small.
  bool isBounded(const LinearForm& form, llvm::SetVector<Value>& large) const {
    __int128 sum = std::abs(form.constant);
    auto add = [&](Value value, int64_t factor) {
      Range range = facts_.rangeOf(value);
      __int128 largest = std::max(-static_cast<__int128>(range.min), static_cast<__int128>(range.max));
      if (largest > kSmall) largest = kSmall, large.insert(value);
      sum += std::abs(factor) * largest;
    };
    scf::ForOp loop = loop_;
    // Bounds and step join the induction variable in the formulas for lo and hi.
    for (Value v : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
      add(v, std::max<int64_t>(1, std::abs(form.iv)));
    for (auto [value, factor] : form.symbols) add(value, factor);
    return sum <= kSafe && !large.contains(loop.getStep());  // divisors are never made of what may be anything
  }

  scf::ForOp loop_;
  const Facts& facts_;
  LinearForms forms_;
  SmallVector<Value> compares_;   ///< of the conjunction that is being added
  llvm::SetVector<Value> large_;  ///< what it wants to be small
};

Value allTrue(OpBuilder& b, Location loc, Type type) {
  TypedAttr value = b.getBoolAttr(true);
  if (auto tile = dyn_cast<RankedTensorType>(type)) value = DenseElementsAttr::get(tile, true);
  return arith::ConstantOp::create(b, loc, value);
}

/// `condition` holds inside of the loop: so do masks made of it, which loads and stores need no longer.
void assumeIn(scf::ForOp loop, Value condition) {
  SmallVector<Value> known{condition};
  while (!known.empty()) {
    Value holds = known.pop_back_val();
    for (OpOperand& use : llvm::make_early_inc_range(holds.getUses())) {
      Operation* user = use.getOwner();
      if (!loop->isProperAncestor(user)) continue;
      if (isa<BroadcastOp, ReshapeOp, TransOp, SplatOp, arith::OrIOp>(user)) {
        known.push_back(user->getResult(0));
      } else if (isa<arith::AndIOp>(user)) {
        user->getResult(0).replaceAllUsesWith(user->getOperand(1 - use.getOperandNumber()));
      } else if (auto gather = dyn_cast<GatherOp>(user); gather && gather.getMask() == holds) {
        gather.getMaskMutable().clear();
        gather.getOtherMutable().clear();
      } else if (auto gather = dyn_cast<GatherSharedOp>(user)) {
        gather.getMaskMutable().clear();
      } else if (auto scatter = dyn_cast<ScatterOp>(user); scatter && scatter.getMask() == holds) {
        scatter.getMaskMutable().clear();
      } else {
        OpBuilder b(user);
        use.set(allTrue(b, user->getLoc(), holds.getType()));
      }
    }
  }
}

/// Scalar code in front of the loop, 64 bits wide.
class Wide {
 public:
  Wide(OpBuilder& b, Location loc) : b_(b), loc_(loc) {}
  Value constant(int64_t v) { return arith::ConstantIntOp::create(b_, loc_, v, 64); }
  Value flag(bool v) { return arith::ConstantIntOp::create(b_, loc_, v, 1); }
  Value extended(Value v) {
    if (v.getType().isInteger(64)) return v;
    if (v.getType().isIndex()) return b_.createOrFold<arith::IndexCastOp>(loc_, b_.getI64Type(), v);
    return b_.createOrFold<arith::ExtSIOp>(loc_, b_.getI64Type(), v);
  }
  /// `fits`: the type holds the value.
  Value narrowed(Value v, Type type, bool fits = false) {
    if (type.isInteger(64)) return v;
    if (type.isIndex()) return b_.createOrFold<arith::IndexCastOp>(loc_, type, v);
    const auto flags = fits ? arith::IntegerOverflowFlags::nsw : arith::IntegerOverflowFlags::none;
    return b_.createOrFold<arith::TruncIOp>(loc_, type, v, flags);
  }
  template <class Op>
  Value make(Value x, Value y) {
    return b_.createOrFold<Op>(loc_, x, y);
  }
  Value times(Value x, int64_t factor) { return factor == 1 ? x : make<arith::MulIOp>(x, constant(factor)); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return b_.createOrFold<arith::CmpIOp>(loc_, predicate, x, y);
  }
  Value select(Value c, Value x, Value y) { return b_.createOrFold<arith::SelectOp>(loc_, c, x, y); }
  /// The form without its induction variable's part.
  Value invariant(const LinearForm& form) {
    Value sum = constant(form.constant);
    for (auto [value, factor] : form.symbols) sum = make<arith::AddIOp>(sum, times(extended(value), factor));
    return sum;
  }

 private:
  OpBuilder& b_;
  Location loc_;
};

class Peeler {
 public:
  Peeler(scf::ForOp loop, const Facts& facts) : loop_(loop), conditions_(loop, facts) {}

  bool worthIt() {
    if (loop_.getUnsignedCmp()) return false;
    int64_t ops = 0;
    loop_.getRegion().walk([&](Operation*) { ++ops; });
    if (!hasProduct(loop_) || ops > kMostBodyOps) return false;
    if (auto trips = loop_.getStaticTripCount(); trips && trips->getSExtValue() <= 2) return false;
    for (Operation& op : *loop_.getBody()) {
      if (auto branch = dyn_cast<scf::IfOp>(op); branch && hasProduct(branch))
        if (auto where = conditions_.add(branch.getCondition()); where != Conditions::Where::nowhere)
          branches_.push_back({branch, where});
      auto select = dyn_cast<arith::SelectOp>(op);
      auto tile = select ? dyn_cast<RankedTensorType>(select.getType()) : RankedTensorType();
      if (!tile || tile.getNumElements() < kWorthElements) continue;
      DenseElementsAttr hidden;
      if (!matchPattern(select.getFalseValue(), m_Constant(&hidden)) || !hidden.isSplat()) continue;
      // One of two integers is a number (a bucket, a step), not something that is hidden.
      if (tile.getElementType().isIntOrIndex() && matchPattern(select.getTrueValue(), m_Constant())) continue;
      if (conditions_.add(select.getCondition()) != Conditions::Where::nowhere) selects_.push_back(select);
    }
    return (!selects_.empty() || !branches_.empty()) && !isNarrow();
  }

  /// Whether at most one iteration can be without a mask: of a window that is hardly wider than what an iteration sees.
  bool isNarrow() {
    APInt step;
    if (!matchPattern(loop_.getStep(), m_ConstantInt(&step))) return false;
    // -k iv + x <= 0 and k iv + y <= 0: iv from x / k to -y / k
    for (const LinearForm& begin : conditions_.conditions)
      for (const LinearForm& end : conditions_.conditions) {
        const LinearForm both = begin.plus(end);
        if (begin.iv < 0 && both.isConstant() && -both.constant < end.iv * step.getSExtValue()) return true;
      }
    return false;
  }

  /// Some of the first iterations will be a loop of their own.
  bool splitsStart() const {
    return llvm::any_of(conditions_.conditions, [](auto& c) { return c.iv < 0; });
  }

  void rewrite() {
    OpBuilder builder(loop_), early(loop_);
    placeEarly(early);
    const bool hasFirst = splitsStart();
    bool hasLast = llvm::any_of(conditions_.conditions, [](auto& c) { return c.iv > 0; });
    bool canFail = llvm::any_of(conditions_.conditions, [](auto& c) { return c.iv == 0; }) ||
                   llvm::any_of(conditions_.needs, [](auto& n) { return n.bits < 64; }) || !conditions_.large.empty();
    if (!hasFirst) hasLast |= canFail;  // some loop must be there for the iterations that keep their mask
    bounds(early, hasFirst, hasLast);

    SmallVector<Value> carried(loop_.getInitArgs());
    if (hasFirst) carried = part(builder, loop_.getLowerBound(), firstEnd_, carried, Part::first);
    carried = part(builder, hasFirst ? middle_ : loop_.getLowerBound(), middleEnd_, carried, Part::middle);
    if (hasLast) carried = part(builder, last_, lastEnd_, carried, Part::last);
    loop_.replaceAllUsesWith(carried);
    loop_.erase();
  }

 private:
  enum class Part : uint8_t { first, middle, last };
  struct Branch {
    scf::IfOp op;
    Conditions::Where where;
  };

  /// Where all that the bounds need is there, out of the branch that guards the loop: what runs in front of the loop
  /// (an iteration of it, perhaps) has better use for its registers.
  void placeEarly(OpBuilder& builder) {
    llvm::SetVector<Value> inputs;
    for (Value v : {loop_.getLowerBound(), loop_.getUpperBound(), loop_.getStep()}) inputs.insert(v);
    for (auto& form : conditions_.conditions)
      for (auto& symbol : form.symbols) inputs.insert(symbol.first);
    for (auto& need : conditions_.needs)
      for (auto& symbol : need.form.symbols) inputs.insert(symbol.first);
    inputs.insert(conditions_.large.begin(), conditions_.large.end());
    Operation* anchor = loop_;
    while (auto branch = dyn_cast<scf::IfOp>(anchor->getParentOp())) {
      if (llvm::any_of(inputs, [&](Value v) { return branch->isAncestor(v.getParentBlock()->getParentOp()); })) break;
      anchor = branch;
    }
    Operation* last = nullptr;
    for (Value v : inputs) {
      Operation* op = v.getDefiningOp();
      if (op && op->getBlock() == anchor->getBlock() && (!last || last->isBeforeInBlock(op))) last = op;
    }
    if (last)
      builder.setInsertionPointAfter(last);
    else
      builder.setInsertionPointToStart(anchor->getBlock());
  }

  /// Iterations are counted from 0 to n; [begin, end) need no mask. Lower bounds of the parts stay on the loop's grid
  /// (so that what divides bound and step divides the induction variable); a bound past the loop's own is never
  /// reached.
  void bounds(OpBuilder& builder, bool hasFirst, bool hasLast) {
    Wide w(builder, loop_.getLoc());
    const Type type = loop_.getLowerBound().getType();
    Value lower = w.extended(loop_.getLowerBound()), upper = w.extended(loop_.getUpperBound()),
          step = w.extended(loop_.getStep()), zero = w.constant(0);
    Value count = w.make<arith::MaxSIOp>(w.make<arith::CeilDivSIOp>(w.make<arith::SubIOp>(upper, lower), step), zero);
    Value begin = zero, end = count, valid;
    auto also = [&](Value condition) { valid = valid ? w.make<arith::AndIOp>(valid, condition) : condition; };
    for (const LinearForm& form : conditions_.conditions) {
      // iv * (lower + i * step) + rest <= 0
      Value rest = w.invariant(form);
      if (form.iv == 0) {
        also(w.compare(arith::CmpIPredicate::sle, rest, zero));
        continue;
      }
      Value atStart = w.make<arith::AddIOp>(rest, w.times(lower, form.iv));
      if (form.iv > 0) {
        Value holds = w.make<arith::FloorDivSIOp>(w.make<arith::SubIOp>(zero, atStart), w.times(step, form.iv));
        end = w.make<arith::MinSIOp>(end, w.make<arith::AddIOp>(holds, w.constant(1)));
      } else {
        begin = w.make<arith::MaxSIOp>(begin, w.make<arith::CeilDivSIOp>(atStart, w.times(step, -form.iv)));
      }
    }
    for (const FittingForm& need : conditions_.needs) addFit(w, need, lower, upper, also);
    // Where nothing is known all iterations are masked: in the first loop if there is one, else in the last. What is
    // false in the first iterations only is true in the last loop: that one starts behind them.
    if (valid && hasFirst) begin = w.select(valid, begin, count);
    if (valid && !hasFirst) end = w.select(valid, end, zero);
    begin = w.make<arith::MinSIOp>(begin, count);
    end = w.make<arith::MaxSIOp>(end, begin);

    auto at = [&](Value iteration) { return w.make<arith::AddIOp>(lower, w.make<arith::MulIOp>(iteration, step)); };
    const Value beginAt = at(begin), endAt = at(end);
    if (type.isInteger(64))
      setWide(w, beginAt, endAt, hasFirst, hasLast);
    else
      setNarrow(w, {begin, end, count}, beginAt, endAt, hasFirst, hasLast);
  }

  /// Nothing wraps in 64 bits: one part ends where the next one begins, at the loop's end or less than a step behind
  /// it.
  void setWide(Wide& w, Value beginAt, Value endAt, bool hasFirst, bool hasLast) {
    if (!conditions_.large.empty()) {  // where the bounds mean nothing, one part that has masks does all iterations
      Value small = allSmall(w), edge = hasFirst ? loop_.getUpperBound() : loop_.getLowerBound();
      beginAt = w.select(small, beginAt, edge);
      endAt = w.select(small, endAt, edge);
    }
    firstEnd_ = middle_ = beginAt;
    middleEnd_ = hasLast ? endAt : loop_.getUpperBound();
    last_ = endAt, lastEnd_ = loop_.getUpperBound();
  }

  /// The same for types in which the end of a part may wrap.
  void setNarrow(Wide& w, std::array<Value, 3> iterations, Value beginAt, Value endAt, bool hasFirst, bool hasLast) {
    auto [begin, end, count] = iterations;
    const Type type = loop_.getLowerBound().getType();
    const Value upper = w.extended(loop_.getUpperBound());
    auto capped = [&](Value bound) { return w.narrowed(w.make<arith::MinSIOp>(bound, upper), type, /*fits=*/true); };
    firstEnd_ = capped(beginAt);
    middle_ = w.narrowed(beginAt, type);
    middleEnd_ = hasLast ? capped(endAt) : loop_.getUpperBound();
    if (hasFirst)  // a start past the upper bound may have wrapped
      middleEnd_ = w.select(w.compare(arith::CmpIPredicate::slt, begin, end), middleEnd_, middle_);
    last_ = w.narrowed(endAt, type);
    if (hasLast) lastEnd_ = w.select(w.compare(arith::CmpIPredicate::slt, end, count), loop_.getUpperBound(), last_);
    if (!conditions_.large.empty()) maskAllUnless(w, allSmall(w), hasFirst, hasLast);
  }

  Value allSmall(Wide& w) {
    Value all;
    for (Value v : conditions_.large) {
      // -kSmall <= v < kSmall, as one comparison
      Value above = w.make<arith::AddIOp>(w.extended(v), w.constant(kSmall));
      Value is = w.compare(arith::CmpIPredicate::ult, above, w.constant(2 * kSmall));
      all = all ? w.make<arith::AndIOp>(all, is) : is;
    }
    return all;
  }

  /// Where the bounds mean nothing, one part that has masks does all iterations.
  void maskAllUnless(Wide& w, Value known, bool hasFirst, bool hasLast) {
    Value lower = loop_.getLowerBound(), upper = loop_.getUpperBound(), middle = hasFirst ? upper : lower;
    if (hasFirst) firstEnd_ = w.select(known, firstEnd_, upper);
    middle_ = w.select(known, middle_, middle);
    middleEnd_ = w.select(known, middleEnd_, middle);
    last_ = w.select(known, last_, middle);
    if (hasLast) lastEnd_ = w.select(known, lastEnd_, upper);
  }

  /// The program computes the form without wrapping in all iterations.
  template <class Also>
  void addFit(Wide& w, const FittingForm& need, Value lower, Value upper, Also also) {
    if (need.bits >= 64) return;  // bounded already
    LinearForm form = need.form;
    Range tile = form.coordinateRange(need.shape), type = fullRange(need.bits);
    form.dims.clear();
    Value rest = w.invariant(form);
    Value atLower = w.make<arith::AddIOp>(rest, w.times(lower, form.iv)),
          atUpper = w.make<arith::AddIOp>(rest, w.times(upper, form.iv));
    for (Value edge : form.iv ? SmallVector<Value>{atLower, atUpper} : SmallVector<Value>{rest}) {
      also(w.compare(arith::CmpIPredicate::sle, edge, w.constant(type.max - tile.max)));
      also(w.compare(arith::CmpIPredicate::sge, edge, w.constant(type.min - tile.min)));
    }
  }

  /// The branch is gone, what it did when its condition held stays.
  static void inlineThen(scf::IfOp branch) {
    Block* body = branch.thenBlock();
    auto yield = cast<scf::YieldOp>(body->getTerminator());
    branch->getBlock()->getOperations().splice(Block::iterator(branch), body->getOperations(), body->begin(),
                                               Block::iterator(yield));
    branch.replaceAllUsesWith(yield.getResults());
    branch.erase();
  }

  /// Masks a tile that came from shared memory and goes back there.
  static bool isOfShared(arith::SelectOp select) {
    auto read = select.getTrueValue().getDefiningOp<SmemLoadOp>();
    return read && llvm::any_of(select->getUsers(), [&](Operation* user) {
             auto share = dyn_cast<ShareOp>(user);
             return share && share.getResult().getType() == read.getSource().getType();
           });
  }

  /// What came from shared memory only to be masked need not go back there where nothing is masked.
  static void readInPlace(scf::ForOp loop) {
    for (ShareOp share : llvm::make_early_inc_range(loop.getBody()->getOps<ShareOp>())) {
      auto read = share.getSource().getDefiningOp<SmemLoadOp>();
      if (!read || read.getSource().getType() != share.getResult().getType()) continue;
      share.getResult().replaceAllUsesWith(read.getSource());
      share.erase();
      if (read->use_empty()) read.erase();
    }
  }

  SmallVector<Value> part(OpBuilder& builder, Value lower, Value upper, ValueRange carried, Part which) {
    IRMapping map;
    auto copy = cast<scf::ForOp>(builder.clone(*loop_, map));
    copy.getLowerBoundMutable().assign(lower);
    copy.getUpperBoundMutable().assign(upper);
    copy.getInitArgsMutable().assign(carried);
    for (Branch branch : branches_) {
      auto here = cast<scf::IfOp>(map.lookup(branch.op.getOperation()));
      if (which == Part::middle || (which == Part::last && branch.where == Conditions::Where::start)) inlineThen(here);
    }
    // Their copies do not go through the middle loop's buffers: few iterations, little room.
    if (which != Part::middle && llvm::any_of(selects_, isOfShared))
      copy->setAttr("tile.stages", builder.getI32IntegerAttr(1));
    if (which == Part::middle) {
      for (arith::SelectOp select : selects_) {
        auto here = cast<arith::SelectOp>(map.lookup(select.getResult()).getDefiningOp());
        here.getResult().replaceAllUsesWith(here.getTrueValue());
      }
      for (Value condition : conditions_.hold) assumeIn(copy, map.lookupOrDefault(condition));
      readInPlace(copy);
      for (Operation& op : llvm::make_early_inc_range(llvm::reverse(*copy.getBody())))
        if (isOpTriviallyDead(&op)) op.erase();
    }
    return SmallVector<Value>(copy.getResults());
  }

  scf::ForOp loop_;
  Conditions conditions_;
  SmallVector<arith::SelectOp> selects_;
  SmallVector<Branch> branches_;
  Value firstEnd_, middle_, middleEnd_, last_, lastEnd_;
};

struct PeelMasks : impl::PeelMasksBase<PeelMasks> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      Facts facts(getOperation());
      Peeler peeler(loop, facts);
      if (peeler.worthIt()) peeler.rewrite();
    }
  }
};

}  // namespace

bool masksAtStart(scf::ForOp loop, const Facts& facts) {
  Peeler peeler(loop, facts);
  return peeler.worthIt() && peeler.splitsStart();
}

}  // namespace tile::ir
