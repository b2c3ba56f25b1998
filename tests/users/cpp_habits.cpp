// cpp_habits.cpp - kernels in the habits of C++: layers behind virtual functions and variants, recursion over template
// arguments, generators, ranges of tiles, windows in a deque that rotate through a loop, types of one's own with
// operators, exchanged and swapped variables, numbers that carry their derivatives.
#include <concepts>
#include <coroutine>
#include <deque>
#include <list>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <tuple>
#include <variant>

#include "tests/users/use.h"
namespace users {
namespace cpp_habits {

// --- a network of layers behind a base class, built while tracing from a number of the configuration
struct Layer {
  virtual ~Layer() = default;
  virtual Tile operator()(const Tile& x) const = 0;
};
struct Affine : Layer {
  Tile scale, shift;
  Affine(Tile s, Tile t) : scale(s), shift(t) {}
  Tile operator()(const Tile& x) const override { return x * scale.row() + shift.row(); }
};
struct Activation : Layer {
  std::function<Tile(const Tile&)> f;
  explicit Activation(std::function<Tile(const Tile&)> g) : f(std::move(g)) {}
  Tile operator()(const Tile& x) const override { return f(x); }
};
struct Normalise : Layer {
  Tile operator()(const Tile& x) const override {
    Tile centred = x - sum(x, axis(1)) * (1.f / float(x.shape()[1]));
    return centred * rsqrt(sum(centred * centred, axis(1)) * (1.f / float(x.shape()[1])) + 1e-3f);
  }
};
struct Net {
  int R = 4, layers = 7;
};
auto virtual_net =
    kernel("user_virtual_net", [](const Net& c, Tensor<const float, 2> x, Tensor<const float, 2> w,
                                  Tensor<float, 2> y) {
      auto r = program_id(0) * c.R;
      std::vector<std::unique_ptr<Layer>> net;
      for (int l = 0; l < c.layers; ++l) {
        if (l % 3 == 0) net.push_back(std::make_unique<Normalise>());
        if (l % 3 == 1) net.push_back(std::make_unique<Affine>(w.load({2 * l, 0}, {64}), w.load({2 * l + 1, 0}, {64})));
        if (l % 3 == 2)
          net.push_back(
              std::make_unique<Activation>([l](const Tile& t) { return l == 2 ? silu(t) : max(t, 0.1f * t); }));
      }
      Tile h = x.load({r, 0}, {c.R, 64});
      for (const auto& layer : net) h = (*layer)(h);
      y.store({r, 0}, h);
    }).grid([](const Net& c, const auto& x, const auto&, const auto&) { return Grid{cdiv(x.shape[0], c.R)}; });
Register v1("virtual_net", [](Env& e) {
  const int R = e.big ? 1 << 17 : 13, L = 7;
  Net c{e.field("R", 4), L};
  auto x = random<float>(e, size_t(R) * 64), w = random<float>(e, 2 * L * 64);
  auto y = constant<float>(e, size_t(R) * 64, 9);
  Job j;
  j.add(virtual_net, c, x.view(R, 64), w.view(2 * L, 64), y.view(R, 64));
  j.mbytes = R * 64 * 8e-6;
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < R; ++r) {
      std::vector<double> h(64);
      for (int i = 0; i < 64; ++i) h[i] = x[r * 64 + i];
      for (int l = 0; l < L; ++l) {
        double mean = 0, var = 0;
        for (double v : h) mean += v / 64;
        for (double v : h) var += (v - mean) * (v - mean) / 64;
        for (int i = 0; i < 64; ++i) {
          if (l % 3 == 0) h[i] = (h[i] - mean) / std::sqrt(var + 1e-3);
          if (l % 3 == 1) h[i] = h[i] * w[2 * l * 64 + i] + w[(2 * l + 1) * 64 + i];
          if (l % 3 == 2) h[i] = l == 2 ? h[i] / (1 + std::exp(-h[i])) : std::max(h[i], 0.1 * h[i]);
        }
      }
      want.insert(want.end(), h.begin(), h.end());
    }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- numbers that carry their derivative (forward mode): Newton's steps with f written once, for numbers and for these
struct Dual {
  Tile value, slope;
  Dual(Tile v, Tile s) : value(v), slope(s) {}
  Dual(float c) : value(c), slope(0.f) {}  // NOLINT: constants become duals
  friend Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.value * b.slope + a.slope * b.value};
  }
  friend Dual exp(const Dual& a) {
    Tile e = tile::exp(a.value);
    return {e, e * a.slope};
  }
};
template <class T>
T curve(const T& x, const T& a) {
  using tile::exp;
  return x * exp(x) - a * T(1.f);
}
struct Newton {
  int B = 64, steps = 6;
};
auto dual_newton =
    kernel("user_dual_newton", [](const Newton& c, Ptr<const float> a, Ptr<float> y, Ptr<float> rest, I32 n) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      Tile want = load(a + i, {.mask = i < n});
      Dual x{log1p(want), ones({c.B}, f32)};
      for (auto s : range(c.steps)) {
        Dual f = curve(x, Dual{want, zeros({c.B}, f32)});
        x.value -= f.value / f.slope;
      }
      store(y + i, x.value, {.mask = i < n});
      store(rest + i, curve<Tile>(x.value, want), {.mask = i < n});
    }).grid([](const Newton& c, const float*, float*, float*, int n) { return Grid{cdiv(n, c.B)}; });
