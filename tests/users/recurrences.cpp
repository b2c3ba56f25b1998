// recurrences.cpp - gated recurrences in chunks: gated delta rule (inverse by squaring), mLSTM with a running maximum,
// the short causal convolution in front of them.
#include "tests/users/use.h"
namespace users {
namespace recurrences {

constexpr float kLog2e = 1.4426950408889634f;

// --- gated delta rule: S_t = a_t (I - b_t k_t k_t^T) S_{t-1} + b_t k_t v_t^T, o_t = S_t^T q_t. Inside a chunk
// (I + A)^-1 = (I - A)(I + A^2)(I + A^4) .. for the strictly lower triangular A.
struct GatedCfg {
  int L = 64, D = 128, BV = 64, stages = 2, warps = 4, programs = 0;
};
auto gated_delta =
    kernel("user_gated_delta", [](const GatedCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                  Tensor<const bfloat16, 4> V, Tensor<const float, 3> gate, Tensor<const float, 3> beta,
                                  Tensor<bfloat16, 4> O) {
      // Q, K [B, T, H, D], V, O [B, T, H, V], gate (log of a, base e), beta [B, H, T]
      num_warps(c.warps);
      if (c.programs) programs_per_multiprocessor(c.programs);
      auto v0 = program_id(0) * c.BV, h = program_id(1), b = program_id(2);
      auto i = arange(0, c.L);
      auto below = i.col() > i.row(), equal = i.col() == i.row();
      auto rows = [&](auto& X, const Tile& t, const Tile& col, int width) {
        return reshape(X.load({b, t, h, col}, {c.L, 1, width}), {c.L, width});
      };
      Tile zero = 0;
      Tile state = zeros({c.D, c.BV}, f32);
      for (auto t : range(0, Q.dim(1), c.L, {.stages = c.stages})) {
        auto q = rows(Q, t, zero, c.D), k = rows(K, t, zero, c.D), v = rows(V, t, v0, c.BV);
        auto g = cumsum(gate.load({b, h, t}, {c.L}) * kLog2e, axis(0));
        auto be = beta.load({b, h, t}, {c.L}).col();
        auto total = sum(where(i == c.L - 1, g, 0.f));
        auto decay = exp2(where(below | equal, g.col() - g.row(), -INFINITY));
        auto A = where(below, dot(k, trans(k)) * be * decay, 0.f);
        Tile inverse = where(equal, 1.f, -A), power = A;
        for (int n = 2; n < c.L; n *= 2) {
          auto p = cast(power, bf16);
          power = dot(p, p);
          inverse = dot(cast(inverse, bf16), cast(power, bf16), inverse);
        }
        auto s = cast(state, bf16);
        auto up = exp2(g).col();
        auto rest = (cast(v, f32) - dot(k, s) * up) * be;
        auto u = cast(dot(cast(inverse, bf16), cast(rest, bf16)), bf16);
        auto o = dot(cast(dot(q, trans(k)) * decay, bf16), u, dot(q, s) * up);
        O.store({b, t, h, v0}, reshape(cast(o, bf16), {c.L, 1, c.BV}));
        auto kd = cast(cast(k, f32) * exp2(total - g).col(), bf16);
        state = dot(trans(kd), u, state * exp2(total));
      }
    }).grid([](const GatedCfg& c, const auto& q, const auto&, const auto& v, const auto&...) {
      return Grid{cdiv(v.shape[3], c.BV), q.shape[2], q.shape[0]};
    });
Register r1("gated_delta", [](Env& e) {
  int B = e.big ? 8 : 2, T = e.big ? 4096 : 128, H = e.big ? 16 : 2, D = e.big ? 128 : 32, V = e.big ? 128 : 32;
  const float most = 1 / std::sqrt(float(D));  // keys of length about 0.6
  auto q = random<bfloat16>(e, size_t(B) * T * H * D, -most, most),
       k = random<bfloat16>(e, size_t(B) * T * H * D, -most, most), v = random<bfloat16>(e, size_t(B) * T * H * V);
  auto g = random<float>(e, size_t(B) * H * T, -.2, 0), b = random<float>(e, size_t(B) * H * T, .2, 1);
  auto o = constant<bfloat16>(e, size_t(B) * T * H * V, NAN);
  Job j;
  j.gflop = 2e-9 * B * H * double(T) * (64. * 2 * D + 64. * 2 * V + 3. * D * V);
  j.add(gated_delta, GatedCfg{64, D, e.big ? 64 : 32, 2, e.field("warps", 8), e.field("programs", 0)},
        q.view(B, T, H, D), k.view(B, T, H, D),
        v.view(B, T, H, V), g.view(B, H, T), b.view(B, H, T), o.view(B, T, H, V));
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * H * V), S, kS(V);
    for (int z = 0; z < B; ++z)
      for (int h = 0; h < H; ++h) {
        S.assign(D * V, 0);
        for (int t = 0; t < T; ++t) {
          const size_t row = (size_t(z) * T + t) * H + h, at = (size_t(z) * H + h) * T + t;
          const double a = std::exp(g[at]);
          kS.assign(V, 0);
          for (int d = 0; d < D; ++d)
            for (int w = 0; w < V; ++w) kS[w] += k[row * D + d] * (S[d * V + w] *= a);
          for (int d = 0; d < D; ++d)
            for (int w = 0; w < V; ++w)
              want[row * V + w] += q[row * D + d] * (S[d * V + w] += b[at] * k[row * D + d] * (v[row * V + w] - kS[w]));
        }
      }
    return agree(o.now(), want, 1e-2, 2e-2);
  };
  return j;
});

