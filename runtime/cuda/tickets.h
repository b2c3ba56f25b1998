// tickets.h - the TicketCounters of one context. A counter serves one launch at a time and is zero between launches
// (the kernel sees to that), so launches that may run at once need different ones: every stream has its own, and a
// launch that is captured into a graph gets one for the graph.
#pragma once
#include <deque>
#include <mutex>
#include <unordered_map>

#include "../abi.h"
#include "driver.h"
#include "../error.h"

namespace tile::cu {

class Tickets {
 public:
  static constexpr size_t kOwned = 1024, kShared = 16384;
  explicit Tickets(const Driver& driver) : driver_(driver) {}

  /// Makes the counters, once; called when a kernel that draws tickets is loaded, since a launch must not allocate. The
  /// context must be current; `stream` is one of ours.
  Status prepare(CUstream stream);
  void release();  ///< with the context current, when nothing runs any more

  /// The stream's own: the same at every call (its launches run one after the other) until forget().
  CUdeviceptr of_stream(CUstream stream);
  void forget(CUstream stream);
  /// One for a captured launch, or for a stream that is several (the per-thread one): never the counter of a stream.
  /// They go round, so two launches share one only when kShared others were made in between.
  CUdeviceptr next_shared();

 private:
  CUdeviceptr next_locked();
  static constexpr size_t kSpacing = 32;  ///< bytes: a sector of its own each
  const Driver& driver_;
  std::mutex mutex_;
  CUdeviceptr memory_ = 0;
  std::deque<CUdeviceptr> free_;  ///< of the owned ones; the longest unused first
  std::unordered_map<CUstream, CUdeviceptr> owned_;
  size_t next_ = 0;
};

}  // namespace tile::cu
