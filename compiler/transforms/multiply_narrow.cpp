// multiply_narrow.cpp - products of numbers that were widened for them multiply the narrow ones: tensor cores take
// 16-bit operands, and f32 products of such numbers are exact either way.
// Before: dot(extf a, extf b, acc) in f32, also through transposes; a and b of f16, of bf16, of f8, or 8-bit integers
//         that were converted to f32.
// After:  dot(a, b, acc). Only 8-bit operands are widened, to 16 bits.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_MULTIPLYNARROW
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// The op that widened the tile, moves looked through; null: it is of f32 by itself.
Operation* wideningOf(Value tile) {
  Operation* op = tile.getDefiningOp();
  while (isa_and_nonnull<TransOp, ReshapeOp>(op)) op = op->getOperand(0).getDefiningOp();
  if (!isa_and_nonnull<arith::ExtFOp, arith::SIToFPOp, arith::UIToFPOp>(op)) return nullptr;
  const Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  return from.getIntOrFloatBitWidth() <= (isa<FloatType>(from) ? 16 : 8) && !from.isInteger(1) ? op : nullptr;
}

/// The type both multiply in: what one of them has of 16 bits; f16, which holds all numbers of 8 bits, where none has.
Type narrowType(Operation* a, Operation* b) {
  Type found;
  for (Operation* op : {a, b}) {
    const Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    if (from.getIntOrFloatBitWidth() != 16) continue;
    if (found && found != from) return {};
    found = from;
  }
  return found ? found : Float16Type::get(a->getContext());
}

RankedTensorType withElement(Value like, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(like.getType()).getShape(), element);
}

Value narrowed(OpBuilder& b, Value tile, Operation* widening, Type element) {
  OpBuilder::InsertionGuard guard(b);
  Operation* op = tile.getDefiningOp();
  b.setInsertionPointAfter(op);
  if (op != widening) {
    IRMapping operands;
    operands.map(op->getOperand(0), narrowed(b, op->getOperand(0), widening, element));
    Operation* move = b.clone(*op, operands);
    move->getResult(0).setType(withElement(tile, element));
    return move->getResult(0);
  }
  if (getElementTypeOrSelf(op->getOperand(0).getType()) == element) return op->getOperand(0);
  Operation* to16 = b.clone(*op);
  to16->getResult(0).setType(withElement(tile, element));
  return to16->getResult(0);
}

class MultiplyNarrowPass : public impl::MultiplyNarrowBase<MultiplyNarrowPass> {
  void runOnOperation() override {
    getOperation().walk([](DotOp dot) {
      if (!getElementTypeOrSelf(dot.getA().getType()).isF32()) return;
      Operation *a = wideningOf(dot.getA()), *b = wideningOf(dot.getB());
      const Type element = a && b ? narrowType(a, b) : Type();
      if (!element) return;
      OpBuilder builder(dot);
      dot.getAMutable().assign(narrowed(builder, dot.getA(), a, element));
      dot.getBMutable().assign(narrowed(builder, dot.getB(), b, element));
      dot.setPrecision(Precision::ieee);
    });
  }
};

}  // namespace
}  // namespace tile::ir
