// kept_gates.cpp - a gated layer of a training library that keeps what its gradients need: three results leave one
// program, batches are a third dim.
#include "tests/users/use.h"
namespace users {
namespace kept_gates {
struct KeptCfg {
  int BM = 128, BN = 128, BK = 64, group = 8, warps = 8, stages = 3;
};
auto kept_gates =
    kernel("user_kept_gates", [](const KeptCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 2> G,
                                 Tensor<const bfloat16, 2> U, Tensor<bfloat16, 3> A, Tensor<bfloat16, 3> KG,
                                 Tensor<bfloat16, 3> KU, F32 gain) {
      num_warps(c.warps);
      auto b = program_id(1);
      auto rows = cdiv(X.dim(1), c.BM), columns = cdiv(G.dim(0), c.BN);
      auto [im, in] = swizzle2d(program_id(0) / columns, program_id(0) % columns, rows, columns, c.group);
      auto m = im * c.BM, n = in * c.BN;
      Tile gate = zeros({c.BM, c.BN}, f32), up = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, X.dim(2), c.BK, {.stages = c.stages})) {
        auto x = reshape(X.load({b, m, k}, {1, c.BM, c.BK}), {c.BM, c.BK});
        gate = dot(x, trans(G.load({n, k}, {c.BN, c.BK})), gate);
        up = dot(x, trans(U.load({n, k}, {c.BN, c.BK})), up);
      }
      gate = gate * gain;
      auto put = [&](const Tensor<bfloat16, 3>& to, const Tile& x) {
        to.store({b, m, n}, reshape(cast(x, bf16), {1, c.BM, c.BN}));
      };
      put(A, silu(gate) * up), put(KG, gate), put(KU, up);
    }).grid([](const KeptCfg& c, const auto& x, const auto& g, const auto&...) {
      return Grid{cdiv(x.shape[1], c.BM) * cdiv(g.shape[0], c.BN), x.shape[0]};
    });
Register r1("kept_gates", [](Env& e) {
  KeptCfg c;
  if (!e.big) c = {32, 32, 16, 2, 4, 2};
  c = {e.field("BM", c.BM),       e.field("BN", c.BN),       e.field("BK", c.BK),
       e.field("group", c.group), e.field("warps", c.warps), e.field("stages", c.stages)};
  const int B = e.big ? 4 : 2, S = e.big ? 2048 : 45, N = e.big ? 8192 : 72, K = e.big ? 2048 : 40;
  auto x = random<bfloat16>(e, size_t(B) * S * K), g = random<bfloat16>(e, size_t(N) * K),
       u = random<bfloat16>(e, size_t(N) * K);
  auto out = [&] { return constant<bfloat16>(e, size_t(B) * S * N, NAN); };
  auto a = out(), kg = out(), ku = out();
  Job j;
  j.gflop = 4e-9 * B * S * N * K;
  j.add(kept_gates, c, x.view(B, S, K), g.view(N, K), u.view(N, K), a.view(B, S, N), kg.view(B, S, N), ku.view(B, S, N),
        .5f);
  j.check = [=] {
    auto wg = product(
        B * S, N, K, matrix(x, K), [&](int k, int n) { return g[size_t(n) * K + k]; },
        [](double s, int, int) { return s * .5; });
    auto wu = product(B * S, N, K, matrix(x, K), [&](int k, int n) { return u[size_t(n) * K + k]; });
    std::vector<double> wa(wg.size());
    for (size_t i = 0; i < wa.size(); ++i) wa[i] = wg[i] / (1 + std::exp(-wg[i])) * wu[i];
    auto wrong = agree(kg.now(), wg, 2e-2, 1e-2);
    if (wrong.empty()) wrong = agree(ku.now(), wu, 2e-2, 1e-2);
    return wrong.empty() ? agree(a.now(), wa, 5e-2, 2e-2) : wrong;
  };
  return j;
});

