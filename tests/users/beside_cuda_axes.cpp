// beside_cuda_axes.cpp - weno5, stencil27, tridiag, mc_count
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_axes {

// --- fifth-order WENO, upwind flux at the face behind each cell, periodic: f = a+ uL(i + 1/2) + a- uR(i + 1/2)
struct WenoCfg {
  int BX = 128, axis = 0;
};
// the value at the right face of the cell that `c` is in
Tile weno(const Tile& a, const Tile& b, const Tile& c, const Tile& d, const Tile& e) {
  const float eps = 1e-6f;
  auto q0 = (2.f * a - 7.f * b + 11.f * c) * (1 / 6.f), q1 = (5.f * c - b + 2.f * d) * (1 / 6.f),
       q2 = (2.f * c + 5.f * d - e) * (1 / 6.f);
  auto sq = [](Tile x) { return x * x; };
  auto s0 = (13 / 12.f) * sq(a - 2.f * b + c) + .25f * sq(a - 4.f * b + 3.f * c);
  auto s1 = (13 / 12.f) * sq(b - 2.f * c + d) + .25f * sq(b - d);
  auto s2 = (13 / 12.f) * sq(c - 2.f * d + e) + .25f * sq(3.f * c - 4.f * d + e);
  auto w0 = .1f / sq(s0 + eps), w1 = .6f / sq(s1 + eps), w2 = .3f / sq(s2 + eps);
  return (w0 * q0 + w1 * q1 + w2 * q2) / (w0 + w1 + w2);
}
auto weno5 = kernel("user_weno5", [](const WenoCfg& c, Ptr<const float> U, Ptr<const float> A, Ptr<float> F, I32 X,
                                     I32 Y, I32 Z) {
               auto x = program_id(0) * c.BX + arange(0, c.BX), y = program_id(1), z = program_id(2);
               auto wrap = [](const Tile& i, const Tile& n) { return where(i < 0, i + n, where(i >= n, i - n, i)); };
               auto inside = x < X;
               auto u = [&](int by) {
                 auto xx = c.axis == 0 ? wrap(x + by, X) : x;
                 auto yy = c.axis == 1 ? wrap(y + by, Y) : y, zz = c.axis == 2 ? wrap(z + by, Z) : z;
                 return load(U + ((zz * Y + yy) * X + xx), {.mask = inside});
               };
               Tile v[6];
               for (int i = 0; i < 6; ++i) v[i] = u(i - 2);
               auto at = (z * Y + y) * X + x;
               auto a = load(A + at, {.mask = inside});
               auto left = weno(v[0], v[1], v[2], v[3], v[4]), right = weno(v[5], v[4], v[3], v[2], v[1]);
               store(F + at, max(a, 0.f) * left + min(a, 0.f) * right, {.mask = inside});
             }).grid([](const WenoCfg& c, auto, auto, auto, int X, int Y, int Z) {
  return Grid{cdiv(X, c.BX), Y, Z};
});
Register r1("weno5", [](Env& e) {
  const int X = e.big ? 384 : 37, Y = e.big ? 320 : 7, Z = e.big ? 256 : 6;
  const size_t n = size_t(X) * Y * Z;
  auto u = random<float>(e, n), a = random<float>(e, n);
  auto f = repeated<float>(e, 1, {0.f});
  Array<float> out[3];
  for (auto& o : out) o = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 36e-6 * double(n);
  for (int k = 0; k < 3; ++k) j.add(weno5, WenoCfg{e.field("BX", e.big ? 128 : 32), k}, u.p, a.p, out[k].p, X, Y, Z);
  auto o0 = out[0], o1 = out[1], o2 = out[2];
  j.check = [=]() -> std::string {
    for (int k = 0; k < 3; ++k) {
      std::vector<double> want(n);
      for (int z = 0; z < Z; ++z)
        for (int y = 0; y < Y; ++y)
          for (int x = 0; x < X; ++x) {
            double v[6];
            for (int i = 0; i < 6; ++i) {
              const int d = i - 2;
              const int xx = (x + (k == 0 ? d : 0) + X) % X, yy = (y + (k == 1 ? d : 0) + Y) % Y,
                        zz = (z + (k == 2 ? d : 0) + Z) % Z;
              v[i] = u[(size_t(zz) * Y + yy) * X + xx];
            }
            auto rec = [](double a, double b, double c, double d, double e) {
              auto sq = [](double x) { return x * x; };
              double q[3] = {(2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6};
              double s[3] = {13 / 12. * sq(a - 2 * b + c) + .25 * sq(a - 4 * b + 3 * c),
                             13 / 12. * sq(b - 2 * c + d) + .25 * sq(b - d),
                             13 / 12. * sq(c - 2 * d + e) + .25 * sq(3 * c - 4 * d + e)};
              double g[3] = {.1, .6, .3}, t = 0, w = 0;
              for (int i = 0; i < 3; ++i) g[i] /= sq(s[i] + 1e-6), w += g[i], t += g[i] * q[i];
              return t / w;
            };
            const size_t i = (size_t(z) * Y + y) * X + x;
            want[i] = std::max(a[i], 0.) * rec(v[0], v[1], v[2], v[3], v[4]) +
                      std::min(a[i], 0.) * rec(v[5], v[4], v[3], v[2], v[1]);
          }
      auto s = agree((k == 0 ? o0 : k == 1 ? o1 : o2).now(), want, 1e-4, 1e-4);
      if (!s.empty()) return "axis " + std::to_string(k) + " " + s;
    }
    return "";
  };
  return j;
});

// --- 27-point smoother: out = u + w (f - A u) / c0, A u = c0 u + c1 (faces) + c2 (edges) + c3 (corners); zero outside.
// The squared norm of the residual comes with it.
struct S27Cfg {
  int BY = 4, BX = 128, M = 1;  // M planes a program
};
auto stencil27 =
    kernel("user_stencil27", [](const S27Cfg& c, Tensor<const float, 3> U, Tensor<const float, 3> F,
                                Tensor<const float, 3> C0, Tensor<const float, 3> C1, Tensor<const float, 3> C2,
                                Tensor<const float, 3> C3, Tensor<float, 3> O, Ptr<float> norm, F32 omega) {
      auto x = program_id(0) * c.BX, y = program_id(1) * c.BY, z0 = program_id(2) * c.M;
      auto in = ((y + arange(0, c.BY)).col() < U.dim(1)) & ((x + arange(0, c.BX)).row() < U.dim(2));
      auto at = [&](const Tensor<const float, 3>& T, const Tile& z, float pad) {
        return T.load({z, y, x}, {c.BY, c.BX}, {.pad = pad});
      };
      auto finish = [&](const Tile& z, const Tile(&s)[4]) {
        auto c0 = at(C0, z, 1);
        auto r = at(F, z, 0) - (c0 * s[0] + at(C1, z, 0) * s[1] + at(C2, z, 0) * s[2] + at(C3, z, 0) * s[3]);
        O.store({z, y, x}, s[0] + omega * r / c0);
        return where(in, r * r, 0.f);
      };
      if (c.M > 1) {  // planes pass by: the sums of each serve three times
        auto plane = [&](const Tile& z, Tile& m, Tile& e, Tile& k) {
          auto u = [&](int dy, int dx) { return U.load({z, y + dy, x + dx}, {c.BY, c.BX}); };
          m = u(0, 0), e = u(0, -1) + u(0, 1) + u(-1, 0) + u(1, 0), k = u(-1, -1) + u(-1, 1) + u(1, -1) + u(1, 1);
        };
        Tile m[3], e[3], k[3], total = zeros({c.BY, c.BX}, f32);
        plane(z0 - 1, m[0], e[0], k[0]);
        plane(z0, m[1], e[1], k[1]);
        for (auto z : range(z0, min(z0 + c.M, U.dim(0)))) {
          plane(z + 1, m[2], e[2], k[2]);
          const Tile s[4] = {m[1], e[1] + m[0] + m[2], k[1] + e[0] + e[2], k[0] + k[2]};
          total += finish(z, s);
          for (int i = 0; i < 2; ++i) m[i] = m[i + 1], e[i] = e[i + 1], k[i] = k[i + 1];
        }
        atomic_add(norm, sum(total));
        return;
      }
      auto z = z0;
      Tile s[4];  // sums by number of steps away
      for (auto& t : s) t = zeros({c.BY, c.BX}, f32);
      for (int dz = -1; dz <= 1; ++dz)
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx)
            s[std::abs(dx) + std::abs(dy) + std::abs(dz)] += U.load({z + dz, y + dy, x + dx}, {c.BY, c.BX});
      atomic_add(norm, sum(finish(z, s)));
    }).grid([](const S27Cfg& c, const auto& u, const auto&...) {
      return Grid{cdiv(u.shape[2], c.BX), cdiv(u.shape[1], c.BY), cdiv(u.shape[0], c.M)};
    });
Register r2("stencil27_cells", [](Env& e) {
  const int X = e.big ? 256 : 37, Y = e.big ? 256 : 11, Z = e.big ? 256 : 5;
  const size_t n = size_t(X) * Y * Z;
  auto u = random<float>(e, n), f = random<float>(e, n), c0 = random<float>(e, n, 20, 26),
       c1 = random<float>(e, n, -1, 0), c2 = random<float>(e, n, -1, 0), c3 = random<float>(e, n, -1, 0);
  auto o = constant<float>(e, n, NAN), norm = constant<float>(e, 1, 0);
  Job j;
  j.mbytes = 28e-6 * double(n);
  j.add(stencil27, S27Cfg{e.field("BY", 4), e.field("BX", e.big ? 128 : 32), e.field("M", 1)}, u.view(Z, Y, X),
        f.view(Z, Y, X), c0.view(Z, Y, X), c1.view(Z, Y, X), c2.view(Z, Y, X), c3.view(Z, Y, X), o.view(Z, Y, X),
        norm.p, .8f);
  j.check = [=]() -> std::string {
    std::vector<double> want(n), total(1, 0.);
    for (int z = 0; z < Z; ++z)
      for (int y = 0; y < Y; ++y)
        for (int x = 0; x < X; ++x) {
          double s[4] = {};
          for (int dz = -1; dz <= 1; ++dz)
            for (int dy = -1; dy <= 1; ++dy)
              for (int dx = -1; dx <= 1; ++dx) {
                const int a = x + dx, b = y + dy, d = z + dz;
                if (a >= 0 && a < X && b >= 0 && b < Y && d >= 0 && d < Z)
                  s[std::abs(dx) + std::abs(dy) + std::abs(dz)] += u[(size_t(d) * Y + b) * X + a];
              }
          const size_t i = (size_t(z) * Y + y) * X + x;
          const double r = f[i] - (c0[i] * s[0] + c1[i] * s[1] + c2[i] * s[2] + c3[i] * s[3]);
          want[i] = s[0] + double(.8f) * r / c0[i], total[0] += r * r;
        }
    auto s = agree(o.now(), want, 1e-5, 1e-5);
    return s.empty() ? agree(norm.now(), total, 0, 1e-4) : "norm: " + s;
  };
  return j;
});

// --- Thomas: a x[k-1] + (b + shift of the system) x[k] + c x[k+1] = d, systems side by side
struct TriCfg {
  int B = 64, stages = 0, apart = 0;  // apart: what the way back reads is not what it writes
};
auto tridiag =
    kernel("user_tridiag", [](const TriCfg& c, Tensor<const double, 2> A, Tensor<const double, 2> Bd,
                              Tensor<const double, 2> C, Tensor<const double, 2> D, Tensor<const double, 1> shift,
                              Tensor<double, 2> G, Tensor<double, 2> H, Tensor<double, 2> X) {
      // [n, systems]; G keeps c'
      auto s = program_id(0) * c.B;
      auto n = A.dim(0);
      auto sigma = shift.load({s}, {c.B});
      Tile g = zeros({c.B}, f64), h = zeros({c.B}, f64);
      for (auto k : range(0, n, 1, {.stages = c.stages})) {
        auto a = A.load({k, s}, {c.B});
        auto m = 1.0 / (Bd.load({k, s}, {c.B}, {.pad = 1}) + sigma - a * g);
        g = C.load({k, s}, {c.B}) * m;
        h = (D.load({k, s}, {c.B}) - a * h) * m;
        G.store({k, s}, g);
        (c.apart ? H : X).store({k, s}, h);
      }
      Tile x = h;
      if (c.apart) X.store({n - 1, s}, h);
      for (auto k : range(n - 2, -1, -1, {.stages = c.stages})) {
        x = (c.apart ? H : X).load({k, s}, {c.B}) - G.load({k, s}, {c.B}) * x;
        X.store({k, s}, x);
      }
    }).grid([](const TriCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[1], c.B)}; });
