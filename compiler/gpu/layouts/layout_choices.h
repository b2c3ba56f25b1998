// layout_choices.h - the layouts chosen for the tiles of a kernel, and how each choice spreads to all tiles that can
// follow it for free (elementwise work, loops, slices, transposes, reshapes). First come, first served: a tile that has
// a layout keeps it.
#pragma once
#include "compiler/gpu/layouts/access_layout.h"
#include "compiler/gpu/layouts/cheap_tiles.h"
#include "compiler/gpu/forms/layout_links.h"

namespace tile::ir {

class LayoutChoices {
 public:
  LayoutChoices(CheapTiles& cheap, const AccessLayouts& access) : cheap_(cheap), access_(access) {}

  std::optional<layout::Layout> of(mlir::Value tile) const;
  /// Gives the tile this layout, unless it has one or is cheap. The next `spread` extends it to the tiles that can
  /// follow.
  void choose(mlir::Value tile, const layout::Layout& layout);
  void spread();

  /// The same, but other tiles follow only after `follow`. False: the tile had a layout, or is cheap.
  bool hold(mlir::Value tile, const layout::Layout& layout);
  void follow(llvm::ArrayRef<mlir::Value> held) { pending_.append(held.begin(), held.end()); }
  /// Replaces the layout of this tile alone; other tiles of its group keep theirs.
  void replace(mlir::Value tile, const layout::Layout& layout) { chosen_[tile] = layout; }

 private:
  void relate(mlir::Operation* op);
  void relateGroup(llvm::ArrayRef<mlir::Value> group);

  CheapTiles& cheap_;
  const AccessLayouts& access_;
  llvm::DenseMap<mlir::Value, layout::Layout> chosen_;
  llvm::SmallVector<mlir::Value> pending_;
};

}  // namespace tile::ir
