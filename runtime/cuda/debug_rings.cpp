// debug_rings.cpp - see debug_rings.h.
#include "runtime/cuda/debug_rings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/debug.h"
#include "runtime/env.h"
#include "runtime/launch.h"

namespace tile::cu {

DebugRings::~DebugRings() {
  for (const Ring& ring : all_) driver_.cuMemFreeHost(ring.host);
}

Result<CUdeviceptr> DebugRings::take(CUstream stream, std::shared_ptr<const KernelBinary> kernel) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    const auto capacity = static_cast<uint32_t>(env_int(Env::debug_records, 65536, 1, 1 << 24));
    Ring ring;
    void* memory = nullptr;
    CUresult r = driver_.cuMemHostAlloc(&memory, sizeof(DebugRing) + size_t{capacity} * sizeof(DebugRecord),
                                        kMemHostPortable | kMemHostDeviceMap);
    if (r == CUDA_SUCCESS) {
      ring.host = static_cast<DebugRing*>(memory);
      r = driver_.cuMemHostGetDevicePointer(&ring.device, memory, 0);
      if (r != CUDA_SUCCESS) driver_.cuMemFreeHost(memory);
    }
    if (r != CUDA_SUCCESS)
      return device_error(fmt::format("kernel '{}': no memory for device_print and device_assert: {}",
                                      display_name(*kernel), driver_.describe(r)));
    init_debug_ring(*ring.host, capacity);
    all_.push_back(ring);
    free_.push_back(ring);
  }
  const Ring ring = free_.back();
  free_.pop_back();
  in_flight_.push_back({ring, stream, std::move(kernel), 0});
  in_flight_count_.store(in_flight_.size(), std::memory_order_release);
  return ring.device;
}

void DebugRings::launched(CUdeviceptr ring) {
  std::lock_guard lock(mutex_);
  for (InFlight& f : in_flight_)
    if (f.ring.device == ring) f.launch = launches_.fetch_add(1, std::memory_order_acq_rel) + 1;
}

void DebugRings::give_back(CUdeviceptr ring) {
  std::lock_guard lock(mutex_);
  const auto at =
      std::find_if(in_flight_.begin(), in_flight_.end(), [&](const InFlight& f) { return f.ring.device == ring; });
  if (at == in_flight_.end()) return;
  free_.push_back(at->ring);
  in_flight_.erase(at);
  in_flight_count_.store(in_flight_.size(), std::memory_order_release);
}

Status DebugRings::drain(const CUstream* only, uint64_t launches) {
  if (in_flight() == 0) return ok();
  std::vector<std::pair<std::shared_ptr<const KernelBinary>, DebugReport>> reports;
  {
    std::lock_guard lock(mutex_);
    const auto done = [&](const InFlight& f) {
      return f.launch != 0 && f.launch <= launches && (only == nullptr || f.stream == *only);
    };
    for (const InFlight& f : in_flight_) {
      if (!done(f)) continue;
      if (f.ring.host->next > 0) reports.emplace_back(f.kernel, read_debug_ring(*f.kernel, *f.ring.host));
      clear_debug_ring(*f.ring.host);
      free_.push_back(f.ring);
    }
    std::erase_if(in_flight_, done);
    in_flight_count_.store(in_flight_.size(), std::memory_order_release);
  }
  // Unlocked: the sink is the user's and may launch again.
  Status first = ok();
  for (const auto& [kernel, report] : reports) {
    Status delivered = deliver(*kernel, report);
    if (first && !delivered) first = delivered;
  }
  return first;
}

}  // namespace tile::cu
