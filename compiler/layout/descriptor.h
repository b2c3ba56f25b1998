// descriptor.h - how wgmma finds an operand in shared memory: the constant bits of its 64-bit matrix descriptor, and
// what to add to the start address for k steps and for blocks of m or n. Pure C++.
//
// A descriptor holds, in units of 16 bytes, the start address (bits 0-13), a leading (16-29) and a stride (32-45) byte
// offset, and the swizzle (62-63: 1 = 128, 2 = 64, 3 = 32 bytes). Swizzling acts on addresses, so a start inside a
// swizzled panel is as good as one at its edge, as long as the tile itself starts at its alignment.
//
//   contiguous along k:       stride = 8 rows; the leading offset is not used, because an instruction's k is 32 bytes
//   contiguous along m or n:  stride = 8 rows (8 of k), leading = from panel to panel; elements of 16 bits only
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/layout/shared.h"

namespace tile::layout {

struct OperandDescriptor {
  uint64_t bits = 0;     ///< all but the start address
  bool kMinor = true;    ///< false: the instruction's transpose flag
  SharedTile tile;

  int64_t stepBytes(int64_t step) const;  ///< from the tile's start to the elements of k step `step` (32 bytes of k)
  int64_t outerBytes(int64_t element) const;  ///< to row `element` of A or column of B
  /// Instructions start at multiples of this many elements of m or n; inside such a group those that end in it may
  /// start anywhere.
  int outerUnit() const;
};

/// nullopt: wgmma cannot read this tile (no swizzle; m or n minor of elements that are not 16 bits; strides too long).
std::optional<OperandDescriptor> operandDescriptor(const SharedTile& tile, bool kMinor);

/// Columns of each instruction that together make `n` (a multiple of 8): at most 256, all but the last multiples of
/// `unit`.
std::vector<int> instructionColumns(int64_t n, int unit);

}  // namespace tile::layout
