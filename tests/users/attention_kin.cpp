// attention_kin.cpp - attention as people rewrite it: its gradients in two plain loops, 8-bit scores (SageAttention), silu
// instead of softmax over jagged sequences (HSTU), a soft cap over packed sequences, shifted windows of an image,
// latents in pages read in parts.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace attention_kin {

constexpr float kLog2e = 1.4426950408889634f;

// --- gradients of causal attention: keys outside for dK and dV, queries outside for dQ
struct GradCfg {
  int BM = 64, BN = 128, D = 64, stages = 2, warps = 8;
};
auto delta_rows = kernel("user_attention_delta", [](const GradCfg& c, Tensor<const half, 3> O, Tensor<const half, 3> dO,
                                                    Tensor<float, 2> delta) {
                    auto bh = program_id(1), m = program_id(0) * c.BM;
                    auto o = O.load({bh, m, 0}, {c.BM, c.D}), g = dO.load({bh, m, 0}, {c.BM, c.D});
                    delta.store({bh, m}, reshape(sum(cast(o, f32) * cast(g, f32), axis(1)), {1, c.BM}));
                  }).grid([](const GradCfg& c, const auto& o, const auto&...) {
                    return Grid{cdiv(o.shape[1], c.BM), o.shape[0]};
                  });
auto grad_keys = kernel(
    "user_attention_dkdv", [](const GradCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                              Tensor<const half, 3> V, Tensor<const half, 3> dO, Tensor<const float, 2> lse,
                              Tensor<const float, 2> delta, Tensor<half, 3> dK, Tensor<half, 3> dV, F32 scale) {
      // all [B H, S, D]; lse (base 2), delta [B H, S]
      num_warps(c.warps);
      auto bh = program_id(1), n = program_id(0) * c.BN;
      auto k = K.load({bh, n, 0}, {c.BN, c.D}), v = V.load({bh, n, 0}, {c.BN, c.D});
      auto at = (n + arange(0, c.BN)).col();
      Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
      for (auto m : range(n / c.BM * c.BM, Q.dim(1), c.BM, {.stages = c.stages})) {
        auto q = Q.load({bh, m, 0}, {c.BM, c.D}), g = dO.load({bh, m, 0}, {c.BM, c.D});
        auto l = lse.load({bh, m}, {c.BM}).row(), de = delta.load({bh, m}, {c.BM}).row();
        auto s = dot(k, trans(q)) * (scale * kLog2e);
        auto p = where((m + arange(0, c.BM)).row() >= at, exp2(s - l), 0.f);
        dv = dot(cast(p, f16), g, dv);
        auto ds = p * (dot(v, trans(g)) - de);
        dk = dot(cast(ds, f16), q, dk);
      }
      dK.store({bh, n, 0}, reshape(cast(dk * scale, f16), {1, c.BN, c.D}));
      dV.store({bh, n, 0}, reshape(cast(dv, f16), {1, c.BN, c.D}));
    }).grid([](const GradCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BN), q.shape[0]};
    });
