// places_apart.h - whether iterations of a loop access the same memory: what accesses through pointers cover in one
// iteration, and how far the loop moves the pointers from one iteration to the next.
#pragma once
#include "compiler/analysis/facts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

/// Emits, in front of the loop, an i1 that is false only if no iteration accesses an element at `pointer` + `offsets`
/// (under `mask`, which may be null) that another iteration accesses. That is so if the loop advances the pointer
/// evenly, by more than the offsets, which it does not change, lie apart. Null: it cannot be computed.
mlir::Value placesMeet(mlir::Value pointer, mlir::Value offsets, mlir::Value mask, mlir::scf::ForOp loop);

/// An access in a loop, and the i1 that says whether it may touch what another iteration accessed.
struct Meeting {
  mlir::Operation* access;
  mlir::Value meets;
};
/// Puts barriers in front of the accesses, executed only if their i1 holds. Short loops are duplicated instead: the
/// copy without barriers can be unrolled.
void orderIfMet(mlir::scf::ForOp loop, llvm::ArrayRef<Meeting> meetings);

}  // namespace tile::ir
