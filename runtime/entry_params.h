// entry_params.h - the parameters of a kernel's entry one by one, as abi.h lays them out: for reports, and for launchers
// of one's own.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "abi.h"

namespace tile {

struct EntryParam {
  /// Of a pointer or view its address; a scalar; of a view the sizes and the strides (in elements) of its dims. Hidden:
  /// the launch's DebugRing, the grid's sizes, the launch's TicketCounter, tensor maps.
  enum Kind : uint8_t { address, scalar, size, stride, debug_ring, grid, tickets, tensor_map } kind = address;
  uint32_t bytes = 8;  ///< a CUDA kernel's .param; host kernels have slots of 8 bytes
  uint32_t align = 8;
  uint32_t index = 0;  ///< of the kernel's parameter (not hidden), of the grid's axis, of the tensor map
  uint32_t dim = 0;    ///< size, stride: of the view
  bool operator==(const EntryParam&) const = default;
};
std::string_view name(EntryParam::Kind kind);

/// In order, hidden ones last.
std::vector<EntryParam> entry_params(const KernelBinary& kernel);

}  // namespace tile
