// stage.cpp - gives tiles in shared memory their buffers, and overlaps copies into them with the work of earlier
// iterations.
// Before: load_shared, gather_shared and share give tiles in shared memory as values.
// After:  smem_alloc, async_copy, async_gather, smem_store, async_commit, async_wait, barrier.
//
//   1. A loop whose copies can run ahead (copy_slice.h) gets a ring of S buffers for each copy; the copies of one
//      iteration are one group (cp.async.commit_group):
//        before the loop: the copies of iterations 0 .. S-2, a group for each
//        in the body:     wait until at most S-2 groups are open: this thread's copies for this iteration have landed
//                         barrier: so have those of all threads, and nobody reads the slot of iteration i - 1 now
//                         start the copies of iteration i + S-1 into that slot, and commit their group
//                         the body, which reads slot i mod S
//        after the loop:  wait for all groups, barrier: the memory of the ring is free
//      Copies for iterations that do not exist are disabled, so that every trip count from 0 on is right.
//      If the body has one product of warpgroups, and that needs nothing else of its iteration, the product comes
//      first; the copies and the arithmetic of their addresses stand behind it. They also stand behind a barrier that,
//      with the wait that async_waits puts in front of it, ends the product of the previous iteration (it is needed
//      only where products accumulate from iteration to iteration). So products follow each other without a gap.
//   2. S comes from `tile.stages` on the loop, else from the options, else it is what leaves room for a second program
//      where registers do (stage_room.h). The largest ring shrinks until all buffers fit the target.
//      Boxes of more than two dims are gathered (gather_boxes.h): only bulk copies take them as they are.
//   3. Other copies stay where they are: copy, wait, barrier in front of the first use.
//
// Barriers around smem_store are left to insert_barriers; those of asynchronous copies are all placed here.
#include "compiler/analysis/memory_roots.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/access/copy_layout.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/overlap/copied_loop.h"
#include "compiler/gpu/overlap/stage_room.h"
#include "compiler/gpu/rings/copies_ahead.h"
#include "compiler/gpu/rings/gather_boxes.h"
#include "compiler/gpu/rings/lifetimes.h"
#include "compiler/gpu/rings/ring_groups.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kScratchReserve = 2048;  ///< bytes left for reductions and conversions inside loops

bool isCopy(Operation* op) { return isSharedCopy(op); }
SmemType typeOf(Operation* op) { return copiedType(op); }

/// The loop whose iterations execute a copy at most once each: parents up to it are scf.if.
scf::ForOp loopOf(Operation* copy) {
  Operation* parent = copy->getParentOp();
  while (isa<scf::IfOp>(parent)) parent = parent->getParentOp();
  return dyn_cast<scf::ForOp>(parent);
}

class Stager {
 public:
  Stager(func::FuncOp func, const Target& target, const CompileOptions& options)
      : func_(func), target_(target), options_(options) {}

  void run() {
    gatherBoxes(func_);
    findRings();
    chooseStages();
    for (CopiedLoop& ring : rings_)
      if (ring.stages > 1) pipelined_.insert(pipelineCopies(ring));
    func_.walk([&](Block* block) { copyInPlace(*block); });
    SmallVector<ShareOp> shares;
    func_.walk([&](ShareOp share) { shares.push_back(share); });
    for (ShareOp share : shares) store(share);
  }

 private:
  // ---- 1. which loops

