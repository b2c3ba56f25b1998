// gpu_passes.h - the passes between placed products and the translation to LLVM IR, in their order.
#pragma once
#include "compiler/gpu/dot_passes.h"

namespace tile::ir {

/// Gives every tile a #tile.layout and puts tile.convert where layouts meet. Sets `tile.num_warps`.
std::unique_ptr<mlir::Pass> createAssignLayoutsPass(TargetOf target, OptionsOf options);
/// Loads whose addresses are known stand in front of the places where warps wait for each other.
std::unique_ptr<mlir::Pass> createEarlyLoadsPass();
std::unique_ptr<mlir::Pass> createEarlyProductsPass();
std::unique_ptr<mlir::Pass> createEarlySumsPass();
std::unique_ptr<mlir::Pass> createHoistLoadsPass();
/// Slices of one tile that other threads have are read from one copy of it.
std::unique_ptr<mlir::Pass> createTakeSlicesPass();
/// A tile that is reduced to one element is reduced along all of its dims at once.
std::unique_ptr<mlir::Pass> createReduceWholePass();
/// Sums that loops only accumulate are taken across lanes and warps once, behind the loop.
std::unique_ptr<mlir::Pass> createDeferReductionsPass();
/// Puts tile.mma_wait where results of asynchronous products are needed, and releases of stages behind it.
std::unique_ptr<mlir::Pass> createAsyncWaitsPass(OptionsOf options = {});
/// What consumers would compute from program ids, or read, before they can begin comes from the producer, ahead of
/// time.
std::unique_ptr<mlir::Pass> createHandScalarsPass();
/// Warps leave loops whose elements are done without waiting for those of other warps.
std::unique_ptr<mlir::Pass> createPartWaysPass();
/// Gathers of one memory under one mask follow each other, and are read element by element.
std::unique_ptr<mlir::Pass> createGathersTogetherPass();
/// Reductions to a few registers stand in front of the places where warps wait for each other.
std::unique_ptr<mlir::Pass> createEarlyReductionsPass();
/// Reductions across warps that do not wait for each other become one op, with one barrier.
std::unique_ptr<mlir::Pass> createReduceTogetherPass();
/// Conversions, takes, cats and reductions across warps that do not need each other meet at one barrier.
std::unique_ptr<mlir::Pass> createMeetTogetherPass();
/// Gives every buffer and every op's scratch its bytes of shared memory (`at`, tile.scratch); `tile.shared_bytes` on
/// the function. Fails with a table when they do not fit.
std::unique_ptr<mlir::Pass> createPlaceBuffersPass(TargetOf target);
/// Inserts tile.barrier where one thread's access to shared or global memory must follow another's.
std::unique_ptr<mlir::Pass> createInsertBarriersPass();
/// Moves ring_release of stages that threads read behind the next stores that are fenced anyway.
std::unique_ptr<mlir::Pass> createLateReleasesPass();
/// Warpgroups take turns at the tensor cores in loops that ask for it (tile.pingpong).
std::unique_ptr<mlir::Pass> createTakeTurnsPass();

}  // namespace tile::ir
