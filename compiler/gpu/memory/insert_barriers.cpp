// insert_barriers.cpp - a forward walk that remembers every access since the last barrier. An access that conflicts
// with one of another thread (write after read, read after write, write after write) gets a barrier in front. Loops are
// walked again until what the end of an iteration hands to the next one adds nothing.
//
// Shared memory is tracked by bytes, global memory by kernel argument: different arguments do not overlap. Two accesses
// to one argument need no barrier
//   - if one tile is read and written in place under one layout: every thread has its own elements;
//   - if two boxes of a view agree in those dims along which threads lie, whatever the other dims are;
//   - if they are boxes whose indices, but for constants, are the same, and the constants lie a box apart;
//   - from one iteration to the next, if the loop's counter moves the box on by at least its extent; the same with
//     pointers. Where it is known only at run time how far they move, the barrier is put under a condition
//     (places_apart.h);
//   - if they are different fields of records (fields.h), or different arrays of fields (planes.h), which may take a
//     condition, too;
//   - in one iteration, if every element writes into a run of places of its own (runs.h).
//
// Asynchronous copies and the readers of their buffers have the waits and barriers of their protocol from the stage
// pass; only other users of the same bytes matter here. In kernels with roles only the consumers are walked: the
// producer is one thread, rings keep producer and consumers apart, and staging buffers of bulk stores are ordered by
// the stores.
#include <functional>
#include <map>

#include "compiler/gpu/access/access_conflicts.h"
#include "compiler/gpu/access/places_apart.h"
#include "compiler/gpu/access/planes.h"
#include "compiler/gpu/forms/async_products.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/forms/votes.h"
#include "compiler/gpu/gpu_passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// What an op does to memory, in order: accesses, then possibly a barrier of its own, then accesses.
struct Effects {
  SmallVector<MemoryAccess> before, after;
  bool startsWithBarrier = false, hasBarrier = false;
};

class BarrierInserter {
 public:
  explicit BarrierInserter(func::FuncOp func) : func_(func) {
    // Buffers that asynchronous copies fill are ordered by the protocol of the stage pass.
    func.walk([&](Operation* op) {
      Value target;
      if (auto copy = dyn_cast<AsyncCopyOp>(op)) target = copy.getTarget();
      if (auto gather = dyn_cast<AsyncGatherOp>(op)) target = gather.getTarget();
      if (auto bulk = dyn_cast<TmaLoadOp>(op)) target = bulk.getTarget();
      if (auto turn = dyn_cast<SmemTurnOp>(op)) target = turn.getTarget();
      if (target)
        if (auto alloc = allocationOf(target)) staged_.insert(alloc);
    });
  }

  /// False: barriers are needed inside loops that warps leave one by one (part_ways.cpp); nothing was inserted, these
  /// loops are left together again, and the analysis has to be repeated.
  bool run() {
    State state;
    walk(func_.getBody().front(), state);
    llvm::SmallPtrSet<Operation*, 4> meeting;
    auto meetAround = [&](Operation* op) {
      for (op = op->getParentOp(); op != func_; op = op->getParentOp())
        if (op->hasAttr(kPartsAttr)) meeting.insert(op);
    };
    for (Operation* op : barriers_) meetAround(op);
    for (auto [op, meet] : conditions_)
      if (needsCondition_.contains(op)) meetAround(op);
    for (const auto& [op, numbers] : apartUnlessZero_) meetAround(op);
    for (Operation* op : meeting) meetAgain(op);
    if (!meeting.empty()) return false;
    for (Operation* op : barriers_) {
      OpBuilder builder(op);
      BarrierOp::create(builder, op->getLoc());
    }
    llvm::MapVector<Operation*, SmallVector<Meeting>> loops;
    for (auto [op, meet] : conditions_)
      if (!barriers_.contains(op) && needsCondition_.contains(op) && !matchPattern(meet, m_Zero()))
        loops[op->getParentOfType<LoopLikeOpInterface>()].push_back({op, meet});
    for (auto& [loop, meetings] : loops) orderIfMet(cast<scf::ForOp>(loop), meetings);
    for (const auto& [op, numbers] : apartUnlessZero_)
      if (!barriers_.contains(op)) orderIfZero(op, numbers.getArrayRef());
    return true;
  }

