// solvers.cpp - irregular work of simulations: fluids of particles with neighbours in cells, matrices assembled from
// elements, gravity through a tree, triangular systems solved by whoever's inputs are ready, chemistry by chance, and a
// sequence whose rows subtract attention over the rows before them (DeltaFormer).
#include "tests/users/use.h"
namespace users {
namespace solvers {

struct RowCfg {
  int B = 128, warps = 4;
};

// --- SPH: density of particles sorted by cell; the 9 neighbouring runs of 3 cells each are ranges of particles
auto sph = kernel("user_sph", [](const RowCfg& c, Tensor<const float, 2> at, Tensor<const int32_t, 1> start,
                                 Tensor<float, 1> density, I32 side, F32 h) {
             // at [3, n] in [0, side) cells of size 1, sorted by cell (z, y, x); start [side^3 + 1]; h <= 1
             num_warps(c.warps);
             auto n = at.dim(1), first = program_id(0) * c.B;
             auto i = first + arange(0, c.B);
             auto live = i < n;
             std::array<Tile, 3> p, cell;
             for (int d = 0; d < 3; ++d) {
               p[d] = squeeze(at.load({d, first}, {1, c.B}), 0);
               cell[d] = cast(floor(p[d]), i32);
             }
             auto h2 = h * h;
             Tile sum = zeros({c.B}, f32);
             for (auto run : range(9)) {
               auto y = cell[1] + run % 3 - 1, z = cell[2] + run / 3 - 1;
               auto ok = live & (y >= 0) & (y < side) & (z >= 0) & (z < side);
               auto line = (z * side + y) * side;
               auto x0 = max(cell[0] - 1, 0), x1 = min(cell[0] + 1, side - 1);
               Tile j = load(start.ptr() + (line + x0), {.mask = ok});
               auto end = load(start.ptr() + (line + x1 + 1), {.mask = ok});
               while_([&] { return any(j < end); },
                      [&] {
                        auto there = j < end;
                        Tile d2 = zeros({c.B}, f32);
                        for (int d = 0; d < 3; ++d) {
                          auto u = load(at.ptr() + (j + d * n), {.mask = there}) - p[d];
                          d2 += u * u;
                        }
                        auto w = max(h2 - d2, 0.f);
                        sum += where(there, w * w * w, 0.f);
                        j += 1;
                      });
             }
             density.store({first}, sum * (1.566681471f / (h2 * h2 * h2 * h2 * h)));
           }).grid([](const RowCfg& c, const auto& at, const auto&...) { return Grid{cdiv(at.shape[1], c.B)}; });
Register r1("sph", [](Env& e) {
  const int side = e.big ? 64 : 5, per = e.big ? 8 : 4, cells = side * side * side;
  std::vector<float> x;
  std::vector<int32_t> start(cells + 1);
  for (int k = 0; k < cells; ++k) {
    start[k] = int(x.size() / 3);
    for (int i = 0, count = int(e.uniform() * 2 * per); i < count; ++i)
      for (int d = 0; d < 3; ++d)
        x.push_back(float((d == 0 ? k % side : d == 1 ? k / side % side : k / side / side) + .999 * e.uniform()));
  }
  start[cells] = int(x.size() / 3);
  const int n = start[cells];
  auto at = filled<float>(e, 3 * size_t(n), [&](size_t i) { return x[i % n * 3 + i / n]; });
  auto starts = filled<int32_t>(e, cells + 1, [&](size_t i) { return start[i]; });
  auto rho = constant<float>(e, n, NAN);
  const float h = .9f;
  Job j;
  j.mbytes = 1e-6 * n * 16;
  j.add(sph, RowCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, at.view(3, n),
        starts.view(cells + 1), rho.view(n), side, h);
  j.check = [=] {
    std::vector<double> want(n);
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b) {
        double d2 = 0;
        for (int d = 0; d < 3; ++d) d2 += (at[d * n + a] - at[d * n + b]) * (at[d * n + a] - at[d * n + b]);
        const double w = std::max(double(h) * h - d2, 0.);
        want[a] += w * w * w * 1.566681471 / std::pow(double(h), 9);
      }
    return agree(rho.now(), want, 1e-5, 1e-4);
  };
  return j;
});

// --- FEM: stiffness of linear tetrahedra, their 16 entries added to a matrix through a table of places
auto fem =
    kernel("user_fem", [](const RowCfg& c, Tensor<const double, 2> nodes, Tensor<const int32_t, 2> corners,
                          Tensor<const int32_t, 2> places, Tensor<const double, 1> stiffness, Ptr<double> values,
                          Ptr<double> volume) {
      // nodes [n, 3], corners [E, 4], places [E, 16] into values, stiffness [E]
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto e = first + arange(0, c.B);
      auto live = e < corners.dim(0);
      std::array<std::array<Tile, 3>, 4> x;
      for (int k = 0; k < 4; ++k) {
        auto node = load(corners.ptr() + (e * 4 + k), {.mask = live});
        for (int d = 0; d < 3; ++d) x[k][d] = load(nodes.ptr() + (node * 3 + d), {.mask = live});
      }
      std::array<std::array<Tile, 3>, 3> edge;
      for (int k = 0; k < 3; ++k)
        for (int d = 0; d < 3; ++d) edge[k][d] = x[k + 1][d] - x[0][d];
      auto cross = [](const std::array<Tile, 3>& a, const std::array<Tile, 3>& b) {
        return std::array<Tile, 3>{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
      };
      auto inner = [](const std::array<Tile, 3>& a, const std::array<Tile, 3>& b) {
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
      };
      // Gradients of the corners' functions, times the determinant.
      std::array<std::array<Tile, 3>, 4> g;
      g[1] = cross(edge[1], edge[2]), g[2] = cross(edge[2], edge[0]), g[3] = cross(edge[0], edge[1]);
      auto det = inner(edge[0], g[1]);
      for (int d = 0; d < 3; ++d) g[0][d] = -(g[1][d] + g[2][d] + g[3][d]);
      auto factor = stiffness.load({first}, {c.B}) / (abs(det) * 6.0);
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
          auto place = load(places.ptr() + (e * 16 + 4 * a + b), {.mask = live});
          atomic_add(values + place, inner(g[a], g[b]) * factor, {.mask = live, .order = Order::relaxed});
        }
      atomic_add(volume, sum(where(live, abs(det), 0.0)) / 6.0, {.order = Order::relaxed});
    }).grid([](const RowCfg& c, const auto&, const auto& corners, const auto&...) {
      return Grid{cdiv(corners.shape[0], c.B)};
    });
Register r2("fem", [](Env& e) {
  const int side = e.big ? 96 : 4, n = side * side * side, cubes = (side - 1) * (side - 1) * (side - 1), E = 6 * cubes;
  auto id = [=](int x, int y, int z) { return (z * side + y) * side + x; };
  const int paths[6][3] = {{1, 2, 4}, {1, 4, 2}, {2, 1, 4}, {2, 4, 1}, {4, 1, 2}, {4, 2, 1}};
  std::vector<int32_t> corner;
  for (int k = 0; k < cubes; ++k) {
    const int x = k % (side - 1), y = k / (side - 1) % (side - 1), z = k / (side - 1) / (side - 1);
    for (const auto& path : paths)
      for (int bits = 0, step = 0; step < 4; bits += step < 3 ? path[step] : 0, ++step)
        corner.push_back(id(x + (bits & 1), y + (bits >> 1 & 1), z + (bits >> 2)));
  }
  // A row of 27 places for every node: its neighbours in the grid.
  auto place = [=](int a, int b) {
    const int dx = b % side - a % side, dy = b / side % side - a / side % side, dz = b / side / side - a / side / side;
    return a * 27 + (dz + 1) * 9 + (dy + 1) * 3 + dx + 1;
  };
  auto nodes = filled<double>(e, 3 * size_t(n), [&](size_t i) {
    const int at = int(i / 3);
    const int whole = i % 3 == 0 ? at % side : i % 3 == 1 ? at / side % side : at / side / side;
    return whole + .2 * e.uniform();
  });
  auto corners = filled<int32_t>(e, 4 * size_t(E), [&](size_t i) { return corner[i]; });
  auto places = filled<int32_t>(
      e, 16 * size_t(E), [&](size_t i) { return place(corner[i / 16 * 4 + i % 16 / 4], corner[i / 16 * 4 + i % 4]); });
  auto k = filled<double>(e, E, [&](size_t) { return .5 + e.uniform(); });
  auto values = filled<double>(e, size_t(n) * 27, [](size_t) { return 0.; });
  auto volume = filled<double>(e, 1, [](size_t) { return 0.; });
  Job j;
  j.mbytes = 1e-6 * E * (16 + 64 + 8 + 16 * 8. + 4 * 24);
  j.add(fem, RowCfg{e.field("B", e.big ? 128 : 64), e.field("warps", 4)}, nodes.view(n, 3), corners.view(E, 4),
        places.view(E, 16), k.view(E), values.p, volume.p);
  j.check = [=] {
    std::vector<double> want(size_t(n) * 27);
    double all = 0;
    for (int t = 0; t < E; ++t) {
      double m[3][3], g[4][3] = {};
      for (int a = 0; a < 3; ++a)
        for (int d = 0; d < 3; ++d) m[a][d] = nodes[3 * corners.h[4 * t + a + 1] + d] - nodes[3 * corners.h[4 * t] + d];
      for (int a = 0; a < 3; ++a)
        for (int d = 0; d < 3; ++d) {
          const double* u = m[(a + 1) % 3];
          const double* v = m[(a + 2) % 3];
          g[a + 1][d] = u[(d + 1) % 3] * v[(d + 2) % 3] - u[(d + 2) % 3] * v[(d + 1) % 3];
          g[0][d] -= g[a + 1][d];
        }
      const double det = std::abs(m[0][0] * g[1][0] + m[0][1] * g[1][1] + m[0][2] * g[1][2]);
      all += det / 6;
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b)
          want[places.h[16 * t + 4 * a + b]] +=
              (g[a][0] * g[b][0] + g[a][1] * g[b][1] + g[a][2] * g[b][2]) * k[t] / (6 * det);
    }
    const auto wrong = agree(volume.now(), {all}, 1e-9, 1e-9);
    return wrong.empty() ? agree(values.now(), want, 1e-10, 1e-10) : wrong;
  };
  return j;
});

