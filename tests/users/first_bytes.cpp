// first_bytes.cpp - first versions of kernels over bytes, tokens and codes: control flow that hangs on data, tables,
// counts, results of other sizes than their inputs.
#include <cstring>

#include "tests/users/use.h"
namespace users {
namespace first_bytes {

// --- blocks of LZ4: a program a block walks over its sequences; literals and matches are copied in pieces
struct Lz4Cfg {
  int B = 32;
};
auto lz4 = kernel("user_lz4", [](const Lz4Cfg& c, Ptr<const uint8_t> in, Ptr<const int32_t> start, Ptr<uint8_t> out,
                                 Ptr<int32_t> sizes, I32 /*blocks*/, I32 most) {
  num_warps(1);
  auto b = program_id(0);
  auto to = out + cast(b, i64) * cast(most, i64);
  auto lane = arange(0, c.B);
  Tile at = load(start + b), written = full({}, 0, i32);
  auto end = load(start + b + 1);
  auto length = [&](Tile n) {  // 15 goes on with bytes of 255
    for (auto _ : when(n == 15)) {
      Tile more = full({}, 255, i32);
      while_([&] { return more == 255; }, [&] { more = cast(load(in + at), i32), n += more, at += 1; });
    }
    return n;
  };
  while_([&] { return at < end; },
         [&] {
           auto token = cast(load(in + at), i32);
           at += 1;
           auto literals = length(token >> 4);
           for (auto i : range(0, literals, c.B)) {
             auto m = i + lane < literals;
             store(to + written + i + lane, load(in + at + i + lane, {.mask = m}), {.mask = m});
           }
           at += literals, written += literals;
           for (auto _ : when(at < end)) {
             auto back = cast(load(in + at), i32) | cast(load(in + at + 1), i32) << 8;
             at += 2;
             auto match = length(token & 15) + 4;
             for (auto i : range(0, match, c.B)) {
               auto m = i + lane < match;
               auto from = to + written - back + (i + lane) % back;
               store(to + written + i + lane, load(from, {.mask = m}), {.mask = m});
             }
             written += match;
           }
         });
  store(sizes + b, written);
}).grid([](const Lz4Cfg&, auto, auto, auto, auto, int blocks, int) { return Grid{blocks}; });
Register r1("lz4", [](Env& e) {
  Lz4Cfg c;
  const int blocks = e.big ? 4096 : 5, most = e.big ? 65536 : 700;
  // Texts of a few words, and their sequences: matches are looked for among the last few starts of four bytes.
  auto text = [&](int b) {
    std::vector<uint8_t> t;
    uint32_t s = 12345u + uint32_t(b % 16) * 977;
    auto next = [&] { return s = s * 1664525u + 1013904223u, s >> 16; };
    while (int(t.size()) < most - 70) {
      const uint32_t word = next() % 50, n = 2 + word % 9;
      for (uint32_t i = 0; i < n; ++i) t.push_back(uint8_t('a' + (word * 7 + i * i) % 26));
      if (next() % 40 == 0) t.insert(t.end(), 10 + next() % 50, uint8_t('-'));
      if (next() % 40 == 0)
        for (int i = 0; i < 40; ++i) t.push_back(uint8_t(next()));
    }
    return t;
  };
  auto packed = [](const std::vector<uint8_t>& t) {
    std::vector<uint8_t> out;
    std::map<uint32_t, int> seen;
    auto more = [&](int n) {
      if (n < 15) return;
      for (n -= 15; n >= 255; n -= 255) out.push_back(255);
      out.push_back(uint8_t(n));
    };
    int from = 0, i = 0;
    const int n = int(t.size());
    while (i + 12 < n) {
      uint32_t four;
      std::memcpy(&four, &t[i], 4);
      const auto it = seen.find(four);
      const int old = it == seen.end() ? -1 : it->second;
      seen[four] = i;
      if (old < 0 || i - old > 65535) { ++i; continue; }
      int match = 4;
      while (i + match < n - 5 && t[old + match] == t[i + match]) ++match;
      out.push_back(uint8_t(std::min(i - from, 15) << 4 | std::min(match - 4, 15)));
      more(i - from);
      out.insert(out.end(), t.begin() + from, t.begin() + i);
      out.push_back(uint8_t((i - old) & 255)), out.push_back(uint8_t((i - old) >> 8));
      more(match - 4);
      i += match, from = i;
    }
    out.push_back(uint8_t(std::min(n - from, 15) << 4));
    more(n - from);
    out.insert(out.end(), t.begin() + from, t.end());
    return out;
  };
  std::vector<std::vector<uint8_t>> texts, streams;
  for (int b = 0; b < (e.device ? std::min(blocks, 16) : 0); ++b)
    texts.push_back(text(b)), streams.push_back(packed(texts[b]));
  std::vector<uint8_t> all;
  std::vector<int32_t> at{0};
  for (int b = 0; b < blocks && e.device; ++b) {
    all.insert(all.end(), streams[b % 16].begin(), streams[b % 16].end());
    at.push_back(int(all.size()));
  }
  if (!e.device) all.resize(4), at.resize(blocks + 1);
  auto in = filled<uint8_t>(e, all.size(), [&](size_t i) { return all[i]; });
  auto start = filled<int32_t>(e, at.size(), [&](size_t i) { return at[i]; });
  auto out = constant<uint8_t>(e, size_t(blocks) * most, 0);
  auto sizes = constant<int32_t>(e, blocks, -1);
  Job j;
  j.mbytes = 1e-6 * blocks * most;
  j.inTurn = true;
  j.add(lz4, c, in.p, start.p, out.p, sizes.p, blocks, most);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    const auto n = sizes.now();
    for (int b = 0; b < blocks; ++b) {
      if (n[b] != int(texts[b % 16].size())) return "size of " + std::to_string(b);
      for (int i = 0; i < n[b]; ++i)
        if (got[size_t(b) * most + i] != texts[b % 16][i])
          return "byte " + std::to_string(i) + " of " + std::to_string(b);
    }
    return "";
  };
  return j;
});

// --- UTF-8 to code points: a program a text, pieces of it one after another; what is no character is counted
struct Utf8Cfg {
  int B = 1024;
};
auto utf8 = kernel("user_utf8", [](const Utf8Cfg& c, Ptr<const uint8_t> text, Ptr<const int32_t> start,
                                   Ptr<int32_t> points, Ptr<int32_t> counts, Ptr<int32_t> bad) {
  auto b = program_id(0), first = load(start + b), end = load(start + b + 1);
  Tile n = full({}, 0, i32), wrong = zeros({c.B}, i32);
  for (auto i : range(first, end, c.B)) {
    auto at = i + arange(0, c.B);
    auto byte = [&](int k) { return cast(load(text + at + k, {.mask = at + k < end}), i32); };
    auto b0 = byte(0), b1 = byte(1), b2 = byte(2), b3 = byte(3);
    auto one = b0 < 0x80, two = (b0 & 0xE0) == 0xC0, three = (b0 & 0xF0) == 0xE0, four = (b0 & 0xF8) == 0xF0;
    auto follows = [](const Tile& x) { return (x & 0xC0) == 0x80; };
    auto starts = (at < end) & ~follows(b0);
    auto code = where(one, b0,
                      where(two, (b0 & 31) << 6 | (b1 & 63),
                            where(three, (b0 & 15) << 12 | (b1 & 63) << 6 | (b2 & 63),
                                  (b0 & 7) << 18 | (b1 & 63) << 12 | (b2 & 63) << 6 | (b3 & 63))));
    auto right = one | (two & follows(b1)) | (three & follows(b1) & follows(b2)) |
                 (four & follows(b1) & follows(b2) & follows(b3));
    wrong += cast(starts & ~right, i32);
    auto place = cumsum(cast(starts, i32), axis(0));
    store(points + first + n + place - 1, where(right, code, 0xFFFD), {.mask = starts});
    n += sum(cast(starts, i32));
  }
  store(counts + b, n);
  store(bad + b, sum(wrong));
}).grid([](const Utf8Cfg&, auto...) { return Grid{2048}; });
Register r2("utf8", [](Env& e) {
  Utf8Cfg c;
  if (!e.big) c.B = 64;
  c.B = e.field("B", c.B);
  const int texts = 2048, most = e.big ? 32768 : 150;
  std::vector<uint8_t> all;
  std::vector<int32_t> at{0};
  if (e.device)
    for (int b = 0; b < texts; ++b) {
      const size_t end = all.size() + most / 2 + size_t(e.uniform() * most / 2);
      while (all.size() < end) {
        const int p = int(e.uniform() * (e.uniform() < .5 ? 128 : e.uniform() < .5 ? 2048 : 100000));
        if (p < 0x80)
          all.push_back(uint8_t(p));
        else if (p < 0x800)
          all.insert(all.end(), {uint8_t(0xC0 | p >> 6), uint8_t(0x80 | (p & 63))});
        else if (p < 0x10000)
          all.insert(all.end(), {uint8_t(0xE0 | p >> 12), uint8_t(0x80 | (p >> 6 & 63)), uint8_t(0x80 | (p & 63))});
        else
          all.insert(all.end(), {uint8_t(0xF0 | p >> 18), uint8_t(0x80 | (p >> 12 & 63)), uint8_t(0x80 | (p >> 6 & 63)),
                                 uint8_t(0x80 | (p & 63))});
        if (e.uniform() < .01) all.back() = 0xFF;
      }
      at.push_back(int(all.size()));
    }
  else
    all.resize(4), at.resize(texts + 1);
  auto text = filled<uint8_t>(e, all.size(), [&](size_t i) { return all[i]; });
  auto start = filled<int32_t>(e, at.size(), [&](size_t i) { return at[i]; });
  auto points = constant<int32_t>(e, all.size(), -1), counts = constant<int32_t>(e, texts, -1), bad = counts;
  bad = constant<int32_t>(e, texts, -1);
  Job j;
  j.mbytes = 5e-6 * all.size();
  j.add(utf8, c, text.p, start.p, points.p, counts.p, bad.p);
  j.check = [=]() -> std::string {
    const auto got = points.now(), n = counts.now(), faults = bad.now();
    for (int b = 0; b < texts; ++b) {
      int count = 0, wrong = 0;
      for (int i = at[b]; i < at[b + 1]; ++i) {
        const int x = all[i];
        if ((x & 0xC0) == 0x80) continue;
        const int len = x < 0x80 ? 1 : (x & 0xE0) == 0xC0 ? 2 : (x & 0xF0) == 0xE0 ? 3 : (x & 0xF8) == 0xF0 ? 4 : 0;
        int p = len == 1 ? x : len == 2 ? x & 31 : len == 3 ? x & 15 : x & 7;
        bool right = len > 0;
        for (int k = 1; k < len; ++k) {
          const int y = i + k < at[b + 1] ? all[i + k] : 0;
          right = right && (y & 0xC0) == 0x80;
          p = p << 6 | (y & 63);
        }
        wrong += !right;
        if (got[at[b] + count++] != (right ? p : 0xFFFD)) return "byte " + std::to_string(i);
      }
      if (n[b] != count || faults[b] != wrong) return "counts of " + std::to_string(b);
    }
    return "";
  };
  return j;
});

// --- columns of differences (Parquet's DELTA_BINARY_PACKED): miniblocks of 32 values with their own numbers of bits,
// a smallest difference for each; a program a page adds them up
struct DeltaCfg {
  int G = 32;
};
auto delta_column =
    kernel("user_delta_column", [](const DeltaCfg& c, Ptr<const uint32_t> words, Ptr<const int32_t> from,
                                   Ptr<const uint8_t> bits, Ptr<const int64_t> least, Ptr<const int64_t> first,
                                   Ptr<int64_t> out, I32 groups) {
      // out [pages, groups * 32]; from, bits, least [pages, groups]
      auto page = program_id(0);
      Tile value = load(first + page);
      for (auto g : range(0, groups, c.G)) {
        auto group = g + arange(0, c.G);
        auto in = group < groups;
        auto at = page * groups + group;
        auto b = cast(load(bits + at, {.mask = in}), i32).col();
        auto bit = arange(0, 32).row() * b;  // [G, 32]
        auto word = load(from + at, {.mask = in}).col() + bit / 32;
        auto low = load(words + word, {.mask = in.col() & (b > 0)}),
             high = load(words + word + 1, {.mask = in.col() & (b > 0)});
        auto both = cast(low, u64) | cast(high, u64) << 32;
        auto raw = both >> cast(bit % 32, u64) & ((cast(full({c.G, 32}, 1, i32), u64) << cast(b, u64)) - 1);
        auto difference = where(in.col(), cast(raw, i64) + load(least + at, {.mask = in}).col(), 0);
        auto run = value + cumsum(ravel(difference), axis(0));
        auto i = g * 32 + arange(0, c.G * 32);
        store(out + (cast(page, i64) * cast(groups * 32, i64) + cast(i, i64)), run, {.mask = i < groups * 32});
        value += sum(ravel(difference));
      }
    }).grid([](const DeltaCfg&, auto...) { return Grid{1024}; });
Register r3("delta_column", [](Env& e) {
  DeltaCfg c;
  if (!e.big) c.G = 4;
  c.G = e.field("G", c.G);
  const int pages = 1024, groups = e.big ? 512 : 7;
  std::vector<uint32_t> words;
  std::vector<int32_t> from;
  std::vector<uint8_t> bits;
  auto least = drawn<int64_t>(e, size_t(pages) * groups, [&] { return int64_t(e.uniform() * 100) - 30; });
  auto first = drawn<int64_t>(e, pages, [&] { return int64_t(e.uniform() * 1e12) - 500000000000; });
  std::vector<uint32_t> raw(e.device ? size_t(pages) * groups * 32 : 0);
  for (int g = 0; g < pages * groups; ++g) {
    const int b = g % 5 == 0 ? 0 : (g * 11) % 33;
    from.push_back(int(words.size())), bits.push_back(uint8_t(b));
    words.resize(words.size() + b);
    for (int i = 0; i < 32 && e.device; ++i) {
      const uint64_t x = b ? uint32_t(e.uniform() * 0x1p24) * 0x9E3779B1u >> (32 - b) : 0;
      raw[size_t(g) * 32 + i] = uint32_t(x);
      uint32_t* w = words.data() + from.back() + i * b / 32;
      if (b) {
        w[0] |= uint32_t(x << (i * b % 32));
        if (i * b % 32 + b > 32) w[1] |= uint32_t(x >> (32 - i * b % 32));
      }
    }
  }
  words.resize(words.size() + 2);
  auto w = filled<uint32_t>(e, words.size(), [&](size_t i) { return words[i]; });
  auto f = filled<int32_t>(e, from.size(), [&](size_t i) { return from[i]; });
  auto n = filled<uint8_t>(e, bits.size(), [&](size_t i) { return bits[i]; });
  auto out = constant<int64_t>(e, size_t(pages) * groups * 32, -1);
  Job j;
  j.mbytes = 4e-6 * words.size() + 8e-6 * out.n;
  j.add(delta_column, c, w.p, f.p, n.p, least.p, first.p, out.p, groups);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (int p = 0; p < pages; ++p) {
      int64_t value = first.at(p);
      for (int i = 0; i < groups * 32; ++i) {
        value += raw[size_t(p) * groups * 32 + i] + least.at(size_t(p) * groups + i / 32);
        if (got[size_t(p) * groups * 32 + i] != value)
          return "value " + std::to_string(i) + " of page " + std::to_string(p);
      }
    }
    return "";
  };
  return j;
});

