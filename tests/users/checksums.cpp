// checksums.cpp - texts and keys: a checksum of messages, a hash of records, boundaries chosen by content, common
// subsequences by bits, symbols moved to the front.
#include "tests/users/use.h"
namespace users {
namespace checksums {

// --- Adler's checksum of messages of their own lengths, one a program
struct AdlerCfg {
  int B = 2048, warps = 4;
};
auto adler = kernel("user_adler", [](const AdlerCfg& c, Ptr<const uint8_t> text, Ptr<const int64_t> starts,
                                     Ptr<uint32_t> sums, I32 n) {
               num_warps(c.warps);
               auto m = program_id(0);
               auto begin = load(starts + m), end = load(starts + m + 1);
               auto lane = arange(0, c.B);
               Tile a = full({}, 1, u32), b = full({}, 0, u32);
               for (auto at : range(begin, end, int64_t(c.B))) {
                 auto left = cast(min(end - at, int64_t(c.B)), i32);
                 auto x = cast(load(text + (at + cast(lane, i64)), {.mask = lane < left}), i32);
                 // b grows by a for each byte, and by a byte for each behind it and itself
                 auto weighted = sum(x * (left - lane));
                 b = (b + cast(left, u32) * a + cast(weighted, u32)) % 65521u;
                 a = (a + cast(sum(x), u32)) % 65521u;
               }
               store(sums + m, b << 16 | a);
             }).grid([](const AdlerCfg&, const uint8_t*, const int64_t*, uint32_t*, int n) { return Grid{n}; });
Register r1("adler", [](Env& e) {
  const int n = e.big ? 4096 : 33;
  std::vector<int64_t> starts{0};
  for (int i = 0; i < n; ++i) starts.push_back(starts.back() + int64_t(e.uniform() * (e.big ? 60000 : 5000)));
  starts[5] = starts[4];
  auto text = integers<uint8_t>(e, starts.back(), 0, 256);
  auto s = repeated<int64_t>(e, n + 1, starts);
  auto sums = constant<uint32_t>(e, n, 0);
  Job j;
  j.mbytes = 1e-6 * double(starts.back());
  j.add(adler, AdlerCfg{}, text.p, s.p, sums.p, n);
  j.check = [=] {
    std::vector<double> want;
    for (int m = 0; m < n; ++m) {
      uint32_t a = 1, b = 0;
      for (int64_t i = starts[m]; i < starts[m + 1]; ++i) a = (a + text.h[i]) % 65521, b = (b + a) % 65521;
      want.push_back(b << 16 | a);
    }
    return agree(sums.now(), want, .1, 0);
  };
  return j;
});

// --- xxHash (32 bits) of records of whole words, one an element
struct XxhCfg {
  int B = 256, warps = 4;
};
auto xxh32 = kernel("user_xxh32", [](const XxhCfg& c, Ptr<const uint32_t> words, Ptr<const int32_t> starts,
                                     Ptr<uint32_t> hashes, I32 n, U32 seed) {
               num_warps(c.warps);
               const uint32_t p1 = 2654435761u, p2 = 2246822519u, p3 = 3266489917u, p4 = 668265263u, p5 = 374761393u;
               auto i = program_id(0) * c.B + arange(0, c.B);
               auto mask = i < n;
               auto begin = load(starts + i, {.mask = mask}), end = load(starts + i + 1, {.mask = mask});
               auto length = end - begin;
               std::array<Tile, 4> v{full({c.B}, 0, u32) + (seed + p1 + p2), full({c.B}, 0, u32) + (seed + p2),
                                     full({c.B}, 0, u32) + seed, full({c.B}, 0, u32) + (seed - p1)};
               Tile at = begin;
               while_([&] { return any(at + 4 <= end); },
                      [&] {
                        auto on = at + 4 <= end;
                        for (int k = 0; k < 4; ++k)
                          v[k] = where(on, rotl(v[k] + load(words + (at + k), {.mask = on}) * p2, 13) * p1, v[k]);
                        at = where(on, at + 4, at);
                      });
               Tile h = where(length >= 4, rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18), seed + p5);
               h += cast(length * 4, u32);
               for (int k = 0; k < 3; ++k) {
                 auto on = at + k < end;
                 h = where(on, rotl(h + load(words + (at + k), {.mask = on}) * p3, 17) * p4, h);
               }
               h = h ^ h >> 15, h = h * p2, h = h ^ h >> 13, h = h * p3, h = h ^ h >> 16;
               store(hashes + i, h, {.mask = mask});
             }).grid([](const XxhCfg& c, const uint32_t*, const int32_t*, uint32_t*, int n, uint32_t) {
  return Grid{cdiv(n, c.B)};
});
Register r2("xxh32", [](Env& e) {
  const int n = e.big ? 1 << 20 : 777;
  std::vector<int32_t> starts{0};
  for (int i = 0; i < n; ++i) starts.push_back(starts.back() + int32_t(e.uniform() * 20));
  auto words = drawn<uint32_t>(e, starts.back(), [&] { return uint32_t(e.uniform() * 65536) * 65537u + 77u; });
  auto s = repeated<int32_t>(e, n + 1, starts);
  auto hashes = constant<uint32_t>(e, n, 0);
  Job j;
  j.mbytes = 4e-6 * (starts.back() + 2. * n);
  j.add(xxh32, XxhCfg{}, words.p, s.p, hashes.p, n, 42u);
  j.check = [=] {
    std::vector<double> want;
    auto rot = [](uint32_t x, int k) { return x << k | x >> (32 - k); };
    const uint32_t p1 = 2654435761u, p2 = 2246822519u, p3 = 3266489917u, p4 = 668265263u, p5 = 374761393u, seed = 42;
    for (int i = 0; i < n; ++i) {
      int at = starts[i];
      uint32_t h = seed + p5, v[4] = {seed + p1 + p2, seed + p2, seed, seed - p1};
      for (; at + 4 <= starts[i + 1]; at += 4)
        for (int k = 0; k < 4; ++k) v[k] = rot(v[k] + words.h[at + k] * p2, 13) * p1;
      if (starts[i + 1] - starts[i] >= 4) h = rot(v[0], 1) + rot(v[1], 7) + rot(v[2], 12) + rot(v[3], 18);
      h += uint32_t(starts[i + 1] - starts[i]) * 4;
      for (; at < starts[i + 1]; ++at) h = rot(h + words.h[at] * p3, 17) * p4;
      h ^= h >> 15, h *= p2, h ^= h >> 13, h *= p3, h ^= h >> 16;
      want.push_back(h);
    }
    return agree(hashes.now(), want, .1, 0);
  };
  return j;
});

// --- boundaries of chunks chosen by content: a hash of the last 32 bytes (Gear) with twelve zero bits; a bit per byte
struct GearCfg {
  int B = 1024, warps = 4;
};
auto gear = kernel("user_gear", [](const GearCfg& c, Tensor<const uint8_t, 1> text, Tensor<const uint32_t, 1> table,
                                   Tensor<uint32_t, 1> bits, U32 zeros_at) {
              num_warps(c.warps);
              auto at = program_id(0) * c.B;
              auto values = table.load({0}, {256});
              auto byte = [&](int back, int count) { return cast(text.load({at - back}, {count}), i32); };
              int have = c.B + 31;
              auto place = at - 31 + arange(0, have);
              Tile h = where(place >= 0, take(values, byte(31, have), 0), 0u);
              for (int s = 1; s < 32; s *= 2) {  // of twice as many bytes: h[i] + (h[i - s] << s)
                have -= s;
                h = extract(h, {s}, {have}) + (extract(h, {0}, {have}) << s);
              }
              auto cut = cast((h & zeros_at) == 0u, u32) << cast(arange(0, c.B) % 32, u32);
              bits.store({program_id(0) * (c.B / 32)}, squeeze(sum(reshape(cut, {c.B / 32, 32}), axis(1)), 1));
            }).grid([](const GearCfg& c, const auto& t, const auto&...) { return Grid{cdiv(t.shape[0], c.B)}; });
Register r3("gear", [](Env& e) {
  const int n = e.big ? 1 << 26 : 5003, W = cdiv(n, 1024) * 32;
  const uint32_t mask = e.big ? 0xFFF00000u : 0xF8000000u;
  auto text = integers<uint8_t>(e, n, 0, 256);
  auto table =
      drawn<uint32_t>(e, 256, [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  auto bits = constant<uint32_t>(e, W, 0);
  Job j;
  j.mbytes = 1.125e-6 * n;
  j.add(gear, GearCfg{}, text.view(n), table.view(256), bits.view(W), mask);
  j.check = [=] {
    std::vector<double> want, got;
    uint32_t h = 0;
    const auto b = bits.now();
    for (int i = 0; i < n; ++i) {
      h = (h << 1) + table.h[text.h[i]];
      want.push_back((h & mask) == 0), got.push_back(b[i / 32] >> (i % 32) & 1);
    }
    return agree(got, want, .1, 0);
  };
  return j;
});

// --- lengths of longest common subsequences of a pattern of 256 letters with texts: bits in four words and their carry
struct LcsCfg {
  int B = 128, words = 4, warps = 4;
};
auto lcs =
    kernel("user_lcs", [](const LcsCfg& c, Tensor<const uint64_t, 2> masks, Ptr<const uint8_t> texts,
                          Ptr<int32_t> lengths, I32 n, I32 T) {
      // masks [4 letters, words]: where the pattern has the letter; texts [T, n], of letters 0 to 3
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto mask = i < n;
      std::vector<Tile> v;
      for (int w = 0; w < c.words; ++w) v.push_back(full({c.B}, ~0ull, u64));
      for (auto t : range(T)) {
        auto letter = load(texts + (t * n + i), {.mask = mask});
        Tile carry = zeros({c.B}, u64);
        for (int w = 0; w < c.words; ++w) {
          auto m = [&](int l) { return masks.load({l, w}); };
          auto has = where(letter < 2, where(letter == 0, m(0), m(1)), where(letter == 2, m(2), m(3)));
          auto u = v[w] & has;
          auto s = v[w] + u;
          auto s2 = s + carry;
          carry = cast((s < u) | (s2 < s), u64);
          v[w] = s2 | (v[w] & ~has);
        }
      }
      Tile count = zeros({c.B}, i32);
      for (auto& w : v) count += cast(popcount(~w), i32);
      store(lengths + i, count, {.mask = mask});
    }).grid([](const LcsCfg& c, const auto&, const uint8_t*, int32_t*, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r4("lcs", [](Env& e) {
  const int n = e.big ? 1 << 18 : 201, T = e.big ? 256 : 99, P = 256;
  auto pattern = integers<uint8_t>(e, P, 0, 4);
  auto texts = integers<uint8_t>(e, size_t(n) * T, 0, 4);
  auto masks = filled<uint64_t>(e, 16, [&](size_t k) {
    uint64_t m = 0;
    for (int b = 0; b < 64; ++b) m |= uint64_t(pattern.at(k % 4 * 64 + b) == k / 4) << b;
    return m;
  });
  auto lengths = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 1e-6 * n * T;
  j.add(lcs, LcsCfg{}, masks.view(4, 4), texts.p, lengths.p, n, T);
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i) {
      std::vector<int> row(P + 1), before(P + 1);
      for (int t = 0; t < T; ++t, before = row)
        for (int p = 1; p <= P; ++p)
          row[p] = pattern.h[p - 1] == texts.h[size_t(t) * n + i] ? before[p - 1] + 1 : std::max(before[p], row[p - 1]);
      want.push_back(row[P]);
    }
    return agree(lengths.now(), want, .1, 0);
  };
  return j;
});

// --- symbols moved to the front: streams of 64 symbols, each with a table of its own, in place of BWT's coder
struct MtfCfg {
  int R = 16, S = 64, warps = 4;
};
auto mtf = kernel("user_mtf", [](const MtfCfg& c, Tensor<const uint8_t, 2> in, Tensor<uint8_t, 2> out) {
             // in, out [T, streams]
             num_warps(c.warps);
             auto r = program_id(0) * c.R;
             auto lane = broadcast_to(arange(0, c.S).row(), {c.R, c.S});
             Tile table = lane;
             for (auto t : range(in.dim(0))) {
               auto s = cast(in.load({t, r}, {c.R}), i32).col();
               auto at = argmax(cast(table == s, i32), axis(1));
               table = where(lane == 0, s, where(lane <= at, take(table, max(lane - 1, 0), 1), table));
               out.store({t, r}, reshape(cast(at, u8), {1, c.R}));
             }
           }).grid([](const MtfCfg& c, const auto& in, const auto&) { return Grid{cdiv(in.shape[1], c.R)}; });
Register r5("mtf", [](Env& e) {
  const int n = e.big ? 1 << 14 : 43, T = e.big ? 2048 : 77;
  auto in = integers<uint8_t>(e, size_t(n) * T, 0, 64);
  auto out = constant<uint8_t>(e, size_t(n) * T, 0);
  Job j;
  j.mbytes = 2e-6 * n * T;
  j.add(mtf, MtfCfg{}, in.view(T, n), out.view(T, n));
  j.check = [=] {
    std::vector<double> want(size_t(n) * T);
    for (int i = 0; i < n; ++i) {
      std::vector<int> table(64);
      for (int k = 0; k < 64; ++k) table[k] = k;
      for (int t = 0; t < T; ++t) {
        const auto at = std::find(table.begin(), table.end(), in.h[size_t(t) * n + i]);
        want[size_t(t) * n + i] = double(at - table.begin());
        std::rotate(table.begin(), at, at + 1);
      }
    }
    return agree(out.now(), want, .1, 0);
  };
  return j;
});

}  // namespace checksums
}  // namespace users
