// widths_of_heads.cpp - attention and its gradients, linear attention in chunks: heads of any width.
#include "tests/users/use.h"
namespace users {
namespace widths_of_heads {

struct DiCfg {
  int BM = 64, BN = 64, D = 96, DV = 64, stages = 2, warps = 4, way = 0;
};
DiCfg di(Env& e, DiCfg big, DiCfg small) {
  DiCfg c = e.big ? big : small;
  return {e.field("BM", c.BM),         e.field("BN", c.BN),       e.field("D", c.D),    e.field("DV", c.DV),
          e.field("stages", c.stages), e.field("warps", c.warps), e.field("way", c.way)};
}

// --- capped logits, a sink per head; lse kept; keys wider than values
auto sink_fwd = kernel("user_sink_fwd", [](const DiCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K,
                                           Tensor<const bfloat16, 3> V, Ptr<const float> sinks, Tensor<bfloat16, 3> O,
                                           Ptr<float> L, F32 scale) {
                  num_warps(c.warps);
                  auto h = program_id(1), m = program_id(0) * c.BM;
                  auto T = Q.dim(1), S = K.dim(1);
                  auto rm = m + arange(0, c.BM) + (S - T);
                  auto q = Q.load({h, m, 0}, {c.BM, c.D});
                  Tile mx = broadcast_to(reshape(load(sinks + h), {1, 1}), {c.BM, 1}), l = ones({c.BM, 1}, f32),
                       acc = zeros({c.BM, c.DV}, f32);
                  for (auto n : range(0, min(m + c.BM + S - T, S), c.BN, {.stages = c.stages})) {
                    auto rn = n + arange(0, c.BN);
                    auto s = dot(q, trans(K.load({h, n, 0}, {c.BN, c.D}))) * scale;
                    s = 20.f * tanh(s / 20.f);
                    s = where((rm.col() >= rn.row()) & (rn < S).row(), s, -INFINITY);
                    auto nm = max(mx, max(s, axis(1)));
                    auto p = exp(s - nm), a = exp(mx - nm);
                    l = l * a + sum(p, axis(1));
                    acc = dot(cast(p, bf16), V.load({h, n, 0}, {c.BN, c.DV}), acc * a);
                    mx = nm;
                  }
                  O.store({h, m, 0}, cast(acc / l, bf16));
                  auto r = m + arange(0, c.BM);
                  store(L + (h * T + r), squeeze(mx + log(l), 1), {.mask = r < T});
                }).grid([](const DiCfg& c, const auto& q, const auto&, const auto&, auto, const auto&, auto, float) {
  return Grid{cdiv(q.shape[1], c.BM), q.shape[0]};
});
// dk, dv of a block of keys; the sink's gradient by the first of them
auto sink_dkdv =
    kernel("user_sink_dkdv",
           [](const DiCfg& c, Tensor<const bfloat16, 3> Q, Tensor<const bfloat16, 3> K, Tensor<const bfloat16, 3> V,
              Tensor<const bfloat16, 3> O, Tensor<const bfloat16, 3> DO, Ptr<const float> sinks, Ptr<const float> L,
              Tensor<bfloat16, 3> DK, Tensor<bfloat16, 3> DV, Ptr<float> DS, F32 scale) {
             num_warps(c.warps);
             auto h = program_id(1), n = program_id(0) * c.BN;
             auto T = Q.dim(1), S = K.dim(1);
             auto rn = n + arange(0, c.BN);
             auto k = K.load({h, n, 0}, {c.BN, c.D});
             auto v = V.load({h, n, 0}, {c.BN, c.DV});
             Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.DV}, f32), ds = zeros({c.BM}, f32);
             for (auto m : range(max(n - (S - T), 0) / c.BM * c.BM, T, c.BM, {.stages = c.stages})) {
               auto rm = m + arange(0, c.BM);
               auto q = Q.load({h, m, 0}, {c.BM, c.D});
               auto go = DO.load({h, m, 0}, {c.BM, c.DV});
               auto delta = squeeze(sum(cast(go, f32) * cast(O.load({h, m, 0}, {c.BM, c.DV}), f32), axis(1)), 1);
               auto l = load(L + (h * T + rm), {.mask = rm < T, .other = INFINITY});
               auto t = tanh(dot(k, trans(q)) * (scale / 20.f));  // [BN, BM]
               auto p = where((rm + (S - T)).row() >= rn.col(), exp(20.f * t - l.row()), 0);
               dv = dot(cast(p, bf16), go, dv);
               auto dp = dot(v, trans(go));
               auto dst = p * (dp - delta.row()) * (1 - t * t) * scale;
               dk = dot(cast(dst, bf16), q, dk);
               ds -= where(rm < T, exp(load(sinks + h) - l) * delta, 0);
             }
             DK.store({h, n, 0}, cast(dk, bf16));
             DV.store({h, n, 0}, cast(dv, bf16));
             if_(program_id(0) == 0, [&] { store(DS + h, sum(ds)); });
           })
        .grid([](const DiCfg& c, const auto& q, const auto& k, const auto&, const auto&, const auto&, auto, auto,
                 const auto&, const auto&, auto, float) {
          return Grid{cdiv(k.shape[1], c.BN), q.shape[0]};
        });
