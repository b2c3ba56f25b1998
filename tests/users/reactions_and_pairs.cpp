// reactions_and_pairs.cpp - fields and particles: reactions that diffuse, a wave packet, distances of pairs, torsions,
// neurons.
#include "tests/users/use.h"
namespace users {
namespace reactions_and_pairs {

// --- Gray and Scott's reaction: T steps at a time of a block and its halo; the domain is periodic
struct GrayCfg {
  int BY = 32, BX = 64, T = 4, warps = 8;
};
auto gray_scott = kernel("user_gray_scott", [](const GrayCfg& c, Ptr<const float> U, Ptr<const float> V, Ptr<float> U2,
                                               Ptr<float> V2, I32 H, I32 W, F32 feed, F32 kill) {
                    num_warps(c.warps);
                    auto y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
                    int h = c.BY + 2 * c.T, w = c.BX + 2 * c.T;
                    auto y = floor_mod(y0 - c.T + arange(0, h), H), x = floor_mod(x0 - c.T + arange(0, w), W);
                    auto from = y.col() * W + x.row();
                    Tile u = load(U + from), v = load(V + from);
                    for (int t = 0; t < c.T; ++t) {
                      h -= 2, w -= 2;
                      auto middle = [&](const Tile& a) { return extract(a, {1, 1}, {h, w}); };
                      auto around = [&](const Tile& a) {
                        return extract(a, {0, 1}, {h, w}) + extract(a, {2, 1}, {h, w}) + extract(a, {1, 0}, {h, w}) +
                               extract(a, {1, 2}, {h, w}) - middle(a) * 4.f;
                      };
                      auto um = middle(u), vm = middle(v), r = um * vm * vm;
                      auto next = um + around(u) * 0.16f - r + feed * (1.f - um);
                      v = vm + around(v) * 0.08f + r - (feed + kill) * vm;
                      u = next;
                    }
                    auto yo = y0 + arange(0, c.BY), xo = x0 + arange(0, c.BX);
                    auto inside = (yo < H).col() & (xo < W).row();
                    auto to = yo.col() * W + xo.row();
                    store(U2 + to, u, {.mask = inside});
                    store(V2 + to, v, {.mask = inside});
                  }).grid([](const GrayCfg& c, const float*, const float*, float*, float*, int H, int W, float, float) {
  return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
});
Register r1("gray_scott", [](Env& e) {
  const int H = e.big ? 4096 : 45, W = e.big ? 4096 : 83, T = e.field("T", 4);
  auto u = random<float>(e, size_t(H) * W, 0, 1), v = random<float>(e, size_t(H) * W, 0, .5);
  auto u2 = constant<float>(e, size_t(H) * W, NAN), v2 = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.mbytes = 16e-6 * H * W;
  j.add(gray_scott, GrayCfg{32, 64, T, 8}, u.p, v.p, u2.p, v2.p, H, W, .037f, .06f);
  j.check = [=] {
    std::vector<double> a(u.h.begin(), u.h.end()), b(v.h.begin(), v.h.end()), c(a), d(b);
    for (int t = 0; t < T; ++t, a = c, b = d)
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
          const size_t i = size_t(y) * W + x, n = size_t((y + H - 1) % H) * W + x, s = size_t((y + 1) % H) * W + x,
                       o = size_t(y) * W + (x + 1) % W, p = size_t(y) * W + (x + W - 1) % W;
          const double r = a[i] * b[i] * b[i];
          c[i] = a[i] + .16 * (a[n] + a[s] + a[o] + a[p] - 4 * a[i]) - r + double(.037f) * (1 - a[i]);
          d[i] = b[i] + .08 * (b[n] + b[s] + b[o] + b[p] - 4 * b[i]) + r - double(.037f + .06f) * b[i];
        }
    const auto wrong = agree(u2.now(), a, 1e-5, 1e-5);
    return wrong.empty() ? agree(v2.now(), b, 1e-5, 1e-5) : wrong;
  };
  return j;
});

// --- a step of Crank and Nicolson of Schroedinger's equation: complex tridiagonal systems, one line an element
struct CrankCfg {
  int B = 64, warps = 2;
};
auto crank = kernel("user_crank", [](const CrankCfg& c, Tensor<const float, 2> R, Tensor<const float, 2> I,
                                     Tensor<const float, 1> V, Tensor<float, 2> Cr, Tensor<float, 2> Ci,
                                     Tensor<float, 2> X, Tensor<float, 2> Y, F32 r, F32 half_step) {
               // R, I, X, Y [points, lines]: a step of what is in R + i I goes to X + i Y; V: the potential; Cr, Ci:
               // scratch
               num_warps(c.warps);
               auto l = program_id(0) * c.B;
               auto row = [&](const Tensor<const float, 2>& a, const Tile& p) { return a.load({p, l}, {c.B}); };
               Tile cr = zeros({c.B}, f32), ci = zeros({c.B}, f32), dr = zeros({c.B}, f32), di = zeros({c.B}, f32);
               auto n = R.dim(0);
               for (auto p : range(n)) {
                 auto b = r * 2.f + half_step * V.load({p});  // the diagonal is 1 + i b, beside it there is -i r
                 auto sr = row(R, p - 1) + row(R, p + 1), si = row(I, p - 1) + row(I, p + 1);
                 auto fr = row(R, p) + b * row(I, p) - r * si, fi = row(I, p) - b * row(R, p) + r * sr;
                 // less the row above: -i r times (c, d)
                 auto mr = 1.f - r * ci, mi = b + r * cr;  // 1 + i b + i r c
                 fr = fr - r * di, fi = fi + r * dr;       // f + i r d
                 auto scale = 1.f / (mr * mr + mi * mi);
                 cr = -r * mi * scale, ci = -r * mr * scale;  // -i r / m
                 dr = (fr * mr + fi * mi) * scale, di = (fi * mr - fr * mi) * scale;
                 Cr.store({p, l}, cr.row()), Ci.store({p, l}, ci.row());
                 X.store({p, l}, dr.row()), Y.store({p, l}, di.row());
               }
               Tile xr = zeros({c.B}, f32), xi = zeros({c.B}, f32);
               for (auto p : range(n - 1, -1, -1)) {
                 auto a = row(Cr, p), b = row(Ci, p);
                 auto nr = row(X, p) - (a * xr - b * xi), ni = row(Y, p) - (a * xi + b * xr);
                 xr = nr, xi = ni;
                 X.store({p, l}, xr.row()), Y.store({p, l}, xi.row());
               }
             }).grid([](const CrankCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[1], c.B)}; });
