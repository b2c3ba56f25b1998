// shadings.cpp - graphics that engines do in compute shaders: skinned vertices, ambient occlusion from a depth buffer,
// lights sorted into tiles of the screen, an edge-aware wavelet filter (SVGF), blocks of BC7, colours through a table.
#include "tests/users/use.h"
namespace users {
namespace shadings {

struct RowCfg {
  int B = 256, warps = 4;
};

// --- linear blend skinning: every vertex moved by up to four weighted bones
auto skinning =
    kernel("user_skinning",
           [](const RowCfg& c, Ptr<const float> position, Ptr<const float> normal, Ptr<const uint8_t> bone,
              Ptr<const float> weight, Ptr<const float> pose, Ptr<float> out_position, Ptr<float> out_normal, I32 n) {
             // position, normal [n, 3], bone [n, 4], weight [n, 4], pose [bones, 3, 4]
             num_warps(c.warps);
             auto v = program_id(0) * c.B + arange(0, c.B);
             auto live = v < n;
             std::array<Tile, 3> p, q, moved, turned;
             for (int i = 0; i < 3; ++i) {
               p[i] = load(position + (v * 3 + i), {.mask = live});
               q[i] = load(normal + (v * 3 + i), {.mask = live});
               moved[i] = zeros({c.B}, f32), turned[i] = zeros({c.B}, f32);
             }
             for (int k = 0; k < 4; ++k) {
               auto w = load(weight + (v * 4 + k), {.mask = live});
               auto m = pose + cast(load(bone + (v * 4 + k), {.mask = live}), i32) * 12;
               for (int i = 0; i < 3; ++i) {
                 std::array<Tile, 4> row;
                 for (int j = 0; j < 4; ++j) row[j] = load(m + (4 * i + j));
                 moved[i] += w * (row[0] * p[0] + row[1] * p[1] + row[2] * p[2] + row[3]);
                 turned[i] += w * (row[0] * q[0] + row[1] * q[1] + row[2] * q[2]);
               }
             }
             auto length = rsqrt(turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2] + 1e-20f);
             for (int i = 0; i < 3; ++i) {
               store(out_position + (v * 3 + i), moved[i], {.mask = live});
               store(out_normal + (v * 3 + i), turned[i] * length, {.mask = live});
             }
           })
        .grid([](const RowCfg& c, const float*, const float*, const uint8_t*, const float*, const float*, float*,
                 float*, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("skinning", [](Env& e) {
  const int n = e.big ? 1 << 22 : 301, bones = e.big ? 128 : 7;
  auto p = random<float>(e, 3 * n), q = random<float>(e, 3 * n), w = random<float>(e, 4 * n, 0, 1);
  auto bone = integers<uint8_t>(e, 4 * n, 0, bones);
  auto pose = random<float>(e, 12 * bones);
  auto op = constant<float>(e, 3 * n, NAN), oq = constant<float>(e, 3 * n, NAN);
  Job j;
  j.mbytes = 1e-6 * n * (24 + 4 + 16 + 24);
  j.add(skinning, RowCfg{e.field("B", e.big ? 256 : 64), e.field("warps", 4)}, p.p, q.p, bone.p, w.p, pose.p, op.p,
        oq.p, n);
  j.check = [=] {
    std::vector<double> moved, turned;
    for (int v = 0; v < n; ++v) {
      double a[3] = {}, b[3] = {};
      for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 3; ++i)
          for (int m = 0; m < 4; ++m) {
            const double x = w[4 * v + k] * pose[bone.h[4 * v + k] * 12 + 4 * i + m];
            a[i] += x * (m < 3 ? p[3 * v + m] : 1), b[i] += m < 3 ? x * q[3 * v + m] : 0;
          }
      const double length = std::sqrt(b[0] * b[0] + b[1] * b[1] + b[2] * b[2]);
      for (int i = 0; i < 3; ++i) moved.push_back(a[i]), turned.push_back(b[i] / length);
    }
    const auto wrong = agree(op.now(), moved, 1e-5, 1e-5);
    return wrong.empty() ? agree(oq.now(), turned, 1e-4, 1e-4) : wrong;
  };
  return j;
});

// --- screen-space ambient occlusion: 16 samples of a half sphere, turned by a pattern of 4 x 4 pixels
struct ScreenCfg {
  int BY = 8, BX = 32, warps = 4;
};
auto ssao = kernel("user_ssao", [](const ScreenCfg& c, Tensor<const float, 2> depth, Tensor<const float, 2> samples,
                                   Tensor<const float, 3> pattern, Tensor<half, 2> out, F32 focal, F32 radius) {
              // depth [H, W] in view space; samples [16, 3]; pattern [4, 4, 2] unit vectors
              num_warps(c.warps);
              auto y = program_id(1) * c.BY + arange(0, c.BY).col(), x = program_id(0) * c.BX + arange(0, c.BX).row();
              auto H = depth.dim(0), W = depth.dim(1);
              auto at = [&](const Tile& v, const Tile& u) {
                return load(depth.ptr() + (clamp(v, 0, H - 1) * W + clamp(u, 0, W - 1)));
              };
              Tile py = broadcast_to(y, {c.BY, c.BX}), px = broadcast_to(x, {c.BY, c.BX});
              auto z = at(py, px);
              auto cx = cast(W, f32) * .5f, cy = cast(H, f32) * .5f;
              auto vx = (cast(px, f32) - cx) * z / focal, vy = (cast(py, f32) - cy) * z / focal;
              // The normal, from neighbours on the right and below.
              auto zr = at(py, px + 1), zd = at(py + 1, px);
              auto nx = -(zr - z) * focal / z, ny = -(zd - z) * focal / z;
              auto inv = rsqrt(nx * nx + ny * ny + 1.f);
              nx = nx * inv, ny = ny * inv;
              auto nz = -inv;
              auto turn = pattern.ptr() + ((py & 3) * 8 + (px & 3) * 2);
              auto tc = load(turn), ts = load(turn + 1);
              Tile hidden = zeros({c.BY, c.BX}, f32);
              for (auto i : range(16)) {
                auto sx = samples.load({i, 0}), sy = samples.load({i, 1}), sz = samples.load({i, 2});
                auto rx = sx * tc - sy * ts, ry = sx * ts + sy * tc;
                auto facing = rx * nx + ry * ny + sz * nz;
                auto sign = where(facing < 0.f, -radius, radius);
                auto wx = vx + rx * sign, wy = vy + ry * sign, wz = z + sz * sign;
                auto u = cast(floor(wx * focal / wz + cx + .5f), i32), v = cast(floor(wy * focal / wz + cy + .5f), i32);
                auto there = at(v, u);
                auto near = clamp(radius / max(abs(z - there), 1e-6f), 0.f, 1.f);
                hidden += where(there <= wz - .01f, near, 0.f);
              }
              out.store({program_id(1) * c.BY, program_id(0) * c.BX}, cast(1.f - hidden / 16.f, f16));
            }).grid([](const ScreenCfg& c, const auto& d, const auto&...) {
  return Grid{cdiv(d.shape[1], c.BX), cdiv(d.shape[0], c.BY)};
});
Register r2("ssao", [](Env& e) {
  const int H = e.big ? 2160 : 37, W = e.big ? 3840 : 71;
  ScreenCfg c{e.field("BY", 8), e.field("BX", 32), e.field("warps", 4)};
  auto depth = filled<float>(e, size_t(H) * W, [=](size_t i) {
    const double x = double(i % W) / W, y = double(i / W) / H;
    return float(4 + std::sin(20 * x) * std::cos(14 * y) + (int(x * 9) + int(y * 5)) % 2);
  });
  auto samples = random<float>(e, 48, -.57, .57), pattern = random<float>(e, 32);
  auto out = constant<half>(e, size_t(H) * W, NAN);
  const float focal = W * .8f, radius = .4f;
  Job j;
  j.mbytes = 6e-6 * H * W;
  j.add(ssao, c, depth.view(H, W), samples.view(16, 3), pattern.view(4, 4, 2), out.view(H, W), focal, radius);
  j.check = [=]() -> std::string {
    auto at = [&](int y, int x) { return depth[size_t(std::clamp(y, 0, H - 1)) * W + std::clamp(x, 0, W - 1)]; };
    const auto got = out.now();
    int apart = 0;  // pixels where a sample falls on the other side of a rounding
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const double z = at(y, x), vx = (x - W * .5) * z / focal, vy = (y - H * .5) * z / focal;
        double n[3] = {-(at(y, x + 1) - z) * focal / z, -(at(y + 1, x) - z) * focal / z, -1};
        const double length = std::sqrt(n[0] * n[0] + n[1] * n[1] + 1);
        const double tc = pattern[(y & 3) * 8 + (x & 3) * 2], ts = pattern[(y & 3) * 8 + (x & 3) * 2 + 1];
        double hidden = 0;
        for (int i = 0; i < 16; ++i) {
          const double sx = samples[3 * i], sy = samples[3 * i + 1], sz = samples[3 * i + 2];
          const double rx = sx * tc - sy * ts, ry = sx * ts + sy * tc;
          const double sign = (rx * n[0] + ry * n[1] + sz * n[2]) / length < 0 ? -radius : radius;
          const double wx = vx + rx * sign, wy = vy + ry * sign, wz = z + sz * sign;
          const double there =
              at(int(std::floor(wy * focal / wz + H * .5 + .5)), int(std::floor(wx * focal / wz + W * .5 + .5)));
          if (there <= wz - .01) hidden += std::clamp(radius / std::max(std::abs(z - there), 1e-6), 0., 1.);
        }
        if (!(std::abs(double(float(got[size_t(y) * W + x])) - (1 - hidden / 16)) < 2e-3)) ++apart;
      }
    return apart * 100 > H * W ? std::to_string(apart) + " pixels differ" : "";
  };
  return j;
});

// --- lights of every tile of 16 x 16 pixels: depth range, spheres against the tile's frustum, a list in order
struct CullCfg {
  int L = 1024, most = 256, warps = 4;
};
auto light_cull =
    kernel("user_light_cull", [](const CullCfg& c, Tensor<const float, 2> depth, Tensor<const float, 2> lights,
                                 Tensor<int32_t, 1> counts, Tensor<int32_t, 2> lists, F32 focal) {
      // depth [H, W], lights [4, n] (x, y, z, radius in view space), lists [tiles, most]
      num_warps(c.warps);
      auto tx = program_id(0), ty = program_id(1), tile = ty * num_programs(0) + tx;
      auto z = depth.load({ty * 16, tx * 16}, {16, 16}, {.pad = NAN});
      auto nearest = min(where(isnan(z), INFINITY, z)), farthest = max(where(isnan(z), 0.f, z));
      auto cx = cast(depth.dim(1), f32) * .5f, cy = cast(depth.dim(0), f32) * .5f;
      // Planes through the eye and the tile's sides: a x + b z = 0, normals inwards.
      auto x0 = (cast(tx * 16, f32) - cx) / focal, x1 = (cast(tx * 16 + 16, f32) - cx) / focal;
      auto y0 = (cast(ty * 16, f32) - cy) / focal, y1 = (cast(ty * 16 + 16, f32) - cy) / focal;
      Tile count = 0;
      for (auto first : range(0, lights.dim(1), c.L)) {
        auto i = first + arange(0, c.L);
        auto part = [&](int row) { return squeeze(lights.load({row, first}, {1, c.L}), 0); };
        auto x = part(0), y = part(1), d = part(2), r = part(3);
        auto inside = [&](const Tile& u, const Tile& slope, float sign) {
          return (u - slope * d) * sign * rsqrt(1.f + slope * slope) > -r;
        };
        auto hit = inside(x, x0, 1) & inside(x, x1, -1) & inside(y, y0, 1) & inside(y, y1, -1) & (d + r > nearest) &
                   (d - r < farthest) & (i < lights.dim(1));
        auto place = count + cumsum(cast(hit, i32), axis(0)) - 1;
        store(lists.ptr() + tile * c.most + place, i, {.mask = hit & (place < c.most)});
        count += sum(cast(hit, i32));
      }
      store(counts.ptr() + tile, min(count, c.most));
    }).grid([](const CullCfg&, const auto& d, const auto&...) {
      return Grid{cdiv(d.shape[1], int64_t{16}), cdiv(d.shape[0], int64_t{16})};
    });
Register r3("light_cull", [](Env& e) {
  const int H = e.big ? 2160 : 60, W = e.big ? 3840 : 90, n = e.big ? 4096 : 150;
  CullCfg c{e.field("L", e.big ? 1024 : 64), e.big ? 512 : 200, e.field("warps", 4)};
  const int tiles = (H + 15) / 16 * ((W + 15) / 16);
  auto depth = random<float>(e, size_t(H) * W, 2, 12);
  auto lights = filled<float>(e, 4 * n, [&](size_t i) {
    const int row = int(i / n);
    return float(row < 2 ? -4 + 8 * e.uniform() : row == 2 ? 1 + 14 * e.uniform() : .1 + .6 * e.uniform());
  });
  auto counts = constant<int32_t>(e, tiles, -1), lists = constant<int32_t>(e, size_t(tiles) * c.most, -1);
  const float focal = W * .7f;
  Job j;
  j.mbytes = 4e-6 * H * W;
  j.add(light_cull, c, depth.view(H, W), lights.view(4, n), counts.view(tiles), lists.view(tiles, c.most), focal);
  j.check = [=]() -> std::string {
    const auto count = counts.now(), list = lists.now();
    const int across = (W + 15) / 16;
    for (int t = 0; t < tiles; ++t) {
      double nearest = INFINITY, farthest = 0;
      for (int y = t / across * 16; y < std::min(H, t / across * 16 + 16); ++y)
        for (int x = t % across * 16; x < std::min(W, t % across * 16 + 16); ++x)
          nearest = std::min(nearest, depth[size_t(y) * W + x]),
          farthest = std::max(farthest, depth[size_t(y) * W + x]);
      int found = 0;
      for (int i = 0; i < n; ++i) {
        const double r = lights[3 * n + i], d = lights[2 * n + i];
        double least = std::min(d + r - nearest, farthest - d + r);
        for (int side = 0; side < 4; ++side) {
          const double u = lights[(side / 2) * n + i];
          const int edge = (side / 2 ? t / across : t % across) * 16 + side % 2 * 16;
          const double slope = (edge - (side / 2 ? H : W) * .5) / focal;
          least = std::min(least, (u - slope * d) * (side % 2 ? -1 : 1) / std::sqrt(1 + slope * slope) + r);
        }
        const bool listed = found < count[t] && list[size_t(t) * c.most + found] == i;
        if (std::abs(least) > 1e-5 && listed != (least > 0))
          return "light " + std::to_string(i) + " of tile " + std::to_string(t);
        found += listed;
      }
      if (found != count[t]) return "tile " + std::to_string(t) + " has another count";
    }
    return "";
  };
  return j;
});

// --- a step of the a-trous filter of SVGF: 5 x 5 taps `step` apart, weights by depth, normal and luminance
auto atrous = kernel("user_atrous", [](const ScreenCfg& c, Tensor<const half, 3> colour, Tensor<const half, 3> normal,
                                       Tensor<const float, 2> depth, Tensor<half, 3> out, I32 step) {
                // colour [4, H, W] (the fourth: variance), normal [3, H, W], depth [H, W]
                num_warps(c.warps);
                auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
                auto box = [&](auto& t, int plane, const Tile& v, const Tile& u) {
                  return cast(squeeze(t.load({plane, v, u}, {1, c.BY, c.BX}), 0), f32);
                };
                const float luma[3] = {.2126f, .7152f, .0722f}, taps[3] = {3.f / 8, 1.f / 4, 1.f / 16};
                std::array<Tile, 3> n0;
                std::array<Tile, 4> sum;
                Tile l0 = zeros({c.BY, c.BX}, f32);
                for (int i = 0; i < 3; ++i) n0[i] = box(normal, i, y, x), l0 += box(colour, i, y, x) * luma[i];
                for (int i = 0; i < 4; ++i) sum[i] = zeros({c.BY, c.BX}, f32);
                auto z0 = depth.load({y, x}, {c.BY, c.BX});
                auto sigma = 1.f / (4.f * sqrt(max(box(colour, 3, y, x), 0.f)) + 1e-4f);
                Tile weights = zeros({c.BY, c.BX}, f32);
                auto row = y + arange(0, c.BY).col(), column = x + arange(0, c.BX).row();
                for (auto dy : range(-2, 3))
                  for (int dx = -2; dx <= 2; ++dx) {
                    auto v = y + dy * step, u = x + dx * step;
                    std::array<Tile, 4> there;
                    Tile l = zeros({c.BY, c.BX}, f32), facing = zeros({c.BY, c.BX}, f32);
                    for (int i = 0; i < 4; ++i) there[i] = box(colour, i, v, u);
                    for (int i = 0; i < 3; ++i) l += there[i] * luma[i], facing += box(normal, i, v, u) * n0[i];
                    auto z = depth.load({v, u}, {c.BY, c.BX});
                    auto far = abs(dy);
                    auto kernel_y = where(far == 0, taps[0], where(far == 1, taps[1], taps[2]));
                    facing = max(facing, 0.f);
                    for (int i = 0; i < 5; ++i) facing = facing * facing;  // to the power 32
                    auto w = kernel_y * taps[std::abs(dx)] * facing * exp(-abs(l - l0) * sigma - abs(z - z0) * 2.f);
                    auto in = (row + dy * step >= 0) & (row + dy * step < depth.dim(0)) & (column + dx * step >= 0) &
                              (column + dx * step < depth.dim(1));
                    w = where(in, w, 0.f);
                    weights += w;
                    for (int i = 0; i < 3; ++i) sum[i] += w * there[i];
                    sum[3] += w * w * there[3];
                  }
                for (int i = 0; i < 3; ++i) out.store({i, y, x}, expand_dims(cast(sum[i] / weights, f16), 0));
                out.store({3, y, x}, expand_dims(cast(sum[3] / (weights * weights), f16), 0));
              }).grid([](const ScreenCfg& c, const auto&, const auto&, const auto& d, const auto&...) {
  return Grid{cdiv(d.shape[1], c.BX), cdiv(d.shape[0], c.BY)};
});
Register r4("atrous", [](Env& e) {
  const int H = e.big ? 2160 : 45, W = e.big ? 3840 : 70, step = 4;
  ScreenCfg c{e.field("BY", 8), e.field("BX", e.big ? 64 : 32), e.field("warps", 4)};
  auto colour = random<half>(e, size_t(4) * H * W, 0, 1), normal = random<half>(e, size_t(3) * H * W, .5, .6);
  auto depth = random<float>(e, size_t(H) * W, 1, 2);
  auto out = constant<half>(e, size_t(4) * H * W, NAN);
  Job j;
  j.mbytes = 1e-6 * H * W * (8 + 6 + 4 + 8);
  j.add(atrous, c, colour.view(4, H, W), normal.view(3, H, W), depth.view(H, W), out.view(4, H, W), step);
  j.check = [=] {
    const double luma[3] = {.2126, .7152, .0722}, taps[3] = {3. / 8, 1. / 4, 1. / 16};
    std::vector<double> want(size_t(4) * H * W);
    const size_t plane = size_t(H) * W;
    auto light = [&](size_t at) {
      double l = 0;
      for (int i = 0; i < 3; ++i) l += colour[i * plane + at] * luma[i];
      return l;
    };
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const size_t here = size_t(y) * W + x;
        double total = 0, sum[4] = {};
        const double sigma = 1 / (4 * std::sqrt(std::max(colour[3 * plane + here], 0.)) + 1e-4);
        for (int dy = -2; dy <= 2; ++dy)
          for (int dx = -2; dx <= 2; ++dx) {
            const int v = y + dy * step, u = x + dx * step;
            if (v < 0 || v >= H || u < 0 || u >= W) continue;
            const size_t at = size_t(v) * W + u;
            double facing = 0;
            for (int i = 0; i < 3; ++i) facing += normal[i * plane + at] * normal[i * plane + here];
            const double w =
                taps[std::abs(dy)] * taps[std::abs(dx)] * std::pow(std::max(facing, 0.), 32) *
                std::exp(-std::abs(light(at) - light(here)) * sigma - std::abs(depth[at] - depth[here]) * 2);
            total += w;
            for (int i = 0; i < 3; ++i) sum[i] += w * colour[i * plane + at];
            sum[3] += w * w * colour[3 * plane + at];
          }
        for (int i = 0; i < 3; ++i) want[i * plane + here] = sum[i] / total;
        want[3 * plane + here] = sum[3] / (total * total);
      }
    return agree(out.now(), want, 2e-3, 2e-3);
  };
  return j;
});

