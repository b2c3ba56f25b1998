// byte_floats.cpp - see byte_floats.h. A float whose last digit counts 1 and whose low bits are a byte is that byte
// plus a power of two; subtracting it is exact. f16 has room for a byte in its ten digits, two elements to a register;
// bf16 has room for seven bits (numbers of 4 bits, mostly); other bytes go through f32, whose upper half the result is.
// Bytes of words (`x >> 8 & 255`) become f32 in the same way: the instruction that takes them out of the word puts them
// there. The conversion shares its slow unit with exponentials and roots, and LLVM would subtract two such numbers as
// integers and convert both the bytes and their difference. Bytes that lie alone are converted in one instruction,
// which was faster on an H200 (filters of bytes) than two.
#include "compiler/gpu/lowering/byte_floats.h"

#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {
using namespace mlir;

bool hasByteFloats(Operation* op) {
  if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op)) return false;
  const Type to = getElementTypeOrSelf(op->getResult(0).getType());
  return getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(8) && (to.isF16() || to.isBF16());
}

/// Whether the bytes are known to be 0 to 127, or -64 to 63: what is to be added for numbers of seven bits.
static std::optional<int> toSevenBits(Operation* op, const Facts& facts) {
  const Range range = facts.rangeOf(op->getOperand(0));
  if (range.min >= 0 && range.max < 128) return 0;
  if (isa<arith::SIToFPOp>(op) && range.min >= -64 && range.max < 64) return 64;
  return std::nullopt;
}

std::array<llvm::Value*, 4> convertBytes(llvm::IRBuilderBase& b, Operation* op, const Facts& facts,
                                         std::array<llvm::Value*, 4> x) {
  llvm::Value* bytes = llvm::PoisonValue::get(llvm::FixedVectorType::get(b.getInt8Ty(), 4));
  for (uint64_t i = 0; i < 4; ++i) bytes = b.CreateInsertElement(bytes, x[i], i);
  bytes = b.CreateBitCast(bytes, b.getInt32Ty());
  const bool isHalf = getElementTypeOrSelf(op->getResult(0).getType()).isF16();
  const auto seven = isHalf ? std::nullopt : toSevenBits(op, facts);
  // Signed ones count from -128, or from -64: the sum modulo 128 is the seven bits with the highest one turned.
  const bool isSigned = isa<arith::SIToFPOp>(op);
  const int added = seven.value_or(0);
  const double below = seven ? added : isSigned ? 128 : 0;
  if (added)
    bytes = b.CreateAnd(b.CreateXor(bytes, b.getInt32(0x40404040)), b.getInt32(0x7f7f7f7f));
  else if (!seven && isSigned)
    bytes = b.CreateXor(bytes, b.getInt32(0x80808080));
  auto permute = [&](llvm::Value* high, uint32_t selector) {
    return b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {bytes, high, b.getInt32(selector)});
  };
  std::array<llvm::Value*, 4> out{};
  if (isHalf || seven) {
    auto* pairType = llvm::FixedVectorType::get(isHalf ? b.getHalfTy() : b.getBFloatTy(), 2);
    llvm::Value* offset = llvm::ConstantFP::get(pairType, -((isHalf ? 1024 : 128) + below));
    llvm::Value* high = b.getInt32(isHalf ? 0x64646464 : 0x43434343);  // 0x6400: 1024; 0x4300: 128
    for (uint32_t pair = 0; pair < 2; ++pair) {
      llvm::Value* both = permute(high, pair ? 0x4342 : 0x4140);
      both = b.CreateFAdd(b.CreateBitCast(both, pairType), offset);
      for (uint32_t i = 0; i < 2; ++i) out[2 * pair + i] = b.CreateExtractElement(both, uint64_t{i});
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

llvm::Value* convertByteOfWord(llvm::IRBuilderBase& b, Operation* op, llvm::Value* x) {
  using namespace llvm::PatternMatch;
  if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op) || !getElementTypeOrSelf(op->getResult(0).getType()).isF32() ||
      !x->getType()->isIntegerTy(32))
    return nullptr;
  llvm::Value *word = nullptr, *shifted = nullptr;
  uint64_t shift = 0;
  if (match(x, m_c_And(m_Value(word), m_SpecificInt(0xff)))) {
    if (match(word, m_Shr(m_Value(shifted), m_ConstantInt(shift))) && shift % 8 == 0 && shift < 32)
      word = shifted;
    else
      shift = 0;
  } else if (match(x, m_LShr(m_Value(word), m_SpecificInt(24)))) {
    shift = 24;
  } else {
    return nullptr;
  }
  // The byte as the lowest digits of 2^23, whose last one counts 1: one instruction takes it there from its place.
  constexpr uint32_t kWholeBits = 0x4b000000;
  constexpr double kWhole = 8388608;
  const auto selector = static_cast<uint32_t>(0x7540 + shift / 8);
  llvm::Value* bits =
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_prmt, {word, b.getInt32(kWholeBits), b.getInt32(selector)});
  return b.CreateFAdd(b.CreateBitCast(bits, b.getFloatTy()), llvm::ConstantFP::get(b.getFloatTy(), -kWhole));
}

