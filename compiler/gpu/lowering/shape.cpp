// shape.cpp - making, repeating, reshaping and converting tiles: renamed registers where threads keep their elements,
// shared memory where not (see moves.h).
#include <set>

#include "compiler/gpu/access/runs.h"
#include "compiler/gpu/forms/moves.h"
#include "compiler/gpu/forms/scratch.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/exchange.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/meeting.h"
#include "compiler/gpu/lowering/select_one.h"
#include "compiler/layout/relations.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tile::ir {
using namespace mlir;

namespace {

Regs renamed(llvm::ArrayRef<llvm::Value*> source, llvm::ArrayRef<int> map, llvm::Type* element) {
  Regs result;
  for (int reg : map) result.push_back(reg < 0 ? llvm::PoisonValue::get(element) : source[reg]);
  return result;
}

/// Of each pair of registers that differ in one bit of their number a lane keeps the one of its own side and gives the
/// other for its partner's.
void swapWithLane(Emitter& e, Regs& values, const layout::LaneSwap& swap) {
  llvm::Value* isUpper = e.b.CreateICmpNE(e.b.CreateAnd(e.lane(), e.i32(swap.laneBit)), e.i32(0));
  for (auto [low, high] : swap.pairs) {
    llvm::Value* given = e.b.CreateSelect(isUpper, values[low], values[high]);
    llvm::Value* taken = e.shuffleXor(given, swap.laneBit);
    llvm::Value *lower = values[low], *upper = values[high];
    values[low] = e.b.CreateSelect(isUpper, taken, lower);
    values[high] = e.b.CreateSelect(isUpper, upper, taken);
  }
}

layout::Coord zeros(size_t rank) { return layout::Coord(rank, 0); }

/// Through shared memory, a box of the tile after the other. Boxes at its ends may reach past it, as layouts may.
Regs exchangeInBoxes(Emitter& e, llvm::Value* base, llvm::ArrayRef<llvm::Value*> values, const Move& move) {
  if (move.box == move.to.shape()) return exchangeThrough(e, base, values, move.from, move.to, move.piece != 0);
  llvm::Value* const padding = llvm::Constant::getNullValue(values[0]->getType());
  Regs result(move.to.numRegs(), padding);
  layout::Coord offset(move.box.size(), 0);
  const layout::Layout from = *layout::boxLayout(move.from, offset, move.box),
                       to = *layout::boxLayout(move.to, offset, move.box);
  for (bool more = true; more;) {
    const std::vector<int> given = *layout::shiftedRegisterMap(move.from, from, offset),
                           taken = *layout::shiftedRegisterMap(move.to, to, offset);
    Regs part;
    for (int reg : given) part.push_back(reg < 0 ? padding : values[reg]);
    const Regs moved = exchangeThrough(e, base, part, from, to, move.piece != 0);
    for (auto [reg, value] : llvm::zip(taken, moved))
      if (reg >= 0) result[reg] = value;
    more = false;
    for (size_t dim = offset.size(); dim-- > 0 && !more;) {
      offset[dim] += move.box[dim];
      more = offset[dim] < move.to.shape()[dim];
      if (!more) offset[dim] = 0;
    }
  }
  return result;
}

layout::Coord coordOf(llvm::ArrayRef<int32_t> offsets) { return {offsets.begin(), offsets.end()}; }

// Renames or exchanges as planned; a linear move goes through a row-major buffer of the result's shape, or the source's
// where boxes share it.
LogicalResult emitMove(Emitter& e, Operation* op, const Move& move) {
  Value source = op->getOperand(0), result = op->getResult(0);
  llvm::Type* element = e.elementType(result);
  Regs values(e.regs(source));
  switch (move.kind) {
    case Move::rename:
      e.define(result, renamed(values, move.map, element));
      break;
    case Move::swap:
      for (const layout::LaneSwap& swap : move.swaps) swapWithLane(e, values, swap);
      e.define(result, renamed(values, move.map, element));
      break;
    case Move::exchange: {
      llvm::Value* base = e.scratch(op);
      if (!move.piece) {
        if (failed(fillScratch(e, op))) return failure();
        e.define(result, getExchange(e, base, element, move.from, move.to));
        break;
      }
      base = e.b.CreatePtrAdd(base, e.b.CreateMul(e.warp(), e.i32(scratchOf(op)->piece)));
      e.define(result, exchangeInBoxes(e, base, values, move));
      break;
    }
    case Move::linear: {
      const layout::Layout& to = e.layoutOf(result);
      llvm::Value* base = e.scratch(op);
      if (failed(fillScratch(e, op))) return failure();
      if (auto extract = dyn_cast<ExtractOp>(op); extract && op->hasAttr(kPutsWholeAttr))
        e.define(result, loadLinear(e, base, e.layoutOf(source).shape(), to, element, coordOf(extract.getOffsets())));
      else if (extract)
        e.define(result, loadLinear(e, base, to.shape(), move.to, element, zeros(to.rank())));
      else
        e.define(result, loadLinear(e, base, to.shape(), to, element, zeros(to.rank())));
      break;
    }
  }
  return success();
}

/// What a move hands to other warps.
void putMove(Emitter& e, Operation* op, const Move& move) {
  const Regs values(e.regs(op->getOperand(0)));
  const layout::Layout& from = e.layoutOf(op->getOperand(0));
  if (move.kind == Move::exchange)
    putExchange(e, e.scratch(op), values, move.from, move.to);
  else if (auto extract = dyn_cast<ExtractOp>(op); extract && !op->hasAttr(kPutsWholeAttr))
    storeBox(e, e.scratch(op), move.to.shape(), move.from, values, coordOf(extract.getOffsets()));
  else
    storeLinear(e, e.scratch(op), from.shape(), from, values, zeros(from.rank()));
}

void putCat(Emitter& e, CatOp op) {
  const layout::Layout& to = e.layoutOf(op.getResult());
  layout::Coord offset = zeros(to.rank());
  for (Value source : op.getSources()) {
    const layout::Layout& from = e.layoutOf(source);
    storeLinear(e, e.scratch(op), to.shape(), from, Regs(e.regs(source)), offset);
    offset[op.getAxis()] += from.shape()[op.getAxis()];
  }
}

}  // namespace

