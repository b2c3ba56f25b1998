// layout_plan.cpp - anchors and how their choices spread.
#include "compiler/gpu/layout_plan.h"

#include <algorithm>
#include <numeric>

#include "compiler/analysis/known_values.h"
#include "compiler/gpu/access_width.h"
#include "compiler/gpu/across.h"
#include "compiler/gpu/combined_rows.h"
#include "compiler/gpu/copy_layout.h"
#include "compiler/gpu/global_access.h"
#include "compiler/gpu/mma_table.h"
#include "compiler/gpu/moves.h"
#include "compiler/gpu/tma_box.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

constexpr int kFewElements = 16;           ///< a tile this many times smaller is moved for next to nothing
constexpr int kCheapOps = 12;              ///< index arithmetic worth repeating instead of moving its result
constexpr int64_t kSmallTileBytes = 4096;  ///< of no consequence how it is read

bool isTile(Value value) { return isa<RankedTensorType>(value.getType()); }
layout::Shape shapeOf(Value value) {
  auto shape = cast<RankedTensorType>(value.getType()).getShape();
  return {shape.begin(), shape.end()};
}
int64_t tileBytes(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements() * elementBytes(value.getType());
}

/// Takes half of a pair of registers, or makes a pair: no instruction.
bool isHalfOfPair(Operation* op) {
  auto bits = [](Value tile) { return getElementTypeOrSelf(tile.getType()).getIntOrFloatBitWidth(); };
  if (isa<arith::TruncIOp, arith::ExtUIOp>(op)) return bits(op->getOperand(0)) + bits(op->getResult(0)) == 32 + 64;
  APInt by;
  return isa<arith::ShRUIOp>(op) && bits(op->getResult(0)) == 64 &&
         matchPattern(op->getOperand(1), m_ConstantInt(&by)) && by == 32;
}

void addTiles(SmallVector<Value>& into, ValueRange values) {
  for (Value value : values)
    if (value && isTile(value)) into.push_back(value);
}

// Dims from fastest to slowest, `first` in front.
std::vector<int> orderFrom(int rank, int first) {
  std::vector<int> order;
  if (first >= 0) order.push_back(first);
  for (int dim = rank - 1; dim >= 0; --dim)
    if (dim != first) order.push_back(dim);
  return order;
}

}  // namespace

std::optional<Layout> layoutToExtractFrom(const Layout& source, const layout::Coord& offset, const layout::Shape& shape) {
  constexpr int kMostTraded = 2;  // so many shuffles for every four elements at most
  if (layout::boxLayout(source, offset, shape)) return source;
  auto traded = layout::cuttableLayout(source, shape, kMostTraded);
  return traded && layout::boxLayout(*traded, offset, shape) ? traded : std::nullopt;
}

std::optional<Layout> extractedLayout(const Layout& source, const layout::Coord& offset, const layout::Shape& shape) {
  auto from = layoutToExtractFrom(source, offset, shape);
  return from ? layout::boxLayout(*from, offset, shape) : std::nullopt;
}

SmallVector<Value> sameLayout(Operation* op) {
  SmallVector<Value> group;
  bool all = isa<GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp, ScanOp, AssumeOp>(op) || isElementwise(op);
  if (auto take = dyn_cast<TakeOp>(op)) {
    addTiles(group, {take.getIndices(), take.getResult()});
  } else if (auto mma = dyn_cast<MmaOp>(op)) {
    addTiles(group, {mma.getAcc(), mma.getResult()});
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    addTiles(group, reduce.getSources());
  } else if (auto gather = dyn_cast<AsyncGatherOp>(op)) {
    addTiles(group, gather->getOperands());
  } else if (all) {
    addTiles(group, op->getOperands());
    addTiles(group, op->getResults());
  }
  return group;
}

SmallVector<SmallVector<Value>> carriedGroups(Operation* op) {
  SmallVector<SmallVector<Value>> groups;
  auto add = [&](std::initializer_list<Value> values) {
    if (isTile(*values.begin())) groups.emplace_back(values);
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [result, arg, init, yielded] :
         llvm::zip(loop.getResults(), loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues()))
      add({result, arg, yielded, init});
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (auto [i, result] : llvm::enumerate(branch.getResults()))
      add({result, branch.thenYield().getOperand(i), branch.elseYield().getOperand(i)});
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [arg, init, yielded] :
         llvm::zip(loop.getBeforeArguments(), loop.getInits(), loop.getYieldOp().getOperands()))
      add({arg, yielded, init});
    for (auto [result, arg, passed] :
         llvm::zip(loop.getResults(), loop.getAfterArguments(), loop.getConditionOp().getArgs()))
      add({result, arg, passed});
  }
  return groups;
}

