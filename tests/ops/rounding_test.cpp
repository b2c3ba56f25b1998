// rounding_test.cpp - conversions that do not round to nearest, to the bit, against neighbours found by halving; random
// ones by their mean.
#include <algorithm>
#include <cmath>
#include <set>

#include "ops.h"

namespace tile::ops {
namespace {

/// All finite numbers of a type of 8 or 16 bits, in order; -0 is left out.
template <class T>
const std::vector<double>& numbers_of() {
  static const std::vector<double> all = [] {
    std::set<double> out;
    using Word = std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>;
    for (int i = 0; i < 1 << (8 * sizeof(T)); ++i)
      if (const double v = widen(std::bit_cast<T>(static_cast<Word>(i))); std::isfinite(v)) out.insert(v);
    return std::vector<double>(out.begin(), out.end());
  }();
  return all;
}

/// What x rounds to by the numbers themselves.
template <class T>
double rounded(double x, Rounding r) {
  if (std::isnan(x)) return NAN;
  if (r == Rounding::toward_zero) r = x < 0 ? Rounding::up : Rounding::down;
  if constexpr (std::is_same_v<T, float>) {
    const float f = static_cast<float>(x);
    if (r == Rounding::down) return f > x ? std::nextafterf(f, -INFINITY) : f;
    return f < x ? std::nextafterf(f, INFINITY) : f;
  } else {
    const std::vector<double>& all = numbers_of<T>();
    const bool ends = sizeof(T) == 1;  // f8 stops at its largest number
    if (std::isinf(x) && !ends) return x;
    const auto above = std::lower_bound(all.begin(), all.end(), x);
    if (r == Rounding::up) return above == all.end() ? (ends ? all.back() : INFINITY) : *above;
    if (above != all.end() && *above == x) return x;
    return above == all.begin() ? (ends ? all.front() : -INFINITY) : *std::prev(above);
  }
}
constexpr Rounding kDirections[] = {Rounding::toward_zero, Rounding::up, Rounding::down};

template <class From, class T>
void check_directions() {
  SCOPED_TRACE(std::string(name(dtype_of<From>())) + " to " + std::string(name(dtype_of<T>())));
  std::vector<From> x = operands<From>(2048, -2, 2, 31);
  std::mt19937 random(32);
  for (size_t i = 0; i < x.size(); i += 2)
    x[i] = narrow<From>(std::ldexp(widen(x[i]), static_cast<int>(random() % 60) - 40));
  const double ends[] = {0,    -0.0,  NAN,     INFINITY,  -INFINITY,   65504,  65505,   65520, 1e6,
                         -1e6, 448,   449,     464,       500,         -57344, -60000,  1e-30, -1e-30,
                         1e-7, -1e-7, 0x1p-24, 0x1.8p-24, 0x1.fffp-15, 3.4e38, -3.4e38, 1,     -1};
  for (size_t i = 0; i < std::size(ends); ++i) x[i] = narrow<From>(ends[i]);
  const auto n = static_cast<int64_t>(x.size());
  for (auto& device : devices()) {
    std::vector<T> out(3 * x.size());
    auto k = kernel("directions", [=](Ptr<const From> p, Ptr<T> out) {
      auto i = arange(0, n);
      for (int r = 0; r < 3; ++r) store(out + r * n + i, cast(load(p + i), dtype_of<T>(), kDirections[r]));
    });
    ASSERT_TRUE(run_on(device, k, Grid{1}, x, out));
    for (int64_t i = 0; i < n; ++i)
      for (int r = 0; r < 3; ++r) {
        const double from = widen(x[i]), got = widen(out[r * n + i]), want = rounded<T>(from, kDirections[r]);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got)
                                     : got == want && (got != 0 || std::signbit(got) == std::signbit(from)))
            << device->name() << " rounding " << r << " of " << from << " gave " << got << ", expected " << want;
      }
  }
}
TEST(Rounding, FloatsToEveryNarrowerType) {
  check_directions<float, half>();
  check_directions<float, bfloat16>();
  check_directions<float, fp8_e4m3>();
  check_directions<float, fp8_e5m2>();
  check_directions<half, fp8_e5m2>();
  check_directions<bfloat16, half>();
  check_directions<double, half>();
  check_directions<double, bfloat16>();
  check_directions<double, float>();
}

