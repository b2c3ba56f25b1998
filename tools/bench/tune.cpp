// tune.cpp - see tune.h. One case serves all candidates of a problem where its kind can change configurations; else
// every candidate has its own.
#include "tools/bench/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "tools/bench/timing.h"

namespace tile::bench {

using namespace kernels;

namespace {

/// The candidates of one problem as runnable cases.
class Candidates {
 public:
  Candidates(std::shared_ptr<Device> device, const CatalogRow& row, const Problem& problem,
             const std::vector<ConfigWords>& space)
      : device_(std::move(device)), row_(row), problem_(problem), space_(space), own_(space.size()) {}

  /// The case, set to candidate i; it stays so until the next call.
  Result<Case*> at(size_t i) {
    if (shared_ && shared_->set_config(space_[i])) return shared_.get();
    if (own_[i]) return own_[i].get();
    Result<std::unique_ptr<Case>> made = row_.prepare(device_, problem_, space_[i]);
    if (!made) return made.error();
    if (!shared_ && (*made)->set_config(space_[i])) {
      shared_ = std::move(*made);
      return shared_.get();
    }
    own_[i] = std::move(*made);
    return own_[i].get();
  }

 private:
  std::shared_ptr<Device> device_;
  const CatalogRow& row_;
  const Problem& problem_;
  const std::vector<ConfigWords>& space_;
  std::unique_ptr<Case> shared_;
  std::vector<std::unique_ptr<Case>> own_;
};

/// Fields that start with B multiplied, as tune() does it.
double area_of(const std::vector<ConfigField>& fields, const ConfigWords& config) {
  double area = 1;
  for (size_t f = 0; f < fields.size(); ++f)
    if (fields[f].kind == tile::detail::FieldKind::integer && fields[f].name.starts_with("B"))
      area *= static_cast<double>(static_cast<int64_t>(config[f]));
  return area;
}

Status agrees(Case& run, Stream& stream) {
  Result<std::vector<Check>> checks = run.check(stream, 2e8);
  if (!checks) return checks.error();
  for (const Check& c : *checks)
    if (!c.comparison.pass) return user_error(fmt::format("wrong results in {}: {}", c.output, c.comparison.why));
  return ok();
}

/// Windows of launches of two candidates in turns.
Result<double> measure_gain(const std::shared_ptr<Device>& device, Candidates& candidates, size_t from, size_t to,
                            int rounds) {
  TimingOptions timing;
  timing.rounds = 1;
  timing.idle_ms = 100;
  if (device->kind() == DeviceKind::host) timing.idle_ms = 0, timing.window_ms = 100;
  std::vector<TuneSample> samples[2];
  for (int round = 0; round < rounds; ++round)
    for (size_t which : {0, 1}) {
      Result<Case*> run = candidates.at(which ? to : from);
      if (!run) return run.error();
      auto t = time_launches(
          device, device->default_stream(), [&] { return (*run)->launch(device->default_stream()); }, timing);
      if (!t) return t.error();
      samples[which].push_back({t->ms, t->cycles});
    }
  return confirmed_gain(samples[0], samples[1]);
}

std::string figures(const TuneMeasurement& m) {
  std::string text = fmt::format("{:.4g} ms", m.milliseconds);
  if (m.cycles > 0) text += fmt::format(" {:.5g} kcycles", m.cycles * 1e-3);
  return text;
}

}  // namespace

double confirmed_gain(const std::vector<TuneSample>& first, const std::vector<TuneSample>& second) {
  std::vector<double> gains;
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    double gain = first[i].milliseconds / second[i].milliseconds - 1;
    if (first[i].cycles > 0 && second[i].cycles > 0) gain = std::min(gain, first[i].cycles / second[i].cycles - 1);
    gains.push_back(gain);
  }
  if (gains.empty()) return 0;
  const auto middle = gains.begin() + static_cast<std::ptrdiff_t>(gains.size() / 2);
  std::nth_element(gains.begin(), middle, gains.end());
  return *middle;
}

Result<CatalogTuner> CatalogTuner::open(std::shared_ptr<Device> device, TuneRequest request) {
  CatalogTuner tuner(std::move(device), std::move(request));
  if (!std::filesystem::exists(tuner.request_.file)) return tuner;
  std::vector<Diagnostic> problems;
  Result<TuningTable> read = TuningTable::read(tuner.request_.file, &problems);
  if (!read) return read.error();
  if (!problems.empty())
    return make_error(ErrorKind::user, fmt::format("'{}' has lines that cannot be read", tuner.request_.file),
                      problems);
  tuner.table_ = std::move(*read);
  return tuner;
}