// --- BC7, mode 6: two endpoints of 7 bits and a shared lowest one, indices of 4 bits, the first of 3
auto bc7 = kernel("user_bc7", [](const RowCfg& c, Tensor<const uint64_t, 2> blocks, Tensor<uint8_t, 3> out) {
             // blocks [n, 2] (little-endian halves), out [n, 16, 4]
             num_warps(c.warps);
             auto n = program_id(0) * c.B;
             auto [low, high] = split(blocks.load({n, 0}, {c.B, 2}));
             auto field = [&](const Tile& word, int at, int bits) { return cast(word >> at & ((1 << bits) - 1), u32); };
             // Bits 0 .. 6 the mode, then r0 r1 g0 g1 b0 b1 a0 a1 of 7 bits, two shared bits (63 and 64), indices.
             auto p0 = field(low, 63, 1), p1 = field(high, 0, 1);
             auto i = arange(0, 16).row();
             auto at = cast(where(i == 0, 1, i * 4), u64);
             auto index = cast(high.col() >> at & where(i == 0, cast(Tile(7), u64), cast(Tile(15), u64)), i32);
             // 64 i / 15, rounded: the table of the format.
             auto weight = cast((index * 64 + 7) / 15, u32);
             auto valid = field(low, 0, 7) == 64u;
             std::array<Tile, 4> channel;
             for (int k = 0; k < 4; ++k) {
               auto a = (field(low, 7 + 14 * k, 7) << 1 | p0).col(), b = (field(low, 14 + 14 * k, 7) << 1 | p1).col();
               channel[k] = where(valid.col(), ((64u - weight) * a + weight * b + 32u) >> 6, 0u);
             }
             auto pixels =
                 join(join(channel[0], channel[2]), join(channel[1], channel[3]));  // [B, 16, 2, 2]: (r, g), (b, a)
             out.store({n, 0, 0}, cast(reshape(pixels, {c.B, 16, 4}), u8));
           }).grid([](const RowCfg& c, const auto& b, const auto&) { return Grid{cdiv(b.shape[0], c.B)}; });