// --- mLSTM: C_t = f_t C_{t-1} + i_t k_t v_t^T, n_t = f_t n_{t-1} + i_t k_t, h_t = C_t^T q_t / max(|n_t q_t|, 1), with
// f = sigmoid, i = exp; everything relative to a running maximum m of the exponents
struct MlstmCfg {
  int L = 64, D = 64, BV = 64, stages = 2, warps = 4;
};
auto mlstm = kernel("user_mlstm", [](const MlstmCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                     Tensor<const half, 3> V, Tensor<const float, 2> I, Tensor<const float, 2> F,
                                     Tensor<half, 3> Y, F32 scale) {
               // Q, K [B H, T, D], V, Y [B H, T, V], I, F [B H, T]
               num_warps(c.warps);
               auto v0 = program_id(0) * c.BV, bh = program_id(1);
               auto r = arange(0, c.L);
               Tile C = zeros({c.D, c.BV}, f32), n = zeros({c.D, 1}, f32), m = 0.f;
               for (auto t : range(0, Q.dim(1), c.L, {.stages = c.stages})) {
                 auto live = t + r < Q.dim(1);
                 auto q = Q.load({bh, t, 0}, {c.L, c.D}), k = K.load({bh, t, 0}, {c.L, c.D});
                 auto v = V.load({bh, t, v0}, {c.L, c.BV});
                 auto in = where(live, I.load({bh, t}, {c.L}), -INFINITY);
                 auto f = where(live, -log(1.f + exp(-F.load({bh, t}, {c.L}))), 0.f);  // log sigmoid
                 auto g = cumsum(f, axis(0));
                 auto total = sum(f);
                 // row i sees key j <= i with exponent g_i - g_j + in_j, and the state with g_i + m
                 auto inside = where(r.col() >= r.row(), g.col() - g.row() + in.row(), -INFINITY);
                 auto top = max(max(inside, axis(1)), g.col() + m);
                 auto w = exp(inside - top), old = exp(g.col() + m - top);
                 auto s = dot(q, trans(k)) * scale * w;
                 auto h = dot(cast(s, f16), v, dot(q, cast(C, f16)) * (old * scale));
                 auto norm = sum(s, axis(1)) + sum(cast(q, f32) * trans(n), axis(1)) * (old * scale);
                 Y.store({bh, t, v0}, reshape(cast(h / max(abs(norm), exp(-top)), f16), {1, c.L, c.BV}));
                 // the state at the end of the chunk
                 auto out = total - g + in;
                 auto m2 = max(max(out), total + m);
                 auto kw = cast(k, f32) * exp(out - m2).col();
                 auto keep = exp(total + m - m2);
                 C = dot(trans(cast(kw, f16)), v, C * keep);
                 n = n * keep + trans(sum(kw, axis(0)));
                 m = m2;
               }
             }).grid([](const MlstmCfg& c, const auto&, const auto&, const auto& v, const auto&...) {
  return Grid{cdiv(v.shape[2], c.BV), v.shape[0]};
});
Register r2("mlstm", [](Env& e) {
  int H = e.big ? 128 : 2, T = e.big ? 4096 : 150, D = e.big ? 128 : 32, V = e.big ? 128 : 64;
  auto q = random<half>(e, size_t(H) * T * D), k = random<half>(e, size_t(H) * T * D),
       v = random<half>(e, size_t(H) * T * V);
  auto in = random<float>(e, size_t(H) * T, -2, 4), f = random<float>(e, size_t(H) * T, 0, 5);
  auto y = constant<half>(e, size_t(H) * T * V, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * H * double(T) * (64. * (D + V) + 2. * D * V);
  j.add(mlstm, MlstmCfg{64, D, 64, 2, 8}, q.view(H, T, D), k.view(H, T, D), v.view(H, T, V), in.view(H, T),
        f.view(H, T), y.view(H, T, V), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * V), C, n;
    for (int h = 0; h < H; ++h) {
      C.assign(D * V, 0), n.assign(D, 0);
      for (int t = 0; t < T; ++t) {
        const size_t at = size_t(h) * T + t;
        const double ff = 1 / (1 + std::exp(-f[at])), ii = std::exp(in[at]);
        double nq = 0;
        for (int d = 0; d < D; ++d) {
          nq += (n[d] = ff * n[d] + ii * k[at * D + d]) * q[at * D + d] * scale;
          for (int w = 0; w < V; ++w)
            want[at * V + w] +=
                (C[d * V + w] = ff * C[d * V + w] + ii * k[at * D + d] * v[at * V + w]) * q[at * D + d] * scale;
        }
        for (int w = 0; w < V; ++w) want[at * V + w] /= std::max(std::abs(nq), 1.);
      }
    }
    return agree(y.now(), want, 1e-2, 2e-2);
  };
  return j;
});

