// elementwise.cpp - arith and math ops as LLVM instructions.
#include "compiler/lowering/elementwise.h"

#include <cmath>

#include "compiler/analysis/no_wrap.h"
#include "compiler/dialect/dialect.h"
#include "compiler/lowering/fp8.h"
#include "compiler/lowering/math_functions.h"
#include "compiler/lowering/math_functions_f64.h"
#include "compiler/lowering/microscaling.h"
#include "compiler/lowering/remainder.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/PatternMatch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tile::ir {
using namespace mlir;
using llvm::Intrinsic::ID;
using Args = llvm::ArrayRef<llvm::Value*>;
using Results = llvm::SmallVector<llvm::Value*, 2>;

namespace {

llvm::Type* resultType(llvm::IRBuilderBase& b, Operation* op, Args args) {
  return withElement(args[0]->getType(), llvmType(b.getContext(), getElementTypeOrSelf(op->getResult(0).getType())));
}

/// Sets the op's fast-math flags on the builder while it lives.
class FastMathScope {
 public:
  FastMathScope(llvm::IRBuilderBase& b, Operation* op) : guard_(b) {
    using F = arith::FastMathFlags;
    auto iface = dyn_cast<arith::ArithFastMathInterface>(op);
    if (!iface) return;
    auto attr = iface.getFastMathFlagsAttr();  // optional on casts
    if (!attr) return;
    F flags = attr.getValue();
    auto has = [&](F f) { return bitEnumContainsAll(flags, f); };
    llvm::FastMathFlags f;
    f.setAllowContract(has(F::contract));
    f.setAllowReassoc(has(F::reassoc));
    f.setNoNaNs(has(F::nnan));
    f.setNoInfs(has(F::ninf));
    f.setNoSignedZeros(has(F::nsz));
    f.setAllowReciprocal(has(F::arcp));
    f.setApproxFunc(has(F::afn));
    b.setFastMathFlags(f);
  }