Register r5("bc7", [](Env& e) {
  const int n = e.big ? 1 << 20 : 133;
  auto blocks = drawn<uint64_t>(e, size_t(n) * 2, [&] {
    uint64_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 16 | uint64_t(e.uniform() * 65536);
    return word;
  });
  if (e.device && !e.big) {
    for (int i = 0; i < n; ++i)
      if (i % 5) blocks.h[2 * i] = (blocks.h[2 * i] & ~uint64_t{127}) | 64;
    e.keep->back().copy_from(blocks.h.data(), blocks.h.size() * 8).value_or_throw();
  }
  auto out = filled<uint8_t>(e, size_t(n) * 64, [](size_t) { return uint8_t(1); });
  Job j;
  j.mbytes = 80e-6 * n;
  j.add(bc7, RowCfg{e.field("B", e.big ? 64 : 32), e.field("warps", 4)}, blocks.view(n, 2), out.view(n, 16, 4));
  j.check = [=]() -> std::string {
    const int weights[16] = {0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64};
    const auto got = out.now();
    for (int b = 0; b < n; ++b) {
      const uint64_t word[2] = {blocks.h[2 * b], blocks.h[2 * b + 1]};
      auto bits = [&](int at, int count) {
        int v = 0;
        for (int i = 0; i < count; ++i) v |= int(word[(at + i) / 64] >> ((at + i) % 64) & 1) << i;
        return v;
      };
      for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 4; ++k) {
          const int w = weights[i == 0 ? bits(65, 3) : bits(64 + 4 * i, 4)];
          const int e0 = bits(7 + 14 * k, 7) << 1 | bits(63, 1), e1 = bits(14 + 14 * k, 7) << 1 | bits(64, 1);
          const int want = bits(0, 7) == 64 ? ((64 - w) * e0 + w * e1 + 32) >> 6 : 0;
          if (got[size_t(b) * 64 + i * 4 + k] != want)
            return "block " + std::to_string(b) + " pixel " + std::to_string(i) + " channel " + std::to_string(k);
        }
    }
    return "";
  };
  return j;
});

