// shared_memory.cpp - buffers and scratch, with their places and names.
#include "compiler/gpu/forms/shared_memory.h"

#include <algorithm>

#include "compiler/diagnostics.h"
#include "compiler/gpu/forms/scratch.h"
#include "llvm/Support/raw_ostream.h"

namespace tile::ir {
using namespace mlir;

SmemAllocOp allocationOf(Value smem) {
  while (Operation* op = smem.getDefiningOp()) {
    if (auto alloc = dyn_cast<SmemAllocOp>(op)) return alloc;
    if (auto slot = dyn_cast<SmemSlotOp>(op))
      smem = slot.getRing();
    else if (auto trans = dyn_cast<SmemTransOp>(op))
      smem = trans.getSource();
    else
      break;
  }
  return {};
}

int64_t ringBytes(RingAllocOp ring) {
  RingType type = ring.getResult().getType();
  return (type.bytes() + type.getStages() * ring.getPayload() + 7) / 8 * 8;
}

std::string bufferName(Operation* op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto alloc = dyn_cast<SmemAllocOp>(op)) {
    SmemType type = alloc.getResult().getType();
    if (type.isRing()) out << "ring of " << type.getStages() << " x ";
    for (int64_t dim : type.getShape()) out << dim << "x";
    out << type.getElementType();
  } else if (auto ring = dyn_cast<RingAllocOp>(op)) {
    out << "barriers of a ring of " << ring.getResult().getType().getStages();
  } else {
    out << scratchName(op);
  }
  return text;
}

std::vector<BufferInfo> sharedBuffers(func::FuncOp func) {
  std::vector<BufferInfo> buffers;
  func.walk([&](Operation* op) {
    BufferInfo info;
    if (auto alloc = dyn_cast<SmemAllocOp>(op)) {
      if (!alloc.getOffset()) return;
      info.offset = *alloc.getOffset();
      info.bytes = static_cast<uint32_t>(alloc.getResult().getType().bytes());
    } else if (auto ring = dyn_cast<RingAllocOp>(op)) {
      if (!ring.getOffset()) return;
      info.offset = *ring.getOffset();
      info.bytes = static_cast<uint32_t>(ringBytes(ring));
    } else if (auto offset = op->getAttrOfType<IntegerAttr>(kScratchAttr)) {
      info.offset = static_cast<uint32_t>(offset.getInt());
      info.bytes = static_cast<uint32_t>(scratchOf(op)->bytes);
      if (!info.bytes) return;  // only a barrier
    } else {
      return;
    }
    SourcePlace place = sourcePlace(op->getLoc());
    info.what = bufferName(op);
    info.file = place.file;
    info.line = place.line;
    buffers.push_back(std::move(info));
  });
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const BufferInfo& a, const BufferInfo& b) { return a.offset < b.offset; });
  return buffers;
}

}  // namespace tile::ir
