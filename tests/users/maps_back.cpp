// maps_back.cpp - pictures and graphs, forwards and backwards: sampling where offsets say, windows with positions, a
// convolution of what was just normed, attention over edges, long filters as products.
#include "tests/users/use.h"
namespace users {
namespace maps_back {

// --- deformable attention going back: gradients of values by atomics, of places and weights by sums over channels
struct SampleBackCfg {
  int BQ = 8, D = 32, L = 4, P = 4, warps = 4;
};
auto sample_bwd =
    kernel(
        "user_sample_bwd",
        [](const SampleBackCfg& c, Tensor<const float, 4> values, Ptr<const int32_t> sizes, Ptr<const int32_t> starts,
           Tensor<const float, 6> places, Tensor<const float, 5> weights, Tensor<const float, 4> dOut,
           Tensor<float, 4> dValues, Tensor<float, 6> dPlaces, Tensor<float, 5> dWeights) {
          // values [B, S, H, D], sizes [L, 2] (height, width), starts [L], places [B, Q, H, L, P, 2], weights [B, Q, H,
          // L, P], dOut [B, Q, H, D]
          num_warps(c.warps);
          auto q = program_id(0) * c.BQ + arange(0, c.BQ), h = program_id(1), b = program_id(2);
          auto Q = dOut.dim(1), H = dOut.dim(2);
          auto live = q < Q;
          auto d = arange(0, c.D).row();
          auto query = (cast(b, i64) * Q + q) * H + h;
          auto g = load(dOut.ptr() + (query * c.D).col() + d, {.mask = live.col()});
          for (auto lp : range(0, c.L * c.P)) {
            auto l = lp / c.P;
            auto height = load(sizes + 2 * l), width = load(sizes + 2 * l + 1), start = load(starts + l);
            auto fw = cast(width, f32), fh = cast(height, f32);
            auto at = query * (c.L * c.P) + lp;
            auto x = load(places.ptr() + at * 2, {.mask = live}) * fw - .5f;
            auto y = load(places.ptr() + at * 2 + 1, {.mask = live}) * fh - .5f;
            auto w = load(weights.ptr() + at, {.mask = live});
            auto x0 = floor(x), y0 = floor(y);
            auto fx = x - x0, fy = y - y0;
            auto ix = cast(x0, i32), iy = cast(y0, i32);
            Tile dx = zeros({c.BQ, c.D}, f32), dy = zeros({c.BQ, c.D}, f32), v = zeros({c.BQ, c.D}, f32);
            for (int j = 0; j < 2; ++j)
              for (int i = 0; i < 2; ++i) {
                auto px = ix + i, py = iy + j;
                auto in = live & (px >= 0) & (px < width) & (py >= 0) & (py < height);
                auto sx = i ? fx : 1.f - fx, sy = j ? fy : 1.f - fy;
                auto to = ((((cast(b, i64) * values.dim(1) + start + py * width + px) * H) + h) * c.D).col() + d;
                auto value = load(values.ptr() + to, {.mask = in.col()});
                v = v + (sx * sy).col() * value;
                dx = dx + (i ? sy : -sy).col() * value, dy = dy + (j ? sx : -sx).col() * value;
                atomic_add(dValues.ptr() + to, g * (sx * sy * w).col(), {.mask = in.col(), .order = Order::relaxed});
              }
            auto along = [&](const Tile& t) { return squeeze(sum(t * g, axis(1)), 1); };
            store(dWeights.ptr() + at, along(v), {.mask = live});
            store(dPlaces.ptr() + at * 2, along(dx) * w * fw, {.mask = live});
            store(dPlaces.ptr() + at * 2 + 1, along(dy) * w * fh, {.mask = live});
          }
        })
        .grid([](const SampleBackCfg& c, const auto&, auto, auto, const auto&, const auto&, const auto& o,
                 const auto&...) {
          return Grid{cdiv(o.shape[1], c.BQ), o.shape[2], o.shape[0]};
        });
Register r1("sample_bwd", [](Env& e) {
  SampleBackCfg c;
  if (!e.big) c = {4, 16, 2, 3, 1};
  c.BQ = e.field("BQ", c.BQ), c.warps = e.field("warps", c.warps);
  const std::vector<int32_t> size =
      e.big ? std::vector<int32_t>{100, 152, 50, 76, 25, 38, 13, 19} : std::vector<int32_t>{9, 7, 4, 5};
  std::vector<int32_t> start;
  int S = 0;
  for (int l = 0; l < c.L; ++l) start.push_back(S), S += size[2 * l] * size[2 * l + 1];
  const int B = e.big ? 2 : 2, Q = e.big ? S : 11, H = e.big ? 8 : 3, D = c.D, L = c.L, P = c.P;
  auto v = random<float>(e, size_t(B) * S * H * D), g = random<float>(e, size_t(B) * Q * H * D);
  auto pl = random<float>(e, size_t(B) * Q * H * L * P * 2, -.05, 1.05), w = random<float>(e, pl.n / 2, 0, 1);
  if (e.big && e.device)  // queries look around themselves
    pl = drawn<float>(e, pl.n, [&, i = size_t(0)]() mutable {
      return float(double(i++ / (H * L * P * 2) % 997) / 997 + .02 * e.uniform());
    });
  auto si = filled<int32_t>(e, size.size(), [&](size_t i) { return size[i]; });
  auto st = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto dv = constant<float>(e, v.n, 0), dp = constant<float>(e, pl.n, NAN), dw = constant<float>(e, w.n, NAN);
  Job j;
  j.mbytes = 4e-6 * w.n * 4 * D * 3;
  j.add(sample_bwd, c, v.view(B, S, H, D), si.p, st.p, pl.view(B, Q, H, L, P, 2), w.view(B, Q, H, L, P),
        g.view(B, Q, H, D), dv.view(B, S, H, D), dp.view(B, Q, H, L, P, 2), dw.view(B, Q, H, L, P));
  j.check = [=] {
    std::vector<double> wv(v.n), wp(pl.n), ww(w.n);
    for (size_t i = 0; i < w.n; ++i) {
      const int l = i / P % L, h = i / P / L % H, b = i / P / L / H / Q, hh = size[2 * l], wd = size[2 * l + 1];
      const double x = double(float(pl[2 * i])) * wd - .5, y = pl[2 * i + 1] * hh - .5;
      const double x0 = std::floor(x), y0 = std::floor(y);
      for (int a = 0; a < 2; ++a)
        for (int k = 0; k < 2; ++k) {
          const int px = int(x0) + k, py = int(y0) + a;
          if (px < 0 || py < 0 || px >= wd || py >= hh) continue;
          const double sx = k ? x - x0 : 1 - x + x0, sy = a ? y - y0 : 1 - y + y0;
          for (int d = 0; d < D; ++d) {
            const size_t at = ((size_t(b) * S + start[l] + py * wd + px) * H + h) * D + d;
            const double gg = g[i / P / L * D + d];
            wv[at] += sx * sy * w[i] * gg, ww[i] += sx * sy * v[at] * gg;
            wp[2 * i] += (k ? sy : -sy) * v[at] * gg * w[i] * wd,
                wp[2 * i + 1] += (a ? sx : -sx) * v[at] * gg * w[i] * hh;
          }
        }
    }
    if (auto x = agree(dv.now(), wv, 1e-3, 1e-3); !x.empty()) return "values: " + x;
    if (auto x = agree(dw.now(), ww, 1e-3, 1e-3); !x.empty()) return "weights: " + x;
    return agree(dp.now(), wp, 1e-2, 1e-3);
  };
  return j;
});

// --- windows of 7 x 7 going back (Swin): a program one head and some windows, the positions' gradients stay in
// registers until the last
struct WindowBackCfg {
  int N = 49, D = 32, windows = 32, warps = 4;
};
auto window_bwd =
    kernel("user_window_bwd", [](const WindowBackCfg& c, Tensor<const half, 5> QKV, Tensor<const half, 3> bias,
                                 Tensor<const half, 3> mask, Tensor<const half, 4> dO, Tensor<half, 5> dQKV,
                                 Tensor<float, 3> dBias, F32 scale) {
      // QKV, dQKV [windows, N, 3, H, D], bias, dBias [H, N, N], mask [kinds, N, N], dO [windows, N, H, D]
      num_warps(c.warps);
      constexpr int R = 64;
      auto h = program_id(1), first = program_id(0) * c.windows;
      auto place = cast(bias.load({h, 0, 0}, {R, R}), f32);
      auto in = arange(0, R).row() < c.N;
      Tile sums = zeros({R, R}, f32);
      for (auto w : range(first, min(first + c.windows, QKV.dim(0)), 1, {.stages = 2})) {
        auto part = [&](int i) { return reshape(QKV.load({w, 0, i, h, 0}, {1, R, 1, 1, c.D}), {R, c.D}); };
        auto q = part(0), k = part(1), v = part(2);
        auto g = reshape(dO.load({w, 0, h, 0}, {1, R, 1, c.D}), {R, c.D});
        auto x = dot(q, trans(k)) * scale + place + cast(mask.load({w % mask.dim(0), 0, 0}, {R, R}), f32);
        x = where(in, x, -INFINITY);
        auto p = softmax(x, axis(1));
        auto dp = dot(g, trans(v));
        auto ds = p * (dp - sum(p * dp, axis(1)));
        ds = where(arange(0, R).col() < c.N, ds, 0.f);
        p = where(arange(0, R).col() < c.N, p, 0.f);
        sums += ds;
        auto put = [&](int i, const Tile& t) { dQKV.store({w, 0, i, h, 0}, reshape(cast(t, f16), {1, R, 1, 1, c.D})); };
        auto rounded = cast(ds, f16);
        put(2, dot(trans(cast(p, f16)), g));
        put(0, dot(rounded, k) * scale);
        put(1, dot(trans(rounded), q) * scale);
      }
      dBias.atomic_add({h, 0, 0}, sums);
    }).grid([](const WindowBackCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[0], c.windows), q.shape[3]};
    });
