// fields.cpp - fields and systems of equations: waves of 25 points, lattice Boltzmann in three dimensions, particles on
// a grid, sliced sparse rows, tridiagonal systems by cyclic reduction, small least squares.
#include "tests/users/use.h"
namespace users {
namespace fields {

// --- waves: eighth order in space, second in time; planes march along z in a queue of nine
struct WaveCfg {
  int BY = 8, BX = 128, BZ = 64, warps = 4;
};
constexpr double kWave[5] = {-205. / 72, 8. / 5, -1. / 5, 8. / 315, -1. / 560};
auto wave = kernel("user_wave25", [](const WaveCfg& c, Tensor<const float, 3> U, Tensor<const float, 3> before,
                                     Tensor<float, 3> next, F32 speed) {
              num_warps(c.warps);
              auto x = program_id(0) * c.BX, y = program_id(1) * c.BY, z0 = program_id(2) * c.BZ;
              auto plane = [&](auto& X, const Tile& z, int dy = 0, int dx = 0) {
                return squeeze(X.load({z, y + dy, x + dx}, {1, c.BY, c.BX}), 0);
              };
              Tile q[9];
              for (int i = 0; i < 8; ++i) q[i] = plane(U, z0 + (i - 4));
              for (auto z : range(z0, min(z0 + c.BZ, U.dim(0)))) {
                q[8] = plane(U, z + 4);
                auto sum = q[4] * float(3 * kWave[0]);
                for (int i = 1; i <= 4; ++i) {
                  auto ring =
                      q[4 - i] + q[4 + i] + plane(U, z, -i) + plane(U, z, i) + plane(U, z, 0, -i) + plane(U, z, 0, i);
                  sum += ring * float(kWave[i]);
                }
                auto u = 2.f * q[4] - plane(before, z) + speed * sum;
                next.store({z, y, x}, expand_dims(u, 0));
                for (int i = 0; i < 8; ++i) q[i] = q[i + 1];
              }
            }).grid([](const WaveCfg& c, const auto& u, const auto&...) {
  return Grid{cdiv(u.shape[2], c.BX), cdiv(u.shape[1], c.BY), cdiv(u.shape[0], c.BZ)};
});
Register r1("wave25", [](Env& e) {
  WaveCfg c;
  if (!e.big) c = {4, 16, 5, 4};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.BZ = e.field("BZ", c.BZ),
  c.warps = e.field("warps", c.warps);
  const int Z = e.big ? 512 : 13, Y = e.big ? 512 : 11, X = e.big ? 512 : 37;
  const size_t n = size_t(Z) * Y * X;
  auto u = random<float>(e, n), b = random<float>(e, n), y = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 12e-6 * double(n);
  j.add(wave, c, u.view(Z, Y, X), b.view(Z, Y, X), y.view(Z, Y, X), .1f);
  j.check = [=] {
    std::vector<double> want(n);
    auto at = [&](int z, int yy, int x) {
      return z < 0 || z >= Z || yy < 0 || yy >= Y || x < 0 || x >= X ? 0. : u[(size_t(z) * Y + yy) * X + x];
    };
    for (int z = 0; z < Z; ++z)
      for (int yy = 0; yy < Y; ++yy)
        for (int x = 0; x < X; ++x) {
          double s = 3 * kWave[0] * at(z, yy, x);
          for (int i = 1; i <= 4; ++i)
            s += kWave[i] * (at(z - i, yy, x) + at(z + i, yy, x) + at(z, yy - i, x) + at(z, yy + i, x) +
                             at(z, yy, x - i) + at(z, yy, x + i));
          const size_t k = (size_t(z) * Y + yy) * X + x;
          want[k] = 2 * u[k] - b[k] + .1f * s;
        }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- lattice Boltzmann, 19 velocities, periodic: pull, collide, store; cells are one long row
struct LatticeCfg {
  int N = 256, warps = 4;
};
constexpr int kV[19][3] = {{0, 0, 0},  {1, 0, 0},   {-1, 0, 0},  {0, 1, 0},  {0, -1, 0}, {0, 0, 1},   {0, 0, -1},
                           {1, 1, 0},  {-1, -1, 0}, {1, -1, 0},  {-1, 1, 0}, {1, 0, 1},  {-1, 0, -1}, {1, 0, -1},
                           {-1, 0, 1}, {0, 1, 1},   {0, -1, -1}, {0, 1, -1}, {0, -1, 1}};
constexpr double weight_of(int q) { return q == 0 ? 1. / 3 : q < 7 ? 1. / 18 : 1. / 36; }
auto lattice =
    kernel("user_d3q19", [](const LatticeCfg& c, Ptr<const float> F, Ptr<float> G, I32 X, I32 Y, I32 Z, F32 omega) {
      num_warps(c.warps);
      auto i = program_id(0) * c.N + arange(0, c.N), n = X * Y * Z;
      auto inside = i < n;
      auto x = i % X, y = i / X % Y, z = i / (X * Y);
      auto wrap = [](const Tile& a, int by, const Tile& size) {
        if (by == 0) return a;
        return by > 0 ? where(a + 1 == size, 0, a + 1) : where(a == 0, size - 1, a - 1);
      };
      Tile f[19], rho = zeros({c.N}, f32), ux = rho, uy = rho, uz = rho;
      for (int q = 0; q < 19; ++q) {
        auto from = wrap(x, -kV[q][0], X) + X * (wrap(y, -kV[q][1], Y) + Y * wrap(z, -kV[q][2], Z));
        f[q] = load(F + cast(n, i64) * q + from, {.mask = inside});
        rho += f[q];
        if (kV[q][0]) ux += f[q] * float(kV[q][0]);
        if (kV[q][1]) uy += f[q] * float(kV[q][1]);
        if (kV[q][2]) uz += f[q] * float(kV[q][2]);
      }
      ux /= rho, uy /= rho, uz /= rho;
      auto square = 1.f - 1.5f * (ux * ux + uy * uy + uz * uz);
      for (int q = 0; q < 19; ++q) {
        Tile cu = zeros({c.N}, f32);
        if (kV[q][0]) cu += ux * float(kV[q][0]);
        if (kV[q][1]) cu += uy * float(kV[q][1]);
        if (kV[q][2]) cu += uz * float(kV[q][2]);
        auto rest = rho * float(weight_of(q)) * (square + cu * (3.f + 4.5f * cu));
        store(G + cast(n, i64) * q + i, f[q] + omega * (rest - f[q]), {.mask = inside});
      }
    }).grid([](const LatticeCfg& c, const float*, float*, int X, int Y, int Z, float) {
      return Grid{cdiv(int64_t(X) * Y * Z, c.N)};
    });
Register r2("d3q19", [](Env& e) {
  LatticeCfg c;
  if (!e.big) c = {64, 1};
  c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  const int X = e.big ? 256 : 9, Y = e.big ? 256 : 7, Z = e.big ? 256 : 5, n = X * Y * Z;
  auto f = random<float>(e, size_t(19) * n, .03, .06), g = constant<float>(e, size_t(19) * n, NAN);
  Job j;
  j.mbytes = 8e-6 * 19 * n;
  j.add(lattice, c, f.p, g.p, X, Y, Z, 1.2f);
  j.check = [=] {
    std::vector<double> want(size_t(19) * n);
    for (int i = 0; i < n; ++i) {
      double fi[19], rho = 0, u[3] = {};
      const int at[3] = {i % X, i / X % Y, i / (X * Y)};
      for (int q = 0; q < 19; ++q) {
        const int x = (at[0] - kV[q][0] + X) % X, y = (at[1] - kV[q][1] + Y) % Y, z = (at[2] - kV[q][2] + Z) % Z;
        fi[q] = f[size_t(q) * n + x + X * (y + Y * z)];
        rho += fi[q];
        for (int d = 0; d < 3; ++d) u[d] += kV[q][d] * fi[q];
      }
      for (double& x : u) x /= rho;
      for (int q = 0; q < 19; ++q) {
        const double cu = kV[q][0] * u[0] + kV[q][1] * u[1] + kV[q][2] * u[2];
        const double rest =
            weight_of(q) * rho * (1 + 3 * cu + 4.5 * cu * cu - 1.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]));
        want[size_t(q) * n + i] = fi[q] + 1.2f * (rest - fi[q]);
      }
    }
    return agree(g.now(), want, 1e-6, 1e-5);
  };
  return j;
});

// --- particles in cells: charge goes to the four corners of a cell, the field comes back from them
struct CellCfg {
  int N = 512, warps = 4;
};
auto deposit = kernel("user_deposit", [](const CellCfg& c, Tensor<const float, 2> P, Ptr<float> grid, I32 W, I32 H) {
                 // P [2, n]: x, y in cells; grid [H, W], periodic
                 num_warps(c.warps);
                 auto i = program_id(0) * c.N + arange(0, c.N), inside = i < P.dim(1);
                 auto x = P.load({0, program_id(0) * c.N}, {c.N}), y = P.load({1, program_id(0) * c.N}, {c.N});
                 auto fx = floor(x), fy = floor(y);
                 auto ix = cast(fx, i32), iy = cast(fy, i32);
                 auto jx = where(ix + 1 == W, 0, ix + 1), jy = where(iy + 1 == H, 0, iy + 1);
                 auto ax = x - fx, ay = y - fy;
                 auto add = [&](const Tile& cy, const Tile& cx, const Tile& q) {
                   atomic_add(grid + cy * W + cx, q, {.mask = inside, .order = Order::relaxed});
                 };
                 add(iy, ix, (1.f - ay) * (1.f - ax)), add(iy, jx, (1.f - ay) * ax);
                 add(jy, ix, ay * (1.f - ax)), add(jy, jx, ay * ax);
               }).grid([](const CellCfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[1], c.N)}; });
auto push =
    kernel("user_push", [](const CellCfg& c, Tensor<float, 2> P, Tensor<float, 2> V, Ptr<const float> E, I32 W, I32 H,
                           F32 dt) {
      // E [2, H, W], V [2, n]: both directions of the field at the particle, then a step of its velocity
      num_warps(c.warps);
      auto at = program_id(0) * c.N;
      auto x = P.load({0, at}, {c.N}), y = P.load({1, at}, {c.N});
      auto inside = at + arange(0, c.N) < P.dim(1);
      auto fx = floor(x), fy = floor(y);
      auto ix = cast(fx, i32), iy = cast(fy, i32);
      auto jx = where(ix + 1 == W, 0, ix + 1), jy = where(iy + 1 == H, 0, iy + 1);
      auto ax = x - fx, ay = y - fy;
      auto wrapped = [](const Tile& a, const Tile& size) {
        auto s = cast(size, f32);
        auto b = a - s * floor(a / s);
        return where(b >= s, 0.f, b);
      };
      Tile moved[2];
      for (int d = 0; d < 2; ++d) {
        auto field = [&](const Tile& cy, const Tile& cx) { return load(E + (d * H + cy) * W + cx, {.mask = inside}); };
        auto e = (field(iy, ix) * (1.f - ax) + field(iy, jx) * ax) * (1.f - ay) +
                 (field(jy, ix) * (1.f - ax) + field(jy, jx) * ax) * ay;
        auto v = V.load({d, at}, {c.N}) + dt * e;
        V.store({d, at}, v);
        moved[d] = (d ? y : x) + dt * v;
      }
      P.store({0, at}, wrapped(moved[0], W));
      P.store({1, at}, wrapped(moved[1], H));
    }).grid([](const CellCfg& c, const auto& p, const auto&...) { return Grid{cdiv(p.shape[1], c.N)}; });
Register r3("particles", [](Env& e) {
  CellCfg c;
  if (!e.big) c = {64, 1};
  c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  const int W = e.big ? 1024 : 13, H = e.big ? 1024 : 9, n = e.big ? 1 << 24 : 333;
  auto p =
      filled<float>(e, size_t(2) * n, [&](size_t i) { return float(e.uniform() * .999 * (i < size_t(n) ? W : H)); });
  auto v = random<float>(e, size_t(2) * n), field = random<float>(e, size_t(2) * W * H);
  auto grid = constant<float>(e, size_t(W) * H, 0);
  Job j;
  j.add(deposit, c, p.view(2, n), grid.p, W, H);
  j.add(push, c, p.view(2, n), v.view(2, n), field.p, W, H, .25f);
  j.check = [=] {
    std::vector<double> q(size_t(W) * H), P(size_t(2) * n), V(size_t(2) * n);
    for (int i = 0; i < n; ++i) {
      const double x = p[i], y = p[n + i], ax = x - std::floor(x), ay = y - std::floor(y);
      const int ix = int(x), iy = int(y), jx = (ix + 1) % W, jy = (iy + 1) % H;
      q[iy * W + ix] += (1 - ax) * (1 - ay), q[iy * W + jx] += ax * (1 - ay);
      q[jy * W + ix] += (1 - ax) * ay, q[jy * W + jx] += ax * ay;
      for (int d = 0; d < 2; ++d) {
        auto f = [&](int cy, int cx) { return field[(size_t(d) * H + cy) * W + cx]; };
        const double s = d ? H : W;
        const double u = v[size_t(d) * n + i] + .25 * ((f(iy, ix) * (1 - ax) + f(iy, jx) * ax) * (1 - ay) +
                                                       (f(jy, ix) * (1 - ax) + f(jy, jx) * ax) * ay);
        const double to = (d ? y : x) + .25 * u;
        V[size_t(d) * n + i] = u, P[size_t(d) * n + i] = to - s * std::floor(to / s);
      }
    }
    if (std::string wrong = agree(grid.now(), q, 1e-4, 1e-5); !wrong.empty()) return "charge: " + wrong;
    if (std::string wrong = agree(v.now(), V, 1e-4, 1e-5); !wrong.empty()) return "velocity: " + wrong;
    return agree(p.now(), P, 1e-4, 1e-5);
  };
  return j;
});

// --- SELL-C-sigma: rows sorted by length, slices of 32 rows stored column by column
struct SellCfg {
  int C = 32, slices = 4, warps = 4, unroll = 4;
};
auto sell =
    kernel("user_sell", [](const SellCfg& c, Ptr<const int32_t> start, Tensor<const int32_t, 1> row,
                           Ptr<const int32_t> column, Ptr<const float> value, Ptr<const float> x, Ptr<float> y) {
      // start [slices + 1] in elements; row [slices * C]: where each row's sum goes, -1 for none
      num_warps(c.warps);
      auto s = program_id(0) * c.slices + arange(0, c.slices), lane = arange(0, c.C);
      auto some = s < row.dim(0) / c.C;
      auto from = load(start + s, {.mask = some}), to = load(start + s + 1, {.mask = some});
      auto width = max((to - from) / c.C);
      Tile sum = zeros({c.slices, c.C}, f32);
      for (auto j : range(0, width, {.unroll = c.unroll})) {
        auto p = from.col() + j * c.C + lane.row();
        auto here = p < to.col();
        auto k = load(column + p, {.mask = here});
        sum += load(value + p, {.mask = here}) * load(x + k, {.mask = here});
      }
      auto to_row =
          reshape(row.load({program_id(0) * (c.slices * c.C)}, {c.slices * c.C}, {.pad = -1}), {c.slices, c.C});
      store(y + to_row, sum, {.mask = to_row >= 0});
    }).grid([](const SellCfg& c, auto*, const auto& row, const auto&...) {
      return Grid{cdiv(row.shape[0] / c.C, c.slices)};
    });
Register r4("sell", [](Env& e) {
  SellCfg c;
  if (!e.big) c = {32, 2, 1};
  c.unroll = e.field("unroll", c.unroll), c.slices = e.field("slices", c.slices), c.warps = e.field("warps", c.warps);
  const int rows = e.big ? 1 << 20 : 150, columns = rows, slices = cdiv(rows, c.C);
  std::vector<int32_t> start{0}, where;
  for (int s = 0; s < slices; ++s) {
    start.push_back(start.back() + c.C * (e.big ? 8 + s % 48 : s * 3 % 7));
    for (int i = 0; i < c.C; ++i) {
      const int64_t r = int64_t(s) * c.C + i;
      where.push_back(r < rows ? int(r * 7 % rows == 0 && r ? r : r) : -1);
    }
  }
  const size_t n = start.back();
  auto st = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto to = filled<int32_t>(e, where.size(), [&](size_t i) { return where[i]; });
  auto col = integers<int32_t>(e, n, 0, columns);
  auto val = random<float>(e, n), x = random<float>(e, columns), y = constant<float>(e, rows, NAN);
  Job j;
  j.mbytes = 1e-6 * (8. * double(n) + 12. * rows);
  j.add(sell, c, st.p, to.view(slices * c.C), col.p, val.p, x.p, y.p);
  j.check = [=] {
    std::vector<double> want(rows);
    for (int s = 0; s < slices; ++s)
      for (int p = start[s]; p < start[s + 1]; ++p) {
        const int r = where[s * c.C + (p - start[s]) % c.C];
        if (r >= 0) want[r] += val[p] * x[col.h[p]];
      }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- tridiagonal systems, one per program: parallel cyclic reduction, neighbours at distance 1, 2, 4 ..
struct ReductionCfg {
  int N = 512, warps = 4;
};
auto pcr = kernel("user_pcr", [](const ReductionCfg& c, Tensor<const float, 2> low, Tensor<const float, 2> mid,
                                 Tensor<const float, 2> up, Tensor<const float, 2> right, Tensor<float, 2> X) {
             num_warps(c.warps);
             auto s = program_id(0), i = arange(0, c.N), n = mid.dim(1);
             auto a = where(i > 0, low.load({s, 0}, {c.N}), 0.f), b = mid.load({s, 0}, {c.N}, {.pad = 1});
             auto u = where(i < n - 1, up.load({s, 0}, {c.N}), 0.f), d = right.load({s, 0}, {c.N});
             for (int by = 1; by < c.N; by *= 2) {
               auto before = max(i - by, 0), after = min(i + by, c.N - 1);
               auto first = i < by, last = i >= c.N - by;
               auto k1 = where(first, 0.f, a / take(b, before, 0)), k2 = where(last, 0.f, u / take(b, after, 0));
               auto b2 = b - k1 * take(u, before, 0) - k2 * take(a, after, 0);
               auto d2 = d - k1 * take(d, before, 0) - k2 * take(d, after, 0);
               auto a2 = -k1 * take(a, before, 0), u2 = -k2 * take(u, after, 0);
               a = a2, b = b2, u = u2, d = d2;
             }
             X.store({s, 0}, d / b);
           }).grid([](const ReductionCfg&, const auto& low, const auto&...) { return Grid{low.shape[0]}; });
Register r5("pcr", [](Env& e) {
  ReductionCfg c;
  if (!e.big) c = {64, 1};
  c.warps = e.field("warps", c.warps);
  const int S = e.big ? 65536 : 5, n = e.big ? 512 : 51;
  auto a = random<float>(e, size_t(S) * n), b = random<float>(e, size_t(S) * n, 2.5, 4),
       u = random<float>(e, size_t(S) * n), d = random<float>(e, size_t(S) * n),
       x = constant<float>(e, size_t(S) * n, NAN);
  Job j;
  j.mbytes = 20e-6 * S * n;
  j.add(pcr, c, a.view(S, n), b.view(S, n), u.view(S, n), d.view(S, n), x.view(S, n));
  j.check = [=] {
    std::vector<double> want(size_t(S) * n);
    for (int s = 0; s < S; ++s) {
      std::vector<double> cu(n), dd(n);
      for (int i = 0; i < n; ++i) {
        const size_t k = size_t(s) * n + i;
        const double m = b[k] - (i ? a[k] * cu[i - 1] : 0);
        cu[i] = u[k] / m, dd[i] = (d[k] - (i ? a[k] * dd[i - 1] : 0)) / m;
      }
      for (int i = n - 1; i >= 0; --i)
        want[size_t(s) * n + i] = dd[i] - (i < n - 1 ? cu[i] * want[size_t(s) * n + i + 1] : 0);
    }
    return agree(x.now(), want, 2e-5, 2e-5);
  };
  return j;
});

// --- least squares of many small systems by reflections: A [M, N] becomes R, the right side goes along
struct QrCfg {
  int batch = 4, M = 32, N = 16, warps = 4;
};
auto qr = kernel("user_qr", [](const QrCfg& c, Tensor<const float, 3> A, Tensor<const float, 2> B, Tensor<float, 3> R,
                               Tensor<float, 2> Y) {
            num_warps(c.warps);
            auto s = program_id(0) * c.batch;
            auto row = reshape(arange(0, c.M), {1, c.M, 1}), column = reshape(arange(0, c.N), {1, 1, c.N});
            auto a = A.load({s, 0, 0}, {c.batch, c.M, c.N});
            auto b = expand_dims(B.load({s, 0}, {c.batch, c.M}), 2);
            for (auto j : range(0, c.N)) {
              auto x = where(row >= j, sum(where(column == j, a, 0.f), axis(2)), 0.f);
              auto norm = sqrt(sum(x * x, axis(1)));
              auto head = sum(where(row == j, x, 0.f), axis(1));
              auto alpha = where(head > 0.f, -norm, norm);
              auto v = where(row == j, x - alpha, x);
              auto vv = sum(v * v, axis(1));
              auto tau = where(vv > 0.f, 2.f / vv, 0.f);
              a -= v * (sum(v * a, axis(1)) * tau);
              b -= v * (sum(v * b, axis(1)) * tau);
            }
            R.store({s, 0, 0}, where(row <= column, a, 0.f));
            Y.store({s, 0}, squeeze(b, 2));
          }).grid([](const QrCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.batch)}; });
Register r6("qr", [](Env& e) {
  QrCfg c;
  if (!e.big) c = {2, 16, 8, 1};
  c.batch = e.field("batch", c.batch), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 100000 : 5, M = c.M, N = c.N;
  auto a = random<float>(e, size_t(S) * M * N), b = random<float>(e, size_t(S) * M);
  auto r = constant<float>(e, size_t(S) * M * N, NAN), y = constant<float>(e, size_t(S) * M, NAN);
  Job j;
  j.gflop = 1e-9 * S * 4. * M * N * N;
  j.add(qr, c, a.view(S, M, N), b.view(S, M), r.view(S, M, N), y.view(S, M));
  j.check = [=] {  // the solution of R x = y solves the normal equations A^T (A x - b) = 0
    const auto R = r.now(), Y = y.now();
    for (int s = 0; s < S; ++s) {
      std::vector<double> x(N), rest(M);
      for (int i = N - 1; i >= 0; --i) {
        double t = Y[s * M + i];
        for (int k = i + 1; k < N; ++k) t -= R[(s * M + i) * N + k] * x[k];
        x[i] = t / R[(s * M + i) * N + i];
      }
      for (int i = 0; i < M; ++i) {
        rest[i] = -b[s * M + i];
        for (int k = 0; k < N; ++k) rest[i] += a[(s * M + i) * N + k] * x[k];
      }
      for (int k = 0; k < N; ++k) {
        double t = 0;
        for (int i = 0; i < M; ++i) t += a[(s * M + i) * N + k] * rest[i];
        if (!(std::abs(t) < 1e-4)) return "system " + std::to_string(s) + ": residual " + std::to_string(t);
      }
    }
    return std::string();
  };
  return j;
});

}  // namespace fields
}  // namespace users