  void findRings() {
    llvm::MapVector<Operation*, SmallVector<Operation*>> byLoop;
    func_.walk([&](Operation* op) {
      if (!isCopy(op)) return;
      if (scf::ForOp loop = loopOf(op)) byLoop[loop].push_back(op);
    });
    func_.walk([&](scf::ForOp loop) {
      auto hint = loop->getAttrOfType<IntegerAttr>("tile.stages");
      const bool wishes = hint ? hint.getInt() > 1 : multipliesWhatItLoads(loop);
      if (wishes && !byLoop.contains(loop))
        loop.emitRemark() << "copies are not pipelined: nothing that this loop loads is copied to shared memory";
    });
    for (auto& [op, copies] : byLoop) {
      auto loop = cast<scf::ForOp>(op);
      CopiedLoop ring;
      ring.loop = loop;
      ring.copies = copies;
      ring.asked = options_.defaultStages;
      if (auto hint = loop->getAttrOfType<IntegerAttr>("tile.stages")) ring.asked = static_cast<int>(hint.getInt());
      if (ring.asked == 1) continue;
      ring.stages = ring.asked;
      // Around an inner loop the copies of the next iteration hide little and hold their memory long.
      bool hasInner = loop.getBody()
                          ->walk([](Operation* inner) {
                            return isa<LoopLikeOpInterface>(inner) ? WalkResult::interrupt() : WalkResult::advance();
                          })
                          .wasInterrupted();
      if (hasInner && !loop->hasAttr("tile.stages")) continue;
      ring.slice = std::make_unique<CopySlice>(loop, copies);
      if (!ring.slice->obstacle().empty()) {
        InFlightDiagnostic told = loop->hasAttr("tile.stages") ? loop.emitWarning() : loop.emitRemark();
        told << "copies are not pipelined: " << ring.slice->obstacle();
        continue;
      }
      for (Operation* copy : copies) ring.bytesPerStage += typeOf(copy).slotBytes();
      rings_.push_back(std::move(ring));
    }
  }

  /// Whether products of the loop wait for large tiles that it loads into registers.
  static bool multipliesWhatItLoads(scf::ForOp loop) {
    constexpr int64_t kLarge = 1024;  // elements
    auto isLarge = [](Operation& op) {
      auto tile = isa<LoadOp, GatherOp>(op) ? dyn_cast<RankedTensorType>(op.getResult(0).getType()) : RankedTensorType();
      return tile && tile.getNumElements() >= kLarge;
    };
    Block& body = *loop.getBody();
    return !body.getOps<MmaOp>().empty() && llvm::any_of(body, isLarge);
  }

  // ---- 2. how many stages

  /// A buffer of its own, from where it is filled to the end of the last statement beside it that reads it.
  struct Life {
    int64_t bytes, begin, end;
  };

  std::vector<Life> livesBesideRings(const ProgramOrder& order) {
    llvm::DenseSet<Operation*> inRing;
    for (CopiedLoop& ring : rings_) inRing.insert(ring.copies.begin(), ring.copies.end());
    std::vector<Life> lives;
    func_.walk([&](Operation* op) {
      if (!(isCopy(op) && !inRing.contains(op)) && !isa<ShareOp>(op)) return;
      Life life{typeOf(op).slotBytes(), order.begin(needsZeros(op) ? outermost(op) : op), order.end(op)};
      for (Operation* reader : readersOf(op->getResult(0))) {
        Operation* statement = op->getBlock()->findAncestorOpInBlock(*reader);
        life.end = std::max(life.end, order.end(statement ? statement : func_.getOperation()));
      }
      lives.push_back(life);
    });
    return lives;
  }

