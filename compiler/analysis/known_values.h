// known_values.h - integer tiles whose every element is known while compiling: made of indices and constants alone.
#pragma once
#include <optional>
#include <vector>

#include "compiler/analysis/memo.h"
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The elements in row-major order, sign-extended; nullopt when anything else goes in, or for more than 2^16 elements.
std::optional<std::vector<int64_t>> knownValues(mlir::Value tile);

/// Appends all that the elements are made of. False: they are not known (else they may still be unknown).
bool describeValues(mlir::Value tile, MemoKey& key);

}  // namespace tile::ir
