// transforms.cpp - the tile stage as a list.
#include "compiler/transforms/transforms.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace tile::ir {

void addTilePasses(mlir::OpPassManager& passes, bool forHost) {
  passes.addPass(createChooseForms({forHost}));
  if (!forHost) passes.addPass(createSmallProducts());
  passes.addPass(createUnrollBatches({forHost}));
  passes.addPass(createFoldArguments());
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(createKeepPromises());  // where equal numbers are one
  passes.addPass(createCarryElements());
  passes.addPass(createCountWhiles());  // before anything looks for loops
  passes.addPass(createNestLoops());    // before anything looks at what a loop carries
  passes.addPass(createWholePowers());
  if (!forHost) passes.addPass(createMultiplyNarrow());  // vectors of hosts multiply f32
  passes.addPass(createAccumulateProducts());
  passes.addPass(createGuardSteps({forHost}));  // before anything counts iterations
  passes.addPass(createCountSteps());
  passes.addPass(createPeelEdges({forHost}));
  passes.addPass(createRaisePointers());
  passes.addPass(createSplitCarried());
  passes.addPass(createSplitLoads());  // before anything looks at what a load is for
  if (!forHost) passes.addPass(createJoinCats({/*keepAlike=*/true}));
  if (!forHost) passes.addPass(createShiftByTakes());  // hosts copy pieces
  passes.addPass(createNarrowMoves());
  passes.addPass(createSinkBroadcasts());
  passes.addPass(createDropMultiples());  // loops count by now; what is left may leave them
  if (!forHost) passes.addPass(createNarrowGathers());
  // Pure tile operations leave loops; loads stay (a store in the loop may change what they read).
  passes.addPass(mlir::createLoopInvariantCodeMotionPass());
  if (!forHost) passes.addPass(createUnrollShort());  // what all bodies share is in front of the loop by now
  if (!forHost) passes.addPass(createLookUpChosen());  // by now it is seen what loops do not make
  if (!forHost) passes.addPass(createUnrollChosen());  // what is still chosen of a carried tile changes in the loop
  passes.addPass(createSimplifyMasks());
  passes.addPass(createNearAngles());
  passes.addPass(createShareReductions());
  passes.addPass(createChainQuotients());  // nothing looks for flat indices any more
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  if (!forHost) passes.addPass(createShareBases());  // equal addresses are one by now
}

}  // namespace tile::ir
