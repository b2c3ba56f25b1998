// sole_readers.cpp - finds tiles that are needed by the loops of one op alone, each element once. They are evaluated
// there and kept in registers, however many uses they have on the way (random numbers, losses, polynomials): in memory
// they would be written, and read again for every use.
#include "compiler/dialect/dialect.h"
#include "compiler/host/plan.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/IR/Iterators.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

/// An op with loops of its own, and which of its operands they run for where each has loops of its own.
using Reader = std::pair<Operation*, unsigned>;

/// Ops whose result has an element for each element of their operands, at the same place.
bool keepsElements(Operation* op) {
  if (isa<ReshapeOp, TransOp>(op)) return movesOnlyUnitDims(op);
  return isElementwise(op) || isa<PtrAddOp, AssumeOp>(op);
}

}  // namespace

void Plan::findSoleReaders(func::FuncOp kernel) {
  llvm::DenseMap<Operation*, Reader> soleReader;
  auto readerAt = [&](OpOperand& use) -> Reader {
    Operation* user = use.getOwner();
    if (isa<DotOp, CatOp>(user)) return {user, use.getOperandNumber()};
    if (isa<StoreOp, ReduceOp, ScanOp, GatherOp, ScatterOp>(user)) return {user, 0};
    if (!keepsElements(user) || !llvm::all_of(user->getResults(), isTile)) return {};
    auto it = soleReader.find(user);
    return it != soleReader.end() ? it->second : Reader{user, 0};
  };
  kernel->walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation* op) {
    if (!keepsElements(op) || op->use_empty() || !llvm::all_of(op->getResults(), isTile)) return;
    Reader sole{};
    for (OpOperand& use : op->getUses()) {
      const Reader reader = readerAt(use);
      if (!reader.first || (sole.first && sole != reader) || use.getOwner()->getBlock() != op->getBlock()) return;
      sole = reader;
    }
    soleReader[op] = sole;
    readOnce_.insert(op);
  });
}

}  // namespace tile::ir::host
