// reduce_together.cpp - lets reductions across warps share one barrier.
// Before: a reduction across warps, some work that does not depend on it, and another reduction like it (sums of what a
//         pixel adds to nine gradients, say; the addition of the first one to memory may stand in between)
// After:  (first, second) in one op where the first one stood
//
// Needs layouts. What the later reduction is computed from moves up with it, if that neither reads memory nor depends
// on the first one's result. The work is the same, but its results are held in registers at the same time; that is
// bounded.
#include "compiler/analysis/joined_reductions.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of the tiles that one op combines, and ops that move up with one reduction.
constexpr int kMostReduced = 96;
constexpr size_t kMostMoved = 96;

/// Floats, combined by an operation of pairs, with the results where they come out.
bool meetsAcrossWarps(ReduceOp reduce) {
  const int axis = static_cast<int>(reduce.getAxis());
  const auto source = layoutOf(reduce.getSources()[0].getType());
  if (!source || warpsAlong(*source, axis) == 1 || !combinesEitherWay(reduce)) return false;
  return llvm::all_of(reduce->getResults(), [&](Value result) {
    return isa<FloatType>(getElementTypeOrSelf(result.getType())) &&
           layoutOf(result.getType()) == std::optional(source->sliced(axis));
  });
}

bool areAlike(ReduceOp a, ReduceOp b) {
  const Type x = a.getSources()[0].getType(), y = b.getSources()[0].getType();
  const auto p = layoutOf(x), q = layoutOf(y);
  return a.getAxis() == b.getAxis() && cast<ShapedType>(x).getShape() == cast<ShapedType>(y).getShape() && *p == *q &&
         static_cast<int>(a.getSources().size() + b.getSources().size()) * p->numRegs() <= kMostReduced;
}

/// Whether the two may be one; what `later` is computed from then stands in front of `first`.
bool moveBeside(ReduceOp first, ReduceOp later) {
  if (!areAlike(first, later)) return false;
  llvm::SetVector<Operation*> moved;
  SmallVector<Operation*> open{later};
  while (!open.empty()) {
    bool waits = false;
    open.pop_back_val()->walk([&](Operation* inner) {
      for (Value operand : inner->getOperands()) {
        Operation* def = operand.getDefiningOp();
        if (!def || def->getBlock() != first->getBlock() || def->isBeforeInBlock(first)) continue;
        const bool isWork = isMemoryEffectFree(def) && (def->getNumRegions() == 0 || isa<ReduceOp, ScanOp>(def));
        waits |= def == first || !isWork;
        if (moved.insert(def)) open.push_back(def);
      }
    });
    if (waits || moved.size() > kMostMoved) return false;
  }
  auto order = moved.takeVector();
  llvm::sort(order, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  for (Operation* op : order) op->moveBefore(first);
  return true;
}

class ReduceTogetherPass : public PassWrapper<ReduceTogetherPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceTogetherPass)
  StringRef getArgument() const override { return "tile-reduce-together"; }
  StringRef getDescription() const override { return "let reductions across warps share barriers"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    joinReductions(getOperation(), meetsAcrossWarps, moveBeside);
  }
};

}  // namespace

std::unique_ptr<Pass> createReduceTogetherPass() { return std::make_unique<ReduceTogetherPass>(); }

}  // namespace tile::ir
