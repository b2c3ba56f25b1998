// moduli.cpp - numbers modulo a prime: products of polynomials for keys after quantum computers, hashes for proofs; and
// keys in B-trees.
#include "tests/users/use.h"
namespace users {
namespace moduli {

// --- products of polynomials of 256 coefficients modulo x^256 + 1 and 3329 (ML-KEM): transforms that stop at pairs
struct LatticeCfg {
  int B = 4, warps = 4;
};
constexpr int kQ = 3329;
/// a b / 2^16 modulo q, between -q and q.
Tile fqmul(const Tile& a, const Tile& b) {
  auto t = a * b;
  return (t - cast(cast(t * -3327, i16), i32) * kQ) >> 16;
}
Tile barrett(const Tile& a) { return a - ((a * 20159 + (1 << 25)) >> 26) * kQ; }
auto ring =
    kernel("user_ring", [](const LatticeCfg& c, Tensor<const int16_t, 2> A, Tensor<const int16_t, 2> B,
                           Ptr<const int32_t> roots, Tensor<int16_t, 2> C) {
      num_warps(c.warps);
      auto row = program_id(0) * c.B;
      auto halves = [&](const Tile& x, int groups) {
        auto y = reshape(x, {c.B, groups, 2, 128 / groups});
        const Shape half{c.B, groups, 1, 128 / groups};
        return std::pair(extract(y, {0, 0, 0, 0}, half), extract(y, {0, 0, 1, 0}, half));
      };
      auto forward = [&](Tile x) {
        for (int groups = 1; groups <= 64; groups *= 2) {
          auto [a, b] = halves(x, groups);
          auto t = fqmul(reshape(load(roots + groups + arange(0, groups)), {1, groups, 1, 1}), b);
          x = reshape(cat(a + t, a - t, 2), {c.B, 256});
        }
        return barrett(x);
      };
      auto a = reshape(forward(cast(A.load({row, 0}, {c.B, 256}), i32)), {c.B, 64, 2, 2});
      auto b = reshape(forward(cast(B.load({row, 0}, {c.B, 256}), i32)), {c.B, 64, 2, 2});
      auto [a0, a1] = split(a);
      auto [b0, b1] = split(b);
      auto z = reshape(load(roots + 64 + arange(0, 64)), {1, 64, 1});
      z = cat(z, -z, 2);
      Tile x = reshape(join(fqmul(fqmul(a1, b1), z) + fqmul(a0, b0), fqmul(a0, b1) + fqmul(a1, b0)), {c.B, 256});
      for (int groups = 64; groups >= 1; groups /= 2) {
        auto [l, r] = halves(x, groups);
        auto t = reshape(load(roots + (2 * groups - 1) - arange(0, groups)), {1, groups, 1, 1});
        x = reshape(cat(barrett(l + r), fqmul(t, r - l), 2), {c.B, 256});
      }
      C.store({row, 0}, cast(barrett(fqmul(x, full({1, 1}, 1441, i32))), i16));
    }).grid([](const LatticeCfg& c, const auto& a, const auto&, auto, const auto&) {
      return Grid{cdiv(a.shape[0], c.B)};
    });
Register r6("ring", [](Env& e) {
  LatticeCfg c;
  if (!e.big) c = {2, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 16 : 5;
  auto a = integers<int16_t>(e, size_t(n) * 256, 0, kQ), b = integers<int16_t>(e, size_t(n) * 256, 0, kQ);
  auto power = [](int64_t base, int k) {
    int64_t x = 1;
    while (k--) x = x * base % kQ;
    return x;
  };
  auto roots = filled<int32_t>(e, 128, [&](size_t i) {  // 17^(bits of i turned) 2^16, nearest to 0
    int turned = 0;
    for (int k = 0; k < 7; ++k) turned |= int(i >> k & 1) << (6 - k);
    const int64_t x = power(17, turned) * 65536 % kQ;
    return int32_t(x > kQ / 2 ? x - kQ : x);
  });
  auto out = constant<int16_t>(e, a.n, 0);
  Job j;
  j.mbytes = 6e-6 * a.n;
  j.add(ring, c, a.view(n, 256), b.view(n, 256), roots.p, out.view(n, 256));
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int r = 0; r < n; ++r)
      for (int k = 0; k < 256; ++k) {
        int64_t sum = 0;
        for (int i = 0; i < 256; ++i)
          sum += (i <= k ? 1 : -1) * int64_t(a.h[r * 256 + i]) * b.h[r * 256 + ((k - i) & 255)];
        if ((sum - got[r * 256 + k]) % kQ) return "coefficient " + std::to_string(k) + " of " + std::to_string(r);
      }
    return "";
  };
  return j;
});

// --- Poseidon's permutation of twelve numbers modulo 2^64 - 2^32 + 1, for hashes in proofs
struct PoseidonCfg {
  int B = 128, warps = 4;
};
constexpr uint64_t kP = 0xFFFFFFFF00000001ull, kEpsilon = 0xFFFFFFFFull;
/// A 128-bit number modulo p: 2^64 = 2^32 - 1 and 2^96 = -1. What fits 64 bits, not always below p.
Tile goldilocks(const Tile& low, const Tile& high) {
  auto top = high >> 32, middle = high & kEpsilon;
  auto a = low - top;
  a -= where(low < top, kEpsilon, uint64_t(0));
  auto b = (middle << 32) - middle;
  auto sum = a + b;
  return sum + where(sum < b, kEpsilon, uint64_t(0));
}
Tile times(const Tile& a, const Tile& b) { return goldilocks(a * b, mulhi(a, b)); }
constexpr int kCircle[12] = {17, 15, 41, 16, 2, 28, 13, 13, 39, 18, 34, 20};
auto poseidon = kernel("user_poseidon", [](const PoseidonCfg& c, Ptr<const uint64_t> in, Ptr<const uint64_t> constants,
                                           Ptr<uint64_t> out, I32 n) {
                  // in, out [12, n]; constants [30, 12]
                  num_warps(c.warps);
                  auto i = program_id(0) * c.B + arange(0, c.B);
                  auto mask = i < n;
                  std::array<Tile, 12> x;
                  for (int k = 0; k < 12; ++k) x[k] = load(in + k * n + i, {.mask = mask});
                  auto seventh = [](const Tile& v) {
                    auto v2 = times(v, v);
                    return times(times(v2, v2), times(v2, v));
                  };
                  auto round = [&](Tile r, bool full_round) {
                    for (int k = 0; k < 12; ++k) {
                      auto with = load(constants + r * 12 + k);
                      auto s = x[k] + with;
                      x[k] = s + where(s < with, kEpsilon, uint64_t(0));
                    }
                    for (int k = 0; k < (full_round ? 12 : 1); ++k) x[k] = seventh(x[k]);
                    std::array<Tile, 12> y;
                    for (int k = 0; k < 12; ++k) {  // sums of halves: neither leaves 64 bits
                      Tile low = zeros({c.B}, u64), high = low;
                      for (int j = 0; j < 12; ++j) {
                        const uint64_t m = kCircle[j] + (j == 0 && k == 0 ? 8 : 0);
                        low += (x[(k + j) % 12] & kEpsilon) * m, high += (x[(k + j) % 12] >> 32) * m;
                      }
                      auto sum = low + (high << 32);
                      y[k] = goldilocks(sum, (high >> 32) + cast(sum < low, u64));
                    }
                    x = y;
                  };
                  for (auto r : range(0, 4)) round(r, true);
                  for (auto r : range(4, 26)) round(r, false);
                  for (auto r : range(26, 30)) round(r, true);
                  for (int k = 0; k < 12; ++k)
                    store(out + k * n + i, where(x[k] >= kP, x[k] - kP, x[k]), {.mask = mask});
                }).grid([](const PoseidonCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r7("poseidon", [](Env& e) {
  PoseidonCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 18 : 45;
  auto word = [&](size_t) {
    const uint64_t high = uint64_t(e.uniform() * 0x1p24), low = uint64_t(e.uniform() * 0x1p24);
    return (high << 40 ^ low << 20 ^ uint64_t(e.uniform() * 0x1p24)) % kP;
  };
  auto in = filled<uint64_t>(e, size_t(12) * n, word), constants = filled<uint64_t>(e, 360, word);
  auto out = constant<uint64_t>(e, in.n, 0);
  Job j;
  j.gflop = 1e-9 * n * (30. * 144 + 472);
  j.add(poseidon, c, in.p, constants.p, out.p, n);
  j.check = [=]() -> std::string {
    using U = unsigned __int128;
    const auto got = out.now();
    for (int i = 0; i < n; ++i) {
      uint64_t x[12], y[12];
      for (int k = 0; k < 12; ++k) x[k] = in.h[k * n + i];
      for (int r = 0; r < 30; ++r) {
        for (int k = 0; k < 12; ++k) x[k] = uint64_t((U(x[k]) + constants.h[r * 12 + k]) % kP);
        for (int k = 0; k < (r < 4 || r >= 26 ? 12 : 1); ++k) {
          const uint64_t v = x[k];
          for (int p = 0; p < 6; ++p) x[k] = uint64_t(U(x[k]) * v % kP);
        }
        for (int k = 0; k < 12; ++k) {
          U sum = k == 0 ? U(x[0]) * 8 : 0;
          for (int j = 0; j < 12; ++j) sum += U(x[(k + j) % 12]) * kCircle[j];
          y[k] = uint64_t(sum % kP);
        }
        std::copy(y, y + 12, x);
      }
      for (int k = 0; k < 12; ++k)
        if (got[k * n + i] != x[k]) return "number " + std::to_string(k) + " of " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- keys looked up in a B-tree of nodes of 32 keys: how many of a node's keys are not larger says which child is next
struct BTreeCfg {
  int B = 16, warps = 1;
};
auto b_tree = kernel("user_b_tree", [](const BTreeCfg& c, Ptr<const int32_t> keys, Ptr<const int32_t> children,
                                       Ptr<const int32_t> wanted, Ptr<int32_t> found, I32 levels, I32 n) {
                // keys [nodes, 32]: the least key of every child, sorted; children [nodes, 32]: nodes, or values
                num_warps(c.warps);
                auto i = program_id(0) * c.B + arange(0, c.B);
                auto in = i < n;
                auto key = load(wanted + i, {.mask = in});
                auto place = arange(0, 32).row();
                Tile node = zeros({c.B}, i32), equal = zeros({c.B}, i1);
                for (auto level : range(levels)) {
                  auto k = load(keys + node.col() * 32 + place, {.mask = broadcast_to(in.col(), {c.B, 32})});
                  auto not_larger = k <= key.col();
                  auto at = squeeze(sum(cast(not_larger, i32), axis(1)), 1) - 1;
                  equal = squeeze(any(k == key.col(), axis(1)), 1);
                  node = load(children + node * 32 + max(at, 0), {.mask = in});
                }
                store(found + i, where(equal, node, -1), {.mask = in});
              }).grid([](const BTreeCfg& c, auto, auto, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r8("b_tree", [](Env& e) {
  BTreeCfg c;
  if (!e.big) c = {8, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int levels = e.big ? 4 : 2, n = e.big ? 1 << 20 : 77;
  int leaves = 1;
  for (int k = 1; k < levels; ++k) leaves *= 32;
  const int first = (leaves - 1) / 31, nodes = first + leaves, below = leaves * 32;  // nodes above the leaves, keys
  auto keys = filled<int32_t>(e, size_t(nodes) * 32, [&](size_t i) {
    int64_t node = int64_t(i / 32), width = below / 32, start = 0;
    for (int64_t m = 1; node >= start + m; m *= 32, width /= 32) start += m;
    return int32_t(((node - start) * 32 + int64_t(i % 32)) * width * 3);
  });
  auto children = filled<int32_t>(e, size_t(nodes) * 32, [&](size_t i) {
    const int node = int(i / 32);
    return node >= first ? int32_t((i - size_t(first) * 32) * 7) : node * 32 + 1 + int(i % 32);
  });
  auto wanted = integers<int32_t>(e, n, 0, int64_t(below) * 3);
  auto found = constant<int32_t>(e, n, -2);
  Job j;
  j.mbytes = 1e-6 * n * (levels * 132. + 8);
  j.add(b_tree, c, keys.p, children.p, wanted.p, found.p, levels, n);
  j.check = [=]() -> std::string {
    const auto got = found.now();
    for (int i = 0; i < n; ++i)
      if (got[i] != (wanted.h[i] % 3 ? -1 : wanted.h[i] / 3 * 7)) return "key " + std::to_string(wanted.h[i]);
    return "";
  };
  return j;
});

// --- places of many numbers in grids whose sizes a launch gives: quotients and remainders of every kind, in a loop
struct PlacesCfg {
  int N = 1024, loops = 8;
};
auto grid_places = kernel("user_grid_places", [](const PlacesCfg& c, Ptr<const int32_t> x, Ptr<int32_t> y, I32 all, I32 n) {
                     auto u = cast(n, u32);
                     for (auto k : range(0, c.loops)) {
                       auto i = (program_id(0) * c.loops + k) * c.N + arange(0, c.N);
                       auto in = i < all;
                       auto v = load(x + i, {.mask = in, .other = 0});
                       auto w = cast(v, u32), h = v & 0x7fffffff;  // of any sign, without one, not negative
                       Tile results[] = {v / n, v % n, floor_div(v, n), floor_mod(v, n), cast(w / u, i32), cast(w % u, i32), h / n, h % n};
                       for (int r = 0; r < 8; ++r) store(y + (i + r * all), results[r], {.mask = in});
                     }
                   }).grid([](const PlacesCfg& c, auto, auto, int all, int) { return Grid{cdiv(all, c.N * c.loops)}; });
Register r9("grid_places", [](Env& e) {
  PlacesCfg c;
  if (!e.big) c = {128, 2};
  c.N = e.field("N", c.N), c.loops = e.field("loops", c.loops);
  const int n = e.big ? 1 << 24 : 300;
  constexpr int32_t lowest = INT32_MIN, highest = INT32_MAX;
  std::vector<int32_t> divisors = {7};
  if (!e.big)
    divisors = {1, -1, 2, -2, 3, 5, 7, -7, 10, 641, 4096, 65535, 65536, 65537, 6700417, 1 << 30, (1 << 30) + 1, highest - 1,
                highest, -highest, lowest};
  auto x = filled<int32_t>(e, n, [&](size_t i) -> int32_t {  // beside multiples, at the ends, anywhere
    if (i < 8) return i < 4 ? lowest + int(i) : highest - int(i - 4);
    const int32_t d = divisors[i % divisors.size()];
    const int64_t k = int64_t(e.uniform() * 4294967296. / std::abs(double(d)));
    if (i % 4 < 3) return static_cast<int32_t>(static_cast<uint32_t>(k * d + int64_t(i % 4) - 1));
    return static_cast<int32_t>(static_cast<uint32_t>(e.uniform() * 4294967296.));
  });
  std::vector<Array<int32_t>> y;
  Job j;
  for (int32_t d : divisors) {
    y.push_back(constant<int32_t>(e, size_t(n) * 8, -2));
    j.mbytes += 36e-6 * n;
    j.add(grid_places, c, x.p, y.back().p, n, d);
  }
  j.check = [=]() -> std::string {
    for (size_t k = 0; k < divisors.size(); ++k) {
      const int64_t d = divisors[k];
      const uint32_t u = static_cast<uint32_t>(d);
      const auto got = y[k].now();
      for (int i = 0; i < n; ++i) {
        const int64_t v = x.h[i], h = v & highest, rest = (v % d + d) % d;
        const uint32_t w = static_cast<uint32_t>(v);
        const int64_t want[] = {v / d, v % d, (v - rest) / d, rest, w / u, w % u, h / d, h % d};
        for (int r = 0; r < 8; ++r)
          if (got[size_t(r) * n + i] != static_cast<int32_t>(want[r]))
            return "result " + std::to_string(r) + " of " + std::to_string(v) + " and " + std::to_string(d);
      }
    }
    return "";
  };
  return j;
});

}  // namespace moduli
}  // namespace users
