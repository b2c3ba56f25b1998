// debug_info.cpp - line tables from MLIR locations.
#include "compiler/gpu/lowering/debug_info.h"

#include "compiler/diagnostics.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Path.h"

namespace tile::ir {

DebugInfo::DebugInfo(llvm::Module& module, llvm::Function& function, mlir::func::FuncOp kernel) : builder_(module) {
  SourcePlace place = sourcePlace(kernel.getLoc());
  llvm::DIFile* home = file(place.file.empty() ? "kernel" : place.file);
  builder_.createCompileUnit(llvm::DISourceLanguageName(llvm::dwarf::DW_LANG_C_plus_plus_14), home, "tile",
                             /*isOptimized=*/true, "", 0, "", llvm::DICompileUnit::DebugDirectivesOnly);
  auto* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  subprogram_ = builder_.createFunction(home, function.getName(), function.getName(), home, place.line, type,
                                        place.line, llvm::DINode::FlagZero,
                                        llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
  function.setSubprogram(subprogram_);
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
}

llvm::DIFile* DebugInfo::file(llvm::StringRef path) {
  llvm::DIFile*& entry = files_[path];
  if (!entry) entry = builder_.createFile(llvm::sys::path::filename(path), llvm::sys::path::parent_path(path));
  return entry;
}

void DebugInfo::setLocation(llvm::IRBuilder<>& b, mlir::Location location) {
  SourcePlace place = sourcePlace(location);
  if (place.line == 0) {
    if (!b.getCurrentDebugLocation())
      b.SetCurrentDebugLocation(llvm::DILocation::get(b.getContext(), 0, 0, subprogram_));
    return;
  }
  llvm::DIScope*& scope = scopes_[place.file];
  if (!scope) scope = builder_.createLexicalBlockFile(subprogram_, file(place.file));
  b.SetCurrentDebugLocation(llvm::DILocation::get(b.getContext(), place.line, place.column, scope));
}

void DebugInfo::finish() { builder_.finalize(); }

}  // namespace tile::ir
