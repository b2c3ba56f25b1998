// tile_access.h - where the elements of a tile are in global memory: addresses and bounds for runs of registers.
// Addresses are 64-bit: uniform base + one offset per thread; what registers add is uniform or constant.
#pragma once
#include <memory>

#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/lowering/emitter.h"

namespace tile::ir {

/// How the elements of a tile in global memory are addressed, register by register, by each thread.
class Access {
 public:
  Access(Emitter& e, const layout::Layout& layout) : e(e), layout(layout) {}
  virtual ~Access() = default;

  AccessWidth width;
  /// For each register the first one that holds the same element of memory. Empty: unknown.
  llvm::SmallVector<size_t> firstAlike;
  /// For each register the first one at the same place, whose mask may be another. Empty: unknown, or as firstAlike.
  llvm::SmallVector<size_t> firstPlace;
  /// Where there are such: the parts of the predicate that all registers at the place share, and the register's own.
  virtual llvm::Value* predicateOfPlace(int) { return nullptr; }
  virtual llvm::Value* ownPredicate(int reg) { return predicate(reg); }
  /// Whether registers that one access could cover hold the same element.
  bool alikeInRuns = false;
  /// Predicates come from memory (flags), not from indices: those of neighbours may differ anywhere, not only at an
  /// edge.
  bool isSpotted = false;
  virtual llvm::Value* address(int reg) = 0;
  /// Whether the element is accessed. Null: always.
  virtual llvm::Value* predicate(int reg) = 0;
  /// A condition under which no predicate is needed; null if there is none.
  virtual llvm::Value* allInside() = 0;

  /// Offset, in elements along the contiguous dim, of what is accessed from the box. It may be negative; together with
  /// the constant part of the index it is at most the size of the box.
  int64_t ahead = 0;
  /// The constant part of the index along the contiguous dim, modulo `vector`.
  virtual int64_t besideAligned(int64_t) const { return 0; }

  /// For a box that is read from an aligned address in front of its start: how many elements (i32) lie in between.
  /// Null: other boxes.
  llvm::Value* shift = nullptr;

  /// The registers of each access of up to `vector` elements. Registers that are padding are left out, with `unique`
  /// also those that repeat another register's element.
  std::vector<std::vector<int>> runs(int vector, bool unique) const;

 protected:
  Emitter& e;
  const layout::Layout& layout;
};

/// A box of a view. The tile's dims are the last dims of the view.
std::unique_ptr<Access> boxAccess(Emitter& e, LoadOp op, const layout::Layout& layout, int elementBytes);
/// The same, read in accesses of `vector` elements from the aligned one on in which the box starts (vectorOfTurnedBox).
std::unique_ptr<Access> turnedBoxAccess(Emitter& e, LoadOp op, const layout::Layout& layout, int elementBytes,
                                        int vector);
std::unique_ptr<Access> boxAccess(Emitter& e, StoreOp op, const layout::Layout& layout, int elementBytes);
std::unique_ptr<Access> boxAccess(Emitter& e, AccumulateOp op, const layout::Layout& layout, int elementBytes);
/// Scalar base + offset tile, optional mask tile.
std::unique_ptr<Access> offsetAccess(Emitter& e, const layout::Layout& layout, mlir::Value ptr, mlir::Value offsets,
                                     mlir::Value mask, int elementBytes);

}  // namespace tile::ir
