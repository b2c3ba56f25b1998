// insert_barriers.cpp - a forward walk that remembers every access since the last barrier. An access that conflicts
// with one of another thread (write after read, read after write, write after write) gets a barrier in front. Loops are
// walked again until what the end of an iteration hands to the next one adds nothing.
//
// Shared memory is tracked by bytes, global memory by kernel argument: different arguments do not overlap. Two accesses
// to one argument need no barrier
//   - if one tile is read and written in place under one layout: every thread has its own elements;
//   - if two boxes of a view agree in those dims along which threads lie, whatever the other dims are;
//   - from one iteration to the next, if the loop's counter moves the box on by at least its extent; the same with
//     pointers. Where it is known only at run time how far they move, the barrier is put under a condition
//     (places_apart.h);
//   - if they are different fields of records (fields.h), or different arrays of fields (planes.h).
//
// Asynchronous copies and the readers of their buffers have the waits and barriers of their protocol from the stage
// pass; only other users of the same bytes matter here. In kernels with roles only the consumers are walked: the
// producer is one thread, rings keep producer and consumers apart, and staging buffers of bulk stores are ordered by
// the stores.
#include <functional>
#include <map>

#include "compiler/analysis/facts.h"
#include "compiler/gpu/async_products.h"
#include "compiler/gpu/fields.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/memory_roots.h"
#include "compiler/gpu/mma_table.h"
#include "compiler/gpu/part_ways.h"
#include "compiler/gpu/places_apart.h"
#include "compiler/gpu/planes.h"
#include "compiler/gpu/scratch.h"
#include "compiler/gpu/shared_memory.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

struct Access {
  bool isShared = false;
  bool isWrite = false;
  int64_t begin = 0, end = 0;   ///< shared: bytes
  Operation* buffer = nullptr;  ///< shared: the allocation, or the op whose scratch it is
  bool isStaged = false;        ///< shared: ordered already against accesses of the same buffer
  MemoryRoot root;              ///< global
  Operation* op = nullptr;      ///< global: for the in-place rule; shared: the product that reads
  bool isAtomic = false;
  bool carried = false;       ///< from an earlier iteration
  Operation* loop = nullptr;  ///< global: the outermost loop of which it was an earlier iteration
  bool isRunning = false;     ///< a read of an asynchronous product: no barrier ends it, only tile.mma_wait
  /// Of a buffer whose two stages take turns in `turns`: the stage of this iteration, the other one, or not known.
  enum class Turn { same, other, unknown } turn = Turn::unknown;
  Operation* turns = nullptr;

  bool operator==(const Access& o) const = default;
};

/// Every thread accesses what it accessed before; where that was in an earlier iteration, too: the place is the loop's.
bool accessesInPlace(const Access& a, const Access& b) {
  if (b.carried || !a.op || !b.op) return false;
  auto place = [](Operation* op) -> std::optional<std::pair<SmallVector<Value>, Type>> {
    if (auto load = dyn_cast<LoadOp>(op)) {
      SmallVector<Value> key{load.getView()};
      llvm::append_range(key, load.getIndices());
      return std::pair(key, Type(load.getType()));
    }
    auto written = [](auto write) {
      SmallVector<Value> key{write.getView()};
      llvm::append_range(key, write.getIndices());
      return std::pair(key, Type(write.getValue().getType()));
    };
    if (auto store = dyn_cast<StoreOp>(op)) return written(store);
    if (auto accumulate = dyn_cast<AccumulateOp>(op)) return written(accumulate);
    if (auto gather = dyn_cast<GatherOp>(op))
      return std::pair(SmallVector<Value>{gather.getPtr(), gather.getOffsets()}, Type(gather.getType()));
    if (auto scatter = dyn_cast<ScatterOp>(op))
      return std::pair(SmallVector<Value>{scatter.getPtr(), scatter.getOffsets()}, Type(scatter.getValue().getType()));
    return std::nullopt;
  };
  auto x = place(a.op), y = place(b.op);
  if (!x || !y || x->first != y->first || x->second != y->second) return false;
  auto loop = dyn_cast_if_present<LoopLikeOpInterface>(a.loop);
  if (a.carried && !(loop && llvm::all_of(x->first, [&](Value v) { return !v || loop.isDefinedOutsideOfLoop(v); })))
    return false;
  auto layout = layoutOf(x->second);
  return layout && layout->laneReplicas() == 1 && layout->warpReplicas() == 1;
}

