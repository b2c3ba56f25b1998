// many_products.cpp - products of several matrices at once: batches of small ones, and a matrix for every head.
#include "tests/users/use.h"
namespace users {
namespace many_products {

// --- C[b] = A[b] B[b], several b in a program
struct BatchCfg {
  int BB = 2, BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto batched = kernel("user_batched_dot", [](const BatchCfg& c, Tensor<const half, 3> A, Tensor<const half, 3> B,
                                             Tensor<float, 3> C) {
                 num_warps(c.warps);
                 auto b = program_id(2) * c.BB, m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                 Tile acc = zeros({c.BB, c.BM, c.BN}, f32);
                 for (auto k : range(0, A.dim(2), c.BK, {.stages = c.stages}))
                   acc = dot(A.load({b, m, k}, {c.BB, c.BM, c.BK}), B.load({b, k, n}, {c.BB, c.BK, c.BN}), acc);
                 C.store({b, m, n}, acc);
               }).grid([](const BatchCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(b.shape[2], c.BN), cdiv(a.shape[1], c.BM), cdiv(a.shape[0], c.BB)};
});
Register r1("batched_dot", [](Env& e) {
  const int L = e.big ? 256 : 3, M = e.big ? 512 : 70, N = e.big ? 512 : 56, K = e.big ? 512 : 96;
  auto a = random<half>(e, size_t(L) * M * K), b = random<half>(e, size_t(L) * K * N);
  auto c = constant<float>(e, size_t(L) * M * N, NAN);
  BatchCfg tiles = e.big ? BatchCfg{1, 128, 128, 64, 3, 8} : BatchCfg{2, 32, 32, 32, 2, 4};
  tiles.BB = e.field("BB", tiles.BB), tiles.BM = e.field("BM", tiles.BM), tiles.BN = e.field("BN", tiles.BN);
  tiles.BK = e.field("BK", tiles.BK), tiles.stages = e.field("stages", tiles.stages);
  tiles.warps = e.field("warps", tiles.warps);
  Job j;
  j.gflop = 2e-9 * L * M * N * double(K);
  j.add(batched, tiles, a.view(L, M, K), b.view(L, K, N), c.view(L, M, N));
  j.check = [=] {
    std::vector<double> want;
    for (int l = 0; l < L; ++l) {
      const auto one = product(M, N, K, matrix(a, K, size_t(l) * M * K), matrix(b, N, size_t(l) * K * N));
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(c.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- rows of every head times the head's own matrix: Y[t, h] = silu(X[t, h] W[h])
struct HeadCfg {
  int BT = 64, BH = 4, D = 64, warps = 4;
};
auto headwise = kernel("user_headwise", [](const HeadCfg& c, Tensor<const bfloat16, 3> X, Tensor<const bfloat16, 3> W,
                                           Tensor<bfloat16, 3> Y) {
                  num_warps(c.warps);
                  auto t = program_id(0) * c.BT, h = program_id(1) * c.BH;
                  auto x = permute(X.load({t, h, 0}, {c.BT, c.BH, c.D}), {1, 0, 2});
                  auto y = dot(x, W.load({h, 0, 0}, {c.BH, c.D, c.D}));
                  Y.store({t, h, 0}, cast(permute(silu(y), {1, 0, 2}), bf16));
                }).grid([](const HeadCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BT), cdiv(x.shape[1], c.BH)};
});
Register r2("headwise", [](Env& e) {
  const int T = e.big ? 16384 : 70, H = e.big ? 32 : 6, D = e.big ? 64 : 32;
  auto x = random<bfloat16>(e, size_t(T) * H * D), w = random<bfloat16>(e, size_t(H) * D * D);
  auto y = constant<bfloat16>(e, size_t(T) * H * D, NAN);
  HeadCfg tiles = e.big ? HeadCfg{} : HeadCfg{32, 4, 32, 4};
  tiles.BT = e.field("BT", tiles.BT), tiles.BH = e.field("BH", tiles.BH), tiles.warps = e.field("warps", tiles.warps);
  Job j;
  j.mbytes = 4e-6 * T * H * D;
  j.add(headwise, tiles, x.view(T, H, D), w.view(H, D, D), y.view(T, H, D));
  j.check = [=] {
    std::vector<double> want;
    for (int t = 0; t < T; ++t)
      for (int h = 0; h < H; ++h)
        for (int n = 0; n < D; ++n) {
          double sum = 0;
          for (int k = 0; k < D; ++k) sum += x[(size_t(t) * H + h) * D + k] * w[(size_t(h) * D + k) * D + n];
          want.push_back(sum / (1 + std::exp(-sum)));
        }
    return agree(y.now(), want, 1e-2, 1e-2);
  };
  return j;
});

}  // namespace many_products
}  // namespace users
