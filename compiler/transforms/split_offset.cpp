// split_offset.cpp - see the header. Walks down the index expression through adds, multiplications by a scalar, and the
// shape operations; whatever else it meets is a leaf.
#include "compiler/transforms/split_offset.h"

#include <functional>

#include "compiler/dialect/dialect.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
using namespace mlir;

namespace {

unsigned widthOf(Value v) { return cast<IntegerType>(getElementTypeOrSelf(v.getType())).getWidth(); }

bool fits32(Range r) { return wrapped(r, 32) == r; }

/// The scalar in every element of the tile, when its definition shows one; constants as an attribute.
Value splatScalar(Value tile) {
  if (auto splat = tile.getDefiningOp<SplatOp>()) return splat.getValue();
  if (auto broadcast = tile.getDefiningOp<BroadcastOp>()) return splatScalar(broadcast.getSource());
  if (auto reshape = tile.getDefiningOp<ReshapeOp>()) return splatScalar(reshape.getSource());
  return {};
}
std::optional<int64_t> splatConstant(Value tile) {
  DenseIntElementsAttr attr;
  if (matchPattern(tile, m_Constant(&attr)) && attr.isSplat()) return attr.getSplatValue<APInt>().getSExtValue();
  return std::nullopt;
}
bool isSplat(Value tile) { return splatScalar(tile) || splatConstant(tile); }

int64_t wrappingSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrappingProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

/// A sum of 64 bits as what is not known while compiling (null: nothing) and the number added to it.
std::pair<Value, int64_t> constantApart(Value sum) {
  APInt number;
  if (matchPattern(sum, m_ConstantInt(&number))) return {{}, number.getSExtValue()};
  auto add = sum.getDefiningOp<arith::AddIOp>();
  if (add && matchPattern(add.getRhs(), m_ConstantInt(&number))) return {add.getLhs(), number.getSExtValue()};
  return {sum, 0};
}

}  // namespace

bool OffsetSplitter::isUniform(Value offset) {
  llvm::DenseSet<Value> seen;  // and found uniform: anything else ends the search
  std::function<bool(Value)> visit = [&](Value v) {
    if (isSplat(v) || !seen.insert(v).second) return true;
    if (widthOf(v) < 32) return false;
    Operation* op = v.getDefiningOp();
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) return visit(op->getOperand(0)) && visit(op->getOperand(1));
    if (auto mul = dyn_cast_or_null<arith::MulIOp>(op)) {
      if (isSplat(mul.getRhs())) return visit(mul.getLhs());
      return isSplat(mul.getLhs()) && visit(mul.getRhs());
    }
    return isa_and_nonnull<BroadcastOp, ReshapeOp, TransOp, arith::ExtSIOp>(op) && visit(op->getOperand(0));
  };
  return visit(offset);
}

Value OffsetSplitter::constant(int64_t value, Type type) {
  TypedAttr attr = builder_.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto tensor = dyn_cast<RankedTensorType>(type)) attr = DenseElementsAttr::get(tensor, ArrayRef<Attribute>(attr));
  return arith::ConstantOp::create(builder_, location_, attr);
}

Value OffsetSplitter::toI64(Value v) {
  if (widthOf(v) == 64) return v;
  Type type = builder_.getI64Type();
  if (auto tensor = dyn_cast<RankedTensorType>(v.getType())) type = tensor.clone(type);
  return builder_.createOrFold<arith::ExtSIOp>(location_, type, v);
}

// Constants stay outermost: what differs by one is then seen to (the fields of a record).
Value OffsetSplitter::addScalars(Value a, Value b) {
  if (!a || !b) return a ? a : b;
  const auto [x, m] = constantApart(a);
  const auto [y, n] = constantApart(b);
  if ((!x && !y) || (!m && !n)) return builder_.createOrFold<arith::AddIOp>(location_, a, b);
  Value sum = x && y ? builder_.createOrFold<arith::AddIOp>(location_, x, y) : x ? x : y;
  return builder_.createOrFold<arith::AddIOp>(location_, sum, constant(wrappingSum(m, n), sum.getType()));
}

Value OffsetSplitter::multiplyScalars(Value a, Value b) {
  const auto [x, m] = constantApart(a);
  const auto [y, n] = constantApart(b);
  if (!x || y || !m) return builder_.createOrFold<arith::MulIOp>(location_, a, b);
  Value product = builder_.createOrFold<arith::MulIOp>(location_, x, b);
  return builder_.createOrFold<arith::AddIOp>(location_, product, constant(wrappingProduct(m, n), product.getType()));
}

Value OffsetSplitter::materialize(const OffsetTile& offset, ArrayRef<int64_t> shape, unsigned bits) {
  if (!offset) return constant(0, RankedTensorType::get(shape, builder_.getIntegerType(bits)));
  return bits == 64 ? toI64(offset.tile) : offset.tile;
}

