// runs_and_residues.cpp - runs of keys and their sums in one pass, sums of buckets and change of base in arithmetic of
// residues, a generator of several recurrences, edges of blocks of video, communities of graphs.
#include "tests/users/use.h"
namespace users {
namespace runs_and_residues {

// Runs of equal keys and the sum of each, in one pass: (status, heads, sum since the last head) in one word a tile.
struct RunCfg {
  int B = 256, warps = 4;
};
auto run_sums =
    kernel("user_run_sums", [](const RunCfg& c, Ptr<const int32_t> keys, Ptr<const uint32_t> values,
                               Ptr<int32_t> ticket, Ptr<uint64_t> state, Ptr<int32_t> unique, Ptr<uint32_t> sums,
                               Ptr<int32_t> count, I32 n) {
      num_warps(c.warps);
      auto t = atomic_add(ticket, 1);
      auto i = t * c.B + arange(0, c.B);
      auto in = i < n;
      auto key = load(keys + i, {.mask = in});
      auto before = load(keys + i - 1, {.mask = in & (i > 0)});
      auto after = load(keys + i + 1, {.mask = i + 1 < n});
      auto head = in & ((i == 0) | (key != before));
      auto tail = in & ((i + 1 == n) | (key != after));
      auto [heads, sum_here] =
          scan({cast(head, u32), load(values + i, {.mask = in})}, axis(0), [](Tile h0, Tile v0, Tile h1, Tile v1) {
            return std::tuple<Tile, Tile>(h0 + h1, where(h1 > 0u, v1, v0 + v1));
          });
      auto word = [](uint64_t status, const Tile& h, const Tile& s) {
        return (status << 62) | (cast(h, u64) << 32) | cast(s, u64);
      };
      auto last = arange(0, c.B) == c.B - 1;
      Tile h = sum(where(last, heads, 0u)), s = sum(where(last, sum_here, 0u));
      atomic_exchange(state + t, word(1, h, s));
      Tile ch = zeros({}, u32), cs = zeros({}, u32), j = t - 1;
      while_([&] { return j >= 0; },
             [&] {
               auto w = atomic_or(state + j, uint64_t(0));
               auto status = w >> 62;
               if_(status != 0u, [&] {
                 auto there = cast(w & 0xFFFFFFFFull, u32);
                 cs = where(ch > 0u, cs, cs + there);
                 ch += cast((w >> 32) & 0x3FFFFFFFull, u32);
                 j = where(status == 2u, -1, j - 1);
               });
             });
      auto hAll = ch + h, sAll = where(h > 0u, s, cs + s);
      atomic_exchange(state + t, word(2, hAll, sAll));
      auto at = cast(ch + heads, i32) - 1;
      store(unique + at, key, {.mask = tail});
      store(sums + at, where(heads > 0u, sum_here, sum_here + cs), {.mask = tail});
      if_(t == num_programs(0) - 1, [&] { store(count, cast(hAll, i32)); });
    }).grid([](const RunCfg& c, auto, auto, auto, auto, auto, auto, auto, int n) { return Grid{cdiv(n, c.B)}; });

Register run_sums_case("run_sums", [](Env& e) {
  RunCfg c{e.field("B", 256), e.field("warps", 4)};
  const int n = e.big ? 1 << 24 : 1777;
  int32_t k = -3;
  auto keys = drawn<int32_t>(e, n, [&] { return k += e.uniform() < 0.02 ? 1 + int(e.uniform() * 3) : 0; });
  auto values = integers<uint32_t>(e, n, 0, 4000000);
  const int tiles = (n + c.B - 1) / c.B;
  auto ticket = constant<int32_t>(e, 1, 0);
  auto state = repeated<uint64_t>(e, tiles, std::vector<uint64_t>(tiles, 0));
  auto unique = constant<int32_t>(e, n, 77);
  auto sums = constant<uint32_t>(e, n, 77);
  auto count = constant<int32_t>(e, 1, 0);
  Job j;
  j.inTurn = true;
  restore(e, j, ticket, state);
  j.add(run_sums, c, keys.p, values.p, ticket.p, state.p, unique.p, sums.p, count.p, n);
  j.mbytes = n * 8e-6;
  j.check = [=] {
    std::vector<int32_t> u;
    std::vector<uint32_t> s;
    for (int i = 0; i < n; ++i) {
      if (i == 0 || keys.h[i] != keys.h[i - 1]) u.push_back(keys.h[i]), s.push_back(0);
      s.back() += values.h[i];
    }
    if (count.now()[0] != int(u.size())) return std::string("count");
    auto gu = unique.now();
    auto gs = sums.now();
    for (size_t i = 0; i < u.size(); ++i)
      if (gu[i] != u[i] || gs[i] != s[i]) return "run " + std::to_string(i);
    return gu[u.size()] == 77 ? std::string() : std::string("past the end");
  };
  return j;
});

// Bucket sums of points x, y over 2^61 - 1 in Montgomery form (R = 2^64), twisted Edwards a = -1, projective.
constexpr uint64_t kP = (1ull << 61) - 1, kD = 0x123456789ABCDEull;
constexpr uint64_t negative_inverse() {
  uint64_t x = 1;
  for (int i = 0; i < 6; ++i) x *= 2 - kP * x;
  return 0 - x;
}
constexpr uint64_t kN = negative_inverse();
uint64_t less(uint64_t x) { return x >= kP ? x - kP : x; }
Tile less(const Tile& x) { return where(x >= kP, x - kP, x); }
uint64_t mulhi_of(uint64_t a, uint64_t b) { return uint64_t((unsigned __int128)(a)*b >> 64); }
Tile mulhi_of(const Tile& a, const Tile& b) { return mulhi(a, b); }
Tile mulhi_of(const Tile& a, uint64_t b) { return mulhi(a, full_like(a, b)); }
uint64_t carry_of(uint64_t lo) { return lo != 0; }
Tile carry_of(const Tile& lo) { return cast(lo != 0u, u64); }
template <class T, class U>
T times(const T& a, const U& b) {
  T lo = a * b, m = lo * kN;
  return less(T(mulhi_of(a, b) + mulhi_of(m, kP) + carry_of(lo)));
}
template <class T>
T plus(const T& a, const T& b) {
  return less(T(a + b));
}
template <class T>
T minus(const T& a, const T& b) {
  return less(T(a + kP - b));
}
template <class T>
void add_point(T& x, T& y, T& z, const T& x2, const T& y2) {
  T b = times(z, z), c = times(x, x2), d = times(y, y2), e = times(times(c, d), kD);
  T f = minus(b, e), g = plus(b, e);
  T h = minus(minus(times(plus(x, y), plus(x2, y2)), c), d);
  x = times(times(z, f), h), y = times(times(z, g), plus(d, c)), z = times(f, g);
}
struct MsmCfg {
  int B = 64, warps = 2;
};
auto bucket_sums =
    kernel("user_bucket_sums", [](const MsmCfg& c, Ptr<const int32_t> starts, Ptr<const int32_t> list,
                                  Ptr<const uint64_t> px, Ptr<const uint64_t> py, Tensor<uint64_t, 2> out,
                                  I32 buckets) {
      num_warps(c.warps);
      auto i = program_id(0) * c.B + arange(0, c.B);
      auto in = i < buckets;
      auto begin = load(starts + i, {.mask = in});
      auto length = load(starts + i + 1, {.mask = in}) - begin;
      const uint64_t one = uint64_t((((unsigned __int128)1) << 64) % kP);
      Tile x = zeros({c.B}, u64), y = full({c.B}, one, u64), z = full({c.B}, one, u64);
      for (auto k : range(max(length))) {
        auto on = k < length;
        auto entry = load(list + begin + k, {.mask = on});
        auto at = entry & 0x7FFFFFFF;
        auto qx = load(px + at, {.mask = on}), qy = load(py + at, {.mask = on});
        qx = where(entry < 0, kP - qx, qx);
        Tile nx = x, ny = y, nz = z;
        add_point(nx, ny, nz, Tile(qx), Tile(qy));
        x = where(on, nx, x), y = where(on, ny, y), z = where(on, nz, z);
      }
      auto b = program_id(0) * c.B;
      out.store({0, b}, x.row());
      out.store({1, b}, y.row());
      out.store({2, b}, z.row());
    }).grid([](const MsmCfg& c, auto, auto, auto, auto, auto, int buckets) { return Grid{cdiv(buckets, c.B)}; });

Register bucket_sums_case("bucket_sums", [](Env& e) {
  MsmCfg c{e.field("B", 64), e.field("warps", 2)};
  const int buckets = e.big ? 1 << 15 : 83, points = e.big ? 1 << 20 : 501;
  auto word = [&] { return ((uint64_t(e.uniform() * 0x1p24) << 37) ^ uint64_t(e.uniform() * 0x1p24)) % kP; };
  auto px = drawn<uint64_t>(e, points, word);
  auto py = drawn<uint64_t>(e, points, word);
  std::vector<int32_t> cuts(buckets + 1);
  const int fewest = points / buckets;
  for (int i = 1; i < buckets; ++i) cuts[i] = std::min(points, i * fewest + (e.big ? 0 : int(e.uniform() * fewest)));
  cuts[buckets] = points;
  if (!e.big) cuts[7] = cuts[6], cuts[1] = 0;
  auto starts = repeated<int32_t>(e, cuts.size(), cuts);
  auto list = drawn<int32_t>(
      e, points, [&] { return int32_t(uint32_t(e.uniform() * points) | (e.uniform() < 0.5 ? 0x80000000u : 0)); });
  auto out = constant<uint64_t>(e, 3 * size_t(buckets), 5);
  Job j;
  j.add(bucket_sums, c, starts.p, list.p, px.p, py.p, out.view(3, buckets), buckets);
  j.mbytes = points * 20e-6;
  j.check = [=] {
    auto got = out.now();
    const uint64_t one = uint64_t((((unsigned __int128)1) << 64) % kP);
    for (int b = 0; b < buckets; ++b) {
      uint64_t x = 0, y = one, z = one;
      for (int k = cuts[b]; k < cuts[b + 1]; ++k) {
        const int32_t entry = list.h[k], at = entry & 0x7FFFFFFF;
        add_point(x, y, z, entry < 0 ? kP - px.h[at] : px.h[at], py.h[at]);
      }
      if (got[b] != x || got[buckets + b] != y || got[2 * buckets + b] != z) return "bucket " + std::to_string(b);
    }
    return std::string();
  };
  return j;
});

// Base conversion of RNS-CKKS: [x]_q over L primes to [x]_p over K primes; sums of 128 bits, one reduction.
struct BconvCfg {
  int B = 256, warps = 4, stages = 2;
};
auto base_conversion =
    kernel("user_base_conversion", [](const BconvCfg& c, Tensor<const uint64_t, 2> X, Ptr<const uint64_t> q,
                                      Ptr<const uint64_t> w, Ptr<const uint64_t> ws, Ptr<const uint64_t> p,
                                      Ptr<const uint64_t> r, Tensor<const uint64_t, 2> table, Tensor<uint64_t, 2> Y) {
      num_warps(c.warps);
      auto n = program_id(0) * c.B, k = program_id(1);
      Tile hi = zeros({c.B}, u64), lo = zeros({c.B}, u64);
      for (auto l : range(0, X.dim(0), 1, {.stages = c.stages})) {
        Tile x = X.load({l, n}, {c.B});
        auto ql = load(q + l);
        Tile y = x * load(w + l) - mulhi(x, broadcast_to(reshape(load(ws + l), {1}), {c.B})) * ql;  // Shoup: below 2 q
        y = where(y >= ql, y - ql, y);
        Tile f = broadcast_to(table.load({k, l}, {1, 1}), {1, c.B});
        f = reshape(f, {c.B});
        auto low = y * f;
        lo += low;
        hi += mulhi(y, f) + cast(lo < low, u64);
      }
      auto pk = load(p + k), rk = load(r + k);  // 2^64 mod p
      auto a = hi % pk;
      auto high = mulhi(a, full_like(a, 0) + rk), rest = a * rk;
      lo += rest;
      high += cast(lo < rest, u64);
      // high < 2^54: once more
      auto a2 = high % pk;
      for (int bit = 0; bit < 64; ++bit) a2 = a2 + a2, a2 = where(a2 >= pk, a2 - pk, a2);
      auto s = a2 + lo % pk;
      Y.store({k, n}, where(s >= pk, s - pk, s));
    }).grid([](const BconvCfg& c, const auto& X, auto, auto, auto, auto, auto, const auto&, const auto& Y) {
      return Grid{cdiv(X.shape[1], c.B), Y.shape[0]};
    });

Register base_conversion_case("base_conversion", [](Env& e) {
  BconvCfg c{e.field("B", 256), e.field("warps", 4), e.field("stages", 2)};
  using W = unsigned __int128;
  const int L = e.big ? 24 : 5, K = e.big ? 12 : 3, N = e.big ? 1 << 16 : 333;
  auto q = filled<uint64_t>(e, L, [&](size_t i) { return (1ull << 54) + 2 * i * 1048576 + 1; });
  auto p = filled<uint64_t>(e, K, [&](size_t i) { return (1ull << 55) + 6 * i * 1048576 + 3; });
  auto word = [&] { return (uint64_t(e.uniform() * 0x1p24) << 30) ^ uint64_t(e.uniform() * 0x1p24); };
  auto w = filled<uint64_t>(e, L, [&](size_t) { return word(); });
  auto ws = filled<uint64_t>(e, L, [&](size_t i) { return uint64_t((W(w.h[i]) << 64) / q.h[i]); });
  auto r = filled<uint64_t>(e, K, [&](size_t i) { return uint64_t((W(1) << 64) % p.h[i]); });
  auto x = drawn<uint64_t>(e, size_t(L) * N, word);
  auto table = filled<uint64_t>(e, size_t(L) * K, [&](size_t) { return word(); });
  auto y = constant<uint64_t>(e, size_t(K) * N, 0);
  Job j;
  j.add(base_conversion, c, x.view(L, N), q.p, w.p, ws.p, p.p, r.p, table.view(K, L), y.view(K, N));
  j.mbytes = (L * K + K) * double(N) * 8e-6;
  j.check = [=] {
    auto got = y.now();
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) {
        uint64_t s = 0;
        for (int l = 0; l < L; ++l) {
          uint64_t v = uint64_t(W(x.h[size_t(l) * N + n]) * w.h[l] % q.h[l]);
          s = uint64_t((W(s) + W(v) * table.h[k * L + l]) % p.h[k]);
        }
        if (got[size_t(k) * N + n] != s) return "element " + std::to_string(k) + " " + std::to_string(n);
      }
    return std::string();
  };
  return j;
});

// MRG32k3a (L'Ecuyer): six words a stream, every stream draws `draws` numbers.
struct MrgCfg {
  int B = 128, warps = 4;
};
auto mrg = kernel("user_mrg32k3a", [](const MrgCfg& c, Tensor<uint32_t, 2> state, Tensor<float, 2> out) {
             num_warps(c.warps);
             constexpr int64_t m1 = 4294967087, m2 = 4294944443;
             auto b = program_id(0) * c.B;
             std::array<Tile, 6> s;
             for (int i = 0; i < 6; ++i) s[i] = cast(reshape(state.load({i, b}, {1, c.B}), {c.B}), i64);
             for (auto d : range(out.dim(0))) {
               auto p1 = floor_mod(1403580 * s[1] - 810728 * s[0], m1);
               s[0] = s[1], s[1] = s[2], s[2] = p1;
               auto p2 = floor_mod(527612 * s[5] - 1370589 * s[3], m2);
               s[3] = s[4], s[4] = s[5], s[5] = p2;
               auto z = p1 - p2;
               z = where(z <= 0, z + m1, z);
               out.store({d, b}, cast(cast(z, f64) * 2.328306549295728e-10, f32));
             }
             for (int i = 0; i < 6; ++i) state.store({i, b}, cast(s[i], u32));
           }).grid([](const MrgCfg& c, const auto& state, const auto&) { return Grid{cdiv(state.shape[1], c.B)}; });

Register mrg_case("mrg32k3a", [](Env& e) {
  MrgCfg c{e.field("B", 128), e.field("warps", 4)};
  const int n = e.big ? 1 << 16 : 201, draws = e.big ? 256 : 9;
  auto state = integers<uint32_t>(e, 6 * size_t(n), 1, 4294944442);
  auto out = constant<float>(e, size_t(n) * draws, 0);
  Job j;
  j.inTurn = true;
  restore(e, j, state);
  j.add(mrg, c, state.view(6, n), out.view(draws, n));
  j.mbytes = double(n) * draws * 4e-6;
  j.check = [=] {
    std::vector<double> want(size_t(n) * draws);
    std::vector<uint32_t> end(6 * size_t(n));
    for (int i = 0; i < n; ++i) {
      int64_t s[6];
      for (int k = 0; k < 6; ++k) s[k] = state.h[size_t(k) * n + i];
      for (int d = 0; d < draws; ++d) {
        int64_t p1 = (1403580 * s[1] - 810728 * s[0]) % 4294967087, p2 = (527612 * s[5] - 1370589 * s[3]) % 4294944443;
        if (p1 < 0) p1 += 4294967087;
        if (p2 < 0) p2 += 4294944443;
        s[0] = s[1], s[1] = s[2], s[2] = p1, s[3] = s[4], s[4] = s[5], s[5] = p2;
        want[size_t(d) * n + i] = double(p1 <= p2 ? p1 - p2 + 4294967087 : p1 - p2) * 2.328306549295728e-10;
      }
      for (int k = 0; k < 6; ++k) end[size_t(k) * n + i] = uint32_t(s[k]);
    }
    if (state.now() != end) return std::string("states");
    return agree(out.now(), want, 1e-9, 1e-6);
  };
  return j;
});

// Vertical edges of luma, every eighth column, in place: strengths 0 to 4 of every four rows (H.264, 8.7.2).
struct DeblockCfg {
  int R = 16, E = 16, warps = 4;
};
auto deblock =
    kernel("user_deblock", [](const DeblockCfg& c, Ptr<uint8_t> Y, I64 stride, Tensor<const uint8_t, 2> bs,
                              Ptr<const int32_t> tc0, I32 rows, I32 edges, I32 alpha, I32 beta) {
      num_warps(c.warps);
      auto r = program_id(0) * c.R + arange(0, c.R), e = program_id(1) * c.E + arange(0, c.E);
      auto in = (r < rows).col() & (e < edges).row();
      auto s = cast(load(bs.ptr() + (cast(r / 4, i64).col() * bs.stride(0) + cast(e, i64).row()), {.mask = in}), i32);
      auto at = Y + (cast(r, i64).col() * stride + cast(e * 8 + 8, i64).row());
      std::array<Tile, 4> p, q;
      for (int i = 0; i < 4; ++i) {
        p[i] = cast(load(at - (i + 1), {.mask = in}), i32);
        q[i] = cast(load(at + i, {.mask = in}), i32);
      }
      auto on = in & (s > 0) & (abs(p[0] - q[0]) < alpha) & (abs(p[1] - p[0]) < beta) & (abs(q[1] - q[0]) < beta);
      auto ap = abs(p[2] - p[0]) < beta, aq = abs(q[2] - q[0]) < beta;
      auto t0 = load(tc0 + s);
      auto tc = t0 + cast(ap, i32) + cast(aq, i32);
      auto delta = clamp((((q[0] - p[0]) << 2) + (p[1] - q[1]) + 4) >> 3, -tc, tc);
      auto small = abs(p[0] - q[0]) < (alpha >> 2) + 2;
      auto side = [&](const std::array<Tile, 4>& a, const std::array<Tile, 4>& b, const Tile& near, const Tile& d,
                      std::array<Tile, 3>& to) {
        auto strong = near & small, four = s == 4;
        auto n1 = a[1] + clamp((a[2] + ((a[0] + b[0] + 1) >> 1) - (a[1] << 1)) >> 1, -t0, t0);
        to[0] = where(
            four,
            where(strong, (a[2] + 2 * a[1] + 2 * a[0] + 2 * b[0] + b[1] + 4) >> 3, (2 * a[1] + a[0] + b[1] + 2) >> 2),
            clamp(a[0] + d, 0, 255));
        to[1] = where(four, where(strong, (a[2] + a[1] + a[0] + b[0] + 2) >> 2, a[1]), where(near, n1, a[1]));
        to[2] = where(four & strong, (2 * a[3] + 3 * a[2] + a[1] + a[0] + b[0] + 4) >> 3, a[2]);
      };
      std::array<Tile, 3> np, nq;
      side(p, q, ap, delta, np);
      side(q, p, aq, -delta, nq);
      for (int i = 0; i < 3; ++i) {
        store(at - (i + 1), cast(np[i], u8), {.mask = on});
        store(at + i, cast(nq[i], u8), {.mask = on});
      }
    }).grid([](const DeblockCfg& c, auto, auto, auto, auto, int rows, int edges, int, int) {
      return Grid{cdiv(rows, c.R), cdiv(edges, c.E)};
    });

Register deblock_case("deblock", [](Env& e) {
  DeblockCfg c{e.field("R", 16), e.field("E", 16), e.field("warps", 4)};
  const int H = e.big ? 2160 : 37, W = e.big ? 3840 : 161, edges = W / 8 - 1, alpha = 40, beta = 12;
  auto y = integers<uint8_t>(e, size_t(H) * W, 100, 128);
  auto bs = integers<uint8_t>(e, size_t((H + 3) / 4) * edges, 0, 5);
  auto tc0 = filled<int32_t>(e, 5, [](size_t i) { return int(i * 2); });
  Job j;
  j.inTurn = true;
  restore(e, j, y);
  j.add(deblock, c, y.p, W, bs.view((H + 3) / 4, edges), tc0.p, H, edges, alpha, beta);
  j.mbytes = double(H) * W * 2e-6;
  j.check = [=] {
    std::vector<double> want(y.h.begin(), y.h.end());
    for (int r = 0; r < H; ++r)
      for (int k = 0; k < edges; ++k) {
        const int s = bs.h[r / 4 * edges + k];
        const size_t at = size_t(r) * W + k * 8 + 8;
        int p[4], q[4];
        for (int i = 0; i < 4; ++i) p[i] = y.h[at - i - 1], q[i] = y.h[at + i];
        if (!s || std::abs(p[0] - q[0]) >= alpha || std::abs(p[1] - p[0]) >= beta || std::abs(q[1] - q[0]) >= beta)
          continue;
        const int ap = std::abs(p[2] - p[0]) < beta, aq = std::abs(q[2] - q[0]) < beta, t0 = s * 2, tc = t0 + ap + aq;
        const int d = std::clamp(((q[0] - p[0]) * 4 + (p[1] - q[1]) + 4) >> 3, -tc, tc);
        const bool small = std::abs(p[0] - q[0]) < alpha / 4 + 2;
        auto side = [&](int* a, int* b, bool near, int delta, size_t first, int step) {
          if (s == 4) {
            if (near && small) {
              want[first] = (a[2] + 2 * a[1] + 2 * a[0] + 2 * b[0] + b[1] + 4) >> 3;
              want[first + step] = (a[2] + a[1] + a[0] + b[0] + 2) >> 2;
              want[first + 2 * step] = (2 * a[3] + 3 * a[2] + a[1] + a[0] + b[0] + 4) >> 3;
            } else
              want[first] = (2 * a[1] + a[0] + b[1] + 2) >> 2;
          } else {
            want[first] = std::clamp(a[0] + delta, 0, 255);
            if (near)
              want[first + step] = a[1] + std::clamp((a[2] + ((a[0] + b[0] + 1) >> 1) - a[1] * 2) >> 1, -t0, t0);
          }
        };
        side(p, q, ap, d, at - 1, -1);
        side(q, p, aq, -d, at, 1);
      }
    return agree(y.now(), want, 0.1, 0);
  };
  return j;
});

// One round of Louvain: a program a vertex; weights to every community of its neighbours, the best gain of all.
struct LouvainCfg {
  int D = 128, warps = 1;
};
auto louvain =
    kernel("user_louvain", [](const LouvainCfg& c, Ptr<const int32_t> starts, Ptr<const int32_t> to,
                              Ptr<const float> weight, Ptr<const int32_t> community, Ptr<const float> degree,
                              Ptr<const float> total, Ptr<int32_t> next, F32 m2, I32) {
      num_warps(c.warps);
      auto v = program_id(0);
      auto begin = load(starts + v), n = load(starts + v + 1) - begin;
      auto own = load(community + v);
      return_if(n == 0);
      auto i = arange(0, c.D);
      auto in = i < n;
      auto u = load(to + begin + i, {.mask = in});
      auto key = where(in, load(community + u, {.mask = in}), 0x7FFFFFFF);
      auto order = argsort(key, axis(0));
      auto k = take(key, order, 0);
      auto w = take(load(weight + begin + i, {.mask = in}), order, 0);
      auto [sums, keys] = scan({w, k}, axis(0), [](Tile s0, Tile k0, Tile s1, Tile k1) {
        return std::tuple<Tile, Tile>(where(k0 == k1, s0 + s1, s1), k1);
      });
      auto following = take(k, min(i + 1, c.D - 1), 0);
      auto last = in & ((i == n - 1) | (k != following));
      auto mine = load(degree + v);
      auto outside = load(total + k, {.mask = last}) - where(k == own, mine, 0.f);
      auto gain = where(last, sums - mine * outside / m2, -INFINITY);
      auto [best, at] = max_with_index(gain);
      auto stay = max(where(last & (k == own), gain, -INFINITY));
      auto winner = to_scalar(take(k, reshape(at, {1}), 0));
      store(next + v, where((best > stay), winner, own));
    }).grid([](const LouvainCfg&, auto, auto, auto, auto, auto, auto, auto, float, int V) { return Grid{V}; });

Register louvain_case("louvain", [](Env& e) {
  LouvainCfg c{e.field("D", 128), e.field("warps", 1)};
  const int V = e.big ? 1 << 18 : 61;
  std::vector<int32_t> s(V + 1);
  for (int i = 0; i < V; ++i) s[i + 1] = s[i] + (i % 9 == 4 ? 0 : int(e.uniform() * (i % 5 ? 40 : c.D + 1)));
  const int E = s[V];
  auto starts = repeated<int32_t>(e, s.size(), s);
  auto to = integers<int32_t>(e, E, 0, V);
  auto weight = integers<float>(e, E, 1, 9);
  auto community = integers<int32_t>(e, V, 0, std::min(V, 20));
  auto degree = integers<float>(e, V, 1, 200);
  auto total = integers<float>(e, V, 300, 900);
  auto next = constant<int32_t>(e, V, -1);
  const float m2 = 4096;
  Job j;
  j.add(louvain, c, starts.p, to.p, weight.p, community.p, degree.p, total.p, next.p, m2, V);
  j.mbytes = E * 12e-6;
  j.check = [=] {
    std::vector<double> want(V, -1);
    for (int v = 0; v < V; ++v) {
      if (s[v] == s[v + 1]) continue;
      std::map<int, double> sums;
      for (int i = s[v]; i < s[v + 1]; ++i) sums[community.h[to.h[i]]] += weight.h[i];
      const int own = community.h[v];
      double best = -INFINITY, stay = -INFINITY;
      int winner = 0;
      for (auto [q, w] : sums) {
        const double g = w - degree[v] * (total[q] - (q == own ? degree[v] : 0)) / m2;
        if (g > best + 1e-9) best = g, winner = q;
        if (q == own) stay = g;
      }
      want[v] = best > stay ? winner : own;
    }
    return agree(next.now(), want, 0.1, 0);
  };
  return j;
});

}  // namespace runs_and_residues
}  // namespace users
