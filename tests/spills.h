// spills.h - what the assembler may keep in memory without a test failing.
#pragma once
namespace tile::testing {

/// Bytes of spills that are not an accident: ptxas trades a few words (addresses across a loop, for an occupancy step,
/// a moment in which several wide loads are on their way) on its own.
inline constexpr int kFewSpilledBytes = 24;

}  // namespace tile::testing