LogicalResult emitIota(Emitter& e, IotaOp op) {
  const layout::Layout& layout = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  llvm::Value* thread = e.b.CreateZExtOrTrunc(e.threadCoord(layout, 0), element);
  Regs result;
  for (int reg = 0; reg < layout.numRegs(); ++reg) {
    llvm::Value* constant =
        llvm::ConstantInt::get(element, layout.regCoord(reg)[0] + static_cast<int64_t>(op.getStart()), true, true);
    result.push_back(e.b.CreateAdd(thread, constant));
  }
  e.define(op.getResult(), std::move(result));
  return success();
}

LogicalResult emitSplat(Emitter& e, SplatOp op) {
  e.define(op.getResult(), Regs(e.layoutOf(op.getResult()).numRegs(), e.scalar(op.getValue())));
  return success();
}

LogicalResult emitBroadcast(Emitter& e, BroadcastOp op) {
  const layout::Layout &from = e.layoutOf(op.getSource()), &to = e.layoutOf(op.getResult());
  layout::Layout slice = to;
  for (int dim = 0; dim < to.rank(); ++dim)
    if (from.shape()[dim] != to.shape()[dim]) slice = slice.sliced(dim);
  if (layout::conversion(from, slice) == layout::Conversion::shared) {
    return op.emitOpError()
           << "expected a source laid out as the result without the repeated dims (a bug of assign_layouts)";
  }
  std::vector<int> map = layout::registerMap(from, slice);
  std::map<layout::Coord, int> held;
  for (int reg = 0; reg < slice.numRegs(); ++reg) held.emplace(slice.regCoord(reg), map[reg]);
  llvm::ArrayRef<llvm::Value*> source = e.regs(op.getSource());
  llvm::Type* element = e.elementType(op.getResult());
  Regs result;
  for (int reg = 0; reg < to.numRegs(); ++reg) {
    layout::Coord coord = to.regCoord(reg);
    bool padding = to.isRegPadding(reg);
    for (int dim = 0; dim < to.rank(); ++dim)
      if (from.shape()[dim] != to.shape()[dim]) coord[dim] = 0;
    auto it = held.find(coord);
    int from = it == held.end() ? -1 : it->second;
    result.push_back(padding || from < 0 ? llvm::PoisonValue::get(element) : source[from]);
  }
  e.define(op.getResult(), std::move(result));
  return success();
}

