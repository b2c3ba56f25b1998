// sass_blocks.h - machine code as basic blocks: what sass.cpp finds loops in and sass_in_flight.cpp follows products
// through.
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/targets/sass.h"

namespace tile::ir {

/// Opcodes that decide where code goes on, those of asynchronous products and their waits, and arrivals at barriers.
enum SassOpcode : uint32_t {
  kBra = 0x947,
  kBraUniform = 0x547,
  kExit = 0x94d,
  kRet = 0x950,
  kIndirect = 0x949,
  kCall = 0x944,
  kHgmma = 0x9f0,
  kHgmmaReg = 0xdf0,
  kIgmma = 0x9f1,
  kIgmmaReg = 0xdf1,
  kBgmma = 0x9f2,
  kBgmmaReg = 0xdf2,
  kQgmma = 0x9f3,
  kQgmmaReg = 0xdf3,
  kWarpgroup = 0x9c5,
  kArrive = 0x9a7,
};

struct SassBlock {
  int first = 0, end = 0;  ///< instruction indices
  std::vector<int> successors, predecessors;
};

/// Index of the instruction that the branch or call at `index` goes to; maybe none of the code's.
int64_t branchTarget(const SassInstruction& inst, int64_t index, int sm);

/// Blocks in address order, of code for compute capability `sm` (80, 90). A call is an instruction like others; what it
/// calls has blocks without predecessors, up to its return.
std::vector<SassBlock> splitBlocks(const std::vector<SassInstruction>& code, int sm);

}  // namespace tile::ir
