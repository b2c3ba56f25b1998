// tensor_map.h - the simulated machine's own form of a tensor map: what cuTensorMapEncodeTiled is told, 128 bytes.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/abi.h"

namespace tile::testing {

struct alignas(64) SimulatedTensorMap {
  static constexpr uint32_t kMagic = 0x7465736d, kUnfenced = 0x6e65777e;
  uint32_t magic = kMagic;  ///< kUnfenced: written by the kernel, and the copy engine may not know
  DType dtype = DType::f32;
  uint8_t rank = 0, swizzle = 0;
  bool tf32 = false;
  uint64_t address = 0;
  std::array<uint32_t, 5> dims{};
  std::array<uint16_t, 5> box{};
  std::array<uint64_t, 5> strides{};  ///< bytes; strides[0] is the element's size

  int elementBytes() const { return static_cast<int>(strides[0]); }
  uint32_t boxBytes() const {
    uint32_t bytes = static_cast<uint32_t>(strides[0]);
    for (int d = 0; d < rank; ++d) bytes *= box[static_cast<size_t>(d)];
    return bytes;
  }
  /// In shared memory a row of a swizzled box takes as many bytes as the swizzle, however few it has (seen on an H200).
  uint32_t rowPitch() const { return swizzle ? swizzle : static_cast<uint32_t>(strides[0]) * box[0]; }
  uint32_t sharedBytes() const { return boxBytes() / (static_cast<uint32_t>(strides[0]) * box[0]) * rowPitch(); }
  /// Throws std::runtime_error where the driver would refuse. Not an aggregate of its own: fields are set first.
  void check() const;
};
static_assert(sizeof(SimulatedTensorMap) == 128);

/// From the slots of a launch (abi.h).
SimulatedTensorMap encodeTensorMap(const TensorMapInfo& info, const KernelBinary& kernel, const uint64_t* slots);

}  // namespace tile::testing
