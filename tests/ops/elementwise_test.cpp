// elementwise_test.cpp - every row of elementwise.def on every element type and device, against the row's own
// reference. Compiled with -fwrapv: the references of the integer rows wrap as the language does.
#include <bit>
#include <cstring>

#include "ops.h"

namespace tile::ops {
namespace {

constexpr int kCount = 264;  // not a power of two, not a multiple of a warp's worth

// References the rows name.
template <class T>
T reference_rem(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmod(x, y);
  else
    return static_cast<T>(x % y);
}
template <class T>
requires std::is_integral_v<T> T reference_shl(T x, T y) {
  return static_cast<T>(static_cast<uint64_t>(x) << static_cast<int>(y));
}
template <class T>
requires std::is_integral_v<T> T reference_shr(T x, T y) { return static_cast<T>(x >> static_cast<int>(y)); }
// Whole numbers are their own floor; through double they would lose digits.
#define TILE_ROUNDING(name, function)    \
  template <class T>                     \
  T reference_##name(T x) {              \
    if constexpr (std::is_integral_v<T>) \
      return x;                          \
    else                                 \
      return function(x);                \
  }
TILE_ROUNDING(floor, std::floor)
TILE_ROUNDING(ceil, std::ceil)
TILE_ROUNDING(round, std::round)
TILE_ROUNDING(rint, std::nearbyint)
TILE_ROUNDING(trunc, std::trunc)
#undef TILE_ROUNDING
double reference_sinpi(double x) {
  const double r = std::remainder(x, 2.0);
  return std::sin(M_PI * (std::fabs(r) > 0.5 ? std::copysign(1.0, r) - r : r));
}
template <class T>
T reference_abs(T x) {
  return x < T(0) ? static_cast<T>(-x) : x;
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) T reference_popcount(T x) {
  return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) T reference_countl_zero(T x) {
  return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(x)));
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) T reference_countr_zero(T x) {
  return static_cast<T>(std::countr_zero(static_cast<std::make_unsigned_t<T>>(x)));
}
template <class T>
T reference_max(T x, T y) {
  return x < y ? y : x;
}
template <class T>
T reference_min(T x, T y) {
  return y < x ? y : x;
}
template <class T>
requires std::is_integral_v<T> T reference_cdiv(T x, T y) { return x < T{1} ? T{0} : static_cast<T>(x / y + (x % y != 0)); }
/// By halving: the ends are where erf is 1 in every digit.
double reference_erfinv(double x) {
  long double low = 0, high = 7;
  for (int i = 0; i < 80; ++i) {
    const long double middle = (low + high) / 2;
    (std::erf(middle) < std::fabs(static_cast<long double>(x)) ? low : high) = middle;
  }
  return std::copysign(static_cast<double>(low), x);
}
double reference_normcdf(double x) { return static_cast<double>(std::erfc(-x / std::sqrt(2.0L)) / 2); }
template <class T>
requires std::is_integral_v<T> T reference_mulhi(T x, T y) {
  return static_cast<T>((static_cast<__int128>(x) * static_cast<__int128>(y)) >> (8 * sizeof(T)));
}
template <class T>
requires std::is_integral_v<T> T reference_floor_div(T x, T y) {
  return static_cast<T>(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}
template <class T>
requires std::is_integral_v<T> T reference_floor_mod(T x, T y) {
  return static_cast<T>(static_cast<__int128>(x) - static_cast<__int128>(y) * reference_floor_div(x, y));
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) T reference_rotl(T x, T y) {
  using Word = std::make_unsigned_t<T>;
  return static_cast<T>(std::rotl(static_cast<Word>(x), static_cast<int>(static_cast<Word>(y) % (8 * sizeof(T)))));
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) T reference_bit_reverse(T x) {
  std::make_unsigned_t<T> r = 0;
  for (size_t i = 0; i < 8 * sizeof(T); ++i) r = static_cast<decltype(r)>(r << 1 | ((x >> i) & 1));
  return static_cast<T>(r);
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) T reference_rotr(T x, T y) {
  return reference_rotl(x, static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(y)));
}
template <class T>
requires kIsFloat<T> double reference_nextafter(double x, double y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::nextafter(static_cast<T>(x), static_cast<T>(y));
  } else {  // one up or down among the numbers of 16 bits
    T r = narrow<T>(x);
    if (x == y) return y;
    r.bits = static_cast<uint16_t>(r.bits + ((x < y) == (x > 0) ? 1 : -1));
    return widen(r);
  }
}

