// beside_triton_gradients.cpp - what goes back: keys of selected blocks, a bias that rows share, cross entropy cut
// from its logits.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_gradients {
constexpr float kLog2e = 1.4426950408889634f;

// --- native sparse attention: gradients of a block of keys from the tokens that chose it (a byte per token and block)
struct NsaCfg {
  int D = 128, G = 16, BS = 64, warps = 4;
};
auto nsa_dkv =
    kernel("user_nsa_dkv", [](const NsaCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 3> K,
                              Tensor<const bfloat16, 3> V, Tensor<const bfloat16, 4> DO, Tensor<const float, 3> Lse,
                              Tensor<const float, 3> Delta, Tensor<const uint8_t, 3> Mask, Tensor<bfloat16, 3> DK,
                              Tensor<bfloat16, 3> DV, F32 scale) {
      // Q, DO [T, H, G, D], K, V [T, H, D], Lse, Delta [T, H, G], Mask [T, H, T / BS]
      num_warps(c.warps);
      auto block = program_id(0), h = program_id(1), T = K.dim(0);
      auto s0 = block * c.BS;
      auto k = squeeze(K.load({s0, h, 0}, {c.BS, 1, c.D}), 1);
      auto v = squeeze(V.load({s0, h, 0}, {c.BS, 1, c.D}), 1);
      auto keys = (s0 + arange(0, c.BS)).col();
      Tile dk = zeros({c.BS, c.D}, f32), dv = zeros({c.BS, c.D}, f32);
      for (auto t : range(s0, T)) {
        auto chosen = to_scalar(Mask.load({t, h, block}, {1}));
        if_(chosen != 0, [&] {
          auto q = reshape(Q.load({t, h, 0, 0}, {1, 1, c.G, c.D}), {c.G, c.D});
          auto d = reshape(DO.load({t, h, 0, 0}, {1, 1, c.G, c.D}), {c.G, c.D});
          auto lse = Lse.load({t, h, 0}, {c.G}).row(), delta = Delta.load({t, h, 0}, {c.G}).row();
          auto s = dot(k, trans(q)) * (scale * kLog2e);
          auto p = where(keys <= t, exp2(s - lse), 0.f);
          dv = dot(cast(p, bf16), d, dv);
          auto ds = p * (dot(v, trans(d)) - delta);
          dk = dot(cast(ds, bf16), q, dk);
        });
      }
      DK.store({s0, h, 0}, expand_dims(cast(dk * scale, bf16), 1));
      DV.store({s0, h, 0}, expand_dims(cast(dv, bf16), 1));
    }).grid([](const NsaCfg& c, const auto&, const auto& k, const auto&...) {
      return Grid{cdiv(k.shape[0], c.BS), k.shape[1]};
    });
Register r1("nsa_dkv", [](Env& e) {
  NsaCfg c;
  if (!e.big) c = {32, 16, 16, 4};
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 2048 : 83, H = e.big ? 16 : 2, D = c.D, G = c.G, NB = cdiv(T, c.BS), chosen = e.big ? 8 : 3;
  auto q = random<bfloat16>(e, size_t(T) * H * G * D), d = random<bfloat16>(e, q.n);
  auto k = random<bfloat16>(e, size_t(T) * H * D), v = random<bfloat16>(e, k.n);
  auto lse = random<float>(e, size_t(T) * H * G, 2, 4), delta = random<float>(e, lse.n);
  uint32_t draw = 12345;
  auto mask = filled<uint8_t>(e, size_t(T) * H * NB, [&](size_t i) {
    const int b = i % NB, own = int(i / NB / H) / c.BS;
    draw = draw * 1664525u + 1013904223u;
    return uint8_t(b <= own && (b == own || (draw >> 8) % (own + 1) < uint32_t(chosen - 2)));
  });
  auto dk = constant<bfloat16>(e, k.n, NAN), dv = constant<bfloat16>(e, k.n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.add(nsa_dkv, c, q.view(T, H, G, D), k.view(T, H, D), v.view(T, H, D), d.view(T, H, G, D), lse.view(T, H, G),
        delta.view(T, H, G), mask.view(T, H, NB), dk.view(T, H, D), dv.view(T, H, D), scale);
  j.check = [=] {
    std::vector<double> wk(k.n), wv(k.n);
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h)
        for (int s = 0; s <= t; ++s) {
          if (!mask.h[(size_t(t) * H + h) * NB + s / c.BS]) continue;
          const size_t key = (size_t(s) * H + h) * D;
          for (int g = 0; g < G; ++g) {
            const size_t row = (size_t(t) * H + h) * G + g;
            double x = 0, dp = 0;
            for (int i = 0; i < D; ++i) x += q[row * D + i] * k[key + i], dp += d[row * D + i] * v[key + i];
            const double p = std::exp2(x * scale * kLog2e - lse[row]), ds = p * (dp - delta[row]);
            for (int i = 0; i < D; ++i) wk[key + i] += ds * scale * q[row * D + i], wv[key + i] += p * d[row * D + i];
          }
        }
    auto wrong = agree(dk.now(), wk, 3e-2, 2e-2);
    return wrong.empty() ? agree(dv.now(), wv, 3e-2, 2e-2) : wrong;
  };
  return j;
});

