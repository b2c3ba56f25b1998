// random_integers.h - random programs over integers of 8 to 64 bits, signed and not: what is widened, narrowed, added,
// compared, chosen, shifted, reduced and carried through loops and branches. The same statements are recorded as a
// kernel and, on another machine, executed element by element.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/gpu/random_choices.h"

namespace tile::testing {

/// The elements, in the order of the arrays in memory.
inline constexpr DType kIntegers[] = {i16, u16, i8, u8, i32, i64};
inline constexpr int kIntegerTypes = 6;
inline constexpr int kBits[] = {16, 16, 8, 8, 32, 64};
constexpr bool isSignedType(int type) { return type != 1 && type != 3; }

inline int64_t wrapped(int64_t x, int type) {
  switch (type) {
    case 0:
      return static_cast<int16_t>(x);
    case 1:
      return static_cast<uint16_t>(x);
    case 2:
      return static_cast<int8_t>(x);
    case 3:
      return static_cast<uint8_t>(x);
    case 4:
      return static_cast<int32_t>(x);
    default:
      return x;
  }
}

/// A table has an element for every number of 16 bits, or of 8, from the least of them on.
inline constexpr int kTableOfIntegers = 1 << 16;
constexpr int firstPlace(int type) { return isSignedType(type) ? 1 << (kBits[type] - 1) : 0; }
inline int16_t inTable(int place) { return static_cast<int16_t>(static_cast<uint32_t>(place) * 40503u >> 3); }

/// Tiles while a kernel is traced.
struct IntegerKernel {
  using Value = Tile;
  int rows, columns;
  Ptr<const int16_t> table;
  Value constant(int64_t c, int type) { return full({rows, columns}, wrapped(c, type), kIntegers[type]); }
  Value cast(const Value& x, int type) { return tile::cast(x, kIntegers[type]); }
  Value choose(const Value& c, const Value& x, const Value& y) { return where(c, x, y); }
  Value flat(const Value& x) { return broadcast_to(x, {rows, columns}); }
  Value places(int along, int type) {
    return flat(tile::cast(along ? arange(0, columns).row() : arange(0, rows).col(), kIntegers[type]));
  }
  Value found(const Value& x, int type) { return cast(load(table + firstPlace(type) + tile::cast(x, i32)), type); }
  Value turned(const Value& x) { return reshape(trans(x), {rows, columns}); }
  Value throughHalves(const Value& c, const Value& x, const Value& y, int type) {
    return bitcast(where(c, bitcast(x, f16), bitcast(y, f16)), kIntegers[type]);
  }
  Value sum(const Value& x, int along, int type) { return flat(cast(tile::sum(x, axis(along)), type)); }
  Value running(const Value& x, int along, bool reverse, int type) {
    return cast(cumsum(x, axis(along), {.reverse = reverse}), type);
  }
  Value narrowSum(const Value& x, int along) {
    return flat(reduce(x, axis(along), [](Tile a, Tile b) { return a + b; }));
  }
  Value largest(const Value& x, int along) { return flat(tile::max(x, axis(along))); }
  Value smallest(const Value& x, int along) { return flat(tile::min(x, axis(along))); }
  Value runningLargest(const Value& x, int along, bool reverse) {
    return scan(x, axis(along), [](Tile a, Tile b) { return max(a, b); }, {.reverse = reverse});
  }
  Value added(const Value& x, const Value& y, int) { return x + y; }
  Value less(const Value& x, const Value& y, int) { return x - y; }
  Value times(const Value& x, const Value& y, int) { return x * y; }
  Value both(const Value& x, const Value& y) { return x & y; }
  Value either(const Value& x, const Value& y) { return x | y; }
  Value unlike(const Value& x, const Value& y) { return x ^ y; }
  Value larger(const Value& x, const Value& y) { return max(x, y); }
  Value smaller(const Value& x, const Value& y) { return min(x, y); }
  Value below(const Value& x, const Value& y) { return x < y; }
  Value same(const Value& x, const Value& y) { return x == y; }
  Value left(const Value& x, const Value& by, int) { return x << by; }
  Value right(const Value& x, const Value& by) { return x >> by; }
  Value quotient(const Value& x, int64_t by) { return x / by; }
  Value rest(const Value& x, int64_t by) { return x % by; }
  Value opposite(const Value& x, int) { return -x; }
  Value flipped(const Value& x, int) { return ~x; }
  Value size(const Value& x, int) { return abs(x); }
  template <class Body>
  void loop(const Tile& trips, Body body) {
    for (auto k : range(0, trips)) body(k);
  }
  template <class Then, class Else>
  void branch(const Tile& c, Then then, Else otherwise) {
    if_(c, then, otherwise);
  }
};

/// Elements of a tile, or one that stands for all.
struct Elements {
  std::vector<int64_t> of;
};

/// Plain loops over them.
struct IntegerLoops {
  using Value = Elements;
  int rows, columns;

