// specialize_rewrite.cpp - rewrites a kernel to tile.specialize as decided: first buffers and barriers; then the
// producer, a slice of the kernel; the turner, if tiles are transposed, a smaller slice; and the consumers, which are
// the kernel itself with its loads taken from rings.
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/rings/copy_slice.h"
#include "compiler/gpu/roles/specialize.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int kQueueStages = 2, kQueuePayload = 8;

/// Whether only tf32 products read the copied tile, so that the copy may round it.
bool feedsTf32Only(LoadSharedOp load) {
  return llvm::all_of(readersOf(load.getResult()), [](Operation* reader) {
    auto product = dyn_cast<MmaOp>(reader);
    return product && (product.getEngine() == Engine::wgmma_tf32 || product.getEngine() == Engine::m16n8k8_tf32);
  });
}

class Rewriter {
 public:
  Rewriter(func::FuncOp func, RoleDecisions& plan)
      : func_(func),
        plan_(plan),
        loc_(func.getLoc()),
        entry_(func.getBody().front()),
        outside_(&entry_, entry_.begin()) {}

  void run() {
    SmallVector<Operation*> program;
    for (Operation& op : entry_.without_terminator()) program.push_back(&op);
    OpBuilder end(entry_.getTerminator());
    outside_ = end;
    allocate();
    auto roles =
        SpecializeOp::create(end, loc_, plan_.roles.producerRegs, plan_.roles.consumerRegs, plan_.roles.programs);
    outside_.setInsertionPoint(roles);
    produce(roles.getProducer().emplaceBlock());
    if (plan_.turner) turn(roles.getTurner().emplaceBlock());
    consume(roles.getConsumer().emplaceBlock(), program);
  }

 private:
  // ---- outside the roles

  void allocate() {
    const auto& groups = plan_.groups.groups();
    rings_.resize(static_cast<size_t>(plan_.groups.numRings()));
    for (size_t i = 0; i < rings_.size(); ++i) {
      const RingPlan& ring = plan_.memory.rings[i];
      bool onlyProducts = true;
      const LoadGroup* any = nullptr;
      for (const LoadGroup& group : groups) {
        if (group.ring != static_cast<int>(i)) continue;
        onlyProducts &= group.onlyProducts;
        if (!any) any = &group;
      }
      for (Operation* load : plan_.groups.buffersOf(static_cast<int>(i)))
        rings_[i].buffers.push_back(
            SmemAllocOp::create(outside_, load->getLoc(), copiedType(load).withStages(ring.stages), IntegerAttr()));
      int arrivals = onlyProducts ? plan_.roles.warpgroups : plan_.roles.warpgroups * 4;
      const bool turned = !any->turned.empty();
      uint32_t fills = (any->inBulk ? RingAllocOp::kBulkFill : 0) + (any->byThreads ? RingAllocOp::kThreadFills : 0) +
                       (turned ? RingAllocOp::kTurnFills : 0);
      rings_[i].barriers = RingAllocOp::create(outside_, ring.loc, RingType::get(func_.getContext(), ring.stages),
                                               arrivals, !onlyProducts, 0, fills, turned, IntegerAttr());
    }
    for (size_t i = 0; i < rings_.size(); ++i)
      if (plan_.rawRings[i] >= 0) allocateRaw(i);
    for (const BulkStore& store : plan_.stores) {
      auto tile = cast<RankedTensorType>(store.tile.getType());
      auto index = static_cast<size_t>(store.staging);
      if (stagings_.size() <= index) stagings_.resize(index + 1);
      if (stagings_[index] || plan_.memory.stagings[index].isHosted) continue;
      auto type = SmemType::get(func_.getContext(), {tile.getDimSize(0), plan_.memory.stagings[index].chosen},
                                tile.getElementType(), 1, 1);
      stagings_[index] = SmemAllocOp::create(outside_, store.op->getLoc(), type, IntegerAttr());
    }
    // Readers of a position in the grid: warps of consumers and turner, and of a producer that is more than one thread.
    const int ownWarps = !plan_.byThreads.empty() ? 4 : plan_.slice.asksLanes() ? 1 : 0;
    if (plan_.slice.isUneven())
      queue_ = RingAllocOp::create(outside_, loc_, RingType::get(func_.getContext(), kQueueStages),
                                   plan_.roles.warpgroups * 4 + ownWarps +
                                       (plan_.turner ? SpecializeOp::kTurnerWarps : 0),
                                   true, kQueuePayload, RingAllocOp::kBulkFill, /*turned=*/false, IntegerAttr());
    band_ = widthOfLaunch(outside_, loc_, plan_.bands);
  }

