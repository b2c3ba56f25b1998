// canonicalize.cpp - folds and rewrites that make the same kernel smaller: constant masks, shapes that change nothing,
// shape operations on splats.
#include "compiler/dialect/dialect.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

namespace tile::ir {
using namespace mlir;

namespace {

/// The value of a mask all of whose elements are one constant.
std::optional<bool> constantMask(Value mask) {
  Attribute value;
  if (!mask || !matchPattern(mask, m_Constant(&value))) return std::nullopt;
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (!dense.isSplat()) return std::nullopt;
    value = dense.getSplatValue<Attribute>();
  }
  auto integer = dyn_cast<IntegerAttr>(value);
  if (!integer) return std::nullopt;
  return !integer.getValue().isZero();
}

/// Positive zeros: what lanes without `other` read anyway.
bool isZero(Value v) {
  Attribute value;
  if (!v || !matchPattern(v, m_Constant(&value))) return false;
  if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    if (!dense.isSplat()) return false;
    value = dense.getSplatValue<Attribute>();
  }
  if (auto f = dyn_cast<FloatAttr>(value)) return f.getValue().isPosZero();
  auto i = dyn_cast<IntegerAttr>(value);
  return i && i.getValue().isZero();
}

/// reshape, broadcast, trans and extract of a splat are splats.
template <class Op>
LogicalResult reshapeSplat(Op op, PatternRewriter& rewriter) {
  auto splat = op.getSource().template getDefiningOp<SplatOp>();
  if (!splat) return failure();
  rewriter.replaceOpWithNewOp<SplatOp>(op, op.getResult().getType(), splat.getValue());
  return success();
}

/// The dims of `wide` that are left when dims of size 1 go until it is `narrow`; nothing when that is not the
/// difference. Of neighbours of size 1 the last ones stay.
std::optional<SmallVector<int>> dimsLeftOf(Type wide, Type narrow) {
  auto from = dyn_cast<RankedTensorType>(wide), to = dyn_cast<RankedTensorType>(narrow);
  if (!from || !to || from.getRank() <= to.getRank()) return std::nullopt;
  SmallVector<int> left(to.getRank());
  int64_t next = to.getRank() - 1;
  for (int64_t d = from.getRank() - 1; d >= 0; --d) {
    if (next >= 0 && from.getDimSize(d) == to.getDimSize(next))
      left[next--] = static_cast<int>(d);
    else if (from.getDimSize(d) != 1)
      return std::nullopt;
  }
  if (next >= 0) return std::nullopt;
  return left;
}

/// The view and indices of a box of `boxRank` dims when only its dims `left` stay: those are the view's last dims then,
/// in their order, and all others come first. A view whose dims change places is made where the old one is.
Value viewWithLast(Value view, int64_t boxRank, ArrayRef<int> left, OperandRange indices,
                   SmallVectorImpl<Value>& newIndices, PatternRewriter& rewriter) {
  const int64_t rank = cast<ViewType>(view.getType()).getRank();
  SmallVector<int> order;
  for (int d = 0; d < rank; ++d)
    if (!llvm::is_contained(left, d - (rank - boxRank))) order.push_back(d);
  for (int d : left) order.push_back(d + static_cast<int>(rank - boxRank));
  for (int d : order) newIndices.push_back(indices[d]);
  if (llvm::is_sorted(order)) return view;

  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointAfterValue(view);
  const Location loc = view.getLoc();
  const Type pointer = PtrType::get(view.getContext(), cast<ViewType>(view.getType()).getElementType());
  SmallVector<Value> dims, strides;
  for (int d : order) {
    dims.push_back(ViewDimOp::create(rewriter, loc, rewriter.getI64Type(), view, rewriter.getI32IntegerAttr(d)));
    strides.push_back(ViewStrideOp::create(rewriter, loc, rewriter.getI64Type(), view, rewriter.getI32IntegerAttr(d)));
  }
  Value start = ViewPtrOp::create(rewriter, loc, pointer, view);
  return MakeViewOp::create(rewriter, loc, view.getType(), start, dims, strides);
}

/// A reshape that drops dims of size 1 from a load is the load of a smaller rank, if need be from a view whose dims are
/// in another order: boxes have extent 1 in leading dims that the tile does not have.
LogicalResult dropUnitsOfLoad(ReshapeOp op, PatternRewriter& rewriter) {
  auto load = op.getSource().getDefiningOp<LoadOp>();
  if (!load || !load->hasOneUse()) return failure();
  auto left = dimsLeftOf(load.getType(), op.getType());
  if (!left) return failure();
  rewriter.setInsertionPoint(load);  // a store may stand between the two
  SmallVector<Value> indices;
  const int64_t rank = cast<RankedTensorType>(load.getType()).getRank();
  Value view = viewWithLast(load.getView(), rank, *left, load.getIndices(), indices, rewriter);
  rewriter.replaceOpWithNewOp<LoadOp>(op, op.getType(), view, indices, load.getPadAttr(), load.getCacheAttr());
  rewriter.eraseOp(load);
  return success();
}

/// And one that adds them to what is written can go.
template <class Op>
LogicalResult dropUnitsOfStore(Op op, PatternRewriter& rewriter) {
  auto reshape = op.getValue().template getDefiningOp<ReshapeOp>();
  if (!reshape) return failure();
  auto left = dimsLeftOf(reshape.getType(), reshape.getSource().getType());
  if (!left) return failure();
  SmallVector<Value> indices;
  Value view = viewWithLast(op.getView(), reshape.getType().getRank(), *left, op.getIndices(), indices, rewriter);
  rewriter.modifyOpInPlace(op, [&] {
    op.getValueMutable().assign(reshape.getSource());
    op.getViewMutable().assign(view);
    op.getIndicesMutable().assign(indices);
  });
  return success();
}