// --- Barnes-Hut: a walk through an octree in depth-first order; a node that is far enough is skipped to what follows
// it
auto barnes_hut =
    kernel("user_barnes_hut", [](const RowCfg& c, Tensor<const float, 2> bodies, Tensor<const float, 2> nodes,
                                 Tensor<const int32_t, 1> next, Tensor<float, 2> force, F32 theta2) {
      // bodies [3, n]; nodes [N, 5]: centre, mass, side^2 (0: a leaf); next [N]: where the walk goes past a node's
      // children
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto live = first + arange(0, c.B) < bodies.dim(1);
      std::array<Tile, 3> p, f;
      for (int d = 0; d < 3; ++d) p[d] = squeeze(bodies.load({d, first}, {1, c.B}), 0), f[d] = zeros({c.B}, f32);
      auto count = nodes.dim(0);
      Tile at = where(live, 0, count);
      while_([&] { return any(at < count); },
             [&] {
               auto here = at < count;
               std::array<Tile, 3> u;
               Tile d2 = full({c.B}, 1e-4f, f32);
               for (int d = 0; d < 3; ++d) {
                 u[d] = load(nodes.ptr() + (at * 5 + d), {.mask = here}) - p[d];
                 d2 += u[d] * u[d];
               }
               auto mass = load(nodes.ptr() + (at * 5 + 3), {.mask = here});
               auto far = load(nodes.ptr() + (at * 5 + 4), {.mask = here}) < theta2 * d2;
               auto r = rsqrt(d2);
               auto w = where(here & far, mass * r * r * r, 0.f);
               for (int d = 0; d < 3; ++d) f[d] += w * u[d];
               at = where(here, where(far, load(next.ptr() + at, {.mask = here}), at + 1), at);
             });
      for (int d = 0; d < 3; ++d) force.store({d, first}, expand_dims(f[d], 0));
    }).grid([](const RowCfg& c, const auto& b, const auto&...) { return Grid{cdiv(b.shape[1], c.B)}; });
