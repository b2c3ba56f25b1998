// byte_sums.cpp - see byte_sums.h.
#include "compiler/targets/byte_sums.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

namespace tile::ir {
using namespace llvm;

namespace {

constexpr int kBytes = 4, kLeast = 3;

/// A byte of a word, its number; null: it is none.
struct ByteOf {
  Value* word = nullptr;
  unsigned byte = 0;
};

ByteOf byteOf(Value* value) {
  using namespace PatternMatch;
  Value* word = nullptr;
  uint64_t shift = 0;
  if (match(value, m_LShr(m_Value(word), m_SpecificInt(24)))) return {word, 3};
  if (!match(value, m_And(m_Value(word), m_SpecificInt(255)))) return {};
  Value* whole = nullptr;
  if (match(word, m_LShr(m_Value(whole), m_ConstantInt(shift))) && shift % 8 == 0 && shift < 32)
    return {whole, static_cast<unsigned>(shift / 8)};
  return {word, 0};
}

bool isSum(const Value* value) {
  auto* sum = dyn_cast<BinaryOperator>(value);
  return sum && sum->getOpcode() == Instruction::Add && sum->getType()->isIntegerTy(32);
}

/// What is added up, through sums that nothing else asks for.
void collect(BinaryOperator* sum, SmallVectorImpl<Value*>& parts) {
  for (Value* operand : sum->operands())
    if (isSum(operand) && operand->hasOneUse() && cast<Instruction>(operand)->getParent() == sum->getParent())
      collect(cast<BinaryOperator>(operand), parts);
    else
      parts.push_back(operand);
}

bool rewrite(BinaryOperator* root) {
  SmallVector<Value*> parts;
  collect(root, parts);
  MapVector<Value*, SmallVector<Value*, kBytes>> words;  // and their bytes, each once
  SmallVector<Value*> others;
  for (Value* part : parts) {
    const ByteOf byte = byteOf(part);
    if (byte.word) words[byte.word].resize(kBytes);
    if (byte.word && !words[byte.word][byte.byte])
      words[byte.word][byte.byte] = part;
    else
      others.push_back(part);
  }
  SmallVector<std::pair<Value*, uint32_t>> dots;
  for (const auto& [word, bytes] : words) {
    const bool isWorth = llvm::count_if(bytes, [](Value* byte) { return byte != nullptr; }) >= kLeast;
    uint32_t ones = 0;
    for (auto [at, byte] : llvm::enumerate(bytes))
      if (byte && isWorth)
        ones |= 1u << (8 * at);
      else if (byte)
        others.push_back(byte);
    if (isWorth) dots.push_back({word, ones});
  }
  if (dots.empty()) return false;
  IRBuilder<> b(root);
  Value* total = nullptr;
  for (Value* other : others) total = total ? b.CreateAdd(total, other) : other;
  if (!total) total = b.getInt32(0);
  for (auto [word, ones] : dots) total = b.CreateIntrinsic(Intrinsic::nvvm_idp4a_u_u, {word, b.getInt32(ones), total});
  root->replaceAllUsesWith(total);
  RecursivelyDeleteTriviallyDeadInstructions(root);
  return true;
}

}  // namespace

PreservedAnalyses ByteSums::run(Function& function, FunctionAnalysisManager&) {
  SmallVector<BinaryOperator*> roots;
  for (Instruction& inst : instructions(function)) {
    if (!isSum(&inst)) continue;
    const bool isPart = inst.hasOneUse() && isSum(*inst.user_begin()) &&
                        cast<Instruction>(*inst.user_begin())->getParent() == inst.getParent();
    if (!isPart) roots.push_back(cast<BinaryOperator>(&inst));
  }
  bool changed = false;
  for (BinaryOperator* root : roots) changed |= rewrite(root);
  if (!changed) return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}

}  // namespace tile::ir
