// queries.cpp - tables, series and genomes: groups summed before they meet in a hash table, a report with exact
// decimals, windows of a genome, motifs of a series, lists of increasing numbers, patterns looked up in a transformed
// text.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace queries {

// --- group by: a program sorts its rows, sums equal keys, and adds every group once to a table in memory (keys of 64
// bits put in by compare and swap); sums, smallest values and counts
struct GroupCfg {
  int B = 512, warps = 4;
};
auto group_by =
    kernel("user_group_by", [](const GroupCfg& c, Ptr<const int64_t> keys, Ptr<const double> values, Ptr<int64_t> table,
                               Ptr<double> sums, Ptr<int64_t> least, Ptr<int32_t> counts, I32 n, I32 slots) {
      // table: -1 where nobody is; least holds the bits of doubles, all of them positive
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto key = load(keys + i, {.mask = i < n, .other = INT64_MAX}), value = load(values + i, {.mask = i < n});
      auto order = argsort(key, axis(0));
      auto k = take(key, order, 0);
      auto v = take(value, order, 0);
      auto [last, sum, low, count] = scan({k, v, v, full({c.B}, 1, i32)}, axis(0),
                                          [](Tile k0, Tile s0, Tile m0, Tile n0, Tile k1, Tile s1, Tile m1, Tile n1) {
                                            auto same = k0 == k1;
                                            return std::tuple(k1, where(same, s0 + s1, s1),
                                                              where(same, min(m0, m1), m1), where(same, n0 + n1, n1));
                                          });
      auto p = arange(0, c.B);
      Tile open = (k != INT64_MAX) & ((p == c.B - 1) | (take(k, min(p + 1, c.B - 1), 0) != k));
      auto hash = cast(k, u64) * 0x9E3779B97F4A7C15ull;
      Tile slot = cast(hash >> 40, i32) % slots;
      while_([&] { return any(open); },
             [&] {
               auto before = atomic_cas(table + slot, -1, k, {.mask = open, .order = Order::relaxed});
               auto mine = open & ((before == -1) | (before == k));
               atomic_add(sums + slot, sum, {.mask = mine, .order = Order::relaxed});
               atomic_min(least + slot, bitcast(low, i64), {.mask = mine, .order = Order::relaxed});
               atomic_add(counts + slot, count, {.mask = mine, .order = Order::relaxed});
               open = open & ~mine;
               slot = where(open, (slot + 1) % slots, slot);
             });
    }).grid([](const GroupCfg& c, auto, auto, auto, auto, auto, auto, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r5("group_by", [](Env& e) {
  GroupCfg c;
  if (!e.big) c = {48, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 22 : 333, slots = e.big ? 1 << 16 : 61, groups = e.big ? 10000 : 40;
  auto keys = drawn<int64_t>(e, n, [&] { return int64_t(e.uniform() * e.uniform() * groups) * 1000000007; });
  auto values = random<double>(e, n, .1, 5);
  auto table = constant<int64_t>(e, slots, -1), least = filled<int64_t>(e, slots, [](size_t) { return INT64_MAX; });
  auto sums = constant<double>(e, slots, 0);
  auto counts = constant<int32_t>(e, slots, 0);
  Job j;
  j.mbytes = 16e-6 * n;
  j.inTurn = true;
  j.add(group_by, c, keys.p, values.p, table.p, sums.p, least.p, counts.p, n, slots);
  j.check = [=]() -> std::string {
    struct Group {
      double sum = 0, low = 1e9;
      int n = 0;
    };
    std::map<int64_t, Group> want;
    for (int i = 0; i < n; ++i) {
      Group& g = want[keys.at(i)];
      g.sum += values[i], g.low = std::min(g.low, values[i]), ++g.n;
    }
    const auto k = table.now(), low = least.now();
    const auto s = sums.now();
    const auto m = counts.now();
    size_t found = 0;
    for (int i = 0; i < slots; ++i) {
      if (k[i] < 0) continue;
      const Group& g = want[k[i]];
      if (++found; g.n != m[i] || std::bit_cast<double>(low[i]) != g.low || std::abs(s[i] - g.sum) > 1e-9)
        return "group " + std::to_string(k[i]);
    }
    return found == want.size() ? "" : "number of groups";
  };
  return j;
});

// --- a report over a table of orders (TPC-H Q1): two bytes make the group, decimals of two places stay exact in 64
// bits; programs walk over rows and add their groups at the end
struct ReportCfg {
  int B = 256, G = 6, programs = 528, warps = 4;
};
auto report =
    kernel("user_report", [](const ReportCfg& c, Ptr<const uint8_t> flag, Ptr<const uint8_t> status,
                             Ptr<const int32_t> shipped, Ptr<const int64_t> quantity, Ptr<const int64_t> price,
                             Ptr<const int8_t> discount, Ptr<const int8_t> tax, Ptr<int64_t> out, I32 n, I32 until) {
      // out [G, 5]: quantity, price, price less discount, that with tax, rows
      num_warps(c.warps);
      auto g = arange(0, c.G).col();
      std::array<Tile, 5> sums;
      for (Tile& s : sums) s = zeros({c.G, c.B}, i64);
      for (auto i : range(program_id(0) * c.B, n, num_programs(0) * c.B)) {
        auto at = i + arange(0, c.B);
        auto in = at < n;
        in &= load(shipped + at, {.mask = in}) <= until;
        auto f = cast(load(flag + at, {.mask = in}), i32), s = cast(load(status + at, {.mask = in}), i32);
        auto group = where(f == 'A', 0, where(f == 'N', 2, 4)) + where(s == 'F', 0, 1);
        auto q = load(quantity + at, {.mask = in}), p = load(price + at, {.mask = in});
        auto less = p * (100 - cast(load(discount + at, {.mask = in}), i64));
        auto taxed = less * (100 + cast(load(tax + at, {.mask = in}), i64));
        auto mine = (group.row() == g) & in.row();
        auto add = [&](int k, const Tile& x) { sums[k] += where(mine, x.row(), 0); };
        add(0, q), add(1, p), add(2, less), add(3, taxed), add(4, cast(in, i64));
      }
      for (int k = 0; k < 5; ++k)
        atomic_add(out + arange(0, c.G) * 5 + k, squeeze(sum(sums[k], axis(1)), 1), {.order = Order::relaxed});
    }).grid([](const ReportCfg& c, auto...) { return Grid{c.programs}; });
Register r6("report", [](Env& e) {
  ReportCfg c;
  if (!e.big) c = {32, 6, 3, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 24 : 555;
  auto flag = drawn<uint8_t>(e, n, [&] { return uint8_t("ANR"[int(e.uniform() * 2.999)]); });
  auto status = drawn<uint8_t>(e, n, [&] { return uint8_t("FO"[int(e.uniform() * 1.999)]); });
  auto shipped = integers<int32_t>(e, n, 8000, 10600);
  auto quantity = integers<int64_t>(e, n, 100, 5000), price = integers<int64_t>(e, n, 90000, 10000000);
  auto discount = integers<int8_t>(e, n, 0, 11), tax = integers<int8_t>(e, n, 0, 9);
  auto out = constant<int64_t>(e, c.G * 5, 0);
  Job j;
  j.mbytes = 24e-6 * n;
  j.inTurn = true;
  j.add(report, c, flag.p, status.p, shipped.p, quantity.p, price.p, discount.p, tax.p, out.p, n, 10471);
  j.check = [=]() -> std::string {
    std::vector<int64_t> want(c.G * 5);
    for (int i = 0; i < n; ++i) {
      if (shipped.at(i) > 10471) continue;
      int64_t* w = &want[((flag.at(i) == 'A' ? 0 : flag.at(i) == 'N' ? 2 : 4) + (status.at(i) == 'F' ? 0 : 1)) * 5];
      const int64_t less = price.at(i) * (100 - discount.at(i));
      w[0] += quantity.at(i), w[1] += price.at(i), w[2] += less, w[3] += less * (100 + tax.at(i)), ++w[4];
    }
    return out.now() == want ? "" : "sums";
  };
  return j;
});

// --- minimizers: of every window of W neighbouring k-mers (two bits a base, both strands) the one of the smallest
// hash; a bit says where one is chosen. A program hashes B k-mers once and looks at twice as many of them each time
struct MinimizerCfg {
  int B = 256, K = 15, W = 10, warps = 4;
};
auto minimizers =
    kernel("user_minimizers", [](const MinimizerCfg& c, Ptr<const uint8_t> bases, Ptr<uint32_t> chosen, I32 n) {
      // chosen [(n + 31) / 32] starts as zeros; a word of 32 bits of hash and the k-mer's number
      num_warps(c.warps);
      static_check(2 * c.K <= 32, "k-mers of 32 bits");
      const uint64_t mask = (1ull << (2 * c.K)) - 1;
      const int windows = c.B - c.W + 1, bits = 20;
      auto first = program_id(0) * windows;
      auto i = arange(0, c.B), at = first + i;
      Tile forth = zeros({c.B}, u32), back = forth;
      for (int k = 0; k < c.K; ++k) {
        auto x = cast(load(bases + at + k, {.mask = at + k < n}), u32);
        forth = (forth << 2) | x, back = back | ((3 - x) << (2 * k));
      }
      Tile h = cast(min(forth, back), u64);
      h = (~h + (h << 21)) & mask, h = h ^ (h >> 24), h = (h + (h << 3) + (h << 8)) & mask;
      h = h ^ (h >> 14), h = (h + (h << 2) + (h << 4)) & mask, h = h ^ (h >> 28), h = (h + (h << 31)) & mask;
      Tile least = where(at + c.K <= n, (h << bits) | cast(i, u64), UINT64_MAX);
      auto ahead = [&](int by) { least = min(least, take(least, min(i + by, c.B - 1), 0)); };
      int span = 1;
      for (; 2 * span <= c.W; span *= 2) ahead(span);
      if (span < c.W) ahead(c.W - span);
      auto place = first + cast(least & ((1ull << bits) - 1), i32);
      auto isNew = (i == 0) | (take(place, max(i - 1, 0), 0) != place);
      auto window = (i < windows) & (at + c.W - 1 + c.K <= n);
      atomic_or(chosen + place / 32, full({c.B}, 1u, u32) << cast(place % 32, u32),
                {.mask = window & isNew, .order = Order::relaxed});
    }).grid([](const MinimizerCfg& c, auto, auto, int n) { return Grid{cdiv(n, c.B - c.W + 1)}; });
Register r7("minimizers", [](Env& e) {
  MinimizerCfg c;
  if (!e.big) c = {48, 7, 5, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 23 : 301;
  auto bases = integers<uint8_t>(e, n, 0, 4);
  auto chosen = constant<uint32_t>(e, (n + 31) / 32, 0);
  Job j;
  j.mbytes = 1.125e-6 * n;
  j.inTurn = true;
  j.add(minimizers, c, bases.p, chosen.p, n);
  j.check = [=]() -> std::string {
    const uint64_t mask = (1ull << (2 * c.K)) - 1;
    std::vector<uint64_t> hash;
    for (int at = 0; at + c.K <= n; ++at) {
      uint64_t forth = 0, back = 0;
      for (int i = 0; i < c.K; ++i)
        forth = forth << 2 | bases.at(at + i), back |= uint64_t(3 - bases.at(at + i)) << (2 * i);
      uint64_t h = std::min(forth, back);
      h = (~h + (h << 21)) & mask, h ^= h >> 24, h = (h + (h << 3) + (h << 8)) & mask, h ^= h >> 14;
      h = (h + (h << 2) + (h << 4)) & mask, h ^= h >> 28, h = (h + (h << 31)) & mask;
      hash.push_back(h);
    }
    std::vector<uint32_t> want(chosen.n);
    for (int i = 0; i + c.W <= int(hash.size()); ++i) {
      const int at = int(std::min_element(hash.begin() + i, hash.begin() + i + c.W) - hash.begin());
      want[at / 32] |= 1u << at % 32;
    }
    return chosen.now() == want ? "" : "chosen places";
  };
  return j;
});

// --- motifs of a series (matrix profile): along every diagonal of the table of all pairs of windows the product moves
// by one old and one new point; the best partner of every window, by atomic maxima of correlation and place in one word
struct ProfileCfg {
  int B = 64, W = 32, warps = 2;
};
auto profile = kernel("user_profile", [](const ProfileCfg& c, Ptr<const double> x, Ptr<const double> mean,
                                         Ptr<const double> inverse, Ptr<int64_t> best, I32 windows, I32 apart) {
                 // x [windows + W - 1], mean and inverse deviation (1 / (sqrt(W) sigma)) of windows; best starts as -1
                 num_warps(c.warps);
                 auto d = apart + program_id(0) * c.B + arange(0, c.B);  // diagonals
                 auto in = d < windows;
                 Tile product = zeros({c.B}, f64);
                 for (auto k : range(c.W)) product += load(x + k) * load(x + d + k, {.mask = in});
                 auto longest = windows - apart - program_id(0) * c.B;
                 for (auto i : range(longest)) {
                   auto j = i + d;
                   auto m = j < windows;
                   for (auto _ : when(i > 0))
                     product += load(x + i + c.W - 1) * load(x + j + c.W - 1, {.mask = m}) -
                                load(x + i - 1) * load(x + j - 1, {.mask = m});
                   auto r = (product - c.W * load(mean + i) * load(mean + j, {.mask = m})) * load(inverse + i) *
                            load(inverse + j, {.mask = m});
                   auto level = cast((r + 1.) * 1e6, i64) << 32;
                   atomic_max(best + i, max(where(m, level | cast(j, i64), -1)), {.order = Order::relaxed});
                   atomic_max(best + j, level | cast(i, i64), {.mask = m, .order = Order::relaxed});
                 }
               }).grid([](const ProfileCfg& c, auto, auto, auto, auto, int windows, int apart) {
  return Grid{cdiv(std::max(windows - apart, 0), c.B)};
});
Register r8("matrix_profile", [](Env& e) {
  ProfileCfg c;
  if (!e.big) c = {16, 8, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int windows = e.big ? 1 << 15 : 75, apart = c.W / 4;
  auto x = random<double>(e, windows + c.W - 1);
  auto of_window = [&](auto f) {
    return filled<double>(e, windows, [&, f](size_t i) {
      double s = 0, q = 0;
      for (int k = 0; k < c.W; ++k) s += x[i + k], q += x[i + k] * x[i + k];
      return f(s / c.W, q - s * s / c.W);
    });
  };
  auto mean = of_window([](double m, double) { return m; });
  auto inverse = of_window([](double, double q) { return 1 / std::sqrt(q); });
  auto best = filled<int64_t>(e, windows, [](size_t) { return -1; });
  Job j;
  j.gflop = 1e-9 * windows * windows * 5;
  j.inTurn = true;
  j.add(profile, c, x.p, mean.p, inverse.p, best.p, windows, apart);
  j.check = [=]() -> std::string {
    const auto got = best.now();
    auto r = [&](int a, int b) {
      double s = 0;
      for (int k = 0; k < c.W; ++k) s += x[a + k] * x[b + k];
      return (s - c.W * mean[a] * mean[b]) * inverse[a] * inverse[b];
    };
    for (int i = 0; i < windows; ++i) {
      double most = -2;
      for (int k = 0; k < windows; ++k)
        if (std::abs(i - k) >= apart) most = std::max(most, r(i, k));
      const int partner = int(got[i] & 0xFFFFFFFF);
      if (got[i] < 0 || std::abs(partner - i) < apart || std::abs(r(i, partner) - most) > 2e-6 ||
          std::abs(double(got[i] >> 32) * 1e-6 - 1 - most) > 2e-6)
        return "window " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- lists of increasing numbers (Elias and Fano): high parts in unary, low parts packed; a program a list: ones of a
// block of words are counted, and each finds its number
struct FanoCfg {
  int W = 64, warps = 4;
};
auto elias_fano =
    kernel("user_elias_fano", [](const FanoCfg& c, Ptr<const uint64_t> high, Ptr<const uint64_t> low,
                                 Ptr<const int32_t> highAt, Ptr<const int32_t> lowAt, Ptr<const uint8_t> width,
                                 Ptr<const int32_t> outAt, Ptr<int64_t> out) {
      // list l: words high[highAt[l] ..], low parts of width[l] bits behind each other from low[lowAt[l]] on
      num_warps(c.warps);
      auto l = program_id(0);
      auto from = load(highAt + l), words = load(highAt + l + 1) - from, to = load(outAt + l);
      auto bits = cast(load(width + l), i32), lows = load(lowAt + l);
      Tile done = full({}, 0, i32);
      for (auto w : range(0, words, c.W)) {
        auto at = w + arange(0, c.W);
        auto word = load(high + from + at, {.mask = at < words});
        auto n = cast(popcount(word), i32);
        Tile rank = done + cumsum(n, axis(0)) - n, rest = word;
        while_([&] { return any(rest != 0); },
               [&] {
                 auto open = rest != 0;
                 auto bit = cast(countr_zero(rest), i32);
                 auto upper = cast(at * 64 + bit - rank, i64);
                 auto place = cast(rank, i64) * cast(bits, i64);
                 auto first = low + lows + (place >> 6);
                 auto shift = cast(place & 63, u64);
                 auto m = open & (bits > 0);
                 auto a = load(first, {.mask = m}) >> shift;
                 auto b = where(shift > 0, load(first + 1, {.mask = m & (shift > 0)}) << ((64 - shift) & 63), 0);
                 auto lower = (a | b) & ((cast(full({}, 1, i64), u64) << cast(bits, u64)) - 1);
                 store(out + to + rank, (upper << cast(bits, i64)) | cast(lower, i64), {.mask = open});
                 rest = rest & (rest - 1), rank += cast(open, i32);
               });
        done += sum(n);
      }
    }).grid([](const FanoCfg&, auto...) { return Grid{0}; });
Register r10("elias_fano", [](Env& e) {
  FanoCfg c;
  if (!e.big) c = {6, 1};
  c.warps = e.field("warps", c.warps), c.W = e.field("W", c.W);
  const int L = e.big ? 4096 : 9, most = e.big ? 8192 : 300;
  std::vector<uint64_t> high, low;
  std::vector<int32_t> highAt{0}, lowAt{0}, outAt{0};
  std::vector<uint8_t> width;
  std::vector<int64_t> want;
  for (int l = 0; l < L; ++l) {
    const int n = l == 3 ? 0 : 1 + int(e.uniform() * most), bits = l % 9 == 4 ? 0 : l % 23;
    std::vector<uint64_t> h, w(n * bits / 64 + 2);
    int64_t value = 0;
    for (int i = 0; i < n; ++i) {
      value += int64_t(e.uniform() * (2 << bits));
      want.push_back(value);
      const uint64_t at = uint64_t(value >> bits) + i, part = uint64_t(value) & ((1ull << bits) - 1);
      h.resize(std::max<size_t>(h.size(), at / 64 + 1));
      h[at / 64] |= 1ull << at % 64;
      if (bits) {
        w[i * bits / 64] |= part << i * bits % 64;
        if (i * bits % 64 + bits > 64) w[i * bits / 64 + 1] |= part >> (64 - i * bits % 64);
      }
    }
    high.insert(high.end(), h.begin(), h.end()), low.insert(low.end(), w.begin(), w.end());
    highAt.push_back(int(high.size())), lowAt.push_back(int(low.size())), outAt.push_back(int(want.size()));
    width.push_back(uint8_t(bits));
  }
  auto array = [&]<class T>(const std::vector<T>& v) { return filled<T>(e, v.size(), [&](size_t i) { return v[i]; }); };
  auto h = array(high), w = array(low);
  auto ha = array(highAt), la = array(lowAt), oa = array(outAt);
  auto b = array(width);
  auto out = constant<int64_t>(e, want.size(), -1);
  Job j;
  j.mbytes = 8e-6 * (high.size() + low.size() + want.size());
  auto k = elias_fano.grid([L](const FanoCfg&, auto...) { return Grid{L}; });
  j.add(k, c, h.p, w.p, ha.p, la.p, b.p, oa.p, out.p);
  j.check = [=] { return out.now() == want ? "" : "numbers"; };
  return j;
});

// --- patterns looked up in a transformed text (FM index): from the last letter back, ranks by counting bits in blocks
// of 64 letters, records of 32 bytes: how many of each letter before, and two bit planes
struct IndexCfg {
  int B = 128, warps = 4;
};
auto fm_search =
    kernel("user_fm_search", [](const IndexCfg& c, Ptr<const uint32_t> blocks, Ptr<const uint32_t> before,
                                Ptr<const uint8_t> patterns, Ptr<const int32_t> start, Ptr<int32_t> low,
                                Ptr<int32_t> high, I32 n, U32 end, U32 stop) {
      // blocks [.., 8]: four counts, two words low bits, two words high bits; before [4]: letters that are smaller;
      // `stop`: where the text's end stands, which is no letter and kept as 0
      num_warps(c.warps);
      auto p = program_id(0) * c.B + arange(0, c.B);
      auto in = p < n;
      auto first = load(start + p, {.mask = in});
      Tile at = load(start + p + 1, {.mask = in}) - 1;
      Tile l = zeros({c.B}, u32), h = full({c.B}, end, u32);
      auto rank = [&](Tile letter, Tile i, Tile mask) {  // how many of a letter stand before i
        auto block = blocks + cast(i / 64, i64) * 8;
        auto count = load(block + cast(letter, i64), {.mask = mask});
        auto word = [&](int k) {
          return cast(load(block + (4 + k), {.mask = mask}), u64) | cast(load(block + (5 + k), {.mask = mask}), u64)
                                                                        << 32;
        };
        auto a = where((letter & 1) == 1, word(0), ~word(0)), b = where((letter & 2) == 2, word(2), ~word(2));
        auto below = (cast(full({c.B}, 1, i32), u64) << cast(i % 64, u64)) - 1;
        auto ends = (letter == 0) & (stop >= i / 64 * 64) & (stop < i);
        return count + cast(popcount(a & b & below), u32) - cast(ends, u32);
      };
      Tile open = in & (at >= first);
      while_([&] { return any(open); },
             [&] {
               auto letter = cast(load(patterns + at, {.mask = open}), u32);
               auto base = load(before + letter, {.mask = open});
               auto nl = base + rank(letter, l, open), nh = base + rank(letter, h, open);
               l = where(open, nl, l), h = where(open, nh, h);
               at -= 1;
               open = open & (at >= first) & (l < h);
             });
      store(low + p, cast(l, i32), {.mask = in});
      store(high + p, cast(h, i32), {.mask = in});
    }).grid([](const IndexCfg& c, auto, auto, auto, auto, auto, auto, int n, uint32_t, uint32_t) {
      return Grid{cdiv(n, c.B)};
    });
Register r12("fm_search", [](Env& e) {
  IndexCfg c;
  if (!e.big) c = {32, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int T = e.big ? 20000 : 500, n = e.big ? 1 << 20 : 77, length = e.big ? 24 : 5;
  std::string text;
  for (int i = 0; i < T; ++i) text += char(int(e.uniform() * 3.999));
  std::vector<int> suffix(T + 1);
  std::iota(suffix.begin(), suffix.end(), 0);
  std::sort(suffix.begin(), suffix.end(), [&](int a, int b) { return text.compare(a, T, text, b, T) < 0; });
  std::vector<uint32_t> blocks((T / 64 + 2) * 8), before{1, 1, 1, 1}, counts(4);
  uint32_t stop = 0;
  for (int i = 0; i <= int(blocks.size() / 8 * 64) - 1; ++i) {
    uint32_t* b = &blocks[i / 64 * 8];
    if (i % 64 == 0) std::copy(counts.begin(), counts.end(), b);
    if (i > T) continue;
    if (!suffix[i]) {
      stop = i;
      continue;
    }
    const int x = text[suffix[i] - 1];
    ++counts[x];
    if (x & 1) b[4 + i % 64 / 32] |= 1u << i % 32;
    if (x & 2) b[6 + i % 64 / 32] |= 1u << i % 32;
  }
  for (int a = 0; a < 4; ++a)
    for (int k = 0; k < a; ++k) before[a] += counts[k];
  std::vector<uint8_t> patterns;
  std::vector<int32_t> start{0};
  for (int p = 0; p < n; ++p) {
    const int from = int(e.uniform() * (T - length)), m = p == 5 ? 0 : 1 + p % length;
    for (int i = 0; i < m; ++i) patterns.push_back(p % 3 == 2 ? uint8_t(e.uniform() * 3.999) : uint8_t(text[from + i]));
    start.push_back(int(patterns.size()));
  }
  auto array = [&]<class U>(const std::vector<U>& v) { return filled<U>(e, v.size(), [&](size_t i) { return v[i]; }); };
  auto b = array(blocks), be = array(before);
  auto pt = array(patterns);
  auto s = array(start);
  auto low = constant<int32_t>(e, n, -1), high = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 64e-6 * patterns.size();
  j.add(fm_search, c, b.p, be.p, pt.p, s.p, low.p, high.p, n, uint32_t(T + 1), stop);
  j.check = [=]() -> std::string {
    const auto l = low.now(), h = high.now();
    for (int p = 0; p < n; ++p) {
      const std::string word(patterns.begin() + start[p], patterns.begin() + start[p + 1]);
      int count = word.empty() ? T + 1 : 0;
      for (size_t at = text.find(word); !word.empty() && at != std::string::npos; at = text.find(word, at + 1)) ++count;
      if (h[p] - l[p] != count) return "pattern " + std::to_string(p);
      if (count && !word.empty() && text.compare(suffix[l[p]], word.size(), word))
        return "place of " + std::to_string(p);
    }
    return "";
  };
  return j;
});

}  // namespace queries
}  // namespace users
