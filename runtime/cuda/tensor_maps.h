// tensor_maps.h - the tensor maps of one loaded kernel, encoded from the arguments of its launches. Encoding takes the
// driver most of a microsecond, and launches repeat their arguments: each map keeps the last few outcomes.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "../abi.h"
#include "driver.h"
#include "../error.h"

namespace tile::cu {

/// What stands in for a view without elements: a map needs an address and one element at least. Reading an empty view
/// gives zeros, so nothing may ever write to `zeros`; what is written to an empty view goes to `sink`.
struct EmptyViews {
  CUdeviceptr zeros = 0, sink = 0;
};

class TensorMaps {
 public:
  /// `kernel` has passed check_hidden and outlives this.
  TensorMaps(const Driver& driver, const KernelBinary& kernel, EmptyViews empty);

  /// The maps of a launch with these slots into out[0 .. tensor_maps.size()). What no map can describe (or the driver
  /// refuses) is an error with needs_plain_copies. Thread safe.
  Status encode(const uint64_t* slots, TensorMap* out);

 private:
  static constexpr size_t kEntries = 16;
  static constexpr size_t kMaxKey = 1 + 2 * kMaxRank;
  using Key = std::array<uint64_t, kMaxKey>;  ///< the view's slots, or what they would be
  struct Entry {
    TensorMap map{};
    Key key{};
    CUresult refused = CUDA_SUCCESS;
  };
  struct Slot {
    size_t first_slot = 0, key_words = 0;  ///< the argument's; of a made view its own words
    std::array<uint64_t, kEntries> address{};  ///< of the entries, looked through first; entries without one: 0 used
    std::vector<Entry> entries;
    size_t last_hit = 0, next_victim = 0;
  };
  const Entry* find(Slot& slot, const uint64_t* key) const;
  Status add(size_t index, const uint64_t* key, const Entry*& out);
  Status refusal(size_t index, const std::string& why) const;

  const Driver& driver_;
  const KernelBinary& kernel_;
  EmptyViews empty_;
  std::vector<uint8_t> bits_;  ///< of the launch's slots, for made views
  std::mutex mutex_;
  std::vector<Slot> maps_;
};

}  // namespace tile::cu
