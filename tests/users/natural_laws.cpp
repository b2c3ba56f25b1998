// natural_laws.cpp - more of physics and chemistry: loops of links on a lattice, gases in three dims, blocks along a
// diagonal, reads against haplotypes, structure factors, functionals of a density, transforms on the sphere, columns of
// an atmosphere, integrals of four centres.
#include <complex>
#include <numbers>

#include "tests/users/use.h"
namespace users {
namespace {

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

// --- Euler's equations in a box (MUSCL, minmod, Rusanov), f64: five fields, one axis at a time, periodic
struct GasCfg {
  int BZ = 2, BY = 4, BX = 32, warps = 4;
};
struct Gas {
  std::array<Tile, 5> q;  // density, three momenta, energy
};
auto euler =
    kernel("user_euler", [](const GasCfg& c, Tensor<const double, 4> Q, Tensor<double, 4> out, F64 ratio) {
      // Q, out [5, Z, Y, X]; ratio: time step over cell width
      num_warps(c.warps);
      auto z0 = program_id(2) * c.BZ, y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
      auto iota = [&](int n, int d) {
        Shape s{1, 1, 1};
        s[d] = n;
        return reshape(arange(0, n), s);
      };
      auto z = z0 + iota(c.BZ, 0), y = y0 + iota(c.BY, 1), x = x0 + iota(c.BX, 2);
      auto inside = broadcast_to((z < Q.dim(1)) & (y < Q.dim(2)) & (x < Q.dim(3)), {c.BZ, c.BY, c.BX});
      auto wrapped = [](const Tile& i, int by, const Tile& n) {
        auto k = i + by;
        return where(k < 0, k + n, where(k >= n, k - n, k));
      };
      auto at = [&](int axis, int by) {
        auto zz = axis == 0 ? wrapped(z, by, Q.dim(1)) : z, yy = axis == 1 ? wrapped(y, by, Q.dim(2)) : y,
             xx = axis == 2 ? wrapped(x, by, Q.dim(3)) : x;
        auto offset = cast(zz, i64) * Q.stride(1) + cast(yy, i64) * Q.stride(2) + cast(xx, i64);
        Gas g;
        for (int k = 0; k < 5; ++k)
          g.q[k] =
              load(Q.ptr() + Q.stride(0) * k + broadcast_to(offset, {c.BZ, c.BY, c.BX}), {.mask = inside, .other = 1});
        return g;
      };
      auto minmod = [](const Tile& a, const Tile& b) { return where(a * b > 0., where(abs(a) < abs(b), a, b), 0.); };
      auto flux = [&](const Gas& g, int axis, Tile& speed) {
        const int m = 3 - axis;  // the momentum along the axis: z, y, x are 3, 2, 1
        auto v = g.q[m] / g.q[0];
        auto p = .4 * (g.q[4] - .5 * (g.q[1] * g.q[1] + g.q[2] * g.q[2] + g.q[3] * g.q[3]) / g.q[0]);
        speed = abs(v) + sqrt(1.4 * max(p, 1e-9) / g.q[0]);
        Gas f;
        for (int k = 0; k < 5; ++k)
          f.q[k] = v * (k == 4 ? g.q[4] + p : k == m ? g.q[m] : g.q[k]) + (k == m ? p : p * 0.);
        return f;
      };
      auto here = at(0, 0);
      Gas sum = here;
      for (int axis = 0; axis < 3; ++axis) {
        std::array<Gas, 5> g{at(axis, -2), at(axis, -1), here, at(axis, 1), at(axis, 2)};
        auto slope = [&](int i, int k) { return minmod(g[i].q[k] - g[i - 1].q[k], g[i + 1].q[k] - g[i].q[k]); };
        auto face = [&](int i) {  // between cells i and i + 1
          Gas l, r, f;
          for (int k = 0; k < 5; ++k)
            l.q[k] = g[i].q[k] + .5 * slope(i, k), r.q[k] = g[i + 1].q[k] - .5 * slope(i + 1, k);
          Tile sl, sr;
          auto fl = flux(l, axis, sl), fr = flux(r, axis, sr);
          auto s = max(sl, sr);
          for (int k = 0; k < 5; ++k) f.q[k] = .5 * (fl.q[k] + fr.q[k] - s * (r.q[k] - l.q[k]));
          return f;
        };
        auto low = face(1), high = face(2);
        for (int k = 0; k < 5; ++k) sum.q[k] -= ratio * (high.q[k] - low.q[k]);
      }
      for (int k = 0; k < 5; ++k) out.store({k, z0, y0, x0}, sum.q[k]);
    }).grid([](const GasCfg& c, const auto& q, const auto&, double) {
      return Grid{cdiv(q.shape[3], c.BX), cdiv(q.shape[2], c.BY), cdiv(q.shape[1], c.BZ)};
    });
Register r2("euler", [](Env& e) {
  GasCfg c;
  if (!e.big) c = {1, 2, 8, 1};
  c.BZ = e.field("BZ", c.BZ), c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX),
  c.warps = e.field("warps", c.warps);
  const int Z = e.big ? 192 : 5, Y = e.big ? 192 : 6, X = e.big ? 192 : 11;
  const size_t n = size_t(Z) * Y * X;
  auto q = filled<double>(e, 5 * n, [&](size_t i) {
    return i < n ? 1 + e.uniform() : i < 4 * n ? e.uniform() - .5 : 3 + e.uniform();
  });
  auto out = constant<double>(e, 5 * n, NAN);
  Job j;
  j.mbytes = 80e-6 * n;
  j.add(euler, c, q.view(5, Z, Y, X), out.view(5, Z, Y, X), .1);
  j.check = [=] {
    using Cell = std::array<double, 5>;
    std::vector<double> want(5 * n);
    const int size[3] = {Z, Y, X};
    for (size_t s = 0; s < n; ++s) {
      const int at[3] = {int(s / (Y * X)), int(s / X % Y), int(s % X)};
      auto cell = [&](int axis, int by) {
        int p[3] = {at[0], at[1], at[2]};
        p[axis] = (p[axis] + by + size[axis]) % size[axis];
        Cell g;
        for (int k = 0; k < 5; ++k) g[k] = q[k * n + (size_t(p[0]) * Y + p[1]) * X + p[2]];
        return g;
      };
      Cell sum = cell(0, 0);
      for (int axis = 0; axis < 3; ++axis) {
        std::array<Cell, 5> g;
        for (int i = 0; i < 5; ++i) g[i] = cell(axis, i - 2);
        auto slope = [&](int i, int k) {
          const double a = g[i][k] - g[i - 1][k], b = g[i + 1][k] - g[i][k];
          return a * b > 0 ? (std::abs(a) < std::abs(b) ? a : b) : 0;
        };
        auto flux = [&](const Cell& g, double& speed) {
          const int m = 3 - axis;
          const double v = g[m] / g[0], p = .4 * (g[4] - .5 * (g[1] * g[1] + g[2] * g[2] + g[3] * g[3]) / g[0]);
          speed = std::abs(v) + std::sqrt(1.4 * std::max(p, 1e-9) / g[0]);
          Cell f;
          for (int k = 0; k < 5; ++k) f[k] = v * (k == 4 ? g[4] + p : g[k]) + (k == m ? p : 0);
          return f;
        };
        auto face = [&](int i) {
          Cell l, r, f;
          for (int k = 0; k < 5; ++k) l[k] = g[i][k] + .5 * slope(i, k), r[k] = g[i + 1][k] - .5 * slope(i + 1, k);
          double sl, sr;
          const Cell fl = flux(l, sl), fr = flux(r, sr);
          for (int k = 0; k < 5; ++k) f[k] = .5 * (fl[k] + fr[k] - std::max(sl, sr) * (r[k] - l[k]));
          return f;
        };
        const Cell low = face(1), high = face(2);
        for (int k = 0; k < 5; ++k) sum[k] -= .1 * (high[k] - low[k]);
      }
      for (int k = 0; k < 5; ++k) want[k * n + s] = sum[k];
    }
    return agree(out.now(), want, 1e-10, 1e-10);
  };
  return j;
});

// --- block tridiagonal systems (5 x 5 blocks, f64), many at once: Thomas with blocks; what elimination makes stays in
// memory for the way back
struct BlockCfg {
  int B = 32, K = 5, warps = 1;
};
auto block_thomas =
    kernel("user_block_thomas", [](const BlockCfg& c, Tensor<const double, 4> A, Tensor<const double, 4> B,
                                   Tensor<const double, 4> C, Tensor<double, 4> W, Tensor<double, 3> X) {
      // A, B, C (below, on, above the diagonal), W [n, K, K, systems], X [n, K, systems]: right sides, then x
      num_warps(c.warps);
      const int K = c.K;
      auto s = program_id(0) * c.B;
      auto block = [&](auto& T, const Tile& i) {
        std::vector<Tile> m(K * K);
        for (int k = 0; k < K * K; ++k) m[k] = T.load({i, k / K, k % K, s}, {c.B});
        return m;
      };
      std::vector<Tile> w(K * K, zeros({c.B}, f64)), d(K, zeros({c.B}, f64));
      for (auto i : range(A.dim(0))) {
        auto a = block(A, i), b = block(B, i), r = block(C, i);
        std::vector<Tile> y(K);
        for (int k = 0; k < K; ++k) y[k] = X.load({i, k, s}, {c.B});
        for (int p = 0; p < K; ++p)
          for (int k = 0; k < K; ++k) {
            for (int q = 0; q < K; ++q) b[p * K + q] -= a[p * K + k] * w[k * K + q];
            y[p] -= a[p * K + k] * d[k];
          }
        for (int p = 0; p < K; ++p) {  // no pivots: blocks are diagonally dominant
          auto inverse = 1. / b[p * K + p];
          for (int q = p + 1; q < K; ++q) b[p * K + q] *= inverse;
          for (int q = 0; q < K; ++q) r[p * K + q] *= inverse;
          y[p] *= inverse;
          for (int k = 0; k < K; ++k) {
            if (k == p) continue;
            auto f = b[k * K + p];
            for (int q = p + 1; q < K; ++q) b[k * K + q] -= f * b[p * K + q];
            for (int q = 0; q < K; ++q) r[k * K + q] -= f * r[p * K + q];
            y[k] -= f * y[p];
          }
        }
        for (int k = 0; k < K * K; ++k) w[k] = r[k], W.store({i, k / K, k % K, s}, r[k]);
        for (int k = 0; k < K; ++k) d[k] = y[k], X.store({i, k, s}, y[k]);
      }
      for (auto i : range(A.dim(0) - 2, -1, -1)) {
        std::vector<Tile> x(K);
        for (int k = 0; k < K; ++k) {
          x[k] = X.load({i, k, s}, {c.B});
          for (int q = 0; q < K; ++q) x[k] -= W.load({i, k, q, s}, {c.B}) * d[q];
        }
        for (int k = 0; k < K; ++k) d[k] = x[k], X.store({i, k, s}, x[k]);
      }
    }).grid([](const BlockCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[3], c.B)}; });
