// beside_cuda_records.cpp - rabitq, msv_filter, chain_dp, csv_fields, umap_sgd
#include "tests/users/use.h"
namespace users {
namespace beside_cuda_records {

// --- RaBitQ: one query in four bit planes against N codes of W words; those estimated below tau are listed
struct RbqCfg {
  int BN = 128, W = 24;
};
auto rabitq =
    kernel("user_rabitq", [](const RbqCfg& c, Tensor<const uint32_t, 2> codes, Tensor<const float, 2> factors,
                             Tensor<const uint32_t, 2> planes, Ptr<int> count, Ptr<int> ids, Ptr<float> dist, F32 delta,
                             F32 low, F32 shift_, F32 g, F32 tau) {
      auto n = program_id(0) * c.BN;
      auto row = n + arange(0, c.BN);
      auto x = codes.load({n, 0}, {c.BN, c.W});
      Tile ip = cast(popcount(x), f32) * low;
      for (int b = 0; b < 4; ++b)
        ip += cast(popcount(x & planes.load({b, 0}, {1, c.W})), f32) * (float(1 << b) * delta);
      auto dot_q = squeeze(sum(ip, axis(1)), 1) + shift_;
      auto [add, rescale] = split(factors.load({n, 0}, {c.BN, 2}));
      auto est = add + g + rescale * dot_q;
      auto near = (est < tau) & (row < codes.dim(0));
      auto here = cast(near, i32);
      auto base = atomic_add(count, sum(here));
      auto place = base + cumsum(here, axis(0)) - 1;
      store(ids + place, row, {.mask = near});
      store(dist + place, est, {.mask = near});
    }).grid([](const RbqCfg& c, const auto& codes, const auto&...) { return Grid{cdiv(codes.shape[0], c.BN)}; });
Register r1("rabitq", [](Env& e) {
  RbqCfg c{e.field("BN", 128)};
  const int N = e.big ? 1 << 20 : 1237, W = 24;
  const float delta = 0.013f, low = -0.09f, g = 1.5f;
  auto word = [&] { return uint32_t(e.uniform() * 0x1p24) << 8 ^ uint32_t(e.uniform() * 0x1p24); };
  auto codes = drawn<uint32_t>(e, size_t(N) * W, word), planes = drawn<uint32_t>(e, 4 * W, word);
  auto factors = drawn<float>(e, size_t(N) * 2, [&, k = 0]() mutable {
    return float(k++ % 2 ? -0.02 - 0.01 * e.uniform() : 1 + 0.3 * e.uniform());
  });
  const float shift = -2.5f, tau = 2.51f;
  auto count = constant<int>(e, 1, 0), ids = constant<int>(e, N, -1);
  auto dist = constant<float>(e, N, NAN);
  Job j;
  j.mbytes = 1e-6 * N * (W * 4 + 8);
  restore(e, j, count);
  j.inTurn = true;
  j.add(rabitq, c, codes.view(N, W), factors.view(N, 2), planes.view(4, W), count.p, ids.p, dist.p, delta, low, shift,
        g, tau);
  j.check = [=]() -> std::string {
    const int got = count.now()[0];
    const auto id = ids.now();
    const auto di = dist.now();
    std::vector<int> seen(N);
    for (int i = 0; i < got; ++i) {
      if (id[i] < 0 || id[i] >= N) return "a wrong id";
      ++seen[id[i]];
    }
    std::vector<double> all(N);
    int near = 0;
    for (int n = 0; n < N; ++n) {
      double ip = 0;
      for (int w = 0; w < W; ++w) {
        const uint32_t x = codes.at(size_t(n) * W + w);
        ip += __builtin_popcount(x) * double(low);
        for (int b = 0; b < 4; ++b) ip += __builtin_popcount(x & planes.at(b * W + w)) * double(delta) * (1 << b);
      }
      all[n] = factors[n * 2] + g + factors[n * 2 + 1] * (ip + shift);
      near += all[n] < tau;
      if (std::abs(all[n] - tau) > 1e-4 && seen[n] != (all[n] < tau)) return "id " + std::to_string(n);
    }
    if (near < 20 || near > N / 2) return "a poor threshold: " + std::to_string(near);
    for (int i = 0; i < got; ++i)
      if (!(std::abs(di[i] - all[id[i]]) < 1e-4)) return "distance " + std::to_string(i);
    return "";
  };
  return j;
});

// --- HMMER's MSV filter: one sequence a program, M states in a tile
struct MsvCfg {
  int M = 128, BR = 1, warps = 0;
};
auto msv = kernel("user_msv", [](const MsvCfg& c, Ptr<const uint8_t> residues, Ptr<const int> offsets,
                                 Ptr<const uint8_t> tjb, Tensor<const uint8_t, 2> cost, Ptr<float> score, I32 base,
                                 I32 bias, I32 tec, I32 tbm, I32 sequences) {
             // cost [residue, state]
             if (c.warps) num_warps(c.warps);
             if (c.BR > 1) {  // some sequences side by side, each as long as it lasts
               auto q = program_id(0) * c.BR + arange(0, c.BR);
               auto known = q < sequences;
               auto begin = load(offsets + q, {.mask = known}), end = load(offsets + q + 1, {.mask = known});
               auto jb = cast(load(tjb + q, {.mask = known}), i32);
               Tile dp = zeros({c.BR, c.M}, i32), xj = zeros({c.BR}, i32), xb = max(base - jb - tbm, 0),
                    over = zeros({c.BR}, i1);
               for (auto i : range(max(end - begin))) {
                 auto on = (begin + i < end) & ~over;
                 auto r = cast(load(residues + begin + i, {.mask = on}), i32);
                 auto next =
                     max(min(max(shift(dp, 1, axis(1)), xb.col()) + bias, 255) - cast(cost.gather(r, 0, c.M), i32), 0);
                 dp = where(on.col(), next, dp);
                 auto e = squeeze(max(next, axis(1)), 1);
                 over = over | (on & (e + bias >= 255));
                 xj = where(on, max(xj, max(e - tec, 0)), xj);
                 xb = where(on, max(max(base, xj) - jb - tbm, 0), xb);
               }
               store(score + q, where(over, INFINITY, cast(xj - jb - base, f32) * (1 / 4.328f) - 3.f), {.mask = known});
               return;
             }
             auto s = program_id(0);
             auto begin = load(offsets + s), end = load(offsets + s + 1);
             auto jb = cast(load(tjb + s), i32);
             Tile dp = zeros({c.M}, i32), xj = Tile(0), xb = max(base - jb - tbm, 0), over = Tile(false);
             for (auto i : range(begin, end)) {
               auto r = cast(load(residues + i), i32);
               auto rsc = cast(cost.load({r, 0}, {c.M}), i32);
               dp = max(min(max(shift(dp, 1, axis(0)), xb) + bias, 255) - rsc, 0);
               auto xe = max(dp, axis(0));
               auto e = to_scalar(xe);
               over = over | (e + bias >= 255);
               xj = max(xj, max(e - tec, 0));
               xb = max(max(base, xj) - jb - tbm, 0);
               break_if(over);
             }
             store(score + s, where(over, INFINITY, cast(xj - jb - base, f32) * (1 / 4.328f) - 3.f));
           }).grid([](const MsvCfg& c, auto, auto, auto, const auto&, auto, int, int, int, int, int sequences) {
  return Grid{cdiv(sequences, c.BR)};
});
Register r2("msv_filter", [](Env& e) {
  MsvCfg c{128, e.field("BR", 1), e.field("warps", 0)};
  const int S = e.big ? 40000 : 23, base = 190, bias = 9, tec = 3, tbm = 25, M = c.M;
  auto lengths = [&](int s) { return e.big ? 100 + int((s * 2654435761u >> 8) % 301) : 5 + s * 7 % 90; };
  std::vector<int> off{0};
  for (int s = 0; s < S; ++s) off.push_back(off.back() + lengths(s));
  std::vector<uint8_t> jb;
  for (int s = 0; s < S; ++s) jb.push_back(uint8_t(std::lrint(4.328 * std::log((lengths(s) + 3) / 3.))));
  auto residues = integers<uint8_t>(e, off.back(), 0, 20);
  auto cost = drawn<uint8_t>(e, size_t(32) * M,
                             [&] { return uint8_t(e.uniform() < .12 ? 12 * e.uniform() * .3 : 9 + 9 * e.uniform()); });
  auto offsets = repeated(e, off.size(), off);
  auto tjb = repeated(e, jb.size(), jb);
  auto score = constant<float>(e, S, NAN);
  Job j;
  j.add(msv, c, residues.p, offsets.p, tjb.p, cost.view(32, M), score.p, base, bias, tec, tbm, S);
  j.check = [=] {
    std::vector<double> want(S);
    for (int s = 0; s < S; ++s) {
      std::vector<int> dp(M, 0), nx(M);
      const int b = jb[s];
      int xj = 0, xb = std::max(base - b - tbm, 0);
      bool over = false;
      for (int i = off[s]; i < off[s + 1] && !over; ++i) {
        int xe = 0;
        for (int k = 0; k < M; ++k) {
          int v = std::min(std::max(k ? dp[k - 1] : 0, xb) + bias, 255) - cost.at(residues.at(i) * M + k);
          nx[k] = std::max(v, 0), xe = std::max(xe, nx[k]);
        }
        dp = nx;
        over = xe + bias >= 255;
        xj = std::max(xj, std::max(xe - tec, 0));
        xb = std::max(std::max(base, xj) - b - tbm, 0);
      }
      want[s] = over ? INFINITY : (xj - b - base) / 4.328 - 3;
    }
    return agree(score.now(), want, 1e-3, 1e-5);
  };
  return j;
});

// --- minimap2's chaining: a read a program, the last 64 anchors in a ring
struct ChainCfg {
  int W = 64, warps = 1;
};
auto chain = kernel("user_chain", [](const ChainCfg& c, Ptr<const int> X, Ptr<const int> Y, Ptr<const int> offsets,
                                     Ptr<int> F, Ptr<int> P, I32 reads) {
               num_warps(c.warps);
               auto read = program_id(0);
               auto begin = load(offsets + read), end = load(offsets + read + 1);
               auto slot = arange(0, c.W);
               Tile xs = full({c.W}, 1 << 30, i32), ys = full({c.W}, 1 << 30, i32), fs = zeros({c.W}, i32);
               for (auto i : range(begin, end)) {
                 auto x = load(X + i), y = load(Y + i);
                 auto dx = x - xs, dy = y - ys, dd = abs(dx - dy);
                 auto good = (dx > 0) & (dy > 0) & (dx < 5000) & (dy < 5000) & (dd <= 500);
                 auto lg = where(dd > 0, 31 - countl_zero(dd), 0);
                 auto cost = cast(cast(dd, f32) * 0.15f, i32) + (lg >> 1);
                 auto f = where(good, fs + min(min(dx, dy), 15) - cost, -(1 << 30));
                 auto [best, at] = max_with_index(f);
                 auto linked = best > 15;
                 auto now = (i - begin) % c.W;
                 auto mine = max(best, 15);
                 store(F + i, mine);
                 auto back = (now - at + c.W - 1) % c.W + 1;
                 store(P + i, where(linked, i - back, -1));
                 xs = where(slot == now, x, xs), ys = where(slot == now, y, ys), fs = where(slot == now, mine, fs);
               }
             }).grid([](const ChainCfg&, auto, auto, auto, auto, auto, int reads) { return Grid{reads}; });
Register r3("chain_dp", [](Env& e) {
  ChainCfg c{64, e.field("warps", 1)};
  const int R = e.big ? 16384 : 7;
  std::vector<int> off{0};
  for (int r = 0; r < R; ++r)
    off.push_back(off.back() + (e.big ? 200 + int((r * 2654435761u >> 8) % 401) : 20 + r * 37));
  const int n = off.back();
  int px = 0;
  std::vector<int> hx, hy;
  if (e.device)
    for (int i = 0, r = 0; i < n; ++i) {
      if (i == off[r + 1]) ++r, px = 0;
      px += int(e.uniform() * 40), hx.push_back(px);
      hy.push_back(px + int(60 * e.uniform()) + (e.uniform() < .3 ? int(900 * e.uniform()) : 0));
    }
  auto x = repeated(e, n, hx), y = repeated(e, n, hy), offsets = repeated(e, off.size(), off);
  auto f = constant<int>(e, n, -7), p = constant<int>(e, n, -7);
  Job j;
  j.add(chain, c, x.p, y.p, offsets.p, f.p, p.p, R);
  j.check = [=]() -> std::string {
    const auto gf = f.now(), gp = p.now();
    for (int r = 0; r < R; ++r) {
      std::vector<int> wf;
      for (int i = off[r]; i < off[r + 1]; ++i) {
        int best = -(1 << 30), at = -1;
        for (int s = 0; s < 64; ++s) {  // slots of the ring: the first of equals
          const int k = i - off[r], back = (k % 64 - s + 63) % 64 + 1, jj = i - back;
          if (jj < off[r]) continue;
          const int dx = hx[i] - hx[jj], dy = hy[i] - hy[jj], dd = std::abs(dx - dy);
          if (dx <= 0 || dy <= 0 || dx >= 5000 || dy >= 5000 || dd > 500) continue;
          const int cost = int(float(dd) * 0.15f) + ((dd ? 31 - __builtin_clz(dd) : 0) >> 1);
          const int v = wf[jj - off[r]] + std::min({dx, dy, 15}) - cost;
          if (v > best) best = v, at = jj;
        }
        wf.push_back(std::max(best, 15));
        if (gf[i] != wf.back()) return "score " + std::to_string(i);
        if (gp[i] != (best > 15 ? at : -1)) return "predecessor " + std::to_string(i);
      }
    }
    return "";
  };
  return j;
});

// --- CSV: ends of fields outside of quotes, and for every row how many fields end up to its end
struct CsvCfg {
  int B = 4096, C = 1024;
};
struct Marks {
  Tile parity, comma, line;
};
Marks marks(const Tensor<const uint8_t, 1>& text, const Tile& at, int B) {
  auto b = text.load({at}, {B});
  auto quotes = cumsum(cast(b == '"', i32), axis(0));
  return {quotes & 1, b == ',', b == '\n'};
}
auto csv_count = kernel("user_csv_count", [](const CsvCfg& c, Tensor<const uint8_t, 1> text, Tensor<int, 2> counts) {
                   // counts [5, blocks]: parity of quotes, fields and rows if the block begins outside, if inside of
                   // quotes
                   auto p = program_id(0);
                   auto m = marks(text, p * c.B, c.B);
                   auto out = m.parity == 0, ends = m.comma | m.line;
                   counts.store({0, p}, xor_sum(cast(text.load({p * c.B}, {c.B}) == '"', i32)));
                   counts.store({1, p}, sum(cast(ends & out, i32)));
                   counts.store({2, p}, sum(cast(m.line & out, i32)));
                   counts.store({3, p}, sum(cast(ends & ~out, i32)));
                   counts.store({4, p}, sum(cast(m.line & ~out, i32)));
                 }).grid([](const CsvCfg& c, const auto& t, const auto&) { return Grid{cdiv(t.shape[0], c.B)}; });
auto csv_scan =
    kernel("user_csv_scan", [](const CsvCfg& c, Tensor<const int, 2> counts, Tensor<int, 2> starts, Ptr<int> total) {
      // starts [3, blocks]: inside of quotes, fields before, rows before
      Tile in = Tile(0), fields = Tile(0), rows = Tile(0);
      for (auto b : range(0, counts.dim(1), c.C)) {
        auto of = [&](int k) { return counts.load({k, b}, {c.C}); };
        auto q = of(0);
        auto before = (in + cumsum(q, axis(0)) - q) & 1;
        auto f = where(before == 0, of(1), of(3)), r = where(before == 0, of(2), of(4));
        starts.store({0, b}, before);
        starts.store({1, b}, fields + cumsum(f, axis(0)) - f);
        starts.store({2, b}, rows + cumsum(r, axis(0)) - r);
        in = (in + sum(q)) & 1;
        fields += sum(f);
        rows += sum(r);
      }
      store(total, fields);
      store(total + 1, rows);
    }).grid([](const CsvCfg&, const auto&...) { return Grid{1}; });
auto csv_write = kernel("user_csv_write", [](const CsvCfg& c, Tensor<const uint8_t, 1> text,
                                             Tensor<const int, 2> starts, Ptr<int> field_end, Ptr<int> row_end) {
                   auto p = program_id(0);
                   auto m = marks(text, p * c.B, c.B);
                   auto out = m.parity == starts.load({0, p});
                   auto end = (m.comma | m.line) & out, line = m.line & out;
                   auto nth = starts.load({1, p}) + cumsum(cast(end, i32), axis(0));
                   store(field_end + (nth - 1), p * c.B + arange(0, c.B), {.mask = end});
                   auto row = starts.load({2, p}) + cumsum(cast(line, i32), axis(0));
                   store(row_end + (row - 1), nth, {.mask = line});
                 }).grid([](const CsvCfg& c, const auto& t, const auto&...) { return Grid{cdiv(t.shape[0], c.B)}; });
Register r4("csv_fields", [](Env& e) {
  CsvCfg c{e.field("B", e.big ? 4096 : 256), e.field("C", e.big ? 1024 : 32)};
  const int n = e.big ? 64 << 20 : 9999, blocks = cdiv(n, c.B);
  auto text = drawn<uint8_t>(e, n, [&] {
    const double u = e.uniform();
    return uint8_t(u < .1 ? ',' : u < .115 ? '\n' : u < .13 ? '"' : 'a' + int(20 * e.uniform()));
  });
  auto counts = constant<int>(e, size_t(5) * blocks, -1), starts = constant<int>(e, size_t(3) * blocks, -1),
       total = constant<int>(e, 2, -1), fe = constant<int>(e, n / 4, -1), re = constant<int>(e, n / 16, -1);
  Job j;
  j.mbytes = 2e-6 * n;
  j.add(csv_count, c, text.view(n), counts.view(5, blocks));
  j.add(csv_scan, c, counts.view(5, blocks), starts.view(3, blocks), total.p);
  j.add(csv_write, c, text.view(n), starts.view(3, blocks), fe.p, re.p);
  j.check = [=]() -> std::string {
    std::vector<double> wf, wr;
    bool in = false;
    for (int i = 0; i < n; ++i) {
      const int b = text.at(i);
      if (b == '"') in = !in;
      if (in || (b != ',' && b != '\n')) continue;
      wf.push_back(i);
      if (b == '\n') wr.push_back(double(wf.size()));
    }
    auto a = agree(total.now(), {double(wf.size()), double(wr.size())}, .01, 0);
    auto f = agree(fe.now(), wf, .01, 0), r = agree(re.now(), wr, .01, 0);
    return a + f + r;
  };
  return j;
});

// --- UMAP: one epoch over edges; positions of the epoch's beginning, moves added up beside them
struct UmapCfg {
  int B = 256;
};
constexpr float kA = 1.577f, kB = 0.895f;
auto umap =
    kernel("user_umap", [](const UmapCfg& c, Ptr<const int> head, Ptr<const int> tail, Ptr<const float> due,
                           Ptr<const float> Y, Ptr<float> move, I32 edges, U32 points, U64 seed, F32 epoch, F32 alpha) {
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto active = (i < edges) & (load(due + i, {.mask = i < edges, .other = INFINITY}) <= epoch);
      auto h = load(head + i, {.mask = active}), t = load(tail + i, {.mask = active});
      auto at = [&](const Tile& p, int k) { return load(Y + p * 2 + k, {.mask = active}); };
      Tile x = at(h, 0), y = at(h, 1);
      const Tile x0 = x, y0 = y;
      auto clip = [](Tile g) { return clamp(g, -4, 4); };
      {
        auto dx = x - at(t, 0), dy = y - at(t, 1);
        auto d2 = dx * dx + dy * dy;
        auto power = pow(max(d2, 1e-20f), kB);
        auto g = where(d2 > 0, -2 * kA * kB * power / (max(d2, 1e-20f) * (1 + kA * power)), 0.f);
        auto gx = clip(g * dx) * alpha, gy = clip(g * dy) * alpha;
        atomic_add(move + t * 2, -gx, {.mask = active});
        atomic_add(move + t * 2 + 1, -gy, {.mask = active});
        x += gx, y += gy;
      }
      auto words = randint4(seed, cast(i, u64) * 2), more = randint4(seed, cast(i, u64) * 2 + 1);
      for (int s = 0; s < 5; ++s) {
        auto k = cast(mulhi(s < 4 ? words[s] : more[0], points), i32);
        auto dx = x - at(k, 0), dy = y - at(k, 1);
        auto d2 = dx * dx + dy * dy;
        auto g = 2 * kB / ((0.001f + d2) * (1 + kA * pow(max(d2, 1e-20f), kB)));
        auto other = k != h;
        x += where(other, clip(g * dx) * alpha, 0.f), y += where(other, clip(g * dy) * alpha, 0.f);
      }
      atomic_add(move + h * 2, x - x0, {.mask = active});
      atomic_add(move + h * 2 + 1, y - y0, {.mask = active});
    }).grid([](const UmapCfg& c, auto, auto, auto, auto, auto, int edges, auto...) { return Grid{cdiv(edges, c.B)}; });
Register r5("umap_sgd", [](Env& e) {
  UmapCfg c{e.field("B", 256)};
  const int N = e.big ? 1 << 18 : 301, E = e.big ? N * 15 : 2011;
  auto head = filled<int>(e, E, [&](size_t i) { return int(i * N / E); });
  auto tail = integers<int>(e, E, 0, N);
  auto due = random<float>(e, E, 0, 10), Y = random<float>(e, size_t(N) * 2, -10, 10);
  auto move = constant<float>(e, size_t(N) * 2, 0);
  const float epoch = 6, alpha = 0.7f;
  const uint64_t seed = 0x123456789abcull;
  Job j;
  restore(e, j, move);
  j.add(umap, c, head.p, tail.p, due.p, Y.p, move.p, E, uint32_t(N), seed, epoch, alpha);
  j.check = [=] {
    std::vector<double> want(size_t(N) * 2);
    for (int i = 0; i < E; ++i) {
      if (due.at(i) > epoch) continue;
      const int h = head.at(i), t = tail.at(i);
      double x = Y[h * 2], y = Y[h * 2 + 1];
      auto clip = [](double g) { return std::clamp(g, -4., 4.); };
      double dx = x - Y[t * 2], dy = y - Y[t * 2 + 1], d2 = dx * dx + dy * dy;
      const double g = d2 > 0 ? -2. * kA * kB * std::pow(d2, kB - 1.) / (1 + kA * std::pow(d2, kB)) : 0;
      const double gx = clip(g * dx) * alpha, gy = clip(g * dy) * alpha;
      want[t * 2] -= gx, want[t * 2 + 1] -= gy, x += gx, y += gy;
      const auto w = reference_philox(seed, uint64_t(i) * 2), m = reference_philox(seed, uint64_t(i) * 2 + 1);
      for (int s = 0; s < 5; ++s) {
        const int k = int(uint64_t(s < 4 ? w[s] : m[0]) * N >> 32);
        if (k == h) continue;
        dx = x - Y[k * 2], dy = y - Y[k * 2 + 1], d2 = dx * dx + dy * dy;
        const double r = 2. * kB / ((0.001 + d2) * (1 + kA * std::pow(d2, kB)));
        x += clip(r * dx) * alpha, y += clip(r * dy) * alpha;
      }
      want[h * 2] += x - Y[h * 2], want[h * 2 + 1] += y - Y[h * 2 + 1];
    }
    return agree(move.now(), want, 2e-3, 1e-3);
  };
  return j;
});
}  // namespace beside_cuda_records
}  // namespace users
