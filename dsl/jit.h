// jit.h - the untyped half of a kernel: tracing, compiling, caching, loading and launching by words. kernel.h puts the
// types on; tools and catalogs that treat all kernels alike use AnyKernel directly. No MLIR, no LLVM.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "detail/emit.h"
#include "detail/reflect.h"
#include "stream_at.h"
#include "../runtime/device.h"

namespace tile {

class DiskCache;

/// One field of a kernel's configuration struct.
struct ConfigField {
  std::string name;
  detail::FieldKind kind = detail::FieldKind::integer;
  uint8_t bytes = 4;
  uint64_t default_word = 0;
};
/// A configuration, one word per field, in order.
using ConfigWords = std::vector<uint64_t>;

/// What the compiled code may take for granted about the arguments of a launch, one word per parameter, found by
/// looking at them (see kernel.h: Kernel::promises makes one of arguments). Empty or all zero: nothing, always right.
using Specialization = std::vector<uint64_t>;
/// In the word of a view: some dim repeats (stride 0), runs backwards or is too large for bulk tensor copies.
inline constexpr uint64_t kNoBulkCopies = uint64_t{1} << 32;
/// What a scalar's promise (encoding: kernel.h) says it is a multiple of.
inline int promised_multiple(uint64_t word) { return word & 4 ? 128 : word & 1 ? 16 : 1; }
/// What a view's promise (encoding: kernel.h) says dim `d`'s stride, in elements, and its size are multiples of.
inline int promised_stride(uint64_t word, int d, DType dtype) {
  const uint64_t level = word >> (5 + 3 * d) & 3;
  if (level) return level == 2 ? 16 : static_cast<int>(16 / size_of(dtype));
  return d < 7 ? 1 << (word >> (33 + 4 * d) & 3) : 1;
}
inline int promised_size(uint64_t word, int d) {
  if (word >> (5 + 3 * d) & 4) return 16;
  return d < 7 ? 1 << (word >> (35 + 4 * d) & 3) : 1;
}

/// How a kernel is compiled; k.options({...}) sets them. They are part of the cache's key.
struct KernelOptions {
  bool fast_math = true;   ///< approximate exp2, log2, division ... on GPUs (about 2 ulp in f32)
  bool line_info = false;  ///< source lines for profilers
  int num_warps = 0;       ///< 0: the kernel's own choice
  int stages = 0;          ///< for loops without a hint
  bool tma = true;         ///< bulk tensor copies where the target has them and the arguments can be addressed by them
  /// For launches of at most one program per multiprocessor. launch() finds out by itself where it matters.
  bool few_programs = false;
  std::string ptxas{};     ///< empty: look for it; "none": leave assembling to the driver
  bool operator==(const KernelOptions&) const = default;
};

/// What happens around compiling, process-wide. Environment variables give the defaults (runtime/env.def).
struct JitPolicy {
  enum class OnMiss : uint8_t {
    compile,
    fail
  } on_miss = OnMiss::compile;  ///< fail: launch only what is already loaded or on disk
  bool use_disk = true;
  std::shared_ptr<DiskCache>
      disk{};  ///< a cache of one's own (directory, mode, size: runtime/cache.h); null: the process's
  std::function<void(const std::string&)>
      on_compile{};  ///< told what is built and why: kernel, config, device, specialisation
  /// Shown the IR of what is compiled, after each stage of `stages` ("tile", "llvm", "ptx" ...): symbol, stage, text.
  std::function<void(const std::string&, const std::string&, const std::string&)> on_stage{};
  std::vector<std::string> stages{};
};
void set_jit_policy(JitPolicy);
JitPolicy jit_policy();

/// Counters of this process, for tests and reports.
struct JitStats {
  uint64_t traces = 0, compiles = 0, disk_hits = 0;
};
JitStats jit_stats();

namespace detail {
struct KernelCore;
struct TraceState;
struct LoadedKernel;
}  // namespace detail

/// A kernel traced for one configuration: its IR, or everything that is wrong with it. A default-constructed one has an
/// error that says so.
class Traced {
 public:
  bool ok() const;
  explicit operator bool() const { return ok(); }
  /// User errors with file, line and caret; empty message when ok().
  const Error& error() const;
  /// What is right and hardly meant: bodies that record nothing. TILE_REMARKS=1 prints them when a kernel is compiled.
  const std::vector<Diagnostic>& remarks() const;
  /// Tile IR. `locations`: with the user's file:line:col on every op.
  std::string text(bool locations = false) const;
  std::string hash() const;  ///< of the IR without locations, 32 hex digits
  size_t operations() const;
  const std::string& symbol() const;

