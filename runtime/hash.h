// hash.h - 128-bit content hashes for cache keys (XXH3: fast, well mixed; not a defence against forged entries).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tile {

struct Hash128 {
  uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  std::string hex() const;  ///< 32 lower-case digits
};

Hash128 hash128(std::string_view bytes);

/// Hashes a sequence of fields. Each field is length-prefixed, so ("ab", "c") and ("a", "bc") differ.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  Hasher& add(std::string_view field);
  Hasher& add(uint64_t field);
  Hash128 finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tile
