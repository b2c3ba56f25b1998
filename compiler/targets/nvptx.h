// nvptx.h - LLVM IR to PTX, and PTX to a cubin by a ptxas subprocess.
#pragma once
#include <memory>
#include <string>

#include "compiler/compiler.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace llvm {
class Module;
}

namespace tile::ir {

/// Gives a fresh module the triple and data layout of the target (64-bit generic and global pointers, 32-bit shared
/// ones). The emitter calls it first, so that everything it folds already uses the right pointer sizes.
void setNvptxTarget(llvm::Module& module, const Target& target);

/// Optimises the module (it is consumed) and returns PTX text. `again`: what came of it before spilled registers.
Result<std::string> assemblePtx(llvm::Module& module, const Target& target, const CompileOptions& options,
                                bool again = false);

/// Path of ptxas: options.ptxas, TILE_PTXAS, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda. Empty when there is none, or
/// when the first of these that is set says "none": the driver then compiles the PTX.
std::string findPtxas(const CompileOptions& options);

/// In front of a kernel author's own assembly in the PTX, with its place behind it: FILE:LINE. Where ptxas finds fault
/// with the assembly, that place is in the error.
inline constexpr const char* kUserAsmMark = "// assembly of ";

/// Assembles PTX to cubin bytes. Registers, spills, stack and the assembler's log go to `resources`; spills and C75xx
/// warnings (serialised tensor-core pipelines) go to options.onRemark. Errors name the kernel and the target. What ptxas
/// does badly (spills with registers left, registers of products in flight used for other values) is assembled again.
Result<std::string> runPtxas(const std::string& ptx, const Target& target, const CompileOptions& options,
                             Resources& resources);

/// The same, but what ptxas makes of the text at the first try.
Result<std::string> runPtxasOnce(const std::string& ptx, const Target& target, const CompileOptions& options,
                                 Resources& resources);

/// As runPtxas, for code that may not be kept: without remarks.
Result<std::string> tryPtxas(const std::string& ptx, const Target& target, const CompileOptions& options,
                             Resources& resources);

/// Bytes that threads write to memory and read back for lack of registers.
inline int spilledBytes(const Resources& r) { return r.spill_store_bytes + r.spill_load_bytes; }
/// Whether products of warpgroups wait for each other (warnings C75xx).
inline bool serialises(const Resources& r) { return r.log.find("C75") != std::string::npos; }

/// Cubin bytes of a module (`emitted` makes it once more) whose code, `ptx`, spilled registers as `resources` say: in
/// another order of what it computes (results_early.h, order_by_use.h), and without constant_offsets.h. Those and their
/// resources where fewer registers spill and nothing else is worse.
std::optional<std::string> assembleAgain(llvm::function_ref<std::unique_ptr<llvm::Module>()> emitted,
                                         const std::string& ptx, const Target& target, const CompileOptions& options,
                                         Resources& resources);

/// Cubin bytes of code, `ptx`, whose registers leave room for one program less on a multiprocessor than slightly fewer
/// would, in those, and their resources; nullopt where that spills (more than two words, without products) or makes
/// products that a loop repeats wait for each other, or `sharedBytes` have no room for another program.
std::optional<std::string> withAnotherProgram(const std::string& ptx, int64_t sharedBytes, const Target& target,
                                              const CompileOptions& options, Resources& resources);
/// Whether that would be tried.
bool mayHaveAnotherProgram(const std::string& ptx, int64_t sharedBytes, const Target& target,
                           const Resources& resources);

/// Cubin bytes of code, `ptx`, whose loads wait for each other in `cubin`, with more registers, and their resources;
/// nullopt where no more loads come together, or it spills.
std::optional<std::string> withLoadsTogether(const std::string& ptx, const std::string& cubin, int64_t sharedBytes,
                                             const Target& target, const CompileOptions& options,
                                             Resources& resources);
/// Whether that would be tried.
bool mayLoadTogether(const std::string& ptx, const std::string& cubin, const Target& target,
                     const CompileOptions& options, const Resources& resources);

/// Cubin bytes of code, `ptx`, that waits at barriers, in one step of registers less, and their resources; nullopt where
/// no more programs fit on a multiprocessor for it, or the code is worse than in `cubin`.
std::optional<std::string> withMoreWarps(const std::string& ptx, const std::string& cubin, int64_t sharedBytes,
                                         const Target& target, const CompileOptions& options, Resources& resources);
/// Whether that would be tried.
bool mayHaveMoreWarps(const std::string& ptx, int64_t sharedBytes, const Target& target, const Resources& resources);

/// The most registers of a thread that leave a multiprocessor so many eighths of its programs; 0: none known.
int boundOfSameWarps(int threads, int registers, int64_t sharedBytes, const Target& target, int eighths = 7);
/// Cubin bytes of code, `ptx`, whose loads wait for each other in `cubin`, with that bound, and their resources; nullopt
/// where no more loads come together, or it spills.
std::optional<std::string> withSameWarps(const std::string& ptx, const std::string& cubin, int64_t sharedBytes,
                                         const Target& target, const CompileOptions& options, Resources& resources);

/// Fills `resources` from the text `ptxas -v` printed; the warnings in it, one string each, are returned.
std::vector<std::string> parsePtxasLog(const std::string& log, Resources& resources);

}  // namespace tile::ir
