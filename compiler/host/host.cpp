// host.cpp - the list of host passes and the entry of the translation to LLVM IR.
#include "compiler/host/host.h"

#include "llvm/IR/Module.h"
#include "mlir/Pass/PassManager.h"

namespace tile::ir {

void addHostPasses(mlir::OpPassManager&, const Target&, const CompileOptions&) {}

void registerHostPasses(std::function<const Target&()>, std::function<const CompileOptions&()>) {}

std::unique_ptr<llvm::Module> emitHost(mlir::func::FuncOp kernel, const Target& target, const CompileOptions&,
                                       llvm::LLVMContext&, KernelBinary&) {
  kernel.emitError() << "the host back end is not built yet (target " << target.name << ")";
  return nullptr;
}

}  // namespace tile::ir
