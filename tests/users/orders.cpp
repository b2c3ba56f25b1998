// orders.cpp - losses over orders, flows, returns and trees: sorts with running sums behind them, splines with
// eight bins a number, scans from the end, pairs of features, splits of nodes, trees of priorities.
#include "tests/users/use.h"
namespace users {
namespace orders {

// --- Lovasz softmax: a class's errors from the largest down, each weighted by what it costs of the Jaccard index; the
// gradients go back to where the errors were
struct LovaszCfg {
  int P = 1024, warps = 4;
};
auto lovasz =
    kernel("user_lovasz", [](const LovaszCfg& c, Tensor<const float, 3> probs, Tensor<const uint8_t, 2> labels,
                             Tensor<float, 2> losses, Tensor<float, 3> grads) {
      // probs, grads [N, C, P]; labels [N, P]: 255 is nobody's; losses [N, C]
      num_warps(c.warps);
      auto n = program_id(1), k = program_id(0);
      auto p = probs.load({n, k, 0}, {c.P});
      auto label = labels.load({n, 0}, {c.P}, {.pad = 255});
      auto counts = label != 255, mine = cast(label, i32) == k;
      auto error = where(counts, abs(cast(mine, f32) - p), -1.f);
      auto order = argsort(error, axis(0), {.descending = true});
      auto sorted = take(error, order, 0), truth = cast(take(cast(mine & counts, i32), order, 0), f32);
      auto all = sum(truth);
      auto place = cast(arange(0, c.P), f32);
      auto hits = cumsum(truth, axis(0));
      auto jaccard = [&](const Tile& seen, const Tile& passed) { return 1.f - (all - seen) / (all + passed - seen); };
      auto before = where(place == 0.f, 0.f, jaccard(hits - truth, place));
      auto weight = where(sorted >= 0.f, jaccard(hits, place + 1.f) - before, 0.f);
      losses.store({n, k}, sum(weight * sorted));
      // The weight of every pixel: order is a permutation, its inverse is its argsort.
      auto back = take(weight, argsort(order, axis(0)), 0);
      grads.store({n, k, 0}, where(mine, -back, back));
    }).grid([](const LovaszCfg&, const auto& probs, const auto&...) {
      return Grid{probs.shape[1], probs.shape[0]};
    });
Register r1("lovasz", [](Env& e) {
  LovaszCfg c;
  if (!e.big) c = {64, 1};
  c.warps = e.field("warps", c.warps), c.P = e.field("P", c.P);
  const int N = e.big ? 256 : 3, C = e.big ? 19 : 4, P = e.big ? c.P : 50;
  auto probs = random<float>(e, size_t(N) * C * P, 0, 1);
  auto labels = drawn<uint8_t>(e, size_t(N) * P, [&] {
    const double u = e.uniform();
    return uint8_t(u < .1 ? 255 : int(e.uniform() * C));
  });
  auto losses = constant<float>(e, N * C, NAN), grads = constant<float>(e, probs.n, NAN);
  Job j;
  j.mbytes = 9e-6 * probs.n;
  j.add(lovasz, c, probs.view(N, C, P), labels.view(N, P), losses.view(N, C), grads.view(N, C, P));
  j.check = [=] {
    std::vector<double> loss(N * C), grad(probs.n);
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < C; ++k) {
        std::vector<std::pair<double, int>> errors;
        double all = 0;
        for (int i = 0; i < P; ++i) {
          const int label = labels.at(size_t(n) * P + i);
          if (label == 255) continue;
          all += label == k;
          errors.push_back({-std::abs((label == k) - probs[(size_t(n) * C + k) * P + i]), i});
        }
        std::sort(errors.begin(), errors.end());
        double hits = 0, last = 0;
        for (size_t r = 0; r < errors.size(); ++r) {
          const int i = errors[r].second;
          const bool mine = labels.at(size_t(n) * P + i) == k;
          hits += mine;
          const double now = 1 - (all - hits) / (all + double(r + 1) - hits);
          loss[n * C + k] += (now - last) * -errors[r].first;
          grad[(size_t(n) * C + k) * P + i] = mine ? -(now - last) : now - last;
          last = now;
        }
      }
    if (auto wrong = agree(losses.now(), loss, 1e-4, 1e-4); !wrong.empty()) return "losses: " + wrong;
    return agree(grads.now(), grad, 1e-5, 1e-4);
  };
  return j;
});

// --- ListMLE, and Cox's partial likelihood: documents by relevance, minus the log of what every one's exponential is
// among those behind it; a scan from the end in logarithms
struct ListCfg {
  int B = 256, warps = 2;
};
auto list_mle =
    kernel("user_list_mle", [](const ListCfg& c, Tensor<const half, 2> scores, Tensor<const float, 2> relevance,
                               Ptr<const int64_t> lengths, Tensor<float, 2> grads, Ptr<float> losses) {
      num_warps(c.warps);
      auto r = program_id(0);
      auto n = cast(load(lengths + r), i32);
      auto i = arange(0, c.B);
      auto in = i < n;
      auto s = where(in, cast(scores.load({r, 0}, {c.B}), f32), -INFINITY);
      auto order = argsort(where(in, relevance.load({r, 0}, {c.B}), -INFINITY), axis(0), {.descending = true});
      auto x = take(s, order, 0);
      auto tail = scan(x, axis(0),
                       [](Tile a, Tile b) {
                         auto m = max(a, b);
                         return where(m == -INFINITY, m, m + log(exp(a - m) + exp(b - m)));
                       },
                       {.reverse = true});
      store(losses + r, sum(where(in, tail - x, 0.f)));
      // d/dx_j = sum over i <= j of exp(x_j - tail_i) - 1
      auto sums = cumsum(where(in, exp(-tail), 0.f), axis(0));
      auto g = where(in, exp(x) * sums - 1.f, 0.f);
      grads.store({r, 0}, take(g, argsort(order, axis(0)), 0));
    }).grid([](const ListCfg&, const auto& s, const auto&...) { return Grid{s.shape[0]}; });
Register r2("list_mle", [](Env& e) {
  ListCfg c;
  if (!e.big) c = {48, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 1 << 15 : 9, W = e.big ? c.B : 43;
  auto scores = random<half>(e, size_t(R) * W, -2, 2);
  auto relevance = random<float>(e, scores.n, 0, 5);
  auto lengths = drawn<int64_t>(e, R, [&] { return int64_t(1 + e.uniform() * W); });
  auto grads = constant<float>(e, scores.n, NAN), losses = constant<float>(e, R, NAN);
  Job j;
  j.mbytes = 10e-6 * scores.n;
  j.add(list_mle, c, scores.view(R, W), relevance.view(R, W), lengths.p, grads.view(R, W), losses.p);
  j.check = [=] {
    std::vector<double> loss(R), grad(scores.n);
    for (int r = 0; r < R; ++r) {
      const int n = int(lengths.at(r));
      std::vector<int> order(n);
      for (int i = 0; i < n; ++i) order[i] = i;
      auto x = [&](int i) { return scores[size_t(r) * W + i]; };
      std::stable_sort(order.begin(), order.end(),
                       [&](int a, int b) { return relevance[size_t(r) * W + a] > relevance[size_t(r) * W + b]; });
      for (int i = 0; i < n; ++i) {
        double tail = 0;
        for (int k = i; k < n; ++k) tail += std::exp(x(order[k]));
        loss[r] += std::log(tail) - x(order[i]);
        for (int k = i; k < n; ++k) grad[size_t(r) * W + order[k]] += std::exp(x(order[k])) / tail;
      }
      for (int i = 0; i < n; ++i) grad[size_t(r) * W + i] -= 1;
    }
    if (auto wrong = agree(losses.now(), loss, 1e-2, 1e-3); !wrong.empty()) return "losses: " + wrong;
    return agree(grads.now(), grad, 1e-3, 2e-3);
  };
  return j;
});

// --- neural spline flows: every number inside [-3, 3] goes through a rational-quadratic spline of 8 bins that a
// network gave it; the logarithms of the derivatives of a row are summed
struct FlowCfg {
  int B = 32, D = 16, K = 8, warps = 4;
};
auto spline_flow = kernel("user_spline_flow", [](const FlowCfg& c, Tensor<const float, 2> X,
                                                 Tensor<const half, 3> params, Tensor<float, 2> Y, Ptr<float> logdet) {
                     // params [N, D, 3 K]: widths, heights, slopes (the last of these is the first bin's left one, too)
                     num_warps(c.warps);
                     const float bound = 3, least = 1e-3f;
                     auto n = program_id(0) * c.B;
                     Tile total = zeros({c.B, 1}, f32);
                     for (auto d : range(0, X.dim(1), c.D)) {
                       auto x = X.load({n, d}, {c.B, c.D});
                       auto part = [&](int i) { return cast(params.load({n, d, i * c.K}, {c.B, c.D, c.K}), f32); };
                       auto inner = expand_dims(clamp(x, -bound, bound), 2);
                       auto edges = [&](const Tile& raw) {
                         auto w = least + (1.f - least * c.K) * softmax(raw, axis(2));
                         auto right = cumsum(w, axis(2)) * (2 * bound) - bound;
                         return std::pair<Tile, Tile>(w * (2 * bound), right - w * (2 * bound));
                       };
                       auto [w, left] = edges(part(0));
                       auto [h, low] = edges(part(1));
                       auto slope = least + log1p(exp(part(2)));
                       auto k = arange(0, c.K);
                       auto bin = sum(cast(inner >= left, i32), axis(2)) - 1;
                       auto here = reshape(k, {1, 1, c.K}) == bin;
                       auto pick = [&](const Tile& t) { return squeeze(sum(where(here, t, 0.f), axis(2)), 2); };
                       auto before = sum(where(reshape(k, {1, 1, c.K}) == (bin + c.K - 1) % c.K, slope, 0.f), axis(2));
                       auto wk = pick(w), hk = pick(h), s1 = pick(slope), s0 = squeeze(before, 2);
                       auto delta = hk / wk, t = (squeeze(inner, 2) - pick(left)) / wk, u = t * (1 - t);
                       auto bottom = delta + (s1 + s0 - 2 * delta) * u;
                       auto y = pick(low) + hk * (delta * t * t + s0 * u) / bottom;
                       auto slope_here =
                           delta * delta * (s1 * t * t + 2 * delta * u + s0 * (1 - t) * (1 - t)) / (bottom * bottom);
                       auto inside = abs(x) < bound;
                       Y.store({n, d}, where(inside, y, x));
                       auto columns = (d + arange(0, c.D)).row() < X.dim(1);
                       total += sum(where(inside & columns, log(slope_here), 0.f), axis(1));
                     }
                     auto rows = n + arange(0, c.B);
                     store(logdet + rows, squeeze(total, 1), {.mask = rows < X.dim(0)});
                   }).grid([](const FlowCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.B)}; });
