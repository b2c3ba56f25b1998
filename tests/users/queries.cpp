// queries.cpp - tables, texts and series: rows of sparse matrices in equal shares, sparse products by sorting, numbers
// out of text, brackets that match, groups summed before they meet in a hash table, a report with exact decimals,
// windows of a genome, motifs of a series, fields compressed in blocks, lists of increasing numbers, a tree of hashes,
// patterns looked up in a transformed text.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace {

// --- a sparse matrix times a vector in equal shares of rows and entries (merge path): every lane finds where its share
// begins, walks it, and hands what is left of its last row on
struct MergeCfg {
  int B = 128, share = 8, warps = 4;
};
auto merge_spmv =
    kernel("user_merge_spmv", [](const MergeCfg& c, Ptr<const int32_t> ends, Ptr<const int32_t> columns,
                                 Ptr<const double> values, Ptr<const double> x, Ptr<double> y, I32 rows, I32 entries) {
      // ends [rows]: where rows end; y starts as zeros
      num_warps(c.warps);
      auto lane = program_id(0) * c.B + arange(0, c.B);
      auto all = rows + entries;
      auto first = min(lane * c.share, all), last = min(first + c.share, all);
      // The row of a diagonal: how many of the first d steps end rows.
      Tile low = max(first - entries, 0), high = min(first, rows);
      while_([&] { return any(low < high); },
             [&] {
               auto middle = (low + high) / 2, open = low < high;
               auto goes = open & (load(ends + middle, {.mask = open}) <= first - middle - 1);
               low = where(goes, middle + 1, low), high = where(open & ~goes, middle, high);
             });
      Tile row = low, at = first - low, sum = zeros({c.B}, f64);
      for (int step = 0; step < c.share; ++step) {
        auto in = row + at < last;
        auto end = load(ends + row, {.mask = in & (row < rows)});
        auto entry = in & (row < rows) & (at < end), closes = in & ~entry;
        sum += where(
            entry, load(values + at, {.mask = entry}) * load(x + load(columns + at, {.mask = entry}), {.mask = entry}),
            0.);
        atomic_add(y + row, sum, {.mask = closes & (sum != 0.), .order = Order::relaxed});
        sum = where(closes, 0., sum), at += cast(entry, i32), row += cast(closes, i32);
      }
      // What lanes have of the row they stopped in: neighbours in the same row are summed first.
      auto [key, total] = scan({row, sum}, axis(0), [](Tile k0, Tile s0, Tile k1, Tile s1) {
        return std::tuple(k1, where(k0 == k1, s0, 0.) + s1);
      });
      auto next = take(row, min(arange(0, c.B) + 1, c.B - 1), 0);
      auto tail = (arange(0, c.B) == c.B - 1) | (next != row);
      atomic_add(y + key, total, {.mask = tail & (row < rows) & (total != 0.), .order = Order::relaxed});
    }).grid([](const MergeCfg& c, auto, auto, auto, auto, auto, int rows, int entries) {
      return Grid{cdiv(rows + entries, c.B * c.share)};
    });
