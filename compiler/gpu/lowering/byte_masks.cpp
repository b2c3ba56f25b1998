// byte_masks.cpp - see byte_masks.h. The machine compares no bytes: each would be taken out of its word, and what was
// chosen put back. Here the uppermost bit of every byte says whether it holds, and is copied into all of its byte.
#include "compiler/gpu/lowering/byte_masks.h"

#include "compiler/gpu/lowering/packed_bits.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr uint32_t kTop = 0x80808080u, kRest = 0x7f7f7f7fu;

bool areBytes(Value value) {
  return isa<RankedTensorType>(value.getType()) && getElementTypeOrSelf(value.getType()).isInteger(8);
}

/// Four registers as a word: where they are one, or all alike.
llvm::Value* asWord(Emitter& e, Value value, size_t reg, bool& isWord) {
  const llvm::ArrayRef<llvm::Value*> bytes = e.regs(value).slice(reg, 4);
  if (llvm::Value* word = wordOf(e.b, bytes)) return isWord = true, word;
  return llvm::all_equal(bytes) ? e.packQuad(bytes) : nullptr;
}

/// The uppermost bits say where x != y.
llvm::Value* different(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) {
  llvm::Value* z = b.CreateXor(x, y);
  return b.CreateOr(b.CreateAdd(b.CreateAnd(z, kRest), b.getInt32(kRest)), z);
}

/// The uppermost bits say where x < y, bytes without a sign: where only y's is set, or neither's differ and the rest
/// borrows.
llvm::Value* less(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) {
  llvm::Value* left = b.CreateSub(b.CreateOr(x, kTop), b.CreateAnd(y, kRest));
  llvm::Value* alike = b.CreateNot(b.CreateXor(x, y));
  return b.CreateOr(b.CreateAnd(b.CreateNot(x), y), b.CreateAnd(alike, b.CreateNot(left)));
}

}  // namespace

llvm::Value* maskOfBytes(Emitter& e, Value flags, size_t reg) {
  auto compare = flags.getDefiningOp<arith::CmpIOp>();
  if (!compare || !areBytes(compare.getLhs()) || reg + 4 > e.regs(compare.getLhs()).size()) return nullptr;
  for (Operation* user : flags.getUsers())
    if (!isa<arith::SelectOp>(user) || !areBytes(user->getResult(0))) return nullptr;
  bool anyWord = false;
  llvm::Value *x = asWord(e, compare.getLhs(), reg, anyWord), *y = asWord(e, compare.getRhs(), reg, anyWord);
  if (!x || !y || !anyWord) return nullptr;
  llvm::IRBuilderBase& b = e.b;
  using P = arith::CmpIPredicate;
  const P predicate = compare.getPredicate();
  const bool isSigned = predicate == P::slt || predicate == P::sle || predicate == P::sgt || predicate == P::sge;
  if (isSigned) x = b.CreateXor(x, kTop), y = b.CreateXor(y, kTop);
  llvm::Value* holds = nullptr;
  bool opposite = false;
  switch (predicate) {
    case P::eq:
    case P::ne:
      holds = different(b, x, y), opposite = predicate == P::eq;
      break;
    case P::ult:
    case P::slt:
    case P::uge:
    case P::sge:
      // Against half of all numbers the uppermost bit is the answer.
      holds = y == b.getInt32(kTop) ? b.CreateNot(x) : less(b, x, y);
      opposite = predicate == P::uge || predicate == P::sge;
      break;
    default:  // x > y and x <= y
      holds = y == b.getInt32(kRest) ? x : less(b, y, x);
      opposite = predicate == P::ule || predicate == P::sle;
  }
  constexpr uint32_t kSigns = 0xba98;  // byte i of the result is the sign of byte i
  if (opposite) holds = b.CreateNot(holds);
  return b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {holds, b.getInt32(0), b.getInt32(kSigns)});
}

}  // namespace tile::ir
