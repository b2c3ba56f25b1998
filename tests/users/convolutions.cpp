// convolutions.cpp - convolutions other than that of pictures, channels last: volumes channels first, signals
// transposed, channels in groups, one whose outputs meet in a minimum, patches of pictures; pools that remember places.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace convolutions {

// --- a 3-D convolution, channels first, taps `dilation` apart, zeros outside
struct Conv3dCfg {
  int BK = 128, BC = 64, BY = 4, BX = 32, dilation = 1, stages = 4, warps = 8;
};
auto conv3d = kernel("user_conv3d", [](const Conv3dCfg& c, Tensor<const half, 5> X, Tensor<const half, 3> W,
                                       Tensor<const float, 1> bias, Tensor<half, 5> Y) {
  // X [N, C, D, H, W], W [27, K, C], Y [N, K, D, H, W]
  num_warps(c.warps);
  auto k = program_id(0) * c.BK, n = program_id(2), t = program_id(1);
  auto across = cdiv(X.dim(4), c.BX), down = cdiv(X.dim(3), c.BY);
  auto x = t % across * c.BX, y = t / across % down * c.BY, z = t / (across * down);
  Tile acc = broadcast_to(bias.load({k}, {c.BK}).col(), {c.BK, c.BY * c.BX});
  auto blocks = cdiv(X.dim(1), c.BC);
  for (auto i : range(0, 27 * blocks, {.stages = c.stages})) {
    auto tap = i / blocks, ch = i % blocks * c.BC;
    auto dz = (tap / 9 - 1) * c.dilation, dy = (tap / 3 % 3 - 1) * c.dilation, dx = (tap % 3 - 1) * c.dilation;
    auto w = W.load({tap, k, ch}, {c.BK, c.BC});
    auto patch = X.load({n, ch, z + dz, y + dy, x + dx}, {1, c.BC, 1, c.BY, c.BX});
    acc = dot(w, reshape(patch, {c.BC, c.BY * c.BX}), acc);
  }
  Y.store({n, k, z, y, x}, reshape(cast(acc, f16), {1, c.BK, 1, c.BY, c.BX}));
}).grid([](const Conv3dCfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(w.shape[1], c.BK), cdiv(x.shape[4], c.BX) * cdiv(x.shape[3], c.BY) * x.shape[2], x.shape[0]};
});
Register r1("conv3d", [](Env& e) {
  Conv3dCfg c;
  if (!e.big) c = {64, 16, 2, 32, 2, 2, 4};
  c.BK = e.field("BK", c.BK), c.BC = e.field("BC", c.BC), c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  c.stages = e.field("stages", c.stages), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 8 : 2, C = e.big ? 64 : 20, K = e.big ? 128 : 36;
  const int D = e.big ? 16 : 3, H = e.big ? 64 : 7, W = e.big ? 64 : 24;
  auto x = random<half>(e, size_t(N) * C * D * H * W), w = random<half>(e, size_t(27) * K * C, -.1, .1);
  auto b = random<float>(e, K);
  auto y = constant<half>(e, size_t(N) * K * D * H * W, NAN);
  Job j;
  j.gflop = 54e-9 * N * D * H * W * double(K) * C;
  j.add(conv3d, c, x.view(N, C, D, H, W), w.view(27, K, C), b.view(K), y.view(N, K, D, H, W));
  j.check = [=] {
    std::vector<double> want;
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < K; ++k)
        for (int at = 0; at < D * H * W; ++at) {
          double s = b[k];
          for (int tap = 0; tap < 27; ++tap) {
            const int z = at / (H * W) + (tap / 9 - 1) * c.dilation, y = at / W % H + (tap / 3 % 3 - 1) * c.dilation,
                      q = at % W + (tap % 3 - 1) * c.dilation;
            if (z < 0 || z >= D || y < 0 || y >= H || q < 0 || q >= W) continue;
            for (int ch = 0; ch < C; ++ch)
              s += w[(size_t(tap) * K + k) * C + ch] * x[((size_t(n) * C + ch) * D + z) * H * W + y * W + q];
          }
          want.push_back(s);
        }
    return agree(y.now(), want, 4e-3, 2e-3);
  };
  return j;
});

