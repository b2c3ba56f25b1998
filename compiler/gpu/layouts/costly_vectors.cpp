// costly_vectors.cpp - vectors of much work (hashes, functions) that say something about every row of a tile.
#include "compiler/dialect/products.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/layout_links.h"
#include "compiler/gpu/layouts/layout_plan.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

/// Instructions of one element, roughly.
int64_t workOf(Operation* op) {
  constexpr int64_t kFunction = 8, kWideProduct = 4, kWide = 2;
  if (isa<math::MathDialect>(op->getDialect()) || isa<arith::DivFOp>(op)) return kFunction;
  const bool isWide = getElementTypeOrSelf(op->getResult(0)).getIntOrFloatBitWidth() > 32;
  return !isWide ? 1 : isa<arith::MulIOp>(op) ? kWideProduct : kWide;
}

/// Vectors that elementwise work connects, in one loop or in none.
struct Connected {
  llvm::SetVector<Value> vectors;
  int64_t work = 0;
};

/// Everything that elementwise work of the same block makes `vector` of, or makes of it. Nullopt: some of it comes from
/// elsewhere than loads, and has the layout of that.
std::optional<Connected> connectedTo(Value vector) {
  Connected all;
  all.vectors.insert(vector);
  Block* block = vector.getParentBlock();
  for (size_t i = 0; i < all.vectors.size(); ++i) {
    const Value now = all.vectors[i];
    Operation* made = now.getDefiningOp();
    if (!made || made->getBlock() != block ||
        !(isElementwise(made) || isa<LoadOp, IotaOp, SplatOp, arith::ConstantOp>(made)))
      return std::nullopt;
    if (isElementwise(made)) all.work += workOf(made);
    SmallVector<Operation*> around(now.getUsers());
    around.push_back(made);
    for (Operation* op : around)
      if (isElementwise(op) && op->getBlock() == block)
        for (Value other : sameLayout(op))
          if (isTile(other)) all.vectors.insert(other);
  }
  return all;
}

}  // namespace

// The layout in which a tile that `rows` (N x 1 or 1 x N) is broadcast to is accessed, or its default.
std::optional<Layout> LayoutPlan::layoutOfRows(Value rows) const {
  constexpr size_t kMost = 32;
  llvm::SetVector<Value> pending;
  pending.insert(rows);
  BroadcastOp broadcast;
  for (size_t i = 0; i < pending.size() && i < kMost; ++i)
    for (Operation* user : pending[i].getUsers()) {
      if (auto found = dyn_cast<BroadcastOp>(user); found && !broadcast) broadcast = found;
      if (broadcast && isa<GatherOp, ScatterOp, AtomicRmwOp>(user) &&
          tileType(user->getOperand(1)).getShape() == broadcast.getResult().getType().getShape())
        if (auto layout = access_.coalescedLayout(user)) return sourceLayout(broadcast, *layout);
      if (isElementwise(user) || isa<BroadcastOp>(user)) pending.insert(user->getResult(0));
    }
  if (!broadcast) return std::nullopt;
  return sourceLayout(broadcast, defaultLayout(broadcast.getResult().getType()));
}

// Where a tile's threads have many of its rows each, and each row in many threads, work on a vector of the rows is done
// once for every element, and the results go to the threads of the rows through shared memory. Only in straight-line
// code without products: loops would wait there in every iteration.
void LayoutPlan::keepCostlyVectors() {
  constexpr int64_t kBarrier = 30, kWorthIt = 4;  // others' loads hide work, but not that warps meet
  bool hasProducts = false;
  scope_.walk([&](Operation* op) { hasProducts |= isa<MmaOp, BatchMmaOp, DotOp>(op); });
  if (hasProducts) return;
  llvm::DenseSet<Value> seen;
  scope_.walk([&](Operation* op) {
    auto reshape = dyn_cast<ReshapeOp>(op);
    const Value vector = reshape ? reshape.getSource() : Value();
    if (!reshape || !isTile(vector) || tileType(vector).getRank() != 1 ||
        tileType(reshape.getResult()).getRank() != 2 || reshape->getParentOfType<LoopLikeOpInterface>() ||
        !seen.insert(vector).second || isCheap(vector))
      return;
    const auto rows = layoutOfRows(reshape.getResult());
    const auto connected = connectedTo(vector);
    if (!rows || !connected) return;
    seen.insert(connected->vectors.begin(), connected->vectors.end());
    int64_t moved = kBarrier;  // one for all of them
    for (Value made : connected->vectors)
      if (!isCheap(made) && llvm::any_of(made.getUsers(), [](Operation* op) { return isa<ReshapeOp>(op); }))
        moved += rows->numRegs() * 2;
    const int64_t own = defaultLayout(vector.getType()).numRegs();
    if (connected->work * (rows->numRegs() - own) <= kWorthIt * moved) return;
    for (Value made : connected->vectors) choices_.hold(made, defaultLayout(vector.getType()));
  });
}

}  // namespace tile::ir
