// join_reductions.cpp - reductions of one shape along one axis that read one tile become one reduction with several
// operands: its loops read every element once for all of them.
// Before: sum(a * x), some elementwise work on it, sum(b * x)
// After:  (sum(a * x), sum(b * x)) in one op where the first one stood
//
// What the later one's operands are computed from moves up with it: elementwise work only, which is evaluated inside
// the loops anyway.
#include <map>

#include "compiler/analysis/joined_reductions.h"
#include "compiler/host/host.h"
#include "compiler/host/plan.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
namespace {
using namespace mlir;

/// Results that one loop keeps in registers, a vector or more of each.
constexpr unsigned kMostResults = 12;

/// What loops evaluate where its result is read.
bool isEvaluatedInLoops(Operation* op) {
  if (isa<ReshapeOp, TransOp>(op)) return host::movesOnlyUnitDims(op);
  return isElementwise(op) || isa<BroadcastOp, SplatOp, IotaOp, arith::ConstantOp>(op);
}

/// What the sources of a reduction are computed from in its loops.
struct Expression {
  SetVector<Operation*> ops;  ///< of the block of the reduction
  DenseSet<Value> tiles;      ///< of as many elements as the sources: what they are read from
  Operation* last = nullptr;  ///< of the block, what all of it needs: the last one in its order

  explicit Expression(ReduceOp reduce) {
    const int64_t elements = cast<RankedTensorType>(reduce.getSources()[0].getType()).getNumElements();
    DenseSet<Value> seen;
    SmallVector<Value> open(reduce.getSources());
    while (!open.empty()) {
      const Value v = open.pop_back_val();
      if (!seen.insert(v).second) continue;
      Operation* op = v.getDefiningOp();
      if (op && isEvaluatedInLoops(op)) {
        if (op->getBlock() == reduce->getBlock()) ops.insert(op);
        llvm::append_range(open, op->getOperands());
      } else if (isTile(v) && cast<RankedTensorType>(v.getType()).getNumElements() == elements) {
        tiles.insert(v);
      }
    }
    need(reduce);
    for (Operation* op : ops) need(op);
  }

 private:
  void need(Operation* reader) {
    for (Value v : reader->getOperands()) {
      Operation* op = v.getDefiningOp();
      if (!op || op->getBlock() != reader->getBlock() || ops.contains(op)) continue;
      if (!last || last->isBeforeInBlock(op)) last = op;
    }
  }
};

bool areAlike(ReduceOp a, ReduceOp b) {
  return a.getAxis() == b.getAxis() && host::shapeOf(a.getSources()[0]) == host::shapeOf(b.getSources()[0]);
}

class JoinReductionsPass : public PassWrapper<JoinReductionsPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(JoinReductionsPass)
  StringRef getArgument() const override { return "tile-join-reductions"; }
  StringRef getDescription() const override { return "make one reduction of those that read one tile"; }

  void runOnOperation() override {
    known_.clear();
    joinReductions(getOperation(), [](ReduceOp) { return true; }, [&](ReduceOp first, ReduceOp later) {
      const bool joins = moveBeside(first, later);
      if (joins) known_.clear();  // both ops go, and others may read their results
      return joins;
    });
  }

 private:
  /// Long bodies have many pairs of reductions that do not join, and long expressions: each is walked once.
  const Expression& expressionOf(ReduceOp reduce) {
    return known_.try_emplace(reduce, reduce).first->second;
  }

  /// Whether the two may be one; what `later` is computed from then stands in front of `first`.
  bool moveBeside(ReduceOp first, ReduceOp later) {
    if (!areAlike(first, later) || first.getNumResults() + later.getNumResults() > kMostResults) return false;
    const Expression &before = expressionOf(first), &behind = expressionOf(later);
    if (llvm::none_of(behind.tiles, [&](Value v) { return before.tiles.contains(v); })) return false;
    if (behind.last && !behind.last->isBeforeInBlock(first)) return false;
    SmallVector<Operation*> moved;
    for (Operation* op : behind.ops)
      if (!op->isBeforeInBlock(first)) moved.push_back(op);
    llvm::sort(moved, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
    for (Operation* op : moved) op->moveBefore(first);
    return true;
  }

  std::map<Operation*, Expression> known_;
};

}  // namespace

std::unique_ptr<Pass> createJoinReductionsPass() { return std::make_unique<JoinReductionsPass>(); }

}  // namespace tile::ir
