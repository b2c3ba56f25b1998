// flatten_loops.cpp - makes one loop of nested ones around a product, so that copies and products follow each other
// without a gap.
// Before: `for tap { for c { acc = acc + x[tap, c] * w[tap, c] } }`: loops around one of products whose copies will run
//         ahead, with nothing beside it but what can be computed at any time (addresses and masks of the tap, also of
//         places that a table has). Every tap would wait for its first copies, and at its end for the last product.
// After:  one loop over all pairs. It carries the induction variables: the inner one advances by its step and begins
//         again behind its last value, where the outer one advances. What stood around the inner loop is computed in
//         every iteration.
//
// Values that the loops carry must come through all of them (sums); scalars may begin again with an inner loop, or be
// advanced by an outer one (addresses). Bounds must be the same for the whole nest, or an inner loop goes over as many
// numbers every time (from `b` to `b + n`, which is taken not to wrap: README of the language); then it counts from 0.
//
// Loops stay as they are where that would cost more than a gap: the inner one is long, what stands around it is much
// beside the product, it copies what all of its iterations copy alike, it loads tiles that are no operands (which
// fetch_ahead does an iteration early where places follow from the induction variable alone), or it has masks or
// branches that peel_masks takes out of most iterations.

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/products.h"
#include "compiler/gpu/access/copy_layout.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/rings/copy_slice.h"
#include "compiler/gpu/rings/ring_groups.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

bool isScalar(Value v) { return isa<IntegerType, PtrType>(v.getType()); }

/// A value that loops of the nest carry.
struct Carried {
  size_t from, to;  ///< the outermost and the innermost of the loops that carry it
  Value init;       ///< at the beginning of loop `from`
  Value result;     ///< of loop `from`
  SmallVector<BlockArgument> args;
  unsigned number() const { return args.back().getArgNumber() - 1; }  ///< in loop `to`
};

/// From where to where a loop counts, by its step, on top of `base` if there is one.
struct Span {
  Value base, low, high;
  std::optional<int64_t> numbers;  ///< from 0, in the place of low and high
};

/// Loops around each other, the outermost first, and what they carry.
class Nest {
 public:
  explicit Nest(scf::ForOp inner) { loops_.push_back(inner); }

  /// Adds the loop around the outermost one where the two can be one.
  bool widen() {
    scf::ForOp top = loops_.front(), outer = dyn_cast<scf::ForOp>(top->getParentOp());
    if (!outer || !canCount(outer) || !canCount(top) || !isOnlyAddresses(outer, top)) return false;
    loops_.insert(loops_.begin(), outer);
    if (sort()) return true;
    loops_.erase(loops_.begin());
    sort();  // what the others carry, as it was
    return false;
  }
  bool isOne() const { return loops_.size() == 1; }

  void flatten();

 private:
  /// By steps that are positive (guard_steps); 64 bits hold the number of all iterations.
  static bool canCount(scf::ForOp loop) {
    return loop.getInductionVar().getType().isInteger(32) && !loop.getUnsignedCmp();
  }

  /// Whether all that stands beside the inner loop can be computed at any time, and before it.
  static bool isOnlyAddresses(scf::ForOp outer, scf::ForOp inner) {
    return llvm::all_of(*outer.getBody(), [&](Operation& op) {
      if (&op == inner || op.hasTrait<OpTrait::IsTerminator>()) return true;
      return op.getNumRegions() == 0 && (isMemoryEffectFree(&op) || isReadOfPlaces(&op, outer)) &&
             !llvm::is_contained(op.getOperands(), Value()) &&
             llvm::none_of(op.getOperands(), [&](Value v) { return v.getDefiningOp() == inner.getOperation(); });
    });
  }

