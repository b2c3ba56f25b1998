// across_test.cpp - reductions, scans and matrix products of the language on every device.
#include <numeric>

#include "ops.h"

namespace tile::ops {
namespace {

struct Extent {
  int outer, n, inner;  // the axis in the middle
};
const Extent kExtents[] = {{1, 64, 1}, {3, 16, 1}, {1, 8, 24}, {4, 33, 2}, {2, 128, 4}, {5, 1, 7}};

/// Folds along the middle axis of outer x n x inner in order.
template <class W, class F>
std::vector<W> fold(const std::vector<W>& x, Extent e, F f) {
  std::vector<W> out;
  for (int o = 0; o < e.outer; ++o)
    for (int i = 0; i < e.inner; ++i) {
      W acc = x[(o * e.n) * e.inner + i];
      for (int k = 1; k < e.n; ++k) acc = f(acc, x[(o * e.n + k) * e.inner + i]);
      out.push_back(acc);
    }
  return out;
}

template <class T>
void check_reductions() {
  using R = std::conditional_t<
      kIsFloat<T>, std::conditional_t<sizeof(T) == 8, double, float>,
      std::conditional_t<sizeof(T) == 8, T,
                         std::conditional_t<std::is_unsigned_v<T>, uint32_t, int32_t>>>;  // what sums are returned in
  for (const Extent e : kExtents) {
    SCOPED_TRACE(std::string(name(dtype_of<T>())) + " " + std::to_string(e.outer) + "x" + std::to_string(e.n) + "x" +
                 std::to_string(e.inner));
    const int count = e.outer * e.n * e.inner, results = e.outer * e.inner;
    std::vector<T> x = operands<T>(count, -2, 2, 11);
    for (auto& device : devices()) {
      std::vector<R> sums(results);
      std::vector<T> extremes(2 * results);
      std::vector<int32_t> places(2 * results);
      auto k = kernel("reductions", [=](Ptr<const T> p, Ptr<R> s, Ptr<T> m, Ptr<int32_t> a) {
        auto t = reshape(load(p + arange(0, count)), {e.outer, e.n, e.inner});
        auto out = reshape(arange(0, results), {e.outer, 1, e.inner});
        store(s + out, sum(t, axis(1)));
        store(m + out, max(t, axis(1)));
        store(m + results + out, min(t, axis(1)));
        store(a + out, argmax(t, axis(1)));
        store(a + results + out, argmin(t, axis(-2)));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, sums, extremes, places));
      std::vector<Wide<R>> wide;
      std::vector<double> magnitude;
      for (T v : x)
        wide.push_back(static_cast<Wide<R>>(widen(v))), magnitude.push_back(std::fabs(static_cast<double>(widen(v))));
      const auto want = fold(wide, e, [](auto a, auto b) { return static_cast<Wide<R>>(a + b); });
      const auto scale = fold(magnitude, e, [](double a, double b) { return a + b; });
      for (int i = 0; i < results; ++i) {
        ASSERT_TRUE(close<R>(widen(sums[i]), want[i], 8, scale[i]))
            << device->name() << " sum " << i << ": " << +widen(sums[i]) << ", expected " << +want[i];
        int best = 0, worst = 0;
        auto at = [&](int j) { return widen(x[((i / e.inner) * e.n + j) * e.inner + i % e.inner]); };
        for (int j = 1; j < e.n; ++j) {
          if (at(j) > at(best)) best = j;
          if (at(j) < at(worst)) worst = j;
        }
        ASSERT_EQ(widen(extremes[i]), at(best)) << device->name() << " max " << i;
        ASSERT_EQ(widen(extremes[results + i]), at(worst)) << device->name() << " min " << i;
        ASSERT_EQ(places[i], best) << device->name() << " argmax " << i;
        ASSERT_EQ(places[results + i], worst) << device->name() << " argmin " << i;
      }
    }
  }
}
TEST(Across, ReductionsF32) { check_reductions<float>(); }
TEST(Across, ReductionsF16) { check_reductions<half>(); }
TEST(Across, ReductionsF64) { check_reductions<double>(); }
TEST(Across, ReductionsI8) { check_reductions<int8_t>(); }
TEST(Across, ReductionsI32) { check_reductions<int32_t>(); }
TEST(Across, ReductionsU64) { check_reductions<uint64_t>(); }

TEST(Across, TruthAndBits) {
  for (auto& device : devices()) {
    std::vector<uint32_t> x(96);
    for (int i = 0; i < 96; ++i) x[i] = i * 2654435761u;
    std::vector<uint32_t> out(8, 9);
    auto k = kernel("truth", [](Ptr<const uint32_t> p, Ptr<uint32_t> out) {
      auto t = load(p + arange(0, 96));
      store(out, cast(any(t == 2654435761u), u32));
      store(out + 1, cast(any(t == 1u), u32));
      store(out + 2, cast(all(t != 1u), u32));
      store(out + 3, cast(all(t != 0u), u32));
      store(out + 4, xor_sum(t));
      store(out + 5, cast(sum(t >= 0x80000000u), u32));
      store(out + 6, sum(t));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    uint32_t bits = 0, high = 0, total = 0;
    for (uint32_t v : x) bits ^= v, high += v >= 0x80000000u, total += v;
    EXPECT_EQ(out, (std::vector<uint32_t>{1, 0, 1, 0, bits, high, total, 9})) << device->name();
  }
}

TEST(Across, WholeTilesOfSeveralDims) {
  for (auto& device : devices())
    for (int at : {0, 37, 4095}) {  // the one element that differs
      std::vector<int32_t> x(4096, 2), out(7, 0);
      x[at] = 5;
      auto k = kernel("whole", [](Ptr<const int32_t> p, Ptr<int32_t> out) {
        auto t = load(p + (arange(0, 16).col() * 256 + arange(0, 256).row()));
        store(out, cast(any(t == 5), i32));
        store(out + 1, cast(any(t == 4), i32));
        store(out + 2, cast(all(t >= 2), i32));
        store(out + 3, cast(all(t == 2), i32));
        store(out + 4, sum(t));
        store(out + 5, max(t));
        store(out + 6, sum(reshape(t, {4, 4, 256})));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, out));
      EXPECT_EQ(out, (std::vector<int32_t>{1, 0, 1, 0, 8195, 5, 8195})) << device->name() << " " << at;
    }
}

TEST(Across, FirstAmongEqualsAndNan) {
  for (auto& device : devices()) {
    std::vector<float> x{3, 7, 7, -1, -1, 7, NAN, 2, NAN, NAN, NAN, NAN};
    std::vector<int32_t> out(3, -1);
    auto k = kernel("ties", [](Ptr<const float> p, Ptr<int32_t> out) {
      auto t = load(p + arange(0, 8));
      store(out, squeeze(argmax(t, axis(0)), 0));
      store(out + 1, squeeze(argmin(t, axis(0)), 0));
      store(out + 2, squeeze(argmax(load(p + 8 + arange(0, 4)), axis(0)), 0));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    EXPECT_EQ(out, (std::vector<int32_t>{1, 3, 0})) << device->name();
  }
}

TEST(Across, PlacesInAllElements) {
  std::vector<float> x{3, 7, NAN, -1, 7, 2, -1, 5, 0, 1, 7, -1};
  for (auto& device : devices()) {
    std::vector<int32_t> out(5, -1);
    std::vector<float> value(2);
    auto k = kernel("places_in_all", [](Ptr<const float> p, Ptr<int32_t> out, Ptr<float> value) {
      Tile t = load(p + arange(0, 3).col() * 4 + arange(0, 4).row());
      store(out, argmax(t)), store(out + 1, argmin(t)), store(out + 4, argmax(load(p)));
      auto [high, at] = max_with_index(t);
      auto [low, where_low] = min_with_index(t);
      store(value, high), store(out + 2, at), store(value + 1, low), store(out + 3, where_low);
    });
    ASSERT_TRUE(run_on(device, k, Grid{1}, x, out, value));
    EXPECT_EQ(out, (std::vector<int32_t>{1, 3, 1, 3, 0})) << device->name();
    EXPECT_EQ(value, (std::vector<float>{7, -1})) << device->name();
  }
}

TEST(Across, ExtremesWithTheirPlaces) {
  constexpr int R = 5, C = 40;
  std::vector<float> x = operands<float>(R * C, -4, 4, 17);
  x[3] = x[30] = 9, x[C + 2] = NAN, x[C + 39] = -9, x[C + 7] = -9;
  for (int c = 0; c < C; ++c) x[2 * C + c] = NAN, x[3 * C + c] = c % 2 ? -INFINITY : NAN;
  for (auto& device : devices()) {
    std::vector<float> value(2 * R);
    std::vector<int32_t> place(2 * R), column(2 * C);
    auto k = kernel("extremes", [](Ptr<const float> p, Ptr<float> value, Ptr<int32_t> place, Ptr<int32_t> column) {
      auto x = load(p + arange(0, R).col() * C + arange(0, C).row());
      auto [high, at] = max_with_index(x, axis(1));
      auto [low, where_low] = min_with_index(x, axis(-1));
      store(value + arange(0, R).col(), high), store(place + arange(0, R).col(), at);
      store(value + R + arange(0, R).col(), low), store(place + R + arange(0, R).col(), where_low);
      auto [most, row] = max_with_index(cast(x * 10.f, i32) % 7, axis(0));
      store(column + arange(0, C).row(), most), store(column + C + arange(0, C).row(), row);
    });
    ASSERT_TRUE(run_on(device, k, Grid{1}, x, value, place, column));
    for (int r = 0; r < R; ++r)
      for (bool low : {false, true}) {
        int best = -1;
        for (int c = 0; c < C; ++c)
          if (const float v = x[r * C + c]; !std::isnan(v))
            if (best < 0 || (low ? v < x[r * C + best] : v > x[r * C + best])) best = c;
        EXPECT_EQ(place[low * R + r], std::max(best, 0)) << device->name() << " row " << r;
        if (best < 0)
          EXPECT_TRUE(std::isnan(value[low * R + r])) << device->name();
        else
          EXPECT_EQ(value[low * R + r], x[r * C + best]) << device->name() << " row " << r;
      }
    for (int c = 0; c < C; ++c) {
      if (c == 2) continue;  // a NaN as an integer is nothing in particular, here and in two rows everywhere
      EXPECT_GE(column[C + c], 0);
      EXPECT_LT(column[C + c], R);
    }
  }
}

TEST(Across, ProductsAndCustomCombiners) {
  for (auto& device : devices()) {
    std::vector<float> x = operands<float>(64, 0.8, 1.2, 5), out(5);
    auto k = kernel("custom", [](Ptr<const float> p, Ptr<float> out) {
      auto t = load(p + arange(0, 64));
      store(out, prod(t));
      store(out + 1, to_scalar(reduce(t, axis(0), [](Tile a, Tile b) { return where(a > b, a, b); })));
      // Mean and variance by pairs (Welford's combination of equal counts needs the count as a third).
      auto [n, m, s] = reduce({ones({64}, f32), t, zeros({64}, f32)}, axis(0),
                              [](Tile n0, Tile m0, Tile s0, Tile n1, Tile m1, Tile s1) {
                                Tile n = n0 + n1, d = m1 - m0;
                                return std::tuple(n, m0 + d * (n1 / n), s0 + s1 + d * d * (n0 * n1 / n));
                              });
      store(out + 2, to_scalar(n));
      store(out + 3, to_scalar(m));
      store(out + 4, to_scalar(s) / 64);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    double product = 1, mean = 0, variance = 0, largest = 0;
    for (float v : x) product *= v, mean += v / 64.0, largest = std::max<double>(largest, v);
    for (float v : x) variance += (v - mean) * (v - mean) / 64;
    EXPECT_NEAR(out[0], product, 1e-5 * product) << device->name();
    EXPECT_EQ(out[1], static_cast<float>(largest));
    EXPECT_EQ(out[2], 64);
    EXPECT_NEAR(out[3], mean, 1e-6);
    EXPECT_NEAR(out[4], variance, 1e-6);
  }
}

TEST(Across, CombinersOfRoundedAndComposedFunctions) {
  for (auto& device : devices()) {
    // Sums with their errors: what is lost of 1 beside 2^25 comes back.
    std::vector<float> x(96), out(3), running(96);
    for (int i = 0; i < 96; ++i) x[i] = i % 3 == 0 ? 1 : i % 3 == 1 ? 0x1p25f : -0x1p25f;
    auto k = kernel("rounded", [](Ptr<const float> p, Ptr<float> out, Ptr<float> running) {
      auto t = load(p + arange(0, 96));
      auto [high, low] = reduce({t, zeros({96}, f32)}, axis(0), [](Tile a, Tile la, Tile b, Tile lb) {
        auto s = add_rn(a, b), v = add_rn(s, -a);
        return std::pair{s, la + lb + add_rn(add_rn(a, -add_rn(s, -v)), add_rn(b, -v))};
      });
      store(out, to_scalar(high) + to_scalar(low));
      store(out + 1, to_scalar(reduce(t, axis(0), [](Tile a, Tile b) { return hypot(a, b); })));
      store(out + 2, to_scalar(reduce(t, axis(0), [](Tile a, Tile b) { return copysign(min(abs(a), abs(b)), -a); })));
      store(running + arange(0, 96), scan(abs(t), axis(0), [](Tile a, Tile b) { return add_rn(a, b); }));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out, running));
    EXPECT_EQ(out[0], 32) << device->name();
    EXPECT_NEAR(out[1], 8 * 0x1p25f, 512) << device->name();
    EXPECT_EQ(std::abs(out[2]), 1) << device->name();
    EXPECT_NEAR(running[95], 64 * 0x1p25f, 512) << device->name();
  }
}

TEST(Across, Scans) {
  for (const Extent e : kExtents) {
    SCOPED_TRACE(std::to_string(e.outer) + "x" + std::to_string(e.n) + "x" + std::to_string(e.inner));
    const int count = e.outer * e.n * e.inner;
    std::vector<int32_t> x(count);
    for (int i = 0; i < count; ++i) x[i] = (i * 7919) % 13 - 6;
    for (auto& device : devices()) {
      std::vector<int32_t> out(4 * count);
      auto k = kernel("scans", [=](Ptr<const int32_t> p, Ptr<int32_t> out) {
        auto i = reshape(arange(0, count), {e.outer, e.n, e.inner});
        auto t = load(p + i);
        store(out + i, cumsum(t, axis(1)));
        store(out + count + i, cumsum(t, axis(1), {.reverse = true}));
        store(out + 2 * count + i, cumprod(t, axis(1)));
        store(out + 3 * count + i, scan(t, axis(1), [](Tile a, Tile b) { return max(a, b); }));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, out));
      for (int o = 0; o < e.outer; ++o)
        for (int i = 0; i < e.inner; ++i) {
          uint32_t sum = 0, product = 1;
          int32_t largest = INT32_MIN;
          uint32_t total = 0;
          auto at = [&](int j) { return (o * e.n + j) * e.inner + i; };
          for (int j = 0; j < e.n; ++j) total += static_cast<uint32_t>(x[at(j)]);
          for (int j = 0; j < e.n; ++j) {
            const auto v = static_cast<uint32_t>(x[at(j)]);
            ASSERT_EQ(out[count + at(j)], static_cast<int32_t>(total - sum)) << device->name() << " reverse cumsum";
            sum += v, product *= v, largest = std::max(largest, x[at(j)]);
            ASSERT_EQ(out[at(j)], static_cast<int32_t>(sum)) << device->name() << " cumsum";
            ASSERT_EQ(out[2 * count + at(j)], static_cast<int32_t>(product)) << device->name() << " cumprod";
            ASSERT_EQ(out[3 * count + at(j)], largest) << device->name() << " running max";
          }
        }
    }
  }
}

/// A scan whose combiner does not commute: the linear recurrence h = a h + b as pairs (a, b).
TEST(Across, ScansKeepTheOrder) {
  for (auto& device : devices()) {
    std::vector<float> a = operands<float>(96, 0.5, 1, 1), b = operands<float>(96, -1, 1, 2), out(96);
    auto k = kernel("recurrence", [](Ptr<const float> a, Ptr<const float> b, Ptr<float> out) {
      auto i = arange(0, 96);
      auto [c, h] = scan({load(a + i), load(b + i)}, axis(0),
                         [](Tile a0, Tile b0, Tile a1, Tile b1) { return std::tuple(a0 * a1, a1 * b0 + b1); });
      store(out + i, h);
    });
    ASSERT_TRUE(run_on(device, k, {}, a, b, out));
    double h = 0;
    for (int i = 0; i < 96; ++i) {
      h = a[i] * h + b[i];
      ASSERT_NEAR(out[i], h, 2e-6 * (1 + std::fabs(h))) << device->name() << " " << i;
    }
  }
}

TEST(Across, SoftmaxSurvivesLargeValues) {
  for (auto& device : devices()) {
    std::vector<float> x = operands<float>(8 * 48, -400, 400, 3), out(8 * 48);
    auto k = kernel("softmax", [](Ptr<const float> p, Ptr<float> out) {
      auto i = arange(0, 8).col() * 48 + arange(0, 48).row();
      store(out + i, softmax(load(p + i), axis(1)));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int r = 0; r < 8; ++r) {
      double largest = -1e30, total = 0;
      for (int c = 0; c < 48; ++c) largest = std::max<double>(largest, x[r * 48 + c]);
      for (int c = 0; c < 48; ++c) total += std::exp(x[r * 48 + c] - largest);
      for (int c = 0; c < 48; ++c)
        ASSERT_NEAR(out[r * 48 + c], std::exp(x[r * 48 + c] - largest) / total, 1e-4) << device->name();
    }
  }
}

template <class T, class R, class T2 = T>
void check_dot(int M, int N, int K, Prec prec, double ulps) {
  SCOPED_TRACE(std::string(name(dtype_of<T>())) + " " + std::to_string(M) + "x" + std::to_string(N) + "x" +
               std::to_string(K));
  std::vector<T> a = operands<T>(M * K, -1, 1, 21);
  std::vector<T2> b = operands<T2>(K * N, -1, 1, 22);
  std::vector<R> c = operands<R>(M * N, -1, 1, 23);
  for (auto& device : devices()) {
    std::vector<R> out(2 * M * N);
    auto k = kernel("dot", [=](Ptr<const T> a, Ptr<const T2> b, Ptr<const R> c, Ptr<R> out) {
      auto x = load(a + arange(0, M).col() * K + arange(0, K).row());
      auto y = load(b + arange(0, K).col() * N + arange(0, N).row());
      auto at = arange(0, M).col() * N + arange(0, N).row();
      store(out + at, dot(x, y, load(c + at), prec));
      store(out + M * N + at, dot(x, y, prec));
    });
    ASSERT_TRUE(run_on(device, k, {}, a, b, c, out));
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        std::conditional_t<kIsFloat<R>, double, uint32_t> want = 0;
        double scale = 1;
        for (int k = 0; k < K; ++k) {
          const auto x = widen(a[m * K + k]), y = widen(b[k * N + n]);
          if constexpr (kIsFloat<R>)
            want += x * y, scale += std::fabs(x * y);
          else
            want += static_cast<uint32_t>(static_cast<int32_t>(x) * static_cast<int32_t>(y));
        }
        const auto plain = static_cast<Wide<R>>(want),
                   added = static_cast<Wide<R>>(want + static_cast<decltype(want)>(widen(c[m * N + n])));
        ASSERT_TRUE(close<R>(widen(out[M * N + m * N + n]), plain, ulps, scale))
            << device->name() << " (" << m << ", " << n << "): " << +out[M * N + m * N + n] << ", expected " << +plain;
        ASSERT_TRUE(close<R>(widen(out[m * N + n]), added, ulps, scale))
            << device->name() << " (" << m << ", " << n << "): " << +out[m * N + n] << ", expected " << +added;
      }
  }
}
TEST(Across, DotF16) { check_dot<half, float>(32, 48, 64, Prec::ieee, 8); }
TEST(Across, DotBf16) { check_dot<bfloat16, float>(64, 32, 32, Prec::ieee, 8); }
TEST(Across, DotF32) { check_dot<float, float>(32, 32, 48, Prec::ieee, 8); }
TEST(Across, DotF32AsTf32) { check_dot<float, float>(32, 32, 48, Prec::tf32, 8192 * 1.5); }
TEST(Across, DotF32AsThreeTf32) { check_dot<float, float>(32, 32, 48, Prec::tf32x3, 64); }
TEST(Across, DotF32AsThreeBf16) { check_dot<float, float>(32, 32, 48, Prec::bf16x3, 512); }
TEST(Across, DotF32AsSixBf16) { check_dot<float, float>(32, 32, 48, Prec::bf16x6, 16); }
TEST(Across, DotF64) {
  check_dot<double, double>(16, 16, 16, Prec::ieee, 8);
  check_dot<double, double>(48, 32, 20, Prec::ieee, 8);
}
TEST(Across, DotI8) { check_dot<int8_t, int32_t>(32, 32, 64, Prec::ieee, 0); }
template <class T>
void check_dot_bits(int B, int M, int N, int K) {
  SCOPED_TRACE(std::to_string(B) + " of " + std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K));
  std::mt19937 random(31);
  auto words = [&](int count) {
    std::vector<T> list(count);
    for (T& w : list) w = static_cast<T>(random());
    return list;
  };
  std::vector<T> a = words(B * M * K), b = words(B * K * N);
  std::vector<int32_t> c = operands<int32_t>(B * M * N, -1000, 1000, 33);
  auto k = kernel("dot_bits", [=](Ptr<const T> a, Ptr<const T> b, Ptr<const int32_t> c, Ptr<int32_t> out) {
    auto places = [=](int rows, int columns) {
      const Tile at = arange(0, rows).col() * columns + arange(0, columns).row();
      if (B == 1) return at;
      return reshape(arange(0, B), {B, 1, 1}) * (rows * columns) + reshape(at, {1, rows, columns});
    };
    const Tile x = load(a + places(M, K)), y = load(b + places(K, N)), at = places(M, N);
    store(out + at, dot_bits(x, y, load(c + at)));
    store(out + B * M * N + at, dot_bits(x, y));
  });
  for (auto& device : devices()) {
    std::vector<int32_t> out(2 * B * M * N);
    ASSERT_TRUE(run_on(device, k, {}, a, b, c, out));
    for (int i = 0; i < B * M * N; ++i) {
      const int row = i / N, column = i / (M * N) * K * N + i % N;
      int want = 0;
      for (int k = 0; k < K; ++k) want += __builtin_popcount(a[row * K + k] & b[column + k * N]);
      ASSERT_EQ(out[B * M * N + i], want) << device->name() << " " << i;
      ASSERT_EQ(out[i], want + c[i]) << device->name() << " " << i;
    }
  }
}
TEST(Across, DotBits) {
  check_dot_bits<uint32_t>(1, 32, 48, 64);
  check_dot_bits<int32_t>(1, 64, 32, 20);
  check_dot_bits<uint32_t>(1, 5, 7, 3);
  check_dot_bits<uint32_t>(1, 1, 16, 1);
  check_dot_bits<uint32_t>(4, 16, 16, 16);
  check_dot_bits<int32_t>(3, 8, 24, 5);
}
TEST(Across, DotF8) {
  check_dot<fp8_e4m3, float>(16, 16, 32, Prec::ieee, 8);
  check_dot<fp8_e5m2, float, fp8_e4m3>(32, 16, 64, Prec::ieee, 8);
}
TEST(Across, DotSmallAndOdd) {
  check_dot<half, float>(1, 16, 16, Prec::ieee, 8);
  check_dot<half, float>(80, 24, 40, Prec::ieee, 8);
  check_dot<float, float>(5, 7, 3, Prec::ieee, 8);
}

}  // namespace
}  // namespace tile::ops
