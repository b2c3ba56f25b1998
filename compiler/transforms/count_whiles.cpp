// count_whiles.cpp - loops written with a condition whose number of iterations is known when they begin.
// Before: scf.while of which the condition is `i < n`, where an iteration adds a constant above 0 or the number of
//         programs to i and leaves n alone; or `bits != 0`, where an iteration clears the lowest bit (`bits & (bits -
//         1)`)
// After:  scf.for from i to n by that number; scf.for over as many iterations as bits are set
// Everything that looks for loops that count (copies that run ahead, sums reduced behind the loop, unrolling) then
// finds these, too. A counter is taken not to pass the largest number of its type.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir {
#define GEN_PASS_DEF_COUNTWHILES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// How a loop counts: from the initial value of one of the values that it carries.
struct Count {
  unsigned number = 0;  ///< of the carried value
  Value bound, step;    ///< null for bits
};

class WhileCounter {
 public:
  explicit WhileCounter(scf::WhileOp loop) : loop_(loop) {}

  std::optional<Count> match() {
    for (Operation& op : loop_.getBeforeBody()->without_terminator())
      if (op.getNumRegions() || !isPure(&op)) return std::nullopt;
    auto compare = loop_.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare->getBlock() != loop_.getBeforeBody()) return std::nullopt;
    using Predicate = arith::CmpIPredicate;
    const bool isSwapped = compare.getPredicate() == Predicate::sgt;
    Value at = isSwapped ? compare.getRhs() : compare.getLhs(), bound = isSwapped ? compare.getLhs() : compare.getRhs();
    auto arg = dyn_cast<BlockArgument>(at);
    if (!arg || arg.getOwner() != loop_.getBeforeBody() || !arg.getType().isInteger()) return std::nullopt;
    if (!arg.getType().isInteger(32) && !arg.getType().isInteger(64)) return std::nullopt;
    Count count{arg.getArgNumber(), bound, {}};
    const Value next = loop_.getYieldOp().getOperand(count.number);
    if (compare.getPredicate() == Predicate::ne) {
      if (!matchPattern(bound, m_Zero()) || !clearsLowestBit(next, arg)) return std::nullopt;
      count.bound = {};
      return count;
    }
    if (compare.getPredicate() != Predicate::slt && !isSwapped) return std::nullopt;
    auto add = next.getDefiningOp<arith::AddIOp>();
    if (!add || !isSettled(bound)) return std::nullopt;
    const bool isFirst = isAt(add.getLhs(), arg);
    if (!isFirst && !isAt(add.getRhs(), arg)) return std::nullopt;
    count.step = isFirst ? add.getRhs() : add.getLhs();
    if (!isAboveZero(count.step) || !isSettled(count.step)) return std::nullopt;
    return count;
  }

  void rewrite(const Count& count) {
    OpBuilder b(loop_);
    const Location loc = loop_.getLoc();
    const Value first = loop_.getInits()[count.number];
    auto number = [&](int64_t n) -> Value {
      return arith::ConstantOp::create(b, loc, b.getIntegerAttr(first.getType(), n));
    };
    Value low = first, high, step;
    if (count.bound) {
      IRMapping settled;
      cloneSettled(b, settled);
      high = settled.lookupOrDefault(count.bound), step = outside(b, count.step, settled);
    } else {
      low = number(0), step = number(1), high = math::CtPopOp::create(b, loc, first);
    }
    auto made = scf::ForOp::create(b, loc, low, high, step, loop_.getInits());
    made->setDiscardableAttrs(loop_->getDiscardableAttrDictionary());
    if (!made.getBody()->empty()) made.getBody()->clear();

    IRMapping map;
    for (auto [arg, now] : llvm::zip(loop_.getBeforeArguments(), made.getRegionIterArgs())) map.map(arg, now);
    if (count.bound) map.map(loop_.getBeforeArguments()[count.number], made.getInductionVar());
    OpBuilder in = OpBuilder::atBlockEnd(made.getBody());
    pass(in, map);
    for (Operation& op : loop_.getAfterBody()->without_terminator()) in.clone(op, map);
    SmallVector<Value> next;
    for (Value v : loop_.getYieldOp().getOperands()) next.push_back(map.lookupOrDefault(v));
    scf::YieldOp::create(in, loc, next);

    // What the loop hands on is what the condition passes when it is false.
    IRMapping end;
    for (auto [arg, last] : llvm::zip(loop_.getBeforeArguments(), made.getResults())) end.map(arg, last);
    for (Operation& op : loop_.getBeforeBody()->without_terminator()) b.clone(op, end);
    for (auto [result, passed] : llvm::zip(loop_.getResults(), loop_.getConditionOp().getArgs()))
      result.replaceAllUsesWith(end.lookupOrDefault(passed));
    loop_.erase();
  }

 private:
  /// The carried value, in the condition's block or behind it.
  bool isAt(Value v, BlockArgument arg) {
    auto after = dyn_cast<BlockArgument>(v);
    return after && after.getOwner() == loop_.getAfterBody() &&
           loop_.getConditionOp().getArgs()[after.getArgNumber()] == arg;
  }

  bool clearsLowestBit(Value next, BlockArgument arg) {
    auto both = next.getDefiningOp<arith::AndIOp>();
    if (!both) return false;
    for (auto [x, less] : {std::pair(both.getLhs(), both.getRhs()), std::pair(both.getRhs(), both.getLhs())}) {
      if (!isAt(x, arg)) continue;
      if (auto sub = less.getDefiningOp<arith::SubIOp>();
          sub && isAt(sub.getLhs(), arg) && matchPattern(sub.getRhs(), m_One()))
        return true;
      APInt by;
      if (auto add = less.getDefiningOp<arith::AddIOp>();
          add && isAt(add.getLhs(), arg) && matchPattern(add.getRhs(), m_ConstantInt(&by)) && by.isAllOnes())
        return true;
    }
    return false;
  }

  static bool isAboveZero(Value step) {
    APInt n;
    if (matchPattern(step, m_ConstantInt(&n))) return n.isStrictlyPositive();
    return step.getDefiningOp<NumProgramsOp>() != nullptr;
  }

  /// Whether a value is the same in every iteration: from outside, or made in the condition of what is.
  bool isSettled(Value v) {
    llvm::DenseSet<Value> seen;
    return isSettled(v, seen);
  }
  bool isSettled(Value v, llvm::DenseSet<Value>& seen) {
    if (!loop_->isAncestor(v.getParentRegion()->getParentOp()) || !seen.insert(v).second) return true;
    Operation* op = v.getDefiningOp();
    if (!op || op->getNumRegions() || !isPure(op)) return false;
    if (op->getBlock() != loop_.getBeforeBody() && op->getNumOperands()) return false;
    return llvm::all_of(op->getOperands(), [&](Value operand) { return isSettled(operand, seen); });
  }

  /// The settled part of the condition, in front of the loop.
  void cloneSettled(OpBuilder& b, IRMapping& map) {
    for (Operation& op : loop_.getBeforeBody()->without_terminator())
      if (op.getNumResults() == 1 && isSettled(op.getResult(0))) b.clone(op, map);
  }
  Value outside(OpBuilder& b, Value v, IRMapping& map) {
    if (map.contains(v) || !loop_->isAncestor(v.getParentRegion()->getParentOp())) return map.lookupOrDefault(v);
    return b.clone(*v.getDefiningOp(), map)->getResult(cast<OpResult>(v).getResultNumber());
  }

  /// The condition's own work, and what it passes to the iteration.
  void pass(OpBuilder& b, IRMapping& map) {
    for (Operation& op : loop_.getBeforeBody()->without_terminator()) b.clone(op, map);
    for (auto [after, passed] : llvm::zip(loop_.getAfterArguments(), loop_.getConditionOp().getArgs()))
      map.map(after, map.lookupOrDefault(passed));
  }

  scf::WhileOp loop_;
};

class CountWhilesPass : public impl::CountWhilesBase<CountWhilesPass> {
  void runOnOperation() override {
    SmallVector<scf::WhileOp> loops;  // inner ones first
    getOperation().walk([&](scf::WhileOp loop) { loops.push_back(loop); });
    for (scf::WhileOp loop : loops) {
      WhileCounter counter(loop);
      if (auto count = counter.match()) counter.rewrite(*count);
    }
  }
};

}  // namespace
}  // namespace tile::ir
