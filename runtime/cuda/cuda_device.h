// cuda_device.h - how device.cpp reaches the GPUs; the classes are private to cuda/.
#pragma once
#include <memory>

#include "../device.h"

namespace tile {

/// 0 without a GPU or without a driver; an error if there is a driver that does not start.
Result<int> cuda_device_count();
Result<std::shared_ptr<Device>> open_cuda_device(int ordinal);

}  // namespace tile
