// access_anchors.cpp - accesses to global memory, and tiles that are widened or turned on their way.
#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/copy_layout.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/mma_table.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/layouts/combined_rows.h"
#include "compiler/gpu/layouts/layout_plan.h"
#include "compiler/lowering/elementwise.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

// The column (N x 1) that says where in memory each row at these offsets begins, if that was itself read from memory:
// then rows are not neighbours, and it makes no difference which thread reads which row. Null otherwise.
Value LayoutPlan::placesOfRows(Value offsets) const {
  SmallVector<Value> pending{offsets};
  Value column;
  while (!pending.empty() && !column) {
    Operation* op = pending.pop_back_val().getDefiningOp();
    auto broadcast = dyn_cast_or_null<BroadcastOp>(op);
    if (broadcast && broadcast.getSource().getType().getDimSize(1) == 1)
      column = broadcast.getSource();
    else if (op && isElementwise(op))
      pending.append(op->operand_begin(), op->operand_end());
  }
  if (!column) return {};
  const int64_t rows = tileType(column).getNumElements();
  pending.assign(1, column);
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    Operation* op = value.getDefiningOp();
    if (!type || type.getNumElements() != rows || !op || !seen.insert(value).second) continue;
    if (isa<LoadOp, GatherOp>(op)) return column;
    if (isElementwise(op) || isa<ReshapeOp>(op)) pending.append(op->operand_begin(), op->operand_end());
  }
  return {};
}

// For a gather of short rows (pairs, colours) at such places: the layout in which the thread that has a row's place
// reads the row. `best` would be chosen otherwise.
std::optional<Layout> LayoutPlan::rowsWherePlaced(Operation* op, const Layout& best) const {
  auto gather = dyn_cast<GatherOp>(op);
  if (!gather || !gather.getOffsets() || best.rank() != 2 || best.isPadded()) return std::nullopt;
  auto isAlong = [](int dim) { return [dim](const layout::Digit& digit) { return digit.dim == dim; }; };
  if (llvm::any_of(best.lanes(), isAlong(1)) || llvm::any_of(best.warps(), isAlong(1))) return std::nullopt;
  const Value column = placesOfRows(gather.getOffsets());
  const auto places = column ? choices_.of(column) : std::nullopt;
  if (!places || places->isPadded() || places->laneReplicas() > 1 || places->warpReplicas() > 1) return std::nullopt;
  std::vector<layout::Digit> regs;
  llvm::copy_if(best.regs(), std::back_inserter(regs), isAlong(1));
  llvm::copy_if(places->regs(), std::back_inserter(regs), isAlong(0));
  return Layout(best.shape(), regs, places->lanes(), places->warps());
}

// Accesses to global memory. Loads come before stores, because a stored tile is computed from loaded ones; large tiles
// before small ones, and wide accesses before narrow ones. What can be read as well under any layout comes last, and
// takes that of the tiles around it.
void LayoutPlan::placeAccesses() {
  SmallVector<Operation*> anchors;
  scope_.walk([&](Operation* op) {
    if (accessOf(op, facts_)) anchors.push_back(op);
  });
  auto rank = [&](Operation* op) {
    const GlobalAccess access = *accessOf(op, facts_);
    const bool isWrite = isa<StoreOp, AccumulateOp, ScatterOp>(op) || addsToMemory(op) || updatesFew(op);
    const int turn = takesAnyLayout(op, access, facts_) ? 2 : isWrite ? 1 : 0;
    return std::tuple(turn, -tileBytes(access.tile.getType()), -access.width.aligned);
  };
  llvm::stable_sort(anchors, [&](Operation* a, Operation* b) { return rank(a) < rank(b); });
  for (Operation* op : anchors) {
    const GlobalAccess access = *accessOf(op, facts_);
    const Value tile = access.tile;
    // What reads its places from shared memory is no access here, and reads them in vectors (placeRest).
    if (!choices_.of(tile) && isLookupOfCopies(op, access)) continue;
    Layout best = *access_.coalescedLayout(op);
    if (auto rows = rowsWherePlaced(op, best)) best = *rows;
    auto own = choices_.of(tile);
    if (own && op->getNumResults() && tile == op->getResult(0) && !access_.serves(op, *own, best, false)) {
      choices_.replace(tile, best);  // a conversion goes between it and the others of its group
      continue;
    }
    choices_.choose(tile, best);
    choices_.spread();
  }
}

// Vectors that are broadcast to a tile which any thread can compute (offsets of rows, whether rows are in bounds) are
// computed by the threads that need them, if those need at most kTimes their share: this saves the exchange.
void LayoutPlan::computeWhereUsed(Value tile, const Layout& layout) {
  constexpr int kTimes = 2;
  if (!isCheap(tile)) return;  // it has a layout of its own
  Operation* op = tile.getDefiningOp();
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    Value small = broadcast.getSource();
    const Layout wanted = sourceLayout(broadcast, layout);
    if (wanted.numRegs() > kTimes * defaultLayout(small.getType()).numRegs()) return;
    choices_.choose(small, wanted);
  } else if (op && isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (isTile(operand)) computeWhereUsed(operand, layout);
  }
}

void LayoutPlan::placeAsyncGathersAndScans() {
  scope_.walk([&](Operation* op) {
    if (auto gather = dyn_cast<AsyncGatherOp>(op)) {
      const Layout layout = asyncGatherLayout(gather, facts_, numWarps());
      choices_.choose(gather.getOffsets(), layout);
      computeWhereUsed(gather.getOffsets(), layout);
      if (gather.getMask()) {  // offsets that any thread can compute tell it nothing
        choices_.choose(gather.getMask(), layout);
        computeWhereUsed(gather.getMask(), layout);
      }
    }
    if (auto scan = dyn_cast<ScanOp>(op)) {
      Value result = scan.getResults()[0];
      choices_.choose(result, scanLayout(shapeOf(result), static_cast<int>(scan.getAxis()), numWarps(), target_.lanes));
    }
    choices_.spread();
  });
}

// Tiles that are widened on their way into shared memory: threads write neighbouring pieces of 16 bytes, along the dim
// in which the buffer is contiguous (columns of keys that are read turned).
void LayoutPlan::placeWidened() {
  scope_.walk([&](Operation* op) {
    if (auto store = dyn_cast<SmemStoreOp>(op); store && isWidenedInPlace(store.getValue())) {
      const Type type = store.getValue().getType();
      const auto minor = static_cast<int>(store.getTarget().getType().getMinor());
      choices_.choose(store.getValue(), access_.defaultLayout(type, minor));
    }
    choices_.spread();
  });
}

// Tiles that are stored to a buffer whose columns are contiguous, or read from one: threads hold runs along columns, so
// that several elements are moved at a time. (The default layout has runs along rows.)
void LayoutPlan::placeTurned() {
  auto place = [&](Value tile, SmemType buffer) {
    const auto minor = static_cast<int>(buffer.getMinor());
    if (choices_.of(tile) || tileType(tile).getRank() != 2 || minor == 1) return;
    choices_.choose(tile, access_.defaultLayout(tile.getType(), minor));
    choices_.spread();
  };
  scope_.walk([&](Operation* op) {
    if (auto store = dyn_cast<SmemStoreOp>(op)) place(store.getValue(), store.getTarget().getType());
    if (auto load = dyn_cast<SmemLoadOp>(op)) place(load.getResult(), load.getSource().getType());
  });
}

}  // namespace tile::ir
