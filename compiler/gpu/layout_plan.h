// layout_plan.h - which layout every tile of a kernel should have.
//
// Anchors say what they want, strongest first: accumulators of products, then global accesses from the largest tile
// down. Each choice spreads to all tiles that can follow it for free (elementwise work, loops, slices, transposes,
// reshapes) before the next anchor is asked. What nobody reaches gets a default. Cheap index tiles (iota, splats,
// constants and a little arithmetic on them) get no layout: they are computed again wherever needed.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"
#include "compiler/targets/target.h"

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

  /// Computed again at every use instead of converted.
  bool isCheap(mlir::Value tile);
  /// The chosen layout; tiles that are cheap have none and give the default of their shape.
  layout::Layout layoutOf(mlir::Value tile);
  /// The layout all tiles of `sameLayout(op)` take inside the op.
  layout::Layout groupLayout(mlir::Operation* op);
  /// What a store should write from: its value's own layout when that is about as good as a coalesced one.
  layout::Layout storeLayout(mlir::Operation* store, const layout::Layout& own);
  layout::Layout defaultLayout(mlir::Type tile);
  /// The threads that want the result of a reduction across warps take it from the table in shared memory that the
  /// warps fill, under a layout of its own: no thread holds more of it than its share.
  bool readsTable(ReduceOp reduce, const layout::Layout& source);
  const Facts& facts() const { return facts_; }
  int numWarps() const { return scope_.numWarps; }

 private:
  void run();
  void keepInWarps();
  llvm::SmallVector<mlir::Value> keepAsLoaded();
  void computeWhereUsed(mlir::Value tile, const layout::Layout& layout);
  void choose(mlir::Value tile, const layout::Layout& layout);
  void spread();
  void relate(mlir::Operation* op);
  void relateGroup(llvm::ArrayRef<mlir::Value> group);
  std::optional<layout::Layout> chosen(mlir::Value tile) const;
  std::optional<layout::Layout> accessLayout(mlir::Operation* op);
  bool servesAccess(mlir::Operation* op, const layout::Layout& own, const layout::Layout& best, bool isStore);
  std::optional<layout::Layout> linesToAdd(mlir::Operation* op, const layout::Layout& own);
  int cost(mlir::Value tile);

  LayoutScope scope_;
  const Target& target_;
  int numWarps_;
  Facts facts_;
  llvm::DenseMap<mlir::Value, layout::Layout> chosen_;
  llvm::DenseMap<mlir::Value, int> cost_;
  llvm::SmallVector<mlir::Value> pending_;
};

/// Tiles (operands and results, in this order) that must have one layout inside the op; empty for ops with other rules.
llvm::SmallVector<mlir::Value> sameLayout(mlir::Operation* op);

/// A layout of the source from which boxes of `shape` are cut by renaming registers: its own, or one a few shuffles away;
/// and that of the box. Nullopt: through shared memory.
std::optional<layout::Layout> layoutToExtractFrom(const layout::Layout& source, const layout::Coord& offset,
                                                  const layout::Shape& shape);
std::optional<layout::Layout> extractedLayout(const layout::Layout& source, const layout::Coord& offset,
                                              const layout::Shape& shape);
/// Values that stand for one tile at the edges of a region op: what enters, the block argument, what comes round, the
/// result. The first is never a use.
llvm::SmallVector<llvm::SmallVector<mlir::Value>> carriedGroups(mlir::Operation* op);

/// Warps for kernels that do not say: 4, more when a thread would hold too much of the largest tile.
int defaultWarps(mlir::func::FuncOp func, const Target& target);

}  // namespace tile::ir
