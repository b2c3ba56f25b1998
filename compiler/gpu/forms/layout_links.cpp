// layout_links.cpp - tiles that lie alike, op by op.
#include "compiler/gpu/forms/layout_links.h"

#include "compiler/analysis/known_values.h"
#include "compiler/dialect/tiles.h"
#include "compiler/layout/lane_trades.h"
#include "compiler/layout/relations.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

void addTiles(SmallVector<Value>& into, ValueRange values) {
  for (Value value : values)
    if (value && isTile(value)) into.push_back(value);
}

/// Whether what is computed of the tile, element by element, loses a dim.
bool isFlattened(Value tile) {
  constexpr size_t kMost = 32;  // tiles that are looked at
  llvm::SetVector<Value> reached;
  reached.insert(tile);
  for (size_t i = 0; i < reached.size() && i < kMost; ++i)
    for (Operation* user : reached[i].getUsers()) {
      auto reshape = dyn_cast<ReshapeOp>(user);
      if (reshape && reshape.getType().getRank() < reshape.getSource().getType().getRank()) return true;
      if (isElementwise(user) && user->getNumResults() == 1) reached.insert(user->getResult(0));
    }
  return false;
}

/// Of a tile computed of one that is loaded, element by element: the bits that were loaded of each.
unsigned loadedBits(Value tile) {
  while (Operation* op = tile.getDefiningOp()) {
    if ((!isElementwise(op) && !isa<ReshapeOp>(op)) || op->getNumOperands() == 0) break;
    const Value from = op->getOperand(isa<arith::SelectOp>(op) ? 1 : 0);
    if (!isTile(from)) break;
    tile = from;
  }
  return tileType(tile).getElementTypeBitWidth();
}

/// The only dim along which the op repeats elements, if it does so a few times and the copies become neighbours (the
/// numbers in a byte, which are best read by words). Copies of a matrix that meet another one are as well kept by the
/// threads that add them up, and words of eight numbers by threads that have the same columns of several.
std::optional<int> dimOfFewCopies(BroadcastOp broadcast) {
  constexpr int64_t kMost = 8;
  if (!isFlattened(broadcast.getResult())) return std::nullopt;
  if (loadedBits(broadcast.getSource()) >= 32) return std::nullopt;
  const layout::Shape small = shapeOf(broadcast.getSource()), large = shapeOf(broadcast.getResult());
  std::optional<int> repeated;
  for (int dim = 0; dim < static_cast<int>(large.size()); ++dim) {
    if (small[dim] == large[dim]) continue;
    if (repeated || large[dim] > kMost) return std::nullopt;
    repeated = dim;
  }
  return repeated;
}

}  // namespace

SmallVector<Value> sameLayout(Operation* op) {
  SmallVector<Value> group;
  bool all = isa<GatherOp, ScatterOp, AtomicRmwOp, AtomicCasOp, ScanOp, AssumeOp>(op) || isElementwise(op);
  if (auto take = dyn_cast<TakeOp>(op)) {
    addTiles(group, {take.getIndices(), take.getResult()});
  } else if (auto put = dyn_cast<PutOp>(op)) {
    addTiles(group, put.getIndices());
    addTiles(group, put.getValues());
  } else if (auto mma = dyn_cast<MmaOp>(op)) {
    addTiles(group, {mma.getAcc(), mma.getResult()});
  } else if (auto mma = dyn_cast<BatchMmaOp>(op)) {
    addTiles(group, {mma.getAcc(), mma.getResult()});
  } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
    addTiles(group, reduce.getSources());
  } else if (auto histogram = dyn_cast<HistogramOp>(op); histogram && histogram.getWeights()) {
    addTiles(group, op->getOperands());
  } else if (auto count = dyn_cast<SmemCountOp>(op); count && count.getWeights()) {
    addTiles(group, {count.getSource(), count.getWeights()});
  } else if (auto gather = dyn_cast<AsyncGatherOp>(op)) {
    addTiles(group, gather->getOperands());
  } else if (all) {
    addTiles(group, op->getOperands());
    addTiles(group, op->getResults());
  }
  return group;
}

SmallVector<SmallVector<Value>> carriedGroups(Operation* op) {
  SmallVector<SmallVector<Value>> groups;
  auto add = [&](std::initializer_list<Value> values) {
    if (isTile(*values.begin())) groups.emplace_back(values);
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [result, arg, init, yielded] :
         llvm::zip(loop.getResults(), loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues()))
      add({result, arg, yielded, init});
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (auto [i, result] : llvm::enumerate(branch.getResults()))
      add({result, branch.thenYield().getOperand(i), branch.elseYield().getOperand(i)});
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [arg, init, yielded] :
         llvm::zip(loop.getBeforeArguments(), loop.getInits(), loop.getYieldOp().getOperands()))
      add({arg, yielded, init});
    for (auto [result, arg, passed] :
         llvm::zip(loop.getResults(), loop.getAfterArguments(), loop.getConditionOp().getArgs()))
      add({result, arg, passed});
  }
  return groups;
}

