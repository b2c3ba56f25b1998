// drafted_draws.cpp - tokens drawn and weighed: which path of a drafted tree is typical enough to keep, several tokens
// of a row at once, losses against a teacher's best tokens and against ratios of whole sequences, and an optimiser
// whose second moment takes 4 bits.
#include "tests/users/use.h"
namespace users {
namespace drafted_draws {

// --- nodes of a drafted tree: log of the sum of exponents and the entropy of every row of logits
struct RowsCfg {
  int BV = 4096, warps = 8;
};
auto tree_entropy = kernel("user_tree_entropy", [](const RowsCfg& c, Tensor<const bfloat16, 2> logits, Ptr<float> lse,
                                                   Ptr<float> entropy, F32 inverse) {
                      num_warps(c.warps);
                      auto r = program_id(0);
                      Tile top = full({}, -INFINITY, f32), total = full({}, 0.f, f32), weighted = full({}, 0.f, f32);
                      for (auto v : range(0, logits.dim(1), c.BV)) {
                        auto x = cast(logits.load({r, v}, {c.BV}, {.pad = -INFINITY}), f32) * inverse;
                        auto now = max(top, max(x));
                        auto p = exp(x - now);
                        auto shrink = exp(top - now);
                        total = total * shrink + sum(p);
                        weighted = weighted * shrink + sum(where(p > 0.f, p * x, 0.f));
                        top = now;
                      }
                      auto l = top + log(total);
                      store(lse + r, l);
                      store(entropy + r, l - weighted / total);
                    }).grid([](const RowsCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
// --- then every path from the root: as long as its tokens are likely enough for the entropy where they were drawn
struct PathsCfg {
  int P = 64, L = 8;
};
auto tree_typical = kernel("user_tree_typical", [](const PathsCfg& c, Ptr<const bfloat16> logits, Ptr<const float> lse,
                                                   Ptr<const float> entropy, Ptr<const int32_t> tokens,
                                                   Ptr<const int32_t> paths, Ptr<int32_t> best, Ptr<int32_t> length,
                                                   I32 nodes, I32 V, F32 inverse, F32 least, F32 delta) {
  auto b = program_id(0);
  auto p = arange(0, c.P), l = arange(0, c.L);
  auto at = p.col() * (c.L + 1) + l.row();  // a path: the root, then up to L nodes, then -1
  auto parent = load(paths + at), child = load(paths + at + 1);
  auto there = (parent >= 0) & (child >= 0);
  auto token = load(tokens + b * nodes + child, {.mask = there, .other = 0});
  auto row = b * nodes + parent;
  auto x = cast(load(logits + (cast(row, i64) * V + token), {.mask = there}), f32) * inverse;
  auto likely = exp(x - load(lse + row, {.mask = there, .other = 0.f}));
  auto bar = min(least, delta * exp(-load(entropy + row, {.mask = there, .other = 0.f})));
  auto kept = cast(there & (likely > bar), i32);
  auto n = squeeze(sum(cumprod(kept, axis(1)), axis(1)), 1);
  auto [longest, which] = max_with_index(n, axis(0));
  store(best + b, to_scalar(which));
  store(length + b, to_scalar(longest));
});
Register r1("tree_typical", [](Env& e) {
  RowsCfg c;
  if (!e.big) c = {64, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const PathsCfg s = e.big ? PathsCfg{64, 8} : PathsCfg{8, 4};
  const int B = e.big ? 16 : 5, nodes = e.big ? 64 : 12, V = e.big ? 128256 : 150;
  const float inverse = 1 / .7f, least = .3f, delta = .09f;
  auto x = random<bfloat16>(e, size_t(B) * nodes * V, -3, 3);
  auto tokens = integers<int32_t>(e, size_t(B) * nodes, 0, V);
  std::vector<int32_t> way(s.P * (s.L + 1), -1);  // node n hangs below (n - 1) / 2; a path to every node but the root
  for (int p = 0; p < s.P; ++p) {
    std::vector<int> up;
    for (int n = 1 + p * 7 % (nodes - 1); n; n = (n - 1) / 2) up.push_back(n);
    up.push_back(0);
    for (size_t i = 0; i < up.size() && int(i) <= s.L; ++i) way[p * (s.L + 1) + i] = up[up.size() - 1 - i];
  }
  auto paths = repeated(e, way.size(), way);
  auto lse = constant<float>(e, size_t(B) * nodes, NAN), h = constant<float>(e, size_t(B) * nodes, NAN);
  auto best = constant<int32_t>(e, B, -1), length = constant<int32_t>(e, B, -1);
  Job j;
  j.mbytes = 2e-6 * x.n;
  j.add(tree_entropy, c, x.view(B * nodes, V), lse.p, h.p, inverse);
  j.add(tree_typical.grid([B](const PathsCfg&, auto...) { return Grid{B}; }), s, x.p, lse.p, h.p, tokens.p, paths.p,
        best.p, length.p, nodes, V, inverse, least, delta);
  j.check = [=]() -> std::string {
    std::vector<double> wl, wh;
    for (int r = 0; r < B * nodes; ++r) {
      double sum = 0, mean = 0;
      for (int v = 0; v < V; ++v) sum += std::exp(x[size_t(r) * V + v] * inverse);
      for (int v = 0; v < V; ++v) {
        const double y = x[size_t(r) * V + v] * inverse;
        mean += y * std::exp(y) / sum;
      }
      wl.push_back(std::log(sum)), wh.push_back(std::log(sum) - mean);
    }
    if (auto wrong = agree(lse.now(), wl, 1e-4, 1e-4); !wrong.empty()) return "lse: " + wrong;
    if (auto wrong = agree(h.now(), wh, 1e-3, 1e-3); !wrong.empty()) return "entropy: " + wrong;
    const auto which = best.now(), n = length.now();
    int lengths = 0;
    for (int b = 0; b < B; ++b) {
      int longest = 0, first = 0;
      for (int p = 0; p < s.P; ++p) {
        int kept = 0;
        for (; kept < s.L && way[p * (s.L + 1) + kept + 1] >= 0; ++kept) {
          const int r = b * nodes + way[p * (s.L + 1) + kept],
                    token = tokens.at(b * nodes + way[p * (s.L + 1) + kept + 1]);
          if (std::exp(x[size_t(r) * V + token] * inverse - wl[r]) <= std::min<double>(least, delta * std::exp(-wh[r])))
            break;
        }
        if (kept > longest) longest = kept, first = p;
      }
      lengths |= 1 << longest;
      if (which[b] != first || n[b] != longest) return "sequence " + std::to_string(b);
    }
    return lengths & (lengths - 1) ? "" : "the same length everywhere";
  };
  return j;
});

// --- K different tokens of every row in one pass: the largest of logits / temperature + Gumbel noise, and how likely
// each was
struct DrawCfg {
  int BV = 1024, K = 8, warps = 4;
};
auto draw_many =
    kernel("user_draw_many", [](const DrawCfg& c, Tensor<const bfloat16, 2> logits, Ptr<const float> temperature,
                                Ptr<int32_t> tokens, Ptr<float> logp, U64 seed) {
      num_warps(c.warps);
      auto r = program_id(0);
      auto V = logits.dim(1);
      auto inverse = 1.f / load(temperature + r);
      Tile best = full({c.K}, -INFINITY, f32), ids = zeros({c.K}, i32), own = full({c.K}, -INFINITY, f32);
      Tile top = full({}, -INFINITY, f32), total = full({}, 0.f, f32);
      for (auto v0 : range(0, V, c.BV)) {
        auto x = cast(logits.load({r, v0}, {c.BV}, {.pad = -INFINITY}), f32) * inverse;
        auto now = max(top, max(x));
        total = total * exp(top - now) + sum(exp(x - now));
        top = now;
        auto u = max(rand(seed, cast(r, i64) * V + v0 + arange(0, c.BV)), 1e-10f);
        auto [noisy, at] = topk(x - log(-log(u)), c.K, axis(0));
        auto [both, which] = topk(cat(best, noisy), c.K, axis(0));
        best = both;
        ids = take(cat(ids, v0 + at), which, 0);
        own = take(cat(own, take(x, at, 0)), which, 0);
      }
      auto i = r * c.K + arange(0, c.K);
      store(tokens + i, ids);
      store(logp + i, own - (top + log(total)));
    }).grid([](const DrawCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r2("draw_many", [](Env& e) {
  DrawCfg c;
  if (!e.big) c = {64, 4, 2};
  c.BV = e.field("BV", c.BV), c.K = e.field("K", c.K), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 256 : 6, V = e.big ? 128256 : 333;
  auto x = random<bfloat16>(e, size_t(M) * V, -3, 3);
  auto t = random<float>(e, M, .5, 1.5);
  auto ids = constant<int32_t>(e, size_t(M) * c.K, -1);
  auto logp = constant<float>(e, ids.n, NAN);
  const uint64_t seed = 0xfedcba987654ull;
  Job j;
  j.mbytes = 2e-6 * x.n;
  j.add(draw_many, c, x.view(M, V), t.p, ids.p, logp.p, seed);
  j.check = [=]() -> std::string {
    const auto got = ids.now();
    std::vector<double> want;
    for (int m = 0; m < M; ++m) {
      std::vector<double> g(V);
      double sum = 0;
      for (int v = 0; v < V; ++v) {
        const double u = std::max((reference_philox(seed, uint64_t(m) * V + v)[0] >> 8) * 0x1p-24, 1e-10);
        g[v] = x[size_t(m) * V + v] / t[m] - std::log(-std::log(u));
        sum += std::exp(x[size_t(m) * V + v] / t[m]);
      }
      auto order = g;
      std::sort(order.begin(), order.end(), std::greater<>());
      for (int i = 0; i < c.K; ++i) {
        const int v = got[m * c.K + i];
        if (v < 0 || v >= V || std::abs(g[v] - order[i]) > 1e-3)
          return "draw " + std::to_string(i) + " of row " + std::to_string(m);
        for (int k = 0; k < i; ++k)
          if (got[m * c.K + k] == v) return "drawn twice in row " + std::to_string(m);
        want.push_back(x[size_t(m) * V + v] / t[m] - std::log(sum));
      }
    }
    return agree(logp.now(), want, 1e-3, 1e-4);
  };
  return j;
});

// --- distillation from a teacher's K best tokens, everything else as one event: the loss, and its gradient over all
// words
struct DistilCfg {
  int BV = 4096, K = 64, warps = 8;
};
auto sparse_distil =
    kernel("user_sparse_distil", [](const DistilCfg& c, Tensor<const bfloat16, 2> X, Ptr<const int32_t> ids,
                                    Ptr<const float> teacher, Ptr<float> loss, Ptr<bfloat16> grad, F32 scale) {
      num_warps(c.warps);
      auto r = program_id(0), V = X.dim(1);
      Tile top = full({}, -INFINITY, f32), total = full({}, 0.f, f32);
      for (auto v : range(0, V, c.BV)) {
        auto x = cast(X.load({r, v}, {c.BV}, {.pad = -INFINITY}), f32);
        auto now = max(top, max(x));
        total = total * exp(top - now) + sum(exp(x - now));
        top = now;
      }
      auto lse = top + log(total);
      auto k = arange(0, c.K);
      auto id = load(ids + r * c.K + k);
      auto logp = load(teacher + r * c.K + k), p = exp(logp);
      auto row = cast(r, i64) * V;
      auto logq = cast(load(X.ptr() + row + id), f32) - lse, q = exp(logq);
      auto P = sum(p), Q = sum(q);
      auto rest = max(1.f - P, 1e-6f), left = max(1.f - Q, 1e-6f);
      store(loss + r, sum(p * (logp - logq)) + rest * (log(rest) - log(left)));
      auto all = P - rest / left * Q;
      for (auto v : range(0, V, c.BV)) {
        auto i = v + arange(0, c.BV);
        auto x = cast(X.load({r, v}, {c.BV}), f32);
        store(grad + row + i, cast(exp(x - lse) * all * scale, bf16), {.mask = i < V});
      }
      store(grad + row + id, cast((q * (all + rest / left) - p) * scale, bf16));  // over what the loop has left there
    }).grid([](const DistilCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r3("sparse_distil", [](Env& e) {
  DistilCfg c;
  if (!e.big) c = {64, 8, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 4096 : 5, V = e.big ? 128256 : 201;
  auto x = random<bfloat16>(e, size_t(T) * V, -3, 3);
  auto ids = filled<int32_t>(e, size_t(T) * c.K, [&](size_t i) { return int((i % c.K * 977 + i / c.K * 31) % V); });
  auto teacher = filled<float>(e, ids.n, [&](size_t) { return float(std::log((.2 + .7 * e.uniform()) / c.K)); });
  auto loss = constant<float>(e, T, NAN);
  auto grad = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.mbytes = 6e-6 * x.n;
  j.add(sparse_distil, c, x.view(T, V), ids.p, teacher.p, loss.p, grad.p, 64.f);
  j.check = [=]() -> std::string {
    std::vector<double> wl(T), wg(x.n);
    for (int t = 0; t < T; ++t) {
      double sum = 0, P = 0, Q = 0;
      std::vector<double> q(V), p(V);
      for (int v = 0; v < V; ++v) sum += std::exp(x[size_t(t) * V + v]);
      for (int v = 0; v < V; ++v) q[v] = std::exp(x[size_t(t) * V + v]) / sum;
      for (int k = 0; k < c.K; ++k) {
        const int v = ids.at(t * c.K + k);
        p[v] = std::exp(teacher[t * c.K + k]), P += p[v], Q += q[v];
        wl[t] += p[v] * std::log(p[v] / q[v]);
      }
      wl[t] += (1 - P) * std::log((1 - P) / (1 - Q));
      // d loss / d q_v, then through the softmax: g_v = q_v (d_v - sum of q d)
      double mean = 0;
      auto d = [&](int v) { return p[v] > 0 ? -p[v] / q[v] + (1 - P) / (1 - Q) : 0; };
      for (int v = 0; v < V; ++v) mean += q[v] * d(v);
      for (int v = 0; v < V; ++v) wg[size_t(t) * V + v] = 64 * q[v] * (d(v) - mean);
    }
    auto wrong = agree(loss.now(), wl, 1e-3, 1e-3);
    return wrong.empty() ? agree(grad.now(), wg, 1e-3, 1e-2) : wrong;
  };
  return j;
});

// --- a policy's loss with one ratio per sequence (GSPO): the mean of differences of its tokens' log-probabilities
struct SequenceCfg {
  int B = 1024, warps = 4;
};
auto gspo =
    kernel("user_gspo", [](const SequenceCfg& c, Ptr<const float> now, Ptr<const float> before, Ptr<const int32_t> ends,
                           Ptr<const float> advantage, Ptr<float> loss, Ptr<float> grad, F32 low, F32 high) {
      num_warps(c.warps);
      auto s = program_id(0);
      auto begin = load(ends + s), end = load(ends + s + 1);
      return_if(begin == end);
      Tile sums = zeros({c.B}, f32);
      for (auto t : range(begin, end, c.B)) {
        auto i = t + arange(0, c.B);
        sums += load(now + i, {.mask = i < end}) - load(before + i, {.mask = i < end});
      }
      auto n = cast(end - begin, f32);
      auto ratio = exp(sum(sums) / n), a = load(advantage + s);
      auto clipped = clamp(ratio, 1.f - low, 1.f + high);
      store(loss + s, -min(ratio * a, clipped * a));
      auto each = where(ratio * a <= clipped * a, -ratio * a / n, 0.f);
      for (auto t : range(begin, end, c.B)) {
        auto i = t + arange(0, c.B);
        store(grad + i, each, {.mask = i < end});
      }
    });
Register r4("gspo", [](Env& e) {
  SequenceCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int S = e.big ? 4096 : 9;
  std::vector<int32_t> sums{0};
  for (int i = 0; i < S; ++i) sums.push_back(sums.back() + (i == 4 ? 0 : int((e.big ? 8192 : 100) * e.uniform())));
  const int total = sums.back();
  auto ends = repeated(e, S + 1, sums);
  auto before = random<float>(e, total, -3, 0);
  int own = 0;  // every sequence has drifted by an amount of its own: some past the bounds on either side
  auto now = filled<float>(e, total, [&](size_t i) {
    while (int(i) >= sums[own + 1]) ++own;
    return float(before[i] + .08 * (own * 37 % 11 - 5) + .2 * e.uniform());
  });
  auto a = random<float>(e, S, -2, 2);
  auto loss = constant<float>(e, S, 7), grad = constant<float>(e, total, NAN);
  Job j;
  j.mbytes = 12e-6 * total;
  j.add(gspo.grid([S](const SequenceCfg&, auto...) { return Grid{S}; }), c, now.p, before.p, ends.p, a.p, loss.p,
        grad.p, .2f, .28f);
  j.check = [=] {
    std::vector<double> wl(S, 7), wg(total);
    for (int s = 0; s < S; ++s) {
      const int n = sums[s + 1] - sums[s];
      if (!n) continue;
      double mean = 0;
      for (int i = sums[s]; i < sums[s + 1]; ++i) mean += (now[i] - before[i]) / n;
      const double ratio = std::exp(mean), inside = std::clamp(ratio, .8, 1.28);
      wl[s] = -std::min(ratio * a[s], inside * a[s]);
      for (int i = sums[s]; i < sums[s + 1]; ++i) wg[i] = ratio * a[s] <= inside * a[s] ? -ratio * a[s] / n : 0;
    }
    auto wrong = agree(loss.now(), wl, 1e-4, 1e-4);
    return wrong.empty() ? agree(grad.now(), wg, 1e-6, 1e-4) : wrong;
  };
  return j;
});

// --- AdamW whose second moment is 4 bits times the smaller of its row's and its column's largest: the new largest ones
// first, then the step and the new codes
struct Rank1Cfg {
  int BM = 32, BN = 128, warps = 4;
};
/// The second moment behind this step: codes 0 .. 15 stand for (code + 1) / 16 of the scale.
Tile second_moment(const Rank1Cfg& c, Tensor<uint8_t, 2> codes, Tile rows, Tile columns, Tile g, Tile m, Tile n) {
  auto bytes = codes.load({m, n / 2}, {c.BM, c.BN / 2});
  auto code = interleave(bytes & uint8_t(15), bytes >> 4);
  auto v = (cast(code, f32) + 1.f) * (1.f / 16) * min(rows.col(), columns.row());
  return .95f * v + .05f * g * g;
}
auto rank1_tops = kernel("user_rank1_tops", [](const Rank1Cfg& c, Tensor<const bfloat16, 2> G, Tensor<uint8_t, 2> codes,
                                               Tensor<const float, 1> rows, Tensor<const float, 1> columns,
                                               Ptr<float> new_rows, Ptr<float> new_columns) {
                    num_warps(c.warps);
                    auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                    auto g = cast(G.load({m, n}, {c.BM, c.BN}), f32);
                    auto v = second_moment(c, codes, rows.load({m}, {c.BM}), columns.load({n}, {c.BN}), g, m, n);
                    auto i = m + arange(0, c.BM), k = n + arange(0, c.BN);
                    v = where((i < G.dim(0)).col() & (k < G.dim(1)).row(), v, 0.f);
                    atomic_max(new_rows + i, squeeze(max(v, axis(1)), 1), {.mask = i < G.dim(0)});
                    atomic_max(new_columns + k, squeeze(max(v, axis(0)), 0), {.mask = k < G.dim(1)});
                  }).grid([](const Rank1Cfg& c, const auto& g, const auto&...) {
  return Grid{cdiv(g.shape[0], c.BM), cdiv(g.shape[1], c.BN)};
});
auto rank1_step = kernel("user_rank1_step", [](const Rank1Cfg& c, Tensor<const bfloat16, 2> G, Tensor<uint8_t, 2> codes,
                                               Tensor<const float, 1> rows, Tensor<const float, 1> columns,
                                               Tensor<const float, 1> new_rows, Tensor<const float, 1> new_columns,
                                               Tensor<bfloat16, 2> M, Tensor<float, 2> W, F32 rate, F32 decay) {
                    num_warps(c.warps);
                    auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                    auto g = cast(G.load({m, n}, {c.BM, c.BN}), f32);
                    auto v = second_moment(c, codes, rows.load({m}, {c.BM}), columns.load({n}, {c.BN}), g, m, n);
                    auto first = .9f * cast(M.load({m, n}, {c.BM, c.BN}), f32) + .1f * g;
                    M.store({m, n}, cast(first, bf16));
                    auto w = W.load({m, n}, {c.BM, c.BN});
                    W.store({m, n}, w - rate * (first / (sqrt(v) + 1e-8f) + decay * w));
                    auto scale =
                        max(min(new_rows.load({m}, {c.BM}).col(), new_columns.load({n}, {c.BN}).row()), 1e-30f);
                    auto code = cast(clamp(rint(v / scale * 16.f) - 1.f, 0.f, 15.f), u8);
                    auto [low, high] = split(reshape(code, {c.BM, c.BN / 2, 2}));
                    codes.store({m, n / 2}, low | (high << 4));
                  }).grid([](const Rank1Cfg& c, const auto& g, const auto&...) {
  return Grid{cdiv(g.shape[0], c.BM), cdiv(g.shape[1], c.BN)};
});
Register r5("rank1_adam", [](Env& e) {
  Rank1Cfg c;
  if (!e.big) c = {8, 32, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 8192 : 21, N = e.big ? 8192 : 74;
  const size_t n = size_t(M) * N;
  auto g = random<bfloat16>(e, n);
  auto codes = integers<uint8_t>(e, n / 2, 0, 256);
  auto rows = random<float>(e, M, .1, 1), columns = random<float>(e, N, .1, 1);
  auto new_rows = constant<float>(e, M, 0), new_columns = constant<float>(e, N, 0);
  auto first = random<bfloat16>(e, n);
  auto w = random<float>(e, n);
  Job j;
  j.inTurn = true;
  restore(e, j, codes, new_rows, new_columns, first, w);
  j.mbytes = 1e-6 * n * (2 * 2.5 + 4.5 + 8);
  j.add(rank1_tops, c, g.view(M, N), codes.view(M, N / 2), rows.view(M), columns.view(N), new_rows.p, new_columns.p);
  j.add(rank1_step, c, g.view(M, N), codes.view(M, N / 2), rows.view(M), columns.view(N), new_rows.view(M),
        new_columns.view(N), first.view(M, N), w.view(M, N), .1f, .01f);
  j.check = [=]() -> std::string {
    std::vector<double> v(n), r(M), k(N), wm(n), ww(n);
    for (size_t i = 0; i < n; ++i) {
      const int code = codes.at(i / 2) >> i % 2 * 4 & 15;
      v[i] = .95 * (code + 1) / 16 * std::min(rows[i / N], columns[i % N]) + .05 * g[i] * g[i];
      r[i / N] = std::max(r[i / N], v[i]), k[i % N] = std::max(k[i % N], v[i]);
      wm[i] = .9 * first[i] + .1 * g[i];
      ww[i] = w[i] - .1 * (wm[i] / (std::sqrt(v[i]) + 1e-8) + .01 * w[i]);
    }
    if (auto wrong = agree(new_rows.now(), r, 1e-6, 1e-5); !wrong.empty()) return "rows: " + wrong;
    if (auto wrong = agree(new_columns.now(), k, 1e-6, 1e-5); !wrong.empty()) return "columns: " + wrong;
    if (auto wrong = agree(first.now(), wm, 1e-3, 1e-2); !wrong.empty()) return "first: " + wrong;
    if (auto wrong = agree(w.now(), ww, 1e-4, 1e-4); !wrong.empty()) return "weights: " + wrong;
    const auto bytes = codes.now();
    for (size_t i = 0; i < n; ++i) {
      const double exact = v[i] / std::min(r[i / N], k[i % N]) * 16 - 1;
      if (std::abs((bytes[i / 2] >> i % 2 * 4 & 15) - std::clamp(exact, 0., 15.)) > .501)
        return "code " + std::to_string(i);
    }
    return "";
  };
  return j;
});

}  // namespace drafted_draws
}  // namespace users