template <class T>
const char* column(const char* f, const char* s, const char* u, const char* b) {
  if (kIsFloat<T>) return f;
  if (std::is_same_v<T, bool>) return b;
  return std::is_unsigned_v<T> ? u : s;
}

/// Roundings a row may cost beyond the exact result, per element type; the fast forms of GPUs are the reason for f32.
template <class T>
double allowance(const std::string& name, bool gpu) {
  if (!kIsFloat<T>) return 0;
  const bool exact = name == "add" || name == "sub" || name == "mul" || name == "neg" || name == "abs" ||
                     name == "max" || name == "min" || name == "floor" || name == "ceil" || name == "round" ||
                     name == "rint" || name == "trunc" || name == "fma" || name == "rem" ||
                     name == "copysign" || name == "remainder" || name == "fdim" || name == "maximum" ||
                     name == "minimum" || name == "nextafter" || name == "logb" || name == "add_rn" ||
                     name == "mul_rn" || name == "div_rn" || name == "sqrt_rn";
  if (exact) return 0.51;
  if (std::is_same_v<T, double>) return 16;
  if (std::is_same_v<T, float>) return gpu ? 32 : 8;
  return 1.01;  // computed in f32, rounded once
}
/// Trigonometric functions and logarithms cross zero: their error is absolute there.
double scale_of(const std::string& name) {
  for (const char* one : {"sin", "cos", "tan", "sinpi", "cospi", "asin", "acos", "atan", "atan2", "log", "log2", "log10",
                          "erf", "tanh", "gelu", "lgamma", "j0", "j1", "y0", "y1", "erfcinv", "normcdfinv"})
    if (name == one) return 1;
  return 0;
}

// The reference is a plain function so that this is compiled once per element type, not once per row.
template <class T>
using Reference = Wide<T> (*)(Wide<T>, Wide<T>, Wide<T>);

