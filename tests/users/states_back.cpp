// states_back.cpp - what comes back through recurrences: selective scans, chunks of the delta rule, states that a
// matrix moves.
#include "tests/users/use.h"
namespace users {
namespace states_back {

// --- gradients of a selective scan (Mamba): a program a channel, chunks from the last to the first, states by two
// scans of pairs, one in each direction; what is shared by channels is added up by atomics
struct ScanBackCfg {
  int T = 128, N = 16, warps = 4;
};
auto scan_bwd =
    kernel("user_scan_bwd", [](const ScanBackCfg& c, Tensor<const bfloat16, 3> U, Tensor<const bfloat16, 3> Dt,
                               Tensor<const float, 2> A, Tensor<const bfloat16, 3> B, Tensor<const bfloat16, 3> C,
                               Tensor<const float, 1> skip, Tensor<const float, 4> states, Tensor<const bfloat16, 3> dY,
                               Tensor<bfloat16, 3> dU, Tensor<bfloat16, 3> dDt, Tensor<float, 2> dA,
                               Tensor<float, 3> dB, Tensor<float, 3> dC, Tensor<float, 1> dSkip) {
      // U, Dt, dY, dU, dDt [B, D, L]; A, dA [D, N]; B, C, dB, dC [B, N, L]; states [B, D, chunks, N]: before each chunk
      num_warps(c.warps);
      auto b = program_id(1), d = program_id(0);
      auto a = reshape(A.load({d, 0}, {c.N}), {c.N, 1});
      auto kept = skip.load({d});
      auto L = U.dim(2);
      Tile g = zeros({c.N, 1}, f32), da = zeros({c.N, 1}, f32), ds = full({}, 0.f, f32);
      for (auto chunk : range(cdiv(L, c.T) - 1, -1, -1)) {
        auto t = chunk * c.T;
        auto row = [&](auto& x, const Tile& at) { return cast(x.load({b, d, at}, {1, c.T}), f32); };
        auto u = row(U, t), dt = row(Dt, t), after = row(Dt, t + 1), dy = row(dY, t);
        auto bt = cast(reshape(B.load({b, 0, t}, {1, c.N, c.T}), {c.N, c.T}), f32);
        auto ct = cast(reshape(C.load({b, 0, t}, {1, c.N, c.T}), {c.N, c.T}), f32);
        auto h0 = reshape(states.load({b, d, chunk, 0}, {c.N}), {c.N, 1});
        auto step = [](Tile a0, Tile b0, Tile a1, Tile b1) { return std::tuple(a0 * a1, b0 * a1 + b1); };
        auto in = dt * u * bt;
        auto [decay, h1] = scan({exp(dt * a), in}, axis(1), step);
        auto h = h1 + decay * h0;
        auto [back, g1] = scan({exp(after * a), dy * ct}, axis(1), step, {.reverse = true});
        auto dh = g1 + back * g;
        g = extract(dh, {0, 0}, {c.N, 1});
        auto moved = dh * (h - in);
        dU.store({b, d, t}, cast(kept * dy + dt * sum(dh * bt, axis(0)), bf16));
        dDt.store({b, d, t}, cast(sum(moved * a + dh * bt * u, axis(0)), bf16));
        dB.atomic_add({b, 0, t}, dh * dt * u);
        dC.atomic_add({b, 0, t}, dy * h);
        da += sum(moved * dt, axis(1));
        ds += sum(dy * u);
      }
      dA.atomic_add({d, 0}, reshape(da, {c.N}));
      atomic_add(dSkip.ptr() + d, ds, {.order = Order::relaxed});
    }).grid([](const ScanBackCfg&, const auto& u, const auto&...) {
      return Grid{u.shape[1], u.shape[0]};
    });
Register r1("scan_bwd", [](Env& e) {
  ScanBackCfg c;
  if (!e.big) c = {32, 8, 1};
  c.warps = e.field("warps", c.warps), c.T = e.field("T", c.T);
  const int B = e.big ? 4 : 2, L = e.big ? 4096 : 75, D = e.big ? 2048 : 5, N = c.N, chunks = cdiv(L, c.T);
  const size_t n = size_t(B) * D * L;
  auto u = random<bfloat16>(e, n), dt = random<bfloat16>(e, n, .05, .5), dy = random<bfloat16>(e, n);
  auto a = random<float>(e, D * N, -2, -.1), skip = random<float>(e, D);
  auto b = random<bfloat16>(e, size_t(B) * N * L), cc = random<bfloat16>(e, b.n);
  std::vector<double> h(e.big ? 0 : n * N);
  auto H = [&](int i, int d, int t, int k) -> double& { return h[((size_t(i) * D + d) * L + t) * N + k]; };
  if (!e.big)
    for (int i = 0; i < B; ++i)
      for (int d = 0; d < D; ++d)
        for (int t = 0; t < L; ++t)
          for (int k = 0; k < N; ++k) {
            const size_t at = (size_t(i) * D + d) * L + t;
            H(i, d, t, k) = (t ? H(i, d, t - 1, k) : 0) * std::exp(dt[at] * a[d * N + k]) +
                            dt[at] * u[at] * b[(size_t(i) * N + k) * L + t];
          }
  auto st = filled<float>(e, size_t(B) * D * chunks * N, [&](size_t i) {
    const int k = i % N, chunk = i / N % chunks;
    return e.big || !chunk ? 0.f : float(H(i / N / chunks / D, i / N / chunks % D, chunk * c.T - 1, k));
  });
  auto du = constant<bfloat16>(e, n, NAN), ddt = constant<bfloat16>(e, n, NAN);
  auto da = constant<float>(e, D * N, 0), db = constant<float>(e, b.n, 0), dc = constant<float>(e, b.n, 0),
       ds = constant<float>(e, D, 0);
  Job j;
  j.mbytes = 10e-6 * n;
  j.add(scan_bwd, c, u.view(B, D, L), dt.view(B, D, L), a.view(D, N), b.view(B, N, L), cc.view(B, N, L), skip.view(D),
        st.view(B, D, chunks, N), dy.view(B, D, L), du.view(B, D, L), ddt.view(B, D, L), da.view(D, N),
        db.view(B, N, L), dc.view(B, N, L), ds.view(D));
  j.check = [=]() -> std::string {
    std::vector<double> wu(n), wt(n), wa(D * N), wb(b.n), wc(b.n), ws(D);
    for (int i = 0; i < B; ++i)
      for (int d = 0; d < D; ++d) {
        std::vector<double> g(N);
        for (int t = L - 1; t >= 0; --t) {
          const size_t at = (size_t(i) * D + d) * L + t;
          wu[at] += skip[d] * dy[at], ws[d] += dy[at] * u[at];
          for (int k = 0; k < N; ++k) {
            const size_t bn = (size_t(i) * N + k) * L + t;
            const double decay = std::exp(dt[at] * a[d * N + k]);
            const double before = t ? h[(at - 1) * N + k] : 0;
            g[k] += cc[bn] * dy[at];
            wc[bn] += dy[at] * h[at * N + k], wb[bn] += g[k] * dt[at] * u[at];
            wu[at] += dt[at] * g[k] * b[bn];
            wt[at] += g[k] * (a[d * N + k] * decay * before + b[bn] * u[at]);
            wa[d * N + k] += g[k] * dt[at] * decay * before;
            g[k] *= decay;
          }
        }
      }
    if (auto w = agree(du.now(), wu, 2e-2, 1e-2); !w.empty()) return "u: " + w;
    if (auto w = agree(ddt.now(), wt, 2e-2, 1e-2); !w.empty()) return "dt: " + w;
    if (auto w = agree(da.now(), wa, 1e-3, 1e-3); !w.empty()) return "A: " + w;
    if (auto w = agree(db.now(), wb, 1e-3, 1e-3); !w.empty()) return "B: " + w;
    if (auto w = agree(dc.now(), wc, 1e-3, 1e-3); !w.empty()) return "C: " + w;
    return agree(ds.now(), ws, 1e-3, 1e-3);
  };
  return j;
});

// --- gradients through w = A (b e^g k), u = A (b v), A = (1 + strictly lower b k k' e^(g - g'))^-1, chunk by chunk
// (gated delta rule): products of products of 64 x 64
struct WyCfg {
  int C = 64, K = 128, V = 128, warps = 8;
};
auto wy_bwd =
    kernel("user_wy_bwd", [](const WyCfg& c, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                             Tensor<const float, 2> beta, Tensor<const float, 2> G, Tensor<const bfloat16, 3> A,
                             Tensor<const bfloat16, 3> dW, Tensor<const bfloat16, 3> dU, Tensor<bfloat16, 3> dK,
                             Tensor<bfloat16, 3> dV, Tensor<float, 2> dBeta, Tensor<float, 2> dG) {
      // K, dW, dK [B H, T, K], V, dU, dV [B H, T, V], beta, G (sums within chunks) [B H, T], A [B H, T, C]
      num_warps(c.warps);
      auto t = program_id(0) * c.C, h = program_id(1);
      auto k = K.load({h, t, 0}, {c.C, c.K});
      auto v = V.load({h, t, 0}, {c.C, c.V});
      auto dw = dW.load({h, t, 0}, {c.C, c.K}), du = dU.load({h, t, 0}, {c.C, c.V});
      auto a = A.load({h, t, 0}, {c.C, c.C});
      auto b = beta.load({h, t}, {c.C}), g = G.load({h, t}, {c.C});
      auto eg = exp(g);
      auto kf = cast(k, f32), vf = cast(v, f32);
      auto bk = kf * b.col();
      auto da = dot(dw, trans(cast(bk * eg.col(), bf16)));
      da = dot(du, trans(cast(vf * b.col(), bf16)), da);
      auto dkb = dot(trans(a), dw), dvb = dot(trans(a), du);
      Tile dk = dkb * (b * eg).col();
      auto through = squeeze(sum(dkb * kf, axis(1)), 1) * eg;
      Tile db = through + squeeze(sum(dvb * vf, axis(1)), 1), dg = through * b;
      dV.store({h, t, 0}, cast(dvb * b.col(), bf16));
      auto i = arange(0, c.C);
      auto lower = i.col() > i.row();
      da = where(lower, da, 0.f);
      da = dot(cast(da, bf16), trans(a));
      da = dot(trans(a), cast(da, bf16));
      auto dl = where(lower, -da * exp(g.col() - g.row()), 0.f);
      auto p = dl * dot(cast(bk, bf16), trans(k));
      auto m = cast(dl, bf16);
      auto own = dot(m, k);
      dk = dk + own * b.col();
      dk = dot(trans(m), cast(bk, bf16), dk);
      db = db + squeeze(sum(own * kf, axis(1)), 1);
      dg = dg + squeeze(sum(p, axis(1)), 1) - squeeze(sum(p, axis(0)), 0);
      dK.store({h, t, 0}, cast(dk, bf16));
      dBeta.store({h, t}, db), dG.store({h, t}, dg);
    }).grid([](const WyCfg& c, const auto& k, const auto&...) {
      return Grid{cdiv(k.shape[1], c.C), k.shape[0]};
    });
Register r2("wy_bwd", [](Env& e) {
  WyCfg c;
  if (!e.big) c = {16, 32, 16, 1};
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32 : 2, T = e.big ? 8192 : 48, C = c.C, DK = c.K, DV = c.V;
  auto k = random<bfloat16>(e, size_t(B) * T * DK, -.3, .3), v = random<bfloat16>(e, size_t(B) * T * DV);
  auto dw = random<bfloat16>(e, k.n), du = random<bfloat16>(e, v.n);
  auto beta = random<float>(e, size_t(B) * T, .2, 1);
  std::vector<double> gs(beta.n), inv(e.big ? 0 : size_t(B) * T * C);
  for (size_t i = 0; i < gs.size() && !e.big; ++i) gs[i] = (i % C ? gs[i - 1] : 0) - .2 * e.uniform();
  auto g = filled<float>(e, gs.size(), [&](size_t i) { return float(gs[i]); });
  for (int n = 0; n < (e.big ? 0 : B * T / C); ++n)  // forward substitution, row after row
    for (int i = 0; i < C; ++i)
      for (int j = 0; j < C; ++j) {
        double s = i == j;
        for (int m = 0; m < i; ++m) {
          double kk = 0;
          for (int d = 0; d < DK; ++d) kk += k[(size_t(n) * C + i) * DK + d] * k[(size_t(n) * C + m) * DK + d];
          s -= beta[n * C + i] * kk * std::exp(g[n * C + i] - g[n * C + m]) * inv[(size_t(n) * C + m) * C + j];
        }
        inv[(size_t(n) * C + i) * C + j] = s;
      }
  auto a = filled<bfloat16>(e, size_t(B) * T * C, [&](size_t i) { return bfloat16(e.big ? .1f : float(inv[i])); });
  auto dk = constant<bfloat16>(e, k.n, NAN), dv = constant<bfloat16>(e, v.n, NAN);
  auto db = constant<float>(e, beta.n, NAN), dg = constant<float>(e, beta.n, NAN);
  Job j;
  j.gflop = 2e-9 * B * T * C * (5. * DK + 2. * DV + 2. * C);
  j.add(wy_bwd, c, k.view(B, T, DK), v.view(B, T, DV), beta.view(B, T), g.view(B, T), a.view(B, T, C),
        dw.view(B, T, DK), du.view(B, T, DV), dk.view(B, T, DK), dv.view(B, T, DV), db.view(B, T), dg.view(B, T));
  j.check = [=]() -> std::string {
    std::vector<double> wk(k.n), wv(v.n), wb(beta.n), wg(beta.n);
    for (int n = 0; n < B * T / C; ++n) {
      const size_t r = size_t(n) * C;
      auto at = [&](int i, int m) { return a[(r + i) * C + m]; };
      std::vector<double> da(C * C), x(C * C), dl(C * C);
      for (int i = 0; i < C; ++i)
        for (int m = 0; m < C; ++m) {
          for (int d = 0; d < DK; ++d)
            da[i * C + m] += dw[(r + i) * DK + d] * k[(r + m) * DK + d] * beta[r + m] * std::exp(g[r + m]);
          for (int d = 0; d < DV; ++d) da[i * C + m] += du[(r + i) * DV + d] * v[(r + m) * DV + d] * beta[r + m];
          if (m >= i) da[i * C + m] = 0;
          for (int d = 0; d < DK; ++d) {  // A' dw at (m, d)
            const double z = at(i, m) * dw[(r + i) * DK + d], eg = std::exp(g[r + m]), kk = k[(r + m) * DK + d];
            wk[(r + m) * DK + d] += z * beta[r + m] * eg, wb[r + m] += z * kk * eg,
                wg[r + m] += z * kk * eg * beta[r + m];
          }
          for (int d = 0; d < DV; ++d) {
            const double z = at(i, m) * du[(r + i) * DV + d];
            wv[(r + m) * DV + d] += z * beta[r + m], wb[r + m] += z * v[(r + m) * DV + d];
          }
        }
      for (int i = 0; i < C; ++i)
        for (int m = 0; m < C; ++m)
          for (int q = 0; q < C; ++q) x[i * C + m] += da[i * C + q] * at(m, q);
      for (int i = 0; i < C; ++i)
        for (int m = 0; m < i; ++m) {
          double s = 0, kk = 0;
          for (int q = 0; q < C; ++q) s -= at(q, i) * x[q * C + m];
          s *= std::exp(g[r + i] - g[r + m]);
          for (int d = 0; d < DK; ++d) {
            const double ki = k[(r + i) * DK + d], km = k[(r + m) * DK + d];
            kk += ki * km, wk[(r + i) * DK + d] += s * beta[r + i] * km, wk[(r + m) * DK + d] += s * beta[r + i] * ki;
          }
          wb[r + i] += s * kk, wg[r + i] += s * kk * beta[r + i], wg[r + m] -= s * kk * beta[r + i];
        }
    }
    if (auto w = agree(dv.now(), wv, 5e-2, 2e-2); !w.empty()) return "v: " + w;
    if (auto w = agree(dk.now(), wk, 1e-1, 3e-2); !w.empty()) return "k: " + w;
    if (auto w = agree(db.now(), wb, 1e-1, 3e-2); !w.empty()) return "beta: " + w;
    return agree(dg.now(), wg, 1e-1, 3e-2);
  };
  return j;
});

// --- gradients of the states between chunks (gated delta rule), from the last chunk to the first: a program columns of
// the values, the state's gradient stays in registers
struct BetweenCfg {
  int C = 64, K = 128, BV = 64, stages = 2, warps = 8;
};
auto between_bwd =
    kernel("user_between_bwd", [](const BetweenCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                  Tensor<const bfloat16, 4> W, Tensor<const bfloat16, 4> dO,
                                  Tensor<const bfloat16, 4> dV, Tensor<const float, 3> G, Tensor<bfloat16, 5> dH,
                                  Tensor<bfloat16, 4> dV2, F32 scale) {
      // Q, K, W [B, T, H, K], dO, dV, dV2 [B, T, H, V], G [B, H, T], dH [B, chunks, H, K, V]
      num_warps(c.warps);
      auto v0 = program_id(0) * c.BV, h = program_id(1), b = program_id(2);
      auto T = Q.dim(1);
      Tile dh = zeros({c.K, c.BV}, f32);
      for (auto chunk : range(cdiv(T, c.C) - 1, -1, -1, {.stages = c.stages})) {
        auto t = chunk * c.C;
        auto rows = [&](auto& X, const Tile& column, int width) {
          return reshape(X.load({b, t, h, column}, {1, c.C, 1, width}), {c.C, width});
        };
        auto zero = full({}, 0, i32);
        auto q = rows(Q, zero, c.K), k = rows(K, zero, c.K), w = rows(W, zero, c.K);
        auto o = rows(dO, v0, c.BV), dv = rows(dV, v0, c.BV);
        auto g = G.load({b, h, t}, {c.C});
        auto last = G.load({b, h, min(t + c.C, T) - 1});
        dH.store({b, chunk, h, 0, v0}, reshape(cast(dh, bf16), {1, 1, 1, c.K, c.BV}));
        auto both = dot(k, cast(dh, bf16)) * exp(last - g).col() + cast(dv, f32);
        auto rounded = cast(both, bf16);
        dV2.store({b, t, h, v0}, reshape(rounded, {1, c.C, 1, c.BV}));
        auto scaled = cast(cast(q, f32) * (exp(g) * scale).col(), bf16);
        dh = dot(trans(scaled), o, dh * exp(last));
        dh = dh - dot(trans(w), rounded);
      }
    }).grid([](const BetweenCfg& c, const auto& q, const auto&, const auto&, const auto& o, const auto&...) {
      return Grid{cdiv(o.shape[3], c.BV), q.shape[2], q.shape[0]};
    });
Register r3("between_bwd", [](Env& e) {
  BetweenCfg c;
  if (!e.big) c = {16, 32, 16, 2, 1};
  c.BV = e.field("BV", c.BV), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 2 : 2, T = e.big ? 8192 : 48, H = e.big ? 32 : 3, D = c.K, V = e.big ? 128 : 32,
            chunks = cdiv(T, c.C);
  const size_t n = size_t(B) * T * H * D, m = size_t(B) * T * H * V;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n, -.2, .2), w = random<bfloat16>(e, n, -.2, .2);
  auto o = random<bfloat16>(e, m), dv = random<bfloat16>(e, m);
  std::vector<float> gs(size_t(B) * H * T);
  for (size_t i = 0; i < gs.size(); ++i) gs[i] = float((i % T % c.C ? gs[i - 1] : 0) - .1 * e.uniform());
  auto g = filled<float>(e, gs.size(), [&](size_t i) { return gs[i]; });
  auto dh = constant<bfloat16>(e, size_t(B) * chunks * H * D * V, NAN), dv2 = constant<bfloat16>(e, m, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 6e-9 * n * V;
  j.add(between_bwd, c, q.view(B, T, H, D), k.view(B, T, H, D), w.view(B, T, H, D), o.view(B, T, H, V),
        dv.view(B, T, H, V), g.view(B, H, T), dh.view(B, chunks, H, D, V), dv2.view(B, T, H, V), scale);
  j.check = [=]() -> std::string {
    std::vector<double> wh(dh.n), wv(m);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        std::vector<double> s(D * V);
        for (int chunk = chunks - 1; chunk >= 0; --chunk) {
          std::copy(s.begin(), s.end(), wh.begin() + ((size_t(b) * chunks + chunk) * H + h) * D * V);
          const float* gg = &g.h[(size_t(b) * H + h) * T];
          const double last = gg[chunk * c.C + c.C - 1];
          std::vector<double> before = s;
          for (double& x : s) x *= std::exp(last);
          for (int t = chunk * c.C; t < (chunk + 1) * c.C; ++t)
            for (int v = 0; v < V; ++v) {
              const size_t r = (size_t(b) * T + t) * H + h;
              double x = 0;
              for (int d = 0; d < D; ++d) x += k[r * D + d] * before[d * V + v];
              wv[r * V + v] = x = x * std::exp(last - gg[t]) + dv[r * V + v];
              for (int d = 0; d < D; ++d)
                s[d * V + v] += q[r * D + d] * std::exp(gg[t]) * scale * o[r * V + v] - w[r * D + d] * x;
            }
        }
      }
    if (auto x = agree(dh.now(), wh, 6e-2, 2e-2); !x.empty()) return "states: " + x;
    return agree(dv2.now(), wv, 6e-2, 2e-2);
  };
  return j;
});

// --- gradients of RWKV-7: the state of every token is found again going backwards, from what was kept every 16 tokens
struct Rwkv7BackCfg {
  int D = 64, every = 16, warps = 4;
};
auto rwkv7_bwd =
    kernel("user_rwkv7_bwd", [](const Rwkv7BackCfg& c, Tensor<const bfloat16, 4> R, Tensor<const bfloat16, 4> W,
                                Tensor<const bfloat16, 4> K, Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 4> A,
                                Tensor<const bfloat16, 4> Bt, Tensor<const bfloat16, 4> dY, Tensor<const float, 4> SA,
                                Tensor<const float, 5> kept, Tensor<bfloat16, 4> dR, Tensor<bfloat16, 4> dW,
                                Tensor<bfloat16, 4> dK, Tensor<bfloat16, 4> dV, Tensor<bfloat16, 4> dA,
                                Tensor<bfloat16, 4> dB) {
      // all [B, T, H, D]; W is log(-log(decay)); SA = S a of every token; kept [B, H, T / every, Dv, D]: the states
      // after tokens every - 1, 2 every - 1 ...
      num_warps(c.warps);
      auto h = program_id(0), b = program_id(1);
      Tile S = zeros({c.D, c.D}, f32), dS = zeros({c.D, c.D}, f32);
      for (auto part : range(R.dim(1) / c.every - 1, -1, -1)) {
        S = reshape(kept.load({b, h, part, 0, 0}, {1, 1, 1, c.D, c.D}), {c.D, c.D});
        for (auto i : range(c.every - 1, -1, -1, {.stages = 2})) {
          auto t = part * c.every + i;
          auto row = [&](auto& X) { return cast(X.load({b, t, h, 0}, {c.D}), f32).row(); };
          auto column = [&](auto& X) { return cast(X.load({b, t, h, 0}, {c.D}), f32).col(); };
          auto r = row(R), k = row(K), a = row(A), bt = row(Bt), raw = -exp(row(W)), w = exp(raw);
          auto v = column(V), dy = column(dY), sa = column(SA);
          auto put = [&](auto& X, const Tile& x) { X.store({b, t, h, 0}, cast(reshape(x, {c.D}), bf16)); };
          put(dR, sum(S * dy, axis(0)));
          dS += dy * r;
          put(dK, sum(dS * v, axis(0)));
          put(dV, sum(dS * k, axis(1)));
          put(dB, sum(dS * sa, axis(0)));
          auto dsa = sum(dS * bt, axis(1));
          S = (S - v * k - sa * bt) / w;
          put(dW, sum(dS * S, axis(0)) * w * raw);
          put(dA, sum(S * dsa, axis(0)));
          dS = dS * w + dsa * a;
        }
      }
    }).grid([](const Rwkv7BackCfg&, const auto& r, const auto&...) {
      return Grid{r.shape[2], r.shape[0]};
    });
Register r4("rwkv7_bwd", [](Env& e) {
  Rwkv7BackCfg c;
  if (!e.big) c = {16, 4, 1};
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 8 : 2, T = e.big ? 2048 : 12, H = e.big ? 32 : 3, D = c.D;
  const size_t n = size_t(B) * T * H * D;
  auto r = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n), y = random<bfloat16>(e, n);
  const double most = 1 / std::sqrt(double(D));
  auto a = random<bfloat16>(e, n, -most, most), bt = random<bfloat16>(e, n, -most, most);
  auto w = random<bfloat16>(e, n, -4, -1);
  std::vector<double> all(e.big ? 0 : n * D), sas(n);
  auto state = [&](int b, int t, int h) { return &all[((size_t(b) * T + t) * H + h) * D * D]; };
  if (!e.big)
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int t = 0; t < T; ++t) {
          const size_t at = ((size_t(b) * T + t) * H + h) * D;
          for (int i = 0; i < D; ++i) {
            double sa = 0;
            if (t)
              for (int d = 0; d < D; ++d) sa += state(b, t - 1, h)[i * D + d] * a[at + d];
            sas[at + i] = sa;
            for (int d = 0; d < D; ++d)
              state(b, t, h)[i * D + d] = (t ? state(b, t - 1, h)[i * D + d] : 0) * std::exp(-std::exp(w[at + d])) +
                                          sa * bt[at + d] + v[at + i] * k[at + d];
          }
        }
  auto sa = filled<float>(e, n, [&](size_t i) { return float(sas[i]); });
  const int parts = T / c.every;
  auto kept = filled<float>(e, size_t(B) * H * parts * D * D, [&](size_t i) {
    if (e.big) return .1f;
    const int x = i % (D * D), p = i / (D * D) % parts, h = i / (D * D) / parts % H, b = i / (D * D) / parts / H;
    return float(state(b, (p + 1) * c.every - 1, h)[x]);
  });
  std::array<Array<bfloat16>, 6> out;
  for (auto& o : out) o = constant<bfloat16>(e, n, NAN);
  auto view = [&](auto& x) { return x.view(B, T, H, D); };
  Job j;
  j.gflop = 1e-9 * n * D * 26;
  j.add(rwkv7_bwd, c, view(r), view(w), view(k), view(v), view(a), view(bt), view(y), view(sa),
        kept.view(B, H, parts, D, D), view(out[0]), view(out[1]), view(out[2]), view(out[3]), view(out[4]),
        view(out[5]));
  j.check = [=]() -> std::string {
    std::array<std::vector<double>, 6> want;
    for (auto& x : want) x.resize(n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        std::vector<double> g(D * D);
        for (int t = T - 1; t >= 0; --t) {
          const size_t at = ((size_t(b) * T + t) * H + h) * D;
          const double* S = &all[at * D];
          const double* before = t ? &all[(at - size_t(H) * D) * D] : nullptr;
          std::vector<double> dsa(D);
          for (int i = 0; i < D; ++i)
            for (int d = 0; d < D; ++d) {
              double& x = g[i * D + d];
              want[0][at + d] += S[i * D + d] * y[at + i];
              x += y[at + i] * r[at + d];
              want[2][at + d] += x * v[at + i], want[3][at + i] += x * k[at + d], want[5][at + d] += x * sas[at + i];
              dsa[i] += x * bt[at + d];
              const double raw = -std::exp(w[at + d]);
              want[1][at + d] += x * (before ? before[i * D + d] : 0) * std::exp(raw) * raw;
              x *= std::exp(raw);
            }
          for (int i = 0; i < D; ++i)
            for (int d = 0; d < D; ++d) {
              if (before) want[4][at + d] += before[i * D + d] * dsa[i];
              g[i * D + d] += dsa[i] * a[at + d];
            }
        }
      }
    for (int i = 0; i < 6; ++i)
      if (auto x = agree(out[i].now(), want[i], 3e-2, 2e-2); !x.empty()) return std::to_string(i) + ": " + x;
    return "";
  };
  return j;
});

}  // namespace states_back
}  // namespace users
