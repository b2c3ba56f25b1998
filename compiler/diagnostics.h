// diagnostics.h - MLIR's diagnostics as tile::Diagnostic values with the user's file, line and column.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "runtime/error.h"

namespace tile::ir {

/// The source place a location stands for, looking through names, fusions and call sites. Unknown: line 0.
struct SourcePlace {
  std::string file;
  uint32_t line = 0, column = 0;
};
SourcePlace sourcePlace(mlir::Location location);

/// While alive, takes every diagnostic of the context: errors are kept, the rest goes to `onRemark` (or nowhere).
class DiagnosticCollector {
 public:
  DiagnosticCollector(mlir::MLIRContext* context, std::function<void(const Diagnostic&)> onRemark);
  bool hasErrors() const { return !errors_.empty(); }
  /// Another way was found around the errors so far.
  void forgetErrors() { errors_.clear(); }
  /// The errors so far under a headline; when there are none, the headline alone.
  Error error(ErrorKind kind, std::string headline);

 private:
  std::vector<Diagnostic> errors_;
  std::function<void(const Diagnostic&)> onRemark_;
  mlir::ScopedDiagnosticHandler handler_;
};

}  // namespace tile::ir
