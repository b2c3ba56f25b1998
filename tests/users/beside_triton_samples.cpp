// beside_triton_samples.cpp - int8 convolution, the router of experts backward, a step of test-time memory, deformable
// attention.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_samples {

// --- int8 NHWC 3x3 convolution, stride 2, as an implicit product; residual, ReLU6, requantised
struct ConvCfg {
  int BM = 128, BN = 128, BK = 64, C = 256;
};
auto conv = kernel("user_int8_conv",
                   [](const ConvCfg& c, Tensor<const int8_t, 4> X, Tensor<const int8_t, 2> W,
                      Tensor<const float, 1> scale, Tensor<const float, 1> bias, Tensor<const int8_t, 2> res,
                      Tensor<int8_t, 2> Y, I32 OH, I32 OW, F32 res_scale, I32 res_zero, F32 out_scale, I32 out_zero) {
                     // X [N, H, W, C], W [K, 9 C], res, Y [N OH OW, K]
                     auto n = program_id(0) * c.BN, m = program_id(1) * c.BM;
                     auto row = m + arange(0, c.BM);
                     auto ox = row % OW, oy = row / OW % OH, image = row / (OW * OH);
                     auto H = X.dim(1), Wd = X.dim(2);
                     auto k = arange(0, c.BK).row();
                     Tile acc = zeros({c.BM, c.BN}, i32);
                     for (auto step : range(9 * c.C / c.BK)) {
                       auto tap = step / (c.C / c.BK), ch = step % (c.C / c.BK) * c.BK;
                       auto y = oy * 2 - 1 + tap / 3, x = ox * 2 - 1 + tap % 3;
                       auto inside = (y >= 0) & (y < H) & (x >= 0) & (x < Wd) & (row < Y.dim(0));
                       auto at = ((image * H + y) * Wd + x) * c.C + ch;
                       auto a = load(X.ptr() + (at.col() + k), {.mask = inside.col()});
                       auto b = W.load({n, tap * c.C + ch}, {c.BN, c.BK});
                       acc = dot(a, trans(b), acc);
                     }
                     auto z = cast(acc, f32) * scale.load({n}, {c.BN}).row() + bias.load({n}, {c.BN}).row();
                     z += cast(cast(res.load({m, n}, {c.BM, c.BN}), i32) - res_zero, f32) * res_scale;
                     z = clamp(z, 0.f, 6.f);
                     Y.store({m, n}, saturate(rint(z / out_scale) + cast(out_zero, f32), i8));
                   })
                .grid([](const ConvCfg& c, const auto&, const auto& w, const auto&, const auto&, const auto&,
                         const auto& y, const auto&...) {
                  return Grid{cdiv(w.shape[0], c.BN), cdiv(y.shape[0], c.BM)};
                });
Register r1("int8_conv", [](Env& e) {
  ConvCfg c;
  if (!e.big) c = {32, 32, 32, 64};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  const int N = e.big ? 128 : 2, H = e.big ? 56 : 9, W = e.big ? 56 : 11, C = c.C, K = e.big ? 256 : 48;
  const int OH = (H + 1) / 2, OW = (W + 1) / 2, M = N * OH * OW;
  auto x = integers<int8_t>(e, size_t(N) * H * W * C, -128, 128), w = integers<int8_t>(e, size_t(K) * 9 * C, -127, 128);
  auto res = integers<int8_t>(e, size_t(M) * K, -128, 128);
  auto scale = random<float>(e, K, 1e-6, 2e-5), bias = random<float>(e, K, 0, 4);
  auto y = constant<int8_t>(e, size_t(M) * K, 0);
  const float rs = .02f, os = 6.f / 255;
  const int rz = 5, oz = -128;
  Job j;
  j.gflop = 2e-9 * M * K * 9 * C;
  j.add(conv, c, x.view(N, H, W, C), w.view(K, 9 * C), scale.view(K), bias.view(K), res.view(M, K), y.view(M, K), OH,
        OW, rs, rz, os, oz);
  j.check = [=] {
    std::vector<double> want(size_t(M) * K);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k) {
        const int ox = m % OW, oy = m / OW % OH, n = m / OW / OH;
        int64_t acc = 0;
        for (int t = 0; t < 9; ++t) {
          const int iy = oy * 2 - 1 + t / 3, ix = ox * 2 - 1 + t % 3;
          if (iy < 0 || iy >= H || ix < 0 || ix >= W) continue;
          for (int i = 0; i < C; ++i)
            acc += int(x.at(((size_t(n) * H + iy) * W + ix) * C + i)) * int(w.at(size_t(k) * 9 * C + t * C + i));
        }
        double z = acc * scale[k] + bias[k] + (res[size_t(m) * K + k] - rz) * rs;
        z = std::clamp(z, 0., 6.);
        want[size_t(m) * K + k] = std::clamp(std::rint(z / os) + oz, -128., 127.);
      }
    return agree(y.now(), want, 1.01, 0);  // a step where the quotient is near a half
  };
  return j;
});

