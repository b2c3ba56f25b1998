// debug.cpp - see debug.h. Records of one print arrive in any order and interleaved with other programs'; the k-th
// record of an element belongs to the k-th time its program executed that print.
#include "runtime/debug.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/float_types.h"
#include "runtime/launch.h"

namespace tile {
namespace {

constexpr size_t kFullElements = 1024;  ///< larger tiles are shown by their edges
constexpr int kEdge = 3;
constexpr size_t kMaxReported = 16;  ///< failing programs named in one error

struct SinkState {
  std::recursive_mutex mutex;  // a sink may launch kernels that print
  PrintSink sink;
};
SinkState& sink_state() {
  static SinkState* state = new SinkState;  // never destroyed: kernels may print during exit
  return *state;
}

std::string value_text(DType d, uint64_t bits) {
  if (d == DType::i64) return fmt::format("{}", static_cast<int64_t>(bits));
  if (d == DType::u64) return fmt::format("{}", bits);
  if (d == DType::f64) return fmt::format("{:.10g}", to_double(d, bits));
  return fmt::format("{:.6g}", to_double(d, bits));
}
// 32-bit integers have up to ten digits, which six significant ones would round.
std::string element_text(DType d, uint64_t bits) {
  if (is_int(d) && d != DType::i64 && d != DType::u64)
    return fmt::format("{}", static_cast<int64_t>(to_double(d, bits)));
  return value_text(d, bits);
}

size_t element_count(const DebugSite& site) {
  size_t n = 1;
  for (int s : site.shape) n *= static_cast<size_t>(std::max(s, 0));
  return n;
}

// Nested brackets, columns aligned, one row per line; `at` yields an element's text.
class TileText {
 public:
  TileText(const std::vector<int>& shape, const std::vector<std::string>& elements, size_t indent)
      : shape_(shape), elements_(elements), indent_(indent), summarise_(elements.size() > kFullElements) {
    for (const std::string& e : elements) width_ = std::max(width_, e.size());
  }
  std::string text() const {
    std::string out;
    append(out, 0, 0);
    return out;
  }

