// random_idiom_values.h - what the statements of random_idioms.h work on: tiles so far, new ones from memory, places to
// store to, loops.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// T: what memory and products hold; Wide: what is computed in.
template <class T, class Wide>
class IdiomValues : protected Choices {
 public:
  static constexpr int kPrograms = 3;
  static constexpr int kSide = 150, kPitch = 176, kLayers = 12, kLayer = 48;  ///< of `view`, and of `layers`
  static constexpr int kRecords = 6000, kPlaces = 64;                         ///< numbers behind `records`
  static constexpr int kScratch = 16384, kResult = 4096, kResults = 4;        ///< of a program
  static constexpr int kCounters = 128;

  struct Arguments {
    const Tensor<const T, 2>& view;
    const Tensor<const T, 3>& layers;
    const Tensor<const int8_t, 2>& bytes;
    const Ptr<const Wide>& records;    ///< whole numbers in [-3, 3]
    const Ptr<const int32_t>& places;  ///< in [0, 100)
    const Ptr<const uint32_t>& words;  ///< of any value, kPlaces of them
    const Ptr<Wide>& out;
    const Ptr<T>& narrow;   ///< kScratch of a program
    const Ptr<Wide>& wide;  ///< kScratch of a program
    const Ptr<int32_t>& counters;
    const I32& limit;  ///< [0, 60)
  };
  IdiomValues(int seed, const Arguments& a) : Choices(seed), a_(a) {}

 protected:
  struct Value {
    Tile tile;
    int64_t bound;  ///< of the absolute values
  };
  static constexpr bool kWhole = std::is_integral_v<T>, kBytes = sizeof(T) == 1;
  static constexpr int64_t kTame = 50;

  static constexpr DType wide() { return dtype_of<Wide>(); }
  static constexpr DType narrow() { return dtype_of<T>(); }
  static Tile index(const Shape& s) { return reshape(arange(0, s.elements()), s); }
  /// Few elements for a thread: code of unrolled sorts and scans takes long to compile.
  bool fits(int64_t elements) const { return elements <= std::min(512 * warps_, kResult); }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }
  static Tile bounded(const Tile& x, int most) { return min(max(x, -most), most); }
  static Tile narrowed(const Tile& x, int most = 2) { return cast(bounded(x, most), narrow()); }
  void keep(const Tile& t, int64_t bound) {
    if (t.shape().elements() <= kResult) values_.push_back({t, bound});
  }
  Tile tame(const Value& v) { return v.bound > kTame ? bounded(v.tile, int(kTame)) : v.tile; }
  Tile any_value() { return tame(values_[static_cast<size_t>(number(count()))]); }
  Tile some(const Shape& s) {
    std::vector<const Value*> fit;
    for (const Value& v : values_)
      if (v.tile.shape() == s) fit.push_back(&v);
    if (!fit.empty() && !one_in(4)) return tame(*fit[static_cast<size_t>(number(static_cast<int64_t>(fit.size())))]);
    const Tile x = fresh(s);
    keep(x, 3);
    return x;
  }
  /// A matrix; one of any rank if `any`.
  Tile matrix() {
    std::vector<const Value*> fit;
    for (const Value& v : values_)
      if (v.tile.rank() == 2 && v.tile.shape()[0] > 1 && v.tile.shape()[1] > 1) fit.push_back(&v);
    return fit.empty() ? some({rows_, columns_})
                       : tame(*fit[static_cast<size_t>(number(static_cast<int64_t>(fit.size())))]);
  }
  Tile place() {
    switch (number(4)) {
      case 0:
        return Tile(number(40) - 8);
      case 1:
        return at_ * 16;
      case 2:
        return a_.limit + 0;
      default:
        return loops_.empty() ? Tile(8) : *loops_.back() * (1 + number(9));
    }
  }
  /// From memory, in [-3, 3].
  Tile fresh(const Shape& s) {
    if (s.rank() == 2 && one_in(2)) return cast(a_.view.load({place(), place()}, s), wide());
    if (s.rank() == 3 && s[0] <= kLayers && one_in(2))
      return cast(a_.layers.load({Tile(number(3)), place(), place()}, s), wide());
    const Tile i = max(index(s) + place(), 0);
    return load(a_.records + i, {.mask = i < kRecords});
  }
  /// A place for n elements of a program's scratch memory that nothing else has.
  int room(int64_t n) {
    const int at = used_;
    used_ += static_cast<int>(n);
    return used_ <= kScratch ? at : -1;
  }
  Tile product(const Tile& a, const Tile& b, OptionalExpr into = {}) {
    if constexpr (std::is_same_v<T, float>) return dot(a, b, into, precise_ ? Prec::ieee : Prec::tf32);
    return dot(a, b, into);
  }

  void store_somewhere(const Tile& x) {
    const int to = room(x.shape().elements());
    if (to >= 0) store(a_.wide + at_ * kScratch + to + index(x.shape()), x);
  }
  /// A loop over a few iterations, or until something holds; it may skip some, or be left.
  template <class F>
  void loop(F&& body) {
    const int times = 1 + number(4), kind = number(8);
    const size_t before = values_.size();
    auto with = [&](const Tile& i) {
      loops_.push_back(&i);
      body();
      loops_.pop_back();
      while (values_.size() > before) values_.pop_back();  // values of a body end with it
    };
    if (kind == 0 && loops_.empty()) {
      Tile i = 0;
      while_([&] { return (i < times) & (i < a_.limit); },
             [&] {
               const Tile here = i;
               with(here);
               i += 1;
             });
      return;
    }
    const Tile end = one_in(2) ? a_.limit % 6 : Tile(times);
    if (kind == 6) return counted(end, with);
    if (kind == 7) {
      for (auto i : range(end, -1, -1 - number(3), loop_options())) with(i);
      return;
    }
    for (auto i : range(0, end, loop_options())) {
      if (kind == 1) continue_if(load(a_.places + i) % 3 == 1);
      if (kind == 2) break_if(load(a_.places + i + at_) > 80);
      with(i);
    }
  }
  /// Loops with conditions whose iterations are known when they begin: counters, bits that are set; and counters of
  /// which they are not, since the bound or the step changes on the way. Where they end is a value, too.
  template <class F>
  void counted(const Tile& end, F&& with) {
    Tile i = at_ - number(3), by = Tile(1 + number(3)), high = end + 0, bits = abs(end * 37 + number(200));
    const bool falls = one_in(4), grows = one_in(4), first = one_in(2), programs = one_in(4);
    auto body = [&] {
      const Tile here = i;
      with(here);
      if (falls) high = high - 1;
      i = programs ? i + num_programs(0) : first ? by + i : i + by;
      if (grows) by = by + 1;
    };
    if (one_in(3)) {
      while_([&] { return bits != 0; },
             [&] {
               const Tile here = countr_zero(bits);
               bits = first ? bits & (bits - 1) : (bits - 1) & bits;
               with(here);
             });
    } else if (one_in(2)) {
      while_([&] { return i < high; }, body);
    } else {
      while_([&] { return high > i; }, body);
    }
    if (values_.empty()) return;
    Tile& last = values_.back().tile;
    last = bounded(last + cast(i + bits, wide()), int(kTame));
    values_.back().bound = kTame;
  }

  Arguments a_;
  int warps_ = 1, rows_ = 0, columns_ = 0, count_ = 0, used_ = 0;
  bool precise_ = false;
  Tile at_;
  std::vector<const Tile*> loops_;
  std::deque<Value> values_;  ///< never moved: a copy of a tile is another variable
};

}  // namespace tile::testing