TEST(Rounding, FloatsToIntegersAndBack) {
  const std::vector<float> x{0.5f,   1.5f, 2.5f, -0.5f, -1.5f,  1.25f,  -1.25f, 1.75f,
                             -1.75f, 7,    -7,   0,     100.5f, -0.25f, 0.75f,  3};
  const std::vector<int32_t> whole{16777217, -16777217, 2147483647, -2147483647, 16777219, 5, -5, 0};
  for (auto& device : devices()) {
    std::vector<float> from = x, to(3 * 8);
    std::vector<int32_t> number = whole, out(4 * 16);
    auto k = kernel("whole", [](Ptr<const float> p, Ptr<const int32_t> q, Ptr<int32_t> out, Ptr<float> to) {
      auto i = arange(0, 16), j = arange(0, 8);
      store(out + i, cast(load(p + i), i32, Rounding::nearest));
      for (int r = 0; r < 3; ++r) {
        store(out + 16 * (r + 1) + i, cast(load(p + i), i32, kDirections[r]));
        store(to + 8 * r + j, cast(load(q + j), f32, kDirections[r]));
      }
    });
    ASSERT_TRUE(run_on(device, k, Grid{1}, from, number, out, to));
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(out[i], static_cast<int>(std::nearbyint(x[i]))) << device->name() << " of " << x[i];
      EXPECT_EQ(out[16 + i], static_cast<int>(std::trunc(x[i])));
      EXPECT_EQ(out[32 + i], static_cast<int>(std::ceil(x[i])));
      EXPECT_EQ(out[48 + i], static_cast<int>(std::floor(x[i])));
    }
    for (int j = 0; j < 8; ++j)
      for (int r = 0; r < 3; ++r)
        EXPECT_EQ(to[8 * r + j], rounded<float>(whole[j], kDirections[r])) << device->name() << " of " << whole[j];
  }
}

template <class T>
void check_random(double unit) {
  SCOPED_TRACE(name(dtype_of<T>()));
  constexpr int n = 8192;
  const double parts[] = {0, 0.125, 0.5, 0.9375};
  for (auto& device : devices())
    for (double sign : {1.0, -1.0})
      for (double part : parts) {
        std::vector<float> x(n, static_cast<float>(sign * (1 + part * unit)));
        std::vector<T> out(n);
        auto k = kernel("random_rounding", [](Ptr<const float> p, Ptr<T> out) {
          auto i = arange(0, n);
          store(out + i, cast_stochastic(load(p + i), dtype_of<T>(), randint(7, i)));
        });
        ASSERT_TRUE(run_on(device, k, Grid{1}, x, out));
        int up = 0;
        for (int i = 0; i < n; ++i) {
          const double got = sign * widen(out[i]);
          ASSERT_TRUE(got == 1 || got == 1 + unit) << device->name() << " gave " << got;
          up += got != 1;
        }
        EXPECT_NEAR(double(up) / n, part, part == 0 ? 0 : 0.02) << device->name();
      }
}
TEST(Rounding, StochasticHasTheRightMean) {
  check_random<bfloat16>(0x1p-7);
  check_random<half>(0x1p-10);
  check_random<fp8_e4m3>(0x1p-3);
  check_random<fp8_e5m2>(0x1p-2);
}
TEST(Rounding, StochasticAtTheEnds) {
  const std::vector<float> x{0.f,   -0.f, NAN,  INFINITY, -INFINITY, 65504.f, 65519.f, 1e9f,
                             -1e9f, 1.f,  -2.f, 0x1p-24f, 4e-8f,     1,       1,       1};
  for (auto& device : devices()) {
    std::vector<float> in = x;
    std::vector<half> out(16);
    auto k = kernel("random_ends", [](Ptr<const float> p, Ptr<half> out) {
      auto i = arange(0, 16);
      store(out + i, cast_stochastic(load(p + i), f16, zeros({16}, u32)));
    });
    ASSERT_TRUE(run_on(device, k, Grid{1}, in, out));
    const double want[] = {0, -0.0, NAN, INFINITY, -INFINITY, 65504, 65504, 65504, -65504, 1, -2, 0x1p-24, 0x1p-24};
    for (int i = 0; i < 13; ++i)
      EXPECT_TRUE(std::isnan(want[i])
                      ? std::isnan(widen(out[i]))
                      : widen(out[i]) == want[i] && std::signbit(widen(out[i])) == std::signbit(want[i]))
          << device->name() << " " << x[i] << " gave " << widen(out[i]) << ", expected " << want[i];
  }
}

}  // namespace
}  // namespace tile::ops
