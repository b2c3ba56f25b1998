// accumulate_products.cpp - sums behind products become their accumulators.
// Before: acc + dot(a, b, 0), where acc is carried by a loop (it may be multiplied by a factor, as in online softmax),
//         the result of a loop, or another product's sum.
// After:  dot(a, b, acc): one set of registers instead of two, no additions, and the next product need not wait for
//         this one's result.
//
// This contracts a product and the sum behind it as a * b + c is contracted to an fma. Products of f8 are left alone:
// tensor cores sum them with fewer bits than f32 has, so that adding outside may be intended. Other summands (a row of
// biases) stay behind the product: by then their loads have arrived.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_ACCUMULATEPRODUCTS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

bool isZero(Value tile) { return matchPattern(tile, m_AnyZeroFloat()) || matchPattern(tile, m_Zero()); }

bool isCarried(Value tile) {
  if (auto argument = dyn_cast<BlockArgument>(tile))
    return isa<LoopLikeOpInterface>(argument.getOwner()->getParentOp());
  return isa<scf::ForOp>(tile.getDefiningOp());
}

bool isRunningSum(Value tile) {
  if (isCarried(tile) || isZero(tile)) return true;
  if (tile.getDefiningOp<DotOp>()) return tile.hasOneUse();
  auto scaled = tile.getDefiningOp<arith::MulFOp>();
  return scaled && tile.hasOneUse() && llvm::any_of(scaled->getOperands(), isCarried);
}

/// A product that is added to nothing yet, and used once.
DotOp freshProduct(Value tile) {
  auto dot = tile.getDefiningOp<DotOp>();
  if (!dot || !tile.hasOneUse() || !isZero(dot.getAcc())) return nullptr;
  const Type element = getElementTypeOrSelf(dot.getA().getType());
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 8 ? nullptr : dot;
}

class AccumulateProductsPass : public impl::AccumulateProductsBase<AccumulateProductsPass> {
  void runOnOperation() override {
    SmallVector<Operation*> sums;
    getOperation().walk([&](Operation* op) {
      if (isa<arith::AddFOp, arith::AddIOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()))
        sums.push_back(op);
    });
    DominanceInfo dominance(getOperation());
    for (Operation* sum : sums) {
      auto real = dyn_cast<arith::AddFOp>(sum);
      if (real && !bitEnumContainsAll(real.getFastmath(), arith::FastMathFlags::contract)) continue;
      for (int side : {1, 0})
        if (accumulate(sum, freshProduct(sum->getOperand(side)), sum->getOperand(1 - side), dominance)) break;
    }
  }

  static bool accumulate(Operation* sum, DotOp dot, Value summand, DominanceInfo& dominance) {
    if (!dot || dot->getBlock() != sum->getBlock() || !isRunningSum(summand)) return false;
    if (!dominance.properlyDominates(summand, dot)) dot->moveBefore(sum);
    dot.getAccMutable().assign(summand);
    sum->getResult(0).replaceAllUsesWith(dot);
    sum->erase();
    return true;
  }
};

}  // namespace
}  // namespace tile::ir
