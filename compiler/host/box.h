// box.h - where a tile of a view lies: its address, and which of its elements are inside the view.
#pragma once
#include "compiler/host/emitter.h"

namespace tile::ir::host {

struct Box {
  View view;
  int64_t leading = 0;              ///< view dims in front of the tile's own
  llvm::SmallVector<int64_t, 4> shape;
  llvm::Value* origin = nullptr;    ///< address of element (0, 0, ..), which may itself be outside
  /// Per tile dim: elements [low, high) are inside. All empty when a leading index is outside.
  llvm::SmallVector<llvm::Value*, 4> low, high;
  llvm::Value* whole = nullptr;     ///< i1: every element is inside

  Box(Emitter& e, mlir::Value viewValue, mlir::OperandRange indices, mlir::Type tile);
  llvm::Value* stride(int64_t dim) const { return view.strides[leading + dim]; }
};

}  // namespace tile::ir::host
