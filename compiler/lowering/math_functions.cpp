// math_functions.cpp - see math_functions.h. Coefficients are weighted minimax fits over the reduced range (error of
// the polynomial below 4e-9 relative, i.e. below 0.1 ulp of f32).
#include "compiler/lowering/math_functions.h"

#include <cmath>
#include <tuple>

#include "compiler/dialect/dialect.h"
#include "compiler/lowering/elementwise.h"
#include "compiler/lowering/error_functions.h"
#include "compiler/lowering/function_table.h"
#include "compiler/lowering/gamma_functions.h"
#include "compiler/lowering/math_functions_f64.h"
#include "compiler/lowering/shared_functions.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Intrinsics.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tile::ir {
namespace {
using llvm::Value;
using namespace mlir;

/// Short spellings over one builder and one operand shape.
class Math : public SharedFunctions<Math>, public ErrorFunctions<Math>, public GammaFunctions<Math> {
  using Value = llvm::Value;  // of all bases

 public:
  /// `slowUnderflow`: products that underflow take the machine a hundred times as long (CPUs do, GPUs do not).
  Math(llvm::IRBuilderBase& b, llvm::Type* like, bool slowUnderflow, const QuickParts* quick, const PowersOfTwo* powers)
      : b(b),
        slowUnderflow(slowUnderflow),
        quick(quick),
        powers(powers),
        f32(withElement(like, b.getFloatTy())),
        f64(withElement(like, b.getDoubleTy())),
        i32(withElement(like, b.getInt32Ty())) {}

  Value* exp2(Value* x) {
    if (powers) {
      Value* f = powers->remainder(b, x);
      return powers->scale(b, zeroWhere(x, -150.0, exp2OfFraction(f)), b.CreateFSub(x, f));
    }
    // Beyond these bounds the result is inf or 0 anyway; the selects (not min/max) let NaN through.
    x = clampKeepingNan(x, -151.0, 129.0);
    auto [n, whole] = roundToInt(x);
    return scaleByPowerOfTwo(zeroWhere(x, -150.0, exp2OfFraction(b.CreateFSub(x, whole))), n);
  }

  /// e^x 2^shift, also where only e^x would overflow.
  Value* exp(Value* x, int shift = 0) {
    x = clampKeepingNan(x, -105.0, 89.5);
    Value *times = b.CreateFMul(x, constant(1.44269504088896341)), *n = nullptr, *whole = nullptr;
    if (powers)
      whole = b.CreateFSub(times, powers->remainder(b, times));
    else
      std::tie(n, whole) = roundToInt(times);
    // ln 2 in two parts: the first has 12 significant bits, so whole * it is exact.
    Value* r = fma(whole, constant(-0.693359375), x);
    r = fma(whole, constant(2.12194440054690583e-4), r);
    Value* e = b.CreateFAdd(fma(expTail(r), b.CreateFMul(r, r), r), constant(1.0));
    e = zeroWhere(x, -104.0, e);
    if (powers) return powers->scale(b, e, shift ? b.CreateFAdd(whole, constant(shift)) : whole);
    return scaleByPowerOfTwo(e, shift ? b.CreateAdd(n, llvm::ConstantInt::getSigned(i32, shift)) : n);
  }

  /// log(x) as exponent * log_base(2) + log_base(mantissa).
  Value* log(Value* x, double base) {
    auto [e, f] = splitMantissa(x);
    return fixLog(x, logOfParts(e, f, base));
  }
  Value* logOfPositive(Value* x, bool mayBeTiny) {
    auto [e, f] = splitMantissa(x, mayBeTiny);
    return logOfParts(e, f, 0);
  }
  Value* logOfParts(Value* e, Value* f, double base) {
    Value* f2 = b.CreateFMul(f, f);
    Value* p = cubicTail(f);
    Value* tail = fma(b.CreateFMul(f, f2), p, b.CreateFMul(f2, constant(-0.5)));  // log1p(f) - f
    Value* y;
    if (base == 2.0) {
      // log2(e) = 1 + c: keeps the leading terms unrounded.
      Value* c = constant(1.44269504088896341 - 1.0);
      y = b.CreateFAdd(fma(tail, c, b.CreateFMul(f, c)), tail);
      y = b.CreateFAdd(b.CreateFAdd(y, f), e);
    } else {
      y = fma(e, constant(-2.12194440054690583e-4), tail);
      y = fma(e, constant(0.693359375), b.CreateFAdd(y, f));
      if (base == 10.0) y = b.CreateFMul(y, constant(0.434294481903251828));
    }
    return y;
  }

