// known_values.h - integer tiles whose every element is known while compiling: made of indices and constants alone.
#pragma once
#include <optional>
#include <vector>

#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// The elements in row-major order, sign-extended; nullopt when anything else goes in, or for more than 2^16 elements.
std::optional<std::vector<int64_t>> knownValues(mlir::Value tile);

}  // namespace tile::ir
