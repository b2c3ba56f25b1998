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
};
/// Null if there is none of that name.
const HostKernel* find_host_kernel(const char* name);

/// What a kernel does that ends abnormally (only the fake driver runs those); the argument is the CUresult to report.
inline thread_local void (*t_die)(int cuda_error) = nullptr;

}  // namespace tile::testing_kernels