 private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

llvm::CmpInst::Predicate predicate(arith::CmpIPredicate p) {
  using P = llvm::CmpInst::Predicate;
  switch (p) {
    case arith::CmpIPredicate::eq: return P::ICMP_EQ;
    case arith::CmpIPredicate::ne: return P::ICMP_NE;
    case arith::CmpIPredicate::slt: return P::ICMP_SLT;
    case arith::CmpIPredicate::sle: return P::ICMP_SLE;
    case arith::CmpIPredicate::sgt: return P::ICMP_SGT;
    case arith::CmpIPredicate::sge: return P::ICMP_SGE;
    case arith::CmpIPredicate::ult: return P::ICMP_ULT;
    case arith::CmpIPredicate::ule: return P::ICMP_ULE;
    case arith::CmpIPredicate::ugt: return P::ICMP_UGT;
    case arith::CmpIPredicate::uge: return P::ICMP_UGE;
  }
  return P::BAD_ICMP_PREDICATE;
}

llvm::CmpInst::Predicate predicate(arith::CmpFPredicate p) {
  using P = llvm::CmpInst::Predicate;
  switch (p) {
    case arith::CmpFPredicate::AlwaysFalse: return P::FCMP_FALSE;
    case arith::CmpFPredicate::OEQ: return P::FCMP_OEQ;
    case arith::CmpFPredicate::OGT: return P::FCMP_OGT;
    case arith::CmpFPredicate::OGE: return P::FCMP_OGE;
    case arith::CmpFPredicate::OLT: return P::FCMP_OLT;
    case arith::CmpFPredicate::OLE: return P::FCMP_OLE;
    case arith::CmpFPredicate::ONE: return P::FCMP_ONE;
    case arith::CmpFPredicate::ORD: return P::FCMP_ORD;
    case arith::CmpFPredicate::UEQ: return P::FCMP_UEQ;
    case arith::CmpFPredicate::UGT: return P::FCMP_UGT;
    case arith::CmpFPredicate::UGE: return P::FCMP_UGE;
    case arith::CmpFPredicate::ULT: return P::FCMP_ULT;
    case arith::CmpFPredicate::ULE: return P::FCMP_ULE;
    case arith::CmpFPredicate::UNE: return P::FCMP_UNE;
    case arith::CmpFPredicate::UNO: return P::FCMP_UNO;
    case arith::CmpFPredicate::AlwaysTrue: return P::FCMP_TRUE;
  }
  return P::BAD_FCMP_PREDICATE;
}

Fp8 fp8Kind(Type t) { return isa<Float8E4M3FNType>(getElementTypeOrSelf(t)) ? Fp8::e4m3 : Fp8::e5m2; }

/// 0 becomes 1.
llvm::Value* withoutZero(llvm::IRBuilderBase& b, llvm::Value* by) {
  llvm::Type* t = by->getType();
  return b.CreateSelect(b.CreateICmpEQ(by, llvm::ConstantInt::get(t, 0)), llvm::ConstantInt::get(t, 1), by);
}

/// A division that cannot trap: 0 becomes 1, and so does -1, by which a signed minimum traps; that quotient is -x. The
/// divisor depends on nothing but itself, so that a loop which does not change it has one factor for it.
llvm::Value* divideSafely(llvm::IRBuilderBase& b, llvm::Instruction::BinaryOps opcode, Args a) {
  using I = llvm::Instruction;
  llvm::Value* by = withoutZero(b, a[1]);
  if (opcode == I::UDiv || opcode == I::URem) return b.CreateBinOp(opcode, a[0], by);
  llvm::Type* t = by->getType();
  llvm::Value* negates = b.CreateICmpEQ(by, llvm::Constant::getAllOnesValue(t));
  llvm::Value* result = b.CreateBinOp(opcode, a[0], b.CreateSelect(negates, llvm::ConstantInt::get(t, 1), by));
  return opcode == I::SDiv ? b.CreateSelect(negates, b.CreateNeg(a[0]), result) : result;
}

llvm::Value* divide(llvm::IRBuilderBase& b, llvm::Instruction::BinaryOps opcode, Args a, const MathHooks& hooks) {
  return hooks.guardDivision ? divideSafely(b, opcode, a) : b.CreateBinOp(opcode, a[0], a[1]);
}

/// Quotient rounded towards +inf (`up`) or -inf: the truncated one, corrected where the remainder points the other way.
llvm::Value* divideRounding(llvm::IRBuilderBase& b, Args a, bool up, bool isSigned, const MathHooks& hooks) {
  llvm::Type* t = a[1]->getType();
  const llvm::APInt* known = nullptr;
  if (isSigned && !up && llvm::PatternMatch::match(a[1], llvm::PatternMatch::m_APInt(known)) &&
      known->isStrictlyPositive()) {
    if (known->isPowerOf2()) return b.CreateAShr(a[0], known->logBase2());
    // Below zero, that of ~x, which is not: ~(~x / n).
    llvm::Value* sign = b.CreateAShr(a[0], t->getScalarSizeInBits() - 1);
    return b.CreateXor(b.CreateUDiv(b.CreateXor(a[0], sign), a[1]), sign);
  }
  llvm::Value* rhs = hooks.guardDivision ? withoutZero(b, a[1]) : a[1];
  llvm::Value* zero = llvm::ConstantInt::get(t, 0);
  llvm::Value* q = divide(b, isSigned ? llvm::Instruction::SDiv : llvm::Instruction::UDiv, {a[0], rhs}, hooks);
  llvm::Value* inexact = b.CreateICmpNE(b.CreateMul(q, rhs), a[0]);
  llvm::Value* negative =
      isSigned ? b.CreateICmpSLT(b.CreateXor(a[0], rhs), zero) : llvm::ConstantInt::getFalse(inexact->getType());
  llvm::Value* wants = b.CreateAnd(inexact, up ? b.CreateNot(negative) : negative);
  return b.CreateAdd(q, b.CreateSelect(wants, llvm::ConstantInt::getSigned(t, up ? 1 : -1), zero));
}

/// Low and high halves of a double-width product.
Results multiplyExtended(llvm::IRBuilderBase& b, Args a, bool isSigned) {
  llvm::Type* t = a[0]->getType();
  unsigned bits = t->getScalarSizeInBits();
  llvm::Type* wide = withElement(t, b.getIntNTy(2 * bits));
  auto ext = [&](llvm::Value* v) { return isSigned ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide); };
  llvm::Value* product = b.CreateMul(ext(a[0]), ext(a[1]));
  return {b.CreateTrunc(product, t), b.CreateTrunc(b.CreateLShr(product, bits), t)};
}

llvm::Value* convertFloat(llvm::IRBuilderBase& b, Operation* op, llvm::Value* x) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  if (isF8(from)) x = fp8ToF32(b, x, fp8Kind(from));
  if (isF8(to)) return f32ToFp8(b, toF32ForFp8(b, x), fp8Kind(to));
  return b.CreateFPCast(x, resultType(b, op, {x}));
}

