// count_in_place.h - the pass that keeps tables of counts in shared memory, for gpu.cpp.
#pragma once
#include "compiler/gpu/dot_passes.h"

namespace tile::ir {

/// Histograms that loops add up count in one table in shared memory.
std::unique_ptr<mlir::Pass> createCountInPlacePass(TargetOf target);

}  // namespace tile::ir
