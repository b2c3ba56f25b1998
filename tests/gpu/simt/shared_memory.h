// shared_memory.h - the shared memory of one simulated program, and who may touch which byte when. Two kinds of access
// meet there: ordinary ones of threads (generic proxy) and those of tensor cores and bulk copies (async proxy).
//  - What a thread wrote is seen by asynchronous readers only after that thread's fence.proxy.async; or, when it has
//    told others by an mbarrier, after a fence that all threads of the reading warpgroup make behind that.
//  - What a thread read is overwritten by asynchronous writers only after that thread's fence.proxy.async: loads may
//    still be under way when the thread arrives at an mbarrier, and copies do not queue up behind them.
//  - Bytes that an asynchronous operation still writes may not be touched, bytes it still reads may not be written.
//  - Bytes of a thread's cp.async hold garbage until that thread has waited for it; then the thread has written them.
// Breaking a rule throws, naming the buffer.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi.h"

namespace tile::testing {

/// Shared addresses have 18 bits; a program's memory starts this many bytes into its window, as on the hardware.
inline constexpr uint32_t kWindowBytes = 1u << 18, kSharedStart = 1024;

class SharedMemory {
 public:
  /// `window`: in the low 4 GiB and aligned to its size, so that low bits of a pointer are the shared address.
  SharedMemory(char* window, uint32_t bytes, std::vector<BufferInfo> buffers, int threads);
  void clear();  ///< garbage everywhere, nothing in flight

  /// Shared address of a pointer; throws when the access leaves the program's memory.
  uint32_t address(uint64_t pointer, uint32_t bytes) const;
  char* at(uint32_t address) const { return window_ + address; }
  char* start() const { return window_ + kSharedStart; }
  /// Whether the pointer is into this program's window.
  bool owns(uint64_t pointer) const { return pointer - reinterpret_cast<uint64_t>(window_) < kWindowBytes; }

  void threadReads(int thread, uint32_t address, uint32_t bytes);
  /// A wgmma takes its operand from the thread's registers: it waits for the loads in front of it.
  void loadsHaveLanded(int thread);
  void threadWrites(int thread, uint32_t address, uint32_t bytes);
  void fence(int thread);
  void publish(int thread);  ///< it arrives at an mbarrier: who waits there knows of its writes

  /// Asynchronous operations from issue until somebody has waited for them; `what` for messages.
  /// `group`: the warpgroup that starts it.
  void beginRead(int group, uint32_t address, uint32_t bytes, const std::string& what);
  void endRead(uint32_t address, uint32_t bytes);
  void beginWrite(int group, uint32_t address, uint32_t bytes, const std::string& what);
  void endWrite(uint32_t address, uint32_t bytes);

  /// A cp.async of a thread, from issue until the thread has waited for its group.
  void beginCopy(int thread, uint32_t address, uint32_t bytes);
  void endCopy(uint32_t address, uint32_t bytes);

  /// "byte 512 of ring of 3 x 128x64xf16 (file:line)" or "byte 512"
  std::string describe(uint32_t address) const;

 private:
  static constexpr char kGarbage = static_cast<char>(0xcd);  ///< what stands where something is on its way to
  static constexpr uint32_t kGranule = 16;       ///< asynchronous operations read and write whole 16-byte chunks
  std::string inFlight(uint32_t granule) const;  ///< "wgmma 7 of threads 0-127 still reads it"
  uint32_t note(const std::string& what);
  void checkFenced(int group, uint32_t address, uint32_t bytes, const std::string& what) const;
  void checkCopied(uint32_t address, uint32_t bytes, const std::string& what) const;

  char* window_;
  uint32_t bytes_;
  std::vector<BufferInfo> buffers_;
  std::vector<uint16_t> writer_;                                      ///< per byte: 1 + thread with an unfenced write
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> unfenced_;  ///< per thread: [first, end)
  std::vector<uint16_t> reader_;  ///< per byte: 1 + the last thread with an unfenced read
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> unfencedReads_;  ///< per thread: [first, end)
  std::vector<uint32_t> published_;  ///< per byte with an unfenced write: when others were told, 0: not yet
  std::vector<uint32_t> fencedAt_;   ///< per thread: publications in front of its last fence
  uint32_t publications_ = 0;
  std::vector<uint16_t> copying_;            ///< per byte: 1 + thread whose cp.async fills it
  std::vector<uint16_t> reading_, writing_;  ///< per granule: operations in flight
  std::vector<uint32_t> operation_;          ///< per granule: the latest one, in operations_
  std::vector<std::string> operations_;
};

}  // namespace tile::testing
