// combined_rows.cpp - rows that several things are made of at once: what experts give back, added, normalised and
// quantised; an optimiser whose momentum has 4 bits; losses of several heads that predict tokens further ahead.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace combined_rows {

// --- the end of a layer of experts: weighted rows of experts, a gated shared expert and the stream are added; the sum
// goes on as the stream, and, normalised, as f8 with a factor for every 128 columns, kept column by column
struct Combine {
  int D = 7168, G = 128;
};
auto combine_norm =
    kernel("user_combine_norm",
           [](const Combine& c, Tensor<const bfloat16, 2> experts, Ptr<const int32_t> slots, Ptr<const float> weights,
              Tensor<const bfloat16, 2> shared, Ptr<const bfloat16> gate, Tensor<const bfloat16, 2> stream,
              Tensor<const bfloat16, 1> gamma, Tensor<bfloat16, 2> stream_out, Tensor<fp8_e4m3, 2> y,
              Tensor<float, 2> factors, I32 K, F32 eps) {
             auto t = program_id(0);
             Tile g = sigmoid(cast(load(gate + t), f32));
             Tile acc = cast(stream.load({t, 0}, {c.D}), f32) + g * cast(shared.load({t, 0}, {c.D}), f32);
             for (auto k : range(0, K)) {
               Tile slot = load(slots + (t * K + k));
               continue_if(slot < 0);  // dropped
               acc += load(weights + (t * K + k)) * cast(experts.load({slot, 0}, {c.D}), f32);
             }
             stream_out.store({t, 0}, cast(acc, bf16));
             Tile n = acc * rsqrt(sum(acc * acc) / float(c.D) + eps) * cast(gamma.load({0}, {c.D}), f32);
             Tile groups = reshape(n, {c.D / c.G, c.G});
             Tile factor = max(max(abs(groups), axis(1)) / 448.f, 1e-12f);
             y.store({t, 0}, cast(reshape(groups / factor, {c.D}), f8e4m3));
             factors.store({0, t}, factor);
           })
        .grid([](const Combine&, const auto&, const int32_t*, const float*, const auto& s, const bfloat16*, const auto&,
                 const auto&, const auto&, const auto&, const auto&, int, float) { return Grid{s.shape[0]}; });
Register q1("combine_norm", [](Env& e) {
  const int T = e.big ? 8192 : 9, K = e.big ? 8 : 3, D = e.big ? 7168 : 384, N = T * K;
  auto x = random<bfloat16>(e, size_t(N) * D), shared = random<bfloat16>(e, size_t(T) * D),
       gate = random<bfloat16>(e, T, -3, 3), stream = random<bfloat16>(e, size_t(T) * D, -2, 2),
       gamma = random<bfloat16>(e, D, 0.5, 1.5);
  auto slots = filled<int32_t>(e, N, [&](size_t i) { return (i / K) % 4 == 2 || i % 5 == 1 ? -1 : int(i * 7 % N); });
  auto w = random<float>(e, N, 0, 1);
  auto out = constant<bfloat16>(e, size_t(T) * D, 9);
  auto y = constant<fp8_e4m3>(e, size_t(T) * D, 9);
  auto f = constant<float>(e, size_t(T) * (D / 128), 9);
  Job j;
  j.add(combine_norm, Combine{D}, x.view(N, D), slots.p, w.p, shared.view(T, D), gate.p, stream.view(T, D),
        gamma.view(D), out.view(T, D), y.view(T, D), f.view(D / 128, T), K, 1e-6f);
  j.mbytes = 1e-6 * T * D * (2. * K + 2 + 2 + 2 + 1);
  j.check = [=]() -> std::string {
    std::vector<double> streams, factors(size_t(T) * (D / 128));
    const auto got = y.now();
    const auto units = f.now();
    for (int t = 0; t < T; ++t) {
      std::vector<double> a(D);
      const double open = 1 / (1 + std::exp(-gate[t]));
      for (int d = 0; d < D; ++d) {
        a[d] = stream[size_t(t) * D + d] + open * shared[size_t(t) * D + d];
        for (int k = 0; k < K; ++k)
          if (slots.h[t * K + k] >= 0) a[d] += w[t * K + k] * x[size_t(slots.h[t * K + k]) * D + d];
      }
      streams.insert(streams.end(), a.begin(), a.end());
      const double r = 1 / std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.) / D + 1e-6);
      for (int g = 0; g < D / 128; ++g) {
        double largest = 0;
        for (int d = 0; d < 128; ++d) largest = std::max(largest, std::abs(a[g * 128 + d] * r * gamma[g * 128 + d]));
        factors[size_t(g) * T + t] = largest / 448;
        for (int d = 0; d < 128; ++d) {
          const double want = a[g * 128 + d] * r * gamma[g * 128 + d],
                       is = double(float(got[size_t(t) * D + g * 128 + d])) * units[size_t(g) * T + t];
          if (!(std::abs(is - want) <= std::abs(want) / 15 + largest / 448 * 0x1p-9))
            return "y " + std::to_string(t) + "," + std::to_string(g * 128 + d) + ": " + std::to_string(is) + " for " +
                   std::to_string(want);
        }
      }
    }
    if (auto m = agree(units, factors, 1e-9, 1e-4); !m.empty()) return "factors: " + m;
    return agree(out.now(), streams, 1e-6, 5e-3);
  };
  return j;
});

