// whole_powers.cpp - powers by small integers become products: x^2 is one, where pow takes some ninety instructions.
// Before: math.powf by a constant that is an integer from -4 to 4, or 1/2, 3/2 or -1/2, the same for all elements.
// After:  products of x; of its reciprocal for exponents below 0; its root, also times x, or what 1 over the root is.
//         16-bit floats are computed in f32 and rounded once.
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
      if (!matchPattern(op.getRhs(), m_ConstantFloat(&exponent))) return;
      bool isInexact = false;
      exponent.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &isInexact);
      const double n = exponent.convertToDouble();
      const bool isRoot = n == 0.5 || n == 1.5 || n == -0.5;
      if (isRoot || (exponent.isInteger() && std::abs(n) <= kMost)) rewrite(op, n);
    });
  }

  static void rewrite(math::PowFOp op, double n) {
    OpBuilder b(op);
    const Location loc = op.getLoc();
    const Type own = op.getType();
    const bool isHalf = getElementTypeOrSelf(own).getIntOrFloatBitWidth() == 16;
    const Type type = isHalf && n != 0 && n != 1 ? withElement(own, b.getF32Type()) : own;
    auto constant = [&](double v) -> Value {
      const Attribute value = b.getFloatAttr(getElementTypeOrSelf(type), v);
      auto shaped = dyn_cast<ShapedType>(type);
      return arith::ConstantOp::create(b, loc, shaped ? DenseElementsAttr::get(shaped, value) : cast<TypedAttr>(value));
    };
    const auto flags = op.getFastmath();
    auto times = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, loc, x, y, flags); };
    Value x = op.getLhs();
    if (type != own) x = arith::ExtFOp::create(b, loc, type, x);
    Value power;
    if (n != std::trunc(n)) {
      // Of -0 and -inf C has the powers of 0 and inf.
      power = n < 0 ? Value(math::RsqrtOp::create(b, loc, x, flags)) : Value(math::SqrtOp::create(b, loc, x, flags));
      if (n > 1) power = times(x, power);
      power = math::AbsFOp::create(b, loc, power, flags);
      const double infinity = std::numeric_limits<double>::infinity();
      Value isEnd = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, constant(-infinity));
      power = arith::SelectOp::create(b, loc, isEnd, constant(n < 0 ? 0 : infinity), power);
    } else {
      if (n < 0) x = arith::DivFOp::create(b, loc, constant(1), x, flags);
      power = n == 0 ? constant(1) : x;
      if (std::abs(n) > 1) power = times(x, x);
      if (std::abs(n) == 3) power = times(power, x);
      if (std::abs(n) == 4) power = times(power, power);
    }
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
