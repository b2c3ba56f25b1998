// first_layers.cpp - layers of networks as somebody writes them who comes from a first tutorial: convolutions whose K
// runs over channels and taps at once, softmax over channels, moves of pixels, through pointers.
#include "tests/users/use.h"
namespace users {
namespace first_layers {

// --- a convolution as one product: K counts channels and taps of the weights as they lie (planes, 3 x 3, steps)
struct ConvCfg {
  int BP = 128, BO = 64, BK = 32, R = 3, S = 3;
};
auto flat_conv = kernel("user_flat_conv", [](const ConvCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<const half> bias,
                                             Ptr<half> y, I32, I32 C, I32 H, I32 W, I32 O, I32 OH, I32 OW, I32 step, I32 pad,
                                             I32 spread, I32 pixels) {
                   auto p = program_id(0) * c.BP + arange(0, c.BP), o = program_id(1) * c.BO + arange(0, c.BO);
                   auto b = p / (OH * OW), oh = p % (OH * OW) / OW, ow = p % OW;
                   auto K = C * (c.R * c.S);
                   Tile acc = zeros({c.BP, c.BO}, f32);
                   for (auto i : range(0, K, c.BK)) {
                     auto k = i + arange(0, c.BK);
                     auto ch = k / (c.R * c.S), r = k % (c.R * c.S) / c.S, s = k % c.S;
                     auto h = oh.col() * step - pad + (r * spread).row(), v = ow.col() * step - pad + (s * spread).row();
                     auto in = (p < pixels).col() & (k < K).row() & (h >= 0) & (h < H) & (v >= 0) & (v < W);
                     auto xs = load(x + (((b.col() * C + ch.row()) * H + h) * W + v), {.mask = in, .other = 0});
                     auto ws = load(w + (o.row() * K + k.col()), {.mask = (k < K).col() & (o < O).row(), .other = 0});
                     acc = dot(xs, ws, acc);
                   }
                   acc = max(acc + cast(load(bias + o, {.mask = o < O}), f32).row(), 0.f);
                   store(y + ((b.col() * O + o.row()) * (OH * OW) + (p % (OH * OW)).col()), cast(acc, f16),
                         {.mask = (p < pixels).col() & (o < O).row()});
                 }).grid([](const ConvCfg& c, auto, auto, auto, auto, int, int, int, int, int O, int, int, int, int, int,
                            int pixels) { return Grid{cdiv(pixels, c.BP), cdiv(O, c.BO)}; });
Register r1("flat_conv", [](Env& e) {
  ConvCfg c;
  if (!e.big) c = {32, 16, 16};
  c.BP = e.field("BP", c.BP), c.BO = e.field("BO", c.BO), c.BK = e.field("BK", c.BK);
  const int B = e.big ? 32 : 2, C = e.big ? 128 : 5, H = e.big ? 56 : 9, W = e.big ? 56 : 11, O = e.big ? 256 : 24;
  const int step = 2, pad = 1, spread = e.field("spread", 1);
  const int OH = (H + 2 * pad - 2 * spread - 1) / step + 1, OW = (W + 2 * pad - 2 * spread - 1) / step + 1;
  auto x = random<half>(e, size_t(B) * C * H * W), w = random<half>(e, size_t(O) * C * 9, -.1, .1), bias = random<half>(e, O);
  auto y = constant<half>(e, size_t(B) * O * OH * OW, NAN);
  Job j;
  j.gflop = 18e-9 * B * C * OH * OW * O;
  j.add(flat_conv, c, x.p, w.p, bias.p, y.p, B, C, H, W, O, OH, OW, step, pad, spread, B * OH * OW);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i) {
      const int v = int(i) % OW, h = int(i) / OW % OH, o = int(i) / OW / OH % O, b = int(i) / OW / OH / O;
      double s = bias[o];
      for (int k = 0; k < C * 9; ++k) {
        const int yy = h * step - pad + k / 3 % 3 * spread, xx = v * step - pad + k % 3 * spread;
        if (yy >= 0 && yy < H && xx >= 0 && xx < W)
          s += x[((size_t(b) * C + k / 9) * H + yy) * W + xx] * w[size_t(o) * C * 9 + k];
      }
      want[i] = std::max(s, 0.);
    }
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- the same with channels last: K counts taps, then channels
auto last_conv = kernel("user_last_conv", [](const ConvCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<half> y, I32 C,
                                             I32 H, I32 W, I32 O, I32 OH, I32 OW, I32 step, I32 pad, I32 spread, I32 pixels) {
                   auto p = program_id(0) * c.BP + arange(0, c.BP), o = program_id(1) * c.BO + arange(0, c.BO);
                   auto b = p / (OH * OW), oh = p / OW % OH, ow = p % OW;
                   auto K = C * (c.R * c.S);
                   Tile acc = zeros({c.BP, c.BO}, f32);
                   for (auto i : range(0, cdiv(K, c.BK))) {
                     auto k = i * c.BK + arange(0, c.BK);
                     auto r = k / (C * c.S), s = k / C % c.S, ch = k % C;
                     auto h = oh.col() * step - pad + r.row() * spread, v = ow.col() * step - pad + s.row() * spread;
                     auto in = (p < pixels).col() & (k < K).row() & (h >= 0) & (h < H) & (v >= 0) & (v < W);
                     auto xs = load(x + (((b.col() * H + h) * W + v) * C + ch.row()), {.mask = in, .other = 0});
                     auto ws = load(w + (k.col() * O + o.row()), {.mask = (k < K).col() & (o < O).row(), .other = 0});
                     acc = dot(xs, ws, acc);
                   }
                   store(y + (p.col() * O + o.row()), cast(acc, f16), {.mask = (p < pixels).col() & (o < O).row()});
                 }).grid([](const ConvCfg& c, auto, auto, auto, int, int, int, int O, int, int, int, int, int, int pixels) {
  return Grid{cdiv(pixels, c.BP), cdiv(O, c.BO)};
});
Register r2("last_conv", [](Env& e) {
  ConvCfg c;
  if (!e.big) c = {32, 16, 16};
  c.BP = e.field("BP", c.BP), c.BO = e.field("BO", c.BO), c.BK = e.field("BK", c.BK);
  const int B = e.big ? 32 : 2, C = e.big ? 128 : 24, H = e.big ? 56 : 7, W = e.big ? 56 : 6, O = e.big ? 256 : 24;
  const int step = 1, pad = 2, spread = 2, OH = (H + 2 * pad - 2 * spread - 1) / step + 1, OW = (W + 2 * pad - 2 * spread - 1) / step + 1;
  auto x = random<half>(e, size_t(B) * C * H * W), w = random<half>(e, size_t(O) * C * 9, -.1, .1);
  auto y = constant<half>(e, size_t(B) * O * OH * OW, NAN);
  Job j;
  j.gflop = 18e-9 * B * C * OH * OW * O;
  j.add(last_conv, c, x.p, w.p, y.p, C, H, W, O, OH, OW, step, pad, spread, B * OH * OW);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i) {
      const int o = int(i) % O, v = int(i) / O % OW, h = int(i) / O / OW % OH, b = int(i) / O / OW / OH;
      for (int k = 0; k < C * 9; ++k) {
        const int yy = h * step - pad + k / C / 3 * spread, xx = v * step - pad + k / C % 3 * spread;
        if (yy >= 0 && yy < H && xx >= 0 && xx < W)
          want[i] += x[((size_t(b) * H + yy) * W + xx) * C + k % C] * w[size_t(k) * O + o];
      }
    }
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- a convolution over a sequence (planes of channels), three taps, steps of two: a tap a loop
struct Conv1dCfg {
  int BO = 64, BT = 128, BC = 32;
};
auto conv1d_planes = kernel("user_conv1d_planes", [](const Conv1dCfg& c, Ptr<const half> x, Ptr<const half> w, Ptr<half> y,
                                                     I32, I32 C, I32 T, I32 O, I32 OT, I32 step) {
                       auto o = program_id(1) * c.BO + arange(0, c.BO), t = program_id(0) * c.BT + arange(0, c.BT);
                       auto b = program_id(2);
                       Tile acc = zeros({c.BO, c.BT}, f32);
                       for (auto tap : range(0, 3))
                         for (auto i : range(0, C, c.BC)) {
                           auto ch = i + arange(0, c.BC);
                           auto at = t * step + tap - 1;
                           auto ws = load(w + ((o.col() * C + ch.row()) * 3 + tap), {.mask = (o < O).col() & (ch < C).row()});
                           auto xs = load(x + ((b * C + ch.col()) * T + at.row()), {.mask = (ch < C).col() & (at >= 0).row() & (at < T).row()});
                           acc = dot(ws, xs, acc);
                         }
                       store(y + ((b * O + o.col()) * OT + t.row()), cast(acc, f16), {.mask = (o < O).col() & (t < OT).row()});
                     }).grid([](const Conv1dCfg& c, auto, auto, auto, int B, int, int, int O, int OT, int) {
  return Grid{cdiv(OT, c.BT), cdiv(O, c.BO), B};
});
Register r3("conv1d_planes", [](Env& e) {
  Conv1dCfg c;
  if (!e.big) c = {16, 32, 16};
  c.BO = e.field("BO", c.BO), c.BT = e.field("BT", c.BT), c.BC = e.field("BC", c.BC);
  const int B = e.big ? 8 : 2, C = e.big ? 512 : 20, T = e.big ? 3000 : 45, O = e.big ? 512 : 24, step = e.field("step", 2);
  const int OT = (T - 1) / step + 1;
  auto x = random<half>(e, size_t(B) * C * T), w = random<half>(e, size_t(O) * C * 3, -.1, .1);
  auto y = constant<half>(e, size_t(B) * O * OT, NAN);
  Job j;
  j.gflop = 6e-9 * B * C * OT * O;
  j.add(conv1d_planes, c, x.p, w.p, y.p, B, C, T, O, OT, step);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i)
      for (int k = 0; k < C * 3; ++k) {
        const int t = int(i) % OT * step + k % 3 - 1, o = int(i) / OT % O, b = int(i) / OT / O;
        if (t >= 0 && t < T) want[i] += x[(size_t(b) * C + k / 3) * T + t] * w[size_t(o) * C * 3 + k];
      }
    return agree(y.now(), want, 5e-3, 2e-3);
  };
  return j;
});

// --- channel by channel, 3 x 3 over planes: a tile of pixels of a plane
struct PlaneCfg {
  int BH = 8, BW = 64;
};
auto plane_taps = kernel("user_plane_taps", [](const PlaneCfg& c, Ptr<const float> x, Ptr<const float> w, Ptr<float> y, I32,
                                               I32 C, I32 H, I32 W) {
                    auto plane = program_id(2), ch = plane % C;
                    auto h = program_id(1) * c.BH + arange(0, c.BH), v = program_id(0) * c.BW + arange(0, c.BW);
                    Tile acc = zeros({c.BH, c.BW}, f32);
                    for (int r = 0; r < 3; ++r)
                      for (int s = 0; s < 3; ++s) {
                        auto yy = (h + r - 1).col(), xx = (v + s - 1).row();
                        auto in = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W);
                        acc += load(x + ((plane * H + yy) * W + xx), {.mask = in, .other = 0}) * load(w + ch * 9 + r * 3 + s);
                      }
                    store(y + ((plane * H + h.col()) * W + v.row()), acc, {.mask = (h < H).col() & (v < W).row()});
                  }).grid([](const PlaneCfg& c, auto, auto, auto, int B, int C, int H, int W) {
  return Grid{cdiv(W, c.BW), cdiv(H, c.BH), B * C};
});
Register r4("plane_taps", [](Env& e) {
  PlaneCfg c;
  if (!e.big) c = {4, 16};
  c.BH = e.field("BH", c.BH), c.BW = e.field("BW", c.BW);
  const int B = e.big ? 16 : 2, C = e.big ? 256 : 3, H = e.big ? 112 : 9, W = e.big ? 112 : 21;
  auto x = random<float>(e, size_t(B) * C * H * W), w = random<float>(e, C * 9);
  auto y = constant<float>(e, x.n, NAN);
  Job j;
  j.mbytes = 8e-6 * x.n;
  j.add(plane_taps, c, x.p, w.p, y.p, B, C, H, W);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i)
      for (int k = 0; k < 9; ++k) {
        const int h = int(i) / W % H + k / 3 - 1, v = int(i) % W + k % 3 - 1, p = int(i) / W / H;
        if (h >= 0 && h < H && v >= 0 && v < W) want[i] += x[(size_t(p) * H + h) * W + v] * w[p % C * 9 + k];
      }
    return agree(y.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- softmax over channels of planes, the sum of exponentials in one walk
struct ChannelCfg {
  int BC = 16, BP = 128;
};
auto channel_softmax = kernel("user_channel_softmax", [](const ChannelCfg& c, Ptr<const half> x, Ptr<half> y, I32, I32 C,
                                                         I32 HW) {
                         auto b = program_id(1), p = (program_id(0) * c.BP + arange(0, c.BP)).row();
                         Tile most = full({1, c.BP}, -INFINITY, f32), all = zeros({1, c.BP}, f32);
                         for (auto i : range(0, C, c.BC)) {
                           auto ch = (i + arange(0, c.BC)).col();
                           auto v = cast(load(x + ((b * C + ch) * HW + p), {.mask = (ch < C) & (p < HW), .other = -INFINITY}), f32);
                           auto now = max(most, max(v, axis(0)));
                           all = all * exp(most - now) + sum(exp(v - now), axis(0));
                           most = now;
                         }
                         for (auto i : range(0, C, c.BC)) {
                           auto ch = (i + arange(0, c.BC)).col();
                           auto in = (ch < C) & (p < HW);
                           auto v = cast(load(x + ((b * C + ch) * HW + p), {.mask = in}), f32);
                           store(y + ((b * C + ch) * HW + p), cast(exp(v - most) / all, f16), {.mask = in});
                         }
                       }).grid([](const ChannelCfg& c, auto, auto, int B, int, int HW) { return Grid{cdiv(HW, c.BP), B}; });
Register r5("channel_softmax", [](Env& e) {
  ChannelCfg c;
  if (!e.big) c = {8, 16};
  c.BC = e.field("BC", c.BC), c.BP = e.field("BP", c.BP);
  const int B = e.big ? 16 : 2, C = e.big ? 150 : 21, HW = e.big ? 256 * 256 : 45;
  auto x = random<half>(e, size_t(B) * C * HW, -4, 4);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(channel_softmax, c, x.p, y.p, B, C, HW);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int b = 0; b < B; ++b)
      for (int p = 0; p < HW; ++p) {
        double s = 0;
        for (int ch = 0; ch < C; ++ch) s += std::exp(x[(size_t(b) * C + ch) * HW + p]);
        for (int ch = 0; ch < C; ++ch) want[(size_t(b) * C + ch) * HW + p] = std::exp(x[(size_t(b) * C + ch) * HW + p]) / s;
      }
    return agree(y.now(), want, 1e-4, 2e-3);
  };
  return j;
});

// --- softmax of long rows of an odd length: maximum and sum in one walk, a program a row
struct LongRowCfg {
  int N = 2048;
};
auto odd_softmax = kernel("user_odd_softmax", [](const LongRowCfg& c, Ptr<const half> x, Ptr<half> y, I32, I32 n) {
                     auto row = cast(program_id(0), i64) * n;
                     Tile most = -INFINITY, all = 0.f;
                     for (auto k : range(0, n, c.N)) {
                       auto i = k + arange(0, c.N);
                       auto v = cast(load(x + row + i, {.mask = i < n, .other = -INFINITY}), f32);
                       auto now = max(most, max(v));
                       all = all * exp(most - now) + sum(exp(v - now));
                       most = now;
                     }
                     for (auto k : range(0, n, c.N)) {
                       auto i = k + arange(0, c.N);
                       auto v = cast(load(x + row + i, {.mask = i < n}), f32);
                       store(y + row + i, cast(exp(v - most) / all, f16), {.mask = i < n});
                     }
                   }).grid([](const LongRowCfg&, auto, auto, int rows, int) { return Grid{rows}; });
Register r6("odd_softmax", [](Env& e) {
  LongRowCfg c;
  if (!e.big) c = {64};
  c.N = e.field("N", c.N);
  const int R = e.big ? 4096 : 5, n = e.big ? 50257 : 173;
  auto x = random<half>(e, size_t(R) * n, -4, 4);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(odd_softmax, c, x.p, y.p, R, n);
  j.check = [=] {
    std::vector<double> want(y.n);
    for (int r = 0; r < R; ++r) {
      double s = 0;
      for (int i = 0; i < n; ++i) s += std::exp(x[size_t(r) * n + i]);
      for (int i = 0; i < n; ++i) want[size_t(r) * n + i] = std::exp(x[size_t(r) * n + i]) / s;
    }
    return agree(y.now(), want, 1e-5, 2e-3);
  };
  return j;
});

// --- pixels out of channels: each element of the result finds its own
struct FlatCfg {
  int N = 1024;
};
auto pixel_shuffle = kernel("user_pixel_shuffle", [](const FlatCfg& c, Ptr<const half> x, Ptr<half> y, I32 C, I32 H, I32 W,
                                                     I32 up, I32 all) {
                       auto i = program_id(0) * c.N + arange(0, c.N);
                       auto ow = i % (W * up), oh = i / (W * up) % (H * up), ch = i / (W * up) / (H * up) % C, b = i / (W * up) / (H * up) / C;
                       auto from = ((b * C + ch) * up * up + oh % up * up + ow % up) * (H * W) + oh / up * W + ow / up;
                       store(y + i, load(x + from, {.mask = i < all}), {.mask = i < all});
                     }).grid([](const FlatCfg& c, auto, auto, int, int, int, int, int all) { return Grid{cdiv(all, c.N)}; });
Register r7("pixel_shuffle", [](Env& e) {
  FlatCfg c;
  if (!e.big) c = {64};
  c.N = e.field("N", c.N);
  const int B = e.big ? 8 : 2, C = e.big ? 64 : 3, H = e.big ? 128 : 5, W = e.big ? 128 : 7, up = 2;
  auto x = random<half>(e, size_t(B) * C * up * up * H * W);
  auto y = constant<half>(e, x.n, NAN);
  Job j;
  j.mbytes = 4e-6 * x.n;
  j.add(pixel_shuffle, c, x.p, y.p, C, H, W, up, int(x.n));
  j.check = [=] {
    std::vector<double> want(y.n);
    for (size_t i = 0; i < y.n; ++i) {
      const int ow = i % (W * up), oh = i / (W * up) % (H * up), p = i / (W * up) / (H * up);
      want[i] = x[(size_t(p) * up * up + oh % up * up + ow % up) * H * W + oh / up * W + ow / up];
    }
    return agree(y.now(), want, 0, 1e-9);
  };
  return j;
});

}  // namespace first_layers
}  // namespace users