// --- a transposed 1-D convolution with stride, padding and dilation, f32 through tf32: every output looks for the
// inputs that reach it
struct TransposedCfg {
  int BK = 64, BC = 32, BT = 128, taps = 5, stride = 2, dilation = 3, padding = 4, warps = 4;
};
auto transposed1d = kernel("user_conv_transposed", [](const TransposedCfg& c, Tensor<const float, 3> X,
                                                      Tensor<const float, 3> W, Tensor<float, 3> Y) {
  // X [N, C, L], W [C, K, taps], Y [N, K, (L - 1) stride - 2 padding + dilation (taps - 1) + 1]
  num_warps(c.warps);
  auto n = program_id(2), k0 = program_id(1) * c.BK, t0 = program_id(0) * c.BT;
  auto k = k0 + arange(0, c.BK), t = t0 + arange(0, c.BT);
  auto C = X.dim(1), L = X.dim(2), K = W.dim(1);
  Tile acc = zeros({c.BK, c.BT}, f32);
  for (auto c0 : range(0, C, c.BC)) {
    auto ch = c0 + arange(0, c.BC);
    for (int tap = 0; tap < c.taps; ++tap) {
      auto from = t + (c.padding - tap * c.dilation);
      auto at = from / c.stride;
      auto hit = (from >= 0) & (from % c.stride == 0) & (at < L);
      auto w = load(W.ptr() + ch.row() * W.stride(0) + k.col() * c.taps + tap,
                    {.mask = (k < K).col() & (ch < C).row()});
      auto x = load(X.ptr() + n * X.stride(0) + ch.col() * X.stride(1) + at.row(),
                    {.mask = (ch < C).col() & hit.row()});
      acc = dot(w, x, acc, Prec::tf32);
    }
  }
  Y.store({n, k0, t0}, reshape(acc, {1, c.BK, c.BT}));
}).grid([](const TransposedCfg& c, const auto&, const auto& w, const auto& y) {
  return Grid{cdiv(y.shape[2], c.BT), cdiv(w.shape[1], c.BK), y.shape[0]};
});
Register r2("conv_transposed", [](Env& e) {
  TransposedCfg c;
  if (!e.big) c = {32, 16, 32, 3, 3, 2, 1, 4};
  c.BK = e.field("BK", c.BK), c.BC = e.field("BC", c.BC), c.BT = e.field("BT", c.BT);
  c.warps = e.field("warps", c.warps);
  const int N = e.big ? 16 : 2, C = e.big ? 64 : 19, K = e.big ? 128 : 37, L = e.big ? 16384 : 45;
  const int Lo = (L - 1) * c.stride - 2 * c.padding + c.dilation * (c.taps - 1) + 1;
  auto x = random<float>(e, size_t(N) * C * L), w = random<float>(e, size_t(C) * K * c.taps);
  auto y = constant<float>(e, size_t(N) * K * Lo, NAN);
  Job j;
  j.gflop = 2e-9 * N * double(C) * K * L * c.taps;
  j.add(transposed1d, c, x.view(N, C, L), w.view(C, K, c.taps), y.view(N, K, Lo));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int n = 0; n < N; ++n)
      for (int ch = 0; ch < C; ++ch)
        for (int l = 0; l < L; ++l)
          for (int k = 0; k < K; ++k)
            for (int tap = 0; tap < c.taps; ++tap) {
              const int t = l * c.stride - c.padding + tap * c.dilation;
              if (t >= 0 && t < Lo)
                want[(size_t(n) * K + k) * Lo + t] +=
                    x[(size_t(n) * C + ch) * L + l] * w[(size_t(ch) * K + k) * c.taps + tap];
            }
    return agree(y.now(), want, 1e-2, 2e-3);
  };
  return j;
});

