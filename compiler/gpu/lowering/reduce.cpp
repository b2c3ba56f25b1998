// reduce.cpp - reductions along an axis, in three steps: a balanced tree over each thread's registers (of short chains
// for sums of products, and of what flags choose); butterflies between lanes, or one instruction where there is one
// (redux for integers, and for extremes of f32 as ordered integers; votes for flags); a table in shared memory between
// warps. Every thread that holds a slice of the result ends with it. The order is fixed by the layout, so results are
// the same in every run. Padding never reaches the combiner's result.
//
// Where a thread reduces several slices, lanes share the work (halving.h). In front of the table that also means that
// no lane stores what another does; behind it threads read what their layout of the result wants.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/votes.h"
#include "compiler/gpu/lowering/access.h"
#include "compiler/gpu/lowering/combine.h"
#include "compiler/gpu/lowering/halving.h"
#include "compiler/gpu/lowering/lowering.h"
#include "compiler/gpu/lowering/meeting.h"
#include "compiler/gpu/lowering/select_one.h"
#include "compiler/layout/relations.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace tile::ir {
using namespace mlir;
using layout::Coord;
using layout::Digit;
using layout::Layout;

namespace {

class Reduction {
  /// Products and masked numbers that are added one by one: short enough for several chains.
  static constexpr size_t kChain = 8;

 public:
  Reduction(Emitter& e, ReduceOp op)
      : e(e),
        op_(op),
        axis_(static_cast<int>(op.getAxis())),
        source_(e.layoutOf(op.getSources()[0])),
        result_(e.layoutOf(op.getResults()[0])),
        slice_(source_.sliced(axis_)),
        combine_(e, op.getCombiner()),
        inChains_(sumsProducts(op) || sumsChosen(op)),
        eitherWay_(combinesEitherWay(op)) {}

