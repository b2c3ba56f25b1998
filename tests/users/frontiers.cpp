// frontiers.cpp - what recent models ask of attention: an indexer that scores every key, blocks each token chose, heads
// whose keys are wider than their values, weights that break a stick instead of a softmax, parts that travel a ring.
#include "tests/users/use.h"
namespace users {
namespace frontiers {

constexpr float kLog2e = 1.4426950408889634f;

// --- lightning indexer: one number per query and key, the gated sum over heads of what is positive of q k
struct IndexCfg {
  int T = 2, H = 64, BN = 128, D = 128, stages = 3, warps = 8;
};
auto indexer = kernel("user_indexer", [](const IndexCfg& c, Tensor<const fp8_e4m3, 3> Q, Tensor<const fp8_e4m3, 2> K,
                                         Tensor<const float, 1> scale, Tensor<const float, 2> W, Tensor<float, 2> S) {
                 // Q [T, H, D], K [N, D] with a scale per key, W [T, H], S [T, N]: keys up to the query's own
                 num_warps(c.warps);
                 auto t = program_id(0) * c.T;
                 auto q = reshape(Q.load({t, 0, 0}, {c.T, c.H, c.D}), {c.T * c.H, c.D});
                 auto w = expand_dims(W.load({t, 0}, {c.T, c.H}), 2);
                 for (auto n : range(0, min(t + c.T, K.dim(0)), c.BN, {.stages = c.stages})) {
                   auto s = max(dot(q, trans(K.load({n, 0}, {c.BN, c.D}))), 0.f);
                   auto total = sum(reshape(s, {c.T, c.H, c.BN}) * w, axis(1));
                   S.store({t, n}, squeeze(total, 1) * scale.load({n}, {c.BN}).row());
                 }
               }).grid([](const IndexCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.T)}; });
// The same with keys as rows: what is summed lies along a row of the product.
auto by_keys = kernel("user_indexer_by_keys", [](const IndexCfg& c, Tensor<const fp8_e4m3, 3> Q,
                                                 Tensor<const fp8_e4m3, 2> K, Tensor<const float, 1> scale,
                                                 Tensor<const float, 2> W, Tensor<float, 2> S) {
                 num_warps(c.warps);
                 auto t = program_id(0) * c.T;
                 auto q = reshape(Q.load({t, 0, 0}, {c.T, c.H, c.D}), {c.T * c.H, c.D});
                 auto w = reshape(W.load({t, 0}, {c.T, c.H}), {1, c.T, c.H});
                 for (auto n : range(0, min(t + c.T, K.dim(0)), c.BN, {.stages = c.stages})) {
                   auto s = reshape(max(dot(K.load({n, 0}, {c.BN, c.D}), trans(q)), 0.f), {c.BN, c.T, c.H});
                   auto total = squeeze(sum(s * w, axis(2)), 2) * scale.load({n}, {c.BN}).col();
                   S.store({t, n}, trans(total));
                 }
               }).grid([](const IndexCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.T)}; });
Job index_job(Env& e, const decltype(indexer)& kernel) {
  int T = e.big ? 4096 : 37, H = e.big ? 64 : 32, D = e.big ? 128 : 64;
  IndexCfg c;
  if (!e.big) c = {2, H, 32, D, 3, 4};
  auto q = random<fp8_e4m3>(e, size_t(T) * H * D), k = random<fp8_e4m3>(e, size_t(T) * D);
  auto scale = random<float>(e, T, .5, 2), w = random<float>(e, size_t(T) * H);
  auto s = constant<float>(e, size_t(T) * T, NAN);
  Job j;
  j.gflop = 1e-9 * double(T) * T * H * D;
  j.add(kernel, c, q.view(T, H, D), k.view(T, D), scale.view(T), w.view(T, H), s.view(T, T));
  j.check = [=] {
    const auto got = s.now();
    std::vector<double> want, seen;
    for (int t = 0; t < T; ++t)
      for (int n = 0; n <= t; ++n) {
        double total = 0;
        for (int h = 0; h < H; ++h) {
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[(size_t(t) * H + h) * D + d] * k[size_t(n) * D + d];
          total += w[t * H + h] * std::max(x, 0.);
        }
        want.push_back(total * scale[n]), seen.push_back(got[size_t(t) * T + n]);
      }
    return agree(seen, want, 0.02, 1e-3);
  };
  return j;
}
Register r1("indexer", [](Env& e) { return index_job(e, indexer); });
Register r1k("indexer_by_keys", [](Env& e) { return index_job(e, by_keys); });

