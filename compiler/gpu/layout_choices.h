// layout_choices.h - the layouts chosen for the tiles of a kernel, and how each choice spreads to all tiles that can
// follow it for free (elementwise work, loops, slices, transposes, reshapes). First come, first served: a tile that has
// a layout keeps it.
#pragma once
#include "compiler/gpu/access_layout.h"
#include "compiler/gpu/cheap_tiles.h"
#include "compiler/gpu/layout_links.h"

namespace tile::ir {

class LayoutChoices {
 public:
  LayoutChoices(CheapTiles& cheap, const AccessLayouts& access) : cheap_(cheap), access_(access) {}

  std::optional<layout::Layout> of(mlir::Value tile) const;
  /// Unless the tile has one, or is cheap, it gets this layout, and so does at the next `spread` what can follow it.
  void choose(mlir::Value tile, const layout::Layout& layout);
  void spread();

  /// As `choose`, but nothing follows before `follow` asks for it. False: the tile had a layout, or needs none.
  bool hold(mlir::Value tile, const layout::Layout& layout);
  void follow(llvm::ArrayRef<mlir::Value> held) { pending_.append(held.begin(), held.end()); }
  /// The tile alone; the others of its group keep theirs.
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
