// runs.h - places in runs that follow each other: each element of a tile has as many as it says.
#pragma once
#include "compiler/analysis/facts.h"

namespace tile::ir {

/// Two scatters of one iteration meet in no place of different elements: element i has a run of l[i] places, which
/// begins behind those of the elements before it (offsets cumsum(l) - l), and both write at a constant distance into
/// the runs that are longer than that.
bool areInOwnRuns(mlir::Operation* access, mlir::Operation* other, const Facts& facts);

}  // namespace tile::ir
