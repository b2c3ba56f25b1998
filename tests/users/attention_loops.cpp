// attention_loops.cpp - attention forward, one problem in the ways people write it: GQA, causal or not, window, soft
// cap, ALiBi, sinks; pointers, views, two loops, keys transposed in memory, pages.
#include "tests/users/use.h"
namespace users {
namespace attention_loops {

struct AtCfg {
  int BM = 128, BN = 64, D = 64, stages = 2, warps = 4, causal = 1, window = 0, cap = 0, alibi = 0, sinks = 0;
};
constexpr float kLog2e = 1.44269504f;

struct Soft {  // running maximum, sum and result
  Tile m, l, acc;
};
Tile bend(const AtCfg& c, Tile s, Tile om, Tile on, Tile slope) {
  if (c.cap) s = 30.f * tanh(s / 30.f);
  if (c.alibi) s += slope * cast(on.row() - om.col(), f32);
  return s;
}
void step(Soft& o, Tile s, Tile v) {  // s in units of log2
  Tile mn = max(o.m, squeeze(max(s, axis(1)), 1));
  Tile p = exp2(s - mn.col()), alpha = exp2(o.m - mn);
  o.l = o.l * alpha + squeeze(sum(p, axis(1)), 1);
  o.acc = dot(cast(p, v.dtype()), v, o.acc * alpha.col());
  o.m = mn;
}
Soft begin(const AtCfg& c) { return {full({c.BM}, -1e30f, f32), zeros({c.BM}, f32), zeros({c.BM, c.D}, f32)}; }

// 0: views of four dims, one loop, the mask always
auto one_loop = kernel("user_at_one_loop", [](const AtCfg& c, Tensor<const half, 4> Q, Tensor<const half, 4> K,
                                              Tensor<const half, 4> V, Tensor<half, 4> O, Ptr<const float> sinks,
                                              F32 scale, I32 S, I32 G) {
                  num_warps(c.warps);
                  auto m0 = program_id(0) * c.BM, h = program_id(1), b = program_id(2);
                  auto om = m0 + arange(0, c.BM);
                  Tile slope = exp2(-cast(h + 1, f32));
                  Tile q = reshape(Q.load({b, h, m0, 0}, {1, 1, c.BM, c.D}), {c.BM, c.D});
                  Soft o = begin(c);
                  Tile lo = 0, hi = S;
                  if (c.causal) hi = min(S, m0 + c.BM);
                  if (c.window) lo = max(0, m0 - c.window + 1) / c.BN * c.BN;
                  for (auto n : range(lo, hi, c.BN, {.stages = c.stages})) {
                    auto on = n + arange(0, c.BN);
                    auto k = K.load({b, h / G, n, 0}, {c.BN, c.D}), v = V.load({b, h / G, n, 0}, {c.BN, c.D});
                    Tile s = bend(c, dot(q, trans(k), zeros({c.BM, c.BN}, f32)) * scale, om, on, slope);
                    Tile keep = on.row() < S;
                    if (c.causal) keep = keep & (on.row() <= om.col());
                    if (c.window) keep = keep & (om.col() - on.row() < c.window);
                    step(o, where(keep, s * kLog2e, -INFINITY), v);
                  }
                  if (c.sinks) {
                    Tile sink = load(sinks + h) * kLog2e;
                    Tile mn = max(o.m, sink);
                    o.acc = o.acc * exp2(o.m - mn).col(), o.l = o.l * exp2(o.m - mn) + exp2(sink - mn);
                  }
                  O.store({b, h, m0, 0}, cast(o.acc / o.l.col(), f16));
                }).grid([](const AtCfg& c, const auto& q, auto&&...) {
  return Grid{cdiv(q.shape[2], c.BM), q.shape[1], q.shape[0]};
});

// 1: pointers, two loops (whole blocks, then those on the edge), keys loaded transposed
auto two_loops = kernel("user_at_two_loops", [](const AtCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const half> V,
                                                Ptr<half> O, Ptr<const float> sinks, F32 scale, I32 S, I32 H, I32 G) {
                   num_warps(c.warps);
                   auto m0 = program_id(0) * c.BM, h = program_id(1) % H, b = program_id(1) / H;
                   auto om = m0 + arange(0, c.BM), od = arange(0, c.D);
                   Tile slope = exp2(-cast(h + 1, f32));
                   auto q0 = Q + cast(b * H + h, i64) * S * c.D;
                   auto k0 = K + cast(b * (H / G) + h / G, i64) * S * c.D,
                        v0 = V + cast(b * (H / G) + h / G, i64) * S * c.D;
                   Tile q = load(q0 + (om.col() * c.D + od.row()), {.mask = om.col() < S});
                   q = cast(cast(q, f32) * (scale * (c.cap || c.alibi ? 1.f : kLog2e)), f16);
                   Soft o = begin(c);
                   auto body = [&](Tile n, bool edge) {
                     auto on = n + arange(0, c.BN);
                     Tile kt = edge ? load(k0 + (on.row() * c.D + od.col()), {.mask = on.row() < S})
                                    : load(k0 + (on.row() * c.D + od.col()));
                     Tile s = dot(q, kt, zeros({c.BM, c.BN}, f32));
                     if (c.cap || c.alibi) s = bend(c, s, om, on, slope) * kLog2e;
                     if (edge) {
                       Tile keep = on.row() < S;
                       if (c.causal) keep = keep & (on.row() <= om.col());
                       s = where(keep, s, -INFINITY);
                     }
                     if (c.window) s = where(om.col() - on.row() < c.window, s, -INFINITY);
                     Tile v = edge ? load(v0 + (on.col() * c.D + od.row()), {.mask = on.col() < S})
                                   : load(v0 + (on.col() * c.D + od.row()));
                     step(o, s, v);
                   };
                   Tile lo = 0, mid = S / c.BN * c.BN, hi = S;
                   if (c.causal) hi = min(S, m0 + c.BM), mid = min(mid, m0 / c.BN * c.BN);
                   if (c.window) lo = max(0, m0 - c.window + 1) / c.BN * c.BN;
                   for (auto n : range(lo, mid, c.BN, {.stages = c.stages})) body(n, false);
                   for (auto n : range(max(lo, mid), hi, c.BN, {.stages = c.stages})) body(n, true);
                   if (c.sinks) o.l = o.l + exp2(load(sinks + h) * kLog2e - o.m);
                   store(O + cast(b * H + h, i64) * S * c.D + (om.col() * c.D + od.row()), cast(o.acc / o.l.col(), f16),
                         {.mask = om.col() < S});
                 }).grid([](const AtCfg& c, auto, auto, auto, auto, auto, float, int S, int H, int) {
  return Grid{cdiv(S, c.BM), int64_t(H) * 2};
});

// 2: pointers, pages of `BN` keys found through a block table, a while loop
auto paged =
    kernel("user_at_paged", [](const AtCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const half> V, Ptr<half> O,
                               Ptr<const float> sinks, Ptr<const int> table, F32 scale, I32 S, I32 H, I32 G) {
      num_warps(c.warps);
      auto m0 = program_id(0) * c.BM, h = program_id(1) % H, b = program_id(1) / H;
      auto om = m0 + arange(0, c.BM), od = arange(0, c.D);
      Tile slope = exp2(-cast(h + 1, f32));
      auto q0 = Q + cast(b * H + h, i64) * S * c.D;
      Tile q = load(q0 + (om.col() * c.D + od.row()), {.mask = om.col() < S});
      Soft o = begin(c);
      auto pages = cdiv(S, c.BN);
      Tile i = 0;
      if (c.window) i = max(0, m0 - c.window + 1) / c.BN;
      auto last = c.causal ? min(pages, cdiv(m0 + c.BM, c.BN)) : pages;
      while_([&] { return i < last; },
             [&] {
               auto page = cast(load(table + b * pages + i), i64);
               auto at = (page * c.BN + cast(arange(0, c.BN), i64)) * (H / G) + cast(h / G, i64);
               auto on = i * c.BN + arange(0, c.BN);
               Tile k = load(K + (at.col() * c.D + cast(od, i64).row()), {.mask = on.col() < S});
               Tile s = bend(c, dot(q, trans(k), zeros({c.BM, c.BN}, f32)) * scale, om, on, slope) * kLog2e;
               Tile keep = on.row() < S;
               if (c.causal) keep = keep & (on.row() <= om.col());
               if (c.window) keep = keep & (om.col() - on.row() < c.window);
               Tile v = load(V + (at.col() * c.D + cast(od, i64).row()), {.mask = on.col() < S});
               step(o, where(keep, s, -INFINITY), v);
               i += 1;
             });
      if (c.sinks) o.l = o.l + exp2(load(sinks + h) * kLog2e - o.m);
      store(O + cast(b * H + h, i64) * S * c.D + (om.col() * c.D + od.row()), cast(o.acc / o.l.col(), f16),
            {.mask = om.col() < S});
    }).grid([](const AtCfg& c, auto, auto, auto, auto, auto, auto, float, int S, int H, int) {
      return Grid{cdiv(S, c.BM), int64_t(H) * 2};
    });

// 3: make_view of a head, scores of keys by queries (transposed), the loop counts down
auto turned =
    kernel("user_at_turned", [](const AtCfg& c, Ptr<const half> Q, Ptr<const half> K, Ptr<const half> V, Ptr<half> O,
                                Ptr<const float> sinks, F32 scale, I32 S, I32 H, I32 G) {
      num_warps(c.warps);
      auto h = program_id(0) % H, b = program_id(0) / H, m0 = program_id(1) * c.BM;
      auto head = [&](auto p, Tile i) { return make_view<const half>(p + cast(i, i64) * S * c.D, {S, c.D}, {c.D, 1}); };
      auto Qh = head(Q, b * H + h), Kh = head(K, b * (H / G) + h / G), Vh = head(V, b * (H / G) + h / G);
      auto om = m0 + arange(0, c.BM);
      Tile slope = exp2(-cast(h + 1, f32));
      Tile qt = trans(Qh.load({m0, 0}, {c.BM, c.D}));
      Tile m = full({1, c.BM}, -1e30f, f32), l = zeros({1, c.BM}, f32), acc = zeros({c.D, c.BM}, f32);
      Tile lo = 0, hi = S;
      if (c.causal) hi = min(S, m0 + c.BM);
      if (c.window) lo = max(0, m0 - c.window + 1) / c.BN;
      for (auto i : range(cdiv(hi, c.BN) - 1, lo - 1, -1, {.stages = c.stages})) {
        auto n = i * c.BN;
        auto on = n + arange(0, c.BN);
        Tile s = dot(Kh.load({n, 0}, {c.BN, c.D}), qt, zeros({c.BN, c.BM}, f32)) * scale;
        if (c.cap) s = 30.f * tanh(s / 30.f);
        if (c.alibi) s += slope * cast(on.col() - om.row(), f32);
        Tile keep = on.col() < S;
        if (c.causal) keep = keep & (on.col() <= om.row());
        if (c.window) keep = keep & (om.row() - on.col() < c.window);
        s = where(keep, s * kLog2e, -INFINITY);
        Tile mn = max(m, max(s, axis(0)));
        Tile p = exp2(s - mn), alpha = exp2(m - mn);
        l = l * alpha + sum(p, axis(0)), m = mn;
        acc = dot(trans(Vh.load({n, 0}, {c.BN, c.D})), cast(p, f16), acc * alpha);
      }
      if (c.sinks) l = l + exp2(load(sinks + h) * kLog2e - m);
      auto Oh = make_view<half>(O + cast(b * H + h, i64) * S * c.D, {S, c.D}, {c.D, 1});
      Oh.store({m0, 0}, trans(cast(acc / l, f16)));
    }).grid([](const AtCfg& c, auto, auto, auto, auto, auto, float, int S, int H, int) {
      return Grid{int64_t(H) * 2, cdiv(S, c.BM)};
    });

Job problem(Env& e, int way) {
  AtCfg c;
  c.D = e.field("D", e.big ? 128 : 32), c.BM = e.field("BM", e.big ? 128 : 32), c.BN = e.field("BN", e.big ? 64 : 16);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", e.big ? 8 : 4), c.causal = e.field("causal", 1);
  c.window = e.field("window", e.big ? 0 : 37), c.cap = e.field("cap", e.big ? 0 : 1);
  c.alibi = e.field("alibi", e.big ? 0 : 1), c.sinks = e.field("sinks", e.big ? 0 : 1);
  const int B = 2, S = e.big ? 4096 : 101, H = e.big ? 32 : 4, G = e.big ? 4 : 2, D = c.D, HK = H / G;
  const float scale = 1.f / std::sqrt(float(D));
  const size_t nq = size_t(B) * H * S * D, nk = size_t(B) * HK * S * D;
  auto q = random<half>(e, nq, -2, 2), k = random<half>(e, nk, -2, 2), v = random<half>(e, nk);
  auto sinks = random<float>(e, H);
  auto o = constant<half>(e, nq, NAN);
  Job j;
  j.gflop = 4e-9 * B * H * double(S) * S * D / (c.causal ? 2 : 1);
  auto kp = k, vp = v;
  const int pages = int(cdiv(S, c.BN));
  if (way == 2) {
    const size_t np = size_t(B) * pages * c.BN * HK * D;
    auto table = filled<int>(e, size_t(B) * pages, [&](size_t i) { return int(B * pages - 1 - i); });
    auto spread = [&](const Array<half>& x) {
      std::vector<half> y(e.device && !e.big ? np : 0, half(7.f));
      if (!y.empty())
        for (int b = 0; b < B; ++b)
          for (int s = 0; s < S; ++s)
            for (int h = 0; h < HK; ++h)
              for (int d = 0; d < D; ++d)
                y[((size_t(B * pages - 1 - (b * pages + s / c.BN)) * c.BN + s % c.BN) * HK + h) * D + d] =
                    x.h[((size_t(b) * HK + h) * S + s) * D + d];
      return e.big ? random<half>(e, np) : repeated(e, np, y);
    };
    kp = spread(k), vp = spread(v);
    j.add(paged, c, q.p, kp.p, vp.p, o.p, sinks.p, table.p, scale, S, H, G);
  }
  if (way == 0)
    j.add(one_loop, c, q.view(B, H, S, D), k.view(B, HK, S, D), v.view(B, HK, S, D), o.view(B, H, S, D), sinks.p, scale,
          S, G);
  if (way == 1) j.add(two_loops, c, q.p, k.p, v.p, o.p, sinks.p, scale, S, H, G);
  if (way == 3) j.add(turned, c, q.p, k.p, v.p, o.p, sinks.p, scale, S, H, G);
  j.check = [=] {
    std::vector<double> want(nq);
    for (int bh = 0; bh < B * H; ++bh)
      for (int i = 0; i < S; ++i) {
        const int h = bh % H;
        const size_t kv = size_t(bh / H) * HK + h / G;
        std::vector<double> s(S, -INFINITY);
        double m = c.sinks ? sinks[h] : -INFINITY;
        for (int t = 0; t < (c.causal ? i + 1 : S); ++t) {
          if (c.window && i - t >= c.window) continue;
          double x = 0;
          for (int d = 0; d < D; ++d) x += q[(size_t(bh) * S + i) * D + d] * k[(kv * S + t) * D + d];
          x *= scale;
          if (c.cap) x = 30 * std::tanh(x / 30);
          if (c.alibi) x += std::exp2(-(h + 1)) * (t - i);
          s[t] = x, m = std::max(m, x);
        }
        double l = c.sinks ? std::exp(sinks[h] - m) : 0;
        for (double& x : s) x = std::exp(x - m), l += x;
        for (int t = 0; t < S; ++t)
          for (int d = 0; d < D; ++d) want[(size_t(bh) * S + i) * D + d] += s[t] / l * v[(kv * S + t) * D + d];
      }
    return agree(o.now(), want, 4e-3, 4e-3);
  };
  return j;
}
Register r0("at_one_loop", [](Env& e) { return problem(e, 0); });
Register r1("at_two_loops", [](Env& e) { return problem(e, 1); });
Register r2("at_paged", [](Env& e) { return problem(e, 2); });
Register r3("at_turned", [](Env& e) { return problem(e, 3); });

}  // namespace attention_loops
}  // namespace users
