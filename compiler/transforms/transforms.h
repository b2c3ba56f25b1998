// transforms.h - rewrites of tile IR that every target wants.
#pragma once
#include <memory>

#include "compiler/analysis/facts.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class OpPassManager;
}

namespace tile::ir {

/// Appends the tile stage to a pass manager of func.func. After it: canonical IR, pointer accesses as scalar base +
/// offset tile, loop invariants outside loops. `forHost`: inline assembly gives way to its form for hosts, and
/// loops assert that their steps are positive.
void addTilePasses(mlir::OpPassManager& passes, bool forHost = false);

/// Whether peel_masks makes a loop of their own of the first iterations of `loop`, whatever else it does.
bool masksAtStart(mlir::scf::ForOp loop, const Facts& facts);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION  // registerTilePasses: every pass of this folder under its flag, for tile-opt
#include "compiler/transforms/passes.h.inc"

}  // namespace tile::ir
