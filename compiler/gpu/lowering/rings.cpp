// rings.cpp - queues of stages: a full and an empty mbarrier per stage, and where each role stands.
//
// Barriers of a ring in shared memory: full[stages], empty[stages], payload[stages]. A fresh barrier is in phase 0; a
// wait for parity p ends when the phase of parity p is over. So consumers wait for the parity they are in (0 in the
// first round), and the producer for the opposite one, which on a fresh barrier counts as over: all stages start empty.
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/lowering/roles.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "compiler/gpu/rings/stage_reads.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

namespace {

int64_t stagesOf(Value ring) { return cast<RingType>(ring.getType()).getStages(); }

RingCursor& cursorOf(Emitter& e, Value ring) {
  RingCursor& cursor = e.roles().cursors[ring];
  if (!cursor.slot) {
    cursor.slot = e.variable("ring.slot");
    cursor.phase = e.variable("ring.phase");
    cursor.oldest = e.variable("ring.oldest");
  }
  return cursor;
}

llvm::Value* load(Emitter& e, llvm::AllocaInst* variable) { return e.b.CreateLoad(e.b.getInt32Ty(), variable); }

/// The slot behind `slot`, and whether that is the first one again.
std::pair<llvm::Value*, llvm::Value*> nextSlot(Emitter& e, Value ring, llvm::Value* slot) {
  llvm::Value* next = e.b.CreateAdd(slot, e.i32(1));
  llvm::Value* wraps = e.b.CreateICmpEQ(next, e.i32(stagesOf(ring)));
  return {e.b.CreateSelect(wraps, e.i32(0), next), wraps};
}

}  // namespace

llvm::Value* emptyBarrier(Emitter& e, Value ring, llvm::Value* slot) {
  llvm::Value* base = e.b.CreatePtrAdd(e.scalar(ring), e.i32(8 * stagesOf(ring)));
  return e.b.CreatePtrAdd(base, e.b.CreateShl(slot, 3));
}

// The labels live in the braces' scope, so copies of the text do not clash.
void waitParity(Emitter& e, llvm::Value* barrier, llvm::Value* parity) {
  e.inlineAsm(e.b.getVoidTy(),
              "{.reg .pred P1; W: mbarrier.try_wait.parity.shared.b64 P1, [$0], $1; @P1 bra.uni D; bra.uni W; D: }",
              "r,r,~{memory}", {barrier, parity});
}

std::pair<llvm::Value*, llvm::Value*> ringStep(Emitter& e, Value ring) {
  RingCursor& cursor = cursorOf(e, ring);
  llvm::Value* phase = load(e, cursor.phase);
  llvm::Value* flipped = e.b.CreateXor(phase, e.i32(1));
  if (stagesOf(ring) == 1) {
    e.b.CreateStore(flipped, cursor.phase);
    return {e.i32(0), phase};
  }
  llvm::Value* slot = load(e, cursor.slot);
  auto [next, wraps] = nextSlot(e, ring, slot);
  e.b.CreateStore(next, cursor.slot);
  e.b.CreateStore(e.b.CreateSelect(wraps, flipped, phase), cursor.phase);
  return {slot, phase};
}

LogicalResult emitRingAlloc(Emitter& e, RingAllocOp op) {
  if (!op.getOffset()) return op.emitOpError("has no address: place_buffers has not run");
  e.define(op.getResult(), e.shared(*op.getOffset()));
  return success();
}