  /// The ring that holds the tiles of another ring before they are transposed.
  void allocateRaw(size_t ring) {
    const RingPlan& plan = plan_.memory.rings[static_cast<size_t>(plan_.rawRings[ring])];
    rawRings_.resize(rings_.size());
    const LoadGroup& group =
        *llvm::find_if(plan_.turnedGroups, [&](const LoadGroup& g) { return g.ring == static_cast<int>(ring); });
    for (Operation* load : group.turned)
      rawRings_[ring].buffers.push_back(SmemAllocOp::create(
          outside_, load->getLoc(), rawType(copiedType(load)).withStages(plan.stages), IntegerAttr()));
    rawRings_[ring].barriers = RingAllocOp::create(
        outside_, plan.loc, RingType::get(func_.getContext(), plan.stages), SpecializeOp::kTurnerWarps,
        /*perWarp=*/true, 0, RingAllocOp::kBulkFill, /*turned=*/false, IntegerAttr());
  }

  Block* workLoop(Block& role) {
    OpBuilder builder = OpBuilder::atBlockEnd(&role);
    auto loop = WorkLoopOp::create(builder, loc_, queue_, band_);
    Block& body = loop.getBody().emplaceBlock();
    for (int axis = 0; axis < 3; ++axis) body.addArgument(builder.getI32Type(), loc_);
    return &body;
  }

  /// One stage of each of a ring's buffers.
  SmallVector<Value> slotsOf(OpBuilder& builder, const LoadGroup& group, Value index) {
    SmallVector<Value> slots;
    for (auto [load, buffer] : llvm::zip(group.loads, rings_[static_cast<size_t>(group.ring)].buffers))
      slots.push_back(slotOf(builder, load->getLoc(), copiedType(load), buffer, index));
    return slots;
  }
  // Also of a buffer with one stage: later passes see by the index which stage a product reads.
  static Value slotOf(OpBuilder& builder, Location loc, SmemType type, Value buffer, Value index) {
    return SmemSlotOp::create(builder, loc, type, buffer, index);
  }
  Value barriersOf(const LoadGroup& group) const { return rings_[static_cast<size_t>(group.ring)].barriers; }
  SmallVector<Value> rawSlotsOf(OpBuilder& builder, const LoadGroup& group, Value index) {
    SmallVector<Value> slots;
    for (auto [load, buffer] : llvm::zip(group.turned, rawRings_[static_cast<size_t>(group.ring)].buffers))
      slots.push_back(slotOf(builder, load->getLoc(), rawType(copiedType(load)), buffer, index));
    return slots;
  }
  IRMapping idsOf(Block* workLoopBody) {
    IRMapping map;
    func_.walk([&](ProgramIdOp op) { map.map(op.getResult(), workLoopBody->getArgument(op.getAxis())); });
    return map;
  }

  // ---- producer

