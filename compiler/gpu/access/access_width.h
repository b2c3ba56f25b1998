// access_width.h - how many neighbours one access to global memory can have, from what is known about its addresses.
// Used by assign_layouts, which chooses layouts by it, and by the lowering, which cuts accesses by it.
#pragma once
#include <optional>

#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"
#include "compiler/targets/target.h"
#include "mlir/IR/ValueRange.h"

namespace tile::ir {

/// Widths are in elements, powers of two, at most 16 bytes.
struct AccessWidth {
  int dim = -1;     ///< tile dim along which addresses are neighbours; -1: none known
  int aligned = 1;  ///< neighbours in one aligned access
  int masked = 1;   ///< of these, how many are always all in bounds or all out of bounds
};

/// For a box of `shape` (the last dims of the view) at `indices`. `fromUnits`: assume that it starts at an aligned
/// access along the contiguous dim, whatever is known of the index.
AccessWidth boxWidth(const Facts& facts, mlir::Value view, mlir::ValueRange indices, llvm::ArrayRef<int64_t> shape,
                     int elementBytes, bool fromUnits = false);
/// For a scalar base + tile of offsets, with an optional mask (null: none).
AccessWidth offsetWidth(const Facts& facts, mlir::Value ptr, mlir::Value offsets, mlir::Value mask, int elementBytes);
/// How much of a width a layout can use: it is limited by runs of registers, and by padding.
AccessWidth widthUnder(const AccessWidth& width, const layout::Layout& layout);

/// An index as another value and the constants added to it, as long as they come to `most` at most.
std::pair<mlir::Value, int64_t> withoutConstants(mlir::Value index, int64_t most);
/// The same for a 32-bit index and constants near it; any other index as itself plus 0.
std::pair<mlir::Value, int64_t> withoutConstant(mlir::Value index);

/// For the box of a load. If other loads read boxes next to it that are cut from the same aligned accesses, the width
/// of these accesses.
AccessWidth loadWidth(const Facts& facts, LoadOp load, llvm::ArrayRef<int64_t> shape, int elementBytes);
/// For a box that starts a constant number of elements beside an aligned one along the contiguous dim (a neighbour in a
/// stencil), under a layout whose runs are as long as aligned accesses: each run lies in two neighbouring accesses,
/// which other such boxes need, too. The elements of an access. Nullopt: another box, or nothing is saved.
std::optional<int> vectorOfShiftedBox(const Facts& facts, LoadOp load, const layout::Layout& layout, int elementBytes);

/// For a box that may start anywhere along the contiguous dim (known at run time), in rows that are aligned and whole
/// accesses long, under a layout whose runs are as long as accesses: each run is cut from two neighbouring accesses, at
/// a position that is the same for all threads. The elements of an access. Nullopt: another box, or single elements are
/// better.
std::optional<int> vectorOfTurnedBox(const Facts& facts, LoadOp load, const layout::Layout& layout, int elementBytes);

/// Whether it is an addition to memory whose result is not used: a store that adds, several neighbours at a time.
bool onlyAdds(AtomicRmwOp op);
/// The most neighbours that one instruction adds to memory.
int widestAdd(mlir::Type element, const Target& target);

}  // namespace tile::ir
