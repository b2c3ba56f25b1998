// mixed_masks.cpp - attention whose masks and streams come from several places: segments, a window and slopes together;
// a ring of 8-bit keys behind kept first tokens; text and images under one maximum; a head that samples; running means.
#include "tests/users/use.h"
namespace users {
namespace mixed_masks {

constexpr float kLog2e = 1.4426950408889634f;

// --- packed documents: same segment, causal, inside a window, with slopes (ALiBi); heads of 72
struct SegCfg {
  int BM = 64, BN = 64, D = 72, stages = 3, warps = 4;
};
auto segment_attention =
    kernel("user_segment_slopes", [](const SegCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                     Tensor<const bfloat16, 4> V, Tensor<const int, 2> seg, Ptr<const float> slopes,
                                     Tensor<bfloat16, 4> O, I32 window, F32 scale) {
      // Q, K, V, O [B, S, H, D]; seg [B, S]
      num_warps(c.warps);
      auto m0 = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
      auto box = [&](const auto& t, const Tile& at, int n) {
        return reshape(t.load({b, at, h, 0}, {1, n, 1, c.D}), {n, c.D});
      };
      auto q = box(Q, m0, c.BM);
      auto sq = seg.load({b, m0}, {c.BM}, {.pad = -1}).col();
      auto row = (m0 + arange(0, c.BM)).col();
      auto slope = load(slopes + h) * kLog2e;
      Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      for (auto n :
           range(max(m0 - window + 1, 0) / c.BN * c.BN, min(m0 + c.BM, K.dim(1)), c.BN, {.stages = c.stages})) {
        auto sk = seg.load({b, n}, {c.BN}, {.pad = -2}).row();
        auto away = row - (n + arange(0, c.BN)).row();
        auto s = dot(q, trans(box(K, n, c.BN))) * (scale * kLog2e) - slope * cast(away, f32);
        s = where((sq == sk) & (away >= 0) & (away < window), s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto safe = where(m2 == -INFINITY, 0.f, m2);
        auto p = exp2(s - safe), alpha = exp2(m - safe);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), box(V, n, c.BN), acc * alpha);
        m = m2;
      }
      O.store({b, m0, h, 0}, reshape(cast(acc / l, bf16), {1, c.BM, 1, c.D}));
    }).grid([](const SegCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[2], q.shape[0]};
    });
