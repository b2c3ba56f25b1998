// random_grids.h - random kernels over pictures and grids read through pointers: neighbours that are clamped, wrapped,
// mirrored or masked at edges, in short loops or written out; flat places of which rows and columns are quotients and
// remainders; fields that are updated in place; rows of a carried matrix that are replaced one by one. All values are
// small whole numbers, so every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// Builds the kernel while it is traced. T: what memory holds; Wide: what is computed in.
template <class T, class Wide>
class GridMaker : Choices {
 public:
  static constexpr int kPrograms = 4, kMostWidth = 320, kMostHeight = 40;
  static constexpr int kMargin = 8192;  ///< in front of the picture and behind it: what no edge holds back
  static constexpr int kPicture = kMostWidth * kMostHeight + 2 * kMargin;
  static constexpr int kField = 8192, kOut = 16384;  ///< of a program

  struct Arguments {
    const Ptr<const T>& picture;
    const Ptr<T>& field;
    const Ptr<Wide>& out;
    const I32 &width, &height, &start, &few, &far;  ///< start in [-4, 40), few in [0, 6), far anything
  };
  GridMaker(int seed, const Arguments& a) : Choices(seed), a_(a) {}

  void program() {
    num_warps(1 << number(4));
    at_ = program_id(0);
    field_ = a_.field + at_ * kField + 512;
    places();
    total_ = zeros(shape_, wide());
    const int steps = 2 + number(4);
    for (int i = 0; i < steps; ++i) statement(0);
    leave(total_);
  }

 private:
  static constexpr DType wide() { return dtype_of<Wide>(); }
  static Tile tame(const Tile& x, int most = 50) { return min(max(x, -most), most); }
  Tile index() const { return reshape(arange(0, shape_.elements()), shape_); }
  void leave(const Tile& x) {
    const int64_t n = x.shape().elements();
    if (used_ + n > kOut) return;
    store(a_.out + at_ * kOut + used_ + reshape(arange(0, n), x.shape()), cast(x, wide()));
    used_ += static_cast<int>(n);
  }

  /// Which elements of the picture the program has: some of a row, a box, or places numbered through.
  void places() {
    switch (number(4)) {
      case 0: {
        const int n = pick_of({64, 100, 128, 256});
        shape_ = {n};
        x_ = (one_in(3) ? Tile(a_.start) : at_ * n) + arange(0, n);
        y_ = one_in(2) ? at_ * 5 : Tile(a_.few + number(9));
        break;
      }
      case 1: {
        const int m = pick_of({2, 4, 8, 16}), n = pick_of({16, 32, 64, 128, 48});
        shape_ = {m, n};
        x_ = (one_in(2) ? at_ * n : a_.start + number(60)) + arange(0, n).row();
        y_ = (one_in(2) ? at_ * m : a_.start + number(5)) + arange(0, m).col();
        break;
      }
      case 2: {
        const int k = 2, m = pick_of({2, 4}), n = pick_of({16, 32});
        shape_ = {k, m, n};
        x_ = reshape((one_in(2) ? at_ * n : a_.start + number(60)) + arange(0, n), {1, 1, n});
        y_ = reshape(at_ * m + arange(0, m), {1, m, 1}) + reshape(arange(0, k) * number(9), {k, 1, 1});
        break;
      }
      default: {
        const int n = pick_of({64, 128, 256, 512, 100});
        shape_ = {n};
        Tile i = at_ * n + arange(0, n);
        if (one_in(4)) i = max(i - 20, 0);
        x_ = i % a_.width, y_ = i / a_.width;
      }
    }
  }

