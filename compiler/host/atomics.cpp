// atomics.cpp - tile.atomic_rmw and tile.atomic_cas, element by element. Integers use the machine's instructions;
// floats (of any width) loop on compare-and-swap of their bits.
#include "compiler/host/nest.h"
#include "compiler/lowering/atomic_kinds.h"
#include "llvm/IR/Intrinsics.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

llvm::Value* floatUpdate(llvm::IRBuilder<>& b, RmwKind kind, llvm::Value* old, llvm::Value* value) {
  switch (kind) {
    case RmwKind::add:
      return b.CreateFAdd(old, value);
    case RmwKind::max:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, old, value);
    case RmwKind::min:
      return b.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, old, value);
    default:
      return value;
  }
}

/// Loops until nobody changed the element between reading and writing it.
llvm::Value* updateFloat(Emitter& e, RmwKind kind, MemOrder order, Type element, llvm::Value* address,
                         llvm::Value* value) {
  auto& b = e.b;
  llvm::Type* bits = b.getIntNTy(static_cast<unsigned>(Numbers::bytes(element) * 8));
  llvm::Align align(Numbers::bytes(element));
  auto* first = b.CreateAlignedLoad(bits, address, align);
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* retry = llvm::BasicBlock::Create(b.getContext(), "retry", e.function);
  auto* done = llvm::BasicBlock::Create(b.getContext(), "swapped", e.function);
  b.CreateBr(retry);
  b.SetInsertPoint(retry);
  llvm::PHINode* seen = b.CreatePHI(bits, 2);
  seen->addIncoming(first, before);
  llvm::Value* old = e.numbers.fromMemory(element, b.CreateBitCast(seen, e.numbers.inMemory(element)));
  llvm::Value* next = e.numbers.roundTo(element, floatUpdate(b, kind, old, value));
  llvm::Value* nextBits = b.CreateBitCast(e.numbers.toMemory(element, next), bits);
  auto* swap =
      b.CreateAtomicCmpXchg(address, seen, nextBits, align, llvmOrdering(order), llvm::AtomicOrdering::Monotonic);
  seen->addIncoming(b.CreateExtractValue(swap, 0), b.GetInsertBlock());
  b.CreateCondBr(b.CreateExtractValue(swap, 1), done, retry);
  b.SetInsertPoint(done);
  return old;
}

}  // namespace

llvm::Value* atomicUpdate(Emitter& e, RmwKind kind, MemOrder order, Type element, llvm::Value* address,
                          llvm::Value* value) {
  if (isa<FloatType>(element)) return updateFloat(e, kind, order, element, address, value);
  return e.b.CreateAtomicRMW(llvmBinOp(kind, /*isFloat=*/false), address, value, llvm::Align(Numbers::bytes(element)),
                             llvmOrdering(order));
}

namespace {

/// Runs `update(address, operands)` for each element whose mask holds and keeps what it returns as the result.
LogicalResult forEachElement(Emitter& e, Operation* op, Value ptr, Value offsets, Value mask, ValueRange operands,
                             llvm::function_ref<llvm::Value*(llvm::Value*, ArrayRef<llvm::Value*>)> update) {
  Value result = op->getResult(0);
  Type element = elementOf(result);
  if (element.isInteger(1)) return op->emitError("atomics on i1 are not defined: use i8 or wider");
  if (!isTile(result)) {
    SmallVector<llvm::Value*, 2> args;
    for (Value v : operands) args.push_back(e.scalar(v));
    if (!mask) return e.setScalar(result, update(e.scalar(ptr), args)), success();
    llvm::BasicBlock *off = e.b.GetInsertBlock(), *on = nullptr;
    llvm::Value* old = nullptr;
    e.ifThen(e.scalar(mask), [&] {
      old = update(e.scalar(ptr), args);
      on = e.b.GetInsertBlock();
    });
    llvm::Value* undefined = llvm::Constant::getNullValue(e.numbers.inRegister(element));
    if (!old || on == e.b.GetInsertBlock()) return e.setScalar(result, old ? old : undefined), success();
    llvm::PHINode* phi = e.b.CreatePHI(old->getType(), 2);
    phi->addIncoming(old, on);
    phi->addIncoming(undefined, off);
    e.setScalar(result, phi);
    return success();
  }
  const Ref* to = e.plan.owns(result) ? e.plan.place(result) : nullptr;
  Nest nest(e, shapeOf(result));
  Value where = isTile(ptr) ? ptr : offsets;
  for (Value v : {where, mask})
    if (v) nest.uses(v);
  for (Value v : operands) nest.uses(v);
  if (to) nest.uses(*to);
  nest.dims();
  return nest.run(1, [&](unsigned) {
    llvm::Value* at = nest.eval(where, 1);
    SmallVector<llvm::Value*, 2> args;
    for (Value v : operands) args.push_back(nest.eval(v, 1));
    llvm::Value* active = mask ? nest.eval(mask, 1) : e.b.getTrue();
    if (!at || !active || llvm::is_contained(args, nullptr)) return failure();
    llvm::Value* address = isTile(ptr) ? at : e.offsetBy(e.scalar(ptr), element, e.b.CreateSExt(at, e.b.getInt64Ty()));
    e.ifThen(active, [&] {
      llvm::Value* old = update(address, args);
      if (to) e.numbers.store(element, old, nest.address(*to, element));
    });
    return success();
  });
}

}  // namespace

LogicalResult emitAtomicRmw(Emitter& e, AtomicRmwOp op) {
  Type element = elementOf(op.getResult());
  return forEachElement(e, op, op.getPtr(), op.getOffsets(), op.getMask(), op.getValue(),
                        [&](llvm::Value* address, ArrayRef<llvm::Value*> args) {
                          return atomicUpdate(e, op.getKind(), op.getOrder(), element, address, args[0]);
                        });
}

LogicalResult emitAtomicCas(Emitter& e, AtomicCasOp op) {
  Type element = elementOf(op.getResult());
  llvm::Type* bits = e.b.getIntNTy(static_cast<unsigned>(Numbers::bytes(element) * 8));
  auto asBits = [&](llvm::Value* v) { return e.b.CreateBitCast(e.numbers.toMemory(element, v), bits); };
  return forEachElement(e, op, op.getPtr(), op.getOffsets(), op.getMask(), {op.getExpected(), op.getDesired()},
                        [&](llvm::Value* address, ArrayRef<llvm::Value*> args) {
                          auto* swap = e.b.CreateAtomicCmpXchg(
                              address, asBits(args[0]), asBits(args[1]), llvm::Align(Numbers::bytes(element)),
                              llvmOrdering(op.getOrder()), llvm::AtomicOrdering::Monotonic);
                          return e.numbers.fromMemory(
                              element, e.b.CreateBitCast(e.b.CreateExtractValue(swap, 0), e.numbers.inMemory(element)));
                        });
}

}  // namespace tile::ir::host
