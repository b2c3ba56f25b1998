// narrowed_gather.cpp - see narrowed_gather.h.
#include "compiler/transforms/narrowed_gather.h"

#include <numeric>

#include "compiler/dialect/tiles.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// Every `step`-th element of tiles along a dim, as operations on smaller tiles.
class EveryOther {
 public:
  EveryOther(OpBuilder& b, const Facts& facts, int64_t step) : b_(b), facts_(facts), step_(step) {}

  /// Null: not to be had without the whole tile. Every tile is made once: sums of sums would be 2^depth operations.
  Value of(Value tile, int64_t dim, int depth = 0) {
    const std::pair key(tile, dim);
    if (auto it = made_.find(key); it != made_.end()) return it->second;
    const Value few = make(tile, dim, depth);
    made_[key] = few;
    return few;
  }

 private:
  Value make(Value tile, int64_t dim, int depth) {
    constexpr int kDeepest = 32;
    if (!isTile(tile)) return tile;  // the condition of a choice
    RankedTensorType type = tileType(tile);
    Operation* op = depth < kDeepest ? tile.getDefiningOp() : nullptr;
    if (!op) return {};
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] /= step_;
    const RankedTensorType small = type.clone(shape);
    DenseElementsAttr constant;
    if (matchPattern(tile, m_Constant(&constant)))
      return constant.isSplat() ? arith::ConstantOp::create(b_, op->getLoc(), constant.resizeSplat(small)) : Value();
    if (auto splat = dyn_cast<SplatOp>(op)) return SplatOp::create(b_, op->getLoc(), small, splat.getValue());
    if (auto iota = dyn_cast<IotaOp>(op)) {
      if (iota.getStart() != 0) return {};
      const Value places = IotaOp::create(b_, op->getLoc(), small, uint64_t{0});
      return arith::MulIOp::create(b_, op->getLoc(), places, number(step_, small, op->getLoc()));
    }
    if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      Value source = broadcast.getSource();
      if (tileType(source).getDimSize(dim) != 1) source = of(source, dim, depth + 1);
      return source ? BroadcastOp::create(b_, op->getLoc(), small, source) : Value();
    }
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      const auto from = sourceDim(tileType(reshape.getSource()).getShape(), type.getShape(), dim);
      const Value source = from ? of(reshape.getSource(), *from, depth + 1) : Value();
      return source ? ReshapeOp::create(b_, op->getLoc(), small, source) : Value();
    }
    if (!op->hasTrait<OpTrait::Elementwise>() || !isPure(op) || op->getNumResults() != 1) return {};
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(of(operand, dim, depth + 1));
      if (!operands.back()) return {};
    }
    if (isa<arith::DivSIOp, arith::DivUIOp>(op))
      if (Value exact = quotient(op, operands)) return exact;
    // Bounds in steps of their own: neighbours that are in bounds together are known to be.
    if (isa<arith::CmpIOp>(op) && llvm::all_of(op->getOperands(), [&](Value v) { return isWhole(v); }))
      if (const Value left = divided(operands[0], step_), right = left ? divided(operands[1], step_) : Value(); right)
        operands = {left, right};
    OperationState state(op->getLoc(), op->getName(), operands, small, op->getAttrs());
    return b_.create(state)->getResult(0);
  }

  Value number(int64_t value, RankedTensorType type, Location loc) {
    const auto attr = DenseElementsAttr::get(type, b_.getIntegerAttr(type.getElementType(), value));
    return arith::ConstantOp::create(b_, loc, attr);
  }

  /// Whether the value's parts can be divided one by one: it is one, or a sum that has not wrapped.
  bool isWhole(Value value) const {
    Value part = value;
    while (isa_and_nonnull<BroadcastOp, ReshapeOp>(part.getDefiningOp())) part = part.getDefiningOp()->getOperand(0);
    return part.getDefiningOp<SplatOp>() || facts_.rangeOf(value).isNonNegative();
  }

  /// The quotient by a constant that divides every part of the dividend; null: it does not.
  Value quotient(Operation* division, ArrayRef<Value> operands) {
    APInt by;
    if (!matchPattern(operands[1], m_ConstantInt(&by)) || !by.isStrictlyPositive() || by.getActiveBits() > 31)
      return {};
    // Without a sign only what has none: the parts are divided with theirs.
    const Value dividend = division->getOperand(0);
    const bool isUnsigned = isa<arith::DivUIOp>(division);
    if (isUnsigned ? !facts_.rangeOf(dividend).isNonNegative() : !isWhole(dividend)) return {};
    return divided(operands[0], by.getSExtValue());
  }
  Value divided(Value dividend, int64_t by) {
    Operation* op = dividend.getDefiningOp();
    if (!op) return {};
    if (auto splat = dyn_cast<SplatOp>(op)) {
      const Value x = splat.getValue();
      if (facts_.divisibility(x) % by != 0) return {};
      const Value d = arith::ConstantOp::create(b_, op->getLoc(), b_.getIntegerAttr(x.getType(), by));
      const Value less = arith::DivSIOp::create(b_, op->getLoc(), x, d);
      return SplatOp::create(b_, op->getLoc(), dividend.getType(), less);
    }
    APInt factor;
    if (matchPattern(dividend, m_ConstantInt(&factor)) && isTile(dividend)) {
      const int64_t value = factor.getSExtValue();
      return value % by == 0 ? number(value / by, tileType(dividend), op->getLoc()) : Value();
    }
    if (isa<arith::MulIOp>(op) && op->getOperand(0).getDefiningOp<IotaOp>() &&
        matchPattern(op->getOperand(1), m_ConstantInt(&factor)) && factor.getSExtValue() % by == 0) {
      const int64_t rest = factor.getSExtValue() / by;
      if (rest == 1) return op->getOperand(0);
      return arith::MulIOp::create(b_, op->getLoc(), op->getOperand(0), number(rest, tileType(dividend), op->getLoc()));
    }
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      const Value source = divided(reshape.getSource(), by);
      return source ? ReshapeOp::create(b_, op->getLoc(), tileType(dividend), source) : Value();
    }
    if (!isa<arith::AddIOp>(op)) return {};
    const Value left = divided(op->getOperand(0), by);
    const Value right = left ? divided(op->getOperand(1), by) : Value();
    return right ? arith::AddIOp::create(b_, op->getLoc(), left, right) : Value();
  }

  OpBuilder& b_;
  const Facts& facts_;
  const int64_t step_;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> made_;  ///< by the whole tile and the dim
};

}  // namespace

