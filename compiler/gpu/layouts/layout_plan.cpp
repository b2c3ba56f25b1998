// layout_plan.cpp - the anchors: operations that prefer a layout for their tile, strongest first.
#include "compiler/gpu/layouts/layout_plan.h"

#include <algorithm>

#include "compiler/dialect/products.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/copy_layout.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/carried_layouts.h"
#include "compiler/gpu/layouts/combined_rows.h"
#include "compiler/gpu/layouts/exchanges.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

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
    : scope_(scope),
      target_(target),
      facts_(func::FuncOp(scope.func).getOperation()),
      access_(facts_, target, scope.numWarps),
      cheap_(scope.only != nullptr),
      choices_(cheap_, access_) {
  keepInWarps();
  const SmallVector<Value> sorted = keepExchanges();
  const SmallVector<Value> early = keepAsLoaded();
  const SmallVector<Value> carried = keepAccumulators();
  placeBatches(/*combined=*/true);
  choices_.follow(carried);
  placeCarriedSums(/*fewestTrips=*/16);
  placeAccumulators();
  placeBatches(/*combined=*/false);
  placeRunsOfRows();
  placeBulkStores();
  placeFirstOperands();
  placeCarriedSums(/*fewestTrips=*/0);
  placeRunsToScan();
  choices_.follow(early);
  choices_.follow(sorted);
  choices_.spread();
  placeAccesses();
  placeAsyncGathersAndScans();
  placeCarriedBesideVectors();
  placeShortSums();
  placeWidened();
  placeTurned();
  placeRest();
}

// ---- anchors

// The layout of a short vector in which every warp has all elements, a few in each lane. Nullopt: it is no such vector.
std::optional<Layout> LayoutPlan::wholeInWarps(Value vector) const {
  constexpr int64_t kMostRegisters = 4;
  const layout::Shape shape = shapeOf(vector);
  if (shape.size() != 1 || shape[0] % target_.lanes != 0 || shape[0] > kMostRegisters * target_.lanes)
    return std::nullopt;
  const int count = static_cast<int>(shape[0] / target_.lanes);
  std::vector<layout::Digit> warps;
  if (numWarps() > 1) warps.push_back({layout::kReplicated, numWarps(), 0});
  return Layout(shape, {{0, count, 1}}, {{0, target_.lanes, count}}, warps);
}

// Whether the vectors are never made rows or columns of tiles, and some are offsets into memory. Then they are all the
// work of the program: if every warp held all of them, every warp would do all of it.
static bool areAllWork(ArrayRef<Value> vectors) {
  bool accesses = false;
  for (Value vector : vectors) {
    if (vector.getDefiningOp<ReshapeOp>()) return false;
    for (OpOperand& use : vector.getUses()) {
      Operation* user = use.getOwner();
      if (isa<ReshapeOp>(user)) return false;
      Value offsets = llvm::TypeSwitch<Operation*, Value>(user)
                          .Case<GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp>([](auto op) { return op.getOffsets(); })
                          .Default(Value());
      accesses |= offsets == vector;
    }
  }
  return accesses;
}

