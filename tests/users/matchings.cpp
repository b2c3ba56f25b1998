// matchings.cpp - graphs, sets, sounds: independent sets, shortest ways, signatures of sets, a compressor, total
// variation.
#include <bit>

#include "tests/users/use.h"
namespace users {
namespace matchings {

// --- a round of Luby's maximal independent set: vertices whose number is the largest among their undecided neighbours
struct LubyCfg {
  int B = 128, warps = 4;
};
auto luby = kernel("user_luby", [](const LubyCfg& c, Ptr<const int32_t> rows, Ptr<const int32_t> columns,
                                   Ptr<const int32_t> state, Ptr<int32_t> next, I32 n, U64 seed) {
              // state: 0 undecided, 1 in the set, 2 beside it
              num_warps(c.warps);
              auto v = program_id(0) * c.B + arange(0, c.B);
              auto mask = v < n;
              Tile mine = load(state + v, {.mask = mask, .other = 1});
              auto at = load(rows + v, {.mask = mask}), end = load(rows + v + 1, {.mask = mask});
              auto own = randint(seed, v);
              Tile e = at, best = mine == 0, beside = zeros({c.B}, i1);
              while_([&] { return any((mine == 0) & (e < end) & ~beside); },
                     [&] {
                       auto on = (mine == 0) & (e < end) & ~beside;
                       auto u = load(columns + e, {.mask = on});
                       auto other = load(state + u, {.mask = on, .other = 2});
                       auto number = randint(seed, u);
                       auto loses = (number > own) | ((number == own) & (u > v));
                       beside = where(on, other == 1, beside);
                       best = where(on, best & ~((other == 0) & loses), best);
                       e = where(on, e + 1, e);
                     });
              store(next + v, where(mine != 0, mine, where(beside, 2, where(best, 1, 0))), {.mask = mask});
            }).grid([](const LubyCfg& c, const int32_t*, const int32_t*, const int32_t*, int32_t*, int n, uint64_t) {
  return Grid{cdiv(n, c.B)};
});
struct Graph {
  Array<int32_t> rows, columns;
};
Graph symmetric_graph(Env& e, int n, int degree) {
  std::vector<std::vector<int>> to(n);
  const int real = e.big ? 4096 : n;
  for (int v = 0; v < real; ++v)
    for (int k = 0; k < degree / 2; ++k) {
      const int u = int(e.uniform() * e.uniform() * real);
      if (u != v) to[v].push_back(u), to[u].push_back(v);
    }
  std::vector<int32_t> rows{0}, columns;
  for (int v = 0; v < n; ++v) {
    for (int u : to[v % real]) columns.push_back(u);
    rows.push_back(int32_t(columns.size()));
  }
  return {repeated<int32_t>(e, rows.size(), rows), repeated<int32_t>(e, columns.size(), columns)};
}
Register r1("luby", [](Env& e) {
  const int n = e.big ? 1 << 20 : 507, rounds = e.big ? 1 : 8;
  auto g = symmetric_graph(e, n, 8);
  auto a = constant<int32_t>(e, n, 0), b = constant<int32_t>(e, n, 0);
  Job j;
  for (int r = 0; r < rounds; ++r)
    j.add(luby, LubyCfg{}, g.rows.p, g.columns.p, r % 2 ? b.p : a.p, r % 2 ? a.p : b.p, n, uint64_t(1000 + r));
  j.inTurn = true;
  j.check = [=]() -> std::string {
    const auto s = a.now();  // after an even number of rounds
    int open = 0;
    for (int v = 0; v < n; ++v) {
      bool in = false;
      for (int k = g.rows.h[v]; k < g.rows.h[v + 1]; ++k) in |= s[g.columns.h[k]] == 1;
      if (in && s[v] == 1) return "two neighbours in the set";
      if (s[v] == 2 && !in) return "not beside the set";
      open += s[v] == 0;
    }
    return open > n / 50 ? std::to_string(open) + " undecided" : "";
  };
  return j;
});

// --- Bellman and Ford's relaxation of all edges, lengths kept as the bits of floats
struct RelaxCfg {
  int B = 256, warps = 4;
};
auto bellman =
    kernel("user_bellman", [](const RelaxCfg& c, Ptr<const int32_t> from, Ptr<const int32_t> to,
                              Ptr<const float> length, Ptr<uint32_t> way, Ptr<int32_t> changed, I32 edges) {
      num_warps(c.warps);
      auto e = program_id(0) * c.B + arange(0, c.B);
      auto mask = e < edges;
      auto u = load(from + e, {.mask = mask}), v = load(to + e, {.mask = mask});
      auto there = bitcast(load(way + u, {.mask = mask, .other = 0x7F800000u}), f32);
      auto bits = bitcast(there + load(length + e, {.mask = mask}), u32);
      auto now = load(way + v, {.mask = mask});
      auto better = mask & (bits < now);
      auto before = atomic_min(way + v, bits, {.mask = better, .order = Order::relaxed});
      if_(any(better & (bits < where(better, before, 0u))), [&] { atomic_or(changed, 1, {.order = Order::relaxed}); });
    }).grid([](const RelaxCfg& c, const int32_t*, const int32_t*, const float*, uint32_t*, int32_t*, int edges) {
      return Grid{cdiv(edges, c.B)};
    });
Register r2("bellman", [](Env& e) {
  const int n = e.big ? 1 << 18 : 300, E = e.big ? 1 << 22 : 1501;
  auto from = integers<int32_t>(e, E, 0, n), to = integers<int32_t>(e, E, 0, n);
  auto length = random<float>(e, E, .1, 1);
  std::vector<uint32_t> h(n, 0x7F800000u);
  h[0] = 0;
  auto way = repeated<uint32_t>(e, n, h);
  auto changed = constant<int32_t>(e, 1, 0);
  Job j;
  j.inTurn = true;
  for (int r = 0; r < (e.big ? 1 : 40); ++r) j.add(bellman, RelaxCfg{}, from.p, to.p, length.p, way.p, changed.p, E);
  j.check = [=] {
    std::vector<double> want(n, INFINITY), got;
    want[0] = 0;
    for (bool again = true; again;) {
      again = false;
      for (int k = 0; k < E; ++k)
        if (const double d = want[from.h[k]] + length[k]; d < want[to.h[k]]) want[to.h[k]] = d, again = true;
    }
    for (uint32_t w : way.now()) got.push_back(std::bit_cast<float>(w));
    return agree(got, want, 1e-5, 1e-5);
  };
  return j;
});

// --- signatures of sets: the least of each of 128 hashes of their members (MinHash)
struct MinHashCfg {
  int H = 128, BT = 32, warps = 4;
};
auto minhash =
    kernel("user_minhash", [](const MinHashCfg& c, Ptr<const int32_t> starts, Ptr<const uint32_t> members,
                              Tensor<const uint32_t, 2> factors, Tensor<uint32_t, 2> out) {
      // factors [2, H]: of (a x + b) mod (2^31 - 1)
      num_warps(c.warps);
      auto s = program_id(0);
      auto a = cast(factors.load({0, 0}, {c.H}), u64).row(), b = cast(factors.load({1, 0}, {c.H}), u64).row();
      const uint64_t p = (1ull << 31) - 1;
      Tile least = full({c.H}, 0xFFFFFFFFu, u32);
      auto end = load(starts + s + 1);
      for (auto at : range(load(starts + s), end, c.BT)) {
        auto i = at + arange(0, c.BT);
        auto x = cast(load(members + i, {.mask = i < end}), u64).col();
        auto h = a * x + b;
        h = (h & p) + (h >> 31), h = (h & p) + (h >> 31), h = where(h >= p, h - p, h);
        auto word = where((i < end).col(), cast(h, u32), 0xFFFFFFFFu);
        least = min(least, squeeze(min(word, axis(0)), 0));
      }
      out.store({s, 0}, least.row());
    }).grid([](const MinHashCfg&, const int32_t*, const uint32_t*, const auto&, const auto& o) {
      return Grid{o.shape[0]};
    });
Register r3("minhash", [](Env& e) {
  const int n = e.big ? 1 << 15 : 41, H = 128;
  std::vector<int32_t> starts{0};
  for (int i = 0; i < n; ++i) starts.push_back(starts.back() + int32_t(e.uniform() * (e.big ? 500 : 99)));
  auto members = drawn<uint32_t>(e, starts.back(), [&] { return uint32_t(e.uniform() * 0x1p24) * 113u; });
  auto factors = drawn<uint32_t>(e, 2 * H, [&] { return uint32_t(1 + e.uniform() * 0x7FFFFF00u); });
  auto s = repeated<int32_t>(e, n + 1, starts);
  auto out = constant<uint32_t>(e, size_t(n) * H, 0);
  Job j;
  j.add(minhash, MinHashCfg{}, s.p, members.p, factors.view(2, H), out.view(n, H));
  j.check = [=] {
    std::vector<double> want;
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < H; ++k) {
        uint64_t best = 0xFFFFFFFFu;
        for (int m = starts[i]; m < starts[i + 1]; ++m)
          best = std::min<uint64_t>(
              best, uint64_t((__uint128_t(factors.h[k]) * members.h[m] + factors.h[H + k]) % ((1ull << 31) - 1)));
        want.push_back(double(best));
      }
    return agree(out.now(), want, .1, 0);
  };
  return j;
});

// --- a compressor of sounds: the envelope rises and falls at different speeds, levels above a threshold are halved
struct LoudCfg {
  int B = 64, warps = 2;
};
auto compressor =
    kernel("user_compressor", [](const LoudCfg& c, Tensor<const float, 2> in, Tensor<float, 2> out, F32 attack,
                                 F32 release, F32 threshold) {
      // in, out [samples, channels]
      num_warps(c.warps);
      auto ch = program_id(0) * c.B;
      Tile envelope = zeros({c.B}, f32);
      for (auto t : range(in.dim(0))) {
        auto x = in.load({t, ch}, {c.B});
        auto level = abs(x);
        auto speed = where(level > envelope, attack, release);
        envelope = level + speed * (envelope - level);
        auto over = max(envelope / threshold, 1.f);
        out.store({t, ch}, (x * rsqrt(over)).row());
      }
    }).grid([](const LoudCfg& c, const auto& in, const auto&...) { return Grid{cdiv(in.shape[1], c.B)}; });
Register r4("compressor", [](Env& e) {
  const int n = e.big ? 1 << 14 : 101, T = e.big ? 4096 : 99;
  auto x = random<float>(e, size_t(n) * T), y = constant<float>(e, size_t(n) * T, NAN);
  const float up = .6f, down = .95f, limit = .4f;
  Job j;
  j.mbytes = 8e-6 * n * T;
  j.add(compressor, LoudCfg{}, x.view(T, n), y.view(T, n), up, down, limit);
  j.check = [=] {
    std::vector<double> want(size_t(n) * T);
    for (int i = 0; i < n; ++i) {
      double env = 0;
      for (int t = 0; t < T; ++t) {
        const double v = x[size_t(t) * n + i], level = std::abs(v);
        env = level + (level > env ? up : down) * (env - level);
        want[size_t(t) * n + i] = v / std::sqrt(std::max(env / limit, 1.));
      }
    }
    return agree(y.now(), want, 1e-5, 1e-5);
  };
  return j;
});

// --- a step of Chambolle's dual iteration for total variation: p = (p + t grad(div p - f / l)) / (1 + t |grad ..|)
struct TvCfg {
  int BY = 16, BX = 64, warps = 4;
};
auto chambolle =
    kernel("user_chambolle", [](const TvCfg& c, Tensor<const float, 2> F, Tensor<const float, 3> P, Tensor<float, 3> Q,
                                F32 step, F32 inverse) {
      // P, Q [2, H, W]
      num_warps(c.warps);
      auto y = program_id(1) * c.BY, x = program_id(0) * c.BX;
      const int h = c.BY + 1, w = c.BX + 1;
      auto H = F.dim(0), W = F.dim(1);
      auto rows = (y + arange(0, h)).col(), columns = (x + arange(0, w)).row();
      auto box = [&](int k, int dy, int dx) { return reshape(P.load({k, y + dy, x + dx}, {1, h, w}), {h, w}); };
      // the last row and column of p stay 0
      auto u = box(0, 0, 0) - box(0, 0, -1) + box(1, 0, 0) - box(1, -1, 0) - F.load({y, x}, {h, w}) * inverse;
      auto here = extract(u, {0, 0}, {c.BY, c.BX});
      auto gx = where(extract(columns, {0, 1}, {1, c.BX}) < W, extract(u, {0, 1}, {c.BY, c.BX}) - here, 0.f);
      auto gy = where(extract(rows, {1, 0}, {c.BY, 1}) < H, extract(u, {1, 0}, {c.BY, c.BX}) - here, 0.f);
      auto scale = 1.f / (1.f + step * sqrt(gx * gx + gy * gy));
      auto px = (extract(box(0, 0, 0), {0, 0}, {c.BY, c.BX}) + step * gx) * scale;
      auto py = (extract(box(1, 0, 0), {0, 0}, {c.BY, c.BX}) + step * gy) * scale;
      Q.store({0, y, x}, expand_dims(px, 0)), Q.store({1, y, x}, expand_dims(py, 0));
    }).grid([](const TvCfg& c, const auto& f, const auto&...) {
      return Grid{cdiv(f.shape[1], c.BX), cdiv(f.shape[0], c.BY)};
    });
Register r5("chambolle", [](Env& e) {
  const int H = e.big ? 2160 : 41, W = e.big ? 3840 : 83, rounds = e.big ? 1 : 4;
  const size_t N = size_t(H) * W;
  auto f = random<float>(e, N), p = constant<float>(e, 2 * N, 0), q = constant<float>(e, 2 * N, NAN);
  Job j;
  j.mbytes = 20e-6 * N;
  for (int r = 0; r < rounds; ++r)
    j.add(chambolle, TvCfg{}, f.view(H, W), (r % 2 ? q : p).view(2, H, W), (r % 2 ? p : q).view(2, H, W), .25f, 5.f);
  j.inTurn = true;
  j.check = [=] {
    std::vector<double> a(2 * N), b(2 * N), u(N);
    for (int r = 0; r < rounds; ++r, a = b) {
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
          const size_t i = size_t(y) * W + x;
          u[i] = a[i] - (x ? a[i - 1] : 0) + a[N + i] - (y ? a[N + i - W] : 0) - 5 * f[i];
        }
      for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
          const size_t i = size_t(y) * W + x;
          const double gx = x + 1 < W ? u[i + 1] - u[i] : 0, gy = y + 1 < H ? u[i + W] - u[i] : 0;
          const double s = 1 + .25 * std::sqrt(gx * gx + gy * gy);
          b[i] = (a[i] + .25 * gx) / s, b[N + i] = (a[N + i] + .25 * gy) / s;
        }
    }
    return agree(p.now(), a, 1e-4, 1e-4);
  };
  return j;
});

}  // namespace matchings
}  // namespace users
