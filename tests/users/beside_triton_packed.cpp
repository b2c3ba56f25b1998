// beside_triton_packed.cpp - decoding from a paged f8 cache; int8 GEMM; cross entropy in place; group norm; conv over
// packed sequences
#include "tests/users/use.h"
namespace users {
namespace beside_triton_packed {

constexpr float kLog2e = 1.4426950408889634f;

// --- one new token a sequence over pages of e4m3 with a scale for every page and head; parts, then merged with sinks
struct DecCfg {
  int BN = 64, G = 8, BG = 16, D = 128, PAGE = 16, splits = 8, stages = 0, warps = 0;
};
auto fp8_decode =
    kernel("user_fp8_decode", [](const DecCfg& c, Tensor<const bfloat16, 4> Q, Ptr<const fp8_e4m3> Kc,
                                 Ptr<const fp8_e4m3> Vc, Tensor<const float, 2> kscale, Tensor<const float, 2> vscale,
                                 Tensor<const int, 2> table, Ptr<const int> length, Tensor<float, 5> part,
                                 Tensor<float, 4> lse, F32 scale) {
      // Q [B, Hkv, G, D]; Kc, Vc [pages, Hkv, PAGE, D]; scales [pages, Hkv]; part [B, Hkv, S, G, D]; lse [B, Hkv, S, G]
      if (c.warps) num_warps(c.warps);
      auto s = program_id(0), h = program_id(1), b = program_id(2);
      auto n = load(length + b);
      auto per = cdiv(cdiv(n, c.splits), c.BN) * c.BN;
      auto q = Q.load({b, h, 0, 0}, {c.BG, c.D});
      Tile m = full({c.BG, 1}, -INFINITY, f32), l = zeros({c.BG, 1}, f32), acc = zeros({c.BG, c.D}, f32);
      auto d = arange(0, c.D).row();
      for (auto i : range(s * per, min((s + 1) * per, n), c.BN, {.stages = c.stages})) {
        auto token = i + arange(0, c.BN);
        auto there = token < n;
        auto page = load(table.ptr() + (b * table.dim(1) + token / c.PAGE), {.mask = there});
        auto slot = cast(page, i64) * kscale.dim(1) + h;
        auto at = (slot * c.PAGE + token % c.PAGE).col() * c.D + d;
        auto k = load(Kc + at, {.mask = there.col()}), v = load(Vc + at, {.mask = there.col()});
        auto ks = load(kscale.ptr() + slot, {.mask = there}), vs = load(vscale.ptr() + slot, {.mask = there});
        auto x = dot(q, trans(cast(k, bf16))) * ks.row() * (scale * kLog2e);
        x = where(there.row(), x, -INFINITY);
        auto m2 = max(m, max(x, axis(1)));
        auto alpha = exp2(m - m2), p = exp2(x - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p * vs.row(), bf16), cast(v, bf16), acc * alpha);
        m = m2;
      }
      part.store({b, h, s, 0, 0}, where(l > 0, acc / l, 0.f));
      lse.store({b, h, s, 0}, squeeze(m + log2(l), 1));
    }).grid([](const DecCfg& c, const auto& q, const auto&...) {
      return Grid{c.splits, q.shape[1], q.shape[0]};
    });
auto fp8_decode_merge =
    kernel("user_fp8_decode_merge", [](const DecCfg& c, Tensor<const float, 5> part, Tensor<const float, 4> lse,
                                       Ptr<const float> sinks, Tensor<bfloat16, 4> O) {
      auto g = program_id(0), h = program_id(1), b = program_id(2);
      auto x = lse.load({b, h, 0, only(g)}, {c.splits});
      auto sink = load(sinks + (h * c.G + g)) * kLog2e;
      auto top = max(max(x), sink);
      auto w = exp2(x - top);
      auto all = part.load({b, h, 0, only(g), 0}, {c.splits, c.D});
      auto o = sum(all * w.col(), axis(0)) / (sum(w) + exp2(sink - top));
      O.store({b, h, g, 0}, cast(squeeze(o, 0), bf16));
    }).grid([](const DecCfg&, const auto&, const auto&, const auto&, const auto& o) {
      return Grid{o.shape[2], o.shape[1], o.shape[0]};
    });
Register r1("fp8_decode", [](Env& e) {
  const int B = e.big ? 32 : 3, H = e.big ? 8 : 2, G = e.big ? 8 : 5;
  const int longest = e.big ? 8192 : 203;
  DecCfg c;
  c.G = G, c.D = e.big ? 128 : 64;
  c.BN = e.field("BN", c.BN), c.splits = e.field("splits", e.big ? c.splits : 3);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int D = c.D, P = c.PAGE, S = c.splits, per = (longest + P - 1) / P, pages = B * per;
  std::vector<int> lens(B), tab(pages);
  for (int b = 0; b < B; ++b) lens[b] = b == 1 && !e.big ? 7 : longest - (b * 977) % (longest / 2);
  for (int i = 0; i < pages; ++i) tab[i] = (int64_t(i) * 7919 + 13) % pages;
  auto q = random<bfloat16>(e, size_t(B) * H * G * D, -2, 2);
  auto k = random<fp8_e4m3>(e, size_t(pages) * H * P * D, -8, 8),
       v = random<fp8_e4m3>(e, size_t(pages) * H * P * D, -8, 8);
  auto ks = random<float>(e, size_t(pages) * H, .05, .2), vs = random<float>(e, size_t(pages) * H, .05, .2);
  auto table = repeated<int>(e, tab.size(), tab), len = repeated<int>(e, B, lens);
  auto sinks = random<float>(e, H * G, -1, 3);
  auto part = constant<float>(e, size_t(B) * H * S * G * D, NAN), lse = constant<float>(e, size_t(B) * H * S * G, NAN);
  auto o = constant<bfloat16>(e, size_t(B) * H * G * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  for (int x : lens) j.mbytes += 2e-6 * x * H * D;
  j.add(fp8_decode, c, q.view(B, H, G, D), k.p, v.p, ks.view(pages, H), vs.view(pages, H), table.view(B, per), len.p,
        part.view(B, H, S, G, D), lse.view(B, H, S, G), scale);
  j.add(fp8_decode_merge, c, part.view(B, H, S, G, D), lse.view(B, H, S, G), sinks.p, o.view(B, H, G, D));
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * G * D);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int g = 0; g < G; ++g) {
          const size_t r = ((size_t(b) * H + h) * G + g) * D;
          double total = std::exp(sinks[h * G + g]);
          for (int n = 0; n < lens[b]; ++n) {
            const size_t at = size_t(tab[b * per + n / P]) * H + h, x = (at * P + n % P) * D;
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[r + d] * k[x + d];
            s = std::exp(s * scale * ks[at]), total += s;
            for (int d = 0; d < D; ++d) want[r + d] += s * v[x + d] * vs[at];
          }
          for (int d = 0; d < D; ++d) want[r + d] /= total;
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- int8 GEMM: relu(sa sw (A B' - zp colsum) + bias)^2
struct W8Cfg {
  int BM = 128, BN = 128, BK = 128, GM = 8, stages = 0, warps = 0;
};
auto w8a8 = kernel("user_w8a8", [](const W8Cfg& c, Tensor<const int8_t, 2> A, Tensor<const int8_t, 2> W,
                                   Ptr<const float> sa, Ptr<const int> zero, Ptr<const float> sw, Ptr<const int> colsum,
                                   Ptr<const bfloat16> bias, Tensor<bfloat16, 2> Y) {
              // A [M, K], a scale and a zero point a row; W [N, K], a scale a row
              if (c.warps) num_warps(c.warps);
              auto [i, j] = swizzle2d(program_id(1), program_id(0), num_programs(1), num_programs(0), c.GM);
              auto m = i * c.BM, n = j * c.BN;
              Tile acc = zeros({c.BM, c.BN}, i32);
              for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                acc = dot(A.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})), acc);
              auto rows = m + arange(0, c.BM), columns = n + arange(0, c.BN);
              auto in_rows = rows < A.dim(0), in_columns = columns < W.dim(0);
              auto z = load(zero + rows, {.mask = in_rows}).col();
              auto s = load(sa + rows, {.mask = in_rows}).col();
              auto t = load(sw + columns, {.mask = in_columns}).row();
              auto u = load(colsum + columns, {.mask = in_columns}).row();
              auto b = cast(load(bias + columns, {.mask = in_columns}), f32).row();
              auto y = max(cast(acc - z * u, f32) * s * t + b, 0.f);
              Y.store({m, n}, cast(y * y, bf16));
            }).grid([](const W8Cfg& c, const auto& a, const auto& w, const auto&...) {
  return Grid{cdiv(w.shape[0], c.BN), cdiv(a.shape[0], c.BM)};
});
Register r2("w8a8", [](Env& e) {
  const int M = e.big ? 4096 : 75, N = e.big ? 8192 : 90, K = e.big ? 4128 : 160;
  W8Cfg c;
  c.BM = e.field("BM", e.big ? c.BM : 64), c.BN = e.field("BN", e.big ? c.BN : 64),
  c.BK = e.field("BK", e.big ? c.BK : 64);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  auto a = integers<int8_t>(e, size_t(M) * K, -128, 128), w = integers<int8_t>(e, size_t(N) * K, -127, 128);
  auto sa = random<float>(e, M, 1e-3, 2e-3), sw = random<float>(e, N, 1e-3, 2e-3);
  auto zero = integers<int>(e, M, -20, 20);
  auto bias = random<bfloat16>(e, N);
  auto sums = filled<int>(e, N, [&](size_t n) {
    int s = 0;
    for (int k = 0; k < (e.big ? 0 : K); ++k) s += w.at(n * K + k);
    return s;
  });
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(w8a8, c, a.view(M, K), w.view(N, K), sa.p, zero.p, sw.p, sums.p, bias.p, y.view(M, N));
  j.check = [=] {
    std::vector<double> want(size_t(M) * N);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double s = 0;
        for (int k = 0; k < K; ++k) s += (double(a.at(size_t(m) * K + k)) - zero.at(m)) * w.at(size_t(n) * K + k);
        s = std::max(0., s * sa[m] * sw[n] + bias[n]);
        want[size_t(m) * N + n] = s * s;
      }
    return agree(y.now(), want, 1e-3, 8e-3);
  };
  return j;
});

// --- cross entropy of softcapped logits with label smoothing and z-loss; the gradient takes the logits' place
struct CeCfg {
  int BLOCK = 4096, warps = 8;
};
auto ce_softcap =
    kernel("user_ce_softcap", [](const CeCfg& c, Tensor<bfloat16, 2> X, Ptr<const int64_t> labels, Ptr<float> loss,
                                 F32 cap, F32 smooth, F32 zw, F32 gscale) {
      num_warps(c.warps);
      auto row = program_id(0);
      auto V = X.dim(1);
      auto label = load(labels + row);
      auto column = arange(0, c.BLOCK);
      for (auto _ : when(label < 0)) {  // ignored
        store(loss + row, 0.f);
        for (auto j : range(0, V, c.BLOCK)) X.store({row, j}, zeros({c.BLOCK}, bf16));
      }
      return_if(label < 0);
      Tile m = full({c.BLOCK}, -INFINITY, f32), l = zeros({c.BLOCK}, f32), all = zeros({c.BLOCK}, f32);
      for (auto j : range(0, V, c.BLOCK)) {
        auto inside = j + column < V;
        auto z = tanh(cast(X.load({row, j}, {c.BLOCK}), f32) / cap) * cap;
        all += where(inside, z, 0.f);
        auto x = where(inside, z, -INFINITY);
        auto m2 = max(m, x);
        l = l * where(m2 == -INFINITY, 0.f, exp2((m - m2) * kLog2e)) + where(inside, exp2((x - m2) * kLog2e), 0.f);
        m = m2;
      }
      auto top = max(m);
      auto lse = top + log(sum(l * exp2((m - top) * kLog2e)));
      auto zt = tanh(cast(X.load({row, label}), f32) / cap) * cap;
      auto mean = sum(all) / cast(V, f32);
      store(loss + row, (lse - zt) * (1.f - smooth) + (lse - mean) * smooth + zw * lse * lse);
      auto f = (1.f + 2.f * zw * lse), even = smooth / cast(V, f32);
      for (auto j : range(0, V, c.BLOCK)) {
        auto t = tanh(cast(X.load({row, j}, {c.BLOCK}), f32) / cap);
        auto g = exp2((t * cap - lse) * kLog2e) * f - even;
        g = g - where(cast(j + column, i64) == label, 1.f - smooth, 0.f);
        X.store({row, j}, cast(g * (1.f - t * t) * gscale, bf16));
      }
    }).grid([](const CeCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r3("ce_softcap", [](Env& e) {
  const int R = e.big ? 396 : 5, V = e.big ? 262144 : 9001;
  CeCfg c;
  c.BLOCK = e.field("BLOCK", c.BLOCK), c.warps = e.field("warps", c.warps);
  auto x = random<bfloat16>(e, size_t(R) * V, -40, 40);
  std::vector<int64_t> lab(R);
  for (int r = 0; r < R; ++r) lab[r] = r % 16 == 3 ? -100 : (int64_t(r) * 7919 + 77) % V;
  auto labels = repeated<int64_t>(e, R, lab);
  auto loss = constant<float>(e, R, NAN);
  const float cap = 30, smooth = .1f, zw = 1e-3f, gs = 64;
  Job j;
  j.mbytes = 6e-6 * R * V;
  j.add(ce_softcap, c, x.view(R, V), labels.p, loss.p, cap, smooth, zw, gs);
  j.check = [=]() -> std::string {
    std::vector<double> wl(R), wg(size_t(R) * V);
    for (int r = 0; r < R; ++r) {
      if (lab[r] < 0) continue;
      double total = 0, mean = 0;
      auto z = [&](int v) { return cap * std::tanh(x[size_t(r) * V + v] / cap); };
      for (int v = 0; v < V; ++v) total += std::exp(z(v)), mean += z(v) / V;
      const double lse = std::log(total);
      wl[r] = .9 * (lse - z(lab[r])) + .1 * (lse - mean) + zw * lse * lse;
      for (int v = 0; v < V; ++v) {
        const double t = z(v) / cap;
        wg[size_t(r) * V + v] =
            (std::exp(z(v) - lse) * (1 + 2 * zw * lse) - .1 / V - (v == lab[r] ? .9 : 0)) * (1 - t * t) * gs;
      }
    }
    auto a = agree(loss.now(), wl, 1e-3, 1e-3), b = agree(x.now(), wg, 1e-4, 1e-2);
    return !a.empty() ? "loss " + a : !b.empty() ? "gradient " + b : "";
  };
  return j;
});

// --- group norm with a scale and shift of every image and channel (a diffusion step's embedding), SiLU; NHWC
struct GnCfg {
  int BR = 16, ROWS = 128, C = 512, G = 32, warps = 0;
};
auto gn_stats =
    kernel("user_gn_stats", [](const GnCfg& c, Tensor<const half, 3> X, Tensor<float, 4> part) {
      // X [N, HW, C]; part [N, chunks, 2, G]
      if (c.warps) num_warps(c.warps);
      auto i = program_id(0), n = program_id(1);
      Tile s = zeros({c.BR, c.C}, f32), q = zeros({c.BR, c.C}, f32);
      for (auto r : range(i * c.ROWS, (i + 1) * c.ROWS, c.BR)) {
        auto x = cast(X.load({n, r, 0}, {c.BR, c.C}), f32);
        s += x, q += x * x;
      }
      auto groups = [&](const Tile& x) { return squeeze(sum(reshape(sum(x, axis(0)), {c.G, c.C / c.G}), axis(1)), 1); };
      part.store({n, i, 0, 0}, groups(s));
      part.store({n, i, 1, 0}, groups(q));
    }).grid([](const GnCfg& c, const auto& x, const auto&) {
      return Grid{cdiv(x.shape[1], c.ROWS), x.shape[0]};
    });
struct GnApplyCfg {
  int BR = 16, CH = 32, C = 512, G = 32, warps = 0;
};
auto gn_apply =
    kernel("user_gn_apply", [](const GnApplyCfg& c, Tensor<const half, 3> X, Tensor<const float, 4> part,
                               Ptr<const half> gamma, Ptr<const half> beta, Tensor<const half, 3> mod,
                               Tensor<half, 3> Y, F32 eps) {
      // mod [N, 2, C]: scale and shift
      if (c.warps) num_warps(c.warps);
      auto r = program_id(0) * c.BR, n = program_id(1);
      auto total = [&](int which) { return squeeze(sum(part.load({n, 0, only(which), 0}, {c.CH, c.G}), axis(0)), 0); };
      auto count = cast(X.dim(1), f32) * float(c.C / c.G);
      auto mean = total(0) / count;
      auto rstd = rsqrt(max(total(1) / count - mean * mean, 0.f) + eps);
      auto channel = arange(0, c.C);
      auto a = repeat(rstd, c.C / c.G, axis(0)) * cast(load(gamma + channel), f32);
      auto b = cast(load(beta + channel), f32) - repeat(mean, c.C / c.G, axis(0)) * a;
      auto scale = cast(mod.load({n, 0, 0}, {c.C}), f32) + 1.f;
      auto shift = cast(mod.load({n, 1, 0}, {c.C}), f32);
      auto x = cast(X.load({n, r, 0}, {c.BR, c.C}), f32);
      auto y = x * (a * scale).row() + (b * scale + shift).row();
      Y.store({n, r, 0}, cast(silu(y), f16));
    }).grid([](const GnApplyCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[1], c.BR), x.shape[0]};
    });
Register r4("gn_silu_nhwc", [](Env& e) {
  const int N = e.big ? 16 : 3, HW = e.big ? 4096 : 83, C = e.big ? 512 : 96, G = e.big ? 32 : 8;
  GnCfg c;
  c.BR = e.field("BR", c.BR), c.ROWS = e.field("ROWS", e.big ? c.ROWS : 32), c.C = C, c.G = G;
  c.warps = e.field("warps", c.warps);
  GnApplyCfg ca;
  const int chunks = (HW + c.ROWS - 1) / c.ROWS;
  ca.BR = e.field("AR", ca.BR), ca.CH = chunks, ca.C = C, ca.G = G, ca.warps = e.field("awarps", ca.warps);
  auto x = random<half>(e, size_t(N) * HW * C, -1, 3);
  auto gamma = random<half>(e, C, .5, 1.5), beta = random<half>(e, C), mod = random<half>(e, size_t(N) * 2 * C);
  auto part = constant<float>(e, size_t(N) * chunks * 2 * G, NAN);
  auto y = constant<half>(e, size_t(N) * HW * C, NAN);
  Job j;
  j.mbytes = 6e-6 * N * HW * C;
  j.add(gn_stats, c, x.view(N, HW, C), part.view(N, chunks, 2, G));
  j.add(gn_apply, ca, x.view(N, HW, C), part.view(N, chunks, 2, G), gamma.p, beta.p, mod.view(N, 2, C),
        y.view(N, HW, C), 1e-5f);
  j.check = [=] {
    std::vector<double> want(size_t(N) * HW * C);
    const int W = C / G;
    for (int n = 0; n < N; ++n)
      for (int g = 0; g < G; ++g) {
        double s = 0, q = 0;
        auto at = [&](int r, int i) { return (size_t(n) * HW + r) * C + g * W + i; };
        for (int r = 0; r < HW; ++r)
          for (int i = 0; i < W; ++i) s += x[at(r, i)];
        s /= HW * W;
        for (int r = 0; r < HW; ++r)
          for (int i = 0; i < W; ++i) q += (x[at(r, i)] - s) * (x[at(r, i)] - s);
        const double rs = 1 / std::sqrt(q / (HW * W) + 1e-5);
        for (int r = 0; r < HW; ++r)
          for (int i = 0; i < W; ++i) {
            const int ch = g * W + i;
            double v = (x[at(r, i)] - s) * rs * gamma[ch] + beta[ch];
            v = v * (1 + mod[size_t(n) * 2 * C + ch]) + mod[size_t(n) * 2 * C + C + ch];
            want[at(r, i)] = v / (1 + std::exp(-v));
          }
      }
    return agree(y.now(), want, 4e-3, 4e-3);
  };
  return j;
});

// --- depthwise causal convolution of width 4 over packed sequences, from states kept before; SiLU
struct ConvCfg {
  int BT = 64, BC = 128, W = 4, warps = 0;
};
auto conv_varlen = kernel("user_conv_varlen", [](const ConvCfg& c, Ptr<const bfloat16> X, Ptr<const bfloat16> weight,
                                                 Ptr<const bfloat16> bias, Ptr<const bfloat16> states,
                                                 Ptr<const int> cu, Ptr<const int> chunks, Ptr<bfloat16> Y, I32 C) {
  // X, Y [tokens, C]; weight [C, 4]; states [sequences, 3, C]; chunks: sequence, number
  if (c.warps) num_warps(c.warps);
  auto i = program_id(1);
  auto q = load(chunks + 2 * i), first = load(cu + q), last = load(cu + q + 1);
  auto t = (first + load(chunks + 2 * i + 1) * c.BT + arange(0, c.BT)).col();
  auto ch = (program_id(0) * c.BC + arange(0, c.BC)).row();
  auto in = ch < C;
  auto acc = broadcast_to(cast(load(bias + ch, {.mask = in}), f32), {c.BT, c.BC});
  for (int w = 0; w < c.W; ++w) {
    auto s = t - (c.W - 1 - w);
    auto x = load(X + (cast(s, i64) * C + ch), {.mask = (s >= first) & (s < last) & in});
    auto before = load(states + ((q * (c.W - 1) + (s - first) + (c.W - 1)) * C + ch), {.mask = (s < first) & in});
    auto k = cast(load(weight + (ch * c.W + w), {.mask = in}), f32);
    acc += cast(where(s < first, before, x), f32) * k;
  }
  store(Y + (cast(t, i64) * C + ch), cast(silu(acc), bf16), {.mask = (t < last) & in});
});
Register r5("conv_varlen", [](Env& e) {
  const int S = e.big ? 61 : 5, C = e.big ? 1536 : 150;
  ConvCfg c;
  c.BT = e.field("BT", e.big ? c.BT : 16), c.BC = e.field("BC", c.BC), c.warps = e.field("warps", c.warps);
  std::vector<int> cu{0}, ch;
  for (int s = 0; s < S; ++s) {
    const int n = e.big ? 200 + (s * 577) % 1700 : std::vector<int>{1, 37, 2, 0, 19}[s];
    for (int i = 0; i * c.BT < n; ++i) ch.push_back(s), ch.push_back(i);
    cu.push_back(cu.back() + n);
  }
  const int T = cu.back();
  auto x = random<bfloat16>(e, size_t(T) * C, -2, 2), w = random<bfloat16>(e, C * 4), b = random<bfloat16>(e, C),
       st = random<bfloat16>(e, size_t(S) * 3 * C, -2, 2);
  auto cus = repeated<int>(e, cu.size(), cu), chunks = repeated<int>(e, ch.size(), ch);
  auto y = constant<bfloat16>(e, size_t(T) * C, NAN);
  Job j;
  j.mbytes = 4e-6 * T * C;
  const int n = int(ch.size() / 2);
  j.add(conv_varlen.grid([n](const ConvCfg& c, auto, auto, auto, auto, auto, auto, auto, int C) {
    return Grid{cdiv(C, c.BC), n};
  }),
        c, x.p, w.p, b.p, st.p, cus.p, chunks.p, y.p, C);
  j.check = [=] {
    std::vector<double> want(size_t(T) * C);
    for (int s = 0; s < S; ++s)
      for (int t = cu[s]; t < cu[s + 1]; ++t)
        for (int k = 0; k < C; ++k) {
          double v = b[k];
          for (int i = 0; i < 4; ++i) {
            const int from = t - 3 + i;
            v += w[k * 4 + i] *
                 (from >= cu[s] ? x[size_t(from) * C + k] : st[(size_t(s) * 3 + from - cu[s] + 3) * C + k]);
          }
          want[size_t(t) * C + k] = v / (1 + std::exp(-v));
        }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});
}  // namespace beside_triton_packed
}  // namespace users
