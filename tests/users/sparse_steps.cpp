// sparse_steps.cpp - sparse matrices and graphs as their formats are printed in textbooks: diagonals, padded rows,
// blocks of 3 x 3, ranks pulled along edges, communities that follow their neighbours.
#include "tests/users/use.h"
namespace users {
namespace sparse_steps {

struct RowCfg {
  int B = 128, warps = 4;
};

// --- DIA: y = A x, every diagonal a row of values; 64-bit integers throughout
auto dia = kernel("user_dia", [](const RowCfg& c, Ptr<const double> values, Ptr<const int64_t> offsets,
                                 Ptr<const double> x, Ptr<double> y, I64 n, I64 diagonals) {
             num_warps(c.warps);
             auto row = cast(program_id(0), i64) * c.B + cast(arange(0, c.B), i64);
             Tile total = zeros({c.B}, f64);
             for (auto d : range(0, diagonals)) {
               auto column = row + load(offsets + d);
               auto inside = (column >= 0) & (column < n) & (row < n);
               total += load(values + (d * n + row), {.mask = inside}) * load(x + column, {.mask = inside});
             }
             store(y + row, total, {.mask = row < n});
           }).grid([](const RowCfg& c, const double*, const int64_t*, const double*, double*, int64_t n, int64_t) {
  return Grid{cdiv(n, c.B)};
});
Register r1("dia", [](Env& e) {
  const int side = e.big ? 160 : 7;
  const int64_t n = int64_t(side) * side * side - (e.big ? 0 : 2);
  const std::vector<int64_t> places{-int64_t(side) * side, -side, -1, 0, 1, side, int64_t(side) * side};
  const int64_t D = int64_t(places.size());
  auto values = random<double>(e, size_t(D * n));
  auto offsets = repeated(e, places.size(), places);
  auto x = random<double>(e, n);
  auto y = constant<double>(e, n, NAN);
  Job j;
  j.mbytes = 1e-6 * n * (8 * D + 16);
  j.add(dia, RowCfg{e.field("B", e.big ? 256 : 32), e.field("warps", e.big ? 4 : 1)}, values.p, offsets.p, x.p, y.p, n,
        D);
  j.check = [=] {
    std::vector<double> want(n);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t d = 0; d < D; ++d)
        if (const int64_t at = i + places[d]; at >= 0 && at < n) want[i] += values[d * n + i] * x[at];
    return agree(y.now(), want, 1e-12, 1e-12);
  };
  return j;
});

// --- BCSR with blocks of 3 x 3: a lane per row of the matrix, which finds its block row by dividing
auto bcsr = kernel("user_bcsr", [](const RowCfg& c, Ptr<const float> blocks, Ptr<const int32_t> columns,
                                   Ptr<const int32_t> start, Ptr<const float> x, Ptr<float> y, I32 rows) {
              num_warps(c.warps);
              auto r = program_id(0) * (3 * c.B) + arange(0, 3 * c.B);
              auto live = r < rows * 3;
              auto of = r / 3, part = r % 3;
              Tile k = load(start + of, {.mask = live}), end = load(start + of + 1, {.mask = live});
              Tile total = zeros({3 * c.B}, f32);
              while_([&] { return any(k < end); },
                     [&] {
                       auto there = k < end;
                       auto column = load(columns + k, {.mask = there});
                       for (int i = 0; i < 3; ++i) {
                         auto a = load(blocks + (k * 9 + part * 3 + i), {.mask = there, .other = 0.f});
                         total += a * load(x + (column * 3 + i), {.mask = there, .other = 0.f});
                       }
                       k = where(there, k + 1, k);
                     });
              store(y + r, total, {.mask = live});
            }).grid([](const RowCfg& c, const float*, const int32_t*, const int32_t*, const float*, float*, int rows) {
  return Grid{cdiv(rows, c.B)};
});
Register r2("bcsr", [](Env& e) {
  const int rows = e.big ? 200'000 : 67, most = e.big ? 30 : 6;
  std::vector<int32_t> start(1), column;
  for (int i = 0; i < rows; ++i) {
    for (int k = 0, count = int(e.uniform() * most); k < count && i % 11 != 3; ++k)
      column.push_back(std::clamp(i + int((e.uniform() - .5) * 400), 0, rows - 1));
    start.push_back(int(column.size()));
  }
  const size_t nnz = column.size();
  auto blocks = random<float>(e, nnz * 9), x = random<float>(e, rows * 3);
  auto columns = repeated(e, nnz, column), starts = repeated(e, start.size(), start);
  auto y = constant<float>(e, rows * 3, NAN);
  Job j;
  j.mbytes = 1e-6 * (40. * double(nnz) + 28. * rows);
  j.add(bcsr, RowCfg{e.field("B", e.big ? 128 : 32), e.field("warps", e.big ? 4 : 1)}, blocks.p, columns.p, starts.p,
        x.p, y.p, rows);
  j.check = [=] {
    std::vector<double> want(rows * 3);
    for (int i = 0; i < rows; ++i)
      for (int k = start[i]; k < start[i + 1]; ++k)
        for (int a = 0; a < 3; ++a)
          for (int b = 0; b < 3; ++b) want[i * 3 + a] += blocks[size_t(k) * 9 + a * 3 + b] * x[column[k] * 3 + b];
    return agree(y.now(), want, 1e-4, 1e-5);
  };
  return j;
});

// --- one step of PageRank: a vertex pulls from those that link to it, eight lanes a vertex; how much changed
auto page_rank = kernel("user_page_rank",
                        [](const RowCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> from, Ptr<const float> share,
                           Ptr<const int32_t> links, Ptr<const float> old, Ptr<float> rank, Ptr<float> next,
                           Ptr<float> change, I32 n, F32 damping, F32 dangling) {
                          // share = old / links, or 0; next is the share of the new rank
                          num_warps(c.warps);
                          auto v = program_id(0) * c.B + arange(0, c.B);
                          auto ok = v < n;
                          auto first = load(start + v, {.mask = ok}), last = load(start + v + 1, {.mask = ok});
                          Tile k = first.col() + arange(0, 8).row();
                          Tile partial = zeros({c.B, 8}, f32);
                          while_([&] { return any(k < last.col()); },
                                 [&] {
                                   auto there = k < last.col();
                                   auto u = load(from + k, {.mask = there, .other = 0});
                                   partial += load(share + u, {.mask = there});
                                   k += 8;
                                 });
                          auto mine = squeeze(sum(partial, axis(1)), 1);
                          auto value = (1.f - damping) / cast(n, f32) + damping * (mine + dangling / cast(n, f32));
                          auto out = load(links + v, {.mask = ok});
                          store(rank + v, value, {.mask = ok});
                          store(next + v, where(out > 0, value / cast(max(out, 1), f32), 0.f), {.mask = ok});
                          auto moved = where(ok, abs(value - load(old + v, {.mask = ok})), 0.f);
                          atomic_add(change, sum(moved), {.order = Order::relaxed});
                        })
                     .grid([](const RowCfg& c, const auto*, const auto*, const auto*, const auto*, const auto*, auto*,
                              auto*, auto*, int n, auto...) { return Grid{cdiv(n, c.B)}; });
Register r3("page_rank", [](Env& e) {
  const int n = e.big ? 1'000'000 : 150, most = e.big ? 32 : 20;
  std::vector<int32_t> start(1), from, links(n);
  for (int i = 0; i < n; ++i) {
    for (int k = 0, count = int(e.uniform() * e.uniform() * most); k < count && i % 13 != 5; ++k)
      from.push_back(int(e.uniform() * .97 * n)), ++links[from.back()];
    start.push_back(int(from.size()));
  }
  std::vector<float> old(n), share(n);
  double lost = 0;
  for (int i = 0; i < n; ++i) {
    old[i] = float(2 * e.uniform() / n), share[i] = links[i] ? old[i] / float(links[i]) : 0;
    if (!links[i]) lost += old[i];
  }
  const float damping = .85f, dangling = float(lost);
  auto starts = repeated(e, start.size(), start), froms = repeated(e, from.size(), from), out = repeated(e, n, links);
  auto shares = repeated(e, n, share), olds = repeated(e, n, old);
  auto rank = constant<float>(e, n, NAN), next = constant<float>(e, n, NAN), change = constant<float>(e, 1, 0);
  Job j;
  j.mbytes = 1e-6 * (8. * double(from.size()) + 24. * n);
  j.add(page_rank, RowCfg{e.field("B", e.big ? 64 : 16), e.field("warps", e.big ? 4 : 1)}, starts.p, froms.p, shares.p,
        out.p, olds.p, rank.p, next.p, change.p, n, damping, dangling);
  j.check = [=] {
    std::vector<double> want(n), onwards(n), moved(1);
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int k = start[i]; k < start[i + 1]; ++k) sum += share[from[k]];
      want[i] = (1. - damping) / n + damping * (sum + dangling / n);
      onwards[i] = links[i] ? want[i] / links[i] : 0;
      moved[0] += std::abs(want[i] - old[i]);
    }
    auto wrong = agree(rank.now(), want, 1e-8, 1e-5);
    if (wrong.empty()) wrong = agree(next.now(), onwards, 1e-8, 1e-5);
    return wrong.empty() ? agree(change.now(), moved, 1e-6, 1e-4) : wrong;
  };
  return j;
});