Register r3("spline_flow", [](Env& e) {
  FlowCfg c;
  if (!e.big) c = {8, 4, 8, 1};
  c.B = e.field("B", c.B), c.D = e.field("D", c.D), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 16 : 13, D = e.big ? 64 : 6, K = c.K;
  auto x = random<float>(e, size_t(N) * D, -3.5, 3.5);
  auto params = random<half>(e, size_t(N) * D * 3 * K, -2, 2);
  auto y = constant<float>(e, x.n, NAN), logdet = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 2e-6 * params.n + 8e-6 * x.n;
  j.add(spline_flow, c, x.view(N, D), params.view(N, D, 3 * K), y.view(N, D), logdet.p);
  j.check = [=] {
    std::vector<double> want(x.n), det(N);
    for (size_t i = 0; i < x.n; ++i) {
      const double v = x[i];
      if (std::abs(v) >= 3) {
        want[i] = v;
        continue;
      }
      double w[8], h[8], s[8], sw = 0, sh = 0;
      for (int k = 0; k < K; ++k) {
        sw += w[k] = std::exp(params[i * 3 * K + k]), sh += h[k] = std::exp(params[i * 3 * K + K + k]);
        s[k] = 1e-3 + std::log1p(std::exp(params[i * 3 * K + 2 * K + k]));
      }
      double left = -3, low = -3;
      int k = 0;
      for (;; ++k) {
        w[k] = 6 * (1e-3 + (1 - 1e-3 * K) * w[k] / sw), h[k] = 6 * (1e-3 + (1 - 1e-3 * K) * h[k] / sh);
        if (k == K - 1 || v < left + w[k]) break;
        left += w[k], low += h[k];
      }
      const double s1 = s[k], s0 = s[(k + K - 1) % K], d = h[k] / w[k], t = (v - left) / w[k], u = t * (1 - t);
      const double bottom = d + (s1 + s0 - 2 * d) * u;
      want[i] = low + h[k] * (d * t * t + s0 * u) / bottom;
      det[i / D] += std::log(d * d * (s1 * t * t + 2 * d * u + s0 * (1 - t) * (1 - t)) / (bottom * bottom));
    }
    if (auto wrong = agree(y.now(), want, 1e-4, 1e-4); !wrong.empty()) return "y: " + wrong;
    return agree(logdet.now(), det, 2e-3, 1e-3);
  };
  return j;
});

