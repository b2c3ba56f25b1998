// gemms.cpp - products with something before, inside or after them.
#include "tests/users/use.h"
namespace users {
namespace gemms {

struct GemmCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};

Tile gelu(Tile x) { return 0.5f * x * (1.f + erf(x * 0.70710678118f)); }

// --- bias + GELU
auto bias_gelu = kernel("user_bias_gelu", [](const GemmCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                             Tensor<const half, 1> bias, Tensor<half, 2> C) {
                   num_warps(c.warps);
                   auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                   Tile acc = zeros({c.BM, c.BN}, f32);
                   for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                     acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                   auto b = cast(bias.load({n}, {c.BN}), f32).row();
                   C.store({m, n}, cast(gelu(acc + b), f16));
                 }).grid([](const GemmCfg& c, const auto& a, const auto& b, const auto&, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r1("bias_gelu", [](Env& e) {
  int M = e.big ? 4096 : 200, N = e.big ? 4096 : 136, K = e.big ? 4096 : 264;
  auto a = random<half>(e, M * K), b = random<half>(e, K * N), bias = random<half>(e, N);
  auto c = constant<half>(e, M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(bias_gelu, GemmCfg{128, 128, 64, 3, 8}, a.view(M, K), b.view(K, N), bias.view(N), c.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), matrix(b, N), [&](double s, int, int n) {
      s += bias[n];
      return 0.5 * s * (1 + std::erf(s / std::sqrt(2.)));
    });
    return agree(c.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- SwiGLU: silu(A G) * (A U)
auto swiglu = kernel("user_swiglu", [](const GemmCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> G,
                                       Tensor<const half, 2> U, Tensor<half, 2> C) {
                num_warps(c.warps);
                auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                Tile g = zeros({c.BM, c.BN}, f32), u = g;
                for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                  auto a = A.load({m, k}, {c.BM, c.BK});
                  g = dot(a, G.load({k, n}, {c.BK, c.BN}), g);
                  u = dot(a, U.load({k, n}, {c.BK, c.BN}), u);
                }
                C.store({m, n}, cast(silu(g) * u, f16));
              }).grid([](const GemmCfg& c, const auto& a, const auto& g, const auto&, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(g.shape[1], c.BN)};
});
Register r2("swiglu", [](Env& e) {
  int M = e.big ? 4096 : 130, N = e.big ? 8192 : 144, K = e.big ? 4096 : 200;
  auto a = random<half>(e, M * K, -.3, .3), g = random<half>(e, size_t(K) * N),
       u = random<half>(e, size_t(K) * N, -.3, .3);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 4e-9 * M * N * K;
  j.add(swiglu, GemmCfg{128, 128, 64, 3, 8}, a.view(M, K), g.view(K, N), u.view(K, N), c.view(M, N));
  j.check = [=] {
    const auto up = product(M, N, K, matrix(a, K), matrix(u, N));
    auto want = product(M, N, K, matrix(a, K), matrix(g, N),
                        [&](double s, int m, int n) { return s / (1 + std::exp(-s)) * up[m * N + n]; });
    return agree(c.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- weights i8 with a scale per group of rows of B
struct QuantCfg {
  int BM = 64, BN = 128, BK = 64, G = 128, stages = 3, warps = 4, producer = 1, together = 0;
};
auto w8a16 = kernel("user_w8a16", [](const QuantCfg& c, Tensor<const half, 2> A, Tensor<const int8_t, 2> W,
                                     Tensor<const half, 2> S, Tensor<half, 2> C) {
               static_check(c.G % c.BK == 0, "a group must be whole blocks of K");
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               Tile acc = zeros({c.BM, c.BN}, f32);
               for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                 auto s = S.load({k / c.G, n}, {1, c.BN});
                 auto w = cast(W.load({k, n}, {c.BK, c.BN}), f16) * s;
                 acc = dot(A.load({m, k}, {c.BM, c.BK}), w, acc);
               }
               C.store({m, n}, cast(acc, f16));
             }).grid([](const QuantCfg& c, const auto& a, const auto& w, const auto&, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
});
Register r3("w8a16", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 8192 : 144, K = e.big ? 8192 : 384, G = 128;
  auto a = random<half>(e, M * K, -.3, .3);
  auto w = integers<int8_t>(e, size_t(K) * N, -127, 128);
  auto s = random<half>(e, size_t(K / G) * N, 0.001, 0.01);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(w8a16, e.big ? QuantCfg{128, 128, 64, G, 3, 4} : QuantCfg{}, a.view(M, K), w.view(K, N), s.view(K / G, N),
        c.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) { return in_half(w.h[k * N + n] * s[k / G * N + n]); };
    return agree(c.now(), product(M, N, K, matrix(a, K), weight), 4e-3, 2e-3);
  };
  return j;
});

// --- weights of 4 bits: two per byte (rows 2i and 2i+1 of a column), value - 8, scale per group
auto w4a16 = kernel("user_w4a16", [](const QuantCfg& c, Tensor<const half, 2> A, Tensor<const uint8_t, 2> W,
                                     Tensor<const half, 2> S, Tensor<half, 2> C) {
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               Tile acc = zeros({c.BM, c.BN}, f32);
               for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages})) {
                 auto packed = W.load({k / 2, n}, {c.BK / 2, c.BN});
                 auto both = join(packed & 15, packed >> 4);  // [BK/2, BN, 2]
                 auto w = reshape(permute(both, {0, 2, 1}), {c.BK, c.BN});
                 auto s = S.load({k / c.G, n}, {1, c.BN});
                 acc = dot(A.load({m, k}, {c.BM, c.BK}), (cast(w, f16) - 8.f) * s, acc);
               }
               C.store({m, n}, cast(acc, f16));
             }).grid([](const QuantCfg& c, const auto& a, const auto& w, const auto&, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
});
// The same from 32-bit words of eight rows, as GPTQ stores them, with pointers.
auto gptq = kernel("user_gptq", [](const QuantCfg& c, Ptr<const half> A, Ptr<const int32_t> W, Ptr<const half> S,
                                   Ptr<half> C, I32 M, I32 N, I32 K) {
              num_warps(c.warps);
              if (c.together) programs_per_multiprocessor(c.together);
              const Choice roles = c.producer ? Choice::automatic : Choice::never;
              auto m = program_id(0) * c.BM + arange(0, c.BM), n = program_id(1) * c.BN + arange(0, c.BN);
              auto kk = arange(0, c.BK);
              Tile acc = zeros({c.BM, c.BN}, f32);
              auto shift = ((kk % 8) * 4).col();
              for (auto k : range(0, K, c.BK, {.stages = c.stages, .specialize = roles})) {
                auto ak = k + kk;
                auto a = load(A + m.col() * K + ak.row(), {.mask = (m < M).col() & (ak < K).row()});
                auto word = load(W + (ak / 8).col() * N + n.row(), {.mask = (n < N).row() & (ak < K).col()});
                auto s = load(S + (ak / c.G).col() * N + n.row(), {.mask = (n < N).row() & (ak < K).col()});
                auto w = cast(((word >> shift) & 15) - 8, f16) * s;
                acc = dot(a, w, acc);
              }
              store(C + m.col() * N + n.row(), cast(acc, f16), {.mask = (m < M).col() & (n < N).row()});
            }).grid([](const QuantCfg& c, auto*, auto*, auto*, auto*, int M, int N, int) {
  return Grid{cdiv(M, c.BM), cdiv(N, c.BN)};
});
Register r4("w4a16", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 8192 : 144, K = e.big ? 8192 : 384, G = 128;
  auto a = random<half>(e, M * K, -.3, .3);
  auto w = integers<uint8_t>(e, size_t(K / 2) * N, 0, 256);
  auto s = random<half>(e, size_t(K / G) * N, 0.01, 0.1);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(w4a16, e.big ? QuantCfg{128, 128, 64, G, 3, 4} : QuantCfg{}, a.view(M, K), w.view(K / 2, N), s.view(K / G, N),
        c.view(M, N));
  j.check = [=] {
    auto weight = [&](int k, int n) {
      int q = (w.h[k / 2 * N + n] >> (k % 2 * 4) & 15) - 8;
      return in_half(q * s[k / G * N + n]);
    };
    return agree(c.now(), product(M, N, K, matrix(a, K), weight), 4e-3, 2e-3);
  };
  return j;
});
Register r5("gptq", [](Env& e) {
  int M = e.big ? 512 : 70, N = e.big ? 8192 : 144, K = e.big ? 8192 : 384, G = 128;
  auto a = random<half>(e, M * K, -.3, .3);
  auto w = drawn<int32_t>(e, size_t(K / 8) * N, [&] {
    return int32_t(uint32_t(e.uniform() * 65536) * 65536u + uint32_t(e.uniform() * 65536));
  });
  auto s = random<half>(e, size_t(K / G) * N, 0.01, 0.1);
  auto c = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  QuantCfg cfg = e.big ? QuantCfg{128, 128, 64, G, 3, 8} : QuantCfg{};
  cfg.producer = e.field("producer", cfg.producer), cfg.together = e.field("together", cfg.together);
  j.add(gptq, cfg, a.p, w.p, s.p, c.p, M, N, K);
  j.check = [=] {
    auto weight = [&](int k, int n) {
      int q = int(uint32_t(w.h[k / 8 * N + n]) >> (k % 8 * 4) & 15) - 8;
      return in_half(q * s[k / G * N + n]);
    };
    return agree(c.now(), product(M, N, K, matrix(a, K), weight), 4e-3, 2e-3);
  };
  return j;
});

// --- mixture of experts: rows gathered by token, one expert per block of rows (ids padded with T)
struct MoeCfg {
  int BM = 64, BN = 128, BK = 64, stages = 3, warps = 4;
};
auto moe =
    kernel("user_moe", [](const MoeCfg& c, Tensor<const half, 2> X, Tensor<const half, 3> W, Ptr<const int32_t> ids,
                          Ptr<const int32_t> experts, Ptr<const float> gate, Tensor<half, 2> Y, I32 topk) {
      num_warps(c.warps);
      auto tokens = Y.dim(0), N = Y.dim(1), K = X.dim(1);
      auto block = program_id(0), n = program_id(1) * c.BN;
      auto rows = load(ids + block * c.BM + arange(0, c.BM));
      auto live = rows < tokens;
      auto expert = load(experts + block);
      auto kk = arange(0, c.BK);
      auto source = cast(rows / topk, i64).col() * X.stride(0);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
        auto a = load(X.ptr() + source + (k + kk).row(), {.mask = live.col() & (k + kk < K).row()});
        auto w = reshape(W.load({expert, k, n}, {1, c.BK, c.BN}), {c.BK, c.BN});
        acc = dot(a, w, acc);
      }
      acc *= load(gate + rows, {.mask = live}).col();
      auto cols = n + arange(0, c.BN);
      store(Y.ptr() + cast(rows, i64).col() * Y.stride(0) + cols.row(), cast(acc, f16),
            {.mask = live.col() & (cols < N).row()});
    });
