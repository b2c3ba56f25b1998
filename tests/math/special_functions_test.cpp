// special_functions_test.cpp - functions that the math dialect lacks, of f32 and f64, against long double: Gamma, the
// normal distribution, inverses of error functions, Bessel functions.
#include <cstdint>

#include "tests/math/sweep.h"

namespace {
using namespace tile::ir;
using namespace tile::ir::test;

/// Numbers in [0, 1).
class Uniform {
 public:
  double operator()() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  /// Of both signs and any exponent.
  template <class T>
  T ofAnySize() {
    const double mantissa = (*this)() - 0.5, exponent = ((*this)() - 0.5) * (sizeof(T) == 8 ? 2100 : 270);
    return static_cast<T>(std::ldexp(mantissa, static_cast<int>(exponent)));
  }

 private:
  uint64_t state_ = 7;
};

template <class T>
std::vector<T> ends() {
  using Limits = std::numeric_limits<T>;
  return {T(0), T(-0.0), T(1), T(-1), T(0.5), T(-0.5), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
          Limits::max(), -Limits::max(), Limits::min(), Limits::denorm_min(), -Limits::denorm_min()};
}

// ---- Gamma

/// Arguments of Gamma: everywhere up to `end`, close to whole numbers (zeros at 1 and 2, poles below) and to halves, of
/// every size, and the ends.
template <class T>
std::vector<T> gammaArguments(double end) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = ends<T>();
  for (double special : {2.0, 3.0, -2.0, 1.4616321449683622, 35.04, 35.05, 171.62, 171.63, -34.5, -42.5, -170.5, -178.5,
                         -184.5, -1e9, 1e9, 4e36, 4.1e36})
    x.push_back(static_cast<T>(special));
  Uniform uniform;
  for (int i = 0; i < 150000; ++i) {
    const double everywhere = (2 * uniform() - 1) * end, near = std::round(everywhere * 2) / 2;
    x.push_back(static_cast<T>(everywhere));
    x.push_back(static_cast<T>((2 * uniform() - 1) * 4));
    const double beside = std::ldexp(1.0, -static_cast<int>(uniform() * 8 * sizeof(T) - 3));
    x.push_back(static_cast<T>(near + (uniform() - 0.5) * beside));
    x.push_back(uniform.ofAnySize<T>());
  }
  for (int whole = -50; whole < 50; ++whole)
    for (T side : {T(99), T(-99)}) x.push_back(std::nextafter(T(whole), side));
  return x;
}
// The C library's long double functions know their sign and poles as C does.
Long exactLgamma(Long x) { return x <= 0 && x == std::floor(x) ? INFINITY : std::lgamma(x); }
Long exactTgamma(Long x) {
  return x < 0 && x == std::floor(x) ? NAN : x == 0 ? std::copysign(INFINITY, x) : std::tgamma(x);
}
/// Below -2 there are zeros that the parts of the reflection meet at: digits of theirs are what the result has.
Long lgammaParts(Long x) { return x < -2 && std::isfinite(x) ? std::max<Long>(1, std::lgamma(-x)) : 0; }
TEST(Math, Lgamma) { EXPECT_LT((worstAt<LgammaOp>(gammaArguments<float>(60), exactLgamma, lgammaParts)), 5); }
TEST(Math, Tgamma) { EXPECT_LT((worstAt<TgammaOp>(gammaArguments<float>(44), exactTgamma)), 5); }
TEST(Math64, Lgamma) { EXPECT_LT((worstAt<LgammaOp>(gammaArguments<double>(300), exactLgamma, lgammaParts)), 5); }
TEST(Math64, Tgamma) { EXPECT_LT((worstAt<TgammaOp>(gammaArguments<double>(190), exactTgamma)), 5); }

// ---- error functions

