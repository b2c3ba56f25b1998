// suite_graphs_and_texts.cpp - irregular programs of benchmark suites: sets joined by compare and swap, cores of a
// graph, shortest paths counted (Brandes), words counted in a hash table, text compressed by windows, sorted sets met,
// sorting networks over memory, topics drawn for words.
#include <set>

#include "tests/users/flat_fields.h"
namespace users {
namespace suite_graphs_and_texts {
// --- connected components as ECL-CC finds them: edges hook the larger root under the smaller one, paths are halved
Tile representative(Ptr<int32_t> parent, Tile v, const Tile& active) {
  Tile prev = v, cur = load(parent + v, {.mask = active, .cache = Cache::volatile_});
  Tile going = active & (cur != prev);
  while_([&] { return any(going); },
         [&] {
           Tile next = load(parent + cur, {.mask = going, .cache = Cache::volatile_});
           Tile moves = going & (cur > next);
           store(parent + prev, next, {.mask = moves});
           prev = where(moves, cur, prev);
           cur = where(moves, next, cur);
           going = moves;
         });
  return cur;
}
auto hook = kernel("user_cc_hook", [](const FlatCfg& c, Ptr<const int32_t> src, Ptr<const int32_t> dst,
                                      Ptr<int32_t> parent, I32 m) {
              num_warps(c.warps);
              auto e = program_id(0) * c.B + arange(0, c.B);
              auto in = e < m;
              auto u = load(src + e, {.mask = in}), v = load(dst + e, {.mask = in});
              Tile a = representative(parent, u, in), b = representative(parent, v, in);
              Tile open = in & (a != b);
              while_([&] { return any(open); },
                     [&] {
                       auto high = max(a, b), low = min(a, b);
                       auto seen =
                           atomic_cas(parent + high, where(open, high, -7), low);  // those that are done change nothing
                       auto done = seen == high;
                       a = where(open & ~done, seen, a), b = where(open & ~done, low, b);
                       open = open & ~done & (a != b);
                     });
            }).grid([](const FlatCfg& c, auto, auto, auto, int m) { return Grid{cdiv(m, c.B)}; });
auto flatten = kernel("user_cc_flatten", [](const FlatCfg& c, Ptr<int32_t> parent, I32 n) {
                 num_warps(c.warps);
                 auto v = program_id(0) * c.B + arange(0, c.B);
                 auto in = v < n;
                 Tile p = load(parent + v, {.mask = in});
                 Tile next = load(parent + p, {.mask = in});
                 while_([&] { return any(p != next); }, [&] { p = next, next = load(parent + p, {.mask = in}); });
                 store(parent + v, p, {.mask = in});
               }).grid([](const FlatCfg& c, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("union_find", [](Env& e) {
  auto c = flat(e, {256, 4}, {32, 1});
  const int n = e.big ? 1 << 20 : 97, m = e.big ? 1 << 22 : 81;
  auto src = integers<int32_t>(e, m, 0, n), dst = integers<int32_t>(e, m, 0, n);
  auto parent = filled<int32_t>(e, n, [](size_t i) { return int(i); });
  Job j;
  restore(e, j, parent);
  j.inTurn = true;
  j.mbytes = 8e-6 * m;
  j.add(hook, c, src.p, dst.p, parent.p, m);
  j.add(flatten, c, parent.p, n);
  j.check = [=] {
    std::vector<int> p(n);
    for (int i = 0; i < n; ++i) p[i] = i;
    auto root = [&](int v) {
      while (p[v] != v) v = p[v];
      return v;
    };
    for (int i = 0; i < m; ++i) {
      int a = root(src.h[i]), b = root(dst.h[i]);
      p[std::max(a, b)] = std::min(a, b);
    }
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i) want[i] = root(i);
    return agree(parent.now(), want, .5, 0);
  };
  return j;
});

// --- cores of a graph: vertices of less than k neighbours leave, and their neighbours lose one; a launch a round of k
struct Graph {
  std::vector<int32_t> rows, columns;
};
Graph graph(Env& e, int n, int degree) {
  std::vector<std::set<int>> g(n);
  if (e.big) {
    Graph out;
    for (int v = 0; v <= n; ++v) out.rows.push_back(v * degree);
    for (int k = 0; k < n * degree; ++k) out.columns.push_back(int(e.uniform() * n));
    return out;
  }
  for (int k = 0; k < n * degree / 2; ++k) {
    int a = int(e.uniform() * e.uniform() * n), b = int(e.uniform() * n);
    if (a != b) g[a].insert(b), g[b].insert(a);
  }
  Graph out;
  out.rows.push_back(0);
  for (auto& s : g) {
    for (int v : s) out.columns.push_back(v);
    out.rows.push_back(int(out.columns.size()));
  }
  return out;
}
auto peel = kernel("user_kcore", [](const FlatCfg& c, Ptr<const int32_t> rows, Ptr<const int32_t> columns,
                                    Ptr<int32_t> degree, Ptr<int32_t> core, Ptr<int32_t> changed, I32 k, I32 n) {
              num_warps(c.warps);
              auto v = program_id(0) * c.B + arange(0, c.B);
              auto in = v < n;
              auto leaves = in & (load(core + v, {.mask = in}) < 0) & (load(degree + v, {.mask = in}) <= k);
              for (auto _ : when(any(leaves))) {
                store(core + v, broadcast_to(k, {c.B}), {.mask = leaves});
                Tile at = load(rows + v, {.mask = leaves}), end = load(rows + v + 1, {.mask = leaves});
                while_([&] { return any(at < end); },
                       [&] {
                         auto on = at < end;
                         auto u = load(columns + at, {.mask = on});
                         atomic_add(degree + u, -1, {.mask = on});
                         at += cast(on, i32);
                       });
                atomic_max(changed, 1);
              }
            }).grid([](const FlatCfg& c, auto, auto, auto, auto, auto, int, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("k_core", [](Env& e) {
  auto c = flat(e, {128, 4}, {32, 1});
  const int n = e.big ? 1 << 20 : 61, most = e.big ? 2 : 7, repeat = e.big ? 3 : 20;
  Graph g = graph(e, n, e.big ? 8 : 6);
  auto rows = repeated<int32_t>(e, g.rows.size(), g.rows), columns = repeated<int32_t>(e, g.columns.size(), g.columns);
  auto degree = filled<int32_t>(e, n, [&](size_t v) { return g.rows[v + 1] - g.rows[v]; });
  auto core = constant<int32_t>(e, n, -1), changed = constant<int32_t>(e, most * repeat, 0);
  Job j;
  restore(e, j, degree, core, changed);
  j.inTurn = true;
  for (int k = 0; k < most; ++k)
    for (int r = 0; r < repeat; ++r)
      j.add(peel, c, rows.p, columns.p, degree.p, core.p, changed.p + k * repeat + r, k, n);
  j.check = [=] {
    std::vector<int> d(n);
    for (int v = 0; v < n; ++v) d[v] = g.rows[v + 1] - g.rows[v];
    std::vector<double> want(n, -1);
    for (int k = 0; k < most; ++k)
      for (bool more = true; more;) {
        more = false;
        for (int v = 0; v < n; ++v)
          if (want[v] < 0 && d[v] <= k) {
            more = true, want[v] = k;
            for (int i = g.rows[v]; i < g.rows[v + 1]; ++i) --d[g.columns[i]];
          }
      }
    return agree(core.now(), want, .5, 0);
  };
  return j;
});

// --- betweenness (Brandes): paths counted level by level forwards, dependencies backwards; a source a program, float64
struct SourceCfg {
  int B = 256, warps = 4;
};
auto brandes =
    kernel("user_brandes", [](const SourceCfg& c, Ptr<const int32_t> rows, Ptr<const int32_t> columns,
                              Ptr<int32_t> level, Ptr<double> sigma, Ptr<double> delta, Ptr<double> between, I32 n) {
      num_warps(c.warps);
      auto s = program_id(0);
      auto L = level + cast(s, i64) * cast(n, i64);
      auto S = sigma + cast(s, i64) * cast(n, i64);
      auto D = delta + cast(s, i64) * cast(n, i64);
      for (auto v0 : range(0, n, c.B)) {
        auto v = v0 + arange(0, c.B);
        store(L + v, where(v == s, 0, -1), {.mask = v < n});
        store(S + v, where(v == s, 1., 0.), {.mask = v < n});
        store(D + v, zeros({c.B}, f64), {.mask = v < n});
      }
      Tile depth = full({}, 0, i32), more = full({}, 1, i32);
      while_([&] { return more != 0; },
             [&] {
               more = 0;
               for (auto v0 : range(0, n, c.B)) {
                 auto v = v0 + arange(0, c.B);
                 auto here = load(L + v, {.mask = v < n, .other = -1}) == depth;
                 auto paths = load(S + v, {.mask = here});
                 Tile at = load(rows + v, {.mask = here}), end = load(rows + v + 1, {.mask = here});
                 Tile found = zeros({c.B}, i32);
                 while_([&] { return any(at < end); },
                        [&] {
                          auto on = at < end;
                          auto w = load(columns + at, {.mask = on});
                          auto lw = load(L + w, {.mask = on, .other = -2});
                          auto fresh = lw == -1;
                          store(L + w, broadcast_to(depth + 1, {c.B}), {.mask = fresh});
                          found = found | cast(fresh, i32);
                          atomic_add(S + w, paths, {.mask = fresh | (lw == depth + 1)});
                          at += cast(on, i32);
                        });
                 more = more | max(found);
               }
               depth += 1;
             });
      for (auto d : range(depth - 1, -1, -1))
        for (auto v0 : range(0, n, c.B)) {
          auto v = v0 + arange(0, c.B);
          auto here = load(L + v, {.mask = v < n, .other = -1}) == d;
          auto paths = load(S + v, {.mask = here});
          Tile at = load(rows + v, {.mask = here}), end = load(rows + v + 1, {.mask = here});
          Tile sum = zeros({c.B}, f64);
          while_([&] { return any(at < end); },
                 [&] {
                   auto on = at < end;
                   auto w = load(columns + at, {.mask = on});
                   auto next = on & (load(L + w, {.mask = on, .other = -2}) == d + 1);
                   sum += paths / load(S + w, {.mask = next, .other = 1}) *
                          (1. + load(D + w, {.mask = next, .other = -1}));
                   at += cast(on, i32);
                 });
          store(D + v, sum, {.mask = here});
          atomic_add(between + v, sum, {.mask = here & (v != s)});
        }
    }).grid([](const SourceCfg&, auto, auto, auto, auto, auto, auto, int n) { return Grid{n}; });
Register r3("brandes", [](Env& e) {
  SourceCfg c{e.field("B", e.big ? 256 : 16), e.field("warps", e.big ? 8 : 1)};
  const int n = e.big ? 2048 : 37;
  Graph g = graph(e, n, 4);
  auto rows = repeated<int32_t>(e, g.rows.size(), g.rows), columns = repeated<int32_t>(e, g.columns.size(), g.columns);
  auto level = constant<int32_t>(e, size_t(n) * n, 0);
  auto sigma = constant<double>(e, size_t(n) * n, 0), delta = constant<double>(e, size_t(n) * n, 0),
       between = constant<double>(e, n, 0);
  Job j;
  j.inTurn = true;
  j.add(brandes, c, rows.p, columns.p, level.p, sigma.p, delta.p, between.p, n);
  j.check = [=] {
    std::vector<double> want(n);
    for (int s = 0; s < n; ++s) {
      std::vector<int> l(n, -1), order{s};
      std::vector<double> sg(n), d(n);
      l[s] = 0, sg[s] = 1;
      for (size_t q = 0; q < order.size(); ++q) {
        int v = order[q];
        for (int i = g.rows[v]; i < g.rows[v + 1]; ++i) {
          int w = g.columns[i];
          if (l[w] < 0) l[w] = l[v] + 1, order.push_back(w);
          if (l[w] == l[v] + 1) sg[w] += sg[v];
        }
      }
      for (size_t q = order.size(); q-- > 0;) {
        int v = order[q];
        for (int i = g.rows[v]; i < g.rows[v + 1]; ++i) {
          int w = g.columns[i];
          if (l[w] == l[v] + 1) d[v] += sg[v] / sg[w] * (1 + d[w]);
        }
        if (v != s) want[v] += d[v];
      }
    }
    return agree(between.now(), want, 1e-9, 1e-9);
  };
  return j;
});

// --- words counted: where words begin, their FNV hashes letter by letter, slots claimed in a table of open addresses
auto words = kernel("user_word_count", [](const FlatCfg& c, Ptr<const uint8_t> text, Ptr<uint64_t> slots,
                                          Ptr<int32_t> counts, I32 n, U32 mask) {
               num_warps(c.warps);
               auto i = program_id(0) * c.B + arange(0, c.B);
               auto in = i < n;
               auto letter = [](const Tile& ch) { return ((ch | 32) >= 97) & ((ch | 32) <= 122); };
               auto ch = load(text + i, {.mask = in});
               auto before = load(text + (i - 1), {.mask = in & (i > 0), .other = 32});
               Tile going = letter(ch) & ~letter(before), begins = going;
               Tile hash = full({c.B}, 14695981039346656037ull, u64), at = i, now = ch;
               while_([&] { return any(going); },
                      [&] {
                        hash = where(going, (hash ^ cast(now | 32, u64)) * 1099511628211ull, hash);
                        at += 1;
                        now = load(text + at, {.mask = going & (at < n)});
                        going = going & letter(now);
                      });
               Tile slot = cast(hash >> 32, u32) & mask, open = begins;
               while_([&] { return any(open); },
                      [&] {
                        auto was = load(slots + slot, {.mask = open, .cache = Cache::volatile_});
                        auto empty = open & (was == 0);
                        // nobody's: try to have it. Others compare with what never is there
                        auto old = atomic_cas(slots + slot, where(empty, 0, ~uint64_t(0)), hash);
                        auto key = where(empty, old, was);
                        auto mine = open & ((key == hash) | (empty & (old == 0)));
                        atomic_add(counts + slot, 1, {.mask = mine});
                        open = open & ~mine;
                        slot = where(open, (slot + 1) & mask, slot);
                      });
             }).grid([](const FlatCfg& c, auto, auto, auto, int n, uint32_t) { return Grid{cdiv(n, c.B)}; });
Register r4("word_count", [](Env& e) {
  auto c = flat(e, {256, 4}, {64, 1});
  const int n = e.big ? 1 << 24 : 413, table = e.big ? 1 << 20 : 256;
  auto text = drawn<uint8_t>(e, n, [&] {
    const double u = e.uniform();
    return uint8_t(u < .3 ? ' ' : u < .35 ? '.' : (u < .5 ? 'A' : 'a') + int(e.uniform() * 3));
  });
  auto slots = constant<uint64_t>(e, table, 0);
  auto counts = constant<int32_t>(e, table, 0);
  Job j;
  j.mbytes = 1e-6 * n;
  restore(e, j, slots, counts);
  j.inTurn = true;
  j.add(words, c, text.p, slots.p, counts.p, n, uint32_t(table - 1));
  j.check = [=] {
    std::map<uint64_t, int> want, have;
    auto letter = [&](int i) { return i >= 0 && i < n && (text.h[i] | 32) >= 97 && (text.h[i] | 32) <= 122; };
    for (int i = 0; i < n; ++i)
      if (letter(i) && !letter(i - 1)) {
        uint64_t h = 14695981039346656037ull;
        for (int k = i; letter(k); ++k) h = (h ^ (text.h[k] | 32)) * 1099511628211ull;
        ++want[h];
      }
    auto s = slots.now();
    auto k = counts.now();
    for (int i = 0; i < table; ++i)
      if (s[i]) have[s[i]] += k[i];
    return have == want ? ""
                        : "other words: " + std::to_string(have.size()) + " instead of " + std::to_string(want.size());
  };
  return j;
});

// --- LZSS: the longest match of every place in a window before it (length 3 to 18)
struct WindowCfg {
  int B = 128, window = 256, warps = 4;
};
auto matches = kernel("user_lzss", [](const WindowCfg& c, Ptr<const uint8_t> text, Ptr<uint8_t> length,
                                      Ptr<uint16_t> back, I32 n) {
                 num_warps(c.warps);
                 auto i = program_id(0) * c.B + arange(0, c.B);
                 auto in = i < n;
                 Tile best = zeros({c.B}, i32), where_ = zeros({c.B}, i32);
                 for (auto d : range(1, c.window + 1)) {
                   Tile len = zeros({c.B}, i32), going = in & (i >= d);
                   for (auto k : range(18)) {
                     break_if(all(~going));
                     auto a = load(text + (i + k), {.mask = going & (i + k < n)}),
                          b = load(text + (i + k - d), {.mask = going & (i + k < n)});
                     going = going & (a == b) & (i + k < n);
                     len += cast(going, i32);
                   }
                   auto better = len > best;
                   best = where(better, len, best), where_ = where(better, d, where_);
                 }
                 auto is = best >= 3;
                 store(length + i, cast(where(is, best, 0), u8), {.mask = in});
                 store(back + i, cast(where(is, where_, 0), u16), {.mask = in});
               }).grid([](const WindowCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r5("lzss", [](Env& e) {
  WindowCfg c;
  if (!e.big) c = {32, 40, 1};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 203;
  auto text = drawn<uint8_t>(e, n, [&] { return uint8_t('a' + int(e.uniform() * 2.2)); });
  auto length = constant<uint8_t>(e, n, 77);
  auto back = constant<uint16_t>(e, n, 77);
  Job j;
  j.add(matches, c, text.p, length.p, back.p, n);
  j.check = [=] {
    std::vector<double> l(n), b(n);
    for (int i = 0; i < n; ++i)
      for (int d = 1; d <= c.window && d <= i; ++d) {
        int len = 0;
        while (len < 18 && i + len < n && text.h[i + len] == text.h[i + len - d]) ++len;
        if (len >= 3 && len > l[i]) l[i] = len, b[i] = d;
      }
    auto got = length.now();
    std::vector<double> g(got.begin(), got.end());
    auto a = agree(g, l, .5, 0);
    auto bk = back.now();
    return a.empty() ? agree(std::vector<double>(bk.begin(), bk.end()), b, .5, 0) : a;
  };
  return j;
});

// --- what two sorted sets of 64-bit keys share: every key of one looked up in the other, kept ones in order; the
// offset of a program from what those before it found (a chain of flags)
auto meet = kernel("user_set_meet", [](const FlatCfg& c, Ptr<const int64_t> a, Ptr<const int64_t> b, Ptr<int64_t> out,
                                       Ptr<int32_t> before, Ptr<int32_t> total, I32 n, I32 m) {
              num_warps(c.warps);
              auto p = program_id(0);
              auto i = p * c.B + arange(0, c.B);
              auto in = i < n;
              auto x = load(a + i, {.mask = in});
              Tile lo = zeros({c.B}, i32), hi = broadcast_to(m, {c.B});
              while_([&] { return any(lo < hi); },
                     [&] {
                       auto mid = (lo + hi) >> 1;
                       auto y = load(b + mid, {.mask = lo < hi});
                       auto right = (lo < hi) & (y < x);
                       hi = where((lo < hi) & ~right, mid, hi);
                       lo = where(right, mid + 1, lo);
                     });
              auto is = in & (lo < m) & (load(b + lo, {.mask = in & (lo < m)}) == x);
              auto keep = cast(is, i32);
              auto place = cumsum(keep, axis(0)) - keep;
              auto mine = sum(keep);
              Tile start = full({}, 0, i32);
              for (auto _ : when(p > 0)) {
                Tile f = full({}, -1, i32);
                while_([&] { return f < 0; }, [&] { f = atomic_add(before + p, 0, {.order = Order::acquire}); });
                start = f;
              }
              atomic_exchange(before + p + 1, start + mine, {.order = Order::release});
              store(out + (start + place), x, {.mask = is});
              if_(p == num_programs(0) - 1, [&] { store(total, start + mine); });
            }).grid([](const FlatCfg& c, auto, auto, auto, auto, auto, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r6("set_meet", [](Env& e) {
  auto c = flat(e, {1024, 4}, {64, 1});
  const int n = e.big ? 1 << 22 : 301, m = e.big ? 1 << 22 : 217;
  auto sorted = [&](int n, int64_t step) {
    std::vector<int64_t> v(n);
    int64_t x = -5000000000ll;
    for (auto& k : v) k = x += 1 + int64_t(e.uniform() * step);
    return v;
  };
  auto a = repeated<int64_t>(e, n, sorted(n, 4)), b = repeated<int64_t>(e, m, sorted(m, 5));
  auto out = constant<int64_t>(e, n, -1);
  const int programs = int(cdiv(n, c.B));
  auto before = constant<int32_t>(e, programs + 1, -1), total = constant<int32_t>(e, 1, -1);
  Job j;
  restore(e, j, before);
  j.inTurn = true;
  j.mbytes = 8e-6 * (n + m);
  j.add(meet, c, a.p, b.p, out.p, before.p, total.p, n, m);
  j.check = [=] {
    std::vector<int64_t> w;
    std::set_intersection(a.h.begin(), a.h.end(), b.h.begin(), b.h.end(), std::back_inserter(w));
    std::vector<double> want(w.begin(), w.end());
    auto x = agree(total.now(), {double(w.size())}, .5, 0);
    want.resize(n, -1);
    return x.empty() ? agree(out.now(), want, .5, 0) : x;
  };
  return j;
});

// --- Batcher's odd-even merging network over memory: keys and values, a launch a step
auto odd_even =
    kernel("user_odd_even", [](const FlatCfg& c, Ptr<uint32_t> keys, Ptr<uint32_t> values, I32 p, I32 k, I32 n) {
      num_warps(c.warps);  // Knuth's algorithm M: elements i and i + k
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto j = (k % p) + (i / k) * (2 * k) + i % k;
      auto in = (j + k < n) & (j / (2 * p) == (j + k) / (2 * p));
      auto a = load(keys + j, {.mask = in}), b = load(keys + j + k, {.mask = in});
      auto swap = in & (a > b);
      auto va = load(values + j, {.mask = swap}), vb = load(values + j + k, {.mask = swap});
      store(keys + j, b, {.mask = swap}), store(keys + j + k, a, {.mask = swap});
      store(values + j, vb, {.mask = swap}), store(values + j + k, va, {.mask = swap});
    }).grid([](const FlatCfg& c, auto, auto, int, int, int n) { return Grid{cdiv(cdiv(n, 2), c.B)}; });
Register r7("odd_even", [](Env& e) {
  auto c = flat(e, {512, 4}, {32, 1});
  const int n = e.big ? 1 << 20 : 128;
  auto keys = filled<uint32_t>(e, n, [&](size_t) { return uint32_t(e.uniform() * 4e9); });
  auto values = filled<uint32_t>(e, n, [&](size_t i) { return ~keys.h[i]; });
  Job j;
  restore(e, j, keys, values);
  j.inTurn = true;
  for (int p = e.big ? n / 2 : 1; p < n; p *= 2)
    for (int k = p; k >= 1; k /= 2) j.add(odd_even, c, keys.p, values.p, p, k, n);
  j.check = [=] {
    auto w = keys.h;
    std::sort(w.begin(), w.end());
    std::vector<double> want(w.begin(), w.end()), inv;
    for (auto x : w) inv.push_back(~x);
    auto a = agree(keys.now(), want, .5, 0);
    return a.empty() ? agree(values.now(), inv, .5, 0) : a;
  };
  return j;
});

// --- topics (LDA) drawn by collapsed Gibbs sampling: a document a program, counts of topics shared by all
struct TopicCfg {
  int K = 128, warps = 1;
};
auto gibbs = kernel("user_gibbs", [](const TopicCfg& c, Ptr<const int32_t> starts, Ptr<const int32_t> tokens,
                                     Ptr<int16_t> topic, Tensor<int32_t, 2> doc, Ptr<int32_t> word, Ptr<int32_t> total,
                                     F32 alpha, F32 beta, I32 V, U64 seed) {
               num_warps(c.warps);
               auto d = program_id(0);
               auto k = arange(0, c.K);
               Tile mine = doc.load({d, 0}, {c.K});
               for (auto t : range(load(starts + d), load(starts + d + 1))) {
                 auto w = load(tokens + t);
                 auto old = cast(load(topic + t), i32);
                 mine -= cast(k == old, i32);
                 atomic_add(word + (w * c.K + old), -1, {.order = Order::relaxed});
                 atomic_add(total + old, -1, {.order = Order::relaxed});
                 auto nw = load(word + (w * c.K + k), {.cache = Cache::volatile_}),
                      nt = load(total + k, {.cache = Cache::volatile_});
                 auto p = (cast(mine, f32) + alpha) * (cast(nw, f32) + beta) / (cast(nt, f32) + beta * cast(V, f32));
                 auto c_ = cumsum(p, axis(0));
                 auto u = rand(seed, t) * max(c_);
                 auto next = min(sum(cast(c_ <= u, i32)), c.K - 1);
                 mine += cast(k == next, i32);
                 atomic_add(word + (w * c.K + next), 1, {.order = Order::relaxed});
                 atomic_add(total + next, 1, {.order = Order::relaxed});
                 store(topic + t, cast(next, i16));
               }
               doc.store({d, 0}, mine);
             }).grid([](const TopicCfg&, auto, auto, auto, const auto& doc, auto...) { return Grid{doc.shape[0]}; });
Register r8("gibbs", [](Env& e) {
  TopicCfg c;
  if (!e.big) c = {12, 1};
  c.warps = e.field("warps", c.warps);
  const int D = e.big ? 20000 : 7, V = e.big ? 20000 : 23, K = c.K;
  std::vector<int32_t> s{0};
  for (int d = 0; d < D; ++d) s.push_back(s.back() + int(e.uniform() * (e.big ? 400 : 19)));
  const int n = s.back();
  auto starts = repeated<int32_t>(e, s.size(), s), tokens = integers<int32_t>(e, n, 0, V);
  auto topic = integers<int16_t>(e, n, 0, K);
  std::vector<int32_t> dk(size_t(D) * K), wk(size_t(V) * K), tk(K);
  for (int d = 0; d < D; ++d)
    for (int t = s[d]; t < s[d + 1] && e.device; ++t) {
      const int z = topic.at(t);
      ++dk[size_t(d) * K + z], ++wk[size_t(tokens.at(t)) * K + z], ++tk[z];
    }
  auto doc = repeated<int32_t>(e, dk.size(), dk), word = repeated<int32_t>(e, wk.size(), wk),
       total = repeated<int32_t>(e, K, tk);
  Job j;
  j.inTurn = true;
  j.add(gibbs, c, starts.p, tokens.p, topic.p, doc.view(D, K), word.p, total.p, .1f, .01f, V, uint64_t(77));
  j.check = [=] {  // other programs run between: the counts must be those of the topics
    auto z = topic.now();
    std::vector<double> a(dk.size()), b(wk.size()), t_(K);
    int moved = 0;
    for (int d = 0; d < D; ++d)
      for (int t = s[d]; t < s[d + 1]; ++t)
        ++a[d * K + z[t]], ++b[tokens.h[t] * K + z[t]], ++t_[z[t]], moved += z[t] != topic.h[t];
    auto x = agree(doc.now(), a, .5, 0);
    if (x.empty()) x = agree(word.now(), b, .5, 0);
    if (x.empty()) x = agree(total.now(), t_, .5, 0);
    return x.empty() && moved < n / 4 ? "nothing moved" : x;
  };
  return j;
});

}  // namespace suite_graphs_and_texts
}  // namespace users
