// packed_bits.cpp - see packed_bits.h.
#include "compiler/gpu/lowering/packed_bits.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr unsigned kWordBits = 32;

bool isShift(Operation* op) { return isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op); }

/// Ops whose packed form takes about four instructions a word: worth it for bytes only, where four single ones, taken
/// out of their word and put back, are ten.
bool isOfBytes(Operation* op) { return isa<arith::ShRSIOp, arith::AddIOp, arith::SubIOp>(op); }

std::optional<uint64_t> constantOf(llvm::Value* value) {
  auto constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  if (!constant) return std::nullopt;
  return constant->getZExtValue();
}

/// One value in every element of a word.
llvm::Value* repeated(llvm::IRBuilderBase& b, llvm::Value* value, unsigned count) {
  const uint32_t ones = count == 4 ? 0x01010101u : 0x00010001u;
  return b.CreateMul(b.CreateZExt(value, b.getInt32Ty()), b.getInt32(ones));
}

/// The element bits that shifting by `by` leaves behind, in every element; signs are copied into the others.
llvm::Value* shifted(llvm::IRBuilderBase& b, Operation* op, llvm::Value* word, uint64_t by, unsigned count) {
  const unsigned bits = kWordBits / count;
  const uint64_t all = (uint64_t{1} << bits) - 1;
  const bool left = isa<arith::ShLIOp>(op);
  // What crosses into the neighbour is cut off.
  llvm::Value* kept = repeated(b, b.getIntN(bits, left ? all << by & all : all >> by), count);
  llvm::Value* moved = b.CreateAnd(left ? b.CreateShl(word, by) : b.CreateLShr(word, by), kept);
  if (!isa<arith::ShRSIOp>(op) || by == 0) return moved;
  // A product with one bit: the bits above it, as far as its own element goes.
  llvm::Value* signs = b.CreateAnd(moved, repeated(b, b.getIntN(bits, uint64_t{1} << (bits - 1 - by)), count));
  return b.CreateAdd(moved, b.CreateMul(signs, b.getInt32((uint32_t{2} << by) - 2)));
}

/// Sums and differences of bytes: what is below the uppermost bits cannot carry into a neighbour, and those bits are
/// added without a carry.
llvm::Value* addedBytes(llvm::IRBuilderBase& b, bool isSub, llvm::Value* x, llvm::Value* y) {
  llvm::Value *top = b.getInt32(0x80808080u), *rest = b.getInt32(0x7f7f7f7fu);
  if (isSub && llvm::isa<llvm::Constant>(y)) {  // x - 8 as x + 248: a constant costs less in front of a sum
    llvm::Value* mostly = b.CreateSub(top, b.CreateAnd(y, rest));
    y = b.CreateXor(mostly, b.CreateAnd(b.CreateNot(y), top));
    isSub = false;
  }
  if (isSub)
    return b.CreateXor(b.CreateSub(b.CreateOr(x, top), b.CreateAnd(y, rest)),
                       b.CreateAnd(b.CreateXor(x, b.CreateNot(y)), top));
  return b.CreateXor(b.CreateAdd(b.CreateAnd(x, rest), b.CreateAnd(y, rest)), b.CreateAnd(b.CreateXor(x, y), top));
}

}  // namespace

/// The integer whose parts the registers are, in order: an aligned run of one vector's elements. Null: no such run.
static llvm::Value* runOf(llvm::IRBuilderBase& b, llvm::ArrayRef<llvm::Value*> regs) {
  llvm::Value* source = nullptr;
  uint64_t first = 0;
  for (auto [i, reg] : llvm::enumerate(regs)) {
    auto element = llvm::dyn_cast<llvm::ExtractElementInst>(reg);
    auto lane = element ? llvm::dyn_cast<llvm::ConstantInt>(element->getIndexOperand()) : nullptr;
    if (!lane) return nullptr;
    if (i == 0) source = element->getVectorOperand(), first = lane->getZExtValue();
    if (element->getVectorOperand() != source || lane->getZExtValue() != first + i) return nullptr;
  }
  const auto* type = llvm::cast<llvm::FixedVectorType>(source->getType());
  if (first % regs.size() != 0 || type->getNumElements() % regs.size() != 0) return nullptr;
  const auto runs = static_cast<unsigned>(type->getNumElements() / regs.size());
  auto* integer = b.getIntNTy(static_cast<unsigned>(regs.size()) * type->getScalarSizeInBits());
  if (runs == 1) return b.CreateBitCast(source, integer);
  return b.CreateExtractElement(b.CreateBitCast(source, llvm::FixedVectorType::get(integer, runs)),
                                first / regs.size());
}

llvm::Value* wordOf(llvm::IRBuilderBase& b, llvm::ArrayRef<llvm::Value*> regs) {
  if (llvm::Value* word = runOf(b, regs)) return word;
  // Fragments of products are read as pairs of bytes: two of them are put together by one instruction.
  if (regs.size() != 4) return nullptr;
  llvm::Value *low = runOf(b, regs.take_front(2)), *high = low ? runOf(b, regs.take_back(2)) : nullptr;
  if (!high) return nullptr;
  llvm::Value* both = llvm::PoisonValue::get(llvm::FixedVectorType::get(low->getType(), 2));
  both = b.CreateInsertElement(b.CreateInsertElement(both, low, uint64_t{0}), high, uint64_t{1});
  return b.CreateBitCast(both, b.getInt32Ty());
}

int packedElements(Operation* op) {
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) && !isShift(op) && !isOfBytes(op)) return 1;
  const unsigned bits = getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth();
  return bits == 8 || (bits == 16 && !isOfBytes(op)) ? static_cast<int>(kWordBits / bits) : 1;
}

std::optional<llvm::SmallVector<llvm::Value*, 4>> emitPackedBits(llvm::IRBuilderBase& b, Operation* op,
                                                                 llvm::ArrayRef<llvm::ArrayRef<llvm::Value*>> args) {
  const auto count = static_cast<unsigned>(args[0].size());
  const unsigned bits = kWordBits / count;
  llvm::Value* words[2] = {};
  for (int i = 0; i < 2; ++i) {
    const bool same = llvm::all_equal(args[i]);
    if (isShift(op) && i == 1) {  // every element by the same number of bits, known now
      const auto by = constantOf(args[1][0]);
      if (!same || !by || *by >= bits) return std::nullopt;
      continue;
    }
    words[i] = same ? repeated(b, args[i][0], count) : wordOf(b, args[i]);
    if (!words[i]) return std::nullopt;
  }
  if (llvm::all_equal(args[0]) && (isShift(op) || llvm::all_equal(args[1]))) return std::nullopt;

  llvm::Value* result = nullptr;
  if (isShift(op)) {
    result = shifted(b, op, words[0], *constantOf(args[1][0]), count);
  } else if (isa<arith::AddIOp, arith::SubIOp>(op)) {
    result = addedBytes(b, isa<arith::SubIOp>(op), words[0], words[1]);
  } else if (isa<arith::AndIOp>(op)) {
    result = b.CreateAnd(words[0], words[1]);
  } else if (isa<arith::OrIOp>(op)) {
    result = b.CreateOr(words[0], words[1]);
  } else {
    result = b.CreateXor(words[0], words[1]);
  }
  llvm::Value* elements = b.CreateBitCast(result, llvm::FixedVectorType::get(b.getIntNTy(bits), count));
  llvm::SmallVector<llvm::Value*, 4> out;
  for (unsigned i = 0; i < count; ++i) out.push_back(b.CreateExtractElement(elements, uint64_t{i}));
  return out;
}

}  // namespace tile::ir
