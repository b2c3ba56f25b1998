// nest_loops.cpp - two loops of one that goes over the blocks of all tiles of a program.
// Before: a loop of n * m iterations with a counter that goes from 0 to n - 1 again and again
//         (`block = where(block == n - 1, 0, block + 1)`, or `i % n`), `if (block == 0)` in front of what an iteration
//         does, and `if (block == n - 1)` behind it
// After:  a loop of m iterations around one of n; what happened in the first or last of n iterations stands in front of
//         the inner loop and behind it
// Persistent kernels are written as the former where loops are pipelined one by one. Here the inner loop's copies are
// boxes whose place it does not change, its products need no wait between iterations, and sums begin from a constant.
// n is taken not to be negative, nor the product to wrap.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace tile::ir {
#define GEN_PASS_DEF_NESTLOOPS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

bool isNumber(Value v, int64_t number) {
  APInt constant;
  return matchPattern(v, m_ConstantInt(&constant)) && constant.getSExtValue() == number;
}
/// Whether v is other + by.
bool isMore(Value v, Value other, int64_t by) {
  APInt a, b;
  if (matchPattern(v, m_ConstantInt(&a)) && matchPattern(other, m_ConstantInt(&b)))
    return a.getSExtValue() == b.getSExtValue() + by;
  if (auto add = v.getDefiningOp<arith::AddIOp>()) return add.getLhs() == other && isNumber(add.getRhs(), by);
  auto sub = v.getDefiningOp<arith::SubIOp>();
  return sub && sub.getLhs() == other && isNumber(sub.getRhs(), -by);
}
bool isEqual(Value condition, llvm::function_ref<bool(Value, Value)> sides) {
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq &&
         (sides(compare.getLhs(), compare.getRhs()) || sides(compare.getRhs(), compare.getLhs()));
}

/// The counter that goes from 0 to n - 1 again and again.
struct Counter {
  Value n, times;                      ///< of the loop's n * times iterations
  Value at;                            ///< its value in an iteration
  BlockArgument carried;               ///< null: a remainder of the induction variable
  llvm::SmallPtrSet<Operation*, 4> steps;  ///< that make `at` of `carried` and are nobody else's

  bool isFirst(Value condition) const {
    return isEqual(condition, [&](Value a, Value b) { return a == at && isNumber(b, 0); });
  }
  bool isLast(Value condition) const {
    return isEqual(condition, [&](Value a, Value b) {
      return (a == at && (isMore(n, b, 1) || isMore(b, n, -1))) || (b == n && isMore(a, at, 1));
    });
  }
};

/// Whether `next` is what follows `from`: the next number, and 0 behind n - 1.
bool startsAgain(Value next, Value from, Value n) {
  auto choice = next.getDefiningOp<arith::SelectOp>();
  return choice && isNumber(choice.getTrueValue(), 0) && isMore(choice.getFalseValue(), from, 1) &&
         isEqual(choice.getCondition(), [&](Value a, Value b) {
           return (a == from && (isMore(b, n, -1) || isMore(n, b, 1))) || (b == n && isMore(a, from, 1));
         });
}

/// The counter of a loop, with n one of the two factors of its number of iterations.
std::optional<Counter> counterOf(scf::ForOp loop, Value n, Value times) {
  for (auto [arg, next, init] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getInitArgs())) {
    if (arg.getType() != n.getType() || !loop.getTiedLoopResult(arg).use_empty()) continue;
    if (!startsAgain(next, arg, n)) continue;
    Counter counter{n, times, arg, arg, {}};
    if (isNumber(init, 0)) return counter;
    if (!isNumber(init, -1) && !isMore(init, n, -1)) continue;
    counter.at = next;
    Operation* choice = next.getDefiningOp();
    for (Value part : {choice->getOperand(0), choice->getOperand(2)}) counter.steps.insert(part.getDefiningOp());
    counter.steps.insert(choice);
    auto isStep = [&](Operation* op) { return counter.steps.contains(op); };
    bool own = llvm::all_of(arg.getUsers(), isStep);
    for (Value part : {choice->getOperand(0), choice->getOperand(2)}) own &= llvm::all_of(part.getUsers(), isStep);
    if (own) return counter;
  }
  for (Operation* user : loop.getInductionVar().getUsers())
    if (isa<arith::RemSIOp, arith::RemUIOp>(user) && user->getBlock() == loop.getBody() && user->getOperand(1) == n &&
        user->getOperand(0) == loop.getInductionVar())
      return Counter{n, times, user->getResult(0), {}, {}};
  return std::nullopt;
}

