// routings.cpp - choices per token: experts in limited groups, experts of limited capacity, sampling above a share of
// the likeliest, a policy's loss over the vocabulary.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace routings {

// --- experts by groups: only those of the groups whose two best experts are strongest may be chosen
struct GroupsTopCfg {
  int BM = 4, E = 256, groups = 8, open = 4, K = 8, warps = 4;
};
auto group_top = kernel("user_group_top", [](const GroupsTopCfg& c, Tensor<const float, 2> logits,
                                             Tensor<const float, 1> bias, Tensor<int32_t, 2> experts,
                                             Tensor<float, 2> weights, F32 factor) {
  // logits [T, E], bias [E], experts, weights [T, K]
  num_warps(c.warps);
  auto m = program_id(0) * c.BM;
  const int per = c.E / c.groups;
  auto p = sigmoid(logits.load({m, 0}, {c.BM, c.E}));
  auto s = p + bias.load({0}, {c.E}).row();
  auto g = reshape(s, {c.BM, c.groups, per});
  auto best = argmax(g, axis(2));
  auto others = where(reshape(arange(0, per), {1, 1, per}) == best, -INFINITY, g);
  Tile strength = squeeze(max(g, axis(2)) + max(others, axis(2)), 2);
  Tile allowed = full({c.BM, c.groups}, false, i1);
  for (int i = 0; i < c.open; ++i) {
    auto hit = arange(0, c.groups).row() == argmax(strength, axis(1));
    allowed = allowed | hit;
    strength = where(hit, -INFINITY, strength);
  }
  Tile left = reshape(where(expand_dims(allowed, 2), g, -INFINITY), {c.BM, c.E});
  Tile chosen = zeros({c.BM, c.K}, i32), w = zeros({c.BM, c.K}, f32);
  auto column = arange(0, c.K).row();
  for (int i = 0; i < c.K; ++i) {
    auto at = argmax(left, axis(1));
    auto hit = arange(0, c.E).row() == at;
    chosen = where(column == i, at, chosen);
    w = where(column == i, sum(where(hit, p, 0.f), axis(1)), w);
    left = where(hit, -INFINITY, left);
  }
  experts.store({m, 0}, chosen);
  weights.store({m, 0}, w / sum(w, axis(1)) * factor);
}).grid([](const GroupsTopCfg& c, const auto& l, const auto&...) { return Grid{cdiv(l.shape[0], c.BM)}; });
Register r1("group_top", [](Env& e) {
  GroupsTopCfg c;
  if (!e.big) c = {2, 32, 4, 2, 3, 4};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 16384 : 13, E = c.E, K = c.K, G = c.groups, per = E / G;
  auto x = random<float>(e, size_t(T) * E, -3, 3), bias = random<float>(e, E, -.1, .1);
  auto at = constant<int32_t>(e, size_t(T) * K, -7);
  auto w = constant<float>(e, at.n, NAN);
  Job j;
  j.mbytes = 1e-6 * T * (4. * E + 8 * K);
  j.add(group_top, c, x.view(T, E), bias.view(E), at.view(T, K), w.view(T, K), 2.5f);
  j.check = [=] {
    std::vector<double> wa, ww;
    for (int t = 0; t < T; ++t) {
      std::vector<double> p(E), s(E), strength(G);
      for (int i = 0; i < E; ++i) p[i] = 1 / (1 + std::exp(-x[size_t(t) * E + i])), s[i] = p[i] + bias[i];
      for (int g = 0; g < G; ++g) {
        std::vector<double> of(s.begin() + g * per, s.begin() + (g + 1) * per);
        std::sort(of.rbegin(), of.rend());
        strength[g] = of[0] + of[1];
      }
      std::vector<int> order(G), all(E);
      std::iota(order.begin(), order.end(), 0), std::iota(all.begin(), all.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return strength[a] > strength[b]; });
      for (int g = c.open; g < G; ++g)
        for (int i = 0; i < per; ++i) s[order[g] * per + i] = -1e9;
      std::stable_sort(all.begin(), all.end(), [&](int a, int b) { return s[a] > s[b]; });
      double total = 0;
      for (int i = 0; i < K; ++i) total += p[all[i]];
      for (int i = 0; i < K; ++i) wa.push_back(all[i]), ww.push_back(p[all[i]] / total * 2.5);
    }
    const auto wrong = agree(at.now(), wa, .5, 0);
    return wrong.empty() ? agree(w.now(), ww, 1e-5, 1e-5) : "experts: " + wrong;
  };
  return j;
});

