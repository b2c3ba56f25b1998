// random_tiles.h - random kernels without products: tiles of any rank that are loaded, computed, reordered, reduced,
// scanned, sorted, sent through memory, carried by loops and merged by branches. All values are small whole numbers, so
// every order of summation gives the same bits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// What the kernels of one element type are given. Narrow: what memory holds; Wide: what is computed in.
template <class Narrow, class Wide>
struct TileMemory {
  static constexpr int kPrograms = 3;
  static constexpr int kRows = 70, kColumns = 90;         ///< of the view; kernels load boxes across its edges
  static constexpr int kElements = 5000;                  ///< behind the pointer `flat`, whole numbers in [-3, 3]
  static constexpr int kScratch = 4096, kResult = 4096;   ///< elements of a tile at most
  static constexpr int kResults = 4, kCounters = 64;
};

/// Builds the kernel while it is traced.
template <class Narrow, class Wide>
class TileMaker : Choices {
 public:
  using Sizes = TileMemory<Narrow, Wide>;

  TileMaker(int seed, const Tensor<const Narrow, 2>& view, const Ptr<const Narrow>& flat,
            const Ptr<const int32_t>& places, const Ptr<Wide>& scratch, const Ptr<Wide>& out,
            const Ptr<int32_t>& counters, const I32& limit)
      : Choices(seed),
        view_(view),
        flat_(flat),
        places_(places),
        scratch_(scratch),
        out_(out),
        counters_(counters),
        limit_(limit) {}

  void program() {
    num_warps(1 << number(4));
    at_ = program_id(0);
    for (int i = 0; i < 2; ++i) read(pickShape());
    block(0, 10);
    for (int i = 0; i < Sizes::kResults; ++i) {
      const Value& v = pick();
      tile::store(out_ + (at_ * (Sizes::kResults * Sizes::kResult) + i * Sizes::kResult) + index(v.shape),
                  v.isIndex ? cast(v.tile, wide()) : v.tile);
    }
  }

 private:
  using Dims = std::vector<int64_t>;
  struct Value {
    Tile tile;
    Dims shape;
    int64_t bound;  ///< of the absolute values
    bool isIndex;   ///< i32, else Wide
  };
  static constexpr int64_t kTame = 100;

  static constexpr DType wide() { return dtype_of<Wide>(); }
  static int64_t count(const Dims& s) {
    int64_t n = 1;
    for (int64_t d : s) n *= d;
    return n;
  }
  static Shape shape(const Dims& dims) {
    Shape s;
    for (int64_t d : dims) s.push_back(d);
    return s;
  }
  const Value& keep(const Tile& tile, const Dims& dims, int64_t bound, bool isIndex = false) {
    values_.push_back({tile, dims, bound, isIndex});
    return values_.back();
  }
  const Value& pick() { return values_[static_cast<size_t>(number(static_cast<int64_t>(values_.size())))]; }
  /// A value of Wide with small numbers.
  Tile tame(const Value& v) {
    Tile t = v.isIndex ? cast(v.tile, wide()) : v.tile;
    return v.bound > kTame ? min(max(t, -int(kTame)), int(kTame)) : t;
  }

  Dims pickShape() {
    static const std::vector<Dims> shapes = {{64},     {100},   {1024},     {7},       {16, 32}, {5, 7},    {64, 48},
                                             {1, 500}, {33, 4}, {4, 8, 16}, {3, 5, 6}, {128, 8}, {256, 16}, {2, 64},
                                             {32, 2},  {8, 2, 32}, {512, 4}, {64, 64}, {2048}};
    return shapes[static_cast<size_t>(number(static_cast<int64_t>(shapes.size())))];
  }
  static Tile index(const Dims& dims) { return reshape(arange(0, count(dims)), shape(dims)); }

  // ---- memory

