// functions.cpp - what statistics and signals ask of elementwise functions: tails of distributions, roots, lengths, phases
// in half turns, remainders, and quantities kept in the range of a narrow type; in f64 and f32.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace functions {

struct FunctionsCfg {
  int N = 1024, warps = 4;
};
constexpr int kFunctions = 9;
std::array<Tile, kFunctions> all_of(const Tile& x, const Tile& y) {
  const DType given = x.dtype();
  return {erf(x),   erfc(x), cbrt(x), hypot(x, y),  sinpi(x), cospi(x), exp10(y),
          x % y,    cast(saturate(rint(x * 40.f), i8), given)};
}
double reference(int which, double x, double y) {
  const double r = std::remainder(x, 2.0), h = 0.5 - std::fabs(r), folded = std::copysign(1.0, r) - r;
  switch (which) {
    case 0: return std::erf(x);
    case 1: return std::erfc(x);
    case 2: return std::cbrt(x);
    case 3: return std::hypot(x, y);
    case 4: return std::sin(M_PI * (std::fabs(r) > 0.5 ? folded : r));
    case 5: return std::sin(M_PI * h);
    case 6: return std::pow(10.0, y);
    case 7: return std::fmod(x, y);
    default: return std::clamp(std::nearbyint(x * 40), -128.0, 127.0);
  }
}

template <class T>
auto make(const char* name) {
  return kernel(name, [](const FunctionsCfg& c, Tensor<const T, 1> X, Tensor<const T, 1> Y, Tensor<T, 2> out) {
           num_warps(c.warps);
           auto i = program_id(0) * c.N;
           const auto values = all_of(X.load({i}, {c.N}), Y.load({i}, {c.N}, {.pad = 1}));
           for (int f = 0; f < kFunctions; ++f) out.store({f, i}, values[f]);
         })
      .grid([](const FunctionsCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.N)}; });
}
auto wide = make<double>("user_functions_f64");
auto narrow = make<float>("user_functions_f32");

template <class T, class K>
Job run(Env& e, const K& k, double tolerance) {
  const int n = e.big ? 1 << 24 : 3000;
  // Dividends near whole multiples of their divisors, where a rounded quotient is one too many.
  auto y = filled<T>(e, n, [&](size_t) { return static_cast<T>(0.1 + 3 * e.uniform()); });
  auto x = filled<T>(e, n, [&](size_t i) {
    const T whole = static_cast<T>(static_cast<T>(y[i]) * static_cast<T>(int(i % 41) - 20) / 8);
    return i % 3 ? static_cast<T>(-5 + 11 * e.uniform()) : std::nextafter(whole, T(0));
  });
  auto out = constant<T>(e, size_t(kFunctions) * n, NAN);
  Job j;
  j.mbytes = sizeof(T) * (2.0 + kFunctions) * n * 1e-6;
  j.add(k, FunctionsCfg{1024, e.field("warps", sizeof(T) == 8 ? 8 : 4)}, x.view(n), y.view(n), out.view(kFunctions, n));
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int f = 0; f < kFunctions; ++f) {
      std::vector<double> want(n);
      for (int i = 0; i < n; ++i) want[i] = reference(f, x[i], y[i]);
      const bool crossesZero = f == 0 || f == 4 || f == 5;
      const auto bad = agree(std::vector<T>(got.begin() + size_t(f) * n, got.begin() + size_t(f + 1) * n), want,
                             crossesZero ? tolerance : tolerance * 1e-6, f >= 7 ? 1e-300 : tolerance);
      if (!bad.empty()) return "function " + std::to_string(f) + ": " + bad;
    }
    return "";
  };
  return j;
}
Register r1("functions_f64", [](Env& e) { return run<double>(e, wide, 4e-15); });
Register r2("functions_f32", [](Env& e) { return run<float>(e, narrow, 4e-6); });

// --- places on rings: remainders and quotients of runs of places by one number each, where they are negative, wrap,
// and where the number is negative or large
struct RingsCfg {
  int N = 1024, rows = 16, step = 3, warps = 4;
};
constexpr int kRings = 8;
auto rings = kernel("user_rings", [](const RingsCfg& c, Ptr<const int32_t> starts, Ptr<const int32_t> sizes,
                                     Ptr<int32_t> out) {
  num_warps(c.warps);
  auto pid = program_id(0);
  auto start = load(starts + pid), n = load(sizes + pid);
  auto i = arange(0, c.N);
  auto x = start + i * c.step;
  auto u = cast(x, u32), m = cast(n, u32);
  auto row = arange(0, c.rows).col(), column = arange(0, c.N / c.rows).row();
  auto y = start + row * 500 + column;
  auto to = out + pid * (kRings * c.N);
  store(to + i, x % n);
  store(to + c.N + i, x / n);
  store(to + 2 * c.N + i, floor_mod(x, n));
  store(to + 3 * c.N + i, floor_div(x, n));
  store(to + 4 * c.N + i, cast(u % m, i32));
  store(to + 5 * c.N + i, cast(u / m, i32));
  auto at = row * (c.N / c.rows) + column;
  store(to + 6 * c.N + at, floor_mod(y - 40, n));
  store(to + 7 * c.N + at, (y + n) % n);
}).grid([](const RingsCfg&, auto...) { return Grid{10}; });
Register r_rings("rings", [](Env& e) {
  const RingsCfg c;
  const std::vector<int32_t> first{0, -100, 5, INT32_MAX - 700, INT32_MIN, -2000, 1 << 20, 3, INT32_MAX - 9000, -1},
      by{7, 37, 1, 1000, 3, -13, 5000, 1 << 30, INT32_MAX, 2000000000};
  auto starts = filled<int32_t>(e, first.size(), [&](size_t i) { return first[i]; });
  auto sizes = filled<int32_t>(e, by.size(), [&](size_t i) { return by[i]; });
  auto out = constant<int32_t>(e, first.size() * kRings * c.N, -77);
  Job j;
  j.mbytes = 4e-6 * double(first.size() * kRings * c.N);
  j.add(rings, c, starts.p, sizes.p, out.p);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    auto floor_mod = [](int64_t x, int64_t n) { return x % n != 0 && (x < 0) != (n < 0) ? x % n + n : x % n; };
    for (size_t p = 0; p < first.size(); ++p)
      for (int i = 0; i < c.N; ++i) {
        const int columns = c.N / c.rows;
        const auto x = int32_t(uint32_t(first[p]) + uint32_t(i) * uint32_t(c.step));
        const auto y = int32_t(uint32_t(first[p]) + uint32_t(i / columns * 500 + i % columns));
        const int64_t n = by[p], f = floor_mod(x, n);
        const int64_t want[kRings] = {x % n, x / n, f, (x - f) / n, int32_t(uint32_t(x) % uint32_t(by[p])),
                                      int32_t(uint32_t(x) / uint32_t(by[p])),
                                      floor_mod(int32_t(uint32_t(y) - 40u), n),
                                      int32_t(uint32_t(y) + uint32_t(by[p])) % n};
        for (int k = 0; k < kRings; ++k)
          if (got[(p * kRings + k) * c.N + i] != want[k])
            return "ring " + std::to_string(p) + " kind " + std::to_string(k) + " place " + std::to_string(i) + ": " +
                   std::to_string(got[(p * kRings + k) * c.N + i]) + " instead of " + std::to_string(want[k]);
      }
    return "";
  };
  return j;
});
}  // namespace functions
}  // namespace users
