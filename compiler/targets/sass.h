// sass.h - reads the machine code in a cubin, as far as reports and tests need it: which instructions there are, where
// the loops are, what the hottest one does in which order. Knows opcodes of sm_80 to sm_90 by measurement (an
// instruction has 16 bytes, its opcode is the low 12 bits); no vendor tool is needed. Pure C++ over the ELF bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/error.h"

namespace tile::ir {

struct SassInstruction {
  uint64_t low = 0, high = 0;
  uint32_t opcode() const { return static_cast<uint32_t>(low & 0xfff); }
  bool predicated() const { return (low >> 12 & 15) != 7; }
};

/// How often what reports care about occurs in a range of code.
struct SassCounts {
  int instructions = 0;
  int hgmma = 0, qgmma = 0, igmma = 0, bgmma = 0;  ///< warpgroup products: f16, bf16 and tf32; fp8; int8; bits
  int hmma = 0, imma = 0, dmma = 0, bmma = 0;      ///< warp products
  int mufu = 0;                                    ///< exp2, log2, rcp, rsqrt, tanh ...
  int localLoads = 0, localStores = 0;             ///< spills and arrays without registers
  int globalLoads = 0, globalStores = 0, asyncCopies = 0, bulkLoads = 0, bulkStores = 0;
  int sharedLoads = 0, sharedStores = 0, barriers = 0, shuffles = 0;
  int warpgroupProducts() const { return hgmma + qgmma + igmma + bgmma; }
  int tensorOps() const { return warpgroupProducts() + hmma + imma + dmma + bmma; }
};

/// A natural loop. `blocks` of instructions, in address order; loops inside it are part of it.
struct SassLoop {
  std::vector<std::pair<int, int>> blocks;  ///< [first, end) instruction indices
  int depth = 1;                            ///< 1: not inside another loop
  SassCounts counts;
};

struct SassKernel {
  std::vector<SassInstruction> code;
  SassCounts counts;
  std::vector<SassLoop> loops;
  /// setmaxnreg: registers per thread each occurrence asks for, in address order.
  std::vector<int> registerChanges;

  /// The innermost loop with most of the work: tensor ops if the kernel has any, else MUFU, else memory accesses. Of
  /// equals the shortest: longer ones are its copies for iterations that mask.
  const SassLoop* hottestLoop() const;
  /// What tensor cores, special functions and synchronisation do in `loop`, in order, e.g.
  /// "try ss8 try rs8 wait1 arrive mufu64 wait0 arrive": products from shared memory (ss) or with A in registers (rs).
  std::string phases(const SassLoop& loop) const;
};

/// Decodes `entry` of a cubin made for an architecture of compute capability `sm` (80, 90).
Result<SassKernel> readSass(std::string_view cubin, const std::string& entry, int sm);

}  // namespace tile::ir