  const Value& read(const Dims& dims) {
    if (dims.size() == 2 && one_in(2)) {
      const Tile row = place(), column = place();
      Tile x = one_in(3) ? trans(view_.load({column, row}, {dims[1], dims[0]}))
                         : view_.load({row, column}, {dims[0], dims[1]});
      return keep(cast(x, wide()), dims, 3);
    }
    Tile offsets = index(dims);
    switch (number(4)) {
      case 0: break;
      case 1: offsets = offsets * (1 + number(3)) + number(9); break;
      case 2: offsets = tile::load(places_ + offsets % 64) + offsets / 2; break;
      default: offsets = offsets + place();
    }
    offsets = max(offsets, 0);
    Tile x;
    if (one_in(3))
      x = tile::load(flat_ + offsets, {.mask = (offsets < Sizes::kElements) & (offsets % 3 != 1), .other = 1});
    else
      x = tile::load(flat_ + offsets, {.mask = offsets < Sizes::kElements});
    return keep(cast(x, wide()), dims, 3);
  }
  Tile place() {
    switch (number(4)) {
      case 0: return Tile(number(80) - 20);
      case 1: return at_ * 16;
      case 2: return limit_ + 0;
      default: return loops_.empty() ? Tile(8) : *loops_.back() + number(5);
    }
  }
  Tile some(const Dims& dims) {
    std::vector<const Value*> fit;
    for (const Value& v : values_)
      if (v.shape == dims) fit.push_back(&v);
    if (!fit.empty() && !one_in(4)) return tame(*fit[static_cast<size_t>(number(static_cast<int64_t>(fit.size())))]);
    return tame(read(dims));
  }
  /// i32 in [0, below).
  Tile bounded(const Dims& dims, int64_t below) {
    if (one_in(3)) return (index(dims) * (1 + 2 * number(3)) + number(7)) % int(below);
    return abs(cast(some(dims), i32)) % int(below);
  }

  // ---- one more value

