// decodings.cpp - steps of a language-model server around its matrix products: drafts verified, beams, samples drawn
// with noise, grammars, rotary embeddings into a cache of 8 bits, experts' outputs combined, prefixes seen by
// everybody, weights of three values.
#include <algorithm>
#include <numeric>
#include <set>

#include "tests/users/use.h"
namespace users {
namespace decodings {

constexpr float kLog2e = 1.4426950408889634f;

// --- a draft is accepted token by token; the first refused one is drawn again from what the model has more of
struct VerifyCfg {
  int G = 5, BV = 2048, warps = 8;
};
auto spec_verify =
    kernel("user_spec_verify", [](const VerifyCfg& c, Tensor<const float, 3> P, Tensor<const float, 3> Q,
                                  Tensor<const int32_t, 2> draft, Tensor<const float, 2> U, Tensor<int32_t, 2> out,
                                  Tensor<int32_t, 1> accepted) {
      // P [B, G + 1, V] (the model's), Q [B, G, V] (the draft's), draft [B, G], U [B, G + 1] in [0, 1), out [B, G + 1]
      num_warps(c.warps);
      auto b = program_id(0);
      auto V = P.dim(2);
      Tile n = 0;
      for (auto g : range(0, c.G)) {
        auto t = draft.load({b, g});
        break_if(U.load({b, g}) * Q.load({b, g, t}) >= P.load({b, g, t}));
        out.store({b, g}, t);
        n += 1;
      }
      // Q reads 0 behind the last token of the draft: what is left there is P
      auto rest = [&](Tile v) { return max(P.load({b, n, v}, {c.BV}) - Q.load({b, n, v}, {c.BV}), 0.f); };
      Tile total = 0.f;
      for (auto v : range(0, V, c.BV)) total += sum(rest(v));
      auto target = U.load({b, c.G}) * total;
      Tile before = 0.f, token = V - 1;
      for (auto v : range(0, V, c.BV)) {
        auto x = rest(v);
        auto here = sum(x);
        auto found = before + here > target;
        if_(found, [&] {
          auto run = before + cumsum(x, axis(0));
          token = min(v + sum(cast(run <= target, i32)), V - 1);
        });
        break_if(found);
        before += here;
      }
      out.store({b, n}, token);
      accepted.store({b}, n);
    }).grid([](const VerifyCfg&, const auto& p, const auto&...) { return Grid{p.shape[0]}; });
Register r1("spec_verify", [](Env& e) {
  VerifyCfg c;
  if (!e.big) c = {5, 64, 4};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 9, G = c.G, V = e.big ? 128256 : 301;
  auto draw = [&](size_t n) { return random<float>(e, n, .2 / V, 1.8 / V); };
  auto p = draw(size_t(B) * (G + 1) * V), q = draw(size_t(B) * G * V), u = random<float>(e, size_t(B) * (G + 1), 0, 1);
  auto draft = integers<int32_t>(e, size_t(B) * G, 0, V);
  auto out = constant<int32_t>(e, size_t(B) * (G + 1), -1), accepted = constant<int32_t>(e, B, -1);
  Job j;
  j.mbytes = 4e-6 * B * V * 4;
  j.add(spec_verify, c, p.view(B, G + 1, V), q.view(B, G, V), draft.view(B, G), u.view(B, G + 1), out.view(B, G + 1),
        accepted.view(B));
  j.check = [=] {
    const auto got = out.now(), count = accepted.now();
    for (int b = 0; b < B; ++b) {
      int n = 0;
      for (; n < G; ++n) {
        const int t = draft.at(b * G + n);
        const double mine = p[(size_t(b) * (G + 1) + n) * V + t], theirs = q[(size_t(b) * G + n) * V + t];
        if (float(u[b * (G + 1) + n]) * float(theirs) >= float(mine)) break;
        if (got[b * (G + 1) + n] != t) return std::string("an accepted token is another one");
      }
      if (count[b] != n) return std::string("another number of tokens accepted");
      std::vector<double> run(V + 1);
      for (int v = 0; v < V; ++v) {
        const double theirs = n < G ? q[(size_t(b) * G + n) * V + v] : 0;
        run[v + 1] = run[v] + std::max(p[(size_t(b) * (G + 1) + n) * V + v] - theirs, 0.);
      }
      const double target = u[b * (G + 1) + G] * run[V], slack = 1e-5 * run[V];
      const int t = got[b * (G + 1) + n];
      if (t < 0 || t >= V || run[t] > target + slack || run[t + 1] < target - slack)
        return std::string("the token drawn lies elsewhere");
      for (int i = n + 1; i <= G; ++i)
        if (got[b * (G + 1) + i] != -1) return std::string("written behind the last token");
    }
    return std::string();
  };
  return j;
});

// --- one step of a beam search: the W best logits of every part of a row as 64-bit keys, then the W best of all beams
struct BeamCfg {
  int W = 4, BV = 2048, parts = 8, warps = 4;
};
Tile ordered_key(const Tile& x, const Tile& index) {  // larger value first, then smaller index
  auto bits = bitcast(x, i32);
  auto order = bits ^ ((bits >> 31) & 0x7fffffff);
  return (cast(order, i64) << 32) | (cast(~index, i64) & 0xffffffffll);
}
Tile value_of(const Tile& key) {
  auto order = cast(key >> 32, i32);
  return bitcast(order ^ ((order >> 31) & 0x7fffffff), f32);
}
Tile index_of(const Tile& key) { return ~cast(key, i32); }
auto beam_parts =
    kernel("user_beam_parts", [](const BeamCfg& c, Tensor<const half, 2> logits, Tensor<int64_t, 3> keys,
                                 Tensor<float, 3> sums) {
      // logits [B W, V], keys [B W, parts, W], sums [B W, parts, 2]: largest and sum of exponentials
      num_warps(c.warps);
      auto part = program_id(0), row = program_id(1);
      auto V = logits.dim(1);
      auto each = cdiv(cdiv(V, c.parts), c.BV) * c.BV;
      auto slot = arange(0, c.W);
      Tile best = full({c.W}, std::numeric_limits<int64_t>::min(), i64);
      Tile top = -INFINITY, total = 0.f;
      for (auto v : range(part * each, min(part * each + each, V), c.BV)) {
        auto x = cast(logits.load({row, v}, {c.BV}, {.pad = -INFINITY}), f32);
        auto higher = max(top, max(x));
        total = total * exp2((top - higher) * kLog2e) + sum(exp2((x - higher) * kLog2e));
        top = higher;
        Tile key = ordered_key(x, v + arange(0, c.BV));
        Tile largest = max(key);
        while_([&] { return largest > min(best); },
               [&] {
                 best = where(slot == argmin(best, axis(0)), largest, best);
                 key = where(key == largest, std::numeric_limits<int64_t>::min(), key);
                 largest = max(key);
               });
      }
      keys.store({row, part, 0}, best);
      sums.store({row, part, 0}, top);
      sums.store({row, part, 1}, total);
    }).grid([](const BeamCfg& c, const auto& x, const auto&...) { return Grid{c.parts, x.shape[0]}; });
auto beam_merge =
    kernel("user_beam_merge", [](const BeamCfg& c, Tensor<const int64_t, 2> keys, Tensor<const float, 3> sums,
                                 Tensor<const float, 2> scores, Tensor<float, 2> best, Tensor<int32_t, 2> parent,
                                 Tensor<int32_t, 2> token) {
      // keys [B W, parts W], sums [B W, parts, 2], scores [B, W] of the beams so far; best, parent, token [B, W]
      num_warps(1);
      auto b = program_id(0);
      auto [top, total] = split(sums.load({b * c.W, 0, 0}, {c.W, c.parts, 2}));
      auto highest = max(top, axis(1));
      auto lse = highest + log(sum(total * exp(top - highest), axis(1)));
      auto key = keys.load({b * c.W, 0}, {c.W, c.parts * c.W});
      Tile score = squeeze(scores.load({b, 0}, {1, c.W}), 0).col() + value_of(key) - lse;
      score = where(key == std::numeric_limits<int64_t>::min(), -INFINITY, score);
      auto place = reshape(arange(0, c.W * c.parts * c.W), {c.W, c.parts * c.W});
      for (int i = 0; i < c.W; ++i) {
        auto s = max(score);
        auto at = min(where(score == s, place, c.W * c.parts * c.W));
        best.store({b, i}, s);
        parent.store({b, i}, at / (c.parts * c.W));
        token.store({b, i}, sum(where(place == at, index_of(key), 0)));
        score = where(place == at, -INFINITY, score);
      }
    }).grid([](const BeamCfg& c, const auto& k, const auto&...) { return Grid{k.shape[0] / c.W}; });
Register r2("beam_step", [](Env& e) {
  BeamCfg c;
  if (!e.big) c = {4, 32, 3, 4};
  c.BV = e.field("BV", c.BV), c.parts = e.field("parts", c.parts);
  const int B = e.big ? 32 : 3, W = c.W, V = e.big ? 128256 : 257, rows = B * W;
  auto x = random<half>(e, size_t(rows) * V, -4, 4);
  auto scores = random<float>(e, rows, -3, 0);
  auto keys = constant<int64_t>(e, size_t(rows) * c.parts * W, 0);
  auto sums = constant<float>(e, size_t(rows) * c.parts * 2, NAN), best = constant<float>(e, rows, NAN);
  auto parent = constant<int32_t>(e, rows, -1), token = constant<int32_t>(e, rows, -1);
  Job j;
  j.mbytes = 2e-6 * rows * V;
  j.add(beam_parts, c, x.view(rows, V), keys.view(rows, c.parts, W), sums.view(rows, c.parts, 2));
  j.add(beam_merge, c, keys.view(rows, c.parts * W), sums.view(rows, c.parts, 2), scores.view(B, W), best.view(B, W),
        parent.view(B, W), token.view(B, W));
  j.check = [=] {
    std::vector<double> want;
    const auto p = parent.now(), t = token.now();
    const auto got = best.now();
    for (int b = 0; b < B; ++b) {
      std::vector<double> all;
      std::set<std::pair<int, int>> used;
      for (int w = 0; w < W; ++w) {
        double sum = 0;
        for (int v = 0; v < V; ++v) sum += std::exp(x[size_t(b * W + w) * V + v]);
        for (int v = 0; v < V; ++v) all.push_back(scores[b * W + w] + x[size_t(b * W + w) * V + v] - std::log(sum));
      }
      for (int i = 0; i < W; ++i) {
        const int at = p[b * W + i] * V + t[b * W + i];
        if (at < 0 || at >= W * V || std::abs(all[at] - got[b * W + i]) > 1e-3)
          return std::string("a token with another score");
        if (!used.insert({p[b * W + i], t[b * W + i]}).second) return std::string("a token taken twice");
      }
      std::sort(all.begin(), all.end(), std::greater<>());
      want.insert(want.end(), all.begin(), all.begin() + W);
    }
    return agree(got, want, 1e-4, 1e-4);
  };
  return j;
});

// --- sampling by noise: the argmax of logits / temperature + Gumbel noise, in one pass
struct GumbelCfg {
  int BV = 2048, warps = 4;
};
auto gumbel = kernel("user_gumbel", [](const GumbelCfg& c, Tensor<const bfloat16, 2> logits,
                                       Tensor<const float, 1> temperature, Tensor<int32_t, 1> out, U64 seed) {
  num_warps(c.warps);
  auto m = program_id(0);
  auto V = logits.dim(1);
  auto inverse = 1.f / temperature.load({m});
  Tile best = full({c.BV}, -INFINITY, f32), at = zeros({c.BV}, i32);
  for (auto v0 : range(0, V, c.BV)) {
    auto v = v0 + arange(0, c.BV);
    auto x = cast(logits.load({m, v0}, {c.BV}, {.pad = -INFINITY}), f32) * inverse;
    auto u = max(rand(seed, cast(m, i64) * V + v), 1e-10f);
    auto g = x - log(-log(u));
    at = where(g > best, v, at);
    best = max(best, g);
  }
  auto [value, token] = reduce({best, at}, axis(0), [](Tile va, Tile ia, Tile vb, Tile ib) {
    auto first = (va > vb) | ((va == vb) & (ia < ib));
    return std::tuple(where(first, va, vb), where(first, ia, ib));
  });
  out.store({m}, to_scalar(token));
}).grid([](const GumbelCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r3("gumbel", [](Env& e) {
  GumbelCfg c;
  if (!e.big) c = {64, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 512 : 7, V = e.big ? 128256 : 333;
  auto x = random<bfloat16>(e, size_t(M) * V, -3, 3);
  auto t = random<float>(e, M, .5, 1.5);
  auto out = constant<int32_t>(e, M, -1);
  const uint64_t seed = 0x123456789abcull;
  Job j;
  j.mbytes = 2e-6 * M * V;
  j.add(gumbel, c, x.view(M, V), t.view(M), out.view(M), seed);
  j.check = [=] {
    const auto got = out.now();
    for (int m = 0; m < M; ++m) {
      std::vector<double> g(V);
      for (int v = 0; v < V; ++v) {
        const double u = std::max((reference_philox(seed, uint64_t(m) * V + v)[0] >> 8) * 0x1p-24, 1e-10);
        g[v] = x[size_t(m) * V + v] / t[m] - std::log(-std::log(u));
      }
      if (got[m] < 0 || got[m] >= V || g[got[m]] < *std::max_element(g.begin(), g.end()) - 1e-3)
        return "row " + std::to_string(m) + ": not the largest";
    }
    return std::string();
  };
  return j;
});

// --- tokens a grammar forbids (a bit each) become -inf, tokens seen before are penalised; in place
struct GrammarCfg {
  int BV = 4096, warps = 4;
};
auto grammar =
    kernel("user_grammar", [](const GrammarCfg& c, Tensor<float, 2> logits, Tensor<const int32_t, 2> allowed,
                              Tensor<const int16_t, 2> counts, Ptr<const int32_t> rows, F32 penalty, F32 frequency) {
      // logits, counts [B, V], allowed [masks, ceil(V / 32)], rows [B]: the mask of a row, or -1
      num_warps(c.warps);
      auto v0 = program_id(0) * c.BV, b = program_id(1);
      auto v = v0 + arange(0, c.BV);
      auto inside = v < logits.dim(1);
      auto row = load(rows + b);
      Tile x = logits.load({b, v0}, {c.BV});
      auto seen = cast(counts.load({b, v0}, {c.BV}), f32);
      x = where(seen > 0.f, where(x > 0.f, x / penalty, x * penalty) - frequency * seen, x);
      if_(row >= 0, [&] {
        auto word = load(allowed.ptr() + cast(row, i64) * allowed.stride(0) + v / 32, {.mask = inside});
        x = where(((word >> (v % 32)) & 1) != 0, x, -INFINITY);
      });
      logits.store({b, v0}, x);
    }).grid([](const GrammarCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[1], c.BV), x.shape[0]};
    });
Register r4("grammar", [](Env& e) {
  GrammarCfg c;
  if (!e.big) c = {128, 4};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 256 : 5, V = e.big ? 128256 : 333, masks = e.big ? 64 : 2, words = (V + 31) / 32;
  auto x = random<float>(e, size_t(B) * V, -4, 4);
  auto allowed = integers<int32_t>(e, size_t(masks) * words, -(1ll << 31), 1ll << 31);
  auto counts = integers<int16_t>(e, size_t(B) * V, -5, 3);
  auto rows = filled<int32_t>(e, B, [&](size_t i) { return i % 4 == 3 ? -1 : int(i) % masks; });
  Job j;
  j.mbytes = 1e-6 * B * V * 10;
  j.inTurn = true;
  j.add(grammar, c, x.view(B, V), allowed.view(masks, words), counts.view(B, V), rows.p, 1.2f, .3f);
  j.check = [=] {
    std::vector<double> want(x.n);
    for (int b = 0; b < B; ++b)
      for (int v = 0; v < V; ++v) {
        const size_t i = size_t(b) * V + v;
        double y = x[i];
        if (counts.at(i) > 0) y = (y > 0 ? y / 1.2 : y * 1.2) - .3 * counts.at(i);
        const int row = rows.at(b);
        want[i] = row < 0 || (uint32_t(allowed.at(size_t(row) * words + v / 32)) >> (v % 32) & 1) ? y : -INFINITY;
      }
    return agree(x.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- rotary embeddings of half a head, and keys and values into their slots of an 8-bit cache
struct RopeCacheCfg {
  int BT = 16, D = 128, R = 64, warps = 4;
};
auto rope_cache =
    kernel("user_rope_cache", [](const RopeCacheCfg& c, Tensor<const bfloat16, 3> QKV, Tensor<const float, 2> table,
                                 Tensor<const int64_t, 1> positions, Tensor<const int64_t, 1> slots,
                                 Tensor<bfloat16, 3> Q, Ptr<fp8_e4m3> keys, Ptr<fp8_e4m3> values, F32 scale) {
      // QKV [T, H + 2 Hk, D], table [positions, R]: cosines, then sines; Q [T, H, D], keys, values [slots, Hk, D]
      num_warps(c.warps);
      auto t = program_id(0) * c.BT, h = program_id(1);
      auto H = Q.dim(1), Hk = (QKV.dim(1) - H) / 2;
      auto rows = t + arange(0, c.BT);
      auto slot = slots.load({t}, {c.BT}, {.pad = -1}).col();
      auto stored = (slot >= 0) & (rows.col() < QKV.dim(0));
      if_(
          h < H + Hk,
          [&] {
            auto position = positions.load({t}, {c.BT}).col();
            auto i = arange(0, c.R / 2).row();
            auto cosine = load(table.ptr() + position * c.R + i),
                 sine = load(table.ptr() + position * c.R + c.R / 2 + i);
            auto part = [&](int at, int width) {
              return cast(squeeze(QKV.load({t, h, at}, {c.BT, 1, width}), 1), f32);
            };
            auto a = part(0, c.R / 2), b = part(c.R / 2, c.R / 2);
            auto turned = cat(cat(a * cosine - b * sine, b * cosine + a * sine, 1), part(c.R, c.D - c.R), 1);
            if_(
                h < H, [&] { Q.store({t, h, 0}, expand_dims(cast(turned, bf16), 1)); },
                [&] {
                  auto place = keys + (slot * Hk + (h - H)) * c.D + arange(0, c.D).row();
                  store(place, cast(turned / scale, f8e4m3), {.mask = stored});
                });
          },
          [&] {
            auto x = cast(squeeze(QKV.load({t, h, 0}, {c.BT, 1, c.D}), 1), f32);
            auto place = values + (slot * Hk + (h - H - Hk)) * c.D + arange(0, c.D).row();
            store(place, cast(x / scale, f8e4m3), {.mask = stored});
          });
    }).grid([](const RopeCacheCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BT), x.shape[1]};
    });
Register r5("rope_cache", [](Env& e) {
  RopeCacheCfg c;
  if (!e.big) c = {8, 32, 16, 4};
  c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 21, H = e.big ? 32 : 3, Hk = e.big ? 8 : 2, D = c.D, R = c.R, all = H + 2 * Hk;
  const int places = e.big ? 8192 : 40, count = e.big ? 32768 : 30;
  auto x = random<bfloat16>(e, size_t(T) * all * D);
  auto table = random<float>(e, size_t(places) * R);
  auto positions = integers<int64_t>(e, T, 0, places);
  auto slots = filled<int64_t>(e, T, [&](size_t i) { return i % 7 == 6 ? -1 : int64_t(i * 11 % count); });
  auto q = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  auto k = constant<fp8_e4m3>(e, size_t(count) * Hk * D, 3), v = constant<fp8_e4m3>(e, size_t(count) * Hk * D, 3);
  Job j;
  j.mbytes = 1e-6 * T * D * (2. * all + 2. * H + 2. * Hk);
  j.add(rope_cache, c, x.view(T, all, D), table.view(places, R), positions.view(T), slots.view(T), q.view(T, H, D), k.p,
        v.p, .01f);
  j.check = [=] {
    std::vector<double> wq(q.n), wk(k.n, 3), wv(v.n, 3);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < all; ++h)
        for (int d = 0; d < D; ++d) {
          const bool cached = h >= H;
          if (cached && slots.at(t) < 0) continue;
          auto in = [&](int at) { return x[(size_t(t) * all + h) * D + at]; };
          auto angle = [&](int at) { return table[size_t(positions.at(t)) * R + at]; };
          double y = in(d);
          if (h < H + Hk && d < R / 2)
            y = y * angle(d) - in(d + R / 2) * angle(R / 2 + d);
          else if (h < H + Hk && d < R)
            y = y * angle(d - R / 2) + in(d - R / 2) * angle(d);
          const int head = h < H + Hk ? h - H : h - H - Hk;
          if (!cached)
            wq[(size_t(t) * H + h) * D + d] = y;
          else
            (h < H + Hk ? wk : wv)[(size_t(slots.at(t)) * Hk + head) * D + d] = y / .01;
        }
    for (const auto& [name, wrong] : {std::pair{"q", agree(q.now(), wq, 1e-2, 8e-3)},
                                      std::pair{"k", agree(k.now(), wk, .1, .07)},
                                      std::pair{"v", agree(v.now(), wv, .1, .07)}})
      if (!wrong.empty()) return std::string(name) + ": " + wrong;
    return std::string();
  };
  return j;
});

// --- what experts made of tokens goes home: weighted sum of a token's rows, with a gated shared expert
struct CombineCfg {
  int BT = 8, BD = 256, warps = 4;
};
auto moe_combine =
    kernel("user_moe_combine", [](const CombineCfg& c, Tensor<const bfloat16, 2> Y, Tensor<const int32_t, 2> places,
                                  Tensor<const float, 2> weights, Tensor<const bfloat16, 2> shared,
                                  Tensor<const float, 1> gate, Tensor<bfloat16, 2> out) {
      // Y [T K, D], places, weights [T, K] (a place of -1: dropped), shared, out [T, D], gate [T]
      num_warps(c.warps);
      auto t = program_id(0) * c.BT, d = program_id(1) * c.BD;
      auto column = d + arange(0, c.BD).row();
      Tile acc = cast(shared.load({t, d}, {c.BT, c.BD}), f32) * sigmoid(gate.load({t}, {c.BT})).col();
      for (auto k : range(0, places.dim(1))) {
        auto at = places.load({t, k}, {c.BT, 1}, {.pad = -1});
        auto w = weights.load({t, k}, {c.BT, 1});
        auto row = Y.ptr() + cast(at, i64) * Y.stride(0);
        acc += w * cast(load(row + column, {.mask = (at >= 0) & (column < Y.dim(1))}), f32);
      }
      out.store({t, d}, cast(acc, bf16));
    }).grid([](const CombineCfg& c, const auto&, const auto&, const auto&, const auto& s, const auto&...) {
      return Grid{cdiv(s.shape[0], c.BT), cdiv(s.shape[1], c.BD)};
    });
Register r6("moe_combine", [](Env& e) {
  CombineCfg c;
  if (!e.big) c = {8, 32, 4};
  c.BT = e.field("BT", c.BT), c.BD = e.field("BD", c.BD), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 19, K = e.big ? 8 : 3, D = e.big ? 2048 : 72;
  auto y = random<bfloat16>(e, size_t(T) * K * D), s = random<bfloat16>(e, size_t(T) * D);
  auto places = filled<int32_t>(e, size_t(T) * K, [&](size_t i) {
    return i % 13 == 5 ? -1 : int32_t(i * 7919 % (size_t(T) * K));
  });
  auto w = random<float>(e, size_t(T) * K, 0, 1), g = random<float>(e, T, -2, 2);
  auto out = constant<bfloat16>(e, size_t(T) * D, NAN);
  Job j;
  j.mbytes = 2e-6 * T * D * (K + 2);
  j.add(moe_combine, c, y.view(T * K, D), places.view(T, K), w.view(T, K), s.view(T, D), g.view(T), out.view(T, D));
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int t = 0; t < T; ++t)
      for (int d = 0; d < D; ++d) {
        double sum = s[size_t(t) * D + d] / (1 + std::exp(-g[t]));
        for (int k = 0; k < K; ++k)
          if (places.at(t * K + k) >= 0) sum += w[t * K + k] * y[size_t(places.at(t * K + k)) * D + d];
        want[size_t(t) * D + d] = sum;
      }
    return agree(out.now(), want, 1e-2, 8e-3);
  };
  return j;
});

// --- attention in which everybody sees a prefix, and behind it what came before
struct PrefixCfg {
  int BM = 128, BN = 64, D = 128, stages = 2, warps = 8;
};
auto prefix_lm = kernel("user_prefix_lm", [](const PrefixCfg& c, Tensor<const bfloat16, 4> Q,
                                             Tensor<const bfloat16, 4> K, Tensor<const bfloat16, 4> V,
                                             Tensor<const int32_t, 1> prefix, Tensor<bfloat16, 4> O, F32 scale) {
  // Q, K, V, O [B, H, S, D], prefix [B]
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
  auto S = Q.dim(2), seen = prefix.load({b});
  auto box = [&](auto& X, Tile at, int rows) { return reshape(X.load({b, h, at, 0}, {1, 1, rows, c.D}), {rows, c.D}); };
  auto q = box(Q, m, c.BM);
  auto row = (m + arange(0, c.BM)).col();
  Tile acc = zeros({c.BM, c.D}, f32), top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32);
  for (auto n : range(0, min(max(m + c.BM, seen), S), c.BN, {.stages = c.stages})) {
    auto column = (n + arange(0, c.BN)).row();
    auto s = dot(q, trans(box(K, n, c.BN))) * (scale * kLog2e);
    s = where(((column <= row) | (column < seen)) & (column < S), s, -INFINITY);
    auto higher = max(top, max(s, axis(1)));
    auto p = exp2(s - higher), change = exp2(top - higher);
    total = total * change + sum(p, axis(1));
    acc = dot(cast(p, bf16), box(V, n, c.BN), acc * change);
    top = higher;
  }
  O.store({b, h, m, 0}, reshape(cast(acc / total, bf16), {1, 1, c.BM, c.D}));
}).grid([](const PrefixCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[2], c.BM), q.shape[1], q.shape[0]};
});
Register r7("prefix_lm", [](Env& e) {
  PrefixCfg c;
  if (!e.big) c = {32, 16, 32, 2, 4};
  c.BN = e.field("BN", c.BN), c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 4, H = e.big ? 16 : 2, S = e.big ? 4096 : 77, D = c.D;
  const size_t n = size_t(B) * H * S * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n);
  auto prefix = filled<int32_t>(e, B, [&](size_t b) { return e.big ? 1000 : std::array{0, 1, 40, S}[b]; });
  auto o = constant<bfloat16>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 4e-9 * B * H * D * (.5 * S * S + .5 * 1000 * 1000);
  j.add(prefix_lm, c, q.view(B, H, S, D), k.view(B, H, S, D), v.view(B, H, S, D), prefix.view(B), o.view(B, H, S, D),
        scale);
  j.check = [=] {
    std::vector<double> want(n);
    for (size_t z = 0; z < size_t(B) * H; ++z)
      for (int i = 0; i < S; ++i) {
        double sum = 0;
        double* out = &want[(z * S + i) * D];
        for (int at = 0; at < S; ++at) {
          if (at > i && at >= prefix.at(z / H)) continue;
          double s = 0;
          for (int d = 0; d < D; ++d) s += q[(z * S + i) * D + d] * k[(z * S + at) * D + d];
          const double p = std::exp(s * scale);
          sum += p;
          for (int d = 0; d < D; ++d) out[d] += p * v[(z * S + at) * D + d];
        }
        for (int d = 0; d < D; ++d) out[d] /= sum;
      }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- weights of -1, 0, 1, four to a byte, times activations of 8 bits
struct TernaryCfg {
  int BM = 128, BN = 128, BK = 128, stages = 3, warps = 8;
};
auto ternary = kernel("user_ternary", [](const TernaryCfg& c, Tensor<const int8_t, 2> X, Tensor<const float, 1> sx,
                                         Tensor<const uint8_t, 2> W, Tensor<const bfloat16, 1> bias,
                                         Tensor<bfloat16, 2> Y, F32 sw) {
                 // X [M, K], sx [M], W [N, K / 4] (weight 4 j + i is bits 2 i of byte j, minus one), bias [N], Y [M, N]
                 num_warps(c.warps);
                 auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                 auto shifts = reshape(cast(2 * arange(0, 4), u8), {1, 1, 4});
                 Tile acc = zeros({c.BM, c.BN}, i32);
                 for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
                   auto packed = expand_dims(W.load({n, k / 4}, {c.BN, c.BK / 4}), 2);
                   auto w = cast(reshape((packed >> shifts) & 3, {c.BN, c.BK}), i8) - 1;
                   acc = dot(X.load({m, k}, {c.BM, c.BK}), trans(w), acc);
                 }
                 auto y = cast(acc, f32) * (sx.load({m}, {c.BM}).col() * sw) + cast(bias.load({n}, {c.BN}), f32).row();
                 Y.store({m, n}, cast(y, bf16));
               }).grid([](const TernaryCfg& c, const auto& x, const auto&, const auto& w, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r8("ternary", [](Env& e) {
  TernaryCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 45, N = e.big ? 4096 : 70, K = e.big ? 4096 : 96;
  auto x = integers<int8_t>(e, size_t(M) * K, -127, 128);
  auto w = filled<uint8_t>(e, size_t(N) * K / 4, [&](size_t i) {
    int byte = 0;
    for (int at = 0; at < 4; ++at) byte |= int((i * 2654435761u >> (7 + 5 * at)) % 3) << (2 * at);
    return uint8_t(byte);
  });
  auto sx = random<float>(e, M, .01, .02);
  auto bias = random<bfloat16>(e, N);
  auto y = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(ternary, c, x.view(M, K), sx.view(M), w.view(N, K / 4), bias.view(N), y.view(M, N), .5f);
  j.check = [=] {
    auto weight = [&](int k, int n) { return (w.at((size_t(n) * K + k) / 4) >> (2 * (k % 4)) & 3) - 1; };
    auto want = product(M, N, K, matrix(x, K), weight,
                        [&](double sum, int m, int n) { return sum * sx[m] * .5 + bias[n]; });
    return agree(y.now(), want, 1e-2, 8e-3);
  };
  return j;
});

}  // namespace decodings
}  // namespace users
