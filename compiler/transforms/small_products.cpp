// small_products.cpp - many small products that no tensor core multiplies are sums of products element by element: each
// alone is too small for threads to share.
// Before: cat along the first dim of dot(a[i], b[i], c[i]), one for every matrix i of a, b and c.
// After:  c + the sums over k of a[i, m, k] b[i, k, n].
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "llvm/ADT/SetVector.h"
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

/// The tile of 3 dims that the value is matrix `number` of; null: of none.
Value wholeOf(Value value, int64_t number) {
  auto flat = value.getDefiningOp<ReshapeOp>();
  auto part = flat ? flat.getSource().getDefiningOp<ExtractOp>() : ExtractOp();
  if (!part) return {};
  auto shape = cast<RankedTensorType>(part.getResult().getType()).getShape();
  auto whole = cast<RankedTensorType>(part.getSource().getType()).getShape();
  const bool isMatrix = shape.size() == 3 && shape[0] == 1 && shape.drop_front() == whole.drop_front() &&
                        cast<RankedTensorType>(value.getType()).getShape() == shape.drop_front();
  const auto offsets = part.getOffsets();
  return isMatrix && offsets[0] == number && offsets[1] == 0 && offsets[2] == 0 ? part.getSource() : Value();
}

struct Products {
  Value a, b, c;
};

std::optional<Products> match(CatOp cat) {
  if (cat.getAxis() != 0 || static_cast<int64_t>(cat.getSources().size()) < kMany) return std::nullopt;
  Products all;
  for (auto [number, source] : llvm::enumerate(cat.getSources())) {
    auto wide = source.getDefiningOp<ReshapeOp>();
    auto dot = wide ? wide.getSource().getDefiningOp<DotOp>() : DotOp();
    if (!dot || !dot->hasOneUse() || dot.getPrecision() != Precision::ieee) return std::nullopt;
    const auto i = static_cast<int64_t>(number);
    const Products one{wholeOf(dot.getA(), i), wholeOf(dot.getB(), i), wholeOf(dot.getAcc(), i)};
    if (!one.a || !one.b || !one.c) return std::nullopt;
    if (number == 0) all = one;
    if (one.a != all.a || one.b != all.b || one.c != all.c) return std::nullopt;
  }
  const Type element = getElementTypeOrSelf(all.a.getType());
  const auto shape = cast<RankedTensorType>(all.a.getType()).getShape();
  const int64_t columns = cast<RankedTensorType>(all.c.getType()).getShape()[2];
  const int64_t one = shape[1] * shape[2] * columns;
  if ((!element.isF32() && !element.isF64()) || all.c.getType() != cat.getResult().getType()) return std::nullopt;
  if (one > kOne || one * shape[0] > kAll) return std::nullopt;
  return all;
}

Value byElements(OpBuilder& b, Location loc, const Products& p) {
  const auto a = cast<RankedTensorType>(p.a.getType()).getShape();
  const int64_t count = a[0], rows = a[1], inner = a[2];
  const int64_t columns = cast<RankedTensorType>(p.c.getType()).getShape()[2];
  const auto fused = arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract);
  const Type all = withShape(p.a, {count, rows, columns, inner});
  auto repeated = [&](Value x, ArrayRef<int64_t> shape) -> Value {
    return BroadcastOp::create(b, loc, all, ReshapeOp::create(b, loc, withShape(x, shape), x));
  };
  const int32_t order[] = {0, 2, 1};
  Value turned = TransOp::create(b, loc, withShape(p.b, {count, columns, inner}), p.b, order);
  Value products = arith::MulFOp::create(b, loc, repeated(p.a, {count, rows, 1, inner}),
                                         repeated(turned, {count, 1, columns, inner}), fused);
  auto sum = ReduceOp::create(b, loc, TypeRange{withShape(p.a, {count, rows, columns, 1})}, ValueRange{products}, 3);
  {
    OpBuilder::InsertionGuard guard(b);
    Block* body = b.createBlock(&sum.getCombiner());
    Value x = body->addArgument(getElementTypeOrSelf(all), loc), y = body->addArgument(getElementTypeOrSelf(all), loc);
    YieldOp::create(b, loc, ValueRange{arith::AddFOp::create(b, loc, x, y, fused)});
  }
  Value flat = ReshapeOp::create(b, loc, p.c.getType(), sum.getResult(0));
  return arith::AddFOp::create(b, loc, p.c, flat, fused);
}

class SmallProductsPass : public impl::SmallProductsBase<SmallProductsPass> {
  void runOnOperation() override {
    SmallVector<CatOp> cats;
    getOperation().walk([&](CatOp cat) { cats.push_back(cat); });
    for (CatOp cat : cats) {
      const auto products = match(cat);
      if (!products) continue;
      OpBuilder b(cat);
      cat.replaceAllUsesWith(byElements(b, cat.getLoc(), *products));
      llvm::SetVector<Operation*> dead;  // what only the products were made of
      dead.insert(cat);
      while (!dead.empty()) {
        Operation* op = dead.pop_back_val();
        if (!op->use_empty() || !isPure(op)) continue;
        SmallVector<Operation*> made;
        for (Value operand : op->getOperands())
          if (Operation* by = operand.getDefiningOp()) made.push_back(by);
        op->erase();
        dead.insert(made.begin(), made.end());
      }
    }
  }
};

}  // namespace
}  // namespace tile::ir