/// A box of a view that a register tile is read from or written to.
struct Box {
  Value view;
  ValueRange indices;
  RankedTensorType tile;  ///< null: one element
  int64_t size(size_t dim) const {
    const size_t lead = indices.size() - (tile ? static_cast<size_t>(tile.getRank()) : 0);
    return dim < lead ? 1 : tile.getShape()[dim - lead];
  }
};

std::optional<Box> boxOf(Operation* op) {
  auto shaped = [](auto access, Type type) {
    return Box{access.getView(), access.getIndices(), dyn_cast<RankedTensorType>(type)};
  };
  if (auto load = dyn_cast<LoadOp>(op)) return shaped(load, load.getType());
  if (auto store = dyn_cast<StoreOp>(op)) return shaped(store, store.getValue().getType());
  if (auto accumulate = dyn_cast<AccumulateOp>(op)) return shaped(accumulate, accumulate.getValue().getType());
  return std::nullopt;
}

/// Along the dims of the view on which threads lie both boxes begin at one place and give every thread the same
/// coordinates: whatever the others are (a level, a row of a table), it meets nobody but itself.
bool staysWithThreads(const Access& before, const Access& now) {
  if (!before.op || !now.op || now.carried) return false;
  const auto x = boxOf(before.op), y = boxOf(now.op);
  if (!x || !y || x->view != y->view || !x->tile || !y->tile) return false;
  auto isSame = [&](Value value) {
    auto loop = dyn_cast_if_present<LoopLikeOpInterface>(before.loop);
    return !before.carried || (loop && loop.isDefinedOutsideOfLoop(value));
  };
  const auto xs = layoutOf(x->tile), ys = layoutOf(y->tile);
  if (!xs || !ys || !isSame(x->view)) return false;
  using Digits = SmallVector<std::array<int64_t, 3>>;  // dim of the view, count, stride
  auto digitsOf = [](const Box& box, const std::vector<layout::Digit>& list, int64_t only) {
    const int64_t lead = static_cast<int64_t>(box.indices.size()) - box.tile.getRank();
    Digits digits;
    for (const layout::Digit& digit : list)
      if (digit.stride && (only < 0 || digit.dim + lead == only))
        digits.push_back({digit.dim + lead, digit.count, digit.stride});
    return digits;
  };
  for (const auto& layout : {*xs, *ys})
    if (layout.laneReplicas() > 1 || layout.warpReplicas() > 1) return false;
  for (auto threads : {&layout::Layout::lanes, &layout::Layout::warps}) {
    const Digits digits = digitsOf(*x, (*xs.*threads)(), -1);
    if (digits != digitsOf(*y, (*ys.*threads)(), -1)) return false;
    for (auto [dim, count, stride] : digits) {
      const Value index = x->indices[dim];
      if (index != y->indices[dim] || !isSame(index) || x->size(dim) != y->size(dim)) return false;
      if (digitsOf(*x, xs->regs(), dim) != digitsOf(*y, ys->regs(), dim)) return false;
    }
  }
  return true;
}

