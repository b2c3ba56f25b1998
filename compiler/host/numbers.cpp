// numbers.cpp - register and memory forms of numbers; casts, shifts and 16-bit rounding on top of the shared emitter.
#include "compiler/host/numbers.h"

#include "compiler/dialect/dialect.h"
#include "compiler/host/avx512.h"
#include "compiler/host/powers_of_two.h"
#include "compiler/lowering/fp8.h"
#include "compiler/lowering/math_functions.h"
#include "compiler/lowering/math_functions_f64.h"
#include "compiler/targets/host.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;
using llvm::Value;

namespace {

struct HostMath : MathHooks {
  explicit HostMath(const Target& target) : instructions(target.vectorBytes >= 64 ? 16 : 8) {
    guardDivision = true;        // idiv traps
    saturateConversions = true;  // the same numbers as a GPU: saturated, NaN is 0
    hasLibm = true;
    if (hostFeatures(target).powersOfTwo) powers = &instructions;
    hasVectorsOfF64 = target.vectorBytes >= 32;  // such machines have fma, which the functions are made of
  }
  /// f64 functions as vectors, the same as on GPUs: the C library would be called for every lane. It is for sines,
  /// cosines and tangents of angles that three parts of pi / 2 do not reduce.
  Value* special(llvm::IRBuilderBase& b, Operation* op, ArrayRef<Value*> args) const override {
    if (isa<arith::MaxNumFOp, arith::MinNumFOp>(op)) return extreme(b, op, args);
    constexpr double kFarAngle = 0x1p30;
    if (!hasVectorsOfF64 || !args[0]->getType()->getScalarType()->isDoubleTy()) return nullptr;
    if (isa<math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log10Op, math::Log1pOp,
            math::AsinOp, math::AcosOp, math::AtanOp, math::Atan2Op, math::SinhOp, math::CoshOp, math::TanhOp,
            math::AsinhOp, math::AcoshOp, math::AtanhOp, math::ErfOp, math::ErfcOp, math::CbrtOp>(op))
      return emitF64(b, op, args);
    if (!isa<math::SinOp, math::CosOp, math::TanOp>(op)) return nullptr;
    Value* near = emitF64(b, op, args);
    Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]);
    Value* isFar = b.CreateFCmpOGE(size, llvm::ConstantFP::get(size->getType(), kFarAngle));
    if (isFar->getType()->isVectorTy()) isFar = b.CreateOrReduce(isFar);
    if (isa<llvm::Constant>(isFar)) return emitTranscendental(b, op, args, /*hasLibm=*/true);
    llvm::BasicBlock* before = b.GetInsertBlock();
    auto* far = llvm::BasicBlock::Create(b.getContext(), "far", before->getParent());
    auto* after = llvm::BasicBlock::Create(b.getContext(), "angle", before->getParent());
    b.CreateCondBr(isFar, far, after);
    b.SetInsertPoint(far);
    Value* exact = emitTranscendental(b, op, args, /*hasLibm=*/true);
    b.CreateBr(after);
    b.SetInsertPoint(after);
    llvm::PHINode* angle = b.CreatePHI(near->getType(), 2);
    angle->addIncoming(near, before);
    angle->addIncoming(exact, far);
    return angle;
  }
  /// Null where LLVM's own way is as good: of single numbers, and where one of two is known not to be NaN. bf16 is read
  /// as the bits it is, and may be a signalling NaN.
  Value* extreme(llvm::IRBuilderBase& b, Operation* op, ArrayRef<Value*> args) const {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
    if (!powers || !type || type->getNumElements() < 4 || getElementTypeOrSelf(op->getResult(0).getType()).isBF16() ||
        llvm::isa<llvm::Constant>(args[0]) || llvm::isa<llvm::Constant>(args[1]))
      return nullptr;
    return largerOrSmaller(b, args[0], args[1], isa<arith::MaxNumFOp>(op), instructions.lanes());
  }
  Avx512PowersOfTwo instructions;
  bool hasVectorsOfF64 = false;
};

bool isNarrow(Type t) { return t.isF16() || t.isBF16(); }
Fp8 fp8Kind(Type t) { return isa<Float8E4M3FNType>(t) ? Fp8::e4m3 : Fp8::e5m2; }

/// Ops whose result is always one of the values of the operands' type: nothing to round.
bool staysExact(Operation* op) {
  return isa<arith::NegFOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, math::AbsFOp,
             math::CopySignOp, math::ClampFOp, math::FloorOp, math::CeilOp, math::TruncOp, math::RoundOp,
             math::RoundEvenOp, WidenE2m1Op>(op);
}

}  // namespace

