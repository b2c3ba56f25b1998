// outer_dims.h - matrices of which every program has its own, `(b * T + h) * size` elements behind the first one: what
// counts them becomes dims of a view, which is then the same for all programs, so that the launch can describe it
// (launch_views.h).
#pragma once
#include <optional>

#include "compiler/gpu/access/not_negative.h"

namespace tile::ir {

/// Elements along a dim that nothing bounds: rows of so many begin and end at multiples of 16 bytes.
inline constexpr int64_t kAnySize = INT32_MAX & ~int64_t{15};

/// A dim in front of rows and columns: the program's matrix is the sum of `counts` away from the first.
struct OuterDim {
  llvm::SmallVector<mlir::Value, 2> counts;  ///< none is negative
  llvm::SmallVector<mlir::Value> factors;    ///< of the launch: with `factor` (and the stride of rows) its stride
  int64_t factor = 1;
  bool countsRows = false;
};

/// factor * symbol, which changes from program to program, as a dim: a count times what the launch knows. Nullopt: its
/// count may be negative, or more than 31 bits hold.
std::optional<OuterDim> outerDim(mlir::Value symbol, int64_t factor, bool countsRows, NotNegative& notNegative);
/// Adds a dim to those of a view, or its counts to one with the same stride. False: maps have no room for it.
bool addOuterDim(llvm::SmallVectorImpl<OuterDim>& dims, const OuterDim& dim, size_t most);

/// In elements; `rowStride`: of dims that count rows.
mlir::Value outerStride(mlir::OpBuilder& b, mlir::Location loc, const OuterDim& dim, mlir::Value rowStride = {});
/// Where the program's matrix is along the dim.
mlir::Value outerPlace(mlir::OpBuilder& b, mlir::Location loc, const OuterDim& dim);

/// The number that a sum of scalars is: i32 or i64.
mlir::Value emitSum(mlir::OpBuilder& b, mlir::Location loc, const LinearForm& form, bool narrow);

}  // namespace tile::ir
