// small_products.cpp - computes batches of products that are too small for tensor cores, and too small for threads to
// share, element by element.
// Before: batch_dot of a, b and c, whose first dims count the matrices.
// After:  c + the sums over k of a[i, m, k] b[i, k, n].
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_SMALLPRODUCTS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kMany = 4;     ///< matrices; few are shared well
constexpr int64_t kOne = 1024;   ///< products of one
constexpr int64_t kAll = 65536;  ///< products of all: in registers of the threads on their way

RankedTensorType withShape(Value like, ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, getElementTypeOrSelf(like.getType()));
}

bool isSmall(BatchDotOp dot) {
  const Type element = getElementTypeOrSelf(dot.getA().getType());
  const auto shape = cast<RankedTensorType>(dot.getA().getType()).getShape();
  const int64_t columns = cast<RankedTensorType>(dot.getAcc().getType()).getShape()[2];
  const int64_t one = shape[1] * shape[2] * columns;
  return dot.getPrecision() == Precision::ieee && (element.isF32() || element.isF64()) && shape[0] >= kMany &&
         one <= kOne && one * shape[0] <= kAll;
}

Value byElements(OpBuilder& b, BatchDotOp dot) {
  const Location loc = dot.getLoc();
  const auto a = cast<RankedTensorType>(dot.getA().getType()).getShape();
  const int64_t count = a[0], rows = a[1], inner = a[2];
  const int64_t columns = cast<RankedTensorType>(dot.getAcc().getType()).getShape()[2];
  const auto fused = arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract);
  const Type all = withShape(dot.getA(), {count, rows, columns, inner});
  auto repeated = [&](Value x, ArrayRef<int64_t> shape) -> Value {
    return BroadcastOp::create(b, loc, all, ReshapeOp::create(b, loc, withShape(x, shape), x));
  };
  const int32_t order[] = {0, 2, 1};
  Value turned = TransOp::create(b, loc, withShape(dot.getB(), {count, columns, inner}), dot.getB(), order);
  Value products = arith::MulFOp::create(b, loc, repeated(dot.getA(), {count, rows, 1, inner}),
                                         repeated(turned, {count, 1, columns, inner}), fused);
  auto sum = ReduceOp::create(b, loc, TypeRange{withShape(dot.getA(), {count, rows, columns, 1})}, ValueRange{products}, 3);
  {
    OpBuilder::InsertionGuard guard(b);
    Block* body = b.createBlock(&sum.getCombiner());
    Value x = body->addArgument(getElementTypeOrSelf(all), loc), y = body->addArgument(getElementTypeOrSelf(all), loc);
    YieldOp::create(b, loc, ValueRange{arith::AddFOp::create(b, loc, x, y, fused)});
  }
  Value flat = ReshapeOp::create(b, loc, dot.getAcc().getType(), sum.getResult(0));
  return arith::AddFOp::create(b, loc, dot.getAcc(), flat, fused);
}

class SmallProductsPass : public impl::SmallProductsBase<SmallProductsPass> {
  void runOnOperation() override {
    SmallVector<BatchDotOp> dots;
    getOperation().walk([&](BatchDotOp dot) { dots.push_back(dot); });
    for (BatchDotOp dot : dots) {
      if (!isSmall(dot)) continue;
      OpBuilder b(dot);
      dot.replaceAllUsesWith(byElements(b, dot));
      dot.erase();
    }
  }
};

}  // namespace
}  // namespace tile::ir