// --- selected blocks: every token names blocks of 64 keys, the query heads of a key head are the rows
struct ChosenCfg {
  int G = 16, D = 128, B = 64, stages = 3, warps = 4, producer = -1;
};
auto chosen = kernel("user_chosen_blocks", [](const ChosenCfg& c, Tensor<const bfloat16, 4> Q,
                                              Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                                              Tensor<const int32_t, 3> blocks, Tensor<bfloat16, 4> O, F32 scale) {
                // Q, O [T, Hkv, G, D], K, V [T, Hkv, D], blocks [T, Hkv, n]: -1 names none
                num_warps(c.warps);
                auto t = program_id(0), h = program_id(1);
                auto q = Q.load({t, h, 0, 0}, {c.G, c.D});
                Tile acc = zeros({c.G, c.D}, f32), m = full({c.G, 1}, -1e30f, f32), l = zeros({c.G, 1}, f32);
                for (auto i : range(0, blocks.dim(2), {.stages = c.stages, .specialize = Choice(c.producer)})) {
                  auto first = blocks.load({t, h, i}) * c.B;
                  auto k = squeeze(K.load({first, h, 0}, {c.B, 1, c.D}), 1);
                  auto v = squeeze(V.load({first, h, 0}, {c.B, 1, c.D}), 1);
                  auto key = (first + arange(0, c.B)).row();
                  auto s = where((key <= t) & (key >= 0), dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
                  auto m2 = max(m, max(s, axis(1)));
                  auto p = exp2(s - m2), alpha = exp2(m - m2);
                  l = l * alpha + sum(p, axis(1));
                  acc = dot(cast(p, bf16), v, acc * alpha);
                  m = m2;
                }
                O.store({t, h, 0, 0}, reshape(cast(acc / l, bf16), {1, 1, c.G, c.D}));
              }).grid([](const ChosenCfg&, const auto& q, const auto&...) { return Grid{q.shape[0], q.shape[1]}; });
Job chosen_job(Env& e, int producer) {
  int T = e.big ? 4096 : 90, H = e.big ? 4 : 2, n = e.big ? 16 : 3;
  ChosenCfg c;
  if (!e.big) c = {16, 32, 16, 2, 4};
  c.producer = producer;
  const int G = c.G, D = c.D, B = c.B;
  auto q = random<bfloat16>(e, size_t(T) * H * G * D), k = random<bfloat16>(e, size_t(T) * H * D),
       v = random<bfloat16>(e, size_t(T) * H * D);
  auto blocks = filled<int32_t>(e, size_t(T) * H * n, [&](size_t i) {
    const int own = int(i / (H * n)) / B, at = int(i % n);
    return at == 0 ? own : own - at * std::max(own / n, 1) < 0 ? -1 : own - at * std::max(own / n, 1);
  });
  auto o = constant<bfloat16>(e, size_t(T) * H * G * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * T * H * G * D * double(n) * B;
  j.add(chosen, c, q.view(T, H, G, D), k.view(T, H, D), v.view(T, H, D), blocks.view(T, H, n), o.view(T, H, G, D),
        scale);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * G * D);
    for (int r = 0; r < T * H * G; ++r) {
      const int t = r / (H * G), h = r / G % H;
      std::vector<double> s;
      std::vector<int> keys;
      for (int i = 0; i < n; ++i) {
        const int block = blocks.h[(size_t(t) * H + h) * n + i];
        for (int key = block * B; block >= 0 && key < (block + 1) * B && key <= t; ++key) {
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[size_t(r) * D + d] * k[(size_t(key) * H + h) * D + d];
          s.push_back(std::exp(x * scale)), keys.push_back(key);
        }
      }
      double total = 0;
      for (double x : s) total += x;
      for (size_t i = 0; i < s.size(); ++i)
        for (int d = 0; d < D; ++d)
          want[size_t(r) * D + d] += s[i] / total * v[(size_t(keys[i]) * H + h) * D + d];
    }
    return agree(o.now(), want, 8e-3, 1e-2);
  };
  return j;
}
Register r2("chosen_blocks", [](Env& e) { return chosen_job(e, -1); });
Register r2p("chosen_blocks_plain", [](Env& e) { return chosen_job(e, 0); });

