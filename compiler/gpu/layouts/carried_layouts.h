// carried_layouts.h - layouts for matrices that loops carry in registers from iteration to iteration (the state of a
// recurrence, the accumulators of statistics): any layout change would cost an exchange between threads in every
// iteration.
#pragma once
#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// A matrix that a loop carries, or reads from in front of it, and in every iteration reduces along one axis, or
/// indexes along it (`take`: every row is an array of its own, such as a stack or a board). Everything else in the loop
/// is elementwise work on the matrix and on vectors that are broadcast to it.
struct CarriedSums {
  mlir::Value tile;  ///< the loop's argument, or the matrix that stays
  int axis = 0;
  int sums = 0;                ///< reductions along the axis per iteration
  int along = 0, across = 0;   ///< vectors along the axis, and across it, that are broadcast to the tile per iteration
  int takes = 0;               ///< lookups along the axis per iteration, of one element in each row
  bool isLoadedEarly = false;  ///< the loop loads vectors for the next iteration

  /// The layout with the cheapest number of lanes along the axis, if it costs less than `worthIt` times what `usual`
  /// does: fewer lanes need fewer shuffles for a sum, but each holds a longer piece of the vectors along the axis.
  std::optional<layout::Layout> betterLayout(const layout::Layout& usual, int numWarps, int numLanes,
                                             double worthIt) const;

 private:
  double cost(int64_t lanes, int64_t warps, int64_t threads) const;
  std::optional<layout::Layout> layoutOf(int lanes, int numWarps, int numLanes) const;
};
std::vector<CarriedSums> carriedSums(mlir::LoopLikeOpInterface loop);
/// A matrix that should lie as the vectors do that are broadcast to it in every iteration. Either the loop carries it
/// and does elementwise work on it only; or the loop makes it of vectors, and reduces it along these to a few sums that
/// it carries (one for each group, say).
struct CarriedBesideVectors {
  mlir::Value tile;                        ///< the loop's argument, or the matrix that is reduced
  llvm::SmallVector<BroadcastOp> vectors;  ///< at least one
};
std::vector<CarriedBesideVectors> carriedBesideVectors(mlir::scf::ForOp loop);
/// The layout of a matrix of `shape` in which every thread holds the rows (or columns) of its elements of `vector`, the
/// layout of a vector that is broadcast to it. Nullopt: several threads hold the same elements of the vector, so that
/// the other dim could be divided between them.
std::optional<layout::Layout> layoutAlongVector(const layout::Layout& vector, const layout::Shape& shape);

}  // namespace tile::ir
