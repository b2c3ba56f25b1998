// layers.cpp - layers that cut, merge and remember: tokens merged by likeness, sequences cut where they turn,
// block-diagonal products around permutations, rational functions, pages bounded by their keys, correlation volumes.
#include "tests/users/use.h"
namespace users {
namespace layers {

// --- token merging (ToMe): every token of odd place looks for the likest one of even place; the R likest pairs merge
struct MergeCfg {
  int T = 128, D = 64, BN = 64, R = 32, warps = 4;
};
auto merge_pairs =
    kernel("user_merge_pairs", [](const MergeCfg& c, Tensor<const half, 3> A, Tensor<const half, 3> B,
                                  Tensor<int32_t, 2> from, Tensor<int32_t, 2> to, Tensor<int32_t, 2> stays) {
      // A: even tokens, B: odd ones [N, T, D], views with twice the stride
      num_warps(c.warps);
      auto n = program_id(0);
      auto unit = [&](const Tile& x) {
        auto f = cast(x, f32);
        return cast(f * rsqrt(sum(f * f, axis(1)) + 1e-6f), f16);
      };
      auto b = unit(squeeze(B.load({n, 0, 0}, {1, c.T, c.D}), 0));
      auto odd = B.dim(1), even = A.dim(1);
      Tile best = full({c.T, 1}, -INFINITY, f32), at = zeros({c.T, 1}, i32);
      for (auto m : range(0, even, c.BN)) {
        auto s = dot(b, trans(unit(squeeze(A.load({n, m, 0}, {1, c.BN, c.D}), 0))));
        s = where((m + arange(0, c.BN)).row() < even, s, -INFINITY);
        auto [v, k] = max_with_index(s, axis(1));
        at = where(v > best, k + m, at), best = max(v, best);
      }
      auto inside = arange(0, c.T) < odd;
      auto score = where(inside, squeeze(best, 1), -INFINITY);
      auto order = argsort(score, axis(0), {.descending = true});
      from.store({n, 0}, extract(order, {0}, {c.R}));
      to.store({n, 0}, extract(take(squeeze(at, 1), order, 0), {0}, {c.R}));
      // Those that stay keep their order.
      auto rest = sort(where((arange(0, c.T) >= c.R) & (arange(0, c.T) < odd), order, c.T), axis(0));
      stays.store({n, 0}, extract(rest, {0}, {c.T - c.R}));
    }).grid([](const MergeCfg&, const auto& a, const auto&...) { return Grid{a.shape[0]}; });
Register r1("merge_tokens", [](Env& e) {
  MergeCfg c;
  if (!e.big) c = {32, 16, 16, 8, 1};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1024 : 3, S = e.big ? 256 : 49, D = c.D, odd = S / 2, even = S - odd, kept = c.T - c.R;
  auto x = random<half>(e, size_t(N) * S * D);
  auto from = constant<int32_t>(e, N * c.R, -1), to = constant<int32_t>(e, N * c.R, -1);
  auto stays = constant<int32_t>(e, N * kept, -1);
  Job j;
  j.gflop = 2e-9 * N * double(even) * odd * D;
  TensorView<const half, 3> a(x.p, {N, even, D}, {S * D, 2 * D, 1}), b(x.p + D, {N, odd, D}, {S * D, 2 * D, 1});
  j.add(merge_pairs, c, a, b, from.view(N, c.R), to.view(N, c.R), stays.view(N, kept));
  j.check = [=]() -> std::string {
    const auto f = from.now(), t = to.now(), s = stays.now();
    for (int n = 0; n < N; ++n) {
      auto like = [&](int o, int v) {
        double ab = 0, aa = 1e-6, bb = 1e-6;
        for (int d = 0; d < D; ++d) {
          const double p = x[(size_t(n) * S + 2 * o + 1) * D + d], q = x[(size_t(n) * S + 2 * v) * D + d];
          ab += p * q, aa += p * p, bb += q * q;
        }
        return ab / std::sqrt(aa * bb);
      };
      std::vector<std::pair<double, int>> best;
      for (int o = 0; o < odd; ++o) {
        double most = -1;
        for (int v = 0; v < even; ++v) most = std::max(most, like(o, v));
        best.push_back({-most, o});
      }
      auto sorted = best;
      std::sort(sorted.begin(), sorted.end());
      std::vector<bool> gone(odd);
      for (int r = 0; r < c.R; ++r) {
        const int o = f[n * c.R + r], v = t[n * c.R + r];
        if (o < 0 || o >= odd || v < 0 || v >= even || gone[o]) return "pair of " + std::to_string(n);
        gone[o] = true;
        if (std::abs(like(o, v) + best[o].first) > 2e-3) return "partner of " + std::to_string(o);
        if (std::abs(like(o, v) + sorted[r].first) > 2e-3) return "order of " + std::to_string(n);
      }
      int i = 0;
      for (int o = 0; o < odd; ++o)
        if (!gone[o] && s[n * kept + i++] != o) return "those that stay in " + std::to_string(n);
    }
    return "";
  };
  return j;
});

// --- dynamic chunks (H-Net): a token begins a chunk where it differs from the one before; chunks are averaged in time
// by their probability and spread out again
struct ChunkCfg {
  int T = 32, D = 64, warps = 4;
};
auto chunk_bounds =
    kernel("user_chunk_bounds", [](const ChunkCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<float, 2> probs, Tensor<int32_t, 2> numbers) {
      num_warps(c.warps);
      auto b = program_id(0), T = Q.dim(1);
      Tile count = full({}, 0, i32);
      for (auto t : range(0, T, c.T)) {
        auto q = cast(squeeze(Q.load({b, t, 0}, {1, c.T, c.D}), 0), f32);
        auto k = cast(squeeze(K.load({b, t - 1, 0}, {1, c.T, c.D}), 0), f32);
        auto like = sum(q * k, axis(1)) * rsqrt(sum(q * q, axis(1)) * sum(k * k, axis(1)));
        auto row = (t + arange(0, c.T)).col();
        auto p = where(row == 0, 1.f, clamp((1 - like) / 2, 0, 1));
        auto begins = where(row < T, cast(p >= .5f, i32), 0);
        auto number = cumsum(begins, axis(0)) + count;
        probs.store({b, t}, squeeze(p, 1));
        numbers.store({b, t}, squeeze(number, 1) - 1);
        count = count + sum(begins);
      }
    }).grid([](const ChunkCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
auto chunk_smooth =
    kernel("user_chunk_smooth", [](const ChunkCfg& c, Tensor<const float, 2> probs, Tensor<const bfloat16, 3> X,
                                   Tensor<const int32_t, 2> numbers, Tensor<bfloat16, 3> Y) {
      // Y_t = z of t's chunk; z_m = p z_(m - 1) decays with the chunks' first tokens' p: in tokens, p = 0 in between
      num_warps(c.warps);
      auto b = program_id(0), d = program_id(1) * c.D;
      Tile carry = zeros({1, c.D}, f32);
      for (auto t : range(0, X.dim(1), c.T)) {
        auto p = probs.load({b, t}, {c.T}).col();
        auto begins = p >= .5f;
        auto number = numbers.load({b, t}, {c.T});
        auto x =
            cast(make_view<const bfloat16>(X.ptr() + cast(b, i64) * X.stride(0), {X.dim(1), X.dim(2)}, {X.stride(1), 1})
                     .gather(number, d, c.D),
                 f32);
        auto keep = broadcast_to(where(begins, 1 - p, 1.f), {c.T, c.D}), add = where(begins, p * x, 0.f);
        auto [k, a] = scan({keep, add}, axis(0),
                           [](Tile k0, Tile a0, Tile k1, Tile a1) { return std::tuple(k0 * k1, a1 + k1 * a0); });
        auto z = a + k * carry;
        Y.store({b, t, d}, expand_dims(cast(z, bf16), 0));
        carry = extract(z, {c.T - 1, 0}, {1, c.D});
      }
    }).grid([](const ChunkCfg& c, const auto&, const auto& x, const auto&...) {
      return Grid{x.shape[0], cdiv(x.shape[2], c.D)};
    });
Register r2("dynamic_chunks", [](Env& e) {
  ChunkCfg c;
  if (!e.big) c = {16, 16, 1};
  c.T = e.field("T", c.T), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 2, T = e.big ? 8192 : 45, D = c.D, W = e.big ? 1024 : 20;
  auto q = random<bfloat16>(e, size_t(B) * T * D), k = random<bfloat16>(e, q.n);
  auto x = random<bfloat16>(e, size_t(B) * T * W);  // row m: chunk m's
  auto probs = constant<float>(e, B * T, NAN);
  auto numbers = constant<int32_t>(e, B * T, -1);
  auto y = constant<bfloat16>(e, x.n, NAN);
  Job j;
  j.mbytes = 2e-6 * (2 * q.n + 2 * x.n);
  j.inTurn = true;
  j.add(chunk_bounds, c, q.view(B, T, D), k.view(B, T, D), probs.view(B, T), numbers.view(B, T));
  j.add(chunk_smooth, c, probs.view(B, T), x.view(B, T, W), numbers.view(B, T), y.view(B, T, W));
  j.check = [=]() -> std::string {
    const auto p = probs.now();
    std::vector<double> want_p(B * T), want_n(B * T), want(y.n);
    for (int b = 0; b < B; ++b) {
      int number = -1;
      std::vector<double> z(W);
      for (int t = 0; t < T; ++t) {
        double qk = 0, qq = 0, kk = 0;
        for (int d = 0; d < D && t; ++d) {
          const double u = q[(size_t(b) * T + t) * D + d], v = k[(size_t(b) * T + t - 1) * D + d];
          qk += u * v, qq += u * u, kk += v * v;
        }
        const double mine = want_p[b * T + t] = t ? (1 - qk / std::sqrt(qq * kk)) / 2 : 1;
        if (std::abs(mine - .5) < 1e-5) return "too close";
        if (mine >= .5) {
          ++number;
          for (int w = 0; w < W; ++w) z[w] = mine * x[(size_t(b) * T + number) * W + w] + (1 - mine) * z[w];
        }
        want_n[b * T + t] = number;
        for (int w = 0; w < W; ++w) want[(size_t(b) * T + t) * W + w] = z[w];
      }
    }
    if (auto wrong = agree(p, want_p, 1e-4, 1e-4); !wrong.empty()) return "probs: " + wrong;
    if (auto wrong = agree(numbers.now(), want_n, .1, 0); !wrong.empty()) return "numbers: " + wrong;
    return agree(y.now(), want, 5e-3, 1e-2);
  };
  return j;
});

// --- Monarch: rows of S x S numbers, products with a matrix per block along one way, then along the other
struct MonarchCfg {
  int B = 16, S = 16, warps = 4;
};
auto monarch = kernel("user_monarch", [](const MonarchCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> L,
                                         Tensor<const half, 3> R, Tensor<half, 2> Y) {
                 // X, Y [N, S S]; L, R [S, S, S]: y[b, i, j] = sum_l R[j, i, l] sum_k L[l, j, k] x[b, l, k]
                 num_warps(c.warps);
                 auto b = program_id(0) * c.B;
                 auto x = permute(reshape(X.load({b, 0}, {c.B, c.S * c.S}), {c.B, c.S, c.S}), {1, 0, 2});  // [l, b, k]
                 auto t = dot(x, permute(L.load({0, 0, 0}, {c.S, c.S, c.S}), {0, 2, 1}));                  // [l, b, j]
                 auto u = permute(cast(t, f16), {2, 1, 0});                                                // [j, b, l]
                 auto y = dot(u, permute(R.load({0, 0, 0}, {c.S, c.S, c.S}), {0, 2, 1}));                  // [j, b, i]
                 Y.store({b, 0}, reshape(permute(cast(y, f16), {1, 2, 0}), {c.B, c.S * c.S}));
               }).grid([](const MonarchCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.B)}; });
Register r3("monarch", [](Env& e) {
  MonarchCfg c;
  if (!e.big) c = {16, 4, 1};
  c.B = e.field("B", c.B), c.S = e.field("S", c.S), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 16 : 19, S = c.S;
  auto x = random<half>(e, size_t(N) * S * S), l = random<half>(e, S * S * S), r = random<half>(e, S * S * S);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.gflop = 4e-9 * N * double(S) * S * S;
  j.add(monarch, c, x.view(N, S * S), l.view(S, S, S), r.view(S, S, S), y.view(N, S * S));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int n = 0; n < N; ++n)
      for (int m = 0; m < S; ++m)
        for (int o = 0; o < S; ++o) {
          double t = 0;
          for (int k = 0; k < S; ++k) t += l[(m * S + o) * S + k] * x[size_t(n) * S * S + m * S + k];
          for (int i = 0; i < S; ++i) want[size_t(n) * S * S + i * S + o] += r[(o * S + i) * S + m] * in_half(t);
        }
    return agree(y.now(), want, 1e-2, 5e-3);
  };
  return j;
});

