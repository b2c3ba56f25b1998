// debug_info.h - source lines of the user's kernel in the PTX, for profilers (-lineinfo). Line tables only, no
// variables.
#pragma once
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/IRBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tile::ir {

class DebugInfo {
 public:
  DebugInfo(llvm::Module& module, llvm::Function& function, mlir::func::FuncOp kernel);
  /// Instructions from now on belong to the place; unknown places keep the last one.
  void setLocation(llvm::IRBuilder<>& b, mlir::Location location);
  void finish();

 private:
  llvm::DIFile* file(llvm::StringRef path);
  llvm::DIBuilder builder_;
  llvm::StringMap<llvm::DIFile*> files_;
  llvm::StringMap<llvm::DIScope*> scopes_;
  llvm::DISubprogram* subprogram_ = nullptr;
};

}  // namespace tile::ir
