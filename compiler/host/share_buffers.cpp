// share_buffers.cpp - which values of a loop or branch may live in one buffer, so that carrying a tile costs no copy.
//
// The initial value, the block argument, the yielded value and the result of `scf.for` are tied pairwise, and so are
// the operand and the result of an op that can work in place, where nothing is clobbered: a value may be written into a
// buffer if every other value kept there is dead by then, or is read only at the very element being written (an
// accumulator). Liveness is exact on structured control flow: see isReadAfter.
#include "compiler/dialect/dialect.h"
#include "compiler/host/plan.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

bool isLoop(Operation* op) { return isa<scf::ForOp, scf::WhileOp>(op); }

}  // namespace

void Plan::collectReads(Value v, bool pointwise, Visited& visited, SmallVectorImpl<Read>& out) const {
  if (!visited.insert({v, pointwise}).second) return;
  for (OpOperand& use : v.getUses()) {
    Operation* user = use.getOwner();
    bool elementwise = user->getNumResults() > 0 && OpTrait::hasElementwiseMappableTraits(user);
    bool sameElements = pointwise && (elementwise || isa<AssumeOp>(user));
    // Fused results and aliases are read where their own readers are. Atomics run where they stand, read or not.
    bool through = false, placedHere = isa<AtomicRmwOp, AtomicCasOp>(user);
    for (Value result : user->getResults()) {
      if (!isTile(result) || isa<scf::ForOp, scf::WhileOp, scf::IfOp>(user)) continue;
      auto it = refs_.find(result);
      bool owns = it != refs_.end() && owned_.contains(result);
      (owns ? placedHere : through) = true;
      if (!owns) collectReads(result, sameElements, visited, out);
    }
    bool accumulates = false;
    if (auto dot = dyn_cast<DotOp>(user)) accumulates = use.getOperandNumber() == 2;
    if (placedHere || !through)
      out.push_back({user, use.getOperandNumber(), pointwise && (elementwise || accumulates)});
  }
}

ArrayRef<Plan::Read> Plan::readsOf(Value v) {
  auto [it, fresh] = reads_.try_emplace(v);
  Visited visited;
  if (fresh) collectReads(v, true, visited, it->second);
  return it->second;
}

/// Whether some read of `v` can run after `point` (itself not counted) before v is written again. Walks outwards from
/// `point`: reads later in a block are reachable; earlier ones only around a loop that v outlives.
bool Plan::isReadAfter(Value v, Operation* point) {
  Block* scope = v.getParentBlock();
  auto isInside = [&](Operation* op, Operation* outer) {
    const auto [first, last] = numbers_.lookup(outer);
    const int number = numbers_.lookup(op).first;
    return first < number && number <= last;
  };
  for (const Read& read : readsOf(v)) {
    bool isBelow = false;  // the read is inside of `at`, as a level further in has shown
    for (Operation* at = point; at; at = at->getParentOp()) {
      Block* block = at->getBlock();
      if (!block) break;
      Operation* parent = block->getParentOp();
      const bool isAround = parent && isInside(read.op, parent);
      // The op of this block that the read is, or is in. (Looking for it takes a walk outwards from there.)
      Operation* reader = isBelow ? at : isAround ? block->findAncestorOpInBlock(*read.op) : nullptr;
      if (reader && reader != at && at->isBeforeInBlock(reader)) return true;
      // Inside the same op: the reader is in another region of it (both run only in a while), or is nested in `point`.
      if (reader == at && read.op != at && (at == point || isa<scf::WhileOp>(at))) return true;
      if (block == scope) break;
      if (isAround && isLoop(parent)) return true;
      isBelow = isAround;
    }
  }
  return false;
}

