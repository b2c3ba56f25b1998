// narrow_gathers.cpp - gathers once what neighbours along a dim share.
// Before: gather p offsets f(x) [64, N] where f takes groups of c neighbours along a dim to one place (a byte with two
//         numbers of 4 bits, read through k / 2; a factor of a group, through k / 128), and no neighbours to places
//         that lie next to each other.
// After:  every c-th offset is gathered, [64 / c, N], and the result repeated: broadcast to [64 / c, c, N], reshaped to
//         [64, N].
//
// Of bytes that were read through (x + 0, 1, 2, ...) / 2 neighbours then lie next to each other: whole words are read.
// Rows of bytes that several share are boxes, which can be copied ahead, where every row is read once. Words of 32 bits
// are shared inside a thread as they are (access_layout.cpp), unless copies ahead decide (raise_boxes.cpp).
#include "compiler/dialect/tiles.h"
#include "compiler/transforms/narrowed_gather.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_NARROWGATHERS
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

class NarrowGathersPass : public impl::NarrowGathersBase<NarrowGathersPass> {
  void runOnOperation() override {
    SmallVector<GatherOp> gathers;
    getOperation().walk([&](GatherOp gather) {
      auto type = dyn_cast<RankedTensorType>(gather.getResult().getType());
      const bool isPlain = gather.getOffsets() && !gather.getOther() && gather.getCache() != CacheHint::volatile_;
      if (isPlain && type && type.getRank() == 2) gathers.push_back(gather);
    });
    if (gathers.empty()) return;
    const Facts facts(getOperation());
    for (GatherOp gather : gathers) {
      const AxisFacts offsets = facts.of(gather.getOffsets());
      const bool isWord = tileType(gather.getResult()).getElementTypeBitWidth() >= 32;
      for (int64_t dim : {0, 1}) {
        const bool isShared = isWord && (dim == 1 || offsets.contiguity[1] > 1);
        if (isShared || offsets.contiguity[dim] > 1 || (dim == 1 && offsets.contiguity[0] > 1)) continue;
        const int64_t alike = sharedAlong(gather, dim, facts);
        if (alike > 1 && narrow(gather, dim, alike, facts)) break;
      }
    }
  }

  static bool narrow(GatherOp gather, int64_t dim, int64_t alike, const Facts& facts) {
    const std::optional<NarrowedGather> narrowed = narrowedGather(gather, dim, alike, facts);
    if (!narrowed) return false;
    gather.getResult().replaceAllUsesWith(narrowed->repeated);
    gather.erase();
    return true;
  }
};

}  // namespace
}  // namespace tile::ir