/// The nearest number of the integer type to each lane, 0 for NaN. LLVM's own saturating conversions go lane by lane on
/// machines without such an instruction.
llvm::Value* saturated(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Type* to, bool isSigned) {
  const unsigned bits = to->getScalarSizeInBits();
  const double above = std::ldexp(1.0, static_cast<int>(bits - (isSigned ? 1 : 0)));  // the first number too large
  auto number = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  const double least = isSigned ? -above : 0;
  // A comparison with NaN is false: it becomes the least number.
  llvm::Value* low = b.CreateSelect(b.CreateFCmpOGT(x, number(least)), x, number(least));
  auto orZero = [&](llvm::Value* v) {
    if (!isSigned) return v;
    return b.CreateSelect(b.CreateFCmpUNO(x, x), llvm::Constant::getNullValue(v->getType()), v);
  };
  if (bits <= 16) {  // the largest number is one of the float type, too
    llvm::Value* in = b.CreateSelect(b.CreateFCmpOLT(low, number(above - 1)), low, number(above - 1));
    return b.CreateTrunc(orZero(b.CreateFPToSI(in, withElement(to, b.getInt32Ty()))), to);
  }
  llvm::Value* whole = b.CreateFreeze(isSigned ? b.CreateFPToSI(low, to) : b.CreateFPToUI(low, to));
  const llvm::APInt most = isSigned ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits);
  return orZero(b.CreateSelect(b.CreateFCmpOGE(x, number(above)), llvm::ConstantInt::get(to, most), whole));
}

llvm::Value* floatToInt(llvm::IRBuilderBase& b, Operation* op, llvm::Value* x, bool isSigned, const MathHooks& hooks) {
  llvm::Type* to = resultType(b, op, {x});
  llvm::Type* from = x->getType()->getScalarType();
  if (hooks.saturateConversions && to->isVectorTy() && (from->isFloatTy() || from->isDoubleTy()))
    return saturated(b, x, to, isSigned);
  if (hooks.saturateConversions)
    return b.CreateIntrinsic(isSigned ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat, {to, x->getType()},
                             {x});
  return isSigned ? b.CreateFPToSI(x, to) : b.CreateFPToUI(x, to);
}

/// fp8 is made from f32: folding may leave a conversion straight from an integer.
llvm::Value* intToFloat(llvm::IRBuilderBase& b, Operation* op, llvm::Value* x, bool isSigned) {
  Type to = op->getResult(0).getType();
  llvm::Type* type = isF8(to) ? withElement(x->getType(), b.getFloatTy()) : resultType(b, op, {x});
  // A truth value is one of two numbers: no integer has to be made of it first.
  llvm::Value* f = x->getType()->getScalarType()->isIntegerTy(1) && !isSigned
                       ? b.CreateSelect(x, llvm::ConstantFP::get(type, 1), llvm::ConstantFP::get(type, 0))
                   : isSigned ? b.CreateSIToFP(x, type)
                              : b.CreateUIToFP(x, type);
  return isF8(to) ? f32ToFp8(b, f, fp8Kind(to)) : f;
}

