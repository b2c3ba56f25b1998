// histogram.cpp - counts in shared memory: cleared, added to by every thread for its own elements, read by all; and
// those that a loop goes on counting in.
#include <set>

#include "compiler/gpu/lowering/exchange.h"
#include "compiler/gpu/lowering/lowering.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Adds 1 to the numbers at `base`, `bins` of them, for each element of the tile.
void emitCounts(Emitter& e, Value source, llvm::Value* base, int64_t bins) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Layout& from = e.layoutOf(source);
  llvm::ArrayRef<llvm::Value*> values = e.regs(source);
  llvm::Value* first = e.isFirstReplica(from);
  std::set<layout::Coord> counted;  // registers may hold an element twice, too
  for (int reg = 0; reg < from.numRegs(); ++reg) {
    if (from.isRegPadding(reg) || !counted.insert(from.regCoord(reg)).second) continue;
    llvm::Value* inside = b.CreateICmpULT(values[reg], e.i32(bins));
    llvm::Value* predicate = e.andAll({first, inside, e.inTile(from, reg)});
    llvm::Value* ptr = b.CreatePtrAdd(base, b.CreateMul(values[reg], e.i32(4)));
    e.inlineAsm(b.getVoidTy(), "@$2 red.relaxed.cta.shared.add.u32 [$0], $1;", "r,r,b,~{memory}",
                {b.CreatePtrToInt(ptr, b.getInt32Ty()), e.i32(1), predicate});
  }
}

}  // namespace

LogicalResult emitHistogram(Emitter& e, HistogramOp op) {
  const layout::Layout& to = e.layoutOf(op.getResult());
  llvm::Value* base = e.scratch(op);
  const layout::Coord origin(1, 0);
  storeLinear(e, base, to.shape(), to, Regs(static_cast<size_t>(to.numRegs()), e.i32(0)), origin);
  e.barrier();
  emitCounts(e, op.getSource(), base, to.shape()[0]);
  e.barrier();
  e.define(op.getResult(), loadLinear(e, base, to.shape(), to, e.elementType(op.getResult()), origin));
  return success();
}

LogicalResult emitSmemCount(Emitter& e, SmemCountOp op) {
  emitCounts(e, op.getSource(), e.scalar(op.getTarget()), op.getTarget().getType().getShape()[1]);
  return success();
}

}  // namespace tile::ir