/// Within [0, whole] (and mirrored), close to both ends in every digit, of every size, beyond, and the ends.
template <class T>
std::vector<T> fractions(double whole) {
  std::vector<T> x = ends<T>();
  for (double end : {whole, -whole})
    for (double far : {0.0, 3.0}) x.push_back(std::nextafter(T(end), T(far))), x.push_back(T(end));
  Uniform uniform;
  for (int i = 0; i < 20000; ++i) {
    const T inside = static_cast<T>(uniform() * whole);
    const double beside = std::ldexp(uniform(), -static_cast<int>(uniform() * (sizeof(T) == 8 ? 52 : 23)));
    x.push_back(inside), x.push_back(-inside);
    x.push_back(static_cast<T>(whole - beside * whole)), x.push_back(static_cast<T>(beside * whole));
    x.push_back(uniform.ofAnySize<T>());
  }
  return x;
}
/// Newton's steps: for erf up to 1/2, beyond for log erfc, which is nearly a square far out.
Long exactErfinv(Long x);
Long exactErfcinv(Long p) {
  if (!(p >= 0 && p <= 2)) return NAN;
  if (p == 0 || p == 2) return p == 0 ? INFINITY : -INFINITY;
  if (p >= 0.5L && p <= 1.5L) return exactErfinv(1 - p);
  if (p > 1) return -exactErfcinv(2 - p);
  Long y = p > 0.1L ? (1 - p) * 0.9L : std::sqrt(-std::log(p) - 0.5L * std::log(-3.2L * std::log(p)));
  for (int step = 0; step < 8; ++step) {
    const Long tail = std::erfc(y), slope = 2 / std::sqrt(std::acos(-1.0L)) * std::exp(-y * y);
    y += (std::log(tail) - std::log(p)) * tail / slope;
  }
  return y;
}
Long exactErfinv(Long x) {
  if (!(std::fabs(x) <= 1)) return NAN;
  if (std::fabs(x) > 0.5L) return std::copysign(exactErfcinv(1 - std::fabs(x)), x);
  Long y = x * 0.886226925452758L;
  for (int step = 0; step < 6; ++step)
    y -= (std::erf(y) - x) * std::sqrt(std::acos(-1.0L)) / 2 * std::exp(y * y);
  return y;
}
Long exactNormcdf(Long x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; }
Long exactNormcdfinv(Long p) { return -std::sqrt(2.0L) * exactErfcinv(2 * p); }
template <class T>
std::vector<T> normals() {
  std::vector<T> x = ends<T>();
  Uniform uniform;
  for (int i = 0; i < 50000; ++i) {
    x.push_back(static_cast<T>((uniform() - 0.5) * 80));
    x.push_back(static_cast<T>((uniform() - 0.5) * 30));
    x.push_back(uniform.ofAnySize<T>());
  }
  return x;
}
Long exactGelu(Long x) { return x < -200 ? -0.0L : x * exactNormcdf(x); }
/// Digits of x: in f32 the small results of numbers below 0 have fewer of their own.
Long geluParts(Long x) { return std::isfinite(x) ? std::fabs(x) : 1; }
/// In f64 those that come of a share below the normal numbers.
Long geluTail(Long) { return 1e-304L; }
TEST(Math, Gelu) { EXPECT_LT((worstAt<GeluOp>(normals<float>(), exactGelu, geluParts)), 3); }
TEST(Math64, Gelu) { EXPECT_LT((worstAt<GeluOp>(normals<double>(), exactGelu, geluTail)), 8); }
TEST(Math, Erfinv) { EXPECT_LT((worstAt<ErfinvOp>(fractions<float>(1), exactErfinv)), 3); }
TEST(Math, Erfcinv) { EXPECT_LT((worstAt<ErfcinvOp>(fractions<float>(2), exactErfcinv)), 4); }
TEST(Math, Normcdf) { EXPECT_LT((worstAt<NormcdfOp>(normals<float>(), exactNormcdf)), 5); }
TEST(Math, Normcdfinv) { EXPECT_LT((worstAt<NormcdfinvOp>(fractions<float>(1), exactNormcdfinv)), 5); }
TEST(Math64, Erfinv) { EXPECT_LT((worstAt<ErfinvOp>(fractions<double>(1), exactErfinv)), 5); }
TEST(Math64, Erfcinv) { EXPECT_LT((worstAt<ErfcinvOp>(fractions<double>(2), exactErfcinv)), 6); }
TEST(Math64, Normcdf) { EXPECT_LT((worstAt<NormcdfOp>(normals<double>(), exactNormcdf)), 6); }
TEST(Math64, Normcdfinv) { EXPECT_LT((worstAt<NormcdfinvOp>(fractions<double>(1), exactNormcdfinv)), 7); }

// ---- Bessel functions

