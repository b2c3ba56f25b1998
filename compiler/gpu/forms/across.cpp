// across.cpp - plans of reductions and scans.
#include "compiler/gpu/forms/across.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "compiler/gpu/forms/moves.h"
#include "compiler/lowering/elementwise.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tile::ir {
using layout::Digit;
using layout::Layout;

PartsTable partsTable(const Layout& source, int axis, int64_t parts, mlir::ValueRange operands, bool apart) {
  PartsTable table;
  table.parts = parts;
  table.strides.assign(source.rank(), 0);
  int64_t values = apart ? 1 : parts;
  for (int dim = source.rank() - 1; dim >= 0; --dim) {
    if (dim == axis) continue;
    table.strides[dim] = values;
    values *= source.cover(dim);
  }
  constexpr int64_t kVector = 8;  // values that an access takes at most
  if (apart) table.partStride = (values + kVector - 1) / kVector * kVector, values = table.partStride * parts;
  for (mlir::Value operand : operands) {
    table.operandOffset.push_back(table.bytes);
    table.bytes += (values * elementBytes(operand.getType()) + 15) / 16 * 16;
  }
  return table;
}

PartsTable partsTable(ReduceOp reduce) {
  const int axis = static_cast<int>(reduce.getAxis());
  const Layout source = *layoutOf(reduce.getSources()[0].getType()), result = *layoutOf(reduce.getResult(0).getType());
  const int last = axis == result.rank() - 1 ? axis - 1 : result.rank() - 1;
  const bool apart = last >= 0 && source.sliced(axis).contiguousRegs(last) > 1 && result.contiguousRegs(last) > 1;
  return partsTable(source, axis, warpsAlong(source, axis), reduce.getSources(), apart);
}

bool readsAnyLayout(ReduceOp reduce, const Layout& result) {
  const Layout source = *layoutOf(reduce.getSources()[0].getType());
  for (int dim = 0; dim < source.rank(); ++dim)
    if (dim != static_cast<int>(reduce.getAxis()) && result.cover(dim) > source.cover(dim)) return false;
  return true;
}

bool isSpreadAgain(ReduceOp reduce) {
  llvm::SmallVector<mlir::Value> pending(reduce.getResults());
  llvm::DenseSet<mlir::Value> seen;
  while (!pending.empty()) {
    mlir::Value value = pending.pop_back_val();
    if (!seen.insert(value).second) continue;
    for (mlir::Operation* user : value.getUsers()) {
      if (mlir::isa<StoreOp, ScatterOp, AccumulateOp, AtomicRmwOp>(user)) continue;
      if (!isElementwise(user) && !mlir::isa<ReshapeOp, TransOp>(user)) return true;
      pending.append(user->result_begin(), user->result_end());
    }
  }
  return false;
}

bool readsTable(ReduceOp reduce, const Layout& source, const Layout& result) {
  constexpr int kWorth = 4;  // times fewer values, for an address of its own
  const int axis = static_cast<int>(reduce.getAxis());
  if (reduce.getNumResults() != 1 || warpsAlong(source, axis) == 1 || isSpreadAgain(reduce)) return false;
  return source.sliced(axis).numRegs() >= kWorth * result.numRegs();
}

int64_t warpsAlong(const Layout& layout, int axis) {
  int64_t count = 1;
  for (const Digit& digit : layout.warps()) count *= digit.dim == axis ? digit.count : 1;
  return count;
}

mlir::Operation* soleOperation(ReduceOp reduce, unsigned result) {
  mlir::Block& block = reduce.getCombiner().front();
  const unsigned values = reduce.getNumResults();
  mlir::Operation* op = block.getTerminator()->getOperand(result).getDefiningOp();
  if (!op || op->getNumOperands() != 2) return nullptr;
  const mlir::Value own = block.getArgument(result), other = block.getArgument(values + result);
  const bool ofBoth = (op->getOperand(0) == own && op->getOperand(1) == other) ||
                      (op->getOperand(0) == other && op->getOperand(1) == own);
  return ofBoth ? op : nullptr;
}

namespace {
bool isOnlyAlong(const std::vector<Digit>& digits, int axis) {
  return llvm::all_of(
      digits, [&](const Digit& d) { return d.dim == axis || d.dim == layout::kReplicated || d.count == 1; });
}
}  // namespace

