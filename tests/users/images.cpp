// images.cpp - a renderer's passes over images: edge-preserving filters, volumes along rays, levels of detail,
// exposure.
#include "tests/users/use.h"
namespace users {
namespace images {

constexpr float kLog2e = 1.4426950408889634f;

// --- bilateral filter: weights fall with distance and with difference in value
struct BilateralCfg {
  int BY = 8, BX = 128, radius = 4, warps = 4;
};
auto bilateral = kernel("user_bilateral", [](const BilateralCfg& c, Tensor<const half, 2> X, Tensor<half, 2> Y,
                                             F32 space, F32 range) {
                   num_warps(c.warps);
                   auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                   auto centre = cast(X.load({y, x}, {c.BY, c.BX}), f32);
                   auto row = y + arange(0, c.BY), column = x + arange(0, c.BX);
                   Tile total = zeros({c.BY, c.BX}, f32), weights = zeros({c.BY, c.BX}, f32);
                   for (int dy = -c.radius; dy <= c.radius; ++dy)
                     for (int dx = -c.radius; dx <= c.radius; ++dx) {
                       auto v = cast(X.load({y + dy, x + dx}, {c.BY, c.BX}), f32);
                       auto inside = ((row + dy >= 0) & (row + dy < X.dim(0))).col() &
                                     ((column + dx >= 0) & (column + dx < X.dim(1))).row();
                       auto d = v - centre;
                       auto w = where(inside, exp2(d * d * range + float(dy * dy + dx * dx) * space), 0.f);
                       total += w * v, weights += w;
                     }
                   Y.store({y, x}, cast(total / weights, f16));
                 }).grid([](const BilateralCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
});
Register r1("bilateral", [](Env& e) {
  BilateralCfg c;
  if (!e.big) c = {4, 16, 2, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 2160 : 13, W = e.big ? 3840 : 45, R = c.radius;
  auto x = random<half>(e, size_t(H) * W, 0, 1), y = constant<half>(e, size_t(H) * W, NAN);
  const float space = -kLog2e / (2 * 3 * 3), range = -kLog2e / (2 * .1f * .1f);
  Job j;
  j.gflop = 7e-9 * H * double(W) * (2 * R + 1) * (2 * R + 1);
  j.add(bilateral, c, x.view(H, W), y.view(H, W), space, range);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W);
    for (int i = 0; i < H; ++i)
      for (int k = 0; k < W; ++k) {
        double t = 0, ws = 0;
        for (int dy = -R; dy <= R; ++dy)
          for (int dx = -R; dx <= R; ++dx) {
            if (i + dy < 0 || i + dy >= H || k + dx < 0 || k + dx >= W) continue;
            const double v = x[size_t(i + dy) * W + k + dx], d = v - x[size_t(i) * W + k];
            const double w = std::exp2(d * d * range + (dy * dy + dx * dx) * space);
            t += w * v, ws += w;
          }
        want[size_t(i) * W + k] = t / ws;
      }
    return agree(y.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- non-local means: weights of neighbours by how alike their surroundings are
struct MeansCfg {
  int BY = 8, BX = 64, search = 3, patch = 1, warps = 4;
};
auto means =
    kernel("user_nlm", [](const MeansCfg& c, Tensor<const float, 2> X, Tensor<float, 2> Y, F32 strength) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      Tile total = zeros({c.BY, c.BX}, f32), weights = zeros({c.BY, c.BX}, f32);
      for (auto dy : range(-c.search, c.search + 1))
        for (auto dx : range(-c.search, c.search + 1)) {
          Tile distance = zeros({c.BY, c.BX}, f32);
          for (int py = -c.patch; py <= c.patch; ++py)
            for (int px = -c.patch; px <= c.patch; ++px) {
              auto d = X.load({y + py, x + px}, {c.BY, c.BX}) - X.load({y + dy + py, x + dx + px}, {c.BY, c.BX});
              distance += d * d;
            }
          auto w = exp2(distance * strength);
          total += w * X.load({y + dy, x + dx}, {c.BY, c.BX}), weights += w;
        }
      Y.store({y, x}, total / weights);
    }).grid([](const MeansCfg& c, const auto& x, const auto&...) {
      return Grid{cdiv(x.shape[1], c.BX), cdiv(x.shape[0], c.BY)};
    });
Register r2("nlm", [](Env& e) {
  MeansCfg c;
  if (!e.big) c = {4, 16, 2, 1, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 2160 : 13, W = e.big ? 3840 : 45, S = c.search, P = c.patch;
  auto x = random<float>(e, size_t(H) * W, 0, 1), y = constant<float>(e, size_t(H) * W, NAN);
  Job j;
  j.gflop = 1e-9 * H * double(W) * (2 * S + 1) * (2 * S + 1) * (3 * (2 * P + 1) * (2 * P + 1) + 5);
  j.add(means, c, x.view(H, W), y.view(H, W), -3.f);
  j.check = [=] {
    auto at = [&](int i, int k) { return i < 0 || i >= H || k < 0 || k >= W ? 0. : x[size_t(i) * W + k]; };
    std::vector<double> want(size_t(H) * W);
    for (int i = 0; i < H; ++i)
      for (int k = 0; k < W; ++k) {
        double t = 0, ws = 0;
        for (int dy = -S; dy <= S; ++dy)
          for (int dx = -S; dx <= S; ++dx) {
            double d = 0;
            for (int py = -P; py <= P; ++py)
              for (int px = -P; px <= P; ++px) d += std::pow(at(i + py, k + px) - at(i + dy + py, k + dx + px), 2);
            const double w = std::exp2(-3 * d);
            t += w * at(i + dy, k + dx), ws += w;
          }
        want[size_t(i) * W + k] = t / ws;
      }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- volumes: samples of a ray are in one row, front to back; rays end when nothing more gets through
struct VolumeCfg {
  int rays = 16, samples = 32, warps = 4;
};
auto volume = kernel("user_volume", [](const VolumeCfg& c, Ptr<const int32_t> start, Tensor<const float, 1> sigma,
                                       Tensor<const half, 2> rgb, Tensor<const float, 1> step, Tensor<float, 2> image) {
                // ray r has samples start[r] .. start[r + 1]; rgb [n, 3], image [rays, 4]: colour and opacity
                num_warps(c.warps);
                auto r = program_id(0) * c.rays + arange(0, c.rays);
                auto some = r < image.dim(0);
                auto from = load(start + r, {.mask = some}), to = load(start + r + 1, {.mask = some});
                auto most = max(to - from);
                Tile clear = ones({c.rays, 1}, f32), colour[3];
                for (auto& x : colour) x = zeros({c.rays, 1}, f32);
                Tile k = 0;
                while_([&] { return (k < most) & (max(clear) > 1e-4f); },
                       [&] {
                         auto p = from.col() + k + arange(0, c.samples).row();
                         auto here = p < to.col();
                         auto passes = exp2(load(sigma.ptr() + p, {.mask = here}) *
                                            load(step.ptr() + p, {.mask = here}) * -kLog2e);
                         auto through = cumprod(passes, axis(1)) * clear;
                         auto before = where(passes > 0.f, through / passes, 0.f);
                         auto weight = before * (1.f - passes);
                         for (int i = 0; i < 3; ++i)
                           colour[i] += sum(weight * cast(load(rgb.ptr() + p * 3 + i, {.mask = here}), f32), axis(1));
                         clear *= prod(passes, axis(1));
                         k += c.samples;
                       });
                auto out = cat(cat(colour[0], colour[1], 1), cat(colour[2], 1.f - clear, 1), 1);
                image.store({program_id(0) * c.rays, 0}, out);
              }).grid([](const VolumeCfg& c, auto*, const auto&, const auto&, const auto&, const auto& image) {
  return Grid{cdiv(image.shape[0], c.rays)};
});
Register r3("volume", [](Env& e) {
  VolumeCfg c;
  if (!e.big) c = {8, 16, 1};
  c.rays = e.field("rays", c.rays), c.samples = e.field("samples", c.samples), c.warps = e.field("warps", c.warps);
  const int rays = e.big ? 1 << 18 : 43;
  std::vector<int32_t> start{0};
  for (int r = 0; r < rays; ++r) start.push_back(start.back() + (e.big ? 32 + r * 37 % 64 : r * 5 % 40));
  const size_t n = start.back();
  auto st = filled<int32_t>(e, start.size(), [&](size_t i) { return start[i]; });
  auto s = random<float>(e, n, 0, 4), d = random<float>(e, n, .01, .05);
  auto rgb = random<half>(e, 3 * n, 0, 1);
  auto y = constant<float>(e, size_t(rays) * 4, NAN);
  Job j;
  j.mbytes = 14e-6 * double(n);
  j.add(volume, c, st.p, s.view(n), rgb.view(n, 3), d.view(n), y.view(rays, 4));
  j.check = [=] {
    std::vector<double> want(size_t(rays) * 4);
    for (int r = 0; r < rays; ++r) {
      double clear = 1;
      for (int p = start[r]; p < start[r + 1]; ++p) {
        const double a = 1 - std::exp(-s[p] * d[p]);
        for (int i = 0; i < 3; ++i) want[r * 4 + i] += clear * a * rgb[size_t(p) * 3 + i];
        clear *= 1 - a;
      }
      want[r * 4 + 3] = 1 - clear;
    }
    return agree(y.now(), want, 2e-4, 1e-4);
  };
  return j;
});

// --- levels of detail: three halvings of an image of four bytes a pixel, averaged in linear light
struct LevelCfg {
  int B = 32, warps = 4;
};
auto levels = kernel("user_levels", [](const LevelCfg& c, Tensor<const uint8_t, 3> X, Tensor<uint8_t, 3> Y1,
                                       Tensor<uint8_t, 3> Y2, Tensor<uint8_t, 3> Y3) {
                num_warps(c.warps);
                auto y = program_id(1) * c.B, x = program_id(0) * c.B;
                auto v = cast(X.load({y, x, 0}, {c.B, c.B, 4}), f32) * (1 / 255.f);
                Tile light = v * v;  // gamma 2, alpha too
                int size = c.B;
                for (auto* out : {&Y1, &Y2, &Y3}) {
                  size /= 2;
                  light = reshape(sum(reshape(light, {size, 2, size, 2, 4}), axis(1)), {size, size, 2, 4});
                  light = squeeze(sum(light, axis(2)), 2) * .25f;
                  auto s = y / (c.B / size), t = x / (c.B / size);
                  out->store({s, t, 0}, cast(sqrt(light) * 255.f + .5f, u8));
                }
              }).grid([](const LevelCfg& c, const auto& x, const auto&...) {
  return Grid{cdiv(x.shape[1], c.B), cdiv(x.shape[0], c.B)};
});
Register r4("levels", [](Env& e) {
  LevelCfg c;
  if (!e.big) c = {8, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 4096 : 24, W = e.big ? 4096 : 40;
  auto x = integers<uint8_t>(e, size_t(H) * W * 4, 0, 256);
  std::array<Array<uint8_t>, 3> y;
  for (int i = 0; i < 3; ++i)
    y[i] = filled<uint8_t>(e, size_t(H >> (i + 1)) * (W >> (i + 1)) * 4, [](size_t) { return 7; });
  Job j;
  j.mbytes = 4e-6 * H * W * 1.33;
  j.add(levels, c, x.view(H, W, 4), y[0].view(H / 2, W / 2, 4), y[1].view(H / 4, W / 4, 4), y[2].view(H / 8, W / 8, 4));
  j.check = [=] {
    for (int i = 0; i < 3; ++i) {
      const int f = 2 << i, h = H / f, w = W / f;
      const auto got = y[i].now();
      for (int at = 0; at < h * w * 4; ++at) {
        double s = 0;
        for (int a = 0; a < f; ++a)
          for (int b = 0; b < f; ++b)
            s += std::pow(x.h[((at / 4 / w * f + a) * W + at / 4 % w * f + b) * 4 + at % 4] / 255., 2);
        const double want = std::sqrt(s / (f * f)) * 255;
        if (std::abs(got[at] - want) > .501) return "level " + std::to_string(i) + ", element " + std::to_string(at);
      }
    }
    return std::string();
  };
  return j;
});

// --- exposure: a histogram of log luminance, then a curve that depends on its mean
struct ExposureCfg {
  int N = 4096, warps = 8;
};
auto luminance = kernel("user_luminance", [](const ExposureCfg& c, Ptr<const half> rgb, Ptr<int32_t> bins, I32 n) {
                   num_warps(c.warps);
                   auto i = program_id(0) * c.N + arange(0, c.N);
                   auto inside = i < n;
                   auto part = [&](int k) { return cast(load(rgb + i * 3 + k, {.mask = inside}), f32); };
                   auto y = part(0) * .2126f + part(1) * .7152f + part(2) * .0722f;
                   auto bin = cast(clamp((log2(max(y, 1e-6f)) + 10.f) * (256 / 20.f), 0.f, 255.f), i32);
                   auto counts = histogram(bin, 256, {.mask = inside});
                   atomic_add(bins + arange(0, 256), counts, {.mask = counts > 0, .order = Order::relaxed});
                 }).grid([](const ExposureCfg& c, auto*, auto*, int n) { return Grid{cdiv(n, c.N)}; });
auto tone = kernel("user_tone", [](const ExposureCfg& c, Tensor<const half, 1> rgb, Ptr<const int32_t> bins,
                                   Tensor<uint8_t, 1> out) {
              num_warps(c.warps);
              auto b = arange(0, 256), count = load(bins + b);
              auto mean = sum(cast(count, f32) * ((cast(b, f32) + .5f) * (20 / 256.f) - 10.f)) / cast(sum(count), f32);
              auto x = cast(rgb.load({program_id(0) * c.N}, {c.N}), f32) * (.18f * exp2(-mean));
              auto curve = clamp(x * (2.51f * x + .03f) / (x * (2.43f * x + .59f) + .14f), 0.f, 1.f);
              out.store({program_id(0) * c.N}, cast(pow(curve, 1 / 2.2f) * 255.f + .5f, u8));
            }).grid([](const ExposureCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.N)}; });
Register r5("exposure", [](Env& e) {
  ExposureCfg c;
  if (!e.big) c = {256, 4};
  c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 3840 * 2160 : 1001;
  auto x = drawn<half>(e, size_t(n) * 3, [&] { return half(float(std::exp2(e.uniform() * 12 - 8))); });
  auto bins = constant<int32_t>(e, 256, 0);
  auto y = filled<uint8_t>(e, size_t(n) * 3, [](size_t) { return 7; });
  Job j;
  j.mbytes = 15e-6 * n;
  j.add(luminance, c, x.p, bins.p, n);
  j.add(tone, c, x.view(n * 3), bins.p, y.view(n * 3));
  j.check = [=] {
    double sum = 0;
    std::vector<int> counts(256);
    for (int i = 0; i < n; ++i) {
      const double l = x[i * 3] * .2126 + x[i * 3 + 1] * .7152 + x[i * 3 + 2] * .0722;
      counts[int(std::clamp((std::log2(std::max(l, 1e-6)) + 10) * 12.8, 0., 255.))]++;
    }
    for (int b = 0; b < 256; ++b) sum += counts[b] * ((b + .5) / 12.8 - 10);
    const auto got = y.now();
    for (int i = 0; i < n * 3; ++i) {
      const double v = x[i] * .18 * std::exp2(-sum / n);
      const double t = std::clamp(v * (2.51 * v + .03) / (v * (2.43 * v + .59) + .14), 0., 1.);
      if (!(std::abs(got[i] - std::pow(t, 1 / 2.2) * 255) < .6)) return "element " + std::to_string(i);
    }
    return std::string();
  };
  return j;
});

}  // namespace images
}  // namespace users
