// natural_laws.cpp - more of physics and chemistry: loops of links on a lattice, structure factors, integrals of four
// centres.
#include <complex>
#include <numbers>

#include "tests/users/use.h"
namespace users {
namespace natural_laws {

// --- plaquettes: links are 3 x 3 complex matrices on a lattice of four dims, periodic; the trace of the product around
// every square, summed per program
struct LatticeCfg {
  int B = 128, L = 16, warps = 4;
};
struct Link {
  std::array<Tile, 9> re, im;
};
Link times(const Link& a, const Link& b, bool adjoint) {  // a b or a b^+
  Link c;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      Tile re, im;
      for (int k = 0; k < 3; ++k) {
        const int at = adjoint ? j * 3 + k : k * 3 + j, of = i * 3 + k;
        const float sign = adjoint ? -1.f : 1.f;
        auto x = a.re[of] * b.re[at] - sign * a.im[of] * b.im[at], y = sign * a.re[of] * b.im[at] + a.im[of] * b.re[at];
        re = k ? re + x : x, im = k ? im + y : y;
      }
      c.re[i * 3 + j] = re, c.im[i * 3 + j] = im;
    }
  return c;
}
auto plaquette =
    kernel("user_plaquette", [](const LatticeCfg& c, Tensor<const float, 2> U, Ptr<double> sums) {
      // U [4 * 18, sites]: direction, then re and im of nine entries
      num_warps(c.warps);
      auto s = program_id(0) * c.B + arange(0, c.B);
      std::array<int, 4> step{1, c.L, c.L * c.L, c.L * c.L * c.L};
      auto sites = U.dim64(1);
      auto link = [&](int mu, const Tile& at) {
        Link l;
        for (int k = 0; k < 9; ++k) {
          l.re[k] = load(U.ptr() + sites * (mu * 18 + 2 * k) + at);
          l.im[k] = load(U.ptr() + sites * (mu * 18 + 2 * k + 1) + at);
        }
        return l;
      };
      auto next = [&](int mu) { return where(s / step[mu] % c.L == c.L - 1, s - step[mu] * (c.L - 1), s + step[mu]); };
      Tile sum = zeros({c.B}, f32);
      for (int mu = 0; mu < 4; ++mu)
        for (int nu = mu + 1; nu < 4; ++nu) {
          auto a = times(link(mu, s), link(nu, next(mu)), false), b = times(link(nu, s), link(mu, next(nu)), false);
          for (int k = 0; k < 9; ++k) sum += a.re[k] * b.re[k] + a.im[k] * b.im[k];  // tr a b^+
        }
      store(sums + program_id(0), tile::sum(cast(sum, f64)));
    }).grid([](const LatticeCfg& c, const auto& u, auto) { return Grid{u.shape[1] / c.B}; });
Register r1("plaquette", [](Env& e) {
  LatticeCfg c;
  if (!e.big) c = {32, 4, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.L = e.big ? e.field("L", 32) : c.L;
  const int V = c.L * c.L * c.L * c.L;
  auto u = random<float>(e, size_t(72) * V);
  auto sums = constant<double>(e, V / c.B, NAN);
  Job j;
  j.mbytes = 4e-6 * u.n;
  j.add(plaquette, c, u.view(72, V), sums.p);
  j.check = [=] {
    std::vector<double> want(V / c.B);
    const int step[4] = {1, c.L, c.L * c.L, c.L * c.L * c.L};
    auto entry = [&](int mu, int s, int k) {
      return std::complex<double>(u[size_t(mu * 18 + 2 * k) * V + s], u[size_t(mu * 18 + 2 * k + 1) * V + s]);
    };
    for (int s = 0; s < V; ++s) {
      auto next = [&](int mu) { return s / step[mu] % c.L == c.L - 1 ? s - step[mu] * (c.L - 1) : s + step[mu]; };
      for (int mu = 0; mu < 4; ++mu)
        for (int nu = mu + 1; nu < 4; ++nu)
          for (int i = 0; i < 3; ++i)
            for (int k = 0; k < 3; ++k) {
              std::complex<double> a = 0, b = 0;
              for (int q = 0; q < 3; ++q)
                a += entry(mu, s, i * 3 + q) * entry(nu, next(mu), q * 3 + k),
                    b += entry(nu, s, i * 3 + q) * entry(mu, next(nu), q * 3 + k);
              want[s / c.B] += (a * std::conj(b)).real();
            }
    }
    return agree(sums.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- structure factors: S(k) = sum over charges of q exp(i k r): wave vectors in rows, particles pass by
struct WaveCfg {
  int BK = 64, BP = 64, warps = 4;
};
auto structure_factor =
    kernel("user_structure_factor", [](const WaveCfg& c, Tensor<const float, 2> K, Tensor<const float, 2> R,
                                       Ptr<const float> charge, Ptr<float> S, I32 parts) {
      // K [waves, 3], R [n, 3]; S [waves, 2], atomics
      num_warps(c.warps);
      auto k = program_id(0) * c.BK;
      auto kx = K.load({k, 0}, {c.BK, 1}), ky = K.load({k, 1}, {c.BK, 1}), kz = K.load({k, 2}, {c.BK, 1});
      Tile re = zeros({c.BK, c.BP}, f32), im = re;
      auto each = cdiv(cdiv(R.dim(0), parts), c.BP) * c.BP, first = program_id(1) * each;
      for (auto p : range(first, min(first + each, R.dim(0)), c.BP)) {
        auto at = p + arange(0, c.BP);
        auto coordinate = [&](int d) { return trans(R.load({p, d}, {c.BP, 1})); };
        auto q = load(charge + at, {.mask = at < R.dim(0)}).row();
        auto phase = kx * coordinate(0) + ky * coordinate(1) + kz * coordinate(2);
        re += q * cos(phase), im += q * sin(phase);
      }
      auto w = k + arange(0, c.BK);
      auto in = w < K.dim(0);
      atomic_add(S + w * 2, squeeze(sum(re, axis(1)), 1), {.mask = in, .order = Order::relaxed});
      atomic_add(S + w * 2 + 1, squeeze(sum(im, axis(1)), 1), {.mask = in, .order = Order::relaxed});
    }).grid([](const WaveCfg& c, const auto& k, const auto&, auto, auto, int parts) {
      return Grid{cdiv(k.shape[0], c.BK), parts};
    });
Register r2("structure_factor", [](Env& e) {
  WaveCfg c;
  if (!e.big) c = {16, 32, 1};
  c.BK = e.field("BK", c.BK), c.BP = e.field("BP", c.BP), c.warps = e.field("warps", c.warps);
  const int waves = e.big ? 4096 : 21, n = e.big ? 65536 : 101, parts = e.big ? 8 : 2;
  auto k = random<float>(e, waves * 3, -6, 6), r = random<float>(e, n * 3, 0, 10), q = random<float>(e, n);
  auto s = constant<float>(e, waves * 2, 0);
  Job j;
  j.gflop = 20e-9 * waves * double(n);
  j.inTurn = true;
  j.add(structure_factor, c, k.view(waves, 3), r.view(n, 3), q.p, s.p, parts);
  j.check = [=] {
    std::vector<double> want(waves * 2);
    for (int w = 0; w < waves; ++w)
      for (int p = 0; p < n; ++p) {
        double phase = 0;
        for (int d = 0; d < 3; ++d) phase += k[w * 3 + d] * r[p * 3 + d];
        want[w * 2] += q[p] * std::cos(phase), want[w * 2 + 1] += q[p] * std::sin(phase);
      }
    return agree(s.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- Coulomb integrals of four s functions (f64): J[a, b] += sum over pairs (c, d) of D[c, d] (ab|cd), Boys' function
// by erf; pairs are made before: exponent, centre, prefactor
struct ChargeCfg {
  int BI = 16, BJ = 64, warps = 4;
};
auto coulomb =
    kernel("user_coulomb", [](const ChargeCfg& c, Tensor<const double, 2> pairs, Ptr<const double> density,
                              Ptr<double> J) {
      // pairs [5, n]: exponent, x, y, z, prefactor; density, J [n]
      num_warps(c.warps);
      auto i = program_id(0) * c.BI;
      auto mine = [&](int k) { return trans(pairs.load({k, i}, {1, c.BI})); };
      auto p = mine(0), x = mine(1), y = mine(2), z = mine(3);
      Tile sum = zeros({c.BI, c.BJ}, f64);
      for (auto j : range(0, pairs.dim(1), c.BJ)) {
        auto theirs = [&](int k) { return pairs.load({k, j}, {1, c.BJ}, {.pad = k == 0 ? 1. : 0.}); };
        auto q = theirs(0);
        auto dx = x - theirs(1), dy = y - theirs(2), dz = z - theirs(3);
        auto t = p * q / (p + q) * (dx * dx + dy * dy + dz * dz);
        auto root = sqrt(max(t, 1e-12));
        auto boys = where(t < 1e-6, 1. - t / 3., .5 * 1.772453850905516 / root * erf(root));
        auto at = j + arange(0, c.BJ);
        auto d = load(density + at, {.mask = at < pairs.dim(1)}).row();
        sum += d * theirs(4) / (p * q * sqrt(p + q)) * boys;
      }
      auto at = i + arange(0, c.BI);
      store(J + at, squeeze(tile::sum(sum, axis(1)) * mine(4) * 34.986836655249725, 1), {.mask = at < pairs.dim(1)});
    }).grid([](const ChargeCfg& c, const auto& p, auto...) { return Grid{cdiv(p.shape[1], c.BI)}; });
Register r3("coulomb", [](Env& e) {
  ChargeCfg c;
  if (!e.big) c = {16, 16, 1};
  c.BI = e.field("BI", c.BI), c.BJ = e.field("BJ", c.BJ), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 16384 : 45;
  auto pairs = filled<double>(e, 5 * size_t(n),
                              [&](size_t i) { return i < size_t(n) ? .2 + 3 * e.uniform() : 2 * e.uniform() - 1; });
  auto d = random<double>(e, n), jj = constant<double>(e, n, NAN);
  Job j;
  j.gflop = 60e-9 * n * double(n);
  j.add(coulomb, c, pairs.view(5, n), d.p, jj.p);
  j.check = [=] {
    std::vector<double> want(n);
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b) {
        auto at = [&](int k, int i) { return pairs[size_t(k) * n + i]; };
        double r2 = 0;
        for (int k = 1; k < 4; ++k) r2 += (at(k, a) - at(k, b)) * (at(k, a) - at(k, b));
        const double p = at(0, a), q = at(0, b), t = p * q / (p + q) * r2;
        const double boys = t < 1e-6 ? 1 - t / 3 : .5 * std::sqrt(std::numbers::pi / t) * std::erf(std::sqrt(t));
        want[a] += d[b] * 2 * std::pow(std::numbers::pi, 2.5) / (p * q * std::sqrt(p + q)) * boys * at(4, a) * at(4, b);
      }
    return agree(jj.now(), want, 1e-9, 1e-9);
  };
  return j;
});

}  // namespace natural_laws
}  // namespace users
