// random_widths.h - random programs over numbers of mixed widths, f64 and unsigned ones among them, in tiles of one to
// four dims of odd sizes: loops that elements leave at different times, branches with scans in them, scans and
// reductions of several tiles with operators of their own, quotients by constants, sorts, elements taken by number,
// atomics whose results are used. The same statements are recorded as a kernel and, on another machine, executed
// element by element.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// In the order of the arrays in memory. f64 holds whole numbers in (-kWhole, kWhole).
enum WidthType { kU32, kU64, kI32, kI64, kU8, kI16, kF64, kWidthTypes };
inline constexpr DType kWidths[] = {u32, u64, i32, i64, u8, i16, f64};
using WidthElements = std::tuple<uint32_t, uint64_t, int32_t, int64_t, uint8_t, int16_t, double>;
inline constexpr int kWidthBits[] = {32, 64, 32, 64, 8, 16, 64};
inline constexpr int kWhole = 4096, kWidthMost = 1024;
constexpr bool isUnsignedWidth(int type) { return type == kU32 || type == kU64 || type == kU8; }
using Dims = std::vector<int>;
inline int countOf(const Dims& dims) {
  int n = 1;
  for (int d : dims) n *= d;
  return n;
}

inline int64_t fitted(int64_t x, int type) {
  switch (type) {
    case kU32:
      return static_cast<uint32_t>(x);
    case kI32:
      return static_cast<int32_t>(x);
    case kU8:
      return static_cast<uint8_t>(x);
    case kI16:
      return static_cast<int16_t>(x);
    case kF64:
      return x % kWhole;
    default:
      return x;
  }
}