// --- V-trace (IMPALA): returns of many environments from the end of time, weights of the policies' ratios clipped;
// time is walked backwards in pieces, a scan of affine maps in each
struct VtraceCfg {
  int T = 64, B = 32, warps = 4;
};
auto vtrace =
    kernel("user_vtrace", [](const VtraceCfg& c, Tensor<const float, 2> values, Tensor<const float, 2> rewards,
                             Tensor<const float, 2> ratios, Tensor<const bool, 2> done, Ptr<const float> last,
                             Tensor<float, 2> targets, Tensor<float, 2> advantages, F32 gamma) {
      // [T, B], time runs backwards in all of them: row 0 is the last step
      num_warps(c.warps);
      auto b = program_id(0) * c.B, T = values.dim(0);
      auto column = (b + arange(0, c.B)).row();
      auto next_value = load(last + column, {.mask = column < values.dim(1)});
      Tile carry = zeros({1, c.B}, f32), after = next_value, target_after = next_value;
      for (auto t : range(0, T, c.T)) {
        auto box = [&](const auto& x) { return x.load({t, b}, {c.T, c.B}); };
        auto v = box(values), ratio = box(ratios);
        auto next = where((t + arange(0, c.T)).col() == 0, after, values.load({t - 1, b}, {c.T, c.B}));
        auto discount = where(box(done), 0.f, gamma);
        auto delta = min(ratio, 1.f) * (box(rewards) + discount * next - v);
        // d_t = delta_t + (discount_t c_t) d_(t + 1)
        auto [factor, sums] =
            scan({discount * min(ratio, 1.f), delta}, axis(0),
                 [](Tile f0, Tile s0, Tile f1, Tile s1) { return std::tuple(f0 * f1, s1 + f1 * s0); });
        auto d = sums + factor * carry;
        auto inside = (t + arange(0, c.T)).col() < T;
        auto target = d + v;
        targets.store({t, b}, target);
        // One step earlier in time is one row further: targets of the step behind.
        auto shifted = where(arange(0, c.T).col() == 0, target_after,
                             take(target, broadcast_to(max(arange(0, c.T) - 1, 0).col(), {c.T, c.B}), 0));
        advantages.store({t, b}, min(ratio, 1.f) * (box(rewards) + discount * shifted - v));
        auto end = arange(0, c.T).col() == c.T - 1;
        auto row = [&](const Tile& x) { return sum(where(end & inside, x, 0.f), axis(0)); };
        carry = row(d), target_after = row(target);
      }
    }).grid([](const VtraceCfg& c, const auto& v, const auto&...) { return Grid{cdiv(v.shape[1], c.B)}; });
