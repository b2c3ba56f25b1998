// stage_reads.cpp - see the header.
#include "compiler/gpu/rings/stage_reads.h"

#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/rings/ring_groups.h"

namespace tile::ir {
using namespace mlir;

bool readsByThreads(Operation* op, Value ring) {
  if (isa<TmaStoreOp, SmemStoreOp>(op)) return false;
  if (auto product = dyn_cast<MmaOp>(op); product && isWgmma(product.getEngine())) return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    while (auto trans = operand.getDefiningOp<SmemTransOp>()) operand = trans.getSource();
    auto slot = operand.getDefiningOp<SmemSlotOp>();
    auto acquire = slot ? slot.getIndex().getDefiningOp<RingAcquireOp>() : RingAcquireOp();
    return acquire && acquire.getRing() == ring;
  });
}

bool isReadByThreads(RingReleaseOp release) {
  const Value ring = release.getRing();
  if (!ring.getDefiningOp<RingAllocOp>().isFilledInBulk()) return false;
  return llvm::any_of(ring.getUsers(), [&](Operation* acquire) {
    return isa<RingAcquireOp>(acquire) && llvm::any_of(acquire->getUsers(), [&](Operation* slot) {
             return isa<SmemSlotOp>(slot) && llvm::any_of(readersOf(slot->getResult(0)), [&](Operation* reader) {
                      return readsByThreads(reader, ring);
                    });
           });
  });
}

bool isReadByWgmma(Value smem) {
  SmemAllocOp alloc = allocationOf(smem);
  SmallVector<Value> pending{alloc ? alloc.getResult() : smem};
  while (!pending.empty()) {
    for (Operation* user : pending.pop_back_val().getUsers()) {
      if (auto mma = dyn_cast<MmaOp>(user); mma && isWgmma(mma.getEngine())) return true;
      if (isa<SmemSlotOp, SmemTransOp>(user)) pending.push_back(user->getResult(0));
    }
  }
  return false;
}

}  // namespace tile::ir
