// host.h - LLVM IR to a relocatable object for the host target, and what code generation asks about its CPU.
#pragma once
#include <memory>
#include <string>

#include "compiler/compiler.h"

namespace llvm {
class MCSubtargetInfo;
class Module;
}  // namespace llvm

namespace tile::ir {

/// Instructions whose absence changes what the host back end emits.
struct HostFeatures {
  bool fma = false;   ///< without it a fused multiply-add is a slow library call
  bool f16c = false;  ///< without it f16 conversions are integer arithmetic
  bool powersOfTwo = false;  ///< AVX-512's vreduce and vscalef, for vectors of every length
};
HostFeatures hostFeatures(const Target& target);

/// LLVM's tables of the machine this runs on, for a CPU and features as it spells them. Null where this LLVM was built
/// for another host.
std::unique_ptr<llvm::MCSubtargetInfo> hostSubtarget(const std::string& cpu, const std::string& features);

/// Optimises the module for target.cpu (with target.features) and returns the object file's bytes.
Result<std::string> emitObject(llvm::Module& module, const Target& target, const CompileOptions& options);
/// The same as assembly text, for people; the module is consumed as well.
Result<std::string> emitAssembly(llvm::Module& module, const Target& target, const CompileOptions& options);

}  // namespace tile::ir
