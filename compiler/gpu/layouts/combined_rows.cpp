// combined_rows.cpp - walks along uses of a tile to see what is done with its rows, and trades digits of its layout.
#include "compiler/gpu/layouts/combined_rows.h"

#include <numeric>

#include "compiler/dialect/tiles.h"
#include "compiler/gpu/access/global_access.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/layout_links.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

namespace {

// Whether the tile is computed from constants, scalars and indices only: any thread can make any element of it.
bool isMadeOfPlaces(Value tile) {
  constexpr size_t kMost = 64;
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    Operation* op = value.getDefiningOp();
    if (!isTile(value) || !seen.insert(value).second) continue;
    if (isa_and_nonnull<IotaOp, SplatOp, arith::ConstantOp>(op)) continue;
    if (!op || !(isElementwise(op) || isa<ReshapeOp, BroadcastOp>(op))) return false;
    pending.append(op->operand_begin(), op->operand_end());
  }
  return pending.empty();
}

// Registers of a thread for the vectors that are broadcast to what is reduced, under this layout.
int64_t registersOfVectors(ReduceOp reduce, const Layout& layout) {
  constexpr size_t kMost = 128;
  SmallVector<Value> pending(reduce.getSources());
  llvm::DenseSet<Value> seen, vectors;
  int64_t registers = 0;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!isTile(value) || shapeOf(value) != layout.shape() || !seen.insert(value).second) continue;
    Operation* op = value.getDefiningOp();
    if (op && isElementwise(op)) pending.append(op->operand_begin(), op->operand_end());
    auto broadcast = dyn_cast_or_null<BroadcastOp>(op);
    if (!broadcast || !vectors.insert(broadcast.getSource()).second || isMadeOfPlaces(broadcast.getSource())) continue;
    registers += sourceLayout(broadcast, layout).numRegs() * std::max(1, elementBytes(value.getType()) / 4);
  }
  return registers;
}

}  // namespace

std::optional<Layout> layoutToCombineIn(ReduceOp reduce, const std::optional<Layout>& result, int numWarps,
                                        int numLanes) {
  constexpr int64_t kShort = 16, kLongest = 32, kMostOfVectors = 128;
  const layout::Shape shape = shapeOf(reduce.getSources()[0]);
  const int axis = static_cast<int>(reduce.getAxis());
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  if (!result || shape[axis] > kLongest ||
      result->laneReplicas() * result->warpReplicas() * result->regReplicas() != 1 ||
      int64_t{result->numRegs()} * shape[axis] * numWarps * numLanes > 2 * elements)
    return std::nullopt;
  std::vector<layout::Digit> regs{{axis, static_cast<int>(shape[axis]), 1}};
  regs.insert(regs.end(), result->regs().begin(), result->regs().end());
  Layout own(shape, regs, result->lanes(), result->warps());
  if (shape[axis] > kShort && registersOfVectors(reduce, own) > kMostOfVectors) return std::nullopt;
  return own;
}

bool isForManyRows(Value vector, int64_t registersOfLane, llvm::function_ref<Layout(Value)> layoutFor) {
  constexpr int64_t kMany = 4;
  SmallVector<Value> pending{vector};
  llvm::DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second) continue;
    for (Operation* user : value.getUsers()) {
      if (auto broadcast = dyn_cast<BroadcastOp>(user)) {
        Layout layout = layoutFor(broadcast.getResult());
        const layout::Shape small = shapeOf(broadcast.getSource());
        for (int dim = 0; dim < layout.rank(); ++dim)
          if (small[dim] != layout.shape()[dim]) layout = layout.sliced(dim);
        if (layout.numRegs() >= kMany * registersOfLane) return true;
      } else if (user->getNumResults() == 1 && (isElementwise(user) || isa<ReshapeOp>(user)) &&
                 isa<RankedTensorType>(user->getResult(0).getType())) {
        pending.push_back(user->getResult(0));
      }
    }
  }
  return false;
}

MmaOp productMeeting(Value tile) {
  constexpr size_t kMost = 32;
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!isTile(value) || shapeOf(value) != shapeOf(tile) || !seen.insert(value).second) continue;
    Operation* op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MmaOp>(op)) return product;
    if (op && isElementwise(op)) pending.append(op->operand_begin(), op->operand_end());
    for (Operation* user : value.getUsers())
      if (isElementwise(user) && user->getNumResults() == 1) pending.push_back(user->getResult(0));
  }
  return {};
}

