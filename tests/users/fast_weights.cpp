// fast_weights.cpp - sequences whose state learns while it is read, and attention whose weights depend on distance in
// unusual ways: levels of a Fenwick tree, buckets that grow with the distance, factors of 8 bits.
#include "tests/users/use.h"
namespace users {
namespace fast_weights {

// --- test-time training: a linear model W, b per head takes a gradient step on every chunk of tokens, then answers
struct LearnCfg {
  int C = 16, D = 64, warps = 4;
};
auto ttt =
    kernel("user_ttt", [](const LearnCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                          Tensor<const bfloat16, 3> V, Tensor<const float, 2> rate, Tensor<const float, 3> W0,
                          Tensor<const float, 2> gamma, Tensor<const float, 2> beta, Tensor<bfloat16, 3> O,
                          Tensor<float, 3> W1) {
      num_warps(c.warps);
      auto h = program_id(0);
      auto g = gamma.load({h % gamma.dim(0), 0}, {c.D}).row(), b = beta.load({h % gamma.dim(0), 0}, {c.D}).row();
      Tile w = W0.load({h, 0, 0}, {c.D, c.D});
      auto at = arange(0, c.C);
      auto lower = at.col() >= at.row();
      for (auto t : range(0, Q.dim(1), c.C)) {
        auto q = Q.load({h, t, 0}, {c.C, c.D}), k = K.load({h, t, 0}, {c.C, c.D}), v = V.load({h, t, 0}, {c.C, c.D});
        auto eta = rate.load({h, t}, {c.C});
        // what the model makes of the keys, normalised, beside what it should be: v - k
        auto z = dot(k, cast(w, bf16));
        auto mean = sum(z, axis(1)) / float(c.D);
        auto centred = z - mean;
        auto scale = rsqrt(sum(centred * centred, axis(1)) / float(c.D) + 1e-6f);
        auto x = centred * scale;
        auto error = (x * g + b - (cast(v, f32) - cast(k, f32))) * g;
        auto grad = (error - sum(error, axis(1)) / float(c.D) - x * (sum(error * x, axis(1)) / float(c.D))) * scale;
        auto step = cast(grad * eta.col(), bf16);
        // answers: the old model, less what the steps of this token and those before it change
        auto scores = where(lower, dot(q, trans(k)), 0.f);
        Tile y = dot(q, cast(w, bf16));
        y -= dot(cast(scores, bf16), step);
        auto m = sum(y, axis(1)) / float(c.D);
        auto yc = y - m;
        auto out = yc * rsqrt(sum(yc * yc, axis(1)) / float(c.D) + 1e-6f) * g + b + cast(q, f32);
        O.store({h, t, 0}, cast(out, bf16));
        w -= dot(trans(k), step);
      }
      W1.store({h, 0, 0}, w);
    }).grid([](const LearnCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r1("ttt", [](Env& e) {
  int H = e.big ? 128 : 3, T = e.big ? 2048 : 40, D = e.big ? e.field("D", 64) : 32, heads = e.big ? 32 : 2;
  auto q = random<bfloat16>(e, size_t(H) * T * D), k = random<bfloat16>(e, size_t(H) * T * D, -.5, .5),
       v = random<bfloat16>(e, size_t(H) * T * D);
  auto rate = random<float>(e, size_t(H) * T, 0, .01), w0 = random<float>(e, size_t(H) * D * D, -.1, .1);
  auto gamma = random<float>(e, heads * D, .8, 1.2), beta = random<float>(e, heads * D, -.1, .1);
  auto o = constant<bfloat16>(e, size_t(H) * T * D, NAN);
  auto w1 = constant<float>(e, size_t(H) * D * D, NAN);
  Job j;
  const LearnCfg cfg{16, D, e.field("warps", 4)};
  j.mbytes = 8e-6 * H * T * D;
  j.add(ttt, cfg, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), rate.view(H, T), w0.view(H, D, D),
        gamma.view(heads, D), beta.view(heads, D), o.view(H, T, D), w1.view(H, D, D));
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D), last(size_t(H) * D * D);
    for (int h = 0; h < H; ++h) {
      std::vector<double> w(D * D), sums;
      for (int i = 0; i < D * D; ++i) w[i] = w0[size_t(h) * D * D + i];
      const size_t base = size_t(h) * T * D;
      auto norm = [&](std::vector<double>& z) {
        double m = 0, s = 0;
        for (double x : z) m += x / D;
        for (double x : z) s += (x - m) * (x - m) / D;
        s = 1 / std::sqrt(s + 1e-6);
        for (double& x : z) x = (x - m) * s;
        return s;
      };
      for (int t0 = 0; t0 < T; t0 += cfg.C) {
        std::vector<double> old = w;
        for (int t = t0; t < std::min(T, t0 + cfg.C); ++t) {
          std::vector<double> z(D), y(D), er(D);
          for (int d = 0; d < D; ++d)
            for (int i = 0; i < D; ++i) z[d] += k[base + size_t(t) * D + i] * old[i * D + d];
          const double s = norm(z);
          double me = 0, mx = 0;
          for (int d = 0; d < D; ++d) {
            const double g = gamma[h % heads * D + d];
            er[d] =
                (z[d] * g + beta[h % heads * D + d] - v[base + size_t(t) * D + d] + k[base + size_t(t) * D + d]) * g;
            me += er[d] / D, mx += er[d] * z[d] / D;
          }
          for (int d = 0; d < D; ++d) {
            const double step = (er[d] - me - z[d] * mx) * s * rate[size_t(h) * T + t];
            for (int i = 0; i < D; ++i) w[i * D + d] -= k[base + size_t(t) * D + i] * step;
          }
          for (int d = 0; d < D; ++d)
            for (int i = 0; i < D; ++i) y[d] += q[base + size_t(t) * D + i] * w[i * D + d];
          norm(y);
          for (int d = 0; d < D; ++d)
            want[base + size_t(t) * D + d] =
                y[d] * gamma[h % heads * D + d] + beta[h % heads * D + d] + q[base + size_t(t) * D + d];
        }
      }
      std::copy(w.begin(), w.end(), last.begin() + size_t(h) * D * D);
    }
    auto wrong = agree(o.now(), want, 6e-2, 3e-2);
    return wrong.empty() ? agree(w1.now(), last, 1e-2, 2e-2) : wrong;
  };
  return j;
});

// --- log-linear attention inside a chunk: the weight of a pair depends on the level at which the two positions part
struct LevelCfg {
  int C = 64, D = 64, levels = 7, warps = 4;
};
auto level_scores =
    kernel("user_level_scores", [](const LevelCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                   Tensor<const bfloat16, 4> V, Tensor<const float, 3> A, Tensor<const float, 4> L,
                                   Tensor<bfloat16, 4> O) {
      // Q, K, V [B, T, H, D], decays A [B, T, H], level weights L [B, T, H, levels]
      num_warps(c.warps);
      auto t = program_id(0) * c.C, h = program_id(1), b = program_id(2);
      auto box = [&](const auto& X) { return reshape(X.load({b, t, h, 0}, {1, c.C, 1, c.D}), {c.C, c.D}); };
      auto q = box(Q), k = box(K), v = box(V);
      auto decay = cumsum(reshape(A.load({b, t, h}, {1, c.C, 1}), {c.C}), axis(0));
      auto weights = reshape(L.load({b, t, h, 0}, {1, c.C, 1, 8}), {c.C, 8});
      auto i = arange(0, c.C);
      auto level = 32 - countl_zero(i.col() ^ i.row());
      auto w = take(weights, level, 1);
      auto s = where(i.col() >= i.row(), dot(q, trans(k)) * exp(decay.col() - decay.row()) * w, 0.f);
      O.store({b, t, h, 0}, expand_dims(expand_dims(cast(dot(cast(s, bf16), v), bf16), 1), 0));
    }).grid([](const LevelCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.C), q.shape[2], q.shape[0]};
    });
