// first_sums.cpp - what people write first of linear algebra and particles: level one and two of BLAS in float64, plain
// products, matrices of triples, neighbours by brute force and by cells, sums by key. No warps, stages or hints.
#include <array>
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace first_sums {

// --- y += a x, and x . y into one float64
struct VectorCfg {
  int B = 1024;
};
auto axpy = kernel("user_axpy", [](const VectorCfg& c, Ptr<const double> x, Ptr<double> y, F64 a, I32 n) {
              auto i = program_id(0) * c.B + arange(0, c.B);
              auto in = i < n;
              store(y + i, a * load(x + i, {.mask = in}) + load(y + i, {.mask = in}), {.mask = in});
            }).grid([](const VectorCfg& c, auto, double*, double, int n) { return Grid{cdiv(n, c.B)}; });
auto inner =
    kernel("user_inner", [](const VectorCfg& c, Ptr<const double> x, Ptr<const double> y, Ptr<double> out, I32 n) {
      Tile total = zeros({c.B}, f64);
      for (auto first : range(program_id(0) * c.B, n, num_programs(0) * c.B)) {
        auto i = first + arange(0, c.B);
        auto in = i < n;
        total += load(x + i, {.mask = in, .other = 0.0}) * load(y + i, {.mask = in, .other = 0.0});
      }
      atomic_add(out, sum(total));
    }).grid([](const VectorCfg& c, auto, auto, double*, int n) { return Grid{std::min<int64_t>(cdiv(n, c.B), 528)}; });
Register r1("axpy_inner", [](Env& e) {
  VectorCfg c;
  if (!e.big) c = {64};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 25 : 1001;
  auto x = random<double>(e, n), y = random<double>(e, n);
  auto s = constant<double>(e, 1, 0);
  Job j;
  restore(e, j, y, s);
  j.mbytes = 8e-6 * n * 5;
  j.add(axpy, c, x.p, y.p, .5, n);
  j.add(inner, c, x.p, y.p, s.p, n);
  j.check = [=] {
    std::vector<double> want, total{0};
    for (int i = 0; i < n; ++i) want.push_back(.5 * x[i] + y[i]), total[0] += x[i] * want.back();
    const auto wrong = agree(y.now(), want, 1e-14, 1e-14);
    return wrong.empty() ? agree(s.now(), total, 1e-10, 1e-12) : wrong;
  };
  return j;
});

// --- y = A x in float64, a block of rows a program
struct DgemvCfg {
  int BM = 16, BK = 128;
};
auto dgemv =
    kernel("user_dgemv", [](const DgemvCfg& c, Ptr<const double> A, Ptr<const double> x, Ptr<double> y, I32 M, I32 K) {
      auto m = program_id(0) * c.BM + arange(0, c.BM);
      Tile total = zeros({c.BM, c.BK}, f64);
      for (auto k0 : range(0, K, c.BK)) {
        auto k = k0 + arange(0, c.BK);
        auto a = load(A + m.col() * K + k.row(), {.mask = (m < M).col() & (k < K).row(), .other = 0.0});
        total += a * load(x + k, {.mask = k < K, .other = 0.0}).row();
      }
      store(y + m, squeeze(sum(total, axis(1)), 1), {.mask = m < M});
    }).grid([](const DgemvCfg& c, auto, auto, double*, int M, int) { return Grid{cdiv(M, c.BM)}; });
Register r2("dgemv", [](Env& e) {
  DgemvCfg c;
  if (!e.big) c = {8, 32};
  c.BM = e.field("BM", c.BM), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 8192 : 21, K = e.big ? 8192 : 77;
  auto a = random<double>(e, size_t(M) * K), x = random<double>(e, K);
  auto y = constant<double>(e, M, NAN);
  Job j;
  j.mbytes = 8e-6 * M * K;
  j.add(dgemv, c, a.p, x.p, y.p, M, K);
  j.check = [=] {
    return agree(y.now(), product(M, 1, K, matrix(a, K), [&](int k, int) { return x[k]; }), 1e-12, 1e-12);
  };
  return j;
});

// --- C = A B in float32 as it is, through pointers
struct SgemmCfg {
  int BM = 64, BN = 64, BK = 32;
};
auto sgemm = kernel("user_sgemm", [](const SgemmCfg& c, Ptr<const float> A, Ptr<const float> B, Ptr<float> C, I32 M,
                                     I32 N, I32 K) {
               auto m = program_id(1) * c.BM + arange(0, c.BM), n = program_id(0) * c.BN + arange(0, c.BN);
               Tile acc = zeros({c.BM, c.BN}, f32);
               for (auto k0 : range(0, K, c.BK)) {
                 auto k = k0 + arange(0, c.BK);
                 auto a = load(A + m.col() * K + k.row(), {.mask = (m < M).col() & (k < K).row(), .other = 0.f});
                 auto b = load(B + k.col() * N + n.row(), {.mask = (k < K).col() & (n < N).row(), .other = 0.f});
                 acc = dot(a, b, acc);
               }
               store(C + m.col() * N + n.row(), acc, {.mask = (m < M).col() & (n < N).row()});
             }).grid([](const SgemmCfg& c, auto, auto, float*, int M, int N, int) {
  return Grid{cdiv(N, c.BN), cdiv(M, c.BM)};
});
Register r3("sgemm", [](Env& e) {
  SgemmCfg c;
  if (!e.big) c = {16, 16, 8};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int M = e.big ? 4096 : 21, N = e.big ? 4096 : 37, K = e.big ? 4096 : 29;
  auto a = random<float>(e, size_t(M) * K), b = random<float>(e, size_t(K) * N);
  auto out = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(sgemm, c, a.p, b.p, out.p, M, N, K);
  j.check = [=] { return agree(out.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 1e-5, 1e-5); };
  return j;
});

// --- sparse matrices of triples (row, column, value): products added with atomics
struct CooCfg {
  int B = 1024;
};
auto coo = kernel("user_coo", [](const CooCfg& c, Ptr<const int32_t> row, Ptr<const int32_t> col, Ptr<const float> val,
                                 Ptr<const float> x, Ptr<float> y, I32 n) {
             auto i = program_id(0) * c.B + arange(0, c.B);
             auto in = i < n;
             auto r = load(row + i, {.mask = in, .other = 0}), q = load(col + i, {.mask = in, .other = 0});
             atomic_add(y + r, load(val + i, {.mask = in, .other = 0.f}) * load(x + q, {.mask = in, .other = 0.f}),
                        {.mask = in});
           }).grid([](const CooCfg& c, auto, auto, auto, auto, float*, int n) { return Grid{cdiv(n, c.B)}; });
// the same sorted by row: runs are summed in the program, and every run's end adds once
auto coo_runs = kernel("user_coo_runs", [](const CooCfg& c, Ptr<const int32_t> row, Ptr<const int32_t> col,
                                           Ptr<const float> val, Ptr<const float> x, Ptr<float> y, I32 n) {
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto in = i < n;
                  auto r = load(row + i, {.mask = in, .other = -1}), q = load(col + i, {.mask = in, .other = 0});
                  auto next = load(row + i + 1, {.mask = i + 1 < n, .other = -1});
                  auto v = load(val + i, {.mask = in, .other = 0.f}) * load(x + q, {.mask = in, .other = 0.f});
                  auto [key, total] = scan({r, v}, axis(0), [](Tile ra, Tile va, Tile rb, Tile vb) {
                    return std::tuple(rb, where(ra == rb, va + vb, vb));
                  });
                  auto last = (r != next) | (arange(0, c.B) == c.B - 1);
                  atomic_add(y + key, total, {.mask = in & last});
                }).grid([](const CooCfg& c, auto, auto, auto, auto, float*, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("coo", [](Env& e) {
  CooCfg c;
  if (!e.big) c = {64};
  c.B = e.field("B", c.B);
  const int rows = e.big ? 1 << 20 : 50, n = e.big ? 1 << 24 : 401;
  int at = 0;
  auto row = filled<int32_t>(e, n, [&](size_t i) { return at = int(int64_t(i) * rows / n); });
  auto col = integers<int32_t>(e, n, 0, rows);
  auto val = random<float>(e, n), x = random<float>(e, rows);
  auto y = constant<float>(e, rows, 0), z = constant<float>(e, rows, 0);
  Job j;
  restore(e, j, y, z);
  j.mbytes = 24e-6 * n;
  j.add(coo, c, row.p, col.p, val.p, x.p, y.p, n);
  j.add(coo_runs, c, row.p, col.p, val.p, x.p, z.p, n);
  j.check = [=] {
    std::vector<double> want(rows);
    for (int i = 0; i < n; ++i) want[row.h[i]] += val[i] * x[col.h[i]];
    const auto wrong = agree(y.now(), want, 1e-5, 1e-5);
    return wrong.empty() ? agree(z.now(), want, 1e-5, 1e-5) : wrong;
  };
  return j;
});

// --- the k nearest points by brute force: a block of queries against all points, the best of the old and the new
struct KnnCfg {
  int BQ = 32, BP = 128, D = 64, K = 16;
};
auto knn = kernel("user_knn", [](const KnnCfg& c, Ptr<const float> Q, Ptr<const float> P, Ptr<int32_t> out,
                                 Ptr<float> far, I32 nq, I32 np) {
             auto q = program_id(0) * c.BQ + arange(0, c.BQ), d = arange(0, c.D);
             auto query = load(Q + q.col() * c.D + d.row(), {.mask = (q < nq).col(), .other = 0.f});
             Tile best = full({c.BQ, c.K}, INFINITY, f32), at = full({c.BQ, c.K}, -1, i32);
             for (auto first : range(0, np, c.BP)) {
               auto p = first + arange(0, c.BP);
               auto point = load(P + p.col() * c.D + d.row(), {.mask = (p < np).col(), .other = 0.f});
               auto distance = sum(point * point, axis(1));
               auto d2 = where((p < np).row(),
                               trans(distance) - 2.f * dot(query, trans(point), zeros({c.BQ, c.BP}, f32)), INFINITY);
               auto all = cat(best, d2, 1), which = cat(at, broadcast_to(p.row(), {c.BQ, c.BP}), 1);
               auto [value, place] = topk(-all, c.K, axis(1));
               best = -value;
               at = take(which, place, 1);
             }
             auto o = q.col() * c.K + arange(0, c.K).row();
             store(out + o, at, {.mask = (q < nq).col()});
             store(far + o, best, {.mask = (q < nq).col()});
           }).grid([](const KnnCfg& c, auto, auto, int32_t*, float*, int nq, int) { return Grid{cdiv(nq, c.BQ)}; });
Register r6("knn", [](Env& e) {
  KnnCfg c;
  if (!e.big) c = {16, 32, 16, 8};
  c.BQ = e.field("BQ", c.BQ), c.BP = e.field("BP", c.BP);
  const int nq = e.big ? 8192 : 21, np = e.big ? 16384 : 101;
  auto Q = random<float>(e, size_t(nq) * c.D), P = random<float>(e, size_t(np) * c.D);
  auto out = constant<int32_t>(e, size_t(nq) * c.K, -5);
  auto far = constant<float>(e, size_t(nq) * c.K, NAN);
  Job j;
  j.gflop = 2e-9 * nq * np * c.D;
  j.add(knn, c, Q.p, P.p, out.p, far.p, nq, np);
  j.check = [=] {
    std::vector<double> want, found;
    const auto got = out.now();
    for (int i = 0; i < nq; ++i) {
      std::vector<double> all;
      for (int p = 0; p < np; ++p) {
        double s = 0;
        for (int d = 0; d < c.D; ++d) s += P[p * c.D + d] * P[p * c.D + d] - 2 * P[p * c.D + d] * Q[i * c.D + d];
        all.push_back(s);
      }
      for (int k = 0; k < c.K; ++k) found.push_back(got[i * c.K + k] < 0 ? NAN : all[got[i * c.K + k]]);
      std::sort(all.begin(), all.end());
      want.insert(want.end(), all.begin(), all.begin() + c.K);
    }
    const auto wrong = agree(far.now(), want, 1e-4, 1e-4);
    return wrong.empty() ? agree(found, want, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- DBSCAN: how many points lie within eps, and which of them are kernels of clusters
struct DenseCfg {
  int B = 128, BP = 64;
};
auto within =
    kernel("user_within", [](const DenseCfg& c, Tensor<const float, 2> X, Ptr<int32_t> count, Ptr<uint8_t> core,
                             F32 eps, I32 least) {
      auto n = X.dim(0);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto at = [&](const Tile& p, int d) { return load(X.ptr() + p * 3 + d, {.mask = p < n, .other = NAN}); };
      auto x = at(i, 0).col(), y = at(i, 1).col(), z = at(i, 2).col();
      Tile near = zeros({c.B}, i32);
      for (auto first : range(0, n, c.BP)) {
        auto p = first + arange(0, c.BP);
        auto dx = x - at(p, 0).row(), dy = y - at(p, 1).row(), dz = z - at(p, 2).row();
        near += squeeze(sum(cast(dx * dx + dy * dy + dz * dz <= eps * eps, i32), axis(1)), 1);
      }
      store(count + i, near, {.mask = i < n});
      store(core + i, cast(near >= least, u8), {.mask = i < n});
    }).grid([](const DenseCfg& c, const auto& x, int32_t*, uint8_t*, float, int) {
      return Grid{cdiv(x.shape[0], c.B)};
    });
Register r7("within", [](Env& e) {
  DenseCfg c;
  if (!e.big) c = {32, 16};
  c.B = e.field("B", c.B), c.BP = e.field("BP", c.BP);
  const int n = e.big ? 65536 : 101;
  auto x = random<float>(e, size_t(n) * 3);
  auto count = constant<int32_t>(e, n, -1);
  auto core = constant<uint8_t>(e, n, 9);
  Job j;
  j.gflop = 9e-9 * n * n;
  j.add(within, c, x.view(n, 3), count.p, core.p, .6f, 8);
  j.check = [=] {
    const auto got = count.now();
    const auto flag = core.now();
    for (int i = 0; i < n; ++i) {
      int few = 0, many = 0;
      for (int k = 0; k < n; ++k) {
        double s = 0;
        for (int d = 0; d < 3; ++d) s += (x[i * 3 + d] - x[k * 3 + d]) * (x[i * 3 + d] - x[k * 3 + d]);
        few += s < .36 * (1 - 1e-5), many += s < .36 * (1 + 1e-5);
      }
      if (got[i] < few || got[i] > many || flag[i] != (got[i] >= 8))
        return "point " + std::to_string(i) + ": " + std::to_string(got[i]) + " instead of " + std::to_string(few);
    }
    return std::string();
  };
  return j;
});

// --- Lennard-Jones with cells: a program per cell, its atoms against those of the 27 cells around, all in rows of M
struct CellCfg {
  int M = 32;
};
auto lj_cells = kernel("user_lj_cells", [](const CellCfg& c, Ptr<const float> P, Ptr<const int32_t> count, Ptr<float> F,
                                           I32 side, F32 width) {
                  // P, F [side^3, 3, M], periodic; places lie in the box of side * width
                  auto x = program_id(0), y = program_id(1), z = program_id(2);
                  auto cell = (z * side + y) * side + x;
                  auto slot = arange(0, c.M);
                  auto n = load(count + cell);
                  std::array<Tile, 3> p, f;
                  for (int d = 0; d < 3; ++d) {
                    p[d] = load(P + (cell * 3 + d) * c.M + slot, {.mask = slot < n, .other = 0.f}).col();
                    f[d] = zeros({c.M}, f32);
                  }
                  auto box = cast(side, f32) * width;
                  for (auto k : range(0, 27)) {
                    auto nx = floor_mod(x + k % 3 - 1, side), ny = floor_mod(y + k / 3 % 3 - 1, side),
                         nz = floor_mod(z + k / 9 - 1, side);
                    auto other = (nz * side + ny) * side + nx;
                    auto many = load(count + other);
                    std::array<Tile, 3> r;
                    for (int d = 0; d < 3; ++d) {
                      auto q = load(P + (other * 3 + d) * c.M + slot, {.mask = slot < many, .other = 0.f}).row();
                      auto u = p[d] - q;
                      r[d] = u - box * rint(u / box);
                    }
                    auto r2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
                    auto ok = (slot < n).col() & (slot < many).row() & (r2 < width * width) & (r2 > 0.f);
                    auto inverse = where(ok, 1.f / r2, 0.f);
                    auto i6 = inverse * inverse * inverse;
                    auto s = 24.f * i6 * (2.f * i6 - 1.f) * inverse;
                    for (int d = 0; d < 3; ++d) f[d] += squeeze(sum(s * r[d], axis(1)), 1);
                  }
                  for (int d = 0; d < 3; ++d) store(F + (cell * 3 + d) * c.M + slot, f[d], {.mask = slot < n});
                }).grid([](const CellCfg&, auto, auto, float*, int side, float) {
  return Grid{side, side, side};
});
Register r8("lj_cells", [](Env& e) {
  CellCfg c;
  if (!e.big) c = {8};
  const int side = e.big ? 48 : 4, cells = side * side * side;
  const float width = 2.5f;
  auto count = integers<int32_t>(e, cells, c.M / 2, c.M + 1);
  size_t next = 0;
  auto P = filled<float>(e, size_t(cells) * 3 * c.M, [&](size_t i) {
    next = i / c.M;
    const int d = int(next % 3), cell = int(next / 3), at[3] = {cell % side, cell / side % side, cell / side / side};
    return float((at[d] + e.uniform()) * width);
  });
  auto F = constant<float>(e, P.n, 0);
  Job j;
  j.gflop = 30e-9 * cells * 27 * c.M * c.M * .56;
  j.add(lj_cells, c, P.p, count.p, F.p, side, width);
  j.check = [=] {
    std::vector<double> want(P.n);
    const double box = side * width;
    const auto got = F.now();
    for (int a = 0; a < cells; ++a)
      for (int i = 0; i < count.h[a]; ++i) {
        double f[3] = {}, size = 1;
        for (int k = 0; k < 27; ++k) {
          const int bx = (a % side + k % 3 + side - 1) % side, by = (a / side % side + k / 3 % 3 + side - 1) % side,
                    bz = (a / side / side + k / 9 + side - 1) % side, b = (bz * side + by) * side + bx;
          for (int l = 0; l < count.h[b]; ++l) {
            if (a == b && i == l) continue;
            double r[3], r2 = 0;
            for (int d = 0; d < 3; ++d) {
              r[d] = P[(a * 3 + d) * c.M + i] - P[(b * 3 + d) * c.M + l];
              r[d] -= box * std::rint(r[d] / box), r2 += r[d] * r[d];
            }
            if (r2 >= width * width) continue;
            const double i6 = 1 / (r2 * r2 * r2), s = 24 * i6 * (2 * i6 - 1) / r2;
            for (int d = 0; d < 3; ++d) f[d] += s * r[d], size += std::abs(s * r[d]);
          }
        }
        for (int d = 0; d < 3; ++d)
          if (const double g = got[(a * 3 + d) * c.M + i]; !(std::abs(g - f[d]) < 1e-3 * size))
            return "atom " + std::to_string(i) + " of cell " + std::to_string(a);
      }
    return std::string();
  };
  return j;
});

// --- sums by key: runs of equal keys become one row each; blocks find their place by a scan of counts
struct KeyCfg {
  int B = 512;
};
auto key_heads = kernel("user_key_heads", [](const KeyCfg& c, Ptr<const int32_t> key, Ptr<int32_t> heads, I32 n) {
                   auto i = program_id(0) * c.B + arange(0, c.B);
                   auto k = load(key + i, {.mask = i < n}), before = load(key + i - 1, {.mask = (i > 0) & (i < n)});
                   store(heads + program_id(0), sum(cast((i < n) & ((i == 0) | (k != before)), i32)));
                 }).grid([](const KeyCfg& c, auto, int32_t*, int n) { return Grid{cdiv(n, c.B)}; });
auto key_places = kernel("user_key_places", [](const KeyCfg& c, Ptr<int32_t> heads, I32 blocks) {
                    Tile carry = full({}, 0, i32);
                    for (auto first : range(0, blocks, c.B)) {
                      auto i = first + arange(0, c.B);
                      auto x = load(heads + i, {.mask = i < blocks});
                      auto s = cumsum(x, axis(0));
                      store(heads + i, carry + s - x, {.mask = i < blocks});
                      carry += sum(x);
                    }
                  }).grid([](const KeyCfg&, int32_t*, int) { return Grid{1}; });
auto key_sums = kernel("user_key_sums", [](const KeyCfg& c, Ptr<const int32_t> key, Ptr<const float> value,
                                           Ptr<const int32_t> place, Ptr<int32_t> keys, Ptr<float> sums, I32 n) {
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto in = i < n;
                  auto k = load(key + i, {.mask = in, .other = -1}),
                       before = load(key + i - 1, {.mask = (i > 0) & in, .other = -1});
                  auto next = load(key + i + 1, {.mask = i + 1 < n, .other = -1});
                  auto head = in & ((i == 0) | (k != before));
                  auto at = load(place + program_id(0)) + cumsum(cast(head, i32), axis(0)) - 1;
                  auto v = load(value + i, {.mask = in, .other = 0.f});
                  auto [_, total] = scan({k, v}, axis(0), [](Tile ka, Tile va, Tile kb, Tile vb) {
                    return std::tuple(kb, where(ka == kb, va + vb, vb));
                  });
                  store(keys + at, k, {.mask = head});
                  atomic_add(sums + at, total, {.mask = in & ((k != next) | (arange(0, c.B) == c.B - 1))});
                }).grid([](const KeyCfg& c, auto, auto, auto, int32_t*, float*, int n) { return Grid{cdiv(n, c.B)}; });
Register r9("sums_by_key", [](Env& e) {
  KeyCfg c;
  if (!e.big) c = {32};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 24 : 501;
  int at = 0;
  auto key = drawn<int32_t>(e, n, [&] { return at += e.uniform() < .15; });
  auto value = random<float>(e, n);
  const int blocks = int(cdiv(n, c.B));
  auto heads = constant<int32_t>(e, blocks, 0), keys = constant<int32_t>(e, n, -1);
  auto sums = constant<float>(e, n, 0);
  Job j;
  restore(e, j, sums);
  j.mbytes = 16e-6 * n;
  j.inTurn = true;
  j.add(key_heads, c, key.p, heads.p, n);
  j.add(key_places, c, heads.p, blocks);
  j.add(key_sums, c, key.p, value.p, heads.p, keys.p, sums.p, n);
  j.check = [=] {
    std::vector<double> ks(n, -1), want(n);
    int row = -1;
    for (int i = 0; i < n; ++i) {
      if (!i || key.h[i] != key.h[i - 1]) ks[++row] = key.h[i];
      want[row] += value[i];
    }
    const auto wrong = agree(keys.now(), ks, .1, 0);
    return wrong.empty() ? agree(sums.now(), want, 1e-5, 1e-5) : wrong;
  };
  return j;
});

// --- stages of a transform, one launch each: pairs of complex numbers, radix 2, Stockham's order (no bits reversed)
struct StageCfg {
  int B = 256;
};
auto fft_stage =
    kernel("user_fft_stage", [](const StageCfg& c, Ptr<const float> in, Ptr<float> out, I32 n, I32 m, I32) {
      // rows of n complex numbers; l = n / 2 / m groups of m: x[j + m k], x[j + m k + n / 2] -> y[j + 2 m k], y[.. + m]
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto row = cast(program_id(1), i64) * n * 2;
      auto ok = i < n / 2;
      auto j = i % m, k = i / m;
      auto ar = load(in + row + i * 2, {.mask = ok}), ai = load(in + row + i * 2 + 1, {.mask = ok});
      auto br = load(in + row + (i + n / 2) * 2, {.mask = ok}), bi = load(in + row + (i + n / 2) * 2 + 1, {.mask = ok});
      auto angle = -6.283185307179586f * cast(k * m, f32) / cast(n, f32);
      auto wr = cos(angle), wi = sin(angle);
      auto sr = ar - br, si = ai - bi;
      auto to = out + row + (j + 2 * m * k) * 2;
      store(to, ar + br, {.mask = ok});
      store(to + 1, ai + bi, {.mask = ok});
      store(to + 2 * m, sr * wr - si * wi, {.mask = ok});
      store(to + 2 * m + 1, sr * wi + si * wr, {.mask = ok});
    }).grid([](const StageCfg& c, auto, float*, int n, int, int rows) {
      return Grid{cdiv(n / 2, c.B), rows};
    });
Register r10("fft_stages", [](Env& e) {
  StageCfg c;
  if (!e.big) c = {16};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1024 : 32, rows = e.big ? 4096 : 2;
  auto x = random<float>(e, size_t(rows) * n * 2);
  auto y = constant<float>(e, x.n, NAN), z = constant<float>(e, x.n, NAN);
  Job j;
  j.inTurn = true;
  const float* from = x.p;
  float* to = y.p;
  for (int m = 1; m < n; m *= 2) {
    j.add(fft_stage, c, from, to, n, m, rows), j.mbytes += 8e-6 * double(x.n);
    from = to, to = to == y.p ? z.p : y.p;
  }
  const bool in_y = from == y.p;
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < 2; ++r)
      for (int k = 0; k < n; ++k) {
        double re = 0, im = 0;
        for (int t = 0; t < n; ++t) {
          const double a = -2 * M_PI * k * t / n, u = x[(size_t(r) * n + t) * 2], v = x[(size_t(r) * n + t) * 2 + 1];
          re += u * std::cos(a) - v * std::sin(a), im += u * std::sin(a) + v * std::cos(a);
        }
        want.push_back(re), want.push_back(im);
      }
    auto got = (in_y ? y : z).now();
    return agree(got, want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace first_sums
}  // namespace users
