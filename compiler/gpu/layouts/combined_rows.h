// combined_rows.h - what a kernel does with the rows of a tile (reduces them, weighs them, indexes by them), and
// layouts that save the exchanges between lanes and warps which the usual layout would need for it.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// A layout for the source of a reduction along a short axis, from the layout of its result: the thread that has an
/// element of the result holds all that is reduced to it, if that is at most about twice its share of the tile.
std::optional<layout::Layout> layoutToCombineIn(ReduceOp reduce, const std::optional<layout::Layout>& result,
                                                int numWarps, int numLanes);

/// Whether the vector weighs rows (or columns) of tiles, or says where they are in memory, and the threads of such a
/// tile would hold many times as many of its elements as the `registersOfLane` of a lane when each warp holds it once:
/// threads would repeat each other's work.
bool isForManyRows(mlir::Value vector, int64_t registersOfLane,
                   llvm::function_ref<layout::Layout(mlir::Value)> layoutFor);
/// A product of the same shape that is combined with the tile by elementwise work: its layout will be the tile's. Null:
/// none.
MmaOp productMeeting(mlir::Value tile);

/// Whether what is computed from the tile by elementwise work is cut into blocks of rows (of dim 0), and the blocks are
/// reduced.
bool foldsBlocksOfRows(mlir::Value tile);
/// Whether what the tile is computed from, or what is computed from that, is reduced along another dim than its last.
bool combinesRows(mlir::Value tile);
/// Whether elementwise work combines the tile, or what a loop makes of it, with vectors that loops load and that have
/// an element for each row (of dim 0): threads that hold consecutive rows can load consecutive elements.
bool meetsLoadedColumns(mlir::Value tile);
/// A layout with each short row along `dim` in one thread, if lanes would pad the rows (their length is no power of
/// two: colours of a pixel, coordinates of a point) and there are at least as many rows as threads. Nullopt otherwise.
std::optional<layout::Layout> shortRowsInThreads(const layout::Layout& padded, int dim, int numWarps, int numLanes);
/// For a loaded tile that is cut into blocks which are reduced: a layout in which elements that are reduced together
/// lie in registers or lanes instead of in several warps, so that no warp waits for another. The lanes of a warp must
/// still read whole lines along `dim`, of elements of `bytes` each. Nullopt: no reduction crosses warps, or it would
/// anyway.
std::optional<layout::Layout> blocksInWarps(mlir::Value tile, const layout::Layout& layout, int dim, int bytes);
/// For a loaded tile that is reduced along one short axis only: a layout in which lanes and warps along that axis have
/// changed places with registers along other dims, so that threads exchange nothing. Nullopt: there is no such axis,
/// there are no such registers, or reads along `dim` (of elements of `bytes` each) would use less of the sectors they
/// touch.
std::optional<layout::Layout> axisInThreads(mlir::Value tile, const layout::Layout& layout, int dim, int bytes);
/// For a loaded matrix whose loop adds its rows (dim 0) to vectors, and combines them with others: a layout with warps
/// along the rows instead of across them, if a thread would not have the registers for its elements of all these
/// vectors otherwise. Nullopt: it has, or the other layout needs as many.
std::optional<layout::Layout> rowsAcrossWarps(mlir::Value tile, const layout::Layout& layout, int dim, int numWarps,
                                              const Target& target);
/// The same layout but for the order of rows (dim 0): registers of a thread hold consecutive ones.
layout::Layout withRowsTogether(const layout::Layout& layout);

}  // namespace tile::ir
