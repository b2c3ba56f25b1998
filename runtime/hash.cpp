// hash.cpp - see hash.h.
#include "runtime/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace tile {

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Hasher::~Hasher() = default;

Hasher& Hasher::add(std::string_view field) {
  add(static_cast<uint64_t>(field.size()));
  XXH3_128bits_update(state_->xxh, field.data(), field.size());
  return *this;
}
Hasher& Hasher::add(uint64_t field) {
  XXH3_128bits_update(state_->xxh, &field, sizeof(field));
  return *this;
}
Hash128 Hasher::finish() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
  return {h.high64, h.low64};
}

}  // namespace tile
