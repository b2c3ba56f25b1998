// guard_loop.cpp - see guard_loop.h.
#include "compiler/gpu/overlap/guard_loop.h"

#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

arith::CmpIPredicate lessOf(scf::ForOp loop) {
  return loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
}

/// Whether the value is "the loop runs".
bool saysRuns(Value enable, scf::ForOp loop) {
  auto compare = enable.getDefiningOp<arith::CmpIOp>();
  if (!compare) return false;
  Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
  auto less = lessOf(loop);
  auto greater = less == arith::CmpIPredicate::slt ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::ugt;
  return (compare.getPredicate() == less && compare.getLhs() == lower && compare.getRhs() == upper) ||
         (compare.getPredicate() == greater && compare.getLhs() == upper && compare.getRhs() == lower);
}

bool surelyRuns(scf::ForOp loop) {
  APInt lower, upper;
  if (!matchPattern(loop.getLowerBound(), m_ConstantInt(&lower)) ||
      !matchPattern(loop.getUpperBound(), m_ConstantInt(&upper)))
    return false;
  return loop.getUnsignedCmp() ? lower.ult(upper) : lower.slt(upper);
}

}  // namespace

void guardLoop(scf::ForOp loop) {
  if (surelyRuns(loop)) return;
  SmallVector<Operation*> inside{loop};
  SmallVector<Value> finished(loop.getResults());
  for (Operation* op = loop->getNextNode(); op; op = op->getNextNode()) {
    if (auto wait = dyn_cast<MmaWaitOp>(op)) {
      for (auto [acc, result] : llvm::zip(wait.getAccs(), wait.getResults()))
        for (Value& value : finished)
          if (value == acc) value = result;
      inside.push_back(op);
    } else if (auto release = dyn_cast<RingReleaseOp>(op)) {
      if (!release.getEnable() || !saysRuns(release.getEnable(), loop)) break;
      Operation* compare = release.getEnable().getDefiningOp();
      release.getEnableMutable().clear();
      if (compare->use_empty()) compare->erase();
      inside.push_back(op);
    } else if (!isa<arith::CmpIOp, arith::ConstantOp>(op) || isa<RankedTensorType>(op->getResult(0).getType())) {
      break;
    }
  }
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  Value runs = arith::CmpIOp::create(builder, loc, lessOf(loop), loop.getLowerBound(), loop.getUpperBound());
  auto guard = scf::IfOp::create(builder, loc, loop.getResultTypes(), runs, /*withElseRegion=*/true);
  for (Block* block : {guard.thenBlock(), guard.elseBlock()})
    if (!block->empty()) block->back().erase();
  for (Operation* op : inside) op->moveBefore(guard.thenBlock(), guard.thenBlock()->end());
  auto isOutside = [&](OpOperand& use) { return !guard->isProperAncestor(use.getOwner()); };
  for (auto [result, value, outer] : llvm::zip(loop.getResults(), finished, guard.getResults())) {
    result.replaceUsesWithIf(outer, isOutside);
    value.replaceUsesWithIf(outer, isOutside);
  }
  builder.setInsertionPointToEnd(guard.thenBlock());
  scf::YieldOp::create(builder, loc, finished);
  builder.setInsertionPointToEnd(guard.elseBlock());
  scf::YieldOp::create(builder, loc, loop.getInitArgs());
}

}  // namespace tile::ir
