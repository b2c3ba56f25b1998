// random_pointers.h - random kernels that read and write one piece of memory over and over: through pointers that move,
// with masks at odd places, boxes and rows of views whose strides are known at the launch only, atomics, single
// elements; in loops, branches and loops until something holds. What one statement writes the next ones read, in other
// threads. All values are small whole numbers, so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Builds the kernel while it is traced. T: what memory holds; everything is computed in f32 or i32.
template <class T>
class PointerMaker : Choices {
 public:
  static constexpr int kPrograms = 3, kRegion = 16384;  ///< elements of memory that a program has to itself
  static constexpr int kInput = 5000, kPlaces = 64;     ///< read only; numbers of rows in [0, 16), all different per 16
  static constexpr int kCounters = 64;

  struct Arguments {
    const Ptr<T>& memory;
    const Ptr<const T>& input;
    const Ptr<const int32_t>& places;
    const Ptr<int32_t>& counters;
    const I32 &step, &pitch, &limit;  ///< [0, 600], [64, 100], [0, 60]
    const I64& skip;                  ///< [0, 40]
  };
  PointerMaker(int seed, const Arguments& a) : Choices(seed), a_(a) {}

  void program() {
    num_warps(1 << number(4));
    at_ = program_id(0);
    base_ = a_.memory + at_ * kRegion;
    if (one_in(3)) base_ = a_.memory + cast(at_, i64) * kRegion;
    moving_ = base_ + number(9);
    for (int i = 0; i < 3; ++i) values_.push_back({input(pick_shape())});
    block(0, 3 + number(5));
    for (const Tile& v : values_) store_at(base_ + number(3000), v);  // what is left
  }

 private:
  static constexpr bool kWhole = std::is_integral_v<T>;
  static constexpr DType wide() { return kWhole ? i32 : f32; }
  static int64_t count(const Shape& s) { return s.elements(); }
  static Tile index(const Shape& s) { return reshape(arange(0, s.elements()), s); }
  Tile tame(const Tile& x) { return min(max(x, -100), 100); }

  Shape pick_shape() {
    switch (number(12)) {
      case 0: return {1};
      case 1: return {7};
      case 2: return {32};
      case 3: return {100};
      case 4: return {512};
      case 5: return {256};
      case 6: return {16, 32};
      case 7: return {5, 12};
      case 8: return {8, 64};
      case 9: return {4, 8, 16};
      case 10: return {2, 3, 4, 8};
      default: return {128};
    }
  }
  Tile& some() { return values_[static_cast<size_t>(number(static_cast<int64_t>(values_.size())))]; }

  // ---- places

  /// An offset in [0, 6000): of the loops, of arguments, of the program.
  Tile offset() {
    Tile o = number(3) ? Tile(number(64) * 16) : Tile(number(1000));
    if (!loops_.empty() && !one_in(4)) {
      const Tile& i = *loops_.back();
      switch (number(5)) {
        case 0: o = o + i * a_.step; break;
        case 1: o = o + i * (1 + number(40)); break;
        case 2: o = o + (3 - i) * 64; break;
        case 3: o = o + i * 256; break;
        default: o = o + i % 2 * 512;
      }
      if (loops_.size() > 1 && one_in(2)) o = o + *loops_.front() * 128;
    }
    if (one_in(6)) o = o + a_.step;
    if (one_in(8)) o = o + load(a_.places + number(16)) * 16;
    return o;
  }
  /// Places of a tile's elements, all of them different.
  Tile spread(const Shape& s) {
    const Tile i = index(s);
    const auto n = static_cast<int>(count(s));
    switch (number(6)) {
      case 0: return i * (2 + number(2));
      case 1: return (n - 1) - i;
      case 2: return i * cast(a_.skip + 1, i32);
      case 3: return i / 16 * 16 + load(a_.places + i % 16);
      default: return i;
    }
  }
  Tile pointer() { return one_in(3) ? Tile(moving_) : base_ + offset(); }

  // ---- statements

  Tile input(const Shape& s) {
    const Tile at = spread(s) + (one_in(2) ? Tile(number(900)) : Tile(a_.limit));
    Tile x;
    switch (number(4)) {
      case 0: x = load(a_.input + at, {.mask = (at < kInput) & (at % 3 != 1), .other = 2}); break;
      case 1: x = load(a_.input + (at - 20), {.mask = (at >= 20) & (at < a_.limit * 40)}); break;
      default: x = load(a_.input + at, {.mask = at < kInput});
    }
    return cast(x, wide());
  }
  void store_at(const Tile& p, const Tile& x) {
    const Shape s = x.shape();
    const Tile at = spread(s), value = cast(tame(x), dtype_of<T>());
    switch (number(5)) {
      case 0: return store(p + at, value, {.mask = index(s) % 5 != 2});
      case 1: return store(p + at, value, {.mask = index(s) < a_.limit * 9});
      case 2: return store(p + at, value, {.mask = x > 0});
      default: return store(p + at, value);
    }
  }
  Tile load_at(const Tile& p, const Shape& s) {
    const Tile at = spread(s);
    if (one_in(4)) return cast(load(p + at, {.mask = index(s) % 7 < 5, .other = 1}), wide());
    return cast(load(p + at), wide());
  }
  Tensor<T, 2> view() { return make_view<T>(base_ + number(3) * 512, {64, a_.pitch}, {a_.pitch, 1}); }