struct Tree {
  std::vector<float> nodes;
  std::vector<int32_t> next;
  std::vector<int> order;
};
void grow(Tree& t, const std::vector<float>& x, std::vector<int> in, const double* low, double side) {
  const size_t me = t.next.size();
  t.next.push_back(0);
  double centre[3] = {};
  for (int i : in)
    for (int d = 0; d < 3; ++d) centre[d] += x[3 * i + d] / in.size();
  for (double v : centre) t.nodes.push_back(float(v));
  t.nodes.push_back(float(in.size()));
  t.nodes.push_back(in.size() > 1 ? float(side * side) : 0);
  if (in.size() == 1) t.order.push_back(in[0]);
  for (int k = 0; k < 8 && in.size() > 1; ++k) {
    std::vector<int> part;
    for (int i : in) {
      int of = 0;
      for (int d = 0; d < 3; ++d) of |= (x[3 * i + d] >= low[d] + side / 2) << d;
      if (of == k) part.push_back(i);
    }
    const double corner[3] = {low[0] + (k & 1) * side / 2, low[1] + (k >> 1 & 1) * side / 2,
                              low[2] + (k >> 2) * side / 2};
    if (!part.empty()) grow(t, x, part, corner, side / 2);
  }
  t.next[me] = int(t.next.size());
}
Register r3("barnes_hut", [](Env& e) {
  const int n = e.big ? 1 << 16 : 150;
  std::vector<float> x(3 * n);
  for (float& v : x) v = float(e.uniform());
  Tree t;
  std::vector<int> all(n);
  for (int i = 0; i < n; ++i) all[i] = i;
  const double low[3] = {};
  grow(t, x, all, low, 1);
  const int N = int(t.next.size());
  // Bodies in the tree's order: neighbours walk alike.
  auto bodies = filled<float>(e, 3 * size_t(n), [&](size_t i) { return x[3 * t.order[i % n] + i / n]; });
  auto nodes = filled<float>(e, 5 * size_t(N), [&](size_t i) { return t.nodes[i]; });
  auto next = filled<int32_t>(e, N, [&](size_t i) { return t.next[i]; });
  auto force = constant<float>(e, 3 * size_t(n), NAN);
  const float theta2 = 4;  // (1 / opening angle)^2 the other way round: side^2 / theta^2 < d^2
  Job j;
  j.mbytes = 1e-6 * n * 24;
  j.add(barnes_hut, RowCfg{e.field("B", e.big ? 64 : 32), e.field("warps", e.big ? 2 : 1)}, bodies.view(3, n),
        nodes.view(N, 5), next.view(N), force.view(3, n), 1 / theta2);
  j.check = [=] {
    std::vector<double> want(3 * size_t(n));
    for (int i = 0; i < n; ++i)
      for (int at = 0; at < N;) {
        double u[3], d2 = 1e-4f;
        for (int d = 0; d < 3; ++d) u[d] = nodes[5 * at + d] - bodies[d * n + i], d2 += u[d] * u[d];
        const bool far = nodes[5 * at + 4] < float(1 / theta2) * d2;
        for (int d = 0; far && d < 3; ++d) want[d * n + i] += nodes[5 * at + 3] * u[d] / (d2 * std::sqrt(d2));
        at = far ? next.h[at] : at + 1;
      }
    return agree(force.now(), want, 2e-2, 2e-3);
  };
  return j;
});

