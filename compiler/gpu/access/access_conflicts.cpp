// access_conflicts.cpp - which accesses of different threads can meet in the same element.
#include "compiler/gpu/access/access_conflicts.h"

#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/access/counts.h"
#include "compiler/gpu/access/fields.h"
#include "compiler/gpu/access/planes.h"
#include "compiler/gpu/access/runs.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Whether every thread accesses the elements that it accessed before: the same place under the same layout. If that
/// was in an earlier iteration, the place must be invariant in the loop.
bool accessesInPlace(const MemoryAccess& a, const MemoryAccess& b) {
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

/// The box of a view that a register tile is read from or written to.
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

/// Whether two boxes of a view begin at the same coordinate, and give every thread the same coordinates, along all dims
/// that threads are distributed over. Whatever the coordinates along other dims are (a level, a row of a table), a
/// thread can then only access elements that it accessed itself.
bool staysWithThreads(const MemoryAccess& before, const MemoryAccess& now) {
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

/// By how much indices grow when the loop's induction variable grows by one. Nullopt: unknown, or other variable values
/// enter. Sums may wrap in 32 bits (the box would be far outside the view); products must be known not to. Every value
/// is looked at once: sums of sums would be walked 2^depth times.
class Growth {
 public:
  Growth(scf::ForOp loop, llvm::function_ref<const Facts&()> facts) : loop_(loop), facts_(facts) {}

  std::optional<int64_t> of(Value index) {
    if (index == loop_.getInductionVar()) return 1;
    if (loop_.isDefinedOutsideOfLoop(index)) return 0;
    if (auto it = known_.find(index); it != known_.end()) return it->second;
    const auto found = find(index);
    return known_[index] = found;
  }

 private:
  std::optional<int64_t> find(Value index) {
    Operation* op = index.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return std::nullopt;
    const auto a = of(op->getOperand(0)), b = of(op->getOperand(1));
    if (!a || !b) return std::nullopt;
    if (isa<arith::AddIOp>(op)) return *a + *b;
    if (isa<arith::SubIOp>(op)) return *a - *b;
    APInt factor;
    if (!matchPattern(op->getOperand(1), m_ConstantInt(&factor)) || factor.getSignificantBits() > 31)
      return std::nullopt;
    const Range counted = facts_().rangeOf(op->getOperand(0)),
                all = fullRange(index.getType().getIntOrFloatBitWidth());
    if (counted.min < INT32_MIN || counted.max > INT32_MAX) return std::nullopt;
    const int64_t times = factor.getSExtValue();
    if (!all.contains(counted.min * times) || !all.contains(counted.max * times)) return std::nullopt;
    return *a * times;
  }

  scf::ForOp loop_;
  llvm::function_ref<const Facts&()> facts_;
  llvm::DenseMap<Value, std::optional<int64_t>> known_;
};

/// Where an access goes along one dim: `extent` elements from an index on.
struct Along {
  Value index;
  int64_t extent;
};

/// What an access covers: along the dims of a view, or offsets from a pointer that an index was added to.
struct Reach {
  SmallVector<Value, 2> from;  ///< the view; the pointer and the offsets
  SmallVector<Along> dims;
};

std::optional<Reach> reachOf(Operation* op, llvm::function_ref<const Facts&()> facts) {
  if (const auto box = boxOf(op)) {
    Reach reach{{box->view}, {}};
    for (auto [dim, index] : llvm::enumerate(box->indices)) reach.dims.push_back({index, box->size(dim)});
    return reach;
  }
  auto behind = [&](Value pointer, Value offsets) -> std::optional<Reach> {
    auto add = pointer.getDefiningOp<PtrAddOp>();
    if (!add || !offsets) return std::nullopt;
    const Range range = facts().rangeOf(offsets);
    if (range.min < INT32_MIN || range.max > INT32_MAX) return std::nullopt;
    return Reach{{add.getPtr(), offsets}, {{add.getOffset(), range.max - range.min + 1}}};
  };
  if (auto gather = dyn_cast<GatherOp>(op)) return behind(gather.getPtr(), gather.getOffsets());
  if (auto scatter = dyn_cast<ScatterOp>(op)) return behind(scatter.getPtr(), scatter.getOffsets());
  return std::nullopt;
}

/// Whether two accesses of an iteration, or one of an earlier iteration and one of this, cannot overlap: along some dim
/// both have the same index but for a constant, and the constants, or what an iteration moves the index on by, are at
/// least the extents apart.
bool stepsAcross(const MemoryAccess& earlier, const MemoryAccess& later, llvm::function_ref<const Facts&()> facts) {
  auto loop = dyn_cast_if_present<scf::ForOp>(earlier.loop);
  if (earlier.carried != (loop != nullptr) || !earlier.op || !later.op || later.carried) return false;
  const auto x = reachOf(earlier.op, facts), y = reachOf(later.op, facts);
  if (!x || !y || x->from != y->from) return false;
  if (loop && !llvm::all_of(x->from, [&](Value v) { return loop.isDefinedOutsideOfLoop(v); })) return false;
  for (auto [before, now] : llvm::zip(x->dims, y->dims)) {
    const int64_t extent = std::max(before.extent, now.extent);
    if (!loop) {
      const LinearForm apart = sumOf(now.index).plus(sumOf(before.index).scaled(-1));
      if (apart.isConstant() && std::abs(apart.constant) >= extent) return true;
      continue;
    }
    const auto [base, first] = withoutConstants(before.index, INT32_MAX);
    const auto [same, second] = withoutConstants(now.index, INT32_MAX);
    if (base != same) continue;
    const int64_t further = second - first;
    const auto moved = Growth(loop, facts).of(base);
    if (!moved || *moved == 0 || std::abs(*moved) > INT32_MAX) continue;
    const int64_t step = std::clamp<int64_t>(facts().rangeOf(loop.getStep()).min, 0, INT32_MAX);
    if (step * std::abs(*moved) + (*moved > 0 ? further : -further) >= extent) return true;
  }
  return false;
}

}  // namespace

bool needsBarrier(const MemoryAccess& before, const MemoryAccess& now, llvm::function_ref<const Facts&()> facts) {
  if (before.isShared != now.isShared || (!before.isWrite && !now.isWrite)) return false;
  if (now.isShared) {
    if (before.end <= now.begin || now.end <= before.begin) return false;
    using Turn = MemoryAccess::Turn;
    if (before.buffer == now.buffer && before.turns == now.turns && before.turn == Turn::other &&
        now.turn == Turn::same)
      return false;
    if (before.buffer == now.buffer && before.isAtomic && now.isAtomic) return false;
    if (before.buffer == now.buffer && before.isWrite && now.isWrite && before.isPadding != now.isPadding) return false;
    return !(before.buffer == now.buffer && before.isStaged && now.isStaged);
  }
  if (before.isAtomic && now.isAtomic) return false;
  if (before.root.isApartFrom(now.root)) return false;
  if (accessesInPlace(before, now) || staysWithThreads(before, now) || stepsAcross(before, now, facts)) return false;
  if (!before.op || !now.op) return true;
  if (areOtherFields(before.op, now.op, before.carried || now.carried, facts())) return false;
  if (!before.carried && !now.carried && areInOwnRuns(before.op, now.op, facts())) return false;
  return now.carried || (before.carried && !before.loop) ||
         !areOtherPlanes(before.op, now.op, before.carried ? before.loop : nullptr, facts());
}

}  // namespace tile::ir
