// ring_groups.cpp - finding groups of loads and the rings they share.
#include "compiler/gpu/rings/ring_groups.h"

#include <algorithm>

#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/products.h"
#include "llvm/ADT/MapVector.h"

namespace tile::ir {
using namespace mlir;

SmallVector<Operation*> readersOf(Value smem) {
  SmallVector<Operation*> readers;
  for (Operation* user : smem.getUsers()) {
    if (isa<SmemTransOp>(user))
      llvm::append_range(readers, readersOf(user->getResult(0)));
    else
      readers.push_back(user);
  }
  return readers;
}

bool isSharedCopy(Operation* op) { return isa<LoadSharedOp, GatherSharedOp>(op); }

SmallVector<int64_t, 2> copiedShape(Operation* copy) {
  if (auto gather = dyn_cast<GatherSharedOp>(copy))
    return SmallVector<int64_t, 2>(cast<ShapedType>(gather.getOffsets().getType()).getShape());
  const ArrayRef<int64_t> box = cast<LoadSharedOp>(copy).getBox();
  const auto across = static_cast<size_t>(copiedType(copy).columnDims(box));
  int64_t rows = 1, columns = 1;
  for (int64_t extent : box.drop_back(across)) rows *= extent;
  for (int64_t extent : box.take_back(across)) columns *= extent;
  return {rows, columns};
}

bool onlyMultiplies(Block& block) {
  auto isTile = llvm::IsaPred<RankedTensorType>;
  auto isOfPlaces = [](Operation& op) {
    return isMemoryEffectFree(&op) && llvm::all_of(op.getResultTypes(), [](Type type) {
      return getElementTypeOrSelf(type).isIntOrIndex();
    });
  };
  return llvm::none_of(block.without_terminator(), [&](Operation& op) {
    const bool touches = llvm::any_of(op.getOperandTypes(), isTile) || llvm::any_of(op.getResultTypes(), isTile);
    return op.getNumRegions() || (touches && !isa<MmaOp>(op) && !isOfPlaces(op));
  });
}

bool isAsyncProduct(Operation* op) {
  auto mma = dyn_cast<MmaOp>(op);
  return mma && mma.getEngine() >= Engine::wgmma_f16;
}

int64_t LoadGroup::turnedBytes() const {
  int64_t total = 0;
  for (Operation* load : turned) total += copiedType(load).slotBytes();
  return total;
}

namespace {

/// Where one load is acquired and released, and who reads it first and last.
struct Reach {
  Operation *first, *last, *firstReader, *lastReader;
};

bool contains(Region& region, ArrayRef<Operation*> ops) {
  return llvm::all_of(ops, [&](Operation* op) { return region.isAncestor(op->getParentRegion()); });
}

/// The threads of the product read the tile themselves, each warp at its own time.
bool readsAsFragments(MmaOp product, Value tile) {
  Value operand = fragmentOperand(product);
  while (operand && operand != tile) {
    auto trans = operand.getDefiningOp<SmemTransOp>();
    operand = trans ? Value(trans.getSource()) : Value();
  }
  return operand != nullptr;
}

// A branch that copies anyway takes along what only it reads.
Region* branchOf(Operation* statement, ArrayRef<Operation*> readers) {
  auto branch = dyn_cast<scf::IfOp>(statement);
  if (!branch) return nullptr;
  for (Region& region : branch->getRegions()) {
    if (!contains(region, readers)) continue;
    auto copies =
        region.walk([](Operation* op) { return isSharedCopy(op) ? WalkResult::interrupt() : WalkResult::advance(); });
    return copies.wasInterrupted() ? &region : nullptr;
  }
  return nullptr;
}

Reach reachOf(Operation* load, ArrayRef<Operation*> readers, bool stays,
              const llvm::DenseMap<Operation*, int64_t>& order) {
  auto before = [&](Operation* a, Operation* b) { return order.at(a) < order.at(b); };
  auto [firstReader, lastReader] = std::minmax_element(readers.begin(), readers.end(), before);
  Reach reach{nullptr, nullptr, *firstReader, *lastReader};
  for (Block* block = load->getBlock();;) {
    reach.first = block->findAncestorOpInBlock(*reach.firstReader);
    reach.last = block->findAncestorOpInBlock(*reach.lastReader);
    Region* branch = stays ? nullptr : branchOf(reach.first, readers);
    if (!branch) return reach;
    block = &branch->front();
  }
}

// One consumer never holds stages of both at a time, and lets go of the earlier first.
bool isSequential(const LoadGroup& a, const LoadGroup& b, Turns turns) {
  const bool takeTurns =
      turns == Turns::all || (turns == Turns::outside_loops && !a.first->getParentOfType<LoopLikeOpInterface>());
  if (a.block() == b.block())
    return takeTurns && (a.last->isBeforeInBlock(b.first) || b.last->isBeforeInBlock(a.first));
  auto outside = [](const LoadGroup& outer, Operation* inner) {
    Operation* statement = outer.block()->findAncestorOpInBlock(*inner);
    if (!statement) return true;
    return statement->isBeforeInBlock(outer.first) || outer.last->isBeforeInBlock(statement);
  };
  return outside(a, b.first) && outside(b, a.first);
}

// Stages of one ring are filled by as many arrivals.
bool sameTypes(const LoadGroup& a, const LoadGroup& b) {
  return a.inBulk == b.inBulk && a.byThreads == b.byThreads && llvm::equal(a.loads, b.loads, [&](auto* x, auto* y) {
           return copiedType(x) == copiedType(y) && llvm::is_contained(a.turned, x) == llvm::is_contained(b.turned, y);
         });
}
// Loops that have no more in common take whole stages, whatever is in them.
bool sameFills(const LoadGroup& a, const LoadGroup& b) {
  auto isInLoop = [](const LoadGroup& group) { return group.first->getParentOfType<LoopLikeOpInterface>() != nullptr; };
  return a.inBulk == b.inBulk && a.byThreads == b.byThreads && a.turned.empty() && b.turned.empty() && isInLoop(a) &&
         isInLoop(b);
}
std::pair<int64_t, int64_t> roomOf(Operation* load) {
  const SmemType type = copiedType(load);
  return {type.slotBytes(), type.alignment()};
}
// Each buffer of one is large enough for the other's, or the other way round.
bool nest(const LoadGroup& a, const LoadGroup& b) {
  return llvm::all_of(llvm::zip(a.loads, b.loads), [](auto pair) {
    const auto [one, other] = std::pair(roomOf(std::get<0>(pair)), roomOf(std::get<1>(pair)));
    return one < other ? one.second <= other.second : other.second <= one.second;
  });
}
bool sameViews(const LoadGroup& a, const LoadGroup& b) {
  return llvm::equal(a.loads, b.loads, [](Operation* x, Operation* y) { return addressOf(x) == addressOf(y); });
}

}  // namespace

RingGroups::RingGroups(func::FuncOp func, const llvm::DenseSet<Operation*>& byThreads,
                       const llvm::DenseSet<Operation*>& turned, const llvm::DenseSet<Operation*>& staying, Turns turns,
                       Alike alike)
    : turns_(turns) {
  findGroups(func, byThreads, turned, staying);
  if (!refused_) shareRings(alike);
}

SmallVector<Operation*> RingGroups::buffersOf(int ring) const {
  SmallVector<Operation*> buffers;
  for (const LoadGroup& group : groups_) {
    if (group.ring != ring) continue;
    for (auto [i, load] : llvm::enumerate(group.loads)) {
      if (i == buffers.size())
        buffers.push_back(load);
      else if (roomOf(buffers[i]) < roomOf(load))
        buffers[i] = load;
    }
  }
  return buffers;
}

void RingGroups::findGroups(func::FuncOp func, const llvm::DenseSet<Operation*>& byThreads,
                            const llvm::DenseSet<Operation*>& turned, const llvm::DenseSet<Operation*>& staying) {
  llvm::DenseMap<Operation*, int64_t> order;
  int64_t next = 0;
  func.walk<WalkOrder::PreOrder>([&](Operation* op) { order[op] = next++; });

  llvm::MapVector<std::tuple<Operation*, Operation*, Operation*, Operation*>, LoadGroup> groups;
  func.walk<WalkOrder::PreOrder>([&](Operation* load) {
    if (!isSharedCopy(load)) return;
    SmallVector<Operation*> readers = readersOf(load->getResult(0));
    for (Operation* reader : readers) {
      if (isa<MmaOp, SmemLoadOp>(reader)) continue;
      refused_ = load, why_ = "a tile in shared memory outlives the statement that loads it";
    }
    if (readers.empty() || refused_) return;
    Reach reach = reachOf(load, readers, staying.contains(load), order);
    LoadGroup& group = groups[{reach.first, reach.last, reach.firstReader, reach.lastReader}];
    group.first = reach.first, group.last = reach.last;
    group.loads.push_back(load);
    if (turned.contains(load))
      group.turned.push_back(load);
    else
      (byThreads.contains(load) ? group.byThreads : group.inBulk) = true;
    group.onlyProducts &= llvm::all_of(readers, [&](Operation* reader) {
      return isAsyncProduct(reader) && !readsAsFragments(cast<MmaOp>(reader), load->getResult(0));
    });
  });
  for (auto& [key, group] : groups) groups_.push_back(std::move(group));
  joinRows();
  // Where several stand in front of one statement, what is held long comes last: a producer that must wait for it has
  // already started the others.
  std::stable_sort(groups_.begin(), groups_.end(), [&](const LoadGroup& a, const LoadGroup& b) {
    return std::pair(order[a.first], order[a.last]) < std::pair(order[b.first], order[b.last]);
  });
}

void RingGroups::joinRows() {
  auto isRow = [](Operation* load) { return copiedType(load).getShape()[0] == 1; };
  std::vector<LoadGroup> rows;
  for (size_t i = 0; i < groups_.size();) {
    if (llvm::all_of(groups_[i].loads, isRow)) {
      rows.push_back(std::move(groups_[i]));
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  auto isBehind = [](Operation* a, Operation* b) { return a == b || b->isBeforeInBlock(a); };
  // The producer fills a stage where its first reader stands: what says where the row lies must be known there.
  auto isKnownAt = [](const LoadGroup& row, Operation* at) {
    return llvm::all_of(row.loads, [&](Operation* load) {
      return llvm::all_of(load->getOperands(), [&](Value operand) {
        Operation* definition = operand.getDefiningOp();
        Operation* statement = definition ? at->getBlock()->findAncestorOpInBlock(*definition) : nullptr;
        return !statement || statement->isBeforeInBlock(at);
      });
    });
  };
  for (LoadGroup& row : rows) {
    LoadGroup* latest = nullptr;
    for (LoadGroup& group : groups_)
      if (group.block() == row.block() && isBehind(row.first, group.first) && isKnownAt(row, group.first) &&
          (!latest || isBehind(group.first, latest->first)))
        latest = &group;
    if (!latest) {
      groups_.push_back(std::move(row));
      continue;
    }
    llvm::append_range(latest->loads, row.loads);
    if (isBehind(row.last, latest->last)) latest->last = row.last;
    latest->onlyProducts &= row.onlyProducts;
    latest->inBulk |= row.inBulk;
    latest->byThreads |= row.byThreads;
    llvm::append_range(latest->turned, row.turned);
  }
}

void RingGroups::shareRings(Alike alike) {
  using Ring = std::vector<LoadGroup*>;
  std::vector<Ring> rings;
  for (LoadGroup& group : groups_) rings.push_back({&group});
  auto join = [&](llvm::function_ref<bool(const LoadGroup&, const LoadGroup&)> mayJoin) {
    auto joins = [&](const Ring& ring, const Ring& other) {
      return llvm::all_of(ring, [&](LoadGroup* a) {
        return llvm::all_of(other, [&](LoadGroup* b) { return isSequential(*a, *b, turns_) && mayJoin(*a, *b); });
      });
    };
    for (size_t i = 0; i < rings.size(); ++i) {
      for (size_t j = i + 1; j < rings.size();) {
        if (!joins(rings[i], rings[j])) {
          ++j;
          continue;
        }
        rings[i].insert(rings[i].end(), rings[j].begin(), rings[j].end());
        rings.erase(rings.begin() + static_cast<std::ptrdiff_t>(j));
      }
    }
  };
  // First what reads one view, as parts of one loop do; then whatever has buffers of the same types.
  join([](const LoadGroup& a, const LoadGroup& b) { return sameTypes(a, b) && sameViews(a, b); });
  join(sameTypes);
  if (alike == Alike::fills) {
    // The largest copies of all share a buffer, and so on.
    for (LoadGroup& group : groups_)
      llvm::stable_sort(group.loads, [](Operation* a, Operation* b) { return roomOf(a) > roomOf(b); });
    join([](const LoadGroup& a, const LoadGroup& b) { return sameFills(a, b) && nest(a, b); });
  }
  for (auto [index, ring] : llvm::enumerate(rings))
    for (LoadGroup* group : ring) group->ring = static_cast<int>(index);
  numRings_ = static_cast<int>(rings.size());
}

}  // namespace tile::ir