// --- router: softmax over E experts in G groups; the best KG groups by their largest, then top K; backward
struct RouterCfg {
  int BT = 32, E = 160, G = 8, KG = 3, K = 8;
};
auto route = kernel("user_route", [](const RouterCfg& c, Tensor<const bfloat16, 2> logits, Tensor<int, 2> index,
                                     Tensor<float, 2> weight, Tensor<float, 1> lse, Ptr<int> counts, F32 factor) {
               auto t = program_id(0) * c.BT;
               auto x = cast(logits.load({t, 0}, {c.BT, c.E}), f32);
               auto top = max(x, axis(1));
               auto ex = exp(x - top), total = sum(ex, axis(1));
               auto p = ex / total;
               auto best = squeeze(max(reshape(p, {c.BT, c.G, c.E / c.G}), axis(2)), 2);
               auto [gv, gi] = topk(best, c.KG, axis(1));
               (void)gv;
               auto chosen = put(zeros({c.BT, c.G}, i32), gi, ones({c.BT, c.KG}, i32), 1);
               auto open = repeat(chosen, c.E / c.G, axis(1)) != 0;
               auto [w, i] = topk(where(open, p, -1.f), c.K, axis(1));
               index.store({t, 0}, i);
               weight.store({t, 0}, w / sum(w, axis(1)) * factor);
               lse.store({t}, squeeze(log(total) + top, 1));
               auto inside = broadcast_to((t + arange(0, c.BT) < logits.dim(0)).col(), {c.BT, c.K});
               atomic_add(counts + arange(0, c.E), histogram(ravel(i), c.E, {.mask = ravel(inside)}));
             }).grid([](const RouterCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BT)}; });
auto route_bwd =
    kernel("user_route_bwd", [](const RouterCfg& c, Tensor<const bfloat16, 2> logits, Tensor<const int, 2> index,
                                Tensor<const float, 1> lse, Tensor<const float, 1> share, Tensor<const float, 2> dW,
                                Tensor<bfloat16, 2> dX, F32 factor, F32 balance, F32 z_loss) {
      // share: of the tokens that went to each expert; balance and z_loss: gradients of these losses, over the tokens
      auto t = program_id(0) * c.BT;
      auto l = lse.load({t}, {c.BT}).col();
      auto p = exp(cast(logits.load({t, 0}, {c.BT, c.E}), f32) - l);
      auto i = index.load({t, 0}, {c.BT, c.K});
      auto w = take(p, i, 1), g = dW.load({t, 0}, {c.BT, c.K});
      auto total = sum(w, axis(1));
      // w_k = factor p_k / total
      auto dp = (g - sum(g * w, axis(1)) / total) * (factor / total);
      auto all = put(zeros({c.BT, c.E}, f32), i, dp, 1) + share.load({0}, {c.E}).row() * balance;
      auto dx = p * (all - sum(p * all, axis(1))) + p * l * (2.f * z_loss);
      dX.store({t, 0}, cast(dx, bf16));
    }).grid([](const RouterCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BT)}; });
