// look_up_chosen.cpp - selecting one element, or one row, of a tile by a sum over a mask becomes a lookup.
// Before: sum(where(place == b, x, 0)) in a loop that computes b but not x (the box with the best score, a pivot row,
//         the coordinates of a parent): every thread selects, and lanes and warps reduce.
// After:  take(x + 0, b), and 0 where b is no index of x. GPUs copy x + 0 to shared memory in front of the loop
//         (gpu/order/take_slices.cpp), so that the lookup needs neither a barrier nor a reduction.
//
// A loop that carries x and replaces row r of it in iteration r (a substitution: row r from itself and those above)
// finds in row r what it began with: no iteration before this one wrote to it. So the lookup is in that.
//
// The result is the same: a sum of one element and zeros is that element. Of -0 and 0 it is 0, which is why 0 is added to
// floats, to all of them in front of the loop; where what is chosen beside the element is -0 (or the numbers are
// integers) nothing is added.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tiles.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
#define GEN_PASS_DEF_LOOKUPCHOSEN
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

bool adds(ReduceOp reduce) {
  Block& block = reduce.getCombiner().front();
  if (reduce.getNumResults() != 1 || block.getOperations().size() != 2) return false;
  Operation& op = block.front();
  return isa<arith::AddFOp, arith::AddIOp>(op) && op.getOperand(0) != op.getOperand(1) &&
         llvm::all_of(op.getOperands(), [&](Value v) { return llvm::is_contained(block.getArguments(), v); });
}

/// The zero, of whatever sign, that all elements of a constant tile are; null: they are not.
TypedAttr zeroOf(Value tile) {
  SplatElementsAttr splat;
  if (!matchPattern(tile, m_Constant(&splat))) return {};
  const auto element = splat.getSplatValue<TypedAttr>();
  if (auto number = dyn_cast<FloatAttr>(element)) return number.getValue().isZero() ? element : TypedAttr();
  return isa<IntegerAttr>(element) && cast<IntegerAttr>(element).getValue().isZero() ? element : TypedAttr();
}

/// 0, 1, .. along the only axis the tile has.
bool countsPlaces(Value tile) {
  while (auto reshape = tile.getDefiningOp<ReshapeOp>()) tile = reshape.getSource();
  auto iota = tile.getDefiningOp<IotaOp>();
  return iota && iota.getStart() == 0;
}

/// The number that is in every element: a scalar, or a tile of one element.
Value oneNumber(Value tile) {
  if (auto splat = tile.getDefiningOp<SplatOp>()) return splat.getValue();
  auto broadcast = tile.getDefiningOp<BroadcastOp>();
  if (broadcast && cast<RankedTensorType>(broadcast.getSource().getType()).getNumElements() == 1)
    return broadcast.getSource();
  return {};
}

/// A tile of the number: a scalar, or a tile of one element.
Value everywhere(OpBuilder& b, Location loc, RankedTensorType type, Value number) {
  auto tile = dyn_cast<RankedTensorType>(number.getType());
  if (!tile) return SplatOp::create(b, loc, type, number);
  const auto one = type.clone(SmallVector<int64_t>(static_cast<size_t>(type.getRank()), 1));
  if (tile != one) number = ReshapeOp::create(b, loc, one, number);
  return type == one ? number : BroadcastOp::create(b, loc, type, number).getResult();
}

/// The comparison of an axis' places with a number, whose result is, perhaps for all lines, the condition.
arith::CmpIOp comparisonAlong(int64_t axis, Value condition) {
  if (auto broadcast = condition.getDefiningOp<BroadcastOp>()) {
    condition = broadcast.getSource();
    const auto from = cast<RankedTensorType>(condition.getType());
    if (from.getDimSize(axis) != broadcast.getType().getDimSize(axis)) return {};
  }
  const auto type = cast<RankedTensorType>(condition.getType());
  const bool isLine = type.getNumElements() == type.getDimSize(axis) && type.getNumElements() > 1;
  while (auto reshape = condition.getDefiningOp<ReshapeOp>()) condition = reshape.getSource();
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  return compare && compare.getPredicate() == arith::CmpIPredicate::eq && isLine ? compare : arith::CmpIOp();
}

