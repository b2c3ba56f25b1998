// small_steps.cpp - see small_steps.h.
#include "compiler/gpu/small_steps.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/warps.h"
#include "compiler/gpu/few_programs.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/products/warp_grid.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Whether warps wait for each other here.
bool meets(Operation* op) {
  if (isa<BarrierOp>(op)) return true;
  const auto scratch = op->hasAttr(kScratchAttr) ? scratchOf(op) : std::nullopt;
  return scratch && !scratch->warpLocal();
}

}  // namespace

bool stepsFitOneWarp(func::FuncOp func, int lanes, const CompileOptions& options) {
  constexpr int kOfMany = 8, kOfFew = 4;  // elements of a lane
  const int64_t largest = largestTile(func);
  if (warpsOf(func) <= 1 || sharesAsAsked(func) || largest > int64_t{kOfMany} * lanes) return false;
  const WalkResult multiplies = func.walk([](Operation* op) {
    return isa<MmaOp, BatchMmaOp, SpecializeOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (multiplies.wasInterrupted() || !anyInInnermostLoop(func, meets)) return false;
  return chooseByGrid(func, options, true, largest <= int64_t{kOfFew} * lanes);
}

}  // namespace tile::ir
