// target.h - facts about a machine. A pass asks "how many lanes, is there an async copy", never "is this CUDA".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace tile::ir {

enum class Backend : uint8_t { nvptx, host };

/// Immutable, shared by all threads.
struct Target {
  std::string name;            ///< "sm_80", "sm_86", "sm_89", "sm_90a", "host", "host:x86-64-v3", ...
  Backend backend = Backend::host;
  // NVIDIA
  int sm = 0;                  ///< 80, 86, 89, 90
  std::string features;        ///< LLVM feature string ("+ptx80")
  int lanes = 32;
  int maxThreads = 1024;
  int maxRegsPerThread = 255;
  uint32_t registersPerSm = 65536;
  uint32_t maxSharedBytes = 0; ///< per program, opt-in limit
  int atomicBytes = 4;         ///< of floats one thread adds to memory with one instruction
  bool hasAsyncCopy = false;   ///< cp.async
  bool hasMma = false;         ///< mma.sync m16n8k16
  bool hasWgmma = false;       ///< wgmma, setmaxnreg: warpgroups with roles
  bool hasTma = false;         ///< bulk tensor copies that count on barriers
  // host
  std::string cpu;             ///< LLVM CPU name
  int vectorBytes = 16;        ///< native vector width
  int vectorRegisters = 16;
};

/// Finds a target by name, e.g. "sm_90a" or "host" (this machine's CPU) or "host:x86-64" (portable baseline).
/// Unknown names give a user error with the nearest spelling and the list.
Result<Target> lookupTarget(const std::string& name);
std::vector<std::string> targetNames();

}  // namespace tile::ir