/// Code of the loop that moves in front of the inner loop or behind it: what it reads there.
class Section {
 public:
  Section(Block* body, IRMapping known) : map(std::move(known)), body_(body) {}

  /// Whether the value is known there, or can be made again (in an iteration that made it in any case).
  bool canMake(Value v) {
    if (map.contains(v) || isOutside(v)) return true;
    Operation* op = v.getDefiningOp();
    if (!op) return false;
    auto [known, isNew] = makeable_.try_emplace(op, false);
    if (!isNew) return known->second;
    const bool can = op->getBlock() == body_ && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
                     !isa<DotOp, BatchDotOp>(op) &&
                     llvm::all_of(op->getOperands(), [&](Value operand) { return canMake(operand); });
    return makeable_[op] = can;
  }
  /// Makes what the op and its regions read.
  void make(OpBuilder& b, Operation* op) {
    for (Value operand : op->getOperands()) make(b, operand);
    llvm::SetVector<Value> read;
    for (Region& region : op->getRegions()) getUsedValuesDefinedAbove(region, read);
    for (Value v : read) make(b, v);
  }
  Value make(OpBuilder& b, Value v) {
    if (map.contains(v)) return map.lookup(v);
    if (isOutside(v)) return v;
    make(b, v.getDefiningOp());
    b.clone(*v.getDefiningOp(), map);
    return map.lookup(v);
  }
  bool canMakeAll(Operation* op) {
    llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
    for (Region& region : op->getRegions()) getUsedValuesDefinedAbove(region, read);
    return llvm::all_of(read, [&](Value v) { return canMake(v); });
  }

  IRMapping map;

 private:
  bool isOutside(Value v) const { return !body_->getParent()->isAncestor(v.getParentRegion()); }

  Block* body_;
  llvm::DenseMap<Operation*, bool> makeable_;  ///< answers of canMake
};

/// A branch without `else`, but for values that it hands on, or a choice, by a condition of the counter.
bool onlyThen(Operation* op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch) return isa<arith::SelectOp>(op);
  return branch.getElseRegion().empty() || llvm::hasSingleElement(*branch.elseBlock());
}
Value conditionOf(Operation* op) { return onlyThen(op) ? op->getOperand(0) : Value(); }
/// What the result is where the condition does not hold.
Value otherwise(OpResult result) {
  if (auto choice = dyn_cast<arith::SelectOp>(result.getOwner())) return choice.getFalseValue();
  return cast<scf::IfOp>(result.getOwner()).elseYield().getOperand(result.getResultNumber());
}

class Nest {
 public:
  Nest(scf::ForOp loop, Counter counter) : loop_(loop), counter_(std::move(counter)) {}

  /// Whether something leaves the inner loop.
  bool plan() {
    for (Operation& op : loop_.getBody()->without_terminator()) {
      if (takeFirst(op)) continue;
      if (!isMemoryEffectFree(&op)) break;
    }
    for (Operation& op : llvm::reverse(loop_.getBody()->without_terminator())) {
      if (first_.contains(&op)) continue;
      if (takeLast(op)) continue;
      if (!isMemoryEffectFree(&op)) break;
    }
    return !(first_.empty() && last_.empty()) && lastIsMade();
  }

  void rewrite();

 private:
  Block* body() { return loop_.getBody(); }
  Value yielded(BlockArgument arg) { return loop_.getTiedLoopYieldedValue(arg)->get(); }
  bool isIn(const llvm::SmallPtrSetImpl<Operation*>& set, Operation* user) {
    Operation* here = body()->findAncestorOpInBlock(*user);
    return here && set.contains(here);
  }

