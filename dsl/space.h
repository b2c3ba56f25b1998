// space.h - the configurations worth trying of a kernel, as a product of values over a base:
//
//   auto tiles = Space<GemmConfig>(base).vary(&GemmConfig::BM, {64, 128}).vary(&GemmConfig::stages, {2, 3, 4})
//                    .where([](const GemmConfig& c) { return c.BM * c.stages <= 384; });
//   auto k = gemm.tune(tiles);
//
// The base itself comes first whatever the predicate says: it is what the others have to beat.
#pragma once
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "detail/reflect.h"

namespace tile {

template <class Cfg>
class Space {
 public:
  explicit Space(Cfg base = {}) : base_(std::move(base)), all_{base_} {}

  /// Every configuration so far with every one of `values` for a field.
  template <class T, class V = T>
  Space& vary(T Cfg::*field, std::initializer_list<V> values) {
    return vary(field, std::vector<V>(values));
  }
  template <class T, class V>
  Space& vary(T Cfg::*field, const std::vector<V>& values) {
    std::vector<Cfg> more;
    for (const Cfg& config : all_)
      for (const V& value : values) {
        more.push_back(config);
        more.back().*field = static_cast<T>(value);
      }
    all_ = std::move(more);
    return *this;
  }
  /// Keeps what `good` accepts. Predicates apply to what was varied before.
  template <class F>
  Space& where(F good) {
    std::erase_if(all_, [&](const Cfg& config) { return !good(config); });
    return *this;
  }
  /// Sets dependent fields: fn(config) may change it.
  template <class F>
  Space& adjust(F fn) {
    for (Cfg& config : all_) fn(config);
    return *this;
  }
  /// Adds a configuration of its own.
  Space& also(const Cfg& config) {
    extra_.push_back(config);
    return *this;
  }
  /// The base, then the product, then the extras, each once.
  std::vector<Cfg> configs() const {
    std::vector<Cfg> out;
    std::vector<std::array<uint64_t, detail::kFields<Cfg>>> seen;
    auto add = [&](const Cfg& config) {
      const auto words = detail::config_words(config);
      if (std::find(seen.begin(), seen.end(), words) != seen.end()) return;
      seen.push_back(words);
      out.push_back(config);
    };
    add(base_);
    for (const Cfg& config : all_) add(config);
    for (const Cfg& config : extra_) add(config);
    return out;
  }
  operator std::vector<Cfg>() const { return configs(); }

 private:
  Cfg base_;
  std::vector<Cfg> all_, extra_;
};

}  // namespace tile