  /// log(1 + x) without the quotient that a rounded sum would need: 1 + x only says which power of two 2^e it is near
  /// to, and f = (1 + x) / 2^e - 1 = x / 2^e + (1 / 2^e - 1) loses nothing that matters.
  Value* log1p(Value* x, bool isNeverNegative = false) {
    auto i = [&](uint32_t v) { return llvm::ConstantInt::get(i32, v); };
    auto asFloat = [&](Value* bits) { return b.CreateBitCast(bits, f32); };
    Value* u = b.CreateFAdd(x, constant(1.0));
    // e in the place of the exponent's bits, so that differences of bits are quotients by 2^e; 4 / 2^e is never
    // subnormal.
    Value* e = b.CreateAnd(b.CreateSub(b.CreateBitCast(u, i32), i(kSqrtHalf)), i(0xff800000));
    Value* less = fma(asFloat(b.CreateSub(i(0x40800000), e)), constant(0.25), constant(-1.0));
    Value* f = b.CreateFAdd(asFloat(b.CreateSub(b.CreateBitCast(x, i32), e)), less);
    Value* y = fma(logTail(f), b.CreateFMul(f, f), f);
    Value* count = b.CreateSIToFP(e, f32);
    y = fma(count, constant(-2.12194440054690583e-4 * 0x1p-23), y);
    y = fma(count, constant(0.693359375 * 0x1p-23), y);
    if (isNeverNegative) return b.CreateSelect(b.CreateFCmpOLT(u, infinity()), y, u);
    return fixLog(u, copysign(y, x));  // of -0, too
  }

  /// e^x - 1 from 2^n (q + 1) - 1 with q = e^r - 1, in halves, where only 2^n would overflow.
  Value* expm1(Value* x) {
    x = clampKeepingNan(x, -18.0, 89.0);
    auto [n, whole] = roundToInt(b.CreateFMul(x, constant(1.44269504088896341)));
    Value* r = fma(whole, constant(-0.693359375), x);
    r = fma(whole, constant(2.12194440054690583e-4), r);
    Value* q = fma(expTail(r), b.CreateFMul(r, r), r);
    Value* half = powerOfTwo(b.CreateSub(n, llvm::ConstantInt::get(i32, 1)));
    Value* y = fma(q, half, b.CreateFSub(half, constant(0.5)));
    return copysign(b.CreateFAdd(y, y), x);
  }

  Value* tanh(Value* x) {
    Value* a = abs(x);
    Value* s = b.CreateFMul(x, x);
    Value* p = polynomial(s, {-3.333328393e-01, 1.333149128e-01, -5.374349792e-02, 2.065058678e-02, -5.717044511e-03});
    Value* small = fma(b.CreateFMul(p, s), a, a);
    Value* e = partExp(a, 2.0);
    Value* large = fma(reciprocal(b.CreateFAdd(e, constant(1.0))), constant(-2.0), constant(1.0));
    return copysign(b.CreateSelect(b.CreateFCmpOLT(a, constant(0.625)), small, large), x);
  }

  Value* erf(Value* x) {
    Value* a = abs(x);
    Value* s = b.CreateFMul(x, x);
    Value* p = polynomial(s, {1.283791668e-01, -3.761263531e-01, 1.128371972e-01, -2.686075283e-02, 5.204436077e-03,
                              -8.181927842e-04, 8.538841460e-05});
    Value* small = fma(p, x, x);
    // erfc(t) = exp(g(t)); beyond 4 the result is 1 to the last bit.
    Value* t = b.CreateSelect(b.CreateFCmpOGT(a, constant(4.0)), constant(4.0), a);
    Value* g = polynomial(t, {1.501305455e-04, -1.129379210e+00, -6.336693118e-01, -1.078504658e-01, 2.476839257e-02,
                              -3.991074101e-03, 3.779346298e-04, -1.115682943e-05, -7.486134985e-07});
    Value* large = copysign(b.CreateFSub(constant(1.0), partExp(g)), x);
    return b.CreateSelect(b.CreateFCmpOLT(a, constant(0.9)), small, large);
  }

