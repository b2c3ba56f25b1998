// check_kernel.h - the gate in front of the passes: is this module a kernel of the language at all?
#pragma once
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tile::ir {

/// The module's one kernel, or failure after emitting what is wrong: no kernel, several, a body that is not in the
/// language (foreign ops, index or i128 values, dynamic or empty tiles). What passes here no pass has to check again.
mlir::FailureOr<mlir::func::FuncOp> findKernel(mlir::ModuleOp module);

}  // namespace tile::ir