// --- no word may follow the last ones again as it did before: scores of tokens that would repeat a run of n tokens
// become -inf, in place
struct NgramCfg {
  int B = 256, n = 3;
};
auto ngram_ban = kernel("user_ngram_ban", [](const NgramCfg& c, Ptr<half> logits, Ptr<const int64_t> tokens,
                                             Ptr<const int32_t> lengths, Ptr<int32_t> banned, I32 T, I32 V) {
  auto b = program_id(0), length = load(lengths + b);
  auto mine = tokens + cast(b, i64) * cast(T, i64);
  Tile count = zeros({c.B}, i32);
  for (auto i : range(0, length - c.n + 1, c.B)) {
    auto at = i + arange(0, c.B);
    auto in = at <= length - c.n;
    Tile same = in;
    for (int k = 0; k < c.n - 1; ++k)
      same = same & (load(mine + at + k, {.mask = in}) == load(mine + length - c.n + 1 + k));
    auto next = load(mine + at + c.n - 1, {.mask = same});
    store(logits + (cast(b, i64) * cast(V, i64) + next), full({c.B}, -INFINITY, f16), {.mask = same});
    count += cast(same, i32);
  }
  store(banned + b, sum(count));
}).grid([](const NgramCfg&, auto...) { return Grid{256}; });
Register r4("ngram_ban", [](Env& e) {
  NgramCfg c;
  if (!e.big) c.B = 32;
  c.B = e.field("B", c.B);
  const int B = 256, T = e.big ? 8192 : 90, V = e.big ? 50304 : 40;
  auto logits = random<half>(e, size_t(B) * V);
  auto tokens = integers<int64_t>(e, size_t(B) * T, 0, 7);
  auto lengths = integers<int32_t>(e, B, 1, T + 1);
  auto banned = constant<int32_t>(e, B, -1);
  Job j;
  j.mbytes = 8e-6 * tokens.n / 2;
  j.inTurn = true;
  j.add(ngram_ban, c, logits.p, tokens.p, lengths.p, banned.p, T, V);
  j.check = [=]() -> std::string {
    std::vector<double> want(logits.n), counts(B);
    for (size_t i = 0; i < logits.n; ++i) want[i] = logits[i];
    for (int b = 0; b < B; ++b) {
      const int n = c.n, L = lengths.at(b);
      auto token = [&](int t) { return tokens.at(size_t(b) * T + t); };
      for (int t = 0; t + n <= L; ++t) {
        bool same = true;
        for (int k = 0; k < n - 1; ++k) same = same && token(t + k) == token(L - n + 1 + k);
        if (same) want[size_t(b) * V + token(t + n - 1)] = -INFINITY, ++counts[b];
      }
    }
    if (auto wrong = agree(banned.now(), counts, .5, 0); !wrong.empty()) return "counts: " + wrong;
    return agree(logits.now(), want, 1e-6, 1e-6);
  };
  return j;
});

