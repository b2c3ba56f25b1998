// elementwise_test.cpp - every arith and math op of the language, on every element type it takes, over awkward sizes.
// References compute in double and round once to the element type, as the language says.
#include <cmath>
#include <functional>
#include <limits>

#include "host_kernel.h"

namespace tile::test::elementwise_test {
namespace {

constexpr int kSizes[] = {1, 3, 5, 7, 17, 63, 65};
int nextSize() {
  static size_t i = 0;
  return kSizes[i++ % std::size(kSizes)];
}

/// out[i] = `body` of %a (and %b), loaded from views; body defines %r.
std::string kernelText(int n, const std::string& in, const std::string& out, const std::string& body) {
  std::string ti = "tensor<" + std::to_string(n) + "x" + in + ">", to = "tensor<" + std::to_string(n) + "x" + out + ">";
  return "func.func @k(%A: !tile.view<1 x " + in + ">, %B: !tile.view<1 x " + in + ">, %O: !tile.view<1 x " + out +
         ">) attributes {tile.kernel} {\n" + "  %c0 = arith.constant 0 : i32\n" +
         "  %a = tile.load %A[%c0 : i32] : !tile.view<1 x " + in + "> -> " + ti + "\n" +
         "  %b = tile.load %B[%c0 : i32] : !tile.view<1 x " + in + "> -> " + ti + "\n" + body + "\n" +
         "  tile.store %r, %O[%c0 : i32] : " + to + ", !tile.view<1 x " + out + ">\n  return\n}\n";
}

template <class In, class Out>
std::vector<Out> evaluate(const std::string& in, const std::string& out, const std::string& body, std::vector<In> a,
                          std::vector<In> b, const std::string& target = "host") {
  int64_t n = static_cast<int64_t>(a.size());
  HostKernel kernel(kernelText(static_cast<int>(n), in, out, body), target);
  EXPECT_TRUE(kernel.ok()) << kernel.error << body;
  std::vector<Out> result(a.size());
  if (kernel.ok()) kernel.run(Args().view(a.data(), {n}).view(b.data(), {n}).view(result.data(), {n}));
  return result;
}

std::string tensor(int n, const std::string& t) { return "tensor<" + std::to_string(n) + "x" + t + ">"; }

// ---- floats

template <class T>
constexpr const char* kName = nullptr;
template <>
constexpr const char* kName<float> = "f32";
template <>
constexpr const char* kName<double> = "f64";
template <>
constexpr const char* kName<half> = "f16";
template <>
constexpr const char* kName<bfloat16> = "bf16";

/// Distance in units of the last place of T.
template <class T>
double ulps(double found, double expected) {
  if (std::isnan(expected)) return std::isnan(found) ? 0 : 1e9;
  if (found == expected) return 0;
  if (std::isinf(expected) || std::isinf(found) || std::isnan(found)) return 1e9;
  int digits = std::is_same_v<T, double> ? 53 : std::is_same_v<T, float> ? 24 : std::is_same_v<T, half> ? 11 : 8;
  int lowest = std::is_same_v<T, half>     ? -24
               : std::is_same_v<T, double> ? -1074
               : std::is_same_v<T, float>  ? -149
                                           : -133;
  int exponent = expected == 0 ? lowest : std::max(std::ilogb(expected) - digits + 1, lowest);
  return std::fabs(found - expected) / std::ldexp(1.0, exponent);
}

struct FloatOp {
  const char* name;
  int operands;
  double limit;  ///< ulps of f32; narrower types round once on top, f64 comes from libm
  double low, high;
  std::function<double(double, double)> reference;
};

const FloatOp kFloatOps[] = {
    {"arith.addf", 2, 0.5, -9, 9, [](double a, double b) { return a + b; }},
    {"arith.subf", 2, 0.5, -9, 9, [](double a, double b) { return a - b; }},
    {"arith.mulf", 2, 0.5, -9, 9, [](double a, double b) { return a * b; }},
    {"arith.divf", 2, 0.5, 1, 9, [](double a, double b) { return a / b; }},
    {"arith.remf", 2, 0.5, 1, 9, [](double a, double b) { return std::fmod(a, b); }},
    {"arith.maximumf", 2, 0, -9, 9, [](double a, double b) { return std::fmax(a, b); }},
    {"arith.minimumf", 2, 0, -9, 9, [](double a, double b) { return std::fmin(a, b); }},
    {"arith.maxnumf", 2, 0, -9, 9, [](double a, double b) { return std::fmax(a, b); }},
    {"arith.minnumf", 2, 0, -9, 9, [](double a, double b) { return std::fmin(a, b); }},
    {"arith.negf", 1, 0, -9, 9, [](double a, double) { return -a; }},
    {"math.absf", 1, 0, -9, 9, [](double a, double) { return std::fabs(a); }},
    {"math.copysign", 2, 0, -9, 9, [](double a, double b) { return std::copysign(a, b); }},
    {"math.floor", 1, 0, -9, 9, [](double a, double) { return std::floor(a); }},
    {"math.ceil", 1, 0, -9, 9, [](double a, double) { return std::ceil(a); }},
    {"math.trunc", 1, 0, -9, 9, [](double a, double) { return std::trunc(a); }},
    {"math.round", 1, 0, -9, 9, [](double a, double) { return std::round(a); }},
    {"math.roundeven", 1, 0, -9, 9, [](double a, double) { return std::nearbyint(a); }},
    {"math.sqrt", 1, 0.5, 0, 90, [](double a, double) { return std::sqrt(a); }},
    {"math.rsqrt", 1, 1.5, 0.1, 90, [](double a, double) { return 1 / std::sqrt(a); }},
    {"math.exp", 1, 2, -9, 9, [](double a, double) { return std::exp(a); }},
    {"math.exp2", 1, 2, -9, 9, [](double a, double) { return std::exp2(a); }},
    {"math.expm1", 1, 2, -4, 4, [](double a, double) { return std::expm1(a); }},
    {"math.log", 1, 2, 0.1, 90, [](double a, double) { return std::log(a); }},
    {"math.log2", 1, 2, 0.1, 90, [](double a, double) { return std::log2(a); }},
    {"math.log10", 1, 2, 0.1, 90, [](double a, double) { return std::log10(a); }},
    {"math.log1p", 1, 2, -0.5, 90, [](double a, double) { return std::log1p(a); }},
    {"math.sin", 1, 2, -9, 9, [](double a, double) { return std::sin(a); }},
    {"math.cos", 1, 2, -9, 9, [](double a, double) { return std::cos(a); }},
    {"math.tan", 1, 4, -1.5, 1.5, [](double a, double) { return std::tan(a); }},
    {"math.tanh", 1, 2, -4, 4, [](double a, double) { return std::tanh(a); }},
    {"math.erf", 1, 2, -4, 4, [](double a, double) { return std::erf(a); }},
    {"math.powf", 2, 4, 0.5, 4, [](double a, double b) { return std::pow(a, b); }},
    {"math.atan", 1, 4, -9, 9, [](double a, double) { return std::atan(a); }},
    {"math.atan2", 2, 4, -9, 9, [](double a, double b) { return std::atan2(a, b); }},
};

template <class T>
class HostFloats : public testing::Test {};
using Floats = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(HostFloats, Floats);

TYPED_TEST(HostFloats, EveryOpMatchesDoublePrecisionRoundedOnce) {
  using T = TypeParam;
  for (const char* target : {"host", "host:x86-64"})
    for (const FloatOp& op : kFloatOps) {
      int n = nextSize();
      std::vector<T> a(n), b(n);
      for (int i = 0; i < n; ++i) {
        a[i] = T(static_cast<float>(op.low + (op.high - op.low) * ((i * 37 % 64) + 0.37) / 64));
        b[i] = T(static_cast<float>(op.low + (op.high - op.low) * ((i * 23 % 64) + 0.61) / 64));
      }
      std::string body =
          std::string("  %r = ") + op.name + " %a" + (op.operands == 2 ? ", %b" : "") + " : " + tensor(n, kName<T>);
      auto found = evaluate<T, T>(kName<T>, kName<T>, body, a, b, target);
      double limit = op.limit;
      if (sizeof(T) == 2 && limit > 0) limit = 0.51;            // f32 error, then one rounding
      if (std::is_same_v<T, double> && limit > 0.5) limit = 2;  // libm's own error
      for (int i = 0; i < n; ++i) {
        double want = op.reference(static_cast<double>(a[i]), static_cast<double>(b[i]));
        ASSERT_LE(ulps<T>(static_cast<double>(found[i]), want), limit)
            << op.name << " on " << kName<T> << " for " << target << ", a=" << static_cast<double>(a[i])
            << " b=" << static_cast<double>(b[i]) << ": expected " << want << ", found "
            << static_cast<double>(found[i]);
      }
    }
}

TYPED_TEST(HostFloats, ComparisonsAndSelectFollowIeeeOnNan) {
  using T = TypeParam;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const double xs[] = {0, -0.0, 1, -1, nan, inf, -inf};
  std::vector<T> a, b;
  for (double x : xs)
    for (double y : xs) a.push_back(T(static_cast<float>(x))), b.push_back(T(static_cast<float>(y)));
  int n = static_cast<int>(a.size());
  const std::pair<const char*, std::function<bool(double, double)>> predicates[] = {
      {"oeq", [](double x, double y) { return x == y; }},
      {"one", [](double x, double y) { return x < y || x > y; }},
      {"olt", [](double x, double y) { return x < y; }},
      {"oge", [](double x, double y) { return x >= y; }},
      {"une", [](double x, double y) { return x != y; }},
      {"ult", [](double x, double y) { return !(x >= y); }},
      {"uno", [](double x, double y) { return std::isnan(x) || std::isnan(y); }}};
  for (auto& [predicate, expected] : predicates) {
    std::string t = tensor(n, kName<T>);
    std::string body = std::string("  %m = arith.cmpf ") + predicate + ", %a, %b : " + t +
                       "\n  %r = arith.extui %m : " + tensor(n, "i1") + " to " + tensor(n, "i8");
    auto found = evaluate<T, int8_t>(kName<T>, "i8", body, a, b);
    for (int i = 0; i < n; ++i)
      ASSERT_EQ(found[i], expected(static_cast<double>(a[i]), static_cast<double>(b[i])))
          << predicate << " " << static_cast<double>(a[i]) << ", " << static_cast<double>(b[i]);
  }
}

// Around the bounds below which results are 0 and above which they are infinite, subnormals between them.
TEST(HostFloats32, ExponentialsUnderflowAndOverflowLikeLibm) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> a{-inf,    inf,     std::nanf(""), -1e30f,   1e30f,    -149.0f,
                       -149.5f, -150.0f, -150.5f,       -103.97f, -103.98f, -104.0f};
  for (float x = -152; x < -124; x += 0.0625f) a.push_back(x);
  for (float x = -105; x < -85; x += 0.0625f) a.push_back(x);
  for (float x = 87; x < 130; x += 0.25f) a.push_back(x);
  const int n = static_cast<int>(a.size());
  for (const char* target : {"host", "host:x86-64"})
    for (bool two : {false, true}) {
      const std::string body = std::string("  %r = math.") + (two ? "exp2" : "exp") + " %a : " + tensor(n, "f32");
      auto found = evaluate<float, float>("f32", "f32", body, a, a, target);
      for (int i = 0; i < n; ++i) {
        const float want = two ? std::exp2(a[i]) : std::exp(a[i]);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(found[i]));
        } else {
          // Subnormal results are within one step of their grid.
          const float least = std::numeric_limits<float>::denorm_min();
          const float slack = std::isinf(want) ? 0 : std::max(std::fabs(want) * 3e-7f, least);
          EXPECT_TRUE(found[i] == want || std::fabs(found[i] - want) <= slack)
              << a[i] << ": " << found[i] << ", not " << want;
        }
      }
      EXPECT_EQ(found[0], 0.0f);
    }
}

