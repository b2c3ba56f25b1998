// microscaling_test.cpp - every byte of the microscaling formats, and products of all pairs of operands of dot_scaled,
// to the bit: small numbers whose sums an f32 holds whatever their order.
#include <algorithm>
#include <cmath>

#include "ops.h"

namespace tile::ops {
namespace {

double e2m1(int code) {
  const double values[8] = {0, .5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8 ? -1 : 1) * values[code & 7];
}
bool same(double got, double want) {
  return std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
}

template <class T>
void check_every_byte() {
  SCOPED_TRACE(name(dtype_of<T>()));
  std::vector<uint8_t> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  for (auto& device : devices()) {
    std::vector<T> numbers(512), down(512), powers(256);
    auto k = kernel("every_byte", [](Ptr<const uint8_t> p, Ptr<T> out, Ptr<T> below, Ptr<T> power) {
      auto x = load(p + arange(0, 256));
      store(out + arange(0, 512), from_e2m1(x, dtype_of<T>()));
      auto rows = from_e2m1(reshape(x, {16, 16}), dtype_of<T>(), axis(0));
      store(below + (arange(0, 32).col() * 16 + arange(0, 16).row()), rows);
      store(power + arange(0, 256), from_e8m0(x, dtype_of<T>()));
    });
    ASSERT_TRUE(run_on(device, k, {}, bytes, numbers, down, powers));
    for (int i = 0; i < 256; ++i) {
      for (int half = 0; half < 2; ++half) {
        const double want = e2m1(i >> (4 * half) & 15);
        ASSERT_TRUE(same(widen(numbers[2 * i + half]), want))
            << device->name() << " byte " << i << " half " << half << ": " << widen(numbers[2 * i + half]);
        ASSERT_TRUE(same(widen(down[(i / 16 * 2 + half) * 16 + i % 16]), want)) << device->name() << " byte " << i;
      }
      const double exact = i == 255 ? NAN : std::ldexp(1.0, i - 127);
      ASSERT_TRUE(same(widen(powers[i]), widen(narrow<T>(exact))))
          << device->name() << " 2^" << i - 127 << ": " << widen(powers[i]);
    }
  }
}
TEST(Microscaling, EveryByte) {
  check_every_byte<half>();
  check_every_byte<bfloat16>();
  check_every_byte<float>();
}

/// An operand as a kernel may have it: RxK numbers and their factors, and what they are worth.
struct Source {
  DType dtype;                 ///< u8: e2m1
  bool along_k = true;         ///< how these are packed
  int group = 0;               ///< 0: no factors
  bool small_factors = false;  ///< f8e4m3 rather than e8m0
  std::string text() const {
    return std::string(name(dtype)) + (along_k ? "" : " across") + " / " + std::to_string(group) +
           (small_factors ? " e4m3" : "");
  }
};
struct Data {
  std::vector<uint8_t> values, factors;
  std::vector<double> worth;  ///< RxK
};
constexpr int kM = 32, kN = 16, kK = 64;

template <class T>
uint8_t byte_of(double v) {
  return std::bit_cast<uint8_t>(narrow<T>(v));
}
Data data_of(const Source& s, int rows, uint32_t seed) {
  Data d;
  std::mt19937 random(seed);
  d.worth.resize(size_t(rows) * kK);
  const bool packed = s.dtype == u8;
  const int size = s.dtype == f16 || s.dtype == bf16 ? 2 : 1;
  d.values.resize(size_t(rows) * kK * size / (packed ? 2 : 1));
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < kK; ++k) {
      double& worth = d.worth[r * kK + k];
      const int whole = static_cast<int>(random() % 15) - 7;
      worth = whole;
      const size_t at = size_t(r) * kK + k;
      if (packed) {
        const int code = static_cast<int>(random() % 16);
        worth = e2m1(code);
        if (s.along_k)
          d.values[at / 2] |= code << (k % 2 * 4);
        else
          d.values[(r / 2) * kK + k] |= code << (r % 2 * 4);
      } else if (s.dtype == f8e4m3) {
        d.values[at] = byte_of<fp8_e4m3>(whole);
      } else if (s.dtype == f8e5m2) {
        d.values[at] = byte_of<fp8_e5m2>(worth = whole % 4);
      } else {
        const uint16_t bits = s.dtype == f16 ? std::bit_cast<uint16_t>(narrow<half>(whole))
                                             : std::bit_cast<uint16_t>(narrow<bfloat16>(whole));
        d.values[2 * at] = static_cast<uint8_t>(bits), d.values[2 * at + 1] = static_cast<uint8_t>(bits >> 8);
      }
    }
  for (int r = 0; s.group && r < rows; ++r)
    for (int g = 0; g < kK / s.group; ++g) {
      const int power = static_cast<int>(random() % 5) - 2;
      const double factor = std::ldexp(s.small_factors && power > 0 ? 1.5 : 1.0, power);
      d.factors.push_back(s.small_factors ? byte_of<fp8_e4m3>(factor) : static_cast<uint8_t>(127 + power));
      for (int k = 0; k < s.group; ++k) d.worth[r * kK + g * s.group + k] *= factor;
    }
  if (d.factors.empty()) d.factors.resize(4);
  return d;
}

/// RxK (or CxK turned to KxC) numbers of bytes in memory.
Tile values_of(const Source& s, const Tile& p, int rows, bool second) {
  const bool wide = s.dtype == f16 || s.dtype == bf16;
  int r = rows, k = kK;
  if (s.dtype == u8) (s.along_k ? k : r) /= 2;
  auto at = arange(0, r).col() * k + arange(0, k).row();
  Tile v = wide ? bitcast(cast(load(p + 2 * at), u16) | cast(load(p + 2 * at + 1), u16) << 8, s.dtype) : load(p + at);
  if (s.dtype == f8e4m3 || s.dtype == f8e5m2) v = bitcast(v, s.dtype);
  return second ? trans(v) : v;
}
ScaledOperand operand_of(const Source& s, const Tile& p, const Tile& factors, int rows, bool second) {
  Tile v = values_of(s, p, rows, second);
  if (!s.group) return {v, {}, s.along_k};
  const int groups = kK / s.group;
  Tile f = load(factors + (arange(0, rows).col() * groups + arange(0, groups).row()));
  if (s.small_factors) f = bitcast(f, f8e4m3);
  return {v, f, s.along_k};
}

void check_product(const Source& a, const Source& b, bool onto) {
  SCOPED_TRACE(a.text() + " x " + b.text());
  Data left = data_of(a, kM, 3), right = data_of(b, kN, 7);
  for (auto& device : devices()) {
    std::vector<float> out(kM * kN, NAN);
    auto k = kernel("scaled", [=](Ptr<const uint8_t> pa, Ptr<const uint8_t> fa, Ptr<const uint8_t> pb,
                                  Ptr<const uint8_t> fb, Ptr<float> c) {
      auto x = operand_of(a, pa, fa, kM, false), y = operand_of(b, pb, fb, kN, true);
      Tile r = onto ? dot_scaled(x, y, full({kM, kN}, 3, f32)) : dot_scaled(x, y);
      store(c + (arange(0, kM).col() * kN + arange(0, kN).row()), r);
    });
    ASSERT_TRUE(run_on(device, k, {}, left.values, left.factors, right.values, right.factors, out));
    for (int m = 0; m < kM; ++m)
      for (int n = 0; n < kN; ++n) {
        double want = onto ? 3 : 0;
        for (int i = 0; i < kK; ++i) want += left.worth[m * kK + i] * right.worth[n * kK + i];
        ASSERT_EQ(out[m * kN + n], want) << device->name() << " at " << m << ", " << n;
      }
  }
}
TEST(Microscaling, Products) {
  const Source four{u8, true, 32}, across{u8, false, 32}, nv{u8, true, 16, true}, bare{u8};
  const Source e4{f8e4m3, true, 32}, e5{f8e5m2, true, 32}, brain{bf16}, halves{f16}, scaled_halves{f16, true, 64};
  check_product(brain, four, true);
  check_product(four, brain, false);
  check_product(halves, nv, true);
  check_product(e4, four, true);
  check_product(e5, e4, false);
  check_product(four, four, true);
  check_product(across, across, true);
  check_product(across, e5, false);
  check_product(scaled_halves, e5, true);
  check_product(bare, bare, false);
  check_product(e4, brain, true);
  check_product({f8e4m3}, {f8e4m3}, false);
  check_product(halves, {u8, false, 2}, false);
}

// Factors that a bf16 can hold only as a subnormal, or not as a number.
TEST(Microscaling, ExtremeFactors) {
  for (auto& device : devices()) {
    std::vector<uint8_t> codes{0x20, 0x7f}, factors{0, 1, 254, 255};
    std::vector<float> out(4 * 4, -1);
    auto k = kernel("extremes", [](Ptr<const uint8_t> p, Ptr<const uint8_t> f, Ptr<float> c) {
      auto w = from_e2m1(load(p + arange(0, 2)), bf16).row();
      auto r = cast(w * from_e8m0(load(f + arange(0, 4)), bf16).col(), f32);
      store(c + (arange(0, 4).col() * 4 + arange(0, 4).row()), r);
    });
    ASSERT_TRUE(run_on(device, k, {}, codes, factors, out));
    const double numbers[4] = {0, 1, -6, 6};
    for (int g = 0; g < 4; ++g)
      for (int i = 0; i < 4; ++i) {
        const double exact = numbers[i] * (g == 3 ? NAN : std::ldexp(1.0, factors[g] - 127));
        const double want = std::fabs(exact) > 3.4e38 ? std::copysign(INFINITY, exact) : exact;
        EXPECT_TRUE(same(out[g * 4 + i], want))
            << device->name() << " " << numbers[i] << " * 2^" << factors[g] - 127 << " gave " << out[g * 4 + i];
      }
  }
}

}  // namespace
}  // namespace tile::ops