// --- manifold hyper-connections: Sinkhorn's steps on a 4 x 4 per token, unrolled, every step kept for the gradients
struct SinkhornCfg {
  int H = 4, steps = 6, warps = 1;
};
auto kept_steps =
    kernel("user_kept_steps", [](const SinkhornCfg& c, Ptr<const float> mix, Ptr<const float> bias, Ptr<float> pre,
                                 Ptr<float> post, Ptr<float> res, Ptr<float> kept, Ptr<const float> alphas, I32 N,
                                 F32 eps) {
      num_warps(c.warps);
      auto n = program_id(0);
      return_if(n >= N);
      const int H = c.H, M = H * H + 2 * H;
      auto j = arange(0, H);
      auto at = cast(n, i64);
      auto logits = [&](const Tile& i, int which) {
        return load(mix + (at * M + i)) * load(alphas + which) + load(bias + i);
      };
      store(pre + (at * H + j), sigmoid(logits(j, 0)) + eps);
      store(post + (at * H + j), sigmoid(logits(H + j, 1)) * 2.f);
      auto flat = j.col() * H + j.row();
      auto x = logits(2 * H + flat, 2);
      auto e = exp(x - max(x, axis(1)));
      Tile m = e / sum(e, axis(1)) + eps;
      m = m / (sum(m, axis(0)) + eps);
      for (int t = 0; t < c.steps; ++t) {
        store(kept + ((at * c.steps + t) * (H * H) + flat), m);
        if (t + 1 == c.steps) break;
        m = m / (sum(m, axis(1)) + eps);
        m = m / (sum(m, axis(0)) + eps);
      }
      store(res + (at * (H * H) + flat), m);
    }).grid([](const SinkhornCfg&, auto, auto, auto, auto, auto, auto, auto, int N, float) { return Grid{N + 1}; });
Register r2("kept_steps", [](Env& e) {
  SinkhornCfg c;
  c.warps = e.field("warps", c.warps), c.H = e.field("H", c.H), c.steps = e.field("steps", e.big ? 20 : 6);
  const int N = e.big ? 65536 : 13, H = c.H, M = H * H + 2 * H;
  auto mix = random<float>(e, size_t(N) * M, -2, 2), bias = random<float>(e, M), alphas = random<float>(e, 3, .5, 1);
  auto pre = constant<float>(e, size_t(N) * H, NAN), post = constant<float>(e, size_t(N) * H, NAN),
       res = constant<float>(e, size_t(N) * H * H, NAN), kept = constant<float>(e, size_t(N) * c.steps * H * H, NAN);
  Job j;
  j.mbytes = 4e-6 * N * (2 * M + c.steps * H * H);
  const float eps = 1e-4f;
  j.add(kept_steps, c, mix.p, bias.p, pre.p, post.p, res.p, kept.p, alphas.p, N, eps);
  j.check = [=] {
    std::vector<double> wp, wq, wr, wk;
    for (int n = 0; n < N; ++n) {
      auto l = [&](int i, int which) { return mix[size_t(n) * M + i] * alphas[which] + bias[i]; };
      for (int i = 0; i < H; ++i)
        wp.push_back(1 / (1 + std::exp(-l(i, 0))) + eps), wq.push_back(2 / (1 + std::exp(-l(H + i, 1))));
      std::vector<double> m(H * H);
      for (int i = 0; i < H; ++i) {
        double s = 0;
        for (int k = 0; k < H; ++k) s += m[i * H + k] = std::exp(l(2 * H + i * H + k, 2));
        for (int k = 0; k < H; ++k) m[i * H + k] = m[i * H + k] / s + eps;
      }
      auto columns = [&] {
        for (int k = 0; k < H; ++k) {
          double s = eps;
          for (int i = 0; i < H; ++i) s += m[i * H + k];
          for (int i = 0; i < H; ++i) m[i * H + k] /= s;
        }
      };
      columns();
      for (int t = 0; t < c.steps; ++t) {
        wk.insert(wk.end(), m.begin(), m.end());
        if (t + 1 == c.steps) break;
        for (int i = 0; i < H; ++i) {
          double s = eps;
          for (int k = 0; k < H; ++k) s += m[i * H + k];
          for (int k = 0; k < H; ++k) m[i * H + k] /= s;
        }
        columns();
      }
      wr.insert(wr.end(), m.begin(), m.end());
    }
    auto wrong = agree(pre.now(), wp, 1e-5, 1e-5) + agree(post.now(), wq, 1e-5, 1e-5);
    return wrong + agree(res.now(), wr, 1e-5, 1e-4) + agree(kept.now(), wk, 1e-5, 1e-4);
  };
  return j;
});
}  // namespace kept_gates
}  // namespace users