// --- signs of 64 random projections as the bits of one word (similarity hashing), and how far the words of a list are
struct SimhashCfg {
  int B = 64, D = 256, W = 4096;
};
auto simhash = kernel("user_simhash", [](const SimhashCfg& c, Ptr<const half> x, Ptr<const half> planes,
                                         Ptr<uint64_t> words, I32 n) {
  // x [n, D], planes [D, 64]
  auto r = program_id(0) * c.B + arange(0, c.B), d = arange(0, c.D), p = arange(0, 64);
  auto X = load(x + (r.col() * c.D + d.row()), {.mask = r.col() < n});
  auto side = dot(X, load(planes + (d.col() * 64 + p.row()))) > 0.f;
  auto bits = cast(side, u64) << cast(p, u64).row();
  store(words + r, squeeze(sum(bits, axis(1)), 1), {.mask = r < n});
}).grid([](const SimhashCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto hash_near = kernel("user_hash_near", [](const SimhashCfg& c, Ptr<const uint64_t> words,
                                             Ptr<const uint64_t> queries, Ptr<int32_t> near, I32 n, I32 limit) {
                   // near [queries]: how many words differ in fewer than `limit` bits
                   auto q = load(queries + program_id(0));
                   Tile count = zeros({c.W}, i32);
                   for (auto i : range(0, n, c.W)) {
                     auto at = i + arange(0, c.W);
                     auto apart = popcount(load(words + at, {.mask = at < n}) ^ q);
                     count += cast((cast(apart, i32) < limit) & (at < n), i32);
                   }
                   store(near + program_id(0), sum(count));
                 }).grid([](const SimhashCfg&, auto, auto, auto, int, int) { return Grid{128}; });
Register r5("simhash", [](Env& e) {
  SimhashCfg c;
  if (!e.big) c = {16, 32, 64};
  c.B = e.field("B", c.B), c.W = e.field("W", c.W);
  const int n = e.big ? 1 << 20 : 75, D = c.D;
  auto x = random<half>(e, size_t(n) * D), planes = random<half>(e, D * 64);
  auto words = constant<uint64_t>(e, n, 0),
       queries = filled<uint64_t>(e, 128, [](size_t i) { return i * 0x9E3779B97F4A7C15ull; });
  auto near = constant<int32_t>(e, 128, -1);
  Job j;
  j.mbytes = 2e-6 * x.n;
  j.add(simhash, c, x.p, planes.p, words.p, n);
  j.add(hash_near, c, words.p, queries.p, near.p, n, 30);
  j.check = [=]() -> std::string {
    const auto got = words.now();
    for (int i = 0; i < n; ++i)
      for (int p = 0; p < 64; ++p) {
        double s = 0;
        for (int d = 0; d < D; ++d) s += x[size_t(i) * D + d] * planes[d * 64 + p];
        if (std::abs(s) > 1e-4 && (got[i] >> p & 1) != (s > 0)) return "bit " + std::to_string(p);
      }
    const auto counted = near.now();
    for (int q = 0; q < 128; ++q) {
      int count = 0;
      for (uint64_t w : got) count += __builtin_popcountll(w ^ q * 0x9E3779B97F4A7C15ull) < 30;
      if (count != counted[q]) return "query " + std::to_string(q);
    }
    return "";
  };
  return j;
});

}  // namespace first_bytes
}  // namespace users