  /// max(x, 0) - |x| normcdf(-|x|), whose logarithm is a polynomial: of error 2e-7 up to 1, 2e-6 up to 4, 3e-4 at kEnd,
  /// from where it stays as it is (1e-20). A third of the instructions of normcdf, whose error is small everywhere:
  /// products are followed by this function of a hundred elements of each thread.
  Value* gelu(Value* x) {
    constexpr double kEnd = 9.2;
    Value* t = clampKeepingNan(abs(x), 0.0, kEnd);
    Value* p = polynomial(t, {-9.999999251e-01, -1.151108063e+00, -4.591903949e-01, -5.252934534e-02, 7.069554198e-03,
                              -9.229086017e-05, -2.406270386e-04, 6.752467718e-05, -1.012695838e-05, 9.096195010e-07,
                              -4.585524480e-08, 9.973337147e-10});
    Value* share = quick ? quick->exp2(b, p) : exp2(p);
    Value* positive = b.CreateSelect(b.CreateFCmpOGT(x, constant(0.0)), x, constant(0.0));
    return fma(b.CreateFNeg(t), share, positive);
  }

  /// Up to 1, and 90 degrees less that of 1 / |x|.
  Value* atan(Value* x) {
    Value *a = abs(x), *steep = b.CreateFCmpOGT(a, constant(1.0));
    Value* t = b.CreateSelect(steep, reciprocal(a), a);
    Value* s = b.CreateFMul(t, t);
    Value* p = polynomial(s, {-3.333329384e-01, 1.999839051e-01, -1.426257646e-01, 1.094356609e-01, -8.378559850e-02,
                              5.753647152e-02, -3.076297981e-02, 1.069426308e-02, -1.744857574e-03});
    Value* y = fma(b.CreateFMul(p, s), t, t);
    return copysign(b.CreateSelect(steep, rightAnglesLess(1, y), y), x);
  }

  Value* cbrt(Value* x) {
    Value *a = abs(x), *y = nullptr;
    if (quick) {  // within 2^-18 of the root
      y = cubeRootFrom(a, quick->exp2(b, b.CreateFMul(quick->log2(b, a), constant(-1.0 / 3))));
    } else {
      Value* tiny = b.CreateFCmpOLT(a, constant(0x1p-126));
      a = b.CreateFMul(a, b.CreateSelect(tiny, constant(0x1p24), constant(1.0)));
      y = cubeRootFrom(a, roughInverseCubeRoot(a));
      y = b.CreateFMul(y, b.CreateSelect(tiny, constant(0x1p-8), constant(1.0)));
    }
    Value* self = b.CreateOr(b.CreateFCmpOEQ(x, constant(0.0)), b.CreateFCmpUEQ(a, infinity()));
    return b.CreateSelect(self, x, copysign(y, x));
  }

  enum class Trig { sin, cos, tan };
  /// The nearest multiple of pi/2 and what remains, in f64: pi/2 in two parts of 53 bits each. Adding 1.5 * 2^52 rounds
  /// to an integer, whose lowest bits are then the lowest of the sum (below 2^51; far above, the remainder has no right
  /// digit anyway).
  std::pair<Value*, Value*> quadrant(Value* x) {
    constexpr double kRound = 0x1.8p52;
    Value* wide = b.CreateFPExt(x, f64);
    Value* sum = fma(wide, llvm::ConstantFP::get(f64, M_2_PI), llvm::ConstantFP::get(f64, kRound));
    Value* j = b.CreateFSub(sum, llvm::ConstantFP::get(f64, kRound));
    Value* r64 = fma(j, llvm::ConstantFP::get(f64, -1.5707963267948966192), wide);
    r64 = fma(j, llvm::ConstantFP::get(f64, -6.123233995736766036e-17), r64);
    Value* q = b.CreateTrunc(b.CreateBitCast(sum, withElement(f64, b.getInt64Ty())), i32);
    return {q, b.CreateFPTrunc(r64, f32)};
  }
  /// So of small arguments, in f32, with pi/2 in three parts. Behind the first fma nothing is large, and little
  /// rounded.
  std::pair<Value*, Value*> nearQuadrant(Value* x) {
    constexpr double kRound = 0x1.8p23;
    Value* sum = fma(x, constant(M_2_PI), constant(kRound));
    Value* j = b.CreateFSub(sum, constant(kRound));
    Value* r = fma(j, constant(-0x1.921fb0p+00), x);
    r = fma(j, constant(-0x1.5110b4p-22), r);
    r = fma(j, constant(-0x1.846988p-48), r);
    return {b.CreateBitCast(sum, i32), r};
  }
  /// Of |x| up to kNearAngle where `isNear`.
  Value* trig(Value* x, Trig which, bool isNear = false) {
    auto [q, r] = isNear ? nearQuadrant(x) : quadrant(x);
    Value* s = b.CreateFMul(r, r);
    Value* sinR = fma(b.CreateFMul(polynomial(s, {-1.666665494e-01, 8.332177960e-03, -1.951727297e-04}), s), r, r);
    Value* cosR = fma(polynomial(s, {4.166664686e-02, -1.388736727e-03, 2.443842235e-05}), b.CreateFMul(s, s),
                      fma(s, constant(-0.5), constant(1.0)));
    auto bits = [&](int64_t v) { return llvm::ConstantInt::get(i32, static_cast<uint64_t>(v)); };
    Value* odd = b.CreateICmpNE(b.CreateAnd(q, bits(1)), bits(0));
    if (which == Trig::tan) {
      Value* n = b.CreateSelect(odd, b.CreateFNeg(cosR), sinR);
      return quotient(n, b.CreateSelect(odd, sinR, cosR));
    }
    bool wantSin = which == Trig::sin;
    Value* v = b.CreateSelect(odd, wantSin ? cosR : sinR, wantSin ? sinR : cosR);
    // The sign changes behind two quadrants; the cosine's one quadrant sooner.
    Value* behind = b.CreateAnd(wantSin ? q : b.CreateAdd(q, bits(1)), bits(2));
    return b.CreateBitCast(b.CreateXor(b.CreateBitCast(v, i32), b.CreateShl(behind, bits(30))), f32);
  }

