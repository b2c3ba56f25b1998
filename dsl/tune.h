// tune.h - choosing a configuration by measuring: every candidate of kernel.tune({...}) runs on the real arguments.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "dsl/kernel.h"

namespace tile {

struct TuneOptions {
  int repeats = 5;       ///< timed runs per candidate; the fastest counts
  double give_up = 3.0;  ///< a candidate whose first timed run is this much slower than the best so far is dropped
};

template <class Cfg>
struct TuneResult {
  struct Candidate {
    Cfg config;
    double milliseconds = 0;  ///< 0: did not run
    std::string problem;      ///< why not: a failing configuration never ends the search
  };
  Cfg best{};
  double milliseconds = 0;
  std::vector<Candidate> candidates;  ///< in the order of the space
};

/// Runs the kernel with each configuration of its space (its default one if there is none) and keeps the fastest.
/// Outputs are written by every run, so kernels that update their outputs in place need scratch arguments. Fails only
/// when no candidate runs; the error then is that of the first.
template <class Cfg, class... P>
Result<TuneResult<Cfg>> tune(const Kernel<Cfg, P...>& kernel, Stream& stream, TuneOptions options,
                             std::type_identity_t<HostArg<P>>... args) {
  TuneResult<Cfg> result;
  std::vector<Cfg> space = kernel.space();
  if (space.empty()) space.push_back(kernel.default_cfg());
  Result<std::shared_ptr<Event>> start = stream.device().create_event(), stop = stream.device().create_event();
  if (!start) return start.error();
  if (!stop) return stop.error();
  std::vector<Error> errors;
  for (const Cfg& config : space) {
    typename TuneResult<Cfg>::Candidate candidate{config, 0, {}};
    auto run = [&](double& ms) -> Status {
      if (Status s = stream.record(**start); !s) return s;
      if (Status s = kernel.try_call(stream, config, args...); !s) return s;
      if (Status s = stream.record(**stop); !s) return s;
      if (Status s = (*stop)->synchronize(); !s) return s;
      Result<double> elapsed = (*stop)->elapsed_ms(**start);
      if (!elapsed) return elapsed.error();
      ms = *elapsed;
      return Ok{};
    };
    double ms = 0, fastest = 0;
    Status s = run(ms);  // compiles and warms up
    for (int i = 0; s.ok() && i < std::max(1, options.repeats); ++i) {
      s = run(ms);
      if (!s.ok()) break;
      fastest = i == 0 ? ms : std::min(fastest, ms);
      if (i == 0 && result.milliseconds > 0 && ms > options.give_up * result.milliseconds) break;
    }
    if (!s.ok()) {
      candidate.problem = s.error().to_string();
      errors.push_back(s.error());
    } else {
      candidate.milliseconds = std::max(fastest, 1e-9);
      if (result.milliseconds == 0 || candidate.milliseconds < result.milliseconds)
        result.best = config, result.milliseconds = candidate.milliseconds;
    }
    result.candidates.push_back(std::move(candidate));
  }
  if (result.milliseconds == 0) return errors.front();
  return result;
}

}  // namespace tile
