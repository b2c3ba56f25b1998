// lane_numbers.cpp - numbers that say which tiles are copied, and are the least, the largest or the sum of a tile.
// Before: tile.item of a tile.reduce of integers that are loaded, or computed of such, and copies that depend on it:
//         `range(min(first), max(end))`, where each row has a range of keys; `sum(cast(list >= 0, i32))` steps, `any` of
//         the flags of a block
// After:  tile.ballot of numbers: each lane of a warp makes its elements of the tile and combines them, then
//         those of all lanes are combined. No other warp is asked: a producer can do the same, ahead of the consumers.
// The old ops stay until it is known that there are roles.
#include "compiler/analysis/definitions.h"
#include "compiler/analysis/memory_roots.h"
#include "compiler/gpu/forms/across.h"
#include "compiler/gpu/forms/shared_memory.h"
#include "compiler/gpu/roles/specialize.h"
#include "compiler/lowering/elementwise.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/IRMapping.h"

namespace tile::ir {
using namespace mlir;

namespace {

constexpr int64_t kLanes = 32, kMostElements = 16 * kLanes;

/// The dim that a vector lies along, whatever others of one element it has; -1: it has one element. Nullopt: a matrix.
std::optional<int64_t> longDim(RankedTensorType type) {
  int64_t found = -1;
  for (auto [d, size] : llvm::enumerate(type.getShape())) {
    if (size == 1) continue;
    if (found >= 0) return std::nullopt;
    found = static_cast<int64_t>(d);
  }
  return found;
}

/// One element of a vector, computed with scalars where the builder stands.
class Element {
 public:
  Element(OpBuilder& b, Value place) : b_(b), place_(place) {}

  /// Null: it takes more than that.
  Value of(Value tile) {
    auto type = dyn_cast<RankedTensorType>(tile.getType());
    if (!type) return tile;
    if (Value known = made_.lookup(tile)) return known;
    Operation* op = tile.getDefiningOp();
    if (!op || !longDim(type)) return {};
    Value made = make(op, type);
    made_[tile] = made;
    return made;
  }
  ArrayRef<Operation*> reads() const { return reads_; }

 private:
  Value make(Operation* op, RankedTensorType type) {
    return llvm::TypeSwitch<Operation*, Value>(op)
        .Case<SplatOp>([](SplatOp splat) { return splat.getValue(); })
        .Case<AssumeOp>([&](AssumeOp assume) { return of(assume.getValue()); })
        .Case<ReshapeOp>([&](ReshapeOp reshape) { return of(reshape.getSource()); })
        .Case<BroadcastOp>([&](BroadcastOp repeat) {
          const int64_t size = repeat.getSource().getType().getNumElements();
          return size == 1 || size == type.getNumElements() ? of(repeat.getSource()) : Value();
        })
        .Case<IotaOp>([&](IotaOp iota) -> Value {
          const Type element = type.getElementType();
          Value first = arith::ConstantOp::create(b_, op->getLoc(), b_.getIntegerAttr(element, iota.getStart()));
          return arith::AddIOp::create(b_, op->getLoc(), resized(place_, element), first);
        })
        .Case<arith::ConstantOp>([&](arith::ConstantOp constant) -> Value {
          auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
          if (!splat) return {};
          return arith::ConstantOp::create(b_, op->getLoc(), cast<TypedAttr>(splat.getSplatValue<Attribute>()));
        })
        .Case<LoadOp>([&](LoadOp load) { return read(load, type); })
        .Case<GatherOp>([&](GatherOp gather) { return read(gather, type); })
        .Default([&](Operation* other) { return compute(other, type); });
  }

  Value resized(Value v, Type type) {
    const unsigned from = v.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
    if (from == to) return v;
    if (from < to) return arith::ExtSIOp::create(b_, v.getLoc(), type, v);
    return arith::TruncIOp::create(b_, v.getLoc(), type, v);
  }

