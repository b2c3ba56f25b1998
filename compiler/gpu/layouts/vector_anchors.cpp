// vector_anchors.cpp - short vectors that place or weigh the rows of tiles, and what is used as it was loaded.
#include <map>

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

// From a layout whose warps hold blocks of rows, and all lanes a piece of each: that of a vector of which each warp has
// the elements of its rows. Nullopt: it is no such layout.
static std::optional<Layout> vectorBesideRows(const Layout& rows) {
  constexpr int kMostRegisters = 4;
  const int lanes = rows.numLanes();
  if (rows.isPadded() || rows.warps().size() != 1 || rows.warps()[0].dim != 0 ||
      llvm::any_of(rows.lanes(), [](const layout::Digit& digit) { return digit.dim == 0; }))
    return std::nullopt;
  const layout::Digit warps = rows.warps()[0];
  const int own = warps.stride, used = std::min(own, lanes);
  if (int64_t{own} * warps.count != rows.shape()[0] || own > kMostRegisters * lanes || own % used || lanes % used)
    return std::nullopt;
  return Layout({rows.shape()[0]}, {{0, own / used, 1}},
                {{0, used, own / used}, {layout::kReplicated, lanes / used, 0}}, {warps});
}

// Whether something made of the vector, element by element, is reduced or scanned: then every warp wants it whole.
static bool isCombined(Value vector) {
  llvm::SetVector<Value> made;
  made.insert(vector);
  for (size_t i = 0; i < made.size(); ++i)
    for (Operation* user : made[i].getUsers()) {
      if (isa<ReduceOp, ScanOp>(user)) return true;
      if (isElementwise(user) || isa<ReshapeOp>(user)) made.insert(user->result_begin(), user->result_end());
    }
  return false;
}

// The vectors read from memory that a column of places is made of.
SmallVector<Value> LayoutPlan::vectorsBehind(Value column) const {
  SmallVector<Value> vectors;
  llvm::SetVector<Value> parts;
  if (column) parts.insert(column);
  for (size_t i = 0; i < parts.size(); ++i) {
    const Value value = parts[i];
    Operation* op = value.getDefiningOp();
    if (!op || !isTile(value) || tileType(value).getNumElements() != tileType(column).getNumElements()) continue;
    if (isElementwise(op) || isa<ReshapeOp>(op))
      parts.insert(op->operand_begin(), op->operand_end());
    else if (isa<LoadOp, GatherOp>(op) && tileType(value).getRank() == 1)
      vectors.push_back(value);
  }
  return vectors;
}

// Vectors that are looked up and say where short rows are (strings of a dictionary, say), and those that say where the
// rows go: each warp has the elements of its own rows, which are consecutive. In every warp as a whole (keepInWarps)
// each would look all of them up, which is more work for the first-level cache than the rows are.
void LayoutPlan::keepWithShortRows() {
  constexpr int64_t kShort = 128;  // bytes of a row: a line
  std::map<layout::Shape, Layout> layouts;
  auto isFound = [&](Value vector) {
    Operation* op = vector.getDefiningOp();
    const auto access = accessOf(op, facts_);
    return access && isLookup(op, *access);
  };
  auto keep = [&](ArrayRef<Value> vectors, const Layout& rows) {
    for (Value vector : vectors) choices_.choose(vector, *vectorBesideRows(rows));
    choices_.spread();
  };
  scope_.walk([&](Operation* op) {
    auto gather = dyn_cast<GatherOp>(op);
    const Value tile = gather ? gather.getResult() : Value();
    if (numWarps() == 1 || !tile || !isTile(tile) || tileType(tile).getRank() != 2 || choices_.of(tile)) return;
    if (tileBytes(tile.getType()) > kShort * tileType(tile).getDimSize(0) || productMeeting(tile)) return;
    const SmallVector<Value> vectors = vectorsBehind(placesOfRows(gather.getOffsets()));
    if (llvm::none_of(vectors, isFound) || llvm::any_of(vectors, isCombined)) return;
    const auto best = access_.coalescedLayout(gather);
    const Layout rows = best ? withRowsTogether(*best) : Layout();
    if (!best || !vectorBesideRows(rows)) return;
    layouts.emplace(rows.shape(), rows);
    choices_.choose(tile, rows);
    keep(vectors, rows);
  });
  scope_.walk([&](Operation* op) {
    auto scatter = dyn_cast<ScatterOp>(op);
    if (!scatter || !isTile(scatter.getValue())) return;
    const auto rows = layouts.find(shapeOf(scatter.getValue()));
    if (rows == layouts.end()) return;
    const SmallVector<Value> vectors = vectorsBehind(placesOfRows(scatter.getOffsets()));
    if (llvm::none_of(vectors, isCombined)) keep(vectors, rows->second);
  });
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
