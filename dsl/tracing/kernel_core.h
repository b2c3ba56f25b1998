// kernel_core.h - what stands behind AnyKernel, Traced and AnyCompiled. Internal to the dsl library.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "dsl/tracing/context_pool.h"
#include "dsl/tracing/narrow_indices.h"
#include "dsl/jit.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "runtime/hash.h"

namespace tile::detail {

/// Code for one (configuration, specialisation, device), found or made once; or why there is none.
struct LoadedKernel {
  ConfigWords config;
  Specialization specialization;
  std::shared_ptr<Device> device;
  std::once_flag once;
  std::atomic<bool> made{false};  // `once` is over
  // Set inside `once`:
  std::shared_ptr<Module> module;
  std::shared_ptr<const Error> error;
  bool from_disk = false;
  double milliseconds = 0;
  KernelOptions options;
  NarrowIndices narrow;

  // The same code without bulk copies, for arguments that only look like its specialisation (made when one is
  // launched).
  mutable std::mutex plain_mutex;
  mutable std::shared_ptr<LoadedKernel> plain;

  bool is(const Device* d, std::span<const uint64_t> c, std::span<const uint64_t> s) const;
  /// Whether it is the code for launches of few programs (or of many). Once made, what does not vary is for all.
  bool is_for(bool few) const { return options.few_programs == few || (is_loaded() && !module->info().varies_with_grid); }
  bool is_loaded() const { return made.load(std::memory_order_acquire) && module; }
};

struct KernelCore : std::enable_shared_from_this<KernelCore> {
  std::string name;
  SrcLoc loc;
  std::vector<ConfigField> fields;
  std::vector<ParamInfo> params;
  AnyKernel::Body body;
  KernelOptions options;

  // Memory cache. Entries stay until cleared, so `last` may be read without a lock.
  mutable std::shared_mutex mutex;
  std::vector<std::shared_ptr<LoadedKernel>> entries;
  std::atomic<const LoadedKernel*> last{nullptr};
};

/// A finished trace. The module lives in the leased context.
struct TraceState {
  std::unique_ptr<ContextLease> lease;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Error error;
  std::vector<Diagnostic> remarks;
  bool ok = false;
  Hash128 hash;
  size_t operations = 0;
  std::string symbol;
  NarrowIndices narrow;  ///< what launches look at
  ~TraceState() { module = nullptr; }  // before its context goes back
};

/// What jit_stats() reports.
struct Counters {
  std::atomic<uint64_t> traces{0}, compiles{0}, disk_hits{0};
};
Counters& counters();

/// Why this cannot be traced or compiled: the process, or this thread, is ending; words that are not those of the
/// kernel's fields and parameters. A specialisation is empty (no promises) or has a word for every parameter.
std::optional<Error> cannot_trace(const KernelCore& core, std::span<const uint64_t> config,
                                  std::span<const uint64_t> spec);
std::shared_ptr<TraceState> trace_kernel(const KernelCore& core, const ConfigWords& config, const Specialization& spec);
Result<KernelBinary> compile_trace(TraceState& trace, const KernelCore& core, const ConfigWords& config,
                                   const std::string& target, bool needs_ptx, const KernelOptions& options,
                                   ir::StageSink* sink);
/// Trace, disk cache, compiler.
Result<KernelBinary> build_binary(const KernelCore& core, const ConfigWords& config, const Specialization& spec,
                                  const std::string& target, bool needs_ptx, const KernelOptions& options,
                                  const std::string& why, bool& from_disk, NarrowIndices* narrow = nullptr);

std::string describe_config(const std::vector<ConfigField>& fields, const ConfigWords& config, const char* separator);
/// Whether arguments that look like `found` may run code specialised to `needed` (words as in kernel.h).
bool keeps_promise(const ParamInfo& param, uint64_t needed, uint64_t found);
std::string describe_specialization(const std::vector<ParamInfo>& params, std::span<const uint64_t> spec);

}  // namespace tile::detail