/// a op b where the result has to be right as a number of `bits`: in 32 bits if both sides have no more and the exact
/// range fits, or if the kernel itself computes in 32 bits.
OffsetTile OffsetSplitter::binary(Operation* op, const OffsetTile& a, const OffsetTile& b, unsigned bits) {
  const Range range = isa<arith::MulIOp>(op)   ? mulRange(a.range, b.range, 64)
                      : isa<arith::SubIOp>(op) ? subRange(a.range, b.range, 64)
                                               : addRange(a.range, b.range, 64);
  const bool narrow = widthOf(a.tile) <= 32 && widthOf(b.tile) <= 32 && (bits <= 32 || fits32(range));
  Value x = narrow ? a.tile : toI64(a.tile), y = narrow ? b.tile : toI64(b.tile);
  Value r = isa<arith::MulIOp>(op)   ? builder_.createOrFold<arith::MulIOp>(location_, x, y)
            : isa<arith::SubIOp>(op) ? builder_.createOrFold<arith::SubIOp>(location_, x, y)
                                     : builder_.createOrFold<arith::AddIOp>(location_, x, y);
  return {r, narrow ? wrapped(range, 32) : range};
}

OffsetTile OffsetSplitter::add(OffsetTile a, OffsetTile b) {
  if (!a || !b) return a ? a : b;
  const Range range = addRange(a.range, b.range, 64);
  const bool narrow = widthOf(a.tile) <= 32 && widthOf(b.tile) <= 32 && fits32(range);
  Value x = narrow ? a.tile : toI64(a.tile), y = narrow ? b.tile : toI64(b.tile);
  return {builder_.createOrFold<arith::AddIOp>(location_, x, y), range};
}

OffsetTile OffsetSplitter::leaf(Value offset) {
  Range range = facts_.rangeOf(offset);
  if (widthOf(offset) == 1) range = {-1, 0};  // offsets are signed
  if (widthOf(offset) < 32)
    offset = builder_.createOrFold<arith::ExtSIOp>(
        location_, cast<RankedTensorType>(offset.getType()).clone(builder_.getI32Type()), offset);
  return {offset, range};
}

template <class MakeOp>
OffsetTile OffsetSplitter::reshape(OffsetTile tile, MakeOp&& make) {
  if (tile) tile.tile = make(tile.tile);
  return tile;
}

SplitOffset OffsetSplitter::split(Value offset) {
  if (auto it = split_.find(offset); it != split_.end()) return it->second;
  const SplitOffset parts = findParts(offset);
  split_[offset] = parts;
  return parts;
}

SplitOffset OffsetSplitter::findParts(Value offset) {
  const unsigned bits = widthOf(offset);
  if (Value scalar = splatScalar(offset)) return {toI64(scalar), {}};
  if (auto value = splatConstant(offset)) return {*value ? constant(*value, builder_.getI64Type()) : Value(), {}};

  if (bits < 32) return {{}, leaf(offset)};  // narrow arithmetic wraps early: keep it as it is

  Operation* op = offset.getDefiningOp();
  auto typeLike = [&](Value tile) {
    return cast<RankedTensorType>(offset.getType()).clone(getElementTypeOrSelf(tile.getType()));
  };
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    SplitOffset a = split(op->getOperand(0)), b = split(op->getOperand(1));
    Value scalar = addScalars(a.scalar, b.scalar);
    if (isa<arith::SubIOp>(op) && b.scalar)
      scalar = builder_.createOrFold<arith::SubIOp>(location_, a.scalar ? a.scalar : constant(0, builder_.getI64Type()),
                                                    b.scalar);
    if (!b.rest) return {scalar, a.rest};
    if (!a.rest) {
      if (isa<arith::AddIOp>(op)) return {scalar, b.rest};
      a.rest = {constant(0, b.rest.tile.getType()), {0, 0}};
    }
    return {scalar, binary(op, a.rest, b.rest, bits)};
  }
  if (auto mul = dyn_cast_or_null<arith::MulIOp>(op); mul && (isSplat(mul.getLhs()) || isSplat(mul.getRhs()))) {
    Value factorTile = isSplat(mul.getRhs()) ? mul.getRhs() : mul.getLhs();
    SplitOffset a = split(isSplat(mul.getRhs()) ? mul.getLhs() : mul.getRhs());
    Value factor = split(factorTile).scalar;  // null: times zero
    if (!factor) return {};
    SplitOffset r;
    if (a.scalar) r.scalar = multiplyScalars(a.scalar, factor);
    if (a.rest) r.rest = binary(op, a.rest, {factorTile, facts_.rangeOf(factorTile)}, bits);
    return r;
  }
  if (auto ext = dyn_cast_or_null<arith::ExtSIOp>(op)) return split(ext.getIn());
  if (auto broadcast = dyn_cast_or_null<BroadcastOp>(op)) {
    SplitOffset a = split(broadcast.getSource());
    return {a.scalar, reshape(a.rest, [&](Value v) {
              return BroadcastOp::create(builder_, location_, typeLike(v), v).getResult();
            })};
  }
  if (auto shape = dyn_cast_or_null<ReshapeOp>(op)) {
    SplitOffset a = split(shape.getSource());
    return {a.scalar, reshape(a.rest, [&](Value v) {
              return ReshapeOp::create(builder_, location_, typeLike(v), v).getResult();
            })};
  }
  if (auto trans = dyn_cast_or_null<TransOp>(op)) {
    SplitOffset a = split(trans.getSource());
    return {a.scalar, reshape(a.rest, [&](Value v) {
              return TransOp::create(builder_, location_, typeLike(v), v, trans.getPermutation()).getResult();
            })};
  }
  return {{}, leaf(offset)};
}

}  // namespace tile::ir