int defaultWarps(func::FuncOp func, const Target& target) {
  int64_t largest = 0;
  func.walk([&](Operation* op) {
    for (Value result : op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType())) largest = std::max(largest, type.getNumElements());
  });
  int warps = 4;
  while (warps < 16 && warps * 2 * target.lanes <= target.maxThreads && largest / (int64_t{warps} * target.lanes) > 32)
    warps *= 2;
  return warps;
}

void LayoutScope::walk(llvm::function_ref<void(Operation*)> visit) const {
  if (only) {
    only->walk(visit);
    return;
  }
  func::FuncOp all = func;
  all.walk([&](Operation* op) {
    if (!without || !op->getParentRegion() || !without->isAncestor(op->getParentRegion())) visit(op);
  });
}

LayoutPlan::LayoutPlan(const LayoutScope& scope, const Target& target)
    : scope_(scope), target_(target), numWarps_(scope.numWarps), facts_(func::FuncOp(scope.func).getOperation()) {
  run();
}

// ---- cheap tiles

int LayoutPlan::cost(Value tile) {
  constexpr int kNever = 1 << 20;
  if (!isTile(tile)) return 0;
  Operation* op = tile.getDefiningOp();
  if (!op) return kNever;
  if (auto it = cost_.find(tile); it != cost_.end()) return it->second;
  if (scope_.only) return 0;
  int total = kNever;
  if (isa<IotaOp, SplatOp, arith::ConstantOp>(op)) {
    total = isa<IotaOp>(op) ? 1 : 0;
  } else if (isElementwise(op) || isa<AssumeOp, BroadcastOp, ReshapeOp, TransOp>(op)) {
    bool simple = !isa<math::MathDialect>(op->getDialect()) && !isa<arith::DivFOp, arith::RemFOp>(op);
    total = isElementwise(op) && !isHalfOfPair(op) ? 1 : 0;
    for (Value operand : op->getOperands()) total = std::min(kNever, total + cost(operand));
    // Masks and offsets that repeat a few values (rows that were gathered, say): those values are moved instead.
    if (isa<BroadcastOp>(op) && getElementTypeOrSelf(tile.getType()).isInteger()) {
      auto small = cast<RankedTensorType>(op->getOperand(0).getType()), large = cast<RankedTensorType>(tile.getType());
      if (small.getNumElements() * kFewElements <= large.getNumElements()) total = std::min(total, 1);
    }
    if (!simple || total > kCheapOps) total = kNever;
  }
  return cost_[tile] = total;
}

bool LayoutPlan::isCheap(Value tile) { return cost(tile) <= kCheapOps; }

// ---- choices

std::optional<Layout> LayoutPlan::chosen(Value tile) const {
  auto it = chosen_.find(tile);
  if (it == chosen_.end()) return std::nullopt;
  return it->second;
}

void LayoutPlan::choose(Value tile, const Layout& layout) {
  if (!isTile(tile) || isCheap(tile) || !chosen_.try_emplace(tile, layout).second) return;
  pending_.push_back(tile);
}

void LayoutPlan::spread() {
  while (!pending_.empty()) {
    Value tile = pending_.pop_back_val();
    if (Operation* def = tile.getDefiningOp())
      relate(def);
    else
      relate(tile.getParentBlock()->getParentOp());
    for (Operation* user : tile.getUsers()) {
      relate(user);
      if (user->hasTrait<OpTrait::IsTerminator>()) relate(user->getParentOp());
    }
  }
}

void LayoutPlan::relateGroup(ArrayRef<Value> group) {
  for (Value tile : group) {
    auto layout = chosen(tile);
    if (!layout) continue;
    for (Value other : group) choose(other, *layout);
    return;
  }
}

