// left_warps.h - what a loop does to a warp none of whose elements wants another iteration: nothing, if that warp may
// leave it by itself. See part_ways.cpp.
#pragma once
#include "compiler/gpu/forms/votes.h"
#include "mlir/IR/Value.h"

namespace tile::ir {

/// Whether a warp may leave the loop, or pass by the branch, as soon as none of its own elements wants it, whatever the
/// vote of all warps says: going on would change nothing of what it holds, and nobody waits for it inside. If not,
/// `why` is an op that makes what changes, or is null.
bool mayLeave(mlir::Operation* op, const Vote& vote, mlir::Operation*& why);

}  // namespace tile::ir
