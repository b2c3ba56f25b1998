// numerics.cpp - what simulations and data bases ask for: a scan in one pass that looks back at its neighbours, shortest
// paths, gradients of bilinear samples, forces from lists of neighbours, a step of conjugate gradients, option trees,
// medians by a sorting network, insertion into a hash table.
#include <algorithm>
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace numerics {

// --- inclusive scan in one pass: programs publish their sum, look back for what stands before them, publish the whole
struct ScanCfg {
  int N = 2048, warps = 4;
};
auto scan_reset = kernel("user_lookback_reset", [](const ScanCfg& c, Tensor<uint64_t, 1> state, Ptr<int32_t> ticket) {
                    auto i = program_id(0) * c.N;
                    state.store({i}, zeros({c.N}, u64));
                    if_(i == 0, [&] { store(ticket, 0); });
                  }).grid([](const ScanCfg& c, const auto& s, auto*) { return Grid{cdiv(s.shape[0], c.N)}; });
auto lookback = kernel("user_lookback", [](const ScanCfg& c, Tensor<const int32_t, 1> X, Tensor<int32_t, 1> Y,
                                           Ptr<uint64_t> state, Ptr<int32_t> ticket) {
                  // state: 0, or 2^32 + the program's own sum, or 2^33 + the sum up to its end
                  num_warps(c.warps);
                  auto at = atomic_add(ticket, 1, {.order = Order::relaxed});
                  auto x = X.load({at * c.N}, {c.N});
                  auto own = sum(x);
                  auto word = [](int flag, const Tile& value) {
                    return (full({}, uint64_t(flag) << 32, u64)) | cast(bitcast(value, u32), u64);
                  };
                  if_(at > 0, [&] { atomic_exchange(state + at, word(1, own), {.order = Order::release}); });
                  Tile before = 0, i = at - 1;
                  while_([&] { return i >= 0; },
                         [&] {
                           auto s = atomic_or(state + i, 0, {.order = Order::acquire});
                           auto flag = s >> 32;
                           before += where(flag != 0, bitcast(cast(s, u32), i32), 0);
                           i = where(flag == 0, i, where(flag == 1, i - 1, -1));
                         });
                  atomic_exchange(state + at, word(2, before + own), {.order = Order::release});
                  Y.store({at * c.N}, cumsum(x, axis(0)) + before);
                }).grid([](const ScanCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.N)}; });
Register r1("lookback", [](Env& e) {
  int n = e.big ? 1 << 26 : 5000, N = e.big ? 4096 : 256, programs = cdiv(n, N);
  auto x = integers<int32_t>(e, n, -9, 10);
  auto y = constant<int32_t>(e, n, 0), ticket = constant<int32_t>(e, 1, 7);
  auto state = constant<uint64_t>(e, programs, 5);
  Job j;
  j.mbytes = 8e-6 * n;
  j.inTurn = true;
  j.add(scan_reset, ScanCfg{1024, 4}, state.view(programs), ticket.p);
  j.add(lookback, ScanCfg{N, e.field("warps", 4)}, x.view(n), y.view(n), state.p, ticket.p);
  j.check = [=] {
    std::vector<double> want;
    double s = 0;
    for (int i = 0; i < n; ++i) want.push_back(s += x.h[i]);
    return agree(y.now(), want, .1, 0);
  };
  return j;
});

// --- Floyd-Warshall's third phase: D = min(D, D[:, block] (min, +) D[block, :])
struct PathCfg {
  int BM = 64, BN = 64, K = 32, warps = 4;
};
auto paths = kernel("user_shortest_paths", [](const PathCfg& c, Tensor<const float, 2> left, Tensor<const float, 2> top,
                                              Tensor<float, 2> D) {
               // left [N, K], top [K, N], D [N, N]
               num_warps(c.warps);
               auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
               Tile d = D.load({m, n}, {c.BM, c.BN});
               for (auto k : range(left.dim(1))) d = min(d, left.load({m, k}, {c.BM, 1}) + top.load({k, n}, {1, c.BN}));
               D.store({m, n}, d);
             }).grid([](const PathCfg& c, const auto& l, const auto& t, const auto&) {
               return Grid{cdiv(t.shape[1], c.BN), cdiv(l.shape[0], c.BM)};
             });
