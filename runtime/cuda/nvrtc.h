// nvrtc.h - the user's own CUDA C++ compiled at run time into the same KernelBinary that tile kernels become.
// libnvrtc is opened when first needed: TILE_NVRTC, the loader's path, CUDA_HOME, /usr/local/cuda, pip's nvidia
// packages.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "../abi.h"
#include "../cache.h"
#include "../error.h"

namespace tile {

struct CudaSource {
  std::string source;
  std::string file_name = "kernel.cu";  ///< as the compiler's messages name it
  std::string entry;                    ///< an extern "C" __global__ name, or an expression such as `scale<float, 4>`
  std::vector<ParamInfo>
      params;                 ///< one per kernel parameter (a struct view is not available: use pointers and scalars)
  uint32_t threads = 256;     ///< block size
  uint32_t shared_bytes = 0;  ///< dynamic shared memory
  std::vector<std::string> options;  ///< passed to the compiler, e.g. "--use_fast_math"
};

/// Compiles for `target` ("sm_90a"). Errors of the source are user errors carrying the compiler's log. Results are kept
/// in `cache` (null: not cached), keyed by source, options, target and compiler version.
Result<KernelBinary> compile_cuda(const CudaSource& source, const std::string& target,
                                  DiskCache* cache = &DiskCache::standard());

/// "12.4", or an error that says where libnvrtc was looked for.
Result<std::string> nvrtc_version();

}  // namespace tile