  /// x + by, brought back between 0 and n - 1 in one way or another. `inside` gets what then has to hold for a read.
  Tile edge(const Tile& x, const Tile& by, const Tile& n, Tile& inside) {
    Tile z = x + by;
    switch (number(10)) {
      case 0:
        return min(max(z, 0), n - 1);
      case 1:
        return max(min(z, n - 1), 0);
      case 2:
        return (z + n) % n;
      case 3:
        return floor_mod(z, n);
      case 4:
        return where(x == 0, n - 1, x - 1);
      case 5:
        return where(x == n - 1, 0, x + 1);
      case 6:
        z = where(z < 0, -z, z);
        return where(z < n, z, 2 * n - 2 - z);
      case 7:
        return where(z >= n, z - n, where(z < 0, z + n, z));
      case 8: {
        const Tile in = (z >= 0) & (z < n);
        inside = inside.rank() ? inside & in : in;
        return z;
      }
      default:  // wherever that is
        return min(max(a_.far + z, 0), n - 1);
    }
  }
  Tile neighbour(const Tile& dy, const Tile& dx) {
    Tile inside = Tile(true);
    const Tile y = edge(y_, dy, a_.height, inside), x = edge(x_, dx, a_.width, inside);
    // Places of tiles that reach beyond the picture may lie anywhere near it.
    Tile at = broadcast_to(y * a_.width + x + zeros(shape_, i32), shape_);
    Tile near = (at > -kMargin) & (at < kMostWidth * kMostHeight + kMargin);
    if (inside.rank()) near = broadcast_to(inside, shape_) & near;
    if (one_in(2) && inside.rank()) return cast(load(a_.picture + kMargin + at, {.mask = near, .other = 2}), wide());
    if (one_in(3) || inside.rank()) return cast(load(a_.picture + kMargin + at, {.mask = near}), wide());
    return cast(load(a_.picture + kMargin + min(max(at, -kMargin), kMostWidth * kMostHeight + kMargin - 1)), wide());
  }

  void statement(int depth) {
    switch (number(depth < 2 ? 10 : 7)) {
      case 0:
        total_ = tame(total_ + neighbour(Tile(number(5) - 2), Tile(number(5) - 2)));
        return;
      case 1: {  // many together
        Tile sum = neighbour(Tile(0), Tile(0));
        const int n = 2 + number(4);
        for (int k = 0; k < n; ++k) sum = sum + neighbour(Tile(number(3) - 1), Tile(k - 1)) * (1 + number(2));
        total_ = tame(total_ + sum);
        return;
      }
      case 2: {  // short loops around each other
        Tile sum = zeros(shape_, wide());
        const int from = number(3) - 1, height = 1 + number(3), width = 1 + number(4);
        const bool writes = one_in(6);
        for (auto dy : range(from, from + height))
          for (auto dx : range(-1, one_in(4) ? Tile(a_.few) : Tile(width - 1))) {
            sum = sum + neighbour(dy, dx);
            if (writes) store(field_ + index(), cast(tame(sum), dtype_of<T>()));
          }
        total_ = tame(total_ + sum);
        return;
      }
      case 3:
      case 4:
        return update();
      case 5:
        return substitute();
      case 6:
        return ring();
      case 7: {
        for (auto i : range(0, one_in(2) ? Tile(a_.few) : Tile(1 + number(4)))) {
          moved_.push_back(&i);
          statement(depth + 1), statement(depth + 1);
          moved_.pop_back();
        }
        return;
      }
      case 8:
        return if_(a_.few > number(6), [&] { statement(depth + 1), statement(depth + 1); });
      default: {
        Tile i = 0;
        while_([&] { return (i < a_.few) & (i < 3); },
               [&] {
                 statement(depth + 1);
                 i += 1;
               });
      }
    }
  }

  /// Reads neighbours of a field, writes there or beside it, reads again, and uses what it read first.
  void update() {
    auto place = [&] {
      Tile o = Tile(number(5) - 2);
      if (one_in(3)) o = o + a_.few;
      if (!moved_.empty() && one_in(2)) o = o + *moved_.back() * pick_of({1, 16, 64});
      return o + 3000 * number(2);
    };
    auto read = [&](const Tile& at) {
      const Tile i = index();
      switch (number(5)) {
        case 0:
          return cast(load(field_ + at + i, {.mask = i < a_.start * 8, .other = 3}), wide());
        case 1:
          return cast(load(field_ + (at + i), {.mask = i % 3 != 1}), wide());
        default:
          return cast(load(field_ + at + i), wide());
      }
    };
    auto write = [&](const Tile& at, const Tile& x) {
      const Tile i = index(), narrow = cast(tame(x), dtype_of<T>());
      if (one_in(3)) return store(field_ + at + i, narrow, {.mask = i >= a_.few * 4});
      store(field_ + at + i, narrow);
    };
    const Tile here = place();
    const Tile a = read(here), b = read(one_in(2) ? here : place());
    if (one_in(3)) write(place(), a + b);
    Tile c = a * 2 - b;
    if (one_in(4)) c = c + tile::sum(tame(a, 2));
    if (one_in(5)) c = c + read(place());
    if (one_in(5)) total_ = total_ + neighbour(Tile(0), Tile(1));
    write(one_in(2) ? here : place(), c);
    if (one_in(3)) write(place(), b);
    if (one_in(3)) total_ = tame(total_ + a);
    if (one_in(4)) leave(tile::sum(tame(c, 2), axis(number(shape_.rank()))));
  }

