// debug.cpp - print and assert: records appended to the launch's ring buffer (runtime/abi.h) without any call, which
// would serialise tensor-core pipelines. A failed assertion writes its records, makes them visible to the host, and
// traps.
#include <cstddef>

#include "compiler/debug_site.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

namespace {

// Emits `body` under a condition.
void when(Emitter& e, llvm::Value* condition, llvm::function_ref<void()> body) {
  llvm::Function* function = e.b.GetInsertBlock()->getParent();
  auto* then = llvm::BasicBlock::Create(e.b.getContext(), "when", function);
  auto* after = llvm::BasicBlock::Create(e.b.getContext(), "when.end", function);
  e.b.CreateCondBr(condition, then, after);
  e.b.SetInsertPoint(then);
  body();
  e.b.CreateBr(after);
  e.b.SetInsertPoint(after);
}

llvm::Value* bitsOf(Emitter& e, llvm::Value* value) {
  llvm::Type* type = value->getType();
  if (type->isFloatingPointTy()) value = e.b.CreateBitCast(value, e.b.getIntNTy(type->getScalarSizeInBits()));
  return e.b.CreateZExt(value, e.b.getInt64Ty());
}

llvm::Value* elementIndex(Emitter& e, const layout::Layout& layout, int reg) {
  layout::Coord coord = layout.regCoord(reg);
  llvm::Value* index = e.i32(0);
  for (int dim = 0; dim < layout.rank(); ++dim) {
    index = e.b.CreateMul(index, e.i32(layout.shape()[dim]));
    index = e.b.CreateAdd(index, e.b.CreateAdd(e.threadCoord(layout, dim), e.i32(coord[dim])));
  }
  return index;
}

// One record; records past the ring's capacity are only counted.
void append(Emitter& e, uint32_t site, llvm::Value* element, llvm::Value* bits) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Value* ring = e.debugRing();
  llvm::Value* slot =
      b.CreateAtomicRMW(llvm::AtomicRMWInst::Add, b.CreatePtrAdd(ring, e.i64(offsetof(DebugRing, next))), e.i32(1),
                        llvm::Align(4), llvm::AtomicOrdering::Monotonic);
  llvm::Value* capacity =
      b.CreateAlignedLoad(b.getInt32Ty(), b.CreatePtrAdd(ring, e.i64(offsetof(DebugRing, capacity))), llvm::Align(4));
  when(e, b.CreateICmpULT(slot, capacity), [&] {
    llvm::Value* start = b.CreateMul(b.CreateZExt(slot, b.getInt64Ty()), e.i64(sizeof(DebugRecord)));
    llvm::Value* record = b.CreatePtrAdd(b.CreatePtrAdd(ring, e.i64(sizeof(DebugRing))), start);
    auto field = [&](size_t offset, llvm::Value* value) {
      b.CreateAlignedStore(value, b.CreatePtrAdd(record, e.i64(static_cast<int64_t>(offset))),
                           llvm::Align(memoryBytes(value->getType())),
                           /*isVolatile=*/true);
    };
    field(offsetof(DebugRecord, site), e.i32(site));
    for (size_t i = 0; i < 3; ++i) field(offsetof(DebugRecord, program) + 4 * i, programId(e, static_cast<int>(i)));
    field(offsetof(DebugRecord, element), element);
    field(offsetof(DebugRecord, bits), bits);
  });
}

// Calls `visit(register, condition)` for every element once over all threads; condition null: always.
void eachElement(Emitter& e, const layout::Layout& layout, llvm::function_ref<void(int, llvm::Value*)> visit) {
  llvm::Value* first = e.isFirstReplica(layout);
  std::map<layout::Coord, int> seen;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    if (layout.isRegPadding(reg) || !seen.emplace(layout.regCoord(reg), reg).second) continue;
    visit(reg, e.andAll({first, e.inTile(layout, reg)}));
  }
}

}  // namespace

LogicalResult emitPrint(Emitter& e, PrintOp op) {
  const layout::Layout& layout = e.layoutOf(op.getValue());
  uint32_t site = e.debugSite(debugSite(op));
  Regs values(e.regs(op.getValue()));
  eachElement(e, layout, [&](int reg, llvm::Value* condition) {
    auto body = [&] { append(e, site, elementIndex(e, layout, reg), bitsOf(e, values[reg])); };
    if (condition)
      when(e, condition, body);
    else
      body();
  });
  return success();
}

LogicalResult emitAssert(Emitter& e, AssertOp op) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Layout& layout = e.layoutOf(op.getCondition());
  uint32_t site = e.debugSite(debugSite(op));
  Regs values(e.regs(op.getCondition()));
  // The common way costs one test; the records are written behind it.
  llvm::SmallVector<std::pair<int, llvm::Value*>> failures;
  llvm::Value* any = nullptr;
  eachElement(e, layout, [&](int reg, llvm::Value* condition) {
    llvm::Value* fails = e.andAll({b.CreateNot(values[reg]), condition});
    failures.emplace_back(reg, fails);
    any = any ? b.CreateOr(any, fails) : fails;
  });
  when(e, any, [&] {
    for (auto [reg, fails] : failures) when(e, fails, [&] { append(e, site, elementIndex(e, layout, reg), e.i64(0)); });
    b.CreateIntrinsic(llvm::Intrinsic::nvvm_membar_sys, {});
    e.inlineAsm(b.getVoidTy(), "trap;", "", {});
  });
  return success();
}

}  // namespace tile::ir
