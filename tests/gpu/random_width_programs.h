// random_width_programs.h - the statements of random_widths.h, chosen by a number.
#pragma once
#include <vector>

#include "tests/gpu/random_widths.h"

namespace tile::testing {

/// Sizes of a program.
struct WidthSizes : private Choices {
  explicit WidthSizes(int seed) : Choices(seed) {
    static const std::vector<Dims> shapes = {{105},        {3, 5, 7},   {2, 3, 4, 5}, {6, 10},  {33},         {16, 24},
                                             {4, 8, 16},   {1, 7, 64},  {5, 1, 9, 4}, {128},    {2, 2, 2, 2}, {31, 3},
                                             {8, 2, 8, 2}, {12, 32},    {1, 256},     {64, 5},  {4, 4, 3, 4}, {7},
                                             {256, 2},     {2, 128, 2}, {48, 16},     {9, 9, 9}};
    dims = shapes[size_t(number(int64_t(shapes.size())))];
    warps = 1 << number(3);
    inner = number(2000000);
  }
  Dims dims;
  int warps = 1, inner = 0;
};

/// Statements over a pool of values, and one variable of every type, which loops carry and branches merge.
template <class Machine>
class WidthProgram {
 public:
  using Value = typename Machine::Value;

  WidthProgram(int seed, Machine machine) : m_(std::move(machine)), seed_(seed) {}

  /// `in`: a tile of every type; `scalars`: one value of every type; `trips`: of loops.
  std::vector<Value> run(const std::vector<Value>& in, const std::vector<Value>& scalars, const Value& trips) {
    Choices c(seed_);
    variables_ = in, scalars_ = scalars, trips_ = trips;
    const int parts = 1 + c.number(3);
    for (int part = 0; part < parts; ++part) construct(c.number(1 << 20), 2);
    return variables_;
  }

 private:
  struct Item {
    int type;
    Value value;
  };

  void construct(int seed, int depth) {
    Choices c(seed);
    const int inner = c.number(1 << 20), kind = depth ? c.number(8) : 0;
    switch (kind) {
      case 0:
        step(inner, 5, nullptr);
        break;
      case 1:
        m_.branch(
            m_.less(scalars_[kI32], scalars_[kI64], kI64), [&] { construct(inner, depth - 1); },
            [&] { construct(inner + 1, depth - 1); });
        break;
      case 2:
        m_.loop(trips_, [&](const Value&) {
          step(inner, 3, nullptr);
          if (depth > 1) construct(inner + 1, depth - 1);
        });
        break;
      case 3: {
        const int type = c.number(kWidthTypes);
        const bool leaves = c.one_in(2);
        const int64_t limit = fitted(c.one_in(2) ? 3 : constant(c, type), type);
        m_.loopInParts(
            trips_, leaves, [&] { step(inner, 3, nullptr); },
            [&] { return m_.less(variables_[size_t(type)], m_.number(limit, type), type); },
            [&] { construct(inner + 1, depth - 1); });
        break;
      }
      default:
        leaving(inner, kind == 4 ? 1 : depth);
    }
  }

  /// Elements stay for as many rounds as their own number says. What is done stays as it is, or goes on with the rest.
  void leaving(int seed, int depth) {
    Choices c(seed);
    const int inner = c.number(1 << 20), type = c.pick_of({kU32, kU64, kI32, kI64, kU8, kI16, kF64}),
              most = 1 + c.number(5);
    const bool stays = !c.one_in(3), counts = c.one_in(2), nested = depth > 1 && c.one_in(3);
    Value rounds = type == kF64 ? m_.cast(m_.rem(variables_[kU32], most + 1, kU32), kU32, kF64)
                                : m_.rem(variables_[size_t(type)], most + 1, type);
    const Value zero = m_.number(0, type), one = m_.number(1, type);
    Value active = m_.less(zero, rounds, type);
    m_.whileAny([&] { return counts ? m_.less(zero, rounds, type) : active; },
                [&] {
                  const Value now = counts ? m_.less(zero, rounds, type) : active;
                  step(inner, 3, stays ? &now : nullptr);
                  if (nested) construct(inner + 1, depth - 1);
                  rounds = m_.choose(now, m_.sub(rounds, one, type), rounds);
                  if (!counts) active = m_.both(active, m_.less(zero, rounds, type));
                });
  }