  /// A field that is closed to a ring, or ends, and is replaced by what its neighbours say.
  void ring() {
    const Tile i = index(), n = one_in(2) ? Tile(a_.width) : Tile(static_cast<int>(shape_.elements()));
    const bool masked = one_in(3);
    auto beside = [&](int k) -> Tile {
      switch (number(6)) {
        case 0:
          return (i + k + n) % n;
        case 1:
          return floor_mod(i + k, n);
        case 2:
          return k < 0 ? where(i == 0, n - 1, i - 1) : where(i == n - 1, 0, i + 1);
        case 3:
          return min(max(i + k, 0), n - 1);
        case 4:
          return where(i + k < n, i + k, n - 1);
        default:
          return i + k;
      }
    };
    auto read = [&](int k) {
      const Tile at = broadcast_to(beside(k), shape_), ok = (i + k >= 0) & (i + k < n);
      return cast(masked ? load(field_ + at, {.mask = ok, .other = 1}) : load(field_ + at), wide());
    };
    for (auto t : range(0, one_in(2) ? Tile(a_.few) : Tile(1 + number(2)))) {
      Tile next = read(-1) - read(1) * 2 + cast(t, wide());
      if (one_in(2)) next = next + read(0);
      if (one_in(2)) next = next + read(2) - read(-2);
      const Tile narrow = cast(tame(next), dtype_of<T>());
      if (one_in(2))
        store(field_ + i, narrow, {.mask = i < n});
      else
        store(field_ + i, narrow);
    }
  }

  /// A matrix whose rows, or columns, are replaced one after the other by what was made of the others.
  void substitute() {
    const int m = pick_of({16, 32, 8}), n = one_in(2) ? m : pick_of({16, 32, 64});
    const bool columns = one_in(3), vector = one_in(2);
    const int along = columns ? 1 : 0, count = columns ? n : m;
    const Tile number_of = vector ? arange(0, count) : Tile();
    auto places = [&] { return columns ? arange(0, n).row() : arange(0, m).col(); };
    Tile a = cast(load(a_.picture + kMargin + arange(0, m).col() * n + arange(0, n).row()), wide());
    Tile v = vector ? cast(load(a_.picture + kMargin + 77 + number_of), wide()) : Tile();
    Tile least = zeros({columns ? m : 1, columns ? 1 : n}, wide());
    const bool reads = one_in(3);
    for (auto i : range(number(3), one_in(3) ? Tile(a_.few) : Tile(count - number(3)), 1 + number(2))) {
      const Tile is = places() == i, zero = cast(Tile(0), wide());
      Tile row = tile::sum(where(is, a, zero), axis(along));
      if (vector) row = row + tile::sum(where(number_of == i, v, zero));
      if (reads) row = row + cast(load(a_.picture + kMargin + i * 3), wide());
      Tile more = tame(row + tile::sum(where(places() < i, tame(a, 3), zero), axis(along)));
      a = where(is, more + zero * a, a);
      if (vector) v = where(number_of == i, tame(v + tile::sum(tame(more, 1))), v);
      least = min(least, row);
    }
    leave(a), leave(least);
    if (vector) leave(v);
  }

  Arguments a_;
  Shape shape_;
  Tile at_, field_, x_, y_, total_;
  int used_ = 0;
  std::vector<const Tile*> moved_;
};

}  // namespace tile::testing