 private:
  using State = SmallVector<MemoryAccess>;

  static bool join(State& into, const State& from) {
    bool grew = false;
    for (const MemoryAccess& access : from) {
      if (llvm::is_contained(into, access)) continue;
      into.push_back(access);
      grew = true;
    }
    return grew;
  }
  /// The state at the end of an iteration of `loop`, as the next iteration sees it. (What was accessed in front of the
  /// loop is no matter of iterations: they begin with that as it is.)
  static State carried(State state, Operation* loop) {
    using Turn = MemoryAccess::Turn;
    State next;
    for (MemoryAccess& access : state) {
      if (!access.isShared && access.op && !loop->isAncestor(access.op)) continue;
      access.carried = true;
      if (!access.isShared && (!access.loop || loop->isAncestor(access.loop))) access.loop = loop;
      if (access.turns == loop && access.turn != Turn::unknown)
        access.turn = access.turn == Turn::same ? Turn::other : Turn::same;
      join(next, {access});
    }
    return next;
  }
  /// The same as what follows `loop` sees it.
  static State behind(State state, Operation* loop) {
    State next;
    for (MemoryAccess& access : state) {
      if (access.turns == loop) access.turn = MemoryAccess::Turn::unknown;
      join(next, {access});
    }
    return next;
  }

  /// Behind a barrier only reads of asynchronous products are remembered.
  static void pass(State& state) {
    llvm::erase_if(state, [](const MemoryAccess& access) { return !access.isRunning; });
  }
  /// All asynchronous products but the last `wait.getPending()` have ended, and with them their reads.
  static void finish(State& state, MmaWaitOp wait) {
    llvm::SmallPtrSet<Operation*, 4> running;
    int64_t left = wait.getPending();
    for (Operation* op = wait->getPrevNode(); op && left > 0; op = op->getPrevNode()) {
      if (asyncProduct(op))
        running.insert(op), --left;
      else if (hasAsyncProduct(op))
        break;
    }
    State ended;
    for (MemoryAccess& access : state) {
      const bool isOlder = access.carried || !access.op || access.op->getBlock() != wait->getBlock();
      // If fewer products stand in this block than may be running, older ones may be running, too.
      access.isRunning = access.isRunning && (isOlder ? left > 0 : running.contains(access.op));
      join(ended, {access});
    }
    state = std::move(ended);
  }

  void walk(Block& block, State& state) {
    for (Operation& op : block) visit(&op, state);
  }

  /// How deep loops are nested: 1 for a loop without others.
  static int depthOf(Operation* loop) {
    int depth = 0;
    loop->walk([&](LoopLikeOpInterface inner) {
      int own = 1;
      for (Operation* op = inner; op != loop; op = op->getParentOp())
        own += isa<LoopLikeOpInterface>(op->getParentOp());
      depth = std::max(depth, own);
    });
    return depth;
  }

  /// All accesses in front of a loop and in its body, as the next iteration sees them: an upper bound.
  State anyIteration(Operation* loop, State all) {
    loop->walk([&](Operation* op) {
      if (isa<LoopLikeOpInterface, scf::IfOp>(op)) return;
      const Effects effects = effectsOf(op);
      join(all, effects.before);
      join(all, effects.after);
    });
    return carried(std::move(all), loop);
  }

  /// Walks iterations until the end of one adds nothing to what the next one begins with. `iteration` walks one from
  /// what it begins with, which becomes what its end hands on, and returns what the loop may end with.
  void iterate(Operation* loop, State& state, llvm::function_ref<State(State&)> iteration) {
    // Each level of nesting doubles the number of walks over the innermost body. Deep nests begin with the upper bound
    // instead, which may cost a barrier. (The loop over programs does not: it would carry what only programs of their
    // own access.)
    constexpr int kDeep = 4;
    State entry = state;
    if (isa<LoopLikeOpInterface>(loop) && depthOf(loop) > kDeep) join(entry, anyIteration(loop, state));
    while (true) {
      State round = entry;
      state = iteration(round);
      if (join(entry, carried(std::move(round), loop))) continue;
      state = behind(std::move(state), loop);
      return;
    }
  }
  void iterate(scf::ForOp loop, State& state) {
    iterate(loop, state, [&](State& round) {
      State end = round;  // as no iteration leaves it
      walk(*loop.getBody(), round);
      join(end, round);
      return end;
    });
  }

