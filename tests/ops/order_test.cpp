// order_test.cpp - sorting, its indices, the largest k, and orders turned or interleaved, on every device.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops.h"

namespace tile::ops {
namespace {

/// Before: a < b, numbers before NaN, -0 before 0.
template <class T>
bool before(T a, T b, bool descending) {
  if constexpr (!kIsFloat<T>) {
    return descending ? b < a : a < b;
  } else {
    const double x = widen(a), y = widen(b);
    if (std::isnan(x) || std::isnan(y)) return !std::isnan(x);
    if (x == y) return std::signbit(x) != std::signbit(y) && std::signbit(x) != descending;
    return descending ? y < x : x < y;
  }
}
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (kIsFloat<T> && std::isnan(double(widen(a))) && std::isnan(double(widen(b))));
}

template <class T>
void check_sort(int rows, int columns, int along, bool descending) {
  SCOPED_TRACE(std::string(name(dtype_of<T>())) + " " + std::to_string(rows) + "x" + std::to_string(columns) + " axis " +
               std::to_string(along) + (descending ? " descending" : ""));
  const int64_t n = int64_t{rows} * columns;
  std::vector<T> x = operands<T>(n, -4, 4, 11), sorted(n);
  for (int64_t i = 0; i < n; i += 5) x[i] = x[(i + 3) % n];  // equal ones
  if constexpr (kIsFloat<T>) {
    const double ends[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, -NAN};
    for (int64_t i = 0; i < std::min<int64_t>(6, n - 1); ++i) x[(7 * i) % n] = narrow<T>(ends[i]);
  } else {
    x[n / 2] = std::numeric_limits<T>::max(), x[n / 3] = std::numeric_limits<T>::lowest();
  }
  for (auto& device : devices()) {
    std::vector<int32_t> places(n, -1);
    auto k = kernel("sort", [=](Ptr<const T> p, Ptr<T> out, Ptr<int32_t> at) {
      auto i = arange(0, rows).col() * columns + arange(0, columns).row();
      auto v = load(p + i);
      store(out + i, sort(v, axis(along), {.descending = descending}));
      store(at + i, argsort(v, axis(along), {.descending = descending}));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, sorted, places));
    const int lines = along == 0 ? columns : rows, length = along == 0 ? rows : columns;
    for (int l = 0; l < lines; ++l) {
      auto at = [&](int i) { return along == 0 ? int64_t{i} * columns + l : int64_t{l} * columns + i; };
      std::vector<int32_t> want(length);
      std::iota(want.begin(), want.end(), 0);
      std::stable_sort(want.begin(), want.end(), [&](int a, int b) { return before(x[at(a)], x[at(b)], descending); });
      for (int i = 0; i < length; ++i) {
        ASSERT_EQ(places[at(i)], want[i]) << device->name() << " line " << l << " place " << i;
        ASSERT_TRUE(same(sorted[at(i)], x[at(want[i])]))
            << device->name() << " line " << l << " place " << i << ": " << +widen(sorted[at(i)]);
      }
    }
  }
}

TEST(Order, F32) {
  check_sort<float>(3, 64, 1, false);
  check_sort<float>(100, 4, 0, true);
}
TEST(Order, F16) { check_sort<half>(4, 50, 1, true); }
TEST(Order, Bf16) { check_sort<bfloat16>(33, 2, 0, false); }
TEST(Order, F64) { check_sort<double>(2, 37, 1, false); }
TEST(Order, Integers) {
  check_sort<int32_t>(2, 256, 1, true);
  check_sort<uint8_t>(5, 60, 1, false);
  check_sort<int64_t>(1, 9, 1, false);
  check_sort<uint32_t>(16, 1, 0, true);
  check_sort<int16_t>(1, 1, 1, false);
  check_sort<int16_t>(3, 70, 1, true);
  check_sort<uint16_t>(2, 130, 1, false);
  check_sort<int8_t>(6, 40, 0, true);
  check_sort<uint64_t>(2, 33, 1, true);
}

/// Numbers of few bits, which are put in order by rounds, with many equal ones: their order stays.
template <class Less>
void check_digits(int rows, int n, bool descending, Less&& digit_of) {
  SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(n) + (descending ? " descending" : ""));
  std::vector<uint32_t> x(size_t(rows) * n), sorted(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint32_t>(i * 2654435761u) ^ static_cast<uint32_t>(i >> 3);
  for (auto& device : devices()) {
    std::vector<int32_t> places(x.size(), -1);
    auto k = kernel("digits", [=](Ptr<const uint32_t> p, Ptr<uint32_t> out, Ptr<int32_t> at) {
      auto i = arange(0, rows).col() * n + arange(0, n).row();
      auto digit = digit_of(load(p + i));
      store(out + i, cast(sort(digit, axis(1), {.descending = descending}), u32));
      store(at + i, argsort(digit, axis(1), {.descending = descending}));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, sorted, places));
    for (int r = 0; r < rows; ++r) {
      std::vector<int32_t> want(n);
      std::iota(want.begin(), want.end(), 0);
      auto digit = [&](int i) { return digit_of(x[size_t(r) * n + i]); };
      std::stable_sort(want.begin(), want.end(),
                       [&](int a, int b) { return before(digit(a), digit(b), descending); });
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(places[size_t(r) * n + i], want[i]) << device->name() << " row " << r << " place " << i;
        ASSERT_EQ(sorted[size_t(r) * n + i], digit(want[i])) << device->name() << " row " << r << " place " << i;
      }
    }
  }
}
TEST(Order, NumbersOfFewBits) {
  check_digits(1, 2048, false, [](auto x) { return (x >> 8u) & 255u; });
  check_digits(1, 1000, true, [](auto x) { return x >> 25u; });
  check_digits(3, 300, false, [](auto x) { return x & 7u; });
  check_digits(2, 512, true, [](auto x) { return x & 1u; });
}

