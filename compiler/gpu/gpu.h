// gpu.h - the NVIDIA back end as the pipeline sees it: the passes after the tile stage, then the translation to LLVM
// IR.
#pragma once
#include <functional>
#include <memory>

#include "compiler/compiler.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm
namespace mlir {
class OpPassManager;
}  // namespace mlir

namespace tile::ir {

/// Appends the GPU passes, in order, to a pass manager of func.func. Before: the tile stage (scalar bases + offset
/// tiles). After: every tile has a layout, every shared buffer an address, barriers stand where hazards need them.
/// In two parts: after the first the kernel has its roles, or will have none.
void addProductPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options);
void addLayoutPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options);
void addGpuPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options);

/// Registers every GPU pass under its flag for tile-opt; the functions are asked when a pass is made.
void registerGpuPasses(std::function<const Target&()> target, std::function<const CompileOptions&()> options);

/// Translates the kernel to LLVM IR for NVPTX. `info` arrives with target, entry and params set; threads, shared_bytes,
/// buffers, debug_sites and uses_debug_ring are filled here. Null after emitting diagnostics on the function's context.
std::unique_ptr<llvm::Module> emitGpu(mlir::func::FuncOp kernel, const Target& target, const CompileOptions& options,
                                      llvm::LLVMContext& context, KernelBinary& info);

}  // namespace tile::ir