auto grad_queries = kernel(
    "user_attention_dq", [](const GradCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                            Tensor<const half, 3> V, Tensor<const half, 3> dO, Tensor<const float, 2> lse,
                            Tensor<const float, 2> delta, Tensor<half, 3> dQ, F32 scale) {
      num_warps(c.warps);
      auto bh = program_id(1), m = (num_programs(0) - 1 - program_id(0)) * c.BM;
      auto q = Q.load({bh, m, 0}, {c.BM, c.D}), g = dO.load({bh, m, 0}, {c.BM, c.D});
      auto l = lse.load({bh, m}, {c.BM}).col(), de = delta.load({bh, m}, {c.BM}).col();
      auto at = (m + arange(0, c.BM)).col();
      Tile dq = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, min(m + c.BM, K.dim(1)), c.BN, {.stages = c.stages})) {
        auto k = K.load({bh, n, 0}, {c.BN, c.D}), v = V.load({bh, n, 0}, {c.BN, c.D});
        auto s = dot(q, trans(k)) * (scale * kLog2e);
        auto p = where((n + arange(0, c.BN)).row() <= at, exp2(s - l), 0.f);
        auto ds = p * (dot(g, trans(v)) - de);
        dq = dot(cast(ds, f16), k, dq);
      }
      dQ.store({bh, m, 0}, reshape(cast(dq * scale, f16), {1, c.BM, c.D}));
    }).grid([](const GradCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r1("attention_bwd", [](Env& e) {
  int B = e.big ? 64 : 2, S = e.big ? 4096 : 150, D = e.big ? 64 : 32;
  const size_t n = size_t(B) * S * D;
  auto q = random<half>(e, n), k = random<half>(e, n), v = random<half>(e, n), g = random<half>(e, n);
  float scale = 1 / std::sqrt(float(D));
  std::vector<double> P, out(n), lse(size_t(B) * S);  // P: rows of probabilities
  if (!e.big) {
    P.resize(size_t(B) * S * S);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < S; ++i) {
        double* p = &P[(size_t(b) * S + i) * S];
        double sum = 0;
        for (int j = 0; j <= i; ++j) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[(size_t(b) * S + i) * D + d] * k[(size_t(b) * S + j) * D + d];
          sum += p[j] = std::exp(s * scale);
        }
        lse[size_t(b) * S + i] = std::log2(sum);
        for (int j = 0; j <= i; ++j) {
          p[j] /= sum;
          for (int d = 0; d < D; ++d) out[(size_t(b) * S + i) * D + d] += p[j] * v[(size_t(b) * S + j) * D + d];
        }
      }
  }
  auto o = filled<half>(e, n, [&](size_t i) { return half(float(out[i])); });
  auto l = filled<float>(e, size_t(B) * S, [&](size_t i) { return e.big ? 10.f : float(lse[i]); });
  auto de = constant<float>(e, size_t(B) * S, NAN);
  auto dq = constant<half>(e, n, NAN), dk = constant<half>(e, n, NAN), dv = constant<half>(e, n, NAN);
  Job j;
  j.gflop = 5e-9 * B * double(S) * S * D;
  GradCfg keys{e.field("BM", 64), e.field("BN", 128), D, e.field("stages", 2), e.field("warps", 8)};
  GradCfg queries{e.field("QM", e.big ? 64 : 128), e.field("QN", 64), D, e.field("stages", 2),
                  e.field("Qwarps", e.big ? 4 : 8)};
  j.add(delta_rows, GradCfg{64, 64, D, 1, 4}, o.view(B, S, D), g.view(B, S, D), de.view(B, S));
  j.add(grad_keys, keys, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), g.view(B, S, D), l.view(B, S),
        de.view(B, S), dk.view(B, S, D), dv.view(B, S, D), scale);
  j.add(grad_queries, queries, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), g.view(B, S, D), l.view(B, S),
        de.view(B, S), dq.view(B, S, D), scale);
  j.check = [=] {
    std::vector<double> wq(n), wk(n), wv(n);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < S; ++i) {
        const size_t r = (size_t(b) * S + i) * D;
        double delta = 0;
        for (int d = 0; d < D; ++d) delta += out[r + d] * g[r + d];
        for (int t = 0; t <= i; ++t) {
          const size_t s = (size_t(b) * S + t) * D;
          const double p = P[(size_t(b) * S + i) * S + t];
          double dp = 0;
          for (int d = 0; d < D; ++d) dp += g[r + d] * v[s + d];
          const double ds = p * (dp - delta) * scale;
          for (int d = 0; d < D; ++d) wv[s + d] += p * g[r + d], wk[s + d] += ds * q[r + d], wq[r + d] += ds * k[s + d];
        }
      }
    auto bad = agree(dv.now(), wv, 6e-3, 6e-3);
    if (bad.empty()) bad = agree(dk.now(), wk, 6e-3, 6e-3);
    return bad.empty() ? agree(dq.now(), wq, 6e-3, 6e-3) : bad;
  };
  return j;
});

