// columns.cpp - columns of data bases and sequences set against each other: runs expanded, bytes as text, keys joined
// through a hash table, series warped onto each other, attention whose scores are mixed with their neighbours'.
#include <algorithm>
#include <numeric>

#include "tests/users/use.h"
namespace users {
namespace columns {

// --- a column of runs expanded: every element finds its run by bisection in the ends
struct RunsCfg {
  int B = 1024, warps = 4;
};
auto expand_runs = kernel("user_expand_runs", [](const RunsCfg& c, Ptr<const int64_t> ends, Ptr<const int32_t> values,
                                                 Ptr<int32_t> out, Ptr<int32_t> within, I32 runs, I64 n) {
  // ends [runs] of the runs' elements, out, within [n]: the value, and the place inside its run
  num_warps(c.warps);
  auto i = cast(program_id(0), i64) * c.B + cast(arange(0, c.B), i64);
  auto inside = i < n;
  Tile low = zeros({c.B}, i32), high = full({c.B}, runs, i32);  // the first run whose end is behind i
  for (auto step : range(0, 32 - countl_zero(runs))) {
    (void)step;
    auto open = low < high;
    auto middle = (low + high) >> 1;
    auto behind = load(ends + middle, {.mask = open & inside}) > i;
    high = where(open & behind, middle, high);
    low = where(open & !behind, middle + 1, low);
  }
  auto start = load(ends + (low - 1), {.mask = inside & (low > 0), .other = 0});
  store(out + i, load(values + low, {.mask = inside}), {.mask = inside});
  store(within + i, cast(i - start, i32), {.mask = inside});
}).grid([](const RunsCfg& c, auto, auto, auto, auto, int, int64_t n) { return Grid{cdiv(n, int64_t(c.B))}; });
Register r1("expand_runs", [](Env& e) {
  RunsCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int runs = e.big ? 1 << 20 : 37;
  std::vector<int64_t> ends;
  for (int r = 0; r < runs; ++r) ends.push_back((r ? ends.back() : 0) + 1 + r * 7919ll % (e.big ? 63 : 11));
  const int64_t n = ends.back();
  auto end = filled<int64_t>(e, runs, [&](size_t r) { return ends[r]; });
  auto value = integers<int32_t>(e, runs, -1000, 1000);
  auto out = constant<int32_t>(e, n, 0), within = constant<int32_t>(e, n, -1);
  Job j;
  j.mbytes = 8e-6 * double(n);
  j.add(expand_runs, c, end.p, value.p, out.p, within.p, runs, n);
  j.check = [=]() -> std::string {
    const auto got = out.now(), at = within.now();
    for (int64_t i = 0, r = 0; i < n; ++i) {
      while (end.at(r) <= i) ++r;
      if (got[i] != value.at(r) || at[i] != int(i - (r ? end.at(r - 1) : 0))) return "element " + std::to_string(i);
    }
    return "";
  };
  return j;
});

// --- base64: three bytes to four letters, the last ones padded
struct Base64Cfg {
  int B = 1024, warps = 4;
};
auto base64 = kernel("user_base64", [](const Base64Cfg& c, Ptr<const uint8_t> bytes, Ptr<uint8_t> text, I32 n) {
  num_warps(c.warps);
  auto t = program_id(0) * c.B + arange(0, c.B);
  auto byte = [&](int k) { return cast(load(bytes + (t * 3 + k), {.mask = t * 3 + k < n}), i32); };
  auto word = byte(0) << 16 | byte(1) << 8 | byte(2);
  auto letter = [](Tile x) {
    return cast(where(x < 26, x + 'A', where(x < 52, x + ('a' - 26), where(x < 62, x + ('0' - 52), where(x == 62, '+', '/')))),
                i8);
  };
  auto pad = full({c.B}, int('='), i8);
  auto a = letter(word >> 18 & 63), b = letter(word >> 12 & 63),
       d = where(t * 3 + 1 < n, letter(word >> 6 & 63), pad), f = where(t * 3 + 2 < n, letter(word & 63), pad);
  auto all = reshape(join(join(a, d), join(b, f)), {c.B, 4});  // a b d f
  store(text + (t * 4).col() + arange(0, 4).row(), bitcast(all, u8), {.mask = (t * 3 < n).col()});
}).grid([](const Base64Cfg& c, auto, auto, int n) { return Grid{cdiv(n, 3 * c.B)}; });
Register r2("base64", [](Env& e) {
  Base64Cfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 300'000'001 : 400, letters = (n + 2) / 3 * 4;
  auto bytes = integers<uint8_t>(e, n, 0, 256);
  auto text = constant<uint8_t>(e, letters, 0);
  Job j;
  j.mbytes = 1e-6 * (double(n) + letters);
  j.add(base64, c, bytes.p, text.p, n);
  j.check = [=]() -> std::string {
    const std::string letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string want;
    for (int i = 0; i < n; i += 3) {
      const int w = bytes.at(i) << 16 | (i + 1 < n ? bytes.at(i + 1) : 0) << 8 | (i + 2 < n ? bytes.at(i + 2) : 0);
      want += {letter[w >> 18 & 63], letter[w >> 12 & 63], i + 1 < n ? letter[w >> 6 & 63] : '=',
               i + 2 < n ? letter[w & 63] : '='};
    }
    const auto got = text.now();
    return std::string(got.begin(), got.end()) == want ? "" : std::string(got.begin(), got.end());
  };
  return j;
});

// --- a join: keys of one table are put into a hash table (open addressing; equal keys one behind the other), those of
// another look for all their partners; pairs go where a counter says
struct JoinCfg {
  int B = 256, warps = 4;
};
Tile slot_of(const Tile& key, const Tile& mask) { return cast(key * 2654435761u >> 7, i32) & mask; }
auto join_build = kernel("user_join_build", [](const JoinCfg& c, Ptr<const uint32_t> keys, Ptr<int32_t> table, I32 n,
                                               I32 mask) {
  // table [mask + 1] of -1: rows
  num_warps(c.warps);
  auto row = program_id(0) * c.B + arange(0, c.B);
  Tile going = row < n, at = slot_of(load(keys + row, {.mask = going}), mask);
  while_([&] { return any(going); }, [&] {
    auto was = atomic_cas(table + at, -1, row, {.mask = going, .order = Order::relaxed});
    going = going & (was != -1);
    at = where(going, (at + 1) & mask, at);
  });
}).grid([](const JoinCfg& c, auto, auto, int n, int) { return Grid{cdiv(n, c.B)}; });
auto join_probe = kernel("user_join_probe", [](const JoinCfg& c, Ptr<const uint32_t> probes, Ptr<const uint32_t> keys,
                                               Ptr<const int32_t> table, Tensor<int32_t, 2> pairs, Ptr<int32_t> count,
                                               I32 n, I32 mask) {
  // pairs [most, 2]: row of the probing table, row of the other
  num_warps(c.warps);
  auto row = program_id(0) * c.B + arange(0, c.B);
  Tile going = row < n;
  auto key = load(probes + row, {.mask = going});
  Tile at = slot_of(key, mask);
  while_([&] { return any(going); }, [&] {
    auto other = load(table + at, {.mask = going, .other = -1});
    going = going & (other != -1);
    auto same = going & (load(keys + other, {.mask = going}) == key);
    auto mine = cumsum(cast(same, i32), axis(0));
    auto all = sum(cast(same, i32));
    auto place = atomic_add(count, all, {.order = Order::relaxed}) + mine - 1;
    auto fits = same & (place < pairs.dim(0));
    store(pairs.ptr() + place * 2, row, {.mask = fits});
    store(pairs.ptr() + place * 2 + 1, other, {.mask = fits});
    at = (at + 1) & mask;
  });
}).grid([](const JoinCfg& c, auto, auto, auto, const auto&, auto, int n, int) { return Grid{cdiv(n, c.B)}; });
Register r3("hash_join", [](Env& e) {
  JoinCfg c;
  if (!e.big) c = {64, 2};
  c.B = e.field("B", c.B), c.warps = e.field("warps", c.warps);
  const int n = e.big ? 1 << 20 : 91, m = e.big ? 1 << 23 : 203, size = e.big ? 1 << 22 : 256, most = e.big ? 1 << 24 : 999;
  auto keys = integers<uint32_t>(e, n, 0, e.big ? 1 << 20 : 60), probes = integers<uint32_t>(e, m, 0, e.big ? 1 << 20 : 60);
  auto table = constant<int32_t>(e, size, -1), pairs = constant<int32_t>(e, size_t(most) * 2, -1), count = constant<int32_t>(e, 1, 0);
  Job j;
  j.inTurn = true;
  j.mbytes = 1e-6 * (8. * n + 20. * m);
  j.add(join_build, c, keys.p, table.p, n, size - 1);
  j.add(join_probe, c, probes.p, keys.p, table.p, pairs.view(most, 2), count.p, m, size - 1);
  j.check = [=]() -> std::string {
    std::vector<std::pair<int, int>> want, got;
    for (int i = 0; i < m; ++i)
      for (int k = 0; k < n; ++k)
        if (probes.at(i) == keys.at(k)) want.emplace_back(i, k);
    const auto p = pairs.now();
    if (count.now()[0] != int(want.size())) return std::to_string(count.now()[0]) + " pairs";
    for (size_t i = 0; i < want.size(); ++i) got.emplace_back(p[2 * i], p[2 * i + 1]);
    std::sort(got.begin(), got.end());
    return got == want ? "" : "pairs";
  };
  return j;
});

// --- soft DTW of many pairs of series: antidiagonals of the table, each from the two before it
struct WarpCfg {
  int BB = 16, N = 128, warps = 4;
};
auto soft_dtw = kernel("user_soft_dtw", [](const WarpCfg& c, Tensor<const float, 2> X, Tensor<const float, 2> Y,
                                           Tensor<float, 1> out, F32 gamma) {
  // X, Y [batch, N], out [batch]
  num_warps(c.warps);
  auto b = program_id(0) * c.BB;
  auto x = X.load({b, 0}, {c.BB, c.N});
  auto i = arange(0, c.N).row();
  auto before = broadcast_to(max(i - 1, 0), {c.BB, c.N});
  auto rows = (b + arange(0, c.BB)).col();
  constexpr float kFar = 1e10f;
  Tile last = full({c.BB, c.N}, kFar, f32), older = last;  // antidiagonals t - 1 and t - 2, by i
  for (auto t : range(0, 2 * c.N - 1)) {
    auto k = t - i;
    auto inside = (k >= 0) & (k < c.N);
    auto y = load(Y.ptr() + (rows * c.N + k), {.mask = inside & (rows < Y.dim(0))});
    auto up = where(i > 0, take(last, before, 1), kFar), corner = where(i > 0, take(older, before, 1), kFar);
    corner = where((t == 0) & (i == 0), 0.f, corner);
    auto least = min(min(up, last), corner);
    auto soft = least - gamma * log(exp((least - up) / gamma) + exp((least - last) / gamma) + exp((least - corner) / gamma));
    older = last;
    last = where(inside, (x - y) * (x - y) + soft, kFar);
  }
  out.store({b}, squeeze(sum(where(i == c.N - 1, last, 0.f), axis(1)), 1));
}).grid([](const WarpCfg& c, const auto& x, const auto&...) { return Grid{cdiv(x.shape[0], c.BB)}; });
Register r4("soft_dtw", [](Env& e) {
  WarpCfg c;
  if (!e.big) c = {8, 32, 1};
  c.BB = e.field("BB", c.BB), c.warps = e.field("warps", c.warps);
  const int B = e.big ? 16384 : 19, N = c.N;
  auto x = random<float>(e, size_t(B) * N), y = random<float>(e, size_t(B) * N);
  auto out = constant<float>(e, B, NAN);
  Job j;
  j.gflop = 20e-9 * B * double(N) * N;
  j.add(soft_dtw, c, x.view(B, N), y.view(B, N), out.view(B), .3f);
  j.check = [=] {
    std::vector<double> want;
    for (int b = 0; b < B; ++b) {
      std::vector<double> r((N + 1) * (N + 1), 1e10);
      r[0] = 0;
      for (int i = 1; i <= N; ++i)
        for (int k = 1; k <= N; ++k) {
          const double u = r[(i - 1) * (N + 1) + k], l = r[i * (N + 1) + k - 1], d = r[(i - 1) * (N + 1) + k - 1];
          const double m = std::min({u, l, d}), g = .3f;
          r[i * (N + 1) + k] = std::pow(x[size_t(b) * N + i - 1] - y[size_t(b) * N + k - 1], 2) + m -
                               g * std::log(std::exp((m - u) / g) + std::exp((m - l) / g) + std::exp((m - d) / g));
        }
      want.push_back(r.back());
    }
    return agree(out.now(), want, 1e-3, 1e-3);
  };
  return j;
});

// --- attention whose scores are mixed with their neighbours' before the softmax (multi-token attention): sums over keys
// nearby are sums of keys, those over queries nearby more products
struct MixCfg {
  int BM = 64, BN = 32, D = 64, stages = 2, warps = 8;
};
auto mixed_scores = kernel("user_mixed_scores", [](const MixCfg& c, Tensor<const half, 3> Q, Tensor<const half, 3> K,
                                                   Tensor<const half, 3> V, Tensor<const float, 3> W, Tensor<half, 3> O,
                                                   F32 scale) {
  // Q, K, V, O [heads, T, D], W [heads, 3, 3]: queries m - 1 .. m + 1, keys n - 1 .. n + 1, zeros outside
  num_warps(c.warps);
  auto h = program_id(1), m = program_id(0) * c.BM, T = K.dim(1);
  auto n = arange(0, c.BN).row();
  std::array<Tile, 3> q;
  for (int i = 0; i < 3; ++i) q[i] = Q.load({h, m + (i - 1), 0}, {c.BM, c.D});
  Tile top = full({c.BM, 1}, -INFINITY, f32), total = zeros({c.BM, 1}, f32), acc = zeros({c.BM, c.D}, f32);
  for (auto at : range(0, T, c.BN, {.stages = c.stages})) {
    std::array<Tile, 3> mixed;
    for (int k = 0; k < 3; ++k) {
      auto key = cast(K.load({h, at + (k - 1), 0}, {c.BN, c.D}), f32);
      for (int i = 0; i < 3; ++i) mixed[i] = k ? mixed[i] + W.load({h, i, k}) * key : W.load({h, i, k}) * key;
    }
    Tile s = zeros({c.BM, c.BN}, f32);
    for (int i = 0; i < 3; ++i) s = dot(q[i], trans(cast(mixed[i], f16)), s);
    s = where(at + n < T, s * (scale * 1.44269504f), -INFINITY);
    auto now = max(top, max(s, axis(1)));
    auto p = exp2(s - now), alpha = exp2(top - now);
    acc = dot(cast(p, f16), V.load({h, at, 0}, {c.BN, c.D}), acc * alpha);
    total = total * alpha + sum(p, axis(1));
    top = now;
  }
  O.store({h, m, 0}, cast(acc / total, f16));
}).grid([](const MixCfg& c, const auto& q, const auto&...) { return Grid{cdiv(q.shape[1], c.BM), q.shape[0]}; });
Register r5("mixed_scores", [](Env& e) {
  MixCfg c;
  if (!e.big) c = {32, 16, 32, 2, 2};
  c.BM = e.field("BM", c.BM), c.BN = e.field("BN", c.BN), c.warps = e.field("warps", c.warps);
  const int H = e.big ? 64 : 2, T = e.big ? 2048 : 45, D = c.D;
  auto q = random<half>(e, size_t(H) * T * D), k = random<half>(e, size_t(H) * T * D), v = random<half>(e, size_t(H) * T * D);
  auto w = random<float>(e, H * 9, -.3, .6);
  auto o = constant<half>(e, size_t(H) * T * D, NAN);
  const float scale = 1 / std::sqrt(float(D));
  Job j;
  j.gflop = 2e-9 * H * double(T) * T * D * 4;
  j.add(mixed_scores, c, q.view(H, T, D), k.view(H, T, D), v.view(H, T, D), w.view(H, 3, 3), o.view(H, T, D), scale);
  j.check = [=] {
    std::vector<double> want;
    for (int h = 0; h < H; ++h) {
      std::vector<double> raw(size_t(T) * T);
      for (int m = 0; m < T; ++m)
        for (int n = 0; n < T; ++n)
          for (int d = 0; d < D; ++d)
            raw[size_t(m) * T + n] += q[(size_t(h) * T + m) * D + d] * k[(size_t(h) * T + n) * D + d];
      for (int m = 0; m < T; ++m) {
        std::vector<double> s(T), out(D);
        double sum = 0;
        for (int n = 0; n < T; ++n) {
          for (int i = -1; i <= 1; ++i)
            for (int x = -1; x <= 1; ++x)
              if (m + i >= 0 && m + i < T && n + x >= 0 && n + x < T)
                s[n] += w[h * 9 + (i + 1) * 3 + x + 1] * raw[size_t(m + i) * T + n + x];
          sum += s[n] = std::exp(s[n] * scale);
        }
        for (int n = 0; n < T; ++n)
          for (int d = 0; d < D; ++d) out[d] += s[n] / sum * v[(size_t(h) * T + n) * D + d];
        want.insert(want.end(), out.begin(), out.end());
      }
    }
    return agree(o.now(), want, 4e-3, 4e-3);
  };
  return j;
});

}  // namespace columns
}  // namespace users