// --- communities: a vertex takes the label that most of its (at most 16) neighbours have, the smallest of several
auto follow = kernel("user_follow", [](const RowCfg& c, Tensor<const int32_t, 2> neighbours,
                                       Tensor<const int32_t, 1> label, Tensor<int32_t, 1> out) {
                // neighbours [n, 16], padded with -1
                num_warps(c.warps);
                auto v = program_id(0) * c.B;
                auto u = neighbours.load({v, 0}, {c.B, 16}, {.pad = -1});
                auto there = u >= 0;
                auto l = load(label.ptr() + where(there, u, 0), {.mask = there, .other = -1});
                auto same = expand_dims(l, 2) == expand_dims(l, 1);
                auto votes = squeeze(sum(where(same, 1, 0), axis(2)), 2);
                auto key = where(there, cast(votes, i64) * (int64_t(1) << 32) - cast(l, i64), int64_t(-1) << 40);
                auto best = squeeze(max(key, axis(1)), 1);
                auto none = best == int64_t(-1) << 40;
                auto winner = cast((int64_t(1) << 32) - best % (int64_t(1) << 32), i32);  // 0 stays 0 below
                winner = where(best % (int64_t(1) << 32) == 0, 0, winner);
                out.store({v}, where(none, label.load({v}, {c.B}), winner));
              }).grid([](const RowCfg& c, const auto& u, const auto&...) { return Grid{cdiv(u.shape[0], c.B)}; });
