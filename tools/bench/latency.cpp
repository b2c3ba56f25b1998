// latency.cpp - measured on attention forward (compile paths) and on a vector add of one block (launch path).
#include "tools/bench/latency.h"

#include <fmt/format.h>

#include "kernels/attention.h"
#include "kernels/catalog.h"
#include "kernels/vector_add.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/module.h"
#include "tools/bench/timing.h"

namespace tile::bench {
namespace {

using namespace tile::kernels;

constexpr int kLaunches = 2000;

struct SmallAdd {
  Buffer<float> x, y, z;
  std::shared_ptr<Device> device;
  VectorAddConfig config;
  explicit SmallAdd(std::shared_ptr<Device> d)
      : x(Buffer<float>::allocate(d, 256).value_or_throw()),
        y(Buffer<float>::allocate(d, 256).value_or_throw()),
        z(Buffer<float>::allocate(d, 256).value_or_throw()),
        device(d),
        config(default_vector_add_config(Machine::of(d->properties()))) {}
  void launch() {
    vector_add_kernel<float>().launch(device->default_stream(), config, Grid{1}, x.view(256), y.view(256), z.view(256));
  }
  Compiled<Tensor<const float, 1>, Tensor<const float, 1>, Tensor<float, 1>> compiled() {
    return vector_add_kernel<float>().compile(device, config, x.view(256), y.view(256), z.view(256)).value_or_throw();
  }
  std::array<uint64_t, 9> slots() const {
    uint64_t s = 256;
    auto at = [](const Buffer<float>& b) { return reinterpret_cast<uint64_t>(b.data()); };
    return {at(x), s, 1, at(y), s, 1, at(z), s, 1};
  }
};

/// Microseconds of host time per call, the queue kept short enough never to block.
double call_us(Stream& stream, const std::function<void()>& call) {
  return median_of(7, [&] {
    stream.synchronize().value_or_throw();
    double ms = 0;
    for (int batch = 0; batch < kLaunches / 200; ++batch) {
      ms += wall_ms([&] {
        for (int i = 0; i < 200; ++i) call();
      });
      stream.synchronize().value_or_throw();
    }
    return ms * 1e3 / kLaunches;
  });
}

/// The same launch through cuLaunchKernel alone; 0 on the host.
double raw_driver_us(const SmallAdd& add, Stream& stream, const Module& module) {
  if (add.device->kind() != DeviceKind::cuda) return 0;
  auto& cuda_module = static_cast<const cu::CudaModule&>(module);
  std::array<uint64_t, 9> slots = add.slots();
  void* params[9];
  for (size_t i = 0; i < slots.size(); ++i) params[i] = &slots[i];
  const cu::Driver& driver = cu::driver().value();
  driver.cuCtxSetCurrent(static_cast<cu::CUcontext>(add.device->native_context()));
  return call_us(stream, [&] {
    driver.cuLaunchKernel(cuda_module.function(), 1, 1, 1, module.info().threads, 1, 1, module.info().shared_bytes,
                          static_cast<cu::CUstream>(stream.native()), params, nullptr);
  });
}

}  // namespace

nlohmann::json measure_latencies(const std::shared_ptr<Device>& device) {
  nlohmann::json out;
  auto report = [&](const char* key, const char* what, double value, const char* unit) {
    if (value <= 0) return;
    fmt::print("  {:<58} {:>10.3f} {}\n", what, value, unit);
    out[key] = value;
  };
  Stream& stream = device->default_stream();
  const auto& attention = attention_kernel<half>();
  AttentionConfig config =
      default_attention_config(DType::f16, 4096, 128, 128, true, 1.f, Machine::of(device->properties()));
  const std::string target = device->properties().target;

  report("trace_ms", "trace and hash of attention forward",
         median_of(21, [&] { return wall_ms([&] { (void)attention.trace(config).hash(); }); }), "ms");
  const JitPolicy policy = jit_policy();
  JitPolicy no_disk = policy;
  no_disk.use_disk = false;
  set_jit_policy(no_disk);
  auto compile_ms = [&](const std::string& for_target, const AttentionConfig& c) {
    return median_of(5, [&] {
      return wall_ms([&] {
        attention.compile_for(for_target, attention.words(c), dense_specialization(attention)).value_or_throw();
      });
    });
  };
  report("compile_cold_ms", "compile of attention forward, no cache", compile_ms(target, config), "ms");
  if (target != "sm_90a") {  // to a cubin, which needs no GPU; without ptxas to PTX
    AttentionConfig gpu = default_attention_config(DType::f16, 4096, 128, 128, true, 1.f, {true, 232448, 132, true});
    report("compile_sm_90a_cold_ms", "compile of attention forward for sm_90a, no cache", compile_ms("sm_90a", gpu),
           "ms");
  }
  set_jit_policy(policy);

  // From the disk cache to the first launch's end: forget what is loaded, launch again.
  auto q = Buffer<half>::allocate(device, 128 * 128).value_or_throw(),
       o = Buffer<half>::allocate(device, 128 * 128).value_or_throw();
  auto lse = Buffer<float>::allocate(device, 128).value_or_throw();
  TensorView<half, 4> view = q.view(1, 1, 128, 128);
  auto first_launch = [&] {
    attention_forward<half>(stream, view, view, view, o.view(1, 1, 128, 128), lse.view(1, 1, 128), 1.f, config)
        .value_or_throw();
    stream.synchronize().value_or_throw();
  };
  first_launch();
  report("disk_hit_ms", "disk-cache hit to the end of the first launch",
         median_of(11,
                   [&] {
                     attention.clear_memory_cache();
                     return wall_ms(first_launch);
                   }),
         "ms");

  SmallAdd add(device);
  add.launch();
  auto compiled = add.compiled();
  double kernel_us = call_us(stream, [&] { add.launch(); });
  double stream_us = call_us(stream, [&, slots = add.slots()] {
    stream.launch(*compiled.module(), Grid{1}, slots.data(), slots.size()).value_or_throw();
  });
  double raw_us = raw_driver_us(add, stream, *compiled.module());
  report("launch_us", "typed launch on a memory hit", kernel_us, "us");
  report("stream_launch_us", "Stream::launch of a loaded module", stream_us, "us");
  report("driver_launch_us", "cuLaunchKernel", raw_us, "us");
  report("launch_overhead_us", raw_us > 0 ? "typed launch over cuLaunchKernel" : "typed launch over Stream::launch",
         kernel_us - (raw_us > 0 ? raw_us : stream_us), "us");
  return out;
}

}  // namespace tile::bench
