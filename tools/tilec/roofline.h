// roofline.h - the least time a machine needs for a problem: operations at its arithmetic peak or bytes at its memory's
// speed, whichever takes longer. And the time a kernel really took, when there is a device to ask.
#pragma once
#include <string>

#include "runtime/error.h"
#include "tools/tilec/commands.h"

namespace tilec {

struct Roofline {
  std::string problem, machine, limit;  ///< "arithmetic" or "memory"
  double flops = 0, bytes = 0;
  double peakFlops = 0, peakBytes = 0;             ///< per second; 0: the machine is not known
  double boundMilliseconds = 0, milliseconds = 0;  ///< of them the second measured or given; 0: not
  double share() const { return milliseconds > 0 ? boundMilliseconds / milliseconds : 0; }
};

/// For a catalog kernel and choice.problem. Errors of the request set `usageError`.
tile::Result<Roofline> rooflineOf(const KernelChoice& choice, const std::string& target, const ReportRequest& request,
                                  bool* usageError);

}  // namespace tilec
