// barriers.h - what bulk copies do to mbarriers.
#pragma once
#include "tests/gpu/simt/machine.h"

namespace tile::testing {

/// The barrier object at a shared address of a program; throws when there is none, or this thread may not know it.
MBarrier& barrierAt(Program& program, uint32_t address);
/// A copy of `bytes` has landed.
void bytesArrived(Program& program, uint32_t address, int64_t bytes);
/// What a thread had started has landed, and counts as its arrival.
void copiesArrived(Program& program, uint32_t address, int thread);

}  // namespace tile::testing
