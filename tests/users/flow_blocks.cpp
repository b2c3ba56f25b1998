// flow_blocks.cpp - gases in blocks of cells: Euler's equations in three dims with an HLLC flux in f64, and the flags,
// masks and lists by which an octree of blocks is refined (Loehner's estimator).
#include "tests/users/use.h"
namespace users {
namespace flow_blocks {

// --- Euler in three dims: limited slopes (minmod) of density, velocity and pressure, HLLC through the six faces of a
// cell, one step forward. Two layers of cells lie around the grid
struct GasCfg {
  int BY = 2, BX = 64, warps = 4;
};
constexpr double kGamma = 1.4;
struct Gas {
  std::array<Tile, 5> q;  ///< density, velocity (3), pressure
};
Gas slopes(const Gas& a, const Gas& b, const Gas& c) {
  Gas s;
  for (int k = 0; k < 5; ++k) {
    auto l = b.q[k] - a.q[k], r = c.q[k] - b.q[k];
    s.q[k] = where(l * r > 0., where(abs(l) < abs(r), l, r), 0.);
  }
  return s;
}
/// What goes through a face whose normal is `axis`: of density, momenta, energy.
std::array<Tile, 5> hllc(const Gas& l, const Gas& r, int axis) {
  auto speed = [&](const Gas& g) { return sqrt(kGamma * g.q[4] / g.q[0]); };
  const Tile &ul = l.q[1 + axis], &ur = r.q[1 + axis];
  auto cl = speed(l), cr = speed(r);
  auto sl = min(ul - cl, ur - cr), sr = max(ul + cl, ur + cr);
  auto ml = l.q[0] * (sl - ul), mr = r.q[0] * (sr - ur);
  auto middle = (r.q[4] - l.q[4] + ml * ul - mr * ur) / (ml - mr);
  // The side of the contact that the face lies on; outside of the fan nothing but the flux of that side is left.
  auto left = middle >= 0.;
  Gas g;
  for (int k = 0; k < 5; ++k) g.q[k] = where(left, l.q[k], r.q[k]);
  auto s = where(left, min(sl, 0.), max(sr, 0.)), full = where(left, sl, sr);
  auto u = g.q[1 + axis];
  auto kinetic = .5 * (g.q[1] * g.q[1] + g.q[2] * g.q[2] + g.q[3] * g.q[3]);
  auto e = g.q[4] / (kGamma - 1) + g.q[0] * kinetic;
  auto star = g.q[0] * (full - u) / (full - middle);
  std::array<Tile, 5> f;
  f[0] = g.q[0] * u + s * (star - g.q[0]);
  for (int k = 0; k < 3; ++k) {
    auto own = g.q[0] * g.q[1 + k];
    f[1 + k] = own * u + s * (star * (k == axis ? middle : g.q[1 + k]) - own);
    if (k == axis) f[1 + k] += g.q[4];
  }
  f[4] = u * (e + g.q[4]) + s * (star * (e / g.q[0] + (middle - u) * (middle + g.q[4] / (g.q[0] * (full - u)))) - e);
  return f;
}
auto gas_step = kernel("user_hllc", [](const GasCfg& c, Tensor<const double, 4> Q, Tensor<double, 4> out, F64 step) {
                  // Q [5, Z + 4, Y + 4, X + 4], out [5, Z, Y, X]: density, momenta, energy
                  num_warps(c.warps);
                  auto x = program_id(0) * c.BX, y = program_id(1) * c.BY, z = program_id(2);
                  auto raw = [&](int k, std::array<int, 3> d) {
                    return Q.load({k, z + 2 + d[2], y + 2 + d[1], x + 2 + d[0]}, {c.BY, c.BX}, {.pad = 1});
                  };
                  auto state = [&](std::array<int, 3> d) {
                    auto r = raw(0, d), inverse = 1. / r;
                    Gas g{{r, raw(1, d) * inverse, raw(2, d) * inverse, raw(3, d) * inverse, Tile()}};
                    g.q[4] =
                        (kGamma - 1) * (raw(4, d) - .5 * r * (g.q[1] * g.q[1] + g.q[2] * g.q[2] + g.q[3] * g.q[3]));
                    return g;
                  };
                  std::array<Tile, 5> sum;
                  for (int axis = 0; axis < 3; ++axis) {
                    std::array<Gas, 5> w;
                    for (int i = 0; i < 5; ++i) {
                      std::array<int, 3> d{};
                      d[axis] = i - 2;
                      w[i] = state(d);
                    }
                    std::array<Gas, 3> s{slopes(w[0], w[1], w[2]), slopes(w[1], w[2], w[3]), slopes(w[2], w[3], w[4])};
                    auto at = [](const Gas& g, const Gas& s, double by) {
                      Gas r;
                      for (int k = 0; k < 5; ++k) r.q[k] = g.q[k] + by * s.q[k];
                      return r;
                    };
                    auto in = hllc(at(w[1], s[0], .5), at(w[2], s[1], -.5), axis);
                    auto to = hllc(at(w[2], s[1], .5), at(w[3], s[2], -.5), axis);
                    for (int k = 0; k < 5; ++k) sum[k] = axis ? sum[k] + (to[k] - in[k]) : to[k] - in[k];
                  }
                  for (int k = 0; k < 5; ++k)
                    out.store({k, z, y, x}, reshape(raw(k, {}) - step * sum[k], {1, 1, c.BY, c.BX}));
                }).grid([](const GasCfg& c, const auto&, const auto& out, double) {
  return Grid{cdiv(out.shape[3], c.BX), cdiv(out.shape[2], c.BY), out.shape[1]};
});
Register r1("hllc", [](Env& e) {
  GasCfg c;
  if (!e.big) c = {2, 8, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int Z = e.big ? 192 : 3, Y = e.big ? 192 : 5, X = e.big ? 192 : 11;
  const size_t n = size_t(Z) * Y * X, all = size_t(Z + 4) * (Y + 4) * (X + 4);
  std::vector<double> q;
  if (e.device) {
    q.resize(5 * all);
    for (size_t i = 0; i < all; ++i) {
      double r = .5 + e.uniform(), p = .3 + 2 * e.uniform(), v[3];
      for (double& u : v) u = 4 * e.uniform() - 2;  // some faster than sound
      q[i] = r, q[4 * all + i] = p / (kGamma - 1) + .5 * r * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      for (int k = 0; k < 3; ++k) q[(1 + k) * all + i] = r * v[k];
    }
  }
  auto in = repeated<double>(e, 5 * all, q);
  auto out = constant<double>(e, 5 * n, NAN);
  const double step = .01;
  Job j;
  j.mbytes = 80e-6 * n;
  j.add(gas_step, c, in.view(5, Z + 4, Y + 4, X + 4), out.view(5, Z, Y, X), step);
  j.check = [=] {
    using Five = std::array<double, 5>;
    auto primitive = [&](int z, int y, int x) {
      const size_t at = (size_t(z + 2) * (Y + 4) + y + 2) * (X + 4) + x + 2;
      Five w;
      w[0] = q[at];
      double k = 0;
      for (int i = 1; i < 4; ++i) w[i] = q[i * all + at] / w[0], k += w[i] * w[i];
      w[4] = .4 * (q[4 * all + at] - w[0] * k / 2);
      return w;
    };
    auto conserved = [](const Five& w) {
      Five u{w[0], w[0] * w[1], w[0] * w[2], w[0] * w[3], 0};
      u[4] = w[4] / .4 + (u[1] * w[1] + u[2] * w[2] + u[3] * w[3]) / 2;
      return u;
    };
    auto flux = [&](const Five& w, int axis) {
      Five f = conserved(w);
      f[4] += w[4];
      for (double& x : f) x *= w[1 + axis];
      f[1 + axis] += w[4];
      return f;
    };
    auto through = [&](const Five& l, const Five& r, int axis) {
      const double ul = l[1 + axis], ur = r[1 + axis], cl = std::sqrt(1.4 * l[4] / l[0]),
                   cr = std::sqrt(1.4 * r[4] / r[0]);
      const double sl = std::min(ul - cl, ur - cr), sr = std::max(ul + cl, ur + cr);
      const double sm =
          (r[4] - l[4] + l[0] * ul * (sl - ul) - r[0] * ur * (sr - ur)) / (l[0] * (sl - ul) - r[0] * (sr - ur));
      if (sl >= 0) return flux(l, axis);
      if (sr <= 0) return flux(r, axis);
      const bool left = sm >= 0;
      const Five &w = left ? l : r, u = conserved(w);
      const double s = left ? sl : sr, v = w[1 + axis], scale = w[0] * (s - v) / (s - sm);
      Five star{scale, scale * w[1], scale * w[2], scale * w[3],
                scale * (u[4] / w[0] + (sm - v) * (sm + w[4] / (w[0] * (s - v))))};
      star[1 + axis] = scale * sm;
      Five f = flux(w, axis);
      for (int k = 0; k < 5; ++k) f[k] += s * (star[k] - u[k]);
      return f;
    };
    std::vector<double> want(5 * n);
    for (int z = 0; z < Z; ++z)
      for (int y = 0; y < Y; ++y)
        for (int x = 0; x < X; ++x) {
          Five sum{};
          for (int axis = 0; axis < 3; ++axis) {
            Five w[5], faces[2];
            for (int i = 0; i < 5; ++i) {
              const int d = i - 2;
              w[i] = primitive(z + (axis == 2) * d, y + (axis == 1) * d, x + (axis == 0) * d);
            }
            auto edge = [&](int i, double side) {
              Five g = w[i];
              for (int k = 0; k < 5; ++k) {
                const double a = w[i][k] - w[i - 1][k], b = w[i + 1][k] - w[i][k];
                if (a * b > 0) g[k] += side * (std::abs(a) < std::abs(b) ? a : b);
              }
              return g;
            };
            for (int f = 0; f < 2; ++f) faces[f] = through(edge(1 + f, .5), edge(2 + f, -.5), axis);
            for (int k = 0; k < 5; ++k) sum[k] += faces[1][k] - faces[0][k];
          }
          const Five u = conserved(primitive(z, y, x));
          for (int k = 0; k < 5; ++k) want[k * n + (size_t(z) * Y + y) * X + x] = u[k] - step * sum[k];
        }
    return agree(out.now(), want, 1e-10, 1e-10);
  };
  return j;
});

// --- blocks of 8 x 8 x 8 cells and a layer around them: cells whose second differences are large beside their first
// ones are flagged, so are their neighbours in the block; a block with flags is refined in the octants that have some,
// a smooth one is given up. Then every refined octant becomes a record of the next level
struct RefineCfg {
  int G = 2, warps = 4;
};
Tile shifted(Tile x, int axis, int by) {
  Shape edge = x.shape(), kept = x.shape(), from{0, 0, 0, 0};
  edge[axis] = 1, kept[axis] -= 1, from[axis] = by > 0;
  auto none = zeros(edge, x.dtype()), rest = extract(x, from, kept);
  return by > 0 ? cat(rest, none, axis) : cat(none, rest, axis);
}
auto flag =
    kernel("user_refine_flags", [](const RefineCfg& c, Tensor<const float, 4> U, Tensor<uint8_t, 3> flags,
                                   Ptr<int32_t> lists, Ptr<uint8_t> octants, Ptr<int32_t> counters, F32 high, F32 low) {
      // U [blocks, 10, 10, 10], flags [blocks, 8, 8] (a bit a cell), lists [2, blocks], octants [blocks],
      // counters [refined, given up, cells]
      num_warps(c.warps);
      auto first = program_id(0) * c.G;
      const Shape cells{c.G, 8, 8, 8};
      auto at = [&](int z, int y, int x) { return U.load({first, 1 + z, 1 + y, 1 + x}, cells); };
      Tile here = at(0, 0, 0), over = zeros(cells, f32), under = zeros(cells, f32);
      for (int axis = 0; axis < 3; ++axis) {
        auto a = at(-(axis == 0), -(axis == 1), -(axis == 2)), b = at(axis == 0, axis == 1, axis == 2);
        auto second = b - 2.f * here + a;
        auto ones = abs(b - here) + abs(here - a) + .01f * (abs(a) + 2.f * abs(here) + abs(b));
        over += second * second, under += ones * ones;
      }
      auto error = sqrt(over / max(under, 1e-30f));
      Tile set = error > high;
      auto marked = sum(sum(sum(cast(set, i16), axis(3)), axis(2)), axis(1));
      for (int axis = 1; axis < 4; ++axis) set = set | shifted(set, axis, 1) | shifted(set, axis, -1);
      auto bits = cast(set, u8) << reshape(arange(0, 8), {1, 1, 1, 8});
      flags.store({first, 0, 0}, cast(squeeze(sum(bits, axis(3)), 3), u8));
      // Octants in the order of their bits: z, y, x.
      auto parts = reshape(permute(reshape(set, {c.G, 2, 4, 2, 4, 2, 4}), {0, 1, 3, 5, 2, 4, 6}), {c.G, 8, 64});
      auto some = squeeze(any(parts, axis(2)), 2);
      auto mask = cast(squeeze(sum(cast(some, u32) << arange(0, 8).row(), axis(1)), 1), u8);
      auto block = first + arange(0, c.G);
      auto there = block < flags.dim(0);
      auto worst = reshape(max(max(max(error, axis(3)), axis(2)), axis(1)), {c.G});
      auto refined = there & (mask != 0), smooth = there & (worst < low);
      store(octants + block, mask, {.mask = there});
      store(lists + atomic_add(counters + zeros({c.G}, i32), 1, {.mask = refined}), block, {.mask = refined});
      auto slot = atomic_add(counters + full({c.G}, 1, i32), 1, {.mask = smooth});
      store(lists + flags.dim(0) + slot, block, {.mask = smooth});
      atomic_add(counters + 2, sum(where(there, reshape(marked, {c.G}), 0)), {.order = Order::relaxed});
    }).grid([](const RefineCfg& c, const auto& u, const auto&...) { return Grid{cdiv(u.shape[0], c.G)}; });
auto children = kernel("user_refine_children", [](const RefineCfg& c, Ptr<const int32_t> lists,
                                                  Ptr<const uint8_t> octants, Ptr<int32_t> counters, Ptr<int64_t> out) {
                  // As many blocks as the counter says, by few programs; out [..]: block * 8 + octant
                  num_warps(c.warps);
                  auto refined = load(counters);
                  Tile first = program_id(0) * 128;
                  while_([&] { return first < refined; },
                         [&] {
                           auto i = first + arange(0, 128);
                           auto block = load(lists + i, {.mask = i < refined});
                           auto mask = cast(load(octants + block, {.mask = i < refined}), i32);
                           auto ends = cumsum(popcount(mask), axis(0));
                           auto base = atomic_add(counters + 3, max(ends));
                           auto begins = ends - popcount(mask);
                           auto octant = arange(0, 8).row();
                           auto before = popcount(mask.col() & ((1 << octant) - 1));
                           store(out + base + begins.col() + before, cast(block, i64).col() * 8 + cast(octant, i64),
                                 {.mask = ((mask.col() >> octant) & 1) != 0});
                           first += num_programs(0) * 128;
                         });
                }).grid([](const RefineCfg&, const auto&...) { return Grid{6}; });
Register r2("refine_flags", [](Env& e) {
  RefineCfg c;
  c.G = e.field("G", c.G), c.warps = e.field("warps", e.big ? c.warps : 1);
  const int n = e.big ? 1 << 16 : 301;
  auto u = filled<float>(e, size_t(n) * 1000, [&](size_t i) {
    const int block = int(i / 1000), z = int(i / 100 % 10), y = int(i / 10 % 10), x = int(i % 10);
    const float wave = 2 + std::sin(.05f * float(x + 2 * y + 3 * z) + float(block));
    const bool inside = x * x + y * y + z * z < block % 61;  // a bubble in a corner, of another density
    return block % 3 == 0 ? wave : inside ? 9.f : wave;
  });
  auto flags = constant<uint8_t>(e, size_t(n) * 64, 0xAA), octants = constant<uint8_t>(e, n, 0xAA);
  auto lists = constant<int32_t>(e, 2 * size_t(n), -1);
  auto counters = constant<int32_t>(e, 4, 0);
  auto out = constant<int64_t>(e, size_t(n) * 8, -1);
  const float high = .5f, low = .1f;
  Job j;
  j.mbytes = 4e-3 * n;
  j.inTurn = true;
  restore(e, j, counters);
  j.add(flag, c, u.view(n, 10, 10, 10), flags.view(n, 8, 8), lists.p, octants.p, counters.p, high, low);
  j.add(children, c, lists.p, octants.p, counters.p, out.p);
  j.check = [=]() -> std::string {
    std::vector<int32_t> refined, smooth;
    std::vector<int64_t> born;
    std::vector<uint8_t> bits(size_t(n) * 64);
    const auto masks = octants.now();
    int cells = 0;
    for (int b = 0; b < n; ++b) {
      bool set[8][8][8] = {};
      double worst = 0;
      int mask = 0;
      auto at = [&](int z, int y, int x) { return u[((size_t(b) * 10 + z + 1) * 10 + y + 1) * 10 + x + 1]; };
      for (int i = 0; i < 512; ++i) {
        const int p[3] = {i / 64, i / 8 % 8, i % 8};
        double over = 0, under = 0;
        for (int a = 0; a < 3; ++a) {
          const double h = at(p[0], p[1], p[2]), l = at(p[0] - (a == 0), p[1] - (a == 1), p[2] - (a == 2)),
                       r = at(p[0] + (a == 0), p[1] + (a == 1), p[2] + (a == 2));
          over += std::pow(r - 2 * h + l, 2);
          under += std::pow(std::abs(r - h) + std::abs(h - l) + .01 * (std::abs(l) + 2 * std::abs(h) + std::abs(r)), 2);
        }
        const double error = std::sqrt(over / under);
        if (std::abs(error - high) < 1e-6) return "data too close to a threshold";
        worst = std::max(worst, error);
        if (error <= high) continue;
        ++cells;
        for (int k = 0; k < 27; ++k) {
          const int z = p[0] + k / 9 - 1, y = p[1] + k / 3 % 3 - 1, x = p[2] + k % 3 - 1;
          if (z >= 0 && y >= 0 && x >= 0 && z < 8 && y < 8 && x < 8) set[z][y][x] = true;
        }
      }
      for (int i = 0; i < 512; ++i)
        if (set[i / 64][i / 8 % 8][i % 8]) {
          bits[size_t(b) * 64 + i / 8] |= uint8_t(1 << i % 8);
          mask |= 1 << (i / 256 * 4 + i / 32 % 2 * 2 + i / 4 % 2);
        }
      if (masks[b] != mask) return "octants of block " + std::to_string(b);
      if (mask) refined.push_back(b);
      if (std::abs(worst - low) < 1e-5) return "data too close to a threshold";
      if (worst < low) smooth.push_back(b);
      for (int o = 0; o < 8; ++o)
        if (mask >> o & 1) born.push_back(b * 8 + o);
    }
    if (flags.now() != bits) return "flags";
    const auto count = counters.now();
    const int want[] = {int(refined.size()), int(smooth.size()), cells, int(born.size())};
    for (int k = 0; k < 4; ++k)
      if (count[k] != want[k])
        return "counter " + std::to_string(k) + ": " + std::to_string(count[k]) + " instead of " +
               std::to_string(want[k]);
    auto sorted = [](auto from, size_t first, size_t n) {
      std::vector list(from.begin() + first, from.begin() + first + n);
      std::sort(list.begin(), list.end());
      return list;
    };
    if (sorted(lists.now(), 0, refined.size()) != refined) return "list of refined blocks";
    if (sorted(lists.now(), n, smooth.size()) != smooth) return "list of smooth blocks";
    if (sorted(out.now(), 0, born.size()) != born) return "children";
    return refined.empty() || smooth.empty() ? "data tests nothing" : "";
  };
  return j;
});

}  // namespace flow_blocks
}  // namespace users