// --- experts of limited capacity: each token's expert, its place there in order of tokens (-1: no room), the loss that
// evens experts out
struct CapacityCfg {
  int BT = 64, E = 64, warps = 4;
};
auto capacity = kernel("user_capacity", [](const CapacityCfg& c, Tensor<const bfloat16, 2> logits,
                                           Tensor<int32_t, 1> place, Tensor<float, 1> gate, Ptr<float> loss, I32 room) {
  // logits [T, E], place, gate [T], loss [1]
  num_warps(c.warps);
  auto T = logits.dim(0);
  Tile taken = zeros({1, c.E}, i32), shares = zeros({1, c.E}, f32);
  for (auto t : range(0, T, c.BT)) {
    auto p = softmax(cast(logits.load({t, 0}, {c.BT, c.E}), f32), axis(1));
    auto there = (t + arange(0, c.BT) < T).col();
    auto expert = argmax(p, axis(1));
    auto mine = (arange(0, c.E).row() == expert) & there;
    auto ones = cast(mine, i32);
    auto at = sum(where(mine, taken + cumsum(ones, axis(0)) - 1, 0), axis(1));
    place.store({t}, squeeze(where(at < room, expert * room + at, -1), 1));
    gate.store({t}, squeeze(where(at < room, max(p, axis(1)), 0.f), 1));
    taken += sum(ones, axis(0));
    shares += sum(where(there, p, 0.f), axis(0));
  }
  auto n = cast(T, f32);
  store(loss, sum(cast(taken, f32) / n * (shares / n)) * float(c.E));
}).grid([](const CapacityCfg&, const auto&...) { return Grid{1}; });
Register r2("capacity", [](Env& e) {
  CapacityCfg c;
  if (!e.big) c = {16, 8, 4};
  c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 53, E = c.E, room = e.big ? 160 : 8;
  auto x = random<bfloat16>(e, size_t(T) * E, -3, 3);
  auto place = constant<int32_t>(e, T, -7);
  auto gate = constant<float>(e, T, NAN), loss = constant<float>(e, 1, NAN);
  Job j;
  j.mbytes = 1e-6 * T * (2. * E + 8);
  j.add(capacity, c, x.view(T, E), place.view(T), gate.view(T), loss.p, room);
  j.check = [=] {
    std::vector<double> wp, wg, share(E), taken(E);
    for (int t = 0; t < T; ++t) {
      double total = 0;
      int best = 0;
      for (int i = 0; i < E; ++i) {
        total += std::exp(x[size_t(t) * E + i]);
        if (x[size_t(t) * E + i] > x[size_t(t) * E + best]) best = i;
      }
      for (int i = 0; i < E; ++i) share[i] += std::exp(x[size_t(t) * E + i]) / total / T;
      const bool fits = taken[best] < room;
      wp.push_back(fits ? best * room + taken[best] : -1);
      wg.push_back(fits ? std::exp(x[size_t(t) * E + best]) / total : 0);
      taken[best] += 1;
    }
    double sum = 0;
    for (int i = 0; i < E; ++i) sum += taken[i] / T * share[i] * E;
    auto wrong = agree(place.now(), wp, .5, 0);
    if (wrong.empty()) wrong = agree(gate.now(), wg, 1e-5, 1e-5);
    return wrong.empty() ? agree(loss.now(), {sum}, 1e-5, 1e-5) : wrong;
  };
  return j;
});

