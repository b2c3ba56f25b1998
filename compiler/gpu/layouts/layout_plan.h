// layout_plan.h - which layout every tile of a kernel should have.
//
// Anchors say what they want, strongest first: accumulators of products, then global accesses from the largest tile
// down. Each choice spreads to all tiles that can follow it for free (layout_choices.h) before the next anchor is
// asked. What nobody reaches gets a default. Cheap tiles (cheap_tiles.h) get no layout: they are computed again
// wherever needed.
#pragma once
#include "compiler/gpu/layouts/layout_choices.h"

namespace tile::ir {

/// A part of a kernel whose tiles live in threads of their own: the region `only`, or all but the region `without`
/// (null: all of it).
struct LayoutScope {
  mlir::func::FuncOp func;
  mlir::Region *only = nullptr, *without = nullptr;
  int numWarps = 0;
  void walk(llvm::function_ref<void(mlir::Operation*)> visit) const;
};

class LayoutPlan {
 public:
  /// In a region of its own every tile is computed again wherever it is wanted: a producer converts nothing.
  LayoutPlan(const LayoutScope& scope, const Target& target);

  bool isCheap(mlir::Value tile) { return cheap_.isCheap(tile); }
  /// The chosen layout; tiles that are cheap have none and give the default of their shape.
  layout::Layout layoutOf(mlir::Value tile) const;
  /// The layout all tiles of `sameLayout(op)` take inside the op.
  layout::Layout groupLayout(mlir::Operation* op) const;
  /// The layout of the result of a reduction that is made from `source`: the source's without the axis, or, where the
  /// result is read from the table that the warps fill, what it was given.
  layout::Layout reducedLayout(ReduceOp reduce, mlir::Value result, const layout::Layout& source) const;
  /// What a store should write from: its value's own layout when that is about as good as a coalesced one.
  layout::Layout storeLayout(mlir::Operation* store, const layout::Layout& own) const {
    return access_.storeLayout(store, own);
  }
  layout::Layout defaultLayout(mlir::Type tile) const { return access_.defaultLayout(tile); }
  int numWarps() const { return scope_.numWarps; }
  const Facts& facts() const { return facts_; }

 private:
  // The anchors, in the order in which they are asked.
  void keepWithShortRows();
  void keepInWarps();
  void keepCostlyVectors();
  llvm::SmallVector<mlir::Value> holdFactors();
  llvm::SmallVector<mlir::Value> keepExchanges();
  llvm::SmallVector<mlir::Value> keepAsLoaded();
  llvm::SmallVector<mlir::Value> keepAccumulators();
  void placeAccumulators();
  void placeBulkStores();
  void placeFirstOperands();
  void placeBatches(bool combined);
  void placeRunsOfRows();
  void placeCarriedSums(int64_t fewestTrips);
  void placeCutMatrices();
  void placeRunsToScan();
  void placeAccesses();
  void placeAsyncGathersAndScans();
  void placeCarriedBesideVectors();
  void placeShortSums();
  void placeWidened();
  void placeTurned();
  void placeRest();

  std::optional<layout::Layout> wholeInWarps(mlir::Value vector) const;
  /// Of a vector, from that of the product whose rows or columns it is computed with.
  std::optional<layout::Layout> layoutBesideProduct(mlir::Value vector) const;
  std::optional<layout::Layout> layoutOfRows(mlir::Value rows) const;
  mlir::Value placesOfRows(mlir::Value offsets) const;
  llvm::SmallVector<mlir::Value> vectorsBehind(mlir::Value column) const;
  std::optional<layout::Layout> rowsWherePlaced(mlir::Operation* op, const layout::Layout& best) const;
  void computeWhereUsed(mlir::Value tile, const layout::Layout& layout);

  LayoutScope scope_;
  const Target& target_;
  Facts facts_;
  AccessLayouts access_;
  CheapTiles cheap_;
  LayoutChoices choices_;
};

}  // namespace tile::ir
