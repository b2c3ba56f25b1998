// losses.cpp - training of other kinds: focal and contrastive losses, a layer trained while it reads, attention through
// landmarks, a recurrence in logarithms, factored second moments, edges of a graph, a product with everything behind
// it, many products of tiny matrices, sums of products whose lengths are found in memory.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace losses {

constexpr float kLog2e = 1.4426950408889634f;

// --- focal loss of detectors: 91 classes, each a sigmoid; loss and gradient in one pass
struct FocalCfg {
  int BM = 16, C = 91, warps = 4;
};
auto focal = kernel("user_focal", [](const FocalCfg& c, Tensor<const half, 2> logits, Tensor<const int32_t, 1> labels,
                                     Tensor<half, 2> gradient, Ptr<float> loss, F32 alpha, F32 gamma, F32 scale) {
  // logits, gradient [N, C], labels [N]: a class, -1 background, -2 ignored; loss [1]
  num_warps(c.warps);
  auto m = program_id(0) * c.BM;
  auto x = cast(logits.load({m, 0}, {c.BM, c.C}), f32);
  auto label = labels.load({m}, {c.BM}, {.pad = -2}).col();
  auto target = label == arange(0, c.C).row();
  auto counted = label >= -1;
  auto p = sigmoid(x);
  auto ce = max(x, 0.f) - where(target, x, 0.f) + log(1.f + exp(-abs(x)));
  auto miss = where(target, 1.f - p, p);
  auto weight = where(target, alpha, 1.f - alpha);
  auto power = pow(miss, gamma);
  auto value = where(counted, weight * power * ce, 0.f);
  atomic_add(loss, sum(value) * scale, {.order = Order::relaxed});
  // d miss / dx = -+ p (1 - p), d ce / dx = p - target
  auto sign = where(target, -1.f, 1.f);
  auto slope = weight * power * (sign * miss + gamma * ce * sign * (1.f - miss));
  gradient.store({m, 0}, cast(where(counted, slope * scale, 0.f), f16));
}).grid([](const FocalCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r1("focal", [](Env& e) {
  FocalCfg c;
  if (!e.big) c = {4, 13, 4};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 200000 : 50, C = c.C;
  auto x = random<half>(e, size_t(N) * C, -4, 4);
  auto labels = integers<int32_t>(e, N, -2, C);
  auto g = constant<half>(e, x.n, NAN);
  auto loss = constant<float>(e, 1, 0);
  Job j;
  j.inTurn = true;
  j.mbytes = 4e-6 * N * C;
  j.add(focal, c, x.view(N, C), labels.view(N), g.view(N, C), loss.p, .25f, 2.f, .1f);
  j.check = [=] {
    std::vector<double> want(x.n);
    double sum = 0;
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < C && labels.at(n) >= -1; ++k) {
        const double v = x[size_t(n) * C + k], t = labels.at(n) == k, p = 1 / (1 + std::exp(-v));
        const double pt = t ? p : 1 - p, w = t ? .25 : .75, s = t ? 1 : -1;
        sum += -w * std::pow(1 - pt, 2) * std::log(pt) * .1;
        want[size_t(n) * C + k] =
            .1 * w * s * ((1 - pt) * (1 - pt) * (pt - 1) + 2 * (1 - pt) * (1 - pt) * pt * std::log(pt));
      }
    const auto wrong = agree(g.now(), want, 1e-4, 2e-3);
    return wrong.empty() ? agree(loss.now(), {sum}, 1e-3, 1e-4) : wrong;
  };
  return j;
});

// --- pictures against texts: the logarithms of both sums of exponentials, of rows and of columns, in one pass
struct PairsCfg {
  int BM = 128, BN = 128, D = 128, stages = 2, warps = 8;
};
auto contrast = kernel("user_contrast", [](const PairsCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> Y,
                                           Tensor<float, 1> rows, Tensor<float, 1> columns, Tensor<float, 1> matched,
                                           F32 scale) {
  // X, Y [N, D], rows of length one, so that exp(scale (x y - 1)) is at most one; columns [N] of zeros
  num_warps(c.warps);
  auto m = program_id(0) * c.BM;
  auto N = X.dim(0);
  auto x = X.load({m, 0}, {c.BM, c.D});
  auto i = (m + arange(0, c.BM)).col();
  Tile total = zeros({c.BM, 1}, f32), own = zeros({c.BM, 1}, f32);
  for (auto n : range(0, N, c.BN, {.stages = c.stages})) {
    auto j = (n + arange(0, c.BN)).row();
    auto s = dot(x, trans(Y.load({n, 0}, {c.BN, c.D})));
    auto p = where((i < N) & (j < N), exp2((s - 1.f) * (scale * kLog2e)), 0.f);
    total += sum(p, axis(1));
    own += sum(where(i == j, s, 0.f), axis(1));
    columns.atomic_add({n}, squeeze(sum(p, axis(0)), 0));
  }
  rows.store({m}, squeeze(log(total) + scale, 1));
  matched.store({m}, squeeze(own * scale, 1));
}).grid([](const PairsCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r2("contrast", [](Env& e) {
  PairsCfg c;
  if (!e.big) c = {32, 16, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 16384 : 77, D = c.D;
  auto unit = [&] {
    std::vector<half> v;
    for (int i = 0; e.device && i < std::min(N, 1024); ++i) {
      std::vector<double> row(D);
      double norm = 0;
      for (double& r : row) r = e.uniform() - .5, norm += r * r;
      for (double r : row) v.push_back(half(float(r / std::sqrt(norm))));
    }
    return repeated(e, size_t(N) * D, v);
  };
  auto x = unit(), y = unit();
  auto rows = constant<float>(e, N, NAN), columns = constant<float>(e, N, 0), own = constant<float>(e, N, NAN);
  Job j;
  j.inTurn = true;
  j.gflop = 2e-9 * N * double(N) * D;
  j.add(contrast, c, x.view(N, D), y.view(N, D), rows.view(N), columns.view(N), own.view(N), 10.f);
  j.check = [=] {
    std::vector<double> wr(N), wc(N), wo(N);
    for (int i = 0; i < N; ++i)
      for (int k = 0; k < N; ++k) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += x[size_t(i) * D + d] * y[size_t(k) * D + d];
        wr[i] += std::exp(10 * s), wc[k] += std::exp(10 * (s - 1));
        if (i == k) wo[i] = 10 * s;
      }
    for (double& r : wr) r = std::log(r);
    for (const auto& [name, wrong] : {std::pair{"rows", agree(rows.now(), wr, 1e-3, 1e-3)},
                                      std::pair{"columns", agree(columns.now(), wc, 1e-5, 2e-3)},
                                      std::pair{"matched", agree(own.now(), wo, 2e-3, 1e-3)}})
      if (!wrong.empty()) return std::string(name) + ": " + wrong;
    return std::string();
  };
  return j;
});

// --- a linear layer that learns while it reads (test-time training): 16 tokens a step, three products in a row
struct LearnCfg {
  int L = 16, D = 64, stages = 2, warps = 4;
};
auto learning = kernel("user_learning", [](const LearnCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                           Tensor<const bfloat16, 3> V, Tensor<const float, 2> rate,
                                           Tensor<bfloat16, 3> O, Tensor<float, 3> W) {
  // Q, K, V, O [BH, T, D], rate [BH, T], W [BH, D, D]: in and out. The loss of a token is |k W - (v - k)|^2 / 2
  num_warps(c.warps);
  auto z = program_id(0);
  auto i = arange(0, c.L);
  Tile w = squeeze(W.load({z, 0, 0}, {1, c.D, c.D}), 0);
  for (auto t : range(0, Q.dim(1), c.L, {.stages = c.stages})) {
    auto rows = [&](auto& X) { return squeeze(X.load({z, t, 0}, {1, c.L, c.D}), 0); };
    auto q = rows(Q), k = rows(K), v = rows(V);
    auto eta = squeeze(rate.load({z, t}, {1, c.L}), 0);
    auto now = cast(w, bf16);
    auto error = dot(k, now) - (cast(v, f32) - cast(k, f32));
    auto step = cast(error * eta.col(), bf16);
    auto scores = where(i.col() >= i.row(), dot(q, trans(k)), 0.f);
    auto out = dot(q, now) - dot(cast(scores, bf16), step);
    O.store({z, t, 0}, expand_dims(cast(out, bf16), 0));
    w -= dot(trans(k), step);
  }
  W.store({z, 0, 0}, expand_dims(w, 0));
}).grid([](const LearnCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r3("learning", [](Env& e) {
  LearnCfg c;
  if (!e.big) c.D = 32;
  c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages), c.L = e.field("L", c.L);
  const int Z = e.big ? 256 : 2, T = e.big ? 4096 : 70, D = c.D, L = c.L;
  const size_t n = size_t(Z) * T * D;
  auto q = random<bfloat16>(e, n, -.3, .3), k = random<bfloat16>(e, n, -.3, .3), v = random<bfloat16>(e, n);
  auto rate = random<float>(e, size_t(Z) * T, .1, .5), w = random<float>(e, size_t(Z) * D * D, -.1, .1);
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.inTurn = true;
  j.gflop = 2e-9 * double(n) * (3 * D + 2 * L);
  j.add(learning, c, q.view(Z, T, D), k.view(Z, T, D), v.view(Z, T, D), rate.view(Z, T), o.view(Z, T, D),
        w.view(Z, D, D));
  j.check = [=] {
    std::vector<double> want(n), last;
    for (int z = 0; z < Z; ++z) {
      std::vector<double> W(D * D);
      for (int i = 0; i < D * D; ++i) W[i] = w[size_t(z) * D * D + i];
      for (int t = 0; t < T; t += L) {
        const int rows = std::min(L, T - t);
        std::vector<double> step(rows * D);
        auto at = [&](auto& x, int r, int d) { return x[(size_t(z) * T + t + r) * D + d]; };
        for (int r = 0; r < rows; ++r)
          for (int d = 0; d < D; ++d) {
            double y = at(k, r, d) - at(v, r, d), o = 0;
            for (int f = 0; f < D; ++f) y += at(k, r, f) * W[f * D + d], o += at(q, r, f) * W[f * D + d];
            step[r * D + d] = y * rate[size_t(z) * T + t + r];
            for (int s = 0; s <= r; ++s) {
              double score = 0;
              for (int f = 0; f < D; ++f) score += at(q, r, f) * at(k, s, f);
              o -= score * step[s * D + d];
            }
            want[(size_t(z) * T + t + r) * D + d] = o;
          }
        for (int r = 0; r < rows; ++r)
          for (int f = 0; f < D; ++f)
            for (int d = 0; d < D; ++d) W[f * D + d] -= at(k, r, f) * step[r * D + d];
      }
      last.insert(last.end(), W.begin(), W.end());
    }
    const auto wrong = agree(o.now(), want, 1e-2, 1e-2);
    return wrong.empty() ? agree(w.now(), last, 1e-2, 1e-2) : "weights or outputs: " + wrong;
  };
  return j;
});

// --- attention through 48 landmarks (Nystrom): softmax(Q L^T) (M Z), M from elsewhere; heads of 80
struct LandmarksCfg {
  int BM = 128, P = 48, D = 80, warps = 4;
};
auto landmarks =
    kernel("user_landmarks", [](const LandmarksCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> marks,
                                Tensor<const half, 3> M, Tensor<const half, 3> Z, Tensor<half, 3> O, F32 scale) {
      // Q, O [BH, S, D], marks, Z [BH, P, D], M [BH, P, P]
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, z = program_id(1);
      auto q = squeeze(Q.load({z, m, 0}, {1, c.BM, c.D}), 0);
      auto p = softmax(dot(q, trans(squeeze(marks.load({z, 0, 0}, {1, c.P, c.D}), 0))) * scale, axis(1));
      auto through = dot(cast(p, f16), squeeze(M.load({z, 0, 0}, {1, c.P, c.P}), 0));
      auto o = dot(cast(through, f16), squeeze(Z.load({z, 0, 0}, {1, c.P, c.D}), 0));
      O.store({z, m, 0}, expand_dims(cast(o, f16), 0));
    }).grid([](const LandmarksCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r4("landmarks", [](Env& e) {
  LandmarksCfg c;
  if (!e.big) c = {32, 24, 40, 4};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 64 : 3, S = e.big ? 8192 : 71, D = c.D, P = c.P;
  auto q = random<half>(e, size_t(H) * S * D), l = random<half>(e, size_t(H) * P * D);
  auto m = random<half>(e, size_t(H) * P * P), v = random<half>(e, size_t(H) * P * D);
  auto o = constant<half>(e, q.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * H * double(S) * P * (2 * D + P);
  j.mbytes = 4e-6 * H * S * D;
  j.add(landmarks, c, q.view(H, S, D), l.view(H, P, D), m.view(H, P, P), v.view(H, P, D), o.view(H, S, D), scale);
  j.check = [=] {
    std::vector<double> want(q.n);
    for (int h = 0; h < H; ++h)
      for (int s = 0; s < S; ++s) {
        std::vector<double> p(P);
        double sum = 0;
        for (int i = 0; i < P; ++i) {
          for (int d = 0; d < D; ++d) p[i] += q[(size_t(h) * S + s) * D + d] * l[(size_t(h) * P + i) * D + d];
          sum += p[i] = std::exp(p[i] * scale);
        }
        for (int k = 0; k < P; ++k) {
          double through = 0;
          for (int i = 0; i < P; ++i) through += p[i] / sum * m[(size_t(h) * P + i) * P + k];
          for (int d = 0; d < D; ++d) want[(size_t(h) * S + s) * D + d] += through * v[(size_t(h) * P + k) * D + d];
        }
      }
    return agree(o.now(), want, 5e-3, 5e-3);
  };
  return j;
});

// --- a gated recurrence h[t] = (1 - z[t]) h[t - 1] + z[t] g(x[t]) in logarithms (minGRU), a scan over time
struct MinGruCfg {
  int BT = 64, BD = 32, warps = 4;
};
auto mingru = kernel("user_mingru", [](const MinGruCfg& c, Tensor<const bfloat16, 3> gates, Tensor<const bfloat16, 3> X,
                                       Tensor<bfloat16, 3> H) {
  // gates, X, H [B, T, D]; z = sigmoid(gates), g(x) = x + 1/2 for x >= 0, else sigmoid(x): positive
  num_warps(c.warps);
  auto d = program_id(0) * c.BD, b = program_id(1);
  auto softplus = [](Tile x) { return max(x, 0.f) + log(1.f + exp(-abs(x))); };
  auto log_add = [](Tile a, Tile b) { return max(a, b) + log(1.f + exp(-abs(a - b))); };
  Tile before = full({1, c.BD}, -1e30f, f32);
  auto last = arange(0, c.BT).col() == c.BT - 1;
  for (auto t : range(0, X.dim(1), c.BT)) {
    auto k = cast(squeeze(gates.load({b, t, d}, {1, c.BT, c.BD}), 0), f32);
    auto x = cast(squeeze(X.load({b, t, d}, {1, c.BT, c.BD}), 0), f32);
    auto log_keep = -softplus(k), log_take = -softplus(-k);
    auto log_value = where(x >= 0.f, log(max(x, 0.f) + .5f), -softplus(-x));
    auto [keep, value] = scan({log_keep, log_take + log_value}, axis(0), [&](Tile ka, Tile va, Tile kb, Tile vb) {
      return std::tuple(ka + kb, log_add(va + kb, vb));
    });
    auto h = log_add(value, before + keep);
    H.store({b, t, d}, expand_dims(cast(exp(h), bf16), 0));
    before = sum(where(last, h, 0.f), axis(0));
  }
}).grid([](const MinGruCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[2], c.BD), x.shape[0]}; });
Register r5("mingru", [](Env& e) {
  MinGruCfg c;
  if (!e.big) c = {16, 16, 2};
  c.BT = e.field("BT", c.BT), c.BD = e.field("BD", c.BD), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 8 : 2, T = e.big ? 4096 : 50, D = e.big ? 1024 : 40;
  const size_t n = size_t(B) * T * D;
  auto g = random<bfloat16>(e, n, -3, 3), x = random<bfloat16>(e, n, -2, 2);
  auto h = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 6e-6 * double(n);
  j.add(mingru, c, g.view(B, T, D), x.view(B, T, D), h.view(B, T, D));
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b)
      for (int d = 0; d < D; ++d) {
        double state = 0;
        for (int t = 0; t < T; ++t) {
          const size_t at = (size_t(b) * T + t) * D + d;
          const double z = 1 / (1 + std::exp(-g[at])), v = x[at] >= 0 ? x[at] + .5 : 1 / (1 + std::exp(-x[at]));
          want[at] = state = (1 - z) * state + z * v;
        }
      }
    return agree(h.now(), want, 2e-3, 6e-3);
  };
  return j;
});

// --- Adafactor: second moments as one number per row and column
struct FactorsCfg {
  int BM = 64, BN = 128, warps = 4;
};
auto factor_sums = kernel("user_factor_sums", [](const FactorsCfg& c, Tensor<const bfloat16, 2> G,
                                                 Tensor<float, 1> rows, Tensor<float, 1> columns) {
                     num_warps(c.warps);
                     auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                     auto g = cast(G.load({m, n}, {c.BM, c.BN}), f32);
                     auto squares = g * g;
                     rows.atomic_add({m}, squeeze(sum(squares, axis(1)), 1));
                     columns.atomic_add({n}, squeeze(sum(squares, axis(0)), 0));
                   }).grid([](const FactorsCfg& c, const auto& g, const auto&...) {
  return Grid{cdiv(g.shape[0], c.BM), cdiv(g.shape[1], c.BN)};
});
auto factor_step = kernel("user_factor_step", [](const FactorsCfg& c, Tensor<const bfloat16, 2> G,
                                                 Tensor<const float, 1> rows, Tensor<const float, 1> columns,
                                                 Tensor<bfloat16, 2> W, Tensor<float, 2> momentum, F32 total, F32 rate,
                                                 F32 decay, F32 beta) {
  // total: the sum of all squares, what rows and columns both add up to
  num_warps(c.warps);
  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  const Shape box{c.BM, c.BN};
  auto g = cast(G.load({m, n}, box), f32);
  auto r = rows.load({m}, {c.BM}, {.pad = 1}).col(), q = columns.load({n}, {c.BN}, {.pad = 1}).row();
  auto update = g * rsqrt(r * q / total + 1e-20f);
  auto mean = beta * momentum.load({m, n}, box) + (1.f - beta) * update;
  momentum.store({m, n}, mean);
  auto w = cast(W.load({m, n}, box), f32);
  W.store({m, n}, cast(w - rate * (mean + decay * w), bf16));
}).grid([](const FactorsCfg& c, const auto& g, const auto&...) {
  return Grid{cdiv(g.shape[0], c.BM), cdiv(g.shape[1], c.BN)};
});
Register r6("adafactor", [](Env& e) {
  FactorsCfg c;
  if (!e.big) c = {16, 32, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 8192 : 45, N = e.big ? 8192 : 71;
  const size_t n = size_t(M) * N;
  auto g = random<bfloat16>(e, n), w = random<bfloat16>(e, n);
  auto momentum = random<float>(e, n);
  auto rows = constant<float>(e, M, 0), columns = constant<float>(e, N, 0);
  double total = 0;
  for (size_t i = 0; e.device && i < n; ++i) total += g[i] * g[i];
  Job j;
  j.inTurn = true;
  j.mbytes = double(n) * 1e-6 * (2 + 2 + 2 + 2 + 4 + 4);
  j.add(factor_sums, c, g.view(M, N), rows.view(M), columns.view(N));
  j.add(factor_step, c, g.view(M, N), rows.view(M), columns.view(N), w.view(M, N), momentum.view(M, N), float(total),
        .01f, .1f, .9f);
  j.check = [=] {
    std::vector<double> wr(M), wc(N), ww(n), wm(n);
    for (size_t i = 0; i < n; ++i) wr[i / N] += g[i] * g[i], wc[i % N] += g[i] * g[i];
    for (size_t i = 0; i < n; ++i) {
      wm[i] = .9 * momentum[i] + .1 * g[i] / std::sqrt(wr[i / N] * wc[i % N] / total);
      ww[i] = w[i] - .01 * (wm[i] + .1 * w[i]);
    }
    for (const auto& [name, wrong] :
         {std::pair{"rows", agree(rows.now(), wr, 1e-4, 1e-5)},
          std::pair{"columns", agree(columns.now(), wc, 1e-4, 1e-5)},
          std::pair{"momentum", agree(momentum.now(), wm, 1e-5, 1e-4)}, std::pair{"w", agree(w.now(), ww, 4e-3, 4e-3)}})
      if (!wrong.empty()) return std::string(name) + ": " + wrong;
    return std::string();
  };
  return j;
});

// --- scores of a graph's edges: products of the rows of both ends, per head
struct EdgesCfg {
  int BE = 64, D = 64, warps = 4;
};
auto edge_scores = kernel("user_edge_scores", [](const EdgesCfg& c, Tensor<const half, 3> X, Tensor<const half, 3> Y,
                                                 Tensor<const int32_t, 2> edges, Tensor<half, 2> scores) {
  // X, Y [nodes, heads, D], edges [2, E], scores [E, heads]
  num_warps(c.warps);
  auto e = program_id(0) * c.BE, h = program_id(1);
  auto live = (e + arange(0, c.BE) < edges.dim(1)).col();
  auto ends = edges.load({0, e}, {2, c.BE});
  auto from = extract(ends, {0, 0}, {1, c.BE}), to = extract(ends, {1, 0}, {1, c.BE});
  auto d = arange(0, c.D).row();
  auto row = [&](auto& A, Tile node) {
    auto at = cast(trans(node), i64) * A.stride(0) + h * A.stride(1);
    return cast(load(A.ptr() + at + d * A.stride(2), {.mask = live}), f32);
  };
  auto s = sum(row(X, from) * row(Y, to), axis(1));
  scores.store({e, h}, cast(where(s > 0.f, s, .2f * s), f16));
}).grid([](const EdgesCfg& c, const auto& x, const auto&, const auto& e, const auto&) {
  return Grid{cdiv(e.shape[1], c.BE), x.shape[1]};
});
Register r7("edge_scores", [](Env& e) {
  EdgesCfg c;
  if (!e.big) c = {16, 32, 2};
  c.BE = e.field("BE", c.BE), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 17 : 30, E = e.big ? 1 << 20 : 101, H = e.big ? 4 : 3, D = c.D;
  auto x = random<half>(e, size_t(N) * H * D), y = random<half>(e, size_t(N) * H * D);
  auto edges = integers<int32_t>(e, size_t(E) * 2, 0, N);
  auto out = constant<half>(e, size_t(E) * H, NAN);
  Job j;
  j.mbytes = 4e-6 * E * double(H) * D;
  j.add(edge_scores, c, x.view(N, H, D), y.view(N, H, D), edges.view(2, E), out.view(E, H));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < E; ++i)
      for (int h = 0; h < H; ++h) {
        double s = 0;
        for (int d = 0; d < D; ++d)
          s += x[(size_t(edges.at(i)) * H + h) * D + d] * y[(size_t(edges.at(E + i)) * H + h) * D + d];
        want.push_back(s > 0 ? s : .2 * s);
      }
    return agree(out.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- gelu(A^T B^T + bias) * gate + rest, to 8 bits with the largest value found on the way; both operands lie across
struct EpilogueCfg {
  int BM = 128, BN = 128, BK = 64, stages = 4, warps = 8, pingpong = 0;
};
auto product_out =
    kernel("user_product_out", [](const EpilogueCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                  Tensor<const half, 1> bias, Tensor<const half, 1> gate, Tensor<const half, 2> rest,
                                  Tensor<fp8_e4m3, 2> out, Ptr<int32_t> largest, F32 scale) {
      // A [K, M], B [N, K], bias, gate [N], rest [M, N] by any strides, out [M, N]; largest: bits of a positive f32
      num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(0), c.BK,
                          {.stages = c.stages, .specialize = Choice::always,
                           .pingpong = c.pingpong ? Choice::always : Choice::automatic}))
        acc = dot(trans(A.load({k, m}, {c.BK, c.BM})), trans(B.load({n, k}, {c.BN, c.BK})), acc);
      auto row = [&](auto& v) { return cast(v.load({n}, {c.BN}), f32).row(); };
      auto x = acc + row(bias);
      auto y = .5f * x * (1.f + erf(x * .70710678f)) * row(gate) + cast(rest.load({m, n}, {c.BM, c.BN}), f32);
      auto inside = ((m + arange(0, c.BM)).col() < out.dim(0)) & ((n + arange(0, c.BN)).row() < out.dim(1));
      atomic_max(largest, bitcast(max(where(inside, abs(y), 0.f)), i32), {.order = Order::relaxed});
      out.store({m, n}, cast(clamp(y * scale, -448.f, 448.f), f8e4m3));
    }).grid([](const EpilogueCfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[1], c.BM), cdiv(b.shape[0], c.BN)};
    });
Register r8("product_out", [](Env& e) {
  EpilogueCfg c;
  if (!e.big) c = {64, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages), c.pingpong = e.field("pingpong", 0);
  const int M = e.big ? 4096 : 88, N = e.big ? 4096 : 56, K = e.big ? 4096 : 75;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(N) * K), bias = random<half>(e, N),
       gate = random<half>(e, N), rest = random<half>(e, size_t(M) * N);
  auto out = constant<fp8_e4m3>(e, size_t(M) * N, 3);
  auto largest = constant<int32_t>(e, 1, 0);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  TensorView<const half, 2> turned(rest.p, {M, N}, {1, M});
  j.add(product_out, c, a.view(K, M), b.view(N, K), bias.view(N), gate.view(N), turned, out.view(M, N), largest.p, 8.f);
  j.check = [=] {
    double top = 0;
    auto want = product(M, N, K, [&](int m, int k) { return a[size_t(k) * M + m]; },
                        [&](int k, int n) { return b[size_t(n) * K + k]; },
                        [&](double sum, int m, int n) {
                          const double x = sum + bias[n];
                          const double y =
                              .5 * x * (1 + std::erf(x / std::sqrt(2.))) * gate[n] + rest[size_t(n) * M + m];
                          top = std::max(top, std::abs(y));
                          return std::clamp(y * 8, -448., 448.);
                        });
    const int bits = largest.now()[0];
    float found;
    std::memcpy(&found, &bits, 4);
    if (!(std::abs(found - top) < 1e-3 * top)) return std::string("another largest value");
    return agree(out.now(), want, .05, .07);
  };
  return j;
});

// --- chains of 6 x 6 matrices (a robot's joints), in f64: one product after the other for many robots
struct ChainCfg {
  int B = 8, warps = 4;
};
auto chains = kernel("user_chains", [](const ChainCfg& c, Tensor<const double, 4> J, Tensor<double, 3> out) {
  // J [n, joints, 6, 6], out [n, 6, 6]: the product of all
  num_warps(c.warps);
  auto i = program_id(0) * c.B;
  Tile acc = squeeze(J.load({i, 0, 0, 0}, {c.B, 1, 6, 6}), 1);
  for (auto k : range(1, J.dim(1))) {
    auto next = squeeze(J.load({i, k, 0, 0}, {c.B, 1, 6, 6}), 1);
    acc = squeeze(sum(expand_dims(acc, 3) * expand_dims(next, 1), axis(2)), 2);
  }
  out.store({i, 0, 0}, acc);
}).grid([](const ChainCfg& c, const auto& j, const auto&) { return Grid{cdiv(j.shape[0], c.B)}; });
Register r9("chains", [](Env& e) {
  ChainCfg c;
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 18 : 21, joints = e.big ? 7 : 4;
  auto m = drawn<double>(e, size_t(n) * joints * 36, [&] { return e.uniform() * 2 - 1; });
  auto out = filled<double>(e, size_t(n) * 36, [](size_t) { return NAN; });
  Job j;
  j.mbytes = 8e-6 * n * 36 * (joints + 1);
  j.add(chains, c, m.view(n, joints, 6, 6), out.view(n, 6, 6));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      std::vector<double> x(36), y(36);
      for (int k = 0; k < 36; ++k) x[k] = m[size_t(i) * joints * 36 + k];
      for (int k = 1; k < joints; ++k, x = y)
        for (int r = 0; r < 6; ++r)
          for (int q = 0; q < 6; ++q) {
            y[r * 6 + q] = 0;
            for (int s = 0; s < 6; ++s) y[r * 6 + q] += x[r * 6 + s] * m[(size_t(i) * joints + k) * 36 + s * 6 + q];
          }
      want.insert(want.end(), x.begin(), x.end());
    }
    return agree(out.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- two products of different lengths, both found in memory (none, one or many steps), subtracted where they are
// masked
struct RaggedCfg {
  int BM = 128, BN = 128, BK = 64, stages = 4, warps = 4;
};
auto ragged = kernel("user_ragged", [](const RaggedCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 2> B,
                                       Tensor<const bfloat16, 2> U, Tensor<const bfloat16, 2> V,
                                       Ptr<const int32_t> lengths, Tensor<float, 3> C) {
  // A [K, M], B [K, N], U [M, R], V [R, N]; lengths [groups, 3]: first and end of the group's rows of A and B, rank
  // used of U and V; C [groups, M, N] = A^T B over those rows + U V
  num_warps(c.warps);
  auto g = program_id(2), m = program_id(0) * c.BM, n = program_id(1) * c.BN;
  auto first = load(lengths + g * 3), end = load(lengths + g * 3 + 1), rank = load(lengths + g * 3 + 2);
  Tile acc = zeros({c.BM, c.BN}, f32);
  for (auto k : range(first, end, c.BK, {.stages = c.stages})) {
    auto live = (k + arange(0, c.BK) < end).col();
    auto a = where(live, A.load({k, m}, {c.BK, c.BM}), 0.f);
    acc = dot(trans(a), B.load({k, n}, {c.BK, c.BN}), acc);
  }
  for (auto r : range(0, rank, 16)) {
    auto live = (r + arange(0, 16) < rank).row();
    acc = dot(where(live, U.load({m, r}, {c.BM, 16}), 0.f), V.load({r, n}, {16, c.BN}), acc);
  }
  C.store({g, m, n}, expand_dims(acc, 0));
}).grid([](const RaggedCfg& c, const auto& a, const auto& b, const auto&, const auto&, const auto*, const auto& o) {
  return Grid{cdiv(a.shape[1], c.BM), cdiv(b.shape[1], c.BN), o.shape[0]};
});
Register r10("ragged", [](Env& e) {
  RaggedCfg c;
  if (!e.big) c = {64, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages);
  const int M = e.big ? 2048 : 70, N = e.big ? 2048 : 40, K = e.big ? 8192 : 150, R = e.big ? 64 : 24, G = 5;
  auto a = random<bfloat16>(e, size_t(K) * M), b = random<bfloat16>(e, size_t(K) * N);
  auto u = random<bfloat16>(e, size_t(M) * R), v = random<bfloat16>(e, size_t(R) * N);
  const std::vector<int> some = e.big ? std::vector<int>{0, 3000, 64, 3000, 3000, 16, 3000, 5000, 0, 5000, 5100, 48,
                                                         5100, 8192, 64}
                                      : std::vector<int>{0, 64, 24, 64, 64, 5, 64, 65, 0, 65, 110, 16, 110, 150, 17};
  auto lengths = filled<int32_t>(e, 15, [&](size_t i) { return some[i]; });
  auto out = constant<float>(e, size_t(G) * M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(ragged, c, a.view(K, M), b.view(K, N), u.view(M, R), v.view(R, N), lengths.p, out.view(G, M, N));
  j.check = [=] {
    std::vector<double> want;
    for (int g = 0; g < G; ++g)
      for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n) {
          double sum = 0;
          for (int k = some[g * 3]; k < some[g * 3 + 1]; ++k) sum += a[size_t(k) * M + m] * b[size_t(k) * N + n];
          for (int r = 0; r < some[g * 3 + 2]; ++r) sum += u[size_t(m) * R + r] * v[size_t(r) * N + n];
          want.push_back(sum);
        }
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace losses
}  // namespace users
