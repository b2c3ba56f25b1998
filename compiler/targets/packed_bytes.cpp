// packed_bytes.cpp - see packed_bytes.h.
#include "compiler/targets/packed_bytes.h"

#include <optional>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

namespace tile::ir {
using namespace llvm;
using namespace PatternMatch;

namespace {

constexpr unsigned kBytes = 4;

/// A number that becomes a byte: a float, to the nearest integer or towards zero, or a word.
struct Number {
  Value* value = nullptr;
  bool isUnsigned = false, isRounded = false;
  SmallVector<IntrinsicInst*, 2> ends;  ///< its extremes with constants, the last first
};

double lowest(bool isUnsigned) { return isUnsigned ? 0 : -128; }
double largest(bool isUnsigned) { return isUnsigned ? 255 : 127; }

bool isFloat(Value* value, double number) {
  const APFloat* real = nullptr;
  return match(value, m_APFloat(real)) && real->convertToDouble() == number;
}

/// The extreme of something and an integer, which comes second; null: it is none.
IntrinsicInst* extreme(Value* value) {
  auto* call = dyn_cast<IntrinsicInst>(value);
  if (!call || (call->getIntrinsicID() != Intrinsic::minnum && call->getIntrinsicID() != Intrinsic::maxnum))
    return nullptr;
  auto* end = dyn_cast<ConstantFP>(call->getArgOperand(1));
  return end && end->getValueAPF().isInteger() ? call : nullptr;
}

/// Whether it keeps its first operand inside the range of a byte, at one end.
bool isEndOfRange(IntrinsicInst* call, bool isUnsigned) {
  return isFloat(call->getArgOperand(1),
                 call->getIntrinsicID() == Intrinsic::minnum ? largest(isUnsigned) : lowest(isUnsigned));
}

/// x of min(max(x, lowest), largest), in either order; null: it is something else.
Value* insideOf(Value* value, bool isUnsigned) {
  IntrinsicInst* outer = extreme(value);
  IntrinsicInst* inner = outer ? extreme(outer->getArgOperand(0)) : nullptr;
  if (!inner || inner->getIntrinsicID() == outer->getIntrinsicID()) return nullptr;
  return isEndOfRange(outer, isUnsigned) && isEndOfRange(inner, isUnsigned) ? inner->getArgOperand(0) : nullptr;
}

/// x of x kept inside the range of a byte, zero where it is no number, as cvt.pack leaves it; otherwise `value`.
Value* unsaturated(Value* value, bool isUnsigned) {
  Value *compared = nullptr, *with = nullptr, *inside = nullptr;
  CmpPredicate is;
  if (!match(value, m_Select(m_FCmp(is, m_Value(compared), m_Value(with)), m_Value(inside), m_AnyZeroFP())))
    return value;
  const bool isNumber = (is == FCmpInst::FCMP_ORD && (with == compared || match(with, m_AnyZeroFP()))) ||
                        (is == FCmpInst::FCMP_OEQ && with == compared);
  if (!isNumber) return value;
  Value* x = insideOf(inside, isUnsigned);
  return x == compared ? x : value;
}

bool isRounding(Value* value) {
  auto* call = dyn_cast<IntrinsicInst>(value);
  return call && (call->getIntrinsicID() == Intrinsic::roundeven || call->getIntrinsicID() == Intrinsic::rint);
}

/// Rounds last what is rounded before it is kept inside of integers; saturation makes the last of two ends.
void roundLast(Number& number) {
  Value* at = number.value;
  while (IntrinsicInst* call = extreme(at)) number.ends.push_back(call), at = call->getArgOperand(0);
  number.isRounded = isRounding(at);
  if (!number.isRounded) return number.ends.clear();
  number.value = cast<IntrinsicInst>(at)->getArgOperand(0);
  // What is no number becomes the first end, so that one alone stays.
  if (number.ends.size() >= 2 && isEndOfRange(number.ends[0], number.isUnsigned))
    number.ends.erase(number.ends.begin());
}

/// What byte `byte` of a vector is made of; nullopt: of something else, or others want it, too.
std::optional<Number> numberOf(Value* byte) {
  if (!byte->hasOneUse()) return std::nullopt;
  if (auto* cast = dyn_cast<CastInst>(byte); cast && isa<FPToSIInst, FPToUIInst>(cast)) {
    if (!cast->getOperand(0)->getType()->isFloatTy()) return std::nullopt;
    Number number{cast->getOperand(0), isa<FPToUIInst>(cast), false, {}};
    number.value = unsaturated(number.value, number.isUnsigned);
    roundLast(number);
    return number;
  }
  Value* word = nullptr;
  if (!match(byte, m_Trunc(m_Value(word))) || !word->getType()->isIntegerTy(32)) return std::nullopt;
  for (bool isUnsigned : {false, true}) {
    const APInt low(32, static_cast<int>(lowest(isUnsigned)), /*isSigned=*/true);
    const APInt high(32, static_cast<int>(largest(isUnsigned)), /*isSigned=*/true);
    Value* x = nullptr;
    if (match(word, m_SMin(m_SMax(m_Value(x), m_SpecificInt(low)), m_SpecificInt(high))) ||
        match(word, m_SMax(m_SMin(m_Value(x), m_SpecificInt(high)), m_SpecificInt(low))))
      return Number{x, isUnsigned, false, {}};
  }
  return std::nullopt;
}

/// All elements of a vector made one by one, the last of which is `last`; empty: some are not known.
SmallVector<Value*> elementsOf(InsertElementInst* last) {
  SmallVector<Value*> elements(cast<FixedVectorType>(last->getType())->getNumElements());
  Value* at = last;
  while (auto* insert = dyn_cast<InsertElementInst>(at)) {
    auto* index = dyn_cast<ConstantInt>(insert->getOperand(2));
    if (!index || index->getZExtValue() >= elements.size() || (insert != last && !insert->hasOneUse())) return {};
    Value*& element = elements[index->getZExtValue()];
    if (!element) element = insert->getOperand(1);
    at = insert->getOperand(0);
  }
  return is_contained(elements, nullptr) ? SmallVector<Value*>() : elements;
}

/// The same unsigned byte of a value that is not max(x, 0). Of that and cvt.pack ptxas (13.0) makes F2IP.U8.RELU for
/// sm_90, an instruction that an H200 does not know (F2IP.S8.RELU it does).
Value* hidePositivePart(IRBuilder<>& b, Value* value) {
  // Saturation makes the maximum.
  while (auto* call = dyn_cast<IntrinsicInst>(value)) {
    if (call->getIntrinsicID() != Intrinsic::maxnum && call->getIntrinsicID() != Intrinsic::maximum) break;
    const bool isSecond = match(call->getArgOperand(0), m_AnyZeroFP());
    if (!isSecond && !match(call->getArgOperand(1), m_AnyZeroFP())) break;
    value = call->getArgOperand(isSecond ? 1 : 0);
  }
  // ptxas sees choices, too, and not through an end above, where saturation puts one anyway.
  const bool isChoice = match(value, m_Select(m_FCmp(m_Value(), m_Value()), m_Value(), m_AnyZeroFP())) ||
                        match(value, m_Select(m_FCmp(m_Value(), m_Value()), m_AnyZeroFP(), m_Value()));
  return isChoice ? b.CreateMinNum(value, ConstantFP::get(value->getType(), largest(/*isUnsigned=*/true))) : value;
}

/// A word of up to four bytes, the first lowest.
Value* pack(IRBuilder<>& b, ArrayRef<Number> numbers) {
  auto whole = [&](const Number& number) -> Value* {
    Value* value = number.value;
    if (value->getType()->isIntegerTy()) return value;
    for (IntrinsicInst* end : reverse(number.ends))
      value = b.CreateBinaryIntrinsic(end->getIntrinsicID(), value, end->getArgOperand(1));
    if (number.isUnsigned) value = hidePositivePart(b, value);
    return b.CreateIntrinsic(number.isRounded ? Intrinsic::nvvm_f2i_rn : Intrinsic::nvvm_f2i_rz, {value});
  };
  Type* word = b.getInt32Ty();
  InlineAsm* both = InlineAsm::get(
      FunctionType::get(word, {word, word, word}, false),
      numbers[0].isUnsigned ? "cvt.pack.sat.u8.s32.b32 $0, $1, $2, $3;" : "cvt.pack.sat.s8.s32.b32 $0, $1, $2, $3;",
      "=r,r,r,r", /*hasSideEffects=*/false);
  Value* packed = b.getInt32(0);
  for (size_t i = numbers.size(); i >= 2; i -= 2)
    packed = b.CreateCall(both, {whole(numbers[i - 1]), whole(numbers[i - 2]), packed});
  return packed;
}

bool rewrite(InsertElementInst* last) {
  const SmallVector<Value*> bytes = elementsOf(last);
  if (bytes.size() != 2 && (bytes.empty() || bytes.size() % kBytes != 0)) return false;
  SmallVector<Number> numbers;
  for (Value* byte : bytes) {
    const std::optional<Number> number = numberOf(byte);
    if (!number || (!numbers.empty() && number->isUnsigned != numbers[0].isUnsigned)) return false;
    numbers.push_back(*number);
  }
  IRBuilder<> b(last);
  Value* made = nullptr;
  if (bytes.size() == 2) {
    made = b.CreateTrunc(pack(b, numbers), b.getInt16Ty());
  } else {
    const auto words = static_cast<unsigned>(bytes.size()) / kBytes;
    made = PoisonValue::get(FixedVectorType::get(b.getInt32Ty(), words));
    for (unsigned i = 0; i < words; ++i)
      made = b.CreateInsertElement(made, pack(b, ArrayRef(numbers).slice(i * kBytes, kBytes)), i);
  }
  last->replaceAllUsesWith(b.CreateBitCast(made, last->getType()));
  RecursivelyDeleteTriviallyDeadInstructions(last);
  return true;
}

}  // namespace

PreservedAnalyses PackedBytes::run(Function& function, FunctionAnalysisManager&) {
  SmallVector<InsertElementInst*> vectors;
  for (Instruction& inst : instructions(function)) {
    auto* insert = dyn_cast<InsertElementInst>(&inst);
    if (!insert || !insert->getType()->getElementType()->isIntegerTy(8)) continue;
    const bool isLast = !insert->hasOneUse() || !isa<InsertElementInst>(*insert->user_begin());
    if (isLast && isa<FixedVectorType>(insert->getType())) vectors.push_back(insert);
  }
  bool changed = false;
  for (InsertElementInst* last : vectors) changed |= rewrite(last);
  if (!changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace tile::ir