// --- a sparse lower triangular system, level by level: the rows of a level depend on those of earlier levels alone
auto sptrsv = kernel("user_sptrsv",
                     [](const RowCfg& c, Tensor<const int32_t, 1> rows, Tensor<const int32_t, 1> starts,
                        Tensor<const int32_t, 1> columns, Tensor<const double, 1> values, Tensor<const double, 1> b,
                        Ptr<double> x, I32 first, I32 last) {
                       // rows in the order of levels, [first, last) is this one; the diagonal is a row's last entry
                       num_warps(c.warps);
                       auto i = first + program_id(0) * c.B + arange(0, c.B);
                       auto live = i < last;
                       auto row = load(rows.ptr() + i, {.mask = live});
                       Tile at = load(starts.ptr() + row, {.mask = live});
                       auto end = load(starts.ptr() + (row + 1), {.mask = live}) - 1;
                       Tile sum = load(b.ptr() + row, {.mask = live});
                       while_([&] { return any(at < end); },
                              [&] {
                                auto more = at < end;
                                auto column = load(columns.ptr() + at, {.mask = more});
                                sum -= load(values.ptr() + at, {.mask = more}) * load(x + column, {.mask = more});
                                at = where(more, at + 1, at);
                              });
                       auto diagonal = load(values.ptr() + end, {.mask = live, .other = 1.0});
                       store(x + row, sum / diagonal, {.mask = live});
                     })
                  .grid([](const RowCfg& c, const auto&, const auto&, const auto&, const auto&, const auto&, double*,
                           int first, int last) { return Grid{cdiv(int64_t(last - first), int64_t(c.B))}; });
