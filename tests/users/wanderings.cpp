// wanderings.cpp - particles and chance: walks on spheres, collisions in the cells of a gas, charges brought to a grid
// with div and mod of flat places, paths of a hidden Markov model, words of strings counted and hashed.
#include "tests/users/use.h"
namespace users {
namespace wanderings {

struct LaneCfg {
  int B = 128, warps = 4;
};

// --- walks on spheres: u is harmonic in the unit square with u = x^2 - y^2 on its walls; what a point's walks find
auto walks = kernel("user_walk_spheres", [](const LaneCfg& c, Ptr<const float> points, Ptr<float> mean,
                                            Ptr<int32_t> lengths, I32 n, I32 walks, I32 seed, F32 near) {
               num_warps(c.warps);
               auto i = program_id(0) * c.B + arange(0, c.B);
               auto live = i < n;
               auto x0 = load(points + 2 * i, {.mask = live, .other = 0.5f});
               auto y0 = load(points + 2 * i + 1, {.mask = live, .other = 0.5f});
               Tile total = zeros({c.B}, f32), steps = zeros({c.B}, i32);
               for (auto w : range(walks)) {
                 Tile x = x0, y = y0, k = zeros({c.B}, i32), active = live;
                 while_([&] { return any(active); },
                        [&] {
                          auto r = min(min(x, 1.f - x), min(y, 1.f - y));
                          auto angle = rand(seed, (i * walks + w) * 128 + k) * float(2 * M_PI);
                          active = active & (r > near) & (k < 127);
                          x = where(active, x + r * cos(angle), x);
                          y = where(active, y + r * sin(angle), y);
                          k = where(active, k + 1, k);
                        });
                 // the nearest point of a wall
                 auto left = min(x, 1.f - x) < min(y, 1.f - y);
                 auto bx = where(left, where(x < 0.5f, 0.f, 1.f), x), by = where(left, y, where(y < 0.5f, 0.f, 1.f));
                 total += bx * bx - by * by;
                 steps += k;
               }
               store(mean + i, total / cast(walks, f32), {.mask = live});
               store(lengths + i, steps, {.mask = live});
             }).grid([](const LaneCfg& c, const float*, float*, int*, int n, auto...) { return Grid{cdiv(n, c.B)}; });
Register r1("walk_spheres", [](Env& e) {
  const int n = e.big ? 1 << 18 : 37, count = e.big ? 16 : 64;
  auto points = random<float>(e, size_t(n) * 2, .02, .98);
  auto mean = constant<float>(e, n, NAN);
  auto lengths = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 16e-6 * n;
  j.add(walks, LaneCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, points.p, mean.p, lengths.p, n,
        count, 1234, 1e-4f);
  j.check = [=] {
    const auto got = mean.now();
    const auto steps = lengths.now();
    double bias = 0;
    for (int i = 0; i < n; ++i) {
      const double want = points[2 * i] * points[2 * i] - points[2 * i + 1] * points[2 * i + 1];
      bias += (got[i] - want) / n;
      if (!(std::abs(got[i] - want) < .35) || steps[i] < count || steps[i] > 60 * count)
        return "point " + std::to_string(i);
    }
    return std::abs(bias) < .04 ? std::string() : "all in all " + std::to_string(bias);
  };
  return j;
});

// --- DSMC: the particles of a cell (at most 32) in random order, neighbours in that order may collide
struct CellCfg {
  int cells = 8, warps = 4;
};
auto collide = kernel("user_collide", [](const CellCfg& c, Tensor<float, 3> velocity, Tensor<const int32_t, 1> count,
                                         Tensor<int32_t, 1> hits, I64 seed, F32 fastest) {
                 // velocity [3, cells, 32]
                 num_warps(c.warps);
                 auto cell = program_id(0) * c.cells;
                 auto lane = arange(0, 32).row() + zeros({c.cells, 1}, i32);
                 auto id = (cell + arange(0, c.cells)).col() * 32 + lane;
                 auto n = count.load({cell}, {c.cells}).col();
                 auto key = where(lane < n, rand(seed, id), 2.f);
                 auto order = argsort(key, axis(1));
                 auto pair = [&](const Tile& x) { return split(reshape(x, {c.cells, 16, 2})); };
                 Tile speed2 = zeros({c.cells, 16}, f32);
                 std::array<Tile, 3> a, b;
                 for (int d = 0; d < 3; ++d) {
                   auto v = squeeze(velocity.load({d, cell, 0}, {1, c.cells, 32}), 0);
                   auto [p, q] = pair(take(v, order, 1));
                   a[d] = p, b[d] = q;
                   speed2 += (p - q) * (p - q);
                 }
                 auto [first, second] = pair(order);
                 auto number = (cell + arange(0, c.cells)).col() * 16 + arange(0, 16).row();
                 auto [u0, u1, u2, u3] = rand4(seed + 1, number);
                 auto speed = sqrt(speed2);
                 auto hit = (second < n) & (first < n) & (u0 * fastest < speed);
                 auto z = 2.f * u1 - 1.f, angle = u2 * float(2 * M_PI), around = sqrt(max(0.f, 1.f - z * z));
                 std::array<Tile, 3> to = {speed * around * cos(angle), speed * around * sin(angle), speed * z};
                 auto back = argsort(order, axis(1));
                 for (int d = 0; d < 3; ++d) {
                   auto middle = 0.5f * (a[d] + b[d]), half = 0.5f * to[d];
                   auto both = join(where(hit, middle + half, a[d]), where(hit, middle - half, b[d]));
                   velocity.store({d, cell, 0}, expand_dims(take(reshape(both, {c.cells, 32}), back, 1), 0));
                 }
                 hits.store({cell}, squeeze(sum(where(hit, 1, 0), axis(1)), 1));
               }).grid([](const CellCfg& c, const auto& v, const auto&...) { return Grid{cdiv(v.shape[1], c.cells)}; });
Register r2("collide", [](Env& e) {
  const int cells = e.big ? 1 << 16 : 13;
  auto v = random<float>(e, size_t(cells) * 96);
  auto count = filled<int32_t>(e, cells, [&](size_t i) { return i % 7 == 2 ? 0 : int(i * 37 % 33); });
  auto hits = constant<int32_t>(e, cells, -1);
  Job j;
  j.mbytes = 1e-6 * cells * (96 * 8 + 8);
  j.add(collide, CellCfg{e.field("B", e.big ? 8 : 2), e.field("warps", e.big ? 4 : 1)}, v.view(3, cells, 32),
        count.view(cells), hits.view(cells), 77, 3.f);
  j.check = [=] {
    const auto got = v.now();
    const auto collided = hits.now();
    for (int k = 0; k < cells; ++k) {
      double energy = 0, heat = 0;
      int changed = 0;
      for (int d = 0; d < 3; ++d) {
        double before = 0, after = 0;
        for (int i = 0; i < 32; ++i) {
          const size_t at = (size_t(d) * cells + k) * 32 + i;
          before += v[at], after += got[at];
          energy += v[at] * v[at], heat += double(got[at]) * got[at];
          changed += d == 0 && got[at] != v.h[at];
          if (i >= count.h[k] && got[at] != v.h[at]) return "cell " + std::to_string(k) + ": no particle moves";
        }
        if (std::abs(before - after) > 1e-5) return "cell " + std::to_string(k) + ": momentum";
      }
      if (std::abs(energy - heat) > 1e-4 * energy + 1e-6) return "cell " + std::to_string(k) + ": energy";
      if (changed != 2 * collided[k]) return "cell " + std::to_string(k) + ": collisions";
      if (count.h[k] >= 16 && (collided[k] == 0 || collided[k] > count.h[k] / 2)) return "cell " + std::to_string(k);
    }
    return std::string();
  };
  return j;
});

// --- charges of particles given to the eight nodes around each, a torus; which node is div and mod of a flat place
auto deposit = kernel("user_deposit_charge", [](const LaneCfg& c, Ptr<const float> position, Ptr<const float> charge,
                                         Ptr<float> density, I64 n, I32 nx, I32 ny, I32 nz) {
                 num_warps(c.warps);
                 auto i = cast(program_id(0), i64) * c.B + arange(0, c.B);
                 auto live = i < n;
                 Tile x = load(position + 3 * i, {.mask = live}), y = load(position + 3 * i + 1, {.mask = live}),
                      z = load(position + 3 * i + 2, {.mask = live}), q = load(charge + i, {.mask = live});
                 auto cx = floor(x), cy = floor(y), cz = floor(z);
                 auto wx = x - cx, wy = y - cy, wz = z - cz;
                 for (int k = 0; k < 8; ++k) {  // constants of the corner: 1 or 0 along every axis
                   auto ix = (cast(cx, i32) + k % 2 + nx) % nx;
                   auto iy = (cast(cy, i32) + k / 2 % 2 + ny) % ny;
                   auto iz = (cast(cz, i32) + k / 4 + nz) % nz;
                   auto w = (k % 2 ? wx : 1.f - wx) * (k / 2 % 2 ? wy : 1.f - wy) * (k / 4 ? wz : 1.f - wz);
                   atomic_add(density + ((iz * ny + iy) * nx + ix), q * w, {.mask = live});
                 }
               }).grid([](const LaneCfg& c, const float*, const float*, float*, int64_t n, int, int, int) {
  return Grid{cdiv(n, c.B)};
});
Register r3("deposit", [](Env& e) {
  const int nx = e.big ? 128 : 5, ny = e.big ? 128 : 6, nz = e.big ? 128 : 4, n = e.big ? 1 << 22 : 131;
  std::vector<float> at;
  for (int i = 0; i < n; ++i) {  // in the order of cells, roughly, as codes keep them
    const int cell = int(int64_t(i) * nx * ny * nz / n);
    at.push_back(float(cell % nx + e.uniform() * 1.5 - .2)), at.push_back(float(cell / nx % ny + e.uniform() - .1));
    at.push_back(float(cell / nx / ny + e.uniform()));
  }
  auto position = repeated(e, at.size(), at);
  auto charge = random<float>(e, n, -.5, 1);
  auto density = constant<float>(e, size_t(nx) * ny * nz, 0);
  Job j;
  j.mbytes = 1e-6 * n * 16 + 8e-6 * nx * ny * nz;
  j.add(deposit, LaneCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, position.p, charge.p,
        density.p, n, nx, ny, nz);
  j.check = [=] {
    std::vector<double> want(size_t(nx) * ny * nz);
    for (int i = 0; i < n; ++i) {
      const double x = at[3 * i], y = at[3 * i + 1], z = at[3 * i + 2];
      const double fx = std::floor(x), fy = std::floor(y), fz = std::floor(z);
      for (int k = 0; k < 8; ++k) {
        const int a = k & 1, b = k >> 1 & 1, d = k >> 2;
        const int ix = (int(fx) + a + nx) % nx, iy = (int(fy) + b + ny) % ny, iz = (int(fz) + d + nz) % nz;
        want[(size_t(iz) * ny + iy) * nx + ix] +=
            charge[i] * std::abs(1 - a - (x - fx)) * std::abs(1 - b - (y - fy)) * std::abs(1 - d - (z - fz));
      }
    }
    return agree(density.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- hidden Markov models: how likely many observed strings are (16 states), in logarithms, one transition for all
auto forward =
    kernel("user_hmm_forward", [](const LaneCfg& c, Tensor<const float, 2> transition, Tensor<const float, 2> emission,
                                  Tensor<const float, 1> start, Tensor<const uint8_t, 2> seen,
                                  Tensor<const int32_t, 1> length, Tensor<float, 1> likely) {
      // transition [from 16, to 16], emission [symbols, 16], start [16]; logarithms; seen [time, strings]
      num_warps(c.warps);
      auto b = program_id(0) * c.B;
      auto A = expand_dims(transition.load({0, 0}, {16, 16}), 0);
      auto last = length.load({b}, {c.B});
      auto look = [&](const Tile& symbols) {
        return load(emission.ptr() + (cast(symbols, i32).col() * 16 + arange(0, 16).row()));
      };
      Tile alpha = start.load({0}, {16}).row() + look(squeeze(seen.load({0, b}, {1, c.B}), 0));  // strings x 16
      for (auto t : range(1, max(last))) {
        auto sums = expand_dims(alpha, 2) + A;  // strings x from x to
        auto top = max(sums, axis(1));
        auto all = squeeze(log(sum(exp(sums - top), axis(1))) + top, 1);
        auto next = all + look(squeeze(seen.load({t, b}, {1, c.B}), 0));
        alpha = where((t < last).col(), next, alpha);
      }
      auto top = max(alpha, axis(1));
      likely.store({b}, squeeze(log(sum(exp(alpha - top), axis(1))) + top, 1));
    }).grid([](const LaneCfg& c, const auto&, const auto&, const auto&, const auto& seen, const auto&...) {
      return Grid{cdiv(seen.shape[1], c.B)};
    });
Register r4("hmm_forward", [](Env& e) {
  const int strings = e.big ? 8192 : 11, times = e.big ? 128 : 9, symbols = 20;
  auto transition = random<float>(e, 256, -5, -1), emission = random<float>(e, symbols * 16, -6, -1);
  auto start = random<float>(e, 16, -4, -2);
  auto seen = integers<uint8_t>(e, size_t(times) * strings, 0, symbols);
  auto length = integers<int32_t>(e, strings, e.big ? times : 1, times + 1);
  auto likely = constant<float>(e, strings, NAN);
  Job j;
  j.gflop = 1e-9 * strings * times * 256 * 4;
  j.add(forward, LaneCfg{e.field("B", e.big ? 16 : 4), e.field("warps", e.big ? 4 : 1)}, transition.view(16, 16),
        emission.view(symbols, 16), start.view(16), seen.view(times, strings), length.view(strings),
        likely.view(strings));
  j.check = [=] {
    std::vector<double> want(strings);
    for (int s = 0; s < strings; ++s) {
      std::array<double, 16> a, next;
      for (int k = 0; k < 16; ++k) a[k] = std::exp(start[k] + emission[size_t(seen[s]) * 16 + k]);
      double scale = 0;
      for (int t = 1; t < length[s]; ++t) {
        double all = 0;
        for (int k = 0; k < 16; ++k) {
          double sum = 0;
          for (int f = 0; f < 16; ++f) sum += a[f] * std::exp(transition[f * 16 + k]);
          next[k] = sum * std::exp(emission[size_t(seen[size_t(t) * strings + s]) * 16 + k]);
          all += next[k];
        }
        for (int k = 0; k < 16; ++k) a[k] = next[k] / all;
        scale += std::log(all);
      }
      double all = 0;
      for (double p : a) all += p;
      want[s] = std::log(all) + scale;
    }
    return agree(likely.now(), want, 1e-3, 1e-5);
  };
  return j;
});

}  // namespace wanderings
}  // namespace users
