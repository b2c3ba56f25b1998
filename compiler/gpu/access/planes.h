// planes.h - accesses to different fields that never overlap: of a structure of arrays, x[field * n + i] with i < n,
// and of an array of structures, x[i * 24 + field], with any number of fields.
#pragma once
#include "compiler/analysis/facts.h"

namespace tile::ir {

/// Whether two accesses through pointers never touch the same element. The offsets of both must be a constant factor
/// times one tile of indices, plus different numbers. Then they are apart if the difference of the numbers is no
/// multiple of the factor, or if a mask keeps the indices below some n, or a branch is taken only for such n, and the
/// difference is at least n times the factor. `earlier`: the loop in an earlier iteration of which `access` happened (null: in the same one). Products are
/// assumed not to wrap (dsl/README.md, rule 5).
bool areOtherPlanes(mlir::Operation* access, mlir::Operation* other, mlir::Operation* earlier, const Facts& facts);

/// The same of one iteration where it takes more numbers that are not zero, which are returned: planes of ny rows,
/// x[(field * ny + row) * nx + i] with i < nx, are ny limits apart. None: it is not so, or they are apart anyway.
llvm::SmallVector<mlir::Value> otherPlanesUnlessZero(mlir::Operation* access, mlir::Operation* other,
                                                     const Facts& facts);

}  // namespace tile::ir
