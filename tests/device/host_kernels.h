// host_kernels.h - the kernels of the conformance suite as C++ functions of the host calling convention (abi.h). The
// suite runs them on the host device through a loader; the fake GPU driver runs the same ones.
#pragma once
#include <cstdint>

#include "runtime/abi.h"

namespace tile::testing_kernels {

inline constexpr int kThreads = 128;  ///< elements per program, as on the GPU

struct HostKernel {
  const char* name;
  HostEntry entry;
  int slots;  ///< the ring included
  bool persistent = false, tickets = false;
  int maps = 0;
  /// What the entry finds behind its slots, one each: the grid's x, y, z; the address of the TicketCounter; addresses
  /// of tensor maps. The fake driver gathers them from the parameters.
  int hidden() const { return (persistent ? 3 : 0) + (tickets ? 1 : 0) + maps; }
};
/// Null if there is none of that name.
const HostKernel* find_host_kernel(const char* name);

/// The boxes of `copy_boxes`: elements along a row, rows.
inline constexpr int kBoxCols = 32, kBoxRows = 8;

/// What the fake driver writes into the 128 bytes of a tensor map.
struct FakeTensorMap {
  uint64_t address;
  uint64_t dims[5], strides[4];  ///< strides in bytes, of dims 1 and up
  uint16_t box[5];
  uint8_t rank, element_bytes;
  /// Where element (at[0], at[1], ...) is; null outside the map.
  void* find(const int64_t* at) const {
    uint64_t to = address;
    for (int d = 0; d < rank; ++d) {
      if (at[d] < 0 || static_cast<uint64_t>(at[d]) >= dims[d]) return nullptr;
      to += static_cast<uint64_t>(at[d]) * (d == 0 ? element_bytes : strides[d - 1]);
    }
    return reinterpret_cast<void*>(to);
  }
};
static_assert(sizeof(FakeTensorMap) <= kTensorMapBytes);

/// What a kernel does that ends abnormally (only the fake driver runs those); the argument is the CUresult to report.
inline thread_local void (*t_die)(int cuda_error) = nullptr;

}  // namespace tile::testing_kernels
