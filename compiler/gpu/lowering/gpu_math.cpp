// gpu_math.cpp - see gpu_math.h.
#include "compiler/gpu/lowering/gpu_math.h"

#include "compiler/dialect/dialect.h"
#include "compiler/gpu/access/counts.h"
#include "compiler/lowering/math_functions.h"
#include "compiler/lowering/math_functions_f64.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;
using llvm::Value;

/// Small integers to 16-bit floats, by way of f32, which holds them: there is no fast instruction for the direct way.
static Value* smallIntToHalf(llvm::IRBuilderBase& b, Operation* op, Value* x) {
  const Type to = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op) || !x->getType()->isIntegerTy()) return nullptr;
  if (x->getType()->getIntegerBitWidth() > 16 || (!to.isF16() && !to.isBF16())) return nullptr;
  const bool isSigned = isa<arith::SIToFPOp>(op);
  Value* wide = isSigned ? b.CreateSExt(x, b.getInt32Ty()) : b.CreateZExt(x, b.getInt32Ty());
  return b.CreateFPTrunc(b.CreateSIToFP(wide, b.getFloatTy()), to.isF16() ? b.getHalfTy() : b.getBFloatTy());
}

/// A quotient of 16-bit floats: that of f32, which is near enough, rounded.
static Value* quotientOfHalves(llvm::IRBuilderBase& b, Operation* op, llvm::ArrayRef<Value*> args,
                               const GpuMath& math) {
  llvm::Type* t = args[0]->getType();
  if (!isa<arith::DivFOp>(op) || (!t->isHalfTy() && !t->isBFloatTy())) return nullptr;
  Value* wide[] = {b.CreateFPExt(args[0], b.getFloatTy()), b.CreateFPExt(args[1], b.getFloatTy())};
  return b.CreateFPTrunc(math.special(b, op, wide), t);
}

/// Instructions that say how they round: neither LLVM nor ptxas joins them with a neighbour.
static Value* roundedAlone(llvm::IRBuilderBase& b, Operation* op, llvm::ArrayRef<Value*> args) {
  if (!isa<AddRnOp, MulRnOp>(op)) return nullptr;
  llvm::Type* t = args[0]->getType();
  const bool product = isa<MulRnOp>(op);
  if (t->isDoubleTy())
    return b.CreateIntrinsic(t, product ? llvm::Intrinsic::nvvm_mul_rn_d : llvm::Intrinsic::nvvm_add_rn_d, args);
  return b.CreateIntrinsic(t, product ? llvm::Intrinsic::nvvm_mul_rn_f : llvm::Intrinsic::nvvm_add_rn_f, args);
}

namespace {
struct Approximate : QuickParts {
  Value* exp2(llvm::IRBuilderBase& b, Value* x) const override {
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz, {b.getFloatTy()}, {x});
  }
  Value* log2(llvm::IRBuilderBase& b, Value* x) const override {
    return b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_lg2_approx_f, {x});
  }
  // The hardware's reciprocal is within one unit everywhere; a quotient needs its range reduced first.
  Value* reciprocal(llvm::IRBuilderBase& b, Value* x) const override {
    return b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_rcp_approx_ftz_f, {x});
  }
  Value* quotient(llvm::IRBuilderBase& b, Value* x, Value* y) const override {
    return b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_div_full_ftz, {x, y});
  }
  Value* sqrt(llvm::IRBuilderBase& b, Value* x) const override {
    return b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_sqrt_approx_ftz_f, {x});
  }
};
/// Of the upper word of x; the lower word of the result is 0.
struct UpperWords : RoughReciprocals {
  Value* reciprocal(llvm::IRBuilderBase& b, Value* x) const override {
    return b.CreateIntrinsic(b.getDoubleTy(), llvm::Intrinsic::nvvm_rcp_approx_ftz_d, {x});
  }
  Value* rsqrt(llvm::IRBuilderBase& b, Value* x) const override {
    return b.CreateIntrinsic(b.getDoubleTy(), llvm::Intrinsic::nvvm_rsqrt_approx_ftz_d, {x});
  }
};
}  // namespace