Register r4("sptrsv", [](Env& e) {
  const int n = e.big ? 1 << 20 : 400, per = e.big ? 12 : 5, levels = e.big ? 8 : 4;
  std::vector<int32_t> start{0}, column;
  std::vector<double> value;
  std::vector<std::vector<int>> of(levels);
  // Row i is of level i % levels and reads rows of lower levels before it.
  for (int i = 0; i < n; ++i) {
    const int level = i % levels;
    of[level].push_back(i);
    for (int k = 0, count = level ? int(e.uniform() * 2 * per) : 0; k < count; ++k) {
      const int block = int(e.uniform() * (i / levels + 1)), there = block * levels + int(e.uniform() * level);
      column.push_back(there), value.push_back((e.uniform() - .5) / per);
    }
    column.push_back(i), value.push_back(1 + e.uniform());
    start.push_back(int(column.size()));
  }
  std::vector<int32_t> order;
  for (const auto& rows : of) order.insert(order.end(), rows.begin(), rows.end());
  const size_t nnz = column.size();
  auto rows = filled<int32_t>(e, n, [&](size_t i) { return order[i]; });
  auto starts = filled<int32_t>(e, n + 1, [&](size_t i) { return start[i]; });
  auto columns = filled<int32_t>(e, nnz, [&](size_t i) { return column[i]; });
  auto values = filled<double>(e, nnz, [&](size_t i) { return value[i]; });
  auto b = filled<double>(e, n, [&](size_t) { return e.uniform(); });
  auto x = filled<double>(e, n, [](size_t) { return double(NAN); });
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * (nnz * 20. + n * 24.);
  for (int l = 0, first = 0; l < levels; first += int(of[l].size()), ++l)
    j.add(sptrsv, RowCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, rows.view(n),
          starts.view(n + 1), columns.view(nnz), values.view(nnz), b.view(n), x.p, first, first + int(of[l].size()));
  j.check = [=] {
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i) {
      double sum = b[i];
      for (int k = start[i]; k + 1 < start[i + 1]; ++k) sum -= value[k] * want[column[k]];
      want[i] = sum / value[start[i + 1] - 1];
    }
    return agree(x.now(), want, 1e-10, 1e-10);
  };
  return j;
});