  /// log2 of a positive number as the sum of two floats.
  std::pair<Value*, Value*> log2InParts(Value* a) {
    auto [e, f] = splitMantissa(a);
    // s + low = (m - 1) / (m + 1), m = 1 + f: the quotient and what it leaves of the dividend; m + 1 = d + lost.
    Value* d = b.CreateFAdd(f, constant(2.0));
    Value* lost = b.CreateFSub(f, b.CreateFSub(d, constant(2.0)));
    Value* r = reciprocal(d);
    Value* s = b.CreateFMul(f, r);
    Value* minus = b.CreateFNeg(s);
    Value* low = b.CreateFMul(fma(minus, lost, fma(minus, d, f)), r);
    Value* near = b.CreateFAdd(s, low);  // the nearest float: the terms behind the first are computed from it alone
    low = b.CreateFSub(low, b.CreateFSub(near, s));
    s = near;
    // log2 m = 2 / ln 2 (s + s^3 / 3 + ..); only the first term needs more than a float.
    constexpr double kTwoOverLn2 = 2.8853900817779268;
    const double high = static_cast<float>(kTwoOverLn2);
    Value* s2 = b.CreateFMul(s, s);
    Value* rest = b.CreateFMul(
        polynomial(s2, {9.617966941e-01, 5.770779422e-01, 4.122092656e-01, 3.199052043e-01, 2.829066005e-01}), s2);
    Value* p = b.CreateFMul(s, constant(high));
    Value* pLow = fma(s, constant(high), b.CreateFNeg(p));
    pLow = fma(low, constant(high), pLow);
    pLow = fma(s, constant(kTwoOverLn2 - high), pLow);
    pLow = fma(rest, s, pLow);
    Value* sum = b.CreateFAdd(e, p);  // e is 0 or larger than p
    Value* sumLow = b.CreateFAdd(b.CreateFSub(p, b.CreateFSub(sum, e)), pLow);
    Value* log = b.CreateFAdd(sum, sumLow);
    return {log, b.CreateFSub(sumLow, b.CreateFSub(log, sum))};
  }