  void chooseStages() {
    const ProgramOrder order(func_);
    const std::vector<Life> lives = livesBesideRings(order);
    auto aliveIn = [&](int64_t begin, int64_t end) {
      int64_t bytes = kScratchReserve;
      for (const Life& life : lives)
        if (life.begin <= end && begin <= life.end) bytes += life.bytes;
      return bytes;
    };
    int64_t withoutRings = 0;
    for (const Life& life : lives) withoutRings = std::max(withoutRings, aliveIn(life.begin, life.begin));
    // A ring lives as long as its loop: only rings of enclosing loops are there at the same time.
    auto total = [&] {
      int64_t most = withoutRings;
      for (CopiedLoop& ring : rings_) {
        int64_t bytes = aliveIn(order.begin(ring.loop), order.end(ring.loop));
        for (CopiedLoop& other : rings_)
          if (other.loop->isAncestor(ring.loop)) bytes += other.bytesPerStage * other.stages;
        most = std::max(most, bytes);
      }
      return most;
    };
    auto fits = [&](int stages, int64_t budget) {
      for (CopiedLoop& ring : rings_)
        if (!ring.asked) ring.stages = stages;
      return total() <= budget;
    };
    const int64_t limit = target_.maxSharedBytes;
    // What goes through registers is waited for where it is copied: further iterations ahead would not be earlier.
    const Facts facts(func_);
    for (CopiedLoop& ring : rings_) {
      if (!llvm::all_of(ring.copies, [&](Operation* c) { return copiedThroughRegisters(c, facts); })) continue;
      if (ring.asked > 2) {
        ring.loop.emitRemark() << "pipelined with 2 stages: what is gathered element by element goes through registers";
        ring.asked = ring.stages = 2;
      } else if (!ring.asked) {  // with fewer places of stages alive
        ring.asked = ring.stages = 1;
      }
    }
    if (llvm::any_of(rings_, [](const CopiedLoop& ring) { return !ring.asked; })) {
      // Four warps leave registers for a second program on the multiprocessor, which hides more than a third stage.
      constexpr int kFewWarps = 4, kMostOfFew = 6;
      const int64_t half = limit / 2;
      auto most = [&](int first, int last, int64_t budget) {  // 0: not even the last
        int stages = first;
        while (stages >= last && !fits(stages, budget)) --stages;
        return stages < last ? 0 : stages;
      };
      auto leaveRegisters = [&] {
        return llvm::all_of(rings_, [&](CopiedLoop& ring) { return leavesRegisters(ring.loop, warpsOf(func_)); });
      };
      int ofMany = warpsOf(func_) <= kFewWarps ? most(3, 2, half) : leaveRegisters() ? most(4, 3, half) : 0;
      if (!ofMany) ofMany = std::max(2, most(4, 2, limit));
      // Few programs have nobody who copies meanwhile.
      fits(chooseByGrid(func_, options_, ofMany, std::max(ofMany, most(kMostOfFew, 2, limit))), limit);
    }
    while (total() > limit) {
      CopiedLoop* largest = nullptr;
      for (CopiedLoop& ring : rings_)
        if (ring.stages > 1 &&
            (!largest || ring.bytesPerStage * ring.stages > largest->bytesPerStage * largest->stages))
          largest = &ring;
      if (!largest) break;  // place_buffers lists what does not fit
      --largest->stages;
    }
    for (CopiedLoop& ring : rings_)
      if (ring.asked > ring.stages)
        ring.loop.emitRemark() << "pipelined with " << ring.stages << " stages: " << ring.asked << " of "
                               << ring.bytesPerStage << " bytes do not fit the " << limit << " bytes of shared memory";
  }

  // ---- 3. everything else

  /// A buffer for one tile: where the tile is made. Padding that must be zero is zeroed there, too, beside what is
  /// filled; that of tiles in loops once, in front of them.
  Value bufferFor(Operation* op) {
    Operation* place = needsZeros(op) ? outermost(op) : op;
    OpBuilder b(place);
    Value buffer = SmemAllocOp::create(b, op->getLoc(), typeOf(op), IntegerAttr());
    if (!needsZeros(op)) return buffer;
    const SmallVector<int64_t> box = typeOf(op).getInterleaved() ? SmallVector<int64_t>() : boxAmongZeros(op);
    SmemZeroOp::create(b, op->getLoc(), buffer, box.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(box));
    if (box.empty()) BarrierOp::create(b, op->getLoc());
    return buffer;
  }
  /// The statement of the kernel that `op` is in.
  Operation* outermost(Operation* op) { return func_.getBody().front().findAncestorOpInBlock(*op); }