// --- SageAttention: queries and keys in 8 bits with a scale per block, P V in f16
struct SageCfg {
  int BM = 128, BN = 64, D = 128, stages = 2, warps = 8;
};
auto sage = kernel("user_sage", [](const SageCfg& c, Tensor<const int8_t, 3> Q, Tensor<const int8_t, 3> K,
                                   Tensor<const half, 3> V, Tensor<const float, 2> qs, Tensor<const float, 2> ks,
                                   Tensor<half, 3> O, F32 scale) {
              // Q, K, V, O [B H, S, D]; qs [B H, S / BM], ks [B H, S / BN]
              num_warps(c.warps);
              auto bh = program_id(1), i = program_id(0), m0 = i * c.BM;
              auto q = Q.load({bh, m0, 0}, {c.BM, c.D});
              auto by = qs.load({bh, i}) * (scale * kLog2e);
              Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
              for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
                auto s = cast(dot(q, trans(K.load({bh, n, 0}, {c.BN, c.D}))), f32) * (by * ks.load({bh, n / c.BN}));
                s = where((n + arange(0, c.BN)).row() < K.dim(1), s, -INFINITY);
                auto m2 = max(m, max(s, axis(1)));
                auto p = exp2(s - m2), alpha = exp2(m - m2);
                l = l * alpha + sum(p, axis(1));
                acc = dot(cast(p, f16), V.load({bh, n, 0}, {c.BN, c.D}), acc * alpha);
                m = m2;
              }
              O.store({bh, m0, 0}, reshape(cast(acc / l, f16), {1, c.BM, c.D}));
            }).grid([](const SageCfg& c, const auto& q, const auto&...) {
              return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
            });
Register r2("sage", [](Env& e) {
  int B = e.big ? 64 : 2, S = e.big ? 4096 : 200, D = e.big ? 128 : 64;
  SageCfg c{e.field("BM", 128), e.field("BN", e.big ? 128 : 64), D, e.field("stages", 2), e.field("warps", 8)};
  auto q = integers<int8_t>(e, size_t(B) * S * D, -127, 128), k = integers<int8_t>(e, size_t(B) * S * D, -127, 128);
  auto v = random<half>(e, size_t(B) * S * D);
  int nq = cdiv(S, c.BM), nk = cdiv(S, c.BN);
  auto qs = random<float>(e, B * nq, .005, .01), ks = random<float>(e, B * nk, .005, .01);
  auto o = constant<half>(e, size_t(B) * S * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * double(S) * S * D;
  j.add(sage, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), qs.view(B, nq), ks.view(B, nk), o.view(B, S, D),
        scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * S * D), p(S);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < S; ++i) {
        double total = 0;
        const size_t r = (size_t(b) * S + i) * D;
        for (int n = 0; n < S; ++n) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += double(q.h[r + d]) * k.h[(size_t(b) * S + n) * D + d];
          total += p[n] = std::exp(s * scale * qs[b * nq + i / c.BM] * ks[b * nk + n / c.BN]);
        }
        for (int n = 0; n < S; ++n)
          for (int d = 0; d < D; ++d) want[r + d] += p[n] / total * v[(size_t(b) * S + n) * D + d];
      }
    return agree(o.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- HSTU: o_i = sum_{j <= i} silu(alpha q_i k_j + bias[i - j]) v_j / N over jagged sequences
struct HstuCfg {
  int BM = 128, BN = 64, D = 64, stages = 2, warps = 8;
};
auto hstu = kernel("user_hstu", [](const HstuCfg& c, Ptr<const bfloat16> Q, Ptr<const bfloat16> K,
                                   Ptr<const bfloat16> V, Ptr<const int64_t> offsets, Ptr<const float> bias,
                                   Ptr<bfloat16> O, I32 H, F32 alpha, F32 inverse) {
      // Q, K, V, O [tokens, H, D]; sequence b has tokens offsets[b] .. offsets[b + 1] - 1
      num_warps(c.warps);
      auto h = program_id(1), b = program_id(2), m0 = program_id(0) * c.BM;
      auto first = load(offsets + b);
      auto length = cast(load(offsets + b + 1) - first, i32);
      return_if(m0 >= length);
      auto part = [&](const Ptr<const bfloat16>& p) {
        return make_view<const bfloat16>(p + (first * H + h) * c.D, {length, c.D}, {H * c.D, 1});
      };
      auto q = part(Q).load({m0, 0}, {c.BM, c.D});
      auto ks = part(K), vs = part(V);
      auto row = (m0 + arange(0, c.BM)).col();
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, min(m0 + c.BM, length), c.BN, {.stages = c.stages})) {
        auto away = row - (n + arange(0, c.BN)).row();
        auto s = dot(q, trans(ks.load({n, 0}, {c.BN, c.D}))) * alpha + load(bias + max(away, 0));
        auto p = where(away >= 0, silu(s), 0.f) * inverse;
        acc = dot(cast(p, bf16), vs.load({n, 0}, {c.BN, c.D}), acc);
      }
      make_view<bfloat16>(O + (first * H + h) * c.D, {length, c.D}, {H * c.D, 1}).store({m0, 0}, cast(acc, bf16));
    });
