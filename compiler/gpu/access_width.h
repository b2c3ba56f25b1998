// access_width.h - how wide a global access may be, from what is known about its addresses. Shared by assign_layouts,
// which shapes layouts after it, and the lowering, which cuts accesses by it.
#pragma once
#include <optional>

#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"
#include "compiler/targets/target.h"
#include "mlir/IR/ValueRange.h"

namespace tile::ir {

/// In elements, powers of two, at most 16 bytes.
struct AccessWidth {
  int dim = -1;     ///< tile dim along which addresses are neighbours; -1: none known
  int aligned = 1;  ///< neighbours one aligned access may take
  int masked = 1;   ///< of those, how many are surely all inside or all outside
};

/// A box of `shape` (the last dims of the view) at `indices`. `fromUnits`: along the contiguous dim it starts where an
/// access does, whatever is known of the index.
AccessWidth boxWidth(const Facts& facts, mlir::Value view, mlir::ValueRange indices, llvm::ArrayRef<int64_t> shape,
                     int elementBytes, bool fromUnits = false);
/// Scalar base + tile of offsets, optional mask (null: none).
AccessWidth offsetWidth(const Facts& facts, mlir::Value ptr, mlir::Value offsets, mlir::Value mask, int elementBytes);
/// What of a width a layout can use: runs of registers bound it, and so does padding.
AccessWidth widthUnder(const AccessWidth& width, const layout::Layout& layout);

/// An index of 32 bits as another one plus a constant; of others, itself plus 0.
std::pair<mlir::Value, int64_t> withoutConstant(mlir::Value index);

/// The box of a load: where other loads read boxes beside it, whose runs are cut from the same accesses, as wide as
/// those.
AccessWidth loadWidth(const Facts& facts, LoadOp load, llvm::ArrayRef<int64_t> shape, int elementBytes);
/// A box that starts a few elements beside an aligned one, along the dim whose elements are neighbours, under a layout
/// whose runs are whole aligned accesses: what a run holds lies in two neighbouring ones, which other such boxes of the
/// same rows want too. The elements of an aligned access; nullopt: no such box, or nothing is saved that way.
std::optional<int> vectorOfShiftedBox(const Facts& facts, LoadOp load, const layout::Layout& layout, int elementBytes);

/// A box that may start anywhere along the dim whose elements are neighbours, of rows whose sizes and places are whole
/// accesses, under a layout whose runs are: what a run holds is cut from two neighbouring accesses, at a place that is
/// the same for all threads. The elements of an access; nullopt: no such box, or elements are better read one by one.
std::optional<int> vectorOfTurnedBox(const Facts& facts, LoadOp load, const layout::Layout& layout, int elementBytes);

/// A tile added to memory of which nobody wants to know what was there: a store that adds, neighbours at once.
bool onlyAdds(AtomicRmwOp op);
/// Neighbours that one instruction adds to memory at most.
int widestAdd(mlir::Type element, const Target& target);

}  // namespace tile::ir
