// key_exchange.cpp - Diffie-Hellman on curve 25519 (RFC 7748), as batched handshakes of servers compute it: numbers of
// 255 bits in ten limbs of 25 and 26 bits, a Montgomery ladder without branches.
#include "tests/users/use.h"
namespace users {
namespace key_exchange {

using Field = std::array<Tile, 10>;
struct CurveCfg {
  int B = 64, warps = 2;
};

/// Limbs back to 26 and 25 bits, rounded to nearest; what leaves the last one comes back times 19.
Field carried(std::array<Tile, 10> h) {
  auto carry = [&](int i) {
    const int bits = 26 - i % 2;
    auto c = (h[i] + (int64_t(1) << (bits - 1))) >> bits;
    h[i] = h[i] - (c << bits);
    if (i < 9)
      h[i + 1] = h[i + 1] + c;
    else
      h[0] = h[0] + c * 19;
  };
  for (int i : {0, 4, 1, 5, 2, 6, 3, 7, 4, 8, 9, 0}) carry(i);
  Field f;
  for (int i = 0; i < 10; ++i) f[i] = cast(h[i], i32);
  return f;
}
Field operator*(const Field& f, const Field& g) {
  std::array<Tile, 10> h;
  for (int k = 0; k < 10; ++k)
    for (int i = 0; i < 10; ++i) {
      const int j = (k - i + 10) % 10;
      const int factor = (i % 2 && j % 2 ? 2 : 1);
      auto left = f[i] * factor;
      auto right = i + j >= 10 ? g[j] * 19 : Tile(g[j]);
      auto term = cast(left, i64) * cast(right, i64);
      h[k] = i == 0 ? term : h[k] + term;
    }
  return carried(h);
}
Field operator+(const Field& f, const Field& g) {
  Field h;
  for (int i = 0; i < 10; ++i) h[i] = f[i] + g[i];
  return h;
}
Field operator-(const Field& f, const Field& g) {
  Field h;
  for (int i = 0; i < 10; ++i) h[i] = f[i] - g[i];
  return h;
}
Field times(const Field& f, int factor) {
  std::array<Tile, 10> h;
  for (int i = 0; i < 10; ++i) h[i] = cast(f[i], i64) * int64_t(factor);
  return carried(h);
}
Field squared(Field f, int often) {
  if (often == 1) return f * f;
  for ([[maybe_unused]] auto i : range(often)) f = f * f;
  return f;
}
/// f to the power of p - 2 = 2^255 - 21.
Field inverse(const Field& f) {
  auto f2 = squared(f, 1), f9 = squared(f2, 2) * f, f11 = f9 * f2;
  auto a5 = squared(f11, 1) * f9;  // 2^5 - 1
  auto a10 = squared(a5, 5) * a5, a20 = squared(a10, 10) * a10, a40 = squared(a20, 20) * a20;
  auto a50 = squared(a40, 10) * a10, a100 = squared(a50, 50) * a50, a200 = squared(a100, 100) * a100;
  return squared(squared(a200, 50) * a50, 5) * f11;
}
void swap_if(const Tile& yes, Field& a, Field& b) {
  for (int i = 0; i < 10; ++i) {
    auto x = where(yes, b[i], a[i]);
    b[i] = where(yes, a[i], b[i]);
    a[i] = x;
  }
}
/// Eight words to limbs: the lowest bit of each.
constexpr int kFirstBit[] = {0, 26, 51, 77, 102, 128, 153, 179, 204, 230, 255};
Field from_words(const std::array<Tile, 8>& w) {
  Field f;
  for (int i = 0; i < 10; ++i) {
    const int bit = kFirstBit[i], size = kFirstBit[i + 1] - bit, at = bit / 32, shift = bit % 32;
    auto x = w[at] >> shift;
    if (shift + size > 32) x = x | (w[at + 1] << (32 - shift));
    f[i] = bitcast(x & ((1u << size) - 1), i32);
  }
  return f;
}
/// The one representative in 0 .. p - 1.
std::array<Tile, 8> to_words(Field h) {
  Tile q = (h[9] * 19 + (1 << 24)) >> 25;
  for (int i = 0; i < 10; ++i) q = (h[i] + q) >> (26 - i % 2);
  h[0] = h[0] + q * 19;
  std::array<Tile, 8> w;
  Tile c;
  for (int i = 0; i < 10; ++i) {
    const int bits = 26 - i % 2, bit = kFirstBit[i], at = bit / 32, shift = bit % 32;
    if (i > 0) h[i] = h[i] + c;
    c = h[i] >> bits;
    auto x = bitcast(h[i] - (c << bits), u32);
    w[at] = shift == 0 ? x : w[at] | (x << shift);
    if (shift + bits > 32) w[at + 1] = x >> (32 - shift);
  }
  return w;
}

// A handshake an element: secret [n, 8], place [n, 8], shared [n, 8], words of 32 bits, the low ones first.
auto key_exchange =
    kernel("user_key_exchange", [](const CurveCfg& c, Ptr<const uint32_t> secret, Ptr<const uint32_t> place,
                                   Ptr<uint32_t> shared, I32 n) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n;
      std::array<Tile, 8> u;
      for (int w = 0; w < 8; ++w) u[w] = load(place + i * 8 + w, {.mask = in});
      u[7] = u[7] & 0x7fffffffu;
      auto x1 = from_words(u);
      Field x2, z2, z3, x3 = x1;
      for (int k = 0; k < 10; ++k)
        x2[k] = full({c.B}, int(k == 0), i32), z2[k] = zeros({c.B}, i32), z3[k] = full({c.B}, int(k == 0), i32);
      Tile swap = zeros({c.B}, i1);
      for (auto t : range(254, -1, -1)) {
        auto word = load(secret + i * 8 + t / 32, {.mask = in});
        word = where(t / 32 == 0, word & ~7u, where(t / 32 == 7, (word & 0x7fffffffu) | 0x40000000u, word));
        auto bit = ((word >> (t % 32)) & 1u) != 0u;
        swap_if(swap ^ bit, x2, x3), swap_if(swap ^ bit, z2, z3);
        swap = bit;
        auto a = x2 + z2, b = x2 - z2, aa = a * a, bb = b * b, e = aa - bb;
        auto da = (x3 - z3) * a, cb = (x3 + z3) * b;
        x3 = squared(da + cb, 1);
        z3 = x1 * squared(da - cb, 1);
        x2 = aa * bb;
        z2 = e * (aa + times(e, 121665));
      }
      swap_if(swap, x2, x3), swap_if(swap, z2, z3);
      auto out = to_words(x2 * inverse(z2));
      for (int w = 0; w < 8; ++w) store(shared + i * 8 + w, out[w], {.mask = in});
    }).grid([](const CurveCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });

// In plain numbers of five limbs of 51 bits, with products of 128 bits and the textbook's binary powers.
using Wide = unsigned __int128;
struct Plain {
  std::array<uint64_t, 5> v{};
};
constexpr uint64_t kLow = (uint64_t(1) << 51) - 1;
Plain reduced(std::array<Wide, 5> h) {
  Plain r;
  for (int turn = 0; turn < 3; ++turn) {
    Wide c = 0;
    for (auto& x : h) x += c, c = x >> 51, x &= kLow;
    h[0] += c * 19;
  }
  for (int i = 0; i < 5; ++i) r.v[i] = uint64_t(h[i]);
  return r;
}
Plain multiply(const Plain& a, const Plain& b) {
  std::array<Wide, 5> h{};
  for (int i = 0; i < 5; ++i)
    for (int k = 0; k < 5; ++k) h[(i + k) % 5] += Wide(a.v[i]) * b.v[k] * (i + k >= 5 ? 19 : 1);
  return reduced(h);
}
Plain add(const Plain& a, const Plain& b) {
  std::array<Wide, 5> h;
  for (int i = 0; i < 5; ++i) h[i] = Wide(a.v[i]) + b.v[i];
  return reduced(h);
}
Plain subtract(const Plain& a, const Plain& b) {
  std::array<Wide, 5> h;  // 4 p has limbs that no limb of b is above
  for (int i = 0; i < 5; ++i) h[i] = Wide(a.v[i]) + 4 * (kLow - (i == 0 ? 18 : 0)) - b.v[i];
  return reduced(h);
}
Plain from_bytes(const uint32_t* w) {
  Plain r;
  for (int bit = 0; bit < 255; ++bit) r.v[bit / 51] |= uint64_t(w[bit / 32] >> bit % 32 & 1) << bit % 51;
  return r;
}
std::array<uint32_t, 8> reference_exchange(const uint32_t* secret, const uint32_t* place) {
  std::array<uint32_t, 8> k;
  std::copy_n(secret, 8, k.begin());
  k[0] &= ~7u, k[7] = (k[7] & 0x7fffffffu) | 0x40000000u;
  const Plain x1 = from_bytes(place);
  Plain x2{{1}}, z2, x3 = x1, z3{{1}};
  for (int t = 254; t >= 0; --t) {
    const bool bit = k[t / 32] >> t % 32 & 1;
    if (bit) std::swap(x2, x3), std::swap(z2, z3);
    const Plain a = add(x2, z2), b = subtract(x2, z2), aa = multiply(a, a), bb = multiply(b, b), e = subtract(aa, bb);
    const Plain da = multiply(subtract(x3, z3), a), cb = multiply(add(x3, z3), b), s = add(da, cb),
                d = subtract(da, cb);
    x3 = multiply(s, s), z3 = multiply(x1, multiply(d, d));
    x2 = multiply(aa, bb), z2 = multiply(e, add(aa, multiply(Plain{{121665}}, e)));
    if (bit) std::swap(x2, x3), std::swap(z2, z3);
  }
  Plain power{{1}};  // z2 to 2^255 - 21, whose bits are ones but for 4 and 2
  for (int bit = 254; bit >= 0; --bit) {
    power = multiply(power, power);
    if (bit != 4 && bit != 2) power = multiply(power, z2);
  }
  Plain r = multiply(x2, power);
  for (int turn = 0; turn < 2; ++turn)  // p and more become what is left of them
    if (r.v[0] >= kLow - 18 && std::all_of(r.v.begin() + 1, r.v.end(), [](uint64_t x) { return x == kLow; }))
      r = Plain{{r.v[0] - (kLow - 18)}};
  std::array<uint32_t, 8> out{};
  for (int bit = 0; bit < 255; ++bit) out[bit / 32] |= uint32_t(r.v[bit / 51] >> bit % 51 & 1) << bit % 32;
  return out;
}

Register r1("key_exchange", [](Env& e) {
  CurveCfg c;
  if (!e.big) c = {8, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 16 : 11;
  auto words = [&] {
    return drawn<uint32_t>(e, size_t(n) * 8,
                           [&] { return uint32_t(e.uniform() * 65536) << 16 | uint32_t(e.uniform() * 65536); });
  };
  auto secret = words(), place = words();
  if (e.device && !e.big) {
    // RFC 7748, 5.2: both calls of the first test; then places 0, 1, p - 1, p, 2^255 - 1
    auto put = [](Array<uint32_t>& a, int row, std::array<uint32_t, 8> w) {
      std::copy(w.begin(), w.end(), a.h.begin() + row * 8);
    };
    put(secret, 0, {0x6be346a5, 0x9d7c52f0, 0x4b15163b, 0xdd5e4682, 0x0a4c1462, 0x185afcc1, 0x44226a50, 0xc49a44ba});
    put(place, 0, {0x6768dbe6, 0xdb303058, 0xa4c19435, 0x7c5fb124, 0xec246672, 0x3b35b326, 0xa603a910, 0x4c1cabd0});
    put(place, 1, {}), put(place, 2, {1});
    put(place, 3, {0xffffffec, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x7fffffff});
    put(place, 4, {0xffffffed, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x7fffffff});
    put(place, 5, {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u});
    secret = repeated(e, secret.n, secret.h), place = repeated(e, place.n, place.h);
  }
  auto shared = repeated<uint32_t>(e, size_t(n) * 8, std::vector<uint32_t>(e.big ? 8 : n * 8, 0x55555555));
  Job j;
  j.gflop = 1e-9 * 2 * 100 * (255 * 10 + 265) * double(n);
  j.add(key_exchange, c, secret.p, place.p, shared.p, n);
  j.check = [=]() -> std::string {
    const auto got = shared.now();
    for (int i = 0; i < n; ++i) {
      const auto want = reference_exchange(&secret.h[i * 8], &place.h[i * 8]);
      if (!std::equal(want.begin(), want.end(), got.begin() + i * 8)) return "handshake " + std::to_string(i);
    }
    const std::array<uint32_t, 8> known{0x3755dac3, 0x90c6e99d, 0x4dea948e, 0x4f088df2,  // the RFC's result
                                        0x03cfec32, 0xf7711c49, 0x5507b454, 0x5285a277};
    return std::equal(known.begin(), known.end(), got.begin()) ? "" : "the known answer";
  };
  return j;
});

}  // namespace key_exchange
}  // namespace users