/// Tiles while a kernel is traced. Memory: one number of 32 and one of 64 bits for every element.
struct WidthKernel {
  using Value = Tile;
  Dims dims;
  Tile words, longs;  ///< pointers to u32, u64
  Shape shape() const {
    Shape s;
    for (int d : dims) s.push_back(d);
    return s;
  }
  Value number(int64_t c, int type) {
    if (type == kF64) return full(shape(), double(fitted(c, kF64)), f64);
    if (type == kU64) return full(shape(), uint64_t(c), u64);
    return full(shape(), fitted(c, type), kWidths[type]);
  }
  Value flat(const Value& x) { return broadcast_to(x, shape()); }
  Value place(int axis) {
    Shape line;
    for (int d = 0; d < int(dims.size()); ++d) line.push_back(d == axis ? dims[d] : 1);
    return flat(reshape(arange(0, dims[axis]), line));
  }
  Value index() { return reshape(arange(0, countOf(dims)), shape()); }
  Value cast(const Value& x, int from, int to) {
    if (from == to) return x;
    if (to == kF64)
      return isUnsignedWidth(from) ? tile::cast(tile::cast(x, u64) % kWhole, f64)
                                   : tile::cast(tile::cast(x, i64) % kWhole, f64);
    return tile::cast(from == kF64 ? tile::cast(x, i64) : x, kWidths[to]);
  }
  Value choose(const Value& c, const Value& x, const Value& y) { return where(c, x, y); }
  Value fit(const Value& x, int type) { return type == kF64 ? x % double(kWhole) : x; }
  Value add(const Value& x, const Value& y, int type) { return fit(x + y, type); }
  Value sub(const Value& x, const Value& y, int type) { return fit(x - y, type); }
  Value mul(const Value& x, const Value& y, int type) { return fit(x * y, type); }
  Value div(const Value& x, int64_t by, int type) { return type == kU64 ? x / uint64_t(by) : x / by; }
  Value rem(const Value& x, int64_t by, int type) { return type == kU64 ? x % uint64_t(by) : x % by; }
  Value floorDiv(const Value& x, int64_t by, int) { return floor_div(x, by); }
  Value floorMod(const Value& x, int64_t by, int) { return floor_mod(x, by); }
  Value larger(const Value& x, const Value& y, int) { return max(x, y); }
  Value smaller(const Value& x, const Value& y, int) { return min(x, y); }
  Value less(const Value& x, const Value& y, int) { return x < y; }
  Value same(const Value& x, const Value& y) { return x == y; }
  Value both(const Value& x, const Value& y) { return x & y; }
  Value unlike(const Value& x, const Value& y) { return x ^ y; }
  Value left(const Value& x, int by, int) { return x << by; }
  Value right(const Value& x, int by, int) { return x >> by; }
  Value turned(const Value& x, int by, int) { return rotl(x, by); }
  Value high(const Value& x, const Value& y, int) { return mulhi(x, y); }
  Value ones(const Value& x, int) { return popcount(x); }
  Value zerosAbove(const Value& x, int) { return countl_zero(x); }
  Value permuted(const Value& x, const Dims& order) {
    Shape o;
    for (int d : order) o.push_back(d);
    return reshape(permute(x, o), shape());
  }
  Value sum(const Value& x, int axis, int type) {
    return fit(tile::cast(flat(tile::sum(x, tile::axis(axis))), kWidths[type]), type);
  }
  Value largest(const Value& x, int axis, int) { return flat(tile::max(x, tile::axis(axis))); }
  Value running(const Value& x, int axis, bool reverse, int type) {
    return fit(tile::cast(cumsum(x, tile::axis(axis), {.reverse = reverse}), kWidths[type]), type);
  }
  Value firstLargest(const Value& x, int axis, int) { return flat(argmax(x, tile::axis(axis))); }
  /// Sums of a x + b that begin again where `flag` is set: of u64, u64 and u8.
  std::vector<Value> maps(const Value& a, const Value& b, const Value& flag, int axis, bool reverse) {
    auto out = scan({a, b, flag}, tile::axis(axis),
                    [](Tile a0, Tile b0, Tile f0, Tile a1, Tile b1, Tile f1) {
                      auto fresh = f1 != 0;
                      return std::tuple(where(fresh, a1, a0 * a1), where(fresh, b1, b0 * a1 + b1), f0 | f1);
                    },
                    {.reverse = reverse});
    return {out[0], out[1], out[2]};
  }
  /// The largest pair: of i16 first, of u64 among equals.
  std::vector<Value> largestPair(const Value& x, const Value& y, int axis) {
    auto out = reduce({x, y}, tile::axis(axis), [](Tile x0, Tile y0, Tile x1, Tile y1) {
      auto second = (x1 > x0) | ((x1 == x0) & (y1 > y0));
      return std::tuple(where(second, x1, x0), where(second, y1, y0));
    });
    return {flat(out[0]), flat(out[1])};
  }
  Value sorted(const Value& x, int axis, bool descending, int) {
    return sort(x, tile::axis(axis), {.descending = descending});
  }
  Value order(const Value& x, int axis, bool descending, int) {
    return argsort(x, tile::axis(axis), {.descending = descending});
  }
  Value taken(const Value& x, const Value& at, int axis) { return take(x, at, axis); }
  /// What lies `by` places before (or behind) along the axis, and `filling` where nothing does.
  Value shifted(const Value& x, int axis, int by, int64_t filling, int type) {
    Shape edge = shape(), kept = shape(), from;
    for (size_t d = 0; d < dims.size(); ++d) from.push_back(0);
    edge[axis] = std::abs(by), kept[axis] -= std::abs(by);
    const Value ends = extract(number(filling, type), from, edge);
    if (by > 0) return cat(ends, extract(x, from, kept), axis);
    from[axis] = -by;
    return cat(extract(x, from, kept), ends, axis);
  }
  /// Everyone's own element; `what`: add, max, exchange, compare and swap. Of u32 or u64.
  Value update(int what, bool isLong, const Value& at, const Value& x, const Value& y, const Value& mask) {
    auto p = (isLong ? longs : words) + at;
    const Tile before = what == 0   ? atomic_add(p, x, {.mask = mask})
                        : what == 1 ? atomic_max(p, x, {.mask = mask})
                        : what == 2 ? atomic_exchange(p, x, {.mask = mask})
                                    : atomic_cas(p, y, x, {.mask = mask});
    return where(mask, before, y);
  }
  /// Sums into a few elements; nobody looks at what was there.
  void addTogether(bool isLong, const Value& at, const Value& x) { atomic_add((isLong ? longs : words) + at, x); }
  Value inMemory(bool isLong, const Value& at) { return load((isLong ? longs : words) + at); }
  template <class Body>
  void loop(const Value& trips, Body body) {
    for (auto k : range(0, trips)) body(k);
  }
  /// Some iterations end in the middle: the loop with them (`leaves`), or not.
  template <class Body, class Condition, class Rest>
  void loopInParts(const Value& trips, bool leaves, Body body, Condition ends, Rest rest) {
    for (auto k : range(0, trips)) {
      body();
      const Tile isOver = any(ends());
      leaves ? break_if(isOver) : continue_if(isOver);
      rest();
    }
  }
  template <class Condition, class Body>
  void whileAny(Condition condition, Body body) {
    while_([&] { return any(condition()); }, body);
  }
  template <class Then, class Else>
  void branch(const Value& c, Then then, Else otherwise) {
    if_(c, then, otherwise);
  }
};

