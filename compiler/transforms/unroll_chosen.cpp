// unroll_chosen.cpp - eliminations of small matrices become straight-line code.
// Before: for k in 0..32 carrying a { column = sum(where(col == k, a, 0)); .. a = where(row > k, a - l * top, a) }:
//         threads have several elements of every row and column, and in each iteration all of them are candidates.
// After:  32 bodies with constants for k: which register of which lane holds column k is known (one shuffle, no
//         selections), and rows and columns that are done, or not begun, are neither compared nor computed.
//
// Only where the tile and all bodies are small: code that runs once per program comes from memory. Divisions and roots
// of f64 are many instructions each, and kernels with products have other uses for their registers: both stay.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/products.h"
#include "compiler/dialect/tiles.h"
#include "compiler/dialect/warps.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"

namespace tile::ir {
#define GEN_PASS_DEF_UNROLLCHOSEN
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

constexpr int64_t kFewestTrips = 4, kMostTrips = 32;
constexpr int64_t kMostElements = 64;      ///< of the carried tile, of a thread
constexpr int64_t kMostOperations = 2560;  ///< of all bodies

/// Broadcast or reshaped from what is returned.
Value unshaped(Value tile) {
  while (isa_and_nonnull<BroadcastOp, ReshapeOp>(tile.getDefiningOp())) tile = tile.getDefiningOp()->getOperand(0);
  return tile;
}

/// The places where a comparison says whether they are the loop's own number.
bool comparesWithNumber(Value condition, scf::ForOp loop) {
  auto compare = unshaped(condition).getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq) return false;
  auto isNumber = [&](Value side) {
    auto splat = unshaped(side).getDefiningOp<SplatOp>();
    return splat && splat.getValue() == loop.getInductionVar();
  };
  return isNumber(compare.getLhs()) || isNumber(compare.getRhs());
}

/// A sum over what the loop's number chooses of a tile that the loop carries, of two dims at least.
bool choosesOfCarried(Operation& op, scf::ForOp loop) {
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce || reduce.getNumResults() != 1) return false;
  auto select = reduce.getSources()[0].getDefiningOp<arith::SelectOp>();
  if (!select || !isa<RankedTensorType>(select.getCondition().getType())) return false;
  auto carried = dyn_cast<BlockArgument>(select.getTrueValue());
  if (!carried || carried.getOwner() != loop.getBody()) return false;
  const auto type = cast<RankedTensorType>(carried.getType());
  return type.getNumElements() > type.getDimSize(reduce.getAxis()) && comparesWithNumber(select.getCondition(), loop);
}

class UnrollChosenPass : public impl::UnrollChosenBase<UnrollChosenPass> {
  void runOnOperation() override {
    if (hasProduct(getOperation())) return;
    threads_ = warpsOf(getOperation(), kUsualWarps) * 32;
    SmallVector<scf::ForOp> loops;
    getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
    for (scf::ForOp loop : loops)
      if (pays(loop)) (void)loopUnrollFull(loop);
  }

  bool pays(scf::ForOp loop) const {
    const auto trips = loop.getStaticTripCount();
    if (!trips || trips->getActiveBits() > 31) return false;
    const int64_t times = trips->getSExtValue();
    if (times < kFewestTrips || times > kMostTrips) return false;
    if (llvm::any_of(loop->getAttrs(), [](NamedAttribute a) { return a.getName().strref().starts_with("tile."); }))
      return false;
    int64_t operations = 0;
    bool chooses = false;
    for (Operation& op : loop.getBody()->without_terminator()) {
      ++operations;
      if (!isMemoryEffectFree(&op) || (op.getNumRegions() != 0 && !isa<ReduceOp>(op))) return false;
      for (Type type : op.getResultTypes())
        if (auto tile = dyn_cast<RankedTensorType>(type))
          if (tile.getNumElements() > kMostElements * threads_ || tile.getElementType().isF64()) return false;
      chooses = chooses || choosesOfCarried(op, loop);
    }
    return chooses && operations * times <= kMostOperations;
  }

  int64_t threads_ = 128;
};

}  // namespace
}  // namespace tile::ir