  template <class F>
  Value each(const Value& x, const Value& y, F f) {
    Value r{std::vector<int64_t>(std::max(x.of.size(), y.of.size()))};
    for (size_t i = 0; i < r.of.size(); ++i) r.of[i] = f(x.of[x.of.size() > 1 ? i : 0], y.of[y.of.size() > 1 ? i : 0]);
    return r;
  }
  template <class F>
  Value each(const Value& x, F f) {
    return each(x, x, [&](int64_t a, int64_t) { return f(a); });
  }
  Value constant(int64_t c, int type) { return {std::vector<int64_t>(size_t(rows * columns), wrapped(c, type))}; }
  Value cast(const Value& x, int type) {
    return each(x, [&](int64_t a) { return wrapped(a, type); });
  }
  Value choose(const Value& c, const Value& x, const Value& y) {
    Value r = each(c, each(x, y, [](int64_t a, int64_t) { return a; }), [](int64_t, int64_t b) { return b; });
    for (size_t i = 0; i < r.of.size(); ++i)
      if (!c.of[c.of.size() > 1 ? i : 0]) r.of[i] = y.of[y.of.size() > 1 ? i : 0];
    return r;
  }
  Value flat(const Value& x) {
    return each(x, constant(0, 5), [](int64_t a, int64_t) { return a; });
  }
  Value places(int along, int type) {
    Value r = constant(0, type);
    for (int i = 0; i < rows * columns; ++i) r.of[i] = wrapped(along ? i % columns : i / columns, type);
    return r;
  }
  Value found(const Value& x, int type) {
    return each(x, [&](int64_t a) { return wrapped(inTable(firstPlace(type) + static_cast<int>(a)), type); });
  }
  Value turned(const Value& x) {
    Value r = x;
    for (int i = 0; i < rows * columns; ++i) r.of[i] = x.of[i % rows * columns + i / rows];
    return r;
  }
  Value throughHalves(const Value& c, const Value& x, const Value& y, int) { return choose(c, x, y); }
  /// Every element becomes f of those of its row or column before it (or behind it), and itself.
  template <class F>
  Value scanned(const Value& x, int along, bool reverse, F f) {
    Value r = x;
    const int count = along ? columns : rows, others = along ? rows : columns;
    for (int o = 0; o < others; ++o)
      for (int i = 1; i < count; ++i) {
        auto at = [&](int k) { return reverse ? count - 1 - k : k; };
        auto place = [&](int k) { return along ? o * columns + at(k) : at(k) * columns + o; };
        r.of[place(i)] = f(r.of[place(i - 1)], x.of[place(i)]);
      }
    return r;
  }
  template <class F>
  Value reduced(const Value& x, int along, F f) {
    const Value all = scanned(x, along, false, f);
    Value r = all;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        r.of[i * columns + j] = all.of[along ? i * columns + columns - 1 : (rows - 1) * columns + j];
    return r;
  }
  static int64_t plus(int64_t a, int64_t b) { return static_cast<int64_t>(uint64_t(a) + uint64_t(b)); }
  static int64_t most(int64_t a, int64_t b) { return std::max(a, b); }
  static int64_t least(int64_t a, int64_t b) { return std::min(a, b); }
  Value sum(const Value& x, int along, int type) { return cast(reduced(x, along, plus), type); }
  Value running(const Value& x, int along, bool reverse, int type) {
    return cast(scanned(x, along, reverse, plus), type);
  }
  int typeOfSums = 0;  ///< set before narrowSum
  Value narrowSum(const Value& x, int along) { return cast(reduced(x, along, plus), typeOfSums); }
  Value largest(const Value& x, int along) { return reduced(x, along, most); }
  Value smallest(const Value& x, int along) { return reduced(x, along, least); }
  Value runningLargest(const Value& x, int along, bool reverse) { return scanned(x, along, reverse, most); }
  Value added(const Value& x, const Value& y, int type) { return cast(each(x, y, plus), type); }
  Value less(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return wrapped(int64_t(uint64_t(a) - uint64_t(b)), type); });
  }
  Value times(const Value& x, const Value& y, int type) {
    return each(x, y, [&](int64_t a, int64_t b) { return wrapped(int64_t(uint64_t(a) * uint64_t(b)), type); });
  }
  Value both(const Value& x, const Value& y) { return each(x, y, std::bit_and<int64_t>()); }
  Value either(const Value& x, const Value& y) { return each(x, y, std::bit_or<int64_t>()); }
  Value unlike(const Value& x, const Value& y) { return each(x, y, std::bit_xor<int64_t>()); }
  Value larger(const Value& x, const Value& y) { return each(x, y, most); }
  Value smaller(const Value& x, const Value& y) { return each(x, y, least); }
  Value below(const Value& x, const Value& y) { return each(x, y, std::less<int64_t>()); }
  Value same(const Value& x, const Value& y) { return each(x, y, std::equal_to<int64_t>()); }
  Value left(const Value& x, const Value& by, int type) {
    return each(x, by, [&](int64_t a, int64_t b) { return wrapped(int64_t(uint64_t(a) << b), type); });
  }
  Value right(const Value& x, const Value& by) {
    return each(x, by, [](int64_t a, int64_t b) { return a >> b; });
  }
  Value quotient(const Value& x, int64_t by) {
    return each(x, [&](int64_t a) { return a / by; });
  }
  Value rest(const Value& x, int64_t by) {
    return each(x, [&](int64_t a) { return a % by; });
  }
  Value opposite(const Value& x, int type) { return less(Value{{0}}, x, type); }
  Value flipped(const Value& x, int type) {
    return each(x, [&](int64_t a) { return wrapped(~a, type); });
  }
  Value size(const Value& x, int type) {
    return each(x, [&](int64_t a) { return a < 0 ? wrapped(int64_t(0 - uint64_t(a)), type) : a; });
  }
  template <class Body>
  void loop(const Value& trips, Body body) {
    for (int64_t k = 0; k < trips.of[0]; ++k) body(Value{{k}});
  }
  template <class Then, class Else>
  void branch(const Value& c, Then then, Else otherwise) {
    c.of[0] ? then() : otherwise();
  }
};

