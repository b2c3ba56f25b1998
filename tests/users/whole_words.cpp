// whole_words.cpp - bytes and words: parity of disks (Reed and Solomon), keyed hashes of strings, words of a genome
// counted on both strands; and what else people look up: shadows, cities near by, what volatility a price implies.
#include "tests/users/use.h"
namespace users {
namespace whole_words {

struct LaneCfg {
  int B = 128, warps = 4;
};

// --- Reed and Solomon: 4 parity shards of 10 data shards, GF(256) by tables of logarithms and powers, byte by byte
struct ShardCfg {
  int B = 1024, data = 10, parity = 4, warps = 4;
};
auto shards = kernel("user_disk_parity", [](const ShardCfg& c, Tensor<const uint8_t, 2> in, Tensor<uint8_t, 2> out,
                                       Ptr<const uint8_t> log, Ptr<const uint8_t> power, Ptr<const uint8_t> matrix) {
                num_warps(c.warps);
                auto x = program_id(0) * c.B;
                std::vector<Tile> sum;
                for (int p = 0; p < c.parity; ++p) sum.push_back(zeros({c.B}, u8));
                for (int d = 0; d < c.data; ++d) {
                  auto byte = squeeze(in.load({d, x}, {1, c.B}), 0);
                  auto lg = cast(load(log + cast(byte, i32)), i32);
                  for (int p = 0; p < c.parity; ++p) {
                    auto factor = cast(load(log + cast(load(matrix + (p * c.data + d)), i32)), i32);
                    auto product = load(power + (lg + factor) % 255);
                    sum[p] = sum[p] ^ where(byte == 0, cast(0, u8), product);
                  }
                }
                for (int p = 0; p < c.parity; ++p) out.store({p, x}, sum[p].row());
              }).grid([](const ShardCfg& c, const auto& in, const auto&...) { return Grid{cdiv(in.shape[1], c.B)}; });
// the same by doubling words of eight bytes: no tables, a bit of the factor at a time
auto doubled =
    kernel("user_doubled_words", [](const ShardCfg& c, Tensor<const uint64_t, 2> in, Tensor<uint64_t, 2> out,
                              Ptr<const uint8_t> matrix) {
      num_warps(c.warps);
      auto x = program_id(0) * (c.B / 8);
      std::vector<Tile> sum;
      for (int p = 0; p < c.parity; ++p) sum.push_back(zeros({c.B / 8}, u64));
      for (auto d : range(c.data)) {
        Tile v = squeeze(in.load({d, x}, {1, c.B / 8}), 0);
        for (int bit = 0; bit < 8; ++bit) {
          for (int p = 0; p < c.parity; ++p) {
            auto factor = cast(load(matrix + (p * c.data + d)), u32);
            sum[p] = where((factor >> bit & 1u) == 1u, sum[p] ^ v, sum[p]);
          }
          auto high = v & uint64_t(0x8080808080808080);
          v = ((v ^ high) << 1) ^ ((high >> 7) * uint64_t(0x1D));
        }
      }
      for (int p = 0; p < c.parity; ++p) out.store({p, x}, sum[p].row());
    }).grid([](const ShardCfg& c, const auto& in, const auto&...) { return Grid{cdiv(in.shape[1], c.B / 8)}; });
Register r1("disk_parity", [](Env& e) {
  const int n = e.big ? 1 << 24 : 200;  // bytes of a shard
  std::vector<uint8_t> log(256), power(255), matrix(40);
  for (int i = 0, v = 1; i < 255; ++i, v = v << 1 ^ (v & 128 ? 0x11D : 0)) power[i] = uint8_t(v), log[v] = uint8_t(i);
  for (int i = 0; i < 40; ++i) matrix[i] = power[i / 10 * (i % 10) % 255];  // Vandermonde
  auto in = integers<uint8_t>(e, size_t(n) * 10, 0, 256);
  auto out = constant<uint8_t>(e, size_t(n) * 4, 3), out8 = constant<uint8_t>(e, size_t(n) * 4, 5);
  auto l = repeated(e, 256, log), p = repeated(e, 255, power), m = repeated(e, 40, matrix);
  const ShardCfg c{e.field("B", e.big ? 1024 : 128), 10, 4, e.field("warps", e.big ? 4 : 1)};
  Job j;
  j.mbytes = 14e-6 * n;
  j.add(shards, c, in.view(10, n), out.view(4, n), l.p, p.p, m.p);
  auto words = [&](uint8_t* a, int rows) {
    return TensorView<uint64_t, 2>(reinterpret_cast<uint64_t*>(a), std::array<int64_t, 2>{rows, n / 8});
  };
  j.add(doubled, c, words(in.p, 10), words(out8.p, 4), m.p);
  j.check = [=] {
    std::vector<double> want(size_t(n) * 4);
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < n; ++i) {
        int s = 0;
        for (int d = 0; d < 10; ++d) {
          const int byte = in.at(size_t(d) * n + i);
          if (byte) s ^= power[(log[byte] + log[matrix[k * 10 + d]]) % 255];
        }
        want[size_t(k) * n + i] = s;
      }
    auto wrong = agree(out.now(), want, .5, 0);
    return wrong.empty() ? agree(out8.now(), want, .5, 0) : wrong;
  };
  return j;
});

// --- SipHash-2-4 of many short strings that lie one behind the other; a lane a string, byte by byte at the end
auto siphash = kernel("user_siphash", [](const LaneCfg& c, Ptr<const uint8_t> text, Ptr<const int64_t> start,
                                         Ptr<uint64_t> hash, I64 n, U64 k0, U64 k1) {
                 num_warps(c.warps);
                 auto i = cast(program_id(0), i64) * c.B + arange(0, c.B);
                 auto live = i < n;
                 auto first = load(start + i, {.mask = live}), end = load(start + i + 1, {.mask = live});
                 auto length = end - first;
                 Tile v0 = zeros({c.B}, u64) + (k0 ^ uint64_t(0x736f6d6570736575)),
                      v1 = zeros({c.B}, u64) + (k1 ^ uint64_t(0x646f72616e646f6d)),
                      v2 = zeros({c.B}, u64) + (k0 ^ uint64_t(0x6c7967656e657261)),
                      v3 = zeros({c.B}, u64) + (k1 ^ uint64_t(0x7465646279746573));
                 auto round = [&] {
                   v0 += v1, v1 = rotl(v1, 13) ^ v0, v0 = rotl(v0, 32);
                   v2 += v3, v3 = rotl(v3, 16) ^ v2;
                   v0 += v3, v3 = rotl(v3, 21) ^ v0;
                   v2 += v1, v1 = rotl(v1, 17) ^ v2, v2 = rotl(v2, 32);
                 };
                 Tile at = first;
                 auto word = [&](const Tile& wanted) {  // bytes at .. at + 7, 0 where there are none
                   Tile m = zeros({c.B}, u64);
                   for (int b = 0; b < 8; ++b) {
                     auto byte = load(text + (at + b), {.mask = wanted & (at + b < end), .other = 0});
                     m = m | (cast(byte, u64) << uint64_t(8 * b));
                   }
                   return m;
                 };
                 while_([&] { return any(at + 8 <= end); },
                        [&] {
                          auto more = at + 8 <= end;
                          auto m = word(more);
                          Tile o0 = v0, o1 = v1, o2 = v2, o3 = v3;
                          v3 = v3 ^ m;
                          round(), round();
                          v0 = v0 ^ m;
                          v0 = where(more, v0, o0), v1 = where(more, v1, o1), v2 = where(more, v2, o2);
                          v3 = where(more, v3, o3);
                          at = where(more, at + 8, at);
                        });
                 auto m = word(live) | (cast(length, u64) << uint64_t(56));
                 v3 = v3 ^ m;
                 round(), round();
                 v0 = v0 ^ m;
                 v2 = v2 ^ uint64_t(255);
                 round(), round(), round(), round();
                 store(hash + i, v0 ^ v1 ^ v2 ^ v3, {.mask = live});
               }).grid([](const LaneCfg& c, const uint8_t*, const int64_t*, uint64_t*, int64_t n, uint64_t, uint64_t) {
  return Grid{cdiv(n, c.B)};
});
Register r2("siphash", [](Env& e) {
  const int n = e.big ? 1 << 20 : 61;
  std::vector<int64_t> start(1);
  for (int i = 0; i < n; ++i) start.push_back(start.back() + int(e.uniform() * (i % 5 ? 24 : 60)) * (i % 9 != 4));
  auto text = integers<uint8_t>(e, start.back(), 0, 256);
  auto starts = repeated(e, start.size(), start);
  auto hash = constant<uint64_t>(e, n, 1);
  const uint64_t k0 = 0x0706050403020100, k1 = 0x0f0e0d0c0b0a0908;
  Job j;
  j.mbytes = 1e-6 * (double(start.back()) + 16. * n);
  j.add(siphash, LaneCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, text.p, starts.p, hash.p, n,
        k0, k1);
  j.check = [=] {
    const auto got = hash.now();
    auto rot = [](uint64_t x, int b) { return x << b | x >> (64 - b); };
    for (int i = 0; i < n; ++i) {
      uint64_t v0 = k0 ^ 0x736f6d6570736575, v1 = k1 ^ 0x646f72616e646f6d, v2 = k0 ^ 0x6c7967656e657261,
               v3 = k1 ^ 0x7465646279746573;
      auto round = [&] {
        v0 += v1, v1 = rot(v1, 13) ^ v0, v0 = rot(v0, 32), v2 += v3, v3 = rot(v3, 16) ^ v2;
        v0 += v3, v3 = rot(v3, 21) ^ v0, v2 += v1, v1 = rot(v1, 17) ^ v2, v2 = rot(v2, 32);
      };
      const int64_t length = start[i + 1] - start[i];
      for (int64_t at = 0; at <= length; at += 8) {
        uint64_t m = at + 8 <= length ? 0 : uint64_t(length) << 56;
        for (int64_t b = at; b < std::min(at + 8, length); ++b) m |= uint64_t(text.at(start[i] + b)) << 8 * (b - at);
        v3 ^= m, round(), round(), v0 ^= m;
      }
      v2 ^= 255, round(), round(), round(), round();
      if (got[i] != (v0 ^ v1 ^ v2 ^ v3)) return "string " + std::to_string(i);
    }
    return std::string();
  };
  return j;
});

// --- words of K letters of reads (two bits a letter, one in a byte here), counted as the smaller of both strands
struct WordCfg {
  int B = 128, K = 11, warps = 4;
};
auto kmers = kernel("user_kmers", [](const WordCfg& c, Tensor<const uint8_t, 2> reads, Ptr<int32_t> counts) {
               // reads [n, length], letters 0 to 3, others break words
               num_warps(c.warps);
               auto r = program_id(0);
               const uint32_t mask = (1u << 2 * c.K) - 1;
               for (auto at : range(0, reads.dim(1) - c.K + 1, c.B)) {
                 auto i = at + arange(0, c.B);
                 Tile forth = zeros({c.B}, u32), back = zeros({c.B}, u32), good = i + c.K <= reads.dim(1);
                 for (int k = 0; k < c.K; ++k) {
                   auto letter = cast(squeeze(reads.load({r, at + k}, {1, c.B}, {.pad = 4}), 0), u32);
                   forth = (forth << 2 | (letter & 3u)) & mask;
                   back = back >> 2 | ((3u - (letter & 3u)) << uint32_t(2 * c.K - 2));
                   good = good & (letter < 4u);
                 }
                 atomic_add(counts + cast(min(forth, back), i32), 1, {.mask = good, .order = Order::relaxed});
               }
             }).grid([](const WordCfg&, const auto& r, int32_t*) { return Grid{r.shape[0]}; });
Register r3("kmers", [](Env& e) {
  const int n = e.big ? 200'000 : 7, length = e.big ? 152 : 61, K = e.field("K", e.big ? 11 : 5);
  auto reads = drawn<uint8_t>(e, size_t(n) * length, [&] { return uint8_t(e.uniform() < .01 ? 4 : e.uniform() * 4); });
  auto counts = constant<int32_t>(e, size_t(1) << 2 * K, 0);
  Job j;
  j.mbytes = 1e-6 * n * (length + 8. * (length - K + 1));
  j.add(kmers, WordCfg{e.field("B", e.big ? 144 : 32), K, e.field("warps", e.big ? 2 : 1)}, reads.view(n, length),
        counts.p);
  j.check = [=] {
    std::vector<double> want(size_t(1) << 2 * K);
    for (int r = 0; r < n; ++r)
      for (int i = 0; i + K <= length; ++i) {
        size_t forth = 0, back = 0;
        bool good = true;
        for (int k = 0; k < K; ++k) {
          const int letter = reads.at(size_t(r) * length + i + k);
          good &= letter < 4, forth = forth * 4 + letter, back |= size_t(3 - letter) << 2 * k;
        }
        if (good) ++want[std::min(forth, back)];
      }
    return agree(counts.now(), want, .5, 0);
  };
  return j;
});

}  // namespace whole_words
}  // namespace users
