// roofline.cpp - flops and bytes come from the catalog row's own formulas, peaks from the makers' data sheets (dense).
#include "tools/tilec/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/catalog.h"
#include "runtime/device.h"
#include "runtime/spelling.h"
#include "tools/tilec/catalog_choice.h"

namespace tilec {
namespace {

struct MachinePeaks {
  const char* name;
  const char* target;             ///< whose default it is
  double half, tf32, eight, f32;  ///< 1e12 operations per second: f16 and bf16, tf32, fp8 and int8, f32
  double bytes;                   ///< 1e12 per second
};
constexpr MachinePeaks kMachines[] = {
    {"h200", "sm_90a", 989.4, 494.7, 1978.9, 66.9, 4.8},
    {"h100", "", 989.4, 494.7, 1978.9, 66.9, 3.35},
    {"a100", "sm_80", 312.0, 156.0, 624.0, 19.5, 2.039},  // fp8 runs there as f16: not a bound it reaches
};

const MachinePeaks* machineNamed(const std::string& name, const std::string& target) {
  for (const MachinePeaks& m : kMachines)
    if (name.empty() ? target == m.target : name == m.name) return &m;
  return nullptr;
}

double peakOf(const MachinePeaks& m, const std::string& dtype) {
  if (dtype == "f16" || dtype == "bf16") return m.half;
  if (dtype == "tf32") return m.tf32;
  if (dtype == "i8" || dtype.starts_with("f8")) return m.eight;
  return m.f32;
}

/// Median of runs after a few that do not count.
tile::Result<double> measure(tile::kernels::Case& run, tile::Device& device) {
  tile::Stream& stream = device.default_stream();
  std::vector<double> times;
  for (int i = 0; i < 13; ++i) {
    auto start = device.create_event(), end = device.create_event();
    if (!start) return start.error();
    if (!end) return end.error();
    if (auto s = stream.record(**start); !s) return s.error();
    if (auto s = run.launch(stream); !s) return s.error();
    if (auto s = stream.record(**end); !s) return s.error();
    if (auto s = stream.synchronize(); !s) return s.error();
    auto ms = (*end)->elapsed_ms(**start);
    if (!ms) return ms.error();
    if (i >= 3) times.push_back(*ms);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace

tile::Result<Roofline> rooflineOf(const KernelChoice& choice, const std::string& target, const ReportRequest& request,
                                  bool* usageError) {
  *usageError = true;
  auto row = tile::kernels::find_kernel(choice.kernel);
  if (!row) return tile::user_error("--problem needs a kernel of the catalog: " + row.error().message);
  if (!request.machine.empty() && !machineNamed(request.machine, "")) {
    std::vector<std::string> names;
    for (const MachinePeaks& m : kMachines) names.emplace_back(m.name);
    return tile::user_error(tile::unknown_name("machine", request.machine, names));
  }
  auto parsed = catalogProblem(choice);
  if (!parsed) return parsed.error();
  auto config = catalogConfig(choice, target, &*parsed);
  if (!config) return config.error();
  *usageError = false;

  auto device = tile::open_device(request.device.empty() ? "host" : request.device);
  if (!device) return device.error();
  auto run = (*row)->prepare(*device, *parsed, *config);
  if (!run) return run.error();
  const tile::kernels::Work work = (*run)->work();
  Roofline r;
  r.problem = parsed->to_string();
  r.flops = work.flops;
  r.bytes = work.bytes;
  if (const MachinePeaks* m = machineNamed(request.machine, target)) {
    r.machine = m->name;
    r.peakFlops = peakOf(*m, parsed->dtype) * 1e12;
    r.peakBytes = m->bytes * 1e12;
    const double arithmetic = r.flops / r.peakFlops, memory = r.bytes / r.peakBytes;
    r.limit = arithmetic > memory ? "arithmetic" : "memory";
    r.boundMilliseconds = std::max(arithmetic, memory) * 1e3;
  }
  r.milliseconds = request.milliseconds;
  if (!request.device.empty()) {
    auto ms = measure(**run, **device);
    if (!ms) return ms.error();
    r.milliseconds = *ms;
  }
  return r;
}

}  // namespace tilec