// Spreads what is chosen around one op as far as it is free.
void LayoutPlan::relate(Operation* op) {
  for (auto& group : carriedGroups(op)) relateGroup(group);
  SmallVector<Value> group = sameLayout(op);
  if (auto scan = dyn_cast<ScanOp>(op)) {
    for (Value tile : group)
      if (auto layout = chosen(tile); layout && !planScan(*layout, static_cast<int>(scan.getAxis()))) return;
  }
  relateGroup(group);
  auto link = [&](Value from, Value to, llvm::function_ref<std::optional<Layout>(const Layout&)> map) {
    if (auto layout = chosen(from); layout && !chosen(to))
      if (auto mapped = map(*layout)) choose(to, *mapped);
  };
  llvm::TypeSwitch<Operation*>(op)
      .Case<ReduceOp>([&](ReduceOp reduce) {
        if (auto layout = chosen(reduce.getSources()[0]); layout && readsTable(reduce, *layout)) return;
        for (auto [source, result] : llvm::zip(reduce.getSources(), reduce.getResults()))
          link(source, result, [&](const Layout& l) { return l.sliced(static_cast<int>(reduce.getAxis())); });
      })
      .Case<BroadcastOp>([&](BroadcastOp broadcast) {
        layout::Shape small = shapeOf(broadcast.getSource());
        link(broadcast.getResult(), broadcast.getSource(), [&](Layout l) {
          for (int dim = 0; dim < l.rank(); ++dim)
            if (small[dim] != l.shape()[dim]) l = l.sliced(dim);
          return std::optional(l);
        });
      })
      .Case<TransOp>([&](TransOp trans) {
        std::vector<int> forward(trans.getPermutation().begin(), trans.getPermutation().end()), back(forward.size());
        for (size_t i = 0; i < forward.size(); ++i) back[forward[i]] = static_cast<int>(i);
        link(trans.getSource(), trans.getResult(),
             [&](const Layout& l) { return std::optional(l.transposed(forward)); });
        link(trans.getResult(), trans.getSource(), [&](const Layout& l) { return std::optional(l.transposed(back)); });
      })
      .Case<ReshapeOp>([&](ReshapeOp reshape) {
        link(reshape.getSource(), reshape.getResult(),
             [&](const Layout& l) { return l.reshaped(shapeOf(reshape.getResult())); });
        link(reshape.getResult(), reshape.getSource(),
             [&](const Layout& l) { return l.reshaped(shapeOf(reshape.getSource())); });
      })
      .Case<ExtractOp>([&](ExtractOp extract) {
        layout::Coord offset(extract.getOffsets().begin(), extract.getOffsets().end());
        link(extract.getSource(), extract.getResult(),
             [&](const Layout& l) { return extractedLayout(l, offset, shapeOf(extract.getResult())); });
      })
      .Case<TakeOp>([&](TakeOp take) {
        // Known indices mostly permute neighbours: shuffles, where both sides are laid out alike.
        if (take.getSource().getType().getShape() != take.getResult().getType().getShape()) return;
        if (!knownValues(take.getIndices())) return;
        link(take.getSource(), take.getResult(), [&](const Layout& l) { return std::optional(l); });
        link(take.getResult(), take.getSource(), [&](const Layout& l) { return std::optional(l); });
      })
      .Case<CatOp>([&](CatOp cat) {
        int axis = static_cast<int>(cat.getAxis()), count = static_cast<int>(cat.getSources().size());
        bool alike =
            llvm::all_of(cat.getSources(), [&](Value v) { return v.getType() == cat.getSources()[0].getType(); });
        if (!alike) return;
        link(cat.getSources()[0], cat.getResult(),
             [&](const Layout& l) { return layout::repeatedLayout(l, axis, count); });
        layout::Coord offset(shapeOf(cat.getResult()).size(), 0);
        for (Value source : cat.getSources()) {
          link(cat.getResult(), source, [&](const Layout& l) { return layout::boxLayout(l, offset, shapeOf(source)); });
          offset[axis] += shapeOf(source)[axis];
        }
      });
}

bool LayoutPlan::readsTable(ReduceOp reduce, const Layout& source) {
  constexpr int kWorth = 4;  // times fewer values, for an address of its own
  const int axis = static_cast<int>(reduce.getAxis());
  if (reduce.getNumResults() != 1 || warpsAlong(source, axis) == 1 || isSpreadAgain(reduce)) return false;
  return source.sliced(axis).numRegs() >= kWorth * defaultLayout(reduce.getResult(0).getType()).numRegs();
}

