// demo.cpp - the kernels at work on the best device present: every line runs a kernel on random data, compares it with
// the float64 reference and says how long it took and where its code came from.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "kernels/catalog.h"
#include "tools/bench/timing.h"

using namespace tile;
using namespace tile::kernels;

namespace {

struct Line {
  const char* kernel;
  Problem problem;
};

/// Sizes that take a GPU milliseconds.
std::vector<Line> gpu_lines() {
  std::vector<Line> lines;
  for (const char* dtype : {"f16", "bf16"})
    for (int64_t causal : {0, 1}) {
      lines.push_back(
          {"attention_forward", {dtype, {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}}}});
      lines.push_back(
          {"attention_forward",
           {dtype, {{"B", 4}, {"Hq", 32}, {"Hkv", 8}, {"Sq", 2048}, {"Sk", 3000}, {"D", 64}, {"causal", causal}}}});
    }
  lines.push_back(
      {"attention_forward", {"f16", {{"B", 2}, {"Hq", 8}, {"Sq", 1000}, {"D", 80}, {"causal", 1}, {"layout", 1}}}});
  lines.push_back({"block_sparse_matmul", {"f16", {{"M", 4096}, {"N", 4096}, {"K", 4096}, {"density", 50}}}});
  lines.push_back(
      {"block_sparse_matmul", {"f32", {{"M", 1024}, {"N", 1024}, {"K", 1024}, {"bm", 32}, {"bn", 32}, {"bk", 32}}}});
  for (const char* kernel : {"gla_chunk_forward", "gla_forward", "gla_backward"})
    lines.push_back({kernel, {"bf16", {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 128}, {"V", 128}}}});
  return lines;
}

/// The same kernels at sizes that take a few cores milliseconds.
std::vector<Line> host_lines() {
  std::vector<Line> lines;
  for (const char* dtype : {"f16", "bf16"})
    for (int64_t causal : {0, 1}) {
      lines.push_back(
          {"attention_forward", {dtype, {{"B", 1}, {"Hq", 4}, {"Sq", 512}, {"D", 64}, {"causal", causal}}}});
      lines.push_back(
          {"attention_forward",
           {dtype, {{"B", 1}, {"Hq", 4}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", 128}, {"causal", causal}}}});
    }
  lines.push_back(
      {"attention_forward", {"f16", {{"B", 1}, {"Hq", 2}, {"Sq", 200}, {"D", 80}, {"causal", 1}, {"layout", 1}}}});
  lines.push_back({"block_sparse_matmul", {"f16", {{"M", 512}, {"N", 512}, {"K", 512}, {"density", 50}}}});
  lines.push_back(
      {"block_sparse_matmul", {"f32", {{"M", 512}, {"N", 512}, {"K", 512}, {"bm", 32}, {"bn", 32}, {"bk", 32}}}});
  for (const char* kernel : {"gla_chunk_forward", "gla_forward", "gla_backward"})
    lines.push_back({kernel, {"bf16", {{"B", 1}, {"H", 4}, {"L", 256}, {"K", 64}, {"V", 64}}}});
  return lines;
}

const char* kFormat = "{:<20} {:<8} {:<5} {:<44} {:>9} {:>9} {:>10} {:>9}  {}\n";

/// False when the kernel failed or its result is wrong.
bool show(const std::shared_ptr<Device>& device, const Line& line) {
  std::string sizes = line.problem.sizes.to_string();
  auto fail = [&](const std::string& why) {
    fmt::print("{:<20} {:<8} {:<5} {:<44} FAILED: {}\n", line.kernel, device->name(), line.problem.dtype, sizes, why);
    return false;
  };
  auto row = find_kernel(line.kernel);
  if (!row) return fail(row.error().message);
  auto prepared =
      (*row)->prepare(device, line.problem, (*row)->default_config(line.problem, Machine::of(device->properties())));
  if (!prepared) return fail(prepared.error().to_string());
  Case& run = **prepared;
  Stream& stream = device->default_stream();
  JitStats before = jit_stats();
  auto checks = run.check(stream, device->kind() == DeviceKind::host ? 1e8 : 5e8);
  if (!checks) return fail(checks.error().to_string());
  JitStats after = jit_stats();
  const char* source = after.compiles > before.compiles     ? "compiled"
                       : after.disk_hits > before.disk_hits ? "cached (disk)"
                                                            : "cached (memory)";
  double worst_max = 0, worst_rms = 0;
  for (const Check& c : *checks) {
    if (!c.comparison.pass) return fail(c.output + ": " + c.comparison.why);
    worst_max = std::max(worst_max, c.comparison.max_error), worst_rms = std::max(worst_rms, c.comparison.rmse_ratio);
  }
  bench::TimingOptions options{3, 20, 0, false};
  auto timing = bench::time_launches(
      device, stream, [&] { return run.launch(stream); }, options);
  if (!timing) return fail(timing.error().to_string());
  fmt::print(fmt::runtime(kFormat), line.kernel, device->name(), line.problem.dtype, sizes,
             fmt::format("{:.1e}", worst_max), fmt::format("{:.1e}", worst_rms), fmt::format("{:.3f}", timing->ms),
             fmt::format("{:.3f}", run.work().flops / timing->ms * 1e-9), source);
  std::fflush(stdout);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name;
  CLI::App app{"demo - flash attention, block-sparse matmul and gated linear attention, each checked against float64"};
  app.add_option("--device", device_name, "host, cuda:0, ... (default: the best present)");
  CLI11_PARSE(app, argc, argv);
  auto device = device_name.empty() ? default_device() : open_device(device_name);
  if (!device) return fmt::print(stderr, "{}\n", device.error().to_string()), 1;
  const DeviceProperties& p = (*device)->properties();
  fmt::print("{} ({}, target {})\n\n", (*device)->name(), p.model, p.target);
  fmt::print(fmt::runtime(kFormat), "kernel", "device", "dtype", "shape", "max err", "rms ratio", "ms", "TFLOP/s",
             "code");
  bool all = true;
  for (const Line& line : (*device)->kind() == DeviceKind::host ? host_lines() : gpu_lines())
    all &= show(*device, line);
  fmt::print("\n{}\n", all ? "all results agree with the float64 references" : "SOME RESULTS ARE WRONG");
  return all ? 0 : 1;
}