bool foldsBlocksOfRows(Value tile) {
  constexpr size_t kMost = 32;
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second) continue;
    for (Operation* user : value.getUsers()) {
      if (isElementwise(user) && user->getNumResults() == 1 && isa<RankedTensorType>(user->getResult(0).getType()))
        pending.push_back(user->getResult(0));
      auto reshape = dyn_cast<ReshapeOp>(user);
      if (!reshape) continue;
      const layout::Shape from = shapeOf(value), to = shapeOf(reshape.getResult());
      if (from.size() < 2 || to.size() < 2 || to[0] == 1 || to[1] == 1 || to[0] * to[1] != from[0]) continue;
      for (Operation* folder : reshape.getResult().getUsers())
        if (auto reduce = dyn_cast<ReduceOp>(folder); reduce && reduce.getAxis() == 1) return true;
    }
  }
  return false;
}

bool combinesRows(Value tile) {
  constexpr size_t kMost = 64;
  auto keepsPlaces = [](Operation* op) { return op && (isElementwise(op) || isa<ReshapeOp, TransOp>(op)); };
  SmallVector<Value> pending{tile};
  llvm::SetVector<Value> made;  // what it is computed from, then what is computed from these
  while (!pending.empty() && made.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!isTile(value) || !made.insert(value)) continue;
    if (Operation* op = value.getDefiningOp(); keepsPlaces(op)) pending.append(op->operand_begin(), op->operand_end());
  }
  for (size_t i = 0; i < made.size() && i < 2 * kMost; ++i)
    for (Operation* user : made[i].getUsers()) {
      auto reduce = dyn_cast<ReduceOp>(user);
      if (reduce && reduce.getAxis() + 1 < cast<RankedTensorType>(made[i].getType()).getRank()) return true;
      if (keepsPlaces(user)) made.insert(user->result_begin(), user->result_end());
    }
  return false;
}

std::optional<Layout> shortRowsInThreads(const Layout& padded, int dim, int numWarps, int numLanes) {
  constexpr int64_t kShort = 8;
  if (dim < 0 || padded.rank() < 2 || !padded.isPadded(dim) || padded.shape()[dim] > kShort) return std::nullopt;
  layout::Shape rows = padded.shape();
  int64_t count = 1;
  rows[dim] = 1;
  for (int64_t size : rows) count *= size;
  if (count < int64_t{numWarps} * numLanes) return std::nullopt;
  std::vector<int> order;
  for (int d = padded.rank() - 1; d >= 0; --d) order.push_back(d);
  const Layout one = layout::blocked(rows, 1, order, numWarps, numLanes);
  std::vector<layout::Digit> regs{{dim, static_cast<int>(padded.shape()[dim]), 1}};
  regs.insert(regs.end(), one.regs().begin(), one.regs().end());
  return Layout(padded.shape(), regs, one.lanes(), one.warps());
}

namespace {

/// Whether the tile is a vector along dim 0, repeated in every column, that is computed from what a loop loads.
bool isLoadedColumn(Value tile) {
  constexpr size_t kMost = 16;
  auto broadcast = tile.getDefiningOp<BroadcastOp>();
  if (!broadcast || shapeOf(broadcast.getSource())[1] != 1) return false;
  SmallVector<Value> pending{broadcast.getSource()};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!isa<RankedTensorType>(value.getType()) || !seen.insert(value).second) continue;
    Operation* op = value.getDefiningOp();
    if (!op) {  // loaded an iteration early
      auto arg = cast<BlockArgument>(value);
      if (auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp()))
        pending.push_back(loop.getTiedLoopYieldedValue(arg)->get());
    } else if (isa<LoadOp, GatherOp>(op)) {
      if (op->getParentOfType<LoopLikeOpInterface>()) return true;
    } else if (isElementwise(op) || isa<ReshapeOp>(op)) {
      pending.append(op->operand_begin(), op->operand_end());
    }
  }
  return false;
}

}  // namespace

bool meetsLoadedColumns(Value tile) {
  constexpr size_t kMost = 32;
  if (shapeOf(tile).size() != 2) return false;
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second) continue;
    for (OpOperand& use : value.getUses()) {
      Operation* user = use.getOwner();
      if (auto loop = dyn_cast<scf::ForOp>(user)) {
        if (BlockArgument arg = loop.getTiedLoopRegionIterArg(&use)) pending.push_back(arg);
      } else if (isElementwise(user) && user->getNumResults() == 1) {
        if (llvm::any_of(user->getOperands(), isLoadedColumn)) return true;
        pending.push_back(user->getResult(0));
      }
    }
  }
  return false;
}

