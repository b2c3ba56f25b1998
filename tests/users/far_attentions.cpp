// far_attentions.cpp - attention by other ways: gradients of packed sequences with groups of heads, positions and
// contents that ask for each other, rows sorted by bucket, features of exponentials, gradients of keys that queries
// chose.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace far_attentions {

constexpr float kLog2e = 1.4426950408889634f;

// --- gradients of keys and values of packed sequences, causal, several query heads to a key head: two loops, the heads
// of the group outside
struct PackedCfg {
  int BM = 32, BN = 128, D = 128, G = 4, stages = 2, warps = 8;
};
auto packed_dkdv =
    kernel("user_packed_dkdv", [](const PackedCfg& c, Ptr<const bfloat16> Q, Ptr<const bfloat16> K,
                                  Ptr<const bfloat16> V, Ptr<const bfloat16> dO, Ptr<const float> lse,
                                  Ptr<const float> delta, Ptr<const int32_t> start, Ptr<bfloat16> dK, Ptr<bfloat16> dV,
                                  I32 tokens, I32 heads, F32 scale) {
      // Q, dO [T, heads, D], K, V [T, heads / G, D]; lse (base 2), delta [heads, T]; sequence s: start[s] .. start[s +
      // 1]
      num_warps(c.warps);
      auto kh = program_id(1), s = program_id(2);
      auto first = load(start + s), length = load(start + s + 1) - first;
      auto n = program_id(0) * c.BN;
      return_if(n >= length);
      auto groups = heads / c.G;
      auto rows = [&]<class T>(Ptr<T> p, const Tile& h, const Tile& of) {
        return make_view<T>(p + (cast(first, i64) * cast(of, i64) + cast(h, i64)) * c.D, {length, c.D}, {of * c.D, 1});
      };
      auto k = rows(K, kh, groups).load({n, 0}, {c.BN, c.D}), v = rows(V, kh, groups).load({n, 0}, {c.BN, c.D});
      auto at = (n + arange(0, c.BN)).col();
      Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
      for (auto g : range(c.G)) {
        auto h = kh * c.G + g;
        auto q = rows(Q, h, heads), o = rows(dO, h, heads);
        auto sums = make_view<const float>(lse + h * tokens + first, {length}, {1});
        auto deltas = make_view<const float>(delta + h * tokens + first, {length}, {1});
        for (auto m : range(n / c.BM * c.BM, length, c.BM, {.stages = c.stages})) {
          auto qt = q.load({m, 0}, {c.BM, c.D}), gt = o.load({m, 0}, {c.BM, c.D});
          auto l = sums.load({m}, {c.BM}).row(), de = deltas.load({m}, {c.BM}).row();
          auto x = dot(k, trans(qt)) * (scale * kLog2e);
          auto p = where((m + arange(0, c.BM)).row() >= at, exp2(x - l), 0.f);
          dv = dot(cast(p, bf16), gt, dv);
          auto ds = p * (dot(v, trans(gt)) - de);
          dk = dot(cast(ds, bf16), qt, dk);
        }
      }
      rows(dK, kh, groups).store({n, 0}, cast(dk * scale, bf16));
      rows(dV, kh, groups).store({n, 0}, cast(dv, bf16));
    }).grid([](const PackedCfg& c, auto...) { return Grid{1}; });