Register r2("router_bwd", [](Env& e) {
  RouterCfg c;
  c.BT = e.field("BT", e.big ? 32 : 16);
  const int T = e.big ? 131072 : 53, E = c.E, K = c.K, GE = E / c.G;
  const float factor = 2.5f, balance = .01f, zl = .001f;
  auto x = random<bfloat16>(e, size_t(T) * E, -3, 3);
  auto dw = random<float>(e, size_t(T) * K);
  auto share = random<float>(e, E, 0, 1);
  auto index = constant<int>(e, size_t(T) * K, -1), counts = constant<int>(e, E, 0);
  auto weight = constant<float>(e, size_t(T) * K, NAN), lse = constant<float>(e, T, NAN);
  auto dx = constant<bfloat16>(e, size_t(T) * E, NAN);
  Job j;
  j.inTurn = true;
  j.add(route, c, x.view(T, E), index.view(T, K), weight.view(T, K), lse.view(T), counts.p, factor);
  j.add(route_bwd, c, x.view(T, E), index.view(T, K), lse.view(T), share.view(E), dw.view(T, K), dx.view(T, E), factor,
        balance, zl);
  j.check = [=]() -> std::string {
    std::vector<double> ww(size_t(T) * K), wx(size_t(T) * E), wc(E);
    const auto got = index.now();
    for (int t = 0; t < T; ++t) {
      const size_t r = size_t(t) * E;
      double total = 0, sw = 0, sg = 0, dot = 0;
      for (int i = 0; i < E; ++i) total += std::exp(x[r + i]);
      std::vector<int> groups(c.G), experts;
      auto group_best = [&](int g) {
        double b = -INFINITY;
        for (int i = 0; i < GE; ++i) b = std::max(b, x[r + g * GE + i]);
        return b;
      };
      for (int g = 0; g < c.G; ++g) groups[g] = g;
      std::stable_sort(groups.begin(), groups.end(), [&](int a, int b) { return group_best(a) > group_best(b); });
      groups.resize(c.KG), std::sort(groups.begin(), groups.end());
      for (int g : groups)
        for (int i = 0; i < GE; ++i) experts.push_back(g * GE + i);
      std::stable_sort(experts.begin(), experts.end(), [&](int a, int b) { return x[r + a] > x[r + b]; });
      std::vector<double> p(E), d(E);
      for (int i = 0; i < E; ++i) p[i] = std::exp(x[r + i]) / total, d[i] = balance * share[i];
      for (int k = 0; k < K; ++k) {
        if (got[size_t(t) * K + k] != experts[k]) return "token " + std::to_string(t) + " went elsewhere";
        wc[experts[k]] += 1;
        sw += p[experts[k]], sg += p[experts[k]] * dw[size_t(t) * K + k];
      }
      for (int k = 0; k < K; ++k) {
        ww[size_t(t) * K + k] = factor * p[experts[k]] / sw;
        d[experts[k]] += (dw[size_t(t) * K + k] - sg / sw) * factor / sw;
      }
      for (int i = 0; i < E; ++i) dot += p[i] * d[i];
      for (int i = 0; i < E; ++i) wx[r + i] = p[i] * (d[i] - dot) + 2 * zl * std::log(total) * p[i];
    }
    auto a = agree(weight.now(), ww, 1e-4, 1e-4), b = agree(dx.now(), wx, 1e-4, 1e-2),
         n = agree(counts.now(), wc, .1, 0);
    return !a.empty() ? a : !b.empty() ? "dx: " + b : n;
  };
  return j;
});

