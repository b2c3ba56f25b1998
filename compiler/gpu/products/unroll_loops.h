// unroll_loops.h - several bodies of a loop an iteration.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// How many bodies a loop asks for; 1: it is left as it is.
inline constexpr const char* kUnrollAttr = "tile.unroll";
/// On what was made of such a loop, and on the one behind it for what remains: they have what was asked for.
inline constexpr const char* kAsAskedAttr = "tile.as_asked";

/// `factor` bodies an iteration, and a loop behind it for what remains (`rest`; null: there is none); a loop that runs
/// over nothing still does. Only loops whose step is a constant, unless `anyStep` (it is positive: guard_steps): false
/// for others, which stay.
bool unrollBy(mlir::scf::ForOp loop, int64_t factor, bool anyStep = false, mlir::scf::ForOp* rest = nullptr);

}  // namespace tile::ir