// ---- anchors

// The coalesced layout of an access: 16 bytes per thread along the contiguous dim, less for tiles too small to give
// every thread that much.
std::optional<Layout> LayoutPlan::accessLayout(Operation* op) {
  auto access = accessOf(op, facts_);
  if (!access) return std::nullopt;
  layout::Shape shape = shapeOf(access->tile);
  int64_t elements = cast<RankedTensorType>(access->tile.getType()).getNumElements();
  int64_t perThread = std::max<int64_t>(1, elements / (int64_t{numWarps_} * target_.lanes));
  int vector = access->width.aligned;
  if (isa<AccumulateOp>(op) || addsToMemory(op))
    vector = std::min(vector, widestAdd(getElementTypeOrSelf(access->tile.getType()), target_));
  else if (isa<AtomicRmwOp, AtomicCasOp>(op))
    vector = 1;
  while (vector > perThread) vector /= 2;
  Layout best = layout::blocked(shape, vector, orderFrom(static_cast<int>(shape.size()), access->width.dim), numWarps_,
                                target_.lanes);
  if (auto whole = shortRowsInThreads(best, access->width.dim, numWarps_, target_.lanes)) best = std::move(*whole);
  // Rows that are combined, read from the same words, or meet runs of vectors, come together in a thread as far as it has
  // several.
  const bool isRead = isa<LoadOp, GatherOp>(op) && access->width.dim > 0 && !best.isPadded(0);
  if (!isRead) return best;
  if (foldsBlocksOfRows(access->tile) || rowsAlike(op, facts_) > 1) return withRowsTogether(best);
  if (shape.size() != 2 || best.numRegs() <= best.runLength(1) || !meetsLoadedColumns(access->tile)) return best;
  const Layout together = withRowsTogether(best);
  const int bytes = elementBytes(access->tile.getType());
  return sectorUse(together, access->width.dim, bytes) < sectorUse(best, access->width.dim, bytes) ? best : together;
}

bool LayoutPlan::servesAccess(Operation* op, const Layout& own, const Layout& best, bool isStore) {
  auto access = accessOf(op, facts_);
  if (!access || own == best) return true;
  int bytes = elementBytes(access->tile.getType());
  bool isSmall = tileBytes(access->tile) <= kSmallTileBytes;
  if (isSmall && !isStore) return true;
  int replicas = own.laneReplicas() * own.warpReplicas() * own.regReplicas();
  int bestReplicas = best.laneReplicas() * best.warpReplicas();
  if (!isStore && replicas > bestReplicas) return false;
  if (access->width.dim < 0) return true;
  int dim = access->width.dim;
  if (sectorUse(own, dim, bytes) + 0.01 < std::min(1.0, sectorUse(best, dim, bytes))) return false;
  // Full sectors in pieces of 8 bytes are nearly as good as in pieces of 16; whole lines in pieces of 4 are better than
  // a conversion.
  int vector = widthUnder(access->width, own).aligned * bytes,
      bestVector = widthUnder(access->width, best).aligned * bytes;
  return vector >= std::min(wholeLines(own, dim, bytes) ? 4 : 8, bestVector);
}