void emitRingInit(Emitter& e) {
  llvm::IRBuilder<>& b = e.b;
  for (RingAllocOp op : e.roles().rings()) {
    const int64_t stages = op.getResult().getType().getStages();
    // Of warps whose threads copy, every thread counts.
    const int64_t others = op.isFilledByThreads() ? RingAllocOp::kThreadFills * (e.target.lanes - 1) : 0;
    // A stage that a cluster fills is empty when all its programs have read theirs.
    const int64_t arrivals = op.getArrivals() * (e.roles().isClustered(op.getResult()) ? e.roles().cluster() : 1);
    for (int64_t i = 0; i < 2 * stages; ++i)
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_mbarrier_init_shared,
                        {e.shared(*op.getOffset() + 8 * i), e.i32(i < stages ? op.getFills() + others : arrivals)});
  }
  // What the copy engine sees of the barriers it will count on.
  b.CreateIntrinsic(llvm::Intrinsic::nvvm_fence_mbarrier_init_release_cluster, {});
}

llvm::Value* fullBarrier(Emitter& e, Value ring, llvm::Value* slot) {
  return e.b.CreatePtrAdd(e.scalar(ring), e.b.CreateShl(slot, 3));
}

llvm::Value* ringPayload(Emitter& e, Value ring, llvm::Value* slot) {
  auto alloc = ring.getDefiningOp<RingAllocOp>();
  llvm::Value* base = e.b.CreatePtrAdd(e.scalar(ring), e.i32(16 * stagesOf(ring)));
  return e.b.CreatePtrAdd(base, e.b.CreateMul(slot, e.i32(alloc.getPayload())));
}

void expectBytes(Emitter& e, llvm::Value* barrier, int64_t bytes) {
  e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_mbarrier_arrive_expect_tx_scope_cta_space_cta, {barrier, e.i32(bytes)});
}

void arrive(Emitter& e, llvm::Value* barrier, llvm::Value* predicate) {
  if (predicate)
    e.inlineAsm(e.b.getVoidTy(), "@$1 mbarrier.arrive.shared.b64 _, [$0];", "r,b,~{memory}", {barrier, predicate});
  else
    e.inlineAsm(e.b.getVoidTy(), "mbarrier.arrive.shared.b64 _, [$0];", "r,~{memory}", {barrier});
}

/// At the barrier with this place in the shared memory of another program of the cluster (or in one's own). No fence of
/// the cluster's scope: what has been read, products have read, which are over, or a warp's loads, whose values are
/// here. A .release.cluster is two MEMBARs in every iteration, and halves the speed of a product.
static void arriveAt(Emitter& e, llvm::Value* barrier, llvm::Value* program, llvm::Value* predicate) {
  e.inlineAsm(
      e.b.getVoidTy(),
      "{.reg .b32 R1; @$1 mapa.shared::cluster.u32 R1, $0, $2; @$1 mbarrier.arrive.shared::cluster.b64 _, [R1]; }",
      "r,b,r,~{memory}", {barrier, predicate, program});
}

llvm::Value* ringReserve(Emitter& e, Value ring) {
  auto [slot, phase] = ringStep(e, ring);
  waitParity(e, emptyBarrier(e, ring, slot), e.b.CreateXor(phase, e.i32(1)));
  return slot;
}

llvm::Value* ringAcquire(Emitter& e, Value ring) {
  auto [slot, phase] = ringStep(e, ring);
  waitParity(e, fullBarrier(e, ring, slot), phase);
  if (ring.getDefiningOp<RingAllocOp>().isFilledByThreads()) fenceAsyncProxy(e);  // see filling.cpp
  return slot;
}

void waitForFills(Emitter& e, Value ring) {
  RingCursor& cursor = cursorOf(e, ring);
  llvm::Value *next = load(e, cursor.slot), *phase = load(e, cursor.phase);
  llvm::Value* before = e.b.CreateXor(phase, e.i32(1));
  // Stages up to the next one were filled last in this round, the others in the round before, or never: the phase
  // before a fresh barrier's first counts as over.
  for (int64_t stage = 0; stage < stagesOf(ring); ++stage)
    waitParity(e, fullBarrier(e, ring, e.i32(stage)),
               e.b.CreateSelect(e.b.CreateICmpULT(e.i32(stage), next), phase, before));
}

