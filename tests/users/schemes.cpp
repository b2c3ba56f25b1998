// schemes.cpp - what numerical schemes ask for: waves of light in a box, limited fluxes, levels of a grid, prices of
// options backwards and forwards, singular values of many small matrices, charges in a periodic box.
#include <array>

#include "tests/users/use.h"
namespace users {
namespace schemes {

// --- FDTD: the electric field of a box from the curl of the magnetic one, three components at once, in place
struct FdtdCfg {
  int BY = 4, BX = 128, warps = 4;
};
auto fdtd = kernel("user_fdtd", [](const FdtdCfg& c, Ptr<float> ex, Ptr<float> ey, Ptr<float> ez, Ptr<const float> hx,
                                   Ptr<const float> hy, Ptr<const float> hz, Ptr<const float> ca, Ptr<const float> cb,
                                   I32 D, I32 H, I32 W) {
  // all [D, H, W]; ca, cb: what material makes of the field and of the curl
  num_warps(c.warps);
  auto z = program_id(2), y = (program_id(1) * c.BY + arange(0, c.BY)).col(),
       x = (program_id(0) * c.BX + arange(0, c.BX)).row();
  auto plane = H * W;
  auto at = z * plane + y * W + x;
  auto inside = (z >= 1) & (y >= 1) & (x >= 1) & (z < D) & (y < H) & (x < W);
  auto read = [&](const Tile& p) { return load(p + at, {.mask = inside, .other = 0.f}); };
  auto back = [&](const Tile& p, const Tile& by) { return load(p + at - by, {.mask = inside, .other = 0.f}); };
  auto a = read(ca), b = read(cb), x0 = read(hx), y0 = read(hy), z0 = read(hz);
  Tile one = full({}, 1, i32);
  store(ex + at, a * read(ex) + b * ((z0 - back(hz, W)) - (y0 - back(hy, plane))), {.mask = inside});
  store(ey + at, a * read(ey) + b * ((x0 - back(hx, plane)) - (z0 - back(hz, one))), {.mask = inside});
  store(ez + at, a * read(ez) + b * ((y0 - back(hy, one)) - (x0 - back(hx, W))), {.mask = inside});
}).grid([](const FdtdCfg& c, float*, float*, float*, auto, auto, auto, auto, auto, int D, int H, int W) {
  return Grid{cdiv(W, c.BX), cdiv(H, c.BY), D};
});
Register r1("fdtd", [](Env& e) {
  FdtdCfg c;
  if (!e.big) c = {4, 16, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int D = e.big ? 256 : 5, H = e.big ? 256 : 9, W = e.big ? 256 : 19;
  const size_t n = size_t(D) * H * W;
  std::array<Array<float>, 3> E, M;
  for (auto& f : E) f = random<float>(e, n);
  for (auto& f : M) f = random<float>(e, n);
  auto ca = random<float>(e, n, .8, 1), cb = random<float>(e, n, .2, .5);
  Job j;
  j.mbytes = 4e-6 * double(n) * 11;
  j.add(fdtd, c, E[0].p, E[1].p, E[2].p, M[0].p, M[1].p, M[2].p, ca.p, cb.p, D, H, W);
  j.check = [=] {
    const int step[3] = {1, W, W * H};  // along x, y, z
    for (int k = 0; k < 3; ++k) {
      std::vector<double> want;
      const int u = (k + 1) % 3, v = (k + 2) % 3;
      for (int z = 0; z < D; ++z)
        for (int y = 0; y < H; ++y)
          for (int x = 0; x < W; ++x) {
            const size_t i = (size_t(z) * H + y) * W + x;
            want.push_back(x && y && z ? ca[i] * E[k][i] + cb[i] * ((M[v][i] - M[v][i - step[u]]) -
                                                                    (M[u][i] - M[u][i - step[v]]))
                                       : E[k][i]);
          }
      if (auto wrong = agree(E[k].now(), want, 1e-5, 1e-5); !wrong.empty()) return wrong;
    }
    return std::string();
  };
  return j;
});

// --- WENO of fifth order: values at the cells' faces from five neighbours, rows periodic, then the divergence of an
// upwind flux (Burgers)
struct WenoCfg {
  int B = 1024, warps = 4;
};
Tile weno5(const Tile& a, const Tile& b, const Tile& c, const Tile& d, const Tile& e) {
  auto square = [](Tile x) { return x * x; };
  auto s0 = 13.f / 12 * square(a - 2.f * b + c) + .25f * square(a - 4.f * b + 3.f * c);
  auto s1 = 13.f / 12 * square(b - 2.f * c + d) + .25f * square(b - d);
  auto s2 = 13.f / 12 * square(c - 2.f * d + e) + .25f * square(3.f * c - 4.f * d + e);
  auto w0 = .1f / square(s0 + 1e-6f), w1 = .6f / square(s1 + 1e-6f), w2 = .3f / square(s2 + 1e-6f);
  auto f0 = (2.f * a - 7.f * b + 11.f * c) / 6.f, f1 = (-b + 5.f * c + 2.f * d) / 6.f,
       f2 = (2.f * c + 5.f * d - e) / 6.f;
  return (w0 * f0 + w1 * f1 + w2 * f2) / (w0 + w1 + w2);
}
auto weno = kernel("user_weno", [](const WenoCfg& c, Tensor<const float, 2> U, Tensor<float, 2> out, F32 dt_dx) {
  num_warps(c.warps);
  auto row = program_id(1), n = U.dim(1);
  auto i = program_id(0) * c.B + arange(0, c.B);
  auto at = [&](int by) { return load(U.ptr() + cast(row, i64) * U.stride(0) + floor_mod(i + by, n)); };
  std::array<Tile, 6> u;
  for (int k = 0; k < 6; ++k) u[k] = at(k - 3);
  auto face = [](const Tile& a, const Tile& b, const Tile& c, const Tile& d, const Tile& e) {
    auto v = max(weno5(a, b, c, d, e), 0.f);
    return .5f * v * v;
  };
  auto right = face(u[1], u[2], u[3], u[4], u[5]), left = face(u[0], u[1], u[2], u[3], u[4]);
  out.store({row, program_id(0) * c.B}, u[3] - dt_dx * (right - left));
}).grid([](const WenoCfg& c, const auto& u, const auto&, float) { return Grid{cdiv(u.shape[1], c.B), u.shape[0]}; });
Register r2("weno", [](Env& e) {
  WenoCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 4096 : 3, N = e.big ? 8192 : 101;
  auto u = random<float>(e, size_t(R) * N, 0, 1);
  auto out = constant<float>(e, size_t(R) * N, NAN);
  Job j;
  j.mbytes = 8e-6 * R * N;
  j.add(weno, c, u.view(R, N), out.view(R, N), .2f);
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < R; ++r)
      for (int x = 0; x < N; ++x) {
        double v[6], f[2];
        for (int k = 0; k < 6; ++k) v[k] = u[size_t(r) * N + (x + k - 3 + N) % N];
        for (int s = 0; s < 2; ++s) {
          const double a = v[s], b = v[s + 1], cc = v[s + 2], d = v[s + 3], ee = v[s + 4];
          auto sq = [](double t) { return t * t; };
          const double s0 = 13. / 12 * sq(a - 2 * b + cc) + .25 * sq(a - 4 * b + 3 * cc),
                       s1 = 13. / 12 * sq(b - 2 * cc + d) + .25 * sq(b - d),
                       s2 = 13. / 12 * sq(cc - 2 * d + ee) + .25 * sq(3 * cc - 4 * d + ee);
          const double w0 = .1 / sq(s0 + 1e-6), w1 = .6 / sq(s1 + 1e-6), w2 = .3 / sq(s2 + 1e-6);
          const double face = (w0 * (2 * a - 7 * b + 11 * cc) + w1 * (-b + 5 * cc + 2 * d) + w2 * (2 * cc + 5 * d - ee)) /
                              6 / (w0 + w1 + w2);
          f[s] = .5 * sq(std::max(face, 0.));
        }
        want.push_back(v[3] - .2f * (f[1] - f[0]));
      }
    return agree(out.now(), want, 2e-4, 1e-3);
  };
  return j;
});

// --- levels of a grid: the residual of Poisson's equation restricted by full weighting, and a correction interpolated
// and added
struct LevelsCfg {
  int BY = 8, BX = 64, warps = 4;
};
auto restricted = kernel("user_restricted", [](const LevelsCfg& c, Tensor<const float, 2> u, Tensor<const float, 2> f,
                                               Tensor<float, 2> coarse, F32 inverse) {
  // u, f [2 n + 1, 2 n + 1] with a border of zeros around, coarse [n, n]; inverse 1 / h^2
  num_warps(c.warps);
  auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
  auto fine = [&](const Tensor<const float, 2>& a, int dy, int dx) {  // every second element, from (2 y + 1 + dy, ..)
    auto r = (y + arange(0, c.BY)) * 2 + 1 + dy, q = (x + arange(0, c.BX)) * 2 + 1 + dx;
    auto ok = ((r >= 0) & (r < a.dim(0))).col() & ((q >= 0) & (q < a.dim(1))).row();
    return load(a.ptr() + (cast(r, i64) * a.stride(0)).col() + q.row(), {.mask = ok});
  };
  Tile total = zeros({c.BY, c.BX}, f32);
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      auto r = fine(f, dy, dx) - (4.f * fine(u, dy, dx) - fine(u, dy - 1, dx) - fine(u, dy + 1, dx) -
                                  fine(u, dy, dx - 1) - fine(u, dy, dx + 1)) * inverse;
      total += r * (.25f / float((1 + std::abs(dy)) * (1 + std::abs(dx))));
    }
  coarse.store({y, x}, total);
}).grid([](const LevelsCfg& c, const auto&, const auto&, const auto& r, float) {
  return Grid{cdiv(r.shape[1], c.BX), cdiv(r.shape[0], c.BY)};
});
auto prolonged = kernel("user_prolonged", [](const LevelsCfg& c, Tensor<const float, 2> coarse, Tensor<float, 2> u) {
  num_warps(c.warps);
  auto y = program_id(1) * c.BY + arange(0, c.BY), x = program_id(0) * c.BX + arange(0, c.BX);
  // odd rows lie on the coarse grid, even ones between two of its rows
  auto y0 = floor_div(y - 1, 2), x0 = floor_div(x - 1, 2), y1 = floor_div(y, 2), x1 = floor_div(x, 2);
  auto at = [&](const Tile& r, const Tile& q) {
    auto ok = ((r >= 0) & (r < coarse.dim(0))).col() & ((q >= 0) & (q < coarse.dim(1))).row();
    return load(coarse.ptr() + (cast(r, i64) * coarse.stride(0)).col() + q.row(), {.mask = ok});
  };
  auto p = u.ptr() + (cast(y, i64) * u.stride(0)).col() + x.row();
  auto ok = (y < u.dim(0)).col() & (x < u.dim(1)).row();
  auto more = .25f * (at(y0, x0) + at(y0, x1) + at(y1, x0) + at(y1, x1));
  store(p, load(p, {.mask = ok}) + more, {.mask = ok});
}).grid([](const LevelsCfg& c, const auto&, const auto& u) {
  return Grid{cdiv(u.shape[1], c.BX), cdiv(u.shape[0], c.BY)};
});
Register r3("grid_levels", [](Env& e) {
  LevelsCfg c;
  if (!e.big) c = {4, 16, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 2047 : 13, N = 2 * n + 1;
  auto u = random<float>(e, size_t(N) * N), f = random<float>(e, size_t(N) * N);
  auto r = constant<float>(e, size_t(n) * n, NAN);
  Job j;
  j.mbytes = 4e-6 * (2. * N * N + double(n) * n);
  j.add(restricted, c, u.view(N, N), f.view(N, N), r.view(n, n), 2.f);
  j.add(prolonged, c, r.view(n, n), u.view(N, N));
  j.check = [=] {
    auto old = [&](int y, int x) { return y < 0 || x < 0 || y >= N || x >= N ? 0. : u[size_t(y) * N + x]; };
    std::vector<double> coarse, fine;
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        double total = 0;
        for (int d = 0; d < 9; ++d) {
          const int dy = d / 3 - 1, dx = d % 3 - 1, Y = 2 * y + 1 + dy, X = 2 * x + 1 + dx;
          const double res = f[size_t(Y) * N + X] - (4 * old(Y, X) - old(Y - 1, X) - old(Y + 1, X) - old(Y, X - 1) -
                                                     old(Y, X + 1)) * 2;
          total += res * .25 / ((1 + std::abs(dy)) * (1 + std::abs(dx)));
        }
        coarse.push_back(total);
      }
    auto at = [&](int y, int x) { return y < 0 || x < 0 || y >= n || x >= n ? 0. : coarse[size_t(y) * n + x]; };
    for (int y = 0; y < N; ++y)
      for (int x = 0; x < N; ++x) {
        const int y0 = (y + 1) / 2 - 1, x0 = (x + 1) / 2 - 1, y1 = y / 2, x1 = x / 2;
        fine.push_back(old(y, x) + .25 * (at(y0, x0) + at(y0, x1) + at(y1, x0) + at(y1, x1)));
      }
    const auto wrong = agree(r.now(), coarse, 1e-4, 1e-4);
    return wrong.empty() ? agree(u.now(), fine, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- implied volatility: Newton's steps on Black and Scholes for every quote until none moves
struct VolatilityCfg {
  int B = 256, warps = 4;
};
auto volatility = kernel("user_volatility", [](const VolatilityCfg& c, Ptr<const float> price, Ptr<const float> strike,
                                               Ptr<const float> years, Ptr<float> out, F32 spot, F32 rate, I32 n) {
  num_warps(c.warps);
  auto i = program_id(0) * c.B + arange(0, c.B);
  auto mask = i < n;
  auto quote = load(price + i, {.mask = mask}), k = load(strike + i, {.mask = mask, .other = 1.f}),
       t = load(years + i, {.mask = mask, .other = 1.f});
  auto root = sqrt(t), discounted = k * exp(-rate * t), moneyness = log(spot / k);
  auto cdf = [](Tile x) { return .5f * erfc(x * -.70710678f); };
  Tile sigma = full({c.B}, .4f, f32), moving = mask, rounds = zeros({}, i32);
  while_([&] { return any(moving) & (rounds < 40); }, [&] {
    auto d1 = (moneyness + (rate + .5f * sigma * sigma) * t) / (sigma * root), d2 = d1 - sigma * root;
    auto off = spot * cdf(d1) - discounted * cdf(d2) - quote;
    auto vega = max(spot * root * exp(-.5f * d1 * d1) * .39894228f, 1e-6f);
    auto next = clamp(sigma - off / vega, .01f, 4.f);
    moving = moving & (abs(next - sigma) > 1e-5f);
    sigma = where(mask, next, sigma);
    rounds += 1;
  });
  store(out + i, sigma, {.mask = mask});
}).grid([](const VolatilityCfg& c, auto, auto, auto, auto, float, float, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("volatility", [](Env& e) {
  VolatilityCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 22 : 203;
  const double spot = 100, rate = .03;
  auto strike = random<float>(e, N, 80, 125), years = random<float>(e, N, .5, 2), truth = random<float>(e, N, .15, .8);
  auto value = [=](double k, double t, double s) {
    auto cdf = [](double x) { return .5 * std::erfc(-x / std::sqrt(2.)); };
    const double d1 = (std::log(spot / k) + (rate + .5 * s * s) * t) / (s * std::sqrt(t));
    return spot * cdf(d1) - k * std::exp(-rate * t) * cdf(d1 - s * std::sqrt(t));
  };
  size_t next = 0;
  auto price = drawn<float>(e, N, [&] {
    const size_t i = next++;
    return float(value(strike[i], years[i], truth[i]));
  });
  auto out = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 16e-6 * N;
  j.add(volatility, c, price.p, strike.p, years.p, out.p, float(spot), float(rate), N);
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < N; ++i) want.push_back(truth[i]);
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- singular values of many small matrices: one-sided Jacobi rotations of pairs of columns, sweeps until all are
// orthogonal. A program holds BM matrices
struct SvdCfg {
  int BM = 128, n = 8, sweeps = 6, warps = 4;
};
auto svd = kernel("user_svd", [](const SvdCfg& c, Tensor<const float, 3> A, Tensor<float, 2> values) {
  num_warps(c.warps);  // A [M, n, n], values [M, n] in falling order
  auto m = program_id(0) * c.BM;
  auto a = A.load({m, 0, 0}, {c.BM, c.n, c.n});
  std::vector<Tile> columns;
  for (int i = 0; i < c.n; ++i) columns.push_back(squeeze(extract(a, {0, 0, i}, {c.BM, c.n, 1}), 2));
  for (auto sweep : range(0, c.sweeps)) {
    (void)sweep;
    for (int p = 0; p < c.n; ++p)
      for (int q = p + 1; q < c.n; ++q) {
        auto x = columns[p], y = columns[q];
        auto alpha = sum(x * x, axis(1)), beta = sum(y * y, axis(1)), gamma = sum(x * y, axis(1));
        auto small = abs(gamma) <= 1e-9f * sqrt(alpha * beta) + 1e-30f;
        auto zeta = (beta - alpha) / (2.f * where(small, 1.f, gamma));
        auto t = where(small, 0.f, copysign(1.f / (abs(zeta) + sqrt(1.f + zeta * zeta)), zeta));
        auto cosine = rsqrt(1.f + t * t), sine = cosine * t;
        columns[p] = cosine * x - sine * y;
        columns[q] = sine * x + cosine * y;
      }
  }
  Tile lengths = sqrt(sum(columns[0] * columns[0], axis(1)));
  for (int i = 1; i < c.n; ++i) lengths = cat(lengths, sqrt(sum(columns[i] * columns[i], axis(1))), 1);
  values.store({m, 0}, sort(lengths, axis(1), {.descending = true}));
}).grid([](const SvdCfg& c, const auto& a, const auto&) { return Grid{cdiv(a.shape[0], c.BM)}; });
Register r5("svd", [](Env& e) {
  SvdCfg c;
  if (!e.big) c = {8, 4, 6, 1};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 1 << 18 : 21, n = c.n;
  auto a = random<float>(e, size_t(M) * n * n);
  auto values = constant<float>(e, size_t(M) * n, NAN);
  Job j;
  j.mbytes = 4e-6 * M * n * (n + 1);
  j.add(svd, c, a.view(M, n, n), values.view(M, n));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m) {
      std::vector<std::vector<double>> v(n, std::vector<double>(n));
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k) v[k][i] = a[(size_t(m) * n + i) * n + k];
      for (int sweep = 0; sweep < 30; ++sweep)
        for (int p = 0; p < n; ++p)
          for (int q = p + 1; q < n; ++q) {
            double x = 0, y = 0, g = 0;
            for (int i = 0; i < n; ++i) x += v[p][i] * v[p][i], y += v[q][i] * v[q][i], g += v[p][i] * v[q][i];
            if (g == 0) continue;
            const double zeta = (y - x) / (2 * g);
            const double t = std::copysign(1 / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), zeta);
            const double cs = 1 / std::sqrt(1 + t * t), sn = cs * t;
            for (int i = 0; i < n; ++i) {
              const double s = v[p][i], u = v[q][i];
              v[p][i] = cs * s - sn * u, v[q][i] = sn * s + cs * u;
            }
          }
      std::vector<double> lengths;
      for (auto& column : v) {
        double s = 0;
        for (double x : column) s += x * x;
        lengths.push_back(std::sqrt(s));
      }
      std::sort(lengths.rbegin(), lengths.rend());
      want.insert(want.end(), lengths.begin(), lengths.end());
    }
    return agree(values.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace schemes
}  // namespace users