Register r4("vtrace", [](Env& e) {
  VtraceCfg c;
  if (!e.big) c = {16, 8, 1};
  c.T = e.field("T", c.T), c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 1024 : 37, B = e.big ? 16384 : 19;
  const size_t n = size_t(T) * B;
  auto values = random<float>(e, n), rewards = random<float>(e, n), ratios = random<float>(e, n, .3, 2);
  auto done = drawn<uint8_t>(e, n, [&] { return uint8_t(e.uniform() < .05); });
  auto last = random<float>(e, B);
  auto targets = constant<float>(e, n, NAN), advantages = constant<float>(e, n, NAN);
  Job j;
  j.mbytes = 21e-6 * double(n);
  auto backwards = [&]<class X>(const Array<X>& a) {
    return TensorView<X, 2>(a.p + size_t(T - 1) * B, {T, B}, {-B, 1});
  };
  j.add(vtrace, c, TensorView<const float, 2>(backwards(values)), TensorView<const float, 2>(backwards(rewards)),
        TensorView<const float, 2>(backwards(ratios)),
        TensorView<const bool, 2>(reinterpret_cast<const bool*>(done.p) + size_t(T - 1) * B, {T, B}, {-B, 1}), last.p,
        backwards(targets), backwards(advantages), .97f);
  j.check = [=] {
    std::vector<double> target(n), advantage(n);
    for (int b = 0; b < B; ++b) {
      double d = 0, next = last[b], after = last[b];
      for (int t = T; t--;) {
        const size_t i = size_t(t) * B + b;
        const double g = done.at(i) ? 0 : .97f, ratio = std::min(1.0, ratios[i]);
        d = ratio * (rewards[i] + g * next - values[i]) + g * ratio * d;
        target[i] = d + values[i], advantage[i] = ratio * (rewards[i] + g * after - values[i]);
        next = values[i], after = target[i];
      }
    }
    if (auto wrong = agree(targets.now(), target, 1e-4, 1e-4); !wrong.empty()) return "targets: " + wrong;
    return agree(advantages.now(), advantage, 1e-4, 1e-4);
  };
  return j;
});

