// latency.h - what a launch costs besides the kernel: tracing, compiling, finding compiled code, calling the driver.
#pragma once
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/device.h"

namespace tile::bench {

/// Measures on `device` and prints a table; the same numbers as JSON.
nlohmann::json measure_latencies(const std::shared_ptr<Device>& device);

}  // namespace tile::bench
