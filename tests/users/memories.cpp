// memories.cpp - sequence models with a state, of other kinds: slots behind gates, second-order feature maps, Mamba-2
// with groups as it is served, channel-wise decay with the delta rule.
#include "tests/users/use.h"
namespace users {
namespace memories {

constexpr float kLog2e = 1.4426950408889634f;

// --- gated slot attention, token by token: two memories of M slots, a softmax over the slots between them
struct SlotsCfg {
  int D = 64, M = 64, warps = 4;
};
auto slots = kernel("user_slots", [](const SlotsCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                     Tensor<const bfloat16, 3> V, Tensor<const float, 3> forget,
                                     Tensor<bfloat16, 3> O, F32 scale) {
  // Q, K, V, O [BH, T, D], forget [BH, T, M]: logarithms
  num_warps(c.warps);
  auto bh = program_id(0);
  Tile keys = zeros({c.D, c.M}, f32), values = zeros({c.M, c.D}, f32);
  for (auto t : range(0, Q.dim(1))) {
    auto q = cast(Q.load({bh, t, 0}, {c.D}), f32) * scale, k = cast(K.load({bh, t, 0}, {c.D}), f32);
    auto v = cast(V.load({bh, t, 0}, {c.D}), f32);
    auto a = exp(forget.load({bh, t, 0}, {c.M}));
    keys = keys * a.row() + k.col() * (1.f - a).row();
    auto p = softmax(sum(keys * q.col(), axis(0)), axis(1));  // [1, M]
    values = values * a.col() + (1.f - a).col() * v.row();
    auto o = sum(values * trans(p), axis(0));
    O.store({bh, t, 0}, cast(o, bf16));
  }
}).grid([](const SlotsCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r1("slots", [](Env& e) {
  SlotsCfg c;
  if (!e.big) c = {16, 32, 4};
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 256 : 2, T = e.big ? 1024 : 19, D = c.D, M = c.M;
  auto q = random<bfloat16>(e, size_t(B) * T * D), k = random<bfloat16>(e, q.n), v = random<bfloat16>(e, q.n);
  auto f = random<float>(e, size_t(B) * T * M, -.5, -.01);
  auto o = constant<bfloat16>(e, q.n, NAN);
  Job j;
  j.mbytes = 1e-6 * B * T * (8. * D + 4 * M);
  j.add(slots, c, q.view(B, T, D), k.view(B, T, D), v.view(B, T, D), f.view(B, T, M), o.view(B, T, D), .25f);
  j.check = [=] {
    std::vector<double> want(q.n);
    for (int b = 0; b < B; ++b) {
      std::vector<double> keys(D * M), values(M * D), p(M);
      for (int t = 0; t < T; ++t) {
        const size_t at = (size_t(b) * T + t) * D, ft = (size_t(b) * T + t) * M;
        double total = 0;
        for (int m = 0; m < M; ++m) {
          const double a = std::exp(f[ft + m]);
          double s = 0;
          for (int d = 0; d < D; ++d) {
            double& x = keys[d * M + m];
            x = x * a + k[at + d] * (1 - a), s += x * q[at + d] * .25;
            values[m * D + d] = values[m * D + d] * a + (1 - a) * v[at + d];
          }
          total += p[m] = std::exp(s);
        }
        for (int m = 0; m < M; ++m)
          for (int d = 0; d < D; ++d) want[at + d] += p[m] / total * values[m * D + d];
      }
    }
    return agree(o.now(), want, 4e-3, 8e-3);
  };
  return j;
});

// --- linear attention with the feature map of exp's second Taylor polynomial, as one causal pass (Based)
struct TaylorCfg {
  int BM = 128, BN = 64, K = 16, V = 64, stages = 2, warps = 4;
};
auto taylor = kernel("user_taylor", [](const TaylorCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                       Tensor<const half, 3> V, Tensor<half, 3> O, F32 scale) {
  // Q, K [BH, T, K], V, O [BH, T, V]
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, bh = program_id(1);
  auto q = Q.load({bh, m, 0}, {c.BM, c.K});
  Tile acc = zeros({c.BM, c.V}, f32), z = zeros({c.BM, 1}, f32);
  auto i = (m + arange(0, c.BM)).col();
  auto step = [&](auto n, bool masked) {
    auto s = dot(q, trans(K.load({bh, n, 0}, {c.BN, c.K}))) * scale;
    auto p = 1.f + s + .5f * s * s;
    if (masked) p = where(i >= (n + arange(0, c.BN)).row(), p, 0.f);
    z += sum(p, axis(1));
    acc = dot(cast(p, f16), V.load({bh, n, 0}, {c.BN, c.V}), acc);
  };
  for (auto n : range(0, m, c.BN, {.stages = c.stages})) step(n, false);
  for (auto n : range(m, min(m + c.BM, Q.dim(1)), c.BN)) step(n, true);
  O.store({bh, m, 0}, cast(acc / (z + 1e-6f), f16));
}).grid([](const TaylorCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM), q.shape[0]}; });
Register r2("taylor", [](Env& e) {
  TaylorCfg c;
  if (!e.big) c = {32, 16, 16, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 128 : 2, T = e.big ? 2048 : 75, K = c.K, V = c.V;
  auto q = random<half>(e, size_t(B) * T * K), k = random<half>(e, q.n), v = random<half>(e, size_t(B) * T * V);
  auto o = constant<half>(e, v.n, NAN);
  Job j;
  j.gflop = 1e-9 * B * double(T) * T * (K + V);
  j.add(taylor, c, q.view(B, T, K), k.view(B, T, K), v.view(B, T, V), o.view(B, T, V), .25f);
  j.check = [=] {
    std::vector<double> want(v.n);
    for (int b = 0; b < B; ++b)
      for (int m = 0; m < T; ++m) {
        const size_t at = size_t(b) * T;
        double z = 1e-6;
        for (int n = 0; n <= m; ++n) {
          double s = 0;
          for (int d = 0; d < K; ++d) s += q[(at + m) * K + d] * k[(at + n) * K + d] * .25;
          s = 1 + s + s * s / 2, z += s;
          for (int d = 0; d < V; ++d) want[(at + m) * V + d] += s * v[(at + n) * V + d];
        }
        for (int d = 0; d < V; ++d) want[(at + m) * V + d] /= z;
      }
    return agree(o.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- Mamba-2 prefill as served: heads share B and C in groups, softplus of raw steps, an initial state, gated output
struct GroupsCfg {
  int L = 64, N = 128, P = 64, stages = 2, warps = 8;
};
auto mamba_groups =
    kernel("user_mamba_groups", [](const GroupsCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 3> dt,
                                   Tensor<const bfloat16, 4> B, Tensor<const bfloat16, 4> C,
                                   Tensor<const bfloat16, 4> Z, Ptr<const float> A, Ptr<const float> bias,
                                   Ptr<const float> skip, Tensor<float, 4> state_, Tensor<bfloat16, 4> Y) {
      // X, Z, Y [batch, T, H, P], dt [batch, T, H], B, C [batch, T, G, N], A, bias, skip [H], state [batch, H, P, N]
      num_warps(c.warps);
      auto h = program_id(0), b = program_id(1);
      auto T = X.dim(1), g = h / (X.dim(2) / B.dim(2));
      auto a = -exp(load(A + h)), bb = load(bias + h), D = load(skip + h);
      Tile state = trans(state_.load({b, h, 0, 0}, {c.P, c.N}));
      auto lower = arange(0, c.L).col() >= arange(0, c.L).row();
      for (auto t : range(0, T, c.L, {.stages = c.stages})) {
        auto x = reshape(X.load({b, t, h, 0}, {1, c.L, 1, c.P}), {c.L, c.P});
        auto k = reshape(B.load({b, t, g, 0}, {1, c.L, 1, c.N}), {c.L, c.N});
        auto q = reshape(C.load({b, t, g, 0}, {1, c.L, 1, c.N}), {c.L, c.N});
        auto raw = cast(reshape(dt.load({b, t, h}, {1, c.L, 1}), {c.L}), f32) + bb;
        auto step = where(raw > 20.f, raw, log1p(exp(raw)));
        step = where(t + arange(0, c.L) < T, step, 0.f);
        auto s = cumsum(step * a, axis(0));
        auto total = sum(step * a);
        auto w = where(lower, exp(s.col() - s.row()), 0.f) * step.row();
        auto y = dot(cast(dot(q, trans(k)) * w, bf16), x);
        y = y + dot(q, cast(state, bf16)) * exp(s).col();
        y = y + D * cast(x, f32);
        auto z = cast(reshape(Z.load({b, t, h, 0}, {1, c.L, 1, c.P}), {c.L, c.P}), f32);
        Y.store({b, t, h, 0}, reshape(cast(y * silu(z), bf16), {1, c.L, 1, c.P}));
        auto kk = cast(cast(k, f32) * (exp(total - s) * step).col(), bf16);
        state = state * exp(total) + dot(trans(kk), x);
      }
      state_.store({b, h, 0, 0}, trans(state));
    }).grid([](const GroupsCfg&, const auto& x, const auto&...) { return Grid{x.shape[2], x.shape[0]}; });
Register r3("mamba_groups", [](Env& e) {
  GroupsCfg c;
  if (!e.big) c = {16, 32, 32, 2, 4};
  c.L = e.field("L", c.L), c.warps = e.field("warps", c.warps);
  const int Z = e.big ? 8 : 2, T = e.big ? 4096 : 41, H = e.big ? 80 : 4, G = e.big ? 8 : 2, N = c.N, P = c.P;
  auto x = random<bfloat16>(e, size_t(Z) * T * H * P), z = random<bfloat16>(e, x.n);
  auto b = random<bfloat16>(e, size_t(Z) * T * G * N, -.4, .4), q = random<bfloat16>(e, b.n, -.4, .4);
  auto dt = random<bfloat16>(e, size_t(Z) * T * H, -3, 0);
  auto a = random<float>(e, H, -1, 1), bias = random<float>(e, H), d = random<float>(e, H);
  auto state = random<float>(e, size_t(Z) * H * P * N);
  auto y = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.inTurn = true;
  j.gflop = 2e-9 * Z * H * double(T) * (c.L * (N + P) + 2. * N * P);
  j.add(mamba_groups, c, x.view(Z, T, H, P), dt.view(Z, T, H), b.view(Z, T, G, N), q.view(Z, T, G, N),
        z.view(Z, T, H, P), a.p, bias.p, d.p, state.view(Z, H, P, N), y.view(Z, T, H, P));
  j.check = [=] {
    std::vector<double> want(x.n), last(state.n);
    for (int i = 0; i < Z; ++i)
      for (int h = 0; h < H; ++h)
        for (int p = 0; p < P; ++p) {
          double* s = &last[((size_t(i) * H + h) * P + p) * N];
          for (int n = 0; n < N; ++n) s[n] = state[size_t(s - last.data()) + n];
          for (int t = 0; t < T; ++t) {
            const size_t at = ((size_t(i) * T + t) * H + h) * P + p, bn = ((size_t(i) * T + t) * G + h / (H / G)) * N;
            const double step = std::log1p(std::exp(dt[(size_t(i) * T + t) * H + h] + bias[h]));
            double v = d[h] * x[at];
            for (int n = 0; n < N; ++n) {
              s[n] = s[n] * std::exp(-std::exp(a[h]) * step) + step * b[bn + n] * x[at];
              v += q[bn + n] * s[n];
            }
            want[at] = v * z[at] / (1 + std::exp(-z[at]));
          }
        }
    const auto wrong = agree(y.now(), want, 2e-2, 2e-2);
    return wrong.empty() ? agree(state.now(), last, 1e-2, 1e-2) : "y: " + wrong;
  };
  return j;
});

// --- delta rule with a decay of its own for every channel (KDA), tokens of a step one after the other, states in place
struct ChannelsCfg {
  int K = 128, BV = 32, T = 4, warps = 4;
};
auto channel_delta =
    kernel("user_channel_delta", [](const ChannelsCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                    Tensor<const bfloat16, 4> V, Tensor<const float, 4> decay,
                                    Tensor<const float, 3> beta, Tensor<float, 4> states,
                                    Ptr<const int32_t> slot_of, Tensor<bfloat16, 4> O, F32 scale) {
      // Q, K, decay [B, T, H, K], V, O [B, T, H, V], beta [B, T, H], states [slots, H, K, V]
      num_warps(c.warps);
      auto v0 = program_id(0) * c.BV, h = program_id(1), b = program_id(2);
      auto slot = load(slot_of + b);
      Tile s = states.load({slot, h, 0, v0}, {c.K, c.BV});
      for (auto t : range(0, Q.dim(1))) {
        auto q = cast(Q.load({b, t, h, 0}, {c.K}), f32), k = cast(K.load({b, t, h, 0}, {c.K}), f32);
        q = q * (scale * rsqrt(sum(q * q) + 1e-6f));
        k = k * rsqrt(sum(k * k) + 1e-6f);
        auto v = cast(V.load({b, t, h, v0}, {c.BV}), f32);
        s = s * exp(decay.load({b, t, h, 0}, {c.K})).col();
        auto u = (v.row() - sum(s * k.col(), axis(0))) * beta.load({b, t, h});
        s = s + k.col() * u;
        O.store({b, t, h, v0}, cast(sum(s * q.col(), axis(0)), bf16));
      }
      states.store({slot, h, 0, v0}, s);
    }).grid([](const ChannelsCfg& c, const auto& q, const auto&, const auto& v, const auto&...) {
      return Grid{cdiv(v.shape[3], c.BV), q.shape[2], q.shape[0]};
    });
Register r4("channel_delta", [](Env& e) {
  ChannelsCfg c;
  if (!e.big) c = {32, 16, 3, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 128 : 2, T = c.T, H = e.big ? 32 : 3, K = c.K, V = e.big ? 128 : 24, slots = B + 1;
  auto q = random<bfloat16>(e, size_t(B) * T * H * K), k = random<bfloat16>(e, q.n);
  auto v = random<bfloat16>(e, size_t(B) * T * H * V);
  auto g = random<float>(e, q.n, -1, -.01), beta = random<float>(e, size_t(B) * T * H, 0, 1);
  auto states = random<float>(e, size_t(slots) * H * K * V);
  auto of = filled<int32_t>(e, B, [&](size_t i) { return int32_t(slots - 1 - i); });
  auto o = constant<bfloat16>(e, v.n, NAN);
  Job j;
  j.inTurn = true;
  j.mbytes = 8e-6 * B * H * double(K) * V;
  j.add(channel_delta, c, q.view(B, T, H, K), k.view(B, T, H, K), v.view(B, T, H, V), g.view(B, T, H, K),
        beta.view(B, T, H), states.view(slots, H, K, V), of.p, o.view(B, T, H, V), .125f);
  j.check = [=] {
    std::vector<double> want(v.n), after(states.n);
    for (size_t i = 0; i < states.n; ++i) after[i] = states[i];
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int t = 0; t < T; ++t) {
          const size_t row = (size_t(b) * T + t) * H + h;
          double qq = 1e-6, kk = 1e-6;
          for (int d = 0; d < K; ++d) qq += q[row * K + d] * q[row * K + d], kk += k[row * K + d] * k[row * K + d];
          for (int w = 0; w < V; ++w) {
            double* s = &after[(size_t(of.at(b)) * H + h) * K * V + w];
            double u = v[row * V + w], out = 0;
            for (int d = 0; d < K; ++d) {
              s[d * V] *= std::exp(g[row * K + d]);
              u -= s[d * V] * k[row * K + d] / std::sqrt(kk);
            }
            u *= beta[row];
            for (int d = 0; d < K; ++d) {
              s[d * V] += u * k[row * K + d] / std::sqrt(kk);
              out += s[d * V] * q[row * K + d] / std::sqrt(qq) * .125;
            }
            want[row * V + w] = out;
          }
        }
    const auto wrong = agree(o.now(), want, 4e-3, 8e-3);
    return wrong.empty() ? agree(states.now(), after, 1e-4, 1e-4) : "states: " + wrong;
  };
  return j;
});

}  // namespace memories
}  // namespace users
