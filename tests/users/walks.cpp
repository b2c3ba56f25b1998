// walks.cpp - programs whose next step depends on what the last one found: a graph searched from its best candidates, a
// tree with a stack per ray, streams that lanes read in turn, merges of pairs until none is left.
#include <set>

#include "tests/users/use.h"
namespace users {
namespace walks {

// --- nearest neighbours by a walk over a graph (CAGRA): the best candidate not visited hands in its neighbours; a
// query a program, candidates as 64-bit keys: distance, number, visited
struct GraphCfg {
  int L = 64, D = 128, degree = 32, warps = 0;
};
auto graph_search =
    kernel("user_graph_search", [](const GraphCfg& c, Tensor<const half, 2> X, Ptr<const int32_t> graph,
                                   Tensor<const half, 2> Q, Ptr<int32_t> found, Ptr<float> distances, I32 K) {
      // X [N, D], graph [N, degree], Q [queries, D], found, distances [queries, K]; the walk starts at rows 0 .. degree
      if (c.warps) num_warps(c.warps);
      auto query = program_id(0);
      auto q = cast(Q.load({query, 0}, {1, c.D}), f32);
      auto keys = [&](Tile rows) {
        auto d = cast(X.gather(rows, 0, c.D), f32) - q;
        auto distance = squeeze(sum(d * d, axis(1)), 1);
        return (cast(bitcast(distance, u32), i64) << 32) | cast(rows * 2, i64);
      };
      const int64_t kNone = int64_t(0x7F800000) << 32;  // infinitely far
      auto i = arange(0, c.L);
      Tile list = sort(cat(keys(arange(0, c.degree)), full({c.L - c.degree}, kNone | 1, i64), 0), axis(0));
      Tile open = (list & 1) == 0;
      while_([&] { return any(open); },
             [&] {
               auto best = argmax(cast(open, i32), axis(0));
               auto node = to_scalar(take(cast(list & 0xFFFFFFFF, i32) >> 1, best, 0));
               list = list | cast(i == best, i64);
               auto rows = load(graph + node * c.degree + arange(0, c.degree));
               auto known = any((cast(list & 0xFFFFFFFF, i32) >> 1).row() == rows.col(), axis(1));
               auto fresh = where(squeeze(known, 1), kNone | 1, keys(rows));
               list = extract(sort(cat(list, fresh, 0), axis(0)), {0}, {c.L});
               open = (list & 1) == 0;
             });
      store(found + query * K + i, cast(list & 0xFFFFFFFF, i32) >> 1, {.mask = i < K});
      store(distances + query * K + i, bitcast(cast(list >> 32, u32), f32), {.mask = i < K});
    }).grid([](const GraphCfg&, const auto&, auto, const auto& q, auto, auto, int) { return Grid{q.shape[0]}; });
Register r1("graph_search", [](Env& e) {
  GraphCfg c;
  if (!e.big) c = {16, 8, 8, 0};
  c.warps = e.field("warps", 0), c.L = e.field("L", c.L);
  const int N = e.big ? 1 << 20 : 100, B = e.big ? 8192 : 5, K = e.big ? 10 : 4, D = c.D;
  auto x = random<half>(e, size_t(N) * D), q = random<half>(e, size_t(B) * D);
  auto graph = filled<int32_t>(e, size_t(N) * c.degree, [&](size_t i) {  // no neighbour twice
    const size_t row = i / c.degree, at = i % c.degree;
    return int((row * 5 + 1 + at * (N / c.degree) + uint32_t(row * 2654435761u) % (N / c.degree)) % N);
  });
  auto found = constant<int32_t>(e, size_t(B) * K, -1);
  auto d = constant<float>(e, size_t(B) * K, NAN);
  Job j;
  j.mbytes = 1e-6 * B * c.L * c.degree * 2. * D;
  j.add(graph_search, c, x.view(N, D), graph.p, q.view(B, D), found.p, d.p, K);
  j.check = [=]() -> std::string {
    const auto rows = found.now();
    const auto far = d.now();
    for (int b = 0; b < B; ++b) {
      using Key = std::pair<float, int>;
      auto distance = [&](int row) {
        double s = 0;
        for (int k = 0; k < D; ++k) s += std::pow(q[size_t(b) * D + k] - x[size_t(row) * D + k], 2);
        return float(s);
      };
      std::set<Key> list, visited;
      for (int row = 0; row < c.degree; ++row) list.insert({distance(row), row});
      for (;;) {
        auto it = std::find_if(list.begin(), list.end(), [&](const Key& k) { return !visited.count(k); });
        if (it == list.end()) break;
        const int node = it->second;
        visited.insert(*it);
        const auto before = list;
        for (int k = 0; k < c.degree; ++k) {
          const int row = graph.h[node * c.degree + k];
          if (Key key{distance(row), row}; !before.count(key)) list.insert(key);
        }
        while (int(list.size()) > c.L) list.erase(std::prev(list.end()));
        // What fell out of the list may come back, and is then new.
        for (auto v = visited.begin(); v != visited.end();) v = list.count(*v) ? std::next(v) : visited.erase(v);
      }
      auto it = list.begin();
      for (int k = 0; k < K; ++k, ++it)
        if (rows[b * K + k] != it->second || std::abs(far[b * K + k] - it->first) > 1e-4)
          return "query " + std::to_string(b) + ", place " + std::to_string(k) + ": " +
                 std::to_string(rows[b * K + k]) + " instead of " + std::to_string(it->second);
    }
    return "";
  };
  return j;
});

// --- rays through a binary tree of boxes, the nearer child first, the other one on a stack of the ray; leaves are
// spheres
struct StackCfg {
  int B = 128, depth = 24, warps = 0;
};
auto ray_stack =
    kernel("user_ray_stack", [](const StackCfg& c, Ptr<const float> boxes, Ptr<const int32_t> children,
                                Ptr<const float> spheres, Ptr<const float> rays, Ptr<float> hit, Ptr<int32_t> which,
                                I32 n) {
      // boxes [nodes, 6] (low, high), children [nodes]: the left one, its right one behind it; -1 - s: the sphere s
      // [4]; rays [n, 6] (origin, direction of length 1)
      if (c.warps) num_warps(c.warps);
      auto ray = program_id(0) * c.B + arange(0, c.B);
      auto alive = ray < n;
      std::array<Tile, 3> o, d, inv;
      for (int a = 0; a < 3; ++a) {
        o[a] = load(rays + ray * 6 + a, {.mask = alive}),
        d[a] = load(rays + ray * 6 + 3 + a, {.mask = alive, .other = 1});
        inv[a] = 1.f / d[a];
      }
      Tile best = full({c.B}, 1e30f, f32), who = full({c.B}, -1, i32);
      auto enter = [&](Tile node, Tile mask) {
        Tile near = full({c.B}, 0.f, f32), far = best;
        for (int a = 0; a < 3; ++a) {
          auto x = (load(boxes + node * 6 + a, {.mask = mask}) - o[a]) * inv[a];
          auto y = (load(boxes + node * 6 + 3 + a, {.mask = mask}) - o[a]) * inv[a];
          near = max(near, min(x, y)), far = min(far, max(x, y));
        }
        return where(mask & (near <= far), near, 1e30f);
      };
      auto level = arange(0, c.depth).row();
      Tile stack = zeros({c.B, c.depth}, i32), top = zeros({c.B}, i32), node = zeros({c.B}, i32);
      Tile active = alive & (enter(node, alive) < 1e30f);
      while_([&] { return any(active); },
             [&] {
               auto child = load(children + node, {.mask = active});
               auto leaf = active & (child < 0), inner = active & (child >= 0);
               auto s = -1 - child;
               Tile b = full({c.B}, 0.f, f32), q = full({c.B}, 0.f, f32);
               for (int a = 0; a < 3; ++a) {
                 auto x = o[a] - load(spheres + s * 4 + a, {.mask = leaf});
                 b += x * d[a], q += x * x;
               }
               auto r = load(spheres + s * 4 + 3, {.mask = leaf});
               auto root = b * b - (q - r * r);
               auto t = -b - sqrt(max(root, 0.f));
               auto closer = leaf & (root >= 0.f) & (t > 0.f) & (t < best);
               best = where(closer, t, best), who = where(closer, s, who);
               auto tl = enter(child, inner), tr = enter(child + 1, inner);
               auto left_first = tl <= tr;
               auto near = where(left_first, child, child + 1), far = where(left_first, child + 1, child);
               auto one = inner & (min(tl, tr) < 1e30f), two = inner & (max(tl, tr) < 1e30f);
               stack = where((level == top.col()) & two.col(), far.col(), stack);
               top += cast(two, i32);
               auto pop = active & ~one & (top > 0);
               auto popped = squeeze(take(stack, max(top - 1, 0).col(), 1), 1);
               node = where(one, near, where(pop, popped, node));
               top -= cast(pop, i32);
               active = one | pop;
             });
      store(hit + ray, best, {.mask = alive});
      store(which + ray, who, {.mask = alive});
    }).grid([](const StackCfg& c, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });
Register r2("ray_stack", [](Env& e) {
  StackCfg c;
  if (!e.big) c = {32, 12, 0};
  c.B = e.field("B", c.B), c.warps = e.field("warps", 0), c.depth = e.field("depth", c.depth);
  const int S = e.big ? 1 << 16 : 64, n = e.big ? 1 << 20 : 100;
  const float radius = e.big ? .008f : .05f;
  std::vector<std::array<float, 3>> centre(S);
  for (auto& p : centre) p = {float(e.uniform()), float(e.uniform()), float(e.uniform())};
  std::vector<float> box;
  std::vector<int32_t> child;
  std::vector<int> order(S);
  for (int i = 0; i < S; ++i) order[i] = i;
  // Halves along x, y, z in turn: the children of a node are neighbours.
  std::function<void(int, int, int, int)> build = [&](int at, int from, int to, int a) {
    for (int k = 0; k < 3; ++k) {
      float low = 9, high = -9;
      for (int i = from; i < to; ++i)
        low = std::min(low, centre[order[i]][k]), high = std::max(high, centre[order[i]][k]);
      box[at * 6 + k] = low - radius, box[at * 6 + 3 + k] = high + radius;
    }
    if (to - from == 1) {
      child[at] = -1 - order[from];
      return;
    }
    const int mid = (from + to) / 2, left = int(child.size());
    std::nth_element(order.begin() + from, order.begin() + mid, order.begin() + to,
                     [&](int x, int y) { return centre[x][a] < centre[y][a]; });
    child[at] = left;
    child.resize(left + 2), box.resize(size_t(left + 2) * 6);
    build(left, from, mid, (a + 1) % 3), build(left + 1, mid, to, (a + 1) % 3);
  };
  child.resize(1), box.resize(6);
  if (e.device) build(0, 0, S, 0);
  auto boxes = filled<float>(e, size_t(2 * S) * 6, [&](size_t i) { return i < box.size() ? box[i] : 0; });
  auto children = filled<int32_t>(e, 2 * S, [&](size_t i) { return i < child.size() ? child[i] : 0; });
  auto spheres = filled<float>(e, size_t(S) * 4, [&](size_t i) { return i % 4 == 3 ? radius : centre[i / 4][i % 4]; });
  std::vector<float> line(size_t(n) * 6);
  for (int i = 0; i < (e.device ? n : 0); ++i) {
    const double x = (i % 1024 + .5) / 1024 * .9, y = (i / 1024 % 1024 + .5) / 1024 * .9;
    double d[3] = {e.uniform() * .3 + .05, e.uniform() * .3 + .05, 1};
    const double length = std::sqrt(d[0] * d[0] + d[1] * d[1] + 1);
    const double o[3] = {e.big ? x : e.uniform(), e.big ? y : e.uniform(), -1};
    for (int a = 0; a < 3; ++a) line[i * 6 + a] = float(o[a]), line[i * 6 + 3 + a] = float(d[a] / length);
  }
  auto rays = filled<float>(e, line.size(), [&](size_t i) { return line[i]; });
  auto hit = constant<float>(e, n, NAN);
  auto which = constant<int32_t>(e, n, -7);
  Job j;
  j.mbytes = 32e-6 * n;
  j.add(ray_stack, c, boxes.p, children.p, spheres.p, rays.p, hit.p, which.p, n);
  j.check = [=]() -> std::string {
    const auto got = hit.now();
    const auto who = which.now();
    for (int i = 0; i < n; ++i) {
      double best = 1e30;
      for (int s = 0; s < S; ++s) {
        double b = 0, q = 0;
        for (int a = 0; a < 3; ++a) {
          const double x = rays[i * 6 + a] - spheres[s * 4 + a];
          b += x * rays[i * 6 + 3 + a], q += x * x;
        }
        const double root = b * b - (q - double(radius) * radius), t = -b - std::sqrt(std::max(root, 0.));
        if (root >= 0 && t > 0 && t < best) best = t;
      }
      if (!(std::abs(got[i] - best) < 1e-3 * std::max(1., best))) return "ray " + std::to_string(i);
      if ((who[i] >= 0) != (best < 1e30)) return "sphere of ray " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- rANS: 32 lanes decode symbols in turn from one stream of 16-bit words; who runs low reads the next words, in
// order of lanes
struct RansCfg {
  int lanes = 32, bits = 12;
};
auto rans = kernel("user_rans", [](const RansCfg& c, Ptr<const uint16_t> words, Ptr<const int32_t> starts,
                                   Ptr<const uint32_t> states, Ptr<const uint32_t> table, Ptr<uint8_t> out, I32 steps,
                                   I32 /*blocks*/) {
              // table [4096]: frequency | place in its range << 12 | symbol << 24; states [blocks, 32]; out [blocks,
              // steps, 32]
              num_warps(1);
              auto b = program_id(0);
              auto lane = arange(0, c.lanes);
              Tile x = load(states + b * c.lanes + lane), at = load(starts + b);
              for (auto i : range(0, steps)) {
                auto entry = load(table + (x & ((1 << c.bits) - 1)));
                store(out + (b * steps + i) * c.lanes + lane, cast(entry >> 24, u8));
                x = (entry & 4095) * (x >> c.bits) + ((entry >> 12) & 4095);
                auto low = x < 65536;
                auto n = cumsum(cast(low, i32), axis(0));
                auto word = load(words + at + n - 1, {.mask = low});
                x = where(low, (x << 16) | cast(word, u32), x);
                at += sum(cast(low, i32));
              }
            }).grid([](const RansCfg&, auto, auto, auto, auto, auto, int, int blocks) { return Grid{blocks}; });
Register r3("rans", [](Env& e) {
  RansCfg c;
  const int blocks = e.big ? 8192 : 3, steps = e.big ? 512 : 40, L = c.lanes;
  // Frequencies of 256 symbols that sum to 4096; none has 4096, so that they fit 12 bits.
  std::vector<uint32_t> frequency(256), first(256);
  for (int s = 0; s < 256; ++s) frequency[s] = s < 16 ? 121 : s < 32 ? 121 : 1;
  uint32_t total = 0;
  for (int s = 0; s < 256; ++s) total += frequency[s];
  frequency[0] += 4096 - total, total = 0;
  for (int s = 0; s < 256; ++s) first[s] = total, total += frequency[s];
  std::vector<uint32_t> entries(4096), state;
  for (int s = 0; s < 256; ++s)
    for (uint32_t i = 0; i < frequency[s]; ++i) entries[first[s] + i] = frequency[s] | i << 12 | uint32_t(s) << 24;
  std::vector<uint16_t> stream;
  std::vector<int32_t> begin;
  std::vector<uint8_t> want(size_t(blocks) * steps * L);
  const int made = e.big ? 8 : blocks;  // big problems repeat the first blocks
  for (int b = 0; b < (e.device ? made : 0); ++b) {
    std::vector<uint32_t> x(L, 65536);
    std::vector<uint16_t> back;
    uint8_t* text = &want[size_t(b) * steps * L];
    for (int i = 0; i < steps * L; ++i)
      text[i] = uint8_t(std::min(e.uniform(), e.uniform()) * (e.uniform() < .1 ? 256 : 32));
    for (int i = steps - 1; i >= 0; --i)
      for (int l = L - 1; l >= 0; --l) {
        const int s = text[i * L + l];
        if (x[l] >= (frequency[s] << 20)) back.push_back(uint16_t(x[l])), x[l] >>= 16;
        x[l] = (x[l] / frequency[s] << 12) + x[l] % frequency[s] + first[s];
      }
    begin.push_back(int(stream.size()));
    stream.insert(stream.end(), back.rbegin(), back.rend());
    state.insert(state.end(), x.begin(), x.end());
  }
  auto words = filled<uint16_t>(e, stream.size() + 64, [&](size_t i) { return i < stream.size() ? stream[i] : 0; });
  auto starts = filled<int32_t>(e, blocks, [&](size_t i) { return begin[i % made]; });
  auto states = filled<uint32_t>(e, size_t(blocks) * L, [&](size_t i) { return state[i % (size_t(made) * L)]; });
  auto table = filled<uint32_t>(e, 4096, [&](size_t i) { return entries[i]; });
  auto out = constant<uint8_t>(e, want.size(), 255);
  Job j;
  j.mbytes = 1e-6 * want.size();
  j.add(rans, c, words.p, starts.p, states.p, table.p, out.p, steps, blocks);
  j.check = [=]() -> std::string {
    const auto got = out.now();
    for (size_t i = 0; i < want.size(); ++i)
      if (got[i] != want[i]) return "symbol " + std::to_string(i);
    return "";
  };
  return j;
});

// --- byte pair encoding: the pair of neighbours of lowest rank is merged until no pair is in the table; a word a
// program
struct BpeCfg {
  int L = 64, slots = 1 << 16;
};
auto bpe = kernel("user_bpe", [](const BpeCfg& c, Ptr<const uint8_t> text, Ptr<const int32_t> lengths,
                                 Ptr<const uint32_t> keys, Ptr<const int32_t> ranks, Ptr<int32_t> tokens,
                                 Ptr<int32_t> counts, I32 /*words*/) {
             // text [words, L]; a table of pairs with open addressing: key a << 16 | b (0: free), the pair's rank; the
             // token made of the pair of rank r is 256 + r
             num_warps(1);
             auto w = program_id(0);
             auto i = arange(0, c.L);
             Tile n = load(lengths + w);
             Tile ids = cast(load(text + w * c.L + i), i32);
             auto rank_of = [&](Tile left, Tile right, Tile mask) {
               auto key = (cast(left, u32) << 16) | cast(right, u32);
               Tile slot = cast((key * 2654435769u) >> 12, i32) & (c.slots - 1), rank = full({c.L}, 0x7FFFFFFF, i32),
                    open = mask;
               while_([&] { return any(open); },
                      [&] {
                        auto found = load(keys + slot, {.mask = open});
                        rank = where(open & (found == key), load(ranks + slot, {.mask = open}), rank);
                        open = open & (found != key) & (found != 0);
                        slot = (slot + 1) & (c.slots - 1);
                      });
               return rank;
             };
             Tile active = n > 1;
             while_([&] { return active; },
                    [&] {
                      auto right = take(ids, min(i + 1, c.L - 1), 0);
                      auto rank = rank_of(ids, right, i + 1 < n);
                      auto [least, at] = min_with_index(rank, axis(0));
                      auto first = to_scalar(at);
                      active = to_scalar(least) < 0x7FFFFFFF;
                      for (auto _ : when(active)) {
                        ids = where(i < first, ids, where(i == first, 256 + to_scalar(least), right));
                        n -= 1;
                      }
                    });
             store(tokens + w * c.L + i, ids, {.mask = i < n});
             store(counts + w, n);
           }).grid([](const BpeCfg&, auto, auto, auto, auto, auto, auto, int words) { return Grid{words}; });
Register r4("bpe", [](Env& e) {
  BpeCfg c;
  if (!e.big) c = {16, 256};
  const int W = e.big ? 1 << 16 : 20, merges = e.big ? 20000 : 60, letters = 12;
  std::vector<uint32_t> key(c.slots);
  std::vector<int32_t> rank(c.slots);
  std::map<uint32_t, int> of;
  for (int r = 0; r < (e.device ? merges : 0);) {
    auto one = [&] {
      return e.uniform() < .5 ? 97 + uint32_t(e.uniform() * letters) : r ? 256 + uint32_t(e.uniform() * r) : 97;
    };
    const uint32_t k = one() << 16 | one();
    if (!of.emplace(k, r).second) continue;
    uint32_t s = (k * 2654435769u) >> 12 & (c.slots - 1);
    while (key[s]) s = (s + 1) & (c.slots - 1);
    key[s] = k, rank[s] = r++;
  }
  auto text = drawn<uint8_t>(e, size_t(W) * c.L, [&] { return uint8_t(97 + int(e.uniform() * letters)); });
  auto lengths = integers<int32_t>(e, W, 1, c.L + 1);
  auto keys = filled<uint32_t>(e, c.slots, [&](size_t i) { return key[i]; });
  auto ranks = filled<int32_t>(e, c.slots, [&](size_t i) { return rank[i]; });
  auto tokens = constant<int32_t>(e, text.n, -1), counts = constant<int32_t>(e, W, -1);
  Job j;
  j.mbytes = 1e-6 * text.n;
  j.add(bpe, c, text.p, lengths.p, keys.p, ranks.p, tokens.p, counts.p, W);
  j.check = [=]() -> std::string {
    const auto got = tokens.now(), n = counts.now();
    for (int w = 0; w < W; ++w) {
      std::vector<int> ids(text.h.begin() + w * c.L, text.h.begin() + w * c.L + lengths.h[w]);
      for (;;) {
        int best = 1 << 30, at = -1;
        for (size_t i = 0; i + 1 < ids.size(); ++i)
          if (auto it = of.find(uint32_t(ids[i]) << 16 | ids[i + 1]); it != of.end() && it->second < best)
            best = it->second, at = int(i);
        if (at < 0) break;
        ids[at] = 256 + best, ids.erase(ids.begin() + at + 1);
      }
      if (n[w] != int(ids.size())) return "count of word " + std::to_string(w);
      for (size_t i = 0; i < ids.size(); ++i)
        if (got[w * c.L + i] != ids[i]) return "word " + std::to_string(w) + ", token " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- triangles of a graph: for every edge u -> v (to larger numbers) how many successors of u are successors of v, by
// bisection; a vertex a program
struct CountCfg {
  int B = 64;
};
auto count_triangles = kernel("user_count_triangles", [](const CountCfg& c, Ptr<const int32_t> offsets,
                                                         Ptr<const int32_t> to, Ptr<int64_t> total, I32 /*vertices*/) {
                         auto u = program_id(0);
                         auto begin = load(offsets + u), end = load(offsets + u + 1);
                         return_if(end - begin < 2);
                         Tile count = zeros({c.B}, i32);
                         for (auto first : range(begin, end, c.B)) {
                           auto at = first + arange(0, c.B);
                           auto mine = load(to + at, {.mask = at < end});
                           for (auto i : range(begin, end)) {
                             auto v = load(to + i);
                             Tile low = full({c.B}, 0, i32) + load(offsets + v),
                                  high = full({c.B}, 0, i32) + load(offsets + v + 1);
                             auto stop = load(offsets + v + 1);
                             while_([&] { return any(low < high); },
                                    [&] {
                                      auto mid = (low + high) / 2;
                                      auto less = load(to + mid, {.mask = low < high}) < mine;
                                      high = where((low < high) & ~less, mid, high);
                                      low = where((low < high) & less, mid + 1, low);
                                    });
                             auto found = load(to + low, {.mask = (low < stop) & (at < end), .other = -1}) == mine;
                             count += cast(found & (at < end), i32);
                           }
                         }
                         atomic_add(total, cast(sum(count), i64));
                       }).grid([](const CountCfg&, auto, auto, auto, int vertices) { return Grid{vertices}; });
Register r5("count_triangles", [](Env& e) {
  CountCfg c;
  c.B = e.field("B", e.big ? 64 : 16);
  const int N = e.big ? 1 << 17 : 60, degree = e.big ? 32 : 20;
  std::vector<int32_t> offset{0}, next;
  for (int u = 0; u < N; ++u) {
    std::set<int> s;
    for (int i = 0; i < (e.device ? degree : 0); ++i)
      if (const int v = u + 1 + int(e.uniform() * (i % 2 ? 64 : 40)); v < N) s.insert(v);
    next.insert(next.end(), s.begin(), s.end());
    offset.push_back(int(next.size()));
  }
  auto offsets = filled<int32_t>(e, N + 1, [&](size_t i) { return offset[i]; });
  auto to = filled<int32_t>(e, std::max<size_t>(next.size(), 1), [&](size_t i) { return next[i]; });
  auto total = constant<int64_t>(e, 1, 0);
  Job j;
  j.mbytes = 4e-6 * next.size();
  j.inTurn = true;
  j.add(count_triangles, c, offsets.p, to.p, total.p, N);
  j.check = [=]() -> std::string {
    int64_t want = 0;
    for (int u = 0; u < N; ++u)
      for (int a = offset[u]; a < offset[u + 1]; ++a)
        for (int b = offset[u]; b < offset[u + 1]; ++b)
          want += std::binary_search(next.begin() + offset[next[a]], next.begin() + offset[next[a] + 1], next[b]);
    const int64_t got = total.now()[0];
    return got == want ? "" : std::to_string(got) + " triangles instead of " + std::to_string(want);
  };
  return j;
});

}  // namespace walks
}  // namespace users
