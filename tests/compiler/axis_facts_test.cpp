// The algebra of contiguity, divisibility and constancy against brute force: random small index expressions are evaluated
// element by element, and every claim must hold for the values.
#include "compiler/analysis/axis_facts.h"

#include <gtest/gtest.h>

#include <random>

namespace tile::ir {
namespace {

/// A tile with its values, and what is claimed about it.
struct Sample {
  std::vector<int64_t> shape, values;
  AxisFacts facts;
};

int64_t at(const Sample& s, const std::vector<int64_t>& coord) {
  int64_t index = 0;
  for (size_t d = 0; d < s.shape.size(); ++d) index = index * s.shape[d] + coord[d];
  return s.values[static_cast<size_t>(index)];
}

/// The first claim that does not hold; empty when all do.
std::string violation(const Sample& s) {
  const size_t rank = s.shape.size();
  for (size_t d = 0; d < rank; ++d) {
    if (s.shape[d] % s.facts.contiguity[d] || s.shape[d] % s.facts.constancy[d]) return "groups do not divide dim " + std::to_string(d);
    std::vector<int64_t> coord(rank, 0);
    for (size_t i = 0; i < s.values.size(); ++i) {
      size_t rest = i;
      for (size_t k = rank; k-- > 0;) coord[k] = static_cast<int64_t>(rest % static_cast<size_t>(s.shape[k])), rest /= static_cast<size_t>(s.shape[k]);
      const int64_t v = at(s, coord), x = coord[d];
      std::vector<int64_t> previous = coord;
      --previous[d];
      if (x % s.facts.contiguity[d] == 0) {
        if (v % s.facts.divisibility[d]) return "divisibility along dim " + std::to_string(d) + ": " + std::to_string(v);
      } else if (v != at(s, previous) + 1) {
        return "contiguity along dim " + std::to_string(d);
      }
      if (x % s.facts.constancy[d] && v != at(s, previous)) return "constancy along dim " + std::to_string(d);
    }
  }
  return "";
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Sample make(const std::vector<int64_t>& shape, int depth) {
    if (depth == 0) return leaf(shape);
    switch (pick(10)) {
      case 0: return combine(make(shape, depth - 1), make(shape, depth - 1), addAxis, [](int64_t a, int64_t b) { return a + b; });
      case 1: return combine(make(shape, depth - 1), make(shape, depth - 1), subAxis, [](int64_t a, int64_t b) { return a - b; });
      case 2: return combine(make(shape, depth - 1), make(shape, depth - 1), mulAxis, [](int64_t a, int64_t b) { return a * b; });
      case 3: return combine(make(shape, depth - 1), make(shape, depth - 1), eitherAxis, [](int64_t a, int64_t b) { return std::min(a, b); });
      case 4: {
        const int64_t known = 1 + static_cast<int64_t>(pick(12)), by = known * (1 + 2 * static_cast<int64_t>(pick(2)));
        return map(make(shape, depth - 1), [&](const AxisFacts& f) { return floorDivAxis(f, known, by == known); },
                   [&](int64_t v) { return v >= 0 ? v / by : -((-v + by - 1) / by); });
      }
      case 5: {
        const int64_t known = 1 + static_cast<int64_t>(pick(12)), by = known * (1 + 2 * static_cast<int64_t>(pick(2)));
        return map(make(shape, depth - 1), [&](const AxisFacts& f) { return floorRemAxis(f, known); }, [&](int64_t v) { return ((v % by) + by) % by; });
      }
      case 6: {  // a comparison, then a choice by it
        Sample a = make(shape, depth - 1), b = make(shape, depth - 1), c = make(shape, depth - 1);
        Sample less = combine(a, b, [&](const AxisFacts& x, const AxisFacts& y) { return compareAxis(shape, x, y); }, [](int64_t x, int64_t y) { return x < y ? 1 : 0; });
        EXPECT_EQ(violation(less), "");
        Sample r{shape, a.values, selectAxis(less.facts, a.facts, c.facts)};
        for (size_t i = 0; i < r.values.size(); ++i) r.values[i] = less.values[i] ? a.values[i] : c.values[i];
        return r;
      }
      case 7: {  // broadcast along one dim
        const size_t d = pick(shape.size());
        std::vector<int64_t> small = shape;
        small[d] = 1;
        Sample a = make(small, depth - 1);
        Sample r{shape, {}, broadcastAxis(a.facts, small, shape)};
        forEach(shape, [&](std::vector<int64_t> coord) {
          coord[d] = 0;
          r.values.push_back(at(a, coord));
        });
        return r;
      }
      case 8: {  // reshape from another factorisation
        int64_t count = 1;
        for (int64_t s : shape) count *= s;
        std::vector<int64_t> from;
        for (int64_t left = count; left > 1;) {
          int64_t f = 2;
          while (left % f) ++f;
          if (pick(2) && left % (f * 2) == 0) f *= 2;
          from.push_back(f);
          left /= f;
          if (pick(3) == 0) {
            from.push_back(left);
            break;
          }
        }
        if (from.empty()) from.push_back(1);
        if (pick(2)) from.insert(from.begin() + static_cast<long>(pick(from.size())), 1);
        Sample a = make(from, depth - 1);
        return {shape, a.values, reshapeAxis(a.facts, from, shape)};
      }
      default: {  // transpose
        std::vector<int32_t> permutation(shape.size());
        for (size_t d = 0; d < shape.size(); ++d) permutation[d] = static_cast<int32_t>(d);
        std::shuffle(permutation.begin(), permutation.end(), random_);
        std::vector<int64_t> from(shape.size());
        for (size_t d = 0; d < shape.size(); ++d) from[static_cast<size_t>(permutation[d])] = shape[d];
        Sample a = make(from, depth - 1);
        Sample r{shape, {}, transposeAxis(a.facts, permutation)};
        forEach(shape, [&](const std::vector<int64_t>& coord) {
          std::vector<int64_t> source(coord.size());
          for (size_t d = 0; d < coord.size(); ++d) source[static_cast<size_t>(permutation[d])] = coord[d];
          r.values.push_back(at(a, source));
        });
        return r;
      }
    }
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  template <class F>
  static void forEach(const std::vector<int64_t>& shape, F&& f) {
    std::vector<int64_t> coord(shape.size(), 0);
    for (;;) {
      f(coord);
      size_t d = shape.size();
      while (d > 0 && ++coord[d - 1] == shape[d - 1]) coord[--d] = 0;
      if (d == 0) return;
    }
  }

  Sample leaf(const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (int64_t s : shape) count *= s;
    if (shape.size() == 1 && pick(2)) {
      static constexpr int64_t starts[] = {0, 0, 1, 4, 6, 16, -8, -3};
      const int64_t start = starts[pick(8)];
      Sample r{shape, {}, iotaAxis(start, count)};
      for (int64_t i = 0; i < count; ++i) r.values.push_back(start + i);
      return r;
    }
    static constexpr int64_t constants[] = {0, 1, 2, 8, 12, 16, 64, -4};
    const int64_t v = constants[pick(8)];
    return {shape, std::vector<int64_t>(static_cast<size_t>(count), v), constantAxis(shape, powerOfTwoIn(v))};
  }

  template <class Facts, class Value>
  Sample combine(const Sample& a, const Sample& b, Facts&& facts, Value&& value) {
    Sample r{a.shape, a.values, facts(a.facts, b.facts)};
    for (size_t i = 0; i < r.values.size(); ++i) r.values[i] = value(a.values[i], b.values[i]);
    return r;
  }
  template <class Facts, class Value>
  Sample map(const Sample& a, Facts&& facts, Value&& value) {
    Sample r{a.shape, a.values, facts(a.facts)};
    for (int64_t& v : r.values) v = value(v);
    return r;
  }

  std::mt19937_64 random_;
};

TEST(AxisFacts, ClaimsHoldForRandomExpressions) {
  static const std::vector<std::vector<int64_t>> shapes = {{16}, {12}, {4, 8}, {8, 1}, {2, 6, 4}, {1, 16}, {48}};
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Generator generator(seed);
    Sample s = generator.make(shapes[seed % shapes.size()], 1 + static_cast<int>(seed % 4));
    ASSERT_EQ(violation(s), "") << "seed " << seed;
  }
}

TEST(AxisFacts, JoinHoldsForBoth) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Generator generator(seed);
    Sample a = generator.make({4, 8}, 2), b = generator.make({4, 8}, 2);
    a.facts = b.facts = joinAxis(a.facts, b.facts);
    ASSERT_EQ(violation(a), "") << "seed " << seed;
    ASSERT_EQ(violation(b), "") << "seed " << seed;
  }
}

// The claims must also be worth something.
TEST(AxisFacts, RowMajorAddressIsContiguousAlongTheLastDim) {
  AxisFacts rows = broadcastAxis(reshapeAxis(iotaAxis(0, 16), {16}, {16, 1}), {16, 1}, {16, 64});
  AxisFacts cols = broadcastAxis(reshapeAxis(iotaAxis(0, 64), {64}, {1, 64}), {1, 64}, {16, 64});
  AxisFacts address = addAxis(mulAxis(rows, constantAxis({16, 64}, 8)), cols);
  EXPECT_EQ(address.contiguity[1], 64);
  EXPECT_EQ(address.divisibility[1], 8);
}

}  // namespace
}  // namespace tile::ir
