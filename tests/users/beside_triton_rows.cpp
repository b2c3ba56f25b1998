// beside_triton_rows.cpp - rows of a layer that learns: hyper connections, a teacher's distribution, a gated norm
// going back, rope of queries and keys at once, attention inside of segments.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_rows {
constexpr float kLog2e = 1.4426950408889634f;

// --- manifold-constrained hyper connections: 24 numbers of a token from its four streams (a narrow product with a
// norm), sigmoids and a doubly stochastic 4 x 4 by Sinkhorn, then the streams mixed
struct MhcCfg {
  int BM = 64, BK = 128, splits = 8, warps = 4, stages = 3, BT = 64, MT = 4, BC = 256, mix_warps = 4;
};
auto mhc_maps = kernel("user_mhc_maps", [](const MhcCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W,
                                           Tensor<float, 3> P, Tensor<float, 2> S) {
                  // X [T, K], W [32, K] (24 rows count), P [splits, T, 32], S [splits, T]
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, part = program_id(1), K = X.dim(1);
                  auto share = cdiv(cdiv(K, c.BK), c.splits) * c.BK;
                  Tile acc = zeros({c.BM, 32}, f32), squares = zeros({c.BM, 1}, f32);
                  for (auto k : range(part * share, min(K, part * share + share), c.BK, {.stages = c.stages})) {
                    auto x = X.load({m, k}, {c.BM, c.BK});
                    acc = dot(x, trans(W.load({0, k}, {32, c.BK})), acc);
                    auto wide = cast(x, f32);
                    squares += sum(wide * wide, axis(1));
                  }
                  P.store({part, m, 0}, expand_dims(acc, 0));
                  S.store({part, m}, reshape(squares, {1, c.BM}));
                }).grid([](const MhcCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BM), c.splits};
});
auto mhc_sinkhorn =
    kernel("user_mhc_sinkhorn", [](const MhcCfg& c, Tensor<const float, 3> P, Tensor<const float, 2> S,
                                   Ptr<const float> bias, Tensor<float, 2> Pre, Tensor<float, 2> Post,
                                   Tensor<float, 3> Res, I32 K) {
      auto t = program_id(0) * c.BT;
      auto four = arange(0, 4), sixteen = reshape(arange(0, 16), {1, 4, 4});
      Tile pre = zeros({c.BT, 4}, f32), post = pre, res = zeros({c.BT, 4, 4}, f32), square = zeros({c.BT}, f32);
      for (int s = 0; s < c.splits; ++s) {
        pre += squeeze(P.load({s, t, 0}, {1, c.BT, 4}), 0);
        post += squeeze(P.load({s, t, 4}, {1, c.BT, 4}), 0);
        res += reshape(P.load({s, t, 8}, {1, c.BT, 16}), {c.BT, 4, 4});
        square += squeeze(S.load({s, t}, {1, c.BT}), 0);
      }
      auto r = rsqrt(square / cast(K, f32) + 1e-6f);
      Pre.store({t, 0}, sigmoid(pre * r.col() + load(bias + four).row()));
      Post.store({t, 0}, 2.f * sigmoid(post * r.col() + load(bias + 4 + four).row()));
      res = exp(res * reshape(r, {c.BT, 1, 1}) + load(bias + 8 + sixteen));
      for (auto i : range(0, 20)) {
        res = res / sum(res, axis(2));
        res = res / sum(res, axis(1));
      }
      Res.store({t, 0, 0}, res);
    }).grid([](const MhcCfg& c, const auto&, const auto&, auto, const auto& pre, const auto&...) {
      return Grid{cdiv(pre.shape[0], c.BT)};
    });
