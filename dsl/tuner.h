// tuner.h - the search behind tune() (tune.h) without types: candidates are numbers, and callbacks know what they are.
// It refuses what cannot fit before compiling, compiles on all cores, and times what is left side by side: rounds of
// interleaved runs with a cold second-level cache, losers leaving early, medians deciding. On a GPU it is cycles of the
// multiprocessors that count: under its power limit a chip's clock differs from one run to the next.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "jit.h"
#include "tuning_table.h"

namespace tile {

struct TuneProgress {
  enum class Phase : uint8_t { compiling, timing, done } phase = Phase::compiling;
  size_t finished = 0, total = 0;  ///< candidates compiled; runs made of those planned
  size_t alive = 0;                ///< candidates still in the race
  std::string leader;              ///< the best so far; empty before the first timing
  double leader_ms = 0;
};

/// What one run took.
struct TuneSample {
  double milliseconds = 0;
  double cycles = 0;  ///< of the multiprocessors; 0: not counted
};

struct TuneOptions {
  int rounds = 9;              ///< timed runs of the candidates that stay to the end
  double give_up = 2.0;        ///< candidates this much slower than the best in their first two runs leave
  int threads = 0;             ///< compiling; 0: all cores
  bool cold_cache = true;      ///< GPU: the second-level cache is overwritten before every run
  bool deterministic = false;  ///< no timing: the first candidate that compiles well
  /// A run on a GPU that takes longer ends the search with an error (it may hang for ever). On a host, where nothing
  /// can stop it, standard error gets the name of its configuration, and the search waits.
  double patience_s = 30;
  bool show = true;            ///< progress on standard error when that is a terminal
  std::function<void(const TuneProgress&)> on_progress{};
};

/// What happened to one candidate.
struct TuneMeasurement {
  double milliseconds = 0;  ///< median of its runs; 0: not timed
  double cycles = 0;        ///< median of its runs; 0: not counted
  int runs = 0;
  std::string problem;  ///< why it is not in the race; empty for those that were timed
  Resources resources;
};

struct TuneJob {
  std::string name;  ///< for progress
  size_t candidates = 0;
  std::function<std::string(size_t)> describe;
  std::function<Status(size_t)> check;              ///< refuses without compiling; may be empty
  std::function<Result<Resources>(size_t)> build;   ///< compiles; called from several threads at once
  std::function<Status(size_t, Stream&, int)> run;  ///< queues one run; the number counts them, to rotate buffers
  std::function<double(size_t)> area;               ///< of a tile: the larger wins among equals
  /// Instead of events or the clock: runs once, to its end, and says what it took. May be empty.
  std::function<Result<TuneSample>(size_t, Stream&, int)> measure{};
};

struct TuneOutcome {
  size_t best = 0;
  bool by_cycles = false;                     ///< what decided: cycles, counted in every run; else milliseconds
  std::vector<TuneMeasurement> measurements;  ///< of every candidate
};

/// Fails only when no candidate runs (the error is the first candidate's) or when a run hangs or takes the device down.
Result<TuneOutcome> run_tuning(Stream& stream, const TuneJob& job, const TuneOptions& options = {});

/// What makes compiled code not worth timing: "spills 16 bytes", a warning of the assembler about products that are
/// waited for one by one. Empty: nothing.
std::string code_problem(const Resources& resources);

/// The fields in which some candidate differs from another, as a tuning table keeps them: "BM=128 stages=4".
std::string varied_fields(const std::vector<ConfigField>& fields, const std::vector<ConfigWords>& space,
                          const ConfigWords& chosen);

}  // namespace tile
