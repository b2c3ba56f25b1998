// scanned_states.cpp - scans that feed products and places: attention as a running mean, decays that segments reset,
// slots that tokens claim from counters, a cache that goes round with heads partly rotated, layers that a pointer
// walks.
#include "tests/users/use.h"
namespace users {
namespace scanned_states {

// --- attention with one learned query a head as a scan of (maximum, sum, weighted values); every prefix is projected
struct PrefixCfg {
  int BS = 32, D = 40, E = 48, warps = 4;
};
auto prefix_means =
    kernel("user_prefix_means", [](const PrefixCfg& c, Tensor<const half, 3> K, Tensor<const half, 3> V,
                                   Tensor<const float, 2> query, Tensor<const half, 2> W, Tensor<half, 3> Y) {
      // K, V [B, S, D], query [B, D], W [D, E], Y [B, S, E]
      num_warps(c.warps);
      auto b = program_id(0);
      auto q = query.load({b, 0}, {c.D}).row();
      auto w = W.load({0, 0}, {c.D, c.E});
      Tile m = full({1, c.D}, -INFINITY, f32), l = zeros({1, c.D}, f32), sum_v = zeros({1, c.D}, f32);
      auto combine = [](Tile m0, Tile l0, Tile v0, Tile m1, Tile l1, Tile v1) {
        auto m = max(m0, m1);
        auto a = exp(m0 - m), b = exp(m1 - m);
        return std::tuple(m, l0 * a + l1 * b, v0 * a + v1 * b);
      };
      for (auto s : range(0, K.dim(1), c.BS)) {
        auto score = sum(cast(K.load({b, s, 0}, {c.BS, c.D}), f32) * q, axis(1));
        auto v = cast(V.load({b, s, 0}, {c.BS, c.D}), f32);
        auto [pm, pl, pv] = scan({broadcast_to(score, {c.BS, c.D}), ones({c.BS, c.D}, f32), v}, axis(0), combine);
        auto [am, al, av] = combine(m, l, sum_v, pm, pl, pv);  // with what came before the block
        Y.store({b, s, 0}, expand_dims(cast(dot(cast(av / al, f16), w), f16), 0));
        m = extract(am, {c.BS - 1, 0}, {1, c.D});
        l = extract(al, {c.BS - 1, 0}, {1, c.D});
        sum_v = extract(av, {c.BS - 1, 0}, {1, c.D});
      }
    }).grid([](const PrefixCfg&, const auto& k, const auto&...) { return Grid{k.shape[0]}; });
Register r1("prefix_means", [](Env& e) {
  const int B = e.big ? 1024 : 3, S = e.big ? 2048 : 101, D = 40, E = 48;
  auto k = random<half>(e, size_t(B) * S * D, -3, 3), v = random<half>(e, size_t(B) * S * D),
       w = random<half>(e, D * E);
  auto q = random<float>(e, B * D);
  auto y = constant<half>(e, size_t(B) * S * E, NAN);
  Job j;
  j.mbytes = 2e-6 * B * S * (2 * D + E);
  j.add(prefix_means, PrefixCfg{e.field("BS", 32), D, E, e.field("warps", 4)}, k.view(B, S, D), v.view(B, S, D),
        q.view(B, D), w.view(D, E), y.view(B, S, E));
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      std::vector<double> top(D);
      double total = 0;
      for (int s = 0; s < S; ++s) {
        double x = 0;
        for (int d = 0; d < D; ++d) x += k[(size_t(b) * S + s) * D + d] * q[b * D + d];
        total += std::exp(x);
        for (int d = 0; d < D; ++d) top[d] += std::exp(x) * v[(size_t(b) * S + s) * D + d];
        for (int n = 0; n < E; ++n) {
          double sum = 0;
          for (int d = 0; d < D; ++d) sum += in_half(top[d] / total) * w[d * E + n];
          want.push_back(sum);
        }
      }
    }
    return agree(y.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- a linear recurrence in chunks over packed sequences: state = gate state + k v^T, gates multiply as logarithms,
// and a flag starts from nothing; odd widths
struct ResetCfg {
  int L = 48, K = 40, V = 72, warps = 4;
};
auto reset_chunks =
    kernel("user_reset_decays", [](const ResetCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> Kt,
                                   Tensor<const bfloat16, 3> Vt, Tensor<const float, 2> gate,
                                   Tensor<const bool, 1> first, Tensor<bfloat16, 3> O) {
      // Q, Kt [H, S, K], Vt, O [H, S, V], gate [H, S] in (0, 1), first [S]
      num_warps(c.warps);
      auto h = program_id(0);
      auto i = arange(0, c.L);
      Tile state = zeros({c.K, c.V}, f32);
      for (auto s : range(0, Q.dim(1), c.L)) {
        auto q = Q.load({h, s, 0}, {c.L, c.K}), k = Kt.load({h, s, 0}, {c.L, c.K}), v = Vt.load({h, s, 0}, {c.L, c.V});
        auto starts = first.load({s}, {c.L});
        auto g = log(gate.load({h, s}, {c.L}, {.pad = 1}));
        // (sum of logarithms since the last start, how many starts)
        auto [decay, segment] =
            scan({where(starts, 0.f, g), cast(starts, i32)}, axis(0),
                 [](Tile a, Tile na, Tile b, Tile nb) { return std::tuple(where(nb > 0, b, a + b), na + nb); });
        auto same = (segment.col() == segment.row()) & (i.col() >= i.row());
        auto weight = where(same, exp(decay.col() - decay.row()), 0.f);
        auto old = where(segment == 0, exp(decay), 0.f);
        auto inside = cast(dot(q, trans(k)) * weight, bf16);
        auto o = dot(inside, v, dot(q, cast(state, bf16)) * old.col());
        O.store({h, s, 0}, expand_dims(cast(o, bf16), 0));
        auto lastDecay = sum(where(i == c.L - 1, decay, 0.f));
        auto lastSegment = max(segment);
        auto leave = where(segment == lastSegment, exp(lastDecay - decay), 0.f);
        auto kept = where(lastSegment == 0, exp(lastDecay), 0.f);
        state = dot(trans(cast(cast(k, f32) * leave.col(), bf16)), v, state * kept);
      }
    }).grid([](const ResetCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r2("reset_decays", [](Env& e) {
  const int H = e.big ? 512 : 3, S = e.big ? 4096 : 170, K = 40, V = 72;
  auto q = random<bfloat16>(e, size_t(H) * S * K), k = random<bfloat16>(e, size_t(H) * S * K),
       v = random<bfloat16>(e, size_t(H) * S * V);
  auto g = random<float>(e, size_t(H) * S, .7, .999);
  auto f = filled<uint8_t>(e, S, [](size_t i) { return i == 0 || i == 60 || i == 61 || i == 96 || i % 1000 == 143; });
  auto o = constant<bfloat16>(e, size_t(H) * S * V, NAN);
  Job j;
  j.mbytes = 2e-6 * H * S * 2 * (K + V);
  j.add(reset_chunks, ResetCfg{48, K, V, e.field("warps", 4)}, q.view(H, S, K), k.view(H, S, K), v.view(H, S, V),
        g.view(H, S), TensorView<const bool, 1>(reinterpret_cast<const bool*>(f.p), {S}), o.view(H, S, V));
  j.check = [=] {
    std::vector<double> want;
    for (int h = 0; h < H; ++h) {
      std::vector<double> state(K * V);
      for (int s = 0; s < S; ++s) {
        const size_t r = size_t(h) * S + s;
        for (int a = 0; a < K; ++a)
          for (int b = 0; b < V; ++b)
            state[a * V + b] = (f.h[s] ? 0 : g[r] * state[a * V + b]) + k[r * K + a] * v[r * V + b];
        for (int b = 0; b < V; ++b) {
          double x = 0;
          for (int a = 0; a < K; ++a) x += q[r * K + a] * state[a * V + b];
          want.push_back(x);
        }
      }
    }
    return agree(o.now(), want, 3e-2, 2e-2);
  };
  return j;
});

// --- the two best experts of every token, and a slot in each: a block of tokens counts with a histogram, claims so
// many slots of every expert at once, and hands them out in its order; tokens behind the capacity are dropped
struct ClaimCfg {
  int BT = 64, E = 32, warps = 2;
};
auto claim_slots =
    kernel("user_claim_slots", [](const ClaimCfg& c, Tensor<const float, 2> logits, Ptr<int> counters,
                                  Tensor<int, 2> slot, Tensor<float, 2> weight, Ptr<int> owner, I32 capacity) {
      // logits [T, E], slot, weight [T, 2], owner [E, capacity]
      num_warps(c.warps);
      auto t0 = program_id(0) * c.BT;
      auto token = t0 + arange(0, c.BT);
      auto in = token < logits.dim(0);
      auto x = logits.load({t0, 0}, {c.BT, c.E});
      auto expert = arange(0, c.E).row();
      auto [v1, e1] = max_with_index(x, axis(1));
      auto [v2, e2] = max_with_index(where(expert == e1, -INFINITY, x), axis(1));
      auto w1 = 1.f / (1.f + exp(v2 - v1));
      auto picks = where(in.col(), cat(e1, e2, 1), -1);  // [BT, 2]
      auto flat = ravel(picks);                          // token by token, best first
      auto mine = histogram(flat, c.E);
      auto base = atomic_add(counters + arange(0, c.E), mine, {.mask = mine > 0});
      base = where(mine > 0, base, 0);
      auto is = cast(flat.col() == expert, i32);  // [2 BT, E]
      auto before = sum((cumsum(is, axis(0)) - is + base.row()) * is, axis(1));
      auto at = reshape(before, {c.BT, 2});
      auto kept = (picks >= 0) & (at < capacity);
      slot.store({t0, 0}, where(kept, picks * capacity + at, -1));
      weight.store({t0, 0}, where(kept, cat(w1, 1.f - w1, 1), 0.f));
      store(owner + (picks * capacity + at), broadcast_to(token.col(), {c.BT, 2}), {.mask = kept});
    }).grid([](const ClaimCfg& c, const auto& l, const auto&...) { return Grid{cdiv(l.shape[0], c.BT)}; });
Register r3("claim_slots", [](Env& e) {
  const int T = e.big ? 65536 : 333, E = e.big ? 128 : 32, C = e.big ? 1200 : 26;
  auto x = drawn<float>(e, size_t(T) * E, [&] { return std::floor(float(e.uniform() * 40)) / 8; });  // many ties
  auto n = constant<int>(e, E, 0);
  auto slot = constant<int>(e, T * 2, -7), owner = constant<int>(e, size_t(E) * C, -1);
  auto w = constant<float>(e, T * 2, NAN);
  Job j;
  j.mbytes = 4e-6 * T * E;
  restore(e, j, n);
  j.add(claim_slots, ClaimCfg{64, E, e.field("warps", e.big ? 8 : 2)}, x.view(T, E), n.p, slot.view(T, 2), w.view(T, 2),
        owner.p, C);
  j.check = [=]() -> std::string {
    std::vector<double> count(E), weight(2 * T);
    std::vector<int> taken(size_t(E) * C, -1);
    const auto s = slot.now(), o = owner.now();
    for (int t = 0; t < T; ++t) {
      int best[2] = {-1, -1};
      for (int i = 0; i < 2; ++i)
        for (int k = 0; k < E; ++k)
          if (k != best[0] && (best[i] < 0 || x[t * E + k] > x[t * E + best[i]])) best[i] = k;
      const double w1 = 1 / (1 + std::exp(x[t * E + best[1]] - x[t * E + best[0]]));
      for (int i = 0; i < 2; ++i) {
        ++count[best[i]];
        const int at = s[2 * t + i];
        weight[2 * t + i] = at < 0 ? 0 : i ? 1 - w1 : w1;
        if (at < 0) continue;
        if (at / C != best[i] || taken[at] >= 0 || o[at] != t)
          return "token " + std::to_string(t) + " has a wrong slot";
        taken[at] = t;
      }
    }
    for (int k = 0; k < E; ++k)  // every expert is full or has all who asked
      for (int i = 0; i < C; ++i)
        if ((taken[k * C + i] >= 0) != (i < count[k])) return "expert " + std::to_string(k) + " has a gap";
    const auto bad = agree(n.now(), count, .5, 0);
    return bad.empty() ? agree(w.now(), weight, 1e-6, 1e-6) : bad;
  };
  return j;
});

// --- keys and values of a step into a cache that goes round: the first R of D dims rotated in interleaved pairs,
// values as int8 with a scale a head; finished sequences write nothing
struct RoundCfg {
  int H = 3, D = 72, R = 40, warps = 1;
};
auto round_update =
    kernel("user_round_cache", [](const RoundCfg& c, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
                                  Ptr<const int64_t> place, Ptr<const bool> done, Tensor<bfloat16, 4> KC,
                                  Tensor<int8_t, 4> VC, Tensor<float, 3> scales, F32 base) {
      // K, V [B, H, D]; KC, VC [B, W, H, D]; scales [B, W, H]
      num_warps(c.warps);
      auto b = program_id(0);
      return_if(load(done + b));
      auto p = load(place + b);
      auto slot = cast(p % KC.dim64(1), i32);
      auto k = cast(reshape(K.load({b, 0, 0}, {1, c.H, c.D}), {c.H, c.D}), f32);
      auto pairs = reshape(extract(k, {0, 0}, {c.H, c.R}), {c.H, c.R / 2, 2});
      auto [x, y] = split(pairs);
      auto frequency = pow(base, cast(arange(0, c.R / 2), f32) * (-2.f / float(c.R)));
      auto angle = cast(cast(p, f64) * cast(frequency, f64), f32).row();
      auto co = cos(angle), si = sin(angle);
      auto turned = interleave(x * co - y * si, x * si + y * co);
      auto out = cat(turned, extract(k, {0, c.R}, {c.H, c.D - c.R}), 1);
      KC.store({b, slot, 0, 0}, reshape(cast(out, bf16), {1, 1, c.H, c.D}));
      auto v = cast(reshape(V.load({b, 0, 0}, {1, c.H, c.D}), {c.H, c.D}), f32);
      auto s = max(max(abs(v), axis(1)) / 127.f, 1e-8f);
      VC.store({b, slot, 0, 0}, reshape(saturate(rint(v / s), i8), {1, 1, c.H, c.D}));
      scales.store({b, slot, 0}, reshape(s, {1, 1, c.H}));
    }).grid([](const RoundCfg&, const auto& k, const auto&...) { return Grid{k.shape[0]}; });
Register r4("round_cache", [](Env& e) {
  const int B = e.big ? 1024 : 7, H = e.big ? 8 : 3, D = 72, R = 40, W = e.big ? 256 : 10;
  auto k = random<bfloat16>(e, size_t(B) * H * D, -3, 3), v = random<bfloat16>(e, size_t(B) * H * D, -3, 3);
  auto place = filled<int64_t>(e, B, [](size_t i) { return int64_t(i * i * 7919 + 9); });
  auto done = filled<uint8_t>(e, B, [](size_t i) { return i % 3 == 1; });
  const size_t n = size_t(B) * W * H;
  auto kc = constant<bfloat16>(e, n * D, .5);
  auto vc = constant<int8_t>(e, n * D, 77);
  auto s = constant<float>(e, n, -1);
  Job j;
  j.mbytes = 7e-6 * B * H * D;
  j.add(round_update, RoundCfg{H, D, R, e.field("warps", 1)}, k.view(B, H, D), v.view(B, H, D), place.p,
        reinterpret_cast<const bool*>(done.p), kc.view(B, W, H, D), vc.view(B, W, H, D), s.view(B, W, H), 1e4f);
  j.check = [=] {
    std::vector<double> wk(n * D, .5), wv(n * D, 77), ws(n, -1);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H && !done.h[b]; ++h) {
        const size_t r = (size_t(b) * H + h) * D, to = (size_t(b) * W + place.h[b] % W) * H + h;
        double most = 0;
        for (int d = 0; d < D; ++d) {
          most = std::max(most, std::abs(v[r + d]));
          const double angle = double(place.h[b]) * std::pow(1e4, -double(d / 2 * 2) / R);
          const double co = std::cos(angle), si = std::sin(angle);
          wk[to * D + d] = d >= R  ? k[r + d]
                           : d % 2 ? k[r + d - 1] * si + k[r + d] * co
                                   : k[r + d] * co - k[r + d + 1] * si;
        }
        ws[to] = most / 127;
        for (int d = 0; d < D; ++d) wv[to * D + d] = std::rint(v[r + d] / ws[to]);
      }
    auto bad = agree(kc.now(), wk, 8e-2, 1e-2);
    if (bad.empty()) bad = agree(vc.now(), wv, 1.01, 0);
    return bad.empty() ? agree(s.now(), ws, 1e-6, 1e-6) : bad;
  };
  return j;
});
}  // namespace scanned_states
}  // namespace users
