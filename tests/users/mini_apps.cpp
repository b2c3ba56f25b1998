// mini_apps.cpp - kernels of benchmarks of large machines: docking (miniBUDE), self energies (BerkeleyGW's GPP), a
// sweep of discrete ordinates (SNAP), embedded atoms (LAMMPS), a clover term (QUDA), fluxes through edges (unstructured
// Euler).
#include <complex>

#include "tests/users/use.h"
namespace users {
namespace mini_apps {

// --- docking: the energy of a ligand in many poses before a protein; a pose an element, two loops over atoms
struct DockCfg {
  int B = 512, warps = 4, unroll = 4;
};
constexpr float kHardness = 38, kNpnp = 5.5f, kNpp = 1, kElectro = 45;
auto dock =
    kernel("user_dock", [](const DockCfg& c, Ptr<const float> protein, Ptr<const float> ligand, Ptr<const float> field,
                           Ptr<const float> poses, Ptr<float> energy, I32 proteins, I32 ligands, I32 n) {
      // protein, ligand [atoms, 4]: place and number of the kind; field [kinds, 4]: bond, radius, fat, charge
      num_warps(c.warps);
      auto pose = program_id(0) * c.B + arange(0, c.B);
      auto in = pose < n;
      std::array<Tile, 6> t;
      for (int k = 0; k < 6; ++k) t[k] = load(poses + cast(n, i64) * k + pose, {.mask = in});
      auto sx = sin(t[0]), cx = cos(t[0]), sy = sin(t[1]), cy = cos(t[1]), sz = sin(t[2]), cz = cos(t[2]);
      Tile total = zeros({c.B}, f32);
      for (auto l : range(ligands)) {
        auto x = load(ligand + l * 4), y = load(ligand + l * 4 + 1), z = load(ligand + l * 4 + 2);
        auto kind = cast(load(ligand + l * 4 + 3), i32);
        auto bond = load(field + kind * 4), radius = load(field + kind * 4 + 1), fat = load(field + kind * 4 + 2),
             charge = load(field + kind * 4 + 3);
        auto px = cy * cz * x + (sx * sy * cz - cx * sz) * y + (cx * sy * cz + sx * sz) * z + t[3];
        auto py = cy * sz * x + (sx * sy * sz + cx * cz) * y + (cx * sy * sz - sx * cz) * z + t[4];
        auto pz = -sy * x + sx * cy * y + cx * cy * z + t[5];
        for (auto p : range(0, proteins, 1, {.unroll = c.unroll})) {
          auto qx = load(protein + p * 4), qy = load(protein + p * 4 + 1), qz = load(protein + p * 4 + 2);
          auto other = cast(load(protein + p * 4 + 3), i32);
          auto qbond = load(field + other * 4), qradius = load(field + other * 4 + 1),
               qfat = load(field + other * 4 + 2), qcharge = load(field + other * 4 + 3);
          auto reach = radius + qradius;
          auto both = (bond == 70.f) & (qbond == 70.f), repels = (bond == 69.f) | (qbond == 69.f);
          auto far = where(both, 4.f, 2.f), slope = where(both, .25f, .5f);
          auto f = fat * where((qfat > 0.f) & (fat < 0.f), -1.f, 1.f);
          auto qf = qfat * where((qfat < 0.f) & (fat > 0.f), -1.f, 1.f);
          auto melts = where(qfat < 0.f, where(fat < 0.f, kNpnp, kNpp), where(fat < 0.f, kNpp, -1e30f));
          auto q = charge * qcharge, g = where(qfat != 0.f, f + qf, 0.f);
          auto dx = px - qx, dy = py - qy, dz = pz - qz;
          auto r = sqrt(dx * dx + dy * dy + dz * dz);
          auto d = r - reach;
          auto inside = d < 0.f;
          total += (1.f - r * (1.f / reach)) * where(inside, 2 * kHardness, 0.f);
          auto e = q * (where(inside, 1.f, 1.f - d * slope) * where(d < far, 1.f, 0.f));
          total += where(repels, -abs(e), e) * kElectro;
          total += where(d < melts, g, 0.f) * where(inside, 1.f, 1.f - d * (1.f / melts));
        }
      }
      store(energy + pose, total * .5f, {.mask = in});
    }).grid([](const DockCfg& c, auto, auto, auto, auto, auto, int, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("dock", [](Env& e) {
  DockCfg c;
  if (!e.big) c = {64, 1, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps), c.unroll = e.field("unroll", c.unroll);
  const int P = e.big ? 938 : 37, L = e.big ? 26 : 5, n = e.big ? 65536 : 83, K = 34;
  auto atoms = [&](int many, double size) {
    return filled<float>(e, many * 4, [&](size_t i) {
      return i % 4 == 3 ? float(int(e.uniform() * K)) : float((e.uniform() - .5) * size);
    });
  };
  auto protein = atoms(P, e.big ? 40 : 16), ligand = atoms(L, 8);
  auto field = filled<float>(e, K * 4, [&](size_t i) {
    const double u = e.uniform();
    return i % 4 == 0   ? float(u < .3   ? 70
                                : u < .5 ? 69
                                         : 0)
           : i % 4 == 1 ? float(1 + u)
           : i % 4 == 2 ? float(u < .3 ? 0 : u - .6)
                        : float(u - .5);
  });
  auto poses = random<float>(e, size_t(6) * n, -3, 3);
  auto energy = constant<float>(e, n, NAN);
  Job j;
  j.gflop = 1e-9 * 36 * P * L * double(n);
  j.add(dock, c, protein.p, ligand.p, field.p, poses.p, energy.p, P, L, n);
  j.check = [=] {
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i) {
      double t[6];
      for (int k = 0; k < 6; ++k) t[k] = poses[size_t(k) * n + i];
      const double sx = sin(t[0]), cx = cos(t[0]), sy = sin(t[1]), cy = cos(t[1]), sz = sin(t[2]), cz = cos(t[2]);
      for (int l = 0; l < L; ++l) {
        const double x = ligand[l * 4], y = ligand[l * 4 + 1], z = ligand[l * 4 + 2];
        const int a = int(ligand[l * 4 + 3]) * 4;
        const double px = cy * cz * x + (sx * sy * cz - cx * sz) * y + (cx * sy * cz + sx * sz) * z + t[3];
        const double py = cy * sz * x + (sx * sy * sz + cx * cz) * y + (cx * sy * sz - sx * cz) * z + t[4];
        const double pz = -sy * x + sx * cy * y + cx * cy * z + t[5];
        for (int p = 0; p < P; ++p) {
          const int b = int(protein[p * 4 + 3]) * 4;
          const double r = std::sqrt(std::pow(px - protein[p * 4], 2) + std::pow(py - protein[p * 4 + 1], 2) +
                                     std::pow(pz - protein[p * 4 + 2], 2));
          const double reach = field[a + 1] + field[b + 1], d = r - reach, lf = field[a + 2], pf = field[b + 2];
          const bool both = field[a] == 70 && field[b] == 70, repels = field[a] == 69 || field[b] == 69;
          if (d < 0) want[i] += (1 - r / reach) * 2 * kHardness;
          double el = d < (both ? 4 : 2) ? field[a + 3] * field[b + 3] * (d < 0 ? 1 : 1 - d * (both ? .25 : .5)) : 0;
          want[i] += (repels ? -std::abs(el) : el) * kElectro;
          const double melts = pf < 0 ? (lf < 0 ? kNpnp : kNpp) : lf < 0 ? kNpp : -1e30;
          if (pf != 0 && d < melts)
            want[i] +=
                (lf * (pf > 0 && lf < 0 ? -1 : 1) + pf * (pf < 0 && lf > 0 ? -1 : 1)) * (d < 0 ? 1 : 1 - d / melts);
        }
      }
      want[i] /= 2;
    }
    return agree(energy.now(), want, 1e-2, 1e-4);
  };
  return j;
});

// --- self energies by plasmon poles (GPP): for three energies sums over bands, G and G' of complex f64 numbers
struct PoleCfg {
  int BN = 4, BG = 32, warps = 1;
};
struct Z {
  Tile re, im;
};
Z operator*(const Z& a, const Z& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
auto poles = kernel("user_poles", [](const PoleCfg& c, Ptr<const double> energies, Ptr<const double> wtilde,
                                     Ptr<const double> eps, Ptr<const double> left, Ptr<const double> right,
                                     Ptr<const double> coulomb, Ptr<double> out, I32 N, I32 G) {
               // energies [N, 3]; wtilde, eps [G', G, 2]; left [N, G, 2], right [N, G', 2]; out [3, 2]
               num_warps(c.warps);
               auto other = program_id(0), n = program_id(1) * c.BN + arange(0, c.BN);
               auto is_band = n < N;
               auto number = [&](Ptr<const double> p, Tile at, Tile m) {
                 return Z{load(p + at * 2, {.mask = m}), load(p + at * 2 + 1, {.mask = m})};
               };
               auto v = load(coulomb + other);
               auto r = number(right, n * G + other, is_band);
               std::array<Tile, 3> wx;
               for (int w = 0; w < 3; ++w) wx[w] = load(energies + n * 3 + w, {.mask = is_band, .other = 1}).col();
               std::array<Z, 3> sums;
               for (auto& s : sums) s = {zeros({c.BN, c.BG}, f64), zeros({c.BN, c.BG}, f64)};
               for (auto g0 : range(0, G, c.BG)) {
                 auto g = g0 + arange(0, c.BG);
                 auto in = g < G;
                 auto wt = number(wtilde, other * G + g, in), ie = number(eps, other * G + g, in);
                 wt = {wt.re.row(), wt.im.row()}, ie = {ie.re.row(), ie.im.row()};
                 auto l = number(left, n.col() * G + g.row(), is_band.col() & in.row());
                 auto factor = ie * l;
                 for (int w = 0; w < 3; ++w) {
                   Z d{wx[w] - wt.re, -wt.im};
                   auto size = d.re * d.re + d.im * d.im;
                   auto inverse = where(size > 1e-12, 1. / size, 0.);
                   auto pole = wt * Z{d.re * inverse, -d.im * inverse} * factor;
                   sums[w].re += pole.re, sums[w].im += pole.im;
                 }
               }
               for (int w = 0; w < 3; ++w) {
                 // conj(right) times the sum over G
                 auto re = sum(sums[w].re, axis(1)), im = sum(sums[w].im, axis(1));
                 atomic_add(out + w * 2, .5 * v * sum(r.re.col() * re + r.im.col() * im));
                 atomic_add(out + w * 2 + 1, .5 * v * sum(r.re.col() * im - r.im.col() * re));
               }
             }).grid([](const PoleCfg& c, auto, auto, auto, auto, auto, auto, auto, int N, int G) {
  return Grid{G, cdiv(N, c.BN)};
});
Register r2("poles", [](Env& e) {
  PoleCfg c;
  if (!e.big) c = {2, 16, 1};
  c.BN = e.field("BN", c.BN), c.BG = e.field("BG", c.BG), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 128 : 5, G = e.big ? 1500 : 37;
  auto energies = random<double>(e, N * 3, 2, 4);
  auto wt = random<double>(e, size_t(G) * G * 2), eps = random<double>(e, size_t(G) * G * 2);
  auto left = random<double>(e, size_t(N) * G * 2), right = random<double>(e, size_t(N) * G * 2);
  auto v = random<double>(e, G);
  auto out = constant<double>(e, 6, 0);
  Job j;
  j.gflop = 1e-9 * 3 * 30 * double(N) * G * G;
  j.inTurn = true;
  j.add(poles, c, energies.p, wt.p, eps.p, left.p, right.p, v.p, out.p, N, G);
  j.check = [=] {
    using C = std::complex<double>;
    auto z = [](const Array<double>& a, size_t i) { return C(a[2 * i], a[2 * i + 1]); };
    std::vector<double> want(6);
    for (int n = 0; n < N; ++n)
      for (int p = 0; p < G; ++p)
        for (int g = 0; g < G; ++g)
          for (int w = 0; w < 3; ++w) {
            const C pole = z(wt, size_t(p) * G + g) / (energies[n * 3 + w] - z(wt, size_t(p) * G + g));
            const C s = .5 * v[p] * std::conj(z(right, size_t(n) * G + p)) * pole * z(eps, size_t(p) * G + g) *
                        z(left, size_t(n) * G + g);
            want[w * 2] += s.real(), want[w * 2 + 1] += s.imag();
          }
    return agree(out.now(), want, 1e-9, 1e-9);
  };
  return j;
});

// --- a sweep of discrete ordinates (SNAP): cells need what left the cells before them along all three axes; a program
// a row of cells of a group, that waits for the rows above and before it, chunk by chunk
struct SweepCfg {
  int A = 64, chunk = 4, warps = 1;
};
auto sweep = kernel("user_sweep", [](const SweepCfg& c, Ptr<const double> source, Ptr<const double> sigma,
                                     Ptr<const double> angles, Ptr<double> alongY, Ptr<double> alongZ, Ptr<double> flux,
                                     Ptr<int32_t> ticket, Ptr<int32_t> done, I32 X, I32 Y, I32 Z, I32 G) {
               // source, sigma, flux [G, Z, Y, X]; angles [4, A]: three cosines and a weight; alongY, alongZ [G, Z, Y,
               // X, A]: what a row leaves for the next ones; done [G, Z, Y]: chunks
               num_warps(c.warps);
               auto turn = atomic_add(ticket, 1);  // groups fastest: rows that others wait for come first
               auto g = turn % G, row = turn / G, y = row % Y, z = row / Y;
               auto a = arange(0, c.A);
               auto mu = load(angles + a), eta = load(angles + c.A + a), xi = load(angles + 2 * c.A + a),
                    weight = load(angles + 3 * c.A + a);
               auto here = (g * Z + z) * Y + y;
               auto wait_for = [&](Tile other, Tile chunks) {
                 while_([&] { return atomic_add(done + other, 0, {.order = Order::acquire}) < chunks; }, [&] {});
               };
               Tile in_x = zeros({c.A}, f64);
               for (auto x0 : range(0, X, c.chunk)) {
                 auto chunks = x0 / c.chunk + 1;
                 if_(y > 0, [&] { wait_for(here - 1, chunks); });
                 if_(z > 0, [&] { wait_for(here - Y, chunks); });
                 for (auto x : range(x0, min(x0 + c.chunk, X))) {
                   auto cell = cast(here, i64) * X + x;
                   auto in_y = load(alongY + (cell - X) * c.A + a,
                                    {.mask = broadcast_to(y > 0, {c.A}), .cache = Cache::volatile_});
                   auto in_z = load(alongZ + (cell - cast(Y, i64) * X) * c.A + a,
                                    {.mask = broadcast_to(z > 0, {c.A}), .cache = Cache::volatile_});
                   auto q = load(source + cell), s = load(sigma + cell);
                   auto psi = (q + mu * in_x + eta * in_y + xi * in_z) / (s + mu + eta + xi);
                   auto out = [&](const Tile& in) { return max(2. * psi - in, 0.); };
                   in_x = out(in_x);
                   store(alongY + cell * c.A + a, out(in_y));
                   store(alongZ + cell * c.A + a, out(in_z));
                   store(flux + cell, sum(weight * psi));
                 }
                 atomic_exchange(done + here, chunks, {.order = Order::release});
               }
             }).grid([](const SweepCfg&, auto, auto, auto, auto, auto, auto, auto, auto, int, int Y, int Z, int G) {
  return Grid{Y * Z * G};
});
Register r3("sweep", [](Env& e) {
  SweepCfg c;
  if (!e.big) c = {16, 2, 1};
  c.chunk = e.field("chunk", c.chunk), c.warps = e.field("warps", c.warps);
  const int X = e.big ? 64 : 5, Y = e.big ? 32 : 3, Z = e.big ? 32 : 4, G = e.big ? 32 : 2, A = c.A;
  const size_t cells = size_t(G) * X * Y * Z;
  auto source = random<double>(e, cells, 0, 1), sigma = random<double>(e, cells, 0, 4),
       angles = random<double>(e, 4 * A, .1, 1);
  auto alongY = constant<double>(e, cells * A, NAN), alongZ = constant<double>(e, cells * A, NAN);
  auto flux = constant<double>(e, cells, NAN);
  auto ticket = constant<int32_t>(e, 1, 0), done = constant<int32_t>(e, size_t(G) * Y * Z, 0);
  Job j;
  j.mbytes = 32e-6 * cells * A;
  j.inTurn = true;
  restore(e, j, ticket, done);
  j.add(sweep, c, source.p, sigma.p, angles.p, alongY.p, alongZ.p, flux.p, ticket.p, done.p, X, Y, Z, G);
  j.check = [=] {
    std::vector<double> want(cells);
    for (int g = 0; g < G; ++g)
      for (int a = 0; a < A; ++a) {
        std::vector<double> iy(size_t(Z) * X), iz(size_t(Y) * X);
        for (int z = 0; z < Z; ++z)
          for (int y = 0; y < Y; ++y) {
            double ix = 0;
            for (int x = 0; x < X; ++x) {
              const size_t cell = ((size_t(g) * Z + z) * Y + y) * X + x;
              double &fy = iy[z * X + x], &fz = iz[y * X + x];
              const double mu = angles[a], eta = angles[A + a], xi = angles[2 * A + a];
              const double psi = (source[cell] + mu * ix + eta * fy + xi * fz) / (sigma[cell] + mu + eta + xi);
              ix = std::max(2 * psi - ix, 0.), fy = std::max(2 * psi - fy, 0.), fz = std::max(2 * psi - fz, 0.);
              want[cell] += angles[3 * A + a] * psi;
            }
          }
      }
    return agree(flux.now(), want, 1e-12, 1e-10);
  };
  return j;
});

// --- embedded atoms: densities from a table of splines, what embedding costs, forces; neighbours column by column
struct EmbedCfg {
  int B = 128, warps = 4;
};
/// The cubic a x^3 + b x^2 + c x + d of the table's row below r, four numbers, and its derivative.
std::pair<Tile, Tile> spline(Ptr<const float> table, const Tile& r, float per, int rows, const Tile& m) {
  auto x = r * per;
  auto row = clamp(cast(x, i32), 0, rows - 1);
  auto t = x - cast(row, f32);
  auto at = [&](int k) { return load(table + row * 4 + k, {.mask = m}); };
  auto a = at(0), b = at(1), c = at(2), d = at(3);
  return {((a * t + b) * t + c) * t + d, ((3.f * a * t + 2.f * b) * t + c) * per};
}
struct Neighbours {
  Tile dx, dy, dz, r, near, j;
};
Neighbours neighbour(Ptr<const float> places, Ptr<const int32_t> list, const Tile& i, const Tile& k, const Tile& n,
                     const Tile& there, const std::array<Tile, 3>& p, float cut) {
  auto j = load(list + cast(k, i64) * n + i, {.mask = there});
  auto q = [&](int c) { return load(places + j * 4 + c, {.mask = there}); };
  auto dx = p[0] - q(0), dy = p[1] - q(1), dz = p[2] - q(2);
  auto r2 = dx * dx + dy * dy + dz * dz;
  return {dx, dy, dz, sqrt(r2), there & (r2 < cut * cut), j};
}
constexpr int kRows = 500;
constexpr float kCut = 3, kMost = 40;
auto embed_density =
    kernel("user_embed_density", [](const EmbedCfg& c, Ptr<const float> places, Ptr<const int32_t> list,
                                    Ptr<const int32_t> counts, Ptr<const float> rho, Ptr<const float> cost,
                                    Ptr<float> slope, Ptr<float> energy, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      std::array<Tile, 3> p;
      for (int k = 0; k < 3; ++k) p[k] = load(places + i * 4 + k, {.mask = in});
      auto count = load(counts + i, {.mask = in});
      Tile density = zeros({c.B}, f32);
      for (auto k : range(max(count))) {
        auto near = neighbour(places, list, i, k, n, k < count, p, kCut);
        density += where(near.near, spline(rho, near.r, kRows / kCut, kRows, near.near).first, 0.f);
      }
      auto [e, d] = spline(cost, density, kRows / kMost, kRows, in);
      store(slope + i, d, {.mask = in});
      store(energy + i, e, {.mask = in});
    }).grid([](const EmbedCfg& c, auto, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto embed_forces =
    kernel("user_embed_forces", [](const EmbedCfg& c, Ptr<const float> places, Ptr<const int32_t> list,
                                   Ptr<const int32_t> counts, Ptr<const float> rho, Ptr<const float> pair,
                                   Ptr<const float> slope, Ptr<float> force, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      std::array<Tile, 3> p;
      for (int k = 0; k < 3; ++k) p[k] = load(places + i * 4 + k, {.mask = in});
      auto count = load(counts + i, {.mask = in});
      auto mine = load(slope + i, {.mask = in});
      Tile fx = zeros({c.B}, f32), fy = fx, fz = fx;
      for (auto k : range(max(count))) {
        auto near = neighbour(places, list, i, k, n, k < count, p, kCut);
        auto by = load(slope + near.j, {.mask = near.near});
        auto drho = spline(rho, near.r, kRows / kCut, kRows, near.near).second;
        auto dpair = spline(pair, near.r, kRows / kCut, kRows, near.near).second;
        auto f = where(near.near, -((mine + by) * drho + dpair) / max(near.r, 1e-6f), 0.f);
        fx += f * near.dx, fy += f * near.dy, fz += f * near.dz;
      }
      store(force + i * 4, fx, {.mask = in}), store(force + i * 4 + 1, fy, {.mask = in});
      store(force + i * 4 + 2, fz, {.mask = in}), store(force + i * 4 + 3, zeros({c.B}, f32), {.mask = in});
    }).grid([](const EmbedCfg& c, auto, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("embed", [](Env& e) {
  EmbedCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int side = e.big ? 64 : 5, n = side * side * side, most = 60;
  std::vector<int32_t> list(size_t(most) * n), counts(n);
  for (int i = 0; i < n && (e.device || !e.big); ++i) {
    const int x = i % side, y = i / side % side, z = i / side / side;
    for (int w = -2; w <= 2; ++w)
      for (int v = -2; v <= 2; ++v)
        for (int u = -2; u <= 2; ++u)
          if ((u || v || w) && u * u + v * v + w * w < 8 && x + u >= 0 && x + u < side && y + v >= 0 && y + v < side &&
              z + w >= 0 && z + w < side && counts[i] < most)
            list[size_t(counts[i]++) * n + i] = i + u + v * side + w * side * side;
  }
  auto l = filled<int32_t>(e, list.size(), [&](size_t i) { return list[i]; });
  auto many = filled<int32_t>(e, n, [&](size_t i) { return counts[i]; });
  auto places = filled<float>(e, size_t(n) * 4, [&](size_t i) {
    const int a = int(i / 4), k = int(i % 4);
    return k == 3 ? 0.f
                  : float((k == 0   ? a % side
                           : k == 1 ? a / side % side
                                    : a / side / side) *
                              1.2 +
                          .2 * e.uniform());
  });
  // cubics of a smooth function, exact at both ends with their slopes
  auto table = [&](auto f, double last) {
    return filled<float>(e, kRows * 4, [&](size_t i) {
      const double h = last / kRows, x = double(i / 4) * h, s = 1e-4;
      const double y0 = f(x), y1 = f(x + h), d0 = (f(x + s) - f(x - s)) / (2 * s) * h,
                   d1 = (f(x + h + s) - f(x + h - s)) / (2 * s) * h;
      const double all[] = {2 * (y0 - y1) + d0 + d1, 3 * (y1 - y0) - 2 * d0 - d1, d0, y0};
      return float(all[i % 4]);
    });
  };
  auto rho = table([](double r) { return std::exp(-r) * (3 - r) * (3 - r); }, kCut);
  auto pair = table([](double r) { return std::cos(r) * (3 - r) * (3 - r); }, kCut);
  auto cost = table([](double d) { return -std::sqrt(d + 1); }, kMost);
  auto slope = constant<float>(e, n, NAN), energy = constant<float>(e, n, NAN),
       force = constant<float>(e, size_t(n) * 4, NAN);
  Job j;
  j.mbytes = 48e-6 * n * most;
  j.add(embed_density, c, places.p, l.p, many.p, rho.p, cost.p, slope.p, energy.p, n);
  j.add(embed_forces, c, places.p, l.p, many.p, rho.p, pair.p, slope.p, force.p, n);
  j.check = [=]() -> std::string {
    auto at = [](const Array<float>& t, double r, double last) {
      const double x = r * kRows / last;
      const int row = std::clamp(int(x), 0, kRows - 1);
      const double s = x - row, a = t[row * 4], b = t[row * 4 + 1], g = t[row * 4 + 2], d = t[row * 4 + 3];
      return std::pair(((a * s + b) * s + g) * s + d, ((3 * a * s + 2 * b) * s + g) * kRows / last);
    };
    std::vector<double> cost_of(n), slope_of(n), want(size_t(n) * 4);
    auto apart = [&](int i, int o, double* d) {
      for (int k = 0; k < 3; ++k) d[k] = places[i * 4 + k] - places[o * 4 + k];
      return std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    };
    double d[3];
    for (int i = 0; i < n; ++i) {
      double density = 0;
      for (int k = 0; k < counts[i]; ++k)
        if (const double r = apart(i, list[size_t(k) * n + i], d); r < kCut) density += at(rho, r, kCut).first;
      std::tie(cost_of[i], slope_of[i]) = at(cost, density, kMost);
    }
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < counts[i]; ++k) {
        const int o = list[size_t(k) * n + i];
        const double r = apart(i, o, d);
        if (r >= kCut) continue;
        const double f = -((slope_of[i] + slope_of[o]) * at(rho, r, kCut).second + at(pair, r, kCut).second) / r;
        for (int x = 0; x < 3; ++x) want[i * 4 + x] += f * d[x];
      }
    if (auto wrong = agree(energy.now(), cost_of, 1e-4, 1e-4); !wrong.empty()) return "energy: " + wrong;
    return agree(force.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- the clover term of a lattice: two Hermitian 6 x 6 blocks a site, times its spinor; numbers in groups of four,
// group by group (QUDA's float4 order)
struct CloverCfg {
  int B = 32, warps = 1;
};
auto clover =
    kernel("user_clover", [](const CloverCfg& c, Ptr<const float> blocks, Ptr<const float> x, Ptr<float> y, I32 sites) {
      // blocks [18, sites, 4]: of either block 6 numbers of the diagonal, then 15 pairs below it by columns
      num_warps(c.warps);
      auto s = program_id(0) * c.B + arange(0, c.B);
      auto in = s < sites;
      auto at = [&](int k) { return (s + sites * (k / 4)) * 4 + k % 4; };
      for (int block = 0; block < 2; ++block) {
        std::array<Z, 6> v, sums;
        for (int i = 0; i < 6; ++i)
          v[i] = {load(x + at(block * 12 + 2 * i), {.mask = in}), load(x + at(block * 12 + 2 * i + 1), {.mask = in})};
        std::array<Tile, 36> a;
        for (int k = 0; k < 36; ++k) a[k] = load(blocks + at(block * 36 + k), {.mask = in});
        for (int i = 0; i < 6; ++i) sums[i] = {a[i] * v[i].re, a[i] * v[i].im};
        for (int column = 0, k = 6; column < 6; ++column)
          for (int row = column + 1; row < 6; ++row, k += 2) {
            const Z below{a[k], a[k + 1]}, above{a[k], -a[k + 1]};
            const Z p = below * v[column], q = above * v[row];
            sums[row].re += p.re, sums[row].im += p.im, sums[column].re += q.re, sums[column].im += q.im;
          }
        for (int i = 0; i < 6; ++i) {
          store(y + at(block * 12 + 2 * i), sums[i].re, {.mask = in});
          store(y + at(block * 12 + 2 * i + 1), sums[i].im, {.mask = in});
        }
      }
    }).grid([](const CloverCfg& c, auto, auto, auto, int sites) { return Grid{cdiv(sites, c.B)}; });
Register r5("clover", [](Env& e) {
  CloverCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 32 * 32 * 32 * 32 : 75;
  auto a = random<float>(e, size_t(n) * 72), x = random<float>(e, size_t(n) * 24);
  auto y = constant<float>(e, size_t(n) * 24, NAN);
  Job j;
  j.mbytes = 480e-6 * n;
  j.add(clover, c, a.p, x.p, y.p, n);
  j.check = [=] {
    std::vector<double> want(y.n);
    auto at = [&](int s, int k) { return (s + size_t(n) * (k / 4)) * 4 + k % 4; };
    for (int s = 0; s < n; ++s)
      for (int b = 0; b < 2; ++b)
        for (int i = 0; i < 6; ++i) {
          std::complex<double> sum = 0;
          for (int k = 0; k < 6; ++k) {
            std::complex<double> m;
            const int low = std::min(i, k), high = std::max(i, k), pair = low * (11 - low) / 2 + high - low - 1;
            if (i == k)
              m = a[at(s, b * 36 + i)];
            else
              m = {a[at(s, b * 36 + 6 + 2 * pair)], (i > k ? 1 : -1) * a[at(s, b * 36 + 7 + 2 * pair)]};
            sum += m * std::complex<double>(x[at(s, b * 12 + 2 * k)], x[at(s, b * 12 + 2 * k + 1)]);
          }
          want[at(s, b * 12 + 2 * i)] = sum.real(), want[at(s, b * 12 + 2 * i + 1)] = sum.imag();
        }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- Euler's equations on an unstructured mesh: fluxes through edges (Rusanov), added to the nodes at both ends
struct EdgeCfg {
  int B = 256, warps = 4;
};
auto edge_flux = kernel("user_edge_flux", [](const EdgeCfg& c, Ptr<const int32_t> edges, Ptr<const double> normals,
                                             Ptr<const double> state, Ptr<double> residual, I32 n) {
                   // edges [n, 2]; normals [n, 3]; state, residual [nodes, 5]: density, momenta, energy
                   num_warps(c.warps);
                   auto i = program_id(0) * c.B + arange(0, c.B);
                   auto in = i < n;
                   auto a = load(edges + i * 2, {.mask = in}), b = load(edges + i * 2 + 1, {.mask = in});
                   std::array<Tile, 3> normal;
                   for (int k = 0; k < 3; ++k) normal[k] = load(normals + cast(i, i64) * 3 + k, {.mask = in});
                   auto area = sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
                   struct Side {
                     std::array<Tile, 5> u, f;
                     Tile fastest;
                   };
                   auto side = [&](const Tile& node) {
                     Side s;
                     for (int k = 0; k < 5; ++k) s.u[k] = load(state + node * 5 + k, {.mask = in, .other = 1});
                     auto inverse = 1. / s.u[0];
                     std::array<Tile, 3> v{s.u[1] * inverse, s.u[2] * inverse, s.u[3] * inverse};
                     auto p = .4 * (s.u[4] - .5 * (s.u[1] * v[0] + s.u[2] * v[1] + s.u[3] * v[2]));
                     auto through = v[0] * normal[0] + v[1] * normal[1] + v[2] * normal[2];
                     s.f[0] = s.u[0] * through, s.f[4] = (s.u[4] + p) * through;
                     for (int k = 0; k < 3; ++k) s.f[k + 1] = s.u[k + 1] * through + p * normal[k];
                     s.fastest = abs(through) + sqrt(1.4 * p * inverse) * area;
                     return s;
                   };
                   auto l = side(a), r = side(b);
                   auto speed = max(l.fastest, r.fastest);
                   for (int k = 0; k < 5; ++k) {
                     auto f = .5 * (l.f[k] + r.f[k] - speed * (r.u[k] - l.u[k]));
                     atomic_add(residual + a * 5 + k, -f, {.mask = in, .order = Order::relaxed});
                     atomic_add(residual + b * 5 + k, f, {.mask = in, .order = Order::relaxed});
                   }
                 }).grid([](const EdgeCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r6("edge_flux", [](Env& e) {
  EdgeCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int nodes = e.big ? 1 << 19 : 61, n = nodes * 7 - 3;
  auto edges = filled<int32_t>(e, size_t(n) * 2, [&](size_t i) {
    const int near = int(i / 2 / 7), off[] = {1, 7, 64, 65, 128, 4096, 4097};
    return i % 2 ? (near + off[i / 2 % 7]) % nodes : near;
  });
  auto normals = random<double>(e, size_t(n) * 3);
  auto state = filled<double>(e, size_t(nodes) * 5, [&](size_t i) {
    return i % 5 == 0 ? 1 + e.uniform() : i % 5 == 4 ? 3 + e.uniform() : e.uniform() - .5;
  });
  auto residual = constant<double>(e, size_t(nodes) * 5, 0);
  Job j;
  j.mbytes = 1e-6 * n * (8 + 24 + 160);
  j.inTurn = true;
  j.add(edge_flux, c, edges.p, normals.p, state.p, residual.p, n);
  j.check = [=] {
    std::vector<double> want(residual.n);
    for (int i = 0; i < n; ++i) {
      double u[2][5], f[2][5], fast[2], *m;
      double nn[3], area = 0;
      for (int k = 0; k < 3; ++k) nn[k] = normals[i * 3 + k], area += nn[k] * nn[k];
      area = std::sqrt(area);
      for (int s = 0; s < 2; ++s) {
        m = u[s];
        for (int k = 0; k < 5; ++k) m[k] = state[size_t(edges.h[i * 2 + s]) * 5 + k];
        const double p = .4 * (m[4] - .5 * (m[1] * m[1] + m[2] * m[2] + m[3] * m[3]) / m[0]);
        const double t = (m[1] * nn[0] + m[2] * nn[1] + m[3] * nn[2]) / m[0];
        f[s][0] = m[0] * t, f[s][4] = (m[4] + p) * t;
        for (int k = 0; k < 3; ++k) f[s][k + 1] = m[k + 1] * t + p * nn[k];
        fast[s] = std::abs(t) + std::sqrt(1.4 * p / m[0]) * area;
      }
      for (int k = 0; k < 5; ++k) {
        const double x = .5 * (f[0][k] + f[1][k] - std::max(fast[0], fast[1]) * (u[1][k] - u[0][k]));
        want[size_t(edges.h[i * 2]) * 5 + k] -= x, want[size_t(edges.h[i * 2 + 1]) * 5 + k] += x;
      }
    }
    return agree(residual.now(), want, 1e-10, 1e-10);
  };
  return j;
});

}  // namespace mini_apps
}  // namespace users