// Short vectors that are scanned, or looked up for the rows of tiles, and what is computed from them or they from, as
// vectors: every warp has all of them, so that no warp waits for another, and hands them to tiles through bytes of its
// own. A lane computes its elements only, not those of all the rows that it holds.
void LayoutPlan::keepInWarps() {
  constexpr int64_t kMostRegisters = 4;
  SmallVector<Value> pending;
  auto lanesOf = [&](Value vector) -> int64_t {  // registers of a lane; 0: none that is kept
    const layout::Shape shape = shapeOf(vector);
    if (shape.size() != 1 || shape[0] % target_.lanes != 0 || shape[0] > kMostRegisters * target_.lanes) return 0;
    return shape[0] / target_.lanes;
  };
  auto keep = [&](Value vector) {
    if (!isTile(vector) || isCheap(vector)) return;
    const int count = static_cast<int>(lanesOf(vector));
    if (!count) return;
    std::vector<layout::Digit> warps;
    if (numWarps_ > 1) warps.push_back({layout::kReplicated, numWarps_, 0});
    const Layout whole(shapeOf(vector), {{0, count, 1}}, {{0, target_.lanes, count}}, warps);
    if (chosen_.try_emplace(vector, whole).second) pending.push_back(vector);
  };
  SmallVector<Value> kept;
  auto keepWhatMeets = [&] {
    while (!pending.empty()) {
      Value vector = pending.pop_back_val();
      kept.push_back(vector);
      SmallVector<Operation*> around(vector.getUsers());
      if (Operation* op = vector.getDefiningOp()) around.push_back(op);
      for (Operation* op : around)
        if (isElementwise(op))
          for (Value tile : sameLayout(op)) keep(tile);
    }
  };
  scope_.walk([&](Operation* op) {
    if (isa<ScanOp>(op) && numWarps_ > 1)
      for (Value tile : sameLayout(op)) keep(tile);
  });
  keepWhatMeets();
  kept.clear();
  scope_.walk([&](Operation* op) {
    auto access = accessOf(op, facts_);
    if (!access || !isLookup(op, *access)) return;
    const int64_t count = lanesOf(access->tile);
    if (count && isForManyRows(access->tile, count, [&](Type type) { return defaultLayout(type); })) keep(access->tile);
  });
  keepWhatMeets();
  pending_.append(kept);  // their offsets, and what places or weighs rows by them
  spread();
}

// Large tiles that loops load an iteration early wait as they came: they are converted where they are used, an iteration
// later, not behind their loads.
SmallVector<Value> LayoutPlan::keepAsLoaded() {
  SmallVector<Value> kept;
  scope_.walk([&](Operation* op) {
    if (!isa<scf::ForOp>(op)) return;
    for (auto& group : carriedGroups(op)) {
      auto load = group[2].getDefiningOp<LoadOp>();  // what comes round
      if (!load || load->getParentOp() != op || tileBytes(load.getResult()) <= kSmallTileBytes) continue;
      const Layout layout = *accessLayout(load);
      for (Value tile : group)
        if (!isCheap(tile) && chosen_.try_emplace(tile, layout).second) kept.push_back(tile);
    }
  });
  return kept;
}

// What is spread over a tile that threads can make at once (offsets of rows, whether they are inside) is made by the
// threads that need it, where those need hardly more of it than their share: nobody waits for anybody.
void LayoutPlan::computeWhereUsed(Value tile, const Layout& layout) {
  constexpr int kTimes = 2;
  if (!isCheap(tile)) return;  // else it says itself how it lies
  Operation* op = tile.getDefiningOp();
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    Value small = broadcast.getSource();
    Layout wanted = layout;
    for (int dim = 0; dim < wanted.rank(); ++dim)
      if (shapeOf(small)[dim] != wanted.shape()[dim]) wanted = wanted.sliced(dim);
    if (wanted.numRegs() > kTimes * defaultLayout(small.getType()).numRegs()) return;
    choose(small, wanted);
  } else if (op && isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (isTile(operand)) computeWhereUsed(operand, layout);
  }
}

