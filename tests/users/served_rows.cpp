// served_rows.cpp - between the products of a language model that is served: adapters per token, positions stretched
// while running, logits made ready to draw from, tokens sent to experts, values packed on their way out.
#include "tests/users/use.h"
namespace users {
namespace served_rows {

// --- BGMV: every token has an adapter of its own (or none), rank R; y += scale * (x A^T) B^T
struct BgmvCfg {
  int R = 16, BK = 1024, BN = 128;
};
auto shrink = kernel("user_shrink",
                     [](const BgmvCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> A, Ptr<const int> adapter,
                        Tensor<float, 2> mid) {  // A [adapters, R, K]
                       auto t = program_id(0);
                       auto a = load(adapter + t);
                       return_if(a < 0);
                       Tile acc = zeros({c.R, 1}, f32);
                       for (auto k : range(0, X.dim(1), c.BK)) {
                         auto x = cast(X.load({t, k}, {c.BK}), f32);
                         auto w = cast(A.load({a, 0, k}, {c.R, c.BK}), f32);
                         acc += sum(w * x.row(), axis(1));
                       }
                       mid.store({t, 0}, squeeze(acc, 1));
                     })
                  .grid([](const BgmvCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
auto grow = kernel("user_grow",
                   [](const BgmvCfg& c, Tensor<const float, 2> mid, Tensor<const half, 3> B, Ptr<const int> adapter,
                      Tensor<half, 2> Y, F32 scale) {  // B [adapters, N, R]
                     auto n = program_id(0) * c.BN, t = program_id(1);
                     auto a = load(adapter + t);
                     return_if(a < 0);
                     auto w = cast(B.load({a, n, 0}, {c.BN, c.R}), f32);
                     auto m = mid.load({t, 0}, {c.R});
                     auto y = squeeze(sum(w * m.row(), axis(1)), 1) * scale;
                     Y.store({t, n}, cast(cast(Y.load({t, n}, {c.BN}), f32) + y, f16));
                   })
                .grid([](const BgmvCfg& c, const auto&, const auto&, const int*, const auto& y, float) {
                  return Grid{cdiv(y.shape[1], c.BN), y.shape[0]};
                });
Register r1("bgmv", [](Env& e) {
  const int T = e.big ? 256 : 9, K = e.big ? 4096 : 700, N = e.big ? 4096 : 200, R = 16, L = e.big ? 32 : 3;
  auto x = random<half>(e, size_t(T) * K), a = random<half>(e, size_t(L) * R * K, -.1, .1),
       b = random<half>(e, size_t(L) * N * R, -.1, .1), y = random<half>(e, size_t(T) * N);
  auto adapter = filled<int>(e, T, [&](size_t i) { return i == 4 ? -1 : int(i * 7 % L); });
  auto mid = constant<float>(e, size_t(T) * R, NAN);
  const BgmvCfg c{R, e.field("BK", 1024), e.field("BN", 128)};
  Job j;
  j.add(shrink, c, x.view(T, K), a.view(L, R, K), adapter.p, mid.view(T, R));
  j.add(grow, c, mid.view(T, R), b.view(L, N, R), adapter.p, y.view(T, N), .5f);
  j.check = [=] {
    std::vector<double> want(size_t(T) * N);
    for (int t = 0; t < T; ++t) {
      std::vector<double> m(R);
      const int l = adapter.at(t);
      for (int r = 0; r < R && l >= 0; ++r)
        for (int k = 0; k < K; ++k) m[r] += x[size_t(t) * K + k] * a[(size_t(l) * R + r) * K + k];
      for (int n = 0; n < N; ++n) {
        double sum = y[size_t(t) * N + n];
        for (int r = 0; r < R && l >= 0; ++r) sum += .5 * m[r] * b[(size_t(l) * N + n) * R + r];
        want[size_t(t) * N + n] = sum;
      }
    }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- logits made ready: penalty of what was said, temperature, min-p, top-p by bisection, renormalised
struct ReadyCfg {
  int BLOCK = 2048, stages = 0, warps = 0;
};
auto ready = kernel("user_ready", [](const ReadyCfg& c, Tensor<const float, 2> logits, Tensor<const int, 2> counts,
                                     Ptr<const float> temperature, Ptr<const float> penalty, Ptr<const float> minP,
                                     Ptr<const float> topP, Tensor<float, 2> probs) {
               if (c.warps) num_warps(c.warps);
               auto r = program_id(0);
               auto t = load(temperature + r), rep = load(penalty + r), least = load(minP + r), most = load(topP + r);
               auto n = logits.dim(1);
               Tile high = full({c.BLOCK}, -INFINITY, f32);
               for (auto j : range(0, n, c.BLOCK, {.stages = c.stages})) {
                 auto x = logits.load({r, j}, {c.BLOCK}, {.pad = -INFINITY});
                 auto said = counts.load({r, j}, {c.BLOCK}) > 0;
                 x = where(said, where(x > 0.f, x / rep, x * rep), x) / t;
                 high = max(high, x);
                 probs.store({r, j}, x);
               }
               auto top = max(high);
               // the least probability kept is least of the largest's: x >= top + log(least)
               auto floor_ = top + log(least);
               Tile total = zeros({c.BLOCK}, f32);
               for (auto j : range(0, n, c.BLOCK, {.stages = c.stages})) {
                 auto x = probs.load({r, j}, {c.BLOCK}, {.pad = -INFINITY});
                 total += where(x >= floor_, exp(x - top), 0.f);
               }
               auto all = sum(total);
               Tile low = floor_, up = top;
               for (auto i : range(0, 16)) {
                 auto middle = (low + up) * .5f;
                 Tile mass = zeros({c.BLOCK}, f32);
                 for (auto j : range(0, n, c.BLOCK, {.stages = c.stages})) {
                   auto x = probs.load({r, j}, {c.BLOCK}, {.pad = -INFINITY});
                   mass += where(x >= middle, exp(x - top), 0.f);
                 }
                 auto enough = sum(mass) >= most * all;
                 low = where(enough, middle, low);
                 up = where(enough, up, middle);
               }
               Tile kept = zeros({c.BLOCK}, f32);
               for (auto j : range(0, n, c.BLOCK, {.stages = c.stages})) {
                 auto x = probs.load({r, j}, {c.BLOCK}, {.pad = -INFINITY});
                 kept += where(x >= low, exp(x - top), 0.f);
               }
               auto scale = 1.f / sum(kept);
               for (auto j : range(0, n, c.BLOCK, {.stages = c.stages})) {
                 auto x = probs.load({r, j}, {c.BLOCK}, {.pad = -INFINITY});
                 probs.store({r, j}, where(x >= low, exp(x - top) * scale, 0.f));
               }
             }).grid([](const ReadyCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r2("ready_logits", [](Env& e) {
  const int B = e.big ? 64 : 4, V = e.big ? 128256 : 5000;
  auto x = random<float>(e, size_t(B) * V, -4, 4);
  auto counts = filled<int>(e, size_t(B) * V, [](size_t i) { return i % 37 == 5 ? int(i % 3 + 1) : 0; });
  auto t = random<float>(e, B, .5, 1.2), rep = random<float>(e, B, 1, 1.3), least = random<float>(e, B, .001, .05),
       most = random<float>(e, B, .7, .95);
  auto probs = constant<float>(e, size_t(B) * V, NAN);
  Job j;
  j.mbytes = 4e-6 * B * V * 20;
  j.add(ready, ReadyCfg{e.field("BLOCK", 2048), e.field("stages", 0), e.field("warps", 0)}, x.view(B, V), counts.view(B, V), t.p, rep.p, least.p, most.p,
        probs.view(B, V));
  j.check = [=]() -> std::string {
    const auto got = probs.now();
    for (int b = 0; b < B; ++b) {
      std::vector<double> z(V), sorted;
      for (int i = 0; i < V; ++i) {
        double y = x[size_t(b) * V + i];
        if (counts.at(size_t(b) * V + i) > 0) y = y > 0 ? y / rep[b] : y * rep[b];
        z[i] = y / t[b];
      }
      const double top = *std::max_element(z.begin(), z.end());
      double all = 0, mass = 0, last = 0;
      for (double y : z)
        if (y >= top + std::log(least[b])) sorted.push_back(std::exp(y - top)), all += sorted.back();
      std::sort(sorted.rbegin(), sorted.rend());
      for (double p : sorted)
        if (mass < most[b] * all) mass += p, last = p;
      double sum = 0;
      for (int i = 0; i < V; ++i) {
        const double p = got[size_t(b) * V + i], mine = std::exp(z[i] - top);
        sum += p;
        if (mine > last * 1.002 && std::abs(p - mine / mass) > 2e-2 * mine / mass) return "a token that stays is off";
        if (mine < last * .998 && p != 0) return "a token stays that should not";
      }
      if (std::abs(sum - 1) > 1e-3) return "probabilities do not sum to 1";
    }
    return "";
  };
  return j;
});

// --- tokens to the places of their experts, and back with weights: [T, K] places, padded groups
struct RowsCfg {
  int BD = 1024;
};
auto to_places = kernel("user_to_places", [](const RowsCfg& c, Tensor<const bfloat16, 2> X, Tensor<const int, 2> place,
                                             Tensor<bfloat16, 2> out, I32 K) {
                   auto t = program_id(0);
                   for (auto d : range(0, X.dim(1), c.BD)) {
                     auto x = X.load({t, d}, {c.BD});
                     for (auto k : range(0, K)) {
                       auto p = to_scalar(place.load({t, k}, {1}));
                       if_(p >= 0, [&] { out.store({p, d}, x); });
                     }
                   }
                 }).grid([](const RowsCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
auto from_places =
    kernel("user_from_places", [](const RowsCfg& c, Tensor<const bfloat16, 2> X, Tensor<const int, 2> place,
                                  Tensor<const float, 2> weight, Tensor<bfloat16, 2> out, I32 K) {
      auto t = program_id(0), d = program_id(1) * c.BD;
      Tile acc = zeros({c.BD}, f32);
      for (auto k : range(0, K)) {
        auto p = to_scalar(place.load({t, k}, {1}));
        continue_if(p < 0);
        acc += cast(X.load({p, d}, {c.BD}), f32) * to_scalar(weight.load({t, k}, {1}));
      }
      out.store({t, d}, cast(acc, bf16));
    }).grid([](const RowsCfg& c, const auto&, const auto&, const auto&, const auto& y, int) {
      return Grid{y.shape[0], cdiv(y.shape[1], c.BD)};
    });
Register r3("permute_tokens", [](Env& e) {
  const int T = e.big ? 8192 : 13, K = e.big ? 8 : 3, D = e.big ? 4096 : 1200, places = T * K + 5;
  auto x = random<bfloat16>(e, size_t(T) * D);
  auto w = random<float>(e, size_t(T) * K, 0, 1);
  auto place = filled<int>(e, size_t(T) * K, [&](size_t i) { return i % 11 == 3 ? -1 : int(i * 7919 % (T * K)); });
  auto out = constant<bfloat16>(e, size_t(places) * D, 0), back = constant<bfloat16>(e, size_t(T) * D, NAN);
  const RowsCfg c{e.field("BD", 1024)};
  Job j;
  j.mbytes = 2e-6 * T * D * (1 + K);
  j.add(to_places, c, x.view(T, D), place.view(T, K), out.view(places, D), K);
  j.add(from_places, c, out.view(places, D), place.view(T, K), w.view(T, K), back.view(T, D), K);
  j.check = [=] {
    std::vector<double> want(size_t(T) * D);
    for (int t = 0; t < T; ++t)
      for (int d = 0; d < D; ++d)
        for (int k = 0; k < K; ++k)
          if (place.at(t * K + k) >= 0) want[size_t(t) * D + d] += x[size_t(t) * D + d] * w[t * K + k];
    return agree(back.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- YaRN, frequencies made here, pairs interleaved (GPT-J) or halves (NeoX): q and k of all heads of a token in place
struct YarnCfg {
  int D = 128, HB = 8;
  bool pairs = false;
};
auto yarn = kernel("user_yarn",
                   [](const YarnCfg& c, Tensor<bfloat16, 3> X, Ptr<const int> position, F32 base, F32 factor, F32 low,
                      F32 high, F32 magnitude) {  // X [T, H, D]
                     auto t = program_id(0), h = program_id(1) * c.HB;
                     auto i = arange(0, c.D / 2);
                     auto f = exp2(cast(i, f32) * (-2.f / c.D) * log2(base));
                     auto ramp = clamp((cast(i, f32) - low) / (high - low), 0.f, 1.f);
                     f = f / factor * ramp + f * (1.f - ramp);
                     auto angle = cast(load(position + t), f32) * f;
                     auto co = (cos(angle) * magnitude).row(), si = (sin(angle) * magnitude).row();
                     if (c.pairs) {
                       auto x = reshape(cast(X.load({t, h, 0}, {c.HB, c.D}), f32), {c.HB, c.D / 2, 2});
                       auto [a, b] = split(x);
                       auto y = join(a * co - b * si, a * si + b * co);
                       X.store({t, h, 0}, reshape(cast(y, bf16), {c.HB, c.D}));
                     } else {
                       auto a = cast(X.load({t, h, 0}, {c.HB, c.D / 2}), f32);
                       auto b = cast(X.load({t, h, c.D / 2}, {c.HB, c.D / 2}), f32);
                       X.store({t, h, 0}, cast(a * co - b * si, bf16));
                       X.store({t, h, c.D / 2}, cast(a * si + b * co, bf16));
                     }
                   })
                .grid([](const YarnCfg& c, const auto& x, const auto&...) {
                  return Grid{x.shape[0], cdiv(x.shape[1], c.HB)};
                });
Job yarn_job(Env& e, bool pairs) {
  const int T = e.big ? 16384 : 7, H = e.big ? 40 : 11, D = e.big ? 128 : 64;
  auto x = random<bfloat16>(e, size_t(T) * H * D);
  auto position = integers<int>(e, T, 0, 5000);
  Job j;
  j.mbytes = 4e-6 * T * H * D;
  j.add(yarn, YarnCfg{D, e.field("HB", 8), pairs}, x.view(T, H, D), position.p, 10000.f, 4.f, 8.f, 20.f, 1.1f);
  j.check = [=] {
    std::vector<double> want(size_t(T) * H * D);
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < D / 2; ++i) {
        float f = std::exp2(float(i) * (-2.f / D) * std::log2(10000.f));
        const float ramp = std::clamp((i - 8.f) / 12.f, 0.f, 1.f);
        f = f / 4.f * ramp + f * (1.f - ramp);
        const double angle = float(position.at(t)) * f, co = 1.1 * std::cos(angle), si = 1.1 * std::sin(angle);
        for (int h = 0; h < H; ++h) {
          const size_t row = (size_t(t) * H + h) * D, p = row + (pairs ? 2 * i : i), q = pairs ? p + 1 : p + D / 2;
          want[p] = x[p] * co - x[q] * si, want[q] = x[p] * si + x[q] * co;
        }
      }
    return agree(x.now(), want, 1e-2, 1e-2);
  };
  return j;
}
Register r5("yarn", [](Env& e) { return yarn_job(e, false); });
Register r6("yarn_pairs", [](Env& e) { return yarn_job(e, true); });

// --- SwiGLU to f8 with a factor of a power of two per 128, factors column-major for the next product
struct GluCfg {
  int BM = 4, BN = 512;
};
auto glu_f8 = kernel("user_glu_f8",
                     [](const GluCfg& c, Tensor<const bfloat16, 2> X, Tensor<fp8_e4m3, 2> Y,
                        Tensor<float, 2> scales) {  // X [T, 2 N]: gate, up; scales [N / 128, T]
                       auto t = program_id(0) * c.BM, n = program_id(1) * c.BN;
                       auto gate = cast(X.load({t, n}, {c.BM, c.BN}), f32);
                       auto up = cast(X.load({t, Y.dim(1) + n}, {c.BM, c.BN}), f32);
                       auto y = reshape(gate * sigmoid(gate) * up, {c.BM, c.BN / 128, 128});
                       auto s = exp2(ceil(log2(max(max(abs(y), axis(2)), 1e-10f) / 448.f)));
                       Y.store({t, n}, reshape(cast(clamp(y / s, -448.f, 448.f), f8e4m3), {c.BM, c.BN}));
                       scales.store({n / 128, t}, trans(reshape(s, {c.BM, c.BN / 128})));
                     })
                  .grid([](const GluCfg& c, const auto&, const auto& y, const auto&) {
                    return Grid{cdiv(y.shape[0], c.BM), cdiv(y.shape[1], c.BN)};
                  });
Register r7("glu_f8", [](Env& e) {
  const int T = e.big ? 16384 : 9, N = e.big ? 4096 : 640;
  auto x = random<bfloat16>(e, size_t(T) * 2 * N, -3, 3);
  auto y = constant<fp8_e4m3>(e, size_t(T) * N, 0);
  auto s = constant<float>(e, size_t(N / 128) * T, NAN);
  Job j;
  j.mbytes = 5e-6 * T * N;
  j.add(glu_f8, GluCfg{e.field("BM", 4), e.field("BN", 512)}, x.view(T, 2 * N), y.view(T, N), s.view(N / 128, T));
  j.check = [=]() -> std::string {
    std::vector<double> want, got;
    const auto o = y.now();
    const auto f = s.now();
    for (int t = 0; t < T; ++t)
      for (int n = 0; n < N; ++n) {
        const double g = x[size_t(t) * 2 * N + n], u = x[size_t(t) * 2 * N + N + n];
        want.push_back(g / (1 + std::exp(-g)) * u);
        const float scale = f[size_t(n / 128) * T + t];
        if (std::exp2(std::round(std::log2(scale))) != scale) return "a factor is no power of two";
        got.push_back(double(float(o[size_t(t) * N + n])) * scale);
      }
    return agree(got, want, 1e-2, 7e-2);
  };
  return j;
});

}  // namespace served_rows
}  // namespace users
