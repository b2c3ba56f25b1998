// attention_forms.cpp - attention as newer models have it: latent caches, sinks, differences, trees, pair biases.
#include "tests/users/use.h"
namespace users {
namespace attention_forms {

constexpr float kLog2e = 1.4426950408889634f;

/// One step of the online softmax: scores of base 2 in, weights out; m and l follow, `alpha` rescales what was summed.
Tile online(Tile s, Tile& m, Tile& l, Tile& alpha) {
  auto m2 = max(m, max(s, axis(1)));
  alpha = exp2(m - m2);
  auto p = exp2(s - m2);
  l = l * alpha + sum(p, axis(1));
  m = m2;
  return p;
}

/// Softmax attention of one query row in float64: weight(i) is the score of key i (-inf: not seen), `extra` adds to the
/// denominator exp(extra).
template <class Score, class Value>
void attend(int keys, int width, Score score, Value value, double* out, double extra = -INFINITY) {
  std::vector<double> s(keys);
  double m = extra, t = 0;
  for (int i = 0; i < keys; ++i) m = std::max(m, s[i] = score(i));
  for (auto& x : s) t += x = std::exp(x - m);
  t += std::exp(extra - m);
  for (int i = 0; i < keys; ++i)
    for (int d = 0; d < width; ++d) out[d] += s[i] / t * value(i, d);
}

// --- multi-head latent attention, decoding: keys are the cache's rows (latent and rotary part), values its latent part
struct MlaCfg {
  int BH = 64, BN = 64, L = 512, R = 64, stages = 2, warps = 8;
};
auto mla = kernel("user_mla_decode", [](const MlaCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> C,
                                        Ptr<const int32_t> lengths, Tensor<bfloat16, 3> O, F32 scale) {
             // Q [B, H, L + R], C [B, S, L + R], O [B, H, L]
             num_warps(c.warps);
             auto b = program_id(1), h = program_id(0) * c.BH;
             auto length = load(lengths + b);
             auto ql = Q.load({b, h, 0}, {c.BH, c.L}), qr = Q.load({b, h, c.L}, {c.BH, c.R});
             Tile acc = zeros({c.BH, c.L}, f32), m = full({c.BH, 1}, -INFINITY, f32), l = zeros({c.BH, 1}, f32);
             Tile alpha;
             for (auto n : range(0, length, c.BN, {.stages = c.stages})) {
               auto latent = C.load({b, n, 0}, {c.BN, c.L}), rotary = C.load({b, n, c.L}, {c.BN, c.R});
               auto s = dot(qr, trans(rotary), dot(ql, trans(latent))) * (scale * kLog2e);
               auto p = online(where((n + arange(0, c.BN)).row() < length, s, -INFINITY), m, l, alpha);
               acc = dot(cast(p, bf16), latent, acc * alpha);
             }
             O.store({b, h, 0}, reshape(cast(acc / l, bf16), {1, c.BH, c.L}));
           }).grid([](const MlaCfg& c, const auto& q, const auto&, const int32_t*, const auto&, float) {
  return Grid{cdiv(q.shape[1], c.BH), q.shape[0]};
});
Register r1("mla_decode", [](Env& e) {
  int B = e.big ? 64 : 2, H = e.big ? 128 : 20, S = e.big ? 4096 : 150, L = e.big ? 512 : 64, R = e.big ? 64 : 16;
  auto q = random<bfloat16>(e, size_t(B) * H * (L + R)), c = random<bfloat16>(e, size_t(B) * S * (L + R));
  auto len = filled<int32_t>(e, B, [&](size_t i) { return S - 37 * int(i % 2); });
  auto o = constant<bfloat16>(e, size_t(B) * H * L, NAN);
  float scale = 1 / std::sqrt(float(L + R));
  Job j;
  j.gflop = 2e-9 * B * H * double(S) * (2 * L + R), j.mbytes = 2e-6 * B * double(S) * (L + R);
  j.add(mla, e.big ? MlaCfg{} : MlaCfg{16, 32, L, R, 2, 4}, q.view(B, H, L + R), c.view(B, S, L + R), len.p,
        o.view(B, H, L), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * L);
    for (int r = 0; r < B * H; ++r) {
      auto key = [&](int i, int d) { return c[(size_t(r / H) * S + i) * (L + R) + d]; };
      auto score = [&](int i) {
        double s = 0;
        for (int d = 0; d < L + R; ++d) s += q[size_t(r) * (L + R) + d] * key(i, d);
        return s * scale;
      };
      attend(len.h[r / H], L, score, key, &want[size_t(r) * L]);
    }
    return agree(o.now(), want, 4e-3, 1e-2);
  };
  return j;
});

// --- sliding window with a sink per head; the query heads of one key head are rows of one tile
struct SinkCfg {
  int BT = 16, G = 8, BN = 64, D = 64, window = 128, stages = 3, warps = 4;
};
auto sinks = kernel("user_sink_window", [](const SinkCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 3> K,
                                           Tensor<const bfloat16, 3> V, Tensor<const float, 2> sink,
                                           Tensor<bfloat16, 4> O, F32 scale) {
               // Q, O [T, Hkv, G, D], K, V [T, Hkv, D], sink [Hkv, G]
               num_warps(c.warps);
               auto t0 = program_id(0) * c.BT, hk = program_id(1);
               const int rows = c.BT * c.G;
               auto q = reshape(Q.load({t0, hk, 0, 0}, {c.BT, 1, c.G, c.D}), {rows, c.D});
               auto at = (t0 + arange(0, rows) / c.G).col();
               auto first = reshape(sink.load({hk, 0}, {c.G}), {1, c.G}) * kLog2e;
               Tile m = reshape(broadcast_to(first, {c.BT, c.G}), {rows, 1});
               Tile l = ones({rows, 1}, f32), acc = zeros({rows, c.D}, f32), alpha;
               auto low = max(0, t0 - (c.window - 1)) / c.BN * c.BN;
               for (auto n : range(low, min(t0 + c.BT, K.dim(0)), c.BN, {.stages = c.stages})) {
                 auto k = squeeze(K.load({n, hk, 0}, {c.BN, 1, c.D}), 1);
                 auto v = squeeze(V.load({n, hk, 0}, {c.BN, 1, c.D}), 1);
                 auto key = (n + arange(0, c.BN)).row();
                 auto s = where((key <= at) & (key > at - c.window), dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
                 auto p = online(s, m, l, alpha);
                 acc = dot(cast(p, bf16), v, acc * alpha);
               }
               O.store({t0, hk, 0, 0}, reshape(cast(acc / l, bf16), {c.BT, 1, c.G, c.D}));
             }).grid([](const SinkCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[0], c.BT), q.shape[1]};
});
Register r2("sink_window", [](Env& e) {
  int T = e.big ? 8192 : 83, H = e.big ? 8 : 2;
  SinkCfg c;
  if (!e.big) c = {16, 4, 16, 32, 24, 2, 4};
  const int G = c.G, D = c.D;
  auto q = random<bfloat16>(e, size_t(T) * H * G * D), k = random<bfloat16>(e, size_t(T) * H * D),
       v = random<bfloat16>(e, size_t(T) * H * D);
  auto s = random<float>(e, H * G, -1, 2);
  auto o = constant<bfloat16>(e, size_t(T) * H * G * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * T * H * G * D * double(std::min(T, c.window));
  j.add(sinks, c, q.view(T, H, G, D), k.view(T, H, D), v.view(T, H, D), s.view(H, G), o.view(T, H, G, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * G * D);
    for (int r = 0; r < T * H * G; ++r) {
      int t = r / (H * G), h = r / G % H;
      auto score = [&](int i) {
        double x = 0;
        for (int d = 0; d < D; ++d) x += q[size_t(r) * D + d] * k[(size_t(i) * H + h) * D + d];
        return i > t - c.window ? x * scale : -INFINITY;
      };
      auto value = [&](int i, int d) { return v[(size_t(i) * H + h) * D + d]; };
      attend(t + 1, D, score, value, &want[size_t(r) * D], s[r % (H * G)]);
    }
    return agree(o.now(), want, 8e-3, 1e-2);
  };
  return j;
});

// --- differential attention: (softmax(Q1 K1) - lambda softmax(Q2 K2)) V, values twice as wide
struct DiffCfg {
  int BM = 64, BN = 64, D = 64, stages = 2, warps = 4;
};
auto diff = kernel("user_differential", [](const DiffCfg& c, Tensor<const half, 4> Q, Tensor<const half, 4> K,
                                           Tensor<const half, 3> V, Tensor<half, 3> O, F32 scale, F32 lambda) {
              // Q, K [BH, 2, S, D], V, O [BH, S, 2 D]; causal
              num_warps(c.warps);
              auto h = program_id(1), m0 = (num_programs(0) - 1 - program_id(0)) * c.BM;
              Tile q[2], m[2], l[2], acc[2], alpha;
              for (int i = 0; i < 2; ++i) {
                q[i] = Q.load({h, i, m0, 0}, {c.BM, c.D});
                m[i] = full({c.BM, 1}, -INFINITY, f32), l[i] = zeros({c.BM, 1}, f32);
                acc[i] = zeros({c.BM, 2 * c.D}, f32);
              }
              for (auto n : range(0, min(m0 + c.BM, V.dim(1)), c.BN, {.stages = c.stages})) {
                auto v = V.load({h, n, 0}, {c.BN, 2 * c.D});
                auto seen = (n + arange(0, c.BN)).row() <= (m0 + arange(0, c.BM)).col();
                for (int i = 0; i < 2; ++i) {
                  auto s = dot(q[i], trans(K.load({h, i, n, 0}, {c.BN, c.D}))) * (scale * kLog2e);
                  auto p = online(where(seen, s, -INFINITY), m[i], l[i], alpha);
                  acc[i] = dot(cast(p, f16), v, acc[i] * alpha);
                }
              }
              O.store({h, m0, 0}, reshape(cast(acc[0] / l[0] - lambda * (acc[1] / l[1]), f16), {1, c.BM, 2 * c.D}));
            }).grid([](const DiffCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[2], c.BM), q.shape[0]};
});
Register r3("differential", [](Env& e) {
  int H = e.big ? 32 : 2, S = e.big ? 4096 : 75, D = e.big ? 64 : 32;
  auto q = random<half>(e, size_t(H) * 2 * S * D), k = random<half>(e, size_t(H) * 2 * S * D),
       v = random<half>(e, size_t(H) * S * 2 * D);
  auto o = constant<half>(e, size_t(H) * S * 2 * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = .5e-9 * 2 * 6 * H * double(S) * S * D;
  j.add(diff, e.big ? DiffCfg{128, 32, 64, 3, 8} : DiffCfg{32, 32, D, 2, 4}, q.view(H, 2, S, D), k.view(H, 2, S, D),
        v.view(H, S, 2 * D), o.view(H, S, 2 * D), scale, .35f);
  j.check = [=] {
    std::vector<double> want(size_t(H) * S * 2 * D), part(2 * D);
    for (int r = 0; r < H * S; ++r)
      for (int i = 0; i < 2; ++i) {
        auto row = [&](int x) { return ((size_t(r / S) * 2 + i) * S + x) * D; };
        auto score = [&](int x) {
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[row(r % S) + d] * k[row(x) + d];
          return s * scale;
        };
        std::fill(part.begin(), part.end(), 0);
        attend(
            r % S + 1, 2 * D, score, [&](int x, int d) { return v[(size_t(r / S) * S + x) * 2 * D + d]; }, &part[0]);
        for (int d = 0; d < 2 * D; ++d) want[size_t(r) * 2 * D + d] += (i ? -.35 : 1) * part[d];
      }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- checking a tree of drafted tokens: all see the cache, and of each other what a bit mask says
struct TreeCfg {
  int N = 64, BN = 64, D = 128, stages = 2, warps = 4;
};
auto tree = kernel("user_tree_attention", [](const TreeCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                             Tensor<const half, 3> V, Ptr<const uint64_t> ancestors, Tensor<half, 3> O,
                                             I32 cached, F32 scale) {
              // Q, O [H, N, D], K, V [H, cached + N, D]; bit j of ancestors[i]: node i sees node j
              num_warps(c.warps);
              auto h = program_id(0);
              auto q = Q.load({h, 0, 0}, {c.N, c.D});
              Tile m = full({c.N, 1}, -INFINITY, f32), l = zeros({c.N, 1}, f32), acc = zeros({c.N, c.D}, f32), alpha;
              auto step = [&](Tile n, int keys, auto mask) {
                auto k = K.load({h, n, 0}, {keys, c.D}), v = V.load({h, n, 0}, {keys, c.D});
                auto p = online(mask(dot(q, trans(k)) * (scale * kLog2e)), m, l, alpha);
                acc = dot(cast(p, f16), v, acc * alpha);
              };
              for (auto n : range(0, cached, c.BN, {.stages = c.stages}))
                step(n, c.BN, [&](Tile s) { return where((n + arange(0, c.BN)).row() < cached, s, -INFINITY); });
              auto bits = load(ancestors + arange(0, c.N)).col() >> cast(arange(0, c.N), u64).row();
              step(cached, c.N, [&](Tile s) { return where((bits & 1) != 0, s, -INFINITY); });
              O.store({h, 0, 0}, reshape(cast(acc / l, f16), {1, c.N, c.D}));
            }).grid([](const TreeCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r4("tree_attention", [](Env& e) {
  int H = e.big ? 256 : 2, N = 64, P = e.big ? 4000 : 70, D = e.big ? 128 : 32, S = P + N;
  auto q = random<half>(e, size_t(H) * N * D), k = random<half>(e, size_t(H) * S * D),
       v = random<half>(e, size_t(H) * S * D);
  std::vector<uint64_t> mask(N);
  for (int i = 0; i < N; ++i) mask[i] = uint64_t{1} << i | (i ? mask[int(e.uniform() * i)] : 0);
  auto a = filled<uint64_t>(e, N, [&](size_t i) { return mask[i]; });
  auto o = constant<half>(e, size_t(H) * N * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.mbytes = 4e-6 * H * double(S) * D;
  j.add(tree, TreeCfg{N, e.big ? 128 : 32, D, 2, 4}, q.view(H, N, D), k.view(H, S, D), v.view(H, S, D), a.p,
        o.view(H, N, D), P, scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * N * D);
    for (int r = 0; r < H * N; ++r) {
      auto score = [&](int i) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[size_t(r) * D + d] * k[(size_t(r / N) * S + i) * D + d];
        return i < P || (mask[r % N] >> (i - P) & 1) ? s * scale : -INFINITY;
      };
      attend(
          S, D, score, [&](int i, int d) { return v[(size_t(r / N) * S + i) * D + d]; }, &want[size_t(r) * D]);
    }
    return agree(o.now(), want, 2e-3, 3e-3);
  };
  return j;
});

// --- cross attention with a bias for every pair, keys of a length per batch, and a gate on the result
struct PairCfg {
  int BM = 64, BN = 64, D = 32, stages = 2, warps = 4;
};
auto pair = kernel("user_pair_bias", [](const PairCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                        Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 3> bias,
                                        Tensor<const bfloat16, 4> gate, Ptr<const int32_t> lengths,
                                        Tensor<bfloat16, 4> O, F32 scale) {
              // Q, gate, O [B, Sq, H, D], K, V [B, Sk, H, D], bias [H, Sq, Sk]
              num_warps(c.warps);
              auto m0 = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
              auto box = [&](auto& X, Tile row, int rows) {
                return reshape(X.load({b, row, h, 0}, {1, rows, 1, c.D}), {rows, c.D});
              };
              auto length = load(lengths + b);
              auto q = box(Q, m0, c.BM);
              Tile m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32), alpha;
              for (auto n : range(0, length, c.BN, {.stages = c.stages})) {
                auto s = dot(q, trans(box(K, n, c.BN))) * (scale * kLog2e);
                s += cast(bias.load({h, m0, n}, {c.BM, c.BN}), f32) * kLog2e;
                auto p = online(where((n + arange(0, c.BN)).row() < length, s, -INFINITY), m, l, alpha);
                acc = dot(cast(p, bf16), box(V, n, c.BN), acc * alpha);
              }
              auto y = acc / l * sigmoid(cast(box(gate, m0, c.BM), f32));
              O.store({b, m0, h, 0}, reshape(cast(y, bf16), {1, c.BM, 1, c.D}));
            }).grid([](const PairCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[2], q.shape[0]};
});
Register r5("pair_bias", [](Env& e) {
  int B = e.big ? 128 : 2, H = e.big ? 8 : 2, S = e.big ? 512 : 45, T = e.big ? 512 : 70, D = 32;
  auto q = random<bfloat16>(e, size_t(B) * S * H * D), k = random<bfloat16>(e, size_t(B) * T * H * D),
       v = random<bfloat16>(e, size_t(B) * T * H * D), g = random<bfloat16>(e, size_t(B) * S * H * D),
       bias = random<bfloat16>(e, size_t(H) * S * T);
  auto len = filled<int32_t>(e, B, [&](size_t i) { return T - 21 * int(i % 2); });
  auto o = constant<bfloat16>(e, size_t(B) * S * H * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * H * D * double(S) * T;
  j.add(pair, e.big ? PairCfg{128, 64, 32, 3, 4} : PairCfg{32, 32, 32, 2, 4}, q.view(B, S, H, D), k.view(B, T, H, D),
        v.view(B, T, H, D), bias.view(H, S, T), g.view(B, S, H, D), len.p, o.view(B, S, H, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * S * H * D);
    for (int r = 0; r < B * S * H; ++r) {
      int b = r / (S * H), h = r % H, m = r / H % S;
      auto row = [&](int i) { return ((size_t(b) * T + i) * H + h) * D; };
      auto score = [&](int i) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[size_t(r) * D + d] * k[row(i) + d];
        return s * scale + bias[(size_t(h) * S + m) * T + i];
      };
      attend(
          len.h[b], D, score, [&](int i, int d) { return v[row(i) + d]; }, &want[size_t(r) * D]);
      for (int d = 0; d < D; ++d) want[size_t(r) * D + d] /= 1 + std::exp(-g[size_t(r) * D + d]);
    }
    return agree(o.now(), want, 8e-3, 1e-2);
  };
  return j;
});

}  // namespace attention_forms
}  // namespace users
