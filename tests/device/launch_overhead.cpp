// launch_overhead - what a launch costs above the bare driver call (GPU) or the bare function call (host).
// usage: launch_overhead [--check]   --check fails above 2 us, the limit the runtime promises.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/cuda/driver.h"
#include "tests/device/test_kernels.h"

namespace tile {
namespace {

using namespace testing_kernels;
using Clock = std::chrono::steady_clock;

constexpr double kLimitNs = 2000;

// Nanoseconds per call: the best of several batches, since everything that disturbs makes it slower. Batches stay well
// below the depth of the driver's queue, and are drained between measurements.
template <class Call, class Drain>
double best_ns(Call call, Drain drain) {
  constexpr int kBatch = 200, kBatches = 60;
  double best = 1e30;
  for (int b = 0; b < kBatches; ++b) {
    const auto begin = Clock::now();
    for (int i = 0; i < kBatch; ++i) call();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kBatch;
    drain();
    best = std::min(best, ns);
  }
  return best;
}

bool report(const char* what, double bare, double ours) {
  fmt::print("{:<44} bare {:7.0f} ns   through the runtime {:7.0f} ns   overhead {:6.0f} ns\n", what, bare, ours,
             ours - bare);
  return ours - bare <= kLimitNs;
}

// Five slots: three pointers, two scalars.
Result<bool> measure(const std::string& name) {
  Result<std::shared_ptr<Device>> device = open_device(name);
  if (!device) return device.error();
  Device& d = **device;
  Result<std::shared_ptr<Module>> module = d.load(binary_for(d, "nothing5"));
  if (!module) return module.error();
  Result<Buffer<int32_t>> memory = Buffer<int32_t>::allocate(*device, 64);
  if (!memory) return memory.error();
  const uint64_t slots[] = {slot(memory->data()), slot(memory->data()), slot(memory->data()), 3, 4};
  Stream& stream = d.default_stream();
  const auto through = [&](Grid grid) {
    return best_ns([&] { (void)stream.launch(**module, grid, slots, std::size(slots)); },
                   [&] { (void)stream.synchronize(); });
  };
  if (d.kind() == DeviceKind::host) {
    const HostEntry entry = find_host_kernel("nothing5")->entry;
    const HostProgram program{{0, 0, 0}, {1, 1, 1}};
    const double bare = best_ns([&] { entry(slots, &program, nullptr); }, [] {});
    const bool good = report("host, 1 program", bare, through({1}));
    report(fmt::format("host, 1024 programs on {} threads", d.properties().multiprocessors).c_str(), 1024 * bare,
           through({1024}));
    return good;
  }
  const cu::Driver& driver = *cu::driver();
  cu::CUmodule raw_module = nullptr;
  cu::CUfunction function = nullptr;
  driver.cuCtxSetCurrent(static_cast<cu::CUcontext>(d.native_context()));
  const KernelBinary binary = binary_for(d, "nothing5");
  driver.cuModuleLoadDataEx(&raw_module, binary.bytes.c_str(), 0, nullptr, nullptr);
  driver.cuModuleGetFunction(&function, raw_module, "nothing5");
  void* params[5];
  for (int i = 0; i < 5; ++i) params[i] = const_cast<uint64_t*>(&slots[i]);
  const double bare = best_ns(
      [&] {
        driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, static_cast<cu::CUstream>(stream.native()), params,
                              nullptr);
      },
      [&] { (void)stream.synchronize(); });
  return report(fmt::format("{} ({})", name, d.properties().model).c_str(), bare, through({1}));
}

}  // namespace
}  // namespace tile

int main(int argc, char** argv) {
  const bool check = argc > 1 && std::strcmp(argv[1], "--check") == 0;
  tile::testing_kernels::install_host_loader();
  bool good = true;
  for (const std::string& name : tile::device_names()) {
    const tile::Result<bool> measured = tile::measure(name);
    if (!measured) fmt::print("{}: {}\n", name, measured.error().message);
    good &= measured.ok() && *measured;
  }
  if (tile::device_names().size() == 1) fmt::print("SKIPPED cuda: no GPU on this machine\n");
  if (check && !good) fmt::print("FAILED: a launch costs more than {:.0f} ns above the bare call\n", tile::kLimitNs);
  return check && !good ? 1 : 0;
}
