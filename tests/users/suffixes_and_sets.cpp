// suffixes_and_sets.cpp - the order of all suffixes of short texts with how much neighbours share, and intersections of
// compressed sets (Roaring): lists, bitmaps and runs of 16-bit numbers.
#include <bit>
#include <set>

#include "tests/users/use.h"
namespace users {
namespace suffixes_and_sets {

// --- suffix arrays by doubling: ranks of 2^k letters and of what lies 2^k further are sorted as one number with the
// place below them, until all ranks differ; then the letters that neighbours have in common. A text per program
struct SuffixCfg {
  int N = 1024, warps = 8;
};
auto suffixes =
    kernel("user_suffix_array", [](const SuffixCfg& c, Ptr<const uint8_t> texts, Ptr<const int32_t> begins,
                                   Ptr<int16_t> order, Ptr<int16_t> shared, Ptr<int32_t> doublings) {
      num_warps(c.warps);
      auto text = program_id(0);
      auto t0 = load(begins + text), n = load(begins + text + 1) - t0;
      auto i = arange(0, c.N);
      auto places = cast(i, u64);
      Tile rank = cast(load(texts + t0 + i, {.mask = i < n}), u32) + 1;
      rank = where(i < n, rank, 0);  // behind the end: before every letter
      Tile at = i, width = cast(1, i32), rounds = cast(0, i32), differ = cast(0, i1);
      while_([&] { return ~differ; },
             [&] {
               auto from = i + width;
               auto next = where(from < n, take(rank, min(from, c.N - 1), 0), 0);
               // What lies behind the end stays behind everything.
               auto first = where(i < n, rank, 1u << 20);
               auto keys = sort((cast(first, u64) << 40) | (cast(next, u64) << 16) | places, axis(0));
               auto here = keys >> 16;
               auto before = cat(full({1}, 0, u64), extract(here, {0}, {c.N - 1}));
               auto number = cumsum(cast(here != before, u32), axis(0));
               at = cast(keys & 0xFFFF, i32);
               differ = all((number == cast(i, u32) + 1) | (i >= n));
               // Ranks go back to their places: sorted by place.
               auto back = sort((cast(at, u64) << 32) | cast(number, u64), axis(0));
               rank = cast(back, u32);
               width *= 2, rounds += 1;
             });
      store(order + t0 + i, cast(at, i16), {.mask = i < n});
      store(doublings + text, rounds);
      // Neighbours in the order: letter by letter, with a vote after every four.
      auto previous = cat(full({1}, 0, i32), extract(at, {0}, {c.N - 1}));
      Tile common = zeros({c.N}, i32), going = (i > 0) & (i < n);
      while_([&] { return any(going); },
             [&] {
               for (int step = 0; step < 4; ++step) {
                 auto x = at + common, y = previous + common;
                 auto inside = going & (max(x, y) < n);
                 going = inside & (load(texts + t0 + x, {.mask = inside}) == load(texts + t0 + y, {.mask = inside}));
                 common += cast(going, i32);
               }
             });
      store(shared + t0 + i, cast(common, i16), {.mask = i < n});
    }).grid([](const SuffixCfg&, const auto&...) { return Grid{1}; });
Register r1("suffix_array", [](Env& e) {
  SuffixCfg c;
  if (!e.big) c = {128, 2};
  c.N = e.field("N", c.N), c.warps = e.field("warps", c.warps);
  const int count = e.big ? 4096 : 6;
  std::vector<uint8_t> letters;
  std::vector<int32_t> begins{0};
  for (int t = 0; t < count; ++t) {
    const int n = e.big ? c.N - t % 100 : std::array{1, 128, 100, 77, 64, 127}[t];
    for (int i = 0; i < n; ++i)
      letters.push_back(!e.big && t == 1   ? 'a'
                        : !e.big && t == 2 ? "ab"[i & 1]
                                           : uint8_t("acgt"[int(e.uniform() * 4)]));
    begins.push_back(int32_t(letters.size()));
  }
  auto text = repeated<uint8_t>(e, letters.size(), letters);
  auto b = repeated<int32_t>(e, begins.size(), begins);
  auto order = constant<int16_t>(e, letters.size(), -1), shared = constant<int16_t>(e, letters.size(), -1);
  auto doublings = constant<int32_t>(e, count, -1);
  Job j;
  j.mbytes = 5e-6 * double(letters.size());
  const auto k = suffixes.grid([count](const SuffixCfg&, const auto&...) { return Grid{count}; });
  j.add(k, c, text.p, b.p, order.p, shared.p, doublings.p);
  j.check = [=]() -> std::string {
    const auto got = order.now(), common = shared.now();
    const auto rounds = doublings.now();
    for (int t = 0; t < count; ++t) {
      const std::string s(letters.begin() + begins[t], letters.begin() + begins[t + 1]);
      std::vector<int> want(s.size());
      for (size_t i = 0; i < s.size(); ++i) want[i] = int(i);
      std::sort(want.begin(), want.end(), [&](int x, int y) { return s.substr(x) < s.substr(y); });
      for (size_t i = 0; i < s.size(); ++i) {
        int k = 0;
        while (i && size_t(std::max(want[i], want[i - 1]) + k) < s.size() && s[want[i] + k] == s[want[i - 1] + k]) ++k;
        const std::string at = "text " + std::to_string(t) + " place " + std::to_string(i);
        if (got[begins[t] + i] != want[i]) return at + ": " + std::to_string(got[begins[t] + i]);
        if (common[begins[t] + i] != k) return at + ": shares " + std::to_string(common[begins[t] + i]);
      }
      if (t == 1 && rounds[t] != 7) return "doublings of letters that are all the same";
    }
    return "";
  };
  return j;
});

// --- Roaring: the sets of 16-bit numbers of two columns, chunk by chunk: sorted lists (kind 0), bitmaps (1), runs (2).
// A list stays a list, what else is met becomes a bitmap
struct SetCfg {
  int B = 512, warps = 4;
};
struct Sets {
  Ptr<const int8_t> kinds;
  Ptr<const int32_t> sizes;    ///< of lists: numbers, of runs: pairs (first, how many follow)
  Ptr<const int64_t> offsets;  ///< in 16-bit words, multiples of four
  Ptr<const uint16_t> words;
};
struct Chunk {
  Tile kind, size, at;
};
/// How many of the sorted numbers at `at`, every `stride`th word, are at most x.
Tile at_most(const Sets& s, const Chunk& chunk, const Tile& x, const Tile& live, int stride) {
  Tile low = zeros(x.shape(), i32), high = where(live, chunk.size, 0);
  while_([&] { return any(low < high); },
         [&] {
           auto going = low < high;
           auto middle = (low + high) / 2;
           auto word = load(s.words + chunk.at + cast(middle, i64) * stride, {.mask = going});
           auto right = going & (word <= x);
           low = where(right, middle + 1, low), high = where(going & ~right, middle, high);
         });
  return low;
}
Tile contains(const Sets& s, const Chunk& chunk, const Tile& x, const Tile& live) {
  Tile found = zeros(x.shape(), i1);
  if_(
      chunk.kind == 1,
      [&] {
        auto word = load(s.words + chunk.at + cast(x >> 4, i64), {.mask = live});
        found = live & ((word >> (x & 15) & 1) != 0);
      },
      [&] {
        auto stride = where(chunk.kind == 2, 2, 1);
        Tile before = zeros(x.shape(), i32);
        if_(
            chunk.kind == 2, [&] { before = at_most(s, chunk, x, live, 2); },
            [&] { before = at_most(s, chunk, x, live, 1); });
        auto at = chunk.at + cast(before - 1, i64) * cast(stride, i64);
        auto some = live & (before > 0);
        auto first = load(s.words + at, {.mask = some});
        Tile more = zeros(x.shape(), u16);
        for (auto _ : when(chunk.kind == 2)) more = load(s.words + at + 1, {.mask = some});
        found = some & (x - first <= more);
      });
  return found;
}
/// 64 numbers from 64 w on, as bits.
Tile bits_of(const Sets& s, const Chunk& chunk, const Tile& w) {
  Tile bits = zeros(w.shape(), u64);
  if_(
      chunk.kind == 1,
      [&] {
        for (int k = 0; k < 4; ++k) bits |= cast(load(s.words + chunk.at + cast(w, i64) * 4 + k), u64) << 16 * k;
      },
      [&] {
        // The run that holds the first number or begins behind it, then those that follow.
        auto low = cast(w << 6, u32);
        Tile run = max(at_most(s, chunk, cast(low, u16), w >= 0, 2) - 1, 0), going = run < chunk.size;
        while_([&] { return any(going); },
               [&] {
                 auto at = chunk.at + cast(run, i64) * 2;
                 auto first = cast(load(s.words + at, {.mask = going}), u32);
                 auto last = first + load(s.words + at + 1, {.mask = going});
                 auto touches = going & (first < low + 64) & (last >= low);
                 auto from = where(first > low, first - low, 0), to = where(last < low + 63, last - low, 63);
                 auto mask = (~full(w.shape(), 0, u64) << cast(from & 63, u64)) &
                             (~full(w.shape(), 0, u64) >> cast(63 - (to & 63), u64));
                 bits = where(touches, bits | mask, bits);
                 run += 1;
                 going = going & (last < low + 63) & (run < chunk.size);
               });
      });
  return bits;
}
auto intersect =
    kernel("user_roaring", [](const SetCfg& c, Ptr<const int8_t> kinds_a, Ptr<const int32_t> sizes_a,
                              Ptr<const int64_t> offsets_a, Ptr<const uint16_t> words_a, Ptr<const int8_t> kinds_b,
                              Ptr<const int32_t> sizes_b, Ptr<const int64_t> offsets_b, Ptr<const uint16_t> words_b,
                              Ptr<uint16_t> out, Ptr<int32_t> counts) {
      // out [chunks, 4096]: numbers in order, or the words of a bitmap
      static_check(1024 % c.B == 0, "whole steps make a bitmap of 1024 words");
      num_warps(c.warps);
      auto p = program_id(0);
      Sets a{kinds_a, sizes_a, offsets_a, words_a}, b{kinds_b, sizes_b, offsets_b, words_b};
      auto chunk = [&](const Sets& s) {
        return Chunk{load(s.kinds + p), load(s.sizes + p), multiple_of(load(s.offsets + p), 4)};
      };
      auto x = chunk(a), y = chunk(b);
      auto to = out + cast(p, i64) * 4096;
      Tile count = cast(0, i32);
      auto filter = [&](const Sets& list, const Chunk& l, const Sets& other, const Chunk& o) {
        for (auto i : range(0, l.size, c.B)) {
          auto k = i + arange(0, c.B);
          auto live = k < l.size;
          auto v = load(list.words + l.at + cast(k, i64), {.mask = live});
          auto keep = contains(other, o, v, live);
          auto place = cumsum(keep, axis(0)) + count;
          store(to + place - 1, v, {.mask = keep});
          count += sum(keep);
        }
      };
      if_(
          x.kind == 0, [&] { filter(a, x, b, y); },
          [&] {
            if_(
                y.kind == 0, [&] { filter(b, y, a, x); },
                [&] {
                  for (auto i : range(0, 1024, c.B)) {
                    auto w = i + arange(0, c.B);
                    auto bits = bits_of(a, x, w) & bits_of(b, y, w);
                    count += cast(sum(popcount(bits)), i32);
                    for (int k = 0; k < 4; ++k) store(to + w * 4 + k, cast(bits >> 16 * k, u16));
                  }
                });
          });
      store(counts + p, count);
    }).grid([](const SetCfg&, const auto&...) { return Grid{1}; });
Register r2("roaring", [](Env& e) {
  SetCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int chunks = e.big ? 8192 : 19, made = e.big ? 512 : chunks;  // big ones repeat
  struct Side {
    std::vector<int8_t> kinds;
    std::vector<int32_t> sizes;
    std::vector<int64_t> offsets;
    std::vector<uint16_t> words;
    std::vector<std::vector<bool>> sets;
  };
  std::array<Side, 2> sides;
  for (int s = 0; s < 2; ++s) {
    Side& side = sides[s];
    for (int p = 0; p < made; ++p) {
      const int kind = s ? p / 3 % 3 : p % 3;
      side.words.resize((side.words.size() + 3) / 4 * 4);
      std::vector<bool> set(1 << 16);
      if (kind == 2) {
        for (int x = int(e.uniform() * 300) * (p % 2); x < 1 << 16; x += 1 + int(e.uniform() * 900)) {
          const int end = std::min(1 << 16, x + 1 + int(e.uniform() * (p % 4 ? 700 : 40)));
          for (; x < end; ++x) set[x] = true;
        }
      } else {
        const int n = kind ? 20000 : p == 9 ? 0 : p == 12 ? 4096 : int(e.uniform() * 3000);
        for (int k = 0; k < n; ++k) set[size_t(e.uniform() * 65536)] = true;
      }
      side.kinds.push_back(int8_t(kind)), side.offsets.push_back(int64_t(side.words.size()));
      const size_t before = side.words.size();
      if (kind == 1) side.words.resize(before + 4096);
      for (int x = 0; x < 1 << 16; ++x) {
        if (!set[x]) continue;
        if (kind == 0) side.words.push_back(uint16_t(x));
        if (kind == 1) side.words[before + x / 16] |= uint16_t(1 << x % 16);
        if (kind == 2 && (x == 0 || !set[x - 1])) side.words.push_back(uint16_t(x)), side.words.push_back(0);
        if (kind == 2 && x && set[x - 1]) ++side.words.back();
      }
      side.sizes.push_back(int32_t(side.words.size() - before) / (kind == 2 ? 2 : 1));
      if (!e.big) side.sets.push_back(std::move(set));
    }
    side.words.push_back(0);
  }
  auto put = [&](const Side& s) {
    return std::tuple(repeated<int8_t>(e, chunks, s.kinds), repeated<int32_t>(e, chunks, s.sizes),
                      repeated<int64_t>(e, chunks, s.offsets), repeated<uint16_t>(e, s.words.size(), s.words));
  };
  auto [ka, sa, oa, wa] = put(sides[0]);
  auto [kb, sb, ob, wb] = put(sides[1]);
  auto out = constant<uint16_t>(e, size_t(chunks) * 4096, 7);
  auto counts = constant<int32_t>(e, chunks, -1);
  Job j;
  j.mbytes = 2e-6 * double(sides[0].words.size() + sides[1].words.size()) * chunks / made;
  const auto k = intersect.grid([chunks](const SetCfg&, const auto&...) { return Grid{chunks}; });
  j.add(k, c, ka.p, sa.p, oa.p, wa.p, kb.p, sb.p, ob.p, wb.p, out.p, counts.p);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    const auto count = counts.now();
    for (int p = 0; p < chunks; ++p) {
      std::vector<uint16_t> list, bits(4096);
      int n = 0;
      for (int x = 0; x < 1 << 16; ++x)
        if (sides[0].sets[p][x] && sides[1].sets[p][x])
          list.push_back(uint16_t(x)), bits[x / 16] |= uint16_t(1 << x % 16), ++n;
      const bool is_list = !sides[0].kinds[p] || !sides[1].kinds[p];
      const auto& want = is_list ? list : bits;
      const std::string name = "chunk " + std::to_string(p) + " of kinds " + std::to_string(sides[0].kinds[p]) +
                               " and " + std::to_string(sides[1].kinds[p]);
      if (count[p] != n) return name + ": " + std::to_string(count[p]) + " numbers instead of " + std::to_string(n);
      for (size_t i = 0; i < want.size(); ++i)
        if (got[p * 4096 + i] != want[i]) return name + ", place " + std::to_string(i);
    }
    return "";
  };
  return j;
});

}  // namespace suffixes_and_sets
}  // namespace users