// --- Titans: a memory of two layers per head, W2 silu(W1 k); one chunk: gradients, momentum, forgetting, new weights
struct TitansCfg {
  int T = 64, K = 64, F = 128, V = 64;
};
auto titans =
    kernel("user_titans", [](const TitansCfg& c, Tensor<const bfloat16, 3> Kx, Tensor<const bfloat16, 3> Vx,
                             Tensor<const bfloat16, 3> Qx, Tensor<const float, 2> lr, Tensor<const float, 1> momentum,
                             Tensor<const float, 1> forget, Tensor<const float, 3> W1, Tensor<const float, 3> W2,
                             Tensor<const float, 3> S1, Tensor<const float, 3> S2, Tensor<float, 3> W1n,
                             Tensor<float, 3> W2n, Tensor<float, 3> S1n, Tensor<float, 3> S2n, Tensor<bfloat16, 3> Y) {
      auto h = program_id(0);
      auto k = Kx.load({h, 0, 0}, {c.T, c.K}), v = Vx.load({h, 0, 0}, {c.T, c.V});
      auto w1 = W1.load({h, 0, 0}, {c.K, c.F}), w2 = W2.load({h, 0, 0}, {c.F, c.V});
      auto b1 = cast(w1, bf16), b2 = cast(w2, bf16);
      auto z = dot(k, b1);
      auto s = sigmoid(z);
      auto a = cast(z * s, bf16);
      auto err = dot(a, b2) - cast(v, f32);
      auto g = cast(err * (lr.load({h, 0}, {c.T}).col() * 2.f), bf16);
      auto g2 = dot(trans(a), g);
      auto dz = cast(dot(g, trans(b2)) * (s * (1 + z * (1 - s))), bf16);
      auto g1 = dot(trans(k), dz);
      auto mo = momentum.load({h}), keep = 1 - forget.load({h});
      auto s1 = S1.load({h, 0, 0}, {c.K, c.F}) * mo - g1, s2 = S2.load({h, 0, 0}, {c.F, c.V}) * mo - g2;
      w1 = w1 * keep + s1, w2 = w2 * keep + s2;
      S1n.store({h, 0, 0}, expand_dims(s1, 0)), S2n.store({h, 0, 0}, expand_dims(s2, 0));
      W1n.store({h, 0, 0}, expand_dims(w1, 0)), W2n.store({h, 0, 0}, expand_dims(w2, 0));
      auto y = dot(cast(silu(dot(Qx.load({h, 0, 0}, {c.T, c.K}), cast(w1, bf16))), bf16), cast(w2, bf16));
      Y.store({h, 0, 0}, expand_dims(cast(y, bf16), 0));
    }).grid([](const TitansCfg&, const auto& k, const auto&...) { return Grid{k.shape[0]}; });
