// byte_words.cpp - bytes four to a word: signed nibbles behind a rotation, borders of an 8-bit picture, colours.
#include "tests/users/use.h"
namespace users {
namespace byte_words {

// --- activations rotated by a Hadamard matrix made of parities, quantised to 8 bits per row, times 4-bit weights
struct RotatedCfg {
  int BM = 64, BN = 128, H = 128, warps = 8;
};
auto rotated = kernel("user_rotated", [](const RotatedCfg& c, Tensor<const half, 2> X, Tensor<const uint8_t, 2> W,
                                         Tensor<const float, 1> ws, Tensor<half, 2> Y) {
                 // W [N, K / 2]: two numbers -8 .. 7 in a byte, the even one low; blocks of H columns are rotated and
                 // have a scale per row
                 num_warps(c.warps);
                 auto m = program_id(0) * c.BM, n = program_id(1) * c.BN;
                 auto parity = popcount(arange(0, c.H).col() & arange(0, c.H).row()) & 1;
                 auto hadamard = cast(1 - 2 * parity, f16);
                 Tile acc = zeros({c.BM, c.BN}, f32);
                 for (auto k : range(0, X.dim(1), c.H)) {
                   auto x = dot(X.load({m, k}, {c.BM, c.H}), hadamard);
                   auto most = max(max(abs(x), axis(1)), 1e-6f);
                   auto q = cast(rint(x * (127.f / most)), i8);
                   auto w = W.load({n, k / 2}, {c.BN, c.H / 2});
                   auto low = bitcast(w << 4, i8) >> 4, high = bitcast(w, i8) >> 4;
                   auto i = dot(q, trans(interleave(low, high)));
                   acc += cast(i, f32) * (most * (1.f / 127.f));
                 }
                 Y.store({m, n}, cast(acc * ws.load({n}, {c.BN}).row() * float(1. / std::sqrt(c.H)), f16));
               }).grid([](const RotatedCfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(x.shape[0], c.BM), cdiv(w.shape[0], c.BN)};
});
Register r1("rotated", [](Env& e) {
  RotatedCfg c;
  if (!e.big) c = {16, 32, 32, 4};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  int M = e.big ? 256 : 21, N = e.big ? 4096 : 40, K = e.big ? 4096 : 96;
  auto x = random<half>(e, size_t(M) * K);
  auto w = integers<uint8_t>(e, size_t(N) * K / 2, 0, 256);
  auto s = random<float>(e, N, .01, .02);
  auto y = constant<half>(e, size_t(M) * N, NAN);
  Job j;
  j.gflop = 2e-9 * M * N * K;
  j.add(rotated, c, x.view(M, K), w.view(N, K / 2), s.view(N), y.view(M, N));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double acc = 0;
        for (int k = 0; k < K; k += c.H) {
          std::vector<double> v(c.H);
          double most = 1e-6;
          for (int i = 0; i < c.H; ++i) {
            for (int q = 0; q < c.H; ++q) v[i] += (__builtin_popcount(i & q) & 1 ? -1 : 1) * x[size_t(m) * K + k + q];
            most = std::max(most, std::abs(v[i]));
          }
          for (int i = 0; i < c.H; ++i) {
            int b = w.at((size_t(n) * K + k + i) / 2), q = i & 1 ? b >> 4 : b & 15;
            acc += std::nearbyint(v[i] * 127 / most) * (q > 7 ? q - 16 : q) * most / 127;
          }
        }
        want.push_back(acc * s[n] / std::sqrt(c.H));
      }
    return agree(y.now(), want, 5e-2, 5e-3);
  };
  return j;
});

