// bench.cpp - times the catalog on any device: a table for people, JSON for compare.py.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>

#include "kernels/catalog.h"
#include "tools/bench/host_peaks.h"
#include "tools/bench/latency.h"
#include "tools/bench/naive.h"
#include "tools/bench/timing.h"
#include "tools/bench/tune.h"

using namespace tile;
using namespace tile::kernels;
using nlohmann::json;

namespace {

struct Options {
  std::string device = "", filter = "", json_path, problem, tune;
  std::vector<std::string> config;
  int threads = 0;
  double keep_percent = 1;
  bool check = false, latency = false, peaks = false, list = false, all_purposes = false, follow = false, naive = false;
  bench::TimingOptions timing;
};

/// "gemm f16 M=128 N=128 K=64" into a row and a problem of it.
Result<std::pair<const CatalogRow*, Problem>> parse_row_problem(const std::string& text) {
  std::istringstream words(text);
  std::string name, dtype, sizes;
  words >> name >> dtype;
  std::getline(words, sizes);
  auto row = find_kernel(name);
  if (!row) return row.error();
  auto problem = parse_problem(**row, dtype, sizes);
  if (!problem) return problem.error();
  return std::pair{*row, *problem};
}

/// Device-to-device copy, bytes read and written per second: the ceiling of memory-bound kernels, measured in the same
/// run.
double copy_bandwidth(const std::shared_ptr<Device>& device, const bench::TimingOptions& timing) {
  if (device->kind() == DeviceKind::host)
    return bench::host_copy_peak(device->properties().multiprocessors);
  size_t bytes = size_t{2} << 30;
  auto from = DeviceMemory::allocate(device, bytes), to = DeviceMemory::allocate(device, bytes);
  if (!from.ok() || !to.ok()) return 0;
  Stream& s = device->default_stream();
  auto t = bench::time_launches(
      device, s, [&] { return s.copy(to->data(), from->data(), bytes); }, timing);
  return t.ok() ? 2.0 * static_cast<double>(bytes) / (t->ms * 1e-3) : 0;
}

json measure_peaks(const std::shared_ptr<Device>& device, const bench::TimingOptions& timing) {
  json out;
  out["copy_bytes_per_s"] = copy_bandwidth(device, timing);
  fmt::print("  {:<58} {:>10.1f} GB/s\n", "copy, bytes read and written", out["copy_bytes_per_s"].get<double>() * 1e-9);
  if (device->kind() != DeviceKind::host) return out;
  out["fma_flops_per_s"] = bench::host_fma_peak();
  fmt::print("  {:<58} {:>10.1f} GFLOP/s\n", "f32 multiply-add peak, one thread",
             out["fma_flops_per_s"].get<double>() * 1e-9);
  return out;
}

/// Times on request, so that another program can interleave its own runs with ours: every line "burst" or "sustained"
/// of standard input is answered with "ms X cycles Y"; "set BM=64 ..." changes fields of `config` for the times behind it,
/// where the kernel can be tuned, and is answered with "config ..." or "failed ..."; ends with the input.
Status follow(const std::shared_ptr<Device>& device, const AnyKernel& kernel, const ConfigWords& config, Case& run,
              bench::TimingOptions timing) {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.starts_with("set ")) {
      std::istringstream words(line.substr(4));
      std::vector<std::string> fields{std::istream_iterator<std::string>(words), {}};
      auto changed = kernel.parse_config(fields, config);
      const bool taken = changed && run.set_config(*changed);
      fmt::print("{}\n", taken     ? "config " + kernel.describe_config(*changed)
                         : changed ? "failed: this case does not take another config"
                                   : "failed: " + changed.error().message);
      std::fflush(stdout);
      continue;
    }
    bench::TimingOptions round = timing;
    round.rounds = 1;
    if (line == "sustained") round.idle_ms = 0, round.warm_ms = 40, round.window_ms = 60;
    auto t = bench::time_launches(
        device, device->default_stream(), [&] { return run.launch(device->default_stream()); }, round);
    if (!t) return t.error();
    fmt::print("ms {} cycles {}\n", t->ms, t->cycles);
    std::fflush(stdout);
  }
  return Ok{};
}

