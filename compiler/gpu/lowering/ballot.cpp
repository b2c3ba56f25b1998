// ballot.cpp - a question that the lanes of a warp ask about a number each.
#include "compiler/gpu/lowering/lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

LogicalResult emitBallot(Emitter& e, BallotOp op) {
  auto answer = e.inlineRegion(op.getSteps(), {e.lane()});
  if (failed(answer)) return failure();
  e.define(op.getBits(), e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {e.i32(-1), answer->front()}));
  return success();
}

}  // namespace tile::ir
