// warps.h - how many warps compute a program: an attribute of its kernel.
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::ir {

inline constexpr llvm::StringLiteral kWarpsAttribute = "tile.num_warps";
/// What is taken for granted before anybody has chosen.
inline constexpr int kUsualWarps = 4;

/// Warps of a program; `otherwise` where neither the kernel nor a pass has chosen.
inline int warpsOf(mlir::func::FuncOp func, int otherwise = 0) {
  auto warps = func->getAttrOfType<mlir::IntegerAttr>(kWarpsAttribute);
  return warps ? static_cast<int>(warps.getInt()) : otherwise;
}
inline void setWarps(mlir::func::FuncOp func, int warps) {
  func->setAttr(kWarpsAttribute, mlir::Builder(func.getContext()).getI32IntegerAttr(warps));
}

}  // namespace tile::ir
