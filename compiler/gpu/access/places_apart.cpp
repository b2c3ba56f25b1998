// places_apart.cpp - see places_apart.h. Everything is computed exactly, in 64 bits; where the program computes in 32
// the condition says, too, that its numbers do not.
#include "compiler/gpu/access/places_apart.h"

#include "compiler/dialect/dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

class Places {
 public:
  explicit Places(scf::ForOp loop) : loop_(loop), b_(loop) {}

  Value meet(Value pointer, Value offsets, Value mask) {
    // The pointer in the first iteration, in the last one at most, and how far it moves with the counter.
    const Value low = wide(loop_.getLowerBound()), high = wide(loop_.getUpperBound());
    Value moved = number(0), carried = number(0);
    if (!low || !high) return {};
    while (!loop_.isDefinedOutsideOfLoop(pointer)) {
      if (auto arg = dyn_cast<BlockArgument>(pointer)) {  // it comes round with something added
        const Value by = addedTo(arg);
        if (!by) return {};
        carried = make<arith::AddIOp>(carried, by);
        pointer = loop_.getTiedLoopInit(arg)->get();
        continue;
      }
      auto add = pointer.getDefiningOp<PtrAddOp>();
      if (!add) return {};
      const Value by = add.getOffset();
      const Value first = at(by, low), last = at(by, high), zero = at(by, number(0)), one = at(by, number(1));
      if (!first || !last || !zero || !one) return {};
      mustFit(by.getType(), first), mustFit(by.getType(), last);
      moved = make<arith::AddIOp>(moved, make<arith::SubIOp>(one, zero));
      pointer = add.getPtr();
    }
    std::optional<Reach> reach = Reach{number(0), number(0)};
    if (offsets) {
      if (!loop_.isDefinedOutsideOfLoop(offsets)) return {};
      if (mask) limitsOf(mask);
      reach = reachOf(offsets, /*products=*/0);
      if (!reach) return {};
      mustFit(getElementTypeOrSelf(offsets.getType()), reach->low);
      mustFit(getElementTypeOrSelf(offsets.getType()), reach->high);
    }
    const Value step = make<arith::AddIOp>(make<arith::MulIOp>(moved, wide(loop_.getStep())), carried);
    const Value width = make<arith::SubIOp>(reach->high, reach->low);
    const Value distance = make<arith::MaxSIOp>(step, make<arith::SubIOp>(number(0), step));
    Value meet = compare(arith::CmpIPredicate::sle, distance, width);
    for (Value wrong : doNotFit_) meet = make<arith::OrIOp>(meet, wrong);
    return meet;
  }

 private:
  /// The smallest and the largest of a tile's elements that a mask lets through, or numbers beyond them.
  struct Reach {
    Value low, high;
  };
  struct Limit {
    Value tile, last;  ///< elements that count are no more than `last`
  };

  /// What an iteration adds to a pointer that the loop carries; null: it does something else.
  Value addedTo(BlockArgument arg) {
    if (arg.getOwner() != loop_.getBody() || arg == loop_.getInductionVar()) return {};
    Value added = number(0);
    for (Value next = loop_.getTiedLoopYieldedValue(arg)->get(); next != arg;) {
      auto add = next.getDefiningOp<PtrAddOp>();
      const Value by = add ? wide(add.getOffset()) : Value();
      if (!by) return {};
      added = make<arith::AddIOp>(added, by);
      next = add.getPtr();
    }
    return added;
  }