GpuMath::GpuMath(bool fastMath) : fastMath_(fastMath) {
  static const UpperWords upperWords;
  rough = &upperWords;
}

/// The nearest whole number, halves away from zero: what is less than a half is added away from zero, rounded (a half
/// then reaches the next number), and cut. The sum must not become one with a product in front of it.
static Value* roundAway(llvm::IRBuilderBase& b, Operation* op, Value* x) {
  llvm::Type* type = x->getType();
  if (!isa<math::RoundOp>(op) || (!type->isFloatTy() && !type->isDoubleTy())) return nullptr;
  const bool isDouble = type->isDoubleTy();
  Value* less = llvm::ConstantFP::get(type, isDouble ? 0x1.fffffffffffffp-2 : 0x1.fffffep-2);
  Value* half = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, less, x);
  auto add = isDouble ? llvm::Intrinsic::nvvm_add_rn_d : llvm::Intrinsic::nvvm_add_rn_f;
  return b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b.CreateIntrinsic(type, add, {x, half}));
}

/// x, whose square root `root` is if it is one of this machine's quick ones.
static Value* squareOf(Value* root) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(root);
  return call && call->getIntrinsicID() == llvm::Intrinsic::nvvm_sqrt_approx_ftz_f ? call->getArgOperand(0) : nullptr;
}

/// Nothing but its rounding to 16 bits is ever seen of the op's result.
static bool isOnlyRounded(Operation* op) {
  auto isNarrow = [](mlir::Value v) {
    const Type element = getElementTypeOrSelf(v.getType());
    return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 16;
  };
  mlir::Value result = op->getResult(0);
  if (isNarrow(result)) return true;
  return !result.use_empty() && llvm::all_of(result.getUsers(), [&](Operation* user) {
    return isa<arith::TruncFOp>(user) && isNarrow(user->getResult(0));
  });
}

/// tanh within 2^-16 of itself, little of what rounding to 16 bits loses: 1 - 2 / (1 + e^2x) is off by less than 2^-21,
/// and x - x^3 / 3 by less where the result is small.
static Value* quickTanh(llvm::IRBuilderBase& b, const QuickParts& quick, Value* x) {
  auto constant = [&](double v) { return llvm::ConstantFP::get(b.getFloatTy(), v); };
  auto fma = [&](Value* p, Value* q, Value* r) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {b.getFloatTy()}, {p, q, r});
  };
  Value* below = b.CreateFAdd(quick.exp2(b, b.CreateFMul(x, constant(2.8853900817779268))), constant(1.0));
  Value* large = fma(quick.reciprocal(b, below), constant(-2.0), constant(1.0));
  Value* small = b.CreateFMul(x, fma(b.CreateFMul(x, x), constant(-1.0 / 3), constant(1.0)));  // of -0, too
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  return b.CreateSelect(b.CreateFCmpOLT(size, constant(0.1)), small, large);
}

/// The divisor is a number that a loop around the op leaves as it is.
static bool dividesInLoop(Operation* op) {
  auto loop = op->getParentOfType<LoopLikeOpInterface>();
  mlir::Value by = op->getOperand(1);
  if (isa<RankedTensorType>(by.getType())) by = scalarOf(by);
  return loop && by && !matchPattern(by, m_Constant()) && loop.isDefinedOutsideOfLoop(by);
}

/// What the hardware's quotient is made of: a scale that brings large divisors nearer (their reciprocals are no normal
/// numbers), the reciprocal, two products. Scale and reciprocal are made in front of the loop; the assembler would
/// choose each dividend's scale anew.
static Value* quotientByInvariant(llvm::IRBuilderBase& b, const QuickParts& quick, Value* x, Value* y) {
  auto constant = [&](double v) { return llvm::ConstantFP::get(b.getFloatTy(), v); };
  auto product = [&](Value* p, Value* q) {  // by itself, as a quotient is
    return b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_mul_rn_f, {p, q});
  };
  Value* isLarge = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, y), constant(0x1p126));
  Value* scale = b.CreateSelect(isLarge, constant(0.25), constant(1.0));
  return product(product(x, scale), quick.reciprocal(b, product(y, scale)));
}