// --- attention of rows of an alignment with a bias that all rows share (Evoformer), going back: gradients of k, v, and
// of the bias and q by atomics
struct EvoCfg {
  int D = 32, BM = 64, BN = 64, stages = 2, warps = 4;
};
auto evo_bwd =
    kernel("user_evo_bwd", [](const EvoCfg& c, Tensor<const bfloat16, 4> Q, Tensor<const bfloat16, 4> K,
                              Tensor<const bfloat16, 4> V, Tensor<const bfloat16, 3> Bias, Tensor<const bfloat16, 4> DO,
                              Tensor<const float, 3> Lse, Tensor<const float, 3> Delta, Tensor<float, 4> DQ,
                              Tensor<bfloat16, 4> DK, Tensor<bfloat16, 4> DV, Tensor<float, 3> DBias, F32 scale) {
      // Q .. [S, H, N, D], Bias, DBias [H, N, N], Lse, Delta [S, H, N]
      num_warps(c.warps);
      auto n = program_id(0) * c.BN, h = program_id(1), s = program_id(2), N = Q.dim(2);
      auto k = reshape(K.load({s, h, n, 0}, {1, 1, c.BN, c.D}), {c.BN, c.D});
      auto v = reshape(V.load({s, h, n, 0}, {1, 1, c.BN, c.D}), {c.BN, c.D});
      auto keys = (n + arange(0, c.BN)).row();
      Tile dk = zeros({c.BN, c.D}, f32), dv = zeros({c.BN, c.D}, f32);
      for (auto m : range(0, N, c.BM, {.stages = c.stages})) {
        auto q = reshape(Q.load({s, h, m, 0}, {1, 1, c.BM, c.D}), {c.BM, c.D});
        auto d = reshape(DO.load({s, h, m, 0}, {1, 1, c.BM, c.D}), {c.BM, c.D});
        auto bias = cast(squeeze(Bias.load({h, m, n}, {1, c.BM, c.BN}), 0), f32);
        auto lse = Lse.load({s, h, m}, {c.BM}).col(), delta = Delta.load({s, h, m}, {c.BM}).col();
        auto x = dot(q, trans(k)) * (scale * kLog2e) + bias * kLog2e;
        auto inside = (keys < N) & ((m + arange(0, c.BM)).col() < N);
        auto p = where(inside, exp2(x - lse), 0.f);
        dv = dot(trans(cast(p, bf16)), d, dv);
        auto ds = p * (dot(d, trans(v)) - delta);
        DBias.atomic_add({h, m, n}, expand_dims(ds, 0));
        auto low = cast(ds, bf16);
        dk = dot(trans(low), q, dk);
        DQ.atomic_add({s, h, m, 0}, reshape(dot(low, k) * scale, {1, 1, c.BM, c.D}));
      }
      DK.store({s, h, n, 0}, reshape(cast(dk * scale, bf16), {1, 1, c.BN, c.D}));
      DV.store({s, h, n, 0}, reshape(cast(dv, bf16), {1, 1, c.BN, c.D}));
    }).grid([](const EvoCfg& c, const auto& q, const auto&...) {
      return Grid{cdiv(q.shape[2], c.BN), q.shape[1], q.shape[0]};
    });
