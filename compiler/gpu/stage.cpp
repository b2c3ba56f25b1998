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
#include "compiler/gpu/copies_ahead.h"
#include "compiler/gpu/copy_layout.h"
#include "compiler/gpu/copy_slice.h"
#include "compiler/gpu/dot_passes.h"
#include "compiler/gpu/gather_boxes.h"
#include "compiler/gpu/lifetimes.h"
#include "compiler/gpu/ring_groups.h"
#include "compiler/gpu/shared_memory.h"
#include "compiler/gpu/stage_room.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kScratchReserve = 2048;  ///< bytes left for reductions and conversions inside loops

bool isCopy(Operation* op) { return isSharedCopy(op); }
SmemType typeOf(Operation* op) { return copiedType(op); }

/// The tile a copy or share puts into the buffer.
SmallVector<int64_t, 2> boxOf(Operation* op) {
  if (auto share = dyn_cast<ShareOp>(op))
    return SmallVector<int64_t, 2>(cast<ShapedType>(share.getSource().getType()).getShape());
  return copiedShape(op);
}
/// Whether padding along the dim (0: rows) of what is in shared memory reaches a result: products sum over it. Padding
/// of their rows and columns only makes more padding.
bool reachesResults(Value smem, int dim) {
  return llvm::any_of(smem.getUsers(), [&](Operation* user) {
    if (isa<SmemTransOp>(user)) return reachesResults(user->getResult(0), 1 - dim);
    auto product = dyn_cast<MmaOp>(user);
    return !product || (product.getA() == smem && dim == 1) || (product.getB() == smem && dim == 0);
  });
}
/// The copy fills less than the buffer has, and the rest must be zero.
bool needsZeros(Operation* op) {
  const auto box = boxOf(op);
  const ArrayRef<int64_t> whole = typeOf(op).getShape();
  if (whole.size() != 2 || box.size() != 2) return ArrayRef<int64_t>(box) != whole;
  const Value smem = op->getResult(0);
  return (box[0] != whole[0] && reachesResults(smem, 0)) || (box[1] != whole[1] && reachesResults(smem, 1));
}

/// The loop whose iterations execute a copy at most once each: parents up to it are scf.if.
scf::ForOp loopOf(Operation* copy) {
  Operation* parent = copy->getParentOp();
  while (isa<scf::IfOp>(parent)) parent = parent->getParentOp();
  return dyn_cast<scf::ForOp>(parent);
}

/// A loop to pipeline.
struct Ring {
  scf::ForOp loop;
  SmallVector<Operation*> copies;
  std::unique_ptr<CopySlice> slice;
  int stages = 0;
  int asked = 0;  ///< stages the user wants; 0: no wish
  int64_t bytesPerStage = 0;
};

class Stager {
 public:
  Stager(func::FuncOp func, const Target& target, int defaultStages)
      : func_(func), target_(target), defaultStages_(defaultStages) {}