// --- colours through a table of 33 x 33 x 33 (grading), between the four corners of a tetrahedron
auto lut3d =
    kernel("user_lut3d", [](const RowCfg& c, Tensor<const uint8_t, 2> in, Tensor<const float, 4> table,
                            Tensor<uint8_t, 2> out) {
      // in and out [n, 3], table [S, S, S, 3]
      num_warps(c.warps);
      auto n = program_id(0) * c.B;
      auto size = table.dim(0);
      auto pixel = cast(in.load({n, 0}, {c.B, 3}), f32) * (1.f / 255.f) * cast(size - 1, f32);
      auto low = min(cast(floor(pixel), i32), size - 2);
      auto part = pixel - cast(low, f32);
      auto axis_of = [&](const Tile& x, int k) { return squeeze(extract(x, {0, k}, {c.B, 1}), 1); };
      auto r = axis_of(part, 0), g = axis_of(part, 1), b = axis_of(part, 2);
      auto stride_r = size * size, stride_g = size, stride_b = Tile(1);
      auto base = (axis_of(low, 0) * size + axis_of(low, 1)) * size + axis_of(low, 2);
      // From the lower to the upper corner, the longest part first.
      auto most = max(max(r, g), b), least = min(min(r, g), b), middle = r + g + b - most - least;
      auto first = where(r == most, stride_r, where(g == most, stride_g, stride_b));
      auto last = where(b == least, stride_b, where(g == least, stride_g, stride_r));
      auto all = stride_r + stride_g + stride_b;
      // Where parts are equal a corner may be counted twice, with a weight of 0 between.
      auto colour = [&](const Tile& at) {
        return load(table.ptr() + (at.col() * 3 + arange(0, 4).row()), {.mask = arange(0, 4).row() < 3});
      };
      auto mixed = colour(base) * (1.f - most).col() + colour(base + first) * (most - middle).col() +
                   colour(base + all - last) * (middle - least).col() + colour(base + all) * least.col();
      store(out.ptr() + ((n + arange(0, c.B)).col() * 3 + arange(0, 4).row()), saturate(rint(mixed * 255.f), u8),
            {.mask = (arange(0, 4).row() < 3) & ((n + arange(0, c.B)).col() < in.dim(0))});
    }).grid([](const RowCfg& c, const auto& in, const auto&...) { return Grid{cdiv(in.shape[0], c.B)}; });
