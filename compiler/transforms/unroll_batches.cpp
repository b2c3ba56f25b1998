// unroll_batches.cpp - a product of several matrices becomes one product for each.
// Before: batch_dot of a, b and c, whose first dims count the matrices.
// After:  extracts, dots and one cat. Passes for tiles that are cut and put together see through these.
// On GPUs small products of computed tiles are left as they are: a single warp multiplies each, with operands in
// registers (place_operands). Operands that a loop only loads are copied ahead to shared memory, for all warps.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_UNROLLBATCHES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kMany = 4;        ///< matrices: as many as warps of a small program
constexpr int64_t kRegisters = 96;  ///< of a lane, for one product

RankedTensorType withShape(Value like, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getElementTypeOrSelf(like.getType()));
}

/// Elements along k of one instruction of a warp; 0: none multiplies such numbers.
int64_t stepOf(BatchDotOp dot) {
  const Type element = getElementTypeOrSelf(dot.getA().getType());
  if (element.isF16() || element.isBF16()) return 16;
  if (element.isInteger(8)) return 32;
  return (element.isF32() || element.isInteger(32)) && dot.getPrecision() != Precision::ieee ? 8 : 0;
}

/// Every iteration of a loop loads it, and nobody computes with it.
bool isOnlyLoaded(Value tile) {
  while (Operation* op = tile.getDefiningOp()) {
    const bool isMultiplied =
        llvm::all_of(op->getUsers(), [](Operation* user) { return isa<ReshapeOp, TransOp, DotOp, BatchDotOp>(user); });
    if (!isMultiplied) return false;
    if (isa<LoadOp, GatherOp>(op)) return isa<LoopLikeOpInterface>(op->getParentOp());
    if (!isa<ReshapeOp, TransOp>(op)) return false;
    tile = op->getOperand(0);
  }
  return false;
}

bool isForWarps(BatchDotOp dot) {
  const auto a = cast<RankedTensorType>(dot.getA().getType());
  const int64_t rows = a.getDimSize(1), inner = a.getDimSize(2);
  const int64_t columns = cast<RankedTensorType>(dot.getAcc().getType()).getDimSize(2), step = stepOf(dot);
  if (step == 0 || inner % step != 0 || a.getDimSize(0) < kMany) return false;
  const int64_t words = (rows + columns) * inner * a.getElementTypeBitWidth() / 32;
  if ((words + rows * columns) / 32 > kRegisters) return false;
  return !isOnlyLoaded(dot.getA()) && !isOnlyLoaded(dot.getB());
}

Value matrix(OpBuilder& b, Location loc, Value tile, int64_t number) {
  const auto shape = cast<RankedTensorType>(tile.getType()).getShape();
  const int32_t offsets[] = {static_cast<int32_t>(number), 0, 0};
  Value box = ExtractOp::create(b, loc, withShape(tile, {1, shape[1], shape[2]}), tile, offsets);
  return ReshapeOp::create(b, loc, withShape(tile, shape.drop_front()), box);
}

void unroll(BatchDotOp dot) {
  OpBuilder b(dot);
  const Location loc = dot.getLoc();
  const auto shape = cast<RankedTensorType>(dot.getAcc().getType()).getShape();
  SmallVector<Value> products;
  for (int64_t i = 0; i < shape[0]; ++i) {
    Value init = matrix(b, loc, dot.getAcc(), i);
    Value x = matrix(b, loc, dot.getA(), i), y = matrix(b, loc, dot.getB(), i);
    Value one = DotOp::create(b, loc, init.getType(), x, y, init, dot.getPrecision());
    products.push_back(ReshapeOp::create(b, loc, withShape(one, {1, shape[1], shape[2]}), one));
  }
  dot.replaceAllUsesWith(products.size() == 1 ? products[0]
                                              : CatOp::create(b, loc, dot.getAcc().getType(), products, 0).getResult());
  dot.erase();
}

class UnrollBatchesPass : public impl::UnrollBatchesBase<UnrollBatchesPass> {
 public:
  using UnrollBatchesBase::UnrollBatchesBase;

 private:
  void runOnOperation() override {
    SmallVector<BatchDotOp> dots;
    getOperation().walk([&](BatchDotOp dot) { dots.push_back(dot); });
    for (BatchDotOp dot : dots)
      if (host || !isForWarps(dot)) unroll(dot);
  }
};

}  // namespace
}  // namespace tile::ir