Register r1("packed_bwd", [](Env& e) {
  PackedCfg c;
  if (!e.big) c = {32, 32, 32, 2, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages);
  std::vector<int32_t> start{0};
  const int N = e.big ? 16 : 3, KH = e.big ? 8 : 2, H = KH * c.G, D = c.D;
  for (int i = 0; i < N; ++i) start.push_back(start.back() + (e.big ? 512 + (i * 977) % 3072 : 17 + 31 * i));
  const int T = start.back();
  int longest = 0;
  for (int i = 0; i < N; ++i) longest = std::max(longest, start[i + 1] - start[i]);
  auto q = random<bfloat16>(e, size_t(T) * H * D), g = random<bfloat16>(e, q.n);
  auto k = random<bfloat16>(e, size_t(T) * KH * D), v = random<bfloat16>(e, k.n);
  const float scale = 1 / std::sqrt(float(D));
  std::vector<double> l(size_t(H) * T), de(l.size()), wk(k.n), wv(k.n);
  if (!e.big)
    for (int s = 0; s < N; ++s)
      for (int h = 0; h < H; ++h)
        for (int i = start[s]; i < start[s + 1]; ++i) {
          std::vector<double> p, dp;
          double sum = 0, all = 0;
          for (int j = start[s]; j <= i; ++j) {
            double x = 0, y = 0;
            for (int d = 0; d < D; ++d) {
              const size_t b = (size_t(j) * KH + h / c.G) * D + d, a = (size_t(i) * H + h) * D + d;
              x += q[a] * k[b], y += g[a] * v[b];
            }
            p.push_back(std::exp(x * scale)), dp.push_back(y), sum += p.back();
          }
          for (size_t j = 0; j < p.size(); ++j) p[j] /= sum, all += p[j] * dp[j];
          l[size_t(h) * T + i] = std::log2(sum), de[size_t(h) * T + i] = all;
          for (size_t j = 0; j < p.size(); ++j)
            for (int d = 0; d < D; ++d) {
              const size_t b = (size_t(start[s] + j) * KH + h / c.G) * D + d, a = (size_t(i) * H + h) * D + d;
              wv[b] += p[j] * g[a], wk[b] += p[j] * (dp[j] - all) * scale * q[a];
            }
        }
  auto lse = filled<float>(e, l.size(), [&](size_t i) { return e.big ? 10.f : float(l[i]); });
  auto delta = filled<float>(e, l.size(), [&](size_t i) { return float(de[i]); });
  auto starts = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto dk = constant<bfloat16>(e, k.n, NAN), dv = constant<bfloat16>(e, k.n, NAN);
  Job j;
  for (int i = 0; i < N; ++i) j.gflop += 4e-9 * std::pow(start[i + 1] - start[i], 2) * H * D;
  auto sized = packed_dkdv;
  j.add(sized.grid([=](const PackedCfg& c, auto...) {
    return Grid{cdiv(longest, c.BN), KH, N};
  }),
        c, q.p, k.p, v.p, g.p, lse.p, delta.p, starts.p, dk.p, dv.p, T, H, scale);
  j.check = [=] {
    if (auto wrong = agree(dv.now(), wv, 3e-2, 2e-2); !wrong.empty()) return "dV: " + wrong;
    return agree(dk.now(), wk, 3e-2, 2e-2);
  };
  return j;
});

// --- DeBERTa: contents ask contents, contents ask distances, distances ask contents: a tile's distances are
// neighbours, and so are the products with them
struct DistanceCfg {
  int BM = 64, BN = 32, D = 64, span = 256, stages = 2, warps = 4;
};
auto deberta =
    kernel("user_deberta", [](const DistanceCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                              Tensor<const half, 3> V, Tensor<const half, 3> RK, Tensor<const half, 3> RQ,
                              Tensor<half, 3> O, I32 heads, F32 scale) {
      // Q .. O [B H, S, D]; RK, RQ [H, 2 span, D]: keys and queries of distances i - j + span
      num_warps(c.warps);
      auto bh = program_id(1), h = bh % heads, m = program_id(0) * c.BM;
      const int W = c.BM + c.BN;
      auto q = Q.load({bh, m, 0}, {c.BM, c.D});
      auto rk = make_view<const half>(RK.ptr() + cast(h, i64) * RK.stride(0), {2 * c.span, c.D}, {c.D, 1});
      auto rq = make_view<const half>(RQ.ptr() + cast(h, i64) * RQ.stride(0), {2 * c.span, c.D}, {c.D, 1});
      Tile acc = zeros({c.BM, c.D}, f32), most = full({c.BM, 1}, -INFINITY, f32), sum = zeros({c.BM, 1}, f32);
      auto i = arange(0, c.BM).col(), j = arange(0, c.BN).row();
      for (auto n : range(0, K.dim(1), c.BN, {.stages = c.stages})) {
        auto k = K.load({bh, n, 0}, {c.BN, c.D}), v = V.load({bh, n, 0}, {c.BN, c.D});
        // distance of row w of the window: m - n - (BN - 1) + w
        auto window = clamp(m - n - (c.BN - 1) + arange(0, W) + c.span, 0, 2 * c.span - 1);
        auto to = dot(q, trans(rk.gather(window, 0, c.D)));    // [BM, W]
        auto from = dot(k, trans(rq.gather(window, 0, c.D)));  // [BN, W]
        auto place = broadcast_to(i - j + (c.BN - 1), {c.BM, c.BN});
        auto s = dot(q, trans(k)) + take(cast(to, f16), place, 1) + trans(take(cast(from, f16), trans(place), 1));
        s = where(n + j < K.dim(1), s * (scale * kLog2e), -INFINITY);
        auto next = max(most, max(s, axis(1)));
        auto p = exp2(s - next), shrink = exp2(most - next);
        sum = sum * shrink + tile::sum(p, axis(1));
        acc = dot(cast(p, f16), v, acc * shrink);
        most = next;
      }
      O.store({bh, m, 0}, reshape(cast(acc / sum, f16), {1, c.BM, c.D}));
    }).grid([](const DistanceCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
    });