// --- Lion with a momentum of 4 bits: groups of 96 share a factor, two numbers in a byte, -7 .. 7 around 8. The last
// group may be cut off
struct Lion {
  int G = 16, N = 96;  // groups in a program, elements in a group
};
auto lion4 = kernel("user_lion4",
                    [](const Lion& c, Ptr<float> p, Ptr<const bfloat16> g, Ptr<uint8_t> momentum, Ptr<float> factor,
                       Ptr<const float> clip, I64 n, F32 rate, F32 decay, F32 b1, F32 b2) {
                      Tile group = program_id(0) * c.G + arange(0, c.G);
                      Tile pair = cast(group, i64).col() * (c.N / 2) + arange(0, c.N / 2).row();
                      Tile byte = load(momentum + pair, {.mask = pair * 2 < n, .other = 0x88});
                      Tile f = load(factor + group, {.mask = cast(group, i64) * c.N < n}).col();
                      Tile low = cast(byte & 15, i32) - 8, high = cast(byte >> 4, i32) - 8;
                      Tile m = cast(interleave(low, high), f32) * f;
                      Tile i = cast(group, i64).col() * c.N + arange(0, c.N).row();
                      Tile in = i < n;
                      Tile grad = cast(load(g + i, {.mask = in}), f32) * load(clip);
                      Tile x = load(p + i, {.mask = in});
                      Tile c1 = b1 * m + (1.f - b1) * grad;
                      Tile sign = where(c1 > 0.f, 1.f, where(c1 < 0.f, -1.f, 0.f));
                      store(p + i, x - rate * (sign + decay * x), {.mask = in});
                      m = b2 * m + (1.f - b2) * grad;
                      Tile largest = max(abs(m), axis(1));
                      Tile now = largest / 7.f;
                      Tile q = cast(rint(where(largest > 0.f, m / now, 0.f)), i32) + 8;
                      auto [a, b] = split(reshape(q, {c.G, c.N / 2, 2}));
                      store(momentum + pair, cast(a | (b << 4), u8), {.mask = pair * 2 < n});
                      store(factor + group, squeeze(now, 1), {.mask = cast(group, i64) * c.N < n});
                    })
                 .grid([](const Lion& c, float*, const bfloat16*, uint8_t*, float*, const float*, int64_t n, float,
                          float, float, float) { return Grid{cdiv(n, c.G * c.N)}; });
