// byte_floats.cpp - see byte_floats.h. A float whose last digit counts 1 and whose low bits are a byte is that byte
// plus a power of two; subtracting it is exact. f16 has room for a byte in its ten digits, two elements to a register;
// bf16 has not, so these go through f32, whose upper half the result is.
#include "compiler/gpu/lowering/byte_floats.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

bool hasByteFloats(Operation* op) {
  if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op)) return false;
  const Type to = getElementTypeOrSelf(op->getResult(0).getType());
  return getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(8) && (to.isF16() || to.isBF16());
}

std::array<llvm::Value*, 4> convertBytes(llvm::IRBuilderBase& b, Operation* op, std::array<llvm::Value*, 4> x) {
  llvm::Value* bytes = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt8Ty(), 4));
  for (uint64_t i = 0; i < 4; ++i) bytes = b.CreateInsertElement(bytes, x[i], i);
  bytes = b.CreateBitCast(bytes, b.getInt32Ty());
  // Signed ones count from -128.
  const bool isSigned = isa<arith::SIToFPOp>(op);
  const double below = isSigned ? 128 : 0;
  if (isSigned) bytes = b.CreateXor(bytes, b.getInt32(0x80808080));
  auto permute = [&](llvm::Value* high, uint32_t selector) {
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {bytes, high, b.getInt32(selector)});
  };
  std::array<llvm::Value*, 4> out{};
  if (getElementTypeOrSelf(op->getResult(0).getType()).isF16()) {
    auto* pairType = llvm::FixedVectorType::get(b.getHalfTy(), 2);
    llvm::Value* offset = llvm::ConstantFP::get(pairType, -(1024 + below));
    for (uint32_t pair = 0; pair < 2; ++pair) {
      llvm::Value* halves = permute(b.getInt32(0x64646464), pair ? 0x4342 : 0x4140);  // 0x6400: 1024
      halves = b.CreateFAdd(b.CreateBitCast(halves, pairType), offset);
      for (uint32_t i = 0; i < 2; ++i) out[2 * pair + i] = b.CreateExtractElement(halves, uint64_t{i});
    }
    return out;
  }
  for (uint32_t i = 0; i < 4; ++i) {
    llvm::Value* number = b.CreateBitCast(permute(b.getInt32(0x4b000000), 0x7540 + i), b.getFloatTy());  // 2^23
    number = b.CreateFAdd(number, llvm::ConstantFP::get(b.getFloatTy(), -(8388608 + below)));
    number = b.CreateLShr(b.CreateBitCast(number, b.getInt32Ty()), 16);
    out[i] = b.CreateBitCast(b.CreateTrunc(number, b.getInt16Ty()), b.getBFloatTy());
  }
  return out;
}

}  // namespace tile::ir