template <class T>
void check_row(detail::Op op, const std::string& name, int arity, bool gives_bool, double low, double high,
               Reference<T> reference) {
  SCOPED_TRACE(std::string(tile::name(dtype_of<T>())) + " " + name);
  std::vector<T> x = operands<T>(kCount, low, high, 1), y = operands<T>(kCount, low, high, 2),
                 z = operands<T>(kCount, low, high, 3);
  if constexpr (!kIsFloat<T> && !std::is_same_v<T, bool>)
    for (int i = 0; i < kCount; ++i) {  // stay where the operation is defined
      if (name == "div" || name == "rem" || name == "cdiv" || name == "floor_div" || name == "floor_mod")
        y[i] = static_cast<T>(y[i] == 0 ? 3 : y[i] == static_cast<T>(-1) ? 5 : y[i]);
      if (name == "cdiv")
        y[i] = static_cast<T>(y[i] < 0 ? -(y[i] + 1) + 1 : y[i]);
      if (name == "shl" || name == "shr") y[i] = static_cast<T>(static_cast<uint64_t>(y[i]) % (8 * sizeof(T)));
    }
  if (name == "isnan" || name == "isinf" || gives_bool || name == "max" || name == "min")
    if constexpr (kIsFloat<T>) {
      x[0] = x[5] = narrow<T>(NAN), y[1] = narrow<T>(NAN), x[2] = narrow<T>(INFINITY), y[3] = narrow<T>(-INFINITY);
      if (name == "max" || name == "min") x[0] = x[5] = narrow<T>(1), y[1] = narrow<T>(1);  // NaNs have their own test
    }
  for (auto& device : devices()) {
    std::vector<T> value(kCount, T{});
    // One byte per i1, also where std::vector<bool> would pack them.
    std::vector<uint8_t> truth(kCount, 7);
    auto apply = [=](Tile a, Tile b, Tile c) {
      const detail::Operand args[] = {Expr(a), Expr(b), Expr(c)};
      return detail::make_tile(detail::elementwise(op, args, arity), SrcLoc::current());
    };
    if (gives_bool) {
      auto k = kernel("op_" + name, [=](Ptr<const T> px, Ptr<const T> py, Ptr<const T> pz, Ptr<uint8_t> out) {
        auto i = arange(0, kCount);
        store(out + i, cast(apply(load(px + i), load(py + i), load(pz + i)), u8));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, y, z, truth));
    } else {
      auto k = kernel("op_" + name, [=](Ptr<const T> px, Ptr<const T> py, Ptr<const T> pz, Ptr<T> out) {
        auto i = arange(0, kCount);
        store(out + i, apply(load(px + i), load(py + i), load(pz + i)));
      });
      ASSERT_TRUE(run_on(device, k, {}, x, y, z, value));
    }
    const double ulps = allowance<T>(name, device->kind() == DeviceKind::cuda), scale = scale_of(name);
    for (int i = 0; i < kCount; ++i) {
      const auto want = reference(widen(x[i]), widen(y[i]), widen(z[i]));
      if (gives_bool) {
        ASSERT_EQ(truth[i], static_cast<uint8_t>(static_cast<bool>(want)))
            << device->name() << " element " << i << ": " << +widen(x[i]) << ", " << +widen(y[i]);
      } else {
        const Wide<T> exact = static_cast<Wide<T>>(want);
        const Wide<T> rounded = kIsFloat<T> && !std::is_same_v<T, double> ? widen(narrow<T>(exact)) : exact;
        const bool good =
            close<T>(widen(value[i]), rounded, ulps, scale) || close<T>(widen(value[i]), exact, ulps, scale);
        ASSERT_TRUE(good) << device->name() << " element " << i << ": " << +widen(x[i]) << ", " << +widen(y[i])
                          << " gave " << +widen(value[i]) << ", expected " << +exact;
      }
    }
  }
}

/// std::vector<bool> has no data(): i1 operands travel as bytes.
void check_bool_row(detail::Op op, const std::string& name, int arity, Reference<bool> reference) {
  SCOPED_TRACE("i1 " + name);
  std::vector<uint8_t> x(kCount), y(kCount);
  for (int i = 0; i < kCount; ++i) x[i] = i & 1, y[i] = i >> 1 & 1;
  for (auto& device : devices()) {
    std::vector<uint8_t> out(kCount, 7);
    auto k = kernel("op_" + name, [=](Ptr<const uint8_t> px, Ptr<const uint8_t> py, Ptr<uint8_t> o) {
      auto i = arange(0, kCount);
      Tile a = load(px + i) != 0, b = load(py + i) != 0;
      const detail::Operand args[] = {Expr(a), Expr(b), Expr(b)};
      store(o + i, cast(detail::make_tile(detail::elementwise(op, args, arity), SrcLoc::current()), u8));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, y, out));
    for (int i = 0; i < kCount; ++i)
      ASSERT_EQ(out[i], static_cast<int>(reference(x[i] != 0, y[i] != 0, false))) << device->name() << " element " << i;
  }
}

