// debug.h - checks while tracing, prints and assertions while running, and promises to the compiler.
#pragma once
#include <string>

#include "value.h"

namespace tile {

/// Fails the trace, with the other errors of the kernel, when a configuration makes no sense.
inline void static_check(bool condition, const std::string& message, SrcLoc loc = SrcLoc::current()) {
  if (!condition) detail::report("static_check failed: " + message, loc);
}
/// Prints a whole tile or scalar from every program that gets here; put it under if_ to choose programs.
inline void device_print(const std::string& message, Expr x) { detail::device_print(message, x); }
/// Where an element of the condition is false the launch fails with the message, this line and the element's index.
inline void device_assert(Expr condition, const std::string& message) { detail::device_assert(condition, message); }

/// The value, with the promise that it (every element) is a multiple of n. A wrong promise is undefined behaviour.
[[nodiscard]] inline Tile multiple_of(Expr x, int64_t n) {
  return detail::make_tile(detail::multiple_of(x, n), x.loc);
}
/// Promise that a scalar condition holds.
inline void assume(Expr condition) { detail::assume(condition); }
/// Warps per program on a GPU (1, 2 or a multiple of 4 up to 32); ignored on the host. Without it, or with 0, the
/// compiler chooses: 4, where it has no reason for others (large products and few programs have more).
inline void num_warps(int n, SrcLoc loc = SrcLoc::current()) { detail::set_num_warps(n, loc); }
/// Programs (1 to 32) whose registers shall fit a multiprocessor of a GPU at a time: fewer registers for each thread,
/// more programs that hide each other's latencies. Without it a thread takes what makes it fastest alone.
inline void programs_per_multiprocessor(int n, SrcLoc loc = SrcLoc::current()) { detail::set_programs(n, loc); }
/// With n = 2, 4 or 8, programs n i .. n i + n - 1 along axis 0 run side by side on GPUs with clusters (sm_90), and
/// tiles that loops with products load at indices that do not depend on program_id(0) are copied once for all of them:
/// each program copies one of n parts to all. Then the grid's x must be a multiple of n. Other machines, and kernels in
/// which nothing is shared, ignore it.
inline void programs_per_cluster(int n, SrcLoc loc = SrcLoc::current()) { detail::set_cluster(n, loc); }

}  // namespace tile
