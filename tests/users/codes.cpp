// codes.cpp - integers of all widths: Keccak, AES in counter mode, products modulo a prime of 256 bits, Reed-Solomon
// parity of shards, LDPC codes by min-sum.
#include "tests/users/use.h"
namespace users {
namespace codes {

// --- SHA3-256 of many messages of one block: 25 words of 64 bits a lane, 24 rounds
struct KeccakCfg {
  int B = 128, warps = 4;
};
constexpr uint64_t kRounds[24] = {0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000,
                                  0x000000000000808B, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
                                  0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
                                  0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003,
                                  0x8000000000008002, 0x8000000000000080, 0x000000000000800A, 0x800000008000000A,
                                  0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};
template <class T, class Rotate>
void keccak_round(std::array<T, 25>& a, const T& constant, Rotate rotate) {
  std::array<T, 5> c, d;
  for (int x = 0; x < 5; ++x) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
  for (int x = 0; x < 5; ++x) d[x] = c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1);
  for (int i = 0; i < 25; ++i) a[i] = a[i] ^ d[i % 5];
  T last = a[1];
  for (int t = 0, x = 1, y = 0; t < 24; ++t) {
    const int turn = (t + 1) * (t + 2) / 2 % 64, to = (2 * x + 3 * y) % 5;
    x = y, y = to;
    const T kept = a[x + 5 * y];
    a[x + 5 * y] = rotate(last, turn);
    last = kept;
  }
  for (int y = 0; y < 25; y += 5) {
    std::array<T, 5> row;
    for (int x = 0; x < 5; ++x) row[x] = a[y + x];
    for (int x = 0; x < 5; ++x) a[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
  }
  a[0] = a[0] ^ constant;
}
auto sha3 = kernel("user_sha3", [](const KeccakCfg& c, Tensor<const uint64_t, 2> messages,
                                   Ptr<const uint64_t> constants, Tensor<uint64_t, 2> digests) {
              // messages [n, 17] (padded), digests [n, 4]
              num_warps(c.warps);
              auto m = program_id(0) * c.B;
              std::array<Tile, 25> a;
              for (int i = 0; i < 25; ++i) a[i] = i < 17 ? ravel(messages.load({m, i}, {c.B, 1})) : zeros({c.B}, u64);
              for (auto r : range(24)) {
                keccak_round<Tile>(a, load(constants + r), [](const Tile& x, int by) { return rotl(x, by); });
              }
              for (int i = 0; i < 4; ++i) digests.store({m, i}, a[i].col());
            }).grid([](const KeccakCfg& c, const auto& m, auto, const auto&) { return Grid{cdiv(m.shape[0], c.B)}; });
Register r1("sha3", [](Env& e) {
  KeccakCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 70;
  auto m = drawn<uint64_t>(e, size_t(n) * 17,
                           [&] { return uint64_t(e.uniform() * 0x1p24) << 40 ^ uint64_t(e.uniform() * 0x1p48); });
  auto constants = filled<uint64_t>(e, 24, [](size_t i) { return kRounds[i]; });
  auto digests = constant<uint64_t>(e, size_t(n) * 4, 0);
  Job j;
  j.mbytes = 168e-6 * n;
  j.add(sha3, c, m.view(n, 17), constants.p, digests.view(n, 4));
  j.check = [=]() -> std::string {
    const auto got = digests.now();
    for (int i = 0; i < n; ++i) {
      std::array<uint64_t, 25> a{};
      for (int k = 0; k < 17; ++k) a[k] = m.at(size_t(i) * 17 + k);
      for (uint64_t round : kRounds)
        keccak_round<uint64_t>(a, round, [](uint64_t x, int by) { return by ? x << by | x >> (64 - by) : x; });
      for (int k = 0; k < 4; ++k)
        if (got[size_t(i) * 4 + k] != a[k]) return "message " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- AES-128, counter mode: tables of 256 words, four look-ups a column and round
struct AesCfg {
  int B = 256, warps = 4;
};
auto aes =
    kernel("user_aes", [](const AesCfg& c, Tensor<const uint32_t, 2> data, Ptr<const uint32_t> table,
                          Ptr<const uint32_t> sbox, Ptr<const uint32_t> keys, Tensor<uint32_t, 2> out, U32 nonce) {
      // data, out [blocks, 4]; table [256] (others are its rotations), keys [44]
      num_warps(c.warps);
      auto m = program_id(0) * c.B;
      Tile number = cast(m + arange(0, c.B), u32);
      std::array<Tile, 4> s;
      for (int i = 0; i < 4; ++i) s[i] = (i == 3 ? number : zeros({c.B}, u32) + nonce + uint32_t(i)) ^ load(keys + i);
      auto byte = [](const Tile& x, int i) { return cast(x >> (8 * (3 - i)) & 255u, i32); };
      for (auto r : range(1, 10)) {
        std::array<Tile, 4> t;
        for (int i = 0; i < 4; ++i)
          t[i] = load(table + byte(s[i], 0)) ^ rotr(load(table + byte(s[(i + 1) % 4], 1)), 8) ^
                 rotr(load(table + byte(s[(i + 2) % 4], 2)), 16) ^ rotr(load(table + byte(s[(i + 3) % 4], 3)), 24) ^
                 load(keys + (r * 4 + i));
        s = t;
      }
      for (int i = 0; i < 4; ++i) {
        Tile last = load(keys + (40 + i));
        for (int b = 0; b < 4; ++b) last = last ^ load(sbox + byte(s[(i + b) % 4], b)) << (8 * (3 - b));
        out.store({m, i}, (ravel(data.load({m, i}, {c.B, 1})) ^ last).col());
      }
    }).grid([](const AesCfg& c, const auto& data, auto, auto, auto, const auto&, uint32_t) {
      return Grid{cdiv(data.shape[0], c.B)};
    });
uint8_t times2(uint8_t x) { return uint8_t(x << 1 ^ (x & 128 ? 0x1B : 0)); }
std::array<uint8_t, 256> aes_sbox() {
  std::array<uint8_t, 256> s{};
  uint8_t p = 1, q = 1;
  do {
    p = uint8_t(p ^ times2(p));
    q = uint8_t(q ^ q << 1), q = uint8_t(q ^ q << 2), q = uint8_t(q ^ q << 4);
    if (q & 128) q ^= 9;
    auto turn = [&](int by) { return uint8_t(q << by | q >> (8 - by)); };
    s[p] = uint8_t(q ^ turn(1) ^ turn(2) ^ turn(3) ^ turn(4) ^ 0x63);
  } while (p != 1);
  s[0] = 0x63;
  return s;
}
Register r2("aes", [](Env& e) {
  AesCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 22 : 77;
  const auto box = aes_sbox();
  auto data = integers<uint32_t>(e, size_t(n) * 4, 0, int64_t(1) << 32);
  auto keys = integers<uint32_t>(e, 44, 0, int64_t(1) << 32);
  auto sbox = filled<uint32_t>(e, 256, [&](size_t i) { return box[i]; });
  auto table = filled<uint32_t>(e, 256, [&](size_t i) {
    const uint8_t s = box[i], d = times2(s);
    return uint32_t(d) << 24 | uint32_t(s) << 16 | uint32_t(s) << 8 | uint32_t(uint8_t(s ^ d));
  });
  auto out = constant<uint32_t>(e, data.n, 0);
  Job j;
  j.mbytes = 32e-6 * n;
  j.add(aes, c, data.view(n, 4), table.p, sbox.p, keys.p, out.view(n, 4), 7u);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int i = 0; i < n; ++i) {
      uint8_t s[16], t[16];
      auto add = [&](int round) {
        for (int k = 0; k < 16; ++k) s[k] ^= uint8_t(keys.at(round * 4 + k / 4) >> (8 * (3 - k % 4)));
      };
      for (int k = 0; k < 16; ++k) s[k] = uint8_t((k < 12 ? 7u + k / 4 : uint32_t(i)) >> (8 * (3 - k % 4)));
      add(0);
      for (int r = 1; r <= 10; ++r) {
        for (int k = 0; k < 16; ++k) t[k] = box[s[(k + k % 4 * 4) % 16]];
        for (int k = 0; k < 16; ++k) {
          const uint8_t* col = t + k / 4 * 4;
          s[k] = r == 10 ? t[k]
                         : uint8_t(times2(col[k % 4]) ^ times2(col[(k + 1) % 4]) ^ col[(k + 1) % 4] ^ col[(k + 2) % 4] ^
                                   col[(k + 3) % 4]);
        }
        add(r);
      }
      for (int w = 0; w < 4; ++w) {
        const uint32_t x =
            uint32_t(s[4 * w]) << 24 | uint32_t(s[4 * w + 1]) << 16 | uint32_t(s[4 * w + 2]) << 8 | s[4 * w + 3];
        if (got[size_t(i) * 4 + w] != (data.at(size_t(i) * 4 + w) ^ x)) return "block " + std::to_string(i);
      }
    }
    return "";
  };
  return j;
});

// --- numbers of 256 bits modulo 2^255 - 19: x^(2^steps) by squarings, eight limbs a lane
struct ModularCfg {
  int B = 64, warps = 2;
};
auto modular =
    kernel("user_modular_square", [](const ModularCfg& c, Tensor<const uint32_t, 2> X, Tensor<uint32_t, 2> Y,
                                     I32 steps) {
      // X, Y [8, n], lowest limbs first
      num_warps(c.warps);
      auto n = program_id(0) * c.B;
      std::array<Tile, 8> x;
      for (int i = 0; i < 8; ++i) x[i] = ravel(X.load({i, n}, {1, c.B}));
      for (auto s : range(steps)) {
        std::array<Tile, 16> p;
        for (int i = 0; i < 16; ++i) p[i] = zeros({c.B}, u32);
        for (int i = 0; i < 8; ++i) {
          Tile carry = zeros({c.B}, u64);
          for (int k = 0; k < 8; ++k) {
            auto sum = cast(x[i], u64) * cast(x[k], u64) + cast(p[i + k], u64) + carry;
            p[i + k] = cast(sum, u32), carry = sum >> 32;
          }
          p[i + 8] = cast(carry, u32);
        }
        Tile carry = zeros({c.B}, u64);  // 2^256 is 38
        for (int i = 0; i < 8; ++i) {
          auto sum = cast(p[i + 8], u64) * 38u + cast(p[i], u64) + carry;
          x[i] = cast(sum, u32), carry = sum >> 32;
        }
        carry = carry * 38u;
        for (int i = 0; i < 8; ++i) {
          auto sum = cast(x[i], u64) + carry;
          x[i] = cast(sum, u32), carry = sum >> 32;
        }
        x[0] = x[0] + cast(carry, u32) * 38u;
      }
      for (int i = 0; i < 8; ++i) Y.store({i, n}, x[i].row());
    }).grid([](const ModularCfg& c, const auto& x, const auto&, int) { return Grid{cdiv(x.shape[1], c.B)}; });
Register r3("modular_square", [](Env& e) {
  ModularCfg c;
  if (!e.big) c = {32, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 18 : 45, steps = e.big ? 64 : 5;
  auto x = integers<uint32_t>(e, size_t(n) * 8, 0, int64_t(1) << 32);
  auto y = constant<uint32_t>(e, x.n, 0);
  Job j;
  j.gflop = 2e-9 * 72 * double(n) * steps;
  j.add(modular, c, x.view(8, n), y.view(8, n), steps);
  j.check = [=]() -> std::string {
    using Wide = unsigned __int128;
    const auto got = y.now();
    for (int i = 0; i < n; ++i) {
      // modulo 2 p = 2^256 - 38, in limbs of 64 bits
      std::array<uint64_t, 4> a;
      for (int k = 0; k < 4; ++k) a[k] = x.at(size_t(2 * k) * n + i) | uint64_t(x.at(size_t(2 * k + 1) * n + i)) << 32;
      for (int s = 0; s < steps; ++s) {
        std::array<uint64_t, 8> p{};
        for (int u = 0; u < 4; ++u) {
          Wide carry = 0;
          for (int v = 0; v < 4; ++v) carry += Wide(a[u]) * a[v] + p[u + v], p[u + v] = uint64_t(carry), carry >>= 64;
          p[u + 4] = uint64_t(carry);
        }
        Wide carry = 0;
        for (int u = 0; u < 4; ++u) carry += Wide(p[u + 4]) * 38 + p[u], a[u] = uint64_t(carry), carry >>= 64;
        for (carry *= 38; carry;) {
          for (int u = 0; u < 4; ++u) carry += a[u], a[u] = uint64_t(carry), carry >>= 64;
          carry *= 38;
        }
      }
      for (int k = 0; k < 8; ++k)
        if (got[size_t(k) * n + i] != uint32_t(a[k / 2] >> (k % 2 * 32))) return "number " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- Reed-Solomon: parity shards are sums of data shards times constants in the field of 256 elements
struct ParityCfg {
  int data = 10, parity = 4, B = 2048, warps = 4;
};
auto parity =
    kernel("user_parity", [](const ParityCfg& c, Tensor<const uint8_t, 2> shards, Tensor<const uint8_t, 2> matrix,
                             Tensor<uint8_t, 2> out) {
      // shards [data, n], matrix [parity, data], out [parity, n]
      num_warps(c.warps);
      auto n = program_id(0) * c.B;
      std::vector<Tile> sums(c.parity, zeros({c.B}, u8));
      for (int d = 0; d < c.data; ++d) {
        Tile x = ravel(shards.load({d, n}, {1, c.B}));
        std::vector<Tile> factors;
        for (int p = 0; p < c.parity; ++p) factors.push_back(matrix.load({p, d}));
        for (int bit = 0; bit < 8; ++bit) {
          for (int p = 0; p < c.parity; ++p) sums[p] = sums[p] ^ where((factors[p] >> bit & 1) != 0, x, 0);
          x = (x << 1) ^ where(x >= 128, full({c.B}, 0x1D, u8), 0);
        }
      }
      for (int p = 0; p < c.parity; ++p) out.store({p, n}, sums[p].row());
    }).grid([](const ParityCfg& c, const auto& shards, const auto&...) { return Grid{cdiv(shards.shape[1], c.B)}; });
Register r4("parity", [](Env& e) {
  ParityCfg c;
  if (!e.big) c = {5, 3, 128, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 23 : 301, D = c.data, P = c.parity;
  auto shards = integers<uint8_t>(e, size_t(n) * D, 0, 256), matrix = integers<uint8_t>(e, size_t(D) * P, 1, 256);
  auto out = constant<uint8_t>(e, size_t(n) * P, 0);
  Job j;
  j.mbytes = 1e-6 * double(n) * (D + P);
  j.add(parity, c, shards.view(D, n), matrix.view(P, D), out.view(P, n));
  j.check = [=] {
    std::vector<double> want(out.n);
    for (int p = 0; p < P; ++p)
      for (int i = 0; i < n; ++i) {
        int sum = 0;
        for (int d = 0; d < D; ++d)
          for (int bit = 0, x = shards.at(size_t(d) * n + i); bit < 8; ++bit, x = (x << 1 & 255) ^ (x & 128 ? 0x1D : 0))
            if (matrix.at(p * D + d) >> bit & 1) sum ^= x;
        want[size_t(p) * n + i] = sum;
      }
    return agree(out.now(), want, .5, 0);
  };
  return j;
});

}  // namespace codes
}  // namespace users