#define TILE_ROW(arity, gives_bool, name, f, s, u, b, reference, low, high)                           \
  {                                                                                                   \
    auto ref = [](auto x, auto y, auto z) -> std::decay_t<decltype(reference)> { return reference; }; \
    if (std::strcmp(column<T>(#f, #s, #u, #b), "none") != 0) {                                        \
      ++rows;                                                                                         \
      if constexpr (!requires(Wide<T> v) { ref(v, v, v); })                                           \
        ADD_FAILURE() << #name << " has no reference for this type";                                  \
      else {                                                                                          \
        /* ~1 is -2: an i1 is the lowest bit of what C++ makes of a bool */                           \
        Reference<T> plain = [](Wide<T> x, Wide<T> y, Wide<T> z) {                                    \
          if constexpr (std::is_same_v<T, bool>)                                                      \
            return static_cast<bool>(static_cast<int>(decltype(ref){}(x, y, z)) & 1);                 \
          else                                                                                        \
            return static_cast<Wide<T>>(decltype(ref){}(x, y, z));                                    \
        };                                                                                            \
        if constexpr (std::is_same_v<T, bool>)                                                        \
          check_bool_row(detail::Op::name, #name, arity, plain);                                      \
        else                                                                                          \
          check_row<T>(detail::Op::name, #name, arity, gives_bool, low, high, plain);                 \
      }                                                                                               \
      if (::testing::Test::HasFatalFailure()) return;                                                 \
    }                                                                                                 \
  }
#define TILE_UNARY_OPERATOR(name, symbol, f, s, u, b, reference, low, high, doc) \
  TILE_ROW(1, false, name, f, s, u, b, reference, low, high)
#define TILE_UNARY(name, f, s, u, b, reference, low, high, doc) \
  TILE_ROW(1, false, name, f, s, u, b, reference, low, high)
#define TILE_PREDICATE(name, f, s, u, b, reference, low, high, doc) \
  TILE_ROW(1, true, name, f, s, u, b, reference, low, high)
#define TILE_BINARY_OPERATOR(name, symbol, f, s, u, b, reference, low, high, doc) \
  TILE_ROW(2, false, name, f, s, u, b, reference, low, high)
#define TILE_BINARY(name, f, s, u, b, reference, low, high, doc) \
  TILE_ROW(2, false, name, f, s, u, b, reference, low, high)
#define TILE_COMPARISON(name, symbol, f, s, u, b, reference, low, high, doc) \
  TILE_ROW(2, true, name, f, s, u, b, reference, low, high)
#define TILE_TERNARY(name, f, s, u, b, reference, low, high, doc) \
  TILE_ROW(3, false, name, f, s, u, b, reference, low, high)

template <class T>
void check_type() {
  int rows = 0;
#include "dsl/elementwise.def"
  EXPECT_GE(rows, 5);
}

TEST(Elementwise, F16) { check_type<half>(); }
TEST(Elementwise, Bf16) { check_type<bfloat16>(); }
TEST(Elementwise, F32) { check_type<float>(); }
TEST(Elementwise, F64) { check_type<double>(); }
TEST(Elementwise, I8) { check_type<int8_t>(); }
TEST(Elementwise, I16) { check_type<int16_t>(); }
TEST(Elementwise, I32) { check_type<int32_t>(); }
TEST(Elementwise, I64) { check_type<int64_t>(); }
TEST(Elementwise, U8) { check_type<uint8_t>(); }
TEST(Elementwise, U16) { check_type<uint16_t>(); }
TEST(Elementwise, U32) { check_type<uint32_t>(); }
TEST(Elementwise, U64) { check_type<uint64_t>(); }
TEST(Elementwise, I1) { check_type<bool>(); }

// Ends of the range, zeros, infinities and NaN of what is composed of several operations.
TEST(Elementwise, ComposedFunctionsAtTheEnds) {
  const double inf = INFINITY, nan = NAN, top = 3e38, low = 1e-40;
  const std::vector<std::array<double, 3>> sides{
      {3, 4, 5},     {-3, 4, 5},      {0, 0, 0},       {0, -2, 2},      {inf, nan, inf}, {nan, -inf, inf},
      {inf, 1, inf}, {nan, 1, nan},   {1, nan, nan},   {0, nan, nan},   {nan, 0, nan},   {top / 2, top / 2, top / M_SQRT2},
      {top, 1, top}, {1e30, 1e-30, 1e30}, {1e-30, 1e-30, M_SQRT2 * 1e-30}, {inf, inf, inf}};
  const std::vector<std::array<double, 3>> turns{// x, sinpi, cospi
      {0, 0, 1}, {0.5, 1, 0}, {1, 0, -1}, {-0.5, -1, 0}, {1.5, -1, 0}, {100.25, M_SQRT1_2, M_SQRT1_2}, {1e30, 0, 1},
      {16777215, 0, -1}, {inf, nan, nan}, {nan, nan, nan}, {low, M_PI * low, 1}};
  auto check = [](const char* what, const std::shared_ptr<Device>& device, double x, float got, double want) {
    const bool gpu = device->kind() == DeviceKind::cuda;  // subnormals may vanish there
    const double off = std::isinf(want) ? 0 : std::fabs(want) * (gpu ? 2e-6 : 4e-7) + (gpu ? 1.2e-38 : 3e-45);
    const bool good = std::isnan(want) ? std::isnan(got) : got == want || std::fabs(got - want) <= off;
    EXPECT_TRUE(good) << device->name() << " " << what << " " << x << " gave " << got << ", expected " << want;
  };
  for (auto& device : devices()) {
    std::vector<float> x(16), y(16), t(16, 0.f), out(64);
    for (size_t i = 0; i < sides.size(); ++i) x[i] = float(sides[i][0]), y[i] = float(sides[i][1]);
    for (size_t i = 0; i < turns.size(); ++i) t[i] = float(turns[i][0]);
    auto k = kernel("ends", [](Ptr<const float> x, Ptr<const float> y, Ptr<const float> t, Ptr<float> out) {
      auto i = arange(0, 16);
      store(out + i, hypot(load(x + i), load(y + i)));
      store(out + 16 + i, sinpi(load(t + i)));
      store(out + 32 + i, cospi(load(t + i)));
      store(out + 48 + i, exp10(cast(i - 8, f32) * 6.f));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, y, t, out));
    for (size_t i = 0; i < sides.size(); ++i) check("hypot", device, x[i], out[i], sides[i][2]);
    for (size_t i = 0; i < turns.size(); ++i) {
      check("sinpi", device, t[i], out[16 + i], turns[i][1]);
      check("cospi", device, t[i], out[32 + i], turns[i][2]);
    }
    for (int i = 0; i < 16; ++i) check("exp10", device, 6 * (i - 8), out[48 + i], double(float(std::pow(10.0, 6 * (i - 8)))));
  }
}

/// Pairs of ends, neighbours and ties of T through every exact function of two floats, against the C library's.
template <class T>
void check_exact_pairs() {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> values{T(0),  T(-0.0), T(1),          T(-1),           T(2.5),      T(3),           T(-7.5), T(0.1), Limits::min(), -Limits::min(),
                              Limits::max(), -Limits::max(), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), T(10), T(1e30)};
  const int n = static_cast<int>(values.size());
  std::vector<T> x, y;
  for (T a : values)
    for (T b : values) x.push_back(a), y.push_back(b);
  const int count = n * n;
  for (auto& device : devices()) {
    std::vector<T> out(6 * count);
    std::vector<uint8_t> negative(count);
    auto k = kernel("exact_pairs", [=](Ptr<const T> px, Ptr<const T> py, Ptr<T> out, Ptr<uint8_t> negative) {
      auto i = arange(0, count);
      auto x = load(px + i), y = load(py + i);
      const Tile results[] = {remainder(x, y), fdim(x, y), nextafter(x, y), maximum(x, y), minimum(x, y), logb(x)};
      for (int r = 0; r < 6; ++r) store(out + r * count + i, results[r]);
      store(negative + i, cast(signbit(x), u8));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, y, out, negative));
    for (int i = 0; i < count; ++i) {
      const T a = x[i], b = y[i], nan = Limits::quiet_NaN();
      const bool none = std::isnan(a) || std::isnan(b);
      const T want[] = {std::remainder(a, b), std::fdim(a, b),          std::nextafter(a, b), none ? nan : std::max(a, b),
                        none ? nan : std::min(a, b), std::logb(a)};
      for (int r = 0; r < 6; ++r) {
        const T got = out[r * count + i];
        const bool vanishes = device->kind() == DeviceKind::cuda && std::fabs(want[r]) < Limits::min() && sizeof(T) == 4;
        ASSERT_TRUE(std::isnan(want[r]) ? std::isnan(got) : got == want[r] || (vanishes && got == 0))
            << device->name() << " function " << r << " of " << a << ", " << b << " gave " << got << ", expected " << want[r];
        if (r == 0 && got == 0) {
          ASSERT_EQ(std::signbit(got), std::signbit(a)) << a << ", " << b;
        }
      }
      ASSERT_EQ(negative[i], std::signbit(a)) << a;
    }
  }
}
TEST(Elementwise, ExactFunctionsAtTheEnds) {
  check_exact_pairs<float>();
  check_exact_pairs<double>();
}

/// To the bit what C++ computes, subnormals, signs of zero and products under a sum included.
template <class T>
void check_rounded_alone() {
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = operands<T>(4096, -1, 1, 5), y = operands<T>(4096, -1, 1, 6);
  std::mt19937_64 random(7);
  for (size_t i = 0; i < x.size(); ++i) {  // exponents over the whole range
    const int range = Limits::max_exponent, by = static_cast<int>(random() % (2 * range)) - range;
    if (i % 2) x[i] = std::ldexp(x[i], by), y[i] = std::ldexp(y[i], static_cast<int>(random() % (2 * range)) - range);
  }
  const T ends[] = {T(0), T(-0.0), Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(),
                    Limits::max(), Limits::min(), T(3)};
  for (size_t i = 0; i < 81; ++i) x[i] = ends[i / 9], y[i] = ends[i % 9];
  const auto n = static_cast<int64_t>(x.size());
  for (auto& device : devices()) {
    std::vector<T> out(5 * x.size());
    auto k = kernel("rounded_alone", [=](Ptr<const T> px, Ptr<const T> py, Ptr<T> out) {
      auto i = arange(0, n);
      auto x = load(px + i), y = load(py + i);
      const Tile results[] = {add_rn(x, y), mul_rn(x, y), div_rn(x, y), sqrt_rn(x), add_rn(mul_rn(x, y), y)};
      for (int r = 0; r < 5; ++r) store(out + r * n + i, results[r]);
    });
    ASSERT_TRUE(run_on(device, k, Grid{1}, x, y, out));
    for (int64_t i = 0; i < n; ++i) {
      const T a = x[i], b = y[i];
      volatile T product = a * b;
      const T want[] = {a + b, a * b, a / b, std::sqrt(a), product + b};
      for (int r = 0; r < 5; ++r) {
        const T got = out[r * n + i];
        ASSERT_TRUE(std::isnan(want[r]) ? std::isnan(got) : std::bit_cast<Word>(got) == std::bit_cast<Word>(want[r]))
            << device->name() << " function " << r << " of " << a << ", " << b << " gave " << got << ", expected " << want[r];
      }
    }
  }
}
TEST(Elementwise, RoundedAlone) {
  check_rounded_alone<float>();
  check_rounded_alone<double>();
}

TEST(Elementwise, NanLosesAgainstANumber) {
  for (auto& device : devices()) {
    std::vector<float> x{NAN, 1, NAN, -INFINITY}, y{2, NAN, NAN, NAN}, out(8);
    auto k = kernel("nan", [](Ptr<const float> x, Ptr<const float> y, Ptr<float> out) {
      auto i = arange(0, 4);
      store(out + i, max(load(x + i), load(y + i)));
      store(out + 4 + i, min(load(x + i), load(y + i)));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, y, out));
    for (int o : {0, 4}) {
      EXPECT_EQ(out[o], 2) << device->name();
      EXPECT_EQ(out[o + 1], 1);
      EXPECT_TRUE(std::isnan(out[o + 2]));
      EXPECT_EQ(out[o + 3], -INFINITY);
    }
  }
}

// Through every pair of element types: f64 -> from -> to -> f64, on numbers that all of them hold.
TEST(Elementwise, CastsBetweenAllTypes) {
  const std::vector<double> values{0, 1, 2, 3, 5, 6, 96, 2.5, -1, -6, -96};
  const auto n = static_cast<int64_t>(values.size());
  for (auto& device : devices())
    for (int from = 0; from < kNumDTypes; ++from)
      for (int to = 0; to < kNumDTypes; ++to) {
        const auto a = static_cast<DType>(from), b = static_cast<DType>(to);
        auto through = [](double v, DType d) {
          return d == i1 ? (v != 0 ? 1.0 : 0.0) : is_float(d) ? v : std::trunc(v);
        };
        std::vector<double> in, out(values.size(), -77);
        for (double v : values) in.push_back((is_unsigned(a) || is_unsigned(b)) && v < 0 ? -v : v);
        auto k = kernel("cast", [=](Ptr<const double> p, Ptr<double> out) {
          auto i = arange(0, n);
          store(out + i, cast(cast(cast(load(p + i), a), b), f64));
        });
        ASSERT_TRUE(run_on(device, k, {}, in, out));
        for (size_t i = 0; i < in.size(); ++i)
          ASSERT_EQ(out[i], through(through(in[i], a), b))
              << device->name() << " " << name(a) << " to " << name(b) << " of " << in[i];
      }
}

// Out of range is the end of the range, NaN is 0 in integers; pairs that hold the ends of the other are among them.
TEST(Elementwise, SaturateStaysInRange) {
  const std::vector<double> values{0,    1.75, -1.75, 127,  127.9, 128,   -128.5, -129, 255, 256, 65504,  70000,
                                   -1e9, 1e9,  4e9,   -4e9, 1e19,  -1e19, 1e30,   1e39, 1e300, -1e300, NAN, INFINITY};
  const auto n = static_cast<int64_t>(values.size());
  auto ends = [](DType d) -> std::pair<long double, long double> {
    if (d == f16) return {-65504, 65504};
    if (d == f8e4m3) return {-448, 448};
    if (d == bf16) return {-0x1.fep127, 0x1.fep127};
    if (d == f32) return {-0x1.fffffep127, 0x1.fffffep127};
    const int bits = bits_of(d);
    if (is_unsigned(d)) return {0, std::ldexp(1.0L, bits) - 1};
    return {-std::ldexp(1.0L, bits - 1), std::ldexp(1.0L, bits - 1) - 1};
  };
  for (auto& device : devices())
    for (DType to : {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f8e4m3})
      for (DType by : {f64, f32, i64, u64}) {  // what the value is before it is saturated
        if (by == to) continue;
        std::vector<double> in, out(values.size(), -77);
        for (double v : values)
          if (is_float(by) ? by == f64 || std::fabs(v) < 1e38 || !std::isfinite(v)
                           : std::isfinite(v) && std::fabs(v) < 9e18 && (by == i64 || v >= 0))
            in.push_back(v);
        in.resize(values.size(), 1);
        auto k = kernel("saturate", [=](Ptr<const double> p, Ptr<double> out) {
          auto i = arange(0, n);
          store(out + i, cast(saturate(cast(load(p + i), by), to), f64));
        });
        ASSERT_TRUE(run_on(device, k, {}, in, out));
        const auto [low, high] = ends(to);
        for (size_t i = 0; i < in.size(); ++i) {
          const double x = by == f32 ? static_cast<float>(in[i]) : is_float(by) ? in[i] : std::trunc(in[i]);
          const long double kept = std::clamp(static_cast<long double>(x), low, high);
          const double want = std::isnan(x) ? (is_float(to) ? NAN : 0) : double(is_float(to) ? kept : std::trunc(kept));
          const double off = !is_float(to) || std::fabs(want) == double(high) ? 0 : std::fabs(want) * (to == f8e4m3 ? 0.0625 : 0.004);
          ASSERT_TRUE(std::isnan(want) ? std::isnan(out[i]) : out[i] == want || std::fabs(out[i] - want) <= off)
              << device->name() << " " << name(by) << " to " << name(to) << " of " << in[i] << " gave " << out[i];
        }
      }
}

template <class To>
void check_positive_parts() {
  std::vector<float> x = operands<float>(512, -300, 300, 4);
  x[7] = NAN, x[9] = -0.f, x[11] = .5f, x[13] = -.5f, x[15] = 254.5f, x[17] = 1e9f, x[19] = -INFINITY;
  struct Form {
    Tile (*made)(const Tile&);
    float (*wanted)(float);
  };
  const Form forms[] = {
      {[](const Tile& v) -> Tile { return max(v, 0.f); }, [](float v) { return std::fmax(v, 0.f); }},
      {[](const Tile& v) -> Tile { return where(v > 0.f, v, 0.f); }, [](float v) { return v > 0 ? v : 0; }},
      {[](const Tile& v) -> Tile { return where(v < 0.f, 0.f, v); }, [](float v) { return v < 0 ? 0 : v; }},
      {[](const Tile& v) -> Tile { return clamp(v, 0.f, 255.f); },
       [](float v) { return std::fmin(std::fmax(v, 0.f), 255.f); }},
      {[](const Tile& v) -> Tile { return max(min(v, 99.f), 0.f); },
       [](float v) { return std::fmax(std::fmin(v, 99.f), 0.f); }}};
  for (auto& device : devices())
    for (bool rounded : {true, false})
      for (const Form& form : forms) {
        std::vector<To> out(512);
        auto k = kernel("positive_bytes", [=](Ptr<const float> p, Ptr<To> out) {
          num_warps(4);  // four bytes of a thread at once
          Tile v = form.made(load(p + arange(0, 512)));
          store(out + arange(0, 512), saturate(rounded ? rint(v) : v, dtype_of<To>()));
        });
        ASSERT_TRUE(run_on(device, k, {}, x, out));
        for (size_t i = 0; i < x.size(); ++i) {
          const float kept = form.wanted(x[i]), whole = rounded ? std::nearbyint(kept) : std::trunc(kept);
          const float most = std::numeric_limits<To>::max();
          ASSERT_EQ(out[i], static_cast<To>(std::isnan(whole) ? 0 : std::min(whole, most)))
              << device->name() << " form " << &form - forms << " rounded " << rounded << " of " << x[i];
        }
      }
}
// Floats kept above zero that become bytes: maxima, choices and ranges, rounded or cut off.
TEST(Elementwise, PositivePartsBecomeBytes) {
  check_positive_parts<uint8_t>();
  check_positive_parts<int8_t>();
}

template <class To>
void check_rounding() {
  std::vector<float> x = operands<float>(512, -300, 300, 4);
  for (size_t i = 0; i < x.size(); i += 3) x[i] *= 0x1p-12f;
  for (auto& device : devices()) {
    std::vector<To> out(x.size());
    auto k = kernel("round_to", [](Ptr<const float> p, Ptr<To> out) {
      store(out + arange(0, 512), cast(load(p + arange(0, 512)), dtype_of<To>()));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(out[i].bits, To(x[i]).bits) << device->name() << " " << name(dtype_of<To>()) << " of " << x[i];
  }
}
// Narrowing rounds to nearest, ties to even, denormals included.
TEST(Elementwise, NarrowingRoundsToNearest) {
  check_rounding<half>();
  check_rounding<bfloat16>();
  check_rounding<fp8_e4m3>();
  check_rounding<fp8_e5m2>();
}

template <class From>
void check_widening() {
  std::vector<From> x(256);
  for (int i = 0; i < 256; ++i) x[i] = From::from_bits(static_cast<uint8_t>(i));
  for (auto& device : devices()) {
    std::vector<float> out(3 * 256);
    auto k = kernel("widen_all", [](Ptr<const From> p, Ptr<float> out) {
      auto v = load(p + arange(0, 256));
      store(out + arange(0, 256), cast(v, f32));
      store(out + arange(256, 512), cast(cast(v, f16), f32));
      store(out + arange(512, 768), cast(cast(v, bf16), f32));
    });
    ASSERT_TRUE(run_on(device, k, {}, x, out));
    for (int i = 0; i < 768; ++i) {
      const float want = x[i % 256];
      ASSERT_TRUE(std::isnan(want) ? std::isnan(out[i]) : out[i] == want && std::signbit(out[i]) == std::signbit(want))
          << device->name() << " " << name(dtype_of<From>()) << " bits " << i % 256 << " gave " << out[i];
    }
  }
}
// Every 8-bit float becomes the f32, f16 and bf16 of its value, subnormal ones, zeros of either sign and NaN included.
TEST(Elementwise, WideningIsExact) {
  check_widening<fp8_e4m3>();
  check_widening<fp8_e5m2>();
}

}  // namespace
}  // namespace tile::ops