  /// exp2(y * log2 |x|) with the logarithm and the product as sums of two floats (machines without many f64 units need
  /// no f64), then C's special cases.
  Value* pow(Value* x, Value* y) {
    if (auto* c = llvm::dyn_cast<llvm::ConstantFP>(x); c && quick)
      if (const double base = c->getValueAPF().convertToFloat(); base > 0 && base != 1 && std::isfinite(base))
        return powOfConstant(base, y);
    auto [log, logLow] = log2InParts(abs(x));
    Value* t = b.CreateFMul(y, log);
    Value* tLow = fma(y, logLow, fma(y, log, b.CreateFNeg(t)));
    Value* isFar = b.CreateFCmpOGT(abs(t), constant(200.0));
    tLow = b.CreateSelect(isFar, constant(0.0), tLow);
    t = clampKeepingNan(t, -200.0, 200.0);
    // 2^fraction near 1, times 2^whole.
    Value *whole = nullptr, *n = nullptr;
    if (powers)
      whole = b.CreateFSub(t, powers->remainder(b, t));
    else
      std::tie(n, whole) = roundToInt(t);
    Value* f = b.CreateFAdd(b.CreateFSub(t, whole), tLow);
    Value* e = zeroWhere(t, -150.0, quick ? quick->exp2(b, f) : exp2OfFraction(f));
    Value* power = powers ? powers->scale(b, e, whole) : scaleByPowerOfTwo(e, n);
    // |x| zero or infinite: the logarithm above is finite there.
    return powAsInC(b, x, y, power);
  }
  /// base^y = 2^(n + f) for a positive number other than 1, n whole: 2^n is normal, and f takes what is beyond.
  Value* powOfConstant(double base, Value* y) {
    // The first part is cut off, so that both have one sign: their products with infinities do, too.
    const double log = std::log2(base);
    float first = static_cast<float>(log);
    if (std::fabs(first) > std::fabs(log)) first = std::nextafter(first, 0.0f);
    auto limited = [&](Value* v, llvm::Intrinsic::ID id, double bound) {
      return b.CreateBinaryIntrinsic(id, v, constant(bound));
    };
    Value* t = b.CreateFMul(y, constant(first));
    t = limited(limited(t, llvm::Intrinsic::maxnum, -126), llvm::Intrinsic::minnum, 127);  // f of NaN is NaN
    constexpr double kRoundWithBias = 0x1.8p23 + 127;  // rounds to an integer, its exponent's bits in the lowest place
    Value* sum = b.CreateFAdd(t, constant(kRoundWithBias));
    Value* power = b.CreateBitCast(b.CreateShl(b.CreateBitCast(sum, i32), 23), f32);
    Value* f = fma(y, constant(first), b.CreateFNeg(b.CreateFSub(sum, constant(kRoundWithBias))));
    if (log != first) f = fma(y, constant(log - first), f);
    return b.CreateFMul(quick->exp2(b, f), power);
  }

 private:
  friend class SharedFunctions<Math>;
  friend class ErrorFunctions<Math>;
  friend class GammaFunctions<Math>;
  llvm::IRBuilderBase& b;
  bool slowUnderflow;
  const QuickParts* quick;
  const PowersOfTwo* powers;
  llvm::Type *f32, *f64, *i32;
  // What SharedFunctions asks for.
  static constexpr double kFar = 1e9, kHuge = 0x1p126;
  static constexpr double kHalfPi = static_cast<float>(M_PI_2), kHalfPiLow = M_PI_2 - kHalfPi;
  Value* sinhTail(Value* s) {
    return polynomial(s, {1.666666650e-01, 8.333350058e-03, 1.983615978e-04, 2.816951226e-06});
  }
  Value* asinTail(Value* s) {
    return polynomial(s, {1.666675248e-01, 7.495297643e-02, 4.547037594e-02, 2.417951479e-02, 4.216630828e-02});
  }
  Value* atanTail(Value* s) {
    return polynomial(s, {-3.333331519e-01, 1.999847152e-01, -1.424353335e-01, 1.059381375e-01, -6.078221450e-02});
  }

