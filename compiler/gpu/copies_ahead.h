// copies_ahead.h - copies of straight-line code start before their time.
//
// A kernel that unrolls itself (the taps of a filter as a C++ loop) has product after product in one block, each behind
// the copies that it reads. Started where they stand, every one of them costs the latency of memory. Started in front
// of the product before the last they run while those are computed, as the stages of a loop would.
#pragma once
#include "compiler/dialect/dialect.h"

namespace tile::ir {

/// Moves the copies of a block (load_shared, gather_shared, and what their addresses are computed from) in front of the
/// statements that read those two before them. Nothing where fewer than three statements read copies; copies stay
/// behind loops, branches and what writes memory. Returns those that moved.
llvm::DenseSet<mlir::Operation*> startAhead(mlir::Block& block);

}  // namespace tile::ir