Register r2("window_bwd", [](Env& e) {
  WindowBackCfg c;
  if (!e.big) c = {49, 32, 3, 2};
  c.warps = e.field("warps", c.warps), c.windows = e.field("windows", c.windows);
  const int W = e.big ? 64 * 64 : 5, H = e.big ? 6 : 2, N = c.N, D = c.D, kinds = e.big ? 64 : 2;
  auto x = random<half>(e, size_t(W) * N * 3 * H * D), bias = random<half>(e, size_t(H) * N * N);
  auto mask = filled<half>(e, size_t(kinds) * N * N, [](size_t i) { return half(i % 3 ? 0.f : -5.f); });
  auto g = random<half>(e, size_t(W) * N * H * D);
  auto dx = constant<half>(e, x.n, NAN);
  auto db = constant<float>(e, bias.n, 0);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 10e-9 * W * H * double(N) * N * D, j.mbytes = 2e-6 * x.n * 7 / 3;
  j.add(window_bwd, c, x.view(W, N, 3, H, D), bias.view(H, N, N), mask.view(kinds, N, N), g.view(W, N, H, D),
        dx.view(W, N, 3, H, D), db.view(H, N, N), scale);
  j.check = [=] {
    std::vector<double> wx(x.n), wb(bias.n);
    for (int w = 0; w < W; ++w)
      for (int h = 0; h < H; ++h)
        for (int i = 0; i < N; ++i) {
          auto at = [&](int r, int part, int d) { return (((size_t(w) * N + r) * 3 + part) * H + h) * D + d; };
          std::vector<double> p(N), dp(N);
          double sum = 0, all = 0;
          for (int k = 0; k < N; ++k) {
            double s = 0;
            for (int d = 0; d < D; ++d)
              s += x[at(i, 0, d)] * x[at(k, 1, d)], dp[k] += g[((size_t(w) * N + i) * H + h) * D + d] * x[at(k, 2, d)];
            sum += p[k] = std::exp(s * scale + bias[(h * N + i) * N + k] + mask[(w % kinds * N + i) * N + k]);
          }
          for (int k = 0; k < N; ++k) p[k] /= sum, all += p[k] * dp[k];
          for (int k = 0; k < N; ++k) {
            const double ds = p[k] * (dp[k] - all);
            wb[(h * N + i) * N + k] += ds;
            for (int d = 0; d < D; ++d) {
              wx[at(i, 0, d)] += ds * scale * x[at(k, 1, d)], wx[at(k, 1, d)] += ds * scale * x[at(i, 0, d)];
              wx[at(k, 2, d)] += p[k] * g[((size_t(w) * N + i) * H + h) * D + d];
            }
          }
        }
    if (auto y = agree(db.now(), wb, 5e-3, 5e-3); !y.empty()) return "bias: " + y;
    return agree(dx.now(), wx, 5e-3, 1e-2);
  };
  return j;
});

