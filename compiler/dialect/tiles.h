// tiles.h - what passes ask about a value that may be a tile, in IR that was checked.
#pragma once
#include <optional>

#include "compiler/layout/layout.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

/// A tile, not a scalar.
inline bool isTile(mlir::Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }
/// Its type.
inline mlir::RankedTensorType tileType(mlir::Value tile) { return llvm::cast<mlir::RankedTensorType>(tile.getType()); }
/// Its type; none: a scalar.
inline mlir::RankedTensorType tileTypeOrNone(mlir::Value value) {
  return llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
}
/// Its shape, as layouts take it.
inline layout::Shape shapeOf(mlir::Value tile) {
  const auto shape = tileType(tile).getShape();
  return {shape.begin(), shape.end()};
}
/// From an element to the next along `dim`, in elements in their order.
inline int64_t distanceAlong(llvm::ArrayRef<int64_t> shape, int64_t dim) {
  int64_t elements = 1;
  for (int64_t size : shape.drop_front(dim + 1)) elements *= size;
  return elements;
}
/// The dim of a reshape's source that `dim` of its result is, alone; nullopt: none.
inline std::optional<int64_t> sourceDim(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, int64_t dim) {
  for (int64_t d = 0; d < static_cast<int64_t>(from.size()); ++d)
    if (from[d] == to[dim] && distanceAlong(from, d) == distanceAlong(to, dim)) return d;
  return std::nullopt;
}

}  // namespace tile::ir
