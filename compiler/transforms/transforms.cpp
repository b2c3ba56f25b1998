// transforms.cpp - the tile stage as a list.
#include "compiler/transforms/transforms.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace tile::ir {

void registerTilePasses() {}

void addTilePasses(mlir::OpPassManager& passes) {
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(mlir::createLoopInvariantCodeMotionPass());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
}

}  // namespace tile::ir