  void produce(Block& role) {
    Block* body = workLoop(role);
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    IRMapping map = idsOf(body);
    plan_.slice.emit(builder, map, [&](OpBuilder& b, const LoadGroup& group, const IRMapping& at) {
      Location loc = group.loads.front()->getLoc();
      auto copyInBulk = [&](Operation* loaded, Value slot, Value ring, Value index) {
        auto load = cast<LoadSharedOp>(loaded);
        SmallVector<Value> indices;
        for (Value v : load.getIndices()) indices.push_back(at.lookupOrDefault(v));
        auto copy = TmaLoadOp::create(b, load.getLoc(), at.lookupOrDefault(load.getView()), indices, slot, ring, index,
                                      load.getCache());
        if (load.getBox().size() > 2) copy->setAttr(kBoxAttr, load.getBoxAttr());
        if (load->hasAttr(kMulticastAttr)) copy->setAttr(kMulticastAttr, b.getUnitAttr());
        if (feedsTf32Only(load)) copy->setAttr(kTf32Attr, b.getUnitAttr());
      };
      // Tiles to be transposed first: they take longer to arrive.
      if (!group.turned.empty()) {
        Value raw = rawRings_[static_cast<size_t>(group.ring)].barriers;
        Value index = RingReserveOp::create(b, loc, raw, static_cast<uint32_t>(bytesOf(group.turned)));
        for (auto [load, slot] : llvm::zip(group.turned, rawSlotsOf(b, group, index)))
          copyInBulk(load, slot, raw, index);
      }
      if (!group.inBulk && !group.byThreads) return;
      Value ring = barriersOf(group);
      SmallVector<Operation*> inBulk;
      for (Operation* load : group.loads)
        if (!plan_.byThreads.contains(load) && !llvm::is_contained(group.turned, load)) inBulk.push_back(load);
      Value index = RingReserveOp::create(b, loc, ring, static_cast<uint32_t>(bytesOf(inBulk)));
      SmallVector<Value> slots = slotsOf(b, group, index);
      for (auto [load, slot] : llvm::zip(group.loads, slots))
        if (llvm::is_contained(inBulk, load)) copyInBulk(load, slot, ring, index);
      if (!group.byThreads) return;
      for (auto [load, slot] : llvm::zip(group.loads, slots))
        if (plan_.byThreads.contains(load)) emitThreadCopy(b, load, at, slot, Value());
      RingCommitOp::create(b, loc, ring, index);
    });
    describe(*body);
  }

  /// Writes tensor maps of views that the kernel makes.
  void describe(Block& producer) {
    llvm::SmallSetVector<MakeViewOp, 4> made;
    producer.walk([&](TmaLoadOp copy) {
      if (isMadeInKernel(copy.getView())) made.insert(copy.getView().getDefiningOp<MakeViewOp>());
    });
    if (made.empty()) return;
    auto type = SmemType::get(func_.getContext(), {1, kTensorMapBytes}, outside_.getI8Type(), 1, 1);
    Value memory = SmemAllocOp::create(outside_, loc_, type, IntegerAttr());
    for (MakeViewOp view : made) {
      OpBuilder builder(view.getContext());
      builder.setInsertionPointAfter(view);
      TmaDescribeOp::create(builder, view.getLoc(), view, memory);
    }
  }

  static int64_t bytesOf(ArrayRef<Operation*> loads) {
    int64_t bytes = 0;
    for (Operation* load : loads) {
      SmemType type = copiedType(load);
      bytes += type.getShape()[0] * type.getShape()[1] * type.elementBytes();
    }
    return bytes;
  }

  // ---- turner

  void turn(Block& role) {
    Block* body = workLoop(role);
    OpBuilder builder = OpBuilder::atBlockEnd(body);
    IRMapping map = idsOf(body);
    plan_.turner->emit(builder, map, [&](OpBuilder& b, const LoadGroup& group, const IRMapping&) {
      Location loc = group.turned.front()->getLoc();
      Value raw = rawRings_[static_cast<size_t>(group.ring)].barriers, ring = barriersOf(group);
      Value from = RingAcquireOp::create(b, loc, b.getI32Type(), raw);
      Value to = RingReserveOp::create(b, loc, ring, 0);
      SmallVector<Value> sources = rawSlotsOf(b, group, from);
      for (auto [load, target] : llvm::zip(group.loads, slotsOf(b, group, to)))
        if (auto it = llvm::find(group.turned, load); it != group.turned.end())
          SmemTurnOp::create(b, load->getLoc(), sources[static_cast<size_t>(it - group.turned.begin())], target);
      RingCommitOp::create(b, loc, ring, to);
      RingReleaseOp::create(b, loc, raw, Value());
    });
  }