// --- sampling among the words that are at least `share` times as likely as the likeliest (min-p)
struct MinPCfg {
  int BV = 2048, warps = 8;
};
auto min_p = kernel("user_min_p", [](const MinPCfg& c, Tensor<const half, 2> logits, Tensor<int32_t, 1> words, F32 heat,
                                     F32 share, I64 seed) {
  num_warps(c.warps);
  auto b = program_id(0), V = logits.dim(1);
  Tile top = -INFINITY;
  for (auto v : range(0, V, c.BV))
    top = max(top, max(cast(logits.load({b, v}, {c.BV}, {.pad = -INFINITY}), f32)));
  auto weights = [&](auto v) {
    auto w = exp((cast(logits.load({b, v}, {c.BV}, {.pad = -INFINITY}), f32) - top) / heat);
    return where(w >= share, w, 0.f);
  };
  Tile total = 0.f;
  for (auto v : range(0, V, c.BV)) total += sum(weights(v));
  auto want = rand(seed, b) * total;
  Tile before = 0.f, word = -1;
  for (auto v : range(0, V, c.BV)) {
    auto w = weights(v);
    auto sums = before + cumsum(w, axis(0));
    auto found = (sums > want) & (w > 0.f);
    auto first = min(where(found, v + arange(0, c.BV), 1 << 30));
    word = where((word < 0) & (first < (1 << 30)), first, word);
    before = before + sum(w);
    break_if(word >= 0);
  }
  words.store({b}, reshape(word, {1}));
}).grid([](const MinPCfg&, const auto& l, const auto&...) { return Grid{l.shape[0]}; });
Register r3("min_p", [](Env& e) {
  MinPCfg c;
  if (!e.big) c = {64, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 256 : 9, V = e.big ? 128256 : 301;
  auto x = random<half>(e, size_t(B) * V, -4, 4);
  auto words = constant<int32_t>(e, B, -7);
  Job j;
  j.mbytes = 6e-6 * B * V;
  j.add(min_p, c, x.view(B, V), words.view(B), .7f, .02f, int64_t(5));
  j.check = [=] {
    const auto got = words.now();
    for (int b = 0; b < B; ++b) {
      double top = -1e9, total = 0, sum = 0;
      for (int v = 0; v < V; ++v) top = std::max(top, x[size_t(b) * V + v]);
      auto w = [&](int v) {
        const double p = std::exp((x[size_t(b) * V + v] - top) / .7f);
        return p >= .02f ? p : 0.;
      };
      for (int v = 0; v < V; ++v) total += w(v);
      const double want = double(reference_philox(5, b)[0] >> 8) * 0x1p-24 * total;
      for (int v = 0; v < got[b]; ++v) sum += w(v);
      if (got[b] < 0 || got[b] >= V || w(got[b]) == 0 || sum > want + 1e-4 * total ||
          sum + w(got[b]) < want - 1e-4 * total)
        return "row " + std::to_string(b) + ": " + std::to_string(got[b]);
    }
    return std::string();
  };
  return j;
});

// --- loss of a policy (GRPO): likelihood of the word that was taken, clipped ratio, distance to a reference; the
// logits become their gradients
struct PolicyCfg {
  int BV = 4096, warps = 8;
};
auto policy = kernel("user_policy", [](const PolicyCfg& c, Tensor<bfloat16, 2> logits, Ptr<const int32_t> words,
                                       Ptr<const float> old_, Ptr<const float> reference, Ptr<const float> advantage,
                                       Ptr<const uint8_t> counted, Ptr<float> loss, F32 clip, F32 beta) {
  // logits [N, V]; all others [N]
  num_warps(c.warps);
  auto n = program_id(0), V = logits.dim(1);
  Tile m = -INFINITY, l = 0.f;
  for (auto v : range(0, V, c.BV)) {
    auto x = cast(logits.load({n, v}, {c.BV}, {.pad = -INFINITY}), f32);
    auto m2 = max(m, max(x));
    l = l * exp(m - m2) + sum(exp(x - m2));
    m = m2;
  }
  auto lse = m + log(l);
  auto word = load(words + n);
  auto lp = cast(logits.load({n, word}), f32) - lse;
  auto ratio = exp(lp - load(old_ + n)), A = load(advantage + n);
  auto clipped = clamp(ratio, 1.f - clip, 1.f + clip);
  auto d = load(reference + n) - lp;
  auto live = load(counted + n) != 0;
  store(loss + n, where(live, beta * (exp(d) - d - 1.f) - min(ratio * A, clipped * A), 0.f));
  auto slope = where(ratio * A <= clipped * A, -ratio * A, 0.f) + beta * (1.f - exp(d));
  slope = where(live, slope, 0.f);
  for (auto v : range(0, V, c.BV)) {
    auto p = exp(cast(logits.load({n, v}, {c.BV}, {.pad = -INFINITY}), f32) - lse);
    auto one = where(v + arange(0, c.BV) == word, 1.f, 0.f);
    logits.store({n, v}, cast(slope * (one - p), bf16));
  }
}).grid([](const PolicyCfg&, const auto& l, const auto&...) { return Grid{l.shape[0]}; });
Register r4("policy", [](Env& e) {
  PolicyCfg c;
  if (!e.big) c = {64, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 4096 : 9, V = e.big ? 151936 : 203;
  auto x = random<bfloat16>(e, size_t(N) * V, -2, 2);
  auto words = integers<int32_t>(e, N, 0, V);
  const double likely = -std::log(double(V)) - .6;
  auto old_ = random<float>(e, N, likely - .5, likely + .5), ref = random<float>(e, N, likely - .5, likely + .5);
  auto adv = random<float>(e, N, -2, 2), loss = constant<float>(e, N, NAN);
  auto live = filled<uint8_t>(e, N, [](size_t i) { return uint8_t(i % 5 != 3); });
  Job j;
  j.inTurn = true;
  j.mbytes = 6e-6 * N * V;
  j.add(policy, c, x.view(N, V), words.p, old_.p, ref.p, adv.p, live.p, loss.p, .2f, .04f);
  j.check = [=] {
    std::vector<double> wg(x.n), wl(N);
    for (int n = 0; n < N; ++n) {
      if (!live.at(n)) continue;
      double l = 0;
      for (int v = 0; v < V; ++v) l += std::exp(x[size_t(n) * V + v]);
      const double lp = x[size_t(n) * V + words.at(n)] - std::log(l), ratio = std::exp(lp - old_[n]), A = adv[n];
      const double clipped = std::min(std::max(ratio, .8), 1.2), d = ref[n] - lp;
      wl[n] = .04 * (std::exp(d) - d - 1) - std::min(ratio * A, clipped * A);
      const double slope = (ratio * A <= clipped * A ? -ratio * A : 0) + .04 * (1 - std::exp(d));
      for (int v = 0; v < V; ++v)
        wg[size_t(n) * V + v] = slope * ((v == words.at(n)) - std::exp(x[size_t(n) * V + v]) / l);
    }
    const auto wrong = agree(loss.now(), wl, 1e-4, 1e-4);
    return wrong.empty() ? agree(x.now(), wg, 1e-4, 1e-2) : "loss: " + wrong;
  };
  return j;
});

}  // namespace routings
}  // namespace users
