// plan.cpp - decides which tiles are fused and which are placed, and gives placed ones their arena offsets. Which
// values carried by a loop share a buffer is decided in share_buffers.cpp.
//   1. Number the ops; decide each tile in program order (its operands' cost is known by then).
//   2. Merge buffers across loop and branch boundaries where that saves a copy and overwrites nothing that is still
//      read.
//   3. Find tiles that are made in the loops of another op (made_in_loops.cpp).
//   4. Compute lifetimes in op numbers, extended over loops; assign offsets by first fit, by size.
#include "compiler/host/plan.h"

#include "compiler/dialect/dialect.h"
#include "compiler/host/dot_shape.h"
#include "compiler/host/numbers.h"

namespace tile::ir::host {
using namespace mlir;

namespace {

constexpr int kCheap = 4;  // recomputing this much costs less than a trip through memory
constexpr int64_t kAlign = 64;

int opCost(Operation* op) {
  if (isa<BroadcastOp, ReshapeOp, TransOp, SplatOp, IotaOp, ExtractOp, AssumeOp, arith::ConstantOp>(op)) return 0;
  if (isa<GatherOp>(op)) return kCheap + 1;
  if (isa<arith::FPToSIOp, arith::FPToUIOp>(op)) return kCheap + 1;  // they keep to the range of the integers
  return elementwiseCost(op);
}

/// Ops that can be evaluated element by element inside a consumer's loop.
bool isFusable(Operation* op) {
  return isa<SplatOp, BroadcastOp, IotaOp, ExtractOp, AssumeOp, PtrAddOp, arith::ConstantOp>(op) || isElementwise(op);
}

int loopDepth(Operation* op) {
  int depth = 0;
  for (Operation* p = op->getParentOp(); p; p = p->getParentOp()) depth += isa<scf::ForOp, scf::WhileOp>(p);
  return depth;
}

/// Whether elements of `tile` are read by sums of columns, through elementwise ops and broadcasts: their loops go down
/// the rows, so that what belongs to a row is computed again for every few columns.
bool feedsColumnSums(Value tile, int depth = 4) {
  return depth > 0 && llvm::any_of(tile.getUsers(), [&](Operation* user) {
           if (auto sum = dyn_cast<ReduceOp>(user))
             return static_cast<size_t>(sum.getAxis()) + 1 < shapeOf(tile).size();
           return (isElementwise(user) || isa<BroadcastOp>(user)) && feedsColumnSums(user->getResult(0), depth - 1);
         });
}

/// Whether `tile` has a number for each of many rows that are short: computing them one by one is much of a row's time,
/// computing them beforehand takes vectors.
bool isOfShortRows(Value tile) {
  constexpr int64_t kMany = 16, kShort = 128;
  if (cast<RankedTensorType>(tile.getType()).getNumElements() < kMany) return false;
  return llvm::any_of(tile.getUsers(), [&](Operation* user) {
    return isa<BroadcastOp>(user) && shapeOf(user->getResult(0)).back() <= kShort;
  });
}

bool isCombiner(Operation* op) { return isa_and_nonnull<ReduceOp, ScanOp>(op->getParentOp()); }

}  // namespace

SmallVector<int64_t, 4> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (int d = static_cast<int>(shape.size()) - 2; d >= 0; --d) strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

bool movesOnlyUnitDims(Operation* op) {
  auto from = shapeOf(op->getOperand(0)), to = shapeOf(op->getResult(0));
  if (auto trans = dyn_cast<TransOp>(op)) {
    SmallVector<int32_t, 4> order;
    for (int32_t d : trans.getPermutation())
      if (from[d] != 1) order.push_back(d);
    return llvm::is_sorted(order);
  }
  auto notOne = [](int64_t n) { return n != 1; };
  return llvm::equal(llvm::make_filter_range(from, notOne), llvm::make_filter_range(to, notOne));
}

SmallVector<std::pair<int, int>, 4> matchDims(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<std::pair<int, int>, 4> pairs;
  size_t j = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    while (to[j] == 1) ++j;
    pairs.push_back({static_cast<int>(i), static_cast<int>(j++)});
  }
  return pairs;
}

