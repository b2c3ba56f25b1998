// connections.cpp - trees, graphs and tours: trees of boxes built from sorted places, colours of a graph, its cheapest
// tree, tours made shorter.
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace connections {

// --- a tree over sorted Morton codes (Karras): every inner node finds its range and its split by itself; boxes come up
// from the leaves, and whoever comes second to a node goes on
struct TreeCfg {
  int B = 128, warps = 4;
};
auto tree_shape =
    kernel("user_tree_shape", [](const TreeCfg& c, Ptr<const uint32_t> codes, Ptr<int32_t> left, Ptr<int32_t> right,
                                 Ptr<int32_t> parent, I32 n) {
      // inner nodes 0 .. n - 2, leaves n - 1 .. 2 n - 2
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < n - 1;
      auto mine = load(codes + i, {.mask = in});
      auto alike = [&](Tile j, Tile mask) {  // how many leading bits two leaves share; equal codes go by place
        auto there = mask & (j >= 0) & (j < n);
        auto code = load(codes + j, {.mask = there});
        auto bits =
            where(code == mine, 32 + cast(countl_zero(cast(i ^ j, u32)), i32), cast(countl_zero(code ^ mine), i32));
        return where(there, bits, -1);
      };
      auto d = where(alike(i + 1, in) > alike(i - 1, in), 1, -1);
      auto least = alike(i - d, in);
      Tile most = full({c.B}, 2, i32), grows = in;
      while_([&] { return any(grows); },
             [&] {
               grows = grows & (alike(i + most * d, grows) > least);
               most = where(grows, most * 2, most);
             });
      Tile length = zeros({c.B}, i32), t = most / 2;
      while_([&] { return any(in & (t >= 1)); },
             [&] {
               auto further = in & (t >= 1) & (alike(i + (length + t) * d, in) > least);
               length = where(further, length + t, length), t = t / 2;
             });
      auto j = i + length * d;
      auto common = alike(j, in);
      Tile split = zeros({c.B}, i32), step = length, goes = in;
      while_([&] { return any(goes); },
             [&] {
               step = (step + 1) / 2;
               split = where(goes & (alike(i + (split + step) * d, goes) > common), split + step, split);
               goes = goes & (step > 1);
             });
      auto at = i + split * d + min(d, 0);
      auto l = where(min(i, j) == at, n - 1 + at, at), r = where(max(i, j) == at + 1, n + at, at + 1);
      store(left + i, l, {.mask = in});
      store(right + i, r, {.mask = in});
      store(parent + l, i, {.mask = in});
      store(parent + r, i, {.mask = in});
    }).grid([](const TreeCfg& c, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto tree_boxes =
    kernel("user_tree_boxes", [](const TreeCfg& c, Ptr<const int32_t> left, Ptr<const int32_t> right,
                                 Ptr<const int32_t> parent, Ptr<float> boxes, Ptr<int32_t> visits, I32 n) {
      // boxes [2 n - 1, 6]: those of leaves are there; visits starts as zeros
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      Tile open = i < n;
      Tile node = load(parent + (n - 1 + i), {.mask = open});
      while_([&] { return any(open); },
             [&] {
               auto before = atomic_add(visits + node, 1, {.mask = open});
               open = open & (before == 1);
               auto a = load(left + node, {.mask = open}), b = load(right + node, {.mask = open});
               for (int k = 0; k < 6; ++k) {
                 auto x = load(boxes + a * 6 + k, {.mask = open, .cache = Cache::volatile_});
                 auto y = load(boxes + b * 6 + k, {.mask = open, .cache = Cache::volatile_});
                 store(boxes + node * 6 + k, k < 3 ? min(x, y) : max(x, y), {.mask = open});
               }
               auto last = node == 0;
               node = load(parent + node, {.mask = open & ~last});
               open = open & ~last;
             });
    }).grid([](const TreeCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r1("box_tree", [](Env& e) {
  TreeCfg c;
  if (!e.big) c = {32, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 20 : 157;
  std::vector<uint32_t> sorted(n);
  for (auto& x : sorted) x = uint32_t(e.uniform() * (e.big ? 1 << 30 : 1 << 8));  // many are equal
  std::sort(sorted.begin(), sorted.end());
  auto codes = filled<uint32_t>(e, n, [&](size_t i) { return sorted[i]; });
  auto left = constant<int32_t>(e, n - 1, -1), right = constant<int32_t>(e, n - 1, -1);
  auto parent = constant<int32_t>(e, 2 * n - 1, -1), visits = constant<int32_t>(e, n - 1, 0);
  auto boxes = filled<float>(e, size_t(2 * n - 1) * 6, [&](size_t i) {
    return int(i / 6) < n - 1 ? NAN : float(e.uniform() + (i % 6 < 3 ? 0 : 1));
  });
  Job j;
  j.mbytes = 92e-6 * n;
  j.inTurn = true;
  restore(e, j, visits);
  j.add(tree_shape, c, codes.p, left.p, right.p, parent.p, n);
  j.add(tree_boxes, c, left.p, right.p, parent.p, boxes.p, visits.p, n);
  j.check = [=]() -> std::string {
    const auto l = left.now(), r = right.now();
    const auto box = boxes.now();
    int leaf = 0;
    std::string wrong;
    std::function<std::array<float, 6>(int, int, int)> walk = [&](int node, int first, int last) {
      std::array<float, 6> b;
      if (node >= n - 1) {
        if (node - (n - 1) != leaf++) wrong = "order of leaves";
        for (int k = 0; k < 6; ++k) b[k] = boxes.at(size_t(node) * 6 + k);
        return b;
      }
      if (first >= last) {
        wrong = "range";
        return b;
      }
      auto key = [&](int i) { return uint64_t(sorted[i]) << 32 | uint32_t(i); };
      const int bit = 63 - __builtin_clzll(key(first) ^ key(last));
      int split = first;
      while (!(key(split + 1) >> bit & 1)) ++split;
      const auto x = walk(l[node], first, split), y = walk(r[node], split + 1, last);
      for (int k = 0; k < 6; ++k) {
        b[k] = k < 3 ? std::min(x[k], y[k]) : std::max(x[k], y[k]);
        if (box[size_t(node) * 6 + k] != b[k] && wrong.empty()) wrong = "box of " + std::to_string(node);
      }
      return b;
    };
    walk(0, 0, n - 1);
    return leaf == n ? wrong : wrong + " leaves";
  };
  return j;
});

// --- colours of a graph (Jones and Plassmann, all rounds of one level): a vertex whose number is the largest among its
// neighbours without colour takes the smallest colour that none of them has
struct ColourCfg {
  int B = 128, warps = 4;
};
auto colouring =
    kernel("user_colouring", [](const ColourCfg& c, Ptr<const int32_t> start, Ptr<const int32_t> neighbours,
                                Ptr<const int32_t> before, Ptr<int32_t> after, Ptr<int32_t> open, I32 n) {
      num_warps(c.warps);
      auto v = program_id(0) * c.B + arange(0, c.B);
      auto in = v < n;
      auto mine = load(before + v, {.mask = in});
      auto rank = [](Tile x) { return cast(x, u32) * 0x9E3779B1u; };
      auto first = load(start + v, {.mask = in}), end = load(start + v + 1, {.mask = in});
      Tile taken = zeros({c.B}, u64), wins = in & (mine < 0), at = first;
      while_([&] { return any(wins & (at < end)); },
             [&] {
               auto there = wins & (at < end);
               auto u = load(neighbours + at, {.mask = there});
               auto colour = load(before + u, {.mask = there, .other = -1});
               taken = taken | where(colour >= 0, cast(full({}, 1, i32), u64) << cast(max(colour, 0), u64), 0);
               wins = wins & ~(there & (colour < 0) & (rank(u) > rank(v)));
               at += 1;
             });
      store(after + v, where(wins, cast(countr_zero(~taken), i32), mine), {.mask = in});
      auto left = sum(cast(in & (mine < 0) & ~wins, i32));
      if_(left > 0, [&] { atomic_add(open, left, {.order = Order::relaxed}); });
    }).grid([](const ColourCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r8("colouring", [](Env& e) {
  ColourCfg c;
  if (!e.big) c = {32, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 19 : 133, rounds = 6;
  std::vector<std::vector<int>> near(n);
  for (int v = 0; v < n; ++v)
    for (int k = 0; k < 4; ++k) {
      const int u = int(e.uniform() * n * .99999);
      if (u != v) near[v].push_back(u), near[u].push_back(v);
    }
  std::vector<int32_t> start{0}, list;
  for (auto& l : near) list.insert(list.end(), l.begin(), l.end()), start.push_back(int(list.size()));
  auto s = filled<int32_t>(e, n + 1, [&](size_t i) { return start[i]; });
  auto l = filled<int32_t>(e, list.size(), [&](size_t i) { return list[i]; });
  auto a = constant<int32_t>(e, n, -1), b = constant<int32_t>(e, n, -1), open = constant<int32_t>(e, rounds, 0);
  Job j;
  j.mbytes = 8e-6 * list.size() * rounds;
  j.inTurn = true;
  restore(e, j, a, open);
  for (int r = 0; r < rounds; ++r) j.add(colouring, c, s.p, l.p, r % 2 ? b.p : a.p, r % 2 ? a.p : b.p, open.p + r, n);
  j.check = [=]() -> std::string {
    std::vector<int> colour(n, -1), left;
    for (int r = 0; r < rounds; ++r) {
      auto next = colour;
      left.push_back(0);
      for (int v = 0; v < n; ++v) {
        if (colour[v] >= 0) continue;
        uint64_t taken = 0;
        bool wins = true;
        for (int u : near[v]) {
          if (colour[u] >= 0) taken |= 1ull << colour[u];
          wins = wins && (colour[u] >= 0 || uint32_t(u) * 0x9E3779B1u <= uint32_t(v) * 0x9E3779B1u);
        }
        if (wins) next[v] = __builtin_ctzll(~taken);
        left.back() += !wins;
      }
      colour = next;
    }
    return a.now() != colour ? "colours" : open.now() != left ? "how many have none" : "";
  };
  return j;
});

// --- the cheapest tree of a graph (Boruvka), one round: every component's cheapest edge out of it by atomic minima of
// weight and number in one word; then components hook onto each other and all vertices look for their roots
struct SpanCfg {
  int B = 256, warps = 4;
};
auto cheapest_edge =
    kernel("user_cheapest_edge", [](const SpanCfg& c, Tensor<const int32_t, 2> edges, Ptr<const float> weights,
                                    Ptr<const int32_t> root, Ptr<uint64_t> best) {
      num_warps(c.warps);
      auto first = program_id(0) * c.B;
      auto [u, v] = split(edges.load({first, 0}, {c.B, 2}));
      auto i = first + arange(0, c.B);
      auto in = i < edges.dim(0);
      auto a = load(root + u, {.mask = in}), b = load(root + v, {.mask = in});
      auto word = cast(bitcast(load(weights + i, {.mask = in}), u32), u64) << 32 | cast(i, u64);
      auto out = in & (a != b);
      atomic_min(best + a, word, {.mask = out, .order = Order::relaxed});
      atomic_min(best + b, word, {.mask = out, .order = Order::relaxed});
    }).grid([](const SpanCfg& c, const auto& edges, auto, auto, auto) { return Grid{cdiv(edges.shape[0], c.B)}; });
auto hook = kernel("user_span_hook", [](const SpanCfg& c, Ptr<const int32_t> edges, Ptr<const uint64_t> best,
                                        Ptr<const int32_t> before, Ptr<int32_t> root, Ptr<double> total, I32 n) {
              num_warps(c.warps);
              auto v = program_id(0) * c.B + arange(0, c.B);
              auto in = v < n;
              auto word = load(best + v, {.mask = in, .other = UINT64_MAX});
              auto has = in & (word != UINT64_MAX);
              auto e = cast(word & 0xFFFFFFFFu, i32);
              auto a = load(before + load(edges + e * 2, {.mask = has}), {.mask = has});
              auto b = load(before + load(edges + e * 2 + 1, {.mask = has}), {.mask = has});
              auto other = where(a == v, b, a);
              // Two that chose the same edge: the smaller one stays a root.
              auto both = has & (load(best + other, {.mask = has}) == word);
              auto stays = ~has | (both & (v < other));
              store(root + v, where(stays, v, other), {.mask = in});
              auto w = where(has & ~stays, cast(bitcast(cast(word >> 32, u32), f32), f64), 0.0);
              atomic_add(total, sum(w));
            }).grid([](const SpanCfg& c, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
auto find_roots =
    kernel("user_span_roots", [](const SpanCfg& c, Ptr<const int32_t> up, Ptr<const int32_t> before, Ptr<int32_t> root,
                                 I32 n) {
      num_warps(c.warps);
      auto v = program_id(0) * c.B + arange(0, c.B);
      auto in = v < n;
      Tile at = load(before + v, {.mask = in}), next = load(up + at, {.mask = in});
      while_([&] { return any(in & (next != at)); }, [&] { at = next, next = load(up + at, {.mask = in}); });
      store(root + v, at, {.mask = in});
    }).grid([](const SpanCfg& c, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r9("spanning_tree", [](Env& e) {
  SpanCfg c;
  if (!e.big) c = {32, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int n = e.big ? 1 << 19 : 101, m = n * 4, rounds = e.big ? 2 : 7;
  std::vector<int32_t> ends;
  for (int i = 0; i < m; ++i)
    ends.push_back(int(e.uniform() * n * .99999)), ends.push_back(int(e.uniform() * n * .99999));
  auto edges = filled<int32_t>(e, ends.size(), [&](size_t i) { return ends[i]; });
  auto weights = random<float>(e, m, 0, 10);
  auto total = constant<double>(e, 1, 0);
  auto root = filled<int32_t>(e, n, [](size_t i) { return int(i); });
  Job j;
  j.mbytes = 30e-6 * m * rounds;
  j.inTurn = true;
  for (int r = 0; r < rounds; ++r) {
    auto best = filled<uint64_t>(e, n, [](size_t) { return UINT64_MAX; });
    auto up = constant<int32_t>(e, n, -1), now = constant<int32_t>(e, n, -1);
    j.add(cheapest_edge, c, edges.view(m, 2), weights.p, root.p, best.p);
    j.add(hook, c, edges.p, best.p, root.p, up.p, total.p, n);
    j.add(find_roots, c, up.p, root.p, now.p, n);
    root = now;
  }
  j.check = [=]() -> std::string {
    std::vector<int> order(m), parent(n);
    std::iota(order.begin(), order.end(), 0), std::iota(parent.begin(), parent.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return weights[a] < weights[b]; });
    std::function<int(int)> find = [&](int v) { return parent[v] == v ? v : parent[v] = find(parent[v]); };
    double want = 0;
    for (int i : order) {
      const int a = find(ends[2 * i]), b = find(ends[2 * i + 1]);
      if (a != b) parent[a] = b, want += weights[i];
    }
    const auto got = root.now();
    for (int v = 0; v < n; ++v)
      if ((got[v] == got[0]) != (find(v) == find(0))) return "component of " + std::to_string(v);
    return std::abs(total.now()[0] - want) < 1e-9 ? "" : "weight";
  };
  return j;
});

// --- tours made shorter (2-opt): of all pairs of a tour's edges the exchange that gains most, until none gains; a tour
// a program, its order in memory
struct TourCfg {
  int B = 32, warps = 4;
};
auto two_opt =
    kernel("user_two_opt", [](const TourCfg& c, Tensor<const float, 3> places, Tensor<int32_t, 2> order,
                              Ptr<int32_t> moves, I32 most) {
      // places [tours, n, 2], order [tours, n]: first 0, 1, ..
      num_warps(c.warps);
      auto t = program_id(0), n = places.dim(1);
      auto mine = order.ptr() + cast(t, i64) * order.stride(0);
      auto point = [&](Tile i, int axis) {
        auto city = load(mine + where(i < n, i, 0), {.mask = i < n + 1});
        return load(places.ptr() + cast(t, i64) * places.stride(0) + cast(city, i64) * 2 + axis, {.mask = i < n + 1});
      };
      Tile done = full({}, 0, i32), gains = full({}, true, i1);
      while_([&] { return gains & (done < most); },
             [&] {
               // The best exchange of every place of a block; the best of all is looked for once a move.
               Tile best = full({c.B, c.B}, -1e-4f, f32), which = full({c.B, c.B}, 0, i32);
               auto far = [](Tile ax, Tile ay, Tile bx, Tile by) {
                 return sqrt((ax - bx) * (ax - bx) + (ay - by) * (ay - by));
               };
               for (auto i : range(0, n, c.B)) {
                 auto a = i + arange(0, c.B);
                 auto ax = point(a, 0).col(), ay = point(a, 1).col(), cx = point(a + 1, 0).col(),
                      cy = point(a + 1, 1).col();
                 for (auto j : range(i, n, c.B)) {
                   auto b = j + arange(0, c.B);
                   auto bx = point(b, 0).row(), by = point(b, 1).row(), dx = point(b + 1, 0).row(),
                        dy = point(b + 1, 1).row();
                   auto change = far(ax, ay, bx, by) + far(cx, cy, dx, dy) - far(ax, ay, cx, cy) - far(bx, by, dx, dy);
                   auto better = (a.col() + 1 < b.row()) & (b.row() < n) & (change < best);
                   best = where(better, change, best), which = where(better, a.col() * n + b.row(), which);
                 }
               }
               auto [least, at] = min_with_index(ravel(best), axis(0));
               gains = to_scalar(least) < -1e-4f;
               auto pair = to_scalar(take(ravel(which), at, 0));
               auto from = pair / n, to = pair % n;
               for (auto _ : when(gains)) {
                 auto low = from + 1, count = (to - from) / 2;
                 for (auto k : range(0, count, c.B)) {
                   auto s = k + arange(0, c.B);
                   auto m = s < count;
                   auto x = load(mine + low + s, {.mask = m}), y = load(mine + to - s, {.mask = m});
                   store(mine + low + s, y, {.mask = m});
                   store(mine + to - s, x, {.mask = m});
                 }
                 done += 1;
               }
             });
      store(moves + t, done);
    }).grid([](const TourCfg&, const auto& places, const auto&, auto, int) { return Grid{places.shape[0]}; });
Register r10("two_opt", [](Env& e) {
  TourCfg c;
  if (!e.big) c = {8, 1};
  c.warps = e.field("warps", c.warps), c.B = e.field("B", c.B);
  const int T = e.big ? 528 : 3, n = e.big ? 256 : 27;
  auto places = random<float>(e, size_t(T) * n * 2);
  auto order = filled<int32_t>(e, size_t(T) * n, [&](size_t i) { return int(i % n); });
  auto moves = constant<int32_t>(e, T, -1);
  Job j;
  j.gflop = 1e-9 * T * 100 * n * n / 2 * 20;
  j.inTurn = true;
  restore(e, j, order);
  j.add(two_opt, c, places.view(T, n, 2), order.view(T, n), moves.p, 100);
  j.check = [=]() -> std::string {
    const auto got = order.now();
    const auto done = moves.now();
    for (int t = 0; t < T; ++t) {
      std::vector<int> tour(got.begin() + t * n, got.begin() + (t + 1) * n);
      auto sorted = tour;
      std::sort(sorted.begin(), sorted.end());
      for (int i = 0; i < n; ++i)
        if (sorted[i] != i) return "places are lost";
      auto far = [&](int a, int b) {
        const size_t p = (size_t(t) * n + a) * 2, q = (size_t(t) * n + b) * 2;
        return std::hypot(places[p] - places[q], places[p + 1] - places[q + 1]);
      };
      if (done[t] < 3 || done[t] >= 100) return "moves of " + std::to_string(t);
      for (int i = 0; i < n; ++i)
        for (int k = i + 2; k < n; ++k) {
          const int a = tour[i], b = tour[i + 1], x = tour[k], y = tour[(k + 1) % n];
          if (far(a, x) + far(b, y) - far(a, b) - far(x, y) < -2e-4) return "an exchange gains";
        }
    }
    return "";
  };
  return j;
});

}  // namespace connections
}  // namespace users