Register r1("segment_slopes", [](Env& e) {
  const int B = e.big ? 4 : 2, S = e.big ? 8192 : 203, H = e.big ? 16 : 2, D = 72, window = e.big ? 1024 : 70;
  const size_t n = size_t(B) * S * H * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto seg = filled<int>(e, size_t(B) * S, [&](size_t i) { return int(i % S) / (e.big ? 1500 : 97); });
  auto slopes = filled<float>(e, H, [&](size_t i) { return std::exp2(-8.f * float(i + 1) / float(H)); });
  auto o = constant<bfloat16>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  SegCfg c{e.field("BM", 64), e.field("BN", 64), D, e.field("stages", 3), e.field("warps", 4)};
  Job j;
  j.gflop = 4e-9 * B * double(S) * H * D * window;
  j.add(segment_attention, c, q.view(B, S, H, D), k.view(B, S, H, D), v.view(B, S, H, D), seg.view(B, S), slopes.p,
        o.view(B, S, H, D), window, scale);
  j.check = [=] {
    std::vector<double> want(n), p(S);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int i = 0; i < S; ++i) {
          auto at = [&](int t) { return ((size_t(b) * S + t) * H + h) * D; };
          double total = 0;
          for (int t = 0; t <= i; ++t) {
            p[t] = 0;
            if (i - t >= window || seg.h[size_t(b) * S + i] != seg.h[size_t(b) * S + t]) continue;
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[at(i) + d] * k[at(t) + d];
            total += p[t] = std::exp(s * scale - slopes[h] * (i - t));
          }
          for (int t = 0; t <= i; ++t)
            for (int d = 0; d < D; ++d) want[at(i) + d] += p[t] / total * v[at(t) + d];
        }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- decoding from a ring: the first SINKS tokens stay, the others go round; keys and values of 8 bits with a scale a
// head, a learned logit of nothing a head, scores fall with age; five query heads share one of keys
struct RingCfg {
  int G = 5, D = 96, BN = 64, SINKS = 4, stages = 3, warps = 4;
};
auto ring_attention =
    kernel("user_ring_sinks", [](const RingCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const fp8_e4m3, 4> K,
                                 Tensor<const fp8_e4m3, 4> V, Ptr<const float> kscale, Ptr<const float> vscale,
                                 Ptr<const float> nothing, Ptr<const int64_t> last, Tensor<bfloat16, 4> O, F32 scale,
                                 F32 fade) {
      // Q, O [B, Hk, G, D]; K, V [B, W, Hk, D]; last [B]: place of the newest token
      num_warps(c.warps);
      auto h = program_id(0), b = program_id(1);
      auto W = K.dim(1);
      auto newest = load(last + b);
      auto q = reshape(Q.load({b, h, 0, 0}, {1, 1, c.G, c.D}), {c.G, c.D});
      auto by = load(kscale + h) * scale * kLog2e;
      auto start = (load(nothing + h * c.G + arange(0, c.G)) * kLog2e).col();
      Tile m = start, l = ones({c.G, 1}, f32), acc = zeros({c.G, c.D}, f32);
      auto filled = cast(min(newest + 1, cast(W, i64)), i32);
      for (auto n : range(0, filled, c.BN, {.stages = c.stages})) {
        auto slot = n + arange(0, c.BN);
        auto s64 = cast(slot, i64);
        auto age = where(slot < c.SINKS, newest - s64, floor_mod(newest - s64, cast(W - c.SINKS, i64)));
        auto k = reshape(K.load({b, n, h, 0}, {1, c.BN, 1, c.D}), {c.BN, c.D});
        auto v = reshape(V.load({b, n, h, 0}, {1, c.BN, 1, c.D}), {c.BN, c.D});
        auto s = dot(q, trans(cast(k, bf16))) * by - (cast(age, f32) * (fade * kLog2e)).row();
        s = where(slot.row() < filled, s, -INFINITY);
        auto m2 = max(m, max(s, axis(1)));
        auto p = exp2(s - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), cast(v, bf16), acc * alpha);
        m = m2;
      }
      O.store({b, h, 0, 0}, reshape(cast(acc / l * load(vscale + h), bf16), {1, 1, c.G, c.D}));
    }).grid([](const RingCfg&, const auto& q, const auto&...) {
      return Grid{q.shape[1], q.shape[0]};
    });
Register r2("ring_sinks", [](Env& e) {
  const int B = e.big ? 64 : 3, W = e.big ? 4100 : 150, H = e.big ? 8 : 2, G = 5, D = 96, SINKS = 4;
  auto q = random<bfloat16>(e, size_t(B) * H * G * D);
  auto k = random<fp8_e4m3>(e, size_t(B) * W * H * D, -8, 8), v = random<fp8_e4m3>(e, size_t(B) * W * H * D, -8, 8);
  auto ks = random<float>(e, H, .1, .2), vs = random<float>(e, H, .1, .2), none = random<float>(e, H * G, 0, 3);
  const int64_t places[] = {77, 149, 9001};  // half full, just full, gone round many times
  auto last = filled<int64_t>(e, B, [&](size_t i) { return e.big ? 100000 + int64_t(i) : places[i]; });
  auto o = constant<bfloat16>(e, size_t(B) * H * G * D, NAN);
  const float scale = 1 / std::sqrt(float(D)), fade = 1.f / 64;
  Job j;
  j.mbytes = 2e-6 * B * double(W) * H * D;
  j.add(ring_attention, RingCfg{G, D, e.field("BN", 64), SINKS, e.field("stages", 3), e.field("warps", 4)},
        q.view(B, H, G, D), k.view(B, W, H, D), v.view(B, W, H, D), ks.p, vs.p, none.p, last.p, o.view(B, H, G, D),
        scale, fade);
  j.check = [=] {
    std::vector<double> want(size_t(B) * H * G * D);
    for (int b = 0; b < B; ++b) {
      const int64_t t = last.h[b];
      std::vector<int64_t> place(W, -1);  // what a ring written token by token holds
      for (int64_t i = 0; i <= t; ++i) place[i < W ? i : SINKS + (i - SINKS) % (W - SINKS)] = i;
      for (int h = 0; h < H; ++h)
        for (int g = 0; g < G; ++g) {
          const size_t r = ((size_t(b) * H + h) * G + g) * D;
          std::vector<double> p(W);
          double total = std::exp(none[h * G + g]);
          for (int s = 0; s < W; ++s)
            if (place[s] >= 0) {
              double x = 0;
              for (int d = 0; d < D; ++d) x += q[r + d] * k[((size_t(b) * W + s) * H + h) * D + d];
              total += p[s] = std::exp(x * ks[h] * scale - fade * double(t - place[s]));
            }
          for (int s = 0; s < W; ++s)
            for (int d = 0; d < D; ++d) want[r + d] += p[s] / total * v[((size_t(b) * W + s) * H + h) * D + d] * vs[h];
        }
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- text and image keys in one loop under one maximum: the images' part enters through a gate a head
struct TwoCfg {
  int BM = 64, BT = 64, BI = 32, D = 64, stages = 2, warps = 8;
};
auto two_streams =
    kernel("user_two_streams", [](const TwoCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> TK,
                                  Tensor<const half, 3> TV, Tensor<const half, 3> IK, Tensor<const half, 3> IV,
                                  Ptr<const float> gate, Tensor<half, 3> O, F32 scale) {
      // Q, O [H, S, D], TK, TV [H, T, D], IK, IV [H, I, D]
      num_warps(c.warps);
      auto h = program_id(1), m0 = program_id(0) * c.BM;
      auto q = Q.load({h, m0, 0}, {c.BM, c.D});
      Tile at = zeros({c.BM, c.D}, f32), ai = zeros({c.BM, c.D}, f32);
      Tile m = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      auto T = TK.dim(1), I = IK.dim(1);
      for (auto i : range(max(cdiv(T, c.BT), cdiv(I, c.BI)), {.stages = c.stages})) {
        auto t0 = i * c.BT, i0 = i * c.BI;
        auto st = dot(q, trans(TK.load({h, t0, 0}, {c.BT, c.D}))) * (scale * kLog2e);
        auto si = dot(q, trans(IK.load({h, i0, 0}, {c.BI, c.D}))) * (scale * kLog2e);
        st = where((t0 + arange(0, c.BT)).row() < T, st, -INFINITY);
        si = where((i0 + arange(0, c.BI)).row() < I, si, -INFINITY);
        auto m2 = max(m, max(max(st, axis(1)), max(si, axis(1))));
        auto pt = exp2(st - m2), pi = exp2(si - m2), alpha = exp2(m - m2);
        l = l * alpha + sum(pt, axis(1)) + sum(pi, axis(1));
        at = dot(cast(pt, f16), TV.load({h, t0, 0}, {c.BT, c.D}), at * alpha);
        ai = dot(cast(pi, f16), IV.load({h, i0, 0}, {c.BI, c.D}), ai * alpha);
        m = m2;
      }
      O.store({h, m0, 0}, reshape(cast((at + tanh(load(gate + h)) * ai) / l, f16), {1, c.BM, c.D}));
    }).grid([](const TwoCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r3("two_streams", [](Env& e) {
  const int H = e.big ? 32 : 2, S = e.big ? 4096 : 130, T = e.big ? 4096 : 131, I = e.big ? 1601 : 99,
            D = e.big ? 128 : 64;
  auto q = random<half>(e, size_t(H) * S * D), tk = random<half>(e, size_t(H) * T * D),
       tv = random<half>(e, size_t(H) * T * D), ik = random<half>(e, size_t(H) * I * D),
       iv = random<half>(e, size_t(H) * I * D);
  auto gate = random<float>(e, H);
  auto o = constant<half>(e, size_t(H) * S * D, NAN);
  const float scale = 2 / std::sqrt(float(D));
  TwoCfg c{e.field("BM", 64),    e.field("BT", 64),
           e.field("BI", 32),    D,
           e.field("stages", 2), e.field("warps", e.big ? 4 : 8)};
  Job j;
  j.gflop = 4e-9 * H * double(S) * (T + I) * D;
  j.add(two_streams, c, q.view(H, S, D), tk.view(H, T, D), tv.view(H, T, D), ik.view(H, I, D), iv.view(H, I, D), gate.p,
        o.view(H, S, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * S * D);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < S; ++i) {
        const size_t r = (size_t(h) * S + i) * D;
        double total = 0;
        for (int n = 0; n < T + I; ++n) {
          const size_t at = n < T ? (size_t(h) * T + n) * D : (size_t(h) * I + n - T) * D;
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[r + d] * (n < T ? tk[at + d] : ik[at + d]);
          const double p = std::exp(s * scale);
          total += p;
          for (int d = 0; d < D; ++d) want[r + d] += p * (n < T ? tv[at + d] : std::tanh(gate[h]) * iv[at + d]);
        }
        for (int d = 0; d < D; ++d) want[r + d] /= total;
      }
    return agree(o.now(), want, 3e-3, 3e-3);
  };
  return j;
});

// --- a head that samples: logits never reach memory, the largest of logit / temperature + Gumbel noise wins
struct DrawCfg {
  int BM = 16, BV = 128, BK = 64, M2 = 64, stages = 4, warps = 4;
};
auto draw_parts = kernel("user_sampled_head",
                         [](const DrawCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W,
                            Ptr<const float> temperature, Tensor<float, 2> best, Tensor<int, 2> token, I64 seed) {
                           // X [M, K], W [V, K]; best, token [M, parts]
                           num_warps(c.warps);
                           auto part = program_id(0), m0 = program_id(1) * c.BM;
                           auto V = W.dim(0), per = cdiv(cdiv(V, c.BV), num_programs(0)) * c.BV;
                           auto row = m0 + arange(0, c.BM);
                           auto t = load(temperature + row, {.mask = row < X.dim(0)});
                           Tile top = full({c.BM}, -INFINITY, f32), at = zeros({c.BM}, i32);
                           for (auto v0 : range(part * per, min(part * per + per, V), c.BV)) {
                             Tile acc = zeros({c.BM, c.BV}, f32);
                             for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
                               acc = dot(X.load({m0, k}, {c.BM, c.BK}), trans(W.load({v0, k}, {c.BV, c.BK})), acc);
                             auto word = (v0 + arange(0, c.BV)).row();
                             auto u = rand(seed, cast(row, i64).col() * cast(V, i64) + cast(word, i64));
                             auto noise = -log(-log(max(u, 1e-7f)));
                             auto score = where(t.col() > 0.f, acc / max(t.col(), 1e-4f) + noise, acc);
                             auto [value, place] = max_with_index(where(word < V, score, -INFINITY), axis(1));
                             auto better = squeeze(value, 1) > top;  // of equals the first stays
                             at = where(better, v0 + squeeze(place, 1), at);
                             top = where(better, squeeze(value, 1), top);
                           }
                           best.store({m0, part}, top.col());
                           token.store({m0, part}, at.col());
                         });
auto draw_final = kernel("user_sampled_token", [](const DrawCfg& c, Tensor<const float, 2> best,
                                                  Tensor<const int, 2> token, Ptr<int64_t> out) {
                    num_warps(1);
                    auto m = program_id(0);
                    auto b = best.load({m, 0}, {c.M2}, {.pad = -INFINITY});
                    auto winner = argmax(b, axis(0));
                    store(out + m, cast(to_scalar(take(token.load({m, 0}, {c.M2}), winner, 0)), i64));
                  }).grid([](const DrawCfg&, const auto& b, const auto&...) { return Grid{b.shape[0]}; });
Register r4("sampled_head", [](Env& e) {
  const int M = e.big ? 64 : 19, V = e.big ? 128256 : 517, K = e.big ? 4096 : 96, parts = e.big ? 64 : 3;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(V) * K);
  auto t = filled<float>(e, M, [](size_t i) { return i % 4 ? .5f * float(i % 4) : 0.f; });
  auto best = constant<float>(e, M * parts, NAN);
  auto token = constant<int>(e, M * parts, -1);
  auto out = constant<int64_t>(e, M, -1);
  const int64_t seed = 0x123456789;
  DrawCfg c{e.field("BM", 16), e.field("BV", 128), e.field("BK", 64), 64, e.field("stages", 4), e.field("warps", 4)};
  Job j;
  j.mbytes = 2e-6 * V * K;
  j.add(draw_parts.grid([=](const DrawCfg& k, const auto&...) {
    return Grid{parts, cdiv(M, k.BM)};
  }),
        c, x.view(M, K), w.view(V, K), t.p, best.view(M, parts), token.view(M, parts), seed);
  j.add(draw_final, c, best.view(M, parts), token.view(M, parts), out.p);
  j.check = [=] {
    std::vector<double> lost(M);  // by how much the drawn one is below the best
    const auto got = out.now();
    for (int m = 0; m < M; ++m) {
      double most = -INFINITY, mine = -INFINITY;
      for (int v = 0; v < V; ++v) {
        double s = 0;
        for (int k = 0; k < K; ++k) s += x[size_t(m) * K + k] * w[size_t(v) * K + k];
        if (t[m] > 0) {
          const double u = double(reference_philox(seed, uint64_t(m) * V + v)[0] >> 8) * 0x1p-24;
          s = s / t[m] - std::log(-std::log(std::max(u, 1e-7)));
        }
        most = std::max(most, s);
        if (got[m] == v) mine = s;
      }
      lost[m] = most - mine;
    }
    return agree(lost, std::vector<double>(M), 1e-4, 0);
  };
  return j;
});
}  // namespace mixed_masks
}  // namespace users