void Plan::findBeginningsAgain(func::FuncOp kernel, const Facts& facts) {
  constexpr unsigned kMany = 32;  // places of 32 bits are taken not to wrap
  kernel.walk([&](Operation* op) {
    if (!isa<arith::ExtSIOp, arith::ExtUIOp>(op) || !isTile(op->getResult(0))) return;
    const unsigned bits = elementOf(op->getOperand(0)).getIntOrFloatBitWidth();
    const Range range = facts.rangeOf(op->getOperand(0));
    if (bits >= kMany || (isa<arith::ExtSIOp>(op) ? range != fullRange(bits) : range.isNonNegative())) return;
    const AxisFacts axis = facts.of(op->getResult(0));
    const auto shape = shapeOf(op->getResult(0));
    for (size_t d = 0; d < shape.size(); ++d)
      if (axis.contiguity[d] != shape[d] && axis.constancy[d] != shape[d]) beginAgain_.insert(op);
  });
}

/// Of such offsets every vector of an access takes the first alone: in memory all of them would be written.
void Plan::findRuns(func::FuncOp kernel, const Facts& facts) {
  constexpr int64_t kShort = 16;
  kernel.walk([&](arith::AddIOp op) {
    if (!isTile(op.getResult()) || shapeOf(op.getResult()).back() < kShort) return;
    for (OpOperand& use : op->getUses()) {
      auto gather = dyn_cast<GatherOp>(use.getOwner());
      auto scatter = dyn_cast<ScatterOp>(use.getOwner());
      const Value offsets = gather ? gather.getOffsets() : scatter ? scatter.getOffsets() : Value();
      const Value value = scatter ? scatter.getValue() : Value();
      if (offsets != op.getResult() || value == op.getResult()) return;
    }
    if (facts.of(op.getResult()).contiguity.back() == shapeOf(op.getResult()).back()) runs_.insert(op);
  });
}

Plan::Plan(func::FuncOp kernel, const HostFeatures& machine) : machine_(machine) {
  number(kernel);
  const Facts facts(kernel);
  findStoresTogether(kernel, facts);
  findSoleReaders(kernel, facts);
  findBeginningsAgain(kernel, facts);
  findRuns(kernel, facts);
  kernel.walk<WalkOrder::PreOrder>([&](Operation* op) { decide(op); });
  for (size_t i = 0; i < buffers_.size(); ++i) parent_.push_back(static_cast<int>(i));
  members_.resize(buffers_.size());
  for (Value v : owners_) members_[refs_[v].buffer].push_back(v);
  tieControlFlow(kernel);
  makeInLoops(kernel);
  kernel.walk([&](Operation* op) { requestScratch(op); });
  computeLifetimes();
  assignOffsets();
}

void Plan::number(func::FuncOp kernel) {
  int next = 0;
  std::function<void(Operation*)> visit = [&](Operation* op) {
    int first = next++;
    for (Region& region : op->getRegions())
      for (Block& block : region)
        for (Operation& inner : block) visit(&inner);
    numbers_[op] = {first, next - 1};
  };
  visit(kernel);
}

void Plan::addValue(Value v, StringRef what) {
  auto type = cast<RankedTensorType>(v.getType());
  std::string text;
  llvm::raw_string_ostream(text) << what << " " << type;
  refs_[v] = Ref{static_cast<int>(buffers_.size()), 0, rowMajorStrides(type.getShape())};
  buffers_.push_back({type.getNumElements() * Numbers::bytes(type.getElementType()), 0, 0, 0, text, v.getLoc()});
  owners_.push_back(v);
  owned_.insert(v);
  costs_[v] = 1;
}

void Plan::addScratch(Operation* op, int slot, ArrayRef<int64_t> shape, int64_t elementBytes, StringRef what) {
  int64_t elements = 1;
  for (int64_t n : shape) elements *= n;
  parent_.push_back(static_cast<int>(buffers_.size()));
  scratch_[{op, slot}] = Ref{static_cast<int>(buffers_.size()), 0, rowMajorStrides(shape)};
  auto [first, last] = numbers_[op];
  buffers_.push_back({elements * elementBytes, 0, first, last, what.str(), op->getLoc()});
}

/// Control flow carries buffers; a constant fill is instead written into the carried buffer where it enters.
bool Plan::isCarried(Value v) const {
  return llvm::any_of(v.getUsers(), [](Operation* user) {
    return isa<scf::YieldOp, scf::ConditionOp, scf::ForOp, scf::WhileOp>(user);
  });
}

/// Some ops read their source in an order of their own.
bool Plan::isReordered(Value v) const {
  return llvm::any_of(v.getUsers(), [&](Operation* user) {
    if (isa<TransOp, ReshapeOp>(user)) return !movesOnlyUnitDims(user);
    auto take = dyn_cast<TakeOp>(user);
    return take && take.getSource() == v;
  });
}

