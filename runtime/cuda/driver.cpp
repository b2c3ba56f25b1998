// driver.cpp - see driver.h.
#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/env.h"

namespace tile::cu {
namespace {

// cuGetProcAddress has had two signatures, under two exported names.
class Symbols {
 public:
  explicit Symbols(void* library) {
    with_status_ = reinterpret_cast<WithStatus>(dlsym(library, "cuGetProcAddress_v2"));
    plain_ = reinterpret_cast<Plain>(dlsym(library, "cuGetProcAddress"));
  }
  void* find(const char* name, int version = kDriverApi) const {
    void* symbol = nullptr;
    int status = 0;
    if (with_status_ && with_status_(name, &symbol, version, 0, &status) == CUDA_SUCCESS && symbol) return symbol;
    if (!with_status_ && plain_ && plain_(name, &symbol, version, 0) == CUDA_SUCCESS && symbol) return symbol;
    return nullptr;
  }
  bool usable() const { return with_status_ || plain_; }

 private:
  using WithStatus = CUresult (*)(const char*, void**, int, uint64_t, int*);
  using Plain = CUresult (*)(const char*, void**, int, uint64_t);
  WithStatus with_status_ = nullptr;
  Plain plain_ = nullptr;
};

Result<Driver> open_driver() {
  const std::string path = env_text(Env::libcuda).value_or("libcuda.so.1");
  if (path == "none") return device_error("GPUs are hidden (TILE_LIBCUDA=none)");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: the driver does not survive that
  if (library == nullptr) return device_error(fmt::format("no NVIDIA driver on this machine ({})", dlerror()));
  const Symbols symbols(library);
  if (!symbols.usable())
    return device_error(fmt::format("the NVIDIA driver '{}' is older than CUDA 11.4; update it", path));

  Driver d;
#define TILE_DRIVER(name, params)                                   \
  d.name = reinterpret_cast<decltype(d.name)>(symbols.find(#name)); \
  if (d.name == nullptr)                                            \
    return device_error(fmt::format("the NVIDIA driver '{}' has no {}; CUDA 11.4 or newer is needed", path, #name));
#define TILE_DRIVER_SINCE(version, name, params) \
  d.name = reinterpret_cast<decltype(d.name)>(symbols.find(#name, version));
#include "runtime/cuda/driver.def"
#undef TILE_DRIVER

  const CUresult started = d.cuInit(0);
  d.cuDriverGetVersion(&d.version);
  if (started == CUDA_ERROR_NO_DEVICE) return d;
  if (started != CUDA_SUCCESS)
    return device_error(fmt::format("the NVIDIA driver does not start: cuInit: {}", d.describe(started)));
  if (const CUresult r = d.cuDeviceGetCount(&d.devices); r != CUDA_SUCCESS)
    return device_error(fmt::format("cuDeviceGetCount: {}", d.describe(r)));
  return d;
}

}  // namespace

std::string Driver::describe(CUresult error) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(error, &name);
  cuGetErrorString(error, &text);
  if (name == nullptr) return fmt::format("error {}", static_cast<int>(error));
  return fmt::format("{} ({})", name, text ? text : "no description");
}

const Result<Driver>& driver() {
  static const auto* outcome = new Result<Driver>(open_driver());
  return *outcome;
}

bool loses_context(CUresult error) {
  switch (error) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
      return true;
    // 714 .. 719: stack error, illegal instruction, misaligned address, address space, program counter, launch failed
    default:
      return error >= CUDA_ERROR_HARDWARE_STACK_ERROR && error <= CUDA_ERROR_LAUNCH_FAILED;
  }
}

}  // namespace tile::cu
