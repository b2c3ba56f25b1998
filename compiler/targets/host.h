// host.h - LLVM IR to a relocatable object for the host target.
#pragma once
#include <string>

#include "compiler/compiler.h"

namespace llvm {
class Module;
}

namespace tile::ir {

/// Optimises the module for target.cpu (with target.features) and returns the object file's bytes.
Result<std::string> emitObject(llvm::Module& module, const Target& target, const CompileOptions& options);

}  // namespace tile::ir
