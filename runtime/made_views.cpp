// made_views.cpp - see made_views.h.
#include "runtime/made_views.h"

#include <algorithm>

namespace tile {
namespace {

uint64_t signed_slot(uint64_t slot, uint8_t bits) {
  const int unused = 64 - bits;
  return static_cast<uint64_t>(static_cast<int64_t>(slot << unused) >> unused);
}

uint64_t value_of(const SlotSum& sum, const std::vector<uint8_t>& bits, const uint64_t* slots) {
  auto total = static_cast<uint64_t>(sum.constant);
  for (const SlotSum::Term& term : sum.terms) {
    auto product = static_cast<uint64_t>(term.factor);
    for (uint32_t slot : term.slots) product *= signed_slot(slots[slot], bits[slot]);
    total += product;
  }
  return static_cast<uint64_t>(std::min(static_cast<int64_t>(total), sum.most));
}

}  // namespace

std::vector<uint8_t> slot_bits(const KernelBinary& kernel) {
  std::vector<uint8_t> bits;
  for (const ParamInfo& p : kernel.params)
    bits.insert(bits.end(), p.slots(),
                p.kind == ParamInfo::scalar ? static_cast<uint8_t>(8 * size_of(p.dtype)) : uint8_t{64});
  return bits;
}

void made_view(const TensorMapInfo& map, const std::vector<uint8_t>& bits, const uint64_t* slots, bool is_null,
               uint64_t* out) {
  for (size_t i = 0; i < map.made.size(); ++i) out[i] = value_of(map.made[i], bits, slots);
  uint64_t* sizes = out + 1;
  const auto is_none = [](uint64_t size) { return static_cast<int64_t>(size) <= 0; };
  if (is_null || std::any_of(sizes, sizes + map.rank, is_none)) return void(std::fill_n(sizes, map.rank, uint64_t{0}));
  // No coordinate of a copy is above what 31 bits hold.
  for (size_t d = 0; d < map.rank; ++d) sizes[d] = std::min<uint64_t>(sizes[d], INT32_MAX);
}

}  // namespace tile