auto mhc_mix =
    kernel("user_mhc_mix",
           [](const MhcCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 2> Y, Tensor<const float, 2> Post,
              Tensor<const float, 3> Res, Tensor<bfloat16, 3> Out) {  // X, Out [T, 4, C], Y [T, C]
             num_warps(c.mix_warps);
             auto t = program_id(0) * c.MT, d = program_id(1) * c.BC;
             auto y = cast(Y.load({t, d}, {c.MT, c.BC}), f32);
             std::vector<Tile> x;
             for (int j = 0; j < 4; ++j) x.push_back(cast(squeeze(X.load({t, j, d}, {c.MT, 1, c.BC}), 1), f32));
             for (int i = 0; i < 4; ++i) {
               Tile sum = y * Post.load({t, i}, {c.MT, 1});
               for (int j = 0; j < 4; ++j) sum += x[j] * squeeze(Res.load({t, i, j}, {c.MT, 1, 1}), 2);
               Out.store({t, i, d}, expand_dims(cast(sum, bf16), 1));
             }
           })
        .grid([](const MhcCfg& c, const auto&, const auto& y, const auto&...) {
          return Grid{cdiv(y.shape[0], c.MT), cdiv(y.shape[1], c.BC)};
        });
Register r1("mhc", [](Env& e) {
  MhcCfg c;
  if (!e.big) c = {16, 32, 2, 4, 2, 16, 4, 32, 4};
  c.BM = e.field("BM", c.BM), c.BK = e.field("BK", c.BK), c.splits = e.field("splits", c.splits);
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages), c.BT = e.field("BT", c.BT);
  c.MT = e.field("MT", c.MT), c.BC = e.field("BC", c.BC), c.mix_warps = e.field("mix_warps", c.mix_warps);
  const int T = e.big ? 8192 : 37, C = e.big ? 2048 : 56, K = 4 * C;
  auto x = random<bfloat16>(e, size_t(T) * K), w = random<bfloat16>(e, size_t(32) * K, -.2, .2);
  auto y = random<bfloat16>(e, size_t(T) * C);
  auto bias = random<float>(e, 24);
  auto parts = constant<float>(e, size_t(c.splits) * T * 32, NAN),
       squares = constant<float>(e, size_t(c.splits) * T, NAN);
  auto pre = constant<float>(e, size_t(T) * 4, NAN), post = constant<float>(e, pre.n, NAN);
  auto res = constant<float>(e, size_t(T) * 16, NAN);
  auto out = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.add(mhc_maps, c, x.view(T, K), w.view(32, K), parts.view(c.splits, T, 32), squares.view(c.splits, T));
  j.add(mhc_sinkhorn, c, parts.view(c.splits, T, 32), squares.view(c.splits, T), bias.p, pre.view(T, 4),
        post.view(T, 4), res.view(T, 4, 4), K);
  j.add(mhc_mix, c, x.view(T, 4, C), y.view(T, C), post.view(T, 4), res.view(T, 4, 4), out.view(T, 4, C));
  j.check = [=] {
    std::vector<double> wp(pre.n), wr(res.n), wo(out.n);
    for (int t = 0; t < T; ++t) {
      double square = 0, p[4], r[16];
      for (int k = 0; k < K; ++k) square += x[size_t(t) * K + k] * x[size_t(t) * K + k];
      const double f = 1 / std::sqrt(square / K + 1e-6);
      for (int n = 0; n < 24; ++n) {
        double s = 0;
        for (int k = 0; k < K; ++k) s += x[size_t(t) * K + k] * w[size_t(n) * K + k];
        s = s * f + bias[n];
        if (n < 4) wp[t * 4 + n] = 1 / (1 + std::exp(-s));
        if (n >= 4 && n < 8) p[n - 4] = 2 / (1 + std::exp(-s));
        if (n >= 8) r[n - 8] = std::exp(s);
      }
      for (int i = 0; i < 20; ++i) {
        for (int a = 0; a < 4; ++a) {
          const double s = r[a * 4] + r[a * 4 + 1] + r[a * 4 + 2] + r[a * 4 + 3];
          for (int b = 0; b < 4; ++b) r[a * 4 + b] /= s;
        }
        for (int b = 0; b < 4; ++b) {
          const double s = r[b] + r[4 + b] + r[8 + b] + r[12 + b];
          for (int a = 0; a < 4; ++a) r[a * 4 + b] /= s;
        }
      }
      for (int i = 0; i < 16; ++i) wr[t * 16 + i] = r[i];
      for (int a = 0; a < 4; ++a)
        for (int d = 0; d < C; ++d) {
          double s = p[a] * y[size_t(t) * C + d];
          for (int b = 0; b < 4; ++b) s += r[a * 4 + b] * x[(size_t(t) * 4 + b) * C + d];
          wo[(size_t(t) * 4 + a) * C + d] = s;
        }
    }
    for (auto wrong :
         {agree(pre.now(), wp, 1e-3, 1e-3), agree(res.now(), wr, 1e-3, 1e-3), agree(out.now(), wo, 2e-2, 1e-2)})
      if (!wrong.empty()) return wrong;
    return std::string();
  };
  return j;
});

