// spills.h - what the assembler may keep in memory without a test failing.
#pragma once
#include "runtime/abi.h"

namespace tile::testing {

/// Bytes of spills that are not an accident: ptxas trades a few words (addresses across a loop, for an occupancy step)
/// on its own, with registers to spare.
inline int few_spilled_bytes(const Resources& r) { return r.registers < 255 ? 16 : 0; }

}  // namespace tile::testing