/// A line of the table beside naive loops: ours on the device's threads, the loop on one; the shortest times, because
/// neighbours on a shared machine only ever lengthen them. False when something failed or the two differ.
bool run_beside_naive(const Options& options, const std::shared_ptr<Device>& device, const CatalogRow& row,
                      const Problem& problem, double copy_bytes_per_s, json& results) {
  json entry = {{"kernel", row.name}, {"dtype", problem.dtype}, {"problem", problem.to_string()}};
  auto fail = [&](const std::string& why) {
    fmt::print("{:<46} {:<52} FAILED: {}\n", row.name, problem.to_string(), why);
    entry["error"] = why;
    results.push_back(entry);
    return false;
  };
  const bench::NaiveLoop* loop = bench::find_naive(row.name);
  if (!loop) return fail("no naive loop");
  auto prepared = row.prepare(device, problem, row.default_config(problem, Machine::of(device->properties())));
  if (!prepared) return fail(prepared.error().message);
  Stream& stream = device->default_stream();
  auto ours = bench::time_launches(
      device, stream, [&] { return (*prepared)->launch(stream); }, options.timing);
  if (!ours) return fail(ours.error().to_string());
  auto naive = bench::run_naive(*loop, problem, **prepared, stream);
  if (!naive) return fail(naive.error().to_string());
  const bool same = naive->error <= bench::naive_tolerance(problem.dtype);
  const double rate = (*prepared)->work().bytes / ours->lowest * 1e3, ratio = naive->ms / ours->lowest;
  fmt::print("{:<46} {:<52} {:>10.3f} {:>10.1f} {:>7.1f} {:>8.1f} {:>5.0f}  {}\n", row.name, problem.to_string(),
             ours->lowest, naive->ms, ratio, rate * 1e-9, 100 * rate / copy_bytes_per_s,
             same ? fmt::format("same to {:.0e}", naive->error)
                  : fmt::format("DIFFERS: {} by {:.1e}", naive->output, naive->error));
  std::fflush(stdout);
  entry.update({{"ms", ours->lowest},
                {"naive_ms", naive->ms},
                {"ratio", ratio},
                {"gbytes_per_s", rate * 1e-9},
                {"share_of_copy", rate / copy_bytes_per_s},
                {"error", naive->error}});
  results.push_back(entry);
  return same;
}