Register r1("sink_bwd", [](Env& e) {
  auto c = di(e, {128, 64, 64, 64, 2, 8}, {32, 32, 24, 16, 2, 4});
  const int H = e.big ? 64 : 2, T = e.big ? 4096 : 45, S = e.big ? 4096 : 58, D = c.D, V = c.DV;
  auto q = random<bfloat16>(e, size_t(H) * T * D), k = random<bfloat16>(e, size_t(H) * S * D),
       v = random<bfloat16>(e, size_t(H) * S * V), go = random<bfloat16>(e, size_t(H) * T * V);
  auto o = constant<bfloat16>(e, size_t(H) * T * V, NAN), dk = constant<bfloat16>(e, size_t(H) * S * D, NAN),
       dv = constant<bfloat16>(e, size_t(H) * S * V, NAN);
  auto sinks = random<float>(e, H, 0, 2), L = constant<float>(e, H * T, NAN), DS = constant<float>(e, H, NAN);
  const float scale = 4 / std::sqrt(float(D));
  TensorView<const bfloat16, 3> oc(o.p, {H, T, V});
  Job j;
  j.gflop = 1e-9 * H * double(T) * S * (D + V) * 3.5;
  DiCfg f = c;
  if (e.big) f.BM = 128;
  j.add(sink_fwd, f, q.view(H, T, D), k.view(H, S, D), v.view(H, S, V), sinks.p, o.view(H, T, V), L.p, scale);
  DiCfg b = c;
  if (e.big) b.BM = 64, b.BN = 64, b.warps = 4;
  j.add(sink_dkdv, b, q.view(H, T, D), k.view(H, S, D), v.view(H, S, V), oc, go.view(H, T, V), sinks.p, L.p,
        dk.view(H, S, D), dv.view(H, S, V), DS.p, scale);
  j.check = [=] {
    std::vector<double> wo(o.n), wk(dk.n), wv(dv.n), ws(H);
    for (int h = 0; h < H; ++h)
      for (int r = 0; r < T; ++r) {
        const int end = std::min(S, r + S - T + 1);
        std::vector<double> p(end), t(end);
        double l = std::exp(sinks[h]), delta = 0;
        for (int x = 0; x < end; ++x) {
          double s = 0;
          for (int i = 0; i < D; ++i) s += q[(size_t(h) * T + r) * D + i] * k[(size_t(h) * S + x) * D + i];
          t[x] = std::tanh(s * scale / 20), p[x] = std::exp(20 * t[x]), l += p[x];
        }
        std::vector<double> out(V);
        for (int x = 0; x < end; ++x) {
          p[x] /= l;
          for (int i = 0; i < V; ++i) out[i] += p[x] * v[(size_t(h) * S + x) * V + i];
        }
        for (int i = 0; i < V; ++i)
          wo[(size_t(h) * T + r) * V + i] = out[i], delta += out[i] * go[(size_t(h) * T + r) * V + i];
        ws[h] -= std::exp(sinks[h]) / l * delta;
        for (int x = 0; x < end; ++x) {
          double dp = 0;
          for (int i = 0; i < V; ++i)
            dp += go[(size_t(h) * T + r) * V + i] * v[(size_t(h) * S + x) * V + i],
                wv[(size_t(h) * S + x) * V + i] += p[x] * go[(size_t(h) * T + r) * V + i];
          const double ds = p[x] * (dp - delta) * (1 - t[x] * t[x]) * scale;
          for (int i = 0; i < D; ++i) wk[(size_t(h) * S + x) * D + i] += ds * q[(size_t(h) * T + r) * D + i];
        }
      }
    auto bad = agree(o.now(), wo, 2e-2, 1e-2);
    if (bad.empty()) bad = agree(dv.now(), wv, 4e-2, 2e-2);
    if (bad.empty()) bad = agree(dk.now(), wk, 4e-2, 2e-2);
    return bad.empty() ? agree(DS.now(), ws, 5e-2, 2e-2) : bad;
  };
  return j;
});

