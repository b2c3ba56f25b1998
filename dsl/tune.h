// tune.h - choosing a configuration by measuring: the candidates of kernel.tune({...}) run on the real arguments.
//
//   auto k = gemm.tune(Space<GemmConfig>().vary(&GemmConfig::BM, {64, 128}).vary(&GemmConfig::stages, {2, 3, 4}));
//   auto r = tune(k, stream, {}, a, b, c, n).value_or_throw();       // r.best, r.milliseconds, r.candidates
//
// tune_once() asks the process's tuning tables first (tuned.h) and remembers what it found.
#pragma once
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel.h"
#include "space.h"
#include "tuned.h"
#include "tuner.h"

namespace tile {

template <class Cfg>
struct TuneResult {
  struct Candidate {
    Cfg config;
    double milliseconds = 0;  ///< median of its runs; 0: was not timed
    double cycles = 0;        ///< of the multiprocessors, the same; 0: not counted
    std::string problem;      ///< why not: a failing configuration never ends the search
  };
  Cfg best{};
  double milliseconds = 0;            ///< 0 in deterministic mode
  std::vector<Candidate> candidates;  ///< in the order of the space
};

namespace detail {

/// Integer fields whose names start with B (BM, BN, BLOCK) multiplied: the area of a tile as kernels name it.
template <class Cfg>
double tile_area(const Cfg& config) {
  static const auto* fields = new std::vector<ConfigField>(config_fields<Cfg>());
  const auto words = config_words(config);
  double area = 1;
  for (size_t i = 0; i < words.size(); ++i)
    if ((*fields)[i].kind == FieldKind::integer && (*fields)[i].name.starts_with("B"))
      area *= static_cast<double>(static_cast<int64_t>(words[i]));
  return area;
}

/// The arguments of a launch, kept for many.
template <class... P>
using ArgumentSet = std::tuple<HostArg<P>...>;

}  // namespace detail

/// Runs the kernel with each configuration of its space (its default one if there is none) and keeps the fastest. Every
/// run writes its outputs, so kernels that update their outputs in place need scratch arguments. With several argument
/// sets of the same shapes runs take turns on them: no run finds its inputs in a cache.
template <class Cfg, class... P>
Result<TuneResult<Cfg>> tune_over(const Kernel<Cfg, P...>& kernel, StreamAt stream, const TuneOptions& options,
                                  const std::vector<detail::ArgumentSet<P...>>& arguments) {
  std::vector<Cfg> space = kernel.space();
  if (space.empty()) space.push_back(kernel.default_cfg());
  if (arguments.empty()) return user_error("kernel '" + kernel.name() + "': tuning needs arguments to run with");
  const auto device = stream.device().shared_from_this();
  const std::string target = device->properties().target;
  const Specialization promises =
      std::apply([](const auto&... a) { return Specialization{detail::Param<P>::promise(a)...}; }, arguments.front());
  const AnyKernel& any = kernel;
  TuneJob job;
  job.name = kernel.name();
  job.candidates = space.size();
  job.describe = [&](size_t i) { return kernel.describe_config(kernel.words(space[i])); };
  job.check = [&](size_t i) { return any.check_budget(target, kernel.words(space[i]), promises); };
  job.build = [&](size_t i) -> Result<Resources> {
    // The code that the timed launches run.
    KernelOptions compiled = any.options();
    const auto grid = std::apply([&](const auto&... a) { return kernel.grid_for(space[i], a...); }, arguments.front());
    compiled.few_programs |= grid && device->properties().has_few(*grid);
    Result<AnyCompiled> c = any.compile(device, kernel.words(space[i]), promises, compiled);
    if (!c) return c.error();
    return c->resources();
  };
  job.run = [&](size_t i, Stream& s, int turn) {
    return std::apply([&](const auto&... a) { return kernel.try_call(StreamAt(s, stream.loc()), space[i], a...); },
                      arguments[static_cast<size_t>(turn) % arguments.size()]);
  };
  job.area = [&](size_t i) { return detail::tile_area(space[i]); };
  Result<TuneOutcome> outcome = run_tuning(stream, job, options);
  if (!outcome) return outcome.error();
  TuneResult<Cfg> result;
  result.best = space[outcome->best];
  result.milliseconds = outcome->measurements[outcome->best].milliseconds;
  for (size_t i = 0; i < space.size(); ++i)
    result.candidates.push_back({space[i], outcome->measurements[i].milliseconds, outcome->measurements[i].cycles,
                                 outcome->measurements[i].problem});
  return result;
}

/// The same with one set of arguments.
template <class Cfg, class... P>
Result<TuneResult<Cfg>> tune(const Kernel<Cfg, P...>& kernel, StreamAt stream, const TuneOptions& options,
                             std::type_identity_t<HostArg<P>>... args) {
  return tune_over<Cfg, P...>(kernel, stream, options, {detail::ArgumentSet<P...>(args...)});
}

/// The configuration the tables have for `key` on this device; else the result of tune(), which is then known to the
/// process, and written to the first file of TILE_TUNING if there is one. In deterministic mode nothing is timed or
/// written: the tables' answer, or the first configuration that compiles well.
template <class Cfg, class... P>
Result<Cfg> tune_once(const Kernel<Cfg, P...>& kernel, StreamAt stream, const TuningKey& key,
                      const TuneOptions& options, std::type_identity_t<HostArg<P>>... args) {
  const std::string& model = stream.device().properties().model;
  if (const auto known = find_tuned(kernel.name(), model, key, kernel.default_cfg())) return *known;
  Result<TuneResult<Cfg>> r = tune(kernel, stream, options, args...);
  if (!r) return r.error();
  if (options.deterministic) return r->best;
  std::vector<ConfigWords> space;
  for (const auto& c : r->candidates) space.push_back(kernel.words(c.config));
  const std::string chosen = varied_fields(kernel.fields(), space, kernel.words(r->best));
  if (!chosen.empty())
    if (Status s = remember_tuning({kernel.name(), model, key.text(), chosen, r->milliseconds}); !s) return s.error();
  return r->best;
}

}  // namespace tile
