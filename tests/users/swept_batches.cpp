// swept_batches.cpp - experts, convolution, few rows, small matrices, swept.
#include "tests/users/use.h"
namespace users {
namespace swept_batches {

// --- mixture of experts: places (token, choice) sorted by expert and padded to whole blocks of BM
struct MoeCfg {
  int BM = 64, BN = 128, BK = 64, topk = 4, stages = 0, warps = 0;
};
auto moe_gemm =
    kernel("user_moe_gemm", [](const MoeCfg& c, Tensor<const bfloat16, 2> A, Tensor<const bfloat16, 3> W,
                               Tensor<const int, 1> places, Tensor<const int, 1> experts, Tensor<const float, 1> weight,
                               Tensor<bfloat16, 2> C) {
      // A [tokens, K], W [experts, N, K], C [tokens * topk, N]; places of padding are tokens * topk
      if (c.warps) num_warps(c.warps);
      auto n = program_id(0) * c.BN, block = program_id(1);
      auto expert = experts.load({block});
      auto place = places.load({block * c.BM}, {c.BM});
      auto token = place / c.topk;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(A.gather(token, k, c.BK), trans(W.load({only(expert), n, k}, {c.BN, c.BK})), acc);
      auto w = load(weight.ptr() + place, {.mask = place < C.dim(0)});
      C.scatter(place, n, cast(acc * w.col(), bf16));
    }).grid([](const MoeCfg& c, const auto&, const auto& w, const auto&, const auto& experts, const auto&...) {
      return Grid{cdiv(w.shape[1], c.BN), experts.shape[0]};
    });
Register r1("moe_gemm", [](Env& e) {
  MoeCfg c;
  if (!e.big) c = {16, 32, 32, 2, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? e.field("T", 512) : 45, E = e.big ? 32 : 3, K = e.big ? 2048 : 136, N = e.big ? 3072 : 75;
  std::vector<int> places, experts;
  for (int x = 0; x < E; ++x) {
    const size_t first = places.size();
    for (int t = 0; t < T; ++t)
      for (int i = 0; i < c.topk; ++i)  // different experts of a token
        if ((t * 7 + t / E + i * (E / c.topk)) % E == x) places.push_back(t * c.topk + i);
    while ((places.size() - first) % c.BM) places.push_back(T * c.topk);
    for (size_t b = first; b < places.size(); b += c.BM) experts.push_back(x);
  }
  auto a = random<bfloat16>(e, size_t(T) * K), w = random<bfloat16>(e, size_t(E) * N * K);
  auto top = random<float>(e, size_t(T) * c.topk, 0, 1);
  auto p = repeated<int>(e, places.size(), places), x = repeated<int>(e, experts.size(), experts);
  auto o = constant<bfloat16>(e, size_t(T) * c.topk * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * c.topk * double(N) * K;
  j.add(moe_gemm, c, a.view(T, K), w.view(E, N, K), p.view(places.size()), x.view(experts.size()), top.view(T * c.topk),
        o.view(T * c.topk, N));
  j.check = [=] {
    std::vector<double> want(size_t(T) * c.topk * N, NAN);
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == T * c.topk) continue;
      for (int n = 0; n < N; ++n) {
        double sum = 0;
        for (int k = 0; k < K; ++k)
          sum += a[size_t(places[i] / c.topk) * K + k] * w[(size_t(experts[i / c.BM]) * N + n) * K + k];
        want[size_t(places[i]) * N + n] = sum * top[places[i]];
      }
    }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- 3x3 convolution, NHWC, padding 1, as a product of gathered rows
struct ConvCfg {
  int BM = 128, BN = 64, BK = 32, C = 64, S = 1, stages = 0, warps = 0;
};
auto conv_implicit = kernel("user_conv_implicit", [](const ConvCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> W,
                                                     Tensor<half, 2> Y, I32 H, I32 Wd, I32 P, I32 Q) {
                       // X [N * H * W, C], W [9, C, K], Y [N * P * Q, K]
                       if (c.warps) num_warps(c.warps);
                       auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                       auto row = m + arange(0, c.BM);
                       auto q = row % Q, p = row / Q % P, image = row / Q / P;
                       const int blocks = cdiv(c.C, c.BK);
                       Tile acc = zeros({c.BM, c.BN}, f32);
                       for (auto i : range(0, 9 * blocks, 1, {.stages = c.stages})) {
                         auto tap = i / blocks, ch = i % blocks * c.BK;
                         auto y = p * c.S + tap / 3 - 1, x = q * c.S + tap % 3 - 1;
                         auto inside = (y >= 0) & (y < H) & (x >= 0) & (x < Wd);
                         auto from = where(inside, (image * H + y) * Wd + x, -1);
                         acc = dot(X.gather(from, ch, c.BK), W.load({only(tap), ch, n}, {c.BK, c.BN}), acc);
                       }
                       Y.store({m, n}, cast(acc, f16));
                     }).grid([](const ConvCfg& c, const auto&, const auto& w, const auto& y, int, int, int, int) {
  return Grid{cdiv(y.shape[0], c.BM), cdiv(w.shape[2], c.BN)};
});
Register r2("conv_implicit", [](Env& e) {
  ConvCfg c;
  if (!e.big) c = {32, 32, 16, 24, 1, 0, 0};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK), c.C = e.field("C", c.C);
  c.S = e.field("S", c.S), c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? (c.C > 128 ? 32 : 128) : 2, H = e.big ? 56 : 9, Wd = e.big ? 56 : 7, C = c.C,
            K = e.big ? C : 37;
  const int P = (H - 1) / c.S + 1, Q = (Wd - 1) / c.S + 1, M = B * P * Q;
  auto x = random<half>(e, size_t(B) * H * Wd * C), w = random<half>(e, size_t(9) * C * K);
  auto o = constant<half>(e, size_t(M) * K, NAN);
  Job j;
  j.gflop = 2e-9 * M * 9. * C * K;
  j.add(conv_implicit, c, x.view(B * H * Wd, C), w.view(9, C, K), o.view(M, K), H, Wd, P, Q);
  j.check = [=] {
    std::vector<double> want(size_t(M) * K);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k) {
        const int q = m % Q, p = m / Q % P, b = m / Q / P;
        double sum = 0;
        for (int t = 0; t < 9; ++t) {
          const int yy = p * c.S + t / 3 - 1, xx = q * c.S + t % 3 - 1;
          if (yy < 0 || yy >= H || xx < 0 || xx >= Wd) continue;
          for (int i = 0; i < C; ++i)
            sum += x[((size_t(b) * H + yy) * Wd + xx) * C + i] * w[(size_t(t) * C + i) * K + k];
        }
        want[size_t(m) * K + k] = sum;
      }
    return agree(o.now(), want, 1e-2, 1e-2);
  };
  return j;
});

// --- y = x W^T of few rows. DOT 0: sums of products, 1: x W^T by dot, 2: (W x^T)^T by dot
struct GemvCfg {
  int M = 4, BN = 16, BK = 256, DOT = 0, stages = 0, warps = 0;
};
auto gemv_batch =
    kernel("user_gemv_batch", [](const GemvCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 2> W,
                                 Tensor<bfloat16, 2> Y) {
      // X [M, K], W [N, K], Y [M, N]
      if (c.warps) num_warps(c.warps);
      auto n = program_id(0) * c.BN;
      Tile acc = c.DOT == 2 ? zeros({c.BN, c.M}, f32) : zeros({c.M, c.BN}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages})) {
        auto x = X.load({0, k}, {c.M, c.BK}), w = W.load({n, k}, {c.BN, c.BK});
        if (c.DOT == 0)
          acc += squeeze(sum(expand_dims(cast(x, f32), 1) * expand_dims(cast(w, f32), 0), axis(2)), 2);
        else if (c.DOT == 1)
          acc = dot(x, trans(w), acc);
        else
          acc = dot(w, trans(x), acc);
      }
      Y.store({0, n}, cast(c.DOT == 2 ? trans(acc) : acc, bf16));
    }).grid([](const GemvCfg& c, const auto&, const auto& w, const auto&) { return Grid{cdiv(w.shape[0], c.BN)}; });
Register r3("gemv_batch", [](Env& e) {
  GemvCfg c;
  if (!e.big) c = {3, 16, 64, 0, 0, 0};
  c.M = e.field("M", c.M), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK), c.DOT = e.field("DOT", c.DOT);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int M = c.M, N = e.big ? 28672 : 77, K = e.big ? 8192 : 200;
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(N) * K);
  auto o = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.mbytes = 2e-6 * N * K;
  j.add(gemv_batch, c, x.view(M, K), w.view(N, K), o.view(M, N));
  j.check = [=] {
    auto wt = [&](int k, int n) { return w[size_t(n) * K + k]; };
    return agree(o.now(), product(M, N, K, matrix(x, K), wt), 1e-2, 1e-2);
  };
  return j;
});

