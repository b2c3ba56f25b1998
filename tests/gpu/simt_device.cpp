// simt_device.cpp - see simt_device.h. Everything but loading and launching is the host device's.
#include "tests/gpu/simt_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "compiler/compiler.h"
#include "compiler/targets/nvptx.h"
#include "compiler/targets/sass_in_flight.h"
#include "compiler/targets/target.h"
#include "dsl/jit.h"
#include "runtime/debug.h"
#include "runtime/launch.h"
#include "tests/gpu/simt.h"

namespace tile::testing {
namespace {

struct Shared {
  std::mutex mutex;
  std::map<std::string, std::string> llvmText;  ///< by symbol, of the latest compilation
  uint32_t seed = 1;
  SimtLaunches launches;
};
Shared& shared() {
  static Shared s;
  return s;
}

class SimtModule : public Module {
 public:
  SimtModule(std::shared_ptr<Device> device, const KernelBinary& binary, const std::string& llvmText)
      : Module(std::move(device), binary), kernel_(llvmText, binary.bytes, binary) {}
  SimtKernel& kernel() const { return kernel_; }
  int resident_programs() const override { return 1; }

 private:
  mutable SimtKernel kernel_;
};

class SimtStream : public Stream {
 public:
  SimtStream(Device& device, Stream& host) : device_(device), host_(host) {}
  Device& device() const override { return device_; }

  Status launch(const Module& module, const Grid& grid, const uint64_t* slots, size_t n) override {
    const KernelBinary& kernel = module.info();
    Status fits = kernel.persistent ? check_persistent_grid(grid, kernel)
                                    : check_grid(grid, device_.properties().grid, display_name(kernel));
    if (!fits) return fits;
    if (grid.empty()) return ok();
    if (Status good = check_arguments(kernel, slots, n); !good) return good;
    if (Status good = check_hidden(kernel); !good) return good;
    std::vector<uint64_t> all(slots, slots + n), ring;
    if (kernel.uses_debug_ring) {
      constexpr uint32_t capacity = 1024;
      ring.resize((sizeof(DebugRing) + capacity * sizeof(DebugRecord)) / 8);
      init_debug_ring(*reinterpret_cast<DebugRing*>(ring.data()), capacity);
      all.push_back(reinterpret_cast<uint64_t>(ring.data()));
    }
    const std::lock_guard lock(shared().mutex);
    ++shared().launches.all;
    shared().launches.persistent += kernel.persistent;
    shared().launches.bulk += !kernel.tensor_maps.empty();
    try {
      static_cast<const SimtModule&>(module).kernel().run(all, static_cast<int>(grid.x), static_cast<int>(grid.y),
                                                          static_cast<int>(grid.z), shared().seed);
    } catch (const std::exception& error) {
      Error e{ErrorKind::device, std::string(display_name(kernel)) + ": " + error.what(), {}};
      e.needs_plain_copies = e.message.find("cuTensorMapEncodeTiled refuses") != std::string::npos;
      return e;
    }
    return ok();
  }

  Status copy_to_device(void* to, const void* from, size_t bytes) override {
    return host_.copy_to_device(to, from, bytes);
  }
  Status copy_to_host(void* to, const void* from, size_t bytes) override { return host_.copy_to_host(to, from, bytes); }
  Status copy(void* to, const void* from, size_t bytes) override { return host_.copy(to, from, bytes); }
  Status fill(void* to, const void* pattern, size_t bytes, size_t count) override {
    return host_.fill(to, pattern, bytes, count);
  }
  Status record(Event& event) override { return host_.record(event); }
  Status wait(const Event& event) override { return host_.wait(event); }
  Status synchronize() override { return host_.synchronize(); }