bool coversLanes(const Layout& layout, int axis) {
  return !layout.isPadded(axis) && isOnlyAlong(layout.lanes(), axis);
}

bool votesAtBarrier(ReduceOp reduce) {
  if (reduce.getNumResults() != 1) return false;
  const Layout layout = *layoutOf(reduce.getSources()[0].getType());
  const int axis = static_cast<int>(reduce.getAxis());
  return mlir::getElementTypeOrSelf(reduce.getSources()[0].getType()).isInteger(1) &&
         llvm::isa_and_nonnull<mlir::arith::AndIOp, mlir::arith::OrIOp>(soleOperation(reduce, 0)) &&
         warpsAlong(layout, axis) > 1 && coversLanes(layout, axis) && isOnlyAlong(layout.warps(), axis) &&
         layout.sliced(axis).numRegs() == 1;
}

bool isRoundedSum(ReduceOp reduce, unsigned result) {
  return llvm::isa_and_nonnull<mlir::arith::AddFOp>(soleOperation(reduce, result));
}

bool combinesEitherWay(ReduceOp reduce) {
  for (unsigned i = 0; i < reduce.getNumResults(); ++i) {
    mlir::Operation* op = soleOperation(reduce, i);
    if (!op) return false;
    // No instruction for sums of 16 bits keeps products out.
    if (mlir::isa<mlir::arith::AddFOp>(op) && op->getResult(0).getType().getIntOrFloatBitWidth() < 32) return false;
    if (!op->hasTrait<mlir::OpTrait::IsCommutative>()) return false;
  }
  return true;
}

bool sumsProducts(ReduceOp reduce) {
  for (auto [i, source] : llvm::enumerate(reduce.getSources())) {
    mlir::Value made = source;
    while (auto reshape = made.getDefiningOp<ReshapeOp>()) made = reshape.getSource();
    auto product = made.getDefiningOp<mlir::arith::MulFOp>();
    if (product && isRoundedSum(reduce, static_cast<unsigned>(i)) &&
        mlir::arith::bitEnumContainsAny(product.getFastmath(), mlir::arith::FastMathFlags::contract))
      return true;
  }
  return false;
}

bool sumsChosen(ReduceOp reduce) {
  if (reduce.getSources().size() != 1) return false;
  mlir::Value made = reduce.getSources()[0];
  while (auto reshape = made.getDefiningOp<ReshapeOp>()) made = reshape.getSource();
  auto select = made.getDefiningOp<mlir::arith::SelectOp>();
  const mlir::Type element = mlir::getElementTypeOrSelf(made.getType());
  if (!select || !select->hasOneUse() || (!element.isF32() && !element.isF64() && !element.isInteger(32))) return false;
  auto isZero = [](mlir::Value v) {
    return mlir::matchPattern(v, mlir::m_AnyZeroFloat()) || mlir::matchPattern(v, mlir::m_Zero());
  };
  return (isZero(select.getFalseValue()) || isZero(select.getTrueValue())) &&
         llvm::isa_and_nonnull<mlir::arith::AddFOp, mlir::arith::AddIOp>(soleOperation(reduce, 0));
}

std::optional<ScanPlan> planScan(const Layout& layout, int axis) {
  // The axis' digits with their list and their step in that list's number, minor first.
  struct Placed {
    Digit digit;
    int list, step;
  };
  std::vector<Placed> digits;
  const std::vector<Digit>* lists[] = {&layout.regs(), &layout.lanes(), &layout.warps()};
  for (int list = 0; list < 3; ++list) {
    int step = 1;
    for (const Digit& digit : *lists[list]) {
      if (digit.dim == axis) digits.push_back({digit, list, step});
      step *= digit.count;
    }
  }
  std::sort(digits.begin(), digits.end(),
            [](const Placed& a, const Placed& b) { return a.digit.stride < b.digit.stride; });
  ScanPlan plan;
  size_t i = 0;
  for (; i < digits.size() && digits[i].list == 0; ++i) plan.inner *= digits[i].digit.count;
  if (i < digits.size() && digits[i].list == 1) {
    plan.lanes = digits[i].digit.count;
    plan.laneStep = digits[i++].step;
  }
  if (i < digits.size() && digits[i].list == 2) {
    plan.warps = digits[i].digit.count;
    plan.warpStep = digits[i++].step;
  }
  // Registers only, so far: they are one serial run whatever their number.
  for (; i < digits.size() && digits[i].list == 0; ++i) plan.outer *= digits[i].digit.count;
  if (i != digits.size()) return std::nullopt;
  return plan;
}

