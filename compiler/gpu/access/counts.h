// counts.h - tiles that count along one dim (`first + arange`), masks that bound such counts, and who looks at elements
// behind a bound.
#pragma once
#include <optional>

#include "compiler/analysis/linear_form.h"

namespace tile::ir {

/// The same number, perhaps of fewer bits.
mlir::Value numberBehind(mlir::Value v);
/// Sums and products of so few bits are not taken apart: they are numbers of their own.
bool wrapsSoon(mlir::Value v);
/// Operations of one sum that are taken apart.
inline constexpr int kMostParts = 256;
/// Adds a sum of scalars, taken apart, to the form.
void addSum(LinearForm& form, mlir::Value v, int64_t factor);
LinearForm sumOf(mlir::Value v);

/// Element i along the dim is first + scalars + i.
struct Count {
  int dim = -1;
  int64_t first = 0;
  LinearForm scalars;
};
/// Behind broadcasts, wider types, and reshapes of one dim to two: what the tile varies by. Null where that is not
/// along one dim; `dim` stays as it is where the tile does not say.
mlir::Value alongOneDim(mlir::Value tile, int* dim);
/// The scalar of which all elements of a tile are copies, or null.
mlir::Value scalarOf(mlir::Value tile);
std::optional<int64_t> numberOf(mlir::Value tile);
std::optional<Count> countOf(mlir::Value tile, int dim = -1);

/// Elements with count < end.
struct Bound {
  Count count;
  LinearForm end;
  bool operator==(const Bound& other) const;
};
/// Those of which the bound is the smallest: `count < min(a, b)`. Itself where it is none.
llvm::SmallVector<Bound, 2> partsOf(const Bound& bound);
/// Bounds that all elements of a mask keep. False: the mask says more.
bool boundsOf(mlir::Value mask, llvm::SmallVectorImpl<Bound>& bounds, int dim = -1);

/// Whether nobody looks at elements of a matrix that do not keep the bound: what is computed of them, row by row (or
/// column by column), is only stored, under a mask that leaves them out, and no loop that changes the bound goes on with
/// it.
bool isStoredWithin(mlir::Value matrix, int dim, Bound bound);

}  // namespace tile::ir
