// The narrow float types against independent references: every bit pattern decoded by ldexp, every rounding decision
// found by searching the table of representable values, and the compiler's own _Float16 where it has one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/float_types.h"

namespace tile {
namespace {

// Decodes by the definition of the format; IEEE-like unless !has_inf (then only all ones is NaN).
double decode_by_definition(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_inf) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const bool negative = bits >> (exponent_bits + mantissa_bits) & 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const int all_ones = (1 << exponent_bits) - 1;
  double value;
  if (exponent == all_ones && has_inf)
    value = mantissa ? std::nan("") : INFINITY;
  else if (exponent == all_ones && mantissa == (1 << mantissa_bits) - 1 && !has_inf)
    value = std::nan("");
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  else
    value = std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return negative ? -value : value;
}

// Nearest representable value by search, ties to the even pattern; `overflow` is what lies beyond the largest finite.
template <class T>
class Reference {
 public:
  Reference(int exponent_bits, int mantissa_bits, bool has_inf, bool saturates)
      : sign_(1u << (exponent_bits + mantissa_bits)) {
    for (uint32_t b = 0; b < sign_; ++b) {
      const double v = decode_by_definition(b, exponent_bits, mantissa_bits, has_inf);
      if (std::isfinite(v)) values_.push_back(v);
    }
    overflow_ = saturates ? static_cast<uint32_t>(values_.size()) - 1 : static_cast<uint32_t>(values_.size());
    // Rounding happens as if the next value existed.
    const double last = values_.back(), step = last - values_[values_.size() - 2];
    beyond_ = last + step;
  }
  uint32_t encode(double x) const {
    const uint32_t sign = std::signbit(x) ? sign_ : 0;
    const double a = std::fabs(x);
    if (a >= beyond_) return sign | overflow_;
    const auto above = static_cast<uint32_t>(std::upper_bound(values_.begin(), values_.end(), a) - values_.begin());
    const uint32_t low = above - 1;
    const double high_value = above < values_.size() ? values_[above] : beyond_;
    const double to_low = a - values_[low], to_high = high_value - a;  // exact: a few bits apart
    const uint32_t pick = to_low < to_high ? low : to_low > to_high ? above : (low % 2 == 0 ? low : above);
    return sign | (pick < values_.size() ? pick : overflow_);
  }
  const std::vector<double>& values() const { return values_; }
  double beyond() const { return beyond_; }

 private:
  uint32_t sign_, overflow_;
  std::vector<double> values_;
  double beyond_;
};

template <class T>
struct Named;
template <>
struct Named<half> {
  static constexpr int e = 5, m = 10;
  static constexpr bool inf = true, saturates = false;
};
template <>
struct Named<bfloat16> {
  static constexpr int e = 8, m = 7;
  static constexpr bool inf = true, saturates = false;
};
template <>
struct Named<fp8_e4m3> {
  static constexpr int e = 4, m = 3;
  static constexpr bool inf = false, saturates = true;
};
template <>
struct Named<fp8_e5m2> {
  static constexpr int e = 5, m = 2;
  static constexpr bool inf = true, saturates = true;
};

template <class T>
class NarrowFloatTest : public testing::Test {
 public:
  using N = Named<T>;
  static constexpr uint32_t kPatterns = 1u << (1 + N::e + N::m);
  Reference<T> reference{N::e, N::m, N::inf, N::saturates};
};
using Types = testing::Types<half, bfloat16, fp8_e4m3, fp8_e5m2>;
TYPED_TEST_SUITE(NarrowFloatTest, Types);

TYPED_TEST(NarrowFloatTest, EveryPatternDecodesToItsDefinition) {
  using N = typename TestFixture::N;
  for (uint32_t b = 0; b < this->kPatterns; ++b) {
    const double want = decode_by_definition(b, N::e, N::m, N::inf);
    const float got = TypeParam::from_bits(static_cast<decltype(TypeParam::bits)>(b));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << b;
    } else {
      ASSERT_EQ(want, static_cast<double>(got)) << b;
      ASSERT_EQ(std::signbit(want), std::signbit(got)) << b;
    }
  }
}

TYPED_TEST(NarrowFloatTest, EveryPatternSurvivesTheRoundTrip) {
  using N = typename TestFixture::N;
  for (uint32_t b = 0; b < this->kPatterns; ++b) {
    const auto x = TypeParam::from_bits(static_cast<decltype(TypeParam::bits)>(b));
    const TypeParam y(static_cast<float>(x));
    if (std::isnan(static_cast<float>(x))) {
      ASSERT_TRUE(std::isnan(static_cast<float>(y))) << b;
      if (N::inf) {
        ASSERT_EQ(b | (1u << (N::m - 1)), y.bits) << "a NaN keeps sign and payload and becomes quiet";
      }
    } else if (std::isinf(static_cast<float>(x)) && N::saturates) {
      ASSERT_EQ(b - 1, y.bits) << "infinity saturates";
    } else {
      ASSERT_EQ(b, y.bits);
    }
  }
}