LogicalResult emitConvert(Emitter& e, ConvertOp op) { return emitMove(e, op, planMove(op)); }
LogicalResult emitTrans(Emitter& e, TransOp op) { return emitMove(e, op, planMove(op)); }
LogicalResult emitReshape(Emitter& e, ReshapeOp op) { return emitMove(e, op, planMove(op)); }
LogicalResult emitExtract(Emitter& e, ExtractOp op) { return emitMove(e, op, planMove(op)); }

LogicalResult emitCat(Emitter& e, CatOp op) {
  CatMove move = planMove(op);
  const layout::Layout& to = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  if (move.isRename) {
    Regs result;
    for (auto [source, reg] : move.map)
      result.push_back(source < 0 ? llvm::PoisonValue::get(element) : e.regs(op.getSources()[source])[reg]);
    e.define(op.getResult(), std::move(result));
    return success();
  }
  if (failed(fillScratch(e, op))) return failure();
  e.define(op.getResult(), loadLinear(e, e.scratch(op), to.shape(), to, element, zeros(to.rank())));
  return success();
}

static llvm::Value* emitLane(Emitter& e, const LaneOfGroup& giver) {
  llvm::IRBuilder<>& b = e.b;
  llvm::Value* inGroup = b.CreateAdd(b.CreateMul(e.lane(), e.i32(giver.times)), e.i32(giver.plus));
  return b.CreateOr(b.CreateAnd(e.lane(), e.i32(-giver.size)), b.CreateAnd(inGroup, e.i32(giver.size - 1)));
}

/// A result register that lanes hand to each other.
static llvm::Value* emitHandovers(Emitter& e, llvm::ArrayRef<Handover> handovers, llvm::ArrayRef<llvm::Value*> source) {
  auto isIn = [&](uint32_t lanes) {
    return e.b.CreateTrunc(e.b.CreateLShr(e.i32(lanes), e.lane()), e.b.getInt1Ty());
  };
  llvm::Value* result = nullptr;
  for (const Handover& h : handovers) {
    llvm::Value* value = source[h.given.back().first];
    for (const auto& [reg, lanes] : llvm::reverse(llvm::ArrayRef(h.given).drop_back()))
      value = e.b.CreateSelect(isIn(lanes), source[reg], value);
    if (h.rotation)
      value = e.shuffleIdx(value, e.b.CreateAnd(e.b.CreateAdd(e.lane(), e.i32(h.rotation)), e.i32(31)));
    result = result ? e.b.CreateSelect(isIn(h.receivers), value, result) : value;
  }
  return result;
}

/// An element, by its number, of a tile in row-major order at `base`.
static llvm::Value* placeWithGaps(Emitter& e, llvm::Value* base, llvm::Value* element, int64_t bytes, Gaps gaps) {
  if (gaps) {
    llvm::Value* rows = e.b.CreateUDiv(element, e.i32(gaps.row / bytes));
    element = e.b.CreateAdd(element, e.b.CreateMul(rows, e.i32(gaps.bytes / bytes)));
  }
  return e.b.CreatePtrAdd(base, e.b.CreateMul(element, e.i32(bytes)));
}

static void storeWithGaps(Emitter& e, llvm::Value* base, const layout::Layout& layout,
                          llvm::ArrayRef<llvm::Value*> values, Gaps gaps) {
  llvm::Value* first = e.isFirstReplica(layout);
  std::set<layout::Coord> written;
  const int64_t bytes = memoryBytes(values[0]->getType());
  const int vector = gaps.keepVectors() ? rowVector(layout, static_cast<int>(bytes)) : 1;
  for (const std::vector<int>& run : layout.runs(std::max(0, layout.rank() - 1), vector)) {
    const layout::Coord coord = layout.regCoord(run[0]);
    if (layout.isRegPadding(run[0]) || !written.insert(coord).second) continue;
    llvm::Value* at = e.i32(0);
    for (int dim = 0; dim < layout.rank(); ++dim)
      at = e.b.CreateAdd(e.b.CreateMul(at, e.i32(layout.shape()[dim])),
                         e.b.CreateAdd(e.threadCoord(layout, dim), e.i32(coord[dim])));
    Regs group;
    for (int reg : run) group.push_back(values[reg]);
    storeVector(e, placeWithGaps(e, base, at, bytes, gaps), group, e.andAll({first, e.inTile(layout, run[0])}));
  }
}

