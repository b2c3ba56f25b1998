// buffers.cpp - lists the buffers and scratch of a kernel with their lifetimes, and gives them places.
#include "compiler/gpu/memory/buffers.h"

#include <algorithm>

#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/forms/shared_memory.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kSmallScratch = 1024, kSmallScratchTotal = 4096;

/// By tile and block, the first op that reads the tile, by its place in the list: it puts the tile for the others.
using Readers = llvm::DenseMap<std::pair<Value, Block*>, size_t>;

bool isBulkCopied(Operation* alloc) {
  return llvm::any_of(usersOfBuffer(alloc), [](Operation* user) {
    // Copies by a producer's threads do not follow program order either.
    if (isa<AsyncCopyOp, AsyncGatherOp>(user)) return user->getParentOfType<SpecializeOp>() != nullptr;
    return isa<TmaLoadOp, TmaDescribeOp, TmaStoreOp, SmemTurnOp>(user);
  });
}

/// The loop around a take in front of which the copy of its tile is made (or an op around that loop).
Operation* behindCopy(TakeOp take, const Readers& takes) {
  for (Operation* op = take->getParentOp(); op->getBlock(); op = op->getParentOp())
    if (takes.contains({take.getSource(), op->getBlock()})) return op;
  return nullptr;
}

/// The barrier behind which all threads see what copies started by `statement` write (in a pipelined loop also the
/// last ones, which nobody reads and which write zeros). Null: there is none in the block.
Operation* landed(Operation* statement) {
  const bool isCopy = isa<AsyncCopyOp, AsyncGatherOp>(statement);
  bool waited = false;
  int64_t begun = 0;  // groups committed, its own and later ones
  for (Operation* op = statement; op; op = op->getNextNode()) {
    if (isa<AsyncCommitOp>(op)) ++begun;
    if (auto wait = dyn_cast<AsyncWaitOp>(op))
      waited |= wait.getPending() == 0 || (isCopy && static_cast<int64_t>(wait.getPending()) < begun);
    if (waited && isa<BarrierOp>(op)) return op;
  }
  return nullptr;
}

}  // namespace

SmallVector<Operation*> usersOfBuffer(Operation* alloc) {
  SmallVector<Operation*> users;
  SmallVector<Value> aliases{alloc->getResult(0)};
  for (size_t i = 0; i < aliases.size(); ++i) {
    for (Operation* user : aliases[i].getUsers()) {
      users.push_back(user);
      for (Value result : user->getResults())
        if (isa<SmemType>(result.getType())) aliases.push_back(result);
    }
  }
  return users;
}

Region* roleOf(Operation* op) {
  auto roles = op->getParentOfType<SpecializeOp>();
  if (!roles) return nullptr;
  for (Region& region : roles->getRegions())
    if (region.isAncestor(op->getParentRegion())) return &region;
  return nullptr;
}

/// What is known while they are listed.
struct Buffers::Listing {
  int64_t small = 0;  ///< bytes of small scratch
  std::vector<size_t> smallOnes;
  llvm::DenseMap<Region*, Operation*> own;  ///< by role, who has the memory of its own warps' pieces
  Readers takes, extracts;
};

void Buffers::collect() {
  Listing list;
  buffers_.clear(), sharers_.clear(), meetings_.clear();
  func_.walk([](Operation* op) { op->removeAttr(kScratchFilledAttr); });
  func_.walk<WalkOrder::PreOrder>([&](Operation* op) { add(op, list); });
  if (list.small <= kSmallScratchTotal)
    for (size_t i : list.smallOnes) buffers_[i].begin = 0, buffers_[i].end = order_.end(func_);
  for (Buffer& buffer : buffers_) buffer.firstUse = buffer.begin, buffer.lastUse = buffer.end;
}

void Buffers::add(Operation* op, Listing& list) {
  if (auto alloc = dyn_cast<SmemAllocOp>(op)) {
    SmemType type = alloc.getResult().getType();
    Buffer buffer{op, type.bytes(), type.alignment(), order_.begin(op), lastUse(op), -1};
    if (isBulkCopied(op)) {  // bulk copies do not follow program order
      buffer.alignment = std::max(buffer.alignment, layout::kBulkAlignment);
      buffer.begin = 0, buffer.end = order_.end(func_);
    }
    buffers_.push_back(buffer);
  } else if (auto ring = dyn_cast<RingAllocOp>(op)) {
    // Payloads are read in vectors.
    buffers_.push_back({op, ringBytes(ring), ring.getPayload() % 16 ? 8 : 16, 0, order_.end(func_), -1});
  } else {
    addScratch(op, list);
  }
}

