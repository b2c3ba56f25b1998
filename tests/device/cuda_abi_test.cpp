// Our own declarations of the driver against CUDA's cuda.h, where that is installed.
#include <cuda.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "runtime/abi.h"
#include "runtime/cuda/driver.h"
#include "runtime/float_types.h"

namespace {

namespace ours = tile::cu;

// The same bits in a call: handles are pointers to different incomplete types, enumerations have different names.
template <class A, class B>
inline constexpr bool kSameKind =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>&& std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>;
template <class A, class B>
struct SameCall : std::false_type {};
template <class RA, class... A, class RB, class... B>
struct SameCall<RA (*)(A...), RB (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return kSameKind<RA, RB> && (kSameKind<A, B> && ...);
    else
      return false;
  }();
};

// cuda.h maps the plain names to versions by macros (cuMemAlloc is cuMemAlloc_v2). Here, with cuda.h included first,
// they rename the members of our table alike, so each member meets the version it will be filled with.
#define TILE_DRIVER(name, params) \
  static_assert(SameCall<decltype(ours::Driver::name), decltype(&::name)>::value, "parameters of " #name);
#include "runtime/cuda/driver.def"
#undef TILE_DRIVER

#define SAME_CONSTANT(name) static_assert(static_cast<long>(ours::name) == static_cast<long>(::name), #name)
SAME_CONSTANT(CUDA_SUCCESS);
SAME_CONSTANT(CUDA_ERROR_OUT_OF_MEMORY);
SAME_CONSTANT(CUDA_ERROR_NO_DEVICE);
SAME_CONSTANT(CUDA_ERROR_ECC_UNCORRECTABLE);
SAME_CONSTANT(CUDA_ERROR_INVALID_PTX);
SAME_CONSTANT(CUDA_ERROR_NVLINK_UNCORRECTABLE);
SAME_CONSTANT(CUDA_ERROR_NOT_FOUND);
SAME_CONSTANT(CUDA_ERROR_NOT_READY);
SAME_CONSTANT(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_CONSTANT(CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_CONSTANT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
SAME_CONSTANT(CUDA_ERROR_CONTEXT_IS_DESTROYED);
SAME_CONSTANT(CUDA_ERROR_ASSERT);
SAME_CONSTANT(CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME_CONSTANT(CUDA_ERROR_LAUNCH_FAILED);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
SAME_CONSTANT(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_CONSTANT(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_CONSTANT(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_CONSTANT(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_CONSTANT(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_CONSTANT(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_CONSTANT(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
SAME_CONSTANT(CU_JIT_INFO_LOG_BUFFER);
SAME_CONSTANT(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME_CONSTANT(CU_JIT_ERROR_LOG_BUFFER);
SAME_CONSTANT(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_CONSTANT(CU_JIT_LOG_VERBOSE);
SAME_CONSTANT(CU_STREAM_CAPTURE_STATUS_NONE);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_UINT16);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_INT32);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_INT64);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME_CONSTANT(CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
SAME_CONSTANT(CU_TENSOR_MAP_INTERLEAVE_NONE);
SAME_CONSTANT(CU_TENSOR_MAP_SWIZZLE_NONE);
SAME_CONSTANT(CU_TENSOR_MAP_SWIZZLE_32B);
SAME_CONSTANT(CU_TENSOR_MAP_SWIZZLE_64B);
SAME_CONSTANT(CU_TENSOR_MAP_SWIZZLE_128B);
SAME_CONSTANT(CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
SAME_CONSTANT(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
static_assert(sizeof(ours::TensorMap) == sizeof(::CUtensorMap) && alignof(ours::TensorMap) >= alignof(::CUtensorMap));
SAME_CONSTANT(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
static_assert(sizeof(ours::LaunchConfig) == sizeof(::CUlaunchConfig) &&
              offsetof(ours::LaunchConfig, stream) == offsetof(::CUlaunchConfig, hStream) &&
              offsetof(ours::LaunchConfig, attributes) == offsetof(::CUlaunchConfig, attrs) &&
              offsetof(ours::LaunchConfig, count) == offsetof(::CUlaunchConfig, numAttrs));
static_assert(sizeof(ours::LaunchAttribute) == sizeof(::CUlaunchAttribute) &&
              offsetof(ours::LaunchAttribute, value) == offsetof(::CUlaunchAttribute, value));
static_assert(tile::kTensorMapBytes == sizeof(::CUtensorMap) && tile::kTensorMapAlign == 64);
static_assert(ours::kStreamNonBlocking == CU_STREAM_NON_BLOCKING && ours::kEventDefault == CU_EVENT_DEFAULT);
static_assert(ours::kMemHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(ours::kMemHostDeviceMap == CU_MEMHOSTALLOC_DEVICEMAP);

// A cast to a pointer is no constant expression.
TEST(CudaAbi, PerThreadStream) { EXPECT_EQ(ours::kStreamPerThread, reinterpret_cast<uintptr_t>(CU_STREAM_PER_THREAD)); }

}  // namespace
