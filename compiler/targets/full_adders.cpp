// full_adders.cpp - see full_adders.h.
#include "compiler/targets/full_adders.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Transforms/Utils/Local.h"

namespace tile::ir {
using namespace llvm;
using namespace PatternMatch;

namespace {

using Words = std::array<Value*, 3>;

/// Whether the value has the bits that most of three words have: ((x | y) & z) | (x & y), or with ^ for |.
bool isCarry(Value* value, Words& words) {
  auto& [x, y, z] = words;
  auto either = m_CombineOr(m_Or(m_Value(x), m_Value(y)), m_Xor(m_Value(x), m_Value(y)));
  Value *both = nullptr, *some = nullptr;
  if (!match(value, m_Or(m_Value(some), m_Value(both))) && !match(value, m_Xor(m_Value(some), m_Value(both))))
    return false;
  const bool addsBits = cast<Instruction>(value)->getOpcode() == Instruction::Xor;
  for (int turn = 0; turn < 2; ++turn, std::swap(some, both)) {
    if (!match(some, m_c_And(either, m_Value(z))) || !match(both, m_c_And(m_Specific(x), m_Specific(y)))) continue;
    // Bits that both words have are not in x ^ y, but in x | y: those an outer ^ would take away again.
    if (!addsBits || match(some, m_c_And(m_Xor(m_Value(), m_Value()), m_Specific(z)))) return true;
  }
  return false;
}

/// x ^ y ^ z, in any order; null: nobody wants it.
Instruction* sumOf(const Words& words) {
  for (int i = 0; i < 3; ++i) {
    Value *x = words[i], *y = words[(i + 1) % 3], *z = words[(i + 2) % 3];
    if (isa<Constant>(x)) continue;
    for (User* two : x->users()) {
      if (!match(two, m_c_Xor(m_Specific(x), m_Specific(y)))) continue;
      for (User* three : two->users())
        if (match(three, m_c_Xor(m_Specific(two), m_Specific(z)))) return cast<Instruction>(three);
    }
  }
  return nullptr;
}

/// One instruction for each combination of the words' bits, in place of `old`.
void replace(Instruction* old, const Words& words, StringRef table) {
  IRBuilder<> b(old);
  Type* word = b.getInt32Ty();
  auto* combine = InlineAsm::get(FunctionType::get(word, {word, word, word}, false),
                                 ("lop3.b32 $0, $1, $2, $3, " + table + ";").str(), "=r,r,r,r", false);
  old->replaceAllUsesWith(b.CreateCall(combine, words));
  RecursivelyDeleteTriviallyDeadInstructions(old);
}

}  // namespace

PreservedAnalyses FullAdders::run(Function& function, FunctionAnalysisManager&) {
  SmallVector<WeakTrackingVH> candidates;
  for (Instruction& inst : instructions(function))
    if (inst.getType()->isIntegerTy(32) &&
        (inst.getOpcode() == Instruction::Or || inst.getOpcode() == Instruction::Xor))
      candidates.push_back(&inst);
  bool changed = false;
  for (const WeakTrackingVH& handle : candidates) {
    auto* carry = dyn_cast_or_null<BinaryOperator>(handle);
    Words words{};
    if (!carry || !isCarry(carry, words)) continue;
    Instruction* sum = sumOf(words);
    if (!sum) continue;
    replace(sum, words, "0x96");
    replace(carry, words, "0xE8");
    changed = true;
  }
  return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

}  // namespace tile::ir
