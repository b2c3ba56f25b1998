// shift_by_takes.cpp - tiles that are shifted along an axis become lookups in the original tile.
// Before: a cat of pieces of one tile (or the tile itself) and of fillings: constants, or lines as wide as the tile (a
//         stencil's neighbours, zeros in front of a polynomial, rows that wrap around).
// After:  take(tile, index of each element), and the fillings where they belong.
//
// A cat puts every piece into shared memory and reads the whole back, as did the op that cut the piece. Takes whose
// indices are constants are renamed registers or shuffles, and several takes of one tile share one copy of it.
#include "compiler/dialect/dialect.h"
#include "compiler/transforms/transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

namespace tile::ir {
#define GEN_PASS_DEF_SHIFTBYTAKES
#include "compiler/transforms/passes.h.inc"
using namespace mlir;

namespace {

/// Elements [start, start + size) of a cat along its axis: those of the tile from `offset` on, or a filling.
struct Part {
  int64_t start, size;
  int64_t offset = 0;
  Value filling = {};
};

class ShiftByTakesPass : public impl::ShiftByTakesBase<ShiftByTakesPass> {
  void runOnOperation() override {
    SmallVector<CatOp> cats;
    getOperation().walk([&](CatOp cat) { cats.push_back(cat); });
    // What contains other cats first: they disappear in it.
    for (CatOp cat : llvm::reverse(cats)) shift(cat);
  }

  static bool isEverywhereAlike(Value tile) {
    SplatElementsAttr splat;
    return tile.getDefiningOp<SplatOp>() || matchPattern(tile, m_Constant(&splat));
  }

  static void addLeaves(CatOp cat, SmallVector<Value>& leaves) {
    for (Value source : cat.getSources())
      if (auto inner = source.getDefiningOp<CatOp>(); inner && inner.getAxis() == cat.getAxis())
        addLeaves(inner, leaves);
      else
        leaves.push_back(source);
  }

  /// The tile that the box is cut from, whole along all other axes, or itself.
  static std::pair<Value, int64_t> originOf(Value box, int64_t axis) {
    auto extract = box.getDefiningOp<ExtractOp>();
    if (!extract) return {box, 0};
    SmallVector<int64_t> whole(extract.getSource().getType().getShape());
    whole[axis] = extract.getResult().getType().getDimSize(axis);
    if (extract.getResult().getType().getShape() != ArrayRef(whole)) return {box, 0};
    return {extract.getSource(), extract.getOffsets()[axis]};
  }

  static void shift(CatOp cat) {
    if (cat->use_empty()) return;
    constexpr size_t kMostPieces = 2, kMostFillings = 4;
    const int64_t axis = cat.getAxis();
    auto type = cast<RankedTensorType>(cat.getResult().getType());
    if (isa<PtrType>(type.getElementType())) return;
    SmallVector<Value> leaves;
    addLeaves(cat, leaves);
    // Pieces of one shape: layouts give each a part of the threads' registers.
    if (llvm::all_of(leaves, [&](Value leaf) { return leaf.getType() == leaves[0].getType(); })) return;
    SmallVector<Part> parts;
    Value tile;
    size_t pieces = 0;
    int64_t start = 0;
    for (Value leaf : leaves) {
      Part part{start, cast<RankedTensorType>(leaf.getType()).getDimSize(axis)};
      start += part.size;
      auto [origin, offset] = originOf(leaf, axis);
      if (isEverywhereAlike(leaf)) {
        part.filling = leaf;
      } else if (part.size > 1 && (!tile || tile == origin)) {
        tile = origin, part.offset = offset, ++pieces;
      } else if (tile == origin) {
        part.offset = offset, ++pieces;
      } else if (part.size == 1) {
        part.filling = leaf;
      } else {
        return;
      }
      parts.push_back(part);
    }
    if (!tile) return;
    // A line of the tile that came in front of what told which tile it is.
    for (Part& part : parts)
      if (auto [origin, offset] = originOf(part.filling ? part.filling : tile, axis); part.filling && origin == tile)
        part.filling = {}, part.offset = offset, ++pieces;
    if (pieces > kMostPieces || parts.size() - pieces > kMostFillings) return;
    replace(cat, type, axis, tile, parts);
  }

  static void replace(CatOp cat, RankedTensorType type, int64_t axis, Value tile, ArrayRef<Part> parts) {
    OpBuilder b(cat);
    const Location loc = cat.getLoc();
    const int64_t count = type.getDimSize(axis), last = cast<RankedTensorType>(tile.getType()).getDimSize(axis) - 1;
    SmallVector<int64_t> line(type.getRank(), 1);
    line[axis] = count;
    auto of = [&](ArrayRef<int64_t> shape, Type element) { return RankedTensorType::get(shape, element); };
    const auto places = of(line, b.getI32Type());
    auto number = [&](int64_t n) -> Value {
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(places, b.getI32IntegerAttr(int32_t(n))));
    };
    auto isBelow = [&](Value at, int64_t n) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, number(n));
    };
    const Value iota = IotaOp::create(b, loc, of({count}, b.getI32Type()), 0);
    const Value at = ReshapeOp::create(b, loc, places, iota);
    Value from;
    for (const Part& part : parts) {
      if (part.filling) continue;
      Value here = arith::AddIOp::create(b, loc, at, number(part.offset - part.start));
      from = from ? arith::SelectOp::create(b, loc, isBelow(at, part.start), from, here) : here;
    }
    from = arith::MaxSIOp::create(b, loc, from, number(0));
    from = arith::MinSIOp::create(b, loc, from, number(last));
    auto whole = [&](Value x) -> Value {
      auto small = cast<RankedTensorType>(x.getType());
      if (small.getShape() == type.getShape()) return x;
      return BroadcastOp::create(b, loc, of(type.getShape(), small.getElementType()), x);
    };
    Value result = TakeOp::create(b, loc, type, tile, whole(from), static_cast<uint32_t>(axis));
    for (const Part& part : parts) {
      if (!part.filling) continue;
      Value filling;
      SplatElementsAttr splat;
      if (matchPattern(part.filling, m_Constant(&splat)))
        filling = arith::ConstantOp::create(b, loc, splat.resizeSplat(type));
      else if (auto op = part.filling.getDefiningOp<SplatOp>())
        filling = SplatOp::create(b, loc, type, op.getValue());
      else
        filling = whole(part.filling);
      Value outside;  // at < start or at >= end
      if (part.start > 0) outside = isBelow(at, part.start);
      if (part.start + part.size < count) {
        Value behind = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, at, number(part.start + part.size));
        outside = outside ? arith::OrIOp::create(b, loc, outside, behind) : behind;
      }
      result = arith::SelectOp::create(b, loc, whole(outside), result, filling);
    }
    cat.getResult().replaceAllUsesWith(result);
    cat.erase();
  }
};

}  // namespace
}  // namespace tile::ir
