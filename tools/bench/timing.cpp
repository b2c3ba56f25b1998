// timing.cpp - windows of launches between events, medians of rounds.
#include "tools/bench/timing.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/cycles.h"

namespace tile::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// What one launch took.
struct Sample {
  double ms = 0, cycles = 0;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Of `n` launches in a row. `counter` is null where cycles are not wanted.
Result<Sample> window(const std::shared_ptr<Device>& device, Stream& stream, const std::function<Status()>& launch,
                      int n, CycleCounter* counter = nullptr) {
  if (device->kind() == DeviceKind::host) {
    Status failed = Ok{};
    auto all = [&] {
      for (int i = 0; i < n && failed; ++i) failed = launch();
    };
    double ms = device->properties().multiprocessors == 1 ? thread_ms(all) : wall_ms(all);
    if (!failed) return failed.error();
    return Sample{ms / n, 0};
  }
  auto begin = device->create_event(), end = device->create_event();
  if (!begin) return begin.error();
  if (!end) return end.error();
  if (counter)
    if (Status s = counter->begin(stream); !s) return s.error();
  if (Status s = stream.record(**begin); !s) return s.error();
  for (int i = 0; i < n; ++i)
    if (Status s = launch(); !s) return s.error();
  if (Status s = stream.record(**end); !s) return s.error();
  if (counter)
    if (Status s = counter->end(stream); !s) return s.error();
  if (Status s = (*end)->synchronize(); !s) return s.error();
  auto ms = (*end)->elapsed_ms(**begin);
  if (!ms) return ms.error();
  Sample sample{*ms / n, 0};
  if (counter)
    if (auto cycles = counter->cycles()) sample.cycles = *cycles / n;
  return sample;
}

}  // namespace

double wall_ms(const std::function<void()>& fn) {
  auto start = Clock::now();
  fn();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double thread_ms(const std::function<void()>& fn) {
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
  };
  double start = now();
  fn();
  return now() - start;
}

double median_of(int n, const std::function<double()>& fn) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(fn());
  return median(std::move(values));
}

Result<Timing> time_launches(const std::shared_ptr<Device>& device, Stream& stream,
                             const std::function<Status()>& launch, const TimingOptions& options) {
  auto first = window(device, stream, launch, 1);  // compiles, touches memory
  if (!first) return first.error();
  auto once = window(device, stream, launch, 1);
  if (!once) return once.error();
  int launches =
      options.flush_l2 ? 1 : static_cast<int>(std::clamp(options.window_ms / std::max(once->ms, 1e-4), 1.0, 10000.0));

  DeviceMemory scratch;
  if (options.flush_l2) {
    auto memory = DeviceMemory::allocate(device, std::max<uint64_t>(2 * device->properties().l2_bytes, 64u << 20));
    if (!memory) return memory.error();
    scratch = std::move(*memory);
  }
  std::optional<CycleCounter> counter;
  if (auto made = CycleCounter::create(stream)) counter = std::move(*made);  // hosts have none

  std::vector<double> ms, cycles;
  for (int round = 0; round < options.rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.idle_ms));
    const int warm = 3 + static_cast<int>(std::min(options.warm_ms / std::max(once->ms, 1e-4), 10000.0));
    for (int i = 0; i < warm; ++i)
      if (Status s = launch(); !s) return s.error();
    int repeats = options.flush_l2 ? 20 : 1;
    std::vector<double> times, counts;
    for (int i = 0; i < repeats; ++i) {
      uint32_t pattern = static_cast<uint32_t>(i);
      if (options.flush_l2)
        if (Status s = scratch.fill(stream, &pattern, 4); !s) return s.error();
      auto t = window(device, stream, launch, launches, counter ? &*counter : nullptr);
      if (!t) return t.error();
      times.push_back(t->ms), counts.push_back(t->cycles);
    }
    ms.push_back(median(times)), cycles.push_back(median(counts));
    if (Status s = stream.synchronize(); !s) return s.error();
  }
  const auto [lowest, highest] = std::minmax_element(ms.begin(), ms.end());
  return Timing{median(ms), *lowest, *highest, median(cycles), launches};
}

}  // namespace tile::bench
