// beside_triton_epilogues.cpp - odd batches, convolutions by boxes and by rows, a fused training epilogue.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_epilogues {

// --- many products of 100 x 100: rows of 200 bytes
struct BmmCfg {
  int BM = 112, BN = 112, BK = 112, stages = 2, warps = 4, fixed = 0;  // fixed: the size, where it is a constant
};
auto bmm100 =
    kernel("user_bmm100", [](const BmmCfg& c, Tensor<const half, 3> A, Tensor<const half, 3> B, Tensor<half, 3> C) {
      num_warps(c.warps);
      auto b = program_id(0), m = program_id(1) * c.BM, n = program_id(2) * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      if (c.fixed) {
        const int S = c.fixed;
        auto first = cast(b, i64) * (S * S);
        auto a = make_view<const half>(A.ptr() + first, {S, S}, {S, 1});
        auto w = make_view<const half>(B.ptr() + first, {S, S}, {S, 1});
        auto y = make_view<half>(C.ptr() + first, {S, S}, {S, 1});
        for (auto k : range(0, S, c.BK, {.stages = c.stages}))
          acc = dot(a.load({m, k}, {c.BM, c.BK}), w.load({k, n}, {c.BK, c.BN}), acc);
        y.store({m, n}, cast(acc, f16));
        return;
      }
      for (auto k : range(0, A.dim(2), c.BK, {.stages = c.stages}))
        acc = dot(A.load({b, m, k}, {c.BM, c.BK}), B.load({b, k, n}, {c.BK, c.BN}), acc);
      C.store({b, m, n}, cast(acc, f16));
    }).grid([](const BmmCfg& c, const auto& a, const auto& b, const auto&) {
      return Grid{a.shape[0], cdiv(a.shape[1], c.BM), cdiv(b.shape[2], c.BN)};
    });
