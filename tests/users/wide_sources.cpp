// wide_sources.cpp - operands of products that are computed from wider numbers on the way.
#include "tests/users/use.h"
namespace users {
namespace wide_sources {
struct WideCfg {
  int BM = 64, BN = 64, BK = 32, warps = 4, stages = 3;
};
// --- activations in floats, weights in bf16: rounded on the way to the tensor cores
auto wide_pointers =
    kernel("user_wide_pointers", [](const WideCfg& c, Ptr<const float> a, Ptr<const bfloat16> b, Ptr<float> o, I32 M,
                                    I32 N, I32 K) {
      num_warps(c.warps);
      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k0 : range(0, K, c.BK, {.stages = c.stages})) {
        auto k = k0 + arange(0, c.BK);
        auto x = load(a + (m.col() * K + k.row()), {.mask = (m < M).col() & (k < K).row(), .other = 0});
        auto y = load(b + (k.col() * N + n.row()), {.mask = (k < K).col() & (n < N).row(), .other = 0});
        acc = dot(cast(x, bf16), y, acc);
      }
      store(o + (m.col() * N + n.row()), acc, {.mask = (m < M).col() & (n < N).row()});
    }).grid([](const WideCfg& c, auto, auto, auto, int M, int N, int) {
      return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
    });
auto wide_views = kernel("user_wide_views", [](const WideCfg& c, Tensor<const float, 2> A, Tensor<const bfloat16, 2> B,
                                               Tensor<float, 2> O) {
                    num_warps(c.warps);
                    auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                    Tile acc = zeros({c.BM, c.BN}, f32);
                    for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                      acc = dot(cast(A.load({m, k}, {c.BM, c.BK}), bf16), B.load({k, n}, {c.BK, c.BN}), acc);
                    O.store({m, n}, acc);
                  }).grid([](const WideCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
// --- keys with a decay per channel in floats (as in gated linear attention), 64 x BK states
auto decayed_keys = kernel("user_decayed_keys", [](const WideCfg& c, Ptr<const bfloat16> k, Ptr<const bfloat16> v,
                                                   Ptr<const float> g, Ptr<float> h, I32 T, I32 K, I32 V) {
                      num_warps(c.warps);
                      auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
                      Tile acc = zeros({c.BM, c.BN}, f32);
                      for (auto t0 : range(0, T, c.BK, {.stages = c.stages})) {
                        auto t = t0 + arange(0, c.BK);
                        auto in = (m < K).col() & (t < T).row();
                        auto x = load(k + (t.row() * K + m.col()), {.mask = in, .other = 0});
                        auto d = load(g + (t.row() * K + m.col()), {.mask = in, .other = 0});
                        auto y = load(v + (t.col() * V + n.row()), {.mask = (t < T).col() & (n < V).row(), .other = 0});
                        acc = dot(cast(cast(x, f32) * exp2(d), bf16), y, acc);
                      }
                      store(h + (m.col() * V + n.row()), acc, {.mask = (m < K).col() & (n < V).row()});
                    }).grid([](const WideCfg& c, auto, auto, auto, auto, int, int K, int V) {
  return Grid{cdiv(K, c.BM), cdiv(V, c.BN)};
});
Job wide_job(Env& e, int which) {
  WideCfg c;
  if (!e.big) c = {32, 32, 16, 4, 2};
  c = {e.field("BM", c.BM), e.field("BN", c.BN), e.field("BK", c.BK), e.field("warps", c.warps),
       e.field("stages", c.stages)};
  const int M = e.field("M", e.big ? 4096 : 50), N = e.field("N", e.big ? 4096 : 37),
            K = e.field("K", e.big ? 4096 : 70);
  auto b = random<bfloat16>(e, size_t(K) * N);
  auto o = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  if (which == 2) {
    auto k = random<bfloat16>(e, size_t(K) * M);
    auto g = random<float>(e, size_t(K) * M);
    j.add(decayed_keys, c, k.p, b.p, g.p, o.p, K, M, N);
    j.check = [=] {
      return agree(o.now(),
                   product(
                       M, N, K, [&](int m, int t) { return k[t * M + m] * std::exp2(g[t * M + m]); }, matrix(b, N)),
                   5e-2, 2e-2);
    };
    return j;
  }
  auto a = random<float>(e, size_t(M) * K);
  if (which == 0)
    j.add(wide_pointers, c, a.p, b.p, o.p, M, N, K);
  else
    j.add(wide_views, c, a.view(M, K), b.view(K, N), o.view(M, N));
  j.check = [=] { return agree(o.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 5e-2, 2e-2); };
  return j;
}
Register r1("wide_pointers", [](Env& e) { return wide_job(e, 0); });
Register r2("wide_views", [](Env& e) { return wide_job(e, 1); });
Register r3("decayed_keys", [](Env& e) { return wide_job(e, 2); });
}  // namespace wide_sources
}  // namespace users
