// resting_buffers.cpp - lifetimes that go on behind the last use of a buffer or scratch.
#include <algorithm>

#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/memory/buffers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Whether it is a buffer that a loop computes and reads in every iteration.
bool isComputedInLoop(Operation* op) {
  return isa<SmemAllocOp>(op) && isa<LoopLikeOpInterface>(op->getParentOp()) &&
         llvm::all_of(usersOfBuffer(op),
                      [](Operation* user) { return !isa<AsyncCopyOp, AsyncGatherOp, TmaStoreOp>(user); });
}

}  // namespace

void Buffers::restore() {
  for (Buffer& buffer : buffers_) buffer.begin = buffer.firstUse, buffer.end = buffer.lastUse;
}

bool Buffers::rest(const Rests& rests) {
  bool changed = false;
  for (Buffer& buffer : buffers_) {
    if (!isa<SmemAllocOp>(buffer.op) || buffer.begin == 0) continue;
    const Buffer* next = nullptr;
    for (const Buffer& other : buffers_)
      if (isa<SmemAllocOp>(other.op) && other.op->getBlock() == buffer.op->getBlock() && other.begin > buffer.lastUse &&
          (!next || other.begin < next->begin))
        next = &other;
    if (next)
      buffer.end = next->lastUse, changed = true;
    else if (rests.ofLast)
      changed |= setAside(buffer);
  }
  return changed;
}

/// Keeps the buffer allocated for the whole loop around it. False: there is no loop.
bool Buffers::setAside(Buffer& buffer) {
  Operation* loop = buffer.op->getParentOp();
  if (!isa<LoopLikeOpInterface>(loop)) return false;
  buffer.begin = order_.begin(loop), buffer.end = order_.end(loop);
  return true;
}

bool Buffers::restScratch(const Rests& rests) {
  bool changed = false, any = !rests.operands;
  struct Use {
    Buffer* buffer;
    bool waits;  ///< has a barrier of all warps of its own, not that of an earlier op of its group
  };
  llvm::DenseMap<Block*, std::vector<Use>> uses;  // in program order
  SmallVector<std::pair<Buffer*, bool>> resting;
  for (Buffer& buffer : buffers_) {
    const auto scratch = isa<SmemAllocOp, RingAllocOp>(buffer.op) ? std::nullopt : scratchOf(buffer.op);
    const bool ofWarp = scratch && scratch->warpLocal(), isOperand = rests.operands && isComputedInLoop(buffer.op);
    if (!isOperand && (!scratch || (ofWarp && !rests.ofWarps))) continue;
    any |= isOperand;
    uses[buffer.op->getBlock()].push_back({&buffer, !ofWarp && !buffer.op->hasAttr(kMetAttr)});
    resting.emplace_back(&buffer, ofWarp);
  }
  if (!any) return false;
  for (auto [buffer, ofWarp] : resting) {
    const auto& others = uses[buffer->op->getBlock()];
    auto next = std::upper_bound(others.begin(), others.end(), buffer->lastUse,
                                 [&](int64_t end, const Use& other) { return end < order_.begin(other.buffer->op); });
    if (!ofWarp) next = std::find_if(next, others.end(), [](const Use& other) { return other.waits; });
    if (next != others.end() && next->waits)
      buffer->end = isa<SmemAllocOp>(next->buffer->op) ? next->buffer->lastUse : order_.end(next->buffer->op),
      changed = true;
    else if (next == others.end() && !ofWarp && rests.ofLast)
      changed |= setAside(*buffer);
  }
  return changed;
}

}  // namespace tile::ir
