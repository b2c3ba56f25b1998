// composed_functions.cpp - see composed_functions.h.
#include "dsl/tracing/composed_functions.h"

#include <cmath>

#include "compiler/dialect/dialect.h"

namespace tile::detail {
using namespace mlir;
namespace {

/// Short spellings of operations on floats of one type; f16 and bf16 operands are widened.
class Floats {
 public:
  Floats(OpBuilder& b, Location loc, Args args) : b_(b), loc_(loc), given_(args[0].getType()) {
    const bool narrow = getElementTypeOrSelf(given_).getIntOrFloatBitWidth() < 32;
    type_ = narrow ? with(b.getF32Type()) : given_;
    for (mlir::Value v : args) operands_.push_back(narrow ? mlir::Value(arith::ExtFOp::create(b, loc, type_, v)) : v);
  }
  mlir::Value operand(int i) const { return operands_[i]; }
  mlir::Value result(mlir::Value v) { return type_ == given_ ? v : arith::TruncFOp::create(b_, loc_, given_, v); }
  bool isDouble() const { return getElementTypeOrSelf(type_).isF64(); }

  mlir::Value constant(double v) {
    TypedAttr one = b_.getFloatAttr(getElementTypeOrSelf(type_), v);
    if (auto tile = dyn_cast<RankedTensorType>(type_)) one = SplatElementsAttr::get(tile, ArrayRef<Attribute>(one));
    return arith::ConstantOp::create(b_, loc_, one);
  }
  template <class Op>
  mlir::Value make(ValueRange operands) {
    return Op::create(b_, loc_, TypeRange(type_), operands, ArrayRef<NamedAttribute>{});
  }
  mlir::Value abs(mlir::Value x) { return make<math::AbsFOp>(x); }
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z) { return make<math::FmaOp>({x, y, z}); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return make<arith::MulFOp>({x, y}); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return make<arith::AddFOp>({x, y}); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return make<arith::SubFOp>({x, y}); }
  mlir::Value compare(arith::CmpFPredicate p, mlir::Value x, mlir::Value y) {
    return arith::CmpFOp::create(b_, loc_, p, x, y);
  }
  mlir::Value greater(mlir::Value x, mlir::Value y) { return compare(arith::CmpFPredicate::OGT, x, y); }
  mlir::Value equal(mlir::Value x, mlir::Value y) { return compare(arith::CmpFPredicate::OEQ, x, y); }
  mlir::Value choose(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return arith::SelectOp::create(b_, loc_, condition, x, y);
  }

  /// x less the nearest multiple of 2: exact, in [-1, 1]; NaN for infinities.
  mlir::Value lessWholeTurns(mlir::Value x) {
    return fma(make<math::RoundEvenOp>(mul(x, constant(0.5))), constant(-2.0), x);
  }
  /// The sine of r half turns, |r| <= 1/2.
  mlir::Value sineOfHalfTurns(mlir::Value r) {
    const double pi = isDouble() ? M_PI : static_cast<double>(static_cast<float>(M_PI));
    const double low = isDouble() ? 1.2246467991473532e-16 : M_PI - pi;
    return make<math::SinOp>(fma(r, constant(pi), mul(r, constant(low))));
  }

 private:
  Type with(Type element) {
    auto tile = dyn_cast<RankedTensorType>(given_);
    return tile ? Type(RankedTensorType::get(tile.getShape(), element)) : element;
  }
  OpBuilder& b_;
  Location loc_;
  Type given_, type_;
  SmallVector<mlir::Value, 2> operands_;
};

}  // namespace

mlir::Value Exp10::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  return f.result(f.make<math::PowFOp>({f.constant(10), f.operand(0)}));
}

mlir::Value SinPi::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  mlir::Value r = f.lessWholeTurns(f.operand(0));
  // Beyond a quarter turn the sine is that of what is left of a half one.
  mlir::Value folded = f.sub(f.make<math::CopySignOp>({f.constant(1), r}), r);
  return f.result(f.sineOfHalfTurns(f.choose(f.greater(f.abs(r), f.constant(0.5)), folded, r)));
}

mlir::Value CosPi::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  return f.result(f.sineOfHalfTurns(f.sub(f.constant(0.5), f.abs(f.lessWholeTurns(f.operand(0))))));
}

mlir::Value Hypot::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  mlir::Value x = f.abs(f.operand(0)), y = f.abs(f.operand(1)), one = f.constant(1);
  mlir::Value more = f.greater(x, y);  // with a NaN on either side: false, and the root is NaN
  mlir::Value large = f.choose(more, x, y), small = f.choose(more, y, x);
  // Quotients want their divisor away from both ends of the range.
  const int far = f.isDouble() ? 1000 : 120;
  mlir::Value huge = f.greater(large, f.constant(std::ldexp(1.0, far)));
  mlir::Value tiny = f.greater(f.constant(std::ldexp(1.0, -far + 30)), large);
  auto scale = [&](double ifHuge, double ifTiny) {
    return f.choose(huge, f.constant(ifHuge), f.choose(tiny, f.constant(ifTiny), one));
  };
  mlir::Value by = scale(0x1p-30, 0x1p60);
  large = f.mul(large, by), small = f.mul(small, by);
  mlir::Value ratio = f.make<arith::DivFOp>({small, large});
  mlir::Value root = f.make<math::SqrtOp>(f.fma(ratio, ratio, one));
  mlir::Value r = f.mul(f.mul(large, root), scale(0x1p30, 0x1p-60));
  r = f.choose(f.equal(f.add(large, small), f.constant(0)), large, r);
  const double infinity = std::numeric_limits<double>::infinity();
  mlir::Value either = f.choose(f.equal(x, f.constant(infinity)), x, y);
  return f.result(f.choose(f.equal(either, f.constant(infinity)), either, r));
}

}  // namespace tile::detail
