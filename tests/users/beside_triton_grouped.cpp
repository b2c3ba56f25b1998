// beside_triton_grouped.cpp - grouped_bias_act, conv3x3_gn, pair_update, chunk_delta
#include "tests/users/use.h"
namespace users {
namespace beside_triton_grouped {

// --- experts: sorted slots, clamped SwiGLU of interleaved columns, then back with the weights of the choice
struct MoeCfg {
  int BM = 128, BN = 128, BK = 64, warps = 8;
};
auto moe_up =
    kernel("user_moe_up", [](const MoeCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 3> W,
                             Tensor<const bfloat16, 2> bias, Ptr<const int> expert, Ptr<const int> first,
                             Ptr<const int> offsets, Tensor<const int, 1> token, Tensor<bfloat16, 2> H, F32 limit) {
      if (c.warps) num_warps(c.warps);
      auto n = program_id(0) * c.BN, b = program_id(1);  // W [E, 2 I, K]: gate, up, gate, up
      auto e = load(expert + b), m = load(first + b), end = load(offsets + e + 1);
      auto slots = m + arange(0, c.BM);
      auto rows = where(slots < end, token.load({m}, {c.BM}), -1);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, X.dim(1), c.BK))
        acc = dot(X.gather(rows, k, c.BK), trans(W.load({e, n, k}, {c.BN, c.BK})), acc);
      acc += cast(bias.load({e, n}, {c.BN}), f32).row();
      auto [gate, up] = split(reshape(acc, {c.BM, c.BN / 2, 2}));
      gate = min(gate, limit), up = clamp(up, -limit, limit);
      auto h = gate * sigmoid(1.702f * gate) * (up + 1.f);
      make_view<bfloat16>(H.ptr(), {end, H.dim(1)}, {H.stride(0), 1}).store({m, n / 2}, cast(h, bf16));
    });
auto moe_down =
    kernel("user_moe_down", [](const MoeCfg& c, Tensor<const bfloat16, 2> H, Tensor<const bfloat16, 3> W,
                               Tensor<const bfloat16, 2> bias, Ptr<const int> expert, Ptr<const int> first,
                               Ptr<const int> offsets, Tensor<const int, 1> pair, Tensor<const float, 1> weight,
                               Tensor<bfloat16, 2> out) {
      if (c.warps) num_warps(c.warps);
      auto n = program_id(0) * c.BN, b = program_id(1);
      auto e = load(expert + b), m = load(first + b), end = load(offsets + e + 1);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, H.dim(1), c.BK))
        acc = dot(H.load({m, k}, {c.BM, c.BK}), trans(W.load({e, n, k}, {c.BN, c.BK})), acc);
      acc += cast(bias.load({e, n}, {c.BN}), f32).row();
      acc = acc * weight.load({m}, {c.BM}).col();
      auto slots = m + arange(0, c.BM);
      out.scatter(where(slots < end, pair.load({m}, {c.BM}), -1), n, cast(acc, bf16));
    });
