// product_anchors.cpp - accumulators and operands of products, and what bulk copies store.
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/combined_rows.h"
#include "compiler/gpu/layouts/layout_plan.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

// Accumulators that loops carry: in any other layout they would be converted in every iteration.
SmallVector<Value> LayoutPlan::keepAccumulators() {
  SmallVector<Value> kept;
  auto keep = [&](Value tile, const Layout& layout) {
    if (choices_.hold(tile, layout)) kept.push_back(tile);
  };
  scope_.walk([&](Operation* op) {
    auto mma = dyn_cast<MmaOp>(op);
    auto acc = mma ? dyn_cast<BlockArgument>(mma.getAcc()) : BlockArgument();
    auto loop = acc ? dyn_cast<scf::ForOp>(acc.getOwner()->getParentOp()) : scf::ForOp();
    if (!loop) return;
    const Layout layout = accumulatorLayout(mma);
    keep(mma.getResult(), layout);
    for (auto& group : carriedGroups(loop))
      if (llvm::is_contained(group, acc))
        for (Value tile : group) keep(tile, layout);
  });
  return kept;
}

void LayoutPlan::placeAccumulators() {
  auto place = [&](Value acc, Value result, const Layout& layout) {
    choices_.choose(result, layout);
    choices_.choose(acc, layout);
  };
  scope_.walk([&](Operation* op) {
    if (auto mma = dyn_cast<MmaOp>(op)) place(mma.getAcc(), mma.getResult(), accumulatorLayout(mma));
    if (auto mma = dyn_cast<BatchMmaOp>(op)) place(mma.getAcc(), mma.getResult(), batchLayouts(mma, numWarps()).acc);
  });
  choices_.spread();
}

void LayoutPlan::placeBulkStores() {
  scope_.walk([&](Operation* op) {
    auto store = dyn_cast<TmaStoreOp>(op);
    if (!store) return;
    choices_.choose(store.getValue(), tmaStoreLayout(store.getValue().getType().getShape(), numWarps()));
    choices_.spread();
  });
}

void LayoutPlan::placeFirstOperands() {
  scope_.walk([&](Operation* op) {
    if (auto mma = dyn_cast<MmaOp>(op); mma && isTile(mma.getA())) choices_.choose(mma.getA(), operandALayout(mma));
  });
  choices_.spread();
}

// Operands of products that single warps compute are computed by the same warp, so that no warp waits for another.
// Where such an operand is also reduced across its rows (`combined`), a thread gets runs of rows instead of what the
// product wants: the conversion stays within the warp.
void LayoutPlan::placeBatches(bool combined) {
  constexpr int kVectorBytes = 16;
  scope_.walk([&](Operation* op) {
    auto product = dyn_cast<BatchMmaOp>(op);
    if (!product || product.getAcc().getType().getShape()[0] % numWarps() != 0) return;
    for (Value operand : {product.getA(), product.getB()}) {
      if (auto trans = operand.getDefiningOp<TransOp>()) operand = trans.getSource();
      if (combinesRows(operand) != combined) continue;
      const layout::Shape shape = shapeOf(operand), matrix{shape[1], shape[2]};
      const int vector = kVectorBytes / elementBytes(operand.getType());
      const Layout one = combined ? scanLayout(matrix, 0, 1, target_.lanes)
                                  : layout::blocked(matrix, vector, {1, 0}, 1, target_.lanes);
      if (!one.isPadded()) choices_.choose(operand, layout::inBatches(one, shape[0], numWarps()));
      choices_.spread();
    }
  });
}

}  // namespace tile::ir
