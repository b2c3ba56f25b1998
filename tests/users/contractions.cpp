// contractions.cpp - products with something around them: a tensor against two factors at once, f32 out of three bf16
// products, blocks of the sum left out, outputs of 8 bits with their largest value, split sums in a fixed order.
#include "tests/users/use.h"
namespace users {
namespace contractions {

// --- matricised tensor times Khatri-Rao product: Y[i, r] = sum over j, k of X[i, j, k] B[j, r] C[k, r]
struct KhatriCfg {
  int BI = 128, BK = 64, R = 64, stages = 3, warps = 8;
};
auto mttkrp =
    kernel("user_mttkrp", [](const KhatriCfg& c, Tensor<const half, 3> X, Tensor<const float, 2> B,
                             Tensor<const half, 2> C, Tensor<float, 2> Y) {
      num_warps(c.warps);
      auto i = program_id(0) * c.BI;
      Tile acc = zeros({c.BI, c.R}, f32);
      for (auto j : range(0, X.dim(1))) {
        Tile slice = zeros({c.BI, c.R}, f32);
        for (auto k : range(0, X.dim(2), c.BK, {.stages = c.stages}))
          slice = dot(reshape(X.load({i, j, k}, {c.BI, 1, c.BK}), {c.BI, c.BK}), C.load({k, 0}, {c.BK, c.R}), slice);
        acc += slice * B.load({j, 0}, {c.R}).row();
      }
      Y.store({i, 0}, acc);
    }).grid([](const KhatriCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BI)}; });
Register r1("mttkrp", [](Env& e) {
  int I = e.big ? 16384 : 70, J = e.big ? 64 : 5, K = e.big ? 256 : 48, R = e.big ? 64 : 32;
  auto x = random<half>(e, size_t(I) * J * K), c = random<half>(e, size_t(K) * R);
  auto b = random<float>(e, size_t(J) * R), y = constant<float>(e, size_t(I) * R, NAN);
  Job job;
  job.gflop = 2e-9 * I * double(J) * K * R;
  job.add(mttkrp,
          e.big ? KhatriCfg{e.field("BI", 128), e.field("BK", 64), 64, e.field("stages", 3), e.field("warps", 8)}
                : KhatriCfg{32, 32, 32, 2, 4},
          x.view(I, J, K), b.view(J, R), c.view(K, R), y.view(I, R));
  job.check = [=] {
    std::vector<double> want(size_t(I) * R);
    for (int i = 0; i < I; ++i)
      for (int j = 0; j < J; ++j)
        for (int r = 0; r < R; ++r) {
          double s = 0;
          for (int k = 0; k < K; ++k) s += x[(size_t(i) * J + j) * K + k] * c[size_t(k) * R + r];
          want[size_t(i) * R + r] += s * b[size_t(j) * R + r];
        }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return job;
});

// --- f32 products out of three bf16 ones: x = high + low, and what low meets low is dropped
struct ThreeCfg {
  int BM = 128, BN = 128, BK = 32, stages = 3, warps = 8;
};
auto three_products = kernel("user_bf16x3", [](const ThreeCfg& c, Tensor<const float, 2> A, Tensor<const float, 2> B,
                                               Tensor<float, 2> C) {
                        num_warps(c.warps);
                        auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                        auto parts = [](const Tile& x) {
                          auto high = cast(x, bf16);
                          return std::pair{high, cast(x - cast(high, f32), bf16)};
                        };
                        Tile acc = zeros({c.BM, c.BN}, f32);
                        for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                          auto [ah, al] = parts(A.load({m, k}, {c.BM, c.BK}));
                          auto [bh, bl] = parts(B.load({k, n}, {c.BK, c.BN}));
                          acc = dot(al, bh, acc);
                          acc = dot(ah, bl, acc);
                          acc = dot(ah, bh, acc);
                        }
                        C.store({m, n}, acc);
                      }).grid([](const ThreeCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(b.shape[1], c.BN), cdiv(a.shape[0], c.BM)};
});
Register r2("bf16x3", [](Env& e) {
  int M = e.big ? 4096 : 70, N = e.big ? 4096 : 52, K = e.big ? 4096 : 90;
  auto a = random<float>(e, size_t(M) * K), b = random<float>(e, size_t(K) * N);
  auto c = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(three_products,
        e.big ? ThreeCfg{e.field("BM", 128), e.field("BN", 128), e.field("BK", 32), e.field("stages", 3),
                         e.field("warps", 8)}
              : ThreeCfg{32, 32, 32, 2, 4},
        a.view(M, K), b.view(K, N), c.view(M, N));
  j.check = [=] { return agree(c.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 4e-4, 1e-4); };
  return j;
});

