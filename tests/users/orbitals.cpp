// orbitals.cpp - quantum chemistry: orbitals of cubic B-splines with gradients and Laplacians (QMCPACK), Coulomb
// matrices from two-electron integrals over s functions.
#include "tests/users/use.h"
namespace users {
namespace orbitals {

// --- every orbital at the place of every electron: 64 coefficients around it, for the value and four derivatives
struct SplineCfg {
  int B = 128, warps = 4;
};
struct Basis {
  std::array<Tile, 4> value, slope, bend;
};
/// Of the four splines around a place, `t` of the way to the next knot.
Basis basis(const Tile& t) {
  auto t2 = t * t, t3 = t2 * t, u = 1.f - t;
  return {{u * u * u / 6.f, t3 * .5f - t2 + 2.f / 3, t3 * -.5f + t2 * .5f + t * .5f + 1.f / 6, t3 / 6.f},
          {t2 * -.5f + t - .5f, t2 * 1.5f - t * 2.f, t2 * -1.5f + t + .5f, t2 * .5f},
          {u, t * 3.f - 2.f, 1.f - t * 3.f, t}};
}
auto spline_orbitals =
    kernel("user_spline_orbitals", [](const SplineCfg& c, Tensor<const float, 4> table, Tensor<const float, 2> places,
                                      Tensor<float, 3> out, F32 knots) {
      // table [g + 3, g + 3, g + 3, orbitals] over the unit cube, places [electrons, 3], out [electrons, 5, orbitals]
      num_warps(c.warps);
      auto electron = program_id(1), n = program_id(0) * c.B;
      std::array<Tile, 3> cell;
      std::array<Basis, 3> around;
      for (int d = 0; d < 3; ++d) {
        auto at = load(places.ptr() + cast(electron, i64) * places.stride(0) + d) * knots;
        auto first = min(max(floor(at), 0.f), knots - 1.f);
        cell[d] = cast(first, i32);
        around[d] = basis(at - first);
      }
      std::array<Tile, 5> total;  // value, gradient, Laplacian
      for (Tile& t : total) t = zeros({c.B}, f32);
      for (auto i : range(4)) {
        auto pick = [&](const std::array<Tile, 4>& w) {
          return where(i == 0, w[0], where(i == 1, w[1], where(i == 2, w[2], w[3])));
        };
        auto x = pick(around[0].value), dx = pick(around[0].slope), ddx = pick(around[0].bend);
        std::array<Tile, 5> plane;
        for (Tile& t : plane) t = zeros({c.B}, f32);
        for (int j = 0; j < 4; ++j) {
          Tile line = zeros({c.B}, f32), slope = zeros({c.B}, f32), bend = zeros({c.B}, f32);
          for (int k = 0; k < 4; ++k) {
            auto v = reshape(table.load({cell[0] + i, cell[1] + j, cell[2] + k, n}, {1, 1, 1, c.B}), {c.B});
            line += around[2].value[k] * v, slope += around[2].slope[k] * v, bend += around[2].bend[k] * v;
          }
          plane[0] += around[1].value[j] * line;
          plane[1] += around[1].slope[j] * line;
          plane[2] += around[1].value[j] * slope;
          plane[3] += around[1].bend[j] * line;
          plane[4] += around[1].value[j] * bend;
        }
        total[0] += x * plane[0];
        total[1] += dx * plane[0];
        total[2] += x * plane[1];
        total[3] += x * plane[2];
        total[4] += ddx * plane[0] + x * (plane[3] + plane[4]);
      }
      for (int d = 0; d < 5; ++d) {
        auto scale = d == 0 ? Tile(full({}, 1.f, f32)) : d == 4 ? Tile(knots * knots) : Tile(knots + 0.f);
        out.store({electron, d, n}, reshape(total[d] * scale, {1, 1, c.B}));
      }
    }).grid([](const SplineCfg& c, const auto& table, const auto& places, const auto&...) {
      return Grid{cdiv(table.shape[3], c.B), places.shape[0]};
    });
Register r1("spline_orbitals", [](Env& e) {
  SplineCfg c;
  if (!e.big) c = {48, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int G = e.big ? 40 : 5, N = e.big ? 512 : 67, E = e.big ? 4096 : 9, S = G + 3;
  auto table = random<float>(e, size_t(S) * S * S * N);
  auto places = random<float>(e, size_t(E) * 3, 0, 1);
  if (!e.big) {
    places.h[0] = 0, places.h[4] = 1;  // both ends
    places = repeated(e, places.n, places.h);
  }
  auto out = constant<float>(e, size_t(E) * 5 * N, NAN);
  Job j;
  j.gflop = 1e-9 * E * double(N) * 500;
  j.add(spline_orbitals, c, table.view(S, S, S, N), places.view(E, 3), out.view(E, 5, N), float(G));
  j.check = [=] {
    std::vector<double> want(size_t(E) * 5 * N);
    for (int el = 0; el < E; ++el) {
      double w[3][3][4];
      int first[3];
      for (int d = 0; d < 3; ++d) {
        const double at = places[el * 3 + d] * G;
        first[d] = std::min(int(at), G - 1);
        for (int k = 0; k < 4; ++k) {  // the cardinal spline at the distance from its middle
          const double x = at - (first[d] + k - 1), a = std::abs(x), sign = x < 0 ? -1 : 1;
          w[0][d][k] = a < 1 ? (4 - 6 * a * a + 3 * a * a * a) / 6 : std::pow(2 - a, 3) / 6;
          w[1][d][k] = sign * (a < 1 ? (-12 * a + 9 * a * a) / 6 : -std::pow(2 - a, 2) / 2) * G;
          w[2][d][k] = (a < 1 ? -2 + 3 * a : 2 - a) * G * G;
        }
      }
      for (int i = 0; i < 64; ++i)
        for (int n = 0; n < N; ++n) {
          const int x = i / 16, y = i / 4 % 4, z = i % 4;
          const double v = table[((size_t(first[0] + x) * S + first[1] + y) * S + first[2] + z) * N + n];
          double* at = &want[size_t(el) * 5 * N + n];
          auto term = [&](int a, int b, int k) { return w[a][0][x] * w[b][1][y] * w[k][2][z] * v; };
          at[0] += term(0, 0, 0), at[N] += term(1, 0, 0), at[2 * N] += term(0, 1, 0), at[3 * N] += term(0, 0, 1);
          at[4 * N] += term(2, 0, 0) + term(0, 2, 0) + term(0, 0, 2);
        }
    }
    return agree(out.now(), want, 2e-3, 1e-4);
  };
  return j;
});

// --- Coulomb matrix: J_p = sum over q of (p | q) D_q, of pairs of s functions with exponent, place and factor; pairs
// of blocks whose bounds (Schwarz) say that nothing comes of them are left out
struct EriCfg {
  int BM = 32, BN = 32, warps = 4;
};
/// Boys' function of order 0.
Tile boys(const Tile& t) {
  auto root = sqrt(max(t, 1e-12));
  return where(t < 1e-8, 1. - t / 3., .88622692545275801 * erf(root) / root);
}
auto coulomb_matrix =
    kernel("user_coulomb_matrix", [](const EriCfg& c, Tensor<const double, 2> pairs, Ptr<const double> density,
                                     Ptr<const double> bound, Ptr<double> J, I32 n, F64 least) {
      // pairs [5, n]: exponent, x, y, z, factor; sorted by falling bound = sqrt((p | p))
      num_warps(c.warps);
      auto p = program_id(0) * c.BM;
      auto of = [&](int field, const auto& at, int size) {
        return squeeze(pairs.load({field, at}, {1, size}, {.pad = 1}), 0);
      };
      std::array<Tile, 5> a;
      for (int f = 0; f < 5; ++f) a[f] = of(f, p, c.BM).col();
      Tile total = zeros({c.BM}, f64);
      auto most = load(bound + p);
      for (auto q : range(0, n, c.BN)) {
        break_if(most * load(bound + q) < least);
        std::array<Tile, 5> b;
        for (int f = 0; f < 5; ++f) b[f] = of(f, q, c.BN).row();
        auto columns = q + arange(0, c.BN);
        auto d = load(density + columns, {.mask = columns < n});
        auto both = a[0] + b[0], product = a[0] * b[0];
        Tile apart = zeros({c.BM, c.BN}, f64);
        for (int f = 1; f < 4; ++f) apart += (a[f] - b[f]) * (a[f] - b[f]);
        auto integral = 34.986836655249724 / (product * sqrt(both)) * a[4] * b[4] * boys(product / both * apart);
        total += squeeze(sum(integral * d.row(), axis(1)), 1);
      }
      auto rows = p + arange(0, c.BM);
      store(J + rows, total, {.mask = rows < n});
    }).grid([](const EriCfg& c, const auto&, auto, auto, auto, int n, double) { return Grid{cdiv(n, c.BM)}; });
Register r2("coulomb_matrix", [](Env& e) {
  EriCfg c;
  if (!e.big) c = {12, 16, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 16384 : 93;
  std::vector<std::array<double, 6>> all(n);
  auto self = [](const std::array<double, 6>& p) {
    return std::sqrt(34.986836655249724 / (p[0] * p[0] * std::sqrt(2 * p[0])) * p[4] * p[4]);
  };
  for (auto& p : all) {
    p = {.3 + 4 * e.uniform(), 3 * e.uniform(), 3 * e.uniform(), 3 * e.uniform(), std::exp(-12 * e.uniform()), 0};
    p[5] = self(p);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a[5] > b[5]; });
  std::vector<double> fields, bounds;
  for (int f = 0; f < 5; ++f)
    for (const auto& p : all) fields.push_back(p[f]);
  for (const auto& p : all) bounds.push_back(p[5]);
  auto pairs = repeated(e, fields.size(), fields);
  auto bound = repeated(e, bounds.size(), bounds);
  auto density = random<double>(e, n);
  auto J = constant<double>(e, n, NAN);
  const double least = 1e-7;
  Job j;
  j.gflop = 1e-9 * 60 * double(n) * n;
  j.add(coulomb_matrix, c, pairs.view(5, n), density.p, bound.p, J.p, n, least);
  j.check = [=] {
    std::vector<double> want(n);
    for (int p = 0; p < n; ++p)
      for (int q = 0; q < n; ++q) {
        if (all[p / c.BM * c.BM][5] * all[q / c.BN * c.BN][5] < least) break;
        double apart = 0;
        for (int f = 1; f < 4; ++f) apart += std::pow(all[p][f] - all[q][f], 2);
        const double s = all[p][0] + all[q][0], m = all[p][0] * all[q][0], t = m / s * apart, pi = std::acos(-1.);
        const double f0 = t < 1e-10 ? 1 - t / 3 : .5 * std::sqrt(pi / t) * std::erf(std::sqrt(t));
        want[p] += 2 * std::pow(pi, 2.5) / (m * std::sqrt(s)) * all[p][4] * all[q][4] * f0 * density[q];
      }
    return agree(J.now(), want, 1e-11, 1e-11);
  };
  return j;
});

}  // namespace orbitals
}  // namespace users
