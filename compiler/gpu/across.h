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
/// Of a reduction across warps. Threads with neighbours of the result write and read these in vectors, and no two of a
/// warp's in one bank.
PartsTable partsTable(ReduceOp reduce);

/// A reduction across warps goes through a table: its result can be read from there under this layout of it.
bool readsAnyLayout(ReduceOp reduce, const layout::Layout& result);
/// Reduced values that only few threads need, each a part: what is made of them is stored, say, not spread over the
/// tile they were reduced from.
bool isSpreadAgain(ReduceOp reduce);

/// The threads that want the result of a reduction across warps take it from the table in shared memory that the warps
/// fill, under a layout of its own (`result`): no thread holds more of it than its share.
bool readsTable(ReduceOp reduce, const layout::Layout& source, const layout::Layout& result);

/// Warps that share the axis; 1: a reduction stays inside warps.
int64_t warpsAlong(const layout::Layout& layout, int axis);

/// The one operation that makes a result of the pair's own two values; null: something else.
mlir::Operation* soleOperation(ReduceOp reduce, unsigned result);

/// All lanes of a warp lie along the axis, or hold the same as others that do: one instruction combines them all.
bool coversLanes(const layout::Layout& layout, int axis);

/// Whether some or all elements of a tile hold: where all threads lie along the axis, and one value comes out, threads
/// learn it from the barrier at which they meet. Needs no shared memory.
bool votesAtBarrier(ReduceOp reduce);

/// A sum of products: where an addition has a product as one of its operands, both are one instruction.
bool sumsProducts(ReduceOp reduce);
/// It adds what flags choose, or 0: one after the other these are additions under a predicate (targets/masked_sums.h).
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
/// A layout that can be scanned, with long runs of the axis in each thread.
layout::Layout scanLayout(const layout::Shape& shape, int axis, int numWarps, int numLanes);

/// A scan along the rows whose values fill several registers, or whose steps are much work (a function): as long a run in
/// every lane as is still read from whole lines. Nullopt: neither, or nothing to gain.
std::optional<layout::Layout> runsToScan(ScanOp scan, int numWarps, int numLanes);

}  // namespace tile::ir
