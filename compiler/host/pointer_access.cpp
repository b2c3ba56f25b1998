// pointer_access.cpp - tile.gather and tile.scatter. Offsets that run along memory become (masked) vector accesses, all
// others are made one by one; a lane whose mask is false touches no memory.
#include "compiler/host/nest.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// Address of the element at the nest's current index (lane 0 of a vector).
llvm::Value* addressOf(Emitter& e, Nest& nest, Value ptr, Value offsets, Type element) {
  if (isTile(ptr)) return nest.eval(ptr, 1);
  llvm::Value* offset = nest.eval(offsets, 1);
  return offset ? e.offsetBy(e.scalar(ptr), element, e.b.CreateSExt(offset, e.b.getInt64Ty())) : nullptr;
}

/// True where the mask is absent or known to hold.
bool isAlways(llvm::Value* mask) {
  return !mask || (llvm::isa<llvm::Constant>(mask) && llvm::cast<llvm::Constant>(mask)->isAllOnesValue());
}

llvm::Value* allLanes(Emitter& e, llvm::Value* mask) {
  return mask->getType()->isVectorTy() ? e.b.CreateAndReduce(mask) : mask;
}

/// `width` elements at `address`; `mask` may be null; `other` is what lanes without memory read.
llvm::Value* maskedLoad(Emitter& e, Type element, llvm::Value* address, llvm::Value* mask, llvm::Value* other,
                        unsigned width, bool isVolatile) {
  auto& b = e.b;
  if (isAlways(mask)) return e.numbers.load(element, address, width, isVolatile);
  llvm::Value *full = nullptr, *partial = nullptr;
  llvm::BasicBlock *fullEnd = nullptr, *partialEnd = nullptr;
  e.ifThen(
      allLanes(e, mask),
      [&] {
        full = e.numbers.load(element, address, width, isVolatile);
        fullEnd = b.GetInsertBlock();
      },
      [&] {
        partial = other;
        if (width > 1) {
          auto* type = llvm::FixedVectorType::get(e.numbers.inMemory(element), width);
          llvm::Value* raw = b.CreateMaskedLoad(type, address, llvm::Align(Numbers::bytes(element)), mask,
                                                e.numbers.toMemory(element, other));
          partial = e.numbers.fromMemory(element, raw);
        }
        partialEnd = b.GetInsertBlock();
      });
  if (!full || !partial) return full ? full : partial;
  llvm::PHINode* phi = b.CreatePHI(full->getType(), 2);
  phi->addIncoming(full, fullEnd);
  phi->addIncoming(partial, partialEnd);
  return phi;
}

void maskedStore(Emitter& e, Type element, llvm::Value* value, llvm::Value* address, llvm::Value* mask, unsigned width,
                 bool isVolatile) {
  if (isAlways(mask)) return e.numbers.store(element, value, address, isVolatile);
  auto partial = [&] {
    if (width > 1)
      e.b.CreateMaskedStore(e.numbers.toMemory(element, value), address, llvm::Align(Numbers::bytes(element)), mask);
  };
  e.ifThen(
      allLanes(e, mask), [&] { e.numbers.store(element, value, address, isVolatile); }, partial);
}

}  // namespace

LogicalResult emitGather(Emitter& e, GatherOp op) {
  Type element = elementOf(op.getResult());
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  llvm::Value* zero = llvm::Constant::getNullValue(e.numbers.inRegister(element));
  if (!isTile(op.getResult())) {
    llvm::Value* mask = op.getMask() ? e.scalar(op.getMask()) : nullptr;
    llvm::Value* other = op.getOther() ? e.scalar(op.getOther()) : zero;
    e.setScalar(op.getResult(), maskedLoad(e, element, e.scalar(op.getPtr()), mask, other, 1, isVolatile));
    return success();
  }
  if (!e.plan.owns(op.getResult())) return success();
  const Ref& to = *e.plan.place(op.getResult());
  Value where = isTile(op.getPtr()) ? op.getPtr() : op.getOffsets();
  Nest nest(e, shapeOf(op.getResult()));
  for (Value v : {where, op.getMask(), op.getOther()})
    if (v) nest.uses(v);
  nest.uses(to);
  int64_t n = nest.dims().back();
  unsigned width = nest.step(where) == 1 ? e.vectorWidth(Numbers::bytes(element), n) : 1;
  return nest.run(width, [&](unsigned w) {
    llvm::Value* address = addressOf(e, nest, op.getPtr(), op.getOffsets(), element);
    llvm::Value* mask = op.getMask() ? nest.eval(op.getMask(), w) : nullptr;
    llvm::Value* other = op.getOther() ? nest.eval(op.getOther(), w) : e.numbers.splat(zero, w);
    if (!address || !other || (op.getMask() && !mask)) return failure();
    e.numbers.store(element, maskedLoad(e, element, address, mask, other, w, isVolatile), nest.address(to, element));
    return success();
  });
}

LogicalResult emitScatter(Emitter& e, ScatterOp op) {
  Type element = elementOf(op.getValue());
  bool isVolatile = op.getCache() == CacheHint::volatile_;
  if (!isTile(op.getValue())) {
    llvm::Value* mask = op.getMask() ? e.scalar(op.getMask()) : nullptr;
    maskedStore(e, element, e.scalar(op.getValue()), e.scalar(op.getPtr()), mask, 1, isVolatile);
    return success();
  }
  Value where = isTile(op.getPtr()) ? op.getPtr() : op.getOffsets();
  Nest nest(e, shapeOf(op.getValue()));
  for (Value v : {where, op.getValue(), op.getMask()})
    if (v) nest.uses(v);
  int64_t n = nest.dims().back();
  unsigned width = nest.step(where) == 1 ? e.vectorWidth(Numbers::bytes(element), n) : 1;
  return nest.run(width, [&](unsigned w) {
    llvm::Value* address = addressOf(e, nest, op.getPtr(), op.getOffsets(), element);
    llvm::Value* mask = op.getMask() ? nest.eval(op.getMask(), w) : nullptr;
    llvm::Value* value = nest.eval(op.getValue(), w);
    if (!address || !value || (op.getMask() && !mask)) return failure();
    maskedStore(e, element, value, address, mask, w, isVolatile);
    return success();
  });
}

}  // namespace tile::ir::host
