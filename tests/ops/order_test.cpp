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
}

TEST(Order, TheLargestK) {
  for (auto& device : devices()) {
    std::vector<float> x = operands<float>(4 * 60, -9, 9, 3), values(4 * 6);
    x[7] = x[33] = 100;
    std::vector<int32_t> places(4 * 6);
    auto k = kernel("topk", [](Ptr<const float> p, Ptr<float> out, Ptr<int32_t> at) {
      auto rows = arange(0, 4).col();
      auto [v, i] = topk(load(p + rows * 60 + arange(0, 60).row()), 6, axis(-1));
      auto to = rows * 6 + arange(0, 6).row();
      store(out + to, v);
      store(at + to, i);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, values, places));
    EXPECT_EQ(places[0], 7) << device->name();
    EXPECT_EQ(places[1], 33) << device->name();
    for (int r = 0; r < 4; ++r) {
      std::vector<float> row(x.begin() + r * 60, x.begin() + (r + 1) * 60);
      std::sort(row.begin(), row.end(), std::greater<>());
      for (int j = 0; j < 6; ++j) {
        EXPECT_EQ(values[r * 6 + j], row[j]) << device->name();
        EXPECT_EQ(values[r * 6 + j], x[r * 60 + places[r * 6 + j]]) << device->name();
      }
    }
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

}  // namespace
}  // namespace tile::ops
