// barrier.h - an mbarrier: arrivals and bytes to come in this phase, and how many phases are over.
#pragma once
#include <cstdint>

namespace tile::ir::protocol {

class Barrier {
 public:
  explicit Barrier(int64_t count) : count_(count), pending_(count) {}
  /// True when the phase with this parity is over, as far as a parity can tell.
  bool passes(int64_t parity) const { return (phase_ & 1) != parity; }
  void arrive(int64_t arrivals = 1) { pending_ -= arrivals, settle(); }
  void expect(int64_t bytes) { bytes_ += bytes; }
  void complete(int64_t bytes) { bytes_ -= bytes, settle(); }
  /// More arrived than one phase takes: the hardware's behaviour is undefined.
  bool isOverrun() const { return overrun_; }

 private:
  void settle() {
    if (pending_ < 0) overrun_ = true;
    if (pending_ > 0 || bytes_ != 0) return;
    ++phase_;
    pending_ = count_;
  }
  int64_t count_, pending_, bytes_ = 0, phase_ = 0;
  bool overrun_ = false;
};

/// One end of a ring: the stage that is next and the parity of its round.
struct Cursor {
  int64_t stage = 0, parity = 0, total = 0;
  void advance(int64_t stages) {
    ++total;
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

}  // namespace tile::ir::protocol