Layout sourceLayout(BroadcastOp broadcast, Layout result) {
  const layout::Shape small = shapeOf(broadcast.getSource());
  for (int dim = 0; dim < result.rank(); ++dim)
    if (small[dim] != result.shape()[dim]) result = result.sliced(dim);
  return result;
}

void visitLinks(Operation* op, llvm::function_ref<void(Value from, Value to, MapLayout map)> visit) {
  llvm::TypeSwitch<Operation*>(op)
      .Case<ReduceOp>([&](ReduceOp reduce) {
        for (auto [source, result] : llvm::zip(reduce.getSources(), reduce.getResults()))
          visit(source, result, [&](const Layout& l) { return l.sliced(static_cast<int>(reduce.getAxis())); });
      })
      .Case<BroadcastOp>([&](BroadcastOp broadcast) {
        visit(broadcast.getResult(), broadcast.getSource(),
              [&](const Layout& l) { return std::optional(sourceLayout(broadcast, l)); });
        if (const auto dim = dimOfFewCopies(broadcast))
          visit(broadcast.getSource(), broadcast.getResult(), [&](const Layout& l) -> std::optional<Layout> {
            // Copies inside of threads are too many where threads have copies of each other.
            if (l.regReplicas() * l.laneReplicas() * l.warpReplicas() > 1) return std::nullopt;
            return layout::repeatedLayout(l, *dim, static_cast<int>(shapeOf(broadcast.getResult())[*dim]));
          });
      })
      .Case<TransOp>([&](TransOp trans) {
        std::vector<int> forward(trans.getPermutation().begin(), trans.getPermutation().end()), back(forward.size());
        for (size_t i = 0; i < forward.size(); ++i) back[forward[i]] = static_cast<int>(i);
        visit(trans.getSource(), trans.getResult(),
              [&](const Layout& l) { return std::optional(l.transposed(forward)); });
        visit(trans.getResult(), trans.getSource(), [&](const Layout& l) { return std::optional(l.transposed(back)); });
      })
      .Case<ReshapeOp>([&](ReshapeOp reshape) {
        visit(reshape.getSource(), reshape.getResult(),
              [&](const Layout& l) { return l.reshaped(shapeOf(reshape.getResult())); });
        visit(reshape.getResult(), reshape.getSource(),
              [&](const Layout& l) { return l.reshaped(shapeOf(reshape.getSource())); });
      })
      .Case<ExtractOp>([&](ExtractOp extract) {
        layout::Coord offset(extract.getOffsets().begin(), extract.getOffsets().end());
        visit(extract.getSource(), extract.getResult(),
              [&](const Layout& l) { return extractedLayout(l, offset, shapeOf(extract.getResult())); });
      })
      .Case<TakeOp>([&](TakeOp take) {
        // Known indices mostly permute neighbours: shuffles, where both sides are laid out alike.
        if (take.getSource().getType().getShape() != take.getResult().getType().getShape()) return;
        if (!knownValues(take.getIndices())) return;
        visit(take.getSource(), take.getResult(), [&](const Layout& l) { return std::optional(l); });
        visit(take.getResult(), take.getSource(), [&](const Layout& l) { return std::optional(l); });
      })
      .Case<CatOp>([&](CatOp cat) {
        int axis = static_cast<int>(cat.getAxis()), count = static_cast<int>(cat.getSources().size());
        bool alike =
            llvm::all_of(cat.getSources(), [&](Value v) { return v.getType() == cat.getSources()[0].getType(); });
        if (!alike) return;
        visit(cat.getSources()[0], cat.getResult(),
              [&](const Layout& l) { return layout::repeatedLayout(l, axis, count); });
        layout::Coord offset(shapeOf(cat.getResult()).size(), 0);
        for (Value source : cat.getSources()) {
          visit(cat.getResult(), source,
                [&](const Layout& l) { return layout::boxLayout(l, offset, shapeOf(source)); });
          offset[axis] += shapeOf(source)[axis];
        }
      });
}

std::optional<Layout> layoutToExtractFrom(const Layout& source, const layout::Coord& offset,
                                          const layout::Shape& shape) {
  constexpr int kMostTraded = 2;  // so many shuffles for every four elements at most
  if (layout::boxLayout(source, offset, shape)) return source;
  auto traded = layout::cuttableLayout(source, shape, kMostTraded);
  return traded && layout::boxLayout(*traded, offset, shape) ? traded : std::nullopt;
}

std::optional<Layout> extractedLayout(const Layout& source, const layout::Coord& offset, const layout::Shape& shape) {
  auto from = layoutToExtractFrom(source, offset, shape);
  return from ? layout::boxLayout(*from, offset, shape) : std::nullopt;
}

}  // namespace tile::ir
