// layout_links.h - which tiles of an operation lie alike, and how the layout of one gives that of another for free:
// without a shuffle and without a way through shared memory.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// Tiles (operands and results, in this order) that must have one layout inside the op; empty for ops with other rules.
llvm::SmallVector<mlir::Value> sameLayout(mlir::Operation* op);

/// Values that stand for one tile at the edges of a region op: what enters, the block argument, what comes round, the
/// result. The first is never a use.
llvm::SmallVector<llvm::SmallVector<mlir::Value>> carriedGroups(mlir::Operation* op);

/// What the layout of one tile makes of another's; nullopt: that one is not had for free.
using MapLayout = llvm::function_ref<std::optional<layout::Layout>(const layout::Layout&)>;
/// Visits pairs of tiles of the op that may lie differently: slices, transposes, reshapes, pieces, sums. In the order
/// in which they should be asked: what a visit chose, later ones may build on.
void visitLinks(mlir::Operation* op,
                llvm::function_ref<void(mlir::Value from, mlir::Value to, MapLayout map)> visit);

/// The layout of the source of a broadcast under which no lane asks another: `result` without the repeated dims.
layout::Layout sourceLayout(BroadcastOp broadcast, layout::Layout result);

/// A layout of the source from which boxes of `shape` are cut by renaming registers: its own, or one a few shuffles
/// away; and that of the box. Nullopt: through shared memory.
std::optional<layout::Layout> layoutToExtractFrom(const layout::Layout& source, const layout::Coord& offset,
                                                  const layout::Shape& shape);
std::optional<layout::Layout> extractedLayout(const layout::Layout& source, const layout::Coord& offset,
                                              const layout::Shape& shape);

}  // namespace tile::ir
