// abi_params.h - a kernel's arguments as the ABI's parameters.
#pragma once
#include <optional>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/abi.h"

namespace tile::ir {

/// The dtype an element or scalar type is stored as; signless integers count as signed. Empty: not a type of the
/// language.
std::optional<DType> dtypeOf(mlir::Type type);

/// The parameters of a kernel; emits an error at the argument and fails when one is no pointer, scalar or view.
mlir::FailureOr<std::vector<ParamInfo>> abiParams(mlir::func::FuncOp kernel);

}  // namespace tile::ir
