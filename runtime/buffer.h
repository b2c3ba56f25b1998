// buffer.h - owning device memory: DeviceMemory counts bytes, Buffer<T> elements. Move-only; freed with the last owner.
// Copies without a stream wait for everything the device was given before, so they see every earlier result; copies
// with a stream are asynchronous and in its order.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "device.h"
#include "tensor.h"

namespace tile {

/// Bytes on a device.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> allocate(std::shared_ptr<Device> device, size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    DeviceMemory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~DeviceMemory();

  void* data() const { return address_; }
  size_t bytes() const { return bytes_; }
  const std::shared_ptr<Device>& device() const { return device_; }

  /// `bytes` at `offset` must lie inside, else a user error with the numbers.
  Status copy_from(const void* host, size_t bytes, size_t offset = 0);
  Status copy_to(void* host, size_t bytes, size_t offset = 0) const;
  Status copy_from(Stream& stream, const void* host, size_t bytes, size_t offset = 0);
  Status copy_to(Stream& stream, void* host, size_t bytes, size_t offset = 0) const;
  /// Repetitions of a pattern of 1, 2, 4 or 8 bytes, which divides bytes().
  Status fill(Stream& stream, const void* pattern, size_t pattern_bytes);

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
  }
  Status check_range(const char* what, size_t bytes, size_t offset) const;
  std::shared_ptr<Device> device_;
  void* address_ = nullptr;
  size_t bytes_ = 0;
};

namespace detail {
/// Throws tile::Exception unless `shape` is one of at most `elements` elements.
void check_view(std::span<const int64_t> shape, size_t elements);
}  // namespace detail

/// Elements T on a device: allocate() leaves them undefined, from() copies them from the host. A kernel takes data()
/// for a Ptr<T> and view(rows, columns) for a Tensor<T, 2>.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "device buffers hold plain data");

 public:
  Buffer() = default;
  static Result<Buffer> allocate(std::shared_ptr<Device> device, size_t count) {
    if (count > SIZE_MAX / sizeof(T)) count = SIZE_MAX / sizeof(T);  // refused below with the device's numbers
    Result<DeviceMemory> memory = DeviceMemory::allocate(std::move(device), count * sizeof(T));
    if (!memory) return memory.error();
    Buffer out;
    out.memory_ = std::move(*memory);
    return out;
  }
  /// Allocated and filled from host data.
  static Result<Buffer> from(std::shared_ptr<Device> device, std::span<const T> host) {
    Result<Buffer> out = allocate(std::move(device), host.size());
    if (!out) return out;
    if (Status copied = out->copy_from(host); !copied) return copied.error();
    return out;
  }

  /// The bits of a vector<bool> lie together; in memory each has a byte.
  static Result<Buffer> from(std::shared_ptr<Device> device,
                             const std::vector<bool>& host) requires(std::is_same_v<T, bool>) {
    const auto bytes = std::make_unique<bool[]>(host.size());
    std::copy(host.begin(), host.end(), bytes.get());
    return from(std::move(device), std::span<const bool>(bytes.get(), host.size()));
  }

  T* data() const { return static_cast<T*>(memory_.data()); }
  size_t size() const { return memory_.bytes() / sizeof(T); }
  size_t bytes() const { return memory_.bytes(); }
  const std::shared_ptr<Device>& device() const { return memory_.device(); }

  Status copy_from(std::span<const T> host) { return memory_.copy_from(host.data(), host.size_bytes()); }
  Status copy_to(std::span<T> host) const { return memory_.copy_to(host.data(), host.size_bytes()); }
  Status copy_from(Stream& stream, std::span<const T> host) {
    return memory_.copy_from(stream, host.data(), host.size_bytes());
  }
  Status copy_to(Stream& stream, std::span<T> host) const {
    return memory_.copy_to(stream, host.data(), host.size_bytes());
  }
  Result<std::vector<T>> to_host() const {
    if constexpr (std::is_same_v<T, bool>) {
      const auto bytes = std::make_unique<bool[]>(size());
      if (Status copied = copy_to(std::span<bool>(bytes.get(), size())); !copied) return copied.error();
      return std::vector<bool>(bytes.get(), bytes.get() + size());
    } else {
      std::vector<T> out(size());
      if (Status copied = copy_to(std::span<T>(out)); !copied) return copied.error();
      return out;
    }
  }
  Status fill(Stream& stream, const T& value) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                  "fill takes 1, 2, 4 or 8 byte values");
    return memory_.fill(stream, &value, sizeof(T));
  }

  /// A dense row-major view of the first elements. Throws tile::Exception for shapes of more than size() elements and
  /// negative sizes.
  template <class... I>
  TensorView<T, sizeof...(I)> view(I... shape) const {
    const std::array<int64_t, sizeof...(I)> sizes{static_cast<int64_t>(shape)...};
    detail::check_view(sizes, size());
    return TensorView<T, sizeof...(I)>(data(), sizes);
  }

 private:
  DeviceMemory memory_;
};

}  // namespace tile