void Plan::decide(Operation* op) {
  if (isCombiner(op)) return;
  for (Region& region : op->getRegions())
    for (Block& block : region)
      for (BlockArgument arg : block.getArguments())
        if (isTile(arg)) addValue(arg, "loop-carried");
  if (op->getNumResults() == 0 || !llvm::any_of(op->getResults(), isTile)) return;

  if (isa<ReshapeOp, TransOp>(op)) {
    Value source = op->getOperand(0), result = op->getResult(0);
    bool unit = movesOnlyUnitDims(op);
    // A transpose that only moves unit dims keeps the row-major order; otherwise dots read it where it lies.
    bool keepsOrder = isa<ReshapeOp>(op) || unit;
    if (const Ref* from = place(source); from && from->strides == rowMajorStrides(shapeOf(source)) && keepsOrder) {
      refs_[result] = Ref{from->buffer, from->offset, rowMajorStrides(shapeOf(result))};
      costs_[result] = 1;
      return;
    }
    if (isa<TransOp>(op) && !unit) {
      const Ref* from = place(source);
      bool onlyDots = llvm::all_of(result.getUsers(), [&](Operation* user) {
        auto dot = dyn_cast<DotOp>(user);
        return dot && dot.getAcc() != result;
      });
      if (!onlyDots || !from) return addValue(result, "transposed");
      Ref ref{from->buffer, from->offset, {}};
      for (int32_t d : cast<TransOp>(op).getPermutation()) ref.strides.push_back(from->strides[d]);
      refs_[result] = ref;
      costs_[result] = 1;
      return;
    }
    if (!unit) return addValue(result, "reshaped");
  } else if (!isFusable(op) && !(isa<GatherOp>(op) && readOnce_.contains(op))) {
    // Values nobody reads have no buffer; control flow writes its results all the same.
    bool writes = op->getNumRegions() > 0 && !isa<ReduceOp, ScanOp>(op);
    for (Value result : op->getResults())
      if (isTile(result) && (writes || !result.use_empty())) addValue(result, op->getName().stripDialect());
    return;
  }

  const int cost = costOfMaking(op);
  const bool readOnce = readOnce_.contains(op);
  if (isa<GatherOp>(op) || llvm::any_of(op->getOperands(), [&](Value v) { return readsMemory(v); }))
    readsMemory_.insert(op);
  for (Value result : op->getResults()) {
    if (!isTile(result)) continue;
    bool fill = isa<SplatOp>(op) ||
                (isa<arith::ConstantOp>(op) && isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue()));
    int uses = static_cast<int>(std::distance(result.use_begin(), result.use_end()));
    bool deeper = llvm::any_of(result.getUsers(), [&](Operation* user) { return loopDepth(user) > loopDepth(op); });
    bool repeated = llvm::any_of(result.getUsers(), [&](Operation* user) { return isa<BroadcastOp>(user); });
    const bool ofRows = cost > 1 && repeated && shapeOf(result).back() == 1;
    bool dear = (cost > kCheap && (uses > 1 || deeper || repeated)) ||
                (ofRows && (isOfShortRows(result) || feedsColumnSums(result)));
    bool manyTimes = cost * (uses - 1) > 2 * kCheap;
    // What is read from memory is read in the loops that were found for it, and once.
    bool again = !readOnce && (((dear || manyTimes) && !runs_.contains(op)) || readsMemory_.contains(op));
    if (isReordered(result) || (isCarried(result) && !fill) || again || cost > kLongest)
      addValue(result, op->getName().stripDialect());
    else
      costs_[result] = cost;
  }
}