Register r1("grouped_bias_act", [](Env& e) {
  const int T = e.big ? 4096 : 45, top = e.big ? 4 : 2, E = e.big ? 32 : 5, K = e.big ? 2048 : 72, I = e.big ? 1024 : 48;
  MoeCfg c{e.field("BM", e.big ? 128 : 32), e.field("BN", e.big ? 128 : 32), e.field("BK", e.big ? 64 : 32),
           e.field("warps", e.big ? 8 : 4)};
  const int P = T * top;
  std::vector<std::vector<int>> of(E);
  for (int t = 0; t < T; ++t)
    for (int i = 0; i < top; ++i) of[(t * 7 + i * 3 + t / 11) % E].push_back(t * top + i);
  std::vector<int> pairs, tokens, offsets{0}, expert, first;
  for (int x = 0; x < E; ++x) {
    for (size_t i = 0; i < of[x].size(); i += c.BM) expert.push_back(x), first.push_back(offsets[x] + int(i));
    for (int p : of[x]) pairs.push_back(p), tokens.push_back(p / top);
    offsets.push_back(int(pairs.size()));
  }
  auto x = random<bfloat16>(e, size_t(T) * K), w1 = random<bfloat16>(e, size_t(E) * 2 * I * K, -.3, .3),
       b1 = random<bfloat16>(e, size_t(E) * 2 * I), w2 = random<bfloat16>(e, size_t(E) * K * I, -.3, .3),
       b2 = random<bfloat16>(e, size_t(E) * K);
  auto weight = random<float>(e, P, 0, 1);
  auto h = constant<bfloat16>(e, size_t(P) * I, 0), out = constant<bfloat16>(e, size_t(P) * K, NAN);
  auto dp = repeated<int>(e, P, pairs), dt = repeated<int>(e, P, tokens), doff = repeated<int>(e, E + 1, offsets),
       de = repeated<int>(e, expert.size(), expert), df = repeated<int>(e, first.size(), first);
  Job j;
  j.inTurn = !e.big;
  j.gflop = 6e-9 * P * double(I) * K;
  const Grid g1{cdiv(2 * I, c.BN), int(expert.size())}, g2{cdiv(K, c.BN), int(expert.size())};
  j.add(moe_up.grid([g1](const auto&...) { return g1; }), c, x.view(T, K), w1.view(E, 2 * I, K), b1.view(E, 2 * I), de.p,
        df.p, doff.p, dt.view(P), h.view(P, I), 7.f);
  j.add(moe_down.grid([g2](const auto&...) { return g2; }), c, h.view(P, I), w2.view(E, K, I), b2.view(E, K), de.p, df.p,
        doff.p, dp.view(P), weight.view(P), out.view(P, K));
  j.check = [=] {
    std::vector<double> want(size_t(P) * K), hh(I);
    for (int x2 = 0; x2 < E; ++x2)
      for (int s = offsets[x2]; s < offsets[x2 + 1]; ++s) {
        for (int i = 0; i < I; ++i) {
          double y[2];
          for (int u = 0; u < 2; ++u) {
            const size_t r = size_t(x2) * 2 * I + 2 * i + u;
            y[u] = b1[r];
            for (int k = 0; k < K; ++k) y[u] += x[size_t(tokens[s]) * K + k] * w1[r * K + k];
          }
          const double g = std::min(y[0], 7.), u = std::clamp(y[1], -7., 7.);
          hh[i] = g / (1 + std::exp(-1.702 * g)) * (u + 1);
        }
        for (int k = 0; k < K; ++k) {
          double y = b2[size_t(x2) * K + k];
          for (int i = 0; i < I; ++i) y += hh[i] * w2[(size_t(x2) * K + k) * I + i];
          want[size_t(pairs[s]) * K + k] = y * weight[s];
        }
      }
    return agree(out.now(), want, 5e-2, 1e-2);
  };
  return j;
});

// --- 3x3 convolution of SiLU(GroupNorm(x)), statistics given, + bias + residual, all NHWC
struct ConvCfg {
  int BH = 2, BW = 64, BN = 64, BK = 64, G = 10, stages = 0, warps = 0;
};
auto conv3x3_gn =
    kernel("user_conv3x3_gn", [](const ConvCfg& c, Tensor<const half, 4> X, Tensor<const half, 2> W,
                                 Tensor<const float, 2> mean, Tensor<const float, 2> rstd, Tensor<const half, 1> gamma,
                                 Tensor<const half, 1> beta, Tensor<const half, 1> bias, Tensor<const half, 4> residual,
                                 Tensor<half, 4> out) {  // W [9 C, N]; mean, rstd [images, groups of c.G channels]
      if (c.warps) num_warps(c.warps);
      const int BM = c.BH * c.BW;
      auto n = program_id(0) * c.BN, b = program_id(2);
      auto across = cdiv(X.dim(2), c.BW);
      auto y = program_id(1) / across * c.BH, x = program_id(1) % across * c.BW;
      auto C = X.dim(3), steps = cdiv(C, c.BK);
      auto row = y + arange(0, BM) / c.BW, column = x + arange(0, BM) % c.BW;
      Tile acc = zeros({BM, c.BN}, f32);
      for (auto i : range(0, steps * 9, 1, {.stages = c.stages})) {
        auto tap = i / steps, k = i % steps * c.BK, dy = tap / 3 - 1, dx = tap % 3 - 1;
        auto a = cast(reshape(X.load({b, y + dy, x + dx, k}, {1, c.BH, c.BW, c.BK}), {BM, c.BK}), f32);
        auto channel = k + arange(0, c.BK);
        auto group = b * mean.dim(1) + channel / c.G;
        auto ok = channel < C;
        auto r = load(rstd.ptr() + group, {.mask = ok}) * cast(gamma.load({k}, {c.BK}), f32);
        auto shift = cast(beta.load({k}, {c.BK}), f32) - load(mean.ptr() + group, {.mask = ok}) * r;
        a = silu(a * r.row() + shift.row());
        auto inside = (row + dy >= 0) & (row + dy < X.dim(1)) & (column + dx >= 0) & (column + dx < X.dim(2));
        a = where(inside.col() & ok.row(), a, 0.f);
        acc = dot(cast(a, f16), W.load({tap * C + k, n}, {c.BK, c.BN}), acc);
      }
      auto z = acc + cast(bias.load({n}, {c.BN}), f32).row();
      auto old = reshape(residual.load({b, y, x, n}, {1, c.BH, c.BW, c.BN}), {BM, c.BN});
      out.store({b, y, x, n}, reshape(cast(z + cast(old, f32), f16), {1, c.BH, c.BW, c.BN}));
    }).grid([](const ConvCfg& c, const auto& x, const auto& w, const auto&...) {
      return Grid{cdiv(w.shape[1], c.BN), cdiv(x.shape[1], c.BH) * cdiv(x.shape[2], c.BW), x.shape[0]};
    });
