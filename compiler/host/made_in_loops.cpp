// made_in_loops.cpp - which placed elementwise tiles are made in the loops of a later op, in one pass over memory
// instead of two:
//   - in those of the reduction that reads the tile first: they visit every element once;
//   - in those of the last reduction before it that reads one of its operands (a state that is summed up, then
//     updated);
//   - in those of the placed elementwise op that comes next, where both have one shape.
// Where no other op reads the tile it is not stored at all.
#include "compiler/dialect/dialect.h"
#include "compiler/host/plan.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace tile::ir::host {
using namespace mlir;

/// Visits the placed tiles that evaluating `tile` reads; `same` while elements are read to make the element of the same
/// position.
void Plan::visitLeaves(Value tile, bool same, llvm::function_ref<void(Value, bool)> visit) const {
  Visited visited;
  visitLeaves(tile, same, visited, visit);
}
void Plan::visitLeaves(Value tile, bool same, Visited& visited, llvm::function_ref<void(Value, bool)> visit) const {
  if (!isTile(tile) || !visited.insert({tile, same}).second) return;
  if (refs_.contains(tile)) return visit(tile, same);
  Operation* op = tile.getDefiningOp();
  for (Value operand : op->getOperands()) visitLeaves(operand, same && isElementwise(op), visited, visit);
}