  llvm::Constant* constant(double v) { return llvm::ConstantFP::get(f32, v); }
  llvm::Constant* infinity() { return llvm::ConstantFP::getInfinity(f32); }
  Value* fma(Value* x, Value* y, Value* z) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
  }
  Value* abs(Value* x) {
    auto* known = llvm::dyn_cast<llvm::ConstantFP>(x);  // its functions are constants, too
    if (known) return llvm::ConstantFP::get(x->getType(), llvm::abs(known->getValue()));
    return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  }
  Value* copysign(Value* x, Value* sign) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign); }

  // Parts, the machine's quick ones if it has any.
  Value* partExp(Value* x, double times = 1.0) {  // e^(x times)
    if (quick) return quick->exp2(b, b.CreateFMul(x, constant(times * 1.44269504088896341)));
    return exp(times == 1.0 ? x : b.CreateFMul(x, constant(times)));
  }
  /// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
  Value* expTail(Value* r) {
    return polynomial(r, {5.000000095e-01, 1.666651885e-01, 4.166620585e-02, 8.368887678e-03, 1.395048810e-03});
  }
  /// (log(1 + f) - f) / f^2 for 1 + f in [sqrt(1/2), sqrt(2)); cubicTail: (log(1 + f) - f + f^2 / 2) / f^3.
  Value* logTail(Value* f) { return fma(cubicTail(f), f, constant(-0.5)); }
  Value* cubicTail(Value* f) {
    return polynomial(f, {3.333331260e-01, -2.500000960e-01, 2.000211866e-01, -1.666799584e-01, 1.421955228e-01,
                          -1.240558906e-01, 1.188816297e-01, -1.167565122e-01, 6.746638268e-02});
  }
  static constexpr double kErfcEnd = 10.1, kErfcMiddle = 3;
  Value* erfcTail(Value* t) {
    return polynomial(
        t, {1.253008058e+00, -1.356211434e-01, -4.756228054e-02, 1.296465756e-01, -1.192726527e-01, 6.829350976e-02,
            -2.379023418e-02, 2.579434685e-03, 1.994474591e-03, -7.983391415e-04, -2.773269222e-04});
  }
  Value* erfinvOver(Value* w, bool isFar) {
    Value* near = polynomial(b.CreateFSub(w, constant(2.5)),
                             {1.501409360e+00, 2.466402791e-01, -4.177392875e-03, -1.252726392e-03, 2.183493862e-04,
                              -4.972419689e-06, -3.463985268e-06, 4.681313481e-07, 2.333596720e-08, -8.931925970e-09});
    Value* middle = polynomial(
        b.CreateFSub(w, constant(11.0)),
        {3.150883562e+00, 1.516492207e-01, -3.340157251e-03, 1.410372759e-04, -6.858903556e-06, 2.965108334e-07,
         -5.550562175e-09, -8.056502465e-10, 2.063977088e-10, -3.057103570e-11, 1.781491798e-12});
    Value* y = b.CreateSelect(b.CreateFCmpOLT(w, constant(5.0)), near, middle);
    if (!isFar) return y;
    Value *root = sqrt(w), *inverse = reciprocal(root);
    if (quick)  // a step of Newton's: the result has the root's error
      root = fma(fma(b.CreateFNeg(root), root, w), b.CreateFMul(inverse, constant(0.5)), root);
    Value* far = polynomial(b.CreateFSub(inverse, constant(1.737804878e-01)),
                            {9.752408319e-01, -1.990293270e-01, -8.242299651e-02, 9.015467419e-01, -1.525799895e+00,
                             2.913497381e+00, -9.816479180e+00, 3.969537931e+01});
    return b.CreateSelect(b.CreateFCmpOGT(root, constant(4.1)), b.CreateFMul(root, far), y);
  }
  Value* timesPowerOfTwo(Value* x, Value* n) {
    return powers ? powers->scale(b, x, n) : scaleByPowerOfTwo(x, roundToInt(n).first);
  }
  // What GammaFunctions asks for.
  static constexpr double kLog2e = static_cast<float>(M_LOG2E), kLog2eLow = M_LOG2E - kLog2e, kGammaEnd = 45;
  Value* gammaMiddle(Value* t) {
    return polynomial(t, {4.227843356e-01, -1.003173019e-01, 3.296494950e-02, -1.238416795e-02, 4.999449512e-03,
                          -2.108514189e-03, 9.106399604e-04, -4.034611980e-04, 1.955396062e-04, -8.925200875e-05,
                          2.048189497e-05, -9.279912816e-06, 1.923082368e-05, -9.059812985e-06});
  }
  Value* gammaTail(Value* v) {
    return polynomial(v, {8.333333267e-02, -2.777586225e-03, 7.847184127e-04, -4.544283180e-04});
  }
  Value* halfTurn(Value* v) {
    return polynomial(v, {1.0, -1.644934062e+00, 8.117421955e-01, -1.907478953e-01, 2.611743763e-02, -2.237178600e-03});
  }
  Value* log1pOfPositive(Value* x) { return log1p(x, /*isNeverNegative=*/true); }
  Value* exp2OfParts(Value* f, Value* low) { return exp2(b.CreateFAdd(f, low)); }
  Value* halfExp(Value* x) {  // e^x / 2
    return quick ? quick->exp2(b, fma(x, constant(1.44269504088896341), constant(-1.0))) : exp(x, -1);
  }
  Value* sqrt(Value* x) { return quick ? quick->sqrt(b, x) : b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
  Value* reciprocal(Value* x) {
    const bool isQuick = quick && !llvm::isa<llvm::Constant>(x);  // of constants LLVM computes
    return isQuick ? quick->reciprocal(b, x) : b.CreateFDiv(constant(1.0), x);
  }
  Value* quotient(Value* x, Value* y) { return quick ? quick->quotient(b, x, y) : b.CreateFDiv(x, y); }
  Value* notHuge(Value* x) { return x; }
  Value* innerReciprocal(Value* x) { return reciprocal(x); }
  Value* innerQuotient(Value* x, Value* y) { return quotient(x, y); }
  /// c0 + c1 x + c2 x^2 ... by Horner's rule.
  Value* polynomial(Value* x, std::initializer_list<double> c) {
    auto it = std::rbegin(c);
    Value* p = constant(*it);
    for (++it; it != std::rend(c); ++it) p = fma(p, x, constant(*it));
    return p;
  }
  Value* clampKeepingNan(Value* x, double lo, double hi) {
    x = b.CreateSelect(b.CreateFCmpOLT(x, constant(lo)), constant(lo), x);
    return b.CreateSelect(b.CreateFCmpOGT(x, constant(hi)), constant(hi), x);
  }
  /// Nearest integer of a small x, as i32 and as float: adding 1.5 * 2^23 leaves it in the low mantissa bits.
  std::pair<Value*, Value*> roundToInt(Value* x) {
    constexpr double kMagic = 12582912.0;
    Value* t = b.CreateFAdd(x, constant(kMagic));
    Value* n = b.CreateSub(b.CreateBitCast(t, i32), llvm::ConstantInt::get(i32, 0x4b400000));
    return {n, b.CreateFSub(t, constant(kMagic))};
  }
  /// 0 instead of `value` up to a bound below which value * 2^n is 0 anyway: masked scores, e^-inf, are common, and the
  /// product that underflows there would be slow.
  Value* zeroWhere(Value* x, double bound, Value* value) {
    return slowUnderflow ? b.CreateSelect(b.CreateFCmpOLE(x, constant(bound)), constant(0.0), value) : value;
  }
  Value* powerOfTwo(Value* n) {  // n in [-126, 127]
    return b.CreateBitCast(b.CreateShl(b.CreateAdd(n, llvm::ConstantInt::get(i32, 127)), 23), f32);
  }
  /// x * 2^n in two exact steps, so that results may be subnormal or infinite.
  Value* scaleByPowerOfTwo(Value* x, Value* n) {
    Value* half = b.CreateAShr(n, 1);
    return b.CreateFMul(b.CreateFMul(x, powerOfTwo(half)), powerOfTwo(b.CreateSub(n, half)));
  }
  /// 2^f, |f| <= 1/2, or a little more.
  Value* exp2OfFraction(Value* f) {
    Value* p = polynomial(
        f, {6.931472062e-01, 2.402265135e-01, 5.550327791e-02, 9.618003890e-03, 1.340026973e-03, 1.547630005e-04});
    return fma(p, f, constant(1.0));
  }

  static constexpr uint32_t kSqrtHalf = 0x3f3504f3;
  /// x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for positive finite x; subnormals are scaled up first.
  std::pair<Value*, Value*> splitMantissa(Value* x, bool mayBeTiny = true) {
    Value* tiny = mayBeTiny ? b.CreateFCmpOLT(x, constant(0x1p-126)) : nullptr;
    if (tiny) x = b.CreateSelect(tiny, b.CreateFMul(x, constant(0x1p23)), x);
    auto i = [&](uint32_t v) { return llvm::ConstantInt::get(i32, v); };
    Value* bits = b.CreateSub(b.CreateBitCast(x, i32), i(kSqrtHalf));
    Value* e = b.CreateSIToFP(b.CreateAShr(bits, 23), f32);
    if (tiny) e = b.CreateFSub(e, b.CreateSelect(tiny, constant(23.0), constant(0.0)));
    Value* m = b.CreateBitCast(b.CreateAdd(b.CreateAnd(bits, i(0x7fffff)), i(kSqrtHalf)), f32);
    return {e, b.CreateFSub(m, constant(1.0))};
  }
  Value* fixLog(Value* x, Value* y) {
    y = b.CreateSelect(b.CreateFCmpOEQ(x, infinity()), x, y);
    y = b.CreateSelect(b.CreateFCmpOEQ(x, constant(0.0)), llvm::ConstantFP::getInfinity(f32, /*Negative=*/true), y);
    return b.CreateSelect(b.CreateFCmpULT(x, constant(0.0)), llvm::ConstantFP::getNaN(f32), y);
  }
};

