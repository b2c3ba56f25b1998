// gpu_ops.cpp - the layout attribute's text and checks; verifiers and folders of the ops GPU passes add.
#include "compiler/dialect/dialect.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace tile::ir {
namespace {

// `dim:count*stride` or `rep:count`.
ParseResult parseDigit(AsmParser& parser, std::vector<layout::Digit>& digits) {
  layout::Digit digit{layout::kReplicated, 1, 0};
  if (succeeded(parser.parseOptionalKeyword("rep"))) {
    if (parser.parseColon() || parser.parseInteger(digit.count)) return failure();
  } else if (parser.parseInteger(digit.dim) || parser.parseColon() || parser.parseInteger(digit.count) ||
             parser.parseStar() || parser.parseInteger(digit.stride)) {
    return failure();
  }
  digits.push_back(digit);
  return success();
}

ParseResult parseDigits(AsmParser& parser, StringRef list, std::vector<layout::Digit>& digits) {
  return failure(
      parser.parseKeyword(list, " with the digits of the layout") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] { return parseDigit(parser, digits); }));
}

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t dim : shape) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

}  // namespace

Attribute LayoutAttr::parse(AsmParser& parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  std::vector<layout::Digit> regs, lanes, warps;
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false, /*withTrailingX=*/false) ||
      parseDigits(parser, "regs", regs) || parseDigits(parser, "lanes", lanes) || parseDigits(parser, "warps", warps) ||
      parser.parseGreater()) {
    return {};
  }
  layout::Layout value({shape.begin(), shape.end()}, regs, lanes, warps);
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), value);
}

void LayoutAttr::print(AsmPrinter& printer) const { printer << "<" << getValue().to_string() << ">"; }

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, layout::Layout value) {
  std::string fault = value.check();
  return fault.empty() ? success() : LogicalResult(emitError() << "#tile.layout: " << fault);
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape == ArrayRef<int64_t>(getValue().shape())) return success();
  return emitError() << "layout of a " << shapeText(getValue().shape()) << " tile on a tensor of shape "
                     << shapeText(shape);
}

std::optional<layout::Layout> layoutOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto attr = tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding()) : LayoutAttr();
  if (!attr) return std::nullopt;
  return attr.getValue();
}

RankedTensorType withLayout(RankedTensorType type, const layout::Layout& value) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), LayoutAttr::get(type.getContext(), value));
}

LogicalResult ConvertOp::verify() {
  auto from = getSource().getType(), to = getResult().getType();
  if (from.getElementType() != to.getElementType() || from.getShape() != to.getShape()) {
    return emitOpError() << "changes only the layout: expected the shape and elements of " << from << ", found " << to;
  }
  return success();
}

LogicalResult TotalOp::verify() {
  auto scan = getScanned().getDefiningOp<ScanOp>();
  if (!scan) return emitOpError() << "expected the result of a scan";
  const auto from = cast<RankedTensorType>(getScanned().getType()), to = cast<RankedTensorType>(getResult().getType());
  SmallVector<int64_t> shape(from.getShape());
  shape[scan.getAxis()] = 1;
  if (to.getShape() != ArrayRef(shape) || to.getElementType() != from.getElementType())
    return emitOpError() << "expected " << RankedTensorType::get(shape, from.getElementType()) << ", found " << to;
  return success();
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType()) return getSource();
  if (auto inner = getSource().getDefiningOp<ConvertOp>()) {
    if (inner.getSource().getType() == getType()) return inner.getSource();
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

}  // namespace tile::ir
