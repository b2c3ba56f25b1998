// sparse_looks.cpp - attention that looks at some keys, and what comes back: three branches with gates, scores of an
// indexer, latent rows chosen token by token, tiles of video, keys wider than values, pages of 8 bits.
#include "tests/users/use.h"
namespace users {
namespace sparse_looks {

constexpr float kLog2e = 1.4426950408889634f;

// --- gradients where keys (192) are wider than values (128): of keys and values, and of queries
struct WideCfg {
  int BM = 64, BN = 64, DK = 192, DV = 128, stages = 2, warps = 8;
};
auto wide_dkdv = kernel("user_wide_dkdv", [](const WideCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                             Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> dO,
                                             Tensor<const float, 2> lse, Tensor<const float, 2> delta,
                                             Tensor<bfloat16, 3> dK, Tensor<bfloat16, 3> dV, F32 scale) {
                   num_warps(c.warps);
                   auto n = program_id(0) * c.BN, h = program_id(1);
                   auto k = K.load({h, n, 0}, {c.BN, c.DK}), v = V.load({h, n, 0}, {c.BN, c.DV});
                   Tile dk = zeros({c.BN, c.DK}, f32), dv = zeros({c.BN, c.DV}, f32);
                   auto at = (n + arange(0, c.BN)).col();
                   for (auto m : range(n / c.BM * c.BM, Q.dim(1), c.BM, {.stages = c.stages})) {
                     auto q = Q.load({h, m, 0}, {c.BM, c.DK}), g = dO.load({h, m, 0}, {c.BM, c.DV});
                     auto l = lse.load({h, m}, {c.BM}, {.pad = INFINITY}).row(), de = delta.load({h, m}, {c.BM}).row();
                     auto p = exp2(dot(k, trans(q)) * (scale * kLog2e) - l);
                     p = where((m + arange(0, c.BM)).row() >= at, p, 0.f);
                     dv = dot(cast(p, bf16), g, dv);
                     dk = dot(cast(p * (dot(v, trans(g)) - de), bf16), q, dk);
                   }
                   dK.store({h, n, 0}, cast(dk * scale, bf16)), dV.store({h, n, 0}, cast(dv, bf16));
                 }).grid([](const WideCfg& c, const auto&, const auto& k, const auto&...) {
  return Grid{cdiv(k.shape[1], c.BN), k.shape[0]};
});
auto wide_dq =
    kernel("user_wide_dq", [](const WideCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                              Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> dO, Tensor<const float, 2> lse,
                              Tensor<const float, 2> delta, Tensor<bfloat16, 3> dQ, F32 scale) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, h = program_id(1);
      auto q = Q.load({h, m, 0}, {c.BM, c.DK}), g = dO.load({h, m, 0}, {c.BM, c.DV});
      auto l = lse.load({h, m}, {c.BM}).col(), de = delta.load({h, m}, {c.BM}).col();
      Tile dq = zeros({c.BM, c.DK}, f32);
      auto at = (m + arange(0, c.BM)).col();
      for (auto n : range(0, m + c.BM, c.BN, {.stages = c.stages})) {
        auto k = K.load({h, n, 0}, {c.BN, c.DK}), v = V.load({h, n, 0}, {c.BN, c.DV});
        auto p = exp2(dot(q, trans(k)) * (scale * kLog2e) - l);
        p = where(at >= (n + arange(0, c.BN)).row(), p, 0.f);
        dq = dot(cast(p * (dot(g, trans(v)) - de), bf16), k, dq);
      }
      dQ.store({h, m, 0}, cast(dq * scale, bf16));
    }).grid([](const WideCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r1("wide_keys_bwd", [](Env& e) {
  WideCfg c, d;
  c.BM = 32, c.BN = 128, d.BM = 128;
  if (!e.big) c = d = {16, 16, 48, 32, 2, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  d.BM = e.field("QM", d.BM), d.BN = e.field("QN", d.BN), d.stages = e.field("Qstages", d.stages);
  d.warps = e.field("Qwarps", d.warps);
  const int H = e.big ? 64 : 2, S = e.big ? 4096 : 53, DK = c.DK, DV = c.DV;
  auto q = random<bfloat16>(e, size_t(H) * S * DK), k = random<bfloat16>(e, q.n);
  auto v = random<bfloat16>(e, size_t(H) * S * DV), g = random<bfloat16>(e, v.n);
  const float scale = 1 / std::sqrt(float(DK));
  std::vector<double> l(size_t(H) * S), de(l.size()), wq(e.big ? 0 : q.n), wk(wq.size()), wv(e.big ? 0 : v.n);
  if (!e.big)
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < S; ++i) {
        std::vector<double> p(i + 1), dp(i + 1);
        double sum = 0, all = 0;
        const size_t a = (size_t(h) * S + i);
        for (int j = 0; j <= i; ++j) {
          double x = 0;
          for (int d = 0; d < DK; ++d) x += q[a * DK + d] * k[(size_t(h) * S + j) * DK + d];
          for (int d = 0; d < DV; ++d) dp[j] += g[a * DV + d] * v[(size_t(h) * S + j) * DV + d];
          sum += p[j] = std::exp(x * scale);
        }
        for (int j = 0; j <= i; ++j) p[j] /= sum, all += p[j] * dp[j];
        l[a] = std::log2(sum), de[a] = all;
        for (int j = 0; j <= i; ++j) {
          const double ds = p[j] * (dp[j] - all) * scale;
          const size_t b = size_t(h) * S + j;
          for (int d = 0; d < DK; ++d) wq[a * DK + d] += ds * k[b * DK + d], wk[b * DK + d] += ds * q[a * DK + d];
          for (int d = 0; d < DV; ++d) wv[b * DV + d] += p[j] * g[a * DV + d];
        }
      }
  auto lse = filled<float>(e, l.size(), [&](size_t i) { return e.big ? 10.f : float(l[i]); });
  auto delta = filled<float>(e, l.size(), [&](size_t i) { return float(de[i]); });
  auto dq = constant<bfloat16>(e, q.n, NAN), dk = constant<bfloat16>(e, q.n, NAN), dv = constant<bfloat16>(e, v.n, NAN);
  Job j;
  j.gflop = 1e-9 * H * double(S) * S * (3 * DK + 2 * DV);
  j.add(wide_dkdv, c, q.view(H, S, DK), k.view(H, S, DK), v.view(H, S, DV), g.view(H, S, DV), lse.view(H, S),
        delta.view(H, S), dk.view(H, S, DK), dv.view(H, S, DV), scale);
  j.add(wide_dq, d, q.view(H, S, DK), k.view(H, S, DK), v.view(H, S, DV), g.view(H, S, DV), lse.view(H, S),
        delta.view(H, S), dq.view(H, S, DK), scale);
  j.check = [=] {
    if (auto w = agree(dv.now(), wv, 3e-2, 2e-2); !w.empty()) return "v: " + w;
    if (auto w = agree(dk.now(), wk, 3e-2, 2e-2); !w.empty()) return "k: " + w;
    return agree(dq.now(), wq, 3e-2, 2e-2);
  };
  return j;
});

// --- gradients of latent attention over rows that every token chose: those of the cache go to their rows by atomics
struct ChosenLatentCfg {
  int H = 32, DV = 512, DR = 64, BI = 32, stages = 2, warps = 8;
};
auto latent_bwd =
    kernel("user_latent_bwd", [](const ChosenLatentCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 2> KV,
                                 Tensor<const int32_t, 2> chosen, Tensor<const bfloat16, 3> dO,
                                 Tensor<const float, 2> lse, Tensor<const float, 2> delta, Tensor<bfloat16, 3> dQ,
                                 Tensor<float, 2> dKV, F32 scale) {
      // Q, dQ [T, heads, DV + DR], KV, dKV [S, DV + DR], chosen [T, n] (-1: none), dO [T, heads, DV], lse, delta [T,
      // heads]
      num_warps(c.warps);
      auto t = program_id(0), h = program_id(1) * c.H;
      auto q = Q.load({t, h, 0}, {c.H, c.DV}), qr = Q.load({t, h, c.DV}, {c.H, c.DR});
      auto g = dO.load({t, h, 0}, {c.H, c.DV});
      auto l = lse.load({t, h}, {c.H}).col(), de = delta.load({t, h}, {c.H}).col();
      Tile dq = zeros({c.H, c.DV}, f32), dqr = zeros({c.H, c.DR}, f32);
      const int D = c.DV + c.DR;
      for (auto i : range(0, chosen.dim(1), c.BI, {.stages = c.stages})) {
        auto rows = chosen.load({t, i}, {c.BI}, {.pad = -1});
        auto k = KV.gather(rows, 0, c.DV), kr = KV.gather(rows, c.DV, c.DR);
        auto s = dot(qr, trans(kr), dot(q, trans(k))) * (scale * kLog2e);
        auto p = where(rows.row() >= 0, exp2(s - l), 0.f);
        auto ds = cast(p * (dot(g, trans(k)) - de) * scale, bf16);
        dq = dot(ds, k, dq), dqr = dot(ds, kr, dqr);
        auto to = dKV.ptr() + (cast(rows, i64) * D).col();
        auto there = (rows >= 0).col();
        auto dk = dot(trans(ds), q, dot(trans(cast(p, bf16)), g));
        atomic_add(to + arange(0, c.DV).row(), dk, {.mask = there, .order = Order::relaxed});
        atomic_add(to + c.DV + arange(0, c.DR).row(), dot(trans(ds), qr), {.mask = there, .order = Order::relaxed});
      }
      dQ.store({t, h, 0}, cast(dq, bf16)), dQ.store({t, h, c.DV}, cast(dqr, bf16));
    }).grid([](const ChosenLatentCfg& c, const auto& q, const auto&...) {
      return Grid{q.shape[0], cdiv(q.shape[1], c.H)};
    });
Register r2("latent_bwd", [](Env& e) {
  ChosenLatentCfg c;
  if (!e.big) c = {16, 64, 16, 16, 2, 4};
  c.H = e.field("H", c.H), c.BI = e.field("BI", c.BI), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 1024 : 7, heads = e.big ? 64 : 32, n = e.big ? 2048 : 40, S = e.big ? 8192 : 50;
  const int D = c.DV + c.DR, DV = c.DV;
  auto q = random<bfloat16>(e, size_t(T) * heads * D), kv = random<bfloat16>(e, size_t(S) * D);
  auto g = random<bfloat16>(e, size_t(T) * heads * DV);
  auto chosen = integers<int32_t>(e, size_t(T) * n, e.big ? 0 : -5, S);
  for (auto& x : chosen.h) x = std::max(x, -1);
  auto ch = repeated(e, chosen.n, chosen.h);
  auto lse = random<float>(e, size_t(T) * heads, 4, 6), delta = random<float>(e, lse.n);
  auto dq = constant<bfloat16>(e, q.n, NAN);
  auto dkv = constant<float>(e, kv.n, 0);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * T * heads * double(n) * (3 * D + 2 * DV);
  j.add(latent_bwd, c, q.view(T, heads, D), kv.view(S, D), ch.view(T, n), g.view(T, heads, DV), lse.view(T, heads),
        delta.view(T, heads), dq.view(T, heads, D), dkv.view(S, D), scale);
  j.check = [=] {
    std::vector<double> wq(q.n), wk(kv.n);
    for (int r = 0; r < T * heads; ++r)
      for (int i = 0; i < n; ++i) {
        const int row = ch.h[size_t(r / heads) * n + i];
        if (row < 0) continue;
        double x = 0, y = 0;
        for (int d = 0; d < D; ++d) x += q[size_t(r) * D + d] * kv[size_t(row) * D + d];
        for (int d = 0; d < DV; ++d) y += g[size_t(r) * DV + d] * kv[size_t(row) * D + d];
        const double p = std::exp2(x * scale * kLog2e - lse[r]), ds = p * (y - delta[r]) * scale;
        for (int d = 0; d < D; ++d) {
          wq[size_t(r) * D + d] += ds * kv[size_t(row) * D + d];
          wk[size_t(row) * D + d] += ds * q[size_t(r) * D + d] + (d < DV ? p * g[size_t(r) * DV + d] : 0);
        }
      }
    if (auto w = agree(dkv.now(), wk, 3e-2, 2e-2); !w.empty()) return "kv: " + w;
    return agree(dq.now(), wq, 3e-2, 2e-2);
  };
  return j;
});

// --- native sparse attention in one pass: a token and a group of heads look at means of blocks, at the blocks they
// chose and at a window; three softmaxes, summed by gates
struct BranchesCfg {
  int G = 16, D = 128, block = 64, mean = 16, window = 512, BN = 64, stages = 2, warps = 4;
};
auto branches =
    kernel("user_branches", [](const BranchesCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 3> Kc,
                               Tensor<const bfloat16, 3> Vc, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                               Tensor<const int32_t, 3> chosen, Tensor<const float, 4> gates, Tensor<bfloat16, 4> O,
                               F32 scale) {
      // Q, O [KH, S, G, D]; Kc, Vc [KH, S / mean, D]: means of 2 mean keys from mean j on; K, V [KH, S, D]; chosen [KH,
      // S, n] (-1: none); gates [KH, S, G, 3]
      num_warps(c.warps);
      auto t = program_id(0), h = program_id(1);
      auto q = reshape(Q.load({h, t, 0, 0}, {c.G, c.D}), {c.G, c.D});
      Tile out = zeros({c.G, c.D}, f32);
      auto gate = [&](int i) { return gates.load({h, t, 0, i}, {c.G, 1}); };
      struct Soft {
        Tile acc, m, l;
      };
      auto start = [&] { return Soft{zeros({c.G, c.D}, f32), full({c.G, 1}, -1e30f, f32), zeros({c.G, 1}, f32)}; };
      auto look = [&](Soft& s, const Tile& k, const Tile& v, const Tile& seen) {
        auto x = where(seen.row(), dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
        auto next = max(s.m, max(x, axis(1)));
        auto p = exp2(x - next), shrink = exp2(s.m - next);
        s.l = s.l * shrink + sum(p, axis(1)), s.acc = dot(cast(p, bf16), v, s.acc * shrink), s.m = next;
      };
      auto finish = [&](const Soft& s, int i) { out = out + s.acc * (gate(i) / max(s.l, 1e-20f)); };
      auto at = arange(0, c.BN);
      Soft far = start();
      auto means = max((t + 1 - c.mean) / c.mean, 0);  // those that end at t or before
      for (auto n : range(0, means, c.BN, {.stages = c.stages}))
        look(far, Kc.load({h, n, 0}, {c.BN, c.D}), Vc.load({h, n, 0}, {c.BN, c.D}), n + at < means);
      finish(far, 0);
      Soft some = start();
      for (auto i : range(0, chosen.dim(2), 1, {.stages = c.stages})) {
        auto b = chosen.load({h, t, i});
        auto n = where(b < 0, 1 << 28, b * c.block);
        look(some, K.load({h, n, 0}, {c.block, c.D}), V.load({h, n, 0}, {c.block, c.D}), n + arange(0, c.block) <= t);
      }
      finish(some, 1);
      Soft near = start();
      auto first = max(t - c.window + 1, 0);
      for (auto n : range(first, t + 1, c.BN, {.stages = c.stages}))
        look(near, K.load({h, n, 0}, {c.BN, c.D}), V.load({h, n, 0}, {c.BN, c.D}), n + at <= t);
      finish(near, 2);
      O.store({h, t, 0, 0}, cast(out, bf16));
    }).grid([](const BranchesCfg&, const auto& q, const auto&...) {
      return Grid{q.shape[1], q.shape[0]};
    });
Register r3("branches", [](Env& e) {
  BranchesCfg c;
  if (!e.big) c = {8, 32, 16, 8, 20, 16, 2, 1};
  c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int KH = e.big ? 4 : 2, S = e.big ? 8192 : 75, D = c.D, G = c.G, M = S / c.mean, picks = e.big ? 16 : 3;
  auto q = random<bfloat16>(e, size_t(KH) * S * G * D), k = random<bfloat16>(e, size_t(KH) * S * D),
       v = random<bfloat16>(e, k.n);
  auto kc = random<bfloat16>(e, size_t(KH) * M * D), vc = random<bfloat16>(e, kc.n);
  auto gates = random<float>(e, size_t(KH) * S * G * 3, 0, 1);
  auto chosen = filled<int32_t>(e, size_t(KH) * S * picks, [&](size_t i) {
    const int t = int(i / picks % S), own = t / c.block, p = int(i % picks);
    return p == 0 ? own : p > own ? -1 : own * (p - 1) / (picks - 1);
  });
  auto o = constant<bfloat16>(e, q.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * KH * S * G * D * (M / 2. + picks * c.block + c.window);
  j.add(branches, c, q.view(KH, S, G, D), kc.view(KH, M, D), vc.view(KH, M, D), k.view(KH, S, D), v.view(KH, S, D),
        chosen.view(KH, S, picks), gates.view(KH, S, G, 3), o.view(KH, S, G, D), scale);
  j.check = [=] {
    std::vector<double> want(q.n);
    for (int h = 0; h < KH; ++h)
      for (int t = 0; t < S; ++t)
        for (int r = 0; r < G; ++r) {
          const size_t at = (size_t(h) * S + t) * G + r;
          auto soft = [&](const Array<bfloat16>& K, const Array<bfloat16>& V, const std::vector<size_t>& rows, int i) {
            double sum = 0;
            std::vector<double> p;
            for (size_t n : rows) {
              double x = 0;
              for (int d = 0; d < D; ++d) x += q[at * D + d] * K[n * D + d];
              p.push_back(std::exp(x * scale)), sum += p.back();
            }
            for (size_t n = 0; n < rows.size(); ++n)
              for (int d = 0; d < D; ++d) want[at * D + d] += gates[at * 3 + i] * p[n] / sum * V[rows[n] * D + d];
          };
          std::vector<size_t> far, some, near;
          for (int n = 0; n < std::max((t + 1 - c.mean) / c.mean, 0); ++n) far.push_back(size_t(h) * M + n);
          for (int i = 0; i < picks; ++i) {
            const int b = chosen.h[(size_t(h) * S + t) * picks + i];
            for (int n = b * c.block; b >= 0 && n < (b + 1) * c.block && n <= t; ++n) some.push_back(size_t(h) * S + n);
          }
          for (int n = std::max(t - c.window + 1, 0); n <= t; ++n) near.push_back(size_t(h) * S + n);
          soft(kc, vc, far, 0), soft(k, v, some, 1), soft(k, v, near, 2);
        }
    return agree(o.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- gradients of a lightning indexer: scores are weighted sums of ReLUs over heads, their softmax over the chosen
// rows should be the target; those of keys go to their rows by atomics
struct IndexBackCfg {
  int H = 64, D = 128, BN = 64, stages = 2, warps = 8;
};
auto index_bwd =
    kernel("user_index_bwd", [](const IndexBackCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 2> K,
                                Tensor<const float, 2> W, Tensor<const int32_t, 2> chosen,
                                Tensor<const float, 2> target, Ptr<const float> lse, Tensor<bfloat16, 3> dQ,
                                Tensor<float, 2> dK, Tensor<float, 2> dW) {
      // Q, dQ [T, H, D], K, dK [S, D], W, dW [T, H], chosen, target [T, n], lse [T] (base e)
      num_warps(c.warps);
      auto t = program_id(0);
      auto q = Q.load({t, 0, 0}, {c.H, c.D});
      auto w = W.load({t, 0}, {c.H}).col();
      auto l = load(lse + t);
      Tile dq = zeros({c.H, c.D}, f32), dw = zeros({c.H, 1}, f32);
      for (auto i : range(0, chosen.dim(1), c.BN, {.stages = c.stages})) {
        auto rows = chosen.load({t, i}, {c.BN}, {.pad = -1});
        auto k = K.gather(rows, 0, c.D);
        auto r = max(dot(q, trans(k)), 0.f);
        auto score = sum(r * w, axis(0));
        auto d = where(rows.row() >= 0, exp(score - l) - target.load({t, i}, {c.BN}).row(), 0.f);
        dw += sum(r * d, axis(1));
        auto ds = cast(where(r > 0.f, d * w, 0.f), bf16);
        dq = dot(ds, k, dq);
        atomic_add(dK.ptr() + (rows * c.D).col() + arange(0, c.D).row(), dot(trans(ds), q),
                   {.mask = (rows >= 0).col(), .order = Order::relaxed});
      }
      dQ.store({t, 0, 0}, cast(dq, bf16)), dW.store({t, 0}, reshape(dw, {c.H}));
    }).grid([](const IndexBackCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r4("index_bwd", [](Env& e) {
  IndexBackCfg c;
  if (!e.big) c = {16, 32, 16, 2, 1};
  c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 4096 : 9, n = e.big ? 2048 : 37, S = e.big ? 16384 : 60, H = c.H, D = c.D;
  auto q = random<bfloat16>(e, size_t(T) * H * D), k = random<bfloat16>(e, size_t(S) * D);
  auto w = random<float>(e, size_t(T) * H, -.1, .1), target = random<float>(e, size_t(T) * n, 0, .1);
  auto lse = random<float>(e, T, 2, 3);
  auto chosen = integers<int32_t>(e, target.n, e.big ? 0 : -1, S);
  auto dq = constant<bfloat16>(e, q.n, NAN);
  auto dk = constant<float>(e, k.n, 0), dw = constant<float>(e, w.n, NAN);
  Job j;
  j.gflop = 6e-9 * T * H * double(n) * D;
  j.add(index_bwd, c, q.view(T, H, D), k.view(S, D), w.view(T, H), chosen.view(T, n), target.view(T, n), lse.p,
        dq.view(T, H, D), dk.view(S, D), dw.view(T, H));
  j.check = [=] {
    std::vector<double> wq(q.n), wk(k.n), ww(w.n);
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < n; ++i) {
        const int row = chosen.h[t * n + i];
        if (row < 0) continue;
        std::vector<double> r(H);
        double score = 0;
        for (int h = 0; h < H; ++h) {
          for (int d = 0; d < D; ++d) r[h] += q[(t * H + h) * D + d] * k[row * D + d];
          score += w[t * H + h] * std::max(r[h], 0.);
        }
        const double x = std::exp(score - lse[t]) - target[t * n + i];
        for (int h = 0; h < H; ++h)
          if (r[h] > 0) {
            ww[t * H + h] += x * r[h];
            for (int d = 0; d < D; ++d) {
              wq[(t * H + h) * D + d] += x * w[t * H + h] * k[row * D + d];
              wk[row * D + d] += x * w[t * H + h] * q[(t * H + h) * D + d];
            }
          }
      }
    if (auto s = agree(dw.now(), ww, 1e-3, 1e-3); !s.empty()) return "w: " + s;
    if (auto s = agree(dk.now(), wk, 2e-2, 2e-2); !s.empty()) return "k: " + s;
    return agree(dq.now(), wq, 2e-2, 2e-2);
  };
  return j;
});

// --- sliding tiles of video: a tile of 384 tokens looks at the 27 tiles around it (at the edge, the 27 nearest
// inside): three loops over neighbours and one over keys, what they carry goes through all four
struct VideoCfg {
  int BM = 128, BN = 128, D = 128, tile = 384, reach = 1, stages = 2, warps = 8;
};
auto video =
    kernel("user_video", [](const VideoCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                            Tensor<const bfloat16, 3> V, Tensor<bfloat16, 3> O, I32 nt, I32 nh, I32 nw, F32 scale) {
      // Q .. O [B H, tiles * tile, D], tiles = nt nh nw
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, bh = program_id(1);
      auto own = m / c.tile;
      auto first = [&](const Tile& at, const Tile& n) { return clamp(at - c.reach, 0, max(n - (2 * c.reach + 1), 0)); };
      auto t0 = first(own / (nh * nw), nt), h0 = first(own / nw % nh, nh), w0 = first(own % nw, nw);
      auto end = [&](const Tile& from, const Tile& n) { return min(from + (2 * c.reach + 1), n); };
      auto q = Q.load({bh, m, 0}, {c.BM, c.D});
      Tile acc = zeros({c.BM, c.D}, f32), most = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32);
      for (auto t : range(t0, end(t0, nt)))
        for (auto h : range(h0, end(h0, nh)))
          for (auto w : range(w0, end(w0, nw))) {
            auto base = ((t * nh + h) * nw + w) * c.tile;
            for (auto n : range(base, base + c.tile, c.BN, {.stages = c.stages})) {
              auto x = dot(q, trans(K.load({bh, n, 0}, {c.BN, c.D}))) * (scale * kLog2e);
              auto next = max(most, max(x, axis(1)));
              auto p = exp2(x - next), shrink = exp2(most - next);
              l = l * shrink + sum(p, axis(1)), most = next;
              acc = dot(cast(p, bf16), V.load({bh, n, 0}, {c.BN, c.D}), acc * shrink);
            }
          }
      O.store({bh, m, 0}, cast(acc / l, bf16));
    }).grid([](const VideoCfg& c, const auto& q, const auto&...) {
      return Grid{q.shape[1] / c.BM, q.shape[0]};
    });
Register r5("video", [](Env& e) {
  VideoCfg c;
  if (!e.big) c = {16, 16, 32, 32, 1, 2, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int nt = e.big ? 5 : 4, nh = e.big ? 6 : 3, nw = e.big ? 10 : 2, B = e.big ? 6 : 2, D = c.D;
  const int S = nt * nh * nw * c.tile;
  const size_t n = size_t(B) * S * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto o = constant<bfloat16>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * n * std::min(3, nt) * std::min(3, nh) * std::min(3, nw) * c.tile;
  j.add(video, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), o.view(B, S, D), nt, nh, nw, scale);
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < S; ++i) {
        const int own = i / c.tile;
        auto near = [](int a, int b, int n) {
          const int f = std::clamp(a - 1, 0, std::max(n - 3, 0));
          return b >= f && b < f + 3;
        };
        double sum = 0;
        std::vector<double> p(S);
        for (int s = 0; s < S; ++s) {
          const int it = s / c.tile;
          if (!near(own / (nh * nw), it / (nh * nw), nt) || !near(own / nw % nh, it / nw % nh, nh) ||
              !near(own % nw, it % nw, nw))
            continue;
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[(size_t(b) * S + i) * D + d] * k[(size_t(b) * S + s) * D + d];
          sum += p[s] = std::exp(x * scale);
        }
        for (int s = 0; s < S; ++s)
          for (int d = 0; d < D && p[s] > 0; ++d)
            want[(size_t(b) * S + i) * D + d] += p[s] / sum * v[(size_t(b) * S + s) * D + d];
      }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- decoding from pages of e4m3 in another library's layout: keys in pieces of 16 numbers side by side for the tokens
// of a page, values token by token within a number; a scale for every page and head
struct Pages8Cfg {
  int G = 8, D = 128, page = 16, BN = 64, part = 512, stages = 2, warps = 2;
};
auto pages8 =
    kernel("user_pages8", [](const Pages8Cfg& c, Tensor<const bfloat16, 3> Q, Ptr<const fp8_e4m3> K,
                             Ptr<const fp8_e4m3> V, Tensor<const float, 2> kScale, Tensor<const float, 2> vScale,
                             Tensor<const int32_t, 2> table, Ptr<const int32_t> lengths, Tensor<float, 4> O,
                             Tensor<float, 3> lse, F32 scale) {
      // Q [B, heads, D]; K [pages, KH, D / 16, page, 16], V [pages, KH, D, page]; scales [pages, KH]; O [parts, B,
      // heads, D], lse [parts, B, heads]
      num_warps(c.warps);
      auto b = program_id(0), kh = program_id(1), part = program_id(2);
      auto KH = num_programs(1);
      auto length = load(lengths + b), first = part * c.part;
      return_if(first >= length);
      auto q = Q.load({b, kh * c.G, 0}, {c.G, c.D});
      auto d = arange(0, c.D);
      Tile acc = zeros({c.G, c.D}, f32), m = full({c.G, 1}, -1e30f, f32), l = zeros({c.G, 1}, f32);
      for (auto n : range(first, min(first + c.part, length), c.BN, {.stages = c.stages})) {
        auto t = n + arange(0, c.BN);
        auto in = t < length, held = t / c.page * c.page < length;  // pages are read whole
        auto page = load(table.ptr() + cast(b, i64) * table.stride(0) + t / c.page, {.mask = held});
        auto at = cast(page, i64) * KH + kh;
        auto base = (at * (c.D * c.page)).col();
        auto slot = (t % c.page).col();
        auto k = load(K + base + (d / 16).row() * (c.page * 16) + slot * 16 + (d % 16).row(), {.mask = held.col()});
        auto v = load(V + base + d.row() * c.page + slot, {.mask = held.col()});
        auto ks = load(kScale.ptr() + at, {.mask = held}), vs = load(vScale.ptr() + at, {.mask = held});
        auto x = dot(q, trans(cast(k, bf16))) * (ks * (scale * kLog2e)).row();
        x = where(in.row(), x, -INFINITY);
        auto next = max(m, max(x, axis(1)));
        auto p = exp2(x - next), shrink = exp2(m - next);
        l = l * shrink + sum(p, axis(1)), m = next;
        acc = dot(cast(p * vs.row(), bf16), cast(v, bf16), acc * shrink);
      }
      O.store({part, b, kh * c.G, 0}, acc / l);
      lse.store({part, b, kh * c.G}, squeeze(m + log2(l), 1));
    }).grid([](const Pages8Cfg& c, const auto& q, auto, auto, const auto& ks, auto&&...) {
      return Grid{q.shape[0], ks.shape[1], 1};
    });
Register r6("pages8", [](Env& e) {
  Pages8Cfg c;
  if (!e.big) c = {4, 32, 16, 32, 64, 2, 1};
  c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  c.part = e.field("part", c.part);
  const int B = e.big ? 64 : 3, KH = e.big ? 8 : 2, H = KH * c.G, D = c.D, longest = e.big ? 8192 : 150;
  const int parts = cdiv(longest, c.part), most = cdiv(longest, c.page), pages = B * most + 3;
  auto q = random<bfloat16>(e, size_t(B) * H * D);
  auto k = random<fp8_e4m3>(e, size_t(pages) * KH * D * c.page), v = random<fp8_e4m3>(e, k.n);
  auto ks = random<float>(e, size_t(pages) * KH, .5, 2), vs = random<float>(e, ks.n, .5, 2);
  auto table = filled<int32_t>(e, size_t(B) * most, [&](size_t i) { return int32_t(i * 7 % pages); });
  auto lengths = filled<int32_t>(e, B, [&](size_t i) { return int32_t(e.big ? longest - i * 64 : longest - i * 61); });
  auto o = constant<float>(e, size_t(parts) * B * H * D, 0), lse = constant<float>(e, size_t(parts) * B * H, 0);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = e.big ? 2e-6 * B * KH * D * (longest - 2016.) : 0;
  auto sized = pages8;
  j.add(sized.grid([=](const Pages8Cfg&, auto&&...) {
    return Grid{B, KH, parts};
  }),
        c, q.view(B, H, D), k.p, v.p, ks.view(pages, KH), vs.view(pages, KH), table.view(B, most), lengths.p,
        o.view(parts, B, H, D), lse.view(parts, B, H), scale);
  j.check = [=] {
    std::vector<double> want(o.n), sums(lse.n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int part = 0; part * c.part < lengths.h[b]; ++part) {
          double sum = 0;
          const size_t at = (size_t(part) * B + b) * H + h;
          for (int t = part * c.part; t < std::min((part + 1) * c.part, lengths.h[b]); ++t) {
            const size_t p = size_t(table.h[b * most + t / c.page]) * KH + h / c.G;
            const int s = t % c.page;
            double x = 0;
            for (int d = 0; d < D; ++d)
              x += q[(b * H + h) * D + d] * k[p * D * c.page + (d / 16) * c.page * 16 + s * 16 + d % 16];
            x = std::exp(x * ks[p] * scale), sum += x;
            for (int d = 0; d < D; ++d) want[at * D + d] += x * v[p * D * c.page + d * c.page + s] * vs[p];
          }
          for (int d = 0; d < D; ++d) want[at * D + d] /= sum;
          sums[at] = std::log2(sum);
        }
    if (auto w = agree(lse.now(), sums, 1e-3, 1e-3); !w.empty()) return "sums: " + w;
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace sparse_looks
}  // namespace users
