// reduce.cpp - reductions along an axis, in three steps: a balanced tree over each thread's registers (of short chains
// for sums of products, and of what flags choose); butterflies between lanes, or one instruction where there is one
// (redux for integers, and for extremes of f32 as ordered integers; votes for flags); a table in shared memory between
// warps. Every thread that holds a slice of the result ends with it. The order is fixed by the layout, so results are
// the same in every run. Padding never reaches the combiner's result.
//
// Where a thread reduces several slices, lanes share the work (halving.h). In front of the table that also means that
// no lane stores what another does; behind it threads read what their layout of the result wants.
#include <algorithm>

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/votes.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/combine.h"
#include "compiler/gpu/lowering/halving.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/meeting.h"
#include "compiler/gpu/lowering/reduction.h"
#include "compiler/gpu/lowering/select_one.h"
#include "compiler/layout/relations.h"

namespace tile::ir {
using namespace mlir;
using layout::Coord;
using layout::Digit;
using layout::Layout;

/// Products and masked numbers that are added one by one: short enough for several chains.
static constexpr size_t kChain = 8;

LogicalResult Reduction::run() {
  const bool asksWarp = op_->hasAttr(kPartsAttr), asksAll = !asksWarp && votesAtBarrier(op_);
  const bool isTable = warpsAlong(source_, axis_) > 1 && !asksAll && !asksWarp;
  if (!asksWarp &&
      (isTable ? !readsAnyLayout(op_, result_) : layout::conversion(slice_, result_) == layout::Conversion::shared))
    return op_.emitOpError() << "expected results laid out as the operands without the axis (a bug of assign_layouts)";
  if (const auto one = selectedOne(op_, source_)) return select(*one);
  std::vector<Tuple> partial;
  if (!isTable)
    for (int reg = 0; reg < result_.numRegs(); ++reg) partial.push_back(inThread(result_.regCoord(reg)));
  if (isTable) {
    if (failed(fillScratch(e, op_))) return failure();
    partial = fromTable();
  } else if (asksAll) {
    partial[0][0] = e.barrierVote(partial[0][0], isa<arith::AndIOp>(soleOperation(op_, 0)));
  } else {
    acrossLanes(partial);
  }
  for (auto [i, result] : llvm::enumerate(op_.getResults())) {
    Regs values;
    for (const Tuple& tuple : partial) values.push_back(tuple[i]);
    e.define(result, std::move(values));
  }
  return failure(combine_.failed());
}

/// What this warp has of a reduction across warps, into the table.
LogicalResult Reduction::put() {
  std::vector<Tuple> partial;
  for (int reg = 0; reg < slice_.numRegs(); ++reg) partial.push_back(inThread(slice_.regCoord(reg)));
  intoTable(std::move(partial));
  return failure(combine_.failed());
}

/// Only one element is not zero: its thread chooses it, and its lane, known by its coordinate, hands it to the others.
/// Bits of the coordinate choose: fewer conditions than a comparison for every register, and none of a known coordinate.
LogicalResult Reduction::select(const SelectedOne& one) {
  llvm::ArrayRef<llvm::Value*> values = e.regs(one.values), places = e.regs(one.place);
  llvm::Type* type = e.elementType(op_.getSources()[0]);
  llvm::Value* zero = llvm::Constant::getNullValue(type);
  const Range range = e.facts().rangeOf(one.place);
  const bool isInside = !one.base && range.min >= one.start && range.max < one.start + extent();
  Regs results;
  for (int reg = 0; reg < result_.numRegs(); ++reg) {
    const auto along = elementsOf(result_.regCoord(reg));
    SmallVector<llvm::Value*> line;
    for (const auto& [at, from] : along) line.push_back(values[from]);
    llvm::Value* at = places[one.isAlike ? 0 : along[0].second];
    if (one.base) at = e.b.CreateSub(at, e.scalar(one.base));
    at = e.b.CreateSub(at, e.i32(one.start));
    llvm::Value* chosen = chosenOf(e, line, registerHolding(e, source_, axis_, at));
    if (llvm::Value* lane = laneHolding(e, source_, axis_, at)) chosen = e.shuffleIdx(chosen, lane);
    if (!isInside) chosen = e.b.CreateSelect(e.b.CreateICmpULT(at, e.i32(extent())), chosen, zero);
    // As in the sum, zero has no sign.
    if (extent() > 1 && type->isFloatingPointTy()) chosen = e.b.CreateFAdd(chosen, zero);
    results.push_back(chosen);
  }
  e.define(op_.getResults()[0], std::move(results));
  return success();
}

/// Whether the thread's element at register coordinate c of the axis is in the tile; null: always.
llvm::Value* Reduction::valid(int64_t c) {
  if (source_.maxThreadCoord(axis_) + c < extent()) return nullptr;
  return e.b.CreateICmpULT(e.threadCoord(source_, axis_), e.i32(extent() - c));
}

Tuple Reduction::tupleOf(int reg) {
  Tuple tuple;
  for (Value operand : op_.getSources()) tuple.push_back(e.regs(operand)[reg]);
  return tuple;
}

/// What the thread holds of a slice: (axis coordinate, register).
std::vector<std::pair<int64_t, int>> Reduction::elementsOf(const Coord& want) {
  std::vector<std::pair<int64_t, int>> along;
  for (int reg = 0; reg < source_.numRegs(); ++reg) {
    Coord coord = source_.regCoord(reg);
    int64_t at = coord[axis_];
    coord[axis_] = 0;
    if (coord == want && at < extent()) along.emplace_back(at, reg);
  }
  std::sort(along.begin(), along.end());
  auto repeats = [](const auto& a, const auto& b) { return a.first == b.first; };  // replicas count once
  along.erase(std::unique(along.begin(), along.end(), repeats), along.end());
  return along;
}

Tuple Reduction::tree(llvm::ArrayRef<std::pair<int64_t, int>> along) {
  if (along.size() == 1) return tupleOf(along[0].second);
  if (along.size() <= kChain && inChains_) {
    Tuple all = tupleOf(along[0].second);
    for (const auto& [at, reg] : along.drop_front()) all = combine_(all, tupleOf(reg), valid(at));
    return all;
  }
  size_t half = along.size() / 2;
  Tuple low = tree(along.take_front(half)), high = tree(along.drop_front(half));
  return combine_(low, high, valid(along[half].first));
}

LogicalResult emitReduce(Emitter& e, ReduceOp op) { return Reduction(e, op).run(); }
LogicalResult putPartsOfWarps(Emitter& e, ReduceOp op) { return Reduction(e, op).put(); }

}  // namespace tile::ir
