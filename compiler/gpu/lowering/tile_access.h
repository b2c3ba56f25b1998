// tile_access.h - where the elements of a tile are in global memory: addresses and bounds for runs of registers.
// Addresses are 64-bit: uniform base + one offset per thread; what registers add is uniform or constant.
#pragma once
#include <memory>

#include "compiler/gpu/access_width.h"
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// How a memory op reaches the elements of one run of registers.
class Access {
 public:
  Access(Emitter& e, const layout::Layout& layout) : e(e), layout(layout) {}
  virtual ~Access() = default;

  AccessWidth width;
  /// Of registers that have one element of memory, the first. Empty: not known.
  llvm::SmallVector<size_t> firstAlike;
  /// Whether elements of one access are such.
  bool alikeInRuns = false;
  /// Predicates are made of what memory says, not of places: neighbours' differ anywhere, not at an edge.
  bool isSpotted = false;
  virtual llvm::Value* address(int reg) = 0;
  /// Null: always inside.
  virtual llvm::Value* predicate(int reg) = 0;
  /// Condition under which no predicate is needed, or null when that cannot be said.
  virtual llvm::Value* allInside() = 0;

  /// Elements along the contiguous dim by which what is accessed lies beside the box, either sign; with the constant in
  /// the index not more than its size.
  int64_t ahead = 0;
  /// Elements from the last multiple of `vector` to the constant in the contiguous dim's index.
  virtual int64_t besideAligned(int64_t) const { return 0; }

  /// Of a box read from the access in front of its start on: elements from there to its start, an i32. Null: others.
  llvm::Value* shift = nullptr;

  /// Registers of one access each; registers that are padding, or repeat another register's elements, are left out when
  /// `unique`.
  std::vector<std::vector<int>> runs(int vector, bool unique) const;

 protected:
  Emitter& e;
  const layout::Layout& layout;
};

/// A box of a view. Tile dims are the last view dims.
std::unique_ptr<Access> boxAccess(Emitter& e, LoadOp op, const layout::Layout& layout, int elementBytes);
/// The box from the access of `vector` elements on in which it starts (vectorOfTurnedBox).
std::unique_ptr<Access> turnedBoxAccess(Emitter& e, LoadOp op, const layout::Layout& layout, int elementBytes,
                                        int vector);
std::unique_ptr<Access> boxAccess(Emitter& e, StoreOp op, const layout::Layout& layout, int elementBytes);
std::unique_ptr<Access> boxAccess(Emitter& e, AccumulateOp op, const layout::Layout& layout, int elementBytes);
/// Scalar base + offset tile, optional mask tile.
std::unique_ptr<Access> offsetAccess(Emitter& e, const layout::Layout& layout, mlir::Value ptr, mlir::Value offsets,
                                     mlir::Value mask, int elementBytes);

}  // namespace tile::ir
