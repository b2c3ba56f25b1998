// device.h - what runs a KernelBinary: devices, their streams, events and loaded modules behind one interface.
//
//   auto device = open_device("cuda:0").value_or_throw();
//   auto module = device->load(binary).value_or_throw();
//   device->default_stream().launch(*module, {blocks}, slots, n);
//   device->default_stream().synchronize();
//
// Everything may be called from any thread. Work given to one stream runs in order; the host device runs it at once, in
// the calling thread and its helpers. Errors of asynchronous work (a faulting kernel, a failed device_assert) are
// reported by the first call that notices, at the latest by synchronize(); device_print output appears at synchronize()
// too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi.h"
#include "error.h"
#include "launch.h"

namespace tile {

class Device;

enum class DeviceKind : uint8_t { host, cuda };

/// Facts for choosing configurations, limits and reports. Zero where a device has no such thing.
struct DeviceProperties {
  std::string model;        ///< "NVIDIA H200", or the CPU's own name
  std::string target;       ///< compile for this: "sm_90a", "host"; empty: no target of ours runs here
  bool needs_ptx = false;   ///< no cubin of `target` runs here (newer GPU): ship PTX, the driver translates
  int sm = 0;               ///< compute capability as 10 * major + minor
  int multiprocessors = 0;  ///< SMs; on the host the number of threads a grid runs on
  uint64_t memory_bytes = 0;
  uint32_t max_shared_bytes = 0;  ///< per program, opt-in limit
  uint32_t registers_per_multiprocessor = 0;
  uint32_t shared_per_multiprocessor = 0;
  int max_threads = 1;  ///< per program
  int warp_size = 1;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  uint64_t l2_bytes = 0;
  GridLimits grid;

  /// Whether a launch over `programs` has at most one program per multiprocessor: there may be code of its own for that.
  bool has_few(const Grid& programs) const { return programs.programs() <= multiprocessors; }
};

struct MemoryInfo {
  uint64_t free_bytes = 0, total_bytes = 0;
};

/// Code loaded on one device, ready to launch from any stream of it. Unloaded when the last reference goes.
class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// The binary it came from, without the code bytes; resources are completed with what the device reports.
  const KernelBinary& info() const { return info_; }
  Device& device() const { return *device_; }
  /// How many programs run on one multiprocessor at a time (0 if the device cannot say).
  virtual int resident_programs() const { return 0; }

 protected:
  Module(std::shared_ptr<Device> device, const KernelBinary& binary);
  std::shared_ptr<Device> device_;
  KernelBinary info_;
};

/// A point in a stream's work.
class Event {
 public:
  virtual ~Event() = default;
  virtual Status synchronize() = 0;
  virtual Result<bool> is_done() = 0;
  /// Milliseconds from `start` to this event; both recorded and done, on the same device.
  virtual Result<double> elapsed_ms(const Event& start) const = 0;
};

/// An in-order queue of work on one device.
class Stream {
 public:
  virtual ~Stream() = default;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual Device& device() const = 0;
  /// The CUstream; null on the host.
  virtual void* native() const { return nullptr; }

  /// Runs `module` over `grid` with its parameters flattened into slots (abi.h); slots are read before this returns.
  /// No allocation, no hashing (except for kernels that print or assert). An empty grid does nothing.
  virtual Status launch(const Module& module, const Grid& grid, const uint64_t* slots, size_t n) = 0;

  /// Asynchronous copies; host memory must stay valid until the stream has passed this point.
  virtual Status copy_to_device(void* device_dst, const void* host_src, size_t bytes) = 0;
  virtual Status copy_to_host(void* host_dst, const void* device_src, size_t bytes) = 0;
  /// Between addresses of devices (of two GPUs as well).
  virtual Status copy(void* device_dst, const void* device_src, size_t bytes) = 0;
  /// `count` repetitions of a pattern of 1, 2, 4 or 8 bytes. Null addresses are user errors here and in copies, unless
  /// there is nothing to move.
  virtual Status fill(void* device_dst, const void* pattern, size_t pattern_bytes, size_t count) = 0;

  virtual Status record(Event& event) = 0;
  /// Later work of this stream starts after `event`, which may belong to another stream or device.
  virtual Status wait(const Event& event) = 0;
  /// Waits for all work so far; prints what kernels printed; reports their failures.
  virtual Status synchronize() = 0;
  /// Whether work is recorded into a graph instead of being done: nothing can be loaded then.
  virtual bool capturing() const { return false; }
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  DeviceKind kind() const { return kind_; }
  int ordinal() const { return ordinal_; }
  /// "host" or "cuda:N", as open_device takes it; over a user's own context "cuda:N (context 0x...)".
  const std::string& name() const { return name_; }
  const DeviceProperties& properties() const { return properties_; }
  /// The CUcontext; null on the host.
  virtual void* native_context() const { return nullptr; }

  /// Refuses, before any launch, what cannot run here: another target, too much shared memory (with the table of the
  /// kernel's buffers), too many threads or registers.
  virtual Result<std::shared_ptr<Module>> load(const KernelBinary& binary) = 0;

  /// Made with the device; never waits for CUDA's legacy default stream.
  virtual Stream& default_stream() = 0;
  virtual Result<std::shared_ptr<Stream>> create_stream() = 0;
  /// A stream the user made (CUstream / cudaStream_t, null included); it stays the user's. Host: only null.
  virtual Result<std::shared_ptr<Stream>> wrap_stream(void* native) = 0;
  virtual Result<std::shared_ptr<Event>> create_event() = 0;

  /// At least 256-byte aligned; zero bytes give null. Prefer Buffer<T> (buffer.h).
  virtual Result<void*> allocate(size_t bytes) = 0;
  virtual void release(void* address) = 0;
  virtual Result<MemoryInfo> memory() = 0;

  /// Waits for all streams of the device, the user's own included; reports like Stream::synchronize.
  virtual Status synchronize() = 0;

  /// From now on kernels of this device may read, write and update (atomics of Scope::sys) memory of `owner` at its own
  /// addresses, whenever that was allocated. One direction; a second time, and for the device itself, there is nothing
  /// to do. User error: one of them is no GPU, or no link of the machine lets the one reach the other's memory.
  /// (Stream::copy needs none of this.)
  virtual Status enable_peer_access(Device& owner);

 protected:
  Device(DeviceKind kind, int ordinal, std::string name) : kind_(kind), ordinal_(ordinal), name_(std::move(name)) {}
  DeviceKind kind_;
  int ordinal_;
  std::string name_;
  DeviceProperties properties_;
};

/// "host", "cuda" (the first GPU) or "cuda:N". The same object every time; it lives until the process ends.
Result<std::shared_ptr<Device>> open_device(const std::string& name);
/// cuda:0 if a GPU can be used, else the host. TILE_DEVICE overrides.
Result<std::shared_ptr<Device>> default_device();
/// What open_device would accept now: "host", then the GPUs.
std::vector<std::string> device_names();
/// A device over a context the user created (CUcontext); the context stays the user's and must outlive the device.
Result<std::shared_ptr<Device>> device_from_cuda_context(void* context);
/// The device a stream the user created (CUstream, not null) belongs to: device_from_cuda_context of its context.
Result<std::shared_ptr<Device>> device_from_cuda_stream(void* stream);

}  // namespace tile
