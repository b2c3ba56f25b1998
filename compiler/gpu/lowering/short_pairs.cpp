// short_pairs.cpp - see short_pairs.h.
#include "compiler/gpu/lowering/short_pairs.h"

#include "compiler/gpu/lowering/packed_bits.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

bool hasShortPairs(const Target& target, Operation* op) {
  return target.sm >= 90 &&
         isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(op) &&
         getElementTypeOrSelf(op->getResult(0).getType()).isInteger(16);
}

static bool hasPairedUser(const Target& target, Operation* op) {
  return llvm::any_of(op->getUsers(), [&](Operation* user) { return hasShortPairs(target, user); });
}

bool isForPairs(const Target& target, Operation* op) { return hasShortPairs(target, op) && hasPairedUser(target, op); }

bool widensToPairs(const Target& target, Operation* op) {
  return isa<arith::ExtUIOp, arith::ExtSIOp>(op) && getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(8) &&
         hasPairedUser(target, op);
}

llvm::SmallVector<llvm::Value*, 2> widenedPairs(llvm::IRBuilderBase& b, Operation* op,
                                                llvm::ArrayRef<llvm::Value*> bytes) {
  llvm::Value* word = wordOf(b, bytes);
  if (!word) return {};
  // Of a selector each digit is a byte: 0 to 3 of the word, 4 a zero, and 8 more for copies of its sign.
  const bool isSigned = isa<arith::ExtSIOp>(op);
  llvm::SmallVector<llvm::Value*, 2> pairs;
  for (uint32_t selector : {isSigned ? 0x9180u : 0x4140u, isSigned ? 0xB3A2u : 0x4342u})
    pairs.push_back(
        b.CreateBitCast(b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {word, b.getInt32(0), b.getInt32(selector)}),
                        llvm::FixedVectorType::get(b.getInt16Ty(), 2)));
  return pairs;
}

}  // namespace tile::ir