Register r3("titans_step", [](Env& e) {
  TitansCfg c;
  const int H = e.big ? 2048 : 3, T = e.big ? 64 : 53, K = c.K, F = c.F, V = c.V;
  const size_t n1 = size_t(H) * K * F, n2 = size_t(H) * F * V;
  auto k = random<bfloat16>(e, size_t(H) * T * K), v = random<bfloat16>(e, size_t(H) * T * V),
       q = random<bfloat16>(e, size_t(H) * T * K);
  auto lr = random<float>(e, size_t(H) * T, 0, .02), mo = random<float>(e, H, .5, 1), fo = random<float>(e, H, 0, .1);
  auto w1 = random<float>(e, n1, -.25, .25), w2 = random<float>(e, n2, -.25, .25), s1 = random<float>(e, n1, -.1, .1),
       s2 = random<float>(e, n2, -.1, .1);
  auto w1n = constant<float>(e, n1, NAN), w2n = constant<float>(e, n2, NAN), s1n = constant<float>(e, n1, NAN),
       s2n = constant<float>(e, n2, NAN);
  auto y = constant<bfloat16>(e, size_t(H) * T * V, NAN);
  Job j;
  j.mbytes = 16e-6 * (n1 + n2);
  j.add(titans, c, k.view(H, T, K), v.view(H, T, V), q.view(H, T, K), lr.view(H, T), mo.view(H), fo.view(H),
        w1.view(H, K, F), w2.view(H, F, V), s1.view(H, K, F), s2.view(H, F, V), w1n.view(H, K, F), w2n.view(H, F, V),
        s1n.view(H, K, F), s2n.view(H, F, V), y.view(H, T, V));
  j.check = [=]() -> std::string {
    std::vector<double> a1(n1), a2(n2), b1(n1), b2(n2), wy(size_t(H) * T * V);
    for (int h = 0; h < H; ++h) {
      std::vector<double> g1(K * F), g2(F * V);
      const size_t o1 = size_t(h) * K * F, o2 = size_t(h) * F * V;
      for (int t = 0; t < T; ++t) {
        const size_t r = size_t(h) * T + t;
        std::vector<double> z(F), a(F), g(V);
        for (int f = 0; f < F; ++f) {
          for (int i = 0; i < K; ++i) z[f] += k[r * K + i] * w1[o1 + i * F + f];
          a[f] = z[f] / (1 + std::exp(-z[f]));
        }
        for (int i = 0; i < V; ++i) {
          for (int f = 0; f < F; ++f) g[i] += a[f] * w2[o2 + f * V + i];
          g[i] = 2 * lr[r] * (g[i] - v[r * V + i]);
        }
        for (int f = 0; f < F; ++f) {
          double da = 0;
          for (int i = 0; i < V; ++i) g2[f * V + i] += a[f] * g[i], da += g[i] * w2[o2 + f * V + i];
          const double s = 1 / (1 + std::exp(-z[f])), dz = da * s * (1 + z[f] * (1 - s));
          for (int i = 0; i < K; ++i) g1[i * F + f] += k[r * K + i] * dz;
        }
      }
      for (int i = 0; i < K * F; ++i)
        b1[o1 + i] = mo[h] * s1[o1 + i] - g1[i], a1[o1 + i] = (1 - fo[h]) * w1[o1 + i] + b1[o1 + i];
      for (int i = 0; i < F * V; ++i)
        b2[o2 + i] = mo[h] * s2[o2 + i] - g2[i], a2[o2 + i] = (1 - fo[h]) * w2[o2 + i] + b2[o2 + i];
      for (int t = 0; t < T; ++t) {
        const size_t r = size_t(h) * T + t;
        for (int f = 0; f < F; ++f) {
          double z = 0;
          for (int i = 0; i < K; ++i) z += q[r * K + i] * a1[o1 + i * F + f];
          z /= 1 + std::exp(-z);
          for (int i = 0; i < V; ++i) wy[r * V + i] += z * a2[o2 + f * V + i];
        }
      }
    }
    for (auto& t : {agree(w1n.now(), a1, 5e-3, 5e-3), agree(w2n.now(), a2, 5e-3, 5e-3),
                    agree(s1n.now(), b1, 5e-3, 5e-3), agree(s2n.now(), b2, 5e-3, 5e-3), agree(y.now(), wy, 2e-2, 2e-2)})
      if (!t.empty()) return t;
    return "";
  };
  return j;
});