Register r3("hstu", [](Env& e) {
  int B = e.big ? 16 : 3, H = e.big ? 8 : 2, D = e.big ? 128 : 32, most = e.big ? 4096 : 200;
  std::vector<int64_t> at{0};
  for (int b = 0; b < B; ++b) at.push_back(at.back() + most - b * (e.big ? 200 : 77));
  auto off = filled<int64_t>(e, B + 1, [&](size_t i) { return at[i]; });
  const size_t T = at.back(), n = T * H * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto bias = random<float>(e, most + 256);
  auto o = constant<bfloat16>(e, n, NAN);
  const float alpha = 1 / std::sqrt(float(D)), inverse = 1.f / 64;
  HstuCfg c{e.field("BM", 128), e.field("BN", 64), D, e.field("stages", 2), e.field("warps", 8)};
  Job j;
  for (int b = 0; b < B; ++b) j.gflop += 2e-9 * H * D * double(at[b + 1] - at[b]) * double(at[b + 1] - at[b]);
  j.add(hstu.grid([=](const HstuCfg& k, const auto&...) { return Grid{cdiv(most, k.BM), H, B}; }), c, q.p, k.p, v.p,
        off.p, bias.p, o.p, H, alpha, inverse);
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int64_t i = at[b]; i < at[b + 1]; ++i)
          for (int64_t t = at[b]; t <= i; ++t) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[(i * H + h) * D + d] * k[(t * H + h) * D + d];
            s = s * alpha + bias[i - t];
            s = s / (1 + std::exp(-s)) * inverse;
            for (int d = 0; d < D; ++d) want[(i * H + h) * D + d] += s * v[(t * H + h) * D + d];
          }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- Gemma's attention over packed sequences: tanh soft cap, a window, groups of heads