  /// Its place is counted with 64 bits: it may lie behind the largest number of the index's own type.
  Value read(LoadOp load, RankedTensorType type) {
    SmallVector<Value> indices(load.getIndices());
    if (const int64_t dim = *longDim(type); dim >= 0) {
      Value& index = indices[indices.size() - static_cast<size_t>(type.getRank() - dim)];
      const Type wide = b_.getI64Type();
      index = arith::AddIOp::create(b_, load.getLoc(), resized(index, wide), resized(place_, wide));
    }
    reads_.push_back(load);
    return LoadOp::create(b_, load.getLoc(), type.getElementType(), load.getView(), indices, load.getPadAttr(),
                          load.getCacheAttr());
  }

  Value read(GatherOp gather, RankedTensorType type) {
    Value ptr = gather.getPtr(), mask = gather.getMask(), other = gather.getOther();
    if (isa<RankedTensorType>(ptr.getType())) return {};
    if (Value offsets = gather.getOffsets()) {
      Value offset = of(offsets);
      if (!offset) return {};
      ptr = PtrAddOp::create(b_, gather.getLoc(), ptr, offset);
    }
    if (mask && !(mask = of(mask))) return {};
    if (other && !(other = of(other))) return {};
    reads_.push_back(gather);
    return GatherOp::create(b_, gather.getLoc(), type.getElementType(), ptr, /*offsets=*/Value(), mask, other,
                            gather.getCache());
  }

  Value compute(Operation* op, RankedTensorType type) {
    if (!isElementwise(op) || op->getNumRegions() || op->getNumResults() != 1 || !isMemoryEffectFree(op)) return {};
    IRMapping map;
    for (Value operand : op->getOperands()) {
      Value element = of(operand);
      if (!element) return {};
      map.map(operand, element);
    }
    Value made = b_.clone(*op, map)->getResult(0);
    made.setType(type.getElementType());
    return made;
  }