  /// A read of where a tap's rows lie that only places of copies, and their masks, are made of, from memory that the
  /// loop does not write: it can be early, as the copies are. (Single numbers, pages and the like, place boxes: a
  /// producer would wait for them in every iteration instead of once.)
  static bool isReadOfPlaces(Operation* op, scf::ForOp outer) {
    if (!isa<LoadOp, GatherOp>(op) || isVolatile(op) || !isa<RankedTensorType>(op->getResult(0).getType()))
      return false;
    SmallVector<Operation*> pending{op};
    llvm::DenseSet<Operation*> seen;
    while (!pending.empty())
      for (Operation* user : pending.pop_back_val()->getUsers()) {
        if (isSharedCopy(user) || !seen.insert(user).second) continue;
        if (user->getNumRegions() || !isMemoryEffectFree(user) || isa<MmaOp, BatchMmaOp, DotOp>(user) ||
            user->hasTrait<OpTrait::IsTerminator>())
          return false;
        pending.push_back(user);
      }
    return !outer
                ->walk([&](Operation* inside) {
                  const bool mayWrite =
                      isAcquire(inside) ||
                      (writesGlobal(inside) && !rootOf(addressOf(inside)).isApartFrom(rootOf(addressOf(op))));
                  return mayWrite ? WalkResult::interrupt() : WalkResult::advance();
                })
                .wasInterrupted();
  }

  std::optional<Span> spanOf(scf::ForOp loop) const;
  bool sort();
  bool isOutside(Value v) const {
    scf::ForOp top = loops_.front();
    return top.isDefinedOutsideOfLoop(v);
  }

  SmallVector<scf::ForOp> loops_;
  std::vector<Span> spans_;
  std::vector<Carried> carried_;
};

std::optional<Span> Nest::spanOf(scf::ForOp loop) const {
  const Value low = loop.getLowerBound(), high = loop.getUpperBound();
  if (!isOutside(loop.getStep())) return std::nullopt;
  if (isOutside(low) && isOutside(high)) return Span{{}, low, high, {}};
  auto sum = high.getDefiningOp<arith::AddIOp>(), other = low.getDefiningOp<arith::AddIOp>();
  if (!sum) return std::nullopt;
  APInt to, from;
  if (other && other.getLhs() == sum.getLhs() && matchPattern(sum.getRhs(), m_ConstantInt(&to)) &&
      matchPattern(other.getRhs(), m_ConstantInt(&from)))
    return Span{low, {}, {}, to.getSExtValue() - from.getSExtValue()};
  if (sum.getLhs() != low && sum.getRhs() != low) return std::nullopt;
  const Value numbers = sum.getLhs() == low ? sum.getRhs() : sum.getLhs();
  if (matchPattern(numbers, m_ConstantInt(&to))) return Span{low, {}, {}, to.getSExtValue()};
  if (!isOutside(numbers)) return std::nullopt;
  return Span{low, {}, numbers, {}};
}

/// Finds what the loops carry, and whether one loop can.
bool Nest::sort() {
  carried_.clear();
  spans_.clear();
  for (scf::ForOp loop : loops_) {
    const std::optional<Span> span = spanOf(loop);
    if (!span) return false;
    spans_.push_back(*span);
  }
  llvm::DenseSet<Value> seen;  // arguments that come from the loop around
  for (size_t level = 0; level < loops_.size(); ++level)
    for (BlockArgument arg : loops_[level].getRegionIterArgs()) {
      if (seen.contains(arg)) continue;
      const unsigned number = arg.getArgNumber() - 1;
      Carried value{level, level, loops_[level].getInitArgs()[number], loops_[level].getResult(number), {arg}};
      // Down, as long as an inner loop begins with it and its result is what comes next.
      while (value.to + 1 < loops_.size()) {
        scf::ForOp inner = loops_[value.to + 1];
        const Value next = loops_[value.to].getYieldedValues()[value.number()];
        if (next.getDefiningOp() != inner.getOperation()) break;
        const unsigned at = cast<OpResult>(next).getResultNumber();
        if (inner.getInitArgs()[at] != value.args.back() || !next.hasOneUse() || !value.args.back().hasOneUse())
          return false;
        value.args.push_back(inner.getRegionIterArg(at));
        seen.insert(value.args.back());
        ++value.to;
      }
      const bool isWhole = value.from == 0 && value.to + 1 == loops_.size();
      if (!isWhole && (!isScalar(arg) || !value.result.use_empty() || !isOutside(value.init))) return false;
      carried_.push_back(std::move(value));
    }
  return true;
}

