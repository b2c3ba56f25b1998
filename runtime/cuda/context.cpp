// context.cpp - see context.h.
#include "runtime/cuda/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/stream.h"
#include "runtime/env.h"

namespace tile {
namespace cu {
namespace {

// The target of ours whose code suits an architecture best.
void choose_target(DeviceProperties& p) {
  if (p.sm < 80) return;
  if (p.sm >= 100) {  // newer than any cubin of ours: PTX of the newest portable target
    p.target = "sm_89";
    p.needs_ptx = true;
  } else if (p.sm == 90) {
    p.target = "sm_90a";
  } else {
    p.target = p.sm >= 89 ? "sm_89" : p.sm >= 86 ? "sm_86" : "sm_80";
  }
}

// Code for an older GPU on this one, to see how that path does: PTX, within what the older one has. Tuned configurations
// are for the GPU's own target, hence the other name.
Status choose_older_target(DeviceProperties& p, const std::string& target) {
  const char* name = env_info(Env::gpu_target).name;
  const int sm = target == "sm_80" ? 80 : target == "sm_86" ? 86 : target == "sm_89" ? 89 : 0;
  if (sm == 0) return user_error(fmt::format("{} is '{}'; it takes sm_80, sm_86 and sm_89", name, target));
  if (sm > p.sm) return user_error(fmt::format("{} is '{}', newer than {} (sm_{})", name, target, p.model, p.sm));
  p.target = target;
  p.needs_ptx = true;
  p.model += " as " + target;
  p.max_shared_bytes = std::min(p.max_shared_bytes, sm == 80 ? 166912u : 101376u);
  return ok();
}

std::string gibibytes(uint64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

}  // namespace

CudaDevice::CudaDevice(const Driver& driver, int ordinal, CUdevice handle, CUcontext context, std::string name)
    : Device(DeviceKind::cuda, ordinal, std::move(name)),
      driver_(driver),
      handle_(handle),
      context_(context),
      rings_(driver),
      tickets_(driver) {}

int CudaDevice::attribute(CUdevice_attribute which) const {
  int value = 0;
  return driver_.cuDeviceGetAttribute(&value, which, handle_) == CUDA_SUCCESS ? value : 0;
}

Status CudaDevice::start() {
  const Current current = this->current();
  DeviceProperties& p = properties_;
  char model[256] = "";
  driver_.cuDeviceGetName(model, sizeof(model), handle_);
  p.model = model;
  p.sm = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
         attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  choose_target(p);
  size_t bytes = 0;
  driver_.cuDeviceTotalMem(&bytes, handle_);
  p.memory_bytes = bytes;
  p.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  p.max_shared_bytes = static_cast<uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  p.shared_per_multiprocessor =
      static_cast<uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  p.registers_per_multiprocessor =
      static_cast<uint32_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR));
  p.max_threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  p.warp_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  p.clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  p.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  p.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  p.l2_bytes = static_cast<uint64_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  p.grid = {attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  if (const auto older = env_text(Env::gpu_target))
    if (Status s = choose_older_target(p, *older); !s) return s;
  CUstream stream = nullptr;
  if (Status s = check(driver_.cuStreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate"); !s) return s;
  stream_ = std::make_unique<CudaStream>(*this, nullptr, stream, true);
  return ok();
}

CudaDevice::~CudaDevice() {
  const Current current = this->current();
  stream_.reset();
  tickets_.release();
  if (empty_views_.zeros != 0) driver_.cuMemFree(empty_views_.zeros);
}

Result<EmptyViews> CudaDevice::empty_views() {
  std::lock_guard lock(empty_mutex_);
  if (empty_views_.zeros != 0) return empty_views_;
  constexpr size_t kEach = 256;
  const CUstream stream = static_cast<CUstream>(stream_->native());
  CUdeviceptr memory = 0;
  if (Status s = check(driver_.cuMemAlloc(&memory, 2 * kEach), "cuMemAlloc"); !s) return s.error();
  Status zeroed = check(driver_.cuMemsetD32Async(memory, 0, 2 * kEach / 4, stream), "cuMemsetD32Async");
  if (zeroed) zeroed = check(driver_.cuStreamSynchronize(stream), "cuStreamSynchronize");
  if (!zeroed) {
    driver_.cuMemFree(memory);
    return zeroed.error();
  }
  return empty_views_ = {memory, memory + kEach};
}

Result<std::shared_ptr<Module>> CudaDevice::load(const KernelBinary& binary) {
  return CudaModule::load(std::static_pointer_cast<CudaDevice>(shared_from_this()), binary);
}

Result<std::shared_ptr<Stream>> CudaDevice::create_stream() {
  const Current current = this->current();
  CUstream stream = nullptr;
  if (Status s = check(driver_.cuStreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate"); !s) return s.error();
  auto keep = std::static_pointer_cast<CudaDevice>(shared_from_this());
  return std::shared_ptr<Stream>(std::make_shared<CudaStream>(*this, std::move(keep), stream, true));
}

Result<std::shared_ptr<Stream>> CudaDevice::wrap_stream(void* native) {
  const Current current = this->current();
  const auto stream = static_cast<CUstream>(native);
  CUcontext owner = nullptr;  // for null, the legacy stream, this is the current context
  if (Status s = check(driver_.cuStreamGetCtx(stream, &owner), "cuStreamGetCtx"); !s) return s.error();
  if (owner != context_)
    return user_error(
        fmt::format("the stream belongs to another CUDA context than {} uses; open its device with "
                    "device_from_cuda_stream",
                    name_));
  auto keep = std::static_pointer_cast<CudaDevice>(shared_from_this());
  return std::shared_ptr<Stream>(std::make_shared<CudaStream>(*this, std::move(keep), stream, false));
}

Result<std::shared_ptr<Event>> CudaDevice::create_event() {
  const Current current = this->current();
  CUevent event = nullptr;
  if (Status s = check(driver_.cuEventCreate(&event, kEventDefault), "cuEventCreate"); !s) return s.error();
  return std::shared_ptr<Event>(
      std::make_shared<CudaEvent>(std::static_pointer_cast<CudaDevice>(shared_from_this()), event));
}

Result<void*> CudaDevice::allocate(size_t bytes) {
  if (bytes == 0) return static_cast<void*>(nullptr);
  const Current current = this->current();
  CUdeviceptr address = 0;
  const CUresult r = driver_.cuMemAlloc(&address, bytes);
  if (r == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    driver_.cuMemGetInfo(&free, &total);
    return device_error(fmt::format("{}: out of memory: {} ({} bytes) wanted, {} of {} free: cuMemAlloc: {}", name_,
                                    gibibytes(bytes), bytes, gibibytes(free), gibibytes(total), driver_.describe(r)));
  }
  if (Status s = check(r, "cuMemAlloc"); !s) return s.error();
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

// Waits for work that may use the memory. Errors have nowhere to go and were, or will be, reported by the work itself.
void CudaDevice::release(void* address) {
  const Current current = this->current();
  driver_.cuMemFree(reinterpret_cast<CUdeviceptr>(address));
}

Result<MemoryInfo> CudaDevice::memory() {
  const Current current = this->current();
  size_t free = 0, total = 0;
  if (Status s = check(driver_.cuMemGetInfo(&free, &total), "cuMemGetInfo"); !s) return s.error();
  return MemoryInfo{free, total};
}

Status CudaDevice::synchronize() {
  const Current current = this->current();
  const uint64_t launches = rings_.launches();
  if (Status s = check(driver_.cuCtxSynchronize(), "cuCtxSynchronize"); !s) return s;
  return rings_.drain_all(launches);
}

Status CudaDevice::enable_peer_access(Device& owner) {
  if (&owner == this || owner.kind() != DeviceKind::cuda) return Device::enable_peer_access(owner);
  const auto& other = static_cast<CudaDevice&>(owner);
  int can = 0;
  if (Status s = check(driver_.cuDeviceCanAccessPeer(&can, handle_, other.handle_), "cuDeviceCanAccessPeer"); !s)
    return s;
  if (can == 0)
    return user_error(fmt::format("{} cannot reach memory of {}: this machine has no link for it", name_, owner.name()));
  const Current current = this->current();
  const CUresult r = driver_.cuCtxEnablePeerAccess(other.context_, 0);
  return r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? ok() : check(r, "cuCtxEnablePeerAccess");
}

Status CudaDevice::failure(CUresult result, const char* call, const char* last_kernel) {
  std::string message = fmt::format("{}: {}: {}", name_, call, driver_.describe(result));
  if (!loses_context(result)) return device_error(std::move(message));
  std::string earlier;
  {
    std::lock_guard lock(lost_mutex_);
    if (lost_because_.empty())
      lost_because_ = message;
    else
      earlier = lost_because_;
  }
  const Status asserted = rings_.drain_all(rings_.launches());  // a failed device_assert ends its kernel with a trap
  if (!asserted) {
    Error error = asserted.error();
    error.message += fmt::format(" [{}]", message);
    std::lock_guard lock(lost_mutex_);
    lost_because_ = error.message;
    return error;
  }
  if (!earlier.empty()) return device_error(fmt::format("{}; the context was lost before, by: {}", message, earlier));
  if (last_kernel) message += fmt::format("; the last kernel launched on this stream is '{}'", last_kernel);
  message += "; the GPU context is lost, nothing more can run on it in this process";
  if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
    message +=
        ". Usual causes: a pointer to memory of the host, memory that was freed, or an offset beyond what a pointer points "
        "to (views have bounds; device_assert checks offsets)";
  return device_error(std::move(message));
}

}  // namespace cu

namespace {

using cu::CudaDevice;

Status need_gpu(const Result<cu::Driver>& driver, int ordinal) {
  if (!driver) return driver.error();
  const int count = driver->devices;
  if (ordinal < count) return ok();
  if (count == 0) return device_error(fmt::format("there is no cuda:{}: the NVIDIA driver finds no GPU", ordinal));
  return user_error(fmt::format("there is no cuda:{}: this machine has {} GPU{} (cuda:0{})", ordinal, count,
                                count > 1 ? "s" : "", count > 1 ? fmt::format(" to cuda:{}", count - 1) : ""));
}

Result<std::shared_ptr<Device>> start_device(const cu::Driver& driver, int ordinal, cu::CUdevice handle,
                                             cu::CUcontext context, std::string name) {
  auto device = std::make_shared<CudaDevice>(driver, ordinal, handle, context, std::move(name));
  if (Status s = device->start(); !s) return s.error();
  return std::shared_ptr<Device>(std::move(device));
}

}  // namespace

Result<int> cuda_device_count() {
  const Result<cu::Driver>& driver = cu::driver();
  if (!driver) return driver.error();
  return driver->devices;
}

Result<std::shared_ptr<Device>> open_cuda_device(int ordinal) {
  const Result<cu::Driver>& driver = cu::driver();
  if (Status s = need_gpu(driver, ordinal); !s) return s.error();
  // Never destroyed: the driver may be gone by the time static objects are.
  static std::mutex mutex;
  static auto* opened = new std::vector<std::shared_ptr<Device>>(static_cast<size_t>(driver->devices));
  std::lock_guard lock(mutex);
  std::shared_ptr<Device>& slot = (*opened)[static_cast<size_t>(ordinal)];
  if (slot) return slot;
  cu::CUdevice handle = 0;
  cu::CUcontext context = nullptr;
  cu::CUresult r = driver->cuDeviceGet(&handle, ordinal);
  if (r == cu::CUDA_SUCCESS) r = driver->cuDevicePrimaryCtxRetain(&context, handle);
  if (r != cu::CUDA_SUCCESS)
    return device_error(fmt::format("cuda:{} cannot be opened: {}", ordinal, driver->describe(r)));
  Result<std::shared_ptr<Device>> device =
      start_device(*driver, ordinal, handle, context, fmt::format("cuda:{}", ordinal));
  if (!device) {
    driver->cuDevicePrimaryCtxRelease(handle);
    return device.error();
  }
  return slot = *device;
}

Result<std::shared_ptr<Device>> device_from_cuda_context(void* context) {
  const Result<cu::Driver>& driver = cu::driver();
  if (!driver) return driver.error();
  if (context == nullptr) return user_error("device_from_cuda_context: the context is null");
  const auto wanted = static_cast<cu::CUcontext>(context);
  cu::CUdevice handle = 0;
  {
    const cu::Current current(*driver, wanted);
    if (const cu::CUresult r = driver->cuCtxGetDevice(&handle); r != cu::CUDA_SUCCESS)
      return user_error(fmt::format("not a usable CUDA context: cuCtxGetDevice: {}", driver->describe(r)));
  }
  int ordinal = 0;  // handles are not ordinals by contract
  for (cu::CUdevice at = 0; ordinal < driver->devices; ++ordinal)
    if (driver->cuDeviceGet(&at, ordinal) == cu::CUDA_SUCCESS && at == handle) break;
  // The primary context (what the CUDA runtime and frameworks use) is the one open_device uses too.
  unsigned flags = 0;
  int active = 0;
  cu::CUcontext primary = nullptr;
  driver->cuDevicePrimaryCtxGetState(handle, &flags, &active);
  if (active && driver->cuDevicePrimaryCtxRetain(&primary, handle) == cu::CUDA_SUCCESS)
    driver->cuDevicePrimaryCtxRelease(handle);
  if (primary == wanted) return open_cuda_device(ordinal);
  return start_device(*driver, ordinal, handle, wanted, fmt::format("cuda:{} (context {})", ordinal, context));
}

Result<std::shared_ptr<Device>> device_from_cuda_stream(void* stream) {
  const Result<cu::Driver>& driver = cu::driver();
  if (!driver) return driver.error();
  if (stream == nullptr)
    return user_error("device_from_cuda_stream: the null stream belongs to whichever context is current");
  cu::CUcontext context = nullptr;
  if (const cu::CUresult r = driver->cuStreamGetCtx(static_cast<cu::CUstream>(stream), &context); r != cu::CUDA_SUCCESS)
    return user_error(fmt::format("not a usable CUDA stream: cuStreamGetCtx: {}", driver->describe(r)));
  return device_from_cuda_context(context);
}

}  // namespace tile
