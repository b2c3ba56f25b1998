// compiled.h - a kernel on its way through the GPU passes: before roles (the law), right behind specialize, and behind
// the waits of asynchronous products (what is emitted, as far as the protocol goes).
#pragma once
#include <string>

#include "compiler/compiler.h"
#include "compiler/dialect/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace tile::ir::protocol {

struct Compiled {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> plain, specialized, waited;
  std::string remarks;
  bool hasRoles() const;
};

mlir::func::FuncOp functionOf(mlir::ModuleOp module);
/// For sm_90a. Throws std::runtime_error with the diagnostics when the text is not a kernel or a pass fails.
Compiled compile(const std::string& text);

}  // namespace tile::ir::protocol
