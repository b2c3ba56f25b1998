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
  /// The sine of r half turns, |r| <= 1/2. Within 2 ulp, 1 at 1/2: pi r and a minimax polynomial of its rest, which
  /// needs no reduction as a sine's argument does. Of pi as the sum of two numbers the second leads the polynomial.
  mlir::Value sineOfHalfTurns(mlir::Value r) {
    mlir::Value s = mul(r, r), p;
    auto polynomial = [&](std::initializer_list<double> c) {  // the highest power first
      for (double v : c) p = p ? fma(p, s, constant(v)) : constant(v);
    };
    if (isDouble())
      polynomial({-0x1.f17a107b27823p-26, 0x1.aef0f4c9fbbfap-21, -0x1.6fbddd29885b6p-16, 0x1.e8f47a9f55705p-12,
                  -0x1.e307508fbd3a3p-8, 0x1.50783488f9be5p-4, -0x1.32d2cce62da41p-1, 0x1.466bc6775ab14p+1,
                  -0x1.4abbce625be53p+2, 0x1.1a62633145c07p-53});
    else
      polynomial({-0.0070282131396118015, 0.08205069186232271, -0.5992523988721069, 2.550163359064923,
                  -5.167712767487076, -8.742277657347586e-08});
    return fma(r, constant(isDouble() ? M_PI : 3.1415927410125732), mul(r, p));
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

/// The same for integers, and the words behind floats.
class Words {
 public:
  Words(OpBuilder& b, Location loc, Type like) : b_(b), loc_(loc), type_(like) {
    element_ = b.getIntegerType(getElementTypeOrSelf(like).getIntOrFloatBitWidth());
    if (auto tile = dyn_cast<RankedTensorType>(like))
      type_ = RankedTensorType::get(tile.getShape(), element_);
    else
      type_ = element_;
  }
  int count() const { return static_cast<int>(element_.getWidth()); }
  mlir::Value of(mlir::Value x) { return arith::BitcastOp::create(b_, loc_, type_, x); }
  mlir::Value as(Type type, mlir::Value x) { return arith::BitcastOp::create(b_, loc_, type, x); }
  /// The upper 32 bits of f64, all of f32: as words, of a number, and as a number whose lower bits are 0.
  Words upper() const { return Words(b_, loc_, withElement(b_.getI32Type())); }
  mlir::Value upperOf(mlir::Value x) {
    if (count() == 32) return of(x);
    return arith::TruncIOp::create(b_, loc_, withElement(b_.getI32Type()), make<arith::ShRUIOp>(of(x), constant(32)));
  }
  mlir::Value asUpper(Type type, mlir::Value word) {
    if (count() == 32) return as(type, word);
    return as(type, make<arith::ShLIOp>(arith::ExtUIOp::create(b_, loc_, type_, word), constant(32)));
  }
  mlir::Value constant(const APInt& v) {
    TypedAttr one = b_.getIntegerAttr(element_, v);
    if (auto tile = dyn_cast<RankedTensorType>(type_)) one = SplatElementsAttr::get(tile, ArrayRef<Attribute>(one));
    return arith::ConstantOp::create(b_, loc_, one);
  }
  mlir::Value constant(int64_t v) { return constant(APInt(element_.getWidth(), v, true, true)); }
  template <class Op>
  mlir::Value make(mlir::Value x, mlir::Value y) {
    return Op::create(b_, loc_, x, y);
  }
  mlir::Value compare(arith::CmpIPredicate p, mlir::Value x, mlir::Value y) {
    return arith::CmpIOp::create(b_, loc_, p, x, y);
  }
  mlir::Value choose(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return arith::SelectOp::create(b_, loc_, condition, x, y);
  }

 private:
  Type withElement(Type element) const {
    auto tile = dyn_cast<RankedTensorType>(type_);
    return tile ? Type(RankedTensorType::get(tile.getShape(), element)) : element;
  }
  OpBuilder& b_;
  Location loc_;
  Type type_;
  IntegerType element_;
};

mlir::Value rotate(OpBuilder& b, Location loc, mlir::Value x, mlir::Value count, bool left) {
  Words w(b, loc, x.getType());
  mlir::Value last = w.constant(w.count() - 1);
  mlir::Value there = w.make<arith::AndIOp>(count, last);
  mlir::Value back = w.make<arith::AndIOp>(w.make<arith::SubIOp>(w.constant(0), count), last);
  if (!left) std::swap(there, back);
  return w.make<arith::OrIOp>(w.make<arith::ShLIOp>(x, there), w.make<arith::ShRUIOp>(x, back));
}

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

/// Both sides times the power of two that leaves the larger one between 1 and 2 (next to both ends of the range 4, and
/// less): their squares neither overflow nor vanish.
mlir::Value Hypot::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  mlir::Value x = f.abs(f.operand(0)), y = f.abs(f.operand(1));
  // Exponents are in words of 32 bits, also those of f64.
  Words w(b, loc, x.getType()), upper = w.upper();
  const int mantissa = f.isDouble() ? 20 : 23, most = f.isDouble() ? 2046 : 254;
  auto exponent = [&](int64_t e) { return upper.constant(e << mantissa); };
  mlir::Value larger = upper.make<arith::MaxUIOp>(w.upperOf(x), w.upperOf(y));
  mlir::Value e = upper.make<arith::AndIOp>(larger, exponent(most + 1));
  e = upper.make<arith::MinUIOp>(upper.make<arith::MaxUIOp>(e, exponent(1)), exponent(most - 1));
  mlir::Value back = w.asUpper(x.getType(), e);
  mlir::Value by = w.asUpper(x.getType(), upper.make<arith::SubIOp>(exponent(most), e));
  mlir::Value u = f.mul(x, by), v = f.mul(y, by);
  mlir::Value r = f.mul(f.make<math::SqrtOp>(f.fma(u, u, f.mul(v, v))), back);
  // Infinite beside a NaN, too.
  mlir::Value infinity = f.constant(std::numeric_limits<double>::infinity());
  mlir::Value isInfinite = arith::OrIOp::create(b, loc, f.equal(x, infinity), f.equal(y, infinity));
  return f.result(f.choose(isInfinite, infinity, r));
}