// --- a convolution of 3 x 3 over what a group norm and SiLU make of its input: pixels gathered by number, normed on
// their way to the product, channels last
struct NormConvCfg {
  int BM = 128, BN = 256, BK = 64, stages = 3, warps = 8;
};
auto norm_conv =
    kernel("user_norm_conv", [](const NormConvCfg& c, Tensor<const half, 4> X, Tensor<const float, 2> a,
                                Tensor<const float, 2> b, Tensor<const half, 3> W, Tensor<const half, 1> bias,
                                Tensor<half, 2> Y) {
      // X [B, H, W, C]; a, b [B, C]: x a + b is normed; W [9, C, Co], Y [B H W, Co]. H W is a multiple of BM
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      auto H = X.dim(1), Wd = X.dim(2), C = X.dim(3);
      auto pixels = make_view<const half>(X.ptr(), {X.dim(0) * H * Wd, C}, {C, 1});
      auto image = m / (H * Wd);
      auto r = m % (H * Wd) + arange(0, c.BM);
      auto y = r / Wd, x = r % Wd;
      Tile acc = zeros({c.BM, c.BN}, f32);
      auto steps = C / c.BK;
      for (auto i : range(0, 9 * steps, 1, {.stages = c.stages})) {
        auto tap = i / steps, k = i % steps * c.BK;
        auto py = y + (tap / 3 - 1), px = x + (tap % 3 - 1);
        auto in = (py >= 0) & (py < H) & (px >= 0) & (px < Wd);
        auto rows = where(in, image * (H * Wd) + py * Wd + px, -1);
        auto v = cast(pixels.gather(rows, k, c.BK), f32) * a.load({image, k}, {c.BK}).row() +
                 b.load({image, k}, {c.BK}).row();
        auto u = where(in.col(), cast(silu(v), f16), 0);
        acc = dot(u, W.load({tap, k, n}, {c.BK, c.BN}), acc);
      }
      Y.store({m, n}, cast(acc + cast(bias.load({n}, {c.BN}), f32).row(), f16));
    }).grid([](const NormConvCfg& c, const auto& x, const auto&, const auto&, const auto& w, const auto&...) {
      return Grid{x.shape[0] * x.shape[1] * x.shape[2] / c.BM, cdiv(w.shape[2], c.BN)};
    });
