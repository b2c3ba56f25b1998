// carried_layouts.cpp - what a loop does with the matrices that it carries, and which layout that makes cheapest.
#include "compiler/gpu/layouts/carried_layouts.h"

#include <cmath>
#include <limits>

#include "compiler/dialect/tiles.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/SetVector.h"

namespace tile::ir {
using namespace mlir;
using layout::Layout;

// Estimated instructions of a thread in an iteration, with this number of lanes and warps along the axis.
double CarriedSums::cost(int64_t lanes, int64_t warps, int64_t threads) const {
  const layout::Shape shape = shapeOf(tile);
  const double pieces = double(shape[axis]) / double(lanes * warps);
  const double rows = double(shape[1 - axis] * lanes * warps) / double(threads);
  constexpr double kExchange = 2, kVector = 1.5;  // a shuffle and its sum; reading and widening an element
  constexpr double kTable = 24;                   // warps add through shared memory: two barriers
  const double take = lanes * warps > 1 ? kTable + 2 * pieces * rows : pieces * rows;  // shared memory, or a choice
  return sums * (rows * std::log2(double(lanes)) * kExchange + (warps > 1 ? kTable : 0)) + takes * take +
         kVector * (along * pieces + across * rows);
}

// A run of the axis in each of `lanes` lanes, and the other dim over all other threads. Nullopt: the sizes do not
// divide.
std::optional<Layout> CarriedSums::layoutOf(int lanes, int numWarps, int numLanes) const {
  const layout::Shape shape = shapeOf(tile);
  const int group = numLanes / lanes, other = 1 - axis;
  const auto rows = static_cast<int>(shape[other] / (group * numWarps));
  if (shape[axis] % lanes != 0 || rows * group * numWarps != shape[other]) return std::nullopt;
  const int run = static_cast<int>(shape[axis] / lanes);
  return Layout(shape, {{axis, run, 1}, {other, rows, group * numWarps}}, {{axis, lanes, run}, {other, group, 1}},
                {{other, numWarps, group}});
}

std::optional<Layout> CarriedSums::betterLayout(const Layout& usual, int numWarps, int numLanes, double worthIt) const {
  auto threadsAlong = [&](const std::vector<layout::Digit>& digits) {
    int64_t count = 1;
    for (const layout::Digit& digit : digits)
      if (digit.dim == axis) count *= digit.count;
    return count;
  };
  const int64_t threads = int64_t{numWarps} * numLanes;
  double least = usual.isPadded() ? std::numeric_limits<double>::infinity()
                                  : worthIt * cost(threadsAlong(usual.lanes()), threadsAlong(usual.warps()), threads);
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

/// Vectors come an iteration early: they are carried on as they were loaded.
static bool loadsVectorsEarly(LoopLikeOpInterface loop) {
  return llvm::any_of(loop.getYieldedValues(), [](Value next) {
    auto type = dyn_cast<RankedTensorType>(next.getType());
    return type && type.getNumElements() == llvm::max_element(type.getShape())[0] &&
           isa_and_nonnull<LoadOp, GatherOp>(next.getDefiningOp());
  });
}

/// Matrices that this loop alone works on, in every iteration, read from memory in front of it: they stay in registers.
static SmallVector<Value> keptMatrices(LoopLikeOpInterface loop) {
  llvm::SetVector<Value> all;
  auto isRead = [](Value tile) {
    Operation* op = tile.getDefiningOp();
    if (auto reshape = dyn_cast_or_null<ReshapeOp>(op)) op = reshape.getSource().getDefiningOp();
    return isa_and_nonnull<LoadOp, GatherOp>(op);
  };
  // Another loop may sum along the other axis.
  auto isUsedIn = [&](Value tile) {
    return llvm::all_of(tile.getUsers(), [&](Operation* user) { return loop->isProperAncestor(user); });
  };
  for (Region* region : loop.getLoopRegions())
    region->walk([&](Operation* op) {
      if (!isElementwise(op)) return;
      for (Value operand : op->getOperands()) {
        auto type = dyn_cast<RankedTensorType>(operand.getType());
        const bool isMatrix = type && type.getRank() == 2 && type.getDimSize(0) > 1 && type.getDimSize(1) > 1;
        if (isMatrix && loop.isDefinedOutsideOfLoop(operand) && isRead(operand) && isUsedIn(operand))
          all.insert(operand);
      }
    });
  return all.takeVector();
}

std::vector<CarriedSums> carriedSums(LoopLikeOpInterface loop) {
  std::vector<CarriedSums> all;
  auto whileLoop = dyn_cast<scf::WhileOp>(loop.getOperation());
  SmallVector<Value> tiles(whileLoop ? ValueRange(whileLoop.getAfterArguments())
                                     : ValueRange(loop.getRegionIterArgs()));
  tiles.append(keptMatrices(loop));
  for (Value arg : tiles) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (!type || type.getRank() != 2) continue;
    bool isOther = false;  // some other op has a preference for the layout, too
    int sums[2] = {0, 0}, vectors[2] = {0, 0}, takes[2] = {0, 0};
    auto look = [&](Operation* op) {
      if (!touchesShape(op, type.getShape())) return;
      if (auto reduce = dyn_cast<ReduceOp>(op)) {
        ++sums[reduce.getAxis()];
      } else if (auto take = dyn_cast<TakeOp>(op); take && shapeOf(take.getResult())[take.getAxis()] == 1) {
        if (!loop.isDefinedOutsideOfLoop(take.getSource()))
          ++takes[take.getAxis()];  // others read a copy (take_slices)
      } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
        const layout::Shape small = shapeOf(broadcast.getSource());
        if (small[0] != small[1]) ++vectors[small[0] == 1 ? 1 : 0];
      } else {
        isOther |= !isElementwise(op) && !isa<SplatOp, arith::ConstantOp, scf::YieldOp, scf::ConditionOp>(op);
      }
    };
    for (Region* region : loop.getLoopRegions()) region->walk(look);
    auto isReduced = [&](int axis) { return sums[axis] + takes[axis] > 0; };
    if (isOther || isReduced(0) == isReduced(1)) continue;
    CarriedSums one{.tile = arg};
    one.axis = isReduced(1) ? 1 : 0;
    one.sums = sums[one.axis], one.along = vectors[one.axis], one.across = vectors[1 - one.axis];
    one.takes = takes[one.axis];
    one.isLoadedEarly = one.along + one.across > 0 && loadsVectorsEarly(loop);
    all.push_back(one);
  }
  return all;
}

