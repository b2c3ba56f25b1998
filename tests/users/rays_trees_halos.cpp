// rays_trees_halos.cpp - rays through occupied cells and what they see, rows of a pyramid of paths, sorting by single
// bits inside of a block, moments of discrete ordinates (f64 products), nodes that gather from zones, halos packed
// through a table of addresses, nearest neighbours in a kd-tree with no stack, arrival times in bricks, elimination by
// launches.
#include "dsl/address.h"
#include "tests/users/flat_fields.h"
namespace users {
namespace rays_trees_halos {
// --- instant-ngp: rays step through a grid of bits in Morton order; samples are packed one ray behind the other
Tile spread(Tile x) {  // ten bits, two zeros between
  x = (x * 0x00010001u) & 0xFF0000FFu;
  x = (x * 0x00000101u) & 0x0F00F00Fu;
  x = (x * 0x00000011u) & 0xC30C30C3u;
  return (x * 0x00000005u) & 0x49249249u;
}
uint32_t spread(uint32_t x) {
  x = (x * 0x00010001u) & 0xFF0000FFu;
  x = (x * 0x00000101u) & 0x0F00F00Fu;
  x = (x * 0x00000011u) & 0xC30C30C3u;
  return (x * 0x00000005u) & 0x49249249u;
}
constexpr int kGrid = 16, kMost = 24;
constexpr float kStep = 1.f / 32;
template <class Visit>
void march(const std::array<Tile, 3>& o, const std::array<Tile, 3>& d, Ptr<const uint8_t> bits, const Tile& in,
           int most, Visit visit) {
  Tile t = zeros_like(o[0]), n = cast(in & ~in, i32), going = in;
  while_([&] { return any(going); },
         [&] {
           std::array<Tile, 3> p;
           Tile inside = going;
           for (int k = 0; k < 3; ++k) p[k] = fma(t, d[k], o[k]), inside = inside & (p[k] >= 0.f) & (p[k] < 1.f);
           std::array<Tile, 3> cell;
           for (int k = 0; k < 3; ++k) cell[k] = clamp(cast(p[k] * float(kGrid), i32), 0, kGrid - 1);
           auto code =
               spread(cast(cell[0], u32)) | (spread(cast(cell[1], u32)) << 1) | (spread(cast(cell[2], u32)) << 2);
           auto byte = cast(load(bits + (code >> 3), {.mask = inside}), u32);
           auto full_ = inside & (((byte >> (code & 7)) & 1) != 0);
           visit(t, n, full_);
           n += cast(full_, i32);
           t += kStep;
           going = inside & (n < most);
         });
}
auto ngp_count =
    kernel("user_ngp_count", [](const FlatCfg& c, Ptr<const float> rays, Ptr<const uint8_t> bits, Ptr<int32_t> where_,
                                Ptr<int32_t> counter, Ptr<float> ts, I32 n) {
      num_warps(c.warps);
      auto r = program_id(0) * c.B + arange(0, c.B);
      auto in = r < n;
      std::array<Tile, 3> o, d;
      for (int k = 0; k < 3; ++k)
        o[k] = load(rays + r * 6 + k, {.mask = in}), d[k] = load(rays + r * 6 + 3 + k, {.mask = in});
      Tile count = zeros({c.B}, i32);
      march(o, d, bits, in, kMost, [&](const Tile&, const Tile& n, const Tile& hit) { count = n + cast(hit, i32); });
      count = where(in, count, 0);
      auto before = cumsum(count, axis(0)) - count;
      auto base = atomic_add(counter, sum(count), {.order = Order::relaxed});
      auto start = base + before;
      store(where_ + r * 2, start, {.mask = in}), store(where_ + r * 2 + 1, count, {.mask = in});
      march(o, d, bits, in, kMost,
            [&](const Tile& t, const Tile& n, const Tile& hit) { store(ts + (start + n), t, {.mask = hit}); });
    }).grid([](const FlatCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto composite = kernel("user_nerf_composite", [](const FlatCfg& c, Ptr<const int32_t> where_, Ptr<const half> rgbs,
                                                  Ptr<const float> ts, Ptr<float> out, I32 n) {
                   num_warps(c.warps);  // rgbs [samples, 4]: colour and density
                   auto r = program_id(0) * c.B + arange(0, c.B);
                   auto in = r < n;
                   auto start = load(where_ + r * 2, {.mask = in}), count = load(where_ + r * 2 + 1, {.mask = in});
                   Tile T = ones({c.B}, f32), depth = zeros({c.B}, f32);
                   std::array<Tile, 3> rgb;
                   for (auto& x : rgb) x = zeros({c.B}, f32);
                   Tile i = zeros({c.B}, i32), going = in & (count > 0);
                   while_([&] { return any(going); },
                          [&] {
                            auto s = start + i;
                            auto sigma = cast(load(rgbs + s * 4 + 3, {.mask = going}), f32);
                            auto alpha = 1.f - exp(-sigma * kStep);
                            auto w = where(going, alpha * T, 0.f);
                            for (int k = 0; k < 3; ++k)
                              rgb[k] += w * cast(load(rgbs + s * 4 + k, {.mask = going}), f32);
                            depth += w * load(ts + s, {.mask = going});
                            T -= w;
                            i += 1;
                            going = going & (i < count) & (T > 1e-3f);
                          });
                   for (int k = 0; k < 3; ++k) store(out + r * 5 + k, rgb[k], {.mask = in});
                   store(out + r * 5 + 3, T, {.mask = in}), store(out + r * 5 + 4, depth, {.mask = in});
                 }).grid([](const FlatCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("ngp_march", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int n = e.big ? 1 << 18 : 75;
  auto rays = filled<float>(e, size_t(n) * 6, [&](size_t i) {
    return i % 6 < 3 ? (int(e.uniform() * 60) + .37f) / 64 : (int(e.uniform() * 9) - 4 + .5f) / 4;
  });
  auto bits = filled<uint8_t>(e, kGrid * kGrid * kGrid / 8, [&](size_t) { return uint8_t(e.uniform() * 256); });
  auto places = constant<int32_t>(e, 2 * n, -1), counter = constant<int32_t>(e, 1, 0);
  auto ts = constant<float>(e, size_t(n) * kMost, NAN);
  auto rgbs = random<half>(e, size_t(n) * kMost * 4, 0, 60);
  auto out = constant<float>(e, size_t(n) * 5, NAN);
  Job j;
  restore(e, j, counter);
  j.inTurn = true;
  j.add(ngp_count, c, rays.p, bits.p, places.p, counter.p, ts.p, n);
  j.add(composite, c, places.p, rgbs.p, ts.p, out.p, n);
  j.check = [=] {
    auto pl = places.now();
    auto t = ts.now();
    std::vector<double> want, times, got;
    std::vector<int> used(n * kMost);
    int all = 0;
    for (int r = 0; r < n; ++r) {
      std::vector<float> mine;
      const float* ray = &rays.h[r * 6];
      for (float x = 0; int(mine.size()) < kMost; x += kStep) {
        float p[3];
        bool inside = true;
        for (int k = 0; k < 3; ++k) p[k] = std::fma(x, ray[3 + k], ray[k]), inside &= p[k] >= 0 && p[k] < 1;
        if (!inside) break;
        const uint32_t m =
            spread(uint32_t(p[0] * kGrid)) | spread(uint32_t(p[1] * kGrid)) << 1 | spread(uint32_t(p[2] * kGrid)) << 2;
        if (bits.h[m >> 3] >> (m & 7) & 1) mine.push_back(x);
      }
      all += int(mine.size());
      const int s = pl[2 * r];
      if (pl[2 * r + 1] != int(mine.size()))
        return "ray " + std::to_string(r) + ": " + std::to_string(pl[2 * r + 1]) + " samples instead of " +
               std::to_string(mine.size());
      double T = 1, c[4]{};
      for (size_t i = 0; i < mine.size(); ++i) {
        ++used[s + i], times.push_back(mine[i]), got.push_back(t[s + i]);
        if (T <= 1e-3) continue;
        const size_t at = size_t(s + i) * 4;
        const double w = (1 - std::exp(-rgbs[at + 3] * kStep)) * T;
        for (int k = 0; k < 3; ++k) c[k] += w * rgbs[at + k];
        c[3] += w * mine[i], T -= w;
      }
      want.insert(want.end(), {c[0], c[1], c[2], T, c[3]});
    }
    if (counter.now()[0] != all || std::count(used.begin(), used.end(), 1) != all) return std::string("places overlap");
    auto a = agree(got, times, 1e-6, 1e-6);
    return a.empty() ? agree(out.now(), want, 2e-2, 1e-3) : a;
  };
  return j;
});

// --- Rodinia's pathfinder: rows of costs, the cheapest of three above; a block of columns goes down `height` rows with
// a halo that it loses a column a row of
struct PyramidCfg {
  int B = 256, height = 16, warps = 4;
};
auto pathfinder = kernel("user_pathfinder", [](const PyramidCfg& c, Ptr<const int32_t> wall, Ptr<const int32_t> from,
                                               Ptr<int32_t> to, I32 first, I32 rows, I32 cols) {
                    num_warps(c.warps);
                    const int inner = c.B - 2 * c.height;
                    static_check(inner > 0, "the halo leaves nothing");
                    auto x = program_id(0) * inner - c.height + arange(0, c.B);
                    auto in = (x >= 0) & (x < cols);
                    constexpr int far = 1 << 29;
                    Tile best = load(from + x, {.mask = in, .other = far});
                    auto lanes = arange(0, c.B);
                    for (auto r : range(first, min(first + c.height, rows))) {
                      auto left = take(best, max(lanes - 1, 0), 0), right = take(best, min(lanes + 1, c.B - 1), 0);
                      auto cost = load(wall + (r * cols + x), {.mask = in, .other = far});
                      best = where(in, cost + min(best, min(left, right)), far);
                    }
                    store(to + x, best, {.mask = in & (lanes >= c.height) & (lanes < c.B - c.height)});
                  }).grid([](const PyramidCfg& c, auto, auto, auto, int, int, int cols) {
  return Grid{cdiv(cols, c.B - 2 * c.height)};
});
Register r2("pathfinder", [](Env& e) {
  PyramidCfg c;
  if (!e.big) c = {32, 5, 1};
  c.B = e.field("B", c.B), c.height = e.field("height", c.height), c.warps = e.field("warps", c.warps);
  const int rows = e.big ? 1024 : 13, cols = e.big ? 1 << 17 : 61;
  auto wall = integers<int32_t>(e, size_t(rows) * cols, 0, 10), a = integers<int32_t>(e, cols, 0, 10),
       b = constant<int32_t>(e, cols, -1);
  Job j;
  restore(e, j, a);
  j.inTurn = true;
  int step = 0;
  for (int r = 0; r < rows; r += c.height, ++step)
    j.add(pathfinder, c, wall.p, step % 2 ? b.p : a.p, step % 2 ? a.p : b.p, r, rows, cols);
  j.check = [=] {
    std::vector<double> best(cols);
    for (int x = 0; x < cols; ++x) best[x] = a[x];
    for (int r = 0; r < rows; ++r) {
      auto old = best;
      for (int x = 0; x < cols; ++x)
        best[x] =
            wall[size_t(r) * cols + x] + std::min({old[x], x ? old[x - 1] : 1e9, x + 1 < cols ? old[x + 1] : 1e9});
    }
    return agree((step % 2 ? b : a).now(), best, .5, 0);
  };
  return j;
});

// --- a block of keys sorted by splits, a bit at a time (Harris), 16 bits of keys with 64-bit values that follow
auto split_sort = kernel("user_split_sort", [](const FlatCfg& c, Ptr<const uint16_t> keys, Ptr<const int64_t> values,
                                               Ptr<uint16_t> outKeys, Ptr<int64_t> outValues, I32 n) {
                    num_warps(c.warps);
                    auto i = program_id(0) * c.B + arange(0, c.B);
                    auto in = i < n;
                    auto lanes = arange(0, c.B);
                    Tile k = cast(load(keys + i, {.mask = in, .other = 0xffff}), u32), from = lanes;
                    for (auto b : range(16)) {
                      auto zero = cast(((k >> cast(b, u32)) & 1) == 0, i32);
                      auto before = cumsum(zero, axis(0)) - zero;
                      auto place = where(zero != 0, before, sum(zero) + lanes - before);
                      // the inverse of a permutation: who goes where
                      auto who = argsort(place, axis(0));
                      k = take(k, who, 0), from = take(from, who, 0);
                    }
                    store(outKeys + i, cast(k, u16), {.mask = in});
                    store(outValues + i, load(values + (program_id(0) * c.B + from), {.mask = in}), {.mask = in});
                  }).grid([](const FlatCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("split_sort", [](Env& e) {
  auto c = flat(e, {512, 4}, {24, 1});
  const int n = e.big ? 1 << 20 : 91;
  auto keys = integers<uint16_t>(e, n, 0, e.big ? 65536 : 9);
  auto values = filled<int64_t>(e, n, [](size_t i) { return int64_t(i) * 10000000019ll; });
  auto ok = constant<uint16_t>(e, n, 1);
  auto ov = constant<int64_t>(e, n, -1);
  Job j;
  j.add(split_sort, c, keys.p, values.p, ok.p, ov.p, n);
  j.check = [=] {
    std::vector<double> wk, wv;
    for (int s = 0; s < n; s += c.B) {
      std::vector<int> o;
      for (int i = s; i < std::min(n, s + c.B); ++i) o.push_back(i);
      std::stable_sort(o.begin(), o.end(), [&](int a, int b) { return keys.h[a] < keys.h[b]; });
      for (int i : o) wk.push_back(keys.h[i]), wv.push_back(double(values.h[i]));
    }
    auto k = ok.now();
    auto v = ov.now();
    auto a = agree(std::vector<double>(k.begin(), k.end()), wk, .5, 0);
    return a.empty() ? agree(std::vector<double>(v.begin(), v.end()), wv, .5, 0) : a;
  };
  return j;
});

// --- LTIMES of Kripke: moments from directions, phi[z, g, m] += sum over d of ell[m, d] psi[z, g, d], in float64
struct MomentCfg {
  int BM = 32, BN = 64, BK = 16, warps = 4;
};
auto ltimes = kernel("user_ltimes", [](const MomentCfg& c, Tensor<const double, 2> ell, Tensor<const double, 3> psi,
                                       Tensor<double, 3> phi) {
                num_warps(c.warps);  // ell [M, D]; psi [zones, G, D]; phi [zones, G, M]
                auto z = program_id(1), g = program_id(0) * c.BN;
                for (auto m : range(0, ell.dim(0), c.BM)) {
                  Tile acc = zeros({c.BN, c.BM}, f64);
                  for (auto d : range(0, ell.dim(1), c.BK))
                    acc = dot(psi.load({z, g, d}, {c.BN, c.BK}), trans(ell.load({m, d}, {c.BM, c.BK})), acc);
                  phi.store({z, g, m}, phi.load({z, g, m}, {c.BN, c.BM}) + acc);
                }
              }).grid([](const MomentCfg& c, const auto&, const auto& psi, const auto&) {
  return Grid{cdiv(psi.shape[1], c.BN), psi.shape[0]};
});
Register r4("ltimes", [](Env& e) {
  MomentCfg c;
  if (!e.big) c = {8, 16, 4, 1};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.BK = e.field("BK", c.BK),
  c.warps = e.field("warps", c.warps);
  const int M = e.big ? 25 : 9, D = e.big ? 64 : 11, G = e.big ? 64 : 7, Z = e.big ? 10000 : 5;
  auto ell = random<double>(e, M * D), psi = random<double>(e, size_t(Z) * G * D),
       phi = random<double>(e, size_t(Z) * G * M);
  Job j;
  restore(e, j, phi);
  j.inTurn = true;
  j.gflop = 2e-9 * M * D * double(G) * Z, j.mbytes = 8e-6 * Z * G * (D + 2. * M);
  j.add(ltimes, c, ell.view(M, D), psi.view(Z, G, D), phi.view(Z, G, M));
  j.check = [=] {
    std::vector<double> want(phi.n);
    for (int zg = 0; zg < Z * G; ++zg)
      for (int m = 0; m < M; ++m) {
        double s = phi[size_t(zg) * M + m];
        for (int d = 0; d < D; ++d) s += ell[m * D + d] * psi[size_t(zg) * D + d];
        want[size_t(zg) * M + m] = s;
      }
    return agree(phi.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- halos packed: a list of cells per neighbour and variable, buffers found through a table of addresses
auto pack = kernel("user_halo_pack", [](const FlatCfg& c, Ptr<const int64_t> buffers, Ptr<const int64_t> variables,
                                        Ptr<const int64_t> lists, Ptr<const int32_t> lengths, I32 vars) {
              num_warps(c.warps);
              auto side = program_id(1);
              auto length = load(lengths + side);
              auto i = program_id(0) * c.B + arange(0, c.B);
              return_if(program_id(0) * c.B >= length);
              auto in = i < length;
              auto buffer = pointer_to<double>(load(buffers + side));
              auto list = pointer_to<const int32_t>(load(lists + side));
              auto cell = load(list + i, {.mask = in});
              for (auto v : range(vars)) {
                auto field = pointer_to<const double>(load(variables + v));
                store(buffer + (v * length + i), load(field + cell, {.mask = in}), {.mask = in});
              }
            }).grid([](const FlatCfg&, auto, auto, auto, auto, int) { return Grid{1}; });
Register r5("halo_pack", [](Env& e) {
  auto c = flat(e, {256, 4}, {32, 1});
  const int X = e.big ? 128 : 7, sides = 26, vars = 3;
  std::vector<std::vector<int32_t>> l;
  for (int z = -1; z < 2; ++z)
    for (int y = -1; y < 2; ++y)
      for (int x = -1; x < 2; ++x) {
        if (!x && !y && !z) continue;
        std::vector<int32_t> m;
        auto span = [&](int d) { return d < 0 ? std::pair(0, 1) : d > 0 ? std::pair(X - 1, X) : std::pair(0, X); };
        for (int a = span(z).first; a < span(z).second; ++a)
          for (int b = span(y).first; b < span(y).second; ++b)
            for (int d = span(x).first; d < span(x).second; ++d) m.push_back((a * X + b) * X + d);
        l.push_back(m);
      }
  std::vector<Array<int32_t>> lists;
  std::vector<Array<double>> buffers, fields;
  std::vector<int64_t> lp, bp, fp;
  std::vector<int32_t> len;
  for (auto& m : l) {
    lists.push_back(repeated<int32_t>(e, m.size(), m)), buffers.push_back(constant<double>(e, m.size() * vars, NAN));
    lp.push_back(int64_t(lists.back().p)), bp.push_back(int64_t(buffers.back().p)), len.push_back(int(m.size()));
  }
  for (int v = 0; v < vars; ++v)
    fields.push_back(random<double>(e, size_t(X) * X * X)), fp.push_back(int64_t(fields.back().p));
  auto LP = repeated<int64_t>(e, sides, lp), BP = repeated<int64_t>(e, sides, bp), FP = repeated<int64_t>(e, vars, fp);
  auto LEN = repeated<int32_t>(e, sides, len);
  const Grid grid{cdiv(X * X, c.B), sides};
  Job j;
  j.steps.push_back({"user_halo_pack",
                     [=](Stream& s) { return pack.try_launch(s, c, grid, BP.p, FP.p, LP.p, LEN.p, vars); },
                     [=](const std::string& target) -> Result<KernelBinary> {
                       return pack.compile_for(target, c, BP.p, FP.p, LP.p, LEN.p, vars);
                     }});
  j.check = [=] {
    for (int s = 0; s < sides; ++s) {
      std::vector<double> want;
      for (int v = 0; v < vars; ++v)
        for (int cell : l[s]) want.push_back(fields[v][cell]);
      auto a = agree(buffers[s].now(), want, 1e-300, 0);
      if (!a.empty()) return a;
    }
    return std::string();
  };
  return j;
});

// --- nearest neighbours in a kd-tree (left-balanced, implicit): where one came from says where to go
struct TreeCfg {
  int B = 128, warps = 4;
};
auto kd =
    kernel("user_kd_tree", [](const TreeCfg& c, Ptr<const float> tree, Ptr<const float> queries, Ptr<int32_t> nearest,
                              Ptr<float> best, I32 n, I32 q) {
      num_warps(c.warps);  // tree [n, 3] in level order: the children of i are 2 i + 1 and 2 i + 2; axis = level % 3
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < q;
      std::array<Tile, 3> p;
      for (int k = 0; k < 3; ++k) p[k] = load(queries + i * 3 + k, {.mask = in});
      Tile curr = zeros({c.B}, i32), prev = full({c.B}, -1, i32), at = full({c.B}, -1, i32),
           d2 = full({c.B}, INFINITY, f32);
      Tile going = in & (n > 0);
      while_([&] { return any(going); },
             [&] {
               auto parent = ((curr + 1) >> 1) - 1;
               auto level = 31 - countl_zero(curr + 1);
               auto is_there = going & (curr < n);
               std::array<Tile, 3> x;
               Tile dist = zeros({c.B}, f32);
               for (int k = 0; k < 3; ++k)
                 x[k] = load(tree + curr * 3 + k, {.mask = is_there}), dist += (x[k] - p[k]) * (x[k] - p[k]);
               auto fromParent = prev < curr;
               auto better = is_there & fromParent & (dist < d2);
               d2 = where(better, dist, d2), at = where(better, curr, at);
               auto a = cast(level, i32) % 3;
               auto s = where(a == 0, p[0] - x[0], where(a == 1, p[1] - x[1], p[2] - x[2]));
               auto close = 2 * curr + 1 + cast(s > 0.f, i32), far = 2 * curr + 2 - cast(s > 0.f, i32);
               auto next = where(~is_there, parent,
                                 where(fromParent, close, where((prev == close) & (s * s < d2), far, parent)));
               prev = where(going, curr, prev), curr = where(going, next, curr);
               going = going & (curr >= 0);
             });
      store(nearest + i, at, {.mask = in}), store(best + i, d2, {.mask = in});
    }).grid([](const TreeCfg& c, auto, auto, auto, auto, int, int q) { return Grid{cdiv(q, c.B)}; });
Register r6("kd_tree", [](Env& e) {
  TreeCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 77, q = e.big ? 1 << 20 : 45;
  std::vector<std::array<float, 3>> pts(n);
  for (auto& p : pts)
    for (auto& x : p) x = float(e.uniform());
  std::vector<float> tree(size_t(n) * 3);
  std::function<void(int, int, int, int)> build = [&](int node, int lo, int hi, int axis) {
    if (lo >= hi) return;
    const int m = hi - lo;
    int h = 0;
    while ((2 << h) - 1 < m) ++h;  // levels below
    const int full = (1 << h) - 1, last = m - full, half = h ? 1 << (h - 1) : 0,
              left = h ? (full - 1) / 2 + std::min(last, half) : 0;
    std::nth_element(pts.begin() + lo, pts.begin() + lo + left, pts.begin() + hi,
                     [&](auto& a, auto& b) { return a[axis] < b[axis]; });
    for (int k = 0; k < 3; ++k) tree[size_t(node) * 3 + k] = pts[lo + left][k];
    build(2 * node + 1, lo, lo + left, (axis + 1) % 3), build(2 * node + 2, lo + left + 1, hi, (axis + 1) % 3);
  };
  if (e.device) build(0, 0, n, 0);
  auto T = repeated<float>(e, tree.size(), tree), Q = random<float>(e, size_t(q) * 3, 0, 1),
       best = constant<float>(e, q, NAN);
  auto nearest = constant<int32_t>(e, q, -5);
  Job j;
  j.add(kd, c, T.p, Q.p, nearest.p, best.p, n, q);
  j.check = [=] {
    std::vector<double> d(q), w(q);
    for (int i = 0; i < q; ++i) {
      d[i] = 1e9;
      for (int k = 0; k < n; ++k) {
        double s = 0;
        for (int a = 0; a < 3; ++a) s += std::pow(T[k * 3 + a] - Q[i * 3 + a], 2);
        if (s < d[i]) d[i] = s, w[i] = k;
      }
    }
    auto a = agree(best.now(), d, 1e-6, 1e-5);
    return a.empty() ? agree(nearest.now(), w, .5, 0) : a;
  };
  return j;
});

// --- arrival times (eikonal): bricks of 8 x 8 x 8 with a halo relax in registers, many times a launch
struct BrickCfg {
  int N = 8, inner = 8, warps = 4;
};
Tile shifted(const Tile& t, int axis, int by, int n) {  // what lies `by` further along, the edge repeated
  auto i = clamp(arange(0, n) + by, 0, n - 1);
  Shape s{1, 1, 1};
  s[axis] = n;
  return take(t, broadcast_to(reshape(i, s), t.shape()), axis);
}
auto eikonal = kernel("user_eikonal", [](const BrickCfg& c, Ptr<const float> slowness, Tensor<const float, 3> from,
                                         Tensor<float, 3> to, I32 X) {
                 num_warps(c.warps);  // bricks overlap by one: N - 2 new cells along each axis... of N cells read
                 const int n = c.N, m = n - 2;
                 auto x0 = program_id(0) * m - 1, y0 = program_id(1) * m - 1, z0 = program_id(2) * m - 1;
                 Tile t = from.load({z0, y0, x0}, {n, n, n}, {.pad = 1e6f});
                 auto line = [&](auto start, int axis) {
                   Shape s{1, 1, 1};
                   s[axis] = n;
                   return reshape(start + arange(0, n), s);
                 };
                 auto z = line(z0, 0), y = line(y0, 1), x = line(x0, 2);
                 auto own = [&](int axis) {
                   Shape s{1, 1, 1};
                   s[axis] = n;
                   auto i = reshape(arange(0, n), s);
                   return (i > 0) & (i < n - 1);
                 };
                 auto in = (z >= 0) & (z < X) & (y >= 0) & (y < X) & (x >= 0) & (x < X) & own(0) & own(1) & own(2);
                 auto f = load(slowness + ((z * X + y) * X + x), {.mask = in});
                 for (auto it : range(c.inner)) {
                   std::array<Tile, 3> a;
                   for (int k = 0; k < 3; ++k) a[k] = min(shifted(t, k, -1, n), shifted(t, k, 1, n));
                   auto order = [](Tile& p, Tile& q) {
                     Tile low = min(p, q);
                     q = max(p, q), p = low;
                   };
                   order(a[0], a[1]), order(a[1], a[2]), order(a[0], a[1]);
                   Tile u = a[0] + f;
                   auto b2 = 2.f * f * f - (a[0] - a[1]) * (a[0] - a[1]);
                   u = where(u > a[1], .5f * (a[0] + a[1] + sqrt(max(b2, 0.f))), u);
                   auto s = a[0] + a[1] + a[2], c3 = s * s - 3.f * (a[0] * a[0] + a[1] * a[1] + a[2] * a[2] - f * f);
                   u = where(u > a[2], (s + sqrt(max(c3, 0.f))) * (1.f / 3), u);
                   t = where(in, min(t, u), t);
                 }
                 auto p = (z * X + y) * X + x;
                 store(to.ptr() + p, t, {.mask = in});
               }).grid([](const BrickCfg& c, auto, const auto& from, const auto&, int) {
  const auto g = cdiv(from.shape[0], c.N - 2);
  return Grid{g, g, g};
});
Register r7("eikonal", [](Env& e) {
  BrickCfg c;
  if (!e.big) c = {6, 3, 1};
  c.N = e.field("N", e.big ? 10 : 6), c.inner = e.field("inner", c.inner), c.warps = e.field("warps", c.warps);
  const int X = e.big ? 192 : 7, rounds = e.big ? 2 : 8;
  const size_t n = size_t(X) * X * X;
  auto f = random<float>(e, n, .5, 2);
  auto a = filled<float>(e, n, [&](size_t i) { return i == n / 2 ? 0.f : 1e6f; }), b = constant<float>(e, n, NAN);
  Job j;
  restore(e, j, a);
  j.inTurn = true;
  for (int r = 0; r < rounds; ++r)
    j.add(eikonal, c, f.p, (r % 2 ? b : a).view(X, X, X), (r % 2 ? a : b).view(X, X, X), X);
  j.check = [=] {
    std::vector<double> t(n, 1e6);
    t[n / 2] = 0;
    for (int it = 0; it < 100; ++it)
      for (int z = 0; z < X; ++z)
        for (int y = 0; y < X; ++y)
          for (int x = 0; x < X; ++x) {
            auto at = [&](int z, int y, int x) {
              return z < 0 || y < 0 || x < 0 || z >= X || y >= X || x >= X ? 1e6 : t[(size_t(z) * X + y) * X + x];
            };
            double v[3] = {std::min(at(z - 1, y, x), at(z + 1, y, x)), std::min(at(z, y - 1, x), at(z, y + 1, x)),
                           std::min(at(z, y, x - 1), at(z, y, x + 1))};
            std::sort(v, v + 3);
            const size_t i = (size_t(z) * X + y) * X + x;
            const double s = f[i];
            double u = v[0] + s;
            if (u > v[1]) u = .5 * (v[0] + v[1] + std::sqrt(std::max(0., 2 * s * s - std::pow(v[0] - v[1], 2))));
            if (u > v[2]) {
              const double S = v[0] + v[1] + v[2];
              u = (S + std::sqrt(std::max(0., S * S - 3 * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2] - s * s)))) / 3;
            }
            t[i] = std::min(t[i], u);
          }
    return agree((rounds % 2 ? b : a).now(), t, 1e-2, 1e-4);
  };
  return j;
});

// --- Rodinia's gaussian: multipliers of a column, then rows minus multiples of one; two launches a column
auto fan1 = kernel("user_fan1", [](const FlatCfg& c, Ptr<float> m, Ptr<const float> a, I32 n, I32 t) {
              num_warps(c.warps);
              auto i = program_id(0) * c.B + arange(0, c.B) + t + 1;
              auto in = i < n;
              store(m + (i * n + t), load(a + (i * n + t), {.mask = in}) / load(a + (t * n + t)), {.mask = in});
            }).grid([](const FlatCfg& c, auto, auto, int n, int t) { return Grid{cdiv(n - 1 - t, c.B)}; });
struct Fan2Cfg {
  int BY = 8, BX = 128, warps = 4;
};
auto fan2 = kernel("user_fan2", [](const Fan2Cfg& c, Ptr<const float> m, Ptr<float> a, Ptr<float> b, I32 n, I32 t) {
              num_warps(c.warps);
              auto i = program_id(1) * c.BY + arange(0, c.BY) + t + 1, j = program_id(0) * c.BX + arange(0, c.BX) + t;
              auto in = (i < n).col() & (j < n).row();
              auto f = load(m + (i * n + t), {.mask = i < n});
              auto p = a + (i.col() * n + j.row());
              store(p, load(p, {.mask = in}) - f.col() * load(a + (t * n + j), {.mask = j < n}).row(), {.mask = in});
              for (auto _ : when(program_id(0) == 0))
                store(b + i, load(b + i, {.mask = i < n}) - f * load(b + t), {.mask = i < n});
            }).grid([](const Fan2Cfg& c, auto, auto, auto, int n, int t) {
  return Grid{cdiv(n - t, c.BX), cdiv(n - 1 - t, c.BY)};
});
Register r8("gaussian", [](Env& e) {
  auto c = flat(e, {256, 4}, {32, 1});
  Fan2Cfg c2;
  if (!e.big) c2 = {4, 16, 1};
  c2.BX = e.field("BX", c2.BX), c2.BY = e.field("BY", c2.BY);
  const int n = e.big ? 2048 : 19, columns = e.big ? 4 : n - 1;
  auto a = filled<float>(e, size_t(n) * n, [&](size_t i) { return float(e.uniform() + (i % (n + 1) == 0 ? 4 : 0)); });
  auto b = random<float>(e, n);
  auto m = constant<float>(e, size_t(n) * n, 0);
  Job j;
  restore(e, j, a, b);
  j.inTurn = true;
  for (int t = 0; t < columns; ++t) j.add(fan1, c, m.p, a.p, n, t), j.add(fan2, c2, m.p, a.p, b.p, n, t);
  j.check = [=] {
    std::vector<double> A(n * n), B(n);
    for (int i = 0; i < n * n; ++i) A[i] = a[i];
    for (int i = 0; i < n; ++i) B[i] = b[i];
    for (int t = 0; t < n - 1; ++t)
      for (int i = t + 1; i < n; ++i) {
        const double f = A[i * n + t] / A[t * n + t];
        for (int k = t; k < n; ++k) A[i * n + k] -= f * A[t * n + k];
        B[i] -= f * B[t];
      }
    auto x = agree(a.now(), A, 1e-4, 1e-4);
    return x.empty() ? agree(b.now(), B, 1e-4, 1e-4) : x;
  };
  return j;
});

}  // namespace rays_trees_halos
}  // namespace users
