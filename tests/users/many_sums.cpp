// many_sums.cpp - several sums at once: two heads of a model against each other, gradients of splats, elements of high
// order, thresholds found digit by digit, series of matrices, rows out of tables of four bits.
#include "tests/users/use.h"
namespace users {
namespace many_sums {

// --- distillation: the divergence of a student's and a teacher's tokens, from hidden states, logits never in memory
struct DistilCfg {
  int BM = 64, BN = 64, BK = 64, parts = 8, stages = 3, warps = 8;
};
auto linear_kl =
    kernel("user_linear_kl", [](const DistilCfg& c, Tensor<const bfloat16, 2> S, Tensor<const bfloat16, 2> WS,
                                Tensor<const bfloat16, 2> T, Tensor<const bfloat16, 2> WT, Tensor<float, 3> state) {
      // S [M, D], WS [V, D], T [M, E], WT [V, E]; state [parts, 5, M]: tops and sums of both, sum of p (t - s)
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, part = program_id(1);
      auto V = WS.dim(0), per = cdiv(cdiv(V, c.BN), c.parts) * c.BN;
      auto low = [&] { return full({c.BM, 1}, -INFINITY, f32); };
      auto none = [&] { return zeros({c.BM, 1}, f32); };
      Tile st = low(), tt = low(), sl = none(), tl = none(), cross = none();
      for (auto n : range(part * per, min(part * per + per, V), c.BN)) {
        Tile s = zeros({c.BM, c.BN}, f32), t = zeros({c.BM, c.BN}, f32);
        for (auto k : range(0, S.dim(1), c.BK, {.stages = c.stages}))
          s = dot(S.load({m, k}, {c.BM, c.BK}), trans(WS.load({n, k}, {c.BN, c.BK})), s);
        for (auto k : range(0, T.dim(1), c.BK, {.stages = c.stages}))
          t = dot(T.load({m, k}, {c.BM, c.BK}), trans(WT.load({n, k}, {c.BN, c.BK})), t);
        auto inside = (n + arange(0, c.BN)).row() < V;
        auto sm = where(inside, s, -INFINITY), tm = where(inside, t, -INFINITY);
        auto s_now = max(st, max(sm, axis(1))), t_now = max(tt, max(tm, axis(1)));
        auto p = exp(tm - t_now);
        auto shrink = exp(tt - t_now);
        sl = sl * exp(st - s_now) + sum(exp(sm - s_now), axis(1));
        tl = tl * shrink + sum(p, axis(1));
        cross = cross * shrink + sum(where(inside, p * (t - s), 0.f), axis(1));
        st = s_now, tt = t_now;
      }
      auto put = [&](int i, const Tile& x) { state.store({part, i, m}, squeeze(x, 1)); };
      put(0, st), put(1, sl), put(2, tt), put(3, tl), put(4, cross);
    }).grid([](const DistilCfg& c, const auto& s, const auto&...) {
      return Grid{cdiv(s.shape[0], c.BM), c.parts};
    });
auto linear_kl_sum =
    kernel("user_linear_kl_sum", [](const DistilCfg& c, Tensor<const float, 3> state, Tensor<float, 1> loss) {
      num_warps(4);
      auto m = program_id(0) * c.BM;
      auto get = [&](int i, double pad) {
        return reshape(state.load({0, i, m}, {c.parts, 1, c.BM}, {.pad = pad}), {c.parts, c.BM});
      };
      auto st = get(0, 0), sl = get(1, 1), tt = get(2, 0), tl = get(3, 1), cross = get(4, 0);
      auto ms = max(st, axis(0)), mt = max(tt, axis(0));
      auto ls = sum(sl * exp(st - ms), axis(0)), scale = exp(tt - mt), lt = sum(tl * scale, axis(0));
      auto kl = sum(cross * scale, axis(0)) / lt + (ms + log(ls)) - (mt + log(lt));
      loss.store({m}, squeeze(kl, 0));
    }).grid([](const DistilCfg& c, const auto&, const auto& l) { return Grid{cdiv(l.shape[0], c.BM)}; });
Register r1("linear_kl", [](Env& e) {
  int M = e.big ? 4096 : 70, D = e.big ? 1024 : 64, E = e.big ? 2048 : 96, V = e.big ? 32000 : 230;
  const DistilCfg cfg =
      e.big ? DistilCfg{e.field("BM", 64), e.field("BN", 128), 64, 8, e.field("stages", 3), e.field("warps", 8)}
            : DistilCfg{32, 32, 32, 2, 2, 4};
  auto s = random<bfloat16>(e, size_t(M) * D), ws = random<bfloat16>(e, size_t(V) * D, -.2, .2);
  auto t = random<bfloat16>(e, size_t(M) * E), wt = random<bfloat16>(e, size_t(V) * E, -.2, .2);
  auto state = constant<float>(e, size_t(cfg.parts) * 5 * M, NAN), loss = constant<float>(e, M, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(V) * (D + E);
  j.add(linear_kl, cfg, s.view(M, D), ws.view(V, D), t.view(M, E), wt.view(V, E), state.view(cfg.parts, 5, M));
  j.add(linear_kl_sum, cfg, state.view(cfg.parts, 5, M), loss.view(M));
  j.check = [=] {
    std::vector<double> want(M);
    auto x = product(M, V, D, matrix(s, D), [&](int k, int n) { return ws[size_t(n) * D + k]; });
    auto y = product(M, V, E, matrix(t, E), [&](int k, int n) { return wt[size_t(n) * E + k]; });
    for (int m = 0; m < M; ++m) {
      double ls = 0, lt = 0;
      for (int v = 0; v < V; ++v) ls += std::exp(x[size_t(m) * V + v]), lt += std::exp(y[size_t(m) * V + v]);
      for (int v = 0; v < V; ++v) {
        const double p = std::log(std::exp(y[size_t(m) * V + v]) / lt);
        want[m] += std::exp(p) * (p - (x[size_t(m) * V + v] - std::log(ls)));
      }
    }
    return agree(loss.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- gradients of Gaussian splats: a program has a tile of pixels and walks its list from the back
struct SplatCfg {
  int BY = 16, BX = 16, warps = 4;
};
auto splat_bwd =
    kernel("user_splat_bwd", [](const SplatCfg& c, Ptr<const float> splats, Ptr<const int32_t> list,
                                Ptr<const int32_t> first, Tensor<const float, 3> dcolour, Tensor<const float, 2> left,
                                Ptr<float> grads) {
      // splats, grads [n, 9]: x, y, three of the inverse covariance, opacity, three colours; dcolour [3, H, W];
      // left [H, W]: what the whole list lets through
      num_warps(c.warps);
      auto tx = program_id(0), ty = program_id(1), tile = ty * num_programs(0) + tx;
      auto px = cast(tx * c.BX + arange(0, c.BX), f32).row(), py = cast(ty * c.BY + arange(0, c.BY), f32).col();
      auto box = [&](int i) { return reshape(dcolour.load({i, ty * c.BY, tx * c.BX}, {1, c.BY, c.BX}), {c.BY, c.BX}); };
      auto dr = box(0), dg = box(1), db = box(2);
      Tile through = left.load({ty * c.BY, tx * c.BX}, {c.BY, c.BX}), behind = zeros({c.BY, c.BX}, f32);
      auto begin = load(first + tile), end = load(first + tile + 1);
      for (auto back : range(0, end - begin)) {
        auto id = load(list + (end - 1 - back));
        auto g = [&](int i) { return load(splats + id * 9 + i); };
        auto dx = px - g(0), dy = py - g(1);
        auto a = g(2), b = g(3), d = g(4), opacity = g(5);
        auto power = -.5f * (a * dx * dx + d * dy * dy) - b * dx * dy;
        auto weight = exp(power);
        auto alpha = min(opacity * weight, .99f);
        auto used = (power <= 0.f) & (alpha >= 1.f / 255);
        auto before = through / (1.f - alpha);
        auto share = where(used, alpha * before, 0.f);
        auto shade = g(6) * dr + g(7) * dg + g(8) * db;
        auto dalpha = where(used, before * shade - behind / (1.f - alpha), 0.f);
        behind += share * shade;
        through = where(used, before, through);
        auto dpower = where(opacity * weight < .99f, dalpha * opacity * weight, 0.f);
        auto gx = dpower * (a * dx + b * dy), gy = dpower * (d * dy + b * dx);
        auto put = [&](int i, const Tile& x) { atomic_add(grads + id * 9 + i, sum(x), {.order = Order::relaxed}); };
        put(0, gx), put(1, gy);
        put(2, -.5f * dpower * dx * dx), put(3, -dpower * dx * dy), put(4, -.5f * dpower * dy * dy);
        put(5, where(opacity * weight < .99f, dalpha * weight, 0.f));
        put(6, share * dr), put(7, share * dg), put(8, share * db);
      }
    }).grid([](const SplatCfg& c, auto*, auto*, auto*, const auto& d, const auto&, auto*) {
      return Grid{cdiv(d.shape[2], c.BX), cdiv(d.shape[1], c.BY)};
    });
Register r2("splat_bwd", [](Env& e) {
  int H = e.big ? 1024 : 32, W = e.big ? 1024 : 48, n = e.big ? 100000 : 40, per = e.big ? 200 : 12;
  const SplatCfg cfg{16, 16, e.field("warps", 4)};
  int tiles = H / 16 * (W / 16);
  auto list = integers<int32_t>(e, size_t(tiles) * per, 0, n);
  auto first = filled<int32_t>(e, tiles + 1, [&](size_t i) { return int(i) * per - (i % 2 ? 3 : 0); });
  auto splats = filled<float>(e, size_t(n) * 9, [&](size_t i) {
    const double u = e.uniform();
    return float(i % 9 == 0 ? u * W : i % 9 == 1 ? u * H : i % 9 == 3 ? .01 * u : i % 9 < 5 ? .01 + .03 * u : u);
  });
  auto dc = random<float>(e, size_t(3) * H * W), left = constant<float>(e, size_t(H) * W, 0);
  // forward, for what is let through
  auto pixel = [=](int y, int x, auto each) {  // from the front
    const int tile = y / 16 * (W / 16) + x / 16;
    double through = 1;
    for (int at = first.h[tile]; at < first.h[tile + 1]; ++at) {
      const float* s = &splats.h[size_t(list.h[at]) * 9];
      const double dx = x - s[0], dy = y - s[1], power = -.5 * (s[2] * dx * dx + s[4] * dy * dy) - s[3] * dx * dy;
      const double w = std::exp(power), alpha = std::min(s[5] * w, .99);
      if (power > 0 || alpha < 1. / 255) continue;
      each(list.h[at], s, dx, dy, w, alpha, through);
      through *= 1 - alpha;
    }
    return through;
  };
  if (e.device && !e.big) {
    std::vector<float> l;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) l.push_back(float(pixel(y, x, [](auto...) {})));
    left = filled<float>(e, l.size(), [&](size_t i) { return l[i]; });
  } else {
    left = constant<float>(e, size_t(H) * W, .01);
  }
  auto grads = constant<float>(e, size_t(n) * 9, 0);
  Job j;
  j.mbytes = 72e-6 * tiles * per;
  j.add(splat_bwd, cfg, splats.p, list.p, first.p, dc.view(3, H, W), left.view(H, W), grads.p);
  j.check = [=] {
    std::vector<double> want(size_t(n) * 9);
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        auto shade = [&](const float* s) {
          double v = 0;
          for (int i = 0; i < 3; ++i) v += s[6 + i] * dc[(size_t(i) * H + y) * W + x];
          return v;
        };
        double total = 0, seen = 0;
        pixel(y, x,
              [&](int, const float* s, double, double, double, double a, double t) { total += a * t * shade(s); });
        pixel(y, x, [&](int id, const float* s, double dx, double dy, double w, double a, double t) {
          double* g = &want[size_t(id) * 9];
          seen += a * t * shade(s);
          const double dalpha = t * shade(s) - (total - seen) / (1 - a);
          const bool free = s[5] * w < .99;
          const double dp = free ? dalpha * s[5] * w : 0;
          g[0] += dp * (s[2] * dx + s[3] * dy), g[1] += dp * (s[4] * dy + s[3] * dx);
          g[2] -= .5 * dp * dx * dx, g[3] -= dp * dx * dy, g[4] -= .5 * dp * dy * dy;
          g[5] += free ? dalpha * w : 0;
          for (int i = 0; i < 3; ++i) g[6 + i] += a * t * dc[(size_t(i) * H + y) * W + x];
        });
      }
    return agree(grads.now(), want, 5e-2, 5e-3);
  };
  return j;
});

// --- an operator of high order on cubes of 4 x 4 x 4 nodes: derivatives along each axis, scaled, and back
struct CubeCfg {
  int B = 16, warps = 4;
};
auto stiffness = kernel("user_stiffness", [](const CubeCfg& c, Tensor<const float, 4> U, Tensor<const float, 2> D,
                                             Tensor<const float, 2> scale, Tensor<float, 4> out) {
                   num_warps(c.warps);
                   auto e = program_id(0) * c.B;
                   auto u = U.load({e, 0, 0, 0}, {c.B, 4, 4, 4});
                   // sum over m of A[i, m] x[.., m, ..] along an axis, A turned or not
                   auto along = [&](const Tile& x, int at, bool turned) {
                     Tile total = zeros({c.B, 4, 4, 4}, f32);
                     for (int m = 0; m < 4; ++m) {
                       Shape from{0, 0, 0, 0}, size{c.B, 4, 4, 4}, line{1, 1, 1, 1};
                       from[at] = m, size[at] = 1, line[at] = 4;
                       auto column = turned ? D.load({m, 0}, {1, 4}) : D.load({0, m}, {4, 1});
                       total += extract(x, from, size) * reshape(column, line);
                     }
                     return total;
                   };
                   Tile sum_of = zeros({c.B, 4, 4, 4}, f32);
                   for (int d = 0; d < 3; ++d) {
                     auto weight = reshape(scale.load({e, d}, {c.B, 1}), {c.B, 1, 1, 1});
                     sum_of += along(along(u, d + 1, false) * weight, d + 1, true);
                   }
                   out.store({e, 0, 0, 0}, sum_of);
                 }).grid([](const CubeCfg& c, const auto& u, const auto&...) { return Grid{cdiv(u.shape[0], c.B)}; });
Register r3("stiffness", [](Env& e) {
  int N = e.big ? 1 << 18 : 37;
  auto u = random<float>(e, size_t(N) * 64), d = random<float>(e, 16), s = random<float>(e, size_t(N) * 3, .5, 2);
  auto o = constant<float>(e, size_t(N) * 64, NAN);
  Job j;
  j.mbytes = 524e-6 * N;
  j.add(stiffness, CubeCfg{e.field("B", 16), e.field("warps", 4)}, u.view(N, 4, 4, 4), d.view(4, 4), s.view(N, 3),
        o.view(N, 4, 4, 4));
  j.check = [=] {
    std::vector<double> want(size_t(N) * 64);
    for (int n = 0; n < N; ++n)
      for (int axis = 0; axis < 3; ++axis) {
        const int stride = axis == 0 ? 16 : axis == 1 ? 4 : 1;
        for (int at = 0; at < 64; ++at) {
          const int i = at / stride % 4, base = at - i * stride;
          for (int m = 0; m < 4; ++m) {
            double v = 0;
            for (int k = 0; k < 4; ++k) v += d[m * 4 + k] * u[size_t(n) * 64 + base + k * stride];
            want[size_t(n) * 64 + at] += d[m * 4 + i] * v * s[size_t(n) * 3 + axis];
          }
        }
      }
    return agree(o.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- the k-th largest of long rows digit by digit, then what is above it: counts of 256 per pass
struct DigitCfg {
  int B = 2048, k = 64, warps = 8;
};
auto radix_select =
    kernel("user_radix_select", [](const DigitCfg& c, Tensor<const float, 2> X, Tensor<float, 2> values,
                                   Tensor<int32_t, 2> places, Ptr<int32_t> counter) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto N = X.dim(1);
      auto keys = [&](const Tile& j) {  // ordered as the numbers are, largest first
        auto bits = bitcast(X.load({row, j}, {c.B}, {.pad = -INFINITY}), u32);
        return where((bits >> 31u) != 0u, ~bits, bits | 0x80000000u);
      };
      Tile prefix = U32(0u), left = c.k;
      for (int shift = 24; shift >= 0; shift -= 8) {
        Tile counts = zeros({256}, i32);
        for (auto j : range(0, N, c.B)) {
          auto key = keys(j);
          auto fits = (j + arange(0, c.B)) < N;
          if (shift < 24) fits = fits & ((key >> unsigned(shift + 8)) == prefix);
          counts += histogram(cast((key >> unsigned(shift)) & 255u, i32), 256, {.mask = fits});
        }
        auto above = cumsum(counts, axis(0), {.reverse = true});  // this digit and larger ones
        auto digit = sum(cast(above >= left, i32)) - 1;
        auto larger = sum(where(arange(0, 256) > digit, counts, 0));
        prefix = (prefix << 8u) | cast(digit, u32);
        left -= larger;
      }
      // what is larger, in any order; then as many equal ones as are left
      store(counter + 2 * row + arange(0, 2), zeros({2}, i32));
      for (auto j : range(0, N, c.B)) {
        auto key = keys(j);
        auto at = j + arange(0, c.B);
        auto larger = (key > prefix) & (at < N);
        auto slot = atomic_add(counter + 2 * row + zeros({c.B}, i32), 1, {.mask = larger, .order = Order::relaxed});
        auto equal = (key == prefix) & (at < N);
        auto turn = atomic_add(counter + 2 * row + 1 + zeros({c.B}, i32), 1, {.mask = equal, .order = Order::relaxed});
        auto to = where(larger, slot, c.k - 1 - turn);
        auto taken = larger | (equal & (turn < left));
        store(values.ptr() + row * c.k + to, X.load({row, j}, {c.B}), {.mask = taken});
        store(places.ptr() + row * c.k + to, at, {.mask = taken});
      }
    }).grid([](const DigitCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r4("radix_select", [](Env& e) {
  int R = e.big ? 256 : 4, N = e.big ? 131072 : 5000;
  DigitCfg cfg;
  cfg.B = e.field("B", 2048), cfg.warps = e.field("warps", 8);
  auto x = random<float>(e, size_t(R) * N, -3, 3);
  auto v = constant<float>(e, size_t(R) * cfg.k, NAN);
  auto p = constant<int32_t>(e, size_t(R) * cfg.k, -1), counter = constant<int32_t>(e, 2 * R, 0);
  Job j;
  j.mbytes = 20e-6 * R * N;
  j.add(radix_select, cfg, x.view(R, N), v.view(R, cfg.k), p.view(R, cfg.k), counter.p);
  j.check = [=] {
    std::vector<double> want;
    auto got = v.now();
    auto at = p.now();
    for (int r = 0; r < R; ++r) {
      std::vector<float> row(x.h.begin() + size_t(r) * N, x.h.begin() + size_t(r + 1) * N);
      for (int i = 0; i < cfg.k; ++i)
        if (at[size_t(r) * cfg.k + i] < 0 || row[at[size_t(r) * cfg.k + i]] != got[size_t(r) * cfg.k + i])
          return std::string("a place has another value");
      std::sort(row.begin(), row.end(), std::greater<float>());
      std::sort(got.begin() + r * cfg.k, got.begin() + (r + 1) * cfg.k, std::greater<float>());
      want.insert(want.end(), row.begin(), row.begin() + cfg.k);
    }
    return agree(got, want, 1e-9, 0);
  };
  return j;
});

// --- exponentials of many small matrices in f64: halved until small, a Taylor polynomial, squared as often
struct ExpCfg {
  int B = 4, N = 16, warps = 4;
};
auto expm = kernel("user_expm", [](const ExpCfg& c, Tensor<const double, 3> A, Tensor<double, 3> E) {
              num_warps(c.warps);
              auto b = program_id(0) * c.B;
              auto a = A.load({b, 0, 0}, {c.B, c.N, c.N});
              auto norm = max(max(sum(abs(a), axis(2)), axis(1)));
              auto halvings = max(cast(ceil(log2(norm)), i32) + 2, 0);
              Tile x = a * exp2(-cast(halvings, f64));
              auto identity = broadcast_to(expand_dims(cast(arange(0, c.N).col() == arange(0, c.N).row(), f64), 0),
                                           {c.B, c.N, c.N});
              Tile y = identity;
              for (int i = 12; i > 0; --i) y = identity + dot(x, y) * (1.0 / i);
              for (auto _ : range(0, halvings)) {
                (void)_;
                y = dot(y, y);
              }
              E.store({b, 0, 0}, y);
            }).grid([](const ExpCfg& c, const auto& a, const auto&) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r5("expm", [](Env& e) {
  int B = e.big ? 16384 : 5, N = 16;
  auto a = random<double>(e, size_t(B) * N * N, -.5, .5);
  auto o = constant<double>(e, size_t(B) * N * N, NAN);
  Job j;
  j.mbytes = 16e-6 * B * N * N;
  j.add(expm, ExpCfg{e.field("B", 4), N, e.field("warps", 4)}, a.view(B, N, N), o.view(B, N, N));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      std::vector<double> x(N * N), y(N * N), term(N * N);
      for (int i = 0; i < N * N; ++i) x[i] = a.h[size_t(b) * N * N + i];
      for (int i = 0; i < N; ++i) y[i * N + i] = term[i * N + i] = 1;
      for (int k = 1; k < 60; ++k) {
        term = product(
            N, N, N, [&](int i, int q) { return term[i * N + q]; }, [&](int q, int n) { return x[q * N + n] / k; });
        for (int i = 0; i < N * N; ++i) y[i] += term[i];
      }
      want.insert(want.end(), y.begin(), y.end());
    }
    return agree(o.now(), want, 1e-8, 1e-8);
  };
  return j;
});

// --- sums of rows of a table of four-bit numbers, each with a scale and a bias in front (as embedding servers keep
// them)
struct BagCfg {
  int D = 128, warps = 1;
};
auto bag4 = kernel("user_bag4", [](const BagCfg& c, Tensor<const uint8_t, 2> rows, Ptr<const int32_t> indices,
                                   Ptr<const int32_t> offsets, Ptr<const float> weights, Tensor<half, 2> out) {
              // rows [n, 4 + D / 2]: scale and bias as halves, then two numbers to a byte
              num_warps(c.warps);
              auto bag = program_id(0);
              Tile low = zeros({c.D / 2}, f32), high = zeros({c.D / 2}, f32);
              auto end = load(offsets + bag + 1);
              for (auto i : range(load(offsets + bag), end, {.unroll = 4})) {
                auto row = load(indices + i);
                auto weight = load(weights + i);
                auto head = [&](int at) {
                  auto b = rows.load({row, at}, {2});
                  auto [x, y] = split(b);
                  return cast(bitcast(cast(x, u16) | (cast(y, u16) << cast(8, u16)), f16), f32);
                };
                auto scale = head(0) * weight, bias = head(2) * weight;
                auto bytes = rows.load({row, 4}, {c.D / 2});
                low += cast(bytes & 15, f32) * scale + bias;
                high += cast(bytes >> 4, f32) * scale + bias;
              }
              out.store({bag, 0}, cast(interleave(low, high), f16));
            }).grid([](const BagCfg&, auto&&... a) { return Grid{std::get<4>(std::tie(a...)).shape[0]}; });
Register r6("bag4", [](Env& e) {
  int n = e.big ? 1 << 20 : 50, D = e.big ? 128 : 64, bags = e.big ? 8192 : 9, most = e.big ? 40 : 7, row = 4 + D / 2;
  auto table = drawn<uint8_t>(e, size_t(n) * row, [&] { return uint8_t(e.uniform() * 256); });
  if (!e.big && e.device) {  // sensible scales
    for (int r = 0; r < n; ++r)
      for (int i = 0; i < 2; ++i) {
        const uint16_t bits = std::bit_cast<uint16_t>(half(float(i ? -.3 : .01 + .001 * r)));
        table.h[size_t(r) * row + 2 * i] = uint8_t(bits), table.h[size_t(r) * row + 2 * i + 1] = uint8_t(bits >> 8);
      }
    auto h = table.h;
    table = filled<uint8_t>(e, h.size(), [&](size_t i) { return h[i]; });
  }
  std::vector<int> starts{0};
  for (int b = 0; b < bags; ++b) starts.push_back(starts.back() + (e.big ? most / 2 + b % most : b * 3 % most));
  auto offsets = filled<int32_t>(e, bags + 1, [&](size_t i) { return starts[i]; });
  auto indices = integers<int32_t>(e, starts.back(), 0, n);
  auto weights = random<float>(e, starts.back(), .5, 1);
  auto out = constant<half>(e, size_t(bags) * D, NAN);
  Job j;
  j.mbytes = 1e-6 * (double(starts.back()) * (row + 8) + 2. * bags * D);
  j.add(bag4, BagCfg{D, e.field("warps", 1)}, table.view(n, row), indices.p, offsets.p, weights.p, out.view(bags, D));
  j.check = [=] {
    std::vector<double> want(size_t(bags) * D);
    for (int b = 0; b < bags; ++b)
      for (int i = starts[b]; i < starts[b + 1]; ++i) {
        const uint8_t* r = &table.h[size_t(indices.h[i]) * row];
        const double scale = double(float(std::bit_cast<half>(uint16_t(r[0] | r[1] << 8)))),
                     bias = double(float(std::bit_cast<half>(uint16_t(r[2] | r[3] << 8))));
        for (int d = 0; d < D; ++d)
          want[size_t(b) * D + d] += weights[i] * ((d % 2 ? r[4 + d / 2] >> 4 : r[4 + d / 2] & 15) * scale + bias);
      }
    return agree(out.now(), want, 5e-3, 2e-3);
  };
  return j;
});

}  // namespace many_sums
}  // namespace users
