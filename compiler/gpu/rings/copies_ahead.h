// copies_ahead.h - starts copies to shared memory early in straight-line code.
//
// A kernel that unrolls a loop itself (the taps of a filter, as a C++ loop) has product after product in one block,
// each behind the copies that it reads. Started there, every copy costs the latency of memory. Started two products
// earlier, the copies run during those products, as the stages of a loop would.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Moves the copies of a block (load_shared, gather_shared, with the computation of their addresses) in front of the
/// second last statement before their own reader that reads copies. Does nothing if fewer than three statements read
/// copies; copies stay behind loops, branches and writes to memory. Returns those that moved.
llvm::DenseSet<mlir::Operation*> startAhead(mlir::Block& block);

}  // namespace tile::ir
