// grid_runner.h - runs the programs of a grid on the CPU's threads.
#pragma once
#include <memory>

#include "../abi.h"
#include "../launch.h"

namespace tile {

/// Keeps its threads (a oneTBB arena) between grids. Grids of several callers may run at the same time.
class GridRunner {
 public:
  explicit GridRunner(int threads);
  ~GridRunner();
  int threads() const { return threads_; }

  /// Calls `entry` once per program, each call with the calling thread's own scratch of `arena_bytes`. Programs start
  /// in order of their linear index (x fastest) within each thread. With a ring, a program that fails an assertion
  /// keeps those that have not started from running. False: a thread's scratch could not be allocated (nothing else can
  /// fail).
  bool run(HostEntry entry, const uint64_t* slots, const Grid& grid, uint32_t arena_bytes, const KernelBinary& kernel,
           DebugRing* ring);

 private:
  struct Threads;
  int threads_;
  std::unique_ptr<Threads> arena_;  ///< null with one thread
};

}  // namespace tile
