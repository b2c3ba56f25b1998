// tuner.cpp - see tuner.h.
#include "dsl/tuner.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <regex>
#include <system_error>
#include <thread>

#include "compiler/targets/occupancy.h"
#include "dsl/overdue.h"
#include "dsl/tracing/kernel_core.h"
#include "runtime/buffer.h"
#include "runtime/cycles.h"

namespace tile {
namespace {

/// A line for the table of results: what happened, and the first of the errors it sums up.
std::string brief(const Error& error) {
  return error.message + (error.diagnostics.empty() ? "" : ": " + error.diagnostics[0].message);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

/// Candidates are equally fast when their medians are this close.
constexpr double kSame = 0.01;

/// Of an even number the lower one: of two runs the undisturbed one counts.
double median(std::vector<double> v) {
  const auto middle = v.begin() + static_cast<std::ptrdiff_t>((v.size() - 1) / 2);
  std::nth_element(v.begin(), middle, v.end());
  return *middle;
}

/// The runs of one candidate.
struct Runs {
  std::vector<double> milliseconds, cycles;
  bool empty() const { return milliseconds.empty(); }
  void add(const TuneSample& s) {
    milliseconds.push_back(std::max(s.milliseconds, 1e-9));
    cycles.push_back(s.cycles);
  }
  double cost(bool by_cycles) const { return median(by_cycles ? cycles : milliseconds); }
};

/// One line on a terminal, rewritten in place.
class Display {
 public:
  Display(const TuneJob& job, const TuneOptions& options)
      : job_(job), options_(options), terminal_(options.show && isatty(STDERR_FILENO)) {}
  ~Display() {
    if (terminal_ && drawn_) fmt::print(stderr, "\r\033[K");
  }
  void operator()(const TuneProgress& p) {
    std::lock_guard lock(mutex_);
    if (options_.on_progress) options_.on_progress(p);
    const bool last = p.finished == p.total;
    if (!terminal_ || (drawn_ && !last && seconds_since(shown_) < 0.1)) return;
    shown_ = Clock::now();
    drawn_ = true;
    std::string leader = p.leader.empty() ? "" : fmt::format(", best {:.4g} ms: {}", p.leader_ms, p.leader);
    fmt::print(stderr, "\r\033[K{}: {} {}/{}, {} alive{}", job_.name,
               p.phase == TuneProgress::Phase::compiling ? "compiling" : "timing", p.finished, p.total, p.alive,
               leader.substr(0, 100));
    std::fflush(stderr);
  }

 private:
  const TuneJob& job_;
  const TuneOptions& options_;
  bool terminal_, drawn_ = false;
  Clock::time_point shown_{};
  std::mutex mutex_;
};

/// Times single runs on one stream.
class Stopwatch {
 public:
  static Result<Stopwatch> create(Stream& stream, const TuneOptions& options) {
    Stopwatch w(stream, options);
    if (w.host()) {
      w.overdue_ = std::make_shared<Overdue>(options.patience_s);
      return w;
    }
    auto start = stream.device().create_event(), stop = stream.device().create_event();
    if (!start) return start.error();
    if (!stop) return stop.error();
    w.start_ = *start, w.stop_ = *stop;
    if (options.cold_cache) {
      const uint64_t bytes = std::max<uint64_t>(2 * stream.device().properties().l2_bytes, 32u << 20);
      // Without the memory runs find the cache as the one before left it: no reason not to tune.
      if (auto memory = DeviceMemory::allocate(stream.device().shared_from_this(), bytes))
        w.flush_ = std::make_shared<DeviceMemory>(std::move(*memory));
    }
    if (auto counter = CycleCounter::create(stream)) w.counter_ = std::move(*counter);  // else time has to do
    return w;
  }

  /// One run. A failing run is an error; so is one that does not end on a GPU (`hung`). `what`: it, for messages.
  Result<TuneSample> time(const std::function<Status()>& run, const std::function<std::string()>& what) {
    if (!host()) return time_events(run);
    overdue_->begin([&] {
      fmt::print(stderr, "{} has not finished after {} s, and goes on: what runs on a host cannot be stopped\n", what(),
                 patience_);
    });
    Result<TuneSample> sample = time_host(run);
    overdue_->end();
    return sample;
  }
  bool hung() const { return hung_; }

 private:
  Stopwatch(Stream& stream, const TuneOptions& options) : stream_(&stream), patience_(options.patience_s) {}
  bool host() const { return stream_->device().kind() == DeviceKind::host; }

  Result<TuneSample> time_host(const std::function<Status()>& run) {
    // With one thread its processor time: what others do on a shared machine does not count.
    const bool alone = stream_->device().properties().multiprocessors == 1;
    auto now = [&] {
      timespec t;
      clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
      return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
    };
    const double begin = now();
    Status s = run();
    const double ms = now() - begin;
    if (s) s = stream_->synchronize();
    if (!s) return s.error();
    return TuneSample{ms, 0};
  }

  Result<TuneSample> time_events(const std::function<Status()>& run) {
    const uint32_t pattern = ++turn_;
    if (flush_)
      if (Status s = flush_->fill(*stream_, &pattern, 4); !s) return s.error();
    if (counter_)
      if (Status s = counter_->begin(*stream_); !s) return s.error();
    if (Status s = stream_->record(*start_); !s) return s.error();
    if (Status s = run(); !s) return s.error();
    if (Status s = stream_->record(*stop_); !s) return s.error();
    if (counter_)
      if (Status s = counter_->end(*stream_); !s) return s.error();
    const auto begin = Clock::now();
    while (true) {
      Result<bool> done = stop_->is_done();
      if (!done) return done.error();
      if (*done) break;
      const double waited = seconds_since(begin);
      if (waited > patience_) {
        hung_ = true;
        return device_error(fmt::format("has not finished after {:.0f} s", waited));
      }
      if (waited > 1e-3)  // long runs need no exact end: the events have the time
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      else
        std::this_thread::yield();
    }
    if (Status s = stream_->synchronize(); !s) return s.error();  // prints, failed assertions
    Result<double> ms = stop_->elapsed_ms(*start_);
    if (!ms) return ms.error();
    TuneSample sample{*ms, 0};
    if (counter_)
      if (Result<double> cycles = counter_->cycles()) sample.cycles = *cycles;
    return sample;
  }

  Stream* stream_;
  double patience_;
  std::shared_ptr<Event> start_, stop_;
  std::shared_ptr<Overdue> overdue_;  // hosts
  std::shared_ptr<DeviceMemory> flush_;
  std::optional<CycleCounter> counter_;
  uint32_t turn_ = 0;
  bool hung_ = false;
};

/// Fills `m` from checks and compiles; the first error of each candidate is its problem. What a kernel's body or grid
/// function throws on any thread leaves this one, as it leaves a launch.
std::vector<std::optional<Error>> build_all(const TuneJob& job, const TuneOptions& options, Display& display,
                                            std::vector<TuneMeasurement>& m) {
  std::vector<std::optional<Error>> errors(job.candidates);
  std::atomic<size_t> next{0}, good{0};
  std::mutex telling;  // counts are told in their order
  size_t finished = 0;
  std::exception_ptr thrown;
  const auto build_next = [&] {
    for (size_t i; (i = next++) < job.candidates;) {
      Status fits = job.check ? job.check(i) : ok();
      if (!fits) {
        errors[i] = fits.error();
      } else if (Result<Resources> built = job.build(i); built) {
        m[i].resources = *built;
        ++good;
      } else {
        errors[i] = built.error();
      }
      if (errors[i]) m[i].problem = brief(*errors[i]);
      const std::lock_guard lock(telling);
      display({TuneProgress::Phase::compiling, ++finished, job.candidates, good, "", 0});
    }
  };
  const auto work = [&] {
    try {
      build_next();
    } catch (...) {
      next = job.candidates;
      const std::lock_guard lock(telling);
      if (!thrown) thrown = std::current_exception();
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t wanted = options.threads > 0 ? static_cast<size_t>(options.threads) : cores;
  std::vector<std::thread> threads;
  try {
    for (size_t t = 1; t < std::min(wanted, job.candidates); ++t) threads.emplace_back(work);
  } catch (const std::system_error&) {  // the system has no more threads: those that there are build all
  }
  work();
  for (std::thread& t : threads) t.join();
  if (thrown) std::rethrow_exception(thrown);
  return errors;
}

/// The first error of all; there is one if no configuration was timed.
Error first_of(const std::vector<std::optional<Error>>& errors, const TuneJob& job) {
  for (const std::optional<Error>& e : errors)
    if (e) return *e;
  return internal_error(fmt::format("{}: no configuration was timed", job.name));
}

/// Times the configurations that were built, in rounds from which slow ones drop out.
class Race {
 public:
  Race(Stream& stream, const TuneJob& job, Stopwatch& watch, Display& display, std::vector<size_t> alive,
       std::vector<std::optional<Error>> errors, TuneOutcome& out)
      : stream_(stream),
        job_(job),
        watch_(watch),
        display_(display),
        alive_(std::move(alive)),
        errors_(std::move(errors)),
        runs_(job.candidates),
        out_(out) {
    out_.by_cycles = true;  // until a run comes without them
  }

  Status run(const TuneOptions& options) {
    const int rounds = std::max(1, options.rounds);
    planned_ = 3 * alive_.size() + static_cast<size_t>(rounds) * std::min<size_t>(alive_.size(), 4);
    if (Status s = round(false, 0); !s) return s;  // first touch: memory, code, clocks
    for (int r = 0; r < rounds && !alive_.empty(); ++r) {
      if (Status s = round(true, static_cast<size_t>(r) * 7); !s) return s;
      if (r == 1) drop(options.give_up);
      if (r == 3) drop(1.15);
      if (r == 5) drop(1.05);
    }
    return finish();
  }

 private:
  double cost(size_t i) const { return runs_[i].cost(out_.by_cycles); }

  std::optional<size_t> best() const {
    std::optional<size_t> best;
    for (size_t i : alive_)
      if (!runs_[i].empty() && (!best || cost(i) < cost(*best))) best = i;
    return best;
  }

  /// Every candidate once, in an order of the round's own. Those that fail leave.
  Status round(bool keep, size_t rotate) {
    std::vector<size_t> sequence = alive_;
    std::rotate(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(rotate % sequence.size()),
                sequence.end());
    for (size_t i : sequence) {
      if (Status s = measure(i, keep); !s) return s;
      const std::optional<size_t> leads = best();
      display_({TuneProgress::Phase::timing, made_, std::max(planned_, made_), alive_.size(),
                leads ? job_.describe(*leads) : "", leads ? runs_[*leads].cost(false) : 0});
    }
    std::erase_if(alive_, [&](size_t i) { return errors_[i].has_value(); });
    return ok();
  }

  /// One timed run; a failing candidate leaves, and with it what it measured. An error: the device hangs.
  Status measure(size_t i, bool keep) {
    auto who = [&] { return fmt::format("{}: configuration {}", job_.name, job_.describe(i)); };
    Result<TuneSample> sample = job_.measure ? job_.measure(i, stream_, turn_++)
                                             : watch_.time([&] { return job_.run(i, stream_, turn_++); }, who);
    ++made_;
    if (!sample) {
      out_.measurements[i].problem = sample.error().to_string();
      errors_[i] = sample.error();
      runs_[i] = {};
      if (watch_.hung()) return device_error(fmt::format("{} {}", who(), sample.error().message));
    } else if (keep) {
      runs_[i].add(*sample);
      out_.by_cycles = out_.by_cycles && sample->cycles > 0;
    }
    return ok();
  }

  /// By medians: one bad moment costs nobody the race.
  void drop(double factor) {
    const std::optional<size_t> leads = best();
    std::erase_if(alive_, [&](size_t i) { return runs_[i].empty() || (leads && cost(i) > factor * cost(*leads)); });
  }

  Status finish() {
    std::vector<TuneMeasurement>& m = out_.measurements;
    for (size_t i = 0; i < job_.candidates; ++i)
      if (!runs_[i].empty()) {
        m[i].milliseconds = runs_[i].cost(false), m[i].runs = static_cast<int>(runs_[i].milliseconds.size());
        m[i].cycles = runs_[i].cost(true);
      }
    const std::optional<size_t> fastest = best();
    if (!fastest) return first_of(errors_, job_);
    out_.best = *fastest;
    for (size_t i : alive_)  // among equals the larger tile: it reads less, and suffers less under load
      if (cost(i) <= cost(*fastest) * (1 + kSame) && job_.area && job_.area(i) > job_.area(out_.best)) out_.best = i;
    display_(
        {TuneProgress::Phase::done, made_, made_, alive_.size(), job_.describe(out_.best), m[out_.best].milliseconds});
    return ok();
  }

  Stream& stream_;
  const TuneJob& job_;
  Stopwatch& watch_;
  Display& display_;
  std::vector<size_t> alive_;
  std::vector<std::optional<Error>> errors_;
  std::vector<Runs> runs_;
  TuneOutcome& out_;
  int turn_ = 0;
  size_t made_ = 0, planned_ = 0;
};

}  // namespace

std::string code_problem(const Resources& r) {
  static const std::regex serialised("C75[0-9][0-9]");
  if (const int spilled = std::max(r.spill_store_bytes, r.spill_load_bytes); spilled > ir::kSpilledForAnother)
    return fmt::format("spills {} bytes", spilled);
  std::smatch found;
  if (std::regex_search(r.log, found, serialised)) return fmt::format("the assembler warns: {}", found.str());
  return {};
}

std::string varied_fields(const std::vector<ConfigField>& fields, const std::vector<ConfigWords>& space,
                          const ConfigWords& chosen) {
  std::string out;
  for (size_t f = 0; f < fields.size() && f < chosen.size(); ++f) {
    const bool varies = std::any_of(space.begin(), space.end(),
                                    [&](const ConfigWords& c) { return f < c.size() && c[f] != space.front()[f]; });
    if (varies) out += (out.empty() ? "" : " ") + detail::describe_config({fields[f]}, {chosen[f]}, "");
  }
  return out;
}

Result<TuneOutcome> run_tuning(Stream& stream, const TuneJob& job, const TuneOptions& options) {
  if (job.candidates == 0) return user_error(fmt::format("{}: there are no configurations to choose from", job.name));
  TuneOutcome out;
  out.measurements.resize(job.candidates);
  Display display(job, options);
  std::vector<std::optional<Error>> errors = build_all(job, options, display, out.measurements);

  // Bad code is not timed, unless there is no other.
  std::vector<size_t> alive, bad;
  for (size_t i = 0; i < job.candidates; ++i)
    if (!errors[i]) (code_problem(out.measurements[i].resources).empty() ? alive : bad).push_back(i);
  if (alive.empty()) std::swap(alive, bad);
  for (size_t i : bad) out.measurements[i].problem = code_problem(out.measurements[i].resources);
  if (alive.empty()) return first_of(errors, job);
  if (options.deterministic) {
    out.best = alive.front();
    return out;
  }
  Result<Stopwatch> watch = Stopwatch::create(stream, options);
  if (!watch) return watch.error();
  Race race(stream, job, *watch, display, std::move(alive), std::move(errors), out);
  if (Status s = race.run(options); !s) return s.error();
  return out;
}

}  // namespace tile
