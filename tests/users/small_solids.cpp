// small_solids.cpp - many small things in tiles of three dims: eigenvalues of 5 x 5 matrices, wavelets of bricks of
// 8 x 8 x 8 voxels, keys of cells in order with what belongs to them, the closest pair of points.
#include "tests/users/use.h"
namespace users {
namespace small_solids {

struct BatchCfg {
  int B = 32, warps = 4;
};

// --- eigenvalues and vectors of symmetric matrices by Jacobi's rotations, a tile [B, N, N] with N odd
constexpr int kN = 5;
auto jacobi = kernel("user_jacobi5", [](const BatchCfg& c, Tensor<const double, 3> A, Tensor<double, 2> values,
                                        Tensor<double, 3> vectors) {
                num_warps(c.warps);
                auto first = program_id(0) * c.B;
                Tile a = A.load({first, 0, 0}, {c.B, kN, kN});
                auto row = expand_dims(arange(0, kN).col(), 0), column = expand_dims(arange(0, kN).row(), 0);
                Tile v = broadcast_to(cast(cast(row == column, i32), f64), {c.B, kN, kN});
                auto entry = [&](const Tile& m, int i, int j) { return extract(m, {0, i, j}, {c.B, 1, 1}); };
                for (auto sweep : range(8))
                  for (int p = 0; p < kN; ++p)
                    for (int q = p + 1; q < kN; ++q) {
                      auto apq = entry(a, p, q);
                      auto flat = abs(apq) < 1e-300;
                      auto theta = (entry(a, q, q) - entry(a, p, p)) / where(flat, 1.0, 2.0 * apq);
                      auto t = where(flat, 0.0, copysign(1.0 / (abs(theta) + sqrt(theta * theta + 1.0)), theta));
                      auto cs = 1.0 / sqrt(t * t + 1.0), sn = t * cs;
                      auto rotated = [&](const Tile& m, const Tile& place, int axis) {  // columns (2) or rows (1)
                        const Shape line = axis == 2 ? Shape{c.B, kN, 1} : Shape{c.B, 1, kN};
                        auto mp = extract(m, axis == 2 ? Shape{0, 0, p} : Shape{0, p, 0}, line);
                        auto mq = extract(m, axis == 2 ? Shape{0, 0, q} : Shape{0, q, 0}, line);
                        return where(place == p, cs * mp - sn * mq, where(place == q, sn * mp + cs * mq, m));
                      };
                      a = rotated(rotated(a, column, 2), row, 1);
                      v = rotated(v, column, 2);
                    }
                values.store({first, 0}, squeeze(sum(where(row == column, a, 0.0), axis(2)), 2));
                vectors.store({first, 0, 0}, v);
              }).grid([](const BatchCfg& c, const auto& a, const auto&...) { return Grid{cdiv(a.shape[0], c.B)}; });
Register r1("jacobi5", [](Env& e) {
  const int n = e.big ? 1 << 18 : 37;
  std::vector<double> m;
  for (int k = 0; k < std::min(n, 4096); ++k) {
    std::array<double, 25> s{};
    for (int i = 0; i < 5; ++i)
      for (int j = i; j < 5; ++j) s[5 * i + j] = s[5 * j + i] = k % 9 == 4 ? (i == j) * 2. : 2 * e.uniform() - 1;
    m.insert(m.end(), s.begin(), s.end());
  }
  auto A = repeated<double>(e, size_t(n) * 25, m);
  auto values = constant<double>(e, size_t(n) * 5, NAN), vectors = constant<double>(e, size_t(n) * 25, NAN);
  Job j;
  j.mbytes = 8e-6 * n * 55;
  j.add(jacobi, BatchCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, A.view(n, 5, 5),
        values.view(n, 5), vectors.view(n, 5, 5));
  j.check = [=] {  // A v = v w, and vectors of length one at right angles
    const auto w = values.now(), v = vectors.now();
    std::vector<double> got, want;
    for (int k = 0; k < n; ++k)
      for (int i = 0; i < 5; ++i)
        for (int c = 0; c < 5; ++c) {
          double av = 0, vv = 0;
          for (int l = 0; l < 5; ++l) {
            av += A[25 * size_t(k) + 5 * i + l] * v[25 * size_t(k) + 5 * l + c];
            vv += v[25 * size_t(k) + 5 * l + i] * v[25 * size_t(k) + 5 * l + c];
          }
          got.insert(got.end(), {av, vv});
          want.insert(want.end(), {v[25 * size_t(k) + 5 * i + c] * w[5 * size_t(k) + c], double(i == c)});
        }
    return agree(got, want, 1e-11, 0);
  };
  return j;
});

// --- integer wavelets (5/3) of bricks along all three axes, three levels, written as eight octants per level
struct BrickCfg {
  int B = 4, warps = 4;
};
/// Halves along `axis`: means first, differences behind, of 2 n neighbours.
Tile lifted(const Tile& x, int axis) {
  Shape paired;
  const Shape s = x.shape();
  const int64_t n = s[axis] / 2;
  for (int d = 0; d < s.rank(); ++d) {
    paired.push_back(d == axis ? n : s[d]);
    if (d == axis) paired.push_back(2);
  }
  Shape order;
  for (int d = 0; d <= s.rank(); ++d)
    if (d != axis + 1) order.push_back(d);
  order.push_back(axis + 1);
  auto [even, odd] = split(permute(reshape(x, paired), order));
  auto places = arange(0, int(n));
  Shape line;
  for (int d = 0; d < s.rank(); ++d) line.push_back(d == axis ? n : 1);
  Shape half = s;
  half[axis] = n;
  auto at = [&](const Tile& i) { return broadcast_to(reshape(i, line), half); };
  auto difference = odd - ((even + take(even, at(min(places + 1, int(n - 1))), axis)) >> 1);
  auto mean = even + ((take(difference, at(max(places - 1, 0)), axis) + difference + 2) >> 2);
  return cat(mean, difference, axis);
}
auto bricks = kernel("user_bricks", [](const BrickCfg& c, Tensor<const int16_t, 4> in, Tensor<int16_t, 4> out) {
                num_warps(c.warps);
                auto b = program_id(0) * c.B;
                Tile x = cast(in.load({b, 0, 0, 0}, {c.B, 8, 8, 8}), i32);
                for (int n = 8; n > 1; n /= 2) {
                  Tile part = n == 8 ? x : extract(x, {0, 0, 0, 0}, {c.B, n, n, n});
                  for (int axis = 1; axis <= 3; ++axis) part = lifted(part, axis);
                  if (n < 8) {  // back into its corner
                    for (int axis = 3; axis >= 1; --axis) {
                      Shape offset{0, 0, 0, 0}, rest{c.B, 8, 8, 8};
                      for (int d = 1; d < axis; ++d) rest[d] = n;
                      offset[axis] = n, rest[axis] = 8 - n;
                      part = cat(part, extract(x, offset, rest), axis);
                    }
                  }
                  x = part;
                }
                out.store({b, 0, 0, 0}, cast(x, i16));
              }).grid([](const BrickCfg& c, const auto& in, const auto&) { return Grid{cdiv(in.shape[0], c.B)}; });
Register r2("bricks", [](Env& e) {
  const int n = e.big ? 1 << 17 : 7;
  auto in = integers<int16_t>(e, size_t(n) * 512, -2048, 2048);
  auto out = filled<int16_t>(e, size_t(n) * 512, [](size_t) { return 1; });
  Job j;
  j.mbytes = 2e-6 * 1024 * n;
  j.add(bricks, BrickCfg{e.field("B", e.big ? 4 : 2), e.field("warps", 4)}, in.view(n, 8, 8, 8), out.view(n, 8, 8, 8));
  j.check = [=] {
    std::vector<double> want(size_t(n) * 512);
    for (int b = 0; b < n; ++b) {
      std::vector<int> x(512);
      for (int i = 0; i < 512; ++i) x[i] = int(in[size_t(b) * 512 + i]);
      for (int m = 8; m > 1; m /= 2)
        for (int step : {64, 8, 1})
          for (int u = 0; u < m; ++u)
            for (int w = 0; w < m; ++w) {
              const int s1 = step == 64 ? 8 : 64, s2 = step == 1 ? 8 : 1, at = u * s1 + w * s2;
              std::array<int, 8> line{};
              const int h = m / 2;
              for (int i = 0; i < h; ++i)
                line[h + i] = x[at + (2 * i + 1) * step] -
                              ((x[at + 2 * i * step] + x[at + 2 * std::min(i + 1, h - 1) * step]) >> 1);
              for (int i = 0; i < h; ++i)
                line[i] = x[at + 2 * i * step] + ((line[h + std::max(i - 1, 0)] + line[h + i] + 2) >> 2);
              for (int i = 0; i < m; ++i) x[at + i * step] = line[i];
            }
      for (int i = 0; i < 512; ++i) want[size_t(b) * 512 + i] = x[i];
    }
    return agree(out.now(), want, 1e-9, 0);
  };
  return j;
});

// --- cells in Morton order: keys of 3 x 21 bits from points, sorted within groups of 96, with masses that follow
struct OrderCfg {
  int R = 2, n = 96, warps = 4;
};
Tile spread(Tile x) {  // bits of 21 to every third place
  x = (x | (x << 32)) & 0x1f00000000ffffull;
  x = (x | (x << 16)) & 0x1f0000ff0000ffull;
  x = (x | (x << 8)) & 0x100f00f00f00f00full;
  x = (x | (x << 4)) & 0x10c30c30c30c30c3ull;
  return (x | (x << 2)) & 0x1249249249249249ull;
}
auto morton =
    kernel("user_morton_order", [](const OrderCfg& c, Tensor<const float, 3> at, Tensor<const int8_t, 2> kind,
                                   Tensor<uint64_t, 2> keys, Tensor<int8_t, 2> kinds, Tensor<int32_t, 2> from) {
      // at [3, groups, n] in [0, 1); results in order of keys
      num_warps(c.warps);
      auto g = program_id(0) * c.R;
      std::array<Tile, 3> part;
      for (int d = 0; d < 3; ++d) {
        auto x = reshape(at.load({d, g, 0}, {1, c.R, c.n}), {c.R, c.n});
        part[d] = spread(cast(clamp(x, 0.f, 0.99999994f) * 2097152.f, u64));
      }
      auto key = part[0] | (part[1] << 1) | (part[2] << 2);
      auto order = argsort(key, axis(1));
      keys.store({g, 0}, take(key, order, 1));
      kinds.store({g, 0}, take(kind.load({g, 0}, {c.R, c.n}), order, 1));
      from.store({g, 0}, order);
    }).grid([](const OrderCfg& c, const auto& at, const auto&...) { return Grid{cdiv(at.shape[1], c.R)}; });
Register r3("morton_order", [](Env& e) {
  const int G = e.big ? 1 << 16 : 5, n = 96;
  auto at = drawn<float>(e, size_t(3) * G * n, [&] { return float(std::floor(e.uniform() * 64) / 64); });
  auto kind = integers<int8_t>(e, size_t(G) * n, -128, 128);
  auto keys = filled<uint64_t>(e, size_t(G) * n, [](size_t) { return 1; });
  auto kinds = filled<int8_t>(e, size_t(G) * n, [](size_t) { return 1; });
  auto from = filled<int32_t>(e, size_t(G) * n, [](size_t) { return -1; });
  Job j;
  j.mbytes = 1e-6 * G * n * 26.;
  j.add(morton, OrderCfg{e.field("R", e.big ? 4 : 2), n, e.field("warps", 4)}, at.view(3, G, n), kind.view(G, n),
        keys.view(G, n), kinds.view(G, n), from.view(G, n));
  j.check = [=]() -> std::string {
    const auto key = keys.now();
    const auto k = kinds.now();
    const auto f = from.now();
    for (int g = 0; g < G; ++g) {
      std::vector<std::pair<uint64_t, int>> want;
      for (int i = 0; i < n; ++i) {
        uint64_t bits = 0;
        for (int d = 0; d < 3; ++d) {
          const uint64_t x = uint64_t(std::min(at.at((size_t(d) * G + g) * n + i), 0.99999994f) * 2097152.f);
          for (int b = 0; b < 21; ++b) bits |= (x >> b & 1) << (3 * b + d);
        }
        want.emplace_back(bits, i);
      }
      std::sort(want.begin(), want.end());
      std::vector<bool> seen(n);
      for (int i = 0; i < n; ++i) {
        const size_t o = size_t(g) * n + i;
        if (key[o] != want[i].first) return "key " + std::to_string(o);
        if (f[o] < 0 || f[o] >= n || seen[f[o]]) return "order " + std::to_string(o);
        seen[f[o]] = true;
        if (k[o] != kind.at(size_t(g) * n + f[o])) return "kind " + std::to_string(o);
        if (std::none_of(want.begin(), want.end(), [&](auto& w) { return w.second == f[o] && w.first == key[o]; }))
          return "place " + std::to_string(o);
      }
    }
    return "";
  };
  return j;
});

// --- the closest pair of points: distance and both numbers in one word of 64 bits, the least of all programs
struct PairCfg {
  int BM = 48, BN = 80, warps = 4;
};
auto closest = kernel("user_closest_pair", [](const PairCfg& c, Tensor<const float, 2> at, Ptr<uint64_t> best,
                                              Tensor<int32_t, 1> neighbour) {
                 num_warps(c.warps);
                 auto first = program_id(0) * c.BM;
                 auto n = at.dim(1);
                 auto coordinate = [&](int d, const Tile& from, int count) {
                   return reshape(at.load({d, from}, {1, count}), {count});
                 };
                 auto x = coordinate(0, first, c.BM).col(), y = coordinate(1, first, c.BM).col();
                 auto i = (first + arange(0, c.BM)).col();
                 Tile least = full({c.BM, 1}, INFINITY, f32), who = full({c.BM, 1}, -1, i32);
                 for (auto start : range(0, n, c.BN)) {
                   auto dx = coordinate(0, start, c.BN).row() - x, dy = coordinate(1, start, c.BN).row() - y;
                   auto j = broadcast_to((start + arange(0, c.BN)).row(), {c.BM, c.BN});
                   auto d = where((j != i) & (j < n) & (i < n), dx * dx + dy * dy, INFINITY);
                   auto [near, at] = reduce({d, j}, axis(1), [](Tile d0, Tile j0, Tile d1, Tile j1) {
                     auto keep = (d0 < d1) | ((d0 == d1) & (j0 < j1));
                     return std::tuple(where(keep, d0, d1), where(keep, j0, j1));
                   });
                   auto nearer = near < least;
                   who = where(nearer, at, who), least = where(nearer, near, least);
                 }
                 neighbour.store({first}, squeeze(who, 1));
                 // Distances are not negative: their bits are in their order.
                 auto packed = (cast(bitcast(least, u32), u64) << 32) | (cast(cast(min(i, who), u32), u64) << 16) |
                               cast(cast(max(i, who), u32), u64);
                 auto valid = (i < n) & (who >= 0);
                 atomic_min(best, to_scalar(min(where(valid, packed, full({c.BM, 1}, ~0ull, u64)), axis(0))));
               }).grid([](const PairCfg& c, const auto& at, const auto&...) { return Grid{cdiv(at.shape[1], c.BM)}; });
Register r4("closest_pair", [](Env& e) {
  const int n = e.big ? 40000 : 211;
  auto at = random<float>(e, 2 * size_t(n));
  auto best = filled<uint64_t>(e, 1, [](size_t) { return ~0ull; });
  auto neighbour = filled<int32_t>(e, n, [](size_t) { return -7; });
  auto alone = filled<float>(e, 2, [](size_t) { return .5f; });
  auto none = filled<uint64_t>(e, 1, [](size_t) { return ~0ull; });
  auto nobody = filled<int32_t>(e, 1, [](size_t) { return -7; });
  Job j;
  j.gflop = 8e-9 * n * double(n);
  const PairCfg c{e.field("BM", e.big ? 64 : 48), e.field("BN", e.big ? 64 : 80), e.field("warps", 4)};
  j.add(closest, c, at.view(2, n), best.p, neighbour.view(n));
  j.add(closest, c, alone.view(2, 1), none.p, nobody.view(1));
  j.check = [=]() -> std::string {
    const auto got = neighbour.now();
    double least = INFINITY;
    for (int i = 0; i < n; ++i) {
      double own = INFINITY;
      auto distance = [&](int k) { return std::hypot(at[k] - at[i], at[n + k] - at[n + i]); };
      for (int k = 0; k < n; ++k)
        if (k != i) own = std::min(own, distance(k));
      if (got[i] < 0 || got[i] >= n || got[i] == i || distance(got[i]) > own * (1 + 1e-5))
        return "neighbour of " + std::to_string(i);
      least = std::min(least, own);
    }
    const uint64_t w = best.now()[0];
    const int a = int(w >> 16 & 0xffff), b = int(w & 0xffff);
    if (a >= b || b >= n || std::hypot(at[a] - at[b], at[n + a] - at[n + b]) > least * (1 + 1e-5)) return "the pair";
    if (std::abs(std::bit_cast<float>(uint32_t(w >> 32)) - least * least) > 1e-5 * least * least) return "the distance";
    return none.now()[0] == ~0ull && nobody.now()[0] == -1 ? "" : "one point alone";
  };
  return j;
});

}  // namespace small_solids
}  // namespace users