 private:
  Device& device_;
  Stream& host_;
};

class SimtDevice : public Device {
 public:
  SimtDevice(const ir::Target& target, int multiprocessors)
      : Device(DeviceKind::cuda, 0, "simulated " + target.name),
        target_(target),
        host_(open_device("host").value_or_throw()) {
    properties_.model = "simulated GPU";
    properties_.target = target.name;
    properties_.needs_ptx = true;  // nothing runs a cubin here
    properties_.sm = target.sm;
    properties_.multiprocessors = multiprocessors;
    properties_.max_shared_bytes = properties_.shared_per_multiprocessor = target.maxSharedBytes;
    properties_.registers_per_multiprocessor = 65536;
    properties_.max_threads = 1024;
    properties_.warp_size = 32;
  }

  Result<std::shared_ptr<Module>> load(const KernelBinary& binary) override {
    std::string text;
    {
      const std::lock_guard lock(shared().mutex);
      auto it = shared().llvmText.find(binary.entry);
      if (it == shared().llvmText.end())
        return Error{ErrorKind::internal, "no IR was seen of kernel '" + binary.entry + "'", {}};
      text = it->second;
    }
    if (const char* assembles = std::getenv("TILE_RANDOM_ASSEMBLE"))
      if (Status good = assemble(binary, assembles == std::string_view("only")); !good) return good.error();
    try {
      return std::static_pointer_cast<Module>(std::make_shared<SimtModule>(shared_from_this(), binary, text));
    } catch (const std::exception& error) {
      return Error{ErrorKind::internal, binary.entry + ": " + error.what(), {}};
    }
  }

  /// What the simulated machine does not look at: whether ptxas takes the code. `only`: an error that says what it
  /// remarks on instead of a module.
  Status assemble(const KernelBinary& binary, bool only) const {
    Resources resources;
    const auto cubin = ir::runPtxas(binary.bytes, target_, {}, resources);
    if (!cubin) return cubin.error();
    std::string said;
    if (target_.hasWgmma) {
      const auto code = ir::readSass(*cubin, binary.entry, target_.sm);
      if (!code) return code.error();
      const auto touched = ir::touchedInFlight(*code);
      if (!touched.empty()) said = fmt::format("registers of products in flight are touched: {}", touched.front());
      if (!touched.empty() && !only) return Error{ErrorKind::compile, said, {}};
    }
    if (!only) return ok();
    if (resources.spill_store_bytes) said = fmt::format("{} bytes of registers spill; ", resources.spill_store_bytes);
    for (std::string_view rest = resources.log; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (line.find("(C75") != line.npos) said += line;
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    return Error{ErrorKind::compile, kAssembledOnly + said, {}};
  }

  Stream& default_stream() override { return stream_; }
  Result<std::shared_ptr<Stream>> create_stream() override { return wrap_stream(nullptr); }
  Result<std::shared_ptr<Stream>> wrap_stream(void*) override {
    return std::static_pointer_cast<Stream>(std::make_shared<SimtStream>(*this, host_->default_stream()));
  }
  Result<std::shared_ptr<Event>> create_event() override { return host_->create_event(); }
  Result<void*> allocate(size_t bytes) override { return host_->allocate(bytes); }
  void release(void* address) override { host_->release(address); }
  Result<MemoryInfo> memory() override { return host_->memory(); }
  Status synchronize() override { return host_->synchronize(); }

 private:
  ir::Target target_;
  std::shared_ptr<Device> host_;
  SimtStream stream_{*this, host_->default_stream()};
};

}  // namespace

std::shared_ptr<Device> makeSimtDevice(const std::string& target, int multiprocessors) {
  const auto known = ir::lookupTarget(target);
  if (!known) throw std::invalid_argument("no target '" + target + "'");
  JitPolicy policy = jit_policy();
  policy.use_disk = false;  // what comes from disk shows no IR
  policy.stages = {"llvm"};
  policy.on_stage = [](const std::string& symbol, const std::string&, const std::string& text) {
    const std::lock_guard lock(shared().mutex);
    shared().llvmText[symbol] = text;
  };
  set_jit_policy(policy);
  return std::make_shared<SimtDevice>(*known, multiprocessors);
}

void setSimtSeed(uint32_t seed) { shared().seed = seed; }
SimtLaunches simtLaunches() { return shared().launches; }

}  // namespace tile::testing
