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
  bool amxBf16 = false;  ///< a matrix unit for products of bf16, which takes subnormals as 0
  bool amxInt8 = false;  ///< and of i8
};
HostFeatures hostFeatures(const Target& target);

/// Asks the system, once, for the right to use the matrix unit's registers in this process: it saves 8 KB more for each
/// thread that does. False where it has none to give.
bool requestMatrixUnit();

/// LLVM's tables of the machine this runs on, for a CPU and features as it spells them. Null where this LLVM was built
/// for another host.
std::unique_ptr<llvm::MCSubtargetInfo> hostSubtarget(const std::string& cpu, const std::string& features);

/// Optimises the module for target.cpu (with target.features) and returns the object file's bytes.
Result<std::string> emitObject(llvm::Module& module, const Target& target, const CompileOptions& options);
/// The same as assembly text, for people; the module is consumed as well.
Result<std::string> emitAssembly(llvm::Module& module, const Target& target, const CompileOptions& options);

}  // namespace tile::ir
