// beside_triton_products.cpp - GEMMs with real epilogues and prologues: qkv_rope, gemm_everything, int2_gemm
#include "tests/users/use.h"
namespace users {
namespace beside_triton_products {

// --- RMS norm fused ahead of one GEMM to q, k, v; rope (halves) on the q and k columns, bias
struct QkvCfg {
  int BM = 128, BN = 128, BK = 64, D = 64, roped = 2560;
};
auto qkv_rope =
    kernel("user_qkv_rope", [](const QkvCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 1> gamma,
                               Tensor<const bfloat16, 2> W, Tensor<const bfloat16, 1> bias, Tensor<const int, 1> pos,
                               Tensor<const float, 2> cosines, Tensor<const float, 2> sines, Tensor<bfloat16, 2> out,
                               F32 eps) {  // X [M, K], W [N, K], tables [positions, D / 2]
      auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32), squares = zeros({c.BM, 1}, f32);
      for (auto k : range(0, X.dim(1), c.BK)) {
        auto x = cast(X.load({m, k}, {c.BM, c.BK}), f32);
        squares += sum(x * x, axis(1));
        auto g = cast(gamma.load({k}, {c.BK}), f32);
        acc = dot(cast(x * g.row(), bf16), trans(W.load({n, k}, {c.BN, c.BK})), acc);
      }
      auto rstd = rsqrt(squares / cast(X.dim(1), f32) + eps);
      Tile y = acc * rstd + cast(bias.load({n}, {c.BN}), f32).row();
      if_(n < c.roped, [&] {
        const int H = c.BN / c.D, half = c.D / 2;
        auto p = pos.load({m}, {c.BM});
        auto cs = expand_dims(cosines.gather(p, 0, half), 1), sn = expand_dims(sines.gather(p, 0, half), 1);
        auto [a, b] = split(permute(reshape(y, {c.BM, H, 2, half}), {0, 1, 3, 2}));
        auto turned = join(a * cs - b * sn, b * cs + a * sn);
        y = reshape(permute(turned, {0, 1, 3, 2}), {c.BM, c.BN});
      });
      out.store({m, n}, cast(y, bf16));
    }).grid([](const QkvCfg& c, const auto& x, const auto&, const auto& w, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
    });
Register r1("qkv_rope", [](Env& e) {
  const int M = e.big ? 4096 : 93, K = e.big ? 2048 : 200, heads = e.big ? 32 : 4, kv = e.big ? 8 : 2, D = e.big ? 64 : 16;
  const int N = (heads + 2 * kv) * D, P = e.big ? 8192 : 150;
  QkvCfg c{e.field("BM", e.big ? 128 : 64), e.field("BN", e.big ? 128 : 32), e.field("BK", e.big ? 64 : 32), D,
           (heads + kv) * D};
  auto x = random<bfloat16>(e, size_t(M) * K), w = random<bfloat16>(e, size_t(N) * K, -.2, .2);
  auto gamma = random<bfloat16>(e, K, .5, 1.5), bias = random<bfloat16>(e, N);
  auto pos = integers<int>(e, M, 0, P);
  auto angle = random<float>(e, size_t(P) * D / 2, -3, 3);
  auto cs = filled<float>(e, size_t(P) * D / 2, [&](size_t i) { return std::cos(angle.at(i)); });
  auto sn = filled<float>(e, size_t(P) * D / 2, [&](size_t i) { return std::sin(angle.at(i)); });
  auto out = constant<bfloat16>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * K * N;
  j.add(qkv_rope, c, x.view(M, K), gamma.view(K), w.view(N, K), bias.view(N), pos.view(M), cs.view(P, D / 2),
        sn.view(P, D / 2), out.view(M, N), 1e-5f);
  j.check = [=] {
    std::vector<double> y(size_t(M) * N);
    for (int m = 0; m < M; ++m) {
      double s = 0;
      for (int k = 0; k < K; ++k) s += x[size_t(m) * K + k] * x[size_t(m) * K + k];
      const double r = 1 / std::sqrt(s / K + 1e-5);
      for (int n = 0; n < N; ++n) {
        double a = 0;
        for (int k = 0; k < K; ++k) a += x[size_t(m) * K + k] * gamma[k] * w[size_t(n) * K + k];
        y[size_t(m) * N + n] = a * r + bias[n];
      }
      for (int h = 0; h < heads + kv; ++h)
        for (int d = 0; d < D / 2; ++d) {
          double &a = y[size_t(m) * N + h * D + d], &b = y[size_t(m) * N + h * D + D / 2 + d];
          const double C = cs[size_t(pos.at(m)) * D / 2 + d], S = sn[size_t(pos.at(m)) * D / 2 + d], a0 = a;
          a = a * C - b * S, b = b * C + a0 * S;
        }
    }
    return agree(out.now(), y, 3e-2, 2e-2);
  };
  return j;
});

// --- f16 GEMM + bias + GELU + dropout by counter + residual, e4m3 out with a given scale, largest value by atomics
struct EveryCfg {
  int BM = 128, BN = 128, BK = 64, warps = 8;
};
auto gemm_everything =
    kernel("user_gemm_everything",
           [](const EveryCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> W, Tensor<const half, 1> bias,
              Tensor<const half, 2> residual, Tensor<fp8_e4m3, 2> out, Ptr<float> amax, F32 scale, F32 drop, I32 seed) {
             if (c.warps) num_warps(c.warps);
             auto [pm, pn] = swizzle2d(program_id(0), program_id(1), num_programs(0), num_programs(1), 8);
             auto m = pm * c.BM, n = pn * c.BN;
             Tile acc = zeros({c.BM, c.BN}, f32);
             for (auto k : range(0, A.dim(1), c.BK))
               acc = dot(A.load({m, k}, {c.BM, c.BK}), trans(W.load({n, k}, {c.BN, c.BK})), acc);
             auto x = acc + cast(bias.load({n}, {c.BN}), f32).row();
             x = 0.5f * x * (1.f + erf(x * float(M_SQRT1_2)));
             auto rows = (m + arange(0, c.BM)).col(), columns = (n + arange(0, c.BN)).row();
             auto keep = rand(seed, rows * W.dim(0) + columns) >= drop;
             x = where(keep, x / (1.f - drop), 0.f) + cast(residual.load({m, n}, {c.BM, c.BN}), f32);
             auto inside = (rows < A.dim(0)) & (columns < W.dim(0));
             atomic_max(amax, max(where(inside, abs(x), 0.f)), {.order = Order::relaxed});
             out.store({m, n}, cast(clamp(x * scale, -448.f, 448.f), f8e4m3));
           })
        .grid([](const EveryCfg& c, const auto& a, const auto& w, const auto&...) {
          return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
        });
Register r2("gemm_everything", [](Env& e) {
  const int M = e.big ? 4096 : 77, N = e.big ? 4096 : 103, K = e.big ? 1024 : 72;
  EveryCfg c{e.field("BM", e.big ? 128 : 32), e.field("BN", e.big ? 128 : 32), e.field("BK", e.big ? 64 : 32),
             e.field("warps", e.big ? 8 : 4)};
  auto a = random<half>(e, size_t(M) * K), w = random<half>(e, size_t(N) * K, -.3, .3), bias = random<half>(e, N),
       res = random<half>(e, size_t(M) * N);
  auto out = constant<fp8_e4m3>(e, size_t(M) * N, 0);
  auto amax = constant<float>(e, 1, 0);
  const float scale = 37.5f, drop = .1f;
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(gemm_everything, c, a.view(M, K), w.view(N, K), bias.view(N), res.view(M, N), out.view(M, N), amax.p, scale,
        drop, 1234);
  j.check = [=]() -> std::string {
    double most = 0;
    auto want = product(M, N, K, matrix(a, K), [&](int k, int n) { return w[size_t(n) * K + k]; },
                        [&](double s, int m, int n) {
                          double x = s + bias[n];
                          x = .5 * x * (1 + std::erf(x * M_SQRT1_2));
                          const bool keep = double(reference_philox(1234, uint64_t(m) * N + n)[0] >> 8) * 0x1p-24 >= drop;
                          x = (keep ? x / (1 - double(drop)) : 0) + res[size_t(m) * N + n];
                          most = std::max(most, std::abs(x));
                          return std::clamp(x * scale, -448., 448.);
                        });
    auto first = agree(amax.now(), {most}, 1e-3, 1e-3);
    return first.empty() ? agree(out.now(), want, .05, .066) : "amax " + first;
  };
  return j;
});

// --- weights of 2 bits, 16 a word along K; groups of 64 with an f16 scale and a zero of 2 bits (16 a word along N)
struct Int2Cfg {
  int BM = 16, BN = 128, BK = 64, stages = 0, warps = 0;
};
auto int2_gemm = kernel("user_int2_gemm", [](const Int2Cfg& c, Tensor<const half, 2> A, Tensor<const uint32_t, 2> Q,
                                             Tensor<const half, 2> S, Tensor<const uint32_t, 2> Z, Tensor<half, 2> C) {
                   // A [M, K], Q [K / 16, N], S [K / 64, N], Z [K / 64, N / 16]
                   if (c.warps) num_warps(c.warps);
                   auto m = program_id(1) * c.BM, n = program_id(0) * c.BN;
                   const int G = c.BK / 64;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                     auto w = unpack(Q.load({k / 16, n}, {c.BK / 16, c.BN}), 2, axis(0), f16);
                     auto s = S.load({k / 64, n}, {G, c.BN});
                     auto z = unpack(Z.load({k / 64, n / 16}, {G, c.BN / 16}), 2, axis(1), f16);
                     w = (w - repeat(z, 64, axis(0))) * repeat(s, 64, axis(0));
                     acc = dot(A.load({m, k}, {c.BM, c.BK}), w, acc);
                   }
                   C.store({m, n}, cast(acc, f16));
                 }).grid([](const Int2Cfg& c, const auto& a, const auto& q, const auto&...) {
  return Grid{cdiv(q.shape[1], c.BN), cdiv(a.shape[0], c.BM)};
});
Job int2(Env& e, bool many) {
  const int M = many ? (e.big ? 2048 : 70) : e.big ? 16 : 13, K = e.big ? (many ? 4096 : 8192) : 192,
            N = e.big ? (many ? 8192 : 28672) : 208;
  Int2Cfg c{e.field("BM", many ? (e.big ? 128 : 32) : 16), e.field("BN", e.big ? (many ? 128 : 64) : 32),
            e.field("BK", 64), e.field("stages", 0), e.field("warps", 0)};
  auto a = random<half>(e, size_t(M) * K), s = random<half>(e, size_t(K / 64) * N, .02, .1);
  auto word = [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); };
  auto q = drawn<uint32_t>(e, size_t(K / 16) * N, word), z = drawn<uint32_t>(e, size_t(K / 64) * (N / 16), word);
  auto out = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * double(N) * K, j.mbytes = 1e-6 * N * double(K) / 4;
  j.add(int2_gemm, c, a.view(M, K), q.view(K / 16, N), s.view(K / 64, N), z.view(K / 64, N / 16), out.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), [&](int k, int n) {
      const int v = q.at(size_t(k / 16) * N + n) >> (2 * (k % 16)) & 3;
      const int zero = z.at(size_t(k / 64) * (N / 16) + n / 16) >> (2 * (n % 16)) & 3;
      return (v - zero) * s[size_t(k / 64) * N + n];
    });
    return agree(out.now(), want, 1e-2, 5e-3);
  };
  return j;
}
Register r3("int2_gemm_16", [](Env& e) { return int2(e, false); });
Register r3b("int2_gemm_2048", [](Env& e) { return int2(e, true); });
}  // namespace beside_triton_products
}  // namespace users
