// device.cpp - which devices there are: plain lists, nothing registers itself.
#include "runtime/device.h"

#include <fmt/format.h>

#include <charconv>

#include "runtime/cuda/cuda_device.h"
#include "runtime/env.h"
#include "runtime/host/host_device.h"
#include "runtime/spelling.h"

namespace tile {

Module::Module(std::shared_ptr<Device> device, const KernelBinary& binary) : device_(std::move(device)), info_(binary) {
  info_.bytes = {};  // the device has them
}

Status Device::enable_peer_access(Device& owner) {
  if (&owner == this) return ok();
  return user_error(fmt::format("{} cannot reach memory of {}: only GPUs reach each other's", name_, owner.name()));
}

std::vector<std::string> device_names() {
  std::vector<std::string> names{"host"};
  const Result<int> gpus = cuda_device_count();
  for (int i = 0; gpus && i < *gpus; ++i) names.push_back(fmt::format("cuda:{}", i));
  return names;
}

Result<std::shared_ptr<Device>> open_device(const std::string& name) {
  if (name == "host") return open_host_device();
  if (name == "cuda") return open_cuda_device(0);
  if (name.starts_with("cuda:")) {
    int ordinal = -1;
    const char* end = name.data() + name.size();
    const auto [at, problem] = std::from_chars(name.data() + 5, end, ordinal);
    if (problem == std::errc() && at == end && ordinal >= 0) return open_cuda_device(ordinal);
    return user_error(
        fmt::format("'{}' is not a device: after 'cuda:' comes the number of the GPU, as in 'cuda:0'", name));
  }
  return user_error(unknown_name("device", name, device_names()));
}

Result<std::shared_ptr<Device>> default_device() {
  if (const auto wanted = env_text(Env::device)) {
    Result<std::shared_ptr<Device>> device = open_device(*wanted);
    if (device) return device;
    Error error = device.error();
    error.message += fmt::format(" ({} is set)", env_info(Env::device).name);
    return error;
  }
  // A driver that does not answer counts as no GPU here (open_device("cuda") tells why); a GPU that is there but cannot
  // be opened is an error, not a silent fall back to the CPU.
  if (const Result<int> gpus = cuda_device_count(); gpus && *gpus > 0) return open_cuda_device(0);
  return open_host_device();
}

}  // namespace tile
