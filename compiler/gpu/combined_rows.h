// combined_rows.h - layouts for tiles whose rows a kernel combines: exchanges between lanes and warps that a better
// place of the elements saves.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"
#include "compiler/targets/target.h"

namespace tile::ir {

/// A matrix that a loop carries and combines along one axis in every iteration, or looks up along it (an array that
/// every row has for itself: a stack, a board), with elementwise work and vectors only.
struct CarriedSums {
  mlir::Value tile;  ///< the loop's argument
  int axis = 0;
  int sums = 0;                ///< reductions along the axis in an iteration
  int along = 0, across = 0;  ///< vectors along the axis, and across it, that meet the tile in an iteration
  int takes = 0;              ///< lookups along the axis in an iteration, one of each row

  /// The layout with as many lanes along the axis as cost least, where that is clearly less than what `usual` costs:
  /// fewer lanes need fewer exchanges for a sum, but each holds a longer piece of the vectors along the axis.
  std::optional<layout::Layout> betterLayout(const layout::Layout& usual, int numWarps, int numLanes) const;

 private:
  double cost(int64_t lanes, int64_t warps, int64_t threads) const;
  std::optional<layout::Layout> layoutOf(int lanes, int numWarps, int numLanes) const;
};
std::vector<CarriedSums> carriedSums(mlir::LoopLikeOpInterface loop);
/// Matrices that a loop carries and combines along no axis: elementwise work and vectors only. With the vectors
/// that are spread over such tiles in an iteration; those without any are left out. Or matrices that it makes of vectors
/// and adds up along these, to a few sums that it carries (of groups, say).
struct CarriedBesideVectors {
  mlir::Value tile;  ///< the loop's argument, or what is added up
  llvm::SmallVector<BroadcastOp> vectors;
};
std::vector<CarriedBesideVectors> carriedBesideVectors(mlir::scf::ForOp loop);
/// The layout of a matrix that a vector of this layout is spread over, with the other dim in registers. Nullopt: some
/// threads of the vector hold the same elements, so that others could share the other dim.
std::optional<layout::Layout> layoutAlongVector(const layout::Layout& vector, const layout::Shape& shape);

/// A layout of what is combined along a short axis, from that of the result: the whole axis in registers of the thread
/// that has the result, if that is no more than about its share of the tile.
std::optional<layout::Layout> layoutToCombineIn(ReduceOp reduce, const std::optional<layout::Layout>& result,
                                                int numWarps, int numLanes);

/// The vector weighs or places the rows (or columns) of tiles, and their threads would hold many times what a lane has
/// of it: all those would compute the same.
bool isForManyRows(mlir::Value vector, int64_t registersOfLane,
                   llvm::function_ref<layout::Layout(mlir::Value)> layoutFor);
/// The product of the same shape that meets the tile in elementwise work: it says how the tile lies. Null: none.
MmaOp productMeeting(mlir::Value tile);

/// What is computed from the tile, element by element, is cut into blocks of rows (of dim 0) that are combined.
bool foldsBlocksOfRows(mlir::Value tile);
/// What the tile is computed from, or what is computed from that, is combined along another dim than its last.
bool combinesRows(mlir::Value tile);
/// The tile, or what a loop makes of it, meets vectors with an element for each row (of dim 0) that loops load: runs of
/// rows in a thread read them in runs.
bool meetsLoadedColumns(mlir::Value tile);
/// Short rows along `dim` whose length is no power of two (colours of a pixel, coordinates of a point), which lanes
/// would pad: each in one thread, if there are enough for all. Nullopt: they are not like that.
std::optional<layout::Layout> shortRowsInThreads(const layout::Layout& padded, int dim, int numWarps, int numLanes);
/// The layout of a loaded tile with elements that are combined out of blocks of it (cut and put together in between)
/// moved from warps to registers, or to lanes as long as those of a warp have whole lines of `bytes` each along `dim`:
/// no warp waits for another. Nullopt: warps combine nothing of it, or would all the same.
std::optional<layout::Layout> blocksInWarps(mlir::Value tile, const layout::Layout& layout, int dim, int bytes);
/// The layout of a loaded tile whose elements are combined along one short axis alone, with lanes and warps along it
/// changed for registers along other dims: threads pass each other nothing. Nullopt: there is no such axis, they have
/// no such registers, or what is read along `dim` (in elements of `bytes` each) would fill sectors less.
std::optional<layout::Layout> axisInThreads(mlir::Value tile, const layout::Layout& layout, int dim, int bytes);
/// The layout of a loaded matrix with warps moved from its rows (dim 0) to pieces of them, where threads with whole rows
/// would not have the registers for the vectors along rows that its loop adds rows to and meets them with. Sums of rows
/// then pass between warps, but those have an element each. Nullopt: they would, or pieces are no better.
std::optional<layout::Layout> rowsAcrossWarps(mlir::Value tile, const layout::Layout& layout, int dim, int numWarps,
                                              const Target& target);
/// The same pieces of rows in the same lanes, but neighbouring rows (of dim 0) in registers of one thread.
layout::Layout withRowsTogether(const layout::Layout& layout);

}  // namespace tile::ir