/// What the loop began with, if x is carried and every iteration replaces just what it chooses, the places of its own
/// number.
Value unwritten(Value x, Value chosen, Value place, scf::ForOp loop) {
  auto carried = dyn_cast<BlockArgument>(x);
  if (!carried || carried.getOwner() != loop.getBody() || place != loop.getInductionVar()) return {};
  auto next = loop.getTiedLoopYieldedValue(carried)->get().getDefiningOp<arith::SelectOp>();
  if (!next || next.getCondition() != chosen || next.getFalseValue() != x) return {};
  return loop.getTiedLoopInit(carried)->get();
}

class LookUpChosenPass : public impl::LookUpChosenBase<LookUpChosenPass> {
  void runOnOperation() override {
    SmallVector<ReduceOp> sums;
    getOperation().walk([&](ReduceOp reduce) {
      if (adds(reduce)) sums.push_back(reduce);
    });
    DenseMap<Value, int64_t> tables;
    int64_t bytes = 0;
    for (ReduceOp sum : sums) lookUp(sum, tables, bytes);
  }

  static void lookUp(ReduceOp sum, DenseMap<Value, int64_t>& tables, int64_t& bytes) {
    // Of shared memory; take_slices.cpp has room for more.
    constexpr int64_t kMostBytes = 24 << 10, kLargest = 16 << 10;
    auto select = sum.getSources()[0].getDefiningOp<arith::SelectOp>();
    auto loop = sum->getParentOfType<LoopLikeOpInterface>();
    const TypedAttr zero = select ? zeroOf(select.getFalseValue()) : TypedAttr();
    if (!zero || !loop || !isa<scf::ForOp, scf::WhileOp>(loop)) return;
    const auto axis = static_cast<int64_t>(sum.getAxis());
    if (!isa<RankedTensorType>(select.getCondition().getType())) return;
    auto compare = comparisonAlong(axis, select.getCondition());
    if (!compare) return;
    const bool first = countsPlaces(compare.getLhs());
    if (!first && !countsPlaces(compare.getRhs())) return;
    const Value place = oneNumber(first ? compare.getRhs() : compare.getLhs());
    if (!place || !getElementTypeOrSelf(place.getType()).isInteger(32)) return;
    Value x = select.getTrueValue();
    if (!loop.isDefinedOutsideOfLoop(x)) {
      auto counted = dyn_cast<scf::ForOp>(loop.getOperation());
      x = counted ? unwritten(x, select.getCondition(), place, counted) : Value();
      if (!x) return;
    }
    const auto type = cast<RankedTensorType>(x.getType());
    constexpr int64_t kFewRows = 4;  // a thread that has them all chooses as quickly
    if (type.getNumElements() != type.getDimSize(axis) && type.getDimSize(axis) <= kFewRows) return;
    if (int64_t& table = tables[x]; !table) {
      const int64_t size = type.getNumElements() * std::max(type.getElementTypeBitWidth() / 8, 1u);
      if (size > kLargest || bytes + size > kMostBytes) return void(tables.erase(x));
      bytes += table = size;
    }

    OpBuilder b(sum);
    const Location loc = sum.getLoc();
    const auto line = cast<RankedTensorType>(sum.getResult(0).getType());
    const auto places = RankedTensorType::get(line.getShape(), b.getI32Type());
    const Value at = everywhere(b, loc, places, place);
    const Value end = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(places, b.getI32IntegerAttr(static_cast<int32_t>(type.getDimSize(axis)))));
    const Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, end);
    if (auto number = dyn_cast<FloatAttr>(zero); number && !number.getValue().isNegative()) {
      OpBuilder front(sum.getContext());
      front.setInsertionPointAfterValue(x);
      x = arith::AddFOp::create(front, loc, x,
                                arith::ConstantOp::create(front, loc, type, DenseElementsAttr::get(type, zero)));
    }
    const Value taken = TakeOp::create(b, loc, line, x, at, static_cast<uint32_t>(axis));
    const Value none = arith::ConstantOp::create(b, loc, line, DenseElementsAttr::get(line, zero));
    sum.getResult(0).replaceAllUsesWith(arith::SelectOp::create(b, loc, inside, taken, none).getResult());
    sum.erase();
  }
};

}  // namespace
}  // namespace tile::ir
