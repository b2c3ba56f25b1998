// gpu.cpp - the list of GPU passes and the entry of the translation to LLVM IR.
#include "compiler/gpu/gpu.h"

#include "compiler/gpu/dot_passes.h"
#include "llvm/IR/Module.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace tile::ir {

void addGpuPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options) {
  auto targetOf = [&target]() -> const Target& { return target; };
  auto optionsOf = [&options]() -> const CompileOptions& { return options; };
  passes.addPass(createPlaceOperandsPass(targetOf, optionsOf));
  passes.addPass(createStagePass(targetOf, optionsOf));
}

void registerGpuPasses(std::function<const Target&()> target, std::function<const CompileOptions&()> options) {
  mlir::registerPass([=] { return createPlaceOperandsPass(target, options); });
  mlir::registerPass([=] { return createStagePass(target, options); });
}

std::unique_ptr<llvm::Module> emitGpu(mlir::func::FuncOp kernel, const Target& target, const CompileOptions&,
                                      llvm::LLVMContext&, KernelBinary&) {
  kernel.emitError() << "the GPU back end is not built yet (target " << target.name << ")";
  return nullptr;
}

}  // namespace tile::ir