struct CapCfg {
  int BM = 128, BN = 64, D = 128, G = 2, stages = 2, warps = 8;
};
auto capped = kernel("user_softcap", [](const CapCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                        Tensor<const bfloat16, 3> V, Ptr<const int32_t> starts, Tensor<bfloat16, 3> O,
                                        F32 scale, F32 cap, I32 window) {
      // Q, O [tokens, H, D], K, V [tokens, H / G, D]
      num_warps(c.warps);
      auto h = program_id(1), b = program_id(2), m0 = program_id(0) * c.BM;
      auto first = load(starts + b), length = load(starts + b + 1) - first;
      return_if(m0 >= length);
      auto q = reshape(Q.load({first + m0, h, 0}, {c.BM, 1, c.D}), {c.BM, c.D});
      auto row = (m0 + arange(0, c.BM)).col();
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      auto from = max(m0 - window + 1, 0) / c.BN * c.BN;
      for (auto n : range(from, min(m0 + c.BM, length), c.BN, {.stages = c.stages})) {
        auto k = reshape(K.load({first + n, h / c.G, 0}, {c.BN, 1, c.D}), {c.BN, c.D});
        auto v = reshape(V.load({first + n, h / c.G, 0}, {c.BN, 1, c.D}), {c.BN, c.D});
        auto s = tanh(dot(q, trans(k)) * (scale / cap)) * (cap * kLog2e);
        auto at = (n + arange(0, c.BN)).row();
        s = where((at <= row) & (at > row - window), s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto safe = where(m2 == -INFINITY, 0.f, m2);
        auto p = exp2(s - safe), alpha = exp2(m - safe);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        m = m2;
      }
      store(O.ptr() + (cast(first, i64) * O.stride(0) + h * c.D + row * cast(O.stride(0), i32) + arange(0, c.D).row()),
            cast(acc / l, bf16), {.mask = row < length});
    });
Register r4("softcap", [](Env& e) {
  int B = e.big ? 8 : 3, H = e.big ? 16 : 4, G = 2, D = e.big ? 128 : 32, window = e.big ? 2048 : 50;
  std::vector<int> at{0};
  for (int b = 0; b < B; ++b) at.push_back(at.back() + (e.big ? 4096 : 170) - b * 61);
  auto starts = filled<int32_t>(e, B + 1, [&](size_t i) { return at[i]; });
  const size_t T = at.back();
  auto q = random<bfloat16>(e, T * H * D, -3, 3), k = random<bfloat16>(e, T * (H / G) * D, -3, 3),
       v = random<bfloat16>(e, T * (H / G) * D);
  auto o = constant<bfloat16>(e, T * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D)), cap = 5;
  CapCfg c{e.field("BM", 128), e.field("BN", 64), D, G, e.field("stages", 2), e.field("warps", 8)};
  Job j;
  for (int b = 0; b < B; ++b) {
    const double n = at[b + 1] - at[b], w = std::min<double>(window, n);
    j.gflop += 4e-9 * H * D * (n * w - w * w / 2);
  }
  j.add(capped.grid([=](const CapCfg& k, const auto&...) { return Grid{cdiv(at[1], k.BM), H, B}; }), c,
        q.view(T, H, D), k.view(T, H / G, D), v.view(T, H / G, D), starts.p, o.view(T, H, D), scale, cap, window);
  j.check = [=] {
    std::vector<double> want(T * H * D), p(T);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int i = at[b]; i < at[b + 1]; ++i) {
          double total = 0;
          const int low = std::max(at[b], i - window + 1);
          auto key = [&](int t) { return (size_t(t) * (H / G) + h / G) * D; };
          for (int t = low; t <= i; ++t) {
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[(size_t(i) * H + h) * D + d] * k[key(t) + d];
            total += p[t] = std::exp(cap * std::tanh(s * scale / cap));
          }
          for (int t = low; t <= i; ++t)
            for (int d = 0; d < D; ++d) want[(size_t(i) * H + h) * D + d] += p[t] / total * v[key(t) + d];
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- shifted windows (Swin): windows of 8 x 8 pixels of an image that wraps around, relative bias, masked by region
struct SwinCfg {
  int D = 32, W = 8, warps = 4;
};
auto swin = kernel("user_swin", [](const SwinCfg& c, Tensor<const half, 5> X, Tensor<const float, 3> bias,
                                   Tensor<half, 4> O, I32 shift, F32 scale) {
      // X [B, height, width, 3 H, D] (queries, keys, values), O [B, height, width, H D], bias [H, W W, W W]
      num_warps(c.warps);
      const int T = c.W * c.W;
      auto across = X.dim(2) / c.W;
      auto h = program_id(1), b = program_id(2), wy = program_id(0) / across, wx = program_id(0) % across;
      auto H = O.dim(3) / c.D;
      auto t = arange(0, T);
      auto y = wy * c.W + t / c.W, x = wx * c.W + t % c.W;  // of the shifted image
      auto region = where(y < X.dim(1) - c.W, 0, where(y < X.dim(1) - shift, 1, 2)) * 3 +
                    where(x < X.dim(2) - c.W, 0, where(x < X.dim(2) - shift, 1, 2));
      auto pixel = (b * X.dim(1) + (y + shift) % X.dim(1)) * X.dim(2) + (x + shift) % X.dim(2);
      auto d = arange(0, c.D).row();
      auto read = [&](int which) { return load(X.ptr() + ((pixel.col() * 3 + which) * H + h) * c.D + d); };
      auto q = read(0), k = read(1), v = read(2);
      auto s = dot(q, trans(k)) * scale + reshape(bias.load({h, 0, 0}, {1, T, T}), {T, T});
      s = where(region.col() == region.row(), s, s - 100.f);
      auto p = softmax(s, axis(1));
      store(O.ptr() + (pixel.col() * H + h) * c.D + d, cast(dot(cast(p, f16), v), f16));
    }).grid([](const SwinCfg& c, const auto& x, const auto&, const auto& o, const auto&...) {
      return Grid{x.shape[1] / c.W * (x.shape[2] / c.W), o.shape[3] / c.D, x.shape[0]};
    });
Register r5("swin", [](Env& e) {
  int B = e.big ? 64 : 2, S = e.big ? 56 : 16, H = e.big ? 8 : 2, D = 32, W = 8, T = W * W, shift = 4;
  auto x = random<half>(e, size_t(B) * S * S * 3 * H * D);
  auto bias = random<float>(e, H * T * T);
  auto o = constant<half>(e, size_t(B) * S * S * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 8e-6 * B * S * S * H * D;
  j.add(swin, SwinCfg{D, W, e.field("warps", 4)}, x.view(B, S, S, 3 * H, D), bias.view(H, T, T),
        o.view(B, S, S, H * D), shift, scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * S * S * H * D);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int w = 0; w < S / W * (S / W); ++w) {
          auto y = [&](int t) { return w / (S / W) * W + t / W; };
          auto xx = [&](int t) { return w % (S / W) * W + t % W; };
          auto pixel = [&](int t) { return (size_t(b) * S + (y(t) + shift) % S) * S + (xx(t) + shift) % S; };
          auto zone = [&](int p) { return p < S - W ? 0 : p < S - shift ? 1 : 2; };
          for (int i = 0; i < T; ++i) {
            std::vector<double> p(T);
            double total = 0;
            for (int n = 0; n < T; ++n) {
              double s = 0;
              for (int d = 0; d < D; ++d)
                s += x[(pixel(i) * 3 * H + h) * D + d] * x[((pixel(n) * 3 + 1) * H + h) * D + d];
              s = s * scale + bias[(h * T + i) * T + n];
              if (zone(y(i)) != zone(y(n)) || zone(xx(i)) != zone(xx(n))) s -= 100;
              total += p[n] = std::exp(s);
            }
            for (int n = 0; n < T; ++n)
              for (int d = 0; d < D; ++d)
                want[(pixel(i) * H + h) * D + d] += p[n] / total * x[((pixel(n) * 3 + 2) * H + h) * D + d];
          }
        }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- MLA decode over pages, in parts: latents of 512 (values too) and rotated keys of 64; the parts are merged
struct PagedCfg {
  int BH = 64, L = 512, R = 64, PAGE = 64, stages = 2, warps = 8;
};
auto latents = kernel(
    "user_mla_paged", [](const PagedCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> C,
                         Tensor<const int32_t, 2> table, Ptr<const int32_t> lengths, Tensor<float, 4> O,
                         Tensor<float, 3> L, F32 scale) {
      // Q [B, H, L + R], C [pages, PAGE, L + R], O [parts, B, H, L], L [parts, B, H]
      num_warps(c.warps);
      auto h = program_id(0) * c.BH, b = program_id(1), part = program_id(2);
      auto length = load(lengths + b);
      auto pages = cdiv(length, c.PAGE), per = cdiv(pages, num_programs(2));
      auto ql = reshape(Q.load({b, h, 0}, {1, c.BH, c.L}), {c.BH, c.L});
      auto qr = reshape(Q.load({b, h, c.L}, {1, c.BH, c.R}), {c.BH, c.R});
      Tile acc = zeros({c.BH, c.L}, f32), m = full({c.BH, 1}, -INFINITY, f32), l = zeros({c.BH, 1}, f32);
      for (auto i : range(part * per, min(part * per + per, pages), {.stages = c.stages})) {
        auto page = table.load({b, i});
        auto lat = reshape(C.load({page, 0, 0}, {1, c.PAGE, c.L}), {c.PAGE, c.L});
        auto rot = reshape(C.load({page, 0, c.L}, {1, c.PAGE, c.R}), {c.PAGE, c.R});
        auto s = dot(qr, trans(rot), dot(ql, trans(lat))) * (scale * kLog2e);
        s = where((i * c.PAGE + arange(0, c.PAGE)).row() < length, s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), lat, acc * alpha);
        m = m2;
      }
      O.store({part, b, h, 0}, reshape(where(l > 0.f, acc / l, 0.f), {1, 1, c.BH, c.L}));
      L.store({part, b, h}, reshape(where(l > 0.f, m + log2(l), -INFINITY), {1, 1, c.BH}));
    }).grid([](const PagedCfg& c, const auto& q, const auto&, const auto&, auto*, const auto& o, const auto&...) {
      return Grid{q.shape[1] / c.BH, q.shape[0], o.shape[0]};
    });
struct JoinCfg {
  int parts = 4, L = 512, warps = 4;
};
auto join_parts = kernel("user_mla_join", [](const JoinCfg& c, Tensor<const float, 3> O, Tensor<const float, 2> L,
                                             Tensor<bfloat16, 2> Y) {
                    num_warps(c.warps);
                    auto r = program_id(0);
                    auto l = L.load({0, r}, {c.parts, 1});
                    auto w = exp2(l - max(l, axis(0)));
                    auto o = reshape(O.load({0, r, 0}, {c.parts, 1, c.L}), {c.parts, c.L});
                    Y.store({r, 0}, cast(sum(o * w, axis(0)) / sum(w, axis(0)), bf16));
                  }).grid([](const JoinCfg&, const auto& o, const auto&...) { return Grid{o.shape[1]}; });
Register r6("mla_paged", [](Env& e) {
  int B = e.big ? 32 : 2, H = e.big ? 128 : 16, L = e.big ? 512 : 128, R = e.big ? 64 : 32, P = 64,
      S = e.big ? 4096 : 300, parts = e.big ? 2 : 4, per = cdiv(S, P), pages = B * per;
  std::vector<int> perm(pages);
  for (int i = 0; i < pages; ++i) perm[i] = i;
  for (int i = pages - 1; i > 0; --i) std::swap(perm[i], perm[int(e.uniform() * (i + 1))]);
  auto q = random<bfloat16>(e, size_t(B) * H * (L + R)), cc = random<bfloat16>(e, size_t(pages) * P * (L + R));
  auto table = filled<int32_t>(e, pages, [&](size_t i) { return perm[i]; });
  auto len = filled<int32_t>(e, B, [&](size_t i) { return S - int(i) * (e.big ? 13 : 250); });
  auto o = constant<float>(e, size_t(parts) * B * H * L, NAN), l = constant<float>(e, size_t(parts) * B * H, NAN);
  auto y = constant<bfloat16>(e, size_t(B) * H * L, NAN);
  const float scale = 1 / std::sqrt(float(L + R));
  Job j;
  j.gflop = 2e-9 * B * H * double(S) * (2 * L + R);
  PagedCfg c{e.big ? 64 : 16, L, R, P, e.field("stages", 2), e.field("warps", e.big ? 8 : 4)};
  j.add(latents, c, q.view(B, H, L + R), cc.view(pages, P, L + R), table.view(B, per), len.p, o.view(parts, B, H, L),
        l.view(parts, B, H), scale);
  j.add(join_parts, JoinCfg{parts, L, 4}, o.view(parts, B * H, L), l.view(parts, B * H), y.view(B * H, L));
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * L), p(S);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        double total = 0;
        auto key = [&](int i) { return (size_t(perm[b * per + i / P]) * P + i % P) * (L + R); };
        for (int i = 0; i < len.h[b]; ++i) {
          double s = 0;
          for (int d = 0; d < L + R; ++d) s += q[(size_t(b) * H + h) * (L + R) + d] * cc[key(i) + d];
          total += p[i] = std::exp(s * scale);
        }
        for (int i = 0; i < len.h[b]; ++i)
          for (int d = 0; d < L; ++d) want[(size_t(b) * H + h) * L + d] += p[i] / total * cc[key(i) + d];
      }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace attention_kin
}  // namespace users