void Buffers::addScratch(Operation* op, Listing& list) {
  const auto scratch = scratchOf(op);
  if (!scratch) return;
  for (Operation* other : metWith(op)) meetings_[other] = op;
  if (scratch->piece == kOwnScratch) {  // one piece of memory for all ops of a role
    Operation*& first = list.own[roleOf(op)];
    if (first) return sharers_[first].push_back(op);
    first = op;
    return buffers_.push_back({op, scratch->bytes, scratch->alignment, 0, order_.end(func_), -1});
  }
  auto take = dyn_cast<TakeOp>(op);
  if (op->hasAttr(kPutsWholeAttr) || (take && tileBytes(take.getSource().getType()) <= kMostSharedTake)) {
    Operation* loop = op->hasAttr(kReadsCopyAttr) ? behindCopy(take, list.takes) : nullptr;
    auto [at, isFirst] =
        (take ? list.takes : list.extracts)
            .try_emplace({op->getOperand(0), loop ? loop->getBlock() : op->getBlock()}, buffers_.size());
    if (!isFirst) {
      Buffer& first = buffers_[at->second];
      first.end = std::max(first.end, order_.end(loop ? loop : op));
      op->setAttr(kScratchFilledAttr, UnitAttr::get(op->getContext()));
      return sharers_[first.op].push_back(op);
    }
  }
  if (scratch->bytes <= kSmallScratch) {
    list.small += scratch->bytes;
    list.smallOnes.push_back(buffers_.size());
  }
  buffers_.push_back({op, scratch->bytes, scratch->alignment, metAt(op), order_.end(op), -1});
}

/// When the op puts its elements: with the first op of its group.
int64_t Buffers::metAt(Operation* op) const {
  Operation* first = meetings_.lookup(op);
  return order_.begin(first ? first : op);
}

int64_t Buffers::lastUse(Operation* alloc) {
  int64_t last = order_.end(alloc);
  for (Operation* user : usersOfBuffer(alloc)) {
    Operation* statement = alloc->getBlock()->findAncestorOpInBlock(*user);
    if (statement && isa<AsyncCopyOp, AsyncGatherOp>(user)) statement = landed(statement);
    last = std::max(last, statement ? order_.end(statement) : order_.end(func_));
  }
  return last;
}

int64_t Buffers::arrange() {
  for (Buffer& buffer : buffers_) buffer.offset = -1;
  int64_t total = 0;
  for (Buffer* buffer : bySize()) {  // large ones first: small ones fill the gaps
    buffer->offset = firstFit(*buffer, buffers_);
    total = std::max(total, buffer->offset + buffer->bytes);
  }
  return total;
}

void Buffers::write() {
  Builder builder(func_.getContext());
  for (Buffer& buffer : buffers_) {
    auto offset = builder.getI32IntegerAttr(static_cast<int32_t>(buffer.offset));
    if (auto alloc = dyn_cast<SmemAllocOp>(buffer.op))
      alloc.setOffsetAttr(offset);
    else if (auto ring = dyn_cast<RingAllocOp>(buffer.op))
      ring.setOffsetAttr(offset);
    else
      buffer.op->setAttr(kScratchAttr, offset);
    for (Operation* op : sharers_.lookup(buffer.op)) op->setAttr(kScratchAttr, offset);
  }
}

std::vector<Buffer*> Buffers::bySize() {
  std::vector<Buffer*> order;
  for (Buffer& buffer : buffers_) order.push_back(&buffer);
  std::stable_sort(order.begin(), order.end(), [](Buffer* a, Buffer* b) { return a->bytes > b->bytes; });
  return order;
}

/// The largest buffer that would make everything fit if it were smaller by `over`. Null: there is none.
Buffer* Buffers::largestAtFault(ArrayRef<Buffer*> bySize, int64_t over, int64_t limit) {
  for (Buffer* buffer : bySize) {
    if (buffer->bytes <= over) return nullptr;
    buffer->bytes -= over;
    const bool fits = arrange() <= limit;
    buffer->bytes += over;
    if (fits) return buffer;
  }
  return nullptr;
}

void Buffers::explain(InFlightDiagnostic& error, int64_t total, int64_t limit) {
  const std::vector<Buffer*> order = bySize();
  constexpr size_t kMost = 10;
  for (Buffer* buffer : ArrayRef(order).take_front(kMost))
    error.attachNote(buffer->op->getLoc())
        << buffer->bytes << " bytes at " << buffer->offset << ": " << bufferName(buffer->op);
  if (order.size() > kMost)
    error.attachNote(order[kMost]->op->getLoc())
        << "and " << order.size() - kMost << " more, of at most " << order[kMost]->bytes << " bytes each";
  const int64_t over = total - limit;
  Buffer* culprit = largestAtFault(order, over, limit);
  if (!culprit) {
    error.attachNote(order.front()->op->getLoc()) << "no buffer alone is at fault: use smaller tiles";
    return;
  }
  auto alloc = dyn_cast<SmemAllocOp>(culprit->op);
  if (alloc && alloc.getResult().getType().isRing()) {
    SmemType type = alloc.getResult().getType();
    int64_t stages = type.getStages() - (over + type.slotBytes() - 1) / type.slotBytes();
    if (stages >= 1) {
      error.attachNote(culprit->op->getLoc())
          << "a ring of " << stages << " stage(s) of " << type.slotBytes() << " bytes would fit";
      return;
    }
  }
  error.attachNote(culprit->op->getLoc())
      << "it fits when this buffer has at most " << culprit->bytes - over << " bytes: use smaller tiles";
}

}  // namespace tile::ir