Register q2("lion4", [](Env& e) {
  const int64_t n = e.big ? 100'000'001 : 96 * 37 + 51;
  const int64_t groups = cdiv(n, 96), bytes = cdiv(n, 2);
  auto p = random<float>(e, n);
  auto g = filled<bfloat16>(e, e.big ? 96 * 4096 : n,
                            [&](size_t i) { return bfloat16(i / 96 % 5 == 2 ? 0.f : float(e.uniform() * 2 - 1)); });
  if (e.big) g = repeated<bfloat16>(e, n, g.h);
  auto m = filled<uint8_t>(e, e.big ? 4096 : bytes, [&](size_t i) {
    if (i / 48 % 5 == 2) return uint8_t(0x88);
    return uint8_t((1 + int(e.uniform() * 15)) | (1 + int(e.uniform() * 15)) << 4);
  });
  if (e.big) m = repeated<uint8_t>(e, bytes, m.h);
  auto f = random<float>(e, groups, 0.01, 0.2);
  auto clip = constant<float>(e, 1, 0.5);
  Job j;
  restore(e, j, p, m, f);
  j.add(lion4, Lion{e.field("G", 16)}, p.p, g.p, m.p, f.p, clip.p, n, 0.01f, 0.1f, 0.9f, 0.99f);
  j.add(lion4, Lion{e.field("G", 16)}, p.p, g.p, m.p, f.p, clip.p, int64_t(0), 0.01f, 0.1f, 0.9f, 0.99f);  // nothing
  j.mbytes = 1e-6 * double(n) * (4 + 4 + 2 + 1);
  j.check = [=]() -> std::string {
    std::vector<double> params, moments;
    const auto bytesNow = m.now();
    const auto units = f.now();
    for (int64_t k = 0; k < groups; ++k) {
      double largest = 0;
      for (int64_t i = k * 96; i < std::min(n, (k + 1) * 96); ++i) {
        const double before = double(m.h[i / 2] >> (i % 2 * 4) & 15) - 8, grad = g[i] * 0.5, had = before * f[k];
        const double c1 = double(0.9f) * had + double(1 - 0.9f) * grad;
        params.push_back(p[i] - double(0.01f) * ((c1 > 0) - (c1 < 0) + double(0.1f) * p[i]));
        moments.push_back(double(0.99f) * had + double(1 - 0.99f) * grad);
        largest = std::max(largest, std::abs(moments.back()));
      }
      if (!(std::abs(units[k] - largest / 7) <= 1e-6)) return "factor of group " + std::to_string(k);
      for (int64_t i = k * 96; i < std::min(n, (k + 1) * 96); ++i) {
        const double is = (double(bytesNow[i / 2] >> (i % 2 * 4) & 15) - 8) * units[k];
        if (!(std::abs(is - moments[i]) <= 0.501 * units[k])) return "momentum " + std::to_string(i);
      }
    }
    return agree(p.now(), params, 1e-6, 1e-5);
  };
  return j;
});

// --- several heads, of which the k-th predicts the token k + 1 ahead, unless another document begins before it: losses
// and how many there were, then the gradient in place of the logits, with z-loss
struct Heads {
  int BV = 2048;
};
auto heads_count =
    kernel("user_heads_count", [](const Heads&, Ptr<const int32_t> document, Ptr<int32_t> counts, I32 T) {
      auto k = program_id(1);
      Tile t = program_id(0) * 1024 + arange(0, 1024);
      Tile there = t + 1 + k < T;
      Tile same = load(document + t, {.mask = there}) == load(document + t + 1 + k, {.mask = there});
      atomic_add(counts + k, sum(cast(there & same, i32)));
    }).grid([](const Heads&, const int32_t*, int32_t*, int T) {
      return Grid{cdiv(T, 1024), 4};
    });
