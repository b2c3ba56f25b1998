// histogram.cpp - counts in shared memory: cleared, added to by every thread for its own elements, read by all.
#include <set>

#include "compiler/gpu/lowering/exchange.h"
#include "compiler/gpu/lowering/lowering.h"

namespace tile::ir {
using namespace mlir;

LogicalResult emitHistogram(Emitter& e, HistogramOp op) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Layout &from = e.layoutOf(op.getSource()), &to = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  llvm::Value* base = e.scratch(op);
  const layout::Coord origin(1, 0);
  storeLinear(e, base, to.shape(), to, Regs(static_cast<size_t>(to.numRegs()), e.i32(0)), origin);
  e.barrier();
  llvm::ArrayRef<llvm::Value*> values = e.regs(op.getSource());
  llvm::Value* first = e.isFirstReplica(from);
  std::set<layout::Coord> counted;  // registers may hold an element twice, too
  for (int reg = 0; reg < from.numRegs(); ++reg) {
    if (from.isRegPadding(reg) || !counted.insert(from.regCoord(reg)).second) continue;
    llvm::Value* inside = b.CreateICmpULT(values[reg], e.i32(to.shape()[0]));
    llvm::Value* predicate = e.andAll({first, inside, e.inTile(from, reg)});
    llvm::Value* ptr = b.CreatePtrAdd(base, b.CreateMul(values[reg], e.i32(4)));
    e.inlineAsm(b.getVoidTy(), "@$2 red.relaxed.cta.shared.add.u32 [$0], $1;", "r,r,b,~{memory}",
                {b.CreatePtrToInt(ptr, b.getInt32Ty()), e.i32(1), predicate});
  }
  e.barrier();
  e.define(op.getResult(), loadLinear(e, base, to.shape(), to, element, origin));
  return success();
}

}  // namespace tile::ir