Register r2("conv3x3_gn", [](Env& e) {
  const int B = e.big ? 8 : 2, H = e.big ? 64 : 7, W = e.big ? 64 : 19, C = e.big ? 320 : 40, N = e.big ? 320 : 24;
  ConvCfg c{e.field("BH", 2), e.field("BW", e.big ? 64 : 16), e.field("BN", e.big ? 64 : 32), e.field("BK", e.big ? 64 : 32),
            10, e.field("stages", 0), e.field("warps", 0)};
  const int G = C / c.G;
  auto x = random<half>(e, size_t(B) * H * W * C, -2, 2), w = random<half>(e, size_t(9) * C * N, -.2, .2),
       gamma = random<half>(e, C, .5, 1.5), beta = random<half>(e, C), bias = random<half>(e, N),
       res = random<half>(e, size_t(B) * H * W * N);
  auto mean = random<float>(e, B * G), rstd = random<float>(e, B * G, .5, 1.5);
  auto out = constant<half>(e, size_t(B) * H * W * N, NAN);
  Job j;
  j.gflop = 18e-9 * B * H * W * double(C) * N;
  j.add(conv3x3_gn, c, x.view(B, H, W, C), w.view(9 * C, N), mean.view(B, G), rstd.view(B, G), gamma.view(C), beta.view(C),
        bias.view(N), res.view(B, H, W, N), out.view(B, H, W, N));
  j.check = [=] {
    std::vector<double> a(size_t(B) * H * W * C), want(size_t(B) * H * W * N);
    for (size_t i = 0; i < a.size(); ++i) {
      const int k = int(i % C), b = int(i / (size_t(H) * W * C)), g = b * G + k / c.G;
      const double v = (x[i] - mean[g]) * rstd[g] * gamma[k] + beta[k];
      a[i] = v / (1 + std::exp(-v));
    }
    for (int p = 0; p < B * H * W; ++p)
      for (int n = 0; n < N; ++n) {
        const int X = p % W, Y = p / W % H, b = p / (W * H);
        double s = bias[n] + res[size_t(p) * N + n];
        for (int t = 0; t < 9; ++t) {
          const int yy = Y + t / 3 - 1, xx = X + t % 3 - 1;
          if (yy < 0 || yy >= H || xx < 0 || xx >= W) continue;
          for (int k = 0; k < C; ++k) s += a[((size_t(b) * H + yy) * W + xx) * C + k] * w[(size_t(t) * C + k) * N + n];
        }
        want[size_t(p) * N + n] = s;
      }
    return agree(out.now(), want, 1e-2, 5e-3);
  };
  return j;
});

// --- outer product mean: out[i, j] = W . sum_s a[s, i] (x) b[s, j] / (1e-3 + count[i, j]) + bias
struct PairCfg {
  int BI = 4, BJ = 4, BS = 64, c = 32, slice = 4, out = 128, stages = 0, warps = 0;
};
auto pair_update =
    kernel("user_pair_update", [](const PairCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                  Tensor<const float, 2> count, Tensor<const half, 2> W, Tensor<const float, 1> bias,
                                  Tensor<half, 3> out) {  // A, B [S, R c]; W [c c, out]; out [R, R, out]
      if (c.warps) num_warps(c.warps);
      auto i = program_id(1) * c.BI, j = program_id(0) * c.BJ;
      Tile acc = zeros({c.BI * c.c, c.BJ * c.c}, f32);
      for (auto s : range(0, A.dim(0), c.BS, {.stages = c.stages}))
        acc = dot(trans(A.load({s, i * c.c}, {c.BS, c.BI * c.c})), B.load({s, j * c.c}, {c.BS, c.BJ * c.c}), acc);
      auto inverse = 1.f / (1e-3f + count.load({i, j}, {c.BI, c.BJ}, {.pad = 1}));
      auto outer = cast(reshape(acc, {c.BI, c.c, c.BJ, c.c}) * reshape(inverse, {c.BI, 1, c.BJ, 1}), f16);
      Tile y = broadcast_to(bias.load({0}, {c.out}).row(), {c.BI * c.BJ, c.out});
      for (int k = 0; k < c.c; k += c.slice) {
        auto part = permute(extract(outer, {0, k, 0, 0}, {c.BI, c.slice, c.BJ, c.c}), {0, 2, 1, 3});
        y = dot(reshape(part, {c.BI * c.BJ, c.slice * c.c}), W.load({k * c.c, 0}, {c.slice * c.c, c.out}), y);
      }
      out.store({i, j, 0}, reshape(cast(y, f16), {c.BI, c.BJ, c.out}));
    }).grid([](const PairCfg& c, const auto&, const auto&, const auto& n, const auto&...) {
      return Grid{cdiv(n.shape[1], c.BJ), cdiv(n.shape[0], c.BI)};
    });
