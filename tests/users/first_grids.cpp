// first_grids.cpp - what people write first on grids and pictures: sweeps in two colours, residuals, all 27 neighbours,
// filters, resampling, layers of pixels, gas in two dimensions, particles to a grid. No warps, stages or hints.
#include <array>

#include "tests/users/use.h"
namespace users {
namespace first_grids {

// --- Gauss-Seidel in two colours, in place: one launch relaxes every second cell
struct GridCfg {
  int BY = 8, BX = 128;
};
auto red_black =
    kernel("user_red_black", [](const GridCfg& c, Ptr<float> u, Ptr<const float> f, I32 H, I32 W, I32 colour, F32 h2) {
      auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(), x = (program_id(0) * c.BX + arange(0, c.BX)).row();
      auto in = (y > 0) & (y < H - 1) & (x > 0) & (x < W - 1) & ((y + x) % 2 == colour);
      auto at = y * W + x;
      auto around = load(u + at - 1, {.mask = in}) + load(u + at + 1, {.mask = in}) + load(u + at - W, {.mask = in}) +
                    load(u + at + W, {.mask = in});
      store(u + at, .25f * (around - h2 * load(f + at, {.mask = in})), {.mask = in});
    }).grid([](const GridCfg& c, float*, auto, int H, int W, int, float) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
Register r1("red_black", [](Env& e) {
  GridCfg c;
  if (!e.big) c = {4, 16};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int H = e.big ? 8192 : 21, W = e.big ? 8192 : 37;
  auto u = random<float>(e, size_t(H) * W), f = random<float>(e, size_t(H) * W);
  Job j;
  restore(e, j, u);
  j.mbytes = 12e-6 * H * W * 2;
  for (int colour = 0; colour < 2; ++colour) j.add(red_black, c, u.p, f.p, H, W, colour, .5f);
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < H * W; ++i) want.push_back(u[i]);
    for (int colour = 0; colour < 2; ++colour)
      for (int y = 1; y < H - 1; ++y)
        for (int x = 1; x < W - 1; ++x)
          if (const int i = y * W + x; (y + x) % 2 == colour)
            want[i] = .25 * (want[i - 1] + want[i + 1] + want[i - W] + want[i + W] - .5 * f[i]);
    return agree(u.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- Jacobi, and the norm of the residual it leaves
auto jacobi = kernel("user_jacobi", [](const GridCfg& c, Ptr<const double> u, Ptr<const double> f, Ptr<double> next,
                                       Ptr<double> norm, I32 H, I32 W) {
                auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(),
                     x = (program_id(0) * c.BX + arange(0, c.BX)).row();
                auto in = (y > 0) & (y < H - 1) & (x > 0) & (x < W - 1);
                auto read = [&](const Tile& at) { return load(u + at, {.mask = in, .other = 0.0}); };
                auto at = y * W + x;
                auto here = read(at);
                auto residual = load(f + at, {.mask = in, .other = 0.0}) -
                                (4.0 * here - read(at - 1) - read(at + 1) - read(at - W) - read(at + W));
                store(next + at, here + .25 * residual, {.mask = in});
                atomic_add(norm, sum(residual * residual));
              }).grid([](const GridCfg& c, auto, auto, double*, double*, int H, int W) {
  return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
});
Register r2("jacobi_norm", [](Env& e) {
  GridCfg c;
  if (!e.big) c = {4, 16};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int H = e.big ? 8192 : 21, W = e.big ? 8192 : 37;
  auto u = random<double>(e, size_t(H) * W), f = random<double>(e, size_t(H) * W);
  auto next = constant<double>(e, size_t(H) * W, 0), norm = constant<double>(e, 1, 0);
  Job j;
  restore(e, j, norm);
  j.mbytes = 24e-6 * H * W;
  j.add(jacobi, c, u.p, f.p, next.p, norm.p, H, W);
  j.check = [=] {
    std::vector<double> want(size_t(H) * W), total{0};
    for (int y = 1; y < H - 1; ++y)
      for (int x = 1; x < W - 1; ++x) {
        const int i = y * W + x;
        const double r = f[i] - (4 * u[i] - u[i - 1] - u[i + 1] - u[i - W] - u[i + W]);
        want[i] = u[i] + .25 * r, total[0] += r * r;
      }
    const auto wrong = agree(next.now(), want, 1e-13, 1e-13);
    return wrong.empty() ? agree(norm.now(), total, 1e-10, 1e-10) : wrong;
  };
  return j;
});

// --- all 27 neighbours of a box, weights by distance
struct BoxCfg {
  int BY = 4, BX = 128;
};
auto stencil27 = kernel("user_stencil27", [](const BoxCfg& c, Ptr<const float> u, Ptr<float> out, I32 D, I32 H, I32 W,
                                             F32 w0, F32 w1, F32 w2, F32 w3) {
                   auto z = program_id(2), y = (program_id(1) * c.BY + arange(0, c.BY)).col(),
                        x = (program_id(0) * c.BX + arange(0, c.BX)).row();
                   auto in = (z > 0) & (z < D - 1) & (y > 0) & (y < H - 1) & (x > 0) & (x < W - 1);
                   auto at = (z * H + y) * W + x;
                   const std::array<Tile, 4> w{w0, w1, w2, w3};
                   Tile total = zeros({c.BY, c.BX}, f32);
                   for (int dz = -1; dz <= 1; ++dz)
                     for (int dy = -1; dy <= 1; ++dy)
                       for (int dx = -1; dx <= 1; ++dx)
                         total += w[std::abs(dz) + std::abs(dy) + std::abs(dx)] *
                                  load(u + at + (dz * H + dy) * W + dx, {.mask = in});
                   store(out + at, total, {.mask = in});
                 }).grid([](const BoxCfg& c, auto, float*, int D, int H, int W, float, float, float, float) {
  return Grid{cdiv(W, c.BX), cdiv(H, c.BY), D};
});
Register r3("stencil27", [](Env& e) {
  BoxCfg c;
  if (!e.big) c = {4, 16};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int D = e.big ? 384 : 5, H = e.big ? 384 : 9, W = e.big ? 384 : 19;
  auto u = random<float>(e, size_t(D) * H * W);
  auto out = constant<float>(e, u.n, 0);
  Job j;
  j.mbytes = 8e-6 * double(u.n);
  j.add(stencil27, c, u.p, out.p, D, H, W, .5f, .1f, .05f, .02f);
  j.check = [=] {
    std::vector<double> want(u.n);
    const double w[4] = {.5, .1, .05, .02};
    for (int z = 1; z < D - 1; ++z)
      for (int y = 1; y < H - 1; ++y)
        for (int x = 1; x < W - 1; ++x)
          for (int k = 0; k < 27; ++k) {
            const int dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1;
            want[(z * H + y) * W + x] +=
                w[std::abs(dx) + std::abs(dy) + std::abs(dz)] * u[((z + dz) * H + y + dy) * W + x + dx];
          }
    return agree(out.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- a blur along rows, then along columns, of bytes; and the size of the gradient (Sobel)
struct PictureCfg {
  int BY = 8, BX = 128, R = 4;
};
auto blur = [](bool down) {
  return [down](const PictureCfg& c, Ptr<const uint8_t> in, Ptr<const float> weights, Ptr<uint8_t> out, I32 H, I32 W) {
    auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(), x = (program_id(0) * c.BX + arange(0, c.BX)).row();
    auto inside = (y < H) & (x < W);
    Tile total = zeros({c.BY, c.BX}, f32);
    for (int k = -c.R; k <= c.R; ++k) {
      auto yy = down ? clamp(y + k, 0, H - 1) : y, xx = down ? x : clamp(x + k, 0, W - 1);
      total += load(weights + k + c.R) * cast(load(in + yy * W + xx, {.mask = inside}), f32);
    }
    store(out + y * W + x, cast(total + .5f, u8), {.mask = inside});
  };
};
auto picture_grid = [](const PictureCfg& c, auto, auto, uint8_t*, int H, int W) {
  return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
};
auto blur_rows = kernel("user_blur_rows", blur(false)).grid(picture_grid);
auto blur_columns = kernel("user_blur_columns", blur(true)).grid(picture_grid);
auto sobel =
    kernel("user_sobel", [](const PictureCfg& c, Ptr<const uint8_t> in, Ptr<uint8_t> out, I32 H, I32 W) {
      auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(), x = (program_id(0) * c.BX + arange(0, c.BX)).row();
      auto at = [&](int dy, int dx) {
        auto yy = y + dy, xx = x + dx;
        return cast(load(in + yy * W + xx, {.mask = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W), .other = 0}), i32);
      };
      auto gx = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
      auto gy = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
      store(out + y * W + x, cast(min(abs(gx) + abs(gy), 255), u8), {.mask = (y < H) & (x < W)});
    }).grid([](const PictureCfg& c, auto, uint8_t*, int H, int W) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
Register r4("blur_and_edges", [](Env& e) {
  PictureCfg c;
  if (!e.big) c = {4, 16, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int H = e.big ? 8192 : 13, W = e.big ? 8192 : 45;
  auto in = integers<uint8_t>(e, size_t(H) * W, 0, 256);
  std::vector<float> w;
  for (int k = -c.R; k <= c.R; ++k) w.push_back(std::exp(-k * k / 4.f));
  float sum = 0;
  for (float x : w) sum += x;
  for (float& x : w) x /= sum;
  auto weights = repeated(e, w.size(), w);
  auto half_way = constant<uint8_t>(e, in.n, 0), out = constant<uint8_t>(e, in.n, 0),
       edges = constant<uint8_t>(e, in.n, 0);
  Job j;
  j.mbytes = 6e-6 * double(in.n);
  j.add(blur_rows, c, in.p, weights.p, half_way.p, H, W);
  j.add(blur_columns, c, half_way.p, weights.p, out.p, H, W);
  j.add(sobel, c, out.p, edges.p, H, W);
  j.check = [=] {
    std::vector<double> first, second;
    auto near = [&](int v, int n) { return std::clamp(v, 0, n - 1); };
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double s = 0;
        for (int k = -c.R; k <= c.R; ++k) s += double(w[k + c.R]) * in.h[y * W + near(x + k, W)];
        first.push_back(s);
      }
    const auto got = half_way.now(), blurred = out.now(), found = edges.now();
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double s = 0;
        for (int k = -c.R; k <= c.R; ++k) s += double(w[k + c.R]) * got[near(y + k, H) * W + x];
        second.push_back(s);
        auto at = [&](int dy, int dx) {
          return y + dy < 0 || y + dy >= H || x + dx < 0 || x + dx >= W ? 0 : int(blurred[(y + dy) * W + x + dx]);
        };
        const int gx = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
        const int gy = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
        if (found[y * W + x] != std::min(std::abs(gx) + std::abs(gy), 255)) return std::string("edge");
      }
    const auto wrong = agree(got, first, .501, 0);
    return wrong.empty() ? agree(blurred, second, .501, 0) : wrong;
  };
  return j;
});

// --- pictures resampled by an affine map, 16 neighbours with cubic weights, pixels of four bytes
struct WarpCfg {
  int BY = 8, BX = 64;
};
std::array<Tile, 4> cubic(const Tile& t) {  // Catmull-Rom
  return {((-.5f * t + 1.f) * t - .5f) * t, (1.5f * t - 2.5f) * t * t + 1.f, ((-1.5f * t + 2.f) * t + .5f) * t,
          (.5f * t - .5f) * t * t};
}
auto warp =
    kernel("user_warp", [](const WarpCfg& c, Ptr<const uint8_t> in, Ptr<uint8_t> out, I32 h, I32 w, I32 H, I32 W, F32 a,
                           F32 b, F32 tx, F32 d, F32 f, F32 ty) {
      auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(), x = (program_id(0) * c.BX + arange(0, c.BX)).row();
      auto u = a * cast(x, f32) + b * cast(y, f32) + tx, v = d * cast(x, f32) + f * cast(y, f32) + ty;
      auto ix = cast(floor(u), i32), iy = cast(floor(v), i32);
      auto wx = cubic(u - floor(u)), wy = cubic(v - floor(v));
      auto inside = (y < H) & (x < W);
      for (int channel = 0; channel < 4; ++channel) {
        Tile total = zeros({c.BY, c.BX}, f32);
        for (int k = 0; k < 4; ++k) {
          Tile line = zeros({c.BY, c.BX}, f32);
          for (int l = 0; l < 4; ++l) {
            auto yy = clamp(iy + k - 1, 0, h - 1), xx = clamp(ix + l - 1, 0, w - 1);
            line += wx[l] * cast(load(in + (yy * w + xx) * 4 + channel, {.mask = inside}), f32);
          }
          total += wy[k] * line;
        }
        store(out + (y * W + x) * 4 + channel, cast(clamp(total + .5f, 0.f, 255.f), u8), {.mask = inside});
      }
    }).grid([](const WarpCfg& c, auto, uint8_t*, int, int, int H, int W, float, float, float, float, float, float) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
Register r5("warp", [](Env& e) {
  WarpCfg c;
  if (!e.big) c = {4, 16};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int h = e.big ? 2160 : 17, w = e.big ? 3840 : 23, H = e.big ? 2160 : 13, W = e.big ? 3840 : 37;
  auto in = integers<uint8_t>(e, size_t(h) * w * 4, 0, 256);
  auto out = constant<uint8_t>(e, size_t(H) * W * 4, 0);
  const float m[6] = {.8f, .1f, -1.25f, -.1f, .9f, 2.5f};
  Job j;
  j.mbytes = 4e-6 * (double(h) * w + double(H) * W);
  j.add(warp, c, in.p, out.p, h, w, H, W, m[0], m[1], m[2], m[3], m[4], m[5]);
  j.check = [=] {
    std::vector<double> want;
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x)
        for (int ch = 0; ch < 4; ++ch) {
          const float u = m[0] * x + m[1] * y + m[2], v = m[3] * x + m[4] * y + m[5];
          const double tx = double(u) - std::floor(u), ty = double(v) - std::floor(v);
          auto weight = [](double t, int k) {
            const double all[4] = {((-.5 * t + 1) * t - .5) * t, (1.5 * t - 2.5) * t * t + 1,
                                   ((-1.5 * t + 2) * t + .5) * t, (.5 * t - .5) * t * t};
            return all[k];
          };
          double s = 0;
          for (int k = 0; k < 16; ++k) {
            const int yy = std::clamp(int(std::floor(v)) + k / 4 - 1, 0, h - 1),
                      xx = std::clamp(int(std::floor(u)) + k % 4 - 1, 0, w - 1);
            s += weight(ty, k / 4) * weight(tx, k % 4) * in.h[(yy * w + xx) * 4 + ch];
          }
          want.push_back(std::clamp(s, 0., 255.));
        }
    return agree(out.now(), want, .51, 0);
  };
  return j;
});

// --- layers of pixels over each other: four bytes a pixel, alpha of each, back to front
struct BlendCfg {
  int B = 256;
};
auto blend = kernel("user_blend", [](const BlendCfg& c, Ptr<const uint8_t> layers, Ptr<uint8_t> out, I32 n, I32 count) {
               auto i = program_id(0) * c.B + arange(0, c.B);
               auto in = i < n;
               std::array<Tile, 3> colour;
               for (auto& x : colour) x = zeros({c.B}, f32);
               for (auto k : range(0, count)) {
                 auto p = layers + cast(k, i64) * n * 4 + i * 4;
                 auto alpha = cast(load(p + 3, {.mask = in}), f32) * (1.f / 255);
                 for (int ch = 0; ch < 3; ++ch)
                   colour[ch] += alpha * (cast(load(p + ch, {.mask = in}), f32) - colour[ch]);
               }
               for (int ch = 0; ch < 3; ++ch) store(out + i * 4 + ch, cast(colour[ch] + .5f, u8), {.mask = in});
               store(out + i * 4 + 3, cast(full({c.B}, 255, i32), u8), {.mask = in});
             }).grid([](const BlendCfg& c, auto, uint8_t*, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r6("blend", [](Env& e) {
  BlendCfg c;
  if (!e.big) c = {32};
  c.B = e.field("B", c.B);
  const int n = e.big ? 3840 * 2160 : 101, count = 8;
  auto layers = integers<uint8_t>(e, size_t(n) * count * 4, 0, 256);
  auto out = constant<uint8_t>(e, size_t(n) * 4, 0);
  Job j;
  j.mbytes = 4e-6 * n * (count + 1);
  j.add(blend, c, layers.p, out.p, n, count);
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i)
      for (int ch = 0; ch < 4; ++ch) {
        double s = 0;
        for (int k = 0; k < count; ++k) {
          const size_t p = (size_t(k) * n + i) * 4;
          s += layers.h[p + 3] / 255. * (layers.h[p + ch] - s);
        }
        want.push_back(ch == 3 ? 255 : s);
      }
    return agree(out.now(), want, .51, 0);
  };
  return j;
});

// --- gas in two dimensions (Euler): slopes limited by minmod, Rusanov's fluxes, rows and columns periodic
using Gas = std::array<Tile, 4>;
auto gas =
    kernel("user_gas", [](const GridCfg& c, Ptr<const float> U, Ptr<float> out, I32 H, I32 W, F32 step) {
      auto y = (program_id(1) * c.BY + arange(0, c.BY)).col(), x = (program_id(0) * c.BX + arange(0, c.BX)).row();
      auto in = (y < H) & (x < W);
      auto plane = H * W;
      auto cell = [&](int dy, int dx) {
        auto at = floor_mod(y + dy, H) * W + floor_mod(x + dx, W);
        Gas g;
        for (int k = 0; k < 4; ++k) g[k] = load(U + k * plane + at, {.mask = in, .other = 1.f});
        return g;
      };
      auto minmod = [](const Tile& a, const Tile& b) { return where(a * b > 0.f, where(abs(a) < abs(b), a, b), 0.f); };
      auto flux = [&](const Gas& l, const Gas& r, int axis) {  // of density, momenta, energy through a face
        Gas f[2];
        Tile speed[2];
        for (int s = 0; s < 2; ++s) {
          const Gas& q = s ? r : l;
          auto inverse = 1.f / q[0];
          auto v = q[1 + axis] * inverse;
          auto p = .4f * (q[3] - .5f * (q[1] * q[1] + q[2] * q[2]) * inverse);
          f[s] = {q[1 + axis], q[1] * v, q[2] * v, (q[3] + p) * v};
          f[s][1 + axis] += p;
          speed[s] = abs(v) + sqrt(1.4f * max(p, 0.f) * inverse);
        }
        auto fastest = max(speed[0], speed[1]);
        Gas out;
        for (int k = 0; k < 4; ++k) out[k] = .5f * (f[0][k] + f[1][k] - fastest * (r[k] - l[k]));
        return out;
      };
      Gas next = cell(0, 0);
      for (int axis = 0; axis < 2; ++axis) {
        std::array<Gas, 5> q;
        for (int k = 0; k < 5; ++k) q[k] = axis ? cell(k - 2, 0) : cell(0, k - 2);
        Gas low[3], high[3];  // of cells -1, 0, 1
        for (int s = 0; s < 3; ++s)
          for (int k = 0; k < 4; ++k) {
            auto slope = .5f * minmod(q[s + 1][k] - q[s][k], q[s + 2][k] - q[s + 1][k]);
            low[s][k] = q[s + 1][k] - slope, high[s][k] = q[s + 1][k] + slope;
          }
        auto before = flux(high[0], low[1], axis), after = flux(high[1], low[2], axis);
        for (int k = 0; k < 4; ++k) next[k] -= step * (after[k] - before[k]);
      }
      for (int k = 0; k < 4; ++k) store(out + k * plane + y * W + x, next[k], {.mask = in});
    }).grid([](const GridCfg& c, auto, float*, int H, int W, float) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
Register r7("gas", [](Env& e) {
  GridCfg c{4, 128};
  if (!e.big) c = {4, 16};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX);
  const int H = e.big ? 4096 : 13, W = e.big ? 4096 : 37, n = H * W;
  auto U = drawn<float>(e, size_t(n) * 4, [&] { return float(e.uniform() * .4 - .2); });
  if (e.device && !e.big) {
    for (int i = 0; i < n; ++i) U.h[i] += 1, U.h[3 * n + i] += 2.5f;
    U = repeated(e, U.n, U.h);
  }
  auto out = constant<float>(e, U.n, NAN);
  Job j;
  j.mbytes = 32e-6 * n;
  j.add(gas, c, U.p, out.p, H, W, .1f);
  j.check = [=] {
    std::vector<double> want(U.n);
    auto at = [&](int k, int y, int x) { return U[size_t(k) * n + (y + H) % H * W + (x + W) % W]; };
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double next[4];
        for (int k = 0; k < 4; ++k) next[k] = at(k, y, x);
        for (int axis = 0; axis < 2; ++axis)
          for (int face = 0; face < 2; ++face) {  // between cells face - 1 and face
            double q[2][4], f[2][4], speed = 0;
            for (int s = 0; s < 2; ++s) {
              for (int k = 0; k < 4; ++k) {
                double v[3];
                for (int t = 0; t < 3; ++t) {
                  const int d = face - 1 + s + t - 1;
                  v[t] = axis ? at(k, y + d, x) : at(k, y, x + d);
                }
                const double a = v[1] - v[0], b = v[2] - v[1];
                q[s][k] = v[1] + (s ? -.5 : .5) * (a * b > 0 ? (std::abs(a) < std::abs(b) ? a : b) : 0);
              }
              const double* w = q[s];
              const double v = w[1 + axis] / w[0], p = .4 * (w[3] - .5 * (w[1] * w[1] + w[2] * w[2]) / w[0]);
              for (int k = 0; k < 4; ++k) f[s][k] = k == 0 ? w[1 + axis] : k == 3 ? (w[3] + p) * v : w[k] * v;
              f[s][1 + axis] += p;
              speed = std::max(speed, std::abs(v) + std::sqrt(1.4 * std::max(p, 0.) / w[0]));
            }
            for (int k = 0; k < 4; ++k)
              next[k] -= (face ? 1 : -1) * .1 * .5 * (f[0][k] + f[1][k] - speed * (q[1][k] - q[0][k]));
          }
        for (int k = 0; k < 4; ++k) want[size_t(k) * n + y * W + x] = next[k];
      }
    return agree(out.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- material points to a grid: mass and momentum of every particle to the nine cells around (quadratic weights)
struct PointsCfg {
  int B = 128;
};
auto to_grid =
    kernel("user_to_grid", [](const PointsCfg& c, Ptr<const float> x, Ptr<const float> v, Ptr<const float> C,
                              Ptr<float> grid, I32 n, I32 side, F32 mass) {
      // x, v [n, 2] in cells, C [n, 4]; grid [side, side, 3]: momenta and mass
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      auto px = load(x + i * 2, {.mask = in, .other = 2.f}), py = load(x + i * 2 + 1, {.mask = in, .other = 2.f});
      auto vx = load(v + i * 2, {.mask = in}), vy = load(v + i * 2 + 1, {.mask = in});
      std::array<Tile, 4> affine;
      for (int k = 0; k < 4; ++k) affine[k] = load(C + i * 4 + k, {.mask = in});
      auto bx = cast(px - .5f, i32), by = cast(py - .5f, i32);
      auto fx = px - cast(bx, f32), fy = py - cast(by, f32);
      auto weights = [](const Tile& f) {
        return std::array<Tile, 3>{.5f * (1.5f - f) * (1.5f - f), .75f - (f - 1.f) * (f - 1.f),
                                   .5f * (f - .5f) * (f - .5f)};
      };
      auto wx = weights(fx), wy = weights(fy);
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          auto dx = float(a) - fx, dy = float(b) - fy;
          auto w = wx[a] * wy[b] * mass;
          auto to = grid + ((bx + a) * side + by + b) * 3;
          atomic_add(to, w * (vx + affine[0] * dx + affine[1] * dy), {.mask = in});
          atomic_add(to + 1, w * (vy + affine[2] * dx + affine[3] * dy), {.mask = in});
          atomic_add(to + 2, w, {.mask = in});
        }
    }).grid([](const PointsCfg& c, auto, auto, auto, float*, int n, int, float) { return Grid{cdiv(n, c.B)}; });
Register r8("points_to_grid", [](Env& e) {
  PointsCfg c;
  if (!e.big) c = {32};
  c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 22 : 201, side = e.big ? 1024 : 16;
  auto x = random<float>(e, size_t(n) * 2, 1, side - 2), v = random<float>(e, size_t(n) * 2),
       C = random<float>(e, size_t(n) * 4);
  auto grid = constant<float>(e, size_t(side) * side * 3, 0);
  Job j;
  restore(e, j, grid);
  j.mbytes = 32e-6 * n;
  j.add(to_grid, c, x.p, v.p, C.p, grid.p, n, side, .5f);
  j.check = [=] {
    std::vector<double> want(grid.n);
    for (int i = 0; i < n; ++i) {
      const int b[2] = {int(float(x[i * 2]) - .5f), int(float(x[i * 2 + 1]) - .5f)};
      for (int k = 0; k < 9; ++k) {
        double w = .5, d[2];
        for (int s = 0; s < 2; ++s) {
          const double f = x[i * 2 + s] - b[s];
          const int o = s ? k % 3 : k / 3;
          w *= o == 0 ? .5 * (1.5 - f) * (1.5 - f) : o == 1 ? .75 - (f - 1) * (f - 1) : .5 * (f - .5) * (f - .5);
          d[s] = o - f;
        }
        double* to = &want[(size_t(b[0] + k / 3) * side + b[1] + k % 3) * 3];
        for (int s = 0; s < 2; ++s) to[s] += w * (v[i * 2 + s] + C[i * 4 + s * 2] * d[0] + C[i * 4 + s * 2 + 1] * d[1]);
        to[2] += w;
      }
    }
    return agree(grid.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- derivatives inside elements of 8^3 nodes, along all three axes (discontinuous Galerkin), float64
struct ElementCfg {
  int E = 2;
};
auto dg =
    kernel("user_dg", [](const ElementCfg& c, Ptr<const double> u, Ptr<const double> D, Ptr<double> out, I32 n, F64 ax,
                         F64 ay, F64 az) {
      // u, out [n, 8, 8, 8] (z, y, x), D [8, 8]; out = ax du/dx + ay du/dy + az du/dz
      auto element = program_id(0) * c.E + arange(0, c.E);
      auto i = arange(0, 8);
      auto d = load(D + i.col() * 8 + i.row());
      auto node = arange(0, 512);
      auto at = element.col() * 512 + node.row();
      auto in = (element < n).col();
      auto x = load(u + at, {.mask = in, .other = 0.0});
      auto along_x = reshape(dot(reshape(x, {c.E * 64, 8}), trans(d), zeros({c.E * 64, 8}, f64)), {c.E, 8, 8, 8});
      auto cube = reshape(x, {c.E, 8, 8, 8});
      auto turned_y = reshape(permute(cube, {0, 1, 3, 2}), {c.E * 64, 8});
      auto along_y = permute(reshape(dot(turned_y, trans(d), zeros({c.E * 64, 8}, f64)), {c.E, 8, 8, 8}), {0, 1, 3, 2});
      auto turned_z = reshape(permute(cube, {0, 2, 3, 1}), {c.E * 64, 8});
      auto along_z = permute(reshape(dot(turned_z, trans(d), zeros({c.E * 64, 8}, f64)), {c.E, 8, 8, 8}), {0, 3, 1, 2});
      store(out + at, reshape(ax * along_x + ay * along_y + az * along_z, {c.E, 512}), {.mask = in});
    }).grid([](const ElementCfg& c, auto, auto, double*, int n, double, double, double) { return Grid{cdiv(n, c.E)}; });
Register r9("dg", [](Env& e) {
  ElementCfg c;
  c.E = e.field("E", c.E);
  const int n = e.big ? 1 << 16 : 5;
  auto u = random<double>(e, size_t(n) * 512), D = random<double>(e, 64);
  auto out = constant<double>(e, u.n, NAN);
  Job j;
  j.mbytes = 16e-6 * double(u.n);
  j.gflop = 6e-9 * 8 * double(u.n);
  j.add(dg, c, u.p, D.p, out.p, n, .5, .25, 2.);
  j.check = [=] {
    std::vector<double> want;
    for (int k = 0; k < n; ++k)
      for (int z = 0; z < 8; ++z)
        for (int y = 0; y < 8; ++y)
          for (int x = 0; x < 8; ++x) {
            double s = 0;
            for (int t = 0; t < 8; ++t)
              s += .5 * D[x * 8 + t] * u[((k * 8 + z) * 8 + y) * 8 + t] +
                   .25 * D[y * 8 + t] * u[((k * 8 + z) * 8 + t) * 8 + x] +
                   2 * D[z * 8 + t] * u[((k * 8 + t) * 8 + y) * 8 + x];
            want.push_back(s);
          }
    return agree(out.now(), want, 1e-12, 1e-12);
  };
  return j;
});

}  // namespace first_grids
}  // namespace users
