// count_steps.cpp - integers that a loop advances by the same number in every iteration are computed from a counter,
// not carried.
// Before: a carried tile of integers to which every iteration adds one number (`columns += 64`)
// After:  its initial value plus a carried scalar; where that scalar advances by a multiple of the loop's step, or by
//         just that step, and its last value is not read, plus the induction variable times a constant
// What iterations begin with (`tile += programs`, from one step before the first tile) they end with: then such a
// number begins at what the first iteration makes of it.
// Masks and addresses then look as if they had been written with the induction variable: its range is known, layouts
// can choose where the initial tile lies, and the scalar becomes part of an address's base.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace tile::ir {
#define GEN_PASS_DEF_COUNTSTEPS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// The number that all elements of a tile are, as a scalar; null where it is not known to be one.
Value sameNumber(Value tile, OpBuilder& b) {
  DenseIntElementsAttr constant;
  if (matchPattern(tile, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(b, tile.getLoc(), constant.getSplatValue<TypedAttr>());
  if (auto splat = tile.getDefiningOp<SplatOp>()) return splat.getValue();
  if (Operation* op = tile.getDefiningOp(); isa_and_nonnull<BroadcastOp, ReshapeOp>(op))
    return sameNumber(op->getOperand(0), b);
  return {};
}
bool isSameNumber(Value tile) {
  DenseIntElementsAttr constant;
  if (matchPattern(tile, m_Constant(&constant))) return constant.isSplat();
  Operation* op = tile.getDefiningOp();
  return isa_and_nonnull<SplatOp>(op) ||
         (isa_and_nonnull<BroadcastOp, ReshapeOp>(op) && isSameNumber(op->getOperand(0)));
}

/// The additions and subtractions, the last one first, that make the next value of `arg`; none where others do.
SmallVector<Operation*> stepsOf(BlockArgument arg, Value next) {
  SmallVector<Operation*> steps;
  for (Value v = next; v != arg;) {
    Operation* op = v.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) || op->getBlock() != arg.getOwner()) return {};
    const bool swapped = isa<arith::AddIOp>(op) && isSameNumber(op->getOperand(0));
    if (!isSameNumber(op->getOperand(swapped ? 0 : 1))) return {};
    steps.push_back(op);
    v = op->getOperand(swapped ? 1 : 0);
  }
  return steps;
}

/// The constant that the op adds to `arg`; what it subtracts, below 0.
std::optional<APInt> constantStep(Operation* op, Value arg) {
  APInt by;
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) || op->getOperand(0) != arg) return std::nullopt;
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&by))) return std::nullopt;
  return isa<arith::SubIOp>(op) ? -by : by;
}