TEST(HostFloats16, EveryOpRoundsToHalf) {
  // (a + b) - b is not a when the sum rounds to f16, and is a when it is kept in f32.
  std::vector<half> a(17, half(0.0009765625f)), b(17, half(1024.0f));
  std::string t = tensor(17, "f16");
  auto found =
      evaluate<half, half>("f16", "f16", "  %s = arith.addf %a, %b : " + t + "\n  %r = arith.subf %s, %b : " + t, a, b);
  for (half x : found) EXPECT_EQ(static_cast<float>(x), 0.0f);
}

TEST(HostFloats16, AllHalfValuesSurviveLoadAndStoreOnEveryTarget) {
  for (const char* target : {"host", "host:x86-64"})
    for (const char* type : {"f16", "bf16"}) {
      std::vector<uint16_t> a(65536);
      for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint16_t>(i);
      // x + 0 - 0: a round trip through the register form that is not folded away (-0 keeps its sign under x * 1).
      std::string body = std::string("  %one = arith.constant dense<1.0> : ") + tensor(65536, type) +
                         "\n  %v = arith.maxnumf %a, %a : " + tensor(65536, type) +
                         "\n  %r = arith.mulf %v, %one : " + tensor(65536, type);
      auto found = evaluate<uint16_t, uint16_t>(type, type, body, a, a, target);
      for (size_t i = 0; i < a.size(); ++i) {
        bool nan = std::string(type) == "f16" ? (a[i] & 0x7fff) > 0x7c00 : (a[i] & 0x7fff) > 0x7f80;
        if (nan) {
          bool stays = std::string(type) == "f16" ? (found[i] & 0x7fff) > 0x7c00 : (found[i] & 0x7fff) > 0x7f80;
          ASSERT_TRUE(stays) << std::hex << a[i] << " became " << found[i];
        } else {
          ASSERT_EQ(found[i], a[i]) << type << " " << target;
        }
      }
    }
}

