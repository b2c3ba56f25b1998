// dialect.cpp - registration of the dialect's ops, types and attributes.
#include "compiler/dialect/dialect.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"

namespace tile::ir {
/// `2xf32` as in a tensor type.
static mlir::ParseResult parseRankAndType(mlir::AsmParser& parser, int64_t& rank, mlir::Type& type) {
  return mlir::failure(parser.parseInteger(rank) || parser.parseXInDimensionList() || parser.parseType(type));
}
static void printRankAndType(mlir::AsmPrinter& printer, int64_t rank, mlir::Type type) {
  printer << rank << 'x' << type;
}
}  // namespace tile::ir

#include "compiler/dialect/tile_dialect.cpp.inc"
#include "compiler/dialect/tile_enums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/tile_attrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/tile_types.cpp.inc"

namespace tile::ir {

namespace {

/// Constants stay in their role: outside of roles every thread would hold tiles laid out for the threads of one.
struct ConstantsInRoles : mlir::DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(mlir::Region* region) const final {
    return mlir::isa<SpecializeOp>(region->getParentOp());
  }
};

}  // namespace

void TileDialect::initialize() {
  addInterfaces<ConstantsInRoles>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/tile_attrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/tile_types.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/tile_ops.cpp.inc"
      >();
}

/// What folds of tile operations find, as an operation.
mlir::Operation* TileDialect::materializeConstant(mlir::OpBuilder& builder, mlir::Attribute value, mlir::Type type,
                                                  mlir::Location loc) {
  return mlir::arith::ConstantOp::materialize(builder, value, type, loc);
}

bool isNumber(mlir::Type type) {
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(type)) {
    const unsigned bits = integer.getWidth();
    return integer.isSignless() && (bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64);
  }
  return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type, mlir::Float16Type, mlir::BFloat16Type,
                   mlir::Float32Type, mlir::Float64Type>(type);
}

bool isF8(mlir::Type type) {
  return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(mlir::getElementTypeOrSelf(type));
}

bool isTileType(mlir::Type type) {
  auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
  if (!tensor || tensor.getRank() < 1 || tensor.getRank() > kMaxTileRank) return false;
  int64_t elements = 1;
  for (int64_t d : tensor.getShape()) {
    if (d < 1 || d > kMaxTileElements) return false;  // dynamic dims are negative
    elements *= d;
    if (elements > kMaxTileElements) return false;
  }
  return true;
}

static mlir::LogicalResult verifyElement(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, mlir::Type type,
                                         llvm::StringRef what) {
  if (isNumber(type)) return mlir::success();
  return emitError() << what << " must hold i1, i8, i16, i32, i64, f8E4M3FN, f8E5M2, f16, bf16, f32 or f64, found "
                     << type;
}

mlir::LogicalResult PtrType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, mlir::Type elementType) {
  return verifyElement(emitError, elementType, "!tile.ptr");
}

mlir::LogicalResult ViewType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, int64_t rank,
                                     mlir::Type elementType) {
  if (rank < 1 || rank > 8) return emitError() << "!tile.view rank must be between 1 and 8, found " << rank;
  return verifyElement(emitError, elementType, "!tile.view");
}

// ---- !tile.smem
SmemType SmemType::slotType() const { return withStages(1); }
SmemType SmemType::withStages(int64_t stages) const {
  return SmemType::get(getContext(), getShape(), getElementType(), getMinor(), stages, getInterleaved(), getPanel());
}
SmemType SmemType::withInterleaved(bool interleaved) const {
  return SmemType::get(getContext(), getShape(), getElementType(), getMinor(), getStages(), interleaved, getPanel());
}
SmemType SmemType::withPanel(int64_t panel) const {
  return SmemType::get(getContext(), getShape(), getElementType(), getMinor(), getStages(), getInterleaved(), panel);
}
SmemType SmemType::transposed() const {
  int64_t shape[2] = {getShape()[1], getShape()[0]};
  return SmemType::get(getContext(), shape, getElementType(), 1 - getMinor(), getStages(), getInterleaved(),
                       getPanel());
}
int64_t SmemType::elementBytes() const { return (getElementType().getIntOrFloatBitWidth() + 7) / 8; }
layout::SharedTile SmemType::slot() const {
  const int64_t rows = getShape()[1 - getMinor()], columns = getShape()[getMinor()];
  if (getPanel() && columns % getPanel() != 0)
    return {rows, columns, static_cast<int>(elementBytes()), static_cast<int>(getPanel() * elementBytes()), 0};
  return layout::swizzledTile(rows, columns, static_cast<int>(elementBytes()),
                              static_cast<int>((getPanel() ? getPanel() : columns) * elementBytes()));
}
int64_t SmemType::alignment() const { return slot().alignment(); }
int64_t SmemType::slotBytes() const {
  layout::SharedTile tile = slot();
  // Bulk copies fill short rows (masks in bytes), too, in all slots of a ring.
  const int64_t unit = tile.rows == 1 ? layout::kBulkAlignment : tile.alignment();
  return (tile.bytes() + unit - 1) / unit * unit;
}

