// cycles.cpp - see cycles.h.
#include "runtime/cycles.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tile {
namespace {

constexpr size_t kMostMultiprocessors = 512;  ///< numbers of multiprocessors have gaps
constexpr uint32_t kThreads = 1024;           ///< so that programs spread over the multiprocessors
constexpr int kEmptyIntervals = 5;

// One thread of each program notes the counter of its multiprocessor.
constexpr const char* kReader = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry tile_read_clocks(.param .u64 clocks)
.maxntid 1024, 1, 1
{
  .reg .pred %p<3>;
  .reg .b32 %r<3>;
  .reg .b64 %d<5>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra done;
  mov.u32 %r1, %smid;
  setp.ge.u32 %p1, %r1, 512;
  @%p1 bra done;
  ld.param.u64 %d0, [clocks];
  cvta.to.global.u64 %d1, %d0;
  mul.wide.u32 %d2, %r1, 8;
  add.u64 %d3, %d1, %d2;
  mov.u64 %d4, %clock64;
  st.global.u64 [%d3], %d4;
done:
  ret;
}
)";

}  // namespace

double median_cycles(std::span<const uint64_t> begin, std::span<const uint64_t> end, int multiprocessors) {
  std::vector<uint64_t> spent;
  for (size_t i = 0; i < std::min(begin.size(), end.size()); ++i)
    if (begin[i] != 0 && end[i] > begin[i]) spent.push_back(end[i] - begin[i]);
  if (spent.empty() || 2 * spent.size() < static_cast<size_t>(multiprocessors)) return 0;
  const auto middle = spent.begin() + static_cast<std::ptrdiff_t>(spent.size() / 2);
  std::nth_element(spent.begin(), middle, spent.end());
  return static_cast<double>(*middle);
}

Result<CycleCounter> CycleCounter::create(Stream& stream) {
  const auto device = stream.device().shared_from_this();
  if (device->kind() != DeviceKind::cuda) return user_error(device->name() + " has no multiprocessors with clocks");
  KernelBinary binary;
  binary.format = BinaryFormat::ptx;
  binary.target = "sm_80";
  binary.entry = "tile_read_clocks";
  binary.bytes = kReader;
  ParamInfo clocks;
  clocks.kind = ParamInfo::pointer, clocks.dtype = DType::i64, clocks.name = "clocks";
  binary.params = {clocks};
  binary.threads = kThreads;
  CycleCounter counter;
  auto reader = device->load(binary);
  if (!reader) return reader.error();
  counter.reader_ = std::move(*reader);
  auto memory = Buffer<uint64_t>::from(device, std::vector<uint64_t>(2 * kMostMultiprocessors));
  if (!memory) return memory.error();
  counter.clocks_ = std::move(*memory);

  std::vector<double> empty;
  for (int i = 0; i < kEmptyIntervals; ++i) {
    if (Status s = counter.begin(stream); !s) return s.error();
    if (Status s = counter.end(stream); !s) return s.error();
    if (Status s = stream.synchronize(); !s) return s.error();
    auto spent = counter.raw_cycles();
    if (!spent) return spent.error();
    empty.push_back(*spent);
  }
  counter.own_ = *std::min_element(empty.begin(), empty.end());
  return counter;
}

Status CycleCounter::read(Stream& stream, size_t which) {
  const auto address = reinterpret_cast<uint64_t>(clocks_.data() + which * kMostMultiprocessors);
  const auto programs = std::max(1, stream.device().properties().multiprocessors);
  return stream.launch(*reader_, Grid{programs}, &address, 1);
}

Result<double> CycleCounter::raw_cycles() const {
  std::vector<uint64_t> clocks(2 * kMostMultiprocessors);
  if (Status s = clocks_.copy_to(clocks); !s) return s.error();
  const std::span<const uint64_t> all(clocks);
  const double cycles = median_cycles(all.first(kMostMultiprocessors), all.last(kMostMultiprocessors),
                                      clocks_.device()->properties().multiprocessors);
  if (cycles <= 0) return device_error(clocks_.device()->name() + " does not count cycles of its multiprocessors");
  return cycles;
}

Result<double> CycleCounter::cycles() const {
  auto raw = raw_cycles();
  if (!raw) return raw;
  return std::max(1.0, *raw - own_);
}

}  // namespace tile