/// The first k of rows of n numbers with many equal ones, and where they were: as a stable sort has them.
void check_topk(int rows, int n, int count) {
  for (auto& device : devices()) {
    std::vector<float> x = operands<float>(size_t(rows) * n, -9, 9, 3), values(size_t(rows) * count);
    for (size_t i = 0; i < x.size(); ++i) x[i] = i % 7 == 3 ? 100 : i % 5 == 1 ? std::round(x[i]) : x[i];
    std::vector<int32_t> places(values.size());
    auto k = kernel("topk", [=](Ptr<const float> p, Ptr<float> out, Ptr<int32_t> at) {
      auto row = arange(0, rows).col();
      auto [v, i] = topk(load(p + row * n + arange(0, n).row()), count, axis(-1));
      auto to = row * count + arange(0, count).row();
      store(out + to, v);
      store(at + to, i);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, values, places));
    for (int r = 0; r < rows; ++r) {
      std::vector<int> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return x[r * n + a] > x[r * n + b]; });
      for (int j = 0; j < count; ++j) {
        EXPECT_EQ(places[r * count + j], order[j]) << device->name() << " " << n << " " << count;
        EXPECT_EQ(values[r * count + j], x[r * n + order[j]]) << device->name() << " " << n << " " << count;
      }
    }
  }
}

TEST(Order, TheLargestK) {
  check_topk(4, 60, 6);
  check_topk(2, 64, 1);
  check_topk(3, 256, 8);
  check_topk(1, 1000, 33);
  check_topk(5, 37, 33);
  check_topk(2, 16, 16);
  check_topk(1, 512, 200);
}

// Bounds of a number that a loop changes are not those of what it began with.
TEST(Order, DigitsThatALoopChanges) {
  constexpr int n = 256;
  for (auto& device : devices()) {
    std::vector<int32_t> x(n), order(n);
    for (int i = 0; i < n; ++i) x[i] = i * 37 % n;
    auto k = kernel("digits_changed", [](Ptr<const int32_t> p, Ptr<int32_t> q) {
      auto i = arange(0, n);
      Tile digit = load(p + i) & 3, last = i;
      for (auto step : range(0, 2)) {
        last = argsort(digit, axis(0));
        digit -= load(p + i) * 1000;  // negative ones
      }
      store(q + i, last);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, order));
    std::vector<int> want(n);
    std::iota(want.begin(), want.end(), 0);
    auto digit = [&](int i) { return (x[i] & 3) - x[i] * 1000; };
    std::stable_sort(want.begin(), want.end(), [&](int a, int b) { return digit(a) < digit(b); });
    EXPECT_EQ(std::vector<int>(order.begin(), order.end()), want) << device->name();
  }
}

