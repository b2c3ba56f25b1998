// debug_site.cpp - see debug_site.h.
#include "compiler/debug_site.h"

#include "compiler/abi_params.h"
#include "compiler/diagnostics.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {

static DType asUnsigned(DType d) {
  switch (d) {
    case DType::i8:
      return DType::u8;
    case DType::i16:
      return DType::u16;
    case DType::i32:
      return DType::u32;
    case DType::i64:
      return DType::u64;
    default:
      return d;
  }
}

static DebugSite siteOf(mlir::Operation* op, DebugSite::Kind kind, llvm::StringRef message, mlir::Type type) {
  SourcePlace place = sourcePlace(op->getLoc());
  DebugSite site;
  site.kind = kind;
  site.message = message.str();
  site.dtype = dtypeOf(mlir::getElementTypeOrSelf(type)).value_or(DType::i32);
  if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type))
    site.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  site.file = place.file;
  site.line = place.line;
  return site;
}

DebugSite debugSite(PrintOp op) {
  DebugSite site = siteOf(op, DebugSite::print, op.getMessage(), op.getValue().getType());
  if (op.getIsUnsigned()) site.dtype = asUnsigned(site.dtype);
  return site;
}

DebugSite debugSite(AssertOp op) {
  return siteOf(op, DebugSite::assertion, op.getMessage(), op.getCondition().getType());
}

}  // namespace tile::ir