// --- distillation: KL of a teacher's distribution and a student's at a temperature, one pass over both rows for two
// maxima and three sums, one for the gradient, which replaces the student's logits
struct DistilCfg {
  int BLOCK = 4096, warps = 8, stages = 0;
};
auto distil_kl = kernel("user_distil_kl", [](const DistilCfg& c, Tensor<bfloat16, 2> S, Tensor<const bfloat16, 2> T,
                                             Ptr<float> loss, F32 warmth, F32 scale) {
                   num_warps(c.warps);
                   auto row = program_id(0), V = S.dim(1);
                   const float kNone = -1e30f;
                   Tile ms = full({c.BLOCK}, kNone, f32), ls = zeros({c.BLOCK}, f32), mt = ms, lt = ls, w = ls;
                   const float k2 = kLog2e;
                   for (auto j : range(0, V, c.BLOCK, {.stages = c.stages})) {
                     auto s = cast(S.load({row, j}, {c.BLOCK}, {.pad = -INFINITY}), f32) * (warmth * k2);
                     auto t = cast(T.load({row, j}, {c.BLOCK}, {.pad = -INFINITY}), f32) * (warmth * k2);
                     auto inside = j + arange(0, c.BLOCK) < V;
                     auto ms2 = max(ms, s), mt2 = max(mt, t);
                     ls = ls * exp2(ms - ms2) + exp2(s - ms2);
                     auto f = exp2(mt - mt2), p = exp2(t - mt2);
                     lt = lt * f + p;
                     w = w * f + where(inside, p * (t - s), 0.f);
                     ms = ms2, mt = mt2;
                   }
                   auto top_s = max(ms), top_t = max(mt);
                   auto all_s = sum(ls * exp2(ms - top_s)), f = exp2(mt - top_t), all_t = sum(lt * f);
                   auto lse_s = top_s + log2(all_s), lse_t = top_t + log2(all_t);
                   store(loss + row, (sum(w * f) / all_t - lse_t + lse_s) * (1.f / kLog2e));
                   for (auto j : range(0, V, c.BLOCK, {.stages = c.stages})) {
                     auto s = cast(S.load({row, j}, {c.BLOCK}), f32) * (warmth * k2);
                     auto t = cast(T.load({row, j}, {c.BLOCK}), f32) * (warmth * k2);
                     S.store({row, j}, cast((exp2(s - lse_s) - exp2(t - lse_t)) * scale, bf16));
                   }
                 }).grid([](const DistilCfg&, const auto& s, const auto&...) { return Grid{s.shape[0]}; });
Register r2("distil_kl", [](Env& e) {
  DistilCfg c;
  if (!e.big) c = {256, 4, 0};
  c.BLOCK = e.field("BLOCK", c.BLOCK), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int N = e.big ? 1024 : 5, V = e.big ? 128256 : 1003;
  auto s = random<bfloat16>(e, size_t(N) * V, -4, 4), t = random<bfloat16>(e, s.n, -4, 4);
  auto loss = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 1e-6 * s.n * 10;
  j.add(distil_kl, c, s.view(N, V), t.view(N, V), loss.p, .5f, 16.f);
  j.check = [=] {
    std::vector<double> wl(N), wg(s.n);
    for (int n = 0; n < N; ++n) {
      double a = 0, b = 0;
      for (int v = 0; v < V; ++v) a += std::exp(.5 * s[size_t(n) * V + v]), b += std::exp(.5 * t[size_t(n) * V + v]);
      for (int v = 0; v < V; ++v) {
        const double x = .5 * s[size_t(n) * V + v] - std::log(a), y = .5 * t[size_t(n) * V + v] - std::log(b);
        wl[n] += std::exp(y) * (y - x);
        wg[size_t(n) * V + v] = 16 * (std::exp(x) - std::exp(y));
      }
    }
    auto wrong = agree(loss.now(), wl, 1e-3, 1e-3);
    return wrong.empty() ? agree(s.now(), wg, 1e-3, 1e-2) : wrong;
  };
  return j;
});