/// Whether writing `written` would destroy `other` while it is still needed.
bool Plan::clobbers(Value written, Value other) {
  auto readsAt = [&](Operation* op, int exceptOperand) {
    return llvm::any_of(readsOf(other),
                        [&](const Read& r) { return r.op == op && static_cast<int>(r.operand) != exceptOperand; });
  };
  // Results of control flow do not exist yet inside it; a value of a loop body is made anew by the next iteration.
  auto isDefinedBefore = [&](Operation* point) {
    Operation* at = other.getParentBlock()->findAncestorOpInBlock(*point);
    if (!at) return false;
    Operation* def = other.getDefiningOp();
    return !def || def->isBeforeInBlock(at);
  };
  // A copy into `written` at `point` from its operand number `operand`.
  auto copiedAt = [&](Operation* point, Value source, int operand) {
    if (!isDefinedBefore(point)) return false;
    return readsAt(point, source == other ? operand : -1) || isReadAfter(other, point);
  };
  if (auto arg = dyn_cast<BlockArgument>(written)) {
    Operation* parent = arg.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      int i = static_cast<int>(arg.getArgNumber()) - 1;
      if (copiedAt(loop, loop.getInitArgs()[i], 3 + i)) return true;
      Operation* yield = loop.getBody()->getTerminator();
      return copiedAt(yield, yield->getOperand(i), i);
    }
    return true;  // while loops keep buffers of their own
  }
  Operation* def = written.getDefiningOp();
  unsigned index = cast<OpResult>(written).getResultNumber();
  if (isa<scf::ForOp>(def)) return false;  // written through its block argument
  if (auto branch = dyn_cast<scf::IfOp>(def)) {
    for (Region* region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      if (region->empty()) continue;
      Operation* yield = region->front().getTerminator();
      if (copiedAt(yield, yield->getOperand(index), static_cast<int>(index))) return true;
    }
    return false;
  }
  if (isa<scf::WhileOp>(def)) return true;
  if (!isDefinedBefore(def)) return false;
  bool readInAnotherOrder = llvm::any_of(readsOf(other), [&](const Read& r) { return r.op == def && !r.pointwise; });
  return readInAnotherOrder || isReadAfter(other, def);
}

bool Plan::tie(Value a, Value b) {
  auto own = [&](Value v) { return owned_.contains(v); };
  if (a == b || a.getType() != b.getType() || !own(a) || !own(b)) return false;
  int ra = root(refs_[a].buffer), rb = root(refs_[b].buffer);
  if (ra == rb) return true;
  for (Value x : members_[ra])
    for (Value y : members_[rb]) {
      bool siblings = (isa<BlockArgument>(x) && isa<BlockArgument>(y) && x.getParentBlock() == y.getParentBlock()) ||
                      (x.getDefiningOp() && x.getDefiningOp() == y.getDefiningOp());
      if (siblings || clobbers(x, y) || clobbers(y, x)) return false;
    }
  merge(a, b);
  return true;
}

void Plan::merge(Value a, Value b) {
  int ra = root(refs_[a].buffer), rb = root(refs_[b].buffer);
  parent_[rb] = ra;
  members_[ra].append(members_[rb]);
}

void Plan::tieControlFlow(func::FuncOp kernel) {
  // A loop's argument and result are one buffer by construction: after the last iteration the argument holds the
  // result.
  kernel.walk([&](scf::ForOp loop) {
    for (auto [arg, result] : llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
      if (isTile(arg)) merge(arg, result);
  });
  kernel.walk([&](scf::WhileOp loop) {
    for (auto [arg, result] : llvm::zip(loop.getAfterArguments(), loop.getResults()))
      if (isTile(arg)) merge(arg, result);
  });
  // Inner loops first: copies there cost most.
  kernel.walk<WalkOrder::PostOrder>([&](Operation* op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [arg, yielded] : llvm::zip(loop.getRegionIterArgs(), loop.getBody()->getTerminator()->getOperands()))
        if (isTile(arg)) tie(arg, yielded);
      for (auto [arg, init] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs()))
        if (isTile(arg)) tie(arg, init);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Region* region : {&branch.getThenRegion(), &branch.getElseRegion()})
        if (!region->empty())
          for (auto [result, yielded] : llvm::zip(branch.getResults(), region->front().getTerminator()->getOperands()))
            if (isTile(result)) tie(result, yielded);
    }
  });
  // Then whatever can be updated in place: accumulators of dots, elementwise work on a tile that dies there.
  kernel.walk([&](Operation* op) {
    if (auto dot = dyn_cast<DotOp>(op)) {
      tie(dot.getAcc(), dot.getResult());
    } else if (op->getNumResults() == 1 && OpTrait::hasElementwiseMappableTraits(op)) {
      for (Value operand : op->getOperands())
        if (tie(operand, op->getResult(0))) break;
    }
  });
}

}  // namespace tile::ir::host
