// shared_functions.h - functions that f32 and f64 compute by the same steps: hyperbolic functions, their inverses,
// angles and cube roots. What differs (constants, polynomials, quotients) comes from the class that derives.
#pragma once
#include <cmath>

#include "compiler/lowering/elementwise.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir {

/// Self has a builder `b`; constant, infinity, fma, abs, copysign, sqrt, quotient, log1p, log1pOfPositive, and
/// halfExp (e^x / 2, also where e^x would overflow); sinhTail, asinTail and atanTail: p(s) of f(t) = t + t s p(s) with
/// s = t^2, for |t| <= 1, <= 1/2 and <= tan(22.5 degrees); kHalfPi and kHalfPiLow, what the first lacks; kFar, beside
/// whose square 1 is nothing; kHuge, half of the largest power of two; innerQuotient and innerReciprocal, for
/// operands that are neither tiny nor huge; notHuge(x), x up to where 1 / x is lost beside it, if they ask for that.
template <class Self>
class SharedFunctions {
 protected:
  using Value = llvm::Value;

 public:
  /// e^|x|/2 and e^-|x|/2 of x: their sum, or, with x's sign, their difference.
  Value* cosh(Value* x) {
    Value* half = me().halfExp(me().abs(x));
    return me().fma(me().innerReciprocal(me().notHuge(half)), me().constant(0.25), half);
  }
  Value* sinh(Value* x) {
    Value *a = me().abs(x), *s = mul(x, x);
    Value* small = withTail(a, s, me().sinhTail(s));
    Value* half = me().halfExp(a);
    Value* large = me().fma(me().innerReciprocal(me().notHuge(half)), me().constant(-0.25), half);
    return me().copysign(b().CreateSelect(b().CreateFCmpOLT(a, one()), small, large), x);
  }

  // The inverses through log1p; far out log(2x), where squares would overflow: log1p(x) + log 2, whose 1 is lost there.
  Value* asinh(Value* x) {
    Value* a = me().abs(x);
    Value* far = b().CreateFCmpOGT(a, me().constant(Self::kFar));
    Value* s = b().CreateSelect(far, me().constant(0.0), mul(a, a));
    Value* root = add(me().sqrt(add(s, one())), one());
    Value* y = me().log1pOfPositive(add(a, me().innerQuotient(s, root)));
    return me().copysign(b().CreateSelect(far, add(y, me().constant(M_LN2)), y), x);
  }
  Value* acosh(Value* x) {
    Value* far = b().CreateFCmpOGT(x, me().constant(Self::kFar));
    Value* t = sub(x, one());
    Value* near = add(t, me().sqrt(me().fma(t, t, add(t, t))));
    Value* y = me().log1pOfPositive(b().CreateSelect(far, x, near));
    y = b().CreateSelect(far, add(y, me().constant(M_LN2)), y);
    return b().CreateSelect(b().CreateFCmpOLT(x, one()), llvm::ConstantFP::getNaN(x->getType()), y);
  }
  Value* atanh(Value* x) {
    Value* a = me().abs(x);
    return me().copysign(mul(me().log1p(me().quotient(add(a, a), sub(one(), a))), me().constant(0.5)), x);
  }

