// build_binary.cpp - from a trace to the bytes of a kernel: the process's policy, dumps of stages, disk cache, compiler.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "dsl/jit.h"
#include "dsl/tracing/kernel_core.h"
#include "dsl/tracing/underway.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "runtime/cache.h"
#include "runtime/env.h"

namespace tile {
namespace detail {
namespace {

struct PolicyHolder {
  std::mutex mutex;
  JitPolicy policy;
};
PolicyHolder& policy_holder() {
  static PolicyHolder* p = new PolicyHolder;
  return *p;
}

Result<const ir::Target*> target_by_name(const std::string& name) {
  static std::mutex mutex;
  static auto* known = new std::vector<std::pair<std::string, std::unique_ptr<ir::Target>>>;
  std::lock_guard lock(mutex);
  for (auto& [n, t] : *known)
    if (n == name) return t.get();
  Result<ir::Target> found = ir::lookupTarget(name);
  if (!found) return found.error();
  known->emplace_back(name, std::make_unique<ir::Target>(std::move(*found)));
  return known->back().second.get();
}

ir::CompileOptions compile_options(const KernelOptions& o, bool needs_ptx) {
  ir::CompileOptions c;
  c.numWarps = o.num_warps;
  c.defaultStages = o.stages;
  c.lineInfo = o.line_info;
  c.useTma = o.tma;
  c.fewPrograms = o.few_programs;
  c.fastMath = o.fast_math;
  c.ptxas = needs_ptx ? "none" : o.ptxas;
  if (needs_ptx) c.registerOperandsInFlight = true;  // other GPUs have no such products, only simulated ones
  return c;
}

bool lists(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

/// Prints the stages TILE_DUMP asks for, and notes in `passed` which there were.
bool dump_sink(ir::StageSink& sink, const std::string& symbol, std::string& passed) {
  const std::optional<std::string> stages = env_text(Env::dump);
  if (!stages) return false;
  sink.wants = [list = *stages, &passed](const std::string& s) {
    if (!lists(passed, s)) passed += (passed.empty() ? "" : ",") + s;
    return list == "all" || lists(list, s);
  };
  sink.take = [symbol](const std::string& s, const std::string& text) {
    fmt::print(stderr, "// ---- {}: {}\n{}\n", symbol, s, text);
  };
  return true;
}

/// A stage that did not come by: mistyped, or another target's.
void report_unknown_stages(const std::string& passed, const std::string& target) {
  const std::string wanted = env_text(Env::dump).value_or("");
  std::istringstream names(wanted);
  for (std::string name; std::getline(names, name, ',');)
    if (!name.empty() && name != "all" && !lists(passed, name))
      env_ignored(Env::dump, wanted, fmt::format("{} has no stage '{}', its stages are {}", target, name, passed));
}

/// Hands out the stages the policy asks for.
bool policy_sink(ir::StageSink& sink, const std::string& symbol) {
  JitPolicy policy = jit_policy();
  if (!policy.on_stage) return false;
  sink.wants = [stages = policy.stages](const std::string& s) {
    return std::find(stages.begin(), stages.end(), s) != stages.end();
  };
  sink.take = [symbol, show = policy.on_stage](const std::string& s, const std::string& text) { show(symbol, s, text); };
  return true;
}

/// What of `spec` matters to the code: where there are no bulk copies, nothing about them does.
Specialization promises_for(const Specialization& spec, const ir::Target& target, const KernelOptions& options) {
  Specialization used = spec;
  if (!target.hasTma || !options.tma)
    for (uint64_t& word : used) word &= ~kNoBulkCopies;
  return used;
}

/// Every line of the kernel's where its code names more of them than prints and assertions (ir_key.h): for profilers,
/// and on hosts those of loops whose step may turn out not to be positive.
std::string lines_named(const TraceState& trace, const ir::Target& target, const KernelOptions& options) {
  bool names = options.line_info;
  if (target.backend == ir::Backend::host)
    trace.module.get().walk([&](mlir::scf::ForOp loop) {
      names |= !mlir::matchPattern(loop.getStep(), mlir::m_Constant());
    });
  if (!names) return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  trace.module.get().print(os, flags.enableDebugInfo(true, false));
  return text;
}

}  // namespace

Result<KernelBinary> compile_trace(TraceState& trace, const KernelCore& core, const ConfigWords& config,
                                   const std::string& target, bool needs_ptx, const KernelOptions& options,
                                   ir::StageSink* sink) {
  Result<const ir::Target*> t = target_by_name(target);
  if (!t) return t.error();
  ir::CompileOptions c = compile_options(options, needs_ptx);
  ir::StageSink dump;
  std::string passed;
  if (sink)
    c.stages = sink;
  else if (dump_sink(dump, trace.symbol, passed) || policy_sink(dump, trace.symbol))
    c.stages = &dump;
  // Warnings about a line of the kernel are for everybody: hints that could not be followed.
  c.onRemark = [all = env_flag(Env::remarks)](const Diagnostic& d) {
    if (all || (d.severity == Severity::warning && d.line)) fmt::print(stderr, "{}", d.to_string());
  };
  ++counters().compiles;
  Result<KernelBinary> r = ir::compileKernel(*trace.module, **t, c);
  trace.module = nullptr;  // rewritten
  if (r && !passed.empty()) report_unknown_stages(passed, target);
  if (r) return r;
  Error e = r.error();
  const std::string described = describe_config(core.fields, config, ", ");
  e.message = fmt::format("kernel '{}'{} for {}: {}", core.name, described.empty() ? "" : " {" + described + "}",
                          target, e.message);
  return e;
}

Result<KernelBinary> build_binary(const KernelCore& core, const ConfigWords& config, const Specialization& spec,
                                  const std::string& target, bool needs_ptx, const KernelOptions& options,
                                  const std::string& why, bool& from_disk, NarrowIndices* narrow) {
  from_disk = false;
  if (std::optional<Error> refusal = cannot_trace(core, config, spec)) return *refusal;
  const Underway step(Underway::building, &core, core, config);
  if (step.refusal()) return *step.refusal();
  Result<const ir::Target*> t = target_by_name(target);
  if (!t) return t.error();
  std::shared_ptr<TraceState> trace = trace_kernel(core, config, promises_for(spec, **t, options));
  if (!trace->ok) return trace->error;
  if (env_flag(Env::remarks))
    for (const Diagnostic& d : trace->remarks) fmt::print(stderr, "{}", d.to_string());
  if (narrow) *narrow = trace->narrow;
  const JitPolicy policy = jit_policy();
  const std::string lines = lines_named(*trace, **t, options);
  // Code that does not vary with the grid lies where that for many programs does.
  auto key_for = [&](bool few) {
    return Hasher()
        .add(trace->hash.hex())
        .add(trace->symbol)
        .add(lines)
        .add((*t)->name)
        .add((*t)->cpu)
        .add((*t)->features)
        .add(ir::compilerFingerprint(**t, compile_options(options, needs_ptx)))
        .add(fmt::format("{} {} {} {} {} {} {} {}", options.fast_math, options.line_info, options.tma,
                         options.num_warps, options.stages, needs_ptx, few, options.ptxas))
        .finish();
  };
  // A dump and remarks ask to see the compiler work; what it makes is kept as ever.
  DiskCache& disk = policy.disk ? *policy.disk : DiskCache::standard();
  if (policy.use_disk && !env_text(Env::dump) && !env_flag(Env::remarks)) {
    std::optional<KernelBinary> hit = disk.load_kernel(key_for(false));
    // Where nothing may be compiled, code for the other kind of launches will do: it is as right.
    const bool takes_either = policy.on_miss == JitPolicy::OnMiss::fail;
    if (options.few_programs ? !hit || hit->varies_with_grid : !hit && takes_either)
      if (std::optional<KernelBinary> own = disk.load_kernel(key_for(true)); own || !takes_either) hit = std::move(own);
    if (hit) {
      ++counters().disk_hits;
      from_disk = true;
      return std::move(*hit);
    }
  }
  if (policy.on_miss == JitPolicy::OnMiss::fail)
    return Error{ErrorKind::device,
                 fmt::format("kernel '{}' is not compiled for {} and the policy forbids compiling now ({})", core.name,
                             target, why),
                 {}};
  if (policy.on_compile) policy.on_compile(fmt::format("{} for {}: {}", trace->symbol, target, why));
  Result<KernelBinary> binary = compile_trace(*trace, core, config, target, needs_ptx, options, nullptr);
  if (binary && policy.use_disk)
    disk.store_kernel(key_for(options.few_programs && binary->varies_with_grid), *binary);
  return binary;
}

}  // namespace detail

void set_jit_policy(JitPolicy p) {
  detail::PolicyHolder& h = detail::policy_holder();
  std::lock_guard lock(h.mutex);
  h.policy = std::move(p);
}
JitPolicy jit_policy() {
  detail::PolicyHolder& h = detail::policy_holder();
  std::lock_guard lock(h.mutex);
  return h.policy;
}
JitStats jit_stats() {
  detail::Counters& c = detail::counters();
  return {c.traces, c.compiles, c.disk_hits};
}

}  // namespace tile