void Plan::requestScratch(Operation* op) {
  if (auto dot = dyn_cast<DotOp>(op)) {
    DotShape shape = DotShape::of(dot, *this);
    const int64_t bytes = shape.onMatrixUnit() ? shape.operandBytes() : shape.computeBytes;
    const int64_t columns = shape.onMatrixUnit() ? llvm::alignTo(shape.n, 16) : shape.n;
    if (shape.packA) addScratch(op, 0, {shape.m, shape.k}, bytes, "packed A of dot");
    if (shape.packB) addScratch(op, 1, {shape.k, columns}, bytes, "packed B of dot");
    if (shape.rowsOfB) addScratch(op, 2, {shape.k, shape.n}, bytes, "rows of B of dot");
  } else if (auto counts = dyn_cast<HistogramOp>(op); counts && histogramTables(counts) > 1) {
    addScratch(op, 0, {histogramTables(counts) - 1, shapeOf(counts.getResult())[0]},
               Numbers::bytes(elementOf(counts.getResult())), "counts of histogram");
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    // Carried tiles that change places are copied out before any of them is overwritten.
    Operation* yield = loop.getBody()->getTerminator();
    for (auto [i, yielded] : llvm::enumerate(yield->getOperands())) {
      const Ref* from = isTile(yielded) ? place(yielded) : nullptr;
      for (auto [j, arg] : llvm::enumerate(loop.getRegionIterArgs()))
        if (from && i != j && isTile(arg) && root(from->buffer) == root(refs_[arg].buffer)) {
          addScratch(yield, static_cast<int>(i), shapeOf(yielded), Numbers::bytes(elementOf(yielded)),
                     "exchange of loop-carried tiles");
          break;
        }
    }
  }
}

/// Ops that evaluating one element of the op's results costs, each counted once: a nest keeps what it has computed.
int Plan::costOfMaking(Operation* op) const {
  llvm::DenseSet<Value> seen;
  std::function<int(Operation*)> visit = [&](Operation* op) {
    int cost = opCost(op);
    for (Value operand : op->getOperands()) {
      if (!isTile(operand) || !seen.insert(operand).second) continue;
      Operation* def = refs_.contains(operand) ? nullptr : operand.getDefiningOp();
      cost += def ? visit(def) : 1;
    }
    const bool ofRows = isa<BroadcastOp>(op) && shapeOf(op->getOperand(0)).back() < shapeOf(op->getResult(0)).back();
    return ofRows ? std::min(cost, 1) : cost;  // once for every row
  };
  return visit(op);
}

int Plan::root(int b) const {
  while (parent_[b] != b) b = parent_[b] = parent_[parent_[b]];
  return b;
}

void Plan::computeLifetimes() {
  for (Value v : owners_) {
    Operation* def = v.getDefiningOp();
    Operation* scope = def ? def : v.getParentBlock()->getParentOp();
    auto [first, last] = numbers_[scope];
    if (Operation* loops = madeIn(v)) first = std::min(first, numbers_[loops].first);
    // Results of control flow are written inside it, carried values live through all of it.
    bool whole = !def || def->getNumRegions() > 0;
    int end = whole ? last : first;
    for (const Read& r : readsOf(v)) {
      Operation* later = r.op->getNumResults() == 1 ? madeIn(r.op->getResult(0)) : nullptr;
      end = std::max(end, numbers_[later ? later : r.op].first);
      for (Operation* p = r.op; p && p->getBlock() != v.getParentBlock(); p = p->getParentOp())
        if (Operation* outer = p->getParentOp();
            outer && outer->getBlock() && isa<scf::ForOp, scf::WhileOp>(outer) && !outer->isAncestor(scope))
          end = std::max(end, numbers_[outer].second);
    }
    Buffer& b = buffers_[refs_[v].buffer];
    b.first = first;
    b.last = end;
  }
  for (size_t i = 0; i < buffers_.size(); ++i) {
    int r = root(static_cast<int>(i));
    if (r == static_cast<int>(i)) continue;
    buffers_[r].first = std::min(buffers_[r].first, buffers_[i].first);
    buffers_[r].last = std::max(buffers_[r].last, buffers_[i].last);
    buffers_[i].bytes = 0;
  }
  for (auto& [v, ref] : refs_) ref.buffer = root(ref.buffer);
}

void Plan::assignOffsets() {
  SmallVector<int> order;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (buffers_[i].bytes > 0) order.push_back(static_cast<int>(i));
  llvm::stable_sort(order, [&](int a, int b) { return buffers_[a].bytes > buffers_[b].bytes; });
  SmallVector<int> placed;
  for (int i : order) {
    Buffer& b = buffers_[i];
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (int j : placed)
      if (buffers_[j].first <= b.last && b.first <= buffers_[j].last)
        taken.push_back({buffers_[j].offset, buffers_[j].offset + llvm::alignTo(buffers_[j].bytes, kAlign)});
    llvm::sort(taken);
    int64_t offset = 0;
    for (auto [from, to] : taken) {
      if (offset + b.bytes <= from) break;
      offset = std::max(offset, to);
    }
    b.offset = offset;
    arenaBytes_ = std::max(arenaBytes_, static_cast<int64_t>(llvm::alignTo(offset + b.bytes, kAlign)));
    placed.push_back(i);
  }
}

}  // namespace tile::ir::host