  Value* atan(Value* x) {
    Value* a = me().notHuge(me().abs(x));
    return me().copysign(angle(a, one(), [&](Value* n, Value* d) { return me().innerQuotient(n, d); }), x);
  }
  Value* atan2(Value* y, Value* x) {
    Value *n = me().abs(y), *d = me().abs(x), *zero = me().constant(0.0);
    // Equal sides, also infinite ones, are a quarter of pi; two zeros count as none.
    Value *equal = b().CreateFCmpOEQ(n, d), *none = b().CreateFCmpOEQ(n, zero);
    // Sides near the largest number have a sum that is none.
    Value* larger = b().CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, n, d);
    Value* huge = b().CreateFCmpOGT(larger, me().constant(Self::kHuge));
    Value* down = b().CreateSelect(huge, me().constant(0.25), one());
    n = b().CreateSelect(equal, b().CreateSelect(none, zero, one()), mul(n, down));
    d = b().CreateSelect(equal, one(), mul(d, down));
    Value* r = angle(n, d, [&](Value* p, Value* q) { return me().quotient(p, q); });
    llvm::Type* integer = withElement(x->getType(), b().getIntNTy(x->getType()->getScalarSizeInBits()));
    Value* negative = b().CreateICmpSLT(b().CreateBitCast(x, integer), llvm::ConstantInt::get(integer, 0));
    return me().copysign(b().CreateSelect(negative, rightAnglesLess(2, r), r), y);
  }

  enum class Arc { sine, cosine };
  /// asin(t) = t + t^3 p(t^2) up to 1/2; above, 90 degrees less twice that of sqrt((1 - |x|) / 2).
  Value* arc(Value* x, Arc which) {
    Value* a = me().abs(x);
    Value* large = b().CreateFCmpOGT(a, me().constant(0.5));
    Value* s = b().CreateSelect(large, me().fma(a, me().constant(-0.5), me().constant(0.5)), mul(a, a));
    Value* p = withTail(b().CreateSelect(large, me().sqrt(s), a), s, me().asinTail(s));
    Value* twice = add(p, p);
    if (which == Arc::sine) return me().copysign(b().CreateSelect(large, rightAnglesLess(1, twice), p), x);
    Value* behind = b().CreateFCmpOLT(x, me().constant(0.0));
    return b().CreateSelect(large, b().CreateSelect(behind, rightAnglesLess(2, twice), twice),
                            rightAnglesLess(1, me().copysign(p, x)));
  }

  // Cube roots, without a quotient: x^(1/3) = x r^2 for r = x^(-1/3).

  /// r within 2^-12 of a positive normal number of f32: a third of its bits is about a third of its logarithm.
  Value* roughInverseCubeRoot(Value* x) {
    llvm::Type* integer = withElement(x->getType(), b().getInt32Ty());
    auto i = [&](uint32_t v) { return llvm::ConstantInt::get(integer, v); };
    Value* bits = b().CreateSub(i(0x54a2fa8c), b().CreateUDiv(b().CreateBitCast(x, integer), i(3)));
    return closerInverseCubeRoot(x, b().CreateBitCast(bits, x->getType()));
  }
  /// r (1 - e)^(-1/3), e = 1 - x r^3: three times the digits.
  Value* closerInverseCubeRoot(Value* x, Value* r) {
    auto c = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
    Value* e = fusedOf(b().CreateFNeg(mul(x, r)), mul(r, r), c(1));
    return fusedOf(fusedOf(e, c(2.0 / 9), c(1.0 / 3)), mul(r, e), r);
  }
  /// y (1 - e)^(-2/3) for y = x r^2; what rounding changes in y comes back through e, to a third.
  Value* cubeRootFrom(Value* x, Value* r) {
    auto c = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
    Value *y = mul(x, mul(r, r)), *e = fusedOf(b().CreateFNeg(y), r, c(1));
    return fusedOf(fusedOf(e, c(5.0 / 9), c(2.0 / 3)), mul(y, e), y);
  }

 protected:
  Value* rightAnglesLess(int count, Value* part) {
    return add(sub(me().constant(count * Self::kHalfPi), part), me().constant(count * Self::kHalfPiLow));
  }

 private:
  Self& me() { return static_cast<Self&>(*this); }
  llvm::IRBuilderBase& b() { return me().b; }
  Value* one() { return me().constant(1.0); }
  Value* add(Value* x, Value* y) { return b().CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) { return b().CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) { return b().CreateFMul(x, y); }
  Value* fusedOf(Value* x, Value* y, Value* z) {  // of either type
    return b().CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  }

  Value* withTail(Value* t, Value* s, Value* p) { return me().fma(mul(p, s), t, t); }

  /// atan(n / d) for n, d >= 0 (not both 0, not both infinite): 0, 45 or 90 degrees, the nearest, and the angle from
  /// there, whose tangent, a quotient, is within tan(22.5 degrees).
  Value* angle(Value* n, Value* d, llvm::function_ref<Value*(Value*, Value*)> quotient) {
    constexpr double kTan22 = 0.41421356237309503, kTan67 = 2.414213562373095;
    Value* steep = b().CreateFCmpOGT(n, mul(d, me().constant(kTan67)));
    Value* middle = b().CreateFCmpOGT(n, mul(d, me().constant(kTan22)));
    auto choose = [&](Value* ifSteep, Value* ifMiddle, Value* otherwise) {
      return b().CreateSelect(steep, ifSteep, b().CreateSelect(middle, ifMiddle, otherwise));
    };
    Value* t = quotient(choose(b().CreateFNeg(d), sub(n, d), n), choose(n, add(n, d), d));
    Value* eighths = choose(me().constant(2.0), one(), me().constant(0.0));  // of a turn
    Value* s = mul(t, t);
    Value* low = me().fma(eighths, me().constant(Self::kHalfPiLow / 2), withTail(t, s, me().atanTail(s)));
    return me().fma(eighths, me().constant(Self::kHalfPi / 2), low);
  }
};

}  // namespace tile::ir
