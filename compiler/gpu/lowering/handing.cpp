// handing.cpp - scalars that the producer computes for the consumers (hand_scalars.cpp). A stage's payload is a row of
// 32-bit words, written and read four at a time; wider scalars take two of them, narrower ones are widened with zeros.
//
// All lanes read the same addresses, so the assembler knows that they hold the same, and branches on it are uniform.
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kVector = 4;

unsigned bitsOf(llvm::Type* type) { return type->getScalarSizeInBits(); }

void pushWords(Emitter& e, llvm::Value* value, llvm::SmallVectorImpl<llvm::Value*>& words) {
  llvm::IRBuilder<>& b = e.b;
  const unsigned bits = bitsOf(value->getType());
  value = b.CreateBitCast(value, b.getIntNTy(bits));
  if (bits <= 32) return words.push_back(b.CreateZExt(value, b.getInt32Ty()));
  value = b.CreateZExt(value, b.getInt64Ty());
  words.push_back(b.CreateTrunc(value, b.getInt32Ty()));
  words.push_back(b.CreateTrunc(b.CreateLShr(value, 32), b.getInt32Ty()));
}

/// The scalar of this type that `words` starts with; takes its words away.
llvm::Value* popScalar(Emitter& e, llvm::ArrayRef<llvm::Value*>& words, llvm::Type* type) {
  llvm::IRBuilder<>& b = e.b;
  const unsigned bits = bitsOf(type);
  llvm::Value* value = words[0];
  if (bits > 32) {
    llvm::Value* high = b.CreateShl(b.CreateZExt(words[1], b.getInt64Ty()), 32);
    value = b.CreateOr(b.CreateZExt(words[0], b.getInt64Ty()), high);
  }
  words = words.drop_front(bits > 32 ? 2 : 1);
  return b.CreateBitCast(b.CreateZExtOrTrunc(value, b.getIntNTy(bits)), type);
}

}  // namespace

void emitHandOver(Emitter& e, HandOverOp op) {
  llvm::IRBuilder<>& b = e.b;
  llvm::SmallVector<llvm::Value*> words;
  for (Value value : op.getValues()) pushWords(e, e.scalar(value), words);
  while (words.size() % kVector) words.push_back(e.i32(0));
  fillStage(e, op.getRing(), [&](llvm::Value* payload) {
    for (size_t at = 0; at < words.size(); at += kVector) {
      llvm::Value* row = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt32Ty(), kVector));
      for (size_t i = 0; i < kVector; ++i) row = b.CreateInsertElement(row, words[at + i], i);
      b.CreateAlignedStore(row, b.CreatePtrAdd(payload, e.i32(static_cast<int64_t>(4 * at))), llvm::Align(4 * kVector));
    }
  });
}

void emitTakeOver(Emitter& e, TakeOverOp op) {
  llvm::IRBuilder<>& b = e.b;
  const auto count = static_cast<size_t>(HandOverOp::wordsOf(op.getValues().getTypes()));
  llvm::Value* payload = ringPayload(e, op.getRing(), ringAcquire(e, op.getRing()));
  auto* type = llvm::FixedVectorType::get(b.getInt32Ty(), kVector);
  llvm::SmallVector<llvm::Value*> words;
  for (size_t at = 0; at < count; at += kVector) {
    llvm::Value* row = b.CreateAlignedLoad(type, b.CreatePtrAdd(payload, e.i32(static_cast<int64_t>(4 * at))),
                                           llvm::Align(4 * kVector));
    for (size_t i = 0; i < kVector; ++i) words.push_back(b.CreateExtractElement(row, i));
  }
  ringRelease(e, op.getRing(), nullptr, false);
  llvm::ArrayRef<llvm::Value*> rest = words;
  for (Value result : op.getResults()) e.define(result, popScalar(e, rest, e.elementType(result)));
}

}  // namespace tile::ir
