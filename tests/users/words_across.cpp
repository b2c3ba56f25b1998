// words_across.cpp - products of f32 in tf32 whose operands lie across what tensor cores want: all orders of a matrix
// product, and values behind scores.
#include "tests/users/use.h"
namespace users {
namespace words_across {

// --- C = op(A) op(B)
struct OrderCfg {
  int BM = 128, BN = 128, BK = 32, stages = 3, warps = 8;
  bool ta = true, tb = false;
};
auto words_across = kernel("user_words_across", [](const OrderCfg& c, Tensor<const float, 2> A,
                                                   Tensor<const float, 2> B, Tensor<float, 2> C) {
                      num_warps(c.warps);
                      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                      Tile acc = zeros({c.BM, c.BN}, f32);
                      for (auto k : range(0, c.ta ? A.dim(0) : A.dim(1), c.BK, {.stages = c.stages})) {
                        Tile a = c.ta ? trans(A.load({k, m}, {c.BK, c.BM})) : A.load({m, k}, {c.BM, c.BK});
                        Tile b = c.tb ? trans(B.load({n, k}, {c.BN, c.BK})) : B.load({k, n}, {c.BK, c.BN});
                        acc = dot(a, b, acc, Prec::tf32);
                      }
                      C.store({m, n}, acc);
                    }).grid([](const OrderCfg& c, const auto&, const auto&, const auto& d) {
  return Grid{cdiv(d.shape[0], c.BM), cdiv(d.shape[1], c.BN)};
});
Job order(Env& e, OrderCfg c) {
  const int M = e.big ? 4096 : 150, N = e.big ? 4096 : 140, K = e.big ? 4096 : 100;
  auto a = random<float>(e, size_t(M) * K), b = random<float>(e, size_t(N) * K);
  auto d = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(words_across, c, c.ta ? a.view(K, M) : a.view(M, K), c.tb ? b.view(N, K) : b.view(K, N), d.view(M, N));
  j.check = [=] {
    auto want = product(
        M, N, K, [&](int m, int k) { return c.ta ? a[k * M + m] : a[m * K + k]; },
        [&](int k, int n) { return c.tb ? b[n * K + k] : b[k * N + n]; });
    return agree(d.now(), want, 2e-2, 2e-3);
  };
  return j;
}
OrderCfg fields(Env& e, OrderCfg c) {
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  c.ta = e.field("ta", c.ta), c.tb = e.field("tb", c.tb);
  return c;
}
Register w1("words_tn", [](Env& e) { return order(e, fields(e, {})); });
Register w2("words_tn_deep", [](Env& e) { return order(e, fields(e, {128, 64, 64, 2, 8})); });
Register w3("words_tn_96", [](Env& e) { return order(e, fields(e, {64, 96, 32, 3, 4})); });
Register w4("words_tn_shallow", [](Env& e) { return order(e, fields(e, {64, 64, 16, 3, 4})); });
Register w5("words_tn_wide", [](Env& e) { return order(e, fields(e, {128, 256, 32, 3, 8})); });
Register w6("words_tn_square", [](Env& e) { return order(e, fields(e, {64, 32, 32, 3, 4})); });
Register w7("words_nn", [](Env& e) { return order(e, fields(e, {64, 64, 32, 3, 4, false, false})); });

// --- scores times values: the values lie across
struct ValuesCfg {
  int BM = 64, BN = 32, D = 32;
};
auto words_values =
    kernel("user_words_values", [](const ValuesCfg& c, Tensor<const float, 2> Q, Tensor<const float, 2> K,
                                   Tensor<const float, 2> V, Tensor<float, 2> O) {
      num_warps(4);
      auto m = program_id(0) * c.BM;
      Tile q = Q.load({m, 0}, {c.BM, c.D});
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto i : range(0, K.dim(0), c.BN)) {
        Tile s = dot(q, trans(K.load({i, 0}, {c.BN, c.D})), zeros({c.BM, c.BN}, f32), Prec::tf32);
        s = s * 0.25f + 1.f;
        acc = dot(s, V.load({i, 0}, {c.BN, c.D}), acc, Prec::tf32);
      }
      O.store({m, 0}, acc);
    }).grid([](const ValuesCfg& c, const auto& a, const auto&, const auto&, const auto&) {
      return Grid{cdiv(a.shape[0], c.BM)};
    });
Job values_of(Env& e, ValuesCfg c) {
  const int M = e.big ? 8192 : 80, N = e.big ? 4096 : 96, D = c.D;
  auto q = random<float>(e, size_t(M) * D), k = random<float>(e, size_t(N) * D), v = random<float>(e, size_t(N) * D);
  auto o = constant<float>(e, size_t(M) * D, NAN);
  Job j;
  j.gflop = 4e-9 * M * N * double(D);
  j.add(words_values, c, q.view(M, D), k.view(N, D), v.view(N, D), o.view(M, D));
  j.check = [=] {
    auto s = product(
        M, N, D, matrix(q, D), [&](int kk, int n) { return k[n * D + kk]; },
        [](double x, int, int) { return x * 0.25 + 1; });
    return agree(o.now(),
                 product(
                     M, D, N, [&](int m, int n) { return s[m * N + n]; }, matrix(v, D)),
                 2e-2, 2e-2);
  };
  return j;
}
Register v1("words_values", [](Env& e) { return values_of(e, {}); });
Register v2("words_values_64", [](Env& e) { return values_of(e, {64, 32, 64}); });
Register v3("words_values_deep", [](Env& e) { return values_of(e, {64, 64, 64}); });

}  // namespace words_across
}  // namespace users