Register r2("shortest_paths", [](Env& e) {
  int N = e.big ? 8192 : 130, K = e.big ? 64 : 24;
  auto l = random<float>(e, size_t(N) * K, 0, 1), t = random<float>(e, size_t(N) * K, 0, 1),
       d = random<float>(e, size_t(N) * N, 0, 2);
  Job j;
  j.gflop = 2e-9 * N * double(N) * K;
  j.add(paths, PathCfg{e.field("BM", 128), e.field("BN", 128), K, e.field("warps", 8)}, l.view(N, K), t.view(K, N),
        d.view(N, N));
  j.check = [=] {
    std::vector<double> want(size_t(N) * N);
    for (int m = 0; m < N; ++m)
      for (int n = 0; n < N; ++n) {
        double& w = want[size_t(m) * N + n] = d[size_t(m) * N + n];
        for (int k = 0; k < K; ++k) w = std::min(w, l[m * K + k] + t[k * N + n]);
      }
    return agree(d.now(), want, 1e-6, 1e-6);
  };
  return j;
});

// --- gradients of grid_sample (bilinear, zeros outside): scattered to the image, summed over channels for the grid
struct SampleCfg {
  int P = 32, C = 64, warps = 4;
};
auto sample_grad = kernel(
    "user_grid_sample_bwd", [](const SampleCfg& c, Tensor<const float, 4> X, Tensor<const float, 3> grid,
                               Tensor<const float, 3> dY, Tensor<float, 4> dX, Tensor<float, 3> dgrid) {
      // X, dX [B, H, W, C], grid, dgrid [B, P, 2] in pixels, dY [B, P, C]
      num_warps(c.warps);
      auto b = program_id(1), p = program_id(0) * c.P;
      auto gx = reshape(grid.load({b, p, 0}, {1, c.P, 1}, {.pad = -9}), {c.P, 1});
      auto gy = reshape(grid.load({b, p, 1}, {1, c.P, 1}, {.pad = -9}), {c.P, 1});
      auto x0 = floor(gx), y0 = floor(gy);
      auto fx = gx - x0, fy = gy - y0;
      auto ch = arange(0, c.C).row();
      auto g = reshape(dY.load({b, p, 0}, {1, c.P, c.C}), {c.P, c.C});
      Tile dx = zeros({c.P, 1}, f32), dy = zeros({c.P, 1}, f32);
      for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 2; ++k) {
          auto y = cast(y0, i32) + i, x = cast(x0, i32) + k;
          auto inside = (y >= 0) & (y < X.dim(1)) & (x >= 0) & (x < X.dim(2)) & (ch < X.dim(3));
          auto at = ((b * X.dim(1) + y) * X.dim(2) + x) * X.dim(3) + ch;
          auto wy = i ? fy : 1.f - fy, wx = k ? fx : 1.f - fx;
          atomic_add(dX.ptr() + at, g * (wx * wy), {.mask = inside, .order = Order::relaxed});
          auto v = sum(g * load(X.ptr() + at, {.mask = inside}), axis(1));
          dx += v * wy * (k ? 1.f : -1.f);
          dy += v * wx * (i ? 1.f : -1.f);
        }
      dgrid.store({b, p, 0}, reshape(dx, {1, c.P, 1}));
      dgrid.store({b, p, 1}, reshape(dy, {1, c.P, 1}));
    }).grid([](const SampleCfg& c, const auto&, const auto& g, const auto&...) {
      return Grid{cdiv(g.shape[1], c.P), g.shape[0]};
    });
