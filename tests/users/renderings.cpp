// renderings.cpp - neural and classical rendering: features from hashed grids, a network of narrow layers in one kernel,
// pictures compressed to blocks of 8 bytes, history reprojected, edges kept by a coarse grid, rays that step.
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace renderings {

// --- features of points from hashed grids of many resolutions (instant-ngp): eight corners each, weights trilinear
struct HashGridCfg {
  int BN = 256, warps = 4;
};
auto hash_grid = kernel("user_hash_grid", [](const HashGridCfg& c, Tensor<const float, 2> points,
                                             Tensor<const half, 3> table, Tensor<half, 3> out, F32 base, F32 growth) {
  // points [3, N] in [0, 1), table [levels, size, 2], out [levels, N, 2]; size a power of two
  num_warps(c.warps);
  auto n = program_id(0) * c.BN, level = program_id(1);
  auto scale = exp2(cast(level, f32) * growth) * base - 1.f;
  auto resolution = cast(ceil(scale), u32) + 1u;
  auto size = cast(table.dim(1), u32);
  std::array<Tile, 3> cell, part;
  for (int d = 0; d < 3; ++d) {
    auto x = squeeze(points.load({d, n}, {1, c.BN}), 0) * scale + .5f;
    auto low = floor(x);
    cell[d] = cast(cast(low, i32), u32), part[d] = x - low;
  }
  auto dense = resolution * resolution * resolution <= size;
  Tile f0 = zeros({c.BN}, f32), f1 = zeros({c.BN}, f32);
  auto entries = table.ptr() + cast(level, i64) * table.stride(0);
  for (int corner = 0; corner < 8; ++corner) {
    auto x = cell[0] + uint32_t(corner & 1), y = cell[1] + uint32_t(corner >> 1 & 1), z = cell[2] + uint32_t(corner >> 2);
    auto flat = x + y * resolution + z * (resolution * resolution);
    auto hashed = x ^ y * 2654435761u ^ z * 805459861u;
    auto at = where(dense, flat, hashed) & (size - 1u);
    auto weight = (corner & 1 ? part[0] : 1.f - part[0]) * (corner & 2 ? part[1] : 1.f - part[1]) *
                  (corner & 4 ? part[2] : 1.f - part[2]);
    auto [a, b] = split(cast(load(entries + (cast(at, i64) * 2).col() + arange(0, 2).row()), f32));
    f0 += weight * a;
    f1 += weight * b;
  }
  out.store({level, n, 0}, cast(join(f0, f1), f16));
}).grid([](const HashGridCfg& c, const auto& points, const auto& table, const auto&...) {
  return Grid{cdiv(points.shape[1], c.BN), table.shape[0]};
});
Register r1("hash_grid", [](Env& e) {
  HashGridCfg c;
  if (!e.big) c = {32, 1};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int N = e.big ? 1 << 20 : 101, L = e.big ? 16 : 5, T = e.big ? 1 << 19 : 1 << 10;
  const float base = e.big ? 16 : 4, growth = .4f;
  auto points = random<float>(e, 3 * N, 0, .999);
  auto table = random<half>(e, size_t(L) * T * 2);
  auto out = constant<half>(e, size_t(L) * N * 2, NAN);
  Job j;
  j.mbytes = 1e-6 * N * (12. + L * (4 + 32));
  j.add(hash_grid, c, points.view(3, N), table.view(L, T, 2), out.view(L, N, 2), base, growth);
  j.check = [=] {
    std::vector<double> want;
    for (int l = 0; l < L; ++l)
      for (int n = 0; n < N; ++n) {
        const double scale = std::exp2(l * double(growth)) * base - 1;
        const uint32_t r = uint32_t(std::ceil(scale)) + 1;
        uint32_t cell[3];
        double part[3], f[2] = {};
        for (int d = 0; d < 3; ++d) {
          const double x = points[d * N + n] * scale + .5;
          cell[d] = uint32_t(std::floor(x)), part[d] = x - std::floor(x);
        }
        for (int k = 0; k < 8; ++k) {
          const uint32_t x = cell[0] + (k & 1), y = cell[1] + (k >> 1 & 1), z = cell[2] + (k >> 2);
          const uint32_t at = (r * r * r <= uint32_t(T) ? x + y * r + z * r * r
                                                        : x ^ y * 2654435761u ^ z * 805459861u) & (T - 1);
          double w = 1;
          for (int d = 0; d < 3; ++d) w *= k >> d & 1 ? part[d] : 1 - part[d];
          for (int i = 0; i < 2; ++i) f[i] += w * table[(size_t(l) * T + at) * 2 + i];
        }
        want.insert(want.end(), f, f + 2);
      }
    return agree(out.now(), want, 2e-3, 1e-3);
  };
  return j;
});

// --- a network of narrow layers for a batch of rows, in one kernel (fully fused): activations never leave the program
struct TinyMlpCfg {
  int BM = 128, in = 32, width = 64, out = 16, warps = 4;
};
auto tiny_mlp = kernel("user_tiny_mlp", [](const TinyMlpCfg& c, Tensor<const half, 2> X, Tensor<const half, 2> first,
                                           Tensor<const half, 3> hidden, Tensor<const half, 2> last, Tensor<half, 2> Y) {
  // X [M, in], first [in, width], hidden [layers, width, width], last [width, out], Y [M, out]
  num_warps(c.warps);
  auto m = program_id(0) * c.BM;
  auto relu = [](Tile x) { return cast(max(x, 0.f), f16); };
  Tile h = relu(dot(X.load({m, 0}, {c.BM, c.in}), first.load({0, 0}, {c.in, c.width})));
  for (auto layer : range(0, hidden.dim(0))) h = relu(dot(h, hidden.load({layer, 0, 0}, {c.width, c.width})));
  Y.store({m, 0}, cast(sigmoid(dot(h, last.load({0, 0}, {c.width, c.out}))), f16));
}).grid([](const TinyMlpCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BM)}; });
Register r2("tiny_mlp", [](Env& e) {
  TinyMlpCfg c;
  if (!e.big) c = {32, 16, 32, 3, 2};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 1 << 20 : 77, W = c.width, layers = 4;
  auto x = random<half>(e, size_t(M) * c.in), first = random<half>(e, c.in * W, -.3, .3),
       hidden = random<half>(e, layers * W * W, -.3, .3), last = random<half>(e, W * c.out, -.3, .3);
  auto y = constant<half>(e, size_t(M) * c.out, NAN);
  Job j;
  j.mbytes = 2e-6 * M * (c.in + c.out);
  j.gflop = 2e-9 * M * (double(c.in) * W + layers * W * W + W * c.out);
  j.add(tiny_mlp, c, x.view(M, c.in), first.view(c.in, W), hidden.view(layers, W, W), last.view(W, c.out),
        y.view(M, c.out));
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < M; ++m) {
      std::vector<double> h;
      for (int i = 0; i < c.in; ++i) h.push_back(x[size_t(m) * c.in + i]);
      auto layer = [&](auto w, int outs) {
        std::vector<double> next(outs);
        for (int o = 0; o < outs; ++o)
          for (size_t i = 0; i < h.size(); ++i) next[o] += h[i] * w(int(i), o);
        h = next;
      };
      auto relu = [&] {
        for (double& v : h) v = in_half(std::max(v, 0.));
      };
      layer(matrix(first, W), W), relu();
      for (int l = 0; l < layers; ++l) layer(matrix(hidden, W, l * W * W), W), relu();
      layer(matrix(last, c.out), c.out);
      for (double v : h) want.push_back(1 / (1 + std::exp(-v)));
    }
    return agree(y.now(), want, 4e-3, 4e-3);
  };
  return j;
});