  template <class Op>
  Value make(Value x, Value y) {
    return b_.createOrFold<Op>(loop_.getLoc(), x, y);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return b_.createOrFold<arith::CmpIOp>(loop_.getLoc(), predicate, x, y);
  }
  Value number(int64_t n) { return arith::ConstantOp::create(b_, loop_.getLoc(), b_.getI64IntegerAttr(n)); }
  /// A scalar from outside the loop, in 64 bits.
  Value wide(Value x) {
    auto type = dyn_cast<IntegerType>(x.getType());
    if (!type || type.getWidth() > 64 || type.getWidth() < 16 || !loop_.isDefinedOutsideOfLoop(x)) return {};
    return type.getWidth() == 64 ? x : b_.createOrFold<arith::ExtSIOp>(loop_.getLoc(), b_.getI64Type(), x);
  }
  /// Sums and products of fewer than 64 bits are right if the whole is in their range. What is read as it is always is.
  void mustFit(Type type, Value x) {
    if (type.getIntOrFloatBitWidth() >= 64 || isa_and_nonnull<arith::ExtSIOp>(x.getDefiningOp())) return;
    const Range all = fullRange(type.getIntOrFloatBitWidth());
    doNotFit_.push_back(compare(arith::CmpIPredicate::slt, x, number(all.min)));
    doNotFit_.push_back(compare(arith::CmpIPredicate::sgt, x, number(all.max)));
  }

  /// A scalar of the loop's body for a value of its counter; null: it depends on something else that changes. Of 32
  /// bits two factors are known to fit 64.
  Value at(Value x, Value counter, int products = 0) {
    if (--steps_ < 0) return {};
    if (x == loop_.getInductionVar()) return counter;
    if (loop_.isDefinedOutsideOfLoop(x)) return wide(x);
    Operation* op = x.getDefiningOp();
    if (auto extended = dyn_cast_or_null<arith::ExtSIOp>(op)) {
      const Value inner = at(extended.getIn(), counter, products);
      if (inner) mustFit(extended.getIn().getType(), inner);
      return inner;
    }
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return {};
    const bool multiplies = isa<arith::MulIOp>(op);
    if (multiplies && products == 1) return {};
    const Value left = at(op->getOperand(0), counter, products + multiplies);
    const Value right = left ? at(op->getOperand(1), counter, products + multiplies) : Value();
    // The counter times itself does not move evenly.
    if (!right || (multiplies && !loop_.isDefinedOutsideOfLoop(op->getOperand(0)) &&
                   !loop_.isDefinedOutsideOfLoop(op->getOperand(1))))
      return {};
    if (multiplies) return make<arith::MulIOp>(left, right);
    return isa<arith::AddIOp>(op) ? make<arith::AddIOp>(left, right) : make<arith::SubIOp>(left, right);
  }

