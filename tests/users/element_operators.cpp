// element_operators.cpp - solvers on meshes: the Laplacian of elements of order four by sums along one axis at a time,
// lines of coupled unknowns eliminated block by block, and a smoother that visits rows of 3 x 3 blocks by colour.
#include "tests/users/use.h"
namespace users {
namespace element_operators {

struct ElementCfg {
  int E = 4, warps = 4;
};
constexpr int kNodes = 5, kPoints = 6;

/// out[.., q, ..] = sum over i of m[q, i] u[.., i, ..] along dim `axis` (1, 2 or 3) of a tile of 4 dims.
Tile along(const Tile& u, const Tile& m, int axis) {
  Shape last{0, 1, 2, 3};
  std::swap(last[axis], last[3]);
  Tile turned = axis == 3 ? u : permute(u, last);
  const Shape s = turned.shape();
  const int64_t rows = s[0] * s[1] * s[2], to = m.shape()[0];
  Tile y = reshape(dot(reshape(turned, {rows, s[3]}), trans(m), zeros({rows, to}, f64)), {s[0], s[1], s[2], to});
  return axis == 3 ? y : permute(y, last);
}

// --- y += A x for -div(grad) on hexahedra: x gathered by element, values and derivatives at 6^3 points, a symmetric
// 3 x 3 metric at each of them, and back
auto sum_factor =
    kernel("user_sum_factor", [](const ElementCfg& c, Tensor<const double, 1> x, Tensor<const int32_t, 2> nodes,
                                 Tensor<const double, 5> metric, Tensor<const double, 2> basis,
                                 Tensor<const double, 2> slope, Ptr<double> y) {
      // nodes [E, 125] places of nodes in x; metric [6, E, 6, 6, 6]; basis, slope [6, 5]
      num_warps(c.warps);
      const int n = kNodes, q = kPoints;
      auto e = program_id(0) * c.E;
      auto at = nodes.load({e, 0}, {c.E, n * n * n}, {.pad = -1});
      auto live = at >= 0;
      auto u = reshape(load(x.ptr() + at, {.mask = live}), {c.E, n, n, n});
      auto B = basis.load({0, 0}, {q, n}), D = slope.load({0, 0}, {q, n});
      auto bz = along(u, B, 1), dz = along(u, D, 1);
      auto bzy = along(bz, B, 2);
      std::array<Tile, 3> g{along(bzy, D, 3), along(along(bz, D, 2), B, 3), along(along(dz, B, 2), B, 3)};
      auto G = [&](int k) { return reshape(metric.load({k, e, 0, 0, 0}, {1, c.E, q, q, q}), {c.E, q, q, q}); };
      auto xx = G(0), xy = G(1), xz = G(2), yy = G(3), yz = G(4), zz = G(5);
      auto fx = xx * g[0] + xy * g[1] + xz * g[2];
      auto fy = xy * g[0] + yy * g[1] + yz * g[2];
      auto fz = xz * g[0] + yz * g[1] + zz * g[2];
      auto Bt = trans(B), Dt = trans(D);
      auto flat = along(along(fx, Dt, 3), Bt, 2) + along(along(fy, Bt, 3), Dt, 2);
      auto out = along(flat, Bt, 1) + along(along(along(fz, Bt, 3), Bt, 2), Dt, 1);
      atomic_add(y + at, reshape(out, {c.E, n * n * n}), {.mask = live, .order = Order::relaxed});
    }).grid([](const ElementCfg& c, const auto&, const auto& nodes, const auto&...) {
      return Grid{cdiv(nodes.shape[0], c.E)};
    });
Register r1("sum_factor", [](Env& e) {
  const int side = e.big ? 32 : 2, E = e.big ? side * side * side : 7, line = 4 * side + 1, N = line * line * line;
  auto place = [=](int k, int node) {
    const int ex = k % side, ey = k / side % side, ez = k / side / side;
    return ((4 * ez + node / 25) * line + 4 * ey + node / 5 % 5) * line + 4 * ex + node % 5;
  };
  auto x = random<double>(e, N), basis = random<double>(e, 30), slope = random<double>(e, 30);
  auto metric = random<double>(e, size_t(6) * E * 216);
  auto nodes = filled<int32_t>(e, size_t(E) * 125, [&](size_t i) { return place(int(i / 125), int(i % 125)); });
  auto y = filled<double>(e, N, [](size_t) { return 0.; });
  Job j;
  j.mbytes = 1e-6 * E * (6 * 216 * 8. + 125 * 4 + 125 * 24), j.gflop = 1e-9 * E * 2. * 18 * 1000;
  j.add(sum_factor, ElementCfg{e.field("E", 4), e.field("warps", 4)}, x.view(N), nodes.view(E, 125),
        metric.view(6, E, 6, 6, 6), basis.view(6, 5), slope.view(6, 5), y.p);
  j.check = [=] {
    std::vector<double> want(N);
    for (int k = 0; k < E; ++k)
      for (int p = 0; p < 216; ++p) {
        const int at[3] = {p % 6, p / 6 % 6, p / 36};
        std::vector<double> part[3];
        double g[3] = {};
        for (int d = 0; d < 3; ++d) {
          part[d].resize(125);
          for (int m = 0; m < 125; ++m) {
            const int i[3] = {m % 5, m / 5 % 5, m / 25};
            double w = 1;
            for (int a = 0; a < 3; ++a) w *= (a == d ? slope : basis)[at[a] * 5 + i[a]];
            part[d][m] = w, g[d] += w * x[place(k, m)];
          }
        }
        auto M = [&](int c) { return metric[(size_t(c) * E + k) * 216 + p]; };
        const double f[3] = {M(0) * g[0] + M(1) * g[1] + M(2) * g[2], M(1) * g[0] + M(3) * g[1] + M(4) * g[2],
                             M(2) * g[0] + M(4) * g[1] + M(5) * g[2]};
        for (int m = 0; m < 125; ++m)
          for (int d = 0; d < 3; ++d) want[place(k, m)] += part[d][m] * f[d];
      }
    return agree(y.now(), want, 1e-10, 1e-11);
  };
  return j;
});

// --- block tridiagonal systems, one per lane: A[i] x[i-1] + B[i] x[i] + C[i] x[i+1] = d[i] with blocks of K x K
struct LineCfg {
  int B = 64, warps = 2, K = 5;
};
template <int K>
using Block = std::array<std::array<Tile, K>, K>;

template <int K>
void eliminate(Block<K>& b, Block<K>& c, std::array<Tile, K>& d) {  // b^-1 c and b^-1 d in their places; no pivots
  for (int p = 0; p < K; ++p) {
    auto inverse = 1.0 / b[p][p];
    for (int j = p + 1; j < K; ++j) b[p][j] *= inverse;
    for (int j = 0; j < K; ++j) c[p][j] *= inverse;
    d[p] *= inverse;
    for (int i = 0; i < K; ++i) {
      if (i == p) continue;
      Tile f = b[i][p];
      for (int j = p + 1; j < K; ++j) b[i][j] -= f * b[p][j];
      for (int j = 0; j < K; ++j) c[i][j] -= f * c[p][j];
      d[i] -= f * d[p];
    }
  }
}
template <int K>
auto block_lines(const char* name) {
  return kernel(name,
                [](const LineCfg& c, Ptr<const double> A, Ptr<const double> Bs, Ptr<double> C, Ptr<double> d, I32 rows,
                   I64 n) {
                  // A, Bs, C [rows, K, K, n], d [rows, K, n]: C and d are overwritten, d by the solution
                  num_warps(c.warps);
                  auto s = cast(program_id(0), i64) * c.B + cast(arange(0, c.B), i64);
                  auto live = s < n;
                  auto at = [&](const Tile& row, int part, int parts) {
                    return (cast(row, i64) * parts + part) * n + s;
                  };
                  Block<K> gamma;
                  std::array<Tile, K> rho;
                  for (int i = 0; i < K; ++i) {
                    rho[i] = zeros({c.B}, f64);
                    for (int j = 0; j < K; ++j) gamma[i][j] = zeros({c.B}, f64);
                  }
                  for (auto row : range(rows)) {
                    Block<K> b, next;
                    std::array<Tile, K> r;
                    for (int i = 0; i < K; ++i) {
                      r[i] = load(d + at(row, i, K), {.mask = live});
                      for (int j = 0; j < K; ++j) {
                        b[i][j] = load(Bs + at(row, i * K + j, K * K), {.mask = live, .other = i == j ? 1. : 0.});
                        next[i][j] = load(C + at(row, i * K + j, K * K), {.mask = live});
                      }
                    }
                    for (int i = 0; i < K; ++i)
                      for (int k = 0; k < K; ++k) {
                        auto a = load(A + at(row, i * K + k, K * K), {.mask = live & (row > 0)});
                        for (int j = 0; j < K; ++j) b[i][j] -= a * gamma[k][j];
                        r[i] -= a * rho[k];
                      }
                    eliminate<K>(b, next, r);
                    gamma = next, rho = r;
                    for (int i = 0; i < K; ++i) {
                      store(d + at(row, i, K), rho[i], {.mask = live});
                      for (int j = 0; j < K; ++j) store(C + at(row, i * K + j, K * K), gamma[i][j], {.mask = live});
                    }
                  }
                  for (auto row : range(rows - 2, -1, -1)) {
                    std::array<Tile, K> x;
                    for (int i = 0; i < K; ++i) {
                      x[i] = load(d + at(row, i, K), {.mask = live});
                      for (int j = 0; j < K; ++j) x[i] -= load(C + at(row, i * K + j, K * K), {.mask = live}) * rho[j];
                    }
                    rho = x;
                    for (int i = 0; i < K; ++i) store(d + at(row, i, K), x[i], {.mask = live});
                  }
                })
      .grid([](const LineCfg& c, auto*, auto*, auto*, auto*, int, int64_t n) { return Grid{cdiv(n, c.B)}; });
}
template <int K>
Job solve_lines(Env& e,
                const Kernel<LineCfg, Ptr<const double>, Ptr<const double>, Ptr<double>, Ptr<double>, I32, I64>& k,
                int rows, int64_t n) {
  const size_t blocks = size_t(rows) * K * K * n;
  auto A = random<double>(e, blocks), C = random<double>(e, blocks), d = random<double>(e, size_t(rows) * K * n);
  auto B = filled<double>(e, blocks, [&](size_t i) {
    const int part = int(i / n % (K * K));
    return 2 * e.uniform() - 1 + (part / K == part % K ? 4. * K : 0.);
  });
  Job j;
  restore(e, j, C, d);
  j.mbytes = 8e-6 * double(n) * rows * (5 * K * K + 5 * K);
  j.add(k, LineCfg{e.field("B", e.big ? 64 : 32), e.field("warps", e.big ? 2 : 1)}, A.p, B.p, C.p, d.p, rows, n);
  j.check = [=] {  // what the solution leaves of the right-hand side
    const auto x = d.now();
    std::vector<double> got(x.size()), want(x.size());
    for (int row = 0; row < rows; ++row)
      for (int i = 0; i < K; ++i)
        for (int64_t s = 0; s < n; ++s) {
          const size_t to = (size_t(row) * K + i) * n + s;
          want[to] = d[to];
          for (int m = 0; m < K; ++m) {
            const size_t from = ((size_t(row) * K + i) * K + m) * n + s;
            if (row > 0) got[to] += A[from] * x[(size_t(row - 1) * K + m) * n + s];
            got[to] += B[from] * x[(size_t(row) * K + m) * n + s];
            if (row + 1 < rows) got[to] += C[from] * x[(size_t(row + 1) * K + m) * n + s];
          }
        }
    return agree(got, want, 1e-11, 1e-11);
  };
  return j;
}
auto lines5 = block_lines<5>("user_block_lines5");
auto lines3 = block_lines<3>("user_block_lines3");
Register r2("block_lines5", [](Env& e) { return solve_lines<5>(e, lines5, e.big ? 64 : 9, e.big ? 16384 : 45); });
Register r3("block_lines3", [](Env& e) { return solve_lines<3>(e, lines3, e.big ? 128 : 1, e.big ? 32768 : 7); });

// --- Gauss-Seidel on 3 x 3 blocks (displacements of nodes): all rows of one colour, whose neighbours have others
struct RowCfg {
  int B = 64, warps = 2;
};
auto colour_sweep =
    kernel("user_colour_sweep", [](const RowCfg& c, Tensor<const int32_t, 1> rows, Ptr<const int32_t> start,
                                   Ptr<const int32_t> columns, Ptr<const double> blocks, Tensor<const double, 2> b,
                                   Ptr<double> x) {
      // rows: those of the colour; blocks [entries, 3, 3], the diagonal block first in its row
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto live = first + arange(0, c.B) < rows.dim(0);
      auto row = rows.load({first}, {c.B});
      auto begin = load(start + row, {.mask = live}), end = load(start + row + 1, {.mask = live});
      std::array<Tile, 3> r;
      auto right = b.gather(where(live, row, -1), 0, 3);
      for (int i = 0; i < 3; ++i) r[i] = squeeze(extract(right, {0, i}, {c.B, 1}), 1);
      Tile at = begin + 1;
      while_([&] { return any(at < end); },
             [&] {
               auto there = at < end;
               auto column = load(columns + at, {.mask = there});
               std::array<Tile, 3> v;
               for (int j = 0; j < 3; ++j) v[j] = load(x + (column * 3 + j), {.mask = there});
               for (int i = 0; i < 3; ++i)
                 for (int j = 0; j < 3; ++j)
                   r[i] -= load(blocks + (cast(at, i64) * 9 + (3 * i + j)), {.mask = there}) * v[j];
               at += 1;
             });
      Block<3> d;
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
          d[i][j] = load(blocks + (cast(begin, i64) * 9 + (3 * i + j)), {.mask = live, .other = i == j ? 1. : 0.});
      auto minor = [&](int i, int j) {  // of the transposed matrix, with its sign
        const int a = (j + 1) % 3, b = (j + 2) % 3, p = (i + 1) % 3, q = (i + 2) % 3;
        return d[a][p] * d[b][q] - d[a][q] * d[b][p];
      };
      auto det = d[0][0] * minor(0, 0) + d[0][1] * minor(1, 0) + d[0][2] * minor(2, 0);
      for (int i = 0; i < 3; ++i)
        store(x + (row * 3 + i), (minor(i, 0) * r[0] + minor(i, 1) * r[1] + minor(i, 2) * r[2]) / det, {.mask = live});
    }).grid([](const RowCfg& c, const auto& rows, const auto&...) { return Grid{cdiv(rows.shape[0], c.B)}; });
Register r4("colour_sweep", [](Env& e) {
  const int side = e.big ? 96 : 5, n = side * side * side;
  std::vector<int32_t> start{0}, column;
  std::array<std::vector<int32_t>, 8> colours;
  for (int v = 0; v < n; ++v) {
    const int x = v % side, y = v / side % side, z = v / side / side;
    colours[(z & 1) * 4 + (y & 1) * 2 + (x & 1)].push_back(v);
    column.push_back(v);
    for (int k = 0; k < 27; ++k) {
      const int X = x + k % 3 - 1, Y = y + k / 3 % 3 - 1, Z = z + k / 9 - 1;
      if (k != 13 && X >= 0 && Y >= 0 && Z >= 0 && X < side && Y < side && Z < side && (v % 11 || k > 20))
        column.push_back((Z * side + Y) * side + X);
    }
    start.push_back(int(column.size()));
  }
  const size_t entries = column.size();
  std::vector<bool> diagonal(entries);
  for (int v = 0; v < n; ++v) diagonal[start[v]] = true;
  auto starts = repeated<int32_t>(e, start.size(), start);
  auto columns = repeated<int32_t>(e, entries, column);
  auto blocks = filled<double>(
      e, entries * 9, [&](size_t i) { return e.uniform() - .5 + (diagonal[i / 9] && i % 9 % 4 == 0 ? 30 : 0); });
  auto b = random<double>(e, 3 * size_t(n)), x = random<double>(e, 3 * size_t(n));
  std::vector<Array<int32_t>> rows;
  Job j;
  restore(e, j, x);
  for (const auto& colour : colours) {
    rows.push_back(repeated<int32_t>(e, colour.size(), colour));
    j.add(colour_sweep, RowCfg{e.field("B", e.big ? 64 : 32), e.field("warps", e.big ? 2 : 1)},
          rows.back().view(colour.size()), starts.p, columns.p, blocks.p, b.view(n, 3), x.p);
  }
  auto none = repeated<int32_t>(e, 0, {});
  j.add(colour_sweep, RowCfg{32, 1}, none.view(0), starts.p, columns.p, blocks.p, b.view(n, 3), x.p);
  j.mbytes = 1e-6 * double(entries) * (72 + 4 + 24) / 8;
  j.check = [=] {
    std::vector<double> want(3 * n);
    for (int i = 0; i < 3 * n; ++i) want[i] = x[i];
    for (const auto& colour : colours)
      for (int v : colour) {
        double m[3][4];
        for (int i = 0; i < 3; ++i) {
          m[i][3] = b[3 * v + i];
          for (int c = 0; c < 3; ++c) m[i][c] = blocks[size_t(start[v]) * 9 + 3 * i + c];
          for (int k = start[v] + 1; k < start[v + 1]; ++k)
            for (int c = 0; c < 3; ++c) m[i][3] -= blocks[size_t(k) * 9 + 3 * i + c] * want[3 * column[k] + c];
        }
        for (int p = 0; p < 3; ++p)
          for (int i = 0; i < 3; ++i)
            for (int c = 3; i != p && c >= p; --c) m[i][c] -= m[i][p] / m[p][p] * m[p][c];
        for (int i = 0; i < 3; ++i) want[3 * v + i] = m[i][3] / m[i][i];
      }
    return agree(x.now(), want, 1e-12, 1e-11);
  };
  return j;
});

}  // namespace element_operators
}  // namespace users