Register r2("level_scores", [](Env& e) {
  int B = e.big ? 4 : 2, T = e.big ? 8192 : 100, H = e.big ? 16 : 3, D = e.big ? 128 : 32;
  size_t n = size_t(B) * T * H;
  auto q = random<bfloat16>(e, n * D), k = random<bfloat16>(e, n * D), v = random<bfloat16>(e, n * D);
  auto a = random<float>(e, n, -.1, 0), l = random<float>(e, n * 7, 0, 1);
  auto o = constant<bfloat16>(e, n * D, NAN);
  Job j;
  j.mbytes = 1e-6 * n * (8 * D + 32);
  j.add(level_scores, LevelCfg{64, D, 7, e.field("warps", 4)}, q.view(B, T, H, D), k.view(B, T, H, D),
        v.view(B, T, H, D), a.view(B, T, H), l.view(B, T, H, 7), o.view(B, T, H, D));
  j.check = [=] {
    std::vector<double> want(n * D);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int t = 0; t < T; ++t) {
          double decay = 0;
          for (int s = t; s >= t / 64 * 64; decay += a[(size_t(b) * T + s) * H + h], --s) {
            double p = 0;
            const size_t x = (size_t(b) * T + t) * H + h, y = (size_t(b) * T + s) * H + h;
            for (int d = 0; d < D; ++d) p += q[x * D + d] * k[y * D + d];
            int level = 0;
            for (int m = (t ^ s) & 63; m; m /= 2) ++level;
            for (int d = 0; d < D; ++d) want[x * D + d] += p * std::exp(decay) * l[x * 7 + level] * v[y * D + d];
          }
        }
    return agree(o.now(), want, 3e-2, 2e-2);
  };
  return j;
});