// --- y = rms_norm(x) w silu(g), rows of 128, going back: programs that stay walk over blocks of rows and leave sums
// for w
struct NormGateCfg {
  int D = 128, BT = 32, programs = 528, warps = 4, BP = 32, stages = 0;
};
auto norm_gate_bwd =
    kernel("user_norm_gate_bwd", [](const NormGateCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> G,
                                    Tensor<const bfloat16, 2> DY, Ptr<const float> w, Ptr<const float> rstd,
                                    Tensor<bfloat16, 2> DX, Tensor<bfloat16, 2> DG, Tensor<float, 2> DW) {
      num_warps(c.warps);
      auto i = arange(0, c.D), R = X.dim(0), share = cdiv(cdiv(R, c.BT), c.programs) * c.BT;
      auto weight = load(w + i).row();
      Tile dw = zeros({1, c.D}, f32);
      auto from = program_id(0) * share;
      for (auto r : range(from, min(R, from + share), c.BT, {.stages = c.stages})) {
        auto x = cast(X.load({r, 0}, {c.BT, c.D}), f32), g = cast(G.load({r, 0}, {c.BT, c.D}), f32),
             dy = cast(DY.load({r, 0}, {c.BT, c.D}), f32);
        auto rows = r + arange(0, c.BT);
        auto f = load(rstd + rows, {.mask = rows < R}).col();
        auto xh = x * f, s = sigmoid(g);
        auto n = xh * weight;
        DG.store({r, 0}, cast(dy * n * s * (1.f + g * (1.f - s)), bf16));
        auto dn = dy * (g * s);
        dw += sum(dn * xh, axis(0));
        auto dx = dn * weight;
        auto mean = sum(dx * xh, axis(1)) * (1.f / c.D);
        DX.store({r, 0}, cast((dx - xh * mean) * f, bf16));
      }
      DW.store({program_id(0), 0}, squeeze(dw, 0));
    }).grid([](const NormGateCfg& c, auto...) { return Grid{c.programs}; });
auto norm_gate_dw = kernel("user_norm_gate_dw", [](const NormGateCfg& c, Tensor<const float, 2> DW, Ptr<float> dw) {
                      Tile acc = zeros({c.BP, 32}, f32);
                      auto d = program_id(0) * 32;
                      for (auto p : range(0, DW.dim(0), c.BP)) acc += DW.load({p, d}, {c.BP, 32});
                      store(dw + d + arange(0, 32), squeeze(sum(acc, axis(0)), 0));
                    }).grid([](const NormGateCfg& c, auto...) { return Grid{c.D / 32}; });
Register r3("norm_gate_bwd", [](Env& e) {
  NormGateCfg c;
  if (!e.big) c = {64, 8, 3, 4, 16, 0};
  c.BT = e.field("BT", c.BT), c.programs = e.field("programs", c.programs), c.warps = e.field("warps", c.warps);
  c.BP = e.field("BP", c.BP), c.stages = e.field("stages", c.stages);
  const int R = e.big ? 524288 : 77, D = c.D;
  const size_t n = size_t(R) * D;
  auto x = random<bfloat16>(e, n, -2, 2), g = random<bfloat16>(e, n, -2, 2), dy = random<bfloat16>(e, n);
  auto w = random<float>(e, D, .5, 1.5), rstd = random<float>(e, R, .5, 1.5);
  auto dx = constant<bfloat16>(e, n, NAN), dg = constant<bfloat16>(e, n, NAN);
  auto parts = constant<float>(e, size_t(c.programs) * D, NAN), dw = constant<float>(e, D, NAN);
  Job j;
  j.mbytes = 1e-6 * n * 10;
  j.add(norm_gate_bwd, c, x.view(R, D), g.view(R, D), dy.view(R, D), w.p, rstd.p, dx.view(R, D), dg.view(R, D),
        parts.view(c.programs, D));
  j.add(norm_gate_dw, c, parts.view(c.programs, D), dw.p);
  j.check = [=] {
    std::vector<double> wx(n), wg(n), ww(D);
    for (int r = 0; r < R; ++r) {
      double mean = 0;
      for (int pass = 0; pass < 2; ++pass)
        for (int d = 0; d < D; ++d) {
          const size_t i = size_t(r) * D + d;
          const double xh = x[i] * rstd[r], s = 1 / (1 + std::exp(-g[i])), dn = dy[i] * g[i] * s;
          if (!pass) {
            mean += dn * w[d] * xh / D, ww[d] += dn * xh;
            wg[i] = dy[i] * xh * w[d] * s * (1 + g[i] * (1 - s));
          } else
            wx[i] = (dn * w[d] - xh * mean) * rstd[r];
        }
    }
    for (auto wrong :
         {agree(dx.now(), wx, 1e-2, 1e-2), agree(dg.now(), wg, 1e-2, 1e-2), agree(dw.now(), ww, 1e-2, 1e-3)})
      if (!wrong.empty()) return wrong;
    return std::string();
  };
  return j;
});