// --- a 3x3 convolution whose channels meet only in groups of 16 (ResNeXt), channels last, ReLU
struct GroupedCfg {
  int G = 16, BY = 8, BX = 16, warps = 4;
};
auto grouped = kernel("user_conv_grouped", [](const GroupedCfg& c, Tensor<const half, 4> X, Tensor<const half, 4> W,
                                              Tensor<half, 4> Y) {
  // X [N, H, W, C], W [9, C / G, G inputs, G outputs], Y [N, H, W, C]
  num_warps(c.warps);
  auto g = program_id(0), t = program_id(1), n = program_id(2);
  auto across = cdiv(X.dim(2), c.BX);
  auto y = t / across * c.BY, x = t % across * c.BX;
  Tile acc = zeros({c.BY * c.BX, c.G}, f32);
  for (int tap = 0; tap < 9; ++tap) {
    auto patch = X.load({n, y + (tap / 3 - 1), x + (tap % 3 - 1), g * c.G}, {1, c.BY, c.BX, c.G});
    acc = dot(reshape(patch, {c.BY * c.BX, c.G}), W.load({tap, g, 0, 0}, {c.G, c.G}), acc);
  }
  Y.store({n, y, x, g * c.G}, reshape(cast(max(acc, 0.f), f16), {1, c.BY, c.BX, c.G}));
}).grid([](const GroupedCfg& c, const auto& x, const auto&...) {
  return Grid{x.shape[3] / c.G, cdiv(x.shape[1], c.BY) * cdiv(x.shape[2], c.BX), x.shape[0]};
});
Register r3("conv_grouped", [](Env& e) {
  GroupedCfg c;
  if (!e.big) c = {16, 4, 8, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 32 : 2, H = e.big ? 56 : 9, W = e.big ? 56 : 13, C = e.big ? 512 : 48, G = c.G;
  auto x = random<half>(e, size_t(N) * H * W * C), w = random<half>(e, size_t(9) * C * G, -.3, .3);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(grouped, c, x.view(N, H, W, C), w.view(9, C / G, G, G), y.view(N, H, W, C));
  j.check = [=] {
    std::vector<double> want;
    for (int n = 0; n < N; ++n)
      for (int at = 0; at < H * W; ++at)
        for (int k = 0; k < C; ++k) {
          double s = 0;
          for (int tap = 0; tap < 9; ++tap) {
            const int y = at / W + tap / 3 - 1, q = at % W + tap % 3 - 1;
            for (int i = 0; i < G && y >= 0 && y < H && q >= 0 && q < W; ++i)
              s += x[((size_t(n) * H + y) * W + q) * C + k / G * G + i] *
                   w[((size_t(tap) * (C / G) + k / G) * G + i) * G + k % G];
          }
          want.push_back(std::max(s, 0.));
        }
    return agree(y.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- a 3x3 convolution of 16 channels, the smallest of its outputs at every pixel, tanh twice; channels first, the
// sum over 16 x 9 products is one tile
struct ConvMinCfg {
  int C = 16, K = 64, BP = 128, warps = 4;
};
auto conv_min = kernel("user_conv_min", [](const ConvMinCfg& c, Ptr<const half> X, Tensor<const half, 2> W,
                                           Tensor<const float, 1> bias, Tensor<float, 2> Y, I32 H, I32 Wd) {
  // X [N, C, H, W], W [K, C * 9], Y [N, (H - 2) * (W - 2)]
  num_warps(c.warps);
  auto n = program_id(1);
  auto p = program_id(0) * c.BP + arange(0, c.BP), kk = arange(0, c.C * 9);
  auto rows = H - 2, columns = Wd - 2;
  auto y = p / columns, x = p % columns;
  auto base = X + cast(n, i64) * (c.C * H * Wd);
  auto patch = load(base + (kk / 9 * (H * Wd) + kk % 9 / 3 * Wd + kk % 3).col() + (y * Wd + x).row(),
                    {.mask = (p < rows * columns).row()});
  auto out = dot(W.load({0, 0}, {c.K, c.C * 9}), patch) + bias.load({0}, {c.K}).col();
  Y.store({n, program_id(0) * c.BP}, tanh(tanh(min(out, axis(0)))));
}).grid([](const ConvMinCfg& c, const half*, const auto&, const auto&, const auto& y, int, int) {
  return Grid{cdiv(y.shape[1], c.BP), y.shape[0]};
});
Register r4("conv_min", [](Env& e) {
  ConvMinCfg c;
  if (!e.big) c = {3, 32, 32, 2};
  c.BP = e.field("BP", c.BP), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 64 : 2, H = e.big ? 256 : 11, W = e.big ? 256 : 17, C = c.C, K = c.K, P = (H - 2) * (W - 2);
  auto x = random<half>(e, size_t(N) * C * H * W), w = random<half>(e, size_t(K) * C * 9, -.3, .3);
  auto b = random<float>(e, K);
  auto y = constant<float>(e, size_t(N) * P, NAN);
  Job j;
  j.gflop = 18e-9 * N * double(P) * C * K;
  j.add(conv_min, c, x.p, w.view(K, C * 9), b.view(K), y.view(N, P), H, W);
  j.check = [=] {
    std::vector<double> want;
    for (int n = 0; n < N; ++n)
      for (int p = 0; p < P; ++p) {
        double least = INFINITY;
        for (int k = 0; k < K; ++k) {
          double s = b[k];
          for (int i = 0; i < C * 9; ++i)
            s += w[size_t(k) * C * 9 + i] *
                 x[((size_t(n) * C + i / 9) * H + p / (W - 2) + i % 9 / 3) * W + p % (W - 2) + i % 3];
          least = std::min(least, s);
        }
        want.push_back(std::tanh(std::tanh(least)));
      }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- patches of pictures times weights (the first layer of a vision transformer), bias and positions added; a tile
// has 8 rows of 14 patches: 112 rows
struct PatchCfg {
  int P = 16, across = 14, down = 8, BN = 128, stages = 2, warps = 8;
};
auto patches = kernel("user_patches", [](const PatchCfg& c, Tensor<const half, 4> X, Tensor<const half, 2> W,
                                         Tensor<const float, 1> bias, Tensor<const half, 2> places,
                                         Tensor<half, 4> Y) {
  // X [B, 3, H, W], W [3 * P * P, E], places [H / P * W / P, E], Y [B, H / P, W / P, E]
  num_warps(c.warps);
  auto n = program_id(0) * c.BN, row = program_id(1) * c.down, b = program_id(2);
  const int M = c.down * c.across;
  Tile acc = zeros({M, c.BN}, f32);
  for (auto ch : range(0, X.dim(1), {.stages = c.stages})) {
    auto box = X.load({b, ch, row * c.P, 0}, {1, 1, c.down * c.P, c.across * c.P});
    auto rows = permute(reshape(box, {c.down, c.P, c.across, c.P}), {0, 2, 1, 3});
    acc = dot(reshape(rows, {M, c.P * c.P}), W.load({ch * (c.P * c.P), n}, {c.P * c.P, c.BN}), acc);
  }
  auto place = cast(places.load({row * c.across, n}, {M, c.BN}), f32);
  acc = acc + bias.load({n}, {c.BN}).row() + place;
  Y.store({b, row, 0, n}, reshape(cast(acc, f16), {1, c.down, c.across, c.BN}));
}).grid([](const PatchCfg& c, const auto& x, const auto& w, const auto&...) {
  return Grid{cdiv(w.shape[1], c.BN), cdiv(x.shape[2] / c.P, c.down), x.shape[0]};
});
Register r5("patches", [](Env& e) {
  PatchCfg c;
  if (!e.big) c = {8, 6, 4, 32, 2, 2};
  c.down = e.field("down", c.down), c.BN = e.field("BN", c.BN), c.stages = e.field("stages", c.stages);
  c.warps = e.field("warps", c.warps);
  const int B = e.big ? 256 : 2, P = c.P, A = c.across, R = e.big ? 14 : 6, E = e.big ? 768 : 40, K = 3 * P * P;
  auto x = random<half>(e, size_t(B) * 3 * R * P * A * P), w = random<half>(e, size_t(K) * E, -.1, .1);
  auto bias = random<float>(e, E);
  auto places = random<half>(e, size_t(R) * A * E);
  auto y = constant<half>(e, size_t(B) * R * A * E, NAN);
  Job j;
  j.gflop = 2e-9 * B * R * A * double(K) * E;
  j.add(patches, c, x.view(B, 3, R * P, A * P), w.view(K, E), bias.view(E), places.view(R * A, E), y.view(B, R, A, E));
  j.check = [=] {
    auto pixel = [&](int m, int k) {
      const int b = m / (R * A), py = m / A % R * P + k / P % P, px = m % A * P + k % P;
      return x[((size_t(b) * 3 + k / (P * P)) * R * P + py) * A * P + px];
    };
    auto with = [&](double s, int m, int n) { return s + bias[n] + places[size_t(m % (R * A)) * E + n]; };
    return agree(y.now(), product(B * R * A, E, K, pixel, matrix(w, E), with), 2e-3, 2e-3);
  };
  return j;
});

// --- the largest of 3 x 3 pixels 2 apart, every second of them, with the place it was found at (64 bits); and the way
// back: gradients are added where they came from
struct PoolCfg {
  int BY = 4, BX = 64, warps = 4;
};
auto pool = kernel("user_pool", [](const PoolCfg& c, Tensor<const float, 3> X, Tensor<float, 3> Y,
                                   Tensor<int64_t, 3> places) {
  // X [N, H, W], Y, places [N, Ho, Wo]; padding 2, stride 2, dilation 2
  num_warps(c.warps);
  auto n = program_id(2), y0 = program_id(1) * c.BY, x0 = program_id(0) * c.BX;
  auto y = (y0 + arange(0, c.BY)).col(), x = (x0 + arange(0, c.BX)).row();
  auto H = X.dim(1), W = X.dim(2);
  Tile best = full({c.BY, c.BX}, -INFINITY, f32), place = zeros({c.BY, c.BX}, i64);
  for (int i = 0; i < 9; ++i) {
    auto yy = y * 2 + (i / 3 * 2 - 2), xx = x * 2 + (i % 3 * 2 - 2);
    auto inside = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W);
    auto v = load(X.ptr() + n * X.stride(0) + yy * X.stride(1) + xx, {.mask = inside, .other = -INFINITY});
    auto better = v > best;
    best = where(better, v, best), place = where(better, cast(yy, i64) * X.dim64(2) + cast(xx, i64), place);
  }
  Y.store({n, y0, x0}, best);
  places.store({n, y0, x0}, place);
}).grid([](const PoolCfg& c, const auto&, const auto& y, const auto&) {
  return Grid{cdiv(y.shape[2], c.BX), cdiv(y.shape[1], c.BY), y.shape[0]};
});
auto unpool = kernel("user_unpool", [](const PoolCfg& c, Tensor<const float, 2> dY, Tensor<const int64_t, 2> places,
                                       Tensor<float, 2> dX) {
  num_warps(c.warps);
  const int B = c.BY * c.BX;
  auto n = program_id(1), i = program_id(0) * B;
  auto inside = i + arange(0, B) < dY.dim(1);
  atomic_add(dX.ptr() + n * dX.stride(0) + places.load({n, i}, {B}), dY.load({n, i}, {B}),
             {.mask = inside, .order = Order::relaxed});
}).grid([](const PoolCfg& c, const auto& dy, const auto&...) {
  return Grid{cdiv(dy.shape[1], c.BY * c.BX), dy.shape[0]};
});
Register r6("pool", [](Env& e) {
  PoolCfg c;
  if (!e.big) c = {2, 32, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 512 : 3, H = e.big ? 224 : 13, W = e.big ? 224 : 71, Ho = (H - 1) / 2 + 1, Wo = (W - 1) / 2 + 1;
  auto x = filled<float>(e, size_t(N) * H * W, [&](size_t) { return std::floor(float(e.uniform() * 40)); });  // ties
  auto y = constant<float>(e, size_t(N) * Ho * Wo, NAN);
  auto places = constant<int64_t>(e, y.n, -1);
  auto dy = random<float>(e, y.n);
  auto dx = constant<float>(e, x.n, 0);
  Job j;
  j.mbytes = 4e-6 * x.n + 12e-6 * y.n;
  j.add(pool, c, x.view(N, H, W), y.view(N, Ho, Wo), places.view(N, Ho, Wo));
  j.add(unpool, c, dy.view(N, Ho * Wo), places.view(N, Ho * Wo), dx.view(N, H * W));
  j.check = [=] {
    std::vector<double> want, where, back(x.n);
    for (int n = 0; n < N; ++n)
      for (int at = 0; at < Ho * Wo; ++at) {
        double best = -INFINITY;
        int place = 0;
        for (int i = 0; i < 9; ++i) {
          const int yy = at / Wo * 2 + i / 3 * 2 - 2, xx = at % Wo * 2 + i % 3 * 2 - 2;
          if (yy < 0 || yy >= H || xx < 0 || xx >= W) continue;
          if (const double v = x[(size_t(n) * H + yy) * W + xx]; v > best) best = v, place = yy * W + xx;
        }
        want.push_back(best), where.push_back(place);
        back[size_t(n) * H * W + place] += dy[size_t(n) * Ho * Wo + at];
      }
    std::string wrong = agree(y.now(), want, 1e-9, 0);
    if (wrong.empty()) wrong = agree(places.now(), where, 1e-9, 0);
    return wrong.empty() ? agree(dx.now(), back, 1e-5, 1e-5) : wrong;
  };
  return j;
});

}  // namespace convolutions
}  // namespace users