Register r6("lut3d", [](Env& e) {
  const int n = e.big ? 3840 * 2160 : 1001, S = 33;
  auto in = integers<uint8_t>(e, size_t(n) * 3, 0, 256);
  auto table = random<float>(e, size_t(S) * S * S * 3, 0, 1);
  auto out = filled<uint8_t>(e, size_t(n) * 3, [](size_t) { return uint8_t(1); });
  Job j;
  j.mbytes = 6e-6 * n;
  j.add(lut3d, RowCfg{e.field("B", 256), e.field("warps", 4)}, in.view(n, 3), table.view(S, S, S, 3), out.view(n, 3));
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int i = 0; i < n; ++i) {
      double part[3];
      int low[3], order[3] = {0, 1, 2};
      for (int k = 0; k < 3; ++k) {
        const double x = in.h[3 * i + k] / 255. * (S - 1);
        low[k] = std::min(int(std::floor(x)), S - 2), part[k] = x - low[k];
      }
      std::stable_sort(order, order + 3, [&](int a, int b) { return part[a] > part[b]; });
      for (int k = 0; k < 3; ++k) {
        int at[3] = {low[0], low[1], low[2]};
        double left = 1, sum = 0;
        for (int s = 0; s <= 3; ++s) {
          const double next = s < 3 ? part[order[s]] : 0;
          sum += (left - next) * table[((size_t(at[0]) * S + at[1]) * S + at[2]) * 3 + k];
          left = next;
          if (s < 3) ++at[order[s]];
        }
        if (std::abs(got[3 * i + k] - sum * 255) > .51)
          return "pixel " + std::to_string(i) + ": " + std::to_string(got[3 * i + k]) + " instead of " +
                 std::to_string(sum * 255);
      }
    }
    return "";
  };
  return j;
});

}  // namespace shadings
}  // namespace users