/// The C library's, with the signs of the ends.
Long ofPositive(Long x, Long (*of)(Long)) { return x == 0 ? -INFINITY : x < 0 ? NAN : std::isinf(x) ? 0 : of(x); }
Long exactJ0(Long x) { return std::isinf(x) ? 0 : ::j0l(x); }
Long exactJ1(Long x) { return std::isinf(x) ? 0 : ::j1l(x); }
Long exactY0(Long x) { return ofPositive(x, ::y0l); }
Long exactY1(Long x) { return ofPositive(x, ::y1l); }
/// From 8 on the height of the wave counts; below, what the C library knows around zeros.
Long wave(Long x) { return std::fabs(x) < 8 ? 1e-4L : std::sqrt(2 / (std::acos(-1.0L) * std::fabs(x))); }
Long waveOfFloats(Long x) { return std::fabs(x) < 8 ? 0 : wave(x); }
template <class T>
std::vector<T> besselArguments() {
  std::vector<T> x = ends<T>();
  Uniform uniform;
  for (int i = 0; i < 30000; ++i) {
    for (double most : {2.5, 8.0, 20.0, 1e4}) x.push_back(static_cast<T>((2 * uniform() - 1) * most));
    for (double end : {2.2, 4.0, 5.0, 5.5, 8.0})  // where pieces meet
      x.push_back(static_cast<T>(end + (uniform() - 0.5) * 1e-6));
    x.push_back(uniform.ofAnySize<T>());
  }
  std::erase_if(x, [](T v) { return std::isfinite(v) && std::fabs(v) > T(0x1p30); });
  return x;
}
/// Beside a zero digits are those of the distance from it: its nearest double, and the function there.
template <class Op>
void expectZeros(std::vector<std::pair<double, double>> zeros) {
  Compiled f(f64, f64, 1, mathOp<Op>(1, true));
  for (auto [at, want] : zeros) {
    double x[kLanes], out[kLanes];
    std::fill_n(x, kLanes, at);
    f(x, x, out);
    EXPECT_NEAR(out[0], want, 7 * std::ldexp(std::fabs(want), -52)) << "near " << at;
  }
}
TEST(Math, J0) { EXPECT_LT((worstAt<J0Op>(besselArguments<float>(), exactJ0, waveOfFloats)), 1); }
TEST(Math, J1) { EXPECT_LT((worstAt<J1Op>(besselArguments<float>(), exactJ1, waveOfFloats)), 1); }
TEST(Math, Y0) { EXPECT_LT((worstAt<Y0Op>(besselArguments<float>(), exactY0, waveOfFloats)), 1); }
TEST(Math, Y1) { EXPECT_LT((worstAt<Y1Op>(besselArguments<float>(), exactY1, waveOfFloats)), 1); }
TEST(Math64, J0) { EXPECT_LT((worstAt<J0Op>(besselArguments<double>(), exactJ0, wave)), 7); }
TEST(Math64, J1) { EXPECT_LT((worstAt<J1Op>(besselArguments<double>(), exactJ1, wave)), 7); }
TEST(Math64, Y0) { EXPECT_LT((worstAt<Y0Op>(besselArguments<double>(), exactY0, wave)), 7); }
TEST(Math64, Y1) { EXPECT_LT((worstAt<Y1Op>(besselArguments<double>(), exactY1, wave)), 7); }
TEST(Math64, ZerosOfBesselFunctions) {
  expectZeros<J0Op>({{0x1.33d152e971b40p+1, -0x1.19b7921f03c8ep-54}, {0x1.6148f5b2c2e45p+2, -0x1.fbb40985f6e34p-56}});
  expectZeros<J1Op>({{0x1.ea75575af6f09p+1, -0x1.1b9c1c3fb286fp-54}, {0x1.c0ff5f3b47250p+2, 0x1.049770ce74c2ep-55}});
  expectZeros<Y0Op>({{0x1.c982eb8d417eap-1, -0x1.af74bfa0f1304p-56}, {0x1.fa9534d98569cp+1, -0x1.8fa8956b4b481p-55}, {0x1.c581dc4e72103p+2, 0x1.e91b198d39ce2p-56}});
  expectZeros<Y1Op>({{0x1.193bed4dff243p+1, 0x1.cf9f8d5e1a475p-56}, {0x1.5b7fe4e87b02ep+2, 0x1.46a40b234169cp-53}});
}

}  // namespace
