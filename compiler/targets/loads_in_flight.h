// loads_in_flight.h - how many loads of machine code are on their way together, for those who assemble it in several
// ways and keep the better one.
#pragma once
#include <vector>

#include "compiler/targets/sass.h"

namespace tile::ir {

enum class LoadedFrom { global, shared };

/// Loads, and how often something waits for those on their way.
struct LoadsInFlight {
  int loads = 0, waits = 0;
  bool repeated = false;  ///< in a loop
  /// Of `programs` on one multiprocessor, at a time.
  double onTheirWay(int programs) const { return static_cast<double>(programs * loads) / (waits > 1 ? waits : 1); }
};

/// Of each innermost loop that loads, in address order; of all code where none does.
std::vector<LoadsInFlight> loadsInFlight(const SassKernel& kernel, LoadedFrom from = LoadedFrom::global);
/// Of those the one with most loads; of equals the first.
LoadsInFlight mostLoads(const std::vector<LoadsInFlight>& each);

}  // namespace tile::ir
