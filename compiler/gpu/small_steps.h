// small_steps.h - loops whose steps are too small for several warps.
#pragma once
#include "compiler/compiler.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::ir {

/// Whether a kernel without products, for which we chose several warps, had better have one: in every iteration of an
/// innermost loop its warps wait for each other (a sum over a row of 200 elements, a neighbour's element), and no tile
/// has more than a few elements for each lane of a single warp, which waits for nobody. Asked when barriers are in place.
/// A program that has its multiprocessor for itself computes four times as much in each lane instead: fewer elements
/// pay there, and `func` is marked where the answer depends on that (few_programs.h).
bool stepsFitOneWarp(mlir::func::FuncOp func, int lanes, const CompileOptions& options);

}  // namespace tile::ir