/// Sizes of a program.
struct IntegerSizes : private Choices {
  explicit IntegerSizes(int seed) : Choices(seed) {
    warps = 1 << number(3);
    rows = pick_of({1, 1, 2, 3, 4, 8, 16}), columns = pick_of({8, 12, 16, 24, 32, 64, 96, 128, 256});
    isLong = one_in(3) && rows * columns <= 512 * warps;  // registers hold a few tiles
    if (rows * columns > 1024 * warps) rows = 1;
    inner = number(2000000);
  }
  int warps = 1, rows = 1, columns = 8, inner = 0;
  bool isLong = false;  ///< four times as many elements, so that threads have more of them
  int allColumns() const { return columns * (isLong ? 4 : 1); }
};
inline constexpr int kMostIntegers = 16 * 1024;

/// Statements over a pool of values, and one variable of every type, which loops carry and branches merge.
template <class Machine>
class IntegerProgram {
 public:
  using Value = typename Machine::Value;
  struct Item {
    int type;
    Value value;
  };

  IntegerProgram(int seed, Machine machine) : m_(machine), seed_(seed) {}

  /// `in`: a tile of every type; `scalars`: one value of every type; `trips`: of loops.
  std::vector<Value> run(const std::vector<Value>& in, const std::vector<Value>& scalars, const Value& trips) {
    Choices c(seed_);
    variables_ = in, scalars_ = scalars, counter_ = trips;
    const int parts = 1 + c.number(3);
    for (int part = 0; part < parts; ++part) {
      const int inner = c.number(1 << 20);
      switch (c.number(4)) {
        case 0:
          step(inner, 8);
          break;
        case 1:
          m_.branch(
              m_.below(scalars_[4], trips), [&] { step(inner, 5); }, [&] { step(inner + 1, 5); });
          break;
        default:
          m_.loop(trips, [&](const Value& k) {
            counter_ = k;
            step(inner, 6);
          });
          counter_ = trips;
      }
      counter_ = trips;
    }
    return variables_;
  }

 private:
  /// New values, of which some become the variables.
  void step(int seed, int statements) {
    Choices c(seed);
    std::vector<Item> pool;
    for (int t = 0; t < kIntegerTypes; ++t) pool.push_back({t, variables_[size_t(t)]});
    for (int i = 0; i < statements; ++i) statement(c, pool);
    for (int t = 0; t < kIntegerTypes; ++t) {
      if (c.one_in(3)) continue;
      const Item& from = pool[pool.size() - 1 - size_t(c.number(statements))];
      variables_[size_t(t)] = m_.cast(from.value, t);
    }
  }

