// combined_rows.cpp - what a kernel does with the rows of a tile, and the layouts that suit it.
#include "compiler/gpu/combined_rows.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "compiler/dialect/tiles.h"
#include "compiler/gpu/across.h"
#include "compiler/gpu/global_access.h"
#include "compiler/gpu/layout_links.h"
#include "compiler/gpu/moves.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

// Instructions of a thread in an iteration, for so many lanes and warps along the axis.
double CarriedSums::cost(int64_t lanes, int64_t warps, int64_t threads) const {
  const layout::Shape shape = shapeOf(tile);
  const double pieces = double(shape[axis]) / double(lanes * warps);
  const double rows = double(shape[1 - axis] * lanes * warps) / double(threads);
  constexpr double kExchange = 2, kVector = 1.5;  // a shuffle and its sum; reading and widening an element
  constexpr double kTable = 24;                   // warps add through shared memory: two meetings
  const double take = lanes * warps > 1 ? kTable + 2 * pieces * rows : pieces * rows;  // shared memory, or a choice
  return sums * (rows * std::log2(double(lanes)) * kExchange + (warps > 1 ? kTable : 0)) + takes * take +
         kVector * (along * pieces + across * rows);
}

// Runs of the axis in `lanes` lanes, the other dim in all other threads; nullopt: they do not divide it.
std::optional<Layout> CarriedSums::layoutOf(int lanes, int numWarps, int numLanes) const {
  const layout::Shape shape = shapeOf(tile);
  const int group = numLanes / lanes, other = 1 - axis;
  const auto rows = static_cast<int>(shape[other] / (group * numWarps));
  if (shape[axis] % lanes != 0 || rows * group * numWarps != shape[other]) return std::nullopt;
  const int run = static_cast<int>(shape[axis] / lanes);
  return Layout(shape, {{axis, run, 1}, {other, rows, group * numWarps}}, {{axis, lanes, run}, {other, group, 1}},
                {{other, numWarps, group}});
}

std::optional<Layout> CarriedSums::betterLayout(const Layout& usual, int numWarps, int numLanes) const {
  constexpr double kWorthIt = 0.8;
  auto threadsAlong = [&](const std::vector<layout::Digit>& digits) {
    int64_t count = 1;
    for (const layout::Digit& digit : digits)
      if (digit.dim == axis) count *= digit.count;
    return count;
  };
  const int64_t threads = int64_t{numWarps} * numLanes;
  double least = usual.isPadded() ? std::numeric_limits<double>::infinity()
                                  : kWorthIt * cost(threadsAlong(usual.lanes()), threadsAlong(usual.warps()), threads);
  std::optional<Layout> best;
  for (int lanes = 1; lanes <= numLanes; lanes *= 2) {
    auto layout = layoutOf(lanes, numWarps, numLanes);
    if (!layout || cost(lanes, 1, threads) >= least) continue;
    best = std::move(layout), least = cost(lanes, 1, threads);
  }
  return best;
}

/// Tiles of this shape are among its operands or results.
static bool touchesShape(Operation* op, ArrayRef<int64_t> shape) {
  auto hasShape = [&](Type type) {
    auto tile = dyn_cast<RankedTensorType>(type);
    return tile && tile.getShape() == shape;
  };
  return llvm::any_of(op->getOperandTypes(), hasShape) || llvm::any_of(op->getResultTypes(), hasShape);
}

std::vector<CarriedSums> carriedSums(LoopLikeOpInterface loop) {
  std::vector<CarriedSums> all;
  auto whileLoop = dyn_cast<scf::WhileOp>(loop.getOperation());
  for (BlockArgument arg : whileLoop ? whileLoop.getAfterArguments() : loop.getRegionIterArgs()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || type.getRank() != 2) continue;
    bool isOther = false;  // what else has a say in how the tile lies
    int sums[2] = {0, 0}, vectors[2] = {0, 0}, takes[2] = {0, 0};
    auto look = [&](Operation* op) {
      if (!touchesShape(op, type.getShape())) return;
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        ++sums[reduce.getAxis()];
      } else if (auto take = dyn_cast<TakeOp>(op); take && shapeOf(take.getResult())[take.getAxis()] == 1) {
        ++takes[take.getAxis()];
      } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
        const layout::Shape small = shapeOf(broadcast.getSource());
        if (small[0] != small[1]) ++vectors[small[0] == 1 ? 1 : 0];
      } else {
        isOther |= !isElementwise(op) && !isa<SplatOp, arith::ConstantOp, scf::YieldOp, scf::ConditionOp>(op);
      }
    };
    for (Region* region : loop.getLoopRegions()) region->walk(look);
    auto isCombined = [&](int axis) { return sums[axis] + takes[axis] > 0; };
    if (isOther || isCombined(0) == isCombined(1)) continue;
    CarriedSums one{.tile = arg};
    one.axis = isCombined(1) ? 1 : 0;
    one.sums = sums[one.axis], one.along = vectors[one.axis], one.across = vectors[1 - one.axis];
    one.takes = takes[one.axis];
    all.push_back(one);
  }
  return all;
}