Register r2("crank", [](Env& e) {
  const int n = e.big ? 512 : 37, L = e.big ? 65536 : 101;
  const size_t N = size_t(n) * L;
  auto a = random<float>(e, N), b = random<float>(e, N), v = random<float>(e, n, 0, 3);
  auto cr = constant<float>(e, N, NAN), ci = constant<float>(e, N, NAN), x = constant<float>(e, N, NAN),
       y = constant<float>(e, N, NAN);
  const float r = .7f, hs = .3f;
  Job j;
  j.mbytes = 48e-6 * N;
  j.add(crank, CrankCfg{}, a.view(n, L), b.view(n, L), v.view(n), cr.view(n, L), ci.view(n, L), x.view(n, L),
        y.view(n, L), r, hs);
  j.check = [=] {
    // the system holds for the result: (1 + i b) x - i r (x- + x+) = f
    const auto gr = x.now(), gi = y.now();
    std::vector<double> got, want;
    auto at = [&](const auto& m, int p, int l) { return p < 0 || p >= n ? 0. : double(m[size_t(p) * L + l]); };
    for (int p = 0; p < n; ++p)
      for (int l = 0; l < L; ++l) {
        const double d = 2. * r + hs * v[p];
        const double sr = at(a, p - 1, l) + at(a, p + 1, l), si = at(b, p - 1, l) + at(b, p + 1, l);
        want.push_back(at(a, p, l) + d * at(b, p, l) - r * si), want.push_back(at(b, p, l) - d * at(a, p, l) + r * sr);
        const double tr = at(gr, p - 1, l) + at(gr, p + 1, l), ti = at(gi, p - 1, l) + at(gi, p + 1, l);
        got.push_back(at(gr, p, l) - d * at(gi, p, l) + r * ti),
            got.push_back(at(gi, p, l) + d * at(gr, p, l) - r * tr);
      }
    return agree(got, want, 2e-5, 2e-5);
  };
  return j;
});