Register r3("tridiag", [](Env& e) {
  const int N = e.big ? 512 : 33, S = e.big ? 16384 : 45;
  const size_t n = size_t(N) * S;
  auto a = random<double>(e, n), b = random<double>(e, n, 2.5, 4), c = random<double>(e, n), d = random<double>(e, n),
       sh = random<double>(e, S, 0, 1);
  auto g = constant<double>(e, n, NAN), x = constant<double>(e, n, NAN), h = constant<double>(e, n, NAN);
  Job j;
  j.mbytes = 72e-6 * double(n);
  j.add(tridiag, TriCfg{e.field("B", e.big ? 64 : 32), e.field("stages", 0), e.field("apart", 0)}, a.view(N, S),
        b.view(N, S), c.view(N, S), d.view(N, S), sh.view(S), g.view(N, S), h.view(N, S), x.view(N, S));
  j.check = [=] {
    std::vector<double> want(n);
    for (int s = 0; s < S; ++s) {
      std::vector<double> cg(N), h(N);
      double pg = 0, ph = 0;
      for (int k = 0; k < N; ++k) {
        const size_t i = size_t(k) * S + s;
        const double m = b[i] + sh[s] - a[i] * pg;
        cg[k] = pg = c[i] / m, h[k] = ph = (d[i] - a[i] * ph) / m;
      }
      double v = 0;
      for (int k = N - 1; k >= 0; --k) want[size_t(k) * S + s] = v = h[k] - (k == N - 1 ? 0 : cg[k] * v);
    }
    return agree(x.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- marching cubes, first pass: case of each cell, triangles before it in its block, triangles of the block. Cells
// with a NaN at a corner are empty.
struct McCfg {
  int B = 1024;
};
auto mc_count =
    kernel("user_mc_count", [](const McCfg& c, Ptr<const float> S, Ptr<const uint8_t> table, Ptr<uint8_t> which,
                               Ptr<int> before, Ptr<int> totals, I32 X, I32 Y, I32 Z, F32 iso) {
      // X x Y x Z cells, S has one more in each direction
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto inside = i < X * Y * Z;
      auto x = i % X, y = i / X % Y, z = i / (X * Y);
      auto PX = X + 1, PY = Y + 1;
      Tile index = zeros({c.B}, i32), bad = zeros({c.B}, i1);
      const int corner[8][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
      for (int k = 0; k < 8; ++k) {
        auto v = load(S + (((z + corner[k][2]) * PY + y + corner[k][1]) * PX + x + corner[k][0]), {.mask = inside});
        index = index | where(v > iso, 1 << k, 0);
        bad = bad | isnan(v);
      }
      index = where(bad, 0, index);
      auto n = where(inside, cast(load(table + index), i32), 0);
      store(which + i, cast(index, u8), {.mask = inside});
      store(before + i, cumsum(n, axis(0), {.exclusive = true}), {.mask = inside});
      store(totals + program_id(0), sum(n));
    }).grid([](const McCfg& c, auto, auto, auto, auto, auto, int X, int Y, int Z, float) {
      return Grid{cdiv(X * Y * Z, c.B)};
    });
int mc_triangles(int c) { return c == 0 || c == 255 ? 0 : 1 + (c * 37 + __builtin_popcount(c) * 11) % 5; }
Register r4("mc_count", [](Env& e) {
  const int X = e.big ? 320 : 17, Y = e.big ? 320 : 9, Z = e.big ? 256 : 7, n = X * Y * Z;
  const int B = e.field("B", e.big ? 1024 : 128);
  auto s = drawn<float>(e, size_t(X + 1) * (Y + 1) * (Z + 1),
                        [&] { return e.uniform() < .01 ? NAN : float(2 * e.uniform() - 1); });
  auto table = filled<uint8_t>(e, 256, [](size_t i) { return uint8_t(mc_triangles(int(i))); });
  auto which = constant<uint8_t>(e, n, 77);
  auto before = constant<int>(e, n, -1), totals = constant<int>(e, (n + B - 1) / B, -1);
  Job j;
  j.mbytes = 9e-6 * n;
  j.add(mc_count, McCfg{B}, s.p, table.p, which.p, before.p, totals.p, X, Y, Z, .1f);
  j.check = [=]() -> std::string {
    const auto w = which.now();
    const auto b = before.now(), t = totals.now();
    int sum = 0;
    for (int i = 0; i < n; ++i) {
      const int x = i % X, y = i / X % Y, z = i / X / Y;
      int index = 0;
      bool bad = false;
      for (int k = 0; k < 8; ++k) {
        const int dx = (k & 3) == 1 || (k & 3) == 2, dy = (k & 3) >= 2, dz = k >= 4;
        const float v = s.at((size_t(z + dz) * (Y + 1) + y + dy) * (X + 1) + x + dx);
        bad |= std::isnan(v), index |= (v > .1f) << k;
      }
      if (bad) index = 0;
      if (i % B == 0) sum = 0;
      if (w[i] != index) return "case of " + std::to_string(i);
      if (b[i] != sum) return "before " + std::to_string(i);
      sum += mc_triangles(index);
      if ((i % B == B - 1 || i == n - 1) && t[i / B] != sum) return "total " + std::to_string(i / B);
    }
    return "";
  };
  return j;
});
}  // namespace beside_cuda_axes
}  // namespace users
