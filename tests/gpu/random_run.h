// random_run.h - where random kernels run: on the host, and on the simulated machines or the device that
// TILE_RANDOM_DEVICE names. TILE_RANDOM_PROGRAMS=n runs n programs of every type, TILE_RANDOM_SEED=s starts at seed s,
// TILE_RANDOM_SCHEDULE=t has the simulated machines take schedule t, TILE_RANDOM_ASSEMBLE=1 has ptxas look at what they
// run; with TILE_RANDOM_ASSEMBLE=only it does just that, and prints what it remarks on.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/buffer.h"
#include "tests/gpu/random_choices.h"
#include "tests/gpu/settings.h"
#include "tests/gpu/simt.h"
#include "tests/gpu/simt_device.h"

namespace tile::testing {

template <class T>
T whole(int x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x);
  else
    return T(static_cast<float>(x));
}

/// Targets of simulated machines, or the name of a device.
inline std::vector<std::string> random_targets() {
  if (const char* name = std::getenv("TILE_RANDOM_DEVICE")) return {name};
  return {"sm_90a", "sm_80"};
}
/// Of the simulated machines every other one has a single multiprocessor: launches of several programs are many there.
inline std::shared_ptr<Device> random_device(const std::string& target, int seed) {
  if (!target.starts_with("sm_")) return open_device(target).value_or_throw();
  return makeSimtDevice(target, seed / 2 % 2 ? 1 : 4);
}

/// A multiprocessor has only so much shared memory, and a random program says how it is used up.
inline bool is_over_budget(const Error& error) {
  return error.to_string().find("bytes of shared memory per program") != std::string::npos;
}

/// Memory between guard pages as a device sees it: itself, or on a real GPU a copy that copy_back brings back.
template <class T>
class OnDevice {
 public:
  OnDevice(const std::shared_ptr<Device>& device, const GuardedBuffer& host, size_t n) : host_(host.as<T>(), n) {
    if (device->native_context()) copy_ = Buffer<T>::from(device, std::span<const T>(host_)).value_or_throw();
  }
  T* data() const { return copy_.size() ? copy_.data() : host_.data(); }
  Status copy_back() { return copy_.size() ? copy_.copy_to(host_) : ok(); }

 private:
  std::span<T> host_;
  Buffer<T> copy_;
};

/// Where results of rows of `columns` differ first, and how often; empty when they do not.
template <class T>
std::string first_difference(std::span<const T> got, std::span<const T> want, int columns) {
  std::string first;
  int count = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    if (count++ == 0)
      first = fmt::format("row {} column {}: {} instead of {}", i / columns, i % columns, got[i], want[i]);
  }
  return count ? fmt::format("{}; {} of {} differ", first, count, got.size()) : "";
}

/// Buffers of one launch, filled with numbers that follow from the seed.
class RandomMemory {
 public:
  explicit RandomMemory(int seed) : random_(static_cast<uint32_t>(seed)) {}
  int number(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }
  /// One more buffer, of n elements next().
  template <class T, class F>
  const GuardedBuffer& add(int n, F&& next) {
    sizes_.push_back(static_cast<size_t>(n) * sizeof(T));
    const GuardedBuffer& made = buffers_.emplace_back(sizes_.back());
    std::generate_n(made.as<T>(), n, next);
    return made;
  }
  size_t count() const { return buffers_.size(); }
  const GuardedBuffer& buffer(size_t i) const { return buffers_[i]; }
  size_t bytes(size_t i) const { return sizes_[i]; }
  template <class T>
  std::string difference(const RandomMemory& want, size_t i, int columns) const {
    const size_t n = sizes_[i] / sizeof(T);
    return first_difference<T>({buffers_[i].as<T>(), n}, {want.buffers_[i].as<T>(), n}, columns);
  }

 private:
  std::mt19937 random_;
  std::deque<GuardedBuffer> buffers_;
  std::vector<size_t> sizes_;
};