  /// New values, of which some become the variables: of the elements that `mask` lets.
  void step(int seed, int statements, const Value* mask) {
    Choices c(seed);
    std::vector<Item> pool;
    for (int t = 0; t < kWidthTypes; ++t) pool.push_back({t, variables_[size_t(t)]});
    for (int i = 0; i < statements; ++i) statement(c, pool, mask);
    for (int t = 0; t < kWidthTypes; ++t) {
      if (c.one_in(3)) continue;
      const Item from = pool[pool.size() - 1 - size_t(c.number(std::min<int64_t>(statements, int64_t(pool.size()))))];
      const Value value = m_.cast(from.value, from.type, t);
      variables_[size_t(t)] = mask ? m_.choose(*mask, value, variables_[size_t(t)]) : value;
    }
  }

  Value operand(Choices& c, const std::vector<Item>& pool, int type) {
    if (c.one_in(10)) return m_.cast(m_.index(), kI32, type);
    if (c.one_in(8)) return m_.number(constant(c, type), type);
    if (c.one_in(10)) return m_.flat(scalars_[size_t(type)]);
    for (int tries = 0; tries < 6; ++tries)
      if (const Item& one = pool[size_t(c.number(int64_t(pool.size())))]; one.type == type) return one.value;
    const Item& any = pool[size_t(c.number(int64_t(pool.size())))];
    return m_.cast(any.value, any.type, type);
  }
  int64_t constant(Choices& c, int type) {
    if (c.one_in(2)) return c.number(9);
    const int64_t wide = int64_t(c.number(1 << 30)) << 33 | c.number(1 << 30);
    return fitted(c.one_in(2) ? wide : wide >> c.number(50), type);
  }
  /// Not 0, and in the range of the type.
  int64_t divisor(Choices& c, int type) {
    const bool wide = type == kU64 || type == kI64;
    const int kind = c.number(6);
    if (type == kU8) return c.pick_of({2, 3, 7, 10, 16, 100, 127, 128, 200, 255});
    if (type == kI16) return c.pick_of({2, 3, 7, 10, -3, 100, -128, 1000, 4096, 32767});
    if (kind == 0 && wide) return (int64_t(1) << 33) + c.number(1000);
    if (kind == 1 && wide) return 10000000000;
    if (kind == 2 && type == kU32) return 0xfffffffbll - c.number(3);
    if (kind == 3) return c.pick_of({1, 2, 4, 64, 65536, 1 << 30});
    if (kind == 4 && !isUnsignedWidth(type)) return -c.pick_of({2, 3, 7, 16, 641, 1000003});
    return c.pick_of({3, 5, 6, 7, 9, 10, 11, 13, 25, 60, 100, 125, 641, 1000, 3600, 10007, 65535, 65537, 0x7fffffff});
  }

  void statement(Choices& c, std::vector<Item>& pool, const Value* mask) {
    const int kind = c.number(14);
    if (kind == 0) return update(c, pool, mask);
    if (kind == 1) return together(c, pool, mask);
    const int type = c.number(kWidthTypes);
    const Value x = operand(c, pool, type);
    if (kind < 5)
      across(c, pool, x, type);
    else
      pool.push_back({type, element(c, pool, x, type)});
  }

  Value element(Choices& c, const std::vector<Item>& pool, const Value& x, int type) {
    int kind = c.number(18);
    if (type == kF64 && kind >= 6) kind %= 6;
    switch (kind) {
      case 0:
        return m_.add(x, operand(c, pool, type), type);
      case 1:
        return m_.sub(x, operand(c, pool, type), type);
      case 2:
        return m_.mul(x, operand(c, pool, type), type);
      case 3:
        return c.one_in(2) ? m_.larger(x, operand(c, pool, type), type) : m_.smaller(x, operand(c, pool, type), type);
      case 4: {
        const int other = c.number(kWidthTypes);
        const Value a = operand(c, pool, other), b = operand(c, pool, other), y = operand(c, pool, type);
        return m_.choose(c.one_in(3) ? m_.same(a, b) : m_.less(a, b, other), x, y);
      }
      case 5: {
        const int other = c.number(kWidthTypes);
        return m_.cast(operand(c, pool, other), other, type);
      }
      case 6:
      case 7:
        return m_.div(x, divisor(c, type), type);
      case 8:
      case 9:
        return m_.rem(x, divisor(c, type), type);
      case 10:
        return isUnsignedWidth(type) ? m_.div(x, divisor(c, type), type) : m_.floorDiv(x, divisor(c, type), type);
      case 11:
        return isUnsignedWidth(type) ? m_.rem(x, divisor(c, type), type) : m_.floorMod(x, divisor(c, type), type);
      case 12:
        return m_.left(x, c.number(kWidthBits[type]), type);
      case 13:
        return m_.right(x, c.number(kWidthBits[type]), type);
      case 14:
        return m_.turned(x, c.number(kWidthBits[type]), type);
      case 15: {
        const Value y = operand(c, pool, type);
        return kWidthBits[type] >= 32 ? m_.high(x, y, type) : m_.unlike(x, y);
      }
      case 16:
        return c.one_in(2) ? m_.ones(x, type) : m_.zerosAbove(x, type);
      default: {
        const Value y = operand(c, pool, type);
        return c.one_in(2) ? m_.both(x, y) : m_.unlike(x, y);
      }
    }
  }

