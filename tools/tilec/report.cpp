// report.cpp - `tilec report`: resources, buffers, occupancy, machine code and the roofline of a kernel.
#include "tools/tilec/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "compiler/targets/occupancy.h"
#include "compiler/targets/sass.h"
#include "runtime/entry_params.h"
#include "tools/tilec/commands.h"
#include "tools/tilec/roofline.h"

namespace tilec {
namespace {

using tile::ir::Occupancy;
using tile::ir::SassCounts;
using tile::ir::SassKernel;
using tile::ir::Target;

Occupancy occupancyOfKernel(const tile::KernelBinary& binary, const Target& target) {
  const tile::Resources& r = binary.resources;
  return occupancyOf({static_cast<int>(binary.threads), r.registers, binary.shared_bytes + r.static_shared_bytes}, target);
}

/// The machine code, when there is some.
std::optional<SassKernel> codeOf(const tile::KernelBinary& binary, const Target& target) {
  if (target.backend != tile::ir::Backend::nvptx || binary.format != tile::BinaryFormat::cubin) return std::nullopt;
  auto code = tile::ir::readSass(binary.bytes, binary.entry, target.sm);
  if (!code) return std::nullopt;
  return std::move(*code);
}

/// Names as the instructions have them, with how often they occur; what does not occur is left out of texts.
std::vector<std::pair<const char*, int>> named(const SassCounts& c) {
  return {{"HGMMA", c.hgmma}, {"QGMMA", c.qgmma}, {"IGMMA", c.igmma}, {"BGMMA", c.bgmma}, {"HMMA", c.hmma},
          {"IMMA", c.imma}, {"DMMA", c.dmma}, {"BMMA", c.bmma}, {"MUFU", c.mufu}, {"LDG", c.globalLoads},
          {"STG", c.globalStores}, {"LDGSTS", c.asyncCopies}, {"UTMALDG", c.bulkLoads}, {"UTMASTG", c.bulkStores},
          {"LDS", c.sharedLoads}, {"STS", c.sharedStores}, {"SHFL", c.shuffles}, {"BAR", c.barriers},
          {"LDL", c.localLoads}, {"STL", c.localStores}};
}
nlohmann::ordered_json toJson(const SassCounts& c) {
  nlohmann::ordered_json j{{"instructions", c.instructions}};
  for (auto [name, count] : named(c)) j[name] = count;
  return j;
}
std::string toText(const SassCounts& c) {
  std::string text = fmt::format("{} instructions", c.instructions);
  for (auto [name, count] : named(c))
    if (count) text += fmt::format(", {} {}", count, name);
  return text;
}

void line(const char* what, const std::string& text) { fmt::print("  {:<16}{}\n", what, text); }

std::string shortened(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string registersText(const tile::KernelBinary& binary, const std::optional<SassKernel>& code) {
  const tile::Resources& r = binary.resources;
  if (r.registers == 0) return "not known: nothing was assembled (see tilec doctor)";
  std::string text = fmt::format("{} per thread", r.registers);
  if (code && !code->registerChanges.empty()) {
    const auto [least, most] = std::minmax_element(code->registerChanges.begin(), code->registerChanges.end());
    text += fmt::format(" on entry, then {} for the producer and {} for consumers", *least, *most);
  }
  return text + fmt::format("; spills: {} bytes stored, {} loaded", r.spill_store_bytes, r.spill_load_bytes);
}

void print(const tile::KernelBinary& binary, const Target& target) {
  const bool gpu = target.backend == tile::ir::Backend::nvptx;
  fmt::print("{} for {}\n", binary.entry, target.name);
  if (!gpu) {
    line("scratch", fmt::format("{} bytes per thread", binary.arena_bytes));
  } else {
    const std::optional<SassKernel> code = codeOf(binary, target);
    line("threads", fmt::format("{}{}", binary.threads, binary.persistent ? ", as many programs as run at a time" : ""));
    line("registers", registersText(binary, code));
    line("shared memory", fmt::format("{} of {} bytes", binary.shared_bytes, target.maxSharedBytes));
    if (const Occupancy o = occupancyOfKernel(binary, target); o.programs)
      line("occupancy", fmt::format("{} program{} per multiprocessor, {} of {} warps; limited by {}", o.programs, o.programs == 1 ? "" : "s",
                                    o.warps, o.maxWarps, o.limits));
    if (code) {
      line("code", toText(code->counts));
      if (const tile::ir::SassLoop* loop = code->hottestLoop()) {
        line("hottest loop", toText(loop->counts));
        line("", code->phases(*loop));
      }
    }
  }
  std::string previous;  // stages of one ring are listed once
  for (const tile::BufferInfo& b : binary.buffers) {
    const std::string text = fmt::format("{:>7} bytes at {:>6}  {}  ({}:{})", b.bytes, b.offset, b.what, shortened(b.file), b.line);
    if (text != previous) line("buffer", text);
    previous = text;
  }
}

void print(const Roofline& r) {
  line("problem", r.problem);
  line("work", fmt::format("{:.4g} flops, {:.4g} bytes: {:.1f} flops per byte", r.flops, r.bytes, r.bytes > 0 ? r.flops / r.bytes : 0.0));
  if (r.peakFlops > 0)
    line("bound", fmt::format("{:.4g} ms on {} by {} ({:.4g} TFLOP/s, {:.4g} TB/s)", r.boundMilliseconds, r.machine, r.limit,
                              r.peakFlops / 1e12, r.peakBytes / 1e12));
  if (r.milliseconds <= 0) return;
  std::string text = fmt::format("{:.4g} ms: {:.4g} TFLOP/s, {:.4g} TB/s", r.milliseconds, r.flops / r.milliseconds / 1e9,
                                 r.bytes / r.milliseconds / 1e9);
  if (r.peakFlops > 0) text += fmt::format("; {:.1f} % of the bound", 100 * r.share());
  line("achieved", text);
}

nlohmann::ordered_json toJson(const Roofline& r) {
  nlohmann::ordered_json j{{"problem", r.problem}, {"flops", r.flops}, {"bytes", r.bytes}};
  if (r.peakFlops > 0) {
    j["machine"] = r.machine;
    j["bound_by"] = r.limit;
    j["bound_milliseconds"] = r.boundMilliseconds;
  }
  if (r.milliseconds > 0) j["milliseconds"] = r.milliseconds;
  if (r.share() > 0) j["share_of_bound"] = r.share();
  return j;
}

}  // namespace

namespace {

/// A parameter of the kernel, and what its code relies on (absent: nothing).
nlohmann::ordered_json toJson(const tile::ParamInfo& p) {
  static constexpr const char* kinds[] = {"pointer", "scalar", "view"};
  nlohmann::ordered_json j;
  if (!p.name.empty()) j["name"] = p.name;
  j["kind"] = kinds[p.kind];
  j["dtype"] = tile::name(p.dtype);
  const bool isView = p.kind == tile::ParamInfo::view;
  if (isView) j["rank"] = p.rank;
  if (p.nullable) j["nullable"] = true;
  if (p.stored) j["stored"] = true;
  if (p.align) j["align"] = p.align;
  if (p.multiple_of > 1) j["multiple_of"] = p.multiple_of;
  if (p.one) j["one"] = true;
  if (p.positive) j["positive"] = true;
  if (isView && p.unit_stride >= 0) j["unit_stride"] = p.unit_stride;
  const auto multiples = [&](const char* key, const auto& of) {
    const auto end = of.begin() + (isView ? p.rank : 0);
    if (std::any_of(of.begin(), end, [](uint32_t n) { return n > 1; }))
      for (auto it = of.begin(); it != end; ++it) j[key].push_back(std::max(*it, 1u));
  };
  multiples("stride_multiple_of", p.stride_multiple_of);
  multiples("size_multiple_of", p.dim_multiple_of);
  j["slots"] = p.slots();
  return j;
}

/// One parameter of the entry (runtime/entry_params.h).
nlohmann::ordered_json toJson(const tile::EntryParam& p) {
  nlohmann::ordered_json j{{"what", tile::name(p.kind)}};
  switch (p.kind) {
    case tile::EntryParam::size:
    case tile::EntryParam::stride:
      j["param"] = p.index, j["dim"] = p.dim;
      break;
    case tile::EntryParam::address:
    case tile::EntryParam::scalar:
      j["param"] = p.index;
      break;
    case tile::EntryParam::grid:
      j["axis"] = std::string(1, "xyz"[p.index]);
      break;
    case tile::EntryParam::tensor_map:
      j["map"] = p.index;
      break;
    default:
      break;
  }
  j["bytes"] = p.bytes;
  j["align"] = p.align;
  return j;
}

nlohmann::ordered_json toJson(const tile::SlotSum& sum) {
  nlohmann::ordered_json terms = nlohmann::ordered_json::array();
  for (const tile::SlotSum::Term& term : sum.terms) terms.push_back({{"factor", term.factor}, {"slots", term.slots}});
  nlohmann::ordered_json j = {{"constant", sum.constant}, {"terms", std::move(terms)}};
  if (sum.most != INT64_MAX) j["most"] = sum.most;
  return j;
}

/// Of a view that the kernel makes: its numbers as sums of products of slots.
nlohmann::ordered_json madeToJson(const tile::TensorMapInfo& m) {
  nlohmann::ordered_json sizes = nlohmann::ordered_json::array(), strides = sizes;
  for (size_t d = 0; d < m.rank; ++d) {
    sizes.push_back(toJson(m.made[1 + d]));
    strides.push_back(toJson(m.made[1 + m.rank + d]));
  }
  return {{"address", toJson(m.made[0])}, {"sizes", sizes}, {"strides", strides}};
}

nlohmann::ordered_json toJson(const tile::TensorMapInfo& m) {
  const auto first = [&](const auto& list) { return std::vector<int>(list.begin(), list.begin() + m.rank); };
  nlohmann::ordered_json j = {{"param", m.param},         {"dtype", tile::name(m.dtype)}, {"dims", first(m.dims)}, {"box", first(m.box)},
          {"swizzle", int{m.swizzle}}, {"written", m.written},         {"tf32", m.tf32}};
  if (m.remainder) j["remainder"] = true;
  if (!m.made.empty()) j["made"] = madeToJson(m);
  return j;
}

}  // namespace

nlohmann::ordered_json toJson(const tile::KernelBinary& binary, const tile::ir::Target& target,
                              const std::map<std::string, double>& times) {
  static constexpr const char* formats[] = {"cubin", "ptx", "object"};
  nlohmann::ordered_json j;
  j["kernel"] = binary.entry;
  j["target"] = binary.target;
  j["abi_version"] = binary.abi_version;
  j["format"] = formats[static_cast<int>(binary.format)];
  j["bytes"] = binary.bytes.size();
  j["threads"] = binary.threads;
  j["shared_bytes"] = binary.shared_bytes;
  j["arena_bytes"] = binary.arena_bytes;
  j["uses_debug_ring"] = binary.uses_debug_ring;
  j["persistent"] = binary.persistent;
  j["uses_tickets"] = binary.uses_tickets;
  j["cluster"] = binary.cluster;
  j["varies_with_grid"] = binary.varies_with_grid;
  j["params"] = nlohmann::ordered_json::array();
  for (const tile::ParamInfo& p : binary.params) j["params"].push_back(toJson(p));
  j["entry_params"] = nlohmann::ordered_json::array();
  for (const tile::EntryParam& p : tile::entry_params(binary)) j["entry_params"].push_back(toJson(p));
  j["tensor_maps"] = nlohmann::ordered_json::array();
  for (const tile::TensorMapInfo& m : binary.tensor_maps) j["tensor_maps"].push_back(toJson(m));
  const tile::Resources& r = binary.resources;
  j["resources"] = {{"registers", r.registers}, {"spill_store_bytes", r.spill_store_bytes}, {"spill_load_bytes", r.spill_load_bytes},
                    {"stack_bytes", r.stack_bytes}, {"static_shared_bytes", r.static_shared_bytes}};
  j["buffers"] = nlohmann::ordered_json::array();
  for (const tile::BufferInfo& b : binary.buffers)
    j["buffers"].push_back({{"what", b.what}, {"offset", b.offset}, {"bytes", b.bytes}, {"file", b.file}, {"line", b.line}});
  if (const Occupancy o = occupancyOfKernel(binary, target); o.programs)
    j["occupancy"] = {{"programs", o.programs}, {"warps", o.warps}, {"max_warps", o.maxWarps}, {"limit", o.limits}};
  if (auto code = codeOf(binary, target)) {
    j["code"] = toJson(code->counts);
    if (!code->registerChanges.empty()) j["code"]["setmaxnreg"] = code->registerChanges;
    if (const tile::ir::SassLoop* loop = code->hottestLoop()) {
      j["hottest_loop"] = toJson(loop->counts);
      j["hottest_loop"]["depth"] = loop->depth;
      j["hottest_loop"]["phases"] = code->phases(*loop);
    }
  }
  j["debug_sites"] = nlohmann::ordered_json::array();
  for (const tile::DebugSite& s : binary.debug_sites)
    j["debug_sites"].push_back({{"kind", s.kind == tile::DebugSite::print ? "print" : "assertion"}, {"message", s.message},
                                {"dtype", tile::name(s.dtype)}, {"shape", s.shape}, {"file", s.file}, {"line", s.line}});
  j["milliseconds"] = times;
  return j;
}

namespace {

/// One target.
int reportOne(const CompileRequest& request, const ReportRequest& what, const Target& target) {
  bool usageError = false;
  auto source = loadSource(request.choice, target.name, &usageError);
  if (!source) return usageError ? usage(source.error().message) : fail(source.error());
  std::map<std::string, double> times;
  tile::ir::CompileOptions options = request.options;
  options.onTime = [&](const std::string& stage, double ms) { times[stage] += ms; };
  if (request.remarks) options.onRemark = [](const tile::Diagnostic& d) { std::fputs(d.to_string().c_str(), stderr); };
  auto binary = tile::ir::compileText(source->text, source->file, target, options);
  if (!binary) return fail(binary.error());
  std::optional<Roofline> roofline;
  if (!request.choice.problem.empty()) {
    auto found = rooflineOf(request.choice, target.name, what, &usageError);
    if (!found) return usageError ? usage(found.error().message) : fail(found.error());
    roofline = std::move(*found);
  }
  if (what.json) {
    nlohmann::ordered_json j = tilec::toJson(*binary, target, times);
    if (roofline) j["roofline"] = toJson(*roofline);
    fmt::print("{}\n", j.dump(2));
    return kOk;
  }
  print(*binary, target);
  if (roofline) print(*roofline);
  double total = 0;
  for (const auto& [stage, ms] : times) total += ms;
  line("compiled in", fmt::format("{:.0f} ms", total));
  if (request.timeReport)
    for (const auto& [stage, ms] : times) line("", fmt::format("{:<10} {:8.2f} ms", stage, ms));
  return kOk;
}

}  // namespace

int report(const CompileRequest& request, const ReportRequest& what) {
  if (request.choice.problem.empty() && (!what.device.empty() || what.milliseconds > 0 || !what.machine.empty()))
    return usage("--device, --time-ms and --machine need --problem");
  std::vector<Target> targets;
  for (const std::string& name : request.targets) {
    auto target = tile::ir::lookupTarget(name);
    if (!target) return usage(target.error().message);
    targets.push_back(std::move(*target));
  }
  int worst = kOk;
  for (const Target& target : targets) worst = std::max(worst, reportOne(request, what, target));
  return worst;
}

}  // namespace tilec