bool sumsUpByLanes(const ScanPlan& plan, const Layout& layout, int axis) {
  constexpr int64_t kManyParts = 8;  // so many are summed up faster by lanes than one after another
  const int64_t counted = partsOfScan(plan, layout, axis);
  return plan.lanes == layout.numLanes() && counted >= kManyParts && counted <= plan.lanes;
}

int64_t partsOfScan(const ScanPlan& plan, const Layout& layout, int axis) {
  const int64_t each = plan.inner * plan.lanes;
  return (layout.shape()[axis] + each - 1) / each;
}

namespace {

/// Threads hold runs along the axis, and pieces of `vector` neighbours of a row.
Layout scanLayout(const layout::Shape& shape, int axis, int vector, int numWarps, int numLanes) {
  int rank = static_cast<int>(shape.size());
  std::vector<int64_t> left(shape), extent(rank, 1);
  auto split = [&](int64_t units, std::vector<Digit>& list) {
    for (int dim = rank - 1; dim >= 0; --dim) {
      if (dim == axis) continue;
      int64_t count = std::gcd(left[dim], units);
      if (count == 1) continue;
      list.push_back({dim, static_cast<int>(count), static_cast<int>(extent[dim])});
      extent[dim] *= count;
      left[dim] /= count;
      units /= count;
    }
    return units;
  };
  std::vector<Digit> regs, lanes, warps;
  if (vector > 1) {
    regs.push_back({rank - 1, vector, 1});
    extent[rank - 1] = vector, left[rank - 1] /= vector;
  }
  int64_t axisLanes = split(numLanes, lanes), axisWarps = split(numWarps, warps);
  int64_t inner = (shape[axis] + axisLanes * axisWarps - 1) / (axisLanes * axisWarps);
  regs.push_back({axis, static_cast<int>(inner), 1});
  lanes.push_back({axis, static_cast<int>(axisLanes), static_cast<int>(inner)});
  warps.push_back({axis, static_cast<int>(axisWarps), static_cast<int>(inner * axisLanes)});
  for (int dim = rank - 1; dim >= 0; --dim)
    if (dim != axis) regs.push_back({dim, static_cast<int>(left[dim]), static_cast<int>(extent[dim])});
  return Layout(shape, regs, lanes, warps);
}

/// Runs along the axis in at least `axisLanes` lanes; rows lie in the other lanes and in warps, some of which have none
/// where the sizes of the other dims do not divide by their numbers.
Layout runsOfSomeRows(const layout::Shape& shape, int axis, int64_t axisLanes, int numWarps, int numLanes) {
  std::vector<int64_t> left(shape), extent(shape.size(), 1);
  auto split = [&](int64_t units, std::vector<Digit>& list) {
    for (int dim = static_cast<int>(shape.size()) - 1; dim >= 0; --dim) {
      if (dim == axis) continue;
      int64_t count = std::min(left[dim], units);
      while (units % count != 0) ++count;  // of 24 warps, 6 for 5 rows
      if (count == 1) continue;
      list.push_back({dim, static_cast<int>(count), static_cast<int>(extent[dim])});
      extent[dim] *= count;
      left[dim] = (left[dim] + count - 1) / count;
      units /= count;
    }
    return units;
  };
  std::vector<Digit> regs, lanes, warps;
  axisLanes *= split(numLanes / axisLanes, lanes);
  const int64_t axisWarps = split(numWarps, warps);
  const int64_t inner = (shape[axis] + axisLanes * axisWarps - 1) / (axisLanes * axisWarps);
  regs.push_back({axis, static_cast<int>(inner), 1});
  lanes.push_back({axis, static_cast<int>(axisLanes), static_cast<int>(inner)});
  warps.push_back({axis, static_cast<int>(axisWarps), static_cast<int>(inner * axisLanes)});
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (static_cast<int>(dim) != axis)
      regs.push_back({static_cast<int>(dim), static_cast<int>(left[dim]), static_cast<int>(extent[dim])});
  return Layout(shape, regs, lanes, warps);
}

/// Instructions of a thread, roughly: a step for every element, one with a shuffle for every doubling of the lanes and
/// run; where runs of several warps are one row, a trip through shared memory, and a step for what comes before each
/// run: of every warp and repetition, unless lanes sum these up.
int64_t workOfScan(const Layout& layout, int axis) {
  constexpr int64_t kStep = 3, kThroughShared = 40;
  const auto plan = planScan(layout, axis);
  if (!plan) return std::numeric_limits<int64_t>::max();
  auto doublings = [](int64_t count) { return std::bit_width(static_cast<uint64_t>(count - 1)); };
  const int64_t runs = layout.numRegs() / plan->inner, lines = runs / plan->outer, parts = plan->outer * plan->warps;
  const int64_t inWarps = layout.numRegs() + runs * kStep * doublings(plan->lanes);
  if (plan->warps == 1) return inWarps;
  const int64_t before = sumsUpByLanes(*plan, layout, axis) ? doublings(parts) : parts;
  return inWarps + kThroughShared + runs + lines * kStep * before;
}

}  // namespace