// --- chemistry by chance (Gillespie): each lane draws reactions of A <-> B, B -> C until its time is up
auto gillespie =
    kernel("user_gillespie", [](const RowCfg& c, Tensor<int32_t, 2> counts, I32 steps, F32 until, U64 seed) {
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto lane = first + arange(0, c.B);
      auto species = [&](int k) { return squeeze(counts.load({k, first}, {1, c.B}), 0); };
      Tile a = species(0), b = species(1), x = species(2);
      Tile time = zeros({c.B}, f32), step = Tile(0), running = lane < counts.dim(1);
      while_([&] { return (step < steps) & any(running); },
             [&] {
               auto [u, v, w, z] =
                   randint4(seed, cast(lane, u64) * cast(cast(steps, i64), u64) + cast(cast(step, i64), u64));
               auto r1 = cast(a, f32) * 1.f, r2 = cast(b, f32) * .5f, r3 = cast(b, f32) * .25f;
               auto total = r1 + r2 + r3;
               auto unit = [](const Tile& word) { return cast(word >> 8, f32) * 0x1p-24f; };
               auto wait = -log(max(unit(u), 0x1p-25f)) / max(total, 1e-20f);
               auto happens = running & (total > 0.f) & (time + wait < until);
               auto pick = unit(v) * total;
               auto one = happens & (pick < r1), two = happens & (pick >= r1) & (pick < r1 + r2),
                    three = happens & (pick >= r1 + r2);
               a += cast(two, i32) - cast(one, i32);
               b += cast(one, i32) - cast(two, i32) - cast(three, i32);
               x += cast(three, i32);
               time = where(happens, time + wait, time);
               running = happens;
               step += 1;
             });
      for (int k = 0; k < 3; ++k) counts.store({k, first}, expand_dims(k == 0 ? a : k == 1 ? b : x, 0));
    }).grid([](const RowCfg& c, const auto& s, int, float, uint64_t) { return Grid{cdiv(s.shape[1], c.B)}; });
Register r5("gillespie", [](Env& e) {
  const int n = e.big ? 1 << 20 : 300, steps = e.big ? 500 : 60;
  const float until = e.big ? 10 : 2;
  auto counts = filled<int32_t>(e, 3 * size_t(n), [=](size_t i) { return i < size_t(n) ? 20 + int(i % 7) : 0; });
  Job j;
  j.mbytes = 24e-6 * n;
  j.add(gillespie, RowCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, counts.view(3, n), steps,
        until, uint64_t{77});
  j.check = [=]() -> std::string {
    const auto got = counts.now();
    int apart = 0;  // lanes where a draw falls on the other side of a rounding
    for (int i = 0; i < n; ++i) {
      double s[3] = {20. + i % 7, 0, 0}, time = 0;
      for (int k = 0; k < steps; ++k) {
        const auto words = reference_philox(77, uint64_t(i) * steps + k);
        const double r[3] = {s[0], s[1] * .5, s[1] * .25}, total = r[0] + r[1] + r[2];
        if (total <= 0) break;
        const double wait = -std::log(std::max((words[0] >> 8) * 0x1p-24, 0x1p-25)) / total;
        if (time + wait >= until) break;
        const double pick = (words[1] >> 8) * 0x1p-24 * total;
        if (pick < r[0])
          --s[0], ++s[1];
        else if (pick < r[0] + r[1])
          ++s[0], --s[1];
        else
          --s[1], ++s[2];
        time += wait;
      }
      apart += got[i] != s[0] || got[n + i] != s[1] || got[2 * n + i] != s[2];
    }
    return apart * 50 > n ? std::to_string(apart) + " lanes differ" : "";
  };
  return j;
});

