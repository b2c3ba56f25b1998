// debug.cpp - tile.print and tile.assert: records in the DebugRing (runtime/abi.h), appended with one atomic add. A
// failed assertion records every false element, then ends this program; nothing aborts.
#include "compiler/debug_site.h"
#include "compiler/host/nest.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

uint32_t addSite(Emitter& e, DebugSite site) {
  e.info.debug_sites.push_back(std::move(site));
  return static_cast<uint32_t>(e.info.debug_sites.size() - 1);
}

void record(Emitter& e, uint32_t site, llvm::Value* element, Type type, llvm::Value* value) {
  auto& b = e.b;
  llvm::Value* slot = b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, e.debugRing, b.getInt32(1), llvm::Align(4),
                                        llvm::AtomicOrdering::Monotonic);
  auto word = [&](llvm::Value* base, int64_t byte) { return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, byte); };
  llvm::Value* capacity = b.CreateLoad(b.getInt32Ty(), word(e.debugRing, offsetof(DebugRing, capacity)));
  e.ifThen(b.CreateICmpULT(slot, capacity), [&] {
    llvm::Value* at = b.CreateMul(b.CreateZExt(slot, b.getInt64Ty()), e.i64(sizeof(DebugRecord)));
    llvm::Value* base = b.CreateGEP(b.getInt8Ty(), word(e.debugRing, sizeof(DebugRing)), at);
    b.CreateStore(b.getInt32(site), word(base, offsetof(DebugRecord, site)));
    for (int axis = 0; axis < 3; ++axis)
      b.CreateStore(b.CreateLoad(b.getInt32Ty(), word(e.program, 4 * axis)),
                    word(base, static_cast<int64_t>(offsetof(DebugRecord, program)) + 4 * axis));
    b.CreateStore(b.CreateTrunc(element, b.getInt32Ty()), word(base, offsetof(DebugRecord, element)));
    b.CreateStore(b.getInt32(0), word(base, offsetof(DebugRecord, pad)));
    llvm::Value* bits =
        b.CreateBitCast(e.numbers.toMemory(type, value), b.getIntNTy(static_cast<unsigned>(Numbers::bytes(type) * 8)));
    b.CreateStore(b.CreateZExt(bits, b.getInt64Ty()), word(base, offsetof(DebugRecord, bits)));
  });
}

LogicalResult forEachElement(Emitter& e, Value value,
                             llvm::function_ref<void(llvm::Value* element, llvm::Value* v)> body) {
  if (!isTile(value)) return body(e.i64(0), e.scalar(value)), success();
  Nest nest(e, shapeOf(value));
  nest.uses(value);
  nest.uses(Ref{-1, 0, rowMajorStrides(shapeOf(value))});
  nest.dims();
  return nest.run(1, [&](unsigned) {
    llvm::Value* v = nest.eval(value, 1);
    if (v) body(nest.linearIndex(), v);
    return success(v != nullptr);
  });
}

}  // namespace

LogicalResult emitPrint(Emitter& e, PrintOp op) {
  uint32_t site = addSite(e, debugSite(op));
  return forEachElement(e, op.getValue(), [&](llvm::Value* element, llvm::Value* v) {
    record(e, site, element, elementOf(op.getValue()), v);
  });
}

LogicalResult emitAssert(Emitter& e, AssertOp op) {
  uint32_t site = addSite(e, debugSite(op));
  auto& b = e.b;
  llvm::IRBuilder<> entry(&e.function->getEntryBlock(), e.function->getEntryBlock().begin());
  llvm::Value* failed = entry.CreateAlloca(b.getInt1Ty());
  b.CreateStore(b.getFalse(), failed);
  LogicalResult ok = forEachElement(e, op.getCondition(), [&](llvm::Value* element, llvm::Value* v) {
    e.ifThen(b.CreateNot(v), [&] {
      record(e, site, element, elementOf(op.getCondition()), v);
      b.CreateStore(b.getTrue(), failed);
    });
  });
  auto* next = llvm::BasicBlock::Create(b.getContext(), "asserted", e.function);
  b.CreateCondBr(b.CreateLoad(b.getInt1Ty(), failed), e.exit, next);
  b.SetInsertPoint(next);
  return ok;
}

}  // namespace tile::ir::host
