// cpp_recursions.cpp - C++ that calls itself while tracing: a Fourier transform over a vector of complex tiles, a
// decision tree of constants as nested choices and as nested branches, determinants by minors, a parser whose program
// becomes code, quicksort's and Y's lambdas; loops whose bodies are std::function, ranges kept and used twice, choices
// of variables.
#include <charconv>
#include <complex>
#include <numbers>
#include <numeric>
#include <string_view>

#include "tests/users/use.h"
namespace users {
namespace cpp_recursions {

// --- radix-2 transform of N points per lane, by recursion over vectors; std::polar gives the twiddles while tracing
struct Cx {
  Tile re, im;
  friend Cx operator+(const Cx& a, const Cx& b) { return {a.re + b.re, a.im + b.im}; }
  friend Cx operator-(const Cx& a, const Cx& b) { return {a.re - b.re, a.im - b.im}; }
  friend Cx operator*(const Cx& a, std::complex<float> w) {
    return {a.re * w.real() - a.im * w.imag(), a.re * w.imag() + a.im * w.real()};
  }
};
std::vector<Cx> transform(const std::vector<Cx>& x) {
  const size_t n = x.size();
  if (n == 1) return x;
  std::vector<Cx> even, odd;
  for (size_t i = 0; i < n; i += 2) even.push_back(x[i]), odd.push_back(x[i + 1]);
  even = transform(even), odd = transform(odd);
  std::vector<Cx> y = x;
  for (size_t k = 0; k < n / 2; ++k) {
    const Cx t = odd[k] * std::polar(1.f, float(-2 * std::numbers::pi * double(k) / double(n)));
    y[k] = even[k] + t, y[k + n / 2] = even[k] - t;
  }
  return y;
}
struct Fourier {
  int N = 16, B = 32;
};
auto recursive_fft = kernel("user_recursive_fft", [](const Fourier& c, Tensor<const float, 3> x, Tensor<float, 3> y) {
                       auto at = program_id(0) * c.B;
                       std::vector<Cx> points;
                       for (int i = 0; i < c.N; ++i)
                         points.push_back({x.load({0, i, at}, {c.B}), x.load({1, i, at}, {c.B})});
                       int i = 0;
                       for (const auto& [re, im] : transform(points))
                         y.store({0, i, at}, re), y.store({1, i++, at}, im);
                     }).grid([](const Fourier& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[2], c.B)}; });