void LayoutPlan::run() {
  SmallVector<Operation*> anchors;
  keepInWarps();
  const SmallVector<Value> early = keepAsLoaded();
  scope_.walk([&](Operation* op) {
    if (auto mma = dyn_cast<MmaOp>(op)) {
      choose(mma.getResult(), accumulatorLayout(mma));
      choose(mma.getAcc(), accumulatorLayout(mma));
    }
  });
  spread();
  scope_.walk([&](Operation* op) {
    auto store = dyn_cast<TmaStoreOp>(op);
    if (!store) return;
    choose(store.getValue(), tmaStoreLayout(store.getValue().getType().getShape(), numWarps_));
    spread();
  });
  scope_.walk([&](Operation* op) {
    if (auto mma = dyn_cast<MmaOp>(op); mma && isTile(mma.getA())) choose(mma.getA(), operandALayout(mma));
  });
  spread();
  // Scans across the rows of a tile, and tiles cut into blocks of rows: a thread that holds a run of rows needs no other
  // lane for them, and memory is read as well in whole rows by a warp. Longest first: others are cut from these.
  SmallVector<std::pair<Value, int>> acrossRows;
  scope_.walk([&](Operation* op) {
    if (auto scan = dyn_cast<ScanOp>(op)) {
      const int axis = static_cast<int>(scan.getAxis());
      if (axis + 1 < cast<RankedTensorType>(scan.getSources()[0].getType()).getRank())
        acrossRows.emplace_back(scan.getResults()[0], axis);  // the source may be cheap: it has no layout of its own
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      ArrayRef<int64_t> from = reshape.getSource().getType().getShape(), to = reshape.getResult().getType().getShape();
      if (from.size() == 2 && to.size() > 2 && from[1] == to.back() && from[0] > to[0] && from[1] > 1)
        acrossRows.emplace_back(reshape.getSource(), 0);
    }
  });
  auto lengthOf = [](auto& source) { return cast<RankedTensorType>(source.first.getType()).getDimSize(source.second); };
  llvm::stable_sort(acrossRows, [&](auto& a, auto& b) { return lengthOf(a) > lengthOf(b); });
  for (auto& [source, axis] : acrossRows) {
    const Layout layout = scanLayout(shapeOf(source), axis, numWarps_, target_.lanes);
    // Tiles that cannot occupy all threads this way would fill the registers of the others.
    if (layout.isPadded()) continue;
    choose(source, layout);
    spread();
  }
  // States that stay in registers while a loop combines their rows again and again: fewer lanes along a row cost fewer
  // exchanges, but longer pieces of the vectors that meet it.
  scope_.walk([&](Operation* op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) return;
    for (const CarriedSums& state : carriedSums(loop)) {
      if (chosen(state.tile)) continue;
      if (auto better = state.betterLayout(defaultLayout(state.tile.getType()), numWarps_, target_.lanes))
        choose(state.tile, *better);
      spread();
    }
  });
  // Runs of a row in every lane, where each further run of a lane costs exchanges of several registers.
  scope_.walk([&](Operation* op) {
    auto scan = dyn_cast<ScanOp>(op);
    if (!scan || chosen(scan.getResults()[0])) return;
    if (auto runs = runsToScan(scan, numWarps_, target_.lanes)) choose(scan.getResults()[0], *runs);
    spread();
  });
  pending_.append(early);
  spread();
  scope_.walk([&](Operation* op) {
    if (accessOf(op, facts_)) anchors.push_back(op);
  });
  // Loads before stores, large before small, wide before narrow: a stored tile is computed from loaded ones. What is read
  // as well under any layout takes those of the others.
  auto rank = [&](Operation* op) {
    const GlobalAccess access = *accessOf(op, facts_);
    const bool isWrite = isa<StoreOp, AccumulateOp, ScatterOp>(op) || addsToMemory(op);
    const int turn = takesAnyLayout(op, access, facts_) ? 2 : isWrite ? 1 : 0;
    return std::tuple(turn, -tileBytes(access.tile), -access.width.aligned);
  };
  llvm::stable_sort(anchors, [&](Operation* a, Operation* b) { return rank(a) < rank(b); });
  for (Operation* op : anchors) {
    auto access = accessOf(op, facts_);
    Layout best = *accessLayout(op);
    auto own = chosen(access->tile);
    if (own && op->getNumResults() && access->tile == op->getResult(0) && !servesAccess(op, *own, best, false)) {
      chosen_[access->tile] = best;  // the others of its group keep theirs; a conversion goes between
      continue;
    }
    choose(access->tile, best);
    spread();
  }
  scope_.walk([&](Operation* op) {
    if (auto gather = dyn_cast<AsyncGatherOp>(op)) {
      const Layout layout = asyncGatherLayout(gather, facts_, numWarps_);
      choose(gather.getOffsets(), layout);
      computeWhereUsed(gather.getOffsets(), layout);
      if (gather.getMask()) computeWhereUsed(gather.getMask(), layout);
    }
    if (auto scan = dyn_cast<ScanOp>(op))
      choose(scan.getResults()[0],
             scanLayout(shapeOf(scan.getResults()[0]), static_cast<int>(scan.getAxis()), numWarps_, target_.lanes));
    spread();
  });
  // Tiles that nothing else places and that are combined along a short axis: every thread combines what it keeps.
  scope_.walk([&](Operation* op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce || llvm::any_of(reduce.getSources(), [&](Value tile) { return chosen(tile).has_value(); })) return;
    if (auto own = layoutToCombineIn(reduce, chosen(reduce.getResult(0)), numWarps_, target_.lanes))
      choose(reduce.getSources()[0], *own);
    spread();
  });
  // What is widened on its way into shared memory is written there in pieces of 16 bytes side by side.
  scope_.walk([&](Operation* op) {
    if (auto store = dyn_cast<SmemStoreOp>(op); store && isWidenedInPlace(store.getValue()))
      choose(store.getValue(), defaultLayout(store.getValue().getType()));
    spread();
  });
  // What nobody reached.
  scope_.walk([&](Operation* op) {
    for (Region& region : op->getRegions())
      for (Block& block : region)
        for (BlockArgument arg : block.getArguments()) {
          if (isTile(arg)) choose(arg, defaultLayout(arg.getType()));
          spread();
        }
    for (Value result : op->getResults()) {
      if (isTile(result)) choose(result, defaultLayout(result.getType()));
      spread();
    }
  });
}

