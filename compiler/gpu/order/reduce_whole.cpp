// reduce_whole.cpp - a tile that is reduced to one element is reduced along all of its dims at once.
// Before: reductions of each other's result, along one axis each, until one element is left
// After:  one reduction of the tile as a vector: each thread reduces what it has first, and lanes and warps exchange
//         one value instead of one for every row
// Needs layouts, and a combiner that commutes: the order of the steps changes, which the language leaves open.
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/gpu_passes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The one operation that a reduction of one tile combines by, where neither order nor grouping matter to it.
Operation* freeCombiner(ReduceOp reduce) {
  Operation* op = reduce.getSources().size() == 1 ? soleOperation(reduce, 0) : nullptr;
  return op && op->hasTrait<OpTrait::IsCommutative>() && op->getNumOperands() == 2 ? op : nullptr;
}

/// The first of the reductions that end with `last`.
ReduceOp firstOf(ReduceOp last) {
  Operation* combiner = freeCombiner(last);
  ReduceOp first = last;
  while (auto inner = first.getSources()[0].getDefiningOp<ReduceOp>()) {
    Operation* same = inner->hasOneUse() && inner->getBlock() == last->getBlock() ? freeCombiner(inner) : nullptr;
    if (!same || same->getName() != combiner->getName()) break;
    first = inner;
  }
  return first;
}

void reduceWhole(ReduceOp last) {
  auto result = cast<RankedTensorType>(last.getResult(0).getType());
  if (result.getNumElements() != 1 || !freeCombiner(last)) return;
  ReduceOp first = firstOf(last);
  if (first == last) return;
  auto source = cast<RankedTensorType>(first.getSources()[0].getType());
  const auto line = layoutOf(source)->reshaped({source.getNumElements()});
  const auto back = line ? line->sliced(0).reshaped({result.getShape().begin(), result.getShape().end()}) : line;
  if (!back || *back != *layoutOf(result)) return;
  auto typed = [&](int64_t size, const layout::Layout& layout) {
    return withLayout(RankedTensorType::get({size}, source.getElementType()), layout);
  };
  OpBuilder b(last);
  IRMapping map;
  map.map(
      last.getSources()[0],
      ReshapeOp::create(b, last.getLoc(), typed(source.getNumElements(), *line), first.getSources()[0]).getResult());
  auto whole = cast<ReduceOp>(b.clone(*last, map));
  whole.setAxis(0);
  whole.getResult(0).setType(typed(1, line->sliced(0)));
  // Elements are read where they are.
  for (OpOperand& use : llvm::make_early_inc_range(last.getResult(0).getUses()))
    if (isa<ItemOp>(use.getOwner())) use.set(whole.getResult(0));
  if (!last->use_empty())
    last.getResult(0).replaceAllUsesWith(ReshapeOp::create(b, last.getLoc(), result, whole.getResult(0)).getResult());
  for (ReduceOp dead = last; dead && dead->use_empty();) {
    auto inner = dead == first ? ReduceOp() : dead.getSources()[0].getDefiningOp<ReduceOp>();
    dead.erase();
    dead = inner;
  }
}

class ReduceWholePass : public PassWrapper<ReduceWholePass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceWholePass)
  StringRef getArgument() const override { return "tile-reduce-whole"; }
  StringRef getDescription() const override {
    return "a tile that is reduced to one element is reduced along all of its dims at once";
  }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    SmallVector<ReduceOp> all;
    getOperation().walk([&](ReduceOp reduce) {
      // The last of each chain.
      const bool isInner = reduce->hasOneUse() && isa<ReduceOp>(*reduce->getUsers().begin());
      if (!isInner) all.push_back(reduce);
    });
    for (ReduceOp reduce : all) reduceWhole(reduce);
  }
};

}  // namespace

std::unique_ptr<Pass> createReduceWholePass() { return std::make_unique<ReduceWholePass>(); }

}  // namespace tile::ir