Value* GpuMath::special(llvm::IRBuilderBase& b, Operation* op, llvm::ArrayRef<Value*> args) const {
  if (Value* converted = smallIntToHalf(b, op, args[0])) return converted;
  if (Value* alone = roundedAlone(b, op, args)) return alone;
  if (Value* rounded = roundAway(b, op, args[0])) return rounded;
  if (!fastMath_) return nullptr;
  if (Value* half = quotientOfHalves(b, op, args, *this)) return half;
  if (!args[0]->getType()->isFloatTy()) return nullptr;
  const Approximate quick;
  auto call = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> a) -> Value* {
    return b.CreateIntrinsic(b.getFloatTy(), id, a);
  };
  auto scaled = [&](Value* x, double factor) { return b.CreateFMul(x, llvm::ConstantFP::get(b.getFloatTy(), factor)); };
  // Contraction lets the scale fold into a product that made the argument: exp(s * c) is one FMUL or FFMA and one MUFU.
  llvm::IRBuilderBase::FastMathFlagGuard guard(b);
  llvm::FastMathFlags contract;
  contract.setAllowContract();
  b.setFastMathFlags(contract);
  auto lg2 = [&](double factor) {
    Value* y = call(llvm::Intrinsic::nvvm_lg2_approx_ftz_f, {args[0]});
    return factor == 1.0 ? y : scaled(y, factor);
  };
  if (isa<math::TanhOp>(op) && isOnlyRounded(op)) return quickTanh(b, quick, args[0]);
  constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453, kLog10Of2 = 0.3010299956639812;
  return llvm::TypeSwitch<Operation*, Value*>(op)
      .Case<math::Exp2Op>([&](auto) { return quick.exp2(b, args[0]); })
      .Case<math::ExpOp>([&](auto) { return quick.exp2(b, scaled(args[0], kLog2E)); })
      .Case<math::Log2Op>([&](auto) { return lg2(1.0); })
      .Case<math::LogOp>([&](auto) { return lg2(kLn2); })
      .Case<math::Log10Op>([&](auto) { return lg2(kLog10Of2); })
      .Case<math::SqrtOp>([&](auto) { return quick.sqrt(b, args[0]); })
      .Case<math::RsqrtOp>([&](auto) { return call(llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f, {args[0]}); })
      .Case<arith::DivFOp>([&](auto) {
        auto* constant = llvm::dyn_cast<llvm::ConstantFP>(args[0]);
        const bool isOne = constant && constant->isExactlyValue(1.0);
        // Times 1 / root, one instruction, instead of a quotient of several; the product stays one by itself.
        if (Value* square = squareOf(args[1])) {
          Value* inverse = call(llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f, {square});
          b.setFastMathFlags({});
          return isOne ? inverse : b.CreateFMul(args[0], inverse);
        }
        if (isOne) return quick.reciprocal(b, args[1]);
        if (dividesInLoop(op)) return quotientByInvariant(b, quick, args[0], args[1]);
        return quick.quotient(b, args[0], args[1]);
      })
      .Case<math::TanOp, math::TanhOp, math::SinhOp, math::CoshOp, math::AsinOp, math::AcosOp, math::AtanOp,
            math::Atan2Op, math::AsinhOp, math::AcoshOp, math::AtanhOp, math::ExpM1Op, math::Log1pOp, math::ErfOp,
            math::ErfcOp, NormcdfOp, ErfcinvOp, NormcdfinvOp, math::CbrtOp, math::PowFOp>(
          [&](auto) { return emitTranscendental(b, op, args, /*hasLibm=*/false, &quick); })
      .Default([](Operation*) -> Value* { return nullptr; });
}

}  // namespace tile::ir