// --- gated linear attention with a decay per key channel, chunks in one program, state kept; any width
auto gla_any =
    kernel("user_gla_any", [](const DiCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K, Tensor<const half, 3> V,
                              Tensor<const float, 3> G, Tensor<half, 3> O, Tensor<float, 3> ST) {
      num_warps(c.warps);
      auto h = program_id(1), dv = program_id(0) * c.DV;
      auto i = arange(0, c.BM);
      Tile S = zeros({c.D, c.DV}, f32);
      for (auto t : range(0, Q.dim(1), c.BM, {.stages = c.stages})) {
        auto g = cumsum(G.load({h, t, 0}, {c.BM, c.D}), axis(0));
        auto end = extract(g, {c.BM - 1, 0}, {1, c.D});
        auto q = cast(Q.load({h, t, 0}, {c.BM, c.D}), f32), k = cast(K.load({h, t, 0}, {c.BM, c.D}), f32);
        auto v = V.load({h, t, dv}, {c.BM, c.DV});
        auto qg = cast(q * exp(g), f16);
        auto a = where(i.col() >= i.row(), dot(qg, trans(cast(k * exp(-g), f16))), 0);
        auto o = dot(qg, cast(S, f16));
        o = dot(cast(a, f16), v, o);
        O.store({h, t, dv}, cast(o, f16));
        S = dot(trans(cast(k * exp(end - g), f16)), v, S * trans(exp(end)));
      }
      ST.store({h, 0, dv}, S);
    }).grid([](const DiCfg& c, const auto& q, const auto&, const auto& v, const auto&, const auto&, const auto&) {
      return Grid{cdiv(v.shape[2], c.DV), q.shape[0]};
    });
Register r2("gla_any", [](Env& e) {
  auto c = di(e, {64, 64, 128, 64, 2, 8}, {16, 16, 24, 16, 2, 4});
  const int H = e.big ? 256 : 2, T = e.big ? 4096 : 43, D = c.D, V = e.big ? 128 : c.DV + 8;
  auto q = random<half>(e, size_t(H) * T * D), k = random<half>(e, size_t(H) * T * D),
       v = random<half>(e, size_t(H) * T * V);
  auto g = random<float>(e, size_t(H) * T * D, -.1, 0);
  auto o = constant<half>(e, size_t(H) * T * V, NAN);
  auto st = constant<float>(e, size_t(H) * D * V, NAN);
  Job j;
  j.gflop = 2e-9 * H * T * double(D) * V * 3;
  j.add(gla_any, c, q.view(H, T, D), k.view(H, T, D), v.view(H, T, V), g.view(H, T, D), o.view(H, T, V),
        st.view(H, D, V));
  j.check = [=] {
    std::vector<double> wo(o.n), ws(st.n);
    for (int h = 0; h < H; ++h)
      for (int t = 0; t < T; ++t)
        for (int d = 0; d < D; ++d)
          for (int i = 0; i < V; ++i) {
            double& s = ws[(size_t(h) * D + d) * V + i];
            s = s * std::exp(g[(size_t(h) * T + t) * D + d]) +
                k[(size_t(h) * T + t) * D + d] * v[(size_t(h) * T + t) * V + i];
            wo[(size_t(h) * T + t) * V + i] += q[(size_t(h) * T + t) * D + d] * s;
          }
    auto bad = agree(o.now(), wo, 3e-2, 1e-2);
    return bad.empty() ? agree(st.now(), ws, 2e-2, 1e-2) : bad;
  };
  return j;
});

}  // namespace widths_of_heads
}  // namespace users
