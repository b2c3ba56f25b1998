// two_words.cpp - see two_words.h.
#include "compiler/targets/two_words.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Support/KnownBits.h"

namespace tile::ir {
using namespace llvm;
using namespace PatternMatch;

namespace {

constexpr uint64_t kLow = 0xFFFFFFFF;

Value* assembly(IRBuilder<>& b, const Twine& text, StringRef constraints, Type* result, ArrayRef<Value*> args) {
  SmallVector<Type*> types;
  for (Value* arg : args) types.push_back(arg->getType());
  auto* callee = InlineAsm::get(FunctionType::get(result, types, false), text.str(), constraints, false);
  return b.CreateCall(callee, args);
}

/// Low words of two factors that one instruction multiplies to all 64 bits; null: nothing to say that LLVM does not
/// see.
struct Factors {
  Value *x = nullptr, *y = nullptr;
};

/// Of two numbers below 2^32.
Factors unsignedFactors(IRBuilder<>& b, Value* x, Value* y, const DataLayout& layout) {
  auto isPlain = [](Value* v) { return isa<ZExtInst, Constant>(v); };  // LLVM's own way, which goes on
  auto fits = [&](Value* v) { return computeKnownBits(v, layout).countMinLeadingZeros() >= 32; };
  if ((isPlain(x) && isPlain(y)) || !fits(x) || !fits(y)) return {};
  auto word = [&](Value* v) {
    Value* whole;
    return b.CreateTrunc(match(v, m_And(m_Value(whole), m_SpecificInt(kLow))) ? whole : v, b.getInt32Ty());
  };
  return {word(x), word(y)};
}

/// Of two numbers from -2^31 up to below 2^31, one of which was cut to 32 bits and widened again: that is two shifts by
/// then. LLVM sees those that are only widened, and makes addresses of them in its own way.
Factors signedFactors(IRBuilder<>& b, Value* x, Value* y, const DataLayout& layout) {
  auto cut = [](Value* v) -> Value* {
    Value* whole;
    return match(v, m_AShr(m_Shl(m_Value(whole), m_SpecificInt(32)), m_SpecificInt(32))) ? whole : nullptr;
  };
  auto fits = [&](Value* v) { return ComputeNumSignBits(v, layout) > 32; };
  if ((!cut(x) && !cut(y)) || !fits(x) || !fits(y)) return {};
  auto word = [&](Value* v) { return b.CreateTrunc(cut(v) ? cut(v) : v, b.getInt32Ty()); };
  return {word(x), word(y)};
}

Value* wideProduct(BinaryOperator& product, const DataLayout& layout) {
  IRBuilder<> b(&product);
  const char* text = "mul.wide.u32 $0, $1, $2;";
  Factors words = unsignedFactors(b, product.getOperand(0), product.getOperand(1), layout);
  if (!words.x)
    text = "mul.wide.s32 $0, $1, $2;", words = signedFactors(b, product.getOperand(0), product.getOperand(1), layout);
  return words.x ? assembly(b, text, "=l,r,r", b.getInt64Ty(), {words.x, words.y}) : nullptr;
}

/// Is the lowest bit all that anybody looks at?
bool isForLowestBit(Value* number) {
  return all_of(number->users(), [](User* user) {
    if (match(user, m_And(m_Value(), m_One()))) return true;
    return isa<TruncInst>(user) && (user->getType()->isIntegerTy(1) || isForLowestBit(user));
  });
}

/// Whether the number of bits set is odd, of two words: that of the bits in which they differ. A count that all look at
/// so; LLVM shifts and xors instead, six times.
Value* parity(IntrinsicInst& op) {
  if (op.getIntrinsicID() != Intrinsic::ctpop || !op.getType()->isIntegerTy(64) || !isForLowestBit(&op)) return nullptr;
  IRBuilder<> b(&op);
  Value* low = b.CreateTrunc(op.getArgOperand(0), b.getInt32Ty());
  Value* high = b.CreateTrunc(b.CreateLShr(op.getArgOperand(0), 32), b.getInt32Ty());
  return b.CreateZExt(b.CreateUnaryIntrinsic(Intrinsic::ctpop, b.CreateXor(low, high)), b.getInt64Ty());
}

/// c ? K : 0, where c says that a sum (or difference) of two words wrapped. What stands in `sum` becomes the sum that
/// the carry comes from.
bool takeCarry(SelectInst& select) {
  ConstantInt* chosen;
  Value *x, *y;
  if (!select.getType()->isIntegerTy(64) || !match(select.getFalseValue(), m_Zero()) ||
      !match(select.getTrueValue(), m_ConstantInt(chosen)))
    return false;
  CmpPredicate predicate;
  if (!match(select.getCondition(), m_ICmp(predicate, m_Value(x), m_Value(y))) || !x->getType()->isIntegerTy(64))
    return false;
  if (predicate == ICmpInst::ICMP_UGT) std::swap(x, y), predicate = ICmpInst::ICMP_ULT;
  if (predicate != ICmpInst::ICMP_ULT) return false;
  Instruction* sum = nullptr;
  bool adds = false;
  Value* other;
  if (match(x, m_c_Add(m_Specific(y), m_Value(other))) && !isa<Constant>(other)) {
    sum = cast<Instruction>(x), adds = true;
  } else {
    for (User* user : x->users())
      if (match(user, m_Sub(m_Specific(x), m_Specific(y))) &&
          cast<Instruction>(user)->getParent() == select.getParent())
        sum = cast<Instruction>(user);
    if (isa<Constant>(y)) return false;
  }
  if (!sum || sum->getParent() != select.getParent()) return false;
  // Where the sum stands; a choice in front of a difference moves behind it.
  if (!sum->comesBefore(&select)) {
    if (!isa<Instruction>(x) && !isa<Argument>(x)) return false;
    sum->moveBefore(select.getIterator());
  }
  IRBuilder<> b(sum);
  auto* both = StructType::get(b.getInt64Ty(), b.getInt32Ty());
  Value* pair =
      assembly(b, adds ? "add.cc.u64 $0, $2, $3; addc.u32 $1, 0, 0;" : "sub.cc.u64 $0, $2, $3; subc.u32 $1, 0, 0;",
               "=l,=r,l,l", both, {sum->getOperand(0), sum->getOperand(1)});
  sum->replaceAllUsesWith(b.CreateExtractValue(pair, 0));
  Value* carry = b.CreateExtractValue(pair, 1);  // 1, or -1 of a difference
  // Numbers of one word, or minus one: of all ones the carry is the word.
  uint64_t number = chosen->getZExtValue();
  const bool isNegative = number > -kLow - 1;
  if (isNegative) number = -number;
  if (adds && number != 1) carry = b.CreateNeg(carry);
  if (number > kLow) carry = b.CreateSExt(carry, b.getInt64Ty());
  const bool isWhole = number == kLow || (adds && number == 1);
  Value* taken = isWhole ? carry : b.CreateAnd(carry, ConstantInt::get(carry->getType(), number));
  if (number <= kLow) taken = b.CreateZExt(taken, b.getInt64Ty());
  if (isNegative) taken = b.CreateNeg(taken);
  select.replaceAllUsesWith(taken);
  return true;
}

/// Of an f64 number and a constant: a comparison, which is false for NaN, chooses. Of two zeros max takes +0, min -0.
Value* extremeBeside(IntrinsicInst& op) {
  const bool isMax = op.getIntrinsicID() == Intrinsic::maxnum;
  if ((!isMax && op.getIntrinsicID() != Intrinsic::minnum) || !op.getType()->isDoubleTy()) return nullptr;
  Value *x = op.getArgOperand(0), *y = op.getArgOperand(1);
  if (isa<ConstantFP>(x)) std::swap(x, y);
  const auto* constant = dyn_cast<ConstantFP>(y);
  if (!constant || isa<Constant>(x) || constant->isNaN()) return nullptr;
  const bool alsoEqual = constant->isZero() && constant->isNegative() == isMax;
  IRBuilder<> b(&op);
  return assembly(b,
                  Twine("{ .reg .pred %wins; setp.") + (isMax ? "g" : "l") + (alsoEqual ? "e" : "t") +
                      ".f64 %wins, $1, $2; selp.f64 $0, $1, $2, %wins; }",
                  "=d,d,d", b.getDoubleTy(), {x, y});
}

}  // namespace

PreservedAnalyses TwoWords::run(Function& function, FunctionAnalysisManager&) {
  const DataLayout& layout = function.getDataLayout();
  SmallVector<Instruction*> products, choices, calls;
  for (Instruction& inst : instructions(function)) {
    if (inst.getOpcode() == Instruction::Mul && inst.getType()->isIntegerTy(64)) products.push_back(&inst);
    if (isa<SelectInst>(inst)) choices.push_back(&inst);
    if (isa<IntrinsicInst>(inst)) calls.push_back(&inst);
  }
  bool changed = false;
  auto replace = [&](Instruction* inst, Value* by) {
    if (!by) return;
    inst->replaceAllUsesWith(by), inst->eraseFromParent();
    changed = true;
  };
  for (Instruction* product : products) replace(product, wideProduct(cast<BinaryOperator>(*product), layout));
  for (Instruction* call : calls) {
    auto& op = cast<IntrinsicInst>(*call);
    Value* words = parity(op);
    replace(call, words ? words : extremeBeside(op));
  }
  for (Instruction* choice : choices) changed |= takeCarry(cast<SelectInst>(*choice));
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace tile::ir