Layout scanLayout(const layout::Shape& shape, int axis, int numWarps, int numLanes) {
  // Neighbours of a row let threads read rows in pieces of 8 or 16 bytes of 32-bit elements, where that leaves no
  // thread without elements of its own.
  const int last = static_cast<int>(shape.size()) - 1;
  for (int vector : {4, 2}) {
    if (last == axis || shape[last] % vector != 0 || (vector == 4 && shape[last] / 4 < numLanes)) continue;
    Layout layout = scanLayout(shape, axis, vector, numWarps, numLanes);
    if (!layout.isPadded()) return layout;
  }
  Layout best = scanLayout(shape, axis, 1, numWarps, numLanes);
  if (!best.isPadded()) return best;
  // Lanes and warps that other dims do not divide by would be too many along a short axis.
  for (int64_t axisLanes = 1; axisLanes <= numLanes; axisLanes *= 2) {
    Layout layout = runsOfSomeRows(shape, axis, axisLanes, numWarps, numLanes);
    if (workOfScan(layout, axis) < workOfScan(best, axis)) best = layout;
  }
  return best;
}

bool scansWell(const Layout& layout, int axis) {
  constexpr int64_t kTimes = 2, kExchange = 3;  // an element is written and read, and threads meet twice
  if (!planScan(layout, axis)) return false;
  const Layout own = scanLayout(layout.shape(), axis, layout.numWarps(), layout.numLanes());
  return workOfScan(layout, axis) <= kTimes * (workOfScan(own, axis) + kExchange * layout.numRegs());
}

namespace {

/// Instructions of a step, roughly.
int workOfCombiner(ScanOp scan) {
  constexpr int kFunction = 8;
  int work = 0;
  for (mlir::Operation& op : scan.getCombiner().front().without_terminator())
    work += mlir::isa<mlir::math::MathDialect>(op.getDialect()) ? kFunction : 1;
  return work;
}

}  // namespace

std::optional<Layout> runsToScan(ScanOp scan, bool isReadHereAndThere, int numWarps, int numLanes) {
  constexpr int kMostBytes = 64, kPiece = 16, kRegister = 4, kMuchWork = 12;
  const auto sizes = mlir::cast<mlir::RankedTensorType>(scan.getResults()[0].getType()).getShape();
  const layout::Shape shape(sizes.begin(), sizes.end());
  const int rank = static_cast<int>(shape.size()), axis = static_cast<int>(scan.getAxis());
  int together = 0, widest = 1;
  for (mlir::Value tile : scan.getResults()) {
    together += std::max(kRegister, elementBytes(tile.getType()));
    widest = std::max(widest, elementBytes(tile.getType()));
  }
  const bool isMuch = together > kRegister || workOfCombiner(scan) >= kMuchWork;
  if (axis != rank - 1 || !(isMuch || isReadHereAndThere)) return std::nullopt;
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  int64_t run = elements / (int64_t{numWarps} * numLanes);
  while (run > 1 && (run * widest > (isMuch ? kMostBytes : kPiece) || shape[axis] % (run * numLanes) != 0)) run /= 2;
  if (run <= 1) return std::nullopt;
  std::vector<int> order;  // dims from fastest to slowest
  for (int dim = axis; dim >= 0; --dim) order.push_back(dim);
  const Layout layout = layout::blocked(shape, static_cast<int>(run), order, numWarps, numLanes);
  return layout.isPadded() || !planScan(layout, axis) ? std::nullopt : std::optional(layout);
}

}  // namespace tile::ir
