// made_views.h - views that a kernel makes of nothing but its arguments: their numbers, which the launcher puts into
// tensor maps, from the slots of a launch (abi.h).
#pragma once
#include <cstdint>
#include <vector>

#include "abi.h"

namespace tile {

/// Bits of each slot of a launch that count, of integers with a sign: 64 but for scalars of fewer.
std::vector<uint8_t> slot_bits(const KernelBinary& kernel);

/// The view's address, sizes and strides as a view argument's slots would be, into out[0 .. 1 + 2 * rank). Sizes are
/// all 0 where the view has no elements, or the argument that it begins in is null: a kernel may pass by what it has
/// not got.
void made_view(const TensorMapInfo& map, const std::vector<uint8_t>& bits, const uint64_t* slots, bool is_null,
               uint64_t* out);

}  // namespace tile