/// All of it as a device sees it.
class MemoryOnDevice {
 public:
  MemoryOnDevice(const std::shared_ptr<Device>& device, const RandomMemory& m) {
    for (size_t i = 0; i < m.count(); ++i) there_.emplace_back(device, m.buffer(i), m.bytes(i));
  }
  template <class T>
  T* data(size_t i) const {
    return reinterpret_cast<T*>(there_[i].data());
  }
  Status copy_back() {
    for (OnDevice<std::byte>& one : there_)
      if (Status copied = one.copy_back(); !copied.ok()) return copied;
    return ok();
  }

 private:
  std::deque<OnDevice<std::byte>> there_;
};

/// Launches a random kernel: as every launch does, or, for one of four seeds, code that is right for any arguments.
template <class K, class... Arguments>
Status launch_one_way(const K& k, const std::shared_ptr<Device>& device, int seed, const Grid& grid,
                      const Arguments&... arguments) {
  Stream& stream = device->default_stream();
  if (seed % 4 != 3) return k.try_launch(stream, {seed}, grid, arguments...);
  const auto any = k.compile(device, RandomSeed{seed});
  return any ? any->try_launch(stream, grid, arguments...) : Status(any.error());
}

/// Prints what ptxas remarks on in the code of one program.
template <class Memory, class Run>
void assemble_only(Run&& run, int seed) {
  for (const std::string& target : random_targets()) {
    Memory memory(seed);
    const Status ran = run(random_device(target, seed), memory, seed);
    if (ran.ok() || is_over_budget(ran.error())) continue;
    const std::string text = ran.error().to_string(), begin = kAssembledOnly;
    const size_t at = text.find(begin);
    ASSERT_NE(at, std::string::npos) << target << ": " << text;
    const std::string said = text.substr(at + begin.size(), text.find('\n', at) - at - begin.size());
    const auto* suite = ::testing::UnitTest::GetInstance()->current_test_suite();
    if (!said.empty()) std::printf("%s seed %d %s: %s\n", suite->name(), seed, target.c_str(), said.c_str());
  }
}

/// Runs the programs that TILE_RANDOM_SEED and TILE_RANDOM_PROGRAMS (else `programs`) choose on the host and elsewhere:
/// run(device, memory, seed) each on a fresh Memory(seed), check(target, got, want, seed) where both ran.
template <class Memory, class Run, class Check>
void host_and_gpus_agree(int programs, Run&& run, Check&& check) {
  const int first = setting("TILE_RANDOM_SEED", 1), end = first + setting("TILE_RANDOM_PROGRAMS", programs);
  const char* assembles = std::getenv("TILE_RANDOM_ASSEMBLE");
  const bool only = assembles && std::string_view(assembles) == "only";
  const std::shared_ptr<Device> host = open_device("host").value_or_throw();
  for (int seed = first; seed < end; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    if (only) {
      assemble_only<Memory>(run, seed);
      continue;
    }
    Memory want(seed);
    const Status reference = run(host, want, seed);
    ASSERT_TRUE(reference.ok()) << reference.error().to_string();
    for (const std::string& target : random_targets()) {
      Memory got(seed);
      setSimtSeed(static_cast<uint32_t>(setting("TILE_RANDOM_SCHEDULE", seed)));
      const Status ran = run(random_device(target, seed), got, seed);
      if (!ran.ok() && is_over_budget(ran.error())) continue;
      EXPECT_TRUE(ran.ok()) << target << ": " << ran.error().to_string();
      if (ran.ok()) check(target, got, want, seed);
    }
  }
}

/// How many launches were of the kinds that are hardest to get right.
inline void print_launches() {
  std::printf("%d launches, %d with roles, %d with bulk copies\n", simtLaunches().all, simtLaunches().persistent,
              simtLaunches().bulk);
}

}  // namespace tile::testing
