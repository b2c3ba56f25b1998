// host.h - the CPU back end as the pipeline sees it: the passes after the tile stage, then the translation to LLVM IR.
#pragma once
#include <memory>

#include "compiler/compiler.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm
namespace mlir {
class OpPassManager;
class Pass;
}  // namespace mlir

namespace tile::ir {

/// Appends the host passes, in order, to a pass manager of func.func; the IR after them is stage `cpu`.
void addHostPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options);

/// Registers every host pass under its flag for tile-opt.
void registerHostPasses();

/// Products of widened integers of which only halves are read, on the narrow ones.
std::unique_ptr<mlir::Pass> createNarrowProductsPass();
/// Reductions that read one tile run in one pass over it.
std::unique_ptr<mlir::Pass> createJoinReductionsPass();
/// Updates of carried tiles move behind the reads of the value they replace.
std::unique_ptr<mlir::Pass> createLateUpdatesPass();
/// Stores of one shape that store what is computed from one tile stand side by side.
std::unique_ptr<mlir::Pass> createJoinStoresPass();
/// Programs that follow each other are neighbours in memory.
std::unique_ptr<mlir::Pass> createWalkRowsPass();

/// Translates the kernel to LLVM IR for the host. `info` arrives with target, entry and params set; arena_bytes,
/// buffers, debug_sites and uses_debug_ring are filled here. Null after emitting diagnostics on the function's context.
std::unique_ptr<llvm::Module> emitHost(mlir::func::FuncOp kernel, const Target& target, const CompileOptions& options,
                                       llvm::LLVMContext& context, KernelBinary& info);

}  // namespace tile::ir