// --- rope (Liger): all heads of queries and of keys of a token in one program, halves, in place
struct RopeCfg {
  int HQ = 32, HK = 8, D = 128, BT = 1, warps = 4;
};
auto rope_qk =
    kernel("user_rope_qk", [](const RopeCfg& c, Tensor<bfloat16, 3> Q, Tensor<bfloat16, 3> K,
                              Tensor<const bfloat16, 2> Cos, Tensor<const bfloat16, 2> Sin, I32 S) {
      // Q [B * S, HQ, D], K [B * S, HK, D], Cos, Sin [S, D]
      num_warps(c.warps);
      auto t = program_id(0) * c.BT;
      const int half = c.D / 2;
      auto co = cast(Cos.load({t % S, 0}, {c.BT, half}), f32), si = cast(Sin.load({t % S, 0}, {c.BT, half}), f32);
      co = expand_dims(co, 1), si = expand_dims(si, 1);
      auto turn = [&](auto& X, int heads) {
        auto a = cast(X.load({t, 0, 0}, {c.BT, heads, half}), f32);
        auto b = cast(X.load({t, 0, half}, {c.BT, heads, half}), f32);
        X.store({t, 0, 0}, cast(a * co - b * si, bf16));
        X.store({t, 0, half}, cast(b * co + a * si, bf16));
      };
      turn(Q, c.HQ);
      turn(K, c.HK);
    }).grid([](const RopeCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.BT)}; });
Register r4("rope_qk", [](Env& e) {
  RopeCfg c;
  if (!e.big) c = {6, 2, 32, 1, 4};
  c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 3, S = e.big ? 4096 : 7, D = c.D, HQ = c.HQ, HK = c.HK;
  if (!e.big) c.BT = 1;
  auto q = random<bfloat16>(e, size_t(B) * S * HQ * D), k = random<bfloat16>(e, size_t(B) * S * HK * D);
  auto angle = [&](size_t i) { return double(i / D) * std::pow(10000., -2. * double(i % (D / 2)) / D); };
  auto co = filled<bfloat16>(e, size_t(S) * D, [&](size_t i) { return bfloat16(float(std::cos(angle(i)))); });
  auto si = filled<bfloat16>(e, size_t(S) * D, [&](size_t i) { return bfloat16(float(std::sin(angle(i)))); });
  Job j;
  j.mbytes = 4e-6 * (q.n + k.n);
  j.add(rope_qk, c, q.view(B * S, HQ, D), k.view(B * S, HK, D), co.view(S, D), si.view(S, D), S);
  j.check = [=] {
    auto turned = [&](const auto& x, int H) {
      std::vector<double> want(x.n);
      for (size_t i = 0; i < x.n; ++i) {
        const size_t d = i % D, t = i / D / H % S, at = t * D + d % (D / 2);
        want[i] = d < size_t(D / 2) ? x[i] * co[at] - x[i + D / 2] * si[at] : x[i] * co[at] + x[i - D / 2] * si[at];
      }
      return agree(x.now(), want, 1e-2, 1e-2);
    };
    auto wrong = turned(q, HQ);
    return wrong.empty() ? turned(k, HK) : wrong;
  };
  return j;
});

