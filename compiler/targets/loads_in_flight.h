// loads_in_flight.h - how many loads of machine code are on their way together, for those who assemble it in several
// ways and keep the better one.
#pragma once
#include "compiler/targets/sass.h"

namespace tile::ir {

/// Loads from global memory, and how often something waits for those on their way.
struct LoadsInFlight {
  int loads = 0, waits = 0;
  bool repeated = false;  ///< in a loop
  /// Of `programs` on one multiprocessor, at a time.
  double onTheirWay(int programs) const { return static_cast<double>(programs * loads) / (waits > 1 ? waits : 1); }
};

/// Of the innermost loop with most loads; of all code where no loop loads.
LoadsInFlight mostLoadsInFlight(const SassKernel& kernel);

}  // namespace tile::ir
