// stage_room.h - whether a second program has room on the multiprocessor beside one with rings of stages.
#pragma once
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tile::ir {

/// Whether eight warps, or fewer, leave registers for a second program: where the loop does nothing but products of
/// operands in shared memory, and sums in half of the registers that a thread would have.
bool leavesRegisters(mlir::scf::ForOp loop, int warps);

}  // namespace tile::ir