// --- attention with T5's bias: a table by bucket, buckets grow with the logarithm of the distance, both directions
struct BucketCfg {
  int BM = 64, BN = 64, D = 64, buckets = 32, farthest = 128, stages = 2, warps = 4;
};
auto t5 = kernel("user_t5_attention", [](const BucketCfg& c, Tensor<const half, 4> Q, Tensor<const half, 4> K,
                                         Tensor<const half, 4> V, Tensor<const float, 2> table,
                                         Tensor<const int32_t, 1> lengths, Tensor<half, 4> O) {
            // [B, H, T, D]; table [buckets, H]
            num_warps(c.warps);
            auto m = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
            auto T = lengths.load({b});
            return_if(m >= T);
            auto q = Q.load({b, h, m, 0}, {c.BM, c.D});
            auto rows = (m + arange(0, c.BM)).col();
            Tile top = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
            const int half_way = c.buckets / 2, exact = half_way / 2;
            for (auto n : range(0, T, c.BN, {.stages = c.stages})) {
              auto columns = (n + arange(0, c.BN)).row();
              auto away = columns - rows;
              auto far = abs(away);
              auto grown = exact + cast(log(max(cast(far, f32), 1.f) / float(exact)) *
                                            float((half_way - exact) / std::log(double(c.farthest) / exact)),
                                        i32);
              auto bucket = where(away > 0, half_way, 0) + where(far < exact, far, min(grown, half_way - 1));
              auto bias = load(table.ptr() + bucket * table.dim(1) + h);
              auto s = dot(q, trans(K.load({b, h, n, 0}, {c.BN, c.D}))) + bias;
              s = where(columns < T, s, -INFINITY);
              auto now = max(top, max(s, axis(1)));
              auto p = exp(s - now), shrink = exp(top - now);
              l = l * shrink + sum(p, axis(1));
              acc = dot(cast(p, f16), V.load({b, h, n, 0}, {c.BN, c.D}), acc * shrink);
              top = now;
            }
            store(O.ptr() + ((b * O.dim(1) + h) * O.dim(2) + rows) * c.D + arange(0, c.D).row(), cast(acc / l, f16),
                  {.mask = broadcast_to(rows < T, {c.BM, c.D})});
          }).grid([](const BucketCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[2], c.BM), q.shape[1], q.shape[0]};
});
Register r3("t5_attention", [](Env& e) {
  int B = e.big ? 16 : 2, H = e.big ? 12 : 2, T = e.big ? 2048 : 170, D = 64;
  size_t n = size_t(B) * H * T * D;
  auto q = random<half>(e, n, -.3, .3), k = random<half>(e, n), v = random<half>(e, n);
  auto table = random<float>(e, 32 * H);
  auto lengths = filled<int32_t>(e, B, [&](size_t i) { return e.big ? T : i ? 77 : T; });
  auto o = constant<half>(e, n, 0);
  Job j;
  j.gflop = 4e-9 * B * H * double(T) * T * D;
  j.add(t5, BucketCfg{e.field("BM", 64), e.field("BN", 64), 64, 32, 128, e.field("stages", 2), e.field("warps", 4)},
        q.view(B, H, T, D), k.view(B, H, T, D), v.view(B, H, T, D), table.view(32, H), lengths.view(B),
        o.view(B, H, T, D));
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int t = 0; t < lengths.h[b]; ++t) {
          const size_t base = (size_t(b) * H + h) * T;
          std::vector<double> p(lengths.h[b]);
          double sum = 0;
          for (int s = 0; s < lengths.h[b]; ++s) {
            int far = std::abs(s - t), bucket = far;
            if (far >= 8) bucket = std::min(15, 8 + int(float(std::log(far / 8.f)) * float(8 / std::log(16.))));
            bucket += s > t ? 16 : 0;
            double x = table[bucket * H + h];
            for (int d = 0; d < D; ++d) x += q[(base + t) * D + d] * k[(base + s) * D + d];
            sum += p[s] = std::exp(x);
          }
          for (int s = 0; s < lengths.h[b]; ++s)
            for (int d = 0; d < D; ++d) want[(base + t) * D + d] += p[s] / sum * v[(base + s) * D + d];
        }
    return agree(o.now(), want, 5e-3, 1e-2);
  };
  return j;
});