// Short vectors that are scanned, or loaded for the rows of tiles (row numbers, factors), and vectors from which these
// are computed or that are computed from them: every warp holds all elements, so that no warp waits for another. From
// there they reach the threads of tiles through shared memory of the warp's own. A lane computes its own elements only,
// not those of all rows that it holds.
void LayoutPlan::keepInWarps() {
  const SmallVector<Value> factors = holdFactors();
  SmallVector<Value> kept;
  auto canKeep = [&](Value vector) { return !isCheap(vector) && !choices_.of(vector) && wholeInWarps(vector); };
  // The vectors and those that elementwise work combines with them; if `carried`, also across iterations and branches.
  auto together = [&](ArrayRef<Value> vectors, bool carried) {
    llvm::SetVector<Value> met;
    auto meet = [&](Value vector) {
      if (isTile(vector) && canKeep(vector)) met.insert(vector);
    };
    llvm::for_each(vectors, meet);
    for (size_t i = 0; i < met.size(); ++i) {
      Value vector = met[i];
      SmallVector<Operation*> around(vector.getUsers());
      Operation* op = vector.getDefiningOp();
      around.push_back(op ? op : vector.getParentBlock()->getParentOp());
      for (Operation* op : around) {
        if (isElementwise(op)) llvm::for_each(sameLayout(op), meet);
        if (!carried) continue;
        for (auto& group : carriedGroups(op->hasTrait<OpTrait::IsTerminator>() ? op->getParentOp() : op))
          if (llvm::is_contained(group, vector)) llvm::for_each(group, meet);
      }
    }
    return met.takeVector();
  };
  auto keep = [&](ArrayRef<Value> vectors) {
    for (Value vector : vectors)
      if (choices_.hold(vector, *wholeInWarps(vector))) kept.push_back(vector);
  };
  scope_.walk([&](Operation* op) {
    if (!isa<ScanOp>(op) || numWarps() == 1) return;
    const SmallVector<Value> scanned = sameLayout(op);
    if (!areAllWork(together(scanned, /*carried=*/true))) keep(together(scanned, /*carried=*/false));
  });
  kept.clear();
  scope_.walk([&](Operation* op) {
    auto access = accessOf(op, facts_);
    if (!access || !isLookup(op, *access)) return;
    auto whole = wholeInWarps(access->tile);
    if (whole && isForManyRows(access->tile, whole->numRegs(), [&](Value tile) {
          MmaOp product = productMeeting(tile);
          return product ? accumulatorLayout(product) : defaultLayout(tile.getType());
        }))
      keep(together({access->tile}, /*carried=*/false));
  });
  choices_.follow(kept);  // their offsets, and what places or weighs rows by them
  choices_.follow(factors);
  choices_.spread();
}

// Vectors that loops gather to weigh the rows or columns of a product: each thread reads the elements for its own rows
// or columns. Otherwise keepInWarps would let every warp read all of them, and exchange them, in every iteration.
SmallVector<Value> LayoutPlan::holdFactors() {
  constexpr int kFew = 4;  // elements of a thread: registers for their addresses
  SmallVector<Value> held;
  scope_.walk([&](Operation* op) {
    auto gather = dyn_cast<GatherOp>(op);
    if (!gather || !isTile(gather.getResult()) || !isa<FloatType>(getElementTypeOrSelf(gather.getType())) ||
        shapeOf(gather.getResult()).size() != 1 || !op->getParentOfType<LoopLikeOpInterface>())
      return;
    auto layout = layoutBesideProduct(gather.getResult());
    if (layout && layout->numRegs() <= kFew && choices_.hold(gather.getResult(), *layout))
      held.push_back(gather.getResult());
  });
  return held;
}

std::optional<Layout> LayoutPlan::layoutBesideProduct(Value vector) const {
  constexpr size_t kMost = 16;
  const layout::Shape shape = shapeOf(vector);
  SmallVector<Value> pending{vector};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!isTile(value) || !seen.insert(value).second) continue;
    for (OpOperand& use : value.getUses()) {
      Operation* user = use.getOwner();
      if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()); loop && isa<scf::YieldOp>(user)) {
        pending.push_back(loop.getRegionIterArg(use.getOperandNumber()));  // read an iteration early
      } else if (auto broadcast = dyn_cast<BroadcastOp>(user)) {
        if (MmaOp product = productMeeting(broadcast.getResult()))
          return sourceLayout(broadcast, accumulatorLayout(product)).reshaped(shape);
      } else if (isa<ReshapeOp>(user) || (isElementwise(user) && user->getNumResults() == 1)) {
        pending.push_back(user->getResult(0));
      }
    }
  }
  return std::nullopt;
}

