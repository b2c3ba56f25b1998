// made_in_reader.cpp - which placed elementwise tiles are made by the reduction that reads them first: its loops visit
// every element once, so the tile is computed, stored and added up in one pass instead of being written and read again.
// Where no other op reads the tile it is not stored at all.
#include "compiler/dialect/dialect.h"
#include "compiler/host/plan.h"
#include "compiler/lowering/elementwise.h"

namespace tile::ir::host {
using namespace mlir;

/// Visits the placed tiles that evaluating `tile` reads; `same` while elements are read to make the element of the same
/// position.
void Plan::visitLeaves(Value tile, bool same, llvm::function_ref<void(Value, bool)> visit) const {
  if (!isTile(tile)) return;
  if (refs_.contains(tile)) return visit(tile, same);
  Operation* op = tile.getDefiningOp();
  for (Value operand : op->getOperands()) visitLeaves(operand, same && isElementwise(op), visit);
}

/// The reduction in whose loops `made` can be computed, or null: it reads the tile first, and only at the elements it
/// visits; and nothing from the tile's own op to the reduction's end changes what the tile is computed from.
Operation* Plan::firstReduction(Value made) {
  Operation* def = made.getDefiningOp();
  llvm::DenseSet<int> sources;
  for (Value operand : def->getOperands())
    visitLeaves(operand, true, [&](Value leaf, bool) { sources.insert(root(refs_[leaf].buffer)); });
  const int own = root(refs_[made].buffer);
  auto overwrites = [&](Operation* op) {
    return llvm::any_of(op->getResults(), [&](Value result) {
      if (!owned_.contains(result)) return false;
      const int written = root(refs_[result].buffer);
      return written == own || sources.contains(written);
    });
  };
  for (Operation* op = def->getNextNode(); op; op = op->getNextNode()) {
    const bool controls = op->getNumRegions() > 0 && !isa<ReduceOp, ScanOp>(op);
    if (controls || overwrites(op)) return nullptr;
    if (!llvm::any_of(readsOf(made), [&](const Read& read) { return read.op == op; })) continue;
    auto reduction = dyn_cast<ReduceOp>(op);
    if (!reduction || !llvm::any_of(op->getResults(), [&](Value v) { return owned_.contains(v); })) return nullptr;
    // Another name of the tile's buffer (a reshape) is read in an order of its own.
    bool visited = false, elsewhere = false;
    for (Value source : reduction.getSources())
      visitLeaves(source, true, [&](Value leaf, bool same) {
        const bool isMade = leaf == made && same;
        visited |= isMade;
        elsewhere |= !isMade && root(refs_[leaf].buffer) == own;
      });
    return visited && !elsewhere ? op : nullptr;
  }
  return nullptr;
}

void Plan::makeInReaders(func::FuncOp kernel) {
  kernel.walk([&](Operation* op) {
    if (op->getNumResults() != 1 || !isElementwise(op) || !owned_.contains(op->getResult(0))) return;
    Value made = op->getResult(0);
    Operation* reduction = firstReduction(made);
    if (!reduction) return;
    madeIn_[made] = reduction;
    const bool alone = members_[root(refs_[made].buffer)].size() == 1;
    if (!alone || !llvm::all_of(readsOf(made), [&](const Read& read) { return read.op == reduction; })) return;
    passing_.insert(made);
    buffers_[refs_[made].buffer].bytes = 0;
  });
}

int Plan::costOfMadeIn(Operation* op) const {
  int cost = 0;
  for (auto [tile, reduction] : madeIn_)
    if (reduction == op) cost += costOfMaking(tile.getDefiningOp());
  return cost;
}

}  // namespace tile::ir::host
