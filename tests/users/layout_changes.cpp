// layout_changes.cpp - tensors of a network laid out anew, as first written: heads in front of tokens, channels last,
// columns of patches and back, shifted windows, pixels into channels; flat indices are taken apart by division.
#include "tests/users/use.h"
namespace users {
namespace layout_changes {

struct FlatCfg {
  int BLOCK = 1024;
};

// --- [B, S, H, D] to [B, H, S, D], one element of the result after the other, everything in 64 bits
auto heads_first = kernel("user_heads_first", [](const FlatCfg& c, Ptr<const bfloat16> x, Ptr<bfloat16> y, I64 S, I64 H,
                                                 I64 D, I64 n) {
                     auto i = cast(program_id(0), i64) * c.BLOCK + cast(arange(0, c.BLOCK), i64);
                     auto in = i < n;
                     auto d = i % D;
                     auto s = (i / D) % S;
                     auto h = (i / (D * S)) % H;
                     auto b = i / (D * S * H);
                     auto v = load(x + (((b * S + s) * H + h) * D + d), {.mask = in});
                     store(y + i, v, {.mask = in});
                   }).grid([](const FlatCfg& c, const bfloat16*, bfloat16*, int64_t, int64_t, int64_t, int64_t n) {
  return Grid{cdiv(n, int64_t(c.BLOCK))};
});
Register r1("heads_first", [](Env& e) {
  const int64_t B = e.big ? 8 : 2, S = e.big ? 4096 : 37, H = e.big ? 32 : 3, D = e.big ? 128 : 48, n = B * S * H * D;
  auto x = random<bfloat16>(e, n);
  auto y = constant<bfloat16>(e, n, NAN);
  Job j;
  j.mbytes = 4e-6 * double(n);
  j.add(heads_first, FlatCfg{e.field("BLOCK", 1024)}, x.p, y.p, S, H, D, n);
  j.check = [=] {
    std::vector<double> want(n);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t s = 0; s < S; ++s)
          for (int64_t d = 0; d < D; ++d) want[((b * H + h) * S + s) * D + d] = x[((b * S + s) * H + h) * D + d];
    return agree(y.now(), want, 1e-9, 0);
  };
  return j;
});

// --- channels first to channels last: a tile of channels and pixels is read and written under two sets of pointers
struct PixelCfg {
  int BC = 64, BP = 64;
};
auto channels_last = kernel("user_channels_last", [](const PixelCfg& c, Ptr<const half> x, Ptr<half> y, I32 C, I32 HW) {
                       auto p = program_id(0) * c.BP + arange(0, c.BP);
                       auto ch = program_id(1) * c.BC + arange(0, c.BC);
                       auto n = cast(program_id(2), i64) * C * HW;
                       auto in = (ch < C).col() & (p < HW).row();
                       auto v = load(x + n + (ch.col() * HW + p.row()), {.mask = in});
                       store(y + n + (p.row() * C + ch.col()), v, {.mask = in});
                     }).grid([](const PixelCfg& c, const half*, half*, int C, int HW) {
  return Grid{cdiv(HW, c.BP), cdiv(C, c.BC), 32};
});
Register r2("channels_last", [](Env& e) {
  const int N = 32, C = e.big ? 256 : 19, HW = e.big ? 56 * 56 : 5 * 9;
  const size_t n = size_t(N) * C * HW;
  auto x = random<half>(e, n);
  auto y = constant<half>(e, n, NAN);
  Job j;
  j.mbytes = 4e-6 * double(n);
  j.add(channels_last, PixelCfg{e.field("BC", 64), e.field("BP", 64)}, x.p, y.p, C, HW);
  j.check = [=] {
    std::vector<double> want(n);
    for (int b = 0; b < N; ++b)
      for (int k = 0; k < C; ++k)
        for (int p = 0; p < HW; ++p) want[(size_t(b) * HW + p) * C + k] = x[(size_t(b) * C + k) * HW + p];
    return agree(y.now(), want, 1e-9, 0);
  };
  return j;
});

// --- columns of patches (unfold): [B, C, H, W] to [B, C K K, OH OW]; zeros outside
struct UnfoldCfg {
  int BLOCK = 1024, K = 3;
};
auto unfold = kernel("user_unfold", [](const UnfoldCfg& c, Ptr<const half> x, Ptr<half> y, I32 C, I32 H, I32 W, I32 OH,
                                       I32 OW, I32 step, I32 pad, I32 n) {
                auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
                auto ow = i % OW, oh = i / OW % OH;
                auto rest = i / (OW * OH);
                auto kw = rest % c.K, kh = rest / c.K % c.K, ch = rest / (c.K * c.K) % C, b = rest / (c.K * c.K * C);
                auto ih = oh * step - pad + kh, iw = ow * step - pad + kw;
                auto in = ~((ih < 0) | (iw < 0) | (ih >= H) | (iw >= W)) & (i < n);
                auto v = load(x + ((b * C + ch) * H + ih) * W + iw, {.mask = in, .other = 0});
                store(y + i, v, {.mask = i < n});
              }).grid([](const UnfoldCfg& c, const half*, half*, int, int, int, int, int, int, int, int n) {
  return Grid{cdiv(n, c.BLOCK)};
});
// --- and back (fold): every element of the picture sums the patches it is in
auto fold = kernel("user_fold", [](const UnfoldCfg& c, Ptr<const half> cols, Ptr<float> dx, I32 H, I32 W, I32 OH,
                                   I32 OW, I32 step, I32 pad, I32 n) {
              auto i = program_id(0) * c.BLOCK + arange(0, c.BLOCK);
              auto w = i % W, h = i / W % H, plane = i / (W * H);  // plane: b C + c
              Tile total = zeros({c.BLOCK}, f32);
              for (auto kh : range(0, c.K))
                for (auto kw : range(0, c.K)) {
                  auto th = h + pad - kh, tw = w + pad - kw;
                  auto oh = th / step, ow = tw / step;
                  auto in = (i < n) & (th % step == 0) & (tw % step == 0) & (oh >= 0) & (th >= 0) & (oh < OH) &
                            (tw >= 0) & (ow < OW);
                  auto at = ((plane * (c.K * c.K) + kh * c.K + kw) * OH + oh) * OW + ow;
                  total = total + cast(load(cols + at, {.mask = in, .other = 0}), f32);
                }
              store(dx + i, total, {.mask = i < n});
            }).grid([](const UnfoldCfg& c, const half*, float*, int, int, int, int, int, int, int n) {
  return Grid{cdiv(n, c.BLOCK)};
});
Register r3("unfold", [](Env& e) {
  const int B = e.big ? 16 : 2, C = e.big ? 64 : 3, H = e.big ? 112 : 11, W = e.big ? 112 : 14, K = 3;
  const int step = e.big ? e.field("step", 1) : 2, pad = 1, OH = (H + 2 * pad - K) / step + 1,
            OW = (W + 2 * pad - K) / step + 1, n = B * C * K * K * OH * OW;
  auto x = random<half>(e, size_t(B) * C * H * W);
  auto y = constant<half>(e, n, NAN);
  auto dx = constant<float>(e, size_t(B) * C * H * W, NAN);
  const UnfoldCfg c{e.field("BLOCK", 1024), K};
  Job j;
  j.mbytes = 1e-6 * (4. * n + 6. * B * C * H * W);
  j.add(unfold, c, x.p, y.p, C, H, W, OH, OW, step, pad, n);
  j.add(fold, c, y.p, dx.p, H, W, OH, OW, step, pad, B * C * H * W);
  j.check = [=] {
    std::vector<double> want(n), back(size_t(B) * C * H * W);
    for (int p = 0; p < B * C; ++p)
      for (int t = 0; t < K * K; ++t)
        for (int o = 0; o < OH * OW; ++o) {
          const int h = o / OW * step - pad + t / K, w = o % OW * step - pad + t % K;
          if (h < 0 || w < 0 || h >= H || w >= W) continue;
          const size_t at = (size_t(p) * H + h) * W + w;
          want[(size_t(p) * K * K + t) * OH * OW + o] = x[at];
          back[at] += x[at];
        }
    auto wrong = agree(y.now(), want, 1e-9, 0);
    return wrong.empty() ? agree(dx.now(), back, 1e-5, 1e-5) : wrong;
  };
  return j;
});

// --- windows of S x S tokens, rolled by a shift: [B, H, W, C] to [B windows, S S, C] and back with the residual added
struct WindowCfg {
  int S = 7, BC = 128;
};
Tile window_rows(const WindowCfg& c, Tile window, Tile H, Tile W, Tile shift) {
  auto across = W / c.S, down = H / c.S;
  auto wx = window % across, wy = window / across % down, b = window / (across * down);
  auto t = arange(0, c.S * c.S);
  auto y = (wy * c.S + t / c.S + shift) % H, x = (wx * c.S + t % c.S + shift) % W;
  return (b * H + y) * W + x;
}
auto to_windows = kernel("user_to_windows", [](const WindowCfg& c, Ptr<const half> x, Ptr<half> y, I32 H, I32 W, I32 C,
                                               I32 shift, I32 windows) {
                    auto window = program_id(0);
                    auto from = window_rows(c, window, H, W, shift);
                    auto to = window * (c.S * c.S) + arange(0, c.S * c.S);
                    for (auto c0 : range(0, C, c.BC)) {
                      auto ch = c0 + arange(0, c.BC);
                      auto v = load(x + from.col() * C + ch.row(), {.mask = (ch < C).row()});
                      store(y + to.col() * C + ch.row(), v, {.mask = (ch < C).row()});
                    }
                  }).grid([](const WindowCfg&, const half*, half*, int, int, int, int, int n) { return Grid{n}; });
auto from_windows = kernel("user_from_windows", [](const WindowCfg& c, Ptr<const half> y, Ptr<const half> residual,
                                                   Ptr<half> out, I32 H, I32 W, I32 C, I32 shift, I32 n) {
                      // an element of the picture after the other
                      auto i = program_id(0) * (c.BC * 8) + arange(0, c.BC * 8);
                      auto ch = i % C, x = i / C % W, yy = i / (C * W) % H, b = i / (C * W * H);
                      auto sx = (x + W - shift) % W, sy = (yy + H - shift) % H;
                      auto window = (b * (H / c.S) + sy / c.S) * (W / c.S) + sx / c.S;
                      auto token = sy % c.S * c.S + sx % c.S;
                      auto v = load(y + (window * (c.S * c.S) + token) * C + ch, {.mask = i < n});
                      auto r = load(residual + i, {.mask = i < n});
                      store(out + i, v + r, {.mask = i < n});
                    }).grid([](const WindowCfg& c, const half*, const half*, half*, int, int, int, int, int n) {
  return Grid{cdiv(n, c.BC * 8)};
});
Register r4("window_roll", [](Env& e) {
  const int B = e.big ? 64 : 2, H = e.big ? 56 : 14, W = e.big ? 56 : 21, C = e.big ? 128 : 20, S = 7, shift = 3;
  const int n = B * H * W * C, windows = B * (H / S) * (W / S);
  auto x = random<half>(e, n), r = random<half>(e, n);
  auto y = constant<half>(e, n, NAN), out = constant<half>(e, n, NAN);
  const WindowCfg c{S, e.field("BC", 128)};
  Job j;
  j.mbytes = 10e-6 * n;
  j.add(to_windows, c, x.p, y.p, H, W, C, shift, windows);
  j.add(from_windows, c, y.p, r.p, out.p, H, W, C, shift, n);
  j.check = [=] {
    std::vector<double> want(n), back(n);
    for (int b = 0; b < B; ++b)
      for (int h = 0; h < H; ++h)
        for (int w = 0; w < W; ++w)
          for (int k = 0; k < C; ++k) {
            const size_t from = (size_t(b * H + (h + shift) % H) * W + (w + shift) % W) * C + k;
            const int window = (b * (H / S) + h / S) * (W / S) + w / S;
            want[(size_t(window) * S * S + h % S * S + w % S) * C + k] = x[from];
          }
    for (int i = 0; i < n; ++i) back[i] = x[i] + r[i];
    auto wrong = agree(y.now(), want, 1e-9, 0);
    return wrong.empty() ? agree(out.now(), back, 1e-3, 1e-3) : wrong;
  };
  return j;
});

// --- pixels into channels (unshuffle by 2): [C, 2 H, 2 W] to [C 4, H, W], boxes of views; and the means of the four
struct UnshuffleCfg {
  int BH = 8, BW = 64;
};
auto unshuffle = kernel("user_unshuffle", [](const UnshuffleCfg& c, Tensor<const half, 3> X, Tensor<half, 3> Y,
                                             Tensor<half, 3> mean) {
                   auto w = program_id(0) * c.BW, h = program_id(1) * c.BH, ch = program_id(2);
                   auto x = reshape(X.load({ch, h * 2, w * 2}, {1, c.BH * 2, c.BW * 2}), {c.BH, 2, c.BW, 2});
                   auto four = permute(x, {1, 3, 0, 2});
                   Y.store({ch * 4, h, w}, reshape(four, {4, c.BH, c.BW}));
                   auto m = sum(sum(cast(x, f32), axis(3)), axis(1)) * .25f;
                   mean.store({ch, h, w}, cast(reshape(m, {1, c.BH, c.BW}), f16));
                 }).grid([](const UnshuffleCfg& c, const auto&, const auto& y, const auto& m) {
  return Grid{cdiv(y.shape[2], c.BW), cdiv(y.shape[1], c.BH), m.shape[0]};
});
Register r5("unshuffle", [](Env& e) {
  const int C = e.big ? 512 : 3, H = e.big ? 256 : 11, W = e.big ? 256 : 70;
  const size_t n = size_t(C) * 4 * H * W;
  auto x = random<half>(e, n);
  auto y = constant<half>(e, n, NAN), m = constant<half>(e, n / 4, NAN);
  Job j;
  j.mbytes = 4.5e-6 * double(n);
  j.add(unshuffle, UnshuffleCfg{e.field("BH", 8), e.field("BW", 64)}, x.view(C, 2 * H, 2 * W), y.view(4 * C, H, W),
        m.view(C, H, W));
  j.check = [=] {
    std::vector<double> want(n), mean(n / 4);
    for (int k = 0; k < C; ++k)
      for (int h = 0; h < 2 * H; ++h)
        for (int w = 0; w < 2 * W; ++w) {
          const double v = x[(size_t(k) * 2 * H + h) * 2 * W + w];
          want[((size_t(k) * 4 + h % 2 * 2 + w % 2) * H + h / 2) * W + w / 2] = v;
          mean[(size_t(k) * H + h / 2) * W + w / 2] += v / 4;
        }
    auto wrong = agree(y.now(), want, 1e-9, 0);
    return wrong.empty() ? agree(m.now(), mean, 1e-3, 1e-3) : wrong;
  };
  return j;
});

}  // namespace layout_changes
}  // namespace users
