// timing.h - how long a case takes. GPU: events around windows of launches; host: the clock around each launch.
#pragma once
#include <functional>
#include <memory>

#include "runtime/buffer.h"
#include "runtime/device.h"

namespace tile::bench {

struct TimingOptions {
  int rounds = 5;
  double window_ms = 10;  ///< launches per round fill about this long
  double idle_ms =
      200;  ///< before each round: every contender starts from the same, cool clock (GPUs are power limited)
  double warm_ms = 0;     ///< launches before the window, beside the three that always run: the clock of a loaded chip
  bool flush_l2 = false;  ///< time launches one by one, with the second-level cache overwritten in between
};

struct Timing {
  double ms = 0, lowest = 0, highest = 0;  ///< median, minimum and maximum of the rounds, per launch
  double cycles = 0;                       ///< of the multiprocessors, median of the rounds, per launch; 0: not counted
  int launches = 0;                        ///< per round
};

/// Times `launch`, which queues one run on the stream. Warm-up runs come first. On a host device of one thread it is
/// processor time that counts, else wall time.
Result<Timing> time_launches(const std::shared_ptr<Device>& device, Stream& stream,
                             const std::function<Status()>& launch, const TimingOptions& options);

/// Median of n calls of fn, each returning a duration.
double median_of(int n, const std::function<double()>& fn);
/// Milliseconds of steady clock fn takes.
double wall_ms(const std::function<void()>& fn);
/// Milliseconds of processor time fn takes in the calling thread: what others do on a shared machine does not count.
double thread_ms(const std::function<void()>& fn);

}  // namespace tile::bench
