// vector_anchors.cpp - short vectors that place or weigh the rows of tiles, and what is used as it was loaded.
#include "compiler/dialect/products.h"
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/combined_rows.h"
#include "compiler/gpu/layouts/layout_plan.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

// The layout of a short vector in which every warp has all elements, a few in each lane. Nullopt: it is no such vector.
std::optional<Layout> LayoutPlan::wholeInWarps(Value vector) const {
  constexpr int64_t kMostRegisters = 4;
  const layout::Shape shape = shapeOf(vector);
  if (shape.size() != 1 || shape[0] % target_.lanes != 0 || shape[0] > kMostRegisters * target_.lanes)
    return std::nullopt;
  const int count = static_cast<int>(shape[0] / target_.lanes);
  std::vector<layout::Digit> warps;
  if (numWarps() > 1) warps.push_back({layout::kReplicated, numWarps(), 0});
  return Layout(shape, {{0, count, 1}}, {{0, target_.lanes, count}}, warps);
}

// Whether the vectors are never made rows or columns of tiles, and some are offsets into memory. Then they are all the
// work of the program: if every warp held all of them, every warp would do all of it.
static bool areAllWork(ArrayRef<Value> vectors) {
  bool accesses = false;
  for (Value vector : vectors) {
    if (vector.getDefiningOp<ReshapeOp>()) return false;
    for (OpOperand& use : vector.getUses()) {
      Operation* user = use.getOwner();
      if (isa<ReshapeOp>(user)) return false;
      Value offsets = llvm::TypeSwitch<Operation*, Value>(user)
                          .Case<GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp>([](auto op) { return op.getOffsets(); })
                          .Default(Value());
      accesses |= offsets == vector;
    }
  }
  return accesses;
}

// Short vectors that are scanned, or loaded for the rows of tiles (row numbers, factors), and vectors from which these
// are computed or that are computed from them: every warp holds all elements, so that no warp waits for another. From
// there they reach the threads of tiles through shared memory of the warp's own. A lane computes its own elements only,
// not those of all rows that it holds.
void LayoutPlan::keepInWarps() {
  const SmallVector<Value> factors = holdFactors();
  SmallVector<Value> kept;
  auto canKeep = [&](Value vector) { return !isCheap(vector) && !choices_.of(vector) && wholeInWarps(vector); };
  // The vectors and those that elementwise work combines with them; if `carried`, also across iterations and branches.
  auto together = [&](ArrayRef<Value> vectors, bool carried) {
    llvm::SetVector<Value> met;
    auto meet = [&](Value vector) {
      if (isTile(vector) && canKeep(vector)) met.insert(vector);
    };
    llvm::for_each(vectors, meet);
    for (size_t i = 0; i < met.size(); ++i) {
      Value vector = met[i];
      SmallVector<Operation*> around(vector.getUsers());
      Operation* op = vector.getDefiningOp();
      around.push_back(op ? op : vector.getParentBlock()->getParentOp());
      for (Operation* op : around) {
        if (isElementwise(op)) llvm::for_each(sameLayout(op), meet);
        if (!carried) continue;
        for (auto& group : carriedGroups(op->hasTrait<OpTrait::IsTerminator>() ? op->getParentOp() : op))
          if (llvm::is_contained(group, vector)) llvm::for_each(group, meet);
      }
    }
    return met.takeVector();
  };
  auto keep = [&](ArrayRef<Value> vectors) {
    for (Value vector : vectors)
      if (choices_.hold(vector, *wholeInWarps(vector))) kept.push_back(vector);
  };
  scope_.walk([&](Operation* op) {
    if (!isa<ScanOp>(op) || numWarps() == 1) return;
    const SmallVector<Value> scanned = sameLayout(op);
    if (!areAllWork(together(scanned, /*carried=*/true))) keep(together(scanned, /*carried=*/false));
  });
  kept.clear();
  scope_.walk([&](Operation* op) {
    auto access = accessOf(op, facts_);
    if (!access || !isLookup(op, *access)) return;
    auto whole = wholeInWarps(access->tile);
    if (whole && isForManyRows(access->tile, whole->numRegs(), [&](Value tile) {
          MmaOp product = productMeeting(tile);
          return product ? accumulatorLayout(product) : defaultLayout(tile.getType());
        }))
      keep(together({access->tile}, /*carried=*/false));
  });
  choices_.follow(kept);  // their offsets, and what places or weighs rows by them
  choices_.follow(factors);
  choices_.spread();
}

// Vectors that loops gather to weigh the rows or columns of a product: each thread reads the elements for its own rows
// or columns. Otherwise keepInWarps would let every warp read all of them, and exchange them, in every iteration.
SmallVector<Value> LayoutPlan::holdFactors() {
  constexpr int kFew = 4;  // elements of a thread: registers for their addresses
  SmallVector<Value> held;
  scope_.walk([&](Operation* op) {
    auto gather = dyn_cast<GatherOp>(op);
    if (!gather || !isTile(gather.getResult()) || !isa<FloatType>(getElementTypeOrSelf(gather.getType())) ||
        shapeOf(gather.getResult()).size() != 1 || !op->getParentOfType<LoopLikeOpInterface>())
      return;
    auto layout = layoutBesideProduct(gather.getResult());
    if (layout && layout->numRegs() <= kFew && choices_.hold(gather.getResult(), *layout))
      held.push_back(gather.getResult());
  });
  return held;
}

std::optional<Layout> LayoutPlan::layoutBesideProduct(Value vector) const {
  constexpr size_t kMost = 16;
  const layout::Shape shape = shapeOf(vector);
  SmallVector<Value> pending{vector};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!isTile(value) || !seen.insert(value).second) continue;
    for (OpOperand& use : value.getUses()) {
      Operation* user = use.getOwner();
      if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()); loop && isa<scf::YieldOp>(user)) {
        pending.push_back(loop.getRegionIterArg(use.getOperandNumber()));  // read an iteration early
      } else if (auto broadcast = dyn_cast<BroadcastOp>(user)) {
        if (MmaOp product = productMeeting(broadcast.getResult()))
          return sourceLayout(broadcast, accumulatorLayout(product)).reshaped(shape);
      } else if (isa<ReshapeOp>(user) || (isElementwise(user) && user->getNumResults() == 1)) {
        pending.push_back(user->getResult(0));
      }
    }
  }
  return std::nullopt;
}

// Large tiles that loops of products load an iteration early are carried in the layout in which they are loaded. They
// are converted where they are used, an iteration later: a conversion behind the load would wait for it.
SmallVector<Value> LayoutPlan::keepAsLoaded() {
  SmallVector<Value> kept;
  scope_.walk([&](Operation* op) {
    if (!isa<scf::ForOp>(op) || !hasProduct(op)) return;
    for (auto& group : carriedGroups(op)) {
      auto load = group[2].getDefiningOp<LoadOp>();  // the value that is carried on
      if (!load || load->getParentOp() != op || tileBytes(load.getResult().getType()) <= kSmallTileBytes) continue;
      const Layout layout = *access_.coalescedLayout(load);
      for (Value tile : group)
        if (choices_.hold(tile, layout)) kept.push_back(tile);
    }
  });
  return kept;
}

}  // namespace tile::ir