 private:
  void append(std::string& out, size_t dim, size_t base) const {
    if (dim == shape_.size()) {
      out += fmt::format("{:>{}}", elements_[base], width_);
      return;
    }
    size_t stride = 1;
    for (size_t d = dim + 1; d < shape_.size(); ++d) stride *= static_cast<size_t>(shape_[d]);
    const bool last = dim + 1 == shape_.size();
    const std::string separator = last ? ", " : ",\n" + std::string(indent_ + dim + 1, ' ');
    out += '[';
    for (int i = 0; i < shape_[dim]; ++i) {
      if (i) out += separator;
      if (summarise_ && i == kEdge && shape_[dim] > 2 * kEdge) {
        out += "...";
        i = shape_[dim] - kEdge - 1;
        continue;
      }
      append(out, dim + 1, base + static_cast<size_t>(i) * stride);
    }
    out += ']';
  }
  const std::vector<int>& shape_;
  const std::vector<std::string>& elements_;
  size_t indent_;
  bool summarise_;
  size_t width_ = 0;
};

std::string shape_text(const DebugSite& site) {
  std::string out;
  for (int s : site.shape) out += fmt::format("{}x", s);
  return out + std::string(name(site.dtype));
}

using Program = std::array<uint32_t, 3>;
std::string program_text(const Program& p) { return fmt::format("({}, {}, {})", p[0], p[1], p[2]); }

// One execution of a print by one program.
struct PrintInstance {
  uint32_t site;
  Program program;
  std::vector<std::string> elements;
};

std::string print_text(const KernelBinary& kernel, const PrintInstance& print) {
  const DebugSite& site = kernel.debug_sites[print.site];
  std::string head = fmt::format("{} {}: {}", display_name(kernel), program_text(print.program), site.message);
  if (site.shape.empty()) return fmt::format("{} = {}", head, print.elements[0]);
  head += fmt::format(" {} = ", shape_text(site));
  // Deep indents push wide tiles off the screen: rows after the first start under the bracket only when the head is
  // short.
  if (site.shape.size() > 1 && head.size() > 40) return head + "\n  " + TileText(site.shape, print.elements, 2).text();
  return head + TileText(site.shape, print.elements, head.size()).text();
}

std::string element_position(const DebugSite& site, uint32_t element) {
  if (site.shape.empty()) return "";
  std::vector<uint32_t> index(site.shape.size());
  for (size_t d = site.shape.size(); d-- > 0;) {
    const uint32_t extent = static_cast<uint32_t>(std::max(site.shape[d], 1));
    index[d] = element % extent;
    element /= extent;
  }
  std::string out;
  for (uint32_t i : index) out += fmt::format("{}{}", out.empty() ? "" : ", ", i);
  return fmt::format(", element [{}] of {}", out, shape_text(site));
}

}  // namespace

void set_print_sink(PrintSink sink) {
  SinkState& state = sink_state();
  std::lock_guard lock(state.mutex);
  state.sink = std::move(sink);
}

void init_debug_ring(DebugRing& ring, uint32_t capacity) {
  ring.next = capacity;
  ring.capacity = capacity;
  ring.pad = 0;
  clear_debug_ring(ring);
}

void clear_debug_ring(DebugRing& ring) {
  std::memset(static_cast<void*>(records_of(&ring)), 0xff,
              size_t{std::min(ring.next, ring.capacity)} * sizeof(DebugRecord));
  ring.next = 0;
}

DebugReport read_debug_ring(const KernelBinary& kernel, const DebugRing& ring) {
  DebugReport report;
  const uint32_t count = std::min(ring.next, ring.capacity);
  const DebugRecord* records = records_of(&ring);
  std::vector<PrintInstance> prints;
  std::map<std::tuple<uint32_t, Program>, std::vector<size_t>> instances;  // -> indices into prints, by execution
  std::map<std::tuple<uint32_t, Program, uint32_t>, size_t> seen;          // how often an element was printed
  struct Failure {
    DebugRecord first;
    size_t elements = 0;
  };
  std::vector<Failure> failures;
  std::map<std::tuple<uint32_t, Program>, size_t> failure_of;

  for (uint32_t i = 0; i < count; ++i) {
    const DebugRecord& r = records[i];
    if (r.site >= kernel.debug_sites.size()) continue;  // a kernel that died may leave a record half written
    const DebugSite& site = kernel.debug_sites[r.site];
    const size_t size = element_count(site);
    if (r.element >= size) continue;
    const Program program{r.program[0], r.program[1], r.program[2]};
    if (site.kind == DebugSite::assertion) {
      auto [at, fresh] = failure_of.try_emplace({r.site, program}, failures.size());
      if (fresh) failures.push_back({r, 0});
      Failure& f = failures[at->second];
      ++f.elements;
      if (r.element < f.first.element) f.first = r;
      continue;
    }
    const size_t execution = seen[{r.site, program, r.element}]++;
    std::vector<size_t>& of_program = instances[{r.site, program}];
    if (execution == of_program.size()) {
      of_program.push_back(prints.size());
      prints.push_back({r.site, program, std::vector<std::string>(size, "?")});
    }
    prints[of_program[execution]].elements[r.element] = element_text(site.dtype, r.bits);
  }

  for (const PrintInstance& p : prints) report.prints.push_back(print_text(kernel, p));
  if (ring.next > ring.capacity)
    report.prints.push_back(
        fmt::format("{}: {} more values were printed than the {} kept per launch (TILE_DEBUG_RECORDS); "
                    "they are missing above ('?')",
                    display_name(kernel), ring.next - ring.capacity, ring.capacity));
  for (const Failure& f : failures) {
    const DebugSite& site = kernel.debug_sites[f.first.site];
    std::string text = fmt::format("assertion failed: {} (program {}{}", site.message,
                                   program_text({f.first.program[0], f.first.program[1], f.first.program[2]}),
                                   element_position(site, f.first.element));
    if (f.elements > 1) text += fmt::format(" and {} more elements", f.elements - 1);
    Diagnostic d;
    d.message = text + ")";
    d.file = site.file;
    d.line = site.line;
    report.failed_assertions.push_back(std::move(d));
  }
  return report;
}

Status deliver(const KernelBinary& kernel, const DebugReport& report) {
  if (!report.prints.empty()) {
    SinkState& state = sink_state();
    std::lock_guard lock(state.mutex);
    const PrintSink sink = state.sink;  // it may replace itself
    for (const std::string& text : report.prints) {
      if (sink)
        sink(text);
      else
        std::fputs((text + "\n").c_str(), stderr);
    }
  }
  if (report.failed_assertions.empty()) return ok();
  const size_t programs = report.failed_assertions.size();
  const Diagnostic& first = report.failed_assertions[0];
  Error error =
      device_error(fmt::format("kernel '{}': {}:{}: {}{}", display_name(kernel), first.file, first.line, first.message,
                               programs > 1 ? fmt::format("; failed {} times in all", programs) : ""));
  error.diagnostics.assign(
      report.failed_assertions.begin(),
      report.failed_assertions.begin() + static_cast<std::ptrdiff_t>(std::min(programs, kMaxReported)));
  error.diagnostics[0].severity = Severity::note;  // the message says the rest
  error.diagnostics[0].message = "asserted here";
  return error;
}

}  // namespace tile