  void grow() {
    const Value v = pick();
    const Dims dims = v.shape;
    const int rank = static_cast<int>(dims.size()), at = number(rank);
    const int64_t n = dims[static_cast<size_t>(at)];
    const Tile x = tame(v);
    switch (number(22)) {
      case 0: keep(x + some(dims), dims, 2 * kTame); return;
      case 1: keep(x - some(dims), dims, 2 * kTame); return;
      case 2: keep(x * some(dims), dims, kTame * kTame); return;
      case 3: keep(one_in(2) ? max(x, some(dims)) : min(x, some(dims)), dims, kTame); return;
      case 4: {
        const Tile other = some(dims);
        keep(where(one_in(2) ? x < other : index(dims) % 3 == 1, other, x), dims, kTame);
        return;
      }
      case 5:
      case 6: return fold(x, dims, at);
      case 7: {
        Tile s = one_in(2) ? cumsum(x, axis(at), {.reverse = one_in(2)})
                           : scan(x, axis(at), [](Tile a, Tile b) { return max(a, b); }, {.reverse = one_in(2)});
        keep(s, dims, kTame * n);
        return;
      }
      case 8: {
        std::vector<int> order(static_cast<size_t>(rank));
        for (int i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
        shuffle(order);
        Dims to;
        Shape by;
        for (int d : order) to.push_back(dims[static_cast<size_t>(d)]), by.push_back(d);
        keep(permute(x, by), to, kTame);
        return;
      }
      case 9: {
        const int64_t all = count(dims);
        std::vector<int64_t> divisors;
        for (int64_t d = 1; d <= all; ++d)
          if (all % d == 0) divisors.push_back(d);
        const int64_t a = divisors[static_cast<size_t>(number(static_cast<int64_t>(divisors.size())))];
        const Dims to = one_in(3) ? Dims{all} : Dims{a, all / a};
        keep(reshape(x, shape(to)), to, kTame);
        return;
      }
      case 10: {
        Dims to = dims;
        Shape from;
        for (int64_t& d : to) {
          const int64_t size = 1 + number(d);
          from.push_back(number(d - size + 1)), d = size;
        }
        keep(extract(x, from, shape(to)), to, kTame);
        return;
      }
      case 11: {
        if (count(dims) > 2048) return;
        Dims to = dims;
        const Tile other = some(dims);
        if (one_in(2)) {
          to.back() *= 2;
          keep(interleave(x, other), to, kTame);
        } else {
          to[static_cast<size_t>(at)] *= 2;
          keep(cat(x, other, at), to, kTame);
        }
        return;
      }
      case 12: keep(take(x, bounded(dims, n), at), dims, kTame); return;
      case 13: {
        if (n > 256) return;
        const bool descending = one_in(2);
        if (one_in(2)) {
          keep(sort(x, axis(at), {.descending = descending}), dims, kTame);
        } else {
          const Tile order = argsort(x, axis(at), {.descending = descending});
          keep(take(some(dims), order, at), dims, kTame);
          keep(order, dims, n, true);
        }
        return;
      }
      case 14: return through_memory(x, dims);
      case 15: {
        const Tile counts = histogram(bounded(dims, 32), 32);
        keep(counts, {32}, count(dims), true);
        return;
      }
      case 16: {  // to what memory holds and back
        Tile small = min(max(x, -3), 3);
        keep(cast(cast(small, dtype_of<Narrow>()), wide()), dims, 3);
        return;
      }
      case 17: {
        const Tile total = sum(x);
        keep(x - min(max(total, -50), 50), dims, kTame + 50);
        return;
      }
      case 18: {  // rows and columns to a box
        if (rank != 1 || n > 64) return;
        keep(x.col() * Tile(some(dims)).row(), {n, n}, kTame * kTame);
        return;
      }
      case 19: keep(flip(x, axis(at)), dims, kTame); return;
      case 20: {
        const Tile p = counters_ + bounded(dims, Sizes::kCounters);
        atomic_add(p, cast(min(max(x, -5), 5), i32), {.mask = x < 40});
        return;
      }
      default: read(pickShape());
    }
  }
  void fold(const Tile& x, const Dims& dims, int at) {
    Dims small = dims;
    const int64_t n = dims[static_cast<size_t>(at)];
    small[static_cast<size_t>(at)] = 1;
    switch (number(5)) {
      case 0: keep(argmax(x, axis(at)), small, n, true); break;
      case 1: keep(sum(x, axis(at)), small, kTame * n); break;
      case 2: keep(min(x, axis(at)), small, kTame); break;
      case 3: {
        const auto both = reduce({x, index(dims)}, axis(at), [](Tile a, Tile i, Tile b, Tile j) {
          const Tile first = (a > b) | ((a == b) & (i < j));
          return std::array{where(first, a, b), where(first, i, j)};
        });
        keep(both[0], small, kTame), keep(both[1], small, count(dims), true);
        break;
      }
      default: {
        const Tile most = max(x, axis(at));
        keep(x - most, dims, 2 * kTame);
        keep(most, small, kTame);
      }
    }
    if (one_in(2)) keep(broadcast_to(tame(values_.back()), shape(dims)), dims, kTame);
  }
  void through_memory(const Tile& x, const Dims& dims) {
    const int64_t n = count(dims);
    const Tile base = at_ * Sizes::kScratch;
    const Tile i = index(dims);
    tile::store(scratch_ + base + i, x);
    keep(tile::load(scratch_ + base + (one_in(2) ? int(n - 1) - i : (i + 1) % int(n))), dims, kTame);
  }

  // ---- constructs

  void block(int depth, int steps) {
    for (int i = 0; i < steps; ++i) {
      if (depth < 2 && one_in(5))
        construct(depth);
      else
        grow();
    }
  }
  void construct(int depth) {
    std::deque<Value> carried;
    const int n = 1 + number(2);
    for (int i = 0; i < n; ++i) {
      const Value v = pick();
      carried.push_back({tame(v), v.shape, kTame, false});
    }
    auto body = [&] {
      const size_t before = values_.size();
      block(depth + 1, 1 + number(4));
      for (Value& c : carried) {
        if (one_in(6)) continue;
        const Tile next = some(c.shape);
        c.tile = one_in(2) ? max(c.tile, next) : min(max(c.tile + next, -int(kTame)), int(kTame));
      }
      while (values_.size() > before) values_.pop_back();  // values of a body end with it
    };
    switch (number(4)) {
      case 0:
        if_(limit_ > number(60), body);
        break;
      case 1: {
        Tile i = 0;
        const int times = number(4);
        while_([&] { return i < times; },
               [&] {
                 i += 1;
                 Tile here = i;
                 loops_.push_back(&here);
                 body();
                 loops_.pop_back();
               });
        break;
      }
      default: {
        LoopOptions options;
        options.stages = number(4);
        const int step = 1 << number(5);
        const Tile low = one_in(2) ? Tile(0) : at_ * step;
        for (auto i : range(low, low + (one_in(3) ? limit_ % 5 : Tile(number(5))) * step, step, options)) {
          loops_.push_back(&i);
          body();
          loops_.pop_back();
        }
      }
    }
    for (const Value& c : carried) keep(c.tile, c.shape, kTame);
  }

  const Tensor<const Narrow, 2>& view_;
  const Ptr<const Narrow>& flat_;
  const Ptr<const int32_t>& places_;
  const Ptr<Wide>&scratch_, &out_;
  const Ptr<int32_t>& counters_;
  const I32& limit_;
  Tile at_;
  std::vector<const Tile*> loops_;
  std::deque<Value> values_;  ///< never moved: a copy of a tile is another variable
};

}  // namespace tile::testing