static void putTake(Emitter& e, TakeOp op) {
  const layout::Layout& from = e.layoutOf(op.getSource());
  const Regs values(e.regs(op.getSource()));
  if (const Gaps gaps = gapsOf(op))
    storeWithGaps(e, e.scratch(op), from, values, gaps);
  else
    storeLinear(e, e.scratch(op), from.shape(), from, values, zeros(from.rank()));
}

// Which element, in row-major order of `shape`, register `reg` of a thread means where `index` stands for its own place
// along the axis.
static llvm::Value* rowMajorPlace(Emitter& e, const layout::Layout& layout, int reg, int axis, llvm::Value* index,
                                  const layout::Shape& shape) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Coord coord = layout.regCoord(reg);
  llvm::Value* at = nullptr;
  for (int dim = 0; dim < layout.rank(); ++dim) {
    llvm::Value* here = dim == axis ? index : b.CreateAdd(e.threadCoord(layout, dim), e.i32(coord[dim]));
    at = at ? b.CreateAdd(b.CreateMul(at, e.i32(shape[dim])), here) : here;
  }
  return at;
}

// Known indices: shuffles, where elements stay inside warps. Lines that a thread has whole: it chooses. Else the source
// in shared memory, one read per element at its own index. Indices outside the axis read its last element.
LogicalResult emitTake(Emitter& e, TakeOp op) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Layout &from = e.layoutOf(op.getSource()), &to = e.layoutOf(op.getResult());
  llvm::Type* element = e.elementType(op.getResult());
  const bool makesCopy = op->hasAttr(kMakesCopyAttr);
  if (auto move = makesCopy ? std::nullopt : planMove(op)) {
    llvm::ArrayRef<llvm::Value*> source = e.regs(op.getSource());
    Regs result;
    for (auto [reg, flip, giver, handovers] : llvm::zip(move->map, move->flips, move->givers, move->handovers)) {
      if (!handovers.empty()) {
        result.push_back(emitHandovers(e, handovers, source));
        continue;
      }
      llvm::Value* value = reg < 0 ? llvm::PoisonValue::get(element) : source[reg];
      if (giver.size) value = e.shuffleIdx(value, emitLane(e, giver));
      result.push_back(flip ? e.shuffleXor(value, flip) : value);
    }
    e.define(op.getResult(), std::move(result));
    return success();
  }
  const Range range = e.facts().rangeOf(op.getIndices());
  const bool isInside = range.min >= 0 && range.max < from.shape()[op.getAxis()];
  if (auto lines = makesCopy ? std::nullopt : linesOf(op)) {
    llvm::ArrayRef<llvm::Value*> source = e.regs(op.getSource()), indices = e.regs(op.getIndices());
    Regs result(to.numRegs(), llvm::PoisonValue::get(element));
    for (auto [reg, line] : llvm::enumerate(*lines)) {
      if (line.empty()) continue;
      llvm::Value* index = indices[reg];
      const int64_t end = from.shape()[op.getAxis()] - 1;
      if (!isInside) index = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, e.i32(end));
      SmallVector<llvm::Value*> values;
      for (int held : line) values.push_back(source[held]);
      result[reg] = chosenOf(e, values, index);
    }
    e.define(op.getResult(), std::move(result));
    return success();
  }
  int64_t bytes = memoryBytes(element);
  llvm::Value* base = e.scratch(op);
  const Gaps gaps = gapsOf(op);
  if (failed(fillScratch(e, op))) return failure();
  llvm::ArrayRef<llvm::Value*> indices = e.regs(op.getIndices());
  const int last = std::max(0, from.rank() - 1);
  const int vector = !gaps || gaps.keepVectors() ? takenVector(op) : 1;
  Regs result(to.numRegs(), llvm::PoisonValue::get(element));
  auto read = [&](llvm::ArrayRef<int> run) {
    const int axis = static_cast<int>(op.getAxis());
    llvm::Value* index = indices[run[0]];
    if (!isInside) index = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, index, e.i32(from.shape()[axis] - 1));
    llvm::Value* at = rowMajorPlace(e, to, run[0], axis, index, from.shape());
    llvm::Value* ptr = placeWithGaps(e, base, at, bytes, gaps);
    const Regs values = loadVector(e, ptr, element, static_cast<int>(run.size()), e.inTile(to, run[0]));
    for (auto [reg, value] : llvm::zip(run, values)) result[reg] = value;
  };
  for (const std::vector<int>& run : to.runs(last, vector)) {
    if (to.isRegPadding(run[0])) continue;
    if (llvm::all_of(run, [&](int reg) { return indices[reg] == indices[run[0]]; }))
      read(run);
    else
      for (int reg : run) read(reg);
  }
  e.define(op.getResult(), std::move(result));
  return success();
}

