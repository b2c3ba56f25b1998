// exponent_test.cpp - ldexp and frexp on every float type and device: exact, or rounded once.
#include <algorithm>
#include <bit>
#include <cmath>

#include "ops.h"

namespace tile::ops {
namespace {

/// Of every size, zeros, the smallest and largest numbers, infinities and a NaN.
template <class T>
std::vector<T> numbers(int64_t count) {
  std::vector<T> x = operands<T>(count, -2, 2, 5);
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  uint64_t state = 3;
  for (int64_t i = 0; i < count; i += 2) {  // any bits
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    x[i] = std::bit_cast<T>(static_cast<Word>(state >> (64 - 8 * sizeof(Word))));
  }
  const double ends[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0};
  for (int i = 0; i < 7; ++i) x[i] = narrow<T>(ends[i]);
  for (Word bits : {Word(1), Word(2), Word(3)}) x[7 + bits] = std::bit_cast<T>(bits);  // subnormal
  return x;
}
template <class T>
bool same(T got, double want) {
  const double value = widen(got);
  return std::isnan(want) ? std::isnan(value) : value == want && std::signbit(value) == std::signbit(want);
}

template <class T>
void check_parts() {
  SCOPED_TRACE(name(dtype_of<T>()));
  constexpr int64_t kCount = 2048;
  std::vector<T> x = numbers<T>(kCount);
  std::vector<int32_t> n(kCount);
  for (int64_t i = 0; i < kCount; ++i)
    n[i] = static_cast<int32_t>((i * 7919) % 4600 - 2300) / (1 + static_cast<int>(i % 3) * 12);
  n[0] = n[5] = std::numeric_limits<int32_t>::max(), n[6] = std::numeric_limits<int32_t>::min();
  for (auto& device : devices()) {
    std::vector<T> scaled(kCount), mantissas(kCount);
    std::vector<int32_t> exponents(kCount, -1);
    auto k = kernel("parts", [=](Ptr<const T> p, Ptr<const int32_t> q, Ptr<T> out, Ptr<T> mantissa,
                                 Ptr<int32_t> exponent) {
      auto i = arange(0, kCount);
      auto v = load(p + i);
      store(out + i, ldexp(v, load(q + i)));
      auto [m, e] = frexp(v);
      store(mantissa + i, m);
      store(exponent + i, e);
    });
    ASSERT_TRUE(run_on(device, k, {}, x, n, scaled, mantissas, exponents));
    for (int64_t i = 0; i < kCount; ++i) {
      const double value = widen(x[i]);
      const int by = sizeof(T) == 8 ? n[i] : std::clamp(n[i], -800, 800);  // exact as a double
      const double want = widen(narrow<T>(std::ldexp(value, by)));
      ASSERT_TRUE(same(scaled[i], want)) << device->name() << " " << value << " * 2^" << n[i] << " gave "
                                         << widen(scaled[i]) << ", expected " << want;
      int e = 0;
      const double m = std::frexp(value, &e);
      const bool isNumber = std::isfinite(value) && value != 0;
      ASSERT_TRUE(same(mantissas[i], m)) << device->name() << " frexp of " << value << " gave " << widen(mantissas[i]);
      ASSERT_EQ(exponents[i], isNumber ? e : 0) << device->name() << " frexp of " << value;
    }
  }
}

TEST(Exponent, PartsOfEveryFloatType) {
  check_parts<float>();
  check_parts<double>();
  check_parts<half>();
  check_parts<bfloat16>();
}

}  // namespace
}  // namespace tile::ops