/// Along an axis of size 1 there is nothing to combine.
template <class Op>
LogicalResult foldUnitAxis(Op op, SmallVectorImpl<OpFoldResult>& results) {
  if (op.getSources().empty()) return failure();
  auto type = cast<RankedTensorType>(op.getSources().front().getType());
  if (op.getAxis() >= type.getRank() || type.getDimSize(op.getAxis()) != 1) return failure();
  if (op.getSources().getTypes() != op->getResultTypes()) return failure();
  results.assign(op.getSources().begin(), op.getSources().end());
  return success();
}

}  // namespace

LogicalResult GatherOp::canonicalize(GatherOp op, PatternRewriter& rewriter) {
  if (auto mask = constantMask(op.getMask())) {
    if (*mask) {
      rewriter.modifyOpInPlace(op, [&] {
        op.getMaskMutable().clear();
        op.getOtherMutable().clear();
      });
    } else if (op.getOther()) {
      rewriter.replaceOp(op, op.getOther());
    } else {
      rewriter.replaceOpWithNewOp<arith::ConstantOp>(op,
                                                     cast<TypedAttr>(rewriter.getZeroAttr(op.getResult().getType())));
    }
    return success();
  }
  if (!isZero(op.getOther())) return failure();
  rewriter.modifyOpInPlace(op, [&] { op.getOtherMutable().clear(); });
  return success();
}

LogicalResult ScatterOp::canonicalize(ScatterOp op, PatternRewriter& rewriter) {
  auto mask = constantMask(op.getMask());
  if (!mask) return failure();
  if (*mask)
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
  else
    rewriter.eraseOp(op);
  return success();
}

// One tile is put into one after the other: what is made in between is not read.
LogicalResult PutOp::canonicalize(PutOp op, PatternRewriter& rewriter) {
  auto before = op.getInto().getDefiningOp<PutOp>();
  if (op.getWhole()) {
    // What it is put into is read by nobody: any tile of the type does.
    if (op.getInto() == op.getValues().front() || op.getValues().front().getType() != op.getType()) return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getIntoMutable().assign(op.getValues().front()); });
    return success();
  }
  if (!before || !before->hasOneUse() || before->getBlock() != op->getBlock() || before.getAxis() != op.getAxis() ||
      before.getIndices().front().getType() != op.getIndices().front().getType())
    return failure();
  auto both = [](ValueRange first, ValueRange second) {
    SmallVector<Value> all(first);
    all.append(second.begin(), second.end());
    return all;
  };
  rewriter.replaceOpWithNewOp<PutOp>(op, op.getType(), both(before.getValues(), op.getValues()),
                                     both(before.getIndices(), op.getIndices()), before.getInto(), op.getAxis(),
                                     before.getWhole());
  return success();
}

LogicalResult AtomicRmwOp::canonicalize(AtomicRmwOp op, PatternRewriter& rewriter) {
  auto mask = constantMask(op.getMask());
  if (!mask) return failure();
  if (*mask)
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
  else
    rewriter.replaceOp(op, op.getValue());  // undefined where the mask is false
  return success();
}

LogicalResult AtomicCasOp::canonicalize(AtomicCasOp op, PatternRewriter& rewriter) {
  auto mask = constantMask(op.getMask());
  if (!mask) return failure();
  if (*mask)
    rewriter.modifyOpInPlace(op, [&] { op.getMaskMutable().clear(); });
  else
    rewriter.replaceOp(op, op.getExpected());  // undefined where the mask is false
  return success();
}

LogicalResult BroadcastOp::canonicalize(BroadcastOp op, PatternRewriter& rewriter) {
  return reshapeSplat(op, rewriter);
}
LogicalResult ReshapeOp::canonicalize(ReshapeOp op, PatternRewriter& rewriter) {
  return succeeded(reshapeSplat(op, rewriter)) ? success() : dropUnitsOfLoad(op, rewriter);
}
LogicalResult StoreOp::canonicalize(StoreOp op, PatternRewriter& rewriter) { return dropUnitsOfStore(op, rewriter); }
LogicalResult AccumulateOp::canonicalize(AccumulateOp op, PatternRewriter& rewriter) {
  return dropUnitsOfStore(op, rewriter);
}
LogicalResult TransOp::canonicalize(TransOp op, PatternRewriter& rewriter) { return reshapeSplat(op, rewriter); }
LogicalResult ExtractOp::canonicalize(ExtractOp op, PatternRewriter& rewriter) { return reshapeSplat(op, rewriter); }

LogicalResult ReduceOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult>& results) {
  return foldUnitAxis(*this, results);
}
LogicalResult ScanOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult>& results) { return foldUnitAxis(*this, results); }

OpFoldResult ExtractOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType()) return getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return splat.resizeSplat(cast<ShapedType>(getResult().getType()));
  return {};
}

OpFoldResult CatOp::fold(FoldAdaptor) {
  if (getSources().size() == 1 && getSources().front().getType() == getResult().getType()) return getSources().front();
  return {};
}

OpFoldResult AssumeOp::fold(FoldAdaptor adaptor) {
  const bool saysNothing = getMultipleOf() == 1 && !getAtLeastAttr() && !getAtMostAttr();
  if (saysNothing || adaptor.getValue()) return getValue();
  return {};
}

}  // namespace tile::ir
