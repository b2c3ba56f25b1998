// planes.h - places as far apart as all elements reach: the planes of an array of fields, x[field * n + i] with i < n;
// and the fields of records, x[i * 24 + field], of any number of elements.
#pragma once
#include "compiler/analysis/facts.h"

namespace tile::ir {

/// Two accesses through pointers never meet, whichever of their elements: both move one tile of places, a multiple of
/// numbers that a mask keeps between 0 and n, by other multiples of n, or by less than that multiple. `earlier`: where
/// `access` happened in an earlier iteration of that loop (null: in the same one). Products are taken not to wrap
/// (dsl/README.md, rule 5).
bool areOtherPlanes(mlir::Operation* access, mlir::Operation* other, mlir::Operation* earlier, const Facts& facts);

}  // namespace tile::ir