// --- DeltaFormer: u_i = v_i - sum over j < i of softmax(k_i k_j) u_j, in chunks: what lies before by products, the
// chunk itself row by row
struct ChunkCfg {
  int C = 64, D = 128, warps = 4;
};
auto deltaformer =
    kernel("user_deltaformer", [](const ChunkCfg& c, Tensor<const half, 3> K, Tensor<const half, 3> V,
                                  Tensor<half, 3> U, F32 scale) {
      // K, V, U [H, T, D]
      num_warps(c.warps);
      auto h = program_id(0);
      auto row = arange(0, c.C).col(), column = arange(0, c.C).row();
      for (auto t : range(0, K.dim(1), c.C)) {
        auto k = K.load({h, t, 0}, {c.C, c.D});
        Tile acc = zeros({c.C, c.D}, f32), most = full({c.C, 1}, -INFINITY, f32), total = zeros({c.C, 1}, f32);
        for (auto s : range(0, t, c.C)) {
          auto score = dot(k, trans(K.load({h, s, 0}, {c.C, c.D}))) * scale;
          auto now = max(most, max(score, axis(1)));
          auto p = exp2(score - now), keep = exp2(most - now);
          acc = dot(cast(p, f16), U.load({h, s, 0}, {c.C, c.D}), acc * keep);
          total = total * keep + sum(p, axis(1));
          most = now;
        }
        auto score = where(column < row, dot(k, trans(k)) * scale, -INFINITY);
        auto now = max(most, max(score, axis(1)));
        auto low = where(now == -INFINITY, 0.f, now);
        auto p = exp2(score - low), keep = exp2(most - low);
        auto norm = total * keep + sum(p, axis(1));
        auto inv = where(norm > 0.f, 1.f / norm, 0.f);
        p = p * inv;
        Tile u = cast(V.load({h, t, 0}, {c.C, c.D}), f32) - acc * keep * inv;
        for (auto i : range(0, c.C - 1)) {  // row i is finished: what follows loses its share
          auto done = sum(where(row == i, u, 0.f), axis(0));
          auto share = sum(where(column == i, p, 0.f), axis(1));
          u -= share * done;
        }
        U.store({h, t, 0}, cast(u, f16));
      }
    }).grid([](const ChunkCfg&, const auto& k, const auto&...) { return Grid{k.shape[0]}; });
Register r6("deltaformer", [](Env& e) {
  const int H = e.big ? 128 : 2, T = e.big ? 2048 : 96, D = e.big ? 128 : 32;
  ChunkCfg c{e.field("C", e.big ? 64 : 32), D, e.field("warps", e.big ? 8 : 4)};
  auto k = random<half>(e, size_t(H) * T * D), v = random<half>(e, size_t(H) * T * D);
  auto u = constant<half>(e, size_t(H) * T * D, 0);
  Job j;
  j.gflop = 2e-9 * H * double(T) * T * D;
  j.add(deltaformer, c, k.view(H, T, D), v.view(H, T, D), u.view(H, T, D), .2f);
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < T; ++i) {
        std::vector<double> p(i);
        double total = 0;
        for (int s = 0; s < i; ++s) {
          for (int d = 0; d < D; ++d) p[s] += k[(size_t(h) * T + i) * D + d] * k[(size_t(h) * T + s) * D + d];
          total += p[s] = std::exp2(p[s] * double(.2f));
        }
        for (int d = 0; d < D; ++d) {
          double x = v[(size_t(h) * T + i) * D + d];
          for (int s = 0; s < i; ++s) x -= p[s] / total * want[(size_t(h) * T + s) * D + d];
          want[(size_t(h) * T + i) * D + d] = x;
        }
      }
    return agree(u.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace solvers
}  // namespace users
