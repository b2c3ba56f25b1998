// suite_programs.cpp - small programs of benchmark suites: MD5 keys searched, gradient noise, a Mersenne twister, a
// 64-bit block cipher of bit permutations, ranks of lists, recursive Gaussians, particles in boxes, speckles removed.
#include "tests/users/use.h"
namespace users {
namespace suite_programs {

// --- MD5 of keys that are counted up: a key of 8 letters an element; finds the one whose digest is asked for
struct KeyCfg {
  int B = 512, warps = 4;
};
const uint32_t* md5_table() {
  static uint32_t t[64];
  for (int i = 0; i < 64; ++i) t[i] = uint32_t(int64_t(std::floor(std::abs(std::sin(i + 1.)) * 4294967296.)));
  return t;
}
constexpr int kShift[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
template <class W, class Rot>
std::array<W, 4> md5_block(const std::array<W, 16>& m, std::array<W, 4> s, Rot rot) {
  W a = s[0], b = s[1], c = s[2], d = s[3];
  const uint32_t* t = md5_table();
  for (int i = 0; i < 64; ++i) {
    W f = i < 16 ? (b & c) | (~b & d) : i < 32 ? (d & b) | (~d & c) : i < 48 ? b ^ c ^ d : c ^ (b | ~d);
    const int g = i < 16 ? i : i < 32 ? (5 * i + 1) % 16 : i < 48 ? (3 * i + 5) % 16 : 7 * i % 16;
    f = f + a + t[i] + m[g];
    a = d, d = c, c = b, b = b + rot(f, kShift[i / 16][i % 4]);
  }
  return {s[0] + a, s[1] + b, s[2] + c, s[3] + d};
}
auto md5_search = kernel("user_md5", [](const KeyCfg& c, Ptr<const uint32_t> wanted, Ptr<int64_t> found,
                                        Ptr<uint32_t> tops, I64 first, I64 n) {
                    num_warps(c.warps);
                    auto i = cast(program_id(0), i64) * c.B + cast(arange(0, c.B), i64);
                    auto in = i < n;
                    auto key = first + i;
                    std::array<Tile, 16> m;
                    for (auto& w : m) w = zeros({c.B}, u32);
                    for (int k = 0; k < 8; ++k) {
                      auto letter = cast(key % 26 + 97, u32);
                      key /= 26;
                      m[k / 4] = m[k / 4] | (letter << (8 * (k % 4)));
                    }
                    m[2] = full({c.B}, 0x80, u32);
                    m[14] = full({c.B}, 64, u32);
                    std::array<Tile, 4> s{full({c.B}, 0x67452301, u32), full({c.B}, 0xefcdab89, u32),
                                          full({c.B}, 0x98badcfe, u32), full({c.B}, 0x10325476, u32)};
                    auto h = md5_block(m, s, [](const Tile& x, int k) { return rotl(x, k); });
                    auto hit = in;
                    for (int k = 0; k < 4; ++k) hit = hit & (h[k] == load(wanted + k));
                    atomic_max(found + zeros({c.B}, i32), first + i, {.mask = hit});
                    store(tops + i, h[0], {.mask = in & (i < 4096)});
                  }).grid([](const KeyCfg& c, auto, auto, auto, int64_t, int64_t n) { return Grid{cdiv(n, c.B)}; });
Register r1("md5", [](Env& e) {
  KeyCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? 1 << 26 : 333, first = 5000000000ll;
  auto digest = [](int64_t key) {
    std::array<uint32_t, 16> m{};
    for (int k = 0; k < 8; ++k) m[k / 4] |= uint32_t(key % 26 + 97) << (8 * (k % 4)), key /= 26;
    m[2] = 0x80, m[14] = 64;
    return md5_block<uint32_t>(m, {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476},
                               [](uint32_t x, int k) { return x << k | x >> (32 - k); });
  };
  auto w = digest(first + 217);
  auto wanted = repeated<uint32_t>(e, 4, {w.begin(), w.end()});
  auto found = constant<int64_t>(e, 1, -1);
  auto tops = constant<uint32_t>(e, 4096, 0);
  Job j;
  j.gflop = 1e-9 * n * 64 * 7;
  j.add(md5_search, c, wanted.p, found.p, tops.p, first, n);
  j.check = [=] {
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i) want[i] = digest(first + i)[0];
    auto a = agree(found.now(), {double(first + 217)}, .5, 0);
    return a.empty() ? agree(tops.now(), want, .5, 0) : a;
  };
  return j;
});

// --- Perlin's noise of a picture, octaves added
struct NoiseCfg {
  int BY = 4, BX = 128, octaves = 6, warps = 4;
};
auto perlin =
    kernel("user_perlin", [](const NoiseCfg& c, Ptr<const int32_t> table, Ptr<float> out, F32 z, F32 scale, I32 H,
                             I32 W) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY + arange(0, c.BY), x = program_id(0) * c.BX + arange(0, c.BX);
      auto fade = [](Tile t) { return t * t * t * (t * (t * 6.f - 15.f) + 10.f); };
      auto lerp = [](Tile t, Tile a, Tile b) { return a + t * (b - a); };
      auto grad = [](Tile hash, Tile x, Tile y, Tile z) {
        auto h = hash & 15;
        auto u = where(h < 8, x, y), v = where(h < 4, y, where((h == 12) | (h == 14), x, z));
        return where((h & 1) == 0, u, -u) + where((h & 2) == 0, v, -v);
      };
      auto p = [&](Tile i) { return load(table + i); };
      Tile total = zeros({c.BY, c.BX}, f32);
      Tile gain = full({}, 1.f, f32), f = scale;
      for (auto octave : range(c.octaves)) {
        auto px = broadcast_to(cast(x, f32).row() * f, {c.BY, c.BX});
        auto py = broadcast_to(cast(y, f32).col() * f, {c.BY, c.BX});
        auto pz = broadcast_to(z * f, {c.BY, c.BX});
        auto X = cast(floor(px), i32) & 255, Y = cast(floor(py), i32) & 255, Z = cast(floor(pz), i32) & 255;
        px -= floor(px), py -= floor(py), pz -= floor(pz);
        auto u = fade(px), v = fade(py), w = fade(pz);
        auto A = p(X) + Y, AA = p(A) + Z, AB = p(A + 1) + Z, B = p(X + 1) + Y, BA = p(B) + Z, BB = p(B + 1) + Z;
        total +=
            gain *
            lerp(w,
                 lerp(v, lerp(u, grad(p(AA), px, py, pz), grad(p(BA), px - 1.f, py, pz)),
                      lerp(u, grad(p(AB), px, py - 1.f, pz), grad(p(BB), px - 1.f, py - 1.f, pz))),
                 lerp(v, lerp(u, grad(p(AA + 1), px, py, pz - 1.f), grad(p(BA + 1), px - 1.f, py, pz - 1.f)),
                      lerp(u, grad(p(AB + 1), px, py - 1.f, pz - 1.f), grad(p(BB + 1), px - 1.f, py - 1.f, pz - 1.f))));
        gain *= .5f, f *= 2.f;
      }
      store(out + (y.col() * W + x.row()), total, {.mask = (y < H).col() & (x < W).row()});
    }).grid([](const NoiseCfg& c, auto, auto, float, float, int H, int W) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
Register r2("perlin", [](Env& e) {
  NoiseCfg c;
  if (!e.big) c = {4, 16, 3, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 4096 : 13, W = e.big ? 4096 : 37;
  std::vector<int32_t> t(512);
  for (int i = 0; i < 256; ++i) t[i] = (i * 167 + 13) % 256;
  for (int i = 0; i < 256; ++i) t[256 + i] = t[i];
  auto table = repeated<int32_t>(e, 512, t);
  auto out = constant<float>(e, size_t(H) * W, NAN);
  const float z = 3.7f, s = .137f;
  Job j;
  j.mbytes = 4e-6 * H * W;
  j.add(perlin, c, table.p, out.p, z, s, H, W);
  j.check = [=] {
    std::vector<double> want;
    auto fade = [](double t) { return t * t * t * (t * (t * 6 - 15) + 10); };
    auto lerp = [](double t, double a, double b) { return a + t * (b - a); };
    auto grad = [](int hash, double x, double y, double z) {
      int h = hash & 15;
      double u = h < 8 ? x : y, v = h < 4 ? y : h == 12 || h == 14 ? x : z;
      return (h & 1 ? -u : u) + (h & 2 ? -v : v);
    };
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        double sum = 0;
        for (int o = 0; o < c.octaves; ++o) {
          const float f = s * (1 << o);
          double a = float(x) * f, b = float(y) * f, g = z * f;
          int X = int(std::floor(a)) & 255, Y = int(std::floor(b)) & 255, Z = int(std::floor(g)) & 255;
          a -= std::floor(a), b -= std::floor(b), g -= std::floor(g);
          int A = t[X] + Y, AA = t[A] + Z, AB = t[A + 1] + Z, B = t[X + 1] + Y, BA = t[B] + Z, BB = t[B + 1] + Z;
          double u = fade(a), v = fade(b), w = fade(g);
          sum += std::ldexp(lerp(w,
                                 lerp(v, lerp(u, grad(t[AA], a, b, g), grad(t[BA], a - 1, b, g)),
                                      lerp(u, grad(t[AB], a, b - 1, g), grad(t[BB], a - 1, b - 1, g))),
                                 lerp(v, lerp(u, grad(t[AA + 1], a, b, g - 1), grad(t[BA + 1], a - 1, b, g - 1)),
                                      lerp(u, grad(t[AB + 1], a, b - 1, g - 1), grad(t[BB + 1], a - 1, b - 1, g - 1)))),
                            -o);
        }
        want.push_back(sum);
      }
    return agree(out.now(), want, 1e-4, 1e-4);
  };
  return j;
});

// --- MT19937: a generator a program, its state of 624 words in memory, a block of words at a time
struct TwisterCfg {
  int warps = 4;
};
auto twister = kernel("user_mt19937", [](const TwisterCfg& c, Ptr<uint32_t> state, Ptr<uint32_t> out, I32 rounds) {
                 num_warps(c.warps);
                 constexpr int N = 624, M = 397;
                 auto g = program_id(0);
                 auto base = state + g * N;
                 auto twist = [&](int from, int to) {  // words [from, to), whose sources are ready
                   auto i = from + arange(0, to - from);
                   auto y = (load(base + i) & 0x80000000u) | (load(base + (i + 1) % N) & 0x7fffffffu);
                   auto next = load(base + (i + M) % N) ^ (y >> 1) ^ where((y & 1) != 0, 0x9908b0dfu, 0u);
                   store(base + i, next);
                 };
                 for (auto r : range(rounds)) {
                   twist(0, N - M);
                   twist(N - M, 2 * (N - M));
                   twist(2 * (N - M), N - 1);
                   twist(N - 1, N);
                   auto i = arange(0, N);
                   auto y = load(base + i);
                   y = y ^ (y >> 11);
                   y = y ^ ((y << 7) & 0x9d2c5680u);
                   y = y ^ ((y << 15) & 0xefc60000u);
                   y = y ^ (y >> 18);
                   store(out + ((cast(g, i64) * rounds + r) * N + cast(i, i64)), y);
                 }
               }).grid([](const TwisterCfg&, auto, auto, int) { return Grid{1}; });
auto seed_twister = kernel("user_mt_seed", [](const NoConfig&, Ptr<uint32_t> state, I32 n) {
                      auto g = program_id(0) * 128 + arange(0, 128);
                      auto in = g < n;
                      Tile x = cast(g, u32) + 5489u;
                      for (auto i : range(624)) {
                        store(state + (g * 624 + i), x, {.mask = in});
                        x = 1812433253u * (x ^ (x >> 30)) + cast(i + 1, u32);
                      }
                    }).grid([](const NoConfig&, auto, int n) { return Grid{cdiv(n, 128)}; });
Register r3("mt19937", [](Env& e) {
  TwisterCfg c{e.field("warps", e.big ? 4 : 1)};
  const int n = e.big ? 2048 : 3, rounds = e.big ? 16 : 2;
  auto state = constant<uint32_t>(e, size_t(n) * 624, 0);
  auto out = constant<uint32_t>(e, size_t(n) * rounds * 624, 0);
  Job j;
  j.inTurn = true;
  j.mbytes = 4e-6 * n * rounds * 624;
  j.add(seed_twister, {}, state.p, n);
  j.steps.push_back({"user_mt19937",
                     [=](Stream& s) { return twister.try_launch(s, c, Grid{n}, state.p, out.p, rounds); },
                     [=](const std::string& target) -> Result<KernelBinary> {
                       return twister.compile_for(target, c, state.p, out.p, rounds);
                     }});
  j.check = [=] {
    std::vector<double> want;
    for (int g = 0; g < n; ++g) {
      std::vector<uint32_t> s(624);
      s[0] = g + 5489u;
      for (int i = 1; i < 624; ++i) s[i] = 1812433253u * (s[i - 1] ^ (s[i - 1] >> 30)) + i;
      for (int r = 0; r < rounds; ++r) {
        for (int i = 0; i < 624; ++i) {
          uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % 624] & 0x7fffffffu);
          s[i] = s[(i + 397) % 624] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        for (uint32_t y : s) {
          y ^= y >> 11, y ^= (y << 7) & 0x9d2c5680u, y ^= (y << 15) & 0xefc60000u, y ^= y >> 18;
          want.push_back(y);
        }
      }
    }
    return agree(out.now(), want, .5, 0);
  };
  return j;
});

// --- PRESENT: 31 rounds of 16 boxes of 4 bits and a permutation of 64 bits; the key's schedule of 80 bits per block
constexpr int kBox[16] = {12, 5, 6, 11, 9, 0, 10, 13, 3, 14, 15, 8, 4, 7, 1, 2};
auto present = kernel("user_present", [](const KeyCfg& c, Ptr<const uint64_t> text, Ptr<const uint64_t> keys,
                                         Ptr<uint64_t> out, I32 n) {
                 num_warps(c.warps);
                 auto i = program_id(0) * c.B + arange(0, c.B);
                 auto in = i < n;
                 auto s = load(text + i, {.mask = in});
                 auto high = load(keys + 2 * i, {.mask = in}),
                      low = load(keys + 2 * i + 1, {.mask = in});  // 64 and 16 bits
                 auto box = [&](Tile x) {                          // of 4 bits
                   constexpr uint64_t table = 0x21748FE3DA09B65Cull;
                   return (full({c.B}, table, u64) >> (x << 2)) & 15;
                 };
                 for (auto round : range(1, 32)) {
                   s = s ^ high;
                   Tile t = zeros({c.B}, u64);
                   for (int k = 0; k < 16; ++k) {
                     auto v = box((s >> (4 * k)) & 15);
                     for (int b = 0; b < 4; ++b)
                       t = t | (((v >> b) & 1) << (4 * k + b == 63 ? 63 : (4 * k + b) * 16 % 63));
                   }
                   s = t;
                   // rotate 80 bits left by 61
                   auto h = (high << 61) | (low << 45) | (high >> 19), l = (high >> 3) & 0xffff;
                   h = (h & 0x0fffffffffffffffull) | (box(h >> 60) << 60);
                   auto counter = cast(round, u64);
                   h = h ^ (counter >> 1), l = l ^ ((counter & 1) << 15);
                   high = h, low = l;
                 }
                 store(out + i, s ^ high, {.mask = in});
               }).grid([](const KeyCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r4("present", [](Env& e) {
  KeyCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 77;
  auto word = [&] {
    return uint64_t(e.uniform() * 0x1p24) << 40 | uint64_t(e.uniform() * 0x1p24) << 20 | uint64_t(e.uniform() * 0x1p20);
  };
  auto text = filled<uint64_t>(e, n, [&](size_t i) { return i ? word() : 0; });
  auto keys = filled<uint64_t>(e, 2 * n, [&](size_t i) { return i < 2 ? 0 : i % 2 ? word() & 0xffff : word(); });
  auto out = constant<uint64_t>(e, n, 0);
  Job j;
  j.mbytes = 32e-6 * n;
  j.add(present, c, text.p, keys.p, out.p, n);
  j.check = [=] {
    std::string wrong;
    auto got = out.now();
    for (int i = 0; i < n; ++i) {
      unsigned __int128 k = (unsigned __int128)keys.h[2 * i] << 16 | keys.h[2 * i + 1],
                        all = ((unsigned __int128)1 << 80) - 1;
      uint64_t s = text.h[i];
      for (int r = 1; r < 32; ++r) {
        s ^= uint64_t(k >> 16);
        uint64_t t = 0;
        for (int b = 0; b < 64; ++b)
          t |= uint64_t(kBox[(s >> (b / 4 * 4)) & 15] >> (b % 4) & 1) << (b == 63 ? 63 : b * 16 % 63);
        s = t;
        k = (k << 61 | k >> 19) & all;
        k = (k & ~((unsigned __int128)15 << 76)) | (unsigned __int128)kBox[int(k >> 76)] << 76;
        k ^= (unsigned __int128)r << 15;
      }
      s ^= uint64_t(k >> 16);
      if (s != got[i]) return "block " + std::to_string(i);
    }
    if (got[0] != 0x5579c1387b228445ull) return std::string("known answer");
    return wrong;
  };
  return j;
});

// --- Wyllie's list ranking: pointers jump until all have arrived; two arrays in turn, one launch a round
auto jump =
    kernel("user_wyllie", [](const KeyCfg& c, Ptr<const int64_t> from, Ptr<int64_t> to, Ptr<int32_t> moved, I64 n) {
      num_warps(c.warps);  // an element: the rank so far (high word), the next one (low word), -1 at the end
      auto i = cast(program_id(0), i64) * c.B + cast(arange(0, c.B), i64);
      auto in = i < n;
      auto me = load(from + i, {.mask = in, .other = -1});
      auto next = cast(me, i32), rank = cast(me >> 32, i32);
      auto goes = in & (next >= 0);
      auto there = load(from + next, {.mask = goes});
      auto after = (cast(rank + cast(there >> 32, i32), i64) << 32) | (there & 0xffffffffll);
      store(to + i, where(goes, after, me), {.mask = in});
      if_(any(goes), [&] { atomic_add(moved, sum(cast(goes, i32))); });
    }).grid([](const KeyCfg& c, auto, auto, auto, int64_t n) { return Grid{cdiv(n, c.B)}; });
Register r5("wyllie", [](Env& e) {
  KeyCfg c;
  if (!e.big) c = {64, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 22 : 301, rounds = e.big ? 22 : 9;
  std::vector<int> order(n);
  for (int i = 0; i < n; ++i) order[i] = i;
  for (int i = n - 1; i > 0; --i) std::swap(order[i], order[int(e.uniform() * (i + 1))]);
  std::vector<int64_t> first(n);
  for (int k = 0; k < n; ++k) first[order[k]] = k + 1 < n ? (int64_t(1) << 32 | order[k + 1]) : 0xffffffffll;
  auto a = repeated<int64_t>(e, n, first), b = constant<int64_t>(e, n, 0);
  auto moved = constant<int32_t>(e, rounds, 0);
  Job j;
  restore(e, j, a, moved);
  j.inTurn = true;
  for (int r = 0; r < rounds; ++r) j.add(jump, c, r % 2 ? b.p : a.p, r % 2 ? a.p : b.p, moved.p + r, n);
  j.check = [=] {
    std::vector<double> want(n), steps(rounds);
    for (int k = 0; k < n; ++k) want[order[k]] = double((int64_t(n - 1 - k) << 32) | 0xffffffffll);
    for (int r = 0; r < rounds; ++r) steps[r] = std::max(0, n - (1 << r));
    auto x = agree((rounds % 2 ? b : a).now(), want, .5, 0);
    return x.empty() ? agree(moved.now(), steps, .5, 0) : x;
  };
  return j;
});

// --- Deriche's recursive Gaussian along columns: forwards into memory, backwards added, then RGBA bytes
struct ColumnCfg {
  int B = 64, warps = 2;
};
auto recursive =
    kernel("user_recursive_gauss", [](const ColumnCfg& c, Ptr<const uint32_t> in, Ptr<uint32_t> out, F32 a0, F32 a1,
                                      F32 a2, F32 a3, F32 b1, F32 b2, F32 coefp, F32 coefn, I32 H, I32 W) {
      num_warps(c.warps);
      auto x = program_id(0) * c.B + arange(0, c.B);
      auto inside = x < W;
      auto channel = [&](const Tile& w, int k) { return cast((w >> (8 * k)) & 255, f32) / 255.f; };
      auto pack = [&](const std::array<Tile, 4>& v) {
        Tile w = zeros({c.B}, u32);
        for (int k = 0; k < 4; ++k) w = w | (cast(clamp(v[k], 0.f, 1.f) * 255.f, u32) << (8 * k));
        return w;
      };
      std::array<Tile, 4> xp, yp, yb;
      auto top = load(in + x, {.mask = inside});
      for (int k = 0; k < 4; ++k) xp[k] = channel(top, k), yb[k] = coefp * xp[k], yp[k] = yb[k];
      for (auto y : range(H)) {
        auto w = load(in + (y * W + x), {.mask = inside});
        std::array<Tile, 4> yc;
        for (int k = 0; k < 4; ++k) {
          auto xc = channel(w, k);
          yc[k] = a0 * xc + a1 * xp[k] - b1 * yp[k] - b2 * yb[k];
          xp[k] = xc, yb[k] = yp[k], yp[k] = yc[k];
        }
        store(out + (y * W + x), pack(yc), {.mask = inside});
      }
      std::array<Tile, 4> xn, xa, yn, ya;
      auto bottom = load(in + ((H - 1) * W + x), {.mask = inside});
      for (int k = 0; k < 4; ++k) xn[k] = channel(bottom, k), xa[k] = xn[k], yn[k] = coefn * xn[k], ya[k] = yn[k];
      for (auto y : range(H - 1, -1, -1)) {
        auto w = load(in + (y * W + x), {.mask = inside});
        auto before = load(out + (y * W + x), {.mask = inside});
        std::array<Tile, 4> sum;
        for (int k = 0; k < 4; ++k) {
          auto xc = channel(w, k);
          auto yc = a2 * xn[k] + a3 * xa[k] - b1 * yn[k] - b2 * ya[k];
          xa[k] = xn[k], xn[k] = xc, ya[k] = yn[k], yn[k] = yc;
          sum[k] = channel(before, k) + yc;
        }
        store(out + (y * W + x), pack(sum), {.mask = inside});
      }
    }).grid([](const ColumnCfg& c, auto, auto, float, float, float, float, float, float, float, float, int, int W) {
      return Grid{cdiv(W, c.B)};
    });
Register r6("recursive_gauss", [](Env& e) {
  ColumnCfg c{e.field("B", e.big ? 64 : 16), e.field("warps", e.big ? 2 : 1)};
  const int H = e.big ? 2160 : 23, W = e.big ? 3840 : 37;
  auto in = filled<uint32_t>(
      e, size_t(H) * W, [&](size_t) { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  auto out = constant<uint32_t>(e, size_t(H) * W, 0);
  const double sigma = 3, alpha = 1.695 / sigma, ema = std::exp(-alpha), ema2 = std::exp(-2 * alpha);
  const double k = (1 - ema) * (1 - ema) / (1 + 2 * alpha * ema - ema2);
  const float a0 = k, a1 = k * (alpha - 1) * ema, a2 = k * (alpha + 1) * ema, a3 = -k * ema2, b1 = -2 * ema, b2 = ema2;
  const float coefp = (a0 + a1) / (1 + b1 + b2), coefn = (a2 + a3) / (1 + b1 + b2);
  Job j;
  j.mbytes = 16e-6 * H * W;
  j.add(recursive, c, in.p, out.p, a0, a1, a2, a3, b1, b2, coefp, coefn, H, W);
  j.check = [=] {
    auto got = out.now();
    double worst = 0;
    for (int x = 0; x < W; ++x)
      for (int ch = 0; ch < 4; ++ch) {
        auto at = [&](int y) { return (in.h[size_t(y) * W + x] >> (8 * ch) & 255) / 255.; };
        std::vector<double> f(H);
        double xp = at(0), yb = coefp * xp, yp = yb;
        for (int y = 0; y < H; ++y) {
          double v = a0 * at(y) + a1 * xp - b1 * yp - b2 * yb;
          xp = at(y), yb = yp, yp = v, f[y] = v;
        }
        double xn = at(H - 1), xa = xn, yn = coefn * xn, ya = yn;
        for (int y = H - 1; y >= 0; --y) {
          double v = a2 * xn + a3 * xa - b1 * yn - b2 * ya;
          xa = xn, xn = at(y), ya = yn, yn = v;
          worst = std::max(worst, std::abs((got[size_t(y) * W + x] >> (8 * ch) & 255) - (f[y] + v) * 255));
        }
      }
    return worst < 2.1 ? "" : "off by " + std::to_string(worst);
  };
  return j;
});

// --- lavaMD: particles in boxes, each box against its (up to 27) neighbours, float64
struct BoxCfg {
  int P = 100, B = 128, warps = 4;
};
auto lava =
    kernel("user_lavamd", [](const BoxCfg& c, Tensor<const double, 3> place, Tensor<const double, 2> charge,
                             Ptr<const int32_t> lists, Ptr<const int32_t> counts, Tensor<double, 3> force, F64 alpha) {
      // place, force [boxes, P, 4]: v, x, y, z; lists [boxes, 27]
      num_warps(c.warps);
      auto box = program_id(0);
      auto i = arange(0, c.B);
      auto column = [&](auto b, int k) { return squeeze(squeeze(place.load({b, 0, k}, {1, c.B, 1}), 2), 0); };
      auto av = column(box, 0), ax = column(box, 1), ay = column(box, 2), az = column(box, 3);
      std::array<Tile, 4> f;
      for (auto& t : f) t = zeros({c.B}, f64);
      auto a2 = 2. * alpha * alpha;
      for (auto n : range(load(counts + box))) {
        auto other = load(lists + box * 27 + n);
        auto b = place.ptr() + cast(other, i64) * (c.P * 4);
        auto q = charge.ptr() + cast(other, i64) * c.P;
        for (auto k : range(c.P)) {
          auto bv = load(b + k * 4), bx = load(b + k * 4 + 1), by = load(b + k * 4 + 2), bz = load(b + k * 4 + 3);
          auto r2 = av + bv - (ax * bx + ay * by + az * bz);
          auto v = exp(-(a2 * r2)), fs = 2. * v, qb = load(q + k);
          f[0] += qb * v;
          f[1] += qb * fs * (ax - bx), f[2] += qb * fs * (ay - by), f[3] += qb * fs * (az - bz);
        }
      }
      for (int k = 0; k < 4; ++k) force.store({box, 0, k}, expand_dims(f[k].col(), 0));
    }).grid([](const BoxCfg&, const auto& place, const auto&...) { return Grid{place.shape[0]}; });
Register r7("lavamd", [](Env& e) {
  BoxCfg c;
  if (!e.big) c = {7, 8, 1};
  c.warps = e.field("warps", c.warps);
  const int D = e.big ? 10 : 2, boxes = D * D * D, P = c.P;
  std::vector<int32_t> l(boxes * 27), m(boxes);
  for (int b = 0; b < boxes; ++b)
    for (int z = -1; z < 2; ++z)
      for (int y = -1; y < 2; ++y)
        for (int x = -1; x < 2; ++x) {
          int X = b % D + x, Y = b / D % D + y, Z = b / D / D + z;
          if (X >= 0 && Y >= 0 && Z >= 0 && X < D && Y < D && Z < D) l[b * 27 + m[b]++] = (Z * D + Y) * D + X;
        }
  auto lists = repeated<int32_t>(e, l.size(), l), counts = repeated<int32_t>(e, m.size(), m);
  auto place = random<double>(e, size_t(boxes) * P * 4, .1, 1), charge = random<double>(e, size_t(boxes) * P, .1, 1);
  auto force = constant<double>(e, size_t(boxes) * P * 4, NAN);
  Job j;
  j.gflop = 1e-9 * boxes * 27 * P * P * 40;
  j.add(lava, c, place.view(boxes, P, 4), charge.view(boxes, P), lists.p, counts.p, force.view(boxes, P, 4), .5);
  j.check = [=] {
    std::vector<double> want(size_t(boxes) * P * 4);
    for (int b = 0; b < boxes; ++b)
      for (int n = 0; n < m[b]; ++n)
        for (int i = 0; i < P; ++i)
          for (int k = 0; k < P; ++k) {
            const int o = l[b * 27 + n];
            auto A = [&](int d) { return place[(size_t(b) * P + i) * 4 + d]; };
            auto B = [&](int d) { return place[(size_t(o) * P + k) * 4 + d]; };
            const double r2 = A(0) + B(0) - (A(1) * B(1) + A(2) * B(2) + A(3) * B(3));
            const double v = std::exp(-.5 * r2) * charge[size_t(o) * P + k];
            want[(size_t(b) * P + i) * 4] += v;
            for (int d = 1; d < 4; ++d) want[(size_t(b) * P + i) * 4 + d] += 2 * v * (A(d) - B(d));
          }
    return agree(force.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- SRAD: statistics of a picture, then its speckles smoothed: coefficients, and what they let through
struct PictureCfg {
  int BY = 8, BX = 64, warps = 4;
};
auto statistics =
    kernel("user_srad_sums", [](const KeyCfg& c, Ptr<const float> image, Ptr<double> sums, I32 n) {
      num_warps(c.warps);
      Tile s = zeros({c.B}, f64), q = zeros({c.B}, f64);
      for (auto i0 : range(program_id(0) * c.B, n, num_programs(0) * c.B)) {
        auto i = i0 + arange(0, c.B);
        auto x = cast(load(image + i, {.mask = i < n}), f64);
        s += x, q += x * x;
      }
      auto [a, b] = reduce({s, q}, axis(0), [](Tile a, Tile b, Tile x, Tile y) { return std::tuple(a + x, b + y); });
      atomic_add(sums, to_scalar(a));
      atomic_add(sums + 1, to_scalar(b));
    }).grid([](const KeyCfg& c, auto, auto, int n) { return Grid{std::min<int64_t>(cdiv(n, c.B), 264)}; });
auto coefficients =
    kernel("user_srad1", [](const PictureCfg& c, Ptr<const float> J, Ptr<const double> sums, Ptr<float> dN,
                            Ptr<float> dS, Ptr<float> dW, Ptr<float> dE, Ptr<float> C, I32 H, I32 W) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY + arange(0, c.BY), x = program_id(0) * c.BX + arange(0, c.BX);
      auto in = (y < H).col() & (x < W).row();
      auto at = [&](const Tile& y, const Tile& x) {
        return load(J + (y.col() * W + x.row()), {.mask = in, .other = 1});
      };
      auto n = cast(H, f64) * cast(W, f64);
      auto mean = load(sums) / n, var = load(sums + 1) / n - mean * mean;
      auto q0 = cast(var / (mean * mean), f32);
      auto j = at(y, x);
      auto north = at(max(y - 1, 0), x) - j, south = at(min(y + 1, H - 1), x) - j, west = at(y, max(x - 1, 0)) - j,
           east = at(y, min(x + 1, W - 1)) - j;
      auto g2 = (north * north + south * south + west * west + east * east) / (j * j);
      auto l = (north + south + west + east) / j;
      auto num = .5f * g2 - (1.f / 16.f) * (l * l), den = 1.f + .25f * l;
      auto q = num / (den * den);
      auto d = (q - q0) / (q0 * (1.f + q0));
      auto p = y.col() * W + x.row();
      store(dN + p, north, {.mask = in}), store(dS + p, south, {.mask = in}), store(dW + p, west, {.mask = in});
      store(dE + p, east, {.mask = in}), store(C + p, clamp(1.f / (1.f + d), 0.f, 1.f), {.mask = in});
    }).grid([](const PictureCfg& c, auto, auto, auto, auto, auto, auto, auto, int H, int W) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
auto smoothed =
    kernel("user_srad2", [](const PictureCfg& c, Ptr<float> J, Ptr<const float> dN, Ptr<const float> dS,
                            Ptr<const float> dW, Ptr<const float> dE, Ptr<const float> C, F32 lambda, I32 H, I32 W) {
      num_warps(c.warps);
      auto y = program_id(1) * c.BY + arange(0, c.BY), x = program_id(0) * c.BX + arange(0, c.BX);
      auto in = (y < H).col() & (x < W).row();
      auto at = [&](Ptr<const float> a, const Tile& y, const Tile& x) {
        return load(a + (y.col() * W + x.row()), {.mask = in});
      };
      auto here = at(C, y, x), south = at(C, min(y + 1, H - 1), x), east = at(C, y, min(x + 1, W - 1));
      auto D = here * at(dN, y, x) + south * at(dS, y, x) + here * at(dW, y, x) + east * at(dE, y, x);
      auto p = J + (y.col() * W + x.row());
      store(p, load(p, {.mask = in}) + .25f * lambda * D, {.mask = in});
    }).grid([](const PictureCfg& c, auto, auto, auto, auto, auto, auto, float, int H, int W) {
      return Grid{cdiv(W, c.BX), cdiv(H, c.BY)};
    });
Register r8("srad", [](Env& e) {
  PictureCfg c;
  if (!e.big) c = {4, 16, 1};
  c.BY = e.field("BY", c.BY), c.BX = e.field("BX", c.BX), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 4096 : 13, W = e.big ? 4096 : 37, n = H * W;
  auto J = random<float>(e, n, .5, 1.5);
  auto arr = [&] { return constant<float>(e, n, NAN); };
  auto dN = arr(), dS = arr(), dW = arr(), dE = arr(), C = arr();
  auto sums = constant<double>(e, 2, 0);
  Job j;
  j.inTurn = true;
  j.mbytes = 4e-6 * n * 14;
  j.add(statistics, KeyCfg{e.big ? 1024 : 64, e.big ? 4 : 1}, J.p, sums.p, n);
  j.add(coefficients, c, J.p, sums.p, dN.p, dS.p, dW.p, dE.p, C.p, H, W);
  j.add(smoothed, c, J.p, dN.p, dS.p, dW.p, dE.p, C.p, .5f, H, W);
  j.check = [=] {
    double s = 0, q = 0;
    for (int i = 0; i < n; ++i) s += J[i], q += J[i] * J[i];
    const double mean = s / n, q0 = (q / n - mean * mean) / (mean * mean);
    std::vector<double> cc(n), want(n);
    auto d = [&](int y, int x, int Y, int X) {
      return J[std::clamp(Y, 0, H - 1) * W + std::clamp(X, 0, W - 1)] - J[y * W + x];
    };
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const double j = J[y * W + x], N = d(y, x, y - 1, x), S = d(y, x, y + 1, x), E = d(y, x, y, x + 1),
                     Ww = d(y, x, y, x - 1);
        const double g2 = (N * N + S * S + E * E + Ww * Ww) / (j * j), l = (N + S + E + Ww) / j;
        const double den = 1 + .25 * l, qq = (.5 * g2 - l * l / 16) / (den * den);
        cc[y * W + x] = std::clamp(1 / (1 + (qq - q0) / (q0 * (1 + q0))), 0., 1.);
      }
    for (int y = 0; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        const double h = cc[y * W + x], so = cc[std::min(y + 1, H - 1) * W + x],
                     ea = cc[y * W + std::min(x + 1, W - 1)];
        want[y * W + x] = J[y * W + x] + .125 * (h * d(y, x, y - 1, x) + so * d(y, x, y + 1, x) +
                                                 h * d(y, x, y, x - 1) + ea * d(y, x, y, x + 1));
      }
    return agree(J.now(), want, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace suite_programs
}  // namespace users