/// Explicit digits of a 16-bit float.
static int digitsOf(Type to) { return to.isF16() ? 10 : 7; }

std::optional<int64_t> lowestOfFew(Operation* op, const Facts& facts) {
  if (!isa<arith::SIToFPOp, arith::UIToFPOp>(op) || !isa<RankedTensorType>(op->getResult(0).getType()))
    return std::nullopt;
  const Type from = getElementTypeOrSelf(op->getOperand(0).getType()),
             to = getElementTypeOrSelf(op->getResult(0).getType());
  if (from.getIntOrFloatBitWidth() < 16 || (!to.isF16() && !to.isBF16())) return std::nullopt;
  const Range range = facts.rangeOf(op->getOperand(0));
  if (isa<arith::UIToFPOp>(op) && !range.isNonNegative()) return std::nullopt;  // negative: large
  const int64_t room = int64_t{1} << digitsOf(to);
  // The power of two less the lowest value must be a float, too.
  if (range.min < -room || range.max - range.min >= room || range.max > 2 * room) return std::nullopt;
  return range.min;
}

/// `high` 2^16 + `low`. Of sums and differences (a weight less its zero point) this is one of such words: two elements
/// are added at a time, and a word that many of them share (zero points) is made once.
static llvm::Value* inOneWord(llvm::IRBuilderBase& b, llvm::Value* low, llvm::Value* high, int depth = 0) {
  constexpr int kDeepest = 3;
  auto *x = llvm::dyn_cast<llvm::BinaryOperator>(low), *y = llvm::dyn_cast<llvm::BinaryOperator>(high);
  const bool areAlike = x && y && x->getOpcode() == y->getOpcode();
  if (!areAlike || depth == kDeepest ||
      (x->getOpcode() != llvm::Instruction::Add && x->getOpcode() != llvm::Instruction::Sub))
    return b.CreateAdd(b.CreateShl(high, 16), low);
  return b.CreateBinOp(x->getOpcode(), inOneWord(b, x->getOperand(0), y->getOperand(0), depth + 1),
                       inOneWord(b, x->getOperand(1), y->getOperand(1), depth + 1));
}

std::array<llvm::Value*, 2> convertFew(llvm::IRBuilderBase& b, Operation* op, int64_t lowest,
                                       std::array<llvm::Value*, 2> x) {
  const bool half = getElementTypeOrSelf(op->getResult(0).getType()).isF16();
  const int64_t room = int64_t{1} << digitsOf(getElementTypeOrSelf(op->getResult(0).getType()));
  for (llvm::Value*& value : x) value = b.CreateSExtOrTrunc(value, b.getInt32Ty());
  // Both in one word: what a negative lower one borrows, the sum with the power of two gives back.
  const int64_t bits = (half ? 0x6400 : 0x4300) - lowest;
  llvm::Value* both = b.CreateAdd(inOneWord(b, x[0], x[1]), b.getInt32(static_cast<uint32_t>(bits << 16 | bits)));
  auto* pairType = llvm::FixedVectorType::get(half ? b.getHalfTy() : b.getBFloatTy(), 2);
  both = b.CreateFAdd(b.CreateBitCast(both, pairType),
                      llvm::ConstantFP::get(pairType, static_cast<double>(lowest - room)));
  return {b.CreateExtractElement(both, uint64_t{0}), b.CreateExtractElement(both, uint64_t{1})};
}

}  // namespace tile::ir