/// By how much a place moves when the loop's counter moves by one, everything else of it staying as it was. Nullopt:
/// not known. Sums of 32 bits that wrap would be far outside; products must be known not to.
std::optional<int64_t> movedBy(Value place, scf::ForOp loop, llvm::function_ref<const Facts&()> facts) {
  if (place == loop.getInductionVar()) return 1;
  if (loop.isDefinedOutsideOfLoop(place)) return 0;
  Operation* op = place.getDefiningOp();
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return std::nullopt;
  const auto a = movedBy(op->getOperand(0), loop, facts), b = movedBy(op->getOperand(1), loop, facts);
  if (!a || !b) return std::nullopt;
  if (isa<arith::AddIOp>(op)) return *a + *b;
  if (isa<arith::SubIOp>(op)) return *a - *b;
  APInt factor;
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&factor)) || factor.getSignificantBits() > 31) return std::nullopt;
  const Range counted = facts().rangeOf(op->getOperand(0)), all = fullRange(place.getType().getIntOrFloatBitWidth());
  if (counted.min < INT32_MIN || counted.max > INT32_MAX) return std::nullopt;
  const int64_t times = factor.getSExtValue();
  if (!all.contains(counted.min * times) || !all.contains(counted.max * times)) return std::nullopt;
  return *a * times;
}

/// An earlier iteration of a loop met a box of the same view that this one's box does not meet: along some dim the
/// loop's counter goes further in an iteration than the boxes reach, and all else of the place stays as it was.
bool stepsAcross(const Access& earlier, const Access& later, llvm::function_ref<const Facts&()> facts) {
  auto loop = dyn_cast_if_present<scf::ForOp>(earlier.loop);
  if (!loop || !earlier.op || !later.op || later.carried) return false;
  const auto x = boxOf(earlier.op), y = boxOf(later.op);
  if (!x || !y || x->view != y->view || !loop.isDefinedOutsideOfLoop(x->view)) return false;
  const int64_t step = std::clamp<int64_t>(facts().rangeOf(loop.getStep()).min, 0, INT32_MAX);
  for (auto [dim, index] : llvm::enumerate(y->indices)) {
    if (x->indices[dim] != index) continue;
    const auto moved = movedBy(index, loop, facts);
    if (!moved || std::abs(*moved) > INT32_MAX) continue;
    if (step * std::abs(*moved) >= std::max(x->size(dim), y->size(dim))) return true;
  }
  return false;
}

bool conflict(const Access& before, const Access& now, llvm::function_ref<const Facts&()> facts) {
  if (before.isShared != now.isShared || (!before.isWrite && !now.isWrite)) return false;
  if (now.isShared) {
    if (before.end <= now.begin || now.end <= before.begin) return false;
    using Turn = Access::Turn;
    if (before.buffer == now.buffer && before.turns == now.turns && before.turn == Turn::other &&
        now.turn == Turn::same)
      return false;
    return !(before.buffer == now.buffer && before.isStaged && now.isStaged);
  }
  if (before.isAtomic && now.isAtomic) return false;
  if (before.root.isApartFrom(now.root)) return false;
  if (accessesInPlace(before, now) || staysWithThreads(before, now) || stepsAcross(before, now, facts)) return false;
  if (!before.op || !now.op) return true;
  if (areOtherFields(before.op, now.op, before.carried || now.carried, facts())) return false;
  return now.carried || (before.carried && !before.loop) ||
         !areOtherPlanes(before.op, now.op, before.carried ? before.loop : nullptr, facts());
}

/// What an op does, in order: accesses, then maybe a barrier of its own, then accesses.
struct Effects {
  SmallVector<Access> before, after;
  bool startsWithBarrier = false, hasBarrier = false;
};

class BarrierInserter {
 public:
  explicit BarrierInserter(func::FuncOp func) : func_(func) {
    // Buffers that an asynchronous copy fills follow the stage pass's protocol.
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

  /// False: there was nothing to do but let warps meet again that part ways where there are barriers; to be run again.
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
    return true;
  }

 private:
  using State = SmallVector<Access>;

  static bool join(State& into, const State& from) {
    bool grew = false;
    for (const Access& access : from) {
      if (llvm::is_contained(into, access)) continue;
      into.push_back(access);
      grew = true;
    }
    return grew;
  }
  /// As the next iteration of `loop` sees it.
  static State carried(State state, Operation* loop) {
    using Turn = Access::Turn;
    State next;
    for (Access& access : state) {
      access.carried = true;
      if (!access.isShared && (!access.loop || loop->isAncestor(access.loop))) access.loop = loop;
      if (access.turns == loop && access.turn != Turn::unknown)
        access.turn = access.turn == Turn::same ? Turn::other : Turn::same;
      join(next, {access});
    }
    return next;
  }
  /// As the world behind `loop` sees it.
  static State behind(State state, Operation* loop) {
    State next;
    for (Access& access : state) {
      if (access.turns == loop) access.turn = Access::Turn::unknown;
      join(next, {access});
    }
    return next;
  }

