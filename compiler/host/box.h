// box.h - where a tile of a view lies: its address, and which of its elements are inside the view.
#pragma once
#include "compiler/host/emitter.h"

namespace tile::ir::host {

struct Box {
  llvm::SmallVector<int64_t, 4> shape;        ///< of the tile; empty for a scalar
  llvm::SmallVector<llvm::Value*, 4> stride;  ///< of the view, per tile dim
  llvm::Value* origin = nullptr;              ///< address of element (0, 0, ..), which may itself be outside
  /// Per tile dim: elements [low, high) are inside. All empty when a leading index is outside.
  llvm::SmallVector<llvm::Value*, 4> low, high;
  llvm::Value* whole = nullptr;  ///< i1: every element is inside

  Box(Emitter& e, mlir::Value viewValue, mlir::OperandRange indices, mlir::Type tile);
  Box(Emitter& e, const View& view, llvm::ArrayRef<llvm::Value*> indices, mlir::Type element, mlir::Type tile);
  /// The same box inside a shared function: its numbers are that function's parameters, in the order of `words`.
  Box(const Box& outside, llvm::ArrayRef<llvm::Value*> parameters);
  llvm::SmallVector<llvm::Value*> words() const;

  /// All of it is inside, as is known of the access (kInsideAttr).
  void isInside(Emitter& e);
  /// The dim from which on the box is walked as one row, where isTogether: the last one but for short rows (colours of a
  /// pixel), which are a loop each otherwise.
  size_t rowsFrom() const;
  /// i1: elements of the dims from `first` on lie as a tile's would, and all dims behind `first` are inside whole.
  llvm::Value* isTogether(Emitter& e, size_t first) const;
  /// The dims from `first` on as one.
  Box together(Emitter& e, size_t first) const;
};

/// A view and the indices of a box in it (i64), as parameters of a shared function. Strides that are known stay known.
class BoxWords {
 public:
  BoxWords(Emitter& e, mlir::Value view, mlir::OperandRange indices);
  const llvm::SmallVector<llvm::Value*>& words() const { return words_; }
  std::string name() const;  ///< of what is known
  /// The same inside the function, whose first parameters are `words`.
  std::pair<View, llvm::SmallVector<llvm::Value*>> inside(llvm::ArrayRef<llvm::Value*> parameters) const;

 private:
  size_t rank_;
  llvm::SmallVector<llvm::Value*> words_;
};

/// Loops over the clipped outer dims; `row` gets their indices.
void clippedRows(Emitter& e, const Box& box, llvm::function_ref<void(llvm::ArrayRef<llvm::Value*>)> row);
/// Elements from the box's origin to the row at `index`.
llvm::Value* rowOffset(Emitter& e, const Box& box, llvm::ArrayRef<llvm::Value*> index);

}  // namespace tile::ir::host
