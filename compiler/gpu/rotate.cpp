// rotate.cpp - overlaps chained asynchronous products: in a loop where product 2 multiplies what elementwise work made
// of product 1, product 2 moves one iteration later, so that it runs beside the elementwise work of its successor.
// Before: for j: S = product 1 (j); P = f(S); O = product 2 (P, V(j), rescaled O)
// After:  if any: prologue: the iteration lb without product 2
//                 for j from the second: S = product 1 (j); O = product 2 (P, V(j - 1), O); P = f(S), rescale O
//                 epilogue: product 2 of the last iteration
//         else the loop's initial values.
//         Where masks make a loop of their own of the first iterations anyway (peel_masks), there is no prologue:
//                 for all j: S = product 1 (j); if j is not the first: O = product 2 (P, V(j - 1), O); ...
//         That is a third less code, and the branch disappears from all loops but the first.
// Delayed are products whose first operand is in registers and comes from another product of the same iteration, and
// whose result is only carried into the next; with them the loads of their second operand. Values that a delayed op
// takes from the rest of its iteration (P, the rescaled O, indices) become loop-carried. Products that need no result
// of this iteration come first. `tile.overlap = 0` on the loop turns it off.
// Where nothing can be delayed, a product that needs no result of this iteration still starts in front of the
// elementwise work it can run beside.
#include "compiler/analysis/facts.h"
#include "compiler/gpu/async_products.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/plan.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Ops that may run earlier or later than they stand, as long as nobody writes what they read.
bool isMovable(Operation* op) {
  return isPure(op) || isa<LoadSharedOp, GatherSharedOp, SmemLoadOp, LoadOp, GatherOp, MmaOp>(op);
}

/// One loop, taken apart into early, delayed and other ops.
class Rotation {
 public:
  explicit Rotation(scf::ForOp loop) : loop_(loop), body_(*loop.getBody()) {}

  /// Whether there is something to overlap.
  bool plan() {
    if (loop_.getUnsignedCmp() || !bodyAllows()) return false;
    findFollowers();
    findDelayed();
    while (!delayed_.empty() && !closeDelayed()) {
    }
    if (delayed_.empty()) return false;
    return findCrossing() && findEarly();
  }

  /// Whether what delayed ops take from the iteration before can be nothing at first, and each accumulator has one use.
  bool canBranch() const {
    llvm::DenseSet<Value> accumulators;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (isLate(arg)) {
        Value from = accumulated(arg);
        if (!from || !crossing_.contains(from) || !accumulators.insert(from).second) return false;
      }
    return llvm::all_of(crossing_, [](Value v) {
      return v.getType().isIntOrIndexOrFloat() || isa<RankedTensorType>(v.getType());
    });
  }

  /// Registers of a thread that stay where they are while the products of two iterations run: accumulators, and first
  /// operands of the delayed ones.
  int64_t registersInFlight(int64_t threads) const {
    int64_t bits = 0;
    auto count = [&](Value tile) {
      auto type = dyn_cast<RankedTensorType>(tile.getType());
      if (type) bits += type.getNumElements() * type.getElementTypeBitWidth();
    };
    for (Operation* op : delayed_)
      if (MmaOp product = asyncProduct(op)) {
        MmaOp before = asyncProduct(product.getAcc().getDefiningOp());
        if (!before || !delayed_.contains(before)) count(product.getResult());
        count(product.getA());
      }
    for (Operation* op : early_)
      if (MmaOp product = asyncProduct(op)) count(product.getResult());
    return bits / 32 / threads;
  }