// --- interactions of features (DLRM): products of every two of 27 vectors of a sample, the lower triangle behind the
// dense vector
struct InteractCfg {
  int B = 4, F = 32, D = 64, warps = 4;
};
auto interact = kernel("user_interact", [](const InteractCfg& c, Tensor<const half, 3> X, Tensor<half, 2> Y) {
                  // X [N, F', D], Y [N, D + F' (F' - 1) / 2]
                  num_warps(c.warps);
                  auto n = program_id(0) * c.B, F = X.dim(1);
                  auto x = X.load({n, 0, 0}, {c.B, c.F, c.D});
                  auto z = dot(x, permute(x, {0, 2, 1}));
                  Y.store({n, 0}, reshape(extract(x, {0, 0, 0}, {c.B, 1, c.D}), {c.B, c.D}));
                  auto i = reshape(arange(0, c.F), {1, c.F, 1}), j = reshape(arange(0, c.F), {1, 1, c.F});
                  auto sample = reshape(n + arange(0, c.B), {c.B, 1, 1});
                  auto place = cast(sample, i64) * Y.stride(0) + (c.D + i * (i - 1) / 2 + j);
                  store(Y.ptr() + place, cast(z, f16), {.mask = (j < i) & (i < F) & (sample < X.dim(0))});
                }).grid([](const InteractCfg& c, const auto& x, const auto&) { return Grid{cdiv(x.shape[0], c.B)}; });
Register r5("interact", [](Env& e) {
  InteractCfg c;
  if (!e.big) c = {2, 16, 16, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 65536 : 7, F = e.big ? 27 : 13, D = c.D, W = D + F * (F - 1) / 2;
  auto x = random<half>(e, size_t(N) * F * D);
  auto y = constant<half>(e, size_t(N) * W, NAN);
  Job j;
  j.mbytes = 2e-6 * (x.n + y.n);
  j.add(interact, c, x.view(N, F, D), y.view(N, W));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int n = 0; n < N; ++n) {
      for (int d = 0; d < D; ++d) want[size_t(n) * W + d] = x[size_t(n) * F * D + d];
      for (int i = 0; i < F; ++i)
        for (int k = 0; k < i; ++k)
          for (int d = 0; d < D; ++d)
            want[size_t(n) * W + D + i * (i - 1) / 2 + k] +=
                x[(size_t(n) * F + i) * D + d] * x[(size_t(n) * F + k) * D + d];
    }
    return agree(y.now(), want, 1e-2, 2e-3);
  };
  return j;
});