TEST(HostFloats16, NarrowingRoundsToNearestEvenOnEveryTarget) {
  std::vector<float> a;
  uint32_t seed = 7;
  for (int i = 0; i < 4000; ++i) {
    seed = seed * 1664525u + 1013904223u;
    a.push_back(std::bit_cast<float>(seed));  // every exponent, infinities and NaN among them
  }
  for (float x : {65504.0f, 65519.996f, 65520.0f, 65536.0f, 5.9604645e-8f, 2.9802322e-8f, 2.9802326e-8f, 6.1035156e-5f,
                  6.0975552e-5f, 0.0f, -0.0f, 3.4e38f})
    a.push_back(x), a.push_back(-x);
  int n = static_cast<int>(a.size());
  for (const char* target : {"host", "host:x86-64"}) {
    auto h = evaluate<float, half>(
        "f32", "f16", "  %r = arith.truncf %a : " + tensor(n, "f32") + " to " + tensor(n, "f16"), a, a, target);
    auto g = evaluate<float, bfloat16>(
        "f32", "bf16", "  %r = arith.truncf %a : " + tensor(n, "f32") + " to " + tensor(n, "bf16"), a, a, target);
    for (int i = 0; i < n; ++i) {
      if (std::isnan(a[i])) {
        ASSERT_TRUE(std::isnan(static_cast<float>(h[i])) && std::isnan(static_cast<float>(g[i])));
        continue;
      }
      ASSERT_EQ(std::bit_cast<uint16_t>(h[i]), std::bit_cast<uint16_t>(half(a[i]))) << a[i] << " to f16 on " << target;
      ASSERT_EQ(std::bit_cast<uint16_t>(g[i]), std::bit_cast<uint16_t>(bfloat16(a[i])))
          << a[i] << " to bf16 on " << target;
    }
  }
}