// Large tiles that loops of products load an iteration early are carried in the layout in which they are loaded. They
// are converted where they are used, an iteration later: a conversion behind the load would wait for it.
SmallVector<Value> LayoutPlan::keepAsLoaded() {
  SmallVector<Value> kept;
  scope_.walk([&](Operation* op) {
    if (!isa<scf::ForOp>(op) || !hasProduct(op)) return;
    for (auto& group : carriedGroups(op)) {
      auto load = group[2].getDefiningOp<LoadOp>();  // the value that is carried on
      if (!load || load->getParentOp() != op || tileBytes(load.getResult().getType()) <= kSmallTileBytes) continue;
      const Layout layout = *access_.coalescedLayout(load);
      for (Value tile : group)
        if (choices_.hold(tile, layout)) kept.push_back(tile);
    }
  });
  return kept;
}

// Accumulators that loops carry: in any other layout they would be converted in every iteration.
SmallVector<Value> LayoutPlan::keepAccumulators() {
  SmallVector<Value> kept;
  auto keep = [&](Value tile, const Layout& layout) {
    if (choices_.hold(tile, layout)) kept.push_back(tile);
  };
  scope_.walk([&](Operation* op) {
    auto mma = dyn_cast<MmaOp>(op);
    auto acc = mma ? dyn_cast<BlockArgument>(mma.getAcc()) : BlockArgument();
    auto loop = acc ? dyn_cast<scf::ForOp>(acc.getOwner()->getParentOp()) : scf::ForOp();
    if (!loop) return;
    const Layout layout = accumulatorLayout(mma);
    keep(mma.getResult(), layout);
    for (auto& group : carriedGroups(loop))
      if (llvm::is_contained(group, acc))
        for (Value tile : group) keep(tile, layout);
  });
  return kept;
}

void LayoutPlan::placeAccumulators() {
  auto place = [&](Value acc, Value result, const Layout& layout) {
    choices_.choose(result, layout);
    choices_.choose(acc, layout);
  };
  scope_.walk([&](Operation* op) {
    if (auto mma = dyn_cast<MmaOp>(op)) place(mma.getAcc(), mma.getResult(), accumulatorLayout(mma));
    if (auto mma = dyn_cast<BatchMmaOp>(op)) place(mma.getAcc(), mma.getResult(), batchLayouts(mma, numWarps()).acc);
  });
  choices_.spread();
}

void LayoutPlan::placeBulkStores() {
  scope_.walk([&](Operation* op) {
    auto store = dyn_cast<TmaStoreOp>(op);
    if (!store) return;
    choices_.choose(store.getValue(), tmaStoreLayout(store.getValue().getType().getShape(), numWarps()));
    choices_.spread();
  });
}

void LayoutPlan::placeFirstOperands() {
  scope_.walk([&](Operation* op) {
    if (auto mma = dyn_cast<MmaOp>(op); mma && isTile(mma.getA())) choices_.choose(mma.getA(), operandALayout(mma));
  });
  choices_.spread();
}

// Operands of products that single warps compute are computed by the same warp, so that no warp waits for another.
// Where such an operand is also reduced across its rows (`combined`), a thread gets runs of rows instead of what the
// product wants: the conversion stays within the warp.
void LayoutPlan::placeBatches(bool combined) {
  constexpr int kVectorBytes = 16;
  scope_.walk([&](Operation* op) {
    auto product = dyn_cast<BatchMmaOp>(op);
    if (!product || product.getAcc().getType().getShape()[0] % numWarps() != 0) return;
    for (Value operand : {product.getA(), product.getB()}) {
      if (auto trans = operand.getDefiningOp<TransOp>()) operand = trans.getSource();
      if (combinesRows(operand) != combined) continue;
      const layout::Shape shape = shapeOf(operand), matrix{shape[1], shape[2]};
      const int vector = kVectorBytes / elementBytes(operand.getType());
      const Layout one = combined ? scanLayout(matrix, 0, 1, target_.lanes)
                                  : layout::blocked(matrix, vector, {1, 0}, 1, target_.lanes);
      if (!one.isPadded()) choices_.choose(operand, layout::inBatches(one, shape[0], numWarps()));
      choices_.spread();
    }
  });
}