  LogicalResult run() {
    const bool asksWarp = op_->hasAttr(kPartsAttr), asksAll = !asksWarp && votesAtBarrier(op_);
    const bool isTable = warpsAlong(source_, axis_) > 1 && !asksAll && !asksWarp;
    if (!asksWarp &&
        (isTable ? !readsAnyLayout(op_, result_) : layout::conversion(slice_, result_) == layout::Conversion::shared))
      return op_.emitOpError()
             << "expected results laid out as the operands without the axis (a bug of assign_layouts)";
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
  LogicalResult put() {
    std::vector<Tuple> partial;
    for (int reg = 0; reg < slice_.numRegs(); ++reg) partial.push_back(inThread(slice_.regCoord(reg)));
    intoTable(std::move(partial));
    return failure(combine_.failed());
  }

 private:
  // Only one element is not zero: its thread chooses it, and its lane, known by its coordinate, hands it to the others.
  LogicalResult select(const SelectedOne& one) {
    llvm::ArrayRef<llvm::Value*> conditions = e.regs(one.condition), values = e.regs(one.values),
                                 places = e.regs(one.place);
    llvm::Type* type = e.elementType(op_.getSources()[0]);
    Regs results;
    for (int reg = 0; reg < result_.numRegs(); ++reg) {
      const auto along = elementsOf(result_.regCoord(reg));
      llvm::Value* chosen = llvm::Constant::getNullValue(type);
      for (const auto& [at, from] : along)
        chosen = e.b.CreateSelect(e.andAll({conditions[from], valid(at)}), values[from], chosen);
      llvm::Value* at = places[places.size() == 1 ? 0 : along[0].second];
      if (one.base) at = e.b.CreateSub(at, e.scalar(one.base));
      if (llvm::Value* lane = laneHolding(e, source_, axis_, e.b.CreateSub(at, e.i32(one.start))))
        chosen = e.shuffleIdx(chosen, lane);
      // As in the sum, zero has no sign.
      if (extent() > 1 && type->isFloatingPointTy())
        chosen = e.b.CreateFAdd(chosen, llvm::Constant::getNullValue(type));
      results.push_back(chosen);
    }
    e.define(op_.getResults()[0], std::move(results));
    return success();
  }

  int64_t extent() const { return source_.shape()[axis_]; }

  // Whether the thread's element at register coordinate c of the axis is in the tile; null: always.
  llvm::Value* valid(int64_t c) {
    if (source_.maxThreadCoord(axis_) + c < extent()) return nullptr;
    return e.b.CreateICmpULT(e.threadCoord(source_, axis_), e.i32(extent() - c));
  }

  Tuple tupleOf(int reg) {
    Tuple tuple;
    for (Value operand : op_.getSources()) tuple.push_back(e.regs(operand)[reg]);
    return tuple;
  }

  // What the thread holds of a slice: (axis coordinate, register).
  std::vector<std::pair<int64_t, int>> elementsOf(const Coord& want) {
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

  Tuple inThread(const Coord& want) { return tree(elementsOf(want)); }

  Tuple tree(llvm::ArrayRef<std::pair<int64_t, int>> along) {
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

  // What combines one value of every lane of the warp by itself.
  std::optional<llvm::Intrinsic::ID> warpInstruction() {
    using namespace llvm::Intrinsic;
    Operation* sole = op_.getNumResults() == 1 ? soleOperation(op_, 0) : nullptr;
    if (!sole || !coversLanes(source_, axis_)) return std::nullopt;
    const Type type = getElementTypeOrSelf(op_.getSources()[0].getType());
    if (type.isInteger(1))
      return llvm::TypeSwitch<Operation*, std::optional<ID>>(sole)
          .Case<arith::AndIOp>([](auto) { return nvvm_vote_all_sync; })
          .Case<arith::OrIOp>([](auto) { return nvvm_vote_any_sync; })
          .Default([](Operation*) { return std::nullopt; });
    // Lanes that hold the same would be counted more than once.
    if (!type.isInteger(32)) return std::nullopt;
    const bool once = source_.laneReplicas() == 1;
    return llvm::TypeSwitch<Operation*, std::optional<ID>>(sole)
        .Case<arith::AddIOp>([&](auto) { return once ? std::optional(ID{nvvm_redux_sync_add}) : std::nullopt; })
        .Case<arith::XOrIOp>([&](auto) { return once ? std::optional(ID{nvvm_redux_sync_xor}) : std::nullopt; })
        .Case<arith::MinSIOp>([](auto) { return nvvm_redux_sync_min; })
        .Case<arith::MaxSIOp>([](auto) { return nvvm_redux_sync_max; })
        .Case<arith::MinUIOp>([](auto) { return nvvm_redux_sync_umin; })
        .Case<arith::MaxUIOp>([](auto) { return nvvm_redux_sync_umax; })
        .Case<arith::AndIOp>([](auto) { return nvvm_redux_sync_and; })
        .Case<arith::OrIOp>([](auto) { return nvvm_redux_sync_or; })
        .Default([](Operation*) { return std::nullopt; });
  }

  // The largest or smallest of one f32 of every lane, compared as integers in the same order: one instruction instead
  // of five rounds of shuffles that wait for each other. A NaN, which any number beats, becomes the key that every
  // other key beats.
  bool asOrderedIntegers(std::vector<Tuple>& partial) {
    Operation* sole = op_.getNumResults() == 1 ? soleOperation(op_, 0) : nullptr;
    if (partial.size() > 1 || !isa_and_nonnull<arith::MaxNumFOp, arith::MinNumFOp>(sole) ||
        !coversLanes(source_, axis_) || !partial[0][0]->getType()->isFloatTy())
      return false;
    const bool isMax = isa<arith::MaxNumFOp>(sole);
    constexpr int64_t kAllButSign = 0x7fffffff;
    auto turned = [&](llvm::Value* bits) {  // there and back: negative numbers are ordered the other way round
      return e.b.CreateXor(bits, e.b.CreateAnd(e.b.CreateAShr(bits, 31), e.i32(kAllButSign)));
    };
    llvm::Value*& value = partial[0][0];
    llvm::Value* last = isMax ? e.b.CreateNot(e.i32(kAllButSign)) : e.i32(kAllButSign);
    llvm::Value* key =
        e.b.CreateSelect(e.b.CreateFCmpUNO(value, value), last, turned(e.b.CreateBitCast(value, e.b.getInt32Ty())));
    key = e.b.CreateIntrinsic(isMax ? llvm::Intrinsic::nvvm_redux_sync_max : llvm::Intrinsic::nvvm_redux_sync_min,
                              {key, e.i32(-1)});
    value = e.b.CreateBitCast(turned(key), e.b.getFloatTy());
    return true;
  }

  void acrossLanes(std::vector<Tuple>& partial) {
    if (asOrderedIntegers(partial)) return;
    if (auto instruction = warpInstruction()) {
      const bool isVote = partial[0][0]->getType()->isIntegerTy(1);
      for (Tuple& tuple : partial)
        tuple[0] = isVote ? e.b.CreateIntrinsic(*instruction, {e.i32(-1), tuple[0]})
                          : e.b.CreateIntrinsic(*instruction, {tuple[0], e.i32(-1)});
      return;
    }
    if (voteByGroups(partial) || halveByLanes(partial)) return;
    int step = 1;
    for (const Digit& digit : source_.lanes()) {
      for (int distance = 1; digit.dim == axis_ && distance < digit.count; distance *= 2)
        butterfly(partial, step, digit, distance);
      step *= digit.count;
    }
  }

  // Flags that groups of at least four lanes reduce: one ballot of the warp, of which each lane tests its group's bits.
  bool voteByGroups(std::vector<Tuple>& partial) {
    Operation* sole = op_.getNumResults() == 1 ? soleOperation(op_, 0) : nullptr;
    if (!isa_and_nonnull<arith::AndIOp, arith::OrIOp>(sole) || source_.isPadded(axis_) ||
        !getElementTypeOrSelf(op_.getSources()[0].getType()).isInteger(1))
      return false;
    uint32_t inGroup = 0, first = 1;  // bits of the lane's number; the lanes of the group of lane 0, a bit each
    int step = 1;
    for (const Digit& digit : source_.lanes()) {
      for (int bit = step; digit.dim == axis_ && bit < step * digit.count; bit *= 2)
        inGroup |= bit, first |= first << bit;
      step *= digit.count;
    }
    if (llvm::popcount(inGroup) < 2) return false;
    llvm::Value* group = e.b.CreateShl(e.i32(static_cast<int32_t>(first)), e.b.CreateAnd(e.lane(), e.i32(~inGroup)));
    for (Tuple& tuple : partial) {
      llvm::Value* votes = e.b.CreateIntrinsic(llvm::Intrinsic::nvvm_vote_ballot_sync, {e.i32(-1), tuple[0]});
      llvm::Value* own = e.b.CreateAnd(votes, group);
      tuple[0] = isa<arith::AndIOp>(sole) ? e.b.CreateICmpEQ(own, group) : e.b.CreateICmpNE(own, e.i32(0));
    }
    return true;
  }

  // Lanes share the work where there are several registers (halving.h). Elements that are padding could not be told
  // from others then.
  bool halveByLanes(std::vector<Tuple>& partial) {
    if (!eitherWay_ || source_.isPadded(axis_)) return false;
    std::vector<int> partners;  // bits of the lane's number
    int step = 1;
    for (const Digit& digit : source_.lanes()) {
      if (digit.dim == axis_ && !llvm::isPowerOf2_32(digit.count)) return false;
      for (int bit = step; digit.dim == axis_ && bit < step * digit.count; bit *= 2) partners.push_back(bit);
      step *= digit.count;
    }
    std::map<Coord, size_t> places;  // replicas are reduced once
    std::vector<size_t> placeOf;
    std::vector<Tuple> values;
    for (auto [reg, tuple] : llvm::enumerate(partial)) {
      const auto [at, isNew] = places.try_emplace(result_.regCoord(static_cast<int>(reg)), values.size());
      if (isNew) values.push_back(tuple);
      placeOf.push_back(at->second);
    }
    const auto reduced = reduceByHalves(
        e, combine_, values, partners,
        [&](const Tuple& own, const Tuple& other, int partner) { return together(own, other, partner); });
    if (reduced.empty()) return false;
    for (auto [reg, tuple] : llvm::enumerate(partial)) tuple = reduced[placeOf[reg]];
    return true;
  }

  // Lanes whose digits differ by `distance` combine; `step` is the digit's weight in the lane number.
  void butterfly(std::vector<Tuple>& partial, int step, const Digit& digit, int distance) {
    llvm::Value *highValid = nullptr, *isLow = nullptr;
    if (source_.isPadded(axis_)) {
      // The upper half of the pair starts `distance` steps above this digit's rounded-down value. All that was combined
      // before starts at the lower digits' zero.
      llvm::Value* value = e.b.CreateURem(e.b.CreateUDiv(e.lane(), e.i32(step)), e.i32(digit.count));
      llvm::Value* inside = e.b.CreateAnd(value, e.i32(2 * distance - 1));
      llvm::Value* coord = e.b.CreateSub(remainingCoord(step), e.b.CreateMul(inside, e.i32(digit.stride)));
      coord = e.b.CreateAdd(coord, e.i32(int64_t{distance} * digit.stride));
      highValid = e.b.CreateICmpULT(coord, e.i32(extent()));
      isLow = e.b.CreateICmpULT(inside, e.i32(distance));
    }
    for (Tuple& tuple : partial) {
      Tuple other = combine_.map(tuple, [&](llvm::Value* v) { return e.shuffleXor(v, step * distance); });
      Tuple both = together(tuple, other, step * distance);
      // Without an upper half, both lanes keep the lower one's value.
      tuple = highValid ? combine_.select(highValid, both, combine_.select(isLow, tuple, other)) : both;
    }
  }

  // Both lanes must get the same bits: what is reduced counts as one value, on which all lanes branch alike.
  Tuple together(const Tuple& own, const Tuple& other, int partner) {
    if (!eitherWay_) {
      llvm::Value* isFirst = e.b.CreateICmpEQ(e.b.CreateAnd(e.lane(), e.i32(partner)), e.i32(0));
      return combine_(combine_.select(isFirst, own, other), combine_.select(isFirst, other, own));
    }
    Tuple both = combine_(own, other);
    for (auto [i, sum] : llvm::enumerate(both))
      if (isRoundedSum(op_, static_cast<unsigned>(i)))
        sum = e.b.CreateIntrinsic(
            own[i]->getType()->isDoubleTy() ? llvm::Intrinsic::nvvm_add_rn_d : llvm::Intrinsic::nvvm_add_rn_f,
            {own[i], other[i]});
    return both;
  }

  // The thread's coordinate along the axis with the lane digits below `step` (combined already) at zero.
  llvm::Value* remainingCoord(int step) {
    std::vector<Digit> lanes;
    int weight = 1;
    for (Digit digit : source_.lanes()) {
      lanes.push_back(weight < step ? Digit{layout::kReplicated, digit.count, 0} : digit);
      weight *= digit.count;
    }
    llvm::Value *fromLane = e.digitSum(lanes, e.lane(), axis_),
                *fromWarp = e.digitSum(source_.warps(), e.warp(), axis_);
    if (fromLane && fromWarp) return e.b.CreateAdd(fromLane, fromWarp);
    return fromLane ? fromLane : fromWarp ? fromWarp : e.i32(0);
  }

  /// Registers of `slice_` that are left in a lane, in the order of the list, and how far from them, in values of the
  /// table, those are that the lane has instead: the sum of `offset` over the bits of its number.
  struct Shared {
    std::vector<int> regs;
    std::vector<std::pair<int, int64_t>> offset;  ///< (bit of the lane number, values)
  };

  // Lanes along the axis combine, and share the registers among them as far as they come in pairs at one distance.
  Shared shareAcrossLanes(std::vector<Tuple>& partial, const PartsTable& table) {
    Shared shared;
    std::set<Coord> seen;
    for (int reg = 0; reg < slice_.numRegs(); ++reg)  // replicas count once
      if (seen.insert(slice_.regCoord(reg)).second) shared.regs.push_back(reg);
    std::vector<Tuple> values;
    for (int reg : shared.regs) values.push_back(partial[reg]);
    partial = std::move(values);
    if (asOrderedIntegers(partial)) return shared;
    if (warpInstruction()) {
      acrossLanes(partial);
      return shared;
    }
    auto place = [&](int reg) {
      const Coord coord = slice_.regCoord(reg);
      int64_t at = 0;
      for (int dim = 0; dim < slice_.rank(); ++dim) at += coord[dim] * table.strides[dim];
      return at;
    };
    auto distanceOfPairs = [&]() -> std::optional<int64_t> {
      std::optional<int64_t> distance;
      for (size_t i = 0; i + 1 < shared.regs.size(); i += 2) {
        const int64_t here = place(shared.regs[i + 1]) - place(shared.regs[i]);
        if (distance && *distance != here) return std::nullopt;
        distance = here;
      }
      return shared.regs.size() % 2 ? std::nullopt : distance;
    };
    int step = 1;
    for (const Digit& digit : source_.lanes()) {
      for (int distance = 1; digit.dim == axis_ && distance < digit.count; distance *= 2) {
        const std::optional<int64_t> apart = distanceOfPairs();
        if (!apart || !eitherWay_ || source_.isPadded(axis_) || !llvm::isPowerOf2_32(digit.count)) {
          butterfly(partial, step, digit, distance);
          continue;
        }
        const int partner = step * distance;
        partial = keepHalf(e, combine_, partial, partner);
        std::vector<int> regs;
        for (size_t i = 0; i < shared.regs.size(); i += 2) regs.push_back(shared.regs[i]);
        shared.regs = std::move(regs);
        shared.offset.emplace_back(partner, *apart);
      }
      step *= digit.count;
    }
    return shared;
  }

  /// How many of the registers from the i-th on lie side by side in the table, as one access takes them.
  int sideBySide(const PartsTable& table, llvm::ArrayRef<int> regs, const Layout& layout, size_t i, int64_t bytes) {
    constexpr int64_t kVectorBytes = 16;
    auto at = [&](size_t reg) { return entryConstant(table, layout.regCoord(regs[reg])); };
    int64_t apart = 0;  // of threads, in values: 6, say, where each has 6 neighbours
    for (const std::vector<Digit>* digits : {&layout.lanes(), &layout.warps()})
      for (const Digit& digit : *digits)
        if (digit.dim != layout::kReplicated && digit.dim != axis_)
          apart = std::gcd(apart, digit.stride * table.strides[digit.dim]);
    int count = 1;
    while (2 * count * bytes <= kVectorBytes && i + 2 * count <= regs.size() && at(i) % (2 * count) == 0 &&
           apart % (2 * count) == 0) {
      for (int j = count; j < 2 * count; ++j)
        if (at(i + j) != at(i) + j) return count;
      count *= 2;
    }
    return count;
  }

  /// The values of the thread's own slice under `layout`, in the table.
  llvm::Value* entryOf(const PartsTable& table, const Layout& layout) {
    llvm::Value* entry = nullptr;
    for (int dim = 0; dim < layout.rank(); ++dim) {
      if (dim == axis_ || layout.maxThreadCoord(dim) == 0) continue;
      llvm::Value* offset = e.b.CreateMul(e.threadCoord(layout, dim), e.i32(table.strides[dim]));
      entry = entry ? e.b.CreateAdd(entry, offset) : offset;
    }
    return entry ? entry : e.i32(0);
  }

  int64_t entryConstant(const PartsTable& table, const Coord& coord) {
    int64_t constant = 0;
    for (int dim = 0; dim < result_.rank(); ++dim) constant += coord[dim] * table.strides[dim];
    return constant;
  }

  llvm::Value* place(const PartsTable& table, size_t operand, const Coord& coord, llvm::Value* at,
                     int64_t constantPart) {
    int64_t bytes = memoryBytes(e.elementType(op_.getSources()[operand]));
    const int64_t constant = constantPart + entryConstant(table, coord);
    llvm::Value* scaled = e.b.CreatePtrAdd(e.scratch(op_), e.b.CreateMul(at, e.i32(bytes)));
    return e.b.CreatePtrAdd(scaled, e.i32(table.operandOffset[operand] + constant * bytes));
  }

  void intoTable(std::vector<Tuple> partial) {
    const PartsTable table = partsTable(op_);
    std::vector<Digit> numbering;  // of the warp's part
    int weight = 1;
    for (const Digit& digit : source_.warps()) {
      numbering.push_back(digit.dim == axis_ ? Digit{axis_, digit.count, weight * static_cast<int>(table.partStride)}
                                             : Digit{layout::kReplicated, digit.count, 0});
      if (digit.dim == axis_) weight *= digit.count;
    }
    llvm::Value* own = e.b.CreateAdd(entryOf(table, slice_), e.digitSum(numbering, e.warp(), axis_));
    const Shared shared = shareAcrossLanes(partial, table);
    for (const auto& [bit, values] : shared.offset) {
      llvm::Value* isUpper = e.b.CreateICmpNE(e.b.CreateAnd(e.lane(), e.i32(bit)), e.i32(0));
      own = e.b.CreateAdd(own, e.b.CreateSelect(isUpper, e.i32(values), e.i32(0)));
    }
    // Lanes that share registers are whole vectors apart, or one: then vectors are not aligned.
    const bool isShared = !shared.offset.empty();
    for (size_t operand = 0; operand < op_.getNumResults(); ++operand) {
      const int64_t bytes = memoryBytes(e.elementType(op_.getSources()[operand]));
      for (size_t i = 0, count = 1; i < shared.regs.size(); i += count) {
        count = isShared ? 1 : static_cast<size_t>(sideBySide(table, shared.regs, slice_, i, bytes));
        Regs values;
        for (size_t j = 0; j < count; ++j) values.push_back(partial[i + j][operand]);
        storeVector(e, place(table, operand, slice_.regCoord(shared.regs[i]), own, 0), values);
      }
    }
  }

  std::vector<Tuple> fromTable() {
    const PartsTable table = partsTable(op_);
    const int64_t parts = table.parts;
    // The first coordinate of each part: those of padding only are left out.
    std::vector<int64_t> firstCoord(parts, 0);
    int weight = 1;
    for (const Digit& digit : source_.warps()) {
      if (digit.dim != axis_) continue;
      for (int64_t part = 0; part < parts; ++part) firstCoord[part] += part / weight % digit.count * digit.stride;
      weight *= digit.count;
    }
    llvm::Value* entry = entryOf(table, result_);
    std::vector<int> regs(static_cast<size_t>(result_.numRegs()));
    std::iota(regs.begin(), regs.end(), 0);
    std::vector<Tuple> combined;
    // As many registers at a time as one access takes: read all at once, the parts of all would be alive together.
    for (size_t first = 0, count = 1; first < regs.size(); first += count) {
      count = 1;
      if (table.partStride != 1)
        for (Value source : op_.getSources())
          count = std::max(
              count, static_cast<size_t>(sideBySide(table, regs, result_, first, memoryBytes(e.elementType(source)))));
      std::vector<Joined> joined(count);
      const int64_t step = table.partStride == 1 ? partsOfAnAccess(table) : 1;
      for (int64_t part = 0; part < parts; part += step) {
        std::vector<std::vector<Tuple>> found(count, std::vector<Tuple>(step));
        for (size_t i = 0; i < op_.getNumResults(); ++i)
          readParts(table, i, entry, part, llvm::ArrayRef(regs).slice(first, count), found);
        for (int64_t j = 0; j < step; ++j)
          for (size_t i = 0; i < count && firstCoord[part + j] < extent(); ++i)  // parts of padding only take no part
            joined[i].add(std::move(found[i][j]), combine_);
      }
      for (Joined& j : joined) combined.push_back(j.take(combine_));
    }
    return combined;
  }

  /// Values that arrive one after the other, combined in pairs, these in pairs and so on: few are alive at a time.
  class Joined {
   public:
    void add(Tuple value, Combiner& combine) {
      int pairs = 0;
      for (; !kept_.empty() && kept_.back().first == pairs; ++pairs) {
        value = combine(kept_.back().second, value);
        kept_.pop_back();
      }
      kept_.emplace_back(pairs, std::move(value));
    }
    Tuple take(Combiner& combine) {
      Tuple value = kept_.back().second;
      for (kept_.pop_back(); !kept_.empty(); kept_.pop_back()) value = combine(kept_.back().second, value);
      return value;
    }

   private:
    std::vector<std::pair<int, Tuple>> kept_;  ///< (how often it was combined, value), those combined most in front
  };

  /// Parts that one access reads where they lie side by side, of every operand.
  int64_t partsOfAnAccess(const PartsTable& table) {
    int64_t most = 1;
    for (Value source : op_.getSources())
      most = std::max(most, std::gcd<int64_t>(table.parts, 16 / memoryBytes(e.elementType(source))));
    return most;
  }

  /// Appends an operand's values of registers `regs` of the result, by register and part, from part `from` on.
  void readParts(const PartsTable& table, size_t operand, llvm::Value* entry, int64_t from, llvm::ArrayRef<int> regs,
                 std::vector<std::vector<Tuple>>& found) {
    llvm::Type* type = e.elementType(op_.getSources()[operand]);
    const int64_t bytes = memoryBytes(type);
    const auto parts = static_cast<int64_t>(found[0].size());
    for (size_t i = 0, count = 1; i < regs.size(); i += count) {
      const Coord coord = result_.regCoord(regs[i]);
      if (table.partStride == 1) {
        const int vector = static_cast<int>(std::gcd<int64_t>(parts, 16 / bytes));
        for (int64_t p = 0; p < parts; p += vector)
          for (auto [step, value] :
               llvm::enumerate(loadVector(e, place(table, operand, coord, entry, from + p), type, vector)))
            found[i][p + static_cast<int64_t>(step)].push_back(value);
        continue;
      }
      count = static_cast<size_t>(sideBySide(table, regs, result_, i, bytes));
      for (int64_t p = 0; p < parts; ++p)
        for (auto [step, value] : llvm::enumerate(loadVector(
                 e, place(table, operand, coord, entry, (from + p) * table.partStride), type, static_cast<int>(count))))
          found[i + step][p].push_back(value);
    }
  }

  Emitter& e;
  ReduceOp op_;
  int axis_;
  const Layout& source_;
  const Layout& result_;
  const Layout slice_;  ///< what the threads of the source hold of the result
  Combiner combine_;
  bool inChains_, eitherWay_;
};

}  // namespace

LogicalResult emitReduce(Emitter& e, ReduceOp op) { return Reduction(e, op).run(); }
LogicalResult putPartsOfWarps(Emitter& e, ReduceOp op) { return Reduction(e, op).put(); }

}  // namespace tile::ir
