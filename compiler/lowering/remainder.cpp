// remainder.cpp - see remainder.h.
#include "compiler/lowering/remainder.h"

#include <cmath>

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace tile::ir {
namespace {
using llvm::Value;

/// One function per type: a loop that takes the nearest multiple of |y| from what is left of |x|.
///   a, s = |x|, false
///   while a >= |y|:  d = |y| 2^k, so that a / d does not overflow
///                    r = a - rint(a / d) d;  s ^= r < 0;  a = |r|
///   a - |y| stands for a negative rest: |y| - a if s and a > 0
/// The nearest quotient leaves a remainder that is a float (it is a multiple of ulp(q) ulp(d) and at most half of
/// ulp(q) d), so no step rounds; the quotient loses 23 bits (f64: 52) in each.
llvm::Function* remainderOf(llvm::Module& module, llvm::Type* type) {
  const bool isDouble = type->isDoubleTy();
  const char* name = isDouble ? "tile_fmod_f64" : "tile_fmod_f32";
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::LLVMContext& context = module.getContext();
  auto* f = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                   llvm::Function::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::AlwaysInline);
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(context, label, f); };
  llvm::BasicBlock *entry = block("entry"), *head = block("head"), *step = block("step"), *done = block("done");
  llvm::IRBuilder<> b(entry);
  Value *x = f->getArg(0), *y = f->getArg(1);
  auto constant = [&](double v) { return llvm::ConstantFP::get(type, v); };
  auto abs = [&](Value* v) { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  Value *a0 = abs(x), *size = abs(y), *infinity = llvm::ConstantFP::getInfinity(type);
  // NaN and infinite x, NaN and zero y have no remainder; an ordered comparison with NaN ends the loop at once.
  Value* none = b.CreateOr(b.CreateFCmpUEQ(a0, infinity), b.CreateFCmpUEQ(size, constant(0.0)));
  Value* start = b.CreateSelect(none, llvm::ConstantFP::getNaN(type), a0);
  b.CreateBr(head);

  b.SetInsertPoint(head);
  llvm::PHINode *a = b.CreatePHI(type, 2), *negative = b.CreatePHI(b.getInt1Ty(), 2);
  a->addIncoming(start, entry), negative->addIncoming(b.getFalse(), entry);
  b.CreateCondBr(b.CreateFCmpOGE(a, size), step, done);

  b.SetInsertPoint(step);
  Value* d = size;
  for (int i = 0; i < 2; ++i) {  // out of range is infinite, and not smaller than a
    Value* larger = b.CreateFMul(d, constant(std::ldexp(1.0, isDouble ? 900 : 100)));
    d = b.CreateSelect(b.CreateFCmpOGT(a, larger), larger, d);
  }
  Value* q = b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, b.CreateFDiv(a, d));
  Value* r = b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {b.CreateFNeg(q), d, a});
  a->addIncoming(abs(r), step);
  negative->addIncoming(b.CreateXor(negative, b.CreateFCmpOLT(r, constant(0.0))), step);
  b.CreateBr(head);

  b.SetInsertPoint(done);
  Value* rest = b.CreateSelect(b.CreateAnd(negative, b.CreateFCmpOGT(a, constant(0.0))), b.CreateFSub(size, a), a);
  b.CreateRet(b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, x));
  return f;
}

/// By a power of two from 1 on, the whole part of whose quotient is exact: x - c trunc(x / c). Else null.
Value* remainderOfPower(llvm::IRBuilderBase& b, Value* x, Value* y) {
  auto* divisor = llvm::dyn_cast<llvm::ConstantFP>(y);
  const int exponent = divisor ? divisor->getValueAPF().getExactLog2Abs() : -1;
  if (exponent < 0 || exponent > 100) return nullptr;  // a quotient that is rounded to a subnormal is below 1
  auto constant = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  Value* quotient = exponent ? b.CreateFMul(x, constant(std::ldexp(1.0, -exponent))) : x;
  Value* whole = b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, quotient);
  Value* less = constant(-std::ldexp(1.0, exponent));
  Value* rest = b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {whole, less, x});
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, rest, x);
}

}  // namespace

Value* emitRemainder(llvm::IRBuilderBase& b, Value* x, Value* y) {
  llvm::Type *given = x->getType(), *element = given->getScalarType();
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(given)) {
    Value* r = llvm::PoisonValue::get(vector);
    for (unsigned i = 0; i < vector->getNumElements(); ++i)
      r = b.CreateInsertElement(r, emitRemainder(b, b.CreateExtractElement(x, i), b.CreateExtractElement(y, i)), i);
    return r;
  }
  const bool narrow = element->getScalarSizeInBits() < 32;  // the remainder of two f16 is one
  if (narrow) x = b.CreateFPExt(x, b.getFloatTy()), y = b.CreateFPExt(y, b.getFloatTy());
  Value* r = remainderOfPower(b, x, y);
  if (!r) r = b.CreateCall(remainderOf(*b.GetInsertBlock()->getModule(), x->getType()), {x, y});
  return narrow ? b.CreateFPTrunc(r, given) : r;
}

}  // namespace tile::ir
