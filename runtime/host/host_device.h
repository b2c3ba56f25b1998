// host_device.h - the CPU as a device: device memory is host memory, a grid runs at once on oneTBB.
// Turning an object file into a function pointer needs a linker (LLVM's ORC), which the runtime does not have: whoever
// links the compiler sets it as the loader.
#pragma once
#include <memory>
#include <string>

#include "../abi.h"
#include "../device.h"

namespace tile {

struct HostCode {
  HostEntry entry = nullptr;
  std::shared_ptr<void> keep_alive;  ///< owns the memory the code lives in
};
/// Links one relocatable object and finds `entry` in it. Called from any thread.
using HostLoader = Result<HostCode> (*)(const std::string& object, const std::string& entry);
/// Process-wide; null takes it away.
void set_host_loader(HostLoader loader);

Result<std::shared_ptr<Device>> open_host_device();

}  // namespace tile
