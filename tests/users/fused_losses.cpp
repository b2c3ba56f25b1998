// fused_losses.cpp - losses and layers of training libraries, written as they write them: cross entropy that leaves its
// gradient in place, sums of likelihoods of preferred answers, a norm without statistics, softmax with zeros, attention
// whose scores are convolved.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace fused_losses {

// --- cross entropy with everything (Liger): ignored labels, weights of classes, smoothing, a soft cap, a penalty on the
// log-sum; the gradient goes where the logits were, row by row, in blocks of the vocabulary
struct CeCfg {
  int BV = 4096, warps = 16;
};
auto ce_in_place = kernel("user_ce_in_place", [](const CeCfg& c, Ptr<bfloat16> X, I64 stride, Ptr<const int64_t> Y,
                                                 Ptr<const float> weight, Ptr<float> loss, Ptr<float> z_loss, I32 V,
                                                 F32 counted, F32 smoothing, F32 z_scale, F32 cap, I32 ignored) {
  num_warps(c.warps);
  auto row = cast(program_id(0), i64);
  auto y = load(Y + row);
  auto x = X + row * stride;
  auto v = arange(0, c.BV);
  if_(y == cast(ignored, i64), [&] {
    for (auto i : range(0, V, c.BV)) store(x + (i + v), full({c.BV}, 0.f, bf16), {.mask = i + v < V});
    store(loss + row, 0.f);
    store(z_loss + row, 0.f);
  }, [&] {
    auto at_label = cap * tanh(cast(load(x + y), f32) / cap);
    auto w = load(weight + y);
    Tile m = full({}, -INFINITY, f32), d = zeros({}, f32), smooth = zeros({}, f32), total = zeros({}, f32);
    for (auto i : range(0, V, c.BV)) {
      auto there = i + v < V;
      auto block = cast(load(x + (i + v), {.mask = there, .other = -INFINITY}), f32);
      block = where(there, cap * tanh(block / cap), -INFINITY);
      auto w_block = load(weight + (i + v), {.mask = there, .other = 0.f});
      smooth += sum(where(there, -block * w_block, 0.f));
      total += sum(w_block);
      auto most = max(m, max(block));
      d = d * exp(m - most) + sum(exp(block - most));
      m = most;
    }
    auto lse = m + log(d);
    auto eps = smoothing / cast(V, f32);
    for (auto i : range(0, V, c.BV)) {
      auto there = i + v < V;
      auto raw = cast(load(x + (i + v), {.mask = there, .other = -INFINITY}), f32);
      auto w_block = load(weight + (i + v), {.mask = there, .other = 0.f});
      auto bent = tanh(raw / cap);
      auto p = exp(cap * bent - m) / d;
      auto hit = cast(i + v, i64) == y;
      auto hard = (1.f - smoothing) * (p - where(hit, 1.f, 0.f)) * w;
      auto soft = eps * (p * total - w_block);
      auto gradient = (hard + soft + 2.f * z_scale * lse * p) * (1.f - bent * bent) / counted;
      store(x + (i + v), cast(gradient, bf16), {.mask = there});
    }
    auto z = z_scale * lse * lse;
    auto plain = (1.f - smoothing) * (lse - at_label) * w + eps * (smooth + lse * total);
    store(loss + row, (plain + z) / counted);
    store(z_loss + row, z / counted);
  });
}).grid([](const CeCfg&, auto, auto, auto, auto, auto, auto, int, float rows, auto...) { return Grid{int(rows)}; });
Register r1("ce_in_place", [](Env& e) {
  CeCfg c;
  if (!e.big) c = {64, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 4096 : 9, V = e.big ? 128256 : 203;
  const double s = .1, zs = 1e-3, cap = 15;
  auto x = random<bfloat16>(e, size_t(T) * V, -20, 20);
  auto y = filled<int64_t>(e, T, [&](size_t t) { return t % 4 == 2 ? -100 : int64_t(t * 7919 % V); });
  auto w = random<float>(e, V, .5, 1.5);
  auto loss = constant<float>(e, T, NAN), z = constant<float>(e, T, NAN);
  Job j;
  j.mbytes = 6e-6 * T * V;
  j.add(ce_in_place, c, x.p, int64_t(V), y.p, w.p, loss.p, z.p, V, float(T), float(s), float(zs), float(cap), -100);
  j.check = [=] {
    std::vector<double> want(size_t(T) * V), losses(T);
    for (int t = 0; t < T; ++t) {
      if (y.at(t) == -100) continue;
      double sum = 0, total = 0, smooth = 0;
      auto bent = [&](int v) { return cap * std::tanh(x[size_t(t) * V + v] / cap); };
      for (int v = 0; v < V; ++v) sum += std::exp(bent(v)), total += w[v], smooth -= bent(v) * w[v];
      const double lse = std::log(sum), wy = w[size_t(y.at(t))];
      losses[t] = ((1 - s) * (lse - bent(int(y.at(t)))) * wy + s / V * (smooth + lse * total) + zs * lse * lse) / T;
      for (int v = 0; v < V; ++v) {
        const double p = std::exp(bent(v)) / sum, slope = 1 - bent(v) * bent(v) / cap / cap;
        want[size_t(t) * V + v] = ((1 - s) * (p - (v == y.at(t))) * wy + s / V * (p * total - w[v]) + 2 * zs * lse * p) *
                                  slope / T;
      }
    }
    const auto wrong = agree(x.now(), want, 1e-5, 2e-2);
    return wrong.empty() ? agree(loss.now(), losses, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- direct preference optimisation: a program sums the log likelihood of one answer's tokens, the last of a pair to
// finish makes the loss and puts the counter back
struct DpoCfg {
  int BV = 4096, warps = 8;
};
auto dpo = kernel("user_dpo", [](const DpoCfg& c, Tensor<const bfloat16, 3> logits, Tensor<const int32_t, 2> labels,
                                 Tensor<const float, 1> reference, Ptr<float> likelihood, Ptr<int32_t> arrived,
                                 Tensor<float, 1> loss, F32 beta) {
  // logits [2 pairs, T, V], labels [2 pairs, T] (-1: none), chosen answers first; likelihood, reference [2 pairs]
  num_warps(c.warps);
  auto s = program_id(0), pairs = loss.dim(0);
  Tile total = zeros({}, f32), t = zeros({}, i32);
  while_([&] { return t < logits.dim(1); }, [&] {
    auto label = labels.load({s, t});
    if_(label >= 0, [&] {
      Tile m = full({c.BV}, -INFINITY, f32), d = zeros({c.BV}, f32);
      for (auto v : range(0, logits.dim(2), c.BV)) {
        auto x = cast(logits.load({s, t, v}, {c.BV}, {.pad = -INFINITY}), f32);
        auto most = max(m, x);
        d = where(most == -INFINITY, 0.f, d * exp(m - most) + exp(x - most));
        m = most;
      }
      auto top = max(m);
      auto lse = top + log(sum(d * exp(m - top)));
      total += cast(logits.load({s, t, label}), f32) - lse;
    });
    t += 1;
  });
  store(likelihood + s, total - reference.load({s}));
  auto pair = s % pairs;
  auto before = atomic_add(arrived + pair, 1);
  if_(before == 1, [&] {
    auto gain = load(likelihood + pair, {.cache = Cache::volatile_}) - load(likelihood + pairs + pair, {.cache = Cache::volatile_});
    auto margin = beta * gain;
    loss.store({pair}, log1p(exp(-abs(margin))) + max(-margin, 0.f));
    store(arrived + pair, 0);
  });
}).grid([](const DpoCfg&, const auto& logits, const auto&...) { return Grid{logits.shape[0]}; });
Register r2("dpo", [](Env& e) {
  DpoCfg c;
  if (!e.big) c = {64, 2};
  c.BV = e.field("BV", c.BV), c.warps = e.field("warps", c.warps);
  const int P = e.big ? 256 : 3, T = e.big ? 64 : 5, V = e.big ? 32000 : 150;
  auto x = random<bfloat16>(e, size_t(2) * P * T * V, -4, 4);
  auto y = filled<int32_t>(e, 2 * P * T, [&](size_t i) { return i % 5 == 0 ? -1 : int32_t(i * 7919 % V); });
  auto r = random<float>(e, 2 * P, -30, -10);
  auto likelihood = constant<float>(e, 2 * P, NAN), loss = constant<float>(e, P, NAN);
  auto arrived = constant<int32_t>(e, P, 0);
  Job j;
  j.mbytes = 4e-6 * P * T * V * .8;
  j.add(dpo, c, x.view(2 * P, T, V), y.view(2 * P, T), r.view(2 * P), likelihood.p, arrived.p, loss.view(P), .1f);
  j.check = [=] {
    std::vector<double> gain(2 * P), want;
    for (int s = 0; s < 2 * P; ++s) {
      gain[s] = -r[s];
      for (int t = 0; t < T; ++t) {
        const int label = y.at(s * T + t);
        double sum = 0;
        for (int v = 0; v < V; ++v) sum += std::exp(x[(size_t(s) * T + t) * V + v]);
        if (label >= 0) gain[s] += x[(size_t(s) * T + t) * V + label] - std::log(sum);
      }
    }
    for (int p = 0; p < P; ++p) want.push_back(std::log1p(std::exp(-.1 * (gain[p] - gain[P + p]))));
    return agree(loss.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- DyT: tanh(alpha x) gamma + beta instead of a norm, and its gradients; those of the parameters are summed over the
// rows of a program, then over programs
struct DytCfg {
  int BM = 8, BN = 512, warps = 4;
};
auto dyt = kernel("user_dyt", [](const DytCfg& c, Ptr<const half> X, Ptr<const half> G, Ptr<const float> alpha,
                                 Ptr<const half> gamma, Ptr<const half> beta, Ptr<half> Y, Ptr<half> DX,
                                 Ptr<float> d_alpha, Ptr<float> d_gamma, Ptr<float> d_beta, I32 M, I32 N, I32 rows) {
  num_warps(c.warps);
  auto n = program_id(0) * c.BN + arange(0, c.BN);
  auto a = load(alpha);
  auto columns = n < N;
  auto g = cast(load(gamma + n, {.mask = columns}), f32).row(), b = cast(load(beta + n, {.mask = columns}), f32).row();
  Tile da = zeros({}, f32), dg = zeros({c.BN}, f32), db = zeros({c.BN}, f32);
  auto first = program_id(1) * rows;
  for (auto m : range(first, min(first + rows, M), c.BM)) {
    auto r = m + arange(0, c.BM);
    auto mask = (r < min(first + rows, M)).col() & columns.row();
    auto at = cast(r.col(), i64) * N + n.row();
    auto x = cast(load(X + at, {.mask = mask}), f32), dy = cast(load(G + at, {.mask = mask}), f32);
    auto t = tanh(a * x);
    store(Y + at, cast(t * g + b, f16), {.mask = mask});
    auto inner = dy * g * (1.f - t * t);
    store(DX + at, cast(inner * a, f16), {.mask = mask});
    da += sum(inner * x);
    dg += squeeze(sum(dy * t, axis(0)), 0);
    db += squeeze(sum(dy, axis(0)), 0);
  }
  atomic_add(d_alpha, da);
  atomic_add(d_gamma + n, dg, {.mask = columns});
  atomic_add(d_beta + n, db, {.mask = columns});
}).grid([](const DytCfg& c, auto, auto, auto, auto, auto, auto, auto, auto, auto, auto, int M, int N, int rows) {
  return Grid{cdiv(N, c.BN), cdiv(M, rows)};
});
Register r3("dyt", [](Env& e) {
  DytCfg c;
  if (!e.big) c = {4, 32, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16384 : 21, N = e.big ? 4096 : 77, rows = e.big ? 256 : 9;
  auto x = random<half>(e, size_t(M) * N, -2, 2), g = random<half>(e, size_t(M) * N), gamma = random<half>(e, N),
       beta = random<half>(e, N);
  auto alpha = constant<float>(e, 1, .6), da = constant<float>(e, 1, 0), dg = constant<float>(e, N, 0),
       db = constant<float>(e, N, 0);
  auto y = constant<half>(e, size_t(M) * N, NAN), dx = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 8e-6 * M * N;
  j.add(dyt, c, x.p, g.p, alpha.p, gamma.p, beta.p, y.p, dx.p, da.p, dg.p, db.p, M, N, rows);
  j.check = [=] {
    std::vector<double> wy, wx, wg(N), wb(N), wa(1);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        const double v = x[size_t(m) * N + n], up = g[size_t(m) * N + n], a = .6f, t = std::tanh(a * v);
        wy.push_back(t * gamma[n] + beta[n]);
        wx.push_back(up * gamma[n] * (1 - t * t) * a);
        wa[0] += up * gamma[n] * (1 - t * t) * v, wg[n] += up * t, wb[n] += up;
      }
    auto wrong = agree(y.now(), wy, 1e-3, 1e-3);
    if (wrong.empty()) wrong = agree(dx.now(), wx, 1e-3, 1e-3);
    if (wrong.empty()) wrong = agree(dg.now(), wg, 1e-3, 1e-3);
    if (wrong.empty()) wrong = agree(db.now(), wb, 1e-3, 1e-3);
    return wrong.empty() ? agree(da.now(), wa, 1e-2, 1e-3) : wrong;
  };
  return j;
});

// --- sparsemax: the projection of a row onto the simplex, by sorting; and its gradient
struct SparsemaxCfg {
  int BN = 1024, warps = 4;
};
auto sparsemax = kernel("user_sparsemax", [](const SparsemaxCfg& c, Ptr<const float> X, Ptr<const float> G, Ptr<float> Y,
                                             Ptr<float> DX, I32 stride, I32 /*M*/, I32 N) {
  num_warps(c.warps);
  auto row = program_id(0) * stride;
  auto n = arange(0, c.BN);
  auto mask = n < N;
  auto x = load(X + row + n, {.mask = mask, .other = -INFINITY});
  auto z = sort(x, axis(0), {.descending = true});
  auto sums = cumsum(where(mask, z, 0.f), axis(0));
  auto in = mask & (1.f + cast(n + 1, f32) * z > sums);
  auto k = sum(cast(in, i32));
  auto tau = (sum(where(n + 1 == k, sums, 0.f)) - 1.f) / cast(k, f32);
  auto y = max(x - tau, 0.f);
  store(Y + row + n, y, {.mask = mask});
  auto g = load(G + row + n, {.mask = mask});
  auto mean = sum(where(y > 0.f, g, 0.f)) / cast(k, f32);
  store(DX + row + n, where(y > 0.f, g - mean, 0.f), {.mask = mask});
}).grid([](const SparsemaxCfg&, auto, auto, auto, auto, int, int M, int) { return Grid{M}; });
Register r4("sparsemax", [](Env& e) {
  SparsemaxCfg c;
  if (!e.big) c = {128, 2};
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 16384 : 7, N = e.big ? 1000 : 101;
  auto x = random<float>(e, size_t(M) * N, -2, 2), g = random<float>(e, size_t(M) * N);
  auto y = constant<float>(e, size_t(M) * N, NAN), dx = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 16e-6 * M * N;
  j.add(sparsemax, c, x.p, g.p, y.p, dx.p, N, M, N);
  j.check = [=] {
    std::vector<double> wy, wx;
    for (int m = 0; m < M; ++m) {
      std::vector<double> z;
      for (int n = 0; n < N; ++n) z.push_back(x[size_t(m) * N + n]);
      std::sort(z.rbegin(), z.rend());
      double sum = 0, tau = 0, mean = 0;
      int k = 0;
      for (int n = 0; n < N; ++n) {
        sum += z[n];
        if (1 + (n + 1) * z[n] > sum) k = n + 1, tau = (sum - 1) / k;
      }
      for (int n = 0; n < N; ++n) mean += x[size_t(m) * N + n] > tau ? g[size_t(m) * N + n] / k : 0;
      for (int n = 0; n < N; ++n) {
        const double p = std::max(x[size_t(m) * N + n] - tau, 0.);
        wy.push_back(p), wx.push_back(p > 0 ? g[size_t(m) * N + n] - mean : 0);
      }
    }
    const auto wrong = agree(y.now(), wy, 1e-5, 1e-4);
    return wrong.empty() ? agree(dx.now(), wx, 1e-5, 1e-4) : wrong;
  };
  return j;
});

}  // namespace fused_losses
}  // namespace users