TEST(HostCasts, DoubleToHalfRoundsOnce) {
  // Just above the midpoint of two halves, by less than f32 can hold: rounding twice would go down.
  std::vector<double> a(7, 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40));
  auto found = evaluate<double, half>("f64", "f16",
                                      "  %r = arith.truncf %a : " + tensor(7, "f64") + " to " + tensor(7, "f16"), a, a);
  for (half x : found) EXPECT_EQ(static_cast<float>(x), 1.0f + 1.0f / 1024);
}

TEST(HostCasts, FloatToIntSaturates) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> a{0.0f, 1.9f, -1.9f, 3e9f, -3e9f, inf, -inf, std::nanf("")};
  auto s = evaluate<float, int32_t>("f32", "i32",
                                    "  %r = arith.fptosi %a : " + tensor(8, "f32") + " to " + tensor(8, "i32"), a, a);
  EXPECT_EQ(s, (std::vector<int32_t>{0, 1, -1, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0}));
  auto u = evaluate<float, uint8_t>("f32", "i8",
                                    "  %r = arith.fptoui %a : " + tensor(8, "f32") + " to " + tensor(8, "i8"), a, a);
  EXPECT_EQ(u, (std::vector<uint8_t>{0, 1, 0, 255, 0, 255, 0, 0}));
}

