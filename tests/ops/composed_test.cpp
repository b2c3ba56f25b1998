// composed_test.cpp - functions that are made of elementwise operations: sigmoid, silu, logaddexp, clamp, softmax.
#include "ops.h"

namespace tile::ops {
namespace {

constexpr int kCount = 264;  // not a power of two, not a multiple of a warp's worth

TEST(Elementwise, ComposedFunctions) {
  for (auto& device : devices()) {
    std::vector<float> x = operands<float>(kCount, -12, 12, 9), out(5 * kCount);
    x[0] = -INFINITY, x[1] = INFINITY;
    auto k = kernel("composed", [](Ptr<const float> px, Ptr<float> out) {
      auto i = arange(0, kCount);
      auto x = load(px + i);
      store(out + i, sigmoid(x));
      store(out + kCount + i, silu(x));
      store(out + 2 * kCount + i, clamp(x, -1, 2.5f));
      store(out + 3 * kCount + i, logaddexp(x, where(i < 2, x, 2 - x)));
      store(out + 4 * kCount + i, logaddexp(x, NAN));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(out[3 * kCount + i], x[i]) << device->name();
    for (int i = 0; i < kCount; ++i) EXPECT_TRUE(std::isnan(out[4 * kCount + i])) << device->name();
    for (int i = 2; i < kCount; ++i) {
      const double v = x[i];
      EXPECT_NEAR(out[3 * kCount + i], std::log(std::exp(v) + std::exp(2 - v)), 4e-6) << device->name();
      const double s = 1 / (1 + std::exp(-static_cast<double>(x[i])));
      EXPECT_NEAR(out[i], s, 4e-6 * s + 1e-9) << device->name();
      EXPECT_NEAR(out[kCount + i], x[i] * s, 4e-6 * std::fabs(x[i] * s) + 1e-8);
      EXPECT_EQ(out[2 * kCount + i], std::min(std::max(x[i], -1.f), 2.5f));
    }
  }
}

// Functions made of others round 16-bit floats once, at the end: far out, every step of their own would cost percents.
template <class T>
void composed_of_halves(double ulp) {
  for (auto& device : devices()) {
    const std::vector<float> drawn = operands<float>(kCount, -9, 9, 9);
    std::vector<T> x, out(2 * kCount);
    for (float v : drawn) x.push_back(T(v));
    std::vector<float> shares(kCount);
    auto k = kernel("composed_of_halves", [](Ptr<const T> px, Ptr<T> out, Ptr<float> shares) {
      auto i = arange(0, kCount);
      auto x = load(px + i);
      store(out + i, sigmoid(x));
      store(out + kCount + i, silu(x));
      store(shares + i, softmax(x, axis(0)));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out, shares));
    double total = 0;
    for (int i = 0; i < kCount; ++i) total += std::exp(static_cast<double>(float(x[i])));
    for (int i = 0; i < kCount; ++i) {
      const double v = float(x[i]), s = 1 / (1 + std::exp(-v));
      EXPECT_NEAR(float(out[i]), s, 0.51 * ulp * s) << device->name() << " of " << v;
      EXPECT_NEAR(float(out[kCount + i]), v * s, 0.51 * ulp * std::fabs(v * s)) << device->name() << " of " << v;
      EXPECT_NEAR(shares[i], std::exp(v) / total, 1e-5 * std::exp(v) / total) << device->name() << " of " << v;
    }
  }
}
TEST(Elementwise, ComposedFunctionsOfHalves) {
  composed_of_halves<half>(0x1p-10);
  composed_of_halves<bfloat16>(0x1p-7);
}

}  // namespace
}  // namespace tile::ops