Register r1("bmm100", [](Env& e) {
  BmmCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int L = e.big ? 8192 : 3, M = e.big ? 100 : 50, N = e.big ? 100 : 50, K = e.big ? 100 : 50;
  if (e.field("fixed", 0)) c.fixed = M;
  auto a = random<half>(e, size_t(L) * M * K), b = random<half>(e, size_t(L) * K * N);
  auto y = constant<half>(e, size_t(L) * M * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * double(K) * L;
  j.mbytes = 2e-6 * L * (double(M) * K + K * N + M * N);
  j.add(bmm100, c, a.view(L, M, K), b.view(L, K, N), y.view(L, M, N));
  j.check = [=] {
    std::vector<double> want;
    for (int l = 0; l < L; ++l)
      for (double x : product(M, N, K, matrix(a, K, size_t(l) * M * K), matrix(b, N, size_t(l) * K * N)))
        want.push_back(x);
    return agree(y.now(), want, 1e-2, 2e-3);
  };
  return j;
});

// --- convolution 3 x 3, bias, relu and the largest of 2 x 2, of NHWC: boxes of BH x 16 pixels
struct PoolCfg {
  int BH = 8, BW = 16, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto conv_pool = kernel("user_conv_pool", [](const PoolCfg& c, Tensor<const bfloat16, 4> X, Tensor<const bfloat16, 3> W,
                                             Ptr<const float> bias, Tensor<bfloat16, 4> Y, I32 N) {
                   // X [B, H, W, C], W [9, C, N], Y [B, H / 2, W / 2, N]
                   num_warps(c.warps);
                   auto across = cdiv(X.dim(2), c.BW);
                   auto b = program_id(2), y = program_id(0) / across * c.BH, x = program_id(0) % across * c.BW;
                   auto n = program_id(1) * c.BN;
                   auto steps = cdiv(X.dim(3), c.BK);
                   Tile acc = zeros({c.BH * c.BW, c.BN}, f32);
                   for (auto i : range(0, 9 * steps, 1, {.stages = c.stages})) {
                     auto tap = i / steps, k = i % steps * c.BK;
                     auto a = X.load({b, y + tap / 3 - 1, x + tap % 3 - 1, k}, {c.BH, c.BW, c.BK});
                     acc = dot(reshape(a, {c.BH * c.BW, c.BK}), W.load({tap, k, n}, {c.BK, c.BN}), acc);
                   }
                   auto best = max(reshape(acc, {c.BH / 2, 2, c.BW / 2, 2, c.BN}), axis(3));
                   auto most = reshape(max(best, axis(1)), {c.BH / 2, c.BW / 2, c.BN});
                   auto col = n + arange(0, c.BN);
                   auto v = load(bias + col, {.mask = col < N});
                   Y.store({b, y / 2, x / 2, n}, cast(max(most + reshape(v, {1, 1, c.BN}), 0.f), bf16));
                 }).grid([](const PoolCfg& c, const auto& x, const auto&, auto, const auto&, int n) {
  return Grid{cdiv(x.shape[1], c.BH) * cdiv(x.shape[2], c.BW), cdiv(n, c.BN), x.shape[0]};
});
Register r2("conv_pool", [](Env& e) {
  PoolCfg c;
  if (!e.big) c = {4, 8, 32, 16, 2, 4};
  c.BH = e.field("BH", c.BH), c.BW = e.field("BW", c.BW), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32 : 2, H = e.big ? 112 : 10, W = e.big ? 112 : 14, C = e.big ? 64 : 24, N = e.big ? 128 : 40;
  auto x = random<bfloat16>(e, size_t(B) * H * W * C), w = random<bfloat16>(e, size_t(9) * C * N);
  auto bias = random<float>(e, N);
  auto y = constant<bfloat16>(e, size_t(B) * H / 2 * W / 2 * N, NAN);
  Job j;
  j.gflop = 2e-9 * B * H * W * 9. * C * N;
  j.add(conv_pool, c, x.view(B, H, W, C), w.view(9, C, N), bias.p, y.view(B, H / 2, W / 2, N), N);
  j.check = [=] {
    std::vector<double> want(size_t(B) * H / 2 * W / 2 * N, 0);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int v = 0; v < W; ++v)
          for (int n = 0; n < N; ++n) {
            double s = bias[n];
            for (int t = 0; t < 9; ++t) {
              const int yy = h + t / 3 - 1, xx = v + t % 3 - 1;
              if (yy < 0 || xx < 0 || yy >= H || xx >= W) continue;
              for (int k = 0; k < C; ++k)
                s += x[((size_t(b) * H + yy) * W + xx) * C + k] * w[(size_t(t) * C + k) * N + n];
            }
            double& o = want[((size_t(b) * (H / 2) + h / 2) * (W / 2) + v / 2) * N + n];
            o = std::max(o, s);
          }
    return agree(y.now(), want, 2e-2, 1e-2);
  };
  return j;
});

// --- rest + dropout(gelu(X W + b)), and the mask as words of 32 bits along a row; four columns share a Philox counter
struct DropCfg {
  int BM = 64, BN = 128, BK = 64, stages = 4, warps = 8, group = 8;
};
auto drop_gemm =
    kernel("user_drop_gemm", [](const DropCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> W,
                                Tensor<const half, 2> rest, Ptr<const half> bias, Tensor<half, 2> Y,
                                Tensor<uint32_t, 2> kept, I64 seed, U32 threshold, F32 scale) {
      num_warps(c.warps);
      auto [pm, pn] = swizzle2d(program_id(0), program_id(1), num_programs(0), num_programs(1), c.group);
      auto m = pm * c.BM, n = pn * c.BN;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, X.dim(1), c.BK, {.stages = c.stages}))
        acc = dot(X.load({m, k}, {c.BM, c.BK}), W.load({k, n}, {c.BK, c.BN}), acc);
      auto col = n + arange(0, c.BN);
      auto v = acc + cast(load(bias + col, {.mask = col < Y.dim(1)}), f32).row();
      auto y = 0.5f * v * (1.f + erf(v * 0.70710678f));
      auto at = (m + arange(0, c.BM)).col() * (Y.dim(1) / 4) + (n / 4 + arange(0, c.BN / 4)).row();
      auto r = randint4(seed, at);
      auto words = reshape(join(join(r[0], r[2]), join(r[1], r[3])), {c.BM, c.BN});
      auto keep = words >= threshold;
      auto bits = reshape(cast(keep, u32), {c.BM, c.BN / 32, 32}) << reshape(cast(arange(0, 32), u32), {1, 1, 32});
      kept.store({m, n / 32}, squeeze(sum(bits, axis(2)), 2));
      auto z = where(keep, y * scale, 0.f) + cast(rest.load({m, n}, {c.BM, c.BN}), f32);
      Y.store({m, n}, cast(z, f16));
    }).grid([](const DropCfg& c, const auto& x, const auto& w, const auto&...) {
      return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[1], c.BN)};
    });
