// filling.cpp - producers of more than a thread: one of theirs makes bulk copies, and the threads of a whole warpgroup
// copy by cp.async what no bulk copy can. Nobody waits for these copies: the hardware counts a thread on its stage's full
// barrier when what the thread has started has landed, so that as many stages are under way as the ring has.
//
// cp.async writes shared memory like ordinary stores (the generic proxy), and products read it through the async proxy.
// A fence has to stand between the two, anywhere on the way the reader comes to know of the write: consumers fence
// behind their wait for the stage (ringAcquire), when nothing of their own is under way. A fence of the thread that
// copies would have to wait for the copies.
//
// Chunks that go through registers are plain stores, which no such counting covers: a thread with some in a stage waits
// for its copies and counts itself.
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

namespace {

void byFirstWarp(Emitter& e, llvm::function_ref<void()> body) {
  if (e.roles().asks()) return body();  // there is no other
  emitIf(e, e.b.CreateICmpEQ(e.warp(), e.i32(0)), body);
}

/// All lanes of the warp are behind the wait: what follows is in step again.
void waitTogether(Emitter& e, llvm::Value* barrier, llvm::Value* parity) {
  waitParity(e, barrier, parity);
  e.syncWarp();
}

/// Runs `body` on one thread once the stage is empty. The other warps have no part in it: nothing would keep them from
/// falling behind by a round.
void whenEmptied(Emitter& e, llvm::Value* empty, llvm::Value* parity, llvm::function_ref<void()> body) {
  byFirstWarp(e, [&] {
    waitTogether(e, empty, parity);
    emitIf(e, electThread(e), body);
  });
}

}  // namespace

void byFirstThread(Emitter& e, llvm::function_ref<void()> body) {
  byFirstWarp(e, [&] { emitIf(e, electThread(e), body); });
}

LogicalResult emitSharedReserve(Emitter& e, RingReserveOp op) {
  llvm::IRBuilder<>& b = e.b;
  auto ring = op.getRing().getDefiningOp<RingAllocOp>();
  if (!ring.isFilledInBulk() && op.getBytes())
    return op.emitOpError() << "announces " << op.getBytes() << " bytes of a ring that only threads fill";
  auto [slot, phase] = ringStep(e, op.getRing());
  llvm::Value *empty = emptyBarrier(e, op.getRing(), slot), *parity = b.CreateXor(phase, e.i32(1));
  llvm::Value* full = fullBarrier(e, op.getRing(), slot);
  auto announce = [&] { expectBytes(e, full, op.getBytes()); };
  if (ring.isFilledByThreads()) {
    waitTogether(e, empty, parity);
    if (ring.isFilledInBulk()) byFirstThread(e, announce);
    e.roles().storesChunks = false;
  } else {
    whenEmptied(e, empty, parity, announce);
  }
  e.define(op.getSlot(), slot);
  return success();
}

LogicalResult emitRingCommit(Emitter& e, RingCommitOp op) {
  llvm::Value* full = fullBarrier(e, op.getRing(), e.scalar(op.getSlot()));
  if (e.roles().storesChunks) {
    e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_all, {});
    arrive(e, full, nullptr);
  } else {
    e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_mbarrier_arrive_noinc_shared, {full});
  }
  return success();
}

std::pair<llvm::Value*, llvm::Value*> fillStage(Emitter& e, Value ring,
                                                llvm::function_ref<void(llvm::Value*)> write) {
  auto [slot, phase] = ringStep(e, ring);
  llvm::Value *full = fullBarrier(e, ring, slot), *payload = ringPayload(e, ring, slot);
  llvm::Value *empty = emptyBarrier(e, ring, slot), *parity = e.b.CreateXor(phase, e.i32(1));
  auto fill = [&] {
    write(payload);
    arrive(e, full, nullptr);
  };
  if (!e.roles().isThread()) {
    whenEmptied(e, empty, parity, fill);
  } else {
    waitParity(e, empty, parity);
    fill();
  }
  return {slot, phase};
}

llvm::Value* publishToAll(Emitter& e, Value queue, llvm::Value* position) {
  llvm::IRBuilder<>& b = e.b;
  auto [slot, phase] =
      fillStage(e, queue, [&](llvm::Value* to) { b.CreateAlignedStore(position, to, llvm::Align(4)); });
  waitTogether(e, fullBarrier(e, queue, slot), phase);
  llvm::Value* published = b.CreateAlignedLoad(b.getInt32Ty(), ringPayload(e, queue, slot), llvm::Align(4));
  e.syncWarp();  // every lane has read
  arrive(e, emptyBarrier(e, queue, slot), b.CreateICmpEQ(e.lane(), e.i32(0)));
  return published;
}

}  // namespace tile::ir
