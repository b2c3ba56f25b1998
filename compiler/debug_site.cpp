// debug_site.cpp - see debug_site.h.
#include "compiler/debug_site.h"

#include "compiler/abi_params.h"
#include "compiler/diagnostics.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace tile::ir {

DebugSite debugSite(mlir::Operation* op, DebugSite::Kind kind, llvm::StringRef message, mlir::Type type) {
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

}  // namespace tile::ir
