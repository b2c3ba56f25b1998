// marches.cpp - lanes that step until they arrive: rays to surfaces given by distances, rays through boxes of bits,
// paths of prices with a volatility of their own; and a picture splatted into a coarse grid and read back.
#include <algorithm>

#include "tests/users/use.h"
namespace users {
namespace marches {

/// Of `n` lanes at most one in fifty may have decided otherwise (rays that graze); the rest is near.
std::string mostly(const std::vector<float>& got, const std::vector<double>& want, double tolerance) {
  size_t off = 0, last = 0;
  for (size_t i = 0; i < want.size(); ++i)
    if (!(std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i])))) ++off, last = i;
  if (off * 50 <= want.size()) return "";
  return std::to_string(off) + " differ, the last " + std::to_string(last) + ": " + std::to_string(got[last]) +
         " instead of " + std::to_string(want[last]);
}

// --- rays that march to a sphere melted into a torus over a floor (signed distances), and how much of the light arrives
struct SdfCfg {
  int B = 256, warps = 4;
};
template <class T, class Sqrt, class Min, class Max, class Abs>
T scene(T x, T y, T z, Sqrt root, Min least, Max most, Abs size) {
  auto ball = root(x * x + y * y + z * z) - 1.f;
  auto ring = root(x * x + z * z) - 1.4f;
  auto torus = root(ring * ring + y * y) - .3f;
  auto h = most(.4f - size(ball - torus), T(0.f)) / .4f;
  return least(least(ball, torus) - h * h * .1f, y + 1.2f);
}
Tile scene_of(const Tile& x, const Tile& y, const Tile& z) {
  return scene<Tile>(
      x, y, z, [](Tile a) { return sqrt(a); }, [](Tile a, Tile b) { return min(a, b); },
      [](Tile a, Tile b) { return max(a, b); }, [](Tile a) { return abs(a); });
}
auto sdf_march = kernel("user_sdf_march", [](const SdfCfg& c, Ptr<float> depth, Ptr<float> light, I32 W, I32 H) {
  num_warps(c.warps);
  auto p = program_id(0) * c.B + arange(0, c.B);
  auto inside = p < W * H;
  auto u = (cast(p % W, f32) + .5f) / cast(W, f32) * 2.f - 1.f, v = 1.f - (cast(p / W, f32) + .5f) / cast(H, f32) * 2.f;
  auto length = rsqrt(u * u + v * v + 2.25f);
  auto dx = u * length, dy = v * length, dz = 1.5f * length;
  Tile t = zeros({c.B}, f32), going = inside, steps = zeros({}, i32);
  while_([&] { return any(going) & (steps < 96); }, [&] {
    auto d = scene_of(dx * t, .5f + dy * t, -4.f + dz * t);
    going = going & (d > 1e-3f * t) & (t < 20.f);
    t = where(going, t + d, t);
    steps += 1;
  });
  store(depth + p, t, {.mask = inside});
  auto x = dx * t, y = .5f + dy * t, z = -4.f + dz * t;
  Tile shade = full({c.B}, 1.f, f32), far = full({c.B}, .05f, f32);
  for (auto i : range(0, 24)) {
    (void)i;
    auto d = scene_of(x + .48f * far, y + .8f * far, z - .36f * far);
    shade = min(shade, 8.f * d / far);
    far += clamp(d, .02f, .3f);
  }
  store(light + p, where(t < 20.f, max(shade, 0.f), 1.f), {.mask = inside});
}).grid([](const SdfCfg& c, auto, auto, int W, int H) { return Grid{cdiv(W * H, c.B)}; });
Register r1("sdf_march", [](Env& e) {
  SdfCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int W = e.big ? 1920 : 37, H = e.big ? 1080 : 23;
  auto depth = constant<float>(e, size_t(W) * H, NAN), light = constant<float>(e, size_t(W) * H, NAN);
  Job j;
  j.mbytes = 8e-6 * W * H;
  j.add(sdf_march, c, depth.p, light.p, W, H);
  j.check = [=] {
    auto at = [](double x, double y, double z) {
      return scene<double>(
          x, y, z, [](double a) { return std::sqrt(a); }, [](double a, double b) { return std::min(a, b); },
          [](double a, double b) { return std::max(a, b); }, [](double a) { return std::abs(a); });
    };
    std::vector<double> ts, ls;
    for (int p = 0; p < W * H; ++p) {
      const double u = (p % W + .5) / W * 2 - 1, v = 1 - (p / W + .5) / H * 2, l = 1 / std::sqrt(u * u + v * v + 2.25);
      double t = 0;
      for (int i = 0; i < 96; ++i) {
        const double d = at(u * l * t, .5 + v * l * t, -4 + 1.5 * l * t);
        if (!(d > 1e-3 * t && t < 20)) break;
        t += d;
      }
      double shade = 1, far = .05;
      for (int i = 0; i < 24; ++i) {
        const double d = at(u * l * t + .48 * far, .5 + v * l * t + .8 * far, -4 + 1.5 * l * t - .36 * far);
        shade = std::min(shade, 8 * d / far), far += std::clamp(d, .02, .3);
      }
      ts.push_back(t), ls.push_back(t < 20 ? std::max(shade, 0.) : 1);
    }
    const auto wrong = mostly(depth.now(), ts, 1e-2);
    return wrong.empty() ? mostly(light.now(), ls, 5e-2) : wrong;
  };
  return j;
});