Numbers::Numbers(llvm::IRBuilder<>& builder, const Target& target)
    : b_(builder), hasF16c_(hostFeatures(target).f16c), math_(std::make_shared<HostMath>(target)) {}

llvm::Type* Numbers::inRegister(Type t) const {
  if (isNarrow(t)) return b_.getFloatTy();
  if (t.isIndex()) return b_.getInt64Ty();
  if (isa<PtrType>(t)) return b_.getPtrTy();
  return llvmType(b_.getContext(), t);
}

llvm::Type* Numbers::inMemory(Type t) const {
  if (t.isInteger(1)) return b_.getInt8Ty();
  if (isNarrow(t)) return b_.getInt16Ty();
  return inRegister(t);
}

int64_t Numbers::bytes(Type t) {
  if (isa<PtrType>(t) || t.isIndex()) return 8;
  return std::max<int64_t>(1, t.getIntOrFloatBitWidth() / 8);
}

Value* Numbers::load(Type element, Value* address, unsigned width, bool isVolatile) {
  llvm::Type* t = inMemory(element);
  if (width > 1) t = llvm::FixedVectorType::get(t, width);
  return fromMemory(element, b_.CreateAlignedLoad(t, address, llvm::Align(bytes(element)), isVolatile));
}

void Numbers::store(Type element, Value* value, Value* address, bool isVolatile) {
  b_.CreateAlignedStore(toMemory(element, value), address, llvm::Align(bytes(element)), isVolatile);
}

Value* Numbers::fromMemory(Type element, Value* v) {
  if (element.isInteger(1)) return b_.CreateICmpNE(v, bits(v, 0));
  if (element.isF16()) return halfBitsToFloat(v);
  if (element.isBF16()) {
    v = b_.CreateZExt(v, like(v, b_.getInt32Ty()));
    return b_.CreateBitCast(b_.CreateShl(v, bits(v, 16)), like(v, b_.getFloatTy()));
  }
  return v;
}

Value* Numbers::toMemory(Type element, Value* v) {
  if (element.isInteger(1)) return b_.CreateZExt(v, like(v, b_.getInt8Ty()));
  if (element.isF16()) return floatToHalfBits(v);
  if (element.isBF16()) {
    v = b_.CreateBitCast(v, like(v, b_.getInt32Ty()));
    return b_.CreateTrunc(b_.CreateLShr(v, bits(v, 16)), like(v, b_.getInt16Ty()));
  }
  return v;
}

llvm::Constant* Numbers::constant(Attribute value) {
  if (auto f = dyn_cast<FloatAttr>(value); f && isNarrow(f.getType())) {
    bool lost;
    llvm::APFloat wide = f.getValue();
    wide.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &lost);
    return llvm::ConstantFP::get(b_.getContext(), wide);
  }
  return llvmConstant(b_.getContext(), value);
}

Value* Numbers::splat(Value* scalar, unsigned width) {
  return width > 1 && !scalar->getType()->isVectorTy() ? b_.CreateVectorSplat(width, scalar) : scalar;
}

Value* Numbers::widen(Type from, Type to, Value* v) {
  if (from == to) return v;
  if (isF8(from)) return roundTo(to, fp8ToF32(b_, v, fp8Kind(from)));
  if (from.isInteger()) return b_.CreateSExt(v, like(v, inRegister(to)));
  return roundTo(to, v);
}

Value* Numbers::roundTo(Type element, Value* x) {
  if (x->getType()->getScalarType()->isDoubleTy() && !element.isF64())
    x = element.isF32() ? b_.CreateFPTrunc(x, like(x, b_.getFloatTy())) : doubleToFloatOdd(x);
  if (element.isF16()) return halfBitsToFloat(floatToHalfBits(x));
  if (element.isBF16()) return roundToBf16(x);
  if (isF8(element)) return f32ToFp8(b_, x, fp8Kind(element));
  if (element.isF64() && x->getType()->getScalarType()->isFloatTy())
    return b_.CreateFPExt(x, like(x, b_.getDoubleTy()));
  return x;
}