/// Elements of a tile, or one that stands for all. u64: as i64.
struct WidthElementsOf {
  std::vector<int64_t> of;
};
struct WidthMemory {
  std::vector<uint32_t> words;
  std::vector<uint64_t> longs;
};

/// Plain loops over them.
struct WidthLoops {
  using Value = WidthElementsOf;
  Dims dims;
  WidthMemory* memory;

  static bool isLess(int64_t a, int64_t b, int type) { return type == kU64 ? uint64_t(a) < uint64_t(b) : a < b; }
  template <class F>
  Value each(const Value& x, const Value& y, F f) {
    Value r{std::vector<int64_t>(size_t(countOf(dims)))};
    for (size_t i = 0; i < r.of.size(); ++i) r.of[i] = f(x.of[x.of.size() > 1 ? i : 0], y.of[y.of.size() > 1 ? i : 0]);
    return r;
  }
  template <class F>
  Value each(const Value& x, F f) {
    return each(x, x, [&](int64_t a, int64_t) { return f(a); });
  }
  Value number(int64_t c, int type) { return {std::vector<int64_t>(size_t(countOf(dims)), fitted(c, type))}; }
  Value flat(const Value& x) {
    return each(x, [](int64_t a) { return a; });
  }
  int stride(int axis) const {
    int s = 1;
    for (int d = axis + 1; d < int(dims.size()); ++d) s *= dims[d];
    return s;
  }
  Value index() {
    Value r = number(0, kI32);
    for (size_t i = 0; i < r.of.size(); ++i) r.of[i] = int64_t(i);
    return r;
  }
  Value place(int axis) {
    return each(index(), [&](int64_t i) { return i / stride(axis) % dims[axis]; });
  }
  Value cast(const Value& x, int from, int to) {
    return each(x, [&](int64_t a) {
      if (to == kF64 && from == kU64) return int64_t(uint64_t(a) % kWhole);
      return fitted(a, to);
    });
  }
  Value choose(const Value& c, const Value& x, const Value& y) {
    Value r = flat(y);
    for (size_t i = 0; i < r.of.size(); ++i)
      if (c.of[c.of.size() > 1 ? i : 0]) r.of[i] = x.of[x.of.size() > 1 ? i : 0];
    return r;
  }
  Value add(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return fitted(int64_t(uint64_t(a) + uint64_t(b)), type); });
  }
  Value sub(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return fitted(int64_t(uint64_t(a) - uint64_t(b)), type); });
  }
  Value mul(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return fitted(int64_t(uint64_t(a) * uint64_t(b)), type); });
  }
  Value div(const Value& x, int64_t by, int type) {
    return each(x,
                [&](int64_t a) { return type == kU64 ? int64_t(uint64_t(a) / uint64_t(by)) : fitted(a / by, type); });
  }
  Value rem(const Value& x, int64_t by, int type) {
    return each(x, [&](int64_t a) { return type == kU64 ? int64_t(uint64_t(a) % uint64_t(by)) : a % by; });
  }
  Value floorDiv(const Value& x, int64_t by, int type) {
    return each(x, [&](int64_t a) { return fitted(a / by - (a % by != 0 && (a % by < 0) != (by < 0)), type); });
  }
  Value floorMod(const Value& x, int64_t by, int) {
    return each(x, [&](int64_t a) { return a % by + (a % by != 0 && (a % by < 0) != (by < 0) ? by : 0); });
  }
  Value larger(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return isLess(a, b, type) ? b : a; });
  }
  Value smaller(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return isLess(b, a, type) ? b : a; });
  }
  Value less(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return isLess(a, b, type); });
  }
  Value same(const Value& x, const Value& y) { return each(x, y, std::equal_to<int64_t>()); }
  Value both(const Value& x, const Value& y) { return each(x, y, std::bit_and<int64_t>()); }
  Value unlike(const Value& x, const Value& y) { return each(x, y, std::bit_xor<int64_t>()); }
  static uint64_t bits(int64_t a, int type) {
    return kWidthBits[type] == 64 ? uint64_t(a) : uint64_t(a) & ((uint64_t(1) << kWidthBits[type]) - 1);
  }
  Value left(const Value& x, int by, int type) {
    return each(x, [&](int64_t a) { return fitted(int64_t(uint64_t(a) << by), type); });
  }
  Value right(const Value& x, int by, int type) {
    return each(x, [&](int64_t a) { return isUnsignedWidth(type) ? int64_t(bits(a, type) >> by) : a >> by; });
  }
  Value turned(const Value& x, int by, int type) {
    const int n = kWidthBits[type];
    return each(x, [&](int64_t a) {
      const uint64_t b = bits(a, type);
      return by ? fitted(int64_t(b << by | b >> (n - by)), type) : a;
    });
  }
  Value high(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) {
      if (type == kU64) return int64_t(static_cast<unsigned __int128>(uint64_t(a)) * uint64_t(b) >> 64);
      return fitted(int64_t(static_cast<__int128>(a) * b >> kWidthBits[type]), type);
    });
  }
  Value ones(const Value& x, int type) {
    return each(x, [&](int64_t a) { return int64_t(std::popcount(bits(a, type))); });
  }
  Value zerosAbove(const Value& x, int type) {
    return each(x, [&](int64_t a) { return int64_t(std::countl_zero(bits(a, type)) - (64 - kWidthBits[type])); });
  }
  Value permuted(const Value& x, const Dims& order) {
    Value r = x;
    for (int i = 0; i < countOf(dims); ++i) {
      int rest = i, from = 0;
      for (int d = int(dims.size()) - 1; d >= 0; --d)
        from += rest % dims[order[d]] * stride(order[d]), rest /= dims[order[d]];
      r.of[i] = x.of[from];
    }
    return r;
  }
  /// Calls f(places of a line along the axis) for every one.
  template <class F>
  void lines(int axis, bool reverse, F f) {
    for (int i = 0; i < countOf(dims); ++i) {
      if (i / stride(axis) % dims[axis]) continue;
      std::vector<int> line;
      for (int k = 0; k < dims[axis]; ++k) line.push_back(i + k * stride(axis));
      if (reverse) std::reverse(line.begin(), line.end());
      f(line);
    }
  }
  Value running(const Value& x, int axis, bool reverse, int type) {
    Value r = x;
    lines(axis, reverse, [&](const std::vector<int>& line) {
      int64_t total = 0;  // of f64 rounded to their range at the end only: sums are exact
      for (int i : line) {
        total = int64_t(uint64_t(total) + uint64_t(x.of[i]));
        r.of[i] = fitted(total, type);
      }
    });
    return r;
  }
  template <class F>
  Value folded(const Value& x, int axis, F f) {
    Value r = x;
    lines(axis, false, [&](const std::vector<int>& line) {
      const int64_t v = f(line);
      for (int i : line) r.of[i] = v;
    });
    return r;
  }
  Value sum(const Value& x, int axis, int type) {
    const Value all = running(x, axis, false, type);
    return folded(x, axis, [&](const std::vector<int>& line) { return all.of[line.back()]; });
  }
  int best(const Value& x, const std::vector<int>& line, int type) {
    int at = 0;
    for (int k = 1; k < int(line.size()); ++k)
      if (isLess(x.of[line[at]], x.of[line[k]], type)) at = k;
    return at;
  }
  Value largest(const Value& x, int axis, int type) {
    return folded(x, axis, [&](const std::vector<int>& line) { return x.of[line[best(x, line, type)]]; });
  }
  Value firstLargest(const Value& x, int axis, int type) {
    return folded(x, axis, [&](const std::vector<int>& line) { return int64_t(best(x, line, type)); });
  }
  std::vector<Value> maps(const Value& a, const Value& b, const Value& flag, int axis, bool reverse) {
    Value ra = a, rb = b, rf = flag;
    lines(axis, reverse, [&](const std::vector<int>& line) {
      for (size_t k = 1; k < line.size(); ++k) {
        const int i = line[k], j = line[k - 1];
        if (!flag.of[i]) {
          rb.of[i] = int64_t(uint64_t(rb.of[j]) * uint64_t(a.of[i]) + uint64_t(b.of[i]));
          ra.of[i] = int64_t(uint64_t(ra.of[j]) * uint64_t(a.of[i]));
        }
        rf.of[i] = rf.of[j] | flag.of[i];
      }
    });
    return {ra, rb, rf};
  }
  std::vector<Value> largestPair(const Value& x, const Value& y, int axis) {
    Value rx = x, ry = y;
    lines(axis, false, [&](const std::vector<int>& line) {
      std::pair<int64_t, uint64_t> most{x.of[line[0]], uint64_t(y.of[line[0]])};
      for (int i : line) most = std::max(most, std::pair(x.of[i], uint64_t(y.of[i])));
      for (int i : line) rx.of[i] = most.first, ry.of[i] = int64_t(most.second);
    });
    return {rx, ry};
  }
  Value sorted(const Value& x, int axis, bool descending, int type) {
    Value r = x;
    lines(axis, descending, [&](const std::vector<int>& line) {
      std::vector<int64_t> all;
      for (int i : line) all.push_back(x.of[i]);
      std::sort(all.begin(), all.end(), [&](int64_t p, int64_t q) { return isLess(p, q, type); });
      for (size_t k = 0; k < all.size(); ++k) r.of[line[k]] = all[k];
    });
    return r;
  }
  Value order(const Value& x, int axis, bool descending, int type) {
    Value r = x;
    lines(axis, false, [&](const std::vector<int>& line) {
      std::vector<int> places(line.size());
      for (size_t k = 0; k < line.size(); ++k) places[k] = int(k);
      std::stable_sort(places.begin(), places.end(), [&](int p, int q) {
        return descending ? isLess(x.of[line[q]], x.of[line[p]], type) : isLess(x.of[line[p]], x.of[line[q]], type);
      });
      for (size_t k = 0; k < line.size(); ++k) r.of[line[k]] = places[k];
    });
    return r;
  }
  Value shifted(const Value& x, int axis, int by, int64_t filling, int type) {
    Value r = x;
    lines(axis, false, [&](const std::vector<int>& line) {
      for (int k = 0; k < int(line.size()); ++k) {
        const int from = k - by;
        r.of[line[k]] = from >= 0 && from < int(line.size()) ? x.of[line[from]] : fitted(filling, type);
      }
    });
    return r;
  }
  Value taken(const Value& x, const Value& at, int axis) {
    Value r = x;
    lines(axis, false, [&](const std::vector<int>& line) {
      for (int i : line) r.of[i] = x.of[line[size_t(at.of[i])]];
    });
    return r;
  }
  Value update(int what, bool isLong, const Value& at, const Value& x, const Value& y, const Value& mask) {
    Value r = flat(y);
    auto one = [&](auto& now, size_t i) {
      using T = std::remove_reference_t<decltype(now)>;
      const T v = T(x.of[i]), before = now;
      now = what == 0 ? T(now + v) : what == 1 ? std::max(now, v) : what == 2 || now == T(y.of[i]) ? v : now;
      r.of[i] = int64_t(before);
    };
    for (size_t i = 0; i < r.of.size(); ++i) {
      if (!mask.of[i]) continue;
      isLong ? one(memory->longs[at.of[i]], i) : one(memory->words[at.of[i]], i);
    }
    return r;
  }
  void addTogether(bool isLong, const Value& at, const Value& x) {
    for (size_t i = 0; i < at.of.size(); ++i)
      isLong ? void(memory->longs[at.of[i]] += uint64_t(x.of[i])) : void(memory->words[at.of[i]] += uint32_t(x.of[i]));
  }
  Value inMemory(bool isLong, const Value& at) {
    return each(at, [&](int64_t i) { return isLong ? int64_t(memory->longs[i]) : int64_t(memory->words[i]); });
  }
  template <class Body>
  void loop(const Value& trips, Body body) {
    for (int64_t k = 0; k < trips.of[0]; ++k) body(Value{{k}});
  }
  static bool isAny(const Value& c) {
    return std::any_of(c.of.begin(), c.of.end(), [](int64_t x) { return x != 0; });
  }
  template <class Body, class Condition, class Rest>
  void loopInParts(const Value& trips, bool leaves, Body body, Condition ends, Rest rest) {
    for (int64_t k = 0; k < trips.of[0]; ++k) {
      body();
      if (!isAny(ends()))
        rest();
      else if (leaves)
        break;
    }
  }
  template <class Condition, class Body>
  void whileAny(Condition condition, Body body) {
    while (isAny(condition())) body();
  }
  template <class Then, class Else>
  void branch(const Value& c, Then then, Else otherwise) {
    c.of[0] ? then() : otherwise();
  }
};

}  // namespace tile::testing
