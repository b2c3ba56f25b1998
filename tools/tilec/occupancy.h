// occupancy.h - how many programs of a kernel run on one multiprocessor at a time, and what limits that. Facts of the
// CUDA programming guide's table of compute capabilities.
#pragma once
#include <string>

#include "compiler/targets/target.h"
#include "runtime/abi.h"

namespace tilec {

struct Occupancy {
  int programs = 0;       ///< on one multiprocessor; 0: not known (host, or registers not known)
  int warps = 0, maxWarps = 0;
  std::string limits;     ///< "shared memory", "registers", "threads", "programs"
};

Occupancy occupancyOf(const tile::KernelBinary& binary, const tile::ir::Target& target);

}  // namespace tilec
