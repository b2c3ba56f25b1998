// fp8_pairs.cpp - see fp8_pairs.h.
#include "compiler/gpu/lowering/fp8_pairs.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

namespace {

bool isFp8(Type t) { return isa<Float8E4M3FNType, Float8E5M2Type>(t); }
bool isE4m3(Type t) { return isa<Float8E4M3FNType>(t); }
Type elementOf(Value v) { return getElementTypeOrSelf(v.getType()); }

}  // namespace

bool hasFp8Pairs(const Target& target, Operation* op) {
  if (target.sm < 89 || !isa<arith::ExtFOp, arith::TruncFOp>(op)) return false;
  // Between the two 8-bit types there is no conversion; two ops never fold to one.
  return isFp8(elementOf(op->getOperand(0))) != isFp8(elementOf(op->getResult(0)));
}

std::array<llvm::Value*, 2> convertFp8Pair(llvm::IRBuilderBase& b, Operation* op, std::array<llvm::Value*, 2> x) {
  const Type from = elementOf(op->getOperand(0)), to = elementOf(op->getResult(0));
  if (isFp8(to)) {
    // The first operand becomes the upper byte.
    const auto id = isE4m3(to) ? llvm::Intrinsic::nvvm_ff_to_e4m3x2_rn : llvm::Intrinsic::nvvm_ff_to_e5m2x2_rn;
    for (llvm::Value*& v : x) v = b.CreateFPCast(v, b.getFloatTy());
    llvm::Value* both = b.CreateIntrinsic(b.getInt16Ty(), id, {x[1], x[0]});
    return {b.CreateTrunc(both, b.getInt8Ty()), b.CreateTrunc(b.CreateLShr(both, 8), b.getInt8Ty())};
  }
  const auto id = isE4m3(from) ? llvm::Intrinsic::nvvm_e4m3x2_to_f16x2_rn : llvm::Intrinsic::nvvm_e5m2x2_to_f16x2_rn;
  auto wide = [&](llvm::Value* v) { return b.CreateZExt(v, b.getInt16Ty()); };
  llvm::Value* both = b.CreateOr(wide(x[0]), b.CreateShl(wide(x[1]), 8));
  llvm::Value* halves = b.CreateIntrinsic(llvm::FixedVectorType::get(b.getHalfTy(), 2), id, {both});
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