Register r4("follow", [](Env& e) {
  const int n = e.big ? 1 << 20 : 203;
  std::vector<int32_t> near(size_t(n) * 16, -1);
  for (int i = 0; i < n; ++i)
    for (int k = 0, count = int(e.uniform() * 17); k < count; ++k)
      near[size_t(i) * 16 + (e.uniform() < .9 ? k : 15 - k)] = int(e.uniform() * n);
  auto neighbours = repeated(e, near.size(), near);
  auto label = integers<int32_t>(e, n, 0, e.big ? 40 : 9);
  auto out = constant<int32_t>(e, n, -7);
  Job j;
  j.mbytes = 1e-6 * n * (16 * 8 + 8);
  j.add(follow, RowCfg{e.field("B", e.big ? 64 : 16), e.field("warps", e.big ? 4 : 1)}, neighbours.view(n, 16),
        label.view(n), out.view(n));
  j.check = [=] {
    std::vector<double> want(n);
    for (int i = 0; i < n; ++i) {
      std::map<int, int> votes;
      for (int k = 0; k < 16; ++k)
        if (const int u = near[size_t(i) * 16 + k]; u >= 0) ++votes[label.at(u)];
      int most = 0;
      want[i] = label[i];
      for (const auto& [which, count] : votes)
        if (count > most) most = count, want[i] = which;
    }
    return agree(out.now(), want, .5, 0);
  };
  return j;
});

}  // namespace sparse_steps
}  // namespace users
