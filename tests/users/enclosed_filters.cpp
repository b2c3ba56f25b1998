// enclosed_filters.cpp - float64 beyond plain sums: products of complex 2 x 2 matrices as a scan, pentadiagonal systems
// along rows, decimation by integrators and combs, transforms of small bricks, intervals with directed rounding.
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace enclosed_filters {

/// A complex tile.
struct Complex {
  Tile re, im;
};
Complex operator*(const Complex& a, const Complex& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Complex operator+(const Complex& a, const Complex& b) { return {a.re + b.re, a.im + b.im}; }

// --- reflectance of thin films (transfer matrices of absorbing layers): of the stack from every layer down to the
// substrate, as a scan from the last layer to the first
struct FilmCfg {
  int W = 16, L = 24, warps = 4;
};
auto thin_film =
    kernel("user_thin_film", [](const FilmCfg& c, Ptr<const double> n, Ptr<const double> k, Ptr<const double> thickness,
                                Ptr<const double> wavelength, F64 substrate, Tensor<double, 2> R) {
      num_warps(c.warps);
      auto w = program_id(0) * c.W;
      auto i = (w + arange(0, c.W)).col(), l = arange(0, c.L).row();
      auto turns = load(thickness + l) / load(wavelength + i, {.mask = i < R.dim(0), .other = 1.0});
      Complex index{load(n + l), load(k + l)};
      auto x = 2 * M_PI * turns * index.re, y = 2 * M_PI * turns * index.im;
      Complex cosine{cos(x) * cosh(y), -(sin(x) * sinh(y))}, sine{sin(x) * cosh(y), cos(x) * sinh(y)};
      auto size = index.re * index.re + index.im * index.im;
      Complex one_over{index.re / size, -index.im / size};
      Complex b = sine * one_over, d = sine * index;  // times i below
      auto m = scan({cosine.re, cosine.im, -b.im, b.re, -d.im, d.re, cosine.re, cosine.im}, axis(1),
                    [](Tile a0, Tile a1, Tile a2, Tile a3, Tile a4, Tile a5, Tile a6, Tile a7, Tile b0, Tile b1,
                       Tile b2, Tile b3, Tile b4, Tile b5, Tile b6, Tile b7) {
                      Complex p[4] = {{a0, a1}, {a2, a3}, {a4, a5}, {a6, a7}};
                      Complex q[4] = {{b0, b1}, {b2, b3}, {b4, b5}, {b6, b7}};
                      auto r0 = q[0] * p[0] + q[1] * p[2], r1 = q[0] * p[1] + q[1] * p[3];
                      auto r2 = q[2] * p[0] + q[3] * p[2], r3 = q[2] * p[1] + q[3] * p[3];
                      return std::tuple(r0.re, r0.im, r1.re, r1.im, r2.re, r2.im, r3.re, r3.im);
                    },
                    {.reverse = true});
      Complex B{m[0] + m[2] * substrate, m[1] + m[3] * substrate};
      Complex C{m[4] + m[6] * substrate, m[5] + m[7] * substrate};
      auto square = [](const Tile& re, const Tile& im) { return re * re + im * im; };
      R.store({w, 0}, square(B.re - C.re, B.im - C.im) / square(B.re + C.re, B.im + C.im));
    }).grid([](const FilmCfg& c, auto, auto, auto, auto, double, const auto& r) {
      return Grid{cdiv(r.shape[0], c.W)};
    });
Register r1("thin_film", [](Env& e) {
  const int W = e.big ? 1 << 18 : 35, L = 24;
  auto n = random<double>(e, L, 1.3, 2.4), k = random<double>(e, L, 0, 0.2), t = random<double>(e, L, 20, 150);
  auto wavelength = random<double>(e, W, 380, 780);
  auto r = constant<double>(e, size_t(W) * L, NAN);
  Job j;
  j.mbytes = 8e-6 * W * (L + 1);
  j.add(thin_film, FilmCfg{}, n.p, k.p, t.p, wavelength.p, 1.52, r.view(W, L));
  j.check = [=] {
    using Z = std::complex<double>;
    std::vector<double> want(size_t(W) * L);
    for (int w = 0; w < W; ++w) {
      Z b = 1, c = 1.52;  // fields behind the layers, from the substrate up
      for (int l = L - 1; l >= 0; --l) {
        const Z index(n[l], k[l]), phase = 2 * M_PI * index * t[l] / wavelength[w], i(0, 1);
        const Z above = std::cos(phase) * b + i * std::sin(phase) / index * c;
        c = i * index * std::sin(phase) * b + std::cos(phase) * c, b = above;
        want[size_t(w) * L + l] = std::norm(b - c) / std::norm(b + c);
      }
    }
    return agree(r.now(), want, 1e-12, 1e-11);
  };
  return j;
});

// --- pentadiagonal systems along rows (compact filters): both sweeps run along the contiguous axis, 16 columns at a
// time
struct PentaCfg {
  int B = 64, S = 16, warps = 2;
};
auto penta = kernel("user_penta_rows", [](const PentaCfg& c, Tensor<const double, 2> rhs, Tensor<const double, 2> lu,
                                          Tensor<double, 2> X) {
               num_warps(c.warps);
               auto row = program_id(0) * c.B;
               auto n = rhs.dim(1);
               auto place = arange(0, c.S).row();
               Tile y1 = zeros({c.B, 1}, f64), y2 = zeros({c.B, 1}, f64);
               for (auto j : range(0, n, c.S)) {
                 Tile b = rhs.load({row, j}, {c.B, c.S});
                 for (int s = 0; s < c.S; ++s) {
                   auto y = extract(b, {0, s}, {c.B, 1}) - lu.load({0, j + s}) * y1 - lu.load({1, j + s}) * y2;
                   b = where(place == s, y, b);
                   y2 = y1, y1 = y;
                 }
                 X.store({row, j}, b);
               }
               Tile x1 = zeros({c.B, 1}, f64), x2 = zeros({c.B, 1}, f64);
               for (auto j : range((n - 1) / c.S * c.S, -1, -c.S)) {
                 Tile y = X.load({row, j}, {c.B, c.S});
                 for (int s = c.S - 1; s >= 0; --s) {
                   auto rest = extract(y, {0, s}, {c.B, 1}) - lu.load({2, j + s}) * x1 - lu.load({3, j + s}) * x2;
                   auto x = rest * lu.load({4, j + s});
                   y = where(place == s, x, y);
                   x2 = x1, x1 = x;
                 }
                 X.store({row, j}, y);
               }
             }).grid([](const PentaCfg& c, const auto& b, const auto&...) { return Grid{cdiv(b.shape[0], c.B)}; });
Register r2("penta_rows", [](Env& e) {
  const int M = e.big ? 65536 : 70, N = e.big ? 1000 : 37;
  const double a2 = 0.1, a1 = -0.7, a0 = 2.5;  // the diagonals, symmetric
  std::vector<double> lu(size_t(5) * N, 0.);
  double *l1 = &lu[0], *l2 = l1 + N, *u1 = l2 + N, *u2 = u1 + N, *inv = u2 + N;
  for (int i = 0; i < N; ++i) {
    l2[i] = i > 1 ? a2 * inv[i - 2] : 0;
    l1[i] = i > 0 ? (a1 - (i > 1 ? l2[i] * u1[i - 2] : 0)) * inv[i - 1] : 0;
    inv[i] = 1 / (a0 - (i > 0 ? l1[i] * u1[i - 1] : 0) - (i > 1 ? l2[i] * u2[i - 2] : 0));
    u1[i] = i + 1 < N ? a1 - (i > 0 ? l1[i] * u2[i - 1] : 0) : 0;
    u2[i] = i + 2 < N ? a2 : 0;
  }
  auto factors = repeated<double>(e, lu.size(), lu);
  auto b = random<double>(e, size_t(M) * N);
  auto x = constant<double>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 32e-6 * M * N;
  j.add(penta, PentaCfg{}, b.view(M, N), factors.view(5, N), x.view(M, N));
  j.check = [=] {  // the matrix times what was found
    const auto got = x.now();
    std::vector<double> back, want;
    for (int r = 0; r < M; ++r)
      for (int i = 0; i < N; ++i) {
        auto at = [&](int k) { return k < 0 || k >= N ? 0. : got[size_t(r) * N + k]; };
        back.push_back(a2 * (at(i - 2) + at(i + 2)) + a1 * (at(i - 1) + at(i + 1)) + a0 * at(i));
        want.push_back(b[size_t(r) * N + i]);
      }
    return agree(back, want, 1e-13, 1e-13);
  };
  return j;
});

// --- cascaded integrators and combs: samples of 12 bits, three running sums, every tenth kept, three differences. All
// modulo 2^64, so that overflows of the sums cancel
struct CicCfg {
  int C = 2, OUT = 32, R = 10, warps = 4;
};
auto cic = kernel("user_cic", [](const CicCfg& c, Tensor<const uint16_t, 2> samples, Tensor<int64_t, 2> kept) {
             num_warps(c.warps);
             auto channel = program_id(0) * c.C;
             Tile sums[3], last[3];
             for (int o = 0; o < 3; ++o) sums[o] = zeros({c.C, 1}, i64), last[o] = zeros({c.C, 1}, i64);
             for (auto t : range(0, kept.dim(1), c.OUT)) {
               Tile x = cast(samples.load({channel, t * c.R}, {c.C, c.OUT * c.R}, {.pad = 2048}), i64) - 2048;
               for (int o = 0; o < 3; ++o) {
                 x = cumsum(x, axis(1)) + sums[o];
                 sums[o] = extract(x, {0, c.OUT * c.R - 1}, {c.C, 1});
               }
               Tile v = squeeze(extract(reshape(x, {c.C, c.OUT, c.R}), {0, 0, c.R - 1}, {c.C, c.OUT, 1}), 2);
               for (int o = 0; o < 3; ++o) {
                 auto before = cat(last[o], extract(v, {0, 0}, {c.C, c.OUT - 1}), 1);
                 last[o] = extract(v, {0, c.OUT - 1}, {c.C, 1});
                 v = v - before;
               }
               kept.store({channel, t}, v);
             }
           }).grid([](const CicCfg& c, const auto& s, const auto&) { return Grid{cdiv(s.shape[0], c.C)}; });
Register r3("cic", [](Env& e) {
  const int C = e.big ? 4096 : 5, N = e.big ? 2000 : 75, T = N * 10;
  auto samples = integers<uint16_t>(e, size_t(C) * T, 0, 4096);
  auto kept = constant<int64_t>(e, size_t(C) * N, -1);
  Job j;
  j.mbytes = 1e-6 * C * (2. * T + 8. * N);
  j.add(cic, CicCfg{}, samples.view(C, T), kept.view(C, N));
  j.check = [=] {  // the same as three moving sums of ten
    std::vector<double> want(size_t(C) * N);
    for (int ch = 0; ch < C; ++ch) {
      std::vector<double> x(T), y(T);
      for (int t = 0; t < T; ++t) x[t] = double(samples.at(size_t(ch) * T + t)) - 2048;
      for (int o = 0; o < 3; ++o, x.swap(y))
        for (int t = 0; t < T; ++t) {
          y[t] = 0;
          for (int k = 0; k < 10 && k <= t; ++k) y[t] += x[t - k];
        }
      for (int n = 0; n < N; ++n) want[size_t(ch) * N + n] = x[n * 10 + 9];
    }
    return agree(kept.now(), want, 1e-6, 0);
  };
  return j;
});

// --- transforms of bricks of 12 x 10 x 6: a product with a matrix of roots of one along every axis
struct BrickCfg {
  int X = 12, Y = 10, Z = 6, warps = 4;
};
auto dft_bricks =
    kernel("user_dft_bricks", [](const BrickCfg& c, Tensor<const double, 4> re, Tensor<const double, 4> im,
                                 Tensor<double, 4> outRe, Tensor<double, 4> outIm) {
      num_warps(c.warps);
      auto b = program_id(0);
      Complex x{re.load({b, 0, 0, 0}, {c.X, c.Y, c.Z}), im.load({b, 0, 0, 0}, {c.X, c.Y, c.Z})};
      for (int i = 0; i < 3; ++i) {  // the first axis is transformed, and becomes the last
        const Shape s = x.re.shape();
        const int64_t n = s[0];
        auto jk = arange(0, n).col() * arange(0, n).row() % int(n);
        auto angle = cast(jk, f64) * (-2.0 / double(n));
        Complex f{cospi(angle), sinpi(angle)};
        Complex flat{reshape(x.re, {n, s[1] * s[2]}), reshape(x.im, {n, s[1] * s[2]})};
        auto turned = [&](const Tile& t) { return reshape(trans(t), {s[1], s[2], n}); };
        x.re = turned(dot(f.re, flat.re) - dot(f.im, flat.im));
        x.im = turned(dot(f.re, flat.im, dot(f.im, flat.re)));
      }
      outRe.store({b, 0, 0, 0}, x.re);
      outIm.store({b, 0, 0, 0}, x.im);
    }).grid([](const BrickCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r4("dft_bricks", [](Env& e) {
  const int n = e.big ? 20000 : 3, X = 12, Y = 10, Z = 6, V = X * Y * Z;
  auto re = random<double>(e, size_t(n) * V), im = random<double>(e, size_t(n) * V);
  auto outRe = constant<double>(e, size_t(n) * V, NAN), outIm = constant<double>(e, size_t(n) * V, NAN);
  Job j;
  j.mbytes = 32e-6 * n * V;
  j.add(dft_bricks, BrickCfg{}, re.view(n, X, Y, Z), im.view(n, X, Y, Z), outRe.view(n, X, Y, Z),
        outIm.view(n, X, Y, Z));
  j.check = [=] {
    std::vector<double> wantRe, wantIm;
    for (int b = 0; b < n; ++b)
      for (int u = 0; u < V; ++u) {
        std::complex<double> s = 0;
        for (int v = 0; v < V; ++v) {
          const double turn =
              double(u / 60) * (v / 60) / X + double(u / 6 % 10) * (v / 6 % 10) / Y + double(u % 6) * (v % 6) / Z;
          s += std::complex<double>(re[size_t(b) * V + v], im[size_t(b) * V + v]) * std::polar(1., -2 * M_PI * turn);
        }
        wantRe.push_back(s.real()), wantIm.push_back(s.imag());
      }
    const auto wrong = agree(outRe.now(), wantRe, 1e-10, 1e-11);
    return wrong.empty() ? agree(outIm.now(), wantIm, 1e-10, 1e-11) : wrong;
  };
  return j;
});

// --- polynomials of intervals: every bound rounded outwards, by the exact error of the product or sum that was rounded
// to nearest
struct Interval {
  Tile low, high;
};
Tile outwards(const Tile& x, const Tile& error, bool up) {
  return where(up ? error > 0.0 : error < 0.0, nextafter(x, up ? INFINITY : -INFINITY), x);
}
Tile product(const Tile& a, const Tile& b, bool up) {
  auto p = mul_rn(a, b);
  return outwards(p, fma(a, b, -p), up);
}
Tile total(const Tile& a, const Tile& b, bool up) {
  auto s = add_rn(a, b), bb = add_rn(s, -a);
  return outwards(s, add_rn(add_rn(a, -add_rn(s, -bb)), add_rn(b, -bb)), up);
}
Interval operator*(const Interval& a, const Interval& b) {
  auto all = [&](bool up) {
    Tile p[4] = {product(a.low, b.low, up), product(a.low, b.high, up), product(a.high, b.low, up),
                 product(a.high, b.high, up)};
    return up ? max(max(p[0], p[1]), max(p[2], p[3])) : min(min(p[0], p[1]), min(p[2], p[3]));
  };
  return {all(false), all(true)};
}
struct EnclosureCfg {
  int B = 512, degree = 8, warps = 8;
};
auto enclosure =
    kernel("user_enclosures", [](const EnclosureCfg& c, Tensor<const double, 2> coefficients, Ptr<const double> low,
                                 Ptr<const double> high, Ptr<double> outLow, Ptr<double> outHigh, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      Interval x{load(low + i, {.mask = in}), load(high + i, {.mask = in})};
      Interval y{zeros({c.B}, f64), zeros({c.B}, f64)};
      for (auto k : range(c.degree, -1, -1)) {
        auto p = y * x;
        y.low = total(p.low, coefficients.load({k, 0}), false);
        y.high = total(p.high, coefficients.load({k, 1}), true);
      }
      store(outLow + i, y.low, {.mask = in});
      store(outHigh + i, y.high, {.mask = in});
    }).grid([](const EnclosureCfg& c, const auto&, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r5("enclosures", [](Env& e) {
  const int n = e.big ? 1 << 22 : 1100, K = 9;
  auto c = drawn<double>(e, 2 * K, [&, i = 0, x = 0.]() mutable {
    return i++ % 2 ? x + 1e-3 * e.uniform() : x = (2 * e.uniform() - 1) / 3;
  });
  auto low = drawn<double>(e, n, [&] { return 3 * e.uniform() - 1.7; });
  auto high = filled<double>(e, n, [&](size_t i) { return low[i] + e.uniform() / 7; });
  auto outLow = constant<double>(e, n, NAN), outHigh = constant<double>(e, n, NAN);
  Job j;
  j.mbytes = 32e-6 * n;
  j.add(enclosure, EnclosureCfg{}, c.view(K, 2), low.p, high.p, outLow.p, outHigh.p, n);
  j.check = [=] {
    using Quad = __float128;  // holds products of two doubles
    auto rounded = [](Quad x, bool up) {
      const double d = double(x);
      return up ? Quad(d) < x ? std::nextafter(d, INFINITY) : d : Quad(d) > x ? std::nextafter(d, -INFINITY) : d;
    };
    std::vector<double> wantLow(n), wantHigh(n);
    for (int i = 0; i < n; ++i) {
      double a = 0, b = 0;
      for (int k = K - 1; k >= 0; --k) {
        const Quad p[4] = {Quad(a) * low[i], Quad(a) * high[i], Quad(b) * low[i], Quad(b) * high[i]};
        a = rounded(Quad(rounded(*std::min_element(p, p + 4), false)) + c[2 * k], false);
        b = rounded(Quad(rounded(*std::max_element(p, p + 4), true)) + c[2 * k + 1], true);
      }
      wantLow[i] = a, wantHigh[i] = b;
    }
    const auto wrong = agree(outLow.now(), wantLow, 1e-300, 0);  // the same bits
    return wrong.empty() ? agree(outHigh.now(), wantHigh, 1e-300, 0) : wrong;
  };
  return j;
});

}  // namespace enclosed_filters
}  // namespace users
