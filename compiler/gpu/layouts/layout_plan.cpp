// layout_plan.cpp - the order in which anchors (operations that prefer a layout for their tile) are asked, strongest
// first.
#include "compiler/gpu/layouts/layout_plan.h"

#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/copy_layout.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/carried_layouts.h"
#include "compiler/gpu/layouts/combined_rows.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

void LayoutScope::walk(llvm::function_ref<void(Operation*)> visit) const {
  if (only) {
    only->walk(visit);
    return;
  }
  func::FuncOp all = func;
  all.walk([&](Operation* op) {
    if (!without || !op->getParentRegion() || !without->isAncestor(op->getParentRegion())) visit(op);
  });
}

LayoutPlan::LayoutPlan(const LayoutScope& scope, const Target& target)
    : scope_(scope),
      target_(target),
      facts_(func::FuncOp(scope.func).getOperation()),
      access_(facts_, target, scope.numWarps),
      cheap_(scope.only != nullptr),
      choices_(cheap_, access_) {
  keepWithShortRows();
  keepInWarps();
  keepCostlyVectors();
  const SmallVector<Value> sorted = keepExchanges();
  const SmallVector<Value> early = keepAsLoaded();
  const SmallVector<Value> carried = keepAccumulators();
  placeBatches(/*combined=*/true);
  choices_.follow(carried);
  placeCarriedSums(/*fewestTrips=*/16);
  placeAccumulators();
  placeBatches(/*combined=*/false);
  placeCutMatrices();
  placeRunsOfRows();
  placeBulkStores();
  placeFirstOperands();
  placeCarriedSums(/*fewestTrips=*/0);
  placeRunsToScan();
  choices_.follow(early);
  choices_.follow(sorted);
  choices_.spread();
  placeAccesses();
  placeAsyncGathersAndScans();
  placeCarriedBesideVectors();
  placeShortSums();
  placeWidened();
  placeTurned();
  placeRest();
}

// Tiles that no anchor reached get the default layout.
void LayoutPlan::placeRest() {
  auto place = [&](Value value) {
    if (isTile(value)) choices_.choose(value, defaultLayout(value.getType()));
    choices_.spread();
  };
  scope_.walk([&](Operation* op) {
    for (Region& region : op->getRegions())
      for (Block& block : region) llvm::for_each(block.getArguments(), place);
    llvm::for_each(op->getResults(), place);
  });
}

// ---- answers

Layout LayoutPlan::layoutOf(Value tile) const {
  auto layout = choices_.of(tile);
  return layout ? *layout : defaultLayout(tile.getType());
}

Layout LayoutPlan::groupLayout(Operation* op) const {
  SmallVector<Value> group = sameLayout(op);
  if (auto mma = dyn_cast<MmaOp>(op)) return accumulatorLayout(mma);
  if (auto mma = dyn_cast<BatchMmaOp>(op)) return batchLayouts(mma, numWarps()).acc;
  if (auto gather = dyn_cast<AsyncGatherOp>(op)) return asyncGatherLayout(gather, facts_, numWarps());
  auto scan = dyn_cast<ScanOp>(op);
  auto suits = [&](const std::optional<Layout>& layout) {
    return layout && (!scan || scansWell(*layout, static_cast<int>(scan.getAxis())));
  };
  auto chosen = [&]() -> std::optional<Layout> {
    // Results first: their layouts were chosen for what the op itself prefers.
    for (Value tile : op->getResults())
      if (auto layout = choices_.of(tile); suits(layout) && llvm::is_contained(group, tile)) return layout;
    for (Value tile : group)
      if (auto layout = choices_.of(tile); suits(layout)) return layout;
    if (scan) return scanLayout(shapeOf(group[0]), static_cast<int>(scan.getAxis()), numWarps(), target_.lanes);
    if (auto reduce = dyn_cast<ReduceOp>(op))
      if (auto own = layoutToCombineIn(reduce, choices_.of(reduce.getResult(0)), numWarps(), target_.lanes)) return own;
    return access_.coalescedLayout(op);
  }();
  return chosen ? *chosen : defaultLayout(group[0].getType());
}

Layout LayoutPlan::reducedLayout(ReduceOp reduce, Value result, const Layout& source) const {
  const Layout wanted = layoutOf(result);
  const bool isRead =
      readsTable(reduce, source, defaultLayout(reduce.getResult(0).getType())) && readsAnyLayout(reduce, wanted);
  return isRead ? wanted : source.sliced(static_cast<int>(reduce.getAxis()));
}

}  // namespace tile::ir