  /// What is done in the first iteration, and only hands on carried values in others, goes in front of the loop.
  bool takeFirst(Operation& op) {
    const Value condition = conditionOf(&op);
    if (!condition || !counter_.isFirst(condition)) return false;
    llvm::SmallPtrSet<Operation*, 8> set(first_.begin(), first_.end());
    set.insert(&op);
    llvm::SmallPtrSet<void*, 8> seen;  // of this op
    for (OpResult result : op.getResults()) {
      auto arg = dyn_cast<BlockArgument>(otherwise(result));
      if (!arg || !seen.insert(arg.getAsOpaquePointer()).second || begun_.contains(arg)) return false;
      if (arg.getOwner() != body() || arg == loop_.getInductionVar() || arg == counter_.carried ||
          !llvm::all_of(arg.getUsers(), [&](Operation* user) { return isIn(set, user); }))
        return false;
    }
    if (!Section(body(), atFirst()).canMakeAll(&op)) return false;
    first_.insert(&op);
    for (OpResult result : op.getResults()) begun_[cast<BlockArgument>(otherwise(result))] = result;
    return true;
  }

  /// What is done in the last iteration, and read by nobody in it, goes behind the loop.
  bool takeLast(Operation& op) {
    const Value condition = conditionOf(&op);
    if (!condition || !counter_.isLast(condition)) return false;
    llvm::SmallPtrSet<Operation*, 8> set(last_.begin(), last_.end());
    set.insert(body()->getTerminator());
    for (Operation* user : op.getUsers())
      if (!isIn(set, user)) return false;
    last_.insert(&op);
    return true;
  }

  /// Values with a known counterpart in front of the loop: all that is carried, the counter, what was moved there.
  IRMapping atFirst() {
    IRMapping map;
    for (BlockArgument arg : body()->getArguments())
      if (arg != counter_.carried || counter_.at == arg) map.map(arg, arg);
    map.map(counter_.at, counter_.at);
    for (Operation* op : first_)
      for (Value result : op->getResults()) map.map(result, result);
    return map;
  }
  /// The value that an iteration but the last of n hands on.
  Value handedOn(BlockArgument arg) {
    Value next = yielded(arg);
    while (next.getDefiningOp() && last_.contains(next.getDefiningOp())) next = otherwise(cast<OpResult>(next));
    return next;
  }
  /// The name of a carried value behind what begins it.
  Value current(BlockArgument arg) {
    auto begun = begun_.find(arg);
    return begun == begun_.end() ? Value(arg) : begun->second;
  }
  /// Values with a known counterpart behind the loop: its results, and what it does not change.
  IRMapping atLast() {
    IRMapping map;
    for (BlockArgument arg : loop_.getRegionIterArgs())
      if (arg != counter_.carried) map.map(handedOn(arg), handedOn(arg));
    map.map(loop_.getInductionVar(), loop_.getInductionVar());
    map.map(counter_.at, counter_.at);
    for (Operation* op : last_)
      for (Value result : op->getResults()) map.map(result, result);
    return map;
  }
  bool lastIsMade() {
    Section section(body(), atLast());
    return llvm::all_of(last_, [&](Operation* op) { return section.canMakeAll(op); });
  }

  scf::ForOp loop_;
  Counter counter_;
  llvm::SmallSetVector<Operation*, 4> first_, last_;  ///< last_: the last one first
  llvm::DenseMap<BlockArgument, OpResult> begun_;
};

/// The op's code for where its condition holds; `section` then knows its results.
void inlineThen(OpBuilder& b, Section& section, Operation* op) {
  section.make(b, op);
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    section.map.map(choice.getResult(), section.make(b, choice.getTrueValue()));
    return;
  }
  auto branch = cast<scf::IfOp>(op);
  for (Operation& inside : branch.thenBlock()->without_terminator()) b.clone(inside, section.map);
  if (branch.getNumResults())
    for (auto [result, value] : llvm::zip(branch.getResults(), branch.thenYield().getOperands()))
      section.map.map(result, section.map.lookupOrDefault(value));
}

