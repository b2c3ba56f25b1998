// dot_passes.h - the passes that put products on tensor cores and their loads into asynchronous pipelines. They run on
// tile IR without layouts, in this order, before assign_layouts.
#pragma once
#include <functional>
#include <memory>

#include "compiler/compiler.h"

namespace mlir {
class Pass;
}

namespace tile::ir {

/// Asked when the pass runs: tile-opt registers passes before it knows the command line.
using TargetOf = std::function<const Target&()>;
using OptionsOf = std::function<const CompileOptions&()>;

/// Loops with products that pass over steps by what memory says find those that remain 32 at a time.
std::unique_ptr<mlir::Pass> createListStepsPass();
/// Loops that ask for it have several bodies an iteration, and a loop for what remains.
std::unique_ptr<mlir::Pass> createUnrollLoopsPass();
/// Products whose second operand is widened on its way become transposed products, for engines of warpgroups.
std::unique_ptr<mlir::Pass> createTurnProductsPass(TargetOf target);
/// tile.dot -> tile.mma on the value level of tile_smem.td. Sets `tile.num_warps` where the kernel leaves it open.
std::unique_ptr<mlir::Pass> createPlaceOperandsPass(TargetOf target, OptionsOf options);
/// What operands are computed from, and loads of loops that ask for stages: copies that run ahead, or loads an
/// iteration early.
std::unique_ptr<mlir::Pass> createFetchAheadPass(TargetOf target);
/// Loops with chained asynchronous products: the second product runs beside the next iteration's elementwise work.
std::unique_ptr<mlir::Pass> createRotatePass(TargetOf target);
/// Value level -> tile.specialize with rings and bulk copies, where the target and the kernel allow it.
std::unique_ptr<mlir::Pass> createSpecializePass(TargetOf target, OptionsOf options);
/// Copies to shared memory say which of their indices are never negative, before others are made for iterations that
/// may not exist.
std::unique_ptr<mlir::Pass> createRecordStartsPass();
/// Kernels without roles: small boxes beside operands whose copies run ahead, an iteration early.
std::unique_ptr<mlir::Pass> createLoadAheadPass();
/// Value level -> buffers, copies, waits; loops get rings of stages. Leaves kernels with roles alone.
std::unique_ptr<mlir::Pass> createStagePass(TargetOf target, OptionsOf options);

}  // namespace tile::ir