  OpBuilder& b_;
  Value place_;
  llvm::DenseMap<Value, Value> made_;
  SmallVector<Operation*> reads_;
};

/// What combines the numbers, or truths, of lanes.
std::optional<RmwKind> kindOf(ReduceOp reduce) {
  Operation* sole = reduce.getNumResults() == 1 ? soleOperation(reduce, 0) : nullptr;
  if (!sole) return std::nullopt;
  return llvm::TypeSwitch<Operation*, std::optional<RmwKind>>(sole)
      .Case<arith::MinSIOp>([](auto) { return RmwKind::min; })
      .Case<arith::MaxSIOp>([](auto) { return RmwKind::max; })
      .Case<arith::MinUIOp>([](auto) { return RmwKind::umin; })
      .Case<arith::MaxUIOp>([](auto) { return RmwKind::umax; })
      .Case<arith::AndIOp>([](auto) { return RmwKind::and_; })
      .Case<arith::OrIOp>([](auto) { return RmwKind::or_; })
      .Case<arith::AddIOp>([](auto) { return RmwKind::add; })
      .Default([](Operation*) { return std::nullopt; });
}

/// Whether a read may move down to the number that is made of it.
bool mayMove(Operation* read, Operation* to) {
  if (read->getBlock() != to->getBlock() || isVolatile(read)) return false;
  const MemoryRoot root = rootOf(addressOf(read));
  for (Operation* op = read; op != to; op = op->getNextNode()) {
    auto found = op->walk([&](Operation* inner) {
      const bool writes = writesGlobal(inner) && !root.isApartFrom(rootOf(addressOf(inner)));
      return writes || isAcquire(inner) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (found.wasInterrupted()) return false;
  }
  return true;
}

/// The number made by lanes, in front of `item`; nullopt: it cannot be.
std::optional<LaneNumber> numberOf(ItemOp item) {
  auto reduce = item.getSource().getDefiningOp<ReduceOp>();
  const std::optional<RmwKind> kind = reduce ? kindOf(reduce) : std::nullopt;
  const bool isTruth = item.getType().isInteger(1) && (kind == RmwKind::and_ || kind == RmwKind::or_);
  if (!kind || !(isTruth || item.getType().isInteger(32))) return std::nullopt;
  const Value source = reduce.getSources()[0];
  const int64_t size = cast<RankedTensorType>(source.getType()).getNumElements();
  if (size > kMostElements) return std::nullopt;

  const Location loc = item.getLoc();
  OpBuilder outside(item);
  auto ballot = BallotOp::create(outside, loc, outside.getI32Type(), RmwKindAttr::get(item.getContext(), *kind));
  Block& asked = ballot.getSteps().emplaceBlock();
  Value lane = asked.addArgument(outside.getI32Type(), loc);
  OpBuilder b = OpBuilder::atBlockEnd(&asked);
  auto number = [&](int64_t n) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(static_cast<int32_t>(n)));
  };
  Value all;
  for (int64_t first = 0; first < size; first += kLanes) {
    Value place = first ? arith::AddIOp::create(b, loc, lane, number(first)) : lane;
    const bool isCutOff = first + kLanes > size;
    // Lanes behind the last element repeat that one.
    Element element(b, isCutOff ? arith::MinSIOp::create(b, loc, place, number(size - 1)).getResult() : place);
    Value next = element.of(source);
    if (!next || !llvm::all_of(element.reads(), [&](Operation* read) { return mayMove(read, item); })) {
      ballot.erase();
      return std::nullopt;
    }
    if (isCutOff && kind == RmwKind::add) {  // which a sum must not see again
      Value isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, number(size));
      next = arith::SelectOp::create(b, loc, isOwn, next, number(0));
    }
    if (all) {
      Block& combiner = reduce.getCombiner().front();
      IRMapping map;
      map.map(combiner.getArgument(0), all), map.map(combiner.getArgument(1), next);
      next = b.clone(*soleOperation(reduce, 0), map)->getResult(0);
    }
    all = next;
  }
  if (isTruth) all = arith::ExtUIOp::create(b, loc, b.getI32Type(), all);
  YieldOp::create(b, loc, all);
  Value found = ballot.getBits();
  if (isTruth) found = arith::TruncIOp::create(outside, loc, item.getType(), found);
  return LaneNumber{ballot, found, item};
}

/// What copies to shared memory, and how often they are made, are computed from.
llvm::SetVector<Operation*> behindCopies(func::FuncOp func) {
  SmallVector<Value> values;
  func.walk([&](Operation* copy) {
    if (!isSharedCopy(copy)) return;
    llvm::append_range(values, copy->getOperands());
    for (Operation* at = copy->getParentOp(); at != func; at = at->getParentOp())
      llvm::append_range(values, controlOf(at));
  });
  return definitionsBehind(values);
}

}  // namespace

LaneNumbers numbersByLanes(func::FuncOp func) {
  LaneNumbers made;
  for (Operation* op : behindCopies(func)) {
    auto item = dyn_cast<ItemOp>(op);
    if (!item) continue;
    std::optional<LaneNumber> number = numberOf(item);
    if (!number) continue;
    item.replaceAllUsesWith(number->number);
    made.push_back(*number);
  }
  return made;
}

void keepNumbers(const LaneNumbers& numbers) {
  for (const LaneNumber& made : numbers) {
    ItemOp item = made.before;
    Operation* reduce = item.getSource().getDefiningOp();
    item->erase();
    if (reduce->use_empty()) reduce->erase();
  }
}

void dropNumbers(const LaneNumbers& numbers) {
  for (const LaneNumber& made : numbers) {
    ItemOp item = made.before;
    BallotOp found = made.found;
    Value number = made.number;
    number.replaceAllUsesWith(item.getResult());
    if (number != found.getBits()) number.getDefiningOp()->erase();
    found->erase();
  }
}

}  // namespace tile::ir