Register r3("grid_sample_bwd", [](Env& e) {
  int B = e.big ? 8 : 2, H = e.big ? 128 : 9, W = e.big ? 128 : 11, C = e.big ? 64 : 24, P = e.big ? 128 * 128 : 77;
  auto x = random<float>(e, size_t(B) * H * W * C), g = random<float>(e, size_t(B) * P * C);
  auto at = filled<float>(e, size_t(B) * P * 2, [&](size_t i) {
    const double u = e.uniform();  // near its own place when big
    return e.big ? float((i % 2 ? i / 2 % P / W : i / 2 % W) + 2 * u - 1) : float(-2 + (i % 2 ? H + 3 : W + 3) * u);
  });
  auto dx = constant<float>(e, x.n, 0), dg = constant<float>(e, at.n, NAN);
  Job j;
  j.mbytes = 4e-6 * (4. * x.n + g.n + 3. * at.n);
  j.add(sample_grad, SampleCfg{e.field("P", 32), e.big ? 64 : 32, e.field("warps", 4)}, x.view(B, H, W, C),
        at.view(B, P, 2), g.view(B, P, C), dx.view(B, H, W, C), dg.view(B, P, 2));
  j.check = [=] {
    std::vector<double> wx(x.n), wg(at.n);
    for (int b = 0; b < B; ++b)
      for (int p = 0; p < P; ++p) {
        const size_t q = (size_t(b) * P + p) * 2;
        const double x0 = std::floor(at[q]), y0 = std::floor(at[q + 1]), fx = at[q] - x0, fy = at[q + 1] - y0;
        for (int i = 0; i < 2; ++i)
          for (int k = 0; k < 2; ++k) {
            const int yy = int(y0) + i, xx = int(x0) + k;
            if (yy < 0 || yy >= H || xx < 0 || xx >= W) continue;
            const double a = k ? fx : 1 - fx, c = i ? fy : 1 - fy;
            for (int ch = 0; ch < C; ++ch) {
              const size_t z = ((size_t(b) * H + yy) * W + xx) * C + ch;
              const double d = g[(size_t(b) * P + p) * C + ch];
              wx[z] += d * a * c, wg[q] += d * x[z] * c * (k ? 1 : -1), wg[q + 1] += d * x[z] * a * (i ? 1 : -1);
            }
          }
      }
    auto bad = agree(dx.now(), wx, 1e-4, 1e-5);
    return bad.empty() ? agree(dg.now(), wg, 1e-3, 1e-5) : bad;
  };
  return j;
});

// --- Lennard-Jones forces over lists of neighbours, periodic box
struct ForceCfg {
  int P = 32, K = 64, warps = 4;
};
auto forces = kernel("user_forces", [](const ForceCfg& c, Tensor<const float, 2> X, Tensor<const int32_t, 2> list,
                                       Tensor<const int32_t, 1> counts, Tensor<float, 2> F, F32 box, F32 cutoff2) {
                // X, F [3, N], list [N, K]
                num_warps(c.warps);
                auto p = program_id(0) * c.P;
                auto n = counts.load({p}, {c.P}).col();
                auto j = list.load({p, 0}, {c.P, c.K});
                auto live = arange(0, c.K).row() < n;
                Tile d[3], r2 = zeros({c.P, c.K}, f32);
                for (int a = 0; a < 3; ++a) {
                  auto away = reshape(X.load({a, p}, {1, c.P}), {c.P, 1}) -
                              load(X.ptr() + (a * X.dim(1) + j), {.mask = live, .other = 1e6f});
                  d[a] = away - box * rint(away / box);
                  r2 = r2 + d[a] * d[a];
                }
                auto near = live & (r2 < cutoff2);
                auto i2 = 1.f / where(near, r2, 1.f), i6 = i2 * i2 * i2;
                auto f = where(near, 24.f * i6 * (2.f * i6 - 1.f) * i2, 0.f);
                for (int a = 0; a < 3; ++a) F.store({a, p}, trans(sum(f * d[a], axis(1))));
              }).grid([](const ForceCfg& c, const auto& x, const auto&...) {
                return Grid{cdiv(x.shape[1], c.P)};
              });