// --- batches of small square matrices, P of them in a program: D = alpha A B + beta C + bias
struct BmmCfg {
  int S = 32, P = 4, F32 = 0, warps = 0;
};
template <class T>
auto small_product(const char* name) {
  return kernel(name,
                [](const BmmCfg& c, Tensor<const T, 3> A, Tensor<const T, 3> B, Tensor<const T, 3> C,
                   Tensor<const T, 1> bias, Tensor<T, 3> D, tile::F32 alpha, tile::F32 beta) {
                  if (c.warps) num_warps(c.warps);
                  auto b = program_id(0) * c.P;
                  Tile x;
                  if (c.P == 1) {
                    auto box = [&](const Tensor<const T, 3>& t) { return t.load({only(b), 0, 0}, {c.S, c.S}); };
                    x = dot(box(A), box(B)) * alpha + cast(box(C), f32) * beta + cast(bias.load({0}, {c.S}), f32).row();
                    D.store({only(b), 0, 0}, cast(x, dtype_of<T>()));
                  } else {
                    auto box = [&](const Tensor<const T, 3>& t) { return t.load({b, 0, 0}, {c.P, c.S, c.S}); };
                    x = dot(box(A), box(B)) * alpha + cast(box(C), f32) * beta +
                        reshape(cast(bias.load({0}, {c.S}), f32), {1, 1, c.S});
                    D.store({b, 0, 0}, cast(x, dtype_of<T>()));
                  }
                })
      .grid([](const BmmCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.P)}; });
}
auto bmm_f16 = small_product<half>("user_bmm_small");
auto bmm_f32 = small_product<float>("user_bmm_small_f32");
template <class T>
void small_job(Env& e, Job& j, const BmmCfg& c,
               const Kernel<BmmCfg, Tensor<const T, 3>, Tensor<const T, 3>, Tensor<const T, 3>, Tensor<const T, 1>,
                            Tensor<T, 3>, tile::F32, tile::F32>& k) {
  const int S = c.S, B = e.big ? (1 << 26) / (S * S) : 7;
  const size_t n = size_t(B) * S * S;
  auto x = random<T>(e, n), y = random<T>(e, n), z = random<T>(e, n), bias = random<T>(e, S);
  auto o = constant<T>(e, n, NAN);
  j.mbytes = 4e-6 * n * sizeof(T);
  j.add(k, c, x.view(B, S, S), y.view(B, S, S), z.view(B, S, S), bias.view(S), o.view(B, S, S), .75f, -.5f);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      auto one =
          product(S, S, S, matrix(x, S, size_t(b) * S * S), matrix(y, S, size_t(b) * S * S),
                  [&](double sum, int m, int i) { return .75 * sum - .5 * z[(size_t(b) * S + m) * S + i] + bias[i]; });
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(o.now(), want, sizeof(T) == 2 ? 4e-3 : 1e-5, sizeof(T) == 2 ? 2e-3 : 1e-5);
  };
}
Register r4("bmm_small", [](Env& e) {
  BmmCfg c;
  if (!e.big) c = {24, 2, 0, 0};
  c.S = e.field("S", c.S), c.P = e.field("P", c.P), c.F32 = e.field("F32", c.F32), c.warps = e.field("warps", c.warps);
  Job j;
  if (c.F32)
    small_job<float>(e, j, c, bmm_f32);
  else
    small_job<half>(e, j, c, bmm_f16);
  return j;
});
}  // namespace swept_batches
}  // namespace users
