// fluxes.cpp - more of numerical schemes: water over uneven ground, a whole V-cycle on chip, distributions in phase
// space, transforms of 105 points, expansions moved from cell to cell, sand that slides until it lies.
#include <complex>
#include <numbers>

#include "tests/users/use.h"
namespace users {
namespace fluxes {

// --- shallow water: what flows through the faces of a cell (HLL); walls reflect
struct WaterCfg {
  int BY = 8, BX = 64, warps = 4;
};
struct Water {
  Tile h, u, v;
};
constexpr float kGravity = 9.81f;
/// Through a face, seen along the first component of the velocity: of height and both momenta.
Water flux(const Water& l, const Water& r) {
  auto cl = sqrt(kGravity * l.h), cr = sqrt(kGravity * r.h);
  auto sl = min(min(l.u - cl, r.u - cr), 0.f), sr = max(max(l.u + cl, r.u + cr), 0.f);
  auto width = max(sr - sl, 1e-6f);
  auto between = [&](Tile fl, Tile fr, Tile ql, Tile qr) { return (sr * fl - sl * fr + sl * sr * (qr - ql)) / width; };
  auto ml = l.h * l.u, mr = r.h * r.u;
  return {between(ml, mr, l.h, r.h),
          between(ml * l.u + 0.5f * kGravity * l.h * l.h, mr * r.u + 0.5f * kGravity * r.h * r.h, ml, mr),
          between(ml * l.v, mr * r.v, l.h * l.v, r.h * r.v)};
}
auto shallow = kernel("user_shallow", [](const WaterCfg& c, Tensor<const float, 3> Q, Tensor<float, 3> out, F32 step) {
                 // Q, out [3, Y, X]: height and momenta
                 num_warps(c.warps);
                 auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                 auto rows = (y + arange(0, c.BY)).col(), columns = (x + arange(0, c.BX)).row();
                 auto state = [&](int dy, int dx) {
                   auto q = [&](int k) { return Q.load({k, y + dy, x + dx}, {c.BY, c.BX}); };
                   Tile h = q(0), hu = q(1), hv = q(2);
                   if (dy || dx) {  // outside lies what is inside, coming the other way
                     auto inside = dy ? (rows + dy >= 0) & (rows + dy < Q.dim(1))
                                      : (columns + dx >= 0) & (columns + dx < Q.dim(2));
                     h = where(inside, h, Q.load({0, y, x}, {c.BY, c.BX}));
                     hu = where(inside, hu, (dx ? -1.f : 1.f) * Q.load({1, y, x}, {c.BY, c.BX}));
                     hv = where(inside, hv, (dy ? -1.f : 1.f) * Q.load({2, y, x}, {c.BY, c.BX}));
                   }
                   auto dry = h < 1e-4f;
                   auto inverse = where(dry, 0.f, 1.f / max(h, 1e-4f));
                   return Water{max(h, 0.f), hu * inverse, hv * inverse};
                 };
                 auto turned = [](const Water& w) { return Water{w.h, w.v, w.u}; };
                 auto here = state(0, 0);
                 auto w = flux(state(0, -1), here), e = flux(here, state(0, 1));
                 auto n = flux(turned(state(-1, 0)), turned(here)), s = flux(turned(here), turned(state(1, 0)));
                 out.store({0, y, x}, here.h - step * (e.h - w.h + s.h - n.h));
                 out.store({1, y, x}, here.h * here.u - step * (e.u - w.u + s.v - n.v));
                 out.store({2, y, x}, here.h * here.v - step * (e.v - w.v + s.u - n.u));
               }).grid([](const WaterCfg& c, const auto& q, const auto&, float) {
  return Grid{cdiv(q.shape[2], c.BX), cdiv(q.shape[1], c.BY)};
});
Register r1("shallow", [](Env& e) {
  WaterCfg c;
  if (!e.big) c = {3, 16, 1};
  c.warps = e.field("warps", c.warps), c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int Y = e.big ? 4096 : 13, X = e.big ? 4096 : 37;
  const size_t n = size_t(Y) * X;
  auto q = filled<float>(e, 3 * n, [&](size_t i) {
    return i < n ? (i % 11 == 0 ? 0.f : float(e.uniform() + .2)) : float(e.uniform() - .5) * .3f;
  });
  auto out = constant<float>(e, 3 * n, NAN);
  Job j;
  j.mbytes = 24e-6 * n;
  j.add(shallow, c, q.view(3, Y, X), out.view(3, Y, X), .05f);
  j.check = [=] {
    using Cell = std::array<double, 3>;
    auto cell = [&](int y, int x) {
      const bool wy = y < 0 || y >= Y, wx = x < 0 || x >= X;
      const size_t at = size_t(std::clamp(y, 0, Y - 1)) * X + std::clamp(x, 0, X - 1);
      Cell s{q[at], q[n + at] * (wx ? -1 : 1), q[2 * n + at] * (wy ? -1 : 1)};
      const double inverse = s[0] < 1e-4f ? 0 : 1 / s[0];
      return Cell{s[0], s[1] * inverse, s[2] * inverse};
    };
    auto through = [](Cell l, Cell r, int axis) {  // of height, along, across
      const double g = kGravity, ul = l[1 + axis], ur = r[1 + axis], vl = l[2 - axis], vr = r[2 - axis];
      const double cl = std::sqrt(g * l[0]), cr = std::sqrt(g * r[0]);
      const double sl = std::min({ul - cl, ur - cr, 0.}), sr = std::max({ul + cl, ur + cr, 0.});
      const Cell ql{l[0], l[0] * ul, l[0] * vl}, qr{r[0], r[0] * ur, r[0] * vr};
      const Cell fl{ql[1], ql[1] * ul + g / 2 * l[0] * l[0], ql[1] * vl},
          fr{qr[1], qr[1] * ur + g / 2 * r[0] * r[0], qr[1] * vr};
      Cell f;
      for (int k = 0; k < 3; ++k)
        f[k] = (sr * fl[k] - sl * fr[k] + sl * sr * (qr[k] - ql[k])) / std::max(sr - sl, 1e-6);
      return f;
    };
    std::vector<double> want(3 * n);
    for (int y = 0; y < Y; ++y)
      for (int x = 0; x < X; ++x) {
        const Cell here = cell(y, x);
        const Cell w = through(cell(y, x - 1), here, 0), ea = through(here, cell(y, x + 1), 0);
        const Cell no = through(cell(y - 1, x), here, 1), s = through(here, cell(y + 1, x), 1);
        const double step = .05f;
        const size_t at = size_t(y) * X + x;
        want[at] = here[0] - step * (ea[0] - w[0] + s[0] - no[0]);
        want[n + at] = here[0] * here[1] - step * (ea[1] - w[1] + s[2] - no[2]);
        want[2 * n + at] = here[0] * here[2] - step * (ea[2] - w[2] + s[1] - no[1]);
      }
    return agree(out.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- a V-cycle of multigrid for many small Poisson problems: all levels stay on chip, a problem a program
struct CycleCfg {
  int N = 64, smallest = 4, sweeps = 2, warps = 4;
};
/// The neighbours' values `by` places along an axis, zeros from outside.
Tile moved(Tile x, int axis, int by) {
  Shape edge = x.shape(), kept = x.shape(), from{0, 0};
  edge[axis] = std::abs(by), kept[axis] -= std::abs(by);
  if (by < 0) return cat(zeros(edge, x.dtype()), extract(x, from, kept), axis);
  from[axis] = by;
  return cat(extract(x, from, kept), zeros(edge, x.dtype()), axis);
}
Tile around(Tile x) { return moved(x, 0, -1) + moved(x, 0, 1) + moved(x, 1, -1) + moved(x, 1, 1); }
Tile cycle(const CycleCfg& c, Tile f, int n) {  // solves 4 u - around(u) = f, n x n
  Tile u = 0.2f * f;
  auto smooth = [&] {
    for (int i = 0; i < c.sweeps; ++i) u += 0.2f * (f - 4.f * u + around(u));
  };
  smooth();
  if (n > c.smallest) {
    auto r = f - 4.f * u + around(u);
    auto coarse = sum(sum(reshape(r, {n / 2, 2, n / 2, 2}), axis(3)), axis(1));
    auto e = cycle(c, reshape(coarse, {n / 2, n / 2}), n / 2);
    u += reshape(broadcast_to(reshape(e, {n / 2, 1, n / 2, 1}), {n / 2, 2, n / 2, 2}), {n, n});
  }
  smooth();
  return u;
}
auto v_cycle = kernel("user_v_cycle", [](const CycleCfg& c, Tensor<const float, 3> F, Tensor<float, 3> U) {
                 num_warps(c.warps);
                 auto p = program_id(0);
                 U.store({p, 0, 0}, cycle(c, F.load({p, 0, 0}, {c.N, c.N}), c.N));
               }).grid([](const CycleCfg&, const auto& f, const auto&) { return Grid{f.shape[0]}; });
Register r2("v_cycle", [](Env& e) {
  CycleCfg c;
  if (!e.big) c = {16, 4, 2, 2};
  c.warps = e.field("warps", c.warps), c.N = e.field("N", c.N);
  const int P = e.big ? 8192 : 3, N = c.N;
  auto f = random<float>(e, size_t(P) * N * N);
  auto u = constant<float>(e, size_t(P) * N * N, NAN);
  Job j;
  j.mbytes = 8e-6 * P * N * N;
  j.add(v_cycle, c, f.view(P, N, N), u.view(P, N, N));
  j.check = [=] {
    using Grid2 = std::vector<double>;
    auto residual = [](const Grid2& f, const Grid2& u, int n) {
      Grid2 r(f.size());
      auto at = [&](int y, int x) { return y < 0 || x < 0 || y >= n || x >= n ? 0 : u[y * n + x]; };
      for (int y = 0; y < n; ++y)
        for (int x = 0; x < n; ++x)
          r[y * n + x] = f[y * n + x] - 4 * at(y, x) + at(y - 1, x) + at(y + 1, x) + at(y, x - 1) + at(y, x + 1);
      return r;
    };
    std::function<Grid2(const Grid2&, int)> solve = [&](const Grid2& f, int n) {
      Grid2 u(f.size());
      for (size_t i = 0; i < f.size(); ++i) u[i] = .2 * f[i];
      auto smooth = [&] {
        for (int s = 0; s < c.sweeps; ++s) {
          const auto r = residual(f, u, n);
          for (size_t i = 0; i < u.size(); ++i) u[i] += .2 * r[i];
        }
      };
      smooth();
      if (n > c.smallest) {
        const auto r = residual(f, u, n);
        const int h = n / 2;
        Grid2 coarse(size_t(h) * h);
        for (int y = 0; y < n; ++y)
          for (int x = 0; x < n; ++x) coarse[y / 2 * h + x / 2] += r[y * n + x];
        const auto e = solve(coarse, h);
        for (int y = 0; y < n; ++y)
          for (int x = 0; x < n; ++x) u[y * n + x] += e[y / 2 * h + x / 2];
      }
      smooth();
      return u;
    };
    std::vector<double> want;
    for (int p = 0; p < P; ++p) {
      Grid2 g(size_t(N) * N);
      for (size_t i = 0; i < g.size(); ++i) g[i] = f[p * g.size() + i];
      const auto s = solve(g, N);
      want.insert(want.end(), s.begin(), s.end());
    }
    return agree(u.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- a distribution over space and velocity (Vlasov): its moments, and a step of acceleration by cubic interpolation
struct PhaseCfg {
  int BX = 2, V = 32, warps = 4;
};
auto moments =
    kernel("user_moments", [](const PhaseCfg& c, Tensor<const bfloat16, 5> F, Tensor<float, 4> M) {
      // F [species, x, y, u, v], M [species, x, y, 4]: density, both momenta, energy
      num_warps(c.warps);
      auto x = program_id(0) * c.BX, y = program_id(1) * c.BX, s = program_id(2);
      auto f = cast(F.load({s, x, y, 0, 0}, {c.BX, c.BX, c.V, c.V}), f32);
      auto axis_of = [&](Shape shape) { return reshape(cast(arange(0, c.V), f32) - 0.5f * (c.V - 1), shape); };
      auto u = axis_of({1, 1, c.V, 1}), v = axis_of({1, 1, 1, c.V});
      auto all = [&](Tile x) { return reshape(sum(sum(x, axis(-1)), axis(-2)), {c.BX, c.BX}); };
      M.store({s, x, y, 0},
              reshape(join(join(all(f), all(f * v)), join(all(f * u), all(f * (u * u + v * v)))), {1, c.BX, c.BX, 4}));
    }).grid([](const PhaseCfg& c, const auto& f, const auto&) {
      return Grid{cdiv(f.shape[1], c.BX), cdiv(f.shape[2], c.BX), f.shape[0]};
    });
auto accelerate = kernel("user_accelerate", [](const PhaseCfg& c, Tensor<const bfloat16, 5> F, Tensor<const float, 2> E,
                                               Tensor<bfloat16, 5> out, F32 step) {
                    // along u by E [x, y] step cells: zeros come in
                    num_warps(c.warps);
                    auto x = program_id(0) * c.BX, y = program_id(1) * c.BX, s = program_id(2);
                    auto shift = E.load({x, y}, {c.BX, c.BX}) * step;
                    auto whole = floor(shift), t = reshape(shift - whole, {c.BX, c.BX, 1, 1});
                    auto from = reshape(arange(0, c.V), {1, 1, c.V, 1}) - reshape(cast(whole, i32), {c.BX, c.BX, 1, 1});
                    auto f = F.load({s, x, y, 0, 0}, {c.BX, c.BX, c.V, c.V});
                    auto at = [&](int k) {
                      auto i = broadcast_to(from + k, {c.BX, c.BX, c.V, c.V});
                      return where((i >= 0) & (i < c.V), cast(take(f, clamp(i, 0, c.V - 1), 2), f32), 0.f);
                    };
                    auto w0 = t * (1.f + t) * (2.f - t) / 2.f, w1 = (1.f - t) * (1.f + t) * (2.f - t) / 2.f;
                    auto w2 = -t * (1.f - t) * (2.f - t) / 6.f, w3 = -t * (1.f - t) * (1.f + t) / 6.f;
                    out.store({s, x, y, 0, 0}, reshape(cast(w0 * at(-1) + w1 * at(0) + w2 * at(1) + w3 * at(-2), bf16),
                                                       {1, c.BX, c.BX, c.V, c.V}));
                  }).grid([](const PhaseCfg& c, const auto& f, const auto&, const auto&, float) {
  return Grid{cdiv(f.shape[1], c.BX), cdiv(f.shape[2], c.BX), f.shape[0]};
});
Register r3("vlasov", [](Env& e) {
  PhaseCfg c;
  if (!e.big) c = {2, 12, 2};
  c.warps = e.field("warps", c.warps), c.BX = e.field("BX", c.BX);
  const int S = 2, X = e.big ? 128 : 3, Y = e.big ? 128 : 5, V = c.V;
  const size_t n = size_t(S) * X * Y * V * V;
  auto f = random<bfloat16>(e, n, 0, 1);
  auto field = random<float>(e, size_t(X) * Y, -3, 3);
  auto m = constant<float>(e, size_t(S) * X * Y * 4, NAN);
  auto out = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 6e-6 * n;
  j.add(moments, c, f.view(S, X, Y, V, V), m.view(S, X, Y, 4));
  j.add(accelerate, c, f.view(S, X, Y, V, V), field.view(X, Y), out.view(S, X, Y, V, V), .7f);
  j.check = [=] {
    std::vector<double> want(m.n), moved(n);
    for (size_t p = 0; p < size_t(S) * X * Y; ++p) {
      const double shift = field[p % (X * Y)] * double(.7f), whole = std::floor(shift), t = shift - whole;
      for (int u = 0; u < V; ++u)
        for (int v = 0; v < V; ++v) {
          const double x = f[(p * V + u) * V + v], cu = u - .5 * (V - 1), cv = v - .5 * (V - 1);
          want[p * 4] += x, want[p * 4 + 1] += x * cu, want[p * 4 + 2] += x * cv;
          want[p * 4 + 3] += x * (cu * cu + cv * cv);
          auto at = [&](int k) {
            const int i = u - int(whole) + k;
            return i < 0 || i >= V ? 0. : f[(p * V + i) * V + v];
          };
          moved[(p * V + u) * V + v] = t * (1 + t) * (2 - t) / 2 * at(-1) + (1 - t) * (1 + t) * (2 - t) / 2 * at(0) -
                                       t * (1 - t) * (2 - t) / 6 * at(1) - t * (1 - t) * (1 + t) / 6 * at(-2);
        }
    }
    if (auto wrong = agree(m.now(), want, 1e-3, 1e-4); !wrong.empty()) return "moments: " + wrong;
    return agree(out.now(), moved, 1e-2, 1e-2);
  };
  return j;
});

// --- Fourier transforms of 105 = 3 x 5 x 7 points (Good and Thomas): three dims, no twiddles between them
struct PrimeCfg {
  int B = 16, warps = 4;
};
struct Complex {
  Tile re, im;
};
/// Along an axis of few elements, slice by slice.
template <int N>
Complex short_dft(const Complex& x, int axis) {
  Shape slice = x.re.shape(), from{0, 0, 0, 0};
  slice[axis] = 1;
  std::array<Tile, N> re, im;
  for (int i = 0; i < N; ++i) from[axis] = i, re[i] = extract(x.re, from, slice), im[i] = extract(x.im, from, slice);
  Complex out;
  for (int k = 0; k < N; ++k) {
    Tile a = re[0], b = im[0];
    for (int i = 1; i < N; ++i) {
      const double w = -2 * std::numbers::pi * (i * k % N) / N, cosine = std::cos(w), sine = std::sin(w);
      a += cosine * re[i] - sine * im[i], b += cosine * im[i] + sine * re[i];
    }
    out.re = k ? cat(out.re, a, axis) : a, out.im = k ? cat(out.im, b, axis) : b;
  }
  return out;
}
template <class T>
auto prime_fft(const char* name) {
  return kernel(name,
                [](const PrimeCfg& c, Ptr<const T> x, Ptr<T> y, I32 n) {
                  // x, y [n, 105, 2]
                  num_warps(c.warps);
                  auto line = [](int size, int axis) {
                    Shape s{1, 1, 1, 1};
                    s[axis] = size;
                    return reshape(arange(0, size), s);
                  };
                  auto row = program_id(0) * c.B + line(c.B, 0);
                  auto a = line(3, 1), b = line(5, 2), d = line(7, 3);
                  auto in = row * 105 + (a * 35 + b * 21 + d * 15) % 105,
                       to = row * 105 + (a * 70 + b * 21 + d * 15) % 105;
                  auto whole = broadcast_to(row < n, {c.B, 3, 5, 7});
                  Complex z{load(x + in * 2, {.mask = whole}), load(x + in * 2 + 1, {.mask = whole})};
                  z = short_dft<7>(short_dft<5>(short_dft<3>(z, 1), 2), 3);
                  store(y + to * 2, z.re, {.mask = whole});
                  store(y + to * 2 + 1, z.im, {.mask = whole});
                })
      .grid([](const PrimeCfg& c, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
}
template <class T>
Job prime_job(Env& e, const char* name) {
  PrimeCfg c;
  if (!e.big) c = {3, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 18 : 7;
  auto x = random<T>(e, size_t(n) * 210);
  auto y = constant<T>(e, x.n, NAN);
  Job j;
  j.mbytes = 2e-6 * sizeof(T) * x.n;
  j.add(prime_fft<T>(name), c, x.p, y.p, n);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int r = 0; r < n; ++r)
      for (int k = 0; k < 105; ++k) {
        std::complex<double> s = 0;
        for (int i = 0; i < 105; ++i)
          s += std::complex<double>(x[r * 210 + i * 2], x[r * 210 + i * 2 + 1]) *
               std::polar(1., -2 * std::numbers::pi * (i * k % 105) / 105);
        want[r * 210 + k * 2] = s.real(), want[r * 210 + k * 2 + 1] = s.imag();
      }
    const double eps = sizeof(T) == 8 ? 1e-12 : 2e-5;
    return agree(y.now(), want, eps * 10, eps);
  };
  return j;
}
Register r4("prime_fft", [](Env& e) { return prime_job<float>(e, "user_prime_fft"); });
Register r5("prime_fft_f64", [](Env& e) { return prime_job<double>(e, "user_prime_fft_f64"); });

// --- fast multipoles in the plane: expansions of 12 complex terms of up to 27 cells become one around another centre
struct MultipoleCfg {
  int P = 12, B = 32, warps = 1;
};
struct Number {
  Tile re, im;
};
Number operator*(const Number& a, const Number& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
auto m2l = kernel("user_m2l", [](const MultipoleCfg& c, Ptr<const float> outer, Ptr<float> inner,
                                 Ptr<const int32_t> list, Ptr<const int32_t> start, Ptr<const float> centre, I32 n) {
             // outer, inner [cells, P, 2], list[start[i] ..]: the cells whose expansions come to cell i, centre [cells,
             // 2]
             num_warps(c.warps);
             auto cell = program_id(0) * c.B + arange(0, c.B);
             auto in = cell < n;
             auto first = load(start + cell, {.mask = in}), end = load(start + cell + 1, {.mask = in});
             auto cx = load(centre + cell * 2, {.mask = in}), cy = load(centre + cell * 2 + 1, {.mask = in});
             std::vector<Number> sums(c.P, {zeros({c.B}, f32), zeros({c.B}, f32)});
             for (auto i : range(0, max(end - first))) {
               auto at = first + i;
               auto there = at < end;
               auto s = load(list + at, {.mask = there});
               Number z{load(centre + s * 2, {.mask = there, .other = 1}) - cx,
                        load(centre + s * 2 + 1, {.mask = there}) - cy};
               auto r2 = z.re * z.re + z.im * z.im;
               Number w{z.re / r2, -z.im / r2};  // 1 / z
               // b_l = (-1 / z)^l sum_k C(l + k - 1, k - 1) a_k / z^k, a_0 apart: -log is left to the caller
               std::vector<Number> a;
               Number power = w;
               for (int k = 1; k < c.P; ++k) {
                 Number term{load(outer + (s * c.P + k) * 2, {.mask = there}),
                             load(outer + (s * c.P + k) * 2 + 1, {.mask = there})};
                 a.push_back(term * power), power = power * w;
               }
               Number sign{full({c.B}, 1.f, f32), zeros({c.B}, f32)};
               for (int l = 0; l < c.P; ++l) {
                 Number sum{zeros({c.B}, f32), zeros({c.B}, f32)};
                 double choose = 1;  // C(l + k - 1, k - 1)
                 for (int k = 1; k < c.P; ++k) {
                   sum.re += choose * a[k - 1].re, sum.im += choose * a[k - 1].im;
                   choose = choose * (l + k) / k;
                 }
                 auto b = sum * sign;
                 sums[l].re += where(there, b.re, 0.f), sums[l].im += where(there, b.im, 0.f);
                 sign = sign * Number{-w.re, -w.im};
               }
             }
             for (int l = 0; l < c.P; ++l) {
               store(inner + (cell * c.P + l) * 2, sums[l].re, {.mask = in});
               store(inner + (cell * c.P + l) * 2 + 1, sums[l].im, {.mask = in});
             }
           }).grid([](const MultipoleCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r6("m2l", [](Env& e) {
  MultipoleCfg c;
  if (!e.big) c.P = 5;
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int side = e.big ? 512 : 9, n = side * side, P = c.P;
  std::vector<int32_t> list, start{0};
  for (int i = 0; i < n; ++i) {
    const int y = i / side, x = i % side;
    for (int v = (y & ~1) - 2; v < (y & ~1) + 4; ++v)
      for (int u = (x & ~1) - 2; u < (x & ~1) + 4; ++u)
        if (u >= 0 && v >= 0 && u < side && v < side && (std::abs(u - x) > 1 || std::abs(v - y) > 1))
          list.push_back(v * side + u);
    start.push_back(int(list.size()));
  }
  auto l = filled<int32_t>(e, list.size(), [&](size_t i) { return list[i]; });
  auto s = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto centre = filled<float>(e, size_t(n) * 2, [&](size_t i) { return float(i % 2 ? i / 2 / side : i / 2 % side); });
  auto outer = random<float>(e, size_t(n) * P * 2);
  auto inner = constant<float>(e, outer.n, NAN);
  Job j;
  j.gflop = 1e-9 * list.size() * P * P * 4;
  j.add(m2l, c, outer.p, inner.p, l.p, s.p, centre.p, n);
  j.check = [=] {
    using C = std::complex<double>;
    std::vector<double> want(inner.n);
    for (int i = 0; i < n; ++i)
      for (int at = start[i]; at < start[i + 1]; ++at) {
        const int from = list[at];
        const C z(centre[from * 2] - centre[i * 2], centre[from * 2 + 1] - centre[i * 2 + 1]);
        for (int b = 0; b < P; ++b) {
          C sum = 0;
          for (int k = 1; k < P; ++k) {
            double choose = 1;
            for (int q = 1; q < k; ++q) choose = choose * (b + q) / q;
            sum += choose * C(outer[(from * P + k) * 2], outer[(from * P + k) * 2 + 1]) / std::pow(z, k);
          }
          sum *= std::pow(-1. / z, b);
          want[(i * P + b) * 2] += sum.real(), want[(i * P + b) * 2 + 1] += sum.imag();
        }
      }
    return agree(inner.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- a sandpile: places with four grains or more give one to each neighbour until none is left; a board a program
struct SandCfg {
  int Y = 48, X = 80, warps = 8;
};
auto sandpile = kernel("user_sandpile", [](const SandCfg& c, Tensor<const uint8_t, 3> start, Tensor<uint8_t, 3> end,
                                           Ptr<int64_t> topplings) {
                  num_warps(c.warps);
                  auto p = program_id(0);
                  Tile x = cast(start.load({p, 0, 0}, {c.Y, c.X}), i32), count = zeros({c.Y, c.X}, i32);
                  while_([&] { return any(x >= 4); },
                         [&] {
                           auto over = x >> 2;
                           x = (x & 3) + around(over);
                           count += over;
                         });
                  end.store({p, 0, 0}, cast(x, u8));
                  store(topplings + p, sum(cast(count, i64)));
                }).grid([](const SandCfg&, const auto& s, const auto&, auto) { return Grid{s.shape[0]}; });
Register r9("sandpile", [](Env& e) {
  SandCfg c;
  if (!e.big) c = {9, 21, 1};
  c.warps = e.field("warps", c.warps);
  const int P = e.big ? 2048 : 3;
  auto start = integers<uint8_t>(e, size_t(P) * c.Y * c.X, 0, e.big ? 6 : 9);
  auto end = constant<uint8_t>(e, start.n, 255);
  auto count = constant<int64_t>(e, P, -1);
  Job j;
  j.mbytes = 2e-6 * start.n;
  j.add(sandpile, c, start.view(P, c.Y, c.X), end.view(P, c.Y, c.X), count.p);
  j.check = [=]() -> std::string {
    const auto got = end.now();
    const auto counts = count.now();
    for (int p = 0; p < P; ++p) {  // the order of topplings does not matter
      std::vector<int> x(c.Y * c.X);
      for (size_t i = 0; i < x.size(); ++i) x[i] = start.at(p * x.size() + i);
      int64_t n = 0;
      for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < c.Y * c.X; ++i)
          while (x[i] >= 4) {
            more = true, ++n, x[i] -= 4;
            const int at = i % c.X;
            if (i >= c.X) ++x[i - c.X];
            if (i + c.X < c.Y * c.X) ++x[i + c.X];
            if (at) ++x[i - 1];
            if (at + 1 < c.X) ++x[i + 1];
          }
      }
      if (n != counts[p]) return "topplings of " + std::to_string(p);
      for (size_t i = 0; i < x.size(); ++i)
        if (got[p * x.size() + i] != x[i]) return "place " + std::to_string(i) + " of " + std::to_string(p);
    }
    return "";
  };
  return j;
});

}  // namespace fluxes
}  // namespace users
