// late_releases.cpp - stages whose tiles threads read in order to compute an operand of a product are released behind
// the store of that operand. The reads must be fenced against the next bulk copy into the stage, and the store must be
// fenced against the product: in this order one fence does for both. The stage is free a little later, which a ring of
// several stages hides.
//
// Waits for stages of other rings may stand in between. That cannot deadlock: before it fills them, the producer waits
// for at most one more stage of this ring, and the ring has several.
#include "compiler/gpu/gpu_passes.h"
#include "compiler/gpu/rings/stage_reads.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The barrier in front of which the store of an operand has been fenced; null where there is none on the way.
BarrierOp barrierBehindStores(RingReleaseOp release) {
  bool stored = false;
  for (Operation* op = release->getNextNode(); op && op->getNumRegions() == 0; op = op->getNextNode()) {
    if (isa<RingReserveOp, HandOverOp, TakeOverOp>(op)) return {};
    if (auto acquire = dyn_cast<RingAcquireOp>(op); acquire && acquire.getRing() == release.getRing()) return {};
    if (auto barrier = dyn_cast<BarrierOp>(op); barrier && stored) return barrier;
    auto store = dyn_cast<SmemStoreOp>(op);
    stored |= store && isReadByWgmma(store.getTarget());
  }
  return {};
}

class LateReleasesPass : public PassWrapper<LateReleasesPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LateReleasesPass)
  StringRef getArgument() const override { return "tile-late-releases"; }
  StringRef getDescription() const override { return "release stages that threads read behind the next fence"; }
  void runOnOperation() override {
    SmallVector<RingReleaseOp> releases;
    getOperation().walk([&](RingReleaseOp release) { releases.push_back(release); });
    for (RingReleaseOp release : releases) {
      const bool isOfSeveral = cast<RingType>(release.getRing().getType()).getStages() > 1;
      if (!isOfSeveral || release.getEnable() || !isReadByThreads(release)) continue;
      if (BarrierOp barrier = barrierBehindStores(release)) release->moveBefore(barrier);
    }
  }
};

}  // namespace

std::unique_ptr<Pass> createLateReleasesPass() { return std::make_unique<LateReleasesPass>(); }

}  // namespace tile::ir
