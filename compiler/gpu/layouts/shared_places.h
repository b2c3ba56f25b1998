// shared_places.h - gathers whose places are found by divisions that neighbours have in common.
#pragma once
#include "compiler/analysis/facts.h"
#include "mlir/IR/Operation.h"

namespace tile::ir {

/// The elements next to each other along a vector of offsets that one thread should read, although lanes next to each
/// other would need fewer lines of memory at a time: where `i / W`, `i / (W * H)` and so on of a flat index are the
/// same for all of them (W is a multiple of 16, say), the thread divides once. 1: that is not worth it.
int64_t runOfPlaces(mlir::Operation* op, const Facts& facts);

}  // namespace tile::ir
