// pair_forces.cpp - molecular dynamics with lists of neighbours, as first written: pairs, triples, random forces
// between pairs, bonds that keep their length, charges that read a grid.
#include "tests/users/use.h"
namespace users {
namespace pair_forces {

struct ListCfg {
  int BLOCK = 128;
};
struct Box {
  int n, most;
  double side;
  std::vector<float> x;           // 4 per particle: place and charge
  std::vector<int> counts, list;  // list [most, n]: neighbour k of every particle lies together
};
Box make_box(Env& e, int n, int most, double reach, bool both = true) {
  Box b{n, most, 0, std::vector<float>(size_t(4) * n), std::vector<int>(n), std::vector<int>(size_t(n) * most)};
  const int m = int(std::ceil(std::cbrt(double(n))));
  b.side = m;
  if (!e.device) return b;
  for (int i = 0; i < n; ++i) {
    for (int d = 0; d < 3; ++d)
      b.x[4 * i + d] = float((d == 0 ? i % m : d == 1 ? i / m % m : i / m / m) + .4 * (e.uniform() - .5));
    b.x[4 * i + 3] = float(e.uniform() - .5);
  }
  const int r = int(reach) + 1;
  for (int i = 0; i < n; ++i)
    for (int dz = -r; dz <= r; ++dz)
      for (int dy = -r; dy <= r; ++dy)
        for (int dx = -r; dx <= r; ++dx) {
          auto wrap = [&](int v) { return (v + m) % m; };
          const int k = (wrap(i / m / m + dz) * m + wrap(i / m % m + dy)) * m + wrap(i % m + dx);
          if (k >= n || k == i || (!both && k < i) || b.counts[i] >= most) continue;
          double s = 0;
          for (int d = 0; d < 3; ++d) {
            double v = b.x[4 * i + d] - b.x[4 * k + d];
            v -= b.side * std::round(v / b.side);
            s += v * v;
          }
          if (s < (reach + .3) * (reach + .3)) b.list[size_t(b.counts[i]++) * n + i] = k;
        }
  return b;
}

// --- Lennard-Jones over a list that holds both directions: forces and energies, no atomics
auto lj = kernel("user_lj_list", [](const ListCfg& c, Ptr<const float> x, Ptr<const int> counts, Ptr<const int> list,
                                    Ptr<float> f, I32 n, F32 side, F32 cut2) {
            auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
            auto in = i < n;
            auto xi = load(x + 4 * i, {.mask = in}), yi = load(x + 4 * i + 1, {.mask = in}),
                 zi = load(x + 4 * i + 2, {.mask = in});
            auto count = load(counts + i, {.mask = in});
            Tile fx = zeros({c.BLOCK}, f32), fy = zeros({c.BLOCK}, f32), fz = zeros({c.BLOCK}, f32);
            Tile energy = zeros({c.BLOCK}, f32);
            auto inv = 1.f / side;
            for (auto k : range(0, max(count))) {
              auto on = k < count;
              auto j = load(list + k * n + i, {.mask = on});
              auto dx = xi - load(x + 4 * j, {.mask = on}), dy = yi - load(x + 4 * j + 1, {.mask = on}),
                   dz = zi - load(x + 4 * j + 2, {.mask = on});
              dx -= side * rint(dx * inv), dy -= side * rint(dy * inv), dz -= side * rint(dz * inv);
              auto r2 = dx * dx + dy * dy + dz * dz;
              auto near = on & (r2 < cut2);
              auto s = 1.f / where(near, r2, 1.f);
              auto s6 = s * s * s;
              auto g = where(near, 24.f * s * s6 * (2.f * s6 - 1.f), 0.f);
              fx += g * dx, fy += g * dy, fz += g * dz;
              energy += where(near, 2.f * s6 * (s6 - 1.f), 0.f);
            }
            store(f + 4 * i, fx, {.mask = in}), store(f + 4 * i + 1, fy, {.mask = in});
            store(f + 4 * i + 2, fz, {.mask = in}), store(f + 4 * i + 3, energy, {.mask = in});
          }).grid([](const ListCfg& c, const float*, const int*, const int*, float*, int n, float, float) {
  return Grid{cdiv(n, c.BLOCK)};
});
Register r1("lj_list", [](Env& e) {
  const int n = e.big ? 262144 : 343, most = e.big ? 96 : 80;
  auto b = make_box(e, n, most, 2.2);
  auto x = repeated<float>(e, size_t(4) * n, b.x);
  auto counts = repeated<int>(e, n, b.counts), list = repeated<int>(e, size_t(n) * most, b.list);
  auto f = constant<float>(e, size_t(4) * n, NAN);
  Job j;
  j.add(lj, ListCfg{e.field("BLOCK", 128)}, x.p, counts.p, list.p, f.p, n, float(b.side), 2.2f * 2.2f);
  j.check = [=] {
    std::vector<double> want(size_t(4) * n);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < b.counts[i]; ++k) {
        const int l = b.list[size_t(k) * n + i];
        double d[3], s = 0;
        for (int m = 0; m < 3; ++m) {
          d[m] = double(b.x[4 * i + m]) - b.x[4 * l + m];
          d[m] -= b.side * std::round(d[m] / b.side), s += d[m] * d[m];
        }
        if (s >= 2.2 * 2.2) continue;
        const double q = 1 / (s * s * s);
        for (int m = 0; m < 3; ++m) want[4 * i + m] += 24 / s * q * (2 * q - 1) * d[m];
        want[4 * i + 3] += 2 * q * (q - 1);
      }
    return agree(f.now(), want, 5e-2, 1e-3);
  };
  return j;
});

// --- Stillinger-Weber: the energy of angles at every particle and the forces on all three, with atomics
auto triples = kernel("user_angles_list", [](const ListCfg& c, Ptr<const float> x, Ptr<const int> counts,
                                             Ptr<const int> list, Ptr<float> f, I32 n, F32 side, F32 cut) {
                 auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
                 auto in = i < n;
                 auto inv = 1.f / side;
                 auto place = [&](Tile at, Tile on) {
                   return std::array<Tile, 3>{load(x + 4 * at, {.mask = on}), load(x + 4 * at + 1, {.mask = on}),
                                              load(x + 4 * at + 2, {.mask = on})};
                 };
                 auto p = place(i, in);
                 auto apart = [&](Tile at, Tile on) {
                   auto q = place(at, on);
                   for (int d = 0; d < 3; ++d) {
                     q[d] -= p[d];
                     q[d] -= side * rint(q[d] * inv);
                   }
                   return q;
                 };
                 auto count = load(counts + i, {.mask = in});
                 std::array<Tile, 3> own{zeros({c.BLOCK}, f32), zeros({c.BLOCK}, f32), zeros({c.BLOCK}, f32)};
                 Tile energy = zeros({c.BLOCK}, f32);
                 for (auto k : range(0, max(count))) {
                   auto onk = k < count;
                   auto a = load(list + k * n + i, {.mask = onk});
                   auto u = apart(a, onk);
                   auto ru = sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
                   onk = onk & (ru < cut);
                   ru = where(onk, ru, .5f * cut);
                   auto gu = exp(1.2f / (ru - cut));
                   auto du = -1.2f / ((ru - cut) * (ru - cut));  // of log gu
                   std::array<Tile, 3> fa{zeros({c.BLOCK}, f32), zeros({c.BLOCK}, f32), zeros({c.BLOCK}, f32)};
                   for (auto l : range(k + 1, max(count))) {
                     auto on = onk & (l < count);
                     auto b = load(list + l * n + i, {.mask = on});
                     auto v = apart(b, on);
                     auto rv = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
                     on = on & (rv < cut);
                     rv = where(on, rv, .5f * cut);
                     auto gv = exp(1.2f / (rv - cut));
                     auto dv = -1.2f / ((rv - cut) * (rv - cut));
                     auto co = (u[0] * v[0] + u[1] * v[1] + u[2] * v[2]) / (ru * rv);
                     auto w = co + 1.f / 3;
                     auto h = where(on, gu * gv * w, 0.f);
                     energy += h * w;
                     for (int d = 0; d < 3; ++d) {
                       auto nu = u[d] / ru, nv = v[d] / rv;
                       // -dE/du and -dE/dv
                       auto fu = -(2.f * h * (nv - co * nu) / ru + h * w * du * nu);
                       auto fv = -(2.f * h * (nu - co * nv) / rv + h * w * dv * nv);
                       fa[d] += fu, own[d] -= fu + fv;
                       atomic_add(f + 4 * b + d, fv, {.mask = on});
                     }
                   }
                   for (int d = 0; d < 3; ++d) atomic_add(f + 4 * a + d, fa[d], {.mask = onk});
                 }
                 for (int d = 0; d < 3; ++d) atomic_add(f + 4 * i + d, own[d], {.mask = in});
                 atomic_add(f + 4 * i + 3, energy, {.mask = in});
               }).grid([](const ListCfg& c, const float*, const int*, const int*, float*, int n, float, float) {
  return Grid{cdiv(n, c.BLOCK)};
});
Register r2("angles_list", [](Env& e) {
  const int n = e.big ? 262144 : 343, most = 24;
  const double cut = 1.5;
  auto b = make_box(e, n, most, cut);
  auto x = repeated<float>(e, size_t(4) * n, b.x);
  auto counts = repeated<int>(e, n, b.counts), list = repeated<int>(e, size_t(n) * most, b.list);
  auto f = constant<float>(e, size_t(4) * n, 0);
  Job j;
  j.add(triples, ListCfg{e.field("BLOCK", 128)}, x.p, counts.p, list.p, f.p, n, float(b.side), float(cut));
  j.check = [=] {
    std::vector<double> want(size_t(4) * n), z(b.x.begin(), b.x.end());
    auto energy = [&](int i) {
      double sum = 0;
      for (int k = 0; k < b.counts[i]; ++k)
        for (int l = k + 1; l < b.counts[i]; ++l) {
          double u[3], v[3], uu = 0, vv = 0, uv = 0;
          for (int d = 0; d < 3; ++d) {
            u[d] = z[4 * b.list[size_t(k) * n + i] + d] - z[4 * i + d], u[d] -= b.side * std::round(u[d] / b.side);
            v[d] = z[4 * b.list[size_t(l) * n + i] + d] - z[4 * i + d], v[d] -= b.side * std::round(v[d] / b.side);
            uu += u[d] * u[d], vv += v[d] * v[d], uv += u[d] * v[d];
          }
          uu = std::sqrt(uu), vv = std::sqrt(vv);
          if (uu >= cut || vv >= cut) continue;
          const double w = uv / (uu * vv) + 1. / 3;
          sum += std::exp(1.2 / (uu - cut) + 1.2 / (vv - cut)) * w * w;
        }
      return sum;
    };
    for (int i = 0; i < n; ++i) {
      want[4 * i + 3] = energy(i);
      std::vector<int> ends{i};
      for (int k = 0; k < b.counts[i]; ++k) ends.push_back(b.list[size_t(k) * n + i]);
      for (int a : ends)
        for (int d = 0; d < 3; ++d) {
          const double was = z[4 * a + d];
          z[4 * a + d] = was + 1e-5;
          const double up = energy(i);
          z[4 * a + d] = was - 1e-5;
          want[4 * a + d] -= (up - energy(i)) / 2e-5;
          z[4 * a + d] = was;
        }
    }
    return agree(f.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- dissipative particle dynamics: conservative, drag and random forces, the random number of a pair made of both
// ends
auto dpd =
    kernel("user_dpd",
           [](const ListCfg& c, Tensor<const float, 2> X, Tensor<const float, 2> V, Ptr<const int> counts,
              Tensor<const int, 2> list, Tensor<float, 2> F, F32 side,
              I32 step) {  // X, V, F [3, n], list [most, n]
             auto first = program_id(0) * c.BLOCK;
             auto i = first + arange(0, c.BLOCK);
             auto n = X.dim(1);
             auto in = i < n;
             std::array<Tile, 3> x, v, f;
             for (int d = 0; d < 3; ++d)
               x[d] = X.load({d, first}, {c.BLOCK}), v[d] = V.load({d, first}, {c.BLOCK}), f[d] = zeros({c.BLOCK}, f32);
             auto count = load(counts + i, {.mask = in});
             for (auto k : range(0, max(count))) {
               auto on = k < count;
               auto j = list.load({k, first}, {c.BLOCK});
               std::array<Tile, 3> dx, dv;
               Tile r2 = zeros({c.BLOCK}, f32), rv = zeros({c.BLOCK}, f32);
               for (int d = 0; d < 3; ++d) {
                 dx[d] = x[d] - load(X.ptr() + d * n + j, {.mask = on});
                 dx[d] -= side * rint(dx[d] / side);
                 dv[d] = v[d] - load(V.ptr() + d * n + j, {.mask = on});
                 r2 += dx[d] * dx[d], rv += dx[d] * dv[d];
               }
               auto r = sqrt(r2);
               auto w = where(on & (r < 1.5f), 1.f - r / 1.5f, 0.f);
               auto seed = bitcast(min(i, j), u32) * 0x9E3779B1u + bitcast(step, u32);
               auto noise = (rand(seed, bitcast(max(i, j), u32)) - .5f) * 3.4641016f;
               auto g = (25.f * w - 4.5f * w * w * rv / max(r, 1e-6f) + 3.f * w * noise) / max(r, 1e-6f);
               for (int d = 0; d < 3; ++d) f[d] += g * dx[d];
             }
             for (int d = 0; d < 3; ++d) F.store({d, first}, f[d]);
           })
        .grid([](const ListCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[1], c.BLOCK)}; });
Register r3("dpd", [](Env& e) {
  const int n = e.big ? 262144 : 343, most = 40;
  auto b = make_box(e, n, most, 1.5);
  std::vector<float> places(size_t(3) * n);
  for (int i = 0; i < n; ++i)
    for (int d = 0; d < 3; ++d) places[size_t(d) * n + i] = b.x[4 * i + d];
  auto x = repeated<float>(e, size_t(3) * n, places), v = random<float>(e, size_t(3) * n);
  auto counts = repeated<int>(e, n, b.counts), list = repeated<int>(e, size_t(n) * most, b.list);
  auto f = constant<float>(e, size_t(3) * n, NAN);
  Job j;
  j.add(dpd, ListCfg{e.field("BLOCK", 128)}, x.view(3, n), v.view(3, n), counts.p, list.view(most, n), f.view(3, n),
        float(b.side), 17);
  j.check = [=] {
    std::vector<double> want(size_t(3) * n);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < b.counts[i]; ++k) {
        const int l = b.list[size_t(k) * n + i];
        double d[3], s = 0, rv = 0;
        for (int m = 0; m < 3; ++m) {
          d[m] = x[size_t(m) * n + i] - x[size_t(m) * n + l], d[m] -= b.side * std::round(d[m] / b.side);
          s += d[m] * d[m], rv += d[m] * (v[size_t(m) * n + i] - v[size_t(m) * n + l]);
        }
        const double r = std::sqrt(s);
        if (r >= 1.5) continue;
        const double w = 1 - r / 1.5;
        const uint32_t word =
            reference_philox(uint32_t(std::min(i, l)) * 0x9E3779B1u + 17u, uint32_t(std::max(i, l)))[0];
        const double noise = ((word >> 8) * 0x1p-24 - .5) * 3.4641016;
        const double g = (25 * w - 4.5 * w * w * rv / r + 3 * w * noise) / r;
        for (int m = 0; m < 3; ++m) want[size_t(m) * n + i] += g * d[m];
      }
    return agree(f.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- SHAKE: three atoms of a water each, bonds put right until all are within the tolerance
auto shake =
    kernel("user_shake",
           [](const ListCfg& c, Ptr<float> x, Ptr<const float> before, Ptr<int> turns, I32 n,
              F32 tolerance) {  // x [molecules, 3, 3]
             auto m = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
             auto in = m < n;
             std::array<std::array<Tile, 3>, 3> p, q;
             for (int a = 0; a < 3; ++a)
               for (int d = 0; d < 3; ++d) {
                 p[a][d] = load(x + m * 9 + (a * 3 + d), {.mask = in});
                 q[a][d] = load(before + m * 9 + (a * 3 + d), {.mask = in});
               }
             const float inverse[3] = {1 / 16.f, 1, 1}, length2[3] = {1, 1, 2.67f};
             const int from[3] = {0, 0, 1}, to[3] = {1, 2, 2};
             Tile count = zeros({c.BLOCK}, i32), active = in;
             while_([&] { return any(active); },
                    [&] {
                      Tile worst = zeros({c.BLOCK}, f32);
                      for (int b = 0; b < 3; ++b) {
                        const int s = from[b], t = to[b];
                        Tile rr = zeros({c.BLOCK}, f32), rq = zeros({c.BLOCK}, f32);
                        for (int d = 0; d < 3; ++d) {
                          auto r = p[s][d] - p[t][d];
                          rr += r * r, rq += r * (q[s][d] - q[t][d]);
                        }
                        auto off = rr - length2[b];
                        worst = max(worst, abs(off) / length2[b]);
                        auto g = where(active, off / (2.f * rq * (inverse[s] + inverse[t])), 0.f);
                        for (int d = 0; d < 3; ++d) {
                          auto r = q[s][d] - q[t][d];
                          p[s][d] -= g * r * inverse[s], p[t][d] += g * r * inverse[t];
                        }
                      }
                      count += cast(active, i32);
                      active = active & (worst > tolerance) & (count < 50);
                    });
             for (int a = 0; a < 3; ++a)
               for (int d = 0; d < 3; ++d) store(x + m * 9 + (a * 3 + d), p[a][d], {.mask = in});
             store(turns + m, count, {.mask = in});
           })
        .grid([](const ListCfg& c, float*, const float*, int*, int n, float) { return Grid{cdiv(n, c.BLOCK)}; });
Register r4("shake", [](Env& e) {
  const int n = e.big ? 1 << 20 : 333;
  const float shape[9] = {0, 0, 0, 1, 0, 0, -.335f, .9422f, 0};
  auto before = filled<float>(e, size_t(9) * n, [&](size_t i) { return shape[i % 9] + float(i / 9 % 7); });
  auto x = filled<float>(e, size_t(9) * n,
                         [&](size_t i) { return shape[i % 9] + float(i / 9 % 7) + float(.1 * (e.uniform() - .5)); });
  auto turns = constant<int>(e, n, -1);
  Job j;
  j.mbytes = 112e-6 * n;
  j.add(shake, ListCfg{e.field("BLOCK", 128)}, x.p, before.p, turns.p, n, 1e-4f);
  j.check = [=]() -> std::string {
    const auto got = x.now();
    const auto t = turns.now();
    for (int m = 0; m < n; ++m) {
      auto d2 = [&](int a, int b) {
        double s = 0;
        for (int d = 0; d < 3; ++d) s += std::pow(double(got[9 * m + 3 * a + d]) - got[9 * m + 3 * b + d], 2);
        return s;
      };
      if (std::abs(d2(0, 1) - 1) > 1e-3 || std::abs(d2(0, 2) - 1) > 1e-3 || std::abs(d2(1, 2) - 2.67) > 3e-3)
        return "a bond has not its length";
      for (int d = 0; d < 3; ++d) {  // nothing moves as a whole
        double moved = 0;
        const double mass[3] = {16, 1, 1};
        for (int a = 0; a < 3; ++a) moved += mass[a] * (got[9 * m + 3 * a + d] - x[9 * m + 3 * a + d]);
        if (std::abs(moved) > 1e-4) return "a molecule moved";
      }
      if (t[m] < 1 || t[m] > 50) return "turns";
    }
    return "";
  };
  return j;
});

// --- PME: forces on charges from a grid of potentials, cubic splines and their slopes, 64 points for a charge
auto pme_gather =
    kernel("user_pme_gather", [](const ListCfg& c, Ptr<const float> x, Tensor<const float, 3> grid, Ptr<float> f, I32 n,
                                 F32 scale) {
      auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
      auto in = i < n;
      std::array<Tile, 3> cell;
      std::array<std::array<Tile, 4>, 3> w, s;
      for (int d = 0; d < 3; ++d) {
        auto u = load(x + 4 * i + d, {.mask = in}) * scale;
        cell[d] = cast(floor(u), i32);
        auto t = u - floor(u), r = 1.f - t;
        w[d] = {r * r * r / 6.f, (3.f * t * t * t - 6.f * t * t + 4.f) / 6.f,
                (3.f * r * r * r - 6.f * r * r + 4.f) / 6.f, t * t * t / 6.f};
        s[d] = {-.5f * r * r, 1.5f * t * t - 2.f * t, 2.f * r - 1.5f * r * r, .5f * t * t};
      }
      Tile fx = zeros({c.BLOCK}, f32), fy = zeros({c.BLOCK}, f32), fz = zeros({c.BLOCK}, f32);
      auto G = grid.dim(0);
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
          auto row = floor_mod(cell[2] + (a - 1), G) * G + floor_mod(cell[1] + (b - 1), G);
          Tile v = zeros({c.BLOCK}, f32), dv = zeros({c.BLOCK}, f32);
          for (int k = 0; k < 4; ++k) {
            auto g = load(grid.ptr() + row * G + floor_mod(cell[0] + (k - 1), G), {.mask = in});
            v += g * w[0][k], dv += g * s[0][k];
          }
          fx -= dv * w[1][b] * w[2][a], fy -= v * s[1][b] * w[2][a], fz -= v * w[1][b] * s[2][a];
        }
      auto q = load(x + 4 * i + 3, {.mask = in}) * scale;
      store(f + 3 * i, fx * q, {.mask = in}), store(f + 3 * i + 1, fy * q, {.mask = in});
      store(f + 3 * i + 2, fz * q, {.mask = in});
    }).grid([](const ListCfg& c, const float*, const auto&, float*, int n, float) { return Grid{cdiv(n, c.BLOCK)}; });
Register r5("pme_gather", [](Env& e) {
  const int n = e.big ? 262144 : 343, G = e.big ? 128 : 16;
  auto b = make_box(e, n, 1, .1);
  auto x = repeated<float>(e, size_t(4) * n, b.x);
  auto grid = random<float>(e, size_t(G) * G * G);
  auto f = constant<float>(e, size_t(3) * n, NAN);
  const double scale = G / b.side;
  Job j;
  j.add(pme_gather, ListCfg{e.field("BLOCK", 128)}, x.p, grid.view(G, G, G), f.p, n, float(scale));
  j.check = [=] {
    std::vector<double> want(size_t(3) * n);
    auto spline = [](double t) {
      t = std::abs(t);
      return t < 1 ? 2. / 3 - t * t + t * t * t / 2 : t < 2 ? (2 - t) * (2 - t) * (2 - t) / 6 : 0;
    };
    for (int i = 0; i < n; ++i) {
      auto potential = [&](std::array<double, 3> at) {
        double sum = 0;
        int o[3];
        for (int d = 0; d < 3; ++d) o[d] = int(std::floor(at[d]));
        for (int a = -2; a < 4; ++a)
          for (int c = -2; c < 4; ++c)
            for (int k = -2; k < 4; ++k) {
              auto w = [&](int v) { return ((v % G) + G) % G; };
              sum += grid[(size_t(w(o[2] + a)) * G + w(o[1] + c)) * G + w(o[0] + k)] * spline(at[2] - o[2] - a) *
                     spline(at[1] - o[1] - c) * spline(at[0] - o[0] - k);
            }
        return sum;
      };
      std::array<double, 3> at;
      for (int d = 0; d < 3; ++d) at[d] = double(b.x[4 * i + d]) * float(scale);
      for (int d = 0; d < 3; ++d) {
        auto up = at, down = at;
        up[d] += 1e-5, down[d] -= 1e-5;
        want[3 * i + d] = -(potential(up) - potential(down)) / 2e-5 * b.x[4 * i + 3] * scale;
      }
    }
    return agree(f.now(), want, 2e-3, 2e-3);
  };
  return j;
});

}  // namespace pair_forces
}  // namespace users
