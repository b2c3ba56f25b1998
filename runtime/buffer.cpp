// buffer.cpp - see buffer.h.
#include "runtime/buffer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/transfer.h"

namespace tile {

void detail::check_view(std::span<const int64_t> shape, size_t elements) {
  int64_t count = 1;
  bool fits = true;
  for (int64_t n : shape) fits &= n >= 0 && !__builtin_mul_overflow(count, n, &count);
  // A dim of size 0 leaves nothing, however large the others are.
  fits = std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n >= 0; }) &&
         (std::find(shape.begin(), shape.end(), 0) != shape.end() || (fits && static_cast<size_t>(count) <= elements));
  if (fits) [[likely]]
    return;
  throw Exception(user_error(
      fmt::format("a view of shape [{}] does not fit a buffer of {} elements", fmt::join(shape, ", "), elements)));
}

Result<DeviceMemory> DeviceMemory::allocate(std::shared_ptr<Device> device, size_t bytes) {
  if (!device) return user_error("cannot allocate memory: no device given (null)");
  Result<void*> address = device->allocate(bytes);
  if (!address) return address.error();
  DeviceMemory out;
  out.device_ = std::move(device);
  out.address_ = *address;
  out.bytes_ = bytes;
  return out;
}

DeviceMemory::~DeviceMemory() {
  if (address_ != nullptr) device_->release(address_);
}

Status DeviceMemory::check_range(const char* what, size_t bytes, size_t offset) const {
  if (offset <= bytes_ && bytes <= bytes_ - offset) return ok();
  return user_error(fmt::format("{} {} bytes at offset {}: the buffer has {} bytes", what, bytes, offset, bytes_));
}

Status DeviceMemory::copy_from(const void* host, size_t bytes, size_t offset) {
  if (Status inside = check_range("copy to a buffer:", bytes, offset); !inside || bytes == 0) return inside;
  if (Status idle = device_->synchronize(); !idle) return idle;
  Stream& stream = device_->default_stream();
  if (Status queued = copy_from(stream, host, bytes, offset); !queued) return queued;
  return stream.synchronize();
}

Status DeviceMemory::copy_to(void* host, size_t bytes, size_t offset) const {
  if (Status inside = check_range("copy from a buffer:", bytes, offset); !inside || bytes == 0) return inside;
  if (Status idle = device_->synchronize(); !idle) return idle;
  Stream& stream = device_->default_stream();
  if (Status queued = copy_to(stream, host, bytes, offset); !queued) return queued;
  return stream.synchronize();
}

Status DeviceMemory::copy_from(Stream& stream, const void* host, size_t bytes, size_t offset) {
  if (Status inside = check_range("copy to a buffer:", bytes, offset); !inside || bytes == 0) return inside;
  return stream.copy_to_device(static_cast<char*>(address_) + offset, host, bytes);
}

Status DeviceMemory::copy_to(Stream& stream, void* host, size_t bytes, size_t offset) const {
  if (Status inside = check_range("copy from a buffer:", bytes, offset); !inside || bytes == 0) return inside;
  return stream.copy_to_host(host, static_cast<const char*>(address_) + offset, bytes);
}

Status DeviceMemory::fill(Stream& stream, const void* pattern, size_t pattern_bytes) {
  if (Status fits = check_fill(address_, pattern, pattern_bytes, bytes_ / std::max<size_t>(pattern_bytes, 1)); !fits)
    return fits;
  if (bytes_ % pattern_bytes != 0)
    return user_error(fmt::format("fill: the buffer has {} bytes, no whole number of patterns of {}", bytes_, pattern_bytes));
  if (bytes_ == 0) return ok();
  return stream.fill(address_, pattern, pattern_bytes, bytes_ / pattern_bytes);
}

}  // namespace tile
