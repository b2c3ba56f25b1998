// dot_passes.h - the passes that put products on tensor cores and their loads into asynchronous pipelines. They run on
// tile IR without layouts, in this order, before assign_layouts.
#pragma once
#include <functional>
#include <memory>

#include "compiler/compiler.h"
#include "llvm/ADT/StringRef.h"

namespace mlir {
class Pass;
}

namespace tile::ir {

/// Asked when the pass runs: tile-opt registers passes before it knows the command line.
using TargetOf = std::function<const Target&()>;
using OptionsOf = std::function<const CompileOptions&()>;

/// In loops with products that skip steps by what memory says, finds the steps that remain 32 at a time.
std::unique_ptr<mlir::Pass> createListStepsPass();
/// On a kernel: matrices that it gathers have become boxes of views, which are good for nothing but roles.
inline constexpr llvm::StringLiteral kRaisedBoxesAttr = "tile.raised_boxes";
/// Matrices that loops of products gather become boxes of views, where bulk copies can load all of them.
std::unique_ptr<mlir::Pass> createRaiseBoxesPass(OptionsOf options);
/// Atomics whose order nobody can see become relaxed.
std::unique_ptr<mlir::Pass> createRelaxAtomicsPass();
/// Products in tf32x3 of computed tiles, and large ones, as three in tf32, which warpgroups have.
std::unique_ptr<mlir::Pass> createSplitTf32Pass(TargetOf target);
/// Transposes products whose second operand is widened on its way, for engines of warpgroups.
std::unique_ptr<mlir::Pass> createTurnProductsPass(TargetOf target);
/// tile.dot -> tile.mma on the value level of tile_smem.td. Sets `tile.num_warps` where the kernel leaves it open.
std::unique_ptr<mlir::Pass> createPlaceOperandsPass(TargetOf target, OptionsOf options);
/// Makes one loop of nested ones around a product.
std::unique_ptr<mlir::Pass> createFlattenLoopsPass(OptionsOf options);
/// Unrolls loops of unknown trip count that ask for it; a second loop does what remains.
std::unique_ptr<mlir::Pass> createUnrollLoopsPass();
/// Gives loops that hold loads of several iterations as many bodies: nothing moves from register to register.
std::unique_ptr<mlir::Pass> createUnrollHeldPass();
/// As many bodies as tiles take turns in a loop: nothing moves from register to register.
std::unique_ptr<mlir::Pass> createUnrollTurnsPass(OptionsOf options);
/// Histograms that loops add up count in one table in shared memory.
std::unique_ptr<mlir::Pass> createCountInPlacePass(TargetOf target);
/// Starts loads early: what operands are computed from, and loads of loops that ask for stages, as copies that run
/// ahead or as loads an iteration before their use.
std::unique_ptr<mlir::Pass> createFetchAheadPass(TargetOf target);
/// In loops with chained asynchronous products, moves the second product beside the next iteration's elementwise work.
std::unique_ptr<mlir::Pass> createRotatePass(TargetOf target);
/// Records which indices of copies to shared memory are never negative, before copies are made for iterations that may
/// not exist.
std::unique_ptr<mlir::Pass> createRecordStartsPass();
/// Value level -> tile.specialize with rings and bulk copies, where the target and the kernel allow it.
std::unique_ptr<mlir::Pass> createSpecializePass(TargetOf target, OptionsOf options);
/// In kernels without roles, loads small boxes beside operands whose copies run ahead an iteration early.
std::unique_ptr<mlir::Pass> createLoadAheadPass();
/// Value level -> buffers, copies, waits; loops get rings of stages. Leaves kernels with roles alone.
std::unique_ptr<mlir::Pass> createStagePass(TargetOf target, OptionsOf options);

}  // namespace tile::ir