Register v2("dual_newton", [](Env& e) {
  const int n = e.big ? 1 << 24 : 301;
  auto a = random<float>(e, n, 0, 20);
  auto y = constant<float>(e, n, 9), rest = constant<float>(e, n, 9);
  Job j;
  j.add(dual_newton, Newton{}, a.p, y.p, rest.p, n);
  j.mbytes = n * 12e-6;
  j.check = [=]() -> std::string {
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      double x = std::log1p(a[i]);
      for (int s = 0; s < 50; ++s) x -= (x * std::exp(x) - a[i]) / ((1 + x) * std::exp(x));
      want.push_back(x);
    }
    if (auto s = agree(rest.now(), std::vector<double>(n), 1e-4, 0); !s.empty()) return "rest: " + s;
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- recursion over template arguments: a bitonic network of whole tiles, compile-time pairs from an index_sequence
template <int N, int From = 0>
void bitonic_merge(std::span<Tile> v, bool up) {
  if constexpr (N > 1) {
    for (int i = 0; i < N / 2; ++i) {
      Tile low = min(v[i], v[i + N / 2]), high = max(v[i], v[i + N / 2]);
      v[i] = up ? low : high, v[i + N / 2] = up ? high : low;
    }
    bitonic_merge<N / 2>(v.first(N / 2), up), bitonic_merge<N / 2>(v.subspan(N / 2), up);
  }
}
template <int N>
void bitonic_sort(std::span<Tile> v, bool up) {
  if constexpr (N > 1) {
    bitonic_sort<N / 2>(v.first(N / 2), true), bitonic_sort<N / 2>(v.subspan(N / 2), false);
    bitonic_merge<N>(v, up);
  }
}
template <size_t... I>
std::array<Tile, sizeof...(I)> rows_of(const Tensor<const int32_t, 2>& x, const Tile& at, std::index_sequence<I...>) {
  return {x.load({int(I), at}, {64})...};
}
auto spans =
    kernel("user_span_median", [](Tensor<const int32_t, 2> x, Tensor<int32_t, 2> y) {
      auto at = program_id(0) * 64;
      auto rows = rows_of(x, at, std::make_index_sequence<8>{});
      bitonic_sort<8>(rows, true);
      y.store({0, at}, rows[3]), y.store({1, at}, rows[4]);
      y.store({2, at}, std::accumulate(rows.begin() + 1, rows.end(), rows[0], [](Tile a, Tile b) { return a ^ b; }));
    }).grid([](NoConfig, const auto& x, const auto&) { return Grid{cdiv(x.shape[1], 64)}; });
Register v3("span_median", [](Env& e) {
  const int n = e.big ? 1 << 22 : 150;
  auto x = integers<int32_t>(e, size_t(8) * n, -1000, 1000);
  auto y = constant<int32_t>(e, size_t(3) * n, 9);
  Job j;
  j.add(spans, {}, x.view(8, n), y.view(3, n));
  j.mbytes = n * 44e-6;
  j.check = [=] {
    std::vector<double> want(3 * n);
    for (int i = 0; i < n; ++i) {
      std::vector<int> v;
      int bits = 0;
      for (int r = 0; r < 8; ++r) v.push_back(x.h[r * n + i]), bits ^= v.back();
      std::sort(v.begin(), v.end());
      want[i] = v[3], want[n + i] = v[4], want[2 * n + i] = bits;
    }
    return agree(y.now(), want, 0.1, 0);
  };
  return j;
});

// --- a window of the last five rows in containers that turn inside a loop of the device: std::rotate, std::swap,
// std::exchange, a list, a reference to whichever is wanted
struct Window {
  int B = 64;
};
auto turning = kernel("user_turning_window", [](const Window& c, Tensor<const float, 2> x, Tensor<float, 2> y) {
                 auto at = program_id(0) * c.B;
                 std::vector<Tile> window(5, zeros({c.B}, f32));
                 std::list<Tile> two{zeros({c.B}, f32), ones({c.B}, f32)};
                 std::deque<Tile> sums;
                 sums.push_back(zeros({c.B}, f32)), sums.push_front(zeros({c.B}, f32));
                 Tile old = zeros({c.B}, f32);
                 for (auto r : range(x.dim(0))) {
                   std::rotate(window.begin(), window.begin() + 1, window.end());
                   Tile leaving = std::exchange(window.back(), x.load({r, at}, {c.B}));
                   std::swap(two.front(), two.back());
                   two.back() = max(two.back(), window.back() - leaving);
                   Tile& sum = sums.front();
                   sum += window.back() - leaving, sums.back() += window[2] * two.front();
                   old = std::exchange(window[0], window[0]);
                   y.store({r, at}, sum + old);
                 }
                 y.store({x.dim(0), at}, two.front()), y.store({x.dim(0) + 1, at}, two.back());
                 y.store({x.dim(0) + 2, at}, sums[1]);
               }).grid([](const Window& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[1], c.B)}; });
