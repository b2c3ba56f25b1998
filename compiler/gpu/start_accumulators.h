// start_accumulators.h - what accumulators hold before a loop whose products run on from one iteration to the next.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Where a product of the loop accumulates on a tile from outside that is no constant (a loaded bias, the sums of the
/// loop in front), gives it to the loop through instructions that change nothing but that the assembler does not see
/// through. Else it looks for what defines those registers beyond the loop's entry, finds other things than products
/// (loads, joins of branches) and takes them to write accumulators of unfinished products: it then serialises them all
/// (C7515).
void startAccumulators(mlir::scf::ForOp loop);

}  // namespace tile::ir
