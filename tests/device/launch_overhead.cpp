// launch_overhead - what a launch costs above the bare driver call (GPU) or the bare function call (host).
// usage: launch_overhead [--check]   --check fails above 2 us, the limit the runtime promises.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/tensor_maps.h"
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

// A kernel with two tensor maps and ten slots: what the bare call is given ready-made, the runtime looks up.
Result<bool> measure_tensor_maps(const std::string& name) {
  Result<std::shared_ptr<Device>> device = open_device(name);
  if (!device) return device.error();
  Device& d = **device;
  if (d.properties().sm < 90) return true;
  const KernelBinary binary = binary_for(d, "copy_boxes");
  Result<std::shared_ptr<Module>> module = d.load(binary);
  if (!module) return module.error();
  Result<Buffer<float>> memory = Buffer<float>::allocate(*device, 1024);
  if (!memory) return memory.error();
  Stream& stream = d.default_stream();
  const uint64_t at = slot(memory->data());
  const uint64_t slots[] = {at, 8, 32, 32, 1, at + 2048, 8, 32, 32, 1};
  const cu::Driver& driver = *cu::driver();
  driver.cuCtxSetCurrent(static_cast<cu::CUcontext>(d.native_context()));
  cu::CUmodule raw_module = nullptr;
  cu::CUfunction function = nullptr;
  driver.cuModuleLoadDataEx(&raw_module, binary.bytes.c_str(), 0, nullptr, nullptr);
  driver.cuModuleGetFunction(&function, raw_module, "copy_boxes");
  cu::TensorMap maps[2];
  void* params[12];
  for (size_t i = 0; i < 10; ++i) params[i] = const_cast<uint64_t*>(&slots[i]);
  const uint64_t dims[] = {32, 8}, strides[] = {128};
  const uint32_t box[] = {kBoxCols, kBoxRows}, ones[] = {1, 1};
  for (size_t i = 0; i < 2; ++i) {
    params[10 + i] = &maps[i];
    driver.cuTensorMapEncodeTiled(&maps[i], cu::CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2,
                                  reinterpret_cast<void*>(slots[5 * i]), dims, strides, box, ones,
                                  cu::CU_TENSOR_MAP_INTERLEAVE_NONE, cu::CU_TENSOR_MAP_SWIZZLE_NONE,
                                  cu::CU_TENSOR_MAP_L2_PROMOTION_L2_128B, cu::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
  const auto drain = [&] { (void)stream.synchronize(); };
  const double bare = best_ns(
      [&] {
        driver.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, static_cast<cu::CUstream>(stream.native()), params,
                              nullptr);
      },
      drain);
  const double ours = best_ns([&] { (void)stream.launch(**module, {1}, slots, std::size(slots)); }, drain);
  cu::TensorMaps lookup(driver, (*module)->info(), {});
  fmt::print("{:<44} {:7.0f} ns\n", "  of that, finding the two maps",
             best_ns([&] { (void)lookup.encode(slots, maps); }, [] {}));
  return report(fmt::format("{} ({}), two tensor maps", name, d.properties().model).c_str(), bare, ours);
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
    const tile::Result<bool> maps = name == "host" ? tile::Result<bool>(true) : tile::measure_tensor_maps(name);
    if (!maps) fmt::print("{}: {}\n", name, maps.error().message);
    good &= maps.ok() && *maps;
  }
  if (tile::device_names().size() == 1) fmt::print("SKIPPED cuda: no GPU on this machine\n");
  if (check && !good) fmt::print("FAILED: a launch costs more than {:.0f} ns above the bare call\n", tile::kLimitNs);
  return check && !good ? 1 : 0;
}
