// histogram.cpp - counts, or sums of weights, in shared memory: cleared, added to by every thread for its own elements,
// read by all; and those that a loop goes on adding to.
#include <set>

#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/exchange.h"
#include "compiler/gpu/lowering/lowering.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Numbers in shared memory, of each `copies` side by side.
struct Table {
  llvm::Value* base;
  int64_t bins, copies = 1;
};

/// Adds its weight, or 1, to the table's number for each element of the tile.
void emitCounts(Emitter& e, Value source, Value weights, const Table& table) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Layout& from = e.layoutOf(source);
  llvm::ArrayRef<llvm::Value*> values = e.regs(source);
  llvm::Type* type = weights ? e.elementType(weights) : b.getInt32Ty();
  const std::string text = "@$2 red.relaxed.cta.shared.add" + suffixOfAdd(type) + " [$0], $1;";
  const std::string constraints = "r," + constraintOf(type).str() + ",b,~{memory}";
  const int64_t bytes = memoryBytes(type);
  llvm::Value* base = table.base;
  if (table.copies > 1)
    base = b.CreatePtrAdd(base, b.CreateMul(b.CreateURem(e.lane(), e.i32(table.copies)), e.i32(bytes)));
  llvm::Value* first = e.isFirstReplica(from);
  std::set<layout::Coord> counted;  // registers may hold an element twice, too
  for (int reg = 0; reg < from.numRegs(); ++reg) {
    if (from.isRegPadding(reg) || !counted.insert(from.regCoord(reg)).second) continue;
    llvm::Value* inside = b.CreateICmpULT(values[reg], e.i32(table.bins));
    llvm::Value* predicate = e.andAll({first, inside, e.inTile(from, reg)});
    llvm::Value* ptr = b.CreatePtrAdd(base, b.CreateMul(values[reg], e.i32(bytes * table.copies)));
    llvm::Value* added = weights ? e.regs(weights)[reg] : e.i32(1);
    e.inlineAsm(b.getVoidTy(), text, constraints, {b.CreatePtrToInt(ptr, b.getInt32Ty()), added, predicate});
  }
}

}  // namespace

LogicalResult emitHistogram(Emitter& e, HistogramOp op) {
  const layout::Layout& to = e.layoutOf(op.getResult());
  llvm::Value* base = e.scratch(op);
  const layout::Coord origin(1, 0);
  llvm::Type* element = e.elementType(op.getResult());
  llvm::Value* zero = llvm::Constant::getNullValue(element);
  storeLinear(e, base, to.shape(), to, Regs(static_cast<size_t>(to.numRegs()), zero), origin);
  e.barrier();
  emitCounts(e, op.getSource(), op.getWeights(), {base, to.shape()[0]});
  e.barrier();
  e.define(op.getResult(), loadLinear(e, base, to.shape(), to, element, origin));
  return success();
}

LogicalResult emitSmemCount(Emitter& e, SmemCountOp op) {
  const int64_t copies = op.getCopies();
  const int64_t bins = op.getTarget().getType().getShape()[1] / copies;
  emitCounts(e, op.getSource(), op.getWeights(), {e.scalar(op.getTarget()), bins, copies});
  return success();
}

}  // namespace tile::ir