// --- how many pairs of particles are how far apart: 128 shells in a periodic box
struct RdfCfg {
  int B = 128, BJ = 64, bins = 128, warps = 4;
};
auto rdf = kernel("user_rdf", [](const RdfCfg& c, Ptr<const float> X, Ptr<const float> Y, Ptr<const float> Z,
                                 Ptr<int32_t> G, I32 n, F32 box, F32 far) {
             num_warps(c.warps);
             auto i = program_id(0) * c.B + arange(0, c.B);
             auto here = [&](Ptr<const float> p, const Tile& at) { return load(p + at, {.mask = at < n}); };
             auto x = here(X, i).col(), y = here(Y, i).col(), z = here(Z, i).col();
             Tile count = zeros({c.bins}, i32);
             for (auto start : range(program_id(0) * c.B, n, c.BJ)) {
               auto j = start + arange(0, c.BJ);
               auto apart = [&](const Tile& a, Ptr<const float> p) {
                 auto d = a - here(p, j).row();
                 return d - box * rint(d / box);
               };
               auto dx = apart(x, X), dy = apart(y, Y), dz = apart(z, Z);
               auto r = sqrt(dx * dx + dy * dy + dz * dz);
               auto good = (i.col() < j.row()) & (j < n).row() & (r < far);
               auto bin = cast(r * (float(c.bins) / far), i32);
               count += histogram(ravel(bin), c.bins, {.mask = ravel(good)});
             }
             atomic_add(G + arange(0, c.bins), count);
           }).grid([](const RdfCfg& c, const float*, const float*, const float*, int32_t*, int n, float, float) {
  return Grid{cdiv(n, c.B)};
});
Register r3("rdf", [](Env& e) {
  const int n = e.big ? 20000 : 301;
  auto x = random<float>(e, n, 0, 10), y = random<float>(e, n, 0, 10), z = random<float>(e, n, 0, 10);
  auto g = constant<int32_t>(e, 128, 0);
  Job j;
  j.add(rdf, RdfCfg{}, x.p, y.p, z.p, g.p, n, 10.f, 4.f);
  j.check = [=]() -> std::string {
    std::vector<double> want(128);
    for (int a = 0; a < n; ++a)
      for (int b = a + 1; b < n; ++b) {
        double s = 0;
        for (double d : {x[a] - x[b], y[a] - y[b], z[a] - z[b]}) d -= 10 * std::rint(d / 10), s += d * d;
        if (std::sqrt(s) < 4) ++want[int(std::sqrt(s) * 32)];
      }
    return agree(g.now(), want, 2.1, 0);  // pairs at the edge of a shell
  };
  return j;
});

