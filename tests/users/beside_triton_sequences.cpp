// beside_triton_sequences.cpp - attention: varlen_alibi, varlen_alibi_bwd, local_global
#include "tests/users/use.h"
namespace users {
namespace beside_triton_sequences {
constexpr float kLog2e = 1.4426950408889634f;

// --- packed sequences, causal, ALiBi, G query heads to a key head, head size 96; [T, heads, D]
struct AlibiCfg {
  int BM = 128, BN = 64, D = 96, G = 4, stages = 0, warps = 0;
};
auto alibi_fwd =
    kernel("user_varlen_alibi", [](const AlibiCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Ptr<const int> starts, Ptr<const float> slopes,
                                   Tensor<bfloat16, 3> O, Tensor<float, 2> lse, F32 scale) {
      if (c.warps) num_warps(c.warps);
      auto h = program_id(1), s = program_id(2), hk = h / c.G;
      auto begin = load(starts + s), length = load(starts + s + 1) - begin;
      auto m = program_id(0) * c.BM;
      return_if(m >= length);
      auto rows = [&](const auto& X, const Tile& head) {  // the sequence's rows of a head alone
        return make_view<const bfloat16>(X.ptr() + (cast(begin, i64) * X.stride(0) + cast(head, i64) * X.stride(1)),
                                         {length, c.D}, {X.stride(0), 1});
      };
      auto qs = rows(Q, h), ks = rows(K, hk), vs = rows(V, hk);
      auto q = qs.load({m, 0}, {c.BM, c.D});
      auto slope = load(slopes + h) * kLog2e;
      auto row = (m + arange(0, c.BM)).col();
      Tile top = full({c.BM, 1}, -INFINITY, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
      auto step = [&](const Tile& n, bool masked) {
        auto k = ks.load({n, 0}, {c.BN, c.D}), v = vs.load({n, 0}, {c.BN, c.D});
        auto key = (n + arange(0, c.BN)).row();
        auto x = dot(q, trans(k)) * (scale * kLog2e) + slope * cast(key - row, f32);
        if (masked) x = where(key <= row, x, -INFINITY);
        auto next = max(top, max(x, axis(1)));
        auto alpha = exp2(top - next), p = exp2(x - next);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        top = next;
      };
      auto full_until = m / c.BN * c.BN;
      for (auto n : range(0, full_until, c.BN, {.stages = c.stages})) step(n, false);
      for (auto n : range(full_until, min(m + c.BM, length), c.BN, {.stages = c.stages})) step(n, true);
      auto o = make_view<bfloat16>(O.ptr() + (cast(begin, i64) * O.stride(0) + cast(h, i64) * O.stride(1)), {length, c.D},
                                   {O.stride(0), 1});
      o.store({m, 0}, cast(acc / l, bf16));
      auto at = m + arange(0, c.BM);
      store(lse.ptr() + (cast(h, i64) * lse.stride(0) + cast(begin + at, i64)), squeeze(top / kLog2e + log(l), 1),
            {.mask = at < length});
    });

struct AlibiDeltaCfg {
  int BR = 64, D = 96;
};
auto alibi_delta = kernel("user_varlen_alibi_delta", [](const AlibiDeltaCfg& c, Tensor<const bfloat16, 3> O,
                                                        Tensor<const bfloat16, 3> dO, Tensor<float, 2> delta) {
                     auto t = program_id(0) * c.BR, h = program_id(1);
                     auto x = cast(O.load({t, only(h), 0}, {c.BR, c.D}), f32) * cast(dO.load({t, only(h), 0}, {c.BR, c.D}), f32);
                     delta.store({only(h), t}, squeeze(sum(x, axis(1)), 1));
                   }).grid([](const AlibiDeltaCfg& c, const auto& o, const auto&...) {
  return Grid{cdiv(o.shape[0], c.BR), o.shape[1]};
});
auto alibi_dq =
    kernel("user_varlen_alibi_dq",
           [](const AlibiCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
              Tensor<const bfloat16, 3> dO, Ptr<const int> starts, Ptr<const float> slopes, Tensor<const float, 2> lse,
              Tensor<const float, 2> delta, Tensor<bfloat16, 3> dQ, F32 scale) {
             if (c.warps) num_warps(c.warps);
             auto h = program_id(1), s = program_id(2), hk = h / c.G;
             auto begin = load(starts + s), end = load(starts + s + 1);
             auto m = begin + program_id(0) * c.BM;  // counted in packed rows here
             return_if(m >= end);
             auto q = Q.load({m, only(h), 0}, {c.BM, c.D}), g = dO.load({m, only(h), 0}, {c.BM, c.D});
             auto L = lse.load({h, m}, {c.BM}).col() * kLog2e, dl = delta.load({h, m}, {c.BM}).col();
             auto slope = load(slopes + h) * kLog2e;
             auto row = (m + arange(0, c.BM)).col();
             Tile acc = zeros({c.BM, c.D}, f32);
             for (auto n : range(begin, min(m + c.BM, end), c.BN, {.stages = c.stages})) {
               auto k = K.load({n, only(hk), 0}, {c.BN, c.D}), v = V.load({n, only(hk), 0}, {c.BN, c.D});
               auto key = (n + arange(0, c.BN)).row();
               auto x = dot(q, trans(k)) * (scale * kLog2e) + slope * cast(key - row, f32);
               auto p = where(key <= row, exp2(x - L), 0.f);
               auto ds = p * (dot(g, trans(v)) - dl);
               acc = dot(cast(ds, bf16), k, acc);
             }
             auto o = make_view<bfloat16>(dQ.ptr() + cast(h, i64) * dQ.stride(1), {end, c.D}, {dQ.stride(0), 1});
             o.store({m, 0}, cast(acc * scale, bf16));
           });
struct AlibiKvCfg {
  int BM = 64, BN = 128, D = 96, G = 4, stages = 0, warps = 8;
};
auto alibi_dkdv =
    kernel("user_varlen_alibi_dkdv",
           [](const AlibiKvCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
              Tensor<const bfloat16, 3> dO, Ptr<const int> starts, Ptr<const float> slopes, Tensor<const float, 2> lse,
              Tensor<const float, 2> delta, Tensor<bfloat16, 3> dK, Tensor<bfloat16, 3> dV, F32 scale) {
             if (c.warps) num_warps(c.warps);
             auto hk = program_id(1), s = program_id(2);
             auto begin = load(starts + s), end = load(starts + s + 1);
             auto n = begin + program_id(0) * c.BN;
             return_if(n >= end);
             auto k = K.load({n, only(hk), 0}, {c.BN, c.D}), v = V.load({n, only(hk), 0}, {c.BN, c.D});
             auto key = (n + arange(0, c.BN)).row();
             Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
             for (auto j : range(0, c.G)) {
               auto h = hk * c.G + j;
               auto slope = load(slopes + h) * kLog2e;
               for (auto m : range(n, end, c.BM, {.stages = c.stages})) {
                 auto q = Q.load({m, only(h), 0}, {c.BM, c.D}), g = dO.load({m, only(h), 0}, {c.BM, c.D});
                 auto L = lse.load({h, m}, {c.BM}).col() * kLog2e, dl = delta.load({h, m}, {c.BM}).col();
                 auto row = (m + arange(0, c.BM)).col();
                 auto x = dot(q, trans(k)) * (scale * kLog2e) + slope * cast(key - row, f32);
                 auto p = where((key <= row) & (row < end), exp2(x - L), 0.f);
                 dv = dot(trans(cast(p, bf16)), g, dv);
                 auto ds = p * (dot(g, trans(v)) - dl);
                 dk = dot(trans(cast(ds, bf16)), q, dk);
               }
             }
             auto out = [&](const Tensor<bfloat16, 3>& X) {
               return make_view<bfloat16>(X.ptr() + cast(hk, i64) * X.stride(1), {end, c.D}, {X.stride(0), 1});
             };
             out(dK).store({n, 0}, cast(dk * scale, bf16));
             out(dV).store({n, 0}, cast(dv, bf16));
           });
struct Packed {
  int H, G, D, T, most;
  std::vector<int> starts;
};
Packed packed(Env& e) {
  Packed p{e.big ? 32 : 4, e.big ? 4 : 2, e.big ? 96 : 48, 0, 0, {0}};
  const std::vector<int> lengths = e.big ? std::vector<int>{4096, 1000, 2048, 333, 3000, 77, 1536, 2500}
                                         : std::vector<int>{61, 1, 100, 33};
  for (int n : lengths) p.T += n, p.most = std::max(p.most, n), p.starts.push_back(p.T);
  return p;
}
template <class A, class S>
void alibi_scores(const Packed& P, const A& q, const A& k, const S& slopes, std::vector<double>& prob, std::vector<double>& lse,
                  float scale) {  // prob [H, T, most]
  const int H = P.H, HK = H / P.G, D = P.D;
  prob.assign(size_t(H) * P.T * P.most, 0), lse.assign(size_t(H) * P.T, 0);
  for (size_t s = 0; s + 1 < P.starts.size(); ++s)
    for (int h = 0; h < H; ++h)
      for (int i = P.starts[s]; i < P.starts[s + 1]; ++i) {
        double top = -INFINITY, sum = 0;
        double* p = &prob[(size_t(h) * P.T + i) * P.most] - P.starts[s];
        for (int n = P.starts[s]; n <= i; ++n) {
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[(size_t(i) * H + h) * D + d] * k[(size_t(n) * HK + h / P.G) * D + d];
          p[n] = x * scale + slopes[h] * (n - i), top = std::max(top, p[n]);
        }
        for (int n = P.starts[s]; n <= i; ++n) sum += std::exp(p[n] - top);
        lse[size_t(h) * P.T + i] = top + std::log(sum);
        for (int n = P.starts[s]; n <= i; ++n) p[n] = std::exp(p[n] - top) / sum;
      }
}
Register r1("varlen_alibi", [](Env& e) {
  const Packed P = packed(e);
  const int H = P.H, HK = H / P.G, D = P.D, T = P.T, S = int(P.starts.size()) - 1;
  auto q = random<bfloat16>(e, size_t(T) * H * D), k = random<bfloat16>(e, size_t(T) * HK * D),
       v = random<bfloat16>(e, size_t(T) * HK * D);
  auto slopes = filled<float>(e, H, [&](size_t h) { return std::exp2(-8.f * (h + 1) / H); });
  auto starts = repeated<int>(e, P.starts.size(), P.starts);
  auto o = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  auto lse = constant<float>(e, size_t(H) * T, NAN);
  const float scale = 1 / std::sqrt(float(D));
  AlibiCfg c{e.field("BM", e.big ? 128 : 32), e.field("BN", e.big ? 64 : 32), D, P.G, e.field("stages", 0),
             e.field("warps", 0)};
  Job j;
  for (int s = 0; s < S; ++s) j.gflop += 2e-9 * H * D * double(P.starts[s + 1] - P.starts[s]) * (P.starts[s + 1] - P.starts[s]);
  const Grid grid{cdiv(P.most, c.BM), H, S};
  j.add(alibi_fwd.grid([grid](const auto&...) { return grid; }), c, q.view(T, H, D), k.view(T, HK, D), v.view(T, HK, D),
        starts.p, slopes.p, o.view(T, H, D), lse.view(H, T), scale);
  j.check = [=] {
    std::vector<double> p, wl, want(size_t(T) * H * D);
    alibi_scores(P, q, k, slopes, p, wl, scale);
    for (int s = 0; s < S; ++s)
      for (int h = 0; h < H; ++h)
        for (int i = P.starts[s]; i < P.starts[s + 1]; ++i)
          for (int n = P.starts[s]; n <= i; ++n)
            for (int d = 0; d < D; ++d)
              want[(size_t(i) * H + h) * D + d] +=
                  p[(size_t(h) * T + i) * P.most + n - P.starts[s]] * v[(size_t(n) * HK + h / P.G) * D + d];
    auto a = agree(o.now(), want, 1e-2, 1e-2), b = agree(lse.now(), wl, 1e-2, 1e-2);
    return a.empty() ? b : a;
  };
  return j;
});
Register r2("varlen_alibi_bwd", [](Env& e) {
  const Packed P = packed(e);
  const int H = P.H, G = P.G, HK = H / G, D = P.D, T = P.T, S = int(P.starts.size()) - 1;
  auto q = random<bfloat16>(e, size_t(T) * H * D), k = random<bfloat16>(e, size_t(T) * HK * D),
       v = random<bfloat16>(e, size_t(T) * HK * D), g = random<bfloat16>(e, size_t(T) * H * D);
  auto slopes = filled<float>(e, H, [&](size_t h) { return std::exp2(-8.f * (h + 1) / H); });
  auto starts = repeated<int>(e, P.starts.size(), P.starts);
  const float scale = 1 / std::sqrt(float(D));
  std::vector<double> p, L(size_t(H) * T, 8.), out(e.big ? 0 : size_t(T) * H * D);
  if (!e.big && e.device) {
    alibi_scores(P, q, k, slopes, p, L, scale);
    for (int s = 0; s < S; ++s)
      for (int h = 0; h < H; ++h)
        for (int i = P.starts[s]; i < P.starts[s + 1]; ++i)
          for (int n = P.starts[s]; n <= i; ++n)
            for (int d = 0; d < D; ++d)
              out[(size_t(i) * H + h) * D + d] +=
                  p[(size_t(h) * T + i) * P.most + n - P.starts[s]] * v[(size_t(n) * HK + h / G) * D + d];
  }
  auto o = e.big ? random<bfloat16>(e, size_t(T) * H * D)
                 : filled<bfloat16>(e, size_t(T) * H * D, [&](size_t i) { return bfloat16(float(out[i])); });
  auto lse = filled<float>(e, size_t(H) * T, [&](size_t i) { return float(L[i]); });
  auto delta = constant<float>(e, size_t(H) * T, NAN);
  auto dq = constant<bfloat16>(e, size_t(T) * H * D, NAN), dk = constant<bfloat16>(e, size_t(T) * HK * D, NAN),
       dv = constant<bfloat16>(e, size_t(T) * HK * D, NAN);
  AlibiCfg c{e.field("BM", e.big ? 128 : 32), e.field("BN", e.big ? 64 : 32), D, G, e.field("stages", 0), e.field("warps", 8)};
  AlibiKvCfg ck{e.field("KM", 32), e.field("KN", e.big ? 128 : 32), D, G, e.field("kstages", 0), e.field("kwarps", 8)};
  Job j;
  for (int s = 0; s < S; ++s) j.gflop += 7e-9 * H * D * double(P.starts[s + 1] - P.starts[s]) * (P.starts[s + 1] - P.starts[s]);
  const Grid gq{cdiv(P.most, c.BM), H, S}, gk{cdiv(P.most, ck.BN), HK, S};
  j.add(alibi_delta, AlibiDeltaCfg{64, D}, o.view(T, H, D), g.view(T, H, D), delta.view(H, T));
  j.add(alibi_dq.grid([gq](const auto&...) { return gq; }), c, q.view(T, H, D), k.view(T, HK, D), v.view(T, HK, D),
        g.view(T, H, D), starts.p, slopes.p, lse.view(H, T), delta.view(H, T), dq.view(T, H, D), scale);
  j.add(alibi_dkdv.grid([gk](const auto&...) { return gk; }), ck, q.view(T, H, D), k.view(T, HK, D), v.view(T, HK, D),
        g.view(T, H, D), starts.p, slopes.p, lse.view(H, T), delta.view(H, T), dk.view(T, HK, D), dv.view(T, HK, D), scale);
  j.check = [=]() -> std::string {
    std::vector<double> wq(size_t(T) * H * D), wk(size_t(T) * HK * D), wv = wk;
    for (int s = 0; s < S; ++s)
      for (int h = 0; h < H; ++h)
        for (int i = P.starts[s]; i < P.starts[s + 1]; ++i) {
          const size_t a = (size_t(i) * H + h) * D;
          double dl = 0;
          for (int d = 0; d < D; ++d) dl += out[a + d] * g[a + d];
          for (int n = P.starts[s]; n <= i; ++n) {
            const size_t b = (size_t(n) * HK + h / G) * D;
            double dp = 0;
            for (int d = 0; d < D; ++d) dp += g[a + d] * v[b + d];
            const double pr = p[(size_t(h) * T + i) * P.most + n - P.starts[s]], ds = pr * (dp - dl) * scale;
            for (int d = 0; d < D; ++d) wq[a + d] += ds * k[b + d], wk[b + d] += ds * q[a + d], wv[b + d] += pr * g[a + d];
          }
        }
    auto a = agree(dq.now(), wq, 2e-2, 1e-2), b = agree(dk.now(), wk, 2e-2, 1e-2), d = agree(dv.now(), wv, 2e-2, 1e-2);
    return !a.empty() ? "dq " + a : !b.empty() ? "dk " + b : d.empty() ? "" : "dv " + d;
  };
  return j;
});

// --- keys that a query sees: those at most 256 away, the first 64 of all, and those of its own segment; blocks that
// nobody sees are skipped (segments are given by their ranges over blocks of keys: least and largest id)
struct LocalCfg {
  int BM = 128, BN = 64, D = 128, window = 256, global = 64, stages = 0, warps = 0;
};
auto local_global =
    kernel("user_local_global", [](const LocalCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                   Tensor<const bfloat16, 3> V, Tensor<const int, 1> segment, Ptr<const int> least,
                                   Ptr<const int> most, Tensor<bfloat16, 3> O, F32 scale) {  // [H, T, D]
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM, h = program_id(1);
      auto q = Q.load({h, m, 0}, {c.BM, c.D});
      auto T = K.dim(1);
      auto row = (m + arange(0, c.BM)).col();
      auto mine = segment.load({m}, {c.BM}, {.pad = -1});
      auto low = min(where(mine < 0, INT_MAX, mine)), high = max(mine);
      Tile top = full({c.BM, 1}, -1e30f, f32), l = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
      for (auto n : range(0, T, c.BN, {.stages = c.stages})) {
        auto near = (n + c.BN > m - c.window) & (n <= m + c.BM - 1 + c.window);
        auto same = (load(least + n / c.BN) <= high) & (load(most + n / c.BN) >= low);
        continue_if(~(near | (n < c.global) | same));
        auto k = K.load({h, n, 0}, {c.BN, c.D}), v = V.load({h, n, 0}, {c.BN, c.D});
        auto key = (n + arange(0, c.BN)).row();
        auto theirs = segment.load({n}, {c.BN}, {.pad = -2}).row();
        auto seen = (abs(key - row) <= c.window) | (key < c.global) | (theirs == mine.col());
        auto x = where(seen & (key < T), dot(q, trans(k)) * (scale * kLog2e), -INFINITY);
        auto next = max(top, max(x, axis(1)));
        auto alpha = exp2(top - next), p = exp2(x - next);
        l = l * alpha + sum(p, axis(1));
        acc = dot(cast(p, bf16), v, acc * alpha);
        top = next;
      }
      O.store({h, m, 0}, cast(acc / l, bf16));
    }).grid([](const LocalCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM), q.shape[0]}; });
Register r3("local_global", [](Env& e) {
  const int H = e.big ? 32 : 2, T = e.big ? 8192 : 237, D = e.big ? 128 : 64;
  LocalCfg c{e.field("BM", e.big ? 128 : 32), e.field("BN", e.big ? 64 : 16), D, e.big ? 256 : 20, e.big ? 64 : 9,
             e.field("stages", 0), e.field("warps", 0)};
  auto q = random<bfloat16>(e, size_t(H) * T * D), k = random<bfloat16>(e, size_t(H) * T * D),
       v = random<bfloat16>(e, size_t(H) * T * D);
  std::vector<int> seg(T), low, high;
  for (int t = 0; t < T; ++t) seg[t] = t / (e.big ? 700 : 50);
  for (int t = 0; t < T; t += e.big ? 2500 : 71) seg[t] = 0;  // a few strangers of the first segment
  for (int n = 0; n < T; n += c.BN) {
    low.push_back(INT_MAX), high.push_back(-1);
    for (int t = n; t < std::min(T, n + c.BN); ++t) low.back() = std::min(low.back(), seg[t]), high.back() = std::max(high.back(), seg[t]);
  }
  auto segment = repeated<int>(e, T, seg), least = repeated<int>(e, low.size(), low), most = repeated<int>(e, high.size(), high);
  auto o = constant<bfloat16>(e, size_t(H) * T * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.add(local_global, c, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), segment.view(T), least.p, most.p, o.view(H, T, D), scale);
  j.check = [=] {
    std::vector<double> want(size_t(H) * T * D);
    for (int h = 0; h < H; ++h)
      for (int i = 0; i < T; ++i) {
        double total = 0;
        const size_t a = (size_t(h) * T + i) * D;
        for (int n = 0; n < T; ++n) {
          if (std::abs(n - i) > c.window && n >= c.global && seg[n] != seg[i]) continue;
          double s = 0;
          const size_t b = (size_t(h) * T + n) * D;
          for (int d = 0; d < D; ++d) s += q[a + d] * k[b + d];
          s = std::exp(s * scale), total += s;
          for (int d = 0; d < D; ++d) want[a + d] += s * v[b + d];
        }
        for (int d = 0; d < D; ++d) want[a + d] /= total;
      }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});
}  // namespace beside_triton_sequences
}  // namespace users