// --- rational activations (KAT), a function per group of columns: P(x) / (1 + |Q(x)|), gradients of x and of the ten
// coefficients, those summed over everything
struct RationalCfg {
  int R = 16, G = 64, warps = 4;
};
auto rational_bwd =
    kernel("user_rational_bwd", [](const RationalCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 3> dY,
                                   Ptr<const float> coefficients, Tensor<bfloat16, 3> dX, Ptr<float> grads, I32 rows) {
      // [N, groups, G], coefficients [groups, 10]: six of P, four of Q; every program takes `rows` rows
      num_warps(c.warps);
      auto g = program_id(1);
      std::vector<Tile> p, q, sums;
      for (int i = 0; i < 10; ++i) {
        (i < 6 ? p : q).push_back(load(coefficients + g * 10 + i));
        sums.push_back(zeros({c.R, c.G}, f32));
      }
      auto first = program_id(0) * rows;
      for (auto n : range(first, min(first + rows, X.dim(0)), c.R)) {
        auto x = cast(squeeze(X.load({n, g, 0}, {c.R, 1, c.G}), 1), f32);
        auto dy = cast(squeeze(dY.load({n, g, 0}, {c.R, 1, c.G}), 1), f32);
        Tile P = zeros({c.R, c.G}, f32) + p[5], dP = zeros({c.R, c.G}, f32), Q = zeros({c.R, c.G}, f32) + q[3],
             dQ = zeros({c.R, c.G}, f32);
        for (int i = 4; i >= 0; --i) dP = dP * x + P, P = P * x + p[i];
        for (int i = 2; i >= 0; --i) dQ = dQ * x + Q, Q = Q * x + q[i];
        dQ = dQ * x + Q, Q = Q * x;  // Q has no constant
        auto bottom = 1 / (1 + abs(Q)), sign = where(Q < 0.f, -1.f, 1.f), ratio = P * bottom * bottom * sign;
        dX.store({n, g, 0}, expand_dims(cast(dy * (dP * bottom - dQ * ratio), bf16), 1));
        Tile power = dy * bottom;
        for (int i = 0; i < 6; ++i) sums[i] += power, power *= x;
        power = -dy * ratio * x;
        for (int i = 0; i < 4; ++i) sums[6 + i] += power, power *= x;
      }
      for (int i = 0; i < 10; ++i) atomic_add(grads + g * 10 + i, sum(sums[i]), {.order = Order::relaxed});
    }).grid([](const RationalCfg&, const auto& x, auto, auto, auto, auto, int rows) {
      return Grid{cdiv(x.shape[0], int64_t(rows)), x.shape[1]};
    });
