// ir_key.h - IR as bytes that are equal exactly when the IR is: what the disk cache hashes. Symbol name and locations
// aside, but for those that the code names when it runs. The same in every process and several times faster than
// printing. Internal to the dsl library.
#pragma once
#include <string>

#include "dsl/tracing/context_pool.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::detail {

std::string ir_key(mlir::func::FuncOp function, PooledContext& context, size_t& operations);

}  // namespace tile::detail