// Places of a tile are small; what a loop makes of a variable that began as places need not be.
TEST(Order, PlacesThatALoopChanges) {
  for (auto& device : devices()) {
    std::vector<int32_t> x(64), order(64);
    for (int i = 0; i < 64; ++i) x[i] = i * 37 % 64;
    auto k = kernel("places_changed", [](Ptr<const int32_t> p, Ptr<int32_t> q) {
      auto i = arange(0, 64);
      Tile places = argsort(load(p + i), axis(0)), last = i;
      for (auto step : range(0, 2)) {
        last = argsort(places, axis(0));
        places *= 5000;  // up to 315000
      }
      store(q + i, last);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, order));
    std::vector<int> places(64), expected(64);
    for (int i = 0; i < 64; ++i) places[x[i]] = i;  // x has each number once
    for (int i = 0; i < 64; ++i) expected[places[i]] = i;
    EXPECT_EQ(std::vector<int>(order.begin(), order.end()), expected) << device->name();
  }
}

TEST(Order, TurnedAndInterleaved) {
  for (auto& device : devices()) {
    std::vector<int32_t> x(6 * 10), rows(60), columns(60), both(60);
    std::iota(x.begin(), x.end(), 100);
    auto k = kernel("turned", [](Ptr<const int32_t> p, Ptr<int32_t> r, Ptr<int32_t> c, Ptr<int32_t> b) {
      auto i = arange(0, 6).col() * 10 + arange(0, 10).row();
      auto x = load(p + i);
      store(r + i, flip(x, axis(0)));
      store(c + i, flip(x, axis(-1)));
      auto half = arange(0, 6).col() * 10 + arange(0, 5).row();
      store(b + i, interleave(load(p + half), load(p + half + 5)));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, rows, columns, both));
    for (int r = 0; r < 6; ++r)
      for (int c = 0; c < 10; ++c) {
        EXPECT_EQ(rows[r * 10 + c], x[(5 - r) * 10 + c]) << device->name();
        EXPECT_EQ(columns[r * 10 + c], x[r * 10 + 9 - c]) << device->name();
        EXPECT_EQ(both[r * 10 + c], x[r * 10 + c / 2 + c % 2 * 5]) << device->name();
      }
  }
}

/// Tables of any size with equal elements; what is looked for lies below, between, on and above them.
template <class T>
void check_bounds(int n) {
  SCOPED_TRACE(std::to_string(n) + " of " + std::string(name(dtype_of<T>())));
  std::vector<T> table(n), x(6 * 32);
  for (int i = 0; i < n; ++i) table[i] = static_cast<T>(i / 3 * 2);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<int>(i * 7 % 97) - (std::is_signed_v<T> ? 9 : 0));
  for (auto& device : devices()) {
    std::vector<int32_t> lower(x.size(), -1), upper(x.size(), -1), one{-1};
    auto k = kernel("bounds", [=](Ptr<const T> t, Ptr<const T> p, Ptr<int32_t> lower, Ptr<int32_t> upper, Ptr<int32_t> one) {
      auto list = load(t + arange(0, n));
      auto i = arange(0, 6).col() * 32 + arange(0, 32).row();
      store(lower + i, lower_bound(list, load(p + i)));
      store(upper + i, upper_bound(list, load(p + i)));
      store(one, lower_bound(list, load(p + 40)));
    });
    ASSERT_TRUE(run_on(device, k, {}, table, x, lower, upper, one));
    auto at = [&](auto it) { return static_cast<int32_t>(it - table.begin()); };
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(lower[i], at(std::lower_bound(table.begin(), table.end(), x[i]))) << device->name() << " " << i;
      ASSERT_EQ(upper[i], at(std::upper_bound(table.begin(), table.end(), x[i]))) << device->name() << " " << i;
    }
    EXPECT_EQ(one[0], lower[40]) << device->name();
  }
}
TEST(Order, PlacesInTables) {
  for (int n : {1, 2, 5, 64, 100}) check_bounds<float>(n), check_bounds<int32_t>(n);
  check_bounds<uint8_t>(77);
}

}  // namespace
}  // namespace tile::ops