Results emitArith(llvm::IRBuilderBase& b, Operation* op, Args a, const MathHooks& hooks) {
  using I = llvm::Instruction;
  auto one = [](llvm::Value* v) { return Results{v}; };
  auto binary = [&](ID id) { return Results{b.CreateBinaryIntrinsic(id, a[0], a[1])}; };
  return llvm::TypeSwitch<Operation*, Results>(op)
      .Case<arith::AddIOp>([&](auto o) { return one(b.CreateAdd(a[0], a[1], "", false, neverWraps(o))); })
      .Case<arith::SubIOp>([&](auto o) { return one(b.CreateSub(a[0], a[1], "", false, neverWraps(o))); })
      .Case<arith::MulIOp>([&](auto o) { return one(b.CreateMul(a[0], a[1], "", false, neverWraps(o))); })
      .Case<arith::DivSIOp>([&](auto) { return one(divide(b, I::SDiv, a, hooks)); })
      .Case<arith::DivUIOp>([&](auto) { return one(divide(b, I::UDiv, a, hooks)); })
      .Case<arith::RemSIOp>([&](auto) { return one(divide(b, I::SRem, a, hooks)); })
      .Case<arith::RemUIOp>([&](auto) { return one(divide(b, I::URem, a, hooks)); })
      .Case<arith::CeilDivSIOp>([&](auto) { return one(divideRounding(b, a, true, true, hooks)); })
      .Case<arith::CeilDivUIOp>([&](auto) { return one(divideRounding(b, a, true, false, hooks)); })
      .Case<arith::FloorDivSIOp>([&](auto) { return one(divideRounding(b, a, false, true, hooks)); })
      .Case<arith::AndIOp>([&](auto) { return one(b.CreateAnd(a[0], a[1])); })
      .Case<arith::OrIOp>([&](auto) { return one(b.CreateOr(a[0], a[1])); })
      .Case<arith::XOrIOp>([&](auto) { return one(b.CreateXor(a[0], a[1])); })
      .Case<arith::ShLIOp>([&](auto) { return one(b.CreateShl(a[0], a[1])); })
      .Case<arith::ShRUIOp>([&](auto) { return one(b.CreateLShr(a[0], a[1])); })
      .Case<arith::ShRSIOp>([&](auto) { return one(b.CreateAShr(a[0], a[1])); })
      .Case<arith::MaxSIOp>([&](auto) { return binary(llvm::Intrinsic::smax); })
      .Case<arith::MinSIOp>([&](auto) { return binary(llvm::Intrinsic::smin); })
      .Case<arith::MaxUIOp>([&](auto) { return binary(llvm::Intrinsic::umax); })
      .Case<arith::MinUIOp>([&](auto) { return binary(llvm::Intrinsic::umin); })
      .Case<arith::MulSIExtendedOp>([&](auto) { return multiplyExtended(b, a, true); })
      .Case<arith::MulUIExtendedOp>([&](auto) { return multiplyExtended(b, a, false); })
      .Case<arith::AddUIExtendedOp>([&](auto) {
        llvm::Value* sum = b.CreateAdd(a[0], a[1]);
        return Results{sum, b.CreateICmpULT(sum, a[0])};
      })
      .Case<arith::AddFOp>([&](auto) { return one(b.CreateFAdd(a[0], a[1])); })
      .Case<arith::SubFOp>([&](auto) { return one(b.CreateFSub(a[0], a[1])); })
      .Case<arith::MulFOp>([&](auto) { return one(b.CreateFMul(a[0], a[1])); })
      .Case<arith::DivFOp>([&](auto) { return one(b.CreateFDiv(a[0], a[1])); })
      // LLVM's own way on GPUs loses the remainder where the quotient rounds up: 1 % 0.1.
      .Case<arith::RemFOp>(
          [&](auto) { return one(hooks.hasLibm ? b.CreateFRem(a[0], a[1]) : emitRemainder(b, a[0], a[1])); })
      .Case<arith::NegFOp>([&](auto) { return one(b.CreateFNeg(a[0])); })
      .Case<arith::MaximumFOp>([&](auto) { return binary(llvm::Intrinsic::maximum); })
      .Case<arith::MinimumFOp>([&](auto) { return binary(llvm::Intrinsic::minimum); })
      .Case<arith::MaxNumFOp>([&](auto) { return binary(llvm::Intrinsic::maxnum); })
      .Case<arith::MinNumFOp>([&](auto) { return binary(llvm::Intrinsic::minnum); })
      .Case<arith::CmpIOp>([&](arith::CmpIOp c) { return one(b.CreateICmp(predicate(c.getPredicate()), a[0], a[1])); })
      .Case<arith::CmpFOp>([&](arith::CmpFOp c) { return one(b.CreateFCmp(predicate(c.getPredicate()), a[0], a[1])); })
      .Case<arith::SelectOp>([&](auto) { return one(b.CreateSelect(a[0], a[1], a[2])); })
      .Case<arith::ExtSIOp>([&](auto) { return one(b.CreateSExt(a[0], resultType(b, op, a))); })
      .Case<arith::ExtUIOp>([&](auto) { return one(b.CreateZExt(a[0], resultType(b, op, a))); })
      .Case<arith::TruncIOp>(
          [&](auto o) { return one(b.CreateTrunc(a[0], resultType(b, op, a), "", false, neverWraps(o))); })
      .Case<arith::SIToFPOp>([&](auto) { return one(intToFloat(b, op, a[0], true)); })
      .Case<arith::UIToFPOp>([&](auto) { return one(intToFloat(b, op, a[0], false)); })
      .Case<arith::FPToSIOp>([&](auto) { return one(floatToInt(b, op, a[0], true, hooks)); })
      .Case<arith::FPToUIOp>([&](auto) { return one(floatToInt(b, op, a[0], false, hooks)); })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return one(convertFloat(b, op, a[0])); })
      .Case<arith::BitcastOp>([&](auto) { return one(b.CreateBitCast(a[0], resultType(b, op, a))); })
      .Default([](Operation*) { return Results{}; });
}

