// whole_powers.cpp - powers by small integers become products: x^2 is one, where pow takes some ninety instructions.
// Before: math.powf by a constant that is an integer from -4 to 4, the same for all elements.
// After:  products of x; of its reciprocal for exponents below 0. 16-bit floats are computed in f32 and rounded once.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_WHOLEPOWERS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

class WholePowersPass : public impl::WholePowersBase<WholePowersPass> {
  void runOnOperation() override {
    getOperation().walk([](math::PowFOp op) {
      constexpr double kMost = 4;
      APFloat exponent(0.0);
      if (!matchPattern(op.getRhs(), m_ConstantFloat(&exponent)) || !exponent.isInteger()) return;
      const double n = exponent.convertToDouble();
      if (std::abs(n) <= kMost) rewrite(op, static_cast<int>(n));
    });
  }

  static void rewrite(math::PowFOp op, int n) {
    OpBuilder b(op);
    const Location loc = op.getLoc();
    const Type own = op.getType();
    const bool isHalf = getElementTypeOrSelf(own).getIntOrFloatBitWidth() == 16;
    const Type type = isHalf && n != 0 && n != 1 ? withElement(own, b.getF32Type()) : own;
    auto one = [&]() -> Value {
      const Attribute value = b.getFloatAttr(getElementTypeOrSelf(type), 1.0);
      auto shaped = dyn_cast<ShapedType>(type);
      return arith::ConstantOp::create(b, loc, shaped ? DenseElementsAttr::get(shaped, value) : cast<TypedAttr>(value));
    };
    const auto flags = op.getFastmath();
    auto times = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, loc, x, y, flags); };
    Value x = op.getLhs();
    if (type != own) x = arith::ExtFOp::create(b, loc, type, x);
    if (n < 0) x = arith::DivFOp::create(b, loc, one(), x, flags);
    Value power = n == 0 ? one() : x;
    if (std::abs(n) > 1) power = times(x, x);
    if (std::abs(n) == 3) power = times(power, x);
    if (std::abs(n) == 4) power = times(power, power);
    if (type != own) power = arith::TruncFOp::create(b, loc, own, power);
    op.replaceAllUsesWith(power);
    op.erase();
  }

  static Type withElement(Type like, Type element) {
    auto shaped = dyn_cast<ShapedType>(like);
    return shaped ? Type(shaped.clone(element)) : element;
  }
};

}  // namespace
}  // namespace tile::ir
