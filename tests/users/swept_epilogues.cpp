// swept_epilogues.cpp - gradients of weights, a fused MLP, the best of a product, int8 with requantisation, swept.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace swept_epilogues {

// --- dW += X^T dY over many rows, in parts of them, and db += sums of dY's columns
struct TnCfg {
  int BM = 128, BN = 128, BK = 64, splits = 8, stages = 0, warps = 0;
};
auto gemm_tn_reduce =
    kernel("user_gemm_tn_reduce", [](const TnCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> dY,
                                     Tensor<float, 2> dW, Tensor<float, 1> db) {
      // X [R, M], dY [R, N]
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN, R = X.dim(0);
      auto per = cdiv(cdiv(R, c.splits), c.BK) * c.BK;
      auto first = program_id(2) * per, last = min(first + per, R);
      Tile acc = zeros({c.BM, c.BN}, f32), columns = zeros({1, c.BN}, f32);
      for (auto r : range(first, last, c.BK, {.stages = c.stages})) {
        auto y = dY.load({r, n}, {c.BK, c.BN});
        acc = dot(trans(X.load({r, m}, {c.BK, c.BM})), y, acc);
        columns += sum(y, axis(0));
      }
      dW.atomic_add({m, n}, acc);
      if_(program_id(0) == 0, [&] { db.atomic_add({n}, squeeze(columns, 0)); });
    }).grid([](const TnCfg& c, const auto& x, const auto& y, const auto&...) {
      return Grid{cdiv(x.shape[1], c.BM), cdiv(y.shape[1], c.BN), c.splits};
    });
