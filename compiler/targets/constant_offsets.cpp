// constant_offsets.cpp - see constant_offsets.h.
#include "compiler/targets/constant_offsets.h"

#include <map>
#include <optional>
#include <tuple>

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"

namespace tile::ir {
using namespace llvm;
using namespace PatternMatch;

namespace {

/// (`place`, extended, plus `constant`) times `factor`: a number of 64 bits.
struct Parts {
  Value* place;
  bool isSigned;
  int64_t constant, factor;
};

/// Takes a constant factor of a product that did not wrap off it.
Value* withoutFactor(Value* number, bool isSigned, bool isUnsigned, int64_t& factor) {
  constexpr unsigned kMostBits = 16;
  Value* rest;
  const APInt* constant;
  const bool isShift = match(number, m_Shl(m_Value(rest), m_APInt(constant)));
  if (!isShift && !match(number, m_Mul(m_Value(rest), m_APInt(constant)))) return number;
  auto* product = cast<OverflowingBinaryOperator>(number);
  const bool isWhole = (isSigned && product->hasNoSignedWrap()) || (isUnsigned && product->hasNoUnsignedWrap());
  if (!isWhole || constant->isNegative() || constant->getActiveBits() > kMostBits) return number;
  if (isShift && constant->uge(kMostBits)) return number;
  factor *= isShift ? int64_t{1} << constant->getZExtValue() : constant->getSExtValue();
  return rest;
}

/// The parts of an extension whose operand may be a sum with a constant, or a multiple of one, that did not wrap.
std::optional<Parts> partsOf(Value* number) {
  auto* wide = dyn_cast<CastInst>(number);
  if (!wide || !isa<SExtInst, ZExtInst>(wide)) return std::nullopt;
  // What is not negative is extended either way.
  const bool isSigned = isa<SExtInst>(wide) || wide->hasNonNeg(), isUnsigned = isa<ZExtInst>(wide);
  int64_t factor = 1;
  Value *place, *sum = withoutFactor(wide->getOperand(0), isSigned, isUnsigned, factor);
  const APInt* constant;
  // Sums without carries: the sign is that of one of both.
  if (match(sum, m_DisjointOr(m_Value(place), m_APInt(constant))))
    return Parts{place, isSigned, isSigned ? constant->getSExtValue() : static_cast<int64_t>(constant->getZExtValue()),
                 factor};
  if (match(sum, m_Add(m_Value(place), m_APInt(constant)))) {
    auto* add = cast<OverflowingBinaryOperator>(sum);
    if (isSigned && add->hasNoSignedWrap()) return Parts{place, true, constant->getSExtValue(), factor};
    if (isUnsigned && add->hasNoUnsignedWrap())
      return Parts{place, false, static_cast<int64_t>(constant->getZExtValue()), factor};
  }
  return Parts{sum, isSigned, 0, factor};
}

/// Addresses of accesses hold constants of 24 bits.
constexpr int64_t kMostBytes = (int64_t{1} << 23) - 16;

/// An address and what it is made of; of `constant` 0 it is as it should be.
struct Address {
  GetElementPtrInst* gep;
  Value *pointer, *place;
  bool isSigned;
  int64_t constant, size;
  auto start() const { return std::tuple(pointer, place, isSigned, size); }
};

std::optional<Address> addressOf(GetElementPtrInst& gep) {
  if (gep.getNumIndices() != 1 || !gep.getType()->isPointerTy() || gep.getPointerAddressSpace() == 3)
    return std::nullopt;
  Value* index = gep.getOperand(1);
  if (!index->getType()->isIntegerTy(64)) return std::nullopt;
  int64_t size = gep.getDataLayout().getTypeAllocSize(gep.getSourceElementType()).getFixedValue();
  Value* number = withoutFactor(index, true, true, size);  // addresses do not wrap
  const std::optional<Parts> parts = partsOf(number);
  if (!parts || std::abs(parts->constant) > kMostBytes) return std::nullopt;
  size *= parts->factor;
  if (std::abs(parts->constant) > kMostBytes / size) return std::nullopt;
  return Address{&gep, gep.getPointerOperand(), parts->place, parts->isSigned, parts->constant, size};
}

bool hasProducts(Function& function) {
  return any_of(instructions(function), [](const Instruction& inst) {
    const auto* call = dyn_cast<CallBase>(&inst);
    if (!call) return false;
    if (const auto* text = dyn_cast<InlineAsm>(call->getCalledOperand()))
      return StringRef(text->getAsmString()).contains("mma.");
    return call->getCalledFunction() && call->getCalledFunction()->getName().contains("mma.");
  });
}

}  // namespace

PreservedAnalyses ConstantOffsets::run(Function& function, FunctionAnalysisManager&) {
  if (hasProducts(function)) return PreservedAnalyses::all();
  SmallVector<Address> addresses;
  for (Instruction& inst : instructions(function))
    if (auto* gep = dyn_cast<GetElementPtrInst>(&inst))
      if (const auto address = addressOf(*gep)) addresses.push_back(*address);
  std::map<decltype(addresses[0].start()), int> uses;
  for (const Address& address : addresses) ++uses[address.start()];
  SmallVector<GetElementPtrInst*> replaced;  // erased in the end: no new address may have the number of an old one
  for (const Address& address : addresses) {
    if (address.constant == 0 || uses[address.start()] == 1) continue;
    IRBuilder<> b(address.gep);
    Value* place = address.isSigned ? b.CreateSExt(address.place, b.getInt64Ty())
                                    : b.CreateZExt(address.place, b.getInt64Ty());
    // Of a pointer that was replaced itself: its successor.
    Value* start = b.CreatePtrAdd(address.gep->getPointerOperand(), b.CreateMul(place, b.getInt64(address.size)));
    address.gep->replaceAllUsesWith(b.CreatePtrAdd(start, b.getInt64(address.constant * address.size)));
    replaced.push_back(address.gep);
  }
  for (GetElementPtrInst* gep : replaced) gep->eraseFromParent();
  return replaced.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

}  // namespace tile::ir
