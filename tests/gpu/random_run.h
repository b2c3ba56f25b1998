// random_run.h - where random kernels run: on the simulated machines, or on the device that TILE_RANDOM_DEVICE names.
#pragma once
#include <fmt/format.h>

#include <cstdlib>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/buffer.h"
#include "tests/gpu/simt.h"
#include "tests/gpu/simt_device.h"

namespace tile::testing {

template <class T>
T whole(int x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x);
  else
    return T(static_cast<float>(x));
}

/// Targets of simulated machines, or the name of a device.
inline std::vector<std::string> random_targets() {
  if (const char* name = std::getenv("TILE_RANDOM_DEVICE")) return {name};
  return {"sm_90a", "sm_80"};
}
inline std::shared_ptr<Device> random_device(const std::string& target) {
  return target.starts_with("sm_") ? makeSimtDevice(target) : open_device(target).value_or_throw();
}

/// A multiprocessor has only so much shared memory, and a random program says how it is used up.
inline bool is_over_budget(const Error& error) {
  return error.to_string().find("bytes of shared memory per program") != std::string::npos;
}

/// Memory between guard pages as a device sees it: itself, or on a real GPU a copy that copy_back brings back.
template <class T>
class OnDevice {
 public:
  OnDevice(const std::shared_ptr<Device>& device, const GuardedBuffer& host, size_t n) : host_(host.as<T>(), n) {
    if (device->native_context()) copy_ = Buffer<T>::from(device, std::span<const T>(host_)).value_or_throw();
  }
  T* data() const { return copy_.size() ? copy_.data() : host_.data(); }
  Status copy_back() { return copy_.size() ? copy_.copy_to(host_) : ok(); }

 private:
  std::span<T> host_;
  Buffer<T> copy_;
};

/// Where results of rows of `columns` differ first, and how often; empty when they do not.
template <class T>
std::string first_difference(std::span<const T> got, std::span<const T> want, int columns) {
  std::string first;
  int count = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;
    if (count++ == 0)
      first = fmt::format("row {} column {}: {} instead of {}", i / columns, i % columns, got[i], want[i]);
  }
  return count ? fmt::format("{}; {} of {} differ", first, count, got.size()) : "";
}

}  // namespace tile::testing
