// transforms.h - rewrites of tile IR that every target wants.
#pragma once

namespace mlir {
class OpPassManager;
}

namespace tile::ir {

/// Appends the tile stage to a pass manager of func.func. After it: canonical IR, pointer accesses as scalar base +
/// offset tile, loop invariants outside loops.
void addTilePasses(mlir::OpPassManager& passes);

/// Registers every pass of this folder under its flag, for tile-opt.
void registerTilePasses();

}  // namespace tile::ir