/// One table line; false when the kernel failed or a check did not pass.
bool run_problem(const Options& options, const std::shared_ptr<Device>& device, const CatalogRow& row,
                 const Problem& problem, json& results) {
  json entry = {{"kernel", row.name}, {"dtype", problem.dtype}, {"problem", problem.to_string()}, {"peers", row.peers}};
  for (const auto& [name, value] : problem.sizes) entry["sizes"][name] = value;
  auto fail = [&](const std::string& why) {
    fmt::print("{:<20} {:<44} FAILED: {}\n", row.name, problem.to_string(), why);
    entry["error"] = why;
    results.push_back(entry);
    return false;
  };
  ConfigWords config = row.default_config(problem, Machine::of(device->properties()));
  const AnyKernel* kernel =
      row.kernel ? row.kernel(problem.dtype) : find_kernel(row.parts.front()).value()->kernel(problem.dtype);
  auto changed = kernel->parse_config(options.config, config);
  if (!changed) return fail(changed.error().message);
  config = *changed;
  entry["config"] = kernel->describe_config(config);

  auto prepared = row.prepare(device, problem, config);
  if (!prepared) return fail(prepared.error().message);
  Case& run = **prepared;
  Stream& stream = device->default_stream();
  JitStats before = jit_stats();
  Status first = Ok{};
  double first_ms = bench::wall_ms([&] {
    first = run.launch(stream);
    if (first) first = stream.synchronize();
  });
  if (!first) return fail(first.error().to_string());
  JitStats after = jit_stats();
  const char* source = after.compiles > before.compiles     ? "compiled"
                       : after.disk_hits > before.disk_hits ? "disk"
                                                            : "memory";
  auto timing = bench::time_launches(
      device, stream, [&] { return run.launch(stream); }, options.timing);
  if (!timing) return fail(timing.error().to_string());

  Work work = run.work();
  double tflops = work.flops / timing->ms * 1e-9, gbs = work.bytes / timing->ms * 1e-6;
  entry.update({{"ms", timing->ms},
                {"ms_lowest", timing->lowest},
                {"ms_highest", timing->highest},
                {"sm_cycles", timing->cycles},
                {"launches", timing->launches},
                {"first_ms", first_ms},
                {"source", source},
                {"tflops", tflops},
                {"gbytes_per_s", gbs}});
  std::string yardstick = timing->cycles > 0 ? fmt::format("  {:.5g} kcycles", timing->cycles * 1e-3) : "";
  if (options.peaks &&
      device->kind() == DeviceKind::host) {  // beside the kernel: clocks wander, neighbours come and go
    double share = work.flops / (timing->ms * 1e-3) / (bench::host_fma_peak() * device->properties().multiprocessors);
    entry["share_of_fma_peak"] = share;
    yardstick = fmt::format("  {:.0f}% of FMA peak", 100 * share);
  }
  std::string verdict = "-";
  bool pass = true;
  if (options.check) {
    auto checks = run.check(stream);
    if (!checks) return fail(checks.error().to_string());
    double worst = 0;
    for (const Check& c : *checks) {
      worst = std::max(worst, c.comparison.rmse_ratio);
      entry["checks"][c.output] = {
          {"pass", c.comparison.pass}, {"max_error", c.comparison.max_error}, {"rmse_ratio", c.comparison.rmse_ratio}};
      if (!c.comparison.pass) pass = false, verdict = c.output + ": " + c.comparison.why;
    }
    if (pass) verdict = fmt::format("ok, rms {:.1e}", worst);
  }
  fmt::print(
      "{:<20} {:<44} {:>10.4f} ms  -{:<3.0f}% +{:<3.0f}% {:>8.2f} TFLOP/s {:>8.1f} GB/s  first {:>7.1f} ms {:<8}{}  "
      "{}\n",
      row.name, problem.to_string(), timing->ms, 100 * (1 - timing->lowest / timing->ms),
      100 * (timing->highest / timing->ms - 1), tflops, gbs, first_ms, source, yardstick, verdict);
  std::fflush(stdout);
  results.push_back(entry);
  if (options.follow && pass) {
    fmt::print("ready {}\n", entry.dump());
    std::fflush(stdout);
    if (Status s = follow(device, *kernel, config, run, options.timing); !s) return fail(s.error().to_string());
  }
  return pass;
}

