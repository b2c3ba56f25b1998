// roles.cpp - a producer warpgroup, in which some warps may turn tiles, and consumer warps in one kernel: checks,
// set-up, the branch into the roles, turns.
//
// Registers: setmaxnreg moves registers between warpgroups inside what the program entered with, which ptxas makes as
// many as fit (reqntid and minctapersm 1 are set). A sum above that compiles, and hangs every launch: refused here.
#include "compiler/gpu/lowering/roles.h"

#include "compiler/gpu/access/launch_views.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/lowering/smem_lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

// ---- what the kernel has

static bool isInProducer(Operation* op) {
  auto roles = op->getParentOfType<SpecializeOp>();
  return roles && roles.getProducer().isAncestor(op->getParentRegion());
}

LogicalResult KernelRoles::read(func::FuncOp kernel, const Facts& facts, const Target& target, int numWarps) {
  Operation* first = nullptr;
  kernel.walk([&](Operation* op) {
    if (isRoleOp(op) && !first) first = op;
    if (auto loop = dyn_cast<WorkLoopOp>(op)) {
      hasWorkLoop_ = true;
      usesTickets_ |= loop.getQueue() != nullptr;
    }
    if (auto specialize = dyn_cast<SpecializeOp>(op)) specialize_ = specialize;
    gathers_ |= isa<RingCommitOp>(op) && isInProducer(op);
    asks_ |= isa<BallotOp>(op) && isInProducer(op);
  });
  asks_ &= !gathers_;
  if (auto cluster = kernel->getAttrOfType<IntegerAttr>(kClusterAttr)) cluster_ = static_cast<int>(cluster.getInt());
  if (first && !target.hasTma) return first->emitOpError() << "needs sm_90a, the target is " << target.name;
  if (failed(readRings(kernel, numWarps)) || failed(readCopies(kernel, facts))) return failure();
  if (!specialize_) return success();
  groups_ = numWarps / kGroupWarps;
  if (numWarps % kGroupWarps != 0 || groups_ < 1 || groups_ > kMaxConsumerGroups)
    return specialize_.emitOpError() << "expects 1 to " << kMaxConsumerGroups << " warpgroups of " << kGroupWarps
                                     << " consumer warps, found " << numWarps << " warps";
  return checkRoles(kernel);
}

/// Its stages are turned into those of another one.
static bool isReadByTurner(RingAllocOp ring) {
  return llvm::any_of(ring->getUsers(), [](Operation* user) {
    auto roles = isa<RingAcquireOp>(user) ? user->getParentOfType<SpecializeOp>() : SpecializeOp();
    return roles && roles.getTurner().isAncestor(user->getParentRegion());
  });
}

/// Of work items.
static bool isQueue(RingAllocOp ring) {
  return llvm::any_of(ring->getUsers(), [](Operation* user) { return isa<WorkLoopOp>(user); });
}

static bool hasCommit(RingAllocOp ring) {
  return llvm::any_of(ring->getUsers(), [](Operation* user) { return isa<RingCommitOp>(user); });
}

