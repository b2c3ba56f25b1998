// diagonals.h - matrices whose elements depend on a sum of multiples of row and column only: x[t - k], x[i + k] and the
// masks that say where they are, as operands of filters and of products with Toeplitz and Hankel matrices. Elements of
// one diagonal are the same, and a thread that has a block of them needs to read only one of each.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include "compiler/analysis/facts.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

/// By how much the sum grows from row to row and from column to column.
using Diagonals = std::array<int64_t, 2>;

/// The sum that decides an element of the tile; nullopt: more than one does, or the tile is no matrix.
std::optional<Diagonals> diagonalsOf(mlir::Value tile);
/// Whether elements for which this sum is the same are the same.
bool isAlongDiagonals(mlir::Value tile, Diagonals diagonals);

/// What the mask is the conjunction of.
llvm::SmallVector<mlir::Value> conditionsOf(mlir::Value mask);

/// Whether a mask along diagonals that wants two of a few elements wants all whose diagonals lie between theirs: places
/// inside bounds, as all comparisons say.
bool wantsBetween(mlir::Value mask, Diagonals diagonals, const Facts& facts);

}  // namespace tile::ir