  /// `runs`: known to have an iteration. `second`: lower bound of the second one, made by the caller's rule; null for
  /// the form without a prologue.
  void rewrite(bool runs, llvm::function_ref<Value(OpBuilder&)> second) {
    OpBuilder builder(loop_);
    Location loc = loop_.getLoc();
    SmallVector<Value> results;
    if (runs) {
      results = emitAny(builder, second);
    } else {
      Value any =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, loop_.getLowerBound(), loop_.getUpperBound());
      auto guard = scf::IfOp::create(
          builder, loc, any, [&](OpBuilder& b, Location at) { scf::YieldOp::create(b, at, emitAny(b, second)); },
          [&](OpBuilder& b, Location at) { scf::YieldOp::create(b, at, loop_.getInitArgs()); });
      results.assign(guard.getResults().begin(), guard.getResults().end());
    }
    loop_.replaceAllUsesWith(results);
    loop_.erase();
  }

 private:
  bool inBody(Operation* op) const { return op && op->getBlock() == &body_; }
  Operation* defInBody(Value value) const {
    Operation* op = value.getDefiningOp();
    return inBody(op) ? op : nullptr;
  }

  // ---- the plan

  /// No writes that a moved load could see, no loops or products inside branches.
  bool bodyAllows() {
    return !loop_.getRegion()
                .walk([&](Operation* op) {
                  bool stops =
                      isa<LoopLikeOpInterface, StoreOp, ScatterOp, AccumulateOp, AtomicRmwOp, AtomicCasOp>(op) ||
                      (isa<MmaOp>(op) && !inBody(op));
                  return stops ? WalkResult::interrupt() : WalkResult::advance();
                })
                .wasInterrupted();
  }

  /// Ops that need the result of a product of this iteration.
  void findFollowers() {
    for (Operation& op : body_) {
      bool follows = false;
      op.walk([&](Operation* inner) {
        for (Value operand : inner->getOperands())
          if (Operation* def = defInBody(operand)) follows |= followers_.contains(def) || asyncProduct(def);
      });
      if (follows) followers_.insert(&op);
    }
  }

  bool isFollower(Value value) const {
    Operation* def = defInBody(value);
    return def && (followers_.contains(def) || asyncProduct(def));
  }

  void findDelayed() {
    for (Operation& op : llvm::reverse(body_)) {
      MmaOp product = asyncProduct(&op);
      if (!product || !isa<RankedTensorType>(product.getA().getType()) || !isFollower(product.getA())) continue;
      bool isCarried = llvm::all_of(product.getResult().getUses(), [&](OpOperand& use) {
        if (use.getOwner() == body_.getTerminator()) return true;
        MmaOp next = asyncProduct(use.getOwner());
        return next && delayed_.contains(next) && &use == &next.getAccMutable();
      });
      if (isCarried && !product.getResult().use_empty()) delayed_.insert(product);
    }
  }

  bool usersAreDelayed(Operation* op) {
    return llvm::all_of(op->getUsers(),
                        [&](Operation* user) { return delayed_.contains(body_.findAncestorOpInBlock(*user)); });
  }

  /// Adds what makes the second operands. False: a product has one that others need now; it left the set, try again.
  bool closeDelayed() {
    SmallVector<MmaOp> products;
    for (Operation* op : delayed_)
      if (auto product = asyncProduct(op)) products.push_back(product);
    for (Operation* op : llvm::make_early_inc_range(llvm::to_vector(delayed_)))
      if (!asyncProduct(op)) delayed_.remove(op);
    SmallVector<Value> wanted;
    for (MmaOp product : products) wanted.push_back(product.getB());
    while (!wanted.empty()) {
      Operation* op = defInBody(wanted.pop_back_val());
      if (!op || delayed_.contains(op) || !isMovable(op) || op->getNumRegions() || asyncProduct(op) ||
          !usersAreDelayed(op))
        continue;
      delayed_.insert(op);
      llvm::append_range(wanted, op->getOperands());
    }
    for (MmaOp product : products) {
      Operation* def = defInBody(product.getB());
      if (!def || delayed_.contains(def)) continue;
      dropProduct(product);
      return false;
    }
    return true;
  }

  /// With the products that feed its accumulator: their results have a user that stays.
  void dropProduct(MmaOp product) {
    delayed_.remove(product);
    Operation* before = defInBody(product.getAcc());
    if (before && delayed_.contains(before)) dropProduct(asyncProduct(before));
  }

  bool isDelayed(Value value) const {
    Operation* def = defInBody(value);
    return def && delayed_.contains(def);
  }

  /// What delayed ops take from the rest of their iteration. Tiles are the products' operands only: others would cost
  /// registers.
  bool findCrossing() {
    for (Operation& op : body_) {
      if (!delayed_.contains(&op)) continue;
      for (Value value : op.getOperands()) {
        bool isInside = value.getParentBlock() == &body_;
        if (!isInside || isDelayed(value)) continue;
        if (!asyncProduct(&op) && !value.getType().isIntOrIndexOrFloat() && !isa<PtrType, ViewType>(value.getType()))
          return false;
        if (isa<SmemType>(value.getType())) return false;
        crossing_.insert(value);
      }
    }
    return true;
  }

  /// The iteration's argument is what a delayed op yields.
  bool isLate(BlockArgument arg) const {
    if (arg == loop_.getInductionVar()) return false;
    return isDelayed(yielded(arg));
  }
  Value yielded(BlockArgument arg) const {
    scf::ForOp loop = loop_;
    return loop.getYieldedValues()[arg.getArgNumber() - 1];
  }

  /// What the late argument's delayed products add to; null when something else makes it.
  Value accumulated(BlockArgument arg) const {
    Value value = yielded(arg);
    while (Operation* op = defInBody(value)) {
      MmaOp product = asyncProduct(op);
      if (!delayed_.contains(op)) return value;
      if (!product) return {};
      value = product.getAcc();
    }
    return value;
  }

  /// Adds the op and what it needs of the iteration to `slice`; false when that cannot come first.
  bool collect(Value value, llvm::SetVector<Operation*>& slice) {
    if (auto arg = dyn_cast<BlockArgument>(value)) return arg.getOwner() != &body_ || !isLate(arg);
    Operation* op = defInBody(value);
    if (!op || slice.contains(op)) return true;
    if (delayed_.contains(op) || !isMovable(op)) return false;
    if (followers_.contains(op) && !asyncProduct(op)) return false;
    slice.insert(op);
    bool ok = true;
    op->walk([&](Operation* inner) {
      for (OpOperand& operand : inner->getOpOperands()) {
        MmaOp product = asyncProduct(inner);
        bool reads = defInBody(operand.get()) && asyncProduct(defInBody(operand.get())) &&
                     !(product && &operand == &product.getAccMutable());
        ok = ok && !reads && collect(operand.get(), slice);
      }
    });
    return ok;
  }

  bool findEarly() {
    bool found = false;
    for (Operation& op : body_) {
      MmaOp product = asyncProduct(&op);
      if (!product || delayed_.contains(&op)) continue;
      llvm::SetVector<Operation*> slice = early_;
      if (!collect(product.getResult(), slice)) continue;
      early_ = slice;
      found = true;
    }
    return found;
  }

  // ---- the new loop

  template <class Wanted>
  void cloneOps(OpBuilder& builder, IRMapping& map, Wanted wanted) {
    for (Operation& op : body_.without_terminator())
      if (wanted(&op)) builder.clone(op, map);
  }

  IRMapping delayedMap(ValueRange carried) {
    IRMapping map;
    for (auto [value, now] : llvm::zip(crossing_, carried)) map.map(value, now);
    return map;
  }

  SmallVector<Value> emitAny(OpBuilder& builder, llvm::function_ref<Value(OpBuilder&)> second) {
    return second ? emitPeeled(builder, second) : emitBranching(builder);
  }

  bool isDelayedOp(Operation* op) const { return delayed_.contains(op); }

  /// Arguments whose next value the other ops give.
  SmallVector<BlockArgument> punctualArgs() const {
    SmallVector<BlockArgument> punctual;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (!isLate(arg)) punctual.push_back(arg);
    return punctual;
  }

  /// The loop from `lower` on, its body empty.
  std::pair<scf::ForOp, OpBuilder> openLoop(OpBuilder& builder, Value lower, ValueRange inits) {
    auto made = scf::ForOp::create(builder, loop_.getLoc(), lower, loop_.getUpperBound(), loop_.getStep(), inits);
    made->setDiscardableAttrs(loop_->getDiscardableAttrDictionary());
    Block* body = made.getBody();
    if (!body->empty()) body->back().erase();
    return {made, OpBuilder::atBlockEnd(body)};
  }

  void closeLoop(OpBuilder& in, IRMapping& now, ArrayRef<BlockArgument> punctual) {
    cloneOps(in, now, [&](Operation* op) { return !isDelayedOp(op) && !early_.contains(op); });
    SmallVector<Value> next;
    for (BlockArgument arg : punctual) next.push_back(now.lookupOrDefault(yielded(arg)));
    for (Value value : crossing_) next.push_back(now.lookup(value));
    scf::YieldOp::create(in, loop_.getLoc(), next);
  }

  /// The delayed ops of the last iteration; what the old loop's results are now.
  SmallVector<Value> finish(OpBuilder& builder, scf::ForOp made, size_t punctual) {
    IRMapping last = delayedMap(made.getResults().drop_front(punctual));
    cloneOps(builder, last, [&](Operation* op) { return isDelayedOp(op); });
    SmallVector<Value> results;
    size_t at = 0;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      results.push_back(isLate(arg) ? last.lookup(yielded(arg)) : Value(made.getResult(at++)));
    return results;
  }

  SmallVector<Value> emitBranching(OpBuilder& builder) {
    Location loc = loop_.getLoc();
    const SmallVector<BlockArgument> punctual = punctualArgs();
    // Accumulators start where the loop's own do, so that the first iteration leaves them where they are; other values
    // of an iteration before the first are never used.
    SmallVector<Value> inits;
    for (BlockArgument arg : punctual) inits.push_back(loop_.getTiedLoopInit(arg)->get());
    llvm::DenseMap<Value, BlockArgument> lateOf;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (isLate(arg)) lateOf[accumulated(arg)] = arg;
    for (Value value : crossing_) {
      auto late = lateOf.find(value);
      inits.push_back(late != lateOf.end()
                          ? loop_.getTiedLoopInit(late->second)->get()
                          : arith::ConstantOp::create(builder, loc, builder.getZeroAttr(value.getType())));
    }

    auto [made, in] = openLoop(builder, loop_.getLowerBound(), inits);
    IRMapping now;
    now.map(loop_.getInductionVar(), made.getInductionVar());
    for (auto [arg, value] : llvm::zip(punctual, made.getRegionIterArgs())) now.map(arg, value);
    cloneOps(in, now, [&](Operation* op) { return early_.contains(op); });
    Value notFirst =
        arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sgt, made.getInductionVar(), loop_.getLowerBound());
    auto branch = scf::IfOp::create(
        in, loc, notFirst,
        [&](OpBuilder& b, Location at) {
          IRMapping before = delayedMap(made.getRegionIterArgs().drop_front(punctual.size()));
          cloneOps(b, before, [&](Operation* op) { return isDelayedOp(op); });
          SmallVector<Value> late;
          for (BlockArgument arg : loop_.getRegionIterArgs())
            if (isLate(arg)) late.push_back(before.lookup(yielded(arg)));
          scf::YieldOp::create(b, at, late);
        },
        [&](OpBuilder& b, Location at) {
          IRMapping before = delayedMap(made.getRegionIterArgs().drop_front(punctual.size()));
          SmallVector<Value> late;
          for (BlockArgument arg : loop_.getRegionIterArgs())
            if (isLate(arg)) late.push_back(before.lookup(accumulated(arg)));
          scf::YieldOp::create(b, at, late);
        });
    size_t at = 0;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (isLate(arg)) now.map(arg, branch.getResult(at++));
    closeLoop(in, now, punctual);
    return finish(builder, made, punctual.size());
  }

  SmallVector<Value> emitPeeled(OpBuilder& builder, llvm::function_ref<Value(OpBuilder&)> second) {
    const SmallVector<BlockArgument> punctual = punctualArgs();
    IRMapping first;
    first.map(loop_.getInductionVar(), loop_.getLowerBound());
    for (auto [arg, init] : llvm::zip(loop_.getRegionIterArgs(), loop_.getInitArgs())) first.map(arg, init);
    cloneOps(builder, first, [&](Operation* op) { return !isDelayedOp(op); });
    SmallVector<Value> inits;
    for (BlockArgument arg : punctual) inits.push_back(first.lookupOrDefault(yielded(arg)));
    for (Value value : crossing_) inits.push_back(first.lookup(value));

    auto [made, in] = openLoop(builder, second(builder), inits);
    IRMapping now;
    now.map(loop_.getInductionVar(), made.getInductionVar());
    for (auto [arg, value] : llvm::zip(punctual, made.getRegionIterArgs())) now.map(arg, value);
    cloneOps(in, now, [&](Operation* op) { return early_.contains(op); });
    IRMapping before = delayedMap(made.getRegionIterArgs().drop_front(punctual.size()));
    cloneOps(in, before, [&](Operation* op) { return isDelayedOp(op); });
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (isLate(arg)) now.map(arg, before.lookup(yielded(arg)));
    closeLoop(in, now, punctual);
    return finish(builder, made, punctual.size());
  }

  mutable scf::ForOp loop_;
  Block& body_;
  llvm::DenseSet<Operation*> followers_;
  llvm::SetVector<Operation*> delayed_, early_;
  llvm::SetVector<Value> crossing_;
};

