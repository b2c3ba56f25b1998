// tile_ops.cpp - verifiers and folders. Messages name what was expected and what was found.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/histograms.h"

#include <cmath>

namespace tile::ir {

/// The combiner of a reduction or scan. MLIR's parser frees a region that fails to parse while operations elsewhere may
/// already name its block arguments (a forward reference that an argument of the same name resolved) and would touch
/// them when they are destroyed. So a broken region loses its references and is given up instead of freed: text that
/// does not parse costs a few bytes, not the process.
static mlir::ParseResult parseCombiner(mlir::OpAsmParser& parser, mlir::Region& combiner) {
  if (mlir::succeeded(parser.parseRegion(combiner))) {
    if (combiner.empty()) return parser.emitError(parser.getNameLoc(), "expected a combiner with one block");
    return mlir::success();
  }
  auto* broken = new mlir::Region();
  broken->takeBody(combiner);
  broken->dropAllReferences();
  return mlir::failure();
}
static void printCombiner(mlir::OpAsmPrinter& printer, mlir::Operation*, mlir::Region& combiner) {
  printer.printRegion(combiner);
}

}  // namespace tile::ir

#define GET_OP_CLASSES
#include "compiler/dialect/tile_ops.cpp.inc"

namespace tile::ir {
using namespace mlir;

namespace {

/// Dims of a tile; none for a scalar.
ArrayRef<int64_t> shapeOf(Type t) {
  if (auto tensor = dyn_cast<RankedTensorType>(t)) return tensor.getShape();
  return {};
}

LogicalResult sameShape(Operation* op, Type expected, Type found, StringRef what) {
  if (shapeOf(expected) == shapeOf(found) && isa<RankedTensorType>(expected) == isa<RankedTensorType>(found))
    return success();
  return op->emitOpError() << what << " must have the shape of " << expected << ", found " << found;
}

Type pointee(Type ptrLike) { return cast<PtrType>(getElementTypeOrSelf(ptrLike)).getElementType(); }

/// Checks ptr/offsets/value/mask of a pointer access: either pointers alone, or a scalar base with a tile of offsets.
LogicalResult verifyAccess(Operation* op, Value ptr, Value offsets, Type value, Value mask, StringRef valueName) {
  if (pointee(ptr.getType()) != getElementTypeOrSelf(value))
    return op->emitOpError() << valueName << " must hold " << pointee(ptr.getType()) << " as the pointer does, found "
                             << value;
  Type lanes = ptr.getType();
  if (offsets) {
    if (isa<RankedTensorType>(ptr.getType()))
      return op->emitOpError() << "offsets need a scalar base pointer, found " << ptr.getType();
    lanes = offsets.getType();
  }
  if (failed(sameShape(op, lanes, value, valueName))) return failure();
  if (mask && failed(sameShape(op, lanes, mask.getType(), "mask"))) return failure();
  return success();
}

LogicalResult verifyBox(Operation* op, ViewType view, OperandRange indices, Type tile) {
  if (static_cast<int64_t>(indices.size()) != view.getRank())
    return op->emitOpError() << "expects one index per view dim (" << view.getRank() << "), found " << indices.size();
  if (static_cast<int64_t>(shapeOf(tile).size()) > view.getRank())
    return op->emitOpError() << "tile rank " << shapeOf(tile).size() << " exceeds the view's rank " << view.getRank();
  if (getElementTypeOrSelf(tile) != view.getElementType())
    return op->emitOpError() << "expects tiles of " << view.getElementType() << " as the view holds, found " << tile;
  return success();
}

/// I32Attr getters are unsigned; a negative number must read as one.
int64_t signedAttr(uint32_t value) { return static_cast<int32_t>(value); }

LogicalResult verifyAxis(Operation* op, int64_t axis, int64_t rank) {
  if (axis >= 0 && axis < rank) return success();
  return op->emitOpError() << "axis must be between 0 and " << rank - 1 << ", found " << axis;
}

LogicalResult verifyViewDim(Operation* op, ViewType view, int64_t dim) {
  if (dim >= 0 && dim < view.getRank()) return success();
  return op->emitOpError() << "dim must be between 0 and " << view.getRank() - 1 << ", found " << dim;
}

LogicalResult verifyCombiner(Operation* op, ValueRange sources, ValueRange results, int64_t axis, Region& combiner,
                             bool keepsShape) {
  if (sources.empty()) return op->emitOpError("needs at least one operand");
  if (results.size() != sources.size())
    return op->emitOpError() << "expects " << sources.size() << " results as there are operands, found "
                             << results.size();
  auto first = cast<RankedTensorType>(sources[0].getType());
  if (failed(verifyAxis(op, axis, first.getRank()))) return failure();
  SmallVector<int64_t> shape(first.getShape());
  if (!keepsShape) shape[axis] = 1;
  if (!combiner.hasOneBlock() || combiner.front().empty() || !isa<YieldOp>(combiner.front().back()))
    return op->emitOpError("combiner must be one block that ends with tile.yield");
  Block& block = combiner.front();
  for (Operation& inner : block.without_terminator()) {
    const bool isElementwise = isa<arith::ConstantOp>(inner) || OpTrait::hasElementwiseMappableTraits(&inner);
    if (!isElementwise || !isPure(&inner) || inner.getNumRegions() != 0)
      return inner.emitOpError() << "is not allowed in a combiner: only elementwise operations on scalars are";
    for (Type t : inner.getOperandTypes())
      if (!isNumber(t)) return inner.emitOpError() << "in a combiner must work on scalars, found " << t;
    for (Type t : inner.getResultTypes())
      if (!isNumber(t)) return inner.emitOpError() << "in a combiner must work on scalars, found " << t;
  }
  if (block.getNumArguments() != 2 * sources.size())
    return op->emitOpError() << "combiner must take " << 2 * sources.size() << " scalars, found "
                             << block.getNumArguments();
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getNumOperands() != sources.size())
    return op->emitOpError() << "combiner must yield " << sources.size() << " scalars, found "
                             << yield.getNumOperands();
  for (auto [i, source] : llvm::enumerate(sources)) {
    auto type = cast<RankedTensorType>(source.getType());
    if (type.getShape() != first.getShape())
      return op->emitOpError() << "operands must have one shape, found " << first << " and " << type;
    auto result = cast<RankedTensorType>(results[i].getType());
    if (result.getShape() != ArrayRef<int64_t>(shape) || result.getElementType() != type.getElementType())
      return op->emitOpError() << "result " << i << " must be " << RankedTensorType::get(shape, type.getElementType())
                               << ", found " << result;
    for (Type t : {block.getArgument(i).getType(), block.getArgument(i + sources.size()).getType(),
                   yield.getOperand(i).getType()})
      if (t != type.getElementType())
        return op->emitOpError() << "combiner must work on " << type.getElementType() << " for operand " << i
                                 << ", found " << t;
  }
  return success();
}

}  // namespace