/// What is left of |x| by twice |y| lies in three pieces around 0, |y| and 2 |y|; differences of neighbours are exact.
mlir::Value Remainder::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  mlir::Value p = f.abs(f.operand(1));
  mlir::Value r = f.make<arith::RemFOp>({f.abs(f.operand(0)), f.add(p, p)});
  mlir::Value less = f.sub(r, p);
  less = f.choose(f.compare(arith::CmpFPredicate::OGE, less, f.sub(p, less)), f.sub(less, p), less);
  r = f.choose(f.greater(r, f.sub(p, r)), less, r);
  return f.result(f.mul(r, f.make<math::CopySignOp>({f.constant(1), f.operand(0)})));
}

mlir::Value PositiveDifference::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  mlir::Value x = f.operand(0), y = f.operand(1);
  return f.result(f.choose(f.compare(arith::CmpFPredicate::OLE, x, y), f.constant(0), f.sub(x, y)));
}

mlir::Value Logb::make(OpBuilder& b, Location loc, Args args) {
  Floats f(b, loc, args);
  const int mantissa = f.isDouble() ? 52 : 23, bias = f.isDouble() ? 1023 : 127;
  mlir::Value x = f.abs(f.operand(0)), infinity = f.constant(std::numeric_limits<double>::infinity());
  mlir::Value tiny = f.greater(f.constant(std::ldexp(1.0, 1 - bias)), x);
  mlir::Value normal = f.choose(tiny, f.mul(x, f.constant(std::ldexp(1.0, mantissa))), x);
  Words w(b, loc, x.getType());
  mlir::Value e = w.make<arith::ShRUIOp>(w.of(normal), w.constant(mantissa));
  e = w.make<arith::SubIOp>(e, w.choose(tiny, w.constant(bias + mantissa), w.constant(bias)));
  mlir::Value r = arith::SIToFPOp::create(b, loc, x.getType(), e);
  r = f.choose(f.equal(x, f.constant(0)), f.constant(-std::numeric_limits<double>::infinity()), r);
  return f.result(f.choose(f.compare(arith::CmpFPredicate::OLT, x, infinity), r, x));
}

/// One up or down in the word that counts from 0 outwards.
mlir::Value NextAfter::make(OpBuilder& b, Location loc, Args args) {
  mlir::Value x = args[0], y = args[1];
  Words w(b, loc, x.getType());
  auto compare = [&](arith::CmpFPredicate p, mlir::Value u, mlir::Value v) -> mlir::Value {
    return arith::CmpFOp::create(b, loc, p, u, v);
  };
  mlir::Value word = w.of(x), sign = w.constant(APInt::getSignMask(w.count())), one = w.constant(1);
  mlir::Value outwards = w.make<arith::XOrIOp>(compare(arith::CmpFPredicate::OGT, x, y),
                                               w.compare(arith::CmpIPredicate::sge, word, w.constant(0)));
  mlir::Value next = w.make<arith::AddIOp>(word, w.choose(outwards, one, w.constant(-1)));
  mlir::Value isZero = w.compare(arith::CmpIPredicate::eq, w.make<arith::ShLIOp>(word, one), w.constant(0));
  mlir::Value least = w.make<arith::OrIOp>(w.make<arith::AndIOp>(w.of(y), sign), one);
  mlir::Value r = w.as(x.getType(), w.choose(isZero, least, next));
  r = w.choose(compare(arith::CmpFPredicate::OEQ, x, y), y, r);
  return w.choose(compare(arith::CmpFPredicate::UNO, x, y), arith::AddFOp::create(b, loc, x, y), r);
}

mlir::Value SignBit::make(OpBuilder& b, Location loc, Args args) {
  Words w(b, loc, args[0].getType());
  return w.compare(arith::CmpIPredicate::slt, w.of(args[0]), w.constant(0));
}

mlir::Value FloorMod::make(OpBuilder& b, Location loc, Args args) {
  Words w(b, loc, args[0].getType());
  mlir::Value r = w.make<arith::RemSIOp>(args[0], args[1]), zero = w.constant(0);
  mlir::Value other = w.compare(arith::CmpIPredicate::slt, w.make<arith::XOrIOp>(r, args[1]), zero);
  mlir::Value lacks = w.make<arith::AndIOp>(other, w.compare(arith::CmpIPredicate::ne, r, zero));
  return w.make<arith::AddIOp>(r, w.choose(lacks, args[1], zero));
}

mlir::Value RotateLeft::make(OpBuilder& b, Location loc, Args args) { return rotate(b, loc, args[0], args[1], true); }
mlir::Value RotateRight::make(OpBuilder& b, Location loc, Args args) { return rotate(b, loc, args[0], args[1], false); }

}  // namespace tile::detail