int run(const Options& options) {
  auto device = options.device.empty() ? default_device() : open_device(options.device);
  if (!device) return fmt::print(stderr, "{}\n", device.error().to_string()), 1;
  const DeviceProperties& p = (*device)->properties();
  fmt::print("{}: {}, target {}, {} {}\n", (*device)->name(), p.model, p.target, p.multiprocessors,
             (*device)->kind() == DeviceKind::host ? "threads" : "multiprocessors");
  Options adjusted = options;
  if ((*device)->kind() == DeviceKind::host) adjusted.timing.idle_ms = 0, adjusted.timing.window_ms = 100;

  json out = {{"device", (*device)->name()}, {"model", p.model}, {"target", p.target}, {"threads", p.multiprocessors}};
  if (options.peaks) out["peaks"] = measure_peaks(*device, adjusted.timing);
  if (options.latency) out["latency"] = bench::measure_latencies(*device);

  std::optional<bench::CatalogTuner> tuner;
  if (!options.tune.empty()) {
    bench::TuneRequest request{.file = options.tune, .options = {}};
    request.least_gain = options.keep_percent / 100;
    auto opened = bench::CatalogTuner::open(*device, std::move(request));
    if (!opened) return fmt::print(stderr, "{}\n", opened.error().to_string()), 1;
    tuner = std::move(*opened);
  }
  double copy_rate = 0;
  if (options.naive) {
    if ((*device)->kind() != DeviceKind::host) return fmt::print(stderr, "--naive is about the host device\n"), 1;
    adjusted.timing.rounds = 15, adjusted.timing.window_ms = 10;
    out["copy_bytes_per_s"] = copy_rate = copy_bandwidth(*device, adjusted.timing);
    fmt::print("copying reads and writes {:.1f} GB/s on {} threads; naive loops: f32, one thread, -O3\n",
               copy_rate * 1e-9, p.multiprocessors);
    fmt::print("{:<46} {:<52} {:>10} {:>10} {:>7} {:>8} {:>5}\n", "kernel", "problem", "ours ms", "naive ms", "ratio",
               "GB/s", "% of copy");
  }
  auto one = [&](const CatalogRow& row, const Problem& problem) {
    if (options.naive) return run_beside_naive(adjusted, *device, row, problem, copy_rate, out["results"]);
    return tuner ? tuner->tune(row, problem) : run_problem(adjusted, *device, row, problem, out["results"]);
  };

  bool all_pass = true;
  out["results"] = json::array();
  if (!options.problem.empty()) {
    auto wanted = parse_row_problem(options.problem);
    if (!wanted) return fmt::print(stderr, "{}\n", wanted.error().to_string()), 1;
    all_pass = one(*wanted->first, wanted->second);
  } else if (!options.filter.empty() || (!options.peaks && !options.latency)) {
    std::regex filter(options.filter);
    Purpose purpose = (*device)->kind() == DeviceKind::host ? Purpose::bench_host : Purpose::bench;
    for (const CatalogRow& row : catalog())
      for (const Problem& problem : row.problems)
        if ((problem.purpose == purpose || (options.all_purposes && problem.purpose != Purpose::build)) &&
            std::regex_search(row.name + " " + problem.to_string(), filter))
          all_pass &= one(row, problem);
  }
  if (!options.json_path.empty()) {
    std::ofstream file(options.json_path);
    file << out.dump(1) << "\n";
    if (!file) return fmt::print(stderr, "cannot write {}\n", options.json_path), 1;
  }
  return all_pass ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"bench - times the kernels of the catalog on one device"};
  app.add_option("--device", o.device, "host, cuda:0, ... (default: the best present)");
  app.add_option("--filter", o.filter, "regular expression on \"kernel dtype sizes\"");
  app.add_option("--problem", o.problem, "one problem: \"gemm f16 M=512 N=512 K=512\"");
  app.add_option("--set", o.config, "config fields for every kernel run: BM=64 stages=4");
  app.add_option("--tune", o.tune,
                 "measure the configurations of each problem and keep the fastest in this tuning table");
  app.add_option("--keep", o.keep_percent, "percent by which a kept line must beat the untuned configuration");
  app.add_option("--json", o.json_path, "write everything to this file");
  app.add_option("--rounds", o.timing.rounds, "rounds per figure, their median is reported");
  app.add_option("--window", o.timing.window_ms, "milliseconds of launches per round");
  app.add_option("--idle", o.timing.idle_ms, "milliseconds of idleness before a round (GPU)");
  app.add_option("--threads", o.threads, "threads of the host device");
  app.add_flag("--flush", o.timing.flush_l2, "overwrite the second-level cache before every launch");
  app.add_flag("--check", o.check, "compare every result with its float64 reference");
  app.add_flag("--latency", o.latency, "cost of tracing, compiling, caches and launches");
  app.add_flag("--peaks", o.peaks, "ceilings of this machine: copy bandwidth, FMA peak");
  app.add_flag("--naive", o.naive, "every kernel beside the plain loop that computes the same, on the host");
  app.add_flag("--follow", o.follow, "then time once for every line \"burst\" or \"sustained\" read; \"set FIELD=VALUE ...\" changes the config");
  app.add_flag("--all", o.all_purposes, "test and edge problems too");
  app.add_flag("--list", o.list, "print kernels and problems");
  CLI11_PARSE(app, argc, argv);
  if (o.list) {
    for (const CatalogRow& row : catalog()) {
      fmt::print("{}: {} [{}]{}\n", row.name, row.summary, fmt::join(row.dtypes, " "),
                 row.peers.empty() ? "" : "; peers: " + row.peers);
      for (const Problem& p : row.problems)
        if (p.purpose == Purpose::bench || p.purpose == Purpose::bench_host)
          fmt::print("  {}{}\n", p.to_string(), p.purpose == Purpose::bench ? "" : "  (host)");
    }
    return 0;
  }
  if (o.threads > 0) setenv("TILE_NUM_THREADS", std::to_string(o.threads).c_str(), 1);
  try {
    return run(o);
  } catch (const std::exception& e) {  // value_or_throw in the latency section, a bad --filter
    fmt::print(stderr, "bench: {}\n", e.what());
    return 1;
  }
}