/// f64 to f32 rounded to odd, so that a second rounding to fewer bits gives what one rounding from f64 would.
Value* Numbers::doubleToFloatOdd(Value* x) {
  Value* f = b_.CreateFPTrunc(x, like(x, b_.getFloatTy()));
  Value* back = b_.CreateFPExt(f, x->getType());
  Value* word = b_.CreateBitCast(f, like(x, b_.getInt32Ty()));
  auto magnitude = [&](Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  Value* tooBig = b_.CreateFCmpOGT(magnitude(back), magnitude(x));
  Value* towardsZero = b_.CreateSub(word, b_.CreateZExt(tooBig, word->getType()));
  Value* odd = b_.CreateOr(towardsZero, bits(word, 1));
  return b_.CreateBitCast(b_.CreateSelect(b_.CreateFCmpONE(back, x), odd, word), f->getType());
}

Value* Numbers::roundToBf16(Value* x) {
  Value* w = b_.CreateBitCast(x, like(x, b_.getInt32Ty()));
  Value* lsb = b_.CreateAnd(b_.CreateLShr(w, bits(w, 16)), bits(w, 1));
  Value* rounded = b_.CreateAnd(b_.CreateAdd(w, b_.CreateAdd(lsb, bits(w, 0x7fff))), bits(w, 0xffff0000));
  // A NaN must not carry into infinity or lose its payload's only bit.
  Value* quiet = b_.CreateAnd(b_.CreateOr(w, bits(w, 0x00400000)), bits(w, 0xffff0000));
  return b_.CreateBitCast(b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded), x->getType());
}

Value* Numbers::floatToHalfBits(Value* x) {
  llvm::Type* i16 = like(x, b_.getInt16Ty());
  if (hasF16c_) return b_.CreateBitCast(b_.CreateFPTrunc(x, like(x, b_.getHalfTy())), i16);
  // Plain integer arithmetic; the call that LLVM would make for it is not always there to link.
  llvm::Type* i32 = like(x, b_.getInt32Ty());
  Value* w = b_.CreateBitCast(x, i32);
  Value* sign = b_.CreateAnd(b_.CreateLShr(w, bits(w, 16)), bits(w, 0x8000));
  Value* magnitude = b_.CreateAnd(w, bits(w, 0x7fffffff));
  Value* lsb = b_.CreateAnd(b_.CreateLShr(magnitude, bits(w, 13)), bits(w, 1));
  Value* normal = b_.CreateLShr(
      b_.CreateAdd(b_.CreateSub(magnitude, bits(w, 112u << 23)), b_.CreateAdd(lsb, bits(w, 0xfff))), bits(w, 13));
  // Adding 0.5 puts the last bit of a half subnormal (2^-24) at the last bit of the float, rounded by the adder.
  Value* tiny = b_.CreateBitCast(
      b_.CreateFAdd(b_.CreateBitCast(magnitude, x->getType()), llvm::ConstantFP::get(x->getType(), 0.5)), i32);
  Value* subnormal = b_.CreateSub(tiny, bits(w, 0x3f000000));
  Value* r = b_.CreateSelect(b_.CreateICmpULT(magnitude, bits(w, 113u << 23)), subnormal, normal);
  r = b_.CreateSelect(b_.CreateICmpUGE(magnitude, bits(w, 0x477ff000)), bits(w, 0x7c00), r);  // 65520 and up: infinity
  r = b_.CreateSelect(b_.CreateICmpUGT(magnitude, bits(w, 0x7f800000)), bits(w, 0x7e00), r);
  return b_.CreateTrunc(b_.CreateOr(r, sign), i16);
}

Value* Numbers::halfBitsToFloat(Value* h) {
  if (hasF16c_) return b_.CreateFPExt(b_.CreateBitCast(h, like(h, b_.getHalfTy())), like(h, b_.getFloatTy()));
  llvm::Type* f32 = like(h, b_.getFloatTy());
  Value* w = b_.CreateZExt(h, like(h, b_.getInt32Ty()));
  Value* sign = b_.CreateShl(b_.CreateAnd(w, bits(w, 0x8000)), bits(w, 16));
  Value* magnitude = b_.CreateAnd(w, bits(w, 0x7fff));
  Value* shifted = b_.CreateShl(magnitude, bits(w, 13));
  Value* normal = b_.CreateAdd(shifted, bits(w, 112u << 23));
  Value* special = b_.CreateOr(shifted, bits(w, 0x7f800000));
  Value* subnormal = b_.CreateBitCast(
      b_.CreateFMul(b_.CreateUIToFP(magnitude, f32), llvm::ConstantFP::get(f32, 0x1p-24)), w->getType());
  Value* r = b_.CreateSelect(b_.CreateICmpUGE(magnitude, bits(w, 0x7c00)), special, normal);
  r = b_.CreateSelect(b_.CreateICmpULT(magnitude, bits(w, 0x400)), subnormal, r);
  return b_.CreateBitCast(b_.CreateOr(r, sign), f32);
}

