// few_programs.h - choices that depend on how many programs a launch has. Of at most one per multiprocessor, each has
// registers and shared memory of a whole one, and nobody else's warps hide what its own wait for.
#pragma once
#include "compiler/compiler.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::ir {

/// On kernels whose code for few programs is, or would be, other code than that for many.
inline constexpr llvm::StringLiteral kVariesWithGridAttr = "tile.varies_with_grid";

/// The choice for the launches that `func` is compiled for; notes where the other would have been another.
template <class T>
T chooseByGrid(mlir::func::FuncOp func, const CompileOptions& options, T ofMany, T ofFew) {
  if (ofMany != ofFew) func->setAttr(kVariesWithGridAttr, mlir::UnitAttr::get(func.getContext()));
  return options.fewPrograms ? ofFew : ofMany;
}

}  // namespace tile::ir