Status CatalogTuner::keep(const TuningEntry& entry) {
  if (Status s = table_.set(entry); !s) return s;
  return table_.write(request_.file);
}

Status CatalogTuner::forget(const TuningEntry& entry) {
  table_.remove(entry.kernel, entry.device, entry.key);
  return table_.write(request_.file);
}

bool CatalogTuner::tune(const CatalogRow& row, const Problem& problem) {
  if (row.tuning == nullptr || row.kernel == nullptr) return true;
  const DeviceProperties& p = device_->properties();
  const Tuning tuning = row.tuning(problem, Machine::of(p));
  if (tuning.space.empty() || !done_.insert(tuning.table + " " + tuning.key.text()).second) return true;
  const std::string title = fmt::format("{} {}", row.name, problem.to_string());
  auto fail = [&](const std::string& why) {
    fmt::print("{:<64} FAILED: {}\n", title, why);
    return false;
  };
  const AnyKernel& kernel = *row.kernel(problem.dtype);
  struct Unload {  // the code of all candidates; the disk cache has it
    const AnyKernel& kernel;
    ~Unload() { kernel.clear_memory_cache(); }
  } unload{kernel};
  Stream& stream = device_->default_stream();
  Candidates candidates(device_, row, problem, tuning.space);

  // Candidates are compiled for arguments like those that the first launch shows.
  Specialization promises = dense_specialization(kernel);
  if (Result<Case*> first = candidates.at(0); !first)
    return fail(first.error().to_string());
  else if ((*first)->launch(stream) && stream.synchronize())
    if (auto loaded = kernel.loaded_for(tuning.space[0]); !loaded.empty()) promises = loaded.back();

  TuneJob job;
  job.name = title;
  job.candidates = tuning.space.size();
  job.describe = [&](size_t i) { return varied_fields(kernel.fields(), tuning.space, tuning.space[i]); };
  job.check = [&](size_t i) { return kernel.check_budget(p.target, tuning.space[i], promises); };
  job.build = [&](size_t i) -> Result<Resources> {
    Result<AnyCompiled> c = kernel.compile(device_, tuning.space[i], promises, kernel.options());
    if (!c) return c.error();
    return c->resources();
  };
  job.run = [&](size_t i, Stream& s, int) -> Status {
    Result<Case*> run = candidates.at(i);
    return run ? (*run)->launch(s) : Status(run.error());
  };
  job.area = [&](size_t i) { return area_of(kernel.fields(), tuning.space[i]); };
  Result<TuneOutcome> outcome = run_tuning(stream, job, request_.options);
  if (!outcome) return fail(outcome.error().to_string());

  // The winner first, then by what decided.
  const std::vector<TuneMeasurement>& m = outcome->measurements;
  std::vector<size_t> order;
  for (size_t i = 0; i < m.size(); ++i)
    if (m[i].milliseconds > 0 && i != outcome->best) order.push_back(i);
  const auto cost = [&](size_t i) { return outcome->by_cycles ? m[i].cycles : m[i].milliseconds; };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return cost(a) < cost(b); });
  order.insert(order.begin(), outcome->best);
  fmt::print("{:<64} {} configurations, {} timed, untuned {}\n", title, m.size(), order.size(), figures(m[0]));
  for (size_t n = 0; n < order.size() && n < static_cast<size_t>(request_.shown); ++n)
    fmt::print("    {}  {}\n", figures(m[order[n]]), job.describe(order[n]));
  constexpr int kWrongShown = 5;
  int wrong = 0;
  for (size_t i : order) {
    Result<Case*> run = candidates.at(i);
    const Status good = run ? agrees(**run, stream) : Status(run.error());
    if (!good) {
      if (++wrong <= kWrongShown) fmt::print("    not {}: {}\n", job.describe(i), good.error().message);
      continue;
    }
    if (request_.options.deterministic) return true;
    const TuningEntry entry{tuning.table, p.model, tuning.key.text(), job.describe(i), m[i].milliseconds};
    double gain = 0;
    if (i != 0 && m[0].milliseconds > 0) {  // candidate 0 is the untuned one
      auto measured = measure_gain(device_, candidates, 0, i, request_.confirming_rounds);
      if (!measured) return fail(measured.error().to_string());
      gain = *measured;
    }
    const bool worth = m[0].milliseconds == 0 || gain > request_.least_gain;
    fmt::print("    {}: {:+.1f} % over untuned\n", worth ? "kept" : "not kept", 100 * gain);
    std::fflush(stdout);
    const Status done = worth ? keep(entry) : forget(entry);
    return done ? true : fail(done.error().to_string());
  }
  return fail(fmt::format("none of {} configurations gives right results", wrong));
}

}  // namespace tile::bench