// --- a picture compressed to BC1: blocks of 4 x 4 pixels to two colours of 16 bits and 16 choices among four
struct Bc1Cfg {
  int BX = 32, warps = 4;
};
auto bc1 = kernel("user_bc1", [](const Bc1Cfg& c, Tensor<const uint32_t, 2> image, Tensor<uint32_t, 3> blocks) {
  // image [H, W] of pixels 0xAABBGGRR, blocks [H / 4, W / 4, 2]
  num_warps(c.warps);
  auto bx = program_id(0) * c.BX, by = program_id(1);
  auto box = image.load({by * 4, bx * 4}, {4, 4 * c.BX});
  auto pixels = reshape(permute(reshape(box, {4, c.BX, 4}), {1, 0, 2}), {c.BX, 16});
  std::array<Tile, 3> colour, low, high;
  for (int i = 0; i < 3; ++i) {
    colour[i] = cast(pixels >> 8 * i & 255u, i32);
    auto least = min(colour[i], axis(1)), most = max(colour[i], axis(1));
    auto inset = (most - least) >> 4;
    low[i] = least + inset, high[i] = most - inset;
  }
  auto pack = [](const std::array<Tile, 3>& v) { return v[0] >> 3 << 11 | v[1] >> 2 << 5 | v[2] >> 3; };
  auto widened = [](const std::array<Tile, 3>& v) {
    auto five = [](Tile x) { return (x >> 3 << 3) | x >> 5; };
    return std::array<Tile, 3>{five(v[0]), (v[1] >> 2 << 2) | v[1] >> 6, five(v[2])};
  };
  auto c0 = pack(high), c1 = pack(low);
  auto a = widened(high), b = widened(low);
  Tile nearest = full({c.BX, 16}, std::numeric_limits<int>::max(), i32), choice = zeros({c.BX, 16}, i32);
  for (int i : {0, 1, 2, 3}) {
    Tile far = zeros({c.BX, 16}, i32);
    for (int k = 0; k < 3; ++k) {
      Tile entry = i == 0 ? a[k] : i == 1 ? b[k] : i == 2 ? (a[k] * 2 + b[k]) / 3 : (a[k] + b[k] * 2) / 3;
      auto d = colour[k] - entry;
      far += d * d;
    }
    choice = where(far < nearest, i, choice);
    nearest = min(nearest, far);
  }
  choice = where(c0 == c1, 0, choice);
  auto bits = sum(cast(choice, u32) << cast(arange(0, 16) * 2, u32).row(), axis(1));
  blocks.store({by, bx, 0}, join(squeeze(cast(c0 | c1 << 16, u32), 1), squeeze(bits, 1)));
}).grid([](const Bc1Cfg& c, const auto&, const auto& blocks) {
  return Grid{cdiv(blocks.shape[1], c.BX), blocks.shape[0]};
});
Register r3("bc1", [](Env& e) {
  Bc1Cfg c;
  if (!e.big) c = {8, 1};
  c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 8192 : 20, W = e.big ? 8192 : 44;
  auto image = drawn<uint32_t>(e, size_t(H) * W, [&] { return uint32_t(e.uniform() * 0x1p24) * 40503u; });
  auto blocks = constant<uint32_t>(e, size_t(H / 4) * (W / 4) * 2, 0);
  Job j;
  j.mbytes = 1e-6 * H * W * 4.5;
  j.add(bc1, c, image.view(H, W), blocks.view(H / 4, W / 4, 2));
  j.check = [=]() -> std::string {
    const auto got = blocks.now();
    for (int y = 0; y < H / 4; ++y)
      for (int x = 0; x < W / 4; ++x) {
        int p[16][3], lo[3], hi[3], a[3], b[3];
        for (int k = 0; k < 3; ++k) {
          lo[k] = 255, hi[k] = 0;
          for (int i = 0; i < 16; ++i) {
            p[i][k] = image.at(size_t(y * 4 + i / 4) * W + x * 4 + i % 4) >> 8 * k & 255;
            lo[k] = std::min(lo[k], p[i][k]), hi[k] = std::max(hi[k], p[i][k]);
          }
          const int inset = (hi[k] - lo[k]) >> 4, cut = k == 1 ? 2 : 3;
          lo[k] += inset, hi[k] -= inset;
          auto wide = [&](int v) { return (v >> cut << cut) | v >> (8 - cut); };
          a[k] = wide(hi[k]), b[k] = wide(lo[k]);
        }
        auto pack = [](int* v) { return uint32_t(v[0] >> 3 << 11 | v[1] >> 2 << 5 | v[2] >> 3); };
        uint32_t bits = 0;
        for (int i = 0; i < 16 && pack(hi) != pack(lo); ++i) {
          int best = 1 << 30, at = 0;
          for (int q = 0; q < 4; ++q) {
            int far = 0;
            for (int k = 0; k < 3; ++k) {
              const int entry = q == 0 ? a[k] : q == 1 ? b[k] : q == 2 ? (a[k] * 2 + b[k]) / 3 : (a[k] + b[k] * 2) / 3;
              far += (p[i][k] - entry) * (p[i][k] - entry);
            }
            if (far < best) best = far, at = q;
          }
          bits |= uint32_t(at) << 2 * i;
        }
        const size_t at = (size_t(y) * (W / 4) + x) * 2;
        if (got[at] != (pack(hi) | pack(lo) << 16) || got[at + 1] != bits) return "block " + std::to_string(at / 2);
      }
    return "";
  };
  return j;
});

