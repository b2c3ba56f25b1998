// across.h - reductions and scans once layouts are known: what happens in registers, between lanes, between warps.
// Shared by place_buffers, assign_layouts and the lowering.
#pragma once
#include <optional>
#include <vector>

#include "compiler/dialect/dialect.h"
#include "compiler/layout/layout.h"

namespace tile::ir {

/// A table in shared memory, per operand: for each element of the tile without the axis (padding included) the values
/// of all `parts` parts of the axis, side by side, or a table of elements for each part (`apart`).
struct PartsTable {
  int64_t parts = 1, partStride = 1;   ///< the latter in values
  std::vector<int64_t> strides;        ///< per dim, in values; 0 for the axis
  std::vector<int64_t> operandOffset;  ///< bytes
  int64_t bytes = 0;
};
PartsTable partsTable(const layout::Layout& source, int axis, int64_t parts, mlir::ValueRange operands,
                      bool apart = false);
/// The table of a reduction across warps. Threads with neighbours of the result write and read them as vectors, without
/// bank conflicts inside a warp.
PartsTable partsTable(ReduceOp reduce);

/// Whether the reduction goes across warps through a table from which the result can be read under this layout of it.
bool readsAnyLayout(ReduceOp reduce, const layout::Layout& result);
/// Whether the result is not broadcast back to the tile that it was reduced from, but used (stored, say) so that each
/// thread needs a part of it only.
bool isSpreadAgain(ReduceOp reduce);

/// Whether threads read the result of a reduction across warps from the table in shared memory that the warps fill,
/// under a layout of its own (`result`), in which no thread holds more of it than its share.
bool readsTable(ReduceOp reduce, const layout::Layout& source, const layout::Layout& result);

/// How many warps share the axis; 1: a reduction stays inside warps.
int64_t warpsAlong(const layout::Layout& layout, int axis);

/// The operation, if the combiner is a single one of its two arguments; null otherwise.
mlir::Operation* soleOperation(ReduceOp reduce, unsigned result);

/// Whether all lanes of a warp lie along the axis, or hold copies of elements of those that do: one instruction (redux)
/// can reduce over them.
bool coversLanes(const layout::Layout& layout, int axis);

/// Whether the reduction is "any" or "all" over all threads with one result: the barrier instruction itself computes it
/// (bar.red), without shared memory.
bool votesAtBarrier(ReduceOp reduce);

/// Whether it is a sum of products: an addition one of whose operands is a product is one instruction with it.
bool sumsProducts(ReduceOp reduce);
/// Whether it is a sum of values selected by flags, or 0: added in sequence, these are additions under a predicate
/// (targets/masked_sums.h).
bool sumsChosen(ReduceOp reduce);

/// Two partial results combine to the same bits whichever comes first: every result is one operation that commutes
/// exactly. (Where LLVM may make one instruction of a product and a sum, rounding depends on which operand the product
/// is; `isRoundedSum` says which results are such sums.)
bool combinesEitherWay(ReduceOp reduce);
bool isRoundedSum(ReduceOp reduce, unsigned result);

/// How the axis is cut, minor to major: registers, lanes, warps, registers. Only such layouts can be scanned.
struct ScanPlan {
  int64_t inner = 1;  ///< consecutive elements in registers
  int lanes = 1;      ///< lanes along the axis, `inner` elements apart
  int laneStep = 1;   ///< from one of them to the next, in lane numbers
  int warps = 1;      ///< warps along the axis, inner * lanes apart
  int warpStep = 1;
  int64_t outer = 1;  ///< repetitions in registers
  bool needsShared() const { return warps > 1; }
};
std::optional<ScanPlan> planScan(const layout::Layout& layout, int axis);
/// Runs of a row that warps and repetitions have, one after another.
int64_t partsOfScan(const ScanPlan& plan, const layout::Layout& layout, int axis);
/// Whether lanes sum up what the parts of a row add, a part each: there are many, and whole warps lie along the axis.
/// Otherwise every thread sums up those in front of its own.
bool sumsUpByLanes(const ScanPlan& plan, const layout::Layout& layout, int axis);
/// Whether a scan under the layout is not much more work than an exchange and a scan under its own (scanLayout).
bool scansWell(const layout::Layout& layout, int axis);
/// A layout that can be scanned, with long runs of the axis in each thread.
layout::Layout scanLayout(const layout::Shape& shape, int axis, int numWarps, int numLanes);

/// A scan along the rows whose values fill several registers, or whose steps are much work (a function): as long a run
/// in every lane as is still read from whole lines. Another one whose elements are read here and there: runs that are
/// written in one piece. Nullopt: none of these, or nothing to gain.
std::optional<layout::Layout> runsToScan(ScanOp scan, bool isReadHereAndThere, int numWarps, int numLanes);

}  // namespace tile::ir