LogicalResult PtrAddOp::verify() { return sameShape(*this, getPtr().getType(), getOffset().getType(), "offset"); }

OpFoldResult PtrAddOp::fold(FoldAdaptor adaptor) {
  Attribute offset = adaptor.getOffset();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(offset)) offset = splat.getSplatValue<Attribute>();
  if (auto i = dyn_cast_or_null<IntegerAttr>(offset); i && i.getValue().isZero()) return getPtr();
  return {};
}

LogicalResult MakeViewOp::verify() {
  auto view = getResult().getType();
  if (view.getElementType() != getPtr().getType().getElementType())
    return emitOpError() << "view must hold " << getPtr().getType().getElementType() << " as the pointer does, found "
                         << view;
  if (static_cast<int64_t>(getDims().size()) != view.getRank() ||
      static_cast<int64_t>(getStrides().size()) != view.getRank())
    return emitOpError() << "expects " << view.getRank() << " dims and strides, found " << getDims().size() << " and "
                         << getStrides().size();
  return success();
}

LogicalResult ViewPtrOp::verify() {
  if (getView().getType().getElementType() == getResult().getType().getElementType()) return success();
  return emitOpError() << "expects a pointer to " << getView().getType().getElementType() << ", found "
                       << getResult().getType();
}
OpFoldResult ViewPtrOp::fold(FoldAdaptor) {
  if (auto make = getView().getDefiningOp<MakeViewOp>()) return make.getPtr();
  return {};
}
LogicalResult ViewDimOp::verify() { return verifyViewDim(*this, getView().getType(), signedAttr(getDim())); }
OpFoldResult ViewDimOp::fold(FoldAdaptor) {
  if (auto make = getView().getDefiningOp<MakeViewOp>()) return make.getDims()[getDim()];
  return {};
}
LogicalResult ViewStrideOp::verify() { return verifyViewDim(*this, getView().getType(), signedAttr(getDim())); }
OpFoldResult ViewStrideOp::fold(FoldAdaptor) {
  if (auto make = getView().getDefiningOp<MakeViewOp>()) return make.getStrides()[getDim()];
  return {};
}

