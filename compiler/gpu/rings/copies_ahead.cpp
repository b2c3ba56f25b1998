// copies_ahead.cpp - which copies of a block can start early, and moving them with their addresses.
#include "compiler/gpu/rings/copies_ahead.h"

#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/rings/ring_groups.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr size_t kAhead = 2;             ///< statements whose copies are in flight behind the one that waits
constexpr int64_t kMostBytes = 48 << 10;  ///< in flight and being read: two programs still share a multiprocessor

/// Copies that one statement is the first to read.
struct Read {
  Operation* reader = nullptr;
  SmallVector<Operation*> copies;
  int64_t bytes = 0;
};

Operation* firstReader(Operation* copy, Block& block) {
  Operation* first = nullptr;
  for (Operation* user : readersOf(copy->getResult(0)))
    if (Operation* at = block.findAncestorOpInBlock(*user); at && (!first || at->isBeforeInBlock(first))) first = at;
  return first;
}

bool isPassable(Operation* op) {
  return !op->walk([](Operation* inner) {
              const bool stops = isa<scf::ForOp, scf::WhileOp, scf::IfOp>(inner) || writesGlobal(inner);
              return stops ? WalkResult::interrupt() : WalkResult::advance();
            })
              .wasInterrupted();
}

/// What `copy` needs of what stands behind `place`, in program order; nothing where some of it cannot move there.
std::optional<SmallVector<Operation*>> sliceBehind(Operation* copy, Operation* place) {
  SmallVector<Operation*> slice, pending{copy};
  llvm::DenseSet<Operation*> seen{copy};
  while (!pending.empty()) {
    Operation* op = pending.pop_back_val();
    slice.push_back(op);
    for (Value operand : op->getOperands()) {
      Operation* made = operand.getDefiningOp();
      if (!made || made->getBlock() != place->getBlock() || made->isBeforeInBlock(place)) continue;
      if (!isMemoryEffectFree(made) || made->getNumRegions() > 0) return std::nullopt;
      if (seen.insert(made).second) pending.push_back(made);
    }
  }
  llvm::sort(slice, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  return slice;
}

}  // namespace

llvm::DenseSet<Operation*> startAhead(Block& block) {
  llvm::MapVector<Operation*, Read> byReader;
  for (Operation& op : block) {
    Operation* reader = isSharedCopy(&op) ? firstReader(&op, block) : nullptr;
    if (!reader) continue;
    Read& read = byReader[reader];
    read.reader = reader;
    read.copies.push_back(&op);
    read.bytes += copiedType(&op).slotBytes();
  }
  llvm::DenseSet<Operation*> moved;
  if (byReader.size() <= kAhead) return moved;
  auto reads = byReader.takeVector();
  llvm::sort(reads, [](auto& a, auto& b) { return a.first->isBeforeInBlock(b.first); });
  for (size_t i = 1; i < reads.size(); ++i) {
    const size_t before = i - std::min(i, kAhead);
    Operation* place = reads[before].first;
    int64_t bytes = 0;
    for (size_t k = before; k <= i; ++k) bytes += reads[k].second.bytes;
    if (bytes > kMostBytes) continue;
    for (Operation* copy : reads[i].second.copies) {
      if (copy->isBeforeInBlock(place)) continue;
      bool isFree = true;
      for (Operation* op = place; op != copy && isFree; op = op->getNextNode()) isFree = isPassable(op);
      auto slice = isFree ? sliceBehind(copy, place) : std::nullopt;
      if (!slice) continue;
      for (Operation* op : *slice) op->moveBefore(place);
      moved.insert(copy);
    }
  }
  return moved;
}

}  // namespace tile::ir
