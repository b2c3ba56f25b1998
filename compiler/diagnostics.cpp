// diagnostics.cpp - collects what MLIR reports.
#include "compiler/diagnostics.h"

namespace tile::ir {
namespace {

Severity severityOf(mlir::DiagnosticSeverity s) {
  switch (s) {
    case mlir::DiagnosticSeverity::Error: return Severity::error;
    case mlir::DiagnosticSeverity::Warning: return Severity::warning;
    case mlir::DiagnosticSeverity::Remark: return Severity::remark;
    case mlir::DiagnosticSeverity::Note: return Severity::note;
  }
  return Severity::error;
}

/// Inlined device functions: the call stack as notes, innermost first.
void addCallers(mlir::Location location, std::vector<Diagnostic>& notes) {
  while (auto call = mlir::dyn_cast<mlir::CallSiteLoc>(location)) {
    SourcePlace at = sourcePlace(call.getCaller());
    if (at.line) notes.push_back({Severity::note, "called from here", at.file, at.line, at.column, {}});
    location = call.getCaller();
  }
}

Diagnostic convert(mlir::Diagnostic& from) {
  SourcePlace at = sourcePlace(from.getLocation());
  Diagnostic out{severityOf(from.getSeverity()), from.str(), at.file, at.line, at.column, {}};
  addCallers(from.getLocation(), out.notes);
  for (mlir::Diagnostic& note : from.getNotes()) {
    // MLIR attaches the whole operation when it cannot show a source line; with a line it is only noise.
    if (at.line && note.str().starts_with("see current operation")) continue;
    out.notes.push_back(convert(note));
  }
  return out;
}

}  // namespace

SourcePlace sourcePlace(mlir::Location location) {
  if (auto at = mlir::dyn_cast<mlir::FileLineColLoc>(location))
    return {at.getFilename().str(), at.getLine(), at.getColumn()};
  if (auto range = mlir::dyn_cast<mlir::FileLineColRange>(location))
    return {range.getFilename().str(), range.getStartLine(), range.getStartColumn()};
  if (auto name = mlir::dyn_cast<mlir::NameLoc>(location)) return sourcePlace(name.getChildLoc());
  if (auto call = mlir::dyn_cast<mlir::CallSiteLoc>(location)) return sourcePlace(call.getCallee());
  if (auto fused = mlir::dyn_cast<mlir::FusedLoc>(location))
    for (mlir::Location part : fused.getLocations())
      if (SourcePlace at = sourcePlace(part); at.line) return at;
  return {};
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext* context, std::function<void(const Diagnostic&)> onRemark)
    : onRemark_(std::move(onRemark)), handler_(context, [this](mlir::Diagnostic& d) {
        Diagnostic converted = convert(d);
        if (converted.severity == Severity::error)
          errors_.push_back(std::move(converted));
        else if (onRemark_)
          onRemark_(converted);
        return mlir::success();
      }) {}

Error DiagnosticCollector::error(ErrorKind kind, std::string headline) {
  return Error{kind, std::move(headline), std::move(errors_)};
}

}  // namespace tile::ir