/// The reduction in whose loops `made` can be computed, or null: it reads the tile first, and only at the elements it
/// visits; and nothing from the tile's own op to the reduction's end changes what the tile is computed from.
Operation* Plan::firstReduction(Value made) {
  Operation* def = made.getDefiningOp();
  llvm::DenseSet<int> sources;
  for (Value operand : def->getOperands())
    visitLeaves(operand, true, [&](Value leaf, bool) { sources.insert(root(refs_[leaf].buffer)); });
  const int own = root(refs_[made].buffer);
  auto isNeeded = [&](Value written) {
    const int buffer = root(refs_[written].buffer);
    return buffer == own || sources.contains(buffer);
  };
  auto overwrites = [&](Operation* op) {
    return llvm::any_of(op->getResults(), [&](Value v) { return owned_.contains(v) && isNeeded(v); }) ||
           llvm::any_of(tilesMadeIn(op), isNeeded);
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

/// The reduction before `made` in whose loops it can be computed, or null: it reads, at the elements it visits, a tile
/// that `made` is computed from; all else that takes is there by then, and nothing in between reads or writes what
/// would be overwritten.
Operation* Plan::lastReduction(Value made) {
  Operation* def = made.getDefiningOp();
  const int own = root(refs_[made].buffer);
  llvm::SmallVector<Value> sources;
  bool sameElements = true;
  for (Value operand : def->getOperands())
    visitLeaves(operand, true, [&](Value leaf, bool same) {
      sources.push_back(leaf);
      sameElements &= same || root(refs_[leaf].buffer) != own;
    });
  if (!sameElements) return nullptr;
  auto touchesOwn = [&](Operation* op) {
    return llvm::any_of(op->getResults(),
                        [&](Value v) { return owned_.contains(v) && root(refs_[v].buffer) == own; }) ||
           llvm::any_of(members_[own], [&](Value member) {
             return llvm::any_of(readsOf(member), [&](const Read& read) { return read.op == op; });
           });
  };
  Operation* op = def->getPrevNode();
  for (;; op = op->getPrevNode()) {
    if (!op || (op->getNumRegions() > 0 && !isa<ReduceOp, ScanOp>(op))) return nullptr;
    if (auto sums = dyn_cast<ReduceOp>(op); sums && shapeOf(sums.getSources()[0]) == shapeOf(made)) break;
    if (touchesOwn(op)) return nullptr;
  }
  if (!llvm::any_of(op->getResults(), [&](Value v) { return owned_.contains(v); })) return nullptr;
  bool reads = false, elsewhere = false;
  for (Value source : cast<ReduceOp>(op).getSources())
    visitLeaves(source, true, [&](Value leaf, bool same) {
      reads |= same && llvm::is_contained(sources, leaf);
      elsewhere |= !same && root(refs_[leaf].buffer) == own;
    });
  if (!reads || elsewhere || !isComputableAt(op, def)) return nullptr;
  for (Value other : tilesMadeIn(op))
    for (Value source : sources)
      if (root(refs_[source].buffer) == root(refs_[other].buffer)) return nullptr;
  return op;
}

/// Whether all that the operands of `def` are evaluated from exists in front of `point`, an earlier op of its block.
bool Plan::isComputableAt(Operation* point, Operation* def) const {
  llvm::SmallVector<Value> open(def->getOperands());
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    const Value v = open.pop_back_val();
    Operation* op = v.getDefiningOp();
    if (!op || op->getBlock() != def->getBlock() || !seen.insert(v).second) continue;
    if (isTile(v) && !refs_.contains(v)) {  // evaluated where it is read
      llvm::append_range(open, op->getOperands());
      continue;
    }
    Operation* loops = isTile(v) ? madeIn(v) : nullptr;
    if (!(loops ? loops : op)->isBeforeInBlock(point)) return false;
  }
  return true;
}

/// The op behind `made` in whose loops it can be computed as well: the next one that does anything with tiles, if that
/// makes a tile of the same shape, element by element.
Operation* Plan::nextMaker(Value made) {
  llvm::SmallVector<Value> behind;  // tiles that are made between here and there, in the same loops
  for (Operation* op = made.getDefiningOp()->getNextNode(); op; op = op->getNextNode()) {
    if (op->getNumRegions() > 0) return nullptr;
    if (llvm::none_of(op->getResults(), [&](Value v) { return owned_.contains(v); })) {
      // No code of its own, or none that touches tiles. (An atomic's result may be a tile that nobody reads.)
      const bool isFused =
          op->getNumResults() > 0 && llvm::all_of(op->getResults(), isTile) && !hasEffect<MemoryEffects::Write>(op);
      if (isFused || llvm::none_of(op->getOperands(), isTile)) continue;
      return nullptr;
    }
    if (op->getNumResults() != 1 || !isElementwise(op) || shapeOf(op->getResult(0)) != shapeOf(made)) return nullptr;
    behind.push_back(op->getResult(0));
    if (Operation* loops = madeIn(op->getResult(0))) {
      if (isa<ReduceOp>(loops)) return nullptr;
      continue;
    }
    // In these loops one element of each tile follows the other: what they read of each other must be of its position.
    auto apart = [&](Value maker, Value written) {
      bool ok = true;
      for (Value operand : maker.getDefiningOp()->getOperands())
        visitLeaves(operand, true, [&](Value leaf, bool same) {
          if (root(refs_[leaf].buffer) == root(refs_[written].buffer)) ok &= same;
        });
      return ok;
    };
    for (Value other : behind) {
      bool readsOnlyMade = true;  // an earlier tile of that buffer is gone, another name of it has an order of its own
      for (Value operand : other.getDefiningOp()->getOperands())
        visitLeaves(operand, true, [&](Value leaf, bool) {
          readsOnlyMade &= leaf == made || root(refs_[leaf].buffer) != root(refs_[made].buffer);
        });
      if (!readsOnlyMade || !apart(made, other) || !apart(other, made)) return nullptr;
      if (root(refs_[other].buffer) == root(refs_[made].buffer)) return nullptr;
    }
    return op;
  }
  return nullptr;
}

void Plan::makeInLoops(func::FuncOp kernel) {
  llvm::SmallVector<Value> candidates;
  kernel.walk([&](Operation* op) {
    if (op->getNumResults() == 1 && isElementwise(op) && owned_.contains(op->getResult(0)) &&
        !readsMemory_.contains(op))
      candidates.push_back(op->getResult(0));
  });
  llvm::DenseMap<Operation*, int> lengths;  // ops in the loops of an op
  for (Value made : llvm::reverse(candidates)) {
    Operation* loops = firstReduction(made);
    if (!loops) loops = lastReduction(made);
    if (!loops) loops = nextMaker(made);
    if (!loops) continue;
    int& length = lengths.try_emplace(loops, costOfMaking(loops)).first->second;
    const int own = costOfMaking(made.getDefiningOp());
    if (length + own > kLongest) continue;
    length += own;
    madeIn_[made] = loops;
    const bool alone = members_[root(refs_[made].buffer)].size() == 1;
    if (!alone || !llvm::all_of(readsOf(made), [&](const Read& read) { return read.op == loops; })) continue;
    passing_.insert(made);
    buffers_[refs_[made].buffer].bytes = 0;
  }
}

Operation* Plan::secondPass(Value tile) {
  llvm::SmallVector<Operation*, 4> passes;
  for (const Read& read : readsOf(tile)) {
    Operation* loops = read.op->getNumResults() == 1 ? madeIn(read.op->getResult(0)) : nullptr;
    if (!loops) loops = read.op;
    if (const auto together = storedTogether(loops); !together.empty()) loops = together[0];
    if (loops->getBlock() != tile.getParentBlock()) return nullptr;
    if (!llvm::is_contained(passes, loops)) passes.push_back(loops);
  }
  llvm::sort(passes, [](Operation* x, Operation* y) { return x->isBeforeInBlock(y); });
  return passes.size() > 1 ? passes[1] : nullptr;
}

llvm::SmallVector<Value, 2> Plan::tilesMadeIn(Operation* loops) const {
  llvm::SmallVector<Value, 2> tiles;
  for (auto [tile, op] : madeIn_)
    if (op == loops) tiles.push_back(tile);
  llvm::sort(tiles, [](Value x, Value y) { return x.getDefiningOp()->isBeforeInBlock(y.getDefiningOp()); });
  return tiles;
}

int Plan::costOfMadeIn(Operation* loops) const {
  int cost = 0;
  for (Value tile : tilesMadeIn(loops)) cost += costOfMaking(tile.getDefiningOp());
  return cost;
}

}  // namespace tile::ir::host
