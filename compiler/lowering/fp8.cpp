// fp8.cpp - see fp8.h. Works on scalars and vectors alike.
#include "compiler/lowering/fp8.h"

#include "compiler/lowering/elementwise.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir {
namespace {

struct Format {
  int mantissa, bias;
  unsigned maxFinite, nan;
};
constexpr Format formatOf(Fp8 kind) { return kind == Fp8::e4m3 ? Format{3, 7, 0x7e, 0x7f} : Format{2, 15, 0x7b, 0x7f}; }

}  // namespace

llvm::Value* fp8ToF32(llvm::IRBuilderBase& b, llvm::Value* bits, Fp8 kind) {
  llvm::Type* i16 = withElement(bits->getType(), b.getInt16Ty());
  llvm::Type* f16 = withElement(bits->getType(), b.getHalfTy());
  llvm::Type* f32 = withElement(bits->getType(), b.getFloatTy());
  llvm::Value* x = b.CreateZExt(bits, i16);
  // e5m2 is the upper byte of an f16.
  if (kind == Fp8::e5m2) return b.CreateFPExt(b.CreateBitCast(b.CreateShl(x, 8), f16), f32);
  // e4m3 bits at f16's place have an exponent 8 too small (bias 7 against 15): rescale, which also normalises
  // subnormals.
  llvm::Value* magnitude = b.CreateAnd(x, llvm::ConstantInt::get(i16, 0x7f));
  llvm::Value* half = b.CreateBitCast(b.CreateShl(magnitude, 7), f16);
  llvm::Value* value = b.CreateFMul(b.CreateFPExt(half, f32), llvm::ConstantFP::get(f32, 256.0));
  value = b.CreateSelect(b.CreateICmpEQ(magnitude, llvm::ConstantInt::get(i16, 0x7f)), llvm::ConstantFP::getNaN(f32),
                         value);
  llvm::Value* negative = b.CreateICmpUGE(x, llvm::ConstantInt::get(i16, 0x80));
  return b.CreateSelect(negative, b.CreateFNeg(value), value);
}

llvm::Value* toF32ForFp8(llvm::IRBuilderBase& b, llvm::Value* x) {
  llvm::Type *i32 = withElement(x->getType(), b.getInt32Ty()), *f32 = withElement(x->getType(), b.getFloatTy());
  llvm::Value* nearest = b.CreateFPCast(x, f32);
  if (!x->getType()->getScalarType()->isDoubleTy()) return nearest;
  llvm::Value* back = b.CreateFPExt(nearest, x->getType());
  auto magnitude = [&](llvm::Value* v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  llvm::Value* isAbove = b.CreateZExt(b.CreateFCmpOGT(magnitude(back), magnitude(x)), i32);
  llvm::Value* isInexact = b.CreateZExt(b.CreateFCmpONE(back, x), i32);
  llvm::Value* bits = b.CreateOr(b.CreateSub(b.CreateBitCast(nearest, i32), isAbove), isInexact);
  return b.CreateBitCast(bits, f32);
}

llvm::Value* f32ToFp8(llvm::IRBuilderBase& b, llvm::Value* x, Fp8 kind) {
  const Format f = formatOf(kind);
  llvm::Type* i32 = withElement(x->getType(), b.getInt32Ty());
  llvm::Type* f32 = x->getType();
  auto constant = [&](uint32_t v) { return llvm::ConstantInt::get(i32, v); };
  llvm::Value* bits = b.CreateBitCast(x, i32);
  llvm::Value* sign = b.CreateAnd(b.CreateLShr(bits, 24), constant(0x80));
  llvm::Value* magnitude = b.CreateAnd(bits, constant(0x7fffffff));
  // Normal results: round the f32 mantissa to the short one in integer arithmetic (a carry moves into the exponent).
  const int drop = 23 - f.mantissa;
  llvm::Value* odd = b.CreateAnd(b.CreateLShr(magnitude, drop), constant(1));
  llvm::Value* rounded = b.CreateLShr(b.CreateAdd(magnitude, b.CreateAdd(odd, constant((1u << (drop - 1)) - 1))), drop);
  llvm::Value* normal = b.CreateSub(rounded, constant(static_cast<uint32_t>(127 - f.bias) << f.mantissa));
  // Subnormal results: the value in units of the smallest one, rounded by adding 2^23 in f32.
  const double unitsPerOne = double(1ull << (f.bias - 1 + f.mantissa));
  llvm::Value* units = b.CreateFMul(b.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, unitsPerOne));
  llvm::Value* shifted = b.CreateBitCast(b.CreateFAdd(units, llvm::ConstantFP::get(f32, 8388608.0)), i32);
  llvm::Value* subnormal = b.CreateAnd(shifted, constant(0xff));
  llvm::Value* small = b.CreateICmpULT(magnitude, constant(static_cast<uint32_t>(127 - f.bias + 1) << 23));
  llvm::Value* r = b.CreateSelect(small, subnormal, normal);
  r = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, r, constant(f.maxFinite));
  r = b.CreateSelect(b.CreateICmpUGT(magnitude, constant(0x7f800000)), constant(f.nan), r);
  return b.CreateTrunc(b.CreateOr(r, sign), withElement(x->getType(), b.getInt8Ty()));
}

}  // namespace tile::ir
