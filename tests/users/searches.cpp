// searches.cpp - kernels that decide while they run: nearest neighbours, clustering, compaction in one pass, pivoted
// factoring of many small matrices, convolution over lists of pairs, rays against triangles.
#include <algorithm>
#include <array>
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace searches {

// --- the 8 nearest points of a set for every query: a block of distances is searched only while it has a nearer one
struct NearestCfg {
  int BM = 64, BN = 128, D = 64, K = 8, stages = 2, warps = 4;
};
auto nearest =
    kernel("user_nearest", [](const NearestCfg& c, Tensor<const half, 2> Q, Tensor<const half, 2> P,
                              Tensor<const float, 1> norms, Tensor<float, 2> distances, Tensor<int32_t, 2> indices) {
      // Q [M, D], P [N, D], norms [N] = |p|^2; distances without |q|^2, ascending
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      auto N = P.dim(0);
      auto q = Q.load({m, 0}, {c.BM, c.D});
      auto slot = arange(0, c.K).row();
      Tile best = full({c.BM, c.K}, INFINITY, f32), where_at = zeros({c.BM, c.K}, i32);
      for (auto n : range(0, N, c.BN, {.stages = c.stages})) {
        auto cols = (n + arange(0, c.BN)).row();
        auto dots = dot(q, trans(P.load({n, 0}, {c.BN, c.D})));
        Tile d = norms.load({n}, {c.BN}).row() - 2.f * dots;
        d = where(cols < N, d, INFINITY);
        Tile worst = max(best, axis(1));
        while_([&] { return any(min(d, axis(1)) < worst); },
               [&] {
                 auto low = min(d, axis(1));
                 auto at = argmin(d, axis(1));
                 auto replaced = (slot == argmax(best, axis(1))) & (low < worst);
                 best = where(replaced, low, best);
                 where_at = where(replaced, at + n, where_at);
                 d = where(arange(0, c.BN).row() == at, INFINITY, d);
                 worst = max(best, axis(1));
               });
      }
      distances.store({m, 0}, best);
      indices.store({m, 0}, where_at);
    }).grid([](const NearestCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.BM)}; });
Register r1("nearest", [](Env& e) {
  int M = e.big ? 16384 : 70, N = e.big ? 65536 : 300, D = 64, K = 8;
  auto q = random<half>(e, size_t(M) * D), p = random<half>(e, size_t(N) * D);
  auto norms = filled<float>(e, N, [&](size_t i) {
    double s = 0;
    for (int d = 0; d < D; ++d) s += p[i * D + d] * p[i * D + d];
    return float(s);
  });
  auto dist = constant<float>(e, size_t(M) * K, NAN);
  auto at = constant<int32_t>(e, size_t(M) * K, -1);
  Job j;
  j.gflop = 2e-9 * M * double(N) * D;
  j.add(nearest, NearestCfg{}, q.view(M, D), p.view(N, D), norms.view(N), dist.view(M, K), at.view(M, K));
  j.check = [=] {
    std::vector<double> want;
    std::vector<float> got = dist.now();
    const auto index = at.now();
    for (int m = 0; m < M; ++m) {
      std::vector<double> d(N);
      for (int n = 0; n < N; ++n) {
        d[n] = norms[n];
        for (int k = 0; k < D; ++k) d[n] -= 2 * q[m * D + k] * p[size_t(n) * D + k];
      }
      for (int k = 0; k < K; ++k)
        if (!(std::abs(got[m * K + k] - d[index[m * K + k]]) < 1e-2))
          return std::string("an index of another distance");
      std::sort(d.begin(), d.end());
      want.insert(want.end(), d.begin(), d.begin() + K);
      std::sort(got.begin() + m * K, got.begin() + (m + 1) * K);
    }
    return agree(got, want, 1e-2, 1e-3);
  };
  return j;
});