Register r2("deberta", [](Env& e) {
  DistanceCfg c;
  if (!e.big) c = {16, 16, 32, 12, 2, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  c.stages = e.field("stages", c.stages);
  const int B = e.big ? 8 : 2, H = e.big ? 12 : 2, S = e.big ? 2048 : 45, D = c.D;
  const size_t n = size_t(B) * H * S * D;
  auto q = random<half>(e, n), k = random<half>(e, n), v = random<half>(e, n);
  auto rk = random<half>(e, size_t(H) * 2 * c.span * D), rq = random<half>(e, rk.n);
  auto o = constant<half>(e, n, NAN);
  const float scale = 1 / std::sqrt(3.f * D);
  Job j;
  j.gflop = 8e-9 * B * H * double(S) * S * D;
  j.add(deberta, c, q.view(B * H, S, D), k.view(B * H, S, D), v.view(B * H, S, D), rk.view(H, 2 * c.span, D),
        rq.view(H, 2 * c.span, D), o.view(B * H, S, D), H, scale);
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B * H; ++b)
      for (int i = 0; i < S; ++i) {
        std::vector<double> p(S);
        double sum = 0;
        for (int t = 0; t < S; ++t) {
          const int w = std::clamp(i - t + c.span, 0, 2 * c.span - 1);
          double s = 0;
          for (int d = 0; d < D; ++d) {
            const double x = q[(size_t(b) * S + i) * D + d], y = k[(size_t(b) * S + t) * D + d];
            s += x * y + x * rk[(size_t(b % H) * 2 * c.span + w) * D + d] +
                 y * rq[(size_t(b % H) * 2 * c.span + w) * D + d];
          }
          sum += p[t] = std::exp(s * scale);
        }
        for (int t = 0; t < S; ++t)
          for (int d = 0; d < D; ++d) want[(size_t(b) * S + i) * D + d] += p[t] / sum * v[(size_t(b) * S + t) * D + d];
      }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- Reformer: queries are keys; rows sorted by bucket, a chunk sees itself and the one before it, of its own bucket,
// nobody later, itself only where there is no one else; results and log sums go back to where rows came from
struct BucketCfg {
  int C = 64, D = 64, warps = 4;
};
auto buckets = kernel("user_buckets", [](const BucketCfg& c, Tensor<const half, 3> QK, Tensor<const half, 3> V,
                                         Ptr<const int32_t> sorted, Ptr<const int32_t> bucket, Tensor<half, 3> O,
                                         Ptr<float> lse, I32 S, F32 scale) {
                 // QK, V, O [B H, S, D]; sorted, bucket, lse [B H, S]: bucket is that of sorted rows
                 num_warps(c.warps);
                 auto chunk = program_id(0), bh = program_id(1);
                 auto base = cast(bh, i64) * cast(S, i64);
                 auto rows_of = [&]<class T>(const Tensor<T, 3>& x) {
                   return make_view<T>(x.ptr() + base * c.D, {S, c.D}, {c.D, 1});
                 };
                 auto qk = rows_of(QK), v = rows_of(V);
                 auto o = rows_of(O);
                 auto mine = chunk * c.C + arange(0, c.C);
                 auto rows = load(sorted + base + mine, {.mask = mine < S, .other = -1});
                 auto of = load(bucket + base + mine, {.mask = mine < S, .other = -1});
                 auto q = qk.gather(rows, 0, c.D);
                 Tile acc = zeros({c.C, c.D}, f32), most = full({c.C, 1}, -1e30f, f32), sum = zeros({c.C, 1}, f32);
                 for (int back = 1; back >= 0; --back) {
                   auto theirs = (chunk - back) * c.C + arange(0, c.C);
                   auto in = (theirs >= 0) & (theirs < S);
                   auto from = load(sorted + base + theirs, {.mask = in, .other = -1});
                   auto same = load(bucket + base + theirs, {.mask = in, .other = -2});
                   auto k = cast(qk.gather(from, 0, c.D), f32);
                   k = k * rsqrt(tile::sum(k * k, axis(1)) + 1e-6f);
                   auto s = dot(q, trans(cast(k, f16))) * (scale * kLog2e);
                   s = where(rows.col() == from.row(), -1e5f, s);
                   s = where((of.col() == same.row()) & (from.row() <= rows.col()), s, -INFINITY);
                   auto next = max(most, max(s, axis(1)));
                   auto p = exp2(s - next), shrink = exp2(most - next);
                   sum = sum * shrink + tile::sum(p, axis(1));
                   acc = dot(cast(p, f16), v.gather(from, 0, c.D), acc * shrink);
                   most = next;
                 }
                 o.scatter(rows, 0, cast(acc / sum, f16));
                 store(lse + base + rows, squeeze(most + log2(sum), 1), {.mask = rows >= 0});
               }).grid([](const BucketCfg& c, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.C), q.shape[0]};
});
Register r3("buckets", [](Env& e) {
  BucketCfg c;
  if (!e.big) c = {16, 32, 1};
  c.C = e.field("C", c.C), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 2, S = e.big ? 8192 : 53, D = c.D, each = e.big ? 64 : 9;
  const size_t n = size_t(B) * S * D;
  auto qk = random<half>(e, n), v = random<half>(e, n);
  std::vector<int32_t> sorted(size_t(B) * S), bucket(sorted.size()), of(sorted.size());
  for (int b = 0; b < B; ++b) {
    for (int i = 0; i < S; ++i) of[b * size_t(S) + i] = int(e.uniform() * (S / each)), sorted[b * size_t(S) + i] = i;
    std::stable_sort(sorted.begin() + b * size_t(S), sorted.begin() + (b + 1) * size_t(S),
                     [&](int x, int y) { return of[b * size_t(S) + x] < of[b * size_t(S) + y]; });
    for (int i = 0; i < S; ++i) bucket[b * size_t(S) + i] = of[b * size_t(S) + sorted[b * size_t(S) + i]];
  }
  auto so = filled<int32_t>(e, sorted.size(), [&](size_t i) { return sorted[i]; });
  auto bu = filled<int32_t>(e, sorted.size(), [&](size_t i) { return bucket[i]; });
  auto o = constant<half>(e, n, NAN);
  auto lse = constant<float>(e, sorted.size(), NAN);
  const float scale = 2;
  Job j;
  j.mbytes = 6e-6 * n;
  j.add(buckets, c, qk.view(B, S, D), v.view(B, S, D), so.p, bu.p, o.view(B, S, D), lse.p, S, scale);
  j.check = [=] {
    std::vector<double> want(n), sums(sorted.size());
    for (int b = 0; b < B; ++b)
      for (int at = 0; at < S; ++at) {
        const int i = sorted[b * S + at];
        std::vector<std::pair<double, int>> p;
        for (int t = std::max(at / c.C - 1, 0) * c.C; t < std::min((at / c.C + 1) * c.C, S); ++t) {
          const int r = sorted[b * S + t];
          if (bucket[b * S + t] != bucket[b * S + at] || r > i) continue;
          double s = 0, norm = 1e-6;
          for (int d = 0; d < D; ++d) {
            const double k = qk[(size_t(b) * S + r) * D + d];
            s += qk[(size_t(b) * S + i) * D + d] * k, norm += k * k;
          }
          p.push_back({r == i ? -1e5 : s / std::sqrt(norm) * scale * kLog2e, r});
        }
        double most = -1e30, sum = 0;
        for (auto& x : p) most = std::max(most, x.first);
        for (auto& x : p) sum += x.first = std::exp2(x.first - most);
        sums[b * S + i] = most + std::log2(sum);
        for (auto& x : p)
          for (int d = 0; d < D; ++d)
            want[(size_t(b) * S + i) * D + d] += x.first / sum * v[(size_t(b) * S + x.second) * D + d];
      }
    if (auto wrong = agree(lse.now(), sums, 2e-2, 1e-2); !wrong.empty()) return "sums: " + wrong;
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- positive features of exponentials (FAVOR+): causal linear attention, features made of q and k by a product with
// random directions; sums of values and of features carried from chunk to chunk
struct FeatureCfg {
  int C = 64, D = 64, M = 128, warps = 8;
};
auto favor = kernel("user_favor", [](const FeatureCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                     Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 2> W, Tensor<bfloat16, 3> O) {
               // Q .. O [B H, S, D], W [M, D]
               num_warps(c.warps);
               auto bh = program_id(0);
               auto w = W.load({0, 0}, {c.M, c.D});
               auto features = [&](const Tile& x) {
                 auto f = cast(x, f32);
                 return cast(exp(dot(x, trans(w)) - 0.5f * sum(f * f, axis(1))), bf16);
               };
               auto i = arange(0, c.C);
               Tile S = zeros({c.M, c.D}, f32), z = zeros({1, c.M}, f32);
               for (auto t : range(0, Q.dim(1), c.C, {.stages = 2})) {
                 auto q = features(Q.load({bh, t, 0}, {c.C, c.D})), k = features(K.load({bh, t, 0}, {c.C, c.D}));
                 k = where((t + i).col() < Q.dim(1), k, 0);
                 auto v = V.load({bh, t, 0}, {c.C, c.D});
                 auto a = where(i.col() >= i.row(), dot(q, trans(k)), 0.f);
                 auto over = sum(a, axis(1)) + sum(cast(q, f32) * z, axis(1));
                 auto o = dot(cast(a, bf16), v, dot(q, cast(S, bf16)));
                 O.store({bh, t, 0}, reshape(cast(o / over, bf16), {1, c.C, c.D}));
                 S = dot(trans(k), v, S);
                 z += sum(cast(k, f32), axis(0));
               }
             }).grid([](const FeatureCfg&, const auto& q, const auto&...) { return Grid{q.shape[0]}; });
Register r4("favor", [](Env& e) {
  FeatureCfg c;
  if (!e.big) c = {16, 32, 32, 2};
  c.C = e.field("C", c.C), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 256 : 2, S = e.big ? 4096 : 41, D = c.D, M = c.M;
  const size_t n = size_t(B) * S * D;
  auto q = random<bfloat16>(e, n, -.5, .5), k = random<bfloat16>(e, n, -.5, .5), v = random<bfloat16>(e, n);
  auto w = random<bfloat16>(e, size_t(M) * D);
  auto o = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 2e-9 * B * S * (4. * D * M + double(c.C) * (M + D));
  j.add(favor, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), w.view(M, D), o.view(B, S, D));
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < B; ++b) {
      auto feature = [&](const Array<bfloat16>& x, int i, int m) {
        double s = 0;
        for (int d = 0; d < D; ++d) {
          const double y = x[(size_t(b) * S + i) * D + d];
          s += y * w[m * D + d] - y * y / 2;
        }
        return double(float(bfloat16(float(std::exp(s)))));
      };
      std::vector<double> state(M * D), z(M);
      for (int i = 0; i < S; ++i) {
        double over = 0;
        std::vector<double> out(D);
        for (int m = 0; m < M; ++m) {
          const double f = feature(k, i, m), g = feature(q, i, m);
          z[m] += f, over += g * z[m];
          for (int d = 0; d < D; ++d)
            state[m * D + d] += f * v[(size_t(b) * S + i) * D + d], out[d] += g * state[m * D + d];
        }
        for (int d = 0; d < D; ++d) want[(size_t(b) * S + i) * D + d] = out[d] / over;
      }
    }
    return agree(o.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- gradients of keys that queries chose (native sparse attention): a block of keys and the list of tokens that chose
// it; all heads of a group choose alike, their rows lie side by side
struct ChosenCfg {
  int B = 64, T = 4, G = 16, D = 128, stages = 2, warps = 4;
};
auto chosen_dkdv =
    kernel("user_chosen_dkdv", [](const ChosenCfg& c, Tensor<const bfloat16, 2> Q, Tensor<const bfloat16, 2> dO,
                                  Tensor<const bfloat16, 2> K, Tensor<const bfloat16, 2> V, Ptr<const float> lse,
                                  Ptr<const float> delta, Ptr<const int32_t> start, Ptr<const int32_t> tokens,
                                  Tensor<bfloat16, 2> dK, Tensor<bfloat16, 2> dV, F32 scale) {
      // Q, dO [S G, D], K .. dV [S, D]; lse (base 2), delta [S G]; tokens[start[b] ..]: those that chose block b
      num_warps(c.warps);
      auto b = program_id(0), n = b * c.B;
      auto k = K.load({n, 0}, {c.B, c.D}), v = V.load({n, 0}, {c.B, c.D});
      auto first = load(start + b), end = load(start + b + 1);
      auto at = (n + arange(0, c.B)).col();
      Tile dk = zeros({c.B, c.D}, f32), dv = zeros({c.B, c.D}, f32);
      for (auto i : range(first, end, c.T, {.stages = c.stages})) {
        auto r = arange(0, c.T * c.G), t = i + r / c.G;
        auto in = t < end;
        auto token = load(tokens + t, {.mask = in, .other = -1});
        auto row = where(in, token * c.G + r % c.G, -1);
        auto q = Q.gather(row, 0, c.D), g = dO.gather(row, 0, c.D);
        auto l = load(lse + row, {.mask = in, .other = INFINITY}).row(), de = load(delta + row, {.mask = in}).row();
        auto x = dot(k, trans(q)) * (scale * kLog2e);
        auto p = where(token.row() >= at, exp2(x - l), 0.f);
        dv = dot(cast(p, bf16), g, dv);
        dk = dot(cast(p * (dot(v, trans(g)) - de), bf16), q, dk);
      }
      dK.store({n, 0}, cast(dk * scale, bf16));
      dV.store({n, 0}, cast(dv, bf16));
    }).grid([](const ChosenCfg& c, const auto&, const auto&, const auto& k, const auto&...) {
      return Grid{cdiv(k.shape[0], c.B)};
    });
Register r5("chosen_bwd", [](Env& e) {
  ChosenCfg c;
  if (!e.big) c = {16, 4, 8, 32, 2, 1};
  c.T = e.field("T", c.T), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int S = e.big ? 32768 : 83, D = c.D, G = c.G, blocks = cdiv(S, c.B), chosen = e.big ? 16 : 2;
  std::vector<std::vector<int32_t>> lists(blocks);
  for (int t = 0; t < S; ++t) {
    const int own = t / c.B;
    lists[own].push_back(t);
    std::vector<int> had{own};
    for (int i = 1; i < std::min(chosen, own + 1); ++i) {
      const int b = int(e.uniform() * own);
      if (std::find(had.begin(), had.end(), b) == had.end()) had.push_back(b), lists[b].push_back(t);
    }
  }
  std::vector<int32_t> start{0}, tokens;
  for (auto& l : lists) tokens.insert(tokens.end(), l.begin(), l.end()), start.push_back(int(tokens.size()));
  auto st = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto to = filled<int32_t>(e, tokens.size(), [&](size_t i) { return tokens[i]; });
  auto q = random<bfloat16>(e, size_t(S) * G * D), g = random<bfloat16>(e, q.n);
  auto k = random<bfloat16>(e, size_t(S) * D), v = random<bfloat16>(e, k.n);
  auto lse = random<float>(e, size_t(S) * G, 2, 4), delta = random<float>(e, lse.n);
  auto dk = constant<bfloat16>(e, k.n, NAN), dv = constant<bfloat16>(e, k.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 8e-9 * tokens.size() * G * c.B * D;
  j.add(chosen_dkdv, c, q.view(S * G, D), g.view(S * G, D), k.view(S, D), v.view(S, D), lse.p, delta.p, st.p, to.p,
        dk.view(S, D), dv.view(S, D), scale);
  j.check = [=] {
    std::vector<double> wk(k.n), wv(k.n);
    for (int b = 0; b < blocks; ++b)
      for (int i = start[b]; i < start[b + 1]; ++i)
        for (int r = tokens[i] * G; r < (tokens[i] + 1) * G; ++r)
          for (int n = b * c.B; n < std::min((b + 1) * c.B, S); ++n) {
            if (n > tokens[i]) continue;
            double x = 0, y = 0;
            for (int d = 0; d < D; ++d)
              x += q[size_t(r) * D + d] * k[size_t(n) * D + d], y += g[size_t(r) * D + d] * v[size_t(n) * D + d];
            const double p = std::exp2(x * scale * kLog2e - lse[r]), ds = p * (y - delta[r]) * scale;
            for (int d = 0; d < D; ++d)
              wv[size_t(n) * D + d] += p * g[size_t(r) * D + d], wk[size_t(n) * D + d] += ds * q[size_t(r) * D + d];
          }
    if (auto wrong = agree(dv.now(), wv, 5e-2, 2e-2); !wrong.empty()) return "dV: " + wrong;
    return agree(dk.now(), wk, 5e-2, 2e-2);
  };
  return j;
});

}  // namespace far_attentions
}  // namespace users
