// random_views.h - random kernels of boxes of views of every kind: one to five dims in any order, with steps between
// elements, backwards, over the same elements again, more than 2^31 elements apart, empty; boxes in the middle, across
// edges and far outside; stored, added to, stored again where others lie, read back, multiplied, turned. All values are
// small whole numbers, so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Builds the kernel while it is traced. T: what memory and products hold; Sum: what is computed in.
template <class T, class Sum>
class ViewMaker : Choices {
 public:
  static constexpr int kPrograms = 3, kPlaces = 64;
  static constexpr int kResult = 4096, kResults = 3;  ///< of a program
  static constexpr bool kWhole = std::is_integral_v<T>;

  struct Arguments {
    const Tensor<const T, 1>& line;
    const Tensor<const T, 2>&x, &y;
    const Tensor<const T, 3>& z;
    const Tensor<const T, 5>& w;
    const Ptr<const int32_t>& places;  ///< in [-40, 200)
    const Tensor<T, 3>& box;           ///< written: a layer for every program
    const Tensor<Sum, 4>& sums;        ///< added to: a layer for every program
    const Ptr<Sum>& out;
    const I32& limit;  ///< [0, 60)
    const I64& far;    ///< around -2^33, -2^31, -1, 2^31, 2^32 or 2^40
  };
  ViewMaker(int seed, const Arguments& a) : Choices(seed), a_(a) {}

  void program() {
    num_warps(pick_of({1, 2, 4, 4, 4, 8}));
    at_ = program_id(0);
    m_ = pick_of({16, 32, 64, 64, 64}), n_ = pick_of({16, 32, 48, 64, 64}), k_ = pick_of({16, 32, 64, 64});
    for (int i = 0; i < kResults; ++i) values_.push_back(one_in(2) ? zeros({m_, n_}, sum()) : wide(box({m_, n_})));
    if (one_in(2)) products();
    const int loops = 1 + number(2);
    for (int l = 0; l < loops; ++l) {
      const Tile end = one_in(3) ? a_.limit % 5 : Tile(number(5));
      const bool skips = one_in(5), inside = one_in(5);
      for (auto i : range(0, end, loop_options())) {
        loops_.push_back(&i);
        if (skips) continue_if(load(a_.places + i) % 3 == 1);
        if (inside) {
          for (auto j : range(0, 2, loop_options())) {
            loops_.push_back(&j);
            statements(1);
            loops_.pop_back();
          }
        }
        statements(1 + number(3));
        loops_.pop_back();
      }
      statements(number(3));
    }
    const Tile place = reshape(arange(0, m_ * n_), {m_, n_});
    for (int i = 0; i < kResults; ++i)
      store(a_.out + (at_ * (kResults * kResult) + i * kResult) + place, values_[static_cast<size_t>(i)]);
  }

 private:
  static constexpr DType sum() { return dtype_of<Sum>(); }
  static constexpr DType type() { return dtype_of<T>(); }
  static Tile bounded(const Tile& x, int most) { return min(max(x, -most), most); }
  static Tile wide(const Tile& x) { return cast(x, sum()); }
  static Tile narrowed(const Tile& x) { return cast(bounded(x, 2), type()); }
  Tile& some() { return values_[static_cast<size_t>(number(kResults))]; }

  // ---- places

  Tile place() {
    switch (number(10)) {
      case 0: return Tile(0);
      case 1: return Tile(number(80) - 30);
      case 2: return at_ * 16;
      case 3: return a_.limit - number(40);
      case 4: return load(a_.places + number(kPlaces));
      case 5:
        if (one_in(4)) return one_in(2) ? Tile(a_.far) : Tile(one_in(2) ? 2147483640 : -2147483647 - 1);
        [[fallthrough]];
      default:
        if (loops_.empty()) return Tile(number(9) * 8);
        const Tile& i = *loops_.back();
        switch (number(4)) {
          case 0: return i * 16;
          case 1: return i * (1 + number(40)) - number(20);
          case 2: return 40 - i * 16;
          default: return cast(i, i64) * 32;
        }
    }
  }
  BoxLoad options() {
    BoxLoad o;
    o.pad = number(3) ? 0 : number(4) - 1;
    return o;
  }
  /// A box of shape s from any of the views.
  Tile box(const Shape& s) {
    const int64_t m = s[0], n = s[1];
    switch (number(10)) {
      case 0: return a_.z.load({place(), place(), place()}, s, options());
      case 1: {
        const Tile t = a_.z.load({place(), place(), place()}, {2, m / 2, n}, options());
        return reshape(t, s);
      }
      case 2: return reshape(permute(a_.z.load({place(), place(), place()}, {n / 4, 4, m}, options()), {2, 1, 0}), s);
      case 3: return reshape(permute(a_.z.load({place(), place(), place()}, {m, 2, n / 2}, options()), {0, 2, 1}), s);
      case 4: {
        const Tile t = a_.w.load({Tile(number(3)), place(), place(), place(), place()}, {1, 2, m / 2, 2, n / 2}, options());
        return reshape(one_in(2) ? t : permute(t, {0, 2, 1, 3, 4}), s);
      }
      case 5: return trans(a_.x.load({place(), place()}, {n, m}, options()));
      case 6: {
        const Tile rows = load(a_.places + (arange(0, m) * (1 + number(3)) + number(20)) % kPlaces);
        return (one_in(2) ? a_.x : a_.y).gather(one_in(2) ? rows : arange(0, m) - number(9), place(), n, options());
      }
      case 7: return broadcast_to(reshape(a_.line.load({place()}, {n}, options()), {1, n}), s);
      case 8: {  // by pointers
        const Tensor<const T, 2>& v = one_in(2) ? a_.x : a_.y;
        const Tile r = place() + arange(0, m).col(), c = place() + arange(0, n).row();
        const Tile mask = (r >= 0) & (r < v.dim64(0)) & (c >= 0) & (c < v.dim64(1));
        return load(v.ptr() + (cast(r, i64) * v.stride(0) + cast(c, i64) * v.stride(1)), {.mask = mask});
      }
      default: return (one_in(2) ? a_.x : a_.y).load({place(), place()}, s, options());
    }
  }