  /// Comparisons with numbers that all have to hold.
  void limitsOf(Value mask) {
    Operation* op = mask.getDefiningOp();
    if (auto both = dyn_cast_or_null<arith::AndIOp>(op)) {
      limitsOf(both.getLhs());
      limitsOf(both.getRhs());
    } else if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
      limitsOf(broadcast.getSource());
    } else if (auto test = dyn_cast_or_null<arith::CmpIOp>(op)) {
      using P = arith::CmpIPredicate;
      auto splat = test.getRhs().getDefiningOp<SplatOp>();
      if (!splat || (test.getPredicate() != P::slt && test.getPredicate() != P::sle)) return;
      const Value limit = wide(splat.getValue());
      if (limit)
        limits_.push_back(
            {test.getLhs(), test.getPredicate() == P::sle ? limit : make<arith::SubIOp>(limit, number(1))});
    }
  }

  std::optional<Reach> reachOf(Value tile, int products) {
    std::optional<Reach> reach = unlimited(tile, products);
    if (!reach) return reach;
    for (const Limit& limit : limits_)
      if (limit.tile == tile) reach->high = make<arith::MinSIOp>(reach->high, limit.last);
    return reach;
  }

  std::optional<Reach> unlimited(Value tile, int products) {
    if (--steps_ < 0) return std::nullopt;
    if (isa<IntegerType>(tile.getType())) {
      const Value x = wide(tile);
      return x ? std::optional<Reach>({x, x}) : std::nullopt;
    }
    DenseElementsAttr constant;
    if (matchPattern(tile, m_Constant(&constant)) && constant.isSplat()) {
      const Value x = number(constant.getSplatValue<APInt>().getSExtValue());
      return Reach{x, x};
    }
    Operation* op = tile.getDefiningOp();
    if (auto iota = dyn_cast_or_null<IotaOp>(op)) {
      const auto start = static_cast<int64_t>(iota.getStart());
      return Reach{number(start), number(start + iota.getType().getNumElements() - 1)};
    }
    if (auto splat = dyn_cast_or_null<SplatOp>(op)) return unlimited(splat.getValue(), products);
    if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) return reachOf(broadcast.getSource(), products);
    if (auto reshape = dyn_cast_or_null<ReshapeOp>(op)) {  // what limits a row does not limit a column
      std::vector<Limit> outside;
      std::swap(outside, limits_);
      auto reach = reachOf(reshape.getSource(), products);
      std::swap(outside, limits_);
      return reach;
    }
    if (auto extended = dyn_cast_or_null<arith::ExtSIOp>(op)) {
      auto inner = reachOf(extended.getIn(), products);
      if (!inner) return inner;
      mustFit(getElementTypeOrSelf(extended.getIn().getType()), inner->low);
      mustFit(getElementTypeOrSelf(extended.getIn().getType()), inner->high);
      return inner;
    }
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) return std::nullopt;
    const bool multiplies = isa<arith::MulIOp>(op);
    if (multiplies && products == 1) return std::nullopt;
    auto left = reachOf(op->getOperand(0), products + multiplies),
         right = reachOf(op->getOperand(1), products + multiplies);
    if (!left || !right) return std::nullopt;
    if (isa<arith::AddIOp>(op))
      return Reach{make<arith::AddIOp>(left->low, right->low), make<arith::AddIOp>(left->high, right->high)};
    if (isa<arith::SubIOp>(op))
      return Reach{make<arith::SubIOp>(left->low, right->high), make<arith::SubIOp>(left->high, right->low)};
    Reach reach;
    for (Value x : {left->low, left->high})
      for (Value y : {right->low, right->high}) {
        const Value product = make<arith::MulIOp>(x, y);
        reach.low = reach.low ? make<arith::MinSIOp>(reach.low, product) : product;
        reach.high = reach.high ? make<arith::MaxSIOp>(reach.high, product) : product;
      }
    return reach;
  }

  scf::ForOp loop_;
  OpBuilder b_;
  int steps_ = 4096;  ///< operations that may still be looked at: sums of sums have 2^depth parts
  std::vector<Limit> limits_;
  SmallVector<Value> doNotFit_;
};

}  // namespace

Value placesMeet(Value pointer, Value offsets, Value mask, scf::ForOp loop) {
  return Places(loop).meet(pointer, offsets, mask);
}

void orderIfMet(scf::ForOp loop, ArrayRef<Meeting> meetings) {
  constexpr size_t kShort = 48;
  const Location loc = loop.getLoc();
  Block& body = *loop.getBody();
  const bool isShort = body.getOperations().size() <= kShort &&
                       llvm::none_of(body, [](Operation& op) { return op.getNumRegions() > 0; });
  OpBuilder b(loop);
  if (!isShort) {
    for (auto [access, meets] : meetings) {
      b.setInsertionPoint(access);
      b.setInsertionPointToStart(scf::IfOp::create(b, loc, meets).thenBlock());
      BarrierOp::create(b, loc);
    }
    return;
  }
  Value any = meetings[0].meets;
  for (const Meeting& meeting : meetings.drop_front()) any = b.createOrFold<arith::OrIOp>(loc, any, meeting.meets);
  auto which = scf::IfOp::create(b, loc, loop.getResultTypes(), any, /*withElseRegion=*/true);
  loop->replaceAllUsesWith(which.getResults());
  IRMapping map;
  b.setInsertionPointToStart(which.thenBlock());
  Operation* ordered = b.clone(*loop, map);
  for (const Meeting& meeting : meetings) {
    b.setInsertionPoint(map.lookup(meeting.access));
    BarrierOp::create(b, loc);
  }
  loop->moveBefore(which.elseBlock(), which.elseBlock()->begin());
  auto yield = [&](Block* block, Operation* from) {
    if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>()) block->back().erase();
    OpBuilder end = OpBuilder::atBlockEnd(block);
    scf::YieldOp::create(end, loc, from->getResults());
  };
  yield(which.thenBlock(), ordered);
  yield(which.elseBlock(), loop);
}

}  // namespace tile::ir