// Scans across the rows of a tile, and tiles that are cut into blocks of rows: a thread that holds a run of consecutive
// rows needs no other lane for them, and warps still read whole rows of memory. Longest first: shorter ones may be cut
// from these.
void LayoutPlan::placeRunsOfRows() {
  SmallVector<std::pair<Value, int>> acrossRows;
  scope_.walk([&](Operation* op) {
    if (auto scan = dyn_cast<ScanOp>(op)) {
      const int axis = static_cast<int>(scan.getAxis());
      if (axis + 1 < tileType(scan.getSources()[0]).getRank())
        acrossRows.emplace_back(scan.getResults()[0], axis);  // the source may be cheap: it has no layout of its own
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      ArrayRef<int64_t> from = reshape.getSource().getType().getShape(), to = reshape.getResult().getType().getShape();
      if (from.size() == 2 && to.size() > 2 && from[1] == to.back() && from[0] > to[0] && from[1] > 1)
        acrossRows.emplace_back(reshape.getSource(), 0);
    }
  });
  auto lengthOf = [](auto& source) { return tileType(source.first).getDimSize(source.second); };
  llvm::stable_sort(acrossRows, [&](auto& a, auto& b) { return lengthOf(a) > lengthOf(b); });
  for (auto& [source, axis] : acrossRows) {
    const Layout layout = scanLayout(shapeOf(source), axis, numWarps(), target_.lanes);
    // A tile too small to occupy all threads this way would take many registers of those that it occupies.
    if (layout.isPadded()) continue;
    choices_.choose(source, layout);
    choices_.spread();
  }
}

// Matrices that a loop carries in registers, and reduces (or indexes) along their rows in every iteration: fewer lanes
// along a row need fewer shuffles, but longer pieces of the vectors along it (carried_layouts.h). Rows that are loaded
// an iteration early follow them: carried as they would be loaded best, they would be converted in every iteration.
// Loops of at least so many iterations have their say before products that such a matrix comes from or goes to: the
// forward substitution in a chunk of a linear attention, say. There the choice is not between what is best and what is
// usual: without one the matrix lies as its product does.
void LayoutPlan::placeCarriedSums(int64_t fewestTrips) {
  constexpr double kWorthIt = 0.8;  // of what the usual layout costs
  scope_.walk([&](Operation* op) {
    auto loop = dyn_cast<LoopLikeOpInterface>(op);
    if (!isa<scf::ForOp, scf::WhileOp>(op)) return;
    auto counted = dyn_cast<scf::ForOp>(op);
    const auto trips = counted ? counted.getStaticTripCount() : std::nullopt;
    if (fewestTrips && (!trips || trips->slt(fewestTrips))) return;
    for (const CarriedSums& state : carriedSums(loop)) {
      if (choices_.of(state.tile)) continue;
      const Layout usual = defaultLayout(state.tile.getType());
      if (auto better = state.betterLayout(usual, numWarps(), target_.lanes, fewestTrips ? 1 : kWorthIt))
        choices_.choose(state.tile, *better);
      else if (state.isLoadedEarly && !usual.isPadded())
        choices_.choose(state.tile, usual);
      choices_.spread();
    }
  });
}

// Scans along rows: one run of consecutive elements in every lane, if each further run of a lane would cost shuffles of
// several registers, or much work of the combiner.
void LayoutPlan::placeRunsToScan() {
  scope_.walk([&](Operation* op) {
    auto scan = dyn_cast<ScanOp>(op);
    if (!scan || choices_.of(scan.getResults()[0])) return;
    if (auto runs = runsToScan(scan, numWarps(), target_.lanes)) choices_.choose(scan.getResults()[0], *runs);
    choices_.spread();
  });
}

