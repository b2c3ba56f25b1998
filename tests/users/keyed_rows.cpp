// keyed_rows.cpp - rows found by keys, and columns packed: insertion into a cuckoo table by exchanges, joins with the
// last row before a time, doubles packed as whole numbers with exceptions.
#include <cstring>

#include "tests/users/use.h"
namespace users {
namespace keyed_rows {

// --- a cuckoo table: every lane exchanges what it holds with a slot, and goes on with what it pushed out
struct Cuckoo {
  int B = 256, most = 64;
};
Tile slot_of(const Tile& key, int which, const Tile& slots) {
  Tile h = which == 0 ? key * 0x9E3779B1u : (key ^ 0x85EBCA6Bu) * 0xC2B2AE35u;
  h = h ^ (h >> 15);
  return cast(mulhi(h, slots), i32);
}
auto cuckoo = kernel("user_cuckoo", [](const Cuckoo& c, Ptr<uint64_t> table, Ptr<const uint32_t> keys,
                                       Ptr<const uint32_t> values, Ptr<int32_t> failed, I32 n, U32 slots) {
                Tile i = program_id(0) * c.B + arange(0, c.B);
                Tile active = i < n;
                Tile item =
                    cast(load(keys + i, {.mask = active}), u64) << 32 | cast(load(values + i, {.mask = active}), u64);
                Tile at = slot_of(cast(item >> 32, u32), 0, slots), steps = zeros({c.B}, i32);
                while_([&] { return any(active); },
                       [&] {
                         Tile out = atomic_exchange(table + at, item, {.mask = active});
                         Tile pushed = active & (out != 0) & (steps < c.most - 1);
                         Tile lost = active & (out != 0) & (steps >= c.most - 1);
                         atomic_add(failed, sum(cast(lost, i32)));
                         Tile key = cast(out >> 32, u32);
                         Tile first = slot_of(key, 0, slots), second = slot_of(key, 1, slots);
                         item = where(pushed, out, item);
                         at = where(pushed, where(at == first, second, first), at);
                         steps += cast(active, i32);
                         active = pushed;
                       });
              }).grid([](const Cuckoo& c, uint64_t*, const uint32_t*, const uint32_t*, int32_t*, int n, uint32_t) {
  return Grid{cdiv(n, c.B)};
});
auto cuckoo_find = kernel("user_cuckoo_find", [](const Cuckoo& c, Ptr<const uint64_t> table, Ptr<const uint32_t> keys,
                                                 Ptr<int64_t> found, I32 n, U32 slots) {
                     Tile i = program_id(0) * c.B + arange(0, c.B);
                     Tile in = i < n;
                     Tile key = load(keys + i, {.mask = in});
                     Tile a = load(table + slot_of(key, 0, slots), {.mask = in});
                     Tile b = load(table + slot_of(key, 1, slots), {.mask = in});
                     Tile hit_a = cast(a >> 32, u32) == key, hit_b = cast(b >> 32, u32) == key;
                     Tile value = where(hit_a, a, b) & 0xFFFFFFFFull;
                     store(found + i, where(hit_a | hit_b, cast(value, i64), -1), {.mask = in});
                   }).grid([](const Cuckoo& c, const uint64_t*, const uint32_t*, int64_t*, int n, uint32_t) {
  return Grid{cdiv(n, c.B)};
});
Register q1("cuckoo", [](Env& e) {
  const int n = e.big ? 8'000'000 : 700, asked = e.big ? 8'000'000 : 999;
  const uint32_t slots = e.big ? 20'000'003 : 2001;
  auto key = [](size_t i) { return uint32_t(i * 2654435761u + 12345u) | 1u; };
  auto keys = filled<uint32_t>(e, n, [&](size_t i) { return key(i * 2); });
  auto values = filled<uint32_t>(e, n, [&](size_t i) { return uint32_t(i * 7); });
  auto queries = filled<uint32_t>(e, asked, [&](size_t i) { return key((i * 13 % asked) * 2); });
  auto table = constant<uint64_t>(e, slots, 0);
  auto failed = constant<int32_t>(e, 1, 0);
  auto found = constant<int64_t>(e, asked, 9);
  Job j;
  restore(e, j, table, failed);
  j.add(cuckoo, Cuckoo{e.field("B", 256)}, table.p, keys.p, values.p, failed.p, n, slots);
  j.add(cuckoo_find, Cuckoo{}, table.p, queries.p, found.p, asked, slots);
  j.add(cuckoo_find, Cuckoo{}, table.p, queries.p, found.p, 0, slots);  // nothing asked
  j.check = [=]() -> std::string {
    if (failed.now()[0] != 0) return "keys were lost";
    std::map<uint32_t, std::vector<double>> all;
    for (int i = 0; i < n; ++i) all[keys.h[i]].push_back(values.h[i]);
    const auto got = found.now();
    for (int i = 0; i < asked; ++i) {
      const auto it = all.find(queries.h[i]);
      if (it == all.end() ? got[i] != -1
                          : std::find(it->second.begin(), it->second.end(), double(got[i])) == it->second.end())
        return "query " + std::to_string(i) + " found " + std::to_string(got[i]);
    }
    return "";
  };
  return j;
});

// --- joins by time: for every trade the last quote of its symbol that is not younger, nor older than a tolerance
struct Asof {
  int B = 512;
};
auto asof_join = kernel("user_asof_join",
                        [](const Asof& c, Ptr<const int32_t> symbol, Ptr<const int64_t> time, I32 n,
                           Ptr<const int64_t> first, Ptr<const int64_t> quote_time, Ptr<const double> quote,
                           Ptr<double> price, Ptr<int64_t> row, I64 tolerance) {
                          Tile i = program_id(0) * c.B + arange(0, c.B);
                          Tile in = i < n;
                          Tile s = load(symbol + i, {.mask = in}), t = load(time + i, {.mask = in});
                          Tile low = load(first + s, {.mask = in}), high = load(first + s + 1, {.mask = in});
                          Tile begin = low;
                          while_([&] { return any(low < high); },
                                 [&] {
                                   Tile open = low < high;
                                   Tile middle = (low + high) >> 1;
                                   Tile later = load(quote_time + middle, {.mask = open}) > t;
                                   high = where(open & later, middle, high);
                                   low = where(open & ~later, middle + 1, low);
                                 });
                          Tile at = low - 1;
                          Tile some = in & (at >= begin);
                          some = some & (t - load(quote_time + at, {.mask = some}) <= tolerance);
                          store(price + i, load(quote + at, {.mask = some, .other = double(NAN)}), {.mask = in});
                          store(row + i, where(some, at, -1), {.mask = in});
                        })
                     .grid([](const Asof& c, const int32_t*, const int64_t*, int n, const int64_t*, const int64_t*,
                              const double*, double*, int64_t*, int64_t) { return Grid{cdiv(n, c.B)}; });
Register q2("asof_join", [](Env& e) {
  const int n = e.big ? 4'000'000 : 777, S = e.big ? 2000 : 9, per = e.big ? 4000 : 30;
  std::vector<int64_t> starts{0};
  for (int s = 0; s < S; ++s)
    starts.push_back(starts.back() + (e.big ? per : s % 3 * 17 % (per + 1)));  // some have none
  const int64_t Q = starts.back(), base = int64_t(1) << 60, apart = 1'000'000'007;
  auto symbol = filled<int32_t>(e, n, [&](size_t) { return int(e.uniform() * S); });
  auto time = filled<int64_t>(e, n, [&](size_t) { return base + int64_t(e.uniform() * per) * apart / 2; });
  auto first = filled<int64_t>(e, S + 1, [&](size_t i) { return starts[i]; });
  std::vector<int64_t> times(e.device ? Q : 0);
  for (int s = 0; s < S && e.device; ++s)
    for (int64_t q = starts[s]; q < starts[s + 1]; ++q)
      times[q] = base + (q - starts[s]) / 2 * apart + s;  // pairs of equal times: the later one counts
  auto quote_time = filled<int64_t>(e, Q, [&](size_t i) { return times[i]; });
  auto quote = random<double>(e, Q, 10, 20);
  auto price = constant<double>(e, n, 9);
  auto row = constant<int64_t>(e, n, 9);
  const int64_t tolerance = 3 * apart;
  Job j;
  j.add(asof_join, Asof{}, symbol.p, time.p, n, first.p, quote_time.p, quote.p, price.p, row.p, tolerance);
  j.check = [=]() -> std::string {
    const auto prices = price.now();
    std::vector<double> rows;
    for (int i = 0; i < n; ++i) {
      const auto from = quote_time.h.begin() + starts[symbol.h[i]], to = quote_time.h.begin() + starts[symbol.h[i] + 1];
      const auto it = std::upper_bound(from, to, time.h[i]);
      const bool some = it != from && time.h[i] - it[-1] <= tolerance;
      rows.push_back(some ? double(it - 1 - quote_time.h.begin()) : -1);
      const double want = some ? quote[size_t(rows.back())] : NAN;
      if (some ? prices[i] != want : !std::isnan(prices[i])) return "price " + std::to_string(i);
    }
    return agree(row.now(), rows, 0, 0.1);
  };
  return j;
});

// --- doubles that were decimals (ALP): the pair of powers of ten under which most of 1024 numbers come back from whole
// numbers; differences to their least one packed by as many bits as they need, 16 numbers a lane; the rest are
// exceptions
struct Alp {
  int candidates = 5;
};
auto alp =
    kernel("user_alp",
           [](const Alp& c, Ptr<const double> x, Ptr<const double> powers, Ptr<const double> parts, Ptr<uint64_t> words,
              Ptr<int64_t> header, Ptr<double> exceptions, Ptr<int32_t> places, I64 n) {
             auto v = program_id(0);
             Tile i = arange(0, 16).col() * 64 + arange(0, 64).row();
             Tile at = cast(v, i64) * 1024 + i;
             Tile value = load(x + at, {.mask = at < n});
             Tile best = full({}, 0, i32), fewest = full({}, 1025, i32), code = zeros({16, 64}, i64);
             Tile wrong = full({16, 64}, false, i1);
             for (int k = 0; k < c.candidates; ++k) {  // unrolled: powers 10^e, and 10^-e as the decoder multiplies
               Tile p = load(powers + k), q = load(parts + k);
               Tile scaled = value * p;
               Tile fits = abs(scaled) < 4503599627370496.0;
               Tile whole = cast(rint(where(fits, scaled, 0.0)), i64);
               Tile off = (bitcast(mul_rn(cast(whole, f64), q), i64) != bitcast(value, i64)) | ~fits;
               Tile count = sum(cast(off, i32));
               Tile better = count < fewest;
               best = where(better, k, best), fewest = min(fewest, count);
               code = where(better, whole, code), wrong = where(better, off, wrong);
             }
             Tile good = ~wrong;
             Tile least = min(where(good, code, int64_t(1) << 62)), most = max(where(good, code, -(int64_t(1) << 62)));
             Tile some = fewest < 1024;
             least = where(some, least, int64_t(0));
             Tile span = where(some, most - least, int64_t(0));
             Tile bits = 64 - cast(countl_zero(cast(span, u64)), i32);
             Tile delta = where(good, cast(code - least, u64), cast(zeros({16, 64}, i64), u64));
             Tile lane = arange(0, 64), word = zeros({64}, u64), filled = zeros({}, i32), stored = zeros({}, i32);
             auto base = words + cast(v, i64) * 1024;
             for (int k = 0; k < 16; ++k) {
               Tile d = reshape(extract(delta, {k, 0}, {1, 64}), {64});
               word = word | (d << cast(filled, u64));
               filled += bits;
               if_(filled >= 64, [&] {
                 store(base + stored * 64 + lane, word);
                 filled -= 64, stored += 1;
                 Tile rest = bits - filled;
                 word = where(filled > 0, d >> cast(min(rest, 63), u64), cast(zeros({64}, i32), u64));
               });
             }
             if_(filled > 0, [&] { store(base + stored * 64 + lane, word); });
             Tile flat = ravel(wrong & (at < n));
             Tile spot = cumsum(cast(flat, i32), axis(0)) - 1;
             store(exceptions + cast(v, i64) * 1024 + spot, ravel(value), {.mask = flat});
             store(places + cast(v, i64) * 1024 + spot, ravel(i), {.mask = flat});
             Tile h = arange(0, 4);
             Tile head =
                 where(h == 0, least,
                       where(h == 1, cast(bits, i64), where(h == 2, cast(best, i64), cast(sum(cast(flat, i32)), i64))));
             store(header + cast(v, i64) * 4 + h, head);
           })
        .grid([](const Alp&, const double*, const double*, const double*, uint64_t*, int64_t*, double*, int32_t*,
                 int64_t n) { return Grid{cdiv(n, 1024)}; });
Register q3("alp", [](Env& e) {
  const int64_t n = e.big ? 16'000'000 : 1024 * 7 + 333, blocks = cdiv(n, 1024);
  auto x = filled<double>(e, e.big ? 102'400 : n, [&](size_t i) {
    const double digits = std::array{100., 1000., 1., 1e5, 10.}[i / 1024 % 5];
    if (i / 1024 == 4) return 42.;                       // nothing to pack
    if (i / 1024 == 6) return std::sqrt(double(i) + 2);  // exceptions alone
    if (i % 97 == 3) return std::array{1e300, -0., double(INFINITY), 1. / 3}[i / 97 % 4];
    return std::round((e.uniform() * 500 - 100) * digits) / digits;
  });
  if (e.big) x = repeated<double>(e, n, x.h);
  std::vector<double> p{1, 10, 100, 1000, 1e5}, q{1, 0.1, 0.01, 0.001, 1e-5};
  auto powers = filled<double>(e, 5, [&](size_t i) { return p[i]; }),
       parts = filled<double>(e, 5, [&](size_t i) { return q[i]; });
  auto words = constant<uint64_t>(e, blocks * 1024, 0);
  auto header = constant<int64_t>(e, blocks * 4, 9);
  auto exceptions = constant<double>(e, blocks * 1024, 9);
  auto places = constant<int32_t>(e, blocks * 1024, 9);
  Job j;
  j.add(alp, Alp{}, x.p, powers.p, parts.p, words.p, header.p, exceptions.p, places.p, n);
  j.mbytes = 8e-6 * double(n);
  j.check = [=]() -> std::string {
    const auto w = words.now();
    const auto h = header.now();
    const auto ex = exceptions.now();
    const auto at = places.now();
    for (int64_t b = 0; b < blocks; ++b) {  // decoded as a reader would
      const int m = int(std::min<int64_t>(1024, n - b * 1024)), bits = int(h[b * 4 + 1]);
      int fewest = 1025;
      for (int k = 0; k < 5; ++k) {
        int off = 0;
        for (int i = 0; i < 1024; ++i) {
          const double v = i < m ? x.h[b * 1024 + i] : 0., s = v * p[k];
          const double back = std::abs(s) < 4503599627370496.0 ? double(int64_t(std::nearbyint(s))) * q[k] : NAN;
          off += std::memcmp(&back, &v, 8) != 0;
        }
        fewest = std::min(fewest, off);
      }
      if (h[b * 4 + 3] != fewest)
        return "block " + std::to_string(b) + " has " + std::to_string(h[b * 4 + 3]) + " exceptions instead of " +
               std::to_string(fewest);
      std::vector<double> out(1024);
      for (int i = 0; i < 1024; ++i) {
        const int lane = i % 64, first = i / 64 * bits;
        uint64_t d = 0;
        for (int t = 0; t < bits; ++t) d |= (w[b * 1024 + (first + t) / 64 * 64 + lane] >> ((first + t) % 64) & 1) << t;
        out[i] = double(h[b * 4] + int64_t(d)) * q[h[b * 4 + 2]];
      }
      for (int64_t k = 0; k < h[b * 4 + 3]; ++k) out[at[b * 1024 + k]] = ex[b * 1024 + k];
      for (int i = 0; i < m; ++i)
        if (std::memcmp(&out[i], &x.h[b * 1024 + i], 8)) return "number " + std::to_string(b * 1024 + i);
    }
    return "";
  };
  return j;
});

}  // namespace keyed_rows
}  // namespace users
