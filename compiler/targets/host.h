// host.h - LLVM IR to a relocatable object for the host target, and what code generation asks about its CPU.
#pragma once
#include <string>

#include "compiler/compiler.h"

namespace llvm {
class Module;
}

namespace tile::ir {

/// Instructions whose absence changes what the host back end emits.
struct HostFeatures {
  bool fma = false;   ///< without it a fused multiply-add is a slow library call
  bool f16c = false;  ///< without it f16 conversions are integer arithmetic
};
HostFeatures hostFeatures(const Target& target);

/// Optimises the module for target.cpu (with target.features) and returns the object file's bytes.
Result<std::string> emitObject(llvm::Module& module, const Target& target, const CompileOptions& options);
/// The same as assembly text, for people; the module is consumed as well.
Result<std::string> emitAssembly(llvm::Module& module, const Target& target, const CompileOptions& options);

}  // namespace tile::ir
