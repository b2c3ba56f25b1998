// latents.cpp - attention as serving and training libraries write it: keys chosen token by token, a cache in the layout
// of another library, gradients of queries added up by atomics.
#include "tests/users/use.h"
namespace users {
namespace latents {

constexpr float kLog2e = 1.4426950408889634f;

// --- sparse latent attention, prefill: every token names the rows of the latent cache that it looks at; all heads of a
// token share them, keys are 512 + 64 numbers, values the first 512
struct SparseLatentCfg {
  int H = 64, DV = 512, DR = 64, BI = 64, stages = 2, warps = 8;
};
auto sparse_latent = kernel("user_sparse_latent", [](const SparseLatentCfg& c, Tensor<const bfloat16, 3> Q,
                                                     Tensor<const bfloat16, 2> KV, Tensor<const int32_t, 2> chosen,
                                                     Tensor<bfloat16, 3> O, Tensor<float, 2> lse, F32 scale) {
                       // Q [T, heads, DV + DR], KV [S, DV + DR], chosen [T, n] (-1: none), O [T, heads, DV], lse [T,
                       // heads]
                       num_warps(c.warps);
                       auto t = program_id(0), h = program_id(1) * c.H;
                       auto q = Q.load({t, h, 0}, {c.H, c.DV}), qr = Q.load({t, h, c.DV}, {c.H, c.DR});
                       Tile acc = zeros({c.H, c.DV}, f32), m = full({c.H, 1}, -1e30f, f32), l = zeros({c.H, 1}, f32);
                       for (auto i : range(0, chosen.dim(1), c.BI, {.stages = c.stages})) {
                         auto rows = chosen.load({t, i}, {c.BI}, {.pad = -1});
                         auto k = KV.gather(rows, 0, c.DV), kr = KV.gather(rows, c.DV, c.DR);
                         auto s = dot(qr, trans(kr), dot(q, trans(k))) * (scale * kLog2e);
                         s = where(rows.row() >= 0, s, -INFINITY);
                         auto m2 = max(m, max(s, axis(1)));
                         auto p = exp2(s - m2), alpha = exp2(m - m2);
                         l = l * alpha + sum(p, axis(1));
                         acc = dot(cast(p, bf16), k, acc * alpha);
                         m = m2;
                       }
                       O.store({t, h, 0}, cast(acc / l, bf16));
                       lse.store({t, h}, squeeze(m + log2(l), 1));
                     }).grid([](const SparseLatentCfg& c, const auto& q, const auto&...) {
  return Grid{q.shape[0], cdiv(q.shape[1], c.H)};
});
Register r1("sparse_latent", [](Env& e) {
  SparseLatentCfg c;
  if (!e.big) c = {16, 64, 16, 16, 2, 4};
  c.H = e.field("H", c.H), c.BI = e.field("BI", c.BI), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 1024 : 7, heads = e.big ? 128 : 32, n = e.big ? 2048 : 40, S = e.big ? 32768 : 50;
  const int D = c.DV + c.DR;
  auto q = random<bfloat16>(e, size_t(T) * heads * D), kv = random<bfloat16>(e, size_t(S) * D);
  auto chosen = integers<int32_t>(e, size_t(T) * n, e.big ? 0 : -5, S);
  auto o = constant<bfloat16>(e, size_t(T) * heads * c.DV, NAN);
  auto lse = constant<float>(e, size_t(T) * heads, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * T * heads * double(n) * (D + c.DV);
  j.add(sparse_latent, c, q.view(T, heads, D), kv.view(S, D), chosen.view(T, n), o.view(T, heads, c.DV),
        lse.view(T, heads), scale);
  j.check = [=]() -> std::string {
    std::vector<double> want(o.n), sums(lse.n);
    for (int r = 0; r < T * heads; ++r) {
      double total = 0;
      for (int i = 0; i < n; ++i) {
        const int row = chosen.h[size_t(r / heads) * n + i];
        if (row < 0) continue;
        double s = 0;
        for (int d = 0; d < D; ++d) s += q[size_t(r) * D + d] * kv[size_t(row) * D + d];
        const double p = std::exp(s * scale);
        total += p;
        for (int d = 0; d < c.DV; ++d) want[size_t(r) * c.DV + d] += p * kv[size_t(row) * D + d];
      }
      for (int d = 0; d < c.DV; ++d) want[size_t(r) * c.DV + d] /= total;
      sums[r] = std::log2(total);
    }
    auto bad = agree(lse.now(), sums, 2e-3, 2e-3);
    return bad.empty() ? agree(o.now(), want, 8e-3, 1e-2) : bad;
  };
  return j;
});

// --- prefill of new tokens behind a cached prefix (vLLM's layout: keys [block, head, D / x, slot, x], values [block,
// head, D, slot]): first the cached keys, without a mask, then the new ones, causal
struct PrefixCfg {
  int BM = 128, BN = 64, D = 128, block = 16, x = 8, stages = 2, warps = 8;
};
auto prefix_prefill =
    kernel("user_prefix_prefill",
           [](const PrefixCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K, Tensor<const half, 3> V,
              Ptr<const half> kc, Ptr<const half> vc, Ptr<const int32_t> table, Ptr<const int32_t> starts,
              Ptr<const int32_t> lengths, Tensor<half, 3> O, F32 scale, I32 most_blocks, I32 /*most_new*/,
              I32 /*sequences*/) {
             // Q, O [tokens, H, D], K, V [tokens, HK, D]; starts [sequences + 1] of new tokens, lengths with the prefix
             num_warps(c.warps);
             auto m0 = program_id(0) * c.BM, h = program_id(1), seq = program_id(2);
             auto HK = K.dim(1), hk = h / (Q.dim(1) / HK);
             auto start = load(starts + seq), n_new = load(starts + seq + 1) - start;
             auto n_cached = load(lengths + seq) - n_new;
             return_if(m0 >= n_new);
             auto rows = m0 + arange(0, c.BM), d = arange(0, c.D), n = arange(0, c.BN);
             auto q = squeeze(Q.load({start + m0, h, 0}, {c.BM, 1, c.D}), 1);
             Tile acc = zeros({c.BM, c.D}, f32), m = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32);
             auto step = [&](Tile s, const Tile& v) {
               auto m2 = max(m, max(s, axis(1)));
               auto p = exp2(s - m2), alpha = exp2(m - m2);
               l = l * alpha + sum(p, axis(1));
               acc = dot(cast(p, f16), v, acc * alpha);
               m = m2;
             };
             for (auto n0 : range(0, n_cached, c.BN, {.stages = c.stages})) {
               auto key = n0 + n;
               auto inside = key < n_cached;
               auto page = cast(load(table + seq * most_blocks + key / c.block, {.mask = inside}), i64),
                    slot = key % c.block;
               auto first = (page * cast(HK, i64) + cast(hk, i64)) * (c.D * c.block);
               auto kt = load(kc + first.row() + (d / c.x).col() * (c.block * c.x) + slot.row() * c.x + (d % c.x).col(),
                              {.mask = inside.row()});                                                    // [D, BN]
               auto v = load(vc + first.col() + d.row() * c.block + slot.col(), {.mask = inside.col()});  // [BN, D]
               step(where(inside.row(), dot(q, kt) * (scale * kLog2e), -INFINITY), v);
             }
             for (auto n0 : range(0, min(n_new, m0 + c.BM), c.BN, {.stages = c.stages})) {
               auto key = n0 + n;
               auto k = squeeze(K.load({start + n0, hk, 0}, {c.BN, 1, c.D}), 1);
               auto v = squeeze(V.load({start + n0, hk, 0}, {c.BN, 1, c.D}), 1);
               step(where(key.row() <= rows.col(), dot(q, trans(k)) * (scale * kLog2e), -INFINITY), v);
             }
             auto y = cast(acc / l, f16);
             auto out = O.ptr() + (cast((start + rows).col(), i64) * O.stride(0) + cast(h * c.D + d, i64).row());
             store(out, y, {.mask = rows.col() < n_new});
           })
        .grid([](const PrefixCfg& c, const auto& q, const auto&, const auto&, auto, auto, auto, auto, auto, const auto&,
                 float, int, int most_new, int sequences) {
          return Grid{cdiv(most_new, c.BM), q.shape[1], sequences};
        });
Register r2("prefix_prefill", [](Env& e) {
  PrefixCfg c;
  if (!e.big) c = {16, 16, 32, 4, 8, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 16 : 3, H = e.big ? 32 : 4, HK = e.big ? 8 : 2, D = c.D, S = c.block;
  std::vector<int32_t> starts{0}, lengths;
  int most = 0, most_new = 0;
  for (int b = 0; b < B; ++b) {
    const int fresh = e.big ? 512 : 13 + 9 * b, cached = e.big ? 4096 : 21 * b;
    starts.push_back(starts.back() + fresh), lengths.push_back(cached + fresh);
    most = std::max(most, (cached + S - 1) / S), most_new = std::max(most_new, fresh);
  }
  const int T = starts.back(), pages = B * most;
  auto q = random<half>(e, size_t(T) * H * D), k = random<half>(e, size_t(T) * HK * D),
       v = random<half>(e, size_t(T) * HK * D), kc = random<half>(e, size_t(pages) * HK * D * S),
       vc = random<half>(e, size_t(pages) * HK * D * S);
  auto table = filled<int32_t>(e, size_t(B) * most, [&](size_t i) { return int((i * 7 + 3) % pages); });
  if (pages % 7 == 0) table = filled<int32_t>(e, size_t(B) * most, [&](size_t i) { return int(pages - 1 - i); });
  auto first = filled<int32_t>(e, starts.size(), [&](size_t i) { return starts[i]; });
  auto all = filled<int32_t>(e, B, [&](size_t i) { return lengths[i]; });
  auto o = constant<half>(e, size_t(T) * H * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  for (int b = 0; b < B; ++b) {
    const double fresh = starts[b + 1] - starts[b], cached = lengths[b] - fresh;
    j.gflop += 4e-9 * H * D * (fresh * cached + fresh * fresh / 2);
  }
  j.add(prefix_prefill, c, q.view(T, H, D), k.view(T, HK, D), v.view(T, HK, D), kc.p, vc.p, table.p, first.p, all.p,
        o.view(T, H, D), scale, most, most_new, B);
  j.check = [=]() -> std::string {
    std::vector<double> want(o.n);
    for (int b = 0; b < B; ++b)
      for (int t = starts[b]; t < starts[b + 1]; ++t)
        for (int h = 0; h < H; ++h) {
          const int cached = lengths[b] - (starts[b + 1] - starts[b]), hk = h / (H / HK);
          double total = 0;
          double* out = &want[(size_t(t) * H + h) * D];
          for (int key = 0; key <= cached + t - starts[b]; ++key) {
            auto element = [&](bool values, int d) {
              if (key >= cached) return (values ? v : k)[(size_t(starts[b] + key - cached) * HK + hk) * D + d];
              const size_t head = (size_t(table.h[b * most + key / S]) * HK + hk) * D * S;
              return values ? vc[head + size_t(d) * S + key % S]
                            : kc[head + size_t(d / c.x) * S * c.x + key % S * c.x + d % c.x];
            };
            double s = 0;
            for (int d = 0; d < D; ++d) s += q[(size_t(t) * H + h) * D + d] * element(false, d);
            const double p = std::exp(s * scale);
            total += p;
            for (int d = 0; d < D; ++d) out[d] += p * element(true, d);
          }
          for (int d = 0; d < D; ++d) out[d] /= total;
        }
    return agree(o.now(), want, 3e-3, 4e-3);
  };
  return j;
});

// --- gradients of attention in one kernel: a program has a block of keys and walks over the queries; dQ is added up in
// f32 by atomics
struct OnePassCfg {
  int BM = 128, BN = 64, D = 128, stages = 2, warps = 8;
};
auto one_pass_bwd =
    kernel("user_one_pass_bwd", [](const OnePassCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 3> dO,
                                   Tensor<const float, 2> lse, Tensor<const float, 2> delta, Tensor<float, 3> dQ,
                                   Tensor<bfloat16, 3> dK, Tensor<bfloat16, 3> dV, F32 scale) {
      // all [B H, S, D]; lse (of base 2) and delta [B H, S]; causal
      num_warps(c.warps);
      auto n0 = program_id(0) * c.BN, b = program_id(1);
      auto keys = n0 + arange(0, c.BN);
      auto k = K.load({b, n0, 0}, {c.BN, c.D}), v = V.load({b, n0, 0}, {c.BN, c.D});
      Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
      for (auto m0 : range(n0 / c.BM * c.BM, Q.dim(1), c.BM, {.stages = c.stages})) {
        auto rows = m0 + arange(0, c.BM);
        auto q = Q.load({b, m0, 0}, {c.BM, c.D}), g = dO.load({b, m0, 0}, {c.BM, c.D});
        auto s = dot(q, trans(k)) * (scale * kLog2e);
        auto p = where(rows.col() >= keys.row(), exp2(s - lse.load({b, m0}, {c.BM}).col()), 0.f);
        dv = dot(trans(cast(p, bf16)), g, dv);
        auto dp = dot(g, trans(v));
        auto ds = cast(p * (dp - delta.load({b, m0}, {c.BM}).col()), bf16);
        dk = dot(trans(ds), q, dk);
        dQ.atomic_add({b, m0, 0}, dot(ds, k) * scale);
      }
      dK.store({b, n0, 0}, cast(dk * scale, bf16));
      dV.store({b, n0, 0}, cast(dv, bf16));
    }).grid([](const OnePassCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[1], c.BN), q.shape[0]};
    });
Register r3("one_pass_bwd", [](Env& e) {
  OnePassCfg c;
  if (!e.big) c = {16, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 64 : 2, S = e.big ? 4096 : 72, D = c.D;
  const size_t n = size_t(B) * S * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n), g = random<bfloat16>(e, n);
  const double scale = 1 / std::sqrt(double(D));
  std::vector<double> lse(e.big ? 0 : B * S), delta(lse.size()), dq(e.big ? 0 : n), dk(dq.size()), dv(dq.size());
  for (size_t r = 0; r < (e.device ? lse.size() : 0); ++r) {
    const size_t b = r / S, row = r % S;
    std::vector<double> p(row + 1), dp(row + 1);
    double total = 0;
    auto inner = [&](const auto& x, const auto& y, size_t key) {
      double s = 0;
      for (int d = 0; d < D; ++d) s += x[r * D + d] * y[(b * S + key) * D + d];
      return s;
    };
    for (size_t i = 0; i <= row; ++i) total += p[i] = std::exp(inner(q, k, i) * scale);
    lse[r] = std::log2(total);
    for (size_t i = 0; i <= row; ++i) dp[i] = inner(g, v, i), delta[r] += (p[i] /= total) * dp[i];
    for (size_t i = 0; i <= row; ++i)
      for (int d = 0; d < D; ++d) {
        const size_t at = (b * S + i) * D + d;
        const double ds = p[i] * (dp[i] - delta[r]) * scale;
        dv[at] += p[i] * g[r * D + d], dk[at] += ds * q[r * D + d], dq[r * D + d] += ds * k[at];
      }
  }
  auto l = filled<float>(e, size_t(B) * S, [&](size_t i) { return e.big ? 12.f : float(lse[i]); });
  auto de = filled<float>(e, size_t(B) * S, [&](size_t i) { return e.big ? 0.f : float(delta[i]); });
  auto gq = constant<float>(e, n, 0);
  auto gk = constant<bfloat16>(e, n, NAN), gv = constant<bfloat16>(e, n, NAN);
  Job j;
  j.gflop = 5e-9 * B * double(S) * S * D;
  j.add(one_pass_bwd, c, q.view(B, S, D), k.view(B, S, D), v.view(B, S, D), g.view(B, S, D), l.view(B, S),
        de.view(B, S), gq.view(B, S, D), gk.view(B, S, D), gv.view(B, S, D), float(scale));
  j.check = [=]() -> std::string {
    for (auto bad : {agree(gq.now(), dq, 2e-2, 2e-2), agree(gk.now(), dk, 2e-2, 2e-2), agree(gv.now(), dv, 2e-2, 2e-2)})
      if (!bad.empty()) return bad;
    return "";
  };
  return j;
});

}  // namespace latents
}  // namespace users