  /// A tile of the pool, as one of the type: most are of it already.
  Value operand(Choices& c, const std::vector<Item>& pool, int type) {
    if (c.one_in(10)) return m_.places(c.number(2), type);
    if (c.one_in(8)) return m_.constant(c.one_in(2) ? c.number(8) : c.number(256) * 257 - 20000, type);
    for (int tries = 0; tries < 6; ++tries)
      if (const Item& one = pool[size_t(c.number(int64_t(pool.size())))]; one.type == type) return one.value;
    return m_.cast(pool[size_t(c.number(int64_t(pool.size())))].value, type);
  }
  /// What may be one number for all.
  Value second(Choices& c, const std::vector<Item>& pool, int type) {
    if (c.one_in(10)) return scalars_[size_t(type)];
    if (c.one_in(12)) return m_.cast(counter_, type);
    return operand(c, pool, type);
  }

  void statement(Choices& c, std::vector<Item>& pool) {
    const int type = c.pick_of({0, 0, 0, 1, 1, 1, 2, 3, 3, 4, 5});
    const Value x = operand(c, pool, type);
    pool.push_back({type, c.one_in(5) ? across(c, pool, x, type) : element(c, pool, x, type)});
  }

  Value element(Choices& c, const std::vector<Item>& pool, const Value& x, int type) {
    switch (c.number(22)) {
      case 20:
      case 21: {
        // Neighbours in memory, but for where numbers of few bits begin again.
        const int by = c.number(65536) & -c.pick_of({1, 4, 16, 128});
        const Value place = c.one_in(3) ? x : m_.added(m_.places(c.number(2), type), m_.constant(by, type), type);
        return type < 4 ? m_.found(place, type) : m_.rest(place, c.pick_of({3, 4, 10, 64}));
      }
      case 0:
      case 1:
        return m_.added(x, second(c, pool, type), type);
      case 2:
      case 3:
      case 4:
        return m_.less(x, second(c, pool, type), type);
      case 5:
        return m_.less(second(c, pool, type), x, type);
      case 6:
        return m_.times(x, second(c, pool, type), type);
      case 7:
        return m_.both(x, second(c, pool, type));
      case 8:
        return m_.either(x, second(c, pool, type));
      case 9:
        return m_.unlike(x, second(c, pool, type));
      case 10:
      case 11:
        return m_.larger(x, second(c, pool, type));
      case 12:
      case 13:
        return m_.smaller(x, second(c, pool, type));
      case 14: {
        const int other = c.number(kIntegerTypes);
        const Value a = operand(c, pool, other), b = operand(c, pool, other), y = operand(c, pool, type);
        const Value when = c.one_in(3) ? m_.same(a, b) : m_.below(a, b);
        if (type < 2 && c.one_in(3)) return m_.throughHalves(when, x, y, type);
        return m_.choose(when, x, y);
      }
      case 15: {
        const Value by = c.one_in(2) ? m_.constant(c.number(kBits[type]), type)
                                     : m_.both(operand(c, pool, type), m_.constant(kBits[type] - 1, type));
        return c.one_in(2) ? m_.left(x, by, type) : m_.right(x, by);
      }
      case 16: {
        const int by = c.pick_of({2, 3, 7, 8, 10, 100});
        return c.one_in(2) ? m_.quotient(x, by) : m_.rest(x, by);
      }
      case 17:
        return c.one_in(2) ? m_.opposite(x, type) : m_.flipped(x, type);
      case 18:
        return isSignedType(type) ? m_.size(x, type) : m_.flipped(x, type);
      default:
        return m_.cast(operand(c, pool, c.number(kIntegerTypes)), type);
    }
  }

  Value across(Choices& c, const std::vector<Item>& pool, const Value& x, int type) {
    const int along = c.number(2);
    switch (c.number(7)) {
      case 0:
        return m_.sum(x, along, type);
      case 1:
        return m_.largest(x, along);
      case 2:
        return m_.smallest(x, along);
      case 3:
        return m_.running(x, along, c.one_in(2), type);
      case 4:
        return m_.runningLargest(x, along, c.one_in(2));
      case 5:
        if constexpr (requires { m_.typeOfSums; }) m_.typeOfSums = type;
        return m_.narrowSum(x, along);
      default:
        return m_.less(m_.turned(x), operand(c, pool, type), type);
    }
  }

  Machine m_;
  int seed_;
  std::vector<Value> variables_, scalars_;
  Value counter_{};
};

}  // namespace tile::testing