Register r3("block_thomas", [](Env& e) {
  BlockCfg c;
  if (!e.big) c.K = 3;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 128 : 7, S = e.big ? 16384 : 37, K = c.K;
  const size_t all = size_t(n) * K * K * S;
  auto a = random<double>(e, all, -.1, .1), cc = random<double>(e, all, -.1, .1);
  auto b = filled<double>(e, all,
                          [&](size_t i) { return (i / S % (K * K) % (K + 1) == 0 ? 2 : 0) + (e.uniform() - .5) * .2; });
  auto w = constant<double>(e, all, 0);
  auto x = random<double>(e, size_t(n) * K * S);
  Job j;
  j.mbytes = 40e-6 * all;
  j.inTurn = true;
  j.add(block_thomas, c, a.view(n, K, K, S), b.view(n, K, K, S), cc.view(n, K, K, S), w.view(n, K, K, S),
        x.view(n, K, S));
  j.check = [=]() -> std::string {
    const auto got = x.now();
    for (int s = 0; s < S; ++s)
      for (int i = 0; i < n; ++i)
        for (int k = 0; k < K; ++k) {
          double r = -x[(size_t(i) * K + k) * S + s];
          for (int q = 0; q < K; ++q) {
            const size_t m = ((size_t(i) * K + k) * K + q) * S + s;
            r += b[m] * got[(size_t(i) * K + q) * S + s];
            if (i) r += a[m] * got[(size_t(i - 1) * K + q) * S + s];
            if (i + 1 < n) r += cc[m] * got[(size_t(i + 1) * K + q) * S + s];
          }
          if (!(std::abs(r) < 1e-10)) return "residual " + std::to_string(r);
        }
    return "";
  };
  return j;
});

