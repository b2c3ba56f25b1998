// error_functions.h - the complement of the error function, the normal distribution, and their inverses, by the same
// steps in f32 and f64.
#pragma once
#include <cmath>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir {

/// Self has a builder `b`; constant, infinity, fma, abs, copysign, innerQuotient, exp(x, shift), clampKeepingNan and
/// logOfPositive(x, mayBeTiny), of numbers above 0 that are finite, and normal where they are not tiny; kErfcEnd, from
/// where erfc is 0, kErfcMiddle and erfcTail((x - middle) / (x + middle)) = (1 + 2x) e^(x^2) erfc(x);
/// erfinvOver(w, isFar) = erfinv(x) / x where w = -log(1 - x^2), `isFar`: beyond what numbers below 1 reach.
template <class Self>
class ErrorFunctions {
 protected:
  using Value = llvm::Value;

 public:
  /// The other half is 2 - erfc(-x).
  Value* erfc(Value* x) {
    Value* a = me().clampKeepingNan(me().abs(x), 0.0, Self::kErfcEnd);
    Value* y = erfcOf(a, a, a, 1.0);
    return b().CreateSelect(b().CreateFCmpOLT(x, constant(0.0)), b().CreateFSub(constant(2.0), y), y);
  }

  /// erfc(-x / sqrt(2)) / 2. Rounded, that argument would cost the digits of e^-(x^2 / 2): its square is made of x.
  Value* normcdf(Value* x) {
    Value* a = me().clampKeepingNan(me().abs(x), 0.0, Self::kErfcEnd * M_SQRT2);
    Value* y = erfcOf(mul(a, constant(M_SQRT1_2)), a, mul(a, constant(0.5)), 0.5);
    return b().CreateSelect(b().CreateFCmpOGT(x, constant(0.0)), b().CreateFSub(constant(1.0), y), y);
  }

  Value* erfinv(Value* x) {
    Value* rest = me().fma(b().CreateFNeg(x), x, constant(1.0));
    return inverse(x, rest, /*isFar=*/false);
  }
  /// erfinv(1 - x), whose 1 - (1 - x)^2 is x (2 - x).
  Value* erfcinv(Value* x) {
    return inverse(b().CreateFSub(constant(1.0), x), mul(x, b().CreateFSub(constant(2.0), x)), /*isFar=*/true);
  }
  Value* normcdfinv(Value* x) { return mul(erfcinv(b().CreateFAdd(x, x)), constant(-M_SQRT2)); }

 private:
  /// scale * erfc(z) for z >= 0, whose square is left * right: e^-(z^2) p((z - middle) / (z + middle)) / (1 + 2z).
  Value* erfcOf(Value* z, Value* left, Value* right, double scale) {
    constexpr int kShift = 60;  // keeps the power off the subnormals until the last product
    Value* middle = constant(Self::kErfcMiddle);
    Value* p = me().erfcTail(me().innerQuotient(b().CreateFSub(z, middle), b().CreateFAdd(z, middle)));
    Value* square = mul(left, right);
    Value* low = me().fma(left, right, b().CreateFNeg(square));
    Value* power = me().exp(b().CreateFNeg(square), kShift);
    Value* y = mul(me().innerQuotient(p, me().fma(z, constant(2.0), constant(1.0))), power);
    return mul(me().fma(b().CreateFNeg(y), low, y), constant(std::ldexp(scale, -kShift)));
  }

  /// erfinv(x), `rest` = 1 - x^2.
  Value* inverse(Value* x, Value* rest, bool isFar) {
    Value* y = mul(x, me().erfinvOver(b().CreateFNeg(me().logOfPositive(rest, /*mayBeTiny=*/isFar)), isFar));
    Value* isEnd = b().CreateFCmpOEQ(rest, constant(0.0));
    Value* beyond = b().CreateSelect(isEnd, me().copysign(me().infinity(), x), llvm::ConstantFP::getNaN(x->getType()));
    return b().CreateSelect(b().CreateFCmpOGT(rest, constant(0.0)), y, beyond);
  }

  Self& me() { return static_cast<Self&>(*this); }
  llvm::IRBuilderBase& b() { return me().b; }
  llvm::Constant* constant(double v) { return me().constant(v); }
  Value* mul(Value* x, Value* y) { return b().CreateFMul(x, y); }
};

}  // namespace tile::ir