Register r3("pair_update", [](Env& e) {
  const int S = e.big ? 512 : 45, R = e.big ? 256 : 11, C = e.big ? 32 : 8, O = e.big ? 128 : 32;
  PairCfg c{e.field("BI", 4), e.field("BJ", 4), e.field("BS", e.big ? 64 : 16), C, e.field("slice", 4), O,
            e.field("stages", 0), e.field("warps", 0)};
  auto a = random<half>(e, size_t(S) * R * C), b = random<half>(e, size_t(S) * R * C),
       w = random<half>(e, size_t(C) * C * O);
  auto count = random<float>(e, size_t(R) * R, 1, S), bias = random<float>(e, O);
  auto out = constant<half>(e, size_t(R) * R * O, NAN);
  Job j;
  j.gflop = 2e-9 * R * R * C * C * (S + O);
  j.add(pair_update, c, a.view(S, R * C), b.view(S, R * C), count.view(R, R), w.view(C * C, O), bias.view(O), out.view(R, R, O));
  j.check = [=] {
    std::vector<double> want(size_t(R) * R * O), x(size_t(C) * C);
    for (int p = 0; p < R; ++p)
      for (int q = 0; q < R; ++q) {
        for (int u = 0; u < C; ++u)
          for (int v = 0; v < C; ++v) {
            double s = 0;
            for (int t = 0; t < S; ++t) s += a[(size_t(t) * R + p) * C + u] * b[(size_t(t) * R + q) * C + v];
            x[u * C + v] = s / (1e-3 + count[p * R + q]);
          }
        for (int o = 0; o < O; ++o) {
          double s = bias[o];
          for (int u = 0; u < C * C; ++u) s += x[u] * w[size_t(u) * O + o];
          want[(size_t(p) * R + q) * O + o] = s;
        }
      }
    return agree(out.now(), want, 2e-2, 5e-3);
  };
  return j;
});

// --- gated delta rule in chunks: WY representation, then the state over chunks
struct DeltaCfg {
  int BT = 64, K = 128, V = 128, BV = 64, stages = 0, warps = 0;
};
auto delta_wy =
    kernel("user_delta_wy", [](const DeltaCfg& c, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                               Tensor<const float, 2> beta, Tensor<const float, 2> G, Tensor<bfloat16, 3> Wo,
                               Tensor<bfloat16, 3> U, Tensor<float, 2> sums) {  // [H, T, ..]
      auto t = program_id(0) * c.BT, h = program_id(1);
      auto k = K.load({h, t, 0}, {c.BT, c.K}), v = V.load({h, t, 0}, {c.BT, c.V});
      auto b = beta.load({h, t}, {c.BT}).col();
      auto g = cumsum(G.load({h, t}, {c.BT}), axis(0));
      sums.store({h, t}, g);
      auto r = arange(0, c.BT).col(), s = arange(0, c.BT).row();
      auto kb = cast(cast(k, f32) * b, bf16);
      Tile a = where(r > s, dot(kb, trans(k)) * exp(min(g.col() - g.row(), 0.f)), 0.f);
      Tile x = where(r == s, 1.f, 0.f) - a;  // (I + a)^-1 = (I - a) (I + a^2) (I + a^4) ...
      for (int n = 2; n < c.BT; n *= 2) {
        a = dot(a, a, Prec::tf32x3);
        x = dot(x, a, x, Prec::tf32x3);
      }
      auto inv = cast(x, bf16);
      Wo.store({h, t, 0}, cast(dot(inv, cast(cast(k, f32) * (b * exp(g).col()), bf16)), bf16));
      U.store({h, t, 0}, cast(dot(inv, cast(cast(v, f32) * b, bf16)), bf16));
    }).grid([](const DeltaCfg& c, const auto& k, const auto&...) { return Grid{cdiv(k.shape[1], c.BT), k.shape[0]}; });
