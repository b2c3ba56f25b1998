// row_anchors.cpp - tiles that are reduced, scanned or sorted, and sums that loops carry.
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/access/tma_box.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/carried_layouts.h"
#include "compiler/gpu/layouts/combined_rows.h"
#include "compiler/gpu/layouts/exchanges.h"
#include "compiler/gpu/layouts/layout_plan.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

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
// several registers, or much work of the combiner; or if no access says how the elements should lie (values unpacked
// from words that a table points to: a quarter of the shuffles). Rows only: what is read here and there and put where a
// scan of a vector says is written best by lanes that are neighbours.
void LayoutPlan::placeRunsToScan() {
  scope_.walk([&](Operation* op) {
    auto scan = dyn_cast<ScanOp>(op);
    if (!scan || choices_.of(scan.getResults()[0])) return;
    const Value source = scan.getSources()[0];
    const bool anywhere = tileType(source).getRank() > 1 && isReadHereAndThere(source, facts_);
    if (auto runs = runsToScan(scan, anywhere, numWarps(), target_.lanes))
      choices_.choose(scan.getResults()[0], *runs);
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

}  // namespace tile::ir
