// start_accumulators.h - initial values of accumulators, for loops whose products run on from iteration to iteration.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// If a product of the loop accumulates on a tile from outside that is no constant (a loaded bias, the sums of an
/// earlier loop), passes the tile through instructions that change nothing, but are opaque to ptxas. Otherwise ptxas
/// follows the accumulator registers to their definitions in front of the loop, finds loads or joins of branches, takes
/// them for writes to accumulators of unfinished products, and serialises all products (C7515). Sums that a loop around
/// this one carries from a constant, through this one only, it finds to be the products' own.
void startAccumulators(mlir::scf::ForOp loop);

}  // namespace tile::ir