LogicalResult KernelRoles::readRings(func::FuncOp kernel, int numWarps) {
  WalkResult result = kernel.walk([&](RingAllocOp ring) {
    int expected = ring.getPerWarp() ? numWarps : numWarps / kGroupWarps;
    // The producer's warps read what its first thread drew.
    if (!isThread() && isQueue(ring)) expected += gathers_ ? kGroupWarps : 1;
    if (specialize_ && specialize_.hasTurner()) {
      if (isQueue(ring)) expected += SpecializeOp::kTurnerWarps;
      if (isReadByTurner(ring)) expected = SpecializeOp::kTurnerWarps;
    }
    if ((ring.isFilledByThreads() || ring.getTurned()) != hasCommit(ring)) {
      ring.emitOpError() << "expects " << (hasCommit(ring) ? "fills by" : "a ring_commit of") << " the producer's "
                         << RingAllocOp::kThreadFills << " warps, found " << ring.getFills() << " fills";
      return WalkResult::interrupt();
    }
    if (isReadByTurner(ring) && !ring.getPerWarp()) {
      ring.emitOpError("expects every warp of the turner to release its stages");
      return WalkResult::interrupt();
    }
    if (static_cast<int>(ring.getArrivals()) != expected) {
      ring.emitOpError() << "expects " << expected << " arrivals (one of each consumer "
                         << (ring.getPerWarp() ? "warp" : "warpgroup") << "), found " << ring.getArrivals();
      return WalkResult::interrupt();
    }
    rings_.push_back(ring);
    return WalkResult::advance();
  });
  if (result.wasInterrupted()) return failure();
  result = kernel.walk([&](WorkLoopOp loop) {
    if (!loop.getQueue()) return WalkResult::advance();
    auto ring = loop.getQueue().getDefiningOp<RingAllocOp>();
    if (ring && ring.getPerWarp() && ring.getPayload() >= 4 && ring.getPayload() % 4 == 0 &&
        loop->getParentOfType<SpecializeOp>())
      return WalkResult::advance();
    // Every warp reads the payload: one warp's arrival would not speak for the others.
    loop.emitOpError("expects roles, and a queue of this kernel that every warp releases, with a payload of 4 bytes");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

size_t KernelRoles::mapFor(const TmaBox& box, const TensorMapInfo& map, Value ring) {
  if (!box.made) return mapOfLaunch(map);
  auto made = box.made.getDefiningOp<MakeViewOp>();
  auto it = llvm::find_if(made_, [&](const MadeMap& m) { return m.view == made && m.map == map; });
  if (it == made_.end()) it = made_.insert(made_.end(), {made, map, {}});
  it->rings.insert(ring);
  return static_cast<size_t>(it - made_.begin());
}

llvm::Value* KernelRoles::mapOf(Emitter& e, Operation* op, const TmaCopy& copy) const {
  const Use& use = uses_.find(op)->second;
  const size_t map = copy.isNarrow ? use.narrow : use.map;
  return use.box.made ? madeMapAddress(e, map) : mapParams[map];
}

llvm::Value* KernelRoles::remainderOf(Operation* op) const {
  const Use& use = uses_.find(op)->second;
  return use.remainder ? mapParams[*use.remainder] : nullptr;
}

size_t KernelRoles::mapOfLaunch(const TensorMapInfo& map) {
  auto it = std::find(maps_.begin(), maps_.end(), map);
  const size_t at = static_cast<size_t>(it - maps_.begin());
  if (it == maps_.end()) maps_.push_back(map);
  return at;
}

/// Whether a loop may copy a box that ends behind the view in every iteration: its rows begin where they do around the
/// loop, and the view need not end with a whole box. (Of boxes that move with the loop only the last one does: looking
/// costs more than it brings, 1 % of attention with heads of 64 on an H200.)
static bool mayRepeatLastRows(TmaLoadOp copy, const TmaBox& box, const Facts& facts) {
  auto loop = copy->getParentOfType<scf::ForOp>();
  if (!loop || box.map.rank < 2 || box.rowExtents.size() > 1 || !box.columnExtents.empty() || box.narrow) return false;
  const int dim = box.dims[1];
  const int64_t rows = box.map.box[1];
  return loop.isDefinedOutsideOfLoop(copy.getIndices()[dim]) && rows > 1 &&
         facts.dimDivisibility(copy.getView(), dim) % rows != 0 &&
         llvm::all_of(box.copies, [](const TmaCopy& part) { return part.row == 0; });
}

// All rows behind the end of a view are fetched from one place: 14 of them in a clock cycle, of all multiprocessors
// together. (H200: a box of 128 x 64 f16 takes 200 cycles, with one row inside the view 1350; of 16 rows it shows only
// beside other traffic.)
void KernelRoles::addRemainders(func::FuncOp kernel, const Facts& facts) {
  SmallVector<Use*> uses;
  kernel.walk([&](TmaLoadOp copy) {
    Use& use = uses_.find(copy)->second;
    if (!use.box.made && !copy->hasAttr(kMulticastAttr) && mayRepeatLastRows(copy, use.box, facts))
      uses.push_back(&use);
  });
  // Two operands of a product. Of more boxes a producer has no registers to know the ends of.
  constexpr size_t kMost = 2;
  if (uses.size() > kMost) return;
  for (Use* use : uses) {
    TensorMapInfo map = use->box.map;
    map.remainder = true;
    if (maps_.size() >= kMaxTensorMaps && !llvm::is_contained(maps_, map)) return;
    use->remainder = mapOfLaunch(map);
    remainderBytes_ = std::max(remainderBytes_, use->box.bytes() / static_cast<int64_t>(use->box.copies.size()));
  }
}

LogicalResult KernelRoles::readCopies(func::FuncOp kernel, const Facts& facts) {
  llvm::DenseMap<Operation*, int64_t> announced;
  kernel.walk([&](MakeViewOp view) {
    if (auto relied = view->getAttrOfType<DenseI32ArrayAttr>(kPositiveArgumentsAttr))
      for (int32_t argument : relied.asArrayRef()) positive_.insert(static_cast<unsigned>(argument));
  });
  WalkResult result = kernel.walk([&](Operation* op) {
    auto use = [&](Value view, SmemType type, bool isStore, Value ring, int parts = 1) {
      std::string why;
      auto extents = op->getAttrOfType<DenseI64ArrayAttr>(kBoxAttr);
      auto box = tmaBox(view, type, facts, isStore, &why, extents ? extents.asArrayRef() : ArrayRef<int64_t>(),
                        parts);
      if (!box) {
        op->emitOpError() << "cannot be a bulk copy: " << why;
        return WalkResult::interrupt();
      }
      box->map.tf32 = op->hasAttr(kTf32Attr);
      if (box->narrow) box->narrow->tf32 = box->map.tf32;
      positive_.insert(box->positive.begin(), box->positive.end());
      const size_t map = mapFor(*box, box->map, ring), narrow = box->narrow ? mapFor(*box, *box->narrow, ring) : map;
      uses_.try_emplace(op, Use{std::move(*box), map, narrow});
      return WalkResult::advance();
    };
    if (auto copy = dyn_cast<TmaLoadOp>(op)) {
      // Copies behind conditions announce their bytes elsewhere.
      if (Operation* reserve = copy.getSlot().getDefiningOp(); reserve && reserve->getBlock() == op->getBlock())
        announced[reserve] += copy.getTarget().getType().getShape()[0] * copy.getTarget().getType().getShape()[1] *
                              copy.getTarget().getType().elementBytes();
      const bool isShared = copy->hasAttr(kMulticastAttr);
      if (isShared && cluster_ < 2) {
        op->emitOpError() << "is made for a cluster, the kernel has no tile.cluster";
        return WalkResult::interrupt();
      }
      if (isShared) clustered_.insert(copy.getRing());
      return use(copy.getView(), copy.getTarget().getType(), false, copy.getRing(), isShared ? cluster_ : 1);
    }
    if (auto store = dyn_cast<TmaStoreOp>(op)) {
      hasTmaStores_ = true;
      return use(store.getView(), store.getStaging().getType(), true, Value());
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted()) return failure();
  addRemainders(kernel, facts);
  if (clustered_.empty()) cluster_ = 1;
  for (auto [op, bytes] : announced)
    if (auto reserve = dyn_cast<RingReserveOp>(op); reserve && bytes > reserve.getBytes())
      return reserve.emitOpError() << "announces " << reserve.getBytes() << " bytes, its copies have " << bytes;
  return success();
}

// What cannot run with one thread, or with more threads than the layouts know.
LogicalResult KernelRoles::checkRoles(func::FuncOp kernel) {
  auto isTileWork = [](Operation* op) {
    auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
    return llvm::any_of(op->getOperandTypes(), isTile) || llvm::any_of(op->getResultTypes(), isTile);
  };
  WalkResult result = specialize_.getProducer().walk([&](Operation* op) {
    const bool isOwn = gathers_ && !scratchOf(op) && !isa<BarrierOp, StoreOp, AccumulateOp, ScatterOp, MmaOp>(op);
    if (isOwn || (!isTileWork(op) && !scratchOf(op) && !isa<BarrierOp>(op))) return WalkResult::advance();
    op->emitOpError(gathers_ ? "cannot run in the producer: its threads do not meet"
                             : "cannot run in the producer: it is one thread");
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted()) return failure();
  result = specialize_.getTurner().walk([&](Operation* op) {
    if (!isTileWork(op) && !scratchOf(op) && !isa<BarrierOp, TmaLoadOp>(op)) return WalkResult::advance();
    op->emitOpError("cannot run in the turner: its warps turn tiles from ring to ring");
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted()) return failure();
  for (Operation& op : kernel.getBody().front()) {
    if (&op == specialize_.getOperation() || isa<SmemAllocOp, RingAllocOp>(op)) continue;
    if ((isTileWork(&op) || isa<BarrierOp>(op)) && (!isMemoryEffectFree(&op) || scratchOf(&op)))
      return op.emitOpError("must stand in the consumer's region: here the producer's threads would run it too");
  }
  return success();
}

// ---- named barriers

llvm::Value* groupIndex(Emitter& e) { return e.b.CreateUDiv(e.warp(), e.i32(kGroupWarps)); }

void namedBarrier(Emitter& e, llvm::Value* id, int threads) {
  e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_count, {id, e.i32(threads)});
}
void namedArrive(Emitter& e, llvm::Value* id, int threads) {
  e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_arrive_aligned_count, {id, e.i32(threads)});
}

llvm::Value* electThread(Emitter& e) {
  llvm::Value* elected = e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_elect_sync, {e.i32(-1)});
  return e.b.CreateExtractValue(elected, 1);
}

// A turn is a barrier where the group that waits meets the one that passes.
void emitTurnWait(Emitter& e) {
  if (e.roles().groups() < 2) return;
  namedBarrier(e, e.b.CreateAdd(groupIndex(e), e.i32(kTurnBarrier)), 2 * kGroupThreads);
}

void emitTurnPass(Emitter& e) {
  const int groups = e.roles().groups();
  if (groups < 2) return;
  llvm::Value* next = e.b.CreateAdd(groupIndex(e), e.i32(1));
  next = e.b.CreateSelect(e.b.CreateICmpEQ(next, e.i32(groups)), e.i32(0), next);
  namedArrive(e, e.b.CreateAdd(next, e.i32(kTurnBarrier)), 2 * kGroupThreads);
}

// ---- the roles

namespace {

/// Registers per thread a program of so many threads enters with when `programs` of them share the register file: as
/// many as there are.
int entryRegisters(const Target& target, int threads, int programs) {
  const int each = static_cast<int>(target.registersPerSm) / (threads * programs);
  return std::min(each, target.maxRegsPerThread) / 8 * 8;
}

LogicalResult checkRegisters(SpecializeOp op, int groups, int entry) {
  const int64_t producer = op.getProducerRegs() ? op.getProducerRegs() : entry;
  const int64_t consumer = op.getConsumerRegs() ? op.getConsumerRegs() : entry;
  const int64_t wanted = producer + groups * consumer, pool = int64_t{entry} * (groups + 1);
  if (wanted <= pool) return success();
  return op.emitOpError() << "asks for " << producer << " registers per thread of the producer and " << consumer
                          << " of " << groups << " consumer warpgroups, " << wanted
                          << " in all; the program enters with " << entry << " each, " << pool << " in all";
}

void changeRegisters(Emitter& e, int64_t regs, int entry) {
  if (regs == 0 || regs == entry) return;
  e.b.CreateIntrinsic(regs < entry ? llvm::Intrinsic::nvvm_setmaxnreg_dec_sync_aligned_u32
                                   : llvm::Intrinsic::nvvm_setmaxnreg_inc_sync_aligned_u32,
                      {e.i32(regs)});
}

/// All threads of the programs of a cluster meet.
void meetCluster(Emitter& e, bool aligned) {
  using namespace llvm::Intrinsic;
  e.b.CreateIntrinsic(aligned ? nvvm_barrier_cluster_arrive_aligned : nvvm_barrier_cluster_arrive, {});
  e.b.CreateIntrinsic(aligned ? nvvm_barrier_cluster_wait_aligned : nvvm_barrier_cluster_wait, {});
}

bool hasTurns(SpecializeOp op) {
  return op.getConsumer().walk([](TurnWaitOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

}  // namespace

LogicalResult emitSpecialize(Emitter& e, SpecializeOp op) {
  llvm::IRBuilder<>& b = e.b;
  const int groups = e.roles().groups(),
            entry = entryRegisters(e.target, e.totalThreads(), static_cast<int>(op.getPrograms()));
  if (failed(checkRegisters(op, groups, entry))) return failure();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function); };
  auto* producer = block("producer");
  auto* first = e.roles().gathers() ? nullptr : block("producer.warp");
  auto* elected = e.roles().isThread() ? block("producer.thread") : nullptr;
  auto* turner = op.hasTurner() ? block("turner") : nullptr;
  auto *consumer = block("consumer"), *after = block("roles.end");

  emitIf(e, b.CreateICmpEQ(e.thread(), e.i32(0)), [&] {
    for (auto [map, info] : llvm::zip(e.roles().mapParams, e.roles().tensorMaps()))
      if (!info.remainder) e.inlineAsm(b.getVoidTy(), "prefetch.tensormap [$0];", "l", {map});
    emitRingInit(e);
  });
  e.waitForStream();
  if (e.roles().cluster() > 1)
    meetCluster(e, /*aligned=*/true);  // nobody copies before all have their barriers
  else
    e.barrier();
  b.CreateCondBr(b.CreateICmpUGE(e.warp(), e.i32(e.numWarps())), producer, consumer);

  b.SetInsertPoint(producer);
  changeRegisters(e, op.getProducerRegs(), entry);
  e.role = Emitter::Role::producer;
  auto produce = [&] {
    takeMadeMaps(e);
    if (failed(e.emitBlock(op.getProducer().front()))) return failure();
    giveBackMadeMaps(e);
    return success();
  };
  if (e.roles().gathers()) {
    if (failed(e.asProducerWarps(produce))) return failure();
  } else {
    b.CreateCondBr(b.CreateICmpEQ(e.warp(), e.i32(e.numWarps())), first, turner ? turner : after);
    b.SetInsertPoint(first);
    if (elected) {
      b.CreateCondBr(electThread(e), elected, after);
      b.SetInsertPoint(elected);
    }
    if (failed(produce())) return failure();
  }
  b.CreateBr(after);

  if (turner) {
    b.SetInsertPoint(turner);
    e.role = Emitter::Role::turner;
    if (failed(e.emitBlock(op.getTurner().front()))) return failure();
    b.CreateBr(after);
  }

  b.SetInsertPoint(consumer);
  changeRegisters(e, op.getConsumerRegs(), entry);
  e.role = Emitter::Role::consumer;
  if (groups > 1 && hasTurns(op))  // the first turn is group 0's: somebody has to pass it
    emitIf(e, b.CreateICmpEQ(groupIndex(e), e.i32(groups - 1)),
           [&] { namedArrive(e, e.i32(kTurnBarrier), 2 * kGroupThreads); });
  if (failed(e.emitBlock(op.getConsumer().front()))) return failure();
  if (e.roles().hasTmaStores()) finishTmaStores(e);
  b.CreateBr(after);

  e.role = Emitter::Role::all;
  b.SetInsertPoint(after);
  // Nobody ends while others still count on its barriers, or copy into its memory. Threads of one warp come apart.
  if (e.roles().cluster() > 1) meetCluster(e, /*aligned=*/false);
  return success();
}

// ---- dispatch

bool isRoleOp(Operation* op) {
  return isa<SpecializeOp, WorkLoopOp, RingAllocOp, RingReserveOp, RingCommitOp, RingAcquireOp, RingReleaseOp,
             TmaLoadOp, TmaDescribeOp, TmaStoreOp, SmemTurnOp, TurnWaitOp, TurnPassOp, HandOverOp, TakeOverOp>(op);
}

LogicalResult emitRoleOp(Emitter& e, Operation* op) {
  using Role = Emitter::Role;
  const bool turns = e.role == Role::turner;
  if (isa<RingReserveOp, RingCommitOp, TmaLoadOp, TmaDescribeOp, HandOverOp>(op) && e.role != Role::producer &&
      !(turns && isa<RingReserveOp, RingCommitOp>(op)))
    return op->emitOpError("belongs into the producer of a tile.specialize");
  if (isa<RingAcquireOp, RingReleaseOp, TmaStoreOp, TurnWaitOp, TurnPassOp, TakeOverOp>(op) &&
      e.role != Role::consumer && !(turns && isa<RingAcquireOp, RingReleaseOp>(op)))
    return op->emitOpError("belongs into the consumer of a tile.specialize");
  if (isa<SmemTurnOp>(op) && !turns) return op->emitOpError("belongs into the turner of a tile.specialize");
  for (Value operand : op->getOperands())
    if (isa<RingType>(operand.getType()) && !operand.getDefiningOp<RingAllocOp>())
      return op->emitOpError("expects a ring made by tile.ring_alloc");
  return llvm::TypeSwitch<Operation*, LogicalResult>(op)
      .Case([&](SpecializeOp o) { return emitSpecialize(e, o); })
      .Case([&](WorkLoopOp o) { return emitWorkLoop(e, o); })
      .Case([&](RingAllocOp o) { return emitRingAlloc(e, o); })
      .Case([&](RingCommitOp o) { return turns ? emitTurnedCommit(e, o) : emitRingCommit(e, o); })
      .Case([&](SmemTurnOp o) { return emitSmemTurn(e, o); })
      .Case([&](RingReserveOp o) {
        if (!e.roles().isThread() && !turns) return emitSharedReserve(e, o);
        llvm::Value* slot = ringReserve(e, o.getRing());
        if (!turns) expectBytes(e, fullBarrier(e, o.getRing(), slot), o.getBytes());
        e.define(o.getSlot(), slot);
        return success();
      })
      .Case([&](RingAcquireOp o) {
        e.define(o.getSlot(), ringAcquire(e, o.getRing()));
        return success();
      })
      .Case([&](RingReleaseOp o) {
        if (hostsStore(o)) {
          waitForReads(e, 0);
          e.syncWarp();  // the thread that waited and the one that gives the stage back are of one warp
        }
        if (needsFence(o)) fenceAsyncProxy(e);
        ringRelease(e, o.getRing(), o.getEnable() ? e.scalar(o.getEnable()) : nullptr, !groupMetSinceAcquire(o));
        return success();
      })
      .Case([&](HandOverOp o) {
        emitHandOver(e, o);
        return success();
      })
      .Case([&](TakeOverOp o) {
        emitTakeOver(e, o);
        return success();
      })
      .Case([&](TmaLoadOp o) {
        if (e.roles().isThread()) return emitTmaLoad(e, o);
        LogicalResult result = success();
        byFirstThread(e, [&] { result = emitTmaLoad(e, o); });
        return result;
      })
      .Case([&](TmaDescribeOp o) {
        writeMadeMaps(e, o);
        return success();
      })
      .Case([&](TmaStoreOp o) { return emitTmaStore(e, o); })
      .Case([&](TurnWaitOp) {
        emitTurnWait(e);
        return success();
      })
      .Default([&](Operation*) {
        emitTurnPass(e);
        return success();
      });
}

}  // namespace tile::ir