/// Or NaN; and not -0.
bool isNeverNegative(mlir::Value x) {
  return isa_and_nonnull<math::ExpOp, math::Exp2Op, math::AbsFOp>(x.getDefiningOp());
}

Value* emitF32(llvm::IRBuilderBase& b, Operation* op, llvm::ArrayRef<Value*> a, bool slowUnderflow,
               const QuickParts* quick, const PowersOfTwo* powers, const RoughReciprocals* rough) {
  // Error-free tricks above rely on the written order; contraction happens through explicit fma.
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  b.setFastMathFlags({});
  Math m(b, a[0]->getType(), slowUnderflow, quick, powers);
  return llvm::TypeSwitch<Operation*, Value*>(op)
      .Case<math::Log1pOp>([&](auto) { return m.log1p(a[0], isNeverNegative(op->getOperand(0))); })
      .Case<math::SinOp>([&](auto) { return m.trig(a[0], Math::Trig::sin, op->hasAttr(kNear)); })
      .Case<math::CosOp>([&](auto) { return m.trig(a[0], Math::Trig::cos, op->hasAttr(kNear)); })
      .Case<math::TanOp>([&](auto) { return m.trig(a[0], Math::Trig::tan, op->hasAttr(kNear)); })
      // Differences near their zeros, and the angle of a large argument, want f64.
      .Case<J0Op, J1Op, Y0Op, Y1Op>([&](Operation* bessel) {
        Value* wide = b.CreateFPExt(a[0], withElement(a[0]->getType(), b.getDoubleTy()));
        return b.CreateFPTrunc(emitF64(b, bessel, {wide}, rough), a[0]->getType());
      })
      .Default([&](Operation*) { return emitFunction(m, op, a); });
}