namespace {

/// Counts reductions along short axes, of what is computed from the tile and reshaped on the way, that cross warps.
int blocksOverWarps(Value tile, const Layout& layout) {
  constexpr size_t kMost = 64;
  constexpr int64_t kLongest = 32;
  struct Step {
    Value tile;
    Layout layout;
    bool isCut;
  };
  SmallVector<Step> pending{{tile, layout, false}};
  llvm::DenseSet<Value> seen;
  int count = 0;
  while (!pending.empty() && seen.size() < kMost) {
    const Step step = pending.pop_back_val();
    if (!seen.insert(step.tile).second) continue;
    for (Operation* user : step.tile.getUsers()) {
      if (auto reduce = dyn_cast<ReduceOp>(user)) {
        const int axis = static_cast<int>(reduce.getAxis());
        count += step.isCut && step.layout.shape()[axis] <= kLongest && warpsAlong(step.layout, axis) > 1;
      } else if (isElementwise(user) && user->getNumResults() == 1 && isTile(user->getResult(0))) {
        pending.push_back({user->getResult(0), step.layout, step.isCut});
      } else if (isa<ReshapeOp, TransOp>(user)) {
        visitLinks(user, [&](Value from, Value to, MapLayout map) {
          if (from != step.tile) return;
          if (auto mapped = map(step.layout)) pending.push_back({to, *mapped, step.isCut || isa<ReshapeOp>(user)});
        });
      }
    }
  }
  return count;
}

/// Exchanges the digit of warps at index `place` for digits of the same count along other dims: of registers first,
/// then the slowest ones of lanes. Nullopt: there are not enough of them.
std::optional<Layout> tradedWarps(const Layout& layout, size_t place, int dim) {
  std::vector<layout::Digit> regs = layout.regs(), lanes = layout.lanes(), warps = layout.warps();
  layout::Digit left = warps[place];
  warps.erase(warps.begin() + static_cast<long>(place));
  auto trade = [&](std::vector<layout::Digit>& list, size_t i) {
    layout::Digit& digit = list[i];
    if (digit.dim == left.dim || digit.dim == layout::kReplicated || left.count == 1) return;
    const int count = std::gcd(digit.count, left.count), rest = digit.count / count;
    if (count == 1) return;
    warps.insert(warps.begin(), {digit.dim, count, digit.stride * rest});
    digit.count = rest;
    list.insert(list.begin() + static_cast<long>(i) + 1, {left.dim, count, left.stride});
    left.stride *= count, left.count /= count;
  };
  for (size_t i = regs.size(); i-- > 0;)
    if (regs[i].dim != dim || regs[i].stride != 1) trade(regs, i);  // not what one access moves
  for (size_t i = lanes.size(); i-- > 0;) trade(lanes, i);
  if (left.count > 1) return std::nullopt;
  return Layout(layout.shape(), regs, lanes, warps);
}

}  // namespace

std::optional<Layout> blocksInWarps(Value tile, const Layout& layout, int dim, int bytes) {
  if (dim < 0 || layout.isPadded()) return std::nullopt;
  int least = blocksOverWarps(tile, layout);
  std::optional<Layout> best;
  for (size_t place = 0; least > 0 && place < layout.warps().size(); ++place) {
    auto traded = layout.warps()[place].dim == dim ? std::nullopt : tradedWarps(layout, place, dim);
    if (!traded || !wholeLines(*traded, dim, bytes)) continue;
    const int count = blocksOverWarps(tile, *traded);
    if (count < least) best = std::move(traded), least = count;
  }
  return best;
}

namespace {

/// Whether a loop only adds the result to a value that it carries: defer_reductions.cpp then moves what crosses lanes
/// and warps behind the loop.
bool isAccumulated(ReduceOp reduce) {
  if (reduce->getNumResults() != 1) return false;
  Value value = reduce->getResult(0);
  while (value.hasOneUse() && isa<ReshapeOp>(*value.user_begin())) value = (*value.user_begin())->getResult(0);
  if (!value.hasOneUse()) return false;
  Operation* user = *value.user_begin();
  return isElementwise(user) && user->getNumResults() == 1 && isa<scf::ForOp>(user->getParentOp()) &&
         llvm::any_of(user->getUsers(), llvm::IsaPred<scf::YieldOp>);
}

struct CombinedAxis {
  int axis = -1;              ///< none
  bool isAccumulated = true;  ///< by loops only, which reduce over lanes once
};

/// The axis along which results of elementwise work on the tile are reduced, if there is only one, and it is short and
/// not `dim`.
CombinedAxis combinedAxis(Value tile, int dim) {
  constexpr size_t kMost = 32;
  constexpr int64_t kLongest = 16;
  CombinedAxis only;
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen;
  while (!pending.empty() && seen.size() < kMost) {
    const Value value = pending.pop_back_val();
    if (!seen.insert(value).second) continue;
    for (Operation* user : value.getUsers()) {
      if (auto reduce = dyn_cast<ReduceOp>(user)) {
        const int axis = static_cast<int>(reduce.getAxis());
        if (axis == dim || shapeOf(value)[axis] > kLongest || (only.axis >= 0 && axis != only.axis)) return {};
        only.axis = axis;
        only.isAccumulated &= isAccumulated(reduce);
      } else if (isElementwise(user) && user->getNumResults() == 1 && isTile(user->getResult(0)) &&
                 shapeOf(user->getResult(0)) == shapeOf(tile)) {
        pending.push_back(user->getResult(0));
      }
    }
  }
  return only;
}

}  // namespace