// --- causal attention inside of segments (packed documents), grouped queries; a table says where a block's first
// segment starts
struct SegCfg {
  int D = 128, BM = 128, BN = 128, stages = 2, warps = 8;
};
auto seg_attention =
    kernel("user_seg_attention", [](const SegCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                    Tensor<const half, 3> V, Ptr<const int> segment, Ptr<const int> start,
                                    Tensor<half, 3> O, Tensor<float, 2> Lse, F32 scale) {
      // Q, O [HQ, T, D], K, V [HK, T, D], segment [T], start [T]: the first row of a row's segment
      num_warps(c.warps);
      auto T = Q.dim(1), h = program_id(1), kh = h / (Q.dim(0) / K.dim(0));
      auto m = (num_programs(0) - 1 - program_id(0)) * c.BM;
      auto rows = m + arange(0, c.BM);
      auto q = squeeze(Q.load({h, m, 0}, {1, c.BM, c.D}), 0);
      auto mine = load(segment + rows, {.mask = rows < T, .other = -1}).col();
      auto first = load(start + m) / c.BN * c.BN;
      Tile acc = zeros({c.BM, c.D}, f32), top = full({c.BM, 1}, -1e30f, f32), all = zeros({c.BM, 1}, f32);
      for (auto n : range(first, min(T, m + c.BM), c.BN, {.stages = c.stages})) {
        auto keys = n + arange(0, c.BN);
        auto k = squeeze(K.load({kh, n, 0}, {1, c.BN, c.D}), 0);
        auto v = squeeze(V.load({kh, n, 0}, {1, c.BN, c.D}), 0);
        auto theirs = load(segment + keys, {.mask = keys < T, .other = -2}).row();
        auto s = where((mine == theirs) & (rows.col() >= keys.row()), dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
        auto now = max(top, max(s, axis(1)));
        auto p = exp2(s - now), f = exp2(top - now);
        all = all * f + sum(p, axis(1));
        acc = dot(cast(p, f16), v, acc * f);
        top = now;
      }
      O.store({h, m, 0}, expand_dims(cast(acc / all, f16), 0));
      Lse.store({h, m}, reshape(top + log2(all), {1, c.BM}));
    }).grid([](const SegCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r5("seg_attention", [](Env& e) {
  SegCfg c;
  if (!e.big) c = {32, 16, 16, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 93, HQ = e.big ? 32 : 4, HK = e.big ? 8 : 2, D = c.D;
  auto q = random<half>(e, size_t(HQ) * T * D), k = random<half>(e, size_t(HK) * T * D), v = random<half>(e, k.n);
  // segments of 1, 2 and 3 times a length that divides nothing, in turn
  const int unit = e.big ? 1021 : 11;
  auto seg_of = [&](int t) {
    int s = 0, at = 0;
    while (at + unit * (s % 3 + 1) <= t) at += unit * (s % 3 + 1), ++s;
    return std::pair(s, at);
  };
  auto segment = filled<int>(e, T, [&](size_t t) { return seg_of(int(t)).first; });
  auto start = filled<int>(e, T, [&](size_t t) { return seg_of(int(t)).second; });
  auto o = constant<half>(e, q.n, NAN);
  auto lse = constant<float>(e, size_t(HQ) * T, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.add(seg_attention, c, q.view(HQ, T, D), k.view(HK, T, D), v.view(HK, T, D), segment.p, start.p, o.view(HQ, T, D),
        lse.view(HQ, T), scale);
  j.check = [=] {
    std::vector<double> want(q.n), wl(lse.n);
    for (int h = 0; h < HQ; ++h)
      for (int t = 0; t < T; ++t) {
        double total = 0;
        const size_t row = (size_t(h) * T + t) * D;
        for (int s = start.at(t); s <= t; ++s) {
          const size_t key = (size_t(h / (HQ / HK)) * T + s) * D;
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[row + d] * k[key + d];
          const double p = std::exp(x * scale);
          total += p;
          for (int d = 0; d < D; ++d) want[row + d] += p * v[key + d];
        }
        for (int d = 0; d < D; ++d) want[row + d] /= total;
        wl[size_t(h) * T + t] = std::log2(total);
      }
    auto wrong = agree(o.now(), want, 5e-3, 5e-3);
    return wrong.empty() ? agree(lse.now(), wl, 1e-3, 1e-3) : wrong;
  };
  return j;
});

}  // namespace beside_triton_rows
}  // namespace users
