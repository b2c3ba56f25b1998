// filling.cpp - producers of a whole warpgroup: their threads copy by cp.async what no bulk copy can, and count a stage
// on its full barrier when their copies have landed.
//
// cp.async writes shared memory like ordinary stores of its thread (the generic proxy), and products read it through
// the async proxy. So every thread waits for its own copies, fences, and then its warp counts: lanes meet, one of them
// arrives. An arrival that the hardware makes when copies land (cp.async.mbarrier.arrive) would leave nobody to fence.
//
// Waiting right behind a copy would leave one stage under way at a time. Threads go on instead, and count a stage when
// they have started copies of kMostUncounted more. Whoever counts late must not wait for others meanwhile: the
// consumers may want that very stage. Waits therefore look first, and count the oldest stage whenever they would have
// to wait.
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// More would be noticed late where copies land in no time; fewer would not cover the latency of memory.
constexpr int kMostUncounted = 3;

void waitForCopies(Emitter& e, size_t pending) {
  e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, {e.i32(static_cast<int64_t>(pending))});
}

/// Counts the stage at `barrier` (i32; 0: none), whose copies are in front of the last `pending` groups.
void count(Emitter& e, llvm::Value* barrier, size_t pending) {
  llvm::IRBuilder<>& b = e.b;
  waitForCopies(e, pending);
  fenceAsyncProxy(e);
  e.syncWarp();  // every lane's have landed
  llvm::Value* leads = b.CreateICmpEQ(e.lane(), e.i32(0));
  llvm::Value* pointer = b.CreateIntToPtr(barrier, b.getPtrTy(3));
  arrive(e, pointer, b.CreateAnd(leads, b.CreateICmpNE(barrier, e.i32(0))));
}

void countUncounted(Emitter& e, size_t which) {
  llvm::AllocaInst* variable = e.roles().uncounted[which];
  count(e, e.b.CreateLoad(e.b.getInt32Ty(), variable), which);
  e.b.CreateStore(e.i32(0), variable);
}

/// i1, one answer for the warp: the phase is over.
llvm::Value* isOver(Emitter& e, llvm::Value* barrier, llvm::Value* parity) {
  llvm::Value* over =
      e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_mbarrier_test_wait_parity_scope_cta_space_cta, {barrier, parity});
  return e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_all_sync, {e.i32(-1), over});
}

/// The warp waits, all stages counted before it does.
void waitCounting(Emitter& e, llvm::Value* barrier, llvm::Value* parity) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto* after = llvm::BasicBlock::Create(b.getContext(), "ready");
  for (size_t which = e.roles().uncounted.size(); which-- > 0;) {
    auto* busy = llvm::BasicBlock::Create(b.getContext(), "busy", function);
    b.CreateCondBr(isOver(e, barrier, parity), after, busy);
    b.SetInsertPoint(busy);
    countUncounted(e, which);
  }
  waitParity(e, barrier, parity);
  b.CreateBr(after);
  after->insertInto(function);
  b.SetInsertPoint(after);
  e.syncWarp();  // no lane goes on to a phase that another one still has to see the end of
}

void byFirstWarp(Emitter& e, llvm::function_ref<void()> body) { emitIf(e, e.b.CreateICmpEQ(e.warp(), e.i32(0)), body); }

}  // namespace

void byFirstThread(Emitter& e, llvm::function_ref<void()> body) {
  byFirstWarp(e, [&] { emitIf(e, electThread(e), body); });
}

void beginFilling(Emitter& e) {
  int64_t stages = 0;
  for (RingAllocOp ring : e.roles().rings())
    if (ring.isFilledByThreads()) stages += ring.getResult().getType().getStages();
  const int64_t most = std::clamp<int64_t>(stages - 1, 1, kMostUncounted);
  for (int64_t i = 0; i < most; ++i) e.roles().uncounted.push_back(e.variable("uncounted"));
}

void finishFilling(Emitter& e) {
  for (size_t which = e.roles().uncounted.size(); which-- > 0;) countUncounted(e, which);
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
    waitCounting(e, empty, parity);
    if (ring.isFilledInBulk()) byFirstThread(e, announce);
  } else {
    // The others have no part in it: nothing would keep them from falling behind by a round.
    byFirstWarp(e, [&] {
      waitCounting(e, empty, parity);
      emitIf(e, electThread(e), announce);
    });
  }
  e.define(op.getSlot(), slot);
  return success();
}

LogicalResult emitRingCommit(Emitter& e, RingCommitOp op) {
  llvm::IRBuilder<>& b = e.b;
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
  auto& uncounted = e.roles().uncounted;
  count(e, b.CreateLoad(b.getInt32Ty(), uncounted.back()), uncounted.size());
  for (size_t i = uncounted.size() - 1; i > 0; --i)
    b.CreateStore(b.CreateLoad(b.getInt32Ty(), uncounted[i - 1]), uncounted[i]);
  llvm::Value* full = fullBarrier(e, op.getRing(), e.scalar(op.getSlot()));
  b.CreateStore(b.CreatePtrToInt(full, b.getInt32Ty()), uncounted.front());
  return success();
}

llvm::Value* publishToAll(Emitter& e, Value queue, llvm::Value* position) {
  llvm::IRBuilder<>& b = e.b;
  auto [slot, phase] = ringStep(e, queue);
  llvm::Value *full = fullBarrier(e, queue, slot), *payload = ringPayload(e, queue, slot);
  llvm::Value *empty = emptyBarrier(e, queue, slot), *parity = b.CreateXor(phase, e.i32(1));
  byFirstWarp(e, [&] {
    waitCounting(e, empty, parity);
    emitIf(e, electThread(e), [&] {
      b.CreateAlignedStore(position, payload, llvm::Align(4));
      arrive(e, full, nullptr);
    });
  });
  waitCounting(e, full, phase);
  llvm::Value* published = b.CreateAlignedLoad(b.getInt32Ty(), payload, llvm::Align(4));
  e.syncWarp();  // every lane has read
  arrive(e, empty, b.CreateICmpEQ(e.lane(), e.i32(0)));
  return published;
}

}  // namespace tile::ir
