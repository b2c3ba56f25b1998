// demo.cpp - the kernels at work on the best device present: every line runs a kernel on random data, compares it with
// the float64 reference and says how long it took and where its code came from.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "kernels/catalog.h"
#include "tools/bench/timing.h"

using namespace tile;
using namespace tile::kernels;

namespace {

/// A problem at a size that takes a GPU milliseconds, and one that takes a few cores milliseconds.
struct Line {
  const char *kernel, *dtype;
  Fields gpu, host;
};
struct Section {
  const char* title;
  std::vector<Line> lines;
  bool against_first = false;  ///< times are compared with the first line's
};

std::vector<Section> sections() {
  Section forward{"attention", {}}, backward{"gradients of attention", {}};
  for (const char* dtype : {"f16", "bf16"})
    for (int64_t causal : {0, 1}) {
      forward.lines.push_back({"attention_forward",
                               dtype,
                               {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}},
                               {{"B", 1}, {"Hq", 4}, {"Sq", 512}, {"D", 64}, {"causal", causal}}});
      backward.lines.push_back({"attention_backward",
                                dtype,
                                {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", causal}},
                                {{"B", 1}, {"Hq", 2}, {"Sq", 256}, {"D", 64}, {"causal", causal}}});
    }
  forward.lines.push_back({"attention_forward",  // fewer heads of keys, more keys than queries
                           "f16",
                           {{"B", 4}, {"Hq", 32}, {"Hkv", 8}, {"Sq", 2048}, {"Sk", 3000}, {"D", 64}, {"causal", 1}},
                           {{"B", 1}, {"Hq", 4}, {"Hkv", 2}, {"Sq", 113}, {"Sk", 203}, {"D", 128}, {"causal", 1}}});
  forward.lines.push_back({"attention_forward",  // heads inside the sequence, a head size that is no power of two
                           "f16",
                           {{"B", 2}, {"Hq", 8}, {"Sq", 1000}, {"D", 80}, {"causal", 1}, {"layout", 1}},
                           {{"B", 1}, {"Hq", 2}, {"Sq", 200}, {"D", 80}, {"causal", 1}, {"layout", 1}}});
  backward.lines.push_back({"attention_backward_deterministic",
                            "f16",
                            {{"B", 4}, {"Hq", 16}, {"Sq", 4096}, {"D", 128}, {"causal", 1}},
                            {{"B", 1}, {"Hq", 2}, {"Sq", 256}, {"D", 64}, {"causal", 1}}});

  const Fields large = {{"M", 8192}, {"N", 8192}, {"K", 8192}}, small = {{"M", 512}, {"N", 512}, {"K", 512}};
  Section sparse{"block-sparse matmul, a dense one first", {{"gemm", "f16", large, small}}, true};
  for (int64_t density : {50, 25, 10, 5}) {
    Fields gpu = large, host = small;
    for (Fields* f : {&gpu, &host})
      f->set("bm", f == &gpu ? 128 : 64).set("bk", f == &gpu ? 128 : 64).set("density", density);
    sparse.lines.push_back({"block_sparse_dense", "f16", gpu, host});
  }
  Section masked{"the same with blocks masked in both operands",
                 {{"gemm", "f32", {{"M", 1024}, {"N", 1024}, {"K", 1024}}, small},
                  {"block_sparse_matmul",
                   "f32",
                   {{"M", 1024}, {"N", 1024}, {"K", 1024}, {"bm", 32}, {"bn", 32}, {"bk", 32}},
                   {{"M", 512}, {"N", 512}, {"K", 512}, {"bm", 32}, {"bn", 32}, {"bk", 32}}}},
                 true};
  Section windows{"block-sparse attention, full attention first", {}, true};
  const Fields long_gpu = {{"B", 4}, {"Hq", 16}, {"Sq", 8192}, {"D", 128}, {"causal", 1}},
               long_host = {{"B", 1}, {"Hq", 2}, {"Sq", 1024}, {"D", 64}, {"causal", 1}};
  windows.lines.push_back({"attention_forward", "f16", long_gpu, long_host});
  windows.lines.push_back(
      {"block_sparse_attention", "f16", Fields(long_gpu).set("left", 1024), Fields(long_host).set("left", 128)});
  windows.lines.push_back(
      {"block_sparse_attention", "f16", Fields(long_gpu).set("density", 25), Fields(long_host).set("density", 25)});

  Section gla{"gated linear attention", {}};
  for (const char* kernel : {"gla_chunk_forward", "gla_forward", "gla_backward"})
    gla.lines.push_back({kernel,
                         "bf16",
                         {{"B", 8}, {"H", 16}, {"L", 2048}, {"K", 128}, {"V", 128}},
                         {{"B", 1}, {"H", 4}, {"L", 256}, {"K", 64}, {"V", 64}}});
  gla.lines.push_back({"gla_decode",
                       "bf16",
                       {{"B", 256}, {"H", 16}, {"K", 128}, {"V", 128}},
                       {{"B", 2}, {"H", 4}, {"K", 64}, {"V", 64}}});
  return {forward, backward, sparse, masked, windows, gla};
}

const char* kFormat = "{:<32} {:<5} {:<44} {:>9} {:>9} {:>10} {:>9} {:>7}  {}\n";

/// Milliseconds; nothing when the kernel failed or its result is wrong. `first` > 0: what to compare the time with.
std::optional<double> show(const std::shared_ptr<Device>& device, const Line& line, double first) {
  const bool host = device->kind() == DeviceKind::host;
  const Problem problem{line.dtype, host ? line.host : line.gpu};
  const std::string sizes = problem.sizes.to_string();
  auto fail = [&](const std::string& why) {
    fmt::print("{:<32} {:<5} {:<44} FAILED: {}\n", line.kernel, line.dtype, sizes, why);
    return std::nullopt;
  };
  auto row = find_kernel(line.kernel);
  if (!row) return fail(row.error().message);
  auto prepared = (*row)->prepare(device, problem, (*row)->default_config(problem, Machine::of(device->properties())));
  if (!prepared) return fail(prepared.error().to_string());
  Case& run = **prepared;
  Stream& stream = device->default_stream();
  JitStats before = jit_stats();
  auto checks = run.check(stream, host ? 1e8 : 5e8);
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
  fmt::print(fmt::runtime(kFormat), line.kernel, line.dtype, sizes, fmt::format("{:.1e}", worst_max),
             fmt::format("{:.1e}", worst_rms), fmt::format("{:.3f}", timing->ms),
             fmt::format("{:.3f}", run.work().flops / timing->ms * 1e-9),
             first > 0 ? fmt::format("{:.2f}x", first / timing->ms) : "", source);
  std::fflush(stdout);
  return timing->ms;
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
  fmt::print(fmt::runtime(kFormat), "kernel", "dtype", "shape", "max err", "rms ratio", "ms", "TFLOP/s", "faster",
             "code");
  bool all = true;
  for (const Section& section : sections()) {
    fmt::print("-- {}\n", section.title);
    double first = 0;
    for (const Line& line : section.lines) {
      const std::optional<double> ms = show(*device, line, first);
      all &= ms.has_value();
      if (section.against_first && &line == section.lines.data()) first = ms.value_or(0);
    }
  }
  fmt::print("\n{}\n", all ? "all results agree with the float64 references" : "SOME RESULTS ARE WRONG");
  return all ? 0 : 1;
}