// --- reads against haplotypes (pair HMM, forward): matches, insertions and deletions along antidiagonals; a pair a
// program
struct PairCfg {
  int R = 128, warps = 1;
};
auto pair_hmm =
    kernel("user_pair_hmm", [](const PairCfg& c, Tensor<const uint8_t, 2> reads, Tensor<const uint8_t, 2> quality,
                               Tensor<const uint8_t, 2> haps, Ptr<const int32_t> readLength,
                               Ptr<const int32_t> hapLength, Ptr<float> out) {
      // pair p: read p of readLength[p] bases with error probabilities 10^(-q / 10), haplotype p
      num_warps(c.warps);
      auto p = program_id(0);
      auto i = arange(0, c.R);
      auto r = cast(reshape(reads.load({p, 0}, {1, c.R}), {c.R}), i32);
      auto wrong = exp2(cast(reshape(quality.load({p, 0}, {1, c.R}), {c.R}), f32) * -.33219281f);
      auto n = load(readLength + p), m = load(hapLength + p);
      const float open = .001f, extend = .1f;
      // tiles hold row i of the last two antidiagonals; what comes from row i - 1 is taken from one lane below
      auto up = [&](const Tile& t, float first) { return where(i == 0, first, take(t, max(i - 1, 0), 0)); };
      Tile m1 = zeros({c.R}, f32), x1 = m1, y1 = m1, m2 = m1, x2 = m1, y2 = m1, total = m1;
      auto start = 1.f / cast(m, f32);
      for (auto d : range(0, n + m - 1)) {
        auto j = d - i;
        auto in = (j >= 0) & (j < m) & (i < n);
        auto h = cast(load(haps.ptr() + cast(p, i64) * haps.stride(0) + j, {.mask = in}), i32);
        auto like = where(h == r, 1.f - wrong, wrong * (1.f / 3.f));
        // the row above the first: deletions of weight `start`
        auto my = up(m2, 0.f), xy = up(x2, 0.f), yy = where(i == 0, start, up(y2, 0.f));
        auto before = where((j == 0) & (i > 0), 0.f, 1.f);
        auto mm = where(in, like * before * ((1.f - 2.f * open) * my + (1.f - extend) * (xy + yy)), 0.f);
        auto xx = where(in, open * up(m1, 0.f) + extend * up(x1, 0.f), 0.f);
        auto dd = where(in, open * m1 + extend * y1, 0.f);
        m2 = m1, x2 = x1, y2 = y1;
        m1 = mm, x1 = xx, y1 = dd;
        total += where(in & (i == n - 1), mm + xx, 0.f);
      }
      store(out + p, log10(sum(total)));
    }).grid([](const PairCfg&, const auto& r, auto...) { return Grid{r.shape[0]}; });
