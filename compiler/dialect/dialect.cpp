// dialect.cpp - registration of the dialect's ops, types and attributes.
#include "compiler/dialect/dialect.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"

#include "compiler/dialect/tile_dialect.cpp.inc"
#include "compiler/dialect/tile_enums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/tile_attrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/tile_types.cpp.inc"

namespace tile::ir {

void TileDialect::initialize() {
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

static mlir::LogicalResult verifyElement(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, mlir::Type type,
                                         llvm::StringRef what) {
  if (type.isSignlessInteger() || mlir::isa<mlir::FloatType>(type)) return mlir::success();
  return emitError() << what << " must hold signless integers or floats, found " << type;
}

mlir::LogicalResult PtrType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, mlir::Type elementType) {
  return verifyElement(emitError, elementType, "!tile.ptr");
}

mlir::LogicalResult ViewType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, int64_t rank,
                                     mlir::Type elementType) {
  if (rank < 1 || rank > 8) return emitError() << "!tile.view rank must be between 1 and 8, found " << rank;
  return verifyElement(emitError, elementType, "!tile.view");
}

}  // namespace tile::ir
