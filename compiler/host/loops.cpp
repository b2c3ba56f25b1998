// loops.cpp - the basic blocks that every family of ops is made of: loops and conditions.
#include "compiler/host/emitter.h"

namespace tile::ir::host {
using namespace mlir;

llvm::Value* Emitter::loop(llvm::Value* lo, llvm::Value* hi, int64_t step,
                           llvm::function_ref<void(llvm::Value*)> body) {
  auto* from = llvm::dyn_cast<llvm::ConstantInt>(lo);
  auto* to = llvm::dyn_cast<llvm::ConstantInt>(hi);
  llvm::Value* stepValue = i64(step);
  if (from && to) {
    int64_t trips = std::max<int64_t>(0, (to->getSExtValue() - from->getSExtValue()) / step);
    if (trips == 0) return lo;
    if (trips == 1) {
      body(lo);
      return i64(from->getSExtValue() + step);
    }
  }
  // Tested at the bottom; at the top only where it may not run at all.
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(b.getContext(), "loop", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "done");
  bool surelyRuns = from && to;
  if (surelyRuns)
    b.CreateBr(inside);
  else
    b.CreateCondBr(b.CreateICmpSLE(b.CreateAdd(lo, stepValue, "", true, true), hi), inside, after);
  b.SetInsertPoint(inside);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2, "i");
  i->addIncoming(lo, before);
  body(i);
  llvm::BasicBlock* end = b.GetInsertBlock();
  llvm::Value* next = b.CreateAdd(i, stepValue, "", true, true);
  i->addIncoming(next, end);
  b.CreateCondBr(b.CreateICmpSLE(b.CreateAdd(next, stepValue, "", true, true), hi), inside, after);
  after->insertInto(function);
  b.SetInsertPoint(after);
  if (surelyRuns) return i64(from->getSExtValue() + (to->getSExtValue() - from->getSExtValue()) / step * step);
  llvm::PHINode* stop = b.CreatePHI(b.getInt64Ty(), 2);
  stop->addIncoming(lo, before);
  stop->addIncoming(next, end);
  return stop;
}

void Emitter::inVectors(llvm::Value* lo, llvm::Value* hi, unsigned width,
                        llvm::function_ref<void(llvm::Value*, unsigned)> body) {
  for (unsigned w : {width, width / 4})
    if (w > 1) lo = loop(lo, hi, w, [&](llvm::Value* i) { body(i, w); });
  loop(lo, hi, 1, [&](llvm::Value* i) { body(i, 1); });
}

SmallVector<llvm::Value*> Emitter::loopCarrying(
    int64_t lo, int64_t hi, int64_t step, ArrayRef<llvm::Value*> init,
    llvm::function_ref<SmallVector<llvm::Value*>(llvm::Value*, ArrayRef<llvm::Value*>)> body) {
  int64_t trips = (hi - lo) / step;
  if (trips <= 0) return SmallVector<llvm::Value*>(init);
  if (trips == 1) return body(i64(lo), init);
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* inside = llvm::BasicBlock::Create(b.getContext(), "accumulate", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "done");
  b.CreateBr(inside);
  b.SetInsertPoint(inside);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2, "i");
  i->addIncoming(i64(lo), before);
  SmallVector<llvm::Value*> carried;
  for (llvm::Value* v : init) {
    llvm::PHINode* phi = b.CreatePHI(v->getType(), 2);
    phi->addIncoming(v, before);
    carried.push_back(phi);
  }
  SmallVector<llvm::Value*> results = body(i, carried);
  llvm::Value* next = b.CreateAdd(i, i64(step), "", true, true);
  llvm::BasicBlock* end = b.GetInsertBlock();
  i->addIncoming(next, end);
  for (auto [phi, v] : llvm::zip(carried, results)) llvm::cast<llvm::PHINode>(phi)->addIncoming(v ? v : phi, end);
  b.CreateCondBr(b.CreateICmpSLT(next, i64(lo + trips * step)), inside, after);
  after->insertInto(function);
  b.SetInsertPoint(after);
  return results;
}

void Emitter::ifThen(llvm::Value* condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (!known->isZero())
      then();
    else if (otherwise)
      otherwise();
    return;
  }
  auto* yes = llvm::BasicBlock::Create(b.getContext(), "then", function);
  auto* no = otherwise ? llvm::BasicBlock::Create(b.getContext(), "else") : nullptr;
  auto* after = llvm::BasicBlock::Create(b.getContext(), "endif");
  b.CreateCondBr(condition, yes, no ? no : after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  if (no) {
    no->insertInto(function);
    b.SetInsertPoint(no);
    otherwise();
    b.CreateBr(after);
  }
  after->insertInto(function);
  b.SetInsertPoint(after);
}

}  // namespace tile::ir::host