auto delta_state =
    kernel("user_delta_state", [](const DeltaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                  Tensor<const bfloat16, 3> Wi, Tensor<const bfloat16, 3> U, Tensor<const float, 2> sums,
                                  Tensor<bfloat16, 3> O, Tensor<float, 3> last, F32 scale) {
      if (c.warps) num_warps(c.warps);
      auto x = program_id(0) * c.BV, h = program_id(1);
      auto r = arange(0, c.BT).col(), s = arange(0, c.BT).row();
      Tile S = zeros({c.K, c.BV}, f32);
      for (auto t : range(0, Q.dim(1), c.BT, {.stages = c.stages})) {
        auto q = Q.load({h, t, 0}, {c.BT, c.K}), k = K.load({h, t, 0}, {c.BT, c.K});
        auto w = Wi.load({h, t, 0}, {c.BT, c.K}), u = U.load({h, t, x}, {c.BT, c.BV});
        auto in = t + arange(0, c.BT) < Q.dim(1);
        auto g = sums.load({h, t}, {c.BT});
        auto end = sums.load({h, min(t + c.BT, Q.dim(1)) - 1});
        auto state = cast(S, bf16);
        auto v = cast(cast(u, f32) - dot(w, state), bf16);
        auto inner = where(r >= s, dot(q, trans(k)) * exp(min(g.col() - g.row(), 0.f)), 0.f);
        auto o = dot(cast(inner, bf16), v, dot(q, state) * exp(g).col());
        O.store({h, t, x}, cast(o * scale, bf16));
        auto kd = cast(where(in.col(), cast(k, f32) * exp(end - g).col(), 0.f), bf16);
        S = dot(trans(kd), v, S * exp(end));
      }
      last.store({h, 0, x}, S);
    }).grid([](const DeltaCfg& c, const auto& q, const auto&...) { return Grid{c.V / c.BV, q.shape[0]}; });
Register r4("chunk_delta", [](Env& e) {
  const int H = e.big ? 64 : 3, T = e.big ? 4096 : 151, K = e.big ? 128 : 32, V = e.big ? 128 : 32;
  DeltaCfg c{64, K, V, e.field("BV", e.big ? 64 : 16), e.field("stages", 0), e.field("warps", 0)};
  const double kk = 1.7 / std::sqrt(double(K));
  auto q = random<bfloat16>(e, size_t(H) * T * K), k = random<bfloat16>(e, size_t(H) * T * K, -kk, kk),
       v = random<bfloat16>(e, size_t(H) * T * V);
  auto beta = random<float>(e, size_t(H) * T, 0, 1), g = random<float>(e, size_t(H) * T, -.2, 0);
  auto w = constant<bfloat16>(e, size_t(H) * T * K, 0), u = constant<bfloat16>(e, size_t(H) * T * V, 0),
       o = constant<bfloat16>(e, size_t(H) * T * V, NAN);
  auto sums = constant<float>(e, size_t(H) * T, 0), last = constant<float>(e, size_t(H) * K * V, NAN);
  const float scale = 1 / std::sqrt(float(K));
  Job j;
  j.inTurn = !e.big;
  j.add(delta_wy, c, k.view(H, T, K), v.view(H, T, V), beta.view(H, T), g.view(H, T), w.view(H, T, K), u.view(H, T, V), sums.view(H, T));
  j.add(delta_state, c, q.view(H, T, K), k.view(H, T, K), w.view(H, T, K), u.view(H, T, V), sums.view(H, T), o.view(H, T, V),
        last.view(H, K, V), scale);
  j.check = [=]() -> std::string {
    std::vector<double> want(size_t(H) * T * V), S(size_t(H) * K * V);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        const size_t r = size_t(h) * T + t;
        double* s = &S[size_t(h) * K * V];
        for (int i = 0; i < K * V; ++i) s[i] *= std::exp(g[r]);
        for (int x = 0; x < V; ++x) {
          double d = v[r * V + x];
          for (int i = 0; i < K; ++i) d -= s[i * V + x] * k[r * K + i];
          for (int i = 0; i < K; ++i) s[i * V + x] += beta[r] * k[r * K + i] * d;
          for (int i = 0; i < K; ++i) want[r * V + x] += s[i * V + x] * q[r * K + i] * scale;
        }
      }
    auto a = agree(o.now(), want, 2e-2, 2e-2), b = agree(last.now(), S, 2e-2, 2e-2);
    return a.empty() ? b : a;
  };
  return j;
});
}  // namespace beside_triton_grouped
}  // namespace users