Register r4("pair_hmm", [](Env& e) {
  PairCfg c;
  if (!e.big) c = {24, 1};
  c.warps = e.field("warps", c.warps);
  const int P = e.big ? 65536 : 5, H = e.big ? 320 : 40;
  auto reads = integers<uint8_t>(e, size_t(P) * c.R, 0, 4), q = integers<uint8_t>(e, reads.n, 10, 41);
  auto haps = drawn<uint8_t>(e, size_t(P) * H, [&, k = size_t(0)]() mutable {
    const size_t at = k++;
    const size_t p = at / H, i = at % H;
    return i >= 5 && i < size_t(c.R) + 5 && e.uniform() < .9 ? reads.at(p * c.R + i - 5) : uint8_t(e.uniform() * 4);
  });
  auto rl = integers<int32_t>(e, P, c.R - 8, c.R + 1), hl = integers<int32_t>(e, P, H - 5, H + 1);
  auto out = constant<float>(e, P, NAN);
  Job j;
  j.gflop = 14e-9 * P * c.R * double(H);
  j.add(pair_hmm, c, reads.view(P, c.R), q.view(P, c.R), haps.view(P, H), rl.p, hl.p, out.p);
  j.check = [=] {
    std::vector<double> want(P);
    for (int p = 0; p < P; ++p) {
      const int n = rl.at(p), m = hl.at(p);
      std::vector<std::array<double, 3>> last(m), now(m);
      for (int i = 0; i < n; ++i) {
        const double wrong = std::pow(10, -q[p * c.R + i] / 10);
        for (int k = 0; k < m; ++k) {
          std::array<double, 3> diagonal{}, above{}, left{};
          if (i && k) diagonal = last[k - 1];
          if (!i) diagonal[2] = 1. / m;
          if (i) above = last[k];
          if (k) left = now[k - 1];
          const double like = haps.at(size_t(p) * H + k) == reads.at(p * c.R + i) ? 1 - wrong : wrong / 3;
          now[k] = {like * (.998 * diagonal[0] + .9 * (diagonal[1] + diagonal[2])), .001 * above[0] + .1 * above[1],
                    .001 * left[0] + .1 * left[2]};
        }
        last = now;
      }
      double sum = 0;
      for (auto& x : last) sum += x[0] + x[1];
      want[p] = std::log10(sum);
    }
    return agree(out.now(), want, 2e-3, 1e-3);
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
Register r5("structure_factor", [](Env& e) {
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

// --- exchange and correlation on a grid (LDA: Slater and Perdew and Wang's 1992 fit), f64: energy and potential
struct GridCfg {
  int B = 512, warps = 4;
};
auto lda = kernel("user_lda", [](const GridCfg& c, Ptr<const double> density, Ptr<const double> weight,
                                 Ptr<double> potential, Ptr<double> energy, I64 n) {
             num_warps(c.warps);
             auto i = cast(program_id(0), i64) * c.B + arange(0, c.B);
             auto in = i < n;
             auto rho = max(load(density + i, {.mask = in, .other = 1}), 1e-30);
             auto third = cbrt(rho);
             auto ex = -.7385587663820224 * third, vx = ex * (4. / 3);
             auto rs = .6203504908994 / third, root = sqrt(rs);
             const double A = .0310907, a1 = .2137, b1 = 7.5957, b2 = 3.5876, b3 = 1.6382, b4 = .49294;
             auto q1 = 2 * A * (b1 * root + b2 * rs + b3 * rs * root + b4 * rs * rs);
             auto l = log1p(1. / q1);
             auto ec = -2 * A * (1. + a1 * rs) * l;
             auto slope = -2 * A * a1 * l + 2 * A * (1. + a1 * rs) * A *
                                                (b1 / root + 2 * b2 + 3 * b3 * root + 4 * b4 * rs) / (q1 * q1 + q1);
             auto vc = ec - rs / 3. * slope;
             store(potential + i, vx + vc, {.mask = in});
             auto part = sum(where(in, (ex + ec) * rho * load(weight + i, {.mask = in}), 0.));
             store(energy + program_id(0), part);
           }).grid([](const GridCfg& c, auto, auto, auto, auto, int64_t n) { return Grid{cdiv(n, c.B)}; });
Register r6("lda", [](Env& e) {
  GridCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? 1 << 24 : 333;
  auto rho = random<double>(e, n, 1e-4, 2), w = random<double>(e, n, 0, 1);
  auto v = constant<double>(e, n, NAN), energy = constant<double>(e, cdiv(n, c.B), NAN);
  Job j;
  j.mbytes = 24e-6 * n;
  j.add(lda, c, rho.p, w.p, v.p, energy.p, n);
  j.check = [=] {
    auto of = [](double rho) {
      const double rs = std::cbrt(3 / (4 * std::numbers::pi * rho)), r = std::sqrt(rs);
      const double q = 2 * .0310907 * (7.5957 * r + 3.5876 * rs + 1.6382 * rs * r + .49294 * rs * rs);
      return -.75 * std::cbrt(3 / std::numbers::pi * rho) - 2 * .0310907 * (1 + .2137 * rs) * std::log1p(1 / q);
    };
    std::vector<double> want(n), parts(energy.n);
    for (int64_t i = 0; i < n; ++i) {
      const double h = 1e-5 * rho[i];
      want[i] = ((rho[i] + h) * of(rho[i] + h) - (rho[i] - h) * of(rho[i] - h)) / (2 * h);
      parts[i / c.B] += of(rho[i]) * rho[i] * w[i];
    }
    if (auto wrong = agree(energy.now(), parts, 1e-10, 1e-7); !wrong.empty()) return "energy: " + wrong;
    return agree(v.now(), want, 1e-7, 1e-7);
  };
  return j;
});

// --- transforms on the sphere (Legendre): for every order m a product of triangular size: coefficients of degrees m ..
// L to latitudes; f32 through tf32x3, both signs of the latitude from sums of even and odd degrees
struct SphereCfg {
  int BL = 64, BF = 64, BK = 32, stages = 2, warps = 4;
};
auto legendre =
    kernel("user_legendre", [](const SphereCfg& c, Tensor<const float, 3> P, Tensor<const float, 3> A,
                               Tensor<float, 3> F) {
      // P [m, latitude (half), degree], A [m, degree, fields], F [m, latitude, fields]; degrees below m are zeros
      num_warps(c.warps);
      auto m = program_id(2), y = program_id(1) * c.BL, f = program_id(0) * c.BF;
      Tile even = zeros({c.BL, c.BF}, f32), odd = even;
      auto degree = arange(0, c.BK).row();
      for (auto k : range(m / c.BK * c.BK, P.dim(2), c.BK, {.stages = c.stages})) {
        auto p = P.load({m, y, k}, {c.BL, c.BK}), a = A.load({m, k, f}, {c.BK, c.BF});
        auto isEven = (k + degree - m) % 2 == 0;
        even = dot(where(isEven, p, 0.f), a, even, Prec::tf32x3);
        odd = dot(where(isEven, 0.f, p), a, odd, Prec::tf32x3);
      }
      F.store({m, y, f}, reshape(even + odd, {1, c.BL, c.BF}));
      auto mirror = make_view<float>(F.ptr() + cast(m, i64) * F.stride(0), {F.dim(1), F.dim(2)}, {F.stride(1), 1});
      auto row = F.dim(1) - 1 - (y + arange(0, c.BL));
      mirror.scatter(where(y + arange(0, c.BL) < F.dim(1) / 2, row, -1), f, even - odd);
    }).grid([](const SphereCfg& c, const auto& p, const auto& a, const auto&) {
      return Grid{cdiv(a.shape[2], c.BF), cdiv(p.shape[1], c.BL), p.shape[0]};
    });
Register r7("legendre", [](Env& e) {
  SphereCfg c;
  if (!e.big) c = {16, 16, 16, 2, 1};
  c.BL = e.field("BL", c.BL), c.BF = e.field("BF", c.BF), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages);
  const int M = e.big ? 256 : 3, half_ = e.big ? 192 : 16, L = e.big ? 256 : 24, N = e.big ? 256 : 20;
  auto p = filled<float>(e, size_t(M) * half_ * L, [&](size_t i) {
    return int(i % L) < int(i / (size_t(half_) * L)) ? 0.f : float(e.uniform() - .5);
  });
  auto a = random<float>(e, size_t(M) * L * N);
  auto f = constant<float>(e, size_t(M) * 2 * half_ * N, NAN);
  Job j;
  j.gflop = 4e-9 * M * half_ * double(L) / 2 * N;
  j.add(legendre, c, p.view(M, half_, L), a.view(M, L, N), f.view(M, 2 * half_, N));
  j.check = [=] {
    std::vector<double> want(f.n);
    for (int m = 0; m < M; ++m)
      for (int y = 0; y < half_; ++y)
        for (int n = 0; n < N; ++n) {
          double s[2] = {};
          for (int l = m; l < L; ++l)
            s[(l - m) % 2] += p[(size_t(m) * half_ + y) * L + l] * a[(size_t(m) * L + l) * N + n];
          want[(size_t(m) * 2 * half_ + y) * N + n] = s[0] + s[1];
          want[(size_t(m) * 2 * half_ + 2 * half_ - 1 - y) * N + n] = s[0] - s[1];
        }
    return agree(f.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- columns of an atmosphere (two-stream, adding): reflection and transmission of layers from optical depth, albedo
// and asymmetry; from the ground up what is reflected, then fluxes from the top down
struct ColumnCfg {
  int B = 128, warps = 4;
};
auto two_stream =
    kernel("user_two_stream", [](const ColumnCfg& c, Tensor<const float, 2> depth, Tensor<const float, 2> albedo,
                                 Tensor<const float, 2> asymmetry, Ptr<const float> ground, Tensor<float, 2> R,
                                 Tensor<float, 2> up, Tensor<float, 2> down) {
      // depth .. asymmetry [layers, columns]; R, up, down [layers + 1, columns], from the top
      num_warps(c.warps);
      auto x = program_id(0) * c.B;
      auto at = x + arange(0, c.B);
      auto layer = [&](const Tile& l) {
        auto of = [&](auto& t) { return reshape(t.load({l, x}, {1, c.B}), {c.B}); };
        auto w = of(albedo), g = of(asymmetry), tau = of(depth);
        auto g1 = (7.f - w * (4.f + 3.f * g)) * .25f, g2 = (w * (4.f - 3.f * g) - 1.f) * .25f;
        auto k = sqrt(max(g1 * g1 - g2 * g2, 1e-6f)), e = exp(-k * tau), ee = e * e;
        auto over = 1.f / (k * (1.f + ee) + g1 * (1.f - ee));
        return std::pair<Tile, Tile>(g2 * (1.f - ee) * over, 2.f * k * e * over);
      };
      auto n = depth.dim(0);
      Tile below = load(ground + at, {.mask = at < depth.dim(1)});
      R.store({n, x}, reshape(below, {1, c.B}));
      for (auto l : range(n - 1, -1, -1)) {
        auto [r, t] = layer(l);
        below = r + t * t * below / (1.f - r * below);
        R.store({l, x}, reshape(below, {1, c.B}));
      }
      Tile flux = full({c.B}, 1.f, f32);
      for (auto l : range(n)) {
        auto here = reshape(R.load({l, x}, {1, c.B}), {c.B}), next = reshape(R.load({l + 1, x}, {1, c.B}), {c.B});
        down.store({l, x}, reshape(flux, {1, c.B}));
        up.store({l, x}, reshape(flux * here, {1, c.B}));
        auto [r, t] = layer(l);
        flux = flux * t / (1.f - r * next);
      }
      down.store({n, x}, reshape(flux, {1, c.B}));
      up.store({n, x}, reshape(flux * load(ground + at, {.mask = at < depth.dim(1)}), {1, c.B}));
    }).grid([](const ColumnCfg& c, const auto& d, auto...) { return Grid{cdiv(d.shape[1], c.B)}; });
Register r8("two_stream", [](Env& e) {
  ColumnCfg c;
  if (!e.big) c = {16, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int L = e.big ? 90 : 6, N = e.big ? 262144 : 41;
  auto tau = random<float>(e, size_t(L) * N, .01, 2), w = random<float>(e, tau.n, .1, .95),
       g = random<float>(e, tau.n, 0, .85);
  auto ground = random<float>(e, N, .1, .8);
  auto r = constant<float>(e, size_t(L + 1) * N, 0), up = constant<float>(e, r.n, NAN),
       down = constant<float>(e, r.n, NAN);
  Job j;
  j.mbytes = 4e-6 * N * (6. * L + 4. * L);
  j.inTurn = true;
  j.add(two_stream, c, tau.view(L, N), w.view(L, N), g.view(L, N), ground.p, r.view(L + 1, N), up.view(L + 1, N),
        down.view(L + 1, N));
  j.check = [=] {
    std::vector<double> wu(r.n), wd(r.n);
    for (int x = 0; x < N; ++x) {
      std::vector<double> R(L + 1), rr(L), tt(L);
      R[L] = ground[x];
      for (int l = L - 1; l >= 0; --l) {
        const size_t i = size_t(l) * N + x;
        const double g1 = (7 - w[i] * (4 + 3 * g[i])) / 4, g2 = (w[i] * (4 - 3 * g[i]) - 1) / 4;
        const double k = std::sqrt(std::max(g1 * g1 - g2 * g2, 1e-6)), e1 = std::exp(-k * tau[i]);
        const double over = 1 / (k * (1 + e1 * e1) + g1 * (1 - e1 * e1));
        rr[l] = g2 * (1 - e1 * e1) * over, tt[l] = 2 * k * e1 * over;
        R[l] = rr[l] + tt[l] * tt[l] * R[l + 1] / (1 - rr[l] * R[l + 1]);
      }
      double f = 1;
      for (int l = 0; l <= L; ++l) {
        wd[size_t(l) * N + x] = f, wu[size_t(l) * N + x] = f * R[l];
        if (l < L) f = f * tt[l] / (1 - rr[l] * R[l + 1]);
      }
    }
    if (auto wrong = agree(down.now(), wd, 1e-4, 1e-3); !wrong.empty()) return "down: " + wrong;
    return agree(up.now(), wu, 1e-4, 1e-3);
  };
  return j;
});

// --- Coulomb integrals of four s functions (f64): J[a, b] += sum over pairs (c, d) of D[c, d] (ab|cd), Boys' function
// by erf; pairs are made before: exponent, centre, prefactor
struct ChargeCfg {
  int BI = 32, BJ = 32, warps = 4;
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
Register r9("coulomb", [](Env& e) {
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

}  // namespace
}  // namespace users
