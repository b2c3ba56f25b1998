// debug_rings.h - the pool of DebugRings of one context. Only launches of kernels that print or assert take one. A ring
// is pinned host memory the GPU writes to directly, so its records survive a kernel that dies.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/abi.h"
#include "runtime/cuda/driver.h"
#include "runtime/error.h"

namespace tile::cu {

class DebugRings {
 public:
  explicit DebugRings(const Driver& driver) : driver_(driver) {}
  ~DebugRings();

  /// An empty ring that belongs to the launch about to be made on `stream`; its address as the device sees it. The
  /// context must be current.
  Result<CUdeviceptr> take(CUstream stream, std::shared_ptr<const KernelBinary> kernel);
  /// That launch was not made after all.
  void give_back(CUdeviceptr ring);
  /// How many launches have not been read.
  size_t in_flight() const { return in_flight_count_.load(std::memory_order_acquire); }
  /// Reads the rings of launches that are done (of one stream, or of all), prints, and returns the first failure.
  Status drain_stream(CUstream stream) { return drain(&stream); }
  Status drain_all() { return drain(nullptr); }

 private:
  struct Ring {
    DebugRing* host = nullptr;
    CUdeviceptr device = 0;
  };
  struct InFlight {
    Ring ring;
    CUstream stream;
    std::shared_ptr<const KernelBinary> kernel;
  };
  Status drain(const CUstream* only);

  const Driver& driver_;
  std::mutex mutex_;
  std::vector<Ring> free_, all_;
  std::vector<InFlight> in_flight_;  ///< in launch order
  std::atomic<size_t> in_flight_count_{0};
};

}  // namespace tile::cu
