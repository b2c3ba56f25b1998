// timing.cpp - windows of launches between events, medians of rounds.
#include "tools/bench/timing.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

namespace tile::bench {
namespace {

using Clock = std::chrono::steady_clock;

Timing summary(std::vector<double> ms, int launches) {
  std::sort(ms.begin(), ms.end());
  return {ms[ms.size() / 2], ms.front(), ms.back(), launches};
}

/// Milliseconds per launch of `n` launches in a row.
Result<double> window(const std::shared_ptr<Device>& device, Stream& stream, const std::function<Status()>& launch,
                      int n) {
  if (device->kind() == DeviceKind::host) {
    Status failed = Ok{};
    auto all = [&] {
      for (int i = 0; i < n && failed; ++i) failed = launch();
    };
    double ms = device->properties().multiprocessors == 1 ? thread_ms(all) : wall_ms(all);
    if (!failed) return failed.error();
    return ms / n;
  }
  auto begin = device->create_event(), end = device->create_event();
  if (!begin) return begin.error();
  if (!end) return end.error();
  if (Status s = stream.record(**begin); !s) return s.error();
  for (int i = 0; i < n; ++i)
    if (Status s = launch(); !s) return s.error();
  if (Status s = stream.record(**end); !s) return s.error();
  if (Status s = (*end)->synchronize(); !s) return s.error();
  auto ms = (*end)->elapsed_ms(**begin);
  if (!ms) return ms.error();
  return *ms / n;
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
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Result<Timing> time_launches(const std::shared_ptr<Device>& device, Stream& stream,
                             const std::function<Status()>& launch, const TimingOptions& options) {
  auto first = window(device, stream, launch, 1);  // compiles, touches memory
  if (!first) return first.error();
  auto once = window(device, stream, launch, 1);
  if (!once) return once.error();
  int launches =
      options.flush_l2 ? 1 : static_cast<int>(std::clamp(options.window_ms / std::max(*once, 1e-4), 1.0, 10000.0));

  DeviceMemory scratch;
  if (options.flush_l2) {
    auto memory = DeviceMemory::allocate(device, std::max<uint64_t>(2 * device->properties().l2_bytes, 64u << 20));
    if (!memory) return memory.error();
    scratch = std::move(*memory);
  }
  std::vector<double> ms;
  for (int round = 0; round < options.rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.idle_ms));
    const int warm = 3 + static_cast<int>(std::min(options.warm_ms / std::max(*once, 1e-4), 10000.0));
    for (int i = 0; i < warm; ++i)
      if (Status s = launch(); !s) return s.error();
    int repeats = options.flush_l2 ? 20 : 1;
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      uint32_t pattern = static_cast<uint32_t>(i);
      if (options.flush_l2)
        if (Status s = scratch.fill(stream, &pattern, 4); !s) return s.error();
      auto t = window(device, stream, launch, launches);
      if (!t) return t.error();
      times.push_back(*t);
    }
    std::sort(times.begin(), times.end());
    ms.push_back(times[times.size() / 2]);
    if (Status s = stream.synchronize(); !s) return s.error();
  }
  return summary(std::move(ms), launches);
}

}  // namespace tile::bench