TYPED_TEST(NarrowFloatTest, EveryMidpointAndItsNeighboursRoundToNearestEven) {
  std::vector<double> values = this->reference.values();
  values.push_back(this->reference.beyond());
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const double middle = (values[i] + values[i + 1]) / 2;
    for (double x : {values[i], middle, std::nextafter(middle, 0.0), std::nextafter(middle, INFINITY),
                     std::nextafter(values[i], INFINITY)})
      for (double s : {x, -x}) {
        ASSERT_EQ(this->reference.encode(s), TypeParam(s).bits) << s;
        // Through float only where float holds the value: a float argument must give the same answer.
        if (static_cast<double>(static_cast<float>(s)) == s) {
          ASSERT_EQ(this->reference.encode(s), TypeParam(static_cast<float>(s)).bits);
        }
      }
  }
}

TYPED_TEST(NarrowFloatTest, RandomFloatsAndDoubles) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300000; ++i) {
    const uint32_t word = static_cast<uint32_t>(random());
    float f;
    std::memcpy(&f, &word, 4);
    if (!std::isnan(f)) {
      ASSERT_EQ(this->reference.encode(f), TypeParam(f).bits) << f;
    }
    // Exponents near the format's own, so that most doubles do not simply overflow.
    const double d =
        std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53 + 1, static_cast<int>(random() % 64) - 40);
    ASSERT_EQ(this->reference.encode(d), TypeParam(d).bits) << d;
  }
}

TYPED_TEST(NarrowFloatTest, SpecialValues) {
  using N = typename TestFixture::N;
  EXPECT_EQ(0u, TypeParam(0.0).bits);
  EXPECT_EQ(this->kPatterns / 2, TypeParam(-0.0).bits);
  EXPECT_EQ(0u, TypeParam(std::numeric_limits<double>::denorm_min()).bits);
  const uint32_t largest = static_cast<uint32_t>(this->reference.values().size()) - 1;
  for (double huge : {1e300, HUGE_VAL, static_cast<double>(std::numeric_limits<float>::infinity())})
    EXPECT_EQ(N::saturates ? largest : largest + 1, TypeParam(huge).bits) << huge;
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(NAN))));
  EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(-NAN))));
}

TEST(FloatTypes, DoublesAreNotRoundedTwice) {
  // Just above the midpoint of 1 and the next half: through float it would become the midpoint and round down to even.
  const double x = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(1.0, static_cast<double>(half(static_cast<float>(x))));
  EXPECT_EQ(1 + 0x1p-10, static_cast<double>(half(x)));
}

#ifdef __FLT16_MAX__
TEST(FloatTypes, HalfAgreesWithTheCompilersOwn) {
  for (uint32_t i = 0; i < (1u << 20); ++i) {
    const uint32_t word = i * 4099u;  // covers every exponent and both signs
    float f;
    std::memcpy(&f, &word, 4);
    const _Float16 theirs = static_cast<_Float16>(f);
    uint16_t bits;
    std::memcpy(&bits, &theirs, 2);
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(half(f))));
    } else {
      ASSERT_EQ(bits, half(f).bits) << f;
    }
  }
}
#endif

TEST(FloatTypes, ConversionsAreConstantExpressions) {
  static_assert(half(1.0f).bits == 0x3c00 && bfloat16(1.0f).bits == 0x3f80);
  static_assert(static_cast<float>(half::from_bits(0x0001)) == 0x1p-24f);
  static_assert(fp8_e4m3(1000.0).bits == 0x7e && fp8_e5m2(1e9).bits == 0x7b);
}

TEST(FloatTypes, DTypeOfStorageTypes) {
  static_assert(kDTypeOf<float> == DType::f32 && kDTypeOf<const half> == DType::f16 && kDTypeOf<bool> == DType::i1);
  static_assert(kDTypeOf<long long> == DType::i64 && kDTypeOf<long> == DType::i64 &&
                kDTypeOf<unsigned char> == DType::u8);
  static_assert(kDTypeOf<fp8_e5m2> == DType::f8e5m2 && !kHasDType<void*> && !kHasDType<std::vector<int>>);
}

TEST(FloatTypes, ToDoubleReadsEachDType) {
  EXPECT_EQ(-1, to_double(DType::i8, 0xff));
  EXPECT_EQ(255, to_double(DType::u8, 0xff));
  EXPECT_EQ(-2, to_double(DType::i32, 0xfffffffe));
  EXPECT_EQ(4294967294.0, to_double(DType::u32, 0xfffffffe));
  EXPECT_EQ(1.5, to_double(DType::f16, half(1.5).bits));
  EXPECT_EQ(-2.5, to_double(DType::f32, std::bit_cast<uint32_t>(-2.5f)));
  EXPECT_EQ(1, to_double(DType::i1, 1));
}

}  // namespace
}  // namespace tile