  // ---- consumers

  void consume(Block& role, ArrayRef<Operation*> program) {
    Block* body = workLoop(role);
    for (Operation* op : program) op->moveBefore(body, body->end());
    SmallVector<ProgramIdOp> ids;
    body->walk([&](ProgramIdOp op) { ids.push_back(op); });
    for (ProgramIdOp op : ids) {
      op.getResult().replaceAllUsesWith(body->getArgument(op.getAxis()));
      op.erase();
    }
    for (const LoadGroup& group : plan_.groups.groups()) consumeGroup(group);
    SmallVector<Operation*> unread;
    SmallVector<ShareOp> shares;
    body->walk([&](Operation* op) {
      if (isSharedCopy(op)) unread.push_back(op);
    });
    body->walk([&](ShareOp op) { shares.push_back(op); });
    for (Operation* op : unread) eraseWithTransposes(op);
    for (ShareOp op : shares) storeShare(op);
    for (const BulkStore& store : plan_.stores) storeInBulk(store);
  }

  void consumeGroup(const LoadGroup& group) {
    OpBuilder builder(group.first);
    Location loc = group.loads.front()->getLoc();
    Value ring = barriersOf(group);
    Value index = RingAcquireOp::create(builder, loc, builder.getI32Type(), ring);
    const BulkStore* guest = guestOf(group);
    for (auto [loaded, slot] : llvm::zip(group.loads, slotsOf(builder, group, index))) {
      replace(loaded->getResult(0), slot);
      eraseWithTransposes(loaded);
      if (guest) stagings_[static_cast<size_t>(guest->staging)] = slot;
    }
    builder.setInsertionPointAfter(guest ? guest->op : group.last);
    RingReleaseOp::create(builder, loc, ring, Value());
  }

  /// The store whose tile leaves through the group's stage, or null.
  const BulkStore* guestOf(const LoadGroup& group) const {
    for (const BulkStore& store : plan_.stores) {
      const StagingPlan& staging = plan_.memory.stagings[static_cast<size_t>(store.staging)];
      if (staging.isHosted && staging.host == group.ring) return &store;
    }
    return nullptr;
  }

  // Readers get new transposes: those of the kernel may stand in front of the acquire of the stage.
  void replace(Value tile, Value slot) {
    for (OpOperand& use : llvm::make_early_inc_range(tile.getUses())) {
      auto trans = dyn_cast<SmemTransOp>(use.getOwner());
      if (!trans) {
        use.set(slot);
        continue;
      }
      for (OpOperand& inner : llvm::make_early_inc_range(trans.getResult().getUses())) {
        if (isa<SmemTransOp>(inner.getOwner())) {
          OpBuilder builder(slot.getContext());
          builder.setInsertionPointAfterValue(slot);
          replace(trans.getResult(), SmemTransOp::create(builder, trans.getLoc(), trans.getType(), slot));
          break;
        }
        OpBuilder builder(inner.getOwner());
        inner.set(SmemTransOp::create(builder, trans.getLoc(), trans.getType(), slot));
      }
    }
  }

  static void eraseWithTransposes(Operation* op) {
    for (Operation* user : llvm::make_early_inc_range(op->getUsers())) eraseWithTransposes(user);
    op->erase();
  }

  void storeShare(ShareOp share) {
    SmemType type = share.getResult().getType();
    auto tile = cast<RankedTensorType>(share.getSource().getType());
    OpBuilder builder(share);
    Value buffer;
    if (plan_.alternating.contains(share)) {
      auto loop = cast<scf::ForOp>(share->getParentOp());
      buffer = slotOf(builder, share.getLoc(), type, alternatingBuffers(share, loop), parityOf(builder, loop));
    } else if (tile.getShape() == type.getShape()) {
      buffer = SmemAllocOp::create(builder, share.getLoc(), type, IntegerAttr());
    } else {  // padding is zeroed once, by the consumers
      OpBuilder outside(share->getParentOfType<SpecializeOp>());
      buffer = SmemAllocOp::create(outside, share.getLoc(), type, IntegerAttr());
      Operation* loop = share->getParentOfType<WorkLoopOp>();
      OpBuilder before(loop);
      SmemZeroOp::create(before, share.getLoc(), buffer, DenseI64ArrayAttr());
      BarrierOp::create(before, share.getLoc());
    }
    SmemStoreOp::create(builder, share.getLoc(), share.getSource(), buffer);
    share.getResult().replaceAllUsesWith(buffer);
    share.erase();
  }