// Tiles that sorts exchange elements of, step after step, keep one layout throughout.
SmallVector<Value> LayoutPlan::keepExchanges() {
  SmallVector<TakeOp> takes;
  SmallVector<Value> kept;
  scope_.walk([&](Operation* op) {
    if (auto take = dyn_cast<TakeOp>(op)) takes.push_back(take);
  });
  for (const Exchanges& exchanges : exchangesInRuns(takes, numWarps(), target_.lanes))
    for (TakeOp take : exchanges.takes)
      for (Value tile : {Value(take.getSource()), Value(take.getResult())})
        if (choices_.hold(tile, exchanges.layout)) kept.push_back(tile);
  return kept;
}

// The column (N x 1) that says where in memory each row of a gather begins, if that was itself read from memory: then
// rows are not neighbours, and it makes no difference which thread reads which row. Null otherwise.
Value LayoutPlan::placesOfRows(GatherOp gather) const {
  SmallVector<Value> pending{gather.getOffsets()};
  Value column;
  while (!pending.empty() && !column) {
    Operation* op = pending.pop_back_val().getDefiningOp();
    auto broadcast = dyn_cast_or_null<BroadcastOp>(op);
    if (broadcast && broadcast.getSource().getType().getDimSize(1) == 1)
      column = broadcast.getSource();
    else if (op && isElementwise(op))
      pending.append(op->operand_begin(), op->operand_end());
  }
  if (!column) return {};
  const int64_t rows = tileType(column).getNumElements();
  pending.assign(1, column);
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    Operation* op = value.getDefiningOp();
    if (!type || type.getNumElements() != rows || !op || !seen.insert(value).second) continue;
    if (isa<LoadOp, GatherOp>(op)) return column;
    if (isElementwise(op) || isa<ReshapeOp>(op)) pending.append(op->operand_begin(), op->operand_end());
  }
  return {};
}

// For a gather of short rows (pairs, colours) at such places: the layout in which the thread that has a row's place
// reads the row. `best` would be chosen otherwise.
std::optional<Layout> LayoutPlan::rowsWherePlaced(Operation* op, const Layout& best) const {
  auto gather = dyn_cast<GatherOp>(op);
  if (!gather || !gather.getOffsets() || best.rank() != 2 || best.isPadded()) return std::nullopt;
  auto isAlong = [](int dim) { return [dim](const layout::Digit& digit) { return digit.dim == dim; }; };
  if (llvm::any_of(best.lanes(), isAlong(1)) || llvm::any_of(best.warps(), isAlong(1))) return std::nullopt;
  const Value column = placesOfRows(gather);
  const auto places = column ? choices_.of(column) : std::nullopt;
  if (!places || places->isPadded() || places->laneReplicas() > 1 || places->warpReplicas() > 1) return std::nullopt;
  std::vector<layout::Digit> regs;
  llvm::copy_if(best.regs(), std::back_inserter(regs), isAlong(1));
  llvm::copy_if(places->regs(), std::back_inserter(regs), isAlong(0));
  return Layout(best.shape(), regs, places->lanes(), places->warps());
}

// Accesses to global memory. Loads come before stores, because a stored tile is computed from loaded ones; large tiles
// before small ones, and wide accesses before narrow ones. What can be read as well under any layout comes last, and
// takes that of the tiles around it.
void LayoutPlan::placeAccesses() {
  SmallVector<Operation*> anchors;
  scope_.walk([&](Operation* op) {
    if (accessOf(op, facts_)) anchors.push_back(op);
  });
  auto rank = [&](Operation* op) {
    const GlobalAccess access = *accessOf(op, facts_);
    const bool isWrite = isa<StoreOp, AccumulateOp, ScatterOp>(op) || addsToMemory(op);
    const int turn = takesAnyLayout(op, access, facts_) ? 2 : isWrite ? 1 : 0;
    return std::tuple(turn, -tileBytes(access.tile.getType()), -access.width.aligned);
  };
  llvm::stable_sort(anchors, [&](Operation* a, Operation* b) { return rank(a) < rank(b); });
  for (Operation* op : anchors) {
    const Value tile = accessOf(op, facts_)->tile;
    Layout best = *access_.coalescedLayout(op);
    if (auto rows = rowsWherePlaced(op, best)) best = *rows;
    auto own = choices_.of(tile);
    if (own && op->getNumResults() && tile == op->getResult(0) && !access_.serves(op, *own, best, false)) {
      choices_.replace(tile, best);  // a conversion goes between it and the others of its group
      continue;
    }
    choices_.choose(tile, best);
    choices_.spread();
  }
}