Register r3("drop_gemm", [](Env& e) {
  DropCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps), c.group = e.field("group", c.group);
  const int M = e.big ? 8192 : 43, N = e.big ? 4096 : 96, K = e.big ? 1024 : 72;
  auto x = random<half>(e, size_t(M) * K), w = random<half>(e, size_t(K) * N, -.1, .1);
  auto rest = random<half>(e, size_t(M) * N), bias = random<half>(e, N);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  auto kept = filled<uint32_t>(e, size_t(M) * N / 32, [](size_t) { return 0u; });
  const uint32_t threshold = 429496730u;
  Job j;
  j.gflop = 2e-9 * M * N * double(K);
  j.add(drop_gemm, c, x.view(M, K), w.view(K, N), rest.view(M, N), bias.p, y.view(M, N), kept.view(M, N / 32), 1234,
        threshold, 1 / .9f);
  j.check = [=]() -> std::string {
    auto bits = kept.now();
    auto keeps = [&](int m, int n) { return reference_philox(1234, (size_t(m) * N + n) / 4)[n % 4] >= threshold; };
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n)
        if ((bits[(size_t(m) * N + n) / 32] >> n % 32 & 1) != keeps(m, n))
          return "mask at " + std::to_string(m * N + n);
    auto then = [&](double s, int m, int n) {
      const double v = s + bias[n];
      return rest[size_t(m) * N + n] + (keeps(m, n) ? .5 * v * (1 + std::erf(v / std::sqrt(2.))) / .9 : 0);
    };
    return agree(y.now(), product(M, N, K, matrix(x, K), matrix(w, N), then), 1e-2, 2e-3);
  };
  return j;
});

// --- the input's gradient of a convolution 3 x 3 with stride 2 (NHWC): pixels of one parity meet the same taps
struct DgradCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8, always = 0;
};
auto dgrad_s2 =
    kernel("user_dgrad_s2", [](const DgradCfg& c, Tensor<const bfloat16, 2> dY, Tensor<const bfloat16, 2> W,
                               Tensor<bfloat16, 2> dX, I32 OH, I32 OW, I32 total) {
      // dY [B OH OW, K], W [9 K, C], dX [B 2OH 2OW, C]; total = B OH OW pixels of each parity
      num_warps(c.warps);
      auto parity = 3 - program_id(2), ph = parity / 2, pw = parity % 2;
      auto n = program_id(1) * c.BN;
      auto i = program_id(0) * c.BM + arange(0, c.BM);
      auto b = i / (OH * OW), h = i / OW % OH, w = i % OW;
      auto K = dY.dim(1);
      auto steps = cdiv(K, c.BK);
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto s : range(0, (1 + ph) * (1 + pw) * steps, 1,
                          {.stages = c.stages, .specialize = c.always ? Choice::always : Choice::automatic})) {
        auto tap = s / steps, k = s % steps * c.BK;
        auto th = tap / (1 + pw), tw = tap % (1 + pw);
        auto r = where(ph == 1, 2 * th, 1), q = where(pw == 1, 2 * tw, 1);
        auto y = h + where(ph == 1, 1 - th, 0), x = w + where(pw == 1, 1 - tw, 0);
        auto rows = where((i < total) & (y < OH) & (x < OW), (b * OH + y) * OW + x, -1);
        acc = dot(dY.gather(rows, k, c.BK), W.load({(r * 3 + q) * K + k, n}, {c.BK, c.BN}), acc);
      }
      auto to = (b * 2 * OH + 2 * h + ph) * (2 * OW) + 2 * w + pw;
      dX.scatter(where(i < total, to, -1), n, cast(acc, bf16));
    }).grid([](const DgradCfg& c, const auto&, const auto&, const auto& dx, int, int, int total) {
      return Grid{cdiv(total, c.BM), cdiv(dx.shape[1], c.BN), 4};
    });
Register r4("dgrad_s2", [](Env& e) {
  DgradCfg c;
  if (!e.big) c = {32, 32, 16, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  c.always = e.field("always", c.always);
  const int B = e.big ? 32 : 2, H = e.big ? 28 : 5, W = e.big ? 28 : 7, K = e.big ? 256 : 48, C = e.big ? 256 : 40;
  auto dy = random<bfloat16>(e, size_t(B) * H * W * K), w = random<bfloat16>(e, size_t(9) * K * C);
  auto dx = constant<bfloat16>(e, size_t(B) * 4 * H * W * C, NAN);
  Job j;
  j.gflop = 2e-9 * B * H * W * 9. * C * K;
  j.add(dgrad_s2, c, dy.view(B * H * W, K), w.view(9 * K, C), dx.view(B * 4 * H * W, C), H, W, B * H * W);
  j.check = [=] {
    std::vector<double> want(size_t(B) * 4 * H * W * C, 0);
    for (int b = 0; b < B; ++b)
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x)
          for (int t = 0; t < 9; ++t) {
            const int yy = 2 * y + t / 3 - 1, xx = 2 * x + t % 3 - 1;
            if (yy < 0 || xx < 0) continue;
            for (int n = 0; n < C; ++n)
              for (int k = 0; k < K; ++k)
                want[((size_t(b) * 2 * H + yy) * 2 * W + xx) * C + n] +=
                    dy[((size_t(b) * H + y) * W + x) * K + k] * w[(size_t(t) * K + k) * C + n];
          }
    return agree(dx.now(), want, 2e-2, 1e-2);
  };
  return j;
});

}  // namespace beside_triton_epilogues
}  // namespace users
