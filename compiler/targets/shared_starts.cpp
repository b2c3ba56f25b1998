// shared_starts.cpp - see shared_starts.h.
#include "compiler/targets/shared_starts.h"

#include <map>

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"

namespace tile::ir {
using namespace llvm;
using namespace PatternMatch;

namespace {

struct Element {
  GetElementPtrInst* address;
  Value *x, *y;   ///< of whose sum it is the address
  uint64_t size;  ///< of an element, in bytes
  bool isAlone;   ///< nothing else wants the sum: no other pointer, either
};

/// Of one block, in order.
SmallVector<Element> elementsOf(BasicBlock& block) {
  SmallVector<Element> found;
  for (Instruction& inst : block) {
    auto* gep = dyn_cast<GetElementPtrInst>(&inst);
    if (!gep || gep->getNumIndices() != 1 || !gep->getType()->isPointerTy() || gep->getPointerAddressSpace() == 3)
      continue;
    const TypeSize unit = gep->getDataLayout().getTypeAllocSize(gep->getSourceElementType());
    Value *index = gep->getOperand(1), *sum = index, *x, *y;
    uint64_t factor = 0;
    if (!index->getType()->isIntegerTy(64)) continue;
    if (match(index, m_Shl(m_Value(sum), m_ConstantInt(factor)))) {
      if (factor > 8) continue;
      factor = uint64_t{1} << factor;
    } else if (!match(index, m_Mul(m_Value(sum), m_ConstantInt(factor)))) {
      sum = index, factor = 1;
    }
    if (!match(sum, m_Add(m_Value(x), m_Value(y))) || isa<Constant>(x) || isa<Constant>(y)) continue;
    found.push_back({gep, x, y, factor * unit.getFixedValue(), sum->hasOneUse() && index->hasOneUse()});
  }
  return found;
}

/// Whether adding `own` to an address costs less than the sum: it is one instruction (mul.wide), or the sum goes.
bool pays(const Element& e, Value* own) {
  const bool isWord = isa<SExtInst, ZExtInst>(own) && cast<CastInst>(own)->getSrcTy()->getScalarSizeInBits() <= 32;
  return isWord || e.isAlone;
}

/// Whether `a` is known later than `b`.
bool isLater(Value* a, Value* b, const BasicBlock& block) {
  auto *x = dyn_cast<Instruction>(a), *y = dyn_cast<Instruction>(b);
  if (!x || x->getParent() != &block || isa<PHINode>(x)) return false;
  return !y || y->getParent() != &block || y->comesBefore(x);
}

}  // namespace

PreservedAnalyses SharedStarts::run(Function& function, FunctionAnalysisManager&) {
  using Start = std::pair<std::pair<Value*, Value*>, uint64_t>;  // pointer, index, bytes
  for (BasicBlock& block : function) {
    const SmallVector<Element> elements = elementsOf(block);
    std::map<Start, int> uses;
    auto startOf = [](const Element& e, Value* index) {
      return Start({e.address->getPointerOperand(), index}, e.size);
    };
    for (const Element& e : elements) {
      ++uses[startOf(e, e.x)];
      if (e.y != e.x) ++uses[startOf(e, e.y)];
    }
    std::map<Start, Value*> starts;
    SmallVector<Instruction*> replaced;  // erased in the end: no new address may have the number of an old one
    for (const Element& e : elements) {
      const bool byX = uses[startOf(e, e.x)] > 1 && pays(e, e.y), byY = uses[startOf(e, e.y)] > 1 && pays(e, e.x);
      if (!byX && !byY) continue;
      // Of two that are shared the later one: fewer starts are kept at a time.
      Value* shared = byX && (!byY || isLater(e.x, e.y, block)) ? e.x : e.y;
      Value* own = shared == e.x ? e.y : e.x;
      IRBuilder<> b(e.address);
      auto bytes = [&](Value* index) { return e.size == 1 ? index : b.CreateMul(index, b.getInt64(e.size)); };
      Value*& start = starts[startOf(e, shared)];
      if (!start) start = b.CreateGEP(b.getInt8Ty(), e.address->getPointerOperand(), bytes(shared));
      Value* address = b.CreateGEP(b.getInt8Ty(), start, bytes(own));
      e.address->replaceAllUsesWith(address);
      replaced.push_back(e.address);
    }
    for (Instruction* address : replaced) address->eraseFromParent();
  }
  return PreservedAnalyses::none();
}

}  // namespace tile::ir