  /// Loops that are not nested share them.
  Value alternatingBuffers(ShareOp share, scf::ForOp loop) {
    SmemType type = share.getResult().getType();
    auto serves = [&](AlternatingBuffers& buffers) {
      return buffers.type == type && llvm::none_of(buffers.loops, [&](scf::ForOp other) {
               return loop->isAncestor(other) || other->isAncestor(loop);
             });
    };
    auto it = llvm::find_if(alternating_, serves);
    if (it == alternating_.end()) {
      auto alloc = SmemAllocOp::create(outside_, share.getLoc(), type.withStages(2), IntegerAttr());
      alloc->setAttr(kAlternatesAttr, outside_.getUnitAttr());
      alternating_.push_back({type, alloc, {}});
      it = std::prev(alternating_.end());
    }
    it->loops.push_back(loop);
    return it->buffers;
  }

  /// Whether the iteration is an odd one: the lowest bit of the counter in units of its step, up to an odd factor.
  /// Dropping the trailing zero bits of the step leaves an odd number, which changes that bit in every iteration.
  static Value parityOf(OpBuilder& builder, scf::ForOp loop) {
    Value count = loop.getInductionVar();
    Location loc = count.getLoc();
    APInt step;
    (void)matchPattern(loop.getStep(), m_ConstantInt(&step));
    if (count.getType().isIndex()) count = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), count);
    if (const unsigned zeros = step.countr_zero()) {
      Value by = arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(count.getType(), zeros));
      count = arith::ShRUIOp::create(builder, loc, count, by);
    }
    if (!count.getType().isInteger(32)) count = arith::TruncIOp::create(builder, loc, builder.getI32Type(), count);
    Value one = arith::ConstantIntOp::create(builder, loc, builder.getI32Type(), 1);
    return arith::AndIOp::create(builder, loc, count, one);
  }

  void storeInBulk(const BulkStore& store) {
    OpBuilder builder(store.op);
    Value staging = stagings_[static_cast<size_t>(store.staging)];
    auto make = [&](auto op, bool add, CacheHint cache) {
      const ArrayRef<int64_t> box = cast<RankedTensorType>(op.getValue().getType()).getShape();
      auto copy = TmaStoreOp::create(builder, op.getLoc(), store.tile, op.getView(), op.getIndices(), staging, add,
                                     cache);
      if (box.size() > 2) copy->setAttr(kBoxAttr, builder.getDenseI64ArrayAttr(box));
    };
    if (auto plain = dyn_cast<StoreOp>(store.op))
      make(plain, false, plain.getCache());
    else
      make(cast<AccumulateOp>(store.op), true, CacheHint::none);
    Operation* reshape = store.op->getOperand(0).getDefiningOp<ReshapeOp>();
    store.op->erase();
    if (reshape && reshape->use_empty()) reshape->erase();
  }

  struct Ring {
    Value barriers;
    SmallVector<Value> buffers;
  };

  func::FuncOp func_;
  RoleDecisions& plan_;
  Location loc_;
  Block& entry_;
  OpBuilder outside_;
  struct AlternatingBuffers {
    SmemType type;
    Value buffers;
    SmallVector<scf::ForOp> loops;
  };

  std::vector<Ring> rings_;
  std::vector<Ring> rawRings_;  ///< by ring; empty where nothing is turned
  std::vector<AlternatingBuffers> alternating_;
  SmallVector<Value> stagings_;
  Value queue_, band_;  // null: none
};

}  // namespace

void rewriteWithRoles(func::FuncOp func, RoleDecisions& plan) { Rewriter(func, plan).run(); }

}  // namespace tile::ir