  /// Whether a barrier in front of the loop saves barriers inside it: what was written to global memory before the loop
  /// may be read in every iteration, each of which would need one.
  bool savesBarriersInside(scf::ForOp loop, const State& state) {
    if (isTrial_ || llvm::none_of(state, [](const MemoryAccess& a) { return !a.isShared && a.isWrite; })) return false;
    auto barriersFrom = [&](State entry) {
      llvm::SetVector<Operation*> known = barriers_;
      isTrial_ = true;
      iterate(loop, entry);
      isTrial_ = false;
      std::swap(known, barriers_);
      return known.size();
    };
    State passed = state;
    pass(passed);
    return barriersFrom(passed) < barriersFrom(state);
  }

  void visit(Operation* op, State& state) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (barriers_.contains(op) || meetsTurns(loop, state) || savesBarriersInside(loop, state)) {
        barriers_.insert(op);
        pass(state);
      }
      return iterate(loop, state);
    }
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      State otherwise = state;
      walk(*branch.thenBlock(), state);
      if (branch.elseBlock()) walk(*branch.elseBlock(), otherwise);
      join(state, otherwise);
      return;
    }
    if (auto loop = dyn_cast<scf::WhileOp>(op))
      return iterate(loop, state, [&](State& round) {
        walk(*loop.getBeforeBody(), round);
        State end = round;
        walk(*loop.getAfterBody(), round);
        return end;
      });
    if (auto roles = dyn_cast<SpecializeOp>(op)) {  // begins with a barrier of all threads
      state.clear();
      return walk(roles.getConsumer().front(), state);
    }
    if (auto loop = dyn_cast<WorkLoopOp>(op))
      return iterate(loop, state, [&](State& round) {
        State end = round;
        walk(loop.getBody().front(), round);
        join(end, round);
        // Each iteration is another program of the grid: only shared memory is carried from one to the next.
        llvm::erase_if(round, [](const MemoryAccess& access) { return !access.isShared; });
        return end;
      });
    if (auto wait = dyn_cast<MmaWaitOp>(op)) finish(state, wait);
    Effects effects = effectsOf(op);
    if (effects.startsWithBarrier || barriers_.contains(op)) pass(state);
    for (const MemoryAccess& now : effects.before) {
      if (llvm::none_of(state, [&](const MemoryAccess& before) {
            return needsBarrier(before, now, factsOf()) && !mayBeApart(before, now) && !areApartUnlessZero(before, now);
          }))
        continue;
      barriers_.insert(op);
      pass(state);
      break;
    }
    join(state, effects.before);
    if (effects.hasBarrier) pass(state);
    join(state, effects.after);
  }

  /// Whether it can be computed in front of the loop if `now` and the same access of an earlier iteration, through a
  /// pointer that the loop moves on, overlap. The condition is kept for the access.
  bool mayBeApart(const MemoryAccess& earlier, const MemoryAccess& now) {
    const auto before = movingPlace(earlier.op), place = movingPlace(now.op);
    auto loop = dyn_cast_if_present<scf::ForOp>(earlier.loop);
    if (!loop || now.carried || !before || !place || *before != *place) return false;
    if (now.op->getParentOfType<LoopLikeOpInterface>() != loop ||
        earlier.op->getParentOfType<LoopLikeOpInterface>() != loop)
      return false;
    auto [found, isNew] = conditions_.try_emplace(now.op);
    if (isNew) found->second = placesMeet((*place)[0], (*place)[1], (*place)[2], loop);
    if (found->second) needsCondition_.insert(now.op);
    return found->second != nullptr;
  }
  /// Whether two stores of one iteration meet only if one of some numbers is zero, which a program finds out. The
  /// numbers are kept for the access.
  bool areApartUnlessZero(const MemoryAccess& earlier, const MemoryAccess& now) {
    if (earlier.carried || now.carried || !earlier.op || !now.op || earlier.op->getBlock() != now.op->getBlock())
      return false;
    const SmallVector<Value> numbers = otherPlanesUnlessZero(earlier.op, now.op, factsOf()());
    if (numbers.empty()) return false;
    apartUnlessZero_[now.op].insert(numbers.begin(), numbers.end());
    return true;
  }
  static void orderIfZero(Operation* access, ArrayRef<Value> numbers) {
    const Location loc = access->getLoc();
    OpBuilder b(access);
    Value any;
    for (Value number : numbers) {
      Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(number.getType(), 0));
      Value isZero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, zero);
      any = any ? arith::OrIOp::create(b, loc, any, isZero).getResult() : isZero;
    }
    b.setInsertionPointToStart(scf::IfOp::create(b, loc, any).thenBlock());
    BarrierOp::create(b, loc);
  }

  /// Pointer, offsets and mask of an access through pointers.
  static std::optional<std::array<Value, 3>> movingPlace(Operation* op) {
    if (auto gather = dyn_cast_if_present<GatherOp>(op))
      return std::array<Value, 3>{gather.getPtr(), gather.getOffsets(), gather.getMask()};
    if (auto scatter = dyn_cast_if_present<ScatterOp>(op))
      return std::array<Value, 3>{scatter.getPtr(), scatter.getOffsets(), scatter.getMask()};
    return std::nullopt;
  }

  /// Whether the loop writes to stages that alternate between its iterations, and that may still be in use from before
  /// it: then one barrier in front serves all iterations.
  bool meetsTurns(scf::ForOp loop, const State& state) {
    bool meets = false;
    for (auto store : loop.getBody()->getOps<SmemStoreOp>()) {
      MemoryAccess now = shared(store.getTarget(), true);
      meets |= now.turns == loop &&
               llvm::any_of(state, [&](const MemoryAccess& before) { return needsBarrier(before, now, factsOf()); });
    }
    return meets;
  }

  MemoryAccess shared(Value smem, bool isWrite) {
    MemoryAccess access;
    access.isShared = true;
    access.isWrite = isWrite;
    if (auto alloc = allocationOf(smem)) {
      access.begin = alloc.getOffset().value_or(0);
      access.end = access.begin + alloc.getResult().getType().bytes();
      access.buffer = alloc;
      access.isStaged = staged_.contains(alloc);
      if (Operation* slot = smem.getDefiningOp(); alloc->hasAttr(kAlternatesAttr)) {
        while (isa<SmemTransOp>(slot)) slot = slot->getOperand(0).getDefiningOp();
        access.turn = MemoryAccess::Turn::same;
        access.turns = slot->getParentOp();
      }
    } else {
      access.end = int64_t{1} << 40;  // not known: everything
    }
    return access;
  }

  static MemoryAccess global(Operation* op, Value ptr, bool isWrite, bool isAtomic = false) {
    MemoryAccess access;
    access.isWrite = isWrite;
    access.root = rootOf(ptr);
    access.op = op;
    access.isAtomic = isAtomic;
    return access;
  }

  /// A read of the op's scratch.
  MemoryAccess scratchAccess(Operation* op) {
    const Scratch scratch = *scratchOf(op);
    MemoryAccess access;
    access.isShared = true;
    access.begin = op->getAttrOfType<IntegerAttr>(kScratchAttr).getInt();
    access.end = access.begin + scratch.bytes;
    access.buffer = op;
    access.isStaged = scratch.warpLocal();
    if (scratch.piece) access.buffer = pieces_.try_emplace({access.begin, scratch.piece}, op).first->second;
    return access;
  }
  static MemoryAccess written(MemoryAccess access) {
    access.isWrite = true;
    return access;
  }

  Effects effectsOf(Operation* op) {
    Effects effects;
    llvm::TypeSwitch<Operation*>(op)
        .Case<BarrierOp>([&](auto) { effects.startsWithBarrier = true; })
        .Case<LoadOp>([&](LoadOp o) { effects.before.push_back(global(op, o.getView(), false)); })
        .Case<StoreOp>([&](StoreOp o) { effects.before.push_back(global(op, o.getView(), true)); })
        .Case<GatherOp>([&](GatherOp o) { effects.before.push_back(global(op, o.getPtr(), false)); })
        .Case<ScatterOp>([&](ScatterOp o) { effects.before.push_back(global(op, o.getPtr(), true)); })
        .Case<AccumulateOp>([&](AccumulateOp o) { effects.before.push_back(global(op, o.getView(), true, true)); })
        .Case<TmaStoreOp>([&](TmaStoreOp o) { effects.before.push_back(global(op, o.getView(), true, o.getAdd())); })
        .Case<AtomicRmwOp, AtomicCasOp>([&](auto o) {
          effects.startsWithBarrier = o.getOrder() == MemOrder::release || o.getOrder() == MemOrder::acq_rel;
          effects.before.push_back(global(op, o.getPtr(), true, true));
          effects.hasBarrier = o.getOrder() == MemOrder::acquire || o.getOrder() == MemOrder::acq_rel;
        })
        .Case<SmemStoreOp>([&](SmemStoreOp o) { effects.before.push_back(shared(o.getTarget(), true)); })
        .Case<SmemCountOp>([&](SmemCountOp o) {
          effects.before.push_back(shared(o.getTarget(), true));
          effects.before.back().isAtomic = true;
        })
        .Case<SmemZeroOp>([&](SmemZeroOp o) {
          effects.before.push_back(shared(o.getTarget(), true));
          effects.before.back().isPadding = o.getBox().has_value();
        })
        .Case<SmemLoadOp>([&](SmemLoadOp o) { effects.before.push_back(shared(o.getSource(), false)); })
        .Case<MmaOp>([&](MmaOp o) {
          if (isa<SmemType>(o.getA().getType())) effects.before.push_back(shared(o.getA(), false));
          effects.before.push_back(shared(o.getB(), false));
          for (MemoryAccess& access : effects.before) {
            access.isRunning = isWgmma(o.getEngine());
            access.op = op;
          }
        })
        .Case<AsyncCopyOp>([&](AsyncCopyOp o) {
          effects.before.push_back(global(op, o.getView(), false));
          effects.before.push_back(shared(o.getTarget(), true));
        })
        .Case<AsyncGatherOp>([&](AsyncGatherOp o) {
          effects.before.push_back(global(op, o.getPtr(), false));
          effects.before.push_back(shared(o.getTarget(), true));
        });
    if (op->hasAttr(kScratchAttr)) {
      const MemoryAccess access = scratchAccess(op);
      const bool onlyGets = op->hasAttr(kScratchFilledAttr) || op->hasAttr(kMetAttr);
      if (!onlyGets) {
        effects.before.push_back(written(access));
        for (Operation* other : metWith(op))
          if (!other->hasAttr(kScratchFilledAttr)) effects.before.push_back(written(scratchAccess(other)));
      }
      effects.after.push_back(access);
      if (!access.isStaged && !onlyGets) effects.hasBarrier = true;
    }
    return effects;
  }

  func::FuncOp func_;
  /// Computed when first asked for.
  std::function<const Facts&()> factsOf() {
    return [this]() -> const Facts& {
      if (!facts_) facts_.emplace(func_.getOperation());
      return *facts_;
    };
  }

  std::optional<Facts> facts_;
  bool isTrial_ = false;
  llvm::DenseSet<Operation*> staged_;
  llvm::SetVector<Operation*> barriers_;
  /// Scratch of which every warp has a piece, by its first byte and the size of a piece: one of the ops that use it.
  std::map<std::pair<int64_t, int64_t>, Operation*> pieces_;
  /// For an access in a loop, an i1 computed in front of the loop: whether it may overlap what another iteration
  /// accessed. Null: that cannot be computed.
  llvm::MapVector<Operation*, Value> conditions_;
  llvm::DenseSet<Operation*> needsCondition_;
  llvm::MapVector<Operation*, llvm::SetVector<Value>> apartUnlessZero_;
};

class InsertBarriersPass : public PassWrapper<InsertBarriersPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InsertBarriersPass)
  StringRef getArgument() const override { return "tile-insert-barriers"; }
  StringRef getDescription() const override { return "insert barriers between conflicting accesses of threads"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    while (!BarrierInserter(getOperation()).run()) {
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createInsertBarriersPass() { return std::make_unique<InsertBarriersPass>(); }

}  // namespace tile::ir
