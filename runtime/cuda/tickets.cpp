// tickets.cpp - see tickets.h.
#include "runtime/cuda/tickets.h"

#include <fmt/format.h>

namespace tile::cu {

static_assert(sizeof(TicketCounter) <= 32);

Status Tickets::prepare(CUstream stream) {
  std::lock_guard lock(mutex_);
  if (memory_ != 0) return ok();
  constexpr size_t kBytes = (kOwned + kShared) * kSpacing;
  CUdeviceptr memory = 0;
  const char* call = "cuMemAlloc";
  CUresult r = driver_.cuMemAlloc(&memory, kBytes);
  if (r == CUDA_SUCCESS) call = "cuMemsetD32Async", r = driver_.cuMemsetD32Async(memory, 0, kBytes / 4, stream);
  if (r == CUDA_SUCCESS) call = "cuStreamSynchronize", r = driver_.cuStreamSynchronize(stream);
  if (r != CUDA_SUCCESS) {
    if (memory != 0) driver_.cuMemFree(memory);
    return device_error(
        fmt::format("no memory for the counters of persistent kernels: {}: {}", call, driver_.describe(r)));
  }
  memory_ = memory;
  for (size_t i = 0; i < kOwned; ++i) free_.push_back(memory_ + i * kSpacing);
  return ok();
}

void Tickets::release() {
  if (memory_ != 0) driver_.cuMemFree(memory_);
  memory_ = 0;
}

CUdeviceptr Tickets::of_stream(CUstream stream) {
  std::lock_guard lock(mutex_);
  if (const auto known = owned_.find(stream); known != owned_.end()) return known->second;
  if (free_.empty()) return next_locked();  // more streams than counters
  const CUdeviceptr counter = free_.front();
  free_.pop_front();
  return owned_[stream] = counter;
}

void Tickets::forget(CUstream stream) {
  std::lock_guard lock(mutex_);
  const auto known = owned_.find(stream);
  if (known == owned_.end()) return;
  free_.push_back(known->second);
  owned_.erase(known);
}

CUdeviceptr Tickets::next_shared() {
  std::lock_guard lock(mutex_);
  return next_locked();
}

CUdeviceptr Tickets::next_locked() {
  const CUdeviceptr counter = memory_ + (kOwned + next_) * kSpacing;
  next_ = (next_ + 1) % kShared;
  return counter;
}

}  // namespace tile::cu
