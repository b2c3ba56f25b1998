// trained_rows.cpp - losses over long rows and optimisers that turn small matrices, as first written: smoothed cross
// entropy with a z-loss, GRPO from the logits, Newton-Schulz and SOAP a block per program, norms and averages of
// weights.
#include "tests/users/use.h"
namespace users {
namespace trained_rows {

// --- cross entropy, label smoothing, z-loss: loss and the logits' gradient in place, two passes over a row
struct LossCfg {
  int BLOCK = 4096;
};
auto smooth =
    kernel("user_smooth", [](const LossCfg& c, Tensor<bfloat16, 2> X, Ptr<const int64_t> label, Ptr<float> loss,
                             F32 eps, F32 z, F32 scale) {
      auto r = program_id(0);
      auto y = load(label + r);
      auto n = X.dim(1);
      if_(
          y < 0,
          [&] {  // ignored
            for (auto j : range(0, n, c.BLOCK)) X.store({r, j}, zeros({c.BLOCK}, bf16));
            store(loss + r, 0.f);
          },
          [&] {
            Tile m = full({1}, -INFINITY, f32), d = zeros({1}, f32), total = zeros({1}, f32);
            for (auto j : range(0, n, c.BLOCK)) {
              auto raw = cast(X.load({r, j}, {c.BLOCK}, {.pad = -INFINITY}), f32);
              auto top = max(m, max(raw, axis(0)));
              d = d * exp(m - top) + sum(exp(raw - top), axis(0));
              total += sum(where(raw == -INFINITY, 0.f, raw), axis(0));
              m = top;
            }
            auto lse = to_scalar(m + log(d));
            auto inv = 1.f / cast(n, f32);
            auto mine = cast(to_scalar(X.load({r, cast(y, i32)}, {1})), f32);
            store(loss + r, (1.f - eps) * (lse - mine) + eps * (lse - to_scalar(total) * inv) + z * lse * lse);
            for (auto j : range(0, n, c.BLOCK)) {
              auto raw = cast(X.load({r, j}, {c.BLOCK}), f32);
              auto p = exp(raw - lse) * (1.f + 2.f * z * lse) - eps * inv;
              p -= where(cast(j + arange(0, c.BLOCK), i64) == y, 1.f - eps, 0.f);
              X.store({r, j}, cast(p * scale, bf16));
            }
          });
    }).grid([](const LossCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r1("smooth_ce", [](Env& e) {
  const int T = e.big ? 8192 : 5, V = e.big ? 32000 : 5001;
  auto x = random<bfloat16>(e, size_t(T) * V, -4, 4);
  auto label = filled<int64_t>(e, T, [&](size_t i) { return i == 3 ? -100 : int64_t(i * 997 % V); });
  auto loss = constant<float>(e, T, NAN);
  Job j;
  j.mbytes = 6e-6 * T * V;
  j.add(smooth, LossCfg{e.field("BLOCK", 4096)}, x.view(T, V), label.p, loss.p, .1f, 1e-3f, 64.f);
  j.check = [=] {
    std::vector<double> want(T), grad(size_t(T) * V);
    for (int t = 0; t < T; ++t) {
      const int64_t y = label.at(t);
      if (y < 0) continue;
      double sum = 0, total = 0;
      for (int i = 0; i < V; ++i) sum += std::exp(x[size_t(t) * V + i]), total += x[size_t(t) * V + i];
      const double lse = std::log(sum);
      want[t] = .9 * (lse - x[size_t(t) * V + y]) + .1 * (lse - total / V) + 1e-3 * lse * lse;
      for (int i = 0; i < V; ++i)
        grad[size_t(t) * V + i] =
            64 * (std::exp(x[size_t(t) * V + i] - lse) * (1 + 2e-3 * lse) - .1 / V - (i == y ? .9 : 0));
    }
    auto wrong = agree(loss.now(), want, 1e-3, 1e-3);
    return wrong.empty() ? agree(x.now(), grad, 1e-4, 1e-2) : wrong;
  };
  return j;
});

// --- GRPO from logits: a token's log-probability, ratio clipped, KL against a reference; then the gradient
auto grpo =
    kernel("user_grpo", [](const LossCfg& c, Tensor<const bfloat16, 3> logits, Tensor<const int, 2> token,
                           Tensor<const float, 2> old, Tensor<const float, 2> ref, Ptr<const float> advantage,
                           Tensor<const uint8_t, 2> mask, Tensor<float, 2> loss, Tensor<float, 2> slope,
                           Tensor<float, 2> lse, F32 low, F32 high, F32 beta, F32 temperature) {
      auto t = program_id(0), b = program_id(1);
      auto inv = 1.f / temperature;
      Tile m = full({c.BLOCK}, -INFINITY, f32), d = zeros({c.BLOCK}, f32);
      for (auto j : range(0, logits.dim(2), c.BLOCK)) {
        auto x = cast(reshape(logits.load({b, t, j}, {1, 1, c.BLOCK}, {.pad = -INFINITY}), {c.BLOCK}), f32) * inv;
        auto top = max(m, x);
        d = d * exp(m - top) + exp(x - top);
        m = top;
      }
      auto top = max(m);
      auto all = top + log(sum(d * exp(m - top)));
      auto at = to_scalar(token.load({b, t}, {1}));
      auto logp = cast(to_scalar(logits.load({b, t, at}, {1})), f32) * inv - all;
      auto ratio = exp(logp - to_scalar(old.load({b, t}, {1})));
      auto a = load(advantage + b);
      auto clipped = clamp(ratio, 1.f - low, 1.f + high);
      auto gap = to_scalar(ref.load({b, t}, {1})) - logp;
      auto kl = exp(gap) - gap - 1.f;
      auto on = cast(to_scalar(mask.load({b, t}, {1})), f32);
      auto l = -min(ratio * a, clipped * a) + beta * kl;
      auto inside = ratio * a <= clipped * a;
      auto s = where(inside, -ratio * a, 0.f) + beta * (1.f - exp(gap));
      loss.store({b, t}, full({1}, l * on, f32));
      slope.store({b, t}, full({1}, s * on * inv, f32));
      lse.store({b, t}, full({1}, all, f32));
    }).grid([](const LossCfg&, const auto& x, const auto&...) {
      return Grid{x.shape[1], x.shape[0]};
    });
auto grpo_bwd = kernel("user_grpo_bwd", [](const LossCfg& c, Tensor<const bfloat16, 3> logits,
                                           Tensor<const int, 2> token, Tensor<const float, 2> slope,
                                           Tensor<const float, 2> lse, Tensor<bfloat16, 3> grad, F32 temperature) {
                  auto j = program_id(0) * c.BLOCK, t = program_id(1), b = program_id(2);
                  auto s = to_scalar(slope.load({b, t}, {1})), all = to_scalar(lse.load({b, t}, {1}));
                  auto x = cast(logits.load({b, t, j}, {c.BLOCK}), f32) * (1.f / temperature);
                  auto p = exp(x - all);
                  auto hit = j + arange(0, c.BLOCK) == to_scalar(token.load({b, t}, {1}));
                  grad.store({b, t, j}, cast((where(hit, 1.f, 0.f) - p) * s, bf16));
                }).grid([](const LossCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[2], c.BLOCK), x.shape[1], x.shape[0]};
});
Register r2("grpo", [](Env& e) {
  const int B = e.big ? 8 : 2, T = e.big ? 1024 : 3, V = e.big ? 32000 : 4500;
  const size_t n = size_t(B) * T;
  auto x = random<bfloat16>(e, n * V, -3, 3);
  auto token = integers<int>(e, n, 0, V);
  auto old = random<float>(e, n, -9.5, -8), ref = random<float>(e, n, -9.5, -8), adv = random<float>(e, B, -2, 2);
  auto mask = integers<uint8_t>(e, n, 0, 2);
  auto loss = constant<float>(e, n, NAN), slope = constant<float>(e, n, NAN), lse = constant<float>(e, n, NAN);
  auto grad = constant<bfloat16>(e, n * V, NAN);
  const LossCfg c{e.field("BLOCK", 4096)};
  Job j;
  j.mbytes = 6e-6 * n * V;
  j.add(grpo, c, x.view(B, T, V), token.view(B, T), old.view(B, T), ref.view(B, T), adv.p, mask.view(B, T),
        loss.view(B, T), slope.view(B, T), lse.view(B, T), .2f, .28f, .04f, .9f);
  j.add(grpo_bwd, c, x.view(B, T, V), token.view(B, T), slope.view(B, T), lse.view(B, T), grad.view(B, T, V), .9f);
  j.check = [=] {
    std::vector<double> want(n), g(n * V);
    for (size_t i = 0; i < n; ++i) {
      if (!mask.at(i)) continue;
      double sum = 0;
      for (int v = 0; v < V; ++v) sum += std::exp(x[i * V + v] / .9);
      auto value = [&](double logp) {
        const double ratio = std::exp(logp - old[i]), a = adv[i / T], gap = ref[i] - logp;
        return -std::min(ratio * a, std::clamp(ratio, .8, 1.28) * a) + .04 * (std::exp(gap) - gap - 1);
      };
      const double logp = x[i * V + token.at(i)] / .9 - std::log(sum);
      want[i] = value(logp);
      const double s = (value(logp + 1e-6) - value(logp - 1e-6)) / 2e-6 / .9;
      for (int v = 0; v < V; ++v) g[i * V + v] = s * ((v == token.at(i)) - std::exp(x[i * V + v] / .9) / sum);
    }
    auto wrong = agree(loss.now(), want, 1e-3, 2e-3);
    return wrong.empty() ? agree(grad.now(), g, 1e-5, 2e-2) : wrong;
  };
  return j;
});

// --- Newton-Schulz of many small matrices: five steps of Muon's polynomial, one matrix per program
struct MatrixCfg {
  int D = 128;
};
auto newton = kernel("user_newton", [](const MatrixCfg& c, Tensor<const float, 3> G, Tensor<bfloat16, 3> out) {
                auto b = program_id(0);
                auto g = G.load({b, 0, 0}, {c.D, c.D});
                Tile x = cast(g * rsqrt(sum(g * g) + 1e-12f), bf16);
                for (auto i : range(0, 5)) {
                  auto a = cast(dot(x, trans(x)), bf16);
                  auto b2 = cast(-4.775f * cast(a, f32) + 2.0315f * dot(a, a), bf16);
                  x = cast(3.4445f * cast(x, f32) + dot(b2, x), bf16);
                }
                out.store({b, 0, 0}, x);
              }).grid([](const MatrixCfg&, const auto& g, const auto&) { return Grid{g.shape[0]}; });
Register r3("newton_blocks", [](Env& e) {
  const int B = e.big ? 1024 : 2, D = e.big ? e.field("D", 128) : 32;
  auto g = random<float>(e, size_t(B) * D * D);
  auto out = constant<bfloat16>(e, size_t(B) * D * D, NAN);
  Job j;
  j.gflop = 5 * 6e-9 * B * D * D * D;
  j.add(newton, MatrixCfg{D}, g.view(B, D, D), out.view(B, D, D));
  j.check = [=] {
    std::vector<double> want(size_t(B) * D * D);
    for (int b = 0; b < B; ++b) {
      std::vector<double> x(D * D);
      double norm = 1e-12;
      for (int i = 0; i < D * D; ++i) x[i] = g[size_t(b) * D * D + i], norm += x[i] * x[i];
      for (double& v : x) v /= std::sqrt(norm);
      for (int s = 0; s < 5; ++s) {
        auto a = product(
            D, D, D, [&](int i, int k) { return x[i * D + k]; }, [&](int k, int l) { return x[l * D + k]; });
        auto b2 = product(
            D, D, D, [&](int i, int k) { return a[i * D + k]; }, [&](int k, int l) { return a[k * D + l]; },
            [&](double v, int i, int l) { return -4.775 * a[i * D + l] + 2.0315 * v; });
        x = product(
            D, D, D, [&](int i, int k) { return b2[i * D + k]; }, [&](int k, int l) { return x[k * D + l]; },
            [&](double v, int i, int l) { return 3.4445 * x[i * D + l] + v; });
      }
      std::copy(x.begin(), x.end(), want.begin() + size_t(b) * D * D);
    }
    return agree(out.now(), want, 4e-2, 3e-2);
  };
  return j;
});

// --- SOAP: gradients of blocks of 64 x 64 in their preconditioners' basis, Adam there, and back
struct SoapCfg {
  int D = 64;
};
auto soap = kernel("user_soap", [](const SoapCfg& c, Tensor<float, 2> P, Tensor<const float, 2> G,
                                   Tensor<const float, 3> QL, Tensor<const float, 3> QR, Tensor<float, 2> M,
                                   Tensor<float, 2> V, F32 rate, F32 b1, F32 b2, F32 fix1, F32 fix2) {
              auto i = program_id(0), j = program_id(1);
              auto r = i * c.D, k = j * c.D, n = i * num_programs(1) + j;
              auto g = G.load({r, k}, {c.D, c.D});
              auto ql = QL.load({n, 0, 0}, {c.D, c.D}), qr = QR.load({n, 0, 0}, {c.D, c.D});
              auto m = M.load({r, k}, {c.D, c.D}) * b1 + g * (1.f - b1);
              M.store({r, k}, m);
              auto turn = [&](Tile x) { return dot(trans(ql), dot(x, qr, Prec::tf32), Prec::tf32); };
              auto gt = turn(g), mt = turn(m);
              auto v = V.load({r, k}, {c.D, c.D}) * b2 + gt * gt * (1.f - b2);
              V.store({r, k}, v);
              auto step = mt * fix1 / (sqrt(v * fix2) + 1e-8f);
              auto back = dot(ql, dot(step, trans(qr), Prec::tf32), Prec::tf32);
              P.store({r, k}, P.load({r, k}, {c.D, c.D}) - rate * back);
            }).grid([](const SoapCfg& c, const auto& p, const auto&...) {
  return Grid{cdiv(p.shape[0], c.D), cdiv(p.shape[1], c.D)};
});
Register r4("soap", [](Env& e) {
  const int R = e.big ? 4096 : 64, C = e.big ? 4096 : 96, D = e.big ? 64 : 32, n = (R / D) * (C / D);
  auto p = random<float>(e, size_t(R) * C), g = random<float>(e, size_t(R) * C, -.1, .1),
       ql = random<float>(e, size_t(n) * D * D, -.2, .2), qr = random<float>(e, size_t(n) * D * D, -.2, .2),
       m = random<float>(e, size_t(R) * C, -.1, .1), v = random<float>(e, size_t(R) * C, .01, .1);
  Job j;
  j.mbytes = 36e-6 * R * C;
  j.add(soap, SoapCfg{D}, p.view(R, C), g.view(R, C), ql.view(n, D, D), qr.view(n, D, D), m.view(R, C), v.view(R, C),
        .1f, .9f, .99f, 1.5f, 2.f);
  j.check = [=] {
    std::vector<double> want(size_t(R) * C);
    for (int bi = 0; bi < R / D; ++bi)
      for (int bj = 0; bj < C / D; ++bj) {
        const size_t q = size_t(bi * (C / D) + bj) * D * D;
        auto at = [&](int i, int k) { return size_t(bi * D + i) * C + bj * D + k; };
        auto turn = [&](auto f) {
          auto y = product(D, D, D, f, [&](int k, int l) { return qr[q + k * D + l]; });
          return product(
              D, D, D, [&](int i, int k) { return ql[q + k * D + i]; }, [&](int k, int l) { return y[k * D + l]; });
        };
        auto gt = turn([&](int i, int k) { return g[at(i, k)]; });
        auto mt = turn([&](int i, int k) { return m[at(i, k)] * .9 + g[at(i, k)] * .1; });
        std::vector<double> s(D * D);
        for (int i = 0; i < D * D; ++i) {
          const double nv = v[at(i / D, i % D)] * .99 + gt[i] * gt[i] * .01;
          s[i] = mt[i] * 1.5 / (std::sqrt(nv * 2) + 1e-8);
        }
        auto y = product(
            D, D, D, [&](int i, int k) { return s[i * D + k]; }, [&](int k, int l) { return qr[q + l * D + k]; });
        auto z = product(
            D, D, D, [&](int i, int k) { return ql[q + i * D + k]; }, [&](int k, int l) { return y[k * D + l]; });
        for (int i = 0; i < D * D; ++i) want[at(i / D, i % D)] = p[at(i / D, i % D)] - .1 * z[i];
      }
    return agree(p.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- one norm over all gradients, clipping, Adam-free step, average of the weights: two kernels, flat memory
struct FlatCfg {
  int BLOCK = 4096;
};
auto norm_sum = kernel("user_norm_sum", [](const FlatCfg& c, Ptr<const bfloat16> g, Ptr<float> total, I64 n) {
                  Tile acc = zeros({c.BLOCK}, f32);
                  auto first = cast(program_id(0), i64) * c.BLOCK, step = cast(num_programs(0), i64) * c.BLOCK;
                  for (auto i : range(first, n, step)) {
                    auto at = i + cast(arange(0, c.BLOCK), i64);
                    auto x = cast(load(g + at, {.mask = at < n}), f32);
                    acc += x * x;
                  }
                  atomic_add(total, sum(acc));
                }).grid([](const FlatCfg&, const bfloat16*, float*, int64_t) { return Grid{528}; });
auto clip_step = kernel("user_clip_step",
                        [](const FlatCfg& c, Ptr<const bfloat16> g, Ptr<const float> total, Ptr<float> w,
                           Ptr<float> average, Ptr<bfloat16> low, I64 n, F32 rate, F32 most, F32 keep) {
                          auto at = cast(program_id(0), i64) * c.BLOCK + cast(arange(0, c.BLOCK), i64);
                          auto in = at < n;
                          auto scale = min(1.f, most / (sqrt(load(total)) + 1e-6f));
                          auto x = load(w + at, {.mask = in}) - rate * scale * cast(load(g + at, {.mask = in}), f32);
                          store(w + at, x, {.mask = in});
                          store(low + at, cast(x, bf16), {.mask = in});
                          auto a = load(average + at, {.mask = in});
                          store(average + at, a + (x - a) * (1.f - keep), {.mask = in});
                        })
                     .grid([](const FlatCfg& c, const bfloat16*, const float*, float*, float*, bfloat16*, int64_t n,
                              float, float, float) { return Grid{cdiv(n, int64_t(c.BLOCK))}; });
Register r5("clip_average", [](Env& e) {
  const int64_t n = e.big ? 100'000'003 : 50'003;
  auto g = random<bfloat16>(e, n);
  auto w = random<float>(e, n), a = random<float>(e, n);
  auto low = constant<bfloat16>(e, n, NAN);
  auto total = constant<float>(e, 1, 0);
  const FlatCfg c{e.field("BLOCK", 4096)};
  Job j;
  j.mbytes = 22e-6 * n;
  j.add(norm_sum, c, g.p, total.p, n);
  j.add(clip_step, c, g.p, total.p, w.p, a.p, low.p, n, .1f, 1.f, .9f);
  j.check = [=] {
    std::vector<double> want(n), mean(n);
    double s = 1e-12;
    for (int64_t i = 0; i < n; ++i) s += g[i] * g[i];
    const double scale = std::min(1., 1 / std::sqrt(s));
    for (int64_t i = 0; i < n; ++i) want[i] = w[i] - .1 * scale * g[i], mean[i] = a[i] + (want[i] - a[i]) * .1;
    auto wrong = agree(w.now(), want, 1e-5, 1e-5);
    if (wrong.empty()) wrong = agree(low.now(), want, 1e-5, 5e-3);
    return wrong.empty() ? agree(a.now(), mean, 1e-5, 1e-5) : wrong;
  };
  return j;
});

}  // namespace trained_rows
}  // namespace users