// --- multi-scale deformable attention: value [B, S, H, 32], places [B, Q, H, L, P, 2], weights [B, Q, H, L, P]
struct MsdaCfg {
  int BQ = 32, H = 8, D = 32, L = 4, P = 4;
};
/// The four corners around a place on a level.
struct Corner {
  Tile at, inside, wx, wy, sx, sy;  // sx, sy: derivatives of the weight factors
};
std::vector<Corner> corners(const Tile& x, const Tile& y, const Tile& h, const Tile& w, const Tile& first) {
  auto fx = floor(x), fy = floor(y);
  auto ix = cast(fx, i32), iy = cast(fy, i32);
  auto ax = x - fx, ay = y - fy;
  std::vector<Corner> all;
  for (int dy = 0; dy < 2; ++dy)
    for (int dx = 0; dx < 2; ++dx) {
      auto cx = ix + dx, cy = iy + dy;
      auto inside = (cx >= 0) & (cx < w) & (cy >= 0) & (cy < h);
      all.push_back({first + cy * w + cx, inside, dx ? ax : 1.f - ax, dy ? ay : 1.f - ay,
                     full_like(ax, dx ? 1.f : -1.f), full_like(ay, dy ? 1.f : -1.f)});
    }
  return all;
}
auto msda_fwd = kernel("user_msda_fwd", [](const MsdaCfg& c, Tensor<const half, 4> value, Ptr<const int> levels,
                                           Ptr<const float> places, Ptr<const float> weights, Tensor<half, 4> out) {
                  auto q0 = program_id(0) * c.BQ, h = program_id(1), b = program_id(2);
                  auto Q = out.dim(1);
                  auto q = q0 + arange(0, c.BQ);
                  auto there = q < Q;
                  auto item = ((b * Q + q) * c.H + h) * (c.L * c.P);
                  auto base = value.ptr() + cast(b, i64) * value.stride(0) + h * c.D;
                  auto d = arange(0, c.D).row();
                  Tile acc = zeros({c.BQ, c.D}, f32);
                  for (auto lp : range(c.L * c.P)) {
                    auto l = lp / c.P;
                    auto hh = load(levels + l * 3), ww = load(levels + l * 3 + 1), first = load(levels + l * 3 + 2);
                    auto x = load(places + (item + lp) * 2, {.mask = there}) * cast(ww, f32) - .5f;
                    auto y = load(places + (item + lp) * 2 + 1, {.mask = there}) * cast(hh, f32) - .5f;
                    auto a = load(weights + (item + lp), {.mask = there});
                    for (auto& k : corners(x, y, hh, ww, first)) {
                      auto v = load(base + ((k.at * (c.H * c.D)).col() + d), {.mask = (k.inside & there).col()});
                      acc += cast(v, f32) * (a * k.wx * k.wy).col();
                    }
                  }
                  out.store({b, q0, only(h), 0}, cast(acc, f16));
                }).grid([](const MsdaCfg& c, const auto&, const auto&, const auto&, const auto&, const auto& o) {
  return Grid{cdiv(o.shape[1], c.BQ), o.shape[2], o.shape[0]};
});
auto msda_bwd =
    kernel("user_msda_bwd", [](const MsdaCfg& c, Tensor<const half, 4> value, Ptr<const int> levels,
                               Ptr<const float> places, Ptr<const float> weights, Tensor<const half, 4> dO,
                               Ptr<float> dvalue, Ptr<float> dplaces, Ptr<float> dweights) {
      auto q0 = program_id(0) * c.BQ, h = program_id(1), b = program_id(2);
      auto Q = dO.dim(1);
      auto q = q0 + arange(0, c.BQ);
      auto there = q < Q;
      auto item = ((b * Q + q) * c.H + h) * (c.L * c.P);
      auto image = cast(b, i64) * value.stride(0) + h * c.D;
      auto base = value.ptr() + image;
      auto dbase = dvalue + image;
      auto d = arange(0, c.D).row();
      auto g = cast(dO.load({b, q0, only(h), 0}, {c.BQ, c.D}), f32);
      for (auto lp : range(c.L * c.P)) {
        auto l = lp / c.P;
        auto hh = load(levels + l * 3), ww = load(levels + l * 3 + 1), first = load(levels + l * 3 + 2);
        auto x = load(places + (item + lp) * 2, {.mask = there}) * cast(ww, f32) - .5f;
        auto y = load(places + (item + lp) * 2 + 1, {.mask = there}) * cast(hh, f32) - .5f;
        auto a = load(weights + (item + lp), {.mask = there});
        Tile da = zeros({c.BQ}, f32), dx = zeros({c.BQ}, f32), dy = zeros({c.BQ}, f32);
        for (auto& k : corners(x, y, hh, ww, first)) {
          auto at = (k.at * (c.H * c.D)).col() + d;
          auto mask = (k.inside & there).col();
          auto v = cast(load(base + at, {.mask = mask}), f32);
          auto gv = squeeze(sum(g * v, axis(1)), 1);
          da += gv * k.wx * k.wy, dx += gv * k.sx * k.wy, dy += gv * k.wx * k.sy;
          atomic_add(dbase + at, g * (a * k.wx * k.wy).col(), {.mask = mask});
        }
        store(dweights + (item + lp), da, {.mask = there});
        store(dplaces + (item + lp) * 2, dx * a * cast(ww, f32), {.mask = there});
        store(dplaces + (item + lp) * 2 + 1, dy * a * cast(hh, f32), {.mask = there});
      }
    }).grid([](const MsdaCfg& c, const auto&, const auto&, const auto&, const auto&, const auto& o, const auto&...) {
      return Grid{cdiv(o.shape[1], c.BQ), o.shape[2], o.shape[0]};
    });
