// layout_links.h - which tiles of an operation need the same layout, and for which others the layout of one determines
// a layout of the other that costs nothing: no shuffle, and no exchange through shared memory.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// Tiles (operands and results, in this order) that must have one layout inside the op; empty for ops with other rules.
llvm::SmallVector<mlir::Value> sameLayout(mlir::Operation* op);

/// Values that stand for one tile at the edges of a region op: the initial value, the block argument, the yielded value
/// and the result. The first of a group is never a use.
llvm::SmallVector<llvm::SmallVector<mlir::Value>> carriedGroups(mlir::Operation* op);

/// The free layout of one tile for a given layout of another. Nullopt: there is none.
using MapLayout = llvm::function_ref<std::optional<layout::Layout>(const layout::Layout&)>;
/// Visits pairs of tiles of the op with different layouts: slices, transposes, reshapes, pieces, sums. The order
/// matters: later visits may depend on what earlier ones chose.
void visitLinks(mlir::Operation* op,
                llvm::function_ref<void(mlir::Value from, mlir::Value to, MapLayout map)> visit);

/// The layout of the source of a broadcast that needs no exchange: `result` without the repeated dims.
layout::Layout sourceLayout(BroadcastOp broadcast, layout::Layout result);

/// A layout of the source of which boxes of `shape` are renamed registers: its own, or one that takes a few shuffles;
/// and the layout of the box. Nullopt: the box is cut through shared memory.
std::optional<layout::Layout> layoutToExtractFrom(const layout::Layout& source, const layout::Coord& offset,
                                                  const layout::Shape& shape);
std::optional<layout::Layout> extractedLayout(const layout::Layout& source, const layout::Coord& offset,
                                              const layout::Shape& shape);

}  // namespace tile::ir
