// ballot.cpp - a question that the lanes of a warp ask about a number each.
#include "compiler/gpu/lowering/lowering.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;

static llvm::Intrinsic::ID combining(RmwKind kind) {
  using namespace llvm::Intrinsic;
  switch (kind) {
    case RmwKind::add: return nvvm_redux_sync_add;
    case RmwKind::max: return nvvm_redux_sync_max;
    case RmwKind::min: return nvvm_redux_sync_min;
    case RmwKind::umax: return nvvm_redux_sync_umax;
    case RmwKind::umin: return nvvm_redux_sync_umin;
    case RmwKind::and_: return nvvm_redux_sync_and;
    case RmwKind::or_: return nvvm_redux_sync_or;
    case RmwKind::xor_: return nvvm_redux_sync_xor;
    case RmwKind::exchange: break;
  }
  return not_intrinsic;
}

LogicalResult emitBallot(Emitter& e, BallotOp op) {
  auto answer = e.inlineRegion(op.getSteps(), {e.lane()});
  if (failed(answer)) return failure();
  if (auto kind = op.getCombined()) {
    const llvm::Intrinsic::ID instruction = combining(*kind);
    if (instruction == llvm::Intrinsic::not_intrinsic) return op.emitOpError() << "cannot combine numbers in this way";
    e.define(op.getBits(), e.b.CreateIntrinsic(instruction, {answer->front(), e.i32(-1)}));
    return success();
  }
  e.define(op.getBits(), e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {e.i32(-1), answer->front()}));
  return success();
}

}  // namespace tile::ir
