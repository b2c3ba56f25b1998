// tiles_under_layouts.h - a tile under another layout than its own: converted, loaded again, read from shared memory
// again, or computed again, whichever costs least.
#pragma once
#include <utility>

#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/layouts/layout_plan.h"

namespace tile::ir {

class TilesUnderLayouts {
 public:
  explicit TilesUnderLayouts(LayoutPlan& plan) : plan_(plan) {}

  /// Notes how wide the access of a load or gather may be. To be asked for all of them before tiles are wanted: nothing
  /// is known of the clones that operands become.
  void recordWidth(mlir::Operation* load);
  /// The tile under a layout: itself, a conversion, or a clone of its computation.
  mlir::Value under(mlir::Value tile, const layout::Layout& layout);

 private:
  mlir::Value transposedUnder(TransOp trans, const layout::Layout& layout);
  int64_t sectorsOfWarp(LoadOp load, const layout::Layout& layout) const;
  int accessesUnder(mlir::Operation* load, const layout::Layout& layout) const;
  mlir::Value loadedUnder(mlir::OpBuilder& builder, mlir::Value tile, const layout::Layout& layout);
  mlir::Value readUnder(mlir::Value tile, const layout::Layout& layout);
  mlir::Value readAgain(mlir::Value tile, const layout::Layout& layout);
  bool isReadAgain(mlir::Value tile, const layout::Layout& layout);
  bool isMadeOfInvariants(mlir::Value tile, const layout::Layout& layout);
  bool isMadeOfLoads(mlir::Value tile, const layout::Layout& layout, int& loads, int& ops);
  mlir::Value cheapUnder(mlir::Value tile, const layout::Layout& layout);
  layout::Layout operandLayout(mlir::Operation* op, mlir::Value operand, const layout::Layout& layout);

  LayoutPlan& plan_;
  llvm::DenseMap<mlir::Operation*, AccessWidth> widths_;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> converted_;
  llvm::DenseMap<std::pair<mlir::Operation*, mlir::Attribute>, mlir::Operation*> clones_;
};

void setLayout(mlir::Value tile, const layout::Layout& layout);
/// Right behind the definition of the tile. For results of a pipelined loop, behind the wait for its last copies, so
/// that conversions may use the memory of its stages.
mlir::OpBuilder behind(mlir::Value tile);

}  // namespace tile::ir