Register r7("rational_bwd", [](Env& e) {
  RationalCfg c;
  if (!e.big) c = {8, 16, 1};
  c.R = e.field("R", c.R), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 17 : 43, groups = e.big ? 12 : 3, G = c.G, rows = e.big ? 2048 : 16;
  auto x = random<bfloat16>(e, size_t(N) * groups * G, -2, 2), dy = random<bfloat16>(e, x.n);
  auto k = random<float>(e, groups * 10);
  auto dx = constant<bfloat16>(e, x.n, NAN);
  auto grads = constant<float>(e, groups * 10, 0);
  Job j;
  j.mbytes = 6e-6 * x.n;
  j.inTurn = true;
  j.add(rational_bwd, c, x.view(N, groups, G), dy.view(N, groups, G), k.p, dx.view(N, groups, G), grads.p, rows);
  j.check = [=] {
    std::vector<double> want(x.n), sums(groups * 10);
    for (size_t i = 0; i < x.n; ++i) {
      const int g = int(i / G % groups);
      const double v = x[i];
      double P = 0, dP = 0, Q = 0, dQ = 0;
      for (int n = 0; n < 6; ++n)
        P += k[g * 10 + n] * std::pow(v, n), dP += n ? n * k[g * 10 + n] * std::pow(v, n - 1) : 0;
      for (int n = 1; n < 5; ++n)
        Q += k[g * 10 + 5 + n] * std::pow(v, n), dQ += n * k[g * 10 + 5 + n] * std::pow(v, n - 1);
      const double bottom = 1 + std::abs(Q), sign = Q < 0 ? -1 : 1;
      want[i] = dy[i] * (dP / bottom - P * sign * dQ / (bottom * bottom));
      for (int n = 0; n < 6; ++n) sums[g * 10 + n] += dy[i] * std::pow(v, n) / bottom;
      for (int n = 1; n < 5; ++n) sums[g * 10 + 5 + n] -= dy[i] * P * sign * std::pow(v, n) / (bottom * bottom);
    }
    if (auto wrong = agree(dx.now(), want, 1e-2, 1e-2); !wrong.empty()) return "dx: " + wrong;
    return agree(grads.now(), sums, 5e-3, 5e-3);
  };
  return j;
});