void Nest::rewrite() {
  OpBuilder b(loop_);
  const Location loc = loop_.getLoc();
  const Type type = counter_.n.getType();
  auto number = [&](int64_t n) -> Value { return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, n)); };
  const Value zero = number(0), one = number(1);
  const Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, counter_.n, zero);
  const Value times = arith::SelectOp::create(b, loc, some, counter_.times, zero);
  SmallVector<BlockArgument> args;
  SmallVector<Value> inits;
  for (BlockArgument arg : loop_.getRegionIterArgs())
    if (arg != counter_.carried) args.push_back(arg), inits.push_back(loop_.getTiedLoopInit(arg)->get());

  auto outer = scf::ForOp::create(b, loc, zero, times, one, inits);
  if (!outer.getBody()->empty()) outer.getBody()->back().erase();
  b.setInsertionPointToEnd(outer.getBody());
  const Value start = arith::MulIOp::create(b, loc, outer.getInductionVar(), counter_.n);
  auto with = [&](Value counter, Value count) {
    IRMapping map;
    map.map(loop_.getInductionVar(), count);
    if (counter_.carried) map.map(counter_.carried, counter);
    map.map(counter_.at, counter);
    return Section(body(), map);
  };

  Section front = with(zero, start);
  for (auto [arg, now] : llvm::zip(args, outer.getRegionIterArgs())) front.map.map(arg, now);
  for (Operation* op : first_) inlineThen(b, front, op);
  auto isChanged = [&](BlockArgument arg) { return handedOn(arg) != current(arg); };
  SmallVector<Value> begins;
  for (BlockArgument arg : args)
    if (isChanged(arg)) begins.push_back(front.map.lookup(current(arg)));

  auto inner = scf::ForOp::create(b, loc, zero, counter_.n, one, begins);
  inner->setDiscardableAttrs(loop_->getDiscardableAttrDictionary());
  if (!inner.getBody()->empty()) inner.getBody()->back().erase();
  b.setInsertionPointToEnd(inner.getBody());
  Section middle = with(inner.getInductionVar(), arith::AddIOp::create(b, loc, start, inner.getInductionVar()));
  size_t carried = 0;
  for (BlockArgument arg : args)
    middle.map.map(current(arg), isChanged(arg) ? inner.getRegionIterArg(carried++) : front.map.lookup(current(arg)));
  for (Operation& op : body()->without_terminator())
    if (!first_.contains(&op) && !last_.contains(&op) && !counter_.steps.contains(&op) &&
        counter_.at.getDefiningOp() != &op)
      b.clone(op, middle.map);
  SmallVector<Value> nexts;
  for (BlockArgument arg : args)
    if (isChanged(arg)) nexts.push_back(middle.map.lookupOrDefault(handedOn(arg)));
  scf::YieldOp::create(b, loc, nexts);

  b.setInsertionPointToEnd(outer.getBody());
  const Value end = arith::SubIOp::create(b, loc, counter_.n, one);
  Section behind = with(end, arith::AddIOp::create(b, loc, start, end));
  carried = 0;
  for (BlockArgument arg : args)
    behind.map.map(handedOn(arg), isChanged(arg) ? inner.getResult(carried++) : front.map.lookup(current(arg)));
  for (Operation* op : llvm::reverse(last_)) inlineThen(b, behind, op);
  SmallVector<Value> results;
  for (BlockArgument arg : args) results.push_back(behind.map.lookupOrDefault(yielded(arg)));
  scf::YieldOp::create(b, loc, results);

  for (auto [arg, result] : llvm::zip(args, outer.getResults()))
    loop_.getTiedLoopResult(arg).replaceAllUsesWith(result);
  loop_.erase();
}

class NestLoopsPass : public impl::NestLoopsBase<NestLoopsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      auto all = loop.getUpperBound().getDefiningOp<arith::MulIOp>();
      if (!all || !isNumber(loop.getLowerBound(), 0) || !isNumber(loop.getStep(), 1)) continue;
      std::optional<Counter> counter = counterOf(loop, all.getLhs(), all.getRhs());
      if (!counter) counter = counterOf(loop, all.getRhs(), all.getLhs());
      if (!counter) continue;
      if (Nest nest(loop, *counter); nest.plan()) nest.rewrite();
    }
  }
};

}  // namespace
}  // namespace tile::ir