Register r4("forces", [](Env& e) {
  int N = e.big ? 1 << 20 : 100, K = e.big ? 64 : 16;
  auto x = filled<float>(e, size_t(3) * N, [&](size_t i) { return float((i % N * (i / N + 3) % 10) + .2 * e.uniform()); });
  auto list = filled<int32_t>(e, size_t(N) * K, [&](size_t i) {
    const int p = int(i / K), d = int(i % K) + 1;
    return e.big ? (p + (d % 2 ? d : -d) * 7 + N) % N : (p + d) % N;
  });
  auto counts = filled<int32_t>(e, N, [&](size_t i) { return K - int(i % 5); });
  auto f = constant<float>(e, size_t(3) * N, NAN);
  const float box = 10, cutoff2 = 6.25f;
  Job j;
  j.mbytes = 1e-6 * N * (K * 4. + 28);
  j.add(forces, ForceCfg{e.field("P", 16), K, e.field("warps", 4)}, x.view(3, N), list.view(N, K), counts.view(N),
        f.view(3, N), box, cutoff2);
  j.check = [=] {
    std::vector<double> want(size_t(3) * N), scale(size_t(3) * N);
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < counts.h[i]; ++k) {
        double d[3], r2 = 0;
        for (int a = 0; a < 3; ++a) {
          d[a] = x[size_t(a) * N + i] - x[size_t(a) * N + list.h[size_t(i) * K + k]];
          d[a] -= box * std::rint(d[a] / box);
          r2 += d[a] * d[a];
        }
        if (r2 >= cutoff2) continue;
        const double i6 = 1 / (r2 * r2 * r2);
        for (int a = 0; a < 3; ++a) want[size_t(a) * N + i] += 24 * i6 * (2 * i6 - 1) / r2 * d[a];
      }
    double most = 1;
    for (double w : want) most = std::max(most, std::abs(w));
    return agree(f.now(), want, 1e-5 * most, 1e-4);
  };
  return j;
});

// --- conjugate gradients: x += a p, r -= a q with a = rr / pq from memory, and the sum of the new r r
struct CgCfg {
  int N = 1024, warps = 4;
};
auto cg_step = kernel("user_cg_step", [](const CgCfg& c, Tensor<const double, 1> P, Tensor<const double, 1> Q,
                                         Tensor<double, 1> X, Tensor<double, 1> R, Ptr<const double> rr,
                                         Ptr<const double> pq, Tensor<double, 1> parts) {
                 num_warps(c.warps);
                 auto a = load(rr) / load(pq);
                 Tile s = zeros({c.N}, f64);
                 for (auto i : range(program_id(0) * c.N, X.dim(0), num_programs(0) * c.N)) {
                   X.store({i}, X.load({i}, {c.N}) + a * P.load({i}, {c.N}));
                   auto r = R.load({i}, {c.N}) - a * Q.load({i}, {c.N});
                   R.store({i}, r);
                   s += r * r;
                 }
                 parts.store({program_id(0)}, reshape(sum(s), {1}));
               }).grid([](const CgCfg&, const auto&, const auto&, const auto&, const auto&, auto*, auto*,
                          const auto& parts) { return Grid{parts.shape[0]}; });
Register r5("cg_step", [](Env& e) {
  int n = e.big ? 1 << 25 : 3001, G = e.big ? 528 : 3;
  auto draw = [&] { return filled<double>(e, n, [&](size_t) { return e.uniform() - .5; }); };
  auto p = e.big ? constant<double>(e, n, 1) : draw(), q = e.big ? constant<double>(e, n, 1) : draw(),
       x = e.big ? constant<double>(e, n, 1) : draw(), r = e.big ? constant<double>(e, n, 1) : draw();
  auto rr = constant<double>(e, 1, .75), pq = constant<double>(e, 1, 2.5), parts = constant<double>(e, G, NAN);
  Job j;
  j.mbytes = 48e-6 * n;
  j.add(cg_step, CgCfg{e.field("N", e.big ? 1024 : 256), e.field("warps", 4)}, p.view(n), q.view(n), x.view(n),
        r.view(n), rr.p, pq.p, parts.view(G));
  j.check = [=]() -> std::string {
    std::vector<double> wx, wr;
    double s = 0;
    for (int i = 0; i < n; ++i)
      wx.push_back(x.h[i] + .3 * p.h[i]), wr.push_back(r.h[i] - .3 * q.h[i]), s += wr[i] * wr[i];
    auto bad = agree(x.now(), wx, 1e-7, 1e-7);
    if (bad.empty()) bad = agree(r.now(), wr, 1e-7, 1e-7);
    auto got = parts.now();
    return bad.empty() ? agree(std::vector{std::accumulate(got.begin(), got.end(), 0.)}, {s}, 0, 1e-6) : bad;
  };
  return j;
});