int64_t SmemType::columnDims(llvm::ArrayRef<int64_t> box) const {
  int64_t elements = 1, columns = 1;
  for (int64_t extent : box) elements *= extent;
  if (elements != getShape()[0] * getShape()[1]) return 1;
  for (size_t dims = 1; dims < box.size(); ++dims)
    if ((columns *= box[box.size() - dims]) == getShape()[1]) return static_cast<int64_t>(dims);
  return 1;
}

void SmemType::print(mlir::AsmPrinter& printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType() << ", minor = " << getMinor();
  if (isRing()) printer << ", stages = " << getStages();
  if (getInterleaved()) printer << ", interleaved";
  if (getPanel()) printer << ", panel = " << getPanel();
  printer << ">";
}

mlir::Type SmemType::parse(mlir::AsmParser& parser) {
  llvm::SmallVector<int64_t> shape;
  mlir::Type element;
  int64_t minor = 0, stages = 1;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) ||
      parser.parseComma() || parser.parseKeyword("minor") || parser.parseEqual() || parser.parseInteger(minor))
    return {};
  bool interleaved = false;
  int64_t panel = 0;
  while (mlir::succeeded(parser.parseOptionalComma())) {
    if (mlir::succeeded(parser.parseOptionalKeyword("interleaved")))
      interleaved = true;
    else if (mlir::succeeded(parser.parseOptionalKeyword("panel"))) {
      if (parser.parseEqual() || parser.parseInteger(panel)) return {};
    } else if (parser.parseKeyword("stages") || parser.parseEqual() || parser.parseInteger(stages))
      return {};
  }
  if (parser.parseGreater()) return {};
  return parser.getChecked<SmemType>(loc, parser.getContext(), shape, element, minor, stages, interleaved, panel);
}

mlir::LogicalResult SmemType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                     llvm::ArrayRef<int64_t> shape, mlir::Type element, int64_t minor, int64_t stages,
                                     bool interleaved, int64_t panel) {
  if (shape.size() != 2) return emitError() << "!tile.smem must have 2 dims, found " << shape.size();
  for (int64_t extent : shape)
    if (extent < 1) return emitError() << "!tile.smem dims must be positive, found " << extent;
  if (!element.isSignlessInteger() && !mlir::isa<mlir::FloatType>(element))
    return emitError() << "!tile.smem must hold signless integers or floats, found " << element;
  if (minor != 0 && minor != 1) return emitError() << "minor must be 0 or 1, found " << minor;
  if (stages < 1) return emitError() << "stages must be at least 1, found " << stages;
  if (interleaved && (element.getIntOrFloatBitWidth() != 8 || shape[static_cast<size_t>(minor)] % 16 != 0))
    return emitError() << "an interleaved !tile.smem must hold 8-bit elements in rows of whole 16 bytes";
  const int64_t elementBytes = (element.getIntOrFloatBitWidth() + 7) / 8, bytes = panel * elementBytes;
  if (panel && bytes != 32 && bytes != 64 && bytes != 128)
    return emitError() << "panels must have 32, 64 or 128 bytes, found " << panel << " elements";
  const int64_t columns = shape[static_cast<size_t>(minor)], rows = shape[static_cast<size_t>(1 - minor)];
  if (panel && columns % panel != 0 && (rows == 1 || columns * elementBytes % 16 != 0))
    return emitError() << "a last panel that is not filled needs several rows of whole 16 bytes, found " << rows
                       << " of " << columns * elementBytes;
  return mlir::success();
}

}  // namespace tile::ir