// Vectors that are broadcast to a tile which any thread can compute (offsets of rows, whether rows are in bounds) are
// computed by the threads that need them, if those need at most kTimes their share: this saves the exchange.
void LayoutPlan::computeWhereUsed(Value tile, const Layout& layout) {
  constexpr int kTimes = 2;
  if (!isCheap(tile)) return;  // it has a layout of its own
  Operation* op = tile.getDefiningOp();
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    Value small = broadcast.getSource();
    const Layout wanted = sourceLayout(broadcast, layout);
    if (wanted.numRegs() > kTimes * defaultLayout(small.getType()).numRegs()) return;
    choices_.choose(small, wanted);
  } else if (op && isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (isTile(operand)) computeWhereUsed(operand, layout);
  }
}

void LayoutPlan::placeAsyncGathersAndScans() {
  scope_.walk([&](Operation* op) {
    if (auto gather = dyn_cast<AsyncGatherOp>(op)) {
      const Layout layout = asyncGatherLayout(gather, facts_, numWarps());
      choices_.choose(gather.getOffsets(), layout);
      computeWhereUsed(gather.getOffsets(), layout);
      if (gather.getMask()) {  // offsets that any thread can compute tell it nothing
        choices_.choose(gather.getMask(), layout);
        computeWhereUsed(gather.getMask(), layout);
      }
    }
    if (auto scan = dyn_cast<ScanOp>(op)) {
      Value result = scan.getResults()[0];
      choices_.choose(result, scanLayout(shapeOf(result), static_cast<int>(scan.getAxis()), numWarps(), target_.lanes));
    }
    choices_.spread();
  });
}

// Matrices that loops carry, or reduce, and that vectors are broadcast to in every iteration (carried_layouts.h): they
// get the layout of the vectors that have the most bytes in one layout. Otherwise these would be converted in every
// iteration.
void LayoutPlan::placeCarriedBesideVectors() {
  scope_.walk([&](Operation* op) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) return;
    for (const CarriedBesideVectors& sums : carriedBesideVectors(loop)) {
      if (isCheap(sums.tile) || choices_.of(sums.tile)) continue;
      std::optional<Layout> best;
      int64_t most = 0;
      for (BroadcastOp broadcast : sums.vectors) {
        auto own = isCheap(broadcast.getSource()) ? std::nullopt : choices_.of(broadcast.getSource());
        auto along = own ? layoutAlongVector(*own, shapeOf(sums.tile)) : std::nullopt;
        if (!along) continue;
        int64_t bytes = 0;
        for (BroadcastOp other : sums.vectors)
          if (!isCheap(other.getSource()) && choices_.of(other.getSource()) == own)
            bytes += tileBytes(other.getSource().getType());
        if (bytes > most) best = std::move(along), most = bytes;
      }
      if (best) choices_.choose(sums.tile, *best);
      choices_.spread();
    }
  });
}

// Tiles that have no layout yet and are reduced along a short axis: every thread reduces the elements that it will
// keep.
void LayoutPlan::placeShortSums() {
  scope_.walk([&](Operation* op) {
    auto reduce = dyn_cast<ReduceOp>(op);
    if (!reduce || llvm::any_of(reduce.getSources(), [&](Value tile) { return choices_.of(tile).has_value(); })) return;
    if (auto own = layoutToCombineIn(reduce, choices_.of(reduce.getResult(0)), numWarps(), target_.lanes))
      choices_.choose(reduce.getSources()[0], *own);
    choices_.spread();
  });
}