/// Gives back the stage of the iteration before: guarded against the first one.
static bool isOfIterationBefore(RingReleaseOp release) {
  auto loop = dyn_cast<scf::ForOp>(release->getParentOp());
  auto guard = release.getEnable() ? release.getEnable().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  return loop && guard && guard.getPredicate() == arith::CmpIPredicate::ne && guard.getLhs() == loop.getInductionVar();
}

bool groupMetSinceAcquire(RingReleaseOp release) {
  for (Operation* user : release.getRing().getUsers()) {
    if (!isa<RingAcquireOp>(user)) continue;
    bool met = false;
    // Of the iteration before all statements are behind it.
    const bool isLate = release->getBlock() == user->getBlock() && isOfIterationBefore(release);
    for (Operation* op = user->getNextNode(); op && (isLate || op != release.getOperation()); op = op->getNextNode()) {
      auto product = dyn_cast<MmaOp>(op);
      met |= product && isWgmma(product.getEngine());
    }
    if (!met) return false;
  }
  return true;
}

static bool isFencedBehindReads(RingReleaseOp release) {
  for (Operation* op = release->getPrevNode(); op && op->getNumRegions() == 0; op = op->getPrevNode()) {
    if (readsByThreads(op, release.getRing())) return false;
    if (isa<TmaStoreOp>(op)) return true;
    if (auto store = dyn_cast<SmemStoreOp>(op); store && isReadByWgmma(store.getTarget())) return true;
    if (auto commit = dyn_cast<RingCommitOp>(op); commit && commit.getRing().getDefiningOp<RingAllocOp>().getTurned())
      return true;
    if (auto other = dyn_cast<RingReleaseOp>(op); other && needsFence(other)) return true;
  }
  return false;
}

bool needsFence(RingReleaseOp release) { return isReadByThreads(release) && !isFencedBehindReads(release); }

bool hostsStore(RingReleaseOp release) {
  for (Operation* op = release->getPrevNode(); op; op = op->getPrevNode()) {
    auto store = dyn_cast<TmaStoreOp>(op);
    auto slot = store ? store.getStaging().getDefiningOp<SmemSlotOp>() : SmemSlotOp();
    auto acquire = slot ? slot.getIndex().getDefiningOp<RingAcquireOp>() : RingAcquireOp();
    if (acquire && acquire.getRing() == release.getRing()) return true;
  }
  return false;
}

void ringRelease(Emitter& e, Value ring, llvm::Value* enable, bool meet) {
  RingCursor& cursor = cursorOf(e, ring);
  llvm::Value* slot = e.i32(0);
  if (stagesOf(ring) > 1) {
    slot = load(e, cursor.oldest);
    llvm::Value* next = nextSlot(e, ring, slot).first;
    e.b.CreateStore(enable ? e.b.CreateSelect(enable, next, slot) : next, cursor.oldest);
  }
  // The threads that arrive: one, or in a cluster as many as it has programs, each at another one's barrier.
  const int programs = e.roles().isClustered(ring) ? e.roles().cluster() : 1;
  llvm::Value* thread = nullptr;
  if (ring.getDefiningOp<RingAllocOp>().getPerWarp()) {
    e.syncWarp();  // every lane has read
    thread = e.lane();
  } else {
    if (meet) namedBarrier(e, e.b.CreateAdd(groupIndex(e), e.i32(kGroupBarrier)), kGroupThreads);
    thread = e.b.CreateAnd(e.thread(), e.i32(kGroupThreads - 1));
  }
  llvm::Value* leads = programs == 1 ? e.b.CreateICmpEQ(thread, e.i32(0)) : e.b.CreateICmpULT(thread, e.i32(programs));
  llvm::Value *barrier = emptyBarrier(e, ring, slot), *arrives = e.andAll({leads, enable});
  programs == 1 ? arrive(e, barrier, arrives) : arriveAt(e, barrier, thread, arrives);
}

}  // namespace tile::ir