LogicalResult LoadOp::verify() {
  ViewType view = getView().getType();
  if (failed(verifyBox(*this, view, getIndices(), getResult().getType()))) return failure();
  auto integer = dyn_cast<IntegerType>(view.getElementType());
  if (auto pad = getPad(); pad && integer) {
    // Both readings of the bits are fine: -1 and 255 are the same i8.
    const double value = pad->convertToDouble(), limit = std::ldexp(1.0, static_cast<int>(integer.getWidth()));
    if (!std::isfinite(value) || value != std::floor(value) || value < -limit / 2 || value >= limit)
      return emitOpError() << "pad of a view of " << integer << " must be a whole number that fits, found " << value;
  }
  return success();
}
LogicalResult StoreOp::verify() { return verifyBox(*this, getView().getType(), getIndices(), getValue().getType()); }

LogicalResult AccumulateOp::verify() {
  Type element = getView().getType().getElementType();
  if (!element.isF64() && !element.isF32() && !element.isF16() && !element.isBF16() && !element.isInteger(32) &&
      !element.isInteger(64))
    return emitOpError() << "adds f64, f32, f16, bf16, i64 or i32, found a view of " << element;
  return verifyBox(*this, getView().getType(), getIndices(), getValue().getType());
}

LogicalResult GatherOp::verify() {
  if (failed(verifyAccess(*this, getPtr(), getOffsets(), getResult().getType(), getMask(), "result"))) return failure();
  if (getOther() && !getMask()) return emitOpError("`other` needs a mask");
  if (getOther() && getOther().getType() != getResult().getType())
    return emitOpError() << "`other` must be " << getResult().getType() << ", found " << getOther().getType();
  return success();
}
LogicalResult ScatterOp::verify() {
  return verifyAccess(*this, getPtr(), getOffsets(), getValue().getType(), getMask(), "value");
}

LogicalResult AtomicRmwOp::verify() {
  if (failed(verifyAccess(*this, getPtr(), getOffsets(), getValue().getType(), getMask(), "value"))) return failure();
  if (getResult().getType() != getValue().getType())
    return emitOpError() << "result must be " << getValue().getType() << ", found " << getResult().getType();
  Type element = getElementTypeOrSelf(getValue().getType());
  if (element.isInteger(1) || isa<Float8E4M3FNType, Float8E5M2Type>(element))
    return emitOpError() << "works on integers of 8 bits or more, f16, bf16, f32 and f64, found " << element;
  bool bitwise = getKind() == RmwKind::and_ || getKind() == RmwKind::or_ || getKind() == RmwKind::xor_;
  bool isUnsigned = getKind() == RmwKind::umax || getKind() == RmwKind::umin;
  if ((bitwise || isUnsigned) && !element.isInteger())
    return emitOpError() << stringifyRmwKind(getKind()) << " is defined on integers, found " << element;
  return success();
}
LogicalResult AtomicCasOp::verify() {
  if (Type element = pointee(getPtr().getType()); !element.isInteger() || element.isInteger(1))
    return emitOpError() << "compares integers of 8 bits or more, found " << element;
  if (failed(verifyAccess(*this, getPtr(), getOffsets(), getDesired().getType(), getMask(), "desired")))
    return failure();
  if (getExpected().getType() != getDesired().getType() || getResult().getType() != getDesired().getType())
    return emitOpError() << "expected, desired and result must have one type, found " << getExpected().getType() << ", "
                         << getDesired().getType() << " and " << getResult().getType();
  return success();
}

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  const unsigned bits = cast<IntegerType>(type.getElementType()).getWidth();
  int64_t last;
  const bool wraps = __builtin_add_overflow(static_cast<int64_t>(getStart()), type.getDimSize(0) - 1, &last);
  // Signed or unsigned: the tile must be a run in one of the two readings.
  if (!wraps && bits < 64 &&
      (static_cast<int64_t>(getStart()) < -(int64_t{1} << (bits - 1)) || last >= (int64_t{1} << bits)))
    return emitOpError() << "values " << static_cast<int64_t>(getStart()) << " to " << last << " do not fit "
                         << type.getElementType();
  if (wraps)
    return emitOpError() << "values starting at " << static_cast<int64_t>(getStart()) << " do not fit "
                         << type.getElementType();
  return success();
}