// --- one step of k-means: the nearest of K centres, sums and counts of clusters by atomics
struct MeansCfg {
  int BM = 128, K = 64, D = 32, warps = 4;
};
auto means =
    kernel("user_kmeans", [](const MeansCfg& c, Tensor<const float, 2> X, Tensor<const float, 2> centres,
                             Tensor<int32_t, 1> labels, Ptr<float> sums, Ptr<int32_t> counts) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      auto live = m + arange(0, c.BM) < X.dim(0);
      auto x = X.load({m, 0}, {c.BM, c.D}), y = centres.load({0, 0}, {c.K, c.D});
      auto d = trans(sum(y * y, axis(1))) - 2.f * dot(x, trans(y), Prec::tf32x3);
      auto label = squeeze(argmin(d, axis(1)), 1);
      labels.store({m}, label);
      atomic_add(sums + label.col() * c.D + arange(0, c.D).row(), x, {.mask = live.col(), .order = Order::relaxed});
      auto counted = histogram(label, c.K, {.mask = live});
      atomic_add(counts + arange(0, c.K), counted, {.order = Order::relaxed});
    }).grid([](const MeansCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r2("kmeans", [](Env& e) {
  int M = e.big ? 1 << 20 : 300, D = 32, K = e.big ? 256 : 64;
  auto x = random<float>(e, size_t(M) * D), y = random<float>(e, size_t(K) * D);
  auto labels = constant<int32_t>(e, M, -1), counts = constant<int32_t>(e, K, 0);
  auto sums = constant<float>(e, size_t(K) * D, 0);
  Job j;
  j.mbytes = 1e-6 * M * (4. * D + 4);
  j.add(means, MeansCfg{e.big ? 64 : 128, K, D, e.big ? 8 : 4}, x.view(M, D), y.view(K, D), labels.view(M), sums.p,
        counts.p);
  j.check = [=] {
    std::vector<double> sum(size_t(K) * D), count(K);
    const auto label = labels.now();
    for (int m = 0; m < M; ++m) {
      std::vector<double> d(K);
      for (int k = 0; k < K; ++k)
        for (int i = 0; i < D; ++i) d[k] += std::pow(x[m * D + i] - y[k * D + i], 2);
      if (d[label[m]] > *std::min_element(d.begin(), d.end()) + 1e-4) return std::string("not the nearest centre");
      count[label[m]] += 1;
      for (int i = 0; i < D; ++i) sum[label[m] * D + i] += x[m * D + i];
    }
    auto wrong = agree(counts.now(), count, 0.5, 0);
    return wrong.empty() ? agree(sums.now(), sum, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- compaction in one pass: what is above a threshold moves to the front, in order; a program waits for the sum of
// those before it (flag in the upper half: 0 nothing yet, 1 own count, 2 count of all up to here)
struct CompactCfg {
  int B = 4096, warps = 8;
};
auto compact = kernel("user_compact", [](const CompactCfg& c, Ptr<const float> x, Ptr<float> out, Ptr<int64_t> states,
                                         Ptr<int32_t> ticket, I64 n, F32 threshold) {
  num_warps(c.warps);
  Tile block = atomic_add(ticket, 1);
  auto at = cast(block, i64) * c.B + arange(0, c.B);
  auto v = load(x + at, {.mask = at < n});
  auto keep = (v > threshold) & (at < n);
  auto ones = cast(keep, i32);
  auto place = cumsum(ones, axis(0)) - ones;
  auto count = cast(sum(ones), i64);
  constexpr int64_t kOwn = int64_t{1} << 32, kAll = int64_t{2} << 32;
  I64 before = 0;
  if_(
      block == 0, [&] { atomic_exchange(states, count + kAll, {.order = Order::release}); },
      [&] {
        atomic_exchange(states + block, count + kOwn, {.order = Order::release});
        Tile back = block - 1;
        while_([&] { return back >= 0; },
               [&] {
                 auto s = atomic_add(states + back, int64_t{0}, {.order = Order::acquire});
                 auto flag = s >> 32;
                 if_(flag != 0, [&] {
                   before += s & 0xffffffff;
                   back = where(flag == 2, -1, back - 1);
                 });
               });
        atomic_exchange(states + block, before + count + kAll, {.order = Order::release});
      });
  store(out + before + cast(place, i64), v, {.mask = keep});
});
Register r3("compact", [](Env& e) {
  int64_t n = e.big ? 1 << 26 : 20000;
  CompactCfg c{e.big ? 4096 : 1024, e.big ? 8 : 4};
  int blocks = int(cdiv(n, int64_t{c.B}));
  auto x = random<float>(e, n);
  auto out = constant<float>(e, n, 0);
  auto states = constant<int64_t>(e, blocks, 0);
  auto ticket = constant<int32_t>(e, 1, 0);
  Job j;
  j.mbytes = 1e-6 * n * 6;
  j.inTurn = true;
  // The state is for one launch: a second step clears it.
  static auto clear = kernel("user_clear", [](const CompactCfg& cfg, Ptr<int64_t> s, Ptr<int32_t> t, I32 count) {
                        auto i = program_id(0) * cfg.B + arange(0, cfg.B);
                        store(s + i, zeros({cfg.B}, i64), {.mask = i < count});
                        if_(program_id(0) == 0, [&] { store(t, 0); });
                      }).grid([](const CompactCfg& cfg, auto*, auto*, int count) { return Grid{cdiv(count, cfg.B)}; });
  j.add(clear, CompactCfg{1024, 4}, states.p, ticket.p, blocks);
  j.add(compact.grid([=](const CompactCfg&, const auto&...) { return Grid{blocks}; }), c, x.p, out.p, states.p,
        ticket.p, n, 0.f);
  j.check = [=] {
    std::vector<double> want;
    for (int64_t i = 0; i < n; ++i)
      if (x[i] > 0) want.push_back(x[i]);
    return agree(out.now(), want, 0, 1e-7);
  };
  return j;
});

// --- LU with partial pivoting of many 16x16 matrices, several per program, in place
struct LuCfg {
  int P = 16, N = 16, warps = 4;
};
auto lu = kernel("user_lu16", [](const LuCfg& c, Tensor<float, 3> A, Tensor<int32_t, 2> pivots) {
            num_warps(c.warps);
            auto b = program_id(0) * c.P;
            Tile a = A.load({b, 0, 0}, {c.P, c.N, c.N});
            auto row = reshape(arange(0, c.N), {1, c.N, 1}), col = reshape(arange(0, c.N), {1, 1, c.N});
            Tile chosen = zeros({c.P, c.N, 1}, i32);
            for (auto k : range(0, c.N)) {
              auto column = sum(where(col == k, a, 0.f), axis(2));           // P x N x 1
              auto p = argmax(where(row >= k, abs(column), -1.f), axis(1));  // P x 1 x 1
              chosen = where(row == k, p, chosen);
              auto upper = sum(where(row == k, a, 0.f), axis(1)), lower = sum(where(row == p, a, 0.f), axis(1));
              a = where(row == k, lower, where(row == p, upper, a));
              column = sum(where(col == k, a, 0.f), axis(2));
              auto pivot = sum(where(row == k, column, 0.f), axis(1));
              auto factor = where(row > k, column / pivot, 0.f);
              a = where(col > k, a - factor * lower, where((col == k) & (row > k), factor, a));
            }
            A.store({b, 0, 0}, a);
            pivots.store({b, 0}, squeeze(chosen, 2));
          }).grid([](const LuCfg& c, const auto& a, const auto&) { return Grid{cdiv(a.shape[0], c.P)}; });
Register r4("lu16", [](Env& e) {
  int B = e.big ? 1 << 17 : 21, N = 16;
  auto a = random<float>(e, size_t(B) * N * N);
  auto pivots = constant<int32_t>(e, size_t(B) * N, -1);
  Job j;
  j.mbytes = 8e-6 * B * N * N;
  j.add(lu, LuCfg{e.big ? 4 : 2, N, 4}, a.view(B, N, N), pivots.view(B, N));
  j.check = [=] {
    std::vector<double> want, order;
    for (int b = 0; b < B; ++b) {
      std::vector<double> m(N * N);
      for (int i = 0; i < N * N; ++i) m[i] = a[size_t(b) * N * N + i];
      for (int k = 0; k < N; ++k) {
        int p = k;
        for (int i = k; i < N; ++i)
          if (std::abs(m[i * N + k]) > std::abs(m[p * N + k])) p = i;
        order.push_back(p);
        for (int i = 0; i < N; ++i) std::swap(m[k * N + i], m[p * N + i]);
        for (int i = k + 1; i < N; ++i) {
          m[i * N + k] /= m[k * N + k];
          for (int x = k + 1; x < N; ++x) m[i * N + x] -= m[i * N + k] * m[k * N + x];
        }
      }
      want.insert(want.end(), m.begin(), m.end());
    }
    auto wrong = agree(pivots.now(), order, .5, 0);
    return wrong.empty() ? agree(a.now(), want, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- sparse convolution by lists of pairs: out[to] += in[from] W[offset], pairs of an offset padded to whole blocks
struct PairsCfg {
  int BM = 128, BN = 64, BK = 64, stages = 3, warps = 4;
};
auto sparse_conv = kernel(
    "user_sparse_conv", [](const PairsCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> W, Ptr<const int32_t> from,
                           Ptr<const int32_t> to, Ptr<const int32_t> offsets, Ptr<float> Y) {
      // X [points, C], W [offsets, C, K], Y [points, K] zero at first; from, to: -1 is padding; offsets: one per block
      num_warps(c.warps);
      auto pair = program_id(0) * c.BM + arange(0, c.BM);
      auto k0 = program_id(1) * c.BN;
      auto source = load(from + pair), target = load(to + pair);
      auto offset = load(offsets + program_id(0));
      auto C = X.dim(1), K = W.dim(2);
      auto live = (source >= 0).col();
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, C, c.BK, {.stages = c.stages})) {
        auto kk = (k + arange(0, c.BK)).row();
        auto x = load(X.ptr() + (cast(source, i64) * X.stride(0)).col() + cast(kk, i64), {.mask = live & (kk < C)});
        acc = dot(x, W.load({offset, k, k0}, {c.BK, c.BN}), acc);
      }
      auto cols = (k0 + arange(0, c.BN)).row();
      atomic_add(Y + (cast(target, i64) * cast(K, i64)).col() + cast(cols, i64), acc,
                 {.mask = live & (cols < K), .order = Order::relaxed});
    });
Register r5("sparse_conv", [](Env& e) {
  int N = e.big ? 100000 : 90, C = e.big ? 128 : 40, K = e.big ? 128 : 48, V = 27;
  PairsCfg c;
  if (e.big) c.BN = 128, c.warps = 8;
  std::vector<int> from, to, offsets;
  for (int v = 0; v < V; ++v) {
    for (int i = 0; i < N; ++i)
      if (v == V / 2 || e.uniform() < .3) from.push_back(int(e.uniform() * N)), to.push_back(i);
    while (from.size() % c.BM) from.push_back(-1), to.push_back(-1);
    while (offsets.size() < from.size() / c.BM) offsets.push_back(v);
  }
  auto x = random<half>(e, size_t(N) * C), w = random<half>(e, size_t(V) * C * K, -.2, .2);
  auto list = [&](const std::vector<int>& h) { return filled<int32_t>(e, h.size(), [&](size_t i) { return h[i]; }); };
  auto f = list(from), t = list(to), o = list(offsets);
  auto y = constant<float>(e, size_t(N) * K, 0);
  Job j;
  j.gflop = 2e-9 * double(from.size()) * C * K;
  j.add(sparse_conv.grid([=, blocks = int(offsets.size())](const PairsCfg& cfg, const auto&...) {
    return Grid{blocks, cdiv(K, cfg.BN)};
  }),
        c, x.view(N, C), w.view(V, C, K), f.p, t.p, o.p, y.p);
  j.check = [=] {
    std::vector<double> want(size_t(N) * K);
    for (size_t p = 0; p < from.size(); ++p)
      for (int k = 0; from[p] >= 0 && k < K; ++k)
        for (int ch = 0; ch < C; ++ch)
          want[size_t(to[p]) * K + k] += x[size_t(from[p]) * C + ch] * w[(size_t(offsets[p / c.BM]) * C + ch) * K + k];
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- the first triangle every ray hits (Moeller and Trumbore), triangles in blocks
struct RayCfg {
  int BM = 128, BN = 32, warps = 4;
};
struct Vec {
  Tile x, y, z;
};
Vec operator-(const Vec& a, const Vec& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Tile inner(const Vec& a, const Vec& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vec cross(const Vec& a, const Vec& b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
auto rays = kernel("user_rays", [](const RayCfg& c, Tensor<const float, 2> origins, Tensor<const float, 2> directions,
                                   Tensor<const float, 2> triangles, Tensor<float, 1> depth, Tensor<int32_t, 1> hit) {
              // origins, directions [3, rays], triangles [9, N]: a corner and two edges
              num_warps(c.warps);
              auto m = program_id(0) * c.BM;
              auto N = triangles.dim(1);
              auto column = [&](const Tensor<const float, 2>& X) {
                return Vec{X.load({0, m}, {c.BM}).col(), X.load({1, m}, {c.BM}).col(), X.load({2, m}, {c.BM}).col()};
              };
              auto o = column(origins), d = column(directions);
              Tile t = full({c.BM, 1}, INFINITY, f32), which = full({c.BM, 1}, -1, i32);
              for (auto n : range(0, N, c.BN)) {
                auto row = [&](int i) {
                  return Vec{triangles.load({i, n}, {c.BN}).row(), triangles.load({i + 1, n}, {c.BN}).row(),
                             triangles.load({i + 2, n}, {c.BN}).row()};
                };
                auto a = row(0), e1 = row(3), e2 = row(6);
                auto p = cross(d, e2);
                auto det = inner(e1, p);
                auto inverse = 1.f / det;
                auto s = o - a;
                auto u = inner(s, p) * inverse;
                auto q = cross(s, e1);
                auto v = inner(d, q) * inverse, at = inner(e2, q) * inverse;
                auto ok = (abs(det) > 1e-7f) & (u >= 0.f) & (v >= 0.f) & (u + v <= 1.f) & (at > 1e-4f);
                at = where(ok, at, INFINITY);
                auto low = min(at, axis(1));
                which = where(low < t, argmin(at, axis(1)) + n, which);
                t = min(t, low);
              }
              depth.store({m}, squeeze(t, 1));
              hit.store({m}, squeeze(which, 1));
            }).grid([](const RayCfg& c, const auto& o, const auto&...) { return Grid{cdiv(o.shape[1], c.BM)}; });
Register r6("rays", [](Env& e) {
  int M = e.big ? 1 << 18 : 200, N = e.big ? 4096 : 70;
  auto o = random<float>(e, 3 * M, -1, 1), d = random<float>(e, 3 * M, -1, 1);
  auto t = random<float>(e, 9 * N, -1, 1);
  auto depth = constant<float>(e, M, NAN);
  auto hit = constant<int32_t>(e, M, -2);
  Job j;
  j.gflop = 50e-9 * M * double(N);
  j.add(rays, RayCfg{}, o.view(3, M), d.view(3, M), t.view(9, N), depth.view(M), hit.view(M));
  j.check = [=] {
    int wrong = 0;
    const auto got = depth.now();
    const auto index = hit.now();
    for (int m = 0; m < M; ++m) {
      double best = INFINITY;
      int which = -1;
      using V = std::array<double, 3>;
      auto cross3 = [](V a, V b) {
        return V{a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
      };
      auto dot3 = [](V a, V b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; };
      const V origin{o[m], o[M + m], o[2 * M + m]}, direction{d[m], d[M + m], d[2 * M + m]};
      for (int n = 0; n < N; ++n) {
        const V a{t[n], t[N + n], t[2 * N + n]}, e1{t[3 * N + n], t[4 * N + n], t[5 * N + n]},
            e2{t[6 * N + n], t[7 * N + n], t[8 * N + n]};
        const V p = cross3(direction, e2), s{origin[0] - a[0], origin[1] - a[1], origin[2] - a[2]}, q = cross3(s, e1);
        const double det = dot3(e1, p), u = dot3(s, p) / det, v = dot3(direction, q) / det, at = dot3(e2, q) / det;
        if (std::abs(det) > 1e-7 && u >= 0 && v >= 0 && u + v <= 1 && at > 1e-4 && at < best) best = at, which = n;
      }
      // Edges may fall on either side.
      if (index[m] != which || (which >= 0 && std::abs(got[m] - best) > 1e-3 * (1 + best))) ++wrong;
    }
    return wrong <= M / 200 + 1 ? std::string() : std::to_string(wrong) + " rays hit something else";
  };
  return j;
});

}  // namespace searches
}  // namespace users