int64_t sharedAlong(GatherOp gather, int64_t dim, const Facts& facts) {
  int64_t alike = facts.of(gather.getOffsets()).constancy[dim];
  if (gather.getMask()) alike = std::gcd(alike, facts.of(gather.getMask()).constancy[dim]);
  return alike;
}

std::optional<NarrowedGather> narrowedGather(GatherOp gather, int64_t dim, int64_t alike, const Facts& facts) {
  OpBuilder b(gather);
  EveryOther few(b, facts, alike);
  const Value offsets = few.of(gather.getOffsets(), dim);
  if (!offsets) return std::nullopt;
  const Value mask = gather.getMask() ? few.of(gather.getMask(), dim) : Value();
  if (gather.getMask() && !mask) return std::nullopt;
  const Location loc = gather.getLoc();
  const auto whole = cast<RankedTensorType>(gather.getResult().getType());
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] /= alike;
  auto narrowed =
      GatherOp::create(b, loc, whole.clone(shape), gather.getPtr(), offsets, mask, Value(), gather.getCache());
  shape.insert(shape.begin() + dim + 1, 1);
  Value tile = ReshapeOp::create(b, loc, whole.clone(shape), narrowed.getResult());
  shape[dim + 1] = alike;
  tile = BroadcastOp::create(b, loc, whole.clone(shape), tile);
  return NarrowedGather{narrowed, ReshapeOp::create(b, loc, whole, tile)};
}

}  // namespace tile::ir