Register v4("turning_window", [](Env& e) {
  const int R = e.big ? 256 : 11, C = e.big ? 1 << 17 : 77;
  auto x = random<float>(e, size_t(R) * C);
  auto y = constant<float>(e, size_t(R + 3) * C, 9);
  Job j;
  j.add(turning, Window{}, x.view(R, C), y.view(R + 3, C));
  j.mbytes = double(R) * C * 8e-6;
  j.check = [=] {
    std::vector<double> want(size_t(R + 3) * C);
    for (int i = 0; i < C; ++i) {
      std::vector<double> w(5);
      double a = 0, b = 1, sum = 0, other = 0;
      for (int r = 0; r < R; ++r) {
        std::rotate(w.begin(), w.begin() + 1, w.end());
        const double leaving = std::exchange(w.back(), x[r * C + i]);
        std::swap(a, b);
        b = std::max(b, w.back() - leaving);
        sum += w.back() - leaving, other += w[2] * a;
        want[r * C + i] = sum + w[0];
      }
      want[R * C + i] = a, want[(R + 1) * C + i] = b, want[(R + 2) * C + i] = other;
    }
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- a coroutine that hands out boxes, a pipeline of views over them, transform_reduce
template <class T>
struct Generator {
  struct promise_type {
    std::optional<T> value;
    Generator get_return_object() { return Generator{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(const T& v) {
      value.emplace(v);
      return {};
    }
    void return_void() {}
    void unhandled_exception() { throw; }
  };
  explicit Generator(std::coroutine_handle<promise_type> h) : handle(h) {}
  Generator(const Generator&) = delete;
  ~Generator() { handle.destroy(); }
  std::optional<T> next() {
    handle.resume();
    return handle.done() ? std::nullopt : handle.promise().value;
  }
  std::coroutine_handle<promise_type> handle;
};
Generator<Tile> boxes(Tensor<const float, 2> x, Tile row, int first, int count, int width) {
  for (int k = 0; k < count; ++k) {
    Tile box = x.load({row, first + k * width}, {width});
    co_yield box;
  }
}
struct Pieces {
  int W = 32, count = 5;
};
auto generated = kernel("user_generated_boxes", [](const Pieces& c, Tensor<const float, 2> x, Tensor<float, 2> y) {
                   auto row = program_id(0);
                   auto pieces = boxes(x, row, 3, c.count, c.W);
                   std::vector<Tile> all;
                   while (auto piece = pieces.next()) all.push_back(*piece);
                   auto squares = all | std::views::transform([](const Tile& t) { return t * t; });
                   Tile energy = std::transform_reduce(
                       squares.begin(), squares.end(), Tile(0.f), [](Tile a, Tile b) { return a + b; },
                       [](Tile t) { return sum(t); });
                   for (int k = 0; Tile t : all | std::views::reverse | std::views::take(3))
                     y.store({row, k++ * c.W}, t / energy);
                   y.store({row, 3 * c.W}, energy);
                 }).grid([](const Pieces&, const auto& x, const auto&) { return Grid{x.shape[0]}; });
Register v5("generated_boxes", [](Env& e) {
  const int R = e.big ? 1 << 18 : 7, C = 150;
  auto x = random<float>(e, size_t(R) * C);
  auto y = constant<float>(e, size_t(R) * 97, 9);
  Job j;
  j.add(generated, Pieces{}, x.view(R, C), y.view(R, 97));
  j.mbytes = double(R) * (150 + 97) * 4e-6;
  j.check = [=] {
    std::vector<double> want(R * 97);
    for (int r = 0; r < R; ++r) {
      auto at = [&](int i) { return i < C ? x[r * C + i] : 0; };
      double energy = 0;
      for (int i = 3; i < 163; ++i) energy += at(i) * at(i);
      for (int k = 0; k < 3; ++k)
        for (int i = 0; i < 32; ++i) want[r * 97 + k * 32 + i] = at(3 + (4 - k) * 32 + i) / energy;
      want[r * 97 + 96] = energy;
    }
    return agree(y.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- a variant of epilogues chosen by an enum class of the configuration, visited where the product is stored; a
// concept over what may be added, parameter packs of tensors
enum class Then { nothing, bias, residual, both };
struct Bias {
  Tensor<const float, 1> b;
  Tile operator()(const Tile& x, const Tile&, const Tile& n) const {
    return x + b.load({n}, {int(x.shape()[1])}).row();
  }
};
struct Residual {
  Tensor<const half, 2> r;
  Tile operator()(const Tile& x, const Tile& m, const Tile& n) const {
    return x + cast(r.load({m, n}, x.shape()), f32);
  }
};
template <class F>
concept Epilogue = requires(const F& f, const Tile& x) {
  { f(x, x, x) } -> std::convertible_to<Tile>;
};
template <Epilogue... F>
struct Chain {
  std::tuple<F...> all;
  Tile operator()(const Tile& x, const Tile& m, const Tile& n) const {
    Tile y = x;
    std::apply([&](const auto&... f) { ((y = f(y, m, n)), ...); }, all);
    return y;
  }
};
struct Ended {
  int M = 32, N = 32, K = 32;
  Then then = Then::both;
};
auto ended =
    kernel("user_variant_epilogue", [](const Ended& c, Tensor<const half, 2> a, Tensor<const half, 2> b,
                                       Tensor<const float, 1> bias, Tensor<const half, 2> res, Tensor<half, 2> y) {
      using Any = std::variant<std::monostate, Bias, Residual, Chain<Bias, Residual>>;
      const Any end = c.then == Then::bias       ? Any(Bias{bias})
                      : c.then == Then::residual ? Any(Residual{res})
                      : c.then == Then::both     ? Any(Chain<Bias, Residual>{{Bias{bias}, Residual{res}}})
                                                 : Any();
      auto m = program_id(0) * c.M, n = program_id(1) * c.N;
      Tile acc = zeros({c.M, c.N}, f32);
      for (auto k : range(0, a.dim(1), c.K)) acc = dot(a.load({m, k}, {c.M, c.K}), b.load({k, n}, {c.K, c.N}), acc);
      std::visit(
          [&](const auto& f) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(f)>, std::monostate>) acc = f(acc, m, n);
          },
          end);
      y.store({m, n}, cast(acc, f16));
    }).grid([](const Ended& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[0], c.M), cdiv(b.shape[1], c.N)};
    });
Register v6("variant_epilogue", [](Env& e) {
  const int M = e.big ? 4096 : 45, N = e.big ? 4096 : 53, K = e.big ? 1024 : 70;
  Ended c{e.field("M", e.big ? 128 : 32), e.field("N", e.big ? 128 : 32), e.field("K", e.big ? 64 : 32)};
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N), r = random<half>(e, size_t(M) * N);
  auto bias = random<float>(e, N);
  Job j;
  std::vector<Array<half>> ys;
  for (Then then : {Then::nothing, Then::bias, Then::residual, Then::both}) {
    if (e.big && then != Then::both) continue;
    ys.push_back(constant<half>(e, size_t(M) * N, 9));
    c.then = then;
    // what a variant does not read is an empty view
    auto no_bias = then == Then::nothing || then == Then::residual;
    j.add(ended, c, a.view(M, K), b.view(K, N), no_bias ? TensorView<const float, 1>() : bias.view(N),
          then == Then::nothing || then == Then::bias ? TensorView<const half, 2>() : r.view(M, N),
          ys.back().view(M, N));
  }
  j.gflop = 2e-9 * M * N * K;
  j.check = [=]() -> std::string {
    for (int t = 0; t < 4; ++t) {
      auto want = product(M, N, K, matrix(a, K), matrix(b, N), [&](double s, int m, int n) {
        return s + (t & 1 ? bias[n] : 0) + (t & 2 ? r[m * N + n] : 0);
      });
      if (auto s = agree(ys[t].now(), want, 2e-2, 4e-3); !s.empty()) return std::to_string(t) + ": " + s;
    }
    return "";
  };
  return j;
});

// --- a class derived from Tile, a base by CRTP with operators of its own, a unit that multiplies to another one
template <class Self>
struct Quantity {
  Tile amount;
  explicit Quantity(Tile x) : amount(x) {}
  friend Self operator+(const Self& a, const Self& b) { return Self(a.amount + b.amount); }
  Self& operator+=(const Self& b) {
    amount += b.amount;
    return static_cast<Self&>(*this);
  }
};
struct Metres : Quantity<Metres> {
  using Quantity::Quantity;
};
struct Speed : Quantity<Speed> {
  using Quantity::Quantity;
  friend Metres operator*(const Speed& v, float seconds) { return Metres(v.amount * seconds); }
};
struct Column : Tile {
  Column(const Tensor<const float, 2>& x, const Tile& at, int which, int n) : Tile(x.load({at, which}, {n, 1})) {}
  using Tile::operator=;
  Tile flat() const { return squeeze(*this, 1); }
};
struct Throw {
  int B = 32;
};
auto thrown_balls =
    kernel("user_thrown_balls", [](const Throw& c, Tensor<const float, 2> start, Tensor<float, 2> end, F32 wind) {
      auto at = program_id(0) * c.B;
      Column height(start, at, 0, c.B), up(start, at, 1, c.B);
      Metres x(zeros({c.B}, f32)), y(height.flat());
      Speed vx(broadcast_to(wind, {c.B})), vy(up.flat());
      Tile steps = zeros({c.B}, i32);
      while_([&] { return any(y.amount > 0.f); },
             [&] {
               auto flying = y.amount > 0.f;
               x += Speed(where(flying, vx.amount, 0.f)) * 0.125f;
               y += Speed(where(flying, vy.amount, 0.f)) * 0.125f;
               vy = vy + Speed(full({c.B}, -1.25f, f32));
               steps += cast(flying, i32);
             });
      height = y.amount.col();
      end.store({at, 0}, cat(cat(x.amount.col(), height, 1), cast(steps, f32).col(), 1));
    }).grid([](const Throw& c, const auto& s, const auto&, float) { return Grid{cdiv(s.shape[0], c.B)}; });
Register v7("thrown_balls", [](Env& e) {
  const int n = e.big ? 1 << 22 : 71;
  auto start = random<float>(e, size_t(n) * 2, 0, 8);
  auto end = constant<float>(e, size_t(n) * 3, 9);
  Job j;
  j.add(thrown_balls, Throw{}, start.view(n, 2), end.view(n, 3), 0.5f);
  j.mbytes = n * 20e-6;
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      float x = 0, y = start.h[2 * i], v = start.h[2 * i + 1];
      int steps = 0;
      while (y > 0) x += 0.5f * 0.125f, y += v * 0.125f, v -= 1.25f, ++steps;
      want.insert(want.end(), {x, y, double(steps)});
    }
    return agree(end.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- optional and mapped tiles, made in C++ branches of the configuration, carried by a loop of the device; a function
// that returns a struct of references; bound functions
struct Stats {
  bool mean = true, extremes = true, norm = false;
};
struct Held {
  std::map<std::string, Tile> by_name;
  std::optional<Tile> norm;
  struct Ends {
    Tile &low, &high;
  };
  Ends ends() { return {by_name.at("low"), by_name.at("high")}; }
};
void follow(Held& held, float weight, const Tile& x) {
  if (auto it = held.by_name.find("mean"); it != held.by_name.end()) it->second += sum(x) * weight;
  if (held.by_name.contains("low")) {
    auto [low, high] = held.ends();
    low = min(low, min(x)), high = max(high, max(x));
  }
  if (held.norm) *held.norm += sum(x * x);
}
auto held_stats = kernel("user_held_stats", [](const Stats& c, Tensor<const float, 2> x, Tensor<float, 2> y) {
                    auto r = program_id(0);
                    Held held;
                    if (c.mean) held.by_name["mean"] = 0.f;
                    if (c.extremes) held.by_name.emplace("low", INFINITY), held.by_name.emplace("high", -INFINITY);
                    if (c.norm) held.norm = 0.f;
                    auto step = std::bind(follow, std::ref(held), 0.5f, std::placeholders::_1);
                    for (auto k : range(0, x.dim(1), 32)) step(x.load({r, k}, {32}));
                    int column = 0;
                    for (auto& [name, value] : held.by_name) y.store({r, column++}, value);
                    y.store({r, column}, sqrt(held.norm.value_or(16.f)));
                  }).grid([](const Stats&, const auto& x, const auto&) { return Grid{x.shape[0]}; });
Register v8("held_stats", [](Env& e) {
  const int R = e.big ? 1 << 16 : 5, C = e.big ? 2048 : 96;
  auto x = random<float>(e, size_t(R) * C);
  std::vector<Array<float>> ys;
  Job j;
  for (int bits = 0; bits < 8; ++bits) {
    if (e.big && bits != 7) continue;
    ys.push_back(constant<float>(e, size_t(R) * 4, 9));
    j.add(held_stats, {bits % 2 == 1, (bits & 2) != 0, bits >= 4}, x.view(R, C), ys.back().view(R, 4));
  }
  j.mbytes = double(R) * C * 4e-6;
  j.check = [=]() -> std::string {
    for (int bits = 0; bits < 8; ++bits) {
      std::vector<double> want(R * 4, 9);
      for (int r = 0; r < R; ++r) {
        double mean = 0, low = INFINITY, high = -INFINITY, norm = 0;
        for (int i = 0; i < C; ++i) {
          const double v = x[r * C + i];
          mean += v / 2, low = std::min(low, v), high = std::max(high, v), norm += v * v;
        }
        int at = r * 4;
        if (bits & 2) want[at++] = high, want[at++] = low;
        if (bits & 1) want[at++] = mean;
        want[at] = bits & 4 ? std::sqrt(norm) : 4;
      }
      if (auto s = agree(ys[bits].now(), want, 1e-4, 1e-4); !s.empty()) return std::to_string(bits) + ": " + s;
    }
    return "";
  };
  return j;
});

// --- a polynomial type over any scalar, evaluated by Horner in a fold; matrices of tiles multiplied as matrices of
// numbers are; powers by squaring in C++ recursion
template <class T, int N>
struct Square {
  std::array<std::array<T, N>, N> at;
  friend Square operator*(const Square& a, const Square& b) {
    Square c = a;
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k) {
        T s = a.at[i][0] * b.at[0][k];
        for (int l = 1; l < N; ++l) s = s + a.at[i][l] * b.at[l][k];
        c.at[i][k] = s;
      }
    return c;
  }
};
template <class M>
M power(const M& m, int n) {
  return n == 1 ? m : n % 2 ? m * power(m, n - 1) : power(m * m, n / 2);
}
template <class T, class... C>
T horner(const T& x, C... c) {
  T y = x * 0.f;
  ((y = y * x + c), ...);
  return y;
}
struct Powers {
  int B = 32, n = 11;
};
auto matrix_powers = kernel("user_matrix_powers", [](const Powers& c, Tensor<const double, 2> m, Tensor<double, 2> y) {
                       auto at = program_id(0) * c.B;
                       Square<Tile, 3> a;
                       for (int i = 0; i < 9; ++i) a.at[i / 3][i % 3] = m.load({i, at}, {c.B});
                       a = power(a, c.n);
                       for (int i = 0; i < 9; ++i) y.store({i, at}, horner(a.at[i / 3][i % 3], 0.25, -1, 0.5f, 2));
                     }).grid([](const Powers& c, const auto& m, const auto&) { return Grid{cdiv(m.shape[1], c.B)}; });
Register v9("matrix_powers", [](Env& e) {
  const int n = e.big ? 1 << 20 : 37;
  auto m = random<double>(e, size_t(9) * n, -0.6, 0.6);
  auto y = constant<double>(e, size_t(9) * n, 9);
  Job j;
  j.add(matrix_powers, Powers{}, m.view(9, n), y.view(9, n));
  j.mbytes = n * 144e-6;
  j.check = [=] {
    std::vector<double> want(9 * n);
    for (int i = 0; i < n; ++i) {
      Square<double, 3> a;
      for (int k = 0; k < 9; ++k) a.at[k / 3][k % 3] = m[k * n + i];
      a = power(a, 11);
      for (int k = 0; k < 9; ++k) want[k * n + i] = horner(a.at[k / 3][k % 3], 0.25, -1, 0.5f, 2);
    }
    return agree(y.now(), want, 1e-9, 1e-9);
  };
  return j;
});

// --- one body for every element type, from a list of types; the kernels live in a tuple
template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<int8_t> {
  using type = int32_t;
};
template <>
struct Wide<double> {
  using type = double;
};
template <class T>
auto make_scaled() {
  using W = typename Wide<T>::type;
  return kernel("user_scaled_" + std::string(std::is_same_v<T, half>       ? "half"
                                             : std::is_same_v<T, bfloat16> ? "bf16"
                                             : std::is_same_v<T, fp8_e4m3> ? "f8"
                                             : std::is_same_v<T, int8_t>   ? "i8"
                                                                           : "other"),
                [](Tensor<const T, 2> x, Tensor<W, 1> y, Scalar<W> times) {
                  Tile all = cast(x.load({program_id(0), 0}, {100}), dtype_of<W>());
                  y.store({program_id(0)}, sum(all) * times + W(3));
                })
      .grid([](NoConfig, const auto& x, const auto&, auto) { return Grid{x.shape[0]}; });
}
template <class... T>
struct Types {};
template <class T>
void add_scaled(Env& e, Job& j, std::vector<std::function<std::string()>>& checks, const Array<float>& source, int R) {
  static auto k = make_scaled<T>();
  using W = typename Wide<T>::type;
  auto x = filled<T>(e, size_t(R) * 90, [&](size_t i) {
    if constexpr (std::is_integral_v<T>)
      return T(source[i] * 100);
    else
      return T(float(source[i]));
  });
  auto y = constant<W>(e, R, 9);
  j.add(k, {}, x.view(R, 90), y.view(R), W(2));
  checks.push_back([=] {
    std::vector<double> want;
    for (int r = 0; r < R; ++r) {
      double s = 0;
      for (int i = 0; i < 90; ++i) s += x[r * 90 + i];
      want.push_back(2 * s + 3);
    }
    return agree(y.now(), want, 1e-3, 1e-4);
  });
}
template <class... T>
void add_all(Types<T...>, Env& e, Job& j, std::vector<std::function<std::string()>>& checks, const Array<float>& s,
             int R) {
  (add_scaled<T>(e, j, checks, s, R), ...);
}
Register v10("scaled_types", [](Env& e) {
  const int R = e.big ? 1 << 18 : 9;
  auto source = random<float>(e, size_t(R) * 90);
  Job j;
  std::vector<std::function<std::string()>> checks;
  add_all(Types<half, bfloat16, fp8_e4m3, int8_t, double>{}, e, j, checks, source, R);
  j.check = [=]() -> std::string {
    for (const auto& c : checks)
      if (auto s = c(); !s.empty()) return s;
    return "";
  };
  return j;
});

}  // namespace cpp_habits
}  // namespace users
