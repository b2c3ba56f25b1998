// tiles.h - what passes ask about a value that may be a tile, in IR that was checked.
#pragma once
#include "compiler/layout/layout.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

/// A tile, not a scalar.
inline bool isTile(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }
/// Its type.
inline mlir::RankedTensorType tileType(mlir::Value tile) { return llvm::cast<mlir::RankedTensorType>(tile.getType()); }
/// Its shape, as layouts take it.
inline layout::Shape shapeOf(mlir::Value tile) {
  const auto shape = tileType(tile).getShape();
  return {shape.begin(), shape.end()};
}

}  // namespace tile::ir
