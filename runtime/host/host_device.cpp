// host_device.cpp - see host_device.h. A stream is a lock: work runs at once in the caller, one piece at a time.
#include "runtime/host/host_device.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/debug.h"
#include "runtime/env.h"
#include "runtime/host/grid_runner.h"
#include "runtime/transfer.h"

namespace tile {
namespace {

constexpr size_t kAlign = 256;  // what CUDA allocations have, so kernels may rely on the same everywhere
constexpr int64_t kDefaultDebugRecords = 65536;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kFillPiece = 64 * 1024;  // a multiple of every pattern

std::atomic<HostLoader> g_loader{nullptr};

class HostModule : public Module {
 public:
  HostModule(std::shared_ptr<Device> device, const KernelBinary& binary, HostCode code)
      : Module(std::move(device), binary), code_(std::move(code)) {}
  HostEntry entry() const { return code_.entry; }

 private:
  HostCode code_;
};

using Clock = std::chrono::steady_clock;

class HostEvent : public Event {
 public:
  void set_now() { time_ = Clock::now().time_since_epoch().count(); }
  Status synchronize() override { return ok(); }
  Result<bool> is_done() override { return true; }
  Result<double> elapsed_ms(const Event& start) const override {
    const auto* begin = dynamic_cast<const HostEvent*>(&start);
    if (!begin) return user_error("elapsed time: the two events belong to different devices");
    if (begin->time_ == 0 || time_ == 0) return user_error("elapsed time: an event was never recorded");
    return std::chrono::duration<double, std::milli>(Clock::duration(time_ - begin->time_)).count();
  }

 private:
  std::atomic<Clock::rep> time_{0};
};

// The records of one launch, reused by the next launch of the stream.
class HostRing {
 public:
  DebugRing& get() {
    if (words_.empty()) {
      const auto capacity = static_cast<uint32_t>(env_int(Env::debug_records, kDefaultDebugRecords, 1, 1 << 24));
      words_.resize((sizeof(DebugRing) + size_t{capacity} * sizeof(DebugRecord)) / sizeof(uint64_t));
      init_debug_ring(ring(), capacity);
    }
    return ring();
  }

 private:
  DebugRing& ring() { return *reinterpret_cast<DebugRing*>(words_.data()); }
  std::vector<uint64_t> words_;
};

class HostStream : public Stream {
 public:
  HostStream(Device& device, GridRunner& runner, std::shared_ptr<Device> keep)
      : device_(device), runner_(runner), keep_(std::move(keep)) {}
  Device& device() const override { return device_; }

  Status launch(const Module& module, const Grid& grid, const uint64_t* slots, size_t n) override {
    const KernelBinary& kernel = module.info();
    if (&module.device() != &device_)
      return user_error(fmt::format("kernel '{}' was loaded on {}, the stream belongs to {}", display_name(kernel),
                                    module.device().name(), device_.name()));
    if (Status fits = check_grid(grid, device_.properties().grid, display_name(kernel)); !fits) return fits;
    if (grid.empty()) return ok();
    if (Status good = check_arguments(kernel, slots, n); !good) return good;
    const HostEntry entry = static_cast<const HostModule&>(module).entry();
    bool ran = false;
    DebugReport report;
    {
      std::lock_guard lock(mutex_);
      if (!kernel.uses_debug_ring) {
        ran = runner_.run(entry, slots, grid, kernel.arena_bytes, kernel, nullptr);
      } else {
        DebugRing& ring = ring_.get();
        std::vector<uint64_t> with_ring(slots, slots + n);
        with_ring.push_back(reinterpret_cast<uint64_t>(&ring));
        ran = runner_.run(entry, with_ring.data(), grid, kernel.arena_bytes, kernel, &ring);
        report = read_debug_ring(kernel, ring);
        clear_debug_ring(ring);
      }
    }
    // Unlocked: the sink is the user's and may use this stream.
    if (Status delivered = deliver(kernel, report); !delivered) return delivered;
    if (ran) return ok();
    return device_error(fmt::format("kernel '{}': cannot allocate {} bytes of scratch per thread on {} threads",
                                    display_name(kernel), kernel.arena_bytes, runner_.threads()));
  }

  Status copy_to_device(void* dst, const void* src, size_t bytes) override {
    return move("copy_to_device", dst, src, bytes);
  }
  Status copy_to_host(void* dst, const void* src, size_t bytes) override { return move("copy_to_host", dst, src, bytes); }
  Status copy(void* dst, const void* src, size_t bytes) override { return move("copy", dst, src, bytes); }
  Status fill(void* dst, const void* pattern, size_t pattern_bytes, size_t count) override {
    if (Status good = check_fill(dst, pattern, pattern_bytes, count); !good) return good;
    std::lock_guard lock(mutex_);
    // What is filled already is the source of the next, larger copy, up to a piece that stays in the cache.
    char* begin = static_cast<char*>(dst);
    const size_t bytes = pattern_bytes * count;
    size_t done = std::min(bytes, pattern_bytes);
    if (done > 0) std::memcpy(begin, pattern, done);
    while (done < bytes) {
      const size_t piece = std::min({done, kFillPiece, bytes - done});
      std::memcpy(begin + done, begin, piece);
      done += piece;
    }
    return ok();
  }