// --- blocks of the sum are left out where a table says so: loads and product stand in a branch
struct MaskedCfg {
  int BM = 128, BN = 128, BK = 64, warps = 8;
};
auto masked_sum = kernel("user_masked_sum", [](const MaskedCfg& c, Tensor<const bfloat16, 2> A,
                                               Tensor<const bfloat16, 2> B, Tensor<const uint8_t, 2> wanted,
                                               Tensor<const bfloat16, 1> bias, Tensor<bfloat16, 2> C) {
                    num_warps(c.warps);
                    auto m = program_id(0), n = program_id(1) * c.BN;
                    Tile acc = broadcast_to(cast(bias.load({n}, {c.BN}), f32).row(), {c.BM, c.BN});
                    Tile used = 0;
                    for (auto k : range(0, cdiv(A.dim(1), c.BK)))
                      if_(wanted.load({m, k}) != 0, [&] {
                        acc = dot(A.load({m * c.BM, k * c.BK}, {c.BM, c.BK}), B.load({k * c.BK, n}, {c.BK, c.BN}), acc);
                        used += 1;
                      });
                    if_(used == 0, [&] { acc = full({c.BM, c.BN}, -1, f32); });
                    C.store({m * c.BM, n}, cast(acc, bf16));
                  }).grid([](const MaskedCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r3("masked_sum", [](Env& e) {
  int M = e.big ? 4096 : 130, N = e.big ? 4096 : 72, K = e.big ? 4096 : 100;
  const MaskedCfg cfg = e.big ? MaskedCfg{128, e.field("BN", 128), 64, e.field("warps", 8)} : MaskedCfg{32, 32, 32, 4};
  int tm = (M + cfg.BM - 1) / cfg.BM, tk = (K + cfg.BK - 1) / cfg.BK;
  auto a = random<bfloat16>(e, size_t(M) * K), b = random<bfloat16>(e, size_t(K) * N), bias = random<bfloat16>(e, N);
  auto w = filled<uint8_t>(e, size_t(tm) * tk, [&](size_t i) { return i / tk == 1 ? 0 : (i * 7 / 3) % 2; });
  auto c = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 1e-9 * M * double(N) * K;
  j.add(masked_sum, cfg, a.view(M, K), b.view(K, N), w.view(tm, tk), bias.view(N), c.view(M, N));
  j.check = [=] {
    auto want = product(
        M, N, K, [&](int m, int k) { return w.h[m / cfg.BM * tk + k / cfg.BK] ? a[size_t(m) * K + k] : 0.; },
        matrix(b, N),
        [&](double s, int m, int n) {
          bool any = false;
          for (int k = 0; k < tk; ++k) any |= w.h[m / cfg.BM * tk + k] != 0;
          return any ? s + bias[n] : -1;
        });
    return agree(c.now(), want, 2e-2, 8e-3);
  };
  return j;
});

// --- a layer of training in 8 bits: gelu of the product as e4m3 with last step's scale, the same turned, the largest
// value for the next step, and the sums of the columns
struct AmaxCfg {
  int BM = 128, BN = 128, BK = 128, stages = 3, warps = 8;
};
auto gemm_amax = kernel("user_gemm_amax", [](const AmaxCfg& c, Tensor<const fp8_e4m3, 2> A, Tensor<const fp8_e4m3, 2> B,
                                             Tensor<fp8_e4m3, 2> C, Tensor<fp8_e4m3, 2> CT, Ptr<uint32_t> amax,
                                             Tensor<float, 1> sums, F32 scale_in, F32 scale_out) {
                   // A [M, K], B [N, K], C [M, N], CT [N, M]
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                     acc = dot(A.load({m, k}, {c.BM, c.BK}), trans(B.load({n, k}, {c.BN, c.BK})), acc);
                   acc *= scale_in;
                   auto y = acc * sigmoid(1.702f * acc);
                   atomic_max(amax, bitcast(max(abs(y)), u32), {.order = Order::relaxed});
                   sums.atomic_add({n}, squeeze(sum(y, axis(0)), 0));
                   auto q = saturate(y * scale_out, f8e4m3);
                   C.store({m, n}, q);
                   CT.store({n, m}, trans(q));
                 }).grid([](const AmaxCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
});
Register r4("gemm_amax", [](Env& e) {
  int M = e.big ? 4096 : 70, N = e.big ? 4096 : 96, K = e.big ? 4096 : 160;
  auto a = random<fp8_e4m3>(e, size_t(M) * K), b = random<fp8_e4m3>(e, size_t(N) * K);
  auto c = constant<fp8_e4m3>(e, size_t(M) * N, 0), ct = constant<fp8_e4m3>(e, size_t(M) * N, 0);
  auto amax = constant<uint32_t>(e, 1, 0);
  auto sums = constant<float>(e, N, 0);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(gemm_amax,
        e.big ? AmaxCfg{128, e.field("BN", 128), 128, e.field("stages", 3), e.field("warps", 8)}
              : AmaxCfg{32, 32, 32, 2, 4},
        a.view(M, K), b.view(N, K), c.view(M, N), ct.view(N, M), amax.p, sums.view(N), 0.25f, 16.f);
  j.check = [=] {
    std::vector<double> columns(N);
    double top = 0;
    auto want = product(
        M, N, K, matrix(a, K), [&](int k, int n) { return b[size_t(n) * K + k]; },
        [&](double s, int, int n) {
          s *= .25;
          s /= 1 + std::exp(-1.702 * s);
          columns[n] += s;
          top = std::max(top, std::abs(s));
          return 16 * s;
        });
    std::vector<double> turned(want.size());
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) turned[size_t(n) * M + m] = want[size_t(m) * N + n];
    auto wrong = agree(c.now(), want, .1, .08);
    if (wrong.empty()) wrong = agree(ct.now(), turned, .1, .08);
    if (wrong.empty()) wrong = agree(sums.now(), columns, 2e-2, 2e-3);
    if (wrong.empty()) wrong = agree(std::vector<float>{std::bit_cast<float>(amax.now()[0])}, {top}, 1e-3, 1e-3);
    return wrong;
  };
  return j;
});

// --- parts of the sum are added one after the other, the last one rounds: the same bits in every run
struct TurnsCfg {
  int BM = 128, BN = 128, BK = 64, parts = 4, stages = 3, warps = 8;
};
auto in_turns = kernel("user_splitk_turns", [](const TurnsCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                               Tensor<float, 2> S, Ptr<int32_t> turn, Tensor<half, 2> C) {
                  num_warps(c.warps);
                  auto tile = program_id(0), part = program_id(1);
                  auto across = cdiv(B.dim(1), c.BN);
                  auto m = tile / across * c.BM, n = tile % across * c.BN;
                  auto per = cdiv(cdiv(A.dim(1), c.BK), c.parts) * c.BK;
                  Tile acc = zeros({c.BM, c.BN}, f32);
                  for (auto k : range(part * per, min(part * per + per, A.dim(1)), c.BK, {.stages = c.stages}))
                    acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                  while_([&] { return atomic_add(turn + tile, 0, {.order = Order::acquire}) != part; }, [&] {});
                  if_(part > 0, [&] { acc += S.load({m, n}, {c.BM, c.BN}); });
                  if_(
                      part == c.parts - 1,
                      [&] {
                        C.store({m, n}, cast(acc, f16));
                      },
                      [&] {
                        S.store({m, n}, acc);
                      });
                  atomic_exchange(turn + tile, where(part == c.parts - 1, 0, part + 1), {.order = Order::release});
                }).grid([](const TurnsCfg& c, const auto& a, const auto& b, const auto&...) {
  return Grid{cdiv(a.shape[0], c.BM) * cdiv(b.shape[1], c.BN), c.parts};
});
Register r5("splitk_turns", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 1024 : 56, K = e.big ? 16384 : 300;
  auto a = random<half>(e, size_t(M) * K), b = random<half>(e, size_t(K) * N);
  auto s = constant<float>(e, size_t(M) * N, NAN);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  auto turn = constant<int32_t>(e, 256, 0);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K;
  j.add(in_turns,
        e.big ? TurnsCfg{128, e.field("BN", 128), 64, 4, e.field("stages", 4), e.field("warps", 8)}
              : TurnsCfg{32, 32, 32, 3, 2, 4},
        a.view(M, K), b.view(K, N), s.view(M, N), turn.p, c.view(M, N));
  j.check = [=] { return agree(c.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 2e-2, 2e-3); };
  return j;
});

}  // namespace contractions
}  // namespace users