  void across(Choices& c, std::vector<Item>& pool, const Value& x, int type) {
    const int rank = int(m_.dims.size()), axis = c.number(rank);
    switch (c.number(14)) {
      case 0:
        return pool.push_back({type, m_.sum(x, axis, type)});
      case 1:
        return pool.push_back({type, m_.largest(x, axis, type)});
      case 2: {
        const bool reverse = c.one_in(2);
        return pool.push_back({type, m_.running(x, axis, reverse, type)});
      }
      case 3:
        return pool.push_back({kI32, m_.firstLargest(x, axis, type)});
      case 4:
      case 5: {
        const Value a = operand(c, pool, kU64), b = operand(c, pool, kU64);
        const Value fresh = m_.same(m_.rem(operand(c, pool, kI32), 5, kI32), m_.number(0, kI32));
        return pushMaps(c, pool, a, b, fresh, axis);
      }
      case 6: {
        const Value a = operand(c, pool, kI16), b = operand(c, pool, kU64);
        const auto out = m_.largestPair(a, b, axis);
        return pool.push_back({kI16, out[0]}), pool.push_back({kU64, out[1]});
      }
      case 7: {
        const bool descending = c.one_in(2);
        return pool.push_back({type, type == kU8 ? m_.largest(x, axis, type) : m_.sorted(x, axis, descending, type)});
      }
      case 8: {
        const Value at = m_.floorMod(operand(c, pool, kI32), m_.dims[size_t(axis)], kI32);
        return pool.push_back({type, m_.taken(x, at, axis)});
      }
      case 9: {
        const bool descending = c.one_in(2);
        return pool.push_back({kI32, m_.order(x, axis, descending, type)});
      }
      case 10:
      case 11: {
        const int size = m_.dims[size_t(axis)], by = size > 1 ? 1 + c.number(size - 1) : 0;
        const bool forward = c.one_in(2);
        if (by == 0) return pool.push_back({type, x});
        return pool.push_back({type, m_.shifted(x, axis, forward ? by : -by, constant(c, type), type)});
      }
      default: {
        Dims order;
        for (int d = 0; d < rank; ++d) order.push_back(d);
        c.shuffle(order);
        return pool.push_back({type, m_.permuted(x, order)});
      }
    }
  }
  void pushMaps(Choices& c, std::vector<Item>& pool, const Value& a, const Value& b, const Value& fresh, int axis) {
    const Value flag = m_.choose(fresh, m_.number(1, kU8), m_.number(0, kU8));
    const bool reverse = c.one_in(2);
    const auto out = m_.maps(a, b, flag, axis, reverse);
    pool.push_back({kU64, out[0]}), pool.push_back({kU8, out[2]}), pool.push_back({kU64, out[1]});
  }

  /// Everyone's own place, in another order than the elements have.
  Value ownPlace(Choices& c) {
    const int n = countOf(m_.dims);
    if (c.one_in(2)) return m_.index();
    return m_.sub(m_.number(n - 1, kI32), m_.index(), kI32);
  }
  void update(Choices& c, std::vector<Item>& pool, const Value* mask) {
    const bool isLong = c.one_in(2);
    const int what = c.number(4), type = isLong ? kU64 : kU32;
    const Value at = ownPlace(c), x = operand(c, pool, type), y = operand(c, pool, type), z = operand(c, pool, kI32);
    const Value allowed = m_.less(z, m_.number(1 << 20, kI32), kI32);
    pool.push_back({type, m_.update(what, isLong, at, x, y, mask ? m_.both(allowed, *mask) : allowed)});
  }
  void together(Choices& c, std::vector<Item>& pool, const Value* mask) {
    const bool isLong = c.one_in(2);
    const int type = isLong ? kU64 : kU32, few = std::min(countOf(m_.dims), c.pick_of({1, 3, 16, 100}));
    const Value at = m_.floorMod(operand(c, pool, kI32), few, kI32);
    Value x = operand(c, pool, type);
    if (mask) x = m_.choose(*mask, x, m_.number(0, type));
    m_.addTogether(isLong, at, x);
    if (c.one_in(2)) pool.push_back({type, m_.inMemory(isLong, m_.index())});
  }

  Machine m_;
  int seed_;
  std::vector<Value> variables_, scalars_;
  Value trips_{};
};

}  // namespace tile::testing