TEST(HostCasts, IntToFloatAndBitcast) {
  std::vector<int32_t> a{0, 1, -1, 16777217, INT32_MIN, 70000, -70000};
  auto f = evaluate<int32_t, float>("i32", "f32",
                                    "  %r = arith.sitofp %a : " + tensor(7, "i32") + " to " + tensor(7, "f32"), a, a);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(f[i], static_cast<float>(a[i]));
  auto h = evaluate<int32_t, half>("i32", "f16",
                                   "  %r = arith.sitofp %a : " + tensor(7, "i32") + " to " + tensor(7, "f16"), a, a);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_EQ(static_cast<float>(h[i]), static_cast<float>(half(static_cast<float>(a[i]))));
  std::vector<uint16_t> bits{0x3c00, 0xbc00, 0x7c00};
  auto g = evaluate<uint16_t, half>(
      "i16", "f16", "  %r = arith.bitcast %a : " + tensor(3, "i16") + " to " + tensor(3, "f16"), bits, bits);
  EXPECT_EQ(static_cast<float>(g[0]), 1.0f);
  EXPECT_EQ(static_cast<float>(g[1]), -1.0f);
  auto back = evaluate<half, uint16_t>(
      "f16", "i16", "  %r = arith.bitcast %a : " + tensor(3, "f16") + " to " + tensor(3, "i16"), g, g);
  EXPECT_EQ(back, bits);
}

TEST(HostCasts, Fp8RoundTripsAndSaturates) {
  for (const char* type : {"f8E4M3FN", "f8E5M2"}) {
    std::vector<uint8_t> all(256);
    for (int i = 0; i < 256; ++i) all[i] = static_cast<uint8_t>(i);
    std::string t8 = tensor(256, type), t32 = tensor(256, "f32");
    auto wide = evaluate<uint8_t, float>(type, "f32", "  %r = arith.extf %a : " + t8 + " to " + t32, all, all);
    auto back = evaluate<float, uint8_t>("f32", type, "  %r = arith.truncf %a : " + t32 + " to " + t8, wide, wide);
    for (int i = 0; i < 256; ++i) {
      if (std::isfinite(wide[i])) {
        EXPECT_EQ(back[i], all[i]) << type << " of " << wide[i];
      }
    }
  }
}

// ---- integers

template <class T>
class HostIntegers : public testing::Test {};
using Integers = testing::Types<int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(HostIntegers, Integers);

