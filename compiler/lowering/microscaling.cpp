// microscaling.cpp - see microscaling.h. Works on scalars and vectors alike.
#include "compiler/lowering/microscaling.h"

#include "compiler/lowering/elementwise.h"

namespace tile::ir {

std::array<llvm::Value*, 2> widenE2m1(llvm::IRBuilderBase& b, llvm::Value* bytes) {
  llvm::Type* i32 = withElement(bytes->getType(), b.getInt32Ty());
  llvm::Type* f32 = withElement(bytes->getType(), b.getFloatTy());
  llvm::Value* word = b.CreateZExt(bytes, i32);
  // Exponent and mantissa at the place of a float's lowest ones: 2^126 too small, subnormals included.
  auto number = [&](llvm::Value* code) {
    llvm::Value* magnitude = b.CreateShl(b.CreateAnd(code, llvm::ConstantInt::get(i32, 7)), 22);
    llvm::Value* sign = b.CreateShl(b.CreateAnd(code, llvm::ConstantInt::get(i32, 8)), 28);
    llvm::Value* small = b.CreateBitCast(b.CreateOr(magnitude, sign), f32);
    return b.CreateFMul(small, llvm::ConstantFP::get(f32, 0x1p126));
  };
  return {number(word), number(b.CreateLShr(word, 4))};
}

llvm::Value* widenE8m0(llvm::IRBuilderBase& b, llvm::Value* bytes) {
  llvm::Type* i32 = withElement(bytes->getType(), b.getInt32Ty());
  llvm::Value* word = b.CreateZExt(bytes, i32);
  auto constant = [&](uint32_t v) { return llvm::ConstantInt::get(i32, v); };
  // A float's exponent. The first one is subnormal, the last one NaN: both want the mantissa's upper bit.
  llvm::Value* ends = b.CreateICmpEQ(b.CreateAnd(b.CreateAdd(word, constant(1)), constant(0xfe)), constant(0));
  llvm::Value* bits = b.CreateOr(b.CreateShl(word, 23), b.CreateSelect(ends, constant(0x400000), constant(0)));
  return b.CreateBitCast(bits, withElement(bytes->getType(), b.getFloatTy()));
}

}  // namespace tile::ir
