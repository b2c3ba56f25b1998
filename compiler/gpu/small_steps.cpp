// small_steps.cpp - see small_steps.h.
#include "compiler/gpu/small_steps.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/scratch.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Whether warps wait for each other here.
bool meets(Operation* op) {
  if (isa<BarrierOp>(op)) return true;
  const auto scratch = op->hasAttr(kScratchAttr) ? scratchOf(op) : std::nullopt;
  return scratch && !scratch->warpLocal();
}

bool meetsInSteps(func::FuncOp func) {
  return func
      .walk([](LoopLikeOpInterface loop) {
        bool waits = false, hasInner = false;
        loop->walk([&](Operation* op) {
          waits |= meets(op);
          hasInner |= op != loop.getOperation() && isa<LoopLikeOpInterface>(op);
        });
        return waits && !hasInner ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

}  // namespace

bool stepsFitOneWarp(func::FuncOp func, int lanes, const CompileOptions& options) {
  constexpr int kOfMany = 8, kOfFew = 4;  // elements of a lane
  if (warpsOf(func) <= 1 || func->hasAttr("tile.programs")) return false;
  int64_t largest = 0;
  const bool multiplies = func.walk([&](Operation* op) {
    if (isa<MmaOp, BatchMmaOp, SpecializeOp>(op)) return WalkResult::interrupt();
    for (Value result : op->getResults())
      if (isTile(result)) largest = std::max(largest, tileType(result).getNumElements());
    return WalkResult::advance();
  }).wasInterrupted();
  if (multiplies || largest > int64_t{kOfMany} * lanes || !meetsInSteps(func)) return false;
  return chooseByGrid(func, options, true, largest <= int64_t{kOfFew} * lanes);
}

}  // namespace tile::ir