// Tiles that are widened on their way into shared memory: threads write neighbouring pieces of 16 bytes, along the dim
// in which the buffer is contiguous (columns of keys that are read turned).
void LayoutPlan::placeWidened() {
  scope_.walk([&](Operation* op) {
    if (auto store = dyn_cast<SmemStoreOp>(op); store && isWidenedInPlace(store.getValue())) {
      const Type type = store.getValue().getType();
      const auto minor = static_cast<int>(store.getTarget().getType().getMinor());
      choices_.choose(store.getValue(), access_.defaultLayout(type, minor));
    }
    choices_.spread();
  });
}

// Tiles that are stored to a buffer whose columns are contiguous: threads hold runs along columns, so that several
// elements are written at a time. (The default layout has runs along rows.)
void LayoutPlan::placeTurned() {
  scope_.walk([&](Operation* op) {
    auto store = dyn_cast<SmemStoreOp>(op);
    if (!store) return;
    const Value tile = store.getValue();
    const auto minor = static_cast<int>(store.getTarget().getType().getMinor());
    auto type = cast<RankedTensorType>(tile.getType());
    if (choices_.of(tile) || type.getRank() != 2 || minor == 1) return;
    choices_.choose(tile, access_.defaultLayout(type, minor));
    choices_.spread();
  });
}

// Tiles that no anchor reached get the default layout.
void LayoutPlan::placeRest() {
  auto place = [&](Value value) {
    if (isTile(value)) choices_.choose(value, defaultLayout(value.getType()));
    choices_.spread();
  };
  scope_.walk([&](Operation* op) {
    for (Region& region : op->getRegions())
      for (Block& block : region) llvm::for_each(block.getArguments(), place);
    llvm::for_each(op->getResults(), place);
  });
}

// ---- answers

Layout LayoutPlan::layoutOf(Value tile) const {
  auto layout = choices_.of(tile);
  return layout ? *layout : defaultLayout(tile.getType());
}

Layout LayoutPlan::groupLayout(Operation* op) const {
  SmallVector<Value> group = sameLayout(op);
  if (auto mma = dyn_cast<MmaOp>(op)) return accumulatorLayout(mma);
  if (auto mma = dyn_cast<BatchMmaOp>(op)) return batchLayouts(mma, numWarps()).acc;
  if (auto gather = dyn_cast<AsyncGatherOp>(op)) return asyncGatherLayout(gather, facts_, numWarps());
  auto chosen = [&]() -> std::optional<Layout> {
    // Results first: their layouts were chosen for what the op itself prefers.
    for (Value tile : op->getResults())
      if (auto layout = choices_.of(tile); layout && llvm::is_contained(group, tile)) return layout;
    for (Value tile : group)
      if (auto layout = choices_.of(tile)) return layout;
    if (auto reduce = dyn_cast<ReduceOp>(op))
      if (auto own = layoutToCombineIn(reduce, choices_.of(reduce.getResult(0)), numWarps(), target_.lanes)) return own;
    return access_.coalescedLayout(op);
  }();
  const Layout layout = chosen ? *chosen : defaultLayout(group[0].getType());
  if (auto scan = dyn_cast<ScanOp>(op); scan && !planScan(layout, static_cast<int>(scan.getAxis())))
    return scanLayout(shapeOf(group[0]), static_cast<int>(scan.getAxis()), numWarps(), target_.lanes);
  return layout;
}

Layout LayoutPlan::reducedLayout(ReduceOp reduce, Value result, const Layout& source) const {
  const Layout wanted = layoutOf(result);
  const bool isRead =
      readsTable(reduce, source, defaultLayout(reduce.getResult(0).getType())) && readsAnyLayout(reduce, wanted);
  return isRead ? wanted : source.sliced(static_cast<int>(reduce.getAxis()));
}

}  // namespace tile::ir
