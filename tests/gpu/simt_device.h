// simt_device.h - the simulated machine as a Device: kernels are compiled for a GPU target and launched as on a GPU, so whole
// catalog rows run on it. Memory is the host's.
#pragma once
#include <memory>
#include <string>

#include "runtime/device.h"

namespace tile::testing {

/// A fresh device. It listens to the compiler for the IR of what it will load: this sets the process's JIT policy.
/// Launches of at most `multiprocessors` programs get the code for few programs.
std::shared_ptr<Device> makeSimtDevice(const std::string& target = "sm_90a", int multiprocessors = 4);

/// Begins the error that a device gives in the place of a module under TILE_RANDOM_ASSEMBLE=only; what ptxas remarks on
/// (spills, serialised products) follows.
inline constexpr const char* kAssembledOnly = "assembled only: ";

/// The schedule of the launches to come (SimtKernel::run).
void setSimtSeed(uint32_t seed);
/// Launches so far, and how many of them had roles or bulk copies.
struct SimtLaunches {
  int all = 0, persistent = 0, bulk = 0;
};
SimtLaunches simtLaunches();

}  // namespace tile::testing