auto heads_loss =
    kernel("user_heads_loss",
           [](const Heads& c, Tensor<bfloat16, 3> logits, Ptr<const int32_t> tokens, Ptr<const int32_t> document,
              Ptr<const int32_t> counts, Ptr<const float> weights, Tensor<float, 2> losses, F32 z) {
             auto t = program_id(0), k = program_id(1);
             Tile T = logits.dim(0), V = logits.dim(2);
             Tile ahead = t + 1 + k;
             Tile counted = ahead < T;
             Tile safe = min(ahead, T - 1);
             counted = counted & (load(document + safe) == load(document + t));
             if_(
                 ~counted,
                 [&] {
                   for (auto v : range(0, V, c.BV)) logits.store({t, k, v}, zeros({c.BV}, bf16));
                   losses.store({t, k}, 0.f);
                 },
                 [&] {
                   Tile target = load(tokens + safe);
                   Tile top = full({c.BV}, -INFINITY, f32), total = zeros({c.BV}, f32);
                   for (auto v : range(0, V, c.BV)) {
                     Tile x = cast(logits.load({t, k, v}, {c.BV}, {.pad = -INFINITY}), f32);
                     Tile now = max(top, x);
                     Tile base = where(now == -INFINITY, 0.f, now);
                     total = total * exp(top - base) + exp(x - base);
                     top = now;
                   }
                   Tile largest = max(top);
                   Tile lse = largest + log(sum(total * exp(top - largest)));
                   Tile mine = cast(logits.load({t, k, target}), f32);
                   losses.store({t, k}, lse - mine + z * lse * lse);
                   Tile w = load(weights + k) / cast(load(counts + k), f32);
                   for (auto v : range(0, V, c.BV)) {
                     Tile x = cast(logits.load({t, k, v}, {c.BV}, {.pad = -INFINITY}), f32);
                     Tile p = exp(x - lse) * (1.f + 2.f * z * lse);
                     p -= cast(v + arange(0, c.BV) == target, f32);
                     logits.store({t, k, v}, cast(p * w, bf16));
                   }
                 });
           })
        .grid([](const Heads&, const auto& x, const int32_t*, const int32_t*, const int32_t*, const float*, const auto&,
                 float) {
          return Grid{x.shape[0], x.shape[1]};
        });
Register q3("heads_loss", [](Env& e) {
  const int T = e.big ? 4096 : 13, K = 4, V = e.big ? 32000 : 1003, BV = e.field("BV", e.big ? 2048 : 384);
  auto x = random<bfloat16>(e, size_t(T) * K * V, -4, 4);
  auto tokens = integers<int32_t>(e, T, 0, V);
  auto documents = filled<int32_t>(e, T, [&](size_t i) { return e.big ? int(i / 700) : (i > 3) + (i > 4) + (i > 9); });
  auto w = filled<float>(e, K, [&](size_t i) { return 1.f / float(1 + i); });
  auto counts = constant<int32_t>(e, K, 0);
  auto losses = constant<float>(e, T * K, 9);
  Job j;
  restore(e, j, x, counts);
  j.add(heads_count, Heads{}, documents.p, counts.p, T);
  j.add(heads_loss, Heads{BV}, x.view(T, K, V), tokens.p, documents.p, counts.p, w.p, losses.view(T, K), 1e-3f);
  j.mbytes = 1e-6 * T * K * V * 6;
  j.check = [=]() -> std::string {
    std::vector<double> grad(size_t(T) * K * V), loss(T * K), count(K);
    auto goes = [&](int t, int k) { return t + 1 + k < T && documents.h[t + 1 + k] == documents.h[t]; };
    for (int k = 0; k < K; ++k)
      for (int t = 0; t < T; ++t) count[k] += goes(t, k);
    for (int t = 0; t < T; ++t)
      for (int k = 0; k < K; ++k) {
        if (!goes(t, k)) continue;
        const size_t at = (size_t(t) * K + k) * V;
        double sum = 0;
        for (int v = 0; v < V; ++v) sum += std::exp(x[at + v]);
        const double lse = std::log(sum);
        loss[t * K + k] = lse - x[at + tokens.h[t + 1 + k]] + double(1e-3f) * lse * lse;
        for (int v = 0; v < V; ++v)
          grad[at + v] = (std::exp(x[at + v] - lse) * (1 + 2 * double(1e-3f) * lse) - (v == tokens.h[t + 1 + k])) *
                         w[k] / count[k];
      }
    if (auto m = agree(counts.now(), count, 0.1, 0); !m.empty()) return "counts: " + m;
    if (auto m = agree(losses.now(), loss, 1e-4, 1e-5); !m.empty()) return "losses: " + m;
    return agree(x.now(), grad, 1e-8, 5e-3);
  };
  return j;
});

}  // namespace combined_rows
}  // namespace users