  void statement() {
    Tile& x = some();
    const Shape s = x.shape();
    switch (number(14)) {
      case 0:
      case 1: return store_at(pointer(), x);
      case 2:
      case 3: x = tame(x + load_at(pointer(), s)); return;
      case 4: {  // there and back, elsewhere
        const Tile p = pointer();
        store(p + index(s), cast(tame(x), dtype_of<T>()));
        x = cast(load(p + (static_cast<int>(count(s)) - 1 - index(s))), wide());
        return;
      }
      case 5: {  // in place
        const Tile p = pointer() + index(s);
        store(p, cast(tame(cast(load(p), wide()) + x), dtype_of<T>()));
        return;
      }
      case 6: {
        if (s.rank() != 2) return;
        auto v = view();
        const Tile row = loops_.empty() ? Tile(number(20)) : *loops_.back() * number(20), column = Tile(number(40) - 8);
        if (one_in(2)) v.store({row, column}, cast(tame(x), dtype_of<T>()));
        x = tame(x + cast(v.load({row + number(3), column}, s), wide()));
        return;
      }
      case 7: {  // rows by number
        auto v = view();
        const Tile rows = load(a_.places + arange(0, 16)) + number(20);
        const Tile y = cast(v.gather(rows, Tile(number(30)), 32), wide());
        if (one_in(2)) v.scatter(rows, Tile(number(30)), cast(tame(y + 1), dtype_of<T>()));
        if (s == Shape{16, 32}) x = tame(x - y);
        return;
      }
      case 8: {  // single elements
        const Tile p = pointer();
        store(p, cast(tame(tile::sum(min(max(x, -3), 3))), dtype_of<T>()));
        x = tame(x + cast(load(p + number(2)), wide()));
        return;
      }
      case 9:
        if constexpr (sizeof(T) == 4) {
          const Tile p = pointer() + (one_in(2) ? index(s) % 5 : index(s));
          atomic_add(p, cast(min(max(x, -3), 3), dtype_of<T>()), {.mask = x < 40});
          return;
        }
        [[fallthrough]];
      case 10: {
        const Tile i = abs(cast(x, i32)) % kCounters;
        atomic_add(a_.counters + i, 1, {.mask = index(s) % 3 != 0});
        return;
      }
      case 11: {  // a box of three dims, its strides known at the launch only
        auto v = make_view<T>(base_ + offset(), {4, 6, cast(a_.limit, i64)}, {cast(a_.pitch, i64) * 8, a_.pitch, 1});
        const Tile y = cast(v.load({one_in(2) ? 0 : 1, number(3) - 1, number(8)}, {2, 4, 16}), wide());
        x = tame(x + tile::sum(min(max(y, -3), 3)));
        if (one_in(2)) v.store({0, number(3), 0}, cast(tame(y + 1), dtype_of<T>()));
        return;
      }
      case 12: x = tame(x * 2 - max(x, axis(s.rank() - 1))); return;
      default: x = tame(x + input(s));
    }
  }
  void block(int depth, int steps) {
    for (int i = 0; i < steps; ++i) {
      if (depth < 2 && one_in(4))
        construct(depth);
      else
        statement();
    }
  }
  void construct(int depth) {
    auto body = [&] {
      block(depth + 1, 1 + number(4));
      if (depth == 0 && moves_ < 2 && one_in(2))  // not out of the region
        ++moves_, moving_ = moving_ + (one_in(2) ? Tile(a_.step) : Tile(number(200)));
    };
    auto with = [&](const Tile& i) {
      loops_.push_back(&i);
      body();
      loops_.pop_back();
    };
    switch (number(7)) {
      case 0: {
        const Tile c = cast(load(base_ + number(40)), wide()) > 0;
        return if_(one_in(2) ? c : a_.limit > number(60), body);
      }
      case 1: {  // until memory says so
        Tile i = 0;
        while_([&] { return (i < 4) & (cast(load(base_ + 5), wide()) < 90); },
               [&] {
                 const Tile here = i;
                 with(here);
                 i += 1;
               });
        return;
      }
      case 2: {  // counters whose last number is known at the start
        const Tile end = one_in(3) ? a_.limit % 5 : Tile(number(5));
        Tile i = at_ % 2;
        while_([&] { return i < end; },
               [&] {
                 const Tile here = i;
                 with(here);
                 i += 1 + number(2);
               });
        return store(base_ + (6000 + number(200)), cast(i, dtype_of<T>()));
      }
      case 3:
        for (auto i : range(one_in(2) ? a_.limit % 5 : Tile(number(5)), -1, -1 - number(2), loop_options())) with(i);
        return;
      default:
        for (auto i : range(0, one_in(3) ? a_.limit % 5 : Tile(number(5)), loop_options())) with(i);
    }
  }

  Arguments a_;
  int moves_ = 0;
  Tile at_, base_, moving_;
  std::vector<const Tile*> loops_;
  std::deque<Tile> values_;  ///< never moved: a copy of a tile is another variable
};

}  // namespace tile::testing
