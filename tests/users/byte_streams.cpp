// byte_streams.cpp - bytes that other programs wrote: numbers of variable length, filters of bits that say "maybe",
// authentication of messages in a field of 2^128 elements.
#include "tests/users/use.h"
namespace users {
namespace byte_streams {

struct PageCfg {
  int B = 512, warps = 4;
};

// --- LEB128: seven bits a byte, the last one below 128; zigzag differences of a column, whose sums are the values. One
// program per page. A prefix of bytes is (what its unfinished last number is so far, its bits, whether a number begins)
auto varint = kernel("user_varint", [](const PageCfg& c, Ptr<const uint8_t> bytes, Ptr<const int64_t> begins,
                                       Ptr<const int64_t> firsts, Ptr<int64_t> values, Ptr<int32_t> counts) {
                num_warps(c.warps);
                auto page = program_id(0);
                auto begin = load(begins + page), end = load(begins + page + 1), to = load(firsts + page);
                Tile head = cast(0, u64), bits = cast(0, i32), last = cast(0, i64), found = cast(0, i32);
                auto number = [](Tile v0, Tile n0, Tile s0, Tile v1, Tile n1, Tile s1) {
                  auto fresh = s1 != 0;
                  return std::tuple(where(fresh, v1, v0 | (v1 << cast(n0, u64))), where(fresh, n1, n0 + n1), s0 | s1);
                };
                for (auto at : range(begin, end, c.B)) {
                  auto i = at + cast(arange(0, c.B), i64);
                  auto there = i < end;
                  auto byte = load(bytes + i, {.mask = there, .other = 255});
                  auto before = load(bytes + (i - 1), {.mask = there & (i > begin), .other = 0});
                  auto ends = there & (byte < 128);
                  auto starts = cast(before < 128, i32);
                  auto seven = cast(byte & 127, u64);
                  auto [v, n, s] = scan({seven, full({c.B}, 7, i32), starts}, axis(0), number);
                  auto whole = where(s != 0, v, head | (v << cast(bits, u64)));
                  auto delta = cast(whole >> 1, i64) ^ -cast(whole & 1, i64);
                  auto sums = cumsum(where(ends, delta, 0), axis(0)) + last;
                  auto place = cumsum(cast(ends, i32), axis(0)) + found;
                  store(values + (to + cast(place, i64) - 1), sums, {.mask = ends});
                  // What the next tile begins with: the unfinished number at the end of this one.
                  auto tail = arange(0, c.B) == c.B - 1;
                  head = sum(where(tail, whole, 0)), bits = sum(where(tail, where(s != 0, n, n + bits), 0));
                  last = sum(where(tail, sums, 0)), found = sum(where(tail, place, 0));
                }
                store(counts + page, found);
              }).grid([](const PageCfg&, const auto&...) { return Grid{1}; });
Register r1("varint", [](Env& e) {
  const int pages = e.big ? 2048 : 6;
  std::vector<uint8_t> bytes;
  std::vector<int64_t> begins{0}, firsts, want;
  std::vector<int32_t> counts;
  for (int p = 0; p < pages; ++p) {
    const int n = e.big ? 4000 : std::array{0, 1, 5, 300, 77, 1000}[p];
    int64_t value = 0;
    firsts.push_back(int64_t(want.size())), counts.push_back(n);
    for (int i = 0; i < n; ++i) {
      const uint64_t random = uint64_t(e.uniform() * 0x1p24) << 40 | uint64_t(e.uniform() * 0x1p40);
      const uint64_t z = random >> int(e.big ? 40 + 24 * e.uniform() : 64 * e.uniform());
      value = int64_t(uint64_t(value) + ((z >> 1) ^ -(z & 1)));
      want.push_back(value);
      uint64_t rest = z;
      for (; rest >= 128; rest >>= 7) bytes.push_back(uint8_t(rest | 128));
      bytes.push_back(uint8_t(rest));
    }
    begins.push_back(int64_t(bytes.size()));
  }
  auto in = repeated<uint8_t>(e, bytes.size(), bytes);
  auto b = repeated<int64_t>(e, begins.size(), begins), f = repeated<int64_t>(e, firsts.size(), firsts);
  auto out = filled<int64_t>(e, want.size() + 1, [](size_t) { return -1; });
  auto n = filled<int32_t>(e, pages, [](size_t) { return -1; });
  Job j;
  j.mbytes = 1e-6 * double(bytes.size() + 8 * want.size());
  const auto k = varint.grid([pages](const PageCfg&, const auto&...) { return Grid{pages}; });
  j.add(k, PageCfg{e.field("B", e.big ? 512 : 96), e.field("warps", e.big ? 4 : 1)}, in.p, b.p, f.p, out.p, n.p);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (size_t i = 0; i < want.size(); ++i)
      if (got[i] != want[i]) return "value " + std::to_string(i) + " is " + std::to_string(got[i]);
    if (got.back() != -1) return "a value behind the last";
    return n.now() == counts ? "" : "counts";
  };
  return j;
});

// --- A filter of blocks of 256 bits (Parquet's): a key sets a bit in each of the eight words of its block
struct KeyCfg {
  int B = 256, warps = 4;
};
constexpr uint32_t kSalt[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                               0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
/// A hash of 64 bits (the end of MurmurHash3), for tiles and for numbers.
template <class U>
U mixed(U k) {
  k = k ^ (k >> 33), k = k * 0xff51afd7ed558ccdull, k = k ^ (k >> 33), k = k * 0xc4ceb9fe1a85ec53ull;
  return k ^ (k >> 33);
}
struct Bits {
  Tile word, bit;  ///< [B, 8]
};
Bits bits_of(const Tile& key, Expr blocks, Ptr<const uint32_t> salt, int n) {
  auto hash = mixed(key);
  auto block = ((hash >> 32) * blocks) >> 32;
  auto lane = arange(0, 8).row();
  auto s = load(salt + lane);
  return {cast(block, i64).col() * 8 + cast(lane, i64), broadcast_to(full({1, 8}, 1, u32), {n, 8})
                                                            << ((cast(hash, u32).col() * s) >> 27)};
}
auto bloom_add = kernel("user_bloom_add", [](const KeyCfg& c, Tensor<const uint64_t, 1> keys, Ptr<const uint32_t> salt,
                                             Ptr<uint32_t> filter, U64 blocks) {
                   num_warps(c.warps);
                   auto first = program_id(0) * c.B;
                   auto b = bits_of(keys.load({first}, {c.B}), blocks, salt, c.B);
                   auto live = (first + arange(0, c.B)).col() < keys.dim(0);
                   atomic_or(filter + b.word, b.bit, {.mask = broadcast_to(live, {c.B, 8}), .order = Order::relaxed});
                 }).grid([](const KeyCfg& c, const auto& k, const auto&...) { return Grid{cdiv(k.shape[0], c.B)}; });
auto bloom_find =
    kernel("user_bloom_find", [](const KeyCfg& c, Tensor<const uint64_t, 1> keys, Ptr<const uint32_t> salt,
                                 Ptr<const uint32_t> filter, U64 blocks, Tensor<uint8_t, 1> maybe, Ptr<int64_t> count) {
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto b = bits_of(keys.load({first}, {c.B}), blocks, salt, c.B);
      auto live = first + arange(0, c.B) < keys.dim(0);
      auto words = load(filter + b.word, {.mask = broadcast_to(live.col(), {c.B, 8})});
      auto hit = squeeze(all((words & b.bit) != 0, axis(1)), 1);
      maybe.store({first}, cast(hit, u8));
      atomic_add(count, cast(sum(cast(hit & live, i32)), i64));
    }).grid([](const KeyCfg& c, const auto& k, const auto&...) { return Grid{cdiv(k.shape[0], c.B)}; });
Register r2("bloom", [](Env& e) {
  const int n = e.big ? 1 << 22 : 331, m = e.big ? 1 << 24 : 1000;
  const uint64_t blocks = e.big ? 1 << 18 : 13;
  auto wide = [](Env& e) { return uint64_t(e.uniform() * 0x1p24) << 40 | uint64_t(e.uniform() * 0x1p40); };
  auto keys = drawn<uint64_t>(e, n, [&] { return wide(e); });
  auto asked = filled<uint64_t>(e, m, [&](size_t i) { return i % 3 ? wide(e) : keys.at(i / 3); });
  auto salt = repeated<uint32_t>(e, 8, {kSalt, kSalt + 8});
  auto filter = filled<uint32_t>(e, blocks * 8, [](size_t) { return 0; });
  auto maybe = filled<uint8_t>(e, m, [](size_t) { return 7; });
  auto count = filled<int64_t>(e, 1, [](size_t) { return 5; });
  Job j;
  j.mbytes = 1e-6 * (40. * n + 41. * m);
  const KeyCfg c{e.field("B", e.big ? 256 : 48), e.field("warps", e.big ? 4 : 2)};
  j.add(bloom_add, c, keys.view(n), salt.p, filter.p, blocks);
  j.add(bloom_find, c, asked.view(m), salt.p, filter.p, blocks, maybe.view(m), count.p);
  j.check = [=]() -> std::string {
    std::vector<uint32_t> bits(blocks * 8);
    auto word = [=](uint64_t key) { return ((mixed(key) >> 32) * blocks >> 32) * 8; };
    auto bit = [](uint64_t key, int w) { return 1u << (uint32_t(mixed(key)) * kSalt[w] >> 27); };
    for (int i = 0; i < n; ++i)
      for (int w = 0; w < 8; ++w) bits[word(keys.at(i)) + w] |= bit(keys.at(i), w);
    if (filter.now() != bits) return "filter";
    int64_t hits = 5;
    const auto got = maybe.now();
    for (int i = 0; i < m; ++i) {
      bool all = true;
      for (int w = 0; w < 8; ++w) all = all && bits[word(asked.at(i)) + w] & bit(asked.at(i), w);
      if (got[i] != uint8_t(all)) return "key " + std::to_string(i);
      hits += all;
    }
    return count.now()[0] == hits ? "" : "count";
  };
  return j;
});

// --- GHASH: messages of whole blocks of 16 bytes, each folded into 128 bits: y = (y ^ block) * H, four bits at a time
struct Field {
  Tile high, low;
};
auto ghash =
    kernel("user_ghash", [](const KeyCfg& c, Ptr<const uint64_t> H, Ptr<const uint64_t> data, Ptr<const int32_t> begins,
                            Tensor<uint64_t, 2> tags) {
      // H [2] high, low; data in words of 8 bytes as they lie in memory (big endian), begins in blocks
      num_warps(c.warps);
      auto n = tags.dim(0), first = program_id(0) * c.B;
      auto i = first + arange(0, c.B);
      auto live = i < n;
      auto turned = [](Tile x) {  // bytes the other way round
        x = ((x >> 8) & 0x00ff00ff00ff00ffull) | ((x & 0x00ff00ff00ff00ffull) << 8);
        x = ((x >> 16) & 0x0000ffff0000ffffull) | ((x & 0x0000ffff0000ffffull) << 16);
        return (x >> 32) | (x << 32);
      };
      // Table of nibbles: bit 3 of the index is the coefficient of x^0.
      auto nibble = cast(arange(0, 16), u64);
      Field table{zeros({16}, u64), zeros({16}, u64)};
      Tile vh = load(H), vl = load(H + 1);
      for (int bit = 3; bit >= 0; --bit) {
        auto takes = ((nibble >> bit) & 1) != 0;
        table = {where(takes, table.high ^ vh, table.high), where(takes, table.low ^ vl, table.low)};
        auto odd = vl & 1;
        vl = (vl >> 1) | (vh << 63), vh = (vh >> 1) ^ (odd * 0xe100000000000000ull);
      }
      Tile spill = zeros({16}, u64);  // what four bits shifted out come back as
      for (int bit = 0; bit < 4; ++bit)
        spill = spill ^ where(((nibble >> bit) & 1) != 0, full({16}, 0xe100000000000000ull >> (3 - bit), u64), 0);
      Tile at = load(begins + i, {.mask = live});
      auto end = load(begins + i + 1, {.mask = live});
      Field y{zeros({c.B}, u64), zeros({c.B}, u64)};
      while_([&] { return any(at < end); },
             [&] {
               auto there = at < end;
               auto word = cast(at, i64) * 2;
               Field x{y.high ^ turned(load(data + word, {.mask = there})),
                       y.low ^ turned(load(data + word + 1, {.mask = there}))};
               Field z{zeros({c.B}, u64), zeros({c.B}, u64)};
               for (auto half : range(2))
                 for (auto step : range(16)) {
                   auto from = where(half == 0, x.low, x.high);
                   auto four = cast((from >> cast(step * 4, u64)) & 15, i32), out = cast(z.low & 15, i32);
                   auto low = (z.low >> 4) | (z.high << 60), high = (z.high >> 4) ^ take(spill, out, 0);
                   z = {high ^ take(table.high, four, 0), low ^ take(table.low, four, 0)};
                 }
               y = {where(there, z.high, y.high), where(there, z.low, y.low)};
               at += cast(there, i32);
             });
      tags.store({first, 0}, join(turned(y.high), turned(y.low)));
    }).grid([](const KeyCfg& c, auto*, auto*, auto*, const auto& tags) { return Grid{cdiv(tags.shape[0], c.B)}; });
Register r3("ghash", [](Env& e) {
  const int n = e.big ? 1 << 17 : 43;
  auto bytes_turned = [](uint64_t x) { return __builtin_bswap64(x); };
  std::vector<int32_t> begins{0};
  for (int i = 0; i < n; ++i)
    begins.push_back(begins.back() + (i % 7 == 3 ? 0 : 1 + int((e.big ? 90 : 5) * e.uniform())));
  auto wide = [&] { return uint64_t(e.uniform() * 0x1p24) << 40 | uint64_t(e.uniform() * 0x1p40); };
  const std::vector<uint64_t> key{0x66e94bd4ef8a2c3bull, 0x884cfa59ca342b2eull};  // of the standard's test cases
  auto H = repeated<uint64_t>(e, 2, key);
  auto data = drawn<uint64_t>(e, 2 * size_t(begins.back()), wide);
  if (!e.big && e.device) {  // test case 2 of GCM: one block of text and the lengths
    begins[1] = std::max(begins[1], 2);
    data.h[0] = bytes_turned(0x0388dace60b6a392ull), data.h[1] = bytes_turned(0xf328c2b971b2fe78ull);
    data.h[2] = 0, data.h[3] = bytes_turned(128);
    begins[1] = 2;
    for (int i = 2; i <= n; ++i) begins[i] = std::max(begins[i], begins[i - 1]);
    data = repeated<uint64_t>(e, data.n, data.h);
  }
  auto b = repeated<int32_t>(e, n + 1, begins);
  auto tags = filled<uint64_t>(e, 2 * size_t(n), [](size_t) { return 1; });
  Job j;
  j.mbytes = 16e-6 * begins.back();
  j.add(ghash, KeyCfg{e.field("B", e.big ? 128 : 24), e.field("warps", e.big ? 4 : 1)}, H.p, data.p, b.p,
        tags.view(n, 2));
  j.check = [=]() -> std::string {
    const auto got = tags.now();
    for (int i = 0; i < n; ++i) {
      uint64_t h = 0, l = 0;
      for (int k = begins[i]; k < begins[i + 1]; ++k) {
        const uint64_t x[2] = {h ^ bytes_turned(data.at(2 * k)), l ^ bytes_turned(data.at(2 * k + 1))};
        uint64_t v = key[0], w = key[1];
        h = l = 0;
        for (int bit = 0; bit < 128; ++bit) {
          if (x[bit / 64] >> (63 - bit % 64) & 1) h ^= v, l ^= w;
          const uint64_t odd = w & 1;
          w = w >> 1 | v << 63, v = v >> 1 ^ odd * 0xe100000000000000ull;
        }
      }
      if (i == 0 && (h != 0xf38cbb1ad69223dcull || l != 0xc3457ae5b6b0f885ull)) return "the reference";
      if (got[2 * i] != bytes_turned(h) || got[2 * i + 1] != bytes_turned(l)) return "message " + std::to_string(i);
    }
    return "";
  };
  return j;
});

}  // namespace byte_streams
}  // namespace users