// --- forces of torsions around bonds: four particles each, added up atomically
struct TorsionCfg {
  int B = 128, warps = 4;
};
auto torsion =
    kernel("user_torsion",
           [](const TorsionCfg& c, Ptr<const float> P, Tensor<const int32_t, 2> four, Ptr<const float> strength,
              Ptr<const int32_t> fold, Ptr<const float> phase, Ptr<float> F, Ptr<float> energy, I32 n) {
             num_warps(c.warps);
             auto t = program_id(0) * c.B + arange(0, c.B);
             auto mask = t < n;
             using V = std::array<Tile, 3>;
             auto index = four.load({program_id(0) * c.B, 0}, {c.B, 4});
             auto who = [&](int k) { return squeeze(extract(index, {0, k}, {c.B, 1}), 1); };
             auto at = [&](const Tile& i) {
               return V{load(P + i * 3, {.mask = mask}), load(P + (i * 3 + 1), {.mask = mask}),
                        load(P + (i * 3 + 2), {.mask = mask})};
             };
             auto minus = [](const V& a, const V& b) { return V{a[0] - b[0], a[1] - b[1], a[2] - b[2]}; };
             auto times = [](const Tile& s, const V& a) { return V{s * a[0], s * a[1], s * a[2]}; };
             auto inner = [](const V& a, const V& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
             auto cross = [](const V& a, const V& b) {
               return V{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
             };
             auto i = who(0), j = who(1), k = who(2), l = who(3);
             auto xi = at(i), xj = at(j), xk = at(k), xl = at(l);
             auto ij = minus(xi, xj), kj = minus(xk, xj), kl = minus(xk, xl);
             auto m = cross(ij, kj), o = cross(kj, kl);
             auto length = sqrt(inner(kj, kj));
             auto phi = atan2(inner(ij, o) * length, inner(m, o));
             auto multiple = cast(load(fold + t, {.mask = mask}), f32), ks = load(strength + t, {.mask = mask});
             auto angle = multiple * phi - load(phase + t, {.mask = mask});
             auto slope = -ks * multiple * sin(angle);
             auto fi = times(-slope * length / inner(m, m), m), fl = times(slope * length / inner(o, o), o);
             auto both =
                 minus(times(inner(ij, kj) / (length * length), fi), times(inner(kl, kj) / (length * length), fl));
             auto fj = minus(both, fi), fk = minus(times(full({c.B}, -1, f32), both), fl);
             auto add = [&](const Tile& who, const V& f) {
               for (int d = 0; d < 3; ++d) atomic_add(F + (who * 3 + d), f[d], {.mask = mask});
             };
             add(i, fi), add(j, fj), add(k, fk), add(l, fl);
             atomic_add(energy, sum(where(mask, ks * (cos(angle) + 1.f), 0.f)));
           })
        .grid([](const TorsionCfg& c, const float*, const auto&, const float*, const int32_t*, const float*, float*,
                 float*, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("torsion", [](Env& e) {
  const int n = e.big ? 1 << 20 : 517, N = e.big ? 1 << 19 : 200;
  auto p = random<float>(e, 3 * size_t(N), 0, 10);
  auto four = drawn<int32_t>(e, 4 * size_t(n), [&, k = 0, base = 0]() mutable {
    if (k % 4 == 0) base = int(e.uniform() * N);
    return int32_t((base + 7 * (k++ % 4)) % N);
  });
  auto s = random<float>(e, n, .5, 2), phase = random<float>(e, n, 0, 3);
  auto fold = integers<int32_t>(e, n, 1, 4);
  auto f = constant<float>(e, 3 * size_t(N), 0), energy = constant<float>(e, 1, 0);
  Job j;
  restore(e, j, f, energy);
  j.add(torsion, TorsionCfg{}, p.p, four.view(n, 4), s.p, fold.p, phase.p, f.p, energy.p, n);
  j.inTurn = true;
  j.check = [=] {
    // the energy and, by differences of it, the force on some coordinates
    auto total = [&](int which, double by) {
      double all = 0;
      for (int t = 0; t < n; ++t) {
        double x[4][3];
        bool there = which < 0;
        for (int a = 0; a < 4; ++a)
          for (int d = 0; d < 3; ++d) {
            const int at = four.h[4 * t + a] * 3 + d;
            x[a][d] = p[at] + (at == which ? by : 0), there |= at == which;
          }
        if (!there) continue;
        double u[3][3], m[3], o[3], io = 0, mo = 0, len = 0;
        for (int d = 0; d < 3; ++d)
          u[0][d] = x[0][d] - x[1][d], u[1][d] = x[2][d] - x[1][d], u[2][d] = x[2][d] - x[3][d];
        for (int d = 0; d < 3; ++d) {
          const int b = (d + 1) % 3, c = (d + 2) % 3;
          m[d] = u[0][b] * u[1][c] - u[0][c] * u[1][b], o[d] = u[1][b] * u[2][c] - u[1][c] * u[2][b];
        }
        for (int d = 0; d < 3; ++d) io += u[0][d] * o[d], mo += m[d] * o[d], len += u[1][d] * u[1][d];
        all += s[t] * (1 + std::cos(fold.h[t] * std::atan2(io * std::sqrt(len), mo) - phase[t]));
      }
      return all;
    };
    const auto wrong = agree(energy.now(), {total(-1, 0)}, 1e-2, 1e-4);
    if (!wrong.empty()) return "energy: " + wrong;
    std::vector<double> want;
    for (int i = 0; i < 3 * N; ++i) want.push_back(-(total(i, 1e-5) - total(i, -1e-5)) / 2e-5);
    return agree(f.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- neurons of Hodgkin and Huxley: gates by exponential steps, how often each fires
struct NeuronCfg {
  int B = 256, warps = 4;
};
auto hodgkin =
    kernel("user_hodgkin", [](const NeuronCfg& c, Ptr<const float> current, Ptr<float> voltage, Ptr<int32_t> fired,
                              I32 n, I32 steps, F32 dt) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto mask = i < n;
      auto input = load(current + i, {.mask = mask});
      Tile v = full({c.B}, -65, f32), m = full({c.B}, .05, f32), h = full({c.B}, .6, f32), g = full({c.B}, .32, f32);
      Tile count = zeros({c.B}, i32), above = zeros({c.B}, i1);
      auto ratio = [](const Tile& x) { return where(abs(x) < 1e-4f, 1.f + x * 0.5f, x / (1.f - exp(-x))); };
      auto step = [&](Tile& gate, const Tile& a, const Tile& b) {
        auto to = a / (a + b);
        gate = to + (gate - to) * exp(-(a + b) * dt);
      };
      for (auto _ : range(steps)) {
        step(m, ratio((v + 40.f) * 0.1f), exp((v + 65.f) * (-1.f / 18)) * 4.f);
        step(h, exp((v + 65.f) * -0.05f) * 0.07f, 1.f / (1.f + exp((v + 35.f) * -0.1f)));
        step(g, ratio((v + 55.f) * 0.1f) * 0.1f, exp((v + 65.f) * -0.0125f) * 0.125f);
        auto g2 = g * g;
        v += (input - m * m * m * h * 120.f * (v - 50.f) - g2 * g2 * 36.f * (v + 77.f) - 0.3f * (v + 54.387f)) * dt;
        auto now = v > 0.f;
        count += cast(now & ~above, i32);
        above = now;
      }
      store(voltage + i, v, {.mask = mask});
      store(fired + i, count, {.mask = mask});
    }).grid([](const NeuronCfg& c, const float*, float*, int32_t*, int n, int, float) { return Grid{cdiv(n, c.B)}; });
Register r5("hodgkin", [](Env& e) {
  const int n = e.big ? 1 << 20 : 301, steps = e.big ? 1000 : 600;
  auto in = random<float>(e, n, 0, 20);
  auto v = constant<float>(e, n, NAN);
  auto fired = constant<int32_t>(e, n, -1);
  Job j;
  j.add(hodgkin, NeuronCfg{}, in.p, v.p, fired.p, n, steps, .02f);
  j.check = [=]() -> std::string {
    std::vector<double> volts, counts;
    const double dt = .02f;
    for (int i = 0; i < n; ++i) {
      double v = -65, m = .05, h = .6, g = .32;
      int count = 0;
      bool above = false;
      auto ratio = [](double x) { return std::abs(x) < 1e-4 ? 1 + x / 2 : x / (1 - std::exp(-x)); };
      auto step = [&](double& gate, double a, double b) {
        gate = a / (a + b) + (gate - a / (a + b)) * std::exp(-(a + b) * dt);
      };
      for (int t = 0; t < steps; ++t) {
        step(m, ratio((v + 40) / 10), 4 * std::exp(-(v + 65) / 18));
        step(h, .07 * std::exp(-(v + 65) / 20), 1 / (1 + std::exp(-(v + 35) / 10)));
        step(g, .1 * ratio((v + 55) / 10), .125 * std::exp(-(v + 65) / 80));
        v += dt * (in[i] - 120 * m * m * m * h * (v - 50) - 36 * g * g * g * g * (v + 77) - .3 * (v + 54.387));
        count += v > 0 && !above, above = v > 0;
      }
      volts.push_back(v), counts.push_back(count);
    }
    const auto wrong = agree(fired.now(), counts, .1, 0);
    return wrong.empty() ? agree(v.now(), volts, .2, 2e-2) : wrong;
  };
  return j;
});

}  // namespace reactions_and_pairs
}  // namespace users