  // ---- statements

  /// A loop of products alone, as warps of their own copy for.
  void products() {
    if constexpr (sizeof(T) == 1 && !kWhole) return;
    Tile& v = values_.front();
    const Tile row = place(), column = place();
    const Tensor<const T, 2>&a = one_in(2) ? a_.x : a_.y, &b = one_in(2) ? a_.x : a_.y;
    const bool layers = one_in(3), turned = one_in(4), pieces = one_in(4);
    for (auto i : range(0, one_in(2) ? a_.limit * 3 : Tile(150), k_, loop_options())) {
      const Tile x = turned   ? trans(a.load({i, row}, {k_, m_}, options()))
                     : pieces ? reshape(a_.z.load({place(), row, i}, {2, m_ / 2, k_}), {m_, k_})
                              : a.load({row, i}, {m_, k_}, options());
      v = product(x, layers ? a_.z.load({Tile(1), i, column}, {k_, n_}) : b.load({i, column}, {k_, n_}, options()), v);
    }
  }

  void statements(int n) {
    for (int i = 0; i < n; ++i) statement();
  }
  void statement() {
    Tile& v = some();
    switch (number(11)) {
      case 0:
      case 1: v = bounded(v + wide(box({m_, n_})), 100); return;
      case 2: v = max(v, wide(box({m_, n_}))); return;
      case 3:
      case 4:
      case 5: {
        if constexpr (sizeof(T) == 1 && !kWhole) return;
        const Tile a = one_in(4) ? trans(box({k_, m_})) : box({m_, k_}), b = one_in(4) ? trans(box({n_, k_})) : box({k_, n_});
        v = product(a, b, v);
        return;
      }
      case 6: {  // written, and partly written again
        a_.box.store({at_, place(), place()}, narrowed(v));
        if (one_in(2)) a_.box.store({at_, place(), place()}, narrowed(extract(some(), {0, 0}, {m_ / 2, n_})));
        if (one_in(2)) a_.box.store({at_, place(), place()}, narrowed(trans(some())));
        return;
      }
      case 7: {  // and read back
        const Tile row = place(), column = place();
        a_.box.store({at_, row, column}, narrowed(v));
        v = bounded(v * 2 - wide(a_.box.load({at_, row + number(3), column - number(9)}, {m_, n_}, options())), 100);
        return;
      }
      case 8: {
        const Tile x = cast(bounded(v, 3), sum());
        if (one_in(2))
          a_.sums.atomic_add({at_, place(), place(), place()}, reshape(x, {2, m_ / 2, n_}));
        else
          a_.sums.atomic_add({at_, Tile(number(3)), place(), place()}, one_in(2) ? x : trans(x));
        return;
      }
      case 9: {  // a row, a column, one element
        const Tile row = wide(a_.line.load({place()}, {n_}, options())).row();
        const Tile column = wide(a_.x.load({place(), place()}, {m_, 1}, options()));
        v = bounded(v + row - column + wide(a_.y.load({place(), place()})), 100);
        return;
      }
      default: {
        const Tile r = tile::sum(bounded(v, 3), axis(number(2)));
        v = bounded(v - r, 100);
        if (one_in(2)) if_(a_.limit > number(60), [&] { v = bounded(v + wide(box({m_, n_})), 100); });
      }
    }
  }
  Tile product(const Tile& a, const Tile& b, const Tile& into) {
    if constexpr (std::is_same_v<T, float>) return dot(a, b, into, Prec::tf32);
    return dot(a, b, into);
  }

  Arguments a_;
  int m_ = 0, n_ = 0, k_ = 0;
  Tile at_;
  std::vector<const Tile*> loops_;
  std::deque<Tile> values_;  ///< never moved: a copy of a tile is another variable
};

}  // namespace tile::testing