void Nest::flatten() {
  const size_t depth = loops_.size();
  scf::ForOp top = loops_.front(), inner = loops_.back();
  const Location loc = inner.getLoc();
  OpBuilder b(top);
  const Type i64 = b.getI64Type();
  auto number = [&](OpBuilder& at, Type type, int64_t n) -> Value {
    return arith::ConstantOp::create(at, loc, at.getIntegerAttr(type, n));
  };

  // How many iterations there are, and with which value a loop ends.
  Value all;
  SmallVector<Value> last;
  for (auto [loop, span] : llvm::zip(loops_, spans_)) {
    if (!span.low) span.low = number(b, b.getI32Type(), 0);
    if (span.numbers) span.high = number(b, b.getI32Type(), *span.numbers);
    auto wide = [&](Value v) { return b.createOrFold<arith::ExtSIOp>(loc, i64, v); };
    const Value from = wide(span.low), step = wide(loop.getStep()), one = number(b, i64, 1);
    Value trips = b.createOrFold<arith::SubIOp>(loc, wide(span.high), from);
    trips = b.createOrFold<arith::AddIOp>(loc, trips, b.createOrFold<arith::SubIOp>(loc, step, one));
    trips = b.createOrFold<arith::DivSIOp>(loc, trips, step);
    trips = b.createOrFold<arith::MaxSIOp>(loc, trips, number(b, i64, 0));
    all = all ? b.createOrFold<arith::MulIOp>(loc, all, trips) : trips;
    const Value before = b.createOrFold<arith::SubIOp>(loc, trips, one);
    const Value end = b.createOrFold<arith::AddIOp>(loc, from, b.createOrFold<arith::MulIOp>(loc, before, step));
    last.push_back(b.createOrFold<arith::TruncIOp>(loc, b.getI32Type(), end));
  }

  SmallVector<Value> inits;
  for (const Carried& value : carried_) inits.push_back(value.init);
  for (const Span& span : spans_) inits.push_back(span.low);
  auto made = scf::ForOp::create(b, loc, number(b, i64, 0), all, number(b, i64, 1), inits);
  made->setDiscardableAttrs(inner->getDiscardableAttrDictionary());
  Block* body = made.getBody();
  if (!body->empty()) body->back().erase();

  for (auto [i, value] : llvm::enumerate(carried_)) {
    for (BlockArgument arg : value.args) arg.replaceAllUsesWith(made.getRegionIterArg(i));
    value.result.replaceAllUsesWith(made.getResult(i));
  }
  SmallVector<Value> counters(made.getRegionIterArgs().take_back(depth));
  OpBuilder in = OpBuilder::atBlockEnd(body);
  for (auto [level, loop] : llvm::enumerate(loops_)) {
    Value at = counters[level];
    if (const Value base = loop.getLowerBound(); spans_[level].base)
      at = arith::AddIOp::create(in, loc, base, at, arith::IntegerOverflowFlags::nsw);
    loop.getInductionVar().replaceAllUsesWith(at);
    for (Operation& op : llvm::make_early_inc_range(*loop.getBody()))
      if (!op.hasTrait<OpTrait::IsTerminator>() && (level + 1 == depth || &op != loops_[level + 1]))
        op.moveBefore(body, body->end());
  }

  // restarts[l]: in the next iteration loop l begins again.
  SmallVector<Value> restarts(depth + 1), next(made.getRegionIterArgs());
  for (size_t level = depth; level-- > 0;) {
    const Value counter = counters[level];
    Value following =
        arith::AddIOp::create(in, loc, counter, loops_[level].getStep(), arith::IntegerOverflowFlags::nsw);
    if (level > 0) {
      const Value ends = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, counter, last[level]);
      following = arith::SelectOp::create(in, loc, ends, spans_[level].low, following);
      restarts[level] = restarts[level + 1] ? arith::AndIOp::create(in, loc, restarts[level + 1], ends) : ends;
    }
    if (restarts[level + 1]) following = arith::SelectOp::create(in, loc, restarts[level + 1], following, counter);
    next[carried_.size() + level] = following;
  }
  for (auto [i, value] : llvm::enumerate(carried_)) {
    Value following = loops_[value.to].getYieldedValues()[value.number()];
    if (value.from > 0) following = arith::SelectOp::create(in, loc, restarts[value.from], value.init, following);
    if (value.to + 1 < depth)
      following = arith::SelectOp::create(in, loc, restarts[value.to + 1], following, made.getRegionIterArg(i));
    next[i] = following;
  }
  scf::YieldOp::create(in, loc, next);
  top.erase();
}