/// Integer math, and float math that is exact in any width: no widening needed.
llvm::Value* emitExactMath(llvm::IRBuilderBase& b, Operation* op, Args a) {
  llvm::Type* t = a[0]->getType();
  auto unary = [&](ID id) -> llvm::Value* { return b.CreateUnaryIntrinsic(id, a[0]); };
  auto withFalse = [&](ID id) -> llvm::Value* { return b.CreateIntrinsic(id, {t}, {a[0], b.getFalse()}); };
  auto infinity = [&] { return llvm::ConstantFP::getInfinity(t); };
  return llvm::TypeSwitch<Operation*, llvm::Value*>(op)
      .Case<math::AbsIOp>([&](auto) { return withFalse(llvm::Intrinsic::abs); })
      .Case<math::CtPopOp>([&](auto) { return unary(llvm::Intrinsic::ctpop); })
      .Case<BitReverseOp>([&](auto) { return unary(llvm::Intrinsic::bitreverse); })
      .Case<math::CountLeadingZerosOp>([&](auto) { return withFalse(llvm::Intrinsic::ctlz); })
      .Case<math::CountTrailingZerosOp>([&](auto) { return withFalse(llvm::Intrinsic::cttz); })
      .Case<math::AbsFOp>([&](auto) { return unary(llvm::Intrinsic::fabs); })
      .Case<math::CopySignOp>([&](auto) { return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a[0], a[1]); })
      .Case<math::FmaOp>([&](auto) {
        return b.CreateIntrinsic(llvm::Intrinsic::fma, {t}, {a[0], a[1], a[2]});
      })
      .Case<math::ClampFOp>([&](auto) {
        return b.CreateBinaryIntrinsic(llvm::Intrinsic::minnum,
                                       b.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a[0], a[1]), a[2]);
      })
      .Case<math::IsNaNOp>([&](auto) { return b.CreateFCmpUNO(a[0], a[0]); })
      .Case<math::IsInfOp>([&](auto) { return b.CreateFCmpOEQ(unary(llvm::Intrinsic::fabs), infinity()); })
      .Case<math::IsFiniteOp>([&](auto) { return b.CreateFCmpOLT(unary(llvm::Intrinsic::fabs), infinity()); })
      .Default([](Operation*) -> llvm::Value* { return nullptr; });
}

/// Roundings, roots and transcendentals on f32 or f64.
llvm::Value* emitWideMath(llvm::IRBuilderBase& b, Operation* op, Args a, const MathHooks& hooks) {
  auto unary = [&](ID id) -> llvm::Value* { return b.CreateUnaryIntrinsic(id, a[0]); };
  return llvm::TypeSwitch<Operation*, llvm::Value*>(op)
      .Case<math::FloorOp>([&](auto) { return unary(llvm::Intrinsic::floor); })
      .Case<math::CeilOp>([&](auto) { return unary(llvm::Intrinsic::ceil); })
      .Case<math::TruncOp>([&](auto) { return unary(llvm::Intrinsic::trunc); })
      .Case<math::RoundOp>([&](auto) { return unary(llvm::Intrinsic::round); })
      .Case<math::RoundEvenOp>([&](auto) { return unary(llvm::Intrinsic::roundeven); })
      .Case<math::SqrtOp, SqrtRnOp>([&](auto) { return unary(llvm::Intrinsic::sqrt); })
      .Case<DivRnOp>([&](auto) { return b.CreateFDiv(a[0], a[1]); })
      .Case<AddRnOp>([&](auto) { return b.CreateFAdd(a[0], a[1]); })
      .Case<MulRnOp>([&](auto) { return b.CreateFMul(a[0], a[1]); })
      .Case<math::RsqrtOp>([&](auto) {
        if (hooks.rough && a[0]->getType()->getScalarType()->isDoubleTy()) return emitF64(b, op, a, hooks.rough);
        return b.CreateFDiv(llvm::ConstantFP::get(a[0]->getType(), 1.0), unary(llvm::Intrinsic::sqrt));
      })
      .Default([&](Operation*) {
        return emitTranscendental(b, op, a, hooks.hasLibm, nullptr, hooks.powers, hooks.rough);
      });
}

}  // namespace