Register r1("gemm_tn_reduce", [](Env& e) {
  TnCfg c;
  if (!e.big) c = {32, 32, 32, 3, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.splits = e.field("splits", c.splits), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 65536 : 301, M = e.big ? 1024 : 56, N = e.big ? 1024 : 75;
  auto x = random<bfloat16>(e, size_t(R) * M), y = random<bfloat16>(e, size_t(R) * N);
  auto w = constant<float>(e, size_t(M) * N, 0), b = constant<float>(e, N, 0);
  Job j;
  j.gflop = 2e-9 * M * N * double(R);
  restore(e, j, w, b);
  j.inTurn = true;
  j.add(gemm_tn_reduce, c, x.view(R, M), y.view(R, N), w.view(M, N), b.view(N));
  j.check = [=] {
    auto xt = [&](int m, int r) { return x[size_t(r) * M + m]; };
    auto bad = agree(w.now(), product(M, N, R, xt, matrix(y, N)), 1e-3, 1e-3);
    if (!bad.empty()) return "dW " + bad;
    std::vector<double> sums(N);
    for (int r = 0; r < R; ++r)
      for (int n = 0; n < N; ++n) sums[n] += y[size_t(r) * N + n];
    bad = agree(b.now(), sums, 1e-3, 1e-3);
    return bad.empty() ? bad : "db " + bad;
  };
  return j;
});

// --- (silu(x W1) * (x W2)) W3, the hidden dimension in blocks, x stays
struct MlpCfg {
  int BM = 64, BH = 64, D = 128, stages = 0, warps = 0;
};
auto mlp_fused =
    kernel("user_mlp_fused", [](const MlpCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W1,
                                Tensor<const bfloat16, 2> W2, Tensor<const bfloat16, 2> W3, Tensor<bfloat16, 2> Y) {
      // X [T, D], W1 and W2 [D, H], W3 [H, D]
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM;
      auto x = X.load({m, 0}, {c.BM, c.D});
      Tile acc = zeros({c.BM, c.D}, f32);
      for (auto h : range(0, W1.dim(1), c.BH, {.stages = c.stages})) {
        auto g = dot(x, W1.load({0, h}, {c.D, c.BH})), u = dot(x, W2.load({0, h}, {c.D, c.BH}));
        acc = dot(cast(silu(g) * u, bf16), W3.load({h, 0}, {c.BH, c.D}), acc);
      }
      Y.store({m, 0}, cast(acc, bf16));
    }).grid([](const MlpCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r2("mlp_fused", [](Env& e) {
  MlpCfg c;
  if (!e.big) c = {32, 32, 48, 0, 0};
  c.BM = e.field("BM", c.BM), c.BH = e.field("BH", c.BH), c.D = e.field("D", c.D);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 65536 : 77, D = c.D, H = e.big ? 4 * D : 88;
  auto x = random<bfloat16>(e, size_t(T) * D), w1 = random<bfloat16>(e, size_t(D) * H, -.3, .3),
       w2 = random<bfloat16>(e, size_t(D) * H, -.3, .3), w3 = random<bfloat16>(e, size_t(H) * D, -.3, .3);
  auto o = constant<bfloat16>(e, size_t(T) * D, NAN);
  Job j;
  j.gflop = 6e-9 * T * double(D) * H;
  j.add(mlp_fused, c, x.view(T, D), w1.view(D, H), w2.view(D, H), w3.view(H, D), o.view(T, D));
  j.check = [=] {
    auto g = product(T, H, D, matrix(x, D), matrix(w1, H)), u = product(T, H, D, matrix(x, D), matrix(w2, H));
    auto hidden = [&](int t, int h) {
      const double v = g[size_t(t) * H + h];
      return v / (1 + std::exp(-v)) * u[size_t(t) * H + h];
    };
    return agree(o.now(), product(T, D, H, hidden, matrix(w3, D)), 2e-2, 1e-2);
  };
  return j;
});

// --- for each query the 8 keys of the largest scores
struct TopCfg {
  int BM = 64, BN = 64, D = 128, stages = 0, warps = 0;
};
constexpr int kBest = 8;
auto topk_gemm = kernel("user_topk_gemm", [](const TopCfg& c, Tensor<const half, 2> Q, Tensor<const half, 2> K,
                                             Tensor<float, 2> score, Tensor<int, 2> which) {
                   // Q [T, D], K [N, D]; score, which [T, 8]
                   if (c.warps) num_warps(c.warps);
                   auto m = program_id(0) * c.BM, N = K.dim(0);
                   auto q = Q.load({m, 0}, {c.BM, c.D});
                   Tile best = full({c.BM, kBest}, -INFINITY, f32), at = full({c.BM, kBest}, -1, i32);
                   for (auto n : range(0, N, c.BN, {.stages = c.stages})) {
                     auto s = dot(q, trans(K.load({n, 0}, {c.BN, c.D})));
                     s = where((n + arange(0, c.BN)).row() < N, s, -INFINITY);
                     auto [v, i] = topk(s, kBest, axis(1));
                     auto both = cat(best, v, 1), places = cat(at, i + n, 1);
                     auto [w, k] = topk(both, kBest, axis(1));
                     best = w;
                     at = take(places, k, 1);
                   }
                   score.store({m, 0}, best);
                   which.store({m, 0}, at);
                 }).grid([](const TopCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[0], c.BM)}; });
Register r3("topk_gemm", [](Env& e) {
  TopCfg c;
  if (!e.big) c = {16, 32, 40, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.D = e.field("D", c.D);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 37, N = e.big ? 4096 : 203, D = c.D;
  auto q = random<half>(e, size_t(T) * D), k = random<half>(e, size_t(N) * D);
  auto score = constant<float>(e, size_t(T) * kBest, NAN);
  auto which = constant<int>(e, size_t(T) * kBest, -7);
  Job j;
  j.gflop = 2e-9 * T * double(N) * D;
  j.add(topk_gemm, c, q.view(T, D), k.view(N, D), score.view(T, kBest), which.view(T, kBest));
  j.check = [=]() -> std::string {
    auto kt = [&](int d, int n) { return k[size_t(n) * D + d]; };
    const auto all = product(T, N, D, matrix(q, D), kt);
    const auto i = which.now();
    std::vector<double> want, named;
    for (int t = 0; t < T; ++t) {
      std::vector<double> row(all.begin() + size_t(t) * N, all.begin() + size_t(t + 1) * N);
      std::vector<int> seen(i.begin() + t * kBest, i.begin() + (t + 1) * kBest);
      for (int x : seen) {
        if (x < 0 || x >= N) return "no place: " + std::to_string(x);
        named.push_back(row[x]);
      }
      std::sort(seen.begin(), seen.end());
      if (std::unique(seen.begin(), seen.end()) != seen.end()) return "one key twice for query " + std::to_string(t);
      std::partial_sort(row.begin(), row.begin() + kBest, row.end(), std::greater<>());
      want.insert(want.end(), row.begin(), row.begin() + kBest);
    }
    auto bad = agree(score.now(), want, 1e-3, 1e-4);
    if (!bad.empty()) return "score " + bad;
    bad = agree(named, want, 1e-3, 1e-4);
    return bad.empty() ? bad : "place " + bad;
  };
  return j;
});

// --- int8 product, zero points of columns by sums of rows, scales of rows and columns, int8 again
struct I8Cfg {
  int BM = 128, BN = 128, BK = 128, stages = 0, warps = 0;
};
auto i8_gemm_requant =
    kernel("user_i8_gemm_requant", [](const I8Cfg& c, Tensor<const int8_t, 2> A, Tensor<const int8_t, 2> B,
                                      Tensor<const float, 1> sa, Tensor<const float, 1> sb, Tensor<const int, 1> zb,
                                      Tensor<int8_t, 2> C) {
      // A [M, K], B [N, K], C = round(sa sb sum(a (b - zb)))
      if (c.warps) num_warps(c.warps);
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, i32), rows = zeros({c.BM, 1}, i32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
        auto a = A.load({m, k}, {c.BM, c.BK});
        acc = dot(a, trans(B.load({n, k}, {c.BN, c.BK})), acc);
        rows += sum(a, axis(1));
      }
      auto x = cast(acc - rows * zb.load({n}, {c.BN}).row(), f32);
      x = x * sa.load({m}, {c.BM}).col() * sb.load({n}, {c.BN}).row();
      C.store({m, n}, saturate(rint(x), i8));
    }).grid([](const I8Cfg& c, const auto& a, const auto& b, const auto&...) {
      return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
    });
Register r4("i8_gemm_requant", [](Env& e) {
  I8Cfg c;
  if (!e.big) c = {32, 32, 64, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 4096 : 61, N = e.big ? 8192 : 83, K = e.big ? 4096 : 144;
  auto a = integers<int8_t>(e, size_t(M) * K, -128, 128), b = integers<int8_t>(e, size_t(N) * K, -128, 128);
  auto sa = random<float>(e, M, .01, .03), sb = random<float>(e, N, .02, .06);
  auto zb = integers<int>(e, N, -20, 20);
  auto o = constant<int8_t>(e, size_t(M) * N, 0);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(i8_gemm_requant, c, a.view(M, K), b.view(N, K), sa.view(M), sb.view(N), zb.view(N), o.view(M, N));
  j.check = [=]() -> std::string {
    const auto got = o.now();
    size_t off = 0;
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        int64_t sum = 0;
        for (int k = 0; k < K; ++k) sum += int(a.at(size_t(m) * K + k)) * (int(b.at(size_t(n) * K + k)) - zb.at(n));
        const double x = double(sum) * sa[m] * sb[n];
        const int want = int(std::clamp(std::nearbyint(x), -128., 127.)), have = got[size_t(m) * N + n];
        // f32 may round the other way next to a half
        if (have != want && std::abs(std::abs(x - std::floor(x)) - .5) > 1e-3)
          return "element " + std::to_string(m) + ", " + std::to_string(n) + ": " + std::to_string(have) +
                 " instead of " + std::to_string(want);
        off += std::abs(have - want) > 1;
      }
    return off ? "off by more than one" : "";
  };
  return j;
});
}  // namespace swept_epilogues
}  // namespace users