  void run() {
    gatherBoxes(func_);
    findRings();
    chooseStages();
    for (Ring& ring : rings_)
      if (ring.stages > 1) pipeline(ring);
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
    for (auto& [op, copies] : byLoop) {
      auto loop = cast<scf::ForOp>(op);
      Ring ring;
      ring.loop = loop;
      ring.copies = copies;
      ring.asked = defaultStages_;
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
        loop.emitRemark() << "copies are not pipelined: " << ring.slice->obstacle();
        continue;
      }
      for (Operation* copy : copies) ring.bytesPerStage += typeOf(copy).slotBytes();
      rings_.push_back(std::move(ring));
    }
  }

  // ---- 2. how many stages

  /// A buffer of its own, from where it is filled to the end of the last statement beside it that reads it.
  struct Life {
    int64_t bytes, begin, end;
  };

  std::vector<Life> livesBesideRings(const ProgramOrder& order) {
    llvm::DenseSet<Operation*> inRing;
    for (Ring& ring : rings_) inRing.insert(ring.copies.begin(), ring.copies.end());
    std::vector<Life> lives;
    func_.walk([&](Operation* op) {
      if (!(isCopy(op) && !inRing.contains(op)) && !isa<ShareOp>(op)) return;
      Life life{typeOf(op).slotBytes(), needsZeros(op) ? 0 : order.begin(op), order.end(op)};
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
      for (Ring& ring : rings_) {
        int64_t bytes = aliveIn(order.begin(ring.loop), order.end(ring.loop));
        for (Ring& other : rings_)
          if (other.loop->isAncestor(ring.loop)) bytes += other.bytesPerStage * other.stages;
        most = std::max(most, bytes);
      }
      return most;
    };
    auto fits = [&](int stages, int64_t budget) {
      for (Ring& ring : rings_)
        if (!ring.asked) ring.stages = stages;
      return total() <= budget;
    };
    const int64_t limit = target_.maxSharedBytes;
    // What goes through registers is waited for where it is copied: further iterations ahead would not be earlier.
    const Facts facts(func_);
    for (Ring& ring : rings_) {
      if (!llvm::all_of(ring.copies, [&](Operation* c) { return copiedThroughRegisters(c, facts); })) continue;
      if (ring.asked > 2) {
        ring.loop.emitRemark() << "pipelined with 2 stages: what is gathered element by element goes through registers";
        ring.asked = ring.stages = 2;
      } else if (!ring.asked) {  // with fewer places of stages alive
        ring.asked = ring.stages = 1;
      }
    }
    if (llvm::any_of(rings_, [](const Ring& ring) { return !ring.asked; })) {
      // Four warps leave registers for a second program on the multiprocessor, which hides more than a third stage.
      constexpr int kFewWarps = 4;
      const int64_t half = limit / 2;
      auto leaveRegisters = [&] {
        return llvm::all_of(rings_, [&](Ring& ring) { return leavesRegisters(ring.loop, warpsOf(func_)); });
      };
      const bool shared = warpsOf(func_) <= kFewWarps ? fits(3, half) || fits(2, half)
                                                      : leaveRegisters() && (fits(4, half) || fits(3, half));
      if (!shared && !fits(4, limit) && !fits(3, limit)) fits(2, limit);
    }
    while (total() > limit) {
      Ring* largest = nullptr;
      for (Ring& ring : rings_)
        if (ring.stages > 1 &&
            (!largest || ring.bytesPerStage * ring.stages > largest->bytesPerStage * largest->stages))
          largest = &ring;
      if (!largest) break;  // place_buffers lists what does not fit
      --largest->stages;
    }
    for (Ring& ring : rings_)
      if (ring.asked > ring.stages)
        ring.loop.emitRemark() << "pipelined with " << ring.stages << " stages: " << ring.asked << " of "
                               << ring.bytesPerStage << " bytes do not fit the " << limit << " bytes of shared memory";
  }

  // ---- 1. rings

  Value intConstant(OpBuilder& b, Location loc, Type type, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }

  /// Signed 64-bit copy of a loop bound: sums of bounds and steps cannot overflow it.
  Value wide(OpBuilder& b, Location loc, Value v) {
    if (v.getType().isIndex()) return arith::IndexCastOp::create(b, loc, b.getI64Type(), v);
    return v.getType().isInteger(64) ? v : Value(arith::ExtSIOp::create(b, loc, b.getI64Type(), v));
  }

  /// Starts the copies of one iteration into the given slots, if `enable`, as one group.
  void issue(OpBuilder& b, Ring& ring, Value iv, SmallVectorImpl<Value>& state, Value enable, ArrayRef<Value> slots) {
    Location loc = ring.loop.getLoc();
    auto slotOf = [&](Operation* copy) { return slots[llvm::find(ring.copies, copy) - ring.copies.begin()]; };
    if (!ring.slice->needsGuard()) {
      ring.slice->emit(b, iv, state, [&](OpBuilder& inner, Operation* copy, const IRMapping& map) {
        emitThreadCopy(inner, copy, map, slotOf(copy), enable);
      });
    } else {
      SmallVector<Value> next(state.begin(), state.end());
      auto guard = scf::IfOp::create(b, loc, TypeRange(ValueRange(state)), enable, /*withElseRegion=*/!state.empty());
      Block* then = &guard.getThenRegion().front();
      if (!then->empty()) then->back().erase();
      OpBuilder inside = OpBuilder::atBlockEnd(then);
      ring.slice->emit(inside, iv, next, [&](OpBuilder& inner, Operation* copy, const IRMapping& map) {
        emitThreadCopy(inner, copy, map, slotOf(copy), Value());
      });
      scf::YieldOp::create(inside, loc, next);
      if (!state.empty()) {
        Block* otherwise = &guard.getElseRegion().front();
        if (!otherwise->empty()) otherwise->back().erase();
        OpBuilder outside = OpBuilder::atBlockEnd(otherwise);
        scf::YieldOp::create(outside, loc, state);
      }
      state.assign(guard.getResults().begin(), guard.getResults().end());
    }
    AsyncCommitOp::create(b, loc);
  }

  /// The loop's one asynchronous product, if it is of the ring's tiles and waits for nothing else of its iteration;
  /// else null.
  static MmaOp leadingProduct(const Ring& ring) {
    scf::ForOp loop = ring.loop;
    int products = 0;
    loop.getBody()->walk([&](MmaOp product) { products += isAsyncProduct(product); });
    if (products != 1) return {};
    auto isEarly = [&](Value operand) {
      if (auto trans = operand.getDefiningOp<SmemTransOp>()) operand = trans.getSource();
      return !loop.getRegion().isAncestor(operand.getParentRegion()) || isa<BlockArgument>(operand) ||
             matchPattern(operand, m_Constant()) || llvm::is_contained(ring.copies, operand.getDefiningOp());
    };
    for (Operation& op : *loop.getBody()) {
      if (isAsyncProduct(&op)) {
        auto product = cast<MmaOp>(op);
        const bool readsRing = llvm::any_of(
            ring.copies, [&](Operation* copy) { return llvm::is_contained(readersOf(copy->getResult(0)), &op); });
        return readsRing && llvm::all_of(op.getOperands(), isEarly) ? product : MmaOp();
      }
      if (!isCopy(&op) && !isMemoryEffectFree(&op) && !isa<LoadOp, GatherOp>(op)) return {};
    }
    return {};
  }

  /// The next iteration alone reads the result; a product may be running until then.
  static bool isReadNext(Operation* op) {
    return llvm::all_of(op->getUsers(), [](Operation* user) { return isa<scf::YieldOp>(user); });
  }

  void pipeline(Ring& ring) {
    scf::ForOp loop = ring.loop;
    Location loc = loop.getLoc();
    OpBuilder b(loop);
    const int stages = ring.stages;
    Type i32 = b.getI32Type();

    SmallVector<Value> buffers;
    bool padded = false;
    for (Operation* copy : ring.copies) {
      buffers.push_back(SmemAllocOp::create(b, copy->getLoc(), typeOf(copy).withStages(stages), IntegerAttr()));
      if (!needsZeros(copy)) continue;
      SmemZeroOp::create(b, copy->getLoc(), buffers.back());
      padded = true;
    }
    if (padded) BarrierOp::create(b, loc);
    auto slotsAt = [&](OpBuilder& builder, Value index) {
      SmallVector<Value> slots;
      for (Value buffer : buffers)
        slots.push_back(SmemSlotOp::create(builder, loc, cast<SmemType>(buffer.getType()).slotType(), buffer, index));
      return slots;
    };

    Value upper = wide(b, loc, loop.getUpperBound()), step = wide(b, loc, loop.getStep());
    auto exists = [&](OpBuilder& builder, Value iv) {
      return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, iv, upper);
    };
    SmallVector<Value> state;
    for (unsigned index : ring.slice->carried()) state.push_back(loop.getInitArgs()[index]);
    Value iv = loop.getLowerBound(), wideIv = wide(b, loc, iv);
    for (int i = 0; i + 1 < stages; ++i) {
      issue(b, ring, iv, state, exists(b, wideIv), slotsAt(b, intConstant(b, loc, i32, i)));
      iv = arith::AddIOp::create(b, loc, iv, loop.getStep(), arith::IntegerOverflowFlags::nsw);
      wideIv = arith::AddIOp::create(b, loc, wideIv, step);
    }

    // The loop again, carrying also the state of the iteration being copied and the two slots.
    const size_t first = loop.getInitArgs().size();
    SmallVector<Value> inits(loop.getInitArgs());
    inits.append(state.begin(), state.end());
    inits.push_back(intConstant(b, loc, i32, 0));
    inits.push_back(intConstant(b, loc, i32, stages - 1));
    Value distance = intConstant(b, loc, b.getI64Type(), stages - 1);
    distance = arith::MulIOp::create(b, loc, step, distance);
    Value narrowDistance =
        arith::MulIOp::create(b, loc, loop.getStep(), intConstant(b, loc, loop.getStep().getType(), stages - 1));
    auto made = scf::ForOp::create(b, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
    made->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    made->setAttr("tile.stages", b.getI32IntegerAttr(stages));
    Block* body = made.getBody();
    if (!body->empty()) body->back().erase();
    OpBuilder in = OpBuilder::atBlockBegin(body);
    Value readSlot = made.getRegionIterArg(first + state.size()),
          writeSlot = made.getRegionIterArg(first + state.size() + 1);

    AsyncWaitOp::create(in, loc, stages - 2);
    BarrierOp::create(in, loc);
    SmallVector<Value> next;
    for (size_t i = 0; i < state.size(); ++i) next.push_back(made.getRegionIterArg(first + i));
    MmaOp leading = leadingProduct(ring);
    Operation* barrier = &body->back();
    // Moves behind it with the copies. A product that its own iteration reads has ended in front of the barrier above.
    if (leading && isReadNext(leading)) BarrierOp::create(in, loc);
    // An iteration that exists does not wrap; one that does not is disabled, and its address is not used.
    Value ahead =
        arith::AddIOp::create(in, loc, made.getInductionVar(), narrowDistance, arith::IntegerOverflowFlags::nsw);
    Value wideAhead = arith::AddIOp::create(in, loc, wide(in, loc, made.getInductionVar()), distance);
    issue(in, ring, ahead, next, exists(in, wideAhead), slotsAt(in, writeSlot));
    SmallVector<Operation*> issued;
    for (Operation* op = barrier->getNextNode(); op && leading; op = op->getNextNode()) issued.push_back(op);
    auto wrapped = [&](Value slot) {
      Value more = arith::AddIOp::create(in, loc, slot, intConstant(in, loc, i32, 1));
      Value last = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::eq, more, intConstant(in, loc, i32, stages));
      return Value(arith::SelectOp::create(in, loc, last, intConstant(in, loc, i32, 0), more));
    };
    Value nextRead = wrapped(readSlot), nextWrite = wrapped(writeSlot);
    SmallVector<Value> slots = slotsAt(in, readSlot);

    for (size_t i = 0; i <= first; ++i) loop.getBody()->getArgument(i).replaceAllUsesWith(body->getArgument(i));
    body->getOperations().splice(body->end(), loop.getBody()->getOperations());
    for (auto [copy, slot] : llvm::zip(ring.copies, slots)) {
      copy->getResult(0).replaceAllUsesWith(slot);
      copy->erase();
    }
    for (Operation* op : llvm::reverse(issued)) op->moveAfter(leading);
    if (leading)
      for (Value buffer : buffers) buffer.getDefiningOp()->setAttr(kRotatesAttr, b.getUnitAttr());
    Operation* yield = body->getTerminator();
    SmallVector<Value> yielded(yield->getOperands());
    yielded.append(next.begin(), next.end());
    yielded.push_back(nextRead);
    yielded.push_back(nextWrite);
    yield->setOperands(yielded);

    AsyncWaitOp::create(b, loc, 0);
    BarrierOp::create(b, loc);
    for (size_t i = 0; i < first; ++i) loop.getResult(i).replaceAllUsesWith(made.getResult(i));
    loop.erase();
    pipelined_.insert(made);
  }

  // ---- 3. everything else

  /// A buffer for one tile: where the tile is made, or in front of everything when its padding must be zeroed once.
  Value bufferFor(Operation* op) {
    OpBuilder b(op);
    if (!needsZeros(op)) return SmemAllocOp::create(b, op->getLoc(), typeOf(op), IntegerAttr());
    b.setInsertionPointToStart(&func_.getBody().front());
    Value buffer = SmemAllocOp::create(b, op->getLoc(), typeOf(op), IntegerAttr());
    SmemZeroOp::create(b, op->getLoc(), buffer);
    BarrierOp::create(b, op->getLoc());
    return buffer;
  }

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
        ->walk([](Operation* inner) {
          return writesGlobal(inner) ? WalkResult::interrupt() : WalkResult::advance();
        })
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
  int defaultStages_;
  std::vector<Ring> rings_;
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
    Stager(func, target_(), options_().defaultStages).run();
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