// --- which pages matter to a query (Quest): the largest product that any key between a page's smallest and largest
// numbers could have; the best K pages of a head
struct QuestCfg {
  int P = 32, D = 128, K = 8, most = 512, warps = 4;
};
auto page_bounds =
    kernel("user_page_bounds", [](const QuestCfg& c, Tensor<const half, 3> Q, Tensor<const half, 4> low,
                                  Tensor<const half, 4> high, Ptr<const int32_t> pages, Tensor<float, 3> scores) {
      // Q [B, H, D]; low, high [B, KV, pages, D]; scores [B, H, pages]
      num_warps(c.warps);
      auto b = program_id(1), kv = program_id(2), p0 = program_id(0) * c.P, n = load(pages + b);
      return_if(p0 >= n);
      auto group = Q.dim(1) / low.dim(1);
      auto box = [&](const auto& x) { return reshape(x.load({b, kv, p0, 0}, {1, 1, c.P, c.D}), {c.P, c.D}); };
      auto least = box(low), most = box(high);  // once for all heads of the group
      auto inside = (p0 + arange(0, c.P)).col() < n;
      for (auto h : range(kv * group, (kv + 1) * group)) {
        auto q = cast(squeeze(Q.load({b, h, 0}, {1, 1, c.D}), 0), f32);
        auto s = sum(max(q * cast(least, f32), q * cast(most, f32)), axis(1));
        scores.store({b, h, p0}, reshape(where(inside, s, -INFINITY), {1, 1, c.P}));
      }
    }).grid([](const QuestCfg& c, const auto& q, const auto& low, const auto&...) {
      return Grid{cdiv(low.shape[2], c.P), q.shape[0], low.shape[1]};
    });