// --- 3 x 3 convolution in 8 bits with zero points, requantised per channel, a residual, clamped: NHWC
struct Conv8Cfg {
  int BP = 128, BN = 128, BK = 64, stages = 3, warps = 8;
};
auto conv8 = kernel("user_conv8", [](const Conv8Cfg& c, Tensor<const int8_t, 4> X, Tensor<const int8_t, 3> W,
                                     Ptr<const int32_t> bias, Ptr<const float> scale, Tensor<const int8_t, 4> R,
                                     Tensor<int8_t, 4> Y, I32 zero) {
               // X, R, Y [B, H, W, C]; W [9, Cout, Cin]; a program: a row segment of BP pixels
               num_warps(c.warps);
               auto x0 = program_id(0) * c.BP, n = program_id(1) * c.BN, by = program_id(2);
               auto b = by / X.dim(1), y = by % X.dim(1);
               auto px = x0 + arange(0, c.BP);
               Tile acc = zeros({c.BP, c.BN}, i32);
               for (auto t : range(0, 9)) {
                 auto dy = t / 3 - 1, dx = t % 3 - 1;
                 auto in = (y + dy >= 0) & (y + dy < X.dim(1)) & (px + dx >= 0) & (px + dx < X.dim(2));
                 for (auto k : range(0, X.dim(3), c.BK, {.stages = c.stages})) {
                   auto x = reshape(X.load({b, y + dy, x0 + dx, k}, {1, 1, c.BP, c.BK}), {c.BP, c.BK});
                   x = where(in.col(), x, cast(zero, i8));  // borders hold the zero point
                   acc = dot(x, trans(reshape(W.load({t, n, k}, {1, c.BN, c.BK}), {c.BN, c.BK})), acc);
                 }
               }
               auto cols = n + arange(0, c.BN);
               auto v = cast(acc + load(bias + cols, {.mask = cols < Y.dim(3)}).row(), f32) *
                        load(scale + cols, {.mask = cols < Y.dim(3)}).row();
               v += cast(reshape(R.load({b, y, x0, n}, {1, 1, c.BP, c.BN}), {c.BP, c.BN}), f32);
               Y.store({b, y, x0, n}, reshape(cast(rint(clamp(v, -128.f, 127.f)), i8), {1, 1, c.BP, c.BN}));
             }).grid([](const Conv8Cfg& c, const auto& x, const auto&, auto*, auto*, const auto&, const auto& y, int) {
  return Grid{cdiv(x.shape[2], c.BP), cdiv(y.shape[3], c.BN), x.shape[0] * x.shape[1]};
});
Register r2("conv8", [](Env& e) {
  Conv8Cfg c;
  if (!e.big) c = {32, 32, 32, 2, 4};
  c.BP = e.field("BP", c.BP), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  int B = e.big ? 32 : 2, H = e.big ? 56 : 5, W = e.big ? 56 : 21, C = e.big ? 128 : 32, N = e.big ? 128 : 48;
  if (e.big) c.BP = 64;
  auto x = integers<int8_t>(e, size_t(B) * H * W * C, -127, 128), w = integers<int8_t>(e, 9 * N * C, -127, 128),
       r = integers<int8_t>(e, size_t(B) * H * W * N, -127, 128);
  auto bias = integers<int32_t>(e, N, -1000, 1000);
  auto s = random<float>(e, N, 1e-4, 4e-4);
  auto y = constant<int8_t>(e, r.n, 0);
  Job j;
  j.gflop = 18e-9 * B * H * W * double(C) * N;
  j.add(conv8, c, x.view(B, H, W, C), w.view(9, N, C), bias.p, s.p, r.view(B, H, W, N), y.view(B, H, W, N), -3);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int v = 0; v < W; ++v)
          for (int n = 0; n < N; ++n) {
            double a = bias[n];
            for (int t = 0; t < 9; ++t)
              for (int k = 0; k < C; ++k) {
                int hh = h + t / 3 - 1, vv = v + t % 3 - 1;
                a += (hh < 0 || hh >= H || vv < 0 || vv >= W ? -3 : x[((size_t(b) * H + hh) * W + vv) * C + k]) *
                     w[(size_t(t) * N + n) * C + k];
              }
            want.push_back(
                std::nearbyint(std::clamp(a * s[n] + r[((size_t(b) * H + h) * W + v) * N + n], -128., 127.)));
          }
    return agree(y.now(), want, 1.01, 0);
  };
  return j;
});

// --- YUV 4:2:0 to interleaved RGB, chroma between its samples, fixed point, saturated
struct YuvCfg {
  int H = 4, W = 256, warps = 4;
};
auto yuv = kernel("user_yuv", [](const YuvCfg& c, Tensor<const uint8_t, 2> Y, Tensor<const uint8_t, 3> UV,
                                 Tensor<uint8_t, 3> RGB) {
             // Y [H, W], UV [H / 2, W / 2, 2] (NV12), RGB [H, W, 3]
             num_warps(c.warps);
             auto y0 = program_id(1) * c.H, x0 = program_id(0) * c.W;
             auto y = cast(Y.load({y0, x0}, {c.H, c.W}), i32) - 16;
             auto uv = cast(UV.load({y0 / 2, x0 / 2, 0}, {c.H / 2, c.W / 2, 2}), i32) - 128;
             auto [u, v] = split(uv);
             auto up = [&](const Tile& t) {
               return reshape(broadcast_to(reshape(t, {c.H / 2, 1, c.W / 2, 1}), {c.H / 2, 2, c.W / 2, 2}), {c.H, c.W});
             };
             auto uu = up(u), vv = up(v);
             auto a = y * 298 + 128;
             auto byte = [](const Tile& t) { return cast(clamp(t >> 8, 0, 255), u8); };
             auto r = byte(a + 409 * vv), g = byte(a - 100 * uu - 208 * vv), b = byte(a + 516 * uu);
             auto rgb = cat(cat(expand_dims(r, -1), expand_dims(g, -1), -1), expand_dims(b, -1), -1);
             // Rows of 3 W bytes, not of 3: whole words of them are stored at once.
             auto rows = make_view<uint8_t>(RGB.ptr(), {RGB.dim(0), RGB.dim(1) * 3}, {RGB.stride(0), 1});
             rows.store({y0, x0 * 3}, reshape(rgb, {c.H, 3 * c.W}));
           }).grid([](const YuvCfg& c, const auto& y, const auto&...) {
  return Grid{cdiv(y.shape[1], c.W), cdiv(y.shape[0], c.H)};
});
Register r3("yuv", [](Env& e) {
  YuvCfg c;
  if (!e.big) c = {4, 32, 2};
  c.H = e.field("H", c.H), c.W = e.field("W", c.W), c.warps = e.field("warps", c.warps);
  int H = e.big ? 2160 : 10, W = e.big ? 3840 : 70;
  auto y = integers<uint8_t>(e, H * W, 0, 256), uv = integers<uint8_t>(e, H * W / 2, 0, 256);
  auto o = constant<uint8_t>(e, H * W * 3, 9);
  Job j;
  j.mbytes = 4.5e-6 * H * W;
  j.add(yuv, c, y.view(H, W), uv.view(H / 2, W / 2, 2), o.view(H, W, 3));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < H; ++i)
      for (int k = 0; k < W; ++k) {
        int a = (y.at(i * W + k) - 16) * 298 + 128, u = uv.at((i / 2 * (W / 2) + k / 2) * 2) - 128,
            v = uv.at((i / 2 * (W / 2) + k / 2) * 2 + 1) - 128;
        for (int t : {a + 409 * v, a - 100 * u - 208 * v, a + 516 * u}) want.push_back(std::clamp(t >> 8, 0, 255));
      }
    return agree(o.now(), want, .1, 0);
  };
  return j;
});

}  // namespace byte_words
}  // namespace users