Register r2("evo_bwd", [](Env& e) {
  EvoCfg c;
  if (!e.big) c = {16, 16, 16, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int S = e.big ? 128 : 3, H = e.big ? 8 : 2, N = e.big ? 384 : 44, D = c.D;
  const size_t n = size_t(S) * H * N * D;
  auto q = random<bfloat16>(e, n), k = random<bfloat16>(e, n), v = random<bfloat16>(e, n), d = random<bfloat16>(e, n);
  auto bias = random<bfloat16>(e, size_t(H) * N * N);
  auto lse = random<float>(e, size_t(S) * H * N, 4, 6), delta = random<float>(e, lse.n);
  auto dq = constant<float>(e, n, 0), db = constant<float>(e, bias.n, 0);
  auto dk = constant<bfloat16>(e, n, NAN), dv = constant<bfloat16>(e, n, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 10e-9 * S * H * N * double(N) * D;
  j.add(evo_bwd, c, q.view(S, H, N, D), k.view(S, H, N, D), v.view(S, H, N, D), bias.view(H, N, N), d.view(S, H, N, D),
        lse.view(S, H, N), delta.view(S, H, N), dq.view(S, H, N, D), dk.view(S, H, N, D), dv.view(S, H, N, D),
        db.view(H, N, N), scale);
  j.check = [=]() -> std::string {
    std::vector<double> wq(n), wk(n), wv(n), wb(bias.n);
    for (int z = 0; z < S * H; ++z)
      for (int m = 0; m < N; ++m)
        for (int i = 0; i < N; ++i) {
          const size_t row = size_t(z) * N + m, key = size_t(z) * N + i, b = (size_t(z % H) * N + m) * N + i;
          double x = 0, dp = 0;
          for (int a = 0; a < D; ++a) x += q[row * D + a] * k[key * D + a], dp += d[row * D + a] * v[key * D + a];
          const double p = std::exp2((x * scale + bias[b]) * kLog2e - lse[row]), ds = p * (dp - delta[row]);
          wb[b] += ds;
          for (int a = 0; a < D; ++a) {
            wq[row * D + a] += ds * scale * k[key * D + a];
            wk[key * D + a] += ds * scale * q[row * D + a];
            wv[key * D + a] += p * d[row * D + a];
          }
        }
    for (auto wrong : {agree(dq.now(), wq, 1e-2, 1e-2), agree(dk.now(), wk, 1e-2, 1e-2),
                       agree(dv.now(), wv, 1e-2, 1e-2), agree(db.now(), wb, 1e-2, 1e-2)})
      if (!wrong.empty()) return wrong;
    return "";
  };
  return j;
});

// --- cut cross entropy, going back: a tile of logits is made again, and where a probability in it counts, both of its
// products are added in memory
struct CutCfg {
  int BB = 128, BV = 128, BD = 64, stages = 3, warps = 8, group = 8;
};
auto cce_bwd = kernel("user_cce_bwd", [](const CutCfg& c, Tensor<const bfloat16, 2> E, Tensor<const bfloat16, 2> C,
                                         Ptr<const float> lse, Ptr<const int> label, Tensor<float, 2> DE,
                                         Tensor<float, 2> DC, F32 scale, F32 least) {
                 num_warps(c.warps);
                 auto T = E.dim(0), V = C.dim(0), D = E.dim(1);
                 auto [i, j] = swizzle2d(program_id(0) / cdiv(V, c.BV), program_id(0) % cdiv(V, c.BV), cdiv(T, c.BB),
                                         cdiv(V, c.BV), c.group);
                 auto b = i * c.BB, v = j * c.BV;
                 Tile logits = zeros({c.BB, c.BV}, f32);
                 for (auto d : range(0, D, c.BD, {.stages = c.stages}))
                   logits = dot(E.load({b, d}, {c.BB, c.BD}), trans(C.load({v, d}, {c.BV, c.BD})), logits);
                 auto tokens = b + arange(0, c.BB), words = v + arange(0, c.BV);
                 auto l = load(lse + tokens, {.mask = tokens < T, .other = INFINITY});
                 auto y = load(label + tokens, {.mask = tokens < T, .other = -1});
                 auto g = exp2((logits - l.col()) * kLog2e) - where(y.col() == words.row(), 1.f, 0.f);
                 g = where((words < V).row(), g, 0.f);
                 if_(any(abs(g) >= least), [&] {
                   auto low = cast(g * scale, bf16);
                   for (auto d : range(0, D, c.BD, {.stages = c.stages})) {
                     DE.atomic_add({b, d}, dot(low, C.load({v, d}, {c.BV, c.BD})));
                     DC.atomic_add({v, d}, dot(trans(low), E.load({b, d}, {c.BB, c.BD})));
                   }
                 });
               }).grid([](const CutCfg& c, const auto& e, const auto& w, const auto&...) {
  return Grid{cdiv(e.shape[0], c.BB) * cdiv(w.shape[0], c.BV)};
});
Register r3("cce_bwd", [](Env& e) {
  CutCfg c;
  if (!e.big) c = {16, 32, 16, 2, 4, 2};
  c.BB = e.field("BB", c.BB), c.BV = e.field("BV", c.BV), c.BD = e.field("BD", c.BD);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps), c.group = e.field("group", c.group);
  const int T = e.big ? 2048 : 45, V = e.big ? 65536 : 150, D = e.big ? 1024 : 72;
  auto x = random<bfloat16>(e, size_t(T) * D), w = random<bfloat16>(e, size_t(V) * D, -.1, .1);
  auto lse = random<float>(e, T, e.big ? 30 : 4, e.big ? 31 : 6);
  auto label = integers<int>(e, T, 0, V);
  auto dx = constant<float>(e, x.n, 0), dw = constant<float>(e, w.n, 0);
  Job j;
  j.gflop = 2e-9 * T * V * double(D);
  j.add(cce_bwd, c, x.view(T, D), w.view(V, D), lse.p, label.p, dx.view(T, D), dw.view(V, D), .5f, 1.f / 4096);
  j.check = [=] {
    std::vector<double> wx(x.n), ww(w.n);
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < V; ++i) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += x[size_t(t) * D + d] * w[size_t(i) * D + d];
        const double g = (std::exp(s - lse[t]) - (label.at(t) == i)) * .5;
        for (int d = 0; d < D; ++d)
          wx[size_t(t) * D + d] += g * w[size_t(i) * D + d], ww[size_t(i) * D + d] += g * x[size_t(t) * D + d];
      }
    auto wrong = agree(dx.now(), wx, 2e-2, 1e-2);
    return wrong.empty() ? agree(dw.now(), ww, 2e-2, 1e-2) : wrong;
  };
  return j;
});

}  // namespace beside_triton_gradients
}  // namespace users
