// instruments.cpp - what instruments and optimisers compute: ultrasound from delays, eigenvalues by counting signs,
// quadratic and linear programs, angles of stars, hourglass forces.
#include "tests/users/use.h"
namespace users {
namespace instruments {

// --- ultrasound: every pixel sums what all elements received at its delay, between two samples, within an opening
// angle
struct BeamCfg {
  int BZ = 16, BX = 16, warps = 4;
};
auto beam = kernel("user_beam", [](const BeamCfg& c, Ptr<const int16_t> received, Ptr<const float> elements,
                                   Ptr<float> image, I32 samples, I32 count, I32 X, I32 Z, F32 per, F32 pitch) {
              // received [count, samples]; elements: where they lie; image [Z, X]; per: samples in a unit of length
              num_warps(c.warps);
              auto ix = (program_id(0) * c.BX + arange(0, c.BX)).row(),
                   iz = (program_id(1) * c.BZ + arange(0, c.BZ)).col();
              auto x = cast(ix, f32) * pitch, z = cast(iz + 1, f32) * pitch;
              Tile sum = zeros({c.BZ, c.BX}, f32), weights = sum;
              for (auto e : range(count)) {
                auto at = load(elements + e);
                auto dx = x - at;
                auto t = (z + sqrt(dx * dx + z * z)) * per;
                auto whole = floor(t);
                auto i = cast(whole, i32);
                auto in = (abs(dx) * 2.f < z) & (i + 1 < samples);
                auto p = received + (e * samples + i);
                auto a = cast(load(p, {.mask = in}), f32), b = cast(load(p + 1, {.mask = in}), f32);
                sum += a + (b - a) * (t - whole);
                weights += cast(in, f32);
              }
              store(image + (iz * X + ix), sum / max(weights, 1.f), {.mask = (iz < Z) & (ix < X)});
            }).grid([](const BeamCfg& c, auto, auto, auto, int, int, int X, int Z, float, float) {
  return Grid{cdiv(X, c.BX), cdiv(Z, c.BZ)};
});
Register r1("beam", [](Env& e) {
  BeamCfg c;
  if (!e.big) c = {4, 8, 1};
  c.BZ = e.field("BZ", c.BZ), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int X = e.big ? 1024 : 21, Z = e.big ? 2048 : 13, N = e.big ? 128 : 9, S = e.big ? 4096 : 60;
  const float pitch = e.big ? .1f : .5f, per = e.big ? 6.1f : 2.3f;
  auto rf = integers<int16_t>(e, size_t(N) * S, -2000, 2000);
  auto el = filled<float>(e, N, [&](size_t i) { return float(i) * pitch * X / N; });
  auto image = constant<float>(e, size_t(X) * Z, NAN);
  Job j;
  j.gflop = 12e-9 * double(X) * Z * N;
  j.add(beam, c, rf.p, el.p, image.p, S, N, X, Z, per, pitch);
  j.check = [=]() -> std::string {
    std::vector<double> want(image.n);
    for (int z = 0; z < Z; ++z)
      for (int x = 0; x < X; ++x) {
        double sum = 0, n = 0;
        for (int k = 0; k < N; ++k) {
          const double d = float(x) * double(pitch) - el[k], h = (z + 1) * double(pitch);
          const double t = (h + std::sqrt(d * d + h * h)) * per;
          const int i = int(std::floor(t));
          if (!(std::abs(d) * 2 < h) || i + 1 >= S) continue;
          sum += rf[k * S + i] + (rf[k * S + i + 1] - rf[k * S + i]) * (t - i), ++n;
        }
        want[z * X + x] = sum / std::max(n, 1.);
      }
    return agree(image.now(), want, 2e-1, 1e-3);
  };
  return j;
});

// --- eigenvalues of symmetric tridiagonal matrices, f64: the signs of Sturm's sequence say how many are smaller; every
// element finds one by bisection
struct SturmCfg {
  int B = 64, warps = 1;
};
auto sturm = kernel("user_sturm", [](const SturmCfg& c, Tensor<const double, 2> diagonal,
                                     Tensor<const double, 2> beside, Tensor<double, 2> values, I32 rounds) {
               // diagonal, values [matrices, n]; beside [matrices, n]: squares of what is left of the diagonal, first 0
               num_warps(c.warps);
               auto m = program_id(1), n = cast(diagonal.dim(1), i32);
               auto k = program_id(0) * c.B + arange(0, c.B);
               Tile bound = cast(Tile(0), f64);
               for (auto i : range(n)) {
                 auto row = abs(to_scalar(diagonal.load({m, i}, {1}))) + 2. * sqrt(to_scalar(beside.load({m, i}, {1})));
                 bound = max(bound, row + 2. * sqrt(to_scalar(beside.load({m, i + 1}, {1}))));
               }
               Tile low = full({c.B}, -bound, f64), high = full({c.B}, bound, f64);
               for (auto r : range(rounds)) {
                 auto middle = (low + high) * .5;
                 Tile q = full({c.B}, 1., f64), below = zeros({c.B}, i32);
                 for (auto i : range(n)) {
                   q = to_scalar(diagonal.load({m, i}, {1})) - middle - to_scalar(beside.load({m, i}, {1})) / q;
                   q = where(abs(q) < 1e-300, -1e-300, q);
                   below += cast(q < 0., i32);
                 }
                 auto is_above = below > k;
                 high = where(is_above, middle, high), low = where(is_above, low, middle);
               }
               values.store({m, program_id(0) * c.B}, (low + high) * .5);
             }).grid([](const SturmCfg& c, const auto& d, const auto&, const auto&, int) {
  return Grid{cdiv(d.shape[1], c.B), d.shape[0]};
});
Register r2("sturm", [](Env& e) {
  SturmCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 512 : 3, n = e.big ? 256 : 41, rounds = 50;
  auto d = random<double>(e, size_t(M) * n, -2, 2);
  auto b = filled<double>(e, size_t(M) * n, [&](size_t i) { return i % n ? e.uniform() : 0.; });
  auto v = constant<double>(e, d.n, NAN);
  Job j;
  j.gflop = 1e-9 * M * double(n) * n * rounds * 5;
  j.add(sturm, c, d.view(M, n), b.view(M, n), v.view(M, n), rounds);
  j.check = [=]() -> std::string {
    const auto got = v.now();
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < n; ++k) {
        auto below = [&](double x) {
          double q = 1;
          int count = 0;
          for (int i = 0; i < n; ++i) {
            q = d[m * n + i] - x - b[m * n + i] / q;
            if (std::abs(q) < 1e-300) q = -1e-300;
            count += q < 0;
          }
          return count;
        };
        if (below(got[m * n + k] - 1e-10) > k || below(got[m * n + k] + 1e-10) <= k)
          return "value " + std::to_string(k) + " of " + std::to_string(m);
      }
    return "";
  };
  return j;
});

// --- small quadratic programs by ADMM (OSQP): x = K (rho (z - u) - q), z = clamp(x + u); a program's matrix stays
struct AdmmCfg {
  int N = 64, warps = 4;
};
auto admm = kernel("user_admm", [](const AdmmCfg& c, Tensor<const float, 3> K, Tensor<const float, 2> q,
                                   Tensor<const float, 2> low, Tensor<const float, 2> high, Tensor<float, 2> out,
                                   I32 steps, F32 rho) {
              num_warps(c.warps);
              auto p = program_id(0);
              auto k = squeeze(K.load({p, 0, 0}, {1, c.N, c.N}), 0);
              auto row = [&](const auto& t) { return t.load({p, 0}, {1, c.N}); };
              auto qs = row(q), l = row(low), h = row(high);
              Tile z = zeros({1, c.N}, f32), u = z;
              for (auto s : range(steps)) {
                auto x = trans(sum(k * (rho * (z - u) - qs), axis(1))) + u;
                z = clamp(x, l, h);
                u = x - z;
              }
              out.store({p, 0}, z);
            }).grid([](const AdmmCfg&, const auto& k, const auto&...) { return Grid{k.shape[0]}; });
Register r3("admm", [](Env& e) {
  AdmmCfg c;
  if (!e.big) c = {16, 1};
  c.warps = e.field("warps", c.warps);
  const int P = e.big ? 4096 : 3, N = c.N, steps = e.big ? 200 : 15;
  const float rho = .7f;
  auto K = filled<float>(e, size_t(P) * N * N, [&](size_t i) {
    const int r = int(i / N % N), k = int(i % N);
    return float((r == k ? .8 : 0) + .3 / N * std::cos(double(r + 1) * (k + 1) + double(i / (N * N))));
  });
  auto q = random<float>(e, size_t(P) * N), low = random<float>(e, size_t(P) * N, -1, 0),
       high = random<float>(e, size_t(P) * N, 0, 1);
  auto out = constant<float>(e, q.n, NAN);
  Job j;
  j.gflop = 2e-9 * P * double(N) * N * steps;
  j.add(admm, c, K.view(P, N, N), q.view(P, N), low.view(P, N), high.view(P, N), out.view(P, N), steps, rho);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int p = 0; p < P; ++p) {
      std::vector<double> z(N), u(N), x(N);
      for (int s = 0; s < steps; ++s) {
        for (int r = 0; r < N; ++r) {
          x[r] = u[r];
          for (int k = 0; k < N; ++k) x[r] += K[(size_t(p) * N + r) * N + k] * (rho * (z[k] - u[k]) - q[p * N + k]);
        }
        for (int r = 0; r < N; ++r) z[r] = std::clamp(x[r], low[p * N + r], high[p * N + r]), u[r] = x[r] - z[r];
      }
      for (int r = 0; r < N; ++r) want[p * N + r] = z[r];
    }
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- small linear programs by the simplex method, one a program: the most promising column, the row that limits it, a
// step, until no column promises anything
struct SimplexCfg {
  int R = 32, C = 64, warps = 2;
};
auto simplex = kernel("user_simplex", [](const SimplexCfg& c, Tensor<const float, 3> tableau, Ptr<float> value,
                                         Ptr<int32_t> steps) {
                 // tableau [P, R, C]: the last row is the cost (what is negative promises), the last column the limits
                 num_warps(c.warps);
                 auto p = program_id(0);
                 Tile t = squeeze(tableau.load({p, 0, 0}, {1, c.R, c.C}), 0), count = Tile(0), goes_on = Tile(1);
                 auto rows = arange(0, c.R).col(), columns = arange(0, c.C).row();
                 while_([&] { return (goes_on != 0) & (count < 200); },
                        [&] {
                          auto cost = sum(where(rows == c.R - 1, t, 0.f), axis(0));
                          auto [least, column] = min_with_index(where(columns < c.C - 1, cost, 0.f), axis(1));
                          auto from = sum(where(columns == column, t, 0.f), axis(1));
                          auto limit = sum(where(columns == c.C - 1, t, 0.f), axis(1));
                          auto can = (from > 1e-5f) & (rows < c.R - 1);
                          auto [ratio, row] =
                              min_with_index(where(can, limit / where(can, from, 1.f), INFINITY), axis(0));
                          auto is_step = (to_scalar(least) < -1e-5f) & (to_scalar(ratio) < 1e30f);
                          auto pivot = sum(where(rows == row, from, 0.f), axis(0));
                          auto line = sum(where(rows == row, t, 0.f), axis(0)) / pivot;
                          auto next = where(rows == row, broadcast_to(line, {c.R, c.C}), t - from * line);
                          t = where(is_step, next, t);
                          goes_on = cast(is_step, i32);
                          count += goes_on;
                        });
                 store(value + p, sum(where((rows == c.R - 1) & (columns == c.C - 1), t, 0.f)));
                 store(steps + p, count);
               }).grid([](const SimplexCfg&, const auto& t, auto, auto) { return Grid{t.shape[0]}; });
Register r4("simplex", [](Env& e) {
  SimplexCfg c;
  if (!e.big) c = {6, 12, 1};
  c.warps = e.field("warps", c.warps);
  const int P = e.big ? 4096 : 7, R = c.R, C = c.C, n = C - R;  // n unknowns, R - 1 slacks, limits
  auto t = filled<float>(e, size_t(P) * R * C, [&](size_t i) {
    const int r = int(i / C % R), k = int(i % C);
    if (k < n) return float(r == R - 1 ? -e.uniform() - .1 : e.uniform() + .05);
    if (k == C - 1) return r == R - 1 ? 0.f : float(1 + e.uniform());
    return r == k - n ? 1.f : 0.f;
  });
  auto value = constant<float>(e, P, NAN);
  auto steps = constant<int32_t>(e, P, -1);
  Job j;
  j.mbytes = 4e-6 * t.n;
  j.add(simplex, c, t.view(P, R, C), value.p, steps.p);
  j.check = [=] {
    std::vector<double> want(P);
    for (int p = 0; p < P; ++p) {
      std::vector<double> a(R * C);
      for (int i = 0; i < R * C; ++i) a[i] = t[size_t(p) * R * C + i];
      while (true) {
        int k = 0, r = -1;
        for (int i = 1; i < C - 1; ++i)
          if (a[(R - 1) * C + i] < a[(R - 1) * C + k]) k = i;
        if (a[(R - 1) * C + k] > -1e-5) break;
        for (int i = 0; i < R - 1; ++i)
          if (a[i * C + k] > 1e-5 && (r < 0 || a[i * C + C - 1] / a[i * C + k] < a[r * C + C - 1] / a[r * C + k]))
            r = i;
        if (r < 0) break;
        const double by = a[r * C + k];
        for (int i = 0; i < C; ++i) a[r * C + i] /= by;
        for (int i = 0; i < R; ++i)
          if (const double f = a[i * C + k]; i != r)
            for (int q = 0; q < C; ++q) a[i * C + q] -= f * a[r * C + q];
      }
      want[p] = a[R * C - 1];
    }
    return agree(value.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- pairs of stars by the angle between them: cosines of all pairs fall between limits that rise
struct AngleCfg {
  int BM = 32, BN = 128, bins = 20, warps = 4;
};
auto angles = kernel("user_angles", [](const AngleCfg& c, Ptr<const float> a, Ptr<const float> b,
                                       Ptr<const float> limits, Ptr<int64_t> counts, I32 n, I32 m) {
                // a [3, n], b [3, m]: places on a sphere; limits [bins]; counts [bins + 1]: how many limits a pair
                // reaches
                num_warps(c.warps);
                auto i = program_id(0) * c.BM + arange(0, c.BM);
                std::array<Tile, 3> p;
                for (int k = 0; k < 3; ++k) p[k] = load(a + k * n + i, {.mask = i < n}).col();
                std::vector<Tile> edges;
                for (int k = 0; k < c.bins; ++k) edges.push_back(load(limits + k));
                Tile found = zeros({c.bins + 1}, i32);
                for (auto j0 : range(0, m, c.BN)) {
                  auto j = j0 + arange(0, c.BN);
                  auto q = [&](int k) { return load(b + k * m + j, {.mask = j < m}).row(); };
                  auto cosine = p[0] * q(0) + p[1] * q(1) + p[2] * q(2);
                  Tile bin = zeros({c.BM, c.BN}, i32);
                  for (const Tile& edge : edges) bin += cast(cosine >= edge, i32);
                  found += histogram(bin, c.bins + 1, {.mask = (i < n).col() & (j < m).row()});
                }
                atomic_add(counts + arange(0, c.bins + 1), cast(found, i64), {.order = Order::relaxed});
              }).grid([](const AngleCfg& c, auto, auto, auto, auto, int n, int) { return Grid{cdiv(n, c.BM)}; });
Register r7("angles", [](Env& e) {
  AngleCfg c;
  if (!e.big) c = {16, 16, 6, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 16384 : 37, m = e.big ? 16384 : 53;
  auto sphere = [&](int many) {
    std::vector<float> all(3 * size_t(many));
    for (int i = 0; i < many && e.device; ++i) {
      const double z = 2 * e.uniform() - 1, t = 2 * M_PI * e.uniform(), r = std::sqrt(1 - z * z);
      all[i] = float(r * std::cos(t)), all[many + i] = float(r * std::sin(t)), all[2 * many + i] = float(z);
    }
    return filled<float>(e, all.size(), [&](size_t i) { return all[i]; });
  };
  auto a = sphere(n), b = sphere(m);
  auto limits = filled<float>(e, c.bins, [&](size_t k) { return float(-.9 + 1.8 * double(k) / c.bins); });
  auto counts = constant<int64_t>(e, c.bins + 1, 0);
  Job j;
  j.gflop = 1e-9 * n * double(m) * (5 + 2 * c.bins);
  j.inTurn = true;
  j.add(angles, c, a.p, b.p, limits.p, counts.p, n, m);
  j.check = [=, bins = c.bins]() -> std::string {
    const auto got = counts.now();
    std::vector<int64_t> want(bins + 1), near(bins + 1);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < m; ++k) {
        const double cosine = a[i] * b[k] + a[n + i] * b[m + k] + a[2 * n + i] * b[2 * m + k];
        int bin = 0;
        for (int l = 0; l < bins; ++l) {
          bin += cosine >= limits[l];
          if (std::abs(cosine - limits[l]) < 1e-6) ++near[l], ++near[l + 1];
        }
        ++want[bin];
      }
    for (int k = 0; k <= bins; ++k)
      if (std::abs(want[k] - got[k]) > near[k]) return "angle " + std::to_string(k);
    return "";
  };
  return j;
});

// --- hourglass forces of hexahedra (LULESH): velocities of eight corners against four shapes, f64, in element order
struct HourglassCfg {
  int B = 128, warps = 4;
};
auto hourglass =
    kernel("user_hourglass", [](const HourglassCfg& c, Ptr<const int32_t> corners, Ptr<const double> places,
                                Ptr<const double> velocities, Ptr<const double> strength, Ptr<double> forces, I32 n) {
      // corners [n, 8]; places, velocities [nodes, 3]; forces [n, 8, 3]
      num_warps(c.warps);
      constexpr int shapes[4][8] = {{1, 1, -1, -1, -1, -1, 1, 1},
                                    {1, -1, -1, 1, -1, 1, 1, -1},
                                    {1, -1, 1, -1, 1, -1, 1, -1},
                                    {-1, 1, -1, 1, 1, -1, 1, -1}};
      auto e = program_id(0) * c.B + arange(0, c.B);
      auto in = e < n;
      auto k = load(strength + e, {.mask = in});
      std::array<Tile, 8> node;
      std::array<std::array<Tile, 8>, 3> x, v;
      for (int i = 0; i < 8; ++i) {
        node[i] = load(corners + e * 8 + i, {.mask = in});
        for (int d = 0; d < 3; ++d) {
          x[d][i] = load(places + node[i] * 3 + d, {.mask = in});
          v[d][i] = load(velocities + node[i] * 3 + d, {.mask = in});
        }
      }
      std::array<std::array<Tile, 8>, 3> f;
      for (int s = 0; s < 4; ++s) {
        // the shape without what is linear in the places, by the element's mean gradients
        std::array<Tile, 3> along;
        for (int d = 0; d < 3; ++d) {
          Tile sum = x[d][0] * double(shapes[s][0]);
          for (int i = 1; i < 8; ++i) sum += x[d][i] * double(shapes[s][i]);
          along[d] = sum;
        }
        std::array<Tile, 8> shape;
        for (int i = 0; i < 8; ++i)
          shape[i] = double(shapes[s][i]) - (along[0] * x[0][i] + along[1] * x[1][i] + along[2] * x[2][i]) * .125;
        for (int d = 0; d < 3; ++d) {
          Tile by = shape[0] * v[d][0];
          for (int i = 1; i < 8; ++i) by += shape[i] * v[d][i];
          for (int i = 0; i < 8; ++i) f[d][i] = s ? f[d][i] + by * shape[i] : by * shape[i];
        }
      }
      for (int i = 0; i < 8; ++i)
        for (int d = 0; d < 3; ++d) store(forces + cast(e, i64) * 24 + (i * 3 + d), -k * f[d][i], {.mask = in});
    }).grid([](const HourglassCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r8("hourglass", [](Env& e) {
  HourglassCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int side = e.big ? 96 : 4, n = side * side * side, row = side + 1, nodes = row * row * row;
  auto corners = filled<int32_t>(e, size_t(n) * 8, [&](size_t i) {
    const int el = int(i / 8), k = int(i % 8), x = el % side, y = el / side % side, z = el / side / side;
    return int32_t((z + k / 4) * row * row + (y + (k % 4 > 1)) * row + x + (k % 4 == 1 || k % 4 == 2));
  });
  auto x = random<double>(e, size_t(nodes) * 3), v = random<double>(e, size_t(nodes) * 3),
       k = random<double>(e, n, 0, 1);
  auto f = constant<double>(e, size_t(n) * 24, NAN);
  Job j;
  j.mbytes = 1e-6 * (n * (32. + 8 + 192) + nodes * 48.);
  j.add(hourglass, c, corners.p, x.p, v.p, k.p, f.p, n);
  j.check = [=] {
    constexpr int shapes[4][8] = {{1, 1, -1, -1, -1, -1, 1, 1},
                                  {1, -1, -1, 1, -1, 1, 1, -1},
                                  {1, -1, 1, -1, 1, -1, 1, -1},
                                  {-1, 1, -1, 1, 1, -1, 1, -1}};
    std::vector<double> want(f.n);
    for (int el = 0; el < n; ++el)
      for (auto& s : shapes) {
        double along[3] = {}, shape[8];
        auto at = [&](const Array<double>& a, int i, int d) { return a[size_t(corners.h[el * 8 + i]) * 3 + d]; };
        for (int i = 0; i < 8; ++i)
          for (int d = 0; d < 3; ++d) along[d] += s[i] * at(x, i, d);
        for (int i = 0; i < 8; ++i) {
          shape[i] = s[i];
          for (int d = 0; d < 3; ++d) shape[i] -= along[d] * at(x, i, d) / 8;
        }
        for (int d = 0; d < 3; ++d) {
          double by = 0;
          for (int i = 0; i < 8; ++i) by += shape[i] * at(v, i, d);
          for (int i = 0; i < 8; ++i) want[(size_t(el) * 8 + i) * 3 + d] -= k[el] * by * shape[i];
        }
      }
    return agree(f.now(), want, 1e-12, 1e-12);
  };
  return j;
});

}  // namespace instruments
}  // namespace users
