// debug_rings.h - the pool of DebugRings of one context. Only launches of kernels that print or assert take one. A ring
// is pinned host memory the GPU writes to directly, so its records survive a kernel that dies.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "../abi.h"
#include "driver.h"
#include "../error.h"

namespace tile::cu {

class DebugRings {
 public:
  explicit DebugRings(const Driver& driver) : driver_(driver) {}
  ~DebugRings();

  /// An empty ring for a launch about to be made on `stream`; its address as the device sees it. The context must be
  /// current. Exactly one of launched() and give_back() follows.
  Result<CUdeviceptr> take(CUstream stream, std::shared_ptr<const KernelBinary> kernel);
  void launched(CUdeviceptr ring);
  void give_back(CUdeviceptr ring);

  /// How many rings are not read yet.
  size_t in_flight() const { return in_flight_count_.load(std::memory_order_acquire); }
  /// The launches made so far. Taken before waiting for the device: other threads launch on while one waits, and what
  /// they add is not done when the wait ends.
  uint64_t launches() const { return launches_.load(std::memory_order_acquire); }
  /// Reads the rings of the first `launches` launches (of one stream, or of all), which are done; prints, and returns
  /// the first failure.
  Status drain_stream(CUstream stream, uint64_t launches) { return drain(&stream, launches); }
  Status drain_all(uint64_t launches) { return drain(nullptr, launches); }

 private:
  struct Ring {
    DebugRing* host = nullptr;
    CUdeviceptr device = 0;
  };
  struct InFlight {
    Ring ring;
    CUstream stream;
    std::shared_ptr<const KernelBinary> kernel;
    uint64_t launch = 0;  ///< its number, from 1; 0 until it is made
  };
  Status drain(const CUstream* only, uint64_t launches);

  const Driver& driver_;
  std::mutex mutex_;
  std::vector<Ring> free_, all_;
  std::vector<InFlight> in_flight_;  ///< in launch order
  std::atomic<size_t> in_flight_count_{0};
  std::atomic<uint64_t> launches_{0};
};

}  // namespace tile::cu