/// Lower bound of the second iteration; the upper bound where lb + step would wrap.
Value secondBound(OpBuilder& b, scf::ForOp loop, const Facts& facts) {
  Location loc = loop.getLoc();
  Value lower = loop.getLowerBound(), step = loop.getStep(), upper = loop.getUpperBound();
  Type type = lower.getType();
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  Range from = facts.rangeOf(lower), by = facts.rangeOf(step);
  int64_t most;
  bool fits = !__builtin_add_overflow(from.max, by.max, &most) && most <= fullRange(bits).max;
  if (fits || bits == 64) return b.createOrFold<arith::AddIOp>(loc, lower, step);
  auto wide = [&](Value v) { return arith::ExtSIOp::create(b, loc, b.getI64Type(), v).getResult(); };
  Value sum = arith::AddIOp::create(b, loc, wide(lower), wide(step));
  return arith::TruncIOp::create(b, loc, type, arith::MinSIOp::create(b, loc, sum, wide(upper)));
}

class RotatePass : public PassWrapper<RotatePass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RotatePass)
  StringRef getArgument() const override { return "tile-rotate"; }
  StringRef getDescription() const override { return "chained asynchronous products: the second one iteration later"; }
  void getDependentDialects(DialectRegistry& registry) const override {
    registry.insert<TileDialect, arith::ArithDialect, scf::SCFDialect>();
  }

  explicit RotatePass(TargetOf target) : targetOf_(std::move(target)) {}

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !hasAsyncProduct(func)) return markAllAnalysesPreserved();
    SmallVector<scf::ForOp> loops;
    func.walk([&](scf::ForOp loop) {
      auto hint = loop->getAttrOfType<IntegerAttr>("tile.overlap");
      if (!hint || hint.getInt() != 0) loops.push_back(loop);
    });
    for (scf::ForOp loop : loops) {
      Rotation rotation(loop);
      if (!rotation.plan() || (!loop->hasAttr("tile.overlap") && isTooMuch(func, loop, rotation))) {
        startEarly(func, loop);
        continue;
      }
      Facts facts(func);
      bool runs = facts.rangeOf(loop.getLowerBound()).max < facts.rangeOf(loop.getUpperBound()).min;
      if (rotation.canBranch() && masksAtStart(loop, facts))
        rotation.rewrite(runs, nullptr);
      else
        rotation.rewrite(runs, [&](OpBuilder& b) { return secondBound(b, loop, facts); });
    }
  }

 private:
  void startEarly(func::FuncOp func, scf::ForOp loop) const {
    if (accumulatorsHold(func, loop)) return;
    for (Operation& op : llvm::make_early_inc_range(*loop.getBody()))
      if (asyncProduct(&op)) moveUp(&op);
  }

  /// The accumulators of the loop, all at once, are more than a thread has registers for.
  bool accumulatorsHold(func::FuncOp func, scf::ForOp loop) const {
    auto warps = func->getAttrOfType<IntegerAttr>("tile.num_warps");
    if (!warps) return true;
    int64_t bits = 0;
    for (Operation& op : *loop.getBody())
      if (MmaOp product = asyncProduct(&op)) {
        auto type = product.getResult().getType();
        bits += type.getNumElements() * type.getElementTypeBitWidth();
      }
    return bits / 32 / (warps.getInt() * 32) + RegisterEstimate::kOther > mostRegisters(warps.getInt());
  }

  /// The product, with what reads its operands, behind the first one whose elementwise work it can run beside.
  static void moveUp(Operation* product) {
    SmallVector<Operation*> moved{product};  // last first
    llvm::DenseSet<Operation*> set{product};
    Operation* place = nullptr;
    size_t count = 0;
    bool passesWork = false;
    for (Operation* op = product->getPrevNode(); op && isMovable(op); op = op->getPrevNode()) {
      const bool isNeeded = llvm::any_of(op->getUsers(), [&](Operation* user) { return set.contains(user); });
      const bool isProduct = asyncProduct(op) != nullptr;
      const bool makesTile = llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
      if (isProduct && passesWork) place = op, count = moved.size();
      if (isNeeded && makesTile && !op->hasTrait<OpTrait::ConstantLike>()) break;
      passesWork |= makesTile && !isNeeded && !isProduct;
      if (!isNeeded) continue;
      moved.push_back(op);
      set.insert(op);
    }
    if (!place) return;
    moved.truncate(count);
    for (Operation* op : moved) op->moveAfter(place);
  }

  int64_t mostRegisters(int64_t numWarps) const {
    const std::vector<RolePlan> roles = rolePlans(static_cast<int>(numWarps), targetOf_());
    return roles.empty() ? targetOf_().maxRegsPerThread : roles.back().consumerRegs;
  }

  /// Whether the products of two iterations hold more than the registers of a thread: they would be finished one by
  /// one, and some of their accumulators spilled.
  bool isTooMuch(func::FuncOp func, scf::ForOp loop, const Rotation& rotation) const {
    auto warps = func->getAttrOfType<IntegerAttr>("tile.num_warps");
    if (!warps) return false;
    const int64_t most = mostRegisters(warps.getInt());
    const int64_t held = rotation.registersInFlight(warps.getInt() * 32);
    if (held + RegisterEstimate::kOther <= most) return false;
    loop.emitRemark() << "products are not overlapped with the elementwise work of the next iteration: those of two "
                         "iterations hold "
                      << held << " registers of each thread, which has " << most;
    return true;
  }

  TargetOf targetOf_;
};

}  // namespace

std::unique_ptr<Pass> createRotatePass(TargetOf target) { return std::make_unique<RotatePass>(std::move(target)); }

}  // namespace tile::ir