llvm::Type* withElement(llvm::Type* like, llvm::Type* element) {
  if (auto* v = llvm::dyn_cast<llvm::VectorType>(like)) return llvm::VectorType::get(element, v->getElementCount());
  return element;
}

llvm::Type* llvmType(llvm::LLVMContext& ctx, Type type) {
  if (auto i = dyn_cast<IntegerType>(type)) return llvm::IntegerType::get(ctx, i.getWidth());
  if (type.isF16()) return llvm::Type::getHalfTy(ctx);
  if (type.isBF16()) return llvm::Type::getBFloatTy(ctx);
  if (type.isF32()) return llvm::Type::getFloatTy(ctx);
  if (type.isF64()) return llvm::Type::getDoubleTy(ctx);
  if (isF8(type)) return llvm::Type::getInt8Ty(ctx);
  return nullptr;
}

llvm::Constant* llvmConstant(llvm::LLVMContext& ctx, Attribute value) {
  if (auto i = dyn_cast<IntegerAttr>(value)) return llvm::ConstantInt::get(ctx, i.getValue());
  auto f = cast<FloatAttr>(value);
  if (isF8(f.getType())) return llvm::ConstantInt::get(ctx, f.getValue().bitcastToAPInt());
  return llvm::ConstantFP::get(ctx, f.getValue());
}

bool isElementwise(Operation* op) {
  return op->getNumResults() > 0 && !isa<arith::ConstantOp>(op) && OpTrait::hasElementwiseMappableTraits(op);
}

int elementwiseCost(Operation* op) {
  constexpr int kDivision = 5, kFunction = 15, kLongFunction = 60;
  if (op->hasTrait<IsFloatFunction>()) return kLongFunction;
  if (isa<DivRnOp, SqrtRnOp>(op)) return kFunction;
  if (isa<math::MathDialect>(op->getDialect()) && !isa<math::AbsFOp, math::FmaOp, math::AbsIOp>(op)) return kFunction;
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::RemFOp>(op))
    return kDivision;
  return 1;
}

Results emitElementwise(llvm::IRBuilderBase& b, Operation* op, Args args, const MathHooks& hooks) {
  if (args.empty()) return {};
  FastMathScope scope(b, op);
  if (isa<arith::ArithDialect>(op->getDialect())) {
    if (llvm::Value* v = hooks.special(b, op, args)) return {v};
    return emitArith(b, op, args, hooks);
  }
  if (isa<WidenE2m1Op>(op)) {
    const auto pair = widenE2m1(b, args[0]);
    return {pair[0], pair[1]};
  }
  if (isa<WidenE8m0Op>(op)) return {widenE8m0(b, args[0])};
  if (llvm::Value* v = emitExactMath(b, op, args)) return {v};
  llvm::Type* t = args[0]->getType();
  if (!t->isFPOrFPVectorTy()) return {};
  // 16-bit floats compute in f32 and round once at the end.
  bool narrow = t->getScalarSizeInBits() < 32;
  llvm::SmallVector<llvm::Value*, 3> wide(args.begin(), args.end());
  if (narrow)
    for (llvm::Value*& v : wide)
      if (v->getType()->isFPOrFPVectorTy()) v = b.CreateFPExt(v, withElement(t, b.getFloatTy()));
  llvm::Value* r = hooks.special(b, op, wide);
  if (!r) r = emitWideMath(b, op, wide, hooks);
  if (!r) return {};
  return {narrow ? b.CreateFPTrunc(r, t) : r};
}

}  // namespace tile::ir