TYPED_TEST(HostIntegers, EveryOpWraps) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  const std::string type = "i" + std::to_string(8 * sizeof(T));
  struct Op {
    const char* name;
    std::function<T(T, T)> reference;
  };
  auto u = [](T x) { return static_cast<U>(x); };
  const T lowest = std::numeric_limits<T>::min();
  const int width = 8 * sizeof(T);
  const Op ops[] = {
      {"arith.addi", [=](T a, T b) { return static_cast<T>(u(a) + u(b)); }},
      {"arith.subi", [=](T a, T b) { return static_cast<T>(u(a) - u(b)); }},
      {"arith.muli", [=](T a, T b) { return static_cast<T>(static_cast<uint64_t>(u(a)) * u(b)); }},
      {"arith.andi", [](T a, T b) { return static_cast<T>(a & b); }},
      {"arith.ori", [](T a, T b) { return static_cast<T>(a | b); }},
      {"arith.xori", [](T a, T b) { return static_cast<T>(a ^ b); }},
      {"arith.maxsi", [](T a, T b) { return std::max(a, b); }},
      {"arith.minsi", [](T a, T b) { return std::min(a, b); }},
      {"arith.maxui", [=](T a, T b) { return static_cast<T>(std::max(u(a), u(b))); }},
      {"arith.minui", [=](T a, T b) { return static_cast<T>(std::min(u(a), u(b))); }},
      {"arith.divsi", [=](T a, T b) { return static_cast<T>(a / b); }},
      {"arith.remsi", [=](T a, T b) { return static_cast<T>(a % b); }},
      {"arith.divui", [=](T a, T b) { return static_cast<T>(u(a) / u(b)); }},
      {"arith.remui", [=](T a, T b) { return static_cast<T>(u(a) % u(b)); }},
      {"arith.floordivsi",
       [](T a, T b) {
         T q = static_cast<T>(a / b);
         return static_cast<T>(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);
       }},
      {"arith.ceildivsi",
       [](T a, T b) {
         T q = static_cast<T>(a / b);
         return static_cast<T>(a % b != 0 && (a < 0) == (b < 0) ? q + 1 : q);
       }},
      {"arith.shli",
       [=](T a, T b) { return u(b) < width ? static_cast<T>(static_cast<uint64_t>(u(a)) << u(b)) : T(0); }},
      {"arith.shrui", [=](T a, T b) { return u(b) < width ? static_cast<T>(u(a) >> u(b)) : T(0); }},
      {"arith.shrsi", [=](T a, T b) { return static_cast<T>(a >> (u(b) < width ? u(b) : width - 1)); }},
  };
  for (const Op& op : ops) {
    int n = nextSize();
    bool divides =
        std::string(op.name).find("div") != std::string::npos || std::string(op.name).find("rem") != std::string::npos;
    std::vector<T> a(n), b(n);
    for (int i = 0; i < n; ++i) {
      a[i] = static_cast<T>((static_cast<uint64_t>(i) + 3) * 0x9E3779B97F4A7C15ull >> 13);
      b[i] = static_cast<T>((static_cast<uint64_t>(i) + 5) * 0xC2B2AE3D27D4EB4Full >>
                            (std::string(op.name).find("sh") != std::string::npos ? 57 : 17));
      if (divides && (b[i] == 0 || (a[i] == lowest && b[i] == -1))) b[i] = 3;
    }
    std::string body = std::string("  %r = ") + op.name + " %a, %b : " + tensor(n, type);
    auto found = evaluate<T, T>(type, type, body, a, b);
    for (int i = 0; i < n; ++i)
      ASSERT_EQ(+found[i], +op.reference(a[i], b[i])) << op.name << " " << type << " " << +a[i] << ", " << +b[i];
  }
}

TEST(HostIntegers32, DivisionByZeroAndOverflowDoNotTrap) {
  std::vector<int32_t> a{1, INT32_MIN, -5, 0}, b{0, -1, 0, 0};
  for (const char* op : {"divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"})
    evaluate<int32_t, int32_t>("i32", "i32", std::string("  %r = arith.") + op + " %a, %b : " + tensor(4, "i32"), a, b);
}

