// sparse_rows.cpp - rows of sparse matrices: a product with a vector in equal shares, products of two by sorting.
#include "tests/users/use.h"
namespace users {
namespace sparse_rows {

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

}  // namespace sparse_rows
}  // namespace users