/// What a loop adds to the sums that it carries, along the longer dim of matrices of vectors: the sums of all of a
/// thread's elements fit into its registers.
static std::vector<CarriedBesideVectors> addedBesideVectors(scf::ForOp loop) {
  constexpr int64_t kMostSums = 16, kMostBytes = 384;  // a matrix; a thread's for all of them
  std::vector<CarriedBesideVectors> all;
  int64_t bytes = 0;
  for (auto [arg, next] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    Operation* add = next.getDefiningOp();
    if (!isa<RankedTensorType>(arg.getType()) || !isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add) || !arg.hasOneUse() ||
        !llvm::is_contained(add->getOperands(), arg))
      continue;
    Value sum = add->getOperand(add->getOperand(0) == arg ? 1 : 0);
    if (auto reshape = sum.getDefiningOp<ReshapeOp>()) sum = reshape.getSource();
    auto reduce = sum.getDefiningOp<ReduceOp>();
    if (!reduce || reduce.getSources().size() != 1 || reduce->getBlock() != loop.getBody()) continue;
    const layout::Shape shape = shapeOf(reduce.getSources()[0]);
    const int axis = static_cast<int>(reduce.getAxis());
    if (shape.size() != 2 || shape[1 - axis] == 1 || shape[1 - axis] > kMostSums || shape[axis] <= shape[1 - axis]) continue;
    CarriedBesideVectors one{.tile = reduce.getSources()[0], .vectors = {}};
    bool isOther = false;
    loop.getBody()->walk([&](Operation* op) {
      if (!touchesShape(op, shape)) return;
      if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
        if (shapeOf(broadcast.getSource())[axis] == shape[axis]) one.vectors.push_back(broadcast);
      } else if (auto other = dyn_cast<ReduceOp>(op)) {
        isOther |= static_cast<int>(other.getAxis()) != axis;
      } else {
        isOther |= !isElementwise(op) && !isa<SplatOp, arith::ConstantOp>(op);
      }
    });
    if (isOther || one.vectors.empty()) continue;
    bytes += shape[1 - axis] * elementBytes(one.tile.getType());
    all.push_back(std::move(one));
  }
  if (bytes > kMostBytes) all.clear();
  return all;
}

std::vector<CarriedBesideVectors> carriedBesideVectors(scf::ForOp loop) {
  std::vector<CarriedBesideVectors> all;
  for (BlockArgument arg : loop.getRegionIterArgs()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || type.getRank() != 2) continue;
    CarriedBesideVectors one{.tile = arg, .vectors = {}};
    bool isOther = false;
    loop.getBody()->walk([&](Operation* op) {
      if (!touchesShape(op, type.getShape())) return;
      if (auto broadcast = dyn_cast<BroadcastOp>(op))
        one.vectors.push_back(broadcast);
      else
        isOther |= !isElementwise(op) && !isa<SplatOp, arith::ConstantOp, scf::YieldOp>(op);
    });
    if (!isOther && !one.vectors.empty()) all.push_back(std::move(one));
  }
  llvm::append_range(all, addedBesideVectors(loop));
  return all;
}

std::optional<Layout> layoutAlongVector(const Layout& vector, const layout::Shape& shape) {
  if (vector.isPadded() || vector.laneReplicas() * vector.warpReplicas() * vector.regReplicas() != 1)
    return std::nullopt;
  std::vector<layout::Digit> regs = vector.regs();
  for (int dim = 0; dim < vector.rank(); ++dim)
    if (vector.shape()[dim] != shape[dim]) regs.push_back({dim, static_cast<int>(shape[dim]), 1});
  return Layout(shape, regs, vector.lanes(), vector.warps());
}

namespace {

// Threads make it at once, of numbers and places only.
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

// Registers of the vectors that are spread over what is combined, under this layout.
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
    if (Operation* op = value.getDefiningOp(); keepsPlaces(op))
      pending.append(op->operand_begin(), op->operand_end());
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

/// A vector along dim 0, repeated in every column, that is computed from what a loop loads.
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

/// Reductions along short axes that warps carry out together, of what is computed from the tile, reshaped on the way.
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

/// The digit of warps at `place` changes places with as much of others: of registers first, then of the lanes' slowest.
/// Nullopt: there is not as much.
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

/// A loop only adds what is combined to what it carries: lanes and warps are combined behind it (defer_reductions.cpp).
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
  bool isAccumulated = true;  ///< by loops, which combine lanes once
};

/// The only axis that what is computed from the tile, element by element, is combined along, if it is short and not
/// `dim`.
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

/// Vectors along the rows of a matrix in a loop: sums of its rows, and what meets each of them.
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
  constexpr int kTiles = 3;  // of the matrix' size, in f32, while rows are worked on
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