TEST(HostIntegers32, WideProductsAndWidthChanges) {
  std::vector<int32_t> a{1, -1, INT32_MIN, INT32_MAX, 123456789}, b{2, -1, INT32_MIN, INT32_MAX, -987654321};
  std::string t = tensor(5, "i32");
  auto high = evaluate<int32_t, int32_t>("i32", "i32", "  %low, %r = arith.mulsi_extended %a, %b : " + t, a, b);
  auto uhigh = evaluate<int32_t, int32_t>("i32", "i32", "  %low, %r = arith.mului_extended %a, %b : " + t, a, b);
  auto wide =
      evaluate<int32_t, int64_t>("i32", "i64", "  %r = arith.extsi %a : " + t + " to " + tensor(5, "i64"), a, b);
  auto byte = evaluate<int32_t, int8_t>("i32", "i8", "  %r = arith.trunci %a : " + t + " to " + tensor(5, "i8"), a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(high[i], static_cast<int32_t>((static_cast<int64_t>(a[i]) * b[i]) >> 32));
    EXPECT_EQ(uhigh[i], static_cast<int32_t>(
                            (static_cast<uint64_t>(static_cast<uint32_t>(a[i])) * static_cast<uint32_t>(b[i])) >> 32));
    EXPECT_EQ(wide[i], a[i]);
    EXPECT_EQ(byte[i], static_cast<int8_t>(a[i]));
  }
}

TEST(HostSelect, ByScalarAndByTile) {
  std::vector<float> a = smallNumbers(65, 1), b = smallNumbers(65, 2);
  std::string t = tensor(65, "f32");
  auto r = evaluate<float, float>(
      "f32", "f32",
      "  %m = arith.cmpf olt, %a, %b : " + t + "\n  %r = arith.select %m, %a, %b : " + tensor(65, "i1") + ", " + t, a,
      b);
  for (int i = 0; i < 65; ++i) EXPECT_EQ(r[i], a[i] < b[i] ? a[i] : b[i]);
  auto s = evaluate<float, float>("f32", "f32",
                                  "  %p = arith.cmpi sgt, %c0, %c0 : i32\n  %r = arith.select %p, %a, %b : " + t, a, b);
  EXPECT_EQ(s, b);
}

TEST(HostExponentials, HaveTheSameBitsWithInstructionsForPowersOfTwo) {
  std::vector<float> x{0.f, -0.f, INFINITY, -INFINITY, NAN, 128.f, 127.99999f, -126.f, -126.5f, -149.f, -149.5f, -150.f,
                       -150.5f, 88.7f, 88.8f, -87.4f, -103.9f, -104.f, 0.5f, -0.5f, 1.5f, 2.5f, 1e-42f, 1e30f, -1e30f};
  for (int i = 0; i < 2000; ++i) x.push_back(static_cast<float>(i - 1000) * 0.1617f);
  for (const char* op : {"math.exp2", "math.exp"})
    for (size_t n : {size_t{1}, size_t{2}, size_t{5}, size_t{8}, size_t{29}, size_t{64}, x.size()}) {
      const std::vector<float> in(x.begin(), x.begin() + static_cast<ptrdiff_t>(n));
      const std::string body = std::string("  %r = ") + op + " %a : " + tensor(static_cast<int>(n), "f32");
      auto here = evaluate<float, float>("f32", "f32", body, in, in);
      auto plain = evaluate<float, float>("f32", "f32", body, in, in, "host:x86-64-v3");
      for (size_t i = 0; i < n; ++i)
        ASSERT_TRUE(std::isnan(in[i]) ? std::isnan(here[i])
                                      : std::bit_cast<uint32_t>(here[i]) == std::bit_cast<uint32_t>(plain[i]))
            << op << "(" << in[i] << ") is " << here[i] << ", without them " << plain[i];
    }
}

TEST(HostErrors, UnknownOpIsReportedWithItsLine) {
  HostKernel kernel(kernelText(4, "f32", "f32",
                               "  %i = arith.fptosi %a : tensor<4xf32> to tensor<4xi32>\n  %r = math.fpowi %a, %i : "
                               "tensor<4xf32>, tensor<4xi32>"));
  EXPECT_FALSE(kernel.ok());
  EXPECT_NE(kernel.error.find("math.fpowi"), std::string::npos) << kernel.error;
  EXPECT_NE(kernel.error.find("test.mlir:6"), std::string::npos) << kernel.error;
}

}  // namespace
}  // namespace tile::test::elementwise_test
