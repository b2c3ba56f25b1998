// host.cpp - the list of host passes and the entry of the translation to LLVM IR.
#include "compiler/host/host.h"

#include "compiler/host/emitter.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace tile::ir {

// The host computes tiles nearly as the tile stage leaves them: placement is a table beside the IR (plan.h), not a
// rewrite of it.
void addHostPasses(mlir::OpPassManager& passes, const Target&, const CompileOptions&) {
  passes.addPass(createPeelMasks());
  passes.addPass(createJoinCats());
  passes.addPass(createNarrowProductsPass());
  passes.addPass(createJoinReductionsPass());
  passes.addPass(createLateUpdatesPass());
  passes.addPass(createJoinStoresPass());
  passes.addPass(createWalkRowsPass());
}
void registerHostPasses() {
  mlir::registerPass([] { return createNarrowProductsPass(); });
  mlir::registerPass([] { return createJoinReductionsPass(); });
  mlir::registerPass([] { return createLateUpdatesPass(); });
  mlir::registerPass([] { return createJoinStoresPass(); });
  mlir::registerPass([] { return createWalkRowsPass(); });
}

std::unique_ptr<llvm::Module> emitHost(mlir::func::FuncOp kernel, const Target& target, const CompileOptions& options,
                                       llvm::LLVMContext& context, KernelBinary& info) {
  return host::Emitter(kernel, target, options, context, info).run();
}

}  // namespace tile::ir
