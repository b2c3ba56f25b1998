// host_loader.h - a relocatable object in memory to a function that can be called, through LLVM's ORC. The runtime
// links no LLVM: whoever has both sets this as its loader, set_host_loader(&loadHostObject).
#pragma once
#include "runtime/host/host_device.h"

namespace tile::ir {

/// Links the object against libm and the C library's memory functions, and finds `entry`. Safe to call from any thread;
/// the code lives as long as the returned handle.
Result<HostCode> loadHostObject(const std::string& object, const std::string& entry);

}  // namespace tile::ir