// Stores elements over those of a tile in shared memory where their indices fit.
static void storePlaced(Emitter& e, PutOp op, Value values, Value indices) {
  llvm::IRBuilder<>& b = e.b;
  const layout::Layout& from = e.layoutOf(values);
  const layout::Shape& into = e.layoutOf(op.getInto()).shape();
  const int axis = static_cast<int>(op.getAxis());
  const Range range = e.facts().rangeOf(indices);
  const bool isInside = range.min >= 0 && range.max < into[axis];
  llvm::ArrayRef<llvm::Value*> places = e.regs(indices), elements = e.regs(values);
  llvm::Value *base = e.scratch(op), *first = e.isFirstReplica(from);
  const int64_t bytes = memoryBytes(elements[0]->getType());
  auto store = [&](llvm::ArrayRef<int> run) {
    llvm::Value* index = places[run[0]];
    llvm::Value* fits = isInside ? nullptr : b.CreateICmpULT(index, e.i32(into[axis]));
    llvm::Value* at = b.CreateMul(rowMajorPlace(e, from, run[0], axis, index, into), e.i32(bytes));
    Regs stored;
    for (int reg : run) stored.push_back(elements[reg]);
    storeVector(e, b.CreatePtrAdd(base, at), stored, e.andAll({first, fits, e.inTile(from, run[0])}));
  };
  std::set<layout::Coord> put;  // registers may hold an element twice
  for (const std::vector<int>& run : from.runs(std::max(0, from.rank() - 1), putVector(op))) {
    if (from.isRegPadding(run[0]) || !put.insert(from.regCoord(run[0])).second) continue;
    if (llvm::all_of(run, [&](int reg) { return places[reg] == places[run[0]]; }))
      store(run);
    else
      for (int reg : run) store(reg);
  }
}

// What is put into lies in shared memory unless nothing of it stays, values go over it, and the result is read. Threads
// wait in between; pairs that never meet have no order.
LogicalResult emitPut(Emitter& e, PutOp op) {
  const layout::Layout &into = e.layoutOf(op.getInto()), &to = e.layoutOf(op.getResult());
  llvm::Value* base = e.scratch(op);
  if (!op.getWhole()) {
    storeLinear(e, base, into.shape(), into, e.regs(op.getInto()), zeros(into.rank()));
    e.barrier();
  }
  for (size_t i = 0, since = 0; i < op.getValues().size(); ++i) {
    for (size_t before = since; before < i; ++before)
      if (!areInOwnRuns(op.getIndices()[before], op.getIndices()[i], e.facts())) {
        e.barrier();
        since = i;
        break;
      }
    storePlaced(e, op, op.getValues()[i], op.getIndices()[i]);
  }
  e.barrier();
  e.define(op.getResult(), loadLinear(e, base, to.shape(), to, e.elementType(op.getResult()), zeros(to.rank())));
  return success();
}

LogicalResult putIntoScratch(Emitter& e, Operation* op) {
  if (auto reduce = dyn_cast<ReduceOp>(op)) return putPartsOfWarps(e, reduce);
  llvm::TypeSwitch<Operation*>(op)
      .Case<ConvertOp, TransOp, ReshapeOp, ExtractOp>([&](auto o) { putMove(e, o, planMove(o)); })
      .Case<CatOp>([&](auto o) { putCat(e, o); })
      .Case<TakeOp>([&](auto o) { putTake(e, o); });
  return success();
}

LogicalResult fillScratch(Emitter& e, Operation* op) {
  if (op->hasAttr(kScratchFilledAttr) || op->hasAttr(kMetAttr)) return success();
  if (failed(putIntoScratch(e, op))) return failure();
  for (Operation* other : metWith(op))
    if (!other->hasAttr(kScratchFilledAttr) && failed(putIntoScratch(e, other))) return failure();
  e.barrier();
  return success();
}

}  // namespace tile::ir
