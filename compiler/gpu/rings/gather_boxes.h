// gather_boxes.h - boxes of more than two dims that are copied by threads: as gathers.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Turns every load_shared with a box of more than two dims into a gather_shared of its rows.
void gatherBoxes(mlir::func::FuncOp func);

}  // namespace tile::ir