// --- latent attention, prefill: keys of 128 + 64 (the rotary part is one for all heads), values of 128
struct PrefillCfg {
  int BM = 128, BN = 128, D = 128, R = 64, stages = 2, warps = 8;
};
auto mla_prefill = kernel("user_mla_prefill", [](const PrefillCfg& c, Tensor<const bfloat16, 3> Q,
                                                 Tensor<const bfloat16, 3> KV, Tensor<const bfloat16, 2> KR,
                                                 Tensor<bfloat16, 3> O, F32 scale) {
                     // Q [T, H, D + R], KV [T, H, 2 D], KR [T, R], O [T, H, D]; causal
                     num_warps(c.warps);
                     auto h = program_id(1), m0 = (num_programs(0) - 1 - program_id(0)) * c.BM;
                     auto q = reshape(Q.load({m0, h, 0}, {c.BM, 1, c.D}), {c.BM, c.D});
                     auto qr = reshape(Q.load({m0, h, c.D}, {c.BM, 1, c.R}), {c.BM, c.R});
                     auto rows = (m0 + arange(0, c.BM)).col();
                     Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32),
                          l = zeros({c.BM, 1}, f32);
                     for (auto n : range(0, min(m0 + c.BM, KR.dim(0)), c.BN, {.stages = c.stages})) {
                       auto k = reshape(KV.load({n, h, 0}, {c.BN, 1, c.D}), {c.BN, c.D});
                       auto kr = KR.load({n, 0}, {c.BN, c.R});
                       auto v = reshape(KV.load({n, h, c.D}, {c.BN, 1, c.D}), {c.BN, c.D});
                       Tile s = dot(q, trans(k));
                       s = dot(qr, trans(kr), s) * (scale * kLog2e);
                       s = where((n + arange(0, c.BN)).row() <= rows, s, -INFINITY);
                       auto m2 = max(m, max(s, axis(1)));
                       auto p = exp2(s - m2), alpha = exp2(m - m2);
                       l = l * alpha + sum(p, axis(1));
                       acc = dot(cast(p, bf16), v, acc * alpha);
                       m = m2;
                     }
                     O.store({m0, h, 0}, expand_dims(cast(acc / l, bf16), 1));
                   }).grid([](const PrefillCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[0], c.BM), q.shape[1]};
});
Register r3("mla_prefill", [](Env& e) {
  int T = e.big ? 8192 : 150, H = e.big ? 16 : 2, D = e.big ? 128 : 32, R = e.big ? 64 : 16;
  auto q = random<bfloat16>(e, size_t(T) * H * (D + R)), kv = random<bfloat16>(e, size_t(T) * H * 2 * D),
       kr = random<bfloat16>(e, size_t(T) * R);
  auto o = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  float scale = 1 / std::sqrt(float(D + R));
  Job j;
  j.gflop = 1e-9 * H * double(T) * T * (2 * D + R);
  j.add(mla_prefill, e.big ? PrefillCfg{} : PrefillCfg{64, 32, D, R, 2, 4}, q.view(T, H, D + R), kv.view(T, H, 2 * D),
        kr.view(T, R), o.view(T, H, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * D);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h) {
        const size_t row = size_t(t) * H + h;
        std::vector<double> s(t + 1);
        double total = 0;
        for (int n = 0; n <= t; ++n) {
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[row * (D + R) + d] * kv[(size_t(n) * H + h) * 2 * D + d];
          for (int d = 0; d < R; ++d) x += q[row * (D + R) + D + d] * kr[size_t(n) * R + d];
          total += s[n] = std::exp(x * scale);
        }
        for (int n = 0; n <= t; ++n)
          for (int d = 0; d < D; ++d) want[row * D + d] += s[n] / total * kv[(size_t(n) * H + h) * 2 * D + D + d];
      }
    return agree(o.now(), want, 8e-3, 1e-2);
  };
  return j;
});

