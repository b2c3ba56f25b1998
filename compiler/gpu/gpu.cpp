// gpu.cpp - the list of GPU passes and the entry of the translation to LLVM IR.
#include "compiler/gpu/gpu.h"

#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/lowering/emitter.h"
#include "compiler/transforms/transforms.h"
#include "llvm/IR/Module.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

namespace tile::ir {

void addProductPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options) {
  auto targetOf = [&target]() -> const Target& { return target; };
  auto optionsOf = [&options]() -> const CompileOptions& { return options; };
  passes.addPass(createRelaxAtomicsPass());
  if (target.hasTma && options.useTma && options.raiseBoxes) passes.addPass(createRaiseBoxesPass(optionsOf));
  passes.addPass(createListStepsPass());
  if (target.hasWgmma) passes.addPass(createSplitTf32Pass(targetOf));
  if (target.hasWgmma) passes.addPass(createTurnProductsPass(targetOf));
  passes.addPass(createPlaceOperandsPass(targetOf, optionsOf));
  passes.addPass(createFlattenLoopsPass(optionsOf));
  passes.addPass(createUnrollLoopsPass());  // all bodies' loads come early together
  passes.addPass(createFetchAheadPass(targetOf));
  if (target.hasWgmma) passes.addPass(createRotatePass(targetOf));
  passes.addPass(createPeelMasks());
  passes.addPass(createRecordStartsPass());
  if (target.hasTma) passes.addPass(createSpecializePass(targetOf, optionsOf));
}

void addLayoutPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options) {
  auto targetOf = [&target]() -> const Target& { return target; };
  auto optionsOf = [&options]() -> const CompileOptions& { return options; };
  passes.addPass(createLoadAheadPass());
  passes.addPass(createStagePass(targetOf, optionsOf));
  passes.addPass(createUnrollTurnsPass(optionsOf));
  passes.addPass(createUnrollHeldPass());
  passes.addPass(createCountInPlacePass(targetOf));
  passes.addPass(createAssignLayoutsPass(targetOf, optionsOf));
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(createCommonSourcesPass());
  passes.addPass(createTakeSlicesPass());
  passes.addPass(createSearchTogetherPass());
  passes.addPass(createHoistLoadsPass());
  passes.addPass(createEarlyLoadsPass());
  if (target.hasWgmma) passes.addPass(createLoadsOverProductsPass());
  passes.addPass(createEarlyProductsPass());
  passes.addPass(createEarlySumsPass());
  passes.addPass(createReduceWholePass());
  passes.addPass(createEarlyReductionsPass());
  if (target.hasWgmma) passes.addPass(createDeferReductionsPass());
  passes.addPass(createMoreInFlightPass(targetOf, optionsOf));  // what it makes of reductions are several
  if (target.hasWgmma) passes.addPass(createAsyncWaitsPass(optionsOf));
  if (target.hasTma) passes.addPass(createHandScalarsPass());
  passes.addPass(createPartWaysPass());
  passes.addPass(createGathersTogetherPass());
  passes.addPass(createTotalsOfScansPass());
  passes.addPass(createReduceTogetherPass());
  passes.addPass(createMeetTogetherPass());
  passes.addPass(createPlaceBuffersPass(targetOf));
  passes.addPass(createInsertBarriersPass());
  if (target.hasTma) passes.addPass(createLateReleasesPass());
  if (target.hasTma) passes.addPass(createTakeTurnsPass());  // knows where all warps meet
}

void addGpuPasses(mlir::OpPassManager& passes, const Target& target, const CompileOptions& options) {
  addProductPasses(passes, target, options);
  addLayoutPasses(passes, target, options);
}

void registerGpuPasses(std::function<const Target&()> target, std::function<const CompileOptions&()> options) {
  mlir::registerPass([] { return createRelaxAtomicsPass(); });
  mlir::registerPass([=] { return createRaiseBoxesPass(options); });
  mlir::registerPass([] { return createListStepsPass(); });
  mlir::registerPass([=] { return createSplitTf32Pass(target); });
  mlir::registerPass([=] { return createTurnProductsPass(target); });
  mlir::registerPass([=] { return createPlaceOperandsPass(target, options); });
  mlir::registerPass([=] { return createFlattenLoopsPass(options); });
  mlir::registerPass([] { return createUnrollLoopsPass(); });
  mlir::registerPass([=] { return createFetchAheadPass(target); });
  mlir::registerPass([=] { return createRotatePass(target); });
  mlir::registerPass([] { return createRecordStartsPass(); });
  mlir::registerPass([=] { return createSpecializePass(target, options); });
  mlir::registerPass([] { return createLoadAheadPass(); });
  mlir::registerPass([=] { return createStagePass(target, options); });
  mlir::registerPass([] { return createUnrollHeldPass(); });
  mlir::registerPass([=] { return createUnrollTurnsPass(options); });
  mlir::registerPass([=] { return createCountInPlacePass(target); });
  mlir::registerPass([=] { return createAssignLayoutsPass(target, options); });
  mlir::registerPass([] { return createCommonSourcesPass(); });
  mlir::registerPass([] { return createTakeSlicesPass(); });
  mlir::registerPass([] { return createSearchTogetherPass(); });
  mlir::registerPass([] { return createHoistLoadsPass(); });
  mlir::registerPass([] { return createEarlyLoadsPass(); });
  mlir::registerPass([] { return createLoadsOverProductsPass(); });
  mlir::registerPass([] { return createEarlyProductsPass(); });
  mlir::registerPass([] { return createEarlySumsPass(); });
  mlir::registerPass([] { return createReduceWholePass(); });
  mlir::registerPass([] { return createEarlyReductionsPass(); });
  mlir::registerPass([] { return createDeferReductionsPass(); });
  mlir::registerPass([=] { return createMoreInFlightPass(target, options); });
  mlir::registerPass([=] { return createAsyncWaitsPass(options); });
  mlir::registerPass([] { return createHandScalarsPass(); });
  mlir::registerPass([] { return createPartWaysPass(); });
  mlir::registerPass([] { return createGathersTogetherPass(); });
  mlir::registerPass([] { return createTotalsOfScansPass(); });
  mlir::registerPass([] { return createReduceTogetherPass(); });
  mlir::registerPass([] { return createMeetTogetherPass(); });
  mlir::registerPass([=] { return createPlaceBuffersPass(target); });
  mlir::registerPass([] { return createInsertBarriersPass(); });
  mlir::registerPass([] { return createLateReleasesPass(); });
  mlir::registerPass([] { return createTakeTurnsPass(); });
}

std::unique_ptr<llvm::Module> emitGpu(mlir::func::FuncOp kernel, const Target& target, const CompileOptions& options,
                                      llvm::LLVMContext& context, KernelBinary& info) {
  auto bytes = kernel->getAttrOfType<mlir::IntegerAttr>(kSharedBytesAttr);
  info.shared_bytes = bytes ? static_cast<uint32_t>(bytes.getInt()) : 0;
  info.buffers = sharedBuffers(kernel);
  return Emitter(kernel, target, options, context, info).run();
}

}  // namespace tile::ir