// --- rays through a grid of voxels, a bit each (Amanatides and Woo): which is the first that is full, after how many
struct DdaCfg {
  int B = 128, warps = 4;
};
auto voxel_dda = kernel("user_voxel_dda", [](const DdaCfg& c, Tensor<const float, 2> rays, Ptr<const uint32_t> bits,
                                             Ptr<int32_t> hit, I32 size, I32 n) {
  // rays [6, n]: from inside the grid, and where to; bits [size^3 / 32]; hit [n]: the voxel, -1
  num_warps(c.warps);
  auto r = program_id(0) * c.B + arange(0, c.B);
  std::array<Tile, 3> cell, step, next, delta;
  for (int d = 0; d < 3; ++d) {
    auto from = load(rays.ptr() + (d * n + r), {.mask = r < n});
    auto to = load(rays.ptr() + ((d + 3) * n + r), {.mask = r < n, .other = 1.f});
    auto low = floor(from);
    cell[d] = cast(low, i32);
    step[d] = where(to > 0.f, 1, -1);
    delta[d] = 1.f / max(abs(to), 1e-12f);
    next[d] = where(to > 0.f, low + 1.f - from, from - low) * delta[d];
  }
  Tile found = full({c.B}, -1, i32), going = r < n;
  while_([&] { return any(going); }, [&] {
    auto at = (cell[2] * size + cell[1]) * size + cell[0];
    auto word = load(bits + (at >> 5), {.mask = going});
    auto full_here = going & ((word >> cast(at & 31, u32) & 1u) == 1u);
    found = where(full_here, at, found);
    going = going & !full_here;
    auto x = (next[0] < next[1]) & (next[0] < next[2]), y = ~x & (next[1] < next[2]), z = ~x & ~y;
    const Tile along[] = {x, y, z};
    for (int d = 0; d < 3; ++d) {
      cell[d] = where(along[d], cell[d] + step[d], cell[d]);
      next[d] = where(along[d], next[d] + delta[d], next[d]);
      going = going & (cell[d] >= 0) & (cell[d] < size);
    }
  });
  store(hit + r, found, {.mask = r < n});
}).grid([](const DdaCfg& c, const auto&, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("voxel_dda", [](Env& e) {
  DdaCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int size = e.big ? 256 : 16, n = e.big ? 1 << 20 : 203;
  auto rays = filled<float>(e, 6 * size_t(n), [&](size_t i) {
    return float(i < 3 * size_t(n) ? e.uniform() * size * .998 + .01 : e.uniform() * 2 - 1);
  });
  auto bits = filled<uint32_t>(e, size_t(size) * size * size / 32, [&](size_t) {
    return e.uniform() < (e.big ? .9 : .6) ? 0u : 1u << uint32_t(e.uniform() * 32);
  });
  auto hit = constant<int32_t>(e, n, -7);
  Job j;
  j.mbytes = 28e-6 * n;
  j.add(voxel_dda, c, rays.view(6, n), bits.p, hit.p, size, n);
  j.check = [=] {
    std::vector<double> want;
    for (int r = 0; r < n; ++r) {
      int cell[3], step[3];
      float next[3], delta[3];
      for (int d = 0; d < 3; ++d) {
        const float from = rays.at(size_t(d) * n + r), to = rays.at(size_t(d + 3) * n + r);
        cell[d] = int(from), step[d] = to > 0 ? 1 : -1, delta[d] = 1 / std::max(std::abs(to), 1e-12f);
        next[d] = (to > 0 ? std::floor(from) + 1 - from : from - std::floor(from)) * delta[d];
      }
      int found = -1;
      while (found < 0 && *std::min_element(cell, cell + 3) >= 0 && *std::max_element(cell, cell + 3) < size) {
        const int at = (cell[2] * size + cell[1]) * size + cell[0];
        if (bits.at(at / 32) >> at % 32 & 1) found = at;
        const int d = next[0] < next[1] && next[0] < next[2] ? 0 : next[1] < next[2] ? 1 : 2;
        cell[d] += step[d], next[d] += delta[d];
      }
      want.push_back(found);
    }
    const auto got = hit.now();
    return mostly(std::vector<float>(got.begin(), got.end()), want, 0);
  };
  return j;
});

// --- a bilateral grid: pixels added to the cell of their place and brightness, blurred cells read back between eight
struct GridCfg {
  int B = 256, warps = 4;
};
auto grid_splat = kernel("user_grid_splat", [](const GridCfg& c, Ptr<const float> image, Ptr<float> cells, I32 W, I32 H,
                                               I32 gw, I32 gh, I32 gd, F32 per_cell) {
  // image [H, W] in [0, 1), cells [gh, gw, gd, 2] of zeros: sum and count
  num_warps(c.warps);
  auto p = program_id(0) * c.B + arange(0, c.B);
  auto inside = p < W * H;
  auto v = load(image + p, {.mask = inside});
  auto near = [&](Tile x) { return cast(floor(x + .5f), i32); };
  auto gy = near(cast(p / W, f32) / per_cell), gx = near(cast(p % W, f32) / per_cell), gz = near(v * cast(gd - 1, f32));
  auto cell = cells + ((gy * gw + gx) * gd + gz) * 2;
  atomic_add(cell, v, {.mask = inside, .order = Order::relaxed});
  atomic_add(cell + 1, 1.f, {.mask = inside, .order = Order::relaxed});
}).grid([](const GridCfg& c, auto, auto, int W, int H, auto...) { return Grid{cdiv(W * H, c.B)}; });
auto grid_slice = kernel("user_grid_slice", [](const GridCfg& c, Ptr<const float> image, Ptr<const float> cells,
                                               Ptr<float> out, I32 W, I32 H, I32 gw, I32 gh, I32 gd, F32 per_cell) {
  num_warps(c.warps);
  auto p = program_id(0) * c.B + arange(0, c.B);
  auto inside = p < W * H;
  auto v = load(image + p, {.mask = inside});
  auto fy = cast(p / W, f32) / per_cell, fx = cast(p % W, f32) / per_cell, fz = v * cast(gd - 1, f32);
  auto y0 = floor(fy), x0 = floor(fx), z0 = floor(fz);
  Tile sum = zeros({c.B}, f32), count = zeros({c.B}, f32);
  for (int k = 0; k < 8; ++k) {
    auto weight = (k & 1 ? fx - x0 : 1.f - fx + x0) * (k & 2 ? fy - y0 : 1.f - fy + y0) *
                  (k & 4 ? fz - z0 : 1.f - fz + z0);
    auto x = min(cast(x0, i32) + (k & 1), gw - 1), y = min(cast(y0, i32) + (k >> 1 & 1), gh - 1),
         z = min(cast(z0, i32) + (k >> 2), gd - 1);
    auto at = cells + ((y * gw + x) * gd + z) * 2;
    sum += weight * load(at, {.mask = inside});
    count += weight * load(at + 1, {.mask = inside});
  }
  store(out + p, sum / max(count, 1e-6f), {.mask = inside});
}).grid([](const GridCfg& c, auto, auto, auto, int W, int H, auto...) { return Grid{cdiv(W * H, c.B)}; });
Register r3("bilateral_grid", [](Env& e) {
  GridCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int W = e.big ? 3840 : 37, H = e.big ? 2160 : 25, gd = e.big ? 16 : 5;
  const float per = e.big ? 32 : 6;
  const int gw = int((W - 1) / per + .5) + 1, gh = int((H - 1) / per + .5) + 1;
  auto image = random<float>(e, size_t(W) * H, 0, .999);
  auto cells = constant<float>(e, size_t(gw) * gh * gd * 2, 0), out = constant<float>(e, size_t(W) * H, NAN);
  Job j;
  j.inTurn = !e.big;  // times do not depend on what the cells hold
  j.mbytes = 4e-6 * W * H * 3;
  j.add(grid_splat, c, image.p, cells.p, W, H, gw, gh, gd, per);
  j.add(grid_slice, c, image.p, cells.p, out.p, W, H, gw, gh, gd, per);
  j.check = [=] {
    std::vector<double> cell(cells.n), want;
    for (int p = 0; p < W * H; ++p) {
      auto near = [](double x) { return int(std::floor(x + .5)); };
      double* at = &cell[size_t((near(p / W / per) * gw + near(p % W / per)) * gd + near(float(image[p]) * (gd - 1))) * 2];
      at[0] += image[p], at[1] += 1;
    }
    for (int p = 0; p < W * H; ++p) {
      const double f[3] = {p % W / per, p / W / per, float(image[p]) * float(gd - 1)};
      double sum = 0, count = 0;
      for (int k = 0; k < 8; ++k) {
        double w = 1;
        int at[3];
        for (int d = 0; d < 3; ++d) {
          const double low = std::floor(f[d]);
          w *= k >> d & 1 ? f[d] - low : 1 - f[d] + low;
          at[d] = std::min(int(low) + (k >> d & 1), (d == 0 ? gw : d == 1 ? gh : gd) - 1);
        }
        const size_t i = size_t((at[1] * gw + at[0]) * gd + at[2]) * 2;
        sum += w * cell[i], count += w * cell[i + 1];
      }
      want.push_back(sum / std::max(count, 1e-6));
    }
    return mostly(out.now(), want, 1e-3);
  };
  return j;
});

// --- Heston's model: prices and variances walk together; the mean payoff of a call that dies below a barrier
struct HestonCfg {
  int B = 256, warps = 4;
};
auto heston = kernel("user_heston", [](const HestonCfg& c, Ptr<double> sum, U64 seed, I32 paths, I32 steps, F32 strike,
                                       F32 barrier) {
  num_warps(c.warps);
  auto path = program_id(0) * c.B + arange(0, c.B);
  auto dt = 1.f / cast(steps, f32), root = sqrt(dt);
  Tile x = zeros({c.B}, f32), v = full({c.B}, .04f, f32), alive = path < paths;
  for (auto s : range(0, steps)) {
    auto w = philox(cast(path, u32), cast(s, u32), 0u, 0u, cast(seed, u32), cast(seed >> 32, u32));
    auto uniform = [](Tile bits) { return (cast(bits >> 8, f32) + .5f) * 0x1p-24f; };
    auto radius = sqrt(-2.f * log(uniform(w[0]))), turn = uniform(w[1]) * 2.f;
    auto z0 = radius * cospi(turn), z1 = radius * sinpi(turn);
    auto positive = max(v, 0.f), sigma = sqrt(positive) * root;
    x += (.02f - .5f * positive) * dt + sigma * z0;
    v += 1.5f * (.04f - positive) * dt + .5f * sigma * (-.7f * z0 + .71414284f * z1);
    alive = alive & (x > log(barrier));
  }
  auto payoff = where(alive, max(exp(x) - strike, 0.f), 0.f);
  atomic_add(sum, tile::sum(cast(payoff, f64)), {.order = Order::relaxed});
}).grid([](const HestonCfg& c, auto, uint64_t, int paths, auto...) { return Grid{cdiv(paths, c.B)}; });
Register r4("heston", [](Env& e) {
  HestonCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int paths = e.big ? 1 << 22 : 301, steps = e.big ? 128 : 12;
  const uint64_t seed = 0x123456789abcull;
  auto sum = constant<double>(e, 1, 0);
  Job j;
  j.gflop = 1e-9 * paths * double(steps) * 100;
  j.add(heston, c, sum.p, seed, paths, steps, .95f, .8f);
  j.check = [=] {
    std::vector<double> want(1);
    for (int p = 0; p < paths; ++p) {
      double x = 0, v = .04, dt = 1. / steps;
      bool alive = true;
      for (int s = 0; s < steps; ++s) {
        const auto w = reference_philox(seed, uint64_t(s) << 32 | uint32_t(p));
        auto uniform = [](uint32_t b) { return ((b >> 8) + .5) * 0x1p-24; };
        const double r = std::sqrt(-2 * std::log(uniform(w[0]))), a = uniform(w[1]) * 2 * M_PI;
        const double z0 = r * std::cos(a), z1 = r * std::sin(a), pos = std::max(v, 0.), sg = std::sqrt(pos * dt);
        x += (.02 - .5 * pos) * dt + sg * z0, v += 1.5 * (.04 - pos) * dt + .5 * sg * (-.7 * z0 + .71414284 * z1);
        alive = alive && x > std::log(.8);
      }
      want[0] += alive ? std::max(std::exp(x) - .95, 0.) : 0;
    }
    return agree(sum.now(), want, 1e-2, 1e-3);
  };
  return j;
});

}  // namespace marches
}  // namespace users