  /// What a barrier leaves to remember.
  static void pass(State& state) {
    llvm::erase_if(state, [](const Access& access) { return !access.isRunning; });
  }
  /// All asynchronous products but the last few have ended: their reads were here at the latest.
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
    for (Access& access : state) {
      const bool isOlder = access.carried || !access.op || access.op->getBlock() != wait->getBlock();
      // Fewer in this block than may run: any of those in front of it may.
      access.isRunning = access.isRunning && (isOlder ? left > 0 : running.contains(access.op));
      join(ended, {access});
    }
    state = std::move(ended);
  }

  void walk(Block& block, State& state) {
    for (Operation& op : block) visit(&op, state);
  }

  /// How many loops stand inside one another.
  static int depthOf(Operation* loop) {
    int depth = 0;
    loop->walk([&](scf::ForOp inner) {
      int own = 1;
      for (Operation* op = inner; op != loop; op = op->getParentOp()) own += isa<scf::ForOp>(op->getParentOp());
      depth = std::max(depth, own);
    });
    return depth;
  }

  /// Whatever was done in front of a loop and by its iterations, as the next one sees it.
  State anyIteration(scf::ForOp loop, State all) {
    loop.getBody()->walk([&](Operation* op) {
      if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op)) return;
      const Effects effects = effectsOf(op);
      join(all, effects.before);
      join(all, effects.after);
    });
    return carried(std::move(all), loop);
  }

  void iterate(scf::ForOp loop, State& state) {
    // Every loop around another doubles the walks over it: deep nests are asked for all they might do at once, which
    // costs a barrier perhaps.
    constexpr int kDeep = 4;
    State entry = state;
    if (depthOf(loop) > kDeep) join(entry, anyIteration(loop, state));
    while (true) {
      State body = entry;
      walk(*loop.getBody(), body);
      state = entry;
      join(state, body);
      if (join(entry, carried(body, loop))) continue;
      state = behind(std::move(state), loop);
      return;
    }
  }

  /// What was written to global memory in front of the loop may be read in every iteration, each of which would have a
  /// barrier: one in front serves all.
  bool savesBarriersInside(scf::ForOp loop, const State& state) {
    if (isTrial_ || llvm::none_of(state, [](const Access& a) { return !a.isShared && a.isWrite; })) return false;
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
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      State entry = state;
      while (true) {
        State round = entry;
        walk(*loop.getBeforeBody(), round);
        state = round;
        walk(*loop.getAfterBody(), round);
        if (!join(entry, carried(round, loop))) return;
      }
    }
    if (auto roles = dyn_cast<SpecializeOp>(op)) {  // begins with a barrier of all threads
      state.clear();
      return walk(roles.getConsumer().front(), state);
    }
    if (auto loop = dyn_cast<WorkLoopOp>(op)) {
      State entry = state;
      while (true) {
        State round = entry;
        walk(loop.getBody().front(), round);
        state = entry;
        join(state, round);
        // Each round is another program of the grid: only shared memory is handed on.
        llvm::erase_if(round, [](const Access& access) { return !access.isShared; });
        if (!join(entry, carried(round, loop))) return;
      }
    }
    if (auto wait = dyn_cast<MmaWaitOp>(op)) finish(state, wait);
    Effects effects = effectsOf(op);
    if (effects.startsWithBarrier || barriers_.contains(op)) pass(state);
    for (const Access& now : effects.before) {
      if (llvm::none_of(state, [&](const Access& before) {
            return conflict(before, now, factsOf()) && !mayBeApart(before, now);
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

  /// An earlier iteration of the loop reached the same moving place: whether that is far enough away is known in front
  /// of the loop.
  bool mayBeApart(const Access& earlier, const Access& now) {
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
  /// Pointer, offsets and mask of an access through pointers.
  static std::optional<std::array<Value, 3>> movingPlace(Operation* op) {
    if (auto gather = dyn_cast_if_present<GatherOp>(op))
      return std::array<Value, 3>{gather.getPtr(), gather.getOffsets(), gather.getMask()};
    if (auto scatter = dyn_cast_if_present<ScatterOp>(op))
      return std::array<Value, 3>{scatter.getPtr(), scatter.getOffsets(), scatter.getMask()};
    return std::nullopt;
  }

  /// Stages that take turns in the loop may be in use from before: one barrier in front serves all iterations.
  bool meetsTurns(scf::ForOp loop, const State& state) {
    bool meets = false;
    for (auto store : loop.getBody()->getOps<SmemStoreOp>()) {
      Access now = shared(store.getTarget(), true);
      meets |= now.turns == loop &&
               llvm::any_of(state, [&](const Access& before) { return conflict(before, now, factsOf()); });
    }
    return meets;
  }

  Access shared(Value smem, bool isWrite) {
    Access access;
    access.isShared = true;
    access.isWrite = isWrite;
    if (auto alloc = allocationOf(smem)) {
      access.begin = alloc.getOffset().value_or(0);
      access.end = access.begin + alloc.getResult().getType().bytes();
      access.buffer = alloc;
      access.isStaged = staged_.contains(alloc);
      if (Operation* slot = smem.getDefiningOp(); alloc->hasAttr(kAlternatesAttr)) {
        while (isa<SmemTransOp>(slot)) slot = slot->getOperand(0).getDefiningOp();
        access.turn = Access::Turn::same;
        access.turns = slot->getParentOp();
      }
    } else {
      access.end = int64_t{1} << 40;  // not known: everything
    }
    return access;
  }

  static Access global(Operation* op, Value ptr, bool isWrite, bool isAtomic = false) {
    Access access;
    access.isWrite = isWrite;
    access.root = rootOf(ptr);
    access.op = op;
    access.isAtomic = isAtomic;
    return access;
  }

  /// A read of the op's scratch.
  Access scratchAccess(Operation* op) {
    const Scratch scratch = *scratchOf(op);
    Access access;
    access.isShared = true;
    access.begin = op->getAttrOfType<IntegerAttr>(kScratchAttr).getInt();
    access.end = access.begin + scratch.bytes;
    access.buffer = op;
    access.isStaged = scratch.warpLocal();
    if (scratch.piece) access.buffer = pieces_.try_emplace({access.begin, scratch.piece}, op).first->second;
    return access;
  }
  static Access written(Access access) {
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
        .Case<SmemZeroOp>([&](SmemZeroOp o) { effects.before.push_back(shared(o.getTarget(), true)); })
        .Case<SmemLoadOp>([&](SmemLoadOp o) { effects.before.push_back(shared(o.getSource(), false)); })
        .Case<MmaOp>([&](MmaOp o) {
          if (isa<SmemType>(o.getA().getType())) effects.before.push_back(shared(o.getA(), false));
          effects.before.push_back(shared(o.getB(), false));
          for (Access& access : effects.before) {
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
      const Access access = scratchAccess(op);
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
  /// By where the pieces of warps begin and how large they are: one of the ops that use them.
  std::map<std::pair<int64_t, int64_t>, Operation*> pieces_;
  /// In front of a loop: whether an op in it may meet what it reached in another iteration. Null: that cannot be told.
  llvm::MapVector<Operation*, Value> conditions_;
  llvm::DenseSet<Operation*> needsCondition_;
};

class InsertBarriersPass : public PassWrapper<InsertBarriersPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InsertBarriersPass)
  StringRef getArgument() const override { return "tile-insert-barriers"; }
  StringRef getDescription() const override { return "insert barriers where threads meet in memory"; }
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
