// stage_room.cpp - see stage_room.h.
#include "compiler/gpu/overlap/stage_room.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/rings/ring_groups.h"

namespace tile::ir {
using namespace mlir;

bool leavesRegisters(scf::ForOp loop, int warps) {
  constexpr int kMostWarps = 8, kMostSums = 64;
  int sums = 0;
  bool onlySums = warps <= kMostWarps;
  loop.getBody()->walk([&](Operation* op) {
    auto product = dyn_cast<MmaOp>(op);
    if (product && isAsyncProduct(product) && !isTile(product.getA()))
      sums += accumulatorLayout(product).numRegs();
    else
      onlySums &= llvm::none_of(op->getResultTypes(), [](Type type) {
        return isa<RankedTensorType>(type) && isa<FloatType>(getElementTypeOrSelf(type));
      });
  });
  return onlySums && sums <= kMostSums;
}

}  // namespace tile::ir
