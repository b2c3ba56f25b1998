// texts.cpp - bytes and keys: SHA-256, tables with quotes by a scan of state machines, sketches of sets, runs.
#include <bit>
#include <limits>

#include "tests/users/use.h"
namespace users {
namespace texts {

// --- SHA-256 of many messages of whole blocks of 64 bytes, one a lane
struct ShaCfg {
  int BM = 128, warps = 4;
};
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};
constexpr uint32_t kStart[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
auto sha = kernel("user_sha256", [](const ShaCfg& c, Tensor<const uint32_t, 2> messages, Tensor<uint32_t, 2> digests) {
  // messages [M, 16 * blocks] as little-endian words, digests [M, 8]
  num_warps(c.warps);
  auto m = program_id(0) * c.BM;
  auto turned = [](Tile x, int by) { return x >> by | x << (32 - by); };
  auto bytes = [](Tile x) {
    return x << 24 | (x & 0xff00u) << 8 | (x >> 8 & 0xff00u) | x >> 24;
  };
  std::array<Tile, 8> h;
  for (int i = 0; i < 8; ++i) h[i] = full({c.BM, 1}, kStart[i], u32);
  for (auto block : range(0, messages.dim(1), 16)) {
    auto text = messages.load({m, block}, {c.BM, 16});
    std::array<Tile, 16> w;
    for (int i = 0; i < 16; ++i) w[i] = bytes(extract(text, {0, i}, {c.BM, 1}));
    std::array<Tile, 8> s = h;
    for (int i = 0; i < 64; ++i) {
      auto x = w[i % 16];
      auto e = s[4], a = s[0];
      auto t1 = s[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + kRounds[i] + x;
      auto t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
      s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
      auto w1 = w[(i + 1) % 16], w14 = w[(i + 14) % 16];
      w[i % 16] = x + (turned(w1, 7) ^ turned(w1, 18) ^ w1 >> 3) + w[(i + 9) % 16] +
                  (turned(w14, 17) ^ turned(w14, 19) ^ w14 >> 10);
    }
    for (int i = 0; i < 8; ++i) h[i] += s[i];
  }
  for (int i = 0; i < 8; ++i) digests.store({m, i}, bytes(h[i]));
}).grid([](const ShaCfg& c, const auto& messages, const auto&) { return Grid{cdiv(messages.shape[0], c.BM)}; });
Register r1("sha256", [](Env& e) {
  ShaCfg c;
  if (!e.big) c = {32, 1};
  c.BM = e.field("BM", c.BM), c.warps = e.field("warps", c.warps);
  const int M = e.big ? 1 << 20 : 71, blocks = e.big ? 4 : 3;
  auto x = drawn<uint32_t>(e, size_t(M) * 16 * blocks, [&] { return uint32_t(e.uniform() * 0x1p24) * 2654435761u; });
  auto y = constant<uint32_t>(e, size_t(M) * 8, 0);
  Job j;
  j.mbytes = 4e-6 * M * (16. * blocks + 8);
  j.add(sha, c, x.view(M, 16 * blocks), y.view(M, 8));
  j.check = [=] {
    const auto got = y.now();
    for (int m = 0; m < M; ++m) {
      std::array<uint32_t, 8> h;
      std::copy(std::begin(kStart), std::end(kStart), h.begin());
      for (int b = 0; b < blocks; ++b) {
        std::array<uint32_t, 64> w;
        for (int i = 0; i < 64; ++i)
          w[i] = i < 16 ? __builtin_bswap32(x.at((size_t(m) * blocks + b) * 16 + i))
                        : w[i - 16] + (std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
                              (std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10);
        auto [a, bb, cc, d, ee, f, g, hh] = h;
        for (int i = 0; i < 64; ++i) {
          const uint32_t t1 = hh + (std::rotr(ee, 6) ^ std::rotr(ee, 11) ^ std::rotr(ee, 25)) + ((ee & f) ^ (~ee & g)) +
                              kRounds[i] + w[i];
          const uint32_t t2 =
              (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & bb) ^ (a & cc) ^ (bb & cc));
          hh = g, g = f, f = ee, ee = d + t1, d = cc, cc = bb, bb = a, a = t1 + t2;
        }
        const uint32_t add[8] = {a, bb, cc, d, ee, f, g, hh};
        for (int i = 0; i < 8; ++i) h[i] += add[i];
      }
      for (int i = 0; i < 8; ++i)
        if (got[size_t(m) * 8 + i] != __builtin_bswap32(h[i])) return "message " + std::to_string(m);
    }
    return std::string();
  };
  return j;
});

// --- a table as text: which commas and ends of lines count. Outside of quotes, inside, behind a backslash: what a byte
// does to the state is a word, a digit of two bits for every state it may meet, and words are put together by a scan
struct TableCfg {
  int block = 4096, warps = 8;
};
// from state s to digit s: 0 outside, 1 inside, 2 inside and escaped; digit 3 is not used
constexpr uint32_t digits(uint32_t a, uint32_t b, uint32_t c) { return a | b << 2 | c << 4; }
constexpr uint32_t kQuote = digits(1, 0, 1), kEscape = digits(0, 2, 1), kOther = digits(0, 1, 1);
Tile machines(Tile text) {
  auto each = where(text == int('"'), kQuote, where(text == int('\\'), kEscape, full(text.shape(), kOther, u32)));
  return scan(each, axis(0), [](Tile a, Tile b) {  // first a, then b
    Tile r = b >> (a & 3) * 2 & 3;
    for (int s = 1; s < 3; ++s) r = r | (b >> (a >> 2 * s & 3) * 2 & 3) << 2 * s;
    return r;
  });
}
auto table_blocks = kernel("user_table_blocks", [](const TableCfg& c, Ptr<const uint8_t> text,
                                                   Tensor<uint32_t, 1> whole, I64 n) {
  num_warps(c.warps);
  auto i = cast(program_id(0), i64) * c.block + cast(arange(0, c.block), i64);
  auto all = machines(cast(load(text + i, {.mask = i < n}), i32));
  whole.store({program_id(0)}, sum(where(arange(0, c.block) == c.block - 1, all, 0)));
}).grid([](const TableCfg& c, const uint8_t*, const auto&, int64_t n) { return Grid{cdiv(n, int64_t(c.block))}; });
auto table_starts = kernel("user_table_starts", [](const TableCfg&, Tensor<uint32_t, 1> whole) {
  Tile state = full({}, 0, u32);  // in place: the function of a block becomes the state in front of it
  for (auto b : range(0, whole.dim(0))) {
    auto f = whole.load({b});
    whole.store({b}, state);
    state = f >> state * 2 & 3;
  }
}).grid([](const TableCfg&, const auto&) { return Grid{1}; });
auto table_marks = kernel("user_table_marks", [](const TableCfg& c, Ptr<const uint8_t> text,
                                                 Tensor<const uint32_t, 1> starts, Ptr<uint32_t> marks,
                                                 Ptr<int64_t> counts, I64 n) {
  // marks: a bit for every byte; counts: commas, ends of lines
  num_warps(c.warps);
  auto i = cast(program_id(0), i64) * c.block + cast(arange(0, c.block), i64);
  auto b = cast(load(text + i, {.mask = i < n}), i32);
  auto after = machines(b) >> starts.load({program_id(0)}) * 2 & 3;
  auto comma = (after == 0) & (b == int(',')), line = (after == 0) & (b == int('\n'));
  auto bits = cast(reshape(comma | line, {c.block / 32, 32}), u32) << cast(arange(0, 32), u32).row();
  auto word = cast(program_id(0), i64) * (c.block / 32) + cast(arange(0, c.block / 32), i64);
  store(marks + word, squeeze(sum(bits, axis(1)), 1), {.mask = word < cdiv(n, 32)});
  atomic_add(counts, cast(sum(cast(comma, i32)), i64), {.order = Order::relaxed});
  atomic_add(counts + 1, cast(sum(cast(line, i32)), i64), {.order = Order::relaxed});
}).grid([](const TableCfg& c, const uint8_t*, const auto&, uint32_t*, int64_t*, int64_t n) {
  return Grid{cdiv(n, int64_t(c.block))};
});
Register r2("table_text", [](Env& e) {
  TableCfg c;
  if (!e.big) c = {256, 2};
  c.block = e.field("block", c.block), c.warps = e.field("warps", c.warps);
  const int64_t n = e.big ? int64_t(1) << 26 : 1711;
  auto text = drawn<uint8_t>(e, n, [&] { return uint8_t("\",\\\nabcdefghijkl"[int(e.uniform() * 16)]); });
  auto whole = constant<uint32_t>(e, cdiv(n, int64_t(c.block)), 0);
  auto marks = constant<uint32_t>(e, cdiv(n, int64_t(32)), 0);
  auto counts = constant<int64_t>(e, 2, 0);
  Job j;
  j.mbytes = 1e-6 * double(n) * 2.125;
  j.inTurn = true;
  j.add(table_blocks, c, text.p, whole.view(whole.n), n);
  j.add(table_starts, c, whole.view(whole.n));
  j.add(table_marks, c, text.p, whole.view(whole.n), marks.p, counts.p, n);
  j.check = [=] {
    const auto got = marks.now();
    int64_t want[2] = {0, 0};
    int state = 0;
    for (int64_t i = 0; i < n; ++i) {
      const char b = char(text.at(i));
      state = state == 2 ? 1 : b == '"' ? !state : state == 1 && b == '\\' ? 2 : state;
      const bool mark = state == 0 && (b == ',' || b == '\n');
      if (mark) ++want[b == '\n'];
      if ((got[i / 32] >> i % 32 & 1) != mark) return "byte " + std::to_string(i);
    }
    const auto sums = counts.now();
    return sums[0] == want[0] && sums[1] == want[1] ? std::string() : "counts";
  };
  return j;
});

// --- sketches of a set of 64-bit keys: how many different ones (HyperLogLog), which (Bloom), how often (count-min)
struct SketchCfg {
  int block = 1024, log_registers = 12, log_bits = 20, width = 8192, warps = 4;
};
Tile mixed(Tile k, uint64_t seed) {  // splitmix64
  Tile z = k + seed;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
uint64_t mixed(uint64_t z, uint64_t seed) {
  z += seed;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
auto sketch = kernel("user_sketch", [](const SketchCfg& c, Tensor<const uint64_t, 1> keys, Ptr<int32_t> registers,
                                       Ptr<uint32_t> bloom, Ptr<uint32_t> counts) {
  num_warps(c.warps);
  auto n = keys.dim(0);
  const AtomicOptions relaxed{.order = Order::relaxed};
  for (auto i : range(program_id(0) * c.block, n, num_programs(0) * c.block)) {
    auto k = keys.load({i}, {c.block});
    AtomicOptions in = relaxed;
    in.mask = i + arange(0, c.block) < n;
    auto h = mixed(k, 1);
    auto rank = countl_zero(h << c.log_registers | uint64_t(1) << (c.log_registers - 1)) + 1ull;
    atomic_max(registers + cast(h >> (64 - c.log_registers), i64), cast(rank, i32), in);
    for (int s = 2; s < 5; ++s) {
      auto b = mixed(k, s) >> (64 - c.log_bits);
      atomic_or(bloom + cast(b >> 5, i64), 1u << cast(b & 31, u32), in);
    }
    for (int s = 5; s < 8; ++s)
      atomic_add(counts + cast(mixed(k, s) % uint64_t(c.width), i64) + (s - 5) * c.width, 1u, in);
  }
}).grid([](const SketchCfg& c, const auto& keys, const auto*...) {
  return Grid{min<int64_t>(cdiv(keys.shape[0], c.block), 1056)};
});
Register r3("sketch", [](Env& e) {
  SketchCfg c;
  if (!e.big) c = {64, 5, 10, 50, 2};
  c.block = e.field("block", c.block), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 26 : 531;
  const double many = e.big ? 1e7 : 150;
  auto keys = drawn<uint64_t>(e, n, [&] { return uint64_t(e.uniform() * many) * 0x9E3779B97F4A7C15ull; });
  auto registers = constant<int32_t>(e, size_t(1) << c.log_registers, 0);
  auto bloom = constant<uint32_t>(e, (size_t(1) << c.log_bits) / 32, 0), counts = constant<uint32_t>(e, 3 * c.width, 0);
  Job j;
  j.mbytes = 8e-6 * n;
  j.add(sketch, c, keys.view(n), registers.p, bloom.p, counts.p);
  j.check = [=] {
    std::vector<double> r(registers.n), b(bloom.n), times(counts.n);
    std::vector<uint32_t> bits(bloom.n);
    for (int i = 0; i < n; ++i) {
      const uint64_t h = mixed(keys.at(i), 1), rest = h << c.log_registers;
      auto& mine = r[h >> (64 - c.log_registers)];
      mine = std::max(mine, double(rest ? std::countl_zero(rest) + 1 : 65 - c.log_registers));
      for (int s = 2; s < 5; ++s) {
        const uint64_t at = mixed(keys.at(i), s) >> (64 - c.log_bits);
        bits[at / 32] |= 1u << at % 32;
      }
      for (int s = 5; s < 8; ++s) times[mixed(keys.at(i), s) % c.width + (s - 5) * c.width] += 1;
    }
    std::string wrong = agree(registers.now(), r, 1e-9, 0);
    if (wrong.empty() && bloom.now() != bits) wrong = "bits";
    return wrong.empty() ? agree(counts.now(), times, 1e-9, 0) : wrong;
  };
  return j;
});

// --- runs of equal values of rows: the value, the length and the number of them
struct RunsCfg {
  int BN = 1024, warps = 4;
};
auto runs = kernel("user_runs", [](const RunsCfg& c, Tensor<const int16_t, 2> X, Tensor<int16_t, 2> values,
                                   Tensor<int32_t, 2> lengths, Tensor<int64_t, 1> counts) {
  // X [R, N], values, lengths [R, N]: the first counts[r] of a row are written
  num_warps(c.warps);
  auto r = program_id(0);
  auto n = X.dim(1);
  Tile before = full({}, 0, i32), last = full({}, -1, i32);  // runs so far less one's end, and where the last began
  auto value_at = values.ptr() + cast(r, i64) * values.stride(0);
  auto length_at = lengths.ptr() + cast(r, i64) * lengths.stride(0);
  for (auto i : range(0, n, c.BN)) {
    auto at = i + arange(0, c.BN);
    auto x = X.load({r, i}, {1, c.BN}), left = X.load({r, i - 1}, {1, c.BN});
    auto begins = (at < n) & ((at == 0) | (squeeze(x, 0) != squeeze(left, 0)));
    auto place = before + cumsum(cast(begins, i32), axis(0)) - 1;
    auto start = scan(where(begins, at, -1), axis(0), [](Tile a, Tile b) { return max(a, b); });
    auto earlier = max(start, last);
    store(value_at + place, squeeze(x, 0), {.mask = begins});
    // a run ends where the next element begins one, or the row does
    auto next = squeeze(X.load({r, i + 1}, {1, c.BN}), 0);
    auto ends = (at < n) & ((at == n - 1) | (squeeze(x, 0) != next));
    store(length_at + place, at - earlier + 1, {.mask = ends});
    before += sum(cast(begins, i32));
    last = max(last, max(start));
  }
  counts.store({r}, cast(before, i64));
}).grid([](const RunsCfg&, const auto& x, const auto&...) { return Grid{x.shape[0]}; });
Register r4("runs", [](Env& e) {
  RunsCfg c;
  if (!e.big) c = {64, 2};
  c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int R = e.big ? 4096 : 4, N = e.big ? 16384 : 333;
  int16_t value = 0;
  auto x = drawn<int16_t>(e, size_t(R) * N, [&] {
    if (e.uniform() < .2) value = int16_t(e.uniform() * 7 - 3);
    return value;
  });
  auto v = constant<int16_t>(e, x.n, -9);
  auto l = constant<int32_t>(e, x.n, -9);
  auto counts = constant<int64_t>(e, R, -1);
  Job j;
  j.mbytes = 2e-6 * x.n * 2.2;
  j.add(runs, c, x.view(R, N), v.view(R, N), l.view(R, N), counts.view(R));
  j.check = [=] {
    std::vector<double> values(x.n, -9), lengths(x.n, -9), many;
    for (int r = 0; r < R; ++r) {
      int k = -1;
      for (int i = 0; i < N; ++i) {
        const size_t at = size_t(r) * N;
        if (i == 0 || x[at + i] != x[at + i - 1]) values[at + ++k] = x[at + i], lengths[at + k] = 0;
        lengths[at + k] += 1;
      }
      many.push_back(k + 1);
    }
    std::string wrong = agree(counts.now(), many, 1e-9, 0);
    if (wrong.empty()) wrong = agree(v.now(), values, 1e-9, 0);
    return wrong.empty() ? agree(l.now(), lengths, 1e-9, 0) : "lengths: " + wrong;
  };
  return j;
});

}  // namespace texts
}  // namespace users