// --- embeddings as trains of tensors (TT-Rec): a word's number in three digits names a slice of each core; two small
// products put its row together: [4, R] [R, 4, R] [R, 4]
struct TrainCfg {
  int B = 16, R = 16, D = 4, warps = 4;
};
auto tensor_train =
    kernel("user_tensor_train", [](const TrainCfg& c, Ptr<const int64_t> words, Ptr<const half> A, Ptr<const half> B,
                                   Ptr<const half> C, Tensor<half, 2> Y, I32 n, I32 digit) {
      // A [digit, D, R], B [digit, R, D, R], C [digit, R, D]; Y [n, D D D]
      num_warps(c.warps);
      auto w = program_id(0) * c.B + arange(0, c.B);
      auto word = cast(load(words + w, {.mask = w < n}), i32);
      auto d = arange(0, c.D), r = arange(0, c.R), rd = arange(0, c.R * c.D);
      auto slice = [&](const Tile& k) { return reshape(k, {c.B, 1, 1}); };
      auto a = load(A + (slice(word / (digit * digit)) * (c.D * c.R) + expand_dims(d.col() * c.R + r.row(), 0)));
      auto b = load(B + (slice(word / digit % digit) * (c.R * c.D * c.R) +
                         expand_dims(r.col() * (c.D * c.R) + arange(0, c.D * c.R).row(), 0)));
      auto e = load(C + (slice(word % digit) * (c.R * c.D) + expand_dims(rd.row(), 0)));
      auto ab = reshape(dot(a, b), {c.B, c.D * c.D, c.R});
      auto y = dot(cast(ab, f16), reshape(e, {c.B, c.R, c.D}));
      Y.store({program_id(0) * c.B, 0}, cast(reshape(y, {c.B, c.D * c.D * c.D}), f16));
    }).grid([](const TrainCfg& c, auto, auto, auto, auto, const auto&, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r6("tensor_train", [](Env& e) {
  TrainCfg c;
  if (!e.big) c = {4, 16, 4, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 18 : 11, digit = e.big ? 200 : 5, D = c.D, R = c.R;
  auto words = drawn<int64_t>(e, n, [&] { return int64_t(e.uniform() * digit * digit * digit); });
  auto a = random<half>(e, digit * D * R), b = random<half>(e, size_t(digit) * R * D * R);
  auto cc = random<half>(e, digit * R * D);
  auto y = constant<half>(e, size_t(n) * D * D * D, NAN);
  Job j;
  j.gflop = 2e-9 * n * double(D) * R * D * (R + D);
  j.add(tensor_train, c, words.p, a.p, b.p, cc.p, y.view(n, D * D * D), n, digit);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int i = 0; i < n; ++i) {
      const int w = int(words.at(i));
      for (int x = 0; x < D; ++x)
        for (int z = 0; z < D; ++z)
          for (int s = 0; s < R; ++s) {
            double ab = 0;
            for (int r = 0; r < R; ++r)
              ab += a[(size_t(w / digit / digit) * D + x) * R + r] *
                    b[((size_t(w / digit % digit) * R + r) * D + z) * R + s];
            for (int v = 0; v < D; ++v)
              want[((size_t(i) * D + x) * D + z) * D + v] += in_half(ab) * cc[(size_t(w % digit) * R + s) * D + v];
          }
    }
    return agree(y.now(), want, 2e-2, 5e-3);
  };
  return j;
});

// --- the best split of every node (gradient boosting): sums of gradients left of every bin of every feature, missing
// values tried on both sides; one winner a node
struct SplitCfg {
  int F = 8, B = 256, warps = 4;
};
auto split_gain =
    kernel("user_split_gain", [](const SplitCfg& c, Tensor<const float, 4> sums, Tensor<const float, 2> missing,
                                 Ptr<float> gains, Ptr<int32_t> splits, I32 features, F32 lambda) {
      // sums [nodes, features, B, 2]: gradients and curvatures; missing [nodes, 2 features]
      num_warps(c.warps);
      auto node = program_id(0);
      Tile best = full({}, -INFINITY, f32), where_ = full({}, -1, i32);
      for (auto f0 : range(0, features, c.F)) {
        auto [g, h] = split(squeeze(sums.load({node, f0, 0, 0}, {1, c.F, c.B, 2}), 0));
        auto [mg, mh] = split(reshape(missing.load({node, f0 * 2}, {c.F * 2}), {c.F, 2}));
        auto G = sum(g, axis(1)) + mg.col(), H = sum(h, axis(1)) + mh.col();
        auto left_g = cumsum(g, axis(1)), left_h = cumsum(h, axis(1));
        auto score = [&](const Tile& a, const Tile& b) { return a * a / (b + lambda); };
        auto gain = [&](const Tile& a, const Tile& b) { return score(a, b) + score(G - a, H - b) - score(G, H); };
        auto right = gain(left_g, left_h), left = gain(left_g + mg.col(), left_h + mh.col());
        auto f = (f0 + arange(0, c.F)).col();
        auto both = where((f < features) & (arange(0, c.B).row() < c.B - 1), max(right, left), -INFINITY);
        auto flat = ravel(both);
        auto [value, at] = max_with_index(flat, axis(0));
        auto side = ravel(cast(left >= right, i32));
        auto code = (f0 * c.B + at) * 2 + take(side, at, 0);
        auto v = to_scalar(value);
        where_ = where(v > best, to_scalar(code), where_), best = max(best, v);
      }
      store(gains + node, best), store(splits + node, where_);
    }).grid([](const SplitCfg&, const auto& sums, const auto&...) { return Grid{sums.shape[0]}; });
Register r7("split_gain", [](Env& e) {
  SplitCfg c;
  if (!e.big) c = {4, 16, 1};
  c.F = e.field("F", c.F), c.warps = e.field("warps", c.warps);
  const int nodes = e.big ? 1024 : 5, F = e.big ? 100 : 7, B = c.B;
  auto sums = drawn<float>(e, size_t(nodes) * F * B * 2,
                           [&, i = 0]() mutable { return float(i++ % 2 ? .1 + e.uniform() : 2 * e.uniform() - 1); });
  auto missing = drawn<float>(e, size_t(nodes) * F * 2,
                              [&, i = 0]() mutable { return float(i++ % 2 ? .1 + e.uniform() : 2 * e.uniform() - 1); });
  auto gains = constant<float>(e, nodes, NAN);
  auto splits = constant<int32_t>(e, nodes, -1);
  Job j;
  j.mbytes = 4e-6 * sums.n;
  j.add(split_gain, c, sums.view(nodes, F, B, 2), missing.view(nodes, 2 * F), gains.p, splits.p, F, 1.f);
  j.check = [=]() -> std::string {
    const auto got = splits.now();
    std::vector<double> want(nodes);
    for (int n = 0; n < nodes; ++n) {
      double best = -1e30, mine = -1e30;
      for (int f = 0; f < F; ++f) {
        const double mg = missing[(size_t(n) * F + f) * 2], mh = missing[(size_t(n) * F + f) * 2 + 1];
        double G = mg, H = mh, g = 0, h = 0;
        auto at = [&](int b, int i) { return sums[((size_t(n) * F + f) * B + b) * 2 + i]; };
        for (int b = 0; b < B; ++b) G += at(b, 0), H += at(b, 1);
        for (int b = 0; b < B - 1; ++b) {
          g += at(b, 0), h += at(b, 1);
          for (int side = 0; side < 2; ++side) {
            const double a = g + side * mg, c = h + side * mh;
            const double gain = a * a / (c + 1) + (G - a) * (G - a) / (H - c + 1) - G * G / (H + 1);
            best = std::max(best, gain);
            if (got[n] == (f * B + b) * 2 + side) mine = gain;
          }
        }
      }
      if (mine < best - 1e-3 * std::abs(best)) return "node " + std::to_string(n);
      want[n] = best;
    }
    return agree(gains.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- a tree of priorities (replay buffers): draws walk from the root down, then new priorities replace the leaves' and
// their ancestors are summed again, level by level
struct SumTreeCfg {
  int B = 128, U = 1024, warps = 32;  // of the update, whose one program has a multiprocessor for itself
};
auto tree_draw =
    kernel("user_tree_draw", [](const SumTreeCfg& c, Ptr<const float> tree, Ptr<const float> noise, Ptr<int32_t> leaves,
                                Ptr<float> weights, I32 draws, I32 levels, F32 beta) {
      // tree [2^(levels + 1)]: node 1 is the root, children of i are 2 i and 2 i + 1
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < draws;
      auto root = load(tree + 1);
      // One draw from each of as many equal parts of the sum.
      Tile rest = (cast(i, f32) + load(noise + i, {.mask = in})) / cast(draws, f32) * root, node = full({c.B}, 1, i32);
      for (auto level : range(levels)) {
        auto left = load(tree + node * 2, {.mask = in});
        auto right = rest >= left;
        rest = where(right, rest - left, rest), node = node * 2 + cast(right, i32);
      }
      auto count = cast(full({}, 1, i32) << levels, f32);
      store(leaves + i, node, {.mask = in});
      store(weights + i, pow(count * load(tree + node, {.mask = in}) / root, -beta), {.mask = in});
    }).grid([](const SumTreeCfg& c, auto, auto, auto, auto, int draws, int, float) { return Grid{cdiv(draws, c.B)}; });
auto tree_update =
    kernel("user_tree_update", [](const SumTreeCfg& c, Ptr<float> tree, Ptr<const int32_t> leaves,
                                  Ptr<const float> priorities, I32 draws, I32 levels) {
      num_warps(c.warps);
      // One program: levels follow each other. A leaf drawn twice has the larger of its priorities.
      for (auto first : range(0, draws, c.U)) {
        auto i = first + arange(0, c.U);
        store(tree + load(leaves + i, {.mask = i < draws}), zeros({c.U}, f32), {.mask = i < draws});
      }
      for (auto first : range(0, draws, c.U)) {
        auto i = first + arange(0, c.U);
        atomic_max(tree + load(leaves + i, {.mask = i < draws}), load(priorities + i, {.mask = i < draws}),
                   {.mask = i < draws, .order = Order::relaxed, .scope = Scope::cta});
      }
      for (auto level : range(1, levels + 1))
        for (auto first : range(0, draws, c.U)) {
          auto i = first + arange(0, c.U);
          auto node = load(leaves + i, {.mask = i < draws}) >> level;
          store(tree + node, load(tree + node * 2) + load(tree + node * 2 + 1), {.mask = i < draws});
        }
    }).grid([](const SumTreeCfg&, auto...) { return Grid{1}; });
Register r8("sum_tree", [](Env& e) {
  SumTreeCfg c;
  if (!e.big) c = {32, 32, 1};
  c.B = e.field("B", c.B), c.U = e.field("U", c.U), c.warps = e.field("warps", c.warps);
  const int levels = e.big ? 20 : 6, n = 1 << levels, draws = e.big ? 4096 : 50;
  std::vector<float> nodes(2 * size_t(n));
  for (int i = n; i < 2 * n; ++i) nodes[i] = float(int(1 + 15 * e.uniform())) / 4;
  for (int i = n; --i;) nodes[i] = nodes[2 * i] + nodes[2 * i + 1];
  auto tree = filled<float>(e, nodes.size(), [&](size_t i) { return nodes[i]; });
  auto noise = random<float>(e, draws, 0, 1);
  auto priorities = drawn<float>(e, draws, [&] { return float(int(1 + 15 * e.uniform())) / 4; });
  auto leaves = constant<int32_t>(e, draws, 0);
  auto weights = constant<float>(e, draws, NAN);
  Job j;
  j.inTurn = true;
  j.add(tree_draw, c, tree.p, noise.p, leaves.p, weights.p, draws, levels, .6f);
  j.add(tree_update, c, tree.p, leaves.p, priorities.p, draws, levels);
  j.check = [=]() -> std::string {
    const auto got = leaves.now();
    std::vector<double> now(2 * size_t(n)), w(draws);
    for (int i = n; i < 2 * n; ++i) now[i] = tree[i];
    std::map<int, double> fresh;
    for (int i = 0; i < draws; ++i) {
      if (got[i] < n || got[i] >= 2 * n) return "leaf of " + std::to_string(i);
      double before = 0;
      for (int k = n; k < got[i]; ++k) before += tree[k];
      const double target = (i + noise[i]) / draws * tree[1];
      if (target < before - 1e-2 || target > before + tree[got[i]] + 1e-2) return "draw " + std::to_string(i);
      w[i] = std::pow(n * tree[got[i]] / tree[1], -.6f);
      fresh[got[i]] = std::max(fresh[got[i]], priorities[i]);
    }
    for (auto [leaf, p] : fresh) now[leaf] = p;
    for (int i = n; --i;) now[i] = now[2 * i] + now[2 * i + 1];
    if (auto wrong = agree(weights.now(), w, 1e-4, 1e-4); !wrong.empty()) return "weights: " + wrong;
    return agree(tree.now(), now, 1e-5, 1e-6);
  };
  return j;
});

}  // namespace orders
}  // namespace users
