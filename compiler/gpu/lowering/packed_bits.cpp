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

bool isShift(Operation* op) { return isa<arith::ShLIOp, arith::ShRUIOp>(op); }

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

}  // namespace

llvm::Value* wordOf(llvm::IRBuilderBase& b, llvm::ArrayRef<llvm::Value*> regs) {
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
  const auto words = static_cast<unsigned>(type->getNumElements() / regs.size());
  if (words == 1) return b.CreateBitCast(source, b.getInt32Ty());
  return b.CreateExtractElement(b.CreateBitCast(source, llvm::FixedVectorType::get(b.getInt32Ty(), words)),
                                first / regs.size());
}

int packedElements(Operation* op) {
  if (!isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) && !isShift(op)) return 1;
  const unsigned bits = getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth();
  return bits == 8 || bits == 16 ? static_cast<int>(kWordBits / bits) : 1;
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
    const uint64_t by = *constantOf(args[1][0]), all = (uint64_t{1} << bits) - 1;
    const bool left = isa<arith::ShLIOp>(op);
    // What crosses into the neighbour is cut off.
    llvm::Value* kept = repeated(b, b.getIntN(bits, left ? all << by & all : all >> by), count);
    llvm::Value* moved = left ? b.CreateShl(words[0], by) : b.CreateLShr(words[0], by);
    result = b.CreateAnd(moved, kept);
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