Register r4("msda", [](Env& e) {
  MsdaCfg c;
  c.BQ = e.field("BQ", e.big ? 32 : 16);
  const int B = e.big ? 1 : 2, H = c.H, D = c.D, LP = c.L * c.P;
  std::vector<int> sizes =
      e.big ? std::vector<int>{100, 134, 50, 67, 25, 34, 13, 17} : std::vector<int>{7, 9, 4, 5, 2, 3, 1, 2};
  std::vector<int> lv;
  int S = 0;
  for (int l = 0; l < 4; ++l) {
    lv.insert(lv.end(), {sizes[2 * l], sizes[2 * l + 1], S});
    S += sizes[2 * l] * sizes[2 * l + 1];
  }
  const int Q = e.big ? S : 21;
  auto levels = repeated(e, lv.size(), lv);
  auto value = random<half>(e, size_t(B) * S * H * D);
  auto places = random<float>(e, size_t(B) * Q * H * LP * 2, -.05, 1.05),
       weights = random<float>(e, size_t(B) * Q * H * LP, 0, .125);
  auto g = random<half>(e, size_t(B) * Q * H * D);
  auto out = constant<half>(e, size_t(B) * Q * H * D, NAN);
  auto dv = constant<float>(e, size_t(B) * S * H * D, 0), dp = constant<float>(e, places.n, NAN),
       dw = constant<float>(e, weights.n, NAN);
  Job j;
  j.add(msda_fwd, c, value.view(B, S, H, D), levels.p, places.p, weights.p, out.view(B, Q, H, D));
  j.add(msda_bwd, c, value.view(B, S, H, D), levels.p, places.p, weights.p, g.view(B, Q, H, D), dv.p, dp.p, dw.p);
  j.check = [=]() -> std::string {
    std::vector<double> wo(out.n), wv(dv.n), wp(dp.n), ww(dw.n);
    for (int b = 0; b < B; ++b)
      for (int q = 0; q < Q; ++q)
        for (int h = 0; h < H; ++h)
          for (int lp = 0; lp < LP; ++lp) {
            const int l = lp / c.P, hh = lv[3 * l], w = lv[3 * l + 1];
            const size_t it = ((size_t(b) * Q + q) * H + h) * LP + lp, o = ((size_t(b) * Q + q) * H + h) * D;
            const float x = float(places[2 * it]) * w - .5f, y = float(places[2 * it + 1]) * hh - .5f;
            const int ix = int(std::floor(x)), iy = int(std::floor(y));
            for (int k = 0; k < 4; ++k) {
              const int cx = ix + k % 2, cy = iy + k / 2;
              if (cx < 0 || cx >= w || cy < 0 || cy >= hh) continue;
              const double wx = k % 2 ? x - ix : 1 - (x - ix), wy = k / 2 ? y - iy : 1 - (y - iy);
              const size_t v = ((size_t(b) * S + lv[3 * l + 2] + cy * w + cx) * H + h) * D;
              for (int d = 0; d < D; ++d) {
                wo[o + d] += weights[it] * wx * wy * value[v + d];
                wv[v + d] += weights[it] * wx * wy * g[o + d];
                const double gv = g[o + d] * value[v + d];
                ww[it] += gv * wx * wy;
                wp[2 * it] += gv * (k % 2 ? 1 : -1) * wy * weights[it] * w;
                wp[2 * it + 1] += gv * (k / 2 ? 1 : -1) * wx * weights[it] * hh;
              }
            }
          }
    auto a = agree(out.now(), wo, 2e-3, 2e-3), d = agree(dv.now(), wv, 1e-3, 1e-3), p = agree(dp.now(), wp, 1e-3, 1e-3),
         w = agree(dw.now(), ww, 1e-3, 1e-3);
    return !a.empty() ? a : !d.empty() ? "dv: " + d : !p.empty() ? "dp: " + p : w;
  };
  return j;
});
}  // namespace beside_triton_samples
}  // namespace users
