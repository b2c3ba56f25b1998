// debug_site.h - what the host must know of a tile.print or tile.assert to read its records (runtime/abi.h).
#pragma once
#include "mlir/IR/Operation.h"
#include "runtime/abi.h"

namespace tile::ir {

/// `type` is the printed value's or condition's: its dtype and, for a tile, its shape; the place is the op's.
DebugSite debugSite(mlir::Operation* op, DebugSite::Kind kind, llvm::StringRef message, mlir::Type type);

}  // namespace tile::ir
