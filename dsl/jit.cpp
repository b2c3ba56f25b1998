// jit.cpp - from a kernel to running code: loads what build_binary.cpp makes; the launch path over the memory cache.
#include "dsl/jit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "compiler/targets/host_loader.h"
#include "dsl/tracing/kernel_core.h"
#include "dsl/tracing/underway.h"
#include "runtime/env.h"
#include "runtime/host/host_device.h"

namespace tile {
namespace detail {

bool LoadedKernel::is(const Device* d, std::span<const uint64_t> c, std::span<const uint64_t> s) const {
  return device.get() == d && std::equal(c.begin(), c.end(), config.begin(), config.end()) &&
         std::equal(s.begin(), s.end(), specialization.begin(), specialization.end());
}

namespace {

// Before main: a program may load code that was compiled earlier before it compiles any.
[[maybe_unused]] const bool loader_set = (set_host_loader(&ir::loadHostObject), true);

void load_now(LoadedKernel& k, const KernelCore& core, const std::string& because = {}) {
  const auto start = std::chrono::steady_clock::now();
  auto fail = [&](Error e) { k.error = std::make_shared<const Error>(std::move(e)); };
  const DeviceProperties& p = k.device->properties();
  if (p.target.empty())
    return fail(
        {ErrorKind::device, fmt::format("device {} ({}) has no target of ours", k.device->name(), p.model), {}});
  const std::string why = fmt::format("device {}, arguments {}{}", k.device->name(),
                                      describe_specialization(core.params, k.specialization), because);
  auto build = [&](const std::string& reason) -> Result<std::shared_ptr<Module>> {
    Result<KernelBinary> binary =
        build_binary(core, k.config, k.specialization, p.target, p.needs_ptx, k.options, reason, k.from_disk,
                     &k.narrow);
    if (!binary) return binary.error();
    return k.device->load(*binary);
  };
  Result<std::shared_ptr<Module>> module = build(why);
  if (!module && module.error().needs_plain_copies && k.options.tma) {
    k.options.tma = false;
    module = build(why + ", without bulk copies: " + module.error().message);
  }
  if (!module) return fail(module.error());
  k.module = std::move(*module);
  k.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// Whether trying again later may end differently.
bool may_pass(const Error& e) { return e.kind != ErrorKind::user && e.kind != ErrorKind::compile; }

std::shared_ptr<LoadedKernel> no_entry(Error why) {
  auto entry = std::make_shared<LoadedKernel>();
  entry->error = std::make_shared<const Error>(std::move(why));
  return entry;
}

/// What a launch asks for beyond kMostVariants: nothing about integer scalars, which are what varies without end.
constexpr size_t kMostVariants = 32;
Specialization without_scalars(const KernelCore& core, std::span<const uint64_t> spec) {
  Specialization out(spec.begin(), spec.end());
  for (size_t i = 0; i < out.size() && i < core.params.size(); ++i)
    if (core.params[i].kind == ParamInfo::scalar) out[i] = 0;
  return out;
}

void remark_on_variants(const KernelCore& core, const ConfigWords& config) {
  if (!env_flag(Env::remarks)) return;
  const std::string described = describe_config(core.fields, config, ", ");
  const Diagnostic remark{Severity::remark,
                          fmt::format("kernel '{}'{} has {} variants for different arguments: from here on its code takes "
                                      "nothing for granted about integer scalars",
                                      core.name, described.empty() ? "" : " {" + described + "}", kMostVariants),
                          core.loc.file_name(), core.loc.line(), core.loc.column(), {}};
  fmt::print(stderr, "{}", remark.to_string());
}

/// Which of a kernel's code a launch takes.
struct Wanted {
  bool few = false;      ///< for at most one program per multiprocessor
  bool bounded = false;  ///< beyond kMostVariants of a configuration: what takes nothing for granted about integer scalars
  const Stream* stream = nullptr;
  const Grid* grid = nullptr;
  /// Whether code for the other kind of launches, which is as right, will do where it is loaded: nothing can be loaded
  /// while a graph is captured, and a launch without programs is not worth a compilation.
  bool takes_either() const { return grid && (grid->empty() || stream->capturing()); }
};

/// The entry for `spec`; null: there is none. The cache is locked.
std::shared_ptr<LoadedKernel> find_entry(const KernelCore& core, const Device* device, std::span<const uint64_t> config,
                                         std::span<const uint64_t> spec, const Wanted& wanted) {
  std::shared_ptr<LoadedKernel> other;
  for (const auto& e : core.entries) {
    if (!e->is(device, config, spec)) continue;
    if (e->is_for(wanted.few)) return e;
    if (e->is_loaded()) other = e;
  }
  return other && wanted.takes_either() ? other : nullptr;
}

/// Where nothing may be compiled, an entry that found no code takes that which is loaded for the other kind of launches.
void take_others(LoadedKernel& k, const KernelCore& core) {
  if (!k.error || !may_pass(*k.error) || jit_policy().on_miss != JitPolicy::OnMiss::fail) return;
  std::shared_lock lock(core.mutex);
  for (const auto& e : core.entries)
    if (e.get() != &k && e->is(k.device.get(), k.config, k.specialization) && e->is_loaded()) {
      k.module = e->module;
      k.narrow = e->narrow;
      k.error = nullptr;
      return;
    }
}

/// Finds or makes the entry; an entry that failed for a reason that may pass (device, policy) is not kept.
std::shared_ptr<LoadedKernel> find_or_build(KernelCore& core, const std::shared_ptr<Device>& device,
                                            std::span<const uint64_t> config, std::span<const uint64_t> spec,
                                            const Wanted& wanted) {
  std::shared_ptr<LoadedKernel> entry;
  Specialization fewer;
  {
    std::shared_lock lock(core.mutex);
    entry = find_entry(core, device.get(), config, spec, wanted);
    if (!entry && wanted.bounded) {
      size_t variants = 0;
      for (const auto& e : core.entries)
        variants += e->is(device.get(), config, e->specialization) && e->is_for(wanted.few);
      if (variants >= kMostVariants) {
        fewer = without_scalars(core, spec);
        spec = fewer;
        entry = find_entry(core, device.get(), config, spec, wanted);
      }
    }
  }
  if (!entry)
    if (std::optional<Error> refusal = cannot_trace(core, config, spec)) return no_entry(std::move(*refusal));
  if (!entry) {
    std::unique_lock lock(core.mutex);
    entry = find_entry(core, device.get(), config, spec, wanted);
    if (!entry) {
      entry = std::make_shared<LoadedKernel>();
      entry->config.assign(config.begin(), config.end());
      entry->specialization.assign(spec.begin(), spec.end());
      entry->device = device;
      entry->options = core.options;
      entry->options.few_programs = wanted.few;
      core.entries.push_back(entry);
    }
  }
  if (!entry->made.load(std::memory_order_acquire)) {
    // Whoever asks for it while making it would wait for itself.
    const Underway step(Underway::loading, entry.get(), core, config);
    if (step.refusal()) return no_entry(*step.refusal());
    if (!fewer.empty()) remark_on_variants(core, entry->config);
    std::call_once(entry->once, [&] {
      load_now(*entry, core);
      take_others(*entry, core);
    });
    entry->made.store(true, std::memory_order_release);
  }
  if (entry->error && may_pass(*entry->error)) {
    std::unique_lock lock(core.mutex);
    std::erase(core.entries, entry);
  }
  return entry;
}

// Arguments that the promises let through and tensor maps do not take: the same kernel without bulk copies, made once.
[[gnu::cold, gnu::noinline]] Status launch_plain(const KernelCore& core, const LoadedKernel& k, const Error& refusal,
                                                 Stream& stream, const Grid& grid, std::span<const uint64_t> slots) {
  std::shared_ptr<LoadedKernel> plain;
  {
    const Underway step(Underway::loading, &k.plain, core, k.config);
    if (step.refusal()) return *step.refusal();
    std::lock_guard lock(k.plain_mutex);
    if (k.plain && k.plain->error && may_pass(*k.plain->error)) k.plain = nullptr;
    if (!k.plain) {
      k.plain = std::make_shared<LoadedKernel>();
      k.plain->config = k.config;
      k.plain->specialization = k.specialization;
      k.plain->device = k.device;
      k.plain->options = k.options;
      k.plain->options.tma = false;
      load_now(*k.plain, core, ", without bulk copies: " + refusal.message);
    }
    plain = k.plain;
  }
  if (plain->error) return *plain->error;
  return stream.launch(*plain->module, grid, slots.data(), slots.size());
}

// What is wrong with a launch, with its place and, where nothing of the kernel is named yet, the kernel's.
[[gnu::cold, gnu::noinline]] Error misused(const KernelCore& core, StreamAt stream, Error error) {
  const bool placed = !error.diagnostics.empty();
  error = stream.refuse(std::move(error));
  if (!placed)
    error.diagnostics.push_back({Severity::note, fmt::format("kernel '{}' is defined here", core.name),
                                 core.loc.file_name(), core.loc.line(), core.loc.column(), {}});
  return error;
}

Status launch_loaded(const KernelCore& core, const LoadedKernel& k, Stream& stream, const Grid& grid,
                     std::span<const uint64_t> slots) {
  if (!k.narrow.hold(grid, slots)) [[unlikely]]
    return k.narrow.problem(core.name, grid, slots);
  Status launched = stream.launch(*k.module, grid, slots.data(), slots.size());
  if (launched || !launched.error().needs_plain_copies || !k.options.tma) [[likely]]
    return launched;
  return launch_plain(core, k, launched.error(), stream, grid, slots);
}

}  // namespace
}  // namespace detail

// ---- StreamAt

namespace {

Diagnostic note_at(const SrcLoc& loc, std::string message) {
  return {Severity::note, std::move(message), loc.file_name(), loc.line(), loc.column(), {}};
}

}  // namespace

Error StreamAt::refuse(Error error) const {
  static constexpr const char* kNote = "launched here";
  for (const Diagnostic& d : error.diagnostics) {
    if (d.message == kNote) return error;
    for (const Diagnostic& n : d.notes)
      if (n.message == kNote) return error;
  }
  // Behind what is wrong in the kernel itself, if that is where the problem is.
  auto& list = error.diagnostics.empty() ? error.diagnostics : error.diagnostics.back().notes;
  list.push_back(note_at(loc_, kNote));
  return error;
}

// ---- Traced

namespace {

/// What a default-constructed Traced shows.
const detail::TraceState& nothing_traced() {
  static const detail::TraceState* state = [] {
    auto* s = new detail::TraceState;
    s->error = user_error("nothing was traced: this Traced is default-constructed or moved from; trace() makes one");
    return s;
  }();
  return *state;
}

}  // namespace

const detail::TraceState& Traced::state() const { return state_ ? *state_ : nothing_traced(); }
bool Traced::ok() const { return state().ok; }
const Error& Traced::error() const { return state().error; }
const std::vector<Diagnostic>& Traced::remarks() const { return state().remarks; }
std::string Traced::hash() const { return ok() ? state().hash.hex() : ""; }
size_t Traced::operations() const { return state().operations; }
const std::string& Traced::symbol() const { return state().symbol; }
std::string Traced::text(bool locations) const {
  std::string out;
  if (!ok() || !state_->module) return out;
  llvm::raw_string_ostream os(out);
  mlir::OpPrintingFlags flags;
  if (locations) flags.enableDebugInfo(true, false);
  state_->module->print(os, flags);
  return out;
}

// ---- AnyKernel

AnyKernel::AnyKernel(std::string name, SrcLoc loc, std::vector<ConfigField> fields, std::vector<ParamInfo> params,
                     Body body)
    : core_(std::make_shared<detail::KernelCore>()) {
  core_->name = std::move(name);
  core_->loc = loc;
  core_->fields = std::move(fields);
  core_->params = std::move(params);
  core_->body = std::move(body);
}

const std::string& AnyKernel::name() const { return core_->name; }
const std::vector<ConfigField>& AnyKernel::fields() const { return core_->fields; }
const std::vector<ParamInfo>& AnyKernel::params() const { return core_->params; }
const KernelOptions& AnyKernel::options() const { return core_->options; }

void AnyKernel::set_options(KernelOptions o) {
  // Other code comes out: a core, and with it a memory cache, of its own.
  auto core = std::make_shared<detail::KernelCore>();
  core->name = core_->name;
  core->loc = core_->loc;
  core->fields = core_->fields;
  core->params = core_->params;
  core->body = core_->body;
  core->options = std::move(o);
  core_ = std::move(core);
}

Traced AnyKernel::trace(const ConfigWords& config, const Specialization& spec) const {
  Traced t;
  t.state_ = detail::trace_kernel(*core_, config, spec);
  return t;
}

std::string AnyKernel::symbol(const ConfigWords& config) const {
  const Traced traced = trace(config);
  if (!traced) throw Exception(traced.error());
  return traced.symbol();
}

Result<KernelBinary> AnyKernel::compile_for(const std::string& target, const ConfigWords& config,
                                            const Specialization& spec, const KernelOptions& options) const {
  bool from_disk = false;
  return detail::build_binary(*core_, config, spec, target, false, options, "target " + target, from_disk);
}

Result<AnyCompiled> AnyKernel::compile(const std::shared_ptr<Device>& device, const ConfigWords& config,
                                       const Specialization& spec, const KernelOptions& options) const {
  if (!device) return Error{ErrorKind::user, fmt::format("kernel '{}': no device given", name()), {}};
  AnyKernel with = *this;
  KernelOptions alike = options;  // both kinds of code lie in one memory cache
  alike.few_programs = core_->options.few_programs;
  if (!(alike == core_->options)) with.set_options(options);
  const Specialization full = spec.empty() ? Specialization(core_->params.size(), 0) : spec;
  std::shared_ptr<detail::LoadedKernel> entry =
      detail::find_or_build(*with.core_, device, config, full, {.few = options.few_programs});
  if (entry->error) return *entry->error;
  AnyCompiled c;
  c.kernel_ = with.core_;
  c.loaded_ = std::move(entry);
  return c;
}

Status AnyKernel::launch(StreamAt stream, std::span<const uint64_t> config, std::span<const uint64_t> spec,
                         const Grid& grid, std::span<const uint64_t> slots) const {
  detail::KernelCore& core = *core_;
  Device& device = stream.device();
  const bool few = core.options.few_programs || device.properties().has_few(grid);
  const detail::LoadedKernel* k = core.last.load(std::memory_order_acquire);
  std::shared_ptr<detail::LoadedKernel> entry;
  if (!k || !k->is(&device, config, spec) || !k->is_for(few)) {
    entry = detail::find_or_build(core, device.shared_from_this(), config, spec,
                                  {.few = few, .bounded = true, .stream = &static_cast<Stream&>(stream), .grid = &grid});
    if (entry->error) return misused(stream, *entry->error);
    core.last.store(entry.get(), std::memory_order_release);
    k = entry.get();
  }
  Status launched = detail::launch_loaded(core, *k, stream, grid, slots);
  if (!launched) [[unlikely]]
    return misused(stream, launched.error());
  return launched;
}

[[gnu::cold]] Error AnyKernel::misused(StreamAt stream, Error error) const {
  return detail::misused(*core_, stream, std::move(error));
}

std::vector<Specialization> AnyKernel::loaded_for(const ConfigWords& config) const {
  std::vector<Specialization> out;
  std::shared_lock lock(core_->mutex);
  for (const auto& e : core_->entries)
    if (e->config == config) out.push_back(e->specialization);
  return out;
}

void AnyKernel::clear_memory_cache() const {
  std::unique_lock lock(core_->mutex);
  core_->last.store(nullptr);
  core_->entries.clear();
}

// ---- AnyCompiled

static Error nothing_compiled() {
  return user_error("no kernel was compiled: this Compiled is default-constructed or moved from; compile() makes one");
}

const detail::LoadedKernel& AnyCompiled::loaded() const {
  if (!loaded_) throw Exception(nothing_compiled());
  return *loaded_;
}
const KernelBinary& AnyCompiled::info() const { return loaded().module->info(); }
const Specialization& AnyCompiled::specialization() const { return loaded().specialization; }
bool AnyCompiled::from_disk() const { return loaded().from_disk; }
double AnyCompiled::compile_ms() const { return loaded().milliseconds; }
Device& AnyCompiled::device() const { return *loaded().device; }
const std::shared_ptr<Module>& AnyCompiled::module() const { return loaded().module; }

Result<std::string> AnyCompiled::ir(const std::string& stage) const {
  if (!loaded_) return nothing_compiled();
  std::string out;
  std::vector<std::string> seen;
  ir::StageSink sink;
  sink.wants = [&](const std::string& s) {
    seen.push_back(s);
    return s == stage;
  };
  sink.take = [&](const std::string& s, const std::string& text) {
    if (s == stage) out = text;
  };
  std::shared_ptr<detail::TraceState> trace = detail::trace_kernel(*kernel_, loaded_->config, loaded_->specialization);
  if (!trace->ok) return trace->error;
  const DeviceProperties& p = loaded_->device->properties();
  Result<KernelBinary> binary =
      detail::compile_trace(*trace, *kernel_, loaded_->config, p.target, p.needs_ptx, loaded_->options, &sink);
  if (!binary) return binary.error();
  if (out.empty()) {
    std::string known;
    for (const std::string& s : seen) known += (known.empty() ? "" : ", ") + s;
    return Error{ErrorKind::user, fmt::format("there is no stage '{}' for {}; stages: {}", stage, p.target, known), {}};
  }
  return out;
}

Status AnyCompiled::launch_slots(StreamAt stream, const Grid& grid, std::span<const uint64_t> slots,
                                 std::span<const uint64_t> found) const {
  if (!loaded_) return stream.refuse(nothing_compiled());
  auto refuse = [&](std::string message) {
    return detail::misused(*kernel_, stream, user_error(std::move(message)));
  };
  if (&stream.device() != loaded_->device.get())
    return refuse(fmt::format("{} was compiled for device {}, the stream belongs to {}", symbol(),
                              loaded_->device->name(), stream.device().name()));
  for (size_t i = 0; i < found.size(); ++i)
    if (!detail::keeps_promise(kernel_->params[i], loaded_->specialization[i], found[i]))
      return refuse(fmt::format("{}: argument {} does not keep what this code was specialised to: needs {}, found {}",
                                symbol(), i,
                                detail::describe_specialization({kernel_->params[i]},
                                                                std::span(&loaded_->specialization[i], 1)),
                                detail::describe_specialization({kernel_->params[i]}, found.subspan(i, 1))));
  Status launched = detail::launch_loaded(*kernel_, *loaded_, stream, grid, slots);
  if (!launched) [[unlikely]]
    return detail::misused(*kernel_, stream, launched.error());
  return launched;
}

}  // namespace tile