Register r1("merge_spmv", [](Env& e) {
  MergeCfg c;
  if (!e.big) c = {32, 3, 1};
  c.share = e.field("share", c.share), c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int rows = e.big ? 1 << 20 : 117, width = e.big ? 1 << 20 : 50;
  std::vector<int32_t> ends;
  for (int r = 0, n = 0; r < rows; ++r) ends.push_back(n += r % 7 == 3 ? 0 : r % 50 == 1 ? 90 : int(e.uniform() * 12));
  const int entries = ends.back();
  auto en = filled<int32_t>(e, rows, [&](size_t i) { return ends[i]; });
  auto columns = integers<int32_t>(e, entries, 0, width);
  auto values = random<double>(e, entries), x = random<double>(e, width);
  auto y = constant<double>(e, rows, 0);
  Job j;
  j.mbytes = 12e-6 * entries + 12e-6 * rows;
  j.inTurn = true;
  j.add(merge_spmv, c, en.p, columns.p, values.p, x.p, y.p, rows, entries);
  j.check = [=] {
    std::vector<double> want(rows);
    for (int r = 0; r < rows; ++r)
      for (int i = r ? ends[r - 1] : 0; i < ends[r]; ++i) want[r] += values[i] * x[columns.at(i)];
    return agree(y.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- a product of sparse matrices, a row a program: all products of the row, sorted by column, equal ones summed
struct SparseCfg {
  int most = 16, P = 256, warps = 4;
};
auto spgemm = kernel("user_spgemm", [](const SparseCfg& c, Ptr<const int32_t> startA, Ptr<const int32_t> colA,
                                       Ptr<const float> A, Ptr<const int32_t> startB, Ptr<const int32_t> colB,
                                       Ptr<const float> B, Ptr<int32_t> counts, Ptr<int32_t> colC, Ptr<float> C) {
                // Rows of A have at most `most` entries, of C at most P products; colC, C [rows, P]
                num_warps(c.warps);
                auto row = program_id(0);
                auto first = load(startA + row), n = load(startA + row + 1) - first;
                auto i = arange(0, c.most);
                auto mine = i < n;
                auto k = load(colA + first + i, {.mask = mine});
                auto from = load(startB + k, {.mask = mine}), length = load(startB + k + 1, {.mask = mine}) - from;
                auto end = cumsum(length, axis(0));
                auto total = max(end);
                auto p = arange(0, c.P);
                auto in = p < total;
                auto which = squeeze(sum(cast(end.row() <= p.col(), i32), axis(1)), 1);  // whose product this is
                auto of = [&](Tile x) { return take(x, min(which, c.most - 1), 0); };
                auto at = of(from) + p - (of(end) - of(length));
                auto column = load(colB + at, {.mask = in, .other = INT32_MAX});
                auto value = of(load(A + first + i, {.mask = mine})) * load(B + at, {.mask = in});
                auto order = argsort(column, axis(0));
                auto sorted = take(column, order, 0);
                auto [key, run] = scan(
                    {sorted, take(value, order, 0)}, axis(0),
                    [](Tile k0, Tile s0, Tile k1, Tile s1) { return std::tuple(k1, where(k0 == k1, s0 + s1, s1)); });
                auto next = take(sorted, min(p + 1, c.P - 1), 0);
                auto last = (sorted != INT32_MAX) & ((p == c.P - 1) | (next != sorted));
                auto place = cumsum(cast(last, i32), axis(0)) - 1;
                store(colC + row * c.P + place, sorted, {.mask = last});
                store(C + row * c.P + place, run, {.mask = last});
                store(counts + row, sum(cast(last, i32)));
              }).grid([](const SparseCfg&, auto...) { return Grid{0}; });
Register r2("spgemm", [](Env& e) {
  SparseCfg c;
  if (!e.big) c = {5, 48, 1};
  c.warps = e.field("warps", c.warps);
  const int rows = e.big ? 1 << 17 : 23, width = rows, each = c.P / c.most;
  auto matrix = [&](int most, int spread) {
    std::vector<int32_t> start{0}, col;
    for (int r = 0; r < rows; ++r) {
      const int n = e.big ? most : int(e.uniform() * (most + 1));
      for (int i = 0; i < n; ++i) col.push_back((r + (i * 37 + int(e.uniform() * 5)) % spread) % width);
      start.push_back(int(col.size()));
    }
    return std::pair(start, col);
  };
  const auto [sa, ca] = matrix(c.most, e.big ? 1000 : 20);
  const auto [sb, cb] = matrix(each, e.big ? 1000 : 9);
  auto array = [&](const std::vector<int32_t>& v) {
    return filled<int32_t>(e, v.size(), [&](size_t i) { return v[i]; });
  };
  auto startA = array(sa), colA = array(ca), startB = array(sb), colB = array(cb);
  auto a = random<float>(e, ca.size()), b = random<float>(e, cb.size());
  auto counts = constant<int32_t>(e, rows, -1), colC = constant<int32_t>(e, size_t(rows) * c.P, -1);
  auto C = constant<float>(e, size_t(rows) * c.P, NAN);
  Job j;
  j.mbytes = 8e-6 * rows * c.P;
  auto k = spgemm.grid([rows](const SparseCfg&, auto...) { return Grid{rows}; });
  j.add(k, c, startA.p, colA.p, a.p, startB.p, colB.p, b.p, counts.p, colC.p, C.p);
  j.check = [=, sa = sa, ca = ca, sb = sb, cb = cb]() -> std::string {
    const auto n = counts.now(), col = colC.now();
    const auto got = C.now();
    for (int r = 0; r < rows; ++r) {
      std::map<int, double> want;
      for (int i = sa[r]; i < sa[r + 1]; ++i)
        for (int q = sb[ca[i]]; q < sb[ca[i] + 1]; ++q) want[cb[q]] += a[i] * b[q];
      if (n[r] != int(want.size())) return "entries of row " + std::to_string(r);
      int at = r * c.P;
      for (auto [column, value] : want) {
        if (col[at] != column || !(std::abs(got[at] - value) < 1e-5)) return "entry " + std::to_string(at);
        ++at;
      }
    }
    return "";
  };
  return j;
});

// --- numbers out of text: sign, digits, point, exponent; fields of up to 24 characters, what is no number is NaN
struct ParseCfg {
  int B = 128, most = 24, warps = 4;
};
auto parse_numbers =
    kernel("user_parse_numbers", [](const ParseCfg& c, Ptr<const uint8_t> text, Ptr<const int64_t> start,
                                    Ptr<double> out, Ptr<int32_t> bad, I32 n) {
      num_warps(c.warps);
      auto f = program_id(0) * c.B + arange(0, c.B);
      auto in = f < n;
      auto first = load(start + f, {.mask = in}), end = load(start + f + 1, {.mask = in}) - 1;  // a comma behind each
      auto length = cast(end - first, i32);
      Tile mantissa = zeros({c.B}, u64), scale = zeros({c.B}, i32), exponent = zeros({c.B}, i32);
      Tile negative = full({c.B}, false, i1), down = negative, point = negative, e = negative, wrong = length > c.most;
      Tile digits = zeros({c.B}, i32), powers = digits;
      for (int i = 0; i < c.most; ++i) {
        auto here = in & (i < length);
        auto x = cast(load(text + first + i, {.mask = here}), i32);
        auto digit = here & (x >= '0') & (x <= '9'), sign = here & ((x == '-') | (x == '+'));
        auto mark = here & (x == '.'), letter = here & ((x | 32) == 'e');
        auto d = x - '0';
        mantissa = where(digit & ~e, mantissa * 10 + cast(d, u64), mantissa);
        exponent = where(digit & e, min(exponent * 10 + d, 9999), exponent);
        scale -= cast(digit & ~e & point, i32);
        digits += cast(digit & ~e, i32), powers += cast(digit & e, i32);
        negative |= sign & ~e & (x == '-'), down |= sign & e & (x == '-');
        // A sign begins the number or the exponent.
        auto before = cast(load(text + first + (i - 1), {.mask = here & (first + i > 0)}), i32) | 32;
        auto begins = i == 0 ? here : (before == 'e') & e & (powers == 0);
        wrong |= (sign & ~begins) | (mark & (point | e)) | (letter & (e | (digits == 0)));
        wrong |= here & ~(digit | sign | mark | letter);
        point |= mark, e |= letter;
      }
      wrong |= (digits == 0) | (e & (powers == 0)) | (digits > 19);
      auto power = scale + where(down, -exponent, exponent);
      auto value = cast(mantissa, f64) * pow(full({c.B}, 10., f64), cast(power, f64));
      store(out + f, where(wrong, NAN, where(negative, -value, value)), {.mask = in});
      atomic_add(bad, sum(cast(wrong & in, i32)));
    }).grid([](const ParseCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r3("parse_numbers", [](Env& e) {
  ParseCfg c;
  if (!e.big) c = {32, 24, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 21 : 165;
  std::string text;
  std::vector<int64_t> start{0};
  const char* given[] = {"0",
                         "-0.5",
                         "1e3",
                         "+12.25E-2",
                         "1.7976931348623157e308",
                         "",
                         "-",
                         "1.2.3",
                         "e5",
                         "1e",
                         "12a",
                         "3.",
                         ".5",
                         "--1",
                         "1e+5",
                         "1e--5",
                         "00012",
                         "123456789012345678901",
                         "5e-324"};
  for (int i = 0; i < n; ++i) {
    char s[64];
    std::snprintf(s, sizeof s, i % 3 ? "%.*g" : "%.*f", int(e.uniform() * 12) + 1, (e.uniform() - .5) * 2000);
    text += i < 19 ? given[i] : s;
    text += ',';
    start.push_back(int64_t(text.size()));
  }
  auto t = filled<uint8_t>(e, text.size(), [&](size_t i) { return uint8_t(text[i]); });
  auto s = filled<int64_t>(e, n + 1, [&](size_t i) { return start[i]; });
  auto out = constant<double>(e, n, 7);
  auto bad = constant<int32_t>(e, 1, 0);
  Job j;
  j.mbytes = 1e-6 * text.size() + 16e-6 * n;
  j.inTurn = true;
  j.add(parse_numbers, c, t.p, s.p, out.p, bad.p, n);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    int wrong = 0;
    for (int i = 0; i < n; ++i) {
      const std::string field = text.substr(start[i], start[i + 1] - 1 - start[i]);
      char* end;
      const double want = std::strtod(field.c_str(), &end);
      const bool no = field.empty() || *end || i == 17;  // 21 digits are too many
      wrong += no;
      if (no ? !std::isnan(got[i]) : !(std::abs(got[i] - want) <= 1e-14 * std::abs(want) + 1e-322))
        return "'" + field + "' is " + std::to_string(got[i]);
    }
    return bad.now()[0] == wrong ? "" : "how many are wrong";
  };
  return j;
});

// --- which bracket closes which: depth by a running sum, then neighbours in the order of depth and place
struct BracketCfg {
  int B = 1024, warps = 4;
};
auto brackets =
    kernel("user_brackets", [](const BracketCfg& c, Tensor<const int8_t, 2> text, Tensor<int32_t, 2> partner) {
      // text, partner [texts, B]; -1: no bracket, or one without partner
      num_warps(c.warps);
      auto t = program_id(0);
      auto x = cast(text.load({t, 0}, {c.B}), i32);
      auto opens = x == '(', closes = x == ')';
      auto depth = cumsum(cast(opens, i32) - cast(closes, i32), axis(0)) + cast(closes, i32);
      auto i = arange(0, c.B);
      auto key = where(opens | closes, (depth + c.B) * (2 * c.B) + i * 2 + cast(closes, i32), INT32_MAX);
      auto sorted = sort(key, axis(0));
      auto there = sorted != INT32_MAX;
      auto before = take(sorted, max(i - 1, 0), 0), after = take(sorted, min(i + 1, c.B - 1), 0);
      auto level = [&](Tile k) { return k / (2 * c.B); };
      auto place = [&](Tile k) { return (k % (2 * c.B)) >> 1; };
      auto closing = (sorted & 1) == 1;
      auto found = where(closing, (i > 0) & (level(before) == level(sorted)) & ((before & 1) == 0),
                         (i < c.B - 1) & (level(after) == level(sorted)) & ((after & 1) == 1));
      partner.store({t, 0}, full({c.B}, -1, i32));
      auto to = partner.ptr() + cast(t, i64) * partner.stride(0) + place(sorted);
      store(to, where(found, place(where(closing, before, after)), -1), {.mask = there});
    }).grid([](const BracketCfg&, const auto& t, const auto&) { return Grid{t.shape[0]}; });
Register r4("brackets", [](Env& e) {
  BracketCfg c;
  if (!e.big) c = {100, 1};
  c.warps = e.field("warps", c.warps);
  const int T = e.big ? 8192 : 7, B = c.B;
  auto text = filled<int8_t>(e, size_t(T) * B, [&](size_t) { return "()a"[int(e.uniform() * 2.999)]; });
  auto partner = constant<int32_t>(e, text.n, -7);
  Job j;
  j.mbytes = 5e-6 * text.n;
  j.add(brackets, c, text.view(T, B), partner.view(T, B));
  j.check = [=]() -> std::string {
    const auto got = partner.now();
    for (int t = 0; t < T; ++t) {
      std::vector<int> want(B, -1), stack;
      for (int i = 0; i < B; ++i) {
        if (text.at(t * B + i) == '(') stack.push_back(i);
        if (text.at(t * B + i) == ')' && !stack.empty())
          want[i] = stack.back(), want[stack.back()] = i, stack.pop_back();
      }
      for (int i = 0; i < B; ++i)
        if (got[t * B + i] != want[i]) return "place " + std::to_string(i) + " of " + std::to_string(t);
    }
    return "";
  };
  return j;
});

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

// --- fields compressed in blocks of 4 x 4 x 4 (ZFP, fixed rate): a common exponent, a transform along every axis in
// integers, bits of all numbers plane by plane, a word of 64 each
struct ZfpCfg {
  int B = 32, planes = 8, warps = 1;  // a block a thread
};
auto zfp =
    kernel("user_zfp", [](const ZfpCfg& c, Tensor<const float, 3> X, Ptr<uint64_t> words, Ptr<int16_t> exponents) {
      // X [Z, Y, X], all multiples of 4; words [blocks, planes]; blocks of a row of blocks follow each other
      num_warps(c.warps);
      auto bx = program_id(0) * c.B, by = program_id(1), bz = program_id(2);
      auto box = X.load({bz * 4, by * 4, bx * 4}, {4, 4, 4 * c.B});
      auto x = permute(reshape(box, {4, 4, c.B, 4}), {2, 0, 1, 3});  // [block, z, y, x]
      auto largest = max(max(max(abs(x), axis(3)), axis(2)), axis(1));
      auto e = where(largest > 0.f, cast(logb(largest), i32) + 1, -126);
      Tile q = cast(ldexp(x, 25 - e), i32);
      auto lift = [](Tile a, int axis) {  // the transform of ZFP along an axis of four
        Shape slice = a.shape(), at{0, 0, 0, 0};
        slice[axis] = 1;
        std::array<Tile, 4> v;
        for (int i = 0; i < 4; ++i) at[axis] = i, v[i] = extract(a, at, slice);
        auto& [x, y, z, w] = v;
        x += w, x = x >> 1, w -= x;
        z += y, z = z >> 1, y -= z;
        x += z, x = x >> 1, z -= x;
        w += y, w = w >> 1, y -= w;
        w += y >> 1, y -= w >> 1;
        return cat(cat(x, y, axis), cat(z, w, axis), axis);
      };
      q = lift(lift(lift(q, 3), 2), 1);
      auto u = (bitcast(q, u32) + 0xAAAAAAAAu) ^ 0xAAAAAAAAu;  // negabinary
      auto flat = cast(reshape(u, {c.B, 64}), u64);
      auto block = (bz * num_programs(1) + by) * cdiv(X.dim(2), 4) + bx + arange(0, c.B);
      auto inside = bx + arange(0, c.B) < X.dim(2) / 4;
      for (int p = 0; p < c.planes; ++p) {
        auto bits = ((flat >> (27 - p)) & 1) << cast(arange(0, 64), u64).row();
        store(words + block * c.planes + p, squeeze(sum(bits, axis(1)), 1), {.mask = inside});
      }
      store(exponents + block, cast(reshape(e, {c.B}), i16), {.mask = inside});
    }).grid([](const ZfpCfg& c, const auto& x, auto, auto) {
      return Grid{cdiv(x.shape[2], 4 * c.B), x.shape[1] / 4, x.shape[0] / 4};
    });
Register r9("zfp", [](Env& e) {
  ZfpCfg c;
  if (!e.big) c = {3, 5, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int Z = e.big ? 256 : 8, Y = e.big ? 512 : 12, X = e.big ? 512 : 20;
  auto x = filled<float>(e, size_t(Z) * Y * X,
                         [&](size_t i) { return i < 40 ? 0.f : float(std::sin(i * .01) * 30 + e.uniform()); });
  const int blocks = Z * Y * X / 64;
  auto words = constant<uint64_t>(e, size_t(blocks) * c.planes, 0);
  auto exponents = constant<int16_t>(e, blocks, -1);
  Job j;
  j.mbytes = 4e-6 * x.n + 8e-6 * words.n;
  j.add(zfp, c, x.view(Z, Y, X), words.p, exponents.p);
  j.check = [=]() -> std::string {
    const auto got = words.now();
    const auto ex = exponents.now();
    for (int b = 0; b < blocks; ++b) {
      const int bx = b % (X / 4), by = b / (X / 4) % (Y / 4), bz = b / (X / 4) / (Y / 4);
      float v[64], largest = 0;
      for (int i = 0; i < 64; ++i) {
        v[i] = x.at((size_t(bz * 4 + i / 16) * Y + by * 4 + i / 4 % 4) * X + bx * 4 + i % 4);
        largest = std::max(largest, std::abs(v[i]));
      }
      const int e = largest > 0 ? int(std::logb(largest)) + 1 : -126;
      if (ex[b] != e) return "exponent of " + std::to_string(b);
      int32_t q[64];
      for (int i = 0; i < 64; ++i) q[i] = int32_t(std::ldexp(v[i], 25 - e));
      for (int step : {1, 4, 16})
        for (int l = 0; l < 64; ++l) {
          if (l / step % 4) continue;
          int32_t &x = q[l], &y = q[l + step], &z = q[l + 2 * step], &w = q[l + 3 * step];
          x += w, x >>= 1, w -= x, z += y, z >>= 1, y -= z, x += z, x >>= 1, z -= x;
          w += y, w >>= 1, y -= w, w += y >> 1, y -= w >> 1;
        }
      for (int p = 0; p < c.planes; ++p) {
        uint64_t word = 0;
        for (int i = 0; i < 64; ++i)
          word |= uint64_t(((uint32_t(q[i]) + 0xAAAAAAAAu) ^ 0xAAAAAAAAu) >> (27 - p) & 1) << i;
        if (got[size_t(b) * c.planes + p] != word) return "plane " + std::to_string(p) + " of " + std::to_string(b);
      }
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

// --- a tree of hashes (BLAKE3): chunks of 1024 bytes, a lane each, sixteen blocks one after the other; then parents,
// half as many every time, until a program has one root of its 2^n chunks
struct BlakeCfg {
  int B = 64, warps = 2;
};
using Words8 = std::array<Tile, 8>;
constexpr uint32_t kBlake[8] = {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A,
                                0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19};
constexpr int kBlakeOrder[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
template <class Word, class Rotate>
void blake_rounds(std::array<Word, 16>& v, std::array<Word, 16> m, Rotate rotate) {
  for (int round = 0; round < 7; ++round) {
    auto g = [&](int a, int b, int c, int d, int i) {
      for (int half = 0; half < 2; ++half) {
        v[a] = v[a] + v[b] + m[2 * i + half];
        v[d] = rotate(v[d] ^ v[a], half ? 8 : 16);
        v[c] = v[c] + v[d];
        v[b] = rotate(v[b] ^ v[c], half ? 7 : 12);
      }
    };
    for (int i = 0; i < 4; ++i) g(i, 4 + i, 8 + i, 12 + i, i);
    for (int i = 0; i < 4; ++i) g(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, 4 + i);
    const auto old = m;
    for (int i = 0; i < 16; ++i) m[i] = old[kBlakeOrder[i]];
  }
}
Words8 compress(const Words8& chain, const std::array<Tile, 16>& m, const Tile& counter, const Tile& flags) {
  const Shape shape = m[0].shape();
  std::array<Tile, 16> v;
  for (int i = 0; i < 8; ++i) v[i] = chain[i];
  for (int i = 0; i < 4; ++i) v[8 + i] = full(shape, kBlake[i], u32);
  v[12] = counter, v[13] = full(shape, 0u, u32), v[14] = full(shape, 64u, u32), v[15] = flags;
  blake_rounds(v, m, [](Tile x, int n) { return rotr(x, n); });
  Words8 out;
  for (int i = 0; i < 8; ++i) out[i] = v[i] ^ v[8 + i];
  return out;
}
auto blake3 = kernel("user_blake3", [](const BlakeCfg& c, Tensor<const uint32_t, 2> chunks, Ptr<uint32_t> roots) {
                // chunks [n, 256]: whole programs of them; roots [programs, 8], not yet the root of anything larger
                num_warps(c.warps);
                auto first = program_id(0) * c.B;
                auto number = cast(first + arange(0, c.B), u32);
                Words8 chain;
                for (int i = 0; i < 8; ++i) chain[i] = full({c.B}, kBlake[i], u32);
                for (auto block : range(16)) {
                  auto words = chunks.load({first, block * 16}, {c.B, 16});
                  std::array<Tile, 16> m;
                  for (int i = 0; i < 16; ++i) m[i] = reshape(extract(words, {0, i}, {c.B, 1}), {c.B});
                  auto flags = cast(where(block == 0, 1, where(block == 15, 2, 0)), u32);
                  chain = compress(chain, m, number, full({c.B}, flags, u32));
                }
                for (int n = c.B / 2; n; n /= 2) {
                  std::array<Tile, 16> m;
                  for (int i = 0; i < 8; ++i) std::tie(m[i], m[8 + i]) = split(reshape(chain[i], {n, 2}));
                  Words8 key;
                  for (int i = 0; i < 8; ++i) key[i] = full({n}, kBlake[i], u32);
                  chain = compress(key, m, full({n}, 0u, u32), full({n}, 4u, u32));
                }
                for (int i = 0; i < 8; ++i) store(roots + program_id(0) * 8 + i, to_scalar(chain[i]));
              }).grid([](const BlakeCfg& c, const auto& x, auto) { return Grid{x.shape[0] / c.B}; });
Register r11("blake3", [](Env& e) {
  BlakeCfg c;
  if (!e.big) c = {8, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 18 : 24;
  auto chunks = integers<uint32_t>(e, size_t(n) * 256, 0, 1ll << 32);
  auto roots = constant<uint32_t>(e, size_t(n) / c.B * 8, 0);
  Job j;
  j.mbytes = 4e-6 * chunks.n;
  j.add(blake3, c, chunks.view(n, 256), roots.p);
  j.check = [=]() -> std::string {
    using W = std::array<uint32_t, 8>;
    auto squeeze = [](const W& chain, const std::array<uint32_t, 16>& m, uint32_t counter, uint32_t flags) {
      std::array<uint32_t, 16> v{};
      for (int i = 0; i < 8; ++i) v[i] = chain[i];
      for (int i = 0; i < 4; ++i) v[8 + i] = kBlake[i];
      v[12] = counter, v[14] = 64, v[15] = flags;
      blake_rounds(v, m, [](uint32_t x, int n) { return std::rotr(x, n); });
      W out;
      for (int i = 0; i < 8; ++i) out[i] = v[i] ^ v[8 + i];
      return out;
    };
    W key;
    std::copy(kBlake, kBlake + 8, key.begin());
    const auto got = roots.now();
    for (int p = 0; p < n / c.B; ++p) {
      std::vector<W> level;
      for (int k = 0; k < c.B; ++k) {
        W chain = key;
        for (int b = 0; b < 16; ++b) {
          std::array<uint32_t, 16> m;
          for (int i = 0; i < 16; ++i) m[i] = chunks.at((size_t(p) * c.B + k) * 256 + b * 16 + i);
          chain = squeeze(chain, m, p * c.B + k, b == 0 ? 1 : b == 15 ? 2 : 0);
        }
        level.push_back(chain);
      }
      while (level.size() > 1) {
        std::vector<W> up;
        for (size_t i = 0; i < level.size(); i += 2) {
          std::array<uint32_t, 16> m;
          for (int k = 0; k < 8; ++k) m[k] = level[i][k], m[8 + k] = level[i + 1][k];
          up.push_back(squeeze(key, m, 0, 4));
        }
        level = up;
      }
      for (int i = 0; i < 8; ++i)
        if (got[p * 8 + i] != level[0][i]) return "root " + std::to_string(p);
    }
    return "";
  };
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

}  // namespace
}  // namespace users
