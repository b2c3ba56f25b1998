// places_apart.h - whether a loop comes back to places in memory: what accesses through pointers reach in one
// iteration, and how far the loop moves them on to the next.
#pragma once
#include "compiler/analysis/facts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

/// An i1 in front of the loop: false only if no iteration meets what another one reaches at `pointer` + `offsets` under
/// `mask` (which may be null), as the pointer moves on evenly, and further than the offsets lie apart, which the loop
/// does not change. Null: that cannot be told.
mlir::Value placesMeet(mlir::Value pointer, mlir::Value offsets, mlir::Value mask, mlir::scf::ForOp loop);

/// An access of a loop, and whether it may meet what another iteration reached.
struct Meeting {
  mlir::Operation* access;
  mlir::Value meets;
};
/// Barriers in front of the accesses, for loops whose iterations meet. Short loops are there twice: the one without
/// barriers can be unrolled.
void orderIfMet(mlir::scf::ForOp loop, llvm::ArrayRef<Meeting> meetings);

}  // namespace tile::ir
