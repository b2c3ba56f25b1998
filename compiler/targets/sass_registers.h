// sass_registers.h - which registers an instruction reads and writes. sass_registers.cpp has the table.
#pragma once
#include <array>
#include <optional>

#include "compiler/targets/sass.h"

namespace tile::ir {

/// Neighbouring registers, RZ left out. An empty range has `count` 0.
struct SassRange {
  int first = 0, count = 0;
  bool overlaps(const SassRange& other) const {
    return count && other.count && first < other.first + other.count && other.first < first + count;
  }
  bool operator==(const SassRange&) const = default;
};

struct SassRegisters {
  SassRange written;
  std::array<SassRange, 3> read;
};

/// Nothing when the instruction is unknown. Where the number of registers is not known exactly it is the larger one. A
/// predicated instruction writes what it may write. Products of warpgroups are known, too: `written` is the
/// accumulator, read[0] operand A, read[2] the accumulator before.
std::optional<SassRegisters> registersOf(const SassInstruction& inst);

}  // namespace tile::ir