auto page_choice = kernel("user_page_choice", [](const QuestCfg& c, Tensor<const float, 3> scores,
                                                 Ptr<const int32_t> pages, Tensor<int32_t, 3> chosen) {
                     auto b = program_id(0), h = program_id(1), n = load(pages + b);
                     auto i = arange(0, c.most);
                     auto s = where(i < n, reshape(scores.load({b, h, 0}, {1, 1, c.most}), {c.most}), -INFINITY);
                     auto [value, at] = topk(s, c.K, axis(0));
                     chosen.store({b, h, 0}, reshape(where(value == -INFINITY, -1, at), {1, 1, c.K}));
                   }).grid([](const QuestCfg&, const auto& s, const auto&...) {
  return Grid{s.shape[0], s.shape[1]};
});
Register r8("page_bounds", [](Env& e) {
  QuestCfg c;
  if (!e.big) c = {8, 16, 4, 32, 1};
  c.P = e.field("P", c.P), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 3, H = e.big ? 32 : 4, KV = e.big ? 8 : 2, P = e.big ? 512 : 21, D = c.D;
  auto q = random<half>(e, size_t(B) * H * D), low = random<half>(e, size_t(B) * KV * P * D, -1, 0);
  auto high = random<half>(e, low.n, 0, 1);
  auto pages = filled<int32_t>(e, B, [&](size_t i) { return i == 1 ? 2 : P - int(i) % 4; });
  auto scores = constant<float>(e, size_t(B) * H * P, NAN);
  auto chosen = constant<int32_t>(e, size_t(B) * H * c.K, -2);
  Job j;
  j.mbytes = 4e-6 * low.n;
  j.inTurn = true;
  j.add(page_bounds, c, q.view(B, H, D), low.view(B, KV, P, D), high.view(B, KV, P, D), pages.p, scores.view(B, H, P));
  j.add(page_choice, c, scores.view(B, H, P), pages.p, chosen.view(B, H, c.K));
  j.check = [=]() -> std::string {
    const auto got = chosen.now();
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h) {
        std::vector<double> s;
        for (int p = 0; p < pages.at(b); ++p) {
          double x = 0;
          for (int d = 0; d < D; ++d) {
            const double v = q[(size_t(b) * H + h) * D + d];
            const size_t at = ((size_t(b) * KV + h / (H / KV)) * P + p) * D + d;
            x += std::max(v * low[at], v * high[at]);
          }
          s.push_back(x);
        }
        auto sorted = s;
        std::sort(sorted.rbegin(), sorted.rend());
        for (int k = 0; k < c.K; ++k) {
          const int at = got[(size_t(b) * H + h) * c.K + k], n = int(s.size());
          if (k >= n ? at != -1 : at < 0 || at >= n || std::abs(s[at] - sorted[k]) > 1e-3)
            return "page " + std::to_string(k) + " of " + std::to_string(b) + ", " + std::to_string(h);
        }
      }
    return "";
  };
  return j;
});