/// Iterations of an inner loop beside which a gap is nothing.
constexpr int64_t kLongLoop = 64;
/// A tensor core multiplies 8 pairs while a lane does one operation, and several threads may compute the same: what is
/// computed again takes less than about a tenth of the product's time.
constexpr int64_t kPairsForElement = 256;
/// peel_masks leaves smaller choices in their loop.
constexpr int64_t kSmallChoice = 1024;

/// What changes from one iteration of a loop to the next.
class Changing {
 public:
  explicit Changing(scf::ForOp loop) {
    for (BlockArgument arg : loop.getBody()->getArguments()) values_.insert(arg);
    loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation* op) {
      bool changes = false;
      op->walk([&](Operation* inside) {
        changes |= llvm::any_of(inside->getOperands(), [&](Value v) { return values_.contains(v); });
      });
      if (changes) values_.insert(op->result_begin(), op->result_end());
    });
  }
  bool contains(Value v) const { return values_.contains(v); }
  bool containsAny(ValueRange values) const {
    return llvm::any_of(values, [&](Value v) { return contains(v); });
  }

 private:
  llvm::DenseSet<Value> values_;
};

class FlattenLoopsPass : public PassWrapper<FlattenLoopsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FlattenLoopsPass)
  explicit FlattenLoopsPass(OptionsOf options) : options_(std::move(options)) {}
  StringRef getArgument() const override { return "tile-flatten-loops"; }
  StringRef getDescription() const override { return "make one loop of nested ones around a product"; }

  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    const Facts facts(getOperation());
    getOperation().walk([&](scf::ForOp loop) {
      if (isa<scf::ForOp>(loop->getParentOp()) && copiesRunAhead(loop, facts) && isWorth(loop)) loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      Nest nest(loop);
      int64_t room = pairsOf(loop) / kPairsForElement;
      for (scf::ForOp outer = around(loop); outer; outer = around(outer)) {
        room -= elementsBeside(outer, facts);
        if (room < 0 || !nest.widen()) break;
      }
      if (!nest.isOne()) nest.flatten();
    }
  }

 private:
  /// The loop around it that asks for nothing itself.
  static scf::ForOp around(scf::ForOp loop) {
    auto outer = dyn_cast<scf::ForOp>(loop->getParentOp());
    return outer && outer->getDiscardableAttrDictionary().empty() ? outer : scf::ForOp();
  }

  /// An innermost loop with products whose copies a ring, of stage or of roles, will start early.
  bool copiesRunAhead(scf::ForOp loop, const Facts& facts) const {
    SmallVector<Operation*> copies;
    bool isInnermost = true;
    for (Operation& op : *loop.getBody()) {
      if (isSharedCopy(&op)) copies.push_back(&op);
      op.walk([&](Operation* inside) { isInnermost &= !isa<LoopLikeOpInterface>(inside); });
    }
    if (!isInnermost || copies.empty() || !hasProduct(loop)) return false;
    int64_t stages = options_().defaultStages;
    if (auto hint = loop->getAttrOfType<IntegerAttr>("tile.stages")) stages = hint.getInt();
    // Through registers nothing is copied far ahead, and conditions of two loops are made in each iteration.
    if (stages == 1 || llvm::all_of(copies, [&](Operation* copy) { return copiedThroughRegisters(copy, facts); }))
      return false;
    return CopySlice(loop, copies).obstacle().empty();
  }

  static bool isWorth(scf::ForOp loop) {
    if (auto trips = loop.getStaticTripCount(); trips && trips->sge(kLongLoop)) return false;
    const Changing changing(loop);
    return !loop.getBody()
                ->walk([&](Operation* op) {
                  const bool isLoad = isa<LoadOp, GatherOp>(op);
                  if (isLoad && isa<RankedTensorType>(op->getResult(0).getType()) && !isForOperands(op))
                    return WalkResult::interrupt();
                  if (isLoad || isSharedCopy(op))
                    return changing.containsAny(op->getOperands()) ? WalkResult::advance() : WalkResult::interrupt();
                  if (auto branch = dyn_cast<scf::IfOp>(op); branch && hasProduct(op))
                    return changing.contains(branch.getCondition()) ? WalkResult::interrupt() : WalkResult::advance();
                  auto choice = dyn_cast<arith::SelectOp>(op);
                  auto tile = choice ? dyn_cast<RankedTensorType>(choice.getType()) : RankedTensorType();
                  return tile && tile.getNumElements() >= kSmallChoice && changing.contains(choice.getCondition())
                             ? WalkResult::interrupt()
                             : WalkResult::advance();
                })
                .wasInterrupted();
  }

  /// Nothing but operands is computed from the matrix: fetch_ahead copies it to shared memory.
  static bool isForOperands(Operation* op) {
    llvm::DenseSet<Operation*> seen;
    return isForOperands(op, seen);
  }
  static bool isForOperands(Operation* op, llvm::DenseSet<Operation*>& seen) {
    if (!seen.insert(op).second) return true;
    return cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 2 && !op->use_empty() &&
           llvm::all_of(op->getUsers(), [&](Operation* user) {
             if (isa<ShareOp>(user)) return true;
             if (auto product = dyn_cast<MmaOp>(user)) return product.getAcc() != op->getResult(0);
             return (user->hasTrait<OpTrait::Elementwise>() || isa<TransOp>(user)) && isForOperands(user, seen);
           });
  }

  /// Pairs of numbers that an iteration multiplies.
  static int64_t pairsOf(scf::ForOp loop) {
    int64_t pairs = 0;
    loop.getBody()->walk([&](Operation* op) {
      if (!isa<MmaOp, BatchMmaOp>(op)) return;
      const Type a = op->getOperand(0).getType();
      const auto shape = isa<SmemType>(a) ? cast<SmemType>(a).getShape() : cast<RankedTensorType>(a).getShape();
      pairs += cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() * shape.back();
    });
    return pairs;
  }

  /// Different numbers that a loop's own body computes.
  static int64_t elementsBeside(scf::ForOp loop, const Facts& facts) {
    int64_t elements = 0;
    for (Operation& op : *loop.getBody()) {
      if (op.getNumRegions() || isa<SplatOp, ReshapeOp, BroadcastOp, IotaOp>(op)) continue;
      for (Value result : op.getResults()) {
        auto tile = dyn_cast<RankedTensorType>(result.getType());
        if (!tile) continue;
        const AxisFacts axis = facts.of(result);
        int64_t alike = 1;
        for (auto [neighbours, equal] : llvm::zip(axis.contiguity, axis.constancy))
          alike = std::max({alike, neighbours, equal});
        elements += tile.getNumElements() / alike;
      }
    }
    return elements;
  }

  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createFlattenLoopsPass(OptionsOf options) {
  return std::make_unique<FlattenLoopsPass>(std::move(options));
}

}  // namespace tile::ir
