// access_layout.h - under which register layouts tiles are read from and written to global memory well.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/layout/layout.h"
#include "compiler/targets/target.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

constexpr int64_t kSmallTileBytes = 4096;  ///< of no consequence how it is read

class AccessLayouts {
 public:
  AccessLayouts(const Facts& facts, const Target& target, int numWarps)
      : facts_(facts), target_(target), numWarps_(numWarps) {}

  /// Of a tile that no access says anything about: 16 bytes per thread along the rows, as far as they go round.
  /// The same along the dim `fastest` (-1: the last one).
  layout::Layout defaultLayout(mlir::Type tile, int fastest = -1) const;
  /// The coalesced layout of an access: 16 bytes per thread along the contiguous dim, less for tiles too small to give
  /// every thread that much. Nullopt: the op accesses no global memory.
  std::optional<layout::Layout> coalescedLayout(mlir::Operation* op) const;
  /// Whether the access is about as good under its tile's own layout as under the coalesced one.
  bool serves(mlir::Operation* op, const layout::Layout& own, const layout::Layout& coalesced, bool isStore) const;
  /// What a store should write from: its value's own layout when that serves.
  layout::Layout storeLayout(mlir::Operation* store, const layout::Layout& own) const;

 private:
  bool scattersShortRows(mlir::Operation* op, const layout::Layout& own, const layout::Layout& best) const;
  std::optional<layout::Layout> linesToAdd(mlir::Operation* op, const layout::Layout& own) const;
  std::optional<layout::Layout> wholeSectors(mlir::Operation* op, const layout::Layout& own) const;
  layout::Layout blocked(const layout::Shape& shape, int vector, int fastest) const;
  int shareOf(int64_t elements, int vector) const;
  int widestToStore(mlir::Value loaded, int vector, int dim) const;
  bool isBesidePlaces(mlir::Value tile) const;
  bool isBesideRuns(mlir::Value tile) const;

  const Facts& facts_;
  const Target& target_;
  int numWarps_;
};

}  // namespace tile::ir
