// fp8_pairs.cpp - see fp8_pairs.h.
#include "compiler/gpu/lowering/fp8_pairs.h"

#include "compiler/dialect/dialect.h"
#include "compiler/lowering/fp8.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

namespace {

bool hasInstructions(const Target& target) { return target.sm >= 89; }
bool isE4m3(Type t) { return isa<Float8E4M3FNType>(t); }
Type elementOf(Value v) { return getElementTypeOrSelf(v.getType()); }

llvm::Type* twoHalves(llvm::IRBuilderBase& b) { return llvm::FixedVectorType::get(b.getHalfTy(), 2); }

llvm::Value* halvesByInstruction(llvm::IRBuilderBase& b, std::array<llvm::Value*, 2> x, bool e4m3) {
  auto wide = [&](llvm::Value* v) { return b.CreateZExt(v, b.getInt16Ty()); };
  return halvesOfFp8Pair(b, b.CreateOr(wide(x[0]), b.CreateShl(wide(x[1]), 8)), e4m3);
}

/// e5m2 is the upper byte of an f16. e4m3 one place further down has f16's fields with an exponent 8 too small (bias 7
/// against 15): a product puts it right, of subnormal numbers, too. All ones but the sign are no number.
llvm::Value* halvesOf(llvm::IRBuilderBase& b, std::array<llvm::Value*, 2> x, bool e4m3) {
  llvm::Value* bytes = llvm::Constant::getNullValue(llvm::FixedVectorType::get(b.getInt8Ty(), 4));
  for (uint64_t i = 0; i < 2; ++i) bytes = b.CreateInsertElement(bytes, x[i], 2 * i + 1);
  llvm::Value* upper = b.CreateBitCast(bytes, b.getInt32Ty());
  if (!e4m3) return b.CreateBitCast(upper, twoHalves(b));
  llvm::Value* magnitude = b.CreateAnd(upper, b.getInt32(0x7f007f00));
  llvm::Value* small = b.CreateBitCast(b.CreateLShr(magnitude, 1), twoHalves(b));
  llvm::Value* value = b.CreateFMul(small, llvm::ConstantFP::get(twoHalves(b), 256.0));
  llvm::Value* carry = b.CreateAnd(b.CreateAdd(magnitude, b.getInt32(0x01000100)), b.getInt32(0x80008000));
  llvm::Value* noNumber = b.CreateSub(carry, b.CreateLShr(carry, 7));
  llvm::Value* bits = b.CreateOr(b.CreateBitCast(value, b.getInt32Ty()), noNumber);
  return b.CreateBitCast(b.CreateOr(bits, b.CreateAnd(upper, b.getInt32(0x80008000))), twoHalves(b));
}

}  // namespace

llvm::Value* halvesOfFp8Pair(llvm::IRBuilderBase& b, llvm::Value* pair, bool e4m3) {
  const auto id = e4m3 ? llvm::Intrinsic::nvvm_e4m3x2_to_f16x2_rn : llvm::Intrinsic::nvvm_e5m2x2_to_f16x2_rn;
  return b.CreateIntrinsic(twoHalves(b), id, {pair});
}

bool hasFp8Pairs(const Target& target, Operation* op) {
  const bool makes = isa<arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp>(op) && isF8(elementOf(op->getResult(0)));
  if (!isa<arith::ExtFOp>(op) && !(makes && hasInstructions(target))) return false;
  // Between the two 8-bit types there is no conversion; two ops never fold to one.
  return isF8(elementOf(op->getOperand(0))) != isF8(elementOf(op->getResult(0)));
}

std::array<llvm::Value*, 2> convertFp8Pair(const Target& target, llvm::IRBuilderBase& b, Operation* op,
                                           std::array<llvm::Value*, 2> x) {
  const Type from = elementOf(op->getOperand(0)), to = elementOf(op->getResult(0));
  if (isF8(to)) {
    // The first operand becomes the upper byte.
    const auto id = isE4m3(to) ? llvm::Intrinsic::nvvm_ff_to_e4m3x2_rn : llvm::Intrinsic::nvvm_ff_to_e5m2x2_rn;
    // Of integers those that f32 rounds are far above the largest 8-bit float.
    for (llvm::Value*& v : x)
      v = isa<arith::SIToFPOp>(op)   ? b.CreateSIToFP(v, b.getFloatTy())
          : isa<arith::UIToFPOp>(op) ? b.CreateUIToFP(v, b.getFloatTy())
                                     : toF32ForFp8(b, v);
    llvm::Value* both = b.CreateIntrinsic(b.getInt16Ty(), id, {x[1], x[0]});
    return {b.CreateTrunc(both, b.getInt8Ty()), b.CreateTrunc(b.CreateLShr(both, 8), b.getInt8Ty())};
  }
  llvm::Value* halves = hasInstructions(target) ? halvesByInstruction(b, x, isE4m3(from)) : halvesOf(b, x, isE4m3(from));
  std::array<llvm::Value*, 2> out;
  for (unsigned i = 0; i < 2; ++i) {
    out[i] = b.CreateExtractElement(halves, i);
    if (to.isF16()) continue;
    out[i] = b.CreateFPExt(out[i], to.isF64() ? b.getDoubleTy() : b.getFloatTy());
    if (to.isBF16()) out[i] = b.CreateFPTrunc(out[i], b.getBFloatTy());  // exact: 8-bit floats have fewer digits
  }
  return out;
}

}  // namespace tile::ir
