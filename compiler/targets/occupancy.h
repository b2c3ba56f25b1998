// occupancy.h - how many programs of a kernel run on one multiprocessor at a time, and what limits that. Facts of the
// CUDA programming guide's table of compute capabilities.
#pragma once
#include <string>

#include "compiler/targets/target.h"

namespace tile::ir {

/// What a program takes of a multiprocessor.
struct ProgramNeeds {
  int threads = 0;
  int registers = 0;        ///< of each thread; 0: not known
  int64_t sharedBytes = 0;  ///< dynamic and static
};

struct Occupancy {
  int programs = 0;       ///< on one multiprocessor; 0: not known (host, or registers not known)
  int warps = 0, maxWarps = 0;
  std::string limits;     ///< "shared memory", "registers", "threads", "programs"
};

Occupancy occupancyOf(const ProgramNeeds& needs, const Target& target);

/// Bytes that threads may keep in memory so that another program has room.
inline constexpr int kSpilledForAnother = 8;

/// Registers are given to threads in steps of so many.
inline constexpr int kRegisterStep = 8;

}  // namespace tile::ir
