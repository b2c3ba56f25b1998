// machine.h - the facts default configurations are chosen by.
#pragma once
#include "runtime/device.h"

namespace tile::kernels {

struct Machine {
  bool gpu = false;
  uint32_t shared_bytes = 0;  ///< per program
  int multiprocessors = 1;

  static Machine of(const DeviceProperties& p) { return {p.max_threads > 1, p.max_shared_bytes, p.multiprocessors}; }
  static Machine of(const Stream& s) { return of(s.device().properties()); }
};

}  // namespace tile::kernels