// --- history of a picture reprojected by motion, limited to what neighbours show, blended (temporal antialiasing)
struct TaaCfg {
  int BY = 4, BX = 64, warps = 4;
};
auto taa = kernel("user_taa", [](const TaaCfg& c, Ptr<const half> now, Ptr<const half> history, Ptr<const half> motion,
                                 Ptr<half> out, I32 H, I32 W, F32 blend) {
  // now, history, out [H, W, 4], motion [H, W, 2] in pixels
  num_warps(c.warps);
  const int P = c.BY * c.BX;
  auto p = arange(0, P);
  auto y = program_id(1) * c.BY + p / c.BX, x = program_id(0) * c.BX + p % c.BX;
  auto inside = (y < H) & (x < W);
  auto channel = arange(0, 4).row();
  auto pixel = [&](const Tile& py, const Tile& px) {
    return ((clamp(py, 0, H - 1) * W + clamp(px, 0, W - 1)) * 4).col() + channel;
  };
  auto centre = cast(load(now + pixel(y, x)), f32);
  Tile low = centre, high = centre;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) {
      if (!dy && !dx) continue;
      auto v = cast(load(now + pixel(y + dy, x + dx)), f32);
      low = min(low, v), high = max(high, v);
    }
  auto at = (clamp(y, 0, H - 1) * W + clamp(x, 0, W - 1)) * 2;
  auto fx = cast(x, f32) - cast(load(motion + at), f32), fy = cast(y, f32) - cast(load(motion + at + 1), f32);
  auto x0 = floor(fx), y0 = floor(fy);
  auto wx = fx - x0, wy = fy - y0;
  auto ix = cast(x0, i32), iy = cast(y0, i32);
  Tile old = zeros({P, 4}, f32);
  for (int k = 0; k < 4; ++k) {
    auto weight = (k & 1 ? wx : 1.f - wx) * (k & 2 ? wy : 1.f - wy);
    old += weight.col() * cast(load(history + pixel(iy + (k >> 1), ix + (k & 1))), f32);
  }
  auto seen = (fx >= 0.f) & (fy >= 0.f) & (fx <= cast(W - 1, f32)) & (fy <= cast(H - 1, f32));
  auto mixed = centre + (clamp(old, low, high) - centre) * where(seen, blend, 0.f).col();
  store(out + pixel(y, x), cast(mixed, f16), {.mask = inside.col()});
}).grid([](const TaaCfg& c, auto, auto, auto, auto, int H, int W, float) {
  return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
});
Register r4("taa", [](Env& e) {
  TaaCfg c;
  if (!e.big) c = {4, 16, 2};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 2160 : 21, W = e.big ? 3840 : 37;
  auto now = random<half>(e, size_t(H) * W * 4, 0, 1), old = random<half>(e, size_t(H) * W * 4, 0, 1),
       motion = random<half>(e, size_t(H) * W * 2, -3, 3);
  auto out = constant<half>(e, size_t(H) * W * 4, NAN);
  Job j;
  j.mbytes = 1e-6 * H * W * 28.;
  j.add(taa, c, now.p, old.p, motion.p, out.p, H, W, .9f);
  j.check = [=] {
    std::vector<double> want;
    auto at = [&](auto& a, int y, int x, int ch) {
      return a[(size_t(std::clamp(y, 0, H - 1)) * W + std::clamp(x, 0, W - 1)) * 4 + ch];
    };
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x)
        for (int ch = 0; ch < 4; ++ch) {
          const size_t m = (size_t(y) * W + x) * 2;
          const double fx = float(x) - float(motion[m]), fy = float(y) - float(motion[m + 1]);
          const int ix = int(std::floor(fx)), iy = int(std::floor(fy));
          double low = 1e9, high = -1e9, v = 0;
          for (int d = 0; d < 9; ++d) {
            const double n = at(now, y + d / 3 - 1, x + d % 3 - 1, ch);
            low = std::min(low, n), high = std::max(high, n);
          }
          for (int k = 0; k < 4; ++k)
            v += (k & 1 ? fx - ix : 1 - fx + ix) * (k & 2 ? fy - iy : 1 - fy + iy) *
                 at(old, iy + (k >> 1), ix + (k & 1), ch);
          const double centre = at(now, y, x, ch);
          const bool seen = fx >= 0 && fy >= 0 && fx <= W - 1 && fy <= H - 1;
          want.push_back(seen ? centre + (std::clamp(v, low, high) - centre) * .9 : centre);
        }
    return agree(out.now(), want, 2e-3, 2e-3);
  };
  return j;
});

}  // namespace renderings
}  // namespace users