// --- attention of e4m3 queries, keys and values with a factor per block of rows; values turned in the kernel
struct F8Cfg {
  int BM = 128, BN = 128, D = 128, stages = 2, warps = 8;
};
auto f8_attention =
    kernel("user_f8_attention", [](const F8Cfg& c, Tensor<const fp8_e4m3, 3> Q, Tensor<const fp8_e4m3, 3> K,
                                   Tensor<const fp8_e4m3, 3> V, Tensor<const float, 2> qs, Tensor<const float, 2> ks,
                                   Tensor<const float, 1> vs, Tensor<bfloat16, 3> O) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, h = program_id(1);
      auto q = Q.load({h, m, 0}, {c.BM, c.D});
      auto scale = qs.load({h, program_id(0)}) * 1.44269504f / std::sqrt(float(c.D));
      Tile top = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32);
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
        auto s = dot(q, trans(K.load({h, n, 0}, {c.BN, c.D}))) * (scale * ks.load({h, n / c.BN}));
        auto now = max(top, max(s, axis(1)));
        auto p = exp2(s - now + 8.f), shrink = exp2(top - now);
        l = l * shrink + sum(p, axis(1));
        acc = dot(cast(p, f8e4m3), V.load({h, n, 0}, {c.BN, c.D}), acc * shrink);
        top = now;
      }
      O.store({h, m, 0}, cast(acc / l * vs.load({h}), bf16));
    }).grid([](const F8Cfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r4("f8_attention", [](Env& e) {
  int H = e.big ? 64 : 2, T = e.big ? 4096 : 128, D = e.big ? 128 : 64;
  const F8Cfg cfg =
      e.big ? F8Cfg{128, e.field("BN", 64), 128, e.field("stages", 2), e.field("warps", 8)} : F8Cfg{64, 32, 64, 2, 4};
  size_t n = size_t(H) * T * D;
  auto q = random<fp8_e4m3>(e, n, -4, 4), k = random<fp8_e4m3>(e, n, -4, 4), v = random<fp8_e4m3>(e, n, -4, 4);
  int qb = T / cfg.BM, kb = T / cfg.BN;
  auto qs = random<float>(e, H * qb, .1, .3), ks = random<float>(e, H * kb, .1, .3), vs = random<float>(e, H, .5, 1);
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 4e-9 * H * double(T) * T * D;
  j.add(f8_attention, cfg, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), qs.view(H, qb), ks.view(H, kb),
        vs.view(H), o.view(H, T, D));
  j.check = [=] {
    std::vector<double> want(n);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t) {
        std::vector<double> p(T);
        double sum = 0, top = -1e30;
        for (int s = 0; s < T; ++s) {
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[(size_t(h) * T + t) * D + d] * k[(size_t(h) * T + s) * D + d];
          p[s] = x * qs[h * qb + t / cfg.BM] * ks[h * kb + s / cfg.BN] / std::sqrt(double(D));
          top = std::max(top, p[s]);
        }
        for (double& x : p) sum += x = std::exp(x - top);
        for (int s = 0; s < T; ++s)
          for (int d = 0; d < D; ++d)
            want[(size_t(h) * T + t) * D + d] += p[s] / sum * v[(size_t(h) * T + s) * D + d] * vs[h];
      }
    return agree(o.now(), want, .06, .03);
  };
  return j;
});

}  // namespace fast_weights
}  // namespace users
