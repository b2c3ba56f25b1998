// gpu_passes.h - the passes between placed products and the translation to LLVM IR, in their order.
#pragma once
#include "compiler/gpu/dot_passes.h"

namespace tile::ir {

/// Gives every tile a #tile.layout and puts tile.convert where layouts meet. Sets `tile.num_warps`.
std::unique_ptr<mlir::Pass> createAssignLayoutsPass(TargetOf target, OptionsOf options);
/// Converts what tiles are made of instead of the tiles, where several have it in common or it is narrower.
std::unique_ptr<mlir::Pass> createCommonSourcesPass();
/// Reads slices of a tile that other threads hold from one copy of it in shared memory.
std::unique_ptr<mlir::Pass> createTakeSlicesPass();
/// Lets searches in a row, loops that wait for what they read, take their steps together.
std::unique_ptr<mlir::Pass> createSearchTogetherPass();
/// Moves loads that every iteration of a loop makes alike in front of the loop.
std::unique_ptr<mlir::Pass> createHoistLoadsPass();
/// Moves loads whose addresses are known in front of barriers.
std::unique_ptr<mlir::Pass> createEarlyLoadsPass();
/// Starts loads of what is added to results in front of the loop of products, where registers have room.
std::unique_ptr<mlir::Pass> createLoadsOverProductsPass();
/// Moves small products of single warps next to the product before, so that their instructions alternate.
std::unique_ptr<mlir::Pass> createEarlyProductsPass();
/// Moves elementwise work that frees registers in front of products that it does not depend on.
std::unique_ptr<mlir::Pass> createEarlySumsPass();
/// Reduces a tile that is reduced to one element along all of its dims at once.
std::unique_ptr<mlir::Pass> createReduceWholePass();
/// Moves reductions to a few registers in front of barriers.
std::unique_ptr<mlir::Pass> createEarlyReductionsPass();
/// Reduces sums that loops only accumulate across lanes and warps once, behind the loop.
std::unique_ptr<mlir::Pass> createDeferReductionsPass();
/// Lets loops without products do several iterations at a time, with their loads together, for launches of at most one
/// program per multiprocessor.
std::unique_ptr<mlir::Pass> createMoreInFlightPass(TargetOf target, OptionsOf options);
/// Puts tile.mma_wait where results of asynchronous products are needed, and releases of stages behind it.
std::unique_ptr<mlir::Pass> createAsyncWaitsPass(OptionsOf options = {});
/// Lets the producer compute, ahead of time, the scalars that consumers need before they can begin.
std::unique_ptr<mlir::Pass> createHandScalarsPass();
/// Lets every warp leave loops, and branches, for "any element" when its own elements are done.
std::unique_ptr<mlir::Pass> createPartWaysPass();
/// Puts gathers of one memory under one mask next to each other; the lowering interleaves them.
std::unique_ptr<mlir::Pass> createGathersTogetherPass();
/// Lets scans tell what they come to, where reductions combine the same elements.
std::unique_ptr<mlir::Pass> createTotalsOfScansPass();
/// Makes one op, with one barrier, of reductions across warps that do not depend on each other.
std::unique_ptr<mlir::Pass> createReduceTogetherPass();
/// Lets conversions, takes, cats and reductions across warps that do not depend on each other share one barrier.
std::unique_ptr<mlir::Pass> createMeetTogetherPass();
/// Gives every buffer and every op's scratch its bytes of shared memory (`at`, tile.scratch); `tile.shared_bytes` on
/// the function. Fails with a table when they do not fit.
std::unique_ptr<mlir::Pass> createPlaceBuffersPass(TargetOf target);
/// Inserts tile.barrier where one thread's access to shared or global memory must follow another's.
std::unique_ptr<mlir::Pass> createInsertBarriersPass();
/// Moves ring_release of stages that threads read behind the next stores that are fenced anyway.
std::unique_ptr<mlir::Pass> createLateReleasesPass();
/// Lets warpgroups use the tensor cores alternately in loops that ask for it (tile.pingpong).
std::unique_ptr<mlir::Pass> createTakeTurnsPass();

}  // namespace tile::ir