Register c1("recursive_fft", [](Env& e) {
  const int N = 16, L = e.big ? 1 << 20 : 43;
  auto x = random<float>(e, size_t(2) * N * L), y = constant<float>(e, size_t(2) * N * L, 9);
  Job j;
  j.add(recursive_fft, Fourier{N, e.field("B", 32)}, x.view(2, N, L), y.view(2, N, L));
  j.mbytes = 4.0 * N * L * 4e-6;
  j.check = [=] {
    std::vector<double> want(2 * N * L);
    for (int l = 0; l < L; ++l)
      for (int k = 0; k < N; ++k) {
        std::complex<double> s = 0;
        for (int i = 0; i < N; ++i)
          s += std::complex<double>(x[i * L + l], x[(N + i) * L + l]) * std::polar(1., -2 * M_PI * i * k / N);
        want[k * L + l] = s.real(), want[(N + k) * L + l] = s.imag();
      }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- a tree of constants: every node asks for a feature; once as choices per element, once as branches of a program
struct Node {
  int feature;
  float split;
  int below, above;  // negative: leaf ~n
};
constexpr std::array<Node, 6> kTree{
    {{0, 0.1f, 1, 2}, {2, -0.3f, ~0, 3}, {1, 0.2f, 4, ~3}, {1, 0.5f, ~1, ~2}, {2, 0.4f, 5, ~6}, {0, 0.6f, ~4, ~5}}};
constexpr float kLeaves[] = {-1.5f, 2.f, 0.25f, 7.f, -3.f, 4.5f, 1.f};
template <class T>
T per_element(const std::array<T, 3>& f, int node = 0) {
  if (node < 0) return zeros_like(f[0]) + kLeaves[~node];
  const Node& n = kTree[size_t(node)];
  return where(f[size_t(n.feature)] < n.split, per_element(f, n.below), per_element(f, n.above));
}
void per_program(const std::array<Tile, 3>& f, Tile& result, Tile& depth, int node = 0) {
  if (node < 0) {
    result = kLeaves[~node];
    return;
  }
  const Node& n = kTree[size_t(node)];
  depth += 1;
  if_(
      f[size_t(n.feature)] < n.split, [&] { per_program(f, result, depth, n.below); },
      [&] { per_program(f, result, depth, n.above); });
}
auto decision_tree =
    kernel("user_decision_tree", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
      auto r = program_id(0);
      std::array<Tile, 3> rows{x.load({0, r * 16}, {16}), x.load({1, r * 16}, {16}), x.load({2, r * 16}, {16})};
      y.store({0, r * 16}, per_element(rows));
      std::array<Tile, 3> one{x.load({0, r}), x.load({1, r}), x.load({2, r})};
      Tile result = 0.f, depth = 0;
      per_program(one, result, depth);
      y.store({1, r}, result), y.store({2, r}, cast(depth, f32));
    }).grid([](NoConfig, const auto& x, const auto&) { return Grid{x.shape[1]}; });
Register c2("decision_tree", [](Env& e) {
  const int n = e.big ? 1 << 16 : 37;
  auto x = random<float>(e, size_t(3) * n), y = constant<float>(e, size_t(3) * n, 9);
  Job j;
  j.add(decision_tree, {}, x.view(3, n), y.view(3, n));
  j.check = [=] {
    std::vector<double> want(3 * n);
    for (int i = 0; i < n; ++i) {
      int node = 0, depth = 0;
      while (node >= 0) {
        const Node& t = kTree[node];
        node = x[t.feature * n + i] < t.split ? t.below : t.above, ++depth;
      }
      want[i] = want[n + i] = kLeaves[~node], want[2 * n + i] = depth;
    }
    return agree(y.now(), want, 1e-6, 0);
  };
  return j;
});

// --- determinants by minors, written once for numbers and tiles; a lambda that is given itself
auto minors = [](auto self, const auto& m) -> std::decay_t<decltype(m[0][0])> {
  if (m.size() == 1) return m[0][0];
  std::decay_t<decltype(m[0][0])> sum = m[0][0] * 0;
  for (size_t skip = 0; skip < m.size(); ++skip) {
    std::decay_t<decltype(m)> rest;
    for (size_t r = 1; r < m.size(); ++r) {
      rest.emplace_back();
      for (size_t c = 0; c < m.size(); ++c)
        if (c != skip) rest.back().push_back(m[r][c]);
    }
    auto part = m[0][skip] * self(self, rest);
    (skip % 2 ? sum -= part : sum += part);
  }
  return sum;
};
struct Minors {
  int N = 5, B = 64;
};
auto determinants = kernel("user_minors", [](const Minors& c, Tensor<const double, 3> x, Tensor<double, 1> y) {
                      auto at = program_id(0) * c.B;
                      std::vector<std::vector<Tile>> m(c.N, std::vector<Tile>(c.N));
                      for (int i = 0; i < c.N * c.N; ++i) m[i / c.N][i % c.N] = x.load({i / c.N, i % c.N, at}, {c.B});
                      y.store({at}, minors(minors, m));
                    }).grid([](const Minors& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[2], c.B)}; });