  /// Copies of one block: each starts where it stands; the wait comes before the first op that reads any of them. Those
  /// of straight-line code that were started ahead are waited for by their own readers.
  void copyInPlace(Block& block) {
    struct Started {
      llvm::SmallPtrSet<Operation*, 4> readers;  ///< ancestors in this block of users
      bool ahead;
    };
    llvm::DenseSet<Operation*> ahead;
    if (block.getParentOp() == func_) ahead = startAhead(block);
    SmallVector<Started> started;  // unfinished, in the order in which they started
    auto isRead = [&](Operation* op) {
      return llvm::any_of(started, [&](const Started& copy) { return copy.readers.contains(op); });
    };
    auto waitAt = [&](Operation* before, bool forAll) {
      size_t later = 0;  // the last ones, which nobody reads here
      while (!forAll && later < started.size() && started[started.size() - 1 - later].ahead &&
             !started[started.size() - 1 - later].readers.contains(before))
        ++later;
      OpBuilder b(before);
      AsyncWaitOp::create(b, before->getLoc(), static_cast<uint32_t>(later));
      BarrierOp::create(b, before->getLoc());
      started.erase(started.begin(), started.end() - static_cast<ptrdiff_t>(later));
    };
    for (Operation& op : llvm::make_early_inc_range(block)) {
      if (isCopy(&op) && readersOf(op.getResult(0)).empty()) {
        if (!op.use_empty()) op.getResult(0).replaceAllUsesWith(bufferFor(&op));
        op.erase();
        continue;
      }
      // A write behind an unfinished copy could overtake it.
      const bool writes = !started.empty() && mayWriteGlobal(&op);
      if (writes || isRead(&op)) {
        // A pipelined loop waits for older groups in its first iteration, and behind it for all.
        if (pipelined_.contains(&op))
          started.clear();
        else
          waitAt(&op, writes);
      }
      if (!isCopy(&op)) continue;
      OpBuilder b(&op);
      Value buffer = bufferFor(&op);
      // The buffer's readers of the previous iteration must be done; they end before any barrier of this one.
      if (started.empty() && op.getParentOfType<LoopLikeOpInterface>()) BarrierOp::create(b, op.getLoc());
      emitThreadCopy(b, &op, IRMapping(), buffer, Value());
      AsyncCommitOp::create(b, op.getLoc());
      started.push_back({{}, ahead.contains(&op)});
      for (Operation* user : readersOf(op.getResult(0)))
        if (Operation* here = block.findAncestorOpInBlock(*user)) started.back().readers.insert(here);
      op.getResult(0).replaceAllUsesWith(buffer);
      op.erase();
    }
    if (!started.empty()) waitAt(block.getTerminator(), /*forAll=*/true);
  }

  static bool mayWriteGlobal(Operation* op) {
    return op
        ->walk([](Operation* inner) { return writesGlobal(inner) ? WalkResult::interrupt() : WalkResult::advance(); })
        .wasInterrupted();
  }

  void store(ShareOp share) {
    Value buffer = bufferFor(share);
    OpBuilder b(share);
    SmemStoreOp::create(b, share.getLoc(), share.getSource(), buffer);
    share.getResult().replaceAllUsesWith(buffer);
    share.erase();
  }

  func::FuncOp func_;
  const Target& target_;
  const CompileOptions& options_;
  std::vector<CopiedLoop> rings_;
  llvm::SmallPtrSet<Operation*, 4> pipelined_;
};

class StagePass : public PassWrapper<StagePass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StagePass)
  StagePass(TargetOf target, OptionsOf options) : target_(std::move(target)), options_(std::move(options)) {}
  StringRef getArgument() const override { return "tile-stage"; }
  StringRef getDescription() const override { return "give tiles in shared memory buffers and asynchronous copies"; }
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    bool hasRoles = func.walk([](SpecializeOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (hasRoles) return markAllAnalysesPreserved();  // specialize made the buffers
    Stager(func, target_(), options_()).run();
  }

 private:
  TargetOf target_;
  OptionsOf options_;
};

}  // namespace

std::unique_ptr<Pass> createStagePass(TargetOf target, OptionsOf options) {
  return std::make_unique<StagePass>(std::move(target), std::move(options));
}

}  // namespace tile::ir