std::optional<Layout> axisInThreads(Value tile, const Layout& layout, int dim, int bytes) {
  const auto [axis, isAccumulated] = layout.isPadded() ? CombinedAxis() : combinedAxis(tile, dim);
  if (axis < 0) return std::nullopt;
  std::vector<layout::Digit> regs = layout.regs(), lanes = layout.lanes(), warps = layout.warps();
  bool isBetter = false;
  for (std::vector<layout::Digit>* threads : {&lanes, &warps})
    for (size_t t = 0; t < threads->size() && !(isAccumulated && threads == &lanes); ++t)
      for (size_t r = regs.size(); r-- > 0 && (*threads)[t].dim == axis;) {
        if (regs[r].dim == axis || (regs[r].dim == dim && regs[r].stride == 1)) continue;  // not what one access moves
        layout::Digit &one = (*threads)[t], &other = regs[r];
        const int count = std::gcd(one.count, other.count);
        if (count == 1) continue;
        const layout::Digit given{other.dim, count, other.stride * (other.count / count)};
        const layout::Digit taken{axis, count, one.stride};
        other.count /= count, one.count /= count, one.stride *= count;
        regs.insert(regs.begin() + static_cast<long>(r) + 1, taken);
        threads->insert(threads->begin() + static_cast<long>(t) + 1, given);
        isBetter = true;
      }
  auto drop = [](std::vector<layout::Digit>& list) { std::erase_if(list, [](const auto& d) { return d.count == 1; }); };
  drop(regs), drop(lanes), drop(warps);
  if (!isBetter) return std::nullopt;
  Layout traded(layout.shape(), regs, lanes, warps);
  if (sectorUse(traded, dim, bytes) + 0.01 < sectorUse(layout, dim, bytes)) return std::nullopt;
  return traded;
}

namespace {

/// Counts vectors along the rows of a matrix in its loop: sums over its rows, and vectors broadcast to each of them.
int vectorsAlongRows(Value tile) {
  constexpr size_t kMost = 128;
  auto loop = tile.getDefiningOp()->getParentOfType<LoopLikeOpInterface>();
  if (!loop) return 0;
  const layout::Shape shape = shapeOf(tile);
  SmallVector<Value> pending{tile};
  llvm::DenseSet<Value> seen, vectors;
  int sums = 0;
  while (!pending.empty() && seen.size() < kMost) {
    Value value = pending.pop_back_val();
    if (!isTile(value) || shapeOf(value) != shape || !seen.insert(value).second) continue;
    Operation* op = value.getDefiningOp();
    if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op); broadcast && shapeOf(broadcast.getSource())[0] == 1)
      vectors.insert(broadcast.getSource());
    if (op && isElementwise(op)) pending.append(op->operand_begin(), op->operand_end());
    for (Operation* user : value.getUsers()) {
      if (!loop->isProperAncestor(user)) continue;
      if (isElementwise(user)) pending.append(user->result_begin(), user->result_end());
      if (auto reduce = dyn_cast<ReduceOp>(user)) sums += reduce.getAxis() == 0;
    }
  }
  return sums == 0 ? 0 : sums + static_cast<int>(vectors.size());
}

}  // namespace

std::optional<Layout> rowsAcrossWarps(Value tile, const Layout& layout, int dim, int numWarps, const Target& target) {
  constexpr int kTiles = 3;  // tiles of the matrix' size, in f32, that are alive at once
  if (dim != 1 || layout.rank() != 2 || layout.isPadded() || warpsAlong(layout, 0) == 1) return std::nullopt;
  const int registers = std::min(255, static_cast<int>(target.registersPerSm) / (numWarps * target.lanes));
  const int vectors = vectorsAlongRows(tile);
  if (vectors * layout.sliced(0).numRegs() + kTiles * layout.numRegs() <= registers) return std::nullopt;
  std::optional<Layout> best = layout;
  while (best && warpsAlong(*best, 0) > 1)
    for (size_t place = 0; place < best->warps().size(); ++place)
      if (best->warps()[place].dim == 0) {
        best = tradedWarps(*best, place, dim);
        break;
      }
  return best && best->sliced(0).numRegs() < layout.sliced(0).numRegs() ? best : std::nullopt;
}

Layout withRowsTogether(const Layout& layout) {
  std::vector<layout::Digit> lists[] = {layout.regs(), layout.lanes(), layout.warps()};
  int stride = 1;
  for (auto& list : lists)
    for (layout::Digit& digit : list)
      if (digit.dim == 0) digit.stride = stride, stride *= digit.count;
  return Layout(layout.shape(), lists[0], lists[1], lists[2]);
}

}  // namespace tile::ir