llvm::Intrinsic::ID libmIntrinsic(Operation* op) {
  using ID = llvm::Intrinsic::ID;
  return llvm::TypeSwitch<Operation*, ID>(op)
      .Case<math::Exp2Op>([](auto) { return llvm::Intrinsic::exp2; })
      .Case<math::ExpOp>([](auto) { return llvm::Intrinsic::exp; })
      .Case<math::LogOp>([](auto) { return llvm::Intrinsic::log; })
      .Case<math::Log2Op>([](auto) { return llvm::Intrinsic::log2; })
      .Case<math::Log10Op>([](auto) { return llvm::Intrinsic::log10; })
      .Case<math::SinOp>([](auto) { return llvm::Intrinsic::sin; })
      .Case<math::CosOp>([](auto) { return llvm::Intrinsic::cos; })
      .Case<math::TanOp>([](auto) { return llvm::Intrinsic::tan; })
      .Case<math::AsinOp>([](auto) { return llvm::Intrinsic::asin; })
      .Case<math::AcosOp>([](auto) { return llvm::Intrinsic::acos; })
      .Case<math::AtanOp>([](auto) { return llvm::Intrinsic::atan; })
      .Case<math::Atan2Op>([](auto) { return llvm::Intrinsic::atan2; })
      .Case<math::SinhOp>([](auto) { return llvm::Intrinsic::sinh; })
      .Case<math::CoshOp>([](auto) { return llvm::Intrinsic::cosh; })
      .Case<math::TanhOp>([](auto) { return llvm::Intrinsic::tanh; })
      .Case<math::PowFOp>([](auto) { return llvm::Intrinsic::pow; })
      .Default([](Operation*) { return llvm::Intrinsic::not_intrinsic; });
}

/// libm functions that LLVM has no intrinsic for, called once per lane.
Value* callPerLane(llvm::IRBuilderBase& b, llvm::StringRef name, Value* x) {
  llvm::Type* element = x->getType()->getScalarType();
  auto callee = b.GetInsertBlock()->getModule()->getOrInsertFunction(
      element->isFloatTy() ? (name + "f").str() : name.str(), element, element);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!vector) return b.CreateCall(callee, {x});
  Value* r = llvm::PoisonValue::get(vector);
  for (unsigned i = 0; i < vector->getNumElements(); ++i)
    r = b.CreateInsertElement(r, b.CreateCall(callee, {b.CreateExtractElement(x, i)}), i);
  return r;
}

}  // namespace

Value* emitTranscendental(llvm::IRBuilderBase& b, Operation* op, llvm::ArrayRef<Value*> args, bool hasLibm,
                          const QuickParts* quick, const PowersOfTwo* powers, const RoughReciprocals* rough) {
  if (args[0]->getType()->getScalarType()->isFloatTy())
    if (Value* v = emitF32(b, op, args, /*slowUnderflow=*/hasLibm, quick, powers, rough)) return v;  // a CPU has both
  // Functions that the math dialect lacks are ours everywhere: not every C library has them, and its lgamma writes a
  // global variable.
  if (!hasLibm || op->hasTrait<IsFloatFunction>())
    return args[0]->getType()->getScalarType()->isDoubleTy() ? emitF64(b, op, args, rough) : nullptr;
  if (auto id = libmIntrinsic(op); id != llvm::Intrinsic::not_intrinsic)
    return args.size() == 2 ? b.CreateBinaryIntrinsic(id, args[0], args[1]) : b.CreateUnaryIntrinsic(id, args[0]);
  if (isa<math::ErfOp, math::ErfcOp, math::ExpM1Op, math::Log1pOp, math::CbrtOp, math::AsinhOp, math::AcoshOp,
          math::AtanhOp>(op))
    return callPerLane(b, op->getName().stripDialect(), args[0]);
  return nullptr;
}

}  // namespace tile::ir
