// control.cpp - scf loops and branches as basic blocks. Conditions are scalars, so every thread takes the same way.
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/gpu/lowering/roles.h"
#include "llvm/IR/MDBuilder.h"

namespace tile::ir {
using namespace mlir;

namespace {

SmallVector<llvm::PHINode*> makePhis(llvm::IRBuilder<>& b, llvm::ArrayRef<llvm::Value*> first, llvm::BasicBlock* from) {
  SmallVector<llvm::PHINode*> phis;
  for (llvm::Value* value : first) {
    phis.push_back(b.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, from);
  }
  return phis;
}

void addIncoming(llvm::ArrayRef<llvm::PHINode*> phis, llvm::ArrayRef<llvm::Value*> values, llvm::BasicBlock* from) {
  for (auto [phi, value] : llvm::zip(phis, values)) phi->addIncoming(value, from);
}

/// Warps of a role meet in this block, or in one inside.
bool hasMeetings(Block* block) {
  return block->walk([](Operation* op) { return isRoleOp(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

}  // namespace

Regs Emitter::flat(ValueRange values) const {
  Regs all;
  for (Value value : values) all.append(flat(value));
  return all;
}

// Tiles of narrow elements cross edges in words: as values of their own the assembler would give each a whole register.
// Which registers of the value share one, word by word; empty: each stays by itself. Words of 8-bit elements are those
// of fragments (wgmma_registers.cpp): where a row's neighbours come in pairs, beside pairs of the row 8 further, the
// pairs of one row.
SmallVector<size_t> Emitter::crossingOrder(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!target.hasWgmma || !type || !type.getElementType().isIntOrFloat()) return {};
  const size_t count = values_.find(value)->second.size();
  const unsigned bits = type.getElementType().getIntOrFloatBitWidth();
  if (!(bits == 16 && count % 2 == 0) && !(bits == 8 && count % 4 == 0)) return {};
  SmallVector<size_t> order;
  for (size_t i = 0; i < count; ++i) order.push_back(i);
  using layout::Digit;
  auto layout = tile::ir::layoutOf(mlir::Type(type));
  if (bits == 16 || !layout || count % 8 != 0 || layout->rank() != 2 || layout->regs().size() < 3) return order;
  const auto& regs = layout->regs();
  if (regs[0] == Digit{1, 2, 1} && regs[1] == Digit{0, 2, 8} && regs[2].dim == 1 && regs[2].count % 2 == 0)
    for (size_t i = 0; i < count; i += 8)
      for (size_t j : {2, 3}) std::swap(order[i + j], order[i + j + 2]);
  return order;
}

Regs Emitter::packed(ValueRange values) {
  Regs all;
  for (Value value : values) {
    Regs one = flat(value);
    const SmallVector<size_t> order = crossingOrder(value);
    if (order.empty()) {
      all.append(one);
      continue;
    }
    // What is in padding, and perhaps poison, must not reach its neighbours.
    if (const auto layout = tile::ir::layoutOf(value.getType());
        layout && static_cast<size_t>(layout->numRegs()) == one.size())
      for (auto [reg, held] : llvm::enumerate(one))
        if (layout->isRegPadding(static_cast<int>(reg))) held = llvm::Constant::getNullValue(held->getType());
    const bool pairs = !one[0]->getType()->isIntegerTy(8);
    for (size_t i = 0; i < one.size(); i += pairs ? 2 : 4)
      all.push_back(pairs ? packPair(one[i], one[i + 1])
                          : packQuad({one[order[i]], one[order[i + 1]], one[order[i + 2]], one[order[i + 3]]}));
  }
  return all;
}

// Hands what packed(shapes) had for each value to its registers; `shapes` had the same types, in the same order.
void Emitter::definePacked(ValueRange values, ValueRange shapes, llvm::ArrayRef<llvm::Value*> all) {
  for (auto [value, shape] : llvm::zip(values, shapes)) {
    const size_t count = flat(shape).size();
    const SmallVector<size_t> order = crossingOrder(shape);
    Regs one(count);
    for (size_t i = 0; i < count;) {
      llvm::Value* v = all.front();
      all = all.drop_front();
      if (order.empty()) {
        one[i++] = v;
      } else if (v->getType()->isVectorTy()) {
        for (uint64_t j : {0, 1}) one[i++] = b.CreateExtractElement(v, j);
      } else {
        for (llvm::Value* byte : unpackQuad(v)) one[order[i++]] = byte;
      }
    }
    defineFlat(value, std::move(one));
  }
}

// The same for flat(shapes).
void Emitter::defineLike(ValueRange values, ValueRange shapes, llvm::ArrayRef<llvm::Value*> all) {
  size_t at = 0;
  for (auto [value, shape] : llvm::zip(values, shapes)) {
    size_t count = flat(shape).size();
    defineFlat(value, Regs(all.slice(at, count)));
    at += count;
  }
}

void Emitter::hintUnroll(llvm::BranchInst* latch, Operation* loop) {
  auto hint = loop->getAttrOfType<IntegerAttr>("tile.unroll");
  if (!hint) return;
  auto* string = [&](llvm::StringRef text) { return llvm::MDString::get(context_, text); }("llvm.loop.unroll.count");
  llvm::Metadata* count =
      llvm::ConstantAsMetadata::get(b.getInt32(static_cast<uint32_t>(std::max<int64_t>(1, hint.getInt()))));
  llvm::MDNode* node = hint.getInt() > 1
                           ? llvm::MDNode::get(context_, {string, count})
                           : llvm::MDNode::get(context_, {llvm::MDString::get(context_, "llvm.loop.unroll.disable")});
  llvm::MDNode* self = llvm::MDNode::getDistinct(context_, {nullptr, node});
  self->replaceOperandWith(0, self);
  latch->setMetadata(llvm::LLVMContext::MD_loop, self);
}

LogicalResult Emitter::emitFor(scf::ForOp op) {
  llvm::Value *lower = scalar(op.getLowerBound()), *upper = scalar(op.getUpperBound()), *step = scalar(op.getStep());
  Regs init = packed(op.getInitArgs());
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* header = llvm::BasicBlock::Create(context_, "for", function_);
  auto* body = llvm::BasicBlock::Create(context_, "for.body", function_);
  auto* after = llvm::BasicBlock::Create(context_, "for.end", function_);
  b.CreateBr(header);

  b.SetInsertPoint(header);
  llvm::PHINode* iv = b.CreatePHI(lower->getType(), 2, "i");
  iv->addIncoming(lower, before);
  auto phis = makePhis(b, init, before);
  llvm::Value* more = op.getUnsignedCmp() ? b.CreateICmpULT(iv, upper) : b.CreateICmpSLT(iv, upper);
  b.CreateCondBr(more, body, after);

  b.SetInsertPoint(body);
  define(op.getInductionVar(), iv);
  Regs held(phis.begin(), phis.end());
  definePacked(op.getRegionIterArgs(), op.getInitArgs(), held);
  if (failed(emitBlock(*op.getBody()))) return failure();
  llvm::BasicBlock* latch = b.GetInsertBlock();
  iv->addIncoming(b.CreateAdd(iv, step), latch);
  addIncoming(phis, packed(op.getBody()->getTerminator()->getOperands()), latch);
  hintUnroll(b.CreateBr(header), op);

  b.SetInsertPoint(after);
  definePacked(op.getResults(), op.getInitArgs(), held);
  return success();
}

LogicalResult Emitter::emitIf(scf::IfOp op) {
  auto* thenBlock = llvm::BasicBlock::Create(context_, "then", function_);
  auto* elseBlock = op.elseBlock() ? llvm::BasicBlock::Create(context_, "else", function_) : nullptr;
  auto* after = llvm::BasicBlock::Create(context_, "endif", function_);
  auto* join = after;  // where the first side ends
  llvm::Value *condition = scalar(op.getCondition()), *flag = nullptr;
  if (elseBlock && op.getNumResults() == 0 && hasMeetings(op.thenBlock()) && hasMeetings(op.elseBlock())) {
    // One side behind the other. ptxas takes two sides in which warps meet for divergent, and then all of the work loop
    // around them: nothing in it stays in uniform registers. It must not see that the second condition is the first.
    flag = inlineAsm(b.getInt32Ty(), "mov.b32 $0, $1;", "=r,r", {b.CreateZExt(condition, b.getInt32Ty())});
    join = llvm::BasicBlock::Create(context_, "second", function_);
  }
  b.CreateCondBr(condition, thenBlock, flag ? join : elseBlock ? elseBlock : after);

  b.SetInsertPoint(thenBlock);
  if (failed(emitBlock(*op.thenBlock()))) return failure();
  auto yielded = op.thenBlock()->getTerminator()->getOperands();
  Regs thenValues = packed(yielded);
  llvm::BasicBlock* thenEnd = b.GetInsertBlock();
  b.CreateBr(join);
  if (!elseBlock) {
    b.SetInsertPoint(after);
    return success();
  }
  if (flag) {
    b.SetInsertPoint(join);
    b.CreateCondBr(b.CreateICmpEQ(flag, i32(0)), elseBlock, after);
  }
  b.SetInsertPoint(elseBlock);
  if (failed(emitBlock(*op.elseBlock()))) return failure();
  Regs elseValues = packed(op.elseBlock()->getTerminator()->getOperands());
  llvm::BasicBlock* elseEnd = b.GetInsertBlock();
  b.CreateBr(after);

  b.SetInsertPoint(after);
  auto phis = makePhis(b, thenValues, thenEnd);
  addIncoming(phis, elseValues, elseEnd);
  definePacked(op.getResults(), yielded, Regs(phis.begin(), phis.end()));
  return success();
}

LogicalResult Emitter::emitWhile(scf::WhileOp op) {
  llvm::BasicBlock* entering = b.GetInsertBlock();
  auto* header = llvm::BasicBlock::Create(context_, "while", function_);
  auto* body = llvm::BasicBlock::Create(context_, "while.body", function_);
  auto* after = llvm::BasicBlock::Create(context_, "while.end", function_);
  Regs init = flat(op.getInits());
  b.CreateBr(header);

  b.SetInsertPoint(header);
  auto phis = makePhis(b, init, entering);
  defineLike(op.getBeforeArguments(), op.getInits(), Regs(phis.begin(), phis.end()));
  if (failed(emitBlock(*op.getBeforeBody()))) return failure();
  auto condition = op.getConditionOp();
  Regs passed = flat(condition.getArgs());
  b.CreateCondBr(scalar(condition.getCondition()), body, after);

  b.SetInsertPoint(body);
  defineLike(op.getAfterArguments(), condition.getArgs(), passed);
  if (failed(emitBlock(*op.getAfterBody()))) return failure();
  addIncoming(phis, flat(op.getYieldOp().getOperands()), b.GetInsertBlock());
  b.CreateBr(header);

  b.SetInsertPoint(after);
  defineLike(op.getResults(), condition.getArgs(), passed);
  return success();
}

}  // namespace tile::ir