  Status record(Event& event) override {
    auto* own = dynamic_cast<HostEvent*>(&event);
    if (!own) return user_error("the event belongs to another device than the stream (host)");
    std::lock_guard lock(mutex_);
    own->set_now();
    return ok();
  }
  // Whatever a host event marks is done already; another device's event is waited for here and now.
  Status wait(const Event& event) override { return const_cast<Event&>(event).synchronize(); }
  Status synchronize() override {
    std::lock_guard lock(mutex_);
    return ok();
  }

 private:
  Status move(const char* what, void* dst, const void* src, size_t bytes) {
    if (Status good = check_copy(what, dst, src, bytes); !good) return good;
    std::lock_guard lock(mutex_);
    if (bytes > 0) std::memmove(dst, src, bytes);
    return ok();
  }

  Device& device_;
  GridRunner& runner_;
  std::shared_ptr<Device> keep_;  ///< null for the device's own stream
  std::mutex mutex_;
  HostRing ring_;
};

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name"))
      if (const size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "CPU";
}

int thread_count() {
  cpu_set_t allowed;  // of this process, which may be pinned to some cores
  const bool known = ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  const int cores = known ? CPU_COUNT(&allowed) : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return static_cast<int>(env_int(Env::num_threads, cores, 1, 4096));
}

class HostDevice : public Device {
 public:
  HostDevice() : Device(DeviceKind::host, 0, "host"), runner_(thread_count()), stream_(*this, runner_, nullptr) {
    properties_.model = cpu_model();
    properties_.target = "host";
    properties_.multiprocessors = runner_.threads();
    properties_.memory_bytes = pages(_SC_PHYS_PAGES);
    properties_.l2_bytes = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_LEVEL2_CACHE_SIZE)));
  }

  Result<std::shared_ptr<Module>> load(const KernelBinary& binary) override {
    if (binary.abi_version != kAbiVersion)
      return user_error(fmt::format("kernel '{}' has ABI version {}, this runtime has {}", display_name(binary),
                                    binary.abi_version, kAbiVersion));
    if (binary.format != BinaryFormat::host_object)
      return user_error(fmt::format("kernel '{}' was compiled for {}, it cannot run on the host", display_name(binary),
                                    binary.target));
    if (binary.persistent || !binary.tensor_maps.empty())
      return internal_error(
          fmt::format("kernel '{}': host code has no work loop and no tensor maps", display_name(binary)));
    const HostLoader loader = g_loader.load();
    if (loader == nullptr)
      return user_error(
          fmt::format("kernel '{}': no loader of host code is set (link the compiler, or call set_host_loader)",
                      display_name(binary)));
    Result<HostCode> code = loader(binary.bytes, binary.entry);
    if (!code) return code.error();
    if (code->entry == nullptr)
      return internal_error(fmt::format("kernel '{}': the loader found no entry point", display_name(binary)));
    return std::shared_ptr<Module>(std::make_shared<HostModule>(shared_from_this(), binary, std::move(*code)));
  }

  Stream& default_stream() override { return stream_; }
  Result<std::shared_ptr<Stream>> create_stream() override {
    return std::shared_ptr<Stream>(std::make_shared<HostStream>(*this, runner_, shared_from_this()));
  }
  Result<std::shared_ptr<Stream>> wrap_stream(void* native) override {
    if (native != nullptr) return user_error("the host device has no native streams; pass null or use create_stream()");
    return create_stream();
  }
  Result<std::shared_ptr<Event>> create_event() override {
    return std::shared_ptr<Event>(std::make_shared<HostEvent>());
  }

  Result<void*> allocate(size_t bytes) override {
    if (bytes == 0) return static_cast<void*>(nullptr);
    // Linux promises more than it has; what cannot ever fit is refused here rather than by the OOM killer later.
    const size_t align = bytes >= 2 * kHugePage ? kHugePage : kAlign;
    void* address = bytes <= properties_.memory_bytes
                        ? std::aligned_alloc(align, (bytes + kAlign - 1) / kAlign * kAlign)
                        : nullptr;
    // Walking through memory in huge pages is a tenth faster. A system that has none says no, which is fine.
    if (address != nullptr && align == kHugePage) ::madvise(address, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
    if (address == nullptr)
      return device_error(fmt::format("host: out of memory: {} bytes wanted, the machine has {} of which {} are free",
                                      bytes, properties_.memory_bytes, pages(_SC_AVPHYS_PAGES)));
    return address;
  }
  void release(void* address) override { std::free(address); }
  Result<MemoryInfo> memory() override { return MemoryInfo{pages(_SC_AVPHYS_PAGES), properties_.memory_bytes}; }
  Status synchronize() override { return ok(); }  // a call that returned has done its work

 private:
  static uint64_t pages(int what) {
    return static_cast<uint64_t>(std::max(0L, ::sysconf(what))) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  GridRunner runner_;
  HostStream stream_;
};

}  // namespace

void set_host_loader(HostLoader loader) { g_loader.store(loader); }

Result<std::shared_ptr<Device>> open_host_device() {
  // Never destroyed: kernels may still run while static objects go.
  static auto* device = new std::shared_ptr<Device>(std::make_shared<HostDevice>());
  return *device;
}

}  // namespace tile
