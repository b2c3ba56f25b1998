// carry_elements.cpp - integers that loops and branches hand on as tiles of one element are handed on as scalars, and
// so are those that are loaded as a box of one element beside products. (Floats end in tiles, and tiles are loaded ahead
// of their use.)
// Before: for, while or if with values such as tensor<1xi32> (`Tile n = zeros({1}, i32)`, counted up in the loop);
//         loads such as tensor<1xi32> (`to_scalar(view.load({i}, {1}))`)
// After:  the same with i32; a splat in front of whoever wants the tile, an item behind whoever makes it
// Elementwise work on splats is then done on scalars (sink_broadcasts): addresses made of such numbers are the same for
// all threads, and a producer can compute them.
#include "compiler/dialect/products.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {
#define GEN_PASS_DEF_CARRYELEMENTS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

bool isElement(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && !tile.getEncoding() && tile.getNumElements() == 1 && tile.getElementType().isSignlessInteger();
}

class CarryElementsPass : public impl::CarryElementsBase<CarryElementsPass> {
  void runOnOperation() override {
    SmallVector<Operation*> constructs;  // first: items behind them are erased
    SmallVector<LoadOp> loads;
    getOperation().walk([&](Operation* op) {
      if (auto load = dyn_cast<LoadOp>(op); load && isElement(load.getType())) loads.push_back(load);
      if (isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op)) constructs.push_back(op);
    });
    if (hasProduct(getOperation()))  // else no producer wants them
      for (LoadOp load : loads) asScalar(load.getResult());
    for (Operation* op : constructs) {
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        for (auto [i, arg] : llvm::enumerate(loop.getRegionIterArgs())) {
          if (!isElement(arg.getType())) continue;
          asScalar(loop.getInitArgsMutable()[i]);
          asScalar(loop.getBody()->getTerminator()->getOpOperand(i));
          asScalar(arg);
          asScalar(loop.getResult(i));
        }
      } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        for (auto [i, arg] : llvm::enumerate(loop.getBeforeArguments())) {
          if (!isElement(arg.getType())) continue;
          asScalar(loop.getInitsMutable()[i]);
          asScalar(loop.getYieldOp()->getOpOperand(i));
          asScalar(arg);
        }
        for (auto [i, arg] : llvm::enumerate(loop.getAfterArguments())) {
          if (!isElement(arg.getType())) continue;
          asScalar(loop.getConditionOp().getArgsMutable()[i]);
          asScalar(arg);
          asScalar(loop.getResult(i));
        }
      } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
        for (OpResult result : branch.getResults()) {
          if (!isElement(result.getType())) continue;
          asScalar(branch.thenYield()->getOpOperand(result.getResultNumber()));
          asScalar(branch.elseYield()->getOpOperand(result.getResultNumber()));
          asScalar(result);
        }
      }
    }
  }

  static void asScalar(OpOperand& operand) {
    OpBuilder b(operand.getOwner());
    const Type element = cast<RankedTensorType>(operand.get().getType()).getElementType();
    operand.set(b.createOrFold<ItemOp>(operand.get().getLoc(), element, operand.get()));
  }

  static void asScalar(Value value) {
    const Type tile = value.getType();
    value.setType(cast<RankedTensorType>(tile).getElementType());
    OpBuilder b(value.getContext());
    b.setInsertionPointAfterValue(value);
    auto splat = SplatOp::create(b, value.getLoc(), tile, value);
    value.replaceAllUsesExcept(splat, splat);
    for (Operation* user : llvm::make_early_inc_range(splat->getUsers()))
      if (auto item = dyn_cast<ItemOp>(user)) {
        item.replaceAllUsesWith(value);
        item.erase();
      }
  }
};

}  // namespace
}  // namespace tile::ir