// ---- answers

Layout LayoutPlan::defaultLayout(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  layout::Shape shape(tensor.getShape().begin(), tensor.getShape().end());
  int64_t perThread = std::max<int64_t>(1, tensor.getNumElements() / (int64_t{numWarps_} * target_.lanes));
  int vector = std::max(1, 16 / elementBytes(type));
  while (vector > perThread) vector /= 2;
  return layout::blocked(shape, vector, orderFrom(static_cast<int>(shape.size()), -1), numWarps_, target_.lanes);
}

Layout LayoutPlan::layoutOf(Value tile) {
  auto layout = chosen(tile);
  return layout ? *layout : defaultLayout(tile.getType());
}

Layout LayoutPlan::groupLayout(Operation* op) {
  SmallVector<Value> group = sameLayout(op);
  if (auto mma = dyn_cast<MmaOp>(op)) return accumulatorLayout(mma);
  if (auto gather = dyn_cast<AsyncGatherOp>(op)) return asyncGatherLayout(gather, facts_, numWarps_);
  Layout layout;
  bool found = false;
  // Results first: they were chosen with the op's own wishes in mind.
  for (Value tile : op->getResults())
    if (!found && llvm::is_contained(group, tile) && chosen(tile)) layout = *chosen(tile), found = true;
  for (Value tile : group)
    if (!found && chosen(tile)) layout = *chosen(tile), found = true;
  if (auto reduce = dyn_cast<ReduceOp>(op); reduce && !found)
    if (auto own = layoutToCombineIn(reduce, chosen(reduce.getResult(0)), numWarps_, target_.lanes))
      layout = *own, found = true;
  if (!found) {
    auto best = accessLayout(op);
    layout = best ? *best : defaultLayout(group[0].getType());
  }
  if (auto scan = dyn_cast<ScanOp>(op); scan && !planScan(layout, static_cast<int>(scan.getAxis())))
    layout = scanLayout(shapeOf(group[0]), static_cast<int>(scan.getAxis()), numWarps_, target_.lanes);
  return layout;
}

Layout LayoutPlan::storeLayout(Operation* store, const Layout& own) {
  auto best = accessLayout(store);
  if (!best) return own;
  if (auto lines = linesToAdd(store, own)) return *lines;
  return servesAccess(store, own, *best, true) ? own : *best;
}

// Additions are carried out line by line behind the first-level cache: a warp that has whole lines of an accumulator in
// pieces all over its lanes deals them out anew first, and sends a quarter of the requests.
std::optional<Layout> LayoutPlan::linesToAdd(Operation* op, const Layout& own) {
  constexpr int kLine = 128;
  if (!isa<AccumulateOp>(op) && !addsToMemory(op)) return std::nullopt;
  auto access = accessOf(op, facts_);
  const int dim = access->width.dim, bytes = elementBytes(access->tile.getType());
  if (dim < 0 || tileBytes(access->tile) <= kSmallTileBytes || wholeLines(own, dim, bytes)) return std::nullopt;
  const int vector = std::min(access->width.aligned, widestAdd(getElementTypeOrSelf(access->tile.getType()), target_));
  if (widthUnder(access->width, own).aligned >= vector) return std::nullopt;
  return layout::runsOfWarps(own, dim, vector, kLine / bytes);
}

}  // namespace tile::ir