// --- a look into a correlation volume (RAFT): 9 x 9 places around where every pixel moved to, between four numbers
// each, on four levels of half the size
struct LookupCfg {
  int B = 16, R = 4, warps = 4;
};
auto volume_lookup =
    kernel("user_volume_lookup", [](const LookupCfg& c, Ptr<const half> volume, Ptr<const int64_t> starts,
                                    Tensor<const float, 2> coords, Tensor<half, 2> out, I32 H, I32 W, I32 levels) {
      // volume: levels one behind the other, each [pixels, H >> level, W >> level]; out [pixels, levels 81]
      num_warps(c.warps);
      const int side = 2 * c.R + 1, n = side * side;
      auto pixel = program_id(0) * c.B + arange(0, c.B);
      auto level = program_id(1);
      auto h = H >> level, w = W >> level;
      auto scale = exp2(-cast(level, f32));
      auto [x0, y0] = split(coords.load({program_id(0) * c.B, 0}, {c.B, 2}));
      auto k = arange(0, n).row();
      auto x = x0.col() * scale + cast(k / side - c.R, f32), y = y0.col() * scale + cast(k % side - c.R, f32);
      auto fx = floor(x), fy = floor(y);
      auto base = volume + load(starts + level) + cast(pixel.col(), i64) * (h * w);
      auto value = [&](int dx, int dy) {
        auto ix = cast(fx, i32) + dx, iy = cast(fy, i32) + dy;
        auto in = (ix >= 0) & (ix < w) & (iy >= 0) & (iy < h) & (pixel.col() < coords.dim(0));
        return cast(load(base + iy * w + ix, {.mask = in}), f32);
      };
      auto wx = x - fx, wy = y - fy;
      auto v =
          (value(0, 0) * (1 - wx) + value(1, 0) * wx) * (1 - wy) + (value(0, 1) * (1 - wx) + value(1, 1) * wx) * wy;
      out.store({program_id(0) * c.B, level * n}, cast(v, f16));
    }).grid([](const LookupCfg& c, auto, auto, const auto& coords, const auto&, int, int, int levels) {
      return Grid{cdiv(coords.shape[0], c.B), int64_t(levels)};
    });
Register r9("volume_lookup", [](Env& e) {
  LookupCfg c;
  if (!e.big) c = {4, 2, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 48 : 8, W = e.big ? 64 : 12, levels = e.big ? 4 : 2, P = H * W, side = 2 * c.R + 1;
  std::vector<int64_t> first{0};
  for (int l = 0; l < levels; ++l) first.push_back(first.back() + int64_t(P) * (H >> l) * (W >> l));
  auto volume = random<half>(e, first.back());
  auto starts = filled<int64_t>(e, levels, [&](size_t i) { return first[i]; });
  auto coords =
      drawn<float>(e, 2 * P, [&, i = 0]() mutable { return float((i++ % 2 ? H : W) * (1.2 * e.uniform() - .1)); });
  auto out = constant<half>(e, size_t(P) * levels * side * side, NAN);
  Job j;
  j.mbytes = 2e-6 * out.n;
  j.add(volume_lookup, c, volume.p, starts.p, coords.view(P, 2), out.view(P, levels * side * side), H, W, levels);
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int p = 0; p < P; ++p)
      for (int l = 0; l < levels; ++l)
        for (int i = 0; i < side * side; ++i) {
          const double x = coords[2 * p] / (1 << l) + i / side - c.R, y = coords[2 * p + 1] / (1 << l) + i % side - c.R;
          const int fx = int(std::floor(x)), fy = int(std::floor(y));
          double v = 0;
          for (int q = 0; q < 4; ++q) {
            const int ix = fx + q % 2, iy = fy + q / 2;
            if (ix < 0 || ix >= W >> l || iy < 0 || iy >= H >> l) continue;
            v += volume[first[l] + (size_t(p) * (H >> l) + iy) * (W >> l) + ix] * (q % 2 ? x - fx : 1 - x + fx) *
                 (q / 2 ? y - fy : 1 - y + fy);
          }
          want[(size_t(p) * levels + l) * side * side + i] = v;
        }
    return agree(out.now(), want, 2e-3, 2e-3);
  };
  return j;
});

}  // namespace layers
}  // namespace users