// --- stick breaking: from the nearest key backwards, each takes its share of what is left
struct StickCfg {
  int BM = 64, BN = 64, D = 64, stages = 2, warps = 4;
};
auto stick = kernel("user_stick_breaking", [](const StickCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                              Tensor<const half, 3> V, Tensor<half, 3> O, F32 scale) {
               // [B H, S, D]; weight of key j < i: sigmoid(z_ij) prod over j < k < i of (1 - sigmoid(z_ik))
               num_warps(c.warps);
               auto bh = program_id(1), m0 = program_id(0) * c.BM;
               auto q = Q.load({bh, m0, 0}, {c.BM, c.D});
               auto rows = (m0 + arange(0, c.BM)).col();
               Tile acc = zeros({c.BM, c.D}, f32), left = zeros({c.BM, 1}, f32);  // log2 of what is left
               auto blocks = cdiv(m0 + c.BM, c.BN);
               for (auto i : range(0, blocks, {.stages = c.stages})) {
                 auto n = (blocks - 1 - i) * c.BN;
                 auto z = dot(q, trans(K.load({bh, n, 0}, {c.BN, c.D}))) * (scale * kLog2e);
                 auto before = (n + arange(0, c.BN)).row() < rows;
                 auto soft = max(z, 0.f) + log2(1.f + exp2(-abs(z)));  // log2(1 + 2^z)
                 auto rest = where(before, -soft, 0.f);
                 auto after = cumsum(rest, axis(1), {.reverse = true}) - rest;
                 auto p = where(before, exp2(z - soft + after + left), 0.f);
                 acc = dot(cast(p, f16), V.load({bh, n, 0}, {c.BN, c.D}), acc);
                 left += sum(rest, axis(1));
               }
               O.store({bh, m0, 0}, reshape(cast(acc, f16), {1, c.BM, c.D}));
             }).grid([](const StickCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
Register r4("stick_breaking", [](Env& e) {
  int B = e.big ? 64 : 2, S = e.big ? 4096 : 150, D = e.big ? 64 : 32;
  auto q = random<half>(e, size_t(B) * S * D), k = random<half>(e, size_t(B) * S * D),
       v = random<half>(e, size_t(B) * S * D);
  auto o = constant<half>(e, size_t(B) * S * D, NAN);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * B * double(S) * S * D;
  j.add(stick, e.big ? StickCfg{} : StickCfg{64, 32, D, 2, 4}, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D),
        o.view(B, S, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(B) * S * D);
    for (int b = 0; b < B; ++b)
      for (int i = 0; i < S; ++i) {
        double left = 1;
        for (int n = i - 1; n >= 0; --n) {
          double z = 0;
          for (int d = 0; d < D; ++d) z += q[(size_t(b) * S + i) * D + d] * k[(size_t(b) * S + n) * D + d];
          const double share = 1 / (1 + std::exp(-z * scale));
          for (int d = 0; d < D; ++d)
            want[(size_t(b) * S + i) * D + d] += left * share * v[(size_t(b) * S + n) * D + d];
          left *= 1 - share;
        }
      }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- a step of ring attention: keys of one neighbour join the state (accumulator, maximum, sum) that lies in memory
struct RingCfg {
  int BM = 128, BN = 128, D = 128, stages = 2, warps = 8;
};
auto ring = kernel("user_ring_step", [](const RingCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                        Tensor<const half, 3> V, Tensor<float, 3> A, Tensor<float, 2> M,
                                        Tensor<float, 2> L, F32 scale) {
              // Q, A [H, S, D], K, V [H, N, D], M, L [H, S]; M of base 2, -inf at first
              num_warps(c.warps);
              auto h = program_id(1), m0 = program_id(0) * c.BM;
              auto q = Q.load({h, m0, 0}, {c.BM, c.D});
              Tile acc = A.load({h, m0, 0}, {c.BM, c.D});
              Tile m = M.load({h, m0}, {c.BM}).col(), l = L.load({h, m0}, {c.BM}).col();
              for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
                auto s = dot(q, trans(K.load({h, n, 0}, {c.BN, c.D}))) * (scale * kLog2e);
                s = where((n + arange(0, c.BN)).row() < K.dim(1), s, -INFINITY);
                auto m2 = max(m, max(s, axis(1)));
                auto p = exp2(s - m2), alpha = exp2(m - m2);
                l = l * alpha + sum(p, axis(1));
                acc = dot(cast(p, f16), V.load({h, n, 0}, {c.BN, c.D}), acc * alpha);
                m = m2;
              }
              A.store({h, m0, 0}, expand_dims(acc, 0));
              M.store({h, m0}, trans(m));
              L.store({h, m0}, trans(l));
            }).grid([](const RingCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
Register r5("ring_step", [](Env& e) {
  int H = e.big ? 32 : 2, S = e.big ? 4096 : 150, N = e.big ? 4096 : 70, D = e.big ? 128 : 32;
  auto q = random<half>(e, size_t(H) * S * D);
  std::vector<Array<half>> k, v;
  for (int i = 0; i < (e.big ? 1 : 2); ++i)
    k.push_back(random<half>(e, size_t(H) * N * D)), v.push_back(random<half>(e, size_t(H) * N * D));
  auto a = constant<float>(e, size_t(H) * S * D, 0), m = constant<float>(e, size_t(H) * S, -INFINITY),
       l = constant<float>(e, size_t(H) * S, 0);
  float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * H * double(S) * N * D;
  for (size_t i = 0; i < k.size(); ++i)
    j.add(ring, e.big ? RingCfg{128, 64, 128, 3, 8} : RingCfg{64, 32, D, 2, 4}, q.view(H, S, D), k[i].view(H, N, D),
          v[i].view(H, N, D), a.view(H, S, D), m.view(H, S), l.view(H, S), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * S * D), got;
    for (int h = 0; h < H; ++h)
      for (int s = 0; s < S; ++s) {
        const size_t row = size_t(h) * S + s;
        std::vector<double> w;
        double total = 0;
        for (size_t i = 0; i < k.size(); ++i)
          for (int n = 0; n < N; ++n) {
            double x = 0;
            for (int d = 0; d < D; ++d) x += q[row * D + d] * k[i][(size_t(h) * N + n) * D + d];
            w.push_back(std::exp(x * scale)), total += w.back();
          }
        for (size_t x = 0; x < w.size(); ++x)
          for (int d = 0; d < D; ++d) want[row * D + d] += w[x] / total * v[x / N][(size_t(h) * N + x % N) * D + d];
      }
    const auto sums = a.now(), weights = l.now();
    for (size_t i = 0; i < sums.size(); ++i) got.push_back(sums[i] / weights[i / D]);
    return agree(got, want, 3e-3, 3e-3);
  };
  return j;
});

}  // namespace frontiers
}  // namespace users