Register c3("minors", [](Env& e) {
  const int N = 5, L = e.big ? 1 << 20 : 70;
  auto x = random<double>(e, size_t(N) * N * L), y = constant<double>(e, L, 9);
  Job j;
  j.add(determinants, Minors{N, e.field("B", 64)}, x.view(N, N, L), y.view(L));
  j.check = [=] {
    std::vector<double> want;
    for (int l = 0; l < L; ++l) {
      std::vector<std::vector<double>> m(N, std::vector<double>(N));
      for (int i = 0; i < N * N; ++i) m[i / N][i % N] = x[size_t(i) * L + l];
      want.push_back(minors(minors, m));
    }
    return agree(y.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- a program of the host's, as text, becomes code: sums and products of columns and numbers, by recursive descent
struct Reader {
  std::string_view text;
  std::function<Tile(char)> column;
  bool take(char c) { return !text.empty() && text[0] == c && (text.remove_prefix(1), true); }
  Tile sum() {
    Tile x = term();
    while (true)
      if (take('+'))
        x += term();
      else if (take('-'))
        x -= term();
      else
        return x;
  }
  Tile term() {
    Tile x = factor();
    while (true)
      if (take('*'))
        x *= factor();
      else if (take('/'))
        x /= factor();
      else
        return x;
  }
  Tile factor() {
    if (take('(')) {
      Tile x = sum();
      if (!take(')')) throw std::invalid_argument("no ) in a formula");
      return x;
    }
    if (text[0] >= 'a') {
      const char name = text[0];
      text.remove_prefix(1);
      return column(name);
    }
    float number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(size_t(end - text.data()));
    return number;
  }
};
constexpr std::string_view kFormulas[] = {"a+b*c", "(a-2.5)*(b/(c+3)-a*a)", "2*3-1", "a/4-(((b)))"};
struct Formula {
  int which = 0, B = 64;
};
auto formulas = kernel("user_formulas", [](const Formula& c, Tensor<const float, 2> x, Tensor<float, 2> y) {
                  auto at = program_id(0) * c.B;
                  std::map<char, Tile> loaded;
                  Reader r{kFormulas[c.which], [&](char name) {
                             auto it = loaded.find(name);
                             if (it == loaded.end()) it = loaded.emplace(name, x.load({name - 'a', at}, {c.B})).first;
                             return it->second;
                           }};
                  Tile value = r.sum();
                  y.store({c.which, at}, broadcast_to(value, {c.B}));
                }).grid([](const Formula& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[1], c.B)}; });
Register c4("formulas", [](Env& e) {
  const int n = e.big ? 1 << 22 : 99;
  auto x = random<float>(e, size_t(3) * n), y = constant<float>(e, size_t(4) * n, 9);
  Job j;
  for (int f = 0; f < 4; ++f) j.add(formulas, Formula{f, 64}, x.view(3, n), y.view(4, n));
  j.check = [=] {
    std::vector<double> want(4 * n);
    for (int i = 0; i < n; ++i) {
      const double a = x[i], b = x[n + i], c = x[2 * n + i];
      want[i] = a + b * c, want[n + i] = (a - 2.5) * (b / (c + 3) - a * a), want[2 * n + i] = 5;
      want[3 * n + i] = a / 4 - b;
    }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- bodies in a table of std::function, a range that is used twice, a counter that is changed, variables chosen by
// C++
struct Bodies {
  bool swap = false;
};
auto bodies =
    kernel("user_bodies", [](const Bodies& c, Ptr<const int32_t> x, Ptr<int32_t> y, I32 n) {
      auto p = program_id(0);
      Tile low = 0, high = 0, steps = 0;
      std::map<std::string, std::function<void()>> table{
          {"low", [&] { low += 1; }}, {"high", [&] { high += 10; }}, {"count", [&] { (c.swap ? low : high) += 100; }}};
      auto odd = range(1, n, 2);
      for (auto i : odd) {
        if_(load(x + (p * n + i)) < 50, table["low"], table["high"]);
        i = i + n;  // another variable: the loop counts on
        steps += i;
      }
      for (auto i : odd)
        for (auto j : range(i - 1, -1, -3)) {
          continue_if(load(x + (p * n + j)) % 2 == 0);
          table["count"]();
          break_if(high > 2000);
        }
      std::function<Tile()> more = [&] { return (low > 0) & (steps < 100000); };
      std::function<void()> twice = [&] { low -= 1, steps = steps * 2 + 1; };
      while_(more, twice);
      auto out = [&, at = Tile(y + p * 3)](int k, const Tile& v) { store(at + k, v); };
      out(0, low), out(1, high), out(2, steps);
    }).grid([](const Bodies&, const int32_t*, int32_t*, int) { return Grid{5}; });
Register c5("bodies", [](Env& e) {
  const int n = e.big ? 1000 : 22, P = 5;
  auto x = integers<int32_t>(e, P * n, 0, 100);
  auto y = constant<int32_t>(e, P * 3, 9), z = constant<int32_t>(e, P * 3, 9);
  Job j;
  j.add(bodies, {}, x.p, y.p, n);
  j.add(bodies, {true}, x.p, z.p, n);
  j.check = [=]() -> std::string {
    for (int swap = 0; swap < 2; ++swap) {
      std::vector<double> want;
      for (int p = 0; p < P; ++p) {
        const int32_t* v = &x.h[p * n];
        int low = 0, high = 0, steps = 0;
        for (int i = 1; i < n; i += 2) (v[i] < 50 ? low += 1 : high += 10), steps += i + n;
        for (int i = 1; i < n; i += 2)
          for (int k = i - 1; k > -1; k -= 3) {
            if (v[k] % 2 == 0) continue;
            (swap ? low : high) += 100;
            if (high > 2000) break;
          }
        while (low > 0 && steps < 100000) low -= 1, steps = steps * 2 + 1;
        want.insert(want.end(), {double(low), double(high), double(steps)});
      }
      if (auto s = agree((swap ? z : y).now(), want, 0.1, 0); !s.empty()) return std::to_string(swap) + ": " + s;
    }
    return "";
  };
  return j;
});

}  // namespace cpp_recursions
}  // namespace users