LogicalResult SplatOp::verify() {
  if (cast<RankedTensorType>(getResult().getType()).getElementType() == getValue().getType()) return success();
  return emitOpError() << "result must hold " << getValue().getType() << ", found " << getResult().getType();
}
OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  if (auto value = dyn_cast_or_null<TypedAttr>(adaptor.getValue()))
    return SplatElementsAttr::get(cast<RankedTensorType>(getResult().getType()), ArrayRef<Attribute>(value));
  // The element of a tile of one element is that tile again.
  auto item = getValue().getDefiningOp<ItemOp>();
  for (Value source = item ? item.getSource() : Value(); source;) {
    if (source.getType() == getResult().getType()) return source;
    Operation* op = source.getDefiningOp();
    source = op && isa<ReshapeOp, TransOp>(op) ? op->getOperand(0) : Value();
  }
  return {};
}

LogicalResult BroadcastOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "element types differ: " << from << " and " << to;
  if (from.getRank() != to.getRank())
    return emitOpError() << "keeps the rank (use tile.reshape to add dims); found " << from << " and " << to;
  for (auto [i, pair] : llvm::enumerate(llvm::zip(from.getShape(), to.getShape())))
    if (auto [f, t] = pair; f != t && f != 1)
      return emitOpError() << "dim " << i << " must be 1 or " << t << ", found " << f;
  return success();
}
OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType()) return getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return splat.resizeSplat(cast<ShapedType>(getResult().getType()));
  return {};
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "element types differ: " << from << " and " << to;
  if (from.getNumElements() != to.getNumElements())
    return emitOpError() << "expects " << from.getNumElements() << " elements, found " << to.getNumElements() << " in "
                         << to;
  return success();
}
OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType()) return getSource();
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getSource()))
    return elements.reshape(cast<ShapedType>(getResult().getType()));
  if (auto inner = getSource().getDefiningOp<ReshapeOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

LogicalResult TransOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getResult().getType());
  auto perm = getPermutation();
  if (static_cast<int64_t>(perm.size()) != from.getRank() || to.getRank() != from.getRank())
    return emitOpError() << "permutation must name each of " << from.getRank() << " dims once";
  SmallVector<bool> seen(perm.size(), false);
  for (auto [i, p] : llvm::enumerate(perm)) {
    if (p < 0 || p >= from.getRank() || seen[p])
      return emitOpError() << "permutation must name each of " << from.getRank() << " dims once";
    seen[p] = true;
    if (to.getDimSize(i) != from.getDimSize(p))
      return emitOpError() << "result dim " << i << " must be " << from.getDimSize(p) << ", found " << to.getDimSize(i);
  }
  if (from.getElementType() != to.getElementType())
    return emitOpError() << "element types differ: " << from << " and " << to;
  return success();
}
OpFoldResult TransOp::fold(FoldAdaptor adaptor) {
  if (llvm::is_sorted(getPermutation()) && getSource().getType() == getResult().getType()) return getSource();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return splat.reshape(cast<ShapedType>(getResult().getType()));
  return {};
}

