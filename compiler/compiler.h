// compiler.h - tile IR in, KernelBinary out. Never allocates device memory, never launches, does not know the DSL.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/targets/target.h"
#include "runtime/abi.h"
#include "runtime/error.h"

namespace mlir {
class MLIRContext;
class ModuleOp;
class DialectRegistry;
}  // namespace mlir

namespace tile::ir {

/// Names of the IR stages, in order; a public contract of tools and dumps:
///   traced, tile, then gpu: pipelined, layout, gpu | host: cpu, then llvm, then ptx, cubin | asm, obj
struct StageSink {
  /// Called with (stage name, its text). Text is made only for stages `wants` returns true for.
  std::function<bool(const std::string& stage)> wants;
  std::function<void(const std::string& stage, const std::string& text)> take;
};

struct CompileOptions {
  int numWarps = 0;            ///< 0: the kernel's tile.num_warps, else the planner's choice
  int defaultStages = 0;       ///< for loops without a hint; 0: the planner's choice
#ifdef NDEBUG
  bool verifyEach = false;     ///< IR that a pass of ours left invalid is an internal error; release builds do not look
#else
  bool verifyEach = true;
#endif
  bool useTma = true;          ///< false: no bulk tensor copies (for arguments they cannot take)
  bool fewPrograms = false;    ///< for launches of at most one program per multiprocessor: each has one for itself
  bool raiseBoxes = true;      ///< false: what a kernel gathers through pointers stays gathered, though it be a box
  bool crowdedRoles = true;    ///< false: programs with roles share a multiprocessor where registers are sure to suffice
  int64_t reservedSharedBytes = 0;  ///< that rings of a producer leave free: what conversions turned out to need
  bool lineInfo = false;       ///< source lines for profilers
  bool fastMath = true;        ///< approximate exp2, log2, div, rsqrt ... on the GPU (about 2 ulp in f32; these flush
                               ///< f32 subnormals, ordinary arithmetic keeps them in every type)
  std::string ptxas;           ///< path; empty: look in TILE_PTXAS, CUDA_HOME, PATH. "none": emit PTX for the driver
  /// Products may read operands in registers (fragments of shared memory, too) when the next iteration of their loop
  /// begins. ptxas gives such registers away now and then (sass_in_flight.h). Unset: true where there is a ptxas, whose
  /// code is looked at, and false where the driver compiles the PTX, whose code nobody sees.
  std::optional<bool> registerOperandsInFlight;
  StageSink* stages = nullptr;
  std::function<void(const Diagnostic&)> onRemark;  ///< performance cliffs
  std::function<void(const std::string& stage, double ms)> onTime;
};

/// Registers every dialect a kernel may use (arith, math, scf, func, tile).
void registerDialects(mlir::DialectRegistry& registry);

/// Compiles the module's one kernel (func.func with `tile.kernel`). The module is consumed: passes rewrite it.
Result<KernelBinary> compileKernel(mlir::ModuleOp module, const Target& target, const CompileOptions& options);

/// The same from text; errors carry line and column of the text under `fileName`.
Result<KernelBinary> compileText(const std::string& text, const std::string& fileName, const Target& target,
                                 const CompileOptions& options);

/// Parses and verifies only: is this text one kernel of the language?
Status checkText(const std::string& text, const std::string& fileName);

/// What a change of compiler can change in the output: version, LLVM, ptxas. Part of the cache key.
std::string compilerFingerprint(const Target& target, const CompileOptions& options);

}  // namespace tile::ir
