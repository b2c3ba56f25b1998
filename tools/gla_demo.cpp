// gla_demo.cpp - everything of gated linear attention and its relatives on the best device present: softmax and linear
// attention, the recurrence, the five steps, the fast forward with its three ways to the states, the parallel form, one
// token of decoding, the backward pass and the layer. Each result is compared with its float64 reference.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/catalog.h"
#include "tools/bench/timing.h"

using namespace tile;
using namespace tile::kernels;

namespace {

struct Line {
  const char *what, *kernel;
  Fields sizes;
};

/// One problem of every form. On a GPU the sequences are long, on a host they take milliseconds.
std::vector<Line> all_lines(bool gpu) {
  int64_t b = gpu ? 8 : 1, h = gpu ? 16 : 4, l = gpu ? 2048 : 256, k = gpu ? 128 : 64;
  auto sizes = [&](Fields extra = {}) {
    Fields f{{"B", b}, {"H", h}, {"L", l}, {"K", k}, {"V", k}};
    for (const auto& [name, value] : extra) f.set(name, value);
    return f;
  };
  return {
      {"softmax attention", "attention_forward", {{"B", b}, {"Hq", h}, {"Sq", l}, {"D", k}, {"causal", 1}}},
      {"linear attention, phi = 1", "linear_attention", sizes()},
      {"linear attention, elu + 1, normalised", "linear_attention", sizes({{"map", 1}, {"normalize", 1}})},
      {"recurrence, row by row", "gla_recurrent", sizes({{"B", 1}})},
      {"step 1: sums of decays", "gla_decay_cumsum", sizes()},
      {"step 2: decayed queries, keys", "gla_prepare", sizes()},
      {"step 3: across windows", "gla_inter_chunk", sizes()},
      {"step 4: scores inside windows", "gla_inner_scores", sizes()},
      {"step 5: both together", "gla_combine", sizes()},
      {"the five steps", "gla_chunk_forward", sizes()},
      {"fast forward, the plan's choice", "gla_forward", sizes()},
      {"fast forward, states on chip", "gla_forward", sizes({{"segment", 0}})},
      {"fast forward, segments and a scan", "gla_forward", sizes({{"segment", 4}})},
      {"fast forward, states in memory", "gla_forward", sizes({{"in_memory", 1}})},
      {"fast forward, packed sequences", "gla_forward", sizes({{"B", 1}, {"packed", 6}, {"state", 1}})},
      {"parallel form", "gla_parallel", sizes({{"B", 1}})},
      {"one token", "gla_decode", {{"B", 8 * b}, {"H", h}, {"K", k}, {"V", k}}},
      {"gradients of q, k, v, g, h0", "gla_backward", sizes({{"state", 3}})},
      {"the layer", "gla_layer", {{"B", b}, {"L", l}, {"D", h * k / 2}, {"H", h / 4}, {"K", k}, {"V", 2 * k}}},
  };
}

const char* kFormat = "{:<38} {:<18} {:<52} {:>9} {:>9}  {}\n";

/// Milliseconds of one run; nothing (and a line that says why) when it failed or its result is wrong.
std::optional<double> show(const std::shared_ptr<Device>& device, const Line& line, const char* dtype) {
  const Problem problem{dtype, line.sizes};
  auto fail = [&](const std::string& why) -> std::optional<double> {
    fmt::print("{:<38} {:<18} {} {} FAILED: {}\n", line.what, line.kernel, dtype, line.sizes.to_string(), why);
    return std::nullopt;
  };
  auto row = find_kernel(line.kernel);
  if (!row) return fail(row.error().message);
  // Some steps exist in one type only.
  Problem given = problem;
  if (std::find((*row)->dtypes.begin(), (*row)->dtypes.end(), dtype) == (*row)->dtypes.end())
    given.dtype = (*row)->dtypes[0];
  auto prepared = (*row)->prepare(device, given, (*row)->default_config(given, Machine::of(device->properties())));
  if (!prepared) return fail(prepared.error().to_string());
  Stream& stream = device->default_stream();
  auto checks = (*prepared)->check(stream, device->kind() == DeviceKind::host ? 1e8 : 5e8);
  if (!checks) return fail(checks.error().to_string());
  double rms = 0;
  for (const Check& c : *checks) {
    if (!c.comparison.pass) return fail(c.output + ": " + c.comparison.why);
    rms = std::max(rms, c.comparison.rmse_ratio);
  }
  auto timing = bench::time_launches(
      device, stream, [&] { return (*prepared)->launch(stream); }, bench::TimingOptions{3, 10, 0, 0, false});
  if (!timing) return fail(timing.error().to_string());
  fmt::print(fmt::runtime(kFormat), line.what, line.kernel, given.to_string(), fmt::format("{:.1e}", rms),
             fmt::format("{:.3f}", timing->ms), "ok");
  std::fflush(stdout);
  return timing->ms;
}

/// The recurrence of one head as anybody would write it first.
[[gnu::noinline]] void naive_head(const float* q, const float* k, const float* v, const float* g, float* o,
                                  float* state, int64_t rows, int64_t keys, int64_t values) {
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t d = 0; d < values; ++d) {
      float sum = 0;
      for (int64_t c = 0; c < keys; ++c) {
        float& s = state[c * values + d];
        s = s * std::exp(g[t * keys + c]) + k[t * keys + c] * v[t * values + d];
        sum += q[t * keys + c] * s;
      }
      o[t * values + d] = sum;
    }
}

double naive_ms(int64_t heads, int64_t rows, int64_t channels) {
  auto fill = [](int64_t n, float factor) {
    std::vector<float> x(static_cast<size_t>(n));
    for (size_t i = 0; i < x.size(); ++i) x[i] = factor * std::sin(0.37f * static_cast<float>(i));
    return x;
  };
  std::vector<float> q = fill(rows * channels, 1), g = fill(rows * channels, 0), o = q,
                     state(static_cast<size_t>(channels * channels));
  return bench::wall_ms([&] {
    for (int64_t h = 0; h < heads; ++h)
      naive_head(q.data(), q.data(), q.data(), g.data(), o.data(), state.data(), rows, channels, channels);
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::string device_name;
  CLI::App app{"gla_demo - every form of gated linear attention, each checked against float64"};
  app.add_option("--device", device_name, "host, cuda:0, ... (default: the best present)");
  CLI11_PARSE(app, argc, argv);
  auto device = device_name.empty() ? default_device() : open_device(device_name);
  if (!device) return fmt::print(stderr, "{}\n", device.error().to_string()), 1;
  const DeviceProperties& p = (*device)->properties();
  const bool gpu = (*device)->kind() != DeviceKind::host;
  fmt::print("{} ({}, target {})\n\n", (*device)->name(), p.model, p.target);
  fmt::print(fmt::runtime(kFormat), "form", "kernel", "problem", "rms ratio", "ms", "");
  bool all = true;
  for (const Line& line : all_lines(gpu)) all &= show(*device, line, gpu ? "bf16" : "f32").has_value();
  if (!gpu) {
    Line line{"against the naive loop", "gla_forward", {{"H", 4}, {"L", 512}, {"K", 64}, {"V", 64}}};
    auto ours = show(*device, line, "f32");
    all &= ours.has_value();
    if (ours) {
      double naive = naive_ms(4, 512, 64);
      fmt::print("naive loop, one thread: {:.1f} ms, {:.0f} times as long\n", naive, naive / *ours);
    }
  }
  fmt::print("\n{}\n", all ? "all results agree with the float64 references" : "SOME RESULTS ARE WRONG");
  return all ? 0 : 1;
}