Register r3("norm_conv", [](Env& e) {
  NormConvCfg c;
  if (!e.big) c = {16, 32, 16, 2, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 8 : 2, H = e.big ? 64 : 4, W = e.big ? 64 : 8, C = e.big ? 512 : 32, Co = e.big ? 512 : 40;
  auto x = random<half>(e, size_t(B) * H * W * C);
  auto a = random<float>(e, B * C, .5, 2), b = random<float>(e, B * C);
  auto w = random<half>(e, size_t(9) * C * Co, -.2, .2), bias = random<half>(e, Co);
  auto y = constant<half>(e, size_t(B) * H * W * Co, NAN);
  Job j;
  j.gflop = 18e-9 * B * H * W * double(C) * Co;
  j.add(norm_conv, c, x.view(B, H, W, C), a.view(B, C), b.view(B, C), w.view(9, C, Co), bias.view(Co),
        y.view(B * H * W, Co));
  j.check = [=] {
    std::vector<double> want(y.n), u(x.n);
    for (size_t i = 0; i < x.n; ++i) {
      const size_t at = i / (size_t(H) * W * C) * C + i % C;
      const double v = x[i] * a[at] + b[at];
      u[i] = v / (1 + std::exp(-v));
    }
    for (int i = 0; i < B * H * W; ++i)
      for (int o = 0; o < Co; ++o) {
        double s = bias[o];
        for (int t = 0; t < 9; ++t) {
          const int py = i / W % H + t / 3 - 1, px = i % W + t % 3 - 1;
          if (py < 0 || px < 0 || py >= H || px >= W) continue;
          for (int k = 0; k < C; ++k)
            s += u[((size_t(i / (H * W)) * H + py) * W + px) * C + k] * w[(size_t(t) * C + k) * Co + o];
        }
        want[size_t(i) * Co + o] = s;
      }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- attention over a graph going back (GATv2): scores are of sums behind a leaky ReLU; a program a node, its edges in
// blocks, all heads
struct Gat2Cfg {
  int BE = 8, H = 4, D = 64, warps = 4;
};
auto gat2_bwd =
    kernel("user_gat2_bwd", [](const Gat2Cfg& c, Ptr<const int32_t> start, Ptr<const int32_t> source,
                               Ptr<const float> xl, Ptr<const float> xr, Ptr<const float> weight,
                               Ptr<const float> share, Ptr<const float> dOut, Ptr<float> dXl, Ptr<float> dXr,
                               Ptr<float> dWeight, F32 slope) {
      // start [nodes + 1], source [edges]; xl, xr, dOut .. [nodes, H, D], weight [H, D], share [edges, H]
      num_warps(c.warps);
      auto node = program_id(0);
      auto first = load(start + node), end = load(start + node + 1);
      auto hd = expand_dims((arange(0, c.H) * c.D).col() + arange(0, c.D).row(), 0);
      const int width = c.H * c.D;
      auto own = cast(node, i64) * width + hd;
      auto r = load(xr + own), g = load(dOut + own), w = load(weight + hd);
      auto edges = [&](const Tile& i) { return i + arange(0, c.BE); };
      auto three = [&](const Tile& x) { return reshape(x, {c.BE, 1, 1}); };
      auto from = [&](const Tile& e) { return three(cast(load(source + e, {.mask = e < end}), i64) * width) + hd; };
      auto shares = [&](const Tile& e) {
        return load(share + reshape(e, {c.BE, 1, 1}) * c.H + reshape(arange(0, c.H), {1, c.H, 1}),
                    {.mask = three(e) < end});
      };
      Tile mean = zeros({1, c.H, 1}, f32);
      for (auto i : range(first, end, c.BE)) {
        auto e = edges(i);
        auto x = load(xl + from(e), {.mask = three(e) < end});
        mean += sum(shares(e) * sum(x * g, axis(2)), axis(0));
      }
      Tile dr = zeros({1, c.H, c.D}, f32), dw = zeros({1, c.H, c.D}, f32);
      for (auto i : range(first, end, c.BE)) {
        auto e = edges(i);
        auto at = from(e);
        auto x = load(xl + at, {.mask = three(e) < end});
        auto p = shares(e);
        auto ds = p * (sum(x * g, axis(2)) - mean);
        auto z = x + r;
        auto up = z > 0.f;
        dw += sum(ds * where(up, z, z * slope), axis(0));
        auto dz = ds * where(up, w, w * slope);
        dr += sum(dz, axis(0));
        atomic_add(dXl + at, dz + p * g, {.mask = three(e) < end, .order = Order::relaxed});
      }
      store(dXr + own, dr);
      atomic_add(dWeight + hd, dw, {.order = Order::relaxed});
    }).grid([](const Gat2Cfg&, auto...) { return Grid{1}; });
Register r4("gat2_bwd", [](Env& e) {
  Gat2Cfg c;
  if (!e.big) c = {4, 2, 16, 1};
  c.BE = e.field("BE", c.BE), c.warps = e.field("warps", c.warps);
  const int nodes = e.big ? 100000 : 13, H = c.H, D = c.D;
  std::vector<int32_t> begin{0}, src;
  for (int i = 0; i < nodes; ++i) {
    const int degree = e.big ? 4 + i * 7919 % 25 : i * 5 % 9;
    for (int k = 0; k < degree; ++k) src.push_back(int32_t((int64_t(i) * 31 + k * 977) % nodes));
    begin.push_back(int32_t(src.size()));
  }
  const int E = int(src.size());
  auto st = filled<int32_t>(e, begin.size(), [&](size_t i) { return begin[i]; });
  auto so = filled<int32_t>(e, src.size(), [&](size_t i) { return src[i]; });
  const size_t n = size_t(nodes) * H * D;
  auto xl = random<float>(e, n), xr = random<float>(e, n), g = random<float>(e, n), w = random<float>(e, H * D);
  auto share = random<float>(e, size_t(E) * H, 0, .3);
  auto dl = constant<float>(e, n, 0), dr = constant<float>(e, n, NAN), dw = constant<float>(e, H * D, 0);
  Job j;
  j.mbytes = 4e-6 * (double(E) * H * D * 2 + 3. * n);
  auto sized = gat2_bwd;
  j.add(sized.grid([=](const Gat2Cfg&, auto...) { return Grid{nodes}; }), c, st.p, so.p, xl.p, xr.p, w.p, share.p, g.p,
        dl.p, dr.p, dw.p, .2f);
  j.check = [=] {
    std::vector<double> wl(n), wr(n), ww(H * D);
    for (int i = 0; i < nodes; ++i)
      for (int h = 0; h < H; ++h) {
        double mean = 0;
        std::vector<double> da(begin[i + 1] - begin[i]);
        for (int k = begin[i]; k < begin[i + 1]; ++k) {
          for (int d = 0; d < D; ++d)
            da[k - begin[i]] += g[(size_t(i) * H + h) * D + d] * xl[(size_t(src[k]) * H + h) * D + d];
          mean += share[size_t(k) * H + h] * da[k - begin[i]];
        }
        for (int k = begin[i]; k < begin[i + 1]; ++k) {
          const double p = share[size_t(k) * H + h], ds = p * (da[k - begin[i]] - mean);
          for (int d = 0; d < D; ++d) {
            const size_t at = (size_t(src[k]) * H + h) * D + d, own = (size_t(i) * H + h) * D + d;
            const double z = xl[at] + xr[own], up = z > 0 ? 1 : .2f;
            ww[h * D + d] += ds * z * up, wr[own] += ds * w[h * D + d] * up;
            wl[at] += ds * w[h * D + d] * up + p * g[own];
          }
        }
      }
    if (auto x = agree(dr.now(), wr, 1e-3, 1e-3); !x.empty()) return "right: " + x;
    if (auto x = agree(dw.now(), ww, 1e-3, 1e-3); !x.empty()) return "weights: " + x;
    return agree(dl.now(), wl, 1e-3, 1e-3);
  };
  return j;
});

// --- filters of 128 taps as products (StripedHyena 2): two matrices of shifted taps meet a chunk and the one before
// it; gates before and behind
struct TapsCfg {
  int C = 128, G = 32, stages = 2, warps = 8;
};
auto taps = kernel("user_taps", [](const TapsCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 2> H, Tensor<bfloat16, 3> Y) {
              // Q .. Y [B, T, D], H [D / G, C]
              num_warps(c.warps);
              auto g = program_id(0), b = program_id(1);
              auto d = g * c.G;
              auto lag = arange(0, c.C).col() - arange(0, c.C).row();
              auto taps = [&](const Tile& l) {
                return load(H.ptr() + cast(g, i64) * H.stride(0) + l, {.mask = (l >= 0) & (l < c.C)});
              };
              auto now = taps(lag), before = taps(lag + c.C);
              Tile past = zeros({c.C, c.G}, bf16);
              for (auto t : range(0, Q.dim(1), c.C, {.stages = c.stages})) {
                auto u = K.load({b, t, d}, {c.C, c.G}) * V.load({b, t, d}, {c.C, c.G});
                auto y = dot(before, past, dot(now, u));
                Y.store({b, t, d}, cast(y, bf16) * Q.load({b, t, d}, {c.C, c.G}));
                past = u;
              }
            }).grid([](const TapsCfg& c, const auto& q, const auto&...) {
  return Grid{q.shape[2] / c.G, q.shape[0]};
});
Register r5("taps", [](Env& e) {
  TapsCfg c;
  if (!e.big) c = {32, 16, 2, 1};
  c.G = e.field("G", c.G), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 8 : 2, T = e.big ? 8192 : 80, D = e.big ? 4096 : 48;
  const size_t n = size_t(B) * T * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n),
       h = random<bfloat16>(e, D / c.G * c.C);
  auto y = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 8e-6 * n, j.gflop = 4e-9 * n * c.C;
  j.add(taps, c, q.view(B, T, D), k.view(B, T, D), v.view(B, T, D), h.view(D / c.G, c.C), y.view(B, T, D));
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int d = 0; d < D; ++d) {
          double s = 0;
          for (int l = 0; l < std::min(c.C, t + 1); ++l) {
            const size_t at = (size_t(b) * T + t - l) * D + d;
            s += h[d / c.G * c.C + l] * k[at] * v[at];
          }
          want[(size_t(b) * T + t) * D + d] = s * q[(size_t(b) * T + t) * D + d];
        }
    return agree(y.now(), want, 3e-2, 2e-2);
  };
  return j;
});

}  // namespace maps_back
}  // namespace users
