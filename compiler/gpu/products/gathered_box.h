// gathered_box.h - a matrix that is read or written through a base, offsets and a mask, as a box of a view.
#pragma once
#include "compiler/analysis/facts.h"
#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

/// The load of a view beside the gather, which stands in `loop` (null: in none); null: it is no box that is known to be
/// one. The view is made in front of the loop.
LoadOp boxOfGather(GatherOp gather, mlir::scf::ForOp loop, const Facts& facts);

/// The store of a view in front of the scatter. Its view is one that the launch can describe (launch_views.h).
StoreOp boxOfScatter(ScatterOp scatter, const Facts& facts);

}  // namespace tile::ir
