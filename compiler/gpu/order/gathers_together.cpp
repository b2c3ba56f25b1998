// gathers_together.cpp - interleaves several gathers of one memory, element by element.
// Before: layouts; gathers of neighbouring elements (the corners of a cell, taps of a filter that moves) stand where
//         the kernel wrote them: all elements of one are read before the first of the next, and by then the cache lines
//         that both need may have left the first-level cache.
// After:  gathers of a block through one pointer, under one mask, follow each other directly, as many as registers
//         hold, with the computation of their addresses in front; the lowering reads them side by side. Masks of those
//         that read a few elements apart (neighbours in a stencil) are computed in front of the first of them, which
//         can then read for all (windows.cpp). So do fields of a record that are read behind the first one, over writes
//         of other fields: `for k: box[8 at + k] = min(box[8 a + k], box[8 b + k])` reads, then writes (siblings.cpp).
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/access/access_width.h"
#include "compiler/gpu/access/fields.h"
#include "compiler/gpu/forms/blocks.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/gpu_passes.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Registers of a thread: of one gather (fewer are no time between one gather and the next), of all that come together.
constexpr int64_t kLeastRegisters = 4, kMostGathered = 64;

bool isTile(GatherOp gather) { return gather && isa<RankedTensorType>(gather.getType()) && !isVolatile(gather); }

/// What is read behind it is not what would be read in front of it, or may not be.
bool ends(Operation* op) {
  return writesGlobal(op) || isAcquire(op) || isa<BarrierOp>(op) || (op->getNumRegions() && !isa<ReduceOp, ScanOp>(op));
}

/// Masks of windows in front of them.
void bringMasks(Block& block, const Facts& facts) {
  SmallVector<GatherOp> gathers(block.getOps<GatherOp>());
  for (GatherOp first : gathers) {
    if (!isTile(first) || !first.getMask() || !first.getOffsets()) continue;
    const auto [root, by] = withoutConstantPart(first.getPtr());
    const int bits = static_cast<int>(getElementTypeOrSelf(first.getType()).getIntOrFloatBitWidth());
    if (bits < 8) continue;
    const AccessWidth width = offsetWidth(facts, root.ptr, first.getOffsets(), {}, bits / 8);
    const bool isRun = width.dim >= 0 && layoutOf(first.getType())->runLength(width.dim) > 1;
    if (width.aligned == 1 && !isRun) continue;
    for (Operation* op = first->getNextNode(); op && !ends(op); op = op->getNextNode()) {
      auto gather = dyn_cast<GatherOp>(op);
      if (!isTile(gather) || gather.getOffsets() != first.getOffsets() || gather.getMask() == first.getMask()) continue;
      const auto [ptr, distance] = withoutConstantPart(gather.getPtr());
      if (ptr != root || std::abs(distance - by) > kFarthestInWindow) continue;
      if (const auto parts = partsBehind(gather, first))
        for (Operation* part : *parts) part->moveBefore(first);
    }
  }
}

/// Whether both read fields of the same records, within 16 bytes.
bool areFieldsOfOne(GatherOp gather, GatherOp other) {
  if (!readAlike(gather, other)) return false;
  constexpr int64_t kAccess = 16;
  const auto [root, by] = withoutConstantPart(gather.getPtr());
  const auto [otherRoot, otherBy] = withoutConstantPart(other.getPtr());
  return root == otherRoot && std::abs(by - otherBy) * elementBytes(gather.getType()) < kAccess;
}

/// Fields over writes of other fields, to the first one of their records that is read.
void bringFields(Block& block, const Facts& facts) {
  constexpr int kFarthest = 512;  // ops
  int64_t held = 0;
  SmallVector<GatherOp> gathers(block.getOps<GatherOp>());
  for (GatherOp gather : gathers) {
    if (!isTile(gather) || !gather.getOffsets() || held + registersOf(gather.getType()) > kMostGathered) continue;
    bool passes = false;
    int steps = 0;
    for (Operation* op = gather->getPrevNode(); op && steps < kFarthest; op = op->getPrevNode(), ++steps) {
      if (auto first = dyn_cast<GatherOp>(op); isTile(first) && areFieldsOfOne(gather, first)) {
        const auto parts = passes ? partsBehind(gather, first->getNextNode()) : std::nullopt;
        if (!parts) break;
        Operation* last = first;
        for (Operation* part : *parts) part->moveAfter(last), last = part;
        gather->moveAfter(last);
        held += registersOf(gather.getType());
        break;
      }
      if (!ends(op)) continue;
      const bool isApart = isa<ScatterOp, StoreOp>(op) && rootOf(addressOf(op)).isApartFrom(rootOf(gather.getPtr()));
      if (!isApart && !(isa<ScatterOp>(op) && areOtherFields(gather, op, /*repeated=*/false, facts))) break;
      passes = true;
    }
  }
}

void gatherTogether(Block& block) {
  llvm::DenseSet<Operation*> done;
  SmallVector<GatherOp> gathers(block.getOps<GatherOp>());
  for (GatherOp first : gathers) {
    if (!isTile(first) || done.contains(first)) continue;
    const int64_t registers = registersOf(first.getType());
    if (registers < kLeastRegisters) continue;
    Operation* last = first;
    int64_t held = registers;
    for (Operation* op = first->getNextNode(); op && !ends(op) && held + registers <= kMostGathered;) {
      auto gather = dyn_cast<GatherOp>(op);
      op = op->getNextNode();
      if (!isTile(gather) || !readTogether(first, gather)) continue;
      const auto parts = partsBehind(gather, first);
      if (!parts) continue;
      for (Operation* part : *parts) part->moveBefore(first);
      gather->moveAfter(last);
      last = gather, held += registers;
      done.insert(gather);
    }
  }
}

class GathersTogetherPass : public PassWrapper<GathersTogetherPass, OperationPass<func::FuncOp>> {
 public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(GathersTogetherPass)
  StringRef getArgument() const override { return "tile-gathers-together"; }
  StringRef getDescription() const override { return "interleave gathers of one memory"; }
  void getDependentDialects(DialectRegistry& registry) const override { registry.insert<TileDialect>(); }

  void runOnOperation() override {
    const Facts facts(getOperation());
    for (Block* block : blocksOf(getOperation())) {
      bringMasks(*block, facts);
      bringFields(*block, facts);
      gatherTogether(*block);
    }
  }
};

}  // namespace

bool readTogether(GatherOp first, GatherOp gather) {
  return gather.getPtr() == first.getPtr() && gather.getMask() == first.getMask() && gather.getOffsets() &&
         gather.getOther() == first.getOther() && gather.getCache() == first.getCache() &&
         gather.getType() == first.getType();
}

std::unique_ptr<Pass> createGathersTogetherPass() { return std::make_unique<GathersTogetherPass>(); }

}  // namespace tile::ir
