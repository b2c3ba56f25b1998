// gamma_functions.h - the logarithm of |Gamma| and Gamma itself, by the same steps in f32 and f64.
#pragma once
#include <cmath>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir {

/// Both know log Gamma in two pieces, of a = |x|:
///   below 3    log Gamma(t + 2) = (t + 1) t R(t) for t in [-1, 1], exact at its zeros 1 and 2; arguments within
///              (-1, 1) are brought there by Gamma(x) = Gamma(x + 1) / x
///   above      Stirling's (a - 1/2) log a - a + log(2 pi) / 2 + u P(u^2), u = 1 / a
/// and reach arguments up to -1 through Gamma(-a) Gamma(a) = -pi / (a sin(pi a)).
///
/// Self has a builder `b`; constant, fma, abs, polynomial, log(x, base; 0: e), reciprocal, clampKeepingNan;
/// gammaMiddle(t) = R, gammaTail(u^2) = P and halfTurn(r^2) = sin(pi r) / (pi r) for |r| <= 1/2; and for Gamma
/// log2InParts, exp2OfParts(f, low) for small f, timesPowerOfTwo, kLog2e and kLog2eLow, what the first lacks, and
/// kGammaEnd, from where on Gamma is infinite and its inverse 0 even beside a pole.
template <class Self>
class GammaFunctions {
 protected:
  using Value = llvm::Value;

 public:
  /// Zeros between -2 and -10 have no digits to spare: the error there is one of log Gamma's parts.
  Value* lgamma(Value* x) {
    const Argument of(*this, x);
    Value *a = of.size, *one = constant(1.0);
    Value* stirling = me().fma(sub(a, constant(0.5)), sub(me().log(a, 0), one),
                               add(stirlingTail(a), constant(0.41893853320467274178)));
    Value* core = b().CreateSelect(of.isSmall, of.middle, stirling);
    Value* r = fromNearest(a);
    Value* beside = b().CreateSelect(of.isMirrored, mul(mul(a, me().abs(r)), halfTurnOf(r)), one);
    beside = b().CreateSelect(of.isWithin1, me().abs(of.divisor), beside);
    Value* y = b().CreateSelect(of.isMirrored, b().CreateFNeg(core), core);
    y = sub(y, me().log(beside, 0));
    Value* pole = b().CreateAnd(of.isMirrored, b().CreateFCmpOEQ(r, constant(0.0)));
    Value* infinity = me().infinity();
    return b().CreateSelect(b().CreateOr(pole, b().CreateFCmpOEQ(a, infinity)), infinity, y);
  }

  /// 2^(n + f + low), the exponent's parts kept apart up to the end.
  Value* tgamma(Value* x) {
    const Argument of(*this, x);
    Value *one = constant(1.0), *zero = constant(0.0);
    Value *log2e = constant(Self::kLog2e), *low2e = constant(Self::kLog2eLow);
    Value* a = me().clampKeepingNan(of.size, 0.0, Self::kGammaEnd);
    auto [log, logLow] = me().log2InParts(a);
    Value* h = sub(a, constant(0.5));
    Value *p = mul(h, log), *pLow = me().fma(h, logLow, me().fma(h, log, b().CreateFNeg(p)));
    Value *m = mul(a, log2e), *mLow = me().fma(a, low2e, me().fma(a, log2e, b().CreateFNeg(m)));
    Value* e = sub(p, m);
    Value* taken = sub(p, e);  // of p - m: e and what it lost, whichever was larger
    Value* lost = add(sub(p, add(e, taken)), sub(taken, m));
    Value* low = add(me().fma(stirlingTail(a), log2e, sub(pLow, mLow)), lost);
    // log2 sqrt(2 pi), the head with few bits.
    constexpr double kHead = 1.3125, kRest = 0.013248064736159399;
    low = add(low, constant(kRest));
    Value* middle = mul(of.middle, log2e);
    Value* middleLow = me().fma(of.middle, low2e, me().fma(of.middle, log2e, b().CreateFNeg(middle)));
    e = b().CreateSelect(of.isSmall, middle, e);
    low = b().CreateSelect(of.isSmall, middleLow, low);
    Value* head = b().CreateSelect(of.isSmall, zero, constant(kHead));
    Value* n = nearest(add(e, head));
    Value* y = me().exp2OfParts(add(sub(e, n), head), low);

    Value *r = fromNearest(of.size), *half = mul(nearest(of.size), constant(0.5));
    Value* isOdd = b().CreateFCmpONE(b().CreateUnaryIntrinsic(llvm::Intrinsic::trunc, half), half);
    Value* beside = mul(mul(of.size, b().CreateSelect(isOdd, b().CreateFNeg(r), r)), halfTurnOf(r));
    Value* above = b().CreateSelect(of.isMirrored, constant(-1.0), y);
    Value* below = b().CreateSelect(of.isMirrored, mul(beside, y), b().CreateSelect(of.isWithin1, of.divisor, one));
    y = me().timesPowerOfTwo(b().CreateFDiv(above, below), b().CreateSelect(of.isMirrored, b().CreateFNeg(n), n));
    Value* none = b().CreateAnd(of.isMirrored, b().CreateFCmpUEQ(r, zero));  // r of an infinity is NaN
    return b().CreateSelect(none, llvm::ConstantFP::getNaN(x->getType()), y);
  }

 private:
  struct Argument {
    Value *size, *isSmall, *isWithin1, *isMirrored;
    Value* divisor;  ///< Gamma(x) is Gamma(t + 2) over this within (-1, 1)
    Value* middle;   ///< log Gamma(t + 2), where `isSmall`
    Argument(GammaFunctions& f, Value* x) {
      llvm::IRBuilderBase& b = f.b();
      Value *one = f.constant(1.0), *two = f.constant(2.0);
      size = f.me().abs(x);
      isSmall = b.CreateFCmpOLT(size, f.constant(3.0));
      isWithin1 = b.CreateFCmpOLT(size, one);
      isMirrored = b.CreateFCmpOLE(x, f.constant(-1.0));
      Value* negative = b.CreateFCmpOLT(x, f.constant(0.0));
      divisor = b.CreateSelect(negative, f.me().fma(x, x, x), x);
      Value* t = b.CreateSelect(isWithin1, b.CreateSelect(negative, x, f.sub(x, one)), f.sub(size, two));
      middle = f.mul(f.mul(f.add(t, one), t), f.me().gammaMiddle(t));
    }
  };

  Self& me() { return static_cast<Self&>(*this); }
  llvm::IRBuilderBase& b() { return me().b; }
  llvm::Constant* constant(double v) { return me().constant(v); }
  Value* add(Value* x, Value* y) { return b().CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) { return b().CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) { return b().CreateFMul(x, y); }
  Value* nearest(Value* x) { return b().CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x); }
  Value* fromNearest(Value* x) { return sub(x, nearest(x)); }
  Value* halfTurnOf(Value* r) { return me().halfTurn(mul(r, r)); }
  Value* stirlingTail(Value* a) {
    Value* u = me().reciprocal(a);
    return mul(u, me().gammaTail(mul(u, u)));
  }
};

}  // namespace tile::ir
