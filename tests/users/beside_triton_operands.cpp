// beside_triton_operands.cpp - a depthwise convolution as the operand of a product, a packed triangle, a gradient of
// weights in 8 bits.
#include "tests/users/use.h"
namespace users {
namespace beside_triton_operands {

// --- MobileNet: silu of a depthwise 3 x 3 is the operand of the pointwise product (NHWC)
struct DwPwCfg {
  int BH = 8, BW = 16, BN = 256, BK = 32, stages = 2, warps = 8;
};
auto dw_pw = kernel("user_dw_pw", [](const DwPwCfg& c, Tensor<const bfloat16, 4> X, Tensor<const float, 2> D,
                                     Tensor<const bfloat16, 2> P, Tensor<bfloat16, 4> Y) {
               // X [B, H, W, C], D [9, C], P [C, N], Y [B, H, W, N]
               num_warps(c.warps);
               auto across = cdiv(X.dim(2), c.BW);
               auto b = program_id(2), y = program_id(0) / across * c.BH, x = program_id(0) % across * c.BW;
               auto n = program_id(1) * c.BN;
               Tile acc = zeros({c.BH * c.BW, c.BN}, f32);
               for (auto k : range(0, X.dim(3), c.BK, {.stages = c.stages})) {
                 Tile s = zeros({c.BH, c.BW, c.BK}, f32);
                 for (int t = 0; t < 9; ++t)
                   s += cast(X.load({b, y + (t / 3 - 1), x + (t % 3 - 1), k}, {c.BH, c.BW, c.BK}), f32) *
                        reshape(D.load({t, k}, {c.BK}), {1, 1, c.BK});
                 auto a = reshape(cast(silu(s), bf16), {c.BH * c.BW, c.BK});
                 acc = dot(a, P.load({k, n}, {c.BK, c.BN}), acc);
               }
               Y.store({b, y, x, n}, reshape(cast(acc, bf16), {c.BH, c.BW, c.BN}));
             }).grid([](const DwPwCfg& c, const auto& x, const auto&, const auto& p, const auto&) {
  return Grid{cdiv(x.shape[1], c.BH) * cdiv(x.shape[2], c.BW), cdiv(p.shape[1], c.BN), x.shape[0]};
});
Register r1("dw_pw", [](Env& e) {
  DwPwCfg c;
  if (!e.big) c = {4, 8, 32, 16, 2, 4};
  c.BH = e.field("BH", c.BH), c.BW = e.field("BW", c.BW), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 32 : 2, H = e.big ? 56 : 7, W = e.big ? 56 : 11, C = e.big ? 256 : 24, N = e.big ? 256 : 40;
  auto x = random<bfloat16>(e, size_t(B) * H * W * C), p = random<bfloat16>(e, size_t(C) * N);
  auto d = random<float>(e, size_t(9) * C);
  auto y = constant<bfloat16>(e, size_t(B) * H * W * N, NAN);
  Job j;
  j.gflop = 2e-9 * B * H * W * double(C) * N;
  j.mbytes = 2e-6 * B * H * W * (C + N);
  j.add(dw_pw, c, x.view(B, H, W, C), d.view(9, C), p.view(C, N), y.view(B, H, W, N));
  j.check = [=] {
    auto a = [&](int m, int k) {
      const int b = m / (H * W), h = m / W % H, v = m % W;
      double s = 0;
      for (int t = 0; t < 9; ++t) {
        const int yy = h + t / 3 - 1, xx = v + t % 3 - 1;
        if (yy >= 0 && xx >= 0 && yy < H && xx < W) s += x[((size_t(b) * H + yy) * W + xx) * C + k] * d[t * C + k];
      }
      return s / (1 + std::exp(-s));
    };
    return agree(y.now(), product(B * H * W, N, C, a, matrix(p, N)), 3e-2, 1e-2);
  };
  return j;
});

// --- L B of a lower triangle that is packed by rows: row i begins at i (i + 1) / 2
struct PackedCfg {
  int BM = 128, BN = 128, BK = 64, stages = 3, warps = 8, always = 0;
};
auto packed_lower =
    kernel("user_packed_lower", [](const PackedCfg& c, Ptr<const half> L, Tensor<const half, 2> B, Tensor<half, 2> C) {
      num_warps(c.warps);
      auto m = (num_programs(1) - 1 - program_id(1)) * c.BM, n = program_id(0) * c.BN;  // long rows first
      auto N = C.dim(0);
      auto row = m + arange(0, c.BM);
      auto base = row * (row + 1) / 2;
      Tile acc = zeros({c.BM, c.BN}, f32);
      for (auto k : range(0, min(m + c.BM, N), c.BK,
                          {.stages = c.stages, .specialize = c.always ? Choice::always : Choice::automatic})) {
        auto col = k + arange(0, c.BK);
        auto a = load(L + (base.col() + col.row()), {.mask = (col.row() <= row.col()) & (row < N).col()});
        acc = dot(a, B.load({k, n}, {c.BK, c.BN}), acc);
      }
      C.store({m, n}, cast(acc, f16));
    }).grid([](const PackedCfg& c, auto, const auto& b, const auto& y) {
      return Grid{cdiv(b.shape[1], c.BN), cdiv(y.shape[0], c.BM)};
    });
Register r2("packed_lower", [](Env& e) {
  PackedCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  c.always = e.field("always", c.always);
  const int N = e.big ? 4096 : 83, M = e.big ? 4096 : 56;
  auto l = random<half>(e, size_t(N) * (N + 1) / 2), b = random<half>(e, size_t(N) * M);
  auto y = constant<half>(e, size_t(N) * M, NAN);
  Job j;
  j.gflop = 1e-9 * N * double(N) * M;
  j.add(packed_lower, c, l.p, b.view(N, M), y.view(N, M));
  j.check = [=] {
    auto a = [&](int i, int k) { return k <= i ? l[size_t(i) * (i + 1) / 2 + k] : 0; };
    return agree(y.now(), product(N, M, N, a, matrix(b, M)), 2e-2, 2e-3);
  };
  return j;
});

// --- the gradient of weights from tokens in 8 bits: scale X^T Y, tokens lie in rows, so both operands lie across
struct EightCfg {
  int BM = 128, BN = 128, BK = 128, stages = 3, warps = 8;
};
auto eight_wgrad = kernel("user_eight_wgrad",
                          [](const EightCfg& c, Tensor<const int8_t, 2> X, Tensor<const int8_t, 2> Y,
                             Tensor<float, 2> dW, F32 scale) {  // X [T, M], Y [T, N], dW [M, N]
                            num_warps(c.warps);
                            auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                            Tile acc = zeros({c.BM, c.BN}, i32);
                            for (auto t : range(0, X.dim(0), c.BK, {.stages = c.stages}))
                              acc = dot(trans(X.load({t, m}, {c.BK, c.BM})), Y.load({t, n}, {c.BK, c.BN}), acc);
                            dW.store({m, n}, cast(acc, f32) * scale);
                          })
                       .grid([](const EightCfg& c, const auto& x, const auto& y, const auto&, float) {
                         return Grid{cdiv(x.shape[1], c.BM), cdiv(y.shape[1], c.BN)};
                       });
Register r3("eight_wgrad", [](Env& e) {
  EightCfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 77, M = e.big ? 2048 : 48, N = e.big ? 4096 : 80;
  auto x = integers<int8_t>(e, size_t(T) * M, -128, 128), y = integers<int8_t>(e, size_t(T) * N, -128, 128);
  auto w = constant<float>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * T * double(M) * N;
  j.add(eight_wgrad, c, x.view(T, M), y.view(T, N), w.view(M, N), .01f);
  j.check = [=] {
    return agree(w.now(),
                 product(
                     M, N, T, [&](int m, int k) { return x[size_t(k) * M + m]; }, matrix(y, N),
                     [](double s, int, int) { return .01 * s; }),
                 1e-3, 1e-5);
  };
  return j;
});

}  // namespace beside_triton_operands
}  // namespace users