// --- causal depthwise convolution of width 4 with SiLU, channels last, and its last inputs kept for the next call
struct ShortCfg {
  int BT = 64, BC = 64, W = 4, warps = 4;
};
auto short_conv =
    kernel("user_short_conv", [](const ShortCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 2> weights,
                                 Tensor<const bfloat16, 1> bias, Tensor<bfloat16, 3> Y) {
      // X, Y [B, T, C], weights [W, C]
      num_warps(c.warps);
      auto ch = program_id(0) * c.BC, t = program_id(1) * c.BT, b = program_id(2);
      Tile acc = broadcast_to(cast(bias.load({ch}, {c.BC}), f32).row(), {c.BT, c.BC});
      for (int w = 0; w < c.W; ++w)
        acc +=
            cast(X.load({b, t + w - (c.W - 1), ch}, {c.BT, c.BC}), f32) * cast(weights.load({w, ch}, {1, c.BC}), f32);
      Y.store({b, t, ch}, reshape(cast(silu(acc), bf16), {1, c.BT, c.BC}));
    }).grid([](const ShortCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[2], c.BC), cdiv(x.shape[1], c.BT), x.shape[0]};
    });
Register r3("short_conv", [](Env& e) {
  int B = e.big ? 8 : 2, T = e.big ? 4096 : 70, C = e.big ? 4096 : 72, W = 4;
  auto x = random<bfloat16>(e, size_t(B) * T * C), w = random<bfloat16>(e, W * C), bias = random<bfloat16>(e, C);
  auto y = constant<bfloat16>(e, size_t(B) * T * C, NAN);
  Job j;
  j.mbytes = 4e-6 * B * T * double(C);
  j.add(short_conv, ShortCfg{}, x.view(B, T, C), w.view(W, C), bias.view(C), y.view(B, T, C));
  j.check = [=] {
    std::vector<double> want(size_t(B) * T * C);
    for (int b = 0; b < B; ++b)
      for (int t = 0; t < T; ++t)
        for (int ch = 0; ch < C; ++ch) {
          double s = bias[ch];
          for (int i = 0; i < W; ++i)
            if (t + i - W + 1 >= 0) s += x[(size_t(b) * T + t + i - W + 1) * C + ch] * w[i * C + ch];
          want[(size_t(b) * T + t) * C + ch] = s / (1 + std::exp(-s));
        }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace recurrences
}  // namespace users
