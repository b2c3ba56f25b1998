// narrow_moves.cpp - rounds a tile before a permutation of its dims, not behind it: then half as many bytes are
// exchanged between threads.
// Before: trunc(permute x), also with reshapes between.
// After:  permute(trunc x).
// Tiles of two dims are left alone: their transposes cost nothing where products read them.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_NARROWMOVES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

RankedTensorType withElement(Value like, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(like.getType()).getShape(), element);
}

class NarrowMovesPass : public impl::NarrowMovesBase<NarrowMovesPass> {
  void runOnOperation() override {
    SmallVector<Operation*> roundings;
    getOperation().walk([&](Operation* op) {
      if (isa<arith::TruncFOp, arith::TruncIOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()))
        roundings.push_back(op);
    });
    for (Operation* op : roundings) narrow(op);
  }

  static void narrow(Operation* rounding) {
    SmallVector<Operation*> moves;  // the last one first
    Value source = rounding->getOperand(0);
    bool changesPlaces = false;
    while (Operation* move = source.getDefiningOp()) {
      if (!isa<ReshapeOp, TransOp>(move) || !source.hasOneUse()) break;
      changesPlaces |= isa<TransOp>(move) && cast<RankedTensorType>(source.getType()).getRank() > 2;
      moves.push_back(move);
      source = move->getOperand(0);
    }
    if (!changesPlaces || !isa<RankedTensorType>(source.getType())) return;
    const Type element = getElementTypeOrSelf(rounding->getResult(0).getType());
    rounding->moveBefore(moves.back());
    rounding->getResult(0).replaceAllUsesWith(moves.front()->getResult(0));
    rounding->setOperand(0, source);
    rounding->getResult(0).setType(withElement(source, element));
    moves.back()->setOperand(0, rounding->getResult(0));
    for (Operation* move : moves) move->getResult(0).setType(withElement(move->getResult(0), element));
  }
};

}  // namespace
}  // namespace tile::ir