LogicalResult CatOp::verify() {
  if (getSources().empty()) return emitOpError("needs at least one operand");
  auto to = cast<RankedTensorType>(getResult().getType());
  int64_t axis = signedAttr(getAxis()), total = 0;
  if (failed(verifyAxis(*this, axis, to.getRank()))) return failure();
  for (Value source : getSources()) {
    auto from = cast<RankedTensorType>(source.getType());
    if (from.getRank() != to.getRank() || from.getElementType() != to.getElementType())
      return emitOpError() << "operands must be like " << to << ", found " << from;
    for (int64_t d = 0; d < to.getRank(); ++d)
      if (d != axis && from.getDimSize(d) != to.getDimSize(d))
        return emitOpError() << "operands must agree with the result outside the axis: expected " << to.getDimSize(d)
                             << " along dim " << d << ", found " << from;
    total += from.getDimSize(axis);
  }
  if (total != to.getDimSize(axis))
    return emitOpError() << "operands add up to " << total << " along the axis, result has " << to.getDimSize(axis);
  return success();
}

LogicalResult ExtractOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (to.getRank() != from.getRank() || static_cast<int64_t>(getOffsets().size()) != from.getRank() ||
      to.getElementType() != from.getElementType())
    return emitOpError() << "keeps rank and element type and takes one offset per dim; found " << from << " to " << to;
  for (auto [d, offset] : llvm::enumerate(getOffsets()))
    if (offset < 0 || offset + to.getDimSize(d) > from.getDimSize(d))
      return emitOpError() << "box [" << offset << ", " << offset + to.getDimSize(d) << ") leaves dim " << d
                           << " of size " << from.getDimSize(d);
  return success();
}

LogicalResult TakeOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType()), idx = cast<RankedTensorType>(getIndices().getType()),
       to = cast<RankedTensorType>(getResult().getType());
  if (failed(verifyAxis(*this, signedAttr(getAxis()), from.getRank()))) return failure();
  if (idx.getShape() != to.getShape() || to.getElementType() != from.getElementType() ||
      idx.getRank() != from.getRank())
    return emitOpError() << "result must have the indices' shape and the source's element type; found " << from << ", "
                         << idx << " and " << to;
  for (int64_t d = 0; d < from.getRank(); ++d)
    if (d != static_cast<int64_t>(getAxis()) && idx.getDimSize(d) != from.getDimSize(d))
      return emitOpError() << "indices must agree with the source outside the axis: expected " << from.getDimSize(d)
                           << " along dim " << d << ", found " << idx.getDimSize(d);
  return success();
}

LogicalResult PutOp::verify() {
  auto into = cast<RankedTensorType>(getInto().getType()), to = cast<RankedTensorType>(getResult().getType());
  if (failed(verifyAxis(*this, signedAttr(getAxis()), into.getRank()))) return failure();
  if (to.getShape() != into.getShape() || to.getElementType() != into.getElementType())
    return emitOpError() << "result must have the shape and element type of what is put into; found " << to << " and "
                         << into;
  if (getValues().empty()) return emitOpError() << "expects values to put";
  const auto first = cast<RankedTensorType>(getIndices().front().getType());
  for (auto [index, value] : llvm::zip(getIndices(), getValues())) {
    auto idx = cast<RankedTensorType>(index.getType()), values = cast<RankedTensorType>(value.getType());
    if (idx.getShape() != first.getShape() || idx.getShape() != values.getShape() ||
        values.getElementType() != into.getElementType() || idx.getRank() != into.getRank())
      return emitOpError() << "values must have the indices' shape and the element type of what they are put into; "
                           << "found " << values << ", " << idx << " and " << into;
  }
  for (int64_t d = 0; d < into.getRank(); ++d)
    if (d != static_cast<int64_t>(getAxis()) && first.getDimSize(d) != into.getDimSize(d))
      return emitOpError() << "indices must agree with the result outside the axis: expected " << into.getDimSize(d)
                           << " along dim " << d << ", found " << first.getDimSize(d);
  return success();
}

LogicalResult HistogramOp::verify() {
  auto to = cast<RankedTensorType>(getResult().getType());
  if (to.getRank() != 1) return emitOpError() << "result must have one dim, the values counted; found " << to;
  return verifyWeights(*this, getSource(), getWeights(), to.getElementType());
}

