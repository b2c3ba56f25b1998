// stream.cpp - see stream.h. launch() is the hot path: checks, a pointer per slot on the stack, one driver call;
// kernels with hidden parameters (abi.h) take a branch more.
#include "runtime/cuda/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/cuda/early_launch.h"
#include "runtime/cuda/module.h"
#include "runtime/transfer.h"

namespace tile::cu {
namespace {

// Unread launches of printing kernels before one waits for them: each holds a ring of pinned memory (2 MiB by default).
constexpr size_t kMaxUnreadLaunches = 32;

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace

CudaEvent::~CudaEvent() {
  const Current current = device_->current();
  device_->driver().cuEventDestroy(event_);
}

Status CudaEvent::synchronize() {
  const Current current = device_->current();
  return device_->check(device_->driver().cuEventSynchronize(event_), "cuEventSynchronize");
}

Result<bool> CudaEvent::is_done() {
  const Current current = device_->current();
  const CUresult r = device_->driver().cuEventQuery(event_);
  if (r == CUDA_ERROR_NOT_READY) return false;
  if (Status s = device_->check(r, "cuEventQuery"); !s) return s.error();
  return true;
}

Result<double> CudaEvent::elapsed_ms(const Event& start) const {
  const auto* begin = dynamic_cast<const CudaEvent*>(&start);
  if (begin == nullptr || begin->device_ != device_)
    return user_error("elapsed time: the two events belong to different devices");
  const Current current = device_->current();
  float ms = 0;
  if (Status s = device_->check(device_->driver().cuEventElapsedTime(&ms, begin->event_, event_), "cuEventElapsedTime");
      !s)
    return s.error();
  return static_cast<double>(ms);
}

CudaStream::~CudaStream() {
  if (!owned_) return;
  const Current current = device_.current();
  if (device_.rings().in_flight() > 0) (void)synchronize();  // another stream may get this handle: print now
  device_.tickets().forget(stream_);
  device_.driver().cuStreamDestroy(stream_);
}

Status CudaStream::launch(const Module& module, const Grid& grid, const uint64_t* slots, size_t n) {
  const KernelBinary& kernel = module.info();
  if (&module.device() != &device_) [[unlikely]]
    return user_error(fmt::format("kernel '{}' was loaded on {}, the stream belongs to {}", display_name(kernel),
                                  module.device().name(), device_.name()));
  if (Status fits = kernel.persistent ? check_persistent_grid(grid, kernel)
                                      : check_grid(grid, device_.properties().grid, display_name(kernel));
      !fits) [[unlikely]]
    return fits;
  if (grid.empty()) return ok();
  if (Status good = check_arguments(kernel, slots, n); !good) [[unlikely]]
    return good;
  const auto& loaded = static_cast<const CudaModule&>(module);

  const Current current = device_.current();
  void* params[kMaxSlots + 5 + kMaxTensorMaps];  // load() refused kernels with more
  size_t used = 0;
  for (; used < n; ++used) params[used] = const_cast<uint64_t*>(slots + used);
  Grid programs = grid;
  CUdeviceptr ring = 0, tickets = 0;
  int32_t sizes[3];
  TensorMap maps[kMaxTensorMaps];  // not initialised: only the kernel's own are touched
  if (loaded.tensor_maps() != nullptr)
    if (Status encoded = loaded.tensor_maps()->encode(slots, maps); !encoded) [[unlikely]]
      return encoded;
  if (loaded.debug_info()) [[unlikely]] {
    Result<CUdeviceptr> taken = take_ring(loaded);
    if (!taken) return taken.error();
    ring = *taken;
    params[used++] = &ring;
  }
  if (kernel.persistent) {
    const int64_t extents[] = {grid.x, grid.y, grid.z};
    for (int d = 0; d < 3; ++d) {
      sizes[d] = static_cast<int32_t>(extents[d]);
      params[used++] = &sizes[d];
    }
    programs = {std::min(grid.programs(), loaded.concurrent_programs()), 1, 1};
  }
  if (kernel.uses_tickets) {
    const bool many = reinterpret_cast<uintptr_t>(stream_) == kStreamPerThread || capturing();
    tickets = many ? device_.tickets().next_shared() : device_.tickets().of_stream(stream_);
    params[used++] = &tickets;
  }
  for (size_t i = 0; i < kernel.tensor_maps.size(); ++i) params[used++] = &maps[i];
  const auto x = static_cast<unsigned>(programs.x), y = static_cast<unsigned>(programs.y),
             z = static_cast<unsigned>(programs.z);
  CUresult r = CUDA_SUCCESS;
  const Placement placement{programs.programs(), loaded.room(), device_.properties().multiprocessors};
  const bool early = loaded.waits_for_stream() &&
                     comes_early(placement, share_before_.load(std::memory_order_relaxed), loaded.is_short());
  share_before_.store(placement.share(), std::memory_order_relaxed);
  if (early) {
    static constexpr LaunchAttribute kOverlap{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1, {}};
    const LaunchConfig config{x, y, z, kernel.threads, 1, 1, kernel.shared_bytes, stream_, &kOverlap, 1};
    r = device_.driver().cuLaunchKernelEx(&config, loaded.function(), params, nullptr);
  } else {
    r = device_.driver().cuLaunchKernel(loaded.function(), x, y, z, kernel.threads, 1, 1, kernel.shared_bytes, stream_,
                                        params, nullptr);
  }
  if (r == CUDA_SUCCESS) [[likely]] {
    last_kernel_.store(loaded.lasting_name(), std::memory_order_relaxed);
    if (ring != 0) [[unlikely]]
      device_.rings().launched(ring);
    return ok();
  }
  if (ring != 0) device_.rings().give_back(ring);
  Error error = check(r, early ? "cuLaunchKernelEx" : "cuLaunchKernel").error();
  error.message = fmt::format("kernel '{}' with grid ({}, {}, {}): {}", display_name(kernel), grid.x, grid.y, grid.z,
                              error.message);
  return error;
}

Result<CUdeviceptr> CudaStream::take_ring(const CudaModule& module) {
  if (capturing())
    return user_error(fmt::format("kernel '{}' uses device_print or device_assert: it cannot be captured into a graph",
                                  display_name(module.info())));
  if (device_.rings().in_flight() >= kMaxUnreadLaunches)
    if (Status read = device_.synchronize(); !read) return read.error();
  return device_.rings().take(stream_, module.debug_info());
}

bool CudaStream::capturing() const {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  return device_.driver().cuStreamIsCapturing(stream_, &capture) == CUDA_SUCCESS &&
         capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

Status CudaStream::copy_to_device(void* dst, const void* src, size_t bytes) {
  if (Status good = check_copy("copy_to_device", dst, src, bytes); !good) return good;
  if (bytes == 0) return ok();
  const Current current = device_.current();
  return check(device_.driver().cuMemcpyHtoDAsync(address(dst), src, bytes, stream_), "cuMemcpyHtoDAsync");
}

Status CudaStream::copy_to_host(void* dst, const void* src, size_t bytes) {
  if (Status good = check_copy("copy_to_host", dst, src, bytes); !good) return good;
  if (bytes == 0) return ok();
  const Current current = device_.current();
  return check(device_.driver().cuMemcpyDtoHAsync(dst, address(src), bytes, stream_), "cuMemcpyDtoHAsync");
}

Status CudaStream::copy(void* dst, const void* src, size_t bytes) {
  if (Status good = check_copy("copy", dst, src, bytes); !good) return good;
  if (bytes == 0) return ok();
  const Current current = device_.current();
  return check(device_.driver().cuMemcpyAsync(address(dst), address(src), bytes, stream_), "cuMemcpyAsync");
}

Status CudaStream::fill(void* dst, const void* pattern, size_t pattern_bytes, size_t count) {
  if (Status good = check_fill(dst, pattern, pattern_bytes, count); !good || count == 0) return good;
  const Driver& d = device_.driver();
  const Current current = device_.current();
  uint64_t bits = 0;
  std::memcpy(&bits, pattern, pattern_bytes);
  const auto low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
  switch (pattern_bytes) {
    case 1:
      return check(d.cuMemsetD8Async(address(dst), static_cast<uint8_t>(bits), count, stream_), "cuMemsetD8Async");
    case 2:
      return check(d.cuMemsetD16Async(address(dst), static_cast<uint16_t>(bits), count, stream_), "cuMemsetD16Async");
    case 4:
      return check(d.cuMemsetD32Async(address(dst), low, count, stream_), "cuMemsetD32Async");
    default: {
      if (low == high) return check(d.cuMemsetD32Async(address(dst), low, count * 2, stream_), "cuMemsetD32Async");
      // The driver has no 64-bit fill: two interleaved columns of 32-bit words.
      if (Status s = check(d.cuMemsetD2D32Async(address(dst), 8, low, 1, count, stream_), "cuMemsetD2D32Async"); !s)
        return s;
      return check(d.cuMemsetD2D32Async(address(dst) + 4, 8, high, 1, count, stream_), "cuMemsetD2D32Async");
    }
  }
}

Status CudaStream::record(Event& event) {
  auto* own = dynamic_cast<CudaEvent*>(&event);
  if (own == nullptr || &own->device() != &device_)
    return user_error(fmt::format("the event belongs to another device than the stream ({})", device_.name()));
  const Current current = device_.current();
  return check(device_.driver().cuEventRecord(own->handle(), stream_), "cuEventRecord");
}

Status CudaStream::wait(const Event& event) {
  const auto* other = dynamic_cast<const CudaEvent*>(&event);
  if (other == nullptr) return const_cast<Event&>(event).synchronize();  // a host event: done once it was recorded
  const Current current = device_.current();
  return check(device_.driver().cuStreamWaitEvent(stream_, other->handle(), 0), "cuStreamWaitEvent");
}

Status CudaStream::synchronize() {
  const Current current = device_.current();
  const uint64_t launches = device_.rings().launches();
  if (Status done = check(device_.driver().cuStreamSynchronize(stream_), "cuStreamSynchronize"); !done) return done;
  return device_.rings().drain_stream(stream_, launches);
}

}  // namespace tile::cu
