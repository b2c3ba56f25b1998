// kept_keys.cpp - caches that keep fewer keys, or smaller ones: votes of the last queries for what stays, a cache
// compacted in place with its keys turned to their new places, attention to keys of low rank, blocks chosen by scores
// of compressed ones.
#include "tests/users/use.h"
namespace users {
namespace kept_keys {

constexpr float kLog2e = 1.4426950408889634f;

// --- how much the last W queries of all heads of a group look at each earlier key, and the largest of 7 neighbours
struct VotesCfg {
  int BN = 128, W = 32, G = 4, D = 128, warps = 4;
};
auto snap_votes =
    kernel("user_snap_votes", [](const VotesCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                                 Tensor<const float, 3> lse, Ptr<float> votes, I32 n, F32 scale) {
      // Q [B, HQ, W, D], K [B, HK, S, D], lse [B, HQ, W] in base 2, votes [B, HK, n]
      num_warps(c.warps);
      auto s = program_id(0) * c.BN, h = program_id(1), b = program_id(2);
      auto k = reshape(K.load({b, h, s, 0}, {1, 1, c.BN, c.D}), {c.BN, c.D});
      Tile acc = zeros({c.BN, 1}, f32);
      for (auto g : range(0, c.G)) {
        auto q = reshape(Q.load({b, h * c.G + g, 0, 0}, {1, 1, c.W, c.D}), {c.W, c.D});
        auto l = lse.load({b, h * c.G + g, 0}, {c.W});
        acc += sum(exp2(dot(k, trans(q)) * (scale * kLog2e) - l.row()), axis(1));
      }
      auto i = s + arange(0, c.BN);
      store(votes + (b * num_programs(1) + h) * n + i, squeeze(acc, 1), {.mask = i < n});
    }).grid([](const VotesCfg& c, const auto& q, const auto& k, const auto&, auto, int n, float) {
      return Grid{cdiv(n, c.BN), k.shape[1], k.shape[0]};
    });
auto snap_pool = kernel("user_snap_pool", [](const VotesCfg& c, Ptr<const float> votes, Ptr<float> pooled, I32 n) {
  auto row = program_id(1) * n, i = program_id(0) * 1024 + arange(0, 1024);
  Tile best = full({1024}, -INFINITY, f32);
  for (int o = -3; o <= 3; ++o) {
    auto at = i + o;
    best = max(best, load(votes + row + at, {.mask = (at >= 0) & (at < n), .other = -INFINITY}));
  }
  store(pooled + row + i, best, {.mask = i < n});
});
Register r1("snap_votes", [](Env& e) {
  VotesCfg c;
  if (!e.big) c = {32, 8, 2, 32, 2};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 4 : 2, HK = e.big ? 8 : 2, S = e.big ? 32768 : 91, n = S - c.W, HQ = HK * c.G;
  auto q = random<bfloat16>(e, size_t(B) * HQ * c.W * c.D), k = random<bfloat16>(e, size_t(B) * HK * S * c.D);
  auto lse = random<float>(e, size_t(B) * HQ * c.W, 3, 6);
  auto votes = constant<float>(e, size_t(B) * HK * n, NAN), pooled = constant<float>(e, votes.n, NAN);
  const float scale = 1 / std::sqrt(float(c.D));
  Job j;
  j.gflop = 2e-9 * B * HQ * double(n) * c.W * c.D;
  j.add(snap_votes, c, q.view(B, HQ, c.W, c.D), k.view(B, HK, S, c.D), lse.view(B, HQ, c.W), votes.p, n, scale);
  j.add(snap_pool.grid([=](const VotesCfg&, auto...) { return Grid{cdiv(n, 1024), B * HK}; }), c, votes.p, pooled.p, n);
  j.check = [=] {
    std::vector<double> v(votes.n), want(votes.n);
    for (int bh = 0; bh < B * HK; ++bh) {
      for (int s = 0; s < n; ++s)
        for (int g = 0; g < c.G; ++g)
          for (int w = 0; w < c.W; ++w) {
            const size_t row = (size_t(bh) * c.G + g) * c.W + w;
            double sum = 0;
            for (int d = 0; d < c.D; ++d) sum += q[row * c.D + d] * k[(size_t(bh) * S + s) * c.D + d];
            v[size_t(bh) * n + s] += std::exp2(sum * scale * kLog2e - lse[row]);
          }
      for (int s = 0; s < n; ++s)
        want[size_t(bh) * n + s] =
            *std::max_element(&v[size_t(bh) * n + std::max(0, s - 3)], &v[size_t(bh) * n] + std::min(n, s + 4));
    }
    return agree(pooled.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- rows that stay move to the front of the cache, one head a program; keys turn from their old place to the new one.
// Rows come from behind where they go to: a block is read before it is written
struct CompactCfg {
  int BN = 64, D = 128, stages = 2, warps = 4;
};
auto kv_compact = kernel("user_kv_compact", [](const CompactCfg& c, Ptr<bfloat16> K, Ptr<bfloat16> V,
                                               Ptr<const int32_t> keep, Ptr<const float> frequency, I32 kept, I32 S) {
  num_warps(c.warps);
  auto h = program_id(0);
  auto d = arange(0, c.D / 2), all = arange(0, c.D);
  auto f = load(frequency + d);
  auto k0 = K + cast(h, i64) * S * c.D, v0 = V + cast(h, i64) * S * c.D;
  for (auto n : range(0, kept, c.BN, {.stages = c.stages})) {
    auto to = n + arange(0, c.BN);
    auto from = load(keep + h * kept + to, {.mask = to < kept, .other = 0});
    auto here = (to < kept).col();
    auto a = cast(load(k0 + (from.col() * c.D + d.row()), {.mask = here}), f32);
    auto b = cast(load(k0 + (from.col() * c.D + d.row()) + c.D / 2, {.mask = here}), f32);
    auto v = load(v0 + (from.col() * c.D + all.row()), {.mask = here});
    auto angle = cast(to - from, f32).col() * f.row();
    auto co = cos(angle), si = sin(angle);
    store(k0 + (to.col() * c.D + d.row()), cast(a * co - b * si, bf16), {.mask = here});
    store(k0 + (to.col() * c.D + d.row()) + c.D / 2, cast(b * co + a * si, bf16), {.mask = here});
    store(v0 + (to.col() * c.D + all.row()), v, {.mask = here});
  }
});
Register r2("kv_compact", [](Env& e) {
  CompactCfg c;
  if (!e.big) c = {16, 32, 2, 2};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int H = e.big ? 512 : 3, S = e.big ? 4096 : 150, kept = e.big ? 2048 : 85;
  auto k = random<bfloat16>(e, size_t(H) * S * c.D), v = random<bfloat16>(e, size_t(H) * S * c.D);
  std::vector<int32_t> rows;
  for (int h = 0; h < H && (e.device || !h); ++h)  // kept of S, in ascending order; the first head keeps its first rows
    for (int s = 0, left = kept; s < S && left; ++s)
      if (!h || e.uniform() * (S - s) < left) rows.push_back(s), --left;
  auto keep = repeated(e, size_t(H) * kept, rows);
  auto f = filled<float>(e, c.D / 2, [&](size_t i) { return float(std::pow(1e4, -2. * i / c.D)); });
  Job j;
  j.inTurn = true;
  restore(e, j, k, v);
  j.mbytes = 8e-6 * H * kept * c.D;
  j.add(kv_compact.grid([H](const CompactCfg&, auto...) { return Grid{H}; }), c, k.p, v.p, keep.p, f.p, kept, S);
  j.check = [=] {
    std::vector<double> wk, wv;
    for (size_t i = 0; i < k.n; ++i) wk.push_back(k[i]), wv.push_back(v[i]);
    for (int h = 0; h < H; ++h)
      for (int n = 0; n < kept; ++n)
        for (int d = 0; d < c.D; ++d) {
          const int half = c.D / 2, from = rows[h * kept + n];
          const size_t at = (size_t(h) * S + from) * c.D, to = (size_t(h) * S + n) * c.D + d;
          const double angle = double(n - from) * f[d % half], a = k[at + d % half], b = k[at + half + d % half];
          wk[to] = d < half ? a * std::cos(angle) - b * std::sin(angle) : b * std::cos(angle) + a * std::sin(angle);
          wv[to] = v[at + d];
        }
    auto wrong = agree(k.now(), wk, 1e-2, 1e-2);
    return wrong.empty() ? agree(v.now(), wv, 0, 1e-9) : "v: " + wrong;
  };
  return j;
});

// --- one step of decoding over keys of low rank: they are made and rotated block by block, values stay of low rank
struct PaluCfg {
  int BT = 64, R = 128, D = 128, G = 4, stages = 2, warps = 4;
};
auto palu_decode =
    kernel("user_palu_decode", [](const PaluCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 4> KL,
                                  Tensor<const bfloat16, 4> VL, Tensor<const bfloat16, 3> U, Tensor<const float, 2> co,
                                  Tensor<const float, 2> si, Ptr<const int32_t> lengths, Tensor<bfloat16, 3> O,
                                  F32 scale) {
      // Q [B, HQ, D], KL, VL [B, HK, T, R], U [HK, R, D], co, si [T, D / 2], O [B, HQ, R]
      num_warps(c.warps);
      auto h = program_id(0), b = program_id(1);
      const int half = c.D / 2;
      auto q1 = reshape(Q.load({b, h * c.G, 0}, {1, c.G, half}), {c.G, half});
      auto q2 = reshape(Q.load({b, h * c.G, half}, {1, c.G, half}), {c.G, half});
      auto u1 = reshape(U.load({h, 0, 0}, {1, c.R, half}), {c.R, half});
      auto u2 = reshape(U.load({h, 0, half}, {1, c.R, half}), {c.R, half});
      auto n = load(lengths + b);
      Tile top = full({c.G, 1}, -INFINITY, f32), total = zeros({c.G, 1}, f32), acc = zeros({c.G, c.R}, f32);
      for (auto t : range(0, n, c.BT, {.stages = c.stages})) {
        auto kl = reshape(KL.load({b, h, t, 0}, {1, 1, c.BT, c.R}), {c.BT, c.R});
        auto k1 = dot(kl, u1), k2 = dot(kl, u2);
        auto cs = co.load({t, 0}, {c.BT, half}), sn = si.load({t, 0}, {c.BT, half});
        auto r1 = cast(k1 * cs - k2 * sn, bf16), r2 = cast(k2 * cs + k1 * sn, bf16);
        auto s = (dot(q1, trans(r1)) + dot(q2, trans(r2))) * (scale * kLog2e);
        s = where((t + arange(0, c.BT) < n).row(), s, -INFINITY);
        auto now = max(top, max(s, axis(1)));
        auto p = exp2(s - now), shrink = exp2(top - now);
        total = total * shrink + sum(p, axis(1));
        auto vl = reshape(VL.load({b, h, t, 0}, {1, 1, c.BT, c.R}), {c.BT, c.R});
        acc = dot(cast(p, bf16), vl, acc * shrink);
        top = now;
      }
      O.store({b, h * c.G, 0}, cast(acc / total, bf16));
    }).grid([](const PaluCfg&, const auto& q, const auto& k, const auto&...) {
      return Grid{k.shape[1], q.shape[0]};
    });
Register r3("palu_decode", [](Env& e) {
  PaluCfg c;
  if (!e.big) c = {32, 16, 32, 2, 2, 2};
  c.BT = e.field("BT", c.BT), c.warps = e.field("warps", c.warps), c.stages = e.field("stages", c.stages);
  const int B = e.big ? 64 : 3, HK = e.big ? 8 : 2, T = e.big ? 8192 : 77, HQ = HK * c.G, half = c.D / 2;
  auto q = random<bfloat16>(e, size_t(B) * HQ * c.D), kl = random<bfloat16>(e, size_t(B) * HK * T * c.R),
       vl = random<bfloat16>(e, kl.n), u = random<bfloat16>(e, size_t(HK) * c.R * c.D, -.3, .3);
  auto turn = [&](bool sine) {
    return filled<float>(e, size_t(T) * half, [&](size_t i) {
      const double angle = double(i / half) * std::pow(1e4, -2. * (i % half) / c.D);
      return float(sine ? std::sin(angle) : std::cos(angle));
    });
  };
  auto co = turn(false), si = turn(true);
  auto n = filled<int32_t>(e, B, [&](size_t i) { return e.big ? T : T - 23 * int(i % 4); });
  auto o = constant<bfloat16>(e, size_t(B) * HQ * c.R, NAN);
  const float scale = 1 / std::sqrt(float(c.D));
  Job j;
  j.mbytes = 4e-6 * kl.n;
  j.gflop = 2e-9 * B * HK * double(T) * (double(c.R) * c.D + c.G * (c.D + c.R));
  j.add(palu_decode, c, q.view(B, HQ, c.D), kl.view(B, HK, T, c.R), vl.view(B, HK, T, c.R), u.view(HK, c.R, c.D),
        co.view(T, half), si.view(T, half), n.p, o.view(B, HQ, c.R), scale);
  j.check = [=] {
    std::vector<double> want(o.n);
    for (int b = 0; b < B; ++b)
      for (int hq = 0; hq < HQ; ++hq) {
        const size_t head = size_t(b) * HK + hq / c.G, row = size_t(b) * HQ + hq;
        double total = 0;
        for (int t = 0; t < n.at(b); ++t) {
          double s = 0;
          for (int i = 0; i < half; ++i) {
            double a = 0, z = 0;
            for (int r = 0; r < c.R; ++r) {
              const double l = kl[(head * T + t) * c.R + r];
              const size_t at = (size_t(hq / c.G) * c.R + r) * c.D;
              a += l * u[at + i], z += l * u[at + half + i];
            }
            const double x = co[t * half + i], y = si[t * half + i];
            s += q[row * c.D + i] * (a * x - z * y) + q[row * c.D + half + i] * (z * x + a * y);
          }
          const double p = std::exp(s * scale);
          total += p;
          for (int r = 0; r < c.R; ++r) want[row * c.R + r] += p * vl[(head * T + t) * c.R + r];
        }
        for (int r = 0; r < c.R; ++r) want[row * c.R + r] /= total;
      }
    return agree(o.now(), want, 2e-2, 2e-2);
  };
  return j;
});

// --- native sparse attention: probabilities of compressed blocks (32 keys, one every 16) summed over the blocks of 64
// that they overlap and over the heads of a group; the best 16, the first and the last two always among them
struct NsaCfg {
  int NB = 128, G = 16, D = 128, top = 16, warps = 4;
};
auto nsa_pick =
    kernel("user_nsa_pick", [](const NsaCfg& c, Ptr<const bfloat16> q, Ptr<const bfloat16> k, Ptr<const float> lse,
                               Ptr<int32_t> picked, Ptr<float> scores, I32 NC, F32 scale) {
      // q [T, HK G, D], k [HK, NC, D], lse [T, HK G] in base 2, picked, scores [T, HK, top]
      num_warps(c.warps);
      auto t = program_id(0), h = program_id(1);
      auto g = (t * num_programs(1) + h) * c.G + arange(0, c.G);
      auto d = arange(0, c.D), j = arange(0, c.NB);
      auto bq = load(q + (g.col() * c.D + d.row()));
      auto l = load(lse + g).col();
      Tile score = zeros({1, c.NB}, f32);
      for (int o = 0; o < 5; ++o) {  // block j overlaps the compressed ones 4 j - 1 .. 4 j + 3, the inner ones twice
        auto at = 4 * j + 3 - o;
        auto seen = (at >= 0) & (at < NC) & (at * 16 + 31 <= t);
        auto bk = load(k + h * NC * c.D + (at.col() * c.D + d.row()), {.mask = seen.col()});
        auto p = where(seen.row(), exp2(dot(bq, trans(bk)) * (scale * kLog2e) - l), 0.f);
        score += sum(p, axis(0)) * (o == 0 || o == 4 ? 1.f : 2.f);
      }
      auto here = t / 64;
      auto s = squeeze(score, 0);
      s = where((j == 0) | (j == here) | (j == here - 1), INFINITY, s);
      s = where(j > here, -1.f, s);
      auto [best, block] = topk(s, c.top, axis(0));
      auto to = (t * num_programs(1) + h) * c.top + arange(0, c.top);
      store(picked + to, where(best >= 0.f, block, -1));
      store(scores + to, best);
    });
Register r4("nsa_pick", [](Env& e) {
  NsaCfg c;
  if (!e.big) c = {16, 4, 32, 4, 2};
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 330, HK = e.big ? 4 : 1, NC = (T - 32) / 16 + 1, step = e.big ? 1 : 13;
  const int rows = T / step;  // the small problem launches all, and is looked at every 13 tokens
  auto q = random<bfloat16>(e, size_t(T) * HK * c.G * c.D), k = random<bfloat16>(e, size_t(HK) * NC * c.D);
  auto lse = random<float>(e, size_t(T) * HK * c.G, 2, 4);
  auto picked = constant<int32_t>(e, size_t(T) * HK * c.top, -9);
  auto scores = constant<float>(e, picked.n, NAN);
  const float scale = 1 / std::sqrt(float(c.D));
  Job j;
  j.gflop = 10e-9 * T * HK * c.G * double(c.NB) * c.D;
  j.add(nsa_pick.grid([=](const NsaCfg&, auto...) {
    return Grid{T, HK};
  }),
        c, q.p, k.p, lse.p, picked.p, scores.p, NC, scale);
  j.check = [=]() -> std::string {
    const auto got = picked.now();
    const auto values = scores.now();
    for (int i = 0; i < rows; ++i) {
      const int t = i * step, last = t / 64;
      for (int h = 0; h < HK; ++h) {
        std::vector<double> s(last + 1);
        for (int at = 0; at < NC && at * 16 + 31 <= t; ++at)
          for (int g = 0; g < c.G; ++g) {
            const size_t row = (size_t(t) * HK + h) * c.G + g;
            double x = 0;
            for (int d = 0; d < c.D; ++d) x += q[row * c.D + d] * k[(size_t(h) * NC + at) * c.D + d];
            x = std::exp2(x * scale * kLog2e - lse[row]);
            for (int key = at * 16; key < at * 16 + 32; key += 16)  // halves of 16 keys, each in one block
              if (key / 64 <= last) s[key / 64] += x;
          }
        s[0] = s[last] = INFINITY;
        if (last) s[last - 1] = INFINITY;
        auto order = s;
        std::sort(order.begin(), order.end(), std::greater<>());
        std::vector<bool> used(last + 1);
        for (int n = 0; n < c.top; ++n) {
          const size_t at = (size_t(t) * HK + h) * c.top + n;
          const std::string where = "pick " + std::to_string(n) + " of token " + std::to_string(t);
          if (n > last) {
            if (got[at] != -1) return where + ": there is no block";
            continue;
          }
          if (got[at] < 0 || got[at] > last || used[got[at]]) return where + ": no new block";
          used[got[at]] = true;
          const double mine = s[got[at]], best = order[n];
          if (std::isinf(best) ? !std::isinf(mine) : std::abs(mine - best) > 1e-3 * best + 1e-4)
            return where + ": not the best";
          if (!std::isinf(mine) && std::abs(values[at] - mine) > 1e-3 * mine + 1e-4) return where + ": score";
        }
      }
    }
    return "";
  };
  return j;
});

}  // namespace kept_keys
}  // namespace users