 private:
  friend class AnyKernel;
  const detail::TraceState& state() const;
  std::shared_ptr<detail::TraceState> state_;
};

/// A compiled kernel without its parameter types. A default-constructed one cannot be launched (an Error); what it has
/// nothing to return for throws tile::Exception.
class AnyCompiled {
 public:
  AnyCompiled() = default;
  const KernelBinary& info() const;  ///< parameters, threads, shared memory, buffers; without the code
  const Resources& resources() const { return info().resources; }
  const std::string& symbol() const { return info().entry; }
  const Specialization& specialization() const;
  bool from_disk() const;     ///< found in the disk cache
  double compile_ms() const;  ///< tracing and compiling (or reading from disk) and loading
  Device& device() const;
  const std::shared_ptr<Module>& module() const;
  /// The IR after a stage ("traced", "tile", "layout", ... "ptx"): compiles once more and listens in.
  Result<std::string> ir(const std::string& stage) const;
  Result<std::string> ptx() const { return ir("ptx"); }
  /// Launches with arguments flattened into slots (runtime/abi.h). `found`: what Kernel::promises says of the
  /// arguments; code that relies on more refuses them with a user error.
  Status launch_slots(StreamAt stream, const Grid& grid, std::span<const uint64_t> slots,
                      std::span<const uint64_t> found) const;

 private:
  friend class AnyKernel;
  const detail::LoadedKernel& loaded() const;
  std::shared_ptr<detail::KernelCore> kernel_;
  std::shared_ptr<const detail::LoadedKernel> loaded_;
};

/// A kernel without its parameter types: configurations, arguments and what is known of them are words. Copies share
/// code and caches. Errors are values unless a comment says that it throws.
class AnyKernel {
 public:
  /// Fills the tiles of one trace: config words and the parameters' values.
  using Body = std::function<void(const uint64_t* config, const detail::Value* params)>;
  AnyKernel(std::string name, SrcLoc, std::vector<ConfigField>, std::vector<ParamInfo>, Body);
  // No move on purpose: a kernel that was moved from would be none, and moving saves nothing over sharing.
  AnyKernel(const AnyKernel&) = default;
  AnyKernel& operator=(const AnyKernel&) = default;

  const std::string& name() const;
  const std::vector<ConfigField>& fields() const;
  const std::vector<ParamInfo>& params() const;
  ConfigWords default_config() const;
  /// Changes fields of `config` from texts "BM=64", "causal=false", "dtype=bf16". Unknown fields and bad values are
  /// user errors that name the field, what it takes and the nearest spelling.
  Result<ConfigWords> parse_config(std::span<const std::string> assignments, ConfigWords config) const;
  /// "BM=128, causal=true".
  std::string describe_config(const ConfigWords&) const;
  /// Name, configuration and a hash, as in the symbol of the compiled code. Throws tile::Exception where the kernel
  /// cannot be traced.
  std::string symbol(const ConfigWords&) const;

  Traced trace(const ConfigWords&, const Specialization& = {}) const;
  /// What any code for this configuration needs at least, from the trace alone (well below a millisecond): registers of
  /// what its loops carry, shared memory of one stage of what its products read. An error names what does not fit the
  /// target; success promises nothing.
  Status check_budget(const std::string& target, const ConfigWords&, const Specialization& = {}) const;
  /// For a target by name ("sm_90a", "host"), without a device: what tools and ahead-of-time use need.
  Result<KernelBinary> compile_for(const std::string& target, const ConfigWords&, const Specialization& = {},
                                   const KernelOptions& = {}) const;
  /// For a device, through both caches. Thread safe; the same arguments give the same code object.
  Result<AnyCompiled> compile(const std::shared_ptr<Device>&, const ConfigWords&, const Specialization& = {},
                              const KernelOptions& = {}) const;
  /// The launch path: last used, then the memory cache, then compile(). Errors have notes with the line of the launch
  /// and that of the kernel. Where a configuration has 32 variants on a device, further ones take nothing for granted
  /// about integer scalars, so that values that change all the time do not compile all the time.
  Status launch(StreamAt, std::span<const uint64_t> config, std::span<const uint64_t> specialization, const Grid&,
                std::span<const uint64_t> slots) const;
  /// What the code loaded for a configuration was specialised to; empty when none is loaded.
  std::vector<Specialization> loaded_for(const ConfigWords&) const;
  /// Forgets what is loaded. No launch of this kernel may be in progress in another thread.
  void clear_memory_cache() const;

  void set_options(KernelOptions);
  const KernelOptions& options() const;

 protected:
  /// An error of a launch with its place and the kernel's.
  Error misused(StreamAt, Error) const;
  std::shared_ptr<detail::KernelCore> core_;
};

}  // namespace tile
