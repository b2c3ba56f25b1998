// streams.cpp - what comes in a stream: digits behind a look-back, marks of a text, numbers of any number of bits.
#include "tests/users/use.h"
namespace users {
namespace streams {

// --- one pass of onesweep: digits of a block ranked, their starts found by looking back, keys and payloads scattered
struct OnesweepCfg {
  int B = 1024, bits = 4, warps = 4;
};
auto onesweep =
    kernel("user_onesweep", [](const OnesweepCfg& c, Ptr<const uint32_t> keys, Ptr<const uint32_t> values,
                               Ptr<uint32_t> keys_out, Ptr<uint32_t> values_out, Ptr<const int32_t> starts,
                               Ptr<int32_t> state, Ptr<int32_t> ticket, I32 n, I32 shift) {
      // state [blocks, digits]: 0 unknown, (count << 2) + 1 own count, + 2 with all before
      num_warps(c.warps);
      const int D = 1 << c.bits;
      auto b = atomic_add(ticket, 1);
      auto at = b * c.B + arange(0, c.B), digits = arange(0, D);
      auto inside = at < n;
      auto key = load(keys + at, {.mask = inside});
      auto digit = cast((key >> cast(shift, u32)) & uint32_t(D - 1), i32);
      auto mine = (digit.col() == digits.row()) & inside.col();
      auto count = cumsum(cast(mine, i32), axis(0));
      auto total = squeeze(sum(cast(mine, i32), axis(0)), 0);
      atomic_exchange(state + b * D + digits, where(b == 0, total * 4 + 2, total * 4 + 1), {.order = Order::release});
      Tile before = zeros({D}, i32), look = b - 1 + zeros({D}, i32), active = zeros({D}, i32) + b > 0;
      while_([&] { return any(active); },
             [&] {
               auto seen = atomic_add(state + look * D + digits, 0, {.mask = active, .order = Order::acquire});
               auto flag = where(active, seen & 3, 0);
               before += where(flag > 0, seen >> 2, 0);
               active = active & (flag != 2);
               look -= cast(flag == 1, i32);
             });
      if_(b > 0, [&] { atomic_exchange(state + b * D + digits, (total + before) * 4 + 2, {.order = Order::release}); });
      auto first = before + load(starts + digits);
      auto place = squeeze(sum(where(mine, count - 1 + first.row(), 0), axis(1)), 1);
      store(keys_out + place, key, {.mask = inside});
      store(values_out + place, load(values + at, {.mask = inside}), {.mask = inside});
    }).grid([](const OnesweepCfg& c, auto*, auto*, auto*, auto*, auto*, auto*, auto*, int n, int) {
      return Grid{cdiv(n, c.B)};
    });
Register r1("onesweep", [](Env& e) {
  OnesweepCfg c;
  if (!e.big) c = {256, 4, 4};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  int n = e.big ? 1 << 24 : 3000, shift = 8, D = 16;
  auto k = integers<uint32_t>(e, n, 0, 1 << 20), v = integers<uint32_t>(e, n, 0, 1 << 30);
  std::vector<int32_t> first(D);
  for (uint32_t x : k.h)
    for (int d = int(x >> shift & 15) + 1; d < D; ++d) ++first[d];
  auto starts = filled<int32_t>(e, D, [&](size_t i) { return first[i]; });
  auto ko = constant<uint32_t>(e, n, 0), vo = constant<uint32_t>(e, n, 0);
  auto state = constant<int32_t>(e, size_t(cdiv(n, c.B)) * D, 0), ticket = constant<int32_t>(e, 1, 0);
  Job j;
  j.inTurn = true;
  restore(e, j, state, ticket);
  j.mbytes = 16e-6 * n;
  j.add(onesweep, c, k.p, v.p, ko.p, vo.p, starts.p, state.p, ticket.p, n, shift);
  j.check = [=] {
    std::vector<int> o(n);
    for (int i = 0; i < n; ++i) o[i] = i;
    std::stable_sort(o.begin(), o.end(),
                     [&](int a, int b) { return (k.at(a) >> shift & 15) < (k.at(b) >> shift & 15); });
    std::vector<double> wk, wv;
    for (int i : o) wk.push_back(k.at(i)), wv.push_back(v.at(i));
    auto w = agree(ko.now(), wk, .1, 0);
    return w.empty() ? agree(vo.now(), wv, .1, 0) : w;
  };
  return j;
});

// --- structure of JSON: quotes not escaped, what is inside strings (prefix xor), where structural characters are; 64
// bytes a word
struct JsonCfg {
  int W = 128, warps = 4;
};
auto json_marks = kernel("user_json_marks", [](const JsonCfg& c, Ptr<const uint8_t> text, Ptr<uint64_t> marks,
                                               Ptr<uint64_t> strings, I32 words) {
                    // one program: blocks of W words of 64 characters one after the other
                    num_warps(c.warps);
                    Tile inside = cast(zeros({1}, i32), u64), escaped = cast(zeros({1}, i32), u64);
                    for (auto w0 : range(0, words, c.W)) {
                      auto w = w0 + arange(0, c.W);
                      auto at = w.col() * 64 + arange(0, 64).row();
                      auto x = load(text + at, {.mask = (w < words).col(), .other = 32});
                      auto mask = [&](const Tile& is) {
                        return squeeze(sum(cast(is, u64) << cast(arange(0, 64), u64).row(), axis(1)), 1);
                      };
                      auto slash = mask(x == 92), quote = mask(x == 34);
                      auto structural = mask((x == 123) | (x == 125) | (x == 91) | (x == 93) | (x == 58) | (x == 44));
                      // runs of backslashes of odd length: whether a character is escaped, by the state after each word
                      // for both states before
                      auto evens = uint64_t(0x5555555555555555ull);
                      auto escapes = [&](const Tile& carry) {  // simdjson's, with the carry of the word before
                        auto potential = slash & ~carry;
                        auto maybe = potential << 1u, odd_start = maybe | ~evens;
                        auto even_ends = odd_start - potential;
                        auto e = even_ends ^ ~evens;
                        return std::pair(e ^ (slash | carry), (e & slash) >> 63u);
                      };
                      auto zero = cast(zeros({c.W}, i32), u64);
                      auto [e0, out0] = escapes(zero);
                      auto [e1, out1] = escapes(zero + 1);
                      // compose maps {0, 1} -> {0, 1}
                      auto s = scan({out0, out1}, axis(0), [](Tile a0, Tile a1, Tile b0, Tile b1) {
                        return std::tuple((a0 & b1) | ((a0 ^ 1u) & b0), (a1 & b1) | ((a1 ^ 1u) & b0));
                      });
                      auto after = where(escaped == 1, s[1], s[0]);
                      auto before = where(arange(0, c.W) == 0, escaped, take(after, max(arange(0, c.W) - 1, 0), 0));
                      auto escape_bits = where(before == 1, e1, e0);
                      auto real = quote & ~escape_bits;
                      Tile p = real;
                      for (int k = 1; k < 64; k *= 2) p = p ^ (p << uint64_t(k));
                      auto parity = cast(popcount(real), u64) & 1u;
                      auto sofar = scan(parity, axis(0), [](Tile a, Tile b) { return a ^ b; }) ^ inside;
                      auto start = sofar ^ parity;
                      p = p ^ (0u - start);
                      store(strings + w, p, {.mask = w < words});
                      store(marks + w, structural & ~p, {.mask = w < words});
                      auto last = arange(0, c.W) == c.W - 1;
                      inside = sum(where(last, sofar, 0u), axis(0)), escaped = sum(where(last, after, 0u), axis(0));
                    }
                  }).grid([](const JsonCfg&, auto*, auto*, auto*, int) { return Grid{1}; });
Register r2("json_marks", [](Env& e) {
  JsonCfg c;
  if (!e.big) c = {32, 4};
  int words = e.big ? 1 << 14 : 75;
  const char kinds[] = "{}[]:,\"\\ab \"\\\\1";
  auto t = drawn<uint8_t>(e, words * 64, [&] { return uint8_t(kinds[int(e.uniform() * 15)]); });
  auto m = constant<uint64_t>(e, words, 0), s = constant<uint64_t>(e, words, 0);
  Job j;
  j.mbytes = 80e-6 * words;
  j.add(json_marks, c, t.p, m.p, s.p, words);
  j.check = [=] {
    auto gm = m.now(), gs = s.now();
    bool in = false, esc = false;
    for (int i = 0; i < words * 64; ++i) {
      auto x = t.at(i);
      bool e0 = esc;
      esc = x == '\\' && !e0;
      if (x == '"' && !e0) in = !in;
      bool mark = !in && (x == '{' || x == '}' || x == '[' || x == ']' || x == ':' || x == ',');
      if ((gs[i / 64] >> i % 64 & 1) != in) return "string at " + std::to_string(i);
      if ((gm[i / 64] >> i % 64 & 1) != mark) return "mark at " + std::to_string(i);
    }
    return std::string();
  };
  return j;
});

// --- Gorilla: timestamps by differences of differences, values by xor, bits of any length; a series per element
struct GorillaCfg {
  int B = 64, warps = 2;
};
auto gorilla = kernel("user_gorilla", [](const GorillaCfg& c, Ptr<const uint32_t> words, Ptr<const int64_t> starts,
                                         Ptr<const int32_t> counts, Tensor<double, 2> out, I32 series) {
                 num_warps(c.warps);
                 auto s = program_id(0) * c.B + arange(0, c.B);
                 auto in = s < series;
                 auto base = load(starts + s, {.mask = in});
                 auto n = load(counts + s, {.mask = in});
                 Tile at = zeros({c.B}, i64);
                 auto bits = [&](const Tile& from, const Tile& count) {  // up to 64
                   auto w = base + (from >> 5);
                   auto a = cast(load(words + w, {.mask = in}), u64), b = cast(load(words + w + 1, {.mask = in}), u64),
                        d = cast(load(words + w + 2, {.mask = in}), u64);
                   auto shift = cast(from & 31, u64);
                   auto high = (a << 32u) | b;
                   auto top = where(shift == 0, high, (high << shift) | (d >> (32u - where(shift == 0, 1u, shift))));
                   auto cnt = cast(count, u64);
                   return where(cnt == 0, 0u, top >> (64u - where(cnt == 0, 1u, cnt)));
                 };
                 auto whole = full({c.B}, 64, i32);
                 Tile value = bits(at, whole), lead = zeros({c.B}, i32), len = zeros({c.B}, i32);
                 at += 64;
                 auto put = [&](const Tile& k) {
                   store(out.ptr() + cast(s, i64) * out.stride(0) + k, bitcast(value, f64), {.mask = in & (k < n)});
                 };
                 put(cast(full({c.B}, 0, i32), i64));
                 for (auto k : range(1, max(n))) {
                   auto go = k < n;
                   auto two = bits(at, full({c.B}, 2, i32));
                   auto differs = (two & 2) != 0, fresh = two == 3;
                   auto head = bits(at + 2, full({c.B}, 11, i32));
                   auto newlead = cast(head >> 6u, i32), newlen = cast(head & 63, i32) + 1;
                   lead = where(go & fresh, newlead, lead), len = where(go & fresh, newlen, len);
                   auto skip = where(differs, where(fresh, 13, 2), 1);
                   auto x = bits(at + cast(skip, i64), where(differs, len, 0))
                            << cast(where(differs, 64 - lead - len, 0), u64);
                   value = where(go, value ^ x, value);
                   at = where(go, at + cast(skip + where(differs, len, 0), i64), at);
                   put(cast(broadcast_to(reshape(k, {1}), {c.B}), i64));
                 }
               }).grid([](const GorillaCfg& c, auto*, auto*, auto*, const auto&, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("gorilla", [](Env& e) {
  GorillaCfg c;
  int S = e.big ? 65536 : 70, T = e.big ? 256 : 21;
  std::vector<uint32_t> w;
  std::vector<int64_t> st;
  std::vector<int32_t> cnt;
  std::vector<double> vals;
  if (e.device)
    for (int s = 0; s < (e.big ? 1024 : S); ++s) {
      st.push_back(int64_t(w.size()));
      uint64_t bit = 0;
      auto put = [&](uint64_t v, int n) {
        for (int i = n - 1; i >= 0; --i, ++bit) {
          if (bit % 32 == 0) w.push_back(0);
          w.back() |= uint32_t(v >> i & 1) << (31 - bit % 32);
        }
      };
      int n = 1 + int(e.uniform() * T);
      cnt.push_back(n);
      double v = 100;
      uint64_t old = std::bit_cast<uint64_t>(v);
      put(old, 64), vals.push_back(v);
      int lead = 0, len = 0;
      for (int k = 1; k < n; ++k) {
        if (e.uniform() < .6) v += std::round(e.uniform() * 8 - 4) / 4;
        uint64_t now = std::bit_cast<uint64_t>(v), x = now ^ old;
        if (!x)
          put(0, 1);
        else {
          int l = std::min(31, __builtin_clzll(x)), t = __builtin_ctzll(x);
          if (len && l >= lead && t >= 64 - lead - len)
            put(2, 2);
          else
            lead = l, len = 64 - l - t, put(3, 2), put(uint64_t(lead), 5), put(uint64_t(len - 1), 6);
          put(x >> (64 - lead - len), len);
        }
        old = now, vals.push_back(v);
      }
      for (int k = n; k < T; ++k) vals.push_back(-1);
    }
  w.resize(w.size() + 4);
  auto words = repeated(e, e.big && !e.device ? 1 << 20 : w.size(), w);
  auto starts = filled<int64_t>(e, S, [&](size_t i) { return st[i % st.size()]; });
  auto counts = filled<int32_t>(e, S, [&](size_t i) { return cnt[i % cnt.size()]; });
  auto o = constant<double>(e, size_t(S) * T, -1);
  Job j;
  j.mbytes = 1e-6 * (4. * w.size() + 8. * S * T);
  j.add(gorilla, c, words.p, starts.p, counts.p, o.view(S, T), S);
  j.check = [=] { return agree(o.now(), vals, 1e-300, 0); };
  return j;
});

}  // namespace streams
}  // namespace users
