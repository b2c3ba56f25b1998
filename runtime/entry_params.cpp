// entry_params.cpp - see entry_params.h.
#include "runtime/entry_params.h"

namespace tile {

std::string_view name(EntryParam::Kind kind) {
  constexpr std::string_view names[] = {"address",    "scalar", "size",    "stride",
                                        "debug_ring", "grid",   "tickets", "tensor_map"};
  return names[kind];
}

std::vector<EntryParam> entry_params(const KernelBinary& kernel) {
  std::vector<EntryParam> out;
  const bool host = kernel.format == BinaryFormat::host_object;
  const auto add = [&](EntryParam::Kind kind, uint32_t bytes, uint32_t index, uint32_t dim = 0) {
    const uint32_t wide = host ? 8 : bytes;
    out.push_back({kind, wide, kind == EntryParam::tensor_map ? kTensorMapAlign : wide, index, dim});
  };
  for (uint32_t i = 0; i < kernel.params.size(); ++i) {
    const ParamInfo& p = kernel.params[i];
    if (p.kind == ParamInfo::scalar) {
      add(EntryParam::scalar, static_cast<uint32_t>(size_of(p.dtype)), i);
      continue;
    }
    add(EntryParam::address, 8, i);
    if (p.kind != ParamInfo::view) continue;
    for (uint32_t d = 0; d < p.rank; ++d) add(EntryParam::size, 8, i, d);
    for (uint32_t d = 0; d < p.rank; ++d) add(EntryParam::stride, 8, i, d);
  }
  if (kernel.uses_debug_ring) add(EntryParam::debug_ring, 8, 0);
  if (kernel.persistent)
    for (uint32_t axis = 0; axis < 3; ++axis) add(EntryParam::grid, 4, axis);
  if (kernel.uses_tickets) add(EntryParam::tickets, 8, 0);
  for (uint32_t i = 0; i < kernel.tensor_maps.size(); ++i) add(EntryParam::tensor_map, kTensorMapBytes, i);
  return out;
}

}  // namespace tile
