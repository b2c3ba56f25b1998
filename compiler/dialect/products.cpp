// products.cpp - see products.h.
#include "compiler/dialect/products.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// A tile for warpgroups whose neighbours do not lie along k, of elements for which that matters.
bool liesAcross(MmaOp op, Value operand, int kDim) {
  auto type = dyn_cast<SmemType>(operand.getType());
  return op.getEngine() >= Engine::wgmma_f16 && type && type.getMinor() != kDim &&
         type.getElementType().getIntOrFloatBitWidth() != 16;
}

}  // namespace

bool hasProduct(Operation* op) {
  return op
      ->walk([](Operation* inner) {
        return isa<DotOp, BatchDotOp, MmaOp, BatchMmaOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool hasProductInLoop(Operation* op) {
  return op
      ->walk([](LoopLikeOpInterface loop) {
        return hasProduct(loop) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool isTransposed(MmaOp op) {
  return liesAcross(op, op.getB(), 0) || (op.getEngine() >= Engine::wgmma_f16 && op.getWarpsM() % 4 != 0);
}

Value fragmentOperand(MmaOp op) {
  if (liesAcross(op, op.getB(), 0)) return op.getB();
  return liesAcross(op, op.getA(), 1) ? op.getA() : Value();
}

}  // namespace tile::ir