// --- American puts by a binomial tree: the prices of all nodes of a level in one tile
struct TreeCfg {
  int R = 4, N = 256, warps = 4;
};
auto tree = kernel("user_option_tree", [](const TreeCfg& c, Tensor<const float, 1> spot, Tensor<const float, 1> strike,
                                          Tensor<float, 1> price, F32 rate, F32 sigma, F32 years) {
              num_warps(c.warps);
              auto r = program_id(0) * c.R;
              auto s = spot.load({r}, {c.R}, {.pad = 1}).col(), k = strike.load({r}, {c.R}, {.pad = 1}).col();
              const int steps = c.N - 1;
              auto dt = years / float(steps);
              auto step = sigma * sqrt(dt), u = exp(step), growth = exp(rate * dt);
              auto up = (growth - 1.f / u) / (u - 1.f / u), discount = 1.f / growth;
              auto i = arange(0, c.N).row();
              auto next = broadcast_to(min(i + 1, steps), {c.R, c.N});
              auto asset = s * exp(step * cast(2 * i - steps, f32));
              Tile v = max(k - asset, 0.f);
              for (auto level : range(steps)) {
                asset = asset * u;
                v = max(discount * (up * take(v, next, 1) + (1.f - up) * v), k - asset);
              }
              price.store({r}, squeeze(sum(where(i == 0, v, 0.f), axis(1)), 1));
            }).grid([](const TreeCfg& c, const auto& s, const auto&...) { return Grid{cdiv(s.shape[0], c.R)}; });
Register r6("option_tree", [](Env& e) {
  int M = e.big ? 1 << 14 : 21, N = e.big ? 512 : 64;
  auto s = random<float>(e, M, 80, 120), k = random<float>(e, M, 90, 110);
  auto y = constant<float>(e, M, NAN);
  const float rate = .03f, sigma = .25f, years = 1.5f;
  Job j;
  j.gflop = 5e-9 * M * double(N) * N;
  j.add(tree, TreeCfg{e.field("R", 4), N, e.field("warps", 4)}, s.view(M), k.view(M), y.view(M), rate, sigma, years);
  j.check = [=] {
    std::vector<double> want, v(N);
    const double dt = double(years) / (N - 1), step = sigma * std::sqrt(dt), u = std::exp(step), g = std::exp(rate * dt),
                 up = (g - 1 / u) / (u - 1 / u);
    for (int m = 0; m < M; ++m) {
      auto asset = [&](int i, int level) { return s[m] * std::exp(step * (2 * i - level)); };
      for (int i = 0; i < N; ++i) v[i] = std::max(0., k[m] - asset(i, N - 1));
      for (int level = N - 2; level >= 0; --level)
        for (int i = 0; i <= level; ++i)
          v[i] = std::max((up * v[i + 1] + (1 - up) * v[i]) / g, k[m] - asset(i, level));
      want.push_back(v[0]);
    }
    return agree(y.now(), want, 2e-3, 1e-4);
  };
  return j;
});