class CountStepsPass : public impl::CountStepsBase<CountStepsPass> {
  void runOnOperation() override {
    SmallVector<scf::ForOp> loops;  // inner ones first: what they begin with may be carried by outer ones
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops) {
      for (unsigned i = 0, count = loop.getNumRegionIterArgs(); i < count; ++i) loop = asNumber(loop, i);
      for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i) stepAtEnd(loop, i);
      for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i) inStep(loop, i), withLoop(loop, i);
    }
  }

  /// The loop with a scalar in the place of a tile that it only adds numbers to; the tile comes round unchanged.
  static scf::ForOp asNumber(scf::ForOp loop, unsigned number) {
    BlockArgument arg = loop.getRegionIterArg(number);
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    const bool isOfNumbers = type && type.getElementType().isSignlessInteger() && type.getElementTypeBitWidth() >= 32;
    if (!isOfNumbers || arg.use_empty()) return loop;
    const SmallVector<Operation*> steps = stepsOf(arg, loop.getYieldedValues()[number]);
    if (steps.empty()) return loop;

    IRRewriter b(loop.getContext());
    const Location loc = steps.front()->getLoc();
    const unsigned fresh = loop.getNumRegionIterArgs();
    b.setInsertionPoint(loop);
    Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(type.getElementType(), 0));
    auto made = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        b, {zero}, /*replaceInitOperandUsesInLoop=*/false,
        [](OpBuilder&, Location, ArrayRef<BlockArgument> added) { return SmallVector<Value>{added[0]}; }));
    arg = made.getRegionIterArg(number);
    auto tileAt = [&](Value reached) -> Value {
      return arith::AddIOp::create(b, loc, made.getInitArgs()[number], SplatOp::create(b, loc, type, reached));
    };
    Value reached = made.getRegionIterArg(fresh);
    b.setInsertionPointToStart(made.getBody());
    b.replaceAllUsesWith(arg, tileAt(reached));
    for (Operation* step : llvm::reverse(steps)) {
      b.setInsertionPoint(step);
      const bool swapped = isa<arith::AddIOp>(step) && isSameNumber(step->getOperand(0));
      Value by = sameNumber(step->getOperand(swapped ? 0 : 1), b);
      reached = isa<arith::AddIOp>(step) ? arith::AddIOp::create(b, loc, reached, by).getResult()
                                         : arith::SubIOp::create(b, loc, reached, by).getResult();
    }
    Operation* yield = made.getBody()->getTerminator();
    yield->setOperand(number, arg);
    yield->setOperand(fresh, reached);
    if (Value result = made.getResult(number); !result.use_empty()) {
      b.setInsertionPointAfter(made);
      b.replaceAllUsesWith(result, tileAt(made.getResult(fresh)));
    }
    return made;
  }

  /// A number that nobody reads before its step.
  static void stepAtEnd(scf::ForOp loop, unsigned number) {
    BlockArgument arg = loop.getRegionIterArg(number);
    Operation* next = loop.getYieldedValues()[number].getDefiningOp();
    if (!isa<IntegerType>(arg.getType()) || !isa_and_nonnull<arith::AddIOp, arith::SubIOp>(next)) return;
    if (!arg.hasOneUse() || !loop.getResult(number).use_empty()) return;
    const bool subtracts = isa<arith::SubIOp>(next), swapped = !subtracts && next->getOperand(1) == arg;
    if (next->getBlock() != loop.getBody() || (!swapped && next->getOperand(0) != arg)) return;
    Value by = next->getOperand(swapped ? 0 : 1);
    // What is read only to be carried is as well off as it is.
    if (!loop.isDefinedOutsideOfLoop(by) || next->hasOneUse()) return;

    OpBuilder b(loop);
    const Location loc = next->getLoc();
    auto stepped = [&](Value from) {
      return subtracts ? b.createOrFold<arith::SubIOp>(loc, from, by) : b.createOrFold<arith::AddIOp>(loc, from, by);
    };
    loop.getInitArgsMutable()[number].set(stepped(loop.getInitArgs()[number]));
    next->getResult(0).replaceAllUsesWith(arg);
    Operation* yield = loop.getBody()->getTerminator();
    b.setInsertionPoint(yield);
    yield->setOperand(number, stepped(arg));
    next->erase();
  }

  /// A number that goes with the induction variable, and begins where that does; nobody asks for its last value.
  static void withLoop(scf::ForOp loop, unsigned number) {
    BlockArgument arg = loop.getRegionIterArg(number);
    auto add = loop.getYieldedValues()[number].getDefiningOp<arith::AddIOp>();
    if (!add || arg.getType() != loop.getInductionVar().getType() || !loop.getResult(number).use_empty()) return;
    const Value step = loop.getStep(), a = add.getLhs(), b = add.getRhs();
    const bool steps = (a == arg && b == step) || (b == arg && a == step);
    if (!steps || loop.getInitArgs()[number] != loop.getLowerBound()) return;
    arg.replaceAllUsesWith(loop.getInductionVar());
    loop.getBody()->getTerminator()->setOperand(number, arg);  // unread: goes
  }

  /// A number that is what it began with, plus a whole multiple of the induction variable; nobody asks for its last
  /// value.
  static void inStep(scf::ForOp loop, unsigned number) {
    BlockArgument arg = loop.getRegionIterArg(number);
    auto type = dyn_cast<IntegerType>(arg.getType());
    auto ivType = dyn_cast<IntegerType>(loop.getInductionVar().getType());
    if (!type || !ivType || type.getWidth() < 32 || arg.use_empty() || !loop.getResult(number).use_empty()) return;
    Operation* next = loop.getYieldedValues()[number].getDefiningOp();
    const std::optional<APInt> by = constantStep(next, arg);
    APInt from, step;
    if (!by) return;
    if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&from)) || !from.isZero()) return;
    if (!matchPattern(loop.getStep(), m_ConstantInt(&step)) || step.getSExtValue() <= 0) return;
    if (by->getSExtValue() % step.getSExtValue() != 0) return;

    OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
    const Location loc = next->getLoc();
    Value at = loop.getInductionVar();
    if (type.getWidth() > ivType.getWidth()) at = arith::ExtSIOp::create(b, loc, type, at);
    if (type.getWidth() < ivType.getWidth()) at = arith::TruncIOp::create(b, loc, type, at);
    if (const int64_t times = by->getSExtValue() / step.getSExtValue(); times != 1)
      at = arith::MulIOp::create(b, loc, at, arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, times)));
    if (Value init = loop.getInitArgs()[number]; !matchPattern(init, m_Zero()))
      at = arith::AddIOp::create(b, loc, init, at);
    arg.replaceAllUsesWith(at);
    loop.getBody()->getTerminator()->setOperand(number, arg);  // unread: goes
  }
};

}  // namespace
}  // namespace tile::ir