LogicalResult ItemOp::verify() {
  auto from = cast<RankedTensorType>(getSource().getType());
  if (from.getNumElements() != 1) return emitOpError() << "expects a tile of one element, found " << from;
  if (from.getElementType() != getResult().getType())
    return emitOpError() << "result must be " << from.getElementType() << ", found " << getResult().getType();
  return success();
}
OpFoldResult ItemOp::fold(FoldAdaptor adaptor) {
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource())) return splat.getSplatValue<Attribute>();
  Value source = getSource();
  while (Operation* op = source.getDefiningOp()) {  // one element: its place does not matter
    if (auto splat = dyn_cast<SplatOp>(op)) return splat.getValue();
    if (!isa<ReshapeOp, TransOp>(op)) break;
    source = op->getOperand(0);
  }
  return {};
}

LogicalResult ReduceOp::verify() {
  return verifyCombiner(*this, getSources(), getResults(), signedAttr(getAxis()), getCombiner(), false);
}
LogicalResult ScanOp::verify() {
  return verifyCombiner(*this, getSources(), getResults(), signedAttr(getAxis()), getCombiner(), true);
}

LogicalResult BallotOp::verify() {
  Block& block = getSteps().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isInteger(32))
    return emitOpError("asks about one number of 32 bits");
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  const bool ofNumbers = getCombined().has_value();
  if (!yield || yield.getNumOperands() != 1 || !yield.getOperand(0).getType().isInteger(ofNumbers ? 32 : 1))
    return emitOpError() << "must be answered by one " << (ofNumbers ? "i32" : "i1");
  for (Operation& op : block.without_terminator()) {
    if (op.getNumRegions() || !(isMemoryEffectFree(&op) || isa<LoadOp, GatherOp>(op)))
      return op.emitOpError("is not allowed in a ballot: only arithmetic and reads are");
    if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return op.emitOpError("in a ballot must work on scalars");
  }
  return success();
}

// Products of matrices, the last two dims of a, b and c.
static LogicalResult verifyProduct(Operation* op, RankedTensorType a, RankedTensorType b, RankedTensorType c,
                                   Precision precision) {
  const int64_t m = a.getRank() - 2, n = a.getRank() - 1;
  if (a.getDimSize(n) != b.getDimSize(m)) return op->emitOpError() << "inner dims must agree: " << a << " * " << b;
  if (c.getDimSize(m) != a.getDimSize(m) || c.getDimSize(n) != b.getDimSize(n))
    return op->emitOpError() << "accumulator must be " << a.getDimSize(m) << "x" << b.getDimSize(n) << ", found " << c;
  if (a.getElementType() != b.getElementType() && !(isF8(a) && isF8(b)))
    return op->emitOpError() << "operands must have one element type, found " << a.getElementType() << " and "
                             << b.getElementType();
  Type in = a.getElementType(), want;
  MLIRContext* ctx = op->getContext();
  const bool isOfBits = precision == Precision::bits;
  if (isOfBits && !in.isInteger(32)) return op->emitOpError() << "operands of bits must be i32, found " << in;
  if (isOfBits) want = in;
  else if (in.isF64()) want = in;
  else if (isa<FloatType>(in)) want = Float32Type::get(ctx);
  else if (in.isInteger(8)) want = IntegerType::get(ctx, 32);
  else return op->emitOpError() << "operands must be f16, bf16, f32, f64, f8 or i8, found " << in;
  if (c.getElementType() != want)
    return op->emitOpError() << in << " operands accumulate in " << want << ", found " << c.getElementType();
  return success();
}

LogicalResult DotOp::verify() {
  return verifyProduct(*this, cast<RankedTensorType>(getA().getType()), cast<RankedTensorType>(getB().getType()),
                       cast<RankedTensorType>(getAcc().getType()), getPrecision());
}

LogicalResult BatchDotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType()),
       c = cast<RankedTensorType>(getAcc().getType());
  if (a.getDimSize(0) != b.getDimSize(0) || a.getDimSize(0) != c.getDimSize(0))
    return emitOpError() << "operands must be as many matrices: " << a << " * " << b << " + " << c;
  return verifyProduct(*this, a, b, c, getPrecision());
}

}  // namespace tile::ir
