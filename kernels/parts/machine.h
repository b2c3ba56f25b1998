// machine.h - the facts default configurations are chosen by.
#pragma once
#include <string_view>

#include "../../runtime/device.h"

namespace tile::kernels {

struct Machine {
  bool gpu = false;
  uint32_t shared_bytes = 0;  ///< per program
  int multiprocessors = 1;
  bool warpgroups = false;  ///< products of whole warpgroups, copies by a producer warp: one large program per
                            ///< multiprocessor is best
  std::string_view model = {};  ///< whose tuned configurations to use; the text is the device's, empty: nobody's

  /// GPUs with 99 KiB for a program (sm_86, sm_89), not 163 or 227.
  bool short_of_shared() const { return gpu && shared_bytes < 128 * 1024; }

  static Machine of(const DeviceProperties& p) {
    return {p.max_threads > 1, p.max_shared_bytes, p.multiprocessors, p.target == "sm_90a", p.model};
  }
  static Machine of(const Stream& s) { return of(s.device().properties()); }
};

}  // namespace tile::kernels
