// matrix_unit.h - tile.dot on the CPU's matrix unit (AMX).
#pragma once
#include "compiler/host/dot_shape.h"
#include "compiler/host/emitter.h"

namespace tile::ir::host {

/// The product of `shape`, whose accumulator lies in `c` (or is 0).
mlir::LogicalResult emitOnMatrixUnit(Emitter& e, DotOp op, const DotShape& shape, const Ref& c, bool startsAtZero);

}  // namespace tile::ir::host