// --- medians of 3 x 3 pixels by 19 exchanges; edges repeat
struct MedianCfg {
  int BY = 8, BX = 128, warps = 4;
};
auto median = kernel("user_median", [](const MedianCfg& c, Tensor<const uint8_t, 2> X, Tensor<uint8_t, 2> Y) {
                num_warps(c.warps);
                auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                auto yy = (y + arange(0, c.BY)).col(), xx = (x + arange(0, c.BX)).row();
                std::vector<Tile> p;
                for (int i = -1; i <= 1; ++i)
                  for (int k = -1; k <= 1; ++k)
                    p.push_back(load(X.ptr() + (clamp(yy + i, 0, X.dim(0) - 1) * X.dim(1) +
                                                clamp(xx + k, 0, X.dim(1) - 1))));
                for (auto [a, b] : std::initializer_list<std::pair<int, int>>{
                         {1, 2}, {4, 5}, {7, 8}, {0, 1}, {3, 4}, {6, 7}, {1, 2}, {4, 5}, {7, 8}, {0, 3},
                         {5, 8}, {4, 7}, {3, 6}, {1, 4}, {2, 5}, {4, 7}, {4, 2}, {6, 4}, {4, 2}}) {
                  auto low = min(p[a], p[b]), high = max(p[a], p[b]);
                  p[a] = low, p[b] = high;
                }
                Y.store({y, x}, p[4]);
              }).grid([](const MedianCfg& c, const auto& x, const auto&) {
                return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
              });
Register r7("median", [](Env& e) {
  int H = e.big ? 8192 : 37, W = e.big ? 8192 : 150;
  auto x = integers<uint8_t>(e, size_t(H) * W, 0, 256);
  auto y = constant<uint8_t>(e, size_t(H) * W, 0);
  Job j;
  j.mbytes = 2e-6 * H * W;
  j.add(median, MedianCfg{e.field("BY", 8), e.field("BX", 256), e.field("warps", 4)}, x.view(H, W), y.view(H, W));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < H; ++i)
      for (int k = 0; k < W; ++k) {
        std::vector<int> p;
        for (int a = -1; a <= 1; ++a)
          for (int b = -1; b <= 1; ++b)
            p.push_back(x.h[size_t(std::clamp(i + a, 0, H - 1)) * W + std::clamp(k + b, 0, W - 1)]);
        std::sort(p.begin(), p.end());
        want.push_back(p[4]);
      }
    return agree(y.now(), want, .1, 0);
  };
  return j;
});

// --- a hash table with open addressing: keys find a place by compare and swap, equal keys share one
struct HashCfg {
  int N = 256, warps = 4;
};
auto hash_insert = kernel("user_hash_insert", [](const HashCfg& c, Tensor<const int32_t, 1> keys, Ptr<int32_t> table,
                                                 Tensor<int32_t, 1> places, I32 bits) {
                     num_warps(c.warps);
                     auto i = program_id(0) * c.N;
                     auto key = keys.load({i}, {c.N});
                     auto last = (1 << bits) - 1;
                     Tile at = cast(bitcast(key, u32) * 2654435769u >> cast(32 - bits, u32), i32);
                     Tile live = i + arange(0, c.N) < keys.dim(0);
                     while_([&] { return any(live); },
                            [&] {
                              auto old = atomic_cas(table + at, -1, key, {.mask = live, .order = Order::relaxed});
                              live = live & (old != -1) & (old != key);
                              at = where(live, (at + 1) & last, at);
                            });
                     places.store({i}, at);
                   }).grid([](const HashCfg& c, const auto& k, const auto&...) {
                     return Grid{cdiv(k.shape[0], c.N)};
                   });
Register r8("hash_insert", [](Env& e) {
  int n = e.big ? 1 << 24 : 700, bits = e.big ? 25 : 10;
  auto keys = filled<int32_t>(e, n, [&](size_t) { return int32_t(e.uniform() * (e.big ? 1 << 23 : 500)); });
  auto table = constant<int32_t>(e, size_t(1) << bits, -1), places = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 8e-6 * n;
  j.add(hash_insert, HashCfg{e.field("N", 256), e.field("warps", 4)}, keys.view(n), table.p, places.view(n), bits);
  j.check = [=]() -> std::string {
    auto t = table.now(), at = places.now();
    for (int i = 0; i < n; ++i)
      if (at[i] < 0 || at[i] >= 1 << bits || t[at[i]] != keys.h[i]) return "key " + std::to_string(i) + " is not there";
    std::vector<int> all = t, distinct = keys.h;
    std::erase(all, -1);
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    return all.size() == distinct.size() ? "" : "a key is there twice";
  };
  return j;
});

}  // namespace numerics
}  // namespace users
