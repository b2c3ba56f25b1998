// rotation_rewrite.cpp - the new loop, with a prologue or with a branch around the delayed ops, and its epilogue.
#include "compiler/gpu/overlap/rotation.h"
#include "mlir/IR/IRMapping.h"

namespace tile::ir {
using namespace mlir;

namespace {

class Rewriter {
 public:
  explicit Rewriter(const RotationPlan& plan) : plan_(plan), loop_(plan.loop()) {}

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
  template <class Wanted>
  void cloneOps(OpBuilder& builder, IRMapping& map, Wanted wanted) {
    for (Operation& op : loop_.getBody()->without_terminator())
      if (wanted(&op)) builder.clone(op, map);
  }

  IRMapping delayedMap(ValueRange carried) {
    IRMapping map;
    for (auto [value, now] : llvm::zip(plan_.crossing(), carried)) map.map(value, now);
    return map;
  }

  SmallVector<Value> emitAny(OpBuilder& builder, llvm::function_ref<Value(OpBuilder&)> second) {
    return second ? emitPeeled(builder, second) : emitBranching(builder);
  }

  /// Arguments whose next value the other ops give.
  SmallVector<BlockArgument> punctualArgs() const {
    SmallVector<BlockArgument> punctual;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (!plan_.isLate(arg)) punctual.push_back(arg);
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
    cloneOps(in, now, [&](Operation* op) { return !plan_.isDelayed(op) && !plan_.isEarly(op); });
    SmallVector<Value> next;
    for (BlockArgument arg : punctual) next.push_back(now.lookupOrDefault(plan_.yielded(arg)));
    for (Value value : plan_.crossing()) next.push_back(now.lookup(value));
    scf::YieldOp::create(in, loop_.getLoc(), next);
  }

  /// The delayed ops of the last iteration; what the old loop's results are now.
  SmallVector<Value> finish(OpBuilder& builder, scf::ForOp made, size_t punctual) {
    IRMapping last = delayedMap(made.getResults().drop_front(punctual));
    cloneOps(builder, last, [&](Operation* op) { return plan_.isDelayed(op); });
    SmallVector<Value> results;
    size_t at = 0;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      results.push_back(plan_.isLate(arg) ? last.lookup(plan_.yielded(arg)) : Value(made.getResult(at++)));
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
      if (plan_.isLate(arg)) lateOf[plan_.accumulated(arg)] = arg;
    for (Value value : plan_.crossing()) {
      auto late = lateOf.find(value);
      inits.push_back(late != lateOf.end()
                          ? loop_.getTiedLoopInit(late->second)->get()
                          : arith::ConstantOp::create(builder, loc, builder.getZeroAttr(value.getType())));
    }

    auto [made, in] = openLoop(builder, loop_.getLowerBound(), inits);
    IRMapping now;
    now.map(loop_.getInductionVar(), made.getInductionVar());
    for (auto [arg, value] : llvm::zip(punctual, made.getRegionIterArgs())) now.map(arg, value);
    cloneOps(in, now, [&](Operation* op) { return plan_.isEarly(op); });
    Value notFirst =
        arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sgt, made.getInductionVar(), loop_.getLowerBound());
    auto branch = scf::IfOp::create(
        in, loc, notFirst,
        [&](OpBuilder& b, Location at) {
          IRMapping before = delayedMap(made.getRegionIterArgs().drop_front(punctual.size()));
          cloneOps(b, before, [&](Operation* op) { return plan_.isDelayed(op); });
          SmallVector<Value> late;
          for (BlockArgument arg : loop_.getRegionIterArgs())
            if (plan_.isLate(arg)) late.push_back(before.lookup(plan_.yielded(arg)));
          scf::YieldOp::create(b, at, late);
        },
        [&](OpBuilder& b, Location at) {
          IRMapping before = delayedMap(made.getRegionIterArgs().drop_front(punctual.size()));
          SmallVector<Value> late;
          for (BlockArgument arg : loop_.getRegionIterArgs())
            if (plan_.isLate(arg)) late.push_back(before.lookup(plan_.accumulated(arg)));
          scf::YieldOp::create(b, at, late);
        });
    size_t at = 0;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (plan_.isLate(arg)) now.map(arg, branch.getResult(at++));
    closeLoop(in, now, punctual);
    return finish(builder, made, punctual.size());
  }

  SmallVector<Value> emitPeeled(OpBuilder& builder, llvm::function_ref<Value(OpBuilder&)> second) {
    const SmallVector<BlockArgument> punctual = punctualArgs();
    IRMapping first;
    first.map(loop_.getInductionVar(), loop_.getLowerBound());
    for (auto [arg, init] : llvm::zip(loop_.getRegionIterArgs(), loop_.getInitArgs())) first.map(arg, init);
    cloneOps(builder, first, [&](Operation* op) { return !plan_.isDelayed(op); });
    SmallVector<Value> inits;
    for (BlockArgument arg : punctual) inits.push_back(first.lookupOrDefault(plan_.yielded(arg)));
    for (Value value : plan_.crossing()) inits.push_back(first.lookup(value));

    auto [made, in] = openLoop(builder, second(builder), inits);
    IRMapping now;
    now.map(loop_.getInductionVar(), made.getInductionVar());
    for (auto [arg, value] : llvm::zip(punctual, made.getRegionIterArgs())) now.map(arg, value);
    cloneOps(in, now, [&](Operation* op) { return plan_.isEarly(op); });
    IRMapping before = delayedMap(made.getRegionIterArgs().drop_front(punctual.size()));
    cloneOps(in, before, [&](Operation* op) { return plan_.isDelayed(op); });
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (plan_.isLate(arg)) now.map(arg, before.lookup(plan_.yielded(arg)));
    closeLoop(in, now, punctual);
    return finish(builder, made, punctual.size());
  }

  const RotationPlan& plan_;
  mutable scf::ForOp loop_;
};

}  // namespace

void rewriteRotated(const RotationPlan& plan, bool runs, llvm::function_ref<Value(OpBuilder&)> second) {
  Rewriter(plan).rewrite(runs, second);
}

}  // namespace tile::ir
