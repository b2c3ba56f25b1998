// fuzz.cpp - differential fuzzing of the tracer: random nested programs run directly in C++ and, traced through the
// language, in an interpreter of the IR or (--device) compiled for and run on a device. Memory must agree.
//   dsl_fuzz [--programs=N] [--seed=FIRST] [--device=host|cuda:0] [--show]
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "dsl/tracing/kernel_core.h"
#include "interpreter.h"
#include "random_program.h"

using namespace tile;
using namespace tile::fuzz;

namespace {

/// The fuzzer looks behind AnyKernel, at the module of a trace.
struct Opened : AnyKernel {
  explicit Opened(const AnyKernel& k) : AnyKernel(k) {}
  std::shared_ptr<detail::TraceState> module() const { return detail::trace_kernel(*core_, {}, {}); }
};

struct Options {
  uint32_t programs = 1000, seed = 1;
  std::string device;
  bool show = false;
};

bool number(const char* arg, const char* flag, uint32_t& out) {
  const size_t n = std::strlen(flag);
  if (std::strncmp(arg, flag, n) != 0) return false;
  out = static_cast<uint32_t>(std::strtoul(arg + n, nullptr, 10));
  return true;
}

Memory before() {
  Memory m;
  for (int i = 0; i < kResults; ++i) m[i] = 1000 + i;
  return m;
}

int report(uint32_t seed, const std::string& what, const Memory& want, const std::vector<int32_t>& got,
           const std::string& text) {
  std::printf("seed %u: %s\n", seed, what.c_str());
  for (int i = 0; i < kResults && i < static_cast<int>(got.size()); ++i)
    if (want[i] != got[i]) std::printf("  result %d: expected %d, found %d\n", i, want[i], got[i]);
  std::printf("%s\n", text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--device=", 9) == 0)
      o.device = argv[i] + 9;
    else if (std::strcmp(argv[i], "--show") == 0)
      o.show = true;
    else if (!number(argv[i], "--programs=", o.programs) && !number(argv[i], "--seed=", o.seed)) {
      std::printf("usage: dsl_fuzz [--programs=N] [--seed=FIRST] [--device=host|cuda:0] [--show]\n");
      return 2;
    }
  }
  set_jit_policy({.use_disk = false});
  std::shared_ptr<Device> device;
  if (!o.device.empty()) {
    auto opened = open_device(o.device);
    if (!opened) return std::printf("%s\n", opened.error().to_string().c_str()), 2;
    device = *opened;
  }
  size_t operations = 0, loops = 0, carried = 0;
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t seed = o.seed; seed < o.seed + o.programs; ++seed) {
    const Program program = random_program(seed);
    const Memory want = run_directly(program, before());
    auto k = kernel("fuzz", [&](Ptr<int32_t> out) { trace_program(program, out); });
    const Memory initial = before();
    std::vector<int32_t> memory(initial.begin(), initial.end());
    auto traced = Opened(k).module();
    if (!traced->ok) return report(seed, "does not trace", want, {}, traced->error.to_string());
    std::string text;
    if (o.show) {
      text = k.trace().text();
      std::printf("%s\n", text.c_str());
    }
    std::string problem;
    if (device) {
      traced = nullptr;
      auto compiled = k.compile(device, NoConfig{});
      if (!compiled) return report(seed, "does not compile", want, {}, compiled.error().to_string() + k.trace().text());
      auto buffer = Buffer<int32_t>::from(device, std::span<const int32_t>(memory)).value_or_throw();
      Status s = compiled->try_launch(device->default_stream(), {}, buffer.data());
      if (s) s = device->default_stream().synchronize();
      if (s) s = buffer.copy_to(std::span<int32_t>(memory));
      if (!s) problem = s.error().to_string();
    } else {
      const Interpreted r = interpret(*traced->module->getOps<mlir::func::FuncOp>().begin(), memory);
      problem = r.problem;
      operations += r.operations, loops += r.loops, carried += r.carried;
    }
    if (!problem.empty()) return report(seed, problem, want, memory, k.trace().text());
    if (!std::equal(memory.begin(), memory.end(), want.begin()))
      return report(seed, "MISMATCH", want, memory, k.trace().text());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%u random programs agree in %.1f s (%s", o.programs, seconds,
              device ? ("run on " + device->name()).c_str() : "interpreted");
  if (!device) std::printf(": %zu operations, %zu loops, %zu loop-carried values executed", operations, loops, carried);
  std::printf(")\n");
  return 0;
}