/// Matrices, made of vectors, that a loop reduces along their longer dim and adds to sums that it carries, where each
/// thread can hold sums of its own elements in registers.
static std::vector<CarriedBesideVectors> addedBesideVectors(scf::ForOp loop) {
  constexpr int64_t kMostSums = 16, kMostBytes = 384;  // of one matrix; of a thread, for all matrices
  std::vector<CarriedBesideVectors> all;
  int64_t bytes = 0;
  for (auto [arg, next] : llvm::zip(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    Operation* add = next.getDefiningOp();
    if (!isa<RankedTensorType>(arg.getType()) || !isa_and_nonnull<arith::AddFOp, arith::AddIOp>(add) ||
        !arg.hasOneUse() || !llvm::is_contained(add->getOperands(), arg))
      continue;
    Value sum = add->getOperand(add->getOperand(0) == arg ? 1 : 0);
    if (auto reshape = sum.getDefiningOp<ReshapeOp>()) sum = reshape.getSource();
    auto reduce = sum.getDefiningOp<ReduceOp>();
    if (!reduce || reduce.getSources().size() != 1 || reduce->getBlock() != loop.getBody()) continue;
    const layout::Shape shape = shapeOf(reduce.getSources()[0]);
    const int axis = static_cast<int>(reduce.getAxis());
    if (shape.size() != 2 || shape[1 - axis] == 1 || shape[1 - axis] > kMostSums || shape[axis] <= shape[1 - axis])
      continue;
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

}  // namespace tile::ir