Numbers::Values Numbers::cast(Operation* op, Value* x, bool& handled) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType()), to = getElementTypeOrSelf(op->getResult(0).getType());
  llvm::Type* reg = inRegister(to) ? like(x, inRegister(to)) : nullptr;
  handled = reg != nullptr;
  if (!handled) return {};
  if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    if (isF8(from)) x = fp8ToF32(b_, x, fp8Kind(from));
    return {roundTo(to, x)};
  }
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op)) {
    llvm::Type* wide = like(x, to.isF64() ? b_.getDoubleTy() : b_.getFloatTy());
    return {roundTo(to, isa<arith::SIToFPOp>(op) ? b_.CreateSIToFP(x, wide) : b_.CreateUIToFP(x, wide))};
  }
  if (isa<arith::BitcastOp>(op)) {
    if (isNarrow(from)) x = toMemory(from, x);
    return {isNarrow(to) ? fromMemory(to, x) : b_.CreateBitCast(x, reg)};
  }
  if (isa<arith::IndexCastOp>(op)) return {b_.CreateSExtOrTrunc(x, reg)};
  if (isa<arith::IndexCastUIOp>(op)) return {b_.CreateZExtOrTrunc(x, reg)};
  handled = false;
  return {};
}

/// Lower and upper halves of products of vectors of i32: those of even and of odd lanes each lie where both halves do.
Numbers::Values Numbers::wholeProduct(Value* x, Value* y, bool isSigned) {
  const auto lanes = static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  auto* wide = llvm::FixedVectorType::get(b_.getInt64Ty(), lanes / 2);
  auto product = [&](bool odd) {
    auto lanesOf = [&](Value* v) {
      v = b_.CreateBitCast(v, wide);
      if (isSigned) return b_.CreateAShr(odd ? v : b_.CreateShl(v, bits(v, 32)), bits(v, 32));
      return odd ? b_.CreateLShr(v, bits(v, 32)) : b_.CreateAnd(v, bits(v, 0xffffffff));
    };
    return b_.CreateBitCast(b_.CreateMul(lanesOf(x), lanesOf(y)), x->getType());
  };
  Value *even = product(false), *odd = product(true);
  Values halves;
  for (int half : {0, 1}) {
    llvm::SmallVector<int> from;
    for (int lane = 0; lane < lanes; lane += 2) from.append({lane + half, lanes + lane + half});
    halves.push_back(b_.CreateShuffleVector(even, odd, from));
  }
  return halves;
}

/// Shifts by the width or more give what shifting bit by bit would: zeros, or copies of the sign.
Value* Numbers::shift(Operation* op, llvm::ArrayRef<Value*> a) {
  unsigned width = a[0]->getType()->getScalarSizeInBits();
  Value* inRange = b_.CreateICmpULT(a[1], bits(a[1], width));
  if (isa<arith::ShRSIOp>(op)) return b_.CreateAShr(a[0], b_.CreateSelect(inRange, a[1], bits(a[1], width - 1)));
  // The shifted value is poison out of range; select does not look at the arm it drops.
  Value* r = isa<arith::ShLIOp>(op) ? b_.CreateShl(a[0], a[1]) : b_.CreateLShr(a[0], a[1]);
  return b_.CreateSelect(inRange, r, bits(a[0], 0));
}

Numbers::Values Numbers::apply(Operation* op, llvm::ArrayRef<Value*> args) {
  if (args.size() == 1) {
    bool handled;
    Values v = cast(op, args[0], handled);
    if (handled && !v.empty()) return v;
  }
  if (isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op)) return {shift(op, args)};
  if (isa<arith::MulUIExtendedOp, arith::MulSIExtendedOp>(op))
    if (auto* type = llvm::dyn_cast<llvm::FixedVectorType>(args[0]->getType());
        type && type->getElementType()->isIntegerTy(32) && type->getNumElements() % 2 == 0)
      return wholeProduct(args[0], args[1], isa<arith::MulSIExtendedOp>(op));
  if (isa<arith::SelectOp>(op)) return {b_.CreateSelect(args[0], args[1], args[2])};
  llvm::SmallVector<Value*, 4> wide(args.begin(), args.end());
  for (auto [value, operand] : llvm::zip(wide, op->getOperands()))
    if (Type t = getElementTypeOrSelf(operand.getType()); isF8(t)) value = fp8ToF32(b_, value, fp8Kind(t));
  Values r = emitElementwise(b_, op, wide, *math_);
  for (auto [value, result] : llvm::zip(r, op->getResults()))
    if (Type t = getElementTypeOrSelf(result.getType()); isF8(t) || (isNarrow(t) && !staysExact(op)))
      value = roundTo(t, value);
  return r;
}

}  // namespace tile::ir::host