Register r6("moe", [](Env& e) {
  int T = e.big ? 4096 : 50, top = 2, E = e.big ? 16 : 4, N = e.big ? 4096 : 144, K = e.big ? 2048 : 136,
      BM = e.big ? 128 : 64;
  // tokens sorted by expert, every expert padded to whole blocks
  std::vector<std::vector<int>> lists(E);
  for (int i = 0; i < T * top; ++i) lists[int(e.uniform() * E)].push_back(i);
  std::vector<int> ids_h, experts_h;
  for (int x = 0; x < E; ++x) {
    while (lists[x].size() % BM) lists[x].push_back(T * top);
    for (int i : lists[x]) ids_h.push_back(i);
    for (size_t b = 0; b < lists[x].size() / BM; ++b) experts_h.push_back(x);
  }
  auto ids = filled<int32_t>(e, ids_h.size(), [&](size_t i) { return ids_h[i]; });
  auto experts = filled<int32_t>(e, experts_h.size(), [&](size_t i) { return experts_h[i]; });
  auto x = random<half>(e, T * K, -.3, .3), w = random<half>(e, size_t(E) * K * N);
  auto gate = random<float>(e, T * top, 0, 1);
  auto y = constant<half>(e, size_t(T) * top * N, NAN);
  MoeCfg c;
  if (e.big) c.BM = 128, c.warps = 4, c.BN = 128;
  Job j;
  j.gflop = 2e-9 * T * top * double(N) * K;
  auto k = moe.grid([n = int(experts_h.size())](const MoeCfg& cfg, const auto&, const auto& W, auto*, auto*, auto*,
                                                const auto&, int) {
    return Grid{n, cdiv(W.shape[2], cfg.BN)};
  });
  j.add(k, c, x.view(T, K), w.view(E, K, N), ids.p, experts.p, gate.p, y.view(T * top, N), top);
  j.check = [=] {
    std::vector<int> expert_of(T * top);
    for (size_t r = 0; r < ids_h.size(); ++r)
      if (ids_h[r] < T * top) expert_of[ids_h[r]] = experts_h[r / BM];
    std::vector<double> want;
    for (int row = 0; row < T * top; ++row) {
      auto one = product(1, N, K, [&](int, int kk) { return x[row / top * K + kk] * gate[row]; },
                         [&](int kk, int n) { return w[(size_t(expert_of[row]) * K + kk) * N + n]; });
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(y.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- implicit GEMM: 2-D convolution, NHWC, weights [R, S, C, K]
struct ConvCfg {
  int BM = 128, BN = 64, BK = 32, stride = 1, pad = 1, stages = 3, warps = 4;
};
auto conv =
    kernel("user_conv2d", [](const ConvCfg& c, Tensor<const half, 4> X, Tensor<const half, 4> W, Tensor<half, 4> Y) {
      num_warps(c.warps);
      auto N = X.dim(0), H = X.dim(1), Wd = X.dim(2), C = X.dim(3);
      auto R = W.dim(0), S = W.dim(1), K = W.dim(3);
      auto P = Y.dim(1), Q = Y.dim(2);
      auto pixel = program_id(0) * c.BM + arange(0, c.BM);
      auto n = pixel / (P * Q), p = pixel / Q % P, q = pixel % Q;
      auto k0 = program_id(1) * c.BN;
      auto cc = arange(0, c.BK), kc = k0 + arange(0, c.BN);
      auto blocks = cdiv(C, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto i : range(0, R * S * blocks, {.stages = c.stages})) {
        auto r = i / (S * blocks), s = i / blocks % S, ch = i % blocks * c.BK + cc;
        auto h = p * c.stride + r - c.pad, w = q * c.stride + s - c.pad;
        auto inside = (h >= 0) & (h < H) & (w >= 0) & (w < Wd) & (n < N);
        auto a = load(X.ptr() + (((n * H + h) * Wd + w) * C).col() + ch.row(), {.mask = inside.col() & (ch < C).row()});
        auto b =
            load(W.ptr() + (((r * S + s) * C + ch) * K).col() + kc.row(), {.mask = (ch < C).col() & (kc < K).row()});
        acc = dot(a, b, acc);
      }
      store(Y.ptr() + (pixel * K).col() + kc.row(), cast(acc, f16), {.mask = (n < N).col() & (kc < K).row()});
    }).grid([](const ConvCfg& c, const auto&, const auto&, const auto& y) {
      return Grid{cdiv(y.shape[0] * y.shape[1] * y.shape[2], c.BM), cdiv(y.shape[3], c.BN)};
    });
Register r7("conv2d", [](Env& e) {
  int N = e.big ? 32 : 2, H = e.big ? 56 : 9, W = e.big ? 56 : 11, C = e.big ? 128 : 24, K = e.big ? 256 : 40, R = 3,
      stride = e.big ? 1 : 2, pad = 1;
  int P = (H + 2 * pad - R) / stride + 1, Q = (W + 2 * pad - R) / stride + 1;
  auto x = random<half>(e, size_t(N) * H * W * C), w = random<half>(e, size_t(R) * R * C * K, -.2, .2);
  auto y = constant<half>(e, size_t(N) * P * Q * K, NAN);
  ConvCfg c;
  c.stride = stride, c.pad = pad;
  if (e.big) c.BN = 128, c.BK = 64;
  Job j;
  j.gflop = 2e-9 * N * P * Q * double(K) * C * R * R;
  j.add(conv, c, x.view(N, H, W, C), w.view(R, R, C, K), y.view(N, P, Q, K));
  j.check = [=] {
    std::vector<double> want(size_t(N) * P * Q * K);
    for (int n = 0; n < N; ++n)
      for (int p = 0; p < P; ++p)
        for (int q = 0; q < Q; ++q)
          for (int k = 0; k < K; ++k) {
            double t = 0;
            for (int r = 0; r < R; ++r)
              for (int s = 0; s < R; ++s) {
                int h = p * stride + r - pad, ww = q * stride + s - pad;
                if (h < 0 || h >= H || ww < 0 || ww >= W) continue;
                for (int ch = 0; ch < C; ++ch)
                  t += x[((n * H + h) * W + ww) * C + ch] * w[((r * R + s) * C + ch) * K + k];
              }
            want[((n * P + p) * Q + q) * K + k] = t;
          }
    return agree(y.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- RMSNorm in front of a product: y = (x * rsqrt(mean x^2 + eps) * g) W, one pass over x
auto rms_gemm = kernel("user_rms_gemm", [](const GemmCfg& c, Tensor<const bfloat16, 2> X, Tensor<const bfloat16, 1> g,
                                           Tensor<const bfloat16, 2> W, Tensor<bfloat16, 2> Y, F32 eps) {
                  num_warps(c.warps);
                  auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                  auto K = X.dim(1);
                  Tile acc = zeros({c.BM, c.BN}, f32), squares = zeros({c.BM, 1}, f32);
                  for (auto k : range(0, K, c.BK, {.stages = c.stages})) {
                    auto x = cast(X.load({m, k}, {c.BM, c.BK}), f32);
                    squares += sum(x * x, axis(1));
                    auto a = cast(x * cast(g.load({k}, {c.BK}), f32).row(), bf16);
                    acc = dot(a, W.load({k, n}, {c.BK, c.BN}), acc);
                  }
                  Y.store({m, n}, cast(acc * rsqrt(squares / cast(K, f32) + eps), bf16));
                }).grid([](const GemmCfg& c, const auto& x, const auto&, const auto& w, const auto&, float) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
});
Register r8("rms_gemm", [](Env& e) {
  int M = e.big ? 4096 : 130, N = e.big ? 4096 : 136, K = e.big ? 4096 : 200;
  auto x = random<bfloat16>(e, M * K), g = random<bfloat16>(e, K, .5, 1.5), w = random<bfloat16>(e, K * N);
  auto y = constant<bfloat16>(e, M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(rms_gemm, GemmCfg{128, 128, 64, 3, 8}, x.view(M, K), g.view(K), w.view(K, N), y.view(M, N), 1e-5f);
  j.check = [=] {
    std::vector<double> scale(M);
    for (int m = 0; m < M; ++m) {
      double q = 0;
      for (int k = 0; k < K; ++k) q += x[m * K + k] * x[m * K + k];
      scale[m] = 1 / std::sqrt(q / K + 1e-5);
    }
    auto want = product(M, N, K, [&](int m, int k) { return x[m * K + k] * g[k]; }, matrix(w, N),
                        [&](double s, int m, int) { return s * scale[m]; });
    return agree(y.now(), want, 5e-2, 1e-2);
  };
  return j;
});

// --- i8 with a scale per row of A and per column of B
auto int8 = kernel("user_int8", [](const GemmCfg& c, Tensor<const int8_t, 2> A, Tensor<const int8_t, 2> B,
                                   Ptr<const float> sa, Ptr<const float> sb, Tensor<bfloat16, 2> C) {
              num_warps(c.warps);
              auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
              auto M = A.dim(0), N = B.dim(0);
              Tile acc = zeros({c.BM, c.BN}, i32);
              for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                acc = dot(A.load({m, k}, {c.BM, c.BK}), trans(B.load({n, k}, {c.BN, c.BK})), acc);
              auto rows = m + arange(0, c.BM), cols = n + arange(0, c.BN);
              auto scale = load(sa + rows, {.mask = rows < M}).col() * load(sb + cols, {.mask = cols < N}).row();
              C.store({m, n}, cast(cast(acc, f32) * scale, bf16));
            }).grid([](const GemmCfg& c, const auto& a, const auto& b, auto*, auto*, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[0], c.BN)};
});
Register r9("int8", [](Env& e) {
  int M = e.big ? 4096 : 200, N = e.big ? 4096 : 144, K = e.big ? 4096 : 272;
  auto a = integers<int8_t>(e, M * K, -128, 128), b = integers<int8_t>(e, K * N, -128, 128);
  auto sa = random<float>(e, M, .001, .01), sb = random<float>(e, N, .001, .01);
  auto c = constant<bfloat16>(e, M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(int8, GemmCfg{128, 256, 128, 3, 8}, a.view(M, K), b.view(N, K), sa.p, sb.p, c.view(M, N));
  j.check = [=] {
    auto want = product(M, N, K, matrix(a, K), [&](int k, int n) { return b[n * K + k]; },
                        [&](double s, int m, int n) { return s * sa[m] * sb[n]; });
    return agree(c.now(), want, 1e-4, 4e-3);
  };
  return j;
});

// --- f64
struct F64Cfg {
  int BM = 64, BN = 64, BK = 16, stages = 2, warps = 4;
};
auto dgemm = kernel("user_dgemm", [](const F64Cfg& c, Tensor<const double, 2> A, Tensor<const double, 2> B,
                                     Tensor<double, 2> C) {
               num_warps(c.warps);
               auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
               Tile acc = zeros({c.BM, c.BN}, f64);
               for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
                 acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
               C.store({m, n}, acc);
             }).grid([](const F64Cfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN)};
});
Register r10("dgemm", [](Env& e) {
  int M = e.big ? 2048 : 100, N = e.big ? 2048 : 90, K = e.big ? 2048 : 70;
  auto a = random<double>(e, M * K), b = random<double>(e, K * N);
  auto c = constant<double>(e, M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(dgemm, F64Cfg{}, a.view(M, K), b.view(K, N), c.view(M, N));
  j.check = [=] {
    return agree(c.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 1e-12, 1e-12);
  };
  return j;
});

// --- many small products, one or several per program
struct SmallCfg {
  int P = 8, M = 16, N = 16, K = 8, warps = 4;
};
template <class T>
auto small_batched(const char* name) {
  return kernel(name,
                [](const SmallCfg& c, Tensor<const T, 3> A, Tensor<const T, 3> B, Tensor<float, 3> C) {
                  num_warps(c.warps);
                  for (int i = 0; i < c.P; ++i) {
                    auto b = program_id(0) * c.P + i;
                    auto x = reshape(A.load({b, 0, 0}, {1, c.M, c.K}), {c.M, c.K});
                    auto y = reshape(B.load({b, 0, 0}, {1, c.K, c.N}), {c.K, c.N});
                    C.store({b, 0, 0}, reshape(dot(x, y), {1, c.M, c.N}));
                  }
                })
      .grid([](const SmallCfg& c, const auto& a, const auto&, const auto&) { return Grid{cdiv(a.shape[0], c.P)}; });
}
auto small_f16 = small_batched<half>("user_small_f16");
auto small_f32 = small_batched<float>("user_small_f32");
template <class T, class Ker>
Job small_job(Env& e, const Ker& k, SmallCfg c) {
  int B = e.big ? 100000 : 19;
  auto a = random<T>(e, size_t(B) * c.M * c.K), b = random<T>(e, size_t(B) * c.K * c.N);
  auto d = constant<float>(e, size_t(B) * c.M * c.N, NAN);
  Job j;
  j.mbytes = 1e-6 * B * (double(c.M) * c.K * sizeof(T) + double(c.K) * c.N * sizeof(T) + 4. * c.M * c.N);
  j.add(k, c, a.view(B, c.M, c.K), b.view(B, c.K, c.N), d.view(B, c.M, c.N));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < B; ++i) {
      auto one = product(c.M, c.N, c.K, matrix(a, c.K, size_t(i) * c.M * c.K), matrix(b, c.N, size_t(i) * c.K * c.N));
      want.insert(want.end(), one.begin(), one.end());
    }
    return agree(d.now(), want, 1e-5, 1e-5);
  };
  return j;
}
Register r11("small_16x16x8", [](Env& e) { return small_job<half>(e, small_f16, {8, 16, 16, 8, 4}); });
Register r12("small_17x33x65", [](Env& e) { return small_job<half>(e, small_f16, {1, 17, 33, 65, 4}); });
Register r13("small_17x33x65_f32", [](Env& e) { return small_job<float>(e, small_f32, {1, 17, 33, 65, 4}); });

// --- split K with atomics into f32, persistent loop written by hand
struct PersistCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto persistent = kernel("user_persistent", [](const PersistCfg& c, Tensor<const bfloat16, 2> A,
                                               Tensor<const bfloat16, 2> B, Tensor<bfloat16, 2> C) {
  num_warps(c.warps);
  auto nm = cdiv(C.dim(0), c.BM), nn = cdiv(C.dim(1), c.BN);
  for (auto t : range(program_id(0), nm * nn, num_programs(0))) {
    auto m = t / nn * c.BM, n = t % nn * c.BN;
    Tile acc = zeros({c.BM, c.BN}, f32);
    for (auto k : range(0, A.dim(1), c.BK, {.stages = c.stages}))
      acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
    C.store({m, n}, cast(acc, bf16));
  }
});
Register r14("persistent", [](Env& e) {
  int M = e.big ? 4096 : 300, N = e.big ? 4096 : 264, K = e.big ? 4096 : 136;
  auto a = random<bfloat16>(e, M * K), b = random<bfloat16>(e, K * N);
  auto c = constant<bfloat16>(e, M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  auto k = persistent.grid(
      [big = e.big](const PersistCfg&, const auto&, const auto&, const auto&) { return Grid{big ? 132 : 3}; });
  j.add(k, PersistCfg{128, 256, 64, 3, 8}, a.view(M, K), b.view(K, N), c.view(M, N));
  j.check = [=] {
    return agree(c.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 3e-2, 5e-3);
  };
  return j;
});
auto splitk = kernel("user_splitk_atomic", [](const PersistCfg& c, Tensor<const half, 2> A, Tensor<const half, 2> B,
                                              Tensor<float, 2> C) {
                num_warps(c.warps);
                auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                Tile acc = zeros({c.BM, c.BN}, f32);
                for (auto k : range(program_id(2) * c.BK, A.dim(1), num_programs(2) * c.BK, {.stages = c.stages}))
                  acc = dot(A.load({m, k}, {c.BM, c.BK}), B.load({k, n}, {c.BK, c.BN}), acc);
                C.atomic_add({m, n}, acc);
              }).grid([](const PersistCfg& c, const auto& a, const auto& b, const auto&) {
  return Grid{cdiv(a.shape[0], c.BM), cdiv(b.shape[1], c.BN), 16};
});
Register r15("splitk", [](Env& e) {
  int M = e.big ? 256 : 100, N = e.big ? 1024 : 136, K = e.big ? 16384 : 600;
  auto a = random<half>(e, M * K), b = random<half>(e, K * N);
  auto c = constant<float>(e, M * N, 0);
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(splitk, PersistCfg{128, 128, 64, 3, 8}, a.view(M, K), b.view(K, N), c.view(M, N));
  j.check = [=] {
    return agree(c.now(), product(M, N, K, matrix(a, K), matrix(b, N)), 1e-3, 1e-4);
  };
  return j;
});

}  // namespace gemms
}  // namespace users
